//! Strings as JSON spells them: a static automaton of spellings above formulas over code points.
//!
//! `"a"` and `"\u0061"` are one string, and so are a surrogate pair of escapes and the character that it
//! spells; half a pair spells nothing. What stays true: a state is made only if one of its labels can still
//! be completed, and it holds exactly those that can. Cost of a step that was not made: the labels in
//! progress times a binary search among ranges of code points.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use anygram_bits::Fingerprint;
use anygram_grammar::automata::{Bytes, Common, Nature, PieceAutomaton, Pieces, TooManyStates};
use rustc_hash::FxHashMap;

use crate::chars::{Chars, FormulaId, TooLarge};
use crate::strings::Text;
use crate::value::Value;

/// Which characters may be spelled by escapes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Escapes {
    /// All.
    #[default]
    Any,
    /// By `\u` only those that cannot stand by themselves.
    Needed,
}

/// Some sets of strings, each a label, as pieces of a JSON text.
pub struct StringPieces {
    chars: Arc<Mutex<Chars>>,
    texts: Box<[Text]>,
    /// Lengths beyond it are alike.
    most: u64,
    /// Whether [`alike`](PieceAutomaton::alike) can be another.
    has_bounds: bool,
    /// What they are, for messages.
    what: String,
    escapes: Escapes,
    limit: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    states: Vec<Arc<State>>,
    ids: FxHashMap<State, u32>,
}

/// Labels with what is left of their strings.
type Open = Box<[(u32, FormulaId)]>;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum State {
    /// Before the opening quote.
    Start,
    /// Between characters: how many there are, as far as that matters, and what is in progress.
    Inside { length: u64, open: Open },
    /// Inside a character: how it is spelled so far.
    Within { part: Part, length: u64, open: Open },
    /// Inside a character of which only the spelling matters, since all that it can be lead to the same: what
    /// comes behind it. Of parts that go on alike one stands for all, see [`Part::shape`].
    Tail { part: Part, length: u64, open: Open },
    /// Behind the closing quote.
    Closed(Arc<[u32]>),
}

/// The first part of a character's spelling.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Part {
    /// `\`
    Escape,
    /// `\u` and some digits, with what they are worth.
    Unit { digits: u8, value: u32 },
    /// The first half of a surrogate pair: its value.
    Half { high: u32 },
    /// That and `\`.
    HalfEscape { high: u32 },
    /// That and `\u` and some digits.
    HalfUnit { high: u32, digits: u8, value: u32 },
    /// Bytes of UTF-8: how many are to come, and the code point so far.
    Bytes { left: u8, value: u32 },
}

