//! Objects and arrays as right-hand sides by automata: members in any order, each key once.
//!
//! A state is what was written so far as far as it matters (see [`crate::forms`]) and the place between two
//! symbols. Only states are made from which the object or array can end, and only those that a text comes
//! to. Cost of a state: the keys that may follow.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anygram_grammar::automata::{RuleAutomaton, TooManyStates};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::atoms::SetId;
use crate::forms::{ArrayForm, ArrayPlace, ObjectForm, ObjectPlace};

/// The symbols of an object or array, in the order of their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// `{` or `[`
    Open,
    /// `}` or `]` directly behind it.
    CloseEmpty,
    /// `}` or `]` behind a value.
    Close,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// A key, or a class of keys.
    Key(u32),
    /// A value.
    Value(SetId),
}

const OPEN: u32 = 0;
const CLOSE_EMPTY: u32 = 1;
const CLOSE: u32 = 2;
const COMMA: u32 = 3;
const COLON: u32 = 4;
const KEYS: u32 = 5;

/// Symbols that are lacking, beyond which the number is not told. (The greatest number means that nothing
/// leads to an end.)
const MOST: u32 = u32::MAX - 1;

/// A state, and the symbols that can follow once they were asked for.
type Known<S> = (Arc<S>, Option<Arc<[u32]>>);

/// States by number.
struct States<S> {
    all: Vec<Known<S>>,
    ids: FxHashMap<Arc<S>, u32>,
}

impl<S: Clone + Eq + std::hash::Hash> States<S> {
    fn new(start: S) -> Mutex<Self> {
        let start = Arc::new(start);
        Mutex::new(Self { ids: FxHashMap::from_iter([(start.clone(), 0)]), all: vec![(start, None)] })
    }

    fn intern(&mut self, state: S, what: &str, limit: usize) -> Result<u32, TooManyStates> {
        let state = Arc::new(state);
        if let Some(&known) = self.ids.get(&state) {
            return Ok(known);
        }
        if self.all.len() >= limit {
            return Err(TooManyStates { what: what.to_owned(), limit, option: "schema_states" });
        }
        let fresh = self.all.len() as u32;
        self.all.push((state.clone(), None));
        self.ids.insert(state, fresh);
        Ok(fresh)
    }
}

/// What was found out about places, up to a limit.
struct Found<P, T>(Mutex<FxHashMap<P, T>>);

impl<P: Clone + Eq + std::hash::Hash, T: Copy> Found<P, T> {
    fn new() -> Self {
        Self(Mutex::default())
    }

    fn get(&self, place: &P, limit: usize, find: impl FnOnce() -> T) -> T {
        if let Some(&known) = lock(&self.0).get(place) {
            return known;
        }
        let found = find();
        let mut all = lock(&self.0);
        if all.len() < limit {
            all.insert(place.clone(), found);
        }
        found
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which sets have a value.
pub type Alive = Arc<FxHashSet<SetId>>;

/// The members of an object.
pub struct ObjectRules {
    form: ObjectForm,
    alive: Alive,
    sets: Vec<SetId>,
    what: String,
    limit: usize,
    states: Mutex<States<(Written, At)>>,
    /// Where an object can end.
    ends: Found<ObjectPlace, bool>,
}

/// What was written of an object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Written {
    Exactly(ObjectPlace),
    /// All of some listed keys, and perhaps of others, so many of them required; how many members and what
    /// else, is not known.
    Between {
        all: Box<[u64]>,
        perhaps: Box<[u64]>,
        n_required: u32,
    },
}

impl Written {
    fn is_there(bits: &[u64], key: usize) -> bool {
        bits.get(key / 64).is_some_and(|word| word >> (key % 64) & 1 == 1)
    }

    fn with(bits: &[u64], key: u32) -> Box<[u64]> {
        let mut bits: Box<[u64]> = bits.into();
        if let Some(word) = bits.get_mut(key as usize / 64) {
            *word |= 1 << (key % 64);
        }
        bits
    }
}

/// A place between two symbols of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Start,
    /// Behind the brace.
    First,
    /// Behind a comma.
    Next,
    /// Behind a key.
    Colon(u32),
    /// Behind its colon.
    Value(u32),
    /// Behind a value.
    Behind,
    End,
}

