//! Vocabularies saved for a fast start: the tables of a [`Vocabulary`] in a file of our own.
//!
//! What takes long when a tokenizer file is loaded is done once, when it is saved: reading JSON or base64,
//! finding the bytes of each token, sorting, and cutting down the pipeline of a `tokenizer.json`. What is
//! left is linear: the file has the tokens and the order in which the trie wants them, and the trie is built
//! from that order, not read. What only encoding needs (the index from bytes to tokens, the pattern, the
//! pipeline) is made when a text is first encoded.
//!
//! # Layout
//!
//! Numbers are little-endian; *list* is a `u32` count and so many items.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | [`MAGIC`]. Its first byte is no text, and its last one is changed by programs that change line ends |
//! | 4 | [`VERSION`]: another one is an error that says to save again |
//! | 4 | CRC-32 of all that follows |
//! | 8 | the length of the file |
//! | 4 | the number of ids, special ones beyond the table too |
//! | list of `u32` | the length of each token of the table, 0 for a special one |
//! | | the bytes of all tokens, one after the other |
//! | list of `u32` | the ordinary tokens in the order of their bytes, then of their ids |
//! | list of `u16` | the places of the sets of characters below nodes, see [`crate::alphabet`] |
//! | list of `u32` | the tokens of last resort, ascending |
//! | list of `u32`, `u32`, `u32` | EOS; PAD and MASK, [`NONE`] where there is none |
//! | list of (`u32`, text) | special tokens with names, ascending; a text is a list of bytes |
//! | | the encoder, see `encode` |
//!
//! # Nothing is trusted
//!
//! The checksum finds what disks and networks do. Whoever alters a file on purpose can correct the
//! checksum, so nothing else relies on it: each length is compared with what is left of the file before
//! anything is allocated, each id with the table, and the order is walked: each token has to come after the
//! one before, and all have to be there. The set of characters below each node is computed from its
//! children, and compared with the one at the place that the file says. What passes is a vocabulary as any
//! other, of which masks are right. It may be another one than was saved: compare fingerprints where that
//! matters.
//!
//! # Page by page
//!
//! Of what a new process takes to load a vocabulary, a third were its first writes to new pages of memory,
//! some 3 µs each. So the file is read through a small buffer, straight into the tables. It is not mapped.
//! A mapping would share some MB between processes, but it would change under a running process if somebody
//! wrote to the file, after all checks; and in Rust it takes `unsafe`.

use std::io::Read;
use std::path::Path;

use crate::encode::Encoder;
use crate::table::{TableBuilder, TokenTable, Tokens};
use crate::trie::Unsorted;
use crate::vocabulary::Names;
use crate::{ErrorKind, TokenId, TokenTrie, VocabError, Vocabulary};

/// The first bytes of a saved vocabulary.
pub(crate) const MAGIC: [u8; 8] = *b"\x89ANYVOC\n";

/// Grows when the layout changes.
const VERSION: u32 = 2;

/// Stands for no token.
const NONE: u32 = u32::MAX;

/// Where the part begins that the checksum is of.
const CHECKED_FROM: usize = 16;

impl Vocabulary {
    /// The vocabulary as a file that loads in some tens of milliseconds; see [`save`](Self::save).
    ///
    /// # Errors
    /// [`Limit`](ErrorKind::Limit) if the file would be larger than one that is read;
    /// [`Unsupported`](ErrorKind::Unsupported) for a `tokenizer.json` without the feature `tokenizers`, whose
    /// encoder would be lost.
    pub fn to_saved(&self) -> Result<Vec<u8>, VocabError> {
        let Tokens { table, trie, last_resort, .. } = self.tokens();
        let mut out = Writer(MAGIC.to_vec());
        out.number(VERSION);
        out.0.resize(CHECKED_FROM + 8, 0);
        out.number(self.len() as u32);
        out.number(table.len() as u32);
        table.ids().for_each(|id| out.number(table.bytes(id).len() as u32));
        table.iter().for_each(|(_, bytes)| out.0.extend_from_slice(bytes));
        out.ids(trie.order());
        let places = trie.places();
        out.number(places.len() as u32);
        places.iter().for_each(|place| out.0.extend_from_slice(&place.to_le_bytes()));
        out.ids(last_resort);
        out.ids(self.eos());
        for token in [self.pad(), self.mask()] {
            out.number(token.map_or(NONE, |id| id.0));
        }
        let names = self.names().sorted();
        out.number(names.len() as u32);
        for (id, name) in names {
            out.number(id.0);
            out.bytes(name.as_bytes());
        }
        self.encoder().write(table, &mut out)?;
        crate::load::check_file_size(out.0.len())?;
        let length = out.0.len() as u64;
        out.0[CHECKED_FROM..CHECKED_FROM + 8].copy_from_slice(&length.to_le_bytes());
        let checksum = checksum(&out.0[CHECKED_FROM..]);
        out.0[CHECKED_FROM - 4..CHECKED_FROM].copy_from_slice(&checksum.to_le_bytes());
        Ok(out.0)
    }

