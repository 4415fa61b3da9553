//! Lengths of strings, with tokens of many characters: masks, and the sweeps of canvases, against every token
//! by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anygram_bits::{BitSet, Random};
use anygram_grammar::automata::Pieces;
use anygram_grammar::ir::Grammar;
use anygram_json_schema::pieces::Escapes;
use anygram_json_schema::{Options, grammar};
use anygram_left_to_right::frontier::Stepper;
use anygram_left_to_right::mask::Walks;
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_lexer::transducer::{CutId, LexemeId, Transducer};
use anygram_vocab::{TokenId, TokenMask, Vocabulary};

use crate::recall::check_mask;

/// Arrays of strings whose lengths are in these ranges.
const RANGES: [(u32, Option<u32>); 8] = [
    (0, Some(0)),
    (0, Some(1)),
    (3, Some(3)),
    (2, Some(5)),
    (0, Some(12)),
    (5, None),
    (4, Some(40)),
    (300, Some(300)),
];

/// Parts of strings, of which some are in keys of the schemas below.
const PARTS: [&str; 11] =
    ["b", "the", "t", "ta", "at", "\\u0061", "\\u0074h", "\\ud83d\\ude00", "é", "\u{1F600}", "zz9"];

fn schemas() -> Vec<String> {
    let arrays = RANGES.iter().map(|(min, max)| {
        let max = max.map_or(String::new(), |max| format!(r#","maxLength":{max}"#));
        format!(r#"{{"type":"array","items":{{"type":"string","minLength":{min}{max}}}}}"#)
    });
    let others = [
        // Keys of which some are listed.
        r#"{"properties":{"the":{},"there":{},"é":{}},"propertyNames":{"minLength":2,"maxLength":7},
            "additionalProperties":{"type":"string","maxLength":3}}"#,
        r#"{"type":"object","properties":{"name":true},
            "patternProperties":{"^[a-z]{1,4}$":{"maxLength":2}}}"#,
        // Keys that are listed beside any others.
        r#"{"properties":{"the":{},"atb":{},"\u0061b":{}},"propertyNames":{"maxLength":9}}"#,
        r#"{"properties":{"the":{},"tab":{},"té":{}},"additionalProperties":{"enum":["the","bz"]}}"#,
        r#"{"properties":{"\ud83d\ude00":{},"ttt":{},"at":{}},"required":["at"]}"#,
        // Several strings at one place.
        r#"{"type":"array","items":{"anyOf":[{"maxLength":2},{"minLength":6,"maxLength":8},
            {"enum":["the end","then"]}]}}"#,
    ];
    arrays.chain(others.map(str::to_owned)).collect()
}

#[test]
fn masks_have_the_tokens_that_are_neither_too_short_nor_too_long() {
    // Each takes a second or more.
    let seeds: Vec<u64> = anygram_testkit::random::seeds(20).into_iter().step_by(20).collect();
    let vocabulary = Vocabulary::builtin();
    let mut n_long = 0;
    for schema in schemas() {
        for escapes in [Escapes::Any, Escapes::Needed] {
            let grammar = grammar(&schema, &Options { escapes, ..Options::default() });
            let grammar = grammar.unwrap_or_else(|refusal| panic!("{schema}: {refusal}"));
            let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
            let constraint = Constraint::new(Arc::new(language), vocabulary.clone()).unwrap();
            for &seed in &seeds {
                let mut random = Random::new(seed);
                let mut matcher = constraint.matcher().unwrap();
                for _ in 0..14 {
                    let allowed = check_mask(&mut matcher, &schema);
                    let display = |id: u32| vocabulary.display_token(TokenId(id));
                    // Tokens that begin, go on with or end strings, rather than blanks.
                    let is_wanted = |&id: &u32| {
                        let text = display(id);
                        text.contains(['"', '[', '{', ':', ',']) || text.chars().any(char::is_alphabetic)
                    };
                    let few: Vec<u32> = allowed.iter().copied().filter(is_wanted).collect();
                    let from = if few.is_empty() || random.chance(10) { &allowed } else { &few };
                    let token = from[random.below(from.len())];
                    n_long += usize::from(display(token).chars().count() > 2);
                    matcher.advance(TokenId(token)).unwrap();
                    if matcher.has_ended() {
                        break;
                    }
                }
            }
        }
    }
    assert!(n_long > 30, "{n_long}");
}

/// What becomes of tokens: by what the piece is then, the tokens behind which it is in progress, and those
/// with which it ends. Tokens inside of which it ends, each with how many of its bytes are read, are listed
/// by how it ends.
#[derive(Default, PartialEq, Eq, Debug)]
struct Fates {
    stays: BTreeMap<LexemeId, BTreeSet<TokenId>>,
    ends: BTreeMap<CutId, BTreeSet<TokenId>>,
    inside: BTreeMap<CutId, BTreeSet<(TokenId, usize)>>,
}

