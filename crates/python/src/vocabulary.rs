//! Vocabularies: what is loaded natively, and how it is pickled. What it takes to understand the tokenizers
//! of other packages is in `anygram/_tokenizers.py`.

use std::path::PathBuf;

use anygram::{Format, LoadOptions, SpecialIds};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

use crate::error::{Raise, bad_vocabulary};
use crate::number::IdOffset;
use crate::tokens::{Text, Token, Tokens, ids};

/// The tokens of a model: for each id its bytes, or nothing for a special token such as EOS.
///
/// Immutable and shared: constraints keep no copy. It takes about 60 bytes a token.
///
/// >>> import anygram
/// >>> vocabulary = anygram.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos=[3])
/// >>> vocabulary.encode("abb")
/// [2, 1]
/// >>> vocabulary.decode([2, 1])
/// b'abb'
/// >>> len(vocabulary), vocabulary.eos
/// (4, (3,))
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Vocabulary {
    pub inner: anygram::Vocabulary,
    source: Source,
}

/// How the vocabulary is made again in another process.
enum Source {
    /// By its content, as it is saved.
    Content,
    Builtin,
    File(PathBuf, LoadOptions),
}

/// The formats of files, with the names that Python knows.
const FORMATS: [(&str, Format); 5] = [
    ("tokenizer-json", Format::HuggingFace),
    ("tiktoken", Format::Tiktoken),
    ("sentencepiece", Format::SentencePiece),
    ("json-array", Format::JsonArray),
    ("saved", Format::Saved),
];

/// Names of special tokens, by id.
type Names = Vec<(u32, String)>;

impl Vocabulary {
    fn new(inner: anygram::Vocabulary, source: Source) -> Self {
        Self { inner, source }
    }
}

fn options(
    (eos, pad, mask): (Option<Tokens>, Option<Token>, Option<Token>),
    names: Option<&Bound<'_, PyDict>>,
    pattern: Option<String>,
    id_offset: u32,
) -> PyResult<LoadOptions> {
    let (eos, pad, mask) = special(eos, pad, mask);
    Ok(LoadOptions { eos, pad, mask, names: named(names)?, pattern, id_offset })
}

fn special(
    eos: Option<Tokens>,
    pad: Option<Token>,
    mask: Option<Token>,
) -> (Vec<u32>, Option<u32>, Option<u32>) {
    let id = |token: Token| token.0.0;
    (eos.map(|eos| ids(&eos.0)).unwrap_or_default(), pad.map(id), mask.map(id))
}

fn named(names: Option<&Bound<'_, PyDict>>) -> PyResult<Names> {
    let Some(names) = names else { return Ok(Vec::new()) };
    names.iter().map(|(id, name)| Ok((id.extract::<Token>()?.0.0, name.extract()?))).collect()
}

#[pymethods]
impl Vocabulary {
    /// The vocabulary of these tokens, in the order of their ids: `bytes`, or `None` for a special token.
    ///
    /// Args:
    ///     tokens: for each id its bytes; any iterable.
    ///     eos: the tokens that end an output.
    ///     pad: the token that fills a row behind EOS.
    ///     mask: the token that a diffusion model reads where nothing is decided yet.
    ///     names: what special tokens are called, such as `{7: "<|call|>"}`; grammars name them so.
    ///
    /// Ids of `eos`, `pad`, `mask` and `names` may lie beyond the tokens. Texts are encoded by longest match.
    ///
    /// Raises:
    ///     VocabularyError: an id is too large, or a name is given twice.
    #[staticmethod]
    #[pyo3(signature = (tokens, eos = None, *, pad = None, mask = None, names = None))]
    fn from_tokens(
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        eos: Option<Tokens>,
        pad: Option<Token>,
        mask: Option<Token>,
        names: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let tokens = tokens.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        let bytes = tokens.iter().map(|token| match token.is_none() {
            true => Ok(&[][..]),
            false => Ok(token.cast::<PyBytes>()?.as_bytes()),
        });
        let bytes = bytes.collect::<PyResult<Vec<&[u8]>>>()?;
        let (eos, pad, mask) = special(eos, pad, mask);
        let plain = anygram::Vocabulary::from_tokens(bytes, SpecialIds { eos, pad, mask }).raise(py)?;
        let names = named(names)?;
        let inner = plain.with_names(names.iter().map(|(id, name)| (*id, &**name))).raise(py)?;
        Ok(Self::new(inner, Source::Content))
    }

