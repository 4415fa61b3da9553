//! The memory of a text that tells only some values apart: see [`Watch`].
//!
//! A piece in progress is kept as long as it may become a value that is watched for, was kept, or is the part
//! of such that stands where it does; then it is just some other. An array or object in progress has such
//! values as *twins*, as long as it may become one; with the last twin it is some other too. So what is some
//! other when it ends equals nothing that is told apart.

use std::sync::Arc;

use anygram_grammar::memory::Watch;
use rpds::RedBlackTreeSetSync;

use super::{Frame, JsonMemory, Piece, Shape, begins, hash, in_twins, means_nothing};
use crate::held::Held;
use crate::pieces::Part;

/// What does not change.
#[derive(Debug)]
struct Setting {
    values: RedBlackTreeSetSync<Held>,
    keeps: bool,
    holds_items: bool,
}

/// An object or array in progress.
#[derive(Clone, Debug)]
struct Level {
    shape: Shape,
    expects_key: bool,
    /// The key of the member in progress, where there are twins.
    key: Option<Arc<str>>,
    /// The keys or items that are told apart.
    seen: RedBlackTreeSetSync<Held>,
    seen_print: u64,
    /// The values that it may come to equal.
    twins: Arc<[Held]>,
    /// The number of items or members, where there are twins, or outside of everything.
    n: usize,
    /// Whether a key or an item was forgotten.
    has_lost: bool,
    /// Tells what is around it apart.
    print: u64,
    outer: Option<Arc<Level>>,
}

/// The piece in progress.
#[derive(Clone, Hash, Debug)]
enum Watched {
    Between,
    /// A string that may become one that matters.
    Text(String, Option<Part>),
    /// A number or literal that may.
    Bare(String),
    /// Others; of a string whether a backslash comes right before.
    OtherText(bool),
    OtherBare,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Watching {
    setting: Arc<Setting>,
    level: Level,
    piece: Watched,
    repeats: bool,
    is_lost: bool,
}

impl Level {
    /// Outside of everything.
    fn outside() -> Self {
        Self {
            shape: Shape::Top,
            expects_key: false,
            key: None,
            seen: RedBlackTreeSetSync::default(),
            seen_print: 0,
            twins: Arc::from([]),
            n: 0,
            has_lost: false,
            print: 0,
            outer: None,
        }
    }

    /// What is in progress may not be found among what was written beside it.
    fn has_siblings(&self, setting: &Setting) -> bool {
        self.is_key() || setting.holds_items && self.shape == Shape::Array
    }

    fn is_key(&self) -> bool {
        self.shape == Shape::Object && self.expects_key
    }

    fn in_twins(&self) -> Vec<Held> {
        let expects_new_key = self.expects_key.then_some(&self.seen);
        in_twins(&self.twins, self.shape, (expects_new_key, self.key.as_deref()), self.n)
    }

    fn keep_twins(&mut self, keep: impl Fn(&Held) -> bool) {
        if !self.twins.is_empty() {
            self.twins = self.twins.iter().filter(|twin| keep(twin)).cloned().collect();
        }
        if self.twins.is_empty() {
            self.key = None;
            self.n = self.n.min(usize::from(self.shape == Shape::Top));
        }
    }

    /// A sibling of others is written: whether it is one of those already.
    fn write(&mut self, setting: &Setting, held: Option<&Held>) -> bool {
        match held {
            Some(held) if self.seen.contains(held) => return true,
            Some(held) if setting.values.contains(held) => {
                self.seen_print = self.seen_print.wrapping_add(hash(held));
                self.seen.insert_mut(held.clone());
            }
            _ => self.has_lost = true,
        }
        false
    }

    /// A key is written: whether it is there already.
    fn add_key(&mut self, setting: &Setting, key: Option<&Arc<str>>) -> bool {
        let held = key.map(|key| Held::Text(key.clone()));
        let repeats = self.write(setting, held.as_ref());
        self.key = key.cloned();
        self.keep_twins(|twin| key.is_some_and(|key| twin.member(key).is_some()));
        repeats
    }

    /// A value is written: whether it is there already, where that matters.
    fn add(&mut self, setting: &Setting, value: Option<&Held>) -> bool {
        let repeats = self.has_siblings(setting) && self.write(setting, value);
        let (n, key) = (self.n, self.key.take());
        self.n += 1;
        self.keep_twins(|twin| {
            let own = key.as_ref().map_or(twin.item(n), |key| twin.member(key));
            value.is_some() && own == value
        });
        repeats
    }

    /// The values that an array or object that begins here may come to equal.
    fn twins_of(&self, setting: &Setting, shape: Shape) -> Vec<Held> {
        if !setting.holds_items {
            return Vec::new();
        }
        let mut twins = self.in_twins();
        if self.has_siblings(setting) {
            twins.extend(self.seen.iter().chain(&setting.values).cloned());
        }
        twins.retain(|held| match held {
            Held::Array(_) => shape == Shape::Array,
            Held::Object(_) => shape == Shape::Object,
            _ => false,
        });
        twins.sort_unstable();
        twins.dedup();
        twins
    }

