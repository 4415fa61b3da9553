//! The options that commands share, and what they name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anygram::{Compiler, Constraint, Engine, Error, GrammarFormat, Language, LexerMode, LoadOptions, Ties, Vocabulary};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};

#[derive(Clone, Copy, ValueEnum)]
enum LexerChoice {
    /// Every way to cut the text counts.
    Scannerless,
    /// One cut: the longest piece that any terminal matches.
    Longest,
    /// As longest, but only terminals that can come next compete.
    Contextual,
}

#[derive(Clone, Copy, ValueEnum)]
enum TiesChoice {
    /// All terminals of the highest priority that match a piece label it.
    All,
    /// Only one: a literal before a pattern, then the earlier declaration.
    First,
}

#[derive(Clone, Copy, ValueEnum)]
enum EngineChoice {
    /// The one that suits the grammar.
    Auto,
    /// The definition; slow.
    Reference,
}

/// Which grammar, and how to read it.
#[derive(Args)]
pub struct GrammarArgs {
    /// The grammar.
    #[arg(short, long, value_name = "FILE")]
    pub grammar: PathBuf,
    /// How the grammar is written, if its file name does not say.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// The start rule [default: start].
    #[arg(long, value_name = "NAME")]
    start: Option<String>,
    /// How texts are cut into terminals [default: contextual for Lark].
    #[arg(long, value_enum)]
    lexer: Option<LexerChoice>,
    /// What to do when several terminals match the same longest piece.
    #[arg(long, value_enum, default_value = "all")]
    ties: TiesChoice,
    /// The recognizer.
    #[arg(long, value_enum, default_value = "auto")]
    engine: EngineChoice,
}

impl GrammarArgs {
    /// The text of the grammar and its format.
    pub fn source(&self) -> Result<(String, GrammarFormat)> {
        let format = match &self.format {
            Some(name) => GrammarFormat::by_name(name).ok_or_else(|| anyhow!("unknown grammar format `{name}`; known: {}", formats())),
            None => GrammarFormat::of_path(&self.grammar).ok_or_else(|| {
                anyhow!("{}: the file name does not say the grammar's format; add --format, one of: {}", self.grammar.display(), formats())
            }),
        }?;
        let bytes = read(&self.grammar)?;
        let source = String::from_utf8(bytes).map_err(|error| {
            anyhow!("{}: not UTF-8 at byte {}", self.grammar.display(), error.utf8_error().valid_up_to())
        })?;
        Ok((source, format))
    }

    /// The compiler that the options describe.
    pub fn compiler(&self) -> Compiler {
        let mut compiler = Compiler::default();
        if let Some(start) = &self.start {
            compiler = compiler.start(start);
        }
        if let Some(lexer) = self.lexer {
            compiler = compiler.lexer(match lexer {
                LexerChoice::Scannerless => LexerMode::Scannerless,
                LexerChoice::Longest => LexerMode::Longest,
                LexerChoice::Contextual => LexerMode::Contextual,
            });
        }
        compiler = compiler.ties(match self.ties {
            TiesChoice::All => Ties::All,
            TiesChoice::First => Ties::First,
        });
        compiler.engine(match self.engine {
            EngineChoice::Auto => Engine::Auto,
            EngineChoice::Reference => Engine::Reference,
        })
    }

    /// The compiled grammar.
    pub fn language(&self) -> Result<Arc<Language>> {
        let (source, format) = self.source()?;
        self.compiler().compile(format, &source).map_err(|error| self.explain(error, &source))
    }

    /// An error with its place in the file.
    pub fn explain(&self, error: Error, source: &str) -> anyhow::Error {
        let name = self.grammar.display();
        match error {
            Error::Grammar(error) => anyhow!("{}", error.render(&name.to_string(), source).trim_end()),
            error => anyhow!("{name}: {error}"),
        }
    }
}

/// Which vocabulary.
#[derive(Args)]
pub struct VocabArgs {
    /// The vocabulary: tokenizer.json, .tiktoken, .tiktoken.gz, or a JSON array of tokens; `builtin` for ours.
    #[arg(short, long, value_name = "FILE")]
    vocab: PathBuf,
    /// A token that ends an output (repeatable); may lie beyond the file.
    #[arg(long, value_name = "ID")]
    eos: Vec<u32>,
    /// The token that pads after the end.
    #[arg(long, value_name = "ID")]
    pad: Option<u32>,
    /// The token that stands for a hole.
    #[arg(long, value_name = "ID")]
    mask: Option<u32>,
}

impl VocabArgs {
    /// The vocabulary.
    pub fn vocabulary(&self) -> Result<Vocabulary> {
        if self.vocab == Path::new("builtin") {
            return Ok(Vocabulary::builtin());
        }
        let options = LoadOptions { eos: self.eos.clone(), pad: self.pad, mask: self.mask, ..LoadOptions::default() };
        Vocabulary::from_file(&self.vocab, &options).map_err(|error| anyhow!("{error}"))
    }
}

/// A grammar and a vocabulary together.
pub fn constraint(grammar: &GrammarArgs, language: Arc<Language>, vocabulary: Vocabulary) -> Result<Constraint> {
    Constraint::new(language, vocabulary).map_err(|error| anyhow!("{}: {error}", grammar.grammar.display()))
}

/// The bytes of a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}

/// A text to replay.
pub struct Text {
    /// The text.
    pub text: String,
    /// Its tokens, if they were given.
    pub ids: Option<Vec<u32>>,
}

/// The texts of a file: one a line, or JSON Lines with `"text"` and perhaps `"ids"`.
pub fn texts(path: &Path) -> Result<Vec<Text>> {
    let source = String::from_utf8(read(path)?)
        .map_err(|error| anyhow!("{}: not UTF-8 at byte {}", path.display(), error.utf8_error().valid_up_to()))?;
    let json = source.trim_start().starts_with('{');
    let parse = |(at, line): (usize, &str)| {
        if !json {
            return Ok(Text { text: line.to_owned(), ids: None });
        }
        parse_text(line).with_context(|| format!("{} line {}", path.display(), at + 1))
    };
    source.lines().enumerate().filter(|(_, line)| !line.is_empty()).map(parse).collect()
}

fn parse_text(line: &str) -> Result<Text> {
    let value: serde_json::Value = serde_json::from_str(line)?;
    let Some(text) = value["text"].as_str() else { bail!("no string \"text\"") };
    let id = |value: &serde_json::Value| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| anyhow!("\"ids\" holds {value}, which is no token id"))
    };
    let ids = match value.get("ids") {
        None => None,
        Some(serde_json::Value::Array(ids)) => Some(ids.iter().map(id).collect::<Result<_>>()?),
        Some(_) => bail!("\"ids\" is not an array"),
    };
    Ok(Text { text: text.to_owned(), ids })
}

fn formats() -> String {
    GrammarFormat::ALL.map(GrammarFormat::name).join(", ")
}
