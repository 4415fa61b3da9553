//! Lexemes in progress, stepped byte by byte.
//!
//! A *lexeme* is what lexing knows between two bytes: the state of the union automaton since the piece began,
//! which terminals are wanted, and what earlier pieces owe. Lexemes are interned, so a step is a table
//! look-up; the table grows as texts need it and serves all positions of all texts of one grammar. A lexeme
//! in the start state is a *boundary*: no byte of the next piece was read.
//!
//! A step has two independent outcomes: the piece *stays* in progress, and the piece ends here, a *cut*. Both
//! are followed. In the modes with longest match a cut adds an obligation: the state that the piece ended in
//! must not accept any more, until no terminal that competed for the piece is alive in it. Of all the guesses
//! where a piece ends, the obligations leave exactly the longest match.
//!
//! | | what competes for a piece | labels | what is owed after a cut |
//! |---|---|---|---|
//! | `scannerless` | every terminal that can come next, and the ignored ones | all that match | nothing |
//! | `longest` | every terminal | those of the highest rank that match | no longer match of any terminal |
//! | `contextual` | every terminal that can come next, and the ignored ones | those of the highest rank that match | no longer match of those that competed |
//!
//! # Which lexemes can be completed
//!
//! In `scannerless`, and wherever parsing and lexing are independent (see [`crate::boundary`]), a lexeme
//! exists only if some text completes it, given that the parser's state is viable; so it is with most lexemes
//! of other grammars. Otherwise its [`Prospect`] is unknown, and the parser has to be asked: whether what it
//! needs can be spelled from here.

mod lexing;

use std::sync::Arc;

use anygram_bits::{BitSet, CompactSet, Fingerprint, index_type};
use anygram_grammar::ir::{LexerMode, TerminalId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use self::lexing::Counts;
pub use self::lexing::{Lexing, LexingError};
use crate::LexerError;
use crate::dfa::START;
use crate::union::State;

index_type!(
    /// An interned lexeme.
    LexemeId
);
index_type!(
    /// An interned cut.
    CutId
);
index_type!(
    /// An interned set of wanted outcomes.
    WantedId
);
index_type!(
    /// An interned set of obligations; 0 is the empty one.
    ObligationsId
);

/// Whether a lexeme that a viable parser state wants can be completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Prospect {
    /// Some text completes it.
    Completable,
    /// Ask the parser.
    Unknown,
}

/// A lexer place: a lexeme without what is wanted of it. It has a state of the automaton and the obligations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Place {
    state: State,
    obligations: ObligationsId,
}

impl Place {
    /// The state of the union automaton since the piece began; at a boundary the start.
    pub fn state(self) -> State {
        self.state
    }

    /// Whether pieces before it owe anything.
    pub fn has_obligations(self) -> bool {
        self.obligations.0 != 0
    }

    /// What pieces before it owe.
    pub fn obligations(self) -> ObligationsId {
        self.obligations
    }
}

/// Where a byte leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// The piece is still in progress.
    pub stay: Option<LexemeId>,
    /// The piece ends here.
    pub cut: Option<CutId>,
}

/// The terminals that a piece may be: few.
pub type Scans = SmallVec<[TerminalId; 2]>;

/// The end of a piece.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cut {
    /// What the recognizer may scan; each is one reading of the piece.
    pub scans: Scans,
    /// Whether the piece may be ignored.
    pub skip: bool,
    /// What is owed after it.
    pub obligations: ObligationsId,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    state: State,
    wanted: WantedId,
    obligations: ObligationsId,
    /// Those of what is wanted whose pieces may not be in progress when the present token ends; at a boundary
    /// this is about the piece that begins. `None` if there are none.
    last: Option<WantedId>,
    /// Where pieces are told apart by that ([`Transducer::numbered`]), how many tokens before the present one
    /// have bytes in the piece; else 0.
    n_tokens: u32,
}

/// What is known of a lexeme.
#[derive(Clone, Copy, Debug)]
struct Lexeme {
    key: Key,
    prospect: Prospect,
    is_boundary: bool,
    /// Whether the piece is in progress and may not be when the present token ends.
    ends_with_token: bool,
}

/// A state that must not accept any of a set of terminals (in `longest`: any at all, and the set is of no
/// meaning).
type Obligation = (State, WantedId);

/// Some of them, on the way to be one number.
type Owed = SmallVec<[Obligation; 4]>;

type Row = Box<[(u32, u32)]>;

const NOT_YET: u32 = u32::MAX;
const NONE: u32 = u32::MAX - 1;

