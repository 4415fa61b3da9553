//! Vocabularies: which bytes a token stands for, which tokens are special, and how a text becomes tokens.
//!
//! A [`Vocabulary`] is an immutable table from token id to bytes. It is compiled once, cheap to clone and
//! shared by all threads. A token is *ordinary*, and then its text is its bytes (never empty, and not always
//! valid UTF-8: a token may split a character), or *special*, and then it has no text. A text is the
//! concatenation of the bytes of its tokens, nothing else: where a tokenizer would put a space in front of a
//! text, this crate does not.
//!
//! In reading order:
//!
//! - [`VocabError`]: what can be wrong with a file, an option or a text.
//! - [`TokenTrie`]: all ordinary tokens as flat arrays in preorder, for those who walk a whole vocabulary.
//! - [`Vocabulary`]: the table, its special tokens, encoding and decoding.
//! - [`TokenMask`]: which tokens are allowed.
//! - [`LoadOptions`], [`Format`]: tokenizer files, see [`Vocabulary::from_file`] for what is read.
//!
//! # Files
//!
//! Each may be in gzip. Which one it is shows in the name of the file, else in its first bytes.
//!
//! | format | a token is | special tokens | a text is cut by |
//! |---|---|---|---|
//! | `.tiktoken` (GPT, Llama 3, Qwen) | a line of base64; its id is the rank plus [`LoadOptions::id_offset`] | not in the file: [`LoadOptions::names`] | [`LoadOptions::pattern`], then merges by rank |
//! | SentencePiece `.model` (Llama 2, Mistral, T5) | a piece, with `▁` for a space; of type *byte* a byte | the types *control*, *unknown*, *unused* | scores of pieces: BPE, Unigram; also words and characters |
//! | `tokenizer.json` (Hugging Face) | an entry of a BPE or Unigram model, byte-level or with `▁` for a space | added tokens that say so, and the unknown one | the file's own pipeline, without what changes the text |
//! | JSON array | an element: a string, or `{"hex": "e4b8"}` | `null` and `""` | the longest match |
//! | one that was saved ([`Vocabulary::save`]) | as in the vocabulary that was saved | in the file | as before it was saved |
//!
//! Where the rule of a format finds no tokens for a text (merging ends in bytes that are no tokens, a
//! character that no piece has) the fewest tokens that spell it are taken; it is an error only if there are
//! none, as for a character that is missing in a SentencePiece model without bytes. Encodings have been
//! compared with tiktoken and sentencepiece by `tools/compare.py`.
//!
//! # Laws
//!
//! Checked by the tests: `decode(encode(text)) == text` for every text that can be encoded; the trie is the
//! sorted list of ordinary tokens ([`TokenTrie::validate`]); a damaged file is an error that says where and
//! what to do, or a vocabulary, never a panic. Refused are files of more than 64 MiB (unpacked), tokens of
//! more than 32 MiB in all, and ids from [`MAX_TOKENS`] on.
//!
//! # Features
//!
//! - `tokenizers` (off by default): texts can be encoded with a `tokenizer.json`. Without it such a file is
//!   read all the same, for which bytes its tokens are, and [`Vocabulary::encode`] is an error that names the
//!   feature. Only the module `load::pipeline` knows the `tokenizers` crate, and its encoder is the only part
//!   of this crate whose memory is estimated and not counted.

mod alphabet;
mod builtin;
mod encode;
mod error;
mod load;
mod saved;
mod table;
mod token_mask;
mod trie;
mod vocabulary;

pub use alphabet::Alphabet;
pub use anygram_bits::ErrorKind;
pub use error::VocabError;
pub use load::{Format, LoadOptions};
pub use token_mask::{Logit, TokenMask};
pub use trie::{Children, Node, NodeId, TokenTrie};
pub use vocabulary::{SpecialIds, Vocabulary};

anygram_bits::index_type! {
    /// The number of a token in its vocabulary.
    TokenId
}

/// Ids from here on are refused, in files and in options, before anything is allocated for them.
pub const MAX_TOKENS: usize = 1 << 24;
