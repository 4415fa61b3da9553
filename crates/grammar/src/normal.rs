//! Normal forms: rules of at most two symbols.
//!
//! | form | rules | size |
//! |---|---|---|
//! | [`NormalForm::binary`], *C2F+ε* (Mündler et al., 2026) | `X → Y Z`, `X → Y`, `X → t`, `X → ε` | linear in the grammar |
//! | [`NormalForm::chomsky`], *CNF* (Chomsky, 1959) | `X → Y Z`, `X → t`, and whether the start derives ε | up to quadratic: unit rules are removed |
//!
//! Binarization leans to the right: `X → A B C` becomes `X → A ⟨B C⟩` and `⟨B C⟩ → B C`, so the symbols that
//! stand on the left of a rule, the only ones that the [Valiant recognizer] has to keep, are symbols of the
//! grammar and never suffixes. Equal suffixes are one symbol. Empty and unit rules are removed by closure,
//! not by rewriting one after the other, so cycles (`A → A`, `A → B`, `B → A`) need no care.
//!
//! [Valiant recognizer]: ../../anygram_recognizer/valiant/index.html

use std::collections::HashMap;

use anygram_bits::work::{Stopped, Work};
use anygram_bits::{BitSet, index_type};

use crate::cfg::Cfg;
use crate::ir::{NonterminalId, Symbol, TerminalId};

index_type!(
    /// A symbol of a normal form.
    NormalId
);

/// Which normal form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// C2F+ε.
    Binary,
    /// Chomsky's.
    Chomsky,
}

/// The meaning of a symbol of a normal form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Meaning {
    /// A nonterminal of the grammar.
    Nonterminal(NonterminalId),
    /// One terminal, where a rule of two symbols needs it.
    Terminal(TerminalId),
    /// What is left of a rule: the symbols from `from` on.
    Suffix {
        /// The position of a rule in [`Cfg::rules`] that ends so.
        rule: usize,
        /// The first symbol of it, at least 1.
        from: usize,
    },
}

/// `parent → left right`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Binary {
    /// The first child.
    pub left: NormalId,
    /// The second child.
    pub right: NormalId,
    /// What they make.
    pub parent: NormalId,
}

/// A grammar in a normal form. Rules are sorted, without repetition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NormalForm {
    /// Which it is.
    pub form: Form,
    /// What each symbol stands for. Those of nonterminals have the nonterminal's number.
    pub meanings: Vec<Meaning>,
    /// The symbol from which derivations begin.
    pub start: NormalId,
    /// `parent → left right`, sorted by left child.
    pub binary: Vec<Binary>,
    /// `(parent, child)`; none in Chomsky's form.
    pub unit: Vec<(NormalId, NormalId)>,
    /// `(parent, terminal)`.
    pub lexical: Vec<(NormalId, TerminalId)>,
    /// The symbols that derive the empty sequence; in Chomsky's form, where no rule uses it, at most the
    /// start.
    pub nullable: BitSet,
}

impl NormalForm {
    /// The grammar in C2F+ε. Cost and size: linear in the grammar.
    pub fn binary(cfg: &Cfg) -> Self {
        let mut this = Self {
            form: Form::Binary,
            meanings: (0..cfg.n_nonterminals).map(|n| Meaning::Nonterminal(NonterminalId::new(n))).collect(),
            start: NormalId(cfg.start.0),
            binary: Vec::new(),
            unit: Vec::new(),
            lexical: Vec::new(),
            nullable: BitSet::new(0),
        };
        let mut terminals = vec![None; cfg.n_terminals];
        let mut suffixes: HashMap<(NormalId, NormalId), NormalId> = HashMap::new();
        let mut empty = Vec::new();
        for (at, rule) in cfg.rules.iter().enumerate() {
            let lhs = NormalId(rule.lhs.0);
            match rule.rhs[..] {
                [] => empty.push(lhs),
                [Symbol::Terminal(terminal)] => this.lexical.push((lhs, terminal)),
                [Symbol::Nonterminal(n)] => this.unit.push((lhs, NormalId(n.0))),
                [ref before @ .., last] => {
                    let mut right = this.symbol(last, &mut terminals);
                    for (from, &symbol) in before.iter().enumerate().rev() {
                        let left = this.symbol(symbol, &mut terminals);
                        let parent = match from {
                            0 => lhs,
                            _ => *suffixes.entry((left, right)).or_insert_with(|| {
                                this.meanings.push(Meaning::Suffix { rule: at, from });
                                NormalId::new(this.meanings.len() - 1)
                            }),
                        };
                        this.binary.push(Binary { left, right, parent });
                        right = parent;
                    }
                }
            }
        }
        this.tidy();
        this.nullable = this.find_nullable(&empty);
        this
    }

