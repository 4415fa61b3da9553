//! One text by one method, and what is reported of it.

use anygram::decode::{Answered, Named, Recorded, Trace};
use anygram::{Canvas, End};
use anygram::{Constraint, DecodeOptions, Decoded, Decoder, Reading, Slot, TokenId, Vocabulary};
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
    /// How far that is a sentence; `None` if it is no text, since slots are open or special tokens stand in
    /// it.
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
    /// The sum of what the model gave the tokens up to the first EOS, it included, each at the time when it
    /// was put.
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
        let decoder =
            |named: &&'static Named| Ok((named.name, Decoder::new(&constraint, named.make(&constraint)?)));
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
            let mut model = Recorded::new(session.clone());
            let decoded = decoder.decode(&canvas, &mut model, &self.options)?;
            generations.push(report(&self.constraint, question, method, decoded, &model)?);
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
    model: &Recorded<Session>,
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
        log_prob: log_prob(&model.log_probs_of(&trace, slots.len()), &slots[..slots.len().min(end + 1)]),
        model_us,
        constraint_us,
        text,
        reading,
        slots,
        trace,
        answers: model.answers().iter().map(likeliest).collect(),
    })
}

fn token(slot: &Slot) -> Option<TokenId> {
    match slot {
        Slot::Fixed(token) => Some(*token),
        Slot::Hole | Slot::Gap => None,
    }
}

/// The sum over these slots; `None` if one is open, or the model was not asked about it.
fn log_prob(given: &[Option<f32>], slots: &[Option<TokenId>]) -> Option<f64> {
    given.iter().zip(slots).map(|(given, slot)| slot.and(*given).map(f64::from)).sum()
}

fn likeliest(answer: &Answered) -> Likeliest {
    let best = |(slot, row): (usize, &[f32])| {
        let mut tokens: Vec<(TokenId, f32)> =
            row.iter().enumerate().map(|(id, &value)| (TokenId::new(id), value)).collect();
        tokens.sort_by(|a, b| b.1.total_cmp(&a.1));
        tokens.truncate(N_LIKELIEST);
        (slot, tokens)
    };
    Likeliest { slots: answer.rows().map(best).collect() }
}
