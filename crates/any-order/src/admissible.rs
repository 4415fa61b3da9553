//! All admissible tokens of all holes.
//!
//! A row lies between two that are found quickly: what lexing lets pass, a table by what stands right of the
//! hole ([`crate::right`]), and what completions show that a search comes upon ([`crate::search`]). Where
//! much is open on both sides they are equal after a few steps, and that is the answer. Otherwise the upper
//! one is lowered by readings that stand for many ([`crate::admit`]), and the lower one raised by longer
//! searches, which know from lexing what has to stand left of the tokens that are open.

use std::borrow::Cow;
use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::frontier::Config;
use anygram_left_to_right::tokens::set_bit;
use anygram_vocab::{TokenId, TokenMask};

use crate::admit::{self, Admitted, Fillings};
use crate::beam::Width;
use crate::canvas::{Canvas, End, Slot};
use crate::confirm::Confirmed;
use crate::decision::{Decision, Undecided};
use crate::error::CanvasError;
use crate::lattice::Lattice;
use crate::open::unset;
use crate::plan::{Place, Plan};
use crate::right::Right;
use crate::search::{Depth, Search, Sought};
use crate::solver::{By, Filling, Solver, Witness};

/// What each hole of a canvas can hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admissible {
    /// One mask a hole, in the order of the holes: the tokens that can be put there and leave the canvas
    /// completable. EOS and PAD are among them.
    pub masks: Vec<TokenMask>,
    /// Of each row, `Some` if it lacks tokens of which it was not decided; those it has are certain.
    pub undecided: Vec<Option<Undecided>>,
}

impl Admissible {
    /// Whether a token can be put into a hole (by its number among the holes); no into one that is not there.
    pub fn get(&self, hole: usize, token: TokenId) -> Decision {
        if self.masks.get(hole).is_some_and(|mask| mask.contains(token)) {
            return Decision::Yes(());
        }
        match self.undecided.get(hole) {
            Some(Some(undecided)) => Decision::Unknown(undecided.clone()),
            _ => Decision::No,
        }
    }
}

/// Places that a search for the tokens of one hole enters, at first and where that was not enough.
const FIRST_VISITS: usize = 2_000;
const MOST_VISITS: usize = 20_000;

/// Of these, from one reading in vain.
const SOME_IN_VAIN: usize = 64;
const MOST_IN_VAIN: usize = 256;

/// And after how many in vain minimum costs are asked for, which where they are not known yet take longer
/// than a few places.
const COSTS_AFTER: usize = 16;

/// Open tokens of a hole that are told apart by what has to stand left of them.
const MOST_NARROW: usize = 1_024;

/// The part of all steps that merged readings take in `contextual`.
const PART_OF_MEETING: usize = 8;

/// How often the part is halved that they take, where most of what was open stayed so
/// the last times.
const MOST_HALVED: u32 = 5;

/// Of what merged readings take, the part in which they have to say what they refute: where they say it at
/// all they do so soon, and what they make of parser states in vain has to be kept.
const PART_OF_BOUND: usize = 4;

/// Readings before a slot: a search that looks at what single tokens do needs few, one for tokens of which
/// much stands further left as many as can be had cheaply.
const BEAM_WIDTH: Width = Width { some: 40, all: 256, alike: 48 };
const FIRST_READINGS: usize = 24;

/// The part of the steps in which it is found out where the text can end first.
const PART_OF_END: usize = 8;

/// What each hole of a canvas without gaps can hold at most, which filling other holes never enlarges.
pub(crate) struct Kept {
    plan: Plan,
    rows: Vec<(usize, Vec<u32>)>,
}

impl Kept {
    /// What holds of another canvas too.
    fn for_plan(self, plan: &Plan) -> Vec<(usize, Vec<u32>)> {
        let Self { plan: before, rows } = self;
        let n_slots = plan.places.len();
        let is_cut = match before.ends.get(n_slots) {
            // Behind the slots that are left there is an EOS by now.
            Some(could_end) => *could_end && plan.whole == Some(End::Sentence),
            None => before.places.len() == n_slots && before.whole == plan.whole,
        };
        // Whether the other had all completions that it has: EOS and PAD are told apart by where texts may
        // end.
        let mut places = before.places.iter().zip(&plan.places);
        let mut ends = before.ends.iter().zip(&plan.ends);
        let is_part = places.all(|(before, now)| before == now || *before == Place::Free)
            && ends.all(|(before, now)| *before || !now);
        if is_cut && is_part { rows } else { Vec::new() }
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.rows.iter().map(|(_, row)| size_of_val(&**row)).sum::<usize>()
    }
}

