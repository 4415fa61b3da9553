//! The clauses of a set: alternatives, each about values of one type.
//!
//! A clause in the making ([`Partial`]) has an agenda of what it still has to satisfy. What is no alternative
//! is asserted at once; of alternatives those are left out first that cannot be, and only then is one chosen.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{Algebra, Formula, Type};
use crate::atoms::{
    Arrays, Clause, Keys, Literal, Numbers, ObjectAtom, Objects, Places, SetId, TextAtom, Way,
};
use crate::refusal::{Kind, Refusal};
use crate::value::{Decimal, Value};

/// Alternatives that an object's automaton may wait for.
const MANY_WAYS: usize = 1_000;

impl Algebra<'_> {
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
                    Some(alternatives) => {
                        let size = partial.seen.len() + partial.choices.len();
                        self.spend(alternatives.len().saturating_mul(1 + size))?;
                        agenda.extend(alternatives.iter().rev().map(|formula| {
                            let mut next = partial.clone();
                            next.agenda.push(Todo::Formula(formula.clone()));
                            next
                        }))
                    }
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
            self.spend(1)?;
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
        self.spend(1)?;
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
