//! All that a text read so far can mean.
//!
//! A [`Config`] is one reading: the parser's state before the piece in progress, and that piece as a lexeme.
//! A [`Frontier`] is the set of readings of a text. Stepping a byte steps every lexeme; where a piece may
//! end, the parser reads its labels and a new boundary begins.
//!
//! In `scannerless` all pieces that end at one place lead to *one* parser state, so the number of readings is
//! bounded by the length of the longest piece, not by the number of cuts. In the modes with longest match
//! different cuts stay apart (what competes in `contextual` depends on the cut), but few survive their
//! obligations. In `scannerless` too ends stay apart if the grammar promises that few survive
//! ([`Lexing::merges_ends`](anygram_lexer::transducer::Lexing::merges_ends)).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use anygram_bits::work::{Cancel, Stopped, Work};
use anygram_bits::{BitSet, PartedMap};
use anygram_grammar::ir::{LexerMode, TerminalId};
use anygram_grammar::memory::Remembered;
use anygram_lexer::boundary::ClassId;
use anygram_lexer::transducer::{Cut, CutId, LexemeId, ObligationsId, Place, Prospect, Transducer, WantedId};
use anygram_recognizer::earley::Earley;
use anygram_recognizer::{Edge, Mark, Recognizer, RecognizerError, Relation, StateId, View};
use rustc_hash::FxHashMap;

use crate::epoch::Fading;
use crate::error::StepCause;
use crate::language::{Language, StepError};

/// One reading of a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Config {
    /// The parser's state before the piece in progress.
    pub state: StateId,
    /// The piece in progress.
    pub lexeme: LexemeId,
}

/// The readings of a text, sorted, without repetition.
pub type Frontier = Vec<Config>;

/// What a text consists of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Symbol {
    /// A byte.
    Byte(u8),
    /// A token that the grammar names.
    Special(TerminalId),
}

/// Readings, each with the one before and the symbol between.
type Seen = FxHashMap<Config, Option<(Config, Symbol)>>;

/// Which automaton of pieces was asked about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Purpose {
    /// The one with which a yes holds.
    Can,
    /// The same, looking at no other states of the parser.
    CanAnywhere,
    /// The one with which a no holds.
    May,
}

/// The tables that grow while texts of one language are read: parser states and lexemes.
pub struct Stepper {
    recognizer: Box<dyn Recognizer>,
    transducer: Transducer,
    /// What each parser state wants. Kept in step with the recognizer's states.
    wanted: FxHashMap<StateId, WantedId>,
    /// What the end of a piece leads to. This and what follows is forgotten together with parser states.
    ends: PartedMap<(StateId, CutId), Option<Config>>,
    merged_ends: PartedMap<Box<[(StateId, CutId)]>, Option<Config>>,
    /// Whether a reading of unknown prospect can be completed.
    prospects: FxHashMap<Config, Option<bool>>,
    /// Steps and answers of the parser on the way to that, and the fewest terminals that its states lack.
    remaining: FxHashMap<StateId, u32>,
    steps: FxHashMap<(StateId, TerminalId), Option<StateId>>,
    finishes: FxHashMap<(Purpose, StateId, ClassId), bool>,
    pending: Vec<(StateId, CutId)>,
    /// The parser states that were looked into since `begin_trace`.
    trace: Trace,
    work: Work,
    /// Who may stop the operations that begin from now on.
    pub cancel: Option<Cancel>,
    /// How often parser states were forgotten.
    generation: u64,
}

/// Which parser states something depends on.
#[derive(Default)]
struct Trace {
    /// Whether anybody wants to know.
    is_on: bool,
    /// Perhaps with repetitions.
    states: Vec<StateId>,
    /// Whether they are more than can be told.
    is_lost: bool,
}

impl AsMut<Self> for Stepper {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// The states, other than `from`, that were looked into to read a terminal from a state; `None` if the engine
/// does not say.
fn looked_into(recognizer: &dyn Recognizer, from: StateId, terminal: TerminalId) -> Option<&[StateId]> {
    recognizer.shared_states()?.looked_into(from, terminal)
}

impl Stepper {
    /// Empty tables for a language.
    pub fn new(language: &Language) -> Result<Self, RecognizerError> {
        Ok(Self::with(language, language.recognizer()?))
    }

