//! The best completion of a canvas, samples, and answers of published methods.

use std::sync::Mutex;

use anygram::{
    Assignment, Complete, Decision, IntersectionBy, IntersectionOptions, Lookahead, Method, SampleOptions,
    Tail,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::canvas::Canvas;
use crate::constraint::Constraint;
use crate::error::{Raise, invalid};
use crate::gate::work;
use crate::log_probs::LogProbs;
use crate::matcher::lock;
use crate::number::{Drawn, Fillings, Resamples, Seed, SlotNumber, States, Steps};
use crate::solver::Answer;
use crate::tokens::{Token, ids};

/// The likeliest completion of a canvas by log-probabilities, and exact samples.
///
/// Threads may share it and take turns. Log-probabilities are `LogProbs`, or an array as `LogProbs.dense`
/// takes it.
///
/// >>> import anygram, numpy
/// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
/// >>> vocabulary = anygram.Vocabulary.from_tokens([b"(", b")", b"x", None], eos=[3])
/// >>> weigher = anygram.Weigher(anygram.Constraint(language, vocabulary))
/// >>> log_probs = numpy.tile(numpy.float32([-2, -3, -0.5, -5]), (3, 1))  # it likes `x` best everywhere
/// >>> weigher.best(anygram.Canvas([None, None, None]), log_probs)
/// Best(tokens=[0, 2, 1], log_prob=-5.5, widened=False)
/// >>> weigher.sample(anygram.Canvas([None, None, None]), log_probs, count=2, seed=1).tokens
/// [[0, 2, 1], [0, 2, 1]]
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Weigher {
    inner: Mutex<anygram::Weigher>,
    constraint: Py<Constraint>,
}

/// Samples of one question, in tokens.
const MOST_SAMPLED: usize = 1 << 26;

fn tail(py: Python<'_>, name: &str) -> PyResult<Tail> {
    match name {
        "counted" => Ok(Tail::Counted),
        "free" => Ok(Tail::Free),
        _ => Err(invalid(py, format!("tail is \"{name}\"; it can be \"counted\" or \"free\""))),
    }
}

#[pymethods]
impl Weigher {
    #[new]
    fn new(py: Python<'_>, constraint: Py<Constraint>) -> PyResult<Self> {
        let made = work(py, || anygram::Weigher::new(&constraint.get().inner)).raise(py)?;
        Ok(Self { inner: Mutex::new(made), constraint })
    }

    /// The completion of a canvas without gaps with the greatest sum of log-probabilities: exact, over all
    /// tokens, in every lexer mode.
    ///
    /// Args:
    ///     canvas: the canvas.
    ///     log_probs: a row for each hole.
    ///     tail: `"counted"`: every hole counts; `"free"`: those after the first EOS do not.
    ///
    /// Raises:
    ///     AnygramError: the canvas has a gap, or rows and holes do not fit.
    #[pyo3(signature = (canvas, log_probs, *, tail = "counted"))]
    fn best(
        &self,
        py: Python<'_>,
        canvas: &Canvas,
        log_probs: &Bound<'_, PyAny>,
        tail: &str,
    ) -> PyResult<Best> {
        let (canvas, tail, weights) = (canvas.value(), self::tail(py, tail)?, self.weights(py, log_probs)?);
        let decision = work(py, || lock(&self.inner).best(&canvas, &weights, tail)).raise(py)?;
        Ok(Best { decision })
    }

    /// Completions of a canvas without gaps, drawn from exactly the distribution of the log-probabilities
    /// under the condition that they are valid.
    ///
    /// Args:
    ///     canvas, log_probs, tail: as for `best`.
    ///     count: how many.
    ///     seed: the same seed, the same samples.
    #[pyo3(
        signature = (canvas, log_probs, *, count = Drawn(1), seed = Seed(0), tail = "counted"),
        text_signature = "($self, canvas, log_probs, *, count=1, seed=0, tail='counted')"
    )]
    fn sample(
        &self,
        py: Python<'_>,
        canvas: &Canvas,
        log_probs: &Bound<'_, PyAny>,
        count: Drawn,
        seed: Seed,
        tail: &str,
    ) -> PyResult<Samples> {
        let (canvas, tail, weights) = (canvas.value(), self::tail(py, tail)?, self.weights(py, log_probs)?);
        let n_slots = canvas.slots().len();
        let (count, seed) = (count.0, seed.0);
        if count.saturating_mul(n_slots) > MOST_SAMPLED {
            return Err(invalid(py, format!("{count} samples of {n_slots} slots are too many: draw fewer")));
        }
        let options = SampleOptions { tail, seed, count };
        let decision = work(py, || lock(&self.inner).sample(&canvas, &weights, options)).raise(py)?;
        Ok(Samples { decision })
    }

    /// The constraint.
    #[getter]
    fn constraint(&self, py: Python<'_>) -> Py<Constraint> {
        self.constraint.clone_ref(py)
    }

    /// Bytes on the heap, roughly.
    #[getter]
    fn memory_usage(&self, py: Python<'_>) -> usize {
        work(py, || lock(&self.inner).memory_usage())
    }
}

