//! Compiling grammars.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anygram::{
    CompileError, Engine, GrammarFormat, LarkDialect, LexerMode, Limits, NamedGrammar, Ties, json_schema,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::captures::{self, TreeNode};
use crate::error::{Raise, invalid, of_compile, shown};
use crate::gate::{outside, work};
use crate::number::{Drawn, Seed};
use crate::tokens::Text;

/// Stops work that another thread does.
///
/// >>> import anygram
/// >>> cancel = anygram.Cancel()
/// >>> cancel.cancel()
/// >>> anygram.Compiler().compile('start: "x"', "lark", cancel=cancel)
/// Traceback (most recent call last):
/// anygram._errors.Cancelled: cancelled
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Cancel(pub anygram::Cancel);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self(anygram::Cancel::new())
    }

    /// Asks all work that has this object to stop, from now on.
    fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether `cancel` was called.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// Options for compiling grammars, and the JSON schemas among them.
///
/// Args:
///     lexer: how texts are cut into terminals: `"scannerless"`, `"longest"` or `"contextual"`; by default as
///         the grammar says, else `contextual` for Lark, `longest` for NLTK, `scannerless` for all others.
///     ties: `"all"`, or `"first"`: of several terminals that match the same piece only one counts, a literal
///         before a pattern, then the first.
///     engine: `"auto"`, `"earley"`, `"valiant"` or `"reference"`.
///     imports: the folder from which a grammar may import files; without it no file is read.
///     limits: bounds on work and memory, by the names that errors give.
///     key_order: of JSON objects: `"any"`, `"schema"` (as declared), or a list of the keys that come first.
///     whitespace: between parts of JSON: `"any"`, `{"at_most": n}`, `"compact"`, `"spaced"` or
///         `{"indent": n}`.
///     formats: `"assert"` or `"annotate"`: whether `format` has to hold.
///     escapes: `"any"` or `"needed"`: whether JSON may spell a character by an escape that needs none.
///     extra_keys: `"schema"` or `"none"`: whether keys that a schema does not declare are allowed.
///     documents: what references of schemas point into, by address: dicts or texts. Nothing is fetched.
///     dialect: `"lark"` or `"llguidance"`: whose meaning Lark grammars follow where the two differ.
///     named: what Lark grammars call `@name`, by name: grammars in Lark as texts, and schemas as dicts or
///         types.
///     avoid: stop strings: texts in which one stands are no sentences, and masks look ahead. Not in the
///         lexer mode contextual.
///
/// >>> import anygram
/// >>> language = anygram.Compiler().compile({"type": "integer"}, "json-schema")
/// >>> language.read("17").is_sentence
/// True
///
/// Raises:
///     AnygramError: an option has no such value; the message lists those that there are.
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Compiler {
    inner: anygram::Compiler,
    limits: Limits,
    /// What the constructor was given, to pickle.
    given: Py<PyDict>,
}

/// A value by its name.
fn named<T: Copy, const N: usize>(
    py: Python<'_>,
    what: &str,
    name: &str,
    all: [(&str, T); N],
) -> PyResult<T> {
    let known = || all.map(|known| format!("\"{}\"", known.0)).join(", ");
    let found = all.iter().find(|known| known.0 == name).map(|known| known.1);
    found.ok_or_else(|| invalid(py, format!("{what} is \"{name}\"; it can be {}", known())))
}

fn limits(py: Python<'_>, given: &Bound<'_, PyDict>, schema: &mut json_schema::Options) -> PyResult<Limits> {
    let mut limits = Limits::default();
    for (name, value) in given {
        let name: String = name.extract()?;
        let value = value.extract::<u64>().map_err(|_| {
            let (given, most) = (shown(&value), u64::MAX);
            invalid(py, format!("the limit {name} is {given}; it can be 0 to {most}"))
        })?;
        if limits.set(&name, value).or(schema.set_limit(&name, value)).is_none() {
            let known = Limits::NAMES.into_iter().chain(json_schema::Options::LIMITS).collect::<Vec<_>>();
            return Err(invalid(py, format!("there is no limit `{name}`; there are {}", known.join(", "))));
        }
    }
    Ok(limits)
}

