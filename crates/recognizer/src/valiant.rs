//! The incremental Valiant recognizer: a chart built tier by tier, bit-parallel over rows.
//!
//! Source: *An Incremental Valiant Recognizer for GPU-accelerated General Context-free Prefix Validation*,
//! sections 4 and 5. What is computed and why it is right, step by step, is in `docs/algorithms/valiant.md`;
//! in short:
//!
//! - A *tier* belongs to a state. It holds, for each symbol of the [normal form](NormalForm), the set of
//!   rows, which are the earlier states from which the symbol derives what was read up to this state: one bit
//!   a row. Only symbols that are a left child are kept. Tiers are never written again, so states that have a
//!   beginning in common share its tiers, and a fork costs nothing.
//! - A new tier is filled from its highest row down: where a right child `B` begins in row `k`,
//!   `rows[V] |= tier[k][A]` for every `V → A B`. What is added lies below `k`, so each row is visited once,
//!   and one machine word advances 64 rows (algorithm 2). Where many rows of a word hold something and tiers
//!   have the row before only, as those of terminals do, the rows of the word are taken at once.
//! - With each state goes its *prediction*: the symbols that may begin there (ANCESTOR↓, algorithm 4, closed
//!   under FIRST). A symbol enters a row only if it was predicted there, which keeps the charts of
//!   unambiguous grammars thin, and makes every state viable: ANCESTOR↑ (algorithm 3) is then the question
//!   whether a terminal is among those that the prediction begins with.
//! - States need not be a chain. A state that several edges lead to has the union of what they bring, and
//!   rows are numbered by states, so lattices (several labels of a piece, several cuts) need nothing more.
//!
//! Cost of a step: for each row in which something begins, the left children that end there, each with its
//! parents; and for each rule that is completed so, the words of one row set. A symbol that has all rows
//! already costs no words.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use anygram_bits::kernels::Kernels;
use anygram_bits::work::Work;
use anygram_bits::{BitSet, kernels};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{Rule, Symbol};
use anygram_grammar::normal::{Form, Meaning, NormalForm, NormalId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    Begun, Edge, Left, Mark, Recognizer, RecognizerError, RecognizerLimits, Relation, StateId, Visit,
};

const WORD: usize = u64::BITS as usize;
const NONE: u32 = u32::MAX;

/// The rules of the grammar, each from the sides from which it is asked for.
#[derive(Clone, Debug)]
struct Tables {
    form: NormalForm,
    start: u32,
    /// Of each terminal the symbols that are just it.
    lexical: Lists<u32>,
    /// Of each symbol the terminals that it may be.
    terminals: Lists<u32>,
    /// Of each symbol those that it is enough for: by unit rules, and where the other of two children derives
    /// the empty sequence.
    up: Lists<u32>,
    /// Of each symbol those that it may begin with, one step.
    first: Lists<u32>,
    /// The symbols that are a left child, and of each symbol its place among them.
    lefts: Vec<u32>,
    left_of: Vec<u32>,
    /// Of each symbol the rules in which it is the right child: the place of the left child, and the parent.
    by_right: Lists<(u32, u32)>,
    /// Of each left child, by place, its parents, each with the right children.
    parents: Lists<(u32, (u32, u32))>,
    rights: Vec<u32>,
    /// Of each symbol the rules in which it is the left child: right child and parent.
    by_left: Lists<(u32, u32)>,
    /// The fewest terminals that each symbol derives.
    minimum: Vec<u32>,
    is_start_nullable: bool,
}

/// A list for each of `0..n`, end to end.
#[derive(Clone, Debug)]
struct Lists<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T: Ord + Copy> Lists<T> {
    /// Sorts the items into lists and leaves out repetitions.
    fn new(n: usize, mut pairs: Vec<(u32, T)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut starts = vec![0u32; n + 1];
        pairs.iter().for_each(|&(at, _)| starts[at as usize + 1] += 1);
        for at in 0..n {
            starts[at + 1] += starts[at];
        }
        Self { starts, items: pairs.into_iter().map(|(_, item)| item).collect() }
    }

    #[inline]
    fn of(&self, at: u32) -> &[T] {
        &self.items[self.starts[at as usize] as usize..self.starts[at as usize + 1] as usize]
    }
}

