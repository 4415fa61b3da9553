//! Makes generations one after the other, on one thread, with warm tables.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use anygram::decode::{Decoded, Event, Recorded, Why};
use anygram::{Canvas, Compiler, Constraint, Decision, Decoder, End, GrammarFormat, Slot, Solver, TokenId};
use anygram_decoding::intersection::{Complete, Intersection, IntersectionOptions};
use anygram_models::tasks::{Example, Split, Task};
use anygram_models::{EOS, Session, vocabulary};

use crate::{EvalError, Failure, Generation, Item, Micros, Plan};

/// What all threads share: grammars and prompts of the tasks.
pub(crate) struct Tasks(HashMap<Task, (Constraint, Vec<Example>)>);

impl Tasks {
    pub fn new(plan: &Plan) -> Result<Self, EvalError> {
        let task = |&task: &Task| {
            let language = Compiler::default().compile(GrammarFormat::Lark, task.grammar())?;
            let constraint = Constraint::new(Arc::clone(&language), vocabulary()?)?;
            Ok((task, (constraint, task.examples(Split::HeldOut, plan.seed, plan.n_prompts))))
        };
        Ok(Self(plan.tasks.iter().map(task).collect::<Result<_, EvalError>>()?))
    }

    /// Whether the task has so many prompts.
    pub fn has(&self, item: &Item) -> bool {
        self.0.get(&item.task).is_some_and(|(_, examples)| item.prompt < examples.len())
    }
}

/// Makes generations.
pub(crate) struct Worker<'a> {
    plan: &'a Plan,
    tasks: &'a Tasks,
    decoders: HashMap<(Task, usize), Decoder>,
    solvers: HashMap<Task, Solver>,
    intersections: HashMap<Task, Intersection>,
}

/// What a canvas holds up to its first EOS.
struct Said {
    tokens: Vec<TokenId>,
    has_eos: bool,
    /// `None` where a special token stands in it.
    text: Option<Vec<u8>>,
}

impl<'a> Worker<'a> {
    pub fn new(plan: &'a Plan, tasks: &'a Tasks) -> Self {
        Self { plan, tasks, decoders: HashMap::new(), solvers: HashMap::new(), intersections: HashMap::new() }
    }

