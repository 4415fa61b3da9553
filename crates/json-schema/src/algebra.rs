//! Schemas as sets of literals, expanded to clauses.
//!
//! A *literal* is a schema or its negation. What a place in a text has to satisfy is a set of literals, all
//! of which hold; such sets are the nonterminals of the grammar. Expanding a set gives *clauses*:
//! alternatives, each about values of one type, whose parts are literals about the values below. Negation is
//! pushed inwards to these. Sets are interned, so recursion comes to an end: an alternating automaton over
//! trees is made nondeterministic, as far as it is needed (Attouche and others, *Witness Generation for JSON
//! Schema*, arXiv 2202.12849).
//!
//! What stays true: the clauses of a set have exactly the values of which all its literals hold. Cost:
//! alternatives multiply where `anyOf`, `oneOf`, `not` and `if` meet; [`Limits::clauses`] bounds what one set
//! may come to.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::atoms::{
    ArrayAtom, Arrays, Clause, Keys, Literal, NumberAtom, Numbers, ObjectAtom, Objects, Places, SetId,
    TextAtom, Way,
};
use crate::document::{Documents, NodeId, ResourceId};
use crate::refusal::{Kind, Refusal};
use crate::strings::Strings;
use crate::value::{Decimal, Value};

/// The types of values. (An integer is a number.)
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Type {
    /// `null`
    Null,
    /// `true` and `false`
    Bool,
    /// Numbers.
    Number,
    /// Strings.
    String,
    /// Arrays.
    Array,
    /// Objects.
    Object,
}

impl Type {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Null, Self::Bool, Self::Number, Self::String, Self::Array, Self::Object];

    /// The type of a value.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

/// Bounds on what a schema may expand to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Clauses of one set.
    pub clauses: usize,
    /// Clauses of all sets.
    pub all_clauses: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { clauses: 4_000, all_clauses: 200_000 }
    }
}

/// Literals within literals beyond which one is taken for defined by itself.
const MAX_NESTING: usize = 2_000;

/// Alternatives that an object's automaton may wait for.
const MANY_WAYS: usize = 1_000;

/// What a literal stands for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Meaning {
    True,
    False,
    Node {
        node: NodeId,
        scope: u32,
        negated: bool,
    },
    Const {
        value: u32,
        negated: bool,
    },
    /// Some of these hold, or none does.
    Either {
        literals: Box<[Literal]>,
        negated: bool,
    },
}

/// What is asserted of a value whose type is known.
#[derive(Clone, Debug)]
pub(crate) enum Formula {
    True,
    False,
    Literal(Literal),
    All(Rc<[Formula]>),
    Any(Rc<[Formula]>),
    Number(NumberAtom),
    Text(TextAtom),
    Object(ObjectAtom),
    Array(ArrayAtom),
    /// One of some interned values, sorted.
    OneOf(Arc<[u32]>),
    /// None of them.
    NotIn(Arc<[u32]>),
}

impl Formula {
    /// One of some interned values.
    pub(crate) fn one_of(mut values: Vec<u32>) -> Self {
        values.sort_unstable();
        values.dedup();
        Self::OneOf(values.into())
    }

    /// Adds the literals about the same value.
    fn literals(&self, found: &mut Vec<Literal>) {
        match self {
            Self::Literal(literal) => found.push(*literal),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.literals(found)),
            _ => {}
        }
    }

    pub(crate) fn all(parts: Vec<Self>) -> Self {
        let mut kept = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Self::True | Self::Literal(Literal::TRUE) => {}
                Self::False | Self::Literal(Literal::FALSE) => return Self::False,
                Self::All(inner) => kept.extend_from_slice(&inner),
                part => kept.push(part),
            }
        }
        match kept.len() {
            0 => Self::True,
            1 => kept.swap_remove(0),
            _ => Self::All(kept.into()),
        }
    }

    pub(crate) fn any(parts: Vec<Self>) -> Self {
        let mut kept = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Self::False | Self::Literal(Literal::FALSE) => {}
                Self::True | Self::Literal(Literal::TRUE) => return Self::True,
                Self::Any(inner) => kept.extend_from_slice(&inner),
                part => kept.push(part),
            }
        }
        match kept.len() {
            0 => Self::False,
            1 => kept.swap_remove(0),
            _ => Self::Any(kept.into()),
        }
    }
}

/// The literals, sets and clauses of one schema, made as they are asked for.
pub struct Algebra<'a> {
    pub(crate) documents: Documents<'a>,
    /// Patterns and formats.
    pub strings: Strings,
    meanings: Vec<Meaning>,
    literals: FxHashMap<Meaning, Literal>,
    /// Of each literal, by type.
    formulas: Vec<[Option<Formula>; Type::ALL.len()]>,
    sets: Vec<Rc<[Literal]>>,
    set_ids: FxHashMap<Rc<[Literal]>, SetId>,
    expanded: FxHashMap<SetId, Rc<[Clause]>>,
    values: Vec<Value>,
    value_ids: FxHashMap<String, u32>,
    scopes: Vec<Box<[ResourceId]>>,
    scope_ids: FxHashMap<Box<[ResourceId]>, u32>,
    overlaps: FxHashMap<(Literal, Literal), bool>,
    comparing: FxHashSet<(Literal, Literal)>,
    /// Literals whose references come to an end, by type; false while that is looked into.
    guarded: Vec<[Option<bool>; Type::ALL.len()]>,
    /// How deep evaluation is nested.
    depth: usize,
    n_clauses: usize,
    limits: Limits,
    pub(crate) asserts_formats: bool,
    pub(crate) order: KeyOrder,
    /// Whether objects that declare keys have no others, unless a keyword asks for them.
    pub(crate) declared_only: bool,
}

