//! Pieces in progress, whatever a parser wants of them, and where they can be cut.
//!
//! | lexer mode | a piece is cut | which cuts survive |
//! |---|---|---|
//! | `scannerless` | wherever a terminal matches | all |
//! | `longest` | wherever a terminal matches, with the labels of the highest rank | the longest of any terminal: exactly the language's |
//! | `contextual` | wherever a terminal matches, each label by itself | the longest of *that* terminal and the ignored ones: a superset, as what competes depends on the parser |
//!
//! The last line is how IG-CD lexes fragments ("in between only the longest match of each terminal is tried,
//! but every terminal is tried"). In `contextual` the label of a piece competes for it, and so do the ignored
//! terminals; hence what is the longest match of all that compete is the longest of these, and a no of this
//! lexing holds. As in the lexer's transducer a cut is a guess that leaves *debts*: states that must not
//! accept any more.

use anygram_grammar::ir::{LexerMode, TerminalId};
use anygram_lexer::LexerError;
use anygram_lexer::dfa::{self, Dfa};
use anygram_lexer::transducer::Lexing;
use anygram_lexer::union::State;
use rustc_hash::FxHashMap;

/// A piece in progress, interned.
pub(crate) type Lexeme = u32;

/// The boundary at which nothing is owed.
pub(crate) const FIRST: Lexeme = 0;

const DEAD: State = dfa::DEAD;
const START: State = dfa::START;
const NONE: u32 = u32::MAX;

/// A match that must not grow longer: of this terminal, or of any.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Debt {
    /// `ANY`, and then the state is one of the union; else the state is one of the terminal's automaton.
    terminal: u32,
    state: u32,
}

const ANY: u32 = u32::MAX;

/// The end of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    /// What it is read as; `None` if it is ignored.
    pub label: Option<TerminalId>,
    /// The boundary after it.
    pub after: Lexeme,
}

#[derive(Clone, Copy)]
struct Row {
    stay: u32,
    cuts: (u32, u32),
}

/// The table of lexemes and their steps, which grows as texts need it.
#[derive(Default)]
pub(crate) struct Lexemes {
    lexemes: Vec<(State, u32)>,
    ids: FxHashMap<(State, u32), Lexeme>,
    steps: Vec<Option<Box<[Option<Row>]>>>,
    cuts: Vec<Cut>,
    debts: Vec<Box<[Debt]>>,
    debt_ids: FxHashMap<Box<[Debt]>, u32>,
    /// Of debts and a class of bytes what is left; `None` if one was broken.
    debt_steps: FxHashMap<(u32, u32), Option<u32>>,
    /// Of terminals that were owed: of each state of the union the state of their own automaton.
    own: FxHashMap<u32, Box<[u32]>>,
}

impl Lexemes {
    pub fn new() -> Self {
        let mut this = Self::default();
        this.intern_debts(Vec::new());
        this.intern(START, 0);
        this
    }

    pub fn len(&self) -> usize {
        self.lexemes.len()
    }

    /// Whether no byte of the piece was read.
    pub fn is_boundary(&self, lexeme: Lexeme) -> bool {
        self.lexemes[lexeme as usize].0 == START
    }

    /// Whether whatever can be read from one lexeme can be read from another: the same piece, which owes no
    /// more.
    pub fn covers(&self, one: Lexeme, other: Lexeme) -> bool {
        let ((state, debts), (of, owed)) = (self.lexemes[one as usize], self.lexemes[other as usize]);
        let owes = |debt: &Debt| self.debts[owed as usize].binary_search(debt).is_ok();
        one == other || state == of && (debts == owed || self.debts[debts as usize].iter().all(owes))
    }

    /// The state of the union of a piece in progress.
    pub fn state(&self, lexeme: Lexeme) -> State {
        self.lexemes[lexeme as usize].0
    }

    /// Whether the piece may yet be read as the terminal.
    pub fn may_become(&self, lexing: &Lexing, lexeme: Lexeme, terminal: usize) -> bool {
        let state = self.lexemes[lexeme as usize].0;
        state == START || lexing.lexicon.union.live(state).contains(terminal)
    }

