//! Tree to grammar.
//!
//! Every node becomes a [`Value`]: a regular piece, or alternatives of symbols. Pieces that stand side by
//! side are joined, and so are the alternatives of a group and what is repeated, as long as they are regular:
//! what remains is the *maximal regular piece*, which becomes one terminal. A piece never goes beyond the
//! alternative of the rule in which it stands, and names of rules are not looked through, except in a
//! difference `A - B`, which has a meaning only for regular expressions.
//!
//! Many alternatives that are literals become one terminal too, wherever they stand.
//!
//! Joining is bounded ([`PIECE_LIMIT`], [`REPEAT_LIMIT`]); what goes beyond becomes rules. So the cost is
//! linear in the file times the first of these bounds, and in what it expands to, which the budget pays.

use std::collections::HashMap;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, HirKind};

use super::ast::{File, NodeId, NodeKind};
use super::piece::{DEPTH_LIMIT, Piece};
use super::{Dialect, EbnfOptions, text};
use crate::diagnostic::{ErrorKind, GrammarError, closest};
use crate::expand::{Alternatives, Budget, Expander, Place};
use crate::ir::{Grammar, LexerMode, Nonterminal, NonterminalId, Pattern, Span, Symbol, TerminalKind};
use crate::terminals::{Terminals, anonymous, pattern_key, special_key};

/// How large a piece may become by joining (see [`Piece::size`]).
const PIECE_LIMIT: usize = 1_000;
/// How often a part of a piece may be repeated; more becomes rules, which need no states.
const REPEAT_LIMIT: u32 = 64;
/// More symbols than this are not copied from group to group, and more literals than this become one
/// terminal.
const WIDE: usize = 64;

type Result<T> = std::result::Result<T, GrammarError>;

/// Lowers a parsed file.
pub(crate) fn lower(
    source: &str,
    file: &File<'_>,
    dialect: Dialect,
    options: &EbnfOptions,
) -> Result<Grammar> {
    let mut lowering = Lowering {
        source,
        file,
        dialect,
        join: options.join,
        rules: Vec::new(),
        names: HashMap::new(),
        regular: Vec::new(),
        terminals: Terminals::default(),
        expander: Expander::new(Vec::new(), Budget::new(options.max_size)),
    };
    lowering.collect()?;
    let start = lowering.start(options.start.as_deref())?;
    lowering.resolve()?;
    let strict = lowering.strict();
    lowering.find_regular(&strict)?;
    lowering.lower_rules(&strict)?;
    Ok(lowering.terminals.finish(lowering.expander, start, LexerMode::Scannerless))
}

/// What a node stands for.
enum Value {
    Piece(Piece, Span),
    Rules(Alternatives),
}

struct Lowering<'f, 's> {
    source: &'s str,
    file: &'f File<'s>,
    dialect: Dialect,
    join: bool,
    /// The definitions that count, as positions in the file.
    rules: Vec<usize>,
    names: HashMap<&'s str, usize>,
    /// What rules match that are named in differences.
    regular: Vec<Option<Piece>>,
    terminals: Terminals,
    expander: Expander,
}

impl<'f, 's> Lowering<'f, 's> {
    /// Finds the rules. In GBNF the last one of a name counts, in EBNF there may be only one.
    fn collect(&mut self) -> Result<()> {
        for (at, rule) in self.file.rules.iter().enumerate() {
            let next = self.rules.len();
            let number = *self.names.entry(rule.name).or_insert(next);
            if number == next {
                self.rules.push(at);
                continue;
            }
            if self.dialect == Dialect::Ebnf {
                let first = self.file.rules[self.rules[number]].name_span.clone();
                let message = format!("`{}` is defined twice", rule.name);
                return Err(GrammarError::new(ErrorKind::Syntax, rule.name_span.clone(), message)
                    .with_label(first, "first defined here")
                    .with_help("join the two with `|`, or rename one"));
            }
            self.rules[number] = at;
        }
        let nonterminal = |&at: &usize| {
            let rule = &self.file.rules[at];
            Nonterminal { name: rule.name.to_owned(), span: Some(rule.name_span.clone()) }
        };
        self.expander.nonterminals = self.rules.iter().map(nonterminal).collect();
        self.regular = vec![None; self.rules.len()];
        Ok(())
    }

