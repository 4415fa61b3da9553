//! Grammars and texts to measure on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anygram::{Compiler, GrammarFormat, Language, LexerMode};
use anygram_bits::{BitSet, Random};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{NonterminalId, Rule, Symbol, TerminalId};
use anygram_recognizer::{Edge, Recognizer};
use anyhow::{Context, Result, anyhow};

/// The Lark files of a folder and of those in it, in order.
pub fn grammars(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let below = |path: PathBuf| match path.is_dir() {
        true => grammars(&path),
        false => vec![path],
    };
    let files = paths.into_iter().flat_map(below);
    files.filter(|path| path.extension().is_some_and(|extension| extension == "lark")).collect()
}

/// A grammar file, compiled.
pub fn language(path: &Path, compiler: &Compiler) -> Result<Arc<Language>> {
    let source = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    compiler.compile(GrammarFormat::Lark, &source).map_err(|error| anyhow!("{}: {error}", path.display()))
}

/// A text of a file of JSON Lines, with its tokens.
#[derive(serde::Deserialize)]
pub struct Text {
    pub text: String,
    #[serde(default)]
    pub ids: Vec<u32>,
}

/// The texts of a file.
pub fn texts(path: &Path) -> Result<Vec<Text>> {
    let source = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let parse = |line| serde_json::from_str(line).with_context(|| path.display().to_string());
    source.lines().map(parse).collect()
}

/// What a recognizer reads of a text: the labels of each piece.
pub type Pieces = Vec<Vec<TerminalId>>;

/// The pieces of a text, the longest that some viable or ignored terminal matches; `None` if it is no
/// sentence that way.
pub fn pieces(language: &Language, engine: &mut dyn Recognizer, text: &[u8]) -> Result<Option<Pieces>> {
    let lexicon = &language.lexing().lexicon;
    let (mut state, mut at, mut pieces) = (engine.start(), 0, Pieces::new());
    while at < text.len() {
        let viable = engine.viable(state).clone();
        let (mut node, mut longest) = (1, None);
        for (end, &byte) in (at + 1..).zip(&text[at..]) {
            node = lexicon.union.step(node, lexicon.union.class(byte));
            if node == 0 {
                break;
            }
            let labels =
                lexicon.labels(node, |label| viable.contains(label) || lexicon.ignored.contains(label));
            if !labels.is_empty() {
                longest = Some((end, labels));
            }
        }
        let Some((end, labels)) = longest else { return Ok(None) };
        at = end;
        let labels: Vec<_> =
            labels.into_iter().filter(|&label| viable.contains(label)).map(TerminalId::new).collect();
        if labels.is_empty() {
            continue;
        }
        match engine.extend(&edges(state, &labels))? {
            Some(next) => state = next,
            None => return Ok(None),
        }
        pieces.push(labels);
    }
    Ok(engine.is_sentence(state).then_some(pieces))
}

/// The edges of a piece.
pub fn edges(from: anygram_recognizer::StateId, labels: &[TerminalId]) -> Vec<Edge> {
    labels.iter().map(|&label| Edge { from, terminal: Some(label) }).collect()
}

/// A grammar by its rules: a letter that is the left side of a rule is a nonterminal, `S` the start; all
/// others are terminals.
pub fn cfg(rules: &[(char, &str)]) -> Cfg {
    let (mut nonterminals, mut terminals) = (vec!['S'], Vec::new());
    for &(lhs, _) in rules {
        if !nonterminals.contains(&lhs) {
            nonterminals.push(lhs);
        }
    }
    let place = |list: &[char], c: char| list.iter().position(|&other| other == c);
    let rules = rules.iter().map(|&(lhs, rhs)| Rule {
        lhs: NonterminalId::new(place(&nonterminals, lhs).unwrap_or(0)),
        rhs: rhs
            .chars()
            .map(|c| match place(&nonterminals, c) {
                Some(n) => Symbol::Nonterminal(NonterminalId::new(n)),
                None => Symbol::Terminal(TerminalId::new(place(&terminals, c).unwrap_or_else(|| {
                    terminals.push(c);
                    terminals.len() - 1
                }))),
            })
            .collect(),
    });
    let rules = rules.collect();
    Cfg {
        n_terminals: terminals.len(),
        n_nonterminals: nonterminals.len(),
        rules,
        start: NonterminalId(0),
        automata: Vec::new(),
    }
}

/// A grammar in Chomsky's form over one terminal, in which almost every symbol derives every word: the worst
/// case.
///
/// Each of `n_symbols` symbols is the terminal, and `n_rules` rules of two are drawn, their left children
/// among the first `n_lefts` symbols.
pub fn saturated(n_symbols: usize, n_lefts: usize, n_rules: usize) -> Result<Cfg> {
    let mut random = Random::new(1);
    let symbol = |n| Symbol::Nonterminal(NonterminalId::new(n));
    let lexical = |n| Rule { lhs: NonterminalId::new(n), rhs: vec![Symbol::Terminal(TerminalId(0))] };
    let mut rules: Vec<Rule> = (0..n_symbols).map(lexical).collect();
    // The first rules lead to every symbol, so that none is left out.
    for n in 0..n_rules {
        let (lhs, left, right) = match n {
            0 => (0, 0, 1),
            n if n < n_symbols - 1 => (n, random.below(n_lefts), n + 1),
            _ => (random.below(n_symbols), random.below(n_lefts), random.below(n_symbols)),
        };
        rules.push(Rule { lhs: NonterminalId::new(lhs), rhs: vec![symbol(left), symbol(right)] });
    }
    let cfg = Cfg {
        n_terminals: 1,
        n_nonterminals: n_symbols,
        rules,
        start: NonterminalId(0),
        automata: Vec::new(),
    };
    cfg.trim(&BitSet::new(1)).map_err(|_| anyhow!("the random grammar derives nothing"))
}

/// The lexer mode of this name.
pub fn lexer_mode(name: &str) -> Result<LexerMode> {
    LexerMode::ALL
        .into_iter()
        .find(|mode| mode.name() == name)
        .ok_or_else(|| anyhow!("{name} is no lexer mode"))
}
