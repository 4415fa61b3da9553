//! Trees to grammar.
//!
//! In four passes, each linear in the files but for what terminals and templates copy (which the budget
//! pays): collect the names ([`names`](super::names)); build the patterns of terminals, those that others are
//! made of first; rewrite the rules; and as they are used, the instances of templates. Rules of the grammar
//! itself all come out, of imported ones those that are needed; terminals only if they have a use
//! ([`Grammar::new`]).

mod inlined;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroU32;

use super::ast::{Attributes, Expansions, File, Item, Name, NodeId, NodeKind, Stop};
use super::files::Files;
use super::library;
use super::names::{Dictionary, Names, ScopeId};
use super::parametric::Expression;
use super::parser::OWN_PARAMETER;
use super::pattern::{
    Composer, Key, Piece, followed, library_piece, range_piece, regex_piece, shortest, substring_piece,
    text_piece,
};
use super::{LarkDialect, LarkOptions, NamedGrammar, Schemas, competition, skips};
use crate::diagnostic::{ErrorKind, GrammarError, closest};
use crate::embed::Parts;
use crate::expand::{Alternatives, Budget, Expander, Place};
use crate::ir::{
    Grammar, Hints, LexerMode, Nonterminal, NonterminalId, Span, SpecialToken, Symbol, Terminal, TerminalId,
    TerminalKind,
};

type Result<T> = std::result::Result<T, GrammarError>;

/// Lowers parsed files, of which the first is the grammar.
pub(crate) fn lower<'f>(
    files: &'f Files<'f>,
    trees: &'f [File<'f>],
    (options, schemas): (&'f LarkOptions, &'f Schemas<'f>),
    depth: usize,
) -> Result<Grammar> {
    let mut budget = Budget::new(options.max_size);
    let (names, root) = Names::collect(files, trees, &mut budget)?;
    let mut lowering = Lowering {
        files,
        trees,
        entries: names.terminals.iter().map(Entry::declared).collect(),
        names,
        root,
        budget,
        literals: HashMap::new(),
        specials: HashMap::new(),
        nonterminals: HashMap::new(),
        instances: HashMap::new(),
        pending: VecDeque::new(),
        schemas,
        options,
        depth,
        embedded: BTreeMap::new(),
        hints: Vec::new(),
        inlined: Vec::new(),
    };
    lowering.refuse_abstract()?;
    lowering.check_templates()?;
    lowering.compose_all()?;
    let (lexer, start) = lowering.directives()?;
    let nonterminals = lowering.number_rules();
    let start = lowering.start(options.start.as_deref(), start)?;
    let mut expander = lowering.lower_rules(nonterminals)?;
    lowering.hide_inlined(start, &mut expander);
    lowering.ignore_and_reserve()?;
    let grammar = lowering.finish(expander, start, lexer)?;
    match grammar.disturbing() {
        None => Ok(grammar),
        Some(terminal) => {
            let message = format!(
                "{} is ignored, also between the keys and items of a `%json` that may not be repeated, so it \
                 may have no letters, digits, quotes, backslashes, nor any of `{{}}[],:+-.`",
                terminal.name
            );
            let span = terminal.span.clone().unwrap_or(0..0);
            Err(GrammarError::new(ErrorKind::Unsupported, span, message)
                .with_help("ignore blanks only, or use schemas that name all keys"))
        }
    }
}

/// How deep grammars nest within grammars.
const MAX_DEPTH: usize = 30;

/// Which grammar within this one: the place where it is written, or the name of one that has a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Within {
    Place(usize),
    Name(String),
}

/// What a terminal matches, once that is known.
enum Content {
    Unknown,
    Pattern(Piece),
    Special(SpecialToken),
}

/// A terminal; its position in `entries` is its id until [`Grammar::new`] numbers them.
struct Entry {
    name: String,
    declared: bool,
    priority: i32,
    content: Content,
    span: Option<Span>,
    /// Where it is declared; if it is not, where a directive names it first.
    position: usize,
    ignored: bool,
    reserved: bool,
    /// Whether its texts are as short as they can be.
    is_lazy: bool,
    /// How many tokens may have bytes in a piece of it.
    max_tokens: Option<NonZeroU32>,
}

impl Entry {
    fn declared(terminal: &super::names::Terminal<'_>) -> Self {
        Self {
            name: terminal.name.clone(),
            declared: terminal.declared,
            priority: terminal.priority,
            content: Content::Unknown,
            span: terminal.library.is_none().then(|| terminal.span.clone()),
            position: terminal.position,
            ignored: false,
            reserved: false,
            is_lazy: false,
            max_tokens: terminal.max_tokens,
        }
    }
}

/// What a template is used with.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Argument {
    /// A symbol, or none for the empty string.
    Symbols(Vec<Symbol>),
    Template(usize),
    /// The parameter of a rule `name::_`.
    Value(u64),
}

/// A rule with what its parameters stand for.
struct Instance {
    lhs: NonterminalId,
    rule: usize,
    arguments: Vec<Argument>,
}

struct Lowering<'f> {
    files: &'f Files<'f>,
    trees: &'f [File<'f>],
    names: Names<'f>,
    root: Dictionary,
    budget: Budget,
    entries: Vec<Entry>,
    /// The terminals that are one literal; of several declared ones the last.
    literals: HashMap<Key, usize>,
    specials: HashMap<SpecialToken, usize>,
    /// The nonterminals of rules.
    nonterminals: HashMap<usize, NonterminalId>,
    /// The nonterminals of templates with arguments.
    instances: HashMap<(usize, Vec<Argument>), NonterminalId>,
    /// What is not yet rewritten.
    pending: VecDeque<Instance>,
    /// What reads JSON schemas.
    schemas: &'f Schemas<'f>,
    options: &'f LarkOptions,
    /// How many grammars this one is within.
    depth: usize,
    /// Schemas and other grammars within this one, and the nonterminals that stand for them.
    embedded: BTreeMap<Within, (NonterminalId, Grammar)>,
    hints: Vec<(NonterminalId, Hints)>,
    /// Rules that were written into a terminal.
    inlined: Vec<usize>,
}

