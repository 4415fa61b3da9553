//! Bounds on the tokens that have bytes in a part of a text, against all ways to read sequences of tokens.
//!
//! A sequence of tokens is the beginning of an output if some text behind it makes one: as a single token,
//! since in more tokens no part of the text has fewer. Within a budget it is one if so many tokens of the
//! vocabulary make one. `ANYGRAM_SEED` and `ANYGRAM_SEEDS` as in `oracle.rs`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anygram_bits::ErrorKind;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{
    Constraint, Draft, Language, LanguageOptions, MaskRows, MatchError, Matcher, batch_masks,
};
use anygram_testkit::random::Random;
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

use super::budget::seeds;

const TOKENS: [&str; 9] = ["a", "b", "aa", "ab", "ba", "bb", "aab", "abb", "baba"];
const EOS: u32 = 9;

/// The texts of a part, and how many letters the shortest has.
type Pattern = (&'static str, fn(&str) -> bool, usize);

const PATTERNS: [Pattern; 8] = [
    ("[ab]+", |text| !text.is_empty(), 1),
    ("[ab]*", |_| true, 0),
    ("a+", |text| !text.is_empty() && !text.contains('b'), 1),
    ("(ab)+", |text| !text.is_empty() && text.replace("ab", "").is_empty(), 2),
    ("a[ab]*b", |text| text.len() > 1 && text.starts_with('a') && text.ends_with('b'), 2),
    ("[ab]{1,3}", |text| (1..=3).contains(&text.len()), 1),
    ("b", |text| text == "b", 1),
    ("aab", |text| text == "aab", 3),
];

/// An expression over parts.
enum Node {
    /// A pattern, and how many tokens may have bytes in its text.
    Part(Pattern, Option<usize>),
    Sequence(Vec<Node>),
    Any(Vec<Node>),
    Repeated(Box<Node>),
    /// A rule of parts without bounds, and how many tokens may have bytes in its text.
    Rule(Box<Node>, usize),
}

impl Node {
    /// Where nothing has a bound, a rule around it has.
    fn random(random: &mut Random, depth: usize, bounded: bool) -> Self {
        let one = |random: &mut Random| Self::random(random, depth - 1, bounded);
        match random.below(if depth == 0 { 1 } else { 6 }) {
            0 => {
                let has_bound = bounded && random.chance(70);
                Self::Part(*random.choose(&PATTERNS), has_bound.then(|| random.below(4)))
            }
            1 => Self::Any(vec![one(random), one(random)]),
            2 => Self::Repeated(Box::new(one(random))),
            3 if bounded => Self::Rule(Box::new(Self::random(random, depth - 1, false)), random.below(4)),
            _ => Self::Sequence(vec![one(random), one(random)]),
        }
    }

    fn n_letters(&self) -> usize {
        match self {
            Self::Part((_, _, shortest), _) => *shortest,
            Self::Sequence(nodes) | Self::Any(nodes) => nodes.iter().map(Self::n_letters).sum(),
            Self::Repeated(node) | Self::Rule(node, _) => node.n_letters(),
        }
    }

    /// In Lark's notation; parts are rules of their own.
    fn write(&self, rules: &mut Vec<String>) -> String {
        match self {
            Self::Part((pattern, ..), most) => {
                let name = format!("p{}", rules.len());
                let most = most.map_or(String::new(), |most| format!("[max_tokens={most}]"));
                rules.push(format!("{name}{most}: /{pattern}/"));
                name
            }
            Self::Sequence(nodes) => {
                let parts: Vec<String> = nodes.iter().map(|node| node.write(rules)).collect();
                format!("({})", parts.join(" "))
            }
            Self::Any(nodes) => {
                let parts: Vec<String> = nodes.iter().map(|node| node.write(rules)).collect();
                format!("({})", parts.join(" | "))
            }
            Self::Repeated(node) => format!("({})*", node.write(rules)),
            Self::Rule(node, most) => {
                let body = node.write(rules);
                let name = format!("p{}", rules.len());
                rules.push(format!("{name}[max_tokens={most}]: {body}"));
                name
            }
        }
    }

    /// Where it can end that begins at a place.
    fn ends(&self, text: &Written, at: usize) -> BTreeSet<usize> {
        match self {
            // As llguidance has it.
            Self::Part(_, Some(0)) | Self::Rule(_, 0) => BTreeSet::from([at]),
            Self::Rule(node, most) => {
                node.ends(text, at).into_iter().filter(|&to| text.n_tokens(at, to) <= *most).collect()
            }
            Self::Part((_, matches, _), most) => (at..=text.letters.len())
                .filter(|&to| matches(&text.letters[at..to]))
                .filter(|&to| most.is_none_or(|most| text.n_tokens(at, to) <= most))
                .collect(),
            Self::Sequence(nodes) => nodes.iter().fold(BTreeSet::from([at]), |ends, node| {
                ends.into_iter().flat_map(|at| node.ends(text, at)).collect()
            }),
            Self::Any(nodes) => nodes.iter().flat_map(|node| node.ends(text, at)).collect(),
            Self::Repeated(node) => {
                let (mut all, mut agenda) = (BTreeSet::new(), vec![at]);
                while let Some(at) = agenda.pop() {
                    if all.insert(at) {
                        agenda.extend(node.ends(text, at));
                    }
                }
                all
            }
        }
    }
}

/// A text and the tokens that it was written in.
#[derive(Default)]
struct Written {
    letters: String,
    ends: Vec<usize>,
}

impl Written {
    fn new(tokens: impl Iterator<Item = &'static str>) -> Self {
        let mut written = Self::default();
        tokens.for_each(|token| written.push(token));
        written
    }

    fn push(&mut self, token: &str) {
        self.letters.push_str(token);
        self.ends.push(self.letters.len());
    }

    /// How many tokens have a letter in a part.
    fn n_tokens(&self, from: usize, to: usize) -> usize {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).filter(|&(begin, &end)| begin.max(from) < end.min(to)).count()
    }
}