    pub fn generate(&mut self, item: &Item) -> Result<Generation, EvalError> {
        let (constraint, examples) = &self.tasks.0[&item.task];
        let example = &examples[item.prompt];
        let session = item.model.model()?.session(&vocabulary()?.encode(&example.prompt)?)?;
        let mut model = Recorded::new(session);
        let decoder = match self.decoders.entry((item.task, item.method)) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(Decoder::new(constraint, self.plan.methods[item.method].make(constraint)?))
            }
        };
        let canvas = Canvas::new(vec![Slot::Hole; item.slots], End::Sentence);
        let begun = Instant::now();
        let decoded = decoder.decode(&canvas, &mut model, &self.plan.options(item))?;
        let mut completion = None;
        let mut spent = 0.0;
        if decoded.is_stuck && self.plan.methods[item.method].completes() {
            let began = Instant::now();
            completion = self.completion(item, &decoded.canvas)?;
            spent = micros(began);
        }
        let all = micros(begun);
        let completed = match &completion {
            Some(_) => self.judge(item, &decoded.canvas, None, example)?.1,
            None => None,
        };
        let said = match completion {
            Some(tokens) => Some(Said { text: text_of(&tokens)?, tokens, has_eos: true }),
            None => decoded.tokens().map(said).transpose()?,
        };
        let log_prob = if completed.is_some() { None } else { log_prob(&model, &decoded, said.as_ref()) };
        let (syntactic, failure) = self.judge(item, &decoded.canvas, said.as_ref(), example)?;
        let (model_us, constraint_us) = decoded.trace.sums();
        let text = said.as_ref().map(|said| match &said.text {
            Some(text) => String::from_utf8_lossy(text).into_owned(),
            None => said.tokens.iter().map(|&token| constraint.vocabulary().display_token(token)).collect(),
        });
        let filled = |wanted: Why| {
            let is = |event: &&Event| matches!(event, Event::Filled { why, .. } if *why == wanted);
            decoded.trace.events().iter().filter(is).count()
        };
        Ok(Generation {
            task: item.task.name().to_owned(),
            model: item.model.name().to_owned(),
            method: self.plan.methods[item.method].name().to_owned(),
            steps: item.steps,
            slots: item.slots,
            block: self.plan.block_of(item),
            temperature: self.plan.temperature,
            prompt: item.prompt,
            run: item.run,
            seed: self.plan.seed,
            text,
            syntactic,
            functional: failure.is_none(),
            failure,
            completed,
            tokens: said.map_or(0, |said| said.tokens.len()),
            log_prob: log_prob.map(|sum| (sum * 1e4).round() / 1e4),
            asked: decoded.trace.n_asked(),
            proposed: decoded.trace.proposals().count(),
            refused: decoded.trace.n_refused(),
            recovered: filled(Why::Recovery),
            rescued: filled(Why::Rescue),
            us: Micros {
                model: tenths(model_us),
                constraint: tenths(constraint_us + spent),
                all: tenths(all),
                steps: by_step(&decoded),
            },
        })
    }

    /// The text of a completion of the canvas with gaps for its runs of holes.
    fn completion(&mut self, item: &Item, canvas: &Canvas) -> Result<Option<Vec<TokenId>>, EvalError> {
        let intersection = match self.intersections.entry(item.task) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(Intersection::new(&self.tasks.0[&item.task].0)?)
            }
        };
        let seed = self.plan.options(item).seed;
        let options =
            IntersectionOptions { complete: Complete::Always, seed, ..IntersectionOptions::default() };
        Ok(intersection.completable(canvas, &options)?.infilling.map(|infilling| infilling.text))
    }

    /// Whether it is a sentence, and what is wrong with it.
    fn judge(
        &mut self,
        item: &Item,
        canvas: &Canvas,
        said: Option<&Said>,
        example: &Example,
    ) -> Result<(bool, Option<Failure>), EvalError> {
        let constraint = &self.tasks.0[&item.task].0;
        let Some(said) = said else {
            let solver = match self.solvers.entry(item.task) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => entry.insert(Solver::new(constraint)?),
            };
            let is_dead = matches!(solver.completable(canvas)?, Decision::No);
            return Ok((false, Some(if is_dead { Failure::DeadEnd } else { Failure::GaveUp })));
        };
        let Some(text) = &said.text else { return Ok((false, Some(Failure::Syntax))) };
        let read = constraint.language().read(text)?;
        Ok(match read.is_sentence {
            true if example.check(&String::from_utf8_lossy(text)) => (true, None),
            true => (true, Some(Failure::Function)),
            false if read.is_viable && !said.has_eos => (false, Some(Failure::Length)),
            false => (false, Some(Failure::Syntax)),
        })
    }
}

fn said(tokens: Vec<TokenId>) -> Result<Said, EvalError> {
    let end = tokens.iter().position(|&token| token == EOS);
    let has_eos = end.is_some();
    let tokens = tokens[..end.unwrap_or(tokens.len())].to_vec();
    Ok(Said { text: text_of(&tokens)?, tokens, has_eos })
}

/// The bytes of tokens, if all are ordinary ones.
fn text_of(tokens: &[TokenId]) -> Result<Option<Vec<u8>>, EvalError> {
    let vocabulary = vocabulary()?;
    if tokens.iter().any(|&token| vocabulary.is_special(token)) {
        return Ok(None);
    }
    Ok(Some(vocabulary.decode(tokens)?))
}

/// Microseconds of the constraint for each question to the model.
fn by_step(decoded: &Decoded) -> Vec<f64> {
    let mut steps = vec![0.0; decoded.trace.n_asked()];
    for (event, micros) in decoded.trace.events().iter().zip(decoded.trace.micros()) {
        let step = match event {
            Event::Restricted { step, .. } | Event::Filled { step, .. } | Event::Inserted { step, .. } => {
                *step
            }
            Event::Proposed(proposal) => proposal.step,
            _ => continue,
        };
        if let Some(sum) = steps.get_mut(step) {
            *sum += micros;
        }
    }
    steps.iter_mut().for_each(|sum| *sum = tenths(*sum));
    steps
}

fn micros(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e6
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The sum over the tokens up to the first EOS, the EOS among them, of what the model gave them.
fn log_prob(model: &Recorded<Session>, decoded: &Decoded, said: Option<&Said>) -> Option<f64> {
    let said = said?;
    let n_counted = said.tokens.len() + usize::from(said.has_eos);
    let given = model.log_probs_of(&decoded.trace, decoded.canvas.slots().len());
    given[..n_counted].iter().map(|given| given.map(f64::from)).sum()
}
