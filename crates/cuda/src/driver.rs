//! NVIDIA's driver as a [`Device`], loaded when it is first asked for.
//!
//! Only the driver is needed: kernels come as machine code for the architectures that are listed here, and as
//! PTX, which the driver compiles, for all others. Of `cudarc` only the thin layer over the driver's
//! functions is used. It panics where the driver's library is missing, so that is asked first; in this module
//! nothing else comes before it.

#![allow(unsafe_code, reason = "the driver's functions take raw addresses and handles")]

use std::ffi::{CString, c_void};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;

use crate::device::{Buffer, Device, DeviceError, MAX_GRID_Y, Read};
use crate::graphs::{Found, GraphCounts, Graphs, Launch};
use crate::layout::Kernel;

const PTX: &[u8] = include_bytes!("../kernels/built/anygram.ptx");
/// Machine code by the major number of the architectures that run it.
const CUBINS: [(i32, &[u8]); 2] = [
    (8, include_bytes!("../kernels/built/anygram.sm_80.cubin")),
    (9, include_bytes!("../kernels/built/anygram.sm_90.cubin")),
];

/// The variant that loads by the unit that copies blocks of memory, and the major number that has one.
const BULK: (i32, &[u8]) = (9, include_bytes!("../kernels/built/anygram.sm_90.tma.cubin"));

/// Copies that may be under way before they are waited for.
const MAX_IN_FLIGHT: usize = 256;

/// A CUDA device with the kernels on it.
pub(crate) struct Cuda {
    name: String,
    ordinal: sys::CUdevice,
    context: sys::CUcontext,
    module: sys::CUmodule,
    functions: Vec<sys::CUfunction>,
    /// The pool's own stream, and the one in use.
    own_stream: sys::CUstream,
    stream: sys::CUstream,
    max_shared_words: usize,
    max_threads: Vec<u32>,
    n_multiprocessors: usize,
    allocated: Vec<sys::CUdeviceptr>,
    graphs: Graphs<sys::CUgraphExec>,
    /// Beginning and end of the last list of launches.
    events: [sys::CUevent; 2],
    /// What copies that may be under way read from.
    in_flight: Vec<Vec<u32>>,
    /// Page-locked memory of the host that answers are copied to: only such copies run by themselves.
    staging: Staging,
    n_waits: usize,
    lost: Option<String>,
}

/// Page-locked memory of the host.
#[derive(Debug)]
struct Staging {
    start: *mut u32,
    words: usize,
}

impl Staging {
    const EMPTY: Self = Self { start: std::ptr::null_mut(), words: 0 };
}

// SAFETY: the handles are the driver's, which lets any thread use them; every call makes the context current
// for its thread first. The type is not `Sync`, so no two threads call at once.
unsafe impl Send for Cuda {}

fn no_device(error: DriverError) -> DeviceError {
    DeviceError::NoDevice { reason: format!("the driver says {error}") }
}

/// Whether an error is of the call that returned it, and leaves the context as it was. All others are taken
/// to be of a kernel that ran before.
fn is_of_the_call(DriverError(code): DriverError) -> bool {
    use sys::cudaError_enum as Code;
    matches!(
        code,
        Code::CUDA_ERROR_INVALID_VALUE
            | Code::CUDA_ERROR_OUT_OF_MEMORY
            | Code::CUDA_ERROR_INVALID_HANDLE
            | Code::CUDA_ERROR_NOT_FOUND
            | Code::CUDA_ERROR_NOT_READY
            | Code::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
            | Code::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
            | Code::CUDA_ERROR_NOT_PERMITTED
            | Code::CUDA_ERROR_NOT_SUPPORTED
            | Code::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
            | Code::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
    )
}

