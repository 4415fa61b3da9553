//! Tree to grammar.
//!
//! In three passes, each linear in the file but for what terminals copy from one another (which the budget pays): collect the
//! names; build the patterns of terminals, those that others are made of first; rewrite the rules. Only terminals that a rule names or
//! that are ignored come out, in the order of their declaration or first use.

use std::collections::HashMap;

use super::ast::{Expansions, File, Item, Name, NodeId, NodeKind};
use super::pattern::{Composer, Key, Piece, library_piece, range_piece, regex_piece, text_piece};
use super::{LarkOptions, common};
use crate::diagnostic::{ErrorKind, GrammarError, closest};
use crate::expand::{Alternatives, Budget, Expander, Place};
use crate::ir::{
    Grammar, LexerMode, Nonterminal, NonterminalId, Span, SpecialToken, Symbol, Terminal, TerminalId, TerminalKind,
};

type Result<T> = std::result::Result<T, GrammarError>;

/// Lowers a parsed file.
pub(crate) fn lower(source: &str, file: &File<'_>, options: &LarkOptions) -> Result<Grammar> {
    let mut lowering = Lowering {
        source,
        file,
        budget: Budget::new(options.max_size),
        rules: Vec::new(),
        rule_names: HashMap::new(),
        terminals: Vec::new(),
        terminal_names: HashMap::new(),
        literals: HashMap::new(),
        specials: HashMap::new(),
    };
    lowering.collect()?;
    lowering.compose_all()?;
    let start = lowering.start(options.start.as_deref().unwrap_or("start"))?;
    let expander = lowering.lower_rules()?;
    lowering.ignore_all()?;
    Ok(lowering.finish(expander, start))
}

/// Where a terminal's pattern comes from.
enum Definition<'f> {
    Body(&'f Expansions),
    Library(&'static str),
    Anonymous,
}

/// What a terminal matches, once that is known.
enum Content {
    Unknown,
    Pattern(Piece),
    Special(SpecialToken),
}

/// A terminal; its position in `terminals` is its id until those without a use are left out.
struct Entry<'f> {
    name: String,
    priority: i32,
    definition: Definition<'f>,
    content: Content,
    span: Option<Span>,
    /// Where it is declared or first used.
    position: usize,
    named: bool,
    ignored: bool,
}

struct RuleEntry<'f, 's> {
    name: &'f Name<'s>,
    body: &'f Expansions,
}

struct Lowering<'f, 's> {
    source: &'s str,
    file: &'f File<'s>,
    budget: Budget,
    rules: Vec<RuleEntry<'f, 's>>,
    rule_names: HashMap<&'s str, usize>,
    terminals: Vec<Entry<'f>>,
    terminal_names: HashMap<&'s str, usize>,
    /// The terminals that are one literal; of several declared ones the last.
    literals: HashMap<Key, usize>,
    specials: HashMap<SpecialToken, usize>,
}

impl<'f, 's> Lowering<'f, 's> {
    // Names.

    fn collect(&mut self) -> Result<()> {
        for item in &self.file.items {
            match item {
                Item::Rule { name, body } => {
                    if let Some(&first) = self.rule_names.get(name.text) {
                        return Err(duplicate(name, &self.rules[first].name.span));
                    }
                    self.rule_names.insert(name.text, self.rules.len());
                    self.rules.push(RuleEntry { name, body });
                }
                Item::Terminal { name, priority, body } => {
                    self.declare(name, *priority, Definition::Body(body), Some(name.span.clone()))?;
                }
                Item::Import { name, alias } => self.import(name, alias.as_ref())?,
                Item::Ignore { .. } => {}
            }
        }
        Ok(())
    }