/// The first slot in which the EOS can stand that ends the text, as far as it is known.
struct Earliest {
    /// In none before this.
    not_before: usize,
    /// In this one, and in all later ones that can hold it.
    found: Option<usize>,
    /// Why it is not known whether in one between.
    undecided: Option<Undecided>,
}

/// A question about a canvas without gaps, while it is answered.
struct Question<'a> {
    solver: &'a mut Solver,
    canvas: &'a Canvas,
    plan: Plan,
    rows: Vec<Row>,
    /// Of each slot, readings that completions have before it.
    readings: Vec<Vec<Config>>,
    /// The EOS that ends the text stands in no slot before this.
    earliest_end: usize,
    /// Whether merged readings have said all that they refute.
    is_bounded: bool,
}

impl Solver {
    /// For every hole the tokens that can be put there and leave the canvas completable.
    pub fn admissible(&mut self, canvas: &Canvas) -> Result<Admissible, CanvasError> {
        self.check(canvas)?;
        self.renew()?;
        self.tables.renew_costs();
        let mut work = self.work();
        if canvas.slots().contains(&Slot::Gap) {
            return Ok(self.admissible_with_gaps(canvas, &mut work));
        }
        let plan = Plan::new(self.constraint(), canvas);
        let mut question = Question::new(self, canvas, plan, &mut work);
        question.decide();
        let Question { rows, earliest_end, plan, .. } = question;
        let possible = rows.iter().map(|row| (row.hole, row.possible())).collect();
        self.tables.kept = Some(Box::new(Kept { plan, rows: possible }));
        let rows = rows.into_iter().map(|row| (row.hole, row.undecided.clone(), row.found()));
        let rows: Vec<_> = match self.constraint().language().grammar().remembers() {
            false => rows.collect(),
            true => {
                let row = |(hole, undecided, found)| Confirmed::new(hole, found, undecided);
                let mut rows: Vec<Confirmed> = rows.map(row).collect();
                self.confirm_rows(canvas, &mut rows, &mut work);
                rows.into_iter().map(|row| (row.hole, row.undecided, row.words)).collect()
            }
        };
        let earliest = self.earliest_end(canvas, earliest_end, &mut self.share_of_work(PART_OF_END));
        let mut admissible = Admissible { masks: Vec::new(), undecided: Vec::new() };
        for (hole, undecided, mut words) in rows {
            let undecided = undecided.or(self.add_tail(&earliest, hole, &mut words));
            admissible.masks.push(TokenMask::from_words(words, self.constraint().vocabulary().len()));
            admissible.undecided.push(undecided);
        }
        Ok(admissible)
    }

    fn admissible_with_gaps(&mut self, canvas: &Canvas, work: &mut Work) -> Admissible {
        let mut admissible = Admissible { masks: Vec::new(), undecided: Vec::new() };
        let earliest = self.earliest_end(canvas, 0, &mut self.share_of_work(PART_OF_END));
        for hole in canvas.holes() {
            let mut words = vec![0; self.constraint().mask_words()];
            let undecided = self.admissible_one_by_one(canvas, hole, &mut words, work).err();
            let undecided = undecided.or(self.add_tail(&earliest, hole, &mut words));
            admissible.masks.push(TokenMask::from_words(words, self.constraint().vocabulary().len()));
            admissible.undecided.push(undecided);
        }
        admissible
    }

    /// The tokens of one hole by the definition, token by token.
    fn admissible_one_by_one(
        &mut self,
        canvas: &Canvas,
        hole: usize,
        words: &mut [u32],
        work: &mut Work,
    ) -> Result<(), Undecided> {
        let mut undecided = Ok(());
        let vocabulary = self.constraint().vocabulary().clone();
        for id in 0..vocabulary.len() {
            let token = TokenId::new(id);
            if vocabulary.eos().contains(&token) || vocabulary.pad() == Some(token) {
                continue;
            }
            let mut slots = canvas.slots().to_vec();
            slots[hole] = Slot::Fixed(token);
            let fixed = Canvas::new(slots, canvas.end());
            let plan = Plan::new(self.constraint(), &fixed);
            match self.decide(&fixed, &plan, work) {
                Decision::Yes(_) => set_bit(words, id),
                Decision::No => {}
                Decision::Unknown(reason) => undecided = Err(reason),
            }
        }
        undecided
    }