/// The growing table of lexemes.
///
/// Invariants: ids are dense and never change; a lexeme in progress can still become something wanted; sets
/// of wanted outcomes have a bit for each outcome and one for the end of the text.
#[derive(Clone, Debug)]
pub struct Transducer {
    lexemes: Vec<Lexeme>,
    lexeme_ids: FxHashMap<Key, LexemeId>,
    /// Of each lexeme, once it was stepped: by byte class where it stays and what it is cut to, as raw ids,
    /// or one of the two marks.
    steps: Vec<Option<Row>>,
    /// Of rows and of sets that are wanted.
    bytes: usize,
    wanted: Vec<CompactSet>,
    wanted_ids: FxHashMap<CompactSet, WantedId>,
    /// The start states of the sets of wanted outcomes, where there are several.
    starts: FxHashMap<WantedId, State>,
    obligations: Vec<Box<[Obligation]>>,
    obligation_ids: FxHashMap<Box<[Obligation]>, ObligationsId>,
    /// `(obligations, byte class)` to what is left of them; `None` if they were broken.
    obligation_steps: FxHashMap<(ObligationsId, u32), Option<ObligationsId>>,
    cuts: Vec<Cut>,
    cut_ids: FxHashMap<Cut, CutId>,
}

impl Default for Transducer {
    fn default() -> Self {
        Self {
            lexemes: Vec::new(),
            lexeme_ids: FxHashMap::default(),
            steps: Vec::new(),
            bytes: 0,
            wanted: Vec::new(),
            wanted_ids: FxHashMap::default(),
            starts: FxHashMap::default(),
            obligations: vec![Box::new([])],
            obligation_ids: FxHashMap::from_iter([(Box::from([]), ObligationsId(0))]),
            obligation_steps: FxHashMap::default(),
            cuts: Vec::new(),
            cut_ids: FxHashMap::default(),
        }
    }
}

impl Transducer {
    /// What a parser state wants: the terminals that it accepts, the ignored ones where they are not a matter
    /// of course, and the end of the text if it is a sentence.
    pub fn wanted(&mut self, lexing: &Lexing, viable: &BitSet, is_sentence: bool) -> WantedId {
        let mut wanted = BitSet::new(lexing.end() + 1);
        wanted.extend(viable.iter());
        if lexing.mode() != LexerMode::Longest {
            wanted.extend(lexing.lexicon.ignored.iter());
        }
        if is_sentence {
            wanted.insert(lexing.end());
        }
        self.intern_wanted(CompactSet::from_bits(&wanted))
    }

    /// These terminals alone, those among them that are ignored too.
    pub fn wanted_alone(&mut self, lexing: &Lexing, terminals: &BitSet) -> WantedId {
        let mut wanted = BitSet::new(lexing.end() + 1);
        wanted.extend(terminals.iter());
        self.intern_wanted(CompactSet::from_bits(&wanted))
    }

    /// The boundary before the first byte of a text, and after a token that the grammar names (no piece
    /// reaches across it).
    pub fn first(&mut self, lexing: &Lexing, wanted: WantedId) -> Result<Option<LexemeId>, LexerError> {
        self.boundary(lexing, wanted, ObligationsId(0))
    }

    /// The boundary with these obligations; `None` if nothing wanted can come of it.
    pub fn boundary(
        &mut self,
        lexing: &Lexing,
        wanted: WantedId,
        obligations: ObligationsId,
    ) -> Result<Option<LexemeId>, LexerError> {
        let state = self.start(lexing, wanted)?;
        let single = lexing.counts.as_ref().and_then(|counts| counts.single.clone());
        let last = single.map(|single| self.intern_wanted(single));
        self.lexeme(lexing, Key { state, wanted, obligations, last, n_tokens: 0 })
    }

    /// The state before the first byte where this is wanted.
    fn start(&mut self, lexing: &Lexing, wanted: WantedId) -> Result<State, LexerError> {
        if !lexing.is_growing() {
            return Ok(START);
        }
        if let Some(&known) = self.starts.get(&wanted) {
            return Ok(known);
        }
        let start = lexing.lexicon.union.start_of(&self.wanted[wanted.index()])?;
        self.starts.insert(wanted, start);
        Ok(start)
    }

    /// A lexeme in whose place texts of at most `bytes` bytes come to the same. Itself unless terminals are
    /// given by automata that grow.
    pub fn alike(&mut self, lexing: &Lexing, lexeme: LexemeId, bytes: usize) -> Result<LexemeId, LexerError> {
        if !lexing.is_growing() {
            return Ok(lexeme);
        }
        let key = self.lexemes[lexeme.index()].key;
        let state = lexing.lexicon.union.alike(key.state, bytes)?;
        if state == key.state {
            return Ok(lexeme);
        }
        // What is wanted may come in both, so there is one.
        Ok(self.lexeme(lexing, Key { state, ..key })?.unwrap_or(lexeme))
    }