/// All texts that may have to follow.
fn rests() -> Vec<String> {
    let mut all = vec![String::new()];
    for at in 0.. {
        let Some(text) = all.get(at).filter(|text: &&String| text.len() < MOST_LETTERS).cloned() else {
            break;
        };
        all.extend(["a", "b"].map(|letter| text.clone() + letter));
    }
    all
}

const MOST_LETTERS: usize = 5;

fn is_output(node: &Node, tokens: &[u32], rest: &str) -> bool {
    let mut written = Written::new(tokens.iter().map(|&id| TOKENS[id as usize]));
    if !rest.is_empty() {
        written.push(rest);
    }
    node.ends(&written, 0).contains(&written.letters.len())
}

fn vocabulary() -> Vocabulary {
    let special = SpecialIds { eos: vec![EOS], ..SpecialIds::default() };
    Vocabulary::from_tokens(TOKENS.into_iter().chain([""]), special).unwrap()
}

fn constraint(grammar: &str) -> Constraint {
    constraint_on(grammar, vocabulary())
}

fn constraint_on(grammar: &str, vocabulary: Vocabulary) -> Constraint {
    let grammar = lark::parse(grammar, &LarkOptions::default()).unwrap();
    grammar.validate().unwrap();
    let again = lark::parse(&grammar.to_string(), &LarkOptions::default()).unwrap();
    assert_eq!(grammar.difference(&again), None, "{grammar}");
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    Constraint::new(Arc::new(language), vocabulary).unwrap()
}

fn found(matcher: &mut Matcher) -> Vec<u32> {
    matcher.mask().unwrap().iter().map(|token| token.0).collect()
}

