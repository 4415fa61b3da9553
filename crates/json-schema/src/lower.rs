//! From forms to a grammar: a nonterminal for each set that has a value, automata for strings, numbers,
//! objects and arrays.

mod indent;
mod words;

use std::sync::{Arc, Mutex};

use anygram_grammar::automata::{PieceAutomaton, Pieces, RuleAutomaton};
use anygram_grammar::ir::{
    AutomatonRule, Grammar, Hints, LexerMode, Nonterminal, NonterminalId, Pattern, Rule, Symbol, Terminal,
    TerminalId, TerminalKind,
};
use anygram_grammar::memory::{Remembered, Remembers, Role};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, Repetition};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::algebra::Algebra;
use crate::atoms::{Numbers, SetId};
use crate::chars::Chars;
use crate::forms::{ArrayForm, Form, Forms, ObjectForm};
use crate::lower::indent::{NonEmpty, TooDeep};
use crate::memory::{JsonMemory, Kind};
use crate::numbers::NumberPieces;
use crate::pieces::{Escapes, StringPieces};
use crate::refusal::{self, Refusal};
use crate::rules::{Alive, ArrayRules, ObjectRules, Part};
use crate::strings::Text;

/// What may stand between the parts of a JSON text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Whitespace {
    /// Any.
    #[default]
    Any,
    /// At most so many characters at a place.
    AtMost(u32),
    /// None.
    Compact,
    /// One blank behind commas and colons.
    Spaced,
    /// Each member and item on a line of its own, behind so many blanks a level, as Python's
    /// `json.dumps(indent=n)` writes it. At most [`MAX_INDENT`].
    Indent(u32),
}

/// The largest `n` of [`Whitespace::Indent`].
pub const MAX_INDENT: u32 = 16;

/// What a terminal matches.
#[derive(Clone, Debug)]
pub enum Source {
    /// A regular expression.
    Regex(Hir),
    /// A label of an automaton, by numbers.
    Automaton(usize, u32),
}

/// The parts of a grammar.
#[derive(Debug)]
pub struct Lowered {
    /// The automata of terminals.
    pub pieces: Vec<Arc<dyn PieceAutomaton>>,
    /// The terminals: names, what they match, and what the memory remembers of them.
    pub terminals: Vec<(String, Source, Option<Remembered>)>,
    /// The names of the nonterminals.
    pub nonterminals: Vec<String>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// Right-hand sides by automata.
    pub automata: Vec<(NonterminalId, Arc<dyn RuleAutomaton>, Vec<Symbol>)>,
    /// The terminals that open an object or array.
    pub openings: Vec<TerminalId>,
    /// Where derivations begin.
    pub start: NonterminalId,
    /// What keeps keys and items from being repeated, where automata cannot.
    pub memory: Option<JsonMemory>,
    /// Of each nonterminal the JSON pointer of the schema that it is for.
    pub places: Vec<String>,
    /// The same of each automaton of terminals.
    pub piece_places: Vec<String>,
}

impl Lowered {
    /// The grammar of these parts within another one, where each value is remembered by itself.
    pub fn into_embedded(mut self) -> Grammar {
        let Some(memory) = self.memory.take() else { return self.into_grammar() };
        let value = Some(0);
        for (.., remembered) in &mut self.terminals {
            *remembered = remembered.map(|remembered| Remembered { value, ..remembered });
        }
        for &terminal in &self.openings {
            self.terminals[terminal.index()].2 = Some(Remembered { value, role: Role::Opens });
        }
        self.into_grammar().with_embedded(vec![Remembers(Arc::new(memory.embedded()))])
    }

    /// The grammar that these are the parts of.
    pub fn into_grammar(self) -> Grammar {
        let mut terminals = Vec::with_capacity(self.terminals.len());
        for (name, source, memory) in self.terminals {
            let kind = match source {
                Source::Regex(expression) => TerminalKind::Pattern(Pattern::Regex(expression)),
                Source::Automaton(automaton, label) => TerminalKind::Automaton { automaton, label },
            };
            terminals.push(Terminal { memory, ..Terminal::new(name, kind) });
        }
        let nonterminals =
            self.nonterminals.into_iter().map(|name| Nonterminal { name, span: None }).collect();
        let automata = self.automata.into_iter().map(|(lhs, automaton, symbols)| AutomatonRule {
            lhs,
            automaton,
            symbols: symbols.into(),
        });
        let rules = (self.rules, automata.collect());
        let grammar =
            Grammar::with_automata(terminals, nonterminals, rules, self.start, LexerMode::Scannerless);
        let grammar = grammar.with_pieces(self.pieces.into_iter().map(Pieces).collect(), true);
        let hints = Hints { schema: Some(String::new()), ..Hints::default() };
        let grammar = grammar.with_hints(vec![(self.start, hints)]);
        match self.memory {
            Some(memory) => grammar.with_memory(Remembers(Arc::new(memory))),
            None => grammar,
        }
    }
}

