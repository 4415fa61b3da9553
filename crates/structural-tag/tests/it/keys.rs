//! Members between marks whose names may be anything: none is written twice.
//!
//! `ANYGRAM_SEED=17` replays one walk, `ANYGRAM_SEEDS=5000` sets how many there are (default 300).

use std::cell::RefCell;
use std::collections::HashMap;

use anygram_any_order::{Canvas, Decision, End, Slot, Solver};
use anygram_left_to_right::{Constraint, Matcher};
use anygram_testkit::random::Random;
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};
use serde_json::{Value, json};

use super::random::seeds;
use super::reference::belongs;
use super::{check, of_format};

/// All tokens; the last one is EOS.
const TOKENS: [&str; 23] = [
    "<parameter=",
    "<",
    "parameter=",
    "=a",
    "a",
    "b",
    "ab",
    ">",
    "</parameter>",
    "</",
    "parameter>\n",
    "x",
    "\n",
    "</f>",
    "<f>",
    ";",
    "a>x</parameter><parameter=",
    "</parameter><parameter=a>",
    "b></parameter><parameter=b></parameter>",
    "<f><parameter=a></parameter><parameter=a",
    "<f><parameter=a></parameter><parameter=a>",
    "></parameter></f><f><parameter=a></parameter>",
    "",
];
const EOS: TokenId = TokenId(TOKENS.len() as u32 - 1);

/// The rest of one of these completes whatever can be completed.
const COMPLETIONS: [&str; 4] = [
    "<f><parameter=zq></parameter></f>",
    "<parameter=zq></parameter>;;",
    "<parameter=zq></parameter>;",
    "<parameter=zq></parameter>",
];

fn members() -> Value {
    json!({"type": "qwen_xml_parameter", "json_schema": {"type": "object"}})
}

fn formats() -> Vec<Value> {
    let tag = json!({"type": "tag", "begin": "<f>", "content": members(), "end": "</f>"});
    let lined = json!({"type": "tag", "begin": "<f>", "content": members(), "end": ["\n</f>", ";"]});
    let triggered = |tag: &Value| json!({"type": "triggered_tags", "triggers": ["<f"], "tags": [tag]});
    let separator = json!({"type": "const_string", "value": ";"});
    let text = json!({"type": "any_text"});
    vec![
        members(),
        triggered(&tag),
        triggered(&lined),
        json!({"type": "sequence", "elements": [members(), separator, members(), separator]}),
        json!({"type": "star", "content": tag}),
        json!({"type": "sequence", "elements": [text, {"type": "optional", "content": tag}]}),
        json!({"type": "or", "elements": [tag, lined, {"type": "any_text", "excludes": ["a>"]}]}),
    ]
}

fn vocabulary() -> Vocabulary {
    let special = SpecialIds { eos: vec![EOS.0], ..SpecialIds::default() };
    Vocabulary::from_tokens(TOKENS, special).unwrap()
}

/// What the reference says of texts of a format.
struct Subject {
    format: Value,
    constraint: Constraint,
    known: RefCell<HashMap<String, bool>>,
}

impl Subject {
    fn all() -> Vec<Self> {
        let of = |format: Value| {
            let constraint = Constraint::new(of_format(&format.to_string()), vocabulary()).unwrap();
            Self { format, constraint, known: RefCell::default() }
        };
        formats().into_iter().map(of).collect()
    }

    fn is_sentence(&self, text: &str) -> bool {
        *self
            .known
            .borrow_mut()
            .entry(text.to_owned())
            .or_insert_with(|| belongs(&self.format, text.as_bytes()))
    }

    fn is_viable(&self, text: &str) -> bool {
        let rests = COMPLETIONS.iter().flat_map(|whole| (0..=whole.len()).map(|at| &whole[at..]));
        rests.into_iter().any(|rest| self.is_sentence(&format!("{text}{rest}")))
    }

    /// The fewest tokens that complete a text, if that are at most so many.
    fn fewest(&self, text: &str, most: usize) -> Option<usize> {
        let mut open = vec![text.to_owned()];
        for n in 0..=most {
            if open.iter().any(|text| self.is_sentence(text)) {
                return Some(n);
            }
            let longer = |text: &String| -> Vec<String> {
                let tokens = TOKENS.iter().filter(|token| !token.is_empty());
                tokens.map(|token| format!("{text}{token}")).collect()
            };
            open = open.iter().flat_map(longer).collect();
        }
        None
    }
}

