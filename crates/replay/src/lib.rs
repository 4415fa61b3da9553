//! A page that shows how canvases were filled: one file of HTML, with the data in it, that asks for nothing
//! else.
//!
//! It opens on the finished texts, two methods side by side. Below each stand all steps at once, slots by
//! steps: how sure the model was of what was kept, what was forced and refused, which share of the vocabulary
//! was masked in open slots, how long each step took. It works offline, on a phone, in the dark, and by
//! keyboard.
//!
//! ```
//! use anygram::decode::Named;
//! use anygram::{Canvas, Compiler, Constraint, DecodeOptions, Decoder, End, GrammarFormat, Slot, Vocabulary};
//! use anygram_replay::{Ending, Replay, Run};
//! # use anygram::{Model, ModelError, OpenSlots, View};
//! # struct Flat;
//! # impl Model for Flat {
//! #     fn vocabulary_size(&self) -> usize { Vocabulary::builtin().len() }
//! #     fn open_slots(&self) -> OpenSlots { OpenSlots::Noise }
//! #     fn log_probs(&mut self, _: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
//! #         rows.fill(-6.0);
//! #         Ok(())
//! #     }
//! # }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let language = Compiler::default().compile(GrammarFormat::Lark, r#"start: "(" start ")" | "x""#)?;
//! let constraint = Constraint::new(language, Vocabulary::builtin())?;
//! let strategy = Named::find("exact").ok_or("none of this name")?.make(&constraint)?;
//! let mut decoder = Decoder::new(&constraint, strategy);
//! let canvas = Canvas::new(vec![Slot::Hole; 6], End::Sentence);
//! let decoded = decoder.decode(&canvas, &mut Flat, &DecodeOptions::default())?;
//!
//! let mut replay = Replay::new(&constraint);
//! replay.fact("model", "flat");
//! let ending = Ending::of(&constraint, &decoded.canvas)?;
//! replay.add(&Run::new("exact", &decoded, &ending));
//! assert!(replay.page().starts_with("<!doctype html>"));
//! # Ok(())
//! # }
//! ```
//!
//! The page (`page.html`) is the same for all runs. The data is JSON in a script element of its own. There
//! `<` is written `\u003c`, so no text can end the element or begin a comment, and the page shows texts as
//! texts, never as markup.

use std::collections::BTreeSet;

use anygram::decode::{Answered, Decoded, Event, Why};
use anygram::{Canvas, Constraint, Reading, Slot, StepError, TokenId};
use serde_json::{Map, Value, json};

const PAGE: &str = include_str!("page.html");
/// What stands in the page where the data belongs.
const PLACE: &str = "\"DATA\"";
/// How many tokens of a slot are kept to be shown.
const N_LIKELIEST: usize = 5;

/// What a page shows: facts, and runs of the decoding loop under one constraint.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    constraint: &'a Constraint,
    facts: Vec<(String, String)>,
    runs: Vec<Value>,
    /// Tokens that the page has to name.
    named: BTreeSet<TokenId>,
}

/// A run, and what else is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    method: &'a str,
    decoded: &'a Decoded,
    ending: &'a Ending,
    answers: &'a [Likeliest],
    functional: Option<bool>,
    log_prob: Option<f64>,
}

/// What a canvas says when a run has ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// What stands before the first EOS. Open slots are ▢, special tokens have their names.
    pub text: String,
    /// How far that is a sentence; `None` if it is no text, since slots are open or special tokens stand in
    /// it.
    pub reading: Option<Reading>,
    /// The place of the first EOS, or the number of slots.
    pub end: usize,
}

/// What a model said when it was asked: the likeliest tokens of each slot, with natural log-probabilities.
#[derive(Clone, PartialEq, Debug)]
pub struct Likeliest {
    slots: Vec<(usize, Vec<(TokenId, f32)>)>,
}

impl Ending {
    /// Of the canvas of a run. O(slots), and the text is read once.
    ///
    /// # Errors
    /// A limit of the language was reached while the text was read.
    pub fn of(constraint: &Constraint, canvas: &Canvas) -> Result<Self, StepError> {
        let vocabulary = constraint.vocabulary();
        let slots: Vec<Option<TokenId>> = tokens(canvas).collect();
        let is_end = |slot: &Option<TokenId>| slot.is_some_and(|token| vocabulary.eos().contains(&token));
        let end = slots.iter().position(is_end).unwrap_or(slots.len());
        let (mut bytes, mut is_text) = (Vec::new(), true);
        for slot in &slots[..end] {
            let text = slot.and_then(|token| vocabulary.bytes(token));
            is_text &= text.is_some();
            let named = || slot.map_or("▢".to_owned(), |token| vocabulary.display_token(token)).into_bytes();
            bytes.extend(text.map_or_else(named, <[u8]>::to_vec));
        }
        let reading = is_text.then(|| constraint.language().read(&bytes)).transpose()?;
        Ok(Self { text: String::from_utf8_lossy(&bytes).into_owned(), reading, end })
    }

    /// Whether the text is a sentence.
    pub fn is_sentence(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| reading.is_sentence)
    }
}

impl Likeliest {
    /// The five likeliest tokens of each slot. O(slots · vocabulary · log vocabulary).
    pub fn of(answer: &Answered) -> Self {
        let best = |(slot, row): (usize, &[f32])| {
            let mut tokens: Vec<(TokenId, f32)> =
                row.iter().enumerate().map(|(id, &value)| (TokenId::new(id), value)).collect();
            tokens.sort_by(|a, b| b.1.total_cmp(&a.1));
            tokens.truncate(N_LIKELIEST);
            (slot, tokens)
        };
        Self { slots: answer.rows().map(best).collect() }
    }

