//! Canvases over schemas, held against all completions, each judged by the evaluator of `schema-oracle`.
//!
//! `ANYGRAM_SEED=17` replays one seed, `ANYGRAM_SEEDS=2000` sets how many are drawn (default 120).

use std::collections::BTreeSet;
use std::sync::Arc;

use anygram_any_order::{
    By, Canvas, Decision, End, Filling, Floor, LogProbs, SampleOptions, Slot, Solver, Tail, Weigher, Witness,
};
use anygram_bits::Random;
use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::{Constraint, Language, LanguageOptions, Matcher};
use anygram_schema_oracle::generate::Generator;
use anygram_schema_oracle::json::Limits;
use anygram_schema_oracle::{Formats, Options as OracleOptions, Registry, Value};
use anygram_testkit::schema_bench;
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

use crate::case::Case;

/// All tokens; the last one is EOS.
const TOKENS: [&str; 21] = [
    "{", "}", "[", "]", ",", ":", "\"", "a", "b", "1", "0", "-", ".", "true", "\"a\":", "\",\"", "\":1", " ",
    "\\u0061", "{\"", "",
];
const EOS: TokenId = TokenId(TOKENS.len() as u32 - 1);

/// Completions of one canvas that are looked at.
const MOST_TEXTS: usize = 12_000;

/// Schemas in which much depends on what was written before.
const SCHEMAS: [&str; 12] = [
    "{}",
    r#"{"type":"object","minProperties":2}"#,
    r#"{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}},"maxProperties":2}"#,
    r#"{"type":"array","uniqueItems":true}"#,
    r#"{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0}}"#,
    r#"{"type":"array","uniqueItems":true,"items":{"enum":[1,"a",true]},"minItems":2}"#,
    r#"{"type":"string","maxLength":2}"#,
    r#"{"type":"string","pattern":"^a*b$","minLength":2}"#,
    r#"{"type":"integer","multipleOf":11}"#,
    r#"{"properties":{"a":{"type":"integer"},"b":{"type":"string"}},"additionalProperties":false}"#,
    r#"{"type":"object","patternProperties":{"^a":{"type":"boolean"}},"additionalProperties":{"const":1}}"#,
    r##"{"oneOf":[{"type":"array","items":{"$ref":"#"},"maxItems":1},{"enum":[1,10,"ab"]}]}"##,
];

fn vocabulary() -> Vocabulary {
    let special = SpecialIds { eos: vec![EOS.0], ..SpecialIds::default() };
    Vocabulary::from_tokens(TOKENS, special).unwrap()
}

fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(40)
}

/// A schema, and what the evaluator says of texts.
struct Subject {
    schema: String,
    registry: Registry,
    constraint: Constraint,
}

impl Subject {
    fn new(schema: &str, vocabulary: &Vocabulary) -> Option<Self> {
        let grammar = grammar(schema, &Options::default()).ok()?;
        let limits = anygram_left_to_right::Limits { canvas_steps: 2_000_000, ..Default::default() };
        let language = Language::new(grammar, &LanguageOptions { limits, ..Default::default() }).ok()?;
        let mut registry = Registry::default();
        registry.add("test:schema", Value::parse(schema.as_bytes(), Limits::default()).unwrap());
        let constraint = Constraint::new(Arc::new(language), vocabulary.clone()).unwrap();
        Some(Self { schema: schema.to_owned(), registry, constraint })
    }

    fn of_seed(seed: u64, vocabulary: &Vocabulary) -> Option<Self> {
        if let Some(schema) = usize::try_from(seed).ok().and_then(|seed| SCHEMAS.get(seed / 2)) {
            return Self::new(schema, vocabulary);
        }
        let mut generator = Generator::new(seed);
        let schema = generator.schema(2);
        Self::new(&generator.spell(&schema), vocabulary)
    }

