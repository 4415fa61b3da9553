//! What a memory adds: texts that readings allow are confirmed one by one.
//!
//! Readings know nothing of what a grammar remembers beside its rules ([`anygram_grammar::memory`]): keys
//! that may not be repeated, items that have to differ. To a search they are those of a larger language. So
//! its *no* is exact, and each *yes* is read again by a [`Matcher`], which remembers; where that refuses the
//! text, the search goes on for a while. In languages without a memory nothing of this is done.

use anygram_bits::work::Work;
use anygram_left_to_right::frontier::Config;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::tokens::{get_bit, set_bit};
use anygram_left_to_right::{Constraint, ErrorKind, MatchError, Matcher};
use anygram_vocab::TokenId;

use crate::canvas::{Canvas, End, Slot};
use crate::decision::{Decision, Undecided};
use crate::moves::Ending;
use crate::plan::Plan;
use crate::search::Found;
use crate::solver::{Filling, Solver, Witness, witness};
use crate::tables::Tables;

/// Texts of one search that may be refused before it is given up.
pub(crate) const MOST_REFUSED: usize = 64;

/// Tokens of one canvas' holes for which a completion of their own is looked for.
const MOST_ASKED: usize = 512;

/// Tokens that lead where a token of a completion leads of which each is tried in its place.
const MOST_TRIED: usize = 256;

/// Reads completions again in a language that remembers.
pub(crate) struct Confirm<'a> {
    matcher: &'a mut Matcher,
    canvas: &'a Canvas,
    /// To which slot of the canvas each slot of the plan belongs that is searched, and its end, if they
    /// differ.
    belongs: Option<&'a [usize]>,
    n_refused: usize,
}

impl<'a> Confirm<'a> {
    /// For completions of a canvas; none where readings know all.
    pub fn new(matcher: &'a mut Matcher, canvas: &'a Canvas) -> Option<Self> {
        let remembers = matcher.constraint().language().grammar().remembers();
        remembers.then_some(Self { matcher, canvas, belongs: None, n_refused: 0 })
    }

    /// The same for a plan with other slots than the canvas.
    pub fn of_slots(self, belongs: &'a [usize]) -> Self {
        Self { belongs: Some(belongs), ..self }
    }

    /// Whether a completion is one.
    pub fn holds(&mut self, found: &Found) -> bool {
        let constraint = self.matcher.constraint().clone();
        let witness = match self.belongs {
            Some(belongs) => witness(&constraint, self.canvas, &found.in_slots(belongs)),
            None => witness(&constraint, self.canvas, found),
        };
        let holds = replays(self.matcher, &constraint, self.canvas, &witness);
        self.n_refused += usize::from(!holds);
        holds
    }

    /// Whether some completion was refused, so that to find no other proves nothing.
    pub fn has_refused(&self) -> bool {
        self.n_refused > 0
    }

    /// Whether it is time to give up.
    pub fn is_tired(&self) -> bool {
        self.n_refused >= MOST_REFUSED
    }
}

/// Whether the text of a witness ends as the canvas says; no if that is not known.
fn replays(matcher: &mut Matcher, constraint: &Constraint, canvas: &Canvas, witness: &Witness) -> bool {
    let mut text = witness.text(constraint);
    text.extend(&witness.closing);
    let is_eos = |filling: &Filling| match filling {
        Filling::Token(token) => constraint.vocabulary().eos().contains(token),
        Filling::Tokens(_) => false,
    };
    let ends_early = witness.slots.iter().any(is_eos);
    reads(matcher, &text, !ends_early && canvas.end() == (End::Prefix { remaining: None }))
}

/// Whether a text is a sentence, or else a prefix of one; no if that is not known.
pub(crate) fn reads(matcher: &mut Matcher, text: &[TokenId], as_prefix: bool) -> bool {
    read(matcher, text, as_prefix).is_yes()
}

/// Whether a text is a sentence, or else a prefix of one.
pub(crate) fn read(matcher: &mut Matcher, text: &[TokenId], as_prefix: bool) -> Decision {
    matcher.reset();
    match matcher.advance_all(text) {
        Ok(()) if as_prefix || matcher.is_sentence() => Decision::Yes(()),
        Ok(()) => Decision::No,
        Err(MatchError::Limit(error)) => Decision::Unknown(error.into()),
        Err(error) if error.kind() == ErrorKind::Undecided => Decision::Unknown(Undecided::Between),
        Err(_) => Decision::No,
    }
}

/// The row of a hole in a language that remembers.
pub(crate) struct Confirmed {
    pub hole: usize,
    /// What readings allow.
    possible: Vec<u32>,
    /// What is confirmed of it.
    pub words: Vec<u32>,
    pub undecided: Option<Undecided>,
}

impl Confirmed {
    pub fn new(hole: usize, possible: Vec<u32>, undecided: Option<Undecided>) -> Self {
        Self { hole, words: vec![0; possible.len()], possible, undecided }
    }

    fn is_open(&self, token: TokenId) -> bool {
        get_bit(&self.possible, token.index()) && !get_bit(&self.words, token.index())
    }

    /// One that is neither confirmed nor refuted, behind some.
    fn next_open(&self, from: usize) -> Option<TokenId> {
        let n_bits = u32::BITS as usize;
        let words = self.possible.iter().zip(&self.words).enumerate().skip(from / n_bits);
        for (at, (possible, word)) in words {
            let mut left = possible & !word;
            if at == from / n_bits {
                left &= u32::MAX << (from % n_bits);
            }
            if left != 0 {
                return Some(TokenId::new(at * n_bits + left.trailing_zeros() as usize));
            }
        }
        None
    }
}

