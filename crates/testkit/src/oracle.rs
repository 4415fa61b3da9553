//! The meaning of a grammar by brute force (DESIGN, section 2).
//!
//! [`Oracle`] cuts a text into labelled pieces as its lexer mode says, and asks whether some labelling is
//! derivable by computing, for every nonterminal and every span, whether the one derives the other: a least
//! fixpoint, reached by applying all rules to all spans until nothing changes. Cycles, nullable rules and
//! ambiguity need no care.
//!
//! - **Sentence** is exact. Cost: `O(rules × n³)` per round and at most `nonterminals × n²` rounds, for a
//!   text of `n` symbols; `contextual` pays that once per piece.
//! - **Viable** is found by trying continuations in order of their length. `Found` is exact; `NoneWithin`
//!   says only what it says unless it is exhausted. With [`Limits::prune`], texts are given up that no
//!   continuation makes a sentence *without regard to longest match*, which is decided exactly from
//!   derivatives of the terminals: whatever is a sentence in any mode is one in `scannerless`, so nothing is
//!   lost. The tests compare with and without.
//!
//! It shares no code with the engines: not even the reduction of the grammar.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use anygram_grammar::ir::{
    Grammar, LexerMode, NonterminalId, Rule, SpecialToken, Symbol, Terminal, TerminalId, TerminalKind, Ties,
};

use crate::derivative::{Language, kinds_of_bytes};
use crate::matcher;
use crate::small_set::SmallSet;
use crate::text::{Sym, Text, Vocab, bytes_of, show, token_symbols};

/// A labelled piece of a text. A terminal that is ignored is skipped, or read as itself where a rule names
/// it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Piece {
    /// Where it starts, in symbols.
    pub from: usize,
    /// Where it ends; beyond `from`.
    pub to: usize,
    /// What it is read as.
    pub terminal: TerminalId,
}

/// How far to look for a continuation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The greatest number of symbols to add.
    pub max_extra: usize,
    /// The greatest number of texts to look at.
    pub max_texts: usize,
    /// Whether to give up texts that no continuation can save in mode `scannerless`.
    pub prune: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_extra: 6, max_texts: 20_000, prune: true }
    }
}

/// What a search for a continuation came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Completion {
    /// These symbols, among the fewest possible, make the text a sentence.
    Found(Vec<Sym>),
    /// None of at most `max_extra` symbols does. If `exhausted`, no longer one over this alphabet does
    /// either; over another one it may ([`Oracle::whole_alphabet`]).
    NoneWithin {
        /// Whether the search ran out of texts before it ran out of length.
        exhausted: bool,
    },
    /// The search looked at `max_texts` texts and found none: an error of the limits, not an answer.
    LimitReached,
}

impl Completion {
    /// Whether a completion was found.
    ///
    /// # Panics
    /// If the search ran into its limit of texts.
    pub fn is_found(&self) -> bool {
        assert_ne!(*self, Self::LimitReached, "the search for a completion needs a higher `max_texts`");
        matches!(self, Self::Found(_))
    }
}

/// What may stand next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mask {
    /// For each token, whether text and token are a viable prefix.
    pub allowed: Vec<bool>,
    /// Whether the text is a sentence.
    pub eos: bool,
}

impl Mask {
    /// The allowed tokens in ascending order.
    pub fn tokens(&self) -> Vec<u32> {
        (0u32..).zip(&self.allowed).filter_map(|(token, &allowed)| allowed.then_some(token)).collect()
    }
}

/// The brute-force answer to every question of DESIGN, section 2.
pub struct Oracle {
    terminals: Vec<Terminal>,
    n_nonterminals: usize,
    start: NonterminalId,
    /// The rules that take part in a derivation of a sentence; none if the language is empty.
    rules: Vec<Rule>,
    mode: LexerMode,
    ties: Ties,
    /// The terminals that `rules` name, the ignored ones, and in `longest` the reserved ones.
    competing: BTreeSet<TerminalId>,
    /// The language of each terminal that is not a special token.
    languages: Vec<Option<Language>>,
    /// Whether each terminal matches anything that is not empty.
    scannable: Vec<bool>,
    special_names: BTreeMap<String, u32>,
    /// What was found about whole texts, for the sake of searches that share continuations.
    known: RefCell<HashMap<Vec<Sym>, bool>>,
}