    /// Whether a text is a sentence; `None` where the evaluator does not say.
    fn judge(&self, text: &[u8]) -> Option<bool> {
        let Ok(value) = Value::parse(text, Limits::default()) else { return Some(false) };
        let schema = self.registry.schema("test:schema").unwrap();
        schema.is_valid(&value, OracleOptions { formats: Formats::Assert }).ok()
    }

    fn bytes(&self, tokens: &[TokenId]) -> Vec<u8> {
        self.constraint.vocabulary().decode(tokens).unwrap()
    }

    /// Whether the tokens of a row end as asked.
    fn ends(&self, row: &[TokenId], end: End) -> Option<bool> {
        let n_text = row.iter().position(|&token| token == EOS).unwrap_or(row.len());
        if row[n_text..].iter().any(|&token| token != EOS) {
            return Some(false);
        }
        let text = self.bytes(&row[..n_text]);
        if n_text == row.len() && end == (End::Prefix { remaining: None }) {
            return Some(self.constraint.language().read(&text).ok()?.is_viable);
        }
        self.judge(&text)
    }

    /// All completions of a canvas without gaps, as rows; `None` if they are too many to look at.
    fn completions(&self, canvas: &Canvas) -> Option<Vec<Vec<TokenId>>> {
        let mut rows: Vec<Vec<TokenId>> = vec![Vec::new()];
        for slot in canvas.slots() {
            let fillings: Vec<TokenId> = match slot {
                Slot::Fixed(token) => vec![*token],
                _ => (0..TOKENS.len() as u32).map(TokenId).collect(),
            };
            rows = rows
                .iter()
                .flat_map(|row| fillings.iter().map(|&token| row.iter().copied().chain([token]).collect()))
                .collect();
            if rows.len() > MOST_TEXTS {
                return None;
            }
        }
        let mut completions = Vec::new();
        for row in rows {
            if self.ends(&row, canvas.end())? {
                completions.push(row);
            }
        }
        Some(completions)
    }

    fn show(&self, canvas: &Canvas) -> String {
        let slot = |slot: &Slot| match slot {
            Slot::Hole => "▢".to_owned(),
            Slot::Gap => "*".to_owned(),
            Slot::Fixed(EOS) => "EOS".to_owned(),
            Slot::Fixed(token) => TOKENS[token.index()].to_owned(),
        };
        let slots: Vec<String> = canvas.slots().iter().map(slot).collect();
        format!("{} on {slots:?} as {:?}", self.schema, canvas.end())
    }
}

/// A text that is not too long.
fn some_text(matcher: &mut Matcher, random: &mut Random) -> Vec<TokenId> {
    matcher.reset();
    for _ in 0..random.below(9) {
        let Ok(mask) = matcher.mask() else { break };
        let tokens: Vec<TokenId> = mask.iter().filter(|&token| token != EOS).collect();
        if tokens.is_empty() || matcher.is_sentence() && random.chance(40) {
            break;
        }
        matcher.advance(*random.choose(&tokens)).unwrap();
    }
    matcher.tokens().to_vec()
}

/// A canvas near a text: some holes, now and then another token, and more holes behind it.
fn some_canvas(text: &[TokenId], random: &mut Random) -> Canvas {
    let mut slots: Vec<Slot> = text.iter().map(|&token| Slot::Fixed(token)).collect();
    if random.chance(25) && !slots.is_empty() {
        let at = random.below(slots.len());
        slots[at] = Slot::Fixed(TokenId(random.below(TOKENS.len() - 1) as u32));
    }
    let n_behind = random.below(3);
    slots.extend((0..n_behind).map(|_| if random.chance(80) { Slot::Hole } else { Slot::Fixed(EOS) }));
    let n_holes = slots.iter().filter(|slot| **slot == Slot::Hole).count();
    for _ in n_holes..1 + random.below(3) {
        if !slots.is_empty() {
            let at = random.below(slots.len());
            slots[at] = Slot::Hole;
        }
    }
    let end = if random.chance(75) { End::Sentence } else { End::Prefix { remaining: None } };
    Canvas::new(slots, end)
}