impl fmt::Debug for StringPieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StringPieces").field("what", &self.what).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half made: entries are added last.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl StringPieces {
    /// The labels are the places of `texts`; every one has a string.
    pub fn new(
        chars: Arc<Mutex<Chars>>,
        texts: Vec<Text>,
        what: String,
        (escapes, limit): (Escapes, usize),
    ) -> Self {
        let most = texts.iter().map(Text::counted).max().unwrap_or(0);
        let is_counted = |chars: &Chars| texts.iter().any(|text| chars.is_counted(text.formula));
        let has_bounds = most > 0 || is_counted(&lock(&chars));
        let (texts, table) = (texts.into(), Mutex::default());
        let this = Self { chars, texts, most, has_bounds, what, escapes, limit, table };
        let mut table = lock(&this.table);
        table.states.push(Arc::new(State::Start));
        table.ids.insert(State::Start, 0);
        drop(table);
        this
    }

    fn state(&self, state: u32) -> Arc<State> {
        lock(&self.table).states[state as usize].clone()
    }

    fn too_many(&self, limit: usize) -> TooManyStates {
        TooManyStates { what: self.what.clone(), limit, option: "schema_states" }
    }

    /// Where a byte leads, and the bytes around it that lead there too.
    fn next(&self, state: &State, byte: u8) -> Result<(Option<State>, (u8, u8)), TooLarge> {
        if let Some(gap) = gap(state.bytes(), byte) {
            return Ok((None, gap));
        }
        let next = match state {
            State::Start => {
                let open = (0..).zip(&self.texts).map(|(label, text)| (label, text.formula)).collect();
                Some(State::Inside { length: 0, open })
            }
            State::Closed(_) => None,
            State::Inside { length, open } => match byte {
                b'"' => self.close(*length, open),
                0x20..=0x7f if byte != b'\\' => {
                    let (next, (first, last)) = self.character(u32::from(byte), *length, open)?;
                    return Ok((next, plain_run(byte, (first, last))));
                }
                byte => Part::first(byte).map_or(Ok(None), |part| self.within(part, *length, open))?,
            },
            State::Tail { part, length, open } => part.step(byte).and_then(|next| match next {
                Err(_) => Some(State::Inside { length: *length, open: open.clone() }),
                Ok(part) if part.ranges(self.escapes).is_empty() => None,
                Ok(part) => {
                    let part = part.shape(self.escapes)?;
                    Some(State::Tail { part, length: *length, open: open.clone() })
                }
            }),
            State::Within { part, length, open } => match part.step(byte) {
                None => None,
                Some(Ok(part)) => self.within(part, *length, open)?,
                Some(Err(code)) if code > 0x1f && self.escapes == Escapes::Needed && part.is_unit() => None,
                Some(Err(code)) => self.character(code, *length, open)?.0,
            },
        };
        Ok((next, (byte, byte)))
    }

    /// Behind the closing quote.
    fn close(&self, length: u64, open: &Open) -> Option<State> {
        let chars = lock(&self.chars);
        let is_whole = |&&(label, formula): &&(u32, FormulaId)| {
            let text = self.texts[label as usize];
            length >= text.min && length <= text.max && chars.accepts_empty(formula)
        };
        let labels: Arc<[u32]> = open.iter().filter(is_whole).map(|&(label, _)| label).collect();
        (!labels.is_empty()).then_some(State::Closed(labels))
    }

    /// Behind a character, and the characters around it that lead there too.
    fn character(
        &self,
        code: u32,
        length: u64,
        open: &Open,
    ) -> Result<(Option<State>, (u32, u32)), TooLarge> {
        let (mut chars, length) = (lock(&self.chars), (length + 1).min(self.most));
        let mut left = Vec::with_capacity(open.len());
        let (mut first, mut last) = (0, char::MAX as u32);
        for &(label, formula) in open {
            let (next, run) = chars.step_run(formula, code)?;
            (first, last) = (first.max(run.0), last.min(run.1));
            if self.is_live(&mut chars, label, next, length)? {
                left.push((label, next));
            }
        }
        let length = self.counted(length, &left);
        let next = (!left.is_empty()).then(|| State::Inside { length, open: left.into() });
        Ok((next, (first, last)))
    }

    /// A length as far as it matters to some labels.
    fn counted(&self, length: u64, open: &[(u32, FormulaId)]) -> u64 {
        let counted = open.iter().map(|&(label, _)| self.texts[label as usize].counted());
        length.min(counted.max().unwrap_or(0))
    }

    /// Whether a label can be completed after so many characters.
    fn is_live(&self, chars: &mut Chars, label: u32, next: FormulaId, length: u64) -> Result<bool, TooLarge> {
        if next == FormulaId::NONE {
            return Ok(false);
        }
        let Text { min, max, .. } = self.texts[label as usize];
        if length > max {
            return Ok(false);
        }
        let most = if max == u64::MAX { max } else { max - length };
        chars.has_length(next, min.saturating_sub(length), most)
    }

    /// How many characters more there have to be at least and may be at most, after so many: none and any
    /// number where so many bytes come to no bound; one that is only far too many bytes away is out of reach.
    fn within_reach(
        &self,
        chars: &mut Chars,
        (length, min, max): (u64, u64, u64),
        formula: FormulaId,
        bytes: u64,
    ) -> (u64, u64) {
        let behind = length.saturating_add(bytes);
        let is_free = max == u64::MAX
            || chars.reserve(formula).is_some_and(|reserve| behind.saturating_add(reserve) <= max);
        if !is_free {
            return (min.saturating_sub(length), max.saturating_sub(length));
        }
        let is_far = formula == FormulaId::ANY && behind < min;
        (if is_far { u64::MAX } else { min.saturating_sub(length) }, u64::MAX)
    }

    /// The least length and the formulas in whose place so many bytes lead to the same: where each bound is
    /// either reached or out of their reach, and nothing but the bounds depends on how many characters are to
    /// come.
    fn alike_open(&self, length: u64, open: &Open, bytes: u64) -> (u64, Open) {
        let (mut chars, mut least) = (lock(&self.chars), Some(0));
        let mut alike = |&(label, formula): &(u32, FormulaId)| {
            let Text { min, max, .. } = self.texts[label as usize];
            let is_free = max == u64::MAX
                || (chars.reserve(formula))
                    .is_some_and(|reserve| length.saturating_add(bytes).saturating_add(reserve) <= max);
            if is_free && min <= length {
                least = least.map(|least: u64| least.max(min));
                return (label, chars.alike(formula, bytes));
            }
            let is_far = is_free && formula == FormulaId::ANY && length.saturating_add(bytes) < min;
            least = least.filter(|_| is_far);
            (label, formula)
        };
        let open = open.iter().map(&mut alike).collect();
        (least.unwrap_or(length), open)
    }

    /// The bytes that begin characters which lead some formula on, and those that spell in other ways.
    fn first_bytes(&self, open: &Open) -> Result<Bytes, TooLarge> {
        let (mut chars, mut bytes) = (lock(&self.chars), Bytes::NONE);
        bytes.insert(b'"', b'"');
        bytes.insert(b'\\', b'\\');
        for &(_, formula) in open {
            let mut from = 0;
            for &(last, next) in chars.row(formula)?.iter() {
                if next != FormulaId::NONE {
                    bytes.insert(first_byte(from), first_byte(last));
                }
                from = last + 1;
            }
        }
        Ok(bytes)
    }

    /// Inside a character.
    fn within(&self, part: Part, length: u64, open: &Open) -> Result<Option<State>, TooLarge> {
        if let Some(shape) = part.shape(self.escapes)
            && let Some(behind) = self.behind(length, open, &part.ranges(self.escapes))?
        {
            let length = self.counted(length + 1, &behind);
            return Ok((!behind.is_empty()).then_some(State::Tail { part: shape, length, open: behind }));
        }
        self.within_one(part, length, open)
    }

    /// The same where what is spelled matters.
    fn within_one(&self, part: Part, length: u64, open: &Open) -> Result<Option<State>, TooLarge> {
        let ranges = part.ranges(self.escapes);
        let mut chars = lock(&self.chars);
        let mut left = Vec::with_capacity(open.len());
        for &(label, formula) in open {
            if self.reaches(&mut chars, label, formula, (length + 1).min(self.most), &ranges)? {
                left.push((label, formula));
            }
        }
        let length = self.counted(length, &left);
        Ok((!left.is_empty()).then(|| State::Within { part, length, open: left.into() }))
    }

    /// What is behind a character that is any of some ranges, if that is the same for all of them.
    fn behind(&self, length: u64, open: &Open, ranges: &[(u32, u32)]) -> Result<Option<Open>, TooLarge> {
        let mut chars = lock(&self.chars);
        let mut left = Vec::with_capacity(open.len());
        for &(label, formula) in open {
            let row = chars.row(formula)?;
            let places = ranges.iter().map(|&(from, to)| {
                let (last, next) = row[row.partition_point(|&(last, _)| last < from)];
                (last >= to).then_some(next)
            });
            let Some(next) = common(places) else { return Ok(None) };
            if self.is_live(&mut chars, label, next, (length + 1).min(self.most))? {
                left.push((label, next));
            }
        }
        Ok(Some(left.into()))
    }

    /// Whether some code point of these leads on.
    fn reaches(
        &self,
        chars: &mut Chars,
        label: u32,
        formula: FormulaId,
        length: u64,
        ranges: &[(u32, u32)],
    ) -> Result<bool, TooLarge> {
        let row = chars.row(formula)?;
        for &(from, to) in ranges {
            let mut at = row.partition_point(|&(last, _)| last < from);
            while at < row.len() && (at == 0 || row[at - 1].0 < to) {
                if self.is_live(chars, label, row[at].1, length)? {
                    return Ok(true);
                }
                at += 1;
            }
        }
        Ok(false)
    }

    fn intern(&self, state: State) -> Result<u32, TooManyStates> {
        let mut table = lock(&self.table);
        if let Some(&known) = table.ids.get(&state) {
            return Ok(known);
        }
        if table.states.len() >= self.limit {
            return Err(self.too_many(self.limit));
        }
        let fresh = table.states.len() as u32;
        table.states.push(Arc::new(state.clone()));
        table.ids.insert(state, fresh);
        Ok(fresh)
    }
}

