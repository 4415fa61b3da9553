//! Masks: the search of trees of terminal sequences on the device, and what is done with the masks there.

use anygram_recognizer::StateId;
use rustc_hash::FxHashMap;

use crate::charts::{ChartError, Charts, Scratch, SequenceId};
use crate::device::{Buffer, Grid, half_words, words_of};
use crate::layout::{Config, ENTRY_WORDS, Kernel, LogitsParams, MaskOrParams, SearchParams, Sizes};
use crate::tree::Tree;

/// A tree on a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TreeId(pub(crate) usize);

/// A reading of a sequence: a state, and the tree of the lexeme in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The sequence.
    pub sequence: SequenceId,
    /// The parser's state before the lexeme.
    pub state: StateId,
    /// What tokens can do from the lexeme on.
    pub tree: TreeId,
}

/// Masks of a device, row by row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceMasks {
    /// Where the first begins.
    pub address: u64,
    /// 32-bit words from the beginning of one to that of the next.
    pub stride: usize,
    /// Words of a mask.
    pub n_words: usize,
    /// How many there are.
    pub n_rows: usize,
}

/// What a search did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SearchCounts {
    /// Nodes that the parser could follow.
    pub reached: usize,
    /// Of them, nodes in breadth.
    pub in_breadth: usize,
    /// The most nodes on a worker's stack.
    pub stack: usize,
}

/// The type of logits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogitType {
    /// 32 bits.
    F32,
    /// 16 bits, IEEE 754.
    F16,
    /// 16 bits, the upper half of 32.
    Bf16,
}

/// Logits in memory of the device, which are masked in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Logits {
    /// Where the first row begins.
    pub address: u64,
    /// Numbers from the beginning of one row to that of the next.
    pub stride: usize,
    /// Numbers of a row; those beyond the vocabulary are masked too.
    pub n_columns: usize,
    /// Their type.
    pub of: LogitType,
}

/// Dense token sets of one mask that are added at the end, in one pass; more are added one by one.
const MAX_ACCEPTED: usize = 64;

#[derive(Clone, Copy, Debug)]
struct LoadedTree {
    address: u64,
    depth: usize,
    n_words: usize,
    n_terminals: usize,
}

/// What searches use.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    trees: Vec<LoadedTree>,
    /// The trees that are there, so that each is there once.
    tree_ids: FxHashMap<Vec<u32>, TreeId>,
    entries: Scratch,
    counters: Scratch,
    masks: Scratch,
    accepted: Scratch,
    n_accepted: Scratch,
    status: Scratch,
    counts: Scratch,
}

impl Charts {
    /// Brings a tree to the device, where it stays as long as the pool; the same one is there once.
    pub fn add_tree(&mut self, tree: &Tree) -> Result<TreeId, ChartError> {
        let is_same = |known: &TreeId| {
            let loaded = &self.search.trees[known.0];
            (loaded.n_words, loaded.n_terminals) == (tree.n_words, tree.n_terminals)
        };
        if let Some(known) = self.search.tree_ids.get(&tree.words).copied().filter(is_same) {
            return Ok(known);
        }
        let buffer = self.device.allocate(tree.words.len())?;
        self.device.write(&buffer, 0, &tree.words)?;
        let Tree { depth, n_words, n_terminals, .. } = *tree;
        self.search.trees.push(LoadedTree { address: buffer.address, depth, n_words, n_terminals });
        let id = TreeId(self.search.trees.len() - 1);
        self.search.tree_ids.insert(tree.words.clone(), id);
        Ok(id)
    }

    /// The masks of some rows, each the union over its readings, with what the search did: in breadth for `levels` levels, then in depth.
    pub fn masks(&mut self, rows: &[Vec<Reading>], levels: usize) -> (Vec<Result<Vec<u32>, ChartError>>, SearchCounts) {
        let found = self.masks_on_device(rows, levels).and_then(|(masks, buffer)| {
            let mut words = vec![0; masks.stride * masks.n_rows];
            self.device.read(&buffer, 0, &mut words)?;
            let statuses = self.statuses(rows.len())?;
            Ok((masks, words, statuses, self.counts()?))
        });
        match found {
            Err(error) => (vec![Err(error); rows.len()], SearchCounts::default()),
            Ok((masks, words, statuses, counts)) => {
                let row = |at: usize| words[at * masks.stride..][..masks.n_words].to_vec();
                (statuses.into_iter().enumerate().map(|(at, status)| status.map(|()| row(at))).collect(), counts)
            }
        }
    }

