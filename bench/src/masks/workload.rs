//! Grammars and tokens to decode.

use std::path::{Path, PathBuf};

use anygram::{LoadOptions, Vocabulary};
use anyhow::{Context, Result, anyhow, bail};

use crate::input;

/// A grammar in Lark's notation and the tokens of its texts.
pub struct Workload {
    pub name: String,
    pub grammar: String,
    pub texts: Vec<Vec<u32>>,
    /// How many of all texts are not in the language; of a part of them, at most as many.
    pub outside: usize,
    /// Whether `texts` are all there are.
    pub is_whole: bool,
    pub goal: Option<Goal>,
}

/// Which workloads, and where their data are.
#[derive(clap::Args)]
pub struct Chosen {
    /// The folder of data and vocabularies.
    #[arg(long, value_name = "DIR", default_value = "../shared")]
    pub shared: PathBuf,
    /// Only workloads whose name begins so (repeatable).
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
}

impl Chosen {
    /// The vocabulary of the shared data.
    pub fn vocabulary(&self) -> Result<Vocabulary> {
        let path = self.shared.join("data/tokenizers/qwen.tiktoken.gz");
        let options = LoadOptions { eos: vec![151_643], ..LoadOptions::default() };
        Vocabulary::from_file(&path, &options).context("say where the shared data are by --shared")
    }

    /// Those of some names that are asked for, at least one.
    pub fn among<'a>(&self, names: &[&'a str]) -> Result<Vec<&'a str>> {
        let is_wanted =
            |name: &&str| self.only.is_empty() || self.only.iter().any(|only| name.starts_with(&**only));
        let chosen: Vec<&str> = names.iter().copied().filter(is_wanted).collect();
        if chosen.is_empty() {
            bail!("no workload begins with {}; there are {}", self.only.join(" or "), names.join(", "));
        }
        Ok(chosen)
    }

    /// One of the workloads that [`replayed`] knows.
    pub fn replayed(&self, name: &str, vocabulary: &Vocabulary) -> Result<Workload> {
        let found = replayed(&self.shared, vocabulary, |other| other == name, None)?;
        found.into_iter().next().ok_or_else(|| anyhow!("{name} is no workload"))
    }
}

/// What we want of mask and advance with warm tables.
#[derive(Clone, Copy)]
pub struct Goal {
    /// How many times as fast as the peer without limits, at the median and at the 99th percentile.
    pub p50_times: f64,
    pub p99_times: f64,
    /// At most so many microseconds at the median.
    pub p50_us: Option<f64>,
    /// The same for `advance` alone.
    pub advance_p50_us: Option<f64>,
}

const fn goal(
    p50_times: f64,
    p99_times: f64,
    p50_us: Option<f64>,
    advance_p50_us: Option<f64>,
) -> Option<Goal> {
    Some(Goal { p50_times, p99_times, p50_us, advance_p50_us })
}

/// Of programming languages, where nothing else is asked for.
const FAST_ADVANCE: Option<Goal> = goal(1.0, 1.0, None, Some(2.0));

/// The workloads of the shared data: name, texts outside of the language, goal.
///
/// Texts are rightly outside: two queries of sql_grammar use what SynCode's SQL lacks, some programs of
/// cpp_he use C++ outside the subset.
const REPLAYED: [(&str, usize, Option<Goal>); 20] = [
    ("sql_grammar", 2, goal(30.0, 5.0, Some(20.0), Some(2.0))),
    ("sqlite", 0, goal(50.0, 20.0, None, Some(2.0))),
    ("sqlite_kw", 0, FAST_ADVANCE),
    ("cpp", 0, FAST_ADVANCE),
    ("cpp_he", 5, goal(50.0, 5.0, None, Some(2.0))),
    ("smiles", 0, goal(30.0, 5.0, None, Some(2.0))),
    ("treebank_raw", 0, goal(200.0, 200.0, Some(250.0), None)),
    ("treebank_stripped", 0, goal(100.0, 100.0, None, None)),
    ("stress_cyclic", 0, None),
    ("stress_dyck", 0, None),
    ("stress_dyck_amb", 0, None),
    ("stress_expr_amb", 0, None),
    ("stress_expr_amb_ws", 0, None),
    ("stress_hidden_left", 0, None),
    ("stress_ident_amb", 0, None),
    ("stress_palin", 0, None),
    ("stress_right_rec", 0, None),
    ("stress_ss", 0, None),
    ("stress_ss_sep", 0, None),
    ("stress_sss", 0, None),
];

