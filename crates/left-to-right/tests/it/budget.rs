//! Masks within a budget, minimum costs and forced text: random grammars in every lexer mode and engine
//! against brute force.
//!
//! `ANYGRAM_SEED=17` replays one seed, `ANYGRAM_SEEDS=5000` sets how many are drawn (default 30).

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::{Constraint, Engine, ErrorKind, Language, LanguageOptions, MatchError, Matcher};
use anygram_testkit::generate::{CALL, EOS, RandomCase};
use anygram_testkit::oracle::Oracle;
use anygram_testkit::random::Random;
use anygram_testkit::text::{Sym, show};
use anygram_vocab::{LoadOptions, TokenId, Vocabulary};

/// Brute force looks at completions of at most this many tokens, and at most this many texts for one of them.
const DEEPEST: u32 = 3;
const TEXTS: usize = 300;

const ENGINES: [Engine; 3] = [Engine::Reference, Engine::Earley, Engine::Valiant];
const MODES: [LexerMode; 3] = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];

pub(super) fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(30)
}

/// The vocabulary of a case. Some lack tokens; to some all bytes are added, which gives the engine its bounds
/// for ample budgets.
pub(super) fn tokens_of(case: &RandomCase) -> Vec<Option<Vec<u8>>> {
    let mut random = Random::new(case.seed);
    let lacks = random.chance(50);
    if !lacks && random.chance(50) {
        return case.vocab.iter().cloned().chain((0..=u8::MAX).map(|byte| Some(vec![byte]))).collect();
    }
    let mut drop = |id: usize| lacks && id > CALL as usize && random.chance(30);
    case.vocab.iter().enumerate().map(|(id, token)| token.clone().filter(|_| !drop(id))).collect()
}

fn matcher(case: &RandomCase, tokens: &[Option<Vec<u8>>], engine: Engine) -> Option<Matcher> {
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let token = |token: &Option<Vec<u8>>| {
        token.as_ref().map_or("null".into(), |t| format!("{{\"hex\":\"{}\"}}", hex(t)))
    };
    let source = format!("[{}]", tokens.iter().map(token).collect::<Vec<String>>().join(","));
    let options = LoadOptions { eos: vec![EOS], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_bytes(anygram_vocab::Format::JsonArray, source.as_bytes(), &options)
        .expect("a vocabulary");
    let options =
        LanguageOptions { lexer: Some(case.mode), ties: case.ties, engine, ..LanguageOptions::default() };
    let language = Language::new(case.grammar.clone(), &options).ok()?;
    Some(Constraint::new(Arc::new(language), vocabulary).expect("a constraint").matcher().expect("a matcher"))
}

/// Brute force over texts, token by token.
struct Brute<'a> {
    oracle: Oracle,
    /// The different texts of tokens.
    spellings: Vec<Vec<Sym>>,
    known: RefCell<HashMap<Vec<Sym>, Option<u32>>>,
    case: &'a RandomCase,
}

impl<'a> Brute<'a> {
    fn new(case: &'a RandomCase, tokens: &[Option<Vec<u8>>]) -> Self {
        let oracle = case.oracle();
        // Any other of the bytes that were added stands in no sentence, or could be replaced by one of these.
        let alphabet = oracle.whole_alphabet(&case.alphabet);
        let stands = |symbol: &Sym| alphabet.contains(symbol);
        let is_added = |id: u32| id as usize >= case.vocab.len();
        let spelling =
            |(id, token)| symbols(id, token).filter(|spelling| !is_added(id) || spelling.iter().all(stands));
        let mut spellings: Vec<Vec<Sym>> = (0..).zip(tokens).filter_map(spelling).collect();
        spellings.sort();
        spellings.dedup();
        Self { oracle, spellings, known: RefCell::default(), case }
    }

    /// The least number of tokens that make a sentence: `NEVER` if more than [`DEEPEST`]; `None` if there
    /// were too many texts.
    fn least(&self, text: &[Sym]) -> Option<u32> {
        if let Some(&known) = self.known.borrow().get(text) {
            return known;
        }
        let mut level = vec![text.to_vec()];
        let mut answer = Some(u32::MAX);
        let mut n_texts = 0;
        for depth in 0..=DEEPEST {
            if level.len() > TEXTS {
                answer = None;
                break;
            }
            level.retain(|text| self.oracle.is_scannerless_prefix(text));
            n_texts += level.len();
            if level.iter().any(|text| self.oracle.is_sentence(text)) {
                answer = Some(depth);
                break;
            }
            if n_texts > TEXTS {
                answer = None;
                break;
            }
            let longer = |text: &Vec<Sym>| {
                let text = text.clone();
                self.spellings.iter().map(move |spelling| [&text[..], spelling].concat())
            };
            level = level.iter().flat_map(longer).collect();
            level.sort();
            level.dedup();
        }
        self.known.borrow_mut().insert(text.to_vec(), answer);
        answer
    }

