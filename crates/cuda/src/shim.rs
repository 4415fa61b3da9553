//! The kernels on the CPU: for tests, and for whoever wants to know what a kernel does without a device.

use std::time::{Duration, Instant};

use crate::device::{Buffer, Device, DeviceError, Grid, MAX_GRID_Y, Read};
use crate::graphs::{Found, GraphCounts, Graphs, Launch};
use crate::layout::Kernel;

/// How the shim runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShimOptions {
    /// Draws the order in which threads and blocks run.
    pub seed: u64,
    /// The device is lost at this launch, counted from 0.
    pub lost_at: Option<u64>,
    /// This launch is refused, counted from 0.
    pub refused_at: Option<u64>,
    /// The most words of shared memory; those of a device with 48 KiB if `None`.
    pub shared_words: Option<usize>,
    /// The most blocks of a cooperative launch; 8 if `None`.
    pub resident_blocks: Option<usize>,
}

/// Variants of the kernels: as they are, with copies of blocks of memory, and those of tests of the shim.
const PLAIN: u32 = 0;
const BULK: u32 = 1;
#[cfg(all(test, anygram_shim))]
const WRONG: u32 = 2;

/// Whether the kernels can run on the CPU, that is, whether there was a C++ compiler when this was built.
pub fn is_built() -> bool {
    cfg!(anygram_shim)
}

/// A device of the CPU.
pub(crate) struct Shim {
    options: ShimOptions,
    variant: u32,
    n_launches: u64,
    #[cfg_attr(not(anygram_shim), allow(dead_code, reason = "never read where nothing can be launched"))]
    buffers: Vec<Box<[u64]>>,
    /// A graph is a copy of its launches.
    graphs: Graphs<Vec<Launch>>,
    last_run: Duration,
    n_waits: usize,
}

impl Shim {
    pub(crate) fn new(options: ShimOptions, bulk_loads: bool) -> Result<Self, DeviceError> {
        if !is_built() {
            return Err(DeviceError::NoShim);
        }
        let (graphs, last_run) = (Graphs::default(), Duration::ZERO);
        let variant = if bulk_loads { BULK } else { PLAIN };
        Ok(Self { options, variant, n_launches: 0, buffers: Vec::new(), graphs, last_run, n_waits: 0 })
    }