    /// The grammar in Chomsky's normal form. Cost and size: symbols × rules at worst.
    pub fn chomsky(cfg: &Cfg, work: &mut Work) -> Result<Self, Stopped> {
        let mut this = Self::binary(cfg);
        let children = this.unit_children();
        let (mut binary_of, mut lexical_of) =
            (vec![Vec::new(); this.n_symbols()], vec![Vec::new(); this.n_symbols()]);
        for &rule in &this.binary {
            binary_of[rule.parent.index()].push(rule);
        }
        for &(parent, terminal) in &this.lexical {
            lexical_of[parent.index()].push(terminal);
        }
        let (mut binary, mut lexical) = (Vec::new(), Vec::new());
        let (mut seen, mut agenda) = (BitSet::new(this.n_symbols()), Vec::new());
        for parent in (0..this.n_symbols()).map(NormalId::new) {
            seen.clear();
            seen.insert(parent.index());
            agenda.push(parent);
            while let Some(child) = agenda.pop() {
                let (rules, terminals) = (&binary_of[child.index()], &lexical_of[child.index()]);
                work.spend(1 + rules.len() + terminals.len() + children[child.index()].len())?;
                binary.extend(rules.iter().map(|&rule| Binary { parent, ..rule }));
                lexical.extend(terminals.iter().map(|&terminal| (parent, terminal)));
                agenda.extend(children[child.index()].iter().filter(|child| seen.insert(child.index())));
            }
        }
        let start_is_nullable = this.nullable.contains(this.start.index());
        this.nullable.clear();
        if start_is_nullable {
            this.nullable.insert(this.start.index());
        }
        (this.form, this.binary, this.lexical) = (Form::Chomsky, binary, lexical);
        this.unit.clear();
        this.trim();
        this.tidy();
        Ok(this)
    }

    /// The number of symbols, those without a use included.
    pub fn n_symbols(&self) -> usize {
        self.meanings.len()
    }

    /// The symbols that some rule names.
    pub fn used_symbols(&self) -> BitSet {
        let binary = self.binary.iter().flat_map(|rule| [rule.parent, rule.left, rule.right]);
        let unit = self.unit.iter().flat_map(|&(parent, child)| [parent, child]);
        let all = binary.chain(unit).chain(self.lexical.iter().map(|&(parent, _)| parent));
        BitSet::from_members(self.n_symbols(), all.map(NormalId::index))
    }

    /// The number of rules.
    pub fn n_rules(&self) -> usize {
        self.binary.len() + self.unit.len() + self.lexical.len()
    }

    /// The symbols that are the left child of some rule, in ascending order.
    pub fn left_children(&self) -> Vec<NormalId> {
        let mut left: Vec<NormalId> = self.binary.iter().map(|rule| rule.left).collect();
        left.dedup();
        left
    }

    /// Of each symbol those that it derives by unit rules, one step, and by rules of two of which the other
    /// derives the empty sequence.
    pub fn unit_children(&self) -> Vec<Vec<NormalId>> {
        let mut children = vec![Vec::new(); self.n_symbols()];
        for &(parent, child) in &self.unit {
            children[parent.index()].push(child);
        }
        for &Binary { left, right, parent } in &self.binary {
            if self.is_empty_somewhere(right) {
                children[parent.index()].push(left);
            }
            if self.is_empty_somewhere(left) {
                children[parent.index()].push(right);
            }
        }
        for list in &mut children {
            list.sort_unstable();
            list.dedup();
        }
        children
    }

