//! Texts: bytes, and the special tokens that a grammar may name between them.

use std::fmt;

/// One symbol of a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Sym {
    /// A byte of an ordinary token.
    Byte(u8),
    /// A special token, which has no bytes.
    Token(u32),
}

/// Token id to bytes; `None` for a special token.
pub type Vocab = [Option<Vec<u8>>];

/// Whatever can be read as a text.
pub trait Text {
    /// The text, symbol by symbol.
    fn symbols(&self) -> Vec<Sym>;
}

impl Text for [Sym] {
    fn symbols(&self) -> Vec<Sym> {
        self.to_vec()
    }
}

impl Text for Vec<Sym> {
    fn symbols(&self) -> Vec<Sym> {
        self.clone()
    }
}

impl Text for [u8] {
    fn symbols(&self) -> Vec<Sym> {
        self.iter().map(|&byte| Sym::Byte(byte)).collect()
    }
}

impl Text for Vec<u8> {
    fn symbols(&self) -> Vec<Sym> {
        self.as_slice().symbols()
    }
}

impl<const N: usize> Text for [u8; N] {
    fn symbols(&self) -> Vec<Sym> {
        self.as_slice().symbols()
    }
}

impl Text for str {
    fn symbols(&self) -> Vec<Sym> {
        self.as_bytes().symbols()
    }
}

impl Text for String {
    fn symbols(&self) -> Vec<Sym> {
        self.as_bytes().symbols()
    }
}

/// The bytes of a text; `None` if a special token stands in it.
pub fn bytes_of(text: &[Sym]) -> Option<Vec<u8>> {
    let byte = |&symbol: &Sym| match symbol {
        Sym::Byte(byte) => Some(byte),
        Sym::Token(_) => None,
    };
    text.iter().map(byte).collect()
}

/// The symbols that one token contributes to a text.
///
/// # Panics
/// If the vocabulary has no such token.
pub fn token_symbols(vocab: &Vocab, token: u32) -> Vec<Sym> {
    match &vocab[token as usize] {
        Some(bytes) => bytes.symbols(),
        None => vec![Sym::Token(token)],
    }
}

/// The text of a row of tokens.
pub fn text_of(vocab: &Vocab, tokens: &[u32]) -> Vec<Sym> {
    tokens.iter().flat_map(|&token| token_symbols(vocab, token)).collect()
}

/// Prints a text with `\xHH` for bytes that are not printable UTF-8 and `<[7]>` for special tokens.
pub fn show(text: &[Sym]) -> impl fmt::Display + '_ {
    Show(text)
}

struct Show<'a>(&'a [Sym]);

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        let mut rest = self.0;
        while let Some(&first) = rest.first() {
            let run: Vec<u8> =
                rest.iter().map_while(|symbol| bytes_of(&[*symbol]).map(|byte| byte[0])).collect();
            if let Sym::Token(id) = first {
                write!(f, "<[{id}]>")?;
            }
            for chunk in run.utf8_chunks() {
                write!(f, "{}", chunk.valid().escape_debug())?;
                chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
            }
            rest = &rest[run.len().max(1)..];
        }
        f.write_str("\"")
    }
}
