//! Questions about canvases, and their answers.

use std::sync::Mutex;

use anygram::{CanvasError, Decision, Filling, Witness};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::canvas::Canvas;
use crate::constraint::Constraint;
use crate::error::{Raise, invalid, undecided};
use crate::gate::{pool, work};
use crate::matcher::{lock, words_to_numpy};
use crate::number::{Hole, Index, SlotNumber, Threads};
use crate::tokens::{Token, ids};

/// Answers questions about canvases of one constraint. Its tables make later questions faster.
///
/// Threads may share it and take turns; one for each thread is faster. Other threads of Python run meanwhile.
///
/// >>> import anygram
/// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
/// >>> vocabulary = anygram.Vocabulary.from_tokens([b"(", b")", b"x", None], eos=[3])
/// >>> solver = anygram.Solver(anygram.Constraint(language, vocabulary))
/// >>> canvas = anygram.Canvas([0, None, None])  # `(` and two holes
/// >>> solver.completable(canvas)
/// Answer(True, witness=[0, 2, 1])
/// >>> solver.admissible(canvas).masks  # a row for each hole
/// array([[4],
///        [2]], dtype=uint32)
/// >>> solver.compatible(canvas, [(2, 1), (1, 0), (1, 2)])
/// [True, False, True]
/// >>> solver.minimum(anygram.Canvas([0, anygram.GAP])).tokens
/// 3
///
/// Raises:
///     LimitError: the tables of this constraint are too large.
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Solver {
    inner: Mutex<anygram::Solver>,
    constraint: Py<Constraint>,
}

/// The slots of a completion: token ids, for a gap a list of them.
pub fn slots<'py>(py: Python<'py>, slots: &[Filling]) -> PyResult<Bound<'py, PyList>> {
    let slot = |filling: &Filling| match filling {
        Filling::Token(token) => Ok::<_, PyErr>(token.0.into_pyobject(py)?.into_any()),
        Filling::Tokens(tokens) => Ok(ids(tokens).into_pyobject(py)?.into_any()),
    };
    PyList::new(py, slots.iter().map(slot).collect::<PyResult<Vec<_>>>()?)
}

impl Solver {
    fn ask<T: Send>(&self, py: Python<'_>, question: impl FnOnce(&mut anygram::Solver) -> T + Send) -> T {
        work(py, || question(&mut lock(&self.inner)))
    }
}

#[pymethods]
impl Solver {
    #[new]
    fn new(py: Python<'_>, constraint: Py<Constraint>) -> PyResult<Self> {
        let made = work(py, || anygram::Solver::new(&constraint.get().inner)).raise(py)?;
        Ok(Self { inner: Mutex::new(made), constraint })
    }

    /// Whether there is a choice of tokens for all holes and gaps that makes the canvas end as it says.
    ///
    /// A yes is confirmed by a witness, and a no is proven. At a limit, and in the lexer mode `contextual`
    /// also where no proof is found, the answer is `None`.
    ///
    /// Raises (as all questions):
    ///     AnygramError: the canvas has a token that the vocabulary does not have.
    fn completable(&self, py: Python<'_>, canvas: &Canvas) -> PyResult<Answer> {
        let canvas = canvas.value();
        let decision = self.ask(py, |solver| solver.completable(&canvas)).raise(py)?;
        let proven = decision.decided().is_some();
        Ok(Answer { decision: decision.map(Some), proven })
    }

    /// For every hole the tokens with which the canvas stays completable, EOS and PAD among them.
    fn admissible(&self, py: Python<'_>, canvas: &Canvas) -> PyResult<Admissible> {
        let canvas = canvas.value();
        let inner = self.ask(py, |solver| solver.admissible(&canvas)).raise(py)?;
        Ok(Admissible { n_words: self.constraint.get().inner.mask_words(), inner })
    }

