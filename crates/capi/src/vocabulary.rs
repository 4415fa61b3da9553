//! Vocabularies.

use std::ffi::c_char;
use std::mem::offset_of;

use anygram::{LoadOptions, SpecialIds, TokenId, Vocabulary, prepare};

use crate::error::{Failure, anygram_code, anygram_error, guard};
use crate::handles::{Handle, free, get, keep};
use crate::memory::{put, put_all, read_sized, slice, text};

/// The tokens of a model. Immutable; all threads may use one at once.
pub struct anygram_vocabulary {
    _private: [u8; 0],
}

impl Handle for anygram_vocabulary {
    type Object = Vocabulary;
    const NAME: &'static str = "vocabulary";
}

/// No token: of `pad` and `mask`.
pub const ANYGRAM_NO_TOKEN: u32 = u32::MAX;

/// What a special token is called, such as "<|call|>"; grammars name it so.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct anygram_name {
    /// The token.
    pub id: u32,
    /// Its name.
    pub name: *const c_char,
}

/// Which tokens are special.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct anygram_special {
    /// `sizeof(anygram_special)`.
    pub struct_size: usize,
    /// The tokens that end an output.
    pub eos: *const u32,
    /// How many.
    pub n_eos: usize,
    /// The token that fills a row behind EOS, or ANYGRAM_NO_TOKEN.
    pub pad: u32,
    /// The token that a diffusion model reads where nothing is decided yet, or ANYGRAM_NO_TOKEN.
    pub mask: u32,
    /// What special tokens are called.
    pub names: *const anygram_name,
    /// How many names there are.
    pub n_names: usize,
}

impl anygram_special {
    /// # Safety
    /// As the documentation of the functions says that take it.
    unsafe fn read(given: *const Self) -> Result<LoadOptions, Failure> {
        if given.is_null() {
            return Ok(LoadOptions::default());
        }
        // SAFETY: the caller's promise.
        let (special, eos, names) = unsafe {
            let special = read_sized("special", given)?;
            let names = slice("names", special.names, special.n_names)?;
            (special, slice("eos", special.eos, special.n_eos)?, names)
        };
        let has = |end: usize| special.struct_size >= end;
        let token = |id: u32, end| (has(end) && id != ANYGRAM_NO_TOKEN).then_some(id);
        let mut options = LoadOptions {
            eos: eos.to_vec(),
            pad: token(special.pad, offset_of!(Self, pad) + size_of::<u32>()),
            mask: token(special.mask, offset_of!(Self, mask) + size_of::<u32>()),
            ..LoadOptions::default()
        };
        for name in names {
            // SAFETY: the caller's promise.
            options.names.push((name.id, unsafe { text("the name of a token", name.name) }?.to_owned()));
        }
        Ok(options)
    }
}

/// The vocabulary of some tokens, in the order of their ids.
///
/// `bytes` are those of all tokens one after the other. Those of token `i` begin at `offsets[i]` and end at
/// `offsets[i + 1]`, so there are `n_tokens + 1` offsets. A special token, such as EOS, has none. Everything
/// is copied. `special` may be NULL.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_vocabulary_from_tokens(
    bytes: *const u8,
    offsets: *const usize,
    n_tokens: usize,
    special: *const anygram_special,
    vocabulary: *mut *mut anygram_vocabulary,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let (offsets, special) = unsafe {
            (slice("offsets", offsets, n_tokens.saturating_add(1))?, anygram_special::read(special)?)
        };
        let length = offsets.last().copied().unwrap_or_default();
        if let Some(at) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(Failure::argument(format!("offsets[{at}] is behind offsets[{}]", at + 1)));
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { slice("bytes", bytes, length) }?;
        let tokens = offsets.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        let LoadOptions { eos, pad, mask, names, .. } = special;
        let plain = Vocabulary::from_tokens(tokens, SpecialIds { eos, pad, mask })?;
        let made = keep(plain.with_names(names.iter().map(|(id, name)| (*id, &**name)))?)?;
        // SAFETY: the caller's promise.
        unsafe { put("vocabulary", vocabulary, made) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Reads a tokenizer file: `tokenizer.json`, `.tiktoken`, a SentencePiece `.model` or a JSON array; each may
/// have `.gz`; or what `anygram_vocabulary_save` wrote. `special` may be NULL where the file says which
/// tokens end an output.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_vocabulary_from_file(
    path: *const c_char,
    special: *const anygram_special,
    vocabulary: *mut *mut anygram_vocabulary,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let (path, options) = unsafe { (text("path", path)?, anygram_special::read(special)?) };
        let made = keep(Vocabulary::from_file(path, &options)?)?;
        // SAFETY: the caller's promise.
        unsafe { put("vocabulary", vocabulary, made) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Saves a vocabulary, with its special tokens, for processes that start often:
/// `anygram_vocabulary_from_file` reads the file without parsing it. The file is replaced in one step.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_vocabulary_save(
    vocabulary: *const anygram_vocabulary,
    path: *const c_char,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || Ok(get(vocabulary)?.save(text("path", path)?)?)) }
}

