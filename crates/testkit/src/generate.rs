//! Random grammars, vocabularies and texts, each drawn from a seed and printed so that a failure can be
//! replayed.
//!
//! [`RandomCase::new`] is a pure function of its seed. Grammars are small (one to five nonterminals and
//! terminals) over a tiny alphabet, so that everything collides: terminals overlap, match the empty string,
//! split characters, have priorities, are ignored; rules are recursive on all sides, cyclic, nullable,
//! ambiguous or useless. The language is never empty. Texts are derived from the grammar, with ignored pieces
//! between, and then sometimes spoiled.
//!
//! Changing a generator changes what every seed means: a seed worth keeping becomes a file in
//! `testdata/cases`.

use std::collections::BTreeSet;
use std::fmt;

use anygram_grammar::ir::{Grammar, LexerMode, NonterminalId, Pattern, Symbol, Terminal, TerminalKind, Ties};

use crate::build::{Build, regex};
use crate::matcher;
use crate::oracle::Oracle;
use crate::random::Random;
use crate::text::{Sym, Text, Vocab, show, text_of};

/// The id of the end-of-sequence token in every random vocabulary.
pub const EOS: u32 = 0;
/// The id of the special token that random grammars name now and then.
pub const CALL: u32 = 1;

/// The longest text that is drawn, in symbols.
const MAX_TEXT: usize = 12;

/// A random question for an engine: a grammar, a way of reading it, a vocabulary and texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RandomCase {
    /// What draws the same case again.
    pub seed: u64,
    /// Whether it was drawn by [`RandomCase::with_blanks`].
    pub has_blanks: bool,
    /// The grammar; its language is not empty.
    pub grammar: Grammar,
    /// The lexer mode.
    pub mode: LexerMode,
    /// What to do with several labels.
    pub ties: Ties,
    /// Every byte that the grammar is about, and the token [`CALL`] if the grammar names it: enough to
    /// complete most texts; for all, see [`Oracle::whole_alphabet`].
    pub alphabet: Vec<Sym>,
    /// The tokens: [`EOS`], [`CALL`], every single byte of the alphabet and one more, and some longer ones.
    pub vocab: Vec<Option<Vec<u8>>>,
    /// Texts, many of them sentences.
    pub texts: Vec<Vec<Sym>>,
    /// Beginnings of texts, many of them viable.
    pub prefixes: Vec<Vec<Sym>>,
    /// Rows of tokens, whose texts are among `texts`.
    pub tokens: Vec<Vec<u32>>,
}

impl RandomCase {
    /// The case of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mode = *random.choose(&[LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual]);
        let ties = if random.chance(75) { Ties::All } else { Ties::First };
        let units = units(&mut random);
        let grammar = grammar(&mut random, &units, any_grammar);
        Self::of(seed, random, mode, ties, units, grammar)
    }

    /// A case of which blanks are ignored and terminals begin with blanks, so that a longer terminal takes
    /// them together with what was to come behind them.
    pub fn with_blanks(seed: u64, mode: LexerMode) -> Self {
        let mut random = Random::new(seed);
        let ties = if random.chance(75) { Ties::All } else { Ties::First };
        let units = vec!['a', 'b', ' '];
        let grammar = grammar(&mut random, &units, blank_grammar);
        Self { has_blanks: true, ..Self::of(seed, random, mode, ties, units, grammar) }
    }

    fn of(
        seed: u64,
        mut random: Random,
        mode: LexerMode,
        ties: Ties,
        units: Vec<char>,
        grammar: Grammar,
    ) -> Self {
        let pieces: Vec<Vec<Vec<Sym>>> =
            grammar.terminals.iter().map(|terminal| members(terminal, &units)).collect();
        let texts: Vec<_> = (0..8).map(|_| text(&mut random, &grammar, &pieces, &units)).collect();
        let prefixes = texts.iter().map(|text| text[..random.between(0, text.len())].to_vec()).collect();
        let vocab = vocab(&mut random, &units, &texts);
        let tokens = texts.iter().map(|text| tokenize(&mut random, &vocab, text)).collect();
        let mut alphabet = bytes(&units).into_iter().collect::<Vec<u8>>().symbols();
        if grammar.terminals.iter().any(|terminal| matches!(terminal.kind, TerminalKind::Special(_))) {
            alphabet.push(Sym::Token(CALL));
        }
        Self { seed, has_blanks: false, grammar, mode, ties, alphabet, vocab, texts, prefixes, tokens }
    }

    /// The case of a seed, read in a given mode.
    pub fn in_mode(seed: u64, mode: LexerMode) -> Self {
        Self { mode, ..Self::new(seed) }
    }

    /// The texts without special tokens.
    pub fn byte_texts(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.texts.iter().filter_map(|text| crate::text::bytes_of(text))
    }

    /// The meaning of the case.
    pub fn oracle(&self) -> Oracle {
        Oracle::new(&self.grammar, self.mode, self.ties)
    }
}

