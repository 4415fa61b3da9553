//! Steps: sequences that grow by a state each, and ANCESTOR↑. What blocks need is planned here.

use anygram_recognizer::{Edge, StateId};
use rustc_hash::FxHashSet;

use crate::charts::{Charts, Place, Scratch, SequenceId};
use crate::device::{DeviceError, Grid, Read, half_words, words_of};
use crate::graphs::Launch;
use crate::layout::{Kernel, NONE, Pool, RESULT_WORDS, Sizes, StepParams, StepRequest, UpParams, UpRequest};
use crate::options::{ChartError, PoolOptions};
use crate::recognizer::LONG;

/// What steps use.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    workspace: Scratch,
    boards: Scratch,
    teams: Scratch,
    inputs: Scratch,
    results: Scratch,
    n_team_launches: usize,
}

/// The edges by which some sequences grow.
pub(crate) type Requests<'a> = [(SequenceId, &'a [Edge])];

/// Steps that are made at the same time: a request a sequence, or none.
pub(crate) type Round<'a> = Vec<Option<(SequenceId, &'a [Edge])>>;

/// The rows for which a chart of so many is planned: rounded up, so that what a step is launched with is the
/// same for many steps. Short charts are rounded less: a draft of 256 rows would leave room for one block on
/// a multiprocessor where one of 128 leaves room for two.
fn planned(n_rows: usize) -> usize {
    n_rows.next_multiple_of(if n_rows <= 256 { 64 } else { 256 })
}

/// Memory of a block: words of shared memory, and of the workspace where that does not do.
pub(crate) type Plan = (usize, usize);

/// Requests on their way to the device: a batch for each launch, and all their edges.
pub(crate) struct Batch {
    pub(crate) requests: Vec<StepRequest>,
    /// Blocks of a team.
    team: usize,
    plan: Plan,
    board_words: usize,
}

impl Charts {
    /// Extends sequences, each by the edges that lead to a new state; `None` if nothing viable leads there.
    /// No sequence may be named twice. One launch, or two if some are for several blocks.
    pub fn extend(&mut self, requests: &Requests<'_>) -> Vec<Result<Option<StateId>, ChartError>> {
        let mut results: Vec<Option<Result<Option<StateId>, ChartError>>> = requests
            .iter()
            .map(|&(id, edges)| self.check(id, edges, 0).map_or_else(|e| Some(Err(e)), carried(edges)))
            .collect();
        for at in repeated(requests.iter().map(|request| request.0)) {
            results[at] = Some(Err(ChartError::Unknown { what: "second turn in a batch, number", id: at }));
        }
        let good: Vec<(SequenceId, &[Edge])> = requests
            .iter()
            .zip(&results)
            .filter(|(_, result)| result.is_none())
            .map(|(&request, _)| request)
            .collect();
        let mut answers = self.step(&good).into_iter();
        let answer = |result: Option<_>| result.or_else(|| answers.next()).unwrap_or(Ok(None));
        results.into_iter().map(answer).collect()
    }