    /// Empty tables in which equal readings that were reached by different ways are one [`Config`]: see
    /// [`Choice::interning_recognizer`](anygram_recognizer::Choice::interning_recognizer).
    pub fn interning(language: &Language) -> Result<Self, RecognizerError> {
        Ok(Self::with(language, language.interning_recognizer()?))
    }

    /// Empty tables around a recognizer of the language's terminals
    /// ([`Lexing::cfg`](anygram_lexer::transducer::Lexing)) that is at its start.
    pub fn with(language: &Language, recognizer: Box<dyn Recognizer>) -> Self {
        Self {
            recognizer,
            transducer: Transducer::default(),
            wanted: FxHashMap::default(),
            ends: PartedMap::default(),
            merged_ends: PartedMap::default(),
            prospects: FxHashMap::default(),
            remaining: FxHashMap::default(),
            steps: FxHashMap::default(),
            finishes: FxHashMap::default(),
            pending: Vec::new(),
            trace: Trace::default(),
            work: Work::new(language.limits().mask_steps, "mask_steps"),
            cancel: None,
            generation: 0,
        }
    }

    /// Begins new parser states, which are a new recognizer's, and unless lexemes stay, new lexemes. Returns
    /// what was, without the lexemes that stay, and whether shapes of states mean what they did.
    pub(crate) fn renew(
        &mut self,
        language: &Language,
        recognizer: Box<dyn Recognizer>,
        keeps_lexemes: bool,
    ) -> (Self, bool) {
        let mut fresh = Self::with(language, recognizer);
        let has_shapes = keeps_lexemes && fresh.take_lexemes(self);
        // What was known of the old parser states does not hold of these.
        fresh.generation = self.generation + 1;
        (std::mem::replace(self, fresh), has_shapes)
    }

    /// Its recognizer; what else is large fades.
    pub(crate) fn into_recognizer(self, fading: &mut Fading) -> Box<dyn Recognizer> {
        fading.add(self.ends);
        fading.add(self.merged_ends);
        self.recognizer
    }

    /// Forgets the numbers of shapes: what is known by them has to be forgotten too.
    pub(crate) fn forget_shapes(&mut self) {
        self.recognizer.shared_states_mut().into_iter().for_each(Earley::forget_shapes);
    }

    /// The reading that is one of another recognizer, see [`Earley::adopt`]. `None` if the engines share no
    /// states.
    pub(crate) fn adopt(
        &mut self,
        of: &dyn Recognizer,
        known: &mut FxHashMap<StateId, StateId>,
        config: Config,
    ) -> Result<Option<Config>, StepError> {
        let (Some(own), Some(of)) = (self.recognizer.shared_states_mut(), of.shared_states()) else {
            return Ok(None);
        };
        let state = own.adopt(of, config.state, known)?;
        Ok(Some(Config { state, ..config }))
    }

    /// Takes the lexemes of other tables, which have none from then on, and the numbers of their parser
    /// states' shapes, unless these are too many.
    pub fn take_lexemes(&mut self, of: &mut Self) -> bool {
        self.transducer = std::mem::take(&mut of.transducer);
        match (self.recognizer.shared_states_mut(), of.recognizer.shared_states_mut()) {
            (Some(own), Some(others)) => own.take_shapes(others),
            _ => true,
        }
    }

    /// Begins a mask, a token or a byte: what it takes is counted from here.
    pub fn begin(&mut self, language: &Language) {
        let work = Work::new(language.limits().mask_steps, "mask_steps");
        self.work = match &self.cancel {
            Some(cancel) => work.with_cancel(cancel.clone()),
            None => work,
        };
    }

    /// Counts steps that are taken on behalf of what was begun.
    #[inline]
    pub fn spend(&mut self, steps: usize) -> Result<(), Stopped> {
        self.work.spend(steps)
    }

    /// The recognizer's state after some edges; the items that it makes count as steps.
    fn extend(&mut self, edges: &[Edge]) -> Result<Option<StateId>, StepError> {
        let before = self.recognizer.n_items();
        let state = self.recognizer.extend(edges)?;
        self.work.spend(edges.len() + self.recognizer.n_items().saturating_sub(before))?;
        for &Edge { from, terminal } in edges {
            self.look_into(from, terminal);
        }
        Ok(state)
    }