    fn start(&self, name: Option<&str>) -> Result<NonterminalId> {
        if let Some(&rule) = self.names.get(name.unwrap_or("root")) {
            return Ok(NonterminalId::new(rule));
        }
        if name.is_none() && self.dialect == Dialect::Ebnf && !self.rules.is_empty() {
            return Ok(NonterminalId::new(0));
        }
        let name = name.unwrap_or("root");
        let error =
            GrammarError::new(ErrorKind::Syntax, 0..0, format!("there is no rule `{name}` to start from"));
        const LISTED: usize = 20;
        let names = || self.rules.iter().map(|&at| self.file.rules[at].name);
        let listed = names().take(LISTED).collect::<Vec<_>>().join(", ");
        let more = if self.rules.len() > LISTED { ", …" } else { "" };
        Err(match closest(name, names()) {
            _ if listed.is_empty() => error.with_help(format!("the file has no rules; write `{name} ::= …`")),
            Some(near) => error.with_help(format!("did you mean `{near}`? the rules are {listed}{more}")),
            None => error.with_help(format!("name another start; the rules are {listed}{more}")),
        })
    }

    /// Refuses names without a rule.
    fn resolve(&self) -> Result<()> {
        for node in &self.file.nodes {
            let NodeKind::Rule(name) = node.kind else { continue };
            if self.names.contains_key(name) {
                continue;
            }
            let message = format!("there is no rule `{name}`");
            let error = GrammarError::new(ErrorKind::Syntax, node.span.clone(), message);
            return Err(match closest(name, self.rules.iter().map(|&at| self.file.rules[at].name)) {
                _ if name == "." => error.with_help("for any character write `[\\x00-\\U0010FFFF]`"),
                Some(near) => error.with_help(format!("did you mean `{near}`?")),
                None => error.with_help(format!("define it: `{name} ::= …`")),
            });
        }
        Ok(())
    }

    /// The nodes that have to be regular: those in differences.
    fn strict(&self) -> Vec<bool> {
        let mut strict = vec![false; self.file.nodes.len()];
        for (id, node) in self.file.nodes.iter().enumerate().rev() {
            match &node.kind {
                NodeKind::Difference { from, without } => {
                    strict[*from] = true;
                    strict[*without] = true;
                }
                NodeKind::Group(alternatives) if strict[id] => {
                    alternatives.iter().flatten().for_each(|&part| strict[part] = true);
                }
                NodeKind::Repeat { inner, .. } if strict[id] => strict[*inner] = true,
                _ => {}
            }
        }
        strict
    }

    // Regular rules.

    /// Finds what the rules match that differences name, those first that others are made of.
    fn find_regular(&mut self, strict: &[bool]) -> Result<()> {
        let file = self.file;
        let mut open = vec![false; self.rules.len()];
        for (id, _) in strict.iter().enumerate().filter(|&(_, &strict)| strict) {
            let NodeKind::Rule(name) = file.nodes[id].kind else { continue };
            // Depth first with an explicit stack of rules and the nodes of each that are still to look at.
            let enter = |rule: usize, rules: &[usize]| (rule, file.rules[rules[rule]].nodes.clone());
            let mut stack = vec![enter(self.names[name], &self.rules)];
            while let Some((rule, nodes)) = stack.last_mut() {
                let rule = *rule;
                if self.regular[rule].is_some() {
                    stack.pop();
                    continue;
                }
                open[rule] = true;
                let names = |part: NodeId| match file.nodes[part].kind {
                    NodeKind::Rule(name) => Some((self.names[name], part)),
                    _ => None,
                };
                match nodes.find_map(names) {
                    Some((part, node)) if open[part] => return Err(self.recursive(part, node, id)),
                    Some((part, _)) => stack.push(enter(part, &self.rules)),
                    None => {
                        open[rule] = false;
                        stack.pop();
                        self.regular[rule] = Some(self.regular_rule(rule)?);
                    }
                }
            }
        }
        Ok(())
    }