impl Tables {
    fn new(cfg: &Cfg, form: NormalForm) -> Self {
        let n = form.n_symbols();
        let nullable = |symbol: NormalId| form.form == Form::Binary && form.nullable.contains(symbol.index());
        let binary = || form.binary.iter();
        let lefts: Vec<u32> = form.left_children().iter().map(|left| left.0).collect();
        let mut left_of = vec![NONE; n];
        lefts.iter().zip(0..).for_each(|(&left, place)| left_of[left as usize] = place);
        let mut up = Vec::new();
        for (parent, children) in (0..).zip(form.unit_children()) {
            up.extend(children.iter().filter(|child| child.0 != parent).map(|child| (child.0, parent)));
        }
        let mut first: Vec<(u32, u32)> =
            form.unit.iter().map(|&(parent, child)| (parent.0, child.0)).collect();
        for rule in binary() {
            first.push((rule.parent.0, rule.left.0));
            if nullable(rule.left) {
                first.push((rule.parent.0, rule.right.0));
            }
        }
        let mut groups: Vec<(u32, u32, u32)> =
            binary().map(|rule| (left_of[rule.left.index()], rule.parent.0, rule.right.0)).collect();
        groups.sort_unstable();
        let rights: Vec<u32> = groups.iter().map(|group| group.2).collect();
        let mut parents = Vec::new();
        let mut at = 0;
        for group in groups.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            parents.push((group[0].0, (group[0].1, (at, at + group.len() as u32))));
            at += group.len() as u32;
        }
        let of_nonterminal = cfg.minimum_lengths();
        let length = |&symbol: &Symbol| match symbol {
            Symbol::Terminal(_) => 1,
            Symbol::Nonterminal(n) => of_nonterminal[n.index()],
        };
        // Of each rule what is left from each of its symbols on: a suffix need not be spelled out, which
        // would be quadratic in long rules.
        let left = |rule: &Rule| {
            let mut sums: Vec<u32> = rule.rhs.iter().map(length).collect();
            for at in (1..sums.len()).rev() {
                sums[at - 1] = sums[at - 1].saturating_add(sums[at]);
            }
            sums
        };
        let lefts_of_rules: Vec<Vec<u32>> = cfg.rules.iter().map(left).collect();
        let minimum = form.meanings.iter().map(|meaning| match *meaning {
            Meaning::Nonterminal(n) => of_nonterminal[n.index()],
            Meaning::Terminal(_) => 1,
            Meaning::Suffix { rule, from } => lefts_of_rules[rule][from],
        });
        Self {
            start: form.start.0,
            lexical: Lists::new(
                cfg.n_terminals,
                form.lexical.iter().map(|&(symbol, t)| (t.0, symbol.0)).collect(),
            ),
            terminals: Lists::new(n, form.lexical.iter().map(|&(symbol, t)| (symbol.0, t.0)).collect()),
            up: Lists::new(n, up),
            first: Lists::new(n, first),
            by_right: Lists::new(
                n,
                binary().map(|rule| (rule.right.0, (left_of[rule.left.index()], rule.parent.0))).collect(),
            ),
            parents: Lists::new(lefts.len(), parents),
            rights,
            by_left: Lists::new(
                n,
                binary().map(|rule| (rule.left.0, (rule.right.0, rule.parent.0))).collect(),
            ),
            minimum: minimum.collect(),
            is_start_nullable: form.nullable.contains(form.start.index()),
            lefts,
            left_of,
            form,
        }
    }
}

/// What may begin in a state.
#[derive(Clone, Debug)]
struct Prediction {
    symbols: BitSet,
    terminals: BitSet,
}

/// A state that was computed elsewhere, by a device, from the same rules: see [`Valiant::adopt`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tier {
    /// Left children with their rows: words of bits, from row 0 on.
    pub rows: Vec<(NormalId, Vec<u64>)>,
    /// The symbols that may begin in it.
    pub predicted: BitSet,
    /// The terminals that may come next.
    pub viable: BitSet,
    /// Whether what was read is a sentence.
    pub is_sentence: bool,
    /// Whether nothing but ignored pieces was read.
    pub is_root: bool,
}

/// A state; its tier is in the engine's arenas.
#[derive(Clone, Copy, Debug)]
struct State {
    prediction: u32,
    is_sentence: bool,
    /// Whether the text may begin here: nothing but ignored pieces was read.
    is_root: bool,
    /// Where its spans begin; they end where the next state's begin.
    spans: u32,
}

/// The rows of one symbol in one tier: words of bits.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// The place of the symbol among the left children.
    left: u32,
    /// The first word that is not empty, and how many there are.
    first: u32,
    length: u32,
    /// Where the words are.
    offset: u32,
}

/// What is known of the 64 states of a word, for steps that take all of them at once.
#[derive(Clone, Debug, Default)]
struct Column {
    /// The different predictions, each with the states that have it.
    predictions: Vec<(u32, u64)>,
    /// The left children of tiers, sorted.
    lefts: Vec<ColumnLeft>,
}

/// A left child in the tiers of the states of a word.
#[derive(Clone, Copy, Debug)]
struct ColumnLeft {
    left: u32,
    /// The states in whose tier its only row is that of the state before.
    unit: u64,
    /// The others that have it.
    other: u64,
}

impl Column {
    fn note(&mut self, prediction: u32, bit: u64) {
        match self.predictions.iter_mut().find(|known| known.0 == prediction) {
            Some((_, states)) => *states |= bit,
            None => self.predictions.push((prediction, bit)),
        }
    }

    fn memory_usage(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.predictions) + size_of_val(&*self.lefts)
    }

    fn note_left(&mut self, left: u32, is_unit: bool, bit: u64) {
        let at = self.lefts.binary_search_by_key(&left, |known| known.left).unwrap_or_else(|at| {
            self.lefts.insert(at, ColumnLeft { left, unit: 0, other: 0 });
            at
        });
        let known = &mut self.lefts[at];
        *if is_unit { &mut known.unit } else { &mut known.other } |= bit;
    }
}

