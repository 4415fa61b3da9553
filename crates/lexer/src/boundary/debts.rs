//! Sets of states that must not accept any more, and what bytes do to them if all terminals compete.

use std::sync::Arc;

use anygram_bits::work::{Stopped, Work};
use rustc_hash::FxHashMap;

use super::DebtId;
use crate::dfa::DEAD;
use crate::union::{State, Union};

/// The mark of a byte that breaks a debt.
const BROKEN: u32 = u32::MAX;

/// The debts that were met; 0 is the empty one. States are [`Union::blind`].
#[derive(Clone, Debug)]
pub(super) struct Debts {
    sets: Vec<Box<[State]>>,
    ids: FxHashMap<Box<[State]>, DebtId>,
    /// Of each debt, once it was asked for: by byte class what is owed afterwards.
    rows: Vec<Option<Arc<[u32]>>>,
    joined: FxHashMap<(DebtId, State), DebtId>,
}

impl Debts {
    /// Just the empty one.
    pub fn new() -> Self {
        let mut this = Self {
            sets: Vec::new(),
            ids: FxHashMap::default(),
            rows: Vec::new(),
            joined: FxHashMap::default(),
        };
        this.intern(&[]);
        this
    }

    /// How many were met.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// The states of a debt, in ascending order.
    pub fn get(&self, debt: DebtId) -> &[State] {
        &self.sets[debt.index()]
    }

    /// The debt of these states (sorted, without repetition), if it was met.
    pub fn find(&self, states: &[State]) -> Option<DebtId> {
        self.ids.get(states).copied()
    }

    /// The debt of these states (sorted, without repetition).
    pub fn intern(&mut self, states: &[State]) -> DebtId {
        if let Some(id) = self.find(states) {
            return id;
        }
        let id = DebtId::new(self.sets.len());
        self.sets.push(states.into());
        self.ids.insert(states.into(), id);
        self.rows.push(None);
        id
    }

    /// What is owed after a piece that ended in `state` and could have gone on, beside an older debt.
    pub fn join(&mut self, union: &Union, debt: DebtId, state: State) -> DebtId {
        let own = union.blind(state);
        if let Some(&known) = self.joined.get(&(debt, own)) {
            return known;
        }
        let mut states = self.get(debt).to_vec();
        if let Err(place) = states.binary_search(&own) {
            states.insert(place, own);
        }
        let id = self.intern(&states);
        self.joined.insert((debt, own), id);
        id
    }

    /// Where bytes lead from a lexeme in progress without breaking its debt: states of the union that are
    /// not dead, each with what is owed there; sorted, without repetition.
    pub fn moves(
        &mut self,
        union: &Union,
        state: State,
        debt: DebtId,
        into: &mut Vec<(State, DebtId)>,
        work: &mut Work,
    ) -> Result<(), Stopped> {
        work.spend(union.n_classes())?;
        into.clear();
        let row = self.row(union, debt, work)?;
        for (class, &after) in row.iter().enumerate() {
            let next = (union.step(state, class), DebtId(after));
            // Neighbouring classes mostly do the same.
            if next.0 != DEAD && after != BROKEN && into.last() != Some(&next) {
                into.push(next);
            }
        }
        into.sort_unstable();
        into.dedup();
        Ok(())
    }

    /// What is left of a debt after a text, by byte class; `None` if it was broken.
    pub fn read(
        &mut self,
        union: &Union,
        mut debt: DebtId,
        text: &[usize],
        work: &mut Work,
    ) -> Result<Option<DebtId>, Stopped> {
        work.spend(text.len())?;
        for &class in text {
            let after = self.row(union, debt, work)?[class];
            if after == BROKEN {
                return Ok(None);
            }
            debt = DebtId(after);
        }
        Ok(Some(debt))
    }

    fn row(&mut self, union: &Union, debt: DebtId, work: &mut Work) -> Result<Arc<[u32]>, Stopped> {
        if let Some(row) = &self.rows[debt.index()] {
            return Ok(row.clone());
        }
        let states = self.sets[debt.index()].clone();
        work.spend(union.n_classes() * states.len())?;
        let mut owed = Vec::with_capacity(states.len());
        // Neighbouring classes mostly do the same.
        let mut last: (Vec<State>, u32) = (Vec::new(), DebtId(0).0);
        let mut step = |class| {
            owed.clear();
            for &state in &states {
                let next = union.step(state, class);
                if !union.accepts(next).is_empty() {
                    return BROKEN;
                }
                if !union.live(next).is_empty() {
                    owed.push(union.blind(next));
                }
            }
            owed.sort_unstable();
            owed.dedup();
            if owed != last.0 {
                last.1 = self.intern(&owed).0;
                last.0.clone_from(&owed);
            }
            last.1
        };
        let row: Arc<[u32]> = (0..union.n_classes()).map(&mut step).collect();
        self.rows[debt.index()] = Some(row.clone());
        Ok(row)
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let sets = self.sets.iter().map(|set| 2 * size_of_val(&**set) + 64);
        let rows = self.rows.iter().flatten().map(|row| size_of_val(&**row));
        sets.sum::<usize>() + size_of_val(&*self.rows) + rows.sum::<usize>() + self.joined.len() * 32
    }

    /// Forgets what can be found again.
    pub fn shrink(&mut self) {
        self.rows.iter_mut().for_each(|row| *row = None);
        self.joined = FxHashMap::default();
    }
}
