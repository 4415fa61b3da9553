//! All admissible tokens of all holes in one pass.
//!
//! Without gaps the readings that are possible before a slot are finitely many. From the left, slot by slot, all of them are listed, each once, as far as lexing
//! can go on with what is fixed to the right ([`crate::right`]); from the right, it is marked from which of them the canvas can be completed. A group of
//! tokens that leads from a reading before a hole to one that is marked can be put there. Both passes look at groups of tokens, not at tokens, and what a hole
//! makes of a reading is kept for all slots of all canvases ([`Tables::successors`]). It is the definition itself, in every lexer mode. Cost: readings × groups;
//! with many holes in a row the readings are too many, then the pass gives up and says so.

use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_left_to_right::frontier::Config;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::Tokens;
use rustc_hash::FxHashMap;

use crate::plan::{Place, Plan};
use crate::search::Tables;

/// Readings before all slots, and steps between them, beyond which the pass gives up.
const MOST_READINGS: usize = 20_000;
const MOST_STEPS: usize = 300_000;

/// What a pass found out.
pub(crate) struct Admitted {
    /// For each hole, in order, the row of the tokens of the text that it can hold.
    pub rows: Vec<Vec<u32>>,
    /// The first slot in which the EOS can stand that ends the text.
    pub earliest_end: Option<usize>,
}

/// The readings before one slot.
#[derive(Default)]
struct Level {
    readings: Vec<Config>,
    ids: FxHashMap<Config, u32>,
}

impl Level {
    fn add(&mut self, reading: Config) {
        let fresh = self.readings.len() as u32;
        self.ids.entry(reading).or_insert_with(|| {
            self.readings.push(reading);
            fresh
        });
    }
}

/// What can be put into the holes of a canvas without gaps; `None` if there is too much to look at.
pub(crate) fn admitted(tables: &mut Tables, plan: &Plan, work: &mut Work) -> Result<Option<Admitted>, StepError> {
    let right = tables.right(plan);
    let n_words = tables.constraint.mask_words();
    let holes: Vec<usize> = (0..plan.places.len()).filter(|&slot| plan.places[slot] == Place::Free).collect();
    let mut admitted = Admitted { rows: vec![vec![0; n_words]; holes.len()], earliest_end: None };
    let Some(start) = tables.start()?.filter(|_| !right.is_hopeless) else { return Ok(Some(admitted)) };
    let mut levels = vec![Level::default()];
    levels[0].add(start);
    let (mut n_readings, mut n_steps) = (0, 0);
    for (slot, place) in plan.places.iter().enumerate() {
        let mut next = Level::default();
        for &reading in &levels[slot].readings {
            match place {
                Place::Token(token) => {
                    let after = tables.read(reading, *token)?;
                    work.spend(1 + after.len())?;
                    for &after in &*after {
                        if right.allows(slot + 1, tables.stepper.transducer().union_state(after.lexeme)) {
                            next.add(after);
                        }
                    }
                }
                Place::Free => {
                    let after = tables.successors(reading, work)?;
                    work.spend(1 + after.len() / 8)?;
                    n_steps += after.len();
                    for &(after, _) in &*after {
                        if right.allows(slot + 1, tables.stepper.transducer().union_state(after.lexeme)) {
                            next.add(after);
                        }
                    }
                }
                Place::Gap | Place::Optional => return Ok(None),
                Place::Closed => {}
            }
            if n_readings + next.readings.len() > MOST_READINGS || n_steps > MOST_STEPS {
                return Ok(None);
            }
        }
        n_readings += next.readings.len();
        levels.push(next);
    }
    let last = plan.places.len();
    let mut good = Vec::with_capacity(levels[last].readings.len());
    for &reading in &levels[last].readings {
        good.push(tables.ends_whole(plan, reading, work)?);
    }
    let mut hole = holes.len();
    for slot in (0..last).rev() {
        let (level, next) = (&levels[slot], &levels[slot + 1]);
        let is_good = |after: &Config| next.ids.get(after).is_some_and(|&id| good[id as usize]);
        let mut before = Vec::with_capacity(level.readings.len());
        if plan.places[slot] == Place::Free {
            hole -= 1;
        }
        // Groups are shared, and most come up many times. They are held so that none of another takes the address of one.
        let mut seen: FxHashMap<*const Tokens, Arc<Tokens>> = FxHashMap::default();
        let mut can_end = false;
        for &reading in &level.readings {
            let ends = plan.ends[slot] && tables.stepper.is_sentence(&[reading]);
            can_end |= ends;
            before.push(
                ends | match plan.places[slot] {
                    Place::Token(token) => tables.read(reading, token)?.iter().any(is_good),
                    Place::Free => {
                        let row = &mut admitted.rows[hole];
                        let mut is_any = false;
                        for (after, tokens) in &*tables.successors(reading, work)? {
                            let is_new = !seen.contains_key(&Arc::as_ptr(tokens));
                            if (is_new || !is_any) && is_good(after) {
                                is_any = true;
                                if is_new {
                                    seen.insert(Arc::as_ptr(tokens), tokens.clone());
                                    tokens.add_to(row);
                                }
                            }
                        }
                        is_any
                    }
                    Place::Gap | Place::Optional | Place::Closed => false,
                },
            );
        }
        if can_end {
            admitted.earliest_end = Some(slot);
        }
        work.spend(seen.len() * (1 + n_words / 16))?;
        good = before;
    }
    Ok(Some(admitted))
}