/// A tier in the making: rows of symbols, dense.
#[derive(Clone, Debug, Default)]
struct Draft {
    /// Words of a row.
    stride: usize,
    words: Vec<u64>,
    /// The symbol of each slot, and of each symbol its slot.
    symbols: Vec<u32>,
    slot_of: Vec<u32>,
    /// Of each symbol whether it has all rows that are left, and cannot gain any.
    is_full: Vec<bool>,
    /// Of each slot, in the word that is visited, the rows that were looked at, and those of them that it
    /// has.
    looked_at: Vec<u64>,
    settled: Vec<u64>,
    /// Scratch of a visit: the symbols of the row, also as a flag of each symbol, and where rows are added.
    active: Vec<u32>,
    is_active: Vec<bool>,
    targets: Vec<u32>,
}

impl Draft {
    fn begin(&mut self, n_states: usize) {
        for symbol in self.symbols.drain(..) {
            self.slot_of[symbol as usize] = NONE;
            self.is_full[symbol as usize] = false;
        }
        self.words.clear();
        self.stride = n_states.div_ceil(WORD).max(1);
    }

    #[inline]
    fn slot(&mut self, symbol: u32) -> usize {
        let slot = self.slot_of[symbol as usize];
        if slot != NONE {
            return slot as usize;
        }
        self.slot_of[symbol as usize] = self.symbols.len() as u32;
        self.symbols.push(symbol);
        self.words.resize(self.words.len() + self.stride, 0);
        self.symbols.len() - 1
    }

    fn set(&mut self, symbol: u32, row: usize) {
        let at = self.slot(symbol) * self.stride + row / WORD;
        self.words[at] |= 1 << (row % WORD);
    }

    /// Which rows of a word are set, of any symbol.
    fn rows_at(&self, at: usize) -> u64 {
        self.words.iter().skip(at).step_by(self.stride).fold(0, |all, &word| all | word)
    }

    /// Finds the symbols that have all rows up to those of a word.
    fn find_full(&mut self, at: usize) {
        for (&symbol, words) in self.symbols.iter().zip(self.words.chunks_exact(self.stride)) {
            self.is_full[symbol as usize] = words[..=at].iter().all(|&word| word == u64::MAX);
        }
    }

    /// Visits a row, a bit of a word, to which nothing will be added from others: takes away what is not
    /// predicted there, adds what follows there, and lists all.
    fn visit(&mut self, at: usize, bit: u64, predicted: &BitSet, up: &Lists<u32>, active: &mut Vec<u32>) {
        for (&symbol, words) in self.symbols.iter().zip(self.words.chunks_exact_mut(self.stride)) {
            if words[at] & bit != 0 {
                if predicted.contains(symbol as usize) {
                    active.push(symbol);
                } else {
                    words[at] &= !bit;
                }
            }
        }
        let mut next = 0;
        while let Some(&symbol) = active.get(next) {
            next += 1;
            for &parent in up.of(symbol).iter().filter(|&&parent| predicted.contains(parent as usize)) {
                let place = self.slot(parent) * self.stride + at;
                if self.words[place] & bit == 0 {
                    self.words[place] |= bit;
                    active.push(parent);
                }
            }
        }
    }

    /// Which rows of a word a symbol has.
    #[inline]
    fn word(&self, symbol: u32, at: usize) -> u64 {
        match self.slot_of[symbol as usize] {
            NONE => 0,
            slot => self.words[slot as usize * self.stride + at],
        }
    }

    /// Rows of a word from a bit on are done.
    fn begin_word(&mut self, at: usize, done: u64) {
        let of_word = self.words.iter().skip(at).step_by(self.stride).map(|word| word & done);
        self.looked_at.clear();
        self.looked_at.extend(of_word);
        self.settled.clone_from(&self.looked_at);
    }

    /// Takes away the rows of a word that are not predicted, and adds those that symbols are enough for.
    /// Returns the rows in which it finds a right child that was not there before.
    fn settle(&mut self, at: usize, column: &Column, chart: &Chart<'_>) -> u64 {
        let (mut slot, mut begun) = (0, 0);
        while let Some(&symbol) = self.symbols.get(slot) {
            self.looked_at.resize(self.symbols.len(), 0);
            self.settled.resize(self.symbols.len(), 0);
            let word = &mut self.words[slot * self.stride + at];
            let mut fresh = *word & !self.looked_at[slot];
            if fresh != 0 {
                self.looked_at[slot] |= fresh;
                fresh = chart.predicting(symbol, at, column, fresh);
                self.settled[slot] |= fresh;
            }
            *word = self.settled[slot];
            slot += 1;
            if fresh == 0 {
                continue;
            }
            if !chart.tables.by_right.of(symbol).is_empty() {
                begun |= fresh;
            }
            for &parent in chart.tables.up.of(symbol) {
                let parent_slot = self.slot(parent);
                self.words[parent_slot * self.stride + at] |= fresh;
                // One that was looked at before has more now.
                slot = slot.min(parent_slot);
            }
        }
        begun
    }

