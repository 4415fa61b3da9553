//! The intermediate representation that every front end lowers to.

use std::collections::HashSet;
use std::convert::Infallible;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use anygram_bits::index_type;
use regex_syntax::hir::{self, Hir, HirKind, Visitor};
use rustc_hash::FxHashMap;

use crate::automata::{Pieces, RuleAutomaton};
use crate::memory::{Remembered, Remembers};

index_type!(
    /// A terminal: what the lexer produces.
    TerminalId
);
index_type!(
    /// A nonterminal: what rules rewrite.
    NonterminalId
);

/// A place in the grammar's source text, in bytes.
pub type Span = Range<usize>;

/// How a text becomes terminal sequences (DESIGN, section 2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LexerMode {
    /// Every way to cut the text into non-empty pieces counts.
    Scannerless,
    /// One cut: the longest piece that any terminal matches, again and again.
    Longest,
    /// As `Longest`, but only terminals that can come next compete.
    Contextual,
}

impl LexerMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Scannerless, Self::Longest, Self::Contextual];

    /// The name of the mode, as options and grammars write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scannerless => "scannerless",
            Self::Longest => "longest",
            Self::Contextual => "contextual",
        }
    }
}

/// What to do when several terminals match the same longest piece.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ties {
    /// All of the highest declared priority are labels of the piece.
    #[default]
    All,
    /// Of those, one: a literal before a pattern, then the one that comes first in [`Grammar::terminals`].
    First,
}

/// A right-hand side symbol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Symbol {
    /// A terminal.
    Terminal(TerminalId),
    /// A nonterminal.
    Nonterminal(NonterminalId),
}

/// A regular expression over bytes, with the operations that `regex-syntax` lacks.
///
/// A pattern stands for a language; the order of alternatives and the greed of quantifiers mean nothing. What
/// a regular expression can say is one: a concatenation, an alternation or a repetition is a node of its own
/// only if a part of it is none. [`concat`](Self::concat) and the others see to that, and front ends to a
/// nesting of at most [`MAX_DEPTH`](Self::MAX_DEPTH) ([`Grammar::validate`] checks both), so those who read
/// patterns may recurse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// A regular expression without look-around and capturing groups.
    Regex(Hir),
    /// One after the other, at least two.
    Concat(Vec<Pattern>),
    /// Any of them, at least two.
    Alternate(Vec<Pattern>),
    /// From `min` to `max` times; without `max` any number.
    Repeat {
        /// What is repeated.
        inner: Box<Pattern>,
        /// The least number of times.
        min: u32,
        /// The greatest number of times, if there is one.
        max: Option<u32>,
    },
    /// What all of them match, at least two.
    And(Vec<Pattern>),
    /// Every Unicode text that the inner pattern does not match.
    Not(Box<Pattern>),
}

impl Pattern {
    /// The pattern that matches exactly these bytes.
    pub fn literal(bytes: &[u8]) -> Self {
        Self::Regex(Hir::literal(bytes.to_vec()))
    }

    /// How deep patterns nest at most, regular expressions in them included.
    pub const MAX_DEPTH: usize = 250;

    /// One after the other.
    pub fn concat(parts: Vec<Self>) -> Self {
        Self::join(parts, Hir::concat, Self::Concat)
    }

    /// Any of them; none at all matches nothing.
    pub fn alternate(parts: Vec<Self>) -> Self {
        Self::join(parts, Hir::alternation, Self::Alternate)
    }

    fn join(mut parts: Vec<Self>, regex: fn(Vec<Hir>) -> Hir, pattern: fn(Vec<Self>) -> Self) -> Self {
        if parts.len() == 1 {
            return parts.swap_remove(0);
        }
        if !parts.iter().all(|part| matches!(part, Self::Regex(_))) {
            return pattern(parts);
        }
        let hir = |part| match part {
            Self::Regex(hir) => Some(hir),
            _ => None,
        };
        Self::Regex(regex(parts.into_iter().filter_map(hir).collect()))
    }