    fn recursive(&self, rule: usize, node: NodeId, named: NodeId) -> GrammarError {
        let name = self.file.rules[self.rules[rule]].name;
        let message =
            format!("`{name}` is defined by itself here, and a difference needs regular expressions");
        GrammarError::new(ErrorKind::Unsupported, self.file.nodes[node].span.clone(), message)
            .with_label(self.file.nodes[named].span.clone(), "this is in a difference")
            .with_help("repeat with `*` or `+`, or write the rules of the difference out")
    }

    fn regular_rule(&mut self, rule: usize) -> Result<Piece> {
        let rule = &self.file.rules[self.rules[rule]];
        let mut values = Values::new(rule.nodes.start);
        for id in rule.nodes.clone() {
            let value = self.node(id, true, &mut values, rule.name)?;
            values.push(value);
        }
        match self.join(&rule.alternatives, true, &mut values, rule.name, &rule.name_span)? {
            Value::Piece(piece, _) => Ok(piece),
            Value::Rules(_) => unreachable!("what is strict is a piece"),
        }
    }

    // Rules.

    fn lower_rules(&mut self, strict: &[bool]) -> Result<()> {
        for at in 0..self.rules.len() {
            let rule = &self.file.rules[self.rules[at]];
            let mut values = Values::new(rule.nodes.start);
            for id in rule.nodes.clone() {
                let value = self.node(id, strict[id], &mut values, rule.name)?;
                values.push(value);
            }
            let mut joined = Vec::with_capacity(rule.alternatives.len());
            for sequence in &rule.alternatives {
                joined.push(self.sequence(sequence, false, &mut values, rule.name, &rule.name_span)?);
            }
            let mut alternatives = Vec::with_capacity(joined.len());
            for value in join_literals(joined) {
                extend(&mut alternatives, self.alternatives(value)?);
            }
            self.expander.define(NonterminalId::new(at), alternatives, &rule.name_span)?;
        }
        Ok(())
    }

