//! Makes the generations that a file does not have yet, on all cores.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::worker::{Tasks, Worker};
use crate::{EvalError, Generation, Item, Key, Plan};

/// Where generations go, one after the other.
pub type Sink<'a> = dyn FnMut(Generation) -> Result<(), EvalError> + Send + 'a;

/// Makes the generations of a plan but those that are done, and hands each out, in the order of the plan.
/// What comes out (all but times) does not depend on the number of threads, which is rayon's, nor on what was
/// done before. Prompts that a task does not have are left out.
///
/// One thing can differ, and only where a limit of steps is hit: tables that are warm hit it elsewhere (see
/// `docs/algorithms/decoding.md`).
pub fn run(plan: &Plan, done: &HashSet<Key>, sink: &mut Sink<'_>) -> Result<(), EvalError> {
    let tasks = Tasks::new(plan)?;
    let is_left = |item: &Item| tasks.has(item) && !done.contains(&plan.key(item));
    let items: Vec<Item> = plan.items()?.into_iter().filter(is_left).collect();
    let next = AtomicUsize::new(0);
    let ordered = Mutex::new(Ordered { next: 0, waiting: BTreeMap::new(), sink, error: None });
    let work = || {
        let mut worker = Worker::new(plan, &tasks);
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return };
            let made = worker.generate(item);
            let mut ordered = ordered.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            if !ordered.put(at, made) {
                return;
            }
        }
    };
    // One loop a thread. Each has a worker of its own, so it does no harm if a method that uses threads
    // itself makes one thread begin the loop of another.
    rayon::scope(|scope| (0..rayon::current_num_threads()).for_each(|_| scope.spawn(|_| work())));
    let ordered = ordered.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    ordered.error.map_or(Ok(()), Err)
}

/// Generations as they come, handed out as the plan has them.
struct Ordered<'a, 'b> {
    next: usize,
    waiting: BTreeMap<usize, Generation>,
    sink: &'a mut Sink<'b>,
    error: Option<EvalError>,
}

impl Ordered<'_, '_> {
    /// Whether to go on.
    fn put(&mut self, at: usize, made: Result<Generation, EvalError>) -> bool {
        if self.error.is_none() {
            let put = made.and_then(|made| {
                self.waiting.insert(at, made);
                while let Some(ready) = self.waiting.remove(&self.next) {
                    self.next += 1;
                    (self.sink)(ready)?;
                }
                Ok(())
            });
            self.error = put.err();
        }
        self.error.is_none()
    }
}