    /// The small vocabulary of 4,096 tokens that travels with the package, for examples and tests.
    #[staticmethod]
    fn builtin() -> Self {
        Self::new(anygram::Vocabulary::builtin(), Source::Builtin)
    }

    /// Reads a tokenizer file: `tokenizer.json`, `.tiktoken`, a SentencePiece `.model`, or a JSON array whose
    /// elements are strings, `{"hex": "e4b8"}` for raw bytes or `null` for a special token. Each may have
    /// `.gz`. Or what `save` wrote, which says all that follows.
    ///
    /// Args:
    ///     path: the file.
    ///     eos, pad, mask, names: as for `from_tokens`; most files do not say which tokens end an output.
    ///     pattern: the pre-tokenizer of a `.tiktoken` file, a regular expression.
    ///     id_offset: is added to the ranks of a `.tiktoken` file.
    ///
    /// Raises:
    ///     VocabularyError: there is no such file, or it is none that can be read.
    #[staticmethod]
    #[pyo3(signature = (
        path, *, eos = None, pad = None, mask = None, names = None, pattern = None, id_offset = IdOffset(0),
    ), text_signature = "(path, *, eos=None, pad=None, mask=None, names=None, pattern=None, id_offset=0)")]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn from_file(
        py: Python<'_>,
        path: PathBuf,
        eos: Option<Tokens>,
        pad: Option<Token>,
        mask: Option<Token>,
        names: Option<&Bound<'_, PyDict>>,
        pattern: Option<String>,
        id_offset: IdOffset,
    ) -> PyResult<Self> {
        let options = options((eos, pad, mask), names, pattern, id_offset.0)?;
        let inner = py.detach(|| anygram::Vocabulary::from_file(&path, &options)).raise(py)?;
        // Pickled, it may be read from another folder.
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(Self::new(inner, Source::File(path, options)))
    }

    /// Reads the content of a tokenizer file.
    ///
    /// Args:
    ///     data: the content; gzip is unpacked.
    ///     format: `tokenizer-json`, `tiktoken`, `sentencepiece`, `json-array`, or `saved` for what `save`
    ///         wrote.
    ///     eos, pad, mask, names, pattern, id_offset: as for `from_file`.
    ///
    /// Raises:
    ///     VocabularyError: it is none that can be read.
    #[staticmethod]
    #[pyo3(signature = (
        data, format, *, eos = None, pad = None, mask = None, names = None, pattern = None,
        id_offset = IdOffset(0),
    ), text_signature = "(data, format, *, eos=None, pad=None, mask=None, names=None, pattern=None, \
        id_offset=0)")]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn from_bytes(
        data: &Bound<'_, PyBytes>,
        format: &str,
        eos: Option<Tokens>,
        pad: Option<Token>,
        mask: Option<Token>,
        names: Option<&Bound<'_, PyDict>>,
        pattern: Option<String>,
        id_offset: IdOffset,
    ) -> PyResult<Self> {
        let py = data.py();
        let options = options((eos, pad, mask), names, pattern, id_offset.0)?;
        let Some(&(_, format)) = FORMATS.iter().find(|known| known.0 == format) else {
            let known = FORMATS.map(|known| known.0).join(", ");
            return Err(bad_vocabulary(py, format!("no format `{format}` is known; there are {known}")));
        };
        let bytes = data.as_bytes();
        let inner = py.detach(|| anygram::Vocabulary::from_bytes(format, bytes, &options)).raise(py)?;
        Ok(Self::new(inner, Source::Content))
    }

    /// Saves the vocabulary, with its special tokens and its encoder, for processes that start often:
    /// `from_file` reads it in some 20 ms. Keep the tokenizer's file too: a newer version of this
    /// package may not read what an older one saved, and says so.
    ///
    /// Args:
    ///     path: the file, which is replaced in one step.
    ///
    /// Raises:
    ///     VocabularyError: the file cannot be written.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.save(&path)).raise(py)
    }

    /// Finds out ahead what the first JSON schemas of a process would wait for: what the tokens do in
    /// strings, in numbers and between values. For servers, when they start (`CompileService` does it); it
    /// takes about a quarter of the time that loading takes. Masks are the same with and without.
    ///
    /// >>> import anygram
    /// >>> anygram.Vocabulary.builtin().prepare()
    fn prepare(&self, py: Python<'_>) {
        py.detach(|| anygram::prepare(&self.inner));
    }

    /// The vocabulary of a tokenizer of another package, which need not be imported here: `tokenizers`,
    /// transformers, tiktoken or SentencePiece.
    ///
    /// Args:
    ///     tokenizer: a `tokenizers.Tokenizer`, a tokenizer of transformers, a `tiktoken.Encoding` or a
    ///         `sentencepiece.SentencePieceProcessor`.
    ///     eos, pad, mask: instead of those that the tokenizer names.
    ///
    /// Raises:
    ///     VocabularyError: it is none of these, or it is of a kind that is not read.
    #[classmethod]
    #[pyo3(signature = (tokenizer, *, eos = None, pad = None, mask = None))]
    fn from_tokenizer<'py>(
        class: &Bound<'py, PyType>,
        tokenizer: &Bound<'py, PyAny>,
        eos: Option<&Bound<'py, PyAny>>,
        pad: Option<&Bound<'py, PyAny>>,
        mask: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let helper = class.py().import("anygram._tokenizers")?;
        helper.call_method1("vocabulary_of", (class, tokenizer, eos, pad, mask))
    }

    /// Whether this is the vocabulary of a tokenizer: it encodes sample texts, decodes the ids here, and
    /// compares. The answer is `True`, or raises.
    ///
    /// Raises:
    ///     VocabularyError: the tokenizer disagrees; the message has the text and the first token that
    ///         differs.
    #[pyo3(signature = (tokenizer, texts = None))]
    fn supports<'py>(
        slf: &Bound<'py, Self>,
        tokenizer: &Bound<'py, PyAny>,
        texts: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("anygram._tokenizers")?.call_method1("supports", (slf, tokenizer, texts))
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// The tokens that end an output.
    #[getter]
    fn eos<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, ids(self.inner.eos()))
    }

    /// The token that fills a row behind EOS.
    #[getter]
    fn pad(&self) -> Option<u32> {
        self.inner.pad().map(|token| token.0)
    }

    /// The token that a diffusion model reads where nothing is decided yet.
    #[getter]
    fn mask(&self) -> Option<u32> {
        self.inner.mask().map(|token| token.0)
    }

    /// Special tokens whose names say that they end a text. A suggestion: nothing acts on it.
    #[getter]
    fn suggested_eos(&self) -> Vec<u32> {
        ids(&self.inner.suggested_eos())
    }

    /// The bytes of a token; `None` if it is special or not there.
    fn bytes<'py>(&self, py: Python<'py>, token: Token) -> Option<Bound<'py, PyBytes>> {
        self.inner.bytes(token.0).map(|bytes| PyBytes::new(py, bytes))
    }

    /// What a special token is called, if it has a name.
    fn name(&self, token: Token) -> Option<&str> {
        self.inner.name(token.0)
    }

    /// The special token of this name.
    fn special(&self, name: &str) -> Option<u32> {
        self.inner.special_by_name(name).map(|token| token.0)
    }

    /// Whether the id is one of the vocabulary and has no bytes.
    fn is_special(&self, token: Token) -> bool {
        self.inner.is_special(token.0)
    }

    /// The token as people read it: `" SELECT"`, `"\xe4\xb8"`, `<|im_end|>`.
    fn display(&self, token: Token) -> String {
        self.inner.display_token(token.0)
    }

    /// The tokens into which the vocabulary's own rules cut a text: only ordinary ones, which decode to the
    /// text byte for byte.
    ///
    /// Raises:
    ///     VocabularyError: no tokens spell the text.
    fn encode(&self, py: Python<'_>, text: Text) -> PyResult<Vec<u32>> {
        Ok(ids(&self.inner.encode(&text.0).raise(py)?))
    }

    /// The bytes of these tokens, one after the other; special tokens have none.
    ///
    /// Raises:
    ///     VocabularyError: an id is not in the vocabulary.
    fn decode<'py>(&self, py: Python<'py>, tokens: Tokens) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.inner.decode(&tokens.0).raise(py)?))
    }

    /// A hash of all tokens, names and special ids, as 32 hexadecimal digits: equal vocabularies have equal
    /// ones, on every machine. Cost: O(bytes of the tokens).
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> PyResult<String> {
        let data = PyBytes::new(py, &canonical(&self.inner));
        let size = PyDict::new(py);
        size.set_item("digest_size", 16)?;
        let hash = py.import("hashlib")?.getattr("blake2b")?.call((data,), Some(&size))?;
        hash.call_method0("hexdigest")?.extract()
    }

    /// Bytes of memory, shared by all that use the vocabulary.
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
        let n_special = (0..self.inner.len()).filter(|&id| self.inner.is_special(anygram::TokenId::new(id)));
        format!(
            "Vocabulary({} tokens, {} of them special, eos={:?})",
            self.inner.len(),
            n_special.count(),
            ids(self.inner.eos())
        )
    }

    /// A file is read again, other vocabularies travel as they are saved; the fingerprint has to be the same.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let (py, this) = (slf.py(), slf.get());
        let make = py.import("anygram._pickle")?.getattr("vocabulary")?;
        let given = match &this.source {
            Source::Content => {
                let saved = PyBytes::new(py, &py.detach(|| this.inner.to_saved()).raise(py)?);
                ("from_bytes", (saved, "saved").into_pyobject(py)?, PyDict::new(py))
            }
            Source::Builtin => ("builtin", PyTuple::empty(py), PyDict::new(py)),
            Source::File(path, options) => ("from_file", (path,).into_pyobject(py)?, keywords(py, options)?),
        };
        Ok((make, (given.0, given.1, given.2, this.fingerprint(py)?).into_pyobject(py)?))
    }
}

