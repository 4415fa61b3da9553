//! What searches found out about places: whether the canvas can be completed from there.
//!
//! That depends on nothing but the reading and what stands behind it, so it is kept by these, and serves
//! every canvas that ends with the same slots: that of the next proposal, which differs in one slot, and that
//! of the next step, which has more of them filled.

use std::sync::Arc;

use anygram_left_to_right::frontier::Config;
use anygram_vocab::TokenId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::canvas::End;
use crate::plan::{Place, Plan};

/// The slots from some on to the end, by number.
pub(crate) type SuffixId = u32;

/// A place by what stands behind it: before a slot (`rest` is 0), or inside a token that stands there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub suffix: SuffixId,
    pub rest: u64,
    pub config: Config,
}

/// How a canvas is completed from a place.
#[derive(Clone, Debug)]
pub(crate) enum Onward {
    /// Nobody asked how.
    Somehow,
    /// By going on to a place in so many slots, perhaps with the end of a token.
    To { n_slots: u32, next: Key, token: Option<TokenId> },
    /// With these tokens, one a slot, behind which the text ends, and those of [`Found::closing`].
    ///
    /// [`Found::closing`]: crate::search::Found::closing
    End(Arc<[TokenId]>, Arc<[TokenId]>),
}

/// Places of canvases without gaps.
#[derive(Default)]
pub(crate) struct Verdicts {
    ends: FxHashMap<Option<End>, SuffixId>,
    suffixes: FxHashMap<(Place, bool, SuffixId), SuffixId>,
    n_suffixes: u32,
    /// From these it can be completed ...
    good: FxHashMap<Key, Onward>,
    /// ... and from these it cannot, once nothing is being looked at.
    entered: FxHashSet<Key>,
    /// The slots up to some, by number.
    prefixes: FxHashMap<(Place, PrefixId), PrefixId>,
    /// All readings that can stand behind these and are in some set of states, which is interned.
    fronts: FxHashMap<(PrefixId, u32), Arc<[Config]>>,
    fronts_bytes: usize,
}

type PrefixId = u32;

/// How a canvas is completed from a place.
pub(crate) struct Completion {
    /// The tokens by the number of slots behind the place.
    pub tokens: Vec<(usize, TokenId)>,
    /// So many slots behind the place the text ends.
    pub end: usize,
    pub closing: Arc<[TokenId]>,
}

impl Verdicts {
    /// The suffix that begins with each slot from some on, and the empty one; slots before have numbers that
    /// no suffix has.
    pub fn suffixes(&mut self, plan: &Plan, from: usize) -> Vec<SuffixId> {
        let Self { ends, suffixes, n_suffixes, .. } = self;
        let mut fresh = || {
            *n_suffixes += 1;
            *n_suffixes
        };
        let mut all = Vec::with_capacity(plan.places.len() + 1);
        let mut last = *ends.entry(plan.whole).or_insert_with(&mut fresh);
        all.push(last);
        let from = from.min(plan.places.len());
        for (&place, &end) in plan.places[from..].iter().zip(&plan.ends[from..]).rev() {
            last = *suffixes.entry((place, end, last)).or_insert_with(&mut fresh);
            all.push(last);
        }
        all.extend((0..from).rev().map(|slot| SuffixId::MAX - slot as SuffixId));
        all.reverse();
        all
    }

    /// The number of the slots before one, if it has one.
    fn prefix(&self, plan: &Plan, slot: usize) -> Option<PrefixId> {
        plan.places[..slot].iter().try_fold(0, |before, &place| self.prefixes.get(&(place, before)).copied())
    }

    /// All readings that can stand before a slot, if they are known, of those that are in an interned set of
    /// states.
    pub fn front(&self, plan: &Plan, (slot, states): (usize, u32)) -> Option<Arc<[Config]>> {
        self.fronts.get(&(self.prefix(plan, slot)?, states)).cloned()
    }

    /// Keeps all readings that can stand before a slot, of those that are in an interned set of states.
    pub fn keep_front(&mut self, plan: &Plan, (slot, states): (usize, u32), readings: Arc<[Config]>) {
        let mut prefix = 0;
        for &place in &plan.places[..slot] {
            let fresh = self.prefixes.len() as PrefixId + 1;
            prefix = *self.prefixes.entry((place, prefix)).or_insert(fresh);
        }
        self.fronts_bytes += size_of_val(&*readings);
        self.fronts.insert((prefix, states), readings);
    }

    /// Whether a place is entered for the first time; from then on it counts as one from which the canvas
    /// cannot be completed.
    pub fn enter(&mut self, key: Key) -> bool {
        self.entered.insert(key)
    }

    /// Not all that follows a place was seen.
    pub fn leave_open(&mut self, key: &Key) {
        self.entered.remove(key);
    }

    /// The canvas can be completed from a place.
    pub fn admit(&mut self, key: Key, onward: Onward) {
        self.entered.remove(&key);
        let known = self.good.entry(key).or_insert(Onward::Somehow);
        if matches!(known, Onward::Somehow) {
            *known = onward;
        }
    }

    /// Whether it is known how the canvas is completed from a place.
    pub fn is_known(&self, key: &Key) -> bool {
        let mut at = key;
        loop {
            match self.good.get(at) {
                None | Some(Onward::Somehow) => return false,
                Some(Onward::To { next, .. }) => at = next,
                Some(Onward::End(..)) => return true,
            }
        }
    }

    /// Whether the canvas is known to be completable from a place.
    pub fn is_good(&self, key: &Key) -> bool {
        self.good.contains_key(key)
    }

    /// How the canvas is completed from a place; `None` if that is not known.
    pub fn completion(&self, key: &Key) -> Option<Completion> {
        let mut tokens = Vec::new();
        let (mut slot, mut at) = (0, key);
        loop {
            match self.good.get(at)? {
                Onward::Somehow => return None,
                Onward::To { n_slots, next, token } => {
                    tokens.extend(token.map(|token| (slot, token)));
                    slot += *n_slots as usize;
                    at = next;
                }
                Onward::End(last, closing) => {
                    tokens.extend((slot..).zip(last.iter().copied()));
                    let end = slot + last.len();
                    return Some(Completion { end, tokens, closing: closing.clone() });
                }
            }
        }
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.good.capacity() * (size_of::<(Key, Onward)>() + 1)
            + self.entered.capacity() * (size_of::<Key>() + 1)
            + self.suffixes.capacity() * (size_of::<((Place, bool, u32), u32)>() + 1)
            + self.prefixes.capacity() * (size_of::<((Place, u32), u32)>() + 1)
            + self.fronts_bytes
    }
}
