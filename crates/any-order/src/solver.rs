//! Answers questions about canvases: completable, admissible, compatible, minimum.

use std::borrow::BorrowMut;
use std::sync::atomic::{AtomicUsize, Ordering};

use anygram_bits::work::Work;
use anygram_left_to_right::ErrorKind;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::{Constraint, MatchError, Matcher};
use anygram_recognizer::earley::contexts::Learned;
use anygram_vocab::TokenId;
use rayon::prelude::*;

use crate::beam::Width;
use crate::canvas::{Canvas, End, Slot};
use crate::confirm::{self, Confirm, MOST_REFUSED};
use crate::counters::Counters;
use crate::decision::{Decision, Undecided};
use crate::error::{CanvasCause, CanvasError};
use crate::forward::{Breadth, Forward};
use crate::lexings::completions::Trie;
use crate::loose::{Holes, Loose};
use crate::plan::{Place, Plan, is_tail};
use crate::relaxed::Relaxed;
use crate::search::{Bounds, Found, Outcome, Search};
use crate::tables::Tables;

/// What fills a slot of a canvas in a completion.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Filling {
    /// The one token of a fixed slot or a hole.
    Token(TokenId),
    /// The tokens of a gap.
    Tokens(Vec<TokenId>),
}

/// A completion of a canvas.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Witness {
    /// What stands in each slot.
    pub slots: Vec<Filling>,
    /// If the canvas ends as a prefix with a bound on what remains: tokens that make a sentence of it.
    pub closing: Vec<TokenId>,
}

impl Witness {
    /// The tokens of the text: all before the first EOS, `closing` not among them.
    pub fn text(&self, constraint: &Constraint) -> Vec<TokenId> {
        let is_eos = |token: &TokenId| constraint.vocabulary().eos().contains(token);
        let tokens = self.slots.iter().flat_map(|filling| match filling {
            Filling::Token(token) => std::slice::from_ref(token),
            Filling::Tokens(tokens) => tokens,
        });
        tokens.copied().take_while(|token| !is_eos(token)).collect()
    }
}

/// How it is decided whether a canvas is completable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum By {
    /// Try all procedures, the fastest first.
    #[default]
    All,
    /// Only the slow procedures that `All` tries last.
    Last,
    /// Only the search for a witness, in every mode. Exact, but it need not end if a gap can grow without
    /// bound.
    Search,
    /// Only all texts at once, where the automata of terminals grow: with so many pieces before a slot that
    /// may become the same terminals.
    Parse(usize),
}

/// Makes a witness of a text, if it is one.
type Accept<'a> = dyn FnMut(&mut Solver, &Found) -> Result<Option<Witness>, StepError> + 'a;

/// Places that the first search enters.
pub(crate) const FIRST_VISITS: usize = 1_000;

/// Readings before a slot from which a search goes on.
const WIDTH: Width = Width { some: 24, all: 64, alike: 12 };

/// Completions of one beam that are confirmed.
const MOST_FROM_BEAM: usize = 8;

/// Runs of so many holes are not taken for gaps.
const SHORT_RUN: usize = 2;

/// A stage takes at most this part of the steps if another stage, which may be quicker, can follow: in
/// grammars with many readings of a text a few hundred places of a search can take all steps.
const PARTS_OF_A_TRY: usize = 8;

/// The part of the steps in which runs of holes are taken for gaps at first, before a beam.
const PARTS_OF_FITTING: usize = 100;

/// Ways back that may lead astray, before others are no longer tried.
const MOST_ASTRAY: usize = 8;

/// Pieces before one slot that may become the same, at first.
pub(crate) const MOST_ALIKE: usize = 32;

/// Loosely or not, and with so many pieces that may become the same, in this order.
const BREADTHS: [(bool, usize); 4] =
    [(true, MOST_ALIKE), (false, MOST_ALIKE), (true, usize::MAX), (false, usize::MAX)];

/// The part of the steps in which all texts at once are parsed, but the first time, and in which a search
/// goes on where that left a canvas open.
const PARTS_OF_PARSING: usize = 4;

/// Tokens in a gap that it puts there at most.
const FEW_IN_GAPS: usize = 6;

