//! From text to tokens.
//!
//! Whatever the encoder, the tokens it gives spell the text exactly. The ways:
//!
//! - [`RankEncoder`]: byte-level BPE as `.tiktoken` files mean it. The text is cut into pieces by a pattern;
//!   a piece that is a token is that token, even where merging would not reach it (Llama 3 has such tokens);
//!   else its bytes are merged, again and again the adjacent pair whose joined bytes are the token of lowest
//!   rank (the leftmost of several). O(n log n) for a piece of n bytes, so one long word is no trap.
//! - [`PieceEncoder`]: as SentencePiece models mean it, by the scores of pieces.
//! - The longest match: at each point the longest token. O(n · longest token).
//! - [`shortest`]: the fewest tokens, by dynamic programming. The way out of all others, where merging ends
//!   in bytes that are no tokens, the longest match in a dead end, or the pattern fails on a run of a million
//!   spaces. O(n · longest token) time, O(n) memory. First for the part that the encoder was stuck in, then
//!   for the whole text, so a text is refused only if no tokens spell it.
//! - A `tokenizer.json` with the crate that defines it, see `HuggingFaceEncoder` (with the feature
//!   `tokenizers`); what does not spell the text is not believed, and the fewest tokens stand in.
//!
//! Patterns and pipelines take milliseconds to a second to compile. Those of a saved vocabulary are compiled
//! when a text is first encoded, so an encoder can turn out to be of no use then: that is an error, and the
//! fewest tokens do not stand in.

mod pieces;

pub(crate) use pieces::{PieceEncoder, Scored};

#[cfg(feature = "tokenizers")]
use crate::load::HuggingFaceEncoder;
use crate::saved::{Reader, Writer};
use crate::table::{TokenTable, Tokens};
use crate::{ErrorKind, TokenId, VocabError};
use fancy_regex::{Regex, RegexBuilder};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::OnceLock;

/// Which encoder a saved vocabulary has.
const LONGEST_MATCH: u8 = 0;
const RANKS: u8 = 1;
const PIECES: u8 = 2;
const PIPELINE: u8 = 3;

/// How a vocabulary encodes.
#[derive(Debug)]
pub(crate) enum Encoder {
    Ranks(Box<RankEncoder>),
    Pieces(Box<PieceEncoder>),
    LongestMatch,
    #[cfg(feature = "tokenizers")]
    HuggingFace(Box<HuggingFaceEncoder>),
    /// A `tokenizer.json` without the crate that knows how it cuts a text.
    #[cfg(not(feature = "tokenizers"))]
    Unavailable,
}

impl Encoder {
    /// Tokens whose bytes together are `text`.
    pub fn encode(&self, tokens: &Tokens, text: &[u8]) -> Result<Vec<TokenId>, VocabError> {
        if text.len() >= u32::MAX as usize {
            return Err(VocabError::new(
                ErrorKind::Limit,
                format!("the text has {} bytes, the limit is {}: encode it in parts", text.len(), u32::MAX),
            ));
        }
        self.check()?;
        let mut out = Vec::with_capacity(text.len() / 3 + 1);
        let by_rule = self.encode_by_rule(tokens, text, &mut out);
        by_rule
            .or_else(|| {
                out.clear();
                shortest(tokens, text, &mut out)
            })
            .ok_or_else(|| cannot_encode(text, furthest(tokens, text)))?;
        Ok(out)
    }

    /// Compiles what is not yet, and says why if that is not possible.
    fn check(&self) -> Result<(), VocabError> {
        match self {
            Self::Ranks(encoder) => encoder.pattern().map(drop),
            Self::Pieces(_) | Self::LongestMatch => Ok(()),
            #[cfg(feature = "tokenizers")]
            Self::HuggingFace(encoder) => encoder.tokenizer().map(drop),
            #[cfg(not(feature = "tokenizers"))]
            Self::Unavailable => Err(VocabError::new(
                ErrorKind::Unsupported,
                "a text is encoded with a tokenizer.json only if the crate was built with the feature \
                 `tokenizers`: \
                 add it to `anygram` in Cargo.toml, or give tokens",
            )),
        }
    }

