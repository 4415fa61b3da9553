//! With which characters the tokens below a node of a trie go on.
//!
//! A piece of text that is in progress mostly goes on with whatever character of many: of a name, of a
//! string, of a comment. Where all characters below a node are of that kind, nothing has to be walked there.
//! So each node knows the set of the characters below it, a subset of ASCII and of everything else as one:
//! 128 bits, of which a vocabulary has a few thousand different ones.

use std::hash::Hash;
use std::ops::RangeInclusive;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{NodeId, TokenTrie};

/// A set of characters: those of ASCII, all others together, and what is not text in UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Alphabet(u128);

/// The bits of NUL and DEL, which hardly any token contains, stand for what is not text: these two, broken
/// UTF-8, tokens that end inside of a character.
const NO_TEXT: Alphabet = Alphabet(1);
const NOT_ASCII: Alphabet = Alphabet(1 << 127);

impl Alphabet {
    /// Nothing but the end of tokens.
    pub const EMPTY: Self = Self(0);

    /// Whether everything in this set is text.
    #[inline]
    pub fn is_text(self) -> bool {
        self.0 & NO_TEXT.0 == 0
    }

    /// Whether everything in this set is in another, and is text.
    #[inline]
    pub fn is_subset(self, other: Self) -> bool {
        self.0 & !(other.0 & !NO_TEXT.0) == 0
    }

    /// Adds a character of ASCII.
    pub fn insert_ascii(&mut self, byte: u8) {
        self.0 |= Self::of_ascii(byte).0;
    }

    /// Adds all characters that are not in ASCII.
    pub fn insert_others(&mut self) {
        self.0 |= NOT_ASCII.0;
    }

    /// The characters each of whose bytes lead, one after another, from a place to another, all those that
    /// are not in ASCII or none of these. `step` says where a byte leads. Cost: a step for each byte of ASCII
    /// and, as far as characters lead on, for each byte from each place inside of one.
    ///
    /// # Errors
    ///
    /// The first of `step`.
    pub fn leading<P: Copy + Eq + Hash, E>(
        from: P,
        to: P,
        mut step: impl FnMut(P, u8) -> Result<Option<P>, E>,
    ) -> Result<Self, E> {
        let mut alphabet = Self::EMPTY;
        for byte in 0..128 {
            if step(from, byte)? == Some(to) {
                alphabet.insert_ascii(byte);
            }
        }
        // Inside of characters: where one is, which bytes come, and what then. Most places that lead on by
        // letters lead nowhere by other characters, which the first of them says.
        let mut seen: FxHashSet<(P, Option<Inside>)> = FxHashSet::default();
        for (leads, inside) in Inside::starts() {
            let mut open = vec![(from, leads, Some(inside))];
            while let Some((at, bytes, then)) = open.pop() {
                for byte in bytes {
                    let Some(next) = step(at, byte)? else { return Ok(alphabet) };
                    if !seen.insert((next, then)) {
                        continue;
                    }
                    match then {
                        Some(inside) => open.push((next, inside.bytes(), inside.next())),
                        None if next == to => {}
                        None => return Ok(alphabet),
                    }
                }
            }
        }
        alphabet.insert_others();
        Ok(alphabet)
    }

    fn of_ascii(byte: u8) -> Self {
        if (1..127).contains(&byte) { Self(1 << byte) } else { NO_TEXT }
    }

    fn union_with(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Where one is between the bytes of a character that is not in ASCII.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Inside {
    /// The bytes that can be next.
    first: u8,
    last: u8,
    /// How many are missing after that one.
    n_more: u8,
}

impl Inside {
    /// The ways in which such a character begins, with the bytes that begin so (RFC 3629, section 4).
    fn starts() -> impl Iterator<Item = (RangeInclusive<u8>, Self)> {
        [
            (0xC2..=0xDF, 0x80, 0xBF, 0),
            (0xE0..=0xE0, 0xA0, 0xBF, 1),
            (0xE1..=0xEC, 0x80, 0xBF, 1),
            (0xED..=0xED, 0x80, 0x9F, 1),
            (0xEE..=0xEF, 0x80, 0xBF, 1),
            (0xF0..=0xF0, 0x90, 0xBF, 2),
            (0xF1..=0xF3, 0x80, 0xBF, 2),
            (0xF4..=0xF4, 0x80, 0x8F, 2),
        ]
        .into_iter()
        .map(|(leads, first, last, n_more)| (leads, Self { first, last, n_more }))
    }

    /// The bytes that can be next.
    fn bytes(self) -> RangeInclusive<u8> {
        self.first..=self.last
    }

    /// Where one is after one of these bytes; `None` behind the character.
    fn next(self) -> Option<Self> {
        (self.n_more > 0).then(|| Self { first: 0x80, last: 0xBF, n_more: self.n_more - 1 })
    }
}

/// The alphabets below the nodes of a trie.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Alphabets {
    /// The first is [`Alphabet::EMPTY`], the second [`NO_TEXT`].
    pub different: Arc<[Alphabet]>,
    /// One a node: a place in `different`. Where there are more sets than places, it is [`NO_TEXT_ID`], which
    /// says nothing of the node.
    pub of: Vec<u16>,
}

/// The place of [`Alphabet::EMPTY`].
const EMPTY_ID: u16 = 0;

/// The place of [`NO_TEXT`].
const NO_TEXT_ID: u16 = 1;

impl Alphabets {
    /// Cost: O(nodes).
    pub fn new(trie: &TokenTrie) -> Self {
        Self::by_sets(trie, |_| {})
    }

