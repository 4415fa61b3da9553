//! That the keys of members between marks differ, where they may be anything: a [`Memory`] beside the parser.
//!
//! A member is the mark before its key, the key, which the first byte behind it ends, and a value up to the
//! first closing mark. What follows the last member is known, and no member begins with it, or nothing
//! follows: so the text alone says where keys are and where the members end.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::ops::Bound;
use std::sync::Arc;

use anygram_grammar::memory::{ByteSet, Ended, Memory, Remembered, Rests, Risk, TokenTest, Watch, Watched};
use rpds::RedBlackTreeSetSync;
use rustc_hash::{FxHashSet, FxHasher};

use crate::style::{Style, Wrapper};

/// The key that marks are written around here; none that a member has.
const KEY: &str = "\u{0}";

/// What stands around the keys and values of members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Marks {
    /// What stands before a key.
    pub before: String,
    /// What stands behind it.
    pub behind: String,
    /// What stands between that and the value, blanks aside.
    pub inner: Option<&'static str>,
    /// What closes a value.
    pub close: &'static str,
    /// What may follow the last member; nothing if the text ends with it.
    pub ends: Vec<String>,
}

impl Marks {
    /// Those around strings in a style; `None` where members are not written so, and where members or what
    /// follows them cannot be told apart by the text.
    pub fn new(style: Style, ends: &[&str]) -> Option<Self> {
        let Wrapper { open, inner, close } = style.wrapper(KEY, "string")?;
        let (before, behind) = open.split_once(KEY)?;
        let begin_alike = |one: &str, other: &str| one.starts_with(other) || other.starts_with(one);
        let of_all = [before].into_iter().chain(ends.iter().copied()).map(str::trim_ascii_start);
        let of_all: Vec<&str> = of_all.collect();
        let are_clear =
            (1..of_all.len()).all(|at| !of_all[..at].iter().any(|one| begin_alike(one, of_all[at])));
        are_clear.then(|| Self {
            before: before.to_owned(),
            behind: behind.to_owned(),
            inner,
            close,
            ends: ends.iter().map(|&end| end.to_owned()).collect(),
        })
    }

    /// The byte that ends a key.
    fn end_of_key(&self) -> u8 {
        self.behind.as_bytes().first().copied().unwrap_or_default()
    }

    /// Bytes that tell what stands between two members, or behind the last.
    fn longest(&self) -> usize {
        self.ends.iter().map(String::len).fold(self.before.len(), usize::max)
    }
}

/// Where in the members a text is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Place {
    /// Before a key, or behind the last value: what was read there last.
    Between(Vec<u8>),
    /// In a key.
    Key(String),
    /// In a key that is told apart from no other.
    OtherKey,
    /// Behind a key: how much of the closing mark was read.
    Value(usize),
    /// Behind what follows the last member.
    Over,
}

/// What a byte does.
enum Event {
    Nothing,
    /// A key begins.
    Begins,
    /// A key ends, of which it is known what it is or not.
    Ends(Option<Arc<str>>),
}

impl Place {
    /// Reads a byte.
    fn read(&mut self, marks: &Marks, byte: u8) -> Event {
        match self {
            Self::Between(read) => {
                read.push(byte);
                let is_read = |mark: &str| {
                    read.strip_suffix(mark.as_bytes()).is_some_and(|blanks| blanks.trim_ascii().is_empty())
                };
                if is_read(&marks.before) {
                    *self = Self::Key(String::new());
                    return Event::Begins;
                }
                if marks.ends.iter().any(|end| is_read(end)) {
                    *self = Self::Over;
                } else {
                    // What is cut off are blanks.
                    read.drain(..read.len().saturating_sub(marks.longest()));
                }
                Event::Nothing
            }
            Self::Key(_) | Self::OtherKey if byte == marks.end_of_key() => {
                match std::mem::replace(self, Self::Value(0)) {
                    Self::Key(key) => Event::Ends(Some(key.into())),
                    _ => Event::Ends(None),
                }
            }
            Self::Key(key) => {
                // Keys are ASCII.
                key.push(char::from(byte));
                Event::Nothing
            }
            Self::Value(n_read) => {
                *n_read = progress(marks.close.as_bytes(), *n_read, byte);
                if *n_read == marks.close.len() {
                    *self = Self::Between(Vec::new());
                }
                Event::Nothing
            }
            Self::OtherKey | Self::Over => Event::Nothing,
        }
    }
}

/// How much of a mark a text ends with that ended with so much of it before a byte.
fn progress(mark: &[u8], n_read: usize, byte: u8) -> usize {
    let ends_so = |n: &usize| mark[*n - 1] == byte && mark[..n_read].ends_with(&mark[..*n - 1]);
    (1..=(n_read + 1).min(mark.len())).rev().find(ends_so).unwrap_or(0)
}