/// The terminals that all schemas share, in this order.
#[derive(Clone, Copy)]
enum Fixed {
    OpenObject,
    OpenArray,
    Comma,
    Colon,
    Blank,
    CloseEmptyObject,
    CloseObject,
    CloseEmptyArray,
    CloseArray,
    True,
    False,
    Null,
}

impl Fixed {
    const N: usize = Self::Null as usize + 1;

    /// The terminal, or its twin of which no piece may be repeated.
    fn symbol(self, is_distinct: bool) -> Symbol {
        let at = self as usize;
        let at = if is_distinct { at - Self::CloseEmptyObject as usize + Self::N } else { at };
        Symbol::Terminal(TerminalId::new(at))
    }
}

/// The expression of a text.
fn literal(text: &str) -> Hir {
    Hir::literal(text.as_bytes())
}

impl Whitespace {
    /// What the shared terminals match, and their names.
    fn fixed(self) -> Vec<(&'static str, Hir)> {
        let blanks = |most| {
            let class = [' ', '\t', '\n', '\r'].map(|blank| ClassUnicodeRange::new(blank, blank));
            let sub = Box::new(Hir::class(Class::Unicode(ClassUnicode::new(class))));
            Hir::repetition(Repetition { min: 0, max: most, greedy: true, sub })
        };
        let (blank, behind) = match self {
            Self::Any => (blanks(None), blanks(None)),
            Self::AtMost(n) => (blanks(Some(n)), blanks(Some(n))),
            Self::Compact => (Hir::empty(), Hir::empty()),
            Self::Spaced | Self::Indent(_) => (Hir::empty(), literal(" ")),
        };
        let is_spaced = matches!(self, Self::Spaced | Self::Indent(_));
        let inner = || if is_spaced { Hir::empty() } else { behind.clone() };
        let between = |text| Hir::concat(vec![blank.clone(), literal(text), behind.clone()]);
        vec![
            ("`{`", Hir::concat(vec![literal("{"), inner()])),
            ("`[`", Hir::concat(vec![literal("["), inner()])),
            ("`,`", between(",")),
            ("`:`", between(":")),
            ("blanks", if self.has_blanks() { blank.clone() } else { Hir::fail() }),
            ("`}`", literal("}")),
            ("`}`", Hir::concat(vec![blank.clone(), literal("}")])),
            ("`]`", literal("]")),
            ("`]`", Hir::concat(vec![blank.clone(), literal("]")])),
            ("`true`", literal("true")),
            ("`false`", literal("false")),
            ("`null`", literal("null")),
        ]
    }

    fn has_blanks(self) -> bool {
        matches!(self, Self::Any | Self::AtMost(1..))
    }
}

/// Lowers the forms of an algebra.
pub fn lower(
    algebra: Algebra<'_>,
    forms: Forms,
    whitespace: Whitespace,
    (escapes, limit, max_depth): (Escapes, usize, u32),
) -> Result<Lowered, Refusal> {
    if !forms.alive.contains(&forms.root) {
        let message = "no value is valid: what it asks for contradicts itself";
        return Err(Refusal::new(refusal::Kind::Unsatisfiable, &algebra.pointer(forms.root), message));
    }
    let names: FxHashMap<SetId, String> =
        forms.alive.iter().map(|&set| (set, algebra.pointer(set))).collect();
    let chars = Arc::new(Mutex::new(algebra.strings.chars));
    let Forms { root, sets, alive } = forms;
    let mut lowering = Lowering {
        out: Lowered {
            pieces: Vec::new(),
            terminals: Vec::new(),
            nonterminals: Vec::new(),
            rules: Vec::new(),
            automata: Vec::new(),
            openings: [Fixed::OpenObject, Fixed::OpenArray].map(|open| TerminalId::new(open as usize)).into(),
            start: NonterminalId(0),
            memory: None,
            places: Vec::new(),
            piece_places: Vec::new(),
        },
        kinds: Kinds::new(&sets, &alive),
        chars,
        alive: Arc::new(alive),
        names,
        values: FxHashMap::default(),
        objects: FxHashMap::default(),
        arrays: FxHashMap::default(),
        keys: FxHashMap::default(),
        texts: FxHashMap::default(),
        numbers: FxHashMap::default(),
        agenda: Vec::new(),
        levels: Vec::new(),
        indent: match whitespace {
            Whitespace::Indent(blanks) => Some(Indent { blanks, max_depth }),
            _ => None,
        },
        escapes,
        limit,
    };
    lowering.fixed(whitespace);
    lowering.start(root, whitespace);
    while let Some((set, spot)) = lowering.agenda.pop() {
        let lhs = lowering.values[&(set, spot)];
        for form in &sets[&set] {
            lowering.alternative(lhs, (set, spot), form);
        }
    }
    let Lowering { mut out, kinds, chars, .. } = lowering;
    if kinds.is_needed {
        out.memory = Some(JsonMemory::new(chars, kinds.all, (kinds.holds_items, escapes)));
    }
    Ok(out)
}

