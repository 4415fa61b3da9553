//! The decoding loop, over a model that is a function of Python.

#![allow(unsafe_code)]

use std::sync::Mutex;

use anygram::decode::{Configured, Event, Order, Pace, Revision, STRATEGIES, Sampling, Why};
use anygram::{DecodeError, DecodeOptions, ModelError, OpenSlots};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::array::{Array, Item};
use crate::canvas::Canvas;
use crate::constraint::Constraint;
use crate::error::{Raise, bad_buffer, invalid, shown};
use crate::gate::{outside, work};
use crate::matcher::lock;
use crate::number::{Block, Inserted, Most, Questions, Real, Refusals, Seed, Size, TopK};
use crate::session::Session;
use crate::tokens::{Token, ids};

/// Fills canvases with a model, step by step, by one strategy.
///
/// Args:
///     constraint: what the canvas has to become.
///     strategy: its name, one of `Decoder.STRATEGIES`; `"exact"` never runs into a dead end. `"lookahead"`
///         takes parameters: `"lookahead:N=3:tau=10"` (LAVE's number of fillings, and of failures before the
///         recovery; 10 and 5), `"lookahead:published"` (the room that is left is not counted).
///
/// >>> import anygram, numpy
/// >>> language = anygram.Compiler().compile('start: "(" start ")" | "x"', "lark")
/// >>> vocabulary = anygram.Vocabulary.from_tokens([b"(", b")", b"x", None, None], eos=[3], mask=4)
/// >>> constraint = anygram.Constraint(language, vocabulary)
/// >>> def model(view):  # likes `(` best everywhere
/// ...     return numpy.tile(numpy.float32([-0.1, -3, -4, -9, -99]), (len(view.wanted), 1))
/// >>> decoded = anygram.Decoder(constraint).decode(anygram.Canvas([None] * 5), model)
/// >>> decoded.tokens, vocabulary.decode(decoded.tokens)
/// ([0, 0, 2, 1, 1], b'((x))')
///
/// Raises:
///     AnygramError: there is no such strategy.
#[pyclass(frozen, module = "anygram", weakref)]
pub struct Decoder {
    pub inner: Mutex<anygram::Decoder>,
    constraint: Py<Constraint>,
    strategy: String,
}

/// A number of a dict such as `{"threshold": 0.9}`, if it is one and has it.
fn number<'py, T>(given: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    let Ok(given) = given.cast::<PyDict>() else { return Ok(None) };
    given.get_item(name)?.map(|value| value.extract()).transpose()
}

