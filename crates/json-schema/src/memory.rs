//! What automata cannot remember: the keys of an object, and the items of an array that have to differ.
//!
//! [`JsonMemory`] reads a JSON text beside the parser: the objects and arrays that are open, of each what was
//! written in it, and the string or number in progress. What is in progress is *at risk* as long as it can
//! come to equal a key or an item before it; *twins* of an array or object in progress are values before it,
//! or parts of such, that it may still equal. What stays true: all is a function of the text, by values and
//! not by spellings; copies share what was written. Cost of a byte: a look-up among the keys or items of the
//! innermost object or array.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anygram_grammar::automata::PieceAutomaton;
use anygram_grammar::memory::{
    ByteSet, Ended, Memory, Remembered, Rests, Risk, Role, TokenTest, Watch, Watched,
};
use num_bigint::BigInt;
use rpds::{ListSync, RedBlackTreeSetSync};
use rustc_hash::FxHasher;

use crate::atoms::Numbers;
use crate::chars::Chars;
use crate::held::{Digits, Held};
use crate::numbers::NumberPieces;
use crate::pieces::{Escapes, Part};
use crate::strings::Text;
use watching::Watching;

mod watching;

/// The pieces that a terminal has.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Strings.
    Text(Text),
    /// Numbers.
    Number(Numbers),
    /// `true`, `false` or `null`.
    Literal(&'static str),
    /// The end of an array or object.
    Close,
}

/// What one schema's memories share.
#[derive(Debug)]
struct Shared {
    chars: Arc<Mutex<Chars>>,
    kinds: Vec<Kind>,
    /// Whether items of arrays have to differ somewhere; else only keys do.
    holds_items: bool,
    /// See [`Shared::ample`].
    ample: OnceLock<Ample>,
    escapes: Escapes,
    /// What may stand between pieces: blanks of JSON, and where something else is ignored around the text,
    /// all that means nothing in JSON.
    blanks: ByteSet,
}

/// How many characters of a string can always be prolonged to another string than any that was written, if
/// some can: one less than the fewest with which that ends.
#[derive(Debug)]
struct Ample {
    of_kinds: Vec<Option<u64>>,
    /// Of whatever kind.
    least: Option<u64>,
}

impl Shared {
    fn ample(&self) -> &Ample {
        self.ample.get_or_init(|| {
            let mut chars = self.chars.lock().unwrap_or_else(PoisonError::into_inner);
            let of_kinds = self.kinds.iter().map(|kind| match kind {
                // There are more characters than anybody writes strings.
                Kind::Text(text) if chars.is_mostly_any(text.formula) => Some(text.max),
                Kind::Text(text) if text.max == u64::MAX => {
                    chars.is_endless(text.formula).unwrap_or(false).then_some(u64::MAX)
                }
                Kind::Text(_) => None,
                _ => Some(u64::MAX),
            });
            let of_kinds: Vec<Option<u64>> = of_kinds.collect();
            let least = of_kinds.iter().min().copied().unwrap_or(Some(u64::MAX));
            Ample { of_kinds, least }
        })
    }

    /// Whether any beginning of any string can become another.
    fn is_endless(&self) -> bool {
        self.ample().least == Some(u64::MAX)
    }
}

/// A part of a long string.
const CHUNK: usize = 64;

/// The string in progress, in parts.
#[derive(Clone, Default, Debug)]
struct Written {
    /// The last first.
    chunks: ListSync<Arc<str>>,
    tail: String,
}

impl Written {
    fn push(&mut self, c: char) {
        self.tail.push(c);
        if self.tail.len() >= CHUNK {
            self.chunks.push_front_mut(std::mem::take(&mut self.tail).into());
        }
    }

    fn text(&self) -> String {
        let mut chunks: Vec<&Arc<str>> = self.chunks.iter().collect();
        chunks.reverse();
        let mut text: String = chunks.into_iter().map(|chunk| &**chunk).collect();
        text += &self.tail;
        text
    }
}

/// The piece in progress.
#[derive(Clone, Debug)]
enum Piece {
    /// None.
    Between,
    /// A string that nobody asks for: inside a character that takes several bytes, or not.
    Skipped(Option<Part>),
    /// A string.
    Text(Box<Begun>),
    /// A number or a literal, as it is spelled so far.
    Bare(Vec<u8>),
}

/// A string that is not complete.
#[derive(Clone, Default, Debug)]
struct Begun {
    /// What it is so far.
    written: Written,
    /// The character in progress.
    part: Option<Part>,
    /// Whether it may come to be one that it may not be.
    is_at_risk: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// Outside of everything.
    Top,
    Array,
    Object,
}

/// An object or array in progress.
#[derive(Clone, Debug)]
struct Frame {
    shape: Shape,
    /// Whether a string here is a key.
    expects_key: bool,
    key: Option<Arc<str>>,
    /// What is around it, and how many that are.
    outer: Option<Arc<Frame>>,
    depth: u32,
    /// The keys, or the items, and what tells such sets apart.
    seen: RedBlackTreeSetSync<Held>,
    seen_print: u64,
    n: usize,
    /// Tells contents apart.
    print: u64,
    /// Where items have to differ somewhere.
    contents: Option<Box<Contents>>,
}