/// Where a value stands, as far as its rules depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
struct Spot {
    /// How many objects and arrays are around it; without indentation 0.
    depth: u32,
    /// Whether it may not be repeated.
    is_distinct: bool,
}

/// What terminals remember.
struct Kinds {
    all: Vec<Kind>,
    numbers: FxHashMap<Kind, u32>,
    /// Whether items of some array have to differ, and its automaton cannot tell all of them apart.
    holds_items: bool,
    /// Whether something must not be repeated that only the memory knows of.
    is_needed: bool,
}

impl Kinds {
    fn new(sets: &FxHashMap<SetId, Vec<Form>>, alive: &FxHashSet<SetId>) -> Self {
        let is_open = |form: &Form| match form {
            Form::Array(form) => form.is_open(alive),
            _ => false,
        };
        let mut reached = sets.iter().filter(|(set, _)| alive.contains(set));
        let holds_items = reached.any(|(_, forms)| forms.iter().any(is_open));
        Self { all: Vec::new(), numbers: FxHashMap::default(), holds_items, is_needed: false }
    }

    fn number(&mut self, kind: Kind, is_distinct: bool) -> Option<Remembered> {
        if !is_distinct && !self.holds_items {
            return None;
        }
        self.is_needed |= is_distinct;
        let fresh = self.all.len() as u32;
        let kind = *self.numbers.entry(kind).or_insert_with_key(|kind| {
            self.all.push(kind.clone());
            fresh
        });
        Some(Remembered { value: None, role: Role::Piece { kind, is_distinct } })
    }
}

struct Lowering {
    out: Lowered,
    chars: Arc<Mutex<Chars>>,
    alive: Alive,
    names: FxHashMap<SetId, String>,
    values: FxHashMap<(SetId, Spot), NonterminalId>,
    objects: FxHashMap<(ObjectForm, Spot), NonterminalId>,
    arrays: FxHashMap<(ArrayForm, Spot), NonterminalId>,
    /// The terminals of the keys of objects.
    keys: FxHashMap<ObjectForm, Vec<TerminalId>>,
    /// Each with whether no piece may be repeated.
    texts: FxHashMap<(Text, bool), TerminalId>,
    numbers: FxHashMap<(Numbers, bool), TerminalId>,
    agenda: Vec<(SetId, Spot)>,
    kinds: Kinds,
    /// The terminals that depend on the depth, by depth.
    levels: Vec<[TerminalId; 7]>,
    indent: Option<Indent>,
    escapes: Escapes,
    limit: usize,
}

/// Blanks a level, and levels beyond which a text is a limit's error.
#[derive(Clone, Copy)]
struct Indent {
    blanks: u32,
    max_depth: u32,
}

impl Lowering {
    fn nonterminal(&mut self, name: String, pointer: String) -> NonterminalId {
        let id = NonterminalId::new(self.out.nonterminals.len());
        self.out.nonterminals.push(name);
        self.out.places.push(pointer);
        id
    }