    /// Scans proposals `(slot, token)` for holes in the given order and keeps each if the canvas with those
    /// kept so far and this one is completable.
    ///
    /// Returns:
    ///     For each `True` if it is kept, `False` if not, and `None`, not kept either, if that was not
    ///     decided.
    fn compatible(
        &self,
        py: Python<'_>,
        canvas: &Canvas,
        proposals: Vec<(SlotNumber, Token)>,
    ) -> PyResult<Vec<Option<bool>>> {
        let canvas = canvas.value();
        let proposals: Vec<_> = proposals.into_iter().map(|(slot, token)| (slot.0, token.0)).collect();
        let decisions = self.ask(py, |solver| solver.compatible(&canvas, &proposals)).raise(py)?;
        Ok(decisions.iter().map(Decision::decided).collect())
    }

    /// The fewest text tokens of a completion.
    fn minimum(&self, py: Python<'_>, canvas: &Canvas) -> PyResult<Minimum> {
        let canvas = canvas.value();
        Ok(Minimum { decision: self.ask(py, |solver| solver.minimum(&canvas)).raise(py)? })
    }

    /// Counts from now on, or no longer, what each stage of the search is worth; earlier counts are
    /// forgotten.
    fn count_stages(&self, py: Python<'_>, is_on: bool) {
        self.ask(py, |solver| solver.count_stages(is_on));
    }

    /// What was counted: for each stage that ran a dict with `"stage"`, `"runs"`, `"decided"`, `"steps"`
    /// and `"seconds"`.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let counts: Vec<_> = self.ask(py, |solver| solver.counters().iter().cloned().collect());
        let fields = |count: anygram::StageCount| {
            let fields = PyDict::new(py);
            fields.set_item("stage", count.stage)?;
            fields.set_item("runs", count.runs)?;
            fields.set_item("decided", count.decided)?;
            fields.set_item("steps", count.steps)?;
            fields.set_item("seconds", count.time.as_secs_f64())?;
            Ok(fields)
        };
        counts.into_iter().map(fields).collect()
    }

    /// The constraint.
    #[getter]
    fn constraint(&self, py: Python<'_>) -> Py<Constraint> {
        self.constraint.clone_ref(py)
    }

    /// Bytes on the heap, roughly.
    #[getter]
    fn memory_usage(&self, py: Python<'_>) -> usize {
        self.ask(py, |solver| solver.memory_usage())
    }

    /// A solver of the same constraint, with empty tables.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        Ok((slf.get_type().into_any(), (slf.get().constraint.bind(py),).into_pyobject(py)?))
    }
}

/// Asks the same of many canvases, on as many threads as solvers.
///
/// Args:
///     solvers: each takes the next canvas as soon as it is free. Give each once.
///     canvases: what is asked about.
///     question: `"completable"` or `"admissible"`.
///
/// Returns:
///     For each canvas an `Answer` or `Admissible`, as the methods of `Solver` give them, or the exception
///     why there is none. Which solver answers can change a witness, and what stays undecided at a limit.
///
/// Raises:
///     AnygramError: there is no solver, one is there twice, or there is no such question.
#[pyfunction]
#[pyo3(signature = (solvers, canvases, question = "completable"))]
pub fn batch_canvases<'py>(
    py: Python<'py>,
    solvers: &Bound<'py, PyAny>,
    canvases: &Bound<'py, PyAny>,
    question: &str,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let solvers = solvers.try_iter()?.map(|solver| Ok(solver?.cast_into::<Solver>()?));
    let mut solvers = solvers.collect::<PyResult<Vec<Bound<'py, Solver>>>>()?;
    // In one order for all calls, so that two of them do not wait for each other in a circle.
    solvers.sort_by_key(|solver| solver.as_ptr() as usize);
    if solvers.is_empty() || solvers.windows(2).any(|pair| pair[0].is(&pair[1])) {
        return Err(invalid(py, "give at least one solver, and each once"));
    }
    let canvases = canvases.try_iter()?.map(|canvas| Ok(canvas?.cast::<Canvas>()?.get().value()));
    let canvases = canvases.collect::<PyResult<Vec<anygram::Canvas>>>()?;
    let inner: Vec<&Mutex<anygram::Solver>> = solvers.iter().map(|solver| &solver.get().inner).collect();
    let threads = inner.len().into_pyobject(py)?.extract::<Threads>()?;
    let pool = pool(py, Some(threads))?;
    match question {
        "completable" => {
            let answers = ask_all(py, &pool, &inner, &canvases, anygram::Solver::completable);
            let object = |decision: Decision<Witness>| {
                let proven = decision.decided().is_some();
                Ok(Bound::new(py, Answer { decision: decision.map(Some), proven })?.into_any())
            };
            answers.into_iter().map(|answer| or_exception(py, answer, object)).collect()
        }
        "admissible" => {
            let answers = ask_all(py, &pool, &inner, &canvases, anygram::Solver::admissible);
            let n_words = solvers[0].get().constraint.get().inner.mask_words();
            let object = |inner| Ok(Bound::new(py, Admissible { n_words, inner })?.into_any());
            answers.into_iter().map(|answer| or_exception(py, answer, object)).collect()
        }
        _ => {
            let message = "it can be \"completable\" or \"admissible\"";
            Err(invalid(py, format!("question is \"{question}\"; {message}")))
        }
    }
}

