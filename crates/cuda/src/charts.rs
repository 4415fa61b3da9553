//! Charts of many sequences on a device: tiers in a pool of pages.
//!
//! A *sequence* is a lattice of states, as [`Recognizer`] has them: state 0 is the start, and [`Charts::extend`] adds one,
//! for many sequences of different grammars and lengths in one launch. Its states lie in *pages* of one size, of which the pool has a fixed number:
//!
//! - a state takes `4 + symbols / 32 + (terminals + 1) / 32 + 4 · spans` words and the words of its spans;
//! - a sequence that needs a page where there is none gets [`ChartError::OutOfPages`] and stays as it was; the others do not notice;
//! - [`Charts::fork`] shares all pages, and [`Charts::rollback`] gives back those that it leaves: both copy numbers of pages, never tiers.
//!
//! Of what was read the host keeps the edges, so that a sequence whose device is lost can be made again on the CPU ([`Charts::replay`]).

use anygram_bits::BitSet;
use anygram_grammar::normal::NormalId;
use anygram_recognizer::valiant::Tier;
use anygram_recognizer::{Edge, Recognizer, RecognizerError, StateId};
use rustc_hash::FxHashMap;

use crate::device::{Buffer, Device, DeviceError, Grid, half_words, words_of};
use crate::image::Image;
use crate::layout::{
    IS_ROOT, IS_SENTENCE, Kernel, MoveParams, MoveRequest, NONE, Pool, RECORD_HEADER, SLOT_HEADER, SPAN_WORDS, Sizes,
    StepParams, StepRequest, UpParams, UpRequest,
};
use crate::shim::{Shim, ShimOptions};

/// How much a pool holds. All counts are bounds: what goes beyond is an error of the sequence that asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolOptions {
    /// Pages of tiers.
    pub pages: usize,
    /// 32-bit words of a page. The longest record of a grammar and the longest row set must fit.
    pub page_words: usize,
    /// Sequences at a time.
    pub sequences: usize,
    /// Pages of one sequence.
    pub max_pages: usize,
    /// States of one sequence.
    pub max_states: usize,
    /// Threads of a block: a multiple of 32, at most 1,024.
    pub threads: u32,
    /// Blocks that search trees in depth.
    pub workers: usize,
    /// Words of each worker's stack of tiers.
    pub stack_words: usize,
    /// Words for the tiers of nodes that are searched in breadth.
    pub arena_words: usize,
    /// Nodes of one level that wait to be searched, of all sequences of a batch.
    pub queue: usize,
}

impl Default for PoolOptions {
    /// 64 MiB of pages for up to 256 sequences of up to 4,096 states, and 32 workers.
    fn default() -> Self {
        Self {
            pages: 4_096,
            page_words: 4_096,
            sequences: 256,
            max_pages: 2_048,
            max_states: 4_096,
            threads: 256,
            workers: 32,
            stack_words: 64 << 10,
            arena_words: 4 << 20,
            queue: 64 << 10,
        }
    }
}

