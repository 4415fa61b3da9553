//! Trees of terminal sequences as the kernels read them.

use anygram_grammar::ir::{LexerMode, TerminalId};
use anygram_left_to_right::Language;
use anygram_left_to_right::mask::Tokens;
use anygram_left_to_right::sequences::Sequences;
use anygram_vocab::TokenId;

use crate::image::with_parts;
use crate::options::ChartError;

/// A tree of terminal sequences, from one lexeme, as the kernels read it.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(crate) words: Vec<u32>,
    pub(crate) depth: usize,
    pub(crate) n_words: usize,
    pub(crate) n_terminals: usize,
}

/// Tokens without bytes that may stand where a piece may begin: those that the grammar names, by their terminal, and those that end the text (`None`).
pub type Special = (Option<TerminalId>, TokenId);

/// Whether masks of a language can be computed on a device.
///
/// They need trees that do not depend on the parser (not in `contextual`), and lexing that is independent of parsing, so that what comes after a token
/// need not be searched.
pub fn check_language(language: &Language) -> Result<(), ChartError> {
    let dependent = language.lexing().boundaries().is_some_and(|boundaries| !boundaries.is_independent());
    match language.mode() {
        LexerMode::Contextual => {
            Err(ChartError::NoTree { needed: "the lexer mode `longest` or `scannerless`, not `contextual`" })
        }
        _ if dependent => {
            Err(ChartError::NoTree { needed: "a grammar in which every parse can be spelled from everywhere" })
        }
        _ => Ok(()),
    }
}

impl Tree {
    /// The tree of a lexeme, over masks of `n_words` words. `specials` are those that may come at once: none unless the lexeme is a boundary.
    pub fn new(
        language: &Language,
        sequences: &Sequences,
        specials: &[Special],
        n_words: usize,
    ) -> Result<Self, ChartError> {
        check_language(language)?;
        let lexing = language.lexing();
        let n_terminals = lexing.cfg.n_terminals;
        let terminal_words = (n_terminals + 1).div_ceil(32);
        let ignored = (language.mode() != LexerMode::Longest).then_some(&lexing.lexicon.ignored);
        let (mut scan_starts, mut scans) = (vec![0], Vec::new());
        let (mut child_starts, mut children) = (vec![0], Vec::new());
        let mut skip = Vec::new();
        let mut groups = Groups { terminal_words, token_starts: vec![0], ..Groups::default() };
        let mut group_starts = vec![0];
        for (at, node) in sequences.nodes().enumerate() {
            scans.extend(node.scans().iter().map(|scan| scan.0));
            scan_starts.push(scans.len() as u32);
            children.extend_from_slice(node.children());
            child_starts.push(children.len() as u32);
            skip.push(u32::from(node.skip()));
            for (wanted, tokens) in node.groups().filter(|(_, tokens)| !tokens.is_empty()) {
                // What may be ignored is possible in any state, and in any state something is.
                let always =
                    ignored.is_some_and(|ignored| wanted.iter().any(|t| t < n_terminals && ignored.contains(t)));
                if always { groups.add(0..n_terminals + 1, tokens) } else { groups.add(wanted.iter(), tokens) }
            }
            if at == 0 {
                for &(terminal, token) in specials {
                    let wanted = terminal.map_or(n_terminals, TerminalId::index);
                    groups.add([wanted], &Tokens::Few([token].into()));
                }
            }
            group_starts.push(groups.dense_row.len() as u32);
        }
        let header = vec![sequences.n_nodes() as u32, groups.dense_row.len() as u32];
        let Groups { wanted, token_starts, tokens, dense_row, dense, .. } = groups;
        let parts = [
            scan_starts,
            scans,
            child_starts,
            children,
            group_starts,
            skip,
            wanted,
            token_starts,
            tokens,
            dense_row,
            dense,
        ];
        Ok(Self { words: with_parts(header, &parts), depth: sequences.depth(), n_words, n_terminals })
    }

    /// Words of memory on the device.
    pub fn words(&self) -> usize {
        self.words.len()
    }
}

/// Groups of tokens in the making.
#[derive(Default)]
struct Groups {
    terminal_words: usize,
    wanted: Vec<u32>,
    token_starts: Vec<u32>,
    tokens: Vec<u32>,
    dense_row: Vec<u32>,
    dense: Vec<u32>,
}

impl Groups {
    fn add(&mut self, wanted: impl IntoIterator<Item = usize>, tokens: &Tokens) {
        let at = self.wanted.len();
        self.wanted.resize(at + self.terminal_words, 0);
        wanted.into_iter().for_each(|bit| self.wanted[at + bit / 32] |= 1 << (bit % 32));
        let n_rows = match tokens {
            Tokens::Few(_) => 0,
            Tokens::Many(words) => self.dense.len() / words.len(),
        };
        match tokens {
            Tokens::Few(tokens) => self.tokens.extend(tokens.iter().map(|token| token.0)),
            Tokens::Many(words) => self.dense.extend_from_slice(words),
        }
        self.dense_row.push(n_rows as u32);
        self.token_starts.push(self.tokens.len() as u32);
    }
}