    /// From here on the parser states are noted that are looked into.
    pub(crate) fn begin_trace(&mut self) {
        self.trace.is_on = true;
        self.trace.is_lost = false;
        self.trace.states.clear();
    }

    /// The parser states that were looked into since [`Stepper::begin_trace`], perhaps with repetitions;
    /// `None` if they are more than can be told.
    pub(crate) fn looked_into(&self) -> Option<&[StateId]> {
        (!self.trace.is_lost).then_some(&*self.trace.states)
    }

    /// From here on nobody wants to know.
    pub(crate) fn end_trace(&mut self) {
        self.trace.is_on = false;
    }

    /// Notes that a state was looked into, and what reading a terminal from it looked into.
    pub fn look_into(&mut self, from: StateId, terminal: Option<TerminalId>) {
        let Self { trace, recognizer, .. } = self;
        if !trace.is_on {
            return;
        }
        trace.states.push(from);
        let Some(terminal) = terminal else { return };
        match looked_into(&**recognizer, from, terminal) {
            Some(others) => trace.states.extend_from_slice(others),
            None => trace.is_lost = true,
        }
    }

    /// What can be seen of a parser state. `None` if the engine does not share what it knows in this way.
    pub fn view(&mut self, state: StateId) -> Option<View<'_>> {
        self.recognizer.shared_states_mut().map(|engine| engine.view(state))
    }

    /// Whether a parser state is one for which another engine is better, see [`Language::may_switch`].
    pub fn is_heavy(&self, state: StateId) -> bool {
        self.recognizer.shared_states().is_some_and(|engine| engine.is_heavy(state))
    }

    /// A measure of what the parser did so far.
    pub fn effort(&self) -> usize {
        let recognizer = &self.recognizer;
        recognizer.shared_states().map_or_else(|| recognizer.n_items(), |engine| engine.effort())
    }

    /// The recognizer.
    pub fn recognizer(&self) -> &dyn Recognizer {
        &*self.recognizer
    }

    /// The recognizer, if it is one whose states are shared between texts.
    pub fn earley_mut(&mut self) -> Option<&mut Earley> {
        self.recognizer.shared_states_mut()
    }

    /// The lexemes.
    pub fn transducer(&self) -> &Transducer {
        &self.transducer
    }

    /// The lexemes, to be stepped without the parser.
    pub fn transducer_mut(&mut self) -> &mut Transducer {
        &mut self.transducer
    }

    /// The reading of the empty text; `None` if no text is a sentence.
    pub fn start(&mut self, language: &Language) -> Result<Option<Frontier>, StepError> {
        let state = self.recognizer.start();
        let wanted = self.wanted(language, state);
        let lexeme = self.transducer.first(language.lexing(), wanted)?;
        Ok(lexeme.map(|lexeme| vec![Config { state, lexeme }]))
    }

    /// The readings after one more byte, into `next`.
    pub fn step(
        &mut self,
        language: &Language,
        frontier: &[Config],
        byte: u8,
        next: &mut Frontier,
    ) -> Result<(), StepError> {
        next.clear();
        self.work.spend(frontier.len())?;
        let lexing = language.lexing();
        self.pending.clear();
        for &Config { state, lexeme } in frontier {
            let step = self.transducer.step(lexing, lexeme, byte)?;
            next.extend(step.stay.map(|lexeme| Config { state, lexeme }));
            self.pending.extend(step.cut.map(|cut| (state, cut)));
        }
        self.end_all(language, next)?;
        next.sort_unstable();
        next.dedup();
        Ok(())
    }

    /// Adds what the ends of the pending pieces lead to.
    fn end_all(&mut self, language: &Language, next: &mut Frontier) -> Result<(), StepError> {
        match *self.pending {
            [] => {}
            [end] => next.extend(self.end(language, end)?),
            _ if language.lexing().merges_ends() => next.extend(self.merged_end(language)?),
            _ => {
                for at in 0..self.pending.len() {
                    let end = self.pending[at];
                    next.extend(self.end(language, end)?);
                }
            }
        }
        Ok(())
    }