    /// From `min` to `max` times; without `max` any number.
    pub fn repeat(inner: Self, min: u32, max: Option<u32>) -> Self {
        match inner {
            Self::Regex(sub) => {
                Self::Regex(Hir::repetition(hir::Repetition { min, max, greedy: true, sub: Box::new(sub) }))
            }
            _ if max == Some(0) => Self::Regex(Hir::empty()),
            inner if (min, max) == (1, Some(1)) => inner,
            inner => Self::Repeat { inner: Box::new(inner), min, max },
        }
    }

    /// What all of them match; none at all matches every Unicode text.
    pub fn and(mut parts: Vec<Self>) -> Self {
        match parts.len() {
            0 => Self::Not(Box::new(Self::Regex(Hir::fail()))),
            1 => parts.swap_remove(0),
            _ => Self::And(parts),
        }
    }

    /// The patterns that this one is made of, regular expressions as wholes.
    fn parts(&self) -> &[Self] {
        match self {
            Self::Regex(_) => &[],
            Self::Concat(parts) | Self::Alternate(parts) | Self::And(parts) => parts,
            Self::Repeat { inner, .. } | Self::Not(inner) => std::slice::from_ref(inner),
        }
    }

    /// How deep it nests, regular expressions in it included.
    pub fn depth(&self) -> usize {
        let (mut deepest, mut agenda) = (0, vec![(self, 1)]);
        while let Some((pattern, depth)) = agenda.pop() {
            deepest = deepest.max(depth);
            match pattern {
                Self::Regex(hir) => deepest = deepest.max(depth - 1 + hir_depth(hir)),
                pattern => agenda.extend(pattern.parts().iter().map(|part| (part, depth + 1))),
            }
        }
        deepest
    }

    /// Checks the invariants and says which one is broken.
    fn validate(&self) -> Result<(), String> {
        let mut agenda = vec![self];
        while let Some(pattern) = agenda.pop() {
            let parts = pattern.parts();
            agenda.extend(parts);
            let plain = parts.iter().all(|part| matches!(part, Self::Regex(_)));
            let holds = match pattern {
                Self::Regex(hir) => {
                    let properties = hir.properties();
                    properties.look_set().is_empty() && properties.explicit_captures_len() == 0
                }
                Self::Concat(_) | Self::Alternate(_) => parts.len() > 1 && !plain,
                Self::And(_) => parts.len() > 1,
                Self::Repeat { min, max, .. } => {
                    !plain
                        && *max != Some(0)
                        && (*min, *max) != (1, Some(1))
                        && max.is_none_or(|max| *min <= max)
                }
                Self::Not(_) => true,
            };
            if !holds {
                return Err(format!("not in the form that the constructors give: {pattern:?}"));
            }
        }
        match self.depth() {
            depth if depth > Self::MAX_DEPTH => {
                Err(format!("{depth} levels deep, more than {}", Self::MAX_DEPTH))
            }
            _ => Ok(()),
        }
    }

    /// Whether the empty string matches.
    pub fn is_nullable(&self) -> bool {
        match self {
            Self::Regex(hir) => is_hir_nullable(hir),
            Self::Concat(parts) | Self::And(parts) => parts.iter().all(Self::is_nullable),
            Self::Alternate(parts) => parts.iter().any(Self::is_nullable),
            Self::Repeat { inner, min, .. } => *min == 0 || inner.is_nullable(),
            Self::Not(inner) => !inner.is_nullable(),
        }
    }
}

/// How deep a regular expression nests; one without parts is 1.
pub(crate) fn hir_depth(hir: &Hir) -> usize {
    let (mut deepest, mut agenda) = (0, vec![(hir, 1)]);
    while let Some((hir, depth)) = agenda.pop() {
        deepest = deepest.max(depth);
        agenda.extend(hir.kind().subs().iter().map(|sub| (sub, depth + 1)));
    }
    deepest
}

/// The number of nodes of an expression, literals and classes weighed by their size.
pub(crate) fn hir_size(hir: &Hir) -> usize {
    let (mut total, mut agenda) = (0, vec![hir]);
    while let Some(hir) = agenda.pop() {
        total += 1;
        match hir.kind() {
            HirKind::Literal(literal) => total += literal.0.len() / 8,
            HirKind::Class(hir::Class::Unicode(class)) => total += class.ranges().len() / 8,
            HirKind::Class(hir::Class::Bytes(class)) => total += class.ranges().len() / 8,
            kind => agenda.extend(kind.subs()),
        }
    }
    total
}

