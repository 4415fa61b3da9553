//! Masks: the search of trees of terminal sequences on the device.

use anygram_recognizer::StateId;
use rustc_hash::FxHashMap;

use crate::charts::{Charts, Scratch, SequenceId};
use crate::device::{Buffer, Device, DeviceError, Grid, half_words, words_of};
use crate::graphs::Launch;
use crate::layout::{Config, ENTRY_WORDS, Kernel, MaskOrParams, NONE, SearchParams, Sizes};
use crate::options::{ChartError, PoolOptions};
use crate::step::Round;
use crate::tree::Tree;

/// A tree on a device. The id of one that was dropped is an error, also when its place has been given to
/// another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TreeId {
    slot: usize,
    generation: u64,
}

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

/// Dense token sets of one mask that are added at the end, in one pass; more are added one by one.
pub(crate) const MAX_ACCEPTED: usize = 64;

/// The counts of a search, behind the statuses of its rows.
pub(crate) const N_COUNTS: usize = 3;

/// Where a reading is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    /// At a state that is there.
    State(StateId),
    /// At the state that this step of the same turn makes, counted from 0; nowhere if it makes none.
    Made(usize),
}

/// A reading, perhaps of a state that is yet to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) sequence: SequenceId,
    pub(crate) at: At,
    pub(crate) tree: TreeId,
}

impl From<&Reading> for Asked {
    fn from(reading: &Reading) -> Self {
        Self { sequence: reading.sequence, at: At::State(reading.state), tree: reading.tree }
    }
}

#[derive(Clone, Copy, Debug)]
struct LoadedTree {
    buffer: Buffer,
    generation: u64,
    /// When it was last used.
    used: u64,
    depth: usize,
    n_words: usize,
    n_terminals: usize,
    has_doubts: bool,
}

/// What searches use.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    trees: Vec<Option<LoadedTree>>,
    /// The trees that are there, so that each is there once.
    tree_ids: FxHashMap<Vec<u32>, TreeId>,
    tree_words: usize,
    /// Counts uses of trees, and gives each that is added a number of its own.
    clock: u64,
    entries: Scratch,
    counters: Scratch,
    masks: Scratch,
    pub(crate) accepted: Scratch,
    pub(crate) n_accepted: Scratch,
    doubts: Scratch,
    /// What was wrong with rows of the last search, and the results of steps before its statuses.
    errors: Vec<Option<ChartError>>,
    n_results: usize,
}

impl Memory {
    fn tree(&self, id: TreeId) -> Result<&LoadedTree, ChartError> {
        let tree =
            self.trees.get(id.slot).and_then(Option::as_ref).filter(|tree| tree.generation == id.generation);
        tree.ok_or(ChartError::TreeDropped { tree: id.slot })
    }

    /// Where the pool's masks are.
    pub(crate) fn mask_buffer(&mut self, device: &mut dyn Device) -> Result<Buffer, DeviceError> {
        self.masks.at_least(device, 0)
    }
}

impl Charts {
    /// Brings a tree to the device; the same one is there once. Others that were not used for longer are
    /// dropped if there would be more than [`tree_words`](crate::PoolOptions::tree_words).
    pub fn add_tree(&mut self, tree: &Tree) -> Result<TreeId, ChartError> {
        self.search.clock += 1;
        let clock = self.search.clock;
        let known = self.search.tree_ids.get(&tree.words).copied();
        if let Some((known, loaded)) = known.and_then(|id| Some((id, self.search.trees[id.slot].as_mut()?)))
            && (loaded.n_words, loaded.n_terminals) == (tree.n_words, tree.n_terminals)
        {
            loaded.used = clock;
            return Ok(known);
        }
        let (needed, limit) = (tree.words.len(), self.options.tree_words);
        if needed > limit {
            return Err(ChartError::TreeTooLarge { needed, limit });
        }
        while self.search.tree_words + needed > limit {
            self.drop_oldest_tree()?;
        }
        let buffer = self.device.allocate(needed)?;
        self.device.write(&buffer, 0, &tree.words)?;
        let Tree { depth, n_words, n_terminals, has_doubts, .. } = *tree;
        let memory = &mut self.search;
        let slot = memory.trees.iter().position(Option::is_none).unwrap_or(memory.trees.len());
        memory.trees.resize(memory.trees.len().max(slot + 1), None);
        let generation = clock;
        let loaded = LoadedTree { buffer, generation, used: clock, depth, n_words, n_terminals, has_doubts };
        memory.trees[slot] = Some(loaded);
        memory.tree_words += needed;
        let id = TreeId { slot, generation: clock };
        memory.tree_ids.insert(tree.words.clone(), id);
        Ok(id)
    }

