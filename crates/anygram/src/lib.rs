//! Anygram: constrained decoding for any context-free grammar, left to right and on the canvases of diffusion
//! models.
//!
//! Compile once, constrain many:
//!
//! ```
//! use anygram::{Compiler, Constraint, GrammarFormat, Vocabulary};
//!
//! let grammar = r#"start: "(" start ")" | "x""#;
//! let language = Compiler::default().compile(GrammarFormat::Lark, grammar)?;
//! let constraint = Constraint::new(language, Vocabulary::builtin())?;
//!
//! let mut matcher = constraint.matcher()?;
//! matcher.advance_text("(x")?;
//! assert!(!matcher.is_sentence());
//! let mask = matcher.mask()?; // which tokens may come next
//! assert!(mask.contains(constraint.vocabulary().encode(")")?[0]));
//! mask.apply_to_logits(&mut vec![0.0_f32; constraint.vocabulary().len()]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | type | role |
//! |---|---|
//! | [`Compiler`] | options; turns the text of a grammar into a [`Language`] |
//! | [`Language`] | a compiled grammar; immutable, shared, knows texts but no tokens |
//! | [`Vocabulary`] | the tokens of a model; [`prepare`] does ahead what first JSON schemas would wait for |
//! | [`Tree`] | the parse tree of a finished text |
//! | [`Captures`] | which part of a text is which rule, while it is being written |
//! | [`tools`] | tools of a model as a structural tag ([`GrammarFormat::StructuralTag`]) |
//! | [`Constraint`] | a language and a vocabulary; cheap to clone |
//! | [`Matcher`] | the state of one output: mask, advance, rollback, fork, validate, masks after drafts |
//! | [`TablesBound`] | one bound on the memory of the tables of many constraints |
//! | [`batch_masks`] | the masks of many outputs, on several threads |
//! | [`Canvas`] | a row of slots that is filled in any order: tokens, holes, gaps |
//! | [`batch_canvases`] | questions about many canvases, on several threads |
//! | [`Solver`] | answers about canvases: completable, admissible, compatible, minimum |
//! | [`AdmissibleRows`] | admissible tokens of holes, decided one by one as they are asked for |
//! | [`Weigher`] | the likeliest completion of a canvas by log-probabilities, and exact samples |
//! | [`Methods`] | the published methods (IG-CD, LAVE, …) answer whether a canvas is completable |
//! | [`Decoder`] | the loop in which a [`Model`] fills a canvas by a strategy of [`decode::STRATEGIES`] |
//!
//! # Errors
//!
//! Each error has a `kind()`, an [`ErrorKind`] that all of them share, and where a limit was reached
//! `limit()`, its name and value for [`Limits::set`].
//!
//! | error | of |
//! |---|---|
//! | [`CompileError`] | compiling a grammar and joining it with a vocabulary; [`GrammarError`] in it knows the place |
//! | [`VocabError`] | loading and using a vocabulary |
//! | [`MatchError`] | outputs; [`Refusal`] in it says why a token is not allowed |
//! | [`CanvasError`] | canvases, log-probabilities, and all questions about them |
//! | [`DecodeError`] | the decoding loop |
//! | [`StepError`] | reading texts, and the cause in [`MatchError`] and [`Undecided`]: a limit, a request to stop |
//!
//! ```
//! use anygram::{Compiler, ErrorKind, GrammarFormat, Limits};
//!
//! let mut limits = Limits::default();
//! limits.set("dfa_states", 10);
//! let compile = |limits| Compiler::default().limits(limits).compile(GrammarFormat::Regex, "[ab]*a[ab]{9}c");
//! let error = compile(limits).unwrap_err();
//! assert_eq!((error.kind(), error.limit()), (ErrorKind::Limit, Some(("dfa_states", 10))));
//! limits.set("dfa_states", 10_000);
//! assert!(compile(limits).is_ok());
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use anygram_any_order::{
    Admissible, AdmissibleRow, AdmissibleRows, Assignment, Canvas, CanvasError, Counters, Decision, End,
    Filling, Floor, LogProbs, SampleBy, SampleOptions, Slot, Solver, StageCount, Tail, Undecided, Weigher,
    Witness, batch_canvases,
};
pub use anygram_bits::ErrorKind;
pub use anygram_bits::work::Cancel;
pub use anygram_decoding::decode;
pub use anygram_decoding::decode::{
    DecodeError, DecodeOptions, Decoded, Decoder, Model, ModelError, OpenSlots, View,
};
pub use anygram_decoding::intersection::{
    Complete, FormSizes, Infilling, Intersected, IntersectionBy, IntersectionOptions, IntersectionStats,
};
pub use anygram_decoding::{Lookahead, Method, Methods, Verdict};
pub use anygram_grammar::ir;
pub use anygram_grammar::ir::Span;
pub use anygram_grammar::ir::{Grammar, LexerMode, Ties};
pub use anygram_grammar::lark::{LarkDialect, NamedGrammar};
pub use anygram_grammar::{GrammarError, Warning};
pub use anygram_left_to_right::captures::{CaptureEvent, Captures};
pub use anygram_left_to_right::language::{Reader, Reading};
pub use anygram_left_to_right::tree::{Tree, TreeNode};
pub use anygram_left_to_right::{
    BatchOptions, CompileError, Constraint, Draft, Forced, Language, LanguageOptions, Limits, MaskRows,
    MatchError, Matcher, MemoCounts, Refusal, StepError, TablesBound, TokenSet, Warm, batch_masks,
    batch_masks_into, batch_masks_timed,
};
pub use anygram_lexer::LexerLimits;
pub use anygram_recognizer::probe::Probe;
pub use anygram_recognizer::{Engine, RecognizerLimits};
pub use anygram_vocab::{Format, LoadOptions, Logit, SpecialIds, TokenId, TokenMask, VocabError, Vocabulary};

