//! Clauses with everything below them resolved: which keys there are, what stands behind each, and which
//! sets have a value at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::algebra::{Algebra, KeyOrder};
use crate::atoms::{Arrays, Clause, Keys, Literal, Numbers, Objects, SetId};
use crate::chars::FormulaId;
use crate::refusal::{Kind, Refusal};
use crate::strings::Text;

/// What is asserted of some member or item beyond the rest: by number, as a set of bits.
pub type Extras = u32;

/// Assertions about some member or item that one object or array may carry.
const MAX_EXTRAS: usize = 8;

/// Classes of keys that one object may have.
const MAX_CLASSES: usize = 1_000;

/// Objects of one clause.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ObjectForm {
    /// The keys that are told apart, and whether each is required.
    pub keys: Vec<(Arc<str>, bool)>,
    /// Of each key its rank: members come in ascending order of these. Keys of one rank come in any order.
    pub ranks: Vec<u32>,
    /// The rank of the other keys.
    pub other_rank: u32,
    /// The other keys, by what they share.
    pub classes: Vec<FormulaId>,
    /// Of each key, then of each class: what the value may be, and which extras it then bears out.
    pub variants: Vec<Vec<(Extras, SetId)>>,
    /// The extras that some member has to bear out.
    pub extras: Extras,
    /// The fewest members.
    pub at_least: u64,
    /// The most.
    pub at_most: u64,
}

/// What an item may be: the extras that it bears out, what it contains (by number), and the set.
pub type ItemVariant = (Extras, u32, SetId);

/// Arrays of one clause.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ArrayForm {
    /// Ranges of places, by their first, and what an item there may be.
    pub ranges: Vec<(u64, Vec<ItemVariant>)>,
    /// The extras that some item has to bear out.
    pub extras: Extras,
    /// How many items contain something: from, to.
    pub contains: Vec<(u64, u64)>,
    /// The fewest items.
    pub at_least: u64,
    /// The most.
    pub at_most: u64,
}

/// Values of one clause.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// `null`
    Null,
    /// `false`, `true`
    Bool(bool, bool),
    /// Numbers.
    Number(Numbers),
    /// Strings.
    Text(Text),
    /// Arrays.
    Array(ArrayForm),
    /// Objects.
    Object(ObjectForm),
}

/// All sets that a schema leads to, with their forms.
#[derive(Debug)]
pub struct Forms {
    /// The schema's own set.
    pub root: SetId,
    /// The forms of each set that was reached.
    pub sets: FxHashMap<SetId, Vec<Form>>,
    /// The sets that have a value.
    pub alive: FxHashSet<SetId>,
}

impl Forms {
    /// Resolves all that a schema leads to.
    pub fn new(algebra: &mut Algebra<'_>) -> Result<Self, Refusal> {
        let root = algebra.root();
        let (mut agenda, mut sets) = (vec![root], FxHashMap::default());
        while let Some(set) = agenda.pop() {
            if sets.contains_key(&set) {
                continue;
            }
            let clauses = algebra.expand(set)?;
            let at = algebra.pointer(set);
            let mut forms = Vec::with_capacity(clauses.len());
            for clause in clauses.iter() {
                let form = algebra.form(clause, &at)?;
                match &form {
                    Some(Form::Object(form)) => {
                        agenda.extend(form.variants.iter().flatten().map(|&(_, set)| set));
                    }
                    Some(Form::Array(form)) => {
                        let variants = form.ranges.iter().flat_map(|(_, variants)| variants);
                        agenda.extend(variants.map(|&(_, _, set)| set));
                    }
                    _ => {}
                }
                forms.extend(form);
            }
            sets.insert(set, forms);
        }
        let mut this = Self { root, sets, alive: FxHashSet::default() };
        this.find_alive();
        Ok(this)
    }

    /// The least fixpoint: a set has a value if one of its forms has one whose parts have.
    fn find_alive(&mut self) {
        let mut waiting: Vec<SetId> = self.sets.keys().copied().collect();
        waiting.sort_unstable();
        loop {
            let alive = &self.alive;
            let is_alive = |form: &Form| match form {
                Form::Object(form) => form.least(&|set| alive.contains(&set), &form.start()).is_some(),
                Form::Array(form) => form.least(&|set| alive.contains(&set), &form.start()).is_some(),
                _ => true,
            };
            let (found, left): (Vec<SetId>, Vec<SetId>) =
                waiting.iter().partition(|&set| self.sets[set].iter().any(is_alive));
            if found.is_empty() {
                return;
            }
            self.alive.extend(found);
            waiting = left;
        }
    }
}