    /// Saves the vocabulary, with its special tokens and their names, for processes that start often:
    /// [`from_file`](Self::from_file) reads it as it reads tokenizer files, in some 20 ms, and it
    /// encodes texts as this one does. Only the same and newer versions of this crate read it, so keep the
    /// tokenizer file.
    ///
    /// The file is written beside its place and then put there: others read the old one or the new one.
    ///
    /// # Errors
    /// Those of [`to_saved`](Self::to_saved); [`Io`](ErrorKind::Io).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), VocabError> {
        let path = path.as_ref();
        let written = || {
            let bytes = self.to_saved()?;
            let mut beside = path.file_name().unwrap_or_default().to_owned();
            beside.push(format!(".{}.part", std::process::id()));
            let beside = path.with_file_name(beside);
            std::fs::write(&beside, bytes).and_then(|()| std::fs::rename(&beside, path)).map_err(|error| {
                // What is left of it is of no use; where it cannot be removed, the first error says more.
                let _ = std::fs::remove_file(&beside);
                VocabError::io("save the vocabulary", error)
            })
        };
        written().map_err(|error| error.in_file(path))
    }
}

/// Whether this is a saved vocabulary, perhaps one that a transfer as text has damaged.
pub(crate) fn looks_like_it(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC[..7]) || bytes.starts_with(b"\xc2\x89ANYVOC") || bytes.starts_with(b"ANYVOC")
}

/// Reads a saved vocabulary from a file of so many bytes. O(bytes of the file).
pub(crate) fn load(source: &mut dyn Read, length: usize) -> Result<Vocabulary, VocabError> {
    let mut file = Reader::new(source, length)?;
    // What is wrong with the parts of a damaged file says nothing.
    match parts(&mut file) {
        Ok(vocabulary) => file.finish().map(|()| vocabulary),
        Err(error) => Err(file.skip().and_then(|()| file.finish()).err().unwrap_or(error)),
    }
}

fn parts(file: &mut Reader<'_>) -> Result<Vocabulary, VocabError> {
    let n_ids = file.number()? as usize;
    let table = table(file)?;
    if n_ids < table.len() {
        return Err(file.damaged(format!("{n_ids} ids, but a table of {}", table.len())));
    }
    TableBuilder::check_id(n_ids.saturating_sub(1) as u64)?;

    let order = file.ids()?;
    let n_ordinary = table.iter().count();
    if order.len() != n_ordinary {
        let problem = format!("{} tokens in order, but {n_ordinary} in the table", order.len());
        return Err(file.damaged(problem));
    }
    let places = file.collect(u16::from_le_bytes)?;
    let trie = TokenTrie::from_sorted(order, |id| table.sorted(id), &places).map_err(|unsorted| {
        file.damaged(match unsorted {
            Unsorted::Token(at) => format!("token {at} of the order is out of order"),
            Unsorted::Places => "sets of characters have other places".to_owned(),
        })
    })?;
    drop(places);
    let last_resort = file.ascending_ids()?;
    let eos = file.ids()?;
    let [pad, mask] = [file.token()?, file.token()?];
    let mut names = Names::default();
    for _ in 0..file.number()? {
        let (id, name) = (TokenId(file.number()?), file.text()?);
        if id.index() >= n_ids || !table.bytes(id).is_empty() {
            return Err(file.damaged(format!("`{name}` is the name of token {}, which is not special", id.0)));
        }
        names.add(id, &name).map_err(|error| file.damaged(error.to_string()))?;
    }
    let encoder = Encoder::read(&table, file)?;
    for &id in eos.iter().chain(&pad).chain(&mask) {
        if id.index() >= n_ids || !table.bytes(id).is_empty() {
            return Err(file.damaged(format!("token {} is EOS, PAD or MASK, but not special", id.0)));
        }
    }
    if (1..eos.len()).any(|at| eos[..at].contains(&eos[at])) {
        return Err(file.damaged("an EOS is there twice".to_owned()));
    }
    let tokens = Tokens::of_trie(table, trie, last_resort);
    Ok(Vocabulary::of_parts(tokens, encoder, names, n_ids, (eos, pad, mask)))
}

