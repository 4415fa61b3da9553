//! Grammars and schemas, and what is made of one and a vocabulary.

use std::ffi::c_char;
use std::sync::Arc;

use anygram::json_schema::Options;
use anygram::{Cancel, Compiler, Constraint, Engine, GrammarFormat, Language, LexerMode, Limits, Ties};

use crate::error::{Failure, anygram_code, anygram_error, guard};
use crate::handles::{Handle, free, get, keep};
use crate::memory::{put, put_if_wanted, slice, text};
use crate::vocabulary::anygram_vocabulary;

/// A compiled grammar or schema. Immutable; all threads may use one at once.
pub struct anygram_language {
    _private: [u8; 0],
}

impl Handle for anygram_language {
    type Object = Arc<Language>;
    const NAME: &'static str = "language";
}

/// A language and a vocabulary. Immutable; all threads may use one at once.
pub struct anygram_constraint {
    _private: [u8; 0],
}

impl Handle for anygram_constraint {
    type Object = Constraint;
    const NAME: &'static str = "constraint";
}

/// Lets one thread stop what another compiles.
pub struct anygram_cancel {
    _private: [u8; 0],
}

impl Handle for anygram_cancel {
    type Object = Cancel;
    const NAME: &'static str = "cancel";
}

/// An option by its name: `start`, `lexer`, `ties`, `engine`, `imports`; those of JSON schemas, whose values
/// are JSON (`key_order`, `whitespace`, `formats`, `escapes`, `extra_keys`, and `documents`, an object of
/// texts or schemas by address); and every limit, whose value is a number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct anygram_option {
    /// The name.
    pub name: *const c_char,
    /// The value.
    pub value: *const c_char,
}

/// A value by its name.
fn named<T: Copy, const N: usize>(what: &str, name: &str, all: [(&str, T); N]) -> Result<T, Failure> {
    let known = || all.map(|known| known.0).join(", ");
    let found = all.iter().find(|known| known.0 == name).map(|known| known.1);
    found.ok_or_else(|| Failure::argument(format!("{what} is \"{name}\"; it can be {}", known())))
}

/// What options say.
#[derive(Default)]
struct Given {
    compiler: Compiler,
    limits: Limits,
    schema: Options,
}

impl Given {
    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let compiler = std::mem::take(&mut self.compiler);
        self.compiler = match name {
            "start" => compiler.start(value),
            "imports" => compiler.imports(value),
            "lexer" => compiler.lexer(named(name, value, LexerMode::ALL.map(|mode| (mode.name(), mode)))?),
            "ties" => compiler.ties(named(name, value, [("all", Ties::All), ("first", Ties::First)])?),
            "engine" => {
                compiler.engine(named(name, value, Engine::ALL.map(|engine| (engine.name(), engine)))?)
            }
            _ => {
                self.set_other(name, value)?;
                compiler
            }
        };
        Ok(())
    }

    fn set_other(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        if name == "documents" {
            return self.set_documents(value);
        }
        if Options::NAMES.contains(&name) {
            return self.schema.set(name, value).map_err(|error| Failure::argument(error.to_string()));
        }
        let limits = || Limits::NAMES.into_iter().chain(Options::LIMITS);
        if !limits().any(|known| known == name) {
            let others = ["start", "lexer", "ties", "engine", "imports", "documents"].into_iter();
            let known = others.chain(Options::NAMES).chain(limits()).collect::<Vec<_>>().join(", ");
            return Err(Failure::argument(format!("there is no option `{name}`; there are {known}")));
        }
        let number = value.parse::<u64>();
        let number = number.map_err(|_| {
            Failure::argument(format!("the limit {name} is \"{value}\"; it can be 0 to {}", u64::MAX))
        })?;
        let _ = self.limits.set(name, number).or_else(|| self.schema.set_limit(name, number));
        Ok(())
    }

    fn set_documents(&mut self, value: &str) -> Result<(), Failure> {
        let read = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(value);
        let documents = read.map_err(|error| {
            Failure::argument(format!("documents is no JSON object of schemas by address: {error}"))
        })?;
        for (address, document) in documents {
            let text = match document {
                serde_json::Value::String(text) => text,
                schema => schema.to_string(),
            };
            self.schema.documents.push((address, text));
        }
        Ok(())
    }

    fn finish(self) -> Compiler {
        self.compiler.limits(self.limits).schema(self.schema)
    }
}