    /// The terminals that all schemas share; behind them those of which no piece may be repeated.
    fn fixed(&mut self, whitespace: Whitespace) {
        let fixed = whitespace.fixed();
        let kinds = [Kind::Close, Kind::Close, Kind::Close, Kind::Close];
        let literals = ["true", "false", "null"].map(Kind::Literal);
        let kinds: Vec<Kind> = kinds.into_iter().chain(literals).collect();
        let n_plain = fixed.len() - kinds.len();
        let twins = if self.kinds.holds_items { fixed[n_plain..].to_vec() } else { Vec::new() };
        for (at, (name, expression)) in fixed.into_iter().enumerate() {
            let kind = at.checked_sub(n_plain).map(|at| kinds[at].clone());
            let memory = kind.and_then(|kind| self.kinds.number(kind, false));
            self.terminal(name.to_owned(), Source::Regex(expression), memory);
        }
        for ((name, expression), kind) in twins.into_iter().zip(kinds) {
            let memory = self.kinds.number(kind, true);
            self.terminal(name.to_owned(), Source::Regex(expression), memory);
        }
    }

    fn start(&mut self, root: SetId, whitespace: Whitespace) {
        let start = self.nonterminal("start".to_owned(), String::new());
        let value = Symbol::Nonterminal(self.value(root, Spot::default()));
        let blank = Fixed::Blank.symbol(false);
        self.rule(start, vec![value]);
        if whitespace.has_blanks() {
            self.rule(start, vec![blank, value]);
            self.rule(start, vec![value, blank]);
            self.rule(start, vec![blank, value, blank]);
        }
        self.out.start = start;
    }

    fn rule(&mut self, lhs: NonterminalId, rhs: Vec<Symbol>) {
        self.out.rules.push(Rule { lhs, rhs });
    }

    /// The nonterminal of a set that has a value, at a spot.
    fn value(&mut self, set: SetId, spot: Spot) -> NonterminalId {
        if let Some(&known) = self.values.get(&(set, spot)) {
            return known;
        }
        let pointer = self.names.get(&set).cloned().unwrap_or_default();
        let once = if spot.is_distinct { " once" } else { "" };
        let name = format!("value {} of #{pointer}{}{once}", set.0, at_depth(spot.depth));
        let id = self.nonterminal(name, pointer);
        self.values.insert((set, spot), id);
        self.agenda.push((set, spot));
        id
    }

    fn alternative(&mut self, lhs: NonterminalId, (set, spot): (SetId, Spot), form: &Form) {
        match form {
            Form::Null => self.rule(lhs, vec![Fixed::Null.symbol(spot.is_distinct)]),
            Form::Bool(falsehood, truth) => {
                if *falsehood {
                    self.rule(lhs, vec![Fixed::False.symbol(spot.is_distinct)]);
                }
                if *truth {
                    self.rule(lhs, vec![Fixed::True.symbol(spot.is_distinct)]);
                }
            }
            Form::Number(numbers) => {
                let terminal = self.number((numbers, spot.is_distinct), set);
                self.rule(lhs, vec![Symbol::Terminal(terminal)]);
            }
            Form::Text(text) => {
                let terminal = self.text((*text, spot.is_distinct), set);
                self.rule(lhs, vec![Symbol::Terminal(terminal)]);
            }
            Form::Object(form) => {
                let alive = self.alive.clone();
                if form.can_end(&|set| alive.contains(&set), &form.start()) {
                    self.object(lhs, form, (set, spot));
                }
            }
            Form::Array(form) => {
                let alive = self.alive.clone();
                if form.least(&|set| alive.contains(&set), &form.start()).is_some() {
                    self.array(lhs, form, (set, spot));
                }
            }
        }
    }

    fn terminal(&mut self, name: String, source: Source, memory: Option<Remembered>) -> TerminalId {
        self.out.terminals.push((name, source, memory));
        TerminalId::new(self.out.terminals.len() - 1)
    }

    fn number(&mut self, (numbers, is_distinct): (&Numbers, bool), set: SetId) -> TerminalId {
        let key = (numbers.clone(), is_distinct);
        if let Some(&known) = self.numbers.get(&key) {
            return known;
        }
        let name = words::number(numbers, &self.names[&set]);
        self.out.pieces.push(Arc::new(NumberPieces::new(numbers, self.limit)));
        self.out.piece_places.push(self.names[&set].clone());
        let memory = self.kinds.number(Kind::Number(numbers.clone()), is_distinct);
        let source = Source::Automaton(self.out.pieces.len() - 1, 0);
        let terminal = self.terminal(name, source, memory);
        self.numbers.insert(key, terminal);
        terminal
    }