/// Whether the empty string matches.
///
/// Not the `minimum_len` of the properties: that is unknown as soon as some part matches nothing, as in
/// `a|[a&&b]*`.
pub(crate) fn is_hir_nullable(hir: &Hir) -> bool {
    /// Whether each part that was left and not yet used is nullable; the parts of a node are the last of
    /// them.
    struct Nullable(Vec<bool>);

    impl Visitor for Nullable {
        type Output = bool;
        type Err = Infallible;

        fn finish(mut self) -> Result<bool, Infallible> {
            Ok(self.0.pop().expect("the root was left last"))
        }

        fn visit_post(&mut self, hir: &Hir) -> Result<(), Infallible> {
            let mut last = |n: usize| self.0.split_off(self.0.len() - n).into_iter();
            let nullable = match hir.kind() {
                HirKind::Empty | HirKind::Look(_) => true,
                HirKind::Literal(literal) => literal.0.is_empty(),
                HirKind::Class(_) => false,
                HirKind::Repetition(repetition) => last(1).all(|inner| inner || repetition.min == 0),
                HirKind::Capture(_) => last(1).all(|inner| inner),
                HirKind::Concat(parts) => last(parts.len()).all(|part| part),
                HirKind::Alternation(parts) => last(parts.len()).any(|part| part),
            };
            self.0.push(nullable);
            Ok(())
        }
    }

    let Ok(nullable) = hir::visit(hir, Nullable(Vec::new()));
    nullable
}

/// A token of the vocabulary that a grammar names.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum SpecialToken {
    /// By its text, `<|name|>`, angle brackets and bars included. The name has neither `|>` nor line ends
    /// inside.
    Name(String),
    /// By its id, `<[id]>`.
    Id(u32),
    /// Any one token, with bytes or without, but EOS, PAD, MASK and those listed, which are names and ids.
    Except(Box<[SpecialToken]>),
}

/// What a terminal matches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TerminalKind {
    /// A text written out in the grammar, perhaps in any case ([`literal`]).
    Literal(Pattern),
    /// Any other pattern.
    Pattern(Pattern),
    /// One token of the vocabulary, whatever its bytes.
    Special(SpecialToken),
    /// The pieces with this label of one of [`Grammar::pieces`].
    Automaton {
        /// Which of them.
        automaton: usize,
        /// The number that the automaton has for the terminal.
        label: u32,
    },
}

impl TerminalKind {
    /// The pattern over bytes, if the terminal has one: it may be a token or given by an automaton.
    pub fn pattern(&self) -> Option<&Pattern> {
        match self {
            Self::Literal(pattern) | Self::Pattern(pattern) => Some(pattern),
            Self::Special(_) | Self::Automaton { .. } => None,
        }
    }

    /// Whether it is one token of the vocabulary, whatever its bytes.
    pub fn is_token(&self) -> bool {
        matches!(self, Self::Special(_))
    }
}

/// The expression that matches a text, perhaps in any case.
pub fn literal(text: &str, ignore_case: bool) -> Hir {
    if !ignore_case {
        return Hir::literal(text.as_bytes().to_vec());
    }
    let folded = |c| {
        let mut class = hir::ClassUnicode::new([hir::ClassUnicodeRange::new(c, c)]);
        class.case_fold_simple();
        Hir::class(hir::Class::Unicode(class))
    };
    Hir::concat(text.chars().map(folded).collect())
}

/// A terminal and its declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terminal {
    /// The name in the grammar's own words: `NUMBER`, or `"select"` for one that has no name.
    pub name: String,
    /// Whether the grammar declares it under this name; else the name is how it is written where it stands.
    pub declared: bool,
    /// What it matches.
    pub kind: TerminalKind,
    /// Higher wins among terminals that match the same longest piece. Zero unless declared.
    pub priority: i32,
    /// Whether it may stand between, before and after others (`%ignore`). A rule may name it all the same.
    pub ignored: bool,
    /// Whether it competes for the longest piece although no rule needs it (`%reserve`). Where it wins, the
    /// text is refused.
    pub reserved: bool,
    /// Where it was declared; `None` for one from a library or another file.
    pub span: Option<Span>,
    /// What its pieces are to one of the grammar's [memories](crate::memory), if to any.
    pub memory: Option<Remembered>,
    /// How many tokens may have bytes in a piece of it, if that is bounded. What the tokens of a text are is
    /// no matter of the text, so a text is a sentence if it is one in some tokens.
    pub max_tokens: Option<NonZeroU32>,
}