fn row_of(witness: &Witness) -> Vec<TokenId> {
    let token = |filling: &Filling| match filling {
        Filling::Token(token) => *token,
        Filling::Tokens(tokens) => panic!("a gap: {tokens:?}"),
    };
    witness.slots.iter().map(token).collect()
}

/// How many answers there were, and how many of these decided nothing.
#[derive(Default)]
struct Count {
    all: usize,
    unknown: usize,
}

impl Count {
    fn add(&mut self, is_known: bool) {
        self.all += 1;
        self.unknown += usize::from(!is_known);
    }
}

/// Cases with a canvas that has not too many completions to look at all.
fn each_case(mut ask: impl FnMut(&Subject, &Canvas, &[Vec<TokenId>], &mut Random)) -> usize {
    let vocabulary = vocabulary();
    let mut n = 0;
    for seed in seeds() {
        let Some(subject) = Subject::of_seed(seed, &vocabulary) else { continue };
        let mut random = Random::new(seed);
        let mut matcher = subject.constraint.matcher().unwrap();
        for _ in 0..8 {
            let text = some_text(&mut matcher, &mut random);
            let canvas = some_canvas(&text, &mut random);
            let Some(completions) = subject.completions(&canvas) else { continue };
            n += 1;
            ask(&subject, &canvas, &completions, &mut random);
        }
    }
    assert!(seeds().len() < 40 || n > 80, "{n} canvases");
    n
}

/// Whether an answer is that of all completions, if it is one.
fn check(subject: &Subject, canvas: &Canvas, completions: &[Vec<TokenId>], answer: &Decision<Witness>) {
    match answer {
        Decision::Yes(witness) => {
            let row = row_of(witness);
            assert!(completions.contains(&row), "{}: {row:?}", subject.show(canvas));
        }
        Decision::No => {
            assert!(completions.is_empty(), "{}: {:?}", subject.show(canvas), completions[0])
        }
        Decision::Unknown(_) => {}
    }
}

#[test]
fn completable_admissible_and_minimum_are_those_of_all_completions() {
    let (mut completable, mut tokens, mut minimum) = (Count::default(), Count::default(), Count::default());
    each_case(|subject, canvas, completions, _| {
        let context = || subject.show(canvas);
        let mut solver = Solver::new(&subject.constraint).unwrap();
        let answer = solver.completable(canvas).unwrap();
        completable.add(answer.decided().is_some());
        check(subject, canvas, completions, &answer);
        let admissible = solver.admissible(canvas).unwrap();
        for (hole, slot) in canvas.holes().enumerate() {
            let expected: BTreeSet<TokenId> = completions.iter().map(|row| row[slot]).collect();
            for token in (0..TOKENS.len() as u32).map(TokenId) {
                let answer = admissible.get(hole, token).decided();
                tokens.add(answer.is_some());
                let is_right = answer.is_none_or(|answer| answer == expected.contains(&token));
                assert!(is_right, "{}: {answer:?} for {:?} in hole {hole}", context(), TOKENS[token.index()]);
            }
        }
        let fewest = completions.iter().map(|row| row.iter().take_while(|&&token| token != EOS).count());
        let answer = solver.minimum(canvas).unwrap();
        minimum.add(answer.decided().is_some());
        if let Ok(known) = answer.known() {
            assert_eq!(known, fewest.min(), "{}", context());
        }
    });
    for (name, count) in [("completable", completable), ("tokens", tokens), ("minimum", minimum)] {
        println!("{name}: {} of {} unknown", count.unknown, count.all);
        assert!(
            seeds().len() < 40 || count.unknown * 50 <= count.all,
            "{name}: {} of {} unknown",
            count.unknown,
            count.all
        );
    }
}

