//! Schemas within other grammars: keys and items differ there too, in each value by itself.
//!
//! The reference says of a place in a text where what begins there can end, and whether the text can go on:
//! of schemas by the evaluator that shares nothing with this crate, and where their values are in progress by
//! the grammar of the schema alone.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anygram_any_order::{By, Canvas, Decision, End, Slot, Solver};
use anygram_bits::{ErrorKind, Random};
use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{LarkOptions, parse_with_schemas};
use anygram_json_schema::lower::Whitespace;
use anygram_json_schema::{Options, embedded, grammar};
use anygram_left_to_right::tree::Tree;
use anygram_left_to_right::{Constraint, Draft, Language, LanguageOptions, Limits, MaskRows, Matcher};
use anygram_schema_oracle::json::Limits as JsonLimits;
use anygram_schema_oracle::{Formats, Options as OracleOptions, Registry, Value};
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

use crate::recall::check_mask;

/// The schemas that are embedded.
const SCHEMAS: &[&str] = &[
    "{}",
    r#"{"type":"object"}"#,
    r#"{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"integer"}}"#,
    r#"{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}"#,
    r#"{"uniqueItems":true}"#,
    r#"{"type":"array","uniqueItems":true,"items":{"type":["array","integer"]}}"#,
    r#"{"type":"array","items":{"uniqueItems":true,"type":"array"}}"#,
    r#"{"type":"object","propertyNames":{"pattern":"^[ab]$"},"minProperties":2}"#,
    r#"{"type":"array","uniqueItems":true,"minItems":2,"maxItems":2,
        "items":{"type":"integer","minimum":0,"maximum":300}}"#,
    r#"{"type":"array","items":{"type":"integer"}}"#,
];

/// The texts around them.
const TEXTS: &[&str] = &["<t>", ",", "[", "]", "{", "}", "{\"a\":", " ", "x"];

/// A grammar around schemas.
#[derive(Debug)]
enum Host {
    Text(&'static str),
    /// Characters that are not `<`, at least one.
    Free,
    Json(usize),
    Sequence(Vec<Host>),
    Either(Vec<Host>),
    Any(Box<Host>),
    /// What is inside, or that between brackets, or that, and so on.
    Nested(Box<Host>),
}

impl Host {
    fn random(random: &mut Random, depth: usize) -> Self {
        let few = |random: &mut Random| -> Vec<Self> {
            (0..2 + random.below(2)).map(|_| Self::random(random, depth - 1)).collect()
        };
        match random.below(if depth == 0 { 8 } else { 14 }) {
            0..5 => Self::Json(random.below(SCHEMAS.len())),
            5..7 => Self::Text(TEXTS[random.below(TEXTS.len())]),
            7 => Self::Free,
            8 | 9 => Self::Sequence(few(random)),
            10 | 11 => Self::Either(few(random)),
            12 => Self::Any(Box::new(Self::random(random, depth - 1))),
            _ => Self::Nested(Box::new(Self::random(random, depth - 1))),
        }
    }

    /// Adds the rules of this; returns its name.
    fn rules(&self, rules: &mut Vec<String>) -> String {
        let right = match self {
            Self::Text(text) => format!("\"{}\"", text.replace('"', "\\\"")),
            Self::Free => "/[^<]+/".to_owned(),
            Self::Json(schema) => format!("%json {}", object(SCHEMAS[*schema])),
            Self::Sequence(parts) => parts.iter().map(|part| part.rules(rules)).collect::<Vec<_>>().join(" "),
            Self::Either(parts) => parts.iter().map(|part| part.rules(rules)).collect::<Vec<_>>().join(" | "),
            Self::Any(part) => format!("{}*", part.rules(rules)),
            Self::Nested(part) => {
                let own = format!("r{}", rules.len());
                rules.push(String::new());
                let at = rules.len() - 1;
                let inner = part.rules(rules);
                rules[at] = format!("{own}: {inner} | \"[\" {own} \"]\"");
                return own;
            }
        };
        let name = format!("r{}", rules.len());
        rules.push(format!("{name}: {right}"));
        name
    }