impl Algebra<'_> {
    /// The form of a clause; `None` if it has no value, as far as that shows here.
    fn form(&mut self, clause: &Clause, at: &str) -> Result<Option<Form>, Refusal> {
        Ok(match clause {
            Clause::Null => Some(Form::Null),
            Clause::Bool { falsehood, truth } => Some(Form::Bool(*falsehood, *truth)),
            Clause::Number(numbers) => {
                let pieces = crate::numbers::NumberPieces::new(numbers, usize::MAX);
                pieces.is_possible().then(|| Form::Number(numbers.clone()))
            }
            Clause::Text(atoms) => {
                let text = self.strings.text(atoms);
                let has = self
                    .strings
                    .has_text(text)
                    .map_err(|refusal| Refusal { at: at.to_owned(), ..refusal })?;
                has.then_some(Form::Text(text))
            }
            Clause::Array(arrays) => Some(Form::Array(self.array_form(arrays, at)?)),
            Clause::Object(objects) => Some(Form::Object(self.object_form(objects, at)?)),
        })
    }

    fn array_form(&mut self, arrays: &Arrays, at: &str) -> Result<ArrayForm, Refusal> {
        if let Some(unique) = arrays.unique
            && (!unique || arrays.at_most.is_none_or(|most| most > 1))
        {
            return Err(Refusal::new(Kind::Unsupported, at, "not supported yet").keyword("uniqueItems"));
        }
        let extras: Vec<_> = arrays.some.iter().copied().collect();
        let contains: Vec<_> = arrays.contains.iter().copied().collect();
        if extras.len() + contains.len() > MAX_EXTRAS {
            return Err(too_many(at, "assertions about some item", MAX_EXTRAS));
        }
        let places =
            arrays.every.iter().map(|(places, _)| places).chain(extras.iter().map(|(places, _)| places));
        let starts: BTreeSet<u64> =
            places.flat_map(|places| [Some(places.from), places.to]).flatten().chain([0]).collect();
        let mut ranges = Vec::with_capacity(starts.len());
        for start in starts {
            let base = self.item(arrays, start);
            let base: Vec<Literal> = self.members(base).to_vec();
            let mut variants = Vec::new();
            let here = (0..extras.len()).filter(|&at| extras[at].0.contains(start));
            let here: Extras = here.map(|at| 1 << at).sum();
            for chosen in submasks(here) {
                for held in 0..1u32 << contains.len() {
                    let mut literals = base.clone();
                    literals
                        .extend((0..extras.len()).filter(|at| chosen >> at & 1 == 1).map(|at| extras[at].1));
                    for (at, &(literal, _, max)) in contains.iter().enumerate() {
                        match (held >> at & 1 == 1, max) {
                            (true, _) => literals.push(literal),
                            (false, Some(_)) => literals.push(self.negated(literal)),
                            (false, None) => {}
                        }
                    }
                    let set = self.set(literals);
                    variants.push((chosen, held, set));
                }
            }
            ranges.push((start, variants));
        }
        Ok(ArrayForm {
            ranges,
            extras: (1 << extras.len()) - 1,
            contains: contains.iter().map(|&(_, min, max)| (min, max.unwrap_or(u64::MAX))).collect(),
            at_least: arrays.at_least,
            at_most: arrays.at_most.unwrap_or(u64::MAX),
        })
    }

    fn object_form(&mut self, objects: &Objects, at: &str) -> Result<ObjectForm, Refusal> {
        let extras: Vec<(Keys, Literal)> = objects.some.iter().cloned().collect();
        if extras.len() > MAX_EXTRAS {
            return Err(too_many(at, "assertions about some member", MAX_EXTRAS));
        }
        let mut listed: BTreeSet<Arc<str>> = objects.has.clone();
        listed.extend(objects.orders.iter().flat_map(|(_, keys)| keys.iter().cloned()));
        if let KeyOrder::First(keys) = &self.order {
            listed.extend(keys.iter().map(|key| Arc::from(key.as_str())));
        }
        let mut patterns = BTreeSet::new();
        let mut unlike = BTreeSet::new();
        for keys in objects.every.iter().map(|(keys, _)| keys).chain(extras.iter().map(|(keys, _)| keys)) {
            match keys {
                Keys::Key(key) => drop(listed.insert(key.clone())),
                Keys::Pattern(pattern) => drop(patterns.insert(*pattern)),
                Keys::Others(keys, others) => {
                    listed.extend(keys.iter().cloned());
                    patterns.extend(others.iter().copied());
                }
                Keys::Unlike(literal) => drop(unlike.insert(*literal)),
                Keys::All => {}
            }
        }
        let mut form = ObjectForm {
            keys: Vec::new(),
            ranks: Vec::new(),
            other_rank: self.order.other_rank(),
            classes: Vec::new(),
            variants: Vec::new(),
            extras: (1 << extras.len()) - 1,
            at_least: objects.at_least,
            at_most: objects.at_most.unwrap_or(u64::MAX),
        };
        for key in &listed {
            let base = self.member(objects, key)?;
            let mut here: Extras = 0;
            for (at, (keys, _)) in extras.iter().enumerate() {
                here |= Extras::from(self.selects(keys, key)?) << at;
            }
            let is_required = objects.has.contains(key);
            let variants = self.variants(base, here, &extras);
            if is_required || variants.iter().any(|&(_, set)| !self.is_false(set)) {
                form.keys.push((key.clone(), is_required));
                form.ranks.push(self.order.rank(key, &objects.orders));
                form.variants.push(variants);
            }
        }
        // Without declared keys an object is a map, whose keys nobody declares.
        let declares = !objects.orders.is_empty();
        if !(self.declared_only
            && declares
            && objects.at_least <= form.keys.len() as u64
            && extras.is_empty())
        {
            self.add_classes(objects, (&listed, &patterns, &unlike), &extras, at, &mut form)?;
        }
        Ok(form)
    }

    fn is_false(&self, set: SetId) -> bool {
        *self.members(set) == [Literal::FALSE]
    }

    fn variants(&mut self, base: SetId, here: Extras, extras: &[(Keys, Literal)]) -> Vec<(Extras, SetId)> {
        let base = self.members(base);
        let mut variants = Vec::new();
        for chosen in submasks(here) {
            let more = (0..extras.len()).filter(|at| chosen >> at & 1 == 1).map(|at| extras[at].1);
            let set = self.set(base.iter().copied().chain(more));
            variants.push((chosen, set));
        }
        variants
    }

    /// The keys that are not listed, told apart by the patterns that find them.
    fn add_classes(
        &mut self,
        objects: &Objects,
        (listed, patterns, unlike): (
            &BTreeSet<Arc<str>>,
            &BTreeSet<crate::strings::PatternId>,
            &BTreeSet<Literal>,
        ),
        extras: &[(Keys, Literal)],
        at: &str,
        form: &mut ObjectForm,
    ) -> Result<(), Refusal> {
        let mut tests: Vec<(Keys, FormulaId)> = Vec::new();
        for &pattern in patterns {
            tests.push((Keys::Pattern(pattern), self.strings.of_pattern(pattern)));
        }
        for &literal in unlike {
            let like = self.names(literal, at)?;
            tests.push((Keys::Unlike(literal), self.strings.chars.not(like)));
        }
        let known = self.strings.chars.words(listed.iter().map(|key| &**key));
        let mut rest = vec![self.strings.chars.not(known)];
        for &literal in &objects.names {
            rest.push(self.names(literal, at)?);
        }
        let mut classes: Vec<(FormulaId, Vec<bool>)> = vec![(self.strings.chars.all(rest), Vec::new())];
        let failed = |error: crate::chars::TooLarge| {
            let message = format!("its patterns of keys need more than {} automaton states", error.limit);
            Refusal::new(Kind::Limit, at, message)
        };
        for (_, test) in &tests {
            let mut finer = Vec::with_capacity(classes.len() + 1);
            for (class, holds) in classes {
                for is in [true, false] {
                    let test = if is { *test } else { self.strings.chars.not(*test) };
                    let part = self.strings.chars.all([class, test]);
                    if self.strings.chars.is_live(part).map_err(failed)? {
                        finer.push((part, holds.iter().copied().chain([is]).collect()));
                    }
                }
            }
            if finer.len() > MAX_CLASSES {
                return Err(too_many(at, "classes of keys", MAX_CLASSES));
            }
            classes = finer;
        }
        let mut joined: FxHashMap<(SetId, Extras), Vec<FormulaId>> = FxHashMap::default();
        for (class, holds) in classes {
            if !self.strings.chars.is_live(class).map_err(failed)? {
                continue;
            }
            let selects = |keys: &Keys| match keys {
                Keys::Key(_) => false,
                Keys::All => true,
                Keys::Others(_, others) => !tests.iter().zip(&holds).any(|((test, _), &holds)| {
                    holds && matches!(test, Keys::Pattern(pattern) if others.contains(pattern))
                }),
                keys => tests.iter().zip(&holds).any(|((test, _), &holds)| holds && test == keys),
            };
            let literals: Vec<Literal> =
                objects.every.iter().filter(|(keys, _)| selects(keys)).map(|&(_, literal)| literal).collect();
            let here = (0..extras.len()).filter(|&at| selects(&extras[at].0)).map(|at| 1 << at).sum();
            let base = self.set(literals);
            if !self.is_false(base) {
                joined.entry((base, here)).or_default().push(class);
            }
        }
        let mut joined: Vec<_> = joined.into_iter().collect();
        joined.sort_unstable_by_key(|(key, _)| *key);
        for ((base, here), classes) in joined {
            form.classes.push(self.strings.chars.any(classes));
            let variants = self.variants(base, here, extras);
            form.variants.push(variants);
        }
        Ok(())
    }

    /// The strings of which a literal holds, as one formula.
    fn names(&mut self, literal: Literal, at: &str) -> Result<FormulaId, Refusal> {
        let set = self.set([literal]);
        let clauses = self.expand(set)?;
        let mut parts = Vec::new();
        for clause in clauses.iter() {
            if let Clause::Text(atoms) = clause {
                let text = self.strings.text(atoms);
                let length = self.strings.length(text.min, text.max).map_err(|error| {
                    let message = format!("its names need more than {} automaton states", error.limit);
                    Refusal::new(Kind::Limit, at, message)
                })?;
                parts.push(self.strings.chars.all([text.formula, length]));
            }
        }
        Ok(self.strings.chars.any(parts))
    }
}