/// Finds out ahead what the first JSON schemas of a process would wait for: what the tokens of a vocabulary
/// do in strings, in numbers and between values. For servers, when they start; it takes about a quarter of
/// the time that loading takes. Masks are the same with and without.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_vocabulary_prepare(
    vocabulary: *const anygram_vocabulary,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        prepare(&*get(vocabulary)?);
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// The small vocabulary of 4,096 tokens that travels with the library, for examples and tests.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_vocabulary_builtin(
    vocabulary: *mut *mut anygram_vocabulary,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || put("vocabulary", vocabulary, keep(Vocabulary::builtin())?)) }
}

/// How many tokens it has, special ones too.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_vocabulary_size(
    vocabulary: *const anygram_vocabulary,
    size: *mut usize,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || put("size", size, get(vocabulary)?.len())) }
}

/// The tokens that its encoder makes of a text.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_vocabulary_encode(
    vocabulary: *const anygram_vocabulary,
    text: *const u8,
    n_bytes: usize,
    tokens: *mut u32,
    capacity: usize,
    n_tokens: *mut usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let text = unsafe { slice("text", text, n_bytes) }?;
        let made = ids(&get(vocabulary)?.encode(text)?);
        // SAFETY: the caller's promise.
        unsafe { put_all("tokens", &made, (tokens, capacity, n_tokens)) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// The bytes of some tokens. Special ones have none.
///
/// # Safety
/// Pointers and lengths fit together, as `docs/c-api.md` promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_vocabulary_decode(
    vocabulary: *const anygram_vocabulary,
    tokens: *const u32,
    n_tokens: usize,
    text: *mut u8,
    capacity: usize,
    n_bytes: *mut usize,
    error: *mut anygram_error,
) -> anygram_code {
    let work = || {
        // SAFETY: the caller's promise.
        let tokens = unsafe { slice("tokens", tokens, n_tokens) }?;
        let bytes = get(vocabulary)?.decode(&token_ids(tokens))?;
        // SAFETY: the caller's promise.
        unsafe { put_all("text", &bytes, (text, capacity, n_bytes)) }
    };
    // SAFETY: the caller's promise.
    unsafe { guard(error, work) }
}

/// Frees a vocabulary. Constraints that were made of it stay.
///
/// # Safety
/// `error` is NULL or an `anygram_error` whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anygram_vocabulary_free(
    vocabulary: *mut anygram_vocabulary,
    error: *mut anygram_error,
) -> anygram_code {
    // SAFETY: the caller's promise.
    unsafe { guard(error, || free(vocabulary)) }
}

/// Ids as tokens.
pub fn token_ids(ids: &[u32]) -> Vec<TokenId> {
    ids.iter().map(|&id| TokenId(id)).collect()
}

/// Tokens as ids.
pub fn ids(tokens: &[TokenId]) -> Vec<u32> {
    tokens.iter().map(|token| token.0).collect()
}