    fn lark(&self) -> String {
        let mut rules = Vec::new();
        let start = self.rules(&mut rules);
        format!("start: {start}\n{}\n", rules.join("\n"))
    }
}

/// Behind `%json` stands an object.
fn object(schema: &str) -> String {
    schema.replace('\n', " ")
}

/// What is known of the texts of one schema.
#[derive(Default)]
struct Known {
    /// Whether a text has a valid value.
    valid: HashMap<String, bool>,
    /// Whether a text is the beginning of one.
    begun: HashMap<String, bool>,
}

/// Whether there is a blank outside of strings; escapes are none.
fn has_blanks(text: &str) -> bool {
    text.split('"').step_by(2).any(|outside| outside.contains(' '))
}

struct Reference<'t> {
    text: &'t str,
    compact: bool,
    languages: &'t [Language],
    known: &'t RefCell<Vec<Known>>,
}

impl Reference<'_> {
    fn is_valid(&self, schema: usize, part: &str) -> bool {
        let known = self.known.borrow().get(schema).and_then(|known| known.valid.get(part).copied());
        known.unwrap_or_else(|| {
            let mut registry = Registry::default();
            let document = Value::parse(SCHEMAS[schema].as_bytes(), JsonLimits::default()).unwrap();
            registry.add("test:schema", document);
            let oracle = registry.schema("test:schema").unwrap();
            let options = OracleOptions { formats: Formats::Assert };
            let value = Value::parse(part.trim_matches([' ', '\n']).as_bytes(), JsonLimits::default());
            let is_valid = value.is_ok_and(|value| oracle.is_valid(&value, options).unwrap())
                && !(self.compact && has_blanks(part));
            self.known.borrow_mut()[schema].valid.insert(part.to_owned(), is_valid);
            is_valid
        })
    }

    fn is_begun(&self, schema: usize, part: &str) -> bool {
        let known = self.known.borrow().get(schema).and_then(|known| known.begun.get(part).copied());
        known.unwrap_or_else(|| {
            let is_begun = self.languages[schema].read(part.as_bytes()).unwrap().is_viable;
            self.known.borrow_mut()[schema].begun.insert(part.to_owned(), is_begun);
            is_begun
        })
    }

    /// Where what begins at a place can end; whether the whole text behind it can be the beginning of it.
    fn ends(&self, host: &Host, from: usize) -> (BTreeSet<usize>, bool) {
        let rest = &self.text[from..];
        match host {
            Host::Text(text) => {
                let end = rest.starts_with(text).then_some(from + text.len());
                (end.into_iter().collect(), text.starts_with(rest))
            }
            Host::Free => {
                let most = rest.find('<').unwrap_or(rest.len());
                ((from + 1..=from + most).collect(), most == rest.len())
            }
            Host::Json(schema) => {
                let ends =
                    (from..=self.text.len()).filter(|&to| self.is_valid(*schema, &self.text[from..to]));
                (ends.collect(), self.is_begun(*schema, rest))
            }
            Host::Sequence(parts) => {
                let (mut ends, mut can_go_on) = (BTreeSet::from([from]), false);
                for part in parts {
                    let mut next = BTreeSet::new();
                    for at in ends {
                        let (more, goes_on) = self.ends(part, at);
                        next.extend(more);
                        can_go_on |= goes_on;
                    }
                    ends = next;
                }
                (ends, can_go_on)
            }
            Host::Either(parts) => self.any(parts, from),
            Host::Any(part) => {
                let (mut ends, mut can_go_on) = (BTreeSet::from([from]), false);
                let mut agenda = vec![from];
                while let Some(at) = agenda.pop() {
                    let (more, goes_on) = self.ends(part, at);
                    can_go_on |= goes_on;
                    agenda.extend(more.into_iter().filter(|&to| ends.insert(to)));
                }
                (ends, can_go_on)
            }
            Host::Nested(part) => {
                let (mut ends, mut can_go_on) = self.ends(part, from);
                if rest.is_empty() {
                    can_go_on = true;
                } else if rest.starts_with('[') {
                    let (inner, goes_on) = self.ends(host, from + 1);
                    can_go_on |= goes_on || inner.contains(&self.text.len());
                    ends.extend(
                        inner.into_iter().filter(|&to| self.text[to..].starts_with(']')).map(|to| to + 1),
                    );
                }
                (ends, can_go_on)
            }
        }
    }

    fn any(&self, parts: &[Host], from: usize) -> (BTreeSet<usize>, bool) {
        let all = parts.iter().map(|part| self.ends(part, from));
        all.fold((BTreeSet::new(), false), |(mut ends, goes_on), (more, also)| {
            ends.extend(more);
            (ends, goes_on || also)
        })
    }
}