impl Cuda {
    pub(crate) fn new(ordinal: usize, bulk_loads: bool) -> Result<Self, DeviceError> {
        // SAFETY: loading the driver's library runs its initialisers, which is what is wanted; there is no
        // other condition.
        if !unsafe { sys::is_culib_present() } {
            return Err(DeviceError::NoDevice { reason: "the driver's library was not found".to_owned() });
        }
        result::init().map_err(no_device)?;
        let count = result::device::get_count().map_err(no_device)?;
        let number = i32::try_from(ordinal).unwrap_or(i32::MAX);
        if number >= count {
            return Err(DeviceError::NoDevice {
                reason: format!("device {ordinal} was asked for, there are {count}"),
            });
        }
        let device = result::device::get(number).map_err(no_device)?;
        let name = result::device::get_name(device).map_err(no_device)?;
        // SAFETY: `device` was just given by the driver. The primary context is retained once and released in
        // `drop`; the stream and the module are made while it is current, and are destroyed with it.
        unsafe {
            use sys::CUdevice_attribute_enum as Attribute;
            let major = result::device::get_attribute(
                device,
                Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            )
            .map_err(no_device)?;
            let minor = result::device::get_attribute(
                device,
                Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
            .map_err(no_device)?;
            let shared = result::device::get_attribute(
                device,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )
            .map_err(no_device)?;
            if bulk_loads && major != BULK.0 {
                let reason = format!("`bulk_loads` takes an architecture 9.x, this is {major}.x");
                return Err(DeviceError::NoDevice { reason });
            }
            let multiprocessors =
                result::device::get_attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
                    .map_err(no_device)?;
            let context = result::primary_ctx::retain(device).map_err(no_device)?;
            result::ctx::set_current(context).map_err(no_device)?;
            let stream =
                result::stream::create(result::stream::StreamKind::NonBlocking).map_err(no_device)?;
            let (module, functions, shared) = load(major, bulk_loads, shared).map_err(no_device)?;
            let max_threads = max_threads(&functions).map_err(no_device)?;
            let event = || result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(no_device);
            Ok(Self {
                name: format!("{name} (sm_{major}{minor})"),
                ordinal: device,
                context,
                module,
                functions,
                own_stream: stream,
                stream,
                max_shared_words: shared as usize / 4,
                max_threads,
                n_multiprocessors: multiprocessors as usize,
                allocated: Vec::new(),
                graphs: Graphs::default(),
                events: [event()?, event()?],
                in_flight: Vec::new(),
                staging: Staging::EMPTY,
                n_waits: 0,
                lost: None,
            })
        }
    }

    /// Makes the context current, unless the device was lost.
    fn enter(&self) -> Result<(), DeviceError> {
        if let Some(reason) = &self.lost {
            return Err(DeviceError::Lost { reason: reason.clone() });
        }
        // SAFETY: the context is retained until `drop`.
        unsafe { result::ctx::set_current(self.context) }.map_err(no_device)
    }

    /// An error of the driver: one of a kernel stays with the context, on which nothing works any more; one
    /// of a call is the call's alone.
    fn fail(&mut self, error: DriverError) -> DeviceError {
        let reason = error.to_string();
        if is_of_the_call(error) {
            return DeviceError::Refused { reason };
        }
        self.lost = Some(reason.clone());
        DeviceError::Lost { reason }
    }

    /// Why a launch cannot be made, asked before any of a list is made.
    fn refusal(&self, launch: &Launch) -> Option<String> {
        let Launch { kernel, grid, .. } = launch;
        let (x, y) = grid.blocks;
        if x == 0 || y == 0 || y > MAX_GRID_Y {
            return Some(format!("`{}` in a grid of {x} × {y} blocks", kernel.name()));
        }
        let most = self.max_threads(*kernel);
        if grid.threads > most {
            return Some(format!(
                "`{}` with {} threads a block, it can have {most}",
                kernel.name(),
                grid.threads
            ));
        }
        if grid.shared_words > self.max_shared_words {
            let (asked, most) = (grid.shared_words, self.max_shared_words);
            return Some(format!(
                "`{}` with {asked} words of shared memory, there are {most}",
                kernel.name()
            ));
        }
        if grid.is_cooperative {
            let (asked, most) =
                (x as usize * y as usize, self.resident_blocks(*kernel, grid.threads, grid.shared_words));
            if asked > most {
                return Some(format!("`{}` with {asked} blocks at the same time, {most} fit", kernel.name()));
            }
        }
        None
    }

    /// Page-locked memory of at least so many words. Nothing may be under way that uses what there was.
    fn stage(&mut self, words: usize) -> Result<*mut u32, DriverError> {
        if self.staging.words < words {
            let words = words.next_power_of_two().max(1 << 12);
            let mut start = std::ptr::null_mut();
            // SAFETY: the context is current. The old memory was made here, is freed once, and no copy into
            // it is under way: each is waited for before `read_all` returns.
            unsafe {
                let old = std::mem::replace(&mut self.staging, Staging::EMPTY);
                if !old.start.is_null() {
                    sys::cuMemFreeHost(old.start.cast::<c_void>()).result()?;
                }
                sys::cuMemHostAlloc(&raw mut start, words * 4, 0).result()?;
            }
            self.staging = Staging { start: start.cast::<u32>(), words };
        }
        Ok(self.staging.start)
    }

    /// Puts kernels on a stream.
    fn enqueue(&self, launches: &[Launch], stream: sys::CUstream) -> Result<(), DriverError> {
        for Launch { kernel, grid, params } in launches {
            let mut arguments = [params.as_ptr().cast::<c_void>().cast_mut()];
            let (blocks, threads) = ((grid.blocks.0, grid.blocks.1, 1), (grid.threads, 1, 1));
            let (function, bytes) = (self.functions[*kernel as usize], (grid.shared_words * 4) as u32);
            // SAFETY: the kernel takes one structure by value, which the driver copies from `params` before
            // it returns; the addresses in it are of buffers that live until `drop`, or of the caller, who
            // has promised the same. A graph that holds such addresses is run only for a list of launches
            // that is equal, so the caller has promised it again.
            unsafe {
                if grid.is_cooperative {
                    result::launch_cooperative_kernel(
                        function,
                        blocks,
                        threads,
                        bytes,
                        stream,
                        &mut arguments,
                    )
                } else {
                    result::launch_kernel(function, blocks, threads, bytes, stream, &mut arguments)
                }
            }?;
        }
        Ok(())
    }

    /// Records kernels as a graph. Nothing runs.
    fn record(&self, launches: &[Launch]) -> Result<sys::CUgraphExec, DriverError> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is ours, and what was on it before is no part of what is captured. A capture
        // that was begun is ended in any case. The graph is copied when it is instantiated, and destroyed
        // here.
        unsafe {
            result::stream::begin_capture(self.own_stream, mode)?;
            let enqueued = self.enqueue(launches, self.own_stream);
            let graph = result::stream::end_capture(self.own_stream)?;
            let instantiated =
                enqueued.and_then(|()| result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)));
            let _ = result::graph::destroy(graph);
            instantiated
        }
    }

    fn run_or_record(&mut self, launches: &[Launch]) -> Result<(), DriverError> {
        if let [_] = launches {
            return self.enqueue(launches, self.stream);
        }
        let replayed = match self.graphs.find(launches) {
            Found::Run(dropped) => {
                // SAFETY: nobody has the graph any more; what it is doing on a stream it does to the end.
                dropped.map_or(Ok(()), |graph| unsafe { result::graph::exec_destroy(graph) })?;
                None
            }
            Found::Replay(graph) => Some(graph),
            Found::Record(at) => {
                // A driver that cannot record such launches can still make them one by one.
                let graph = self.record(launches).ok();
                self.graphs.set(at, graph);
                graph
            }
        };
        match replayed {
            // SAFETY: the graph was instantiated on this context, and the stream is ours, or one that the
            // caller keeps alive.
            Some(graph) => unsafe { result::graph::launch(graph, self.stream) },
            None => self.enqueue(launches, self.stream),
        }
    }
}

