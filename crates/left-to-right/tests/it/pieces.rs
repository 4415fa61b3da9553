//! Terminals given by automata that grow: on random grammars they are read as the patterns that they stand
//! for. And grammars that promise to be delimited, whether they are or not.
//!
//! `ANYGRAM_SEED=17` replays one seed, `ANYGRAM_SEEDS=5000` sets how many are drawn (default 30).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use anygram_bits::ErrorKind;
use anygram_bits::work::Work;
use anygram_grammar::automata::{PieceAutomaton, Pieces, TooManyStates};
use anygram_grammar::ir::{Grammar, LexerMode, TerminalKind};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::example::Examples;
use anygram_left_to_right::explain::explain;
use anygram_left_to_right::frontier::Stepper;
use anygram_left_to_right::sequences::Sequences;
use anygram_left_to_right::{
    BatchOptions, CompileError, Constraint, Language, LanguageOptions, Limits, MaskRows, MatchError, Matcher,
    batch_masks,
};
use anygram_lexer::LexerLimits;
use anygram_lexer::dfa::{DEAD, Dfa, START};
use anygram_lexer::words::Words;
use anygram_testkit::build::regex;
use anygram_testkit::generate::{EOS, RandomCase};
use anygram_testkit::random::Random;
use anygram_vocab::{LoadOptions, TokenId, Vocabulary};

use super::budget::{seeds, tokens_of};

/// States in the order of their numbers, and their numbers.
type Numbered<State> = (Vec<State>, HashMap<State, u32>);

/// The product of some automata, made as it is asked for; labels are their places.
#[derive(Debug)]
struct Lazy {
    dfas: Vec<Dfa>,
    /// The states that there are; the first is the start.
    states: Mutex<Numbered<Arc<[u32]>>>,
    /// Whether it tells apart only bytes that its automata do, and says which states are alike.
    is_helpful: bool,
    limit: usize,
}

impl Lazy {
    fn new(dfas: Vec<Dfa>, is_helpful: bool) -> Self {
        let start: Arc<[u32]> = dfas.iter().map(|_| START).collect();
        let states = Mutex::new((vec![start.clone()], HashMap::from([(start, 0)])));
        Self { dfas, states, is_helpful, limit: usize::MAX }
    }

    fn tuple(&self, state: u32) -> Arc<[u32]> {
        self.states.lock().unwrap().0[state as usize].clone()
    }

    fn labels(&self, state: u32, holds: impl Fn(&Dfa, u32) -> bool) -> Arc<[u32]> {
        let tuple = self.tuple(state);
        let holding = (0..).zip(self.dfas.iter().zip(&*tuple)).filter(|(_, (dfa, own))| holds(dfa, **own));
        holding.map(|(label, _)| label).collect()
    }

    /// Whether all texts of at most `bytes` bytes do the same in two tuples.
    fn same(&self, a: &[u32], b: &[u32], bytes: usize) -> bool {
        let facts = |tuple: &[u32]| -> Vec<_> {
            let fact = |(dfa, &own): (&Dfa, &u32)| (dfa.accepting[own as usize], dfa.can_go_on(own));
            self.dfas.iter().zip(tuple).map(fact).collect()
        };
        let next = |tuple: &[u32], byte: u8| -> Vec<u32> {
            self.dfas.iter().zip(tuple).map(|(dfa, &own)| dfa.step(own, byte)).collect()
        };
        let mut level = vec![(a.to_vec(), b.to_vec())];
        for left in (0..=bytes).rev() {
            if level.iter().any(|(a, b)| facts(a) != facts(b)) {
                return false;
            }
            level.retain(|(a, b)| left > 0 && a != b);
            level = level
                .iter()
                .flat_map(|(a, b)| (0..=255).map(move |byte| (next(a, byte), next(b, byte))))
                .collect();
            level.sort_unstable();
            level.dedup();
        }
        true
    }
}