impl Terminal {
    /// A terminal that is written where it stands, of which nothing else is said.
    pub fn new(name: impl Into<String>, kind: TerminalKind) -> Self {
        Self {
            name: name.into(),
            declared: false,
            kind,
            priority: 0,
            ignored: false,
            reserved: false,
            span: None,
            memory: None,
            max_tokens: None,
        }
    }
}

/// Whether this is the text of a token as the grammar writes it.
pub(crate) fn is_token_name(name: &str) -> bool {
    let between = |open, close| name.strip_prefix(open).and_then(|name| name.strip_suffix(close));
    let barred = |inner: &str| !inner.contains(['\n', '\r']) && !format!("{inner}|").contains("|>");
    between("<|", "|>").is_some_and(barred) || between("<", ">").is_some_and(crate::lark::is_bare_token_name)
}

/// A nonterminal and its declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nonterminal {
    /// The name in the grammar's own words; made up (with a leading `__`) for groups and repetitions.
    pub name: String,
    /// Where it was declared (for a made-up one, where the group stands); `None` for one from another file.
    pub span: Option<Span>,
}

impl Nonterminal {
    /// Whether the front end made it up: such names, as in Lark, begin with `__`.
    pub fn is_synthetic(&self) -> bool {
        self.name.starts_with("__")
    }
}

/// What a grammar says about a rule that means nothing for texts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hints {
    /// The name under which its text is wanted (`[capture]`).
    pub capture: Option<String>,
    /// The name under which the text of its `suffix` is wanted (`[stop_capture="…"]`).
    pub stop_capture: Option<String>,
    /// The temperature with which its tokens should be sampled, as written (`[temperature=…]`).
    pub temperature: Option<String>,
    /// That it derives the values of a JSON schema: the JSON pointer of the schema in what the grammar was
    /// read from. It is empty where the schema is all of that, and where [`Nonterminal::span`] says where it
    /// stands.
    pub schema: Option<String>,
}

/// `lhs: rhs`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Rule {
    /// What is rewritten.
    pub lhs: NonterminalId,
    /// What it is rewritten to; empty for the empty string.
    pub rhs: Vec<Symbol>,
}

/// Right-hand sides of a nonterminal that an automaton gives, beside those of its rules.
///
/// Two are equal if they have the same automaton: it is compared by address.
#[derive(Clone, Debug)]
pub struct AutomatonRule {
    /// What is rewritten.
    pub lhs: NonterminalId,
    /// What it is rewritten to, over numbers of its own.
    pub automaton: Arc<dyn RuleAutomaton>,
    /// What each of these numbers stands for. None may derive the empty sequence.
    pub symbols: Arc<[Symbol]>,
}

impl PartialEq for AutomatonRule {
    fn eq(&self, other: &Self) -> bool {
        (self.lhs, &self.symbols) == (other.lhs, &other.symbols)
            && Arc::ptr_eq(&self.automaton, &other.automaton)
    }
}

impl Eq for AutomatonRule {}

