//! The vocabulary: token ids, their bytes, and the special ones among them.

use crate::encode::Encoder;
use crate::table::{TableBuilder, Tokens};
use crate::{ErrorKind, LoadOptions, TokenId, TokenTrie, VocabError};
use rustc_hash::FxHashMap;
use std::any::Any;
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// An immutable vocabulary; a clone shares everything. Peers say tokenizer info, `TokTrie`, `TokEnv`.
///
/// Costs, with n the number of ids: look-ups O(1); `with_…` O(1) plus the number of names, and O(n) only
/// where an ordinary token becomes special; encoding as described in the [crate's](crate) loaders; about 60
/// bytes of memory a token.
///
/// ```
/// use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};
///
/// // A file of a model, here a JSON array: `null` has no bytes.
/// let options = LoadOptions { eos: vec![3], ..LoadOptions::default() };
/// let vocabulary = Vocabulary::from_bytes(Format::JsonArray, br#"["a", "b", "ab", null]"#, &options)?;
/// let tokens = vocabulary.encode("abb")?;
/// assert_eq!(tokens, [TokenId(2), TokenId(1)]);
/// assert_eq!(vocabulary.decode(&tokens)?, b"abb");
/// assert_eq!((vocabulary.bytes(TokenId(2)), vocabulary.eos()), (Some(&b"ab"[..]), &[TokenId(3)][..]));
/// # Ok::<(), anygram_vocab::VocabError>(())
/// ```
#[derive(Clone)]
pub struct Vocabulary {
    tokens: Arc<Tokens>,
    encoder: Arc<Encoder>,
    names: Arc<Names>,
    /// At least the table's length: ids beyond are special.
    n_ids: usize,
    eos: Arc<[TokenId]>,
    pad: Option<TokenId>,
    mask: Option<TokenId>,
    beside: Beside,
}

/// One value of each type, for all that share a vocabulary.
#[derive(Clone, Default)]
struct Beside(Arc<Mutex<Vec<Arc<dyn Any + Send + Sync>>>>);

/// The texts by which special tokens are called. A name belongs to one id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    by_id: FxHashMap<TokenId, Box<str>>,
    by_name: FxHashMap<Box<str>, TokenId>,
}

/// Which tokens end a text, fill the row behind it, and stand for a hole.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SpecialIds {
    /// Each of these ends a text.
    pub eos: Vec<u32>,
    /// What may follow EOS, besides EOS.
    pub pad: Option<u32>,
    /// What a diffusion model reads where nothing is decided yet.
    pub mask: Option<u32>,
}

/// The usual names of tokens that end a text.
const EOS_NAMES: [&str; 6] =
    ["<|endoftext|>", "<|im_end|>", "</s>", "<eos>", "<|eot_id|>", "<|end_of_text|>"];

impl Vocabulary {
    pub(crate) fn new(tokens: Tokens, encoder: Encoder) -> Self {
        let n_ids = tokens.table.len();
        Self {
            tokens: Arc::new(tokens),
            encoder: Arc::new(encoder),
            names: Arc::default(),
            n_ids,
            eos: Arc::new([]),
            pad: None,
            mask: None,
            beside: Beside::default(),
        }
    }

    /// A vocabulary of parts that fit together.
    pub(crate) fn of_parts(
        tokens: Tokens,
        encoder: Encoder,
        names: Names,
        n_ids: usize,
        (eos, pad, mask): (Vec<TokenId>, Option<TokenId>, Option<TokenId>),
    ) -> Self {
        let plain = Self::new(tokens, encoder);
        Self { names: Arc::new(names), n_ids, eos: eos.into(), pad, mask, ..plain }
    }