#[test]
fn all_texts_at_once_are_all_completions() {
    // With few pieces that may become the same, and with all; canvases in a row, in which one slot changes.
    let mut counts = [1, 2, usize::MAX].map(|most_alike| (most_alike, Count::default()));
    each_case(|subject, canvas, completions, random| {
        for (most_alike, count) in &mut counts {
            let mut solver = Solver::new(&subject.constraint).unwrap().by(By::Parse(*most_alike));
            let mut ask = |canvas: &Canvas, completions: &[Vec<TokenId>]| {
                let answer = solver.completable(canvas).unwrap();
                count.add(answer.decided().is_some());
                check(subject, canvas, completions, &answer);
            };
            ask(canvas, completions);
            let mut canvas = canvas.clone();
            let holes: Vec<usize> = canvas.holes().collect();
            let mut left = completions.to_vec();
            for &slot in &holes {
                let before = left.clone();
                for _ in 0..4 {
                    let known = before.get(random.below(before.len().max(1))).filter(|_| random.chance(50));
                    let token = known.map_or(TokenId(random.below(TOKENS.len()) as u32), |row| row[slot]);
                    left = before.iter().filter(|row| row[slot] == token).cloned().collect();
                    canvas.set(slot, token).unwrap();
                    ask(&canvas, &left);
                    if !left.is_empty() && random.chance(50) {
                        break;
                    }
                    canvas.clear(slot).unwrap();
                    left = before.clone();
                }
            }
        }
    });
    for (most_alike, count) in counts {
        println!("{most_alike} alike: {} of {} unknown", count.unknown, count.all);
        // Without a search, texts that repeat what they may not are left open.
        let most = if most_alike == usize::MAX { 10 } else { 5 };
        assert!(seeds().len() < 40 || count.unknown * most <= count.all, "{}", count.unknown);
    }
}

#[test]
fn proposals_are_kept_as_all_completions_say() {
    let mut count = Count::default();
    each_case(|subject, canvas, completions, random| {
        let holes: Vec<usize> = canvas.holes().collect();
        if holes.is_empty() {
            return;
        }
        let proposals: Vec<(usize, TokenId)> = (0..4)
            .map(|_| {
                let slot = *random.choose(&holes);
                let known = completions.get(random.below(completions.len().max(1)));
                let token = known.filter(|_| random.chance(70)).map(|row| row[slot]);
                (slot, token.unwrap_or(TokenId(random.below(TOKENS.len()) as u32)))
            })
            .collect();
        let mut solver = Solver::new(&subject.constraint).unwrap();
        let answers = solver.compatible(canvas, &proposals).unwrap();
        let mut left: Vec<&Vec<TokenId>> = completions.iter().collect();
        for (&(slot, token), answer) in proposals.iter().zip(answers) {
            let fitting: Vec<_> = left.iter().copied().filter(|row| row[slot] == token).collect();
            count.add(answer.decided().is_some());
            let is_right = answer.decided().is_none_or(|answer| answer != fitting.is_empty());
            assert!(is_right, "{}: {answer:?} for {slot} {}", subject.show(canvas), TOKENS[token.index()]);
            if answer.is_yes() {
                left = fitting;
            }
        }
    });
    println!("{} of {} unknown", count.unknown, count.all);
    assert!(seeds().len() < 40 || count.unknown * 50 <= count.all);
}

