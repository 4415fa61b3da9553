//! The plan: which generations to make.

use anygram::DecodeOptions;
use anygram::decode::Sampling;
use anygram_bits::Random;
use anygram_models::Kind;
use anygram_models::tasks::Task;

use crate::{EvalError, Key, Method};

/// How many questions to a model fill a canvas (the papers' T).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Steps {
    /// So many.
    At(usize),
    /// One a slot.
    Full,
}

impl Steps {
    /// A number, or `full`.
    pub fn parse(text: &str) -> Result<Self, EvalError> {
        match text.parse() {
            _ if text == "full" => Ok(Self::Full),
            Ok(steps) if steps > 0 => Ok(Self::At(steps)),
            _ => Err(EvalError::Steps(text.to_owned())),
        }
    }

    /// As a number, for a canvas of so many slots.
    pub fn number(self, n_slots: usize) -> usize {
        match self {
            Self::At(steps) => steps,
            Self::Full => n_slots,
        }
    }
}

/// Tasks × models × methods × steps × prompts × runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// What is asked for.
    pub tasks: Vec<Task>,
    /// Who is asked.
    pub models: Vec<Kind>,
    /// How answers are constrained.
    pub methods: Vec<Method>,
    /// Questions to diffusion models. An autoregressive one is asked once a token, whatever this says, so
    /// only one of these counts for it.
    pub steps: Vec<Steps>,
    /// Held-out prompts of each task.
    pub n_prompts: usize,
    /// Runs: each prompt is answered so often, with other seeds.
    pub n_runs: usize,
    /// By which prompts are made and tokens are drawn.
    pub seed: u64,
    /// At which tokens are drawn (LAVE: 0.2). The uniform model has its sampler's own, which goes from 0.8
    /// down to 0.4.
    pub temperature: f64,
    /// Slots of a canvas; as many as the model was trained with unless set.
    pub slots: Option<usize>,
    /// Slots of a block, which are filled before the next ones (32 in the papers of LLaDA and LAVE); all at
    /// once unless set. The uniform model re-noises the whole canvas.
    pub block: Option<usize>,
}

/// One generation that is to be made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Item {
    /// What is asked for.
    pub task: Task,
    /// Who is asked.
    pub model: Kind,
    /// The number of the method in the plan.
    pub method: usize,
    /// Questions to the model.
    pub steps: usize,
    /// The number of the prompt.
    pub prompt: usize,
    /// The number of the run.
    pub run: usize,
    /// Slots of the canvas.
    pub slots: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            tasks: Task::ALL.to_vec(),
            models: Kind::ALL.to_vec(),
            methods: Vec::new(),
            steps: vec![Steps::At(4), Steps::At(8), Steps::At(16), Steps::Full],
            n_prompts: 50,
            n_runs: 4,
            seed: 1,
            temperature: 0.2,
            slots: None,
            block: Some(32),
        }
    }
}

impl Plan {
    /// All generations. Runs and prompts are outermost, so that the first part of a file is a smaller sample
    /// of the whole.
    ///
    /// # Errors
    /// A model cannot be read.
    pub fn items(&self) -> Result<Vec<Item>, EvalError> {
        let mut cells = Vec::new();
        for &task in &self.tasks {
            for &model in &self.models {
                let slots = self.slots.unwrap_or(model.model()?.canvas_length());
                let mut numbers: Vec<usize> = match model {
                    Kind::Autoregressive if !self.steps.is_empty() => vec![slots],
                    _ => self.steps.iter().map(|steps| steps.number(slots)).collect(),
                };
                numbers.dedup();
                for steps in numbers {
                    cells.extend((0..self.methods.len()).map(|method| (task, model, method, steps, slots)));
                }
            }
        }
        let mut items = Vec::with_capacity(cells.len() * self.n_prompts * self.n_runs);
        for run in 0..self.n_runs {
            for prompt in 0..self.n_prompts {
                let item = |&(task, model, method, steps, slots)| Item {
                    task,
                    model,
                    method,
                    steps,
                    prompt,
                    run,
                    slots,
                };
                items.extend(cells.iter().map(item));
            }
        }
        Ok(items)
    }

    /// What tells a generation from all others in a file.
    pub fn key(&self, item: &Item) -> Key {
        Key {
            task: item.task.name().to_owned(),
            model: item.model.name().to_owned(),
            method: self.methods[item.method].name().to_owned(),
            steps: item.steps,
            slots: item.slots,
            block: self.block_of(item),
            temperature: self.temperature.to_bits(),
            prompt: item.prompt,
            run: item.run,
            seed: self.seed,
        }
    }

    /// Slots of a block.
    pub(crate) fn block_of(&self, item: &Item) -> Option<usize> {
        self.block.filter(|_| item.model == Kind::Masked)
    }

    /// How a canvas is filled. The seed is the same for all methods and numbers of steps, so that they are
    /// compared on equal terms.
    pub fn options(&self, item: &Item) -> DecodeOptions {
        let mut random =
            Random::new(self.seed ^ (item.prompt as u64) << 32 ^ (item.run as u64) << 8 ^ item.task as u64);
        let (steps, seed) = (item.steps, random.bits());
        match item.model {
            Kind::Uniform => DecodeOptions { steps, seed, ..DecodeOptions::renoising() },
            _ => {
                let sampling = Sampling { temperature: self.temperature, ..Sampling::default() };
                DecodeOptions {
                    steps,
                    seed,
                    sampling,
                    block: self.block_of(item),
                    ..DecodeOptions::default()
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_each_generation_once() {
        let plan = Plan {
            methods: vec![Method::parse("none").unwrap(), Method::parse("exact").unwrap()],
            n_prompts: 2,
            n_runs: 3,
            slots: Some(40),
            ..Plan::default()
        };
        let items = plan.items().unwrap();
        // The autoregressive model has one number of steps, the others four.
        assert_eq!(items.len(), 3 * (1 + 4 + 4) * 2 * 2 * 3);
        let keys: std::collections::HashSet<Key> = items.iter().map(|item| plan.key(item)).collect();
        assert_eq!(keys.len(), items.len());
        assert!(items[..items.len() / 6].iter().all(|item| (item.run, item.prompt) == (0, 0)));
    }

    #[test]
    fn methods_share_seeds_and_runs_do_not() {
        let plan = Plan { methods: vec![Method::parse("none").unwrap()], slots: Some(9), ..Plan::default() };
        let item = |method, steps, prompt, run| {
            let item = Item { task: Task::Record, model: Kind::Masked, method, steps, prompt, run, slots: 9 };
            plan.options(&item).seed
        };
        assert_eq!(item(0, 4, 5, 1), item(1, 8, 5, 1));
        assert!(item(0, 4, 5, 1) != item(0, 4, 5, 2) && item(0, 4, 5, 1) != item(0, 4, 6, 1));
    }

    #[test]
    fn steps_are_numbers_or_full() {
        assert_eq!(Steps::parse("full").unwrap().number(40), 40);
        assert_eq!(Steps::parse("8").unwrap().number(40), 8);
        assert!(Steps::parse("0").is_err() && Steps::parse("half").is_err());
    }
}