    /// Adds EOS and PAD to what a hole can hold.
    fn add_tail(&self, earliest: &Earliest, hole: usize, words: &mut [u32]) -> Option<Undecided> {
        let vocabulary = self.constraint().vocabulary();
        let mut undecided = None;
        let pad: Vec<TokenId> = vocabulary.pad().into_iter().collect();
        let tails = [(vocabulary.eos(), hole + 1), (&pad, hole)];
        for (tokens, behind) in tails.into_iter().filter(|(tokens, _)| !tokens.is_empty()) {
            match &earliest.undecided {
                _ if earliest.found.is_some_and(|end| end < behind) => {
                    tokens.iter().for_each(|token| set_bit(words, token.index()));
                }
                Some(why) if earliest.not_before < behind => undecided = Some(why.clone()),
                _ => {}
            }
        }
        undecided
    }

    /// Some completion, if one is found.
    fn witnessed(&mut self, canvas: &Canvas, plan: &Plan, work: &mut Work) -> Option<Witness> {
        match self.fits(canvas) {
            Some(witness) => Some(witness.clone()),
            None => match self.decide(canvas, plan, work) {
                Decision::Yes(witness) => Some(witness),
                Decision::No | Decision::Unknown(_) => None,
            },
        }
    }

    /// Adds the readings of a completion before each slot to others.
    fn add_readings(&mut self, witness: &Witness, readings: &mut [Vec<Config>]) {
        let mut at: Vec<Config> = self.tables.start().ok().flatten().into_iter().collect();
        for (token, before) in witness.text(self.constraint()).into_iter().zip(readings) {
            before.extend_from_slice(&at);
            before.sort_unstable();
            before.dedup();
            let mut next = Vec::new();
            for &reading in &at {
                next.extend_from_slice(&self.tables.read(reading, token).unwrap_or_else(|_| Arc::from([])));
            }
            next.sort_unstable();
            next.dedup();
            at = next;
        }
    }

    /// The first slot in which the EOS can stand that ends the text.
    fn earliest_end(&mut self, canvas: &Canvas, not_before: usize, work: &mut Work) -> Earliest {
        let mut plan = Plan::new(self.constraint(), canvas);
        let n_slots = plan.places.len();
        // Behind the slots of the plan there is an EOS, or nothing.
        if n_slots == canvas.slots().len() {
            plan.whole = None;
        }
        plan.ends[..not_before.min(n_slots)].fill(false);
        let first =
            |plan: &Plan| plan.ends.iter().position(|&ends| ends).or(plan.whole.map(|_| plan.places.len()));
        let mut earliest =
            Earliest { not_before: first(&plan).unwrap_or(n_slots), found: None, undecided: None };
        while first(&plan).is_some() {
            match self.decide(canvas, &plan, work) {
                Decision::Yes(witness) => {
                    let eos = self.constraint().vocabulary().eos();
                    let is_eos =
                        |filling: &Filling| matches!(filling, Filling::Token(token) if eos.contains(token));
                    let Some(end) = witness.slots.iter().position(is_eos) else {
                        earliest.undecided = Some(Undecided::Between);
                        break;
                    };
                    earliest.found = Some(end);
                    plan.ends[end.min(n_slots)..].fill(false);
                    plan.whole = None;
                }
                Decision::No => break,
                Decision::Unknown(why) => {
                    earliest.undecided = Some(why);
                    break;
                }
            }
        }
        earliest
    }
}

impl<'a> Question<'a> {
    fn new(solver: &'a mut Solver, canvas: &'a Canvas, plan: Plan, work: &mut Work) -> Self {
        let n_words = solver.constraint().mask_words();
        let holes: Vec<usize> = canvas.holes().collect();
        let bounds = match solver.by {
            By::All | By::Last => solver.tables.lexical_rows(&plan, work).ok(),
            By::Search | By::Parse(_) => None,
        };
        // All that is not excluded is sought.
        let bounds = match bounds {
            Some(bounds) => bounds,
            None => vec![vec![u32::MAX; n_words]; holes.len()],
        };
        let mut rows: Vec<Row> =
            holes.into_iter().zip(bounds).map(|(hole, bound)| Row::new(hole, bound)).collect();
        let known = solver.tables.kept.take().map(|kept| kept.for_plan(&plan)).unwrap_or_default();
        for (hole, possible) in known {
            rows.iter_mut().filter(|row| row.hole == hole).for_each(|row| row.restrict(&possible));
        }
        let mut readings = vec![Vec::new(); canvas.slots().len()];
        if let Some(witness) = solver.witnessed(canvas, &plan, work) {
            solver.add_readings(&witness, &mut readings);
        }
        Self { solver, canvas, plan, rows, readings, earliest_end: 0, is_bounded: false }
    }

