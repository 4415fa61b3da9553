//! From forms to a grammar: a nonterminal for each set that has a value, automata for strings, numbers,
//! objects and arrays.

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
}

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
            Self::Spaced => (String::new(), " ".to_owned()),
        };
        let inner = if self == Self::Spaced { "" } else { &behind };
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
    (escapes, limit): (Escapes, usize),
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
        texts: FxHashMap::default(),
        numbers: FxHashMap::default(),
        agenda: Vec::new(),
        escapes,
        limit,
    };
    for (name, expression) in whitespace.fixed() {
        lowering.out.terminals.push((name.to_owned(), Source::Regex(expression)));
    }
    lowering.start(root, whitespace);
    while let Some(set) = lowering.agenda.pop() {
        let lhs = lowering.values[&set];
        for form in &sets[&set] {
            lowering.alternative(lhs, set, form);
        }
    }
    Ok(lowering.out)
}

struct Lowering {
    out: Lowered,
    chars: Arc<Mutex<Chars>>,
    alive: Alive,
    names: FxHashMap<SetId, String>,
    values: FxHashMap<SetId, NonterminalId>,
    objects: FxHashMap<ObjectForm, NonterminalId>,
    arrays: FxHashMap<ArrayForm, NonterminalId>,
    texts: FxHashMap<Text, TerminalId>,
    numbers: FxHashMap<Numbers, TerminalId>,
    agenda: Vec<SetId>,
    escapes: Escapes,
    limit: usize,
}

impl Lowering {
    fn nonterminal(&mut self, name: String) -> NonterminalId {
        let id = NonterminalId::new(self.out.nonterminals.len());
        self.out.nonterminals.push(name);
        id
    }

    fn start(&mut self, root: SetId, whitespace: Whitespace) {
        let start = self.nonterminal("start".to_owned());
        let value = Symbol::Nonterminal(self.value(root));
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
    fn value(&mut self, set: SetId) -> NonterminalId {
        if let Some(&known) = self.values.get(&set) {
            return known;
        }
        let pointer = self.names.get(&set).map_or("", |pointer| pointer);
        let name = format!("value {} of #{pointer}", set.0);
        let id = self.nonterminal(name);
        self.values.insert(set, id);
        self.agenda.push(set);
        id
    }

    fn alternative(&mut self, lhs: NonterminalId, set: SetId, form: &Form) {
        let fixed = |fixed: Fixed| Symbol::Terminal(TerminalId::new(fixed as usize));
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
                    let object = self.object(form, set);
                    self.rule(lhs, vec![Symbol::Nonterminal(object)]);
                }
            }
            Form::Array(form) => {
                let alive = self.alive.clone();
                if form.least(&|set| alive.contains(&set), &form.start()).is_some() {
                    let array = self.array(form, set);
                    self.rule(lhs, vec![Symbol::Nonterminal(array)]);
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
        let name = format!("number of #{}", self.names[&set]);
        self.out.pieces.push(Arc::new(NumberPieces::new(numbers, self.limit)));
        let terminal = self.terminal(name, Source::Automaton(self.out.pieces.len() - 1, 0));
        self.numbers.insert(numbers.clone(), terminal);
        terminal
    }

    fn text(&mut self, text: Text, set: SetId) -> TerminalId {
        if let Some(&known) = self.texts.get(&text) {
            return known;
        }
        let name = format!("string of #{}", self.names[&set]);
        let pieces =
            StringPieces::new(self.chars.clone(), vec![text], name.clone(), (self.escapes, self.limit));
        self.out.pieces.push(Arc::new(pieces));
        let terminal = self.terminal(name, Source::Automaton(self.out.pieces.len() - 1, 0));
        self.texts.insert(text, terminal);
        terminal
    }

    fn object(&mut self, form: &ObjectForm, set: SetId) -> NonterminalId {
        if let Some(&known) = self.objects.get(form) {
            return known;
        }
        let name = format!("object {} of #{}", self.objects.len(), self.names[&set]);
        let lhs = self.nonterminal(name.clone());
        self.objects.insert(form.clone(), lhs);
        let keys = self.keys(form, &name);
        let rules = ObjectRules::new(form.clone(), self.alive.clone(), name, self.limit);
        let symbols = rules.parts().into_iter().map(|part| self.object_symbol(part, &keys)).collect();
        self.out.automata.push((lhs, Arc::new(rules), symbols));
        lhs
    }

    fn object_symbol(&mut self, part: Part, keys: &[TerminalId]) -> Symbol {
        let fixed = |fixed: Fixed| Symbol::Terminal(TerminalId::new(fixed as usize));
        match part {
            Part::Open => fixed(Fixed::OpenObject),
            Part::CloseEmpty => fixed(Fixed::CloseEmptyObject),
            Part::Close => fixed(Fixed::CloseObject),
            Part::Comma => fixed(Fixed::Comma),
            Part::Colon => fixed(Fixed::Colon),
            Part::Key(key) => Symbol::Terminal(keys[key as usize]),
            Part::Value(set) => Symbol::Nonterminal(self.value(set)),
        }
    }

    /// A terminal for each key and class of keys of an object.
    fn keys(&mut self, form: &ObjectForm, name: &str) -> Vec<TerminalId> {
        let mut chars = self.chars.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut texts: Vec<Text> = Vec::with_capacity(form.variants.len());
        for (key, _) in &form.keys {
            texts.push(Text { formula: chars.words([&**key]), min: 0, max: u64::MAX });
        }
        texts.extend(form.classes.iter().map(|&formula| Text { formula, min: 0, max: u64::MAX }));
        drop(chars);
        let names = form.keys.iter().map(|(key, _)| format!("{key:?}"));
        let others = form.classes.iter().map(|_| format!("other key of {name}"));
        let names: Vec<String> = names.chain(others).collect();
        let pieces = StringPieces::new(
            self.chars.clone(),
            texts,
            format!("keys of {name}"),
            (self.escapes, self.limit),
        );
        self.out.pieces.push(Arc::new(pieces));
        let automaton = self.out.pieces.len() - 1;
        (0..)
            .zip(names)
            .map(|(label, name)| self.terminal(name, Source::Automaton(automaton, label)))
            .collect()
    }

    fn array(&mut self, form: &ArrayForm, set: SetId) -> NonterminalId {
        if let Some(&known) = self.arrays.get(form) {
            return known;
        }
        let name = format!("array {} of #{}", self.arrays.len(), self.names[&set]);
        let lhs = self.nonterminal(name.clone());
        self.arrays.insert(form.clone(), lhs);
        let rules = ArrayRules::new(form.clone(), self.alive.clone(), name, self.limit);
        let fixed = |fixed: Fixed| Symbol::Terminal(TerminalId::new(fixed as usize));
        let symbol = |part| match part {
            Part::Open => fixed(Fixed::OpenArray),
            Part::CloseEmpty => fixed(Fixed::CloseEmptyArray),
            Part::Close => fixed(Fixed::CloseArray),
            Part::Comma | Part::Colon | Part::Key(_) => fixed(Fixed::Comma),
            Part::Value(set) => Symbol::Nonterminal(self.value(set)),
        };
        let symbols = rules.parts().into_iter().map(symbol).collect();
        self.out.automata.push((lhs, Arc::new(rules), symbols));
        lhs
    }
}
