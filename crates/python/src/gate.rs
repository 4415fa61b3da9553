//! Work without the interpreter's lock, and `fork()`.
//!
//! A process may fork while other threads work. The child has only the thread that forked, so a lock that
//! another thread held stays locked there for ever. Therefore all work passes a gate, and whoever forks waits
//! until nobody is inside, and closes it until the fork is done: in the child all locks are free. Work that
//! keeps the interpreter's lock needs no gate, as forking from Python needs that lock too.
//!
//! Threads do not survive either: the pool belongs to a process id, and the child makes its own.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::invalid;
use crate::number::Threads;

static GATE: RwLock<()> = RwLock::new(());

thread_local! {
    /// How often this thread is inside: only the outermost work holds the gate, as one that waits to fork
    /// stops new readers, also those that are readers already.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    static INSIDE: RefCell<Option<RwLockReadGuard<'static, ()>>> = const { RefCell::new(None) };
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

fn enter() {
    DEPTH.set(DEPTH.get() + 1);
    if DEPTH.get() == 1 {
        let guard = GATE.read().unwrap_or_else(PoisonError::into_inner);
        INSIDE.set(Some(guard));
    }
}

fn leave() {
    DEPTH.set(DEPTH.get() - 1);
    if DEPTH.get() == 0 {
        drop(INSIDE.take());
    }
}

/// Leaves the gate when it is dropped, also by a panic.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        leave();
    }
}

/// Works without the interpreter's lock. All locks that are taken for it are released in it.
pub fn work<T: Send>(py: Python<'_>, job: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        enter();
        let _inside = Inside;
        job()
    })
}

/// Lets others fork while a callback of the caller runs in the middle of work.
pub fn outside<T>(callback: impl FnOnce() -> T) -> T {
    /// Comes back in with the depth that it had.
    struct Back(usize);
    impl Drop for Back {
        fn drop(&mut self) {
            let guard = GATE.read().unwrap_or_else(PoisonError::into_inner);
            INSIDE.set(Some(guard));
            DEPTH.set(self.0);
        }
    }
    let _back = Back(DEPTH.replace(0));
    drop(INSIDE.take());
    callback()
}

/// Closes the gate, after all work has ended.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    py.detach(|| FORKING.set(Some(GATE.write().unwrap_or_else(PoisonError::into_inner))));
}

/// Opens it again, in both processes.
#[pyfunction]
fn after_fork() {
    drop(FORKING.take());
}

/// Asks to be told of forks.
pub fn watch(py: Python<'_>, module: &Bound<'_, PyModule>) -> PyResult<()> {
    let os = py.import("os")?;
    let Ok(register) = os.getattr("register_at_fork") else { return Ok(()) };
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork, module)?)?;
    register.call((), Some(&hooks)).map(drop)
}

/// The pools of this process by their numbers of threads.
struct Pools {
    process: u32,
    by_size: Vec<(usize, Arc<ThreadPool>)>,
}

static POOLS: Mutex<Pools> = Mutex::new(Pools { process: 0, by_size: Vec::new() });

/// The number of cores. To find it out takes longer than most batches.
fn n_cores() -> usize {
    static N_CORES: OnceLock<usize> = OnceLock::new();
    *N_CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// A pool of so many threads, by default one for each core. It is made when it is first asked for.
pub fn pool(py: Python<'_>, n_threads: Option<Threads>) -> PyResult<Arc<ThreadPool>> {
    let n_threads = n_threads.map_or_else(n_cores, |threads| threads.0);
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if pools.process != process {
        // The threads of those that the parent made are not here: nobody could wait for their end.
        std::mem::forget(std::mem::take(&mut pools.by_size));
        pools.process = process;
    }
    if let Some((_, pool)) = pools.by_size.iter().find(|(size, _)| *size == n_threads) {
        return Ok(pool.clone());
    }
    let name = |at| format!("anygram-{at}");
    let pool = ThreadPoolBuilder::new().num_threads(n_threads).thread_name(name).build();
    let pool =
        Arc::new(pool.map_err(|error| invalid(py, format!("cannot start {n_threads} threads: {error}")))?);
    pools.by_size.push((n_threads, pool.clone()));
    Ok(pool)
}
