//! What a clause asserts about values of one type.
//!
//! Atoms are closed under negation: what contradicts a bound is another bound, what contradicts "every member
//! is" is "some member is not". See [`crate::algebra`].

use std::collections::BTreeSet;
use std::sync::Arc;

use anygram_bits::index_type;

use crate::strings::{FormatId, PatternId};
use crate::value::Decimal;

index_type!(
    /// A schema or its negation, or that a value is or is not a constant.
    Literal
);
index_type!(
    /// A set of literals that all hold of one value.
    SetId
);

impl Literal {
    /// What holds of every value.
    pub const TRUE: Self = Self(0);
    /// What holds of none.
    pub const FALSE: Self = Self(1);
}

/// A bound on numbers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum NumberAtom {
    /// At least this, or more than it.
    Min(Decimal, Exclusive),
    /// At most this, or less than it.
    Max(Decimal, Exclusive),
    /// A multiple of this, or none.
    Multiple(Decimal, bool),
    /// Without a fraction, or with one.
    Whole(bool),
    /// Written without fraction and exponent, or not: what draft 4 takes for an integer.
    Plain(bool),
    /// None of these.
    NotIn(Arc<[Decimal]>),
}

/// Whether a bound is excluded.
pub type Exclusive = bool;

/// What is asserted of a number.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Numbers {
    /// The greatest lower bound.
    pub min: Option<(Decimal, Exclusive)>,
    /// The least upper bound.
    pub max: Option<(Decimal, Exclusive)>,
    /// It is a multiple of these.
    pub multiples: BTreeSet<Decimal>,
    /// It is no multiple of these.
    pub not_multiples: BTreeSet<Decimal>,
    /// See [`NumberAtom::Whole`].
    pub whole: Option<bool>,
    /// See [`NumberAtom::Plain`].
    pub plain: Option<bool>,
    /// It is none of these.
    pub not_in: BTreeSet<Decimal>,
    /// It is one of these.
    pub one_of: Option<BTreeSet<Decimal>>,
}

impl Numbers {
    /// Adds an assertion; false if nothing is left.
    pub fn add(&mut self, atom: &NumberAtom) -> bool {
        match atom {
            NumberAtom::Min(bound, exclusive) => {
                let tighter =
                    |&(old, was): &(Decimal, bool)| old > *bound || old == *bound && (was || !exclusive);
                if !self.min.as_ref().is_some_and(tighter) {
                    self.min = Some((*bound, *exclusive));
                }
            }
            NumberAtom::Max(bound, exclusive) => {
                let tighter =
                    |&(old, was): &(Decimal, bool)| old < *bound || old == *bound && (was || !exclusive);
                if !self.max.as_ref().is_some_and(tighter) {
                    self.max = Some((*bound, *exclusive));
                }
            }
            NumberAtom::Multiple(of, true) => drop(self.multiples.insert(*of)),
            NumberAtom::Multiple(of, false) => drop(self.not_multiples.insert(*of)),
            NumberAtom::Whole(whole) => {
                if *self.whole.get_or_insert(*whole) != *whole {
                    return false;
                }
            }
            NumberAtom::Plain(plain) => {
                if *self.plain.get_or_insert(*plain) != *plain {
                    return false;
                }
            }
            NumberAtom::NotIn(values) => self.not_in.extend(values.iter()),
        }
        self.is_possible()
    }

    /// Whether the bounds leave room, and whole numbers and multiples do not exclude each other at once.
    fn is_possible(&self) -> bool {
        if self.plain == Some(true) && self.whole == Some(false) {
            return false;
        }
        if !self.multiples.is_disjoint(&self.not_multiples) {
            return false;
        }
        match (self.min, self.max) {
            (Some((min, below)), Some((max, above))) => min < max || min == max && !below && !above,
            _ => true,
        }
    }

    /// Whether a number is one of them. ([`Numbers::plain`] is a matter of spelling and not looked at.)
    pub fn contains(&self, number: Decimal) -> bool {
        self.min.is_none_or(|(min, exclusive)| number > min || !exclusive && number == min)
            && self.max.is_none_or(|(max, exclusive)| number < max || !exclusive && number == max)
            && self.multiples.iter().all(|&of| number.is_multiple_of(of))
            && !self.not_multiples.iter().any(|&of| number.is_multiple_of(of))
            && self.whole.is_none_or(|whole| number.is_integer() == whole)
            && !self.not_in.contains(&number)
            && self.one_of.as_ref().is_none_or(|values| values.contains(&number))
    }
}