#[test]
fn masks_are_those_of_all_ways_to_read_the_tokens() {
    let (rests, mut n_counted) = (rests(), 0);
    for seed in seeds() {
        let mut random = Random::new(seed);
        let (node, grammar) = random_grammar(&mut random);
        let is_viable = |tokens: &[u32]| rests.iter().any(|rest| is_output(&node, tokens, rest));
        if !is_viable(&[]) {
            continue;
        }
        let mut matcher = constraint(&grammar).matcher().unwrap();
        let plain = grammar.replace("max_tokens", "temperature").replace("temperature=0", "max_tokens=0");
        let mut uncounted = constraint(&plain).matcher().unwrap();
        for _ in 0..8 {
            matcher.reset();
            uncounted.reset();
            let (mut tokens, mut masks) = (Vec::new(), Vec::new());
            while tokens.len() < 7 {
                let next = |&id: &u32| is_viable(&[&*tokens, &[id]].concat());
                let mut right: Vec<u32> = (0..EOS).filter(next).collect();
                right.extend(is_output(&node, &tokens, "").then_some(EOS));
                assert_eq!(found(&mut matcher), right, "seed {seed}, behind {tokens:?}\n{grammar}");
                assert_eq!(matcher.is_sentence(), right.last() == Some(&EOS), "seed {seed}");
                n_counted += usize::from(found(&mut uncounted) != right);
                check(&mut matcher, &right, &mut random);
                masks.push(right.clone());
                let Some(&next) = right.iter().find(|_| random.chance(40)).filter(|&&id| id != EOS) else {
                    break;
                };
                matcher.advance(TokenId(next)).unwrap();
                uncounted.advance(TokenId(next)).unwrap();
                tokens.push(next);
            }
            let back = random.below(tokens.len() + 1);
            matcher.rollback(back).unwrap();
            if let Some(mask) = masks.get(tokens.len() - back) {
                assert_eq!(&found(&mut matcher), mask, "seed {seed}, {back} tokens back");
            }
        }
    }
    assert!(seeds().len() < 40 || n_counted > 100, "{n_counted}");
}

/// What else is said of the tokens that may come.
fn check(matcher: &mut Matcher, right: &[u32], random: &mut Random) {
    let mut words = vec![0; matcher.constraint().mask_words()];
    assert!(matcher.known_mask_into(&mut words).unwrap());
    let id = random.below(EOS as usize) as u32;
    let mut fork = matcher.fork();
    match fork.advance(TokenId(id)) {
        Ok(()) => assert!(right.contains(&id)),
        Err(MatchError::Refused(refusal)) => {
            assert!(!right.contains(&id));
            if refusal.refused_byte.is_none() {
                assert!(refusal.to_string().contains("max_tokens"), "{refusal}");
            }
        }
        Err(error) => panic!("{error}"),
    }
    let draft = [Draft { token: TokenId(id), after: None }];
    let (mut row, n_words) = (vec![0; words.len()], words.len());
    let allowed = matcher.draft_masks(&draft, MaskRows::new(&mut row, n_words)).unwrap();
    assert_eq!(allowed, [right.contains(&id)]);
    if allowed[0] {
        assert_eq!(row, fork.mask().unwrap().words());
    }
    let forced = matcher.forced().unwrap().tokens;
    assert_eq!(matcher.validate(&forced).unwrap(), forced.len());
    let (mut both, mut rows) = ([matcher.fork(), fork], vec![0; 2 * n_words]);
    batch_masks(&mut both, MaskRows::new(&mut rows, n_words)).into_iter().for_each(Result::unwrap);
    assert_eq!(rows[..n_words], words);
}

/// A random node that is short enough, and its grammar.
fn random_grammar(random: &mut Random) -> (Node, String) {
    let node = loop {
        let node = Node::random(random, 3, true);
        if node.n_letters() <= MOST_LETTERS {
            break node;
        }
    };
    let mut rules = Vec::new();
    let start = node.write(&mut rules);
    (node, format!("%lexer scannerless\nstart: {start}\n{}", rules.join("\n")))
}

/// Brute force looks at completions of at most so many tokens.
const DEEPEST: u32 = 3;

