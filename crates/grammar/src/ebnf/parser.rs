//! Tokens to tree.
//!
//! Parentheses are kept on an explicit stack, so nesting is limited by memory only. The cost is the length of
//! the file.
//!
//! ```text
//! rule: [CLASS] NAME "::=" alternatives        alternatives: sequence ("|" sequence)*
//! sequence: difference*                         difference: item ("-" item)*
//! item: atom ("?" | "*" | "+" | "{" count ["," [count]] "}")*
//! ```
//!
//! In GBNF a rule ends with its line, unless that ends with `|` or within parentheses; in EBNF where the next
//! one begins.

use std::collections::HashSet;

use super::Dialect;
use super::ast::{Alternatives, File, Node, NodeId, NodeKind, Rule};
use super::lexer::{Token, TokenKind, tokens};
use crate::diagnostic::{ErrorKind, GrammarError};
use crate::ir::Span;

type Result<T> = std::result::Result<T, GrammarError>;

/// Reads a whole file.
pub(crate) fn parse(source: &str, dialect: Dialect) -> Result<File<'_>> {
    let tokens = tokens(source, dialect)?;
    let defined = tokens.windows(2).filter(|pair| pair[1].kind == TokenKind::Assign);
    let defined = defined.map(|pair| &source[pair[0].span.clone()]).collect();
    let mut parser = Parser { source, dialect, tokens, at: 0, nodes: Vec::new(), defined };
    let mut rules = Vec::new();
    while parser.token().kind != TokenKind::End {
        rules.push(parser.rule()?);
    }
    Ok(File { nodes: parser.nodes, rules })
}

struct Parser<'s> {
    source: &'s str,
    dialect: Dialect,
    /// The last one is `End`, and is never stepped over.
    tokens: Vec<Token<'s>>,
    at: usize,
    nodes: Vec<Node<'s>>,
    /// The names of all rules.
    defined: HashSet<&'s str>,
}

/// An open parenthesis, or the whole right side.
struct Frame {
    open: Option<Span>,
    alternatives: Alternatives,
    sequence: Vec<NodeId>,
    /// The left side of a difference whose right side comes, and the place of its minus.
    minus: Option<(NodeId, Span)>,
    /// Whether an item stands before the next token in this alternative, after the minus if there is one.
    has_item: bool,
}

impl Frame {
    fn new(open: Option<Span>) -> Self {
        Self { open, alternatives: Vec::new(), sequence: Vec::new(), minus: None, has_item: false }
    }
}