/// The keys that were written.
#[derive(Clone, Default, Debug)]
struct Seen {
    keys: RedBlackTreeSetSync<Arc<str>>,
    /// Tells such sets apart.
    print: u64,
}

impl Seen {
    fn contains(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    fn insert(&mut self, key: Arc<str>) {
        if !self.contains(&key) {
            self.print = self.print.wrapping_add(hash(&key));
            self.keys.insert_mut(key);
        }
    }

    /// Those that begin so.
    fn of<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = &'a Arc<str>> {
        self.keys
            .range::<str, _>((Bound::Included(begin), Bound::Unbounded))
            .take_while(move |key| key.starts_with(begin))
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    // Zeros change nothing before something else does.
    hasher.write_u64(0x9e37_79b9_7f4a_7c15);
    value.hash(&mut hasher);
    hasher.finish()
}

/// See the module.
#[derive(Clone, Debug)]
pub struct KeyMemory {
    marks: Arc<Marks>,
    place: Place,
    seen: Seen,
    /// The key that the last byte ended, and whether it is there already and whether it is new.
    ended: Option<(Arc<str>, bool, bool)>,
    /// Whether the key in progress began before the mark.
    is_key_old: bool,
}

impl KeyMemory {
    /// Before the first member, which the first byte of its mark opens.
    pub fn new(marks: Marks) -> Self {
        Self {
            marks: Arc::new(marks),
            place: Place::Between(Vec::new()),
            seen: Seen::default(),
            ended: None,
            is_key_old: false,
        }
    }
}

/// The marks of all styles, where nothing follows.
fn all_marks() -> impl Iterator<Item = Marks> {
    Style::ALL.into_iter().filter_map(|style| Marks::new(style, &[]))
}

fn contains(token: &[u8], mark: &str) -> bool {
    token.windows(mark.len()).any(|part| part == mark.as_bytes())
}

/// Tokens that read a key, if not one in progress.
fn has_key(token: &[u8]) -> bool {
    all_marks().any(|marks| contains(token, &marks.before))
}

/// Those behind a part of the mark before a key, too.
fn leads_to_key(token: &[u8]) -> bool {
    let begins_with_rest = |marks: &Marks| {
        let mark = marks.before.as_bytes();
        (1..mark.len()).any(|at| token.starts_with(&mark[at..]))
    };
    all_marks().any(|marks| contains(token, &marks.before) || begins_with_rest(&marks))
}

/// Tokens that close a value, and so may read several keys.
fn closes_value(token: &[u8]) -> bool {
    all_marks().any(|marks| contains(token, marks.close))
}

fn test(name: &'static str, passes: fn(&[u8]) -> bool) -> TokenTest {
    TokenTest { name, has: None, passes }
}

impl Memory for KeyMemory {
    fn fork(&self) -> Arc<dyn Memory> {
        Arc::new(self.clone())
    }

    fn step(&mut self, byte: u8) {
        self.ended = None;
        match self.place.read(&self.marks, byte) {
            Event::Begins => self.is_key_old = false,
            Event::Ends(Some(key)) => {
                self.ended = Some((key.clone(), self.seen.contains(&key), !self.is_key_old));
                self.seen.insert(key);
            }
            Event::Ends(None) | Event::Nothing => {}
        }
    }

    fn is_over(&self) -> bool {
        self.place == Place::Over
    }

    fn is_blank(&self, byte: u8) -> bool {
        byte.is_ascii_whitespace()
    }

    fn opening(&self) -> TokenTest {
        test("members: closes a value", closes_value)
    }

    fn ignores(&self, byte: u8) -> bool {
        let is_plain = self.place == Place::Value(0) && Some(&byte) != self.marks.close.as_bytes().first();
        is_plain && self.ended.is_none()
    }

    fn repeats(&self) -> bool {
        matches!(self.ended, Some((_, true, _)))
    }

    fn is_at_risk(&self) -> bool {
        matches!(&self.place, Place::Key(begin) if self.seen.of(begin).next().is_some())
    }

    fn is_within(&self) -> bool {
        matches!(self.place, Place::Key(_))
    }

    // Any key can be prolonged to one that is not there.

    fn differs(&self, _: Remembered) -> bool {
        true
    }

    fn always_differs(&self) -> bool {
        self.is_within()
    }