    pub(crate) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    pub(crate) fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// The value of a type that is kept beside the tokens: all clones of the vocabulary have the same, which
    /// is made when it is first asked for. It has to depend on nothing but the tokens.
    #[doc(hidden)]
    pub fn beside<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        // A value is added whole.
        let mut values = self.beside.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = values.iter().find_map(|value| value.clone().downcast().ok()) {
            return known;
        }
        let made = Arc::new(T::default());
        values.push(made.clone());
        made
    }

    /// The vocabulary of these tokens: the first has id 0. A token without bytes is special. Texts are
    /// encoded by the longest match.
    ///
    /// ```
    /// use anygram_vocab::{SpecialIds, Vocabulary};
    ///
    /// let special = SpecialIds { eos: vec![3], ..SpecialIds::default() };
    /// let vocabulary = Vocabulary::from_tokens(["(", ")", "x", ""], special)?;
    /// assert_eq!(vocabulary.len(), 4);
    /// # Ok::<(), anygram_vocab::VocabError>(())
    /// ```
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if there are more ids or bytes than the [crate](crate) takes.
    pub fn from_tokens<T: AsRef<[u8]>>(
        tokens: impl IntoIterator<Item = T>,
        special: SpecialIds,
    ) -> Result<Self, VocabError> {
        let mut builder = TableBuilder::default();
        for (id, token) in (0..).zip(tokens) {
            builder.push(TableBuilder::check_id(id)?, token.as_ref());
            builder.check_size()?;
        }
        let table = builder.finish(|n| format!("token {n}"))?;
        Self::new(Tokens::new(table, Vec::new()), Encoder::LongestMatch).with_special(special)
    }

    /// The number of ids: one more than the largest, special ids and holes between ids included.
    pub fn len(&self) -> usize {
        self.n_ids
    }

    /// Whether there is no id at all.
    pub fn is_empty(&self) -> bool {
        self.n_ids == 0
    }

    /// The bytes of an ordinary token; `None` for a special one and for an id that the vocabulary does not
    /// have.
    #[inline]
    pub fn bytes(&self, id: TokenId) -> Option<&[u8]> {
        Some(self.tokens.table.bytes(id)).filter(|bytes| !bytes.is_empty())
    }

    /// The ordinary tokens that have a byte in them, in the order of their ids. Cost: the bytes of all
    /// tokens, many at once, and the tokens that have it.
    #[doc(hidden)]
    pub fn tokens_with(&self, byte: u8) -> impl Iterator<Item = TokenId> {
        self.tokens.table.with_byte(byte)
    }

    /// Whether the id is one of the vocabulary and has no bytes.
    #[inline]
    pub fn is_special(&self, id: TokenId) -> bool {
        id.index() < self.n_ids && self.tokens.table.bytes(id).is_empty()
    }

    /// What a special token is called, such as `<|im_end|>`, if it has a name.
    pub fn name(&self, id: TokenId) -> Option<&str> {
        self.names.by_id.get(&id).map(|name| &**name)
    }

    /// The special token of this name.
    pub fn special_by_name(&self, name: &str) -> Option<TokenId> {
        self.names.by_name.get(name).copied()
    }

    /// The tokens that end a text; several, one or none. In the order in which they were given, without
    /// repetition.
    pub fn eos(&self) -> &[TokenId] {
        &self.eos
    }

    /// The token that fills a row behind EOS.
    pub fn pad(&self) -> Option<TokenId> {
        self.pad
    }

    /// The token that stands for a hole.
    pub fn mask(&self) -> Option<TokenId> {
        self.mask
    }

    /// Special tokens whose names say that they end a text: `<|endoftext|>`, `<|im_end|>`, `</s>`, `<eos>`,
    /// `<|eot_id|>`, `<|end_of_text|>`, in this order. A suggestion to show: nothing here acts on it.
    pub fn suggested_eos(&self) -> Vec<TokenId> {
        EOS_NAMES.iter().filter_map(|name| self.special_by_name(name)).collect()
    }

    /// This vocabulary with these tokens as EOS, PAD and MASK, in place of those it had.
    ///
    /// The ids may lie beyond the vocabulary, which then grows; the ids between are special and have no name.
    /// An ordinary token that is named here becomes special: it loses its bytes, and keeps them as its name
    /// if they are UTF-8 and no other token has that name.
    pub fn with_special(&self, special: SpecialIds) -> Result<Self, VocabError> {
        let mut eos = Vec::with_capacity(special.eos.len());
        for &id in &special.eos {
            let id = TableBuilder::check_id(id.into())?;
            if !eos.contains(&id) {
                eos.push(id);
            }
        }
        let pad = special.pad.map(|id| TableBuilder::check_id(id.into())).transpose()?;
        let mask = special.mask.map(|id| TableBuilder::check_id(id.into())).transpose()?;
        let all: Vec<TokenId> = eos.iter().copied().chain(pad).chain(mask).collect();

        let mut grown = self.clone();
        grown.n_ids = all.iter().map(|id| id.index() + 1).chain([self.n_ids]).max().unwrap_or(0);
        let losing: Vec<TokenId> = all.iter().copied().filter(|&id| self.bytes(id).is_some()).collect();
        for &id in &losing {
            if let Some(name) = self.bytes(id).and_then(|bytes| std::str::from_utf8(bytes).ok()) {
                // A name that is taken stays with its owner.
                let _ = Arc::make_mut(&mut grown.names).add(id, name);
            }
        }
        grown.make_special(&losing);
        grown.eos = eos.into();
        grown.pad = pad;
        grown.mask = mask;
        Ok(grown)
    }

    /// The special tokens of the options, and this vocabulary's own where they name none.
    pub(crate) fn special_or(&self, options: &LoadOptions) -> SpecialIds {
        let own = |token: Option<TokenId>| token.map(|id| id.0);
        SpecialIds {
            eos: match options.eos.is_empty() {
                true => self.eos.iter().map(|id| id.0).collect(),
                false => options.eos.clone(),
            },
            pad: options.pad.or(own(self.pad)),
            mask: options.mask.or(own(self.mask)),
        }
    }

    /// This vocabulary with these special tokens and what they are called, besides those it has.
    ///
    /// For files that leave the special tokens out (`.tiktoken`), or that do not say that they are special:
    /// an ordinary token whose text is the name becomes special and loses its bytes. Ids beyond the
    /// vocabulary make it grow. An error if an id is another ordinary token, or an id or a name is taken by
    /// another.
    pub fn with_names<'a>(
        &self,
        names: impl IntoIterator<Item = (u32, &'a str)>,
    ) -> Result<Self, VocabError> {
        let mut named = self.clone();
        let table = Arc::make_mut(&mut named.names);
        let mut losing = Vec::new();
        for (id, name) in names {
            let id = TableBuilder::check_id(id.into())?;
            match self.bytes(id) {
                Some(bytes) if bytes == name.as_bytes() => losing.push(id),
                Some(bytes) => {
                    return Err(VocabError::new(
                        ErrorKind::InvalidArgument,
                        format!(
                            "token {} cannot be the special token `{name}`: it is the ordinary token {}; \
                             is the id right?",
                            id.0,
                            escape(bytes)
                        ),
                    ));
                }
                None => {}
            }
            table.add(id, name)?;
            named.n_ids = named.n_ids.max(id.index() + 1);
        }
        named.make_special(&losing);
        Ok(named)
    }

    /// Takes the bytes from these tokens.
    fn make_special(&mut self, losing: &[TokenId]) {
        if !losing.is_empty() {
            let table = self.tokens.table.without(losing);
            self.tokens = Arc::new(Tokens::new(table, self.tokens.last_resort.clone()));
            self.beside = Beside::default();
        }
    }

    /// All ordinary tokens as a trie.
    #[doc(hidden)]
    pub fn trie(&self) -> &TokenTrie {
        &self.tokens.trie
    }

    /// The tokens into which this vocabulary's own rules cut a text (a `str` or bytes).
    ///
    /// Only ordinary tokens: a text that contains `<|im_end|>` is spelled out. The tokens decode to the text,
    /// byte for byte, so no space is put in front and nothing is normalized; an error if no tokens do.
    pub fn encode(&self, text: impl AsRef<[u8]>) -> Result<Vec<TokenId>, VocabError> {
        self.encoder.encode(&self.tokens, text.as_ref())
    }

    /// The bytes of these tokens, one after the other. Special tokens have none; an id beyond the vocabulary
    /// is an error.
    pub fn decode(&self, ids: &[TokenId]) -> Result<Vec<u8>, VocabError> {
        let mut text = Vec::with_capacity(4 * ids.len());
        for (i, &id) in ids.iter().enumerate() {
            if id.index() >= self.n_ids {
                return Err(VocabError::new(
                    ErrorKind::UnknownToken,
                    format!(
                        "token {} at place {i} does not exist: the vocabulary has {} ids",
                        id.0, self.n_ids
                    ),
                ));
            }
            text.extend_from_slice(self.tokens.table.bytes(id));
        }
        Ok(text)
    }

    /// The token as people read it: `" SELECT"`, `"\n"`, `"\xe4\xb8"`; a special one by its name, or as
    /// `<[17]>`.
    pub fn display_token(&self, id: TokenId) -> String {
        match (self.bytes(id), self.name(id)) {
            (Some(bytes), _) => escape(bytes),
            (None, Some(name)) => name.to_owned(),
            (None, None) => format!("<[{}]>", id.0),
        }
    }

    /// Bytes of memory, shared by all clones. What the `tokenizers` crate holds is an estimate.
    pub fn memory_usage(&self) -> usize {
        let names: usize = self.names.by_id.values().map(|name| 2 * name.len() + 48).sum();
        self.tokens.memory_usage()
            + self.encoder.memory_usage()
            + names
            + 4 * self.eos.len()
            + size_of::<Self>()
    }

    /// Checks that the trie, the table and the special tokens agree, and says where they do not. O(bytes).
    pub fn validate(&self) -> Result<(), String> {
        let Tokens { table, trie, .. } = &*self.tokens;
        trie.validate()?;
        let n_ordinary = table.iter().count();
        if trie.n_tokens() != n_ordinary {
            return Err(format!("the trie has {} tokens, the table {n_ordinary}", trie.n_tokens()));
        }
        for (id, bytes) in table.iter() {
            let node = bytes.iter().try_fold(TokenTrie::ROOT, |node, &byte| trie.child(node, byte));
            if !node.is_some_and(|node| trie.tokens_at(node).contains(&id)) {
                return Err(format!("token {} is not where the trie should have it", id.0));
            }
            if self.tokens.find(bytes).map(|found| table.bytes(found)) != Some(bytes) {
                return Err(format!("token {} is not in the index", id.0));
            }
        }
        if let Some(id) = self.eos.iter().chain(&self.pad).chain(&self.mask).find(|&&id| !self.is_special(id))
        {
            return Err(format!("token {} is EOS, PAD or MASK, but not special", id.0));
        }
        match self
            .names
            .by_id
            .iter()
            .find(|(id, name)| !self.is_special(**id) || self.names.by_name.get(*name) != Some(*id))
        {
            Some((id, name)) => {
                Err(format!("token {} is called `{name}`, but is not special or not found so", id.0))
            }
            None => Ok(()),
        }
    }
}

