//! The options that commands share, and what they name.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anygram::{
    CompileError, Compiler, Constraint, Engine, GrammarFormat, Language, LarkDialect, LexerMode, Limits,
    LoadOptions, SpecialIds, Ties, Vocabulary, json_schema,
};
use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, ValueEnum};

#[derive(Clone, Copy, ValueEnum)]
enum LexerChoice {
    /// Every way to cut the text into pieces counts.
    Scannerless,
    /// Each piece is the longest that any terminal matches.
    Longest,
    /// As longest, but only terminals that can come next compete.
    Contextual,
}

#[derive(Clone, Copy, ValueEnum)]
enum TiesChoice {
    /// All terminals of the highest priority that match the piece count.
    All,
    /// Only one counts: a literal before a pattern, then the one that is declared (else used) first.
    First,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineChoice {
    /// The one that suits the grammar, by a measurement.
    Auto,
    /// The definition of all others; slow.
    Reference,
    /// Earley over shared states: for nearly deterministic grammars.
    Earley,
    /// The incremental Valiant recognizer, bit-parallel: for ambiguous grammars.
    Valiant,
    /// The same on a GPU (replay and batch only).
    Cuda,
}

/// Which grammar, and how to read it.
#[derive(Args)]
pub struct GrammarArgs {
    /// The grammar: a file in Lark's notation (.lark), llama.cpp's (.gbnf), EBNF as XGrammar and the W3C
    /// write it (.ebnf), one regular expression (.regex), NLTK's notation (.cfg), a JSON schema
    /// (.schema.json), or a structural tag (.tag.json); each also as .gz.
    #[arg(short, long, value_name = "FILE")]
    pub grammar: PathBuf,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// How grammars are read and compiled.
#[derive(Args)]
pub struct ReadingArgs {
    /// How the grammar is written, if its file name does not say: lark, gbnf, ebnf, regex, nltk,
    /// json-schema or structural-tag.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// The start rule [default: %start of the grammar; else start in Lark, root in GBNF and EBNF].
    #[arg(long, value_name = "NAME")]
    start: Option<String>,
    /// Whose meaning a Lark grammar follows where python-lark and llguidance differ: lark or llguidance.
    #[arg(long, value_name = "DIALECT", default_value = "lark", value_parser = dialect)]
    dialect: LarkDialect,
    /// The lexer mode: how texts are cut into terminals [default: %lexer of a Lark grammar; else contextual
    /// for Lark, longest for NLTK, scannerless for the others].
    #[arg(long, value_enum)]
    lexer: Option<LexerChoice>,
    /// What to do when several terminals match the same longest piece.
    #[arg(long, value_enum, default_value = "all")]
    ties: TiesChoice,
    /// The recognizer.
    #[arg(long, value_enum, default_value = "auto")]
    engine: EngineChoice,
    /// Texts in which this stop string stands are no sentences; masks look ahead (repeatable). Not in the
    /// lexer mode contextual.
    #[arg(long, value_name = "TEXT")]
    avoid: Vec<String>,
    /// Set a limit on work or memory by the name that errors give (repeatable): `--limit
    /// compile_steps=100000`.
    #[arg(long, value_name = "NAME=N", value_parser = limit)]
    limit: Vec<(&'static str, u64)>,
    #[command(flatten)]
    schema: SchemaArgs,
}

/// What the texts of JSON schemas look like; for other grammars this changes nothing.
#[derive(Args)]
#[command(next_help_heading = "Options of JSON schemas")]
struct SchemaArgs {
    /// The order of keys: any, schema (as it declares them, others last), or the keys that come first
    /// [default: any].
    #[arg(long, value_name = "any|schema|KEY,…", value_parser = |text: &str| of_schema("key_order", text))]
    key_order: Option<String>,
    /// Blanks and line ends between the parts: any, at-most:N at a place, compact (none), spaced (`, ` and
    /// `: `), or indent:N as Python's json.dumps(indent=N) writes it [default: any].
    #[arg(long, value_name = "any|at-most:N|compact|spaced|indent:N")]
    #[arg(value_parser = |text: &str| of_schema("whitespace", text))]
    whitespace: Option<String>,
    /// Whether `format` has to hold: assert or annotate [default: assert].
    #[arg(long, value_name = "assert|annotate", value_parser = |text: &str| of_schema("formats", text))]
    formats: Option<String>,
    /// Which characters may be spelled by escapes: any, or those that are needed (no \u for what may stand by
    /// itself) [default: any].
    #[arg(long, value_name = "any|needed", value_parser = |text: &str| of_schema("escapes", text))]
    escapes: Option<String>,
    /// Keys that are not declared: as the schema says, or none but where a keyword asks for them [default:
    /// schema].
    #[arg(long, value_name = "schema|none", value_parser = |text: &str| of_schema("extra_keys", text))]
    extra_keys: Option<String>,
}

/// A value of an option of schemas as JSON, from JSON or the short form of command lines.
fn of_schema(name: &str, text: &str) -> Result<String, String> {
    let json = match text.split_once(':') {
        _ if text.starts_with(['[', '{', '"']) => text.to_owned(),
        _ if name == "key_order" && !["any", "schema"].contains(&text) => {
            serde_json::json!(text.split(',').collect::<Vec<_>>()).to_string()
        }
        Some((word, n)) => {
            let n = n.parse::<u64>().map_or_else(|_| n.into(), serde_json::Value::from);
            serde_json::json!({word.replace('-', "_"): n}).to_string()
        }
        None => serde_json::Value::from(text).to_string(),
    };
    json_schema::Options::default().set(name, &json).map_err(|error| error.to_string())?;
    Ok(json)
}

/// The dialect with this name.
fn dialect(name: &str) -> Result<LarkDialect, String> {
    let known = LarkDialect::ALL.map(LarkDialect::name).join(", ");
    LarkDialect::by_name(name).ok_or_else(|| format!("no dialect `{name}`; there are {known}"))
}

/// A limit and its value.
fn limit(text: &str) -> Result<(&'static str, u64), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=N")?;
    let mut all = Limits::NAMES.into_iter().chain(json_schema::Options::LIMITS);
    let known = all.clone().find(|known| *known == name);
    let known = known.ok_or_else(|| {
        let all: Vec<&str> = all.by_ref().collect();
        format!("no limit `{name}`; there are {}", all.join(", "))
    })?;
    let value = value.replace('_', "").parse().map_err(|_| format!("`{value}` is not a number"))?;
    Ok((known, value))
}

impl Default for ReadingArgs {
    fn default() -> Self {
        Self {
            format: None,
            start: None,
            dialect: LarkDialect::Lark,
            lexer: None,
            ties: TiesChoice::All,
            engine: EngineChoice::Auto,
            avoid: Vec::new(),
            limit: Vec::new(),
            schema: SchemaArgs {
                key_order: None,
                whitespace: None,
                formats: None,
                escapes: None,
                extra_keys: None,
            },
        }
    }
}

impl ReadingArgs {
    /// The format that all grammars have, if one was named.
    pub fn format(&self) -> Result<Option<GrammarFormat>> {
        self.format.as_deref().map(format).transpose()
    }