/// Which of them is made into one with spaced operators, and its name.
const SPACED: (&str, &str) = ("sqlite", "sqlite_spaced");

/// The workloads of a folder of shared data that are asked for, of each the first texts.
pub fn replayed(
    shared: &Path,
    vocabulary: &Vocabulary,
    is_wanted: impl Fn(&str) -> bool,
    first: Option<usize>,
) -> Result<Vec<Workload>> {
    let mut workloads = Vec::new();
    for (name, outside, goal) in REPLAYED {
        let is_spaced = name == SPACED.0 && is_wanted(SPACED.1);
        if !is_wanted(name) && !is_spaced {
            continue;
        }
        let file = |extension: &str| shared.join("data/replay").join(format!("{name}.{extension}"));
        let path = file("lark");
        let grammar = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut texts = input::texts(&file("tok.jsonl"))?;
        let n_texts = texts.len();
        texts.truncate(first.unwrap_or(n_texts));
        let is_whole = texts.len() == n_texts;
        if is_spaced {
            let encode = |text: &input::Text| -> Result<Vec<u32>> {
                Ok(vocabulary.encode(spaced_text(&text.text))?.into_iter().map(|token| token.0).collect())
            };
            workloads.push(Workload {
                name: SPACED.1.into(),
                grammar: spaced_grammar(&grammar),
                texts: texts.iter().map(encode).collect::<Result<_>>()?,
                outside,
                is_whole,
                goal: FAST_ADVANCE,
            });
        }
        if is_wanted(name) {
            let texts = texts.into_iter().map(|text| text.ids).collect();
            workloads.push(Workload { name: name.into(), grammar, texts, outside, is_whole, goal });
        }
    }
    Ok(workloads)
}

/// Operators that a blank must follow.
const OPERATORS: [char; 6] = ['+', '-', '*', '/', ',', ';'];

/// A grammar in which a blank belongs to each terminal that is one of the operators.
fn spaced_grammar(grammar: &str) -> String {
    let line = |line: &str| {
        let operator =
            OPERATORS.iter().find(|operator| line.trim_end().ends_with(&format!(": \"{operator}\"")));
        match operator {
            Some(operator) => line.replace(&format!("\"{operator}\""), &format!("\"{operator} \"")),
            None => line.to_owned(),
        }
    };
    grammar.lines().map(|text| line(text) + "\n").collect()
}

/// An SQL text with a blank after each operator that has none; strings, quoted names, words, numbers and
/// arrows stay.
fn spaced_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\'' | '"' | '`' => rest[1..].find(c).map_or(rest.len(), |at| at + 2),
            '[' => rest.find(']').map_or(rest.len(), |at| at + 1),
            '0'..='9' => number(rest),
            '_' | 'a'..='z' | 'A'..='Z' => rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'))
                .unwrap_or(rest.len()),
            '-' if rest.starts_with("->") => 2,
            _ => c.len_utf8(),
        };
        let (piece, after) = rest.split_at(length);
        out += piece;
        if length == 1 && OPERATORS.contains(&c) && !after.starts_with(' ') {
            out.push(' ');
        }
        rest = after;
    }
    out
}

/// The length of the number that a text begins with, the sign of its exponent included.
fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let is_sign = at > 0 && matches!(byte, b'+' | b'-') && matches!(bytes[at - 1], b'e' | b'E');
        if !(byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E') || is_sign) {
            break;
        }
        at += 1;
    }
    at
}

