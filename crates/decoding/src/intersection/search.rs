//! The bottom-up search: which symbols of the intersection grammar are generating.
//!
//! A symbol `ₚAᵣ` of the intersection grammar says that `A` derives something that leads the automaton from
//! `p` to `r`. The grammar is never written down: when a symbol is found to be generating, the productions in
//! which it stands beside another generating one are enumerated, from rows of bits: of `A` and `p` all `r`,
//! of `A` and `r` all `p`. The search ends at the first `ₛSₑ` with `s` the start and `e` accepting, or when
//! the agenda is empty.
//!
//! Unit rules, and rules of two symbols one of which derives nothing, are followed at once, through their
//! closure.

use anygram_bits::BitSet;
use anygram_bits::work::{Stopped, Work};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::TerminalId;
use anygram_grammar::normal::NormalForm;

use super::automaton::Automaton;

/// A rule of two symbols, by one of them: the other, and the parent.
#[derive(Clone, Copy)]
struct Beside {
    other: u32,
    parent: u32,
}

/// A grammar in C2F+ε as the search needs it.
pub(super) struct Rules {
    pub form: NormalForm,
    by_left: Vec<Vec<Beside>>,
    by_right: Vec<Vec<Beside>>,
    /// Of each symbol those that derive it alone, at once or not; each with the symbol that it derives in one
    /// step.
    up: Vec<Vec<(u32, u32)>>,
    /// Of each terminal the symbols that are it.
    pub lexical: Vec<Vec<u32>>,
    /// Of each symbol those that it derives alone in one step, and the pairs.
    pub children: Vec<Vec<u32>>,
    pub pairs: Vec<Vec<(u32, u32)>>,
    start: u32,
    pub start_is_nullable: bool,
}

impl Rules {
    pub fn new(cfg: &Cfg) -> Self {
        let form = NormalForm::binary(cfg);
        let n = form.n_symbols();
        let (mut by_left, mut by_right) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        for rule in &form.binary {
            by_left[rule.left.index()].push(Beside { other: rule.right.0, parent: rule.parent.0 });
            by_right[rule.right.index()].push(Beside { other: rule.left.0, parent: rule.parent.0 });
        }
        let unit = form.unit_children().into_iter();
        let children: Vec<Vec<u32>> =
            unit.map(|list| list.into_iter().map(|child| child.0).collect()).collect();
        let mut parents = vec![Vec::new(); n];
        for (parent, children) in children.iter().enumerate() {
            for &child in children {
                parents[child as usize].push(parent as u32);
            }
        }
        let mut pairs = vec![Vec::new(); n];
        for rule in &form.binary {
            pairs[rule.parent.index()].push((rule.left.0, rule.right.0));
        }
        let above = |symbol: usize| {
            let mut seen = BitSet::from_members(n, [symbol]);
            let mut found: Vec<(u32, u32)> = Vec::new();
            let mut agenda = vec![symbol];
            while let Some(child) = agenda.pop() {
                for &parent in &parents[child] {
                    if seen.insert(parent as usize) {
                        found.push((parent, child as u32));
                        agenda.push(parent as usize);
                    }
                }
            }
            found
        };
        let up = (0..n).map(above).collect();
        let mut lexical = vec![Vec::new(); cfg.n_terminals];
        for &(symbol, terminal) in &form.lexical {
            lexical[terminal.index()].push(symbol.0);
        }
        let (start, start_is_nullable) = (form.start.0, form.nullable.contains(form.start.index()));
        Self { form, by_left, by_right, up, lexical, children, pairs, start, start_is_nullable }
    }

