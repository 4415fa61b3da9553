//! The best completion of a canvas, and samples of its completions, by weights of tokens (DESIGN, section 4).
//!
//! A text is one path through a deterministic automaton (`subsets`), so no derivation and no cut is counted
//! twice, in any lexer mode.
//!
//! - [`Weigher::best`] is a best-first search (A*; Hart, Nilsson and Raphael 1968) over pairs of a slot and a
//!   state. What can still be gained is bounded by the maxima of the holes to come. Tokens of a hole are
//!   tried in the order of their weights, and those that are not listed only once nothing listed can be
//!   better: so the answer over all tokens is exact, and seldom looks at more than a few.
//! - [`Weigher::sample`] goes over the layers of states, hole by hole, sums the weights of completions
//!   backwards, and draws forwards. It rejects no draws. If there are too many states, it draws by a search
//!   instead (`gumbel`), which is as exact.

use anygram_bits::Random;
use anygram_bits::work::Work;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::{Constraint, Matcher};
use anygram_vocab::TokenId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::canvas::{Canvas, End, Slot};
use crate::confirm;
use crate::decision::{Decision, Undecided};
use crate::error::{CanvasCause, CanvasError};
use crate::gumbel;
use crate::log_probs::log_sum;
use crate::log_probs::{LogProbs, Row};
use crate::subsets::{Subset, Subsets};
use crate::tables::Tables;

/// Whether the holes after the first EOS count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tail {
    /// Every hole counts.
    #[default]
    Counted,
    /// The slots after the first EOS are left out; their holes are filled with PAD, or with EOS where there
    /// is no PAD.
    Free,
}

/// How samples are drawn. Every way is exact.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SampleBy {
    /// By layers, and where those are too many, by a search.
    #[default]
    All,
    /// By summing over layers of states alone.
    Layers,
    /// By a search alone.
    Search,
}

/// A token for every slot, and their log-probability.
#[derive(Clone, PartialEq, Debug)]
pub struct Assignment {
    /// The tokens of all slots.
    pub tokens: Vec<TokenId>,
    /// The sum of the log-probabilities of all holes that count.
    pub log_prob: f64,
    /// Whether a hole that counts has a token that was not listed.
    pub widened: bool,
}

/// What [`Weigher::sample`] draws.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleOptions {
    /// How holes behind the end count.
    pub tail: Tail,
    /// The same seed, the same samples.
    pub seed: u64,
    /// How many.
    pub count: usize,
}

/// Answers questions about the weights of completions of one constraint's canvases, and keeps its tables from
/// one to the next.
///
/// Costs memory like a [`Matcher`]; use one a thread. Equal questions have
/// equal answers, whatever was asked before, unless a limit is hit.
///
/// ```
/// # use anygram_any_order::{Canvas, End, LogProbs, SampleOptions, Slot, Tail, Weigher};
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
/// // The model likes `x` best everywhere. Rows are log-probabilities of the four tokens.
/// let log_probs = LogProbs::dense([-2.0, -3.0, -0.5, -5.0].repeat(3), 4)?;
/// let canvas = Canvas::new(vec![Slot::Hole; 3], End::Prefix { remaining: Some(1) });
/// let mut weigher = Weigher::new(&constraint)?;
/// let best = weigher.best(&canvas, &log_probs, Tail::Counted)?.yes().ok_or("it is completable")?;
/// assert_eq!((best.tokens, best.log_prob), (vec![open, x, close], -5.5));
/// let options = SampleOptions { tail: Tail::Counted, seed: 1, count: 2 };
/// let samples = weigher.sample(&canvas, &log_probs, options)?.yes().ok_or("it is completable")?;
/// assert_eq!(samples.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Weigher {
    subsets: Subsets,
    by: SampleBy,
    /// Of one question.
    steps: u64,
    /// Reads completions again, where the automaton of texts does not know what a memory does.
    matcher: Option<Matcher>,
}

impl Weigher {
    /// Empty tables for a constraint.
    pub fn new(constraint: &Constraint) -> Result<Self, CanvasError> {
        let remembers = constraint.language().grammar().remembers();
        let matcher = remembers.then(|| constraint.matcher()).transpose()?;
        let steps = constraint.language().limits().canvas_steps;
        Ok(Self { subsets: Subsets::new(Tables::new(constraint)?), by: SampleBy::default(), steps, matcher })
    }