    /// The symbols that have a row, a bit of a word.
    fn symbols_at(&self, at: usize, bit: usize) -> impl Iterator<Item = u32> + '_ {
        let all = self.symbols.iter().zip(self.words.chunks_exact(self.stride));
        all.filter(move |(_, words)| words[at] >> bit & 1 == 1).map(|(&symbol, _)| symbol)
    }

    /// Follows the tier of a state in whose row, a bit of a word, some symbols begin: the rows of left
    /// children are rows of their parents. Returns those of the same word.
    fn follow(&mut self, chart: &Chart<'_>, (at, bit): (usize, usize), active: &[u32]) -> u64 {
        let &Chart { tables, states, spans, words, kernels, .. } = chart;
        let mut targets = std::mem::take(&mut self.targets);
        let mut added = 0;
        active.iter().for_each(|&symbol| self.is_active[symbol as usize] = true);
        for &Span { left, first, length, offset } in tier(states, spans, at * WORD + bit) {
            targets.clear();
            for &(parent, (from, to)) in tables.parents.of(left) {
                let rights = &tables.rights[from as usize..to as usize];
                if !self.is_full[parent as usize]
                    && rights.iter().any(|&right| self.is_active[right as usize])
                {
                    targets.push((self.slot(parent) * self.stride) as u32 + first);
                }
            }
            let rows = &words[offset as usize..][..length as usize];
            if !targets.is_empty() && at >= first as usize {
                added |= rows.get(at - first as usize).copied().unwrap_or(0);
            }
            kernels.or_into_each(&mut self.words, &targets, rows);
        }
        active.iter().for_each(|&symbol| self.is_active[symbol as usize] = false);
        self.targets = targets;
        added
    }

    /// Completes a word that was begun: visits its rows at once, or the highest of those in which something
    /// began.
    fn fill_word(&mut self, chart: &Chart<'_>, at: usize, column: &Column, active: &mut Vec<u32>) {
        // Rows in which something began that was not followed, and those of which only some tiers were.
        let (mut begun, mut others) = (0, 0);
        loop {
            begun |= self.settle(at, column, chart);
            if begun.count_ones() as usize > column.lefts.len() {
                others |= self.follow_all(chart.tables, at, column, begun);
                begun = 0;
                continue;
            }
            // Nothing is added to the highest any more.
            let Some(bit) = bits(begun | others).next() else { return };
            (begun, others) = (begun & !(1 << bit), others & !(1 << bit));
            active.clear();
            active.extend(self.symbols_at(at, bit));
            self.follow(chart, (at, bit), active);
        }
    }

    /// Follows the tiers of some states of a word at once. Where their only row is that of the state before,
    /// rows move by one; returns the states whose tiers have other rows to add.
    fn follow_all(&mut self, tables: &Tables, at: usize, column: &Column, states: u64) -> u64 {
        let mut others = 0;
        for known in column.lefts.iter().filter(|known| (known.unit | known.other) & states != 0) {
            for &(parent, (from, to)) in tables.parents.of(known.left) {
                if self.is_full[parent as usize] {
                    continue;
                }
                let rights = &tables.rights[from as usize..to as usize];
                let begun = rights.iter().fold(0, |all, &right| all | self.word(right, at)) & states;
                others |= begun & known.other;
                let moved = begun & known.unit;
                if moved == 0 {
                    continue;
                }
                let place = self.slot(parent) * self.stride + at;
                self.words[place] |= moved >> 1;
                if moved & 1 != 0 && at > 0 {
                    self.words[place - 1] |= 1 << (WORD - 1);
                }
            }
        }
        others
    }
}

/// What a draft is filled from.
struct Chart<'a> {
    tables: &'a Tables,
    predictions: &'a [Prediction],
    states: &'a [State],
    spans: &'a [Span],
    words: &'a [u64],
    kernels: &'a Kernels,
}

impl Chart<'_> {
    fn predicts(&self, prediction: u32, symbol: u32) -> bool {
        self.predictions[prediction as usize].symbols.contains(symbol as usize)
    }

    /// Of some states of a word those that predict a symbol.
    fn predicting(&self, symbol: u32, at: usize, column: &Column, states: u64) -> u64 {
        if states.count_ones() as usize > column.predictions.len() {
            let those = column.predictions.iter().filter(|known| known.1 & states != 0);
            let those = those.filter(|known| self.predicts(known.0, symbol));
            return those.fold(0, |all, known| all | known.1 & states);
        }
        let those = bits(states).filter(|bit| self.predicts(self.states[at * WORD + bit].prediction, symbol));
        those.fold(0, |all, bit| all | 1 << bit)
    }
}

/// The spans of a state's tier.
fn tier<'a>(states: &[State], spans: &'a [Span], state: usize) -> &'a [Span] {
    let end = states.get(state + 1).map_or(spans.len(), |next| next.spans as usize);
    &spans[states[state].spans as usize..end]
}

/// The engine; see the module.
#[derive(Clone, Debug)]
pub struct Valiant {
    cfg: Arc<Cfg>,
    tables: Tables,
    predictions: Vec<Prediction>,
    prediction_ids: FxHashMap<Box<[u32]>, u32>,
    states: Vec<State>,
    spans: Vec<Span>,
    words: Vec<u64>,
    /// Of each 64 states, as far as they were asked for.
    columns: Vec<Column>,
    draft: Draft,
    kernels: Kernels,
    /// What predictions take, in items.
    held_by_predictions: usize,
    limits: RecognizerLimits,
}

impl Valiant {
    /// An engine for a reduced grammar, on its C2F+ε form.
    pub fn new(cfg: impl Into<Arc<Cfg>>, limits: RecognizerLimits) -> Result<Self, RecognizerError> {
        let cfg = cfg.into();
        let form = NormalForm::binary(&cfg);
        Self::with_form(cfg, form, limits)
    }