    /// Whether the piece may yet be ignored.
    pub fn may_be_ignored(&self, lexing: &Lexing, lexeme: Lexeme) -> bool {
        let state = self.lexemes[lexeme as usize].0;
        state == START || lexing.lexicon.union.live(state).intersects_bits(&lexing.lexicon.ignored)
    }

    /// Where a byte leads: the piece in progress, and the cuts.
    #[inline]
    pub fn step(
        &mut self,
        lexing: &Lexing,
        lexeme: Lexeme,
        byte: u8,
    ) -> Result<(Option<Lexeme>, (u32, u32)), LexerError> {
        let class = lexing.lexicon.union.class(byte);
        let known = self.steps[lexeme as usize].as_ref().and_then(|rows| rows[class]);
        let row = match known {
            Some(row) => row,
            None => self.compute(lexing, lexeme, class)?,
        };
        Ok(((row.stay != NONE).then_some(row.stay), row.cuts))
    }

    /// One of the cuts of a step.
    #[inline]
    pub fn cut(&self, at: u32) -> Cut {
        self.cuts[at as usize]
    }

    /// The boundary after these bytes were looked at without being read: without debts that they pay, `None`
    /// if they break one. Debts that outlive the bytes stay as they are.
    pub fn settled(&mut self, lexing: &Lexing, boundary: Lexeme, ahead: &[u8]) -> Option<Lexeme> {
        let debts = self.lexemes[boundary as usize].1;
        let mut left = debts;
        for &byte in ahead {
            if left == 0 {
                return Some(FIRST);
            }
            left = self.step_debts(lexing, left, lexing.lexicon.union.class(byte))?;
        }
        Some(if left == 0 { FIRST } else { boundary })
    }

    pub fn memory_usage(&self, lexing: &Lexing) -> usize {
        let row = lexing.lexicon.union.n_classes() * size_of::<Option<Row>>();
        self.lexemes.len() * (40 + row) + self.cuts.len() * size_of::<Cut>() + self.debts.len() * 64
    }

    #[cold]
    fn compute(&mut self, lexing: &Lexing, lexeme: Lexeme, class: usize) -> Result<Row, LexerError> {
        let (state, debts) = self.lexemes[lexeme as usize];
        let union = &lexing.lexicon.union;
        let next = union.step(state, class);
        let mut row = Row { stay: NONE, cuts: (0, 0) };
        if next != DEAD
            && let Some(debts) = self.step_debts(lexing, debts, class)
        {
            if !union.live(next).is_empty() {
                row.stay = self.intern(next, debts);
            }
            let cuts = self.cuts_at(lexing, next, debts);
            let start = self.cuts.len() as u32;
            self.cuts.extend(cuts);
            row.cuts = (start, self.cuts.len() as u32);
        }
        if self.lexemes.len() > lexing.limits().lexemes {
            return Err(LexerError::TooManyLexemes { limit: lexing.limits().lexemes });
        }
        self.steps[lexeme as usize].get_or_insert_with(|| vec![None; union.n_classes()].into())[class] =
            Some(row);
        Ok(row)
    }

    /// The cuts of a piece that led to a state of the union.
    fn cuts_at(&mut self, lexing: &Lexing, state: State, debts: u32) -> Vec<Cut> {
        let lexicon = &lexing.lexicon;
        let union = &lexicon.union;
        if union.accepts(state).is_empty() {
            return Vec::new();
        }
        let mut cuts = Vec::new();
        let mut add = |labels: &[usize], after: Lexeme| {
            let used = labels.iter().filter(|&&label| lexicon.used.contains(label));
            cuts.extend(used.map(|&label| Cut { label: Some(TerminalId::new(label)), after }));
            if labels.iter().any(|&label| lexicon.ignored.contains(label)) {
                cuts.push(Cut { label: None, after });
            }
        };
        match lexicon.mode {
            LexerMode::Scannerless => add(&lexicon.labels(state, |_| true), FIRST),
            LexerMode::Longest => {
                let mut owed = self.debts[debts as usize].to_vec();
                if !union.live(state).is_empty() {
                    owed.push(Debt { terminal: ANY, state: union.blind(state) });
                }
                let debts = self.intern_debts(owed);
                let after = self.intern(START, debts);
                add(&lexicon.labels(state, |_| true), after);
            }
            LexerMode::Contextual => {
                let accepts: Vec<usize> = union.accepts(state).iter().collect();
                let competing: Vec<u32> = lexicon
                    .ignored
                    .iter()
                    .filter(|&at| union.live(state).contains(at))
                    .map(|at| at as u32)
                    .collect();
                for label in accepts {
                    let competes = |at: usize| at == label || lexicon.ignored.contains(at);
                    if !lexicon.labels(state, competes).contains(&label) {
                        continue;
                    }
                    let mut owed = self.debts[debts as usize].to_vec();
                    let own = union.live(state).contains(label).then_some(label as u32);
                    for terminal in competing.iter().copied().chain(own) {
                        owed.push(Debt { terminal, state: self.own_state(lexing, terminal, state) });
                    }
                    let debts = self.intern_debts(owed);
                    let after = self.intern(START, debts);
                    add(&[label], after);
                }
            }
        }
        cuts
    }

