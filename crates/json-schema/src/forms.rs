//! Clauses with everything below them resolved: which keys there are, what stands behind each, and which
//! sets have a value at all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::algebra::{Algebra, KeyOrder};
use crate::atoms::{Arrays, Clause, Keys, Literal, Numbers, Objects, SetId, Way};
use crate::chars::FormulaId;
use crate::refusal::{Kind, Refusal};
use crate::strings::{PatternId, Text};

/// What of an object or array has to be borne out by some member or item: by number, as a set of bits.
pub type Extras = u32;

/// Assertions about some member or item that one object or array may carry.
const MAX_EXTRAS: usize = 24;

/// Assertions about some item that one array may carry: an item can bear out any set of them.
const MAX_EXTRAS_OF_ITEMS: usize = 10;

/// Of these, those that may concern one member or item.
const MAX_EXTRAS_OF_ONE: u32 = 8;

/// Keys that an object's automaton knows one by one although nothing names them: those of a class with few.
const FEW_KEYS: usize = 256;

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
    /// Of each key, then of each class: what the value may be, and which demands it then meets.
    pub variants: Vec<Vec<(Extras, SetId)>>,
    /// What some member has to meet, if the object is not as it should for another reason.
    pub demands: Vec<Demand>,
    /// The fewest members.
    pub at_least: u64,
    /// The most.
    pub at_most: u64,
}

/// What excuses an object from a demand on its members.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Demand {
    /// That it lacks one of these keys.
    pub lacks: Vec<usize>,
    /// That it has at least so many members.
    pub at_least: Option<u64>,
    /// That it has at most so many.
    pub at_most: Option<u64>,
}

