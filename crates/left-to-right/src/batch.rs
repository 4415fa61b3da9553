//! Many outputs: on shared tables, kept warm, and their masks in parallel.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rustc_hash::FxHashMap;

use crate::constraint::Constraint;
use crate::error::MatchError;
use crate::matcher::Matcher;
use crate::rows::MaskRows;
use crate::session::Session;

/// How many outputs [`Constraint::matchers`] starts, and on how many tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchOptions {
    /// The number of outputs.
    pub n_outputs: usize,
    /// The number of tables, at least one: so many threads can work on the outputs at once. Memory and cold
    /// masks are paid once for each.
    pub n_tables: usize,
}

/// Matchers that share their tables, one per constraint, for callers that need a mask now and then. The
/// constraints live as long as this value.
#[derive(Debug, Default)]
pub struct Warm {
    matchers: Vec<Matcher>,
    /// Tables that new outputs do not get any more, as long as old ones are on them.
    given_up: Vec<Weak<Mutex<Session>>>,
}

impl Warm {
    /// A new output of a constraint, on tables that others of it have filled. Full ones are replaced first;
    /// what is known of tokens and masks then stays if no output uses them.
    pub fn matcher(&mut self, constraint: &Constraint) -> Result<Matcher, MatchError> {
        let is_same = |matcher: &&mut Matcher| matcher.constraint().is(constraint);
        if let Some(known) = self.matchers.iter_mut().find(is_same) {
            known.renewing(|_, _| Ok(()))?;
            return Ok(known.fork());
        }
        let matcher = constraint.matcher()?;
        self.matchers.push(matcher.fork());
        Ok(matcher)
    }

    /// Bytes of the tables on the heap, roughly, with those that were [given up](Self::forget) and still have
    /// outputs. `None` while a thread works on one of them: nobody waits here.
    pub fn memory_usage(&self) -> Option<usize> {
        let given_up: Vec<_> = self.given_up.iter().filter_map(Weak::upgrade).collect();
        let all = self.matchers.iter().map(Matcher::shared).chain(&given_up);
        all.map(|tables| Session::try_memory_usage(tables)).sum()
    }

    /// Gives the tables up, for callers that bound the memory of all tables together. New outputs begin with
    /// empty ones. Outputs that are on them go on with the same masks: what is known of tokens, masks and
    /// costs is dropped at once and computed again where it is asked for, and the parser states that hold
    /// the outputs go with the last of them.
    ///
    /// Waits for threads that work on the tables.
    pub fn forget(&mut self) {
        let matchers = std::mem::take(&mut self.matchers);
        self.forget_all(matchers);
    }

    /// The same for the tables that no thread works on: nobody waits here. Says whether those were all.
    pub fn try_forget(&mut self) -> bool {
        let is_free = |matcher: &mut Matcher| Session::try_memory_usage(matcher.shared()).is_some();
        let free = self.matchers.extract_if(.., is_free).collect();
        self.forget_all(free);
        self.matchers.is_empty()
    }

    fn forget_all(&mut self, matchers: Vec<Matcher>) {
        self.given_up.retain(|tables| tables.strong_count() > 0);
        for matcher in matchers {
            let tables = matcher.shared().clone();
            drop(matcher);
            Session::forget(&tables);
            self.given_up.push(Arc::downgrade(&tables));
        }
    }
}

/// Writes the masks of many outputs, in parallel: row `i` belongs to matcher `i`. Each output has its own
/// result; an error of one does not affect the others.
///
/// Outputs that share tables are done one after the other by one thread (see [`Constraint::matchers`]). The
/// threads are those of rayon's pool in which this is called.
///
/// ```
/// # use anygram_left_to_right::{MaskRows, batch_masks};
/// # use std::sync::Arc;
/// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
/// # use anygram_vocab::Vocabulary;
/// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
/// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
/// # let constraint = Constraint::new(language, Vocabulary::builtin())?;
/// // The constraint has the grammar  start: "(" start ")" | "x"
/// let mut matchers = [constraint.matcher()?, constraint.matcher()?];
/// matchers[0].advance_text("(x")?;
/// let width = constraint.mask_words();
/// let mut words = vec![0; 2 * width];
/// let results = batch_masks(&mut matchers, MaskRows::new(&mut words, width));
/// assert!(results.iter().all(Result::is_ok));
/// assert_eq!(words[..width], *matchers[0].mask()?.words());
/// assert_eq!(words[width..], *matchers[1].mask()?.words());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("batch_fill_next_token_bitmask", "fill_next_token_bitmask_par"))]
pub fn batch_masks(matchers: &mut [Matcher], mut rows: MaskRows<'_>) -> Vec<Result<(), MatchError>> {
    let (needed, given) = (matchers.len(), rows.len());
    if given < needed {
        return vec![Err(MatchError::TooFewRows { needed, given }); needed];
    }
    batch_masks_into(matchers.iter_mut().zip(rows.iter_mut()).collect())
}

/// As [`batch_masks`], where outputs stand apart, and rows have an order of their own: each output comes with
/// the row that its mask is written to, as wide as for [`Matcher::mask_into`].
pub fn batch_masks_into(jobs: Vec<(&mut Matcher, &mut [u32])>) -> Vec<Result<(), MatchError>> {
    batch_masks_timed(jobs).into_iter().map(|(result, _)| result).collect()
}

/// As [`batch_masks_into`], and how long each mask took, for statistics.
pub fn batch_masks_timed(jobs: Vec<(&mut Matcher, &mut [u32])>) -> Vec<(Result<(), MatchError>, Duration)> {
    let mut results = vec![(Ok(()), Duration::ZERO); jobs.len()];
    let mut groups: FxHashMap<usize, Vec<_>> = FxHashMap::default();
    for ((matcher, row), result) in jobs.into_iter().zip(&mut results) {
        groups.entry(matcher.tables()).or_default().push((matcher, row, result));
    }
    groups.into_values().collect::<Vec<_>>().into_par_iter().for_each(|group| {
        for (matcher, row, result) in group {
            let began = Instant::now();
            let made = matcher.mask_into(row);
            *result = (made, began.elapsed());
        }
    });
    results
}