impl Weigher {
    fn weights(&self, py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<anygram::LogProbs> {
        LogProbs::of(py, given, self.constraint.get().inner.vocabulary().len())
    }
}

/// The best completion.
#[pyclass(frozen, module = "anygram")]
pub struct Best {
    decision: Decision<Assignment>,
}

#[pymethods]
impl Best {
    /// Whether the canvas is completable; `None` if it was not decided.
    #[getter]
    fn answer(&self) -> Option<bool> {
        self.decision.decided()
    }

    /// Of a yes: the tokens of all slots.
    #[getter]
    fn tokens(&self) -> Option<Vec<u32>> {
        self.shown().map(|best| ids(&best.tokens))
    }

    /// Of a yes: the sum of the log-probabilities of all holes that count.
    #[getter]
    fn log_prob(&self) -> Option<f64> {
        self.shown().map(|best| best.log_prob)
    }

    /// Whether a hole that counts has a token that was not listed.
    #[getter]
    fn widened(&self) -> bool {
        self.shown().is_some_and(|best| best.widened)
    }

    /// Why it was not decided.
    #[getter]
    fn why(&self) -> Option<String> {
        self.decision.undecided().map(ToString::to_string)
    }

    fn __repr__(&self) -> String {
        match (&self.decision, self.shown()) {
            (_, Some(best)) => {
                let widened = if best.widened { "True" } else { "False" };
                let (tokens, log_prob) = (ids(&best.tokens), best.log_prob);
                format!("Best(tokens={tokens:?}, log_prob={log_prob}, widened={widened})")
            }
            (Decision::Unknown(why), None) => format!("Best(None, why={:?})", why.to_string()),
            _ => "Best(False)".to_owned(),
        }
    }
}

impl Best {
    fn shown(&self) -> Option<&Assignment> {
        match &self.decision {
            Decision::Yes(best) => Some(best),
            Decision::No | Decision::Unknown(_) => None,
        }
    }
}

/// Completions that were drawn.
#[pyclass(frozen, module = "anygram")]
pub struct Samples {
    decision: Decision<Vec<Assignment>>,
}

#[pymethods]
impl Samples {
    /// Whether the canvas is completable; `None` if it was not decided.
    #[getter]
    fn answer(&self) -> Option<bool> {
        self.decision.decided()
    }

    /// Of a yes: for each sample the tokens of all slots.
    #[getter]
    fn tokens(&self) -> Option<Vec<Vec<u32>>> {
        self.shown().map(|samples| samples.iter().map(|sample| ids(&sample.tokens)).collect())
    }

    /// Of a yes: for each sample the sum of the log-probabilities of all holes that count.
    #[getter]
    fn log_probs(&self) -> Option<Vec<f64>> {
        self.shown().map(|samples| samples.iter().map(|sample| sample.log_prob).collect())
    }

    /// Why it was not decided.
    #[getter]
    fn why(&self) -> Option<String> {
        self.decision.undecided().map(ToString::to_string)
    }