mod prepare;
mod schema_place;

pub use prepare::prepare;
pub use schema_place::{SchemaPlace, schema_place};

/// How a grammar is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum GrammarFormat {
    /// Lark's EBNF.
    Lark,
    /// llama.cpp's GBNF.
    Gbnf,
    /// EBNF, as XGrammar and the W3C write it.
    Ebnf,
    /// One regular expression, in Python's notation.
    Regex,
    /// NLTK's context-free grammars.
    Nltk,
    /// JSON Schema, drafts 4 to 2020-12: the grammar of the JSON texts that are valid.
    JsonSchema,
    /// Structural tags, as XGrammar 0.2.8 writes them: free text with structure in it.
    StructuralTag,
}

impl GrammarFormat {
    /// All formats.
    pub const ALL: [Self; 7] =
        [Self::Lark, Self::Gbnf, Self::Ebnf, Self::Regex, Self::Nltk, Self::JsonSchema, Self::StructuralTag];

    /// The name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lark => "lark",
            Self::Gbnf => "gbnf",
            Self::Ebnf => "ebnf",
            Self::Regex => "regex",
            Self::Nltk => "nltk",
            Self::JsonSchema => "json-schema",
            Self::StructuralTag => "structural-tag",
        }
    }

    /// The extensions of its files, the usual one first.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Lark => &["lark"],
            Self::Gbnf => &["gbnf"],
            Self::Ebnf => &["ebnf"],
            Self::Regex => &["regex"],
            Self::Nltk => &["cfg"],
            Self::JsonSchema => &["schema.json"],
            Self::StructuralTag => &["tag.json"],
        }
    }

    /// The format with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format by the extension of a file name; a trailing `.gz` is ignored.
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let name = name.strip_suffix(".gz").unwrap_or(name);
        let ends = |extension: &&str| name.strip_suffix(extension).is_some_and(|stem| stem.ends_with('.'));
        Self::ALL.into_iter().find(|format| format.extensions().iter().any(ends))
    }
}

/// Options for compiling grammars.
///
/// ```
/// use anygram::{Compiler, ErrorKind, GrammarFormat, LexerMode};
///
/// let source = r#"
///     list: NAME ("," NAME)*
///     NAME: /[a-z]+/
/// "#;
/// let compiler = Compiler::default().start("list").lexer(LexerMode::Longest);
/// let language = compiler.compile(GrammarFormat::Lark, source)?;
/// assert!(language.read(b"one,two")?.is_sentence);
///
/// let error = compiler.compile(GrammarFormat::Lark, "list: NAME").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Syntax);
/// let place = error.grammar_error().ok_or("its text is the reason")?;
/// assert_eq!((place.line(), place.column(), place.message()), (1, 7, "`NAME` is not defined"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("GrammarCompiler", "ParserFactory"))]
#[derive(Clone, Debug, Default)]
pub struct Compiler {
    start: Option<String>,
    imports: Option<PathBuf>,
    dialect: LarkDialect,
    named: Vec<(String, NamedGrammar)>,
    options: LanguageOptions,
    cancel: Option<Cancel>,
    avoid: Vec<String>,
    schema: json_schema::Options,
}