    /// The lexeme at a place for this set of wanted outcomes; `None` if none of them is reachable.
    pub fn at(
        &mut self,
        lexing: &Lexing,
        place: Place,
        wanted: WantedId,
    ) -> Result<Option<LexemeId>, LexerError> {
        let Place { state, obligations } = place;
        self.lexeme(lexing, Key { state, wanted, obligations, last: None, n_tokens: 0 })
    }

    /// Whether a piece is in progress whose tokens count.
    pub fn is_counted(&self, lexing: &Lexing, lexeme: LexemeId) -> bool {
        let Lexeme { key, is_boundary, .. } = self.lexemes[lexeme.index()];
        let wanted = &self.wanted[key.wanted.index()];
        !is_boundary && lexing.counts.as_ref().is_some_and(|counts| counts.counted.intersects(wanted))
    }

    /// Whether a piece is in progress that may not be when the present token ends, since it may have no more
    /// tokens.
    pub fn ends_with_token(&self, lexeme: LexemeId) -> bool {
        self.lexemes[lexeme.index()].ends_with_token
    }

    /// What a piece in progress is between two tokens, so many of which have bytes in it: terminals that may
    /// have no more tokens are no longer wanted. `None` if nothing is left.
    pub fn count(
        &mut self,
        lexing: &Lexing,
        lexeme: LexemeId,
        n_tokens: u32,
    ) -> Result<Option<LexemeId>, LexerError> {
        let (Some(counts), false) = (&lexing.counts, self.is_boundary(lexeme)) else {
            return Ok(Some(lexeme));
        };
        let key = self.lexemes[lexeme.index()].key;
        let whole: Vec<u32> = self.wanted[key.wanted.index()].iter().map(|outcome| outcome as u32).collect();
        let left = |at_least: u32| {
            let members = whole.iter().copied();
            members
                .filter(move |&outcome| counts.bound(outcome as usize).saturating_sub(n_tokens) >= at_least)
        };
        let wanted: Vec<u32> = left(1).collect();
        let more: Vec<u32> = left(2).collect();
        let last: Vec<u32> = wanted.iter().copied().filter(|outcome| !more.contains(outcome)).collect();
        let mut set = |members| self.intern_wanted(CompactSet::from_sorted(lexing.end() + 1, members));
        let last = (!last.is_empty()).then(|| set(last));
        let wanted = set(wanted);
        self.lexeme(lexing, Key { wanted, last, ..key })
    }

    /// A lexeme between two tokens, apart from those of other numbers of tokens that have bytes in the piece
    /// in progress. What is counted may differ only within the next tokens: where each terminal may have
    /// `room` more, the number is left out. So it is where nothing is counted.
    ///
    /// For those who look further than one token, as budgets do: a lexeme without its number stands for all
    /// of them only up to the end of the present token.
    pub fn numbered(
        &mut self,
        lexing: &Lexing,
        lexeme: LexemeId,
        (n_tokens, room): (u32, u32),
    ) -> Result<LexemeId, LexerError> {
        let Some(counts) = lexing.counts.as_ref().filter(|_| !self.is_boundary(lexeme)) else {
            return Ok(lexeme);
        };
        let key = self.lexemes[lexeme.index()].key;
        let least = self.wanted[key.wanted.index()].iter().map(|outcome| counts.bound(outcome)).min();
        let is_free = least.is_none_or(|least| least.saturating_sub(n_tokens) >= room);
        let n_tokens = if is_free { 0 } else { n_tokens };
        if n_tokens == key.n_tokens {
            return Ok(lexeme);
        }
        // The same is wanted of it, so there is one.
        Ok(self.lexeme(lexing, Key { n_tokens, ..key })?.unwrap_or(lexeme))
    }

    /// The lexeme without its [number](Transducer::numbered).
    pub fn without_number(&mut self, lexing: &Lexing, lexeme: LexemeId) -> Result<LexemeId, LexerError> {
        self.numbered(lexing, lexeme, (0, 0))
    }

    /// How many tokens before the present one have bytes in the piece in progress, as far as that is
    /// [told apart](Transducer::numbered).
    pub fn n_tokens(&self, lexeme: LexemeId) -> u32 {
        self.lexemes[lexeme.index()].key.n_tokens
    }

    /// How many more tokens may have bytes in the piece in progress, whatever it becomes, if that is bounded
    /// and the lexeme has its number.
    pub fn tokens_left(&self, lexing: &Lexing, lexeme: LexemeId) -> Option<u32> {
        let counts = lexing.counts.as_ref().filter(|_| !self.is_boundary(lexeme))?;
        let Key { wanted, n_tokens, .. } = self.lexemes[lexeme.index()].key;
        let bounds = self.wanted[wanted.index()].iter().map(|outcome| counts.bound(outcome));
        Some(bounds.min()?.saturating_sub(n_tokens))
    }