    /// As [`Charts::masks`], and the masks stay on the device, until the next search. Whether they are right [`Charts::statuses`] tells.
    pub fn masks_on_device(
        &mut self,
        rows: &[Vec<Reading>],
        levels: usize,
    ) -> Result<(DeviceMasks, Buffer), ChartError> {
        let n_words = self.mask_words(rows)?;
        let buffer = self.search.masks.at_least(&mut *self.device, n_words * rows.len())?;
        let masks = DeviceMasks { address: buffer.address, stride: n_words, n_words, n_rows: rows.len() };
        self.search_into(rows, levels, masks)?;
        Ok((masks, buffer))
    }

    /// As [`Charts::masks_on_device`], into a buffer of the caller, for whose `n_rows` rows the readings are; its stream is that of
    /// [`Charts::set_stream`].
    ///
    /// # Safety
    /// `masks` has to describe memory of the device that can be written as long as work of this call is under way: `n_rows` rows of `n_words` words,
    /// each `stride` words after the one before.
    #[allow(unsafe_code, reason = "an address of the caller cannot be checked")]
    pub unsafe fn masks_into(
        &mut self,
        rows: &[Vec<Reading>],
        levels: usize,
        masks: DeviceMasks,
    ) -> Result<(), ChartError> {
        let needed = self.mask_words(rows)?;
        if masks.n_rows != rows.len() || masks.n_words < needed || masks.stride < masks.n_words {
            return Err(ChartError::Unknown { what: "place for mask", id: rows.len() });
        }
        self.search_into(rows, levels, DeviceMasks { n_words: needed, ..masks })
    }

    /// What became of each row of the last search.
    pub fn statuses(&mut self, n_rows: usize) -> Result<Vec<Result<(), ChartError>>, ChartError> {
        let status = self.search.status.at_least(&mut *self.device, n_rows)?;
        let mut words = vec![0; n_rows];
        self.device.read(&status, 0, &mut words)?;
        Ok(words.into_iter().map(|status| if status == 0 { Ok(()) } else { Err(self.error(status)) }).collect())
    }

    fn counts(&mut self) -> Result<SearchCounts, ChartError> {
        let counts = self.search.counts.at_least(&mut *self.device, 3)?;
        let mut words = [0; 3];
        self.device.read(&counts, 0, &mut words)?;
        let [reached, in_breadth, stack] = words.map(|word| word as usize);
        Ok(SearchCounts { reached, in_breadth, stack })
    }

    /// Words of a mask of these rows; all trees have to be over one vocabulary, and readings over things that are there.
    fn mask_words(&self, rows: &[Vec<Reading>]) -> Result<usize, ChartError> {
        let mut n_words = None;
        for reading in rows.iter().flatten() {
            let unknown = |what, id| ChartError::Unknown { what, id };
            let tree = self.search.trees.get(reading.tree.0).ok_or(unknown("tree", reading.tree.0))?;
            if reading.state.index() >= self.n_states(reading.sequence)? {
                return Err(unknown("state", reading.state.index()));
            }
            if *n_words.get_or_insert(tree.n_words) != tree.n_words {
                return Err(unknown("vocabulary of its own in tree", reading.tree.0));
            }
            if tree.n_terminals != self.grammar_of(reading.sequence)?.n_terminals() {
                return Err(unknown("grammar of tree", reading.tree.0));
            }
        }
        Ok(n_words.unwrap_or(1))
    }

