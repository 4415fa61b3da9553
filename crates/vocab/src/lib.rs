//! Vocabularies: which bytes a token stands for, which tokens are special, and how a text becomes tokens.
//!
//! A [`Vocabulary`] is an immutable table from token id to bytes. It is compiled once, cheap to clone and shared by all
//! threads. A token is *ordinary*, and then its text is its bytes (never empty, and not always valid UTF-8: a token may
//! split a character), or *special*, and then it has no text. A text is the concatenation of the bytes of its tokens,
//! nothing else: where a tokenizer would put a space in front of a text, this crate does not.
//!
//! In reading order:
//!
//! - [`VocabError`]: what can be wrong with a file, an option or a text.
//! - [`TokenTrie`]: all ordinary tokens as flat arrays in preorder, for those who walk a whole vocabulary.
//! - [`Vocabulary`]: the table, its special tokens, encoding and decoding.
//! - [`LoadOptions`], [`Format`]: tokenizer files, see [`Vocabulary::from_file`] for what is read.
//!
//! Laws, checked by the tests: `decode(encode(text)) == text` for every text that can be encoded; the trie is the
//! sorted list of ordinary tokens ([`TokenTrie::validate`]); a damaged file is an error, never a panic.
//!
//! Only the module `load::hugging_face` knows the `tokenizers` crate, and its encoder is the only part of this crate
//! whose memory is estimated and not counted.

mod builtin;
mod encode;
mod error;
mod load;
mod table;
mod trie;
mod vocabulary;

pub use error::{VocabError, VocabErrorKind};
pub use load::{Format, LoadOptions};
pub use trie::{Children, Node, NodeId, TokenTrie};
pub use vocabulary::{SpecialIds, Vocabulary};

anygram_bits::index_type! {
    /// The number of a token in its vocabulary.
    TokenId
}

/// Ids from here on are refused, in files and in options, before anything is allocated for them.
pub const MAX_TOKENS: usize = 1 << 24;
