//! Charts of many sequences on a device: tiers in a pool of pages.
//!
//! A *sequence* is a lattice of states, as [`Recognizer`] has them: state 0 is the start, and
//! [`Charts::extend`] adds one, for many sequences of different grammars and lengths in one launch. Its
//! states lie in *pages* of one size, of which the pool has a fixed number:
//!
//! - a state takes `4 + symbols / 32 + (terminals + 1) / 32 + 4 · spans` words and the words of its spans;
//! - a sequence that needs a page where there is none gets [`ChartError::OutOfPages`] and stays as it was;
//!   the others do not notice;
//! - [`Charts::fork`] shares all pages, and [`Charts::rollback`] gives back those that it leaves: both copy
//!   numbers of pages, never tiers.
//!
//! Of what was read the host keeps the edges, so that a sequence whose device is lost can be made again on
//! the CPU ([`Charts::replay`]).

use std::collections::BTreeSet;

use anygram_bits::BitSet;
use anygram_grammar::normal::NormalId;
use anygram_left_to_right::Warm;
use anygram_recognizer::valiant::Tier;
use anygram_recognizer::{Edge, Recognizer, RecognizerError, StateId};
use rustc_hash::FxHashMap;

use crate::device::{Buffer, Device, DeviceError, Grid, Read, half_words, words_of};
use crate::graphs::{GraphCounts, Launch};
use crate::image::Image;
use crate::layout::{
    ALIGNED, IS_ROOT, IS_SENTENCE, Kernel, MoveParams, MoveRequest, NONE, RECORD_HEADER, SLOT_HEADER,
    SPAN_WORDS, Sizes,
};
use crate::options::{ChartError, PoolOptions};
use crate::shim::{Shim, ShimOptions};

/// A grammar on a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GrammarId(pub(crate) usize);

/// A sequence of a pool. The id of one that was released is an error, also when its place has been given to
/// another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SequenceId {
    pub(crate) slot: u32,
    generation: u32,
}

/// A grammar's place, and what the host needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) address: u64,
    pub(crate) sizes: Sizes,
    pub(crate) n_terminals: usize,
    lefts: Vec<u32>,
}

/// What the host knows of a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) grammar: GrammarId,
    /// Of each state but the first the edges that lead to it; state 0 has none.
    pub(crate) edges: Vec<Box<[Edge]>>,
    /// The words of rows of the state that was made last: how dense the chart is.
    pub(crate) row_words: usize,
    /// Where that state is.
    pub(crate) last: Place,
}

/// Where a state's record is, and how many words it has with its rows if they are in one piece.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pub(crate) state: usize,
    pub(crate) address: usize,
    pub(crate) words: usize,
}

