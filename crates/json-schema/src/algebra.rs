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
//! may come to, [`Limits::steps`] what it takes to find them all.
//!
//! | module | what |
//! |---|---|
//! | `expansion` | the clauses of a set |
//! | `values` | whether literals hold of a value |

mod expansion;
mod values;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use anygram_bits::work::{Cancel, Work};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::atoms::{
    ArrayAtom, Arrays, Clause, Keys, Literal, NumberAtom, ObjectAtom, Objects, Places, SetId, TextAtom,
};
use crate::document::{Documents, NodeId, ResourceId};
use crate::refusal::{Kind, Refusal};
use crate::strings::Strings;
use crate::value::Value;

use values::canonical;

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
    /// Steps to find them: literals and parts of schemas that are looked at.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { clauses: 4_000, all_clauses: 200_000, steps: 20_000_000 }
    }
}

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
    work: Work,
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
    pub fn new(
        documents: Documents<'a>,
        asserts_formats: bool,
        limits: Limits,
        cancel: Option<&Cancel>,
    ) -> Self {
        let work = Work::new(limits.steps, "schema_steps");
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
            work: match cancel {
                Some(cancel) => work.with_cancel(cancel.clone()),
                None => work,
            },
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

    /// Counts steps.
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Refusal> {
        self.work.spend(steps).map_err(Refusal::stopped)
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

    fn circular(&self, literal: Literal) -> Refusal {
        let pointer = match &self.meanings[literal.index()] {
            Meaning::Node { node, .. } => self.documents.node(*node).pointer.to_string(),
            _ => String::new(),
        };
        let message = "its references lead back to itself without a step into the value: it says nothing";
        Refusal::new(Kind::Unsupported, &pointer, message).keyword("$ref")
    }
}