impl Compiler {
    /// The start rule. By default the one of the grammar: in Lark `start` or what `%start` says, in GBNF
    /// `root`.
    pub fn start(mut self, name: impl Into<String>) -> Self {
        self.start = Some(name.into());
        self
    }

    /// The folder from which a grammar may import files (`%import .file.name`), mostly its own. Without it no
    /// file is read: set it for grammars that you trust.
    pub fn imports(mut self, folder: impl Into<PathBuf>) -> Self {
        self.imports = Some(folder.into());
        self
    }

    /// Whose meaning Lark grammars follow where python-lark and llguidance differ: `docs/llguidance.md` lists
    /// the differences. In llguidance's dialect the source can also be its JSON list of grammars.
    pub fn dialect(mut self, dialect: LarkDialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Adds a grammar that a Lark grammar can name as `@name`; of several with one name the first counts.
    pub fn named(mut self, name: impl Into<String>, grammar: NamedGrammar) -> Self {
        self.named.push((name.into(), grammar));
        self
    }

    /// How JSON schemas are read, and what their texts look like.
    pub fn schema(mut self, options: json_schema::Options) -> Self {
        self.schema = options;
        self
    }

    /// The lexer mode; that of the grammar unless it is set: for Lark `contextual` or what `%lexer` says, for
    /// NLTK `longest`, else `scannerless`.
    pub fn lexer(mut self, mode: LexerMode) -> Self {
        self.options.lexer = Some(mode);
        self
    }

    /// What to do when several terminals match the same longest piece.
    pub fn ties(mut self, ties: Ties) -> Self {
        self.options.ties = ties;
        self
    }

    /// The recognizer.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.options.engine = engine;
        self
    }

    /// Bounds on work and memory.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Leaves out the sentences in which one of these stop strings stands, so that masks look ahead:
    /// [`Language::avoiding`].
    pub fn avoid(mut self, stops: Vec<String>) -> Self {
        self.avoid = stops;
        self
    }

    /// Another thread can cancel the compilation, which then fails as [`ErrorKind::Cancelled`].
    pub fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Reads a grammar without compiling it.
    pub fn read(&self, format: GrammarFormat, source: &str) -> Result<Grammar, CompileError> {
        self.read_joined(format, source, true)
    }

    fn read_joined(&self, format: GrammarFormat, source: &str, join: bool) -> Result<Grammar, CompileError> {
        use anygram_grammar::{ebnf, gbnf, lark, nltk, regex};
        let (start, max_size) = (self.start.clone(), self.options.limits.grammar_size);
        let schema = || json_schema::Options { cancel: self.cancel.clone(), ..self.schema.clone() };
        Ok(match format {
            GrammarFormat::Lark => {
                let imports = self.imports.clone();
                let (dialect, mut named) = (self.dialect, self.named.clone());
                let list = match dialect {
                    LarkDialect::Lark => None,
                    LarkDialect::Llguidance => anygram_structural_tag::grammars(source).map_err(refused)?,
                };
                let source = list.as_ref().map_or(source, |list| &list.first);
                named.extend(list.iter().flat_map(|list| list.named.iter().cloned()));
                let options = lark::LarkOptions { start, imports, max_size, dialect, named };
                let of_schemas = schema();
                lark::parse_with_schemas(source, &options, &|schema| {
                    anygram_json_schema::embedded(schema, &of_schemas)
                        .map_err(|refusal| (schema_error(refusal.kind), refusal.to_string()))
                })
            }
            GrammarFormat::Gbnf => gbnf::parse(source, &gbnf::GbnfOptions { start, join, max_size }),
            GrammarFormat::Ebnf => ebnf::parse(source, &ebnf::EbnfOptions { start, join, max_size }),
            GrammarFormat::Regex => regex::parse(source, &regex::RegexOptions { start }),
            GrammarFormat::Nltk => nltk::parse(source, &nltk::NltkOptions { start, max_size }),
            GrammarFormat::JsonSchema => {
                return anygram_json_schema::grammar(source, &schema()).map_err(refused);
            }
            GrammarFormat::StructuralTag => {
                let options = anygram_structural_tag::Options { schema: schema(), max_size };
                return anygram_structural_tag::grammar(source, &options).map_err(refused);
            }
        }?)
    }