impl NumberAtom {
    /// What holds of the numbers of which this does not.
    pub fn negated(&self) -> Result<Self, NumberAtomIsMany> {
        Ok(match self {
            Self::Min(bound, exclusive) => Self::Max(*bound, !exclusive),
            Self::Max(bound, exclusive) => Self::Min(*bound, !exclusive),
            Self::Multiple(of, is) => Self::Multiple(*of, !is),
            Self::Whole(whole) => Self::Whole(!whole),
            Self::Plain(plain) => Self::Plain(!plain),
            Self::NotIn(_) => return Err(NumberAtomIsMany),
        })
    }

    /// Whether it holds of a number; what is written in whatever way counts as plain if it is whole.
    pub fn holds(&self, number: Decimal) -> bool {
        match self {
            Self::Plain(plain) => number.is_integer() == *plain,
            atom => {
                let mut only = Numbers::default();
                only.add(atom);
                only.contains(number)
            }
        }
    }
}

/// The negation is a finite set, and no atom.
#[derive(Clone, Copy, Debug)]
pub struct NumberAtomIsMany;

/// What is asserted of a string.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum TextAtom {
    /// At least so many code points.
    AtLeast(u64),
    /// At most so many.
    AtMost(u64),
    /// A pattern is found in it, or is not.
    Pattern(PatternId, bool),
    /// It has a format, or has not.
    Format(FormatId, bool),
    /// It is none of these.
    NotIn(Arc<[Arc<str>]>),
    /// It is one of these.
    OneOf(Arc<[Arc<str>]>),
}

/// Which members of an object, by their keys.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Keys {
    /// This one.
    Key(Arc<str>),
    /// Those in which a pattern is found.
    Pattern(PatternId),
    /// Those that are neither listed nor found by a pattern.
    Others(Arc<[Arc<str>]>, Arc<[PatternId]>),
    /// Those of whose key this does not hold.
    Unlike(Literal),
    /// All.
    All,
}

/// An assertion about an object.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ObjectAtom {
    /// It has this key.
    Has(Arc<str>),
    /// It has at least so many members.
    AtLeast(u64),
    /// It has at most so many.
    AtMost(u64),
    /// All members with these keys are so.
    Every(Keys, Literal),
    /// There is one with such a key that is so.
    Some(Keys, Literal),
    /// All keys are so.
    Names(Literal),
    /// A schema declares these keys in this order; schemas are numbered.
    Order(u32, Arc<[Arc<str>]>),
}

/// One of several ways for an object to be as it should.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Way {
    /// It lacks this key.
    Lacks(Arc<str>),
    /// It has at least so many members.
    AtLeast(u64),
    /// It has at most so many.
    AtMost(u64),
    /// There is a member with such a key that is so.
    Some(Keys, Literal),
}

/// What is asserted of an object.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Objects {
    /// The keys that it has.
    pub has: BTreeSet<Arc<str>>,
    /// The fewest members.
    pub at_least: u64,
    /// The most.
    pub at_most: Option<u64>,
    /// What holds of all members with such keys.
    pub every: BTreeSet<(Keys, Literal)>,
    /// What holds of some member each.
    pub some: BTreeSet<(Keys, Literal)>,
    /// Of each of these, one way at least.
    pub any: BTreeSet<Box<[Way]>>,
    /// What holds of all keys.
    pub names: BTreeSet<Literal>,
    /// The keys that schemas declare, in their order.
    pub orders: BTreeSet<(u32, Arc<[Arc<str>]>)>,
}

impl Objects {
    /// Adds an assertion; false if nothing is left.
    pub fn add(&mut self, atom: &ObjectAtom) -> bool {
        if self.excludes(atom) {
            return false;
        }
        match atom {
            ObjectAtom::Has(key) => drop(self.has.insert(key.clone())),
            ObjectAtom::AtLeast(n) => self.at_least = self.at_least.max(*n),
            ObjectAtom::AtMost(n) => self.at_most = Some(self.at_most.map_or(*n, |most| most.min(*n))),
            ObjectAtom::Every(_, Literal::TRUE) => {}
            ObjectAtom::Every(Keys::All, Literal::FALSE) => self.at_most = Some(0),
            ObjectAtom::Every(keys, literal) => drop(self.every.insert((keys.clone(), *literal))),
            ObjectAtom::Some(Keys::Key(key), Literal::TRUE) => drop(self.has.insert(key.clone())),
            ObjectAtom::Some(keys, literal) => drop(self.some.insert((keys.clone(), *literal))),
            ObjectAtom::Names(literal) => drop(self.names.insert(*literal)),
            ObjectAtom::Order(schema, keys) => drop(self.orders.insert((*schema, keys.clone()))),
        }
        let least = self.at_least.max(self.has.len() as u64);
        self.at_most.is_none_or(|most| least <= most)
    }

