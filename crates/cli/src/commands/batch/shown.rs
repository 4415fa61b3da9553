//! Sets of tokens for people: how many there are, and some of them as texts.

use anygram::{TokenId, Vocabulary};
use anyhow::{Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

use super::Question;

/// Tokens that are listed at most.
const MOST: usize = 10_000;

/// Which tokens of a set are listed: what stands under `show`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Show {
    #[serde(default = "some")]
    most: usize,
    #[serde(default)]
    order: Order,
    /// Only tokens that have this in their text, or special ones in their name.
    #[serde(default)]
    search: String,
}

fn some() -> usize {
    50
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// By their ids.
    #[default]
    Id,
    Shortest,
    Longest,
    /// The shortest that begins with each byte, then the second of each, and so on: what can come next, in
    /// few tokens. What can be read comes first.
    Varied,
}

/// What is said of a set.
#[derive(Serialize)]
pub struct Shown {
    /// The tokens of the set.
    count: usize,
    /// Those of them that were searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<usize>,
    /// Some of these.
    shown: Vec<(u32, String)>,
}

impl Show {
    /// What a question wants to be shown, if it does not want whole sets.
    pub fn new(question: &Question<'_>) -> Result<Option<Self>> {
        let Some(value) = question.get("show") else { return Ok(None) };
        ensure!(value.get().starts_with('{'), "\"show\" is not an object");
        let show: Self = serde_json::from_str(value.get()).map_err(|error| {
            anyhow!(
                "\"show\" is {{\"most\":50,\"order\":\"id\",\"search\":\"…\"}}, with the order id, shortest, \
                 longest or varied: {error}"
            )
        })?;
        ensure!(show.most <= MOST, "\"show\": {} tokens are asked for, and {MOST} is the most", show.most);
        Ok(Some(show))
    }

    /// A set, as it is shown. Cost: the set, and sorting what is found.
    pub fn of(&self, tokens: impl Iterator<Item = TokenId>, vocabulary: &Vocabulary) -> Shown {
        let mut count = 0;
        let counted = tokens.inspect(|_| count += 1);
        let mut found: Vec<TokenId> = counted.filter(|&token| self.is_found(token, vocabulary)).collect();
        let n_found = found.len();
        let length = |token: &TokenId| vocabulary.bytes(*token).map_or(0, <[u8]>::len);
        match self.order {
            Order::Id => {}
            Order::Shortest => found.sort_by_key(length),
            Order::Longest => found.sort_by_key(|token| std::cmp::Reverse(length(token))),
            Order::Varied => {
                found.sort_by_key(length);
                found = varied(&found, vocabulary);
            }
        }
        found.truncate(self.most);
        let shown = found.iter().map(|&token| (token.0, vocabulary.display_token(token))).collect();
        Shown { count, found: (!self.search.is_empty()).then_some(n_found), shown }
    }

    fn is_found(&self, token: TokenId, vocabulary: &Vocabulary) -> bool {
        let wanted = self.search.as_bytes();
        let has = |text: &[u8]| text.windows(wanted.len()).any(|window| window == wanted);
        wanted.is_empty()
            || match vocabulary.bytes(token) {
                Some(text) => has(text),
                None => has(vocabulary.display_token(token).as_bytes()),
            }
    }
}

/// Tokens dealt out in turns, one of each first byte; those of one first byte stay in their order.
fn varied(tokens: &[TokenId], vocabulary: &Vocabulary) -> Vec<TokenId> {
    // The last is for tokens without bytes.
    let mut turns = [0_usize; 257];
    let is_readable = |first: usize| (0x20..0x7f).contains(&first);
    let mut dealt: Vec<(usize, bool, usize, TokenId)> = Vec::with_capacity(tokens.len());
    for &token in tokens {
        let first = vocabulary.bytes(token).and_then(<[u8]>::first).map_or(256, |&byte| byte.into());
        dealt.push((turns[first], !is_readable(first), first, token));
        turns[first] += 1;
    }
    dealt.sort_unstable();
    dealt.into_iter().map(|(.., token)| token).collect()
}