/// The fewest tokens of some that make an output of what was written, if they are not too many.
fn least(
    node: &Node,
    tokens: &[u32],
    ids: &[u32],
    known: &mut HashMap<Vec<u32>, Option<u32>>,
) -> Option<u32> {
    if let Some(&least) = known.get(tokens) {
        return least;
    }
    let mut level = vec![tokens.to_vec()];
    let found = (0..=DEEPEST).find(|_| {
        let is_over = level.iter().any(|tokens| is_output(node, tokens, ""));
        let longer = |tokens: &Vec<u32>| {
            let tokens = tokens.clone();
            ids.iter().map(move |&id| [&*tokens, &[id]].concat())
        };
        level = level.iter().flat_map(longer).collect();
        is_over
    });
    known.insert(tokens.to_vec(), found);
    found
}

#[test]
fn budgets_are_those_of_brute_force() {
    let (mut n_allowed, mut n_refused, mut n_counted) = (0, 0, 0);
    // Several grammars for each seed.
    for seed in seeds().into_iter().flat_map(|seed| 4 * seed..4 * seed + 4) {
        let mut random = Random::new(seed);
        let (node, grammar) = random_grammar(&mut random);
        // Some vocabularies lack tokens, so that parts cannot end; some have every byte, for the bounds that
        // take no search.
        let lacks = random.chance(50);
        let ids: Vec<u32> = (0..EOS).filter(|_| !lacks || random.chance(60)).collect();
        let own = (0..EOS).map(|id| if ids.contains(&id) { TOKENS[id as usize].into() } else { Vec::new() });
        let others = (0..=u8::MAX).filter(|byte| !lacks && !b"ab".contains(byte)).map(|byte| vec![byte]);
        let special = SpecialIds { eos: vec![EOS], ..SpecialIds::default() };
        let tokens = own.chain([Vec::new()]).chain(others);
        let vocabulary = Vocabulary::from_tokens(tokens, special).unwrap();
        let mut known = HashMap::new();
        let mut matcher = constraint_on(&grammar, vocabulary.clone()).matcher().unwrap();
        let plain = grammar.replace("max_tokens", "temperature").replace("temperature=0", "max_tokens=0");
        let mut uncounted = constraint_on(&plain, vocabulary).matcher().unwrap();
        for _ in 0..4 {
            matcher.reset();
            uncounted.reset();
            let mut tokens: Vec<u32> = Vec::new();
            while tokens.len() < 5 {
                let context =
                    |what: &str| format!("seed {seed}, {what} behind {tokens:?} of {ids:?}\n{grammar}");
                let right = least(&node, &tokens, &ids, &mut known);
                assert_eq!(matcher.minimum_tokens(DEEPEST).unwrap(), right, "{}", context("minimum"));
                for budget in (0..=DEEPEST + 1).rev().chain(0..=DEEPEST + 1) {
                    let fits = |&id: &u32| {
                        let next = [&*tokens, &[id]].concat();
                        budget > 0
                            && least(&node, &next, &ids, &mut known).is_some_and(|least| least < budget)
                    };
                    let mut right: Vec<u32> = ids.iter().copied().filter(fits).collect();
                    right.extend(is_output(&node, &tokens, "").then_some(EOS));
                    let mask = matcher.mask_with_budget(budget).unwrap();
                    let found: Vec<u32> = mask.iter().map(|token| token.0).collect();
                    assert_eq!(found, right, "{}", context(&format!("within {budget}")));
                    let mut words = vec![0; matcher.constraint().mask_words()];
                    if matcher.known_mask_with_budget_into(budget, &mut words).unwrap() {
                        assert_eq!(words, mask.words(), "{}", context("known"));
                    }
                    (n_allowed, n_refused) =
                        (n_allowed + right.len(), n_refused + ids.len() + 1 - right.len());
                    n_counted += usize::from(uncounted.mask_with_budget(budget).unwrap() != mask);
                }
                let allowed = found(&mut matcher);
                let Some(&next) = allowed.iter().find(|_| random.chance(40)).filter(|&&id| id != EOS) else {
                    break;
                };
                matcher.advance(TokenId(next)).unwrap();
                uncounted.advance(TokenId(next)).unwrap();
                tokens.push(next);
            }
        }
    }
    println!("{n_allowed} bits set, {n_refused} not, {n_counted} masks differ without counts");
    assert!(seeds().len() < 40 || n_allowed > 0 && n_refused > 0 && n_counted > 100);
}

