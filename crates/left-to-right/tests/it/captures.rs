//! What is certain of the rules of a text while it is written: what all derivations of all continuations
//! share, found by looking at all short ones; and of finished texts the parse tree.

use std::collections::BTreeSet;
use std::sync::Arc;

use anygram_bits::ErrorKind;
use anygram_grammar::ir::{LexerMode, NonterminalId, Symbol};
use anygram_grammar::lark;
use anygram_left_to_right::captures::{CaptureEvent, Captures};
use anygram_left_to_right::tree::Tree;
use anygram_left_to_right::{Constraint, Language, LanguageOptions, Limits};
use anygram_testkit::generate::RandomCase;
use anygram_testkit::random::Random;
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

use super::budget::seeds;

/// An event: the rule, where it begins, where it ends.
type Event = (usize, usize, Option<usize>);

fn plain(event: CaptureEvent) -> Event {
    (event.rule.index(), event.start, event.end)
}

/// Rules whose symbols are rules by number, or letters.
type Rules = Vec<Vec<Vec<Result<usize, u8>>>>;

/// Three rules over two letters; each can be one letter.
fn random_rules(random: &mut Random) -> Rules {
    let letter = |random: &mut Random| *random.choose(b"xy");
    let symbol = |random: &mut Random| match random.chance(50) {
        true => Ok(random.below(3)),
        false => Err(letter(random)),
    };
    let rule = |random: &mut Random| {
        let mut sides = vec![vec![Err(letter(random))]];
        for _ in 0..random.below(3) {
            let n_symbols = random.below(4);
            sides.push((0..n_symbols).map(|_| symbol(random)).collect());
        }
        sides
    };
    (0..3).map(|_| rule(random)).collect()
}