    /// The productions of the intersection grammar: of each rule as many as there are ways through the
    /// automaton.
    pub fn n_productions(&self, automaton: &Automaton) -> f64 {
        let n = automaton.n_states() as f64;
        let edges = automaton.edges.iter().flatten();
        let lexical: usize = edges.map(|(terminal, _)| self.lexical[terminal.index()].len()).sum();
        let form = &self.form;
        form.binary.len() as f64 * n * n * n
            + form.unit.len() as f64 * n * n
            + form.nullable.count() as f64 * n
            + lexical as f64
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        40 * self.form.binary.len() + 8 * self.up.iter().map(Vec::len).sum::<usize>() + 64 * self.up.len()
    }
}

/// Why a symbol is generating.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    Terminal(TerminalId),
    /// This symbol alone.
    Unit(u32),
    /// Two symbols, and the state between them.
    Pair(u32, u32, u32),
}

/// A generating symbol of the intersection grammar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Triple {
    pub from: u32,
    pub symbol: u32,
    pub to: u32,
}

/// Rows of bits that are made when their first bit is set.
#[derive(Default)]
struct Rows {
    places: Vec<u32>,
    words: Vec<u64>,
    n_words: usize,
}

impl Rows {
    fn reset(&mut self, n_rows: usize, n_words: usize) {
        self.places.clear();
        self.places.resize(n_rows, u32::MAX);
        self.words.clear();
        self.n_words = n_words;
    }

    /// Sets a bit; whether it was not set.
    #[inline]
    fn insert(&mut self, row: usize, bit: u32) -> bool {
        if self.places[row] == u32::MAX {
            self.places[row] = (self.words.len() / self.n_words) as u32;
            self.words.resize(self.words.len() + self.n_words, 0);
        }
        let word = &mut self.words[self.places[row] as usize * self.n_words + bit as usize / 64];
        let mask = 1u64 << (bit % 64);
        let is_new = *word & mask == 0;
        *word |= mask;
        is_new
    }

    #[inline]
    fn row(&self, row: usize) -> Option<&[u64]> {
        let place = self.places[row];
        (place != u32::MAX).then(|| &self.words[place as usize * self.n_words..][..self.n_words])
    }

    fn contains(&self, row: usize, bit: u32) -> bool {
        self.row(row).is_some_and(|words| words[bit as usize / 64] & (1 << (bit % 64)) != 0)
    }
}

/// What a search needs, kept from one to the next.
#[derive(Default)]
pub(super) struct Search {
    n_states: usize,
    /// Of `symbol × from` the states to which it leads; and the other way round.
    forwards: Rows,
    backwards: Rows,
    pub triples: Vec<(Triple, Cause)>,
    found: Vec<u32>,
    n_touched: u64,
}

impl Search {
    /// Whether the intersection holds a sequence of terminals that is not empty; the place of its triple.
    pub fn run(
        &mut self,
        rules: &Rules,
        automaton: &Automaton,
        work: &mut Work,
    ) -> Result<Option<usize>, Stopped> {
        let n = automaton.n_states();
        let n_symbols = rules.form.n_symbols();
        work.spend(n * n_symbols / 16)?;
        self.n_states = n;
        self.forwards.reset(n * n_symbols, n.div_ceil(64));
        self.backwards.reset(n * n_symbols, n.div_ceil(64));
        self.triples.clear();
        self.n_touched = 0;
        for from in 0..n as u32 {
            for &(terminal, to) in &automaton.edges[from as usize] {
                for &symbol in &rules.lexical[terminal.index()] {
                    self.n_touched += 1;
                    if let Some(found) =
                        self.add(rules, automaton, Triple { from, symbol, to }, Cause::Terminal(terminal))
                    {
                        return Ok(Some(found));
                    }
                }
            }
        }
        let mut at = 0;
        while at < self.triples.len() {
            if let Some(found) = self.combine(rules, automaton, at, work)? {
                return Ok(Some(found));
            }
            at += 1;
        }
        Ok(None)
    }

    /// Productions that were enumerated: both symbols of their right side are generating.
    pub fn n_touched(&self) -> u64 {
        self.n_touched
    }