    fn decide(&mut self) {
        match self.solver.by {
            By::All | By::Parse(_) => self.decide_by_all(),
            By::Search => self.search(Depth::All, usize::MAX),
            By::Last => {
                self.meet(Fillings::Few, 4);
                self.meet(Fillings::All, 4);
                self.search_narrowly(MOST_VISITS, MOST_IN_VAIN);
                self.search(Depth::All, usize::MAX);
            }
        }
    }

    /// What is quick comes first.
    fn decide_by_all(&mut self) {
        self.staged("admissible: beam of readings", |this| this.spread());
        self.staged("admissible: shallow search", |this| this.search(Depth::Shallow, FIRST_VISITS));
        self.staged("admissible: search from readings", |this| this.search(Depth::Given, FIRST_VISITS));
        self.staged("admissible: narrow search", |this| this.search_narrowly(FIRST_VISITS, SOME_IN_VAIN));
        // Merged readings decide all at once where that takes few steps.
        let n_open = self.n_open();
        if Lattice::is_of_use(&self.solver.tables) && n_open > 0 {
            self.meet_in(PART_OF_MEETING << self.solver.n_in_vain);
            let in_vain = self.n_open() > n_open / 2;
            let n = self.solver.n_in_vain;
            self.solver.n_in_vain = if in_vain { (n + 1).min(MOST_HALVED) } else { n.saturating_sub(1) };
        }
        self.staged("admissible: long narrow search", |this| this.search_narrowly(MOST_VISITS, MOST_IN_VAIN));
    }

    /// Decides what merged readings decide in a part of the steps, first with few tokens in other holes.
    fn meet_in(&mut self, n_parts: usize) {
        let stage = "admissible: merged readings meet";
        if self.staged(stage, |this| this.meet(Fillings::Few, n_parts)).is_some() {
            self.staged(stage, |this| this.meet(Fillings::All, n_parts));
        }
    }

    /// Runs a stage and counts what it decides.
    fn staged<T>(&mut self, stage: &'static str, run: impl FnOnce(&mut Self) -> T) -> T {
        if !self.solver.counters.is_on() {
            return run(self);
        }
        let (open, spent, begun) =
            (self.n_open(), self.solver.counters.spent(), self.solver.counters.begin());
        let result = run(self);
        let (decided, steps) = (open.saturating_sub(self.n_open()), self.solver.counters.spent() - spent);
        self.solver.counters.add(stage, begun, (decided as u64, steps));
        result
    }

    /// Adds readings that texts can have before slots, as different as possible; they come last, where they
    /// are looked at first.
    fn spread(&mut self) {
        let work = &mut self.solver.share_of_work(4);
        let beam = self.solver.tables.beam(&self.plan, BEAM_WIDTH, work);
        self.solver.counters.spend(work);
        let Ok(beam) = beam else { return };
        for (known, reached) in self.readings.iter_mut().zip(beam.slots()) {
            let reached: Vec<Config> = reached.iter().map(|reached| reached.config).collect();
            known.retain(|config| !reached.contains(config));
            known.extend_from_slice(&reached);
        }
    }

    fn is_open(&self) -> bool {
        self.rows.iter().any(Row::is_open)
    }

    fn n_open(&self) -> usize {
        self.rows.iter().map(Row::n_open).sum()
    }

    /// After how many places in vain minimum costs are asked for: at once where all is to be tried out.
    fn costs_after(&self) -> usize {
        if self.solver.by == By::Last { 0 } else { COSTS_AFTER }
    }

    fn n_open_rows(&self) -> usize {
        self.rows.iter().filter(|row| row.is_open()).count()
    }

