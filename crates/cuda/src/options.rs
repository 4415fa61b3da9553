//! How much a pool holds, and what goes wrong.

use anygram_recognizer::RecognizerError;

use crate::device::DeviceError;

/// How much a pool holds. All counts are bounds: what goes beyond is an error of the sequence that asks for
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolOptions {
    /// Pages of tiers.
    pub pages: usize,
    /// 32-bit words of a page, a multiple of 4. The longest record of a grammar and the longest row set must
    /// fit.
    pub page_words: usize,
    /// Sequences at a time.
    pub sequences: usize,
    /// Pages of one sequence.
    pub max_pages: usize,
    /// States of one sequence.
    pub max_states: usize,
    /// Threads of a block: a multiple of 32, at most 1,024. Searches take at most 512 of them.
    pub threads: u32,
    /// Blocks that search in depth for one mask.
    pub workers: usize,
    /// The most blocks that search in depth, for all masks of a batch; each has a stack of tiers.
    pub max_workers: usize,
    /// Blocks that search in breadth for each one that searches in depth: they need no stacks, and one that
    /// finds no node is done at once.
    pub in_breadth: usize,
    /// Words of each worker's stack of tiers, a multiple of 4.
    pub stack_words: usize,
    /// Words for the tiers of nodes that are searched in breadth, a multiple of 4.
    pub arena_words: usize,
    /// Nodes of one level that wait to be searched, of all sequences of a batch.
    pub queue: usize,
    /// Words of all trees of terminal sequences; beyond that those are dropped that were not used for the
    /// longest time.
    pub tree_words: usize,
    /// The most blocks that work on one sequence; 1 for one block always.
    pub team_blocks: usize,
    /// Several blocks work on a sequence whose last tier has at least so many words of rows.
    pub team_from: usize,
    /// Whether an output lets the device compute the states of dense charts while it reads tokens, and copies
    /// them; otherwise the CPU computes all states that the lexer asks about, and the device makes its own in
    /// the next turn.
    pub dense_on_device: bool,
    /// Load by the unit that copies blocks of memory (TMA). Only to see whether that helps; on a CUDA device
    /// it takes an `sm_90`.
    pub bulk_loads: bool,
}

impl Default for PoolOptions {
    /// 64 MiB of pages for up to 256 sequences of up to 4,096 states, 32 workers a mask and 264 in all, which
    /// is two for each multiprocessor of an H200, with 66 MiB of stacks, and 256 MiB of trees.
    fn default() -> Self {
        Self {
            pages: 4_096,
            page_words: 4_096,
            sequences: 256,
            max_pages: 2_048,
            max_states: 4_096,
            threads: 256,
            workers: 32,
            max_workers: 264,
            in_breadth: 8,
            stack_words: 64 << 10,
            arena_words: 4 << 20,
            queue: 64 << 10,
            tree_words: 64 << 20,
            team_blocks: 32,
            team_from: 1_024,
            dense_on_device: true,
            bulk_loads: false,
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
    /// Automata give some rules of the grammar.
    #[error("the kernels cannot read rules that an automaton gives; use the engine `earley`")]
    Automata,
    /// A block cannot have so many threads.
    #[error("a block has {given} threads; set `threads` to a multiple of 32, at most {most}")]
    Threads {
        /// The number that was given.
        given: u32,
        /// The most for which a step has registers.
        most: u32,
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
    /// The sequence was released; its place may belong to another by now.
    #[error("sequence {slot} was released, or is of another pool: make a new one")]
    Released {
        /// Its place in the pool.
        slot: usize,
    },
    /// A state or terminal is none of the sequence, or nothing of the pool.
    #[error("the sequence has no {what} {id}")]
    Unknown {
        /// What was asked about.
        what: &'static str,
        /// Its number.
        id: usize,
    },
    /// A block has too little shared memory.
    #[error(
        "a block needs {needed} words of shared memory, the device has {given}; use an engine of the CPU"
    )]
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
    /// The tree is larger than what all trees may be together.
    #[error(
        "a tree of terminal sequences takes {needed} words, all together may take {limit}: raise `tree_words`"
    )]
    TreeTooLarge {
        /// Words needed.
        needed: usize,
        /// The limit in force.
        limit: usize,
    },
    /// The tree made room for others that were used after it.
    #[error(
        "the tree {tree} was dropped for others that were used since: add it again, or raise `tree_words`"
    )]
    TreeDropped {
        /// Its place in the pool.
        tree: usize,
    },
    /// The mask has all tokens that are certain, and there are others of which the parser has to be asked
    /// whether what they begin can be spelled.
    #[error("the mask lacks tokens that lexing alone cannot decide; ask an engine of the CPU for it")]
    InDoubt,
}

impl From<ChartError> for RecognizerError {
    fn from(error: ChartError) -> Self {
        if matches!(error, ChartError::Automata) {
            return Self::Automata { engine: "cuda" };
        }
        Self::Device {
            reason: match error {
                ChartError::Device(DeviceError::Refused { .. }) => "it refuses the launch",
                ChartError::Device(_) => "it was lost",
                ChartError::OutOfPages { .. } => "its pool has no page left",
                ChartError::TooManyStates { .. } | ChartError::TooManyPages { .. } => {
                    "the sequence is too long for it"
                }
                _ => "the grammar is too large for it",
            },
        }
    }
}