    /// What a [numbered](Transducer::numbered) lexeme is when the present token ends.
    pub fn behind_token(
        &mut self,
        lexing: &Lexing,
        lexeme: LexemeId,
        room: u32,
    ) -> Result<Option<LexemeId>, LexerError> {
        if lexing.counts.is_none() || self.is_boundary(lexeme) {
            return Ok(Some(lexeme));
        }
        let n_tokens = self.n_tokens(lexeme) + 1;
        let Some(lexeme) = self.count(lexing, lexeme, n_tokens)? else { return Ok(None) };
        self.numbered(lexing, lexeme, (n_tokens, room)).map(Some)
    }

    /// Whether no byte of the piece was read.
    #[inline]
    pub fn is_boundary(&self, lexeme: LexemeId) -> bool {
        self.lexemes[lexeme.index()].is_boundary
    }

    /// The state of the union automaton since the piece began.
    pub fn union_state(&self, lexeme: LexemeId) -> State {
        self.lexemes[lexeme.index()].key.state
    }

    /// Whether the lexeme can be completed.
    pub fn prospect(&self, lexeme: LexemeId) -> Prospect {
        self.lexemes[lexeme.index()].prospect
    }

    /// The state of the union automaton since the piece began; at a boundary the start.
    pub fn state(&self, lexeme: LexemeId) -> State {
        self.lexemes[lexeme.index()].key.state
    }

    /// The number of lexemes.
    pub fn n_lexemes(&self) -> usize {
        self.lexemes.len()
    }

    /// What is wanted of a lexeme, a number for each set.
    pub fn wanted_of(&self, lexeme: LexemeId) -> WantedId {
        self.lexemes[lexeme.index()].key.wanted
    }

    /// What is wanted and can come of a lexeme: terminals and, behind them, the end of the text.
    pub fn outcomes(&self, lexing: &Lexing, lexeme: LexemeId) -> BitSet {
        let wanted = &self.wanted[self.lexemes[lexeme.index()].key.wanted.index()];
        BitSet::from_members(lexing.end() + 1, wanted.iter())
    }

    /// The terminals that the piece in progress may become (or, at a boundary, that may begin), ignored ones
    /// included.
    pub fn candidates(&self, lexing: &Lexing, lexeme: LexemeId) -> BitSet {
        let key = self.lexemes[lexeme.index()].key;
        let (wanted, live) = (&self.wanted[key.wanted.index()], lexing.lexicon.union.live(key.state));
        let is_boundary = self.is_boundary(lexeme);
        let possible =
            |&terminal: &usize| terminal != lexing.end() && (is_boundary || live.contains(terminal));
        BitSet::from_members(lexing.cfg.n_terminals, wanted.iter().filter(possible))
    }

    /// The candidates but those of which all can be read already and only blanks could be added, as behind
    /// the colon of JSON.
    pub fn expected(&self, lexing: &Lexing, lexeme: LexemeId) -> BitSet {
        let (mut expected, union) = (self.candidates(lexing, lexeme), &lexing.lexicon.union);
        if self.is_boundary(lexeme) {
            return expected;
        }
        let state = self.union_state(lexeme);
        let mut classes: Vec<_> =
            (0..=u8::MAX).filter(|byte| !byte.is_ascii_whitespace()).map(|byte| union.class(byte)).collect();
        classes.sort_unstable();
        classes.dedup();
        let mut goes_on = BitSet::new(lexing.cfg.n_terminals);
        for class in classes {
            // What is not found out within the limits may go on.
            let Ok(next) = union.try_step(state, class) else { return expected };
            let reached = union.live(next).iter().chain(union.accepts(next).iter());
            goes_on.extend(reached.filter(|&terminal| terminal < lexing.cfg.n_terminals));
        }
        let is_whole = union.accepts(state);
        let only_blanks = |&at: &usize| is_whole.contains(at) && !goes_on.contains(at);
        let dropped: Vec<usize> = expected.iter().filter(only_blanks).collect();
        for at in dropped {
            expected.remove(at);
        }
        expected
    }

    /// The lexeme as a node of [`Lexing::boundaries`], as if all terminals had competed; `None` if it cannot
    /// arise there.
    pub fn node(&self, lexing: &Lexing, lexeme: LexemeId) -> Result<Option<usize>, LexerError> {
        let key = self.lexemes[lexeme.index()].key;
        self.find_node(lexing, key.state, key.obligations)
    }