fn table(file: &mut Reader<'_>) -> Result<TokenTable, VocabError> {
    let n_tokens = file.count(4)?;
    if let Some(last) = n_tokens.checked_sub(1) {
        TableBuilder::check_id(last as u64)?;
    }
    let mut starts = Vec::with_capacity(n_tokens + 1);
    // No overflow: there are fewer than 2³² lengths.
    let mut total = 0;
    starts.push(0);
    file.items(n_tokens, |length| {
        total += u64::from(u32::from_le_bytes(length));
        starts.push(total as u32);
    })?;
    TableBuilder::check_total(total)?;
    Ok(TokenTable::of_starts(starts, file.block(total as usize)?))
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Writes the parts of a file.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub fn number(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub fn numbers(&mut self, numbers: &[u32]) {
        self.number(numbers.len() as u32);
        numbers.iter().for_each(|&number| self.number(number));
    }

    pub fn score(&mut self, score: f64) {
        self.0.extend_from_slice(&score.to_le_bytes());
    }

    pub fn ids(&mut self, ids: &[TokenId]) {
        self.number(ids.len() as u32);
        ids.iter().for_each(|id| self.number(id.0));
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }
}

/// Reads the parts of a file, and never beyond its end.
pub(crate) struct Reader<'a> {
    source: &'a mut dyn Read,
    /// From `next` on what was read and not taken yet.
    buffer: Vec<u8>,
    next: usize,
    /// How many bytes were taken, and how many are left, those of the buffer too.
    taken: usize,
    left: usize,
    /// What the checksum should be, and that of what was read.
    expected: u32,
    checksum: flate2::Crc,
}

impl<'a> Reader<'a> {
    /// How much is read at once.
    const AT_ONCE: usize = 1 << 16;

    /// Reads the header.
    fn new(source: &'a mut dyn Read, length: usize) -> Result<Self, VocabError> {
        let (expected, checksum) = (0, flate2::Crc::new());
        let (buffer, next, taken, left) = (Vec::new(), 0, 0, length.min(CHECKED_FROM));
        let mut file = Self { source, buffer, next, taken, left, expected, checksum };
        if file.array()? != MAGIC {
            return Err(file.damaged("the first bytes are not those of a saved vocabulary".to_owned()));
        }
        let version = file.number()?;
        if version != VERSION {
            let problem = format!(
                "the vocabulary was saved in version {version} of the format, and this is version {VERSION}: \
                 save it again with this version, by `anygram vocab save` or `Vocabulary.save`"
            );
            return Err(VocabError::new(ErrorKind::Unsupported, problem));
        }
        file.expected = file.number()?;
        file.checksum = flate2::Crc::new();
        file.left = length - file.taken;
        let had = u64::from_le_bytes(file.array()?);
        if had != length as u64 {
            return Err(file.damaged(format!("the file has {length} bytes, and had {had}")));
        }
        Ok(file)
    }

    /// Goes on to the end of the file.
    fn skip(&mut self) -> Result<(), VocabError> {
        while self.left > 0 {
            let known = self.at_least(1)?.len();
            self.take(known);
        }
        Ok(())
    }

    /// Whether this is the end of the file, and all was as it had been written.
    fn finish(&self) -> Result<(), VocabError> {
        if self.left > 0 {
            return Err(self.damaged("more bytes than expected".to_owned()));
        }
        if self.checksum.sum() != self.expected {
            return Err(self.damaged("the checksum is wrong".to_owned()));
        }
        Ok(())
    }

    /// An error at this place.
    pub fn damaged(&self, problem: String) -> VocabError {
        VocabError::new(
            ErrorKind::Syntax,
            format!(
                "byte {}: {problem}: the saved vocabulary is damaged; copy it again, or save it again from \
                 the tokenizer's file",
                self.taken
            ),
        )
    }