impl fmt::Display for RandomCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let draw = if self.has_blanks { "with_blanks" } else { "new" };
        writeln!(f, "RandomCase::{draw}({}), {:?}, ties {:?}", self.seed, self.mode, self.ties)?;
        write!(f, "{}", show_grammar(&self.grammar))?;
        for (id, token) in self.vocab.iter().enumerate() {
            match token {
                Some(bytes) => write!(f, "{id}: {}  ", show(&bytes.symbols()))?,
                None => write!(f, "{id}: special  ")?,
            }
        }
        writeln!(f)?;
        self.texts
            .iter()
            .zip(&self.tokens)
            .try_for_each(|(text, tokens)| writeln!(f, "{} {tokens:?}", show(text)))
    }
}

/// Prints a grammar in the manner of Lark, one line per rule and terminal.
pub fn show_grammar(grammar: &Grammar) -> impl fmt::Display + '_ {
    ShowGrammar(grammar)
}

struct ShowGrammar<'a>(&'a Grammar);

impl fmt::Display for ShowGrammar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(grammar) = self;
        writeln!(f, "start symbol {}", grammar.symbol_name(Symbol::Nonterminal(grammar.start)))?;
        for rule in &grammar.rules {
            write!(f, "{}:", grammar.symbol_name(Symbol::Nonterminal(rule.lhs)))?;
            rule.rhs.iter().try_for_each(|&symbol| write!(f, " {}", grammar.symbol_name(symbol)))?;
            writeln!(f)?;
        }
        for terminal in &grammar.terminals {
            let Terminal { name, kind, priority, ignored, reserved, .. } = terminal;
            write!(f, "{name}.{priority}: ")?;
            match kind {
                TerminalKind::Literal(pattern) => write!(f, "literal {}", ShowPattern(pattern))?,
                TerminalKind::Pattern(pattern) => write!(f, "{}", ShowPattern(pattern))?,
                TerminalKind::Special(token) => write!(f, "{token}")?,
                TerminalKind::Automaton { .. } => write!(f, "{kind}")?,
            }
            let (ignored, reserved) =
                (if *ignored { "   %ignore" } else { "" }, if *reserved { "   %reserve" } else { "" });
            writeln!(f, "{ignored}{reserved}")?;
        }
        Ok(())
    }
}

struct ShowPattern<'a>(&'a Pattern);

impl fmt::Display for ShowPattern<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Pattern], between: &str| {
            write!(f, "(")?;
            for (at, part) in parts.iter().enumerate() {
                write!(f, "{}{}", if at == 0 { "" } else { between }, ShowPattern(part))?;
            }
            write!(f, ")")
        };
        match self.0 {
            Pattern::Regex(hir) => write!(f, "/{hir}/"),
            Pattern::Concat(parts) => list(f, parts, " "),
            Pattern::Alternate(parts) => list(f, parts, " | "),
            Pattern::Repeat { inner, min, max: Some(max) } => {
                write!(f, "{}{{{min},{max}}}", ShowPattern(inner))
            }
            Pattern::Repeat { inner, min, max: None } => write!(f, "{}{{{min},}}", ShowPattern(inner)),
            Pattern::And(parts) => list(f, parts, " & "),
            Pattern::Not(inner) => write!(f, "~{}", ShowPattern(inner)),
        }
    }
}

/// The grammar of a seed and some texts derived from it, each of at most `2 * MAX_TEXT` symbols: sentences,
/// whatever an oracle makes of them.
pub fn derived_texts(seed: u64) -> (Grammar, Vec<Vec<Sym>>) {
    let mut random = Random::new(seed);
    let units = units(&mut random);
    let grammar = grammar(&mut random, &units, any_grammar);
    let pieces: Vec<_> = grammar.terminals.iter().map(|terminal| members(terminal, &units)).collect();
    let derived = (0..5).filter_map(|_| {
        let mut text = Vec::new();
        derive(&mut random, &grammar, &pieces, grammar.start, &mut 20, &mut text)?;
        (text.len() <= 2 * MAX_TEXT).then_some(text)
    });
    let texts = derived.collect();
    (grammar, texts)
}