#[test]
fn the_best_completion_is_that_of_all_and_samples_are_completions() {
    let (mut best, mut samples) = (Count::default(), Count::default());
    each_case(|subject, canvas, completions, random| {
        let holes: Vec<usize> = canvas.holes().collect();
        let n_values = holes.len() * TOKENS.len();
        let values: Vec<f32> = (0..n_values).map(|_| -(random.below(64) as f32) / 8.0).collect();
        let log_probs = LogProbs::dense(&values[..], TOKENS.len()).unwrap();
        let log_prob = |row: &[TokenId]| -> f64 {
            holes
                .iter()
                .zip(values.chunks(TOKENS.len()))
                .map(|(&slot, of)| f64::from(of[row[slot].index()]))
                .sum()
        };
        let mut weigher = Weigher::new(&subject.constraint).unwrap();
        let answer = weigher.best(canvas, &log_probs, Tail::Counted).unwrap();
        best.add(answer.decided().is_some());
        if let Ok(answer) = answer.known() {
            let expected = completions.iter().map(|row| log_prob(row)).max_by(f64::total_cmp);
            assert_eq!(answer.map(|best| best.log_prob), expected, "{}", subject.show(canvas));
        }
        let options = SampleOptions { tail: Tail::Counted, seed: random.below(1_000) as u64, count: 6 };
        let answer = weigher.sample(canvas, &log_probs, options).unwrap();
        samples.add(answer.decided().is_some());
        match answer.known() {
            Ok(Some(drawn)) => {
                let is_one = drawn.iter().all(|sample| completions.contains(&sample.tokens));
                assert!(is_one && drawn.len() == 6, "{}: {drawn:?}", subject.show(canvas));
            }
            Ok(None) => assert!(completions.is_empty(), "{}", subject.show(canvas)),
            Err(_) => {}
        }
    });
    for (name, count) in [("best", best), ("samples", samples)] {
        println!("{name}: {} of {} unknown", count.unknown, count.all);
        assert!(
            seeds().len() < 40 || count.unknown * 10 <= count.all,
            "{name}: {} of {} unknown",
            count.unknown,
            count.all
        );
    }
}

/// Of two keys that have to differ, each pair comes as often as it weighs.
#[test]
fn samples_weigh_what_the_memory_leaves() {
    let vocabulary = vocabulary();
    let subject = Subject::new("{}", &vocabulary).unwrap();
    let id = |text: &str| TokenId(TOKENS.iter().position(|token| *token == text).unwrap() as u32);
    let fixed = |text| Slot::Fixed(id(text));
    let slots = vec![
        fixed("{\""),
        Slot::Hole,
        fixed("\":1"),
        fixed(","),
        fixed("\""),
        Slot::Hole,
        fixed("\":1"),
        fixed("}"),
    ];
    let canvas = Canvas::new(slots, End::Sentence);
    let weights = [(id("a"), 0.6), (id("b"), 0.3), (id("0"), 0.1)];
    let row: Vec<(TokenId, f64)> =
        weights.iter().map(|&(token, weight): &(_, f64)| (token, weight.ln())).collect();
    let floor = Floor::Excluded;
    let log_probs = LogProbs::listed(&[row.clone(), row], floor).unwrap();
    let count = 4_000;
    let options = SampleOptions { tail: Tail::Counted, seed: 7, count };
    let mut weigher = Weigher::new(&subject.constraint).unwrap();
    let drawn = weigher.sample(&canvas, &log_probs, options).unwrap().yes().unwrap();
    let all: f64 = 1.0 - weights.iter().map(|(_, weight)| weight * weight).sum::<f64>();
    for (first, one) in weights {
        for (second, other) in weights {
            let n = drawn.iter().filter(|row| (row.tokens[1], row.tokens[5]) == (first, second)).count();
            let expected = if first == second { 0.0 } else { one * other / all };
            let deviation = (expected * (1.0 - expected) / count as f64).sqrt();
            let share = n as f64 / count as f64;
            assert!(
                (share - expected).abs() <= 5.0 * deviation,
                "{first:?} {second:?}: {share}, not {expected}"
            );
        }
    }
    // Two that are alike weigh most, so the best of all that rules allow is none.
    assert!(weigher.best(&canvas, &log_probs, Tail::Counted).unwrap().decided() != Some(false));
}