/// What could not be done; the sequence is as it was, except where its device is lost.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChartError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The grammar has too many symbols for tables of pairs.
    #[error("the normal form has {needed} symbols, the kernels take {limit}; use an engine of the CPU")]
    TooManySymbols {
        /// The symbols.
        needed: usize,
        /// The most there may be.
        limit: usize,
    },
    /// A block cannot have so many threads.
    #[error("a block has {given} threads; set `threads` to a multiple of 32, at most 1,024")]
    Threads {
        /// The number that was given.
        given: u32,
    },
    /// A record would not fit into a page.
    #[error("a state may take {needed} words, a page has {given}; make the pages of the pool larger")]
    PageTooSmall {
        /// Words of the longest record, or of the longest row set.
        needed: usize,
        /// Words of a page.
        given: usize,
    },
    /// No page is free.
    #[error("all {pages} pages of the pool are in use; release sequences, or make the pool larger")]
    OutOfPages {
        /// The pages of the pool.
        pages: usize,
    },
    /// The sequence is too long for its list of states.
    #[error("a sequence of the pool has at most {limit} states; raise `max_states`")]
    TooManyStates {
        /// The limit in force.
        limit: usize,
    },
    /// The sequence is too long for its list of pages.
    #[error("a sequence of the pool has at most {limit} pages; raise `max_pages`")]
    TooManyPages {
        /// The limit in force.
        limit: usize,
    },
    /// All sequences are in use.
    #[error("all {limit} sequences of the pool are in use; release some, or raise `sequences`")]
    TooManySequences {
        /// The limit in force.
        limit: usize,
    },
    /// The sequence was released, or is of another pool; or a state or terminal is none of it.
    #[error("the sequence has no {what} {id}")]
    Unknown {
        /// What was asked about.
        what: &'static str,
        /// Its number.
        id: usize,
    },
    /// A block has too little shared memory.
    #[error("a block needs {needed} words of shared memory, the device has {given}; use an engine of the CPU")]
    TooLarge {
        /// Words needed.
        needed: usize,
        /// Words there are.
        given: usize,
    },
    /// A search of terminal sequences needs more memory than it was given.
    #[error("a mask needs more than the search has: raise `{option}` of the pool")]
    SearchTooLarge {
        /// What bounds it.
        option: &'static str,
    },
    /// There is no tree of terminal sequences for this.
    #[error("masks on the device need {needed}; use an engine of the CPU")]
    NoTree {
        /// What is lacking.
        needed: &'static str,
    },
}

impl From<ChartError> for RecognizerError {
    fn from(error: ChartError) -> Self {
        Self::Device {
            reason: match error {
                ChartError::Device(_) => "it was lost",
                ChartError::OutOfPages { .. } => "its pool has no page left",
                ChartError::TooManyStates { .. } | ChartError::TooManyPages { .. } => "the sequence is too long for it",
                _ => "the grammar is too large for it",
            },
        }
    }
}

/// A grammar on a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GrammarId(pub(crate) usize);

/// A sequence of a pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SequenceId(pub(crate) u32);

/// A grammar's place, and what the host needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) address: u64,
    pub(crate) sizes: Sizes,
    n_terminals: usize,
    lefts: Vec<u32>,
}

impl Loaded {
    pub(crate) fn n_terminals(&self) -> usize {
        self.n_terminals
    }
}

/// What the host knows of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) grammar: GrammarId,
    /// Of each state but the first the edges that lead to it; state 0 has none.
    edges: Vec<Box<[Edge]>>,
}

/// A buffer that grows.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Option<Buffer>);

impl Scratch {
    /// A buffer of at least so many words; what it held is lost when it grows.
    pub(crate) fn at_least(&mut self, device: &mut dyn Device, words: usize) -> Result<Buffer, DeviceError> {
        match self.0 {
            Some(buffer) if buffer.words >= words => Ok(buffer),
            _ => Ok(*self.0.insert(device.allocate(words.next_power_of_two().max(64))?)),
        }
    }
}

/// Charts on a device; see the module.
pub struct Charts {
    pub(crate) device: Box<dyn Device>,
    pub(crate) options: PoolOptions,
    pub(crate) memory: Buffer,
    references: Buffer,
    free_pages: Buffer,
    n_free: Buffer,
    slots: Buffer,
    workspace: Scratch,
    pub(crate) requests: Scratch,
    edges: Scratch,
    results: Scratch,
    pub(crate) grammars: Vec<Loaded>,
    /// The images that are there, so that each is there once.
    grammar_ids: FxHashMap<Vec<u32>, GrammarId>,
    pub(crate) sequences: Vec<Option<Sequence>>,
    pub(crate) search: crate::search::Memory,
}