    /// What the texts of schemas look like.
    pub fn schema(&self) -> Result<json_schema::Options> {
        let mut options = json_schema::Options::default();
        let SchemaArgs { key_order, whitespace, formats, escapes, extra_keys } = &self.schema;
        let given = [
            ("key_order", key_order),
            ("whitespace", whitespace),
            ("formats", formats),
            ("escapes", escapes),
            ("extra_keys", extra_keys),
        ];
        for (name, value) in given {
            if let Some(json) = value {
                options.set(name, json)?;
            }
        }
        for &(name, value) in &self.limit {
            options.set_limit(name, value);
        }
        Ok(options)
    }

    /// The compiler that the options describe; it imports no files.
    pub fn compiler(&self) -> Result<Compiler> {
        let mut compiler = Compiler::default().schema(self.schema()?).dialect(self.dialect);
        compiler = compiler.avoid(self.avoid.clone());
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
        let mut limits = Limits::default();
        for &(name, value) in &self.limit {
            limits.set(name, value);
        }
        compiler = compiler.limits(limits);
        compiler = compiler.ties(match self.ties {
            TiesChoice::All => Ties::All,
            TiesChoice::First => Ties::First,
        });
        Ok(compiler.engine(match self.engine {
            EngineChoice::Auto => Engine::Auto,
            EngineChoice::Reference => Engine::Reference,
            EngineChoice::Earley => Engine::Earley,
            // What the device does not answer the same engine of the CPU does.
            EngineChoice::Valiant | EngineChoice::Cuda => Engine::Valiant,
        }))
    }
}

/// The format with this name.
pub fn format(name: &str) -> Result<GrammarFormat> {
    let known = GrammarFormat::ALL.map(GrammarFormat::name).join(", ");
    GrammarFormat::by_name(name)
        .ok_or_else(|| anyhow!("grammars in `{name}` are not read; known formats: {known}"))
}

impl GrammarArgs {
    /// A file, and all else as the file says or by default.
    pub fn of_file(path: &Path) -> Self {
        Self { grammar: path.to_owned(), reading: ReadingArgs::default() }
    }

