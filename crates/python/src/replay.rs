//! The page that shows runs of the decoding loop.

use std::path::PathBuf;
use std::sync::Mutex;

use anygram_replay::{Ending, Run};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::constraint::Constraint;
use crate::decoder::Decoded;
use crate::error::{Raise, invalid};
use crate::gate::work;
use crate::matcher::lock;

/// A page of HTML that shows how canvases were filled: the finished texts of two methods side by side, all
/// steps at once, what was kept, forced and refused, which share of the vocabulary was masked, and the time
/// of each step. One file, which asks for nothing else.
///
/// Args:
///     constraint: that of the runs.
///     facts: lines at the top, such as `{"model": "LLaDA", "prompt": …}`.
///
/// >>> import anygram, numpy
/// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
/// >>> vocabulary = anygram.Vocabulary.from_tokens([b"(", b")", b"x", None, None], eos=[3], mask=4)
/// >>> constraint = anygram.Constraint(language, vocabulary)
/// >>> model = lambda view: numpy.tile(numpy.float32([-0.1, -3, -4, -9, -99]), (len(view.wanted), 1))
/// >>> replay = anygram.Replay(constraint, {"model": "one that likes `(`"})
/// >>> for strategy in ["exact", "none"]:
/// ...     decoded = anygram.Decoder(constraint, strategy).decode(anygram.Canvas([None] * 5), model)
/// ...     replay.add(strategy, decoded)
/// >>> replay.page()[:15]
/// '<!doctype html>'
#[pyclass(frozen, module = "anygram")]
pub struct Replay {
    constraint: Py<Constraint>,
    facts: Vec<(String, String)>,
    runs: Mutex<Vec<Added>>,
}

struct Added {
    name: String,
    decoded: Py<Decoded>,
    functional: Option<bool>,
}

#[pymethods]
impl Replay {
    #[new]
    #[pyo3(signature = (constraint, facts = None))]
    fn new(constraint: Py<Constraint>, facts: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let fact = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok::<_, PyErr>((name.str()?.to_string(), value.str()?.to_string()))
        };
        let facts = facts.into_iter().flatten().map(fact).collect::<PyResult<_>>()?;
        Ok(Self { constraint, facts, runs: Mutex::new(Vec::new()) })
    }

    /// One more run. The first two are shown when the page opens, the others can be chosen.
    ///
    /// Args:
    ///     name: how the page calls it, such as the strategy.
    ///     decoded: how it went, of `Decoder.decode`, `Session.decoded` or a loop of `anygram.diffusion`.
    ///     functional: whether the text is what was asked for, if you know.
    ///
    /// Raises:
    ///     AnygramError: it has tokens that the vocabulary lacks.
    #[pyo3(signature = (name, decoded, *, functional = None))]
    fn add(
        &self,
        py: Python<'_>,
        name: String,
        decoded: Py<Decoded>,
        functional: Option<bool>,
    ) -> PyResult<()> {
        let size = self.constraint.get().inner.vocabulary().len();
        let slots = decoded.get().inner.canvas.slots();
        let stranger = slots.iter().find_map(|slot| match slot {
            anygram::Slot::Fixed(token) if token.index() >= size => Some(token.0),
            _ => None,
        });
        if let Some(token) = stranger {
            let message = format!("token {token} is none of the {size} of the constraint's vocabulary");
            return Err(invalid(py, message));
        }
        // The lock is not held while the interpreter is waited for.
        work(py, || lock(&self.runs).push(Added { name, decoded, functional }));
        Ok(())
    }

    /// The page.
    ///
    /// Raises:
    ///     LimitError: a limit was reached while a text was read.
    fn page(&self, py: Python<'_>) -> PyResult<String> {
        let constraint = &self.constraint.get().inner;
        let make = || {
            let mut replay = anygram_replay::Replay::new(constraint);
            for (name, value) in &self.facts {
                replay.fact(name, value);
            }
            for Added { name, decoded, functional } in lock(&self.runs).iter() {
                let decoded = &decoded.get().inner;
                let ending = Ending::of(constraint, &decoded.canvas)?;
                replay.add(&Run::new(name, decoded, &ending).functional(*functional));
            }
            Ok::<_, anygram::StepError>(replay.page())
        };
        work(py, make).raise(py)
    }

    /// Writes the page to a file.
    ///
    /// Args:
    ///     path: the file, which is replaced.
    ///
    /// Raises:
    ///     LimitError: a limit was reached while a text was read.
    ///     OSError: the file cannot be written.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let page = self.page(py)?;
        Ok(py.detach(|| std::fs::write(path, page))?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let names: Vec<String> =
            work(py, || lock(&self.runs).iter().map(|added| added.name.clone()).collect());
        format!("Replay({})", names.join(", "))
    }
}