    /// What a node stands for, given its parts. If it is strict, that is a piece.
    fn node(&mut self, id: NodeId, strict: bool, values: &mut Values, rule: &str) -> Result<Value> {
        let node = &self.file.nodes[id];
        let span = &node.span;
        let piece = match &node.kind {
            NodeKind::Rule(name) => {
                let number = self.names[name];
                let Some(piece) = self.regular[number].as_ref().filter(|_| strict) else {
                    return Ok(Value::Rules(vec![vec![Symbol::Nonterminal(NonterminalId::new(number))]]));
                };
                self.expander.budget.spend(piece.size, span)?;
                piece.clone()
            }
            NodeKind::Text { raw, escapes: true } => {
                Piece::literal(&text::string(raw, span.start + 1, self.dialect)?)
            }
            NodeKind::Text { raw, escapes: false } => Piece::literal(raw),
            NodeKind::Class(raw) => Piece::class(text::class(raw, span.start + 1, self.dialect)?),
            NodeKind::Char(digits) => {
                let invalid = |message| GrammarError::new(ErrorKind::Syntax, span.clone(), message);
                let c = text::numbered(digits).map_err(invalid)?;
                Piece::literal(c.encode_utf8(&mut [0; 4]))
            }
            NodeKind::Any => Piece::class(ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])),
            NodeKind::Special(token) => {
                if strict {
                    let message = "a token of the vocabulary cannot be part of a difference";
                    return Err(GrammarError::new(ErrorKind::Unsupported, span.clone(), message)
                        .with_help("a difference is one of texts; name the token beside it"));
                }
                let name = || {
                    anonymous(
                        self.source[span.clone()].to_owned(),
                        TerminalKind::Special(token.clone()),
                        span.clone(),
                    )
                };
                let terminal = self.terminals.get(special_key(token), name);
                return Ok(Value::Rules(vec![vec![Symbol::Terminal(terminal)]]));
            }
            NodeKind::Group(alternatives) => return self.join(alternatives, strict, values, rule, span),
            NodeKind::Repeat { inner, min, max } => {
                return self.repeat(values.take(*inner), *min, *max, strict, Place { rule, span });
            }
            NodeKind::Difference { from, without } => match (values.take(*from), values.take(*without)) {
                (Value::Piece(from, _), Value::Piece(without, _)) => {
                    self.checked(from.without(without), span)?
                }
                _ => unreachable!("the sides of a difference are strict"),
            },
        };
        Ok(Value::Piece(piece, span.clone()))
    }

    /// A strict piece, if it is within the limits.
    fn checked(&self, piece: Piece, span: &Span) -> Result<Piece> {
        if piece.depth > DEPTH_LIMIT {
            let message = format!("this difference nests deeper than {DEPTH_LIMIT} operations");
            return Err(GrammarError::new(ErrorKind::Limit, span.clone(), message)
                .with_help("write it with fewer parentheses and repetitions"));
        }
        // The price is paid where the piece becomes a terminal; here it only has to be one that can be paid.
        self.expander.budget.clone().spend(piece.size, span)?;
        Ok(piece)
    }

    fn repeat(
        &mut self,
        value: Value,
        min: u32,
        max: Option<u32>,
        strict: bool,
        place: Place<'_>,
    ) -> Result<Value> {
        let inner = match value {
            Value::Piece(piece, _) if strict => {
                let piece = self.checked(piece.repeat(min, max), place.span)?;
                return Ok(Value::Piece(piece, place.span.clone()));
            }
            Value::Piece(piece, _) if self.may_repeat(&piece, min, max) => {
                return Ok(Value::Piece(piece.repeat(min, max), place.span.clone()));
            }
            value => self.alternatives(value)?,
        };
        Ok(Value::Rules(self.expander.repeat(inner, min, max, place)?))
    }

    fn may_repeat(&self, piece: &Piece, min: u32, max: Option<u32>) -> bool {
        let counts = max.unwrap_or(min) <= REPEAT_LIMIT && min <= REPEAT_LIMIT;
        self.join && counts && piece.repeated_size(min, max) <= PIECE_LIMIT && piece.depth + 2 <= DEPTH_LIMIT
    }

    /// `… | …` in a group.
    fn join(
        &mut self,
        alternatives: &[Vec<NodeId>],
        strict: bool,
        values: &mut Values,
        rule: &str,
        span: &Span,
    ) -> Result<Value> {
        let mut joined = Vec::with_capacity(alternatives.len());
        for sequence in alternatives {
            joined.push(self.sequence(sequence, strict, values, rule, span)?);
        }
        joined = join_literals(joined);
        if joined.len() == 1 {
            return Ok(match joined.swap_remove(0) {
                Value::Piece(piece, _) => Value::Piece(piece, span.clone()),
                Value::Rules(rules) => Value::Rules(self.narrow(rules, Place { rule, span })?),
            });
        }
        let regular = joined.iter().try_fold((1usize, 0), |(size, depth), value| match value {
            Value::Piece(piece, _) => Some((size.saturating_add(piece.size), piece.depth.max(depth))),
            Value::Rules(_) => None,
        });
        if let Some((size, depth)) = regular
            && (strict || (self.join && size <= PIECE_LIMIT && depth + 2 <= DEPTH_LIMIT))
        {
            let pieces = joined.into_iter().filter_map(|value| match value {
                Value::Piece(piece, _) => Some(piece),
                Value::Rules(_) => None,
            });
            let mut piece = Piece::alternate(pieces.collect());
            if strict {
                piece = self.checked(piece, span)?;
            }
            return Ok(Value::Piece(piece, span.clone()));
        }
        let mut rules = Vec::new();
        for value in joined {
            extend(&mut rules, self.alternatives(value)?);
        }
        Ok(Value::Rules(self.narrow(rules, Place { rule, span })?))
    }

    /// One symbol for all if they are many, so that groups around them do not copy them again and again.
    fn narrow(&mut self, rules: Alternatives, place: Place<'_>) -> Result<Alternatives> {
        if rules.iter().map(|sequence| sequence.len() + 1).sum::<usize>() <= WIDE {
            return Ok(rules);
        }
        Ok(vec![vec![self.expander.group("group", rules, place)?]])
    }

    /// One after the other: pieces side by side are joined.
    fn sequence(
        &mut self,
        nodes: &[NodeId],
        strict: bool,
        values: &mut Values,
        rule: &str,
        span: &Span,
    ) -> Result<Value> {
        let mut joined: Vec<Value> = Vec::with_capacity(nodes.len());
        for &node in nodes {
            match (joined.last_mut(), values.take(node)) {
                (Some(Value::Piece(last, place)), Value::Piece(next, end))
                    if strict || (self.join && last.size.saturating_add(next.size) <= PIECE_LIMIT) =>
                {
                    last.append(next);
                    place.end = end.end;
                }
                (_, value) => joined.push(value),
            }
        }
        if joined.len() == 1 {
            return Ok(joined.swap_remove(0));
        }
        if joined.is_empty() {
            return Ok(Value::Piece(Piece::default(), span.clone()));
        }
        let mut items = Vec::with_capacity(joined.len());
        for value in joined {
            items.push(self.alternatives(value)?);
        }
        Ok(Value::Rules(self.expander.sequence(items, Place { rule, span })?))
    }

    /// A value as alternatives: a piece becomes a terminal.
    fn alternatives(&mut self, value: Value) -> Result<Alternatives> {
        match value {
            Value::Rules(alternatives) => Ok(alternatives),
            Value::Piece(piece, _) if piece.is_empty() => Ok(vec![vec![]]),
            Value::Piece(piece, span) => {
                self.expander.budget.spend(piece.size, &span)?;
                let pattern = piece.into_pattern();
                if matches!(&pattern, Pattern::Regex(hir) if matches!(hir.kind(), HirKind::Empty)) {
                    return Ok(vec![vec![]]);
                }
                let source = self.source;
                let terminal = self.terminals.get(pattern_key(&pattern), || {
                    let text = &source[span.clone()];
                    // What goes over several lines may have comments in it.
                    let name =
                        if text.contains(['\n', '\r']) { pattern.to_string() } else { text.to_owned() };
                    let kind = match &pattern {
                        Pattern::Regex(hir) if matches!(hir.kind(), HirKind::Literal(_)) => {
                            TerminalKind::Literal(pattern.clone())
                        }
                        _ => TerminalKind::Pattern(pattern.clone()),
                    };
                    anonymous(name, kind, span.clone())
                });
                Ok(vec![vec![Symbol::Terminal(terminal)]])
            }
        }
    }
}