impl fmt::Debug for ObjectRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectRules").field("what", &self.what).finish_non_exhaustive()
    }
}

impl ObjectRules {
    /// The rules of a form; `limit` bounds the states.
    pub fn new(form: ObjectForm, alive: Alive, what: String, limit: usize) -> Self {
        let mut sets: Vec<SetId> = form.variants.iter().flatten().map(|&(_, set)| set).collect();
        sets.retain(|set| alive.contains(set));
        sets.sort_unstable();
        sets.dedup();
        let states = States::new((Written::Exactly(form.start()), At::Start));
        Self { form, alive, sets, what, limit, states, ends: Found::new() }
    }

    /// The symbols, by number.
    pub fn parts(&self) -> Vec<Part> {
        let fixed = [Part::Open, Part::CloseEmpty, Part::Close, Part::Comma, Part::Colon];
        let keys = (0..self.form.variants.len() as u32).map(Part::Key);
        fixed.into_iter().chain(keys).chain(self.sets.iter().map(|&set| Part::Value(set))).collect()
    }

    fn value_symbol(&self, set: SetId) -> Option<u32> {
        let at = self.sets.binary_search(&set).ok()?;
        Some(KEYS + (self.form.variants.len() + at) as u32)
    }

    fn can_end(&self, place: &ObjectPlace) -> bool {
        // Without extras it is quick.
        let find = || self.form.can_end(&|set| self.alive.contains(&set), place);
        if place.pending == 0 { find() } else { self.ends.get(place, self.limit, find) }
    }

    /// What the value behind a key may be, and where it leads; with `only`, those of one symbol.
    fn values(
        &self,
        place: &ObjectPlace,
        key: u32,
        only: Option<u32>,
    ) -> impl Iterator<Item = (u32, ObjectPlace)> {
        let variants = self.form.variants.get(key as usize).map_or(&[][..], |variants| variants);
        variants.iter().filter_map(move |&(met, set)| {
            // What meets nothing that is pending is no reason to ask for more than has to be.
            if met != 0 && met & place.pending == 0 {
                return None;
            }
            let symbol = self.value_symbol(set)?;
            if only.is_some_and(|only| only != symbol) {
                return None;
            }
            let after = self.form.after(place, key as usize, met);
            (after.n <= self.form.at_most && self.can_end(&after)).then_some((symbol, after))
        })
    }

    /// The keys that may follow.
    fn keys(&self, place: &ObjectPlace) -> impl Iterator<Item = u32> {
        let n_listed = self.form.keys.len();
        let is_new = move |key: usize| self.form.may_come(place, key);
        // Without extras only the number of members has to be looked at, which is the same for all keys.
        let is_plain = self.form.demands.is_empty();
        let unseen =
            || (0..n_listed).filter(|&key| self.form.keys[key].1 && !place.has_seen(key)).count() as u64;
        let room =
            if is_plain { self.form.at_most.saturating_sub(place.n.saturating_add(unseen())) } else { 0 };
        // A key may not pass over one that is required.
        let unseen_rank = (0..n_listed).filter(|&key| self.form.keys[key].1 && !place.has_seen(key));
        let most = unseen_rank.map(|key| self.form.ranks[key]).min().unwrap_or(u32::MAX);
        let may_follow = move |key: usize| {
            if !is_plain || self.form.at_least > 0 && most < u32::MAX {
                return self.values(place, key as u32, None).next().is_some();
            }
            let is_required = self.form.keys.get(key).is_some_and(|(_, required)| *required);
            (room > 0 || is_required)
                && self.form.rank(key) <= most
                && self.form.variants[key].iter().any(|(_, set)| self.alive.contains(set))
        };
        (0..self.form.variants.len()).filter(move |&key| is_new(key) && may_follow(key)).map(|key| key as u32)
    }

