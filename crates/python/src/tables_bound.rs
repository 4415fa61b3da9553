//! A bound on the tables of many constraints.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::gate::work;
use crate::number::Length;

/// A bound on the bytes of the tables of many constraints together.
///
/// After each operation the tables are counted. If they are larger than the bound, those that were not used
/// for the longest time are emptied: what is known of tokens, masks and budgets goes, and is computed again
/// where it is asked for. Masks stay the same. The states that hold outputs stay, so outputs alone can exceed
/// a bound. Tables that a thread works on are counted when it is done.
///
/// >>> import anygram
/// >>> bound = anygram.TablesBound(64 << 20)
/// >>> language = anygram.Compiler().compile('start: "yes" | "no"', "lark")
/// >>> constraint = anygram.Constraint(language, anygram.Vocabulary.builtin(), bound=bound)
/// >>> mask = constraint.matcher().mask()
/// >>> bound.bytes == constraint.tables_memory, bound.emptied
/// (True, 0)
///
/// Args:
///     most: the bound in bytes.
#[pyclass(frozen, module = "anygram", weakref)]
pub struct TablesBound(pub Arc<anygram::TablesBound>);

#[pymethods]
impl TablesBound {
    #[new]
    fn new(most: Length) -> Self {
        Self(anygram::TablesBound::new(most.0))
    }

    /// The bound in bytes. A lower one empties tables at once.
    #[getter]
    fn most(&self) -> usize {
        self.0.most()
    }

    #[setter]
    fn set_most(&self, py: Python<'_>, most: Length) {
        work(py, || self.0.set_most(most.0));
    }

    /// Bytes of all tables, roughly.
    #[getter]
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// How often tables were emptied to make room.
    #[getter]
    fn emptied(&self) -> u64 {
        self.0.n_emptied()
    }

    fn __repr__(&self) -> String {
        format!("TablesBound({} of {} bytes)", self.bytes(), self.most())
    }
}
