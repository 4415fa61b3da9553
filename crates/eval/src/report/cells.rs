//! Generations by task, model, method and number of steps.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::estimate::{mean_and_spread, pass_at};
use crate::{EvalError, Generation, Method};

/// IG-CD with completions drawn where a run was stuck, and without: the same run, told in two ways.
const WITH_COMPLETION: &str = "intersection-with-completion";
const WITHOUT: &str = "intersection";

/// What is compared: everything but prompts and runs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct At {
    pub task: String,
    pub model: String,
    pub steps: usize,
    pub method: String,
}

/// Whether a generation is a success.
pub(super) type Success = fn(&Generation) -> bool;

pub(super) const SYNTACTIC: Success = |generation| generation.syntactic;
pub(super) const FUNCTIONAL: Success = |generation| generation.functional;

/// The generations of one cell, by prompt, each ordered by run.
#[derive(Default)]
pub(super) struct Cell<'a>(BTreeMap<usize, Vec<Cow<'a, Generation>>>);

pub(super) struct Cells<'a> {
    cells: BTreeMap<At, Cell<'a>>,
    setting: String,
}

impl<'a> Cells<'a> {
    pub fn new(generations: impl Iterator<Item = &'a Generation>) -> Result<Self, EvalError> {
        let (mut cells, mut derived): (BTreeMap<At, Cell>, BTreeMap<At, Cell>) = Default::default();
        let (mut settings, mut lengths) = (BTreeSet::new(), BTreeMap::new());
        let mut seen = HashSet::new();
        for generation in generations {
            // Files can overlap.
            if !seen.insert(generation.key()) {
                continue;
            }
            settings.insert((generation.seed, generation.temperature.to_bits()));
            let canvas = (generation.slots, generation.block);
            if *lengths.entry(&*generation.model).or_insert(canvas) != canvas || settings.len() > 1 {
                return Err(EvalError::Mixed);
            }
            let at = At {
                task: generation.task.clone(),
                model: generation.model.clone(),
                steps: generation.steps,
                method: generation.method.clone(),
            };
            if at.method == WITH_COMPLETION {
                let at = At { method: WITHOUT.to_owned(), ..at.clone() };
                derived.entry(at).or_default().put(Cow::Owned(without_completion(generation)));
            }
            cells.entry(at).or_default().put(Cow::Borrowed(generation));
        }
        for (at, cell) in derived {
            cells.entry(at).or_insert(cell);
        }
        cells
            .values_mut()
            .flat_map(|cell| cell.0.values_mut())
            .for_each(|runs| runs.sort_by_key(|one| one.run));
        let mut setting = String::new();
        for (seed, temperature) in settings {
            let canvas = |(model, (slots, block)): (&&str, &(usize, Option<usize>))| {
                let blocks = block.map_or(String::new(), |block| format!(" in blocks of {block}"));
                format!("{slots} slots{blocks} (`{model}`)")
            };
            let lengths: Vec<String> = lengths.iter().map(canvas).collect();
            let temperature = f64::from_bits(temperature);
            setting =
                format!("Seed {seed}, temperature {temperature}, canvases of {}.\n", lengths.join(", "));
        }
        Ok(Self { cells, setting })
    }

    pub fn setting(&self) -> String {
        self.setting.clone()
    }

    pub fn get(&self, at: &At) -> Option<&Cell<'a>> {
        self.cells.get(at)
    }

    pub fn all(&self) -> impl Iterator<Item = (&At, &Cell<'a>)> {
        self.cells.iter()
    }

    /// Tasks and models that go together.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let pairs: BTreeSet<(String, String)> =
            self.cells.keys().map(|at| (at.model.clone(), at.task.clone())).collect();
        pairs.into_iter().map(|(model, task)| (task, model)).collect()
    }

    /// The numbers of steps of a task and a model.
    pub fn steps(&self, task: &str, model: &str) -> Vec<usize> {
        let is = |at: &&At| at.task == task && at.model == model && !at.method.contains(':');
        let steps: BTreeSet<usize> = self.cells.keys().filter(is).map(|at| at.steps).collect();
        steps.into_iter().collect()
    }

    /// The methods of a task and a model, in the order in which they are known; without those that have
    /// parameters.
    pub fn methods(&self, task: &str, model: &str) -> Vec<String> {
        let has = |method: &str| {
            self.cells.keys().any(|at| at.task == task && at.model == model && at.method == method)
        };
        // Ours last, after what they are compared with.
        let known: Vec<&str> = Method::names().collect();
        let mut methods: Vec<&str> = known.iter().rev().copied().filter(|method| has(method)).collect();
        let place = ORDER.map(Some);
        methods.sort_by_key(|method| {
            place.iter().position(|known| *known == Some(*method)).unwrap_or(ORDER.len())
        });
        methods.into_iter().map(str::to_owned).collect()
    }
}