fn pace(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Pace> {
    if given.extract::<&str>().is_ok_and(|word| word == "even") {
        return Ok(Pace::Even);
    }
    if let Ok(n) = given.extract::<usize>() {
        return Ok(Pace::Tokens(n));
    }
    match (number(given, "threshold")?, number(given, "entropy_bound")?) {
        (Some(Real(share)), None) => Ok(Pace::Threshold(share)),
        (None, Some(Real(bound))) => Ok(Pace::EntropyBound(bound)),
        _ => Err(invalid(
            py,
            format!(
                "pace is {}; it can be \"even\", a number of tokens, {{\"threshold\": p}} or \
                 {{\"entropy_bound\": nats}}",
                shown(given)
            ),
        )),
    }
}

fn revision(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Revision> {
    match given.extract::<&str>() {
        Ok("stay") => return Ok(Revision::Stay),
        Ok("renew") => return Ok(Revision::Renew),
        _ => {}
    }
    match (number(given, "below")?, number(given, "above")?, number(given, "most")?) {
        (Some(Real(below)), None, Some(Most(most))) => Ok(Revision::TakeBack { below, most }),
        (None, Some(Real(above)), Some(Most(most))) => Ok(Revision::Edit { above, most }),
        _ => Err(invalid(
            py,
            format!(
                "revision is {}; it can be \"stay\", \"renew\", {{\"below\": p, \"most\": n}} or \
                 {{\"above\": p, \"most\": n}}",
                shown(given)
            ),
        )),
    }
}

fn order(py: Python<'_>, name: &str) -> PyResult<Order> {
    let found = Order::ALL.into_iter().find(|known| known.0 == name).map(|known| known.1);
    let known = || Order::ALL.map(|known| known.0).join(", ");
    found.ok_or_else(|| invalid(py, format!("no order `{name}`; there are {}", known())))
}

fn open_slots(
    py: Python<'_>,
    given: Option<&Bound<'_, PyAny>>,
    constraint: &anygram::Constraint,
) -> PyResult<OpenSlots> {
    let Some(given) = given else {
        return Ok(constraint.vocabulary().mask().map_or(OpenSlots::Noise, OpenSlots::Mask));
    };
    match given.extract::<&str>() {
        Ok("noise") => Ok(OpenSlots::Noise),
        Ok("next") => Ok(OpenSlots::Next),
        Ok(other) => {
            Err(invalid(py, format!("open_slots is \"{other}\"; it can be \"noise\", \"next\" or a token")))
        }
        Err(_) => Ok(OpenSlots::Mask(given.extract::<Token>()?.0)),
    }
}

/// The options of a run, as keywords give them.
struct Given<'a, 'py> {
    steps: Questions,
    block: Option<Block>,
    order: &'a str,
    pace: Option<&'a Bound<'py, PyAny>>,
    temperature: Real,
    last_temperature: Option<Real>,
    top_k: Option<TopK>,
    top_p: Option<Real>,
    revision: Option<&'a Bound<'py, PyAny>>,
    refusals: Option<Refusals>,
    inserted: Inserted,
    seed: Seed,
}

impl Given<'_, '_> {
    fn read(&self, py: Python<'_>) -> PyResult<DecodeOptions> {
        let sampling = Sampling {
            temperature: self.temperature.0,
            last_temperature: self.last_temperature.map(|temperature| temperature.0),
            top_k: self.top_k.map(|k| k.0),
            top_p: self.top_p.map(|share| share.0),
        };
        Ok(DecodeOptions {
            order: order(py, self.order)?,
            pace: self.pace.map_or(Ok(Pace::Even), |given| pace(py, given))?,
            steps: self.steps.0,
            block: self.block.map(|block| block.0),
            sampling,
            revision: self.revision.map_or(Ok(Revision::Stay), |given| revision(py, given))?,
            refusals: self.refusals.map(|refusals| refusals.0),
            inserted: self.inserted.0,
            seed: self.seed.0,
        })
    }
}

#[pymethods]
impl Decoder {
    #[new]
    #[pyo3(signature = (constraint, strategy = "exact"))]
    fn new(py: Python<'_>, constraint: Py<Constraint>, strategy: &str) -> PyResult<Self> {
        let named = Configured::parse(strategy).raise(py)?;
        let of = &constraint.get().inner;
        let made = work(py, || Ok::<_, DecodeError>(anygram::Decoder::new(of, named.make(of)?)));
        Ok(Self { inner: Mutex::new(made.raise(py)?), constraint, strategy: named.name().to_owned() })
    }

    /// The strategies by name, with a line about each.
    #[classattr]
    #[pyo3(name = "STRATEGIES")]
    fn strategies(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let all = PyDict::new(py);
        STRATEGIES.iter().try_for_each(|named| all.set_item(named.name, named.about))?;
        Ok(all)
    }

    /// The options of DiffusionGemma's sampler, for `decode(canvas, model, **Decoder.RENOISING)`.
    #[classattr]
    #[pyo3(name = "RENOISING")]
    fn renoising(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let DecodeOptions { steps, sampling, .. } = DecodeOptions::renoising();
        let (options, pace) = (PyDict::new(py), PyDict::new(py));
        pace.set_item("entropy_bound", 0.1)?;
        options.set_item("open_slots", "noise")?;
        options.set_item("order", "entropy")?;
        options.set_item("pace", pace)?;
        options.set_item("steps", steps)?;
        options.set_item("block", py.None())?;
        options.set_item("temperature", sampling.temperature)?;
        options.set_item("last_temperature", sampling.last_temperature)?;
        options.set_item("revision", "renew")?;
        Ok(options)
    }

    /// Fills the holes of a canvas. Fixed slots stay; slots are inserted in gaps as far as the strategy knows
    /// how many are needed.
    ///
    /// Args:
    ///     canvas: what is to be filled; it is not changed.
    ///     model: a function of a `View`. It returns `float32[len(view.wanted), vocabulary_size]`, natural
    ///         logarithms or logits: a numpy array or a tensor on the CPU. Equal views must have equal
    ///         answers, or runs cannot be repeated. What it raises goes through.
    ///     open_slots: what the model finds in open slots: a mask token (the vocabulary's, if it has one),
    ///         `"noise"` (any tokens), or `"next"` (nothing: it knows only what comes next).
    ///     vocabulary_size: the length of the model's rows, if it is padded.
    ///     steps: questions to the model, shared by the blocks.
    ///     block: slots of a block, or `None` for all at once.
    ///     order: `"confidence"`, `"entropy"`, `"margin"` or `"random"`.
    ///     pace: how many tokens are kept of one answer: `"even"`, a number, `{"threshold": p}` or
    ///         `{"entropy_bound": nats}`.
    ///     temperature, last_temperature, top_k, top_p: how a slot's token is drawn; 0 takes the likeliest.
    ///     revision: `"stay"`, `"renew"` (re-noising), `{"below": p, "most": n}`: tokens are taken back, or
    ///         `{"above": p, "most": n}`: likelier tokens replace them, in so many steps of a full block.
    ///     refusals: the most in a run.
    ///     inserted: the most slots that are inserted in gaps.
    ///     seed: the same seed, the same tokens.
    ///
    /// Raises:
    ///     AnygramError: options contradict themselves, or the model's rows do not fit.
    ///     LimitError: a limit was reached.
    #[pyo3(signature = (
        canvas, model, *, open_slots = None, vocabulary_size = None, steps = Questions(32),
        block = Some(Block(32)),
        order = "confidence", pace = None, temperature = Real(0.0), last_temperature = None, top_k = None,
        top_p = None, revision = None, refusals = None, inserted = Inserted(256), seed = Seed(0),
    ), text_signature = "($self, canvas, model, *, open_slots=None, vocabulary_size=None, steps=32, \
        block=32, order='confidence', pace=None, temperature=0.0, last_temperature=None, top_k=None, \
        top_p=None, revision=None, refusals=None, inserted=256, seed=0)")]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn decode(
        &self,
        py: Python<'_>,
        canvas: &Canvas,
        model: Py<PyAny>,
        open_slots: Option<&Bound<'_, PyAny>>,
        vocabulary_size: Option<Size>,
        steps: Questions,
        block: Option<Block>,
        order: &str,
        pace: Option<&Bound<'_, PyAny>>,
        temperature: Real,
        last_temperature: Option<Real>,
        top_k: Option<TopK>,
        top_p: Option<Real>,
        revision: Option<&Bound<'_, PyAny>>,
        refusals: Option<Refusals>,
        inserted: Inserted,
        seed: Seed,
    ) -> PyResult<Decoded> {
        let of = &self.constraint.get().inner;
        let options = Given {
            steps,
            block,
            order,
            pace,
            temperature,
            last_temperature,
            top_k,
            top_p,
            revision,
            refusals,
            inserted,
            seed,
        };
        let options = options.read(py)?;
        let mut model = Model {
            function: model,
            open_slots: self::open_slots(py, open_slots, of)?,
            size: vocabulary_size.map_or_else(|| of.vocabulary().len(), |size| size.0),
        };
        let canvas = canvas.value();
        let run = || lock(&self.inner).decode(&canvas, &mut model, &options);
        Ok(Decoded { inner: work(py, run).raise(py)? })
    }

    /// Begins a run whose model is asked by the caller: by a loop of its own, or while other work goes on.
    /// The run is the one of `decode` with a model that answers the same.
    ///
    /// Args:
    ///     canvas: what is to be filled; it is not changed.
    ///     others: as for `decode`.
    ///
    /// Returns:
    ///     A `Session`. It ends when this decoder begins another run.
    ///
    /// Raises:
    ///     AnygramError: options contradict themselves.
    #[pyo3(signature = (
        canvas, *, open_slots = None, steps = Questions(32), block = Some(Block(32)), order = "confidence",
        pace = None, temperature = Real(0.0), last_temperature = None, top_k = None, top_p = None,
        revision = None, refusals = None, inserted = Inserted(256), seed = Seed(0),
    ), text_signature = "($self, canvas, *, open_slots=None, steps=32, block=32, order='confidence', \
        pace=None, temperature=0.0, last_temperature=None, top_k=None, top_p=None, revision=None, \
        refusals=None, inserted=256, seed=0)")]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn begin(
        slf: Bound<'_, Self>,
        canvas: &Canvas,
        open_slots: Option<&Bound<'_, PyAny>>,
        steps: Questions,
        block: Option<Block>,
        order: &str,
        pace: Option<&Bound<'_, PyAny>>,
        temperature: Real,
        last_temperature: Option<Real>,
        top_k: Option<TopK>,
        top_p: Option<Real>,
        revision: Option<&Bound<'_, PyAny>>,
        refusals: Option<Refusals>,
        inserted: Inserted,
        seed: Seed,
    ) -> PyResult<Session> {
        let (py, this) = (slf.py(), slf.get());
        let options = Given {
            steps,
            block,
            order,
            pace,
            temperature,
            last_temperature,
            top_k,
            top_p,
            revision,
            refusals,
            inserted,
            seed,
        };
        let options = options.read(py)?;
        let open_slots = self::open_slots(py, open_slots, &this.constraint.get().inner)?;
        let canvas = canvas.value();
        let begun = work(py, || lock(&this.inner).begin(&canvas, open_slots, &options)).raise(py)?;
        Ok(Session::new(slf.unbind(), begun))
    }

    /// The name of the strategy.
    #[getter]
    fn strategy(&self) -> &str {
        &self.strategy
    }

    /// The constraint.
    #[getter]
    fn constraint(&self, py: Python<'_>) -> Py<Constraint> {
        self.constraint.clone_ref(py)
    }
}