    fn declare(
        &mut self,
        name: &Name<'s>,
        priority: i32,
        definition: Definition<'f>,
        span: Option<Span>,
    ) -> Result<()> {
        if let Some(&first) = self.terminal_names.get(name.text) {
            let entry = &self.terminals[first];
            return Err(duplicate(name, &(entry.position..entry.position + entry.name.len())));
        }
        self.terminal_names.insert(name.text, self.terminals.len());
        let (position, name) = (name.span.start, name.text.to_owned());
        let content = Content::Unknown;
        self.terminals.push(Entry {
            name,
            priority,
            definition,
            content,
            span,
            position,
            named: false,
            ignored: false,
        });
        Ok(())
    }

    fn import(&mut self, name: &'f Name<'s>, alias: Option<&'f Name<'s>>) -> Result<()> {
        let Some(pattern) = common::find(name.text) else {
            let message = format!("the library `common` has no `{}`", name.text);
            let error = GrammarError::new(ErrorKind::UndefinedSymbol, name.span.clone(), message);
            return Err(match closest(name.text, common::TERMINALS.iter().map(|&(known, _)| known)) {
                Some(near) => error.with_help(format!("did you mean `{near}`?")),
                None => error,
            });
        };
        let local = alias.unwrap_or(name);
        if local.text.bytes().any(|byte| byte.is_ascii_lowercase()) {
            let message = format!("`{}` is a terminal: its name is upper case", name.text);
            return Err(GrammarError::new(ErrorKind::Syntax, local.span.clone(), message));
        }
        if let Some(&known) = self.terminal_names.get(local.text)
            && matches!(self.terminals[known].definition, Definition::Library(same) if same == pattern)
        {
            return Ok(());
        }
        self.declare(local, 0, Definition::Library(pattern), None)
    }