impl Solver {
    /// Confirms tokens of holes: first those that can stand in place of others in completions that are known,
    /// then one by one, as long as there are steps.
    pub(crate) fn confirm_rows(&mut self, canvas: &Canvas, rows: &mut [Confirmed], work: &mut Work) {
        if let Some(witness) = self.fits(canvas).cloned() {
            self.exchange(canvas, &witness, rows, work);
        }
        let mut n_asked = 0;
        for at in 0..rows.len() {
            let mut from = 0;
            while let Some(token) = rows[at].next_open(from) {
                from = token.index() + 1;
                n_asked += 1;
                if n_asked > MOST_ASKED {
                    rows[at].undecided.get_or_insert(Undecided::Between);
                    break;
                }
                let mut slots = canvas.slots().to_vec();
                slots[rows[at].hole] = Slot::Fixed(token);
                let fixed = Canvas::new(slots, canvas.end());
                let plan = Plan::new(self.constraint(), &fixed);
                match self.decide(&fixed, &plan, work) {
                    Decision::Yes(witness) => {
                        set_bit(&mut rows[at].words, token.index());
                        self.exchange(canvas, &witness, rows, work);
                    }
                    Decision::No => {}
                    Decision::Unknown(why) => drop(rows[at].undecided.get_or_insert(why)),
                }
            }
        }
    }

    /// Confirms tokens that can stand in place of a completion's.
    fn exchange(&mut self, canvas: &Canvas, witness: &Witness, rows: &mut [Confirmed], work: &mut Work) {
        // Where that fails nothing is confirmed.
        let _ = self.try_exchange(canvas, witness, rows, work);
    }

    fn try_exchange(
        &mut self,
        canvas: &Canvas,
        witness: &Witness,
        rows: &mut [Confirmed],
        work: &mut Work,
    ) -> Result<(), StepError> {
        let constraint = self.constraint().clone();
        let text = witness.text(&constraint);
        let mut frontiers: Vec<Vec<Config>> = vec![self.tables.start()?.into_iter().collect()];
        for &token in &text {
            let mut next = Vec::new();
            for &reading in &frontiers[frontiers.len() - 1] {
                next.extend_from_slice(&self.tables.read(reading, token)?);
            }
            next.sort_unstable();
            next.dedup();
            frontiers.push(next);
        }
        for row in rows {
            // A slot is a token where there are no gaps before it.
            let Some(Filling::Token(own)) = witness.slots.get(row.hole) else { continue };
            if row.hole >= text.len() || canvas.slots()[..row.hole].contains(&Slot::Gap) {
                continue;
            }
            set_bit(&mut row.words, own.index());
            // What leads from the one reading to the one reading does so in every place.
            let [before] = *frontiers[row.hole] else { continue };
            let [after] = *frontiers[row.hole + 1] else { continue };
            let (alike, is_free) = self.alike(before, after, *own, work)?;
            for tokens in &*alike.groups {
                let each = (0..row.words.len() * 32).map(TokenId::new);
                let open: Vec<TokenId> =
                    each.filter(|&token| row.is_open(token) && tokens.contains(token)).collect();
                let most = if is_free { open.len() } else { MOST_TRIED };
                for token in open.into_iter().take(most) {
                    if is_free || self.replays_with(canvas, witness, (row.hole, token), work)? {
                        set_bit(&mut row.words, token.index());
                    }
                }
            }
        }
        Ok(())
    }

    /// The tokens that lead from one reading to another as a token does, and whether they can stand in its
    /// place whatever the memory recalls: they prolong a piece of which it recalls nothing.
    fn alike(
        &mut self,
        before: Config,
        after: Config,
        own: TokenId,
        work: &mut Work,
    ) -> Result<(Ending, bool), StepError> {
        let none = Ending { groups: std::sync::Arc::from([]), n_tokens: 0, first: None };
        let walk = self.tables.walk(before, None)?;
        work.spend(1 + walk.stays.len() + walk.exits.len())?;
        let has_own = |ending: &Ending| ending.groups.iter().any(|tokens| tokens.contains(own));
        let stay = walk.stays.iter().find(|(lexeme, ending)| *lexeme == after.lexeme && has_own(ending));
        if let Some((lexeme, ending)) = stay
            && after.state == before.state
        {
            let language = self.constraint().language();
            let terminals = &language.grammar().terminals;
            let candidates = self.tables.stepper.transducer().candidates(language.lexing(), *lexeme);
            // What is within a value depends on the reading, which need not be the one that was confirmed.
            let is_free = language.grammar().embedded.is_empty()
                && candidates.iter().all(|terminal| terminals[terminal].memory.is_none());
            return Ok((ending.clone(), is_free));
        }
        for (at, exit) in walk.exits.iter().enumerate().filter(|(_, exit)| has_own(&exit.ends)) {
            if self.tables.end(before, &walk, at)? == Some(after) {
                return Ok((exit.ends.clone(), false));
            }
        }
        Ok((none, false))
    }

    /// Whether a completion is one with another token in a hole.
    fn replays_with(
        &mut self,
        canvas: &Canvas,
        witness: &Witness,
        (hole, token): (usize, TokenId),
        work: &mut Work,
    ) -> Result<bool, StepError> {
        let mut other = witness.clone();
        other.slots[hole] = Filling::Token(token);
        let constraint = self.constraint().clone();
        let n_tokens = other.text(&constraint).len();
        work.spend(Tables::steps_of_reading(n_tokens))?;
        Ok(replays(&mut self.matcher, &constraint, canvas, &other))
    }
}