/// Spans of a text and what derives them: sets of ends, by symbol and start.
struct Spans {
    /// By start: where any number of skipped pieces lead.
    skip: Vec<SmallSet>,
    /// By terminal and start: the ends, with skipped pieces before it.
    terminals: Vec<Vec<SmallSet>>,
    /// By nonterminal and start: the ends, with skipped pieces before each terminal.
    nonterminals: Vec<Vec<SmallSet>>,
}

impl Oracle {
    /// The oracle for a grammar.
    ///
    /// # Panics
    /// If the grammar is not [valid](Grammar::validate) or a pattern has a look-around assertion.
    pub fn new(grammar: &Grammar, mode: LexerMode, ties: Ties) -> Self {
        grammar.validate().expect("a valid grammar");
        let languages: Vec<Option<Language>> =
            grammar.terminals.iter().map(|terminal| terminal.kind.pattern().map(Language::new)).collect();
        let matches_something = |t: TerminalId| languages[t.index()].as_ref().is_none_or(|l| !l.is_nothing());
        let rules = useful_rules(grammar, matches_something);
        let named = rules.iter().flat_map(|rule| &rule.rhs).filter_map(|&symbol| match symbol {
            Symbol::Terminal(terminal) => Some(terminal),
            Symbol::Nonterminal(_) => None,
        });
        let competes = |t: &TerminalId| {
            let terminal = &grammar.terminals[t.index()];
            terminal.ignored || terminal.reserved && mode == LexerMode::Longest
        };
        let others = (0..grammar.terminals.len()).map(TerminalId::new).filter(competes);
        Self {
            competing: named.chain(others).collect(),
            terminals: grammar.terminals.clone(),
            n_nonterminals: grammar.nonterminals.len(),
            start: grammar.start,
            rules,
            mode,
            ties,
            scannable: languages.iter().map(|l| l.as_ref().is_none_or(Language::has_nonempty)).collect(),
            languages,
            special_names: BTreeMap::new(),
            known: RefCell::default(),
        }
    }

    /// Says which token a `<|name|>` of the grammar is. Names that are never said match nothing.
    pub fn with_special(mut self, name: &str, token: u32) -> Self {
        self.special_names.insert(name.to_owned(), token);
        self
    }