/// Compiles a grammar or a schema.
///
/// `format` is `lark`, `gbnf`, `ebnf`, `regex`, `nltk`, `json-schema` or `structural-tag`; `source` is UTF-8
/// of `n_bytes` bytes. `options` may be NULL if there are none, and `cancel` may be NULL.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_compile(
    format: *const c_char,
    source: *const u8,
    n_bytes: usize,
    options: *const anygram_option,
    n_options: usize,
    cancel: *const anygram_cancel,
    language: *mut *mut anygram_language,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let (format, source, options) = unsafe {
            let options = slice("options", options, n_options)?;
            (text("format", format)?, slice("source", source, n_bytes)?, options)
        };
        let source = str::from_utf8(source)
            .map_err(|error| Failure::argument(format!("the source is not UTF-8: {error}")))?;
        let all = GrammarFormat::ALL.map(|format| (format.name(), format));
        let format = named("format", format, all)?;
        let mut given = Given::default();
        for option in options {
            // SAFETY: the caller's promise.
            let (name, value) = unsafe {
                let name = text("the name of an option", option.name)?;
                (name, text(&format!("the value of {name}"), option.value)?)
            };
            given.set(name, value)?;
        }
        let mut compiler = given.finish();
        if !cancel.is_null() {
            compiler = compiler.cancel(get(cancel)?.as_ref().clone());
        }
        let made = keep(compiler.compile(format, source)?)?;
        // SAFETY: the caller's promise.
        unsafe { put("language", language, made) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Reads a text: whether it is a sentence, whether one begins with it, and how many of its bytes do. Each
/// result may be NULL.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_language_read(
    language: *const anygram_language,
    text: *const u8,
    n_bytes: usize,
    is_sentence: *mut bool,
    is_viable: *mut bool,
    n_viable: *mut usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let text = unsafe { slice("text", text, n_bytes) }?;
        let reading = get(language)?.read(text).map_err(anygram::MatchError::Limit)?;
        // SAFETY: the caller's promise.
        unsafe {
            put_if_wanted("is_sentence", is_sentence, reading.is_sentence)?;
            put_if_wanted("is_viable", is_viable, reading.is_viable)?;
            put_if_wanted("n_viable", n_viable, reading.length)
        }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Frees a language. Constraints that were made of it stay.
///
/// # Safety
/// `error` is NULL or an `anygram_error` whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_language_free(
    language: *mut anygram_language,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || free(language)) }
}

/// Joins a language with a vocabulary.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_constraint_new(
    language: *const anygram_language,
    vocabulary: *const anygram_vocabulary,
    constraint: *mut *mut anygram_constraint,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        let made = Constraint::new((*get(language)?).clone(), (*get(vocabulary)?).clone())?;
        // SAFETY: the caller's promise.
        unsafe { put("constraint", constraint, keep(made)?) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// The 32-bit words of a mask: token `id` is bit `id % 32` of word `id / 32`.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_constraint_mask_words(
    constraint: *const anygram_constraint,
    n_words: *mut usize,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || put("n_words", n_words, get(constraint)?.mask_words())) }
}

/// Frees a constraint. Matchers and solvers that were made of it stay.
///
/// # Safety
/// `error` is NULL or an `anygram_error` whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_constraint_free(
    constraint: *mut anygram_constraint,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || free(constraint)) }
}

/// Something with which a thread can stop compilations that have it.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_cancel_new(
    cancel: *mut *mut anygram_cancel,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || put("cancel", cancel, keep(Cancel::new())?)) }
}

/// Stops compilations that have it, now and later: they fail as ANYGRAM_CANCELLED.
///
/// # Safety
/// `error` is NULL or an `anygram_error` whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_cancel_set(
    cancel: *const anygram_cancel,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        get(cancel)?.cancel();
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Frees it. Compilations that have it go on.
///
/// # Safety
/// `error` is NULL or an `anygram_error` whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_cancel_free(
    cancel: *mut anygram_cancel,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || free(cancel)) }
}
