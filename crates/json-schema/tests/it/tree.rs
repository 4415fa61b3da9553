//! Parse trees and captures of schemas: a text has a tree if and only if it is in the language, and each node
//! spans a text of its own nonterminal.

use std::collections::BTreeMap;
use std::sync::Arc;

use anygram_bits::{ErrorKind, Random};
use anygram_grammar::ir::{Grammar, NonterminalId, Symbol};
use anygram_grammar::lark::{LarkOptions, parse_with_schemas};
use anygram_json_schema::{Options, embedded, grammar};
use anygram_left_to_right::captures::{CaptureEvent, Captures};
use anygram_left_to_right::tree::Tree;
use anygram_left_to_right::{Language, LanguageOptions};
use anygram_schema_oracle::Value;
use anygram_schema_oracle::generate::Generator;

fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(300)
}

/// A grammar, its language, and those of its nonterminals, as far as somebody asked for them.
struct Known {
    grammar: Grammar,
    language: Arc<Language>,
    of: BTreeMap<NonterminalId, Language>,
}

impl Known {
    fn new(grammar: Grammar) -> Option<Self> {
        let language = Language::new(grammar.clone(), &LanguageOptions::default()).ok()?;
        Some(Self { grammar, language: Arc::new(language), of: BTreeMap::new() })
    }

    fn derives(&mut self, n: NonterminalId, text: &[u8]) -> bool {
        let language = self.of.entry(n).or_insert_with(|| {
            let grammar = Grammar { start: n, ..self.grammar.clone() };
            Language::new(grammar, &LanguageOptions::default()).unwrap()
        });
        language.read(text).unwrap().is_sentence
    }

    /// Whether a text is a sentence; its tree and its captures are held against that.
    fn check(&mut self, text: &[u8]) -> bool {
        let shown = String::from_utf8_lossy(text).into_owned();
        let is_sentence = self.language.read(text).unwrap().is_sentence;
        let tree = Tree::read(&self.language, text).unwrap();
        assert_eq!(tree.is_some(), is_sentence, "{shown}");
        let Some(tree) = tree else { return false };
        let mut at = 0;
        for node in &tree.nodes {
            let part = &text[node.span.clone()];
            match node.symbol {
                Symbol::Nonterminal(n) => {
                    let name = self.grammar.symbol_name(node.symbol).to_string();
                    assert!(self.derives(n, part), "{shown}: {name} {:?}", node.span);
                }
                Symbol::Terminal(terminal) => {
                    assert!(text[at..node.span.start].iter().all(u8::is_ascii_whitespace), "{shown}");
                    at = node.span.end;
                    let remembered = self.grammar.terminals[terminal.index()].memory;
                    let is_distinct = remembered.is_some_and(|remembered| remembered.is_distinct());
                    if let Some(memory) = self.grammar.memory.as_ref().filter(|_| is_distinct) {
                        let mut memory = memory.fork();
                        let memory = Arc::get_mut(&mut memory).unwrap();
                        text[..at].iter().for_each(|&byte| memory.step(byte));
                        assert!(!memory.repeats(), "{shown}: {:?} is there twice", node.span);
                    }
                }
            }
        }
        assert!(text[at..].iter().all(u8::is_ascii_whitespace), "{shown}");
        self.check_captures(text, &tree);
        true
    }

    /// All events are those of the tree, each once.
    fn check_captures(&self, text: &[u8], tree: &Tree) {
        let shown = String::from_utf8_lossy(text);
        let mut captures = Captures::new(self.language.clone()).unwrap();
        let mut events: Vec<CaptureEvent> = Vec::new();
        for &byte in text {
            events.extend(captures.read(&[byte]).unwrap());
        }
        events.extend(captures.finish().unwrap().unwrap_or_else(|| panic!("{shown}")));
        let mut expected = Vec::new();
        for node in tree.nodes.iter().filter(|node| !node.span.is_empty()) {
            if let Symbol::Nonterminal(rule) = node.symbol {
                let start = node.span.start;
                let both = [None, Some(node.span.end)].map(|end| CaptureEvent { rule, start, end });
                expected.extend(both);
            }
        }
        expected.sort_unstable();
        expected.dedup();
        events.sort_unstable();
        assert_eq!(events, expected, "{shown}");
    }
}

/// The same value with some keys and items twice.
fn repeated(random: &mut Random, value: &Value) -> Value {
    fn double<T: Clone>(random: &mut Random, mut parts: Vec<T>) -> Vec<T> {
        if !parts.is_empty() && random.chance(30) {
            let part = random.choose(&parts).clone();
            parts.insert(random.below(parts.len() + 1), part);
        }
        parts
    }
    match value {
        Value::Array(items) => {
            let items: Vec<Value> = items.iter().map(|item| repeated(random, item)).collect();
            Value::Array(double(random, items))
        }
        Value::Object(members) => {
            let members: Vec<(String, Value)> =
                members.iter().map(|(key, value)| (key.clone(), repeated(random, value))).collect();
            Value::Object(double(random, members))
        }
        other => other.clone(),
    }
}

#[test]
fn a_text_has_a_tree_if_it_is_in_the_language() {
    let (mut n_trees, mut n_none) = (0, 0);
    for seed in seeds() {
        let mut generator = Generator::new(seed + 5_000_000);
        let schema = generator.schema(3);
        let text = generator.spell(&schema);
        let Ok(alone) = grammar(&text, &Options::default()) else { continue };
        let Some(mut alone) = Known::new(alone) else { continue };
        let host =
            format!("start: (\"<t>\" %json {{\"allOf\":[{}]}})+ /[a-z]*/", text.replace(['\n', '\r'], " "));
        let lower = |text: &str| {
            embedded(text, &Options::default())
                .map_err(|refusal| (ErrorKind::Unsupported, refusal.to_string()))
        };
        let within = parse_with_schemas(&host, &LarkOptions::default(), &lower);
        let mut within = within.ok().and_then(Known::new);
        let mut random = Random::new(seed);
        let mut texts = Vec::new();
        for _ in 0..8 {
            let value = generator.value_for(&schema, 3);
            let value = if random.chance(50) { repeated(&mut random, &value) } else { value };
            let text = generator.spell(&value);
            if text.len() > 400 {
                continue;
            }
            if alone.check(text.as_bytes()) {
                n_trees += 1
            } else {
                n_none += 1
            }
            texts.push(format!("<t>{text}"));
        }
        if let Some(within) = &mut within {
            for texts in texts.chunks(2) {
                if within.check(texts.concat().as_bytes()) { n_trees += 1 } else { n_none += 1 }
            }
        }
    }
    println!("{n_trees} texts with a tree, {n_none} without");
    assert!(seeds().len() < 300 || n_trees > 500 && n_none > 500);
}