/// Of many alternatives that are literals, one: together they have an automaton no larger than they are long,
/// and a terminal each would cost more the more there are.
fn join_literals(values: Vec<Value>) -> Vec<Value> {
    let is_literal = |value: &Value| matches!(value, Value::Piece(piece, _) if piece.is_literal());
    if values.iter().filter(|value| is_literal(value)).count() <= WIDE {
        return values;
    }
    let (mut literals, mut place, mut others) = (Vec::new(), None::<Span>, Vec::new());
    for value in values {
        match value {
            Value::Piece(piece, span) if piece.is_literal() => {
                let start = place.as_ref().map_or(span.start, |place| place.start);
                place = Some(start..span.end);
                literals.push(piece);
            }
            value => others.push(value),
        }
    }
    others.insert(0, Value::Piece(Piece::alternate(literals), place.unwrap_or_default()));
    others
}

/// Adds alternatives to others, by moving them where there are none.
fn extend(alternatives: &mut Alternatives, more: Alternatives) {
    if alternatives.is_empty() {
        *alternatives = more;
    } else {
        alternatives.extend(more);
    }
}

/// The values of the nodes so far; each is taken once.
struct Values {
    first: NodeId,
    values: Vec<Option<Value>>,
}

impl Values {
    fn new(first: NodeId) -> Self {
        Self { first, values: Vec::new() }
    }

    fn push(&mut self, value: Value) {
        self.values.push(Some(value));
    }

    fn take(&mut self, node: NodeId) -> Value {
        self.values[node - self.first].take().expect("a node is part of one other, and stands before it")
    }
}