    /// Writes the encoder to a saved vocabulary: a byte that says which, and what it is made of.
    pub fn write(&self, table: &TokenTable, out: &mut Writer) -> Result<(), VocabError> {
        match self {
            Self::LongestMatch => out.byte(LONGEST_MATCH),
            Self::Ranks(encoder) => {
                out.byte(RANKS);
                out.bytes(encoder.source.as_bytes());
            }
            Self::Pieces(encoder) => {
                out.byte(PIECES);
                encoder.write(table, out);
            }
            #[cfg(feature = "tokenizers")]
            Self::HuggingFace(encoder) => {
                out.byte(PIPELINE);
                out.bytes(&encoder.packed()?);
            }
            #[cfg(not(feature = "tokenizers"))]
            Self::Unavailable => {
                return Err(VocabError::new(
                    ErrorKind::Unsupported,
                    "a tokenizer.json is saved with its encoder, for which the crate has to be built with \
                     the feature `tokenizers`: add it to `anygram` in Cargo.toml, or save it with the \
                     program `anygram`",
                ));
            }
        }
        Ok(())
    }

    /// Reads what [`write`](Self::write) wrote.
    pub fn read(table: &TokenTable, file: &mut Reader<'_>) -> Result<Self, VocabError> {
        Ok(match file.byte()? {
            LONGEST_MATCH => Self::LongestMatch,
            RANKS => Self::Ranks(Box::new(RankEncoder::uncompiled(&file.text()?))),
            PIECES => Self::Pieces(Box::new(PieceEncoder::read(table, file)?)),
            #[cfg(feature = "tokenizers")]
            PIPELINE => Self::HuggingFace(Box::new(HuggingFaceEncoder::from_packed(file.bytes()?.into()))),
            #[cfg(not(feature = "tokenizers"))]
            PIPELINE => {
                file.bytes()?;
                Self::Unavailable
            }
            other => return Err(file.damaged(format!("there is no encoder {other}"))),
        })
    }

    /// Appends the tokens that the encoder's own rule gives; `None` if it ends nowhere, and then `out` is of
    /// no use.
    fn encode_by_rule(&self, tokens: &Tokens, text: &[u8], out: &mut Vec<TokenId>) -> Option<()> {
        let mut merger = Merger::default();
        match self {
            Self::LongestMatch => longest_match(tokens, text, out),
            Self::Ranks(encoder) => for_each_chunk(text, |chunk| match chunk {
                Ok(chunk) => encoder.encode(tokens, chunk, &mut merger, out),
                Err(chunk) => encoder.encode_piece(tokens, chunk, &mut merger, out),
            }),
            Self::Pieces(encoder) => for_each_chunk(text, |chunk| match chunk {
                Ok(chunk) => encoder.encode(tokens, chunk, &mut merger, out),
                Err(chunk) => shortest(tokens, chunk, out),
            }),
            #[cfg(not(feature = "tokenizers"))]
            Self::Unavailable => None,
            #[cfg(feature = "tokenizers")]
            Self::HuggingFace(encoder) => for_each_chunk(text, |chunk| match chunk {
                Ok(chunk) => match encoder.encode(chunk).filter(|ids| spell(tokens, ids, chunk.as_bytes())) {
                    Some(ids) => {
                        out.extend(ids);
                        Some(())
                    }
                    None => shortest(tokens, chunk.as_bytes(), out),
                },
                Err(chunk) => shortest(tokens, chunk, out),
            }),
        }
    }