fn too_many(at: &str, what: &str, limit: usize) -> Refusal {
    Refusal::new(Kind::Limit, at, format!("it comes to more than {limit} {what}"))
}

/// All sets of bits of a set, the empty one first.
fn submasks(of: u32) -> impl Iterator<Item = u32> {
    (0..=of).filter(move |mask| mask & !of == 0)
}

/// Where an object stands: what was written so far, as far as it matters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ObjectPlace {
    /// The keys that occurred, as bits.
    pub seen: Box<[u64]>,
    /// The extras that no member bore out yet.
    pub pending: Extras,
    /// How many members there are, up to what can matter.
    pub n: u64,
    /// The least rank that the next key may have.
    pub rank: u32,
}

impl ObjectPlace {
    /// Whether a key occurred.
    pub fn has_seen(&self, key: usize) -> bool {
        self.seen[key / 64] >> (key % 64) & 1 == 1
    }
}

impl ObjectForm {
    /// Before the first member.
    pub fn start(&self) -> ObjectPlace {
        let seen = vec![0; self.keys.len().div_ceil(64)].into();
        ObjectPlace { seen, pending: self.extras, n: 0, rank: 0 }
    }

    /// The rank of a key, or of a class of keys.
    pub fn rank(&self, key: usize) -> u32 {
        self.ranks.get(key).copied().unwrap_or(self.other_rank)
    }