impl PieceAutomaton for Lazy {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates> {
        let tuple = self.tuple(state);
        let next: Arc<[u32]> = self.dfas.iter().zip(&*tuple).map(|(dfa, &own)| dfa.step(own, byte)).collect();
        if next.iter().all(|&own| own == DEAD) {
            return Ok(None);
        }
        let (states, ids) = &mut *self.states.lock().unwrap();
        if let Some(&known) = ids.get(&next) {
            return Ok(Some(known));
        }
        if states.len() >= self.limit {
            return Err(TooManyStates { what: "a test".into(), limit: self.limit, option: "test_states" });
        }
        states.push(next.clone());
        ids.insert(next, states.len() as u32 - 1);
        Ok(Some(states.len() as u32 - 1))
    }

    fn accepts(&self, state: u32) -> Arc<[u32]> {
        self.labels(state, |dfa, own| dfa.accepting[own as usize])
    }

    fn live(&self, state: u32) -> Arc<[u32]> {
        self.labels(state, Dfa::can_go_on)
    }

    fn alike(&self, state: u32, bytes: usize) -> u32 {
        let tuple = self.tuple(state);
        let known: Vec<Arc<[u32]>> = self.states.lock().unwrap().0.clone();
        let same = |other: &Arc<[u32]>| self.same(&tuple, other, bytes);
        match known.iter().take(4).position(same) {
            Some(other) if self.is_helpful => other as u32,
            _ => state,
        }
    }

    fn has_bounds(&self) -> bool {
        self.is_helpful
    }

    fn classes(&self) -> Box<[u8; 256]> {
        if !self.is_helpful {
            return Box::new(std::array::from_fn(|byte| byte as u8));
        }
        let mut ids: HashMap<Vec<u8>, u8> = HashMap::new();
        Box::new(std::array::from_fn(|byte| {
            let fresh = ids.len() as u8;
            *ids.entry(self.dfas.iter().map(|dfa| dfa.classes[byte]).collect()).or_insert(fresh)
        }))
    }
}

/// The grammar with its patterns given by automata: each is drawn into one of `n_groups`, of which the first
/// stays as it is.
fn given(grammar: &Grammar, n_groups: usize, random: &mut Random) -> Grammar {
    let mut grammar = grammar.clone();
    let mut groups: Vec<Vec<Dfa>> = vec![Vec::new(); n_groups];
    for terminal in &mut grammar.terminals {
        let Some(pattern) = terminal.kind.pattern() else { continue };
        let group = random.below(n_groups);
        if group > 0 || n_groups == 1 {
            let dfa = Dfa::new(pattern, &LexerLimits::default(), &mut Work::unbounded()).unwrap();
            let label = groups[group].len() as u32;
            groups[group].push(dfa);
            // Names of terminals that are not declared are theirs.
            terminal.kind = TerminalKind::Automaton { automaton: group, label };
        }
    }
    let pieces = groups.into_iter().map(|dfas| Pieces(Arc::new(Lazy::new(dfas, random.chance(50)))));
    let grammar = grammar.with_pieces(pieces.collect(), random.chance(50));
    grammar.validate().unwrap();
    grammar
}

fn vocabulary(tokens: &[Option<Vec<u8>>]) -> Vocabulary {
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let token = |token: &Option<Vec<u8>>| {
        token.as_ref().map_or("null".into(), |t| format!("{{\"hex\":\"{}\"}}", hex(t)))
    };
    let source = format!("[{}]", tokens.iter().map(token).collect::<Vec<String>>().join(","));
    let options = LoadOptions { eos: vec![EOS], ..LoadOptions::default() };
    Vocabulary::from_bytes(anygram_vocab::Format::JsonArray, source.as_bytes(), &options).unwrap()
}

fn constraint(grammar: &Grammar, vocabulary: &Vocabulary) -> Result<Constraint, CompileError> {
    let options = LanguageOptions { lexer: Some(LexerMode::Scannerless), ..LanguageOptions::default() };
    Constraint::new(Arc::new(Language::new(grammar.clone(), &options)?), vocabulary.clone())
}

