//! The decoding loop with synthetic models: random tables of log-probabilities over random and over small
//! grammars, in all lexer modes.
//!
//! `ANYGRAM_SEED=17` replays one seed; `ANYGRAM_SEEDS=500` sets how many are drawn (default 25).

mod driven;
mod every;
mod filling;
mod methods;

use std::collections::HashMap;
use std::sync::Arc;

use anygram_any_order::{Canvas, End, Floor, LogProbs, Slot, Solver};
use anygram_decoding::decode::{
    Answer, Asked, Configured, DecodeError, DecodeOptions, Decoded, Decoder, Event, Exact, ExactBy, Ground,
    Lave, Model, ModelError, Named, OpenSlots, Order, Pace, Revision, STRATEGIES, Sampling, Sequential,
    Strategy, View, Why,
};
use anygram_decoding::{Lookahead, Method};
use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::{Constraint, ErrorKind, Language, LanguageOptions, Limits};
use anygram_testkit::generate::{EOS, RandomCase};
use anygram_testkit::random::Random;
use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};

fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(25)
}

/// A table of log-probabilities for each slot, which may depend on what the model sees.
struct Table {
    size: usize,
    open: OpenSlots,
    /// The larger, the surer: weights are `sharpness` times noise in `[0, 1)`.
    sharpness: f32,
    seed: u64,
    /// Whether what is seen changes the table.
    looks: bool,
    n_asked: usize,
}

impl Table {
    fn new(size: usize, open: OpenSlots, sharpness: f32, seed: u64) -> Self {
        Self { size, open, sharpness, seed, looks: true, n_asked: 0 }
    }
}

impl Model for Table {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn open_slots(&self) -> OpenSlots {
        self.open
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        assert_eq!(rows.len(), view.wanted.len() * self.size);
        assert!(view.wanted.is_sorted_by(|a, b| a < b));
        self.n_asked += 1;
        let mut seen = self.seed;
        if self.looks {
            view.tokens
                .iter()
                .for_each(|token| seen = seen.wrapping_mul(31).wrapping_add(u64::from(token.0)));
        }
        for (row, &slot) in rows.chunks_mut(self.size).zip(view.wanted) {
            if self.open == OpenSlots::Next {
                assert_eq!(slot, view.tokens.len());
            }
            let mut random = Random::new(seen ^ (slot as u64) << 32);
            row.fill_with(|| self.sharpness * random.below(1_000) as f32 / 1_000.0);
        }
        Ok(())
    }
}

/// Likes one token in each slot best, by so much; others as a table has it.
struct Likes {
    tokens: Vec<u32>,
    lead: Vec<f32>,
    size: usize,
    open: OpenSlots,
}

impl Model for Likes {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn open_slots(&self) -> OpenSlots {
        self.open
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        for (row, &slot) in rows.chunks_mut(self.size).zip(view.wanted) {
            row.fill(0.0);
            row[self.tokens[slot] as usize] = self.lead[slot];
        }
        Ok(())
    }
}

fn constraint(grammar: &str, tokens: &str, special: &LoadOptions) -> Constraint {
    let grammar =
        anygram_grammar::lark::parse(grammar, &anygram_grammar::lark::LarkOptions::default()).unwrap();
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, tokens.as_bytes(), special).unwrap();
    Constraint::new(Arc::new(language), vocabulary).unwrap()
}