    /// What [`with_places`](Self::with_places) takes, to have the same without looking for sets.
    pub fn places(trie: &TokenTrie) -> Vec<u16> {
        let mut places = Vec::new();
        Self::by_sets(trie, |id| places.push(id));
        places
    }

    fn by_sets(trie: &TokenTrie, mut found: impl FnMut(u16)) -> Self {
        let mut ids = FxHashMap::from_iter([(Alphabet::EMPTY, EMPTY_ID), (NO_TEXT, NO_TEXT_ID)]);
        let by_sets = Self::build(trie, |different, set| {
            let id = *ids.entry(set).or_insert_with(|| add(different, set));
            found(id);
            Some(id)
        });
        by_sets.unwrap_or_default()
    }

    /// The alphabets of a trie of which somebody claims to know the places; `None` if they are others, or
    /// too many or too few. Cost: O(nodes).
    pub fn with_places(trie: &TokenTrie, places: &[u16]) -> Option<Self> {
        let mut places = places.iter();
        let known = Self::build(trie, |different, set| match *places.next()? {
            NO_TEXT_ID => Some(NO_TEXT_ID),
            id if usize::from(id) == different.len() => Some(add(different, set)),
            id => (*different.get(usize::from(id))? == set).then_some(id),
        })?;
        places.next().is_none().then_some(known)
    }

