//! Completion sampling: from the symbols that were found to be generating to a derivation, a sequence of
//! terminals.
//!
//! The first derivation is the recorded one, which needs no choice. Later draws choose among all productions
//! whose right side is known to be generating, some dozens of times, and follow the recorded ones from there:
//! those end, as the causes of a symbol were found before it.

use anygram_bits::Random;
use anygram_bits::work::{Stopped, Work};
use anygram_grammar::ir::TerminalId;
use rustc_hash::FxHashMap;

use super::automaton::Automaton;
use super::search::{Cause, Rules, Search, Triple};

/// Choices that a draw makes before it follows the recorded derivation.
const CHOICES: usize = 48;

/// Sequences of terminals of an intersection.
pub(super) struct Sampler<'a> {
    rules: &'a Rules,
    automaton: &'a Automaton,
    search: &'a Search,
    places: FxHashMap<Triple, u32>,
}

impl<'a> Sampler<'a> {
    pub fn new(rules: &'a Rules, automaton: &'a Automaton, search: &'a Search) -> Self {
        let places = search.triples.iter().zip(0..).map(|(&(triple, _), place)| (triple, place)).collect();
        Self { rules, automaton, search, places }
    }

    /// The terminals of a derivation; the recorded one without `random`.
    pub fn draw(
        &self,
        found: usize,
        mut random: Option<&mut Random>,
        work: &mut Work,
    ) -> Result<Vec<TerminalId>, Stopped> {
        let mut terminals = Vec::new();
        let mut choices = CHOICES;
        let mut stack = vec![self.search.triples[found].0];
        while let Some(triple) = stack.pop() {
            work.spend(4)?;
            let recorded = self.places.get(&triple).map(|&place| self.search.triples[place as usize].1);
            let cause = match &mut random {
                Some(random) if choices > 0 => {
                    choices -= 1;
                    let causes = self.causes(triple, work)?;
                    if causes.is_empty() { recorded } else { Some(causes[random.below(causes.len())]) }
                }
                _ => recorded,
            };
            let Triple { from, to, .. } = triple;
            match cause {
                Some(Cause::Terminal(terminal)) => terminals.push(terminal),
                Some(Cause::Unit(symbol)) => stack.push(Triple { from, symbol, to }),
                Some(Cause::Pair(left, between, right)) => {
                    stack.push(Triple { from: between, symbol: right, to });
                    stack.push(Triple { from, symbol: left, to: between });
                }
                None => {}
            }
        }
        Ok(terminals)
    }

    /// All productions of a symbol of which the right side is known to be generating.
    fn causes(&self, triple: Triple, work: &mut Work) -> Result<Vec<Cause>, Stopped> {
        let Triple { from, symbol, to } = triple;
        let mut causes: Vec<Cause> = self.automaton.edges[from as usize]
            .iter()
            .filter(|&&(terminal, end)| end == to && self.rules.lexical[terminal.index()].contains(&symbol))
            .map(|&(terminal, _)| Cause::Terminal(terminal))
            .collect();
        let known = |symbol: u32| self.search.is_generating(Triple { from, symbol, to });
        causes.extend(
            self.rules.children[symbol as usize]
                .iter()
                .filter(|&&child| known(child))
                .map(|&c| Cause::Unit(c)),
        );
        for &(left, right) in &self.rules.pairs[symbol as usize] {
            let between = self.search.between(left, from, right, to);
            work.spend(1 + between.len())?;
            causes.extend(between.into_iter().map(|between| Cause::Pair(left, between, right)));
        }
        Ok(causes)
    }
}