    /// As [`Stepper::step`] outside of remembered values, to which other readings return whose pieces end
    /// with the byte by these edges. The readings within values that are opened are given apart, each with
    /// the memory of the value.
    pub(crate) fn step_outside(
        &mut self,
        language: &Language,
        frontier: &[Config],
        (byte, returning): (u8, Vec<Edge>),
        next: &mut Frontier,
    ) -> Result<Vec<(u32, Config)>, StepError> {
        self.work.spend(frontier.len())?;
        let terminals = &language.grammar().terminals;
        let opened_by = |scan: TerminalId| terminals[scan.index()].memory.and_then(Remembered::opens);
        self.pending.clear();
        let mut opens = false;
        for &Config { state, lexeme } in frontier {
            let step = self.transducer.step(language.lexing(), lexeme, byte)?;
            next.extend(step.stay.map(|lexeme| Config { state, lexeme }));
            self.pending.extend(step.cut.map(|cut| (state, cut)));
            let scans = step.cut.iter().flat_map(|&cut| &self.transducer.cut(cut).scans);
            opens |= { scans }.any(|&scan| opened_by(scan).is_some());
        }
        let mut opened = Vec::new();
        if opens || !returning.is_empty() {
            let mut groups = BTreeMap::from([(None, returning)]);
            self.pending.sort_unstable();
            self.pending.dedup();
            for &(from, cut) in &self.pending {
                let cut = self.transducer.cut(cut);
                for &scan in &cut.scans {
                    let edge = Edge { from, terminal: Some(scan) };
                    groups.entry(opened_by(scan)).or_default().push(edge);
                }
                groups.entry(None).or_default().extend(cut.skip.then_some(Edge { from, terminal: None }));
            }
            for (value, edges) in groups.into_iter().filter(|(_, edges)| !edges.is_empty()) {
                let Some(state) = self.extend(&edges)? else { continue };
                let config = self.boundary(language, state, ObligationsId(0))?;
                match value {
                    None => next.extend(config),
                    Some(value) => opened.extend(config.map(|config| (value, config))),
                }
            }
        } else {
            self.end_all(language, next)?;
        }
        next.sort_unstable();
        next.dedup();
        Ok(opened)
    }

    /// The edges along which readings leave a value that a byte closes; what goes on is added to `next`.
    pub(crate) fn closing_edges(
        &mut self,
        language: &Language,
        frontier: &[Config],
        byte: u8,
        next: &mut Frontier,
    ) -> Result<Vec<Edge>, StepError> {
        self.work.spend(frontier.len())?;
        let mut edges = Vec::new();
        for &Config { state: from, lexeme } in frontier {
            let step = self.transducer.step(language.lexing(), lexeme, byte)?;
            next.extend(step.stay.map(|lexeme| Config { state: from, lexeme }));
            let Some(cut) = step.cut else { continue };
            let cut = self.transducer.cut(cut);
            edges.extend(cut.scans.iter().map(|&scan| Edge { from, terminal: Some(scan) }));
            edges.extend(cut.skip.then_some(Edge { from, terminal: None }));
        }
        Ok(edges)
    }

    /// As [`Stepper::step`], where a piece that ends with the byte repeats an earlier one: it is none of a
    /// terminal whose pieces are distinct.
    pub(crate) fn step_afresh(
        &mut self,
        language: &Language,
        frontier: &[Config],
        byte: u8,
        next: &mut Frontier,
    ) -> Result<(), StepError> {
        next.clear();
        self.work.spend(frontier.len())?;
        let terminals = &language.grammar().terminals;
        for &Config { state, lexeme } in frontier {
            let step = self.transducer.step(language.lexing(), lexeme, byte)?;
            next.extend(step.stay.map(|lexeme| Config { state, lexeme }));
            let Some(cut) = step.cut else { continue };
            let Cut { scans, skip, obligations } = self.transducer.cut(cut).clone();
            let may_repeat = |scan: &TerminalId| {
                terminals[scan.index()].memory.is_none_or(|terminal| !terminal.is_distinct())
            };
            let scans: Vec<TerminalId> = scans.into_iter().filter(may_repeat).collect();
            if scans.is_empty() && !skip {
                continue;
            }
            if let Some(state) = self.read_piece(state, &scans, skip)? {
                next.extend(self.boundary(language, state, obligations)?);
            }
        }
        next.sort_unstable();
        next.dedup();
        Ok(())
    }