    /// Steps of one question, in place of the limit `canvas_steps`.
    pub fn steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self
    }

    /// Lets samples be drawn in one way alone, for tests and measurements.
    pub fn by(mut self, by: SampleBy) -> Self {
        self.by = by;
        self
    }

    /// The constraint.
    pub fn constraint(&self) -> &Constraint {
        &self.subsets.tables.constraint
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.subsets.memory_usage()
    }

    /// The completion of a canvas without gaps with the greatest sum of log-probabilities.
    ///
    /// Exact in every lexer mode, over all tokens, listed or not; ties are broken deterministically. Sums are
    /// formed in multiples of 2^-40, so that equal ones are equal in any order. At worst exponential in the
    /// holes; at the limit `canvas_steps` it is *unknown*. So it is where the grammar has a
    /// [memory](anygram_grammar::memory) by which the best of all that its rules allow is no completion.
    pub fn best(
        &mut self,
        canvas: &Canvas,
        log_probs: &LogProbs,
        tail: Tail,
    ) -> Result<Decision<Assignment>, CanvasError> {
        let mut work = self.begin(canvas, log_probs)?;
        let bounds = (&mut work, self.steps);
        let mut question = Question::new(&mut self.subsets, canvas, log_probs, tail, bounds);
        let best = Decision::of(question.best());
        let (subsets, matcher) = (&self.subsets, &mut self.matcher);
        Ok(match best {
            Decision::Yes(best) if !holds(matcher, &subsets.tables.constraint, canvas, &best) => {
                Decision::Unknown(Undecided::Between)
            }
            best => best,
        })
    }

    /// Completions of a canvas without gaps, each drawn from exactly the product of the holes'
    /// distributions under the condition that the canvas ends as asked; one after the other, with
    /// replacement. The same for the same seed.
    ///
    /// Exact in every lexer mode, over all tokens, listed or not, up to the rounding of `f64`. At worst
    /// exponential in the holes; at the limit `canvas_steps` it is *unknown*. Of what the rules of a grammar
    /// with a [memory](anygram_grammar::memory) allow, samples are rejected that it does not; where these are
    /// nearly all, it is *unknown* too.
    pub fn sample(
        &mut self,
        canvas: &Canvas,
        log_probs: &LogProbs,
        options: SampleOptions,
    ) -> Result<Decision<Vec<Assignment>>, CanvasError> {
        let mut work = self.begin(canvas, log_probs)?;
        let SampleOptions { tail, seed, count } = options;
        let bounds = (&mut work, self.steps);
        let mut question = Question::new(&mut self.subsets, canvas, log_probs, tail, bounds);
        let mut random = Random::new(seed);
        let Some(_) = self.matcher else { return Ok(question.draw(self.by, &mut random, count)) };
        let mut drawn = Vec::new();
        for _ in 0..MOST_BATCHES {
            let batch = match question.draw(self.by, &mut random, count) {
                Decision::Yes(batch) => batch,
                undrawn => return Ok(undrawn),
            };
            let constraint = &question.subsets.tables.constraint;
            drawn.extend(batch.into_iter().filter(|one| holds(&mut self.matcher, constraint, canvas, one)));
            if drawn.len() >= count {
                drawn.truncate(count);
                return Ok(Decision::Yes(drawn));
            }
        }
        Ok(Decision::Unknown(Undecided::Between))
    }

    fn begin(&mut self, canvas: &Canvas, log_probs: &LogProbs) -> Result<Work, CanvasError> {
        let constraint = self.constraint().clone();
        let size = constraint.vocabulary().len();
        log_probs.check(canvas, size)?;
        for (slot, content) in canvas.slots().iter().enumerate() {
            if let Slot::Fixed(token) = content
                && token.index() >= size
            {
                return Err(CanvasCause::UnknownToken { slot, id: token.0, size }.into());
            }
        }
        if self.subsets.is_full() {
            self.subsets = Subsets::new(Tables::new(&constraint)?);
        }
        self.subsets.tables.stepper.begin(constraint.language());
        Ok(Work::new(self.steps, OPTION))
    }
}