    /// Whether the lexeme is a boundary from which each terminal can be spelled in as many bytes as suffice
    /// from everywhere ([`bytes_from_everywhere`](crate::boundary::Boundaries::bytes_from_everywhere)), and
    /// so on behind it.
    pub fn is_sure(&self, lexing: &Lexing, lexeme: LexemeId) -> bool {
        let Key { obligations, .. } = self.lexemes[lexeme.index()].key;
        let union = &lexing.lexicon.union;
        let debt = self.owed(obligations).map(|state| union.blind(state));
        self.is_boundary(lexeme) && lexing.boundaries().is_some_and(|boundaries| boundaries.is_sure(debt))
    }

    /// Where a byte leads.
    #[inline]
    pub fn step(&mut self, lexing: &Lexing, lexeme: LexemeId, byte: u8) -> Result<Step, LexerError> {
        let class = lexing.lexicon.union.class(byte);
        if let Some(row) = &self.steps[lexeme.index()]
            && row[class].0 != NOT_YET
        {
            let (stay, cut) = row[class];
            return Ok(Step {
                stay: (stay != NONE).then_some(LexemeId(stay)),
                cut: (cut != NONE).then_some(CutId(cut)),
            });
        }
        self.compute_step(lexing, lexeme, class)
    }

    /// The end of a piece.
    pub fn cut(&self, cut: CutId) -> &Cut {
        &self.cuts[cut.index()]
    }

    /// The lexeme as a place of the automata, whatever is wanted of it.
    pub fn place(&self, lexeme: LexemeId) -> Place {
        let Key { state, obligations, .. } = self.lexemes[lexeme.index()].key;
        Place { state, obligations }
    }

    /// Whether all that can match later at the place of a lexeme is wanted of it.
    pub fn wants_all(&self, lexing: &Lexing, lexeme: LexemeId) -> bool {
        let Key { state, wanted, .. } = self.lexemes[lexeme.index()].key;
        let wanted = &self.wanted[wanted.index()];
        lexing.lexicon.union.live(state).iter().all(|terminal| wanted.contains(terminal))
    }

    /// What texts of at most `bytes` bytes do where a lexeme is, as far as what it wants goes, see
    /// [`Union::fingerprint`](crate::union::Union::fingerprint); `None` too where preceding pieces owe
    /// something.
    pub fn fingerprint(&self, lexing: &Lexing, lexeme: LexemeId, bytes: usize) -> Option<Fingerprint> {
        let Key { state, wanted, obligations, .. } = self.lexemes[lexeme.index()].key;
        if (Place { state, obligations }).has_obligations() {
            return None;
        }
        lexing.lexicon.union.fingerprint(state, &self.wanted[wanted.index()], bytes)
    }

    /// Where a byte class leads from a place, if pieces can be in progress or end there.
    pub fn step_place(
        &mut self,
        lexing: &Lexing,
        place: Place,
        class: usize,
    ) -> Result<Option<Place>, LexerError> {
        let union = &lexing.lexicon.union;
        let state = union.try_step(place.state, class)?;
        if union.accepts(state).is_empty() && union.live(state).is_empty() {
            return Ok(None);
        }
        let obligations = self.step_obligations(lexing, place.obligations, class);
        Ok(obligations.map(|obligations| Place { state, obligations }))
    }

    /// As [`Transducer::step_place`], to a place in whose stead texts of at most `bytes` bytes do the same.
    pub fn step_place_alike(
        &mut self,
        lexing: &Lexing,
        place: Place,
        class: usize,
        bytes: usize,
    ) -> Result<Option<Place>, LexerError> {
        let mut next = self.step_place(lexing, place, class)?;
        if lexing.is_growing()
            && let Some(place) = &mut next
        {
            place.state = lexing.lexicon.union.alike(place.state, bytes)?;
        }
        Ok(next)
    }

    /// Whether a piece can end at a place.
    pub fn can_end(&self, lexing: &Lexing, place: Place) -> bool {
        !lexing.lexicon.union.accepts(place.state).is_empty()
    }

    /// Whether a byte class can follow a piece that ends at a place, for some set of wanted terminals.
    pub fn can_follow(&mut self, lexing: &Lexing, place: Place, class: usize) -> bool {
        let union = &lexing.lexicon.union;
        if !union.begins(class) {
            return false;
        }
        let longer = || union.accepts(union.step(place.state, class));
        let is_longest = match lexing.mode() {
            LexerMode::Scannerless => true,
            LexerMode::Longest => longer().is_empty(),
            LexerMode::Contextual => {
                let longer = longer();
                // Whatever is wanted, one of these is.
                union.accepts(place.state).iter().any(|label| !longer.contains(label))
            }
        };
        is_longest && self.step_obligations(lexing, place.obligations, class).is_some()
    }