    /// The readings after a token that the grammar names.
    pub fn step_special(
        &mut self,
        language: &Language,
        frontier: &[Config],
        terminal: TerminalId,
    ) -> Result<Frontier, StepError> {
        let mut next = Frontier::new();
        for &Config { state, lexeme } in frontier {
            if !self.transducer.is_boundary(lexeme) {
                continue;
            }
            let Some(state) = self.extend(&[Edge { from: state, terminal: Some(terminal) }])? else {
                continue;
            };
            let wanted = self.wanted(language, state);
            next.extend(
                self.transducer.first(language.lexing(), wanted)?.map(|lexeme| Config { state, lexeme }),
            );
        }
        next.sort_unstable();
        next.dedup();
        Ok(next)
    }

    /// Whether the text is a sentence.
    pub fn is_sentence(&self, frontier: &[Config]) -> bool {
        let ends = |config: &Config| {
            self.transducer.is_boundary(config.lexeme) && self.recognizer.is_sentence(config.state)
        };
        frontier.iter().any(ends)
    }

    /// Whether some continuation makes a sentence of the text.
    pub fn is_viable(&mut self, language: &Language, frontier: &[Config]) -> Result<bool, StepError> {
        if frontier.iter().any(|config| self.transducer.prospect(config.lexeme) == Prospect::Completable) {
            return Ok(true);
        }
        // A yes needs no decision about the others.
        let mut undecided = None;
        for &config in frontier {
            match self.ask(language, config) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => undecided = Some(error),
            }
        }
        undecided.map_or(Ok(false), Err)
    }

    /// Whether a reading can be completed whatever the parser's state.
    pub(crate) fn is_completable(&self, config: Config) -> bool {
        self.transducer.prospect(config.lexeme) == Prospect::Completable
    }

    /// The terminals that may come next, or be in progress and go on: with more than blanks, unless nothing
    /// else is expected.
    pub fn expected_terminals(&self, language: &Language, frontier: &[Config]) -> BitSet {
        let (lexing, used) = (language.lexing(), &language.lexing().lexicon.used);
        let all = |of: &dyn Fn(LexemeId) -> BitSet| {
            let mut all = BitSet::new(language.grammar().terminals.len());
            for config in frontier {
                all.union_with(&of(config.lexeme));
            }
            all.intersect_with(used);
            all
        };
        let expected = all(&|lexeme| self.transducer.expected(lexing, lexeme));
        if expected.iter().next().is_some() {
            return expected;
        }
        all(&|lexeme| self.transducer.candidates(lexing, lexeme))
    }

    /// The names of the expected terminals, in the order of the grammar.
    pub fn expected(&self, language: &Language, frontier: &[Config]) -> Vec<String> {
        let expected = self.expected_terminals(language, frontier);
        expected.iter().map(|at| language.terminal_name(TerminalId::new(at)).to_owned()).collect()
    }

    /// The present point, for [`Stepper::release`].
    pub fn mark(&self) -> Mark {
        self.recognizer.mark()
    }

    /// Allows to forget the parser states made since `mark`, which no frontier that is still needed may hold.
    pub fn release(&mut self, mark: Mark) {
        if !self.recognizer.release(mark) {
            return;
        }
        let made = self.recognizer.n_states();
        self.generation += 1;
        self.wanted.retain(|state, _| state.index() < made);
        self.ends.clear();
        self.merged_ends.clear();
        self.prospects.clear();
        self.remaining.clear();
        self.steps.clear();
        self.finishes.clear();
    }

    /// How much is held that goes when parser states are renewed: parse items, and what pieces lead to.
    pub fn held(&self) -> usize {
        self.recognizer.n_items() + self.ends.len() + self.merged_ends.len()
    }

    /// How often parser states were forgotten: what is kept by their ids holds as long as this is the same.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.recognizer.memory_usage()
            + self.transducer.memory_usage()
            + self.wanted.len() * 16
            + (self.ends.len() + self.merged_ends.len() + self.prospects.len() + self.finishes.len()) * 48
    }

    fn wanted(&mut self, language: &Language, state: StateId) -> WantedId {
        if let Some(&wanted) = self.wanted.get(&state) {
            return wanted;
        }
        let (scans, is_sentence) = (self.recognizer.viable(state), self.recognizer.is_sentence(state));
        let wanted = self.transducer.wanted(language.lexing(), scans, is_sentence);
        self.wanted.insert(state, wanted);
        wanted
    }

    /// What the end of one piece leads to.
    pub fn end(&mut self, language: &Language, end: (StateId, CutId)) -> Result<Option<Config>, StepError> {
        if let Some(&known) = self.ends.get(&end) {
            self.look_into_cut(end);
            return Ok(known);
        }
        let (from, cut) = (end.0, self.transducer.cut(end.1).clone());
        let result = match self.read_piece(from, &cut.scans, cut.skip)? {
            Some(state) => self.boundary(language, state, cut.obligations)?,
            None => None,
        };
        self.ends.insert_unique(end, result);
        Ok(result)
    }

    /// As [`Stepper::look_into`], for the labels of a piece.
    fn look_into_cut(&mut self, (from, cut): (StateId, CutId)) {
        let Self { transducer, trace, recognizer, .. } = self;
        if !trace.is_on {
            return;
        }
        for &scan in &transducer.cut(cut).scans {
            trace.states.push(from);
            match looked_into(&**recognizer, from, scan) {
                Some(others) => trace.states.extend_from_slice(others),
                None => trace.is_lost = true,
            }
        }
    }

    /// The parser's state after a piece with these labels, which may also be ignored.
    pub(crate) fn read_piece(
        &mut self,
        from: StateId,
        scans: &[TerminalId],
        skip: bool,
    ) -> Result<Option<StateId>, StepError> {
        let mut edges: Vec<Edge> = scans.iter().map(|&scan| Edge { from, terminal: Some(scan) }).collect();
        if skip && !edges.is_empty() {
            edges.push(Edge { from, terminal: None });
        }
        if edges.is_empty() { Ok(Some(from)) } else { self.extend(&edges) }
    }

    /// The reading that stands for readings at one place of the lexer's automata: it reads what any of their
    /// parser states reads. In `scannerless` and `longest` that is exact; in `contextual` what competes for a
    /// piece depends on the parser's state, so only if they are one. `None` if nothing wanted can come of it.
    pub fn merged(
        &mut self,
        language: &Language,
        states: &[StateId],
        place: Place,
    ) -> Result<Option<Config>, StepError> {
        let edges: Vec<Edge> = states.iter().map(|&from| Edge { from, terminal: None }).collect();
        let Some(state) = self.extend(&edges)? else { return Ok(None) };
        let wanted = self.wanted(language, state);
        let lexeme = self.transducer.at(language.lexing(), place, wanted)?;
        Ok(lexeme.map(|lexeme| Config { state, lexeme }))
    }

    /// What the ends of all pending pieces lead to, as one parser state (`scannerless`).
    fn merged_end(&mut self, language: &Language) -> Result<Option<Config>, StepError> {
        self.pending.sort_unstable();
        self.pending.dedup();
        let pending: Box<[_]> = (*self.pending).into();
        if let Some(&known) = self.merged_ends.get(&pending) {
            for at in 0..self.pending.len() {
                self.look_into_cut(self.pending[at]);
            }
            return Ok(known);
        }
        let mut edges = Vec::new();
        for &(from, cut) in &self.pending {
            let cut = self.transducer.cut(cut);
            edges.extend(cut.scans.iter().map(|&scan| Edge { from, terminal: Some(scan) }));
            edges.extend(cut.skip.then_some(Edge { from, terminal: None }));
        }
        let result = match self.extend(&edges)? {
            None => None,
            Some(state) => self.boundary(language, state, ObligationsId(0))?,
        };
        self.merged_ends.insert_unique(pending, result);
        Ok(result)
    }

    pub(crate) fn boundary(
        &mut self,
        language: &Language,
        state: StateId,
        obligations: ObligationsId,
    ) -> Result<Option<Config>, StepError> {
        let wanted = self.wanted(language, state);
        let lexeme = self.transducer.boundary(language.lexing(), wanted, obligations)?;
        Ok(lexeme.map(|lexeme| Config { state, lexeme }))
    }

    /// Whether some continuation makes a sentence of a reading of unknown prospect.
    fn ask(&mut self, language: &Language, config: Config) -> Result<bool, StepError> {
        if let Some(known) = self.judge(language, config)? {
            return Ok(known);
        }
        // A yes is a witness; a no has seen all there is. What competes depends on the parser, so there may
        // be infinitely much to see: a search over states of a context-free process, for which no bound is
        // known, hence the limit.
        let (found, seen) = self.explore(language, &[config], |this, config| this.judge(language, config))?;
        match found {
            Some(_) => drop(self.prospects.insert(config, Some(true))),
            None => self.prospects.extend(seen.into_keys().map(|config| (config, Some(false)))),
        }
        Ok(found.is_some())
    }

    /// Whether a reading can be completed, as far as the automata of pieces can tell.
    fn judge(&mut self, language: &Language, config: Config) -> Result<Option<bool>, StepError> {
        if self.transducer.prospect(config.lexeme) == Prospect::Completable {
            return Ok(Some(true));
        }
        let is_traced = self.trace.is_on;
        let known = self.prospects.get(&config).copied();
        if let Some(known) = known
            && !is_traced
        {
            return Ok(known);
        }
        if known.is_none_or(|known| known == Some(true))
            && (self.is_enough(language, config)?
                || self.can_be_spelled(language, config, Purpose::CanAnywhere)?)
        {
            self.prospects.insert(config, Some(true));
            return Ok(Some(true));
        }
        if is_traced {
            // The answer depends on the whole of what was read.
            self.trace.is_lost = true;
        }
        if let Some(known) = known {
            return Ok(known);
        }
        let verdict = if self.can_be_spelled(language, config, Purpose::Can)? {
            Some(true)
        } else if language.mode() == LexerMode::Longest && language.lexing().cfg.automata.is_empty()
            || !self.may_be_spelled(language, config)?
        {
            Some(false)
        } else {
            None
        };
        self.prospects.insert(config, verdict);
        Ok(verdict)
    }

    /// Whether the parser wants something that is enough for a reading to be completed. (What it wants after
    /// an ignored piece the lexeme does not know.)
    fn is_enough(&self, language: &Language, Config { state, lexeme }: Config) -> Result<bool, StepError> {
        let lexing = language.lexing();
        let node = self.transducer.node(lexing, lexeme)?;
        let enough = node.and_then(|node| lexing.boundaries()?.enough(node));
        Ok(enough.is_some_and(|enough| enough.intersects_bits(self.recognizer.viable(state))))
    }

    /// Whether a reading can be completed if all terminals compete: in `longest` the truth, in `contextual` a
    /// sufficient condition, and so where automata give rules.
    fn can_be_spelled(
        &mut self,
        language: &Language,
        Config { state, lexeme }: Config,
        purpose: Purpose,
    ) -> Result<bool, StepError> {
        let boundaries =
            language.lexing().boundaries().filter(|boundaries| boundaries.completions().is_some());
        let Some(boundaries) = boundaries else { return Ok(false) };
        let Some(node) = self.transducer.node(language.lexing(), lexeme)? else { return Ok(false) };
        for class in boundaries.reached_classes(node) {
            if self.can_finish(language, purpose, state, class) {
                return Ok(true);
            }
        }
        let candidates = self.recognizer.viable(state).clone();
        for outcome in
            boundaries.outcomes(node).filter(|outcome| candidates.contains(outcome.terminal.index()))
        {
            let Some(next) = self.after(state, outcome.terminal)? else { continue };
            if self.can_finish(language, purpose, next, outcome.to) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a `contextual` reading could be completed if pieces owed nothing to other terminals than their
    /// own: a necessary condition.
    fn may_be_spelled(
        &mut self,
        language: &Language,
        Config { state, lexeme }: Config,
    ) -> Result<bool, StepError> {
        let Some(own) = language.own_debts()?.map(|own| &own.debts) else { return Ok(true) };
        let candidates = self.transducer.candidates(language.lexing(), lexeme);
        let can_be_ignored = candidates.intersects(&language.lexing().lexicon.ignored);
        if (can_be_ignored || self.transducer.is_boundary(lexeme))
            && self.can_finish(language, Purpose::May, state, own.free_class())
        {
            return Ok(true);
        }
        for terminal in candidates.iter().map(TerminalId::new) {
            let Some(next) = self.after(state, terminal)? else { continue };
            for class in own.after(terminal).iter().map(ClassId::new) {
                if self.can_finish(language, Purpose::May, next, class) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The parser's state after one terminal.
    pub(crate) fn after(
        &mut self,
        state: StateId,
        terminal: TerminalId,
    ) -> Result<Option<StateId>, StepError> {
        if let Some(&known) = self.steps.get(&(state, terminal)) {
            self.look_into(state, Some(terminal));
            return Ok(known);
        }
        let next = self.extend(&[Edge { from: state, terminal: Some(terminal) }])?;
        self.steps.insert((state, terminal), next);
        Ok(next)
    }

    fn can_finish(&mut self, language: &Language, purpose: Purpose, state: StateId, from: ClassId) -> bool {
        let recognizer = &self.recognizer;
        let completions = || language.lexing().boundaries()?.completions();
        let finishes = |automaton: &Relation| recognizer.can_finish(state, from.index(), automaton);
        let answer = || match purpose {
            Purpose::CanAnywhere => {
                let engine = recognizer.shared_states().zip(completions());
                engine.is_some_and(|(engine, all)| engine.can_finish_anywhere(state, from.index(), all))
            }
            Purpose::Can => completions().is_some_and(|all| finishes(all.relation())),
            Purpose::May => {
                // Nobody comes here without them; they would bound nothing.
                language.own_debts().ok().flatten().is_none_or(|own| finishes(&own.relation))
            }
        };
        *self.finishes.entry((purpose, state, from)).or_insert_with(answer)
    }

    /// A continuation that makes a sentence of the text, if one is found: not always a shortest one, but
    /// guided by the fewest terminals.
    pub fn complete(
        &mut self,
        language: &Language,
        frontier: &[Config],
    ) -> Result<Option<Vec<Symbol>>, StepError> {
        let (found, seen) = self.explore(language, frontier, |this, config| {
            if this.is_sentence(&[config]) {
                return Ok(Some(true));
            }
            Ok(this.judge(language, config)?.filter(|&can| !can))
        })?;
        Ok(found.map(|mut config| {
            let mut symbols = Vec::new();
            while let Some(&Some((before, symbol))) = seen.get(&config) {
                symbols.push(symbol);
                config = before;
            }
            symbols.reverse();
            symbols
        }))
    }

    /// Best-first search from some readings for one that is a goal, not beyond those that are said to lead
    /// nowhere: those closest to a sentence (by the fewest terminals that they lack) come first. Returns the
    /// goal, and every reading that was seen with where it came from.
    fn explore(
        &mut self,
        language: &Language,
        from: &[Config],
        mut is_goal: impl FnMut(&mut Self, Config) -> Result<Option<bool>, StepError>,
    ) -> Result<(Option<Config>, Seen), StepError> {
        let limit = language.limits().search_steps;
        let samples = language.lexing().lexicon.union.samples();
        let bytes = samples.iter().map(|&byte| Symbol::Byte(byte));
        let symbols: Vec<Symbol> =
            bytes.chain(language.lexing().specials().iter().map(|&t| Symbol::Special(t))).collect();
        let mut seen = Seen::default();
        let mut queue = BinaryHeap::new();
        for &config in from {
            seen.insert(config, None);
            queue.push(Reverse((0, 0, config)));
            if is_goal(self, config)? == Some(true) {
                return Ok((Some(config), seen));
            }
        }
        let mut next = Frontier::new();
        while let Some(Reverse((_, depth, config))) = queue.pop() {
            for &symbol in &symbols {
                match symbol {
                    Symbol::Byte(byte) => self.step(language, &[config], byte, &mut next)?,
                    Symbol::Special(terminal) => next = self.step_special(language, &[config], terminal)?,
                }
                for &found in &next {
                    if seen.contains_key(&found) {
                        continue;
                    }
                    seen.insert(found, Some((config, symbol)));
                    match is_goal(self, found)? {
                        Some(true) => return Ok((Some(found), seen)),
                        Some(false) => continue,
                        None => {}
                    }
                    if seen.len() > limit {
                        return Err(StepCause::Undecided { limit }.into());
                    }
                    // A terminal weighs as much as a few bytes, so that long ones are finished before others
                    // are begun.
                    let recognizer = &self.recognizer;
                    let remaining = || recognizer.minimum_remaining(found.state);
                    let lacking = *self.remaining.entry(found.state).or_insert_with(remaining);
                    queue.push(Reverse((u64::from(lacking) * 8 + depth + 1, depth + 1, found)));
                }
            }
        }
        Ok((None, seen))
    }
}