    /// The value that this is, if it is one of its twins.
    fn value(&self) -> Option<&Held> {
        self.twins.iter().find(|twin| match twin {
            Held::Array(items) => items.len() == self.n,
            Held::Object(members) => members.len() == self.n,
            _ => false,
        })
    }

    fn fingerprint(&self, setting: &Setting) -> u64 {
        let Self { shape, expects_key, key, seen_print, twins, n, has_lost, print, .. } = self;
        let twins = (!twins.is_empty()).then_some((twins, key, n));
        let shape = (*shape == Shape::Object, *shape == Shape::Top && *n > 0);
        hash(&(shape, expects_key, seen_print, twins, *has_lost && setting.keeps, print))
    }

    /// An object or array begins in it.
    fn open(self, setting: &Setting, shape: Shape) -> Self {
        Self {
            shape,
            expects_key: shape == Shape::Object,
            key: None,
            seen: RedBlackTreeSetSync::default(),
            seen_print: 0,
            twins: self.twins_of(setting, shape).into(),
            n: 0,
            has_lost: false,
            print: self.fingerprint(setting),
            outer: Some(Arc::new(self)),
        }
    }
}

/// As frames.
impl Drop for Level {
    fn drop(&mut self) {
        let mut outer = self.outer.take();
        while let Some(level) = outer {
            outer = Arc::into_inner(level).and_then(|mut level| level.outer.take());
        }
    }
}

/// Whether what a frame has so far is a part of a value that it may come to equal.
fn is_begun(frame: &Frame, twin: &Held) -> bool {
    let mut n = frame.n;
    let has_key = frame.key.as_ref().is_none_or(|key| twin.member(key).is_some());
    has_key
        && frame.done().all(|(key, value)| {
            n = n.saturating_sub(1);
            key.as_ref().map_or(twin.item(n), |key| twin.member(key)) == Some(value)
        })
}

impl Watching {
    /// What is known of a memory.
    pub fn new(memory: &JsonMemory, values: RedBlackTreeSetSync<Held>, keeps: bool) -> Self {
        let setting = Arc::new(Setting { values, keeps, holds_items: memory.shared.holds_items });
        let outward = std::iter::successors(Some(&memory.frame), |frame| frame.outer.as_ref());
        let frames: Vec<&Arc<Frame>> = outward.collect();
        let mut level = Level::outside();
        for frame in frames.into_iter().rev() {
            let mut own = match frame.shape {
                Shape::Top => level,
                shape => level.open(&setting, shape),
            };
            own.expects_key = frame.expects_key;
            if keeps {
                (own.seen, own.seen_print) = (frame.seen.clone(), frame.seen_print);
            } else {
                for held in setting.values.iter().filter(|held| frame.seen.contains(held)) {
                    own.write(&setting, Some(held));
                }
            }
            (own.key, own.n) = (frame.key.clone(), frame.n);
            own.keep_twins(|twin| is_begun(frame, twin));
            level = own;
        }
        let piece = match &memory.piece {
            Piece::Between => Watched::Between,
            Piece::Text(begun) => Watched::Text(begun.written.text(), begun.part),
            Piece::Skipped(part) => Watched::OtherText(is_behind_backslash(*part)),
            Piece::Bare(_) => Watched::Bare(memory.bare().unwrap_or_default().to_owned()),
        };
        let mut this = Self { setting, level, piece, repeats: false, is_lost: false };
        this.forget_others();
        this
    }

    /// Whether what begins so may become a value that is told apart.
    fn matters(&self, begin: &str, is_text: bool) -> bool {
        let Self { setting, level, .. } = self;
        if !is_text && !setting.holds_items {
            return false;
        }
        let may_be = |held: &Held| if is_text { begins(held, begin) } else { held.may_begin(begin) };
        if level.in_twins().iter().any(may_be) {
            return true;
        }
        if !level.has_siblings(setting) {
            return false;
        }
        if is_text {
            let from = Held::Text(begin.into());
            let mut first = [&level.seen, &setting.values].into_iter();
            return first.any(|set| set.range(from.clone()..).next().is_some_and(may_be));
        }
        let is_bare = |held: &&Held| matches!(held, Held::Literal(_) | Held::Number(_));
        let mut all = [&level.seen, &setting.values].into_iter();
        all.any(|set| set.iter().take_while(is_bare).any(may_be))
    }

    /// Whether a number that begins so can come to be zero, and no other value that is told apart.
    fn is_zero_at_most(&self, begin: &str) -> bool {
        let Self { setting, level, .. } = self;
        let twins = level.in_twins();
        let siblings = [&level.seen, &setting.values].into_iter().flat_map(|set| set.iter());
        let siblings = siblings.take_while(|_| level.has_siblings(setting));
        let is_zero = |held: &Held| matches!(held, Held::Number(number) if number.is_zero());
        twins.iter().chain(siblings).all(|held| is_zero(held) || !held.may_begin(begin))
    }