    /// An engine on Chomsky's normal form, as in the paper.
    pub fn chomsky(cfg: impl Into<Arc<Cfg>>, limits: RecognizerLimits) -> Result<Self, RecognizerError> {
        let cfg = cfg.into();
        let too_many = |_| RecognizerError::TooManyItems { limit: limits.items };
        let form = NormalForm::chomsky(&cfg, &mut Work::new(limits.items as u64, "parser_items"))
            .map_err(too_many)?;
        Self::with_form(cfg, form, limits)
    }

    /// An engine on a normal form of the grammar.
    pub fn with_form(
        cfg: impl Into<Arc<Cfg>>,
        form: NormalForm,
        limits: RecognizerLimits,
    ) -> Result<Self, RecognizerError> {
        let cfg = cfg.into();
        if !cfg.automata.is_empty() {
            return Err(RecognizerError::Automata { engine: "valiant" });
        }
        let tables = Tables::new(&cfg, form);
        let n = tables.form.n_symbols();
        let draft = Draft {
            slot_of: vec![NONE; n],
            is_full: vec![false; n],
            is_active: vec![false; n],
            ..Draft::default()
        };
        let mut this = Self {
            cfg,
            tables,
            predictions: Vec::new(),
            prediction_ids: FxHashMap::default(),
            states: Vec::new(),
            spans: Vec::new(),
            words: Vec::new(),
            columns: Vec::new(),
            draft,
            kernels: kernels::best(),
            held_by_predictions: 0,
            limits,
        };
        this.draft.begin(0);
        this.push(true, false)?;
        Ok(this)
    }

    /// Uses other kernels than the best that the machine has.
    pub fn with_kernels(mut self, kernels: Kernels) -> Self {
        self.kernels = kernels;
        self
    }

    /// The normal form.
    pub fn form(&self) -> &NormalForm {
        &self.tables.form
    }

    /// The number of symbols of which tiers keep rows.
    pub fn n_stored(&self) -> usize {
        self.tables.lefts.len()
    }

    /// The rows of a left child in a state's tier, the latest first: the states from which it derives what
    /// was read up to this one. Empty for symbols of which no rows are kept.
    pub fn rows_of(&self, state: StateId, symbol: NormalId) -> Vec<StateId> {
        let span = self.span(state.index(), self.tables.left_of[symbol.index()]);
        span.into_iter().flat_map(|span| self.rows(span)).map(StateId::new).collect()
    }

    /// Takes a state over that was computed elsewhere: it must be what [`Recognizer::extend`] would have made
    /// of some edges. All questions about it are then answered here, and it can be extended here. Rows beyond
    /// the states that there are, and symbols of which no rows are kept, are left out.
    pub fn adopt(&mut self, tier: &Tier) -> Result<StateId, RecognizerError> {
        let (id, first_span) = (self.states.len(), self.spans.len());
        for (symbol, rows) in &tier.rows {
            let left = self.tables.left_of.get(symbol.index()).copied().unwrap_or(NONE);
            let rows = &rows[..rows.len().min(id.div_ceil(WORD))];
            let Some(first) = rows.iter().position(|&word| word != 0).filter(|_| left != NONE) else {
                continue;
            };
            let end = rows.iter().rposition(|&word| word != 0).map_or(first, |last| last + 1);
            let (length, offset) = ((end - first) as u32, self.words.len() as u32);
            self.spans.push(Span { left, first: first as u32, length, offset });
            self.words.extend_from_slice(&rows[first..end]);
        }
        // A closed set is what it is the closure of, so it may stand for its seeds.
        let symbols: Box<[u32]> = tier.predicted.iter().map(|symbol| symbol as u32).collect();
        let prediction = match self.prediction_ids.get(&symbols) {
            Some(&known) => known,
            None => {
                let (predicted, viable) = (tier.predicted.clone(), tier.viable.clone());
                self.held_by_predictions += symbols.len() + predicted.words().len() + viable.words().len();
                self.predictions.push(Prediction { symbols: predicted, terminals: viable });
                let id = self.predictions.len() as u32 - 1;
                self.prediction_ids.insert(symbols, id);
                id
            }
        };
        let Tier { is_sentence, is_root, .. } = *tier;
        self.states.push(State { prediction, is_sentence, is_root, spans: first_span as u32 });
        if self.n_items() > self.limits.items {
            self.truncate(id);
            return Err(RecognizerError::TooManyItems { limit: self.limits.items });
        }
        Ok(StateId::new(id))
    }

    /// The symbols of the normal form that may begin in a state (ANCESTOR↓).
    pub fn predicted(&self, state: StateId) -> &BitSet {
        &self.predictions[self.states[state.index()].prediction as usize].symbols
    }

    fn span(&self, state: usize, left: u32) -> Option<&Span> {
        self.tier(state).iter().find(|span| span.left == left)
    }

    /// The 64-bit words of the rows of a state's tier: how dense the chart is there.
    pub fn row_words(&self, state: StateId) -> usize {
        self.tier(state.index()).iter().map(|span| span.length as usize).sum()
    }

    /// The spans of a state's tier.
    fn tier(&self, state: usize) -> &[Span] {
        tier(&self.states, &self.spans, state)
    }

