//! One text by one method, and what is reported of it.

use anygram::decode::{Event, Named, Trace};
use anygram::{Canvas, End};
use anygram::{
    Constraint, DecodeOptions, Decoded, Decoder, Model, ModelError, OpenSlots, Reading, Slot, TokenId, View, Vocabulary,
};
use anygram_models::tasks::Example;
use anygram_models::{Session, SmallModel};
use anyhow::Result;

use super::steps::steps;

/// What is asked: a prompt, and what a right answer says, if that is known.
pub struct Question {
    pub prompt: String,
    example: Option<Example>,
}

/// A model, and a decoder for each method.
pub struct Generator {
    constraint: Constraint,
    model: SmallModel,
    decoders: Vec<(&'static str, Decoder)>,
    options: DecodeOptions,
    pub n_slots: usize,
}

/// A text, how it came about, and what that took.
pub struct Generation {
    pub method: &'static str,
    /// What stands before the first EOS; open slots as ▢, special tokens by their names.
    pub text: String,
    /// How far that is a sentence; `None` if it is no text, since slots are open or special tokens stand in it.
    pub reading: Option<Reading>,
    /// Whether it says what the prompt asks for; `None` if that is not known.
    pub functional: Option<bool>,
    pub is_stuck: bool,
    pub n_asked: usize,
    pub n_proposed: usize,
    pub n_refused: usize,
    /// Tokens that were kept where the method had left no other.
    pub n_forced: usize,
    pub model_us: f64,
    pub constraint_us: f64,
    /// The sum of what the model gave the tokens up to the first EOS, it included, each at the time when it was put.
    pub log_prob: Option<f64>,
    /// The slots at the end.
    pub slots: Vec<Option<TokenId>>,
    pub trace: Trace,
    /// What the model said each time it was asked.
    pub answers: Vec<Likeliest>,
}

/// What a model said when it was asked: the likeliest tokens of each slot, with natural log-probabilities.
pub struct Likeliest {
    pub slots: Vec<(usize, Vec<(TokenId, f32)>)>,
}

/// How many tokens of a slot are kept to be shown.
const N_LIKELIEST: usize = 5;

impl Question {
    /// A prompt of a task; with another grammar its check has no meaning.
    pub fn of_task(example: Example, has_check: bool) -> Self {
        Self { prompt: example.prompt.clone(), example: has_check.then_some(example) }
    }

    /// A prompt of the user's.
    pub fn own(prompt: String) -> Self {
        Self { prompt, example: None }
    }
}

impl Generator {
    pub fn new(
        constraint: Constraint,
        model: SmallModel,
        methods: &[&'static Named],
        options: DecodeOptions,
    ) -> Result<Self> {
        let decoder = |named: &&'static Named| Ok((named.name, Decoder::new(&constraint, named.make(&constraint)?)));
        let decoders = methods.iter().map(decoder).collect::<Result<_>>()?;
        Ok(Self { n_slots: model.canvas_length(), constraint, model, decoders, options })
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        self.constraint.vocabulary()
    }

    pub fn model(&self) -> &SmallModel {
        &self.model
    }

    /// An answer by each method. All begin with an empty canvas and the same draws.
    pub fn answer(&mut self, question: &Question) -> Result<Vec<Generation>> {
        let session = self.model.session(&self.vocabulary().encode(&question.prompt)?)?;
        let canvas = Canvas::new(vec![Slot::Hole; self.n_slots], End::Sentence);
        let mut generations = Vec::with_capacity(self.decoders.len());
        for (method, decoder) in &mut self.decoders {
            let mut model = Recorded { session: session.clone(), answers: Vec::new() };
            let decoded = decoder.decode(&canvas, &mut model, &self.options)?;
            generations.push(report(&self.constraint, question, method, decoded, &model.answers)?);
        }
        // Other draws for the next prompt.
        self.options.seed = self.options.seed.wrapping_add(1);
        Ok(generations)
    }
}

impl Generation {
    pub fn is_syntactic(&self) -> bool {
        self.reading.as_ref().is_some_and(|reading| reading.is_sentence)
    }