/// A text that is not too long.
fn walk(matcher: &mut Matcher, random: &mut Random, most: usize) -> Vec<TokenId> {
    matcher.reset();
    for _ in 0..random.below(most) {
        let tokens: Vec<TokenId> = matcher.mask().unwrap().iter().filter(|&token| token != EOS).collect();
        if tokens.is_empty() {
            break;
        }
        matcher.advance(*random.choose(&tokens)).unwrap();
    }
    matcher.tokens().to_vec()
}

fn text(tokens: &[TokenId]) -> String {
    tokens.iter().map(|token| TOKENS[token.index()]).collect()
}

#[test]
fn masks_budgets_and_verdicts_are_those_of_the_reference() {
    let subjects = Subject::all();
    let (mut n_repeats, mut n_budgets) = (0, 0);
    for seed in seeds() {
        let mut random = Random::new(seed);
        let subject = &subjects[random.below(subjects.len())];
        let mut matcher = subject.constraint.matcher().unwrap();
        let written = text(&walk(&mut matcher, &mut random, 9));
        let mask = matcher.mask().unwrap();
        let context = || format!("{written:?} of {}, seed {seed}", subject.format);
        assert_eq!(mask.contains(EOS), subject.is_sentence(&written), "{}", context());
        for (at, token) in TOKENS.iter().enumerate().filter(|(_, token)| !token.is_empty()) {
            let longer = format!("{written}{token}");
            let is_viable = subject.is_viable(&longer);
            assert_eq!(mask.contains(TokenId::new(at)), is_viable, "{token:?} behind {}", context());
            let reading = subject.constraint.language().read(longer.as_bytes()).unwrap();
            assert_eq!(reading.is_viable, is_viable, "{token:?} behind {}", context());
            assert_eq!(reading.is_sentence, subject.is_sentence(&longer), "{token:?} behind {}", context());
            n_repeats += usize::from(!is_viable && longer.matches("=a>").count() > 1);
        }
        if let Some(fewest) = subject.fewest(&written, 2) {
            n_budgets += 1;
            assert_eq!(matcher.minimum_tokens(3).unwrap(), Some(fewest as u32), "{}", context());
            let within = matcher.mask_with_budget(fewest as u32 + 1).unwrap();
            for (at, token) in TOKENS.iter().enumerate().filter(|(_, token)| !token.is_empty()) {
                let longer = format!("{written}{token}");
                let fits = subject.is_viable(&longer) && subject.fewest(&longer, fewest).is_some();
                assert_eq!(within.contains(TokenId::new(at)), fits, "{token:?} behind {}", context());
            }
        }
    }
    let is_all = seeds().len() >= 300;
    assert!(!is_all || n_repeats > 100 && n_budgets > 30, "{n_repeats}, {n_budgets}");
}

#[test]
fn holes_are_filled_with_names_that_differ() {
    let subjects = Subject::all();
    let (mut n_no, mut n_yes, mut n_unknown) = (0, 0, 0);
    for seed in seeds() {
        let mut random = Random::new(seed);
        let subject = &subjects[random.below(subjects.len())];
        let mut matcher = subject.constraint.matcher().unwrap();
        let mut slots: Vec<Slot> = walk(&mut matcher, &mut random, 11).into_iter().map(Slot::Fixed).collect();
        slots.extend((0..random.below(2)).map(|_| Slot::Hole));
        for _ in 0..random.below(3) {
            if !slots.is_empty() {
                let at = random.below(slots.len());
                slots[at] = if random.chance(70) { Slot::Hole } else { Slot::Fixed(TokenId(4)) };
            }
        }
        if slots.iter().filter(|slot| **slot == Slot::Hole).count() > 2 {
            continue;
        }
        // Holes may be filled with EOS, but only behind the text.
        let mut texts = vec![(String::new(), false)];
        for slot in &slots {
            let tokens: Vec<TokenId> = match *slot {
                Slot::Fixed(token) => vec![token],
                _ => (0..=EOS.0).map(TokenId).collect(),
            };
            let filled = texts.iter().flat_map(|&(ref text, has_ended)| {
                let fits = move |token: &&TokenId| **token == EOS || !has_ended;
                tokens.iter().filter(fits).map(move |&token| {
                    (format!("{text}{}", TOKENS[token.index()]), has_ended || token == EOS)
                })
            });
            texts = filled.collect();
        }
        let exists = texts.iter().any(|(text, _)| subject.is_sentence(text));
        let canvas = Canvas::new(slots, End::Sentence);
        let context = || format!("{:?} of {}, seed {seed}", canvas.slots(), subject.format);
        match Solver::new(&subject.constraint).unwrap().completable(&canvas).unwrap() {
            Decision::Yes(witness) => {
                let tokens = witness.text(&subject.constraint);
                assert!(subject.is_sentence(&text(&tokens)), "{}", context());
                n_yes += 1;
            }
            Decision::No => {
                assert!(!exists, "{}", context());
                n_no += 1;
            }
            Decision::Unknown(_) => n_unknown += 1,
        }
    }
    let is_all = seeds().len() >= 300;
    assert!(
        !is_all || n_no > 30 && n_yes > 60 && n_unknown * 20 < n_no + n_yes,
        "{n_no}, {n_yes}, {n_unknown}"
    );
}