/// Tokens of one byte, and longer ones that open values and repeat keys and items in them.
fn vocabulary() -> Vocabulary {
    let single = (b' '..=b'~').map(|byte| char::from(byte).to_string());
    let longer = [
        "{\"",
        "\":",
        "\",\"",
        "{\"a\":1,\"a\"",
        "{\"a\":1,\"a",
        "[1,1]",
        "[1,1",
        "[1,",
        " \"a\":1,\"a\":2}",
        "}{\"a\":1,\"a\":",
        ",\"a\":1",
        "\"a\":1",
        "}}",
        "},{",
        "]]",
        "],[",
        "],[1,1,",
        "}<t>{",
        "<t>",
        "<t>[1,1,",
        "{\"a\":1,\"b\":2}",
        "1,1",
        "[[1],[1]",
        "[[1],[1",
        "[{},{",
        "x[1,1]",
        " ",
        "  1,1]",
        "1]",
        ",1",
    ];
    let mut all: Vec<String> = single.collect();
    for token in longer {
        if !all.iter().any(|known| known == token) {
            all.push(token.to_owned());
        }
    }
    all.push(String::new());
    let eos = vec![all.len() as u32 - 1];
    Vocabulary::from_tokens(all, SpecialIds { eos, ..SpecialIds::default() }).unwrap()
}

/// A grammar in Lark's notation with schemas in it.
pub fn constraint(lark: &str, options: &Options) -> Constraint {
    constraint_with(lark, options, (vocabulary(), Limits::default()))
}

pub fn constraint_with(
    lark: &str,
    options: &Options,
    (vocabulary, limits): (Vocabulary, Limits),
) -> Constraint {
    let schemas = |schema: &str| {
        embedded(schema, options).map_err(|refusal| (ErrorKind::Unsupported, refusal.to_string()))
    };
    let grammar = parse_with_schemas(lark, &LarkOptions::default(), &schemas)
        .unwrap_or_else(|error| panic!("{lark}: {error}"));
    // A host may have no schema in it.
    let options =
        LanguageOptions { lexer: Some(LexerMode::Scannerless), limits, ..LanguageOptions::default() };
    let language = Language::new(grammar, &options).unwrap();
    Constraint::new(Arc::new(language), vocabulary).unwrap()
}

fn reads(constraint: &Constraint, text: &str) -> (bool, usize) {
    let reading = constraint.language().read(text.as_bytes()).unwrap();
    (reading.is_sentence, reading.length)
}

const PARTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    "{\"a\":1",
    ",\"a\":1",
    ",\"a\":2}",
    "{\"b\":{",
    "[1",
    ",1",
    ",1]",
    "1",
    "[1,1]",
    "[[1],[1]",
    "[[",
    "]]",
    "<t>",
    "x",
    " ",
    "\"a\"",
    ":",
    "{\"a\":1,\"b\":2}",
    ",\"b\":2}",
    "{}",
    "[]",
    "null",
    "\"",
    "[{},",
    "{\"a\":",
];