/// The module for an architecture and its functions, each with as much shared memory as the device has, and
/// the bytes of it that a launch can ask for.
///
/// # Safety
/// A context has to be current.
unsafe fn load(
    major: i32,
    bulk_loads: bool,
    shared_bytes: i32,
) -> Result<(sys::CUmodule, Vec<sys::CUfunction>, i32), DriverError> {
    // SAFETY: the images are copied to where they are aligned as the driver reads them, with zeros behind,
    // which end PTX; they outlive the call.
    let load = |bytes: &[u8]| unsafe {
        let mut image = vec![0u64; bytes.len() / 8 + 2];
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), image.as_mut_ptr().cast::<u8>(), bytes.len());
        result::module::load_data(image.as_ptr().cast::<c_void>())
    };
    let own = CUBINS.iter().find(|(of, _)| *of == major).and_then(|(_, cubin)| load(cubin).ok());
    let module = if bulk_loads { load(BULK.1) } else { own.map_or_else(|| load(PTX), Ok) }?;
    let (mut functions, mut most) = (Vec::new(), shared_bytes);
    for kernel in Kernel::ALL {
        let name = CString::new(kernel.name()).unwrap_or_default();
        // SAFETY: the module was just loaded, and its functions live as long as it.
        unsafe {
            let function = result::module::get_function(module, name)?;
            use sys::CUfunction_attribute_enum as Attribute;
            let fixed = result::function::get_function_attribute(
                function,
                Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
            )?;
            let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            result::function::set_function_attribute(function, attribute, shared_bytes - fixed)?;
            most = most.min(shared_bytes - fixed);
            functions.push(function);
        }
    }
    Ok((module, functions, most))
}

