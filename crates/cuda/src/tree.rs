//! Trees of terminal sequences as the kernels read them.

use std::sync::Arc;

use anygram_bits::CompactSet;
use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::Language;
use anygram_left_to_right::sequences::Sequences;
use anygram_left_to_right::tokens::Tokens;
use anygram_vocab::TokenId;
use rustc_hash::FxHashMap;

use crate::image::with_parts;

/// A tree of terminal sequences, from one lexeme, as the kernels read it.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(crate) words: Vec<u32>,
    pub(crate) depth: usize,
    pub(crate) n_words: usize,
    pub(crate) n_terminals: usize,
    pub(crate) has_doubts: bool,
}

/// Tokens without bytes that may stand where a piece may begin: those that the grammar names, by their
/// terminal, and those that end the text (`None`).
pub type Special = (Option<TerminalId>, TokenId);

impl Tree {
    /// The tree of a lexeme, over masks of `n_words` words. `specials` are those that may come at once: none
    /// unless the lexeme is a boundary.
    pub fn new(language: &Language, sequences: &Sequences, specials: &[Special], n_words: usize) -> Self {
        let n_terminals = language.lexing().cfg.n_terminals;
        let terminal_words = (n_terminals + 1).div_ceil(32);
        let (mut scan_starts, mut scans) = (vec![0], Vec::new());
        let (mut child_starts, mut children) = (vec![0], Vec::new());
        let mut skip = Vec::new();
        let mut groups = Groups { terminal_words, ..Groups::default() };
        let (mut group_starts, mut node_foes) = (vec![0], Vec::new());
        for (at, node) in sequences.nodes().enumerate() {
            scans.extend(node.scans().iter().map(|scan| scan.0));
            scan_starts.push(scans.len() as u32);
            children.extend_from_slice(node.children());
            child_starts.push(children.len() as u32);
            skip.push(u32::from(node.skip()));
            node_foes.extend(groups.add_foes(node.foes()));
            for group in node.groups().iter().filter(|group| !group.tokens.is_empty()) {
                groups.add(group.wanted.iter(), &group.foes, !group.is_sure, &group.tokens);
            }
            if at == 0 {
                for &(terminal, token) in specials {
                    let wanted = terminal.map_or(n_terminals, TerminalId::index);
                    groups.add([wanted], &[], false, &Arc::new(Tokens::Few([token].into())));
                }
            }
            group_starts.push(groups.dense_row.len() as u32);
        }
        let n_groups = groups.dense_row.len() as u32;
        let Groups {
            wanted, token_places, tokens, dense_row, dense, group_foes, foes, sets, in_doubt, ..
        } = groups;
        let has_doubts = in_doubt.contains(&1);
        let parts = [
            scan_starts,
            scans,
            child_starts,
            children,
            group_starts,
            skip,
            wanted,
            token_places,
            tokens,
            dense_row,
            dense,
            node_foes,
            group_foes,
            foes,
            sets,
            in_doubt,
        ];
        let words = with_parts(vec![sequences.n_nodes() as u32, n_groups], &parts);
        Self { words, depth: sequences.depth(), n_words, n_terminals, has_doubts }
    }

    /// Words of memory on the device.
    pub fn words(&self) -> usize {
        self.words.len()
    }
}

/// Where a list of tokens begins and ends, and the number of a dense row; the list is empty where there is
/// such a row.
#[derive(Clone, Copy)]
struct TokenPlaces {
    begin: u32,
    end: u32,
    dense_row: u32,
}

/// Groups of tokens in the making.
#[derive(Default)]
struct Groups {
    terminal_words: usize,
    wanted: Vec<u32>,
    token_places: Vec<u32>,
    tokens: Vec<u32>,
    dense_row: Vec<u32>,
    dense: Vec<u32>,
    group_foes: Vec<u32>,
    foes: Vec<u32>,
    sets: Vec<u32>,
    set_ids: FxHashMap<Vec<u32>, u32>,
    in_doubt: Vec<u32>,
    /// Where the tokens of the last group are; groups that share them follow each other.
    last: Option<(Arc<Tokens>, TokenPlaces)>,
}

impl Groups {
    fn add(
        &mut self,
        wanted: impl IntoIterator<Item = usize>,
        foes: &[(u32, CompactSet)],
        in_doubt: bool,
        tokens: &Arc<Tokens>,
    ) {
        self.wanted.extend(self.row(wanted));
        let foes = self.add_foes(foes);
        self.group_foes.extend(foes);
        self.in_doubt.push(u32::from(in_doubt));
        let known = self.last.as_ref().filter(|(last, _)| Arc::ptr_eq(last, tokens)).map(|&(_, known)| known);
        let places = known.unwrap_or_else(|| self.add_tokens(tokens));
        self.last = Some((tokens.clone(), places));
        self.token_places.extend([places.begin, places.end]);
        self.dense_row.push(places.dense_row);
    }

    fn add_tokens(&mut self, tokens: &Tokens) -> TokenPlaces {
        let begin = self.tokens.len() as u32;
        let mut dense_row = 0;
        match tokens {
            Tokens::Few(tokens) => self.tokens.extend(tokens.iter().map(|token| token.0)),
            Tokens::Many(words) | Tokens::Most(words, _) => {
                let before = self.dense.len();
                dense_row = (before / words.len()) as u32;
                self.dense.resize(before + words.len(), 0);
                tokens.write_to(&mut self.dense[before..]);
            }
        }
        TokenPlaces { begin, end: self.tokens.len() as u32, dense_row }
    }

    /// Where a list of foes begins and ends.
    fn add_foes(&mut self, foes: &[(u32, CompactSet)]) -> [u32; 2] {
        let begin = self.foes.len() as u32 / 2;
        for (depth, set) in foes {
            let row = self.row(set.iter());
            let fresh = self.set_ids.len() as u32;
            let id = *self.set_ids.entry(row.clone()).or_insert(fresh);
            if id == fresh {
                self.sets.extend(row);
            }
            self.foes.extend([*depth, id]);
        }
        [begin, self.foes.len() as u32 / 2]
    }

    fn row(&self, terminals: impl IntoIterator<Item = usize>) -> Vec<u32> {
        let mut row = vec![0; self.terminal_words];
        terminals.into_iter().for_each(|bit| row[bit / 32] |= 1 << (bit % 32));
        row
    }
}
