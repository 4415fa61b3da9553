//! SentencePiece models: a protocol buffer with a list of pieces, each with a score and a type.
//!
//! The reader knows as much of protocol buffers as this needs (varints, fixed and delimited fields), skips
//! what it does not know, and never looks deeper than the two levels it wants, so there is nothing to recurse
//! into. `▁` is a space, a piece of type *byte* is that byte, the types *unknown*, *control* and *unused*
//! have no bytes.

use super::hugging_face::fallback_byte;
use crate::encode::{Encoder, PieceEncoder, Scored};
use crate::table::{TableBuilder, Tokens};
use crate::{ErrorKind, VocabError, Vocabulary};

/// How the model cuts a text, as the format numbers it.
#[derive(Clone, Copy)]
enum ModelType {
    Unigram,
    Bpe,
    Words,
    Characters,
}

/// The type of a piece, as the format numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PieceType {
    Normal,
    Special,
    UserDefined,
    Byte,
}

struct Piece<'a> {
    text: &'a str,
    score: f32,
    kind: PieceType,
}

pub(super) fn load(bytes: &[u8]) -> Result<Vocabulary, VocabError> {
    let (mut pieces, mut model, mut escapes_spaces) = (Vec::new(), None, true);
    for field in Fields::new(bytes, 0) {
        match field? {
            (1, at, Payload::Bytes(piece)) => pieces.push(self::piece(piece, at)?),
            (2, at, Payload::Bytes(trainer)) => model = Some(model_type(trainer, at)?),
            (3, at, Payload::Bytes(normalizer)) => {
                escapes_spaces = last_number(normalizer, at, 5)? != Some(0)
            }
            _ => {}
        }
    }
    let lacks = |what: &str| {
        let message = format!(
            "a SentencePiece model without {what}: the file is cut off, or of another kind; get it again"
        );
        VocabError::new(ErrorKind::Syntax, message)
    };
    if pieces.is_empty() {
        return Err(lacks("pieces"));
    }
    if !escapes_spaces {
        return Err(VocabError::new(
            ErrorKind::Unsupported,
            "a SentencePiece model that does not write `▁` for a space (`escape_whitespaces`): convert it \
             to a \
             tokenizer.json, or to a JSON array of tokens",
        ));
    }
    // It stands behind the pieces. Without it the model would be taken for another type, by default.
    build(&pieces, model.ok_or_else(|| lacks("a trainer specification behind its pieces"))?)
}

fn model_type(trainer: &[u8], offset: usize) -> Result<ModelType, VocabError> {
    match last_number(trainer, offset, 3)? {
        None | Some(1) => Ok(ModelType::Unigram),
        Some(2) => Ok(ModelType::Bpe),
        Some(3) => Ok(ModelType::Words),
        Some(4) => Ok(ModelType::Characters),
        Some(other) => Err(damaged(
            offset,
            &format!("a model of type {other}; known are 1 (Unigram), 2 (BPE), 3 (words), 4 (characters)"),
        )),
    }
}

fn build(pieces: &[Piece], model: ModelType) -> Result<Vocabulary, VocabError> {
    let mut builder = TableBuilder::default();
    let (mut names, mut last_resort) = (Vec::new(), Vec::new());
    for (piece, number) in pieces.iter().zip(0..) {
        let id = TableBuilder::check_id(number)?;
        match piece.kind {
            PieceType::Special => {
                builder.push(id, b"");
                names.push((id.0, piece.text));
            }
            PieceType::Byte => {
                let byte = fallback_byte(piece.text).ok_or_else(|| {
                    let message =
                        format!("piece {} is of type byte, but `{}` is not like `<0x0A>`", id.0, piece.text);
                    VocabError::new(ErrorKind::Syntax, message)
                })?;
                builder.push(id, &[byte]);
                last_resort.push(id);
            }
            PieceType::Normal | PieceType::UserDefined => {
                builder.push(id, piece.text.replace('▁', " ").as_bytes())
            }
        }
        builder.check_size()?;
    }
    let table = builder.finish(|n| format!("piece {n}"))?;
    let scored = |piece: &Piece| Scored {
        score: piece.score,
        is_normal: piece.kind == PieceType::Normal,
        user_defined: (piece.kind == PieceType::UserDefined).then_some(piece.text.len()),
    };
    let scored: Vec<Scored> = pieces.iter().map(scored).collect();
    let encoder = match model {
        ModelType::Unigram => PieceEncoder::unigram(&scored),
        ModelType::Bpe => PieceEncoder::bpe(&scored, &table),
        ModelType::Words => PieceEncoder::words(),
        ModelType::Characters => PieceEncoder::characters(&scored, &table),
    };
    Vocabulary::new(Tokens::new(table, last_resort), Encoder::Pieces(Box::new(encoder))).with_names(names)
}

/// Reads the message of one piece: text, score, type.
fn piece(message: &[u8], offset: usize) -> Result<Piece<'_>, VocabError> {
    let mut piece = Piece { text: "", score: 0.0, kind: PieceType::Normal };
    for field in Fields::new(message, offset) {
        match field? {
            (1, at, Payload::Bytes(text)) => {
                piece.text = std::str::from_utf8(text).map_err(|_| {
                    VocabError::new(ErrorKind::Syntax, format!("byte {at}: the text of a piece is not UTF-8"))
                })?;
            }
            (2, _, Payload::Fixed32(score)) => piece.score = score,
            (3, at, Payload::Number(kind)) => {
                piece.kind = match kind {
                    1 => PieceType::Normal,
                    2 | 3 | 5 => PieceType::Special,
                    4 => PieceType::UserDefined,
                    6 => PieceType::Byte,
                    _ => return Err(damaged(at, &format!("a piece of unknown type {kind}"))),
                }
            }
            _ => {}
        }
    }
    Ok(piece)
}

/// The last value of a number field in a message, which is the one that counts.
fn last_number(message: &[u8], offset: usize, number: u64) -> Result<Option<u64>, VocabError> {
    let mut last = None;
    for field in Fields::new(message, offset) {
        if let (found, _, Payload::Number(value)) = field?
            && found == number
        {
            last = Some(value);
        }
    }
    Ok(last)
}

/// The fields of a message in their order: number, offset of the payload in the file, payload.
struct Fields<'a> {
    bytes: &'a [u8],
    offset: usize,
}

enum Payload<'a> {
    Number(u64),
    Fixed32(f32),
    Fixed64,
    Bytes(&'a [u8]),
}

fn damaged(offset: usize, what: &str) -> VocabError {
    VocabError::new(
        ErrorKind::Syntax,
        format!(
            "byte {offset}: {what}: the SentencePiece model is damaged, or the file is of another kind; \
             get it again"
        ),
    )
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, offset }
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        self.offset += n;
        Some(head)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let &byte = self.take(1)?.first()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn field(&mut self) -> Option<(u64, usize, Payload<'a>)> {
        let tag = self.number()?;
        let mut at = self.offset;
        let payload = match tag & 7 {
            0 => Payload::Number(self.number()?),
            1 => self.take(8).map(|_| Payload::Fixed64)?,
            2 => {
                let length = usize::try_from(self.number()?).ok()?;
                at = self.offset;
                Payload::Bytes(self.take(length)?)
            }
            5 => Payload::Fixed32(f32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((tag >> 3, at, payload))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, usize, Payload<'a>), VocabError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let offset = self.offset;
        let field = self.field();
        if field.is_none() {
            // Nothing that follows can be trusted.
            self.bytes = &[];
        }
        Some(field.ok_or_else(|| damaged(offset, "a field is cut off or of an unknown kind")))
    }
}