    /// What was written behind a value of a key.
    fn behind(&self, written: &Written, key: u32, symbol: u32) -> Written {
        match written {
            // Of several ways that lead on by one value, what is borne out most comes to at least as much.
            Written::Exactly(place) => {
                let ways = self.values(place, key, Some(symbol));
                let best = ways.min_by_key(|(_, after)| after.pending.count_ones());
                Written::Exactly(best.map_or_else(|| place.clone(), |(_, after)| after))
            }
            Written::Between { all, perhaps, n_required } if (key as usize) < self.form.keys.len() => {
                let n_required = n_required + u32::from(self.form.keys[key as usize].1);
                self.between(Written::with(all, key), Written::with(perhaps, key), n_required)
            }
            Written::Between { .. } => written.clone(),
        }
    }

    /// The listed keys that are required.
    fn required(&self) -> impl Iterator<Item = usize> {
        (0..self.form.keys.len()).filter(|&key| self.form.keys[key].1)
    }

    /// Some keys that were certainly written and some that perhaps were, of which so many are required: where
    /// that says which they are it is known of them.
    fn between(&self, mut all: Box<[u64]>, mut perhaps: Box<[u64]>, n_required: u32) -> Written {
        let n_among = |keys: &[u64]| self.required().filter(|&key| Written::is_there(keys, key)).count();
        if n_among(&perhaps) == n_required as usize {
            for key in self.required().filter(|&key| Written::is_there(&perhaps, key)) {
                all = Written::with(&all, key as u32);
            }
        } else if n_among(&all) == n_required as usize {
            for key in self.required().filter(|&key| !Written::is_there(&all, key)) {
                perhaps[key / 64] &= !(1 << (key % 64));
            }
        }
        Written::Between { all, perhaps, n_required }
    }

    /// How many keys that are required were written.
    fn n_required(&self, written: &Written) -> u32 {
        match written {
            Written::Exactly(place) => self.required().filter(|&key| place.has_seen(key)).count() as u32,
            Written::Between { n_required, .. } => *n_required,
        }
    }

    /// The symbols of values that keys may have, whatever was written before.
    fn all_values(&self, key: u32) -> Vec<u32> {
        let variants = self.form.variants.get(key as usize).map_or(&[][..], |variants| variants);
        let mut symbols: Vec<u32> = variants.iter().filter_map(|&(_, set)| self.value_symbol(set)).collect();
        symbols.sort_unstable();
        symbols.dedup();
        symbols
    }

    /// What may come where it is only known between what keys were written.
    fn symbols_between(&self, (all, n_required): (&[u64], u32), at: At) -> Vec<u32> {
        let can_end = || n_required as usize == self.required().count();
        let n_listed = self.form.keys.len();
        let is_seen = |key: u32| (key as usize) < n_listed && Written::is_there(all, key as usize);
        let keys = (0..self.form.variants.len() as u32)
            .filter(|&key| !is_seen(key) && !self.all_values(key).is_empty());
        match at {
            At::Start => vec![OPEN],
            At::First | At::Next => {
                let close = (at == At::First && can_end()).then_some(CLOSE_EMPTY);
                close.into_iter().chain(keys.map(|key| KEYS + key)).collect()
            }
            At::Colon(_) => vec![COLON],
            At::Value(key) => self.all_values(key),
            At::Behind => can_end().then_some(CLOSE).into_iter().chain([COMMA]).collect(),
            At::End => Vec::new(),
        }
    }

    fn compute_symbols(&self, (written, at): &(Written, At)) -> Vec<u32> {
        let place = match written {
            Written::Exactly(place) => place,
            Written::Between { all, n_required, .. } => {
                return self.symbols_between((all, *n_required), *at);
            }
        };
        let can_end = || self.form.is_whole(place);
        match *at {
            At::Start => vec![OPEN],
            At::First | At::Next => {
                let close = (*at == At::First && can_end()).then_some(CLOSE_EMPTY);
                close.into_iter().chain(self.keys(place).map(|key| KEYS + key)).collect()
            }
            At::Colon(_) => vec![COLON],
            At::Value(key) => {
                let mut symbols: Vec<u32> = self.values(place, key, None).map(|(symbol, _)| symbol).collect();
                symbols.sort_unstable();
                symbols.dedup();
                symbols
            }
            At::Behind => {
                let close = can_end().then_some(CLOSE);
                let comma = self.keys(place).next().is_some().then_some(COMMA);
                close.into_iter().chain(comma).collect()
            }
            At::End => Vec::new(),
        }
    }
}