impl<'s> Parser<'s> {
    fn token(&self) -> &Token<'s> {
        &self.tokens[self.at]
    }

    fn kind(&self, ahead: usize) -> Option<&TokenKind<'s>> {
        self.tokens.get(self.at + ahead).map(|token| &token.kind)
    }

    /// Steps over the next token.
    fn bump(&mut self) -> Token<'s> {
        let token = self.token().clone();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    fn found(&self) -> String {
        match self.token().kind {
            TokenKind::End => "the end of the file".to_owned(),
            _ => {
                const SHOWN: usize = 40;
                let text = &self.source[self.token().span.clone()];
                let cut = text.char_indices().nth(SHOWN).map_or(text.len(), |(at, _)| at);
                format!("`{}{}`", &text[..cut], if cut < text.len() { "…" } else { "" })
            }
        }
    }

    fn expected(&self, what: &str) -> GrammarError {
        let message = format!("expected {what}, found {}", self.found());
        GrammarError::new(ErrorKind::Syntax, self.token().span.clone(), message)
    }

    /// Whether a rule begins with the next token: a name before `::=`, perhaps with a number in brackets
    /// before it.
    fn at_rule(&self) -> bool {
        match self.token().kind {
            TokenKind::Name(_) if self.kind(1) == Some(&TokenKind::Assign) => true,
            TokenKind::Name(_) => self.has_attributes(),
            TokenKind::Class(number) => {
                self.token().first_of_line
                    && is_rule_number(number)
                    && matches!(self.kind(1), Some(TokenKind::Name(_)))
                    && self.kind(2) == Some(&TokenKind::Assign)
            }
            _ => false,
        }
    }

    /// Whether the name that comes next is that of a rule with attributes, as XGrammar has them:
    /// `name[capture] ::=`.
    fn has_attributes(&self) -> bool {
        self.dialect == Dialect::Ebnf
            && matches!(self.kind(1), Some(TokenKind::Class(_)))
            && self.kind(2) == Some(&TokenKind::Assign)
            && self.tokens[self.at + 1].span.start == self.token().span.end
    }

    fn rule(&mut self) -> Result<Rule<'s>> {
        if self.dialect == Dialect::Ebnf && matches!(self.token().kind, TokenKind::Class(_)) && self.at_rule()
        {
            self.bump();
        }
        let TokenKind::Name(name) = self.token().kind else {
            let error = self.expected("a rule, `name ::= …`");
            return Err(match (self.dialect, &self.token().kind) {
                (Dialect::Gbnf, TokenKind::Or) => {
                    error.with_help("a rule goes on on the next line only after `|` or within parentheses")
                }
                (Dialect::Gbnf, _) if self.at > 0 => {
                    error.with_help("a rule ends with its line; it goes on after `|` or within parentheses")
                }
                _ => error,
            });
        };
        if self.has_attributes() {
            return Err(self.refuse_attributes());
        }
        let name_span = self.bump().span;
        let same_line = self.dialect == Dialect::Ebnf || !self.token().first_of_line;
        if self.token().kind != TokenKind::Assign || !same_line {
            let error = self.expected(&format!("`::=` after the name `{name}`"));
            return Err(match self.token().kind {
                TokenKind::Equal => error.with_help("a rule is written `name ::= …`"),
                _ => error,
            });
        }
        self.bump();
        let first = self.nodes.len();
        let alternatives = self.alternatives()?;
        Ok(Rule { name, name_span, alternatives, nodes: first..self.nodes.len() })
    }

    /// Whether the right side of a rule is over, parentheses apart.
    fn ends_rule(&self) -> Result<bool> {
        let token = self.token();
        if token.kind == TokenKind::End {
            return Ok(true);
        }
        if self.dialect == Dialect::Gbnf {
            let before = &self.tokens[self.at - 1].kind;
            return Ok(token.first_of_line && !matches!(before, TokenKind::Assign | TokenKind::Or));
        }
        if self.at_rule() && !token.first_of_line {
            return Err(self.expected("an expression or the end of the line").with_help(OWN_LINE));
        }
        Ok(self.at_rule())
    }

    /// The right side of a rule.
    fn alternatives(&mut self) -> Result<Alternatives> {
        let mut frame = Frame::new(None);
        let mut outer: Vec<Frame> = Vec::new();
        loop {
            let over = match frame.open {
                None => self.ends_rule()?,
                Some(_) => self.token().kind == TokenKind::End || self.at_rule(),
            };
            if over {
                let Some(open) = frame.open else { break };
                return Err(self.expected("`)`").with_label(open, "this is not closed"));
            }
            match self.token().kind {
                TokenKind::Or => {
                    self.bump();
                    self.end_alternative(&mut frame)?;
                }
                TokenKind::LeftParen => {
                    let open = self.bump().span;
                    outer.push(std::mem::replace(&mut frame, Frame::new(Some(open))));
                }
                TokenKind::RightParen => {
                    let Some(open) = frame.open.clone() else {
                        return Err(self.expected("an expression or the end of the rule"));
                    };
                    let end = self.bump().span.end;
                    self.end_alternative(&mut frame)?;
                    let inner = std::mem::replace(
                        &mut frame,
                        outer.pop().expect("every open frame has an outer one"),
                    );
                    self.item(&mut frame, NodeKind::Group(inner.alternatives), open.start..end)?;
                }
                TokenKind::Question => self.repeat(&mut frame, 0, Some(1))?,
                TokenKind::Star => self.repeat(&mut frame, 0, None)?,
                TokenKind::Plus => self.repeat(&mut frame, 1, None)?,
                TokenKind::LeftBrace => self.braces(&mut frame)?,
                TokenKind::Minus => {
                    if !frame.has_item {
                        return Err(self.nothing_before());
                    }
                    self.end_difference(&mut frame)?;
                    let span = self.bump().span;
                    let from = frame.sequence.pop().expect("there is an item");
                    frame.minus = Some((from, span));
                    frame.has_item = false;
                }
                _ => self.atom(&mut frame)?,
            }
        }
        self.end_alternative(&mut frame)?;
        Ok(frame.alternatives)
    }

    fn end_alternative(&mut self, frame: &mut Frame) -> Result<()> {
        self.end_difference(frame)?;
        frame.alternatives.push(std::mem::take(&mut frame.sequence));
        frame.has_item = false;
        Ok(())
    }

    /// Makes a difference of what stands on both sides of a minus, if there is one.
    fn end_difference(&mut self, frame: &mut Frame) -> Result<()> {
        let Some((from, span)) = frame.minus.take() else { return Ok(()) };
        if !frame.has_item {
            return Err(GrammarError::new(ErrorKind::Syntax, span, "nothing follows this `-`"));
        }
        let without = frame.sequence.pop().expect("there is an item");
        let span = self.nodes[from].span.start..self.nodes[without].span.end;
        let node = self.add(NodeKind::Difference { from, without }, span);
        frame.sequence.push(node);
        Ok(())
    }

    fn add(&mut self, kind: NodeKind<'s>, span: Span) -> NodeId {
        self.nodes.push(Node { kind, span });
        self.nodes.len() - 1
    }

    /// Adds an item to the current sequence.
    fn item(&mut self, frame: &mut Frame, kind: NodeKind<'s>, span: Span) -> Result<()> {
        if frame.has_item {
            self.end_difference(frame)?;
        }
        let node = self.add(kind, span);
        frame.sequence.push(node);
        frame.has_item = true;
        Ok(())
    }

    fn atom(&mut self, frame: &mut Frame) -> Result<()> {
        self.refuse_extensions()?;
        let kind = match &self.token().kind {
            TokenKind::Name(name) => NodeKind::Rule(name),
            TokenKind::Text { raw, escapes } => NodeKind::Text { raw, escapes: *escapes },
            TokenKind::Class(raw) => NodeKind::Class(raw),
            TokenKind::Char(digits) => NodeKind::Char(digits),
            TokenKind::Any => NodeKind::Any,
            TokenKind::Special(token) => NodeKind::Special(token.clone()),
            TokenKind::Equal => {
                let error = self.expected("an expression or the end of the rule");
                return Err(error.with_help("a rule is written `name ::= …`"));
            }
            TokenKind::Assign => {
                let error = self.expected("an expression or the end of the line");
                return Err(error.with_help(OWN_LINE));
            }
            _ => return Err(self.expected("an expression or the end of the rule")),
        };
        let span = self.bump().span;
        self.item(frame, kind, span)
    }

    /// `name[capture, max_tokens=3] ::= …`
    fn refuse_attributes(&self) -> GrammarError {
        let span = self.tokens[self.at + 1].span.clone();
        let inner = &self.source[span.start + 1..span.end - 1];
        let names: Vec<String> = inner
            .split(',')
            .map(|one| format!("`{}`", one.split('=').next().unwrap_or(one).trim()))
            .collect();
        let message = format!("attributes of rules ({}) are not supported", names.join(", "));
        let help = match inner.contains("max_") {
            true => "leave them out, and bound how often something is repeated instead: `[a-z]{1,20}`",
            false => "leave them out: they are XGrammar's and say nothing about texts",
        };
        GrammarError::new(ErrorKind::Unsupported, span, message).with_help(help)
    }

    /// Refuses what XGrammar has beyond context-free rules.
    fn refuse_extensions(&self) -> Result<()> {
        let (what, help) = match self.token().kind {
            TokenKind::Lookahead => (
                "a lookahead assertion is".to_owned(),
                "leave it out: in XGrammar it speeds up masks, and masks are exact here without it",
            ),
            TokenKind::Name(name) if self.is_macro(name) => (
                // A rule may have the name of a macro where no parenthesis follows.
                format!("XGrammar's macro `{name}(…)` is"),
                match name {
                    "Token" => "name tokens of the vocabulary as `(<[7]> | <[8]>)`",
                    "ExcludeToken" => "describe the text that may stand here, such as `[^<]*`",
                    "Regex" => "write the expression with strings, classes and repetitions",
                    "TagDispatch" | "TokenTagDispatch" => {
                        "write the tags into rules: `root ::= ([^<] | \"<tool>\" call \"</tool>\")*`"
                    }
                    _ => "write rules for the texts that may stand here",
                },
            ),
            _ => return Ok(()),
        };
        let message = format!("{what} not supported");
        Err(GrammarError::new(ErrorKind::Unsupported, self.token().span.clone(), message).with_help(help))
    }

    /// Whether the name that comes next is that of a macro: one that we know, or one that looks like them.
    /// In GBNF there are none, so that a rule may have the name.
    fn is_macro(&self, name: &str) -> bool {
        let is_rule = self.defined.contains(name);
        let adjacent =
            self.tokens.get(self.at + 1).is_some_and(|open| open.span.start == self.token().span.end);
        let looks_so = adjacent && name.starts_with(|c: char| c.is_ascii_uppercase()) && !is_rule;
        let known = MACROS.contains(&name) && (self.dialect == Dialect::Ebnf || !is_rule);
        self.kind(1) == Some(&TokenKind::LeftParen) && (known || looks_so)
    }

    fn nothing_before(&self) -> GrammarError {
        let message = format!("nothing before {} that it could apply to", self.found());
        GrammarError::new(ErrorKind::Syntax, self.token().span.clone(), message)
    }

    fn repeat(&mut self, frame: &mut Frame, min: u32, max: Option<u32>) -> Result<()> {
        if !frame.has_item {
            return Err(self.nothing_before());
        }
        let end = self.bump().span.end;
        let inner = frame.sequence.pop().expect("there is an item");
        let span = self.nodes[inner].span.start..end;
        let node = self.add(NodeKind::Repeat { inner, min, max }, span);
        frame.sequence.push(node);
        Ok(())
    }

    /// `{n}`, `{n,}` or `{n,m}`
    fn braces(&mut self, frame: &mut Frame) -> Result<()> {
        if !frame.has_item {
            return Err(self.nothing_before());
        }
        let open = self.bump().span;
        if self.token().kind == TokenKind::Comma {
            return Err(self.expected("a number").with_help("write `{0,n}` for at most n times"));
        }
        let min = self.count()?;
        let mut max = Some(min);
        if self.token().kind == TokenKind::Comma {
            self.bump();
            max = match self.token().kind {
                TokenKind::RightBrace => None,
                // As XGrammar prints it.
                TokenKind::Name("-1") if self.dialect == Dialect::Ebnf => {
                    self.bump();
                    None
                }
                _ => Some(self.count()?),
            };
        }
        if self.token().kind != TokenKind::RightBrace {
            return Err(self.expected("`}`").with_label(open, "this is not closed"));
        }
        if let Some(max) = max.filter(|&max| max < min) {
            let span = open.start..self.token().span.end;
            let message = format!("`{{{min},{max}}}` allows no number of times");
            return Err(GrammarError::new(ErrorKind::Syntax, span, message)
                .with_help("the smaller number comes first"));
        }
        self.repeat(frame, min, max)
    }

    fn count(&mut self) -> Result<u32> {
        let digits = match self.token().kind {
            TokenKind::Name(text) | TokenKind::Number(text) => text,
            _ => "",
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.expected("a number"));
        }
        let count = digits.parse().map_err(|_| {
            let message = format!("{digits} times is too much: at most {}", u32::MAX);
            GrammarError::new(ErrorKind::Limit, self.token().span.clone(), message)
        })?;
        self.bump();
        Ok(count)
    }
}

const OWN_LINE: &str = "a rule begins a line of its own";

/// What XGrammar computes where a name of a rule could stand.
const MACROS: [&str; 5] = ["TagDispatch", "Token", "ExcludeToken", "TokenTagDispatch", "Regex"];

/// Whether a class is the number of a production in a W3C specification: `[1]`, `[4a]`.
fn is_rule_number(raw: &str) -> bool {
    let raw = raw.trim_matches([' ', '\t']);
    let letters = raw.trim_start_matches(|c: char| c.is_ascii_digit());
    letters.len() < raw.len() && letters.len() <= 1 && letters.bytes().all(|byte| byte.is_ascii_lowercase())
}