impl PieceAutomaton for StringPieces {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates> {
        Ok(self.step_run(state, byte)?.0)
    }

    fn step_run(&self, state: u32, byte: u8) -> Result<(Option<u32>, (u8, u8)), TooManyStates> {
        let too_many = |TooLarge { limit }| self.too_many(limit);
        let (next, run) = self.next(&self.state(state), byte).map_err(too_many)?;
        Ok((next.map(|next| self.intern(next)).transpose()?, run))
    }

    fn bytes(&self, state: u32) -> Bytes {
        let state = self.state(state);
        let mut bytes = Bytes::NONE;
        match &*state {
            // Where formulas are too many, no byte is left out.
            State::Inside { open, .. } => self.first_bytes(open).unwrap_or(Bytes::ALL),
            state => {
                state.bytes().iter().for_each(|&(first, last)| bytes.insert(first, last));
                bytes
            }
        }
    }

    fn accepts(&self, state: u32) -> Arc<[u32]> {
        match &*self.state(state) {
            State::Closed(labels) => labels.clone(),
            _ => Arc::default(),
        }
    }

    fn live(&self, state: u32) -> Arc<[u32]> {
        match &*self.state(state) {
            State::Start => (0..self.texts.len() as u32).collect(),
            State::Inside { open, .. } | State::Within { open, .. } | State::Tail { open, .. } => {
                open.iter().map(|&(label, _)| label).collect()
            }
            State::Closed(_) => Arc::default(),
        }
    }

    fn at_least(&self, state: u32, label: u32) -> u64 {
        let state = self.state(state);
        // Behind a character whose spelling has begun, how many there are of the rest.
        let (length, open, begun) = match &*state {
            State::Closed(_) => return 0,
            State::Start => {
                let Text { formula, min, .. } = self.texts[label as usize];
                return lock(&self.chars).at_least(formula).max(min).saturating_add(2);
            }
            State::Inside { length, open } | State::Within { length, open, .. } => (*length, open, 0),
            State::Tail { length, open, .. } => (*length, open, 1),
        };
        let Ok(at) = open.binary_search_by_key(&label, |open| open.0) else { return 0 };
        let left = self.texts[label as usize].min.saturating_sub(length);
        lock(&self.chars).at_least(open[at].1).max(left).saturating_add(begun + 1)
    }

    fn alike(&self, state: u32, bytes: usize) -> u32 {
        let mut other = State::clone(&self.state(state));
        let (State::Inside { length, open }
        | State::Within { length, open, .. }
        | State::Tail { length, open, .. }) = &mut other
        else {
            return state;
        };
        let alike = self.alike_open(*length, open, bytes as u64);
        if (*length, &*open) == (alike.0, &alike.1) {
            return state;
        }
        (*length, *open) = alike;
        // Where no more states may be made, the state stands for itself.
        self.intern(other).unwrap_or(state)
    }

    fn has_bounds(&self) -> bool {
        self.has_bounds
    }

    fn examples(&self, label: u32, most: usize) -> Vec<Vec<u8>> {
        let Text { formula, min, max } = self.texts[label as usize];
        let mut words: Vec<String> = {
            let chars = lock(&self.chars);
            let words = chars.listed(formula).iter();
            let fits = |word: &&Vec<char>| (min..=max).contains(&(word.len() as u64));
            words.filter(fits).map(|word| word.iter().collect()).collect()
        };
        words.sort_by_key(String::len);
        words.truncate(most);
        words.into_iter().map(|word| Value::String(word.into()).to_string().into_bytes()).collect()
    }

    fn common(&self, state: u32) -> Option<Common> {
        let state = self.state(state);
        let (path, open) = match &*state {
            State::Inside { open, .. } => (Box::default(), open),
            State::Within { part, open, .. } | State::Tail { part, open, .. } => {
                (part.shape(self.escapes).unwrap_or(*part).spelling(), open)
            }
            State::Start | State::Closed(_) => return None,
        };
        let chars = lock(&self.chars);
        let mut others = open.iter().filter(|&&(_, formula)| !chars.is_listed(formula));
        let (only, None) = (others.next()?.1, others.next()) else { return None };
        chars.is_mostly_any(only).then_some(match self.escapes {
            Escapes::Any => Common { name: "JSON string", make: || free(Escapes::Any), path },
            Escapes::Needed => {
                Common { name: "JSON string, needed escapes", make: || free(Escapes::Needed), path }
            }
        })
    }