/// What parts of a right-hand side weigh at least.
type Weight<'a> = dyn FnMut(&[u32]) -> u32 + 'a;

/// Keys of which the lightest is looked for.
const LIGHTEST_OF: usize = 40;

impl ObjectRules {
    /// What a key with its value weighs at least, or from somewhere within on, and what may stand behind it:
    /// a comma, or the brace.
    fn member(&self, key: u32, from: usize, weight: &mut Weight<'_>) -> (u32, u32) {
        let mut least = (u32::MAX, u32::MAX);
        for &(_, set) in &self.form.variants[key as usize] {
            let Some(value) = self.value_symbol(set) else { continue };
            let mut with = |end| weight(&[KEYS + key, COLON, value, end][from..]);
            least = (least.0.min(with(COMMA)), least.1.min(with(CLOSE)));
        }
        least
    }

    /// What the members weigh at least that have to come: all required ones, and as many as are demanded.
    /// One of them may have begun: its key, and how many of its symbols were written.
    fn members(&self, place: &ObjectPlace, begun: Option<(u32, usize)>, weight: &mut Weight<'_>) -> u32 {
        let is_lacking = |key: usize| {
            self.form.keys[key].1 && !place.has_seen(key) && begun.is_none_or(|of| of.0 as usize != key)
        };
        let mut sum = Members::default();
        if let Some((key, from)) = begun {
            sum.add(self.member(key, from, weight), 1);
        }
        for key in (0..self.form.keys.len()).filter(|&key| is_lacking(key)) {
            sum.add(self.member(key as u32, 0, weight), 1);
        }
        let more = self.form.at_least.saturating_sub(place.n).saturating_sub(sum.n);
        let more = if sum.n == 0 { more.max(1) } else { more };
        if more > 0 {
            let keys = 0..self.form.variants.len();
            let mut lightest = (0, 0);
            if keys.len() <= LIGHTEST_OF {
                let all = keys.map(|key| self.member(key as u32, 0, weight));
                lightest = all.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))).unwrap_or((0, 0));
            }
            sum.add(lightest, more);
        }
        sum.finish()
    }
}

/// Members or items in any order, the last of which has the closing bracket behind it.
#[derive(Default)]
struct Members {
    n: u64,
    sum: u32,
    /// How much less one weighs with the bracket, and how much more all do.
    less: u32,
    more: Option<u32>,
}

impl Members {
    fn add(&mut self, (comma, close): (u32, u32), n: u64) {
        self.n = self.n.saturating_add(n);
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        self.sum = self.sum.saturating_add(comma.saturating_mul(n));
        self.less = self.less.max(comma.saturating_sub(close));
        let more = close.saturating_sub(comma);
        self.more = Some(self.more.map_or(more, |least| least.min(more)));
    }

    fn finish(self) -> u32 {
        match self.less {
            0 => self.sum.saturating_add(self.more.unwrap_or(0)),
            less => self.sum - less,
        }
    }
}

impl RuleAutomaton for ObjectRules {
    fn start(&self) -> u32 {
        0
    }

    fn symbols(&self, state: u32) -> Arc<[u32]> {
        let (place, known) = lock(&self.states).all[state as usize].clone();
        if let Some(known) = known {
            return known;
        }
        let symbols: Arc<[u32]> = self.compute_symbols(&place).into();
        lock(&self.states).all[state as usize].1 = Some(symbols.clone());
        symbols
    }