/// A function of Python as a model.
struct Model {
    function: Py<PyAny>,
    open_slots: OpenSlots,
    size: usize,
}

impl anygram::Model for Model {
    fn vocabulary_size(&self) -> usize {
        self.size
    }

    fn open_slots(&self) -> OpenSlots {
        self.open_slots
    }

    fn log_probs(&mut self, view: &anygram::View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        let view = View::of(*view);
        let answer = || Python::attach(|py| self.ask(py, view, rows));
        // What it raised is found again by `error::of_decoding`.
        outside(answer).map_err(|raised| Box::new(raised) as ModelError)
    }
}

impl Model {
    fn ask(&self, py: Python<'_>, view: View, rows: &mut [f32]) -> PyResult<()> {
        let n_wanted = view.wanted.len();
        let answer = self.function.bind(py).call1((view,))?;
        let array = Array::of(&answer)?;
        let (n_rows, width, stride) = array.rows(py)?;
        if array.item != Item::F32 || (n_rows, width) != (n_wanted, self.size) {
            let message = format!(
                "the model returned {:?} of {:?}; it has to be float32 of [{n_wanted}, {}]",
                array.item,
                array.shape(),
                self.size
            );
            return Err(bad_buffer(py, message));
        }
        for (at, row) in rows.chunks_mut(width.max(1)).enumerate() {
            // SAFETY: as in `log_probs::floats`; `rows` has as many rows as the array, each as wide.
            let values = unsafe {
                std::slice::from_raw_parts((array.address as *const f32).add(at * stride), row.len())
            };
            row.copy_from_slice(values);
        }
        Ok(())
    }
}

