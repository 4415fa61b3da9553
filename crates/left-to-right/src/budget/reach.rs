//! Budgets within which everything fits that may follow, whatever was written before.
//!
//! Which tokens there are does not matter then, only where they can lead ([`Reach`]): if for all readings
//! that they come to it is certain what is enough ([`Ample::certain`](crate::ample::Ample::certain)), the most of that is enough for the
//! whole mask. A piece that ends may repeat another or not; where that makes a difference, both is looked at.

use std::sync::Arc;

use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_vocab::NodeId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Budgets, Place, Question};
use crate::costs::{Leftover, NEVER};
use crate::frontier::Config;
use crate::language::StepError;
use crate::recalled::Ending;
use crate::sweep::{PlaceTables, Stop, Sweeper};

/// Where lengths are bounded, places are one from which so many bytes behind a token do the same: pieces in
/// progress have to end within them.
pub(super) const BEYOND: usize = 31;

/// Where tokens, or what is left of them, can lead a piece in progress.
pub(super) struct Reach {
    /// Pieces in progress behind a token.
    stays: Box<[LexemeId]>,
    /// Whether some of these stand for others, that do the same for [`BEYOND`] bytes.
    is_rough: bool,
    /// How the piece can end: whether with a token, and what is left otherwise.
    exits: Box<[(CutId, bool, Leftover)]>,
}

impl Reach {
    /// Bytes.
    pub(super) fn memory_usage(&self) -> usize {
        64 + size_of_val(&*self.stays) + size_of_val(&*self.exits)
    }
}

/// What is enough behind all tokens that may follow some readings.
#[derive(Clone, Copy)]
pub(super) struct Enough {
    /// Tokens; [`NEVER`] if it is not certain.
    pub(super) cost: u32,
    /// If a piece is held against at most so many values.
    pub(super) n_values: usize,
}

impl Budgets {
    /// How many tokens are enough behind each token that may follow some readings, if that is certain,
    /// [`NEVER`] elsewhere. A piece may be held against `n_values` values that were written. Kept.
    pub(super) fn enough_for_all(
        &mut self,
        question: &mut Question<'_>,
        readings: &[Config],
        n_values: usize,
    ) -> Result<u32, StepError> {
        if let Some(known) = self.everywhere.get(readings)
            && known.n_values >= n_values
        {
            return Ok(known.cost);
        }
        // More, so that it is not asked again with each value.
        let n_values = n_values.checked_next_power_of_two().unwrap_or(n_values).max(16);
        let cost = self.find_enough(question, readings, n_values)?;
        self.everywhere.insert(readings.into(), Enough { cost, n_values });
        Ok(cost)
    }

    fn find_enough(
        &mut self,
        question: &mut Question<'_>,
        readings: &[Config],
        n_values: usize,
    ) -> Result<u32, StepError> {
        // Where ends of pieces meet in one state, they are followed together.
        if question.language.lexing().merges_ends() || self.ample(question, true)?.is_none() {
            return Ok(NEVER);
        }
        let mut most = 0;
        // With the values that may be there, those that have ended inside of the token included.
        let mut agenda: Vec<(Place, usize)> =
            readings.iter().map(|&config| ((config, Leftover::NONE), n_values)).collect();
        let mut seen: FxHashSet<(Place, usize)> = agenda.iter().copied().collect();
        while let Some(((config, leftover), n_values)) = agenda.pop() {
            let reach = self.reach(question, config.lexeme, leftover)?;
            question.work.spend(1 + reach.stays.len() + reach.exits.len())?;
            for &lexeme in &reach.stays {
                let stay = (Config { lexeme, ..config }, reach.is_rough);
                most = most.max(self.certain(question, stay, n_values)?);
                if most == NEVER {
                    return Ok(NEVER);
                }
            }
            let n_values = n_values.saturating_add(1);
            for &(cut, ends, rest) in &reach.exits {
                for behind in self.all_behind(question, config, cut)? {
                    if ends {
                        most = most.max(self.certain(question, (behind, false), n_values)?);
                        if most == NEVER {
                            return Ok(NEVER);
                        }
                    }
                    let next = ((behind, rest), n_values);
                    if rest != Leftover::NONE && seen.insert(next) {
                        agenda.push(next);
                    }
                }
            }
        }
        Ok(most)
    }