/// A small workload for the vocabulary that is built in.
pub fn built_in(vocabulary: &Vocabulary) -> Result<Workload> {
    const QUERIES: [&str; 6] = [
        "SELECT name, age FROM singer WHERE age > 20 AND NOT (age > 30)",
        "SELECT COUNT(*) FROM singer",
        "SELECT country, COUNT(*) FROM singer GROUP BY country HAVING COUNT(*) > 2;",
        "SELECT s.name AS n FROM singer JOIN concert ON id = singer ORDER BY age + 2 * 3 DESC LIMIT 10",
        "SELECT name FROM singer WHERE age > (SELECT AVG(age) FROM singer)",
        // No string ends in a line break: this one is outside.
        "SELECT name FROM singer WHERE name LIKE 'a\n",
    ];
    let encode =
        |text| -> Result<Vec<u32>> { Ok(vocabulary.encode(text)?.iter().map(|token| token.0).collect()) };
    Ok(Workload {
        name: "demo".into(),
        grammar: include_str!("../../../crates/cli/demo/sql.lark").into(),
        texts: QUERIES.into_iter().map(encode).collect::<Result<_>>()?,
        outside: 1,
        is_whole: true,
        goal: None,
    })
}

/// A grammar and a text of any length: how the cost of a step grows.
pub struct Growing {
    pub name: &'static str,
    pub grammar: &'static str,
    pub longest: usize,
    /// Pieces of one token each, as many as asked for; the last ones may be missing where a sentence has none
    /// of that length.
    pub text: fn(usize) -> String,
}

/// The grammars whose cost is drawn against the length.
pub const GROWING: [Growing; 5] = [
    Growing {
        name: "right recursion",
        grammar: "start: s\ns: \"a\" s | \"a\"\n",
        longest: 10_000,
        text: |n| "a".repeat(n),
    },
    Growing {
        name: "Dyck",
        grammar: "start: s\ns: \"a\" s \"b\" s | \"\"\n",
        longest: 10_000,
        text: |n| "a".repeat(n / 2) + &"b".repeat(n / 2),
    },
    Growing {
        name: "palindromes",
        grammar: "start: s\ns: \"a\" s \"a\" | \"b\" s \"b\" | \"a\" | \"b\" | \"\"\n",
        longest: 10_000,
        text: |n| {
            let half = "ab".repeat(n / 4);
            let back: String = half.chars().rev().collect();
            half + &back
        },
    },
    Growing {
        name: "s: s s | \"a\"",
        grammar: "start: s\ns: s s | \"a\"\n",
        longest: 2_000,
        text: |n| "a".repeat(n),
    },
    Growing {
        name: "e: e \"+\" e | e \"*\" e | \"n\"",
        grammar: "start: e\ne: e \"+\" e | e \"*\" e | \"n\"\n",
        longest: 2_000,
        text: |n| "n+n*".repeat(n / 4 + 1)[..n - 1 + n % 2].to_owned(),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_after_operators() {
        let text = "SELECT count(*), a->b,-1e-5*2 FROM t WHERE x = 'a,b;' AND \"c-d\"=[e+f];";
        let spaced = "SELECT count(* ), a->b, - 1e-5* 2 FROM t WHERE x = 'a,b;' AND \"c-d\"=[e+f]; ";
        assert_eq!(spaced_text(text), spaced);
        assert_eq!(spaced_text("'it''s, "), "'it''s, ");
    }

    #[test]
    fn blanks_in_terminals() {
        let grammar = "T_PLUS: \"+\"\nT_PTR: \"->\" | \"->>\"\nT_CONCAT: \"||\"\nT_COMMA: \",\"\n";
        let spaced = "T_PLUS: \"+ \"\nT_PTR: \"->\" | \"->>\"\nT_CONCAT: \"||\"\nT_COMMA: \", \"\n";
        assert_eq!(spaced_grammar(grammar), spaced);
    }

    #[test]
    fn growing_texts_are_about_as_long_as_asked_for() {
        for growing in &GROWING {
            for n in [8, 9, 100] {
                let length = (growing.text)(n).len();
                assert!(length <= n && length + 4 > n, "{}: {length} of {n}", growing.name);
            }
        }
    }
}