/// What a model is asked.
#[pyclass(frozen, module = "anygram")]
pub struct View {
    tokens: Vec<u32>,
    wanted: Vec<usize>,
    step: usize,
    steps: usize,
}

impl View {
    pub fn of(view: anygram::View<'_>) -> Self {
        Self { tokens: ids(view.tokens), wanted: view.wanted.to_vec(), step: view.step, steps: view.steps }
    }
}

#[pymethods]
impl View {
    /// A token for every slot: what stands there, and in open ones what `open_slots` says. With `"next"` only
    /// the tokens before the first open slot.
    #[getter]
    fn tokens(&self) -> Vec<u32> {
        self.tokens.clone()
    }

    /// The slots of which log-probabilities are wanted, ascending.
    #[getter]
    fn wanted(&self) -> Vec<usize> {
        self.wanted.clone()
    }

    /// The number of this question, from 0.
    #[getter]
    fn step(&self) -> usize {
        self.step
    }

    /// How many questions there are, roughly.
    #[getter]
    fn steps(&self) -> usize {
        self.steps
    }

    fn __repr__(&self) -> String {
        format!(
            "View({} slots, {} wanted, step {} of {})",
            self.tokens.len(),
            self.wanted.len(),
            self.step,
            self.steps
        )
    }
}