    /// What a piece that began as `from` is at a later place of the same piece: in progress, and ended.
    pub fn step_to(&mut self, lexing: &Lexing, from: LexemeId, place: Place) -> Result<Step, LexerError> {
        let key = self.lexemes[from.index()].key;
        let Place { state, obligations } = place;
        let stay = if lexing.lexicon.union.live(state).is_empty() {
            None
        } else {
            self.lexeme(lexing, Key { state, obligations, ..key })?
        };
        Ok(Step { stay, cut: self.cut_here(lexing, state, &key, obligations) })
    }

    /// Whether a piece that began as `from` may be in progress or end at a later place of the same piece as
    /// something that is wanted; if not, [`Transducer::step_to`] and [`Transducer::step_to_loosely`] come to
    /// nothing there. Cost: a look at some sets.
    pub fn may_come_to(&self, lexing: &Lexing, from: LexemeId, place: Place) -> Result<bool, LexerError> {
        let wanted = &self.wanted[self.lexemes[from.index()].key.wanted.index()];
        let (union, Place { state, obligations }) = (&lexing.lexicon.union, place);
        if lexing.mode() != LexerMode::Longest {
            return Ok(union.live(state).intersects(wanted) || union.accepts(state).intersects(wanted));
        }
        if !union.accepts(state).is_empty() {
            return Ok(true);
        }
        // What is wanted may come behind ignored pieces.
        let node = self.find_node(lexing, state, obligations)?;
        let finish = lexing.boundaries.as_ref().zip(node).map(|(boundaries, node)| boundaries.finish(node));
        Ok(finish.is_some_and(|finish| finish.intersects(wanted)))
    }

    /// As [`Transducer::step_to`], if it is not known what else is wanted: a piece competes with longer ones
    /// of its own terminal and of those that are always wanted, and no label hides another. Where more is
    /// wanted of a lexeme than of others that it stands for, it reads at least what they read. (For
    /// `contextual`; in the other modes the same as `step_to`.)
    pub fn step_to_loosely(
        &mut self,
        lexing: &Lexing,
        from: LexemeId,
        place: Place,
    ) -> Result<Step, LexerError> {
        let mut step = self.step_to(lexing, from, place)?;
        if lexing.mode() == LexerMode::Contextual {
            let wanted = self.lexemes[from.index()].key.wanted;
            step.cut = self.cut_loosely(lexing, place, wanted);
        }
        Ok(step)
    }

    fn cut_loosely(&mut self, lexing: &Lexing, place: Place, wanted: WantedId) -> Option<CutId> {
        let lexicon = &lexing.lexicon;
        let wanted = &self.wanted[wanted.index()];
        let labels: Vec<usize> =
            lexicon.union.accepts(place.state).iter().filter(|&label| wanted.contains(label)).collect();
        let mut always = BitSet::new(lexing.end() + 1);
        always.extend(lexicon.ignored.iter());
        if let [only] = *labels {
            always.insert(only);
        }
        let competing = lexing.live_among(&CompactSet::from_bits(&always), place.state);
        self.cut_as(lexing, &labels, place, competing)
    }

    /// The end of a piece with these labels, in `contextual` or with nothing competing.
    fn cut_as(
        &mut self,
        lexing: &Lexing,
        labels: &[usize],
        place: Place,
        competing: CompactSet,
    ) -> Option<CutId> {
        let lexicon = &lexing.lexicon;
        let skip = labels.iter().any(|&label| lexicon.ignored.contains(label));
        let used = labels.iter().filter(|&&label| lexicon.used.contains(label));
        let scans: Scans = used.map(|&label| TerminalId::new(label)).collect();
        if scans.is_empty() && !skip {
            return None;
        }
        let mut obligations = place.obligations;
        if !competing.is_empty() {
            let mut owed: Owed = SmallVec::from_slice(&self.obligations[obligations.index()]);
            owed.push((place.state, self.intern_wanted(competing)));
            obligations = self.intern_obligations(owed);
        }
        Some(self.intern_cut(Cut { scans, skip, obligations }))
    }

    fn intern_cut(&mut self, cut: Cut) -> CutId {
        let fresh = CutId::new(self.cuts.len());
        *self.cut_ids.entry(cut).or_insert_with_key(|cut| {
            self.cuts.push(cut.clone());
            fresh
        })
    }

    /// Whether a byte keeps these obligations.
    pub fn survives(&mut self, lexing: &Lexing, obligations: ObligationsId, byte: u8) -> bool {
        self.step_obligations(lexing, obligations, lexing.lexicon.union.class(byte)).is_some()
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.bytes + self.lexemes.len() * 64 + self.cuts.len() * 128 + self.obligation_steps.len() * 24
    }