    pub fn memory_usage(&self) -> usize {
        match self {
            Self::LongestMatch => 0,
            #[cfg(not(feature = "tokenizers"))]
            Self::Unavailable => 0,
            // The pattern's automata belong to another crate; the text of the pattern stands for them.
            Self::Ranks(encoder) => size_of::<RankEncoder>() + encoder.source.len(),
            Self::Pieces(encoder) => encoder.memory_usage(),
            #[cfg(feature = "tokenizers")]
            Self::HuggingFace(encoder) => encoder.memory_usage(),
        }
    }
}

/// Calls `f` with each longest part of the text that is UTF-8 (`Ok`) or is not (`Err`), while it gives
/// something.
fn for_each_chunk(text: &[u8], mut f: impl FnMut(Result<&str, &[u8]>) -> Option<()>) -> Option<()> {
    for chunk in text.utf8_chunks() {
        if !chunk.valid().is_empty() {
            f(Ok(chunk.valid()))?;
        }
        if !chunk.invalid().is_empty() {
            f(Err(chunk.invalid()))?;
        }
    }
    Some(())
}

/// Whether these tokens spell this text.
#[cfg(any(test, feature = "tokenizers"))]
fn spell(tokens: &Tokens, ids: &[TokenId], mut text: &[u8]) -> bool {
    for &id in ids {
        let bytes = tokens.table.bytes(id);
        let Some(rest) = text.strip_prefix(bytes).filter(|_| !bytes.is_empty()) else {
            return false;
        };
        text = rest;
    }
    text.is_empty()
}

/// Says where tokens get stuck.
fn cannot_encode(text: &[u8], stuck: usize) -> VocabError {
    let what = match text.get(stuck) {
        Some(byte) => format!("no token goes on with byte 0x{byte:02x} at offset {stuck}"),
        None => format!("every token that fits at the end, offset {stuck}, is longer than the text"),
    };
    VocabError::new(
        ErrorKind::CannotEncode,
        format!("{what}: the vocabulary cannot spell this text (does it have a token for every byte?)"),
    )
}

/// Byte-level BPE by rank: ids are ranks, or differ from them by a constant.
#[derive(Debug)]
pub(crate) struct RankEncoder {
    source: Box<str>,
    /// The pattern, compiled when it is first needed; the message if it is none.
    pattern: OnceLock<Result<Regex, String>>,
}

impl RankEncoder {
    /// Where a `.tiktoken` file comes without its pattern: that of the Qwen models, which is also that of
    /// cl100k but for numbers (one digit at a time). Runs of letters with one character before them, single
    /// digits, runs of punctuation with a space before and line ends after, white space.
    pub const DEFAULT_PATTERN: &str = concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"|[^\r\n\p{L}\p{N}]?\p{L}+",
        r"|\p{N}",
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"|\s*[\r\n]+",
        r"|\s+(?!\S)",
        r"|\s+",
    );

    pub fn new(pattern: &str) -> Result<Self, VocabError> {
        let encoder = Self::uncompiled(pattern);
        if pattern != Self::DEFAULT_PATTERN {
            encoder.pattern()?;
        }
        Ok(encoder)
    }

    /// The same, where an error comes with the first text.
    fn uncompiled(pattern: &str) -> Self {
        Self { source: pattern.into(), pattern: OnceLock::new() }
    }

    fn pattern(&self) -> Result<&Regex, VocabError> {
        let compile = || {
            let compiled = RegexBuilder::new(&self.source).backtrack_limit(100_000_000).build();
            compiled.map_err(|e| format!("the pre-tokenizer pattern is not a regular expression: {e}"))
        };
        let pattern = self.pattern.get_or_init(compile).as_ref();
        pattern.map_err(|message| VocabError::new(ErrorKind::Syntax, message.as_str()))
    }

    /// What stands between two matches of the pattern is a piece too.
    fn encode(&self, tokens: &Tokens, text: &str, merger: &mut Merger, out: &mut Vec<TokenId>) -> Option<()> {
        let mut done = 0;
        for found in self.pattern().ok()?.find_iter(text) {
            let Ok(found) = found else {
                // It ran out of its limits, which takes a run of a million spaces.
                return shortest(tokens, &text.as_bytes()[done..], out);
            };
            for range in [done..found.start(), found.range()] {
                self.encode_piece(tokens, &text.as_bytes()[range], merger, out)?;
            }
            done = found.end();
        }
        self.encode_piece(tokens, &text.as_bytes()[done..], merger, out)
    }

    fn encode_piece(
        &self,
        tokens: &Tokens,
        piece: &[u8],
        merger: &mut Merger,
        out: &mut Vec<TokenId>,
    ) -> Option<()> {
        if piece.is_empty() {
            return Some(());
        }
        if let Some(id) = tokens.find(piece) {
            out.push(id);
            return Some(());
        }
        let n_before = out.len();
        let bytes = std::iter::repeat_n(1, piece.len());
        for part in merger.merge(piece, bytes, |joined| tokens.find(joined).map(|id| id.0)) {
            match tokens.find(part) {
                Some(id) => out.push(id),
                None => {
                    out.truncate(n_before);
                    return shortest(tokens, piece, out);
                }
            }
        }
        Some(())
    }
}