    /// Whether a key, or a class of keys, may still come.
    pub fn may_come(&self, place: &ObjectPlace, key: usize) -> bool {
        self.rank(key) >= place.rank && (key >= self.keys.len() || !place.has_seen(key))
    }

    /// Behind one more member.
    pub fn after(&self, place: &ObjectPlace, key: usize, borne_out: Extras) -> ObjectPlace {
        let mut next = place.clone();
        if key < self.keys.len() {
            next.seen[key / 64] |= 1 << (key % 64);
        }
        next.rank = self.rank(key);
        next.pending &= !borne_out;
        let most = if self.at_most == u64::MAX { self.at_least } else { self.at_least.max(self.at_most + 1) };
        next.n = (next.n + 1).min(most);
        next
    }

    /// The fewest members with which an object ends from a place on; `None` if it cannot.
    pub fn least(&self, alive: &dyn Fn(SetId) -> bool, place: &ObjectPlace) -> Option<u64> {
        let is_alive = |key: usize| self.variants[key].iter().any(|&(_, set)| alive(set));
        let (mut required, mut optional) = (0, 0u64);
        for (key, (_, is_required)) in self.keys.iter().enumerate() {
            match (self.may_come(place, key), is_required) {
                (false, true) if !place.has_seen(key) => return None,
                (false, _) => {}
                (true, true) if !is_alive(key) => return None,
                (true, true) => required += 1,
                (true, false) => optional += u64::from(is_alive(key)),
            }
        }
        let mut used = Vec::new();
        let more = required + self.bear_out(alive, place, place.pending, &mut used)?;
        let missing = self.at_least.saturating_sub(place.n);
        let has_others = (self.keys.len()..self.variants.len()).any(is_alive);
        if missing > required + optional && !has_others {
            return None;
        }
        let more = more.max(missing);
        (place.n.saturating_add(more) <= self.at_most).then_some(more)
    }