    #[cold]
    fn compute_step(&mut self, lexing: &Lexing, lexeme: LexemeId, class: usize) -> Result<Step, LexerError> {
        let key = self.lexemes[lexeme.index()].key;
        let step = match self.step_obligations(lexing, key.obligations, class) {
            None => Step::default(),
            Some(obligations) => {
                let state = lexing.lexicon.union.try_step(key.state, class)?;
                Step {
                    stay: self.lexeme(lexing, Key { state, obligations, ..key })?,
                    cut: self.cut_here(lexing, state, &key, obligations),
                }
            }
        };
        let n_classes = lexing.lexicon.union.n_classes();
        let row = self.steps[lexeme.index()].get_or_insert_with(|| {
            let row: Row = vec![(NOT_YET, NOT_YET); n_classes].into();
            self.bytes += size_of_val(&*row);
            row
        });
        row[class] = (step.stay.map_or(NONE, |id| id.0), step.cut.map_or(NONE, |id| id.0));
        Ok(step)
    }

    /// The states that obligations forbid to accept.
    pub fn owed(&self, obligations: ObligationsId) -> impl Iterator<Item = State> {
        self.obligations[obligations.index()].iter().map(|&(state, _)| state)
    }

    /// The obligations that remain after a byte class; `None` if one was broken.
    pub fn step_obligations(
        &mut self,
        lexing: &Lexing,
        id: ObligationsId,
        class: usize,
    ) -> Option<ObligationsId> {
        if id.0 == 0 {
            return Some(id);
        }
        if let Some(&known) = self.obligation_steps.get(&(id, class as u32)) {
            return known;
        }
        let union = &lexing.lexicon.union;
        let (mut after, mut broken) = (Owed::new(), false);
        for &(state, wanted) in &self.obligations[id.index()] {
            let next = union.step(state, class);
            let competing = (lexing.mode() == LexerMode::Contextual).then(|| &self.wanted[wanted.index()]);
            broken |= meets(union.accepts(next), competing);
            if meets(union.live(next), competing) {
                after.push(if competing.is_some() { (next, wanted) } else { (union.blind(next), wanted) });
            }
        }
        let result = (!broken).then(|| self.intern_obligations(after));
        self.obligation_steps.insert((id, class as u32), result);
        result
    }

    /// The piece ends in `state`.
    fn cut_here(
        &mut self,
        lexing: &Lexing,
        state: State,
        key: &Key,
        obligations: ObligationsId,
    ) -> Option<CutId> {
        let lexicon = &lexing.lexicon;
        let (union, mode) = (&lexicon.union, lexing.mode());
        if union.accepts(state).is_empty() {
            return None;
        }
        let labels = match mode {
            LexerMode::Longest => lexicon.labels(state, |_| true),
            LexerMode::Scannerless | LexerMode::Contextual => {
                lexicon.labels(state, |label| self.wanted[key.wanted.index()].contains(label))
            }
        };
        let skip = labels.iter().any(|&label| lexicon.ignored.contains(label));
        let used = labels.into_iter().filter(|&label| lexicon.used.contains(label));
        let scans: Scans = used.map(TerminalId::new).collect();
        if scans.is_empty() && !skip {
            return None;
        }
        let mut owed: Owed = SmallVec::from_slice(&self.obligations[obligations.index()]);
        match mode {
            LexerMode::Scannerless => {}
            LexerMode::Longest => {
                if !union.live(state).is_empty() {
                    owed.push((union.blind(state), WantedId(0)));
                }
            }
            LexerMode::Contextual => {
                let competing = lexing.live_among(&self.wanted[key.wanted.index()], state);
                if !competing.is_empty() {
                    owed.push((state, self.intern_wanted(competing)));
                }
            }
        }
        let obligations = self.intern_obligations(owed);
        Some(self.intern_cut(Cut { scans, skip, obligations }))
    }