    fn text(&mut self, (text, is_distinct): (Text, bool), set: SetId) -> TerminalId {
        if let Some(&known) = self.texts.get(&(text, is_distinct)) {
            return known;
        }
        let name = words::string(text, &self.names[&set]);
        let pieces =
            StringPieces::new(self.chars.clone(), vec![text], name.clone(), (self.escapes, self.limit));
        self.out.pieces.push(Arc::new(pieces));
        self.out.piece_places.push(self.names[&set].clone());
        let memory = self.kinds.number(Kind::Text(text), is_distinct);
        let source = Source::Automaton(self.out.pieces.len() - 1, 0);
        let terminal = self.terminal(name, source, memory);
        self.texts.insert((text, is_distinct), terminal);
        terminal
    }

    /// Adds an object to the alternatives of a value.
    fn object(&mut self, value: NonterminalId, form: &ObjectForm, (set, spot): (SetId, Spot)) {
        if self.indent.is_some() && form.is_whole(&form.start()) {
            let close = Fixed::CloseEmptyObject.symbol(spot.is_distinct);
            self.rule(value, vec![Fixed::OpenObject.symbol(false), close]);
        }
        let at = (form.clone(), spot);
        if let Some(&known) = self.objects.get(&at) {
            return self.rule(value, vec![Symbol::Nonterminal(known)]);
        }
        let name = format!("object {} of #{}{}", self.objects.len(), self.names[&set], at_depth(spot.depth));
        let keys = self.keys(form, &self.names[&set].clone());
        let rules = ObjectRules::new(form.clone(), self.alive.clone(), name.clone(), self.limit);
        let parts = rules.parts();
        let Some(automaton) = self.nested(Arc::new(rules), spot.depth) else { return };
        let lhs = self.nonterminal(name, self.names[&set].clone());
        self.objects.insert(at, lhs);
        self.rule(value, vec![Symbol::Nonterminal(lhs)]);
        let symbol = |this: &mut Self, part| match part {
            Part::Open => this.between(Fixed::OpenObject, spot),
            Part::CloseEmpty => Fixed::CloseEmptyObject.symbol(spot.is_distinct),
            Part::Close => this.between(Fixed::CloseObject, spot),
            Part::Comma => this.between(Fixed::Comma, spot),
            Part::Colon => Fixed::Colon.symbol(false),
            Part::Key(key) => Symbol::Terminal(keys[key as usize]),
            Part::Value(set) => this.below(set, (spot.depth, false)),
        };
        let symbols = parts.into_iter().map(|part| symbol(self, part)).collect();
        self.out.automata.push((lhs, automaton, symbols));
    }

    /// A terminal for each key and class of keys of an object.
    fn keys(&mut self, form: &ObjectForm, pointer: &str) -> Vec<TerminalId> {
        if let Some(known) = self.keys.get(form) {
            return known.clone();
        }
        let mut chars = self.chars.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut texts: Vec<Text> = Vec::with_capacity(form.variants.len());
        for (key, _) in &form.keys {
            texts.push(Text { formula: chars.words([&**key]), min: 0, max: u64::MAX });
        }
        texts.extend(form.classes.iter().map(|&formula| Text { formula, min: 0, max: u64::MAX }));
        drop(chars);
        let names = form.keys.iter().map(|(key, _)| format!("{key:?}"));
        let others = form.classes.iter().map(|_| format!("another key of #{pointer}"));
        let names: Vec<String> = names.chain(others).collect();
        let pieces = StringPieces::new(
            self.chars.clone(),
            texts.clone(),
            format!("the keys of #{pointer}"),
            (self.escapes, self.limit),
        );
        self.out.pieces.push(Arc::new(pieces));
        self.out.piece_places.push(pointer.to_owned());
        let automaton = self.out.pieces.len() - 1;
        let mut keys = Vec::with_capacity(names.len());
        for (label, (name, text)) in names.into_iter().zip(texts).enumerate() {
            // The automaton of the object knows the keys that it lists.
            let memory = self.kinds.number(Kind::Text(text), label >= form.keys.len());
            keys.push(self.terminal(name, Source::Automaton(automaton, label as u32), memory));
        }
        self.keys.insert(form.clone(), keys.clone());
        keys
    }