/// What is in an object or array in progress.
#[derive(Clone, Debug)]
struct Contents {
    /// The items, or members, the last first.
    done: ListSync<(Option<Arc<str>>, Held)>,
    /// Values that this may come to equal.
    twins: Arc<[Held]>,
}

impl Frame {
    /// One that has nothing in it; `twins` where items have to differ somewhere.
    fn new(shape: Shape, outer: Option<Arc<Self>>, twins: Option<Vec<Held>>, print: u64) -> Self {
        let contents =
            twins.map(|twins| Box::new(Contents { done: ListSync::default(), twins: twins.into() }));
        Self {
            shape,
            expects_key: shape == Shape::Object,
            key: None,
            depth: outer.as_ref().map_or(0, |outer| outer.depth + 1),
            outer,
            seen: RedBlackTreeSetSync::default(),
            seen_print: 0,
            n: 0,
            print,
            contents,
        }
    }

    /// Values that this may come to equal.
    fn twins(&self) -> &[Held] {
        self.contents.as_ref().map_or(&[], |contents| &contents.twins)
    }

    /// The items, or members, where items have to differ somewhere, the last first.
    fn done(&self) -> impl Iterator<Item = &(Option<Arc<str>>, Held)> {
        self.contents.iter().flat_map(|contents| &contents.done)
    }

    /// What the value or key in progress would be in a twin.
    fn in_twins(&self) -> Vec<Held> {
        let expects_new_key = self.expects_key.then_some(&self.seen);
        in_twins(self.twins(), self.shape, (expects_new_key, self.key.as_deref()), self.n)
    }

    fn insert(&mut self, held: Held) {
        let print = hash(&held);
        if !self.seen.contains(&held) {
            self.seen_print = self.seen_print.wrapping_add(print);
            self.seen.insert_mut(held);
        }
    }

    fn keep_twins(&mut self, keep: impl Fn(&Held) -> bool) {
        if let Some(contents) = &mut self.contents
            && !contents.twins.is_empty()
        {
            contents.twins = contents.twins.iter().filter(|twin| keep(twin)).cloned().collect();
        }
    }

    fn add_key(&mut self, key: Arc<str>) {
        self.keep_twins(|twin| twin.member(&key).is_some());
        self.insert(Held::Text(key.clone()));
        self.key = Some(key);
    }

    /// A value is written.
    fn add(&mut self, value: Option<Held>) {
        let key = self.key.take();
        let print = hash(&(&key, &value));
        // In whatever order members come.
        self.print = if self.shape == Shape::Object {
            self.print.wrapping_add(print)
        } else {
            hash(&(self.print, print))
        };
        if let Some(value) = value {
            let n = self.n;
            self.keep_twins(|twin| key.as_ref().map_or(twin.item(n), |key| twin.member(key)) == Some(&value));
            if self.shape == Shape::Array {
                self.insert(value.clone());
            }
            if let Some(contents) = &mut self.contents {
                contents.done.push_front_mut((key, value));
            }
        }
        self.n += 1;
    }

    fn value(&self) -> Held {
        let mut members: Vec<(Option<Arc<str>>, Held)> = self.done().cloned().collect();
        members.reverse();
        match self.shape {
            Shape::Object => Held::object(members),
            _ => Held::Array(Arc::new(members.into())),
        }
    }
}

/// One after the other: nesting is as deep as a text is long, and the stack is not.
impl Drop for Frame {
    fn drop(&mut self) {
        let mut outer = self.outer.take();
        while let Some(frame) = outer {
            outer = Arc::into_inner(frame).and_then(|mut frame| frame.outer.take());
        }
    }
}

/// What the value or key in progress would be in values that an array or object may come to equal: the next
/// item, the value of a key, or where a key is expected one that is not there yet.
fn in_twins(
    twins: &[Held],
    shape: Shape,
    (expects_new_key, key): (Option<&RedBlackTreeSetSync<Held>>, Option<&str>),
    n: usize,
) -> Vec<Held> {
    if twins.is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for twin in twins {
        match (shape, twin, expects_new_key) {
            (Shape::Object, Held::Object(members), Some(seen)) => {
                let keys = members.keys().map(|key| Held::Text(key.clone()));
                found.extend(keys.filter(|key| !seen.contains(key)));
            }
            (Shape::Object, twin, _) => found.extend(key.and_then(|key| twin.member(key)).cloned()),
            (_, twin, _) => found.extend(twin.item(n).cloned()),
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn watched(value: &Held) -> Watched {
    Watched { print: hash(value), value: Arc::new(value.clone()) }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    // Zeros change nothing before something else does.
    hasher.write_u64(0x9e37_79b9_7f4a_7c15);
    value.hash(&mut hasher);
    hasher.finish()
}

/// See the module.
#[derive(Clone)]
pub struct JsonMemory {
    shared: Arc<Shared>,
    frame: Arc<Frame>,
    piece: Piece,
    repeats: bool,
    /// The key or item that the last byte ended, but for numbers and literals; and whether it is new.
    ended: Option<Box<(Held, bool)>>,
    /// How deep were the arrays and objects that were open at the mark and still are, and whether the piece
    /// in progress began before it.
    old_depth: u32,
    is_piece_old: bool,
}

impl fmt::Debug for JsonMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frame, piece, repeats, .. } = self;
        f.debug_struct("JsonMemory")
            .field("frame", frame)
            .field("piece", piece)
            .field("repeats", repeats)
            .finish()
    }
}