#[test]
fn a_budget_looks_ahead_to_the_end_of_a_part() {
    // The part cannot end with its second token: the vocabulary has no `b` alone.
    let special = SpecialIds { eos: vec![3], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(["a", "aab", "bb", ""], special).unwrap();
    let grammar = "%lexer scannerless\nstart: p\np[max_tokens=2]: /a+b/";
    let mut matcher = constraint_on(grammar, vocabulary).matcher().unwrap();
    // Without a budget any text may follow, as everywhere.
    assert_eq!(found(&mut matcher), [0, 1]);
    let within = |matcher: &mut Matcher, budget| -> Vec<u32> {
        matcher.mask_with_budget(budget).unwrap().iter().map(|token| token.0).collect()
    };
    assert_eq!(within(&mut matcher, 1_000), [0, 1]);
    assert_eq!(within(&mut matcher, 1), [1]);
    matcher.advance(TokenId(0)).unwrap();
    assert_eq!(found(&mut matcher), [1]);
    assert_eq!(matcher.minimum_tokens(9).unwrap(), Some(1));
    let special = SpecialIds { eos: vec![3], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(["a", "ab", "bb", ""], special).unwrap();
    let grammar = "%lexer scannerless\nstart: p\np[max_tokens=2]: /aaab/";
    let mut matcher = constraint_on(grammar, vocabulary).matcher().unwrap();
    assert_eq!(found(&mut matcher), [0]);
    assert!(within(&mut matcher, 1_000).is_empty());
    assert_eq!(matcher.minimum_tokens(1_000).unwrap(), None);
}

#[test]
fn a_large_bound_costs_a_budget_nothing() {
    let grammar = "%lexer scannerless\nstart: p \"b\"\np[max_tokens=1000000]: /a*/";
    let mut matcher = constraint(grammar).matcher().unwrap();
    for n_tokens in 0..2_000 {
        assert_eq!(matcher.minimum_tokens(1_000_000).unwrap(), Some(1), "{n_tokens}");
        let mask = matcher.mask_with_budget(100_000).unwrap();
        assert_eq!(mask.iter().map(|token| token.0).collect::<Vec<u32>>(), [0, 1, 2, 3, 6]);
        matcher.advance(TokenId(0)).unwrap();
    }
}

#[test]
fn a_text_with_few_tokens_ends() {
    let mut matcher =
        constraint("%lexer scannerless\nstart: p \"b\"\np[max_tokens=2]: /[ab]+/").matcher().unwrap();
    matcher.advance_all(&[TokenId(0), TokenId(0)]).unwrap();
    // Of the others one letter would be the third token of the text.
    assert_eq!(found(&mut matcher), [1]);
    matcher.advance(TokenId(1)).unwrap();
    assert_eq!(found(&mut matcher), [EOS]);
    // The same text in two tokens may go on.
    matcher.reset();
    matcher.advance_all(&[TokenId(6)]).unwrap();
    assert_eq!(found(&mut matcher).len(), TOKENS.len() + 1);
}

#[test]
fn refusals_say_that_tokens_are_used_up() {
    let mut matcher = constraint("%lexer scannerless\nstart: p\np[max_tokens=1]: /a+b/").matcher().unwrap();
    let error = matcher.advance(TokenId(2)).unwrap_err();
    assert!(error.to_string().contains("max_tokens"), "{error}");
    assert_eq!(found(&mut matcher), [3, 6]);
    let error = matcher.constraint().language().needs_texts_alone("canvases").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("max_tokens"), "{error}");
}

#[test]
fn modes_with_longest_match_are_refused() {
    for mode in ["longest", "contextual"] {
        let source = format!("%lexer {mode}\nstart: p\np[max_tokens=1]: /a+b/");
        let grammar = lark::parse(&source, &LarkOptions::default()).unwrap();
        let error = Language::new(grammar, &LanguageOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("scannerless"), "{error}");
    }
}