    /// Launches a search whose readings were checked.
    fn search_into(&mut self, rows: &[Vec<Reading>], levels: usize, masks: DeviceMasks) -> Result<(), ChartError> {
        if rows.is_empty() {
            return Ok(());
        }
        let (mut configs, mut charts, mut max_depth) = (Vec::new(), Vec::new(), 0);
        for (mask, reading) in (0..).zip(rows).flat_map(|(mask, row)| row.iter().map(move |reading| (mask, reading))) {
            let (grammar, tree) = (self.grammar_of(reading.sequence)?, self.search.trees[reading.tree.0]);
            charts.push((grammar.sizes, self.n_states(reading.sequence)? + tree.depth));
            max_depth = max_depth.max(tree.depth);
            configs.push(Config {
                grammar: grammar.address,
                tree: tree.address,
                slot: reading.sequence.0,
                state: reading.state.0,
                mask,
                pad: 0,
            });
        }
        let options = self.options;
        let (n_levels, workers) = (levels + 1, options.workers.max(1));
        let plan = self.plan(charts.into_iter(), Sizes::search_words(max_depth))?;
        let pool = self.pool(plan, workers)?;
        let device = &mut *self.device;
        let words = half_words(&configs);
        let config_buffer = self.requests.at_least(device, words.len())?;
        device.write(&config_buffer, 0, &words)?;
        let arena = options.pages * options.page_words;
        let memory = &mut self.search;
        let mut params = SearchParams {
            pool,
            configs: config_buffer.address,
            n_configs: configs.len() as u32,
            level: 0,
            n_levels: n_levels as u32,
            capacity: options.queue as u32,
            entries: memory.entries.at_least(device, n_levels * options.queue * ENTRY_WORDS)?.address,
            counters: memory.counters.at_least(device, n_levels + 2)?.address,
            arena: arena as u32,
            arena_words: options.arena_words as u32,
            stacks: (arena + options.arena_words) as u32,
            stack_words: options.stack_words as u32,
            max_depth: max_depth as u32,
            mask_words: masks.n_words as u32,
            mask_stride: masks.stride as u64,
            masks: masks.address,
            accepted: memory.accepted.at_least(device, rows.len() * MAX_ACCEPTED * 2)?.address,
            n_accepted: memory.n_accepted.at_least(device, rows.len())?.address,
            max_accepted: MAX_ACCEPTED as u32,
            pad: 0,
            status: memory.status.at_least(device, rows.len())?.address,
            counts: memory.counts.at_least(device, 3)?.address,
        };
        let grid = |blocks: usize| Grid { blocks: (blocks as u32, 1), threads: options.threads, shared_words: plan.0 };
        device.launch(Kernel::SearchClear, grid(rows.len()), &words_of(&params))?;
        if configs.is_empty() {
            return Ok(());
        }
        device.launch(Kernel::SearchRoots, grid(configs.len()), &words_of(&params))?;
        for level in 0..levels {
            params.level = level as u32;
            device.launch(Kernel::SearchLevel, grid(workers), &words_of(&params))?;
        }
        params.level = levels as u32;
        device.launch(Kernel::SearchDepth, grid(workers), &words_of(&params))?;
        let or = MaskOrParams {
            masks: masks.address,
            mask_stride: masks.stride as u64,
            rows: params.accepted,
            n_rows: params.n_accepted,
            max_rows: MAX_ACCEPTED as u32,
            mask_words: masks.n_words as u32,
        };
        let blocks = (masks.n_words as u32).div_ceil(options.threads);
        let grid = Grid { blocks: (blocks, rows.len() as u32), threads: options.threads, shared_words: 0 };
        Ok(device.launch(Kernel::MaskOr, grid, &words_of(&or))?)
    }

    /// Masks logits in place: row `i` by mask `i`; whatever has no bit becomes minus infinity.
    ///
    /// # Safety
    /// `masks` and `logits` have to describe memory of the device: `masks.n_rows` rows each, masks of at least `n_tokens` bits, logits of `n_columns`
    /// numbers that can be written as long as work of this call is under way.
    #[allow(unsafe_code, reason = "an address of the caller cannot be checked")]
    pub unsafe fn mask_logits(
        &mut self,
        masks: DeviceMasks,
        n_tokens: usize,
        logits: Logits,
    ) -> Result<(), ChartError> {
        let (bytes, minus_infinity) = match logits.of {
            LogitType::F32 => (4, f32::NEG_INFINITY.to_bits()),
            LogitType::F16 => (2, 0xfc00),
            LogitType::Bf16 => (2, 0xff80),
        };
        if masks.n_rows == 0 || logits.n_columns == 0 {
            return Ok(());
        }
        let params = LogitsParams {
            logits: logits.address,
            stride: logits.stride as u64,
            masks: masks.address,
            mask_stride: masks.stride as u64,
            n_columns: logits.n_columns as u32,
            n_tokens: n_tokens as u32,
            bytes,
            minus_infinity,
        };
        let blocks = (logits.n_columns as u32).div_ceil(self.options.threads).min(64);
        let grid = Grid { blocks: (blocks, masks.n_rows as u32), threads: self.options.threads, shared_words: 0 };
        Ok(self.device.launch(Kernel::MaskLogits, grid, &words_of(&params))?)
    }
}