/// How a run ended, and what happened in it.
#[pyclass(frozen, module = "anygram")]
pub struct Decoded {
    pub inner: anygram::Decoded,
}

#[pymethods]
impl Decoded {
    /// The canvas as it was filled, its gaps closed.
    #[getter]
    fn canvas(&self) -> Canvas {
        Canvas::of(self.inner.canvas.clone())
    }

    /// The tokens of all slots; `None` if the run was stuck.
    #[getter]
    fn tokens(&self) -> Option<Vec<u32>> {
        self.inner.tokens().map(|tokens| ids(&tokens))
    }

    /// Whether nothing could be kept any more.
    #[getter]
    fn is_stuck(&self) -> bool {
        self.inner.is_stuck
    }

    /// Questions to the model.
    #[getter]
    fn n_asked(&self) -> usize {
        self.inner.trace.n_asked()
    }

    /// Proposals that were refused.
    #[getter]
    fn n_refused(&self) -> usize {
        self.inner.trace.n_refused()
    }

    /// Microseconds of the model, and of the constraint.
    #[getter]
    fn micros(&self) -> (f64, f64) {
        self.inner.trace.sums()
    }

    /// What happened, in order: dicts with `"event"` (`asked`, `restricted`, `proposed`, `filled`,
    /// `taken_back`, `inserted`), `"micros"` and what belongs to it.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (events, micros) = (self.inner.trace.events(), self.inner.trace.micros());
        let events = events.iter().zip(micros).map(|(event, micros)| {
            let fields = event_fields(py, event)?;
            fields.set_item("micros", micros)?;
            Ok::<_, PyErr>(fields)
        });
        PyList::new(py, events.collect::<PyResult<Vec<_>>>()?)
    }

    fn __repr__(&self) -> String {
        let stuck = if self.inner.is_stuck { "True" } else { "False" };
        format!(
            "Decoded({} slots, is_stuck={stuck}, n_asked={})",
            self.inner.canvas.slots().len(),
            self.n_asked()
        )
    }
}

fn event_fields<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyDict::new(py);
    match event {
        Event::Asked { step, n_open } => {
            fields.set_item("event", "asked")?;
            fields.set_item("step", step)?;
            fields.set_item("n_open", n_open)?;
        }
        Event::Restricted { step, left } => {
            fields.set_item("event", "restricted")?;
            fields.set_item("step", step)?;
            fields.set_item("left", left.clone())?;
        }
        Event::Proposed(proposal) => {
            fields.set_item("event", "proposed")?;
            fields.set_item("step", proposal.step)?;
            fields.set_item("slot", proposal.slot)?;
            fields.set_item("token", proposal.token.0)?;
            fields.set_item("log_prob", proposal.log_prob)?;
            fields.set_item("kept", proposal.judgement.kept)?;
            fields.set_item("proven", proposal.judgement.proven)?;
            fields.set_item("ground", proposal.judgement.ground.name())?;
        }
        Event::Filled { step, slot, token, why } => {
            let why = match why {
                Why::AfterEos => "after_eos",
                Why::Recovery => "recovery",
                Why::Rescue => "rescue",
                _ => "other",
            };
            fields.set_item("event", "filled")?;
            fields.set_item("step", step)?;
            fields.set_item("slot", slot)?;
            fields.set_item("token", token.0)?;
            fields.set_item("why", why)?;
        }
        Event::TakenBack { step, slot, token } => {
            fields.set_item("event", "taken_back")?;
            fields.set_item("step", step)?;
            fields.set_item("slot", slot)?;
            fields.set_item("token", token.0)?;
        }
        Event::Inserted { step, slot, count } => {
            fields.set_item("event", "inserted")?;
            fields.set_item("step", step)?;
            fields.set_item("slot", slot)?;
            fields.set_item("count", count)?;
        }
        _ => fields.set_item("event", "other")?,
    }
    Ok(fields)
}