    /// The fewest members, required ones aside, that bear out what is pending.
    fn bear_out(
        &self,
        alive: &dyn Fn(SetId) -> bool,
        place: &ObjectPlace,
        pending: Extras,
        used: &mut Vec<usize>,
    ) -> Option<u64> {
        if pending == 0 {
            return Some(0);
        }
        let first = pending & pending.wrapping_neg();
        let mut least: Option<u64> = None;
        for (key, variants) in self.variants.iter().enumerate() {
            let listed = self.keys.get(key);
            if !self.may_come(place, key) || listed.is_some() && used.contains(&key) {
                continue;
            }
            let cost = u64::from(!listed.is_some_and(|(_, required)| *required));
            for &(chosen, set) in variants {
                if chosen & first == 0 || chosen & !pending != 0 || !alive(set) {
                    continue;
                }
                used.push(key);
                let rest = self.bear_out(alive, place, pending & !chosen, used);
                used.pop();
                if let Some(rest) = rest {
                    least = Some(least.map_or(cost + rest, |least| least.min(cost + rest)));
                    if least == Some(0) {
                        return least;
                    }
                }
            }
        }
        least
    }
}

/// Where an array stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ArrayPlace {
    /// How many items there are, up to what can matter.
    pub n: u64,
    /// The extras that no item bore out yet.
    pub pending: Extras,
    /// How many items contain each thing, up to what can matter.
    pub counts: Box<[u64]>,
}

/// Places of an array that are looked at to find out whether it can end.
const MANY_PLACES: usize = 20_000;

impl ArrayForm {
    /// Before the first item.
    pub fn start(&self) -> ArrayPlace {
        ArrayPlace { n: 0, pending: self.extras, counts: vec![0; self.contains.len()].into() }
    }

    /// What the next item may be.
    pub fn variants(&self, place: &ArrayPlace) -> &[ItemVariant] {
        if place.n >= self.at_most {
            return &[];
        }
        let range = self.ranges.partition_point(|&(start, _)| start <= place.n);
        range.checked_sub(1).map_or(&[], |range| &self.ranges[range].1)
    }

    /// Behind one more item; `None` if more contain something than may.
    pub fn after(&self, place: &ArrayPlace, (borne_out, held, _): ItemVariant) -> Option<ArrayPlace> {
        let mut next = place.clone();
        next.pending &= !borne_out;
        for (at, &(min, max)) in self.contains.iter().enumerate() {
            if held >> at & 1 == 1 {
                next.counts[at] += 1;
                if next.counts[at] > max {
                    return None;
                }
                if max == u64::MAX {
                    next.counts[at] = next.counts[at].min(min);
                }
            }
        }
        let last = self.ranges.last().map_or(0, |&(start, _)| start);
        let most = if self.at_most == u64::MAX { self.at_least } else { self.at_least.max(self.at_most) };
        next.n = (next.n + 1).min(most.max(last));
        Some(next)
    }

    /// Whether the array may end here.
    pub fn is_whole(&self, place: &ArrayPlace) -> bool {
        place.n >= self.at_least
            && place.pending == 0
            && place.counts.iter().zip(&self.contains).all(|(count, (min, _))| count >= min)
    }

    /// The fewest items with which an array ends from a place on; `None` if it cannot (or if that was not
    /// found out within bounds).
    pub fn least(&self, alive: &dyn Fn(SetId) -> bool, place: &ArrayPlace) -> Option<u64> {
        if self.is_whole(place) {
            return Some(0);
        }
        if self.extras == 0 && self.contains.is_empty() {
            // Only the number counts: every range up to the fewest items has to have something.
            let ends = self.ranges.iter().skip(1).map(|&(start, _)| start).chain([u64::MAX]);
            let has_gap = self.ranges.iter().zip(ends).any(|((start, variants), end)| {
                *start < self.at_least && end > place.n && !variants.iter().any(|&(_, _, set)| alive(set))
            });
            return (!has_gap && self.at_least <= self.at_most).then_some(self.at_least - place.n);
        }
        let (mut level, mut seen) = (vec![place.clone()], FxHashSet::default());
        for n in 0u64.. {
            if level.is_empty() || seen.len() > MANY_PLACES {
                return None;
            }
            if level.iter().any(|place| self.is_whole(place)) {
                return Some(n);
            }
            let mut next = Vec::new();
            for place in &level {
                for &variant in self.variants(place) {
                    if alive(variant.2)
                        && let Some(after) = self.after(place, variant)
                        && seen.insert(after.clone())
                    {
                        next.push(after);
                    }
                }
            }
            level = next;
        }
        None
    }
}