impl std::fmt::Debug for Charts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Charts")
            .field("device", &self.device.name())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Charts {
    /// A pool on the CPU, by the shim.
    pub fn on_shim(shim: ShimOptions, options: PoolOptions) -> Result<Self, ChartError> {
        Self::on(Box::new(Shim::new(shim)?), options)
    }

    /// A pool on a CUDA device, by its number.
    pub fn on_cuda(ordinal: usize, options: PoolOptions) -> Result<Self, ChartError> {
        #[cfg(feature = "cuda")]
        return Self::on(Box::new(crate::driver::Cuda::new(ordinal)?), options);
        #[cfg(not(feature = "cuda"))]
        {
            let _ = (ordinal, options);
            Err(DeviceError::NotBuilt.into())
        }
    }

    fn on(mut device: Box<dyn Device>, options: PoolOptions) -> Result<Self, ChartError> {
        if !(32..=1_024).contains(&options.threads) || !options.threads.is_multiple_of(32) {
            return Err(ChartError::Threads { given: options.threads });
        }
        let pages = options.pages.saturating_mul(options.page_words);
        let stacks = options.workers.saturating_mul(options.stack_words);
        let words = pages.saturating_add(options.arena_words).saturating_add(stacks);
        if words >= NONE as usize {
            // Addresses are words in 32 bits.
            return Err(DeviceError::OutOfMemory { words }.into());
        }
        let memory = device.allocate(words)?;
        let (references, free_pages) = (device.allocate(options.pages)?, device.allocate(options.pages)?);
        let n_free = device.allocate(1)?;
        let slots = device.allocate(options.sequences * (SLOT_HEADER + options.max_pages + options.max_states))?;
        device.write(&free_pages, 0, &(0..options.pages as u32).rev().collect::<Vec<_>>())?;
        device.write(&n_free, 0, &[options.pages as u32])?;
        Ok(Self {
            device,
            options,
            memory,
            references,
            free_pages,
            n_free,
            slots,
            workspace: Scratch::default(),
            requests: Scratch::default(),
            edges: Scratch::default(),
            results: Scratch::default(),
            grammars: Vec::new(),
            grammar_ids: FxHashMap::default(),
            sequences: vec![None; options.sequences],
            search: crate::search::Memory::default(),
        })
    }

    /// The name of the device.
    pub fn device_name(&self) -> String {
        self.device.name()
    }

    /// How much the pool holds.
    pub fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// Brings a grammar to the device, where it stays as long as the pool; the same one is there once.
    pub fn add_grammar(&mut self, image: &Image) -> Result<GrammarId, ChartError> {
        if let Some(&known) = self.grammar_ids.get(&image.words) {
            return Ok(known);
        }
        let needed = image.sizes.record_words().max(self.options.max_states.div_ceil(32));
        if needed > self.options.page_words {
            return Err(ChartError::PageTooSmall { needed, given: self.options.page_words });
        }
        let buffer = self.device.allocate(image.words.len())?;
        self.device.write(&buffer, 0, &image.words)?;
        let (address, sizes) = (buffer.address, image.sizes);
        self.grammars.push(Loaded { address, sizes, n_terminals: image.n_terminals, lefts: image.lefts.clone() });
        let id = GrammarId(self.grammars.len() - 1);
        self.grammar_ids.insert(image.words.clone(), id);
        Ok(id)
    }

    /// New sequences, each at the start of its grammar.
    pub fn create(&mut self, grammars: &[GrammarId]) -> Vec<Result<SequenceId, ChartError>> {
        let mut created = Vec::new();
        for &grammar in grammars {
            let free = self.sequences.iter().position(Option::is_none);
            let limit = self.options.sequences;
            created.push(match free {
                _ if grammar.0 >= self.grammars.len() => Err(ChartError::Unknown { what: "grammar", id: grammar.0 }),
                None => Err(ChartError::TooManySequences { limit }),
                Some(slot) => {
                    self.sequences[slot] = Some(Sequence { grammar, edges: Vec::new() });
                    Ok(SequenceId(slot as u32))
                }
            });
        }
        let fresh: Vec<(SequenceId, &[Edge])> = created.iter().flatten().map(|&id| (id, &[][..])).collect();
        let mut results = self.step(&fresh).into_iter();
        for entry in &mut created {
            let Ok(id) = *entry else { continue };
            if let Some(Err(error)) = results.next() {
                // What pages it took are taken back with the next rollback of its slot, which `release` is.
                let _ = self.release(id);
                *entry = Err(error);
            }
        }
        created
    }

    /// The number of sequences that were made and not released.
    pub fn sequences_in_use(&self) -> usize {
        self.sequences.iter().flatten().count()
    }

    /// The number of states of a sequence.
    pub fn n_states(&self, sequence: SequenceId) -> Result<usize, ChartError> {
        Ok(self.sequence(sequence)?.edges.len())
    }

    pub(crate) fn sequence(&self, id: SequenceId) -> Result<&Sequence, ChartError> {
        let known = self.sequences.get(id.0 as usize).and_then(Option::as_ref);
        known.ok_or(ChartError::Unknown { what: "number", id: id.0 as usize })
    }

    pub(crate) fn grammar_of(&self, id: SequenceId) -> Result<&Loaded, ChartError> {
        Ok(&self.grammars[self.sequence(id)?.grammar.0])
    }

    /// Extends sequences, each by the edges that lead to a new state; `None` if nothing viable leads there. No sequence may be named twice. One launch.
    pub fn extend(&mut self, requests: &[(SequenceId, &[Edge])]) -> Vec<Result<Option<StateId>, ChartError>> {
        let mut results: Vec<Option<Result<Option<StateId>, ChartError>>> = requests
            .iter()
            .map(|&(id, edges)| self.check(id, edges).map_or_else(|e| Some(Err(e)), carried(edges)))
            .collect();
        for at in 1..requests.len() {
            if requests[..at].iter().any(|request| request.0 == requests[at].0) {
                results[at] = Some(Err(ChartError::Unknown { what: "second turn in a batch, number", id: at }));
            }
        }
        let good: Vec<(SequenceId, &[Edge])> =
            requests.iter().zip(&results).filter(|(_, result)| result.is_none()).map(|(&request, _)| request).collect();
        let mut answers = self.step(&good).into_iter();
        let answer = |result: Option<_>| result.or_else(|| answers.next()).unwrap_or(Ok(None));
        results.into_iter().map(answer).collect()
    }

    fn check(&self, id: SequenceId, edges: &[Edge]) -> Result<(), ChartError> {
        let n_states = self.sequence(id)?.edges.len();
        let n_terminals = self.grammar_of(id)?.n_terminals;
        for edge in edges {
            if edge.from.index() >= n_states {
                return Err(ChartError::Unknown { what: "state", id: edge.from.index() });
            }
            if let Some(terminal) = edge.terminal.filter(|terminal| terminal.index() >= n_terminals) {
                return Err(ChartError::Unknown { what: "terminal", id: terminal.index() });
            }
        }
        Ok(())
    }

    /// Words of shared memory for blocks with charts of so many rows behind `taken` words, and the workspace of a block where that does not do.
    pub(crate) fn plan(
        &self,
        charts: impl Iterator<Item = (Sizes, usize)>,
        taken: usize,
    ) -> Result<(usize, usize), ChartError> {
        let given = self.device.max_shared_words();
        let (mut shared, mut workspace) = (taken, 0);
        for (sizes, n_rows) in charts {
            let (small, draft) = (taken + sizes.small_words(n_rows), sizes.draft_words(n_rows));
            if small > given {
                return Err(ChartError::TooLarge { needed: small, given });
            }
            if small + draft <= given {
                shared = shared.max(small + draft);
            } else {
                (shared, workspace) = (shared.max(small), workspace.max(draft));
            }
        }
        Ok((shared, workspace))
    }

    /// The pool as kernels see it.
    pub(crate) fn pool(
        &mut self,
        (shared_words, workspace_words): (usize, usize),
        blocks: usize,
    ) -> Result<Pool, DeviceError> {
        let workspace = self.workspace.at_least(&mut *self.device, workspace_words * blocks)?;
        let PoolOptions { page_words, max_pages, max_states, .. } = self.options;
        Ok(Pool {
            memory: self.memory.address,
            references: self.references.address,
            free_pages: self.free_pages.address,
            n_free: self.n_free.address,
            slots: self.slots.address,
            page_words: page_words as u32,
            max_pages: max_pages as u32,
            max_states: max_states as u32,
            shared_words: shared_words as u32,
            workspace: workspace.address,
            workspace_words: workspace_words as u64,
        })
    }

    /// Runs `step` for sequences that were checked.
    fn step(&mut self, requests: &[(SequenceId, &[Edge])]) -> Vec<Result<Option<StateId>, ChartError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        match self.launch_step(requests) {
            Ok(results) => {
                let answers = requests.iter().zip(results.chunks_exact(2));
                answers.map(|(&(id, edges), result)| self.note(id, edges, result[0], result[1])).collect()
            }
            Err(error) => vec![Err(error); requests.len()],
        }
    }

    fn launch_step(&mut self, requests: &[(SequenceId, &[Edge])]) -> Result<Vec<u32>, ChartError> {
        let mut charts = Vec::new();
        let (mut edges, mut blocks) = (Vec::new(), Vec::new());
        for (at, &(id, own)) in requests.iter().enumerate() {
            let (grammar, n_states) = (self.grammar_of(id)?, self.n_states(id)?);
            charts.push((grammar.sizes, n_states.max(1)));
            let first_edge = edges.len() as u32 / 2;
            blocks.push(StepRequest {
                grammar: grammar.address,
                slot: id.0,
                first_edge,
                n_edges: own.len() as u32,
                result: at as u32,
            });
            edges.extend(own.iter().flat_map(|edge| [edge.from.0, edge.terminal.map_or(NONE, |terminal| terminal.0)]));
        }
        let plan = self.plan(charts.into_iter(), 0)?;
        let pool = self.pool(plan, blocks.len())?;
        let device = &mut *self.device;
        let words = half_words(&blocks);
        let request_buffer = self.requests.at_least(device, words.len())?;
        let edge_buffer = self.edges.at_least(device, edges.len())?;
        let result_buffer = self.results.at_least(device, 2 * blocks.len())?;
        device.write(&request_buffer, 0, &words)?;
        device.write(&edge_buffer, 0, &edges)?;
        let params = StepParams {
            pool,
            requests: request_buffer.address,
            edges: edge_buffer.address,
            results: result_buffer.address,
        };
        let grid = Grid { blocks: (blocks.len() as u32, 1), threads: self.options.threads, shared_words: plan.0 };
        device.launch(Kernel::Step, grid, &words_of(&params))?;
        let mut results = vec![0; 2 * blocks.len()];
        device.read(&result_buffer, 0, &mut results)?;
        Ok(results)
    }

    /// What became of a step.
    fn note(&mut self, id: SequenceId, edges: &[Edge], status: u32, state: u32) -> Result<Option<StateId>, ChartError> {
        match status {
            0 => {
                if let Some(sequence) = &mut self.sequences[id.0 as usize] {
                    sequence.edges.push(edges.into());
                }
                Ok(Some(StateId(state)))
            }
            1 => Ok(None),
            _ => Err(self.error(status)),
        }
    }

    /// A `Status` of the kernels as an error.
    pub(crate) fn error(&self, status: u32) -> ChartError {
        let PoolOptions { pages, max_pages, max_states, .. } = self.options;
        match status {
            2 => ChartError::OutOfPages { pages },
            3 => ChartError::TooManyStates { limit: max_states },
            4 => ChartError::TooManyPages { limit: max_pages },
            6 => ChartError::SearchTooLarge { option: "queue" },
            7 => ChartError::SearchTooLarge { option: "arena_words" },
            8 => ChartError::SearchTooLarge { option: "stack_words" },
            _ => ChartError::TooLarge { needed: 0, given: self.device.max_shared_words() },
        }
    }

    /// A sequence that is at the same point and goes on by itself. Its pages are those of the other.
    pub fn fork(&mut self, sequence: SequenceId) -> Result<SequenceId, ChartError> {
        let copy = self.sequence(sequence)?.clone();
        let limit = self.options.sequences;
        let free = self.sequences.iter().position(Option::is_none).ok_or(ChartError::TooManySequences { limit })?;
        self.move_slot(Kernel::Fork, MoveRequest { slot: free as u32, from: sequence.0, n_states: 0, pad: 0 })?;
        self.sequences[free] = Some(copy);
        Ok(SequenceId(free as u32))
    }

    /// Takes a sequence back to its first `n_states` states, at least one.
    pub fn rollback(&mut self, sequence: SequenceId, n_states: usize) -> Result<(), ChartError> {
        let present = self.sequence(sequence)?.edges.len();
        if n_states == 0 || n_states > present {
            return Err(ChartError::Unknown { what: "state", id: n_states });
        }
        let n = n_states as u32;
        self.move_slot(Kernel::GiveBack, MoveRequest { slot: sequence.0, from: NONE, n_states: n, pad: 0 })?;
        if let Some(sequence) = &mut self.sequences[sequence.0 as usize] {
            sequence.edges.truncate(n_states);
        }
        Ok(())
    }

    /// Gives a sequence back.
    pub fn release(&mut self, sequence: SequenceId) -> Result<(), ChartError> {
        self.sequence(sequence)?;
        self.sequences[sequence.0 as usize] = None;
        self.move_slot(Kernel::GiveBack, MoveRequest { slot: sequence.0, from: NONE, n_states: 0, pad: 0 })
    }

    fn move_slot(&mut self, kernel: Kernel, request: MoveRequest) -> Result<(), ChartError> {
        let pool = self.pool((0, 0), 1)?;
        let device = &mut *self.device;
        let words = half_words(&[request]);
        let requests = self.requests.at_least(device, words.len())?;
        device.write(&requests, 0, &words)?;
        let params = MoveParams { pool, requests: requests.address };
        let grid = Grid { blocks: (1, 1), threads: self.options.threads, shared_words: 0 };
        Ok(device.launch(kernel, grid, &words_of(&params))?)
    }

    /// Whether terminals may follow states, by ANCESTOR↑ (the paper's algorithm 3): bottom-up for one terminal, where the viable terminals of a state
    /// come from the top down for all at once. For a state, what was made after it may not lead to it; for one launch, not for use in a step.
    pub fn ancestor_up(&mut self, questions: &[(SequenceId, StateId, usize)]) -> Result<Vec<bool>, ChartError> {
        let (mut blocks, mut charts) = (Vec::new(), Vec::new());
        for (at, &(id, state, terminal)) in questions.iter().enumerate() {
            let (grammar, n_states) = (self.grammar_of(id)?, self.n_states(id)?);
            if state.index() >= n_states {
                return Err(ChartError::Unknown { what: "state", id: state.index() });
            }
            if terminal >= grammar.n_terminals {
                return Err(ChartError::Unknown { what: "terminal", id: terminal });
            }
            charts.push((grammar.sizes, state.index() + 1));
            let (state, terminal) = (state.0, terminal as u32);
            blocks.push(UpRequest { grammar: grammar.address, slot: id.0, state, terminal, result: at as u32 });
        }
        if blocks.is_empty() {
            return Ok(Vec::new());
        }
        let plan = self.plan(charts.into_iter(), 0)?;
        let pool = self.pool(plan, blocks.len())?;
        let device = &mut *self.device;
        let words = half_words(&blocks);
        let requests = self.requests.at_least(device, words.len())?;
        let results = self.results.at_least(device, blocks.len())?;
        device.write(&requests, 0, &words)?;
        let params = UpParams { pool, requests: requests.address, results: results.address };
        let grid = Grid { blocks: (blocks.len() as u32, 1), threads: self.options.threads, shared_words: plan.0 };
        device.launch(Kernel::AncestorUp, grid, &words_of(&params))?;
        let mut found = vec![0; blocks.len()];
        device.read(&results, 0, &mut found)?;
        found.into_iter().map(|found| if found > 1 { Err(self.error(found)) } else { Ok(found == 1) }).collect()
    }

    /// A state as the host knows it.
    pub fn tier(&mut self, sequence: SequenceId, state: StateId) -> Result<Tier, ChartError> {
        if state.index() >= self.n_states(sequence)? {
            return Err(ChartError::Unknown { what: "state", id: state.index() });
        }
        let Loaded { sizes, n_terminals, lefts, .. } = self.grammar_of(sequence)?.clone();
        let slot = sequence.0 as usize * (SLOT_HEADER + self.options.max_pages + self.options.max_states);
        let mut address = [0];
        self.device.read(&self.slots, slot + SLOT_HEADER + self.options.max_pages + state.index(), &mut address)?;
        let address = address[0] as usize;
        let fixed = RECORD_HEADER + sizes.symbol_words + sizes.terminal_words;
        let mut record = vec![0; fixed];
        self.device.read(&self.memory, address, &mut record)?;
        let mut spans = vec![0; record[1] as usize * SPAN_WORDS];
        self.device.read(&self.memory, address + fixed, &mut spans)?;
        let mut rows = Vec::new();
        for span in spans.chunks_exact(SPAN_WORDS) {
            let [left, first, length, at] = [span[0], span[1], span[2], span[3]].map(|n| n as usize);
            let mut words = vec![0; first + length];
            self.device.read(&self.memory, at, &mut words[first..])?;
            let wide = words.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(*pair.get(1).unwrap_or(&0)) << 32);
            rows.push((NormalId(lefts[left]), wide.collect()));
        }
        let (predicted, viable) = record[RECORD_HEADER..].split_at(sizes.symbol_words);
        Ok(Tier {
            rows,
            predicted: bit_set(predicted, sizes.n_symbols),
            viable: bit_set(viable, n_terminals),
            is_sentence: record[0] & IS_SENTENCE != 0,
            is_root: record[0] & IS_ROOT != 0,
        })
    }

    /// Waits until everything that was asked of the device is done.
    pub fn synchronize(&mut self) -> Result<(), ChartError> {
        Ok(self.device.synchronize()?)
    }

    /// The pages that no sequence holds.
    pub fn free_pages(&mut self) -> Result<usize, ChartError> {
        let mut free = [0];
        self.device.read(&self.n_free, 0, &mut free)?;
        Ok(free[0] as usize)
    }

    /// Makes a sequence again on an engine of the CPU, which has to be at its start: from the edges, so also when the device is lost. The engine's
    /// states have the same numbers.
    pub fn replay(&self, sequence: SequenceId, engine: &mut dyn Recognizer) -> Result<(), RecognizerError> {
        let known = self.sequence(sequence).map_err(RecognizerError::from)?;
        for edges in known.edges.iter().skip(1) {
            engine.extend(edges)?;
        }
        Ok(())
    }

    /// Work goes to a stream of the caller from here on, by its CUDA handle; 0 is the pool's own.
    ///
    /// # Safety
    /// It has to be a stream of the device's primary context, and to live until another one is set and the work on it is done.
    #[allow(unsafe_code, reason = "a handle of the caller cannot be checked")]
    pub unsafe fn set_stream(&mut self, stream: u64) -> Result<(), ChartError> {
        Ok(self.device.set_stream(stream)?)
    }
}

/// The answer where all edges carry one state over: that state.
fn carried<E>(edges: &[Edge]) -> impl FnOnce(()) -> Option<Result<Option<StateId>, E>> {
    let first =
        edges.first().filter(|first| edges.iter().all(|edge| edge.terminal.is_none() && edge.from == first.from));
    let from = first.map(|edge| edge.from);
    move |()| from.map(|from| Ok(Some(from)))
}

/// The first `len` bits of some words.
fn bit_set(words: &[u32], len: usize) -> BitSet {
    BitSet::from_members(len, (0..len).filter(|&at| words[at / 32] >> (at % 32) & 1 == 1))
}
