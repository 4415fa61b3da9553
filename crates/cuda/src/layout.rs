//! What lies where on the device: the twins of the structures in `kernels/layout.cuh`, and how much memory a
//! block needs.

/// No terminal, no parent.
pub const NONE: u32 = u32::MAX;
/// Flags of a record.
pub const IS_SENTENCE: u32 = 1;
/// A state that nothing but ignored pieces leads to.
pub const IS_ROOT: u32 = 2;
/// Words of a record before its predictions.
pub const RECORD_HEADER: usize = 4;
/// Words of a span.
pub const SPAN_WORDS: usize = 4;
/// Words of a sequence before its pages.
pub const SLOT_HEADER: usize = 4;
/// Records and spans begin at multiples of so many words.
pub const ALIGNED: usize = 4;
/// Words of the result of a step.
pub const RESULT_WORDS: usize = 5;

/// The kernels, by their place in the shim's table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kernel {
    Step,
    AncestorUp,
    Fork,
    GiveBack,
    SearchClear,
    SearchRoots,
    SearchLevel,
    SearchDepth,
    MaskOr,
    MaskLogits,
}

impl Kernel {
    #[cfg(feature = "cuda")]
    pub const ALL: [Self; 10] = [
        Self::Step,
        Self::AncestorUp,
        Self::Fork,
        Self::GiveBack,
        Self::SearchClear,
        Self::SearchRoots,
        Self::SearchLevel,
        Self::SearchDepth,
        Self::MaskOr,
        Self::MaskLogits,
    ];

    /// The name in the module.
    pub fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::AncestorUp => "ancestor_up",
            Self::Fork => "fork_slots",
            Self::GiveBack => "give_back",
            Self::SearchClear => "search_clear",
            Self::SearchRoots => "search_roots",
            Self::SearchLevel => "search_level",
            Self::SearchDepth => "search_depth",
            Self::MaskOr => "mask_or",
            Self::MaskLogits => "mask_logits",
        }
    }
}

/// A structure of words that a kernel reads as it lies in memory.
pub trait Plain: Copy {}

/// Implements [`Plain`] for structures of `u32` and `u64` and checks that they have no gaps, which would be
/// bytes that nobody has written.
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name { $(pub $field: $type),* }
        impl Plain for $name {}
        const _: () = assert!(size_of::<$name>() == 0 $(+ size_of::<$type>())*);
    )*};
}

plain! {
    Pool {
        memory: u64, references: u64, free_pages: u64, n_free: u64, slots: u64,
        page_words: u32, max_pages: u32, max_states: u32, shared_words: u32,
        workspace: u64, workspace_words: u64, boards: u64, board_words: u64, teams: u64,
    }
    StepRequest { grammar: u64, slot: u32, first_edge: u32, n_edges: u32, result: u32 }
    StepParams { pool: Pool, requests: u64, edges: u64, results: u64 }
    UpRequest { grammar: u64, slot: u32, state: u32, terminal: u32, result: u32 }
    UpParams { pool: Pool, requests: u64, results: u64 }
    MoveRequest { slot: u32, from: u32, n_states: u32, pad: u32 }
    MoveParams { pool: Pool, requests: u64 }
    Config { grammar: u64, tree: u64, slot: u32, state: u32, mask: u32, result: u32 }
    SearchParams {
        pool: Pool, configs: u64, results: u64, level: u32, n_levels: u32, capacity: u32, max_accepted: u32,
        entries: u64, counters: u64, arena: u32, arena_words: u32, stacks: u32, stack_words: u32,
        max_depth: u32, mask_words: u32, mask_stride: u64, masks: u64,
        accepted: u64, n_accepted: u64, doubts: u64, status: u64, counts: u64,
    }
    MaskOrParams {
        masks: u64, mask_stride: u64, rows: u64, n_rows: u64, max_rows: u32, mask_words: u32, doubts: u64,
        status: u64,
    }
    LogitsParams {
        logits: u64, stride: u64, masks: u64, mask_stride: u64, n_columns: u32, n_tokens: u32, bytes: u32,
        minus_infinity: u32,
    }
}

/// Words of an entry of a queue.
pub const ENTRY_WORDS: usize = 8;

/// What blocks need to know of a grammar to lay out their memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    pub n_symbols: usize,
    pub symbol_words: usize,
    pub n_lefts: usize,
    pub terminal_words: usize,
}

impl Sizes {
    /// Words of shared memory of a block that has `n_own` words of the rows of a chart; `small_words` in the
    /// kernels.
    pub fn small_words(&self, n_own: usize) -> usize {
        const N_VARS: usize = 10;
        N_VARS + 2 * self.symbol_words + self.terminal_words + n_own
    }

    /// Words that are in shared memory if there is room; `middle_words` in the kernels.
    pub fn middle_words(&self) -> usize {
        const VALUES: usize = 33;
        3 * self.n_symbols + (4 + VALUES) * self.n_lefts
    }

    /// Words of so many words of rows, in shared memory if there is room for them too; `draft_words` in the
    /// kernels.
    pub fn draft_words(&self, n_words: usize) -> usize {
        (self.n_symbols | 1) * n_words
    }

    /// Words of the board of a team: rows, and behind them the seeds that each block finds; `board_words` in
    /// the kernels.
    pub fn board_words(&self, n_words: usize, team: usize) -> usize {
        self.draft_words(n_words) + team * self.symbol_words
    }

    /// Words of a record before its spans.
    pub fn spans_at(&self) -> usize {
        (RECORD_HEADER + self.symbol_words + self.terminal_words).next_multiple_of(ALIGNED)
    }

    /// The longest record without its rows.
    pub fn record_words(&self) -> usize {
        self.spans_at() + SPAN_WORDS * self.n_lefts
    }

    /// Words of the search before those of a chart; `search_words` in the kernels.
    pub fn search_words(max_depth: usize) -> usize {
        2 + 7 * (max_depth + 1) + max_depth + 2
    }
}