    /// What the texts of schemas look like.
    pub fn schema(&self) -> Result<json_schema::Options> {
        self.reading.schema()
    }

    /// The text of the grammar and its format.
    pub fn source(&self) -> Result<(String, GrammarFormat)> {
        let format = self.format()?;
        let name = self.grammar.display();
        let bytes = unpacked(read(&self.grammar)?).with_context(|| name.to_string())?;
        if format == GrammarFormat::Nltk && std::str::from_utf8(&bytes).is_err() {
            // NLTK's own large grammars are.
            anstream::eprintln!("{name}: read as Latin-1, since it is not UTF-8");
            return Ok((bytes.into_iter().map(char::from).collect(), format));
        }
        let source = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
            anyhow!(
                "{name}: a grammar is UTF-8, but byte {at}, in line {line}, is not; save the file as UTF-8"
            )
        })?;
        Ok((source, format))
    }

    fn format(&self) -> Result<GrammarFormat> {
        if let Some(format) = self.reading.format()? {
            return Ok(format);
        }
        GrammarFormat::of_path(&self.grammar).ok_or_else(|| {
            let name = self.grammar.display();
            let known = GrammarFormat::ALL.map(GrammarFormat::name).join(", ");
            anyhow!(
                "{name}: the file name does not end in a known format; say it with --format, one of: {known}"
            )
        })
    }

    /// The compiler that the options describe.
    pub fn compiler(&self) -> Result<Compiler> {
        Ok(self.reading.compiler()?.imports(self.grammar.parent().unwrap_or(Path::new(""))))
    }

    /// Whether masks are to be computed on a device.
    pub fn is_for_device(&self) -> bool {
        self.reading.engine == EngineChoice::Cuda
    }

    /// Whether the choice of the engine is left to the program.
    pub fn may_be_for_device(&self) -> bool {
        self.reading.engine == EngineChoice::Auto
    }

    /// Fails if masks are to be computed on a device, for commands that compute none.
    pub fn refuse_device(&self) -> Result<()> {
        ensure!(
            !self.is_for_device(),
            "--engine cuda is for masks, in `replay` and `batch` only: choose another engine"
        );
        Ok(())
    }

    /// The compiled grammar, for the engines of the CPU.
    pub fn language(&self) -> Result<Arc<Language>> {
        self.refuse_device()?;
        self.language_of_any_engine()
    }

    /// The compiled grammar, perhaps for the device.
    pub fn language_of_any_engine(&self) -> Result<Arc<Language>> {
        let (source, format) = self.source()?;
        self.compile(format, &source)
    }

    /// Compiles what [`GrammarArgs::source`] read.
    pub fn compile(&self, format: GrammarFormat, source: &str) -> Result<Arc<Language>> {
        self.compiler()?.compile(format, source).map_err(|error| self.explain(error, source))
    }

    /// The grammar with a vocabulary.
    pub fn constraint(&self, language: Arc<Language>, vocabulary: Vocabulary) -> Result<Constraint> {
        Constraint::new(language, vocabulary).map_err(|error| anyhow!("{}: {error}", self.grammar.display()))
    }

