//! The kernels as a [`Recognizer`]: one sequence of a pool, its states computed on the device.
//!
//! What the device computes is taken over into a chart of the CPU ([`Valiant::adopt`]), which answers all
//! questions about states; so whatever asks a recognizer sees the rows, predictions and terminals of the
//! kernels. When the device fails, that chart is the state that is left: the error is given once to whoever
//! extends, and after [`Link::go_on_without_device`] the CPU goes on with the same states.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anygram_bits::BitSet;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::Symbol;
use anygram_grammar::normal::NormalForm;
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{
    Begun, Edge, Mark, Recognizer, RecognizerError, RecognizerLimits, Relation, StateId, Visit,
};

use crate::charts::{Charts, GrammarId, SequenceId};
use crate::image::Image;
use crate::options::ChartError;

/// A chart of so few states is never dense: its rows are a word each.
pub(crate) const LONG: usize = 32;

/// A pool that several recognizers and searches use in turn.
pub type SharedCharts = Arc<Mutex<Charts>>;

/// What a recognizer and whoever uses its sequence know together.
#[derive(Debug, Default)]
pub struct Link {
    without_device: AtomicBool,
    /// 32-bit words of rows of the last state; 0 for charts that are not long enough to be dense.
    row_words: AtomicUsize,
    /// Of each state the edges that lead to it. Those of the first states are with the device, the others it
    /// is yet to be told.
    edges: Mutex<Vec<Box<[Edge]>>>,
}

impl Link {
    /// Whether the last tier has at least so many 32-bit words of rows.
    pub fn is_dense(&self, row_words: usize) -> bool {
        self.row_words.load(Ordering::Relaxed) >= row_words.max(1)
    }

    /// From here on new states are computed on the CPU.
    pub fn go_on_without_device(&self) {
        self.without_device.store(true, Ordering::Relaxed);
    }

    /// The device is asked again. It has to have been told what the edges say, or nothing.
    pub fn go_on_with_device(&self) {
        self.without_device.store(false, Ordering::Relaxed);
    }