/// The order of an object's keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum KeyOrder {
    /// Any.
    #[default]
    Any,
    /// As schemas declare them; others come last.
    Schema,
    /// These come first, in this order; others in any.
    First(Vec<String>),
}

impl KeyOrder {
    /// The rank of keys that nobody names.
    pub(crate) fn other_rank(&self) -> u32 {
        match self {
            Self::Any => 0,
            Self::Schema => u32::MAX,
            Self::First(keys) => keys.len() as u32,
        }
    }

    /// The ranks of keys in an object of which schemas declare keys in some orders; the others have the rank
    /// of keys that nobody names.
    pub(crate) fn ranks<'a>(
        &'a self,
        orders: &'a BTreeSet<(u32, Arc<[Arc<str>]>)>,
    ) -> FxHashMap<&'a str, u32> {
        let mut ranks = FxHashMap::default();
        let mut add = |key: &'a str| {
            let next = ranks.len() as u32;
            ranks.entry(key).or_insert(next);
        };
        match self {
            Self::Any => {}
            Self::Schema => {
                orders.iter().flat_map(|(_, keys)| &**keys).for_each(|key| add(key));
            }
            Self::First(keys) => keys.iter().for_each(|key| add(key)),
        }
        ranks
    }
}

impl<'a> Algebra<'a> {
    /// The algebra of a schema.
    pub fn new(documents: Documents<'a>, asserts_formats: bool, limits: Limits) -> Self {
        let mut this = Self {
            documents,
            strings: Strings::default(),
            meanings: Vec::new(),
            literals: FxHashMap::default(),
            formulas: Vec::new(),
            sets: Vec::new(),
            set_ids: FxHashMap::default(),
            expanded: FxHashMap::default(),
            values: Vec::new(),
            value_ids: FxHashMap::default(),
            scopes: vec![Box::default()],
            scope_ids: FxHashMap::from_iter([(Box::default(), 0)]),
            overlaps: FxHashMap::default(),
            comparing: FxHashSet::default(),
            guarded: Vec::new(),
            depth: 0,
            n_clauses: 0,
            limits,
            asserts_formats,
            order: KeyOrder::Any,
            declared_only: false,
        };
        this.literal(Meaning::True);
        this.literal(Meaning::False);
        this
    }

    /// Sets the order of keys, and whether only declared ones are written.
    pub fn with_keys(self, order: KeyOrder, declared_only: bool) -> Self {
        Self { order, declared_only, ..self }
    }

    /// The set of the schema itself.
    pub fn root(&mut self) -> SetId {
        let root = self.documents.root();
        let scope = self.entered(0, root);
        let literal = self.of_node(root, scope);
        self.set([literal])
    }

    fn literal(&mut self, meaning: Meaning) -> Literal {
        let fresh = Literal::new(self.meanings.len());
        *self.literals.entry(meaning).or_insert_with_key(|meaning| {
            self.meanings.push(meaning.clone());
            self.formulas.push([const { None }; Type::ALL.len()]);
            self.guarded.push([None; Type::ALL.len()]);
            fresh
        })
    }

    /// The literal of a schema.
    pub(crate) fn of_node(&mut self, node: NodeId, scope: u32) -> Literal {
        match self.documents.node(node).value {
            Value::Bool(true) => Literal::TRUE,
            Value::Bool(false) => Literal::FALSE,
            Value::Object(members) if members.is_empty() => Literal::TRUE,
            _ => self.literal(Meaning::Node { node, scope, negated: false }),
        }
    }

    /// The literal that holds of one value only.
    pub(crate) fn of_const(&mut self, value: &Value) -> Literal {
        let value = self.value(value);
        self.literal(Meaning::Const { value, negated: false })
    }

    /// The literal that holds where another does not.
    pub(crate) fn negated(&mut self, literal: Literal) -> Literal {
        let meaning = match self.meanings[literal.index()].clone() {
            Meaning::True => return Literal::FALSE,
            Meaning::False => return Literal::TRUE,
            Meaning::Node { node, scope, negated } => Meaning::Node { node, scope, negated: !negated },
            Meaning::Const { value, negated } => Meaning::Const { value, negated: !negated },
            Meaning::Either { literals, negated } => Meaning::Either { literals, negated: !negated },
        };
        self.literal(meaning)
    }

    /// The literal that holds where one of some does.
    pub(crate) fn either(&mut self, mut literals: Vec<Literal>) -> Literal {
        literals.retain(|&literal| literal != Literal::FALSE);
        if literals.contains(&Literal::TRUE) {
            return Literal::TRUE;
        }
        match *literals {
            [] => Literal::FALSE,
            [only] => only,
            _ => self.literal(Meaning::Either { literals: literals.into(), negated: false }),
        }
    }

    pub(crate) fn value(&mut self, value: &Value) -> u32 {
        let fresh = self.values.len() as u32;
        *self.value_ids.entry(canonical(value)).or_insert_with(|| {
            self.values.push(value.clone());
            fresh
        })
    }

