//! Rules as patterns, where a bound on tokens is kept for their texts.
//!
//! Tokens are counted in pieces. So a rule with a bound becomes one terminal: the rules that it names are
//! written into it. That can be done as long as none of them is defined by itself, and nothing in them is
//! more than text.

use std::collections::{HashMap, HashSet};

use super::{Content, Lowering};
use crate::diagnostic::{ErrorKind, GrammarError};
use crate::expand::Expander;
use crate::ir::{NonterminalId, Span, Symbol};
use crate::lark::ast::{Attributes, Expansions, Item, NodeKind};
use crate::lark::names::ScopeId;
use crate::lark::pattern::{Composer, Piece};

type Result<T> = std::result::Result<T, GrammarError>;

/// A rule of which the rules that it names are looked at, one after the other.
struct Open {
    rule: usize,
    named: Vec<(usize, Span)>,
    n_done: usize,
}

impl<'f> Lowering<'f> {
    /// The texts of a rule whose tokens are bounded, as a pattern.
    pub(super) fn inlined(&mut self, rule: usize) -> Result<Piece> {
        let mut pieces: HashMap<usize, Piece> = HashMap::new();
        let mut stack = vec![Open { rule, named: self.named_rules(rule, rule)?, n_done: 0 }];
        while let Some(top) = stack.last_mut() {
            let next = top.named.get(top.n_done).cloned();
            top.n_done += 1;
            let Some((part, span)) = next else {
                let done = top.rule;
                stack.pop();
                let piece = self.piece_of_rule(done, &pieces)?;
                pieces.insert(done, piece);
                continue;
            };
            if stack.iter().any(|open| open.rule == part) {
                let (name, of) = (&self.names.rules[part].name, &self.names.rules[rule].name);
                let message = format!(
                    "`{name}` is defined by itself, and `max_tokens` of `{of}` bounds the tokens of a text \
                     without recursion only"
                );
                return Err(GrammarError::new(ErrorKind::Unsupported, span, message)
                    .with_label(self.names.rules[rule].span.clone(), "bounded here")
                    .with_help("repeat with `*` or `+`, or bound the rules within"));
            }
            if !pieces.contains_key(&part) {
                self.inlined.push(part);
                let named = self.named_rules(part, rule)?;
                stack.push(Open { rule: part, named, n_done: 0 });
            }
        }
        Ok(pieces.remove(&rule).expect("it was done last"))
    }

    /// Marks rules as made up that were written into terminals and that nothing else leads to: nobody has to
    /// be warned of them.
    pub(super) fn hide_inlined(&self, start: NonterminalId, expander: &mut Expander) {
        if self.inlined.is_empty() {
            return;
        }
        let mut named: HashMap<NonterminalId, Vec<NonterminalId>> = HashMap::new();
        for rule in &expander.rules {
            let parts = rule.rhs.iter().filter_map(|symbol| match symbol {
                Symbol::Nonterminal(part) => Some(*part),
                Symbol::Terminal(_) => None,
            });
            named.entry(rule.lhs).or_default().extend(parts);
        }
        let (mut used, mut agenda) = (HashSet::new(), vec![start]);
        while let Some(nonterminal) = agenda.pop() {
            if used.insert(nonterminal) {
                agenda.extend(named.get(&nonterminal).into_iter().flatten());
            }
        }
        let inlined = self.inlined.iter().filter_map(|rule| self.nonterminals.get(rule));
        for &nonterminal in inlined.filter(|nonterminal| !used.contains(nonterminal)) {
            let name = &expander.nonterminals[nonterminal.index()].name;
            if !name.starts_with("__") {
                expander.rename(nonterminal, format!("__{name}"));
            }
        }
    }

    fn bodies(&self, rule: usize) -> Vec<(ScopeId, &'f Expansions)> {
        self.names.rules[rule].bodies.clone()
    }

    /// The rules that one names, with the places; `of` is the rule with the bound.
    fn named_rules(&mut self, rule: usize, of: usize) -> Result<Vec<(usize, Span)>> {
        let mut named = Vec::new();
        for (scope, body) in self.bodies(rule) {
            self.budget.spend(body.nodes.len(), &body.span)?;
            for node in &self.tree(scope).nodes[body.nodes.clone()] {
                let NodeKind::Rule(name) = &node.kind else { continue };
                let Some(part) = self.rule(scope, name)? else {
                    return Err(self.undefined(name, &node.span));
                };
                self.check_inlined(part, of, &node.span)?;
                named.push((part, node.span.clone()));
            }
        }
        Ok(named)
    }

    /// Whether a rule can be part of one with a bound.
    fn check_inlined(&self, part: usize, of: usize, span: &Span) -> Result<()> {
        let rule = &self.names.rules[part];
        let changes = |attributes: &Attributes| attributes.stop.is_some() || attributes.max_tokens.is_some();
        let why = if !rule.parameters.is_empty() {
            "has parameters"
        } else if part != of && rule.attributes.is_some_and(changes) {
            "has attributes that change its texts"
        } else if self.trees[0].items.iter().any(|item| matches!(item, Item::Ignore { .. })) {
            "can have ignored text beside it"
        } else {
            return Ok(());
        };
        let (name, of) = (&rule.name, &self.names.rules[of]);
        let message =
            format!("`{name}` {why}, so it is no part of `{}` with its bound `max_tokens`", of.name);
        Err(GrammarError::new(ErrorKind::Unsupported, span.clone(), message)
            .with_label(of.span.clone(), "bounded here")
            .with_help("write what it matches in its place, or bound the rules within"))
    }

    /// The texts of a rule, given those of the rules that it names.
    fn piece_of_rule(&mut self, rule: usize, pieces: &HashMap<usize, Piece>) -> Result<Piece> {
        let mut alternatives = Vec::with_capacity(1);
        // As in Lark, what extends comes first.
        for (scope, body) in self.bodies(rule).into_iter().rev() {
            let mut parts: HashMap<&'f str, Piece> = HashMap::new();
            for node in &self.tree(scope).nodes[body.nodes.clone()] {
                match &node.kind {
                    NodeKind::Rule(name) => {
                        let part = self.rule(scope, name)?;
                        let piece = part.and_then(|part| pieces.get(&part));
                        parts.extend(piece.map(|piece| (name.as_ref(), piece.clone())));
                    }
                    NodeKind::Terminal(name) => {
                        let Some(part) = self.terminal(scope, name)? else {
                            return Err(self.undefined(name, &node.span));
                        };
                        let entry = &self.entries[part];
                        if let (Content::Pattern(piece), None) = (&entry.content, entry.max_tokens) {
                            parts.insert(name.as_ref(), piece.clone());
                        }
                    }
                    _ => {}
                }
            }
            let known = |node: &NodeKind<'f>| match node {
                NodeKind::Rule(name) | NodeKind::Terminal(name) => parts.get(name.as_ref()).cloned(),
                _ => None,
            };
            let (file, budget) = (self.tree(scope), &mut self.budget);
            let mut composer = Composer { file, budget };
            let composed = composer.compose(&body.alternatives, body.nodes.clone(), &body.span, known);
            alternatives.push(composed.map_err(|error| {
                let help = "`max_tokens` bounds strings, regular expressions, terminals, and rules of these";
                error.with_help(help)
            })?);
        }
        match &alternatives[..] {
            [_] => Ok(alternatives.swap_remove(0)),
            _ => Piece::alternate(alternatives, &self.names.rules[rule].span),
        }
    }
}