/// The most threads for which each kernel has registers, as the driver says.
///
/// # Safety
/// A context has to be current, and the functions are of a module that is loaded.
unsafe fn max_threads(functions: &[sys::CUfunction]) -> Result<Vec<u32>, DriverError> {
    let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    let of = |&function| {
        // SAFETY: the caller has promised what this needs.
        unsafe { result::function::get_function_attribute(function, attribute) }
    };
    functions.iter().map(|function| of(function).map(|most| u32::try_from(most).unwrap_or(0))).collect()
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // SAFETY: all handles were made in `new` and are not used after; of a lost device nothing can be
        // given back, and errors say no more than that.
        unsafe {
            if self.enter().is_ok() {
                let _ = result::stream::synchronize(self.stream);
                for graph in self.graphs.take() {
                    let _ = result::graph::exec_destroy(graph);
                }
                for event in self.events {
                    let _ = result::event::destroy(event);
                }
                for &address in &self.allocated {
                    let _ = result::free_sync(address);
                }
                if !self.staging.start.is_null() {
                    let _ = sys::cuMemFreeHost(self.staging.start.cast::<c_void>()).result();
                }
                let _ = sys::cuModuleUnload(self.module).result();
                let _ = result::stream::destroy(self.own_stream);
            }
            let _ = result::primary_ctx::release(self.ordinal);
        }
    }
}

impl Device for Cuda {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn max_shared_words(&self) -> usize {
        self.max_shared_words
    }

    fn max_threads(&self, kernel: Kernel) -> u32 {
        self.max_threads[kernel as usize]
    }

    fn resident_blocks(&self, kernel: Kernel, threads: u32, shared_words: usize) -> usize {
        let function = self.functions[kernel as usize];
        let occupancy = self.enter().map(|()| {
            // SAFETY: the context is current, and the function lives as long as its module, which is until
            // `drop`.
            unsafe {
                result::occupancy::max_active_block_per_multiprocessor(
                    function,
                    threads as i32,
                    shared_words * 4,
                )
            }
        });
        occupancy.map_or(0, |blocks| blocks.map_or(0, |blocks| blocks.max(0) as usize))
            * self.n_multiprocessors
    }

    fn allocate(&mut self, words: usize) -> Result<Buffer, DeviceError> {
        self.enter()?;
        let bytes = words.max(1) * 4;
        // SAFETY: the context is current; the memory is freed once, in `drop`. It is set to zero before
        // anything on the stream uses it.
        unsafe {
            let address = result::malloc_sync(bytes).map_err(|_| DeviceError::OutOfMemory { words })?;
            self.allocated.push(address);
            let cleared = result::memset_d8_async(address, 0, bytes, self.stream);
            cleared.map_err(|error| self.fail(error))?;
            Ok(Buffer { address, words })
        }
    }

    fn free(&mut self, buffer: Buffer) -> Result<(), DeviceError> {
        self.synchronize()?;
        self.allocated.retain(|&address| address != buffer.address);
        // SAFETY: the memory was allocated here, is freed once, and nothing on the stream uses it any more.
        unsafe { result::free_sync(buffer.address) }.map_err(|error| self.fail(error))
    }