#[test]
fn random_hosts_have_the_texts_that_the_reference_says() {
    let seeds = anygram_testkit::random::seeds(40);
    let (mut n_sentences, mut n_viable, mut n_dead, mut n_masks) = (0, 0, 0, 0);
    for compact in [false, true] {
        let whitespace = if compact { Whitespace::Compact } else { Whitespace::Any };
        let options = Options { whitespace, ..Options::default() };
        let language = |schema: &&str| {
            Language::new(grammar(schema, &options).unwrap(), &LanguageOptions::default()).unwrap()
        };
        let languages: Vec<Language> = SCHEMAS.iter().map(language).collect();
        let known = RefCell::new(SCHEMAS.iter().map(|_| Known::default()).collect::<Vec<_>>());
        for &seed in &seeds {
            let mut random = Random::new(seed);
            let host = Host::random(&mut random, 3);
            let lark = host.lark();
            let constraint = constraint(&lark, &options);
            for _ in 0..12 {
                let parts = (0..1 + random.below(9)).map(|_| *random.choose(PARTS));
                let text: String = parts.collect();
                // As far as it is viable; one byte more is not.
                for end in 0..=text.len() {
                    let text = &text[..end];
                    let reference = Reference { text, compact, languages: &languages, known: &known };
                    let (ends, can_go_on) = reference.ends(&host, 0);
                    let is_sentence = ends.contains(&end);
                    let is_viable = can_go_on || is_sentence;
                    let what = format!("seed {seed}, compact {compact}: {lark}\n{text}");
                    let (is_read, length) = reads(&constraint, text);
                    assert_eq!((is_read, length == end), (is_sentence, is_viable), "{what}");
                    n_sentences += usize::from(is_sentence);
                    if !is_viable {
                        n_dead += 1;
                        break;
                    }
                    n_viable += 1;
                    if random.chance(15) {
                        let mut matcher = constraint.matcher().unwrap();
                        for byte in text.bytes() {
                            matcher.advance(TokenId(u32::from(byte - b' '))).unwrap();
                        }
                        assert_eq!(matcher.is_sentence(), is_sentence, "{what}");
                        check_mask(&mut matcher, &what);
                        n_masks += 1;
                    }
                }
            }
        }
    }
    println!("{n_sentences} sentences, {n_viable} viable, {n_dead} dead, {n_masks} masks");
    assert!(seeds.len() < 20 || n_sentences > 100 && n_viable > 1_000 && n_dead > 300 && n_masks > 100);
}

/// The token of one character.
fn byte(character: char) -> TokenId {
    TokenId(u32::from(character) - u32::from(' '))
}