#[test]
fn names_differ_in_all_styles_and_in_each_call_by_itself() {
    let member = |style: &str, key: &str| match style {
        "qwen_xml" => format!("<parameter={key}>v</parameter>\n"),
        "minimax_xml" => format!("<parameter name=\"{key}\">v</parameter>\n"),
        "glm_xml" => format!("<arg_key>{key}</arg_key>\n<arg_value>v</arg_value>\n"),
        "deepseek_xml" => {
            format!("<｜DSML｜parameter name=\"{key}\" string=\"true\">v</｜DSML｜parameter>\n")
        }
        "deepseek_v4_1_xml" => {
            format!("<｜DSML｜ parameter name=\"{key}\" string=\"true\">v</｜DSML｜ parameter>\n")
        }
        _ => format!("<|open|>argument key=\"{key}\" type=\"string\"<|sep|>v<|close|>argument<|sep|>\n"),
    };
    for style in ["qwen_xml", "minimax_xml", "glm_xml", "deepseek_xml", "deepseek_v4_1_xml", "kimi_k3_xml"] {
        let content = json!({"type": "json_schema", "style": style, "json_schema": {}});
        let tag = json!({"type": "tag", "begin": "<f>", "content": content, "end": "</f>"});
        let format = json!({"type": "triggered_tags", "triggers": ["<f>"], "tags": [tag]}).to_string();
        let call = |keys: &[&str]| -> String {
            let members: String = keys.iter().map(|key| member(style, key)).collect();
            format!("text <f>\n{members}</f>")
        };
        let twice = format!("{}{}", call(&["a", "b"]), call(&["b", "a"]));
        check(
            &format,
            &["<f></f>", &call(&["a", "ab", "A"]), &twice],
            &[
                &call(&["a", "a"]),
                &call(&["ab", "b", "ab"]),
                &format!("{}{}", call(&["a"]), call(&["b", "b"])),
            ],
        );
    }
}

#[test]
fn members_without_a_known_end_are_refused() {
    let members = members();
    let refused = |format: &Value| {
        let tag = json!({"type": "structural_tag", "format": format}).to_string();
        super::language(&tag).err().map(|refusal| refusal.to_string())
    };
    let tag = |end: Value| json!({"type": "tag", "begin": "(", "content": members, "end": end});
    for format in [
        json!({"type": "star", "content": members}),
        json!({"type": "sequence", "elements": [members, members]}),
        json!({"type": "sequence", "elements": [members, {"type": "any_text"}]}),
        json!({"type": "sequence", "elements": [{"type": "any_text"}, members]}),
        json!({"type": "or", "elements": [members, {"type": "any_text"}]}),
        tag(json!("")),
        tag(json!("<param")),
        tag(json!(["\n", ")"])),
        tag(json!([")", "))"])),
        tag(json!({"type": "token", "token": "<|end|>"})),
        json!({"type": "dispatch", "rules": [["(", members]]}),
    ] {
        let refusal = refused(&format).unwrap_or_else(|| panic!("{format}"));
        assert!(refusal.contains("names are not declared"), "{refusal}: {format}");
    }
    let required =
        json!({"type": "qwen_xml_parameter", "json_schema": {"type": "object", "required": ["a"]}});
    assert!(refused(&required).is_some_and(|refusal| refusal.contains("\"a\" is required and not declared")));
}
