//! A page that replays runs: one file, with the data in it, that asks for nothing else.
//!
//! The page (`page.html`) is the same for all runs. The data is JSON in a script element of its own. There
//! `<` is written `\u003c`, so no text can end the element or begin a comment, and the page shows texts as
//! texts, never as markup.

use std::collections::BTreeSet;

use anygram::TokenId;
use anygram::decode::{Event, Why};
use serde_json::{Map, Value, json};

use super::generation::{Generation, Generator, Likeliest, Question};

const PAGE: &str = include_str!("page.html");
/// What stands in the page where the data belongs.
const PLACE: &str = "\"DATA\"";

/// The page of the runs that answer a question.
pub fn page(
    heading: &Value,
    generator: &Generator,
    question: &Question,
    generations: &[Generation],
) -> String {
    let mut data = heading.clone();
    data["prompt"] = question.prompt.clone().into();
    data["tokens"] = tokens(generator, generations);
    data["eos"] = generator.vocabulary().eos().iter().map(|token| token.0).collect();
    data["runs"] = generations.iter().map(run).collect();
    let text = data
        .to_string()
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    PAGE.replacen(PLACE, &text, 1)
}

fn run(generation: &Generation) -> Value {
    let reading = generation.reading.as_ref();
    let timed = generation.trace.events().iter().zip(generation.trace.micros());
    json!({
        "method": generation.method,
        "text": generation.text,
        "syntactic": generation.is_syntactic(),
        "functional": generation.functional,
        "stuck": generation.is_stuck,
        "stops_at": reading.filter(|reading| !reading.is_sentence).map(|reading| reading.length),
        "expected": reading.filter(|reading| !reading.is_sentence).map(|reading| &reading.expected),
        "log_prob": generation.log_prob,
        "final": generation.slots.iter().map(|slot| slot.map(|token| token.0)).collect::<Vec<_>>(),
        "answers": generation.answers.iter().map(answer).collect::<Vec<_>>(),
        "events": timed.map(|(event, &micros)| event_line(event, micros)).collect::<Vec<_>>(),
    })
}

/// Per slot: its number, and the likeliest tokens with their probabilities.
fn answer(answer: &Likeliest) -> Value {
    let probability = |log_prob: f32| (f64::from(log_prob).exp() * 1e4).round() / 1e4;
    let slot = |(slot, tokens): &(usize, Vec<(TokenId, f32)>)| {
        let tokens: Vec<_> =
            tokens.iter().map(|&(token, value)| json!([token.0, probability(value)])).collect();
        json!([slot, tokens])
    };
    answer.slots.iter().map(slot).collect()
}

/// An event as a list: its name, its parts, at the end the microseconds it took.
fn event_line(event: &Event, micros: f64) -> Value {
    let us = micros.round();
    match event {
        Event::Asked { n_open, .. } => json!(["asked", n_open, us]),
        Event::Restricted { left, .. } => json!(["restricted", left, us]),
        Event::Proposed(proposal) => {
            let judgement = proposal.judgement;
            let probability = (proposal.log_prob.exp() * 1e4).round() / 1e4;
            let name = if judgement.kept { "kept" } else { "refused" };
            let (slot, token) = (proposal.slot, proposal.token.0);
            json!([name, slot, token, probability, judgement.ground.name(), judgement.proven, us])
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

/// All tokens that are named, as they are displayed.
fn tokens(generator: &Generator, generations: &[Generation]) -> Value {
    let mut named = BTreeSet::new();
    for generation in generations {
        named.extend(generation.slots.iter().flatten().copied());
        for event in generation.trace.events() {
            match event {
                Event::Proposed(proposal) => named.insert(proposal.token),
                Event::Filled { token, .. } | Event::TakenBack { token, .. } => named.insert(*token),
                _ => false,
            };
        }
        let likeliest = generation.answers.iter().flat_map(|answer| &answer.slots);
        named.extend(likeliest.flat_map(|(_, tokens)| tokens).map(|(token, _)| *token));
    }
    let named = named
        .into_iter()
        .map(|token| (token.0.to_string(), generator.vocabulary().display_token(token).into()));
    Value::Object(named.collect::<Map<String, Value>>())
}