    /// Compiles the text of a grammar.
    ///
    /// In GBNF and EBNF the regular parts of rules become terminals. If their automata get too large, and
    /// only the language matters (`scannerless`), the grammar is read again with strings and classes as
    /// terminals.
    pub fn compile(&self, format: GrammarFormat, source: &str) -> Result<Arc<Language>, CompileError> {
        let grammar = self.read(format, source)?;
        let joins = matches!(format, GrammarFormat::Gbnf | GrammarFormat::Ebnf);
        if !joins || self.options.lexer.unwrap_or(grammar.default_lexer) != LexerMode::Scannerless {
            return self.compile_grammar(grammar);
        }
        let mut first = self.clone();
        let entries = &mut first.options.limits.lexer.union_entries;
        *entries = JOINED_UNION_ENTRIES.min(*entries);
        match first.compile_grammar(grammar) {
            Err(error) if is_too_large(&error) => {
                self.compile_grammar(self.read_joined(format, source, false)?)
            }
            result => result,
        }
    }

    /// Compiles a grammar that was read or built.
    pub fn compile_grammar(&self, grammar: Grammar) -> Result<Arc<Language>, CompileError> {
        let stops: Vec<&str> = self.avoid.iter().map(String::as_str).collect();
        Ok(Arc::new(Language::without(grammar, &stops, &self.options, self.cancel.clone())?))
    }
}

/// Options for JSON schemas, see [`Compiler::schema`].
pub mod json_schema {
    pub use anygram_json_schema::Options;
    pub use anygram_json_schema::algebra::{KeyOrder, Limits};
    pub use anygram_json_schema::document::Draft;
    pub use anygram_json_schema::lower::Whitespace;
    pub use anygram_json_schema::options::OptionError;
    pub use anygram_json_schema::pieces::Escapes;
}

/// A schema or a structural tag that is refused.
fn refused(refusal: anygram_json_schema::refusal::Refusal) -> CompileError {
    let message = refusal.to_string();
    CompileError::of_schema(schema_error(refusal.kind), refusal.at, message)
}

/// Tools and the choice among them as structural tags, in the call formats of model families.
///
/// ```
/// use anygram::tools::{Family, ToolsOptions, tag};
/// use anygram::{Compiler, GrammarFormat};
///
/// let tools = r#"[{"type":"function","function":{"name":"now"}}]"#;
/// let tag = tag(tools, &ToolsOptions::new(Family::by_name("qwen")?))?;
/// let language = Compiler::default().compile(GrammarFormat::StructuralTag, &tag)?;
/// let text = "Let me see.\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
/// assert!(language.read(text.as_bytes())?.is_sentence);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod tools {
    pub use anygram_structural_tag::tools::{Family, ToolsError, ToolsOptions, tag};
}

/// The kind of a refusal of a schema.
fn schema_error(kind: anygram_json_schema::refusal::Kind) -> ErrorKind {
    use anygram_json_schema::refusal::Kind;
    match kind {
        Kind::Syntax => ErrorKind::Syntax,
        Kind::Unsatisfiable => ErrorKind::Unsatisfiable,
        Kind::Limit => ErrorKind::Limit,
        Kind::Cancelled => ErrorKind::Cancelled,
        _ => ErrorKind::Unsupported,
    }
}

/// How large the automaton of all terminals may be before a grammar in GBNF or EBNF is read with smaller
/// ones: that of an ordinary grammar has some thousands of entries, and those that grow exponentially are
/// found out within a second.
const JOINED_UNION_ENTRIES: usize = 2_000_000;

/// Whether smaller terminals could help.
fn is_too_large(error: &CompileError) -> bool {
    matches!(error.limit(), Some(("nfa_states" | "dfa_states" | "union_entries", _)))
}

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
