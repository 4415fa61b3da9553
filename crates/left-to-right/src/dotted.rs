//! Right-hand sides in progress, those of rules and those that automata give alike.
//!
//! What reads a text with places (parse trees, captures, explanations) follows the automata themselves, and
//! not the rules that stand for them and derive more ([`Cfg::automata`]).

use anygram_bits::BitSet;
use anygram_grammar::automata::TooManyStates;
use anygram_grammar::cfg::{Automaton, Cfg};
use anygram_grammar::ir::{NonterminalId, Symbol};

/// A right-hand side, and how much of it was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Dotted {
    /// A rule, or an automaton: these are numbered behind the rules.
    pub rule: u32,
    /// How many symbols were read, or the state of the automaton.
    pub dot: u32,
}

/// Where the right-hand sides of a grammar begin.
#[derive(Debug)]
pub(crate) struct Beginnings {
    /// By what is rewritten, in the grammar's order.
    by_lhs: Vec<Vec<Dotted>>,
    nullable: BitSet,
}

impl Beginnings {
    pub fn new(cfg: &Cfg) -> Self {
        let approximated = cfg.approximated();
        let mut by_lhs = vec![Vec::new(); cfg.n_nonterminals];
        for (at, rule) in cfg.rules.iter().enumerate() {
            if !approximated.contains(rule.lhs.index()) {
                by_lhs[rule.lhs.index()].push(Dotted { rule: at as u32, dot: 0 });
            }
        }
        for (at, automaton) in cfg.automata.iter().enumerate() {
            let rule = (cfg.rules.len() + at) as u32;
            by_lhs[automaton.lhs.index()].push(Dotted { rule, dot: automaton.automaton.start() });
        }
        Self { by_lhs, nullable: cfg.nullable() }
    }

    /// Those of a nonterminal.
    pub fn of(&self, n: NonterminalId) -> &[Dotted] {
        &self.by_lhs[n.index()]
    }

    pub fn is_nullable(&self, n: NonterminalId) -> bool {
        self.nullable.contains(n.index())
    }
}

impl Dotted {
    fn automaton(self, cfg: &Cfg) -> Option<&Automaton> {
        cfg.automata.get((self.rule as usize).checked_sub(cfg.rules.len())?)
    }

    /// What is rewritten.
    pub fn lhs(self, cfg: &Cfg) -> NonterminalId {
        self.automaton(cfg).map_or_else(|| cfg.rules[self.rule as usize].lhs, |automaton| automaton.lhs)
    }

    /// Whether it may end here.
    pub fn is_complete(self, cfg: &Cfg) -> bool {
        match self.automaton(cfg) {
            Some(automaton) => automaton.automaton.accepts(self.dot),
            None => cfg.rules[self.rule as usize].rhs.len() == self.dot as usize,
        }
    }

    /// Calls a function with each symbol that can come next; with some several times.
    pub fn each_next(self, cfg: &Cfg, mut each: impl FnMut(Symbol)) {
        match self.automaton(cfg) {
            Some(automaton) => automaton.symbols_at(self.dot).for_each(|(_, symbol)| each(symbol)),
            None => {
                cfg.rules[self.rule as usize].rhs.get(self.dot as usize).copied().into_iter().for_each(each)
            }
        }
    }

    /// Whether a symbol can come next.
    pub fn wants(self, cfg: &Cfg, symbol: Symbol) -> bool {
        match self.automaton(cfg) {
            Some(automaton) => {
                let here = automaton.automaton.symbols(self.dot);
                automaton.numbers_of(symbol).any(|number| here.binary_search(&number).is_ok())
            }
            None => cfg.rules[self.rule as usize].rhs.get(self.dot as usize) == Some(&symbol),
        }
    }

    /// Calls a function with each way to go on by a symbol: where it leads, and which of the automaton's
    /// numbers for the symbol it is, in a rule 0.
    pub fn each_step(
        self,
        cfg: &Cfg,
        symbol: Symbol,
        mut each: impl FnMut(Self, u32),
    ) -> Result<(), TooManyStates> {
        let Some(automaton) = self.automaton(cfg) else {
            if self.wants(cfg, symbol) {
                each(Self { dot: self.dot + 1, ..self }, 0);
            }
            return Ok(());
        };
        let here = automaton.automaton.symbols(self.dot);
        for number in automaton.numbers_of(symbol) {
            if here.binary_search(&number).is_ok() {
                each(Self { dot: automaton.automaton.step(self.dot, number)?, ..self }, number);
            }
        }
        Ok(())
    }

    /// Whether it is that of a rule.
    pub fn is_of_rule(self, cfg: &Cfg) -> bool {
        (self.rule as usize) < cfg.rules.len()
    }

    /// The last symbol that was read of a rule, and how it was before; `None` at its beginning, and of
    /// automata.
    pub fn before(self, cfg: &Cfg) -> Option<(Symbol, Self)> {
        let rule = cfg.rules.get(self.rule as usize)?;
        let dot = self.dot.checked_sub(1)?;
        Some((rule.rhs[dot as usize], Self { dot, ..self }))
    }
}