    fn step(&self, state: u32, symbol: u32) -> Result<u32, TooManyStates> {
        let state = lock(&self.states).all[state as usize].0.clone();
        let (written, at) = &*state;
        let next = match (*at, symbol) {
            (At::Start, _) => (written.clone(), At::First),
            (At::First, CLOSE_EMPTY) | (At::Behind, CLOSE) => (written.clone(), At::End),
            (At::First | At::Next, key) => (written.clone(), At::Colon(key - KEYS)),
            (At::Colon(key), _) => (written.clone(), At::Value(key)),
            (At::Value(key), symbol) => (self.behind(written, key, symbol), At::Behind),
            (At::Behind | At::End, _) => (written.clone(), At::Next),
        };
        lock(&self.states).intern(next, &self.what, self.limit)
    }

    fn kind(&self, state: u32) -> Option<u32> {
        let state = lock(&self.states).all[state as usize].0.clone();
        let at = match state.1 {
            At::Start => 0,
            At::First => 1,
            At::Next => 2,
            At::Behind => 3,
            At::End => 4,
            At::Colon(key) => 5 + 2 * key,
            At::Value(key) => 6 + 2 * key,
        };
        // How many of the required keys are there is always known, for an object that lacks one cannot end.
        Some(at * (1 + self.required().count() as u32) + self.n_required(&state.0))
    }

    fn joined(&self, states: &[u32]) -> Result<u32, TooManyStates> {
        let mut states_of = lock(&self.states);
        let (mut all, mut perhaps): (Option<Box<[u64]>>, Box<[u64]>) = (None, Box::default());
        let (mut at, mut n_required) = (At::Start, 0);
        for &state in states {
            let (written, its) = &*states_of.all[state as usize].0;
            at = *its;
            n_required = self.n_required(written);
            let (its_all, its_perhaps) = match written {
                Written::Exactly(place) => (&place.seen, &place.seen),
                Written::Between { all, perhaps, .. } => (all, perhaps),
            };
            match &mut all {
                None => (all, perhaps) = (Some(its_all.clone()), its_perhaps.clone()),
                Some(all) => {
                    all.iter_mut().zip(its_all).for_each(|(word, other)| *word &= other);
                    perhaps.iter_mut().zip(its_perhaps).for_each(|(word, other)| *word |= other);
                }
            }
        }
        let written = self.between(all.unwrap_or_default(), perhaps, n_required);
        states_of.intern((written, at), &self.what, self.limit)
    }

    fn lacking(&self, last: &[u32]) -> u32 {
        let is_required = |key: &usize| self.form.keys[*key].1;
        let lacking = (0..self.form.keys.len()).filter(is_required).filter(|&key| {
            let symbol = KEYS + key as u32;
            !last.contains(&symbol)
        });
        let n_lacking = lacking.clone().count() as u32;
        // The key of the first value is not read yet; it may be one of these.
        let value = match last {
            [.., value, COLON] => Some(*value),
            [.., value] if *value >= KEYS => Some(*value),
            _ => None,
        };
        let is_of = |key: usize| value.is_some_and(|value| self.all_values(key as u32).contains(&value));
        n_lacking - u32::from(lacking.clone().any(is_of))
    }

    fn accepts(&self, state: u32) -> bool {
        lock(&self.states).all[state as usize].0.1 == At::End
    }

    fn minimum(&self, state: u32) -> u32 {
        let state = lock(&self.states).all[state as usize].0.clone();
        let (written, at) = &*state;
        let Written::Exactly(place) = written else {
            return match at {
                At::Next => 4,
                At::Colon(_) => 3,
                At::Start | At::Value(_) => 2,
                At::First | At::Behind => 1,
                At::End => 0,
            };
        };
        // Four symbols a member that has to come: a key, a colon, a value, and what is behind it.
        let members = |place: &ObjectPlace| {
            u32::try_from(self.form.at_least_more(place)).unwrap_or(u32::MAX).saturating_mul(4)
        };
        // Behind the value of a key, whichever way it takes.
        let behind = |key| self.values(place, key, None).map(|(_, after)| members(&after)).min().unwrap_or(0);
        match *at {
            At::Start => members(place).max(1).saturating_add(1),
            At::First => members(place).max(1),
            At::Next => members(place).max(4),
            At::Colon(key) => behind(key).saturating_add(3),
            At::Value(key) => behind(key).saturating_add(2),
            At::Behind => members(place).saturating_add(1),
            At::End => 0,
        }
        .min(MOST)
    }