/// Scratch memory for merging, kept from piece to piece.
#[derive(Default)]
struct Merger {
    /// By the offset at which a part starts; only those of living parts mean anything.
    parts: Vec<Part>,
    /// Candidate pairs: (rank, start of the left part, end of the right part). A candidate whose parts have
    /// changed since is dropped when it comes up: it is alive iff the part at `start` and the next one
    /// together still end at `end`.
    candidates: BinaryHeap<Reverse<(u32, u32, u32)>>,
}

#[derive(Clone, Copy)]
struct Part {
    /// One past its last byte, which is where the next part starts; 0 if the part was merged into the one
    /// before.
    end: u32,
    /// Where the part before starts.
    previous: u32,
}

impl Merger {
    /// Merges from parts of these lengths, which add up to the piece's, until no adjacent pair has a rank;
    /// what remains.
    fn merge<'a>(
        &'a mut self,
        piece: &'a [u8],
        lengths: impl Iterator<Item = usize>,
        rank: impl Fn(&[u8]) -> Option<u32>,
    ) -> impl Iterator<Item = &'a [u8]> + 'a {
        let n = piece.len() as u32;
        self.candidates.clear();
        self.parts.clear();
        self.parts.resize(piece.len(), Part { end: 0, previous: 0 });
        let (mut previous, mut start) = (0, 0);
        for length in lengths {
            let end = start + length as u32;
            self.parts[start as usize] = Part { end, previous };
            if start > 0 {
                self.offer(piece, previous, end, &rank);
            }
            (previous, start) = (start, end);
        }
        while let Some(Reverse((_, start, end))) = self.candidates.pop() {
            let middle = self.parts[start as usize].end;
            // Merged away, the last, or followed by another part than when the candidate was made.
            if middle == 0 || middle == n || self.parts[middle as usize].end != end {
                continue;
            }
            self.parts[middle as usize].end = 0;
            self.parts[start as usize].end = end;
            if end < n {
                self.parts[end as usize].previous = start;
                self.offer(piece, start, self.parts[end as usize].end, &rank);
            }
            if start > 0 {
                self.offer(piece, self.parts[start as usize].previous, end, &rank);
            }
        }
        let parts = &self.parts;
        let mut start = 0;
        std::iter::from_fn(move || {
            let part = parts.get(start)?;
            let bytes = &piece[start..part.end as usize];
            start = part.end as usize;
            Some(bytes)
        })
    }

    fn offer(&mut self, piece: &[u8], start: u32, end: u32, rank: impl Fn(&[u8]) -> Option<u32>) {
        if let Some(rank) = rank(&piece[start as usize..end as usize]) {
            self.candidates.push(Reverse((rank, start, end)));
        }
    }
}