    fn nature(&self, state: u32) -> Option<Nature> {
        let state = self.state(state);
        let (number, length, open) = match &*state {
            State::Start => return None,
            State::Closed(labels) => {
                let [label] = **labels else { return None };
                return Some(Nature { number: 0, label, most: u64::MAX, least: 0 });
            }
            State::Inside { length, open } => (1, *length, open),
            State::Tail { part, length, open } => (part.number(), *length, open),
            // What is begun is a character.
            State::Within { part, length, open } => {
                (part.shape(self.escapes).unwrap_or(*part).number(), *length + 1, open)
            }
        };
        let [(label, FormulaId::ANY)] = **open else { return None };
        let Text { min, max, .. } = self.texts[label as usize];
        let most = if max == u64::MAX { u64::MAX } else { max - length };
        Some(Nature { number, label, most, least: min.saturating_sub(length) })
    }

    fn fingerprint(&self, state: u32, labels: &[u32], bytes: usize) -> Option<Fingerprint> {
        let state = self.state(state);
        let mut chars = lock(&self.chars);
        let mut left = |label: u32, formula: FormulaId, length: u64| {
            let Text { min, max, .. } = self.texts[label as usize];
            let (min, max) = self.within_reach(&mut chars, (length, min, max), formula, bytes as u64);
            Some((chars.fingerprint(formula)?, min, max))
        };
        let (part, place, length, open) = match &*state {
            State::Start => {
                let all = labels.iter().map(|&label| left(label, self.texts[label as usize].formula, 0));
                let all: Vec<_> = all.collect::<Option<_>>()?;
                return Some(Fingerprint::of(&("string", self.escapes, all)));
            }
            State::Closed(closed) => {
                let n_closed = labels.iter().filter(|label| closed.binary_search(label).is_ok()).count();
                return Some(Fingerprint::of(&("closed", n_closed)));
            }
            State::Inside { length, open } => (None, 0, *length, open),
            State::Within { part, length, open } => (Some(part), 1, *length, open),
            State::Tail { part, length, open } => (Some(part), 2, *length, open),
        };
        let find =
            |label| Some(open[open.binary_search_by_key(&label, |open: &(u32, FormulaId)| open.0).ok()?]);
        let open = labels.iter().filter_map(|&label| find(label));
        let all = open.map(|(label, formula)| left(label, formula, length));
        let all: Vec<_> = all.collect::<Option<_>>()?;
        Some(Fingerprint::of(&("inside", self.escapes, place, part, all)))
    }

    fn outline(&self) -> &'static str {
        OUTLINE
    }

    fn in_outline(&self, state: u32) -> Option<&'static [u8]> {
        let bytes = |left: u8| -> &'static [u8] {
            match left {
                1 => b"\"\xc2",
                2 => b"\"\xe1",
                _ => b"\"\xf1",
            }
        };
        Some(match &*self.state(state) {
            State::Start => b"",
            State::Inside { .. } => b"\"",
            State::Closed(_) => b"\"\"",
            State::Tail { part, .. } | State::Within { part, .. } => match part {
                Part::Bytes { left, .. } => bytes(*left),
                Part::Escape | Part::HalfEscape { .. } => b"\"\\",
                // The other half is another character there.
                Part::Half { .. } => b"\"",
                Part::Unit { digits, .. } | Part::HalfUnit { digits, .. } => match digits {
                    0 => b"\"\\u",
                    1 => b"\"\\u0",
                    2 => b"\"\\u00",
                    _ => b"\"\\u000",
                },
            },
        })
    }

    fn classes(&self) -> Box<[u8; 256]> {
        lock(&self.chars).byte_classes(|bounds| {
            // With bounds among the characters that other bytes spell, each of these may matter.
            let kinds = &KINDS[usize::from(!bounds.are_among_others())];
            let few = bounds.few();
            let (mut ids, mut n_ids) = ([None; N_KINDS], 0u16);
            Box::new(std::array::from_fn(|byte| {
                // Behind a bound all are others than before.
                if byte < 128 && few >> byte & 1 == 1 {
                    ids = [None; N_KINDS];
                }
                *ids[usize::from(kinds[byte])].get_or_insert_with(|| {
                    n_ids += 1;
                    (n_ids - 1) as u8
                })
            }))
        })
    }
}

/// All strings: UTF-8 without regard to where it is overlong, escapes without regard to halves of pairs.
const OUTLINE: &str = concat!(
    r#"(?-u)"(?:[\x20\x21\x23-\x5b\x5d-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}"#,
    r#"|[\xf0-\xf4][\x80-\xbf]{3}|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*""#
);

impl State {
    /// The bytes, as ranges, with which the spelling of a string can go on, whichever strings are looked for.
    fn bytes(&self) -> &'static [(u8, u8)] {
        match self {
            Self::Start => &[(b'"', b'"')],
            Self::Closed(_) => &[],
            Self::Inside { .. } => &[(b' ', 0x7f), (0xc2, 0xf4)],
            Self::Within { part, .. } | Self::Tail { part, .. } => match part {
                Part::Escape => ESCAPED,
                Part::Half { .. } => &[(b'\\', b'\\')],
                Part::HalfEscape { .. } => &[(b'u', b'u')],
                Part::Unit { .. } | Part::HalfUnit { .. } => &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')],
                Part::Bytes { .. } => &[(0x80, 0xbf)],
            },
        }
    }
}

/// What can stand behind a backslash.
const ESCAPED: &[(u8, u8)] = &[
    (b'"', b'"'),
    (b'/', b'/'),
    (b'\\', b'\\'),
    (b'b', b'b'),
    (b'f', b'f'),
    (b'n', b'n'),
    (b'r', b'r'),
    (b't', b'u'),
];