impl JsonMemory {
    /// Before a text. `kinds` are what terminals remember by number; `holds_items` says whether items of
    /// arrays have to differ somewhere.
    pub fn new(chars: Arc<Mutex<Chars>>, kinds: Vec<Kind>, (holds_items, escapes): (bool, Escapes)) -> Self {
        let frame = Arc::new(Frame::new(Shape::Top, None, holds_items.then(Vec::new), 0));
        let (ample, blanks) = (OnceLock::new(), BLANKS.iter().copied().collect());
        let shared = Arc::new(Shared { chars, kinds, holds_items, ample, escapes, blanks });
        Self {
            shared,
            frame,
            piece: Piece::Between,
            repeats: false,
            ended: None,
            old_depth: 0,
            is_piece_old: false,
        }
    }

    /// The same for values within other texts, where more than blanks of JSON can stand between pieces.
    pub fn embedded(self) -> Self {
        let Shared { chars, kinds, holds_items, escapes, .. } = &*self.shared;
        let fresh = Self::new(chars.clone(), kinds.clone(), (*holds_items, *escapes));
        let shared = Shared {
            chars: chars.clone(),
            kinds: kinds.clone(),
            holds_items: *holds_items,
            ample: OnceLock::new(),
            escapes: *escapes,
            blanks: (0..=u8::MAX).filter(|&byte| means_nothing(byte)).collect(),
        };
        Self { shared: Arc::new(shared), ..fresh }
    }

    fn is_between(&self) -> bool {
        matches!(self.piece, Piece::Between)
    }

    fn blanks_and(&self, others: &[u8]) -> ByteSet {
        let blanks = (0..=u8::MAX).filter(|&byte| self.shared.blanks.contains(byte));
        blanks.chain(others.iter().copied()).collect()
    }

    fn frame_mut(&mut self) -> &mut Frame {
        Arc::make_mut(&mut self.frame)
    }

    fn is_key(&self) -> bool {
        self.frame.shape == Shape::Object && self.frame.expects_key
    }

    /// Whether what is in progress may not be found among what was written beside it.
    fn has_siblings(&self) -> bool {
        self.is_key() || self.shared.holds_items && self.frame.shape == Shape::Array
    }

    /// Whether what begins or goes on here is held against something.
    fn is_at_stake(&self) -> bool {
        !self.frame.twins().is_empty() || self.has_siblings() && !self.frame.seen.is_empty()
    }