    /// Keeps only what is counted.
    pub fn forget(&mut self) {
        (self.trace, self.answers) = (Trace::default(), Vec::new());
    }
}

fn report(
    constraint: &Constraint,
    question: &Question,
    method: &'static str,
    decoded: Decoded,
    answers: &[Answer],
) -> Result<Generation> {
    let vocabulary = constraint.vocabulary();
    let slots: Vec<Option<TokenId>> = decoded.canvas.slots().iter().map(token).collect();
    let is_end = |slot: &Option<TokenId>| slot.is_some_and(|token| vocabulary.eos().contains(&token));
    let end = slots.iter().position(is_end).unwrap_or(slots.len());
    let (mut bytes, mut is_text) = (Vec::new(), true);
    for slot in &slots[..end] {
        let text = slot.and_then(|token| vocabulary.bytes(token));
        is_text &= text.is_some();
        let named = || slot.map_or("▢".to_owned(), |token| vocabulary.display_token(token)).into_bytes();
        bytes.extend(text.map_or_else(named, <[u8]>::to_vec));
    }
    let reading = is_text.then(|| constraint.language().read(&bytes)).transpose()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let is_sentence = reading.as_ref().is_some_and(|reading| reading.is_sentence);
    let trace = decoded.trace;
    let (model_us, constraint_us) = trace.sums();
    Ok(Generation {
        method,
        functional: question.example.as_ref().map(|example| is_sentence && example.check(&text)),
        is_stuck: decoded.is_stuck,
        n_asked: trace.n_asked(),
        n_proposed: trace.proposals().count(),
        n_refused: trace.n_refused(),
        n_forced: steps(&trace, slots.len()).iter().map(|step| step.n_forced).sum(),
        log_prob: log_prob(&trace, answers, &slots[..slots.len().min(end + 1)]),
        model_us,
        constraint_us,
        text,
        reading,
        slots,
        trace,
        answers: answers.iter().map(Answer::likeliest).collect(),
    })
}

fn token(slot: &Slot) -> Option<TokenId> {
    match slot {
        Slot::Fixed(token) => Some(*token),
        Slot::Hole | Slot::Gap => None,
    }
}

/// The sum over these slots; `None` if one is open, or the model was not asked about it.
fn log_prob(trace: &Trace, answers: &[Answer], slots: &[Option<TokenId>]) -> Option<f64> {
    let mut given = vec![None; slots.len()];
    let mut answer = None;
    let mut n_asked = 0;
    for event in trace.events() {
        let (slot, token) = match event {
            Event::Asked { .. } => {
                answer = answers.get(n_asked);
                n_asked += 1;
                continue;
            }
            Event::Proposed(proposal) if proposal.judgement.kept => (proposal.slot, proposal.token),
            Event::Filled { slot, token, .. } => (*slot, *token),
            _ => continue,
        };
        if let Some(given) = given.get_mut(slot) {
            *given = answer.and_then(|answer| answer.log_prob(slot, token));
        }
    }
    given.into_iter().zip(slots).map(|(given, slot)| slot.and(given)).sum()
}

/// One answer of the model: rows of log-probabilities for slots.
struct Answer {
    slots: Vec<usize>,
    rows: Vec<f32>,
}

impl Answer {
    fn row(&self, at: usize) -> &[f32] {
        let n_columns = self.rows.len() / self.slots.len().max(1);
        &self.rows[at * n_columns..(at + 1) * n_columns]
    }

    fn log_prob(&self, slot: usize, token: TokenId) -> Option<f64> {
        let at = self.slots.iter().position(|asked| *asked == slot)?;
        self.row(at).get(token.index()).map(|&log_prob| log_prob.into())
    }

    fn likeliest(&self) -> Likeliest {
        let best = |(at, slot): (usize, &usize)| {
            let mut tokens: Vec<(TokenId, f32)> =
                self.row(at).iter().enumerate().map(|(id, &value)| (TokenId::new(id), value)).collect();
            tokens.sort_by(|a, b| b.1.total_cmp(&a.1));
            tokens.truncate(N_LIKELIEST);
            (*slot, tokens)
        };
        Likeliest { slots: self.slots.iter().enumerate().map(best).collect() }
    }
}

/// A model whose answers are kept.
struct Recorded {
    session: Session,
    answers: Vec<Answer>,
}

impl Model for Recorded {
    fn vocabulary_size(&self) -> usize {
        self.session.vocabulary_size()
    }

    fn open_slots(&self) -> OpenSlots {
        self.session.open_slots()
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        self.session.log_probs(view, rows)?;
        self.answers.push(Answer { slots: view.wanted.to_vec(), rows: rows.to_vec() });
        Ok(())
    }
}