/// The options of JSON schemas, each by its name and Python value.
fn schema_options(py: Python<'_>, given: &Bound<'_, PyDict>) -> PyResult<json_schema::Options> {
    let mut options = json_schema::Options::default();
    for name in json_schema::Options::NAMES {
        if let Some(value) = given.get_item(name)? {
            let json = text_of(&value)?;
            options.set(name, &json).map_err(|error| invalid(py, error.to_string()))?;
        }
    }
    if let Some(documents) = given.get_item("documents")? {
        for (address, document) in documents.cast::<PyDict>()? {
            let text = match document.extract::<String>() {
                Ok(text) => text,
                Err(_) => text_of(&document)?,
            };
            options.documents.push((address.extract()?, text));
        }
    }
    Ok(options)
}

/// A schema, or another value, as JSON.
pub fn text_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.py().import("anygram._schemas")?.call_method1("text_of", (value,))?.extract()
}

impl Compiler {
    /// By options that were given, each a keyword of the constructor.
    fn of<'py>(py: Python<'py>, given: Bound<'py, PyDict>) -> PyResult<Self> {
        let given_of = |name| given.get_item(name);
        let mut schema = schema_options(py, &given)?;
        let mut inner = anygram::Compiler::default();
        if let Some(name) = given_of("lexer")? {
            let modes = LexerMode::ALL.map(|mode| (mode.name(), mode));
            inner = inner.lexer(named(py, "lexer", &name.extract::<String>()?, modes)?);
        }
        if let Some(name) = given_of("ties")? {
            let all = [("all", Ties::All), ("first", Ties::First)];
            inner = inner.ties(named(py, "ties", &name.extract::<String>()?, all)?);
        }
        if let Some(name) = given_of("engine")? {
            let all = Engine::ALL.map(|engine| (engine.name(), engine));
            inner = inner.engine(named(py, "engine", &name.extract::<String>()?, all)?);
        }
        if let Some(name) = given_of("dialect")? {
            let all = LarkDialect::ALL.map(|dialect| (dialect.name(), dialect));
            inner = inner.dialect(named(py, "dialect", &name.extract::<String>()?, all)?);
        }
        if let Some(grammars) = given_of("named")? {
            for (name, grammar) in grammars.cast::<PyDict>()? {
                let grammar = match grammar.extract::<String>() {
                    Ok(text) => NamedGrammar::Lark(text),
                    Err(_) => NamedGrammar::Schema(text_of(&grammar)?),
                };
                inner = inner.named(name.extract::<String>()?, grammar);
            }
        }
        if let Some(folder) = given_of("imports")? {
            inner = inner.imports(folder.extract::<std::path::PathBuf>()?);
        }
        if let Some(stops) = given_of("avoid")? {
            inner = inner.avoid(stops.extract()?);
        }
        let mut bounds = Limits::default();
        if let Some(given) = given_of("limits")? {
            bounds = limits(py, given.cast()?, &mut schema)?;
            inner = inner.limits(bounds);
        }
        Ok(Self { inner: inner.schema(schema), limits: bounds, given: given.unbind() })
    }
}