    /// Whether that was asked for.
    pub fn is_without_device(&self) -> bool {
        self.without_device.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Box<[Edge]>>> {
        self.edges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The edges of all states from this one on.
    pub fn edges_from(&self, state: usize) -> Vec<Box<[Edge]>> {
        self.lock().get(state..).unwrap_or_default().to_vec()
    }
}

/// One sequence of a pool as a recognizer.
#[derive(Debug)]
pub struct DeviceRecognizer {
    charts: SharedCharts,
    sequence: SequenceId,
    chart: Valiant,
    link: Arc<Link>,
    /// Whether states are computed on the CPU at once, and on the device when somebody needs them there.
    defers: bool,
    /// As the pool's option, if dense charts are for the device.
    team_from: usize,
}

impl DeviceRecognizer {
    /// A new sequence of a grammar in C2F+ε.
    pub fn new(
        cfg: impl Into<Arc<Cfg>>,
        limits: RecognizerLimits,
        charts: &SharedCharts,
    ) -> Result<Self, ChartError> {
        let cfg = cfg.into();
        let form = NormalForm::binary(&cfg);
        Self::with_form(cfg, form, limits, charts)
    }

    /// A new sequence of a grammar in a normal form of it.
    pub fn with_form(
        cfg: impl Into<Arc<Cfg>>,
        form: NormalForm,
        limits: RecognizerLimits,
        charts: &SharedCharts,
    ) -> Result<Self, ChartError> {
        let cfg = cfg.into();
        let image = Image::new(&cfg, &form)?;
        let grammar = charts.lock().unwrap_or_else(PoisonError::into_inner).add_grammar(&image)?;
        Self::of(cfg, form, grammar, limits, charts)
    }

    /// A new sequence of a grammar that the pool has; `cfg` and `form` are those that its image was made of.
    pub fn of(
        cfg: impl Into<Arc<Cfg>>,
        form: NormalForm,
        grammar: GrammarId,
        limits: RecognizerLimits,
        charts: &SharedCharts,
    ) -> Result<Self, ChartError> {
        let cfg = cfg.into();
        let (sequence, team_from) = {
            let mut charts = charts.lock().unwrap_or_else(PoisonError::into_inner);
            let team_from =
                if charts.options().dense_on_device { charts.options().team_from } else { usize::MAX };
            (charts.create(&[grammar]).remove(0)?, team_from)
        };
        if !cfg.automata.is_empty() {
            return Err(ChartError::Automata);
        }
        let chart = Valiant::with_form(cfg, form, limits)
            .map_err(|_| ChartError::TooManySymbols { needed: limits.items, limit: limits.items })?;
        let link = Arc::new(Link { edges: Mutex::new(vec![Box::default()]), ..Link::default() });
        Ok(Self { charts: charts.clone(), sequence, chart, link, defers: false, team_from })
    }

    /// The same, and the device is told of new states later, by whoever needs them there
    /// ([`Link::edges_from`], from as many as its sequence has). The CPU computes them too, so that the lexer
    /// need not wait for a device; but not where the chart is dense, which the device does faster.
    pub fn deferring(mut self) -> Self {
        self.defers = true;
        self
    }

    /// The sequence, for searches.
    pub fn sequence(&self) -> SequenceId {
        self.sequence
    }

    /// The chart as the host knows it.
    pub fn chart(&self) -> &Valiant {
        &self.chart
    }

    /// What is known together with whoever uses the sequence.
    pub fn link(&self) -> Arc<Link> {
        self.link.clone()
    }

    /// Notes how dense the chart is by now.
    fn note_density(&self) {
        let n_states = self.chart.n_states();
        let is_long = n_states > LONG;
        let row_words = if is_long { 2 * self.chart.row_words(StateId::new(n_states - 1)) } else { 0 };
        self.link.row_words.store(row_words, Ordering::Relaxed);
    }

    fn extend_there(&mut self, edges: &[Edge]) -> Result<Option<StateId>, ChartError> {
        let mut charts = self.charts.lock().unwrap_or_else(PoisonError::into_inner);
        catch_up(&mut charts, self.sequence, &self.link)?;
        let Some(state) = charts.extend(&[(self.sequence, edges)]).remove(0)? else { return Ok(None) };
        if state.index() < self.chart.n_states() {
            return Ok(Some(state));
        }
        let adopted = charts.tier(self.sequence, state).map(|tier| self.chart.adopt(&tier));
        if let Ok(Ok(state)) = adopted {
            return Ok(Some(state));
        }
        charts.rollback(self.sequence, state.index())?;
        adopted?.map(Some).map_err(|_| ChartError::TooManyStates { limit: state.index() })
    }
}

/// Tells the device of all states that it has not been told of.
pub(crate) fn catch_up(charts: &mut Charts, sequence: SequenceId, link: &Link) -> Result<(), ChartError> {
    let n_states = charts.n_states(sequence)?;
    for (state, edges) in (n_states..).zip(link.edges_from(n_states)) {
        if charts.extend(&[(sequence, &edges)]).remove(0)?.is_none() {
            return Err(ChartError::Unknown { what: "viable state", id: state });
        }
    }
    Ok(())
}

impl Drop for DeviceRecognizer {
    fn drop(&mut self) {
        // On a lost device nothing is left to be given back.
        let _ = self.charts.lock().unwrap_or_else(PoisonError::into_inner).release(self.sequence);
    }
}

impl Recognizer for DeviceRecognizer {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn cfg(&self) -> &Cfg {
        self.chart.cfg()
    }

    fn start(&self) -> StateId {
        self.chart.start()
    }

    fn extend(&mut self, edges: &[Edge]) -> Result<Option<StateId>, RecognizerError> {
        let n_states = self.chart.n_states();
        let is_thin = self.defers && !self.link.is_dense(self.team_from);
        let state = match self.link.is_without_device() || is_thin {
            true => self.chart.extend(edges)?,
            false => self.extend_there(edges)?,
        };
        if self.chart.n_states() > n_states {
            self.link.lock().push(edges.into());
            self.note_density();
        }
        Ok(state)
    }

    fn viable(&self, state: StateId) -> &BitSet {
        self.chart.viable(state)
    }

    fn is_sentence(&self, state: StateId) -> bool {
        self.chart.is_sentence(state)
    }

    fn minimum_remaining(&self, state: StateId) -> u32 {
        self.chart.minimum_remaining(state)
    }

    fn can_finish(&self, state: StateId, from: usize, automaton: &Relation) -> bool {
        self.chart.can_finish(state, from, automaton)
    }

    fn in_progress(&self, state: StateId, visit: &mut Visit<'_>) {
        self.chart.in_progress(state, visit);
    }

    fn after_begun(&self, begun: Begun, visit: &mut Visit<'_>) {
        self.chart.after_begun(begun, visit);
    }

    fn is_whole(&self, begun: Begun) -> bool {
        Recognizer::is_whole(&self.chart, begun)
    }

    fn n_states(&self) -> usize {
        self.chart.n_states()
    }

    fn n_items(&self) -> usize {
        self.chart.n_items()
    }

    fn mark(&self) -> Mark {
        self.chart.mark()
    }

    fn release(&mut self, mark: Mark) -> bool {
        let before = self.chart.n_states();
        let released = self.chart.release(mark);
        let n_states = self.chart.n_states();
        self.link.lock().truncate(n_states);
        self.note_density();
        if n_states < before && !self.link.is_without_device() {
            let mut charts = self.charts.lock().unwrap_or_else(PoisonError::into_inner);
            if charts.n_states(self.sequence).is_ok_and(|known| known > n_states) {
                // If that fails, the device is lost, which the next extension tells.
                let _ = charts.rollback(self.sequence, n_states);
            }
        }
        released
    }

    fn dump(&self, state: StateId, name: &dyn Fn(Symbol) -> String) -> String {
        self.chart.dump(state, name)
    }

    fn memory_usage(&self) -> usize {
        self.chart.memory_usage()
    }
}