    fn least(&self, state: u32, weight: &mut Weight<'_>) -> u32 {
        let state = lock(&self.states).all[state as usize].0.clone();
        let (written, at) = &*state;
        let Written::Exactly(place) = written else { return 0 };
        let may_end = self.form.at_least_more(place) == 0;
        match *at {
            At::End => 0,
            At::Start if may_end => weight(&[OPEN]),
            At::First | At::Behind if may_end => 0,
            At::Start => weight(&[OPEN]).saturating_add(self.members(place, None, weight)),
            At::First | At::Next => self.members(place, None, weight),
            At::Colon(key) => self.members(place, Some((key, 1)), weight),
            At::Value(key) => self.members(place, Some((key, 2)), weight),
            At::Behind => weight(&[COMMA]).saturating_add(self.members(place, None, weight)),
        }
    }
}

/// The items of an array.
pub struct ArrayRules {
    form: ArrayForm,
    alive: Alive,
    sets: Vec<SetId>,
    what: String,
    limit: usize,
    states: Mutex<States<(ArrayPlace, ItemAt)>>,
    /// With how many items an array can end.
    least: Found<ArrayPlace, Option<u64>>,
}

/// A place between two symbols of an array.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum ItemAt {
    Start,
    First,
    Next,
    Behind,
    End,
}

impl fmt::Debug for ArrayRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrayRules").field("what", &self.what).finish_non_exhaustive()
    }
}

impl ArrayRules {
    /// The rules of a form; `limit` bounds the states.
    pub fn new(form: ArrayForm, alive: Alive, what: String, limit: usize) -> Self {
        let variants = form.ranges.iter().flat_map(|(_, variants)| variants);
        let mut sets: Vec<SetId> = variants.map(|variant| variant.set).collect();
        sets.retain(|set| alive.contains(set));
        sets.sort_unstable();
        sets.dedup();
        let states = States::new((form.start(), ItemAt::Start));
        Self { form, alive, sets, what, limit, states, least: Found::new() }
    }

    /// The symbols, by number.
    pub fn parts(&self) -> Vec<Part> {
        let fixed = [Part::Open, Part::CloseEmpty, Part::Close, Part::Comma];
        fixed.into_iter().chain(self.sets.iter().map(|&set| Part::Value(set))).collect()
    }

    fn least(&self, place: &ArrayPlace) -> Option<u64> {
        let find = || self.form.least(&|set| self.alive.contains(&set), place);
        self.least.get(place, self.limit, find)
    }

    /// What the next item may be, and where it leads; with `only`, those of one symbol: none if no item is.
    fn items(&self, place: &ArrayPlace, only: Option<u32>) -> impl Iterator<Item = (u32, ArrayPlace)> {
        let only = only.map(|symbol| self.sets.get((symbol as usize).checked_sub(4)?));
        self.form.variants(place).iter().filter_map(move |&variant| {
            if only.is_some_and(|set| set != Some(&variant.set)) {
                return None;
            }
            if variant.met & !place.pending != 0 && !self.form.is_unique {
                return None;
            }
            let at = self.sets.binary_search(&variant.set).ok()?;
            let after = self.form.after(place, variant)?;
            self.least(&after)?;
            Some((4 + at as u32, after))
        })
    }
}

impl ArrayRules {
    /// What so many items weigh at least, from one on.
    fn items_weigh(&self, (from, n): (u64, u64), weight: &mut Weight<'_>) -> u32 {
        let to = from.saturating_add(n);
        let ends = self.form.ranges.iter().skip(1).map(|&(start, _)| start).chain([u64::MAX]);
        let mut sum = Members::default();
        for ((start, variants), end) in self.form.ranges.iter().zip(ends) {
            let (start, end) = (from.max(*start), to.min(end));
            if start >= end {
                continue;
            }
            let mut lightest = (u32::MAX, u32::MAX);
            for at in variants.iter().filter_map(|variant| self.sets.binary_search(&variant.set).ok()) {
                let mut with = |close| weight(&[4 + at as u32, close]);
                lightest = (lightest.0.min(with(COMMA)), lightest.1.min(with(CLOSE)));
            }
            sum.add(lightest, end - start);
        }
        sum.finish()
    }
}

