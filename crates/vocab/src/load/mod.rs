//! Tokenizer files.
//!
//! One file per format. A loader gets bytes, never a path, and gives a vocabulary or an error; what is common
//! (opening, unpacking, telling formats apart, limits, special tokens from the options) is here.

mod hugging_face;
mod json_array;
#[cfg(feature = "tokenizers")]
mod pipeline;
mod sentence_piece;
mod tiktoken;

#[cfg(feature = "tokenizers")]
pub(crate) use pipeline::HuggingFaceEncoder;

use crate::{ErrorKind, VocabError, Vocabulary, saved};
use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

/// Files beyond this size are refused, packed or unpacked: the largest tokenizers in use have some 35 MB. A
/// gzip file of a few kB can ask for as much.
const MAX_FILE_BYTES: usize = 1 << 26;

/// How a vocabulary is written. Each may be compressed with gzip, which is seen from the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Format {
    /// `.tiktoken`: a line is a token in base64, a space, and its rank. Byte-level BPE.
    Tiktoken,
    /// A JSON array: element i is token i, a string, `{"hex": "e4b8"}` for raw bytes, or `null` for a special
    /// token.
    JsonArray,
    /// `tokenizer.json` of Hugging Face: BPE or Unigram, byte-level or with `▁` for a space.
    HuggingFace,
    /// A SentencePiece model, a protocol buffer: Unigram, BPE, words or characters.
    SentencePiece,
    /// What [`Vocabulary::save`] writes.
    Saved,
}

/// What a file does not say. The default says nothing more.
///
/// A saved vocabulary says everything: EOS, PAD and MASK of the options replace its own, one by one.
///
/// A `.tiktoken` file says least: its special tokens, its pre-tokenizer and where its ids begin come from
/// here.
///
/// ```no_run
/// use anygram_vocab::{LoadOptions, Vocabulary};
///
/// let options = LoadOptions {
///     eos: vec![151645],
///     names: vec![(151644, "<|im_start|>".into()), (151645, "<|im_end|>".into())],
///     ..LoadOptions::default()
/// };
/// let vocabulary = Vocabulary::from_file("qwen.tiktoken.gz", &options)?;
/// assert_eq!(vocabulary.special_by_name("<|im_end|>"), Some(vocabulary.eos()[0]));
/// # Ok::<(), anygram_vocab::VocabError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LoadOptions {
    /// Tokens that end a text, see [`Vocabulary::with_special`].
    pub eos: Vec<u32>,
    /// The token that fills a row behind EOS.
    pub pad: Option<u32>,
    /// The token that stands for a hole.
    pub mask: Option<u32>,
    /// Special tokens and what they are called, see [`Vocabulary::with_names`].
    pub names: Vec<(u32, String)>,
    /// The pre-tokenizer of a `.tiktoken` file, in the syntax of the `fancy-regex` crate. Without, that of
    /// the Qwen models. Other formats carry their own, and an option that they would not obey is an error.
    pub pattern: Option<String>,
    /// Added to the ranks of a `.tiktoken` file to make ids; the ids below are special.
    pub id_offset: u32,
}

impl Vocabulary {
    /// Reads a tokenizer file.
    ///
    /// What it is shows in its name (`.tiktoken`, `.model`, also with `.gz`), else in its bytes: `[` begins a
    /// JSON array, `{` a `tokenizer.json`, and gzip is unpacked first. See [`Format`].
    ///
    /// - `.tiktoken`: ids are ranks. Special tokens are not in such files: give them in the options. Encoding
    ///   merges by rank, after cutting by `options.pattern`.
    /// - JSON array: encoding takes the longest match, or the fewest tokens if that ends nowhere.
    /// - `tokenizer.json`: special added tokens have no bytes, others have their text. Encoding is the file's
    ///   own, with everything off that changes the text (a space in front, normal forms, truncation), and
    ///   needs the feature `tokenizers`.
    /// - SentencePiece: as the last; control, unknown and unused pieces are special. Encoding is by the
    ///   scores of pieces, and a character that no piece has is spelled by its bytes, in models that have
    ///   pieces for bytes.
    /// - A saved vocabulary: as it was saved, see [`save`](Self::save).
    ///
    /// O(bytes of the file), and a sort of the tokens unless they were saved. Files of more than 64 MiB,
    /// unpacked, are refused. An
    /// error names the file, the place in it, and a way out.
    pub fn from_file(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, VocabError> {
        let path = path.as_ref();
        Self::from_opened(path, options).map_err(|error| error.in_file(path))
    }

    fn from_opened(path: &Path, options: &LoadOptions) -> Result<Self, VocabError> {
        let opened = std::fs::File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|e| VocabError::io("open the vocabulary", e))?;
        if metadata.is_dir() {
            return Err(VocabError::new(
                ErrorKind::Io,
                "a folder, not a file: name the vocabulary in it, such as its tokenizer.json",
            ));
        }
        let doing = "read the vocabulary";
        let mut head = Vec::new();
        (&file)
            .take(saved::MAGIC.len() as u64)
            .read_to_end(&mut head)
            .map_err(|e| VocabError::io(doing, e))?;
        // A saved vocabulary is read in parts, for a process that has just begun pays for each new page. What
        // has no length is read whole.
        if head == saved::MAGIC && metadata.is_file() {
            check_options(Format::Saved, options)?;
            let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
            check_file_size(length)?;
            return saved::load(&mut (&*head).chain(&file), length)?.with_options(options);
        }
        // One byte more, so that the end is found without growing.
        let expected = metadata.len().min(MAX_FILE_BYTES as u64) as usize + 1;
        Self::from_named_bytes(path, &read_limited((&*head).chain(&file), expected, doing)?, options)
    }

