//! Grammars as the kernels read them: one array of words.

use anygram_grammar::cfg::Cfg;
use anygram_grammar::normal::{Form, NormalForm};

use crate::layout::Sizes;
use crate::options::ChartError;

/// The most symbols of a normal form. Closures are tables of a bit for each pair: 8 MiB each at the limit.
pub const MAX_SYMBOLS: usize = 8_192;

/// A grammar as the kernels read it.
#[derive(Clone, Debug)]
pub struct Image {
    pub(crate) words: Vec<u32>,
    pub(crate) sizes: Sizes,
    pub(crate) n_terminals: usize,
    pub(crate) lefts: Vec<u32>,
}

impl Image {
    /// The image of a grammar in a normal form. Cost: closures of two relations between symbols, by bits.
    pub fn new(cfg: &Cfg, form: &NormalForm) -> Result<Self, ChartError> {
        if !cfg.automata.is_empty() {
            return Err(ChartError::Automata);
        }
        let n_symbols = form.n_symbols();
        if n_symbols > MAX_SYMBOLS {
            return Err(ChartError::TooManySymbols { needed: n_symbols, limit: MAX_SYMBOLS });
        }
        let symbol_words = n_symbols.div_ceil(32);
        let lefts: Vec<u32> = form.left_children().iter().map(|left| left.0).collect();
        let sizes = Sizes {
            n_symbols,
            symbol_words,
            n_lefts: lefts.len(),
            terminal_words: (cfg.n_terminals + 1).div_ceil(32),
        };
        let mut rules: Vec<(u32, u32, u32)> =
            form.binary.iter().map(|r| (r.left.0, r.right.0, r.parent.0)).collect();
        rules.sort_unstable();
        rules.dedup();
        let begin = |left: &u32| rules.partition_point(|rule| rule.0 < *left) as u32;
        let starts = lefts.iter().map(begin).chain([rules.len() as u32]).collect::<Vec<_>>();
        let nullable = |symbol: usize| form.form == Form::Binary && form.nullable.contains(symbol);
        let (mut up, mut first) = (Matrix::new(n_symbols), Matrix::new(n_symbols));
        for (parent, children) in form.unit_children().iter().enumerate() {
            children.iter().for_each(|child| up.set(child.index(), parent));
        }
        form.unit.iter().for_each(|&(parent, child)| first.set(parent.index(), child.index()));
        for rule in &form.binary {
            first.set(rule.parent.index(), rule.left.index());
            if nullable(rule.left.index()) {
                first.set(rule.parent.index(), rule.right.index());
            }
        }
        (0..n_symbols).for_each(|symbol| first.set(symbol, symbol));
        up.close();
        first.close();
        let set_of = |members: &mut dyn Iterator<Item = u32>| {
            let mut set = vec![0u32; symbol_words];
            members.for_each(|symbol| set[symbol as usize / 32] |= 1 << (symbol % 32));
            set
        };
        let is_right = set_of(&mut rules.iter().map(|rule| rule.1));
        let is_parent = set_of(&mut rules.iter().map(|rule| rule.2));
        let is_enough = set_of(&mut (0..n_symbols as u32).filter(|&symbol| !up.is_empty(symbol as usize)));
        let mut lexical: Vec<(u32, u32)> = form.lexical.iter().map(|&(symbol, t)| (t.0, symbol.0)).collect();
        lexical.sort_unstable();
        lexical.dedup();
        let lexical_starts =
            (0..=cfg.n_terminals as u32).map(|t| lexical.partition_point(|pair| pair.0 < t) as u32);
        let parts = [
            lefts.clone(),
            starts,
            rules.iter().map(|rule| rule.1).collect(),
            rules.iter().map(|rule| rule.2).collect(),
            lexical_starts.collect(),
            lexical.iter().map(|pair| pair.1).collect(),
            up.rows,
            first.rows.clone(),
            first.transposed().rows,
            is_right,
            is_parent,
            is_enough,
        ];
        let is_nullable = form.nullable.contains(form.start.index());
        let mut words: Vec<u32> =
            [n_symbols, symbol_words, lefts.len(), cfg.n_terminals, sizes.terminal_words]
                .map(|n| n as u32)
                .to_vec();
        words.extend([form.start.0, u32::from(is_nullable)]);
        Ok(Self { words: with_parts(words, &parts), sizes, n_terminals: cfg.n_terminals, lefts })
    }

    /// Words of memory on the device.
    pub fn words(&self) -> usize {
        self.words.len()
    }
}

/// A header, the offset of each part from the beginning, and the parts.
pub(crate) fn with_parts(mut header: Vec<u32>, parts: &[Vec<u32>]) -> Vec<u32> {
    let mut offset = header.len() + parts.len();
    for part in parts {
        header.push(offset as u32);
        offset += part.len();
    }
    header.extend(parts.iter().flatten());
    header
}

/// A relation between symbols, a row of bits for each.
struct Matrix {
    n: usize,
    width: usize,
    rows: Vec<u32>,
}

impl Matrix {
    fn new(n: usize) -> Self {
        let width = n.div_ceil(32);
        Self { n, width, rows: vec![0; n * width] }
    }

    fn set(&mut self, from: usize, to: usize) {
        self.rows[from * self.width + to / 32] |= 1 << (to % 32);
    }

    fn get(&self, from: usize, to: usize) -> bool {
        self.rows[from * self.width + to / 32] >> (to % 32) & 1 == 1
    }

    fn is_empty(&self, from: usize) -> bool {
        self.rows[from * self.width..][..self.width].iter().all(|&word| word == 0)
    }

    /// The transitive closure (Warshall, 1962). Cost: n² rows at worst.
    fn close(&mut self) {
        for middle in 0..self.n {
            let row = self.rows[middle * self.width..][..self.width].to_vec();
            for from in 0..self.n {
                if self.get(from, middle) {
                    let into = &mut self.rows[from * self.width..][..self.width];
                    into.iter_mut().zip(&row).for_each(|(word, &more)| *word |= more);
                }
            }
        }
    }

    fn transposed(&self) -> Self {
        let mut other = Self::new(self.n);
        for from in 0..self.n {
            for at in 0..self.width {
                let mut bits = self.rows[from * self.width + at];
                while bits != 0 {
                    other.set(at * 32 + bits.trailing_zeros() as usize, from);
                    bits &= bits - 1;
                }
            }
        }
        other
    }
}