    /// The scope after a schema was entered from another scope.
    pub(crate) fn entered(&mut self, scope: u32, node: NodeId) -> u32 {
        if !self.documents.is_dynamic() {
            return 0;
        }
        let resource = self.documents.node(node).resource;
        let known = &self.scopes[scope as usize];
        if known.contains(&resource) {
            return scope;
        }
        let longer: Box<[ResourceId]> = known.iter().copied().chain([resource]).collect();
        let fresh = self.scopes.len() as u32;
        *self.scope_ids.entry(longer).or_insert_with_key(|longer| {
            self.scopes.push(longer.clone());
            fresh
        })
    }

    pub(crate) fn scope(&self, scope: u32) -> Box<[ResourceId]> {
        self.scopes[scope as usize].clone()
    }

    /// The set of some literals.
    pub fn set(&mut self, literals: impl IntoIterator<Item = Literal>) -> SetId {
        let mut literals: Vec<Literal> =
            literals.into_iter().filter(|&literal| literal != Literal::TRUE).collect();
        literals.sort_unstable();
        literals.dedup();
        if literals.contains(&Literal::FALSE) {
            literals = vec![Literal::FALSE];
        }
        let literals: Rc<[Literal]> = literals.into();
        let fresh = SetId::new(self.sets.len());
        *self.set_ids.entry(literals).or_insert_with_key(|literals| {
            self.sets.push(literals.clone());
            fresh
        })
    }

    /// The literals of a set.
    pub fn members(&self, set: SetId) -> Rc<[Literal]> {
        self.sets[set.index()].clone()
    }

    /// The number of sets so far.
    pub fn n_sets(&self) -> usize {
        self.sets.len()
    }

    /// Where a set comes from, for messages: the JSON pointers of its schemas.
    pub fn pointer(&self, set: SetId) -> String {
        let pointers =
            self.sets[set.index()].iter().filter_map(|literal| match &self.meanings[literal.index()] {
                Meaning::Node { node, .. } => Some(self.documents.node(*node).pointer.to_string()),
                _ => None,
            });
        pointers.min_by_key(String::len).unwrap_or_default()
    }

    /// What a literal asserts of values of a type.
    pub(crate) fn formula(&mut self, literal: Literal, of: Type) -> Result<Formula, Refusal> {
        if let Some(known) = &self.formulas[literal.index()][of as usize] {
            return Ok(known.clone());
        }
        let formula = match self.meanings[literal.index()].clone() {
            Meaning::True => Formula::True,
            Meaning::False => Formula::False,
            Meaning::Node { node, scope, negated: false } => self.node_formula(node, scope, of)?,
            Meaning::Const { value, negated: false } => Formula::OneOf([value].into()),
            Meaning::Const { value, negated: true } => {
                let value = self.values[value as usize].clone();
                self.not_const(&value, of)
            }
            Meaning::Either { literals, negated } => {
                let mut parts = Vec::with_capacity(literals.len());
                for literal in literals {
                    parts.push(Formula::Literal(if negated { self.negated(literal) } else { literal }));
                }
                if negated { Formula::all(parts) } else { Formula::any(parts) }
            }
            Meaning::Node { node, scope, negated: true } => {
                let positive = self.of_node(node, scope);
                let formula = self.formula(positive, of)?;
                self.negation(&formula)?
            }
        };
        self.formulas[literal.index()][of as usize] = Some(formula.clone());
        Ok(formula)
    }

    /// That a value is not this one.
    fn not_const(&mut self, value: &Value, of: Type) -> Formula {
        if Type::of(value) != of {
            return Formula::True;
        }
        match value {
            Value::Array(items) => {
                let n = items.len() as u64;
                let mut parts = vec![Formula::Array(ArrayAtom::AtLeast(n + 1))];
                parts.extend(n.checked_sub(1).map(|n| Formula::Array(ArrayAtom::AtMost(n))));
                for (at, item) in (0..).zip(items) {
                    let same = self.of_const(item);
                    let places = Places { from: at, to: Some(at + 1) };
                    parts.push(Formula::Array(ArrayAtom::Some(places, self.negated(same))));
                }
                Formula::any(parts)
            }
            Value::Object(members) => {
                let mut parts = vec![Formula::Object(ObjectAtom::AtLeast(members.len() as u64 + 1))];
                for (key, value) in members {
                    let (same, keys) = (self.of_const(value), Keys::Key(key.clone()));
                    parts.push(Formula::Object(ObjectAtom::Every(keys.clone(), Literal::FALSE)));
                    parts.push(Formula::Object(ObjectAtom::Some(keys, self.negated(same))));
                }
                Formula::any(parts)
            }
            value => {
                let value = self.value(value);
                Formula::NotIn([value].into())
            }
        }
    }

    /// What holds of the values of a type of which a formula does not.
    pub(crate) fn negation(&mut self, formula: &Formula) -> Result<Formula, Refusal> {
        Ok(match formula {
            Formula::True => Formula::False,
            Formula::False => Formula::True,
            Formula::Literal(literal) => Formula::Literal(self.negated(*literal)),
            Formula::All(parts) => {
                let parts = parts.iter().map(|part| self.negation(part)).collect::<Result<_, _>>()?;
                Formula::any(parts)
            }
            Formula::Any(parts) => {
                let parts = parts.iter().map(|part| self.negation(part)).collect::<Result<_, _>>()?;
                Formula::all(parts)
            }
            Formula::Number(atom) => match (atom.negated(), atom) {
                (Ok(negated), _) => Formula::Number(negated),
                (Err(_), NumberAtom::NotIn(values)) => {
                    let values = values.iter().map(|&value| self.value(&Value::Number(value)));
                    Formula::one_of(values.collect())
                }
                (Err(_), _) => Formula::False,
            },
            Formula::Text(atom) => self.text_negation(atom),
            Formula::Object(atom) => self.object_negation(atom),
            Formula::Array(atom) => self.array_negation(atom),
            Formula::OneOf(values) => Formula::NotIn(values.clone()),
            Formula::NotIn(values) => Formula::OneOf(values.clone()),
        })
    }