    fn write(&mut self, buffer: &Buffer, at: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.enter()?;
        assert!(at + words.len() <= buffer.words, "{} words at {at} of {}", words.len(), buffer.words);
        if words.is_empty() {
            return Ok(());
        }
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            self.synchronize()?;
        }
        self.in_flight.push(words.to_vec());
        let from = &self.in_flight[self.in_flight.len() - 1];
        // SAFETY: the range is within the buffer, which lives until `drop`; what is read from is kept until
        // the stream has come past it.
        let copied = unsafe { result::memcpy_htod_async(buffer.address + 4 * at as u64, from, self.stream) };
        copied.map_err(|error| self.fail(error))
    }

    fn read_all(&mut self, parts: &mut [Read<'_>]) -> Result<(), DeviceError> {
        self.enter()?;
        let n_words = parts.iter().map(|part| part.words.len()).sum();
        if n_words == 0 {
            return Ok(());
        }
        let start = self.stage(n_words).map_err(|error| self.fail(error))?;
        let mut to = 0;
        for Read { buffer, at, words } in &*parts {
            assert!(*at + words.len() <= buffer.words, "{} words at {at} of {}", words.len(), buffer.words);
            let (from, bytes) = (buffer.address + 4 * *at as u64, words.len() * 4);
            // SAFETY: the range is within the buffer, which lives until `drop`; the staging memory has room
            // for the words of all parts, is used by this call only, and lives until the copy was waited for
            // below.
            let copied =
                unsafe { sys::cuMemcpyDtoHAsync_v2(start.add(to).cast(), from, bytes, self.stream).result() };
            copied.map_err(|error| self.fail(error))?;
            to += words.len();
        }
        self.synchronize()?;
        let mut from = 0;
        for Read { words, .. } in parts {
            // SAFETY: the copies have been waited for, so these words of the staging memory are initialised,
            // and nobody writes to it.
            words.copy_from_slice(unsafe { std::slice::from_raw_parts(start.add(from), words.len()) });
            from += words.len();
        }
        Ok(())
    }

    fn run(&mut self, launches: &[Launch]) -> Result<(), DeviceError> {
        self.enter()?;
        if let Some(reason) = launches.iter().find_map(|launch| self.refusal(launch)) {
            return Err(DeviceError::Refused { reason });
        }
        // SAFETY: the events live until `drop`; the stream is ours, or one that the caller keeps alive.
        let note =
            |device: &Self, at: usize| unsafe { result::event::record(device.events[at], device.stream) };
        let run = note(self, 0).and_then(|()| self.run_or_record(launches)).and_then(|()| note(self, 1));
        run.map_err(|error| self.fail(error))
    }

    fn graph_counts(&self) -> GraphCounts {
        self.graphs.counts
    }

    fn n_waits(&self) -> usize {
        self.n_waits
    }

    fn synchronize(&mut self) -> Result<(), DeviceError> {
        self.enter()?;
        self.n_waits += 1;
        // SAFETY: the stream is ours, or one that the caller keeps alive.
        unsafe { result::stream::synchronize(self.stream) }.map_err(|error| self.fail(error))?;
        self.in_flight.clear();
        Ok(())
    }

    fn set_stream(&mut self, stream: u64) -> Result<(), DeviceError> {
        self.synchronize()?;
        let given = std::ptr::with_exposed_provenance_mut::<c_void>(stream as usize).cast();
        self.stream = if stream == 0 { self.own_stream } else { given };
        Ok(())
    }

    fn last_run(&mut self) -> Result<f64, DeviceError> {
        self.synchronize()?;
        // SAFETY: both events live until `drop`. That one was never recorded is an error, not more.
        let elapsed = unsafe { result::event::elapsed(self.events[0], self.events[1]) };
        elapsed.map(|milliseconds| f64::from(milliseconds) * 1e3).map_err(|error| self.fail(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_calls_are_told_from_those_of_kernels() {
        use sys::cudaError_enum as Code;
        let of_calls = [
            Code::CUDA_ERROR_INVALID_VALUE,
            Code::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            Code::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            Code::CUDA_ERROR_OUT_OF_MEMORY,
        ];
        let of_kernels = [
            Code::CUDA_ERROR_ILLEGAL_ADDRESS,
            Code::CUDA_ERROR_LAUNCH_FAILED,
            Code::CUDA_ERROR_LAUNCH_TIMEOUT,
            Code::CUDA_ERROR_ILLEGAL_INSTRUCTION,
            Code::CUDA_ERROR_MISALIGNED_ADDRESS,
            Code::CUDA_ERROR_ECC_UNCORRECTABLE,
            Code::CUDA_ERROR_UNKNOWN,
        ];
        assert!(of_calls.into_iter().all(|code| is_of_the_call(DriverError(code))));
        assert!(!of_kernels.into_iter().any(|code| is_of_the_call(DriverError(code))));
    }
}