#[pymethods]
impl Compiler {
    #[new]
    #[pyo3(signature = (
        lexer = None, *, ties = None, engine = None, imports = None, limits = None, key_order = None,
        whitespace = None, formats = None, escapes = None, extra_keys = None, documents = None,
        dialect = None, named = None, avoid = None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new<'py>(
        py: Python<'py>,
        lexer: Option<Bound<'py, PyAny>>,
        ties: Option<Bound<'py, PyAny>>,
        engine: Option<Bound<'py, PyAny>>,
        imports: Option<Bound<'py, PyAny>>,
        limits: Option<Bound<'py, PyAny>>,
        key_order: Option<Bound<'py, PyAny>>,
        whitespace: Option<Bound<'py, PyAny>>,
        formats: Option<Bound<'py, PyAny>>,
        escapes: Option<Bound<'py, PyAny>>,
        extra_keys: Option<Bound<'py, PyAny>>,
        documents: Option<Bound<'py, PyAny>>,
        dialect: Option<Bound<'py, PyAny>>,
        named: Option<Bound<'py, PyAny>>,
        avoid: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let given = PyDict::new(py);
        let all = [
            ("lexer", lexer),
            ("ties", ties),
            ("engine", engine),
            ("imports", imports),
            ("limits", limits),
            ("key_order", key_order),
            ("whitespace", whitespace),
            ("formats", formats),
            ("escapes", escapes),
            ("extra_keys", extra_keys),
            ("documents", documents),
            ("dialect", dialect),
            ("named", named),
            ("avoid", avoid),
        ];
        for (name, value) in all {
            value.map(|value| given.set_item(name, value)).transpose()?;
        }
        Self::of(py, given)
    }

    /// Compiles a grammar.
    ///
    /// Args:
    ///     source: the text of the grammar. For `"json-schema"` also a dict, a Pydantic model, a dataclass, a
    ///         `TypedDict`, a `Literal`, an enum or any other type that Pydantic can describe; for
    ///         `"structural-tag"` also a dict.
    ///     format: `"lark"`, `"gbnf"`, `"ebnf"`, `"regex"`, `"nltk"`, `"json-schema"` or `"structural-tag"`.
    ///     start: the start rule.
    ///     cancel: with it another thread can stop the compilation.
    ///
    /// Other threads run meanwhile, and an interrupt (Ctrl-C) stops it.
    ///
    /// Raises:
    ///     GrammarError: the grammar has an error, or no text is a sentence of it; `.line` and `.column` say
    ///         where, in a JSON schema or structural tag `.pointer`.
    ///     LimitError: it is too large; `.name` is the limit to raise.
    ///     Cancelled: `cancel.cancel()` was called.
    #[pyo3(signature = (source, format = "lark", *, start = None, cancel = None))]
    fn compile(
        &self,
        source: &Bound<'_, PyAny>,
        format: &str,
        start: Option<String>,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Language> {
        let py = source.py();
        let all = GrammarFormat::ALL.map(|format| (format.name(), format));
        let parsed = named(py, "the format of the grammar", format, all)?;
        let text = match source.cast::<PyString>() {
            Ok(text) => text.to_cow().map(|text| text.into_owned()).map_err(|_| {
                invalid(py, "the grammar has lone surrogates, which have no UTF-8: read the file as UTF-8")
            })?,
            Err(_) if parsed == GrammarFormat::JsonSchema => text_of(source)?,
            Err(_) if parsed == GrammarFormat::StructuralTag && source.is_instance_of::<PyDict>() => {
                text_of(source)?
            }
            Err(_) => {
                let class = source.get_type();
                return Err(PyTypeError::new_err(format!("a grammar in {format} is a string, not {class}")));
            }
        };
        let cancel = cancel.map_or_else(anygram::Cancel::new, |cancel| cancel.get().0.clone());
        let mut compiler = self.inner.clone().cancel(cancel.clone());
        if let Some(start) = &start {
            compiler = compiler.start(start);
        }
        let compiled = interruptible(py, &cancel, || compiler.compile(parsed, &text))?;
        let inner = compiled.map_err(|error| of_compile(py, &error, Some(&text)))?;
        let options = self.given.bind(py).copy()?.unbind();
        Ok(Language { inner, text, format: parsed.name(), start, options })
    }

    /// Compiles on a thread of the package's own, a few at a time. Arguments as for `compile`.
    ///
    /// >>> import anygram
    /// >>> future = anygram.Compiler().submit('start: "x"', "lark")
    /// >>> future.result().read("x").is_sentence
    /// True
    ///
    /// In asyncio: `await asyncio.wrap_future(compiler.submit(…))`.
    ///
    /// Returns:
    ///     A `concurrent.futures.Future`, whose `cancel()` also stops a compilation that has begun; it then
    ///     ends with `Cancelled`.
    #[pyo3(signature = (source, format = "lark", *, start = None))]
    fn submit<'py>(
        slf: &Bound<'py, Self>,
        source: &Bound<'py, PyAny>,
        format: &str,
        start: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("anygram._futures")?.call_method1("submit", (slf, source, format, start))
    }

    /// The bounds on work and memory, those of JSON schemas aside.
    #[getter]
    fn limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let limits = PyDict::new(py);
        for name in Limits::NAMES {
            limits.set_item(name, self.limits.get(name))?;
        }
        Ok(limits)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let given = self.given.bind(py).iter();
        let given = given.map(|(name, value)| Ok(format!("{name}={}", value.repr()?)));
        Ok(format!("Compiler({})", given.collect::<PyResult<Vec<_>>>()?.join(", ")))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("anygram._pickle")?.getattr("compiler")?;
        Ok((make, (self.given.bind(py),).into_pyobject(py)?))
    }
}

