//! A bound on the memory of many tables together.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::session::Session;

/// A bound on the bytes of the tables of many constraints together ([`Constraint::bounded`]).
///
/// After each operation that lets tables grow they are counted. If all together are larger than the bound,
/// those that were not used for the longest time are emptied, until an eighth of the bound is free: what only
/// saves work goes and is computed again where it is asked for, so masks stay exact. Tables that another
/// thread works on are passed over; it counts its own when it is done. What cannot go are the parser states
/// that hold outputs.
///
/// So all tables are within the bound whenever no thread works on them, unless the outputs alone exceed it.
/// Cost: a few atomic operations for each operation on an output. Making room looks at all tables.
///
/// [`Constraint::bounded`]: crate::Constraint::bounded
///
/// ```
/// # use std::sync::Arc;
/// # use anygram_left_to_right::{Constraint, Language, LanguageOptions, TablesBound};
/// # use anygram_vocab::Vocabulary;
/// # let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
/// # let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
/// let bound = TablesBound::new(64 << 20);
/// let constraint = Constraint::new(language, Vocabulary::builtin())?.bounded(&bound);
/// let mut matcher = constraint.matcher()?;
/// matcher.mask()?;
/// assert!(bound.bytes() > 0);
/// drop(matcher);
/// assert_eq!(bound.bytes(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TablesBound {
    most: AtomicUsize,
    bytes: AtomicUsize,
    /// Counts operations: what tells which tables were used last.
    clock: AtomicU64,
    n_emptied: AtomicU64,
    tables: Mutex<Registered>,
}

#[derive(Debug, Default)]
struct Registered {
    all: Vec<(Arc<Account>, Weak<Mutex<Session>>)>,
    /// At how many tables it is time to drop those that are gone.
    tidy_at: usize,
}

/// What a bound knows of one table.
#[derive(Debug, Default)]
struct Account {
    bytes: AtomicUsize,
    /// Of these, what was left when it was emptied last: the states of outputs.
    left: AtomicUsize,
    used_at: AtomicU64,
}

/// The share of a table in a bound. Takes itself off when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    bound: Arc<TablesBound>,
    account: Arc<Account>,
    /// Bytes of what is known of budgets, unless they were asked about since.
    budgets: Option<usize>,
}

impl TablesBound {
    /// A bound of so many bytes.
    pub fn new(bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            most: AtomicUsize::new(bytes),
            bytes: AtomicUsize::default(),
            clock: AtomicU64::default(),
            n_emptied: AtomicU64::default(),
            tables: Mutex::default(),
        })
    }

    /// The bound in bytes.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Another bound. A lower one empties tables now.
    pub fn set_most(&self, bytes: usize) {
        self.most.store(bytes, Ordering::Relaxed);
        self.make_room();
    }

    /// Bytes of all tables together, roughly, as each was after its last operation.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How often a table was emptied to make room.
    pub fn n_emptied(&self) -> u64 {
        self.n_emptied.load(Ordering::Relaxed)
    }

    /// Counts tables that nobody works on yet.
    pub(crate) fn register(self: &Arc<Self>, mut session: Session) -> Arc<Mutex<Session>> {
        let account = Arc::<Account>::default();
        let share = Share { bound: self.clone(), account: account.clone(), budgets: Some(0) };
        session.share = Some(share);
        let session = Arc::new(Mutex::new(session));
        let Registered { all, tidy_at } = &mut *self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= *tidy_at {
            all.retain(|(_, table)| table.strong_count() > 0);
            *tidy_at = 2 * all.len() + 8;
        }
        all.push((account, Arc::downgrade(&session)));
        session
    }

    /// Empties tables, the longest unused first, if all together are too large.
    pub(crate) fn make_room(&self) {
        let most = self.most();
        if self.bytes() <= most {
            return;
        }
        let mut full: Vec<_> = {
            let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
            let full = tables.all.iter().filter(|(account, _)| account.has_more_than_outputs());
            full.map(|(account, table)| (account.used_at.load(Ordering::Relaxed), table.clone())).collect()
        };
        full.sort_unstable_by_key(|table| table.0);
        for (_, table) in full {
            if self.bytes() <= most - most / 8 {
                return;
            }
            // Its lock is not held by this thread, and the table may be the last owner of what it has.
            if table.upgrade().is_some_and(|table| Session::try_empty(&table)) {
                self.n_emptied.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Account {
    fn has_more_than_outputs(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.left.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Counts the table, which was used now. Budgets are counted only where they were asked about, since that
    /// takes long.
    pub fn count(&mut self, others: usize, budgets: impl FnOnce() -> usize) {
        let Self { bound, account, .. } = self;
        account.used_at.store(bound.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let budgets = *self.budgets.get_or_insert_with(budgets);
        self.set(others + budgets);
    }

    /// Budgets are asked about.
    pub fn ask_budgets(&mut self) {
        self.budgets = None;
    }

    fn set(&self, bytes: usize) {
        let before = self.account.bytes.swap(bytes, Ordering::Relaxed);
        // Wraps where it shrinks.
        self.bound.bytes.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Counts the table, which was emptied: it has no budgets then.
    pub fn count_emptied(&mut self, bytes: usize) {
        self.budgets = Some(0);
        self.account.left.store(bytes, Ordering::Relaxed);
        self.set(bytes);
    }

    pub fn bound(&self) -> &Arc<TablesBound> {
        &self.bound
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}