    /// The strings before the one in progress that begin with a text.
    fn texts<'a, 'b>(&'a self, begin: &'b str) -> impl Iterator<Item = &'a Arc<str>> + use<'a, 'b> {
        let from = Held::Text(begin.into());
        let siblings = self.has_siblings().then(|| self.frame.seen.range(from..));
        let texts = siblings.into_iter().flatten().map_while(|held| match held {
            Held::Text(text) => Some(text),
            _ => None,
        });
        texts.take_while(move |text| text.starts_with(begin))
    }

    /// The numbers and literals before the one in progress that may come of a text.
    fn bares<'a>(&'a self, begin: &'a str) -> impl Iterator<Item = &'a Held> {
        let siblings = self.has_siblings().then(|| self.frame.seen.iter());
        let bares = siblings.into_iter().flatten();
        let bares = bares.take_while(|held| matches!(held, Held::Literal(_) | Held::Number(_)));
        bares.filter(move |held| held.may_begin(begin))
    }

    /// Whether a number or a literal that begins so may come to be one before it.
    fn has_bare(&self, begin: &str) -> bool {
        let literals = ["null", "true", "false"];
        if literals.iter().any(|literal| literal.starts_with(begin)) {
            return self.bares(begin).next().is_some();
        }
        // The numbers with these digits stand side by side.
        let plain = begin.split(['e', 'E']).next().unwrap_or_default();
        let digits: String = plain.chars().filter(char::is_ascii_digit).collect();
        let digits = digits.trim_start_matches('0');
        let is_negative = begin.starts_with('-');
        let seen = &self.frame.seen;
        let meets = |is_negative: bool, digits: &str| {
            let from = Digits { is_negative, digits: digits.into(), exponent: BigInt::ZERO };
            let from = Held::Number(from.into());
            let number = |held: &Held| matches!(held, Held::Number(number) if number.may_begin(begin));
            // Those with the same digits are on both sides: exponents are compared last.
            seen.range(&from..).next().is_some_and(number)
                || seen.range(..&from).next_back().is_some_and(number)
        };
        meets(is_negative, digits) || meets(is_negative, digits.trim_end_matches('0')) || meets(false, "")
    }

    fn bare(&self) -> Option<&str> {
        let Piece::Bare(text) = &self.piece else { return None };
        std::str::from_utf8(text).ok()
    }

    /// Begins a string.
    fn open_text(&mut self) {
        let is_held = self.is_key() || self.shared.holds_items;
        self.piece = if is_held {
            let is_at_risk = self.texts("").next().is_some() || !self.frame.in_twins().is_empty();
            Piece::Text(Box::new(Begun { is_at_risk, ..Begun::default() }))
        } else {
            Piece::Skipped(None)
        };
    }

    fn open(&mut self, shape: Shape) {
        let twins = self.shared.holds_items.then(|| {
            let mut twins = self.frame.in_twins();
            if self.has_siblings() {
                twins.extend(self.frame.seen.iter().cloned());
            }
            let is_alike = |held: &Held| match held {
                Held::Array(_) => shape == Shape::Array,
                Held::Object(_) => shape == Shape::Object,
                _ => false,
            };
            twins.retain(is_alike);
            twins.sort_unstable();
            twins.dedup();
            twins
        });
        let Frame { print, key, n, expects_key, seen_print, .. } = &*self.frame;
        // Where items need not differ, no more of what is around it matters than which keys it has.
        let print = match self.shared.holds_items {
            true => hash(&(print, key, n)),
            false => hash(&(print, self.frame.shape == Shape::Object, expects_key, seen_print)),
        };
        self.frame = Arc::new(Frame::new(shape, Some(self.frame.clone()), twins, print));
    }

    fn close(&mut self) {
        let Some(outer) = self.frame.outer.clone() else { return };
        let inner = std::mem::replace(&mut self.frame, outer);
        let value = self.shared.holds_items.then(|| inner.value());
        self.repeats =
            self.has_siblings() && value.as_ref().is_some_and(|value| self.frame.seen.contains(value));
        let is_new = inner.depth > self.old_depth;
        self.old_depth = self.old_depth.min(self.frame.depth);
        let ended = value.clone().filter(|_| self.has_siblings());
        self.ended = ended.map(|value| Box::new((value, is_new)));
        self.add(value);
    }

    /// A value is written.
    fn add(&mut self, value: Option<Held>) {
        let holds_items = self.shared.holds_items;
        let frame = self.frame_mut();
        if holds_items {
            frame.add(value);
        } else {
            frame.key = None;
            frame.n += 1;
        }
    }

    /// A byte between pieces.
    fn between(&mut self, byte: u8) {
        match byte {
            byte if means_nothing(byte) => {}
            b'{' => self.open(Shape::Object),
            b'[' => self.open(Shape::Array),
            b'}' | b']' => self.close(),
            b',' => self.frame_mut().expects_key = self.frame.shape == Shape::Object,
            b':' => self.frame_mut().expects_key = false,
            b'"' => self.open_text(),
            byte => {
                self.piece = Piece::Bare(vec![byte]);
                self.look();
            }
        }
    }

    /// Whether the number or literal so far is one before it.
    fn look(&mut self) {
        if self.shared.holds_items && self.has_siblings() {
            let value = self.bare().and_then(Held::bare);
            self.repeats = value.is_some_and(|value| self.frame.seen.contains(&value));
        }
    }

    fn end_bare(&mut self) {
        let value = self.bare().and_then(Held::bare).filter(|_| self.shared.holds_items);
        (self.piece, self.is_piece_old) = (Piece::Between, false);
        self.add(value);
    }

    fn end_text(&mut self, written: &Written) {
        let text: Arc<str> = written.text().into();
        self.piece = Piece::Between;
        let held = Held::Text(text.clone());
        self.repeats = self.has_siblings() && self.frame.seen.contains(&held);
        let is_new = !std::mem::take(&mut self.is_piece_old);
        self.ended = self.has_siblings().then(|| Box::new((held.clone(), is_new)));
        if self.is_key() {
            self.frame_mut().add_key(text);
        } else {
            self.add(Some(held));
        }
    }

    /// A byte of a string; the code point that it ends.
    fn character(part: &mut Option<Part>, byte: u8) -> Option<char> {
        let code = match part.take() {
            None => match Part::first(byte) {
                Some(first) => {
                    *part = Some(first);
                    return None;
                }
                None => u32::from(byte),
            },
            Some(begun) => match begun.step(byte)? {
                Ok(longer) => {
                    *part = Some(longer);
                    return None;
                }
                Err(code) => code,
            },
        };
        char::from_u32(code)
    }

    fn step_text(&mut self, byte: u8) {
        let Piece::Text(mut begun) = std::mem::replace(&mut self.piece, Piece::Between) else { return };
        if begun.part.is_none() && byte == b'"' {
            return self.end_text(&begun.written);
        }
        if let Some(c) = Self::character(&mut begun.part, byte) {
            begun.written.push(c);
            if begun.is_at_risk {
                let begin = begun.written.text();
                begun.is_at_risk = self.texts(&begin).next().is_some()
                    || self.frame.in_twins().iter().any(|held| begins(held, &begin));
            }
        }
        self.piece = Piece::Text(begun);
    }

    /// What the piece in progress may not be, or is at risk if it is.
    fn rivals(&self, is_distinct: bool) -> Vec<Held> {
        let mut rivals = self.frame.in_twins();
        match &self.piece {
            Piece::Text(begun) => {
                let begin = begun.written.text();
                rivals.retain(|held| begins(held, &begin));
                if is_distinct {
                    rivals.extend(self.texts(&begin).map(|text| Held::Text(text.clone())));
                }
            }
            Piece::Bare(_) => {
                let begin = self.bare().unwrap_or_default();
                rivals.retain(|held| held.may_begin(begin));
                if is_distinct {
                    rivals.extend(self.bares(begin).cloned());
                }
            }
            Piece::Between | Piece::Skipped(_) => rivals.clear(),
        }
        rivals
    }

    /// Whether a string differs from all that it may not be until it ends as one of those beside it.
    fn knows_rests(&self) -> bool {
        self.frame.twins().is_empty() && self.shared.is_endless()
    }

    /// Whether a string is in progress that can become another; `most` as in [`Ample`].
    fn has_ample(&self, most: Option<u64>) -> bool {
        let Piece::Text(begun) = &self.piece else { return false };
        let Begun { written, part, .. } = &**begun;
        match most {
            Some(u64::MAX) => true,
            // A character in progress may be the only one of its kind.
            Some(most) => written.text().chars().count() as u64 + u64::from(part.is_some()) < most,
            None => false,
        }
    }

    /// Whether a string can be one of some that is none of others.
    fn has_other_text(&self, text: Text, rivals: &[Held]) -> bool {
        let Piece::Text(begun) = &self.piece else { return false };
        let Begun { written, part, .. } = &**begun;
        let begin: Vec<char> = written.text().chars().collect();
        let rivals: Vec<Vec<char>> = rivals
            .iter()
            .filter_map(|held| match held {
                Held::Text(text) => Some(text.chars().skip(begin.len()).collect()),
                _ => None,
            })
            .collect();
        let rivals: Vec<&[char]> = rivals.iter().map(|rival| &**rival).collect();
        let mut chars = self.shared.chars.lock().unwrap_or_else(PoisonError::into_inner);
        let mut formula = text.formula;
        for &c in &begin {
            match chars.step(formula, c as u32) {
                Ok(next) => formula = next,
                // The automaton of the terminal hits the same limit, and says so.
                Err(_) => return true,
            }
        }
        let n = begin.len() as u64;
        let Some(most) = text.max.checked_sub(n) else { return false };
        let most = if text.max == u64::MAX { u64::MAX } else { most };
        let first = part.map(|part| part.ranges(self.shared.escapes));
        chars
            .has_other(formula, (text.min.saturating_sub(n), most), first.as_deref(), &rivals)
            .unwrap_or(true)
    }

    /// Whether a number can be one of some that is none of others.
    fn has_other_number(&self, numbers: &Numbers, rivals: &[Held]) -> bool {
        let Some(begin) = self.bare() else { return false };
        if !begin.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return false;
        }
        let mut numbers = numbers.clone();
        numbers.not_in.extend(rivals.iter().filter_map(|held| match held {
            Held::Number(number) => number.decimal(),
            _ => None,
        }));
        let pieces = NumberPieces::new(&numbers, usize::MAX);
        let mut state = pieces.start();
        for byte in begin.bytes() {
            match pieces.step(state, byte) {
                Ok(Some(next)) => state = next,
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
        true
    }

    /// Whether a token has at most one whole key, and that is none before it; false where that takes more
    /// than a look.
    fn has_new_key(&self, token: &[u8]) -> bool {
        let is_object = self.frame.shape == Shape::Object;
        let mut expects_key = is_object && self.frame.expects_key;
        // A string in progress, and where a key begins if it is one.
        let (mut in_string, mut key) = match &self.piece {
            Piece::Between | Piece::Bare(_) => (false, None),
            Piece::Skipped(None) => (true, None),
            _ => return false,
        };
        let mut has_key = false;
        for (at, &byte) in token.iter().enumerate() {
            match byte {
                b'\\' | b'{' | b'}' | b'[' | b']' if !in_string || byte == b'\\' => return false,
                b'"' if in_string => {
                    in_string = false;
                    if let Some(from) = key.take() {
                        let Ok(text) = std::str::from_utf8(&token[from..at]) else { return false };
                        if has_key || self.frame.seen.contains(&Held::Text(text.into())) {
                            return false;
                        }
                        has_key = true;
                    }
                }
                b'"' => (in_string, key) = (true, expects_key.then_some(at + 1)),
                b',' if !in_string => expects_key = is_object,
                b':' if !in_string => expects_key = false,
                _ => {}
            }
        }
        true
    }

    /// Texts that end the string in progress so that it is another.
    fn ending(text: &str, written: &Written, part: Option<Part>) -> Option<Vec<u8>> {
        let begin = written.text();
        let mut rest = text.strip_prefix(&*begin)?.chars();
        let mut ending = Vec::new();
        if let Some(mut part) = part {
            let c = rest.next()?;
            loop {
                let is_next = |&byte: &u8| match part.step(byte) {
                    Some(Ok(longer)) => longer
                        .ranges(Escapes::Any)
                        .iter()
                        .any(|&(from, to)| (from..=to).contains(&(c as u32))),
                    Some(Err(code)) => code == c as u32,
                    None => false,
                };
                let byte = (0..=u8::MAX).rev().find(is_next)?;
                ending.push(byte);
                match part.step(byte)? {
                    Ok(longer) => part = longer,
                    Err(_) => break,
                }
            }
        }
        for c in rest {
            match c {
                '"' | '\\' => ending.extend([b'\\', c as u8]),
                '\0'..='\x1f' => ending.extend(format!("\\u{:04x}", c as u32).bytes()),
                c => ending.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        ending.push(b'"');
        Some(ending)
    }
}

/// Whether a value is a string that begins with a text.
fn begins(held: &Held, begin: &str) -> bool {
    matches!(held, Held::Text(text) if text.starts_with(begin))
}

/// What may stand between pieces, and begin one.
const BETWEEN: &[u8] = b" \t\n\r,:]}[{\"-0123456789tfn";

/// White space of JSON.
const BLANKS: &[u8] = b" \t\n\r";

/// Whether no piece of JSON begins with a byte or, but for strings, has it in it.
fn means_nothing(byte: u8) -> bool {
    !byte.is_ascii_alphanumeric() && !b"{}[],:\"+-.\\".contains(&byte)
}

/// Whether something repeats, or may come to, in a value that a token opens, or that was opened right before
/// it and goes on with a blank.
fn repeats_behind_opening<const ITEMS: bool>(token: &[u8]) -> bool {
    let n_brackets = token.iter().filter(|byte| b"{[".contains(byte)).count();
    let is_behind = token.first().is_some_and(|&byte| means_nothing(byte));
    if n_brackets == 0 && !is_behind {
        return false;
    }
    let before: &[&[u8]] = if is_behind { &[b"{", b"["] } else { &[] };
    let opened = (0..token.len()).filter(|&at| b"{[".contains(&token[at])).map(|at| (&b""[..], &token[at..]));
    let all = before.iter().map(|&bracket| (bracket, token)).chain(opened);
    let repeats = |(bracket, rest): (&[u8], &[u8])| {
        let mut memory = JsonMemory::new(Arc::default(), Vec::new(), (ITEMS, Escapes::Any));
        for &byte in bracket.iter().chain(rest) {
            let Frame { shape, key, n, expects_key, .. } = &*memory.frame;
            // No JSON: a comma has a member before it, and there is a colon between two strings.
            let is_wrong = match byte {
                b',' => *n == 0 || key.is_some(),
                b'"' => *expects_key && key.is_some(),
                _ => false,
            };
            if is_wrong && *shape == Shape::Object && memory.is_between() {
                return false;
            }
            memory.step(byte);
            if memory.repeats {
                return true;
            }
            if memory.is_over() {
                return false;
            }
        }
        memory.is_at_risk()
    };
    all.into_iter().any(repeats)
}

/// A test among the tokens that have a byte.
fn among(name: &'static str, has: u8, passes: fn(&[u8]) -> bool) -> TokenTest {
    TokenTest { name, has: Some(has), passes }
}

/// Whether something behind a comma begins in a token: a key, or with `ITEMS` anything. With `ENDS` a key has
/// to end in it, too. What it goes on with is a string, if it is `IN_STRING`, perhaps behind a backslash.
fn goes_on<const IN_STRING: bool, const ITEMS: bool, const ENDS: bool>(token: &[u8]) -> bool {
    let is_there = |token: &[u8]| {
        let (mut in_string, mut is_behind, mut is_found) = (IN_STRING, false, false);
        let mut bytes = token.iter();
        while let Some(&byte) = bytes.next() {
            match byte {
                b'\\' if in_string => drop(bytes.next()),
                b'"' => {
                    in_string = !in_string;
                    is_found |= is_behind;
                    if is_found && !(ENDS && in_string) {
                        return true;
                    }
                    is_behind = false;
                }
                _ if in_string || means_nothing(byte) => {}
                b',' => is_behind = true,
                _ if is_behind && ITEMS => return true,
                _ => is_behind = false,
            }
        }
        false
    };
    is_there(token) || IN_STRING && token.get(1..).is_some_and(is_there)
}

/// Tokens that begin with a string; if it is `WHOLE`, they end it too.
fn begins_with_string<const WHOLE: bool>(token: &[u8]) -> bool {
    let mut left = token.iter().skip_while(|&&byte| means_nothing(byte));
    left.next() == Some(&b'"') && (!WHOLE || left.any(|&byte| byte == b'"'))
}

impl Memory for JsonMemory {
    fn fork(&self) -> Arc<dyn Memory> {
        Arc::new(self.clone())
    }

    fn step(&mut self, byte: u8) {
        (self.repeats, self.ended) = (false, None);
        match &mut self.piece {
            Piece::Between => self.between(byte),
            Piece::Skipped(part) => {
                if part.is_none() && byte == b'"' {
                    (self.piece, self.is_piece_old) = (Piece::Between, false);
                    self.add(None);
                } else {
                    Self::character(part, byte);
                }
            }
            Piece::Text(_) => self.step_text(byte),
            Piece::Bare(text) if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.') => {
                text.push(byte);
                self.look();
            }
            Piece::Bare(_) => {
                self.end_bare();
                self.between(byte);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_between() && self.frame.outer.is_none() && self.frame.n > 0
    }

    fn is_blank(&self, byte: u8) -> bool {
        means_nothing(byte)
    }

    fn opening(&self) -> TokenTest {
        match self.shared.holds_items {
            true => among("JSON: opens; items", b',', repeats_behind_opening::<true>),
            false => among("JSON: opens; keys", b',', repeats_behind_opening::<false>),
        }
    }

    fn ignores(&self, byte: u8) -> bool {
        let is_plain = match &self.piece {
            Piece::Between => BLANKS.contains(&byte),
            Piece::Skipped(None) => byte != b'"' && Part::first(byte).is_none(),
            _ => false,
        };
        is_plain && !self.repeats
    }

    fn repeats(&self) -> bool {
        self.repeats
    }

    fn is_at_risk(&self) -> bool {
        match &self.piece {
            Piece::Between => !self.frame.twins().is_empty(),
            Piece::Skipped(_) => false,
            Piece::Text(begun) => begun.is_at_risk,
            Piece::Bare(_) => {
                let begin = self.bare().unwrap_or_default();
                self.has_siblings() && self.has_bare(begin)
                    || self.frame.in_twins().iter().any(|held| held.may_begin(begin))
            }
        }
    }

    fn is_within(&self) -> bool {
        matches!(self.piece, Piece::Text(_) | Piece::Bare(_))
    }

    fn differs(&self, terminal: Remembered) -> bool {
        let Role::Piece { kind, is_distinct } = terminal.role else { return true };
        let kind = kind as usize;
        let rivals = || self.rivals(is_distinct);
        match &self.shared.kinds[kind] {
            Kind::Text(text) => {
                self.has_ample(self.shared.ample().of_kinds[kind]) || self.has_other_text(*text, &rivals())
            }
            Kind::Number(numbers) => self.has_other_number(numbers, &rivals()),
            Kind::Literal(literal) => self.bare().is_some_and(|begin| {
                literal.starts_with(begin)
                    && !rivals()
                        .iter()
                        .any(|held| matches!(held, Held::Literal(other) if **other == **literal))
            }),
            Kind::Close => false,
        }
    }

    fn always_differs(&self) -> bool {
        self.has_ample(self.shared.ample().least)
    }

    fn continuations(&self) -> Vec<Vec<u8>> {
        match &self.piece {
            Piece::Between => BETWEEN.iter().map(|&byte| vec![byte]).collect(),
            Piece::Skipped(_) => Vec::new(),
            Piece::Text(begun) => {
                let rivals = self.rivals(true);
                let ending = |held: &Held| match held {
                    Held::Text(text) => Self::ending(text, &begun.written, begun.part),
                    _ => None,
                };
                rivals.iter().filter_map(ending).collect()
            }
            Piece::Bare(_) => {
                let (rivals, begin) = (self.rivals(true), self.bare().unwrap_or_default());
                let mut endings: Vec<Vec<u8>> = Vec::new();
                for held in &rivals {
                    match held {
                        Held::Literal(word) => endings.extend(word.strip_prefix(begin).map(Vec::from)),
                        Held::Number(number) => {
                            endings.extend(number.endings(begin).into_iter().map(String::into_bytes))
                        }
                        _ => {}
                    }
                }
                endings.retain(|ending| !ending.is_empty());
                endings.extend(b" \t\n\r,]}".iter().map(|&byte| vec![byte]));
                endings
            }
        }
    }

    fn risk(&self) -> Option<Risk> {
        // As long as a string can become another, nothing comes of it before its end.
        let test = self.always_differs().then_some(among("JSON: a quote", b'"', |_| true));
        let test = test.filter(|_| self.shared.is_endless());
        match &self.piece {
            Piece::Skipped(_) => None,
            Piece::Text(begun) if !begun.is_at_risk => None,
            Piece::Between | Piece::Bare(_) if !self.is_at_stake() => None,
            // By which ones exactly is a matter of its rests, or of the character in progress.
            Piece::Text(begun) if begun.part.is_some() || self.knows_rests() => {
                Some(Risk { bytes: ByteSet::ALL, test })
            }
            Piece::Text(begun) => {
                let begin = begun.written.text();
                let twins = self.frame.in_twins();
                let twins = twins.iter().filter_map(|held| match held {
                    Held::Text(text) => Some(text),
                    _ => None,
                });
                let rests = self.texts(&begin).chain(twins).filter_map(|text| text.strip_prefix(&*begin));
                let firsts = rests.map(|rest| rest.bytes().next().unwrap_or(b'"'));
                Some(Risk { bytes: firsts.chain([b'\\']).collect(), test })
            }
            Piece::Between if self.is_key() && self.frame.twins().is_empty() => {
                let bytes = self.blanks_and(b"\"");
                let begins = if self.shared.is_endless() {
                    among("JSON: a whole string", b'"', begins_with_string::<true>)
                } else {
                    among("JSON: a string", b'"', begins_with_string::<false>)
                };
                Some(Risk { bytes, test: Some(begins) })
            }
            Piece::Between | Piece::Bare(_) => {
                let bytes = self.blanks_and(b",:]}[{\"-0123456789tfn+.eEalrsu");
                Some(Risk { bytes, test: None })
            }
        }
    }

    fn rests(&self) -> Option<Rests<'_>> {
        let Piece::Text(begun) = &self.piece else { return None };
        let Begun { written, part, is_at_risk } = &**begun;
        if part.is_some() || !is_at_risk || !self.knows_rests() {
            return None;
        }
        let begin = written.text();
        let texts = self.texts(&begin).map(|text| &text[begin.len()..]).collect();
        Some(Rests { texts, end: b'"', escape: b'\\' })
    }

    fn whole(&self) -> TokenTest {
        let in_string = matches!(self.piece, Piece::Skipped(_) | Piece::Text(_));
        match (self.shared.holds_items, self.shared.is_endless()) {
            // Where what comes first repeats nothing, an array or object that it is in repeats nothing.
            (true, _) if in_string => {
                among("JSON: ends a string; an item", b',', goes_on::<true, true, false>)
            }
            (true, _) => among("JSON: an item", b',', goes_on::<false, true, false>),
            (false, false) if in_string => {
                among("JSON: ends a string; a key", b',', goes_on::<true, false, false>)
            }
            (false, false) => among("JSON: a key", b',', goes_on::<false, false, false>),
            // Any beginning of a key can become one that is not there.
            (false, true) if in_string => {
                among("JSON: ends a string; a whole key", b',', goes_on::<true, false, true>)
            }
            (false, true) => among("JSON: a whole key", b',', goes_on::<false, false, true>),
        }
    }

    fn plainly_differs(&self, token: &[u8]) -> bool {
        // Where only keys have to differ, and any beginning of one can become another.
        !self.shared.holds_items && self.shared.is_endless() && self.has_new_key(token)
    }

    fn fingerprint(&self) -> u64 {
        let piece = match &self.piece {
            Piece::Between => (0, Vec::new(), None),
            Piece::Skipped(part) => (1, Vec::new(), *part),
            Piece::Text(begun) => (2, begun.written.text().into_bytes(), begun.part),
            Piece::Bare(text) => (3, text.clone(), None),
        };
        let Frame { print, n, key, expects_key, seen_print, shape, .. } = &*self.frame;
        match self.shared.holds_items {
            true => hash(&(piece, print, n, key, expects_key, self.repeats)),
            false => hash(&(piece, print, *shape == Shape::Object, expects_key, seen_print, self.repeats)),
        }
    }

    fn letters(&self) -> ByteSet {
        // No part of a number, a literal or an escape of hexadecimal digits; behind a backslash they stand
        // for different characters, or are wrong.
        (b'g'..=b'z').chain(b'G'..=b'Z').collect()
    }

    fn siblings(&self) -> usize {
        let frames = std::iter::successors(Some(&self.frame), |frame| frame.outer.as_ref());
        frames.map(|frame| frame.seen.size()).max().unwrap_or(0)
    }

    fn ended(&self) -> Option<Ended> {
        if let Some(ended) = &self.ended {
            let (held, is_new) = &**ended;
            return Some(Ended { value: watched(held), is_new: *is_new });
        }
        let is_held = self.shared.holds_items && self.has_siblings();
        let held = self.bare().filter(|_| is_held).and_then(Held::bare)?;
        Some(Ended { value: watched(&held), is_new: !self.is_piece_old })
    }

    fn mark(&mut self) {
        self.old_depth = self.frame.depth;
        self.is_piece_old = !self.is_between();
    }

    fn watching(&self, values: &[Watched], keeps: bool) -> Arc<dyn Watch> {
        let values = values.iter().filter_map(|value| value.value.downcast_ref::<Held>().cloned());
        Arc::new(Watching::new(self, values.collect(), keeps))
    }
}
