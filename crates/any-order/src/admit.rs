//! All admissible tokens of all holes in one pass.
//!
//! From the left, slot by slot, all readings that can stand there, merged ([`crate::lattice`]); then, hole by
//! hole from the right, what each group of tokens makes of them, and whether the canvas can be completed from
//! there. In `scannerless` and `longest` that is the answer. In `contextual` it says what is certainly not
//! admissible; whether the rest is, is shown by completions ([`crate::search`]), nearly always at once.

use anygram_bits::work::Work;
use anygram_left_to_right::language::StepError;

use crate::lattice::{Lattice, Level};
use crate::open::Open;
use crate::plan::Plan;
use crate::tables::Tables;

/// What a pass found out.
pub(crate) struct Admitted {
    /// For each hole asked for, in order, a row of tokens of the text, with those of the row that was given.
    /// What is not in it cannot be put there.
    pub rows: Vec<Vec<u32>>,
    /// The EOS that ends the text stands in no slot before this.
    pub earliest_end: usize,
    /// Whether all in the rows can be put there.
    pub is_exact: bool,
}

/// What is put into holes while a row of one of them is sought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fillings {
    /// All tokens.
    All,
    /// Few ([`Tables::few_tokens`]): what is possible then is possible, and it takes much less time to see.
    Few,
}

/// What can be put into some holes of a canvas without gaps, besides what the rows given hold, of which
/// nothing is asked. Cost: slots × (places of the lexer's automata + remainders of tokens) × items of merged
/// states at most, where it was not seen before.
pub(crate) fn admitted(
    tables: &mut Tables,
    plan: &Plan,
    (holes, fillings): (&[(usize, Vec<u32>)], Fillings),
    work: &mut Work,
) -> Result<Admitted, StepError> {
    let n_words = tables.constraint.mask_words();
    let last_hole = holes.last().map(|(hole, _)| *hole);
    let mut lattice = Lattice::new(tables, plan, work);
    if fillings == Fillings::Few {
        lattice = lattice.with_few_tokens();
    }
    let mut levels: Vec<Level> = vec![lattice.first()?];
    // Beyond the last hole only the end of the text is of interest.
    let last = plan.ends.iter().rposition(|&end| end).or(last_hole);
    let mut earliest_end = None;
    for slot in 0..=last.unwrap_or(0).min(plan.places.len().saturating_sub(1)) {
        if plan.ends[slot] && lattice.is_sentence(&levels[slot]) {
            earliest_end = earliest_end.or(Some(slot));
        }
        if earliest_end.is_some() && last_hole.is_none_or(|last| slot >= last) {
            break;
        }
        let next = lattice.next(slot, &levels[slot])?;
        levels.push(next);
    }
    let mut open: Vec<Open> = holes.iter().map(|(_, known)| Open::new(known.clone())).collect();
    for (open, &(slot, _)) in open.iter_mut().zip(holes).rev() {
        for (after, tokens) in lattice.outcomes(&levels[slot], None, Some(open))? {
            if lattice.allows(slot + 1, after) && tokens.is_among(open) && lattice.is_good(slot + 1, after)? {
                tokens.remove_from(open);
            }
        }
        lattice.spend(n_words / 16)?;
    }
    let rows = open.into_iter().map(Open::into_words).collect();
    Ok(Admitted {
        rows,
        earliest_end: earliest_end.unwrap_or(plan.places.len()),
        is_exact: !lattice.is_contextual(),
    })
}