/// The bytes between two ranges among which a byte is, unless it is in one of them.
fn gap(ranges: &[(u8, u8)], byte: u8) -> Option<(u8, u8)> {
    let after = ranges.partition_point(|&(_, last)| last < byte);
    let last = match ranges.get(after) {
        Some(&(first, _)) if first <= byte => return None,
        Some(&(first, _)) => first - 1,
        None => u8::MAX,
    };
    let first = after.checked_sub(1).map_or(0, |before| ranges[before].1 + 1);
    Some((first, last))
}

/// Of the characters that lead where a byte leads, those around it that spell themselves by one byte too.
fn plain_run(byte: u8, (first, last): (u32, u32)) -> (u8, u8) {
    let (least, most) = match byte {
        0..b'"' => (0x20, b'"' - 1),
        b'"'..b'\\' => (b'"' + 1, b'\\' - 1),
        _ => (b'\\' + 1, 0x7f),
    };
    // Both contain the byte, so there is something in common.
    (first.clamp(least.into(), byte.into()) as u8, last.clamp(byte.into(), most.into()) as u8)
}

/// The first byte of a code point in UTF-8.
fn first_byte(code: u32) -> u8 {
    match code {
        0..0x80 => code as u8,
        0x80..0x800 => 0xc0 | (code >> 6) as u8,
        0x800..0x1_0000 => 0xe0 | (code >> 12) as u8,
        _ => 0xf0 | (code >> 18) as u8,
    }
}

/// What all are, if they are the same; of none, what nothing follows.
fn common(mut places: impl Iterator<Item = Option<FormulaId>>) -> Option<FormulaId> {
    let first = places.next().unwrap_or(Some(FormulaId::NONE))?;
    places.all(|place| place == Some(first)).then_some(first)
}

/// More characters than a token has.
const ENDLESS: u64 = 1 << 48;

/// Any string, behind its opening quote.
fn free(escapes: Escapes) -> Option<(Pieces, u32)> {
    let text = Text { formula: FormulaId::ANY, min: 0, max: ENDLESS };
    let how = (escapes, usize::MAX);
    let pieces = StringPieces::new(Arc::default(), vec![text], "a string".to_owned(), how);
    let start = pieces.step(pieces.start(), b'"').ok()??;
    Some((Pieces(Arc::new(pieces)), start))
}

/// The kinds of all bytes, as numbers: where [`kind`] tells the other bytes apart, and where they are alike.
static KINDS: LazyLock<[[u8; 256]; 2]> = LazyLock::new(|| {
    [false, true].map(|are_others_alike| {
        let kinds: [_; 256] = std::array::from_fn(|byte| kind(byte as u8, are_others_alike));
        let mut seen = Vec::with_capacity(N_KINDS);
        kinds.map(|kind| {
            let known = seen.iter().position(|&other| other == kind);
            known.unwrap_or_else(|| {
                seen.push(kind);
                seen.len() - 1
            }) as u8
        })
    })
});

/// There are not more kinds: those of plain bytes, and all others.
const N_KINDS: usize = 160;

/// What a byte is to a spelling: by itself, and as a digit. Bytes of one kind between the same bounds of code
/// points are told apart nowhere.
fn kind(byte: u8, are_others_alike: bool) -> (u8, Option<u32>) {
    // Leading and continuing bytes between which UTF-8 itself tells.
    const OTHERS: [u8; 14] =
        [0x80, 0x90, 0xa0, 0xc0, 0xc2, 0xe0, 0xe1, 0xed, 0xee, 0xf0, 0xf1, 0xf4, 0xf5, 0xff];
    let own = match byte {
        0..=0x1f => 0,
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u' => byte,
        0x20..=0x7f => b' ',
        _ if are_others_alike => OTHERS.iter().copied().rfind(|&least| least <= byte).unwrap_or(byte),
        _ => byte,
    };
    (own, char::from(byte).to_digit(16))
}

impl Part {
    /// The spelling of a character that a byte begins, if it takes several.
    pub(crate) fn first(byte: u8) -> Option<Self> {
        let bytes = |left, mask| Some(Self::Bytes { left, value: u32::from(byte & mask) });
        match byte {
            b'\\' => Some(Self::Escape),
            0xc2..=0xdf => bytes(1, 0x1f),
            0xe0..=0xef => bytes(2, 0x0f),
            0xf0..=0xf4 => bytes(3, 0x07),
            _ => None,
        }
    }

    /// One part for all after which the same bytes complete a character, whatever they are worth, if this one
    /// spells any. `None` where UTF-8 or `escapes` leaves out some of the bytes; what follows a part that
    /// has a shape has one too.
    fn shape(self, escapes: Escapes) -> Option<Self> {
        let shift = |digits: u8| 4 * (4 - u32::from(digits));
        match self {
            Self::Bytes { left: left @ 1, .. } => Some(Self::Bytes { left, value: 2 }),
            Self::Bytes { left: left @ 2, value: 1..=0xc | 0xe.. } => Some(Self::Bytes { left, value: 0xf }),
            Self::Bytes { left: left @ 3, value: 1..=3 } => Some(Self::Bytes { left, value: 1 }),
            Self::Bytes { .. } => None,
            _ if escapes == Escapes::Needed => None,
            Self::Escape => Some(self),
            Self::Unit { digits, value } => {
                let value = match (digits, (value << shift(digits)) & 0xfc00) {
                    // Halves of pairs, and other characters.
                    (1, 0xd000) => value,
                    (_, 0xd800) => 0xd800 >> shift(digits),
                    _ => 0,
                };
                Some(Self::Unit { digits, value })
            }
            Self::Half { .. } => Some(Self::Half { high: 0xd800 }),
            Self::HalfEscape { .. } => Some(Self::HalfEscape { high: 0xd800 }),
            Self::HalfUnit { digits, .. } => {
                Some(Self::HalfUnit { high: 0xd800, digits, value: 0xdc00 >> shift(digits) })
            }
        }
    }