    fn continuations(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn risk(&self) -> Option<Risk> {
        let Place::Key(begin) = &self.place else { return None };
        let next = |key: &Arc<str>| key.as_bytes().get(begin.len()).copied();
        let bytes: FxHashSet<u8> =
            self.seen.of(begin).map(|key| next(key).unwrap_or(self.marks.end_of_key())).collect();
        (!bytes.is_empty()).then(|| Risk { bytes: bytes.into_iter().collect(), test: None })
    }

    fn rests(&self) -> Option<Rests<'_>> {
        None
    }

    fn whole(&self) -> TokenTest {
        match self.place {
            Place::Between(_) => test("members: leads to a key", leads_to_key),
            _ => test("members: has a key", has_key),
        }
    }

    fn fingerprint(&self) -> u64 {
        hash(&(&self.place, self.seen.print, self.repeats()))
    }

    fn letters(&self) -> ByteSet {
        (0..=u8::MAX).filter(u8::is_ascii_alphanumeric).collect()
    }

    fn siblings(&self) -> usize {
        self.seen.keys.size()
    }

    fn ended(&self) -> Option<Ended> {
        let (key, _, is_new) = self.ended.as_ref()?;
        let value: Arc<dyn Any + Send + Sync> = Arc::new(key.clone());
        Some(Ended { value: Watched { print: hash(key), value }, is_new: *is_new })
    }

    fn mark(&mut self) {
        self.is_key_old = self.is_within();
    }

    fn watching(&self, values: &[Watched], keeps: bool) -> Arc<dyn Watch> {
        let watched: FxHashSet<Arc<str>> =
            values.iter().filter_map(|value| value.value.downcast_ref::<Arc<str>>().cloned()).collect();
        let mut seen = Seen::default();
        if keeps {
            seen = self.seen.clone();
        } else {
            watched.iter().filter(|key| self.seen.contains(key)).for_each(|key| seen.insert(key.clone()));
        }
        let mut watching = Watching {
            marks: self.marks.clone(),
            watched: Arc::new(watched),
            keeps,
            place: self.place.clone(),
            seen,
            repeats: false,
            has_lost: false,
            is_lost: false,
        };
        watching.forget_others();
        Arc::new(watching)
    }
}

/// The same with nothing but some keys told apart from others.
#[derive(Clone, Debug)]
struct Watching {
    marks: Arc<Marks>,
    watched: Arc<FxHashSet<Arc<str>>>,
    keeps: bool,
    place: Place,
    /// Those that are told apart.
    seen: Seen,
    repeats: bool,
    /// Whether a key was forgotten.
    has_lost: bool,
    is_lost: bool,
}

impl Watching {
    /// Forgets what the key in progress is if it can become none that is told apart.
    fn forget_others(&mut self) {
        let Place::Key(begin) = &self.place else { return };
        let is_watched = self.watched.iter().any(|key| key.starts_with(begin.as_str()));
        if !is_watched && self.seen.of(begin).next().is_none() {
            self.place = Place::OtherKey;
        }
    }
}

impl Watch for Watching {
    fn step(&self, byte: u8) -> Arc<dyn Watch> {
        let mut next = self.clone();
        next.repeats = false;
        if self.is_lost {
            return Arc::new(next);
        }
        match next.place.read(&next.marks, byte) {
            Event::Begins => next.is_lost = next.keeps && next.has_lost,
            Event::Ends(Some(key)) if next.seen.contains(&key) => next.repeats = true,
            Event::Ends(Some(key)) if next.watched.contains(&key) => next.seen.insert(key),
            Event::Ends(_) => next.has_lost = true,
            Event::Nothing => {}
        }
        next.is_lost |= next.repeats && next.keeps;
        next.forget_others();
        Arc::new(next)
    }

    fn repeats(&self) -> bool {
        self.repeats
    }

    fn is_over(&self) -> bool {
        self.place == Place::Over
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn fingerprint(&self) -> u64 {
        if self.is_lost {
            return 0;
        }
        hash(&(&self.place, self.seen.print, self.has_lost && self.keeps, self.repeats))
    }
}

#[cfg(test)]
mod tests {
    use super::progress;

    #[test]
    fn how_much_of_a_mark_was_read() {
        for mark in ["a", "aab", "abab", "<ab<ac"] {
            let mut n_read = 0;
            let mut text = Vec::new();
            for byte in b"<aabab<ab<ab<acaabaaabb<ab<ac".iter().copied() {
                text.push(byte);
                let from = if n_read == mark.len() { 0 } else { n_read };
                n_read = progress(mark.as_bytes(), from, byte);
                let plain = (0..=mark.len()).rev().find(|&n| text.ends_with(&mark.as_bytes()[..n])).unwrap();
                if n_read == mark.len() {
                    text.clear();
                }
                assert_eq!(n_read, plain, "{mark} after {}", String::from_utf8_lossy(&text));
            }
        }
    }
}
