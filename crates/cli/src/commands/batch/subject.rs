//! What questions are about: the grammar of the command line, or one that a question brings.
//!
//! What stays true: of the grammars that questions bring at most one is kept, that of the last question, so
//! thousands of them take no more memory than one. The vocabulary is shared by all.

use std::fmt;

use anygram::json_schema::Options;
use anygram::{CompileError, Compiler, Constraint, GrammarFormat, LexerMode, Matcher, Reader, Vocabulary};
use anyhow::{Context, Result, anyhow, bail, ensure};
use cpu_time::ThreadTime;
use serde_json::value::RawValue;

use super::{Question, canvas, us};
use crate::decoder::Decoder;
use crate::input::{self, ReadingArgs};

/// A constraint, with what is warm from one question to the next.
pub struct Subject {
    pub constraint: Constraint,
    pub matcher: Matcher,
    reader: Option<Reader<'static>>,
    pub solvers: canvas::Solvers,
    /// What answers plain masks, if not the matcher.
    pub device: Option<Decoder>,
    /// What compiling it took, if a question brought it.
    pub compile_us: Option<f64>,
    /// The text that it comes from.
    pub origin: Origin,
}

/// The text of a grammar, as far as it is known: explanations quote it.
#[derive(Default)]
pub struct Origin {
    pub source: String,
    /// How JSON schemas in it are read.
    pub schema: Options,
}

impl Subject {
    pub fn new(constraint: Constraint, device: Option<Decoder>) -> Result<Self> {
        let matcher = constraint.matcher()?;
        let solvers = canvas::Solvers::default();
        let origin = Origin::default();
        Ok(Self { constraint, matcher, reader: None, solvers, device, compile_us: None, origin })
    }

    /// What reads texts.
    pub fn reader(&mut self) -> Result<&mut Reader<'static>> {
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => Reader::shared(self.constraint.language().clone())?,
        };
        Ok(self.reader.insert(reader))
    }
}

/// All that questions can be about.
pub struct Subjects {
    pub given: Option<Subject>,
    /// The last one that a question brought, by the fields that it came in.
    kept: Option<(Vec<Option<String>>, Subject)>,
    compiler: Compiler,
    options: Options,
    format: Option<GrammarFormat>,
    vocabulary: Vocabulary,
}

/// A grammar that a question brings.
struct Brought {
    compiler: Compiler,
    format: GrammarFormat,
    source: String,
    schema: Options,
}

/// Why a grammar that a question brings is refused, and its text.
#[derive(Debug)]
pub struct Uncompiled {
    pub error: CompileError,
    pub source: String,
}

impl fmt::Display for Uncompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Uncompiled {}

/// The fields of a question that bring a grammar.
const FIELDS: [&str; 7] = ["schema", "options", "documents", "grammar", "format", "start", "lexer"];

impl Subjects {
    /// None yet.
    pub fn new(reading: &ReadingArgs, vocabulary: Vocabulary) -> Result<Self> {
        let (compiler, options) = (reading.compiler()?, reading.schema()?);
        Ok(Self { given: None, kept: None, compiler, options, format: reading.format()?, vocabulary })
    }

    /// What a question is about.
    pub fn of(&mut self, question: &Question<'_>) -> Result<&mut Subject> {
        let fields = FIELDS.map(|field| question.get(field));
        if fields.iter().all(Option::is_none) {
            return self.given.as_mut().context(
                "what is the question about? give it a \"schema\" or a \"grammar\", or the command --grammar",
            );
        }
        let is_same = |known: &[Option<String>]| {
            fields.iter().zip(known).all(|(field, known)| field.map(RawValue::get) == known.as_deref())
        };
        let kept = match self.kept.take() {
            Some(kept) if is_same(&kept.0) => kept,
            // Before the next is compiled, so that there are never two.
            old => {
                drop(old);
                let names = fields.map(|field| field.map(|value| value.get().to_owned()));
                (names.into(), self.compiled(question)?)
            }
        };
        Ok(&mut self.kept.insert(kept).1)
    }

    /// The grammar that a question brings.
    fn compiled(&self, question: &Question<'_>) -> Result<Subject> {
        let Brought { compiler, format, source, schema } = self.read(question)?;
        let start = ThreadTime::now();
        let language = compiler.compile(format, &source);
        let language = language.map_err(|error| Uncompiled { error, source: source.clone() })?;
        let constraint = Constraint::new(language, self.vocabulary.clone())?;
        let mut subject = Subject::new(constraint, None)?;
        subject.compile_us = Some(us(start));
        subject.origin = Origin { source, schema };
        Ok(subject)
    }

    /// The vocabulary of all questions.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The text of the grammar that a question brings, and how to read it.
    fn read(&self, question: &Question<'_>) -> Result<Brought> {
        if let Some(schema) = question.get("schema") {
            let others = ["grammar", "format", "start", "lexer"];
            if let Some(other) = others.into_iter().find(|field| question.get(field).is_some()) {
                bail!("\"schema\" and \"{other}\" do not go together: \"{other}\" is for a \"grammar\"");
            }
            let (options, source) = (self.options(question)?, schema.get().to_owned());
            let compiler = self.compiler.clone().schema(options.clone());
            return Ok(Brought { compiler, format: GrammarFormat::JsonSchema, source, schema: options });
        }
        let format = match question.get("format") {
            Some(_) => input::format(&question.string("format")?)?,
            None => self.format.context("no \"format\" of the grammar, such as \"lark\"")?,
        };
        let is_schema = format == GrammarFormat::JsonSchema;
        for field in ["options", "documents"] {
            ensure!(
                is_schema || question.get(field).is_none(),
                "\"{field}\" belongs to a \"schema\" in the same question, and there is none"
            );
        }
        let source = match question.get("grammar").map(RawValue::get) {
            // A tag is JSON, so it need not be a text.
            Some(tag) if format == GrammarFormat::StructuralTag && tag.starts_with('{') => tag.to_owned(),
            _ => question.string("grammar")?.into_owned(),
        };
        let schema = if is_schema { self.options(question)? } else { self.options.clone() };
        let mut compiler = self.compiler.clone().schema(schema.clone());
        if question.get("start").is_some() {
            compiler = compiler.start(question.string("start")?);
        }
        if question.get("lexer").is_some() {
            let name = question.string("lexer")?;
            let mode = LexerMode::ALL.into_iter().find(|mode| mode.name() == name);
            let known = LexerMode::ALL.map(LexerMode::name).join(", ");
            compiler = compiler.lexer(mode.ok_or_else(|| anyhow!("no lexer `{name}`; known: {known}"))?);
        }
        Ok(Brought { compiler, format, source, schema })
    }

    /// The options of schemas: those of the command line, and those of the question over them.
    fn options(&self, question: &Question<'_>) -> Result<Options> {
        let mut options = self.options.clone();
        for (name, value) in question.members("options")? {
            options.set(&name, value.get())?;
        }
        let documents = question.members("documents")?.into_iter();
        options.documents.extend(documents.map(|(address, text)| (address, text.get().to_owned())));
        Ok(options)
    }
}