    fn drop_oldest_tree(&mut self) -> Result<(), ChartError> {
        let trees =
            self.search.trees.iter().enumerate().filter_map(|(slot, tree)| Some((slot, tree.as_ref()?.used)));
        let Some((slot, _)) = trees.min_by_key(|&(_, used)| used) else { return Ok(()) };
        if let Some(tree) = self.search.trees[slot].take() {
            self.search.tree_words -= tree.buffer.words();
            self.search.tree_ids.retain(|_, id| id.generation != tree.generation);
            self.device.free(tree.buffer)?;
        }
        Ok(())
    }

    /// Whether a tree is still there; if so it counts as used.
    pub fn has_tree(&mut self, id: TreeId) -> bool {
        self.search.clock += 1;
        let clock = self.search.clock;
        let tree = self.search.trees.get_mut(id.slot).and_then(Option::as_mut);
        tree.filter(|tree| tree.generation == id.generation).map(|tree| tree.used = clock).is_some()
    }

    /// Words of all trees that are there.
    pub fn tree_words(&self) -> usize {
        self.search.tree_words
    }

    /// The masks of some rows, each the union over its readings, with what the search did: in breadth for
    /// `levels` levels, then in depth.
    pub fn masks(
        &mut self,
        rows: &[Vec<Reading>],
        levels: usize,
    ) -> (Vec<Result<Vec<u32>, ChartError>>, SearchCounts) {
        let found = self.masks_on_device(rows, levels).and_then(|masks| {
            let mut words = vec![0; masks.stride * masks.n_rows];
            let results = self.results_and(self.search.n_results, rows.len() + N_COUNTS, &mut words)?;
            let (statuses, counts) = self.statuses_in(&results[results.len() - rows.len() - N_COUNTS..]);
            Ok((rows_of(&words, masks), statuses, counts))
        });
        match found {
            Err(error) => (vec![Err(error); rows.len()], SearchCounts::default()),
            Ok((words, statuses, counts)) => {
                (words.into_iter().zip(statuses).map(|(row, status)| status.map(|()| row)).collect(), counts)
            }
        }
    }

    /// As [`Charts::masks`], and the masks stay on the device, until the next search. Whether they are right
    /// [`Charts::statuses`] tells.
    pub fn masks_on_device(
        &mut self,
        rows: &[Vec<Reading>],
        levels: usize,
    ) -> Result<DeviceMasks, ChartError> {
        let rows = asked(rows);
        let masks = self.own_masks(&rows)?;
        self.search_into(&[], &rows, levels, masks)?;
        Ok(masks)
    }

    /// A place for masks in memory of the pool.
    pub(crate) fn own_masks(&mut self, rows: &[Vec<Asked>]) -> Result<DeviceMasks, ChartError> {
        let n_words = self.mask_words(rows);
        let buffer = self.search.masks.at_least(&mut *self.device, n_words * rows.len())?;
        Ok(DeviceMasks { address: buffer.address, stride: n_words, n_words, n_rows: rows.len() })
    }