    fn words_of(&self, span: &Span) -> &[u64] {
        &self.words[span.offset as usize..][..span.length as usize]
    }

    /// The rows of a span, the latest first.
    fn rows<'a>(&'a self, span: &'a Span) -> impl Iterator<Item = usize> + 'a {
        let words = self.words_of(span).iter().enumerate().rev();
        words.flat_map(move |(at, &word)| bits(word).map(move |bit| (span.first as usize + at) * WORD + bit))
    }

    fn predicts(&self, state: usize, symbol: u32) -> bool {
        self.predictions[self.states[state].prediction as usize].symbols.contains(symbol as usize)
    }

    /// Makes the columns of all states that fill a word.
    fn find_columns(&mut self) {
        while self.columns.len() < self.states.len() / WORD {
            let (mut column, from) = (Column::default(), self.columns.len() * WORD);
            for state in from..from + WORD {
                let bit = 1 << (state - from);
                column.note(self.states[state].prediction, bit);
                for span in self.tier(state) {
                    column.note_left(span.left, is_unit(span, self.words_of(span), state), bit);
                }
            }
            self.columns.push(column);
        }
    }

    /// Completes the draft: whatever follows from the rows that are set. Rows are visited one by one from the
    /// highest down, or a word of them at once where they are more than the left children to look at.
    fn fill(&mut self) {
        self.find_columns();
        let Self { tables, predictions, states, spans, words, columns, draft, kernels, .. } = self;
        let chart = Chart { tables, predictions, states, spans, words, kernels };
        let mut active = std::mem::take(&mut draft.active);
        for at in (0..draft.stride).rev() {
            draft.find_full(at);
            let mut pending = draft.rows_at(at);
            let mut done = 0;
            while pending != 0 {
                if let Some(column) = columns.get(at)
                    && pending.count_ones() as usize > column.lefts.len()
                {
                    draft.begin_word(at, done);
                    draft.fill_word(&chart, at, column, &mut active);
                    break;
                }
                let bit = WORD - 1 - pending.leading_zeros() as usize;
                pending &= !(1 << bit);
                done |= 1 << bit;
                let predicted = &predictions[states[at * WORD + bit].prediction as usize].symbols;
                active.clear();
                draft.visit(at, 1 << bit, predicted, &tables.up, &mut active);
                if active.iter().all(|&symbol| tables.by_right.of(symbol).is_empty()) {
                    continue;
                }
                pending |= draft.follow(&chart, (at, bit), &active);
            }
        }
        draft.active = active;
    }

    /// Makes the draft a state.
    fn push(&mut self, is_root: bool, is_sentence: bool) -> Result<StateId, RecognizerError> {
        let Self { tables, states, spans, words, draft, .. } = self;
        let (id, first_span) = (states.len(), spans.len());
        for (slot, &symbol) in draft.symbols.iter().enumerate() {
            let left = tables.left_of[symbol as usize];
            let row = &draft.words[slot * draft.stride..(slot + 1) * draft.stride];
            let Some(first) = row.iter().position(|&word| word != 0).filter(|_| left != NONE) else {
                continue;
            };
            let end = row.iter().rposition(|&word| word != 0).map_or(first, |last| last + 1);
            spans.push(Span {
                left,
                first: first as u32,
                length: (end - first) as u32,
                offset: words.len() as u32,
            });
            words.extend_from_slice(&row[first..end]);
        }
        let mut is_sentence = is_sentence || is_root && tables.is_start_nullable;
        let slot = draft.slot_of[tables.start as usize];
        if slot != NONE {
            let row = &draft.words[slot as usize * draft.stride..][..draft.stride];
            let mut rows =
                row.iter().enumerate().flat_map(|(at, &word)| bits(word).map(move |bit| at * WORD + bit));
            is_sentence |= rows.any(|row| states[row].is_root);
        }
        // The state has to be there for its tier to be found, and for what is predicted by it.
        self.states.push(State { prediction: 0, is_sentence, is_root, spans: first_span as u32 });
        let result = self.predict(id);
        match result {
            Ok(prediction) if self.n_items() <= self.limits.items => {
                self.states[id].prediction = prediction;
                Ok(StateId::new(id))
            }
            _ => {
                self.truncate(id);
                Err(RecognizerError::TooManyItems { limit: self.limits.items })
            }
        }
    }

    /// What may begin in a state (ANCESTOR↓): the right children that its tier's left children wait for, and
    /// all that those begin with.
    fn predict(&mut self, state: usize) -> Result<u32, RecognizerError> {
        let tables = &self.tables;
        let mut seeds = Vec::new();
        if self.states[state].is_root {
            seeds.push(tables.start);
        }
        for span in self.tier(state) {
            for &(parent, (from, to)) in tables.parents.of(span.left) {
                if self.rows(span).any(|row| self.predicts(row, parent)) {
                    seeds.extend_from_slice(&tables.rights[from as usize..to as usize]);
                }
            }
        }
        seeds.sort_unstable();
        seeds.dedup();
        if let Some(&known) = self.prediction_ids.get(&*seeds) {
            return Ok(known);
        }
        let mut symbols =
            BitSet::from_members(tables.form.n_symbols(), seeds.iter().map(|&seed| seed as usize));
        let mut terminals = BitSet::new(self.cfg.n_terminals);
        let mut agenda = seeds.clone();
        while let Some(symbol) = agenda.pop() {
            terminals.extend(tables.terminals.of(symbol).iter().map(|&terminal| terminal as usize));
            agenda.extend(
                tables.first.of(symbol).iter().copied().filter(|&first| symbols.insert(first as usize)),
            );
        }
        self.held_by_predictions += seeds.len() + symbols.words().len() + terminals.words().len();
        let id = self.predictions.len() as u32;
        self.predictions.push(Prediction { symbols, terminals });
        self.prediction_ids.insert(seeds.into(), id);
        Ok(id)
    }

