//! How SentencePiece models cut a text.
//!
//! There are four types of models, each with its rule, n being the bytes of the text:
//!
//! - *Unigram*: of all ways to cut the text into pieces the one whose scores add up to the most. By dynamic
//!   programming (Viterbi), O(n · longest piece) time, O(n) memory. The sums are rounded as SentencePiece
//!   rounds them, so that ties fall alike.
//! - *BPE*: from characters, again and again the adjacent pair whose piece has the highest score, the
//!   leftmost of several. O(n log n).
//! - *characters* and *words* (a word has the space before it): as they stand. O(n).
//!
//! A character that no piece has is spelled by its bytes, if the model has pieces for bytes.

use super::{Merger, shortest};
use crate::saved::{Reader, Writer};
use crate::table::{TokenTable, Tokens};
use crate::{TokenId, TokenTrie, VocabError};

/// The encoder of a model.
#[derive(Debug)]
pub(crate) struct PieceEncoder {
    rule: Rule,
    /// In BPE and among characters these are found first and never merged; in Unigram their scores see to it.
    user_defined: Option<TokenTrie>,
}

#[derive(Debug)]
enum Rule {
    /// Scores by token id.
    Unigram {
        scores: Vec<f64>,
        unknown: f64,
    },
    /// Ranks by token id; the higher the score, the lower the rank, and equal scores have equal ranks.
    Bpe {
        ranks: Vec<u32>,
    },
    Words,
    Characters,
}

/// Which rule a saved vocabulary has.
const UNIGRAM: u8 = 0;
const BPE: u8 = 1;
const WORDS: u8 = 2;
const CHARACTERS: u8 = 3;

/// What a rule has to know of a piece.
pub(crate) struct Scored {
    pub score: f32,
    /// Neither special nor a byte.
    pub is_normal: bool,
    /// The length in the file, if it is defined by the user.
    pub user_defined: Option<usize>,
}

impl PieceEncoder {
    /// The most probable pieces.
    pub fn unigram(pieces: &[Scored]) -> Self {
        // As SentencePiece has them, also where there is no normal piece.
        let (mut least, mut most) = (f32::MAX, f32::MIN_POSITIVE);
        for piece in pieces.iter().filter(|piece| piece.is_normal) {
            (least, most) = (least.min(piece.score), most.max(piece.score));
        }
        let score = |piece: &Scored| match piece.user_defined {
            Some(length) => f64::from(length as f32 * most) - 0.1,
            None => piece.score.into(),
        };
        let unknown = f64::from(least - 10.0);
        Self {
            rule: Rule::Unigram { scores: pieces.iter().map(score).collect(), unknown },
            user_defined: None,
        }
    }

    /// Merges by score.
    pub fn bpe(pieces: &[Scored], table: &TokenTable) -> Self {
        let mut distinct: Vec<f32> = pieces.iter().map(|piece| piece.score).collect();
        distinct.sort_by(|a, b| b.total_cmp(a));
        distinct.dedup();
        let rank =
            |piece: &Scored| distinct.partition_point(|other| other.total_cmp(&piece.score).is_gt()) as u32;
        Self {
            rule: Rule::Bpe { ranks: pieces.iter().map(rank).collect() },
            user_defined: trie(pieces, table),
        }
    }

    /// A space with what follows it is a piece.
    pub fn words() -> Self {
        Self { rule: Rule::Words, user_defined: None }
    }

    /// A character is a piece.
    pub fn characters(pieces: &[Scored], table: &TokenTable) -> Self {
        Self { rule: Rule::Characters, user_defined: trie(pieces, table) }
    }

    /// Appends the tokens for a text; `None` if a part of it has none.
    pub(super) fn encode(
        &self,
        tokens: &Tokens,
        text: &str,
        merger: &mut Merger,
        out: &mut Vec<TokenId>,
    ) -> Option<()> {
        if let Rule::Unigram { scores, unknown } = &self.rule {
            return best(tokens, scores, *unknown, text, out);
        }
        let (mut done, mut at) = (0, 0);
        while let Some(trie) = self.user_defined.as_ref().filter(|_| at < text.len()) {
            // One that has become special since is none.
            let found = trie.prefixes(&text.as_bytes()[at..]);
            match found.filter(|(_, id)| !tokens.table.bytes(*id).is_empty()).last() {
                None => at += 1,
                Some((length, id)) => {
                    self.encode_stretch(tokens, &text[done..at], merger, out)?;
                    out.push(id);
                    at += length;
                    done = at;
                }
            }
        }
        self.encode_stretch(tokens, &text[done..], merger, out)
    }

    /// A text without pieces that are defined by the user.
    fn encode_stretch(
        &self,
        tokens: &Tokens,
        text: &str,
        merger: &mut Merger,
        out: &mut Vec<TokenId>,
    ) -> Option<()> {
        let characters = text.chars().map(char::len_utf8);
        match &self.rule {
            Rule::Bpe { ranks } => {
                let rank = |joined: &[u8]| tokens.find(joined).map(|id| ranks[id.index()]);
                merger.merge(text.as_bytes(), characters, rank).try_for_each(|part| spell(tokens, part, out))
            }
            Rule::Words => {
                let mut start = 0;
                let spaces = text.match_indices(' ').map(|(at, _)| at).filter(|&at| at > 0);
                spaces.chain([text.len()]).try_for_each(|end| {
                    let word = &text.as_bytes()[start..end];
                    start = end;
                    spell(tokens, word, out)
                })
            }
            Rule::Unigram { .. } | Rule::Characters => {
                let mut start = 0;
                characters.into_iter().try_for_each(|length| {
                    let character = &text.as_bytes()[start..start + length];
                    start += length;
                    spell(tokens, character, out)
                })
            }
        }
    }