fn advance(matcher: &mut Matcher, text: &str) {
    for character in text.chars() {
        matcher.advance(byte(character)).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

/// Texts that are sentences, and how much of others is viable.
type Case = (&'static str, &'static [&'static str], &'static [(&'static str, usize)]);

#[test]
fn values_are_remembered_each_by_itself() {
    let cases: &[Case] = &[
        (
            "start: \"<t>\" %json {\"type\":\"object\"} \"</t>\" | /[^<]+/",
            &["<t>{\"a\":1,\"b\":{\"a\":2}}</t>", "{\"a\":1,\"a\":2}"],
            &[("<t>{\"a\":1,\"a\":2}</t>", 12), ("<t>{\"a\":[{\"b\":1,\"b\"", 18)],
        ),
        // A reading that remembers nothing goes on.
        (
            "start: json | free\njson: %json {}\nfree: /[^<]+/",
            &["{\"a\":1,\"a\":2}", "{\"a\":1}"],
            &[("{\"a\":1,\"a\":\"<\"}", 12)],
        ),
        (
            "start: json | free\njson: %json {}\nfree: /[^<]+/",
            &["{\"a\":1,\"b\":\"<\"}"],
            &[("{\"b\":\"<\",\"b\"", 11)],
        ),
        // Several values, and brackets of the grammar around them.
        (
            "start: \"[\" value (\",\" value)* \"]\"\nvalue: %json {\"uniqueItems\":true}",
            &["[[1],[1]]", "[{},{}]", "[1,1,[1,[1,1]]]"],
            &[("[[1,1],2]", 5), ("[[2],[[1],[1]]]", 12)],
        ),
        // The same text as a value of the one schema and as several of the other.
        (
            "start: whole | \"[\" part (\",\" part)* \"]\"\nwhole: %json {\"uniqueItems\":true}\n\
             part: %json {\"type\":\"object\"}",
            &["[1,2]", "[{\"a\":1},{\"a\":1}]", "[{\"a\":1},{\"a\":2}]"],
            &[("[1,1]", 4), ("[{\"a\":1,\"a\"", 10), ("[{},{},1", 7)],
        ),
        (
            "start: %json {} %json {\"type\":\"object\"}\n%ignore /[ \\t\\f]+/",
            &["{\"a\":1} {\"a\":1}", " { \"a\" : 1 , \"b\":2 }{}"],
            &[(" { \"a\":1, \"a\"", 12), ("{\"a\":1}{\"b\":1,\x0c\"b\"", 17)],
        ),
    ];
    for (lark, sentences, dead) in cases {
        let constraint = constraint(lark, &Options::default());
        for text in *sentences {
            assert_eq!(reads(&constraint, text), (true, text.len()), "{lark}: {text}");
        }
        for (text, length) in *dead {
            assert_eq!(reads(&constraint, text), (false, *length), "{lark}: {text}");
        }
    }
}

#[test]
fn outputs_within_values_fork_and_go_back() {
    let lark = "start: \"<t>\" %json {\"type\":\"object\"} \"</t>\" | /[^<]+/";
    let options = Options { whitespace: Whitespace::Compact, ..Options::default() };
    let constraint = constraint(lark, &options);
    let mut matcher = constraint.matcher().unwrap();
    advance(&mut matcher, "<t>{\"a\":1,\"");
    let mut fork = matcher.fork();
    advance(&mut fork, "b\":1,\"a");
    assert!(!fork.mask().unwrap().contains(byte('"')));
    advance(&mut matcher, "a");
    let error = matcher.advance(byte('"')).unwrap_err().to_string();
    assert!(error.contains("refused at its byte 0"), "{error}");
    assert!(matcher.mask().unwrap().contains(byte('b')));
    matcher.rollback(1).unwrap();
    advance(&mut matcher, "b\"");
    assert!(matcher.mask().unwrap().contains(byte(':')));
    // What is forced, and what is at least to come, is that of readings within values too.
    advance(&mut matcher, ":2}");
    assert_eq!(matcher.forced().unwrap().bytes, b"</t>");
    let mut closed = matcher.fork();
    advance(&mut closed, "</t>");
    assert!(closed.is_sentence());
    matcher.rollback(1).unwrap();
    assert_eq!(matcher.minimum_tokens(20).unwrap(), Some(5));
    let within = matcher.mask_with_budget(5).unwrap();
    assert!(within.contains(byte('}')) && !within.contains(byte('3')));
    assert!(matcher.expected().iter().any(|name| name.contains('}')), "{:?}", matcher.expected());
    // Drafts, from before the value.
    matcher.reset();
    advance(&mut matcher, "<t>");
    let drafts: Vec<Draft> = "{\"a\":1,\"a\""
        .chars()
        .enumerate()
        .map(|(at, character)| Draft { token: byte(character), after: at.checked_sub(1) })
        .collect();
    let mut words = vec![0; drafts.len() * constraint.mask_words()];
    let rows = MaskRows::new(&mut words, constraint.mask_words());
    let are_allowed = matcher.draft_masks(&drafts, rows).unwrap();
    assert_eq!(are_allowed.iter().filter(|&&allowed| allowed).count(), drafts.len() - 1);
}

#[test]
fn holes_within_values_do_not_repeat_keys() {
    let slots = |text: &str| -> Canvas {
        let slots = text.chars().map(|c| if c == '?' { Slot::Hole } else { Slot::Fixed(byte(c)) });
        Canvas::new(slots.collect(), End::Sentence)
    };
    let text = "<t>{\"a\":1,\"?\":2}</t>";
    for (lark, repeats) in [
        ("start: \"<t>\" %json {\"type\":\"object\"} \"</t>\"", false),
        ("start: \"<t>\" %json {\"type\":\"object\"} \"</t>\" | /<t>[^?]+/", true),
    ] {
        let constraint = constraint(lark, &Options::default());
        let mut solver = Solver::new(&constraint).unwrap();
        let admissible = solver.admissible(&slots(text)).unwrap();
        assert_eq!(admissible.get(0, byte('a')).decided(), Some(repeats), "{lark}");
        assert_eq!(admissible.get(0, byte('b')).decided(), Some(true), "{lark}");
        let repeated = solver.completable(&slots(&text.replace('?', "a"))).unwrap();
        assert_eq!(repeated.decided(), Some(repeats), "{lark}");
    }
}

/// How a canvas over [`PARTS`] can be filled, holes by any token and EOS, gaps by at most one token; the
/// texts, with the token in each slot that is no gap.
fn fillings(slots: &[Slot], eos: TokenId) -> Vec<(String, Vec<TokenId>)> {
    let mut all = vec![(String::new(), Vec::new())];
    for slot in slots {
        let fill = |(text, row): &(String, Vec<TokenId>)| -> Vec<(String, Vec<TokenId>)> {
            let has_ended = row.contains(&eos);
            let all = (0..=eos.0).map(TokenId).filter(|&token| token == eos || !has_ended);
            let spelled = |token: TokenId| PARTS.get(token.index()).copied().unwrap_or_default();
            let with = |token| {
                (format!("{text}{}", spelled(token)), row.iter().copied().chain([token]).collect::<Vec<_>>())
            };
            match *slot {
                Slot::Fixed(_) if has_ended => Vec::new(),
                Slot::Fixed(token) => vec![with(token)],
                Slot::Hole => all.map(with).collect(),
                Slot::Gap => {
                    let one = PARTS.iter().map(|part| format!("{text}{part}"));
                    let two =
                        one.clone().flat_map(|one| PARTS.iter().map(move |part| format!("{one}{part}")));
                    let some: Vec<String> = if has_ended { Vec::new() } else { one.chain(two).collect() };
                    [text.clone()].into_iter().chain(some).map(|text| (text, row.clone())).collect()
                }
            }
        };
        all = all.iter().flat_map(fill).collect();
    }
    all
}

/// Holes and gaps around and in values whose keys and items differ: a no is right of all fillings, a yes is
/// one of them, and so for each token.
#[test]
fn canvases_of_random_hosts_are_those_of_all_fillings() {
    let seeds = anygram_testkit::random::seeds(20);
    let eos = TokenId(PARTS.len() as u32);
    let special = SpecialIds { eos: vec![eos.0], ..SpecialIds::default() };
    let tokens: Vec<&str> = PARTS.iter().copied().chain([""]).collect();
    let vocabulary = Vocabulary::from_tokens(&tokens, special).unwrap();
    let options = Options::default();
    let language = |schema: &&str| {
        Language::new(grammar(schema, &options).unwrap(), &LanguageOptions::default()).unwrap()
    };
    let languages: Vec<Language> = SCHEMAS.iter().map(language).collect();
    let known = RefCell::new(SCHEMAS.iter().map(|_| Known::default()).collect::<Vec<_>>());
    let (mut n_yes, mut n_no, mut n_unknown, mut n_parsed, mut n_tokens, mut n_open) = (0, 0, 0, 0, 0, 0);
    for &seed in &seeds {
        let mut random = Random::new(seed);
        let host = Host::random(&mut random, 2);
        let lark = host.lark();
        let limits = Limits { canvas_steps: 1_000_000, ..Limits::default() };
        let constraint = constraint_with(&lark, &options, (vocabulary.clone(), limits));
        let mut matcher = constraint.matcher().unwrap();
        for _ in 0..6 {
            matcher.reset();
            for _ in 0..random.below(8) {
                let allowed: Vec<TokenId> = matcher.mask().unwrap().iter().filter(|&at| at != eos).collect();
                if allowed.is_empty() {
                    break;
                }
                matcher.advance(*random.choose(&allowed)).unwrap();
            }
            let mut slots: Vec<Slot> = matcher.tokens().iter().map(|&token| Slot::Fixed(token)).collect();
            let kind = if random.chance(20) { Slot::Gap } else { Slot::Hole };
            for slot in [kind, Slot::Hole].into_iter().take(1 + usize::from(random.chance(25))) {
                match random.below(slots.len() + 1) {
                    at if at == slots.len() || random.chance(30) => slots.insert(at, slot),
                    at => slots[at] = slot,
                }
            }
            if random.chance(30) {
                // What stands there may be written again.
                let token =
                    *random.choose(&matcher.tokens().iter().copied().chain([eos]).collect::<Vec<_>>());
                let at = random.below(slots.len());
                slots[at] = if token == eos { Slot::Hole } else { Slot::Fixed(token) };
            }
            if slots.iter().filter(|slot| !matches!(slot, Slot::Fixed(_))).count() > 2 {
                continue;
            }
            let as_prefix = random.chance(25);
            let remaining = random.chance(60).then(|| random.below(2) as u32);
            let end = if as_prefix { End::Prefix { remaining } } else { End::Sentence };
            let read = |text: &str| {
                let reference = Reference { text, compact: false, languages: &languages, known: &known };
                let (ends, can_go_on) = reference.ends(&host, 0);
                (ends.contains(&text.len()), can_go_on)
            };
            let fits = |text: &str, may_go_on: bool| match (read(text), remaining) {
                ((true, _), _) => true,
                (_, Some(0)) | ((false, false), _) => false,
                (_, None) => may_go_on,
                (_, Some(_)) => may_go_on && PARTS.iter().any(|part| read(&format!("{text}{part}")).0),
            };
            let fillings = fillings(&slots, eos);
            let fitting: Vec<&(String, Vec<TokenId>)> =
                fillings.iter().filter(|(text, row)| fits(text, as_prefix && !row.contains(&eos))).collect();
            let (has_gap, canvas) = (slots.contains(&Slot::Gap), Canvas::new(slots, end));
            let what = format!("seed {seed}: {:?} as {end:?} of {lark}", canvas.slots());
            let mut solver = Solver::new(&constraint).unwrap();
            match solver.completable(&canvas).unwrap() {
                Decision::Yes(witness) => {
                    let tokens = witness.text(&constraint);
                    let text: String = tokens.iter().map(|token| PARTS[token.index()]).collect();
                    assert!(fits(&text, as_prefix), "{what}: {text}");
                    n_yes += 1;
                }
                Decision::No => {
                    assert!(fitting.is_empty(), "{what}: {:?}", fitting[0]);
                    n_no += 1;
                }
                Decision::Unknown(_) => n_unknown += 1,
            }
            let mut parsing = Solver::new(&constraint).unwrap().by(By::Parse(usize::MAX));
            let answer = parsing.completable(&canvas).unwrap();
            n_parsed += usize::from(answer.decided().is_some());
            let is_right = answer.decided().is_none_or(|answer| has_gap || answer != fitting.is_empty());
            assert!(is_right, "{what}: {answer:?} by all texts at once");
            let admissible = solver.admissible(&canvas).unwrap();
            let no_gaps = canvas.slots().iter().filter(|slot| **slot != Slot::Gap).enumerate();
            let holes = no_gaps.filter(|(_, slot)| **slot == Slot::Hole);
            for (hole, (at, _)) in holes.enumerate() {
                let allowed: BTreeSet<TokenId> = fitting.iter().map(|(_, row)| row[at]).collect();
                for token in (0..=eos.0).map(TokenId) {
                    let answer = admissible.get(hole, token).decided();
                    n_tokens += 1;
                    n_open += usize::from(answer.is_none());
                    // Longer fillings of a gap are not among those.
                    let is_right = match answer {
                        Some(true) => has_gap || allowed.contains(&token),
                        Some(false) => !allowed.contains(&token),
                        None => true,
                    };
                    assert!(is_right, "{what}: {answer:?} for {token:?} in hole {hole}");
                }
            }
        }
    }
    println!("{n_yes} yes, {n_no} no, {n_unknown} unknown; of {n_tokens} tokens {n_open} unknown");
    println!("{n_parsed} by all texts at once");
    assert!(seeds.len() < 20 || 4 * n_parsed > n_yes + n_no, "{n_parsed} by all texts at once");
    assert!(
        seeds.len() < 20
            || n_yes > 60 && n_no > 20 && n_unknown * 10 < n_yes + n_no && n_open * 10 < n_tokens
    );
}

#[test]
fn what_is_ignored_may_not_look_like_keys() {
    let options = Options::default();
    let schemas = |schema: &str| {
        embedded(schema, &options).map_err(|refusal| (ErrorKind::Unsupported, refusal.to_string()))
    };
    let parse = |lark: &str| parse_with_schemas(lark, &LarkOptions::default(), &schemas);
    for ignored in [r"/#[^\n]*/", r"/\w+/", "\"x\"", "/[ a]/", r#"/"/"#] {
        let error = parse(&format!("start: %json {{}}\n%ignore {ignored}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{ignored}: {error}");
        assert!(error.to_string().contains("is ignored"), "{ignored}: {error}");
        // Where all keys are listed, nothing is remembered.
        let listed = r#"{"properties":{"a":{"type":"null"}},"additionalProperties":false,"type":"object"}"#;
        parse(&format!("start: %json {listed}\n%ignore {ignored}")).unwrap();
    }
    for ignored in [r"/\s+/", "/[ \\t]/", "/;/"] {
        parse(&format!("start: %json {{}}\n%ignore {ignored}")).unwrap();
    }
}

#[test]
fn values_at_once_have_a_limit() {
    let grammar = {
        let schemas = |schema: &str| Ok(embedded(schema, &Options::default()).unwrap());
        parse_with_schemas("start: (/[^x]/ | %json {})*", &LarkOptions::default(), &schemas).unwrap()
    };
    let read = |open_values: usize, n: usize| {
        let limits = Limits { open_values, ..Limits::default() };
        let options = LanguageOptions { limits, ..LanguageOptions::default() };
        Language::new(grammar.clone(), &options).unwrap().read("[".repeat(n).as_bytes())
    };
    assert!(read(10, 10).unwrap().is_sentence);
    let error = read(10, 11).unwrap_err();
    assert_eq!((error.kind(), error.limit()), (ErrorKind::Limit, Some(("open_values", 10))), "{error}");
}

#[test]
fn trees_are_of_readings_that_repeat_nothing() {
    let schema = r#"{"type":["object","array"],"uniqueItems":true,"items":{"type":"integer"},
        "additionalProperties":{"type":"integer"}}"#;
    let lark = format!("start: json | free\njson: %json {}\nfree: /[^<]+/", object(schema));
    let constraint = constraint(&lark, &Options::default());
    let language = constraint.language();
    for (text, rule) in [
        ("{\"a\":1,\"b\":2}", "json"),
        ("{\"a\":1,\"a\":2}", "free"),
        ("{\"a\":1,\"b\":1,\"\\u0061\":2}", "free"),
        ("[1,2]", "json"),
        ("[1,2,10e-1]", "free"),
        ("<", "none"),
    ] {
        let tree = Tree::read(language, text.as_bytes()).unwrap();
        let below = tree.and_then(|tree| {
            let whole = tree.nodes.iter().filter(|node| node.span == (0..text.len()));
            whole.map(|node| language.grammar().symbol_name(node.symbol).to_owned()).nth(1)
        });
        assert_eq!(below.as_deref().unwrap_or("none"), rule, "{text}");
    }
}