    /// Forgets what the piece in progress is if it is none that matters; of a zero, how it is spelled.
    fn forget_others(&mut self) {
        match &self.piece {
            Watched::Text(begin, part) if !self.matters(begin, true) => {
                self.piece = Watched::OtherText(is_behind_backslash(*part));
            }
            Watched::Bare(begin) if !self.matters(begin, false) => {
                self.piece = if self.setting.holds_items { Watched::OtherBare } else { Watched::Between };
            }
            Watched::Bare(begin) => {
                if let Some(zero) = shortest_zero(begin).filter(|_| self.is_zero_at_most(begin)) {
                    self.piece = Watched::Bare(zero.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Something begins that may be held against what was forgotten.
    fn begin(&mut self) {
        let is_held = self.level.has_siblings(&self.setting);
        self.is_lost |= self.setting.keeps && is_held && self.level.has_lost;
    }

    fn close(&mut self) {
        let Some(outer) = self.level.outer.clone() else { return };
        let inner = std::mem::replace(&mut self.level, Arc::unwrap_or_clone(outer));
        self.repeats = self.level.add(&self.setting, inner.value());
    }

    fn between(&mut self, byte: u8) {
        match byte {
            byte if means_nothing(byte) => {}
            b'{' | b'[' => {
                self.begin();
                let shape = if byte == b'{' { Shape::Object } else { Shape::Array };
                self.level = self.level.clone().open(&self.setting, shape);
            }
            b'}' | b']' => self.close(),
            b',' => self.level.expects_key = self.level.shape == Shape::Object,
            b':' => self.level.expects_key = false,
            b'"' => {
                self.begin();
                self.piece = Watched::Text(String::new(), None);
                self.forget_others();
            }
            _ if !self.setting.holds_items => {}
            byte => {
                self.begin();
                self.piece = Watched::Bare(char::from(byte).into());
                self.look();
            }
        }
    }

    /// Whether the number or literal so far is there already.
    fn look(&mut self) {
        self.forget_others();
        if let Watched::Bare(begin) = &self.piece
            && self.level.has_siblings(&self.setting)
        {
            self.repeats = Held::bare(begin).is_some_and(|held| self.level.seen.contains(&held));
        }
    }

    fn end_text(&mut self, text: Option<Arc<str>>) {
        self.piece = Watched::Between;
        self.repeats = match self.level.is_key() {
            true => self.level.add_key(&self.setting, text.as_ref()),
            false => self.level.add(&self.setting, text.map(Held::Text).as_ref()),
        };
    }

    fn end_bare(&mut self, held: Option<&Held>, byte: u8) {
        self.piece = Watched::Between;
        self.level.add(&self.setting, held);
        self.between(byte);
    }

    fn read(&mut self, byte: u8) {
        let goes_on = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        match &mut self.piece {
            Watched::Between => self.between(byte),
            Watched::OtherText(is_escaped) => match byte {
                _ if *is_escaped => *is_escaped = false,
                b'\\' => *is_escaped = true,
                b'"' => self.end_text(None),
                _ => {}
            },
            Watched::OtherBare if goes_on => {}
            Watched::OtherBare => self.end_bare(None, byte),
            Watched::Text(begin, None) if byte == b'"' => {
                let text: Arc<str> = begin.as_str().into();
                self.end_text(Some(text));
            }
            Watched::Text(begin, part) => {
                begin.extend(JsonMemory::character(part, byte));
                self.forget_others();
            }
            Watched::Bare(begin) if goes_on => {
                begin.push(char::from(byte));
                self.look();
            }
            Watched::Bare(begin) => {
                let held = Held::bare(begin);
                self.end_bare(held.as_ref(), byte);
            }
        }
    }
}

/// The shortest text that goes on as a zero in progress does: how many zeros it has changes nothing, nor
/// which power of ten it is multiplied by.
fn shortest_zero(begin: &str) -> Option<&'static str> {
    let (mantissa, exponent) = match begin.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (begin, None),
    };
    let mantissa = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let is_zero = whole == "0" && fraction.unwrap_or_default().bytes().all(|byte| byte == b'0');
    is_zero.then_some(match (fraction, exponent) {
        (_, Some("")) => "0e",
        (_, Some("+" | "-")) => "0e+",
        (_, Some(_)) => "0e0",
        (Some(""), None) => "0.",
        (Some(_), None) => "0.0",
        (None, None) => "0",
    })
}

/// Whether the first part of a character's spelling ends with a backslash.
fn is_behind_backslash(part: Option<Part>) -> bool {
    matches!(part, Some(Part::Escape | Part::HalfEscape { .. }))
}

impl Watch for Watching {
    fn step(&self, byte: u8) -> Arc<dyn Watch> {
        let mut next = self.clone();
        next.repeats = false;
        if !self.is_lost {
            next.read(byte);
            next.is_lost |= next.repeats && next.setting.keeps;
        }
        Arc::new(next)
    }

    fn repeats(&self) -> bool {
        self.repeats
    }

    fn is_over(&self) -> bool {
        matches!(self.piece, Watched::Between) && self.level.outer.is_none() && self.level.n > 0
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn fingerprint(&self) -> u64 {
        if self.is_lost {
            return 0;
        }
        hash(&(&self.piece, self.level.fingerprint(&self.setting), self.repeats))
    }
}