fn written(rules: &Rules) -> String {
    let mut text = "%lexer scannerless\n%start r0\n".to_owned();
    for (at, sides) in rules.iter().enumerate() {
        let sides = sides.iter().map(|side| {
            let symbols = side.iter().map(|symbol| match symbol {
                Ok(rule) => format!("r{rule}"),
                Err(letter) => format!("\"{}\"", *letter as char),
            });
            let symbols: Vec<String> = symbols.collect();
            if symbols.is_empty() { "\"\"".to_owned() } else { symbols.join(" ") }
        });
        text += &format!("r{at}: {}\n", sides.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// What all derivations of a text share: the least fixed point over the parts of the text, from above.
fn shared(rules: &Rules, text: &[u8]) -> Option<BTreeSet<Event>> {
    let n = text.len() + 1;
    let mut known: Vec<Option<BTreeSet<Event>>> = vec![None; rules.len() * n * n];
    let place = |rule: usize, from: usize, to: usize| (rule * n + from) * n + to;
    loop {
        let mut is_changed = false;
        for (rule, sides) in rules.iter().enumerate() {
            for from in 0..n {
                for to in from..n {
                    let mut all: Option<BTreeSet<Event>> = None;
                    for side in sides {
                        ways(side, (from, to), text, &|rule, from, to| known[place(rule, from, to)].clone())
                            .into_iter()
                            .for_each(|way| match &mut all {
                                None => all = Some(way),
                                Some(all) => all.retain(|event| way.contains(event)),
                            });
                    }
                    if from < to {
                        all.iter_mut().for_each(|all| {
                            all.extend([(rule, from, None), (rule, from, Some(to))]);
                        });
                    }
                    is_changed |= all != known[place(rule, from, to)];
                    known[place(rule, from, to)] = all;
                }
            }
        }
        if !is_changed {
            return known.swap_remove(place(0, 0, text.len()));
        }
    }
}

/// What each way to read a part as some symbols has.
fn ways(
    side: &[Result<usize, u8>],
    (from, to): (usize, usize),
    text: &[u8],
    known: &dyn Fn(usize, usize, usize) -> Option<BTreeSet<Event>>,
) -> Vec<BTreeSet<Event>> {
    let Some((first, rest)) = side.split_first() else {
        return if from == to { vec![BTreeSet::new()] } else { Vec::new() };
    };
    match first {
        Err(letter) if from < to && text[from] == *letter => ways(rest, (from + 1, to), text, known),
        Err(_) => Vec::new(),
        Ok(rule) => (from..=to)
            .filter_map(|middle| Some((known(*rule, from, middle)?, middle)))
            .flat_map(|(first, middle)| {
                let others = ways(rest, (middle, to), text, known);
                others.into_iter().map(move |other| other.union(&first).copied().collect())
            })
            .collect(),
    }
}

const LONGEST_PREFIX: usize = 3;
/// Letters that continuations have at most.
const SHORT: usize = 4;
const LONG: usize = 8;

/// A text and all its continuations by so many letters.
fn continued(text: &[u8], most: usize) -> Vec<Vec<u8>> {
    let mut texts = vec![text.to_vec()];
    for at in 0.. {
        let longest = text.len() + most;
        let Some(text) = texts.get(at).filter(|text: &&Vec<u8>| text.len() < longest).cloned() else { break };
        texts.extend(b"xy".map(|letter| [&*text, &[letter]].concat()));
    }
    texts
}

/// The events that all derivations share of all continuations by so many letters.
fn certain(rules: &Rules, prefix: &[u8], most: usize) -> Option<BTreeSet<Event>> {
    let mut all = continued(prefix, most).into_iter().filter_map(|text| shared(rules, &text));
    let mut certain = all.next()?;
    all.for_each(|events| certain.retain(|event| events.contains(event)));
    certain.retain(|&(_, start, end)| start < prefix.len() && end.is_none_or(|end| end <= prefix.len()));
    Some(certain)
}

#[test]
fn what_is_certain_is_what_all_short_continuations_share() {
    let (mut n_compared, mut n_certain) = (0, 0);
    for seed in seeds() {
        let rules = random_rules(&mut Random::new(seed));
        let grammar = lark::parse(&written(&rules), &Default::default()).unwrap();
        let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
        for prefix in continued(b"", LONGEST_PREFIX) {
            let mut captures = Captures::new(language.clone()).unwrap();
            let mut found = BTreeSet::new();
            for &byte in &prefix {
                for event in captures.read(&[byte]).unwrap() {
                    assert!(found.insert(plain(event)), "twice");
                }
            }
            let Some(right) = certain(&rules, &prefix, SHORT) else { continue };
            n_compared += 1;
            n_certain += found.len();
            // What keeps something from being certain can take longer to write.
            let is_right =
                found == right || certain(&rules, &prefix, LONG).is_some_and(|right| found == right);
            let text = String::from_utf8_lossy(&prefix);
            assert!(is_right, "seed {seed}, {text:?}: {found:?} and not {right:?}\n{}", written(&rules));
        }
    }
    assert!(seeds().len() < 40 || n_compared > 100 && n_certain > 200, "{n_compared} {n_certain}");
}

/// The events of the parse tree.
fn of_tree(language: &Language, text: &[u8]) -> BTreeSet<Event> {
    let tree = Tree::read(language, text).unwrap().unwrap();
    let mut events = BTreeSet::new();
    for node in tree.nodes {
        if let Symbol::Nonterminal(rule) = node.symbol
            && !language.grammar().nonterminals[rule.index()].is_synthetic()
            && !node.span.is_empty()
        {
            events.insert((rule.index(), node.span.start, None));
            events.insert((rule.index(), node.span.start, Some(node.span.end)));
        }
    }
    events
}

#[test]
fn in_all_modes_events_are_those_of_the_tree() {
    let (mut n_texts, mut n_early) = (0, 0);
    for seed in seeds() {
        for mode in LexerMode::ALL {
            for case in [RandomCase::in_mode(seed, mode), RandomCase::with_blanks(seed, mode)] {
                let options = LanguageOptions { lexer: Some(mode), ties: case.ties, ..Default::default() };
                let Ok(language) = Language::new(case.grammar.clone(), &options) else { continue };
                let language = Arc::new(language);
                for text in case.byte_texts() {
                    let mut captures = Captures::new(language.clone()).unwrap();
                    let mut found = Vec::new();
                    for &byte in &text {
                        found.extend(captures.read(&[byte]).unwrap().into_iter().map(plain));
                    }
                    if !language.read(&text).is_ok_and(|reading| reading.is_sentence) {
                        continue;
                    }
                    n_texts += 1;
                    n_early += found.len();
                    found.extend(captures.finish().unwrap().unwrap().into_iter().map(plain));
                    let all: BTreeSet<Event> = found.iter().copied().collect();
                    let shown = String::from_utf8_lossy(&text);
                    assert_eq!(all, of_tree(&language, &text), "seed {seed}, {mode:?}, {shown:?}\n{case}");
                    assert_eq!(all.len(), found.len(), "twice");
                }
            }
        }
    }
    assert!(seeds().len() < 40 || n_texts > 1_000 && n_early > 1_000, "{n_texts} {n_early}");
}

fn language(source: &str) -> Arc<Language> {
    let grammar = lark::parse(source, &Default::default()).unwrap();
    Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap())
}

fn named(language: &Language, events: Vec<CaptureEvent>) -> Vec<String> {
    let name = |rule: NonterminalId| &language.grammar().nonterminals[rule.index()].name;
    let shown = |event: CaptureEvent| match event.end {
        None => format!("+{} {}", name(event.rule), event.start),
        Some(end) => format!("-{} {}..{end}", name(event.rule), event.start),
    };
    events.into_iter().map(shown).collect()
}

#[test]
fn a_call_is_known_before_it_ends() {
    let language = language(
        "start: call (\";\" call)*\ncall: NAME \"(\" argument \")\"\nargument: NUMBER | call\n\
         NAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore / +/",
    );
    let mut captures = Captures::new(language.clone()).unwrap();
    let mut read = |text: &str| named(&language, captures.read(text.as_bytes()).unwrap());
    assert_eq!(read(" f"), ["+start 1", "+call 1"]);
    assert_eq!(read("( "), [""; 0]);
    assert_eq!(read("g"), ["+argument 4", "+call 4"]);
    // Where a number ends is not known before something else follows.
    assert_eq!(read("(12"), ["+argument 6"]);
    assert_eq!(read(" "), ["-argument 6..8"]);
    assert_eq!(read("))"), ["-call 4..10", "-argument 4..10", "-call 1..11"]);
    assert_eq!(named(&language, captures.finish().unwrap().unwrap()), ["-start 1..11"]);
    assert!(captures.read(b";").unwrap().is_empty() && captures.finish().unwrap().is_none());
}

#[test]
fn of_ambiguous_texts_only_what_is_shared_is_told() {
    let sums = language("%lexer scannerless\nstart: e\ne: e \"+\" e | \"1\"");
    let mut captures = Captures::new(sums.clone()).unwrap();
    assert_eq!(named(&sums, captures.read(b"1").unwrap()), ["+start 0", "+e 0", "-e 0..1"]);
    assert_eq!(named(&sums, captures.read(b"+1+1").unwrap()), ["+e 2", "-e 2..3", "+e 4", "-e 4..5"]);
    let rest = named(&sums, captures.clone().finish().unwrap().unwrap());
    assert_eq!(rest, ["-e 0..3", "-e 0..5", "-start 0..5"]);
}

#[test]
fn tokens_that_are_named_and_limits() {
    let special = SpecialIds { eos: vec![3], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(["a", "b", "", ""], special).unwrap();
    let calls = language("start: \"a\" call\ncall: <[2]> body\nbody: \"b\"+");
    let constraint = Constraint::new(calls.clone(), vocabulary).unwrap();
    let mut captures = Captures::new(calls.clone()).unwrap();
    let mut read = |token| named(&calls, captures.read_token(&constraint, TokenId(token)).unwrap());
    assert_eq!(read(0), ["+start 0"]);
    assert_eq!(read(2), [""; 0]);
    assert_eq!(read(1), ["+call 1", "+body 1"]);
    assert_eq!(
        named(&calls, captures.finish().unwrap().unwrap()),
        ["-body 1..2", "-call 1..2", "-start 0..2"]
    );
    let limits = Limits { shared_items: 20, ..Limits::default() };
    let grammar = lark::parse("start: \"a\"*", &Default::default()).unwrap();
    let small = Language::new(grammar, &LanguageOptions { limits, ..LanguageOptions::default() }).unwrap();
    let error = Captures::new(Arc::new(small)).unwrap().read(&[b'a'; 100]).unwrap_err();
    assert_eq!((error.kind(), error.limit()), (ErrorKind::Limit, Some(("shared_items", 20))));
}