    /// The state of a terminal's own automaton where the union is in `state`, which knows it: its states are
    /// tuples of those.
    fn own_state(&mut self, lexing: &Lexing, terminal: u32, state: State) -> u32 {
        let own = self.own.entry(terminal).or_insert_with(|| {
            let union = &lexing.lexicon.union;
            let mut own = vec![DEAD; union.n_states()];
            if let Some(automaton) = automaton(lexing, terminal) {
                own[START as usize] = START;
                let mut seen = vec![false; union.n_states()];
                let mut agenda = vec![START];
                while let Some(state) = agenda.pop() {
                    for (class, &byte) in union.samples().iter().enumerate() {
                        let next = union.step(state, class);
                        if next != DEAD && !std::mem::replace(&mut seen[next as usize], true) {
                            own[next as usize] = automaton.step(own[state as usize], byte);
                            agenda.push(next);
                        }
                    }
                }
            }
            own.into()
        });
        own[state as usize]
    }

    /// What is left of debts after a byte; `None` if one was broken.
    fn step_debts(&mut self, lexing: &Lexing, debts: u32, class: usize) -> Option<u32> {
        if debts == 0 {
            return Some(0);
        }
        if let Some(&known) = self.debt_steps.get(&(debts, class as u32)) {
            return known;
        }
        let left = self.compute_debts(lexing, debts, class);
        self.debt_steps.insert((debts, class as u32), left);
        left
    }

    fn compute_debts(&mut self, lexing: &Lexing, debts: u32, class: usize) -> Option<u32> {
        let union = &lexing.lexicon.union;
        let mut left = Vec::new();
        for &Debt { terminal, state } in &*self.debts[debts as usize] {
            if terminal == ANY {
                let next = union.step(state, class);
                if !union.accepts(next).is_empty() {
                    return None;
                }
                if !union.live(next).is_empty() {
                    left.push(Debt { terminal, state: union.blind(next) });
                }
            } else {
                let Some(automaton) = automaton(lexing, terminal) else { continue };
                let next = automaton.step(state, union.samples()[class]);
                if automaton.accepting[next as usize] {
                    return None;
                }
                if next != DEAD && automaton.can_go_on(next) {
                    left.push(Debt { terminal, state: next });
                }
            }
        }
        Some(self.intern_debts(left))
    }

    fn intern(&mut self, state: State, debts: u32) -> Lexeme {
        let fresh = self.lexemes.len() as u32;
        *self.ids.entry((state, debts)).or_insert_with(|| {
            self.lexemes.push((state, debts));
            self.steps.push(None);
            fresh
        })
    }

    fn intern_debts(&mut self, mut debts: Vec<Debt>) -> u32 {
        debts.sort_unstable();
        debts.dedup();
        let fresh = self.debts.len() as u32;
        *self.debt_ids.entry(debts.into()).or_insert_with_key(|debts| {
            self.debts.push(debts.clone());
            fresh
        })
    }
}

fn automaton(lexing: &Lexing, terminal: u32) -> Option<&Dfa> {
    lexing.dfa(TerminalId(terminal))
}