/// Compares all that two outputs can be asked.
fn compare(a: &mut Matcher, b: &mut Matcher, with_budgets: bool) -> Result<(), String> {
    let check = |what: &str, holds: bool, b: &Matcher| {
        if holds { Ok(()) } else { Err(format!("{what} after {:?}\n{}", b.tokens(), b.dump())) }
    };
    check("mask", a.mask().unwrap() == b.mask().unwrap(), b)?;
    check("is_sentence", a.is_sentence() == b.is_sentence(), b)?;
    check("forced", a.forced().unwrap() == b.forced().unwrap(), b)?;
    check("expected", a.expected() == b.expected(), b)?;
    if with_budgets {
        for budget in [0, 1, 2, 4] {
            let masks = [&mut *a, &mut *b].map(|matcher| matcher.mask_with_budget(budget).unwrap());
            check(&format!("budget {budget}, {masks:?}"), masks[0] == masks[1], b)?;
        }
        let [least, other] = [&mut *a, &mut *b].map(|matcher| matcher.minimum_tokens(6).unwrap());
        check(&format!("minimum {least:?} {other:?}"), least == other, b)?;
    }
    Ok(())
}

/// Walks two outputs over texts, half of them drawn from the masks.
fn walk(
    (a, b): (&mut Matcher, &mut Matcher),
    rows: &[Vec<u32>],
    random: &mut Random,
    with_budgets: bool,
) -> Result<usize, String> {
    let mut n_compared = 0;
    for row in rows {
        a.reset();
        b.reset();
        for &token in row.iter().take(8) {
            compare(a, b, with_budgets)?;
            n_compared += 1;
            let allowed: Vec<TokenId> = a.mask().unwrap().iter().collect();
            let drawn = if random.chance(50) || allowed.is_empty() {
                TokenId(token)
            } else {
                *random.choose(&allowed)
            };
            let results = [a.advance(drawn), b.advance(drawn)];
            if results[0] != results[1] {
                return Err(format!("token {} after {:?}: {results:?}", drawn.0, b.tokens()));
            }
            if random.chance(20) && !a.tokens().is_empty() {
                let n = 1 + random.below(a.tokens().len());
                a.rollback(n).unwrap();
                b.rollback(n).unwrap();
            }
        }
    }
    Ok(n_compared)
}

#[test]
fn are_read_as_patterns_on_random_grammars() {
    let (mut n_compared, mut n_empty) = (0, 0);
    for seed in seeds() {
        for case in [
            RandomCase::in_mode(seed, LexerMode::Scannerless),
            RandomCase::with_blanks(seed, LexerMode::Scannerless),
        ] {
            let vocabulary = vocabulary(&tokens_of(&case));
            let mut random = Random::new(seed);
            for n_groups in [1, 2, 3, 9] {
                let grammar = given(&case.grammar, n_groups, &mut random);
                let (ordinary, other) =
                    match (constraint(&case.grammar, &vocabulary), constraint(&grammar, &vocabulary)) {
                        (Ok(ordinary), Ok(other)) => (ordinary, other),
                        (a, b) => {
                            assert_eq!(a.err(), b.err(), "seed {seed}\n{case}");
                            n_empty += 1;
                            continue;
                        }
                    };
                let (mut a, mut b) = (ordinary.matcher().unwrap(), other.matcher().unwrap());
                let result = walk((&mut a, &mut b), &case.tokens, &mut random, n_groups < 3);
                n_compared += result.unwrap_or_else(|message| {
                    panic!("seed {seed}, {n_groups} groups: {message}\n{case}\n{grammar}")
                });
            }
        }
    }
    println!("{n_compared} places compared, {n_empty} languages are empty");
    assert!(n_compared > 0 || n_empty > 0);
}