    /// `place` gives the sets that there are so far, and those of nodes that are not that of their last
    /// child, the last node first, a place.
    fn build(
        trie: &TokenTrie,
        mut place: impl FnMut(&mut Vec<Alphabet>, Alphabet) -> Option<u16>,
    ) -> Option<Self> {
        let mut different = vec![Alphabet::EMPTY, NO_TEXT];
        let mut of = vec![EMPTY_ID; trie.n_nodes()];
        // The nodes behind this one whose parents come before it, the nearest last: its children are the last
        // of them. So what is known of children is not looked for far away.
        let mut waiting: Vec<(NodeId, Alphabet, u16)> = Vec::new();
        for node in (0..trie.n_nodes()).rev().map(NodeId::new) {
            let (mut below, end) = (Alphabet::EMPTY, trie.end(node));
            let mut known = (Alphabet::EMPTY, EMPTY_ID);
            while let Some(&(child, further, id)) = waiting.last().filter(|(child, ..)| *child < end) {
                waiting.pop();
                known = (further, id);
                let byte = trie.byte(child);
                below.union_with(if byte.is_ascii() {
                    Alphabet(Alphabet::of_ascii(byte).0 | further.0)
                } else {
                    // Most of them continue a character.
                    let is_lead = (0xC2..=0xF4).contains(&byte);
                    let lead = is_lead.then(|| Inside::starts().find(|(leads, _)| leads.contains(&byte)));
                    lead.flatten().map_or(NO_TEXT, |(_, inside)| {
                        through(trie, child, inside, &|node| different[of[node.index()] as usize])
                    })
                });
            }
            // Often as below its last child.
            if below != known.0 {
                known = (below, place(&mut different, below)?);
            }
            of[node.index()] = known.1;
            waiting.push((node, below, known.1));
        }
        Some(Self { different: different.into(), of })
    }
}

/// The place of the set of all characters in some sets of these places. (What is below none of several nodes
/// alone, but below all together, is not looked for: then nothing is said; nor is anything of no sets.)
pub(crate) fn of_all(different: &[Alphabet], places: impl Iterator<Item = u16> + Clone) -> u16 {
    let mut all = Alphabet::EMPTY;
    places.clone().for_each(|place| all.union_with(different[usize::from(place)]));
    { places }.find(|&place| different[usize::from(place)] == all).unwrap_or(NO_TEXT_ID)
}

/// The place of a set that is not there yet.
fn add(different: &mut Vec<Alphabet>, set: Alphabet) -> u16 {
    u16::try_from(different.len()).map_or(NO_TEXT_ID, |id| {
        different.push(set);
        id
    })
}

/// What is below a node inside of a character.
fn through(trie: &TokenTrie, node: NodeId, inside: Inside, below: &dyn Fn(NodeId) -> Alphabet) -> Alphabet {
    if !trie.tokens_at(node).is_empty() {
        return NO_TEXT;
    }
    let mut all = NOT_ASCII;
    for child in trie.children(node) {
        all.union_with(match inside.next() {
            _ if !inside.bytes().contains(&trie.byte(child)) => NO_TEXT,
            Some(next) => through(trie, child, next, below),
            None => below(child),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Alphabets {
        fn get(&self, node: NodeId) -> Alphabet {
            self.different[usize::from(self.of[node.index()])]
        }
    }
    use crate::TokenId;
    use anygram_testkit::random::Random;

    const PARTS: [&[u8]; 14] = [
        b"a",
        b"b",
        b" ",
        b"\0",
        b"\x7f",
        "é".as_bytes(),
        "中".as_bytes(),
        "😀".as_bytes(),
        b"\xc3",
        b"\xa9",
        b"\xe4\xb8",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xff",
    ];

    fn trie(tokens: &[Vec<u8>]) -> TokenTrie {
        TokenTrie::new(tokens.iter().enumerate().map(|(id, token)| (TokenId::new(id), &**token)))
    }

    /// Some tokens of up to so many parts.
    fn tokens(random: &mut Random, most: usize) -> (Vec<Vec<u8>>, TokenTrie) {
        let n = random.between(1, 39);
        let mut token =
            || (0..random.between(1, most)).flat_map(|_| *random.choose(&PARTS)).copied().collect();
        let tokens: Vec<Vec<u8>> = (0..n).map(|_| token()).collect();
        let trie = trie(&tokens);
        (tokens, trie)
    }

    /// What the tokens have beyond the path to a node, character by character.
    fn spelled(rests: &[&[u8]]) -> Alphabet {
        let mut alphabet = Alphabet::EMPTY;
        for rest in rests {
            let Ok(text) = std::str::from_utf8(rest) else { return NO_TEXT };
            for character in text.chars() {
                match u8::try_from(character).ok().filter(u8::is_ascii) {
                    Some(0 | 127) => return NO_TEXT,
                    Some(byte) => alphabet.insert_ascii(byte),
                    None => alphabet.insert_others(),
                }
            }
        }
        alphabet
    }

    #[test]
    fn of_all_nodes() {
        for mut random in (0..200).map(Random::new) {
            let (tokens, trie) = tokens(&mut random, 4);
            let mut open = vec![(TokenTrie::ROOT, Vec::new())];
            while let Some((node, path)) = open.pop() {
                for child in trie.children(node) {
                    let longer: Vec<u8> = path.iter().copied().chain([trie.byte(child)]).collect();
                    open.push((child, longer));
                }
                let rests: Vec<&[u8]> =
                    tokens.iter().filter_map(|token| token.strip_prefix(&*path)).collect();
                let (found, expected) = (trie.alphabet(node), spelled(&rests));
                if expected == NO_TEXT {
                    assert!(!found.is_text() && !found.is_subset(Alphabet(u128::MAX)), "{:?}", path);
                } else {
                    assert_eq!(found, expected, "{:?}", path);
                }
            }
        }
    }

    #[test]
    fn by_places_that_are_claimed() {
        let mut n_refused = 0;
        for mut random in (0..200).map(Random::new) {
            let (tokens, trie) = tokens(&mut random, 4);
            let (right, expected) = (Alphabets::places(&trie), Alphabets::new(&trie));
            assert_eq!(Alphabets::with_places(&trie, &right).as_ref(), Some(&expected));

            // What is claimed wrongly is refused or says nothing of the node, and never something else.
            for at in 0..right.len() {
                assert_eq!(Alphabets::with_places(&trie, &right[..at]), None, "too few");
                for claimed in 0..=expected.different.len() as u16 {
                    let mut places = right.clone();
                    places[at] = claimed;
                    let Some(found) = Alphabets::with_places(&trie, &places) else {
                        n_refused += 1;
                        continue;
                    };
                    for node in (0..trie.n_nodes()).map(NodeId::new) {
                        let said = found.get(node);
                        assert!(said == expected.get(node) || !said.is_text(), "{tokens:?} {places:?}");
                    }
                }
            }
            assert_eq!(Alphabets::with_places(&trie, &[&*right, &[NO_TEXT_ID]].concat()), None, "too many");
        }
        assert!(n_refused > 1_000);
    }

    #[test]
    fn more_sets_than_places() {
        const N: usize = 70_000;
        let path = |number: usize| [number >> 16, number >> 8, number].map(|part| part as u8);
        // The bits of a number say which of these characters stand below its path.
        let characters = |number: usize| (b'a'..=b'q').filter(move |c| number >> (c - b'a') & 1 == 1);
        let tokens: Vec<Vec<u8>> = (1..N)
            .flat_map(|number| characters(number).map(move |c| [&path(number)[..], &[c]].concat()))
            .collect();
        let trie = trie(&tokens);
        let alphabets = Alphabets::new(&trie);
        let (mut n_said, mut n_silent) = (0, 0);
        for number in 1..N {
            let node = path(number).iter().fold(TokenTrie::ROOT, |node, &b| trie.child(node, b).unwrap());
            let mut set = Alphabet::EMPTY;
            characters(number).for_each(|character| set.insert_ascii(character));
            match alphabets.get(node) {
                said if said == set => n_said += 1,
                silent => {
                    assert!(!silent.is_text());
                    n_silent += 1;
                }
            }
        }
        assert!(n_said > 60_000 && n_silent > 1_000, "{n_said} {n_silent}");
        let places = Alphabets::places(&trie);
        assert_eq!(Alphabets::with_places(&trie, &places), Some(alphabets));
    }

    #[test]
    fn of_what_is_left_of_tokens() {
        let (mut n_said, mut n_nodes) = (0, 0);
        for mut random in (0..200).map(Random::new) {
            let (tokens, trie) = tokens(&mut random, 5);
            let tops: Vec<NodeId> =
                (1..trie.n_nodes()).filter(|_| random.chance(10)).map(NodeId::new).collect();
            let below = trie.below(&tops);
            for node in (0..below.n_nodes()).map(NodeId::new) {
                // What stands below a node of the one stands below nodes of the other with the same path.
                let (said, really) = (below.alphabet(node), Alphabets::new(&below).get(node));
                assert!(said == really || !said.is_text(), "{tokens:?} {tops:?}: {node:?}");
                n_said += usize::from(said.is_text());
                n_nodes += usize::from(really.is_text());
            }
        }
        assert!(n_said * 10 > n_nodes * 9, "{n_said} of {n_nodes}");
    }

    #[test]
    fn subsets() {
        let mut letters = Alphabet::EMPTY;
        letters.insert_ascii(b'a');
        assert!(
            Alphabet::EMPTY.is_subset(letters)
                && letters.is_subset(letters)
                && !letters.is_subset(Alphabet::EMPTY)
        );
        // What is not text is in no other set, whatever that is said to hold.
        letters.insert_ascii(0);
        assert!(!letters.is_subset(letters));
    }

    /// An automaton that reads whole characters and is `home` behind those of a set: what is in the alphabet
    /// is what it reads, all others only if it reads all of them.
    #[test]
    fn characters_that_lead_home() {
        let (mut n_ascii, mut n_others) = (0, 0);
        for seed in 0..60 {
            let mut random = Random::new(seed);
            let ascii: Vec<u8> = (0..128).filter(|_| random.chance(50)).collect();
            // One character that leads elsewhere, or one range.
            let odd = random.chance(60).then(|| {
                let from = 0x80 + random.below(0x10_ff00) as u32;
                from..from + 1 + random.below(300) as u32
            });
            let is_home = |c: char| match c.is_ascii() {
                true => ascii.contains(&(c as u8)),
                false => odd.as_ref().is_none_or(|odd| !odd.contains(&(c as u32))),
            };
            // A place is a room, and the bytes of a character so far. Others may lead to the room of before.
            let (room, home) = (if random.chance(50) { 'a' } else { 'b' }, 'b');
            let elsewhere = random.chance(50).then_some(('a', [0; 4], 0)).filter(|_| room != home);
            let step = |(room, so_far, n): (char, [u8; 4], usize), byte: u8| {
                let mut bytes: [u8; 4] = so_far;
                bytes[n] = byte;
                let found = match std::str::from_utf8(&bytes[..=n]) {
                    Ok(text) if text.chars().all(is_home) => Some((home, [0; 4], 0)),
                    Ok(_) => elsewhere,
                    Err(error) if error.error_len().is_none() => Some((room, bytes, n + 1)),
                    Err(_) => None,
                };
                Ok::<_, ()>(found)
            };
            let found = Alphabet::leading((room, [0; 4], 0), (home, [0; 4], 0), step).unwrap();
            let mut must = Alphabet::EMPTY;
            ascii.iter().for_each(|&byte| must.insert_ascii(byte));
            if ('\u{80}'..=char::MAX).all(is_home) {
                must.insert_others();
                n_others += 1;
            }
            assert_eq!(found, must, "seed {seed}");
            n_ascii += ascii.len();
        }
        assert!(n_ascii > 2_000 && (10..50).contains(&n_others), "{n_ascii} {n_others}");
    }
}