    /// Per slot: its number, and the likeliest tokens with their probabilities.
    fn to_json(&self) -> Value {
        let slot = |(slot, tokens): &(usize, Vec<(TokenId, f32)>)| {
            let tokens: Vec<_> = tokens
                .iter()
                .map(|&(token, value)| json!([token.0, probability(f64::from(value))]))
                .collect();
            json!([slot, tokens])
        };
        self.slots.iter().map(slot).collect()
    }
}

impl<'a> Run<'a> {
    /// A run by this method, and how it ended.
    pub fn new(method: &'a str, decoded: &'a Decoded, ending: &'a Ending) -> Self {
        Self { method, decoded, ending, answers: &[], functional: None, log_prob: None }
    }

    /// What the model said each time it was asked, in order.
    pub fn answers(self, answers: &'a [Likeliest]) -> Self {
        Self { answers, ..self }
    }

    /// Whether the text is what was asked for, if that is known.
    pub fn functional(self, functional: Option<bool>) -> Self {
        Self { functional, ..self }
    }

    /// What the model gave the text: a natural logarithm, if it is known.
    pub fn log_prob(self, log_prob: Option<f64>) -> Self {
        Self { log_prob, ..self }
    }

    fn to_json(self) -> Value {
        let trace = &self.decoded.trace;
        let refused = self.ending.reading.as_ref().filter(|reading| !reading.is_sentence);
        let timed = trace.events().iter().zip(trace.micros());
        json!({
            "method": self.method,
            "text": self.ending.text,
            "syntactic": self.ending.is_sentence(),
            "functional": self.functional,
            "stuck": self.decoded.is_stuck,
            "stops_at": refused.map(|reading| reading.length),
            "expected": refused.map(|reading| &reading.expected),
            "log_prob": self.log_prob,
            "final": tokens(&self.decoded.canvas).map(|token| token.map(|token| token.0)).collect::<Vec<_>>(),
            "answers": self.answers.iter().map(Likeliest::to_json).collect::<Vec<_>>(),
            "events": timed.map(|(event, &micros)| event_line(event, micros)).collect::<Vec<_>>(),
        })
    }
}

impl<'a> Replay<'a> {
    /// A page without runs.
    pub fn new(constraint: &'a Constraint) -> Self {
        Self { constraint, facts: Vec::new(), runs: Vec::new(), named: BTreeSet::new() }
    }

    /// A line at the top of the page.
    pub fn fact(&mut self, name: &str, value: &str) {
        self.facts.push((name.to_owned(), value.to_owned()));
    }

    /// One more run. The first two are shown side by side, the others can be chosen. O(events).
    pub fn add(&mut self, run: &Run<'_>) {
        self.named.extend(tokens(&run.decoded.canvas).flatten());
        for event in run.decoded.trace.events() {
            match event {
                Event::Proposed(proposal) => self.named.insert(proposal.token),
                Event::Filled { token, .. } | Event::TakenBack { token, .. } => self.named.insert(*token),
                _ => false,
            };
        }
        let likeliest = run.answers.iter().flat_map(|answer| &answer.slots);
        self.named.extend(likeliest.flat_map(|(_, tokens)| tokens).map(|(token, _)| *token));
        self.runs.push(run.to_json());
    }

    /// The page.
    pub fn page(&self) -> String {
        let vocabulary = self.constraint.vocabulary();
        let named = self.named.iter();
        let named: Map<String, Value> =
            named.map(|&token| (token.0.to_string(), vocabulary.display_token(token).into())).collect();
        let data = json!({
            "facts": self.facts,
            "vocabulary": vocabulary.len(),
            "eos": vocabulary.eos().iter().map(|token| token.0).collect::<Vec<_>>(),
            "tokens": named,
            "runs": self.runs,
        });
        let data = data
            .to_string()
            .replace('<', "\\u003c")
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029");
        PAGE.replacen(PLACE, &data, 1)
    }
}

/// What stands in the slots; `None` where one is open.
fn tokens(canvas: &Canvas) -> impl Iterator<Item = Option<TokenId>> {
    canvas.slots().iter().map(|slot| match slot {
        Slot::Fixed(token) => Some(*token),
        Slot::Hole | Slot::Gap => None,
    })
}

/// Of a natural logarithm, to four places.
fn probability(log_prob: f64) -> f64 {
    (log_prob.exp() * 1e4).round() / 1e4
}

/// An event as a list: its name, its parts, at the end the microseconds it took.
fn event_line(event: &Event, micros: f64) -> Value {
    let us = micros.round();
    match event {
        Event::Asked { n_open, .. } => json!(["asked", n_open, us]),
        Event::Restricted { left, .. } => json!(["restricted", left, us]),
        Event::Proposed(proposal) => {
            let judgement = proposal.judgement;
            let name = if judgement.kept { "kept" } else { "refused" };
            let given = probability(proposal.log_prob);
            let (ground, proven) = (judgement.ground.name(), judgement.proven);
            json!([name, proposal.slot, proposal.token.0, given, ground, proven, us])
        }
        Event::Filled { slot, token, why, .. } => json!(["filled", slot, token.0, reason(*why), us]),
        Event::TakenBack { slot, token, .. } => json!(["taken", slot, token.0, us]),
        Event::Inserted { slot, count, .. } => json!(["inserted", slot, count, us]),
        _ => json!(["other", us]),
    }
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::AfterEos => "it stands behind the end",
        Why::Recovery => "recovery",
        Why::Rescue => "a completion that is known",
        _ => "the method",
    }
}
