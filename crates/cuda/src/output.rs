//! One output of a model whose masks are computed on a device: the counterpart of [`Matcher`](anygram_left_to_right::Matcher), with fewer services.
//!
//! The lexer runs on the host, a byte at a time, and asks an engine of the CPU what is viable; where the chart is dense, the device. A mask is one call of
//! the device: it makes the states that it has not been told of yet, and searches the trees of the lexemes in progress. Trees are made when they are
//! first needed.
//!
//! An output never ends because of its device. The CPU computes a mask that the device leaves in doubt, or for which a search needs more than the pool
//! gives it. When the pool has no page left, or the device is lost, the CPU computes everything from there on; nothing that was read is
//! lost. [`Output::computed`] counts that, and [`Output::gave_out`] says why the device is not asked any more.

use std::sync::{Arc, PoisonError};

use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::Constraint;
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::{self, set_bit};
use anygram_left_to_right::sequences::Sequences;
use anygram_lexer::transducer::{LexemeId, Place};
use anygram_recognizer::{Edge, Mark, RecognizerError, StateId};
use anygram_vocab::TokenId;
use rustc_hash::FxHashMap;

use crate::charts::SequenceId;
use crate::options::ChartError;
use crate::recognizer::{DeviceRecognizer, Link, SharedCharts, catch_up};
use crate::search::{At, Reading, TreeId};
use crate::tree::{Special, Tree};
use crate::turn::{After, Turn, Turned};

/// What could not be done; the output is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The token may not come next.
    #[error("token {} is refused", token.0)]
    Refused {
        /// The token.
        token: TokenId,
    },
    /// The id is not in the vocabulary.
    #[error("token {id} is not in the vocabulary of {size} tokens")]
    UnknownToken {
        /// The id.
        id: u32,
        /// The number of tokens.
        size: usize,
    },
    /// A limit of the lexer or the parser, or the parser's device.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The device, or the search on it.
    #[error(transparent)]
    Chart(#[from] ChartError),
}

/// Where the masks of an output were computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Computed {
    /// By the device.
    pub on_device: usize,
    /// By the CPU, since the device left tokens in doubt.
    pub in_doubt: usize,
    /// By the CPU, since the tree of a lexeme, or the search for this mask, needs more than the pool gives it.
    pub too_large: usize,
    /// By the CPU, since the device gave out.
    pub without_device: usize,
}

/// What a device is to do for the mask of an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WholeStep {
    /// The edges of each state that its sequence has to grow by.
    pub steps: Vec<Box<[Edge]>>,
    /// What is then asked for.
    pub readings: Vec<After>,
}

/// The output after some tokens.
#[derive(Clone, Debug)]
struct Position {
    frontier: Frontier,
    mark: Mark,
    ended: bool,
}

/// An output; see the module.
pub struct Output {
    constraint: Constraint,
    charts: SharedCharts,
    sequence: SequenceId,
    link: Arc<Link>,
    stepper: Stepper,
    trees: FxHashMap<Place, TreeId>,
    /// The lexemes whose trees are larger than a limit: they are not tried again.
    treeless: FxHashMap<Place, OutputError>,
    computed: Computed,
    gave_out: Option<String>,
    positions: Vec<Position>,
    levels: usize,
}

impl Output {
    /// A new output. Its masks are searched in breadth for `levels` levels, then in depth.
    pub fn new(constraint: &Constraint, charts: &SharedCharts, levels: usize) -> Result<Self, OutputError> {
        let language = constraint.language();
        let device = DeviceRecognizer::new(language.lexing().cfg.clone(), language.limits().recognizer, charts)?;
        let device = device.deferring();
        let (sequence, link) = (device.sequence(), device.link());
        let mut stepper = Stepper::with(language, Box::new(device));
        let frontier = stepper.start(language)?.unwrap_or_default();
        let first = Position { frontier, mark: stepper.mark(), ended: false };
        Ok(Self {
            constraint: constraint.clone(),
            charts: charts.clone(),
            sequence,
            link,
            stepper,
            trees: FxHashMap::default(),
            treeless: FxHashMap::default(),
            computed: Computed::default(),
            gave_out: None,
            positions: vec![first],
            levels,
        })
    }

    /// The constraint.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// The sequence that has the parser's states.
    pub fn sequence(&self) -> SequenceId {
        self.sequence
    }

    /// The number of tokens so far.
    pub fn n_tokens(&self) -> usize {
        self.positions.len() - 1
    }

    /// Whether the output is a sentence as it stands.
    pub fn is_sentence(&self) -> bool {
        let last = self.last();
        last.ended || self.stepper.is_sentence(&last.frontier)
    }

    /// The names of the terminals that may be in progress or come next.
    pub fn expected(&self) -> Vec<String> {
        self.stepper.expected(self.constraint.language(), &self.last().frontier)
    }

    fn last(&self) -> &Position {
        &self.positions[self.positions.len() - 1]
    }

