//! A quick look for a completion of a canvas with gaps: always on from what lacks the fewest terminals.
//!
//! The search by the number of tokens in gaps finds the shortest completion, which can be too far. Here that
//! number counts little, so a completion is found soon where rules say what is lacking, as an object that
//! requires many keys. That none is found proves nothing. Tokens in which several pieces end are not tried.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anygram_bits::work::Work;
use anygram_left_to_right::frontier::Config;
use anygram_left_to_right::language::StepError;
use anygram_vocab::TokenId;
use rustc_hash::FxHashSet;

use crate::canvas::End;
use crate::plan::{Place, Plan};
use crate::search::Found;
use crate::tables::Tables;

/// Places that are left, and places that are come to.
const MOST_LEFT: usize = 4_000;
const MOST_REACHED: usize = 400_000;

/// What a terminal that is lacking weighs against a token.
const TERMINAL: u32 = 4;

struct Node {
    slot: usize,
    config: Config,
    parent: u32,
    /// The token on the way here, and its slot.
    token: Option<(usize, TokenId)>,
    n_in_gaps: usize,
}

/// A look for a completion.
struct Greedy<'a> {
    tables: &'a mut Tables,
    nodes: Vec<Node>,
    seen: FxHashSet<(usize, Config)>,
    open: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Tables {
    /// A completion, if one is found soon.
    pub fn greedy(&mut self, plan: &Plan, work: &mut Work) -> Result<Option<Found>, StepError> {
        let right = self.right(plan);
        let counts = matches!(plan.whole, Some(End::Prefix { remaining: Some(_) }));
        let Some(start) = self.start()?.filter(|_| !right.is_hopeless && !counts) else { return Ok(None) };
        let n_slots = plan.places.len();
        let mut greedy =
            Greedy { tables: self, nodes: Vec::new(), seen: FxHashSet::default(), open: BinaryHeap::new() };
        greedy.add(n_slots, Node { slot: 0, config: start, parent: u32::MAX, token: None, n_in_gaps: 0 });
        for _ in 0..MOST_LEFT {
            let Some(Reverse((_, at))) = greedy.open.pop() else { break };
            let Node { slot, config, n_in_gaps, .. } = greedy.nodes[at as usize];
            let is_end = if slot == n_slots {
                greedy.tables.ends_whole(plan, config, work)?
            } else {
                plan.ends[slot] && greedy.tables.stepper.is_sentence(&[config])
            };
            if is_end {
                return Ok(Some(greedy.found(at)));
            }
            let n_reached = greedy.nodes.len();
            for (after, config, token) in greedy.ways(plan, slot, config)? {
                if right.allows(after, greedy.tables.union_state(config.lexeme)) {
                    let n_in_gaps = n_in_gaps + usize::from(after == slot);
                    let token = token.map(|token| (slot, token));
                    greedy.add(n_slots, Node { slot: after, config, parent: at, token, n_in_gaps });
                }
            }
            work.spend(crate::tables::STEPS_PER_VISIT * (1 + greedy.nodes.len() - n_reached))?;
            if greedy.nodes.len() > MOST_REACHED {
                break;
            }
        }
        Ok(None)
    }
}

impl Greedy<'_> {
    fn add(&mut self, n_slots: usize, node: Node) {
        if self.seen.insert((node.slot, node.config)) {
            let lacking = self.tables.lacking(node.config.state).saturating_mul(TERMINAL);
            let is_open = !self.tables.stepper.transducer().is_boundary(node.config.lexeme);
            let far = node.n_in_gaps + n_slots - node.slot + usize::from(is_open);
            self.open.push(Reverse((lacking.saturating_add(far as u32), self.nodes.len() as u32)));
            self.nodes.push(node);
        }
    }

    /// How a place can be left: to which slot and reading, and by which token.
    fn ways(
        &mut self,
        plan: &Plan,
        slot: usize,
        config: Config,
    ) -> Result<Vec<(usize, Config, Option<TokenId>)>, StepError> {
        let Some(&place) = plan.places.get(slot) else { return Ok(Vec::new()) };
        let mut ways = Vec::new();
        let after = match place {
            Place::Closed => return Ok(ways),
            Place::Token(token) => {
                let readings = self.tables.read(config, token)?;
                ways.extend(readings.iter().map(|&reading| (slot + 1, reading, Some(token))));
                return Ok(ways);
            }
            Place::Free => slot + 1,
            Place::Gap | Place::Optional => {
                ways.push((slot + 1, config, None));
                if place == Place::Gap { slot } else { slot + 1 }
            }
        };
        let walk = self.tables.walk(config, None)?;
        for &(lexeme, ref tokens) in &walk.stays {
            ways.extend(
                tokens.first.map(|token| (after, Config { state: config.state, lexeme }, Some(token))),
            );
        }
        for (at, exit) in walk.exits.iter().enumerate() {
            if let Some(token) = exit.ends.first
                && let Some(config) = self.tables.end(config, &walk, at)?
            {
                ways.push((after, config, Some(token)));
            }
        }
        Ok(ways)
    }

    fn found(&self, last: u32) -> Found {
        let Node { slot: end, n_in_gaps, .. } = self.nodes[last as usize];
        let path =
            std::iter::successors(self.nodes.get(last as usize), |node| self.nodes.get(node.parent as usize));
        let mut tokens: Vec<(usize, TokenId)> = path.filter_map(|node| node.token).collect();
        tokens.reverse();
        Found { end, tokens, n_in_gaps, closing: Vec::new() }
    }
}