    /// Seeks what is open of all holes, from the right: what was found out right of one hole serves those
    /// further left. What one hole takes is not taken from others.
    fn search(&mut self, depth: Depth, visits: usize) {
        let (n_rows, costs_after) = (self.n_open_rows(), self.costs_after());
        for (at, row) in self.rows.iter_mut().enumerate().rev().filter(|(_, row)| row.is_open()) {
            // What stands before the first hole is known, so to see all from there is to see all there is.
            let (depth, visits) = match depth {
                Depth::Given if at == 0 => (Depth::All, MOST_VISITS),
                _ => (depth, visits),
            };
            let work = &mut self.solver.share_of_work(if visits == usize::MAX { 1 } else { n_rows });
            let mut plan = self.plan.clone();
            plan.ends[..=row.hole].fill(false);
            let mut before = &*self.readings[row.hole];
            if depth == Depth::Shallow {
                before = &before[before.len().saturating_sub(FIRST_READINGS)..];
            }
            let sought = Sought {
                hole: row.hole,
                before: &[(row.hole, Cow::Borrowed(before))],
                depth,
                visits,
                in_vain: SOME_IN_VAIN,
                costs_after,
                words: &mut row.settled,
                right: None,
            };
            row.undecided = match Search::admissible(&mut self.solver.tables, &plan, work, sought) {
                Ok(true) => {
                    row.close();
                    None
                }
                Ok(false) => Some(Undecided::Between),
                Err(error) => Some(error.into()),
            };
            self.solver.counters.spend(work);
        }
    }

    /// Seeks what is open of each hole, from the right, with all that lexing says of what has to stand left
    /// of it: of tokens that end a comment, say, that something began one.
    fn search_narrowly(&mut self, visits: usize, in_vain: usize) {
        let n_rows = self.n_open_rows();
        for at in (0..self.rows.len()).rev() {
            if !self.rows[at].is_open() {
                continue;
            }
            let mut work = self.solver.share_of_work(n_rows);
            let found = self.search_row_narrowly(at, (visits, in_vain), &mut work);
            self.solver.counters.spend(&work);
            let row = &mut self.rows[at];
            row.undecided = match found {
                Ok(()) if row.is_open() => Some(Undecided::Between),
                Ok(()) => None,
                Err(undecided) => Some(undecided),
            };
        }
    }