/// The characters that a case is about.
fn units(random: &mut Random) -> Vec<char> {
    let mut units = vec!['a', 'b'];
    let others = ['(', ')', ' ', '1', '.', 'é', 'è', '本'];
    for _ in 0..random.between(0, 3) {
        let unit = *random.choose(&others);
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    units
}

fn bytes(units: &[char]) -> BTreeSet<u8> {
    units.iter().flat_map(|unit| unit.to_string().into_bytes()).collect()
}

fn grammar(random: &mut Random, units: &[char], draw: fn(&mut Random, &[char]) -> Grammar) -> Grammar {
    loop {
        let grammar = draw(random, units);
        if !Oracle::new(&grammar, LexerMode::Scannerless, Ties::All).is_empty_language() {
            return grammar;
        }
    }
}

fn any_grammar(random: &mut Random, units: &[char]) -> Grammar {
    let mut build = Build::new();
    let mut names = Vec::new();
    for at in 0..random.between(1, 5) {
        let name = format!("T{at}");
        build = build.terminal(&name, terminal_kind(random, units));
        if random.chance(20) {
            build = build.priority(*random.choose(&[-1, 1, 2]));
        }
        if random.chance(5) {
            build = build.ignored();
        }
        names.push(name);
    }
    if random.chance(30) {
        let source = *random.choose(&[" ", " +", "[ .]+", "b", r"\((?s:.)*?\)", " *"]);
        build = build.pattern("SKIP", source).ignored();
        if random.chance(30) {
            names.push("SKIP".to_owned());
        }
    }
    if random.chance(12) {
        let source = format!("[{}{}]+", random.choose(units), random.choose(units));
        build = build.pattern("WORD", &source).reserved();
        if random.chance(60) {
            build = build.priority(-1);
        }
        if random.chance(20) {
            names.push("WORD".to_owned());
        }
    }
    if random.chance(8) {
        build = build.special("CALL", CALL);
        names.push("CALL".to_owned());
    }
    let nonterminals = &["start", "n1", "n2", "n3", "n4"][..random.between(1, 5)];
    for lhs in nonterminals {
        for _ in 0..random.between(1, 3) {
            build = build.rule(lhs, &right_side(random, nonterminals, &names));
        }
    }
    build.grammar()
}

fn blank_grammar(random: &mut Random, _: &[char]) -> Grammar {
    let mut build = Build::new();
    let sources: [&str; 13] =
        ["a", "b", "ab", "[ab]+", "a+", " a", " b", " ?ab?", "( ?b)? a", " +b", " +[ab]", "(b +)?a", "b a"];
    let names: Vec<String> = (0..random.between(2, 5)).map(|at| format!("T{at}")).collect();
    for name in &names {
        let source = *random.choose(&sources);
        build = build.pattern(name, source);
    }
    let source = if random.chance(50) { " " } else { " +" };
    build = build.pattern("SKIP", source).ignored();
    let nonterminals = &["start", "n1", "n2"][..random.between(1, 3)];
    for lhs in nonterminals {
        for _ in 0..random.between(1, 3) {
            build = build.rule(lhs, &right_side(random, nonterminals, &names));
        }
    }
    build.grammar()
}

fn right_side(random: &mut Random, nonterminals: &[&str], terminals: &[String]) -> String {
    let length = *random.choose(&[0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    let mut symbols = Vec::new();
    for _ in 0..length {
        symbols.push(if random.chance(40) {
            *random.choose(nonterminals)
        } else {
            random.choose(terminals).as_str()
        });
    }
    symbols.join(" ")
}

fn terminal_kind(random: &mut Random, units: &[char]) -> TerminalKind {
    let x = escaped(*random.choose(units));
    let y = escaped(*random.choose(units));
    let z = escaped(*random.choose(units));
    if random.chance(35) {
        let source = [x, y, z][..*random.choose(&[1, 1, 1, 2, 2, 3])].concat();
        return TerminalKind::Literal(regex(&source));
    }
    let source = match random.below(18) {
        0 => format!("[{x}{y}]"),
        1 | 2 => format!("[{x}{y}]+"),
        3 | 4 => format!("{x}+"),
        5 => format!("{x}*"),
        6 => format!("({x}{y})*"),
        7 => format!("{x}?{y}"),
        8 => format!("{x}|{x}{y}"),
        9 => format!("{x}({y}{z})?"),
        10 => format!("{x}[{y}{z}]*?{y}"),
        11 => format!("{x}{{1,2}}"),
        12 => format!("[^{x}]"),
        13 => format!("{x}[^{y}]*{y}"),
        14 => format!(r"(?-u:\x{:02X})", random.choose(&Vec::from_iter(bytes(units)))),
        15 => format!(r"(?-u:[\x80-\xFF])+|{x}"),
        16 => return TerminalKind::Pattern(Pattern::Not(Box::new(regex(&format!("{x}*|.*{y}.*"))))),
        _ => {
            let both = vec![regex(&format!("[{x}{y}]+")), Pattern::Not(Box::new(regex(&format!("{z}+"))))];
            return TerminalKind::Pattern(Pattern::And(both));
        }
    };
    TerminalKind::Pattern(regex(&source))
}

fn escaped(unit: char) -> String {
    regex_syntax::escape(&unit.to_string())
}

/// Some members of a terminal: all that consist of at most three units or bytes of units.
fn members(terminal: &Terminal, units: &[char]) -> Vec<Vec<Sym>> {
    let pattern = match &terminal.kind {
        TerminalKind::Literal(pattern) | TerminalKind::Pattern(pattern) => pattern,
        TerminalKind::Special(_) => return vec![vec![Sym::Token(CALL)]],
        TerminalKind::Automaton { .. } => return Vec::new(),
    };
    let mut parts: BTreeSet<Vec<u8>> = units.iter().map(|unit| unit.to_string().into_bytes()).collect();
    parts.extend(bytes(units).into_iter().map(|byte| vec![byte]));
    let mut all = BTreeSet::from([vec![]]);
    for _ in 0..3 {
        let longer =
            all.iter().flat_map(|text: &Vec<u8>| parts.iter().map(|part| [&text[..], part].concat()));
        all = longer.chain(all.iter().cloned()).collect();
    }
    all.iter().filter(|text| matcher::matches(pattern, text)).map(|text| text.symbols()).collect()
}

/// A text derived from the grammar if that goes well, and spoiled now and then.
fn text(random: &mut Random, grammar: &Grammar, pieces: &[Vec<Vec<Sym>>], units: &[char]) -> Vec<Sym> {
    let derived = (0..20).filter_map(|_| {
        let mut text = Vec::new();
        let mut steps = 40;
        derive(random, grammar, pieces, grammar.start, &mut steps, &mut text)?;
        (text.len() <= MAX_TEXT).then_some(text)
    });
    // The longest of a few: the empty text is rarely the most interesting one.
    let mut text = derived.take(3).max_by_key(Vec::len).unwrap_or_default();
    if random.chance(35) {
        let at = random.between(0, text.len());
        let new = Sym::Byte(*random.choose(&Vec::from_iter(bytes(units))));
        match random.below(3) {
            0 if at < text.len() => _ = text.remove(at),
            1 if at < text.len() => text[at] = new,
            _ => text.insert(at, new),
        }
    }
    text
}

/// Appends what a random derivation of `lhs` yields; gives up when it takes too many steps.
fn derive(
    random: &mut Random,
    grammar: &Grammar,
    pieces: &[Vec<Vec<Sym>>],
    lhs: NonterminalId,
    steps: &mut usize,
    text: &mut Vec<Sym>,
) -> Option<()> {
    *steps = steps.checked_sub(1)?;
    let rules: Vec<_> = grammar.rules.iter().filter(|rule| rule.lhs == lhs).collect();
    for &symbol in &random.choose(&(!rules.is_empty()).then_some(rules)?).rhs {
        match symbol {
            Symbol::Nonterminal(a) => derive(random, grammar, pieces, a, steps, text)?,
            Symbol::Terminal(t) => {
                if random.chance(30) {
                    let ignored = |t: &usize| grammar.terminals[*t].ignored && !pieces[*t].is_empty();
                    let ignored: Vec<usize> = (0..pieces.len()).filter(ignored).collect();
                    ignored.first().inspect(|&&t| text.extend(random.choose(&pieces[t])));
                }
                let members = &pieces[t.index()];
                text.extend(random.choose((!members.is_empty()).then_some(members)?));
            }
        }
    }
    Some(())
}

fn vocab(random: &mut Random, units: &[char], texts: &[Vec<Sym>]) -> Vec<Option<Vec<u8>>> {
    let mut vocab = vec![None, None];
    vocab.extend(bytes(units).into_iter().chain([b'~']).map(|byte| Some(vec![byte])));
    let parts: Vec<u8> = bytes(units).into_iter().collect();
    for _ in 0..random.between(5, 15) {
        let text = random.choose(texts);
        let start = random.between(0, text.len());
        let end = text.len().min(start + random.between(2, 5));
        let drawn = crate::text::bytes_of(&text[start..end]).filter(|bytes| !bytes.is_empty());
        vocab.push(Some(match drawn {
            Some(bytes) if random.chance(70) => bytes,
            _ => (0..random.between(2, 4)).map(|_| *random.choose(&parts)).collect(),
        }));
    }
    if random.chance(30) {
        vocab.push(random.choose(&vocab[2..]).clone());
    }
    if random.chance(20) {
        vocab.push(None);
    }
    vocab
}

/// Some row of tokens with this text.
///
/// # Panics
/// If a byte of the text is no token.
pub fn tokenize(random: &mut Random, vocab: &Vocab, text: &[Sym]) -> Vec<u32> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let begins = |&token: &u32| {
            rest.starts_with(&text_of(vocab, &[token])) && vocab[token as usize] != Some(vec![])
        };
        let candidates: Vec<u32> = (0..vocab.len() as u32).filter(begins).collect();
        let token = *random.choose(&candidates);
        rest = &rest[text_of(vocab, &[token]).len()..];
        tokens.push(token);
    }
    tokens
}
