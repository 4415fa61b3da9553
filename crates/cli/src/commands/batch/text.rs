//! Questions about texts.

use anygram::{Captures, Tree};
use anygram_left_to_right::explain::explain;
use anygram_lexer::words::Words;
use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::Question;
use super::subject::Subject;
use crate::commands::check::refusal::{Source, Verdict};
use crate::commands::check::tree;
use crate::excerpt::Excerpt;

/// What was wanted. What was not is left out.
#[derive(Serialize)]
pub struct Answers {
    sentence: bool,
    viable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Explained>,
    /// Null if the text is not a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Option<Vec<Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    captures: Option<Vec<Value>>,
}

/// Where the viable beginning of a text ends, and why.
#[derive(Serialize)]
struct Explained {
    /// In bytes, and as a person counts, from 1.
    at: usize,
    line: usize,
    column: usize,
    /// If it is in the value of a JSON schema, the JSON pointer there, and which schema that is, if the
    /// grammar is more than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    /// What may stand there, in the words of the grammar.
    expected: Vec<String>,
    /// What the text is in the middle of, and what would make it valid.
    notes: Vec<String>,
    /// What would make a sentence of the beginning, if that was found.
    completion: Option<String>,
}

pub fn answer(subject: &mut Subject, question: &Question<'_>) -> Result<Answers> {
    let text = question.string("text")?;
    let text = text.as_bytes();
    let wants = question.wants(&["explain", "tree", "captures"])?;
    let is_wanted = |name: &str| wants.iter().any(|want| want == name);
    let reading = subject.reader()?.read(text)?;
    let (sentence, viable) = (reading.is_sentence, reading.is_viable);
    let language = &**subject.constraint.language();
    let mut answers = Answers { sentence, viable, explain: None, tree: None, captures: None };
    if is_wanted("explain") {
        let words = Words::new(&language.lexing().lexicon);
        let (reading, explanation) = explain(language, &words, text)?;
        answers.explain = Some(match explanation {
            None => {
                let Excerpt { line, column, .. } = Excerpt::new(text, reading.length);
                let (at, expected) = (reading.length, reading.expected);
                let (pointer, schema, completion) = (None, None, None);
                Explained { at, line, column, pointer, schema, expected, notes: vec![], completion }
            }
            Some(explanation) => {
                let source = Source {
                    language,
                    words: &words,
                    text: &subject.origin.source,
                    schema: &subject.origin.schema,
                };
                let verdict = Verdict::new(&source, text, &reading, &explanation);
                let completion = explanation.completion.and_then(|text| String::from_utf8(text).ok());
                let (at, Excerpt { line, column, .. }) = (reading.length, verdict.excerpt);
                let Verdict { pointer, schema, expected, notes, .. } = verdict;
                Explained { at, line, column, pointer, schema, expected, notes, completion }
            }
        });
    }
    if is_wanted("captures") {
        let language = subject.constraint.language();
        let (mut captures, mut events) = (Captures::new(language.clone())?, Vec::new());
        for (at, &byte) in text[..reading.length].iter().enumerate() {
            let told = captures.read(&[byte])?;
            events.extend(told.iter().map(|event| tree::event_at(language, event, at + 1)));
        }
        let rest = if sentence { captures.finish()?.unwrap_or_default() } else { Vec::new() };
        events.extend(rest.iter().map(|event| tree::event_at(language, event, text.len())));
        answers.captures = Some(events);
    }
    if is_wanted("tree") {
        let read = sentence.then(|| tree::read(language, text)).transpose()?;
        answers.tree = Some(read.map(|tree: Tree| tree::nodes(language, &tree)));
    }
    Ok(answers)
}