/// Appends the longest token at each point; `None` if that ends nowhere.
fn longest_match(tokens: &Tokens, text: &[u8], out: &mut Vec<TokenId>) -> Option<()> {
    let mut done = 0;
    while done < text.len() {
        let (length, id) = tokens.trie.prefixes(&text[done..]).last()?;
        out.push(id);
        done += length;
    }
    Some(())
}

/// Appends the fewest tokens that spell the text; of several such sequences the one whose first token is
/// longest, then the second, and so on. `None` if there are none, and then nothing is appended.
fn shortest(tokens: &Tokens, text: &[u8], out: &mut Vec<TokenId>) -> Option<()> {
    const NONE: u32 = u32::MAX;
    // For each suffix the fewest tokens that spell it, and the length of the first of them.
    let mut fewest = vec![NONE; text.len() + 1];
    let mut first = vec![0u32; text.len()];
    fewest[text.len()] = 0;
    for i in (0..text.len()).rev() {
        for (length, _) in tokens.trie.prefixes(&text[i..]) {
            let rest = fewest[i + length];
            if rest < fewest[i] {
                fewest[i] = rest + 1;
                first[i] = length as u32;
            }
        }
    }
    if fewest[0] == NONE {
        return None;
    }
    let mut done = 0;
    while done < text.len() {
        let length = first[done] as usize;
        out.extend(tokens.find(&text[done..done + length]));
        done += length;
    }
    Some(())
}