    fn text_negation(&mut self, atom: &TextAtom) -> Formula {
        Formula::Text(match atom {
            TextAtom::AtLeast(0) => return Formula::False,
            TextAtom::AtLeast(n) => TextAtom::AtMost(n - 1),
            TextAtom::AtMost(n) => TextAtom::AtLeast(n.saturating_add(1)),
            TextAtom::Pattern(id, is) => TextAtom::Pattern(*id, !is),
            TextAtom::Format(id, is) => TextAtom::Format(*id, !is),
            TextAtom::NotIn(texts) => TextAtom::OneOf(texts.clone()),
            TextAtom::OneOf(texts) => TextAtom::NotIn(texts.clone()),
        })
    }

    fn object_negation(&mut self, atom: &ObjectAtom) -> Formula {
        Formula::Object(match atom {
            ObjectAtom::Has(key) => ObjectAtom::Every(Keys::Key(key.clone()), Literal::FALSE),
            ObjectAtom::AtLeast(0) => return Formula::False,
            ObjectAtom::AtLeast(n) => ObjectAtom::AtMost(n - 1),
            ObjectAtom::AtMost(n) => ObjectAtom::AtLeast(n.saturating_add(1)),
            ObjectAtom::Every(keys, literal) => ObjectAtom::Some(keys.clone(), self.negated(*literal)),
            ObjectAtom::Some(keys, literal) => ObjectAtom::Every(keys.clone(), self.negated(*literal)),
            ObjectAtom::Names(literal) => ObjectAtom::Some(Keys::Unlike(*literal), Literal::TRUE),
            // It asserts nothing.
            ObjectAtom::Order(..) => return Formula::False,
        })
    }

    fn array_negation(&mut self, atom: &ArrayAtom) -> Formula {
        Formula::Array(match atom {
            ArrayAtom::AtLeast(0) => return Formula::False,
            ArrayAtom::AtLeast(n) => ArrayAtom::AtMost(n - 1),
            ArrayAtom::AtMost(n) => ArrayAtom::AtLeast(n.saturating_add(1)),
            ArrayAtom::Every(places, literal) => ArrayAtom::Some(*places, self.negated(*literal)),
            ArrayAtom::Some(places, literal) => ArrayAtom::Every(*places, self.negated(*literal)),
            ArrayAtom::Unique(unique) => ArrayAtom::Unique(!unique),
            ArrayAtom::Contains(literal, min, max) => {
                let mut parts = Vec::new();
                if let Some(fewer) = min.checked_sub(1) {
                    parts.push(Formula::Array(ArrayAtom::Contains(*literal, 0, Some(fewer))));
                }
                if let Some(max) = max {
                    parts.push(Formula::Array(ArrayAtom::Contains(*literal, max.saturating_add(1), None)));
                }
                return Formula::any(parts);
            }
        })
    }

    /// Whether both can hold of one value; if that is not seen at once, yes.
    pub(crate) fn may_overlap(&mut self, a: Literal, b: Literal) -> Result<bool, Refusal> {
        let key = (a.min(b), a.max(b));
        if let Some(&known) = self.overlaps.get(&key) {
            return Ok(known);
        }
        if !self.comparing.insert(key) {
            return Ok(true);
        }
        let both = self.set([a, b]);
        let is_empty = self.is_surely_empty(both, 3);
        self.comparing.remove(&key);
        let overlaps = !is_empty?;
        self.overlaps.insert(key, overlaps);
        Ok(overlaps)
    }