    fn search_row_narrowly(
        &mut self,
        at: usize,
        (visits, in_vain): (usize, usize),
        work: &mut Work,
    ) -> Result<(), Undecided> {
        let costs_after = self.costs_after();
        let tables = &mut self.solver.tables;
        let row = &mut self.rows[at];
        let hole = row.hole;
        let mut plan = self.plan.clone();
        plan.ends[..=hole].fill(false);
        let open: Vec<TokenId> = unset(&row.settled).collect();
        let right = match &row.right {
            Some(right) => right,
            None => row.right.insert(tables.sharp_right(&plan, work)?),
        };
        let right = match open.len() {
            0..=MOST_NARROW => tables.towards((&plan, right), (hole, &open), work)?,
            _ => right.clone(),
        };
        // What stands further left is more, and changed last.
        let holes = self.canvas.holes().take_while(|&slot| slot <= hole);
        let before: Vec<(usize, Cow<'_, [Config]>)> =
            holes.map(|slot| (slot, Cow::Borrowed(&*self.readings[slot]))).collect();
        let sought = Sought {
            hole,
            before: &before,
            depth: Depth::All,
            visits,
            in_vain,
            costs_after,
            words: &mut row.settled,
            right: Some(right),
        };
        if Search::admissible(tables, &plan, work, sought)? {
            row.close();
        }
        Ok(())
    }

    /// The open rows: their holes and what is settled of them.
    fn open_rows(&self) -> Vec<(usize, Vec<u32>)> {
        let open = self.rows.iter().filter(|row| row.is_open());
        open.map(|row| (row.hole, row.settled.clone())).collect()
    }

    /// Strikes out of the open rows what merged readings refute, in a part of the steps; where they are
    /// exact, that decides the rows. Whether that was enough.
    fn merge(&mut self, n_parts: usize) -> bool {
        let holes = self.open_rows();
        let mut work = self.solver.share_of_work(n_parts);
        let (tables, asked) = (&mut self.solver.tables, (&*holes, Fillings::All));
        let admitted = admit::admitted(tables, &self.plan, asked, &mut work);
        self.solver.counters.spend(&work);
        let Ok(admitted) = admitted else { return false };
        let Admitted { rows, earliest_end, is_exact } = admitted;
        self.earliest_end = self.earliest_end.max(earliest_end);
        for (row, bound) in self.rows.iter_mut().filter(|row| row.is_open()).zip(rows) {
            row.restrict(&bound);
            if is_exact {
                row.admit_all();
            }
        }
        true
    }

    /// Decides rows by merged readings: what they find possible in `longest` is admissible,
    /// what they find impossible in the lexer's own mode is not. In `contextual` that may leave something
    /// between. `None` if it took too long to see what is possible.
    fn meet(&mut self, fillings: Fillings, n_parts: usize) -> Option<()> {
        if !self.is_open() {
            return Some(());
        }
        if self.solver.constraint().language().mode() != LexerMode::Contextual {
            self.merge(1);
            return Some(());
        }
        self.is_bounded = self.is_bounded || self.merge(n_parts * PART_OF_BOUND);
        self.merge_longest(fillings, n_parts)?;
        Some(())
    }

    /// In `contextual` admits what merged readings show to be admissible in `longest`, where they are exact:
    /// its sentences are sentences here. `None` if that took too long.
    fn merge_longest(&mut self, fillings: Fillings, n_parts: usize) -> Option<()> {
        // What is settled is not asked again.
        let holes = self.open_rows();
        let mut work = self.solver.share_of_work(n_parts);
        if let Some(tables) = self.solver.longest_tables().ok()? {
            let admitted = admit::admitted(tables, &self.plan, (&*holes, fillings), &mut work);
            self.solver.counters.spend(&work);
            let admitted = admitted.ok()?;
            for (row, found) in self.rows.iter_mut().filter(|row| row.is_open()).zip(admitted.rows) {
                row.admit(&found);
            }
        }
        Some(())
    }
}

/// The tokens of one hole while they are sought.
struct Row {
    hole: usize,
    /// What can be among them at most.
    bound: Vec<u32>,
    /// Those that need not be sought any more, the bits of no token included.
    settled: Vec<u32>,
    /// Of these, those that were found not to be admissible.
    refuted: Vec<u32>,
    /// What can stand before slots if the text does not end up to the hole, once it is asked for.
    right: Option<Right>,
    undecided: Option<Undecided>,
}

impl Row {
    fn new(hole: usize, bound: Vec<u32>) -> Self {
        let settled = bound.iter().map(|word| !word).collect();
        let refuted = vec![0; bound.len()];
        Self { hole, bound, settled, refuted, right: None, undecided: None }
    }

    /// Whether something is still to be sought.
    fn is_open(&self) -> bool {
        self.settled.iter().any(|&word| word != u32::MAX)
    }

    fn n_open(&self) -> usize {
        self.settled.iter().map(|word| word.count_zeros() as usize).sum()
    }

    /// Nothing else is admissible.
    fn close(&mut self) {
        let open: Vec<u32> = self.settled.iter().map(|word| !word).collect();
        self.refuted.iter_mut().zip(&open).for_each(|(word, open)| *word |= open);
        self.settled.fill(u32::MAX);
        self.undecided = None;
    }

    /// All that is not settled is admissible.
    fn admit_all(&mut self) {
        self.settled.fill(u32::MAX);
        self.undecided = None;
    }

    /// What is in a row is admissible, or settled.
    fn admit(&mut self, found: &[u32]) {
        self.settled.iter_mut().zip(found).for_each(|(settled, found)| *settled |= found);
        if !self.is_open() {
            self.undecided = None;
        }
    }

    /// Nothing is admissible that is not in a row.
    fn restrict(&mut self, bound: &[u32]) {
        for ((settled, refuted), bound) in self.settled.iter_mut().zip(&mut self.refuted).zip(bound) {
            *refuted |= !*settled & !bound;
            *settled |= !bound;
        }
        if !self.is_open() {
            self.undecided = None;
        }
    }

    /// What was not refuted.
    fn possible(&self) -> Vec<u32> {
        self.bound.iter().zip(&self.refuted).map(|(bound, refuted)| bound & !refuted).collect()
    }

    fn found(self) -> Vec<u32> {
        let words = self.settled.iter().zip(&self.bound).zip(&self.refuted);
        words.map(|((settled, bound), refuted)| settled & bound & !refuted).collect()
    }
}