#[test]
fn readings_are_not_lost_where_grammars_are_not_delimited() {
    let mut n_compared = 0;
    for seed in seeds() {
        let case = RandomCase::in_mode(seed, LexerMode::Scannerless);
        let vocabulary = vocabulary(&tokens_of(&case));
        let grammar = case.grammar.clone().with_pieces(Vec::new(), true);
        let (Ok(ordinary), Ok(other)) =
            (constraint(&case.grammar, &vocabulary), constraint(&grammar, &vocabulary))
        else {
            continue;
        };
        let (mut a, mut b) = (ordinary.matcher().unwrap(), other.matcher().unwrap());
        let result = walk((&mut a, &mut b), &case.tokens, &mut Random::new(seed), true);
        n_compared += result.unwrap_or_else(|message| panic!("seed {seed}: {message}\n{case}"));
    }
    println!("{n_compared} places compared");
}

#[test]
fn threads_share_what_grows() {
    for seed in seeds().into_iter().take(8) {
        let case = RandomCase::in_mode(seed, LexerMode::Scannerless);
        let vocabulary = vocabulary(&case.vocab);
        let grammar = given(&case.grammar, 1, &mut Random::new(seed));
        let (Ok(ordinary), Ok(other)) =
            (constraint(&case.grammar, &vocabulary), constraint(&grammar, &vocabulary))
        else {
            continue;
        };
        std::thread::scope(|scope| {
            for at in 0..4 {
                let (ordinary, other, case) = (&ordinary, &other, &case);
                scope.spawn(move || {
                    let (mut a, mut b) = (ordinary.matcher().unwrap(), other.matcher().unwrap());
                    let random = &mut Random::new(seed * 4 + at);
                    walk((&mut a, &mut b), &case.tokens, random, false).unwrap();
                });
            }
        });
        let options = BatchOptions { n_outputs: 4, n_tables: 2 };
        let (mut a, mut b) = (ordinary.matchers(options).unwrap(), other.matchers(options).unwrap());
        for (at, (a, b)) in a.iter_mut().zip(&mut b).enumerate() {
            for &token in case.tokens[0].iter().take(at) {
                assert_eq!(a.advance(TokenId(token)), b.advance(TokenId(token)));
            }
        }
        let n_words = ordinary.mask_words();
        let rows = [a, b].map(|mut matchers| {
            let mut rows = vec![0; 4 * n_words];
            assert!(batch_masks(&mut matchers, MaskRows::new(&mut rows, n_words)).iter().all(Result::is_ok));
            rows
        });
        assert_eq!(rows[0], rows[1], "seed {seed}");
    }
}