/// A grammar as a front end read it: nothing removed, nothing refused for its shape.
///
/// [`Grammar::new`] gives it an order of its own, so that what is printed and read again is the
/// [same](Grammar::difference). Invariants (see [`Grammar::validate`]):
///
/// - Every id in `rules`, `automata` and `start` is in range.
/// - Rules stand in the order of their left sides, and so do automata.
/// - Every terminal is named by a rule or an automaton, ignored or reserved. Declared ones come first, in the
///   order of their declaration; then the others in the order of their first use in `rules`, then in
///   `automata`; then those that no rule names.
/// - Names of nonterminals are unique, and those of declared terminals. Terminals that are not declared
///   differ in what they match or in their priority.
/// - Literals are texts, perhaps in any case; patterns have the form that [`Pattern`] describes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grammar {
    /// The terminals; [`TerminalId`] is the position.
    pub terminals: Vec<Terminal>,
    /// The nonterminals; [`NonterminalId`] is the position.
    pub nonterminals: Vec<Nonterminal>,
    /// The rules, those of one nonterminal together.
    pub rules: Vec<Rule>,
    /// Right-hand sides that automata give.
    pub automata: Vec<AutomatonRule>,
    /// Where derivations begin.
    pub start: NonterminalId,
    /// The lexer mode that this kind of grammar is meant for.
    pub default_lexer: LexerMode,
    /// The automata of terminals that are too large for patterns ([`TerminalKind::Automaton`]).
    pub pieces: Vec<Pieces>,
    /// A promise: of the ways to cut the beginning of a text into pieces, at most a few are still possible
    /// after the next byte, as in JSON. Then `scannerless` follows the ends of pieces one by one, which is
    /// quicker than to merge them. Where it is not kept, all answers are the same, but the readings of a text
    /// can become as many as the ways to cut it.
    pub delimited: bool,
    /// What keeps pieces from being repeated.
    pub memory: Option<Remembers>,
    /// The same within values in a text, by the numbers that terminals name: see [`crate::memory`].
    pub embedded: Vec<Remembers>,
    /// What is said about nonterminals.
    pub hints: Vec<(NonterminalId, Hints)>,
}

fn right_sides<'a>(rules: &'a [Rule], automata: &'a [AutomatonRule]) -> impl Iterator<Item = &'a Symbol> {
    let of_automata = automata.iter().flat_map(|rule| &*rule.symbols);
    rules.iter().flat_map(|rule| &rule.rhs).chain(of_automata)
}

impl Grammar {
    /// A grammar in order: sorts the rules, leaves out terminals without a use, joins terminals that are not
    /// declared and match the same with the same priority, and numbers them anew. Linear in the size of the
    /// grammar.
    ///
    /// # Panics
    /// If a rule names a symbol that does not exist.
    pub fn new(
        terminals: Vec<Terminal>,
        nonterminals: Vec<Nonterminal>,
        rules: Vec<Rule>,
        start: NonterminalId,
        default_lexer: LexerMode,
    ) -> Self {
        Self::with_automata(terminals, nonterminals, (rules, Vec::new()), start, default_lexer)
    }

    /// The same, with right-hand sides that automata give beside the rules. All symbols of an automaton count
    /// as used.
    ///
    /// # Panics
    /// If a rule or an automaton names a symbol that does not exist.
    pub fn with_automata(
        terminals: Vec<Terminal>,
        nonterminals: Vec<Nonterminal>,
        (mut rules, mut automata): (Vec<Rule>, Vec<AutomatonRule>),
        start: NonterminalId,
        default_lexer: LexerMode,
    ) -> Self {
        rules.sort_by_key(|rule| rule.lhs);
        automata.sort_by_key(|rule| rule.lhs);
        // The terminal that each one is joined with: the first that is alike, or itself.
        let mut alike = FxHashMap::default();
        let mut joined: Vec<usize> = (0..terminals.len()).collect();
        for (at, terminal) in terminals.iter().enumerate().filter(|(_, terminal)| !terminal.declared) {
            let kind = match &terminal.kind {
                TerminalKind::Automaton { automaton, label } => Err((*automaton, *label)),
                kind => Ok(kind.to_string()),
            };
            let key = (kind, terminal.priority, terminal.memory, terminal.max_tokens);
            joined[at] = *alike.entry(key).or_insert(at);
        }
        let mut numbers: Vec<Option<TerminalId>> = vec![None; terminals.len()];
        let mut order = Vec::new();
        let mut number = |at: usize| {
            *numbers[joined[at]].get_or_insert_with(|| {
                order.push(joined[at]);
                TerminalId::new(order.len() - 1)
            })
        };
        let mut used: Vec<bool> =
            terminals.iter().map(|terminal| terminal.ignored || terminal.reserved).collect();
        for symbol in right_sides(&rules, &automata) {
            if let Symbol::Terminal(terminal) = symbol {
                used[terminal.index()] = true;
            }
        }
        for at in (0..terminals.len()).filter(|&at| terminals[at].declared && used[at]) {
            number(at);
        }
        let mut renumber = |symbol: &mut Symbol| {
            if let Symbol::Terminal(terminal) = symbol {
                *terminal = number(terminal.index());
            }
        };
        rules.iter_mut().flat_map(|rule| &mut rule.rhs).for_each(&mut renumber);
        for rule in &mut automata {
            let mut symbols = rule.symbols.to_vec();
            symbols.iter_mut().for_each(&mut renumber);
            rule.symbols = symbols.into();
        }
        for at in (0..terminals.len()).filter(|&at| used[at]) {
            number(at);
        }
        let (mut ignored, mut reserved) = (vec![false; order.len()], vec![false; order.len()]);
        for (terminal, &joined) in terminals.iter().zip(&joined) {
            if let Some(number) = numbers[joined] {
                ignored[number.index()] |= terminal.ignored;
                reserved[number.index()] |= terminal.reserved;
            }
        }
        let mut terminals: Vec<Option<Terminal>> = terminals.into_iter().map(Some).collect();
        let taken =
            order.iter().filter_map(|&at| terminals[at].take()).zip(ignored.into_iter().zip(reserved));
        let mut terminals: Vec<Terminal> =
            taken.map(|(terminal, (ignored, reserved))| Terminal { ignored, reserved, ..terminal }).collect();
        terminals.shrink_to_fit();
        let (pieces, delimited, memory) = (Vec::new(), false, None);
        let (embedded, hints) = (Vec::new(), Vec::new());
        Self {
            terminals,
            nonterminals,
            rules,
            automata,
            start,
            default_lexer,
            pieces,
            delimited,
            memory,
            embedded,
            hints,
        }
    }