/// Answers questions about canvases of one constraint. Its tables make later questions faster.
///
/// Takes as much memory as a [`Matcher`]; use one per thread.
///
/// ```
/// # use anygram_any_order::{Canvas, End, Slot, Solver};
/// # use std::sync::Arc;
/// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
/// # use anygram_vocab::{SpecialIds, TokenId, Vocabulary};
/// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
/// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
/// # let special = SpecialIds { eos: vec![3], ..SpecialIds::default() };
/// # let vocabulary = Vocabulary::from_tokens(["(", ")", "x", ""], special)?;
/// # let constraint = Constraint::new(language, vocabulary)?;
/// // The grammar is  start: "(" start ")" | "x"  and the tokens are "(", ")", "x" and EOS.
/// let [open, close, x, _] = [0, 1, 2, 3].map(TokenId);
/// let mut solver = Solver::new(&constraint)?;
/// let canvas = Canvas::new(vec![Slot::Fixed(open), Slot::Hole, Slot::Hole], End::Sentence);
/// let witness = solver.completable(&canvas)?.yes().ok_or("it is completable")?;
/// assert_eq!(witness.text(&constraint), [open, x, close]);
/// let admissible = solver.admissible(&canvas)?; // a mask for each hole
/// assert_eq!(admissible.masks[0].iter().collect::<Vec<_>>(), [x]);
/// // Of proposals each is kept that suits those before it.
/// let answers = solver.compatible(&canvas, &[(2, close), (1, open), (1, x)])?;
/// assert_eq!(answers.iter().map(|answer| answer.is_yes()).collect::<Vec<_>>(), [true, false, true]);
/// // The shortest sentence that begins with it has three tokens.
/// let gap = Canvas::new(vec![Slot::Fixed(open), Slot::Gap], End::Sentence);
/// assert_eq!(solver.minimum(&gap)?.yes(), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Solver {
    pub(crate) tables: Tables,
    pub(crate) matcher: Matcher,
    /// The canvas with gaps for holes, once that was asked; `None` in it if it cannot be.
    loose: Option<Option<Box<Loose>>>,
    /// In `contextual` also that of the longest match, and its other tables.
    loose_longest: Option<Option<Box<Loose>>>,
    longest_tables: Option<Box<Tables>>,
    pub(crate) by: By,
    /// Of one question.
    steps: u64,
    /// The last completion found and its canvas.
    last: Option<(Canvas, Witness)>,
    /// How often in a row merged readings left open most of what was open, up to some number.
    pub(crate) n_in_vain: u32,
    pub(crate) counters: Counters,
}

impl Solver {
    /// Empty tables for a constraint.
    pub fn new(constraint: &Constraint) -> Result<Self, CanvasError> {
        Ok(Self {
            tables: Tables::new(constraint)?,
            matcher: constraint.matcher()?,
            loose: None,
            loose_longest: None,
            longest_tables: None,
            by: By::default(),
            steps: constraint.language().limits().canvas_steps,
            counters: Counters::default(),
            last: None,
            n_in_vain: 0,
        })
    }