impl RuleAutomaton for ArrayRules {
    fn start(&self) -> u32 {
        0
    }

    fn symbols(&self, state: u32) -> Arc<[u32]> {
        let (place, known) = lock(&self.states).all[state as usize].clone();
        if let Some(known) = known {
            return known;
        }
        let (place, at) = &*place;
        let items = || {
            let mut items: Vec<u32> = self.items(place, None).map(|(symbol, _)| symbol).collect();
            items.sort_unstable();
            items.dedup();
            items
        };
        let is_whole = self.form.is_whole(place);
        let symbols: Vec<u32> = match at {
            ItemAt::Start => vec![OPEN],
            ItemAt::First => is_whole.then_some(CLOSE_EMPTY).into_iter().chain(items()).collect(),
            ItemAt::Next => items(),
            ItemAt::Behind => {
                let comma = (!items().is_empty()).then_some(COMMA);
                is_whole.then_some(CLOSE).into_iter().chain(comma).collect()
            }
            ItemAt::End => Vec::new(),
        };
        let symbols: Arc<[u32]> = symbols.into();
        lock(&self.states).all[state as usize].1 = Some(symbols.clone());
        symbols
    }

    fn step(&self, state: u32, symbol: u32) -> Result<u32, TooManyStates> {
        let state = lock(&self.states).all[state as usize].0.clone();
        let (place, at) = &*state;
        let next = match (at, symbol) {
            (ItemAt::Start, _) => (place.clone(), ItemAt::First),
            (ItemAt::First, CLOSE_EMPTY) | (ItemAt::Behind, CLOSE) => (place.clone(), ItemAt::End),
            (ItemAt::First | ItemAt::Next, symbol) => {
                let ways = self.items(place, Some(symbol));
                let gain =
                    |after: &ArrayPlace| (after.pending.count_zeros(), after.counts.iter().sum::<u64>());
                let best = ways.max_by_key(|(_, after)| gain(after));
                (best.map_or_else(|| place.clone(), |(_, after)| after), ItemAt::Behind)
            }
            (ItemAt::Behind | ItemAt::End, _) => (place.clone(), ItemAt::Next),
        };
        lock(&self.states).intern(next, &self.what, self.limit)
    }

    fn accepts(&self, state: u32) -> bool {
        lock(&self.states).all[state as usize].0.1 == ItemAt::End
    }

    fn minimum(&self, state: u32) -> u32 {
        let state = lock(&self.states).all[state as usize].0.clone();
        let (place, at) = &*state;
        let items = u32::try_from(self.least(place).unwrap_or(0)).unwrap_or(u32::MAX);
        let with = |items: u32| items.saturating_mul(2);
        match at {
            ItemAt::Start => with(items).max(1).saturating_add(1),
            ItemAt::First => with(items).max(1),
            ItemAt::Next => with(items.max(1)),
            ItemAt::Behind => with(items).saturating_add(1),
            ItemAt::End => 0,
        }
        .min(MOST)
    }

    fn least(&self, state: u32, weight: &mut Weight<'_>) -> u32 {
        let state = lock(&self.states).all[state as usize].0.clone();
        let (place, at) = &*state;
        let n = self.least(place).unwrap_or(0);
        match at {
            ItemAt::End => 0,
            ItemAt::Start if n == 0 => weight(&[OPEN]),
            ItemAt::First | ItemAt::Behind if n == 0 => 0,
            ItemAt::Start => weight(&[OPEN]).saturating_add(self.items_weigh((place.n, n), weight)),
            ItemAt::First => self.items_weigh((place.n, n), weight),
            ItemAt::Next => self.items_weigh((place.n, n.max(1)), weight),
            ItemAt::Behind => weight(&[COMMA]).saturating_add(self.items_weigh((place.n, n), weight)),
        }
    }
}