    fn names_call(&self) -> bool {
        self.case.alphabet.contains(&Sym::Token(CALL))
    }
}

/// What a token adds to a text, if anything.
fn symbols(id: u32, token: &Option<Vec<u8>>) -> Option<Vec<Sym>> {
    match token {
        Some(bytes) => Some(bytes.iter().map(|&byte| Sym::Byte(byte)).collect()),
        None => (id == CALL).then(|| vec![Sym::Token(CALL)]),
    }
}

fn is_undecided(error: &MatchError) -> bool {
    error.kind() == ErrorKind::Undecided
}

/// Calls a check for each case, mode and engine.
fn for_each_case(
    mut check: impl FnMut(&RandomCase, &Brute<'_>, &[Option<Vec<u8>>], Matcher) -> Result<(), String>,
) {
    let mut failures = Vec::new();
    for seed in seeds() {
        for mode in MODES {
            let case = RandomCase::in_mode(seed, mode);
            let tokens = tokens_of(&case);
            let brute = Brute::new(&case, &tokens);
            for engine in ENGINES {
                let Some(matcher) = matcher(&case, &tokens, engine) else { continue };
                if let Err(message) = check(&case, &brute, &tokens, matcher) {
                    failures.push(format!(
                        "seed {seed}, {mode:?}, {}: {message}\n{case}\n{tokens:?}",
                        engine.name()
                    ));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} fail; the first:\n{}",
        failures.len(),
        failures[..failures.len().min(2)].join("\n")
    );
}

/// Walks along some tokens of a case and calls `check` at each place.
fn along(
    case: &RandomCase,
    tokens: &[Option<Vec<u8>>],
    matcher: &mut Matcher,
    mut check: impl FnMut(&mut Matcher, &[Sym]) -> Result<bool, String>,
) -> Result<(), String> {
    for row in case.tokens.iter().take(3) {
        matcher.reset();
        let mut text: Vec<Sym> = Vec::new();
        for token in [None].into_iter().chain(row.iter().take(5).map(Some)) {
            if let Some(&token) = token {
                let Some(more) = symbols(token, &tokens[token as usize]) else { break };
                match matcher.advance(TokenId(token)) {
                    Ok(()) => text.extend(more),
                    Err(MatchError::Refused(_)) => break,
                    Err(error) if is_undecided(&error) => break,
                    Err(error) => return Err(error.to_string()),
                }
            }
            if !check(matcher, &text)? {
                break;
            }
        }
    }
    Ok(())
}

#[test]
fn minimum_costs_are_those_of_brute_force() {
    let (mut n_asked, mut n_checked) = (0, 0);
    for_each_case(|case, brute, tokens, mut matcher| {
        along(case, tokens, &mut matcher, |matcher, text| {
            n_asked += 1;
            let found = matcher.minimum_tokens(DEEPEST).map_err(|error| error.to_string())?;
            let Some(expected) = brute.least(text) else { return Ok(true) };
            n_checked += 1;
            let expected = (expected <= DEEPEST).then_some(expected);
            if found != expected {
                return Err(format!("after {}: {found:?} tokens, by brute force {expected:?}", show(text)));
            }
            Ok(true)
        })
    });
    println!("{n_checked} of {n_asked} compared");
    assert!(seeds().len() < 20 || n_checked * 2 > n_asked);
}

#[test]
fn masks_within_budgets_are_those_of_brute_force() {
    let (mut n_checked, mut n_allowed, mut n_known) = (0, 0, 0);
    for_each_case(|case, brute, tokens, mut matcher| {
        along(case, tokens, &mut matcher, |matcher, text| {
            // Down and up again: what was found to be ample for one budget serves others.
            for budget in (0..=DEEPEST).rev().chain(0..=DEEPEST) {
                let mask = match matcher.mask_with_budget(budget) {
                    Ok(mask) => mask,
                    Err(error) if is_undecided(&error) => return Ok(false),
                    Err(error) => return Err(error.to_string()),
                };
                let mut words = vec![u32::MAX; matcher.constraint().mask_words()];
                if matcher.known_mask_with_budget_into(budget, &mut words) == Ok(true) {
                    n_known += 1;
                    assert_eq!(words, mask.words(), "after {} with {budget}", show(text));
                }
                if mask.contains(TokenId(EOS)) != brute.oracle.is_sentence(text) {
                    return Err(format!("EOS after {} with {budget}", show(text)));
                }
                for (id, token) in tokens.iter().enumerate().take(case.vocab.len()).skip(1) {
                    let more = symbols(id as u32, token).filter(|_| id as u32 != CALL || brute.names_call());
                    let expected = match (&more, budget.checked_sub(1)) {
                        (Some(more), Some(left)) => {
                            brute.least(&[text, more].concat()).map(|least| least <= left)
                        }
                        _ => Some(false),
                    };
                    let Some(expected) = expected else { continue };
                    (n_checked, n_allowed) = (n_checked + 1, n_allowed + usize::from(expected));
                    if mask.contains(TokenId::new(id)) != expected {
                        return Err(format!("after {} token {id} with {budget}: not {expected}", show(text)));
                    }
                }
            }
            Ok(true)
        })
    });
    println!("{n_checked} bits compared, {n_allowed} set; {n_known} masks known");
    assert!(seeds().len() < 20 || n_allowed > 0 && n_known > 0);
}

#[test]
fn budgets_obey_the_laws() {
    for_each_case(|case, _, tokens, mut matcher| {
        along(case, tokens, &mut matcher, |matcher, text| {
            let all_are_there = tokens.len() > case.vocab.len();
            let budgets = [0, 1, 2, 3, 4, if all_are_there { 40 } else { 5 }];
            let masks: Result<Vec<_>, _> =
                budgets.map(|budget| matcher.mask_with_budget(budget)).into_iter().collect();
            let (masks, plain) = match (masks, matcher.mask()) {
                (Ok(masks), Ok(plain)) => (masks, plain),
                (Err(error), _) | (_, Err(error)) if is_undecided(&error) => return Ok(false),
                (Err(error), _) | (_, Err(error)) => return Err(error.to_string()),
            };
            for pair in masks.windows(2) {
                if !pair[0].is_subset(&pair[1]) {
                    return Err(format!("after {} a greater budget allows less", show(text)));
                }
            }
            // Where every byte is a token, whatever can be completed can be within a few.
            if !masks[5].is_subset(&plain) || all_are_there && masks[5] != plain {
                return Err(format!("after {} an ample budget is not the plain mask", show(text)));
            }
            Ok(true)
        })
    });
}

#[test]
fn whatever_is_picked_a_sentence_is_reached_within_the_budget() {
    for_each_case(|case, _, tokens, mut matcher| {
        let mut random = Random::new(case.seed ^ 0x5eed);
        for _ in 0..3 {
            matcher.reset();
            let least = match matcher.minimum_tokens(30) {
                Ok(Some(least)) => least,
                Ok(None) => continue,
                Err(error) => return Err(error.to_string()),
            };
            let mut left = least + random.below(4) as u32;
            loop {
                let mask = match matcher.mask_with_budget(left) {
                    Ok(mask) => mask,
                    Err(error) if is_undecided(&error) => break,
                    Err(error) => return Err(error.to_string()),
                };
                let allowed: Vec<u32> =
                    (0..tokens.len() as u32).filter(|&id| mask.contains(TokenId(id))).collect();
                if allowed.is_empty() {
                    return Err(format!("stuck after {:?} with {left}", matcher.tokens()));
                }
                let token = *random.choose(&allowed);
                matcher.advance(TokenId(token)).map_err(|error| error.to_string())?;
                if token == EOS {
                    break;
                }
                left -= 1;
            }
        }
        Ok(())
    });
}

#[test]
fn forced_text_is_forced() {
    let mut n_forced = 0;
    for_each_case(|case, brute, tokens, mut matcher| {
        along(case, tokens, &mut matcher, |matcher, text| {
            let forced = match matcher.forced() {
                Ok(forced) => forced.bytes,
                Err(error) if is_undecided(&error) => return Ok(false),
                Err(error) => return Err(error.to_string()),
            };
            n_forced += usize::from(!forced.is_empty());
            let mut now = text.to_vec();
            let mut bytes = forced.iter();
            loop {
                if brute.oracle.is_sentence(&now) {
                    return match bytes.next() {
                        Some(_) => Err(format!(
                            "after {} {forced:?} is forced, but {} is a sentence",
                            show(text),
                            show(&now)
                        )),
                        None => Ok(true),
                    };
                }
                let limits = anygram_testkit::oracle::Limits { max_extra: 4, max_texts: 200, prune: true };
                let is_viable = |symbol: &&Sym| {
                    let completion =
                        brute.oracle.completion(&[&now[..], &[**symbol]].concat(), &case.alphabet, limits);
                    matches!(completion, anygram_testkit::oracle::Completion::Found(_))
                };
                let viable: Vec<Sym> = case.alphabet.iter().filter(is_viable).copied().collect();
                match bytes.next() {
                    None => return Ok(true),
                    Some(&byte) if viable.iter().all(|&symbol| symbol == Sym::Byte(byte)) => {
                        now.push(Sym::Byte(byte))
                    }
                    Some(_) => {
                        return Err(format!(
                            "after {} {forced:?} is forced, but {viable:?} may follow {}",
                            show(text),
                            show(&now)
                        ));
                    }
                }
            }
        })
    });
    println!("{n_forced} times something is forced");
}