/// The last place that a sequence of tokens reaches.
fn furthest(tokens: &Tokens, text: &[u8]) -> usize {
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    let mut last = 0;
    for i in 0..text.len() {
        if reached[i] {
            last = i;
            tokens.trie.prefixes(&text[i..]).for_each(|(length, _)| reached[i + length] = true);
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TableBuilder;
    use anygram_testkit::random::Random;

    fn tokens(list: &[&str]) -> Tokens {
        let mut builder = TableBuilder::default();
        for (i, text) in list.iter().enumerate() {
            builder.push(TokenId::new(i), text.as_bytes());
        }
        Tokens::new(builder.finish(|n| n.to_string()).unwrap(), Vec::new())
    }

    fn shortest_ids(tokens: &Tokens, text: &str) -> Option<Vec<u32>> {
        let mut out = Vec::new();
        shortest(tokens, text.as_bytes(), &mut out)?;
        Some(out.iter().map(|id| id.0).collect())
    }

    /// The definition of merging, in O(n²).
    fn merge_slowly(piece: &[u8], rank: impl Fn(&[u8]) -> Option<u32>) -> Vec<Vec<u8>> {
        let mut parts: Vec<Vec<u8>> = piece.iter().map(|&byte| vec![byte]).collect();
        loop {
            let ranks = parts.windows(2).enumerate().filter_map(|(i, pair)| Some((rank(&pair.concat())?, i)));
            let Some((_, i)) = ranks.min() else {
                return parts;
            };
            let right = parts.remove(i + 1);
            parts[i].extend(right);
        }
    }

    /// A text of so many letters, `a` and `b`.
    fn letters(random: &mut Random, least: usize, most: usize) -> String {
        let n = random.between(least, most);
        (0..n).map(|_| *random.choose(&['a', 'b'])).collect()
    }

    #[test]
    fn merging_is_what_it_is_defined_to_be() {
        for mut random in (0..300).map(Random::new) {
            let n = random.between(0, 11);
            let list: Vec<String> = (0..n).map(|_| letters(&mut random, 1, 5)).collect();
            let piece = letters(&mut random, 1, 30);
            let rank =
                |joined: &[u8]| list.iter().position(|token| token.as_bytes() == joined).map(|i| i as u32);
            let mut merger = Merger::default();
            let bytes = std::iter::repeat_n(1, piece.len());
            let merged: Vec<Vec<u8>> =
                merger.merge(piece.as_bytes(), bytes, rank).map(<[u8]>::to_vec).collect();
            assert_eq!(merged, merge_slowly(piece.as_bytes(), rank));
        }
    }

    #[test]
    fn the_shortest_is_no_longer_than_the_longest_match() {
        for mut random in (0..300).map(Random::new) {
            let n = random.between(0, 7);
            let list: Vec<String> = (0..n).map(|_| letters(&mut random, 1, 4)).collect();
            let text = letters(&mut random, 0, 20);
            let list: Vec<&str> = list.iter().map(String::as_str).chain(["a", "b"]).collect();
            let tokens = tokens(&list);
            let (mut greedy, mut fewest) = (Vec::new(), Vec::new());
            longest_match(&tokens, text.as_bytes(), &mut greedy).unwrap();
            shortest(&tokens, text.as_bytes(), &mut fewest).unwrap();
            assert!(fewest.len() <= greedy.len());
            assert!(spell(&tokens, &greedy, text.as_bytes()) && spell(&tokens, &fewest, text.as_bytes()));
        }
    }

    #[test]
    fn a_dead_end_of_the_longest_match_is_left_again() {
        let tokens = tokens(&["a", "abc", "bcd"]);
        assert_eq!(Encoder::LongestMatch.encode(&tokens, b"abcd").unwrap(), [TokenId(0), TokenId(2)]);
        assert_eq!(shortest_ids(&tokens, "abcabcd").unwrap(), [1, 0, 2]);
    }

    #[test]
    fn what_cannot_be_spelled_names_the_place() {
        let tokens = tokens(&["ab", "b"]);
        let refused =
            |text: &str| Encoder::LongestMatch.encode(&tokens, text.as_bytes()).unwrap_err().to_string();
        assert!(refused("abbxab").contains("byte 0x78 at offset 3"));
        assert!(refused("aba").contains("byte 0x61 at offset 2"));
        assert_eq!(shortest_ids(&tokens, "abbxab"), None);
        assert_eq!(shortest_ids(&tokens, ""), Some(Vec::new()));
    }

    #[test]
    fn tokens_may_cross_from_text_to_what_is_none() {
        // Neither `a` alone is a token nor the byte after it.
        let mut builder = TableBuilder::default();
        builder.push(TokenId(0), b"a\xff");
        let tokens = Tokens::new(builder.finish(|n| n.to_string()).unwrap(), Vec::new());
        let encoder = Encoder::Ranks(Box::new(RankEncoder::new(RankEncoder::DEFAULT_PATTERN).unwrap()));
        assert_eq!(encoder.encode(&tokens, b"a\xffa\xff").unwrap(), [TokenId(0); 2]);
    }

    #[test]
    fn one_long_piece_is_no_trap() {
        let tokens = tokens(&["a", "aa", "aaaa", "aaaaaaaa"]);
        let encoder = RankEncoder::new(RankEncoder::DEFAULT_PATTERN).unwrap();
        let text = "a".repeat(1 << 18);
        let ids = Encoder::Ranks(Box::new(encoder)).encode(&tokens, text.as_bytes()).unwrap();
        assert_eq!(ids, vec![TokenId(3); 1 << 15]);
    }

    #[test]
    fn pieces_that_merging_cannot_finish_are_spelled_anyway() {
        // Merging takes `ab` first and is left with `c`, which is no token.
        let tokens = tokens(&["a", "b", "ab", "bc"]);
        let encoder = Encoder::Ranks(Box::new(RankEncoder::new(RankEncoder::DEFAULT_PATTERN).unwrap()));
        assert_eq!(encoder.encode(&tokens, b"abc").unwrap(), [TokenId(0), TokenId(3)]);
        let error = encoder.encode(&tokens, b"ab ab c").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CannotEncode);
        assert!(error.to_string().contains("0x20 at offset 2"), "{error}");
    }
}
