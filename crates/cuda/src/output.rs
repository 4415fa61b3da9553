//! One output of a model whose masks are computed on a device: the counterpart of [`Matcher`], with fewer
//! services.
//!
//! The lexer runs on the host, a byte at a time, and asks an engine of the CPU what is viable; where the
//! chart is dense, the device. A mask is one call of the device: it makes the states that it has not been
//! told of yet, and searches the trees of the lexemes in progress. Trees are made when they are first needed.
//!
//! An output never ends because of its device. A [`Matcher`] of the CPU, which reads the same tokens and
//! shares its tables with those of other outputs of the pool ([`Warm`](anygram_left_to_right::Warm)),
//! computes a mask that the device leaves in doubt, or for which a search needs more than the pool gives it.
//! When the pool has no page left, or the device is lost, the CPU computes everything from there on; nothing
//! that was read is lost. [`Output::computed`] counts that, and [`Output::gave_out`] says why the device is
//! not asked any more.

use std::sync::{Arc, MutexGuard, PoisonError};

use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::sequences::Sequences;
use anygram_left_to_right::tokens::set_bit;
use anygram_left_to_right::{Constraint, ErrorKind, MaskRows, MatchError, Matcher};
use anygram_lexer::transducer::{LexemeId, Place};
use anygram_recognizer::{Edge, Mark, StateId};
use anygram_vocab::TokenId;
use rustc_hash::FxHashMap;

use crate::charts::{Charts, SequenceId};
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

/// Where the masks of an output were computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Computed {
    /// By the device.
    pub on_device: usize,
    /// By the CPU, since the device left tokens in doubt.
    pub in_doubt: usize,
    /// By the CPU, since the tree of a lexeme, or the search for this mask, needs more than the pool gives
    /// it.
    pub too_large: usize,
    /// By the CPU, since the chart was thin and only dense ones are for the device.
    pub thin: usize,
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
    is_for_dense: bool,
    team_from: usize,
    tokens: Vec<TokenId>,
    /// The same output on the CPU, once it had to compute a mask; it has the tokens that there were then.
    matcher: Option<Matcher>,
    positions: Vec<Position>,
    levels: usize,
}