    /// Steps of one question, in place of the limit `canvas_steps`.
    pub fn steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self
    }

    /// Restricts the solver to one procedure, for tests and measurements.
    #[doc(hidden)]
    pub fn by(mut self, by: By) -> Self {
        self.by = by;
        self
    }

    /// Counts from now on, or no longer, what each stage is worth; earlier counts are forgotten.
    pub fn count_stages(&mut self, is_on: bool) {
        self.counters = Counters::switched(is_on);
    }

    /// What was counted ([`Solver::count_stages`]).
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The constraint.
    pub fn constraint(&self) -> &Constraint {
        &self.tables.constraint
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let longest = self.longest_tables.as_ref().map_or(0, |tables| tables.memory_usage());
        let loose = [&self.loose, &self.loose_longest].into_iter().flatten().flatten();
        let loose: usize = loose.map(|loose| loose.memory_usage()).sum();
        self.tables.memory_usage() + longest + loose + self.matcher.memory_usage()
    }

    /// Whether there is a choice of tokens for all holes and gaps that makes the canvas end as it says.
    ///
    /// A yes is confirmed: its witness was replayed through a [`Matcher`]. A no is proven. If the last
    /// witness still fits, it is the answer; that costs O(slots). If it does with what is fixed by now put
    /// into it, that costs to read it.
    pub fn completable(&mut self, canvas: &Canvas) -> Result<Decision<Witness>, CanvasError> {
        self.check(canvas)?;
        if let Some(witness) = self.fits(canvas) {
            return Ok(Decision::Yes(witness.clone()));
        }
        self.renew()?;
        let plan = Plan::new(self.constraint(), canvas);
        let mut work = self.work();
        let answer = self.decide(canvas, &plan, &mut work);
        if let Decision::Yes(witness) = &answer {
            self.last = Some((canvas.clone(), witness.clone()));
        }
        Ok(answer)
    }

    /// Scans proposals `(slot, token)` for holes in the given order and keeps each iff the canvas with those
    /// kept so far and this one is completable. Where that was not decided it is not kept.
    pub fn compatible(
        &mut self,
        canvas: &Canvas,
        proposals: &[(usize, TokenId)],
    ) -> Result<Vec<Decision>, CanvasError> {
        self.check(canvas)?;
        let mut kept = canvas.slots().to_vec();
        let mut answers = Vec::with_capacity(proposals.len());
        for (proposal, &(slot, token)) in proposals.iter().enumerate() {
            if canvas.slots().get(slot) != Some(&Slot::Hole) {
                return Err(CanvasCause::NoHole { proposal, slot }.into());
            }
            if kept[slot] != Slot::Hole {
                // Another token stands there by now.
                let same = kept[slot] == Slot::Fixed(token);
                let answer = if same {
                    self.completable(&Canvas::new(kept.clone(), canvas.end()))?.map(drop)
                } else {
                    Decision::No
                };
                answers.push(answer);
                continue;
            }
            kept[slot] = Slot::Fixed(token);
            let answer = self.completable(&Canvas::new(kept.clone(), canvas.end()))?.map(drop);
            if !answer.is_yes() {
                kept[slot] = Slot::Hole;
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    /// The least number of text tokens in a completion.
    pub fn minimum(&mut self, canvas: &Canvas) -> Result<Decision<usize>, CanvasError> {
        let witness = match self.completable(canvas)? {
            Decision::Yes(witness) => witness,
            Decision::No => return Ok(Decision::No),
            Decision::Unknown(undecided) => return Ok(Decision::Unknown(undecided)),
        };
        let mut work = self.work();
        let plan = Plan::new(self.constraint(), canvas);
        let mut best = witness.text(self.constraint()).len();
        loop {
            let bounds = Bounds { below: Some(best), ..Bounds::default() };
            let confirm = Confirm::new(&mut self.matcher, canvas);
            match Search::new(&mut self.tables, &plan, &mut work, bounds).confirming(confirm).run() {
                Ok(Outcome::Found(found)) => best = plan.n_tokens_before(found.end) + found.n_in_gaps,
                Ok(Outcome::None) => return Ok(Decision::Yes(best)),
                Ok(Outcome::OutOfSteps) => return Ok(Decision::Unknown(Undecided::Between)),
                Err(error) => return Ok(Decision::Unknown(error.into())),
            }
        }
    }

    /// The steps of one question.
    pub(crate) fn work(&mut self) -> Work {
        let language = self.constraint().language().clone();
        self.tables.stepper.begin(&language);
        Work::new(self.steps, "canvas_steps")
    }

    /// A part of the steps of one question.
    pub(crate) fn share_of_work(&self, n_parts: usize) -> Work {
        Work::new(self.steps / n_parts.max(1) as u64, "canvas_steps")
    }

    /// The same, or what is left of a work if that is less.
    pub(crate) fn part_of(&self, work: &Work, n_parts: usize) -> Work {
        Work::new(work.left().min(self.steps / n_parts.max(1) as u64), "canvas_steps")
    }

    /// Replaces tables that have grown too large.
    pub(crate) fn renew(&mut self) -> Result<(), CanvasError> {
        if self.tables.is_full() {
            self.n_in_vain = 0;
        }
        self.tables.renew()?;
        if let Some(tables) = &mut self.longest_tables {
            tables.renew()?;
        }
        for loose in [&mut self.loose, &mut self.loose_longest].into_iter().flatten().flatten() {
            loose.renew(&self.tables.constraint);
        }
        Ok(())
    }

    pub(crate) fn check(&self, canvas: &Canvas) -> Result<(), CanvasError> {
        let size = self.constraint().vocabulary().len();
        for (slot, content) in canvas.slots().iter().enumerate() {
            if let Slot::Fixed(token) = content
                && token.index() >= size
            {
                return Err(CanvasCause::UnknownToken { slot, id: token.0, size }.into());
            }
        }
        Ok(())
    }

    /// The last canvas that was found to be completable, with its witness.
    #[doc(hidden)]
    pub fn known(&self) -> Option<&(Canvas, Witness)> {
        self.last.as_ref()
    }

    /// Keeps a completion of a canvas for questions about it, if it is one: its text is asked about.
    #[doc(hidden)]
    pub fn remember(&mut self, canvas: Canvas, slots: Vec<Filling>) -> Result<(), CanvasError> {
        let filled = slots.iter().flat_map(|filling| match filling {
            Filling::Token(token) => std::slice::from_ref(token),
            Filling::Tokens(tokens) => tokens,
        });
        let filled: Vec<Slot> = filled.map(|&token| Slot::Fixed(token)).collect();
        let vocabulary = self.constraint().vocabulary();
        let is_text = |filling: &Filling| match filling {
            Filling::Token(_) => true,
            Filling::Tokens(tokens) => !tokens.iter().any(|&token| is_tail(vocabulary, token)),
        };
        let is_one = is_filled(&canvas, &slots) && slots.iter().all(is_text);
        if is_one
            && let Decision::Yes(Witness { closing, .. }) =
                self.completable(&Canvas::new(filled, canvas.end()))?
        {
            self.last = Some((canvas, Witness { slots, closing }));
        }
        Ok(())
    }

    /// The last witness, if it is one of this canvas too.
    pub(crate) fn fits(&self, canvas: &Canvas) -> Option<&Witness> {
        let (known, witness) = self.last.as_ref()?;
        (known.end() == canvas.end() && is_filled(canvas, &witness.slots)).then_some(witness)
    }

    pub(crate) fn decide(&mut self, canvas: &Canvas, plan: &Plan, work: &mut Work) -> Decision<Witness> {
        let remembers = self.constraint().language().grammar().remembers();
        let is_fixed = |place: &Place| matches!(place, Place::Token(_) | Place::Closed);
        if remembers && plan.places.iter().all(is_fixed) {
            return self.decide_fixed(canvas, plan);
        }
        let decided = match self.by {
            By::All => self.decide_by_all(canvas, plan, work),
            By::Last => self.decide_by_last(canvas, plan, false, work),
            By::Search => self.search_whole(canvas, plan, work),
            By::Parse(most_alike) => {
                self.parse_all(canvas, plan, &[(true, most_alike), (false, most_alike)], work)
            }
        };
        decided.unwrap_or_else(|error| Decision::Unknown(error.into()))
    }

    /// Of a canvas with one text, which is read.
    fn decide_fixed(&mut self, canvas: &Canvas, plan: &Plan) -> Decision<Witness> {
        let n_slots = plan.places.len();
        // The first EOS ends the text; what cannot stand before it is no text.
        let end = plan.ends.iter().position(|&ends| ends).unwrap_or(n_slots);
        let tokens = plan.places[..end].iter().map_while(|place| match place {
            Place::Token(token) => Some(*token),
            _ => None,
        });
        let text: Vec<TokenId> = tokens.collect();
        if text.len() < end || end == n_slots && plan.whole.is_none() {
            return Decision::No;
        }
        let as_prefix = end == n_slots && plan.whole != Some(End::Sentence);
        match confirm::read(&mut self.matcher, &text, as_prefix) {
            Decision::Yes(()) if as_prefix && plan.whole != Some(End::Prefix { remaining: None }) => {
                // How many tokens are lacking is not counted with what is recalled.
                Decision::Unknown(Undecided::Between)
            }
            read => read.map(|()| {
                let tokens = text.iter().copied().enumerate().collect();
                let found = Found { end, tokens, n_in_gaps: 0, closing: Vec::new() };
                witness(self.constraint(), canvas, &found)
            }),
        }
    }

    /// Tries in this order: whether lexing alone refuses it, what is near the last completion, a search
    /// behind the slot that changed, a short search, terminals with gaps for long runs of holes, a search
    /// from a beam, terminals with gaps for all holes, with gaps for long runs again if that took too many
    /// steps, with few tokens in every hole, a search to the end. Canvases with gaps have another short
    /// search first, and no beam. What may take long without an answer has a part of the steps
    /// ([`Self::tried`]).
    fn decide_by_all(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let has_gaps = plan.has_gaps();
        let mut answer = self.decide_soon(canvas, plan, work)?;
        let mut is_fitted = false;
        if !has_gaps && !self.tables.is_growing() && answer.decided().is_none() {
            let stage = "completable: gaps for holes, at first";
            let fitted =
                self.tried(stage, PARTS_OF_FITTING, work, |this, own| this.fit_loosely(canvas, plan, own))?;
            is_fitted = fitted.is_some();
            answer = fitted.unwrap_or(answer);
        }
        if !has_gaps && answer.decided().is_none() {
            let stage = "completable: search from a beam";
            let tried = self
                .tried(stage, PARTS_OF_A_TRY, work, |this, own| this.search_from_beam(canvas, plan, own))?;
            answer = tried.unwrap_or(answer);
        }
        if self.tables.is_growing() && answer.decided().is_none() {
            answer = self.staged("completable: all texts at once", work, |this, work| {
                this.parse_all(canvas, plan, &BREADTHS, work)
            })?;
        }
        if !has_gaps && self.tables.is_growing() && answer.decided().is_none() {
            let own = &mut self.share_of_work(PARTS_OF_PARSING);
            return self
                .staged("completable: whole search", own, |this, own| this.search_whole(canvas, plan, own));
        }
        match answer.decided() {
            Some(_) => Ok(answer),
            None => self.decide_by_last(canvas, plan, is_fitted, work),
        }
    }

    /// What mostly takes little, whether it decides or not.
    fn decide_soon(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let has_gaps = plan.has_gaps();
        let mut answer =
            self.staged("completable: lexing alone", work, |this, _| Ok(this.lexing_refuses(plan)))?;
        if answer.is_no() {
            return Ok(answer);
        }
        answer = self.staged("completable: near the last completion", work, |this, work| {
            this.near_last(canvas, plan, work)
        })?;
        if has_gaps && answer.decided().is_none() {
            // Where this ends soon, no completion has fewer tokens in its gaps.
            let stage = "completable: search, gaps";
            let tried = self.tried(stage, PARTS_OF_A_TRY, work, |this, own| {
                this.search(canvas, plan, FIRST_VISITS / 10, own)
            })?;
            answer = tried.unwrap_or(answer);
        }
        if has_gaps && self.tables.is_growing() && answer.decided().is_none() {
            let stage = "completable: greedy, gaps";
            let tried = self.tried(stage, PARTS_OF_A_TRY, work, |this, own| {
                match this.tables.greedy(plan, own)? {
                    Some(found) => this.confirmed(canvas, &found),
                    None => Ok(Decision::Unknown(Undecided::Between)),
                }
            })?;
            answer = tried.unwrap_or(answer);
        }
        let change = self.change(plan);
        if let Some(change) = change
            && answer.decided().is_none()
        {
            let stage = "completable: search behind the change";
            let tried = self.tried(stage, PARTS_OF_A_TRY, work, |this, own| {
                this.search_behind(plan, change, FIRST_VISITS, own)
            })?;
            answer = tried.unwrap_or(answer);
        }
        if answer.decided().is_none() {
            let stage = "completable: short search";
            let tried =
                self.tried(stage, PARTS_OF_A_TRY, work, |this, own| this.search_few(canvas, plan, own))?;
            answer = tried.unwrap_or(answer);
        }
        Ok(answer)
    }

    /// A *no* where no text can be lexed, whatever the grammar. Cost: a look-up a slot.
    fn lexing_refuses(&mut self, plan: &Plan) -> Decision<Witness> {
        let right = match plan.has_gaps() {
            true => self.tables.right(&plan.with_few_in_gaps(FEW_IN_GAPS).0),
            false => self.tables.right(plan),
        };
        if right.is_hopeless { Decision::No } else { Decision::Unknown(Undecided::Between) }
    }

    /// What takes long: terminals with other gaps for holes than at first, or none, and a search to the end.
    /// `is_fitted` says that gaps for long runs of holes have led to nothing already.
    fn decide_by_last(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        is_fitted: bool,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let mut answer =
            self.staged("completable: gaps for all holes", work, |this, work| this.decide_no(plan, work))?;
        if answer.decided().is_none() && !is_fitted {
            answer = self.staged("completable: gaps for holes", work, |this, work| {
                this.fit_loosely(canvas, plan, work)
            })?;
        }
        let tries: &[Trie] = match plan.has_gaps() {
            // A search in a canvas with gaps may never end, so that it cannot say no.
            true => &[Trie::Few, Trie::All],
            // Where all runs of holes are short that was asked already.
            false if Relaxed::new(plan, SHORT_RUN).plan == *plan => &[],
            false => &[Trie::Few],
        };
        for &trie in tries {
            if answer.decided().is_none() && plan.places.contains(&Place::Free) {
                let stage = match trie {
                    Trie::Few => "completable: few tokens",
                    Trie::All => "completable: all tokens",
                };
                let tried = self.tried(stage, PARTS_OF_A_TRY, work, |this, own| {
                    let accept =
                        &mut |this: &mut Self, found: &Found| Ok(this.confirmed(canvas, found)?.yes());
                    this.by_terminals(plan, Holes::Tokens(trie), own, accept)
                })?;
                answer = tried.unwrap_or(answer);
            }
        }
        if answer.decided().is_none() {
            answer = self.staged("completable: whole search", work, |this, work| {
                this.search_whole(canvas, plan, work)
            })?;
        }
        Ok(answer)
    }

    /// Runs a stage of `completable` and counts it.
    fn staged(
        &mut self,
        stage: &'static str,
        work: &mut Work,
        run: impl FnOnce(&mut Self, &mut Work) -> Result<Decision<Witness>, StepError>,
    ) -> Result<Decision<Witness>, StepError> {
        let (used, spent, begun) = (work.used(), self.counters.spent(), self.counters.begin());
        let answer = run(self, work);
        let decided = answer.as_ref().is_ok_and(|answer| answer.decided().is_some());
        let steps = work.used() - used + self.counters.spent() - spent;
        self.counters.add(stage, begun, (decided.into(), steps));
        answer
    }

    /// As `staged`, with at most a part of the steps; `None` if they do not suffice, or if it is not decided
    /// how a text reads. The steps count as steps of `work`.
    fn tried(
        &mut self,
        stage: &'static str,
        n_parts: usize,
        work: &mut Work,
        run: impl FnOnce(&mut Self, &mut Work) -> Result<Decision<Witness>, StepError>,
    ) -> Result<Option<Decision<Witness>>, StepError> {
        let own = &mut self.part_of(work, n_parts);
        let answer = match self.staged(stage, own, run) {
            Ok(answer) => Some(answer),
            Err(error) if matches!(error.kind(), ErrorKind::Limit | ErrorKind::Undecided) => None,
            Err(error) => return Err(error),
        };
        let spent = work.spend(own.used() as usize);
        // An answer is one also where its steps were the last.
        if answer.as_ref().is_none_or(|answer| answer.decided().is_none()) {
            spent?;
        }
        Ok(answer)
    }

    /// A canvas without a completion when each hole holds any number of tokens has none with one token each:
    /// nothing but a no comes of this.
    fn decide_no(&mut self, plan: &Plan, work: &mut Work) -> Result<Decision<Witness>, StepError> {
        let unknown = Decision::Unknown(Undecided::Between);
        // Where all runs are gaps anyway, `fit_loosely` asks the same.
        if !Relaxed::new(plan, SHORT_RUN).plan.places.contains(&Place::Free) {
            return Ok(unknown);
        }
        let constraint = self.constraint().clone();
        let Some(mut loose) = self.take_loose() else { return Ok(unknown) };
        let is_possible = loose.is_possible(&constraint, plan, work);
        self.loose = Some(Some(loose));
        Ok(if is_possible? { unknown } else { Decision::No })
    }

    /// A completion with gaps for long runs of holes can often be changed to fit; where there is none, and
    /// all runs are long, the canvas has none.
    fn fit_loosely(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let relaxed = Relaxed::new(plan, SHORT_RUN);
        let has_holes = relaxed.plan.places.contains(&Place::Free);
        let holes = if has_holes { Holes::Tokens(Trie::Few) } else { Holes::Gaps };
        self.by_terminals(&relaxed.plan, holes, work, &mut |this, found| {
            let vocabulary = this.constraint().vocabulary().clone();
            let as_prefix =
                found.end == relaxed.plan.places.len() && plan.whole == Some(End::Prefix { remaining: None });
            let fitted = relaxed.fit(&vocabulary, found, &mut |tokens| this.ends_as(tokens, as_prefix))?;
            fitted.map_or(Ok(None), |found| Ok(this.confirmed(canvas, &found)?.yes()))
        })
    }

    /// Looks for a completion by the terminals that a plan can be lexed to.
    fn by_terminals(
        &mut self,
        plan: &Plan,
        holes: Holes,
        work: &mut Work,
        accept: &mut Accept<'_>,
    ) -> Result<Decision<Witness>, StepError> {
        let constraint = self.constraint().clone();
        let unknown = Decision::Unknown(Undecided::Between);
        let Some(mut loose) = self.take_loose() else { return Ok(unknown) };
        let found = loose.complete(&constraint, plan, holes, work, &mut |found| accept(self, found));
        self.loose = Some(Some(loose));
        match found? {
            Some(Some(witness)) => return Ok(Decision::Yes(witness)),
            Some(None) => {}
            None if holes == Holes::Tokens(Trie::Few) => return Ok(unknown),
            None => return Ok(Decision::No),
        }
        // In `contextual` these texts may be cut as they cannot be.
        let Some(mut longest) = self.take_longest() else { return Ok(unknown) };
        let found = longest.complete(&constraint, plan, holes, work, &mut |found| accept(self, found));
        self.loose_longest = Some(Some(longest));
        Ok(found?.flatten().map_or(unknown, Decision::Yes))
    }

    /// The lexing by which that is decided: where automata grow it is one of their outlines, so that only a
    /// no holds. `None` where there is none.
    fn take_loose(&mut self) -> Option<Box<Loose>> {
        if self.loose.is_none() {
            let lexing = match self.tables.constraint.language().lexing() {
                lexing if lexing.is_growing() => self.tables.outline_lexing(),
                lexing => Some(lexing.clone()),
            };
            let few = self.tables.few_tokens();
            let constraint = &self.tables.constraint;
            self.loose = Some(lexing.map(|lexing| Box::new(Loose::new(constraint, lexing, few))));
        }
        self.loose.as_mut()?.take()
    }

    /// In `contextual` that of the longest match: its sentences are sentences there too.
    fn take_longest(&mut self) -> Option<Box<Loose>> {
        let Self { tables, loose_longest, .. } = self;
        let make = || {
            let few = tables.few_tokens();
            let longest = tables.constraint.longest()?;
            Some(Box::new(Loose::new(longest, longest.language().lexing().clone(), few)))
        };
        loose_longest.get_or_insert_with(make).take()
    }

    fn search(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        visits: usize,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let bounds = Bounds { visits, ..Bounds::default() };
        let confirm = Confirm::new(&mut self.matcher, canvas);
        let outcome = Search::new(&mut self.tables, plan, work, bounds).confirming(confirm).run()?;
        self.confirmed_outcome(canvas, outcome)
    }

    /// A search that ends with an answer, if it ends within the steps.
    fn search_whole(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let Some(change) = self.change(plan) else { return self.search(canvas, plan, usize::MAX, work) };
        if self.search_behind(plan, change, usize::MAX, work)?.is_no() {
            return Ok(Decision::No);
        }
        let outcome = Search::new(&mut self.tables, plan, work, Bounds::default()).run_up_to(change)?;
        self.confirmed_outcome(canvas, outcome)
    }

    /// The last slot in which a canvas without gaps differs from the last one that could be completed, if
    /// every text passes it.
    fn change(&self, plan: &Plan) -> Option<usize> {
        let (known, _) = self.last.as_ref()?;
        let known = Plan::new(self.constraint(), known);
        let is_alike = known.places.len() == plan.places.len() && !plan.has_gaps() && !known.has_gaps();
        let remembers = self.constraint().language().grammar().remembers();
        let differ = |(known, now): (&Place, &Place)| known != now;
        let change = || known.places.iter().zip(&plan.places).rposition(differ);
        let change = (is_alike && !remembers).then(change)?;
        change.filter(|&change| !plan.ends[..change].contains(&true))
    }

    /// A search from all readings that can stand before a slot, if they are known: it can only say no.
    fn search_behind(
        &mut self,
        plan: &Plan,
        slot: usize,
        visits: usize,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let bounds = Bounds { visits, ..Bounds::default() };
        let search = Search::new(&mut self.tables, plan, work, bounds);
        Ok(match search.run_from(slot).transpose()? {
            Some(Outcome::None) => Decision::No,
            Some(Outcome::Found(_) | Outcome::OutOfSteps) | None => Decision::Unknown(Undecided::Between),
        })
    }

    /// A short search with few tokens in gaps; without this bound it might not end.
    fn search_few(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let (few, belongs) = plan.with_few_in_gaps(FEW_IN_GAPS);
        // What stands left of the change hardly comes again. Canvases with gaps are asked about with each
        // token of the vocabulary in one question, and all that is kept of each would be too much.
        let kept_from = if plan.has_gaps() { usize::MAX } else { self.change(plan).unwrap_or(0) };
        let confirm = Confirm::new(&mut self.matcher, canvas).map(|confirm| confirm.of_slots(&belongs));
        // Where all texts at once are known, that is quicker than a search that is not short.
        let visits = if self.tables.is_growing() { FIRST_VISITS / 10 } else { FIRST_VISITS };
        let bounds = Bounds { visits, ..Bounds::default() };
        let search = Search::new(&mut self.tables, &few, work, bounds).confirming(confirm);
        match search.keeping_from(kept_from).run()? {
            Outcome::Found(found) => self.confirmed(canvas, &found.in_slots(&belongs)),
            Outcome::None if !plan.has_gaps() => Ok(Decision::No),
            Outcome::None | Outcome::OutOfSteps => Ok(Decision::Unknown(Undecided::Between)),
        }
    }

    /// Searches from readings before the last of what is fixed, which differ as much as possible: a search in
    /// depth that began with an unlucky choice does not come back to it soon.
    fn search_from_beam(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let beam = self.tables.beam(plan, WIDTH, work)?;
        let found = match beam.slots().split_last() {
            Some((last, before)) => {
                let readings = last.iter().map(|reached| reached.config);
                let bounds = Bounds { visits: FIRST_VISITS, ..Bounds::default() };
                let search = Search::new(&mut self.tables, plan, work, bounds);
                let found = search.completions(before.len(), readings, MOST_FROM_BEAM)?;
                found
                    .into_iter()
                    .map(|(config, mut found)| {
                        let mut tokens = beam.tokens(before.len(), config);
                        tokens.append(&mut found.tokens);
                        Found { tokens, ..found }
                    })
                    .collect()
            }
            None => Vec::new(),
        };
        for found in found {
            let answer = self.confirmed(canvas, &found)?;
            if answer.is_yes() {
                return Ok(answer);
            }
        }
        Ok(Decision::Unknown(Undecided::Between))
    }

    /// Decides by all texts at once, where the lexer lets that be exact: loosely first, where there may be
    /// more of them, and with few pieces, where there may be fewer.
    fn parse_all(
        &mut self,
        canvas: &Canvas,
        plan: &Plan,
        breadths: &[(bool, usize)],
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let (mut is_cut, mut is_possible) = (true, true);
        for (at, &(loosely, most_alike)) in breadths.iter().enumerate() {
            // Loosely and in vain, or not at all.
            let is_no_use = if loosely { at > 0 && (is_possible || !is_cut) } else { !is_possible };
            if is_no_use {
                continue;
            }
            let mut share = self.share_of_work(PARTS_OF_PARSING);
            let breadth = Breadth { loosely, most_alike };
            let own = if at == 0 { &mut *work } else { &mut share };
            let forward = self.tables.forward(plan, (breadth, false), own);
            work.spend(share.used() as usize)?;
            let forward = match forward {
                Ok(Some(forward)) => forward,
                Ok(None) => break,
                // Another breadth may be quicker.
                Err(_) => continue,
            };
            is_cut = forward.is_cut();
            is_possible = forward.is_possible();
            let answer = match is_possible {
                true => self.completions(canvas, &forward, work)?,
                false if is_cut => Decision::Unknown(Undecided::Between),
                false => Decision::No,
            };
            if at == 0 {
                self.tables.keep_forward(plan, forward);
            }
            if answer.decided().is_some() {
                return Ok(answer);
            }
        }
        Ok(Decision::Unknown(Undecided::Between))
    }

    /// Draws completions from all texts until one is confirmed: what is remembered texts do not know, and
    /// where they are had loosely some are none.
    pub(crate) fn completions(
        &mut self,
        canvas: &Canvas,
        forward: &Forward,
        work: &mut Work,
    ) -> Result<Decision<Witness>, StepError> {
        let (mut learned, mut n_astray) = (Learned::default(), 0);
        for seed in 0..MOST_REFUSED as u64 {
            let found = forward.completion(&mut self.tables, &mut learned, seed, work)?;
            let Some(found) = found else {
                n_astray += 1;
                if n_astray == MOST_ASTRAY {
                    break;
                }
                continue;
            };
            let answer = self.confirmed(canvas, &found)?;
            if answer.is_yes() {
                return Ok(answer);
            }
        }
        Ok(Decision::Unknown(Undecided::Between))
    }

    pub(crate) fn confirmed_outcome(
        &mut self,
        canvas: &Canvas,
        outcome: Outcome,
    ) -> Result<Decision<Witness>, StepError> {
        match outcome {
            Outcome::Found(found) => self.confirmed(canvas, &found),
            Outcome::None => Ok(Decision::No),
            Outcome::OutOfSteps => Ok(Decision::Unknown(Undecided::Between)),
        }
    }

    /// In `contextual` the tables of the longest match, in which readings can be merged.
    pub(crate) fn longest_tables(&mut self) -> Result<Option<&mut Tables>, StepError> {
        if self.longest_tables.is_none()
            && let Some(longest) = self.tables.constraint.longest()
        {
            self.longest_tables = Some(Box::new(Tables::new(longest)?));
        }
        Ok(self.longest_tables.as_deref_mut())
    }

    /// A yes, after its witness was replayed.
    pub(crate) fn confirmed(
        &mut self,
        canvas: &Canvas,
        found: &Found,
    ) -> Result<Decision<Witness>, StepError> {
        let witness = witness(self.constraint(), canvas, found);
        let replays = self.replays(canvas, found.end, &witness)?;
        Ok(if replays { Decision::Yes(witness) } else { Decision::Unknown(Undecided::Between) })
    }

    /// Whether the text of a witness ends as the canvas says, read from left to right.
    fn replays(&mut self, canvas: &Canvas, end: usize, witness: &Witness) -> Result<bool, StepError> {
        let mut text = witness.text(self.constraint());
        text.extend(&witness.closing);
        let is_whole = end == canvas.slots().len();
        let as_prefix = is_whole && canvas.end() == (End::Prefix { remaining: None });
        self.ends_as(&text, as_prefix)
    }

    /// Whether a text is a prefix of a sentence, or else a sentence.
    fn ends_as(&mut self, text: &[TokenId], as_prefix: bool) -> Result<bool, StepError> {
        if self.constraint().language().grammar().remembers() {
            return Ok(confirm::reads(&mut self.matcher, text, as_prefix));
        }
        self.matcher.reset();
        for &token in text {
            match self.matcher.advance(token) {
                Ok(()) => {}
                // Whether the text so far can be completed was not decided; but it is only asked what the
                // whole text is.
                Err(error) if error.kind() == ErrorKind::Undecided && !as_prefix => {
                    return self.is_sentence(text);
                }
                Err(MatchError::Limit(error)) => return Err(error),
                Err(_) => return Ok(false),
            }
        }
        Ok(as_prefix || self.matcher.is_sentence())
    }

    /// Whether a text is a sentence, asked only at its end.
    fn is_sentence(&mut self, text: &[TokenId]) -> Result<bool, StepError> {
        let mut readings: Vec<_> = self.tables.start()?.into_iter().collect();
        for &token in text {
            let mut next = Vec::new();
            for &reading in &readings {
                next.extend_from_slice(&self.tables.read(reading, token)?);
            }
            next.sort_unstable();
            next.dedup();
            readings = next;
        }
        Ok(self.tables.stepper.is_sentence(&readings))
    }
}

/// Whether each slot has what it can hold.
fn is_filled(canvas: &Canvas, slots: &[Filling]) -> bool {
    let same = |(slot, filling): (&Slot, &Filling)| match (slot, filling) {
        (Slot::Fixed(token), Filling::Token(own)) => token == own,
        (Slot::Hole, Filling::Token(_)) | (Slot::Gap, Filling::Tokens(_)) => true,
        _ => false,
    };
    slots.len() == canvas.slots().len() && canvas.slots().iter().zip(slots).all(same)
}

/// A completion as it was found, slot by slot.
pub(crate) fn witness(constraint: &Constraint, canvas: &Canvas, found: &Found) -> Witness {
    let vocabulary = constraint.vocabulary();
    let mut slots: Vec<Filling> = canvas
        .slots()
        .iter()
        .enumerate()
        .map(|(at, slot)| match slot {
            Slot::Fixed(token) => Filling::Token(*token),
            Slot::Gap => Filling::Tokens(Vec::new()),
            Slot::Hole => {
                let tail = if at > found.end { vocabulary.pad() } else { None };
                Filling::Token(tail.or(vocabulary.eos().first().copied()).unwrap_or(TokenId(0)))
            }
        })
        .collect();
    for &(slot, token) in &found.tokens {
        match slots.get_mut(slot) {
            Some(Filling::Token(own)) => *own = token,
            Some(Filling::Tokens(tokens)) => tokens.push(token),
            None => {}
        }
    }
    Witness { slots, closing: found.closing.clone() }
}

/// Asks the same of many canvases, in parallel: the answers come in the order of the canvases, and an error
/// of one does not affect the others.
///
/// Solvers are values or mutable references. Each takes the next canvas as soon as it is free, so all learn
/// something and none waits. The choice of solver is random. It can change which witness is found and what
/// stays undecided at a limit, but no decided answer. There are as many threads as solvers, of rayon's pool
/// in which this is called. No solver, no answers.
///
/// ```
/// # use anygram_any_order::{Canvas, End, Slot, Solver, batch_canvases};
/// # use std::sync::Arc;
/// # use anygram_left_to_right::{Constraint, Language, LanguageOptions};
/// # use anygram_vocab::{SpecialIds, TokenId, Vocabulary};
/// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
/// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
/// # let special = SpecialIds { eos: vec![3], ..SpecialIds::default() };
/// # let vocabulary = Vocabulary::from_tokens(["(", ")", "x", ""], special)?;
/// # let constraint = Constraint::new(language, vocabulary)?;
/// // The grammar is  start: "(" start ")" | "x"  and the tokens are "(", ")", "x" and EOS.
/// let [open, _, _, _] = [0, 1, 2, 3].map(TokenId);
/// let mut solvers = [Solver::new(&constraint)?, Solver::new(&constraint)?];
/// let canvases = [1, 2, 3, 4].map(|n_slots| {
///     let mut slots = vec![Slot::Hole; n_slots];
///     slots[0] = Slot::Fixed(open);
///     Canvas::new(slots, End::Sentence)
/// });
/// let answers = batch_canvases(&mut solvers, &canvases, |solver, canvas| solver.completable(canvas));
/// let answers: Vec<bool> = answers.into_iter().map(|answer| answer.is_ok_and(|it| it.is_yes())).collect();
/// assert_eq!(answers, [false, false, true, true]); // `(x)`, and `(x)` with EOS behind it
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn batch_canvases<T: Send, S: BorrowMut<Solver> + Send>(
    solvers: &mut [S],
    canvases: &[Canvas],
    ask: impl Fn(&mut Solver, &Canvas) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = |solver: &mut S| {
        let mut answers = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(canvas) = canvases.get(at) else { break answers };
            answers.push((at, ask(solver.borrow_mut(), canvas)));
        }
    };
    let mut answers: Vec<(usize, T)> = solvers.par_iter_mut().with_max_len(1).flat_map_iter(take).collect();
    answers.sort_unstable_by_key(|&(at, _)| at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
