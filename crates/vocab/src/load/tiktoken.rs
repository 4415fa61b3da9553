//! `.tiktoken` files: lines of base64 and rank.

use super::LoadOptions;
use crate::encode::{Encoder, RankEncoder};
use crate::table::{TableBuilder, Tokens};
use crate::{ErrorKind, TokenId, VocabError, Vocabulary};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// O(bytes of the file). Ranks may come in any order and leave gaps, which become special ids.
pub(super) fn load(bytes: &[u8], options: &LoadOptions) -> Result<Vocabulary, VocabError> {
    let mut builder = TableBuilder::default();
    for (offset, number, line) in lines(bytes) {
        let wrong =
            |kind, what: String| VocabError::new(kind, format!("{}: {what}", at_line(number, offset)));
        let (token, rank) = split(line).ok_or_else(|| {
            let line = String::from_utf8_lossy(&line[..line.len().min(60)]);
            let what =
                format!("`{line}` is not a token in base64, a space and a rank; is the file complete?");
            wrong(ErrorKind::Syntax, what)
        })?;
        let id = TableBuilder::check_id(rank.saturating_add(options.id_offset.into()))
            .map_err(|e| wrong(e.kind(), e.to_string()))?;
        let start = builder.blob().len();
        STANDARD.decode_vec(token, builder.blob()).map_err(|e| {
            let what = format!("the token of rank {rank} is not base64: {e}; get the file again");
            wrong(ErrorKind::Syntax, what)
        })?;
        builder.push_written(id, start);
        builder.check_size()?;
    }
    let encoder = RankEncoder::new(options.pattern.as_deref().unwrap_or(RankEncoder::DEFAULT_PATTERN))?;
    let place =
        |n| lines(bytes).nth(n).map_or_else(String::new, |(offset, number, _)| at_line(number, offset));
    let tokens = Tokens::new(builder.finish(place)?, Vec::<TokenId>::new());
    Ok(Vocabulary::new(tokens, Encoder::Ranks(Box::new(encoder))))
}

fn at_line(number: usize, offset: usize) -> String {
    format!("line {number} (byte {offset})")
}

/// Whether the first line is one of such a file.
pub(super) fn looks_like_it(bytes: &[u8]) -> bool {
    lines(bytes)
        .next()
        .and_then(|(_, _, line)| split(line))
        .is_some_and(|(token, _)| STANDARD.decode(token).is_ok())
}

/// The lines that are not empty: byte offset, number from 1, content.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, usize, &[u8])> {
    let mut offset = 0;
    bytes
        .split_inclusive(|&byte| byte == b'\n')
        .zip(1..)
        .map(move |(line, number)| {
            let start = offset;
            offset += line.len();
            (start, number, line.trim_ascii_end())
        })
        .filter(|(_, _, line)| !line.is_empty())
}

/// The token, still in base64, and the rank.
fn split(line: &[u8]) -> Option<(&[u8], u64)> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let rank = std::str::from_utf8(&line[space + 1..]).ok()?;
    Some((&line[..space], rank.parse().ok().filter(|_| rank.bytes().all(|byte| byte.is_ascii_digit()))?))
}