    /// Whether a symbol is generating.
    pub fn is_generating(&self, Triple { from, symbol, to }: Triple) -> bool {
        self.forwards.contains(symbol as usize * self.n_states + from as usize, to)
    }

    /// The states at which both symbols meet.
    pub fn between(&self, left: u32, from: u32, right: u32, to: u32) -> Vec<u32> {
        let ahead = self.forwards.row(left as usize * self.n_states + from as usize);
        let behind = self.backwards.row(right as usize * self.n_states + to as usize);
        let (Some(ahead), Some(behind)) = (ahead, behind) else { return Vec::new() };
        let mut found = Vec::new();
        let both: Vec<u64> = ahead.iter().zip(behind).map(|(a, b)| a & b).collect();
        fresh(&both, None, &mut found);
        found
    }

    fn combine(
        &mut self,
        rules: &Rules,
        automaton: &Automaton,
        at: usize,
        work: &mut Work,
    ) -> Result<Option<usize>, Stopped> {
        let (Triple { from, symbol, to }, _) = self.triples[at];
        let n = self.n_states;
        let (lefts, rights) = (&rules.by_left[symbol as usize], &rules.by_right[symbol as usize]);
        work.spend(2 + lefts.len() + rights.len())?;
        for &Beside { other, parent } in lefts {
            let Some(row) = self.forwards.row(other as usize * n + to as usize) else { continue };
            let known = self.forwards.row(parent as usize * n + from as usize);
            self.n_touched += fresh(row, known, &mut self.found);
            work.spend(self.found.len() + row.len())?;
            for place in 0..self.found.len() {
                let triple = Triple { from, symbol: parent, to: self.found[place] };
                if let Some(found) = self.add(rules, automaton, triple, Cause::Pair(symbol, to, other)) {
                    return Ok(Some(found));
                }
            }
        }
        for &Beside { other, parent } in rights {
            let Some(row) = self.backwards.row(other as usize * n + from as usize) else { continue };
            let known = self.backwards.row(parent as usize * n + to as usize);
            self.n_touched += fresh(row, known, &mut self.found);
            work.spend(self.found.len() + row.len())?;
            for place in 0..self.found.len() {
                let triple = Triple { from: self.found[place], symbol: parent, to };
                if let Some(found) = self.add(rules, automaton, triple, Cause::Pair(other, from, symbol)) {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// Notes that a symbol is generating, and those that derive it alone; the place of one that decides.
    fn add(&mut self, rules: &Rules, automaton: &Automaton, triple: Triple, cause: Cause) -> Option<usize> {
        let mut found = self.insert(rules, automaton, triple, cause);
        for &(symbol, child) in &rules.up[triple.symbol as usize] {
            found = found.or(self.insert(rules, automaton, Triple { symbol, ..triple }, Cause::Unit(child)));
        }
        found
    }

    #[inline]
    fn insert(
        &mut self,
        rules: &Rules,
        automaton: &Automaton,
        triple: Triple,
        cause: Cause,
    ) -> Option<usize> {
        let Triple { from, symbol, to } = triple;
        if !self.forwards.insert(symbol as usize * self.n_states + from as usize, to) {
            return None;
        }
        self.backwards.insert(symbol as usize * self.n_states + to as usize, from);
        self.triples.push((triple, cause));
        (symbol == rules.start && from == 0 && automaton.accepts[to as usize]).then(|| self.triples.len() - 1)
    }
}

/// The members of a row that another lacks; returns how many members it has in all.
#[inline]
fn fresh(row: &[u64], known: Option<&[u64]>, into: &mut Vec<u32>) -> u64 {
    into.clear();
    let mut n_members = 0;
    for (at, &word) in row.iter().enumerate() {
        n_members += u64::from(word.count_ones());
        let mut left = word & !known.map_or(0, |known| known[at]);
        while left != 0 {
            into.push(at as u32 * 64 + left.trailing_zeros());
            left &= left - 1;
        }
    }
    n_members
}