    /// Whether it is `\u` and what follows it.
    pub(crate) fn is_unit(self) -> bool {
        !matches!(self, Self::Escape | Self::Bytes { .. })
    }

    /// Bytes that lead from where a character begins to it, if it has no [shape](Self::shape) or is one.
    fn spelling(self) -> Box<[u8]> {
        let unit = |value: u32, digits: u8| match digits {
            0 => "\\u".to_owned(),
            _ => format!("\\u{value:0width$x}", width = usize::from(digits)),
        };
        let text = match self {
            // The first byte tells them apart.
            Self::Bytes { left, value } => {
                return [[0xc0, 0xe0, 0xf0][usize::from(left) - 1] | value as u8].into();
            }
            Self::Escape => "\\".to_owned(),
            Self::Unit { digits, value } => unit(value, digits),
            Self::Half { high } => unit(high, 4),
            Self::HalfEscape { high } => unit(high, 4) + "\\",
            Self::HalfUnit { high, digits, value } => unit(high, 4) + &unit(value, digits),
        };
        text.into_bytes().into()
    }

    /// A number that no other part has, above 16.
    fn number(self) -> u64 {
        let pack = |kind: u64, high: u32, digits: u8, value: u32| {
            kind << 56 | u64::from(high) << 36 | u64::from(digits) << 32 | u64::from(value)
        };
        match self {
            Self::Escape => pack(1, 0, 0, 0),
            Self::Unit { digits, value } => pack(2, 0, digits, value),
            Self::Half { high } => pack(3, high, 0, 0),
            Self::HalfEscape { high } => pack(4, high, 0, 0),
            Self::HalfUnit { high, digits, value } => pack(5, high, digits, value),
            Self::Bytes { left, value } => pack(6, 0, left, value),
        }
    }

    /// After one more byte: a longer part, or the code point; `None` if nothing is spelled so.
    pub(crate) fn step(self, byte: u8) -> Option<Result<Self, u32>> {
        let digit = || char::from(byte).to_digit(16);
        match self {
            Self::Escape => match byte {
                b'"' | b'\\' | b'/' => Some(Err(u32::from(byte))),
                b'b' => Some(Err(8)),
                b'f' => Some(Err(12)),
                b'n' => Some(Err(10)),
                b'r' => Some(Err(13)),
                b't' => Some(Err(9)),
                b'u' => Some(Ok(Self::Unit { digits: 0, value: 0 })),
                _ => None,
            },
            Self::Unit { digits, value } => {
                let value = value << 4 | digit()?;
                match (digits, value) {
                    (0..=2, _) => Some(Ok(Self::Unit { digits: digits + 1, value })),
                    (_, 0xd800..=0xdbff) => Some(Ok(Self::Half { high: value })),
                    (_, 0xdc00..=0xdfff) => None,
                    _ => Some(Err(value)),
                }
            }
            Self::Half { high } => (byte == b'\\').then_some(Ok(Self::HalfEscape { high })),
            Self::HalfEscape { high } => {
                (byte == b'u').then_some(Ok(Self::HalfUnit { high, digits: 0, value: 0 }))
            }
            Self::HalfUnit { high, digits, value } => {
                let value = value << 4 | digit()?;
                match (digits, value) {
                    (0..=2, _) => Some(Ok(Self::HalfUnit { high, digits: digits + 1, value })),
                    (_, 0xdc00..=0xdfff) => Some(Err(paired(high, value))),
                    _ => None,
                }
            }
            Self::Bytes { left, value } => {
                let longer = value << 6 | u32::from(byte & 0x3f);
                // What could be spelled with fewer bytes is not spelled with more.
                let is_allowed = match (left, value) {
                    (3, _) => (0x10..=0x10f).contains(&longer),
                    (2, 0..=0xf) => longer >= 0x20,
                    _ => true,
                };
                match (byte & 0xc0 == 0x80 && is_allowed, left) {
                    (false, _) => None,
                    (true, 1) => char::from_u32(longer).map(|c| Err(c as u32)),
                    (true, left) => Some(Ok(Self::Bytes { left: left - 1, value: longer })),
                }
            }
        }
    }

    /// The code points that can come of it, as ranges, if so many escapes may be used.
    pub(crate) fn ranges(self, escapes: Escapes) -> Vec<(u32, u32)> {
        let mut ranges = self.all_ranges();
        if escapes == Escapes::Needed && self.is_unit() {
            ranges.retain_mut(|(from, to)| {
                *to = (*to).min(0x1f);
                from <= to
            });
        } else if escapes == Escapes::Needed && self == Self::Escape {
            // Control characters, and what has an escape of two characters.
            ranges = vec![(0, 0x1f), (0x22, 0x22), (0x2f, 0x2f), (0x5c, 0x5c)];
        }
        ranges
    }