    /// What a symbol derives in the grammar's own symbols.
    pub fn spelled(&self, cfg: &Cfg, symbol: NormalId) -> Vec<Symbol> {
        match self.meanings[symbol.index()] {
            Meaning::Nonterminal(n) => vec![Symbol::Nonterminal(n)],
            Meaning::Terminal(t) => vec![Symbol::Terminal(t)],
            Meaning::Suffix { rule, from } => cfg.rules[rule].rhs[from..].to_vec(),
        }
    }

    /// Whether a rule may take the symbol for nothing. (In Chomsky's form the start may be empty, but not
    /// inside of others.)
    fn is_empty_somewhere(&self, symbol: NormalId) -> bool {
        self.form == Form::Binary && self.nullable.contains(symbol.index())
    }

    fn symbol(&mut self, symbol: Symbol, terminals: &mut [Option<NormalId>]) -> NormalId {
        match symbol {
            Symbol::Nonterminal(n) => NormalId(n.0),
            Symbol::Terminal(t) => *terminals[t.index()].get_or_insert_with(|| {
                let id = NormalId::new(self.meanings.len());
                self.meanings.push(Meaning::Terminal(t));
                self.lexical.push((id, t));
                id
            }),
        }
    }

    fn tidy(&mut self) {
        self.binary.sort_unstable();
        self.binary.dedup();
        self.unit.sort_unstable();
        self.unit.dedup();
        self.lexical.sort_unstable();
        self.lexical.dedup();
    }

    /// Leaves out rules of symbols that derive nothing but the empty sequence, or that nothing leads to.
    fn trim(&mut self) {
        let n_symbols = self.n_symbols();
        let mut productive = BitSet::new(n_symbols);
        productive.extend(self.lexical.iter().map(|&(parent, _)| parent.index()));
        let mut waiting: Vec<Vec<Binary>> = vec![Vec::new(); n_symbols];
        let mut agenda = self.binary.clone();
        while let Some(rule) = agenda.pop() {
            match [rule.left, rule.right].into_iter().find(|child| !productive.contains(child.index())) {
                Some(child) => waiting[child.index()].push(rule),
                None if productive.insert(rule.parent.index()) => {
                    agenda.append(&mut waiting[rule.parent.index()])
                }
                None => {}
            }
        }
        self.binary
            .retain(|rule| productive.contains(rule.left.index()) && productive.contains(rule.right.index()));
        let mut of_parent = vec![Vec::new(); n_symbols];
        for rule in &self.binary {
            of_parent[rule.parent.index()].extend([rule.left, rule.right]);
        }
        let mut reachable = BitSet::from_members(n_symbols, [self.start.index()]);
        let mut agenda = vec![self.start];
        while let Some(parent) = agenda.pop() {
            agenda.extend(of_parent[parent.index()].iter().filter(|child| reachable.insert(child.index())));
        }
        self.binary.retain(|rule| reachable.contains(rule.parent.index()));
        self.lexical.retain(|(parent, _)| reachable.contains(parent.index()));
    }

