//! Sets with few values, and arrays whose items have to differ where there are only so many.
//!
//! Where what an item may be is one of a few values, the array's automaton remembers which it has seen; so it
//! knows which are left, and whether they are enough. Of larger sets the automaton only counts the items: not
//! more than there are values. That no value comes twice is then for [`crate::memory`].

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::algebra::Algebra;
use crate::atoms::{Numbers, SetId};
use crate::forms::{ArrayForm, Form, Forms, ItemVariant, ObjectForm, ObjectPlace};
use crate::held::Held;
use crate::refusal::{Kind, Refusal};
use crate::strings::Text;
use crate::value::{Decimal, Value};

/// Values that an array's automaton remembers at most.
const FEW: usize = 256;

/// Values that are remembered at most where some item has to be so, which takes a search among all sets of
/// them.
const FEW_SOUGHT: usize = 12;

/// Values of a set that are counted at most. So many items are not written where each has to differ.
const MANY: usize = 10_000;

/// What can go wrong: a limit of the automata of patterns.
type Counted = Result<Option<Vec<Value>>, Refusal>;

impl Forms {
    /// Makes arrays whose items have to differ know the values that there are few of; whether there are such
    /// arrays.
    pub(crate) fn tell_values_apart(&mut self, algebra: &mut Algebra<'_>) -> Result<bool, Refusal> {
        let is_unique = |form: &Form| matches!(form, Form::Array(form) if form.is_unique);
        let mut found: Vec<SetId> =
            self.sets.iter().filter(|(_, forms)| forms.iter().any(is_unique)).map(|(&set, _)| set).collect();
        found.sort_unstable();
        let mut known: FxHashMap<SetId, Option<Vec<Value>>> = FxHashMap::default();
        for &set in &found {
            for at in 0..self.sets[&set].len() {
                let Form::Array(form) = &self.sets[&set][at] else { continue };
                if form.is_unique {
                    let form = (form.clone(), &*algebra.pointer(set));
                    let form = self.told_apart(algebra, form, &mut known)?;
                    self.sets.entry(set).and_modify(|forms| forms[at] = Form::Array(form));
                }
            }
        }
        Ok(!found.is_empty())
    }

    fn told_apart(
        &mut self,
        algebra: &mut Algebra<'_>,
        (mut form, at): (ArrayForm, &str),
        known: &mut FxHashMap<SetId, Option<Vec<Value>>>,
    ) -> Result<ArrayForm, Refusal> {
        let mut numbers: BTreeMap<Held, u32> = BTreeMap::new();
        let (mut n_values, mut is_bounded) = (0usize, form.ranges.len() == 1);
        for (_, variants) in &mut form.ranges {
            let mut apart = Vec::with_capacity(variants.len());
            for &variant in &*variants {
                if !self.alive.contains(&variant.set) {
                    continue;
                }
                let values = match known.get(&variant.set) {
                    Some(values) => values.clone(),
                    None => {
                        let values = self.values(algebra, variant.set, MANY, 0)?;
                        known.insert(variant.set, values.clone());
                        values
                    }
                };
                is_bounded &= values.is_some();
                n_values += values.as_ref().map_or(0, Vec::len);
                match values.filter(|values| values.len() <= FEW) {
                    None => apart.push(variant),
                    Some(values) => {
                        for value in &values {
                            let fresh = numbers.len() as u32;
                            let number = *numbers.entry(Held::from(value)).or_insert(fresh);
                            let literal = algebra.of_const(value);
                            let set = algebra.set([literal]);
                            self.add(algebra, set)?;
                            self.alive.insert(set);
                            apart.push(ItemVariant { set, value: Some(number), ..variant });
                        }
                    }
                }
            }
            *variants = apart;
        }
        form.n_values = numbers.len();
        if form.n_values > FEW_SOUGHT && (form.extras != 0 || !form.contains.is_empty()) {
            let message =
                format!("items that differ, of which some have to be so, and more than {FEW_SOUGHT} values");
            return Err(Refusal::new(Kind::Unsupported, at, message).keyword("uniqueItems"));
        }
        if is_bounded {
            form.at_most = form.at_most.min(n_values as u64);
        }
        Ok(form)
    }

    /// The values of a set, if they are at most `most`; `None` also where that is not found out.
    fn values(&self, algebra: &mut Algebra<'_>, set: SetId, most: usize, depth: usize) -> Counted {
        // Deep down a few values are too many.
        if depth > 8 || !self.alive.contains(&set) {
            return Ok((!self.alive.contains(&set)).then(Vec::new));
        }
        let mut all: BTreeMap<Held, Value> = BTreeMap::new();
        for form in &self.sets[&set] {
            let values = match form {
                Form::Null => Some(vec![Value::Null]),
                Form::Bool(falsehood, truth) => {
                    let both = [(false, *falsehood), (true, *truth)];
                    Some(
                        both.into_iter().filter(|(_, is)| *is).map(|(truth, _)| Value::Bool(truth)).collect(),
                    )
                }
                Form::Number(numbers) => {
                    numbers.values(most).map(|values| values.into_iter().map(Value::Number).collect())
                }
                Form::Text(text) => strings(algebra, *text, most)?,
                Form::Array(form) => self.arrays(algebra, form, most, depth + 1)?,
                Form::Object(form) => self.objects(algebra, form, most, depth + 1)?,
            };
            let Some(values) = values else { return Ok(None) };
            all.extend(values.into_iter().map(|value| (Held::from(&value), value)));
            if all.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(all.into_values().collect()))
    }