impl<'f> Lowering<'f> {
    fn tree(&self, scope: ScopeId) -> &'f File<'f> {
        &self.trees[self.names.scopes[scope].file]
    }

    // Names.

    fn rule(&mut self, scope: ScopeId, name: &str) -> Result<Option<usize>> {
        Ok(match scope {
            0 => self.root.rules.get(name),
            scope => self.root.rules.get(&self.names.global(scope, name, false, &mut self.budget)?),
        })
    }

    fn terminal(&mut self, scope: ScopeId, name: &str) -> Result<Option<usize>> {
        Ok(match scope {
            0 => self.root.terminals.get(name),
            scope => self.root.terminals.get(&self.names.global(scope, name, true, &mut self.budget)?),
        })
    }

    fn undefined(&self, name: &str, span: &Span) -> GrammarError {
        let message = format!("`{name}` is not defined");
        let error = GrammarError::new(ErrorKind::Syntax, span.clone(), message);
        if library::is_common(name) {
            return error.with_help(format!("add `%import common.{name}`"));
        }
        let mut names: Vec<&str> = self.root.rules.names().chain(self.root.terminals.names()).collect();
        names.sort_unstable();
        match closest(name, names) {
            Some(near) => error.with_help(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    /// What is only declared has no meaning here.
    fn refuse_abstract(&self) -> Result<()> {
        let rule =
            self.root.rules.order.iter().map(|&at| &self.names.rules[at]).find(|rule| rule.is_abstract);
        if let Some(rule) = rule {
            let message = format!("`%declare` is not supported: `{}` would have no rules", rule.name);
            return Err(GrammarError::new(ErrorKind::Unsupported, rule.span.clone(), message)
                .with_help("define it, or say `%nonterminal` for one that derives nothing"));
        }
        let mut declared = self.root.terminals.order.iter().map(|&at| &self.names.terminals[at]);
        let Some(terminal) = declared.find(|terminal| terminal.is_abstract) else { return Ok(()) };
        let name = &terminal.name;
        let (message, help) = match name.contains("INDENT") || name.contains("DEDENT") {
            true => (
                format!(
                    "`%declare` is not supported: `{name}` stands for indentation, and how deep a line \
                     stands in comparison \
                     with all lines before it is not context-free"
                ),
                "write a rule for each depth that you need, with its blanks (`block4: (\"\\n    \" \
                 statement)+`), or mark \
                 blocks by brackets",
            ),
            false => (
                format!(
                    "`%declare` is not supported: no lexer outside of the grammar could produce `{name}` \
                     from a text"
                ),
                "define the terminal, or name a token of the vocabulary as `<|name|>`",
            ),
        };
        Err(GrammarError::new(ErrorKind::Unsupported, terminal.span.clone(), message).with_help(help))
    }

    /// Parameters are different from each other and from rules, and what templates name is there.
    fn check_templates(&mut self) -> Result<()> {
        for at in self.root.rules.order.clone() {
            let rule = &self.names.rules[at];
            let (parameters, bodies) = (rule.parameters, rule.bodies.clone());
            let Some(&(scope, _)) = bodies.first().filter(|_| !parameters.is_empty()) else { continue };
            let mut seen: HashMap<&str, &Span> = HashMap::new();
            for Name { text, span, .. } in parameters {
                let rule = self.rule(scope, text)?;
                let other = rule.map(|rule| self.names.rules[rule].span.clone());
                if let Some(other) = other.or(seen.insert(text, span).cloned()) {
                    let message =
                        format!("the parameter `{text}` has the name of another parameter or of a rule");
                    return Err(GrammarError::new(ErrorKind::Syntax, span.clone(), message)
                        .with_label(other, "the other")
                        .with_help("rename one of them"));
                }
            }
            for (scope, body) in bodies {
                self.budget.spend(body.nodes.len(), &body.span)?;
                for node in &self.tree(scope).nodes[body.nodes.clone()] {
                    let (name, found) = match &node.kind {
                        NodeKind::Rule(name) if seen.contains_key(name.as_ref()) => continue,
                        NodeKind::Rule(name) => (name, self.rule(scope, name)?),
                        NodeKind::Terminal(name) => (name, self.terminal(scope, name)?),
                        _ => continue,
                    };
                    if found.is_none() {
                        return Err(self.undefined(name, &node.span));
                    }
                }
            }
        }
        Ok(())
    }

    /// What `%lexer` and `%start` say.
    fn directives(&self) -> Result<(Option<LexerMode>, Option<&'f Name<'f>>)> {
        let (mut lexer, mut start): (Option<(LexerMode, &Span)>, Option<&Name<'_>>) = (None, None);
        let twice = |what: &str, span: &Span, first: &Span| {
            GrammarError::new(ErrorKind::Syntax, span.clone(), format!("`{what}` is said twice"))
                .with_label(first.clone(), "first said here")
                .with_help("leave one of them out")
        };
        for item in &self.trees[0].items {
            match item {
                Item::Lexer { mode, span } => {
                    if let Some((_, first)) = lexer.replace((*mode, span)) {
                        return Err(twice("%lexer", span, first));
                    }
                }
                Item::Start { name } => {
                    if let Some(first) = start.replace(name) {
                        return Err(twice("%start", &name.span, &first.span));
                    }
                }
                _ => {}
            }
        }
        Ok((lexer.map(|(mode, _)| mode), start))
    }

    /// The start that the caller names, or the grammar, or `start`.
    fn start(&self, asked: Option<&str>, said: Option<&Name<'_>>) -> Result<NonterminalId> {
        let (name, span) = match (asked, said) {
            (Some(name), _) => (name, 0..0),
            (None, Some(name)) => (name.text.as_ref(), name.span.clone()),
            (None, None) => ("start", 0..0),
        };
        let rule = self.root.rules.get(name);
        if let Some(&start) = rule.and_then(|rule| self.nonterminals.get(&rule)) {
            return Ok(start);
        }
        let message = match (rule, self.root.terminals.get(name)) {
            (Some(_), _) => format!("the start symbol `{name}` is a template; it has to be a rule"),
            (None, Some(_)) => format!("the start symbol `{name}` is a terminal; it has to be a rule"),
            (None, None) => format!("there is no rule `{name}` to start from"),
        };
        let error = GrammarError::new(ErrorKind::Syntax, span, message);
        const LISTED: usize = 20;
        let mut rules = self.root.rules.order.iter().filter(|rule| self.nonterminals.contains_key(rule));
        let names: Vec<&str> =
            rules.by_ref().take(LISTED).map(|&rule| self.names.rules[rule].name.as_str()).collect();
        let more = if rules.next().is_some() { ", …" } else { "" };
        let mut all: Vec<&str> = self.root.rules.names().collect();
        all.sort_unstable();
        Err(match closest(name, all) {
            _ if names.is_empty() => error.with_help(format!("the file has no rules; write `{name}: …`")),
            Some(near) => {
                error.with_help(format!("did you mean `{near}`? the rules are {}{more}", names.join(", ")))
            }
            None => error.with_help(format!("name another start; the rules are {}{more}", names.join(", "))),
        })
    }

    // Terminals.

    /// Finds the patterns of the terminals with a name, and of those that they are made of.
    fn compose_all(&mut self) -> Result<()> {
        // Depth first with an explicit stack of terminals, their parts, and how many of these are done.
        let mut open = vec![false; self.entries.len()];
        for root in self.root.terminals.order.clone() {
            let mut stack = vec![(root, None, 0)];
            while let Some((at, parts, done)) = stack.last_mut() {
                let at = *at;
                if !matches!(self.entries[at].content, Content::Unknown) {
                    stack.pop();
                    continue;
                }
                if parts.is_none() {
                    *parts = Some(self.parts(at)?);
                }
                let part = parts.as_ref().and_then(|parts| parts.get(*done)).cloned();
                if let Some((part, span)) = part {
                    *done += 1;
                    open[at] = true;
                    if open[part] {
                        return Err(self.recursive(part, &span, stack.iter().map(|&(at, ..)| at)));
                    }
                    stack.push((part, None, 0));
                } else {
                    open[at] = false;
                    stack.pop();
                    self.entries[at].content = self.compose(at)?;
                }
            }
        }
        for &at in &self.root.terminals.order {
            match &self.entries[at].content {
                // As in Lark, a literal in a rule means the last terminal that is defined so.
                _ if !self.entries[at].declared => {}
                Content::Pattern(Piece { key: Some(key), .. }) => _ = self.literals.insert(key.clone(), at),
                Content::Special(token) => _ = self.specials.insert(token.clone(), at),
                _ => {}
            }
        }
        Ok(())
    }

    /// The terminals that one names, with the places.
    fn parts(&self, at: usize) -> Result<Vec<(usize, Span)>> {
        let mut parts = Vec::new();
        for &(scope, body) in &self.names.terminals[at].bodies {
            for node in &self.tree(scope).nodes[body.nodes.clone()] {
                let NodeKind::Terminal(name) = &node.kind else { continue };
                match self.names.scopes[scope].parts.get(name.as_ref()) {
                    Some(&part) if self.entries[part].max_tokens.is_some() => {
                        let message =
                            format!("`{name}` has a bound on its tokens, and so is part of no other");
                        return Err(GrammarError::new(ErrorKind::Unsupported, node.span.clone(), message));
                    }
                    Some(&part) => parts.push((part, node.span.clone())),
                    None => return Err(self.undefined(name, &node.span)),
                }
            }
        }
        Ok(parts)
    }

    fn recursive(&self, at: usize, span: &Span, stack: impl Iterator<Item = usize>) -> GrammarError {
        let name = &self.entries[at].name;
        let through: Vec<String> = stack
            .skip_while(|&other| other != at)
            .skip(1)
            .take(5)
            .map(|at| format!("`{}`", self.entries[at].name))
            .collect();
        let message = match through.is_empty() {
            true => format!("the terminal `{name}` is defined by itself"),
            false => format!("the terminal `{name}` is defined by itself, through {}", through.join(", ")),
        };
        GrammarError::new(ErrorKind::Syntax, span.clone(), message)
            .with_label(self.names.terminals[at].span.clone(), "defined here")
            .with_help("repeat with `*` or `+`, or make it a rule (lower case)")
    }

    /// What one terminal matches of which all parts are done.
    fn compose(&mut self, at: usize) -> Result<Content> {
        let terminal = &self.names.terminals[at];
        let (bodies, library, span) = (terminal.bodies.clone(), terminal.library, terminal.span.clone());
        if let ([(scope, body)], None) = (&bodies[..], library)
            && let Some(NodeKind::Special(token)) = self.only_node(*scope, body)
        {
            return Ok(Content::Special(token.clone()));
        }
        let mut pieces = Vec::with_capacity(1);
        // As in Lark, what extends comes first.
        for (scope, body) in bodies.into_iter().rev() {
            pieces.push(self.pattern(scope, body)?);
        }
        pieces.extend(library.map(library_piece));
        if pieces.len() == 1 {
            return Ok(Content::Pattern(pieces.swap_remove(0)));
        }
        let piece = Piece::alternate(pieces, &span)?;
        self.budget.spend(piece.size, &span)?;
        Ok(Content::Pattern(piece))
    }

    /// The only node of a right side, if there is only one.
    fn only_node(&self, scope: ScopeId, body: &Expansions) -> Option<&'f NodeKind<'f>> {
        match &body.alternatives[..] {
            [sequence] => match sequence[..] {
                [node] => Some(&self.tree(scope).nodes[node].kind),
                _ => None,
            },
            _ => None,
        }
    }

    /// The pattern of an expression, given those of all terminals that it names.
    fn pattern(&mut self, scope: ScopeId, body: &Expansions) -> Result<Piece> {
        let file = self.tree(scope);
        let (entries, parts) = (&self.entries, &self.names.scopes[scope].parts);
        let known = |node: &NodeKind<'f>| {
            let NodeKind::Terminal(name) = node else { return None };
            match &entries[*parts.get(name.as_ref())?].content {
                Content::Pattern(piece) => Some(piece.clone()),
                _ => None,
            }
        };
        let mut composer = Composer { file, budget: &mut self.budget };
        composer.compose(&body.alternatives, body.nodes.clone(), &body.span, known)
    }

    /// The terminal with this key, perhaps a new one that is named as it is written.
    fn anonymous(&mut self, piece: Piece, span: &Span) -> usize {
        let next = self.entries.len();
        let at = match piece.key.clone() {
            Some(key) => *self.literals.entry(key).or_insert(next),
            None => next,
        };
        if at == next {
            self.add_anonymous(Content::Pattern(piece), span);
        }
        at
    }

    fn special(&mut self, token: &SpecialToken, span: &Span) -> usize {
        let next = self.entries.len();
        let at = *self.specials.entry(token.clone()).or_insert(next);
        if at == next {
            self.add_anonymous(Content::Special(token.clone()), span);
        }
        at
    }

    fn add_anonymous(&mut self, content: Content, span: &Span) {
        self.entries.push(Entry {
            name: self.files.text[span.clone()].to_owned(),
            declared: false,
            priority: 0,
            content,
            span: Some(span.clone()),
            position: 0,
            ignored: false,
            reserved: false,
            is_lazy: false,
            max_tokens: None,
        });
    }

    fn ignore_and_reserve(&mut self) -> Result<()> {
        for item in &self.trees[0].items {
            match item {
                Item::Ignore { body } => self.terminal_expression(body, "ignored")?.ignored = true,
                Item::Reserve { body } => self.terminal_expression(body, "reserved")?.reserved = true,
                _ => {}
            }
        }
        Ok(())
    }

    /// The terminal that a directive of the grammar itself names or describes.
    fn terminal_expression(&mut self, body: &Expansions, what: &str) -> Result<&mut Entry> {
        for node in &self.trees[0].nodes[body.nodes.clone()] {
            match &node.kind {
                NodeKind::Terminal(name) if self.root.terminals.get(name).is_none() => {
                    return Err(self.undefined(name, &node.span));
                }
                NodeKind::Rule(name) => {
                    let message = format!("`{name}` is a rule; only terminals can be {what}");
                    return Err(GrammarError::new(ErrorKind::Unsupported, node.span.clone(), message)
                        .with_help("make it a terminal (upper case), or put it where it may stand"));
                }
                _ => {}
            }
        }
        let at = match self.only_node(0, body) {
            Some(NodeKind::Terminal(name)) => self.root.terminals.get(name).expect("looked at above"),
            Some(NodeKind::Special(token)) => self.special(token, &body.span),
            _ => {
                let piece = self.pattern(0, body)?;
                self.anonymous(piece, &body.span)
            }
        };
        let entry = &mut self.entries[at];
        if !(entry.declared || entry.ignored || entry.reserved) {
            entry.position = body.span.start;
        }
        Ok(entry)
    }

    // Rules.

    /// The nonterminals of all rules, which wait to be rewritten.
    fn number_rules(&mut self) -> Vec<Nonterminal> {
        let mut nonterminals = Vec::new();
        for &rule in &self.root.rules.order {
            let Some(definition) = self.names.rules.get(rule).filter(|rule| rule.parameters.is_empty())
            else {
                continue;
            };
            let lhs = NonterminalId::new(nonterminals.len());
            self.nonterminals.insert(rule, lhs);
            self.pending.push_back(Instance { lhs, rule, arguments: Vec::new() });
            nonterminals
                .push(Nonterminal { name: definition.name.clone(), span: Some(definition.span.clone()) });
        }
        nonterminals
    }

    fn lower_rules(&mut self, nonterminals: Vec<Nonterminal>) -> Result<Expander> {
        let mut expander = Expander::new(nonterminals, self.budget.clone());
        while let Some(instance) = self.pending.pop_front() {
            if let Some(attributes) = self.names.rules[instance.rule].attributes
                && self.with_attributes(&instance, attributes, &mut expander)?
            {
                continue;
            }
            let name = expander.nonterminals[instance.lhs.index()].name.clone();
            for (scope, body) in self.names.rules[instance.rule].bodies.clone().into_iter().rev() {
                let mut values =
                    Values { first: body.nodes.start, values: Vec::with_capacity(body.nodes.len()) };
                let absent = self.absent(scope, body, &instance);
                for id in body.nodes.clone() {
                    if absent[id - body.nodes.start] {
                        values.values.push(Some(Value::Alternatives(vec![])));
                        continue;
                    }
                    let at = At { scope, instance: &instance, name: &name };
                    let value = self.node(id, at, &mut values, &mut expander)?;
                    values.values.push(Some(value));
                }
                let span = &self.names.rules[instance.rule].span;
                let place = Place { rule: &name, span };
                let alternatives = self.join(&body.alternatives, scope, &mut values, place, &mut expander)?;
                expander.define(instance.lhs, alternatives, span)?;
            }
        }
        self.budget = expander.budget.clone();
        Ok(expander)
    }

    fn node(
        &mut self,
        id: NodeId,
        at: At<'_>,
        values: &mut Values,
        expander: &mut Expander,
    ) -> Result<Value> {
        let node = &self.tree(at.scope).nodes[id];
        let span = &node.span;
        let place = Place { rule: at.name, span };
        let dialect = self.options.dialect;
        let symbol = match &node.kind {
            NodeKind::Rule(name) => {
                if let Some(&number) = self.names.rules[at.instance.rule].numbers.get(name.as_ref()) {
                    return Ok(match &at.instance.arguments[number] {
                        Argument::Symbols(symbols) => Value::Alternatives(vec![symbols.clone()]),
                        Argument::Template(template) => Value::Template(*template),
                        // No name is like that of a parameter that is a number.
                        Argument::Value(_) => return Err(self.undefined(name, span)),
                    });
                }
                let Some(rule) = self.rule(at.scope, name)? else { return Err(self.undefined(name, span)) };
                match self.nonterminals.get(&rule) {
                    Some(&nonterminal) => Symbol::Nonterminal(nonterminal),
                    None => return Ok(Value::Template(rule)),
                }
            }
            NodeKind::Terminal(name) => match self.terminal(at.scope, name)? {
                Some(terminal) => symbol_of(terminal),
                None => return Err(self.undefined(name, span)),
            },
            NodeKind::Special(token) => symbol_of(self.special(token, span)),
            NodeKind::TokenRanges(ranges) => {
                let ids = ranges.iter().flat_map(|&(first, last)| first..=last);
                let mut tokens = Vec::new();
                for id in ids {
                    expander.budget.spend(1, span)?;
                    tokens.push(vec![symbol_of(self.special(&SpecialToken::Id(id), span))]);
                }
                return Ok(Value::Alternatives(tokens));
            }
            NodeKind::Json(schema) => {
                let error = |(kind, message): (ErrorKind, String)| {
                    GrammarError::new(kind, span.clone(), format!("the schema of `%json`: {message}"))
                };
                let (within, schemas) = (Within::Place(span.start), self.schemas);
                let read = |_: &mut Self, _| schemas(schema).map_err(error);
                Symbol::Nonterminal(self.grammar_within(within, "json", place, expander, read)?)
            }
            NodeKind::Lark(part) => {
                let read = |this: &mut Self, max_size| {
                    let text: &'f str = &this.files.text;
                    this.nested(text, part.clone(), max_size, span)
                };
                let within = Within::Place(span.start);
                Symbol::Nonterminal(self.grammar_within(within, "lark", place, expander, read)?)
            }
            NodeKind::Named(name) => {
                let read = |this: &mut Self, max_size| this.named(name, max_size, span);
                let within = Within::Name((*name).to_owned());
                Symbol::Nonterminal(self.grammar_within(within, name, place, expander, read)?)
            }
            NodeKind::Parametric { name, expression } => {
                Symbol::Nonterminal(self.parametric(name, *expression, span, at, expander)?)
            }
            NodeKind::Condition(condition) => {
                let Some(Argument::Value(value)) = self.own_parameter(at.instance) else {
                    let message = "`%if` needs a rule with a parameter, `name::_: …`";
                    return Err(GrammarError::new(ErrorKind::Syntax, span.clone(), message));
                };
                let holds = condition.holds(value);
                return Ok(Value::Alternatives(if holds { vec![vec![]] } else { vec![] }));
            }
            NodeKind::Text { raw: "", .. } => return Ok(Value::Alternatives(vec![vec![]])),
            NodeKind::Text { raw, ignore_case } => {
                self.literal(text_piece(raw, *ignore_case, span, dialect)?, span, expander)?
            }
            NodeKind::Regex { raw, flags } => {
                self.literal(regex_piece(raw, flags, span, dialect)?, span, expander)?
            }
            NodeKind::RegexObject(object) => self.literal(substring_piece(object, span)?, span, expander)?,
            NodeKind::Range { from, to } => {
                self.literal(range_piece(from, to, span, dialect)?, span, expander)?
            }
            NodeKind::Use { template, arguments } => {
                Symbol::Nonterminal(self.instance(*template, arguments, span, at, values, expander)?)
            }
            NodeKind::Group(inner) => {
                return self.join(inner, at.scope, values, place, expander).map(Value::Alternatives);
            }
            NodeKind::Optional(inner) => {
                let inner = self.join(inner, at.scope, values, place, expander)?;
                if inner.is_empty() {
                    return Ok(Value::Alternatives(vec![vec![]]));
                }
                return expander.repeat(inner, 0, Some(1), place).map(Value::Alternatives);
            }
            NodeKind::Repeat { inner, min, max } => {
                let inner = self.take(*inner, at.scope, values)?;
                // No condition of a group holds.
                if inner.is_empty() {
                    let none = if *min == 0 { vec![vec![]] } else { vec![] };
                    return Ok(Value::Alternatives(none));
                }
                return expander.repeat(inner, *min, *max, place).map(Value::Alternatives);
            }
            NodeKind::And(_) | NodeKind::Not(_) => {
                let operator = if matches!(node.kind, NodeKind::And(_)) { "&" } else { "~" };
                let message = format!("`{operator}` is not supported in rules");
                return Err(GrammarError::new(ErrorKind::Unsupported, span.clone(), message)
                    .with_help("define a terminal (upper case) with it and name that"));
            }
        };
        Ok(Value::Alternatives(vec![vec![symbol]]))
    }

    /// The nonterminal of a grammar within this one; `read` is told how large it may be.
    fn grammar_within(
        &mut self,
        within: Within,
        what: &str,
        place: Place<'_>,
        expander: &mut Expander,
        read: impl FnOnce(&mut Self, usize) -> Result<Grammar>,
    ) -> Result<NonterminalId> {
        if let Some(&(known, _)) = self.embedded.get(&within) {
            return Ok(known);
        }
        let mut grammar = read(self, expander.budget.left())?;
        expander.budget.spend(grammar.nonterminals.len() + grammar.n_rule_symbols(), place.span)?;
        let lhs = expander.add(format!("__{}_{what}", place.rule.trim_start_matches('_')), place.span);
        // Two grammars may declare terminals of one name.
        let outer = &expander.nonterminals[lhs.index()].name;
        for terminal in grammar.terminals.iter_mut().filter(|terminal| terminal.declared) {
            terminal.name = format!("{outer}: {}", terminal.name);
        }
        self.embedded.insert(within, (lhs, grammar));
        Ok(lhs)
    }

    /// The Lark grammar that is a part of a text, within this one.
    fn nested(&mut self, text: &'f str, part: Span, max_size: usize, span: &Span) -> Result<Grammar> {
        if self.depth == MAX_DEPTH {
            let message = format!("grammars nest deeper than {MAX_DEPTH} levels");
            let help = "does a grammar name itself? write the rules into one grammar";
            return Err(GrammarError::new(ErrorKind::Limit, span.clone(), message).with_help(help));
        }
        let options = LarkOptions { start: None, max_size, imports: None, ..self.options.clone() };
        let (files, tree) = Files::within(text, part, options.dialect)?;
        lower(&files, std::slice::from_ref(&tree), (&options, self.schemas), self.depth + 1)
    }

    /// The grammar with a name. What is wrong in it is told at the place of the name.
    fn named(&mut self, name: &str, max_size: usize, span: &Span) -> Result<Grammar> {
        let known = &self.options.named;
        let Some((_, grammar)) = known.iter().find(|(known, _)| known == name) else {
            let message = format!("there is no grammar `@{name}`");
            let error = GrammarError::new(ErrorKind::Syntax, span.clone(), message);
            return Err(match closest(name, known.iter().map(|(known, _)| known.as_str())) {
                Some(near) => error.with_help(format!("did you mean `@{near}`?")),
                None => error.with_help(
                    "grammars get names in llguidance's list: `{\"grammars\": [{\"name\": …}]}`; or write \
                     `%lark {…}` or `%json {…}` here",
                ),
            });
        };
        match grammar {
            NamedGrammar::Lark(text) => self.nested(text, 0..text.len(), max_size, span).map_err(|error| {
                let message = format!("in the grammar `@{name}`: {}", error.message());
                let located = error.located(text);
                let message = format!("{message} (line {}, column {})", located.line(), located.column());
                GrammarError::new(located.kind(), span.clone(), message)
            }),
            NamedGrammar::Schema(schema) => (self.schemas)(schema).map_err(|(kind, message)| {
                GrammarError::new(kind, span.clone(), format!("the schema of `@{name}`: {message}"))
            }),
        }
    }

    /// The parameter of a rule `name::_`.
    fn own_parameter(&self, instance: &Instance) -> Option<Argument> {
        let number = self.names.rules[instance.rule].numbers.get(OWN_PARAMETER)?;
        instance.arguments.get(*number).cloned()
    }

    /// Which nodes of a body stand in alternatives whose conditions do not hold, so that nobody looks at
    /// them.
    fn absent(&self, scope: ScopeId, body: &Expansions, instance: &Instance) -> Vec<bool> {
        let (nodes, first) = (&self.tree(scope).nodes, body.nodes.start);
        let mut absent = vec![false; body.nodes.len()];
        let Some(Argument::Value(value)) = self.own_parameter(instance) else { return absent };
        // Where the parts of each node begin; they stand before it without a gap.
        let mut begins: Vec<NodeId> = Vec::with_capacity(body.nodes.len());
        let mut leave_out = |alternatives: &[Vec<NodeId>], begins: &[NodeId]| {
            for sequence in alternatives {
                if let (Some(&start), Some(&last)) = (sequence.first(), sequence.last())
                    && let NodeKind::Condition(condition) = &nodes[last].kind
                    && !condition.holds(value)
                {
                    absent[begins[start - first] - first..=last - first].fill(true);
                }
            }
        };
        for id in body.nodes.clone() {
            let part = match &nodes[id].kind {
                NodeKind::Group(inner) | NodeKind::Optional(inner) => {
                    leave_out(inner, &begins);
                    inner.iter().flatten().min().copied()
                }
                NodeKind::And(inner) => inner.iter().flatten().min().copied(),
                NodeKind::Use { template, .. } => Some(*template),
                NodeKind::Repeat { inner, .. } | NodeKind::Not(inner) => Some(*inner),
                _ => None,
            };
            begins.push(part.map_or(id, |part| begins[part - first]));
        }
        leave_out(&body.alternatives, &begins);
        absent
    }

    /// The nonterminal of `name::expression`.
    fn parametric(
        &mut self,
        name: &str,
        expression: Expression,
        span: &Span,
        at: At<'_>,
        expander: &mut Expander,
    ) -> Result<NonterminalId> {
        let Some(rule) = self.rule(at.scope, name)? else { return Err(self.undefined(name, span)) };
        if !self.names.rules[rule].numbers.contains_key(OWN_PARAMETER) {
            let message = format!("the rule `{name}` takes no parameter");
            return Err(GrammarError::new(ErrorKind::Syntax, span.clone(), message)
                .with_label(self.names.rules[rule].span.clone(), "defined here")
                .with_help(format!("define it as `{name}::_: …`")));
        }
        let value = match self.own_parameter(at.instance) {
            Some(Argument::Value(value)) => expression.of(value),
            _ if !expression.needs_parameter() => expression.of(0),
            _ => {
                let message = "there is no parameter here: the rule around it is not defined as `name::_: …`";
                return Err(
                    GrammarError::new(ErrorKind::Syntax, span.clone(), message).with_help("write a number")
                );
            }
        };
        let arguments = vec![Argument::Value(value)];
        if let Some(&known) = self.instances.get(&(rule, arguments.clone())) {
            return Ok(known);
        }
        let nodes = self.names.rules[rule].bodies.iter().map(|(_, body)| body.nodes.len()).sum::<usize>();
        expander.budget.spend(1 + nodes, span)?;
        let lhs = expander.add(format!("{name}::{value:#x}"), &self.names.rules[rule].span);
        self.instances.insert((rule, arguments.clone()), lhs);
        self.pending.push_back(Instance { lhs, rule, arguments });
        Ok(lhs)
    }

    /// Rewrites a rule that is one terminal by its attributes; whether it is.
    fn with_attributes(
        &mut self,
        instance: &Instance,
        attributes: &Attributes,
        expander: &mut Expander,
    ) -> Result<bool> {
        let rule = &self.names.rules[instance.rule];
        let (bodies, span) = (rule.bodies.clone(), rule.span.clone());
        if attributes.hints != Hints::default() {
            self.hints.push((instance.lhs, attributes.hints.clone()));
        }
        if attributes.max_tokens == Some(0) {
            expander.define(instance.lhs, vec![vec![]], &span)?;
            return Ok(true);
        }
        let max_tokens = attributes.max_tokens.and_then(NonZeroU32::new);
        let is_terminal = attributes.stop.is_some() || max_tokens.is_some();
        let (true, [(scope, body)]) = (is_terminal, &bodies[..]) else { return Ok(false) };
        let scope = *scope;
        self.budget = expander.budget.clone();
        let mut piece = match max_tokens {
            Some(_) => self.inlined(instance.rule)?,
            None => self.pattern(scope, body)?,
        };
        piece = match &attributes.stop {
            None => piece,
            Some(Stop::Lazy) => shortest(piece, &span)?,
            Some(Stop::Suffix(end)) => {
                let end = self.pattern(scope, end)?;
                shortest(followed(piece, end, &span)?, &span)?
            }
            Some(Stop::TakenBack(end)) => {
                let is_empty = matches!(&self.pattern(scope, end)?.key,
                    Some(Key::Text { text, .. }) if text.is_empty());
                if !is_empty {
                    let message = "the attribute `stop` is not supported: it takes back what was written";
                    return Err(GrammarError::new(ErrorKind::Unsupported, end.span.clone(), message)
                        .with_help("use `suffix`: the end then belongs to the text"));
                }
                piece
            }
        };
        self.budget.spend(piece.size, &span)?;
        expander.budget = self.budget.clone();
        let at = self.entries.len();
        self.add_anonymous(Content::Pattern(Piece { key: None, ..piece }), &span);
        self.entries[at].is_lazy = matches!(attributes.stop, Some(Stop::Lazy | Stop::Suffix(_)));
        self.entries[at].max_tokens = max_tokens;
        expander.define(instance.lhs, vec![vec![symbol_of(at)]], &span)?;
        Ok(true)
    }

    fn literal(&mut self, piece: Piece, span: &Span, expander: &mut Expander) -> Result<Symbol> {
        expander.budget.spend(piece.size, span)?;
        Ok(symbol_of(self.anonymous(piece, span)))
    }

    /// What a node stands for, if that is no template.
    fn take(&self, node: NodeId, scope: ScopeId, values: &mut Values) -> Result<Alternatives> {
        match values.take(node) {
            Value::Alternatives(alternatives) => Ok(alternatives),
            Value::Template(template) => {
                let template = &self.names.rules[template];
                let name = &template.name;
                let span = self.tree(scope).nodes[node].span.clone();
                if template.numbers.contains_key(OWN_PARAMETER) {
                    let message = format!("the rule `{name}` is used without its parameter");
                    return Err(GrammarError::new(ErrorKind::Syntax, span, message)
                        .with_label(template.span.clone(), "defined here")
                        .with_help(format!("write `{name}::0`, or `{name}::_` for the same parameter")));
                }
                let parameters: Vec<&str> =
                    template.parameters.iter().map(|name| name.text.as_ref()).collect();
                Err(GrammarError::new(
                    ErrorKind::Syntax,
                    span,
                    format!("the template `{name}` is used without arguments"),
                )
                .with_label(template.span.clone(), "defined here")
                .with_help(format!(
                    "write `{name}{{{}}}` with something for each name",
                    parameters.join(", ")
                )))
            }
        }
    }

    /// `… | …`; an alternative that is one expression brings its own alternatives.
    fn join(
        &self,
        alternatives: &[Vec<NodeId>],
        scope: ScopeId,
        values: &mut Values,
        place: Place<'_>,
        expander: &mut Expander,
    ) -> Result<Alternatives> {
        let mut joined = Vec::with_capacity(alternatives.len());
        for sequence in alternatives {
            let mut items = Vec::with_capacity(sequence.len());
            for &node in sequence {
                items.push(self.take(node, scope, values)?);
            }
            // A condition that does not hold.
            if items.iter().any(Vec::is_empty) {
                continue;
            }
            joined.extend(expander.sequence(items, place)?);
        }
        Ok(joined)
    }

    /// The nonterminal of a template with arguments; each pair has one.
    fn instance(
        &mut self,
        template: NodeId,
        arguments: &[NodeId],
        span: &Span,
        at: At<'_>,
        values: &mut Values,
        expander: &mut Expander,
    ) -> Result<NonterminalId> {
        let name_span = self.tree(at.scope).nodes[template].span.clone();
        let Value::Template(rule) = values.take(template) else {
            let message = format!("`{}` is not a template", &self.files.text[name_span.clone()]);
            return Err(GrammarError::new(ErrorKind::Syntax, name_span, message)
                .with_help("a template is defined with its parameters: `list{x}: x (\",\" x)*`"));
        };
        let (needed, given) = (self.names.rules[rule].parameters.len(), arguments.len());
        if needed != given {
            let message = format!(
                "the template `{}` takes {needed} arguments, given {given}",
                self.names.rules[rule].name
            );
            return Err(GrammarError::new(ErrorKind::Syntax, span.clone(), message)
                .with_label(self.names.rules[rule].span.clone(), "defined here"));
        }
        let arguments: Vec<Argument> = arguments
            .iter()
            .map(|&argument| match values.take(argument) {
                Value::Template(template) => Argument::Template(template),
                // Only single values can be arguments.
                Value::Alternatives(alternatives) => Argument::Symbols(alternatives.concat()),
            })
            .collect();
        let known = self.instances.get(&(rule, arguments.clone()));
        if let Some(&known) = known {
            return Ok(known);
        }
        let nodes = self.names.rules[rule].bodies.iter().map(|(_, body)| body.nodes.len()).sum::<usize>();
        // Names may grow from instance to instance.
        let length: usize =
            arguments.iter().map(|argument| self.argument_name(argument, expander).len() + 1).sum();
        expander.budget.spend(1 + nodes + length / 8, span)?;
        let names: Vec<&str> =
            arguments.iter().map(|argument| self.argument_name(argument, expander)).collect();
        let name = format!("{}{{{}}}", self.names.rules[rule].name, names.join(","));
        let lhs = expander.add(name, &self.names.rules[rule].span);
        self.instances.insert((rule, arguments.clone()), lhs);
        self.pending.push_back(Instance { lhs, rule, arguments });
        Ok(lhs)
    }

    fn argument_name<'a>(&'a self, argument: &Argument, expander: &'a Expander) -> &'a str {
        match argument {
            Argument::Template(template) => &self.names.rules[*template].name,
            Argument::Symbols(symbols) => match symbols.first() {
                Some(Symbol::Terminal(terminal)) => &self.entries[terminal.index()].name,
                Some(Symbol::Nonterminal(nonterminal)) => &expander.nonterminals[nonterminal.index()].name,
                None => "\"\"",
            },
            Argument::Value(_) => "_",
        }
    }

    // The result.

    fn finish(
        mut self,
        expander: Expander,
        start: NonterminalId,
        lexer: Option<LexerMode>,
    ) -> Result<Grammar> {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_key(|&at| (!self.entries[at].declared, self.entries[at].position));
        let mut numbers = vec![TerminalId::new(0); self.entries.len()];
        for (number, &at) in order.iter().enumerate() {
            numbers[at] = TerminalId::new(number);
        }
        let lazy: Vec<TerminalId> =
            (0..numbers.len()).filter(|&at| self.entries[at].is_lazy).map(|at| numbers[at]).collect();
        // Parts of terminals that have no name here match nothing yet; no rule names them.
        let here = |span: Span| Some(span).filter(|span| self.files.file_at(span.start) == 0);
        let mut terminals = Vec::with_capacity(order.len());
        for at in order {
            let entry = &mut self.entries[at];
            let kind = match std::mem::replace(&mut entry.content, Content::Unknown) {
                Content::Special(token) => TerminalKind::Special(token),
                Content::Pattern(piece) if matches!(piece.key, Some(Key::Text { .. })) => {
                    TerminalKind::Literal(piece.pattern)
                }
                Content::Pattern(piece) => TerminalKind::Pattern(piece.pattern),
                Content::Unknown => TerminalKind::Pattern(crate::ir::Pattern::alternate(vec![])),
            };
            let (name, span) = (std::mem::take(&mut entry.name), entry.span.take().and_then(here));
            let Entry { declared, priority, ignored, reserved, max_tokens, .. } = *entry;
            terminals.push(Terminal {
                name,
                declared,
                kind,
                priority,
                ignored,
                reserved,
                span,
                memory: None,
                max_tokens,
            });
        }
        let (mut rules, mut nonterminals) = (expander.rules, expander.nonterminals);
        for symbol in rules.iter_mut().flat_map(|rule| &mut rule.rhs) {
            if let Symbol::Terminal(terminal) = symbol {
                *terminal = numbers[terminal.index()];
            }
        }
        for nonterminal in &mut nonterminals {
            nonterminal.span = nonterminal.span.take().and_then(here);
        }
        // The terminals of schemas grow with the texts, and a bound on tokens ends pieces before their
        // longest match: no other mode can do that.
        let is_scannerless =
            |(_, grammar): &(NonterminalId, Grammar)| grammar.default_lexer == LexerMode::Scannerless;
        let is_counted = terminals.iter().any(|terminal| terminal.max_tokens.is_some());
        let default = match is_counted || self.embedded.values().any(is_scannerless) {
            true => LexerMode::Scannerless,
            false => LexerMode::Contextual,
        };
        let mut parts = Parts { terminals, nonterminals, rules, hints: self.hints, ..Parts::default() };
        let mut start = start;
        if self.options.dialect == LarkDialect::Llguidance || self.depth > 0 {
            let grammars: Vec<NonterminalId> = self.embedded.values().map(|&(lhs, _)| lhs).collect();
            start = skips::write(&mut parts, start, &grammars, self.trees[0].options);
        }
        if self.options.dialect == LarkDialect::Llguidance {
            competition::cut_short(&mut parts, start, &lazy)?;
        }
        for (lhs, grammar) in self.embedded.into_values() {
            parts.embed(lhs, grammar);
        }
        Ok(parts.into_grammar(start, lexer.unwrap_or(default)))
    }
}

fn symbol_of(terminal: usize) -> Symbol {
    Symbol::Terminal(TerminalId::new(terminal))
}

/// Where a node stands.
#[derive(Clone, Copy)]
struct At<'a> {
    scope: ScopeId,
    instance: &'a Instance,
    /// The name of the rule, for names.
    name: &'a str,
}

/// What a node of a rule stands for.
enum Value {
    Alternatives(Alternatives),
    /// The name of a template.
    Template(usize),
}

/// What the nodes so far stand for; each is taken once.
struct Values {
    first: NodeId,
    values: Vec<Option<Value>>,
}

impl Values {
    fn take(&mut self, node: NodeId) -> Value {
        self.values[node - self.first].take().expect("a node is part of one other, and stands before it")
    }
}