    fn find_nullable(&self, empty: &[NormalId]) -> BitSet {
        let mut nullable = BitSet::new(self.n_symbols());
        // What becomes nullable with a symbol: its parents by unit rules, and those whose other child is
        // nullable too.
        let mut parents: Vec<Vec<(NormalId, Option<NormalId>)>> = vec![Vec::new(); self.n_symbols()];
        for &(parent, child) in &self.unit {
            parents[child.index()].push((parent, None));
        }
        for &Binary { left, right, parent } in &self.binary {
            parents[left.index()].push((parent, Some(right)));
            parents[right.index()].push((parent, Some(left)));
        }
        let mut agenda = empty.to_vec();
        while let Some(symbol) = agenda.pop() {
            if nullable.insert(symbol.index()) {
                let ready = parents[symbol.index()]
                    .iter()
                    .filter(|(_, other)| other.is_none_or(|other| nullable.contains(other.index())));
                agenda.extend(ready.map(|&(parent, _)| parent));
            }
        }
        nullable
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lark::{LarkOptions, parse};

    fn cfg(source: &str) -> Cfg {
        let grammar = parse(source, &LarkOptions::default()).unwrap();
        Cfg::reduce(&grammar, &BitSet::new(grammar.terminals.len())).unwrap()
    }

    /// The sequences of at most `longest` terminals that a normal form derives, by the definition.
    fn language(form: &NormalForm, longest: usize) -> Vec<Vec<u32>> {
        let mut derived: Vec<std::collections::BTreeSet<Vec<u32>>> =
            vec![Default::default(); form.n_symbols()];
        for symbol in form.nullable.iter() {
            derived[symbol].insert(vec![]);
        }
        for &(parent, terminal) in &form.lexical {
            derived[parent.index()].insert(vec![terminal.0]);
        }
        loop {
            let mut changed = false;
            for &(parent, child) in &form.unit {
                let words = derived[child.index()].clone();
                let before = derived[parent.index()].len();
                derived[parent.index()].extend(words);
                changed |= derived[parent.index()].len() > before;
            }
            for &Binary { left, right, parent } in &form.binary {
                let mut words = Vec::new();
                for a in &derived[left.index()] {
                    let fitting = derived[right.index()].iter().filter(|b| a.len() + b.len() <= longest);
                    words.extend(fitting.map(|b| [&a[..], b].concat()));
                }
                let before = derived[parent.index()].len();
                derived[parent.index()].extend(words);
                changed |= derived[parent.index()].len() > before;
            }
            if !changed {
                return derived[form.start.index()].iter().cloned().collect();
            }
        }
    }

    #[test]
    fn both_forms_derive_what_the_grammar_derives() {
        for (source, n_words) in [
            ("start: \"a\" start \"b\" | \"\"", 3),
            ("start: start start | \"a\"", 5),
            ("start: x\nx: y | \"a\"\ny: x | \"b\" x?", 10),
            ("start: e e e\ne: start | \"a\"?", 6),
            ("start: \"a\"? \"b\"? \"c\"?", 8),
            ("start: a \"x\" b \"x\" b\na: \"a\"\nb: \"b\" | a", 4),
            ("start: \"a\"~2..3 | \"b\" start?", 12),
        ] {
            let cfg = cfg(source);
            let binary = NormalForm::binary(&cfg);
            let chomsky = NormalForm::chomsky(&cfg, &mut Work::unbounded()).unwrap();
            let expected = language(&binary, 5);
            assert_eq!(expected.len(), n_words, "{source}: {expected:?}");
            assert_eq!(language(&chomsky, 5), expected, "{source}");
            assert!(chomsky.unit.is_empty() && chomsky.nullable.count() <= 1);
        }
    }

    #[test]
    fn binarization_leans_to_the_right_and_shares_suffixes() {
        let cfg = cfg("start: a b c d | c b c d\na: \"a\"\nb: \"b\"\nc: \"c\"\nd: \"d\"");
        let form = NormalForm::binary(&cfg);
        assert_eq!(form.binary.len(), 4);
        assert!(
            form.left_children()
                .iter()
                .all(|left| matches!(form.meanings[left.index()], Meaning::Nonterminal(_)))
        );
        let suffix = form.binary.iter().find(|rule| rule.parent == form.start).unwrap().right;
        assert_eq!(form.spelled(&cfg, suffix).len(), 3);
    }

    #[test]
    fn a_unit_chain_is_quadratic_in_one_form_only() {
        let rules: Vec<String> = (0..200).map(|at| format!("r{at}: r{} | \"{at}\" \"x\"", at + 1)).collect();
        let cfg = cfg(&format!("start: r0 start?\n{}\nr200: \"y\"", rules.join("\n")));
        assert!(NormalForm::binary(&cfg).n_rules() < 1_500);
        let chomsky = NormalForm::chomsky(&cfg, &mut Work::unbounded()).unwrap();
        // Nothing but the first of the chain is reachable once unit rules are gone.
        assert!(chomsky.n_rules() < 1_500);
        assert!(NormalForm::chomsky(&cfg, &mut Work::new(1_000, "steps")).is_err());
    }
}