    /// Adds an array to the alternatives of a value.
    fn array(&mut self, value: NonterminalId, form: &ArrayForm, (set, spot): (SetId, Spot)) {
        if self.indent.is_some() && form.is_whole(&form.start()) {
            let close = Fixed::CloseEmptyArray.symbol(spot.is_distinct);
            self.rule(value, vec![Fixed::OpenArray.symbol(false), close]);
        }
        let at = (form.clone(), spot);
        if let Some(&known) = self.arrays.get(&at) {
            return self.rule(value, vec![Symbol::Nonterminal(known)]);
        }
        let name = format!("array {} of #{}{}", self.arrays.len(), self.names[&set], at_depth(spot.depth));
        let rules = ArrayRules::new(form.clone(), self.alive.clone(), name.clone(), self.limit);
        let parts = rules.parts();
        let Some(automaton) = self.nested(Arc::new(rules), spot.depth) else { return };
        let lhs = self.nonterminal(name, self.names[&set].clone());
        self.arrays.insert(at, lhs);
        self.rule(value, vec![Symbol::Nonterminal(lhs)]);
        let symbol = |this: &mut Self, part| match part {
            Part::Open => this.between(Fixed::OpenArray, spot),
            Part::CloseEmpty => Fixed::CloseEmptyArray.symbol(spot.is_distinct),
            Part::Close => this.between(Fixed::CloseArray, spot),
            Part::Comma | Part::Colon | Part::Key(_) => this.between(Fixed::Comma, spot),
            Part::Value(set) => this.below(set, (spot.depth, form.must_differ(set))),
        };
        let symbols = parts.into_iter().map(|part| symbol(self, part)).collect();
        self.out.automata.push((lhs, automaton, symbols));
    }

    /// An object or array as it stands at a depth. With indentation the empty one is a rule of its own, and
    /// `None` if there is no other.
    fn nested(&self, rules: Arc<dyn RuleAutomaton>, depth: u32) -> Option<Arc<dyn RuleAutomaton>> {
        let Some(indent) = self.indent else { return Some(rules) };
        let rules = NonEmpty::new(rules)?;
        match depth < indent.max_depth {
            true => Some(Arc::new(rules)),
            false => Some(Arc::new(TooDeep(indent.max_depth))),
        }
    }

    /// A value within an object or array at a depth; whether it may not be repeated.
    fn below(&mut self, set: SetId, (depth, is_distinct): (u32, bool)) -> Symbol {
        let depth = match self.indent {
            None => 0,
            // Nothing comes behind the bracket that is too deep.
            Some(indent) if depth >= indent.max_depth => depth,
            Some(_) => depth + 1,
        };
        Symbol::Nonterminal(self.value(set, Spot { depth, is_distinct }))
    }

    /// A bracket or comma of an object or array, with what stands around it.
    fn between(&mut self, part: Fixed, spot: Spot) -> Symbol {
        let is_close = matches!(part, Fixed::CloseObject | Fixed::CloseArray);
        let is_distinct = spot.is_distinct && is_close;
        let Some(indent) = self.indent else { return part.symbol(is_distinct) };
        while self.levels.len() <= spot.depth as usize {
            let outer = self.levels.len() as u32 * indent.blanks;
            let inner = outer + indent.blanks;
            let line = |n: u32| format!("\n{}", " ".repeat(n as usize));
            let close_object = ("`}`", line(outer) + "}");
            let close_array = ("`]`", line(outer) + "]");
            let level = [
                (("`{`", "{".to_owned() + &line(inner)), None),
                (("`[`", "[".to_owned() + &line(inner)), None),
                (("`,`", ",".to_owned() + &line(inner)), None),
                (close_object.clone(), Some(false)),
                (close_array.clone(), Some(false)),
                (close_object, Some(true)),
                (close_array, Some(true)),
            ];
            let level = level.map(|((name, text), is_distinct)| {
                let is_distinct = is_distinct.filter(|_| self.kinds.holds_items);
                let memory = is_distinct.and_then(|distinct| self.kinds.number(Kind::Close, distinct));
                self.terminal(name.to_owned(), Source::Regex(literal(&text)), memory)
            });
            self.out.openings.extend(&level[..2]);
            self.levels.push(level);
        }
        let at = match (part, is_distinct) {
            (Fixed::OpenObject, _) => 0,
            (Fixed::OpenArray, _) => 1,
            (Fixed::CloseObject, false) => 3,
            (Fixed::CloseArray, false) => 4,
            (Fixed::CloseObject, true) => 5,
            (Fixed::CloseArray, true) => 6,
            _ => 2,
        };
        Symbol::Terminal(self.levels[spot.depth as usize][at])
    }
}

/// What names say of a depth.
fn at_depth(depth: u32) -> String {
    if depth == 0 { String::new() } else { format!(" at depth {depth}") }
}