    fn arrays(&self, algebra: &mut Algebra<'_>, form: &ArrayForm, most: usize, depth: usize) -> Counted {
        let mut found = Vec::new();
        let mut agenda = vec![(form.start(), Vec::new())];
        while let Some((place, items)) = agenda.pop() {
            if form.is_whole(&place) {
                found.push(Value::Array(items.clone()));
            }
            for &variant in form.variants(&place) {
                let Some(after) = form.after(&place, variant) else { continue };
                let alive = |set| self.alive.contains(&set);
                if !alive(variant.set) || form.least(&alive, &after).is_none() {
                    continue;
                }
                let Some(values) = self.values(algebra, variant.set, most, depth)? else { return Ok(None) };
                for value in values {
                    if !(form.is_unique && items.contains(&value)) {
                        agenda.push((after.clone(), items.iter().cloned().chain([value]).collect()));
                    }
                }
            }
            if found.len() + agenda.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    fn objects(&self, algebra: &mut Algebra<'_>, form: &ObjectForm, most: usize, depth: usize) -> Counted {
        let alive = |set| self.alive.contains(&set);
        let n_keys = form.keys.len();
        if form.variants[n_keys..].iter().flatten().any(|&(_, set)| alive(set)) && form.at_most > 0 {
            return Ok(None);
        }
        // Members by the numbers of their keys, whatever order they are written in.
        let mut places: Vec<(ObjectPlace, Vec<usize>, Vec<Value>)> =
            vec![(form.start(), Vec::new(), Vec::new())];
        for key in 0..n_keys {
            let mut next = Vec::new();
            for (place, keys, members) in places {
                for &(met, set) in &form.variants[key] {
                    if !alive(set) {
                        continue;
                    }
                    let Some(values) = self.values(algebra, set, most, depth)? else { return Ok(None) };
                    let keys: Vec<usize> = keys.iter().copied().chain([key]).collect();
                    for value in values {
                        let members = members.iter().cloned().chain([value]).collect();
                        next.push((form.after(&place, key, met), keys.clone(), members));
                    }
                }
                if !form.keys[key].1 {
                    next.push((place, keys, members));
                }
                if next.len() > most {
                    return Ok(None);
                }
            }
            places = next;
        }
        let whole = places.into_iter().filter(|(place, ..)| form.is_whole(place));
        let object = |(_, keys, members): (ObjectPlace, Vec<usize>, Vec<Value>)| {
            let keys = keys.into_iter().map(|key| form.keys[key].0.clone());
            Value::Object(keys.zip(members).collect())
        };
        Ok(Some(whole.map(object).collect()))
    }
}

fn strings(algebra: &mut Algebra<'_>, text: Text, most: usize) -> Counted {
    let found = algebra.strings.chars.strings(text.formula, (text.min, text.max), most);
    let found = found.map_err(|error| {
        let message = format!("its patterns need more than {} automaton states", error.limit);
        Refusal::new(Kind::Limit, "", message)
    })?;
    Ok(found.map(|found| found.into_iter().map(|text| Value::String(text.into())).collect()))
}

impl Numbers {
    /// The numbers, if they are at most `most`.
    pub(crate) fn values(&self, most: usize) -> Option<Vec<Decimal>> {
        if let Some(values) = &self.one_of {
            let values: Vec<Decimal> = values.iter().copied().filter(|&value| self.contains(value)).collect();
            return (values.len() <= most).then_some(values);
        }
        let one = Decimal::new(1, 0);
        let is_whole = self.whole == Some(true) || self.plain == Some(true);
        let unit = self.multiples.iter().copied().chain(is_whole.then_some(one)).max()?;
        let ((min, _), (max, _)) = (self.min?, self.max?);
        let exponent = [unit, min, max].iter().map(|number| number.exponent()).min()?;
        let scaled = |number: Decimal| {
            let power = 10i128.checked_pow(u32::try_from(number.exponent() - exponent).ok()?)?;
            number.mantissa().checked_mul(power)
        };
        let (unit, min, max) = (scaled(unit)?, scaled(min)?, scaled(max)?);
        // Rounded away from what lies between; what is outside is left out below.
        let (first, last) = (min.div_euclid(unit), max.div_euclid(unit) + 1);
        if last.checked_sub(first)? > most as i128 * 4 {
            return None;
        }
        let values = (first..=last).map(|at| Decimal::new(at * unit, exponent));
        let values: Vec<Decimal> = values.filter(|&value| self.contains(value)).collect();
        (values.len() <= most).then_some(values)
    }
}