    /// What was read and not taken yet: at least so many bytes, of which there may be [`Self::AT_ONCE`].
    fn at_least(&mut self, n: usize) -> Result<&[u8], VocabError> {
        self.check_left(n)?;
        let read = self.buffer.len() - self.next;
        if read < n {
            self.buffer.drain(..self.next);
            self.next = 0;
            self.buffer.resize(self.left.min(Self::AT_ONCE), 0);
            let new = &mut self.buffer[read..];
            if let Err(error) = self.source.read_exact(new) {
                return Err(match error.kind() {
                    std::io::ErrorKind::UnexpectedEof => {
                        self.damaged("the file has become shorter".to_owned())
                    }
                    _ => VocabError::io("read the vocabulary", error),
                });
            }
            self.checksum.update(new);
        }
        Ok(&self.buffer[self.next..])
    }

    fn check_left(&self, n: usize) -> Result<(), VocabError> {
        if n > self.left {
            return Err(self.damaged(format!("{n} bytes are needed, and {} are left", self.left)));
        }
        Ok(())
    }

    fn take(&mut self, n: usize) {
        self.next += n;
        self.taken += n;
        self.left -= n;
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], VocabError> {
        let mut array = [0; N];
        array.copy_from_slice(&self.at_least(N)?[..N]);
        self.take(N);
        Ok(array)
    }

    pub fn byte(&mut self) -> Result<u8, VocabError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    pub fn number(&mut self) -> Result<u32, VocabError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn score(&mut self) -> Result<f64, VocabError> {
        self.array().map(f64::from_le_bytes)
    }

    /// How many items a list has, each of so many bytes; they are there.
    fn count(&mut self, size: usize) -> Result<usize, VocabError> {
        let n = self.number()? as usize;
        // Fits, where a `usize` has 64 bits; elsewhere no file is so large.
        self.check_left(n.saturating_mul(size))?;
        Ok(n)
    }

    /// The next items.
    fn items<const N: usize>(
        &mut self,
        mut n: usize,
        mut each: impl FnMut([u8; N]),
    ) -> Result<(), VocabError> {
        while n > 0 {
            let (items, _) = self.at_least(N)?.as_chunks();
            let items = &items[..n.min(items.len())];
            items.iter().for_each(|&item| each(item));
            n -= items.len();
            let taken = N * items.len();
            self.take(taken);
        }
        Ok(())
    }

    /// A list.
    fn collect<const N: usize, T>(&mut self, item: impl Fn([u8; N]) -> T) -> Result<Vec<T>, VocabError> {
        let n = self.count(N)?;
        let mut list = Vec::with_capacity(n);
        self.items(n, |bytes| list.push(item(bytes)))?;
        Ok(list)
    }

    pub fn numbers(&mut self) -> Result<Vec<u32>, VocabError> {
        self.collect(u32::from_le_bytes)
    }

    pub fn scores(&mut self) -> Result<Vec<f64>, VocabError> {
        self.collect(f64::from_le_bytes)
    }

    fn ids(&mut self) -> Result<Vec<TokenId>, VocabError> {
        self.collect(|bytes| TokenId(u32::from_le_bytes(bytes)))
    }

    pub fn ascending_ids(&mut self) -> Result<Vec<TokenId>, VocabError> {
        let ids = self.ids()?;
        match ids.is_sorted_by(|a, b| a < b) {
            true => Ok(ids),
            false => Err(self.damaged("ids do not ascend".to_owned())),
        }
    }

    fn token(&mut self) -> Result<Option<TokenId>, VocabError> {
        Ok(Some(self.number()?).filter(|&id| id != NONE).map(TokenId))
    }

    /// The next bytes.
    fn block(&mut self, n: usize) -> Result<Vec<u8>, VocabError> {
        self.check_left(n)?;
        let mut block = Vec::with_capacity(n);
        while block.len() < n {
            let known = self.at_least(1)?;
            let known = &known[..known.len().min(n - block.len())];
            block.extend_from_slice(known);
            let taken = known.len();
            self.take(taken);
        }
        Ok(block)
    }

    pub fn bytes(&mut self) -> Result<Vec<u8>, VocabError> {
        let n = self.count(1)?;
        self.block(n)
    }