    fn __repr__(&self) -> String {
        match (&self.decision, self.shown()) {
            (_, Some(samples)) => format!("Samples({})", samples.len()),
            (Decision::Unknown(why), None) => format!("Samples(None, why={:?})", why.to_string()),
            _ => "Samples(False)".to_owned(),
        }
    }
}

impl Samples {
    fn shown(&self) -> Option<&[Assignment]> {
        match &self.decision {
            Decision::Yes(samples) => Some(samples),
            Decision::No | Decision::Unknown(_) => None,
        }
    }
}

/// Whether a canvas is completable, by the published methods and ours.
///
/// | method | its question | a yes | a no |
/// |---|---|---|---|
/// | `"exact"` | the canvas as it is | proven | proven |
/// | `"intersection"` (IG-CD) | each run of holes as a gap | mostly not proven | proven |
/// | `"lookahead"` (LAVE) | whether a drawn filling can be completed | proven | mostly not proven |
/// | `"forced-sequential"` | the text before the first hole | mostly not proven | proven |
/// | `"none"` | nothing | not proven | never said |
///
/// >>> import anygram
/// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
/// >>> vocabulary = anygram.Vocabulary.from_tokens([b"(", b")", b"x", None], eos=[3])
/// >>> methods = anygram.Methods(anygram.Constraint(language, vocabulary))
/// >>> canvas = anygram.Canvas([0, None, 1, 1])  # `( _ ) )`: nothing suits
/// >>> methods.completable(canvas, "exact"), methods.completable(canvas, "intersection")
/// (Answer(False, proven=True), Answer(True, proven=False))
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Methods {
    inner: Mutex<anygram::Methods>,
    constraint: Py<Constraint>,
}

fn method(py: Python<'_>, name: &str) -> PyResult<Method> {
    let known = || Method::ALL.map(Method::name).join(", ");
    Method::from_name(name).ok_or_else(|| invalid(py, format!("no method `{name}`; there are {}", known())))
}

fn lookahead(fillings: Fillings, seed: Seed, counts_room: bool) -> Lookahead {
    Lookahead { fillings: fillings.0, counts_room, seed: seed.0 }
}

#[pymethods]
impl Methods {
    #[new]
    fn new(py: Python<'_>, constraint: Py<Constraint>) -> PyResult<Self> {
        let made = work(py, || anygram::Methods::new(&constraint.get().inner)).raise(py)?;
        Ok(Self { inner: Mutex::new(made), constraint })
    }

    /// Whether a canvas is completable, as a method says; `.proven` says whether that is certain.
    ///
    /// Args:
    ///     canvas: the canvas.
    ///     method: one of the table above.
    ///     log_probs: what `"lookahead"` draws from; without them it draws from masks.
    ///     fillings: how many it draws.
    ///     seed: the same seed, the same fillings.
    ///     counts_room: `False` asks as published: is the text up to the last token viable?
    #[pyo3(signature = (
        canvas, method = "exact", *, log_probs = None, fillings = Fillings(10), seed = Seed(0),
        counts_room = true,
    ), text_signature = "($self, canvas, method='exact', *, log_probs=None, fillings=10, seed=0, \
        counts_room=True)")]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn completable(
        &self,
        py: Python<'_>,
        canvas: &Canvas,
        method: &str,
        log_probs: Option<&Bound<'_, PyAny>>,
        fillings: Fillings,
        seed: Seed,
        counts_room: bool,
    ) -> PyResult<Answer> {
        let (canvas, method) = (canvas.value(), self::method(py, method)?);
        let (weights, lookahead) = (self.weights(py, log_probs)?, lookahead(fillings, seed, counts_room));
        let ask = || lock(&self.inner).completable(&canvas, method, weights.as_ref(), lookahead);
        let verdict = work(py, ask).raise(py)?;
        Ok(Answer { decision: verdict.decision, proven: verdict.proven })
    }

    /// The same by `"intersection"` (IG-CD, and EPIC's memory), with its options, and what it took.
    ///
    /// Args:
    ///     canvas: the canvas.
    ///     by: how it is decided: `"minimal-dfa"`, `"dfa"`, `"nfa"` or `"earley"`.
    ///     complete: where a completion is drawn: `"where-it-proves"`, `"always"` or `"never"`.
    ///     resamples: completions that are drawn before the answer is `None`.
    ///     steps: a limit of one question, in place of `canvas_steps`.
    ///     dfa_states: states of the deterministic automaton.
    ///     memoize: whether what fragments are lexed to is kept for the next question.
    ///     seed: the same seed, the same completion.
    #[pyo3(signature = (
        canvas, *, by = "minimal-dfa", complete = "where-it-proves", resamples = Resamples(100),
        steps = None, dfa_states = States(20_000), memoize = true, seed = Seed(0),
    ), text_signature = "($self, canvas, *, by='minimal-dfa', complete='where-it-proves', \
        resamples=100, steps=None, dfa_states=20000, memoize=True, seed=0)")]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn intersection(
        &self,
        py: Python<'_>,
        canvas: &Canvas,
        by: &str,
        complete: &str,
        resamples: Resamples,
        steps: Option<Steps>,
        dfa_states: States,
        memoize: bool,
        seed: Seed,
    ) -> PyResult<Intersected> {
        let by = match by {
            "minimal-dfa" => IntersectionBy::MinimalDfa,
            "dfa" => IntersectionBy::Dfa,
            "nfa" => IntersectionBy::Nfa,
            "earley" => IntersectionBy::Earley,
            _ => return Err(invalid(py, format!("no way `{by}`; there are minimal-dfa, dfa, nfa, earley"))),
        };
        let complete = match complete {
            "where-it-proves" => Complete::WhereItProves,
            "always" => Complete::Always,
            "never" => Complete::Never,
            _ => {
                let known = "where-it-proves, always, never";
                return Err(invalid(py, format!("complete is `{complete}`; it can be {known}")));
            }
        };
        let options = IntersectionOptions {
            by,
            complete,
            resamples: resamples.0,
            steps: steps.map(|steps| steps.0),
            dfa_states: dfa_states.0,
            memoize,
            seed: seed.0,
        };
        let canvas = canvas.value();
        let inner = work(py, || lock(&self.inner).intersection(&canvas, &options)).raise(py)?;
        Ok(Intersected { inner })
    }

    /// Scans proposals as `Solver.compatible`, by a method; an answer for each. Arguments as for
    /// `completable`.
    #[pyo3(signature = (
        canvas, proposals, method = "exact", *, log_probs = None, fillings = Fillings(10), seed = Seed(0),
        counts_room = true,
    ), text_signature = "($self, canvas, proposals, method='exact', *, log_probs=None, fillings=10, \
        seed=0, counts_room=True)")]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn compatible(
        &self,
        py: Python<'_>,
        canvas: &Canvas,
        proposals: Vec<(SlotNumber, Token)>,
        method: &str,
        log_probs: Option<&Bound<'_, PyAny>>,
        fillings: Fillings,
        seed: Seed,
        counts_room: bool,
    ) -> PyResult<Vec<Answer>> {
        let (canvas, method) = (canvas.value(), self::method(py, method)?);
        let (weights, lookahead) = (self.weights(py, log_probs)?, lookahead(fillings, seed, counts_room));
        let proposals: Vec<_> = proposals.into_iter().map(|(slot, token)| (slot.0, token.0)).collect();
        let ask = || lock(&self.inner).compatible(&canvas, &proposals, method, weights.as_ref(), lookahead);
        let answer =
            |verdict: anygram::Verdict| Answer { decision: verdict.decision, proven: verdict.proven };
        Ok(work(py, ask).raise(py)?.into_iter().map(answer).collect())
    }

    /// The constraint.
    #[getter]
    fn constraint(&self, py: Python<'_>) -> Py<Constraint> {
        self.constraint.clone_ref(py)
    }
}