    /// Whether an assertion about one key contradicts one that was added before.
    fn excludes(&self, atom: &ObjectAtom) -> bool {
        match atom {
            ObjectAtom::Some(_, Literal::FALSE) => true,
            ObjectAtom::Has(key) | ObjectAtom::Some(Keys::Key(key), Literal::TRUE) => {
                self.every.contains(&(Keys::Key(key.clone()), Literal::FALSE))
            }
            ObjectAtom::Every(Keys::Key(key), Literal::FALSE) => self.has.contains(key),
            _ => false,
        }
    }

    /// Whether nothing is left with one more assertion about whether a key occurs.
    pub fn is_impossible_with(&self, atom: &ObjectAtom) -> bool {
        let is_new = matches!(atom, ObjectAtom::Has(key) if !self.has.contains(key));
        let least = self.has.len() as u64 + u64::from(is_new);
        self.excludes(atom) || self.at_most.is_some_and(|most| least > most)
    }
}

/// A range of places in an array, the end excluded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Places {
    /// The first.
    pub from: u64,
    /// The first that is beyond it; `None` for all from there on.
    pub to: Option<u64>,
}

impl Places {
    /// All places.
    pub const ALL: Self = Self { from: 0, to: None };

    /// Whether a place is in it.
    pub fn contains(self, place: u64) -> bool {
        place >= self.from && self.to.is_none_or(|to| place < to)
    }
}

/// An assertion about an array.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ArrayAtom {
    /// It has at least so many items.
    AtLeast(u64),
    /// It has at most so many.
    AtMost(u64),
    /// All items there are so.
    Every(Places, Literal),
    /// An item there is so.
    Some(Places, Literal),
    /// So many items are so: from, to.
    Contains(Literal, u64, Option<u64>),
    /// All items differ, or two are equal.
    Unique(bool),
}

/// What is asserted of an array.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Arrays {
    /// The fewest items.
    pub at_least: u64,
    /// The most.
    pub at_most: Option<u64>,
    /// What holds of all items of a range.
    pub every: BTreeSet<(Places, Literal)>,
    /// What holds of some item of a range each.
    pub some: BTreeSet<(Places, Literal)>,
    /// Of how many items something holds.
    pub contains: BTreeSet<(Literal, u64, Option<u64>)>,
    /// Whether all items differ, or two are equal.
    pub unique: Option<bool>,
}

impl Arrays {
    /// Adds an assertion; false if nothing is left.
    pub fn add(&mut self, atom: &ArrayAtom) -> bool {
        match atom {
            ArrayAtom::AtLeast(n) => self.at_least = self.at_least.max(*n),
            ArrayAtom::AtMost(n) => self.at_most = Some(self.at_most.map_or(*n, |most| most.min(*n))),
            ArrayAtom::Every(_, Literal::TRUE) => {}
            ArrayAtom::Every(Places { from, to: None }, Literal::FALSE) => {
                self.at_most = Some(self.at_most.map_or(*from, |most| most.min(*from)));
            }
            ArrayAtom::Every(places, literal) => drop(self.every.insert((*places, *literal))),
            ArrayAtom::Some(_, Literal::FALSE) => return false,
            ArrayAtom::Some(places, Literal::TRUE) if places.to.is_none() => {
                self.at_least = self.at_least.max(places.from + 1);
            }
            ArrayAtom::Some(places, literal) => {
                self.at_least = self.at_least.max(places.from + 1);
                self.some.insert((*places, *literal));
            }
            ArrayAtom::Contains(literal, min, max) => {
                self.at_least = self.at_least.max(*min);
                self.contains.insert((*literal, *min, *max));
            }
            ArrayAtom::Unique(unique) => {
                if *self.unique.get_or_insert(*unique) != *unique {
                    return false;
                }
                if !unique {
                    self.at_least = self.at_least.max(2);
                }
            }
        }
        self.at_most.is_none_or(|most| self.at_least <= most)
    }
}

/// What one alternative asserts of a value, by its type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Clause {
    /// `null`
    Null,
    /// `false`, `true`, or both.
    Bool {
        /// Whether `false` is meant.
        falsehood: bool,
        /// Whether `true` is meant.
        truth: bool,
    },
    /// A number.
    Number(Numbers),
    /// A string of which all of these hold.
    Text(BTreeSet<TextAtom>),
    /// An array.
    Array(Arrays),
    /// An object.
    Object(Objects),
}