/// How long an interrupt waits until it is seen.
const PATIENCE: Duration = Duration::from_millis(50);

/// Compiles on a thread of its own, while this one looks for signals.
fn interruptible<T: Send>(
    py: Python<'_>,
    cancel: &anygram::Cancel,
    job: impl FnOnce() -> Result<T, CompileError> + Send,
) -> PyResult<Result<T, CompileError>> {
    let (send, receive) = channel();
    let compile = move || {
        std::thread::scope(|scope| {
            scope.spawn(move || send.send(job()));
            loop {
                match receive.recv_timeout(PATIENCE) {
                    Ok(result) => return Ok::<_, PyErr>(Some(result)),
                    // It panicked: the scope passes that on.
                    Err(RecvTimeoutError::Disconnected) => return Ok(None),
                    Err(RecvTimeoutError::Timeout) => {
                        // Handlers are Python's, and may fork.
                        let looked = outside(|| Python::attach(|py| py.check_signals()));
                        looked.inspect_err(|_| cancel.cancel())?;
                    }
                }
            }
        })
    };
    work(py, compile)?.ok_or_else(|| invalid(py, "the compilation ended without a result"))
}

/// A compiled grammar: immutable, shared by all that use it. It knows texts, and no tokens.
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Language {
    pub inner: Arc<anygram::Language>,
    text: String,
    format: &'static str,
    start: Option<String>,
    options: Py<PyDict>,
}

#[pymethods]
impl Language {
    /// Reads a text, or the beginning of one.
    ///
    /// >>> import anygram
    /// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
    /// >>> language.read("((x")
    /// Reading(is_sentence=False, is_viable=True, length=3)
    /// >>> language.read("(y")
    /// Reading(is_sentence=False, is_viable=False, length=1)
    ///
    /// Raises:
    ///     LimitError: it takes more work than the limits allow.
    fn read(&self, py: Python<'_>, text: Text) -> PyResult<Reading> {
        let inner = work(py, || self.inner.read(&text.0)).raise(py)?;
        Ok(Reading { inner })
    }

    /// The language of its texts in which none of these stop strings stands, over bytes; masks look ahead.
    ///
    /// >>> import anygram
    /// >>> language = anygram.Compiler().compile("[ab]{2}", "regex").avoiding(["ab"])
    /// >>> language.read("bb").is_sentence, language.read("ab").is_sentence
    /// (True, False)
    ///
    /// Raises:
    ///     GrammarError: no text is left.
    ///     LimitError: it takes more than the limits allow.
    ///     AnygramError: of this grammar it is not possible; the message says why, and what to do.
    fn avoiding(&self, py: Python<'_>, stops: Vec<String>) -> PyResult<Self> {
        let texts: Vec<&str> = stops.iter().map(String::as_str).collect();
        let made = work(py, || self.inner.avoiding(&texts));
        let inner = Arc::new(made.map_err(|error| of_compile(py, &error, None))?);
        let options = self.options.bind(py).copy()?;
        let mut all: Vec<String> = match options.get_item("avoid")? {
            Some(earlier) => earlier.extract()?,
            None => Vec::new(),
        };
        all.extend(stops);
        options.set_item("avoid", all)?;
        let (text, start, options) = (self.text.clone(), self.start.clone(), options.unbind());
        Ok(Self { inner, text, format: self.format, start, options })
    }