/// The limit of a question.
const OPTION: &str = "canvas_steps";

/// How often as many samples are drawn as are asked for, where a memory rejects some.
const MOST_BATCHES: usize = 64;

/// One in this many steps of a question is for the layers of states.
const LAYERS_SHARE: u64 = 4;

/// Whether a completion is one, read from left to right by a matcher that remembers, if there is one; no
/// where that is not known.
fn holds(
    matcher: &mut Option<Matcher>,
    constraint: &Constraint,
    canvas: &Canvas,
    Assignment { tokens, .. }: &Assignment,
) -> bool {
    let Some(matcher) = matcher else { return true };
    let eos = constraint.vocabulary().eos();
    let text: Vec<TokenId> = tokens.iter().copied().take_while(|token| !eos.contains(token)).collect();
    if text.len() < tokens.len() {
        return confirm::reads(matcher, &text, false);
    }
    match canvas.end() {
        End::Sentence => confirm::reads(matcher, &text, false),
        End::Prefix { remaining: None } => confirm::reads(matcher, &text, true),
        // The fewest tokens that close it are counted without the memory.
        End::Prefix { remaining: Some(_) } => false,
    }
}

/// A weight in multiples of 2^-40, or less than any.
type Fixed = i128;
const IMPOSSIBLE: Fixed = Fixed::MIN / 4;

fn fixed(log: f64) -> Fixed {
    if log == f64::NEG_INFINITY {
        IMPOSSIBLE
    } else {
        (log.clamp(-1e15, 1e15) * (1u64 << 40) as f64).round() as Fixed
    }
}

fn plus(a: Fixed, b: Fixed) -> Fixed {
    if a <= IMPOSSIBLE || b <= IMPOSSIBLE { IMPOSSIBLE } else { a + b }
}

/// One question: a canvas, weights, and the steps that it may take.
pub(crate) struct Question<'a> {
    pub subsets: &'a mut Subsets,
    pub canvas: &'a Canvas,
    pub rows: Vec<Row>,
    /// For each slot that is a hole its row.
    pub row_of: Vec<usize>,
    pub tail: Tail,
    pub work: &'a mut Work,
    /// All EOS and PAD.
    tails: Vec<TokenId>,
    limit: u64,
}

/// A place of the best-first search: before a hole, or at the end.
struct Node {
    state: Subset,
    parent: u32,
    token: TokenId,
    sum: Fixed,
}

/// What to look at next: the largest bound, then the furthest slot, then what came first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    bound: Fixed,
    slot: u32,
    order: Reverse<u32>,
    node: u32,
    /// `None` to enter the node, else the rank of the token to try.
    rank: Option<u32>,
}

