//! From forms to a grammar: a nonterminal for each set that has a value, automata for strings, numbers,
//! objects and arrays.

mod indent;
mod words;

use std::sync::{Arc, Mutex};

use anygram_grammar::automata::{PieceAutomaton, Pieces, RuleAutomaton};
use anygram_grammar::ir::{
    AutomatonRule, Grammar, LexerMode, Nonterminal, NonterminalId, Pattern, Rule, Symbol, Terminal,
    TerminalId, TerminalKind,
};
use rustc_hash::FxHashMap;

use crate::algebra::Algebra;
use crate::atoms::{Numbers, SetId};
use crate::chars::Chars;
use crate::forms::{ArrayForm, Form, Forms, ObjectForm};
use crate::lower::indent::{NonEmpty, TooDeep};
use crate::numbers::NumberPieces;
use crate::pieces::{Escapes, StringPieces};
use crate::refusal::{Kind, Refusal};
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
    Regex(String),
    /// A label of an automaton, by numbers.
    Automaton(usize, u32),
}

/// The parts of a grammar.
#[derive(Debug)]
pub struct Lowered {
    /// The automata of terminals.
    pub pieces: Vec<Arc<dyn PieceAutomaton>>,
    /// The terminals: names, and what they match.
    pub terminals: Vec<(String, Source)>,
    /// The names of the nonterminals.
    pub nonterminals: Vec<String>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// Right-hand sides by automata.
    pub automata: Vec<(NonterminalId, Arc<dyn RuleAutomaton>, Vec<Symbol>)>,
    /// Where derivations begin.
    pub start: NonterminalId,
}

impl Lowered {
    /// The grammar that these are the parts of.
    pub fn into_grammar(self) -> Result<Grammar, Refusal> {
        let mut terminals = Vec::with_capacity(self.terminals.len());
        for (name, source) in self.terminals {
            let kind = match source {
                Source::Regex(expression) => TerminalKind::Pattern(Pattern::Regex(
                    regex_syntax::parse(&expression)
                        .map_err(|error| Refusal::new(Kind::Limit, "", error.to_string()))?,
                )),
                Source::Automaton(automaton, label) => TerminalKind::Automaton { automaton, label },
            };
            let (declared, priority, ignored, reserved, span) = (false, 0, false, false, None);
            terminals.push(Terminal { name, declared, kind, priority, ignored, reserved, span });
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
        Ok(grammar.with_pieces(self.pieces.into_iter().map(Pieces).collect(), true))
    }
}

/// The terminals that all schemas share, in this order.
#[derive(Clone, Copy)]
enum Fixed {
    OpenObject,
    CloseEmptyObject,
    CloseObject,
    OpenArray,
    CloseEmptyArray,
    CloseArray,
    Comma,
    Colon,
    Blank,
    True,
    False,
    Null,
}

impl Whitespace {
    /// The expressions of the shared terminals, and their names.
    fn fixed(self) -> Vec<(&'static str, String)> {
        let (blank, behind) = match self {
            Self::Any => (r"[ \t\n\r]*".to_owned(), r"[ \t\n\r]*".to_owned()),
            Self::AtMost(n) => (format!(r"[ \t\n\r]{{0,{n}}}"), format!(r"[ \t\n\r]{{0,{n}}}")),
            Self::Compact => (String::new(), String::new()),
            Self::Spaced | Self::Indent(_) => (String::new(), " ".to_owned()),
        };
        let inner = if matches!(self, Self::Spaced | Self::Indent(_)) { "" } else { &behind };
        vec![
            ("`{`", format!(r"\{{{inner}")),
            ("`}`", r"\}".to_owned()),
            ("`}`", format!(r"{blank}\}}")),
            ("`[`", format!(r"\[{inner}")),
            ("`]`", r"\]".to_owned()),
            ("`]`", format!(r"{blank}\]")),
            ("`,`", format!("{blank},{behind}")),
            ("`:`", format!("{blank}:{behind}")),
            ("blanks", if blank.is_empty() { "[a&&b]".to_owned() } else { blank }),
            ("`true`", "true".to_owned()),
            ("`false`", "false".to_owned()),
            ("`null`", "null".to_owned()),
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
        return Err(Refusal::new(Kind::Unsatisfiable, &algebra.pointer(forms.root), message));
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
            start: NonterminalId(0),
        },
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
    for (name, expression) in whitespace.fixed() {
        lowering.out.terminals.push((name.to_owned(), Source::Regex(expression)));
    }
    lowering.start(root, whitespace);
    while let Some((set, depth)) = lowering.agenda.pop() {
        let lhs = lowering.values[&(set, depth)];
        for form in &sets[&set] {
            lowering.alternative(lhs, (set, depth), form);
        }
    }
    Ok(lowering.out)
}

struct Lowering {
    out: Lowered,
    chars: Arc<Mutex<Chars>>,
    alive: Alive,
    names: FxHashMap<SetId, String>,
    /// By set and depth; without indentation all depths are 0.
    values: FxHashMap<(SetId, u32), NonterminalId>,
    objects: FxHashMap<(ObjectForm, u32), NonterminalId>,
    arrays: FxHashMap<(ArrayForm, u32), NonterminalId>,
    /// The terminals of the keys of objects.
    keys: FxHashMap<ObjectForm, Vec<TerminalId>>,
    texts: FxHashMap<Text, TerminalId>,
    numbers: FxHashMap<Numbers, TerminalId>,
    agenda: Vec<(SetId, u32)>,
    /// The terminals that depend on the depth, by depth.
    levels: Vec<[TerminalId; 5]>,
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
    fn nonterminal(&mut self, name: String) -> NonterminalId {
        let id = NonterminalId::new(self.out.nonterminals.len());
        self.out.nonterminals.push(name);
        id
    }