const JSON: &str = r#"%lexer scannerless
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" _WS? (pair ("," _WS? pair)*)? "}"
pair: STRING ":" _WS? value
array: "[" _WS? (value ("," _WS? value)*)? "]"
STRING: /"([^"\\\x00-\x1f]|\\["\\nu])*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?/
_WS: /[ \n]+/"#;

const TEXTS: [&str; 3] =
    [r#"{"name": "Ann", "ages": [1, 22, 3.5], "x": {"y": null}}"#, r#"[[true,-10],"a\"b"]"#, "\"\""];

#[test]
fn json_is_delimited() {
    let grammar = lark::parse(JSON, &LarkOptions::default()).unwrap();
    let vocabulary = Vocabulary::builtin();
    let ordinary = constraint(&grammar, &vocabulary).unwrap();
    let delimited = constraint(&grammar.clone().with_pieces(Vec::new(), true), &vocabulary).unwrap();
    let random = &mut Random::new(7);
    let all = given(&grammar, 3, random);
    let others = [delimited, constraint(&Grammar { delimited: true, ..all }, &vocabulary).unwrap()];
    for other in &others {
        let (mut a, mut b) = (ordinary.matcher().unwrap(), other.matcher().unwrap());
        for text in TEXTS {
            a.reset();
            b.reset();
            for token in vocabulary.encode(text).unwrap() {
                compare(&mut a, &mut b, false).unwrap();
                for budget in [3, 9] {
                    assert_eq!(a.mask_with_budget(budget).unwrap(), b.mask_with_budget(budget).unwrap());
                }
                assert_eq!(a.minimum_tokens(40).unwrap(), b.minimum_tokens(40).unwrap(), "{:?}", a.tokens());
                a.advance(token).unwrap();
                b.advance(token).unwrap();
                assert!(b.dump().lines().count() <= 2, "{}", b.dump());
            }
            assert!(a.is_sentence() && b.is_sentence());
        }
    }
}

/// Strings in quotes of at most so many characters, without escapes.
#[derive(Debug)]
struct Counter {
    most: u32,
    is_helpful: bool,
    states: Mutex<Numbered<At>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Start,
    /// Characters so far, and what bytes of the last are to come: so many, or after one of four first bytes
    /// that restrict the second.
    Inside(u32, u8),
    End,
}

impl Counter {
    fn new(most: u32, is_helpful: bool) -> Self {
        let states = Mutex::new((vec![At::Start], HashMap::from([(At::Start, 0)])));
        Self { most, is_helpful, states }
    }

    fn n_states(&self) -> usize {
        self.states.lock().unwrap().0.len()
    }

    fn at(&self, state: u32) -> At {
        self.states.lock().unwrap().0[state as usize]
    }

    fn number(&self, at: At) -> u32 {
        let (states, ids) = &mut *self.states.lock().unwrap();
        *ids.entry(at).or_insert_with(|| {
            states.push(at);
            states.len() as u32 - 1
        })
    }
}

impl PieceAutomaton for Counter {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates> {
        let next = match (self.at(state), byte) {
            (At::Start, b'"') => At::Inside(0, 0),
            (At::Inside(_, 0), b'"') => At::End,
            (At::Inside(n, 0), 0x20..0x80) if n < self.most => At::Inside(n + 1, 0),
            (At::Inside(n, 0), 0xc2..=0xf4) if n < self.most => {
                let first = match byte {
                    0xc2..0xe0 => 1,
                    0xe0 => 4,
                    0xed => 5,
                    0xe1..0xf0 => 2,
                    0xf0 => 6,
                    0xf4 => 7,
                    _ => 3,
                };
                At::Inside(n + 1, first)
            }
            (At::Inside(n, left @ 1..=3), 0x80..0xc0) => At::Inside(n, left - 1),
            (At::Inside(n, 4), 0xa0..0xc0) | (At::Inside(n, 5), 0x80..0xa0) => At::Inside(n, 1),
            (At::Inside(n, 6), 0x90..0xc0) | (At::Inside(n, 7), 0x80..0x90) => At::Inside(n, 2),
            _ => return Ok(None),
        };
        Ok(Some(self.number(next)))
    }

    fn accepts(&self, state: u32) -> Arc<[u32]> {
        if self.at(state) == At::End { Arc::from([0]) } else { Arc::from([]) }
    }

    fn live(&self, state: u32) -> Arc<[u32]> {
        if self.at(state) == At::End { Arc::from([]) } else { Arc::from([0]) }
    }

    fn alike(&self, state: u32, bytes: usize) -> u32 {
        match self.at(state) {
            At::Inside(n, left) if self.is_helpful && (self.most - n) as usize > bytes => {
                self.number(At::Inside(0, left))
            }
            _ => state,
        }
    }

    fn has_bounds(&self) -> bool {
        self.is_helpful
    }

    fn classes(&self) -> Box<[u8; 256]> {
        const FIRST: [u8; 12] = [b'"', b'#', 0x80, 0x90, 0xa0, 0xc0, 0xc2, 0xe0, 0xe1, 0xed, 0xee, 0xf0];
        let class = |byte: u8| match byte {
            b' ' | b'!' => 2,
            // Where bytes begin that do the same.
            _ => {
                FIRST.partition_point(|&first| first <= byte)
                    + usize::from(byte >= 0xf1)
                    + usize::from(byte >= 0xf4)
                    + usize::from(byte >= 0xf5)
            }
        };
        Box::new(std::array::from_fn(|byte| class(byte as u8) as u8))
    }
}

/// A list of one kind of strings.
fn strings(pattern: &str, counter: Option<Arc<Counter>>) -> Grammar {
    let source = format!("%lexer scannerless\nstart: \"[\" (S (\", \" S)*)? \"]\"\nS: /{pattern}/");
    let mut grammar = lark::parse(&source, &LarkOptions::default()).unwrap();
    let Some(counter) = counter else { return grammar };
    let terminal = grammar.terminals.iter_mut().find(|terminal| terminal.name == "S").unwrap();
    terminal.kind = TerminalKind::Automaton { automaton: 0, label: 0 };
    grammar.with_pieces(vec![Pieces(counter)], true)
}

const CHARACTER: &str = r#"[^"\x00-\x1f]"#;

#[test]
fn short_strings_are_counted() {
    let vocabulary = Vocabulary::builtin();
    for (most, is_helpful) in [(0, true), (1, false), (7, true), (40, true), (40, false)] {
        let pattern = format!("\"{CHARACTER}{{0,{most}}}\"");
        let ordinary = constraint(&strings(&pattern, None), &vocabulary).unwrap();
        let counter = Arc::new(Counter::new(most, is_helpful));
        let counted = constraint(&strings("x", Some(counter)), &vocabulary).unwrap();
        let (mut a, mut b) = (ordinary.matcher().unwrap(), counted.matcher().unwrap());
        for text in ["[\"\", \"a\", \"some words é ß\", \"and quite a few more of them, 日本 é\"]"] {
            for token in vocabulary.encode(text).unwrap() {
                compare(&mut a, &mut b, false).unwrap();
                assert_eq!(a.mask_with_budget(3).unwrap(), b.mask_with_budget(3).unwrap());
                assert_eq!(a.minimum_tokens(9).unwrap(), b.minimum_tokens(9).unwrap());
                let results = [a.advance(token), b.advance(token)];
                assert_eq!(results[0], results[1]);
            }
        }
    }
}

#[test]
fn a_million_characters_take_the_states_that_they_pass() {
    let vocabulary = Vocabulary::builtin();
    let counter = Arc::new(Counter::new(1_000_000, true));
    let counted = constraint(&strings("x", Some(counter.clone())), &vocabulary).unwrap();
    let unbounded = constraint(&strings(&format!("\"{CHARACTER}*\""), None), &vocabulary).unwrap();
    let (mut a, mut b) = (unbounded.matcher().unwrap(), counted.matcher().unwrap());
    let text = format!("[\"{}\", \"ü\"]", "many words and é 日, ".repeat(100));
    for (at, token) in vocabulary.encode(&text).unwrap().into_iter().enumerate() {
        assert_eq!(a.mask().unwrap(), b.mask().unwrap(), "{at}");
        if at % 50 == 3 {
            assert_eq!(a.mask_with_budget(4).unwrap(), b.mask_with_budget(4).unwrap(), "{at}");
            assert_eq!(a.minimum_tokens(9).unwrap(), b.minimum_tokens(9).unwrap());
        }
        a.advance(token).unwrap();
        b.advance(token).unwrap();
    }
    assert!(b.is_sentence());
    let (n_characters, n_states) = (text.chars().count(), counter.n_states());
    // Those that the text passes, and those within a token's reach of where masks were computed.
    println!("{n_states} states for {n_characters} characters; {:?}", b.memo_counts());
    assert!(n_states < 3 * n_characters, "{n_states} states for {n_characters} characters");
    assert!(b.memo_counts().kept < 40, "{:?}", b.memo_counts());
}

#[test]
fn limits_are_errors_and_what_is_there_stays() {
    let vocabulary = Vocabulary::builtin();
    let words = Dfa::new(&regex("[a-z]{1,30}"), &LexerLimits::default(), &mut Work::unbounded());
    let mut grammar =
        lark::parse("%lexer scannerless\nstart: (W \" \")* \".\"\nW: /x/", &LarkOptions::default());
    let grammar = grammar.as_mut().unwrap();
    grammar.terminals.iter_mut().find(|terminal| terminal.name == "W").unwrap().kind =
        TerminalKind::Automaton { automaton: 0, label: 0 };
    let lazy = Lazy { limit: 4, ..Lazy::new(vec![words.unwrap()], false) };
    let limited = grammar.clone().with_pieces(vec![Pieces(Arc::new(lazy))], true);
    let constraint = constraint(&limited, &vocabulary).unwrap();
    let mut matcher = constraint.matcher().unwrap();
    let mask = matcher.mask();
    assert_eq!(mask.unwrap_err().limit().map(|limit| limit.1), Some(4));
    matcher.advance_text("abc ").unwrap();
    assert!(matches!(matcher.advance_text("abcdefghijkl"), Err(MatchError::Limit(_))));
    matcher.advance_text("ab .").unwrap();
    assert!(matcher.is_sentence());

    // The union's own limit.
    let counter = Arc::new(Counter::new(1_000_000, true));
    let lexer = LexerLimits { union_entries: 3_000, ..LexerLimits::default() };
    let options =
        LanguageOptions { limits: Limits { lexer, ..Limits::default() }, ..LanguageOptions::default() };
    let language = Language::new(strings("x", Some(counter)), &options).unwrap();
    let mut matcher = Constraint::new(Arc::new(language), vocabulary).unwrap().matcher().unwrap();
    let error = (0..1_000).find_map(|at| matcher.advance_text(if at == 0 { "[\"" } else { "a b" }).err());
    assert_eq!(error.unwrap().limit(), Some(("union_entries", 3_000)));
    assert!(matcher.tokens().len() > 20);
    // What was read once can be read again.
    let tokens = matcher.tokens().to_vec();
    matcher.reset();
    matcher.advance_all(&tokens).unwrap();
}

#[test]
fn what_needs_all_states_is_refused() {
    let grammar = strings("x", Some(Arc::new(Counter::new(1_000_000, true))));
    assert!(grammar.to_string().contains("cannot be read again"), "{grammar}");
    for mode in [LexerMode::Longest, LexerMode::Contextual] {
        let options = LanguageOptions { lexer: Some(mode), ..LanguageOptions::default() };
        let error = Language::new(grammar.clone(), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("add `%lexer scannerless`"), "{error}");
    }
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    let mut stepper = Stepper::new(&language).unwrap();
    let start = stepper.start(&language).unwrap().unwrap()[0];
    let vocabulary = Vocabulary::builtin();
    let tree = Sequences::new(&mut stepper, &language, vocabulary.trie(), start.lexeme, 64);
    assert_eq!(tree.err().map(|error| error.kind()), Some(ErrorKind::Unsupported));
}

#[test]
fn examples_and_explanations_know_their_texts() {
    let grammar = strings("x", Some(Arc::new(Counter::new(1_000_000, true))));
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    let words = Words::new(&language.lexing().lexicon);
    let mut examples = Examples::new(&language, &words).unwrap();
    assert_eq!(examples.short().unwrap(), b"[]");
    let random = examples.random(5, 1);
    assert!(random.len() == 5 && random.iter().any(|text| text.len() > 6), "{random:?}");
    let (reading, explanation) = explain(&language, &words, b"[\"abc\", \"de").unwrap();
    let explanation = explanation.unwrap();
    assert_eq!((reading.length, reading.expected), (11, vec!["S".to_owned()]));
    assert_eq!((explanation.piece, explanation.is_cut), (Some(8), false));
    assert_eq!(explanation.completion.as_deref(), Some(&b"\"]"[..]));
}
