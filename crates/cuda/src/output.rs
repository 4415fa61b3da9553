//! One output of a model whose masks are computed on a device: the counterpart of [`Matcher`](anygram_left_to_right::Matcher), with fewer services.
//!
//! The lexer runs on the host, a byte at a time, and asks an engine of the CPU what is viable; where the chart is dense, the device. A mask is one call of
//! the device: it makes the states that it has not been told of yet, and searches the trees of the lexemes in progress. Trees are made when they are
//! first needed. Where a mask of the device leaves tokens in doubt, the CPU computes it, by a [`Matcher`]
//! that reads the same tokens and shares its tables with those of
//! other outputs of the pool ([`Warm`](anygram_left_to_right::Warm)).

use std::sync::{Arc, PoisonError};

use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::set_bit;
use anygram_left_to_right::sequences::Sequences;
use anygram_left_to_right::{Constraint, MatchError, Matcher};
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
    /// The mask of the CPU, where the device left tokens in doubt.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// The device, or the search on it.
    #[error(transparent)]
    Chart(#[from] ChartError),
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
    n_doubtful: usize,
    tokens: Vec<TokenId>,
    /// The same output on the CPU, once a mask was in doubt; it has the tokens that there were then.
    matcher: Option<Matcher>,
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
            n_doubtful: 0,
            tokens: Vec::new(),
            matcher: None,
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
        self.tokens.len()
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

    /// Which tokens may come next, EOS among them if the text is a sentence. On the CPU after [`Output::go_on_without_device`], and where the device leaves tokens in
    /// doubt.
    pub fn mask_into(&mut self, words: &mut [u32]) -> Result<(), OutputError> {
        let n_words = self.constraint.mask_words();
        words.fill(0);
        if self.last().ended {
            let vocabulary = self.constraint.vocabulary();
            vocabulary.eos().iter().chain(&vocabulary.pad()).for_each(|token| set_bit(words, token.index()));
            return Ok(());
        }
        if self.link.is_without_device() {
            return self.mask_on_cpu(&mut words[..n_words]);
        }
        let WholeStep { steps, readings } = self.whole_step()?;
        let steps: Vec<&[Edge]> = steps.iter().map(|edges| &edges[..]).collect();
        let turn = Turn { sequence: self.sequence, steps: &steps, readings: &readings };
        let mut charts = self.charts.lock().unwrap_or_else(PoisonError::into_inner);
        let (masks, mut turned) = charts.turn(&[turn], self.levels)?;
        let Turned { states, mask } = turned.remove(0);
        if states?.contains(&None) {
            return Err(ChartError::Unknown { what: "viable state", id: charts.n_states(self.sequence)? }.into());
        }
        if mask == Err(ChartError::InDoubt) {
            drop(charts);
            self.n_doubtful += 1;
            return self.mask_on_cpu(&mut words[..n_words]);
        }
        mask?;
        words[..n_words].copy_from_slice(&charts.read_masks(masks)?.remove(0));
        Ok(())
    }

    /// The masks that the device left in doubt, so that the CPU computed them.
    pub fn n_doubtful(&self) -> usize {
        self.n_doubtful
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
        let tree = self.charts.lock().unwrap_or_else(PoisonError::into_inner).add_tree(&tree)?;
        self.trees.insert(key, tree);
        Ok(tree)
    }

    fn mask_on_cpu(&mut self, words: &mut [u32]) -> Result<(), OutputError> {
        let matcher = match &mut self.matcher {
            Some(matcher) => matcher,
            matcher => {
                let warm = &mut self.charts.lock().unwrap_or_else(PoisonError::into_inner).warm;
                matcher.insert(warm.matcher(&self.constraint)?)
            }
        };
        matcher.go_to(&self.tokens)?;
        Ok(matcher.mask_into(words)?)
    }

    /// Appends a token; a refused one leaves everything as it was.
    pub fn advance(&mut self, token: TokenId) -> Result<(), OutputError> {
        let vocabulary = self.constraint.vocabulary();
        if token.index() >= vocabulary.len() {
            return Err(OutputError::UnknownToken { id: token.0, size: vocabulary.len() });
        }
        let mark = self.stepper.mark();
        match self.next(token) {
            Ok(position) => {
                self.positions.push(position);
                self.tokens.push(token);
            }
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
        self.tokens.truncate(self.positions.len() - 1);
        self.stepper.release(self.last().mark);
    }

    /// Takes back all tokens.
    pub fn reset(&mut self) {
        self.rollback(self.n_tokens());
    }

    /// After an error of the device: from here on the CPU computes the parser's states, from those that it was told, and the masks. Nothing that was
    /// read is lost.
    pub fn go_on_without_device(&mut self) {
        self.link.go_on_without_device();
    }
}

impl OutputError {
    /// Whether the device is the reason, so that [`Output::go_on_without_device`] would help.
    pub fn is_of_device(&self) -> bool {
        matches!(self, Self::Chart(_) | Self::Step(StepError::Recognizer(RecognizerError::Device { .. })))
    }
}