/// What IG-CD says of a canvas, and what it took.
#[pyclass(frozen, module = "anygram")]
pub struct Intersected {
    inner: anygram::Intersected,
}

#[pymethods]
impl Intersected {
    /// Whether the canvas, with gaps for its holes, is completable; `None` if it was not decided.
    #[getter]
    fn answer(&self) -> Option<bool> {
        self.inner.verdict.decision.decided()
    }

    /// Whether that is certain of the canvas as it is.
    #[getter]
    fn proven(&self) -> bool {
        self.inner.verdict.proven
    }

    /// Why it was not decided.
    #[getter]
    fn why(&self) -> Option<String> {
        self.inner.verdict.decision.undecided().map(ToString::to_string)
    }

    /// The tokens of a completion, with gaps for holes, where one was drawn.
    #[getter]
    fn text(&self) -> Option<Vec<u32>> {
        self.inner.infilling.as_ref().map(|infilling| ids(&infilling.text))
    }

    /// Of that completion, for each run of holes and gaps: its first slot, the first behind it, and its
    /// tokens.
    #[getter]
    fn gaps(&self) -> Option<Vec<(usize, usize, Vec<u32>)>> {
        let gaps = |infilling: &anygram::Infilling| {
            infilling.gaps.iter().map(|(first, end, tokens)| (*first, *end, ids(tokens))).collect()
        };
        self.inner.infilling.as_ref().map(gaps)
    }

    /// What the question took: sizes of automata, productions, draws, steps.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (stats, fields) = (&self.inner.stats, PyDict::new(py));
        fields.set_item("lexings", stats.lexings)?;
        fields.set_item("states", stats.automaton.0)?;
        fields.set_item("edges", stats.automaton.1)?;
        fields.set_item("generating", stats.generating)?;
        fields.set_item("touched", stats.touched)?;
        fields.set_item("productions", stats.productions)?;
        fields.set_item("draws", stats.draws)?;
        fields.set_item("steps", stats.steps)?;
        Ok(fields)
    }
}

impl Methods {
    fn weights(
        &self,
        py: Python<'_>,
        given: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<anygram::LogProbs>> {
        let size = self.constraint.get().inner.vocabulary().len();
        given.map(|given| LogProbs::of(py, given, size)).transpose()
    }
}