/// The terminals that begin with a quote: those of each automaton, and all.
fn strings(grammar: &Grammar) -> Vec<BitSet> {
    let n_terminals = grammar.terminals.len();
    let of = |pieces: Option<&Pieces>| {
        let is_of = |&terminal: &usize| {
            let known = grammar.piece(terminal).map(|(pieces, _)| pieces);
            pieces.is_none_or(|pieces| known == Some(pieces))
        };
        BitSet::from_members(n_terminals, (0..n_terminals).filter(is_of))
    };
    let quoted = |pieces: &&Pieces| pieces.step(pieces.start(), b'"').unwrap().is_some();
    let alone = || grammar.pieces.iter().filter(quoted).map(Some);
    // Each is drawn twice as often as all of them.
    alone().chain(alone()).chain([None]).map(of).collect()
}

/// The fates of all tokens, each read byte by byte.
fn by_bytes(
    (language, vocabulary): (&Language, &Vocabulary),
    transducer: &mut Transducer,
    from: LexemeId,
) -> Fates {
    let (lexing, mut fates) = (language.lexing(), Fates::default());
    for token in (0..vocabulary.len() as u32).map(TokenId) {
        let bytes = vocabulary.bytes(token).unwrap_or_default();
        let mut at = Some(from);
        for (n_read, &byte) in (1..).zip(bytes) {
            let Some(lexeme) = at else { break };
            let step = transducer.step(lexing, lexeme, byte).unwrap();
            if let Some(cut) = step.cut {
                match bytes.get(n_read) {
                    None => drop(fates.ends.entry(cut).or_default().insert(token)),
                    Some(&next) if lexing.lexicon.union.begins(lexing.lexicon.union.class(next)) => {
                        fates.inside.entry(cut).or_default().insert((token, n_read));
                    }
                    Some(_) => {}
                }
            }
            at = step.stay;
            if let (Some(stay), true) = (at, n_read == bytes.len()) {
                fates.stays.entry(stay).or_default().insert(token);
            }
        }
    }
    fates
}

/// The same by a sweep.
fn by_sweep(
    (language, vocabulary): (&Language, &Vocabulary),
    (stepper, walks): (&mut Stepper, &mut Walks),
    from: LexemeId,
) -> Fates {
    let (lexing, mut fates) = (language.lexing(), Fates::default());
    let trie = vocabulary.trie();
    let n_words = vocabulary.len().div_ceil(32);
    let sweep = walks.sweep(stepper, language, (0, trie), from, n_words).unwrap();
    for group in &sweep.groups {
        let step = stepper.transducer_mut().step_to(lexing, from, group.place).unwrap();
        let mut words = vec![0; n_words];
        group.tokens().add_to(&mut words);
        let mask = TokenMask::from_words(words, vocabulary.len());
        if let Some(stay) = step.stay
            && mask.iter().next().is_some()
        {
            fates.stays.entry(stay).or_default().extend(mask.iter());
        }
        let Some(cut) = step.cut else { continue };
        if mask.iter().next().is_some() {
            fates.ends.entry(cut).or_default().extend(mask.iter());
        }
        for &top in group.tops() {
            let n_read = trie.path_to(top).len() - 1;
            let below = &trie.order()[trie.node(top).lo..trie.node(top).hi];
            fates.inside.entry(cut).or_default().extend(below.iter().map(|&token| (token, n_read)));
        }
    }
    fates
}

#[test]
fn sweeps_of_canvases_know_what_each_token_does_by_its_bytes() {
    let vocabulary = Vocabulary::builtin();
    let (mut n_places, mut n_bounded) = (0, 0);
    for (at, schema) in schemas().into_iter().enumerate() {
        for escapes in [Escapes::Any, Escapes::Needed] {
            let grammar = grammar(&schema, &Options { escapes, ..Options::default() }).unwrap();
            let strings = strings(&grammar);
            let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
            let mut stepper = Stepper::interning(&language).unwrap();
            let mut walks = Walks::apart(&vocabulary);
            let lexing = language.lexing();
            for seed in anygram_testkit::random::seeds(200) {
                let mut random = Random::new(seed << 8 | at as u64);
                let wanted = stepper.transducer_mut().wanted_alone(lexing, random.choose(&strings));
                let first = stepper.transducer_mut().first(lexing, wanted).unwrap().unwrap();
                // A string that begins, as far as some of its bytes.
                let mut at = Some(first);
                let mut text = "\"".to_owned();
                (0..random.below(3)).for_each(|_| text.push_str(PARTS[random.below(PARTS.len())]));
                let is_cut = text.len() > 1 && random.chance(60);
                let n_cut = if is_cut { random.below(text.len().min(6)) } else { 0 };
                for &byte in &text.as_bytes()[..text.len() - n_cut] {
                    at = at.and_then(|at| stepper.transducer_mut().step(lexing, at, byte).unwrap().stay);
                }
                let Some(from) = at else { continue };
                let subject = (&language, &vocabulary);
                let must = by_bytes(subject, stepper.transducer_mut(), from);
                let is = by_sweep(subject, (&mut stepper, &mut walks), from);
                assert_eq!(is, must, "{schema}: {escapes:?}, behind {text}");
                n_places += 1;
                n_bounded += usize::from(must.stays.len() > 20);
            }
        }
    }
    assert!(n_places > 1_000 && n_bounded > 100, "{n_places} {n_bounded}");
}