    /// Random texts of the language, each different, of growing size. Fewer, or none, where no more are found
    /// in a bounded time; texts that need special tokens are none of them.
    ///
    /// >>> import anygram
    /// >>> language = anygram.Compiler().compile(r'[0-9]{2}:[0-9]{2}', "regex")
    /// >>> [len(text) for text in language.examples(3)]
    /// [5, 5, 5]
    ///
    /// Args:
    ///     n: at most so many.
    ///     seed: other texts for another number.
    ///
    /// Raises:
    ///     LimitError: a limit is too low even for the empty text.
    #[pyo3(signature = (n = Drawn(1), *, seed = Seed(0)), text_signature = "($self, n=1, *, seed=0)")]
    fn examples<'py>(&self, py: Python<'py>, n: Drawn, seed: Seed) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let found = work(py, || self.inner.examples(n.0, seed.0)).raise(py)?;
        Ok(found.iter().map(|text| PyBytes::new(py, text)).collect())
    }

    /// The parse tree of a text: its nodes, each before those below it; `None` if it is no sentence. Rules
    /// that were made up for groups and repetitions are left out.
    ///
    /// >>> import anygram
    /// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
    /// >>> [(node.name, node.start, node.end) for node in language.tree("(x)") if node.is_rule]
    /// [('start', 0, 3), ('start', 1, 2)]
    ///
    /// Raises:
    ///     LimitError: it takes more work than the limits allow.
    fn tree(&self, py: Python<'_>, text: Text) -> PyResult<Option<Vec<TreeNode>>> {
        captures::tree(py, &self.inner, &text.0)
    }

    /// The text of the grammar; a schema as JSON.
    #[getter]
    fn source(&self) -> &str {
        &self.text
    }

    /// How it is written.
    #[getter]
    fn format(&self) -> &str {
        self.format
    }

    /// The lexer mode.
    #[getter]
    fn lexer(&self) -> &str {
        self.inner.mode().name()
    }

    /// The engine in use.
    #[getter]
    fn engine(&self) -> &str {
        self.inner.engine().name()
    }

    /// What is strange about the grammar: rules that derive nothing or are not reachable, …
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.inner.warnings().iter().map(ToString::to_string).collect()
    }

    /// Whether the grammar bounds the tokens in parts of a text (`max_tokens`): then there are no canvases.
    #[getter]
    fn counts_tokens(&self) -> bool {
        self.inner.counts_tokens()
    }

    /// What compiling took, in steps as limits count them: the same on every machine.
    #[getter]
    fn compile_steps(&self) -> u64 {
        self.inner.compile_steps()
    }

    /// How ambiguous the grammar is, by which the engine was chosen, as items of a parser state; `None` if
    /// the engine was given.
    #[getter]
    fn items_per_state(&self) -> Option<f64> {
        self.inner.probe().map(anygram::Probe::items_per_state)
    }

    /// The grammar as it was understood, in Lark's notation.
    fn to_lark(&self) -> String {
        self.inner.grammar().to_string()
    }

    /// Bytes on the heap, roughly.
    #[getter]
    fn memory_usage(&self) -> usize {
        self.inner.memory_usage()
    }

    /// It never changes, so it is its own copy.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!("Language({}, lexer=\"{}\", engine=\"{}\")", self.format, self.lexer(), self.engine())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("anygram._pickle")?.getattr("language")?;
        Ok((make, (self.options.bind(py), &self.text, self.format, &self.start).into_pyobject(py)?))
    }
}

/// What a language says of a text.
#[pyclass(frozen, module = "anygram")]
pub struct Reading {
    inner: anygram::Reading,
}

#[pymethods]
impl Reading {
    /// Whether the text is a sentence.
    #[getter]
    fn is_sentence(&self) -> bool {
        self.inner.is_sentence
    }

    /// Whether some continuation makes a sentence of it.
    #[getter]
    fn is_viable(&self) -> bool {
        self.inner.is_viable
    }

    /// The number of bytes of the longest beginning that is viable.
    #[getter]
    fn length(&self) -> usize {
        self.inner.length
    }

    /// The names of the terminals that could have begun or gone on there.
    #[getter]
    fn expected(&self) -> Vec<String> {
        self.inner.expected.clone()
    }

    fn __repr__(&self) -> String {
        let word = |value| if value { "True" } else { "False" };
        let (is_sentence, is_viable) = (word(self.inner.is_sentence), word(self.inner.is_viable));
        let length = self.inner.length;
        format!("Reading(is_sentence={is_sentence}, is_viable={is_viable}, length={length})")
    }
}