    fn start(&mut self, root: SetId, whitespace: Whitespace) {
        let start = self.nonterminal("start".to_owned());
        let value = Symbol::Nonterminal(self.value(root, 0));
        let blank = Symbol::Terminal(TerminalId::new(Fixed::Blank as usize));
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

    /// The nonterminal of a set that has a value.
    fn value(&mut self, set: SetId, depth: u32) -> NonterminalId {
        if let Some(&known) = self.values.get(&(set, depth)) {
            return known;
        }
        let pointer = self.names.get(&set).map_or("", |pointer| pointer);
        let name = format!("value {} of #{pointer}{}", set.0, at_depth(depth));
        let id = self.nonterminal(name);
        self.values.insert((set, depth), id);
        self.agenda.push((set, depth));
        id
    }

    fn alternative(&mut self, lhs: NonterminalId, (set, depth): (SetId, u32), form: &Form) {
        match form {
            Form::Null => self.rule(lhs, vec![fixed(Fixed::Null)]),
            Form::Bool(falsehood, truth) => {
                if *falsehood {
                    self.rule(lhs, vec![fixed(Fixed::False)]);
                }
                if *truth {
                    self.rule(lhs, vec![fixed(Fixed::True)]);
                }
            }
            Form::Number(numbers) => {
                let terminal = self.number(numbers, set);
                self.rule(lhs, vec![Symbol::Terminal(terminal)]);
            }
            Form::Text(text) => {
                let terminal = self.text(*text, set);
                self.rule(lhs, vec![Symbol::Terminal(terminal)]);
            }
            Form::Object(form) => {
                let alive = self.alive.clone();
                if form.can_end(&|set| alive.contains(&set), &form.start()) {
                    self.object(lhs, form, (set, depth));
                }
            }
            Form::Array(form) => {
                let alive = self.alive.clone();
                if form.least(&|set| alive.contains(&set), &form.start()).is_some() {
                    self.array(lhs, form, (set, depth));
                }
            }
        }
    }

    fn terminal(&mut self, name: String, source: Source) -> TerminalId {
        self.out.terminals.push((name, source));
        TerminalId::new(self.out.terminals.len() - 1)
    }

    fn number(&mut self, numbers: &Numbers, set: SetId) -> TerminalId {
        if let Some(&known) = self.numbers.get(numbers) {
            return known;
        }
        let name = words::number(numbers, &self.names[&set]);
        self.out.pieces.push(Arc::new(NumberPieces::new(numbers, self.limit)));
        let terminal = self.terminal(name, Source::Automaton(self.out.pieces.len() - 1, 0));
        self.numbers.insert(numbers.clone(), terminal);
        terminal
    }

    fn text(&mut self, text: Text, set: SetId) -> TerminalId {
        if let Some(&known) = self.texts.get(&text) {
            return known;
        }
        let name = words::string(text, &self.names[&set]);
        let pieces =
            StringPieces::new(self.chars.clone(), vec![text], name.clone(), (self.escapes, self.limit));
        self.out.pieces.push(Arc::new(pieces));
        let terminal = self.terminal(name, Source::Automaton(self.out.pieces.len() - 1, 0));
        self.texts.insert(text, terminal);
        terminal
    }

    /// Adds an object to the alternatives of a value.
    fn object(&mut self, value: NonterminalId, form: &ObjectForm, (set, depth): (SetId, u32)) {
        if self.indent.is_some() && form.is_whole(&form.start()) {
            self.rule(value, vec![fixed(Fixed::OpenObject), fixed(Fixed::CloseEmptyObject)]);
        }
        let at = (form.clone(), depth);
        if let Some(&known) = self.objects.get(&at) {
            return self.rule(value, vec![Symbol::Nonterminal(known)]);
        }
        let name = format!("object {} of #{}{}", self.objects.len(), self.names[&set], at_depth(depth));
        let keys = self.keys(form, &self.names[&set].clone());
        let rules = ObjectRules::new(form.clone(), self.alive.clone(), name.clone(), self.limit);
        let parts = rules.parts();
        let Some(automaton) = self.nested(Arc::new(rules), depth) else { return };
        let lhs = self.nonterminal(name);
        self.objects.insert(at, lhs);
        self.rule(value, vec![Symbol::Nonterminal(lhs)]);
        let symbol = |this: &mut Self, part| match part {
            Part::Open => this.between(Fixed::OpenObject, depth),
            Part::CloseEmpty => fixed(Fixed::CloseEmptyObject),
            Part::Close => this.between(Fixed::CloseObject, depth),
            Part::Comma => this.between(Fixed::Comma, depth),
            Part::Colon => fixed(Fixed::Colon),
            Part::Key(key) => Symbol::Terminal(keys[key as usize]),
            Part::Value(set) => this.below(set, depth),
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
            texts,
            format!("the keys of #{pointer}"),
            (self.escapes, self.limit),
        );
        self.out.pieces.push(Arc::new(pieces));
        let automaton = self.out.pieces.len() - 1;
        let keys: Vec<TerminalId> = (0..)
            .zip(names)
            .map(|(label, name)| self.terminal(name, Source::Automaton(automaton, label)))
            .collect();
        self.keys.insert(form.clone(), keys.clone());
        keys
    }

    /// Adds an array to the alternatives of a value.
    fn array(&mut self, value: NonterminalId, form: &ArrayForm, (set, depth): (SetId, u32)) {
        if self.indent.is_some() && form.is_whole(&form.start()) {
            self.rule(value, vec![fixed(Fixed::OpenArray), fixed(Fixed::CloseEmptyArray)]);
        }
        let at = (form.clone(), depth);
        if let Some(&known) = self.arrays.get(&at) {
            return self.rule(value, vec![Symbol::Nonterminal(known)]);
        }
        let name = format!("array {} of #{}{}", self.arrays.len(), self.names[&set], at_depth(depth));
        let rules = ArrayRules::new(form.clone(), self.alive.clone(), name.clone(), self.limit);
        let parts = rules.parts();
        let Some(automaton) = self.nested(Arc::new(rules), depth) else { return };
        let lhs = self.nonterminal(name);
        self.arrays.insert(at, lhs);
        self.rule(value, vec![Symbol::Nonterminal(lhs)]);
        let symbol = |this: &mut Self, part| match part {
            Part::Open => this.between(Fixed::OpenArray, depth),
            Part::CloseEmpty => fixed(Fixed::CloseEmptyArray),
            Part::Close => this.between(Fixed::CloseArray, depth),
            Part::Comma | Part::Colon | Part::Key(_) => this.between(Fixed::Comma, depth),
            Part::Value(set) => this.below(set, depth),
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

    /// A value within an object or array at a depth.
    fn below(&mut self, set: SetId, depth: u32) -> Symbol {
        let depth = match self.indent {
            None => 0,
            // Nothing comes behind the bracket that is too deep.
            Some(indent) if depth >= indent.max_depth => depth,
            Some(_) => depth + 1,
        };
        Symbol::Nonterminal(self.value(set, depth))
    }

    /// A bracket or comma of an object or array at a depth, with what stands around it.
    fn between(&mut self, part: Fixed, depth: u32) -> Symbol {
        let Some(indent) = self.indent else { return fixed(part) };
        while self.levels.len() <= depth as usize {
            let outer = self.levels.len() as u32 * indent.blanks;
            let inner = outer + indent.blanks;
            let level = [
                ("`{`", format!(r"\{{\n {{{inner}}}")),
                ("`}`", format!(r"\n {{{outer}}}\}}")),
                ("`[`", format!(r"\[\n {{{inner}}}")),
                ("`]`", format!(r"\n {{{outer}}}\]")),
                ("`,`", format!(r",\n {{{inner}}}")),
            ];
            let level = level.map(|(name, text)| self.terminal(name.to_owned(), Source::Regex(text)));
            self.levels.push(level);
        }
        let at = match part {
            Fixed::OpenObject => 0,
            Fixed::CloseObject => 1,
            Fixed::OpenArray => 2,
            Fixed::CloseArray => 3,
            _ => 4,
        };
        Symbol::Terminal(self.levels[depth as usize][at])
    }
}

fn fixed(fixed: Fixed) -> Symbol {
    Symbol::Terminal(TerminalId::new(fixed as usize))
}

/// What names say of a depth.
fn at_depth(depth: u32) -> String {
    if depth == 0 { String::new() } else { format!(" at depth {depth}") }
}