/// Sizes and special tokens; the tokens themselves would fill a book.
impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vocabulary")
            .field("len", &self.n_ids)
            .field("ordinary", &self.trie().n_tokens())
            .field("eos", &self.eos)
            .field("pad", &self.pad)
            .field("mask", &self.mask)
            .finish_non_exhaustive()
    }
}

impl Names {
    /// All of them, by ascending id.
    pub fn sorted(&self) -> Vec<(TokenId, &str)> {
        let mut all: Vec<_> = self.by_id.iter().map(|(&id, name)| (id, &**name)).collect();
        all.sort_unstable();
        all
    }

    pub fn add(&mut self, id: TokenId, name: &str) -> Result<(), VocabError> {
        let taken = |text: String| Err(VocabError::new(ErrorKind::InvalidArgument, text));
        match (self.by_id.get(&id), self.by_name.get(name)) {
            (None, None) => {}
            (Some(old), _) if **old == *name => return Ok(()),
            (Some(old), _) => {
                return taken(format!(
                    "token {} is called `{old}`, so it cannot be called `{name}`: leave one out",
                    id.0
                ));
            }
            (None, Some(old)) => {
                return taken(format!(
                    "`{name}` is the name of token {}, so it cannot be that of {}: leave one out",
                    old.0, id.0
                ));
            }
        }
        self.by_id.insert(id, name.into());
        self.by_name.insert(name.into(), id);
        Ok(())
    }
}

/// Bytes as a quoted string: what is printable as it is, the rest escaped.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => text.push_str("\\\""),
                '\'' => text.push('\''),
                _ => text.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text.push('"');
    text
}
