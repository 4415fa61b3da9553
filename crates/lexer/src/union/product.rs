//! The product of minimal automata, whatever the numbers of their terminals are.

use std::sync::{Arc, OnceLock};

use anygram_bits::Fingerprint;
use anygram_bits::work::Work;
use rustc_hash::FxHashMap;

use super::State;
use crate::dfa::{DEAD, Dfa, START, common_classes};
use crate::shared::Shared;
use crate::{LexerError, LexerLimits};

/// The product of some automata; a part is one of them, by its place in their list.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub classes: Box<[u8; 256]>,
    pub samples: Vec<u8>,
    /// `state × class → state`, row by row.
    pub next: Arc<[State]>,
    /// The parts that accept, state by state; in the start, too.
    pub accepts: Vec<Vec<u32>>,
    /// The parts that can go on.
    pub live: Vec<Vec<u32>>,
    /// Of the table, and the parts alive in each state.
    n_entries: usize,
    /// Steps of making it.
    steps: usize,
    fingerprint: OnceLock<Fingerprint>,
}

/// Products that have few entries, of automata that have few together.
static PRODUCTS: Shared<Vec<Arc<Dfa>>, Arc<Product>> = Shared::new();

/// See [`PRODUCTS`].
const FEW_ENTRIES: usize = 2_000;

impl Product {
    /// The product of some automata, shared by all who ask for the same in the same order if they are small.
    pub fn shared(
        dfas: Vec<Arc<Dfa>>,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Arc<Self>, LexerError> {
        if dfas.iter().map(|dfa| dfa.n_entries()).sum::<usize>() > FEW_ENTRIES {
            return Ok(Arc::new(Self::new(&dfas, limits, work)?));
        }
        if let Some(known) = PRODUCTS.get(&dfas) {
            work.spend(known.steps)?;
            check(known.n_entries, limits)?;
            return Ok(known);
        }
        let made = Arc::new(Self::new(&dfas, limits, work)?);
        // Small automata can have a large product.
        if made.n_entries <= FEW_ENTRIES {
            PRODUCTS.insert(dfas, made.clone());
        }
        Ok(made)
    }

    /// That of the tables, made once. Cost: their size.
    pub fn fingerprint(&self) -> Fingerprint {
        let Self { classes, next, accepts, live, .. } = self;
        *self.fingerprint.get_or_init(|| Fingerprint::of(&(classes, next, accepts, live)))
    }

    fn new(dfas: &[Arc<Dfa>], limits: &LexerLimits, work: &mut Work) -> Result<Self, LexerError> {
        let (classes, n_classes, samples) = common_classes(dfas.iter().map(|dfa| &*dfa.classes));
        let start: Vec<(u32, u32)> = (0..dfas.len() as u32).map(|part| (part, START)).collect();
        let mut ids: FxHashMap<Vec<(u32, u32)>, State> = FxHashMap::default();
        let mut tuples = vec![Vec::new(), start];
        let mut next = vec![DEAD; n_classes];
        // What the states know of their parts counts too: it can be more than the table.
        let (mut n_parts, mut n_entries, mut steps) = (0, 0, 0);
        let (mut at, mut target) = (1, Vec::new());
        while at < tuples.len() {
            let cost = n_classes * (tuples[at].len() + 1);
            work.spend(cost)?;
            steps += cost;
            for &byte in &samples {
                target.clear();
                target.extend(tuples[at].iter().filter_map(|&(part, state)| {
                    let next = dfas[part as usize].step(state, byte);
                    (next != DEAD).then_some((part, next))
                }));
                let fresh = tuples.len() as State;
                next.push(match ids.get(&target) {
                    _ if target.is_empty() => DEAD,
                    Some(&id) => id,
                    None => {
                        n_parts += target.len();
                        ids.insert(target.clone(), fresh);
                        tuples.push(target.clone());
                        fresh
                    }
                });
            }
            n_entries = tuples.len() * n_classes + n_parts;
            check(n_entries, limits)?;
            at += 1;
        }
        let select = |holds: &dyn Fn(&Dfa, u32) -> bool| {
            let of = |tuple: &Vec<(u32, u32)>| {
                let parts = tuple.iter().filter(|&&(part, state)| holds(&dfas[part as usize], state));
                parts.map(|&(part, _)| part).collect()
            };
            tuples.iter().map(of).collect::<Vec<Vec<u32>>>()
        };
        let accepts = select(&|dfa, state| dfa.accepting[state as usize]);
        let live = select(&|dfa, state| dfa.can_go_on(state));
        let fingerprint = OnceLock::new();
        Ok(Self { classes, samples, next: next.into(), accepts, live, n_entries, steps, fingerprint })
    }
}

fn check(n_entries: usize, limits: &LexerLimits) -> Result<(), LexerError> {
    let limit = limits.union_entries;
    if n_entries > limit { Err(LexerError::UnionTooLarge { limit }) } else { Ok(()) }
}