    /// Writes the encoder to a saved vocabulary.
    pub fn write(&self, table: &TokenTable, out: &mut Writer) {
        match &self.rule {
            Rule::Unigram { scores, unknown } => {
                out.byte(UNIGRAM);
                out.score(*unknown);
                out.number(scores.len() as u32);
                scores.iter().for_each(|&score| out.score(score));
            }
            Rule::Bpe { ranks } => {
                out.byte(BPE);
                out.numbers(ranks);
            }
            Rule::Words => out.byte(WORDS),
            Rule::Characters => out.byte(CHARACTERS),
        }
        let user_defined = self.user_defined.as_ref().map_or(&[][..], TokenTrie::order);
        // One that has become special has no bytes to find it by.
        let mut user_defined: Vec<TokenId> =
            user_defined.iter().copied().filter(|&id| !table.bytes(id).is_empty()).collect();
        user_defined.sort_unstable();
        out.ids(&user_defined);
    }

    /// Reads what [`write`](Self::write) wrote.
    pub fn read(table: &TokenTable, file: &mut Reader<'_>) -> Result<Self, VocabError> {
        let (rule, n_known) = match file.byte()? {
            UNIGRAM => {
                let (unknown, scores) = (file.score()?, file.scores()?);
                let n_known = scores.len();
                (Rule::Unigram { scores, unknown }, n_known)
            }
            BPE => {
                let ranks = file.numbers()?;
                let n_known = ranks.len();
                (Rule::Bpe { ranks }, n_known)
            }
            WORDS => (Rule::Words, table.len()),
            CHARACTERS => (Rule::Characters, table.len()),
            other => return Err(file.damaged(format!("there is no rule {other} for pieces"))),
        };
        if n_known != table.len() {
            return Err(file.damaged(format!("{n_known} scores for {} tokens", table.len())));
        }
        let ids = file.ascending_ids()?;
        let user_defined = ids.iter().map(|&id| (id, table.bytes(id)));
        let user_defined = (!ids.is_empty()).then(|| TokenTrie::new(user_defined));
        Ok(Self { rule, user_defined })
    }

    pub fn memory_usage(&self) -> usize {
        let rule = match &self.rule {
            Rule::Unigram { scores, .. } => 8 * scores.capacity(),
            Rule::Bpe { ranks } => 4 * ranks.capacity(),
            Rule::Words | Rule::Characters => 0,
        };
        size_of::<Self>() + rule + self.user_defined.as_ref().map_or(0, TokenTrie::memory_usage)
    }
}

fn trie(pieces: &[Scored], table: &TokenTable) -> Option<TokenTrie> {
    let mut user_defined =
        table.iter().filter(|(id, _)| pieces[id.index()].user_defined.is_some()).peekable();
    user_defined.peek()?;
    Some(TokenTrie::new(user_defined))
}

/// A part that the rule gives is a token, or spelled by the fewest, which for a character are its bytes.
fn spell(tokens: &Tokens, part: &[u8], out: &mut Vec<TokenId>) -> Option<()> {
    match tokens.find(part) {
        Some(id) => {
            out.push(id);
            Some(())
        }
        None => shortest(tokens, part, out),
    }
}

/// The best way to a place in the text.
#[derive(Clone, Copy)]
struct Best {
    score: f32,
    /// Where its last part starts; none at 0 and between the bytes of a character.
    start: u32,
}

const NOWHERE: u32 = u32::MAX;

/// The pieces whose scores add up to the most. A character that is no piece may stand for itself with the
/// score `unknown`.
fn best(tokens: &Tokens, scores: &[f64], unknown: f64, text: &str, out: &mut Vec<TokenId>) -> Option<()> {
    let bytes = text.as_bytes();
    let mut best = vec![Best { score: 0.0, start: NOWHERE }; bytes.len() + 1];
    for (at, character) in text.char_indices() {
        let so_far = f64::from(best[at].score);
        let mut reach = |length: usize, score: f64| {
            let (there, sum) = (&mut best[at + length], (so_far + score) as f32);
            if there.start == NOWHERE || sum > there.score {
                *there = Best { score: sum, start: at as u32 };
            }
        };
        let mut is_known = false;
        for (length, id) in tokens.trie.prefixes(&bytes[at..]) {
            // A byte can be a piece for the byte and a piece for the character: only the latter is for
            // choosing.
            let id = if length == 1 { tokens.find(&bytes[at..=at]).unwrap_or(id) } else { id };
            if tokens.last_resort.binary_search(&id).is_err() {
                reach(length, scores[id.index()]);
                is_known |= length == character.len_utf8();
            }
        }
        if !is_known {
            reach(character.len_utf8(), unknown);
        }
    }
    let mut cuts = vec![bytes.len()];
    while let Some(&end) = cuts.last().filter(|&&end| end > 0) {
        cuts.push(best[end].start as usize);
    }
    cuts.reverse();
    cuts.windows(2).try_for_each(|cut| spell(tokens, &bytes[cut[0]..cut[1]], out))
}