impl Output {
    /// A new output. Its masks are searched in breadth for `levels` levels, then in depth.
    pub fn new(constraint: &Constraint, charts: &SharedCharts, levels: usize) -> Result<Self, OutputError> {
        let language = constraint.language();
        language.needs_all_states("outputs on a device")?;
        let device =
            DeviceRecognizer::new(language.lexing().cfg.clone(), language.limits().recognizer, charts)?;
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
            is_for_dense: false,
            team_from: lock(charts).options().team_from,
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

    /// Which tokens may come next, EOS among them if the text is a sentence. By the device, or where it
    /// cannot, by the CPU: see the module.
    pub fn mask_into(&mut self, words: &mut [u32]) -> Result<(), OutputError> {
        let width = words.len();
        batch_masks(std::slice::from_mut(self), MaskRows::new(words, width)).remove(0)
    }

    /// Leaves thin charts to the CPU: the device is asked only where the last tier has so many rows that
    /// several blocks would work on the next ([`PoolOptions::team_from`](crate::PoolOptions::team_from)).
    pub fn for_dense_charts(mut self) -> Self {
        self.is_for_dense = true;
        self
    }

    /// What to ask of the device for the mask; `None` if it is not asked.
    fn plan(&mut self) -> Result<Option<WholeStep>, OutputError> {
        if self.last().ended || self.link.is_without_device() {
            return Ok(None);
        }
        if self.is_for_dense && !self.link.is_dense(self.team_from) {
            self.computed.thin += 1;
            return Ok(None);
        }
        match self.whole_step() {
            Ok(step) => Ok(Some(step)),
            Err(error) => self.note(error).map(|()| None),
        }
    }

    /// Notes why the device has no mask; an error that is not its fault is given back.
    fn note(&mut self, error: OutputError) -> Result<(), OutputError> {
        match error {
            OutputError::Chart(ChartError::InDoubt) => self.computed.in_doubt += 1,
            error if error.is_of_search() => self.computed.too_large += 1,
            error => self.give_up(error)?,
        }
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

    /// What the device is to do for the mask of the output so far: what it has not been told of, and the
    /// readings. For turns of many outputs at once ([`Charts::turn`](crate::Charts::turn)), each to be made
    /// before anything else is done with the sequence.
    pub fn whole_step(&mut self) -> Result<WholeStep, OutputError> {
        let n_states = lock(&self.charts).n_states(self.sequence)?;
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

    /// The readings of the output so far, of which the device has been told, for a search of many outputs at
    /// once ([`Charts::masks`](crate::Charts::masks)).
    pub fn readings(&mut self) -> Result<Vec<Reading>, OutputError> {
        catch_up(&mut lock(&self.charts), self.sequence, &self.link)?;
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
        if let Some(known) = known.filter(|&known| lock(&self.charts).has_tree(known)) {
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
        Ok(lock(&self.charts).add_tree(&tree)?)
    }

    /// The mask where the device has none: that of an output that ended, or the CPU's.
    fn mask_without_device(&mut self, words: &mut [u32]) -> Result<(), OutputError> {
        if self.last().ended {
            let vocabulary = self.constraint.vocabulary();
            vocabulary.eos().iter().chain(&vocabulary.pad()).for_each(|token| set_bit(words, token.index()));
            return Ok(());
        }
        self.computed.without_device += usize::from(self.link.is_without_device());
        let matcher = match &mut self.matcher {
            Some(matcher) => matcher,
            matcher => {
                let warm = &mut lock(&self.charts).warm;
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
        let next = self.next(token).or_else(|error| {
            self.stepper.release(mark);
            self.give_up(error)?;
            self.next(token)
        });
        match next {
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

    /// Takes back all tokens. A device that gave out is asked again, unless it is lost.
    pub fn reset(&mut self) {
        self.rollback(self.n_tokens());
        if self.link.is_without_device() {
            // What the device was told before it gave out is of no use to another text.
            let mut charts = lock(&self.charts);
            if charts.rollback(self.sequence, 1).is_ok() && charts.synchronize().is_ok() {
                self.link.go_on_with_device();
                self.gave_out = None;
            }
        }
    }
}

/// Writes the masks of many outputs: row `i` belongs to output `i`. Outputs of one pool and one vocabulary
/// make one turn of the device, which is waited for once. The answers come one for each output, and the error
/// of one does not touch the others. The counterpart of [`batch_masks`](anygram_left_to_right::batch_masks)
/// for matchers.
pub fn batch_masks(outputs: &mut [Output], mut rows: MaskRows<'_>) -> Vec<Result<(), OutputError>> {
    let (needed, given) = (outputs.len(), rows.len());
    if given < needed {
        return vec![Err(MatchError::TooFewRows { needed, given }.into()); needed];
    }
    let mut rows: Vec<&mut [u32]> = rows.iter_mut().take(needed).collect();
    rows.iter_mut().for_each(|row| row.fill(0));
    let mut results = Vec::with_capacity(outputs.len());
    let mut groups: FxHashMap<_, Group> = FxHashMap::default();
    for (at, output) in outputs.iter_mut().enumerate() {
        let plan = output.plan();
        results.push(plan.as_ref().map(|_| false).map_err(OutputError::clone));
        if let Ok(Some(step)) = plan {
            let group = (Arc::as_ptr(&output.charts), output.constraint.mask_words());
            groups.entry(group).or_default().push((at, step));
        }
    }
    for group in groups.into_values() {
        for (at, mask) in masks_of_group(outputs, &group) {
            results[at] = match mask {
                Ok(mask) => {
                    let n_words = rows[at].len().min(mask.len());
                    rows[at][..n_words].copy_from_slice(&mask[..n_words]);
                    outputs[at].computed.on_device += 1;
                    Ok(true)
                }
                Err(error) => outputs[at].note(error).map(|()| false),
            };
        }
    }
    let by_cpu =
        |((output, row), result): ((&mut Output, &mut [u32]), Result<bool, OutputError>)| match result {
            Ok(true) => Ok(()),
            Ok(false) => output.mask_without_device(row),
            Err(error) => Err(error),
        };
    outputs.iter_mut().zip(rows).zip(results).map(by_cpu).collect()
}

/// Outputs by their numbers, and what each asks of the device.
type Group = Vec<(usize, WholeStep)>;

/// The masks of some outputs of one pool, in one turn.
fn masks_of_group(
    outputs: &mut [Output],
    group: &[(usize, WholeStep)],
) -> Vec<(usize, Result<Vec<u32>, OutputError>)> {
    let Some((first, _)) = group.first() else { return Vec::new() };
    let (charts, levels) = (outputs[*first].charts.clone(), outputs[*first].levels);
    let mut charts = lock(&charts);
    let steps: Vec<Vec<&[Edge]>> =
        group.iter().map(|(_, step)| step.steps.iter().map(|edges| &edges[..]).collect()).collect();
    let mut turns = Vec::with_capacity(group.len());
    for ((at, WholeStep { readings, .. }), steps) in group.iter().zip(&steps) {
        turns.push(Turn { sequence: outputs[*at].sequence, steps, readings });
    }
    match charts.turn_and_read(&turns, levels) {
        Err(error) => group.iter().map(|&(at, _)| (at, Err(error.clone().into()))).collect(),
        Ok((masks, turned)) => {
            let one = |(((at, _), mask), Turned { states, mask: status }): ((&(usize, WholeStep), _), _)| {
                let checked = states.and_then(|states| match states.contains(&None) {
                    // The device says otherwise than the host.
                    true => Err(ChartError::Unknown { what: "viable state of output", id: *at }),
                    false => status,
                });
                (*at, checked.map(|()| mask).map_err(OutputError::from))
            };
            group.iter().zip(masks).zip(turned).map(one).collect()
        }
    }
}

fn lock(charts: &SharedCharts) -> MutexGuard<'_, Charts> {
    charts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OutputError {
    /// Whether the device is the reason, or that its pool is used up: a [`Matcher`] could go on.
    pub fn is_of_device(&self) -> bool {
        match self {
            // The device says otherwise than the host: a defect that nobody should cover up.
            Self::Chart(error) => !matches!(error, ChartError::Unknown { .. }),
            Self::Step(error) => error.kind() == ErrorKind::Device,
            Self::Refused { .. } | Self::UnknownToken { .. } | Self::Match(_) => false,
        }
    }

    /// Whether a tree, or the search of it, needs more than it was given.
    fn is_of_search(&self) -> bool {
        match self {
            Self::Chart(error) => {
                let too_large =
                    matches!(error, ChartError::SearchTooLarge { .. } | ChartError::TreeTooLarge { .. });
                // Other outputs of the batch needed the room.
                too_large || matches!(error, ChartError::TreeDropped { .. })
            }
            Self::Step(error) => match error.kind() {
                ErrorKind::Limit => error.limit().is_none_or(|(name, _)| name != "parser_items"),
                kind => kind == ErrorKind::Cancelled,
            },
            Self::Refused { .. } | Self::UnknownToken { .. } | Self::Match(_) => false,
        }
    }
}