/// Gaps: a yes has a witness, and a no is one of canvases with few tokens in its place.
#[test]
fn canvases_with_gaps() {
    let vocabulary = vocabulary();
    let (mut n, mut unknown) = (0, 0);
    for seed in seeds().into_iter().step_by(6) {
        let Some(subject) = Subject::of_seed(seed, &vocabulary) else { continue };
        let mut random = Random::new(seed);
        let mut matcher = subject.constraint.matcher().unwrap();
        for _ in 0..3 {
            let text = some_text(&mut matcher, &mut random);
            let mut slots = some_canvas(&text, &mut random).slots().to_vec();
            let at = random.below(slots.len() + 1);
            slots.insert(at, Slot::Gap);
            let canvas = Canvas::new(slots.clone(), End::Sentence);
            n += 1;
            match Solver::new(&subject.constraint).unwrap().completable(&canvas).unwrap() {
                Decision::Yes(witness) => {
                    let text = subject.bytes(&witness.text(&subject.constraint));
                    assert_ne!(subject.judge(&text), Some(false), "{}: {text:?}", subject.show(&canvas));
                }
                Decision::No => {
                    for few in 0..3 {
                        let mut holes = slots.clone();
                        holes.splice(at..at + 1, std::iter::repeat_n(Slot::Hole, few));
                        let completions = subject.completions(&Canvas::new(holes, End::Sentence));
                        // In a gap stands no EOS.
                        let of_text =
                            |row: &&Vec<TokenId>| row[at..at + few].iter().all(|&token| token != EOS);
                        let first = completions.iter().flatten().find(of_text).cloned();
                        assert_eq!(first, None, "{}", subject.show(&canvas));
                    }
                }
                Decision::Unknown(_) => unknown += 1,
            }
        }
    }
    println!("{unknown} of {n} unknown");
    assert!(seeds().len() < 40 || unknown * 10 <= n, "{unknown} of {n} unknown");
}

/// Holes punched in valid instances of real schemas: never a no.
#[test]
fn holes_in_real_instances_can_be_filled() {
    let Some(lines) = schema_bench::lines() else { return };
    let vocabulary = Vocabulary::builtin();
    let (mut n, mut unknown) = (0, 0);
    for line in lines.skip(3).step_by(37) {
        let case = Case::of(&line);
        let is_short = |data: &str| (4..800).contains(&data.len());
        let Some(test) = case.tests.iter().find(|test| test.valid && is_short(&test.data)) else { continue };
        let Some(subject) = Subject::new(&case.schema, &vocabulary) else { continue };
        let tokens = vocabulary.encode(&test.data).unwrap();
        let mut solver = Solver::new(&subject.constraint).unwrap();
        let mut random = Random::new(n);
        for n_holes in [1, 3] {
            let mut slots: Vec<Slot> = tokens.iter().map(|&token| Slot::Fixed(token)).collect();
            (0..n_holes).for_each(|_| slots[random.below(tokens.len())] = Slot::Hole);
            n += 1;
            match solver.completable(&Canvas::new(slots, End::Sentence)).unwrap() {
                Decision::Yes(witness) => {
                    let text = subject.bytes(&witness.text(&subject.constraint));
                    let text = String::from_utf8_lossy(&text).into_owned();
                    assert_ne!(subject.judge(text.as_bytes()), Some(false), "{}: {text}", case.id);
                }
                Decision::No => panic!("{}: a no with {n_holes} holes in {}", case.id, test.data),
                Decision::Unknown(_) => unknown += 1,
            }
        }
    }
    println!("{n} canvases, {unknown} unknown");
    assert!(n > 30 && unknown * 20 <= n, "{unknown} of {n} unknown");
}