    fn undefined(&self, name: &str, span: &Span) -> GrammarError {
        let message = format!("`{name}` is not defined");
        let error = GrammarError::new(ErrorKind::UndefinedSymbol, span.clone(), message);
        if common::find(name).is_some() {
            return error.with_help(format!("add `%import common.{name}`"));
        }
        let names = self.rule_names.keys().chain(self.terminal_names.keys()).copied();
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        match closest(name, names) {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    fn start(&self, name: &str) -> Result<NonterminalId> {
        if let Some(&start) = self.rule_names.get(name) {
            return Ok(NonterminalId::new(start));
        }
        let message = match self.terminal_names.contains_key(name) {
            true => format!("the start symbol `{name}` is a terminal; it has to be a rule"),
            false => format!("there is no rule `{name}` to start from"),
        };
        let error = GrammarError::new(ErrorKind::MissingStart, 0..0, message);
        const LISTED: usize = 20;
        let names: Vec<&str> = self.rules.iter().take(LISTED).map(|rule| rule.name.text).collect();
        let more = if self.rules.len() > LISTED { ", …" } else { "" };
        Err(match closest(name, self.rules.iter().map(|rule| rule.name.text)) {
            _ if names.is_empty() => error.with_help(format!("the file has no rules; write `{name}: …`")),
            Some(near) => error.with_help(format!("did you mean `{near}`? the rules are {}{more}", names.join(", "))),
            None => error.with_help(format!("name another start; the rules are {}{more}", names.join(", "))),
        })
    }

    // Terminals.

    /// Finds the pattern of every declared terminal.
    fn compose_all(&mut self) -> Result<()> {
        let dependencies = self.dependencies()?;
        let n_declared = dependencies.len();
        // Depth first with an explicit stack of terminals and how many of their parts are done.
        let mut open = vec![false; n_declared];
        for root in 0..n_declared {
            let mut stack = vec![(root, 0)];
            while let Some((at, done)) = stack.last_mut() {
                let at = *at;
                if !matches!(self.terminals[at].content, Content::Unknown) {
                    stack.pop();
                } else if let Some((part, span)) = dependencies[at].get(*done) {
                    *done += 1;
                    open[at] = true;
                    if open[*part] {
                        return Err(self.recursive(*part, span, stack.iter().map(|&(at, _)| at)));
                    }
                    stack.push((*part, 0));
                } else {
                    open[at] = false;
                    stack.pop();
                    self.compose(at)?;
                }
            }
        }
        Ok(())
    }

    /// The terminals that each declared one names, with the places.
    fn dependencies(&self) -> Result<Vec<Vec<(usize, Span)>>> {
        let named = |id: NodeId| match self.file.nodes[id].kind {
            NodeKind::Terminal(name) => Some((name, &self.file.nodes[id].span)),
            _ => None,
        };
        let of_entry = |entry: &Entry<'f>| {
            let Definition::Body(body) = entry.definition else { return Ok(Vec::new()) };
            let find = |(name, span): (&'s str, &Span)| match self.terminal_names.get(name) {
                Some(&part) => Ok((part, span.clone())),
                None => Err(self.undefined(name, span)),
            };
            body.nodes.clone().filter_map(named).map(find).collect()
        };
        self.terminals.iter().map(of_entry).collect()
    }

    fn recursive(&self, at: usize, span: &Span, stack: impl Iterator<Item = usize>) -> GrammarError {
        let name = &self.terminals[at].name;
        let through: Vec<String> = stack
            .skip_while(|&other| other != at)
            .skip(1)
            .take(5)
            .map(|at| format!("`{}`", self.terminals[at].name))
            .collect();
        let message = match through.is_empty() {
            true => format!("the terminal `{name}` is defined by itself"),
            false => format!("the terminal `{name}` is defined by itself, through {}", through.join(", ")),
        };
        let position = self.terminals[at].position;
        GrammarError::new(ErrorKind::RecursiveTerminal, span.clone(), message)
            .with_label(position..position + name.len(), "defined here")
            .with_help("repeat with `*` or `+`, or make it a rule (lower case)")
    }

    /// Finds the pattern of one terminal of which all parts are done.
    fn compose(&mut self, at: usize) -> Result<()> {
        let piece = match self.terminals[at].definition {
            Definition::Body(body) => self.pattern(body)?,
            Definition::Library(pattern) => library_piece(pattern),
            Definition::Anonymous => return Ok(()),
        };
        if let Some(key) = &piece.key {
            // As in Lark, a literal in a rule means the last terminal that is defined so.
            let last = self.literals.entry(key.clone()).or_insert(at);
            *last = at.max(*last);
        }
        self.terminals[at].content = Content::Pattern(piece);
        Ok(())
    }

    /// The pattern of an expression, given those of all terminals that it names.
    fn pattern(&mut self, body: &Expansions) -> Result<Piece> {
        let (terminals, names) = (&self.terminals, &self.terminal_names);
        let known = |name: &str| match &terminals[*names.get(name)?].content {
            Content::Pattern(piece) => Some(piece.clone()),
            _ => None,
        };
        let mut composer = Composer { file: self.file, budget: &mut self.budget };
        composer.compose(&body.alternatives, body.nodes.clone(), &body.span, known)
    }

    /// The terminal with this key, perhaps a new one that is named as it is written.
    fn anonymous(&mut self, piece: Piece, span: &Span) -> usize {
        let next = self.terminals.len();
        let at = match piece.key.clone() {
            Some(key) => *self.literals.entry(key).or_insert(next),
            None => next,
        };
        if at == next {
            self.add_anonymous(Content::Pattern(piece), span);
        } else {
            self.seen_at(at, span);
        }
        at
    }

    fn special(&mut self, token: &SpecialToken, span: &Span) -> usize {
        let next = self.terminals.len();
        let at = *self.specials.entry(token.clone()).or_insert(next);
        if at == next {
            self.add_anonymous(Content::Special(token.clone()), span);
        } else {
            self.seen_at(at, span);
        }
        at
    }

    fn add_anonymous(&mut self, content: Content, span: &Span) {
        self.terminals.push(Entry {
            name: self.source[span.clone()].to_owned(),
            priority: 0,
            definition: Definition::Anonymous,
            content,
            span: Some(span.clone()),
            position: span.start,
            named: false,
            ignored: false,
        });
    }

    /// The place of an anonymous terminal is its first use.
    fn seen_at(&mut self, at: usize, span: &Span) {
        let entry = &mut self.terminals[at];
        if matches!(entry.definition, Definition::Anonymous) && span.start < entry.position {
            entry.position = span.start;
            entry.span = Some(span.clone());
        }
    }

    fn ignore_all(&mut self) -> Result<()> {
        for item in &self.file.items {
            let Item::Ignore { body } = item else { continue };
            let at = self.ignored(body)?;
            self.terminals[at].ignored = true;
        }
        Ok(())
    }

    fn ignored(&mut self, body: &Expansions) -> Result<usize> {
        for node in &self.file.nodes[body.nodes.clone()] {
            match node.kind {
                NodeKind::Terminal(name) if !self.terminal_names.contains_key(name) => {
                    return Err(self.undefined(name, &node.span));
                }
                NodeKind::Rule(name) => {
                    let message = format!("`{name}` is a rule; only terminals can be ignored");
                    return Err(GrammarError::new(ErrorKind::Unsupported, node.span.clone(), message)
                        .with_help("make it a terminal (upper case), or put it where it may stand"));
                }
                _ => {}
            }
        }
        if let [sequence] = &body.alternatives[..]
            && let [only] = sequence[..]
            && let NodeKind::Terminal(name) = self.file.nodes[only].kind
        {
            return Ok(self.terminal_names[name]);
        }
        let piece = self.pattern(body)?;
        Ok(self.anonymous(piece, &body.span))
    }

    // Rules.

    fn lower_rules(&mut self) -> Result<Expander> {
        let nonterminal = |name: &Name<'s>| Nonterminal { name: name.text.to_owned(), span: Some(name.span.clone()) };
        let nonterminals = self.rules.iter().map(|rule| nonterminal(rule.name)).collect();
        let mut expander = Expander::new(nonterminals, self.budget.clone());
        for at in 0..self.rules.len() {
            let (name, body) = (self.rules[at].name, self.rules[at].body);
            let mut values = Values { first: body.nodes.start, alternatives: Vec::with_capacity(body.nodes.len()) };
            for id in body.nodes.clone() {
                let value = self.node(id, &mut values, name.text, &mut expander)?;
                values.alternatives.push(Some(value));
            }
            let place = Place { rule: name.text, span: &name.span };
            let alternatives = values.join(&body.alternatives, place, &mut expander)?;
            expander.define(NonterminalId::new(at), alternatives, &name.span)?;
        }
        self.budget = expander.budget.clone();
        Ok(expander)
    }

    fn node(&mut self, id: NodeId, values: &mut Values, rule: &str, expander: &mut Expander) -> Result<Alternatives> {
        let node = &self.file.nodes[id];
        let span = &node.span;
        let place = Place { rule, span };
        let symbol = match &node.kind {
            NodeKind::Rule(name) => match self.rule_names.get(name) {
                Some(&rule) => Symbol::Nonterminal(NonterminalId::new(rule)),
                None => return Err(self.undefined(name, span)),
            },
            NodeKind::Terminal(name) => match self.terminal_names.get(name) {
                Some(&terminal) => self.name(terminal),
                None => return Err(self.undefined(name, span)),
            },
            NodeKind::Special(token) => {
                let terminal = self.special(token, span);
                self.name(terminal)
            }
            NodeKind::Text { raw: "", .. } => return Ok(vec![vec![]]),
            NodeKind::Text { raw, ignore_case } => {
                self.literal(text_piece(raw, *ignore_case, span)?, span, expander)?
            }
            NodeKind::Regex { raw, flags } => self.literal(regex_piece(raw, flags, span)?, span, expander)?,
            NodeKind::Range { from, to } => self.literal(range_piece(from, to, span)?, span, expander)?,
            NodeKind::Group(inner) => return values.join(inner, place, expander),
            NodeKind::Optional(inner) => {
                let inner = values.join(inner, place, expander)?;
                return expander.repeat(inner, 0, Some(1), place);
            }
            NodeKind::Repeat { inner, min, max } => {
                return expander.repeat(values.take(*inner), *min, *max, place);
            }
            NodeKind::And(_) | NodeKind::Not(_) => {
                let operator = if matches!(node.kind, NodeKind::And(_)) { "&" } else { "~" };
                let message = format!("`{operator}` is not supported in rules");
                return Err(GrammarError::new(ErrorKind::Unsupported, span.clone(), message)
                    .with_help("define a terminal (upper case) with it and name that"));
            }
        };
        Ok(vec![vec![symbol]])
    }

    /// The symbol of a terminal that a rule names.
    fn name(&mut self, terminal: usize) -> Symbol {
        self.terminals[terminal].named = true;
        Symbol::Terminal(TerminalId::new(terminal))
    }

    fn literal(&mut self, piece: Piece, span: &Span, expander: &mut Expander) -> Result<Symbol> {
        expander.budget.spend(piece.size, span)?;
        let terminal = self.anonymous(piece, span);
        Ok(self.name(terminal))
    }

    // The result.

    /// Leaves out terminals without a use, and numbers the others by their place.
    fn finish(self, expander: Expander, start: NonterminalId) -> Grammar {
        let mut order: Vec<usize> = (0..self.terminals.len()).collect();
        order.retain(|&at| self.terminals[at].named || self.terminals[at].ignored);
        order.sort_by_key(|&at| self.terminals[at].position);
        let mut numbers = vec![None; self.terminals.len()];
        for (number, &at) in order.iter().enumerate() {
            numbers[at] = Some(TerminalId::new(number));
        }
        let mut entries: Vec<Option<Entry<'f>>> = self.terminals.into_iter().map(Some).collect();
        let terminals = order.iter().filter_map(|&at| entries[at].take()).map(Entry::into_terminal).collect();
        let mut rules = expander.rules;
        for symbol in rules.iter_mut().flat_map(|rule| &mut rule.rhs) {
            if let Symbol::Terminal(terminal) = symbol {
                *terminal = numbers[terminal.index()].expect("named terminals are kept");
            }
        }
        let default_lexer = LexerMode::Contextual;
        Grammar { terminals, nonterminals: expander.nonterminals, rules, start, default_lexer }
    }
}

impl Entry<'_> {
    fn into_terminal(self) -> Terminal {
        let kind = match self.content {
            Content::Special(token) => TerminalKind::Special(token),
            Content::Pattern(piece) if matches!(piece.key, Some(Key::Text { .. })) => {
                TerminalKind::Literal(piece.pattern)
            }
            Content::Pattern(piece) => TerminalKind::Pattern(piece.pattern),
            Content::Unknown => unreachable!("all declared terminals are composed"),
        };
        let declared = !matches!(self.definition, Definition::Anonymous);
        let (name, priority, ignored, span) = (self.name, self.priority, self.ignored, self.span);
        Terminal { name, declared, kind, priority, ignored, reserved: false, span }
    }
}

fn duplicate(name: &Name<'_>, first: &Span) -> GrammarError {
    let message = format!("`{}` is defined twice", name.text);
    GrammarError::new(ErrorKind::DuplicateDefinition, name.span.clone(), message)
        .with_label(first.clone(), "first defined here")
        .with_help("join the two with `|`, or rename one")
}

/// The alternatives of the nodes so far; each is taken once.
struct Values {
    first: NodeId,
    alternatives: Vec<Option<Alternatives>>,
}

impl Values {
    fn take(&mut self, node: NodeId) -> Alternatives {
        self.alternatives[node - self.first].take().expect("a node is part of one other, and stands before it")
    }

    /// `… | …`; an alternative that is one expression brings its own alternatives.
    fn join(
        &mut self,
        alternatives: &[Vec<NodeId>],
        place: Place<'_>,
        expander: &mut Expander,
    ) -> Result<Alternatives> {
        let mut joined = Vec::with_capacity(alternatives.len());
        for sequence in alternatives {
            let items = sequence.iter().map(|&node| self.take(node)).collect();
            joined.extend(expander.sequence(items, place)?);
        }
        Ok(joined)
    }
}