/// What an item may be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ItemVariant {
    /// The extras that it bears out.
    pub met: Extras,
    /// What it contains, by number.
    pub held: u32,
    /// Its values.
    pub set: SetId,
    /// Which of the values it is that may come once.
    pub value: Option<u32>,
}

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
    /// Whether all items differ.
    pub is_unique: bool,
    /// How many values there are that are told apart.
    pub n_values: usize,
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
        let mut this = Self { root, sets: FxHashMap::default(), alive: FxHashSet::default() };
        this.add(algebra, root)?;
        this.find_alive();
        if this.tell_values_apart(algebra)? {
            // Of some there are too few now.
            this.alive.clear();
            this.find_alive();
        }
        Ok(this)
    }

    /// Adds a set and all that it leads to.
    pub(crate) fn add(&mut self, algebra: &mut Algebra<'_>, set: SetId) -> Result<(), Refusal> {
        let mut agenda = vec![set];
        while let Some(set) = agenda.pop() {
            if self.sets.contains_key(&set) {
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
                        agenda.extend(variants.map(|variant| variant.set));
                    }
                    _ => {}
                }
                forms.extend(form);
            }
            self.sets.insert(set, forms);
        }
        Ok(())
    }

    /// The least fixpoint: a set has a value if one of its forms has one whose parts have.
    fn find_alive(&mut self) {
        let Self { sets, alive, .. } = self;
        let mut waiting: Vec<SetId> = sets.keys().copied().collect();
        // What a set leads to was mostly found later, and is looked at before it.
        waiting.sort_unstable_by_key(|&set| Reverse(set));
        let mut n_before = usize::MAX;
        while waiting.len() < n_before {
            n_before = waiting.len();
            waiting.retain(|&set| {
                let is_alive = |form: &Form| match form {
                    Form::Object(form) => form.can_end(&|set| alive.contains(&set), &form.start()),
                    Form::Array(form) => form.least(&|set| alive.contains(&set), &form.start()).is_some(),
                    _ => true,
                };
                let has_value = sets[&set].iter().any(is_alive);
                if has_value {
                    alive.insert(set);
                }
                !has_value
            });
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
        if arrays.unique == Some(false) {
            let message = "that two items are equal, as `not` or `oneOf` have it, is not supported";
            return Err(Refusal::new(Kind::Unsupported, at, message).keyword("uniqueItems"));
        }
        let is_unique = arrays.unique.is_some() && arrays.at_most.is_none_or(|most| most > 1);
        let extras: Vec<_> = arrays.some.iter().copied().collect();
        let contains: Vec<_> = arrays.contains.iter().copied().collect();
        if extras.len() + contains.len() > MAX_EXTRAS_OF_ITEMS {
            return Err(too_many(at, "assertions about some item", MAX_EXTRAS_OF_ITEMS));
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
                    for (at, &(_, literal)) in extras.iter().enumerate() {
                        match chosen >> at & 1 == 1 {
                            true => literals.push(literal),
                            // So that no value is in two of the sets.
                            false if is_unique && here >> at & 1 == 1 => literals.push(self.negated(literal)),
                            false => {}
                        }
                    }
                    for (at, &(literal, _, max)) in contains.iter().enumerate() {
                        match (held >> at & 1 == 1, max.is_some() || is_unique) {
                            (true, _) => literals.push(literal),
                            (false, true) => literals.push(self.negated(literal)),
                            (false, false) => {}
                        }
                    }
                    let set = self.set(literals);
                    variants.push(ItemVariant { met: chosen, held, set, value: None });
                }
            }
            ranges.push((start, variants));
        }
        let form = ArrayForm {
            ranges,
            extras: (1 << extras.len()) - 1,
            contains: contains.iter().map(|&(_, min, max)| (min, max.unwrap_or(u64::MAX))).collect(),
            at_least: arrays.at_least,
            at_most: arrays.at_most.unwrap_or(u64::MAX),
            is_unique,
            n_values: 0,
        };
        if !form.can_be_searched() {
            return Err(too_many(at, "states of what its items contain", MANY_PLACES));
        }
        Ok(form)
    }

    fn object_form(&mut self, objects: &Objects, at: &str) -> Result<ObjectForm, Refusal> {
        let units = objects.some.iter().map(|(keys, literal)| [Way::Some(keys.clone(), *literal)].into());
        let wishes: Vec<Box<[Way]>> = units.chain(objects.any.iter().cloned()).collect();
        if wishes.len() > MAX_EXTRAS {
            return Err(too_many(at, "assertions about some member", MAX_EXTRAS));
        }
        // What members are asked for, and the demands that each thing meets.
        let mut extras: BTreeMap<(Keys, Literal), Extras> = BTreeMap::new();
        for (number, ways) in wishes.iter().enumerate() {
            for way in ways {
                if let Way::Some(keys, literal) = way {
                    *extras.entry((keys.clone(), *literal)).or_default() |= 1 << number;
                }
            }
        }
        let extras: Vec<Extra> =
            extras.into_iter().map(|((keys, literal), meets)| Extra { keys, literal, meets }).collect();
        let tests = Tests::new(objects, &extras, &wishes, &self.order);
        let mut form = ObjectForm {
            keys: Vec::new(),
            ranks: Vec::new(),
            other_rank: self.order.other_rank(),
            classes: Vec::new(),
            variants: Vec::new(),
            demands: vec![Demand::default(); wishes.len()],
            at_least: objects.at_least,
            at_most: objects.at_most.unwrap_or(u64::MAX),
        };
        let order = self.order.clone();
        let ranks = order.ranks(&objects.orders);
        for key in &tests.listed {
            let base = self.member(objects, key)?;
            let mut here = Vec::new();
            for extra in &extras {
                if self.selects(&extra.keys, key)? {
                    here.push(extra);
                }
            }
            let is_required = objects.has.contains(key);
            let variants = self.variants(base, &here, at)?;
            let lacks = Way::Lacks(key.clone());
            let number = form.keys.len();
            for (demand, _) in form.demands.iter_mut().zip(&wishes).filter(|(_, ways)| ways.contains(&lacks))
            {
                demand.lacks.push(number);
            }
            form.keys.push((key.clone(), is_required));
            form.ranks.push(ranks.get(&**key).copied().unwrap_or(form.other_rank));
            form.variants.push(variants);
        }
        for (demand, ways) in form.demands.iter_mut().zip(&wishes) {
            for way in ways {
                match *way {
                    Way::AtLeast(n) => {
                        demand.at_least = Some(demand.at_least.map_or(n, |least| least.min(n)))
                    }
                    Way::AtMost(n) => demand.at_most = Some(demand.at_most.map_or(n, |most| most.max(n))),
                    Way::Lacks(_) | Way::Some(..) => {}
                }
            }
        }
        // Without declared keys an object is a map, whose keys nobody declares.
        let declares = !objects.orders.is_empty();
        if !(self.declared_only
            && declares
            && objects.at_least <= form.keys.len() as u64
            && wishes.is_empty())
        {
            self.add_classes(objects, &tests, &extras, at, &mut form)?;
        }
        Ok(form)
    }

    fn is_false(&self, set: SetId) -> bool {
        *self.members(set) == [Literal::FALSE]
    }

    /// What a value may be: as it has to, or besides as some extras want it.
    fn variants(&mut self, base: SetId, here: &[&Extra], at: &str) -> Result<Vec<(Extras, SetId)>, Refusal> {
        if here.len() as u32 > MAX_EXTRAS_OF_ONE {
            return Err(too_many(at, "assertions about one member", MAX_EXTRAS_OF_ONE as usize));
        }
        let base = self.members(base);
        let mut variants: Vec<(Extras, SetId)> = Vec::new();
        let mut chosen: Vec<u32> = (0..1u32 << here.len()).collect();
        chosen.sort_unstable_by_key(|chosen| chosen.count_ones());
        for chosen in chosen {
            let taken = || (0..here.len()).filter(|at| chosen >> at & 1 == 1).map(|at| here[at]);
            let meets = taken().fold(0, |meets, extra| meets | extra.meets);
            let more: Vec<Literal> = taken().map(|extra| extra.literal).collect();
            let set = self.set(base.iter().copied().chain(more));
            if !variants.contains(&(meets, set)) && !self.is_false(set) {
                variants.push((meets, set));
            }
        }
        Ok(variants)
    }

    /// The keys that are not listed, told apart by the patterns that find them.
    fn add_classes(
        &mut self,
        objects: &Objects,
        tests: &Tests,
        extras: &[Extra],
        at: &str,
        form: &mut ObjectForm,
    ) -> Result<(), Refusal> {
        let mut selectors: Vec<(Keys, FormulaId)> = Vec::new();
        for &pattern in &tests.patterns {
            selectors.push((Keys::Pattern(pattern), self.strings.of_pattern(pattern)));
        }
        for &literal in &tests.unlike {
            let like = self.names(literal, at)?;
            selectors.push((Keys::Unlike(literal), self.strings.chars.not(like)));
        }
        let known = self.strings.chars.words(tests.listed.iter().map(|key| &**key));
        let mut rest = vec![self.strings.chars.not(known)];
        for &literal in &objects.names {
            rest.push(self.names(literal, at)?);
        }
        let rest = self.strings.chars.all(rest);
        let mut joined: BTreeMap<(SetId, Vec<usize>), Vec<FormulaId>> = BTreeMap::new();
        for (class, holds) in self.classes(rest, &selectors, at)? {
            let selects = |keys: &Keys| match keys {
                Keys::Key(_) => false,
                Keys::All => true,
                Keys::Others(_, others) => !selectors.iter().zip(&holds).any(|((test, _), &holds)| {
                    holds && matches!(test, Keys::Pattern(pattern) if others.contains(pattern))
                }),
                keys => selectors.iter().zip(&holds).any(|((test, _), &holds)| holds && test == keys),
            };
            let literals: Vec<Literal> =
                objects.every.iter().filter(|(keys, _)| selects(keys)).map(|&(_, literal)| literal).collect();
            let here = (0..extras.len()).filter(|&at| selects(&extras[at].keys)).collect();
            let base = self.set(literals);
            if !self.is_false(base) {
                joined.entry((base, here)).or_default().push(class);
            }
        }
        let mut open = Vec::new();
        for ((base, here), classes) in joined {
            let class = self.strings.chars.any(classes);
            let here: Vec<&Extra> = here.into_iter().map(|at| &extras[at]).collect();
            let variants = self.variants(base, &here, at)?;
            // Of few keys the automaton knows which are left.
            let few =
                self.strings.chars.strings(class, (0, u64::MAX), FEW_KEYS.saturating_sub(form.keys.len()));
            match few.map_err(|error| patterns_of_keys(at, error))? {
                None => open.push((class, variants)),
                Some(keys) => {
                    for key in keys {
                        form.keys.push((key.into(), false));
                        form.ranks.push(form.other_rank);
                        form.variants.push(variants.clone());
                    }
                }
            }
        }
        for (class, variants) in open {
            form.classes.push(class);
            form.variants.push(variants);
        }
        Ok(())
    }

    /// Strings cut into classes by tests: each with the tests that hold of its strings.
    fn classes(
        &mut self,
        all: FormulaId,
        tests: &[(Keys, FormulaId)],
        at: &str,
    ) -> Result<Vec<(FormulaId, Vec<bool>)>, Refusal> {
        let failed = |error| patterns_of_keys(at, error);
        let mut classes: Vec<(FormulaId, Vec<bool>)> = Vec::new();
        if self.strings.chars.is_live(all).map_err(failed)? {
            classes.push((all, Vec::new()));
        }
        for (_, test) in tests {
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
        Ok(classes)
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

fn patterns_of_keys(at: &str, error: crate::chars::TooLarge) -> Refusal {
    let message = format!("its patterns of keys need more than {} automaton states", error.limit);
    Refusal::new(Kind::Limit, at, message)
}

/// Something that members are asked for, and the demands that it meets.
struct Extra {
    keys: Keys,
    literal: Literal,
    meets: Extras,
}

/// What tells the keys of an object apart.
struct Tests {
    listed: BTreeSet<Arc<str>>,
    patterns: BTreeSet<PatternId>,
    unlike: BTreeSet<Literal>,
}

impl Tests {
    fn new(objects: &Objects, extras: &[Extra], wishes: &[Box<[Way]>], order: &KeyOrder) -> Self {
        let mut listed: BTreeSet<Arc<str>> = objects.has.clone();
        listed.extend(objects.orders.iter().flat_map(|(_, keys)| keys.iter().cloned()));
        if let KeyOrder::First(keys) = order {
            listed.extend(keys.iter().map(|key| Arc::from(key.as_str())));
        }
        for way in wishes.iter().flat_map(|ways| ways.iter()) {
            if let Way::Lacks(key) = way {
                listed.insert(key.clone());
            }
        }
        let mut this = Self { listed, patterns: BTreeSet::new(), unlike: BTreeSet::new() };
        let all = objects.every.iter().map(|(keys, _)| keys).chain(extras.iter().map(|extra| &extra.keys));
        for keys in all {
            match keys {
                Keys::Key(key) => drop(this.listed.insert(key.clone())),
                Keys::Pattern(pattern) => drop(this.patterns.insert(*pattern)),
                Keys::Others(keys, others) => {
                    this.listed.extend(keys.iter().cloned());
                    this.patterns.extend(others.iter().copied());
                }
                Keys::Unlike(literal) => drop(this.unlike.insert(*literal)),
                Keys::All => {}
            }
        }
        this
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
        ObjectPlace { seen, pending: (1 << self.demands.len()) - 1, n: 0, rank: 0 }
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
    pub fn after(&self, place: &ObjectPlace, key: usize, met: Extras) -> ObjectPlace {
        let mut next = place.clone();
        if key < self.keys.len() {
            next.seen[key / 64] |= 1 << (key % 64);
        }
        next.rank = self.rank(key);
        next.pending &= !met;
        let bounds = self.demands.iter().flat_map(|demand| [demand.at_least, demand.at_most]).flatten();
        let bounds = bounds.chain([self.at_least]).chain((self.at_most != u64::MAX).then_some(self.at_most));
        next.n = (next.n + 1).min(bounds.max().unwrap_or(0).saturating_add(1));
        next
    }

    /// Whether the object may end at a place.
    pub fn is_whole(&self, place: &ObjectPlace) -> bool {
        let has_required = (0..).zip(&self.keys).all(|(key, (_, required))| !required || place.has_seen(key));
        let is_excused = |demand: &Demand| {
            demand.lacks.iter().any(|&key| !place.has_seen(key))
                || demand.at_least.is_some_and(|least| place.n >= least)
                || demand.at_most.is_some_and(|most| place.n <= most)
        };
        let pending = self.demands.iter().enumerate().filter(|(number, _)| place.pending >> number & 1 == 1);
        has_required
            && place.n >= self.at_least
            && place.n <= self.at_most
            && pending.into_iter().all(|(_, demand)| is_excused(demand))
    }

    /// A bound from below on the members that are still to come.
    pub fn at_least_more(&self, place: &ObjectPlace) -> u64 {
        let required =
            (0..).zip(&self.keys).filter(|&(key, (_, required))| *required && !place.has_seen(key));
        (required.count() as u64).max(self.at_least.saturating_sub(place.n))
    }

    /// Whether an object can end from a place on.
    pub fn can_end(&self, alive: &dyn Fn(SetId) -> bool, place: &ObjectPlace) -> bool {
        let is_alive = |key: usize| self.variants[key].iter().any(|&(_, set)| alive(set));
        for (key, (_, is_required)) in self.keys.iter().enumerate() {
            if *is_required && !place.has_seen(key) && !(self.may_come(place, key) && is_alive(key)) {
                return false;
            }
        }
        let mut plan = Plan { form: self, alive, place, used: Vec::new(), lacking: Vec::new() };
        plan.meets(place.pending, 0, (self.at_least, self.at_most))
    }
}

/// Members that are to come, while it is looked for a way to meet what is pending.
struct Plan<'a> {
    form: &'a ObjectForm,
    alive: &'a dyn Fn(SetId) -> bool,
    place: &'a ObjectPlace,
    used: Vec<usize>,
    lacking: Vec<usize>,
}

impl Plan<'_> {
    /// Whether what is pending can be met or excused, with so many optional members so far and a number of
    /// members in a range.
    fn meets(&mut self, pending: Extras, optional: u64, (least, most): (u64, u64)) -> bool {
        if least > most {
            return false;
        }
        if pending == 0 {
            return self.has_room(optional, (least, most));
        }
        let number = pending.trailing_zeros();
        let (form, rest) = (self.form, pending & !(1 << number));
        let demand = &form.demands[number as usize];
        for &key in &demand.lacks {
            if self.place.has_seen(key) || form.keys[key].1 || self.used.contains(&key) {
                continue;
            }
            self.lacking.push(key);
            let meets = self.meets(rest, optional, (least, most));
            self.lacking.pop();
            if meets {
                return true;
            }
        }
        if demand.at_most.is_some_and(|bound| self.meets(rest, optional, (least, most.min(bound))))
            || demand.at_least.is_some_and(|bound| self.meets(rest, optional, (least.max(bound), most)))
        {
            return true;
        }
        self.is_borne_out(number, (pending, optional), (least, most))
    }

    /// Whether a member meets a demand, and others the rest.
    fn is_borne_out(&mut self, number: u32, (pending, optional): (Extras, u64), range: (u64, u64)) -> bool {
        let form = self.form;
        for (key, variants) in form.variants.iter().enumerate() {
            let is_listed = key < form.keys.len();
            let is_taken = is_listed && (self.used.contains(&key) || self.lacking.contains(&key));
            if is_taken || !form.may_come(self.place, key) {
                continue;
            }
            let more = u64::from(!(is_listed && form.keys[key].1));
            for &(met, set) in variants {
                if met >> number & 1 == 0 || !(self.alive)(set) {
                    continue;
                }
                self.used.push(key);
                let meets = self.meets(pending & !met, optional + more, range);
                self.used.pop();
                if meets {
                    return true;
                }
            }
        }
        false
    }

    /// Whether the number of members can be in a range.
    fn has_room(&self, optional: u64, (least, most): (u64, u64)) -> bool {
        let (form, place) = (self.form, self.place);
        let is_alive = |key: usize| form.variants[key].iter().any(|&(_, set)| (self.alive)(set));
        let n_listed = form.keys.len();
        let required = (0..n_listed).filter(|&key| form.keys[key].1 && !place.has_seen(key)).count() as u64;
        let fewest = place.n.saturating_add(required + optional);
        if fewest > most {
            return false;
        }
        if fewest >= least || (n_listed..form.variants.len()).any(is_alive) {
            return true;
        }
        let is_free = |&key: &usize| {
            !form.keys[key].1
                && form.may_come(place, key)
                && !self.used.contains(&key)
                && !self.lacking.contains(&key)
                && is_alive(key)
        };
        fewest + (0..n_listed).filter(is_free).count() as u64 >= least
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
    /// The values that occurred, of those that are told apart, as bits.
    pub taken: Box<[u64]>,
}

impl ArrayPlace {
    fn has_taken(&self, value: u32) -> bool {
        self.taken[value as usize / 64] >> (value % 64) & 1 == 1
    }
}

/// Places of an array that are looked at to find out whether it can end.
const MANY_PLACES: usize = 100_000;

impl ArrayForm {
    /// Whether items have to differ that the automaton does not tell apart.
    pub fn is_open(&self, alive: &FxHashSet<SetId>) -> bool {
        let variants = self.ranges.iter().flat_map(|(_, variants)| variants);
        let is_open = |variant: &ItemVariant| variant.value.is_none() && alive.contains(&variant.set);
        self.is_unique && self.at_most > 1 && variants.into_iter().any(is_open)
    }

    /// Whether items of this set may not be repeated, as far as the automaton does not see to it.
    pub fn must_differ(&self, set: SetId) -> bool {
        let mut variants = self.ranges.iter().flat_map(|(_, variants)| variants);
        self.is_unique
            && self.at_most > 1
            && variants.any(|variant| variant.set == set && variant.value.is_none())
    }

    /// Before the first item.
    pub fn start(&self) -> ArrayPlace {
        ArrayPlace {
            n: 0,
            pending: self.extras,
            counts: vec![0; self.contains.len()].into(),
            taken: vec![0; self.n_values.div_ceil(64)].into(),
        }
    }

    /// What the next item may be.
    pub fn variants(&self, place: &ArrayPlace) -> &[ItemVariant] {
        if place.n < self.at_most { self.variants_at(place.n) } else { &[] }
    }

    fn variants_at(&self, n: u64) -> &[ItemVariant] {
        let range = self.ranges.partition_point(|&(start, _)| start <= n);
        range.checked_sub(1).map_or(&[], |range| &self.ranges[range].1)
    }

    /// Behind one more item; `None` if more contain something than may, or if the value was there.
    pub fn after(&self, place: &ArrayPlace, variant: ItemVariant) -> Option<ArrayPlace> {
        let mut next = place.clone();
        if let Some(value) = variant.value {
            if place.has_taken(value) {
                return None;
            }
            next.taken[value as usize / 64] |= 1 << (value % 64);
        }
        next.pending &= !variant.met;
        for (at, &(min, max)) in self.contains.iter().enumerate() {
            if variant.held >> at & 1 == 1 {
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
        if self.extras != 0 || !self.contains.is_empty() {
            return self.search(alive, place);
        }
        if self.at_least > self.at_most {
            return None;
        }
        // Only the number counts: every range up to the fewest items has to have something.
        let ends = self.ranges.iter().skip(1).map(|&(start, _)| start).chain([u64::MAX]);
        let has_gap = self.ranges.iter().zip(ends).any(|((start, variants), end)| {
            *start < self.at_least && end > place.n && !variants.iter().any(|variant| alive(variant.set))
        });
        let is_enough = || self.n_values == 0 || self.has_values(alive, place);
        (!has_gap && is_enough()).then(|| self.at_least - place.n)
    }

    /// Whether there are enough values that did not occur, for items that can be nothing else: a matching of
    /// items with values, each found along an augmenting path.
    fn has_values(&self, alive: &dyn Fn(SetId) -> bool, place: &ArrayPlace) -> bool {
        let mut item_of: Vec<Option<u64>> = vec![None; self.n_values];
        for n in place.n..self.at_least {
            let is_free = |variant: &ItemVariant| variant.value.is_none() && alive(variant.set);
            if self.variants_at(n).iter().any(is_free) {
                continue;
            }
            // By breadth: the items that want a value, and from which value each came.
            let (mut agenda, mut from) = (vec![n], vec![None::<u64>; self.n_values]);
            let mut end = None;
            while let Some(item) = agenda.pop() {
                for value in self.variants_at(item).iter().filter_map(|variant| variant.value) {
                    if place.has_taken(value) || from[value as usize].is_some() {
                        continue;
                    }
                    from[value as usize] = Some(item);
                    match item_of[value as usize] {
                        Some(other) => agenda.push(other),
                        None => end = Some(value),
                    }
                }
                if end.is_some() {
                    break;
                }
            }
            let Some(mut value) = end else { return false };
            // Every item along the path takes the value before it.
            while let Some(item) = from[value as usize] {
                let before = item_of.iter().position(|&other| other == Some(item));
                item_of[value as usize] = Some(item);
                match before {
                    Some(before) if item != n => value = before as u32,
                    _ => break,
                }
            }
        }
        true
    }

    /// Whether the places that a search for an end can come to are few enough to be looked at.
    fn can_be_searched(&self) -> bool {
        let contained = self.contains.iter().map(|&(min, max)| if max == u64::MAX { min } else { max });
        let counts = contained.clone().fold(1u64, |all, most| all.saturating_mul(most.saturating_add(1)));
        let extras = u64::from(self.extras.count_ones());
        if self.extras == 0 && self.contains.is_empty() {
            return true;
        }
        // No way to an end is longer than what it takes to bear out one thing after the other.
        let needed = self.contains.iter().fold(extras, |all, &(min, _)| all.saturating_add(min));
        let levels = needed.max(self.at_least).min(self.at_most).saturating_add(1);
        counts.saturating_mul(1 << extras).saturating_mul(levels) <= MANY_PLACES as u64
    }

    fn search(&self, alive: &dyn Fn(SetId) -> bool, place: &ArrayPlace) -> Option<u64> {
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
                    if alive(variant.set)
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