/// Brackets: `(`, `)`, `x`, `()`, EOS 4, MASK 5.
fn brackets() -> Constraint {
    let special = LoadOptions { eos: vec![4], mask: Some(5), ..LoadOptions::default() };
    constraint("start: \"x\" | \"(\" start* \")\"", r#"["(",")","x","()",null,null]"#, &special)
}

const MASK: OpenSlots = OpenSlots::Mask(TokenId(5));

fn make(constraint: &Constraint, name: &str) -> Box<dyn Strategy> {
    Named::find(name).unwrap().make(constraint).unwrap()
}

fn decode(
    constraint: &Constraint,
    name: &str,
    canvas: &Canvas,
    model: &mut dyn Model,
    options: &DecodeOptions,
) -> Decoded {
    let decoded = Decoder::new(constraint, make(constraint, name)).decode(canvas, model, options);
    decoded.unwrap_or_else(|error| panic!("{name}, {canvas:?}, {options:?}: {error}"))
}

/// Whether it fills every canvas that is completable, whatever the model.
fn is_exact(named: &Named) -> bool {
    ["exact", "compatible", "best", "sample"].contains(&named.name)
}

/// A run; nothing where the masks of `contextual` came to a limit.
fn unless_undecided(
    constraint: &Constraint,
    run: Result<Decoded, DecodeError>,
    question: &str,
) -> Option<Decoded> {
    match run {
        Ok(decoded) => Some(decoded),
        Err(error) if error.kind() == ErrorKind::Undecided => {
            assert_eq!(constraint.language().mode(), LexerMode::Contextual, "{question}: {error}");
            None
        }
        Err(error) => panic!("{question}: {error}"),
    }
}

fn ids(decoded: &Decoded) -> Vec<u32> {
    decoded
        .tokens()
        .unwrap_or_else(|| panic!("not filled: {decoded:?}"))
        .iter()
        .map(|token| token.0)
        .collect()
}

fn is_sentence(constraint: &Constraint, decoded: &Decoded) -> bool {
    let Some(tokens) = decoded.tokens() else { return false };
    // Without the limits of the solver, which what is tested has.
    let mut matcher = constraint.matcher().unwrap();
    tokens.into_iter().all(|token| matcher.advance(token).is_ok()) && matcher.is_sentence()
}

fn holes(n: usize) -> Canvas {
    Canvas::new(vec![Slot::Hole; n], End::Sentence)
}

/// Options that go through everything the loop knows.
fn any_options(random: &mut Random, seed: u64) -> DecodeOptions {
    DecodeOptions {
        order: *random.choose(&[Order::Confidence, Order::Entropy, Order::Margin, Order::Random]),
        pace: *random.choose(&[Pace::Even, Pace::Tokens(2), Pace::Threshold(0.4), Pace::EntropyBound(0.5)]),
        steps: random.between(1, 4),
        block: *random.choose(&[None, Some(1), Some(2)]),
        sampling: Sampling {
            temperature: *random.choose(&[0.0, 0.7]),
            last_temperature: *random.choose(&[None, Some(0.2)]),
            top_k: *random.choose(&[None, Some(2)]),
            top_p: *random.choose(&[None, Some(0.8)]),
        },
        revision: *random.choose(&[
            Revision::Stay,
            Revision::TakeBack { below: 0.3, most: 3 },
            Revision::Edit { above: 0.4, most: 2 },
            Revision::Renew,
        ]),
        refusals: *random.choose(&[None, Some(0), Some(2)]),
        seed,
        ..DecodeOptions::default()
    }
}

/// What cannot be asked of a model that knows only the next token.
fn asks_again(options: &DecodeOptions) -> bool {
    matches!(options.revision, Revision::Renew | Revision::Edit { .. })
}

fn random_case(seed: u64, limits: Limits) -> Option<(RandomCase, Constraint, usize)> {
    let mode = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual][seed as usize % 3];
    let case = RandomCase::in_mode(seed, mode);
    let (constraint, size) = constraint_of(&case, vec![EOS], limits)?;
    Some((case, constraint, size))
}

/// A case whose vocabulary lacks some texts, so that not all that is viable can be spelled; some have no EOS
/// either.
fn lacking_case(seed: u64) -> Option<(RandomCase, Constraint, usize)> {
    let mode = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual][seed as usize % 3];
    let mut case = RandomCase::in_mode(seed, mode);
    let mut random = Random::new(seed ^ 0x1ac4);
    let eos = if random.chance(70) { vec![EOS] } else { vec![] };
    let percent = *random.choose(&[30, 60, 80]);
    case.vocab.iter_mut().filter(|_| random.chance(percent)).for_each(|token| *token = None);
    for row in &mut case.tokens {
        row.retain(|&token| case.vocab[token as usize].is_some());
    }
    let (constraint, size) = constraint_of(&case, eos, Limits::default())?;
    Some((case, constraint, size))
}

/// Nothing if the language has no sentence.
fn constraint_of(case: &RandomCase, eos: Vec<u32>, limits: Limits) -> Option<(Constraint, usize)> {
    let options =
        LanguageOptions { lexer: Some(case.mode), ties: case.ties, limits, ..LanguageOptions::default() };
    let language = Language::new(case.grammar.clone(), &options).ok()?;
    let tokens = case.vocab.iter().map(|token| match token {
        Some(bytes) => {
            format!("{{\"hex\":\"{}\"}}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        None => "null".to_owned(),
    });
    let source = format!("[{}]", tokens.collect::<Vec<_>>().join(","));
    let special = LoadOptions { eos, ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, source.as_bytes(), &special).unwrap();
    let size = vocabulary.len();
    Some((Constraint::new(Arc::new(language), vocabulary).unwrap(), size))
}

fn random_canvas(case: &RandomCase, random: &mut Random) -> Canvas {
    let row: Vec<u32> = random.choose(&case.tokens).to_vec();
    let mut slots: Vec<Slot> = row.into_iter().take(6).map(|token| Slot::Fixed(TokenId(token))).collect();
    slots.iter_mut().filter(|_| random.chance(60)).for_each(|slot| *slot = Slot::Hole);
    slots.extend(vec![Slot::Hole; random.below(4)]);
    let end = if random.chance(70) { End::Sentence } else { End::Prefix { remaining: None } };
    Canvas::new(slots, end)
}

/// With gaps `contextual` searches on to the limit where it can say neither yes nor no.
fn asks_long(named: &Named, constraint: &Constraint) -> bool {
    named.name == "intersection" && constraint.language().lexing().mode() == LexerMode::Contextual
}

/// The slot that a token was taken back from.
fn taken_back(event: &Event) -> Option<usize> {
    if let Event::TakenBack { slot, .. } = event { Some(*slot) } else { None }
}