    /// Whether the language has no sentence at all.
    pub fn is_empty_language(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether the text is a sentence.
    pub fn is_sentence<T: Text + ?Sized>(&self, text: &T) -> bool {
        let text = text.symbols();
        if let Some(&known) = self.known.borrow().get(&text) {
            return known;
        }
        let spans = self.spans(text.len(), &self.pieces(&text));
        let answer =
            spans.nonterminals[self.start.index()][0].iter().any(|end| spans.skip[end].contains(text.len()));
        self.known.borrow_mut().insert(text, answer);
        answer
    }

    /// The shortest continuation over `alphabet` that makes the text a sentence, if one has at most
    /// `max_extra` bytes.
    ///
    /// # Panics
    /// If the search runs into the default limit of texts.
    pub fn is_viable<T: Text + ?Sized>(
        &self,
        prefix: &T,
        alphabet: &[u8],
        max_extra: usize,
    ) -> Option<Vec<u8>> {
        let found = self.completion(prefix, &alphabet.symbols(), Limits { max_extra, ..Limits::default() });
        match found {
            Completion::Found(extra) => bytes_of(&extra),
            Completion::NoneWithin { .. } => None,
            Completion::LimitReached => {
                panic!("no completion of {} within the limit", show(&prefix.symbols()))
            }
        }
    }

    /// Looks for a shortest continuation over `alphabet` that makes the text a sentence.
    pub fn completion<T: Text + ?Sized>(&self, prefix: &T, alphabet: &[Sym], limits: Limits) -> Completion {
        let prefix = prefix.symbols();
        let mut level = vec![prefix.clone()];
        let mut n_texts = 0;
        for extra in 0.. {
            if limits.prune {
                level.retain(|text| self.is_scannerless_prefix(text));
            }
            if let Some(sentence) = level.iter().find(|text| self.is_sentence(*text)) {
                return Completion::Found(sentence[prefix.len()..].to_vec());
            }
            if level.is_empty() || extra == limits.max_extra {
                break;
            }
            n_texts += level.len() * alphabet.len();
            if n_texts > limits.max_texts {
                return Completion::LimitReached;
            }
            let longer = |text: &Vec<Sym>| {
                let text = text.clone();
                alphabet.iter().map(move |&symbol| [&text[..], &[symbol]].concat())
            };
            level = level.iter().flat_map(longer).collect();
        }
        Completion::NoneWithin { exhausted: level.is_empty() }
    }

    /// `alphabet`, and one byte of every kind that it lacks and terminals tell apart: `[^é]` may begin with
    /// the first byte of `é` and go on with none of its bytes. Over these symbols something completes a text
    /// whenever anything does.
    pub fn whole_alphabet(&self, alphabet: &[Sym]) -> Vec<Sym> {
        let competing = self.competing.iter().filter_map(|t| self.languages[t.index()].as_ref());
        let has = |byte: &u8| alphabet.contains(&Sym::Byte(*byte));
        let lacking = kinds_of_bytes(competing).into_iter().filter(|kind| !kind.iter().any(has));
        alphabet.iter().copied().chain(lacking.map(|kind| Sym::Byte(kind[0]))).collect()
    }

    /// The mask after a text, as far as completions over `alphabet` within `limits` show it.
    ///
    /// # Panics
    /// If a search runs into its limit of texts.
    pub fn mask<T: Text + ?Sized>(
        &self,
        vocab: &Vocab,
        prefix: &T,
        alphabet: &[Sym],
        limits: Limits,
    ) -> Mask {
        let prefix = prefix.symbols();
        let viable = |token: u32| {
            let text = [&prefix[..], &token_symbols(vocab, token)].concat();
            self.completion(&text, alphabet, limits).is_found()
        };
        Mask { allowed: (0..vocab.len() as u32).map(viable).collect(), eos: self.is_sentence(&prefix) }
    }

    /// Whether a sentence is reached from a text by a token and then others, `budget` of them in all. Cost:
    /// every text of so many tokens that begins some sentence in mode `scannerless`.
    pub fn fits<T: Text + ?Sized>(&self, vocab: &Vocab, prefix: &T, token: u32, budget: u32) -> bool {
        let spelled = |token: u32| token_symbols(vocab, token);
        let mut level = vec![[prefix.symbols(), spelled(token)].concat()];
        for left in (0..budget).rev() {
            level.retain(|text| self.is_scannerless_prefix(text));
            if level.iter().any(|text| self.is_sentence(text)) {
                return true;
            }
            if left > 0 {
                let longer = |text: &Vec<Sym>| {
                    let text = text.clone();
                    (0..vocab.len() as u32).map(move |token| [text.clone(), spelled(token)].concat())
                };
                level = level.iter().flat_map(longer).collect();
                level.sort();
                level.dedup();
            }
        }
        false
    }

    /// The labelled pieces of a text: in `scannerless` those of all cuts, otherwise those of the one cut, as
    /// far as it goes.
    pub fn pieces<T: Text + ?Sized>(&self, text: &T) -> Vec<Piece> {
        let text = text.symbols();
        if self.mode == LexerMode::Scannerless {
            return (0..text.len()).flat_map(|from| self.pieces_at(&text, from, &self.competing)).collect();
        }
        let mut pieces = Vec::new();
        let mut from = 0;
        while from < text.len() {
            let competing = match self.mode {
                LexerMode::Contextual => self.competing_after(from, &pieces),
                _ => self.competing.clone(),
            };
            let candidates = self.pieces_at(&text, from, &competing);
            let Some(to) = candidates.iter().map(|piece| piece.to).max() else { break };
            pieces.extend(self.labels(candidates.into_iter().filter(|piece| piece.to == to).collect()));
            from = to;
        }
        pieces
    }

    /// The pieces in a readable form, for messages.
    pub fn explain<T: Text + ?Sized>(&self, text: &T) -> String {
        let text = text.symbols();
        self.pieces(&text).iter().fold(String::new(), |mut out, piece| {
            let name = &self.terminals[piece.terminal.index()].name;
            let _ =
                write!(out, "{}..{} {} {name}; ", piece.from, piece.to, show(&text[piece.from..piece.to]));
            out
        })
    }

    /// Whether some continuation makes the text a sentence in mode `scannerless`, whatever the mode of this
    /// oracle.
    ///
    /// Exact. The text is cut up to some point as a viable prefix, and what remains begins a member of a
    /// terminal that can come next, or of an ignored one.
    pub fn is_scannerless_prefix<T: Text + ?Sized>(&self, text: &T) -> bool {
        let text = text.symbols();
        let pieces: Vec<_> =
            (0..text.len()).flat_map(|from| self.pieces_at(&text, from, &self.competing)).collect();
        let spans = self.spans(text.len(), &pieces);
        let sentence_before = |at: usize| {
            spans.nonterminals[self.start.index()][0].iter().any(|end| spans.skip[end].contains(at))
        };
        (0..=text.len()).any(|at| {
            let may_begin = |t: &TerminalId| self.begins(*t, &text[at..]);
            let next = self.next_terminals(at, &spans);
            let ignored_begins = || self.ignored().any(|t| may_begin(&t));
            let is_prefix = !next.is_empty() || sentence_before(at);
            is_prefix && (at == text.len() || next.iter().any(may_begin) || ignored_begins())
        })
    }

    fn ignored(&self) -> impl Iterator<Item = TerminalId> {
        self.competing.iter().copied().filter(|t| self.terminals[t.index()].ignored)
    }

    /// Whether some member of the terminal begins with `text` and goes on.
    fn begins(&self, terminal: TerminalId, text: &[Sym]) -> bool {
        match (&self.languages[terminal.index()], bytes_of(text)) {
            (Some(language), Some(bytes)) => language.after(&bytes).has_nonempty(),
            (Some(_), None) => false,
            (None, _) => text.is_empty(),
        }
    }

    /// The non-empty pieces that start at `from`, one per terminal and end.
    fn pieces_at(&self, text: &[Sym], from: usize, competing: &BTreeSet<TerminalId>) -> Vec<Piece> {
        let run: Vec<u8> = text[from..].iter().map_while(|&symbol| bytes_of(&[symbol])).flatten().collect();
        let mut pieces = Vec::new();
        for &terminal in competing {
            let ends: Vec<usize> = match &self.terminals[terminal.index()].kind {
                TerminalKind::Literal(pattern) | TerminalKind::Pattern(pattern) => {
                    matcher::ends(pattern, &run, 0).into_iter().filter(|&end| end > 0).collect()
                }
                // Brute force reads patterns only.
                TerminalKind::Automaton { .. } => Vec::new(),
                TerminalKind::Special(special) => {
                    let token = match special {
                        SpecialToken::Id(id) => Some(*id),
                        SpecialToken::Name(name) => self.special_names.get(name).copied(),
                        // Brute force reads tokens that are named.
                        SpecialToken::Except(_) => None,
                    };
                    token
                        .filter(|&id| text.get(from) == Some(&Sym::Token(id)))
                        .map(|_| 1)
                        .into_iter()
                        .collect()
                }
            };
            pieces.extend(ends.into_iter().map(|end| Piece { from, to: from + end, terminal }));
        }
        pieces
    }

    /// Of the terminals that match one longest piece, those that count as its labels.
    fn labels(&self, candidates: Vec<Piece>) -> Vec<Piece> {
        let terminal = |piece: &Piece| &self.terminals[piece.terminal.index()];
        let highest = candidates.iter().map(|piece| terminal(piece).priority).max();
        let mut labels: Vec<Piece> =
            candidates.into_iter().filter(|piece| Some(terminal(piece).priority) == highest).collect();
        if self.ties == Ties::First {
            let is_pattern = |piece: &Piece| matches!(terminal(piece).kind, TerminalKind::Pattern(_));
            labels.sort_by_key(|piece| (is_pattern(piece), piece.terminal));
            labels.truncate(1);
        }
        labels
    }

    /// In `contextual`: the terminals that can come next after some labelling of the pieces so far, and the
    /// ignored.
    fn competing_after(&self, at: usize, pieces: &[Piece]) -> BTreeSet<TerminalId> {
        let mut competing = self.next_terminals(at, &self.spans(at, pieces));
        competing.extend(self.ignored());
        competing
    }

    /// What derives which span of `0..n`, given its pieces.
    fn spans(&self, n: usize, pieces: &[Piece]) -> Spans {
        let nowhere = || vec![SmallSet::default(); n + 1];
        let mut skip: Vec<SmallSet> = (0..=n).map(SmallSet::of).collect();
        for from in (0..=n).rev() {
            for piece in pieces
                .iter()
                .filter(|piece| piece.from == from && self.terminals[piece.terminal.index()].ignored)
            {
                let beyond = skip[piece.to];
                skip[from].union_with(beyond);
            }
        }
        let mut terminals = vec![nowhere(); self.terminals.len()];
        for from in 0..=n {
            for piece in pieces.iter().filter(|piece| skip[from].contains(piece.from)) {
                terminals[piece.terminal.index()][from].union_with(SmallSet::of(piece.to));
            }
            for (terminal, language) in self.languages.iter().enumerate() {
                if language.as_ref().is_some_and(Language::is_nullable) {
                    terminals[terminal][from].union_with(SmallSet::of(from));
                }
            }
        }
        let mut spans = Spans { skip, terminals, nonterminals: vec![nowhere(); self.n_nonterminals] };
        let mut changed = true;
        while changed {
            changed = false;
            for rule in &self.rules {
                for from in 0..=n {
                    let ends = spans.after(from, &rule.rhs);
                    changed |= spans.nonterminals[rule.lhs.index()][from].union_with(ends);
                }
            }
        }
        spans
    }

    /// The terminals `t` such that some labelling of the pieces up to `at`, followed by `t`, begins a
    /// sentence of terminals. Since every rule is useful, whatever follows `t` in a rule can be completed.
    fn next_terminals(&self, at: usize, spans: &Spans) -> BTreeSet<TerminalId> {
        // By nonterminal and start up to `at`: the terminals that can come next in it.
        let mut next = vec![vec![SmallSet::default(); at + 1]; self.n_nonterminals];
        // Which contain those of which: what stands in a rule behind symbols that lead to a place up to `at`.
        let mut contains: Vec<[(usize, usize); 2]> = Vec::new();
        for rule in &self.rules {
            // A start is a place of the text here, and indexes more than `next`.
            #[allow(clippy::needless_range_loop)]
            for from in 0..=at {
                for (before, symbol) in rule.rhs.iter().enumerate() {
                    let middles = spans.after(from, &rule.rhs[..before]);
                    for middle in middles.iter().take_while(|&middle| middle <= at) {
                        match *symbol {
                            Symbol::Nonterminal(a) => {
                                contains.push([(rule.lhs.index(), from), (a.index(), middle)]);
                            }
                            Symbol::Terminal(t) => {
                                if self.scannable[t.index()] && spans.skip[middle].contains(at) {
                                    next[rule.lhs.index()][from].union_with(SmallSet::of(t.index()));
                                }
                            }
                        }
                    }
                }
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for &[(lhs, from), (inner, middle)] in &contains {
                let more = next[inner][middle];
                changed |= next[lhs][from].union_with(more);
            }
        }
        next[self.start.index()][0].iter().map(TerminalId::new).collect()
    }
}

impl Spans {
    /// Where `symbols`, one after the other, lead from `from`.
    fn after(&self, from: usize, symbols: &[Symbol]) -> SmallSet {
        let mut at = SmallSet::of(from);
        for symbol in symbols {
            let by_start = match *symbol {
                Symbol::Terminal(t) => &self.terminals[t.index()],
                Symbol::Nonterminal(a) => &self.nonterminals[a.index()],
            };
            let mut beyond = SmallSet::default();
            for start in at.iter() {
                beyond.union_with(by_start[start]);
            }
            at = beyond;
        }
        at
    }
}

/// The rules that take part in the derivation of some sentence, by the definition: what they name derives
/// something, and the start symbol leads to them.
fn useful_rules(grammar: &Grammar, matches_something: impl Fn(TerminalId) -> bool) -> Vec<Rule> {
    let mut productive = BTreeSet::new();
    let mut rules: Vec<Rule> = Vec::new();
    loop {
        let n_before = rules.len();
        rules = grammar.rules.clone();
        rules.retain(|rule| {
            rule.rhs.iter().all(|&symbol| match symbol {
                Symbol::Terminal(t) => matches_something(t),
                Symbol::Nonterminal(a) => productive.contains(&a),
            })
        });
        productive.extend(rules.iter().map(|rule| rule.lhs));
        if rules.len() == n_before {
            break;
        }
    }
    let mut reachable = BTreeSet::from([grammar.start]);
    loop {
        let named = rules.iter().filter(|rule| reachable.contains(&rule.lhs)).flat_map(|rule| &rule.rhs);
        let named: Vec<_> = named
            .filter_map(|&symbol| match symbol {
                Symbol::Nonterminal(a) => Some(a),
                Symbol::Terminal(_) => None,
            })
            .collect();
        let n_before = reachable.len();
        reachable.extend(named);
        if reachable.len() == n_before {
            break;
        }
    }
    rules.retain(|rule| reachable.contains(&rule.lhs));
    rules
}