    /// Whether no value is in a set, as far as that shows within some levels.
    fn is_surely_empty(&mut self, set: SetId, depth: usize) -> Result<bool, Refusal> {
        if self.sets[set.index()].is_empty() {
            return Ok(false);
        }
        let clauses = match self.expand(set) {
            Ok(clauses) => clauses,
            Err(refusal) if refusal.kind == Kind::Limit => return Ok(false),
            Err(refusal) => return Err(refusal),
        };
        if depth == 0 {
            return Ok(clauses.is_empty());
        }
        for clause in clauses.iter() {
            let is_empty = match clause {
                Clause::Object(objects) => self.lacks_member(objects, depth)?,
                Clause::Array(arrays) => self.lacks_item(arrays, depth)?,
                Clause::Text(atoms) => self.strings.are_surely_none(atoms),
                _ => false,
            };
            if !is_empty {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn lacks_member(&mut self, objects: &Objects, depth: usize) -> Result<bool, Refusal> {
        for key in &objects.has {
            let set = self.member(objects, key)?;
            if self.is_surely_empty(set, depth - 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn lacks_item(&mut self, arrays: &Arrays, depth: usize) -> Result<bool, Refusal> {
        for at in 0..arrays.at_least.min(4) {
            let set = self.item(arrays, at);
            if self.is_surely_empty(set, depth - 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What holds of the member with a key.
    pub fn member(&mut self, objects: &Objects, key: &Arc<str>) -> Result<SetId, Refusal> {
        let mut literals = Vec::new();
        let name = Value::String(key.clone());
        for &literal in &objects.names {
            if !self.contains(literal, &name)? {
                return Ok(self.set([Literal::FALSE]));
            }
        }
        // What is about one key stands first, by the key.
        let only = |literal| (Keys::Key(key.clone()), literal);
        let of_key = objects.every.range(only(Literal::new(0))..=only(Literal(u32::MAX)));
        literals.extend(of_key.map(|&(_, literal)| literal));
        for (keys, literal) in objects.every.iter().rev() {
            if matches!(keys, Keys::Key(_)) {
                break;
            }
            if self.selects(keys, key)? {
                literals.push(*literal);
            }
        }
        Ok(self.set(literals))
    }

    /// Whether a key is one of these.
    pub(crate) fn selects(&mut self, keys: &Keys, key: &Arc<str>) -> Result<bool, Refusal> {
        Ok(match keys {
            Keys::Key(only) => only == key,
            Keys::Pattern(pattern) => self.strings.finds(*pattern, key)?,
            Keys::Others(listed, patterns) => {
                if listed.binary_search(key).is_ok() {
                    return Ok(false);
                }
                for &pattern in patterns.iter() {
                    if self.strings.finds(pattern, key)? {
                        return Ok(false);
                    }
                }
                true
            }
            Keys::Unlike(literal) => !self.contains(*literal, &Value::String(key.clone()))?,
            Keys::All => true,
        })
    }

    /// What holds of the item at a place.
    pub fn item(&mut self, arrays: &Arrays, place: u64) -> SetId {
        let here = arrays.every.iter().filter(|(places, _)| places.contains(place));
        let literals: Vec<Literal> = here.map(|&(_, literal)| literal).collect();
        self.set(literals)
    }

    /// The clauses of a set.
    pub fn expand(&mut self, set: SetId) -> Result<Rc<[Clause]>, Refusal> {
        if let Some(known) = self.expanded.get(&set) {
            return Ok(known.clone());
        }
        let literals = self.members(set);
        let mut clauses = Vec::new();
        for of in Type::ALL {
            for &literal in literals.iter() {
                self.guard(literal, of)?;
            }
            // Of most types there are no values, which the formulas tell.
            if self.is_none_of(&literals, of)? {
                continue;
            }
            let n_before = clauses.len();
            let first = literals.iter().map(|&literal| Todo::Formula(Formula::Literal(literal)));
            let first = Partial::new(of, first.collect());
            let mut agenda = vec![first];
            let mut finite: BTreeSet<u32> = BTreeSet::new();
            while let Some(mut partial) = agenda.pop() {
                match self.settle(&mut partial)? {
                    Settled::Impossible => continue,
                    Settled::OneOf(values) => {
                        finite.extend(values.iter());
                        continue;
                    }
                    Settled::Open => {}
                }
                match partial.take_choice() {
                    None => clauses.push(partial.finish()),
                    Some(alternatives) => agenda.extend(alternatives.iter().rev().map(|formula| {
                        let mut next = partial.clone();
                        next.agenda.push(Todo::Formula(formula.clone()));
                        next
                    })),
                }
                if clauses.len() + agenda.len() > self.limits.clauses {
                    return Err(self.too_many(set, self.limits.clauses, "clauses"));
                }
            }
            self.finish_values(&literals, of, finite, &mut clauses)?;
            leave_out_repeated(&mut clauses, n_before);
        }
        self.n_clauses += clauses.len();
        if self.n_clauses > self.limits.all_clauses {
            return Err(self.too_many(set, self.limits.all_clauses, "all_clauses"));
        }
        let clauses: Rc<[Clause]> = clauses.into();
        self.expanded.insert(set, clauses.clone());
        Ok(clauses)
    }

    fn too_many(&self, set: SetId, limit: usize, option: &str) -> Refusal {
        let message = format!(
            "its alternatives multiply to more than {limit}; write alternatives that exclude each other, or \
             raise the limit `{option}`"
        );
        Refusal::new(Kind::Limit, &self.pointer(set), message)
    }

    /// Those of some values that are in a set, as clauses.
    fn finish_values(
        &mut self,
        literals: &[Literal],
        of: Type,
        values: BTreeSet<u32>,
        clauses: &mut Vec<Clause>,
    ) -> Result<(), Refusal> {
        let (mut numbers, mut texts, mut bools) = (BTreeSet::new(), Vec::new(), [false; 2]);
        for id in values {
            let value = self.values[id as usize].clone();
            if Type::of(&value) != of {
                continue;
            }
            let mut holds = true;
            for &literal in literals {
                holds = holds && self.contains(literal, &value)?;
            }
            if !holds {
                continue;
            }
            match value {
                Value::Null => clauses.push(Clause::Null),
                Value::Bool(truth) => bools[usize::from(truth)] = true,
                Value::Number(number) => drop(numbers.insert(number)),
                Value::String(text) => texts.push(text),
                Value::Array(items) => clauses.push(self.array_of(&items)),
                Value::Object(members) => clauses.push(self.object_of(&members)),
            }
        }
        if bools != [false; 2] {
            clauses.push(Clause::Bool { falsehood: bools[0], truth: bools[1] });
        }
        if !numbers.is_empty() {
            clauses.push(Clause::Number(Numbers { one_of: Some(numbers), ..Numbers::default() }));
        }
        if !texts.is_empty() {
            texts.sort_unstable();
            clauses.push(Clause::Text([TextAtom::OneOf(texts.into())].into()));
        }
        Ok(())
    }

    fn array_of(&mut self, items: &[Value]) -> Clause {
        let n = items.len() as u64;
        let place = |at| Places { from: at, to: Some(at + 1) };
        let every = (0..).zip(items).map(|(at, item)| (place(at), self.of_const(item))).collect();
        Clause::Array(Arrays { at_least: n, at_most: Some(n), every, ..Arrays::default() })
    }

    fn object_of(&mut self, members: &[(Arc<str>, Value)]) -> Clause {
        let n = members.len() as u64;
        let every =
            members.iter().map(|(key, value)| (Keys::Key(key.clone()), self.of_const(value))).collect();
        let has = members.iter().map(|(key, _)| key.clone()).collect();
        Clause::Object(Objects { has, at_least: n, at_most: Some(n), every, ..Objects::default() })
    }

    /// Works off what a clause in the making has to satisfy.
    fn settle(&mut self, partial: &mut Partial) -> Result<Settled, Refusal> {
        while let Some(todo) = partial.agenda.pop() {
            let settled = match todo {
                Todo::Formula(formula) => self.settle_one(partial, &formula)?,
                Todo::Parts(_, 0) => None,
                Todo::Parts(parts, n) => {
                    partial.agenda.push(Todo::Parts(parts.clone(), n - 1));
                    self.settle_one(partial, &parts[n - 1])?
                }
            };
            if let Some(settled) = settled {
                return Ok(settled);
            }
        }
        self.simplify(partial)
    }

    /// Works off a formula; what that settles, if it does.
    fn settle_one(&mut self, partial: &mut Partial, formula: &Formula) -> Result<Option<Settled>, Refusal> {
        match formula {
            Formula::True => {}
            Formula::False => return Ok(Some(Settled::Impossible)),
            Formula::Literal(literal) => {
                if partial.seen.insert(*literal) {
                    let formula = self.formula(*literal, partial.of)?;
                    partial.agenda.push(Todo::Formula(formula));
                }
            }
            Formula::All(parts) => partial.agenda.push(Todo::Parts(parts.clone(), parts.len())),
            Formula::Any(parts) => partial.choices.push(parts.clone()),
            Formula::OneOf(values) => return Ok(Some(Settled::OneOf(values.clone()))),
            formula => {
                if !self.assert(partial, formula) {
                    return Ok(Some(Settled::Impossible));
                }
            }
        }
        Ok(None)
    }

    /// Whether one of some literals says that no value of a type is meant.
    fn is_none_of(&mut self, literals: &[Literal], of: Type) -> Result<bool, Refusal> {
        for &literal in literals {
            if matches!(self.formula(literal, of)?, Formula::False) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Leaves out alternatives that are impossible; where one is left, it is no choice.
    fn simplify(&mut self, partial: &mut Partial) -> Result<Settled, Refusal> {
        let choices = std::mem::take(&mut partial.choices);
        let mut is_settled = true;
        for alternatives in choices {
            let mut kept = Vec::with_capacity(alternatives.len());
            for formula in alternatives.iter() {
                if !self.is_impossible(formula, partial, 6)? {
                    kept.push(formula.clone());
                }
            }
            match kept.len() {
                0 => return Ok(Settled::Impossible),
                1 => {
                    partial.agenda.extend(kept.pop().map(Todo::Formula));
                    is_settled = false;
                }
                // Ways that concern members stay together: the object's automaton waits for any of them.
                _ => match self.ways(&kept, partial.of)? {
                    Some(ways) => drop(partial.objects.any.insert(ways.into_iter().collect())),
                    None => partial.choices.push(kept.into()),
                },
            }
        }
        if is_settled { Ok(Settled::Open) } else { self.settle(partial) }
    }

    /// Alternatives as ways for an object to be, if they are nothing else.
    fn ways(&mut self, alternatives: &[Formula], of: Type) -> Result<Option<BTreeSet<Way>>, Refusal> {
        if of != Type::Object {
            return Ok(None);
        }
        let (mut ways, mut agenda, mut n) = (BTreeSet::new(), alternatives.to_vec(), 0);
        while let Some(formula) = agenda.pop() {
            n += 1;
            let way = match formula {
                Formula::Any(parts) => {
                    agenda.extend_from_slice(&parts);
                    continue;
                }
                Formula::Literal(literal) if n < MANY_WAYS => {
                    agenda.push(self.formula(literal, of)?);
                    continue;
                }
                Formula::False => continue,
                Formula::Object(ObjectAtom::Has(key)) => Way::Some(Keys::Key(key), Literal::TRUE),
                Formula::Object(ObjectAtom::Some(keys, literal)) => Way::Some(keys, literal),
                Formula::Object(ObjectAtom::AtLeast(n)) => Way::AtLeast(n),
                Formula::Object(ObjectAtom::AtMost(n)) => Way::AtMost(n),
                Formula::Object(ObjectAtom::Every(Keys::Key(key), Literal::FALSE)) => Way::Lacks(key),
                _ => return Ok(None),
            };
            ways.insert(way);
        }
        Ok(Some(ways))
    }

    /// Whether a formula contradicts what a clause in the making asserts, as far as that shows at once.
    fn is_impossible(&mut self, formula: &Formula, partial: &Partial, depth: usize) -> Result<bool, Refusal> {
        Ok(match formula {
            Formula::False => true,
            Formula::Literal(literal) => {
                if partial.seen.contains(literal) || depth == 0 {
                    return Ok(false);
                }
                let formula = self.formula(*literal, partial.of)?;
                self.is_impossible(&formula, partial, depth - 1)?
            }
            Formula::All(parts) => {
                for part in parts.iter() {
                    if self.is_impossible(part, partial, depth)? {
                        return Ok(true);
                    }
                }
                false
            }
            Formula::Number(atom) => !partial.numbers.clone().add(atom),
            Formula::Object(
                atom @ (ObjectAtom::Has(_) | ObjectAtom::Every(Keys::Key(_), Literal::FALSE)),
            ) => partial.objects.is_impossible_with(atom),
            _ => false,
        })
    }

    fn assert(&mut self, partial: &mut Partial, formula: &Formula) -> bool {
        match formula {
            Formula::Number(atom) => partial.numbers.add(atom),
            Formula::Text(atom) => {
                partial.texts.insert(atom.clone());
                true
            }
            Formula::Object(atom) => partial.objects.add(atom),
            Formula::Array(atom) => partial.arrays.add(atom),
            Formula::NotIn(values) => self.exclude(partial, values),
            _ => true,
        }
    }

    fn exclude(&mut self, partial: &mut Partial, values: &[u32]) -> bool {
        let (mut numbers, mut texts): (Vec<Decimal>, Vec<Arc<str>>) = (Vec::new(), Vec::new());
        for &id in values {
            let value = self.values[id as usize].clone();
            match (&value, partial.of) {
                (Value::Null, Type::Null) => return false,
                (Value::Bool(truth), Type::Bool) => partial.bools[usize::from(*truth)] = false,
                (Value::Number(number), Type::Number) => numbers.push(*number),
                (Value::String(text), Type::String) => texts.push(text.clone()),
                (Value::Array(_), Type::Array) | (Value::Object(_), Type::Object) => {
                    let same = self.of_const(&value);
                    partial.agenda.push(Todo::Formula(Formula::Literal(self.negated(same))));
                }
                _ => {}
            }
        }
        if !texts.is_empty() {
            texts.sort_unstable();
            partial.texts.insert(TextAtom::NotIn(texts.into()));
        }
        partial.numbers.not_in.extend(numbers);
        partial.of != Type::Bool || partial.bools != [false; 2]
    }

    /// Checks that a literal is not defined by itself, about one and the same value.
    fn guard(&mut self, literal: Literal, of: Type) -> Result<(), Refusal> {
        let mut path = vec![(literal, None::<Vec<Literal>>)];
        while let Some((at, below)) = path.last_mut() {
            let at = *at;
            let Some(below) = below else {
                match self.guarded[at.index()][of as usize] {
                    Some(true) => drop(path.pop()),
                    Some(false) => return Err(self.circular(at)),
                    None => {
                        let mut found = Vec::new();
                        self.formula(at, of)?.literals(&mut found);
                        self.guarded[at.index()][of as usize] = Some(found.is_empty());
                        match path.last_mut() {
                            Some(last) if !found.is_empty() => last.1 = Some(found),
                            _ => drop(path.pop()),
                        }
                    }
                }
                continue;
            };
            match below.pop() {
                Some(next) => path.push((next, None)),
                None => {
                    self.guarded[at.index()][of as usize] = Some(true);
                    path.pop();
                }
            }
        }
        Ok(())
    }

    fn circular(&self, literal: Literal) -> Refusal {
        let pointer = match &self.meanings[literal.index()] {
            Meaning::Node { node, .. } => self.documents.node(*node).pointer.to_string(),
            _ => String::new(),
        };
        let message = "its references lead back to itself without a step into the value: it says nothing";
        Refusal::new(Kind::Unsupported, &pointer, message).keyword("$ref")
    }

    /// Whether a literal holds of a value.
    pub fn contains(&mut self, literal: Literal, value: &Value) -> Result<bool, Refusal> {
        if self.depth > MAX_NESTING {
            return Err(self.circular(literal));
        }
        self.depth += 1;
        let formula = self.formula(literal, Type::of(value));
        let holds = formula.and_then(|formula| self.holds(&formula, value));
        self.depth -= 1;
        holds
    }

    fn holds(&mut self, formula: &Formula, value: &Value) -> Result<bool, Refusal> {
        Ok(match formula {
            Formula::True => true,
            Formula::False => false,
            Formula::Literal(literal) => self.contains(*literal, value)?,
            Formula::All(parts) => {
                for part in parts.iter() {
                    if !self.holds(part, value)? {
                        return Ok(false);
                    }
                }
                true
            }
            Formula::Any(parts) => {
                for part in parts.iter() {
                    if self.holds(part, value)? {
                        return Ok(true);
                    }
                }
                false
            }
            Formula::Number(atom) => value.number().is_some_and(|number| atom.holds(number)),
            Formula::Text(atom) => match value.text() {
                Some(text) => self.strings.holds(atom, text)?,
                None => false,
            },
            Formula::OneOf(values) => self.is_one_of(value, values),
            Formula::NotIn(values) => !self.is_one_of(value, values),
            Formula::Object(atom) => self.object_holds(atom, value.members().unwrap_or_default())?,
            Formula::Array(atom) => self.array_holds(atom, value.items().unwrap_or_default())?,
        })
    }

    fn is_one_of(&self, value: &Value, of: &[u32]) -> bool {
        match of {
            [only] => self.values[*only as usize] == *value,
            _ => self.value_ids.get(&canonical(value)).is_some_and(|id| of.binary_search(id).is_ok()),
        }
    }

    fn object_holds(&mut self, atom: &ObjectAtom, members: &[(Arc<str>, Value)]) -> Result<bool, Refusal> {
        let n = members.len() as u64;
        Ok(match atom {
            ObjectAtom::Has(key) => members.iter().any(|(name, _)| name == key),
            ObjectAtom::AtLeast(least) => n >= *least,
            ObjectAtom::AtMost(most) => n <= *most,
            ObjectAtom::Order(..) => true,
            ObjectAtom::Names(literal) => {
                for (name, _) in members {
                    if !self.contains(*literal, &Value::String(name.clone()))? {
                        return Ok(false);
                    }
                }
                true
            }
            ObjectAtom::Every(keys, literal) => {
                for (name, value) in members {
                    if self.selects(keys, name)? && !self.contains(*literal, value)? {
                        return Ok(false);
                    }
                }
                true
            }
            ObjectAtom::Some(keys, literal) => {
                for (name, value) in members {
                    if self.selects(keys, name)? && self.contains(*literal, value)? {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }

    fn array_holds(&mut self, atom: &ArrayAtom, items: &[Value]) -> Result<bool, Refusal> {
        let n = items.len() as u64;
        let count = |this: &mut Self, places: Places, literal: Literal| {
            let mut count = 0u64;
            for (_, item) in (0..).zip(items).filter(|&(at, _)| places.contains(at)) {
                count += u64::from(this.contains(literal, item)?);
            }
            Ok(count)
        };
        Ok(match atom {
            ArrayAtom::AtLeast(least) => n >= *least,
            ArrayAtom::AtMost(most) => n <= *most,
            ArrayAtom::Every(places, literal) => {
                let here = (0..n).filter(|&at| places.contains(at)).count() as u64;
                count(self, *places, *literal)? == here
            }
            ArrayAtom::Some(places, literal) => count(self, *places, *literal)? > 0,
            ArrayAtom::Contains(literal, min, max) => {
                let n = count(self, Places::ALL, *literal)?;
                n >= *min && max.is_none_or(|max| n <= max)
            }
            ArrayAtom::Unique(unique) => {
                let mut seen = FxHashSet::default();
                items.iter().all(|item| seen.insert(canonical(item))) == *unique
            }
        })
    }
}

/// Equal values have equal ones of these.
pub fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
            Value::Object(members) => {
                let mut members: Vec<_> =
                    members.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
                members.sort_by(|a, b| a.0.cmp(&b.0));
                Value::Object(members)
            }
            value => value.clone(),
        }
    }
    sorted(value).to_string()
}

/// What becomes of a clause in the making.
enum Settled {
    Impossible,
    /// Its values are among these.
    OneOf(Arc<[u32]>),
    Open,
}

/// Leaves out clauses that are there before; those from `first` on are of no other type than each other.
fn leave_out_repeated(clauses: &mut Vec<Clause>, first: usize) {
    if clauses.len() - first < 2 {
        return;
    }
    let mut seen = FxHashSet::default();
    let is_new: Vec<bool> = clauses[first..].iter().map(|clause| seen.insert(clause)).collect();
    let mut is_new = std::iter::repeat_n(true, first).chain(is_new);
    clauses.retain(|_| is_new.next() == Some(true));
}

/// What a clause in the making still has to satisfy.
#[derive(Clone)]
enum Todo {
    Formula(Formula),
    /// So many of these, from the first.
    Parts(Rc<[Formula]>, usize),
}

/// A clause in the making.
#[derive(Clone)]
struct Partial {
    of: Type,
    agenda: Vec<Todo>,
    choices: Vec<Rc<[Formula]>>,
    seen: BTreeSet<Literal>,
    bools: [bool; 2],
    numbers: Numbers,
    texts: BTreeSet<TextAtom>,
    objects: Objects,
    arrays: Arrays,
}

impl Partial {
    fn new(of: Type, agenda: Vec<Todo>) -> Self {
        Self {
            of,
            agenda,
            choices: Vec::new(),
            seen: BTreeSet::new(),
            bools: [true; 2],
            numbers: Numbers::default(),
            texts: BTreeSet::new(),
            objects: Objects::default(),
            arrays: Arrays::default(),
        }
    }

    /// The choice with the fewest alternatives.
    fn take_choice(&mut self) -> Option<Rc<[Formula]>> {
        let (at, _) = self.choices.iter().enumerate().min_by_key(|(_, alternatives)| alternatives.len())?;
        Some(self.choices.swap_remove(at))
    }

    fn finish(self) -> Clause {
        match self.of {
            Type::Null => Clause::Null,
            Type::Bool => Clause::Bool { falsehood: self.bools[0], truth: self.bools[1] },
            Type::Number => Clause::Number(self.numbers),
            Type::String => Clause::Text(self.texts),
            Type::Array => Clause::Array(self.arrays),
            Type::Object => Clause::Object(self.objects),
        }
    }
}