    pub fn text(&mut self) -> Result<String, VocabError> {
        String::from_utf8(self.bytes()?).map_err(|_| self.damaged("a text is not UTF-8".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anygram_testkit::random::Random;

    /// Files that somebody altered who knows how to correct length and checksum.
    #[test]
    fn altered_files_with_a_right_checksum() {
        let (mut loaded, mut refused) = (0, 0);
        for good in samples() {
            for mut random in (0..3_000).map(Random::new) {
                let mut bad = good.clone();
                match random.below(6) {
                    0 => bad.truncate(CHECKED_FROM + 8 + random.below(good.len() - CHECKED_FROM - 8)),
                    1 => {
                        let (a, b) = (random.below(good.len()), random.below(good.len()));
                        bad.splice(a..a, good[a.min(b)..b.max(a)].iter().copied());
                    }
                    2 => {
                        // A number is another one that could mean something.
                        let at = CHECKED_FROM + 8 + random.below(good.len() - CHECKED_FROM - 12);
                        let number = *random.choose(&[0, 1, 2, 255, 1 << 16, 1 << 24, 1 << 31, u32::MAX]);
                        bad[at..at + 4].copy_from_slice(&number.to_le_bytes());
                    }
                    _ => {
                        for _ in 0..=random.below(3) {
                            let at = CHECKED_FROM + 8 + random.below(good.len() - CHECKED_FROM - 8);
                            bad[at] = random.below(256) as u8;
                        }
                    }
                }
                if bad.len() < CHECKED_FROM + 8 {
                    continue;
                }
                let length = bad.len() as u64;
                bad[CHECKED_FROM..CHECKED_FROM + 8].copy_from_slice(&length.to_le_bytes());
                let sum = checksum(&bad[CHECKED_FROM..]);
                bad[CHECKED_FROM - 4..CHECKED_FROM].copy_from_slice(&sum.to_le_bytes());
                match load(&mut &*bad, bad.len()) {
                    Ok(vocabulary) => {
                        vocabulary.validate().expect("a vocabulary as any other");
                        for text in [&b"ab abc {\":12\xc3\xa9 the"[..], "日本".as_bytes(), b"\xff\x00"] {
                            if let Ok(tokens) = vocabulary.encode(text) {
                                assert_eq!(vocabulary.decode(&tokens).expect("its own tokens"), text);
                            }
                        }
                        loaded += 1;
                    }
                    Err(error) => {
                        assert!(
                            error.to_string().contains("save it again") || error.kind() == ErrorKind::Limit
                        );
                        refused += 1;
                    }
                }
            }
        }
        assert!(loaded > 300 && refused > 1_000, "{loaded} loaded, {refused} refused");
    }

    fn samples() -> Vec<Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vocab");
        let names = ["tiny.tiktoken", "array.json", "bpe.model", "characters.model", "unigram.model"];
        let pipeline = cfg!(feature = "tokenizers").then_some("byte_level.json");
        names
            .into_iter()
            .chain(pipeline)
            .map(|name| {
                let plain = Vocabulary::from_file(folder.join(name), &Default::default()).expect("a file");
                let eos = plain.len() as u32 + 3;
                let special = crate::SpecialIds { eos: vec![eos], pad: Some(eos + 1), mask: None };
                let named = plain.with_special(special).and_then(|all| all.with_names([(eos, "<end>")]));
                named.and_then(|all| all.to_saved()).expect("a saved vocabulary")
            })
            .collect()
    }

    #[test]
    fn an_order_that_leaves_out_or_repeats() {
        let vocabulary = Vocabulary::from_tokens(["b", "a", "ab", "a", ""], Default::default()).unwrap();
        let table = &vocabulary.tokens().table;
        let places = vocabulary.trie().places();
        let trie = |order: &[u32]| {
            let order = order.iter().map(|&id| TokenId(id)).collect();
            TokenTrie::from_sorted(order, |id| table.sorted(id), &places)
        };
        assert_eq!(&trie(&[1, 3, 2, 0]).unwrap(), vocabulary.trie());
        for (order, at) in [
            (&[3, 1, 2, 0], 1),
            (&[1, 1, 2, 0], 1),
            (&[1, 2, 3, 0], 2),
            (&[0, 1, 2, 3], 1),
            (&[1, 3, 4, 0], 2),
            (&[1, 3, 2, 9], 3),
        ] {
            assert_eq!(trie(order), Err(Unsorted::Token(at)), "{order:?}");
        }
    }
}