impl<'a> Question<'a> {
    fn new(
        subsets: &'a mut Subsets,
        canvas: &'a Canvas,
        log_probs: &LogProbs,
        tail: Tail,
        (work, limit): (&'a mut Work, u64),
    ) -> Self {
        let vocabulary = subsets.tables.constraint.vocabulary();
        let mut tails: Vec<TokenId> = vocabulary.eos().iter().copied().chain(vocabulary.pad()).collect();
        tails.sort_unstable();
        tails.dedup();
        let mut row_of = vec![usize::MAX; canvas.slots().len()];
        canvas.holes().enumerate().for_each(|(row, slot)| row_of[slot] = row);
        Self { subsets, canvas, rows: log_probs.rows().to_vec(), row_of, tail, work, tails, limit }
    }

    /// Samples of what the rules allow.
    fn draw(&mut self, by: SampleBy, random: &mut Random, count: usize) -> Decision<Vec<Assignment>> {
        let drawn = match by {
            SampleBy::Layers => self.sample(random, count, self.limit),
            SampleBy::Search => gumbel::sample(self, random, count),
            SampleBy::All => {
                let for_layers = self.limit / LAYERS_SHARE;
                match self.sample(random, count, for_layers) {
                    Err(error) if error.limit().is_some_and(|(option, _)| option == OPTION) => {
                        *self.work = Work::new(self.limit - for_layers, OPTION);
                        gumbel::sample(self, random, count)
                    }
                    drawn => drawn,
                }
            }
        };
        Decision::of(drawn)
    }

    pub fn is_eos(&self, token: TokenId) -> bool {
        self.subsets.tables.constraint.vocabulary().eos().contains(&token)
    }

    pub fn is_tail(&self, token: TokenId) -> bool {
        self.tails.contains(&token)
    }

    /// All EOS and PAD.
    pub fn tails(&self) -> &[TokenId] {
        &self.tails
    }

    /// The state after any token, of the text or not.
    pub fn step(&mut self, state: Subset, token: TokenId) -> Result<Subset, StepError> {
        if self.is_tail(token) {
            let ends = state == Subset::TAIL || self.is_eos(token) && self.subsets.is_sentence(state);
            return Ok(if ends { Subset::TAIL } else { Subset::DEAD });
        }
        if state == Subset::TAIL { Ok(Subset::DEAD) } else { self.subsets.token(state, token, self.work) }
    }

    /// The first hole from a slot on, or the end, and the state there: [`Subset::DEAD`] also where the row
    /// does not end as asked.
    pub fn settle(&mut self, mut slot: usize, mut state: Subset) -> Result<(usize, Subset), StepError> {
        while let Some(Slot::Fixed(token)) = self.canvas.slots().get(slot) {
            if state == Subset::DEAD {
                return Ok((slot, state));
            }
            state = self.step(state, *token)?;
            slot += 1;
        }
        let is_end = slot == self.canvas.slots().len();
        if is_end && state != Subset::DEAD && state != Subset::TAIL {
            let end: End = self.canvas.end();
            if !self.subsets.ends(state, end, self.work)? {
                state = Subset::DEAD;
            }
        }
        Ok((slot, state))
    }

    /// The first hole, and the state there.
    pub fn first(&mut self) -> Result<(usize, Subset), StepError> {
        let start = self.subsets.start()?;
        self.settle(0, start)
    }

    /// What can stand in a hole besides tokens of the text, with the weights: EOS at the end of a sentence,
    /// EOS and PAD behind it.
    pub fn tail_tokens(&self, slot: usize, state: Subset) -> Vec<(TokenId, f64)> {
        let row = &self.rows[self.row_of[slot]];
        if state == Subset::TAIL {
            let vocabulary = self.subsets.tables.constraint.vocabulary();
            if self.tail == Tail::Free {
                return vocabulary
                    .pad()
                    .or(vocabulary.eos().first().copied())
                    .map(|token| (token, 0.0))
                    .into_iter()
                    .collect();
            }
            return self.tails.iter().map(|&token| (token, row.get(token))).collect();
        }
        let eos = self.tails.iter().filter(|&&token| self.is_eos(token));
        if self.subsets.is_sentence(state) {
            eos.map(|&token| (token, row.get(token))).collect()
        } else {
            Vec::new()
        }
    }

    /// The assignment that puts these tokens into the holes, with its weight.
    pub fn assignment(&self, of_holes: &[TokenId]) -> Assignment {
        let mut of_holes = of_holes.iter().copied();
        let (mut log_prob, mut widened, mut has_ended) = (0.0, false, false);
        let mut tokens = Vec::with_capacity(self.canvas.slots().len());
        for (slot, content) in self.canvas.slots().iter().enumerate() {
            let token = match content {
                Slot::Fixed(token) => *token,
                Slot::Hole | Slot::Gap => of_holes.next().unwrap_or(TokenId(0)),
            };
            if *content == Slot::Hole && !(has_ended && self.tail == Tail::Free) {
                let row = &self.rows[self.row_of[slot]];
                log_prob += row.get(token);
                widened |= !row.lists(token);
            }
            has_ended |= self.is_eos(token);
            tokens.push(token);
        }
        Assignment { tokens, log_prob, widened }
    }

    /// For each slot the most that it and those after it can add: as long as the text goes on, and behind its
    /// end.
    fn potentials(&self) -> Vec<[Fixed; 2]> {
        let n_slots = self.canvas.slots().len();
        let mut most = vec![[0, 0]; n_slots + 1];
        for slot in (0..n_slots).rev() {
            let [text, tail] = most[slot + 1];
            most[slot] = match self.canvas.slots()[slot] {
                Slot::Fixed(token) if self.is_tail(token) => {
                    [if self.is_eos(token) { tail } else { IMPOSSIBLE }, tail]
                }
                Slot::Fixed(_) => [text, IMPOSSIBLE],
                Slot::Hole | Slot::Gap => {
                    let row = &self.rows[self.row_of[slot]];
                    let best =
                        |logs: &mut dyn Iterator<Item = f64>| fixed(logs.fold(f64::NEG_INFINITY, f64::max));
                    let listed = row.all().filter(|pair| !self.is_tail(pair.0)).map(|pair| pair.1);
                    let of_text = best(&mut listed.chain(row.floor));
                    let eos = best(&mut self.tails.iter().filter(|&&t| self.is_eos(t)).map(|&t| row.get(t)));
                    let of_tail = match self.tail {
                        Tail::Counted => best(&mut self.tails.iter().map(|&token| row.get(token))),
                        Tail::Free if self.tails.is_empty() => IMPOSSIBLE,
                        Tail::Free => 0,
                    };
                    [plus(of_text, text).max(plus(eos, tail)), plus(of_tail, tail)]
                }
            };
        }
        most
    }

    fn best(&mut self) -> Result<Option<Assignment>, StepError> {
        let potentials = self.potentials();
        let potential = |slot: usize, state: Subset| potentials[slot][usize::from(state == Subset::TAIL)];
        let n_slots = self.canvas.slots().len();
        let mut nodes: Vec<Node> = Vec::new();
        let mut entered: FxHashSet<(u32, Subset)> = FxHashSet::default();
        let mut heap: BinaryHeap<Entry> = BinaryHeap::new();
        let mut order = 0u32;
        let mut push =
            |heap: &mut BinaryHeap<Entry>, bound: Fixed, slot: u32, node: u32, rank: Option<u32>| {
                if bound > IMPOSSIBLE {
                    order = order.wrapping_add(1);
                    heap.push(Entry { bound, slot, order: Reverse(order), node, rank });
                }
            };
        let (slot, state) = self.first()?;
        if state == Subset::DEAD {
            return Ok(None);
        }
        nodes.push(Node { state, parent: u32::MAX, token: TokenId(0), sum: 0 });
        push(&mut heap, potential(slot, state), slot as u32, 0, None);
        let mut children: Vec<(TokenId, f64, Subset)> = Vec::new();
        while let Some(Entry { slot, node, rank, .. }) = heap.pop() {
            self.work.spend(STEPS_PER_ENTRY)?;
            let Node { state, sum, .. } = nodes[node as usize];
            let at = slot as usize;
            let mut rank = rank.unwrap_or(0) as usize;
            children.clear();
            if rank == 0 {
                // Both entering and the first token.
                if !entered.insert((slot, state)) {
                    continue;
                }
                if at == n_slots {
                    return Ok(Some(self.assignment(&path(&nodes, node))));
                }
                children.extend(
                    self.tail_tokens(at, state).into_iter().map(|(token, log)| (token, log, Subset::TAIL)),
                );
            }
            let row = self.row_of[at];
            if state != Subset::TAIL {
                let onward = potentials[at + 1][0];
                let next = loop {
                    match self.rows[row].ranked(rank) {
                        Some((token, log)) => {
                            if !self.is_tail(token) {
                                let to = self.step(state, token)?;
                                if to != Subset::DEAD {
                                    children.push((token, log, to));
                                }
                            }
                        }
                        None => {
                            if let Some(floor) = self.rows[row].floor {
                                for group in self.subsets.groups(state, self.work)?.iter() {
                                    self.work.spend(STEPS_PER_ENTRY)?;
                                    let fresh =
                                        group.tokens.iter().find(|token| !self.rows[row].lists(**token));
                                    children.extend(fresh.map(|&token| (token, floor, group.to)));
                                }
                            }
                            break None;
                        }
                    }
                    rank += 1;
                    self.work.spend(1)?;
                    // A floor may lie above some that are listed.
                    let (listed, floor) =
                        (self.rows[row].ranked(rank).map(|pair| pair.1), self.rows[row].floor);
                    let Some(log) = listed.into_iter().chain(floor).reduce(f64::max) else { break None };
                    let bound = plus(sum + fixed(log), onward);
                    // What would come next anyway is tried at once.
                    if !children.is_empty() || heap.peek().is_some_and(|top| top.bound > bound) {
                        break Some(bound);
                    }
                };
                if let Some(bound) = next {
                    push(&mut heap, bound, slot, node, Some(rank as u32));
                }
            }
            for &(token, log, to) in &children {
                let (slot, state) = self.settle(at + 1, to)?;
                let weight = fixed(log);
                if state == Subset::DEAD || weight <= IMPOSSIBLE || entered.contains(&(slot as u32, state)) {
                    continue;
                }
                let sum = sum + weight;
                let bound = plus(sum, potential(slot, state));
                let child = nodes.len() as u32;
                nodes.push(Node { state, parent: node, token, sum });
                push(&mut heap, bound, slot as u32, child, None);
            }
        }
        Ok(None)
    }

    /// By layers of states; `None` if there is no completion.
    fn sample(
        &mut self,
        random: &mut Random,
        count: usize,
        steps: u64,
    ) -> Result<Option<Vec<Assignment>>, StepError> {
        *self.work = Work::new(steps, OPTION);
        let (slot, state) = self.first()?;
        if state == Subset::DEAD {
            return Ok(None);
        }
        let mut layers: Vec<Layer> = vec![Layer::of(slot, state)];
        while layers.last().is_some_and(|layer| layer.slot < self.canvas.slots().len()) {
            let Some(layer) = layers.last_mut() else { break };
            let mut next = Layer { slot: usize::MAX, ..Layer::default() };
            for &state in &layer.states {
                let mut edges = Vec::new();
                for edge in self.edges(layer.slot, state)? {
                    let (slot, to) = self.settle(layer.slot + 1, edge.to)?;
                    if to != Subset::DEAD {
                        next.slot = slot;
                        edges.push((next.number(to), edge));
                    }
                }
                layer.edges.push(edges);
            }
            if next.states.is_empty() {
                return Ok(None);
            }
            layers.push(next);
        }
        // The weight of all completions from each state, from the end.
        let mut inside: Vec<Vec<f64>> = vec![vec![0.0; layers.last().map_or(0, |layer| layer.states.len())]];
        for layer in layers.iter().rev().skip(1) {
            let after = inside.last().map_or(&[][..], |last| last);
            let sum =
                |edges: &Vec<(usize, Edge)>| log_sum(edges.iter().map(|(to, edge)| edge.log + after[*to]));
            let sums = layer.edges.iter().map(sum).collect();
            inside.push(sums);
        }
        inside.reverse();
        if inside[0].first().is_none_or(|&all| all == f64::NEG_INFINITY) {
            return Ok(None);
        }
        let mut drawn = Vec::new();
        for _ in 0..count {
            let (mut at, mut tokens) = (0, Vec::with_capacity(layers.len()));
            for (layer, after) in layers.iter().zip(inside.iter().skip(1)) {
                self.work.spend(layer.edges[at].len())?;
                let picked = random
                    .choose_by_log_weights(layer.edges[at].iter().map(|(to, edge)| edge.log + after[*to]));
                let Some((to, edge)) = picked.map(|picked| &layer.edges[at][picked]) else { return Ok(None) };
                tokens.push(self.pick_token(layer.slot, edge, random)?);
                at = *to;
            }
            drawn.push(self.assignment(&tokens));
        }
        Ok(Some(drawn))
    }

    /// The ways to fill a hole, of which each leads to one state, in an order that depends on the question
    /// alone.
    fn edges(&mut self, slot: usize, state: Subset) -> Result<Vec<Edge>, StepError> {
        let mut edges = self.listed_edges(slot, state)?;
        edges.append(&mut self.unlisted_edges(slot, state)?);
        Ok(edges)
    }

    /// The same, of tokens with a weight of their own, EOS and PAD.
    pub fn listed_edges(&mut self, slot: usize, state: Subset) -> Result<Vec<Edge>, StepError> {
        let one = |(token, log): (TokenId, f64), to| Edge { to, log, what: What::Token(token) };
        let mut edges: Vec<Edge> =
            self.tail_tokens(slot, state).into_iter().map(|pair| one(pair, Subset::TAIL)).collect();
        edges.retain(|edge| edge.log > f64::NEG_INFINITY);
        if state == Subset::TAIL {
            return Ok(edges);
        }
        let row = self.row_of[slot];
        if self.rows[row].is_dense() {
            for (at, group) in self.subsets.groups(state, self.work)?.iter().enumerate() {
                self.work.spend(group.tokens.len())?;
                let log = log_sum(group.tokens.iter().map(|&token| self.rows[row].get(token)));
                edges.push(Edge { to: group.to, log, what: What::Weighed { state, group: at } });
            }
            edges.retain(|edge| edge.log > f64::NEG_INFINITY);
            return Ok(edges);
        }
        for rank in 0.. {
            let Some(pair) = self.rows[row].ranked(rank) else { break };
            if self.is_tail(pair.0) {
                continue;
            }
            let to = self.step(state, pair.0)?;
            if to != Subset::DEAD {
                edges.push(one(pair, to));
            }
        }
        Ok(edges)
    }

    /// The same, of tokens of the text that weigh the floor.
    pub fn unlisted_edges(&mut self, slot: usize, state: Subset) -> Result<Vec<Edge>, StepError> {
        let mut edges = Vec::new();
        let row = self.row_of[slot];
        if state == Subset::TAIL {
            return Ok(edges);
        }
        if let Some(floor) = self.rows[row].floor {
            for (at, group) in self.subsets.groups(state, self.work)?.iter().enumerate() {
                self.work.spend(1)?;
                let n_fresh = group.tokens.len() - self.rows[row].n_listed_in(&group.tokens);
                if n_fresh > 0 {
                    let what = What::Unlisted { state, group: at, n_fresh };
                    edges.push(Edge { to: group.to, log: floor + (n_fresh as f64).ln(), what });
                }
            }
        }
        Ok(edges)
    }

    /// One of an edge's tokens, as likely as it weighs.
    pub fn pick_token(
        &mut self,
        slot: usize,
        edge: &Edge,
        random: &mut Random,
    ) -> Result<TokenId, StepError> {
        let row = &self.rows[self.row_of[slot]];
        match edge.what {
            What::Token(token) => Ok(token),
            What::Weighed { state, group } => {
                let groups = self.subsets.groups(state, self.work)?;
                let tokens = &groups[group].tokens;
                self.work.spend(tokens.len())?;
                let picked = random.choose_by_log_weights(tokens.iter().map(|&token| row.get(token)));
                Ok(tokens[picked.unwrap_or(0)])
            }
            What::Unlisted { state, group, n_fresh } => {
                let groups = self.subsets.groups(state, self.work)?;
                let tokens = &groups[group].tokens;
                self.work.spend(tokens.len())?;
                let mut fresh = tokens.iter().filter(|token| !row.lists(**token));
                Ok(fresh.nth(random.below(n_fresh)).copied().unwrap_or(tokens[0]))
            }
        }
    }
}

const STEPS_PER_ENTRY: usize = 4;

fn path(nodes: &[Node], last: u32) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    let mut at = last;
    while let Some(node) = nodes.get(at as usize).filter(|node| node.parent != u32::MAX) {
        tokens.push(node.token);
        at = node.parent;
    }
    tokens.reverse();
    tokens
}

/// Some tokens that fill a hole and lead to one state.
pub(crate) struct Edge {
    pub to: Subset,
    /// Of all of them together.
    pub log: f64,
    pub what: What,
}

/// Which tokens.
pub(crate) enum What {
    Token(TokenId),
    /// All of a group, each with its own weight.
    Weighed {
        state: Subset,
        group: usize,
    },
    /// Those of a group that are not listed.
    Unlisted {
        state: Subset,
        group: usize,
        n_fresh: usize,
    },
}

/// The states before one hole, or at the end.
#[derive(Default)]
struct Layer {
    slot: usize,
    states: Vec<Subset>,
    numbers: FxHashMap<Subset, usize>,
    edges: Vec<Vec<(usize, Edge)>>,
}

impl Layer {
    fn of(slot: usize, state: Subset) -> Self {
        let mut layer = Self { slot, ..Self::default() };
        layer.number(state);
        layer
    }

    fn number(&mut self, state: Subset) -> usize {
        *self.numbers.entry(state).or_insert_with(|| {
            self.states.push(state);
            self.states.len() - 1
        })
    }
}