    /// Which tokens may come next, EOS among them if the text is a sentence. By the device, or where it cannot, by the CPU: see the module.
    pub fn mask_into(&mut self, words: &mut [u32]) -> Result<(), OutputError> {
        let n_words = self.constraint.mask_words();
        words.fill(0);
        if self.last().ended {
            let vocabulary = self.constraint.vocabulary();
            vocabulary.eos().iter().chain(&vocabulary.pad()).for_each(|token| set_bit(words, token.index()));
            return Ok(());
        }
        let words = &mut words[..n_words];
        if !self.link.is_without_device() {
            match self.mask_on_device(words) {
                Ok(()) => {
                    self.computed.on_device += 1;
                    return Ok(());
                }
                Err(OutputError::Chart(ChartError::InDoubt)) => self.computed.in_doubt += 1,
                Err(error) if error.is_of_search() => self.computed.too_large += 1,
                Err(error) => self.give_up(error)?,
            }
        }
        self.computed.without_device += usize::from(self.link.is_without_device());
        Ok(self.mask_on_cpu(words)?)
    }

    fn mask_on_device(&mut self, words: &mut [u32]) -> Result<(), OutputError> {
        let WholeStep { steps, readings } = self.whole_step()?;
        let steps: Vec<&[Edge]> = steps.iter().map(|edges| &edges[..]).collect();
        let turn = Turn { sequence: self.sequence, steps: &steps, readings: &readings };
        let mut charts = self.charts.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut masks, mut turned) = charts.turn_and_read(&[turn], self.levels)?;
        let Turned { states, mask } = turned.remove(0);
        if states?.contains(&None) {
            return Err(ChartError::Unknown { what: "viable state", id: charts.n_states(self.sequence)? }.into());
        }
        mask?;
        words.copy_from_slice(&masks.remove(0));
        Ok(())
    }

    /// Where the masks so far were computed.
    pub fn computed(&self) -> Computed {
        self.computed
    }

    /// Why the device is not asked any more, if it is not.
    pub fn gave_out(&self) -> Option<&str> {
        self.gave_out.as_deref()
    }

    /// Goes on without the device if it is the reason for an error; other errors are given back.
    fn give_up(&mut self, error: OutputError) -> Result<(), OutputError> {
        if !error.is_of_device() {
            return Err(error);
        }
        self.gave_out.get_or_insert_with(|| error.to_string());
        self.link.go_on_without_device();
        Ok(())
    }

    /// What the device is to do for the mask of the output so far: what it has not been told of, and the readings. For turns of many outputs at once
    /// ([`Charts::turn`](crate::Charts::turn)), each to be made before anything else is done with the sequence.
    pub fn whole_step(&mut self) -> Result<WholeStep, OutputError> {
        let n_states = self.charts.lock().unwrap_or_else(PoisonError::into_inner).n_states(self.sequence)?;
        let at = |state: StateId| match state.index().checked_sub(n_states) {
            Some(step) => At::Made(step),
            None => At::State(state),
        };
        let mut readings = Vec::new();
        for config in self.last().frontier.clone() {
            readings.push(After { at: at(config.state), tree: self.tree(config.lexeme)? });
        }
        Ok(WholeStep { steps: self.link.edges_from(n_states), readings })
    }

    /// The readings of the output so far, of which the device has been told, for a search of many outputs at once
    /// ([`Charts::masks`](crate::Charts::masks)).
    pub fn readings(&mut self) -> Result<Vec<Reading>, OutputError> {
        catch_up(&mut self.charts.lock().unwrap_or_else(PoisonError::into_inner), self.sequence, &self.link)?;
        let mut readings = Vec::new();
        for config in self.last().frontier.clone() {
            let tree = self.tree(config.lexeme)?;
            readings.push(Reading { sequence: self.sequence, state: config.state, tree });
        }
        Ok(readings)
    }

    /// The tree of a lexeme on the device.
    fn tree(&mut self, lexeme: LexemeId) -> Result<TreeId, OutputError> {
        let is_boundary = self.stepper.transducer().is_boundary(lexeme);
        let key = self.stepper.transducer().place(lexeme);
        let known = self.trees.get(&key).copied();
        if let Some(known) =
            known.filter(|&known| self.charts.lock().unwrap_or_else(PoisonError::into_inner).has_tree(known))
        {
            return Ok(known);
        }
        if let Some(error) = self.treeless.get(&key) {
            return Err(error.clone());
        }
        let made = self.make_tree(lexeme, is_boundary);
        match &made {
            Ok(tree) => drop(self.trees.insert(key, *tree)),
            Err(error) if error.is_of_search() => drop(self.treeless.insert(key, error.clone())),
            Err(_) => {}
        }
        made
    }

    fn make_tree(&mut self, lexeme: LexemeId, is_boundary: bool) -> Result<TreeId, OutputError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        let n_words = self.constraint.mask_words();
        self.stepper.begin(language);
        let sequences = Sequences::new(&mut self.stepper, language, vocabulary.trie(), lexeme, n_words)?;
        let specials: Vec<Special> = if is_boundary {
            let named = self.constraint.specials().iter().map(|&(token, terminal)| (Some(terminal), token));
            named.chain(vocabulary.eos().iter().map(|&token| (None, token))).collect()
        } else {
            Vec::new()
        };
        let tree = Tree::new(language, &sequences, &specials, n_words);
        Ok(self.charts.lock().unwrap_or_else(PoisonError::into_inner).add_tree(&tree)?)
    }

    fn mask_on_cpu(&mut self, words: &mut [u32]) -> Result<(), StepError> {
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        let frontier = self.positions[self.positions.len() - 1].frontier.clone();
        self.stepper.begin(language);
        let mark = self.stepper.mark();
        let (mut walks, mut scratch) = (mask::Walks::default(), mask::Scratch::default());
        let trie = vocabulary.trie();
        mask::add_tokens(&mut self.stepper, language, trie, &frontier, &mut walks, &mut scratch, words)?;
        for &(token, terminal) in self.constraint.specials() {
            if !self.stepper.step_special(language, &frontier, terminal)?.is_empty() {
                set_bit(words, token.index());
            }
        }
        self.stepper.release(mark);
        if self.stepper.is_sentence(&frontier) {
            vocabulary.eos().iter().for_each(|token| set_bit(words, token.index()));
        }
        Ok(())
    }

    /// Appends a token; a refused one leaves everything as it was.
    pub fn advance(&mut self, token: TokenId) -> Result<(), OutputError> {
        let vocabulary = self.constraint.vocabulary();
        if token.index() >= vocabulary.len() {
            return Err(OutputError::UnknownToken { id: token.0, size: vocabulary.len() });
        }
        let mark = self.stepper.mark();
        let next = self.next(token).or_else(|error| {
            self.stepper.release(mark);
            self.give_up(error)?;
            self.next(token)
        });
        match next {
            Ok(position) => self.positions.push(position),
            Err(error) => {
                self.stepper.release(mark);
                return Err(error);
            }
        }
        Ok(())
    }

    fn next(&mut self, token: TokenId) -> Result<Position, OutputError> {
        let refused = OutputError::Refused { token };
        let (language, vocabulary) = (self.constraint.language(), self.constraint.vocabulary());
        let Position { mut frontier, ended, mark } = self.positions[self.positions.len() - 1].clone();
        let is_eos = vocabulary.eos().contains(&token);
        self.stepper.begin(language);
        if ended {
            let stays = is_eos || vocabulary.pad() == Some(token);
            return if stays { Ok(Position { frontier, mark, ended }) } else { Err(refused) };
        }
        if is_eos && self.stepper.is_sentence(&frontier) {
            return Ok(Position { frontier, mark, ended: true });
        }
        let mut readings = Frontier::new();
        let named = self.constraint.specials().iter().filter(|(named, _)| *named == token);
        for terminal in named.map(|&(_, terminal)| terminal).collect::<Vec<TerminalId>>() {
            readings.extend(self.stepper.step_special(language, &frontier, terminal)?);
        }
        let bytes = vocabulary.bytes(token).unwrap_or_default();
        let mut next = Frontier::new();
        for &byte in bytes {
            self.stepper.step(language, &frontier, byte, &mut next)?;
            std::mem::swap(&mut frontier, &mut next);
        }
        if !bytes.is_empty() {
            readings.append(&mut frontier);
        }
        readings.sort_unstable();
        readings.dedup();
        if readings.is_empty() || !self.stepper.is_viable(language, &readings)? {
            return Err(refused);
        }
        Ok(Position { frontier: readings, mark: self.stepper.mark(), ended: false })
    }

    /// Takes back the last `n` tokens; all if there are fewer.
    pub fn rollback(&mut self, n: usize) {
        self.positions.truncate(self.positions.len().saturating_sub(n).max(1));
        self.stepper.release(self.last().mark);
    }

    /// Takes back all tokens. A device that gave out is asked again, unless it is lost.
    pub fn reset(&mut self) {
        self.rollback(self.n_tokens());
        if self.link.is_without_device() {
            // What the device was told before it gave out is of no use to another text.
            let mut charts = self.charts.lock().unwrap_or_else(PoisonError::into_inner);
            if charts.rollback(self.sequence, 1).is_ok() && charts.synchronize().is_ok() {
                self.link.go_on_with_device();
                self.gave_out = None;
            }
        }
    }
}

impl OutputError {
    /// Whether the device is the reason, or that its pool is used up: a [`Matcher`](anygram_left_to_right::Matcher) could go on.
    pub fn is_of_device(&self) -> bool {
        match self {
            // The device says otherwise than the host: a defect that nobody should cover up.
            Self::Chart(error) => !matches!(error, ChartError::Unknown { .. }),
            Self::Step(error) => matches!(error, StepError::Recognizer(RecognizerError::Device { .. })),
            Self::Refused { .. } | Self::UnknownToken { .. } => false,
        }
    }

    /// Whether a tree, or the search of it, needs more than it was given.
    fn is_of_search(&self) -> bool {
        match self {
            Self::Chart(error) => {
                matches!(error, ChartError::SearchTooLarge { .. } | ChartError::TreeTooLarge { .. })
            }
            Self::Step(error) => matches!(error, StepError::Lexer(_) | StepError::Stopped(_)),
            Self::Refused { .. } | Self::UnknownToken { .. } => false,
        }
    }
}