    /// The same with what is said about nonterminals.
    pub fn with_hints(self, hints: Vec<(NonterminalId, Hints)>) -> Self {
        Self { hints, ..self }
    }

    /// The size of the rules: their symbols and one for each, those of automata included.
    pub fn n_rule_symbols(&self) -> usize {
        self.right_sides().count() + self.rules.len() + self.automata.len()
    }

    /// The symbols of all right-hand sides, those of automata behind those of rules.
    pub(crate) fn right_sides(&self) -> impl Iterator<Item = &Symbol> {
        right_sides(&self.rules, &self.automata)
    }

    /// The first thing in which two grammars differ, if there is one; if there is none, they are the same
    /// grammar.
    ///
    /// Places do not count, nor what terminals are called that are not declared. All else does: names,
    /// numbers, patterns to the last node, rules and their order.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let name = |terminal: &Terminal| terminal.declared.then(|| terminal.name.clone());
        for (at, (a, b)) in self.terminals.iter().zip(&other.terminals).enumerate() {
            let flags = |terminal: &Terminal| {
                let Terminal { priority, ignored, reserved, memory, max_tokens, .. } = *terminal;
                (priority, ignored, reserved, memory, max_tokens)
            };
            if (name(a), &a.kind, flags(a)) != (name(b), &b.kind, flags(b)) {
                return Some(format!("terminal {at}: {a:?} and {b:?}"));
            }
        }
        for (at, (a, b)) in self.nonterminals.iter().zip(&other.nonterminals).enumerate() {
            if a.name != b.name {
                return Some(format!("nonterminal {at}: {:?} and {:?}", a.name, b.name));
            }
        }
        for (at, (a, b)) in self.rules.iter().zip(&other.rules).enumerate() {
            if a != b {
                return Some(format!("rule {at}: {a:?} and {b:?}"));
            }
        }
        for (at, (a, b)) in self.automata.iter().zip(&other.automata).enumerate() {
            if a != b {
                return Some(format!("automaton {at}: {a:?} and {b:?}"));
            }
        }
        let counts = |grammar: &Self| {
            let (start, lexer) = (grammar.start, grammar.default_lexer);
            let rules = (grammar.rules.len(), grammar.automata.len());
            (grammar.terminals.len(), grammar.nonterminals.len(), rules, start, lexer)
        };
        let (a, b) = (counts(self), counts(other));
        if a != b {
            return Some(format!("numbers of symbols and rules, start, lexer: {a:?} and {b:?}"));
        }
        self.difference_of_pieces(other)
    }

    /// The name of a symbol in the grammar's own words.
    pub fn symbol_name(&self, symbol: Symbol) -> &str {
        match symbol {
            Symbol::Terminal(t) => &self.terminals[t.index()].name,
            Symbol::Nonterminal(n) => &self.nonterminals[n.index()].name,
        }
    }

    /// Checks the invariants and says which one is broken.
    pub fn validate(&self) -> Result<(), String> {
        let nonterminal = |n: NonterminalId| n.index() < self.nonterminals.len();
        if !nonterminal(self.start) {
            return Err(format!("start {} of {} nonterminals", self.start.0, self.nonterminals.len()));
        }
        let in_range = |lhs: NonterminalId, symbols: &[Symbol]| {
            nonterminal(lhs)
                && symbols.iter().all(|&symbol| match symbol {
                    Symbol::Terminal(t) => t.index() < self.terminals.len(),
                    Symbol::Nonterminal(n) => nonterminal(n),
                })
        };
        for (at, rule) in self.rules.iter().enumerate() {
            if !in_range(rule.lhs, &rule.rhs) {
                return Err(format!("rule {at} names a symbol that does not exist: {rule:?}"));
            }
        }
        for (at, AutomatonRule { lhs, automaton, symbols }) in self.automata.iter().enumerate() {
            let last = automaton.symbols(automaton.start()).last().copied();
            if !in_range(*lhs, symbols) || last.is_some_and(|last| last as usize >= symbols.len()) {
                return Err(format!("automaton {at} names a symbol that does not exist"));
            }
        }
        if !self.automata.is_sorted_by_key(|rule| rule.lhs) {
            return Err("the automata are not in the order of their left sides".to_owned());
        }
        if !self.rules.is_sorted_by_key(|rule| rule.lhs) {
            return Err("the rules are not in the order of their left sides".to_owned());
        }
        self.validate_names()?;
        self.validate_order()?;
        self.terminals.iter().try_for_each(|terminal| {
            let kind = match &terminal.kind {
                TerminalKind::Literal(pattern) if crate::print::literal_text(pattern).is_none() => {
                    Err("a literal that is no text".to_owned())
                }
                TerminalKind::Literal(pattern) | TerminalKind::Pattern(pattern) => pattern.validate(),
                TerminalKind::Special(SpecialToken::Name(name)) if !is_token_name(name) => {
                    Err(format!("no name of a token: {name:?}"))
                }
                TerminalKind::Special(SpecialToken::Except(tokens))
                    if tokens.iter().any(|token| matches!(token, SpecialToken::Except(_))) =>
                {
                    Err("all tokens but all tokens but some".to_owned())
                }
                TerminalKind::Special(_) => Ok(()),
                &TerminalKind::Automaton { automaton, .. } if automaton >= self.pieces.len() => {
                    Err(format!("automaton {automaton} of {}", self.pieces.len()))
                }
                TerminalKind::Automaton { .. } => Ok(()),
            };
            let is_counted = terminal.max_tokens.is_some();
            let kind = match is_counted && (terminal.kind.is_token() || terminal.ignored || terminal.reserved)
            {
                true => Err("a bound on the tokens of what is one token, ignored or reserved".to_owned()),
                false => kind,
            };
            kind.map_err(|message| format!("terminal {}: {message}", terminal.name))
        })
    }

    fn validate_names(&self) -> Result<(), String> {
        let mut names = HashSet::new();
        for nonterminal in &self.nonterminals {
            if !names.insert(&nonterminal.name) {
                return Err(format!("two nonterminals are called {:?}", nonterminal.name));
            }
        }
        let (mut names, mut alike) = (HashSet::new(), HashSet::new());
        for terminal in &self.terminals {
            if terminal.declared && !names.insert(&terminal.name) {
                return Err(format!("two terminals are called {:?}", terminal.name));
            }
            let key = (terminal.kind.to_string(), terminal.priority, terminal.memory, terminal.max_tokens);
            if !terminal.declared && !alike.insert(key) {
                return Err(format!("two terminals without a declaration match {}", terminal.name));
            }
        }
        Ok(())
    }

    /// Checks that terminals are numbered as [`Grammar::new`] does it.
    fn validate_order(&self) -> Result<(), String> {
        let mut next = self.terminals.iter().take_while(|terminal| terminal.declared).count();
        let mut named = vec![false; self.terminals.len()];
        for symbol in self.right_sides() {
            let Symbol::Terminal(terminal) = symbol else { continue };
            named[terminal.index()] = true;
            match terminal.index().cmp(&next) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => next += 1,
                std::cmp::Ordering::Greater => {
                    return Err(format!("terminal {next} is used after terminal {}", terminal.0));
                }
            }
        }
        for (at, terminal) in self.terminals.iter().enumerate() {
            if terminal.declared && at >= next {
                return Err(format!("terminal {at} is declared, but comes after one that is not"));
            }
            if !(named[at] || terminal.ignored || terminal.reserved) {
                return Err(format!("terminal {at} has no use"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nullable_whatever_parts_match_nothing() {
        let nullable = |source: &str| Pattern::Regex(regex_syntax::parse(source).unwrap()).is_nullable();
        for source in [
            "",
            "a*",
            "a|",
            "(a?b{0,3})+",
            "[a&&b]*",
            "a|[a&&b]*",
            "(x|[a&&b]?)(y|[a&&b]{0,2})",
            "(a|[a&&b])*",
        ] {
            assert!(nullable(source), "{source}");
        }
        for source in ["a", "a+", "a|b", "a*b", "[a&&b]", "[a&&b]+", "[a&&b]*a", "a|[a&&b]", "(a*[a&&b]){2}"]
        {
            assert!(!nullable(source), "{source}");
        }
    }

    #[test]
    fn a_new_grammar_is_in_order() {
        let terminal = |name: &str, declared, text: &str, ignored| {
            let kind = TerminalKind::Literal(Pattern::literal(text.as_bytes()));
            let (name, reserved, span) = (name.to_owned(), false, None);
            let (priority, memory, max_tokens) = (0, None, None);
            Terminal { name, declared, kind, priority, ignored, reserved, span, memory, max_tokens }
        };
        let names = ["\" \"", "B", "\"y\"", "\"x\"", "UNUSED", "A", "\"\\x79\""];
        let texts = [" ", "b", "y", "x", "u", "a", "y"];
        let declared = |name: &str| !name.starts_with('"');
        let terminals =
            names.iter().zip(texts).map(|(name, text)| terminal(name, declared(name), text, text == " "));
        let nonterminals = ["b", "start"].map(|name| Nonterminal { name: name.to_owned(), span: None });
        let t = |at| Symbol::Terminal(TerminalId::new(at));
        let (b, start) = (NonterminalId::new(0), NonterminalId::new(1));
        let rules = vec![
            Rule { lhs: start, rhs: vec![t(6), t(1)] },
            Rule { lhs: b, rhs: vec![t(3)] },
            Rule { lhs: start, rhs: vec![t(2), t(5)] },
        ];
        let grammar =
            Grammar::new(terminals.collect(), nonterminals.into(), rules, start, LexerMode::Contextual);
        grammar.validate().unwrap();
        let found: Vec<&str> = grammar.terminals.iter().map(|terminal| terminal.name.as_str()).collect();
        assert_eq!(found, ["B", "A", "\"x\"", "\"y\"", "\" \""]);
        let sides: Vec<_> = grammar.rules.iter().map(|rule| (rule.lhs, rule.rhs.clone())).collect();
        assert_eq!(sides, [(b, vec![t(2)]), (start, vec![t(3), t(0)]), (start, vec![t(3), t(1)])]);
        assert_eq!(grammar.difference(&grammar.clone()), None);
        let other = Grammar { default_lexer: LexerMode::Longest, ..grammar.clone() };
        assert!(grammar.difference(&other).is_some());
    }

    #[test]
    fn literals_fold_case_as_unicode_does() {
        assert_eq!(literal("a1", false), Hir::literal(*b"a1"));
        let expected =
            regex_syntax::ParserBuilder::new().case_insensitive(true).build().parse("kä1").unwrap();
        assert_eq!(literal("kä1", true), expected);
        assert_eq!(literal("", true), Hir::empty());
    }

    #[test]
    fn nullable_without_recursion() {
        let mut deep = regex_syntax::parse("[a&&b]*").unwrap();
        for _ in 0..20_000 {
            deep = Hir::alternation(vec![Hir::literal(*b"xy"), Hir::concat(vec![deep, Hir::literal(*b"a")])]);
        }
        assert!(!is_hir_nullable(&deep));
    }
}