/// A place for a sequence, and how many it had before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    generation: u32,
    pub(crate) sequence: Option<Sequence>,
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
    pub(crate) references: Buffer,
    pub(crate) free_pages: Buffer,
    pub(crate) n_free: Buffer,
    pub(crate) slots: Buffer,
    pub(crate) steps: crate::step::Memory,
    requests: Scratch,
    /// Buffers of callers.
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) grammars: Vec<Loaded>,
    /// The images that are there, so that each is there once.
    grammar_ids: FxHashMap<Vec<u32>, GrammarId>,
    pub(crate) places: Vec<Slot>,
    free_places: BTreeSet<u32>,
    pub(crate) search: crate::search::Memory,
    /// Outputs of the CPU, for masks that the device leaves in doubt.
    pub(crate) warm: Warm,
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
        Self::on(Box::new(Shim::new(shim, options.bulk_loads)?), options)
    }

    /// A pool on a CUDA device, by its number.
    pub fn on_cuda(ordinal: usize, options: PoolOptions) -> Result<Self, ChartError> {
        #[cfg(feature = "cuda")]
        return Self::on(Box::new(crate::driver::Cuda::new(ordinal, options.bulk_loads)?), options);
        #[cfg(not(feature = "cuda"))]
        {
            let _ = (ordinal, options);
            Err(DeviceError::NotBuilt.into())
        }
    }

    fn on(mut device: Box<dyn Device>, mut options: PoolOptions) -> Result<Self, ChartError> {
        let most = device.max_threads(Kernel::Step);
        if !(32..=most).contains(&options.threads) || !options.threads.is_multiple_of(32) {
            return Err(ChartError::Threads { given: options.threads, most });
        }
        for words in [&mut options.page_words, &mut options.stack_words, &mut options.arena_words] {
            // So that records begin where they can be read in large pieces.
            *words = words.next_multiple_of(ALIGNED);
        }
        let pages = options.pages.saturating_mul(options.page_words);
        let stacks = options.max_workers.max(1).saturating_mul(options.stack_words);
        let words = pages.saturating_add(options.arena_words).saturating_add(stacks);
        if words >= NONE as usize {
            // Addresses are words in 32 bits.
            return Err(DeviceError::OutOfMemory { words }.into());
        }
        let memory = device.allocate(words)?;
        let (references, free_pages) = (device.allocate(options.pages)?, device.allocate(options.pages)?);
        let n_free = device.allocate(1)?;
        let slots =
            device.allocate(options.sequences * (SLOT_HEADER + options.max_pages + options.max_states))?;
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
            steps: crate::step::Memory::default(),
            requests: Scratch::default(),
            buffers: Vec::new(),
            grammars: Vec::new(),
            grammar_ids: FxHashMap::default(),
            places: vec![Slot::default(); options.sequences],
            free_places: (0..options.sequences as u32).collect(),
            search: crate::search::Memory::default(),
            warm: Warm::default(),
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
        self.grammars.push(Loaded {
            address,
            sizes,
            n_terminals: image.n_terminals,
            lefts: image.lefts.clone(),
        });
        let id = GrammarId(self.grammars.len() - 1);
        self.grammar_ids.insert(image.words.clone(), id);
        Ok(id)
    }

    /// New sequences, each at the start of its grammar.
    pub fn create(&mut self, grammars: &[GrammarId]) -> Vec<Result<SequenceId, ChartError>> {
        let mut created: Vec<_> = grammars.iter().map(|&grammar| self.take_place(grammar)).collect();
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

    pub(crate) fn take_place(&mut self, grammar: GrammarId) -> Result<SequenceId, ChartError> {
        if grammar.0 >= self.grammars.len() {
            return Err(ChartError::Unknown { what: "grammar", id: grammar.0 });
        }
        let id = self.free_place()?;
        self.put(id, Sequence { grammar, edges: Vec::new(), row_words: 0, last: Place::default() });
        Ok(id)
    }

    /// The free place with the lowest number. It stays free until a sequence is put there.
    fn free_place(&self) -> Result<SequenceId, ChartError> {
        let limit = self.options.sequences;
        let &slot = self.free_places.first().ok_or(ChartError::TooManySequences { limit })?;
        Ok(SequenceId { slot, generation: self.places[slot as usize].generation })
    }

    fn put(&mut self, id: SequenceId, sequence: Sequence) {
        self.free_places.remove(&id.slot);
        self.places[id.slot as usize].sequence = Some(sequence);
    }

    /// The number of sequences that were made and not released.
    pub fn sequences_in_use(&self) -> usize {
        self.places.iter().filter(|place| place.sequence.is_some()).count()
    }

    /// The number of states of a sequence.
    pub fn n_states(&self, sequence: SequenceId) -> Result<usize, ChartError> {
        Ok(self.sequence(sequence)?.edges.len())
    }

    /// The edges that lead to a state; none to the first.
    pub fn edges(&self, sequence: SequenceId, state: StateId) -> Result<&[Edge], ChartError> {
        let edges = self.sequence(sequence)?.edges.get(state.index());
        edges.map(|edges| &edges[..]).ok_or(ChartError::Unknown { what: "state", id: state.index() })
    }

    pub(crate) fn sequence(&self, id: SequenceId) -> Result<&Sequence, ChartError> {
        let slot = id.slot as usize;
        let place = self.places.get(slot).filter(|place| place.generation == id.generation);
        place.and_then(|place| place.sequence.as_ref()).ok_or(ChartError::Released { slot })
    }

    pub(crate) fn sequence_mut(&mut self, id: SequenceId) -> Result<&mut Sequence, ChartError> {
        let slot = id.slot as usize;
        let place = self.places.get_mut(slot).filter(|place| place.generation == id.generation);
        place.and_then(|place| place.sequence.as_mut()).ok_or(ChartError::Released { slot })
    }

    pub(crate) fn grammar_of(&self, id: SequenceId) -> Result<&Loaded, ChartError> {
        Ok(&self.grammars[self.sequence(id)?.grammar.0])
    }

    /// A sequence that is at the same point and goes on by itself. Its pages are those of the other.
    pub fn fork(&mut self, sequence: SequenceId) -> Result<SequenceId, ChartError> {
        let copy = self.sequence(sequence)?.clone();
        let id = self.free_place()?;
        self.move_slot(
            Kernel::Fork,
            MoveRequest { slot: id.slot, from: sequence.slot, n_states: 0, pad: 0 },
        )?;
        self.put(id, copy);
        Ok(id)
    }

    /// Takes a sequence back to its first `n_states` states, at least one.
    pub fn rollback(&mut self, sequence: SequenceId, n_states: usize) -> Result<(), ChartError> {
        let present = self.sequence(sequence)?.edges.len();
        if n_states == 0 || n_states > present {
            return Err(ChartError::Unknown { what: "state", id: n_states });
        }
        let n = n_states as u32;
        self.move_slot(
            Kernel::GiveBack,
            MoveRequest { slot: sequence.slot, from: NONE, n_states: n, pad: 0 },
        )?;
        self.sequence_mut(sequence)?.edges.truncate(n_states);
        Ok(())
    }

    /// Gives a sequence back. Its id is not used again.
    pub fn release(&mut self, sequence: SequenceId) -> Result<(), ChartError> {
        self.sequence(sequence)?;
        let place = &mut self.places[sequence.slot as usize];
        place.sequence = None;
        place.generation = place.generation.wrapping_add(1);
        self.free_places.insert(sequence.slot);
        self.move_slot(Kernel::GiveBack, MoveRequest { slot: sequence.slot, from: NONE, n_states: 0, pad: 0 })
    }

    /// Takes what the device has of a sequence back to what the host knows of it.
    pub(crate) fn take_back(&mut self, id: SequenceId) -> Result<(), ChartError> {
        let n_states = self.sequence(id)?.edges.len() as u32;
        self.move_slot(Kernel::GiveBack, MoveRequest { slot: id.slot, from: NONE, n_states, pad: 0 })
    }

    fn move_slot(&mut self, kernel: Kernel, request: MoveRequest) -> Result<(), ChartError> {
        let pool = self.pool((0, 0), 1)?;
        let device = &mut *self.device;
        let words = half_words(&[request]);
        let requests = self.requests.at_least(device, words.len())?;
        device.write(&requests, 0, &words)?;
        let params = words_of(&MoveParams { pool, requests: requests.address });
        let grid =
            Grid { blocks: (1, 1), threads: self.options.threads, shared_words: 0, is_cooperative: false };
        Ok(device.run(&[Launch { kernel, grid, params }])?)
    }

    /// A state as the host knows it.
    pub fn tier(&mut self, sequence: SequenceId, state: StateId) -> Result<Tier, ChartError> {
        if state.index() >= self.n_states(sequence)? {
            return Err(ChartError::Unknown { what: "state", id: state.index() });
        }
        let Loaded { sizes, n_terminals, lefts, .. } = self.grammar_of(sequence)?.clone();
        let (place, record) = self.record(sequence, state, &sizes)?;
        let spans = &record[sizes.spans_at()..][..record[1] as usize * SPAN_WORDS];
        let (mut rows, mut elsewhere) = (Vec::new(), Vec::new());
        for span in spans.chunks_exact(SPAN_WORDS) {
            let [first, length, at] = [span[1], span[2], span[3]].map(|n| n as usize);
            let mut words = vec![0; first + length];
            let here = at.checked_sub(place.address).and_then(|at| record.get(at..at + length));
            if let Some(here) = here {
                words[first..].copy_from_slice(here);
            }
            elsewhere.push(here.is_none().then_some((first, at)));
            rows.push(words);
        }
        // Rows in other pages are copied together, so that the host waits once.
        let missing = rows.iter_mut().zip(&elsewhere).filter_map(|(words, place)| {
            let (first, at) = (*place)?;
            Some(Read { buffer: self.memory, at, words: &mut words[first..] })
        });
        self.device.read_all(&mut missing.collect::<Vec<_>>())?;
        let wide = |words: &Vec<u32>| {
            words
                .chunks(2)
                .map(|pair| u64::from(pair[0]) | u64::from(*pair.get(1).unwrap_or(&0)) << 32)
                .collect()
        };
        let symbols = spans.chunks_exact(SPAN_WORDS).map(|span| NormalId(lefts[span[0] as usize]));
        let rows = symbols.zip(rows.iter().map(wide)).collect();
        let record = &record[..sizes.spans_at()];
        let (predicted, viable) = record[RECORD_HEADER..].split_at(sizes.symbol_words);
        Ok(Tier {
            rows,
            predicted: bit_set(predicted, sizes.n_symbols),
            viable: bit_set(viable, n_terminals),
            is_sentence: record[0] & IS_SENTENCE != 0,
            is_root: record[0] & IS_ROOT != 0,
        })
    }

    /// Where a state is, and its record, with the rows if they are behind it: one copy for the state that was
    /// made last.
    fn record(
        &mut self,
        id: SequenceId,
        state: StateId,
        sizes: &Sizes,
    ) -> Result<(Place, Vec<u32>), ChartError> {
        let mut place = self.sequence(id)?.last;
        if place.state != state.index() || place.words == 0 {
            let slot = id.slot as usize * (SLOT_HEADER + self.options.max_pages + self.options.max_states);
            let mut address = [0];
            self.device.read(
                &self.slots,
                slot + SLOT_HEADER + self.options.max_pages + state.index(),
                &mut address,
            )?;
            let address = address[0] as usize;
            let mut header = [0; RECORD_HEADER];
            self.device.read(&self.memory, address, &mut header)?;
            let words = sizes.spans_at() + header[1] as usize * SPAN_WORDS;
            place = Place { state: state.index(), address, words };
        }
        let mut record = vec![0; place.words];
        self.device.read(&self.memory, place.address, &mut record)?;
        Ok((place, record))
    }

    /// Waits until everything that was asked of the device is done.
    pub fn synchronize(&mut self) -> Result<(), ChartError> {
        Ok(self.device.synchronize()?)
    }

    /// How often the host has waited for the device: once for each answer that was read, however many copies
    /// it took.
    pub fn n_waits(&self) -> usize {
        self.device.n_waits()
    }

    /// How often launches were recorded and replayed.
    pub fn graph_counts(&self) -> GraphCounts {
        self.device.graph_counts()
    }

    /// What the launches of the last call took, in microseconds, as the device counts.
    pub fn last_launch(&mut self) -> Result<f64, ChartError> {
        Ok(self.device.last_run()?)
    }

    /// The pages that no sequence holds.
    pub fn free_pages(&mut self) -> Result<usize, ChartError> {
        let mut free = [0];
        self.device.read(&self.n_free, 0, &mut free)?;
        Ok(free[0] as usize)
    }

    /// Makes a sequence again on an engine of the CPU, which has to be at its start: from the edges, so also
    /// when the device is lost. The engine's states have the same numbers.
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
    /// It has to be a stream of the device's primary context, and to live until another one is set and the
    /// work on it is done.
    #[allow(unsafe_code, reason = "a handle of the caller cannot be checked")]
    pub unsafe fn set_stream(&mut self, stream: u64) -> Result<(), ChartError> {
        Ok(self.device.set_stream(stream)?)
    }
}

/// The first `len` bits of some words.
fn bit_set(words: &[u32], len: usize) -> BitSet {
    BitSet::from_members(len, (0..len).filter(|&at| words[at / 32] >> (at % 32) & 1 == 1))
}