    /// Interns a lexeme in progress or a boundary; `None` if nothing wanted can come of it.
    fn lexeme(&mut self, lexing: &Lexing, key: Key) -> Result<Option<LexemeId>, LexerError> {
        let Key { state, wanted, obligations, last, n_tokens } = key;
        let (end, is_boundary) = (lexing.end(), lexing.lexicon.union.is_start(state));
        let whole = &self.wanted[wanted.index()];
        let ends = whole.contains(end);
        let possible = |whole: &CompactSet| {
            let set = if is_boundary { whole.clone() } else { lexing.live_among(whole, state) };
            (!set.is_empty()).then_some(set)
        };
        let mut prospect = Prospect::Completable;
        let set = match lexing.mode() {
            LexerMode::Scannerless => {
                let Some(set) = possible(whole) else { return Ok(None) };
                set
            }
            LexerMode::Longest => {
                let (Some(boundaries), Some(node)) =
                    (&lexing.boundaries, self.find_node(lexing, state, obligations)?)
                else {
                    return Ok(None);
                };
                // What is wanted may come after ignored pieces, so it need not be alive in the piece in
                // progress.
                let set = whole.intersection(boundaries.finish(node), end + 1);
                if set.is_empty() {
                    return Ok(None);
                }
                let enough = boundaries.enough(node);
                let is_enough = enough.is_some_and(|enough| enough.contains(end) || enough.intersects(&set));
                if !is_enough && !set.contains(end) {
                    prospect = Prospect::Unknown;
                }
                set
            }
            LexerMode::Contextual => {
                let Some(mut set) = possible(whole) else { return Ok(None) };
                if ends && !is_boundary {
                    set = set.with_last(end);
                }
                // By what the lexeme is known by, so that all who come to it are told the same.
                if !(is_boundary && ends || self.is_safe(lexing, state, &set, obligations)?) {
                    prospect = Prospect::Unknown;
                }
                set
            }
        };
        // Of what may not be in progress, what still can be.
        let last = last.map(|last| self.wanted[last.index()].intersection(&set, end + 1));
        let last = last.filter(|last| !last.is_empty());
        let ends_with_token = !is_boundary && last.as_ref() == Some(&set);
        let last = last.map(|last| self.intern_wanted(last));
        let is_counted = |counts: &Arc<Counts>| !is_boundary && counts.counted.intersects(&set);
        let n_tokens = if lexing.counts.as_ref().is_some_and(is_counted) { n_tokens } else { 0 };
        let wanted = self.intern_wanted(set);
        let key = Key { state, wanted, obligations, last, n_tokens };
        if let Some(&id) = self.lexeme_ids.get(&key) {
            return Ok(Some(id));
        }
        if self.lexemes.len() == lexing.limits.lexemes {
            return Err(LexerError::TooManyLexemes { limit: lexing.limits.lexemes });
        }
        let id = LexemeId::new(self.lexemes.len());
        self.lexemes.push(Lexeme { key, prospect, is_boundary, ends_with_token });
        self.steps.push(None);
        self.lexeme_ids.insert(key, id);
        Ok(Some(id))
    }

    /// Whether a `contextual` lexeme can be completed, even if all terminals compete from here on.
    fn is_safe(
        &self,
        lexing: &Lexing,
        state: State,
        wanted: &CompactSet,
        obligations: ObligationsId,
    ) -> Result<bool, LexerError> {
        let Some(boundaries) = &lexing.boundaries else { return Ok(false) };
        let Some(node) = self.find_node(lexing, state, obligations)? else { return Ok(false) };
        // From the boundary that ignored pieces lead to, any viable parse can be completed.
        let is_enough = |enough: &CompactSet| enough.contains(lexing.end()) || enough.intersects(wanted);
        Ok(boundaries.enough(node).is_some_and(is_enough)
            || (boundaries.finish(node).contains(lexing.end()) && wanted.contains(lexing.end())))
    }

    fn find_node(
        &self,
        lexing: &Lexing,
        state: State,
        obligations: ObligationsId,
    ) -> Result<Option<usize>, LexerError> {
        let Some(boundaries) = &lexing.boundaries else { return Ok(None) };
        let (lexicon, union) = (&lexing.lexicon, &lexing.lexicon.union);
        boundaries.find_node(lexicon, state, self.owed(obligations).map(|state| union.blind(state)))
    }

    fn intern_wanted(&mut self, set: CompactSet) -> WantedId {
        if let Some(&id) = self.wanted_ids.get(&set) {
            return id;
        }
        let id = WantedId::new(self.wanted.len());
        self.bytes += 2 * (set.memory_usage() + size_of::<CompactSet>());
        self.wanted.push(set.clone());
        self.wanted_ids.insert(set, id);
        id
    }

    fn intern_obligations(&mut self, mut owed: Owed) -> ObligationsId {
        owed.sort_unstable();
        owed.dedup();
        if let Some(&id) = self.obligation_ids.get(&*owed) {
            return id;
        }
        let id = ObligationsId::new(self.obligations.len());
        self.obligations.push((&*owed).into());
        self.obligation_ids.insert((&*owed).into(), id);
        id
    }
}

/// Whether `terminals` has a member (of `competing`, if that is given).
fn meets(terminals: &CompactSet, competing: Option<&CompactSet>) -> bool {
    match competing {
        None => !terminals.is_empty(),
        Some(competing) => terminals.intersects(competing),
    }
}