fn keywords<'py>(py: Python<'py>, options: &LoadOptions) -> PyResult<Bound<'py, PyDict>> {
    let keywords = PyDict::new(py);
    keywords.set_item("eos", &options.eos)?;
    keywords.set_item("pad", options.pad)?;
    keywords.set_item("mask", options.mask)?;
    let names = PyDict::new(py);
    options.names.iter().try_for_each(|(id, name)| names.set_item(id, name))?;
    keywords.set_item("names", names)?;
    keywords.set_item("pattern", &options.pattern)?;
    keywords.set_item("id_offset", options.id_offset)?;
    Ok(keywords)
}

/// All that tells vocabularies apart, as bytes: each part with its length before it.
fn canonical(vocabulary: &anygram::Vocabulary) -> Vec<u8> {
    let mut data = Vec::new();
    let mut put = |part: &[u8]| {
        data.extend((part.len() as u64).to_le_bytes());
        data.extend(part);
    };
    let number = |token: anygram::TokenId| token.0.to_le_bytes();
    for token in (0..vocabulary.len()).map(anygram::TokenId::new) {
        put(vocabulary.bytes(token).unwrap_or_default());
        if let Some(name) = vocabulary.name(token) {
            put(&number(token));
            put(name.as_bytes());
        }
    }
    for special in [vocabulary.eos(), vocabulary.pad().as_slice(), vocabulary.mask().as_slice()] {
        put(&special.iter().copied().flat_map(number).collect::<Vec<u8>>());
    }
    data
}