/// What diffusion models fill: much of a text is one string, of which some words are known, and often how
/// long it is. A search in depth that takes the first words for a key does not come back from there.
#[test]
fn words_of_a_long_text() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},
        "required":["a","b"]}"#;
    // All bytes, words, and EOS.
    let words = (0..1_000).map(|at| format!("w{at}").into_bytes());
    let tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).chain(words).chain([Vec::new()]).collect();
    let special = SpecialIds { eos: vec![tokens.len() as u32 - 1], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(&tokens, special).unwrap();
    let constraint = Subject::new(schema, &vocabulary).unwrap().constraint;
    let token = |text: &str| {
        Slot::Fixed(TokenId::new(tokens.iter().position(|token| *token == text.as_bytes()).unwrap()))
    };
    let canvas = |parts: &[(usize, &str)]| {
        let mut slots = Vec::new();
        for &(n_holes, text) in parts {
            slots.extend(std::iter::repeat_n(Slot::Hole, n_holes));
            slots.push(token(text));
        }
        Canvas::new(slots, End::Sentence)
    };
    let words = [(61, "w1"), (69, "w2"), (8, "w3"), (0, "w4")];
    let with = |first: &[(usize, &'static str)], last: &[(usize, &'static str)]| {
        canvas(&[first, &words, last].concat())
    };
    for (canvas, expected) in [
        (with(&[(68, "w0")], &[(42, ""), (0, ""), (0, "")]), true),
        (with(&[(0, "{"), (1, "a")], &[(1, "\""), (1, "\""), (2, ":"), (3, "}"), (0, "")]), true),
        (with(&[(0, "{"), (13, "w0")], &[(2, "\""), (12, ""), (0, "")]), true),
        // The text ends within the string, whatever stands in the holes.
        (with(&[(0, "{"), (1, "a")], &[(0, ""), (0, "")]), false),
        (with(&[(0, "{"), (1, "a")], &[(0, "}"), (0, "")]), false),
    ] {
        let mut solver = Solver::new(&constraint).unwrap();
        let answer = solver.completable(&canvas).unwrap();
        assert_eq!(answer.decided(), Some(expected), "{canvas:?}");
        if let Decision::Yes(witness) = answer {
            let mut matcher = constraint.matcher().unwrap();
            matcher.advance_all(&witness.text(&constraint)).unwrap();
            assert!(matcher.is_sentence());
        }
    }
}

#[test]
fn tables_may_be_dropped_between_two_canvases() {
    // Any JSON may stand in most places, so that there are many contexts.
    let schema =
        r#"{"properties":{"a":{"type":"array"},"b":{"type":"string","maxLength":9}},"required":["a"]}"#;
    let text =
        r#"{"a":[1,[0,true],{"b":"a","a":[[],[{"a":true}]]}],"b":"ab1ab","1":{"a":[1,1,1]},"0":"\u0061"}"#;
    let vocabulary = vocabulary();
    let text = vocabulary.encode(text.as_bytes()).unwrap();
    let mut n_asked = 0;
    for seed in anygram_testkit::random::seeds(40) {
        let mut random = Random::new(seed);
        let cache_bytes = 1 << (14 + random.below(10));
        let limits =
            anygram_left_to_right::Limits { canvas_steps: 400_000, cache_bytes, ..Default::default() };
        let options = LanguageOptions { limits, ..Default::default() };
        let language = Language::new(grammar(schema, &Options::default()).unwrap(), &options).unwrap();
        let constraint = Constraint::new(Arc::new(language), vocabulary.clone()).unwrap();
        let slot = |&token| if random.chance(60) { Slot::Hole } else { Slot::Fixed(token) };
        let mut canvas = Canvas::new(text.iter().map(slot).collect(), End::Sentence);
        let mut solver = Solver::new(&constraint).unwrap();
        for slot in canvas.holes().collect::<Vec<_>>() {
            let answer = solver.completable(&canvas).unwrap();
            assert!(!answer.is_no(), "seed {seed}: its text is a completion");
            n_asked += 1;
            canvas.set(slot, text[slot]).unwrap();
        }
    }
    assert!(n_asked > 500, "{n_asked}");
}