    fn from_named_bytes(path: &Path, bytes: &[u8], options: &LoadOptions) -> Result<Self, VocabError> {
        let bytes = unpack(bytes)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let format = match name.trim_end_matches(".gz").rsplit_once('.') {
            Some((_, "tiktoken")) => Format::Tiktoken,
            Some((_, "model")) => Format::SentencePiece,
            _ => guess(&bytes)?,
        };
        Self::from_unpacked(format, &bytes, options)
    }

    /// Reads a vocabulary from memory, as [`from_file`](Self::from_file) does from a file; gzip is unpacked.
    pub fn from_bytes(format: Format, bytes: &[u8], options: &LoadOptions) -> Result<Self, VocabError> {
        Self::from_unpacked(format, &unpack(bytes)?, options)
    }

    fn from_unpacked(format: Format, bytes: &[u8], options: &LoadOptions) -> Result<Self, VocabError> {
        check_options(format, options)?;
        let plain = match format {
            Format::Tiktoken => tiktoken::load(bytes, options)?,
            Format::JsonArray => json_array::load(bytes)?,
            Format::HuggingFace => hugging_face::load(bytes)?,
            Format::SentencePiece => sentence_piece::load(bytes)?,
            Format::Saved => saved::load(&mut &*bytes, bytes.len())?,
        };
        plain.with_options(options)
    }

    /// With the special tokens and names of the options.
    fn with_options(self, options: &LoadOptions) -> Result<Self, VocabError> {
        self.with_special(self.special_or(options))?
            .with_names(options.names.iter().map(|(id, name)| (*id, name.as_str())))
    }
}

/// Whether a format obeys these options.
fn check_options(format: Format, options: &LoadOptions) -> Result<(), VocabError> {
    if format != Format::Tiktoken && (options.pattern.is_some() || options.id_offset != 0) {
        return Err(VocabError::new(
            ErrorKind::Unsupported,
            "a pre-tokenizer pattern and an id offset are for .tiktoken files only: leave them out",
        ));
    }
    Ok(())
}

/// All bytes, of which so many are expected, or an error if they are too many.
pub(crate) fn read_limited(from: impl Read, expected: usize, doing: &str) -> Result<Vec<u8>, VocabError> {
    let mut bytes = Vec::with_capacity(expected);
    from.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|e| VocabError::io(doing, e))?;
    check_file_size(bytes.len())?;
    Ok(bytes)
}

/// Whether a file may have so many bytes.
pub(crate) fn check_file_size(n_bytes: usize) -> Result<(), VocabError> {
    if n_bytes > MAX_FILE_BYTES {
        return Err(VocabError::new(
            ErrorKind::Limit,
            format!("the vocabulary has more than {MAX_FILE_BYTES} bytes, the limit: is this a vocabulary?"),
        ));
    }
    Ok(())
}

/// The content of a gzip file, other bytes as they are; what a failed download leaves behind is an error.
fn unpack(bytes: &[u8]) -> Result<Cow<'_, [u8]>, VocabError> {
    let doing = "unpack the gzip file, which is damaged or cut off (get it again)";
    let content = match bytes.starts_with(&[0x1f, 0x8b]) {
        true => Cow::Owned(read_limited(flate2::read::MultiGzDecoder::new(bytes), 0, doing)?),
        false => Cow::Borrowed(bytes),
    };
    if content.trim_ascii().is_empty() {
        Err(VocabError::new(ErrorKind::Syntax, "the file is empty: get it again"))
    } else if content.starts_with(b"version https://git-lfs") {
        let what = "a pointer of Git LFS, not the file itself: get that with `git lfs pull`";
        Err(VocabError::new(ErrorKind::Syntax, what))
    } else {
        Ok(content)
    }
}

fn guess(bytes: &[u8]) -> Result<Format, VocabError> {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        _ if saved::looks_like_it(bytes) => Ok(Format::Saved),
        Some(b'[') => Ok(Format::JsonArray),
        Some(b'{') => Ok(Format::HuggingFace),
        _ if tiktoken::looks_like_it(bytes) => Ok(Format::Tiktoken),
        // The first field of the message, a piece.
        _ if bytes.first() == Some(&0x0a) => Ok(Format::SentencePiece),
        _ => Err(VocabError::new(
            ErrorKind::Unsupported,
            "not a kind of vocabulary that is read: give a tokenizer.json, a .tiktoken file, a \
             SentencePiece model, a JSON array of tokens, or a saved vocabulary (each may have .gz)",
        )),
    }
}

/// A syntax error of a JSON file, with its line and column.
fn json_error(error: &serde_json::Error) -> VocabError {
    VocabError::new(ErrorKind::Syntax, format!("not the JSON expected: {error}"))
}