    /// All that the end of a piece can lead to, whatever the memory says.
    fn all_behind(
        &mut self,
        question: &mut Question<'_>,
        config: Config,
        cut: CutId,
    ) -> Result<Vec<Config>, StepError> {
        let language = question.language;
        let endings: &[Ending] = match language.grammar().remembers() {
            true => &[Ending::Plain, Ending::Repeats, Ending::Outside],
            false => &[Ending::Plain],
        };
        let mut all = Vec::new();
        for &ending in endings {
            let ends = question.stepper.ends(language, (config.state, cut), ending)?;
            all.extend(ends.into_iter().map(|(_, config)| config));
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// How many tokens are certainly enough for a reading, [`NEVER`] if none are known to be, where pieces are
    /// held against at most `n_values` values. It may stand for others, see [`Reach`].
    pub(super) fn certain(
        &mut self,
        question: &mut Question<'_>,
        (config, is_rough): (Config, bool),
        n_values: usize,
    ) -> Result<u32, StepError> {
        if let Some(known) = self.certain_of.get(&(config, is_rough)) {
            return Ok(known.cost(n_values));
        }
        let Some(ample) = self.ample(question, true)? else { return Ok(NEVER) };
        let Question { stepper, language, trie, .. } = question;
        let bytes = if is_rough { BEYOND } else { usize::MAX };
        let found = ample.certain(stepper, (language, trie), (config, bytes))?;
        self.certain_of.insert((config, is_rough), found);
        Ok(found.cost(n_values))
    }

    /// Where tokens can lead a lexeme. Cost, once: those nodes of the trie below which not all leads back to
    /// where it comes from.
    fn reach(
        &mut self,
        question: &mut Question<'_>,
        lexeme: LexemeId,
        leftover: Leftover,
    ) -> Result<Arc<Reach>, StepError> {
        if let Some(known) = self.reaches.get(&(lexeme, leftover)) {
            return Ok(known.clone());
        }
        let Question { stepper, language, trie, work } = question;
        let (lexing, transducer) = (language.lexing(), stepper.transducer_mut());
        let start = transducer.place(lexeme);
        let has_levels = lexing.lexicon.union.has_bounds(start.state());
        let places = self.places.of(lexing, (has_levels, true));
        let mut sweeper = Sweeper::new(lexing, transducer, trie, places, None);
        let id = sweeper.begin(start);
        let walked = match leftover {
            Leftover::NONE => sweeper.walk(id),
            _ => {
                let tops: Vec<_> = self.costs.tops(leftover).iter().map(|&top| NodeId(top)).collect();
                sweeper.walk_below(id, &tops)
            }
        };
        if let Err(Stop::Limit(error)) = walked {
            return Err(error.into());
        }
        work.spend(sweeper.n_steps)?;
        let groups: Vec<_> = sweeper.gathered().collect();
        let mut stays: Vec<LexemeId> = Vec::new();
        let mut exits: FxHashMap<CutId, (bool, Vec<_>)> = FxHashMap::default();
        for group in groups {
            let transducer = stepper.transducer_mut();
            let step = transducer.step_to(lexing, lexeme, group.place)?;
            let has_tokens = group.has_tokens();
            stays.extend(step.stay.filter(|_| has_tokens));
            let Some(cut) = step.cut else { continue };
            let obligations = transducer.cut(cut).obligations;
            let (ends, tops) = exits.entry(cut).or_default();
            *ends |= has_tokens;
            let follows = |top: &NodeId| transducer.survives(lexing, obligations, trie.byte(*top));
            tops.extend(group.tops.into_iter().filter(follows));
        }
        stays.sort_unstable();
        stays.dedup();
        let mut exits: Vec<_> = exits
            .into_iter()
            .map(|(cut, (ends, tops))| (cut, ends, self.costs.leftover(tops)))
            .filter(|&(_, ends, rest)| ends || rest != Leftover::NONE)
            .collect();
        exits.sort_unstable();
        let reach = Arc::new(Reach { stays: stays.into(), is_rough: has_levels, exits: exits.into() });
        let bytes = reach.memory_usage();
        if self.reach_bytes + bytes + self.places.memory_usage() > language.limits().cache_bytes {
            self.reaches.clear();
            self.reach_bytes = 0;
            self.places = PlaceTables::looking_beyond(BEYOND);
        }
        self.reach_bytes += bytes;
        self.reaches.insert((lexeme, leftover), reach.clone());
        Ok(reach)
    }
}