    /// Masks that [`Charts::masks_on_device`] has left, on the host.
    pub fn read_masks(&mut self, masks: DeviceMasks) -> Result<Vec<Vec<u32>>, ChartError> {
        let buffer = self.search.masks.at_least(&mut *self.device, 0)?;
        let n_words = masks.stride * masks.n_rows;
        if masks.address != buffer.address || n_words > buffer.words {
            return Err(ChartError::Unknown { what: "mask at address", id: masks.address as usize });
        }
        let mut words = vec![0; n_words];
        self.device.read(&buffer, 0, &mut words)?;
        Ok(rows_of(&words, masks))
    }

    /// As [`Charts::masks_on_device`], into a buffer of the caller, for whose `n_rows` rows the readings are;
    /// its stream is that of [`Charts::set_stream`].
    ///
    /// # Safety
    /// `masks` has to describe memory of the device that can be written as long as work of this call is under
    /// way: `n_rows` rows of `n_words` words, each `stride` words after the one before.
    #[allow(unsafe_code, reason = "an address of the caller cannot be checked")]
    pub unsafe fn masks_into(
        &mut self,
        rows: &[Vec<Reading>],
        levels: usize,
        masks: DeviceMasks,
    ) -> Result<(), ChartError> {
        let rows = asked(rows);
        let masks = self.fitted(&rows, masks)?;
        self.search_into(&[], &rows, levels, masks)
    }

    /// A buffer of the caller, as far as masks of these rows need it.
    pub(crate) fn fitted(&self, rows: &[Vec<Asked>], masks: DeviceMasks) -> Result<DeviceMasks, ChartError> {
        let needed = self.mask_words(rows);
        if masks.n_rows != rows.len() || masks.n_words < needed || masks.stride < masks.n_words {
            return Err(ChartError::Unknown { what: "place for mask", id: rows.len() });
        }
        Ok(DeviceMasks { n_words: needed, ..masks })
    }

    /// What became of each row of the last search, and what it did.
    pub fn statuses(
        &mut self,
        n_rows: usize,
    ) -> Result<(Vec<Result<(), ChartError>>, SearchCounts), ChartError> {
        let n_results = self.search.n_results;
        let words = self.results(n_results, n_rows + N_COUNTS)?;
        Ok(self.statuses_in(&words[words.len() - n_rows - N_COUNTS..]))
    }

    /// What became of rows, from the words that the search has left about them.
    pub(crate) fn statuses_in(&self, words: &[u32]) -> (Vec<Result<(), ChartError>>, SearchCounts) {
        let (statuses, counts) = words.split_at(words.len() - N_COUNTS);
        let known = self.search.errors.iter().cloned().chain(std::iter::repeat(None));
        let statuses = statuses.iter().zip(known).map(|(&status, error)| match (error, status) {
            (Some(error), _) => Err(error),
            (None, 0) => Ok(()),
            (None, status) => Err(self.error(status)),
        });
        let [reached, in_breadth, stack] = [counts[0], counts[1], counts[2]].map(|word| word as usize);
        (statuses.collect(), SearchCounts { reached, in_breadth, stack })
    }

    /// Words of a mask of these rows: those of the first tree that is there.
    fn mask_words(&self, rows: &[Vec<Asked>]) -> usize {
        let trees = rows.iter().flatten().filter_map(|reading| self.search.tree(reading.tree).ok());
        trees.map(|tree| tree.n_words).next().unwrap_or(1)
    }

    /// Whether a row can be searched: its tree is there, over this vocabulary, and so is the state.
    fn check_reading(&self, reading: &Asked, n_words: usize, n_steps: usize) -> Result<(), ChartError> {
        let unknown = |what, id| Err(ChartError::Unknown { what, id });
        let tree = self.search.tree(reading.tree)?;
        let n_states = self.n_states(reading.sequence)?;
        match reading.at {
            At::State(state) if state.index() >= n_states => unknown("state", state.index()),
            At::Made(step) if step >= n_steps => unknown("step in its turn, number", step),
            _ if tree.n_words != n_words => unknown("vocabulary of its own in tree", reading.tree.slot),
            _ if tree.n_terminals != self.grammar_of(reading.sequence)?.n_terminals => {
                unknown("grammar of tree", reading.tree.slot)
            }
            _ => Ok(()),
        }
    }

