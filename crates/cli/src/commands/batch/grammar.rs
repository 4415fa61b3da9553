//! Questions about a grammar itself: what `anygram check` says of it.

use anygram_left_to_right::example::Examples;
use anygram_lexer::words::Words;
use anyhow::{Result, ensure};
use serde::Serialize;

use super::Question;
use super::subject::Subject;
use crate::commands::check::report::{self, Doubts, Remark};
use crate::excerpt::Excerpt;

/// Sentences of one question.
const MOST_EXAMPLES: u32 = 1_000;

/// What was wanted. What was not is left out.
#[derive(Serialize, Default)]
pub struct Answers {
    #[serde(skip_serializing_if = "Option::is_none")]
    facts: Option<Vec<(&'static str, String)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Placed>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hints: Option<Vec<Placed>>,
    /// Random sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    examples: Option<Vec<String>>,
}

/// A remark with its place, if it has one: in bytes, and as a person counts, from 1.
#[derive(Serialize)]
struct Placed {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<(usize, usize)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

pub fn answer(subject: &mut Subject, question: &Question<'_>) -> Result<Answers> {
    let mut wants = question.wants(&["facts", "warnings", "hints", "examples"])?;
    if wants.is_empty() {
        wants.push("warnings".to_owned());
    }
    let is_wanted = |name: &str| wants.iter().any(|want| want == name);
    let language = &**subject.constraint.language();
    let words = Words::new(&language.lexing().lexicon);
    let source = &*subject.origin.source;
    let about = report::Subject { language, words: &words, name: "", source };
    let mut answers = Answers::default();
    if is_wanted("facts") {
        answers.facts = Some(report::facts(&about)?);
    }
    if is_wanted("warnings") || is_wanted("hints") {
        let Doubts { warnings, hints } = Doubts::new(&about)?;
        let placed = |remarks: Vec<Remark>| remarks.into_iter().map(|remark| Placed::new(remark, source));
        answers.warnings = is_wanted("warnings").then(|| placed(warnings).collect());
        answers.hints = is_wanted("hints").then(|| placed(hints).collect());
    }
    if is_wanted("examples") {
        let count = question.number("count")?.unwrap_or(1);
        ensure!(count <= MOST_EXAMPLES, "{count} examples are too many for one question: {MOST_EXAMPLES}");
        let seed = question.number("seed")?.unwrap_or(0);
        let found = Examples::new(language, &words)?.random(count as usize, seed.into());
        let texts = found.into_iter().map(|text| String::from_utf8_lossy(&text).into_owned());
        answers.examples = Some(texts.collect());
    }
    Ok(answers)
}

impl Placed {
    fn new(remark: Remark, source: &str) -> Self {
        let Remark { span, message, help } = remark;
        let place = span.as_ref().map(|span| Excerpt::new(source.as_bytes(), span.start));
        let (line, column) = (place.as_ref().map(|at| at.line), place.as_ref().map(|at| at.column));
        Self { message, help, span: span.map(|span| (span.start, span.end)), line, column }
    }
}