    fn truncate(&mut self, n_states: usize) {
        let Some(first) = self.states.get(n_states) else { return };
        let first_span = first.spans as usize;
        if let Some(span) = self.spans.get(first_span) {
            self.words.truncate(span.offset as usize);
        }
        self.spans.truncate(first_span);
        self.states.truncate(n_states);
        self.columns.truncate(n_states / WORD);
    }

    /// What waits in a state for a right child: symbol and row of the one in progress, and the right child
    /// that it lacks.
    fn waiting(&self, state: usize) -> impl Iterator<Item = (u32, usize, u32)> {
        self.tier(state).iter().flat_map(move |span| {
            self.tables.parents.of(span.left).iter().flat_map(move |&(parent, (from, to))| {
                let rows = self.rows(span).filter(move |&row| self.predicts(row, parent));
                let rights = &self.tables.rights[from as usize..to as usize];
                rows.flat_map(move |row| rights.iter().map(move |&right| (parent, row, right)))
            })
        })
    }

    /// What a symbol that begins in a row can be part of: parent, its row, and the right child that the
    /// parent then still lacks.
    fn contexts(&self, symbol: u32, row: usize) -> impl Iterator<Item = (u32, usize, Option<u32>)> {
        let tables = &self.tables;
        let same_row = tables.up.of(symbol).iter().map(|&parent| (parent, None));
        let same_row =
            same_row.chain(tables.by_left.of(symbol).iter().map(|&(right, parent)| (parent, Some(right))));
        let same_row = same_row.filter(move |&(parent, _)| self.predicts(row, parent));
        let as_right = tables.by_right.of(symbol).iter().flat_map(move |&(left, parent)| {
            let rows = self.span(row, left).into_iter().flat_map(|span| self.rows(span));
            rows.filter(move |&begin| self.predicts(begin, parent)).map(move |begin| (parent, begin, None))
        });
        same_row.map(move |(parent, right)| (parent, row, right)).chain(as_right)
    }

    /// A symbol in symbols of the grammar.
    fn spelled(&self, symbol: u32) -> Vec<Symbol> {
        self.tables.form.spelled(&self.cfg, NormalId(symbol))
    }

    fn is_whole(&self, symbol: u32, row: usize) -> bool {
        symbol == self.tables.start && self.states[row].is_root
    }
}

/// Whether the only row of a symbol in the tier of a state is that of the state before.
fn is_unit(span: &Span, words: &[u64], state: usize) -> bool {
    let Some(before) = state.checked_sub(1) else { return false };
    span.first as usize == before / WORD && *words == [1 << (before % WORD)]
}

/// The bits of a word, the highest first.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    std::iter::successors((word != 0).then_some(word), |&word| {
        let rest = word & !(1 << (WORD - 1 - word.leading_zeros() as usize));
        (rest != 0).then_some(rest)
    })
    .map(|word| WORD - 1 - word.leading_zeros() as usize)
}