    /// Launches steps, and a search of what they lead to. Rows that cannot be searched get an empty mask, and
    /// their errors are kept for [`Charts::statuses`].
    pub(crate) fn search_into(
        &mut self,
        rounds: &[Round<'_>],
        rows: &[Vec<Asked>],
        levels: usize,
        masks: DeviceMasks,
    ) -> Result<(), ChartError> {
        self.search.errors.clear();
        self.search.n_results = rounds.iter().map(Vec::len).sum();
        let (mut configs, mut charts, mut max_depth, mut has_doubts) = (Vec::new(), Vec::new(), 0, false);
        self.search.clock += 1;
        for (mask, row) in rows.iter().enumerate() {
            let n_steps = rounds.iter().filter(|round| round[mask].is_some()).count();
            let checked: Result<(), _> =
                row.iter().try_for_each(|reading| self.check_reading(reading, masks.n_words, n_steps));
            self.search.errors.push(checked.err());
            for reading in row.iter().filter(|_| self.search.errors[mask].is_none()) {
                let (grammar, tree) = (self.grammar_of(reading.sequence)?, *self.search.tree(reading.tree)?);
                charts.push((grammar.sizes, self.n_states(reading.sequence)? + rounds.len() + tree.depth));
                max_depth = max_depth.max(tree.depth);
                has_doubts |= tree.has_doubts;
                let (state, result) = match reading.at {
                    At::State(state) => (state.0, NONE),
                    At::Made(round) => (NONE, (round * rows.len() + mask) as u32),
                };
                let (grammar, slot) = (grammar.address, reading.sequence.slot);
                configs.push(Config {
                    grammar,
                    tree: tree.buffer.address,
                    slot,
                    state,
                    mask: mask as u32,
                    result,
                });
            }
        }
        let clock = self.search.clock;
        for reading in rows.iter().flatten() {
            if let Some(Some(tree)) = self.search.trees.get_mut(reading.tree.slot) {
                tree.used = clock;
            }
        }
        // Readings that are none fill up, so that launches stay the same where a reading is more or less.
        let n_configs = if configs.is_empty() { 0 } else { configs.len().next_power_of_two() };
        configs.resize(n_configs, Config { mask: NONE, ..Config::default() });
        let (mut launches, places) =
            self.step_launches(rounds, &half_words(&configs), rows.len() + N_COUNTS)?;
        if !rows.is_empty() {
            let max_depth = max_depth.next_power_of_two().max(8);
            let plan = self.plan(charts.into_iter(), Sizes::search_words(max_depth), 1)?;
            let params =
                self.search_params(plan, &places, (rows.len(), has_doubts), (levels, max_depth), masks)?;
            launches.extend(self.search_launches(params, n_configs, masks));
        }
        self.run(&launches, rounds)
    }

    fn search_params(
        &mut self,
        plan: crate::step::Plan,
        places: &crate::step::Places,
        (n_rows, has_doubts): (usize, bool),
        (levels, max_depth): (usize, usize),
        masks: DeviceMasks,
    ) -> Result<SearchParams, ChartError> {
        let options = self.options;
        let pool = self.pool(plan, self.workers(n_rows))?;
        let (device, memory, n_levels) = (&mut *self.device, &mut self.search, levels + 1);
        let arena = options.pages * options.page_words;
        Ok(SearchParams {
            pool,
            configs: places.others,
            results: places.results,
            level: 0,
            n_levels: n_levels as u32,
            capacity: options.queue as u32,
            max_accepted: MAX_ACCEPTED as u32,
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
            accepted: memory.accepted.at_least(device, n_rows * MAX_ACCEPTED * 2)?.address,
            n_accepted: memory.n_accepted.at_least(device, n_rows)?.address,
            doubts: match has_doubts {
                true => memory.doubts.at_least(device, n_rows * masks.n_words)?.address,
                false => 0,
            },
            status: places.more,
            counts: places.more + 4 * n_rows as u64,
        })
    }

    /// The blocks that search in depth for so many masks. Numbers of masks are rounded up, so that launches
    /// stay the same.
    fn workers(&self, n_rows: usize) -> usize {
        let PoolOptions { workers, max_workers, .. } = self.options;
        workers.max(1).saturating_mul(n_rows.next_power_of_two()).min(max_workers.max(1))
    }

    /// Empty masks; the roots, the levels, what is below them; the dense sets.
    fn search_launches(&self, mut params: SearchParams, n_configs: usize, masks: DeviceMasks) -> Vec<Launch> {
        let shared_words = params.pool.shared_words as usize;
        let launch = |kernel, blocks: (usize, usize), shared_words, params: Vec<u64>| {
            let threads = self.options.threads.min(self.device.max_threads(kernel));
            let blocks = (blocks.0 as u32, blocks.1 as u32);
            Launch { kernel, grid: Grid { blocks, threads, shared_words, is_cooperative: false }, params }
        };
        let mut launches = vec![launch(Kernel::SearchClear, (masks.n_rows, 1), 0, words_of(&params))];
        if n_configs == 0 {
            return launches;
        }
        let root_words = Sizes::search_words(params.max_depth as usize);
        launches.push(launch(Kernel::SearchRoots, (n_configs, 1), root_words, words_of(&params)));
        let workers = self.workers(masks.n_rows);
        // If they need a workspace, there is one for each worker.
        let in_breadth = match params.pool.workspace_words {
            0 => (self.options.in_breadth.max(1) * workers).max(n_configs),
            _ => workers,
        };
        for level in 0..params.n_levels {
            params.level = level;
            let is_last = level + 1 == params.n_levels;
            let (kernel, blocks) =
                if is_last { (Kernel::SearchDepth, workers) } else { (Kernel::SearchLevel, in_breadth) };
            launches.push(launch(kernel, (blocks, 1), shared_words, words_of(&params)));
        }
        let doubts = (params.doubts, params.status);
        launches.push(self.or_launch(masks, (params.accepted, params.n_accepted), doubts));
        launches
    }

    /// Adds the union of dense rows to masks, which are marked where something else is in doubt.
    pub(crate) fn or_launch(
        &self,
        masks: DeviceMasks,
        (rows, n_rows): (u64, u64),
        (doubts, status): (u64, u64),
    ) -> Launch {
        let params = words_of(&MaskOrParams {
            masks: masks.address,
            mask_stride: masks.stride as u64,
            rows,
            n_rows,
            max_rows: MAX_ACCEPTED as u32,
            mask_words: masks.n_words as u32,
            doubts,
            status,
        });
        let threads = self.options.threads;
        let blocks = ((masks.n_words as u32).div_ceil(threads), masks.n_rows as u32);
        Launch {
            kernel: Kernel::MaskOr,
            grid: Grid { blocks, threads, shared_words: 0, is_cooperative: false },
            params,
        }
    }
}

/// The rows of masks that lie one behind the other.
pub(crate) fn rows_of(words: &[u32], masks: DeviceMasks) -> Vec<Vec<u32>> {
    (0..masks.n_rows).map(|row| words[row * masks.stride..][..masks.n_words].to_vec()).collect()
}

/// Readings of states that are there.
fn asked(rows: &[Vec<Reading>]) -> Vec<Vec<Asked>> {
    rows.iter().map(|row| row.iter().map(Asked::from).collect()).collect()
}