    /// An error with its place in the file.
    pub fn explain(&self, error: CompileError, source: &str) -> anyhow::Error {
        let name = self.grammar.display();
        match error.grammar_error() {
            Some(error) => Rendered(error.render(&name.to_string(), source).trim_end().to_owned()).into(),
            None => anyhow!("{name}: {error}"),
        }
    }
}

/// An error of several lines that brings its own heading.
#[derive(Debug)]
pub struct Rendered(String);

impl fmt::Display for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Rendered {}

/// Which vocabulary.
#[derive(Args)]
pub struct VocabArgs {
    /// The vocabulary: tokenizer.json, .tiktoken, a SentencePiece .model (each also as .gz), a JSON array of
    /// tokens, or what `anygram vocab save` wrote; `builtin` is a small one of ours.
    #[arg(short, long, value_name = "FILE", default_value = "builtin")]
    vocab: PathBuf,
    /// The EOS token (repeatable); the id may be beyond the file.
    #[arg(long, value_name = "ID")]
    eos: Vec<u32>,
    /// The PAD token.
    #[arg(long, value_name = "ID")]
    pad: Option<u32>,
    /// The MASK token, which stands for a hole.
    #[arg(long, value_name = "ID")]
    mask: Option<u32>,
    /// A special token and its name in grammars, such as '<|im_end|>=151645' (repeatable); the id may be
    /// beyond the file.
    #[arg(long, value_name = "NAME=ID", value_parser = special)]
    special: Vec<(u32, String)>,
    /// The pre-tokenizer of a .tiktoken file, a regular expression [default: that of the Qwen models].
    #[arg(long, value_name = "REGEX")]
    pattern: Option<String>,
    /// The id of rank 0 of a .tiktoken file.
    #[arg(long, value_name = "N", default_value_t = 0)]
    id_offset: u32,
}

/// NAME=ID; names may have a `=` too.
fn special(text: &str) -> Result<(u32, String), String> {
    let (name, id) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected NAME=ID")?;
    let id = id.parse().map_err(|error| format!("`{id}` is no id: {error}"))?;
    Ok((id, name.to_owned()))
}

impl VocabArgs {
    /// What people call it: the name of its file.
    pub fn name(&self) -> String {
        let name = self.vocab.file_name().unwrap_or(self.vocab.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> Result<Vocabulary> {
        if self.vocab == Path::new("builtin") {
            return self.builtin();
        }
        let options = LoadOptions {
            eos: self.eos.clone(),
            pad: self.pad,
            mask: self.mask,
            names: self.special.clone(),
            pattern: self.pattern.clone(),
            id_offset: self.id_offset,
        };
        Vocabulary::from_file(&self.vocab, &options).map_err(|error| anyhow!("{error}"))
    }

    /// Ours; its special tokens are its own unless others are named.
    fn builtin(&self) -> Result<Vocabulary> {
        if self.pattern.is_some() || self.id_offset != 0 {
            bail!("--pattern and --id-offset are for .tiktoken files only: leave them out");
        }
        let builtin = Vocabulary::builtin();
        let own = SpecialIds {
            eos: builtin.eos().iter().map(|token| token.0).collect(),
            pad: builtin.pad().map(|token| token.0),
            mask: builtin.mask().map(|token| token.0),
        };
        let special = SpecialIds {
            eos: if self.eos.is_empty() { own.eos } else { self.eos.clone() },
            pad: self.pad.or(own.pad),
            mask: self.mask.or(own.mask),
        };
        let names = self.special.iter().map(|(id, name)| (*id, name.as_str()));
        builtin
            .with_special(special)
            .and_then(|own| own.with_names(names))
            .map_err(|error| anyhow!("{error}"))
    }
}

/// The bytes of a grammar, unpacked if they are in gzip.
fn unpacked(bytes: Vec<u8>) -> Result<Vec<u8>> {
    const LARGEST: u64 = 256 << 20;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let mut grammar = Vec::new();
    let n_read = flate2::read::MultiGzDecoder::new(&bytes[..]).take(LARGEST + 1).read_to_end(&mut grammar)?;
    ensure!(n_read as u64 <= LARGEST, "unpacked it has more than {LARGEST} bytes");
    Ok(grammar)
}

/// The bytes of a file, or of standard input where the file is `-`.
pub fn read_or_stdin(path: &Path) -> Result<Vec<u8>> {
    if path.as_os_str() != "-" {
        return read(path);
    }
    let mut text = Vec::new();
    std::io::stdin().lock().read_to_end(&mut text).context("standard input")?;
    Ok(text)
}

/// The bytes of a file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| path.display().to_string())
}
