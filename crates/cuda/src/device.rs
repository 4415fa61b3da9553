//! Devices: where the kernels run. A device holds buffers of words and runs kernels one after the other.

use crate::graphs::{GraphCounts, Launch};
use crate::layout::{Kernel, Plain};

/// A device that cannot do what it was asked to.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The crate was built without the feature.
    #[error("this build has no CUDA: build it with `--features cuda`, or choose another engine")]
    NotBuilt,
    /// There is no driver, or it shows no device.
    #[error("no CUDA device: {reason}; install NVIDIA's driver, or choose another engine")]
    NoDevice {
        /// What was looked for and not found.
        reason: String,
    },
    /// The crate was built without a C++ compiler.
    #[error("the kernels cannot run on the CPU: no C++ compiler was found when this was built")]
    NoShim,
    /// Its memory is used up.
    #[error("the device has no room for {words} more words; make the pool smaller")]
    OutOfMemory {
        /// 32-bit words asked for.
        words: usize,
    },
    /// It does not run a kernel that way: too many threads, blocks or shared memory. Nothing that it holds is
    /// lost.
    #[error("the device refuses a launch: {reason}; choose other options of the pool, or another engine")]
    Refused {
        /// What was asked for, and what there is.
        reason: String,
    },
    /// It failed in the middle of the work: nothing that it holds can be read any more.
    #[error("the device was lost: {reason}")]
    Lost {
        /// What the driver says.
        reason: String,
    },
}

/// Words of a device's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffer {
    pub(crate) address: u64,
    pub(crate) words: usize,
}

impl Buffer {
    /// Where it is, as the device counts.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its length in 32-bit words.
    pub fn words(&self) -> usize {
        self.words
    }
}

/// Words to be read from the word `at` of a buffer on.
#[derive(Debug)]
pub(crate) struct Read<'a> {
    pub buffer: Buffer,
    pub at: usize,
    pub words: &'a mut [u32],
}

/// The most blocks of a grid in its second direction, on every device.
pub(crate) const MAX_GRID_Y: u32 = 65_535;

/// How a kernel is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grid {
    /// Blocks in both directions.
    pub blocks: (u32, u32),
    /// Threads of a block; a multiple of 32.
    pub threads: u32,
    /// Words of dynamic shared memory.
    pub shared_words: usize,
    /// Blocks wait for each other, so all have to run at the same time.
    pub is_cooperative: bool,
}

/// Where kernels run.
///
/// Calls take effect in order. Whoever launches answers for the addresses in the parameters: this trait is
/// implemented and used in this crate only.
pub(crate) trait Device: Send {
    /// What it is, for people.
    fn name(&self) -> String;
    /// The most words of shared memory that a block may have.
    fn max_shared_words(&self) -> usize;
    /// The most threads that a block of a kernel may have: its registers bound it.
    fn max_threads(&self, kernel: Kernel) -> u32;
    /// The most blocks of a kernel that run at the same time.
    fn resident_blocks(&self, kernel: Kernel, threads: u32, shared_words: usize) -> usize;
    /// Words that are all zero; they live as long as the device, or until they are freed.
    fn allocate(&mut self, words: usize) -> Result<Buffer, DeviceError>;
    /// Gives memory back that nothing will use any more.
    fn free(&mut self, buffer: Buffer) -> Result<(), DeviceError>;
    /// Writes words from the word `at` on.
    fn write(&mut self, buffer: &Buffer, at: usize, words: &[u32]) -> Result<(), DeviceError>;
    /// Reads from some places, when everything before is done: all copies are under way before the first is
    /// waited for.
    fn read_all(&mut self, parts: &mut [Read<'_>]) -> Result<(), DeviceError>;
    /// Reads words from the word `at` on.
    fn read(&mut self, buffer: &Buffer, at: usize, words: &mut [u32]) -> Result<(), DeviceError> {
        self.read_all(&mut [Read { buffer: *buffer, at, words }])
    }
    /// Runs kernels one after the other. A list of several that comes again is recorded as a graph, and
    /// replayed from then on. If one is refused, those before it may run.
    fn run(&mut self, launches: &[Launch]) -> Result<(), DeviceError>;
    /// What was recorded and replayed.
    fn graph_counts(&self) -> GraphCounts;
    /// How often the host has waited for it.
    fn n_waits(&self) -> usize;
    /// Waits until everything is done.
    fn synchronize(&mut self) -> Result<(), DeviceError>;
    /// From here on work goes to a stream of the caller, by its handle; 0 is the device's own.
    fn set_stream(&mut self, stream: u64) -> Result<(), DeviceError>;
    /// Microseconds from the beginning to the end of the last list of launches, as the device counts, when
    /// that has come.
    fn last_run(&mut self) -> Result<f64, DeviceError>;
}

/// A structure as words of 64 bits.
#[allow(unsafe_code, reason = "structures are passed to kernels as they lie in memory")]
pub(crate) fn words_of<T: Plain>(value: &T) -> Vec<u64> {
    let mut words = vec![0u64; size_of::<T>().div_ceil(8)];
    // SAFETY: a `Plain` structure is `Copy` and has no padding (asserted where it is defined), so all its
    // bytes are initialised; the vector is at least as long, and the two do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(
            (&raw const *value).cast::<u8>(),
            words.as_mut_ptr().cast::<u8>(),
            size_of::<T>(),
        )
    };
    words
}

/// Structures as words of 32 bits.
pub(crate) fn half_words<T: Plain>(values: &[T]) -> Vec<u32> {
    const { assert!(size_of::<T>().is_multiple_of(8)) };
    values.iter().flat_map(words_of).flat_map(|word| [word as u32, (word >> 32) as u32]).collect()
}
