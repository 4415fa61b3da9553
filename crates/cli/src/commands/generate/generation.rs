//! One text by one method, and what is reported of it.

use anygram::decode::{Configured, Recorded, Trace};
use anygram::{Canvas, Constraint, DecodeOptions, Decoded, Decoder, End, Slot, Vocabulary};
use anygram_models::tasks::Example;
use anygram_models::{Session, SmallModel};
use anygram_replay::{Ending, Likeliest, Run};
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
    decoders: Vec<(String, Decoder)>,
    options: DecodeOptions,
    pub n_slots: usize,
}

/// A text, how it came about, and what that took.
pub struct Generation {
    pub method: String,
    /// The canvas as it was filled, and what happened.
    pub decoded: Decoded,
    /// What it says.
    pub ending: Ending,
    /// Whether it says what the prompt asks for; `None` if that is not known.
    pub functional: Option<bool>,
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
    /// What the model said each time it was asked.
    pub answers: Vec<Likeliest>,
}

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
        methods: &[Configured],
        options: DecodeOptions,
    ) -> Result<Self> {
        let decoder = |method: &Configured| {
            Ok((method.name().to_owned(), Decoder::new(&constraint, method.make(&constraint)?)))
        };
        let decoders = methods.iter().map(decoder).collect::<Result<_>>()?;
        Ok(Self { n_slots: model.canvas_length(), constraint, model, decoders, options })
    }

    pub fn constraint(&self) -> &Constraint {
        &self.constraint
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
        self.ending.is_sentence()
    }

    /// Whether it is known to say what the prompt asks for.
    pub fn is_right(&self) -> bool {
        self.functional == Some(true)
    }

    /// Keeps only what is counted.
    pub fn forget(&mut self) {
        (self.decoded.trace, self.answers) = (Trace::default(), Vec::new());
    }

    /// For a page that replays it.
    pub fn run(&self) -> Run<'_> {
        Run::new(&self.method, &self.decoded, &self.ending)
            .answers(&self.answers)
            .functional(self.functional)
            .log_prob(self.log_prob)
    }
}

fn report(
    constraint: &Constraint,
    question: &Question,
    method: &str,
    decoded: Decoded,
    model: &Recorded<Session>,
) -> Result<Generation> {
    let ending = Ending::of(constraint, &decoded.canvas)?;
    let (trace, slots) = (&decoded.trace, decoded.canvas.slots());
    let is_right = |example: &Example| ending.is_sentence() && example.check(&ending.text);
    let (model_us, constraint_us) = trace.sums();
    Ok(Generation {
        method: method.to_owned(),
        functional: question.example.as_ref().map(is_right),
        n_asked: trace.n_asked(),
        n_proposed: trace.proposals().count(),
        n_refused: trace.n_refused(),
        n_forced: steps(trace, slots.len()).iter().map(|step| step.n_forced).sum(),
        log_prob: log_prob(
            &model.log_probs_of(trace, slots.len()),
            &slots[..slots.len().min(ending.end + 1)],
        ),
        model_us,
        constraint_us,
        decoded,
        ending,
        answers: model.answers().iter().map(Likeliest::of).collect(),
    })
}

/// The sum over these slots; `None` if one is open, or the model was not asked about it.
fn log_prob(given: &[Option<f32>], slots: &[Slot]) -> Option<f64> {
    let of = |(given, slot): (&Option<f32>, &Slot)| given.filter(|_| *slot != Slot::Hole).map(f64::from);
    given.iter().zip(slots).map(of).sum()
}