    fn all_ranges(self) -> Vec<(u32, u32)> {
        match self {
            Self::Escape => vec![(0, 0x10_ffff)],
            Self::Unit { digits, value } => {
                let shift = 4 * (4 - u32::from(digits));
                let (from, to) = (value << shift, (value << shift) + (1 << shift) - 1);
                let mut ranges = Vec::new();
                if from < 0xd800 {
                    ranges.push((from, to.min(0xd7ff)));
                }
                if to >= 0xe000 {
                    ranges.push((from.max(0xe000), to));
                }
                let (high, last) = (from.max(0xd800), to.min(0xdbff));
                if high <= last {
                    ranges.push((paired(high, 0xdc00), paired(last, 0xdfff)));
                }
                ranges
            }
            Self::Half { high } | Self::HalfEscape { high } => {
                vec![(paired(high, 0xdc00), paired(high, 0xdfff))]
            }
            Self::HalfUnit { high, digits, value } => {
                let shift = 4 * (4 - u32::from(digits));
                let (from, to) =
                    ((value << shift).max(0xdc00), ((value << shift) + (1 << shift) - 1).min(0xdfff));
                if from > to { Vec::new() } else { vec![(paired(high, from), paired(high, to))] }
            }
            Self::Bytes { left, value } => {
                let shift = 6 * u32::from(left);
                let least = match (left, value) {
                    (3, _) => 0x1_0000,
                    (2, 0..=0xf) => 0x800,
                    _ => 0,
                };
                let (from, to) = ((value << shift).max(least), (value << shift) + (1 << shift) - 1);
                let below = (from, to.min(0xd7ff));
                let above = (from.max(0xe000), to.min(0x10_ffff));
                [below, above].into_iter().filter(|(from, to)| from <= to).collect()
            }
        }
    }
}

fn paired(high: u32, low: u32) -> u32 {
    0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)
}

#[cfg(test)]
mod tests {
    use anygram_bits::Random;

    use super::*;
    use crate::strings::Strings;

    /// Strings of which some characters lead elsewhere than others, and of which none do.
    const PATTERNS: [&str; 9] = [
        "",
        "^[^a]*$",
        "^[^\u{1f600}]*$",
        "^[\u{1f600}-\u{1f60e}\u{20000}-\u{2ffff}]*$",
        "^[x\u{10000}-\u{10ffff}]*$",
        "^[\u{80}-\u{7ff}\u{e000}-\u{ffff}]*$",
        "^[\u{d000}-\u{d7ff}]*é$",
        "^(\u{fffd}|\u{1d11e}.)*$",
        "\u{4e00}",
    ];

    /// Strings with repetitions of which copies far from the end are alike, and of which none are.
    const COUNTED: [&str; 10] = [
        "^([ab]+c){0,40}a$",
        "^([abc]{2,6}b){3,20}$",
        "^(a|bb){10}c*$",
        "(ab){4,30}c",
        "^((a{1,4}b){5,12}c){0,7}$",
        "^(a?b?){0,20}c$",
        "^(?!a*b{7})[abc]{0,60}$",
        "^a{0,30}b{30}(c|a{12})*$",
        "^(\\bab?\\b ?){0,9}|[ab]{25}$",
        "^[ab]{2,}(c[ab]{9}){1,5}$",
    ];

    fn pieces(random: &mut Random, patterns: &[&str], most: usize) -> StringPieces {
        let mut strings = Strings::default();
        let texts = (0..1 + random.below(3)).map(|_| {
            let pattern = strings.pattern(patterns[random.below(patterns.len())]).unwrap();
            let min = if random.chance(30) { 0 } else { random.below(most) as u64 };
            let max = if random.chance(50) { u64::MAX } else { min + random.below(most) as u64 };
            let mut formula = strings.of_pattern(pattern);
            if random.chance(20) {
                formula = strings.chars.not(formula);
            }
            Text { formula, min, max }
        });
        let mut texts: Vec<Text> = texts.collect();
        texts.retain(|&Text { formula, min, max }| strings.chars.has_length(formula, min, max) == Ok(true));
        let escapes = if random.chance(70) { Escapes::Any } else { Escapes::Needed };
        let chars = Arc::new(Mutex::new(strings.chars));
        StringPieces::new(chars, texts, "a string".to_owned(), (escapes, usize::MAX))
    }

    /// A step where every part keeps what it is worth.
    fn step_by_value(pieces: &StringPieces, state: &State, byte: u8) -> Option<State> {
        let (part, length, open) = match state {
            State::Inside { length, open } => (Part::first(byte).map(Ok), length, open),
            State::Within { part, length, open } => (part.step(byte), length, open),
            _ => return pieces.next(state, byte).unwrap().0,
        };
        match part {
            Some(Ok(part)) => pieces.within_one(part, *length, open).unwrap(),
            _ => pieces.next(state, byte).unwrap().0,
        }
    }

    fn labels(state: &State) -> Vec<u32> {
        match state {
            State::Start => Vec::new(),
            State::Inside { open, .. } | State::Within { open, .. } | State::Tail { open, .. } => {
                open.iter().map(|&(label, _)| label).collect()
            }
            State::Closed(labels) => labels.to_vec(),
        }
    }