impl Recognizer for Valiant {
    fn name(&self) -> &'static str {
        "valiant"
    }

    fn cfg(&self) -> &Cfg {
        &self.cfg
    }

    fn start(&self) -> StateId {
        StateId(0)
    }

    fn extend(&mut self, edges: &[Edge]) -> Result<Option<StateId>, RecognizerError> {
        if let Some(&Edge { from, terminal: None }) = edges.first()
            && edges.iter().all(|edge| edge.terminal.is_none() && edge.from == from)
        {
            return Ok(Some(from));
        }
        self.draft.begin(self.states.len());
        for &Edge { from, terminal } in edges {
            let Some(terminal) = terminal else { continue };
            let Prediction { symbols, terminals } =
                &self.predictions[self.states[from.index()].prediction as usize];
            if terminals.contains(terminal.index()) {
                for &symbol in self.tables.lexical.of(terminal.0) {
                    if symbols.contains(symbol as usize) {
                        self.draft.set(symbol, from.index());
                    }
                }
            }
        }
        let any_read = !self.draft.symbols.is_empty();
        self.fill();
        // What is carried over was completed where it comes from.
        let (mut is_root, mut is_sentence, mut any_carried) = (false, false, false);
        for from in edges.iter().filter(|edge| edge.terminal.is_none()).map(|edge| edge.from.index()) {
            any_carried = true;
            is_root |= self.states[from].is_root;
            is_sentence |= self.states[from].is_sentence;
            let Self { spans, words, tables, draft, states, kernels, .. } = self;
            for &Span { left, first, length, offset } in tier(states, spans, from) {
                let place = draft.slot(tables.lefts[left as usize]) * draft.stride + first as usize;
                let rows = &words[offset as usize..][..length as usize];
                kernels.or_into(&mut draft.words[place..place + length as usize], rows);
            }
        }
        if !any_read && !any_carried {
            return Ok(None);
        }
        self.push(is_root, is_sentence).map(Some)
    }

    fn viable(&self, state: StateId) -> &BitSet {
        &self.predictions[self.states[state.index()].prediction as usize].terminals
    }

    fn is_sentence(&self, state: StateId) -> bool {
        self.states[state.index()].is_sentence
    }

    fn minimum_remaining(&self, state: StateId) -> u32 {
        // Shortest path (Dijkstra, 1959) over what is in progress.
        if self.is_sentence(state) {
            return 0;
        }
        let minimum = &self.tables.minimum;
        let mut queue: BinaryHeap<_> = self
            .waiting(state.index())
            .map(|(parent, row, right)| Reverse((minimum[right as usize], row, parent)))
            .collect();
        if self.states[state.index()].is_root {
            queue.push(Reverse((minimum[self.tables.start as usize], state.index(), self.tables.start)));
        }
        let mut seen = FxHashSet::default();
        while let Some(Reverse((cost, row, symbol))) = queue.pop() {
            if self.is_whole(symbol, row) {
                return cost;
            }
            if seen.insert((row, symbol)) {
                queue.extend(self.contexts(symbol, row).map(|(parent, begin, right)| {
                    let more = right.map_or(0, |right| minimum[right as usize]);
                    Reverse((cost.saturating_add(more), begin, parent))
                }));
            }
        }
        u32::MAX
    }

    fn can_finish(&self, state: StateId, from: usize, automaton: &Relation) -> bool {
        if self.is_sentence(state) {
            return true;
        }
        let begin = BitSet::from_members(automaton.n_states(), [from]);
        let after = |symbol: u32, states: &BitSet| {
            let symbols = self.tables.form.spelled(&self.cfg, NormalId(symbol));
            automaton.after_all(symbols.into_iter(), states.clone())
        };
        let mut agenda: Vec<(u32, usize, BitSet)> = self
            .waiting(state.index())
            .map(|(parent, row, right)| (parent, row, after(right, &begin)))
            .collect();
        if self.states[state.index()].is_root {
            agenda.push((self.tables.start, state.index(), after(self.tables.start, &begin)));
        }
        let mut reached: FxHashMap<(u32, usize), BitSet> = FxHashMap::default();
        while let Some((symbol, row, states)) = agenda.pop() {
            if states.is_empty() {
                continue;
            }
            if self.is_whole(symbol, row) {
                return true;
            }
            let known = reached.entry((symbol, row)).or_insert_with(|| BitSet::new(automaton.n_states()));
            if known.union_with(&states) {
                agenda.extend(self.contexts(symbol, row).map(|(parent, begin, right)| {
                    let states = right.map_or_else(|| states.clone(), |right| after(right, &states));
                    (parent, begin, states)
                }));
            }
        }
        false
    }

    fn in_progress(&self, state: StateId, visit: &mut Visit<'_>) {
        for (parent, row, right) in self.waiting(state.index()) {
            visit(Left::Symbols(&self.spelled(right)), Begun { origin: StateId::new(row), symbol: parent });
        }
        if self.states[state.index()].is_root {
            let start = self.tables.start;
            visit(Left::Symbols(&self.spelled(start)), Begun { origin: state, symbol: start });
        }
    }

    fn after_begun(&self, begun: Begun, visit: &mut Visit<'_>) {
        for (parent, row, right) in self.contexts(begun.symbol, begun.origin.index()) {
            let symbols = right.map_or_else(Vec::new, |right| self.spelled(right));
            visit(Left::Symbols(&symbols), Begun { origin: StateId::new(row), symbol: parent });
        }
    }

    fn is_whole(&self, begun: Begun) -> bool {
        Valiant::is_whole(self, begun.symbol, begun.origin.index())
    }

    fn n_states(&self) -> usize {
        self.states.len()
    }

    fn n_items(&self) -> usize {
        self.words.len() + self.spans.len() + self.held_by_predictions
    }

    fn mark(&self) -> Mark {
        Mark(self.states.len())
    }

    fn release(&mut self, mark: Mark) -> bool {
        self.truncate(mark.0);
        true
    }

    fn dump(&self, state: StateId, name: &dyn Fn(Symbol) -> String) -> String {
        let spelled = |symbol: u32| {
            let symbols = self.tables.form.spelled(&self.cfg, NormalId(symbol));
            symbols.into_iter().map(name).collect::<Vec<_>>().join(" ")
        };
        let mut text = String::new();
        for span in self.tier(state.index()) {
            let rows: Vec<String> = self.rows(span).map(|row| row.to_string()).collect();
            text +=
                &format!("  {} from {}\n", spelled(self.tables.lefts[span.left as usize]), rows.join(", "));
        }
        if self.is_sentence(state) {
            text += "  a sentence\n";
        }
        text
    }

    fn memory_usage(&self) -> usize {
        size_of_val(&*self.words)
            + size_of_val(&*self.spans)
            + size_of_val(&*self.states)
            + size_of_val(&*self.draft.words)
            + self.columns.iter().map(Column::memory_usage).sum::<usize>()
            + 8 * self.held_by_predictions
    }
}