    fn check(&self) -> Result<(), DeviceError> {
        match self.options.lost_at {
            Some(at) if self.n_launches > at => {
                Err(DeviceError::Lost { reason: "as the test wants it".to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn launch(&mut self, launch: &Launch) -> Result<(), DeviceError> {
        let Launch { kernel, grid, params } = launch;
        let seed = self.options.seed.wrapping_mul(0x9e37_79b9).wrapping_add(self.n_launches);
        self.n_launches += 1;
        if self.options.lost_at.is_some_and(|at| self.n_launches > at) {
            return self.check();
        }
        let refused =
            || DeviceError::Refused { reason: format!("`{}` cannot run with {grid:?}", kernel.name()) };
        if self.options.refused_at == Some(self.n_launches - 1) || grid.blocks.1 > MAX_GRID_Y {
            return Err(refused());
        }
        let n_blocks = grid.blocks.0 as usize * grid.blocks.1 as usize;
        if grid.is_cooperative && n_blocks > self.resident_blocks(*kernel, grid.threads, grid.shared_words) {
            return Err(refused());
        }
        let reason = match ffi::launch(self.variant, *kernel as u32, *grid, params, seed) {
            0 => return Ok(()),
            1 => "have threads that wait for each other",
            3 => "read a word by the read-only path that this launch writes",
            4 => "start a copy that the unit for copies cannot make",
            _ => return Err(refused()),
        };
        Err(DeviceError::Lost { reason: format!("blocks of `{}` {reason}, seed {seed}", kernel.name()) })
    }
}

#[cfg(anygram_shim)]
#[allow(unsafe_code, reason = "the kernels are C++ and work on raw memory")]
mod ffi {
    use super::*;

    unsafe extern "C" {
        safe fn anygram_shim_max_threads(kernel: u32) -> u32;
        fn anygram_shim_launch(
            variant: u32,
            kernel: u32,
            grid_x: u32,
            grid_y: u32,
            threads: u32,
            shared_words: u32,
            is_cooperative: u32,
            params: *const u64,
            seed: u64,
        ) -> i32;
    }

    pub(super) fn max_threads(kernel: Kernel) -> u32 {
        anygram_shim_max_threads(kernel as u32)
    }

    pub(super) fn launch(variant: u32, kernel: u32, grid: Grid, params: &[u64], seed: u64) -> i32 {
        let (x, y) = grid.blocks;
        // SAFETY: the kernel reads its parameter structure from `params`, which the caller made from the twin
        // of that structure; the addresses in it are of buffers of this device, which outlive the call, and
        // whose lengths the callers in this crate have checked against what the kernel touches (the sanitized
        // build of the shim checks them again). Nothing of it is kept.
        unsafe {
            let (shared, cooperative) = (grid.shared_words as u32, u32::from(grid.is_cooperative));
            anygram_shim_launch(
                variant,
                kernel,
                x,
                y,
                grid.threads,
                shared,
                cooperative,
                params.as_ptr(),
                seed,
            )
        }
    }

    pub(super) fn words(buffer: &Buffer, at: usize, length: usize) -> *mut u32 {
        assert!(at + length <= buffer.words, "{length} words at {at} of {}", buffer.words);
        (buffer.address as *mut u32).wrapping_add(at)
    }

    pub(super) fn write(buffer: &Buffer, at: usize, from: &[u32]) {
        let to = words(buffer, at, from.len());
        // SAFETY: the buffer was allocated by this device, which keeps it, and the range was just checked. No
        // reference into it exists: the device reads and writes it through its address only.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) }
    }

    pub(super) fn read(buffer: &Buffer, at: usize, to: &mut [u32]) {
        let from = words(buffer, at, to.len());
        // SAFETY: as in `write`.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) }
    }
}

#[cfg(not(anygram_shim))]
mod ffi {
    use super::*;

    pub(super) fn max_threads(_: Kernel) -> u32 {
        0
    }
    pub(super) fn launch(_: u32, _: u32, _: Grid, _: &[u64], _: u64) -> i32 {
        -1
    }
    pub(super) fn write(_: &Buffer, _: usize, _: &[u32]) {}
    pub(super) fn read(_: &Buffer, _: usize, _: &mut [u32]) {}
}

impl Device for Shim {
    fn name(&self) -> String {
        "the CPU, by the shim".to_owned()
    }

    fn max_shared_words(&self) -> usize {
        self.options.shared_words.unwrap_or(48 << 8)
    }

    fn max_threads(&self, kernel: Kernel) -> u32 {
        ffi::max_threads(kernel)
    }

    fn resident_blocks(&self, _: Kernel, _: u32, _: usize) -> usize {
        self.options.resident_blocks.unwrap_or(8)
    }

    fn allocate(&mut self, words: usize) -> Result<Buffer, DeviceError> {
        self.check()?;
        // The last word may be half used; whoever writes beyond its end is found by the address sanitizer.
        let mut memory = vec![0u64; words.div_ceil(2).max(1)].into_boxed_slice();
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        self.buffers.push(memory);
        Ok(Buffer { address, words })
    }

    fn free(&mut self, buffer: Buffer) -> Result<(), DeviceError> {
        self.buffers.retain(|memory| memory.as_ptr().addr() as u64 != buffer.address);
        self.check()
    }

    fn write(&mut self, buffer: &Buffer, at: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.check()?;
        ffi::write(buffer, at, words);
        Ok(())
    }

    fn read_all(&mut self, parts: &mut [Read<'_>]) -> Result<(), DeviceError> {
        self.check()?;
        parts.iter_mut().for_each(|part| ffi::read(&part.buffer, part.at, part.words));
        self.n_waits += 1;
        Ok(())
    }

    fn run(&mut self, launches: &[Launch]) -> Result<(), DeviceError> {
        let replayed = match launches {
            [_] => None,
            _ => match self.graphs.find(launches) {
                Found::Run(_) => None,
                Found::Record(at) => {
                    self.graphs.set(at, Some(launches.to_vec()));
                    Some(launches.to_vec())
                }
                Found::Replay(graph) => Some(graph),
            },
        };
        let start = Instant::now();
        let done = replayed.as_deref().unwrap_or(launches).iter().try_for_each(|launch| self.launch(launch));
        self.last_run = start.elapsed();
        done
    }

    fn graph_counts(&self) -> GraphCounts {
        self.graphs.counts
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        self.n_waits += 1;
        self.check()
    }

    fn n_waits(&self) -> usize {
        self.n_waits
    }

    fn set_stream(&mut self, _: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    fn last_run(&mut self) -> Result<f64, DeviceError> {
        Ok(self.last_run.as_secs_f64() * 1e6)
    }
}

#[cfg(all(test, anygram_shim))]
mod tests {
    use super::*;

    /// The numbers of `wrong::KERNELS` in `shim/wrong.cpp`.
    const FETCH_WHAT_IS_SETTLED: u32 = 0;
    const FETCH_WHAT_WAS_PUT: u32 = 1;
    const ADD_TO_WHAT_WAS_FETCHED: u32 = 2;
    const FETCH_SHARED_MEMORY: u32 = 3;
    const COPY_RIGHTLY: u32 = 4;
    const COPY_WITHOUT_A_FENCE: u32 = 5;
    const COPY_WITHOUT_WAITING: u32 = 6;
    const COPY_TO_ODD_PLACES: u32 = 7;

    /// What a kernel leaves in `result`, and the outcome.
    fn run(kernel: u32, seed: u64) -> (i32, Vec<u32>) {
        let mut shim = Shim::new(ShimOptions::default(), false).unwrap();
        let (words, result) = (shim.allocate(64).unwrap(), shim.allocate(32).unwrap());
        shim.write(&words, 0, &(0..32).collect::<Vec<_>>()).unwrap();
        let grid = Grid { blocks: (1, 1), threads: 32, shared_words: 32, is_cooperative: false };
        let outcome = ffi::launch(WRONG, kernel, grid, &[words.address, result.address], seed);
        let mut found = vec![0; 32];
        shim.read(&result, 0, &mut found).unwrap();
        (outcome, found)
    }

    #[test]
    fn words_that_are_written_may_not_be_fetched() {
        for seed in 0..20 {
            let swapped: Vec<u32> = (0..32).map(|thread| thread ^ 1).collect();
            assert_eq!(run(FETCH_WHAT_IS_SETTLED, seed), (0, swapped));
            for kernel in [FETCH_WHAT_WAS_PUT, ADD_TO_WHAT_WAS_FETCHED, FETCH_SHARED_MEMORY] {
                assert_eq!(run(kernel, seed).0, 3, "kernel {kernel}, seed {seed}");
            }
        }
    }

    #[test]
    fn copies_see_what_was_fenced_and_are_seen_by_those_who_wait() {
        const RUBBISH: u32 = 0xa5a5_a5a5;
        for seed in 0..20 {
            // What the second turn leaves; four words were not asked for.
            let right: Vec<u32> = (1..29).chain([RUBBISH; 4]).collect();
            assert_eq!(run(COPY_RIGHTLY, seed), (0, right));
            assert_eq!(run(COPY_WITHOUT_A_FENCE, seed), (0, vec![RUBBISH; 32]));
            let (outcome, early) = run(COPY_WITHOUT_WAITING, seed);
            assert!(outcome == 4 || early == [RUBBISH; 32], "seed {seed}");
            assert_eq!(run(COPY_TO_ODD_PLACES, seed).0, 4);
        }
    }
}