    #[test]
    fn parts_without_values_go_on_as_those_with() {
        let (mut n_shared, mut n_left_out) = (0, 0);
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let pieces = pieces(&mut random, &PATTERNS, 4);
            let (mut state, mut by_value) = (State::Start, State::Start);
            for _ in 0..40 {
                let mut nexts = Vec::new();
                let bytes = pieces.bytes(pieces.intern(state.clone()).unwrap());
                for byte in 0..=u8::MAX {
                    let next = pieces.next(&state, byte).unwrap().0;
                    assert!(next.is_none() || bytes.contains(byte), "seed {seed}, {state:?}, {byte:#x}");
                    n_left_out += usize::from(!bytes.contains(byte));
                    let expected = step_by_value(&pieces, &by_value, byte);
                    let context = format!("seed {seed}, {state:?}, byte {byte:#x}: {next:?}, {expected:?}");
                    assert_eq!(next.as_ref().map(labels), expected.as_ref().map(labels), "{context}");
                    let is_between = |state: &Option<State>| matches!(state, Some(State::Inside { .. }));
                    assert!(next == expected || !is_between(&next) && !is_between(&expected), "{context}");
                    nexts.extend(next.zip(expected).map(|next| (byte, next)));
                }
                // Spellings of several bytes, and seldom the end.
                nexts.retain(|next| next.0 != b'"' || matches!(state, State::Start));
                let several: Vec<_> = nexts.iter().filter(|next| Part::first(next.0).is_some()).collect();
                let Some(next) = (if random.chance(80) && !several.is_empty() {
                    Some((*random.choose(&several)).clone())
                } else {
                    (!nexts.is_empty()).then(|| random.choose(&nexts).clone())
                }) else {
                    break;
                };
                (state, by_value) = next.1;
                n_shared += usize::from(matches!(state, State::Tail { .. }));
            }
        }
        assert!(n_shared > 1_000 && n_left_out > 100_000, "{n_shared} {n_left_out}");
    }

    #[test]
    fn places_that_are_alike_do_the_same_for_as_many_bytes() {
        let mut n_alike = 0;
        for seed in 0..250 {
            let mut random = Random::new(seed);
            let pieces = pieces(&mut random, &COUNTED, 100);
            let mut state = pieces.step(0, b'"').unwrap();
            for _ in 0..random.below(120) {
                let byte = *random.choose(b"abc");
                state = state.and_then(|at| pieces.step(at, byte).unwrap().or(Some(at)));
            }
            let Some(state) = state else { continue };
            let bytes = if random.chance(80) { random.below(20) } else { usize::MAX };
            let alike = pieces.alike(state, bytes);
            n_alike += usize::from(alike != state);
            let labels = |at: Option<u32>| at.map(|at| (pieces.live(at), pieces.accepts(at)));
            let step = |at: Option<u32>, byte| at.and_then(|at| pieces.step(at, byte).unwrap());
            for _ in 0..20 {
                // Some walks keep to a few bytes, and come to the end of repetitions.
                let favourites: Vec<u8> = (0..3).map(|_| *random.choose(b"abc")).collect();
                let (mut at, mut other) = (Some(state), Some(alike));
                for n in 0..bytes.min(80) {
                    for byte in *b"abc\"\\" {
                        let (is, must) = (labels(step(other, byte)), labels(step(at, byte)));
                        assert_eq!(is, must, "seed {seed}: {byte} after {n} of {bytes} bytes");
                    }
                    let from = if random.chance(80) { &favourites[..] } else { b"abc\\u0061" };
                    let nexts: Vec<u8> =
                        from.iter().copied().filter(|&byte| step(at, byte).is_some()).collect();
                    let Some(&byte) = nexts.first() else { break };
                    (at, other) = (step(at, byte), step(other, byte));
                }
            }
        }
        assert!(n_alike > 50, "{n_alike}");
    }

    /// The labels of a state among some, in their order.
    fn left(of: &[u32], among: &[u32]) -> Vec<u32> {
        of.iter().copied().filter(|label| among.contains(label)).collect()
    }

    #[test]
    fn states_of_one_fingerprint_do_the_same() {
        let mut n_same = 0;
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let bytes = if random.chance(50) { 1 + random.below(12) } else { usize::MAX };
            let mut known: FxHashMap<Fingerprint, (usize, u32, Vec<u32>)> = FxHashMap::default();
            let from = random.below(COUNTED.len() - 2);
            let all: Vec<StringPieces> =
                (0..4).map(|_| pieces(&mut random, &COUNTED[from..from + 3], 40)).collect();
            for (at, pieces) in all.iter().enumerate() {
                for _ in 0..12 {
                    let mut state = 0;
                    let text: Vec<u8> = (0..random.below(30)).map(|_| *random.choose(b"aaabc")).collect();
                    for &byte in b"\"".iter().chain(&text) {
                        state = pieces.step(state, byte).unwrap().unwrap_or(state);
                    }
                    let mut asked = left(&pieces.live(0), &pieces.live(state));
                    asked.retain(|_| random.chance(70));
                    let print = pieces.fingerprint(state, &asked, bytes).unwrap();
                    let (other, other_state, other_asked) =
                        known.entry(print).or_insert_with(|| (at, state, asked.clone()));
                    if (*other, *other_state) == (at, state) || asked.is_empty() {
                        continue;
                    }
                    n_same += 1;
                    assert_same((pieces, state, &asked), (&all[*other], *other_state, other_asked), bytes);
                }
            }
        }
        assert!(n_same > 200, "{n_same}");
    }

    /// An automaton, a state, and the labels that matter.
    type At<'a> = (&'a StringPieces, u32, &'a [u32]);

    fn assert_same(one: At, other: At, bytes: usize) {
        let mut random = Random::new(u64::from(one.1));
        let step =
            |at: Option<u32>, pieces: &StringPieces, byte| at.and_then(|at| pieces.step(at, byte).unwrap());
        // Of each label that is left, its place among those that there were.
        let places =
            |(pieces, _, asked): At, at: Option<u32>, of: &dyn Fn(&StringPieces, u32) -> Arc<[u32]>| {
                let labels = at.map_or(Vec::new(), |at| of(pieces, at).to_vec());
                let places = asked.iter().enumerate().filter(|(_, label)| labels.contains(label));
                places.map(|(place, _)| place).collect::<Vec<usize>>()
            };
        let live = |pieces: &StringPieces, at: u32| pieces.live(at);
        let accepts = |pieces: &StringPieces, at: u32| pieces.accepts(at);
        for _ in 0..20 {
            let (mut at, mut beside) = (Some(one.1), Some(other.1));
            for _ in 0..bytes.min(60) {
                let byte = *random.choose(b"aaabbbccc\"\\u0061");
                let (next, other_next) = (step(at, one.0, byte), step(beside, other.0, byte));
                assert_eq!(places(one, next, &live), places(other, other_next, &live), "{one:?} {other:?}");
                let ends = (places(one, next, &accepts), places(other, other_next, &accepts));
                assert_eq!(ends.0, ends.1, "{one:?} {other:?}");
                if !places(one, next, &live).is_empty() {
                    (at, beside) = (next, other_next);
                }
            }
        }
    }
}
