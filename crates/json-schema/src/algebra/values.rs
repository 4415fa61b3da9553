//! Whether literals hold of a value.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{Algebra, Formula, Type};
use crate::atoms::{ArrayAtom, Literal, ObjectAtom, Places};
use crate::refusal::Refusal;
use crate::value::Value;

/// Literals within literals beyond which one is taken for defined by itself.
const MAX_NESTING: usize = 2_000;

impl Algebra<'_> {
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
        self.spend(1)?;
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
pub(super) fn canonical(value: &Value) -> String {
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