fn ask_all<T: Send>(
    py: Python<'_>,
    pool: &rayon::ThreadPool,
    solvers: &[&Mutex<anygram::Solver>],
    canvases: &[anygram::Canvas],
    question: impl Fn(&mut anygram::Solver, &anygram::Canvas) -> T + Sync + Send,
) -> Vec<T> {
    work(py, || {
        let mut guards: Vec<_> = solvers.iter().map(|solver| lock(solver)).collect();
        let mut solvers: Vec<&mut anygram::Solver> = guards.iter_mut().map(|guard| &mut **guard).collect();
        pool.install(|| anygram::batch_canvases(&mut solvers, canvases, question))
    })
}

/// The object of an answer, or the exception as an object.
fn or_exception<'py, T>(
    py: Python<'py>,
    answer: Result<T, CanvasError>,
    object: impl FnOnce(T) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match answer.raise(py) {
        Ok(answer) => object(answer),
        Err(error) => Ok(error.into_value(py).into_bound(py).into_any()),
    }
}

/// Whether a canvas is completable.
#[pyclass(frozen, module = "anygram")]
pub struct Answer {
    pub decision: Decision<Option<Witness>>,
    pub proven: bool,
}

#[pymethods]
impl Answer {
    /// `True`, `False`, or `None` if it was not decided.
    #[getter]
    fn answer(&self) -> Option<bool> {
        self.decision.decided()
    }

    /// Whether that is certain. Always for a yes or no of `Solver`; see `Methods` for others.
    #[getter]
    fn proven(&self) -> bool {
        self.proven
    }

    /// Of a yes: what stands in each slot, a token id, or for a gap a list of them.
    #[getter]
    fn witness<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        self.shown().map(|witness| slots(py, &witness.slots)).transpose()
    }

    /// Of a yes about a prefix with a bound on what remains: tokens that make a sentence of it.
    #[getter]
    fn closing(&self) -> Option<Vec<u32>> {
        self.shown().map(|witness| ids(&witness.closing))
    }

    /// Why it was not decided.
    #[getter]
    fn why(&self) -> Option<String> {
        self.decision.undecided().map(ToString::to_string)
    }

    /// The answer; raises `AnygramError` if there is none, as that is no no.
    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        match &self.decision {
            Decision::Yes(_) => Ok(true),
            Decision::No => Ok(false),
            Decision::Unknown(why) => Err(undecided(py, why)),
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(match (&self.decision, self.witness(py)?) {
            (Decision::Yes(_), Some(witness)) => format!("Answer(True, witness={})", witness.repr()?),
            (Decision::Yes(_), None) => format!("Answer(True, proven={})", python_bool(self.proven)),
            (Decision::No, _) => format!("Answer(False, proven={})", python_bool(self.proven)),
            (Decision::Unknown(why), _) => format!("Answer(None, why={:?})", why.to_string()),
        })
    }
}