/// In which methods stand in tables.
const ORDER: [&str; 11] = [
    "none",
    "forced-sequential",
    "forced-sequential-with-budget",
    "intersection",
    "intersection-with-completion",
    "lookahead",
    "lookahead-without-recovery",
    "exact",
    "compatible",
    "best",
    "sample",
];

/// What it would have been had no completion been drawn.
fn without_completion(generation: &Generation) -> Generation {
    let mut generation = generation.clone();
    if let Some(failure) = generation.completed.take() {
        (generation.text, generation.tokens) = (None, 0);
        (generation.syntactic, generation.functional, generation.failure) = (false, false, Some(failure));
    }
    generation
}

impl<'a> Cell<'a> {
    fn put(&mut self, generation: Cow<'a, Generation>) {
        self.0.entry(generation.prompt).or_default().push(generation);
    }

    pub fn generations(&self) -> impl Iterator<Item = &Generation> {
        self.0.values().flatten().map(|one| &**one)
    }

    pub fn n_prompts(&self) -> usize {
        self.0.len()
    }

    pub fn n_generations(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// The chance that one try succeeds, the mean over prompts; and its spread over runs: the standard
    /// deviation of the shares of single runs, over the prompts that have the most runs.
    pub fn at_one(&self, success: Success) -> Option<(f64, f64)> {
        let score = |generation: &Cow<Generation>| f64::from(u8::from(success(generation)));
        let of_prompt = |runs: &Vec<Cow<Generation>>| runs.iter().map(score).sum::<f64>() / runs.len() as f64;
        let prompts: Vec<f64> = self.0.values().map(of_prompt).collect();
        let most = self.0.values().map(Vec::len).max()?;
        let whole: Vec<&Vec<Cow<Generation>>> = self.0.values().filter(|runs| runs.len() == most).collect();
        let of_run =
            |run: usize| whole.iter().map(|runs| score(&runs[run])).sum::<f64>() / whole.len() as f64;
        let runs: Vec<f64> = (0..most).map(of_run).collect();
        Some((mean_and_spread(&prompts)?.0, mean_and_spread(&runs)?.1))
    }

    /// The share of prompts of which one of `k` tries succeeds, estimated from the prompts with the most
    /// tries; and how many those are.
    pub fn at(&self, k: usize, success: Success) -> Option<(f64, usize)> {
        let most = self.0.values().map(Vec::len).max()?;
        let counted: Vec<f64> = (self.0.values().filter(|runs| runs.len() == most))
            .map(|runs| pass_at(most, runs.iter().filter(|one| success(one)).count(), k))
            .collect::<Option<_>>()?;
        Some((mean_and_spread(&counted)?.0, counted.len()))
    }

    /// The share of different texts among those of a prompt, over prompts with several.
    pub fn diversity(&self) -> Option<f64> {
        let share = |runs: &Vec<Cow<Generation>>| {
            let texts: HashSet<&Option<String>> = runs.iter().map(|one| &one.text).collect();
            (texts.len() - 1) as f64 / (runs.len() - 1) as f64
        };
        let shares: Vec<f64> = self.0.values().filter(|runs| runs.len() > 1).map(share).collect();
        Some(mean_and_spread(&shares)?.0)
    }

    /// The mean of something that generations may have.
    pub fn mean(&self, value: impl Fn(&Generation) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.generations().filter_map(value).collect();
        Some(mean_and_spread(&values)?.0)
    }

    /// For each prompt that both have, over the runs that both have, how much more often this one succeeds.
    pub fn less(&self, other: &Cell<'_>, success: Success) -> Vec<f64> {
        let mut differences = Vec::new();
        for (prompt, runs) in &self.0 {
            let Some(others) = other.0.get(prompt) else { continue };
            let pairs =
                runs.iter().filter_map(|one| Some((one, others.iter().find(|other| other.run == one.run)?)));
            let score = |generation: &Cow<Generation>| f64::from(u8::from(success(generation)));
            let each: Vec<f64> = pairs.map(|(one, other)| score(one) - score(other)).collect();
            differences.extend(mean_and_spread(&each).map(|mean| mean.0));
        }
        differences
    }
}