    /// Whether edges can be read: from states that are there, or from one of `more` that may be made before.
    pub(crate) fn check(&self, id: SequenceId, edges: &[Edge], more: usize) -> Result<(), ChartError> {
        let n_states = self.sequence(id)?.edges.len() + more;
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

    /// The memory of blocks for charts of so many rows behind `taken` words, each chart shared by `team`
    /// blocks.
    pub(crate) fn plan(
        &self,
        charts: impl Iterator<Item = (Sizes, usize)>,
        taken: usize,
        team: usize,
    ) -> Result<Plan, ChartError> {
        let given = self.device.max_shared_words();
        let (mut shared, mut workspace) = (taken, 0);
        for (sizes, n_rows) in charts {
            let n_own = planned(n_rows).div_ceil(32).div_ceil(team);
            let (small, middle) = (taken + sizes.small_words(n_own), sizes.middle_words());
            let draft = sizes.draft_words(n_own);
            if small > given {
                return Err(ChartError::TooLarge { needed: small, given });
            }
            let (inside, outside) = match () {
                () if small + middle + draft <= given => (small + middle + draft, 0),
                () if small + middle <= given => (small + middle, draft),
                () => (small, middle + draft),
            };
            (shared, workspace) = (shared.max(inside), workspace.max(outside));
        }
        Ok((shared, workspace))
    }

    /// The pool as kernels see it.
    pub(crate) fn pool(
        &mut self,
        (shared_words, workspace_words): Plan,
        blocks: usize,
    ) -> Result<Pool, DeviceError> {
        let workspace = self.steps.workspace.at_least(&mut *self.device, workspace_words * blocks)?;
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
            ..Pool::default()
        })
    }

    /// Runs `step` for sequences that were checked.
    pub(crate) fn step(&mut self, requests: &Requests<'_>) -> Vec<Result<Option<StateId>, ChartError>> {
        if requests.is_empty() {
            return Vec::new();
        }
        match self.launch_step(requests) {
            Ok(results) => {
                let answers = requests.iter().zip(results.chunks_exact(RESULT_WORDS));
                answers.map(|(&(id, edges), result)| self.note(id, edges, result)).collect()
            }
            Err(error) => vec![Err(error); requests.len()],
        }
    }

    fn launch_step(&mut self, requests: &Requests<'_>) -> Result<Vec<u32>, ChartError> {
        let rounds = [requests.iter().copied().map(Some).collect::<Vec<_>>()];
        let (launches, _) = self.step_launches(&rounds, &[], 0)?;
        self.run(&launches, &rounds)?;
        self.results(requests.len(), 0)
    }

    /// Runs launches, among them the steps of these rounds. If the device refuses one of them, others before
    /// it may have run: what sequences grew by is taken back, so that they are as the host knows them.
    pub(crate) fn run(&mut self, launches: &[Launch], rounds: &[Round<'_>]) -> Result<(), ChartError> {
        let Err(error) = self.device.run(launches) else { return Ok(()) };
        if matches!(error, DeviceError::Refused { .. }) && launches.len() > 1 {
            for id in rounds.first().into_iter().flatten().flatten().map(|&(id, _)| id).collect::<Vec<_>>() {
                self.take_back(id)?;
            }
        }
        Err(error.into())
    }

    /// The results of the last launch, of so many requests, and what follows them.
    pub(crate) fn results(&mut self, n: usize, n_more: usize) -> Result<Vec<u32>, ChartError> {
        self.results_and(n, n_more, &mut [])
    }

    /// The same, and so many words of the pool's masks.
    pub(crate) fn results_and(
        &mut self,
        n: usize,
        n_more: usize,
        masks: &mut [u32],
    ) -> Result<Vec<u32>, ChartError> {
        let n_words = RESULT_WORDS * n + n_more;
        let buffer = self.steps.results.at_least(&mut *self.device, n_words)?;
        let masks_of = self.search.mask_buffer(&mut *self.device)?;
        let mut results = vec![0; n_words];
        let results_part = Read { buffer, at: 0, words: &mut results };
        self.device.read_all(&mut [results_part, Read { buffer: masks_of, at: 0, words: masks }])?;
        Ok(results)
    }

    /// Brings requests, and other words with them, to the device. The launches that work on them, where those
    /// other words are, and where results come to: request `i` of round `r` has the result
    /// `r * rounds[0].len() + i`; `n_more` words follow behind the last. What changes from step to step is in
    /// memory of the device, so that launches are the same as long as sequences and words are as many and
    /// have much the same length.
    pub(crate) fn step_launches(
        &mut self,
        rounds: &[Round<'_>],
        others: &[u32],
        n_more: usize,
    ) -> Result<(Vec<Launch>, Places), ChartError> {
        let (mut edges, mut batches, mut n_results) = (Vec::new(), Vec::new(), 0);
        for (round, requests) in rounds.iter().enumerate() {
            for (chosen, team) in self.teams(requests) {
                batches.extend(self.batch(requests, &chosen, team, round, n_results, &mut edges)?);
            }
            n_results += requests.len();
        }
        // Places of fixed length first: edges are more or fewer from step to step.
        let requests: Vec<StepRequest> =
            batches.iter().flat_map(|batch| batch.requests.iter().copied()).collect();
        let mut inputs = half_words(&requests);
        let others_at = inputs.len();
        inputs.extend_from_slice(others);
        let edges_at = inputs.len();
        inputs.extend(edges);
        let device = &mut *self.device;
        let buffer = self.steps.inputs.at_least(device, inputs.len())?;
        device.write(&buffer, 0, &inputs)?;
        let results = self.steps.results.at_least(device, RESULT_WORDS * n_results + n_more)?.address;
        let place = |at: usize| buffer.address + 4 * at as u64;
        let (mut launches, mut at) = (Vec::new(), 0);
        for batch in &batches {
            launches.push(self.step_launch(batch, place(at), place(edges_at), results)?);
            at += half_words(&batch.requests).len();
        }
        let more = results + 4 * (RESULT_WORDS * n_results) as u64;
        Ok((launches, Places { others: place(others_at), results, more }))
    }

    /// Which requests one block answers, and which several, and how many: sequences whose last tier had many
    /// rows, if there are so many blocks.
    fn teams(&self, requests: &Round<'_>) -> Vec<(Vec<usize>, usize)> {
        let is_dense = |at: &usize| requests[*at].is_some_and(|(id, _)| self.is_dense(id));
        let (dense, thin): (Vec<usize>, Vec<usize>) = (0..requests.len()).partition(is_dense);
        let rows = dense
            .iter()
            .flat_map(|&at| requests[at])
            .flat_map(|(id, _)| self.n_states(id))
            .max()
            .unwrap_or(0);
        let mut team = self.options.team_blocks.min(planned(rows).div_ceil(32));
        // All blocks of a launch have to run at the same time. Fewer blocks need more memory each, so that is
        // asked again.
        while team > 1 {
            let charts =
                dense.iter().flat_map(|&at| requests[at]).filter_map(|(id, _)| self.chart(id, 0).ok());
            let Ok((shared, _)) = self.plan(charts, 0, team) else { break };
            let resident = self.device.resident_blocks(Kernel::Step, self.options.threads, shared);
            let most = resident / dense.len().max(1);
            if most >= team {
                break;
            }
            team = most;
        }
        if team < 2 {
            return vec![((0..requests.len()).collect(), 1)];
        }
        [(thin, 1), (dense, team)].into_iter().filter(|(chosen, _)| !chosen.is_empty()).collect()
    }

    /// Whether the last tier of a sequence has so many rows that several blocks work on the next.
    pub fn is_dense(&self, id: SequenceId) -> bool {
        let known = self.sequence(id);
        known.is_ok_and(|known| known.row_words >= self.options.team_from && known.edges.len() > LONG)
    }

    /// Launches in which several blocks worked on each sequence.
    pub fn team_launches(&self) -> usize {
        self.steps.n_team_launches
    }

    fn chart(&self, id: SequenceId, more: usize) -> Result<(Sizes, usize), ChartError> {
        Ok((self.grammar_of(id)?.sizes, self.n_states(id)?.max(1) + more))
    }

    pub(crate) fn batch(
        &self,
        requests: &Round<'_>,
        chosen: &[usize],
        team: usize,
        round: usize,
        first_result: usize,
        edges: &mut Vec<u32>,
    ) -> Result<Option<Batch>, ChartError> {
        let (mut blocks, mut charts) = (Vec::new(), Vec::new());
        for &at in chosen {
            let result = (first_result + at) as u32;
            let Some((id, own)) = requests[at] else {
                blocks.push(StepRequest { slot: NONE, result, ..StepRequest::default() });
                continue;
            };
            charts.push(self.chart(id, round)?);
            let first_edge = edges.len() as u32 / 2;
            let (grammar, n_edges) = (self.grammar_of(id)?.address, own.len() as u32);
            blocks.push(StepRequest { grammar, slot: id.slot, first_edge, n_edges, result });
            edges.extend(
                own.iter().flat_map(|edge| [edge.from.0, edge.terminal.map_or(NONE, |terminal| terminal.0)]),
            );
        }
        let boards = charts.iter().map(|(sizes, rows)| sizes.board_words(planned(*rows).div_ceil(32), team));
        let board_words = if team > 1 { boards.max().unwrap_or(0) } else { 0 };
        let plan = self.plan(charts.into_iter(), 0, team)?;
        Ok((!blocks.is_empty()).then_some(Batch { requests: blocks, team, plan, board_words }))
    }

    pub(crate) fn step_launch(
        &mut self,
        batch: &Batch,
        requests: u64,
        edges: u64,
        results: u64,
    ) -> Result<Launch, ChartError> {
        let Batch { requests: blocks, team, plan, board_words } = batch;
        let mut pool = self.pool(*plan, blocks.len() * team)?;
        if *team > 1 {
            let device = &mut *self.device;
            pool.boards = self.steps.boards.at_least(device, board_words * blocks.len())?.address;
            pool.board_words = *board_words as u64;
            pool.teams = self.steps.teams.at_least(device, 2 * blocks.len())?.address;
            self.steps.n_team_launches += 1;
        }
        let grid = Grid {
            blocks: (*team as u32, blocks.len() as u32),
            threads: self.options.threads,
            shared_words: plan.0,
            is_cooperative: *team > 1,
        };
        let params = words_of(&StepParams { pool, requests, edges, results });
        Ok(Launch { kernel: Kernel::Step, grid, params })
    }

    /// What became of a step.
    pub(crate) fn note(
        &mut self,
        id: SequenceId,
        edges: &[Edge],
        result: &[u32],
    ) -> Result<Option<StateId>, ChartError> {
        let [status, state, row_words, address, words] = [0, 1, 2, 3, 4].map(|at| result[at]);
        match status {
            0 => {
                let sequence = self.sequence_mut(id)?;
                sequence.edges.push(edges.into());
                sequence.row_words = row_words as usize;
                sequence.last =
                    Place { state: state as usize, address: address as usize, words: words as usize };
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
            2 => ChartError::InDoubt,
            3 => ChartError::OutOfPages { pages },
            4 => ChartError::TooManyStates { limit: max_states },
            5 => ChartError::TooManyPages { limit: max_pages },
            7 => ChartError::SearchTooLarge { option: "queue" },
            8 => ChartError::SearchTooLarge { option: "arena_words" },
            9 => ChartError::SearchTooLarge { option: "stack_words" },
            _ => ChartError::TooLarge { needed: 0, given: self.device.max_shared_words() },
        }
    }

    /// Whether terminals may follow states, by ANCESTOR↑ (the paper's algorithm 3): bottom-up for one
    /// terminal, where the viable terminals of a state come from the top down for all at once. For a state,
    /// what was made after it may not lead to it; for one launch, not for use in a step.
    pub fn ancestor_up(
        &mut self,
        questions: &[(SequenceId, StateId, usize)],
    ) -> Result<Vec<bool>, ChartError> {
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
            blocks.push(UpRequest {
                grammar: grammar.address,
                slot: id.slot,
                state,
                terminal,
                result: at as u32,
            });
        }
        if blocks.is_empty() {
            return Ok(Vec::new());
        }
        let plan = self.plan(charts.into_iter(), 0, 1)?;
        let pool = self.pool(plan, blocks.len())?;
        let device = &mut *self.device;
        let words = half_words(&blocks);
        let requests = self.steps.inputs.at_least(device, words.len())?;
        let results = self.steps.results.at_least(device, blocks.len())?;
        device.write(&requests, 0, &words)?;
        let params = words_of(&UpParams { pool, requests: requests.address, results: results.address });
        let blocks_of = (blocks.len() as u32, 1);
        let grid = Grid {
            blocks: blocks_of,
            threads: self.options.threads,
            shared_words: plan.0,
            is_cooperative: false,
        };
        device.run(&[Launch { kernel: Kernel::AncestorUp, grid, params }])?;
        let mut found = vec![0; blocks.len()];
        device.read(&results, 0, &mut found)?;
        found
            .into_iter()
            .map(|found| if found > 1 { Err(self.error(found)) } else { Ok(found == 1) })
            .collect()
    }
}

/// Where on the device things are that came with the requests.
pub(crate) struct Places {
    pub(crate) others: u64,
    pub(crate) results: u64,
    pub(crate) more: u64,
}

/// The places of sequences that were named before.
pub(crate) fn repeated(sequences: impl Iterator<Item = SequenceId>) -> Vec<usize> {
    let mut named = FxHashSet::default();
    sequences.enumerate().filter(|&(_, id)| !named.insert(id)).map(|(at, _)| at).collect()
}

/// The answer where all edges carry one state over: that state.
fn carried<E>(edges: &[Edge]) -> impl FnOnce(()) -> Option<Result<Option<StateId>, E>> {
    let first = edges
        .first()
        .filter(|first| edges.iter().all(|edge| edge.terminal.is_none() && edge.from == first.from));
    let from = first.map(|edge| edge.from);
    move |()| from.map(|from| Ok(Some(from)))
}