fn python_bool(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

impl Answer {
    fn shown(&self) -> Option<&Witness> {
        match &self.decision {
            Decision::Yes(witness) => witness.as_ref(),
            Decision::No | Decision::Unknown(_) => None,
        }
    }
}

/// The fewest text tokens of a completion.
#[pyclass(frozen, module = "anygram")]
pub struct Minimum {
    decision: Decision<usize>,
}

#[pymethods]
impl Minimum {
    /// Whether the canvas is completable; `None` if it was not decided.
    #[getter]
    fn answer(&self) -> Option<bool> {
        self.decision.decided()
    }

    /// Of a yes: how many.
    #[getter]
    fn tokens(&self) -> Option<usize> {
        match self.decision {
            Decision::Yes(fewest) => Some(fewest),
            Decision::No | Decision::Unknown(_) => None,
        }
    }

    /// Why it was not decided.
    #[getter]
    fn why(&self) -> Option<String> {
        self.decision.undecided().map(ToString::to_string)
    }

    fn __repr__(&self) -> String {
        match &self.decision {
            Decision::Yes(fewest) => format!("Minimum(True, tokens={fewest})"),
            Decision::No => "Minimum(False)".to_owned(),
            Decision::Unknown(why) => format!("Minimum(None, why={:?})", why.to_string()),
        }
    }
}

/// For every hole of a canvas the tokens with which it stays completable.
#[pyclass(frozen, module = "anygram")]
pub struct Admissible {
    inner: anygram::Admissible,
    n_words: usize,
}

#[pymethods]
impl Admissible {
    /// A mask for each hole, in order: `uint32[holes, mask_words]`. A set bit is certain; where a hole was
    /// not wholly decided (`undecided`) a bit that is not set says nothing.
    #[getter]
    fn masks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let words: Vec<u32> = self.inner.masks.iter().flat_map(|mask| mask.words()).copied().collect();
        words_to_numpy(py, &words)?.call_method1("reshape", (self.inner.masks.len(), self.n_words))
    }

    /// For each hole why it was not wholly decided, `None` where it was. True if any was not.
    #[getter]
    fn undecided(&self) -> Undecided {
        let why = |why: &Option<anygram::Undecided>| why.as_ref().map(ToString::to_string);
        Undecided(self.inner.undecided.iter().map(why).collect())
    }

    /// Whether a token is admissible in a hole, by the hole's number among the holes: `True`, `False`, or
    /// `None` if that was not decided.
    fn get(&self, py: Python<'_>, hole: Hole, token: Token) -> PyResult<Option<bool>> {
        let (hole, n_holes) = (hole.0, self.inner.masks.len());
        if hole >= n_holes {
            return Err(invalid(py, format!("there is no hole {hole}: the canvas has {n_holes}")));
        }
        Ok(self.inner.get(hole, token.0).decided())
    }

    fn __len__(&self) -> usize {
        self.inner.masks.len()
    }

    fn __repr__(&self) -> String {
        let n_open = self.inner.undecided.iter().flatten().count();
        format!("Admissible({} holes, {n_open} of them undecided)", self.inner.masks.len())
    }
}

/// For each hole why it was not wholly decided. True if any was not.
#[pyclass(frozen, sequence, module = "anygram")]
pub struct Undecided(Vec<Option<String>>);

#[pymethods]
impl Undecided {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __bool__(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    fn __getitem__(&self, hole: Index) -> PyResult<Option<&str>> {
        let hole = hole.0;
        let at = if hole < 0 { self.0.len().checked_sub(hole.unsigned_abs()) } else { Some(hole as usize) };
        let found = at.and_then(|at| self.0.get(at));
        found.map(Option::as_deref).ok_or_else(|| PyIndexError::new_err(format!("there is no hole {hole}")))
    }

    fn __repr__(&self) -> String {
        let why =
            |why: &Option<String>| why.as_ref().map_or_else(|| "None".to_owned(), |why| format!("{why:?}"));
        format!("Undecided([{}])", self.0.iter().map(why).collect::<Vec<_>>().join(", "))
    }
}
