//! Tokens to tree.
//!
//! Parentheses are kept on an explicit stack, so nesting is limited by memory only. The cost is the length of the file.
//!
//! ```text
//! expansions: alias ("|" alias)*            alias: conjunction ["->" name]
//! conjunction: sequence ("&" sequence)*     sequence: expr*
//! expr: "~"* atom ["?" | "*" | "+" | "~" NUMBER [".." NUMBER]]
//! ```

use super::ast::{Expansions, File, Item, Name, Node, NodeId, NodeKind};
use super::lexer::{Lexer, Token, TokenKind};
use crate::diagnostic::{ErrorKind, GrammarError};
use crate::ir::Span;

type Result<T> = std::result::Result<T, GrammarError>;

/// Reads a whole file.
pub(crate) fn parse(source: &str) -> Result<File<'_>> {
    let mut lexer = Lexer::new(source);
    let token = lexer.next()?;
    let mut parser = Parser { source, lexer, token, nodes: Vec::new(), items: Vec::new() };
    parser.file()?;
    Ok(File { nodes: parser.nodes, items: parser.items })
}

struct Parser<'s> {
    source: &'s str,
    lexer: Lexer<'s>,
    /// The token that comes next.
    token: Token<'s>,
    nodes: Vec<Node<'s>>,
    items: Vec<Item<'s>>,
}

/// An open parenthesis, or the whole right side.
struct Frame {
    /// The token that opened it, and what has to close it.
    open: Option<(Span, TokenKind<'static>)>,
    alternatives: Vec<Vec<NodeId>>,
    /// The conjuncts of the current alternative that are complete.
    conjuncts: Vec<Vec<NodeId>>,
    sequence: Vec<NodeId>,
    /// Where the `~` stand that wait for their atom.
    negations: Vec<Span>,
    /// Whether an operator may follow: the last thing read is an atom without one.
    atom_last: bool,
    /// Where the current alternative begins.
    start: usize,
    /// Whether the current alternative has its alias, which ends it.
    aliased: bool,
}

impl Frame {
    fn new(open: Option<(Span, TokenKind<'static>)>, start: usize) -> Self {
        Self {
            open,
            alternatives: Vec::new(),
            conjuncts: Vec::new(),
            sequence: Vec::new(),
            negations: Vec::new(),
            atom_last: false,
            start,
            aliased: false,
        }
    }
}

impl<'s> Parser<'s> {
    /// Takes the token and reads the next one.
    fn bump(&mut self) -> Result<Token<'s>> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Takes the token if it is this one.
    fn eat(&mut self, kind: &TokenKind<'_>) -> Result<bool> {
        let found = self.token.kind == *kind;
        if found {
            self.bump()?;
        }
        Ok(found)
    }

    fn expect(&mut self, kind: &TokenKind<'_>, what: &str) -> Result<Token<'s>> {
        if self.token.kind == *kind { self.bump() } else { Err(self.expected(what)) }
    }

    /// "expected …, found …" at the token.
    fn expected(&self, what: &str) -> GrammarError {
        let found = self.found();
        GrammarError::new(ErrorKind::Syntax, self.token.span.clone(), format!("expected {what}, found {found}"))
    }

    fn found(&self) -> String {
        match self.token.kind {
            TokenKind::End => "the end of the file".to_owned(),
            TokenKind::Newline => "the end of the line".to_owned(),
            _ => {
                let text = &self.source[self.token.span.clone()];
                match text.char_indices().nth(30) {
                    Some((end, _)) => format!("`{}…`", &text[..end]),
                    None => format!("`{text}`"),
                }
            }
        }
    }

    fn unsupported(&self, what: &str, help: &str) -> GrammarError {
        let message = format!("{what} not supported");
        GrammarError::new(ErrorKind::Unsupported, self.token.span.clone(), message).with_help(help)
    }

    fn file(&mut self) -> Result<()> {
        loop {
            match self.token.kind {
                TokenKind::End => return Ok(()),
                TokenKind::Newline => {
                    self.bump()?;
                    continue;
                }
                TokenKind::Directive(name) => self.directive(name)?,
                TokenKind::Question | TokenKind::Bang | TokenKind::RuleName(_) | TokenKind::TerminalName(_) => {
                    self.definition()?;
                }
                _ => {
                    let help = "an alternative on a line of its own begins with `|`";
                    return Err(self.expected("a rule, a terminal or a directive").with_help(help));
                }
            }
            if !matches!(self.token.kind, TokenKind::Newline | TokenKind::End) {
                return Err(self.expected("the end of the line"));
            }
        }
    }

    /// `?name.priority: …` or `NAME.priority: …`.
    fn definition(&mut self) -> Result<()> {
        let modifier = self.token.span.clone();
        let mut modified = false;
        while matches!(self.token.kind, TokenKind::Question | TokenKind::Bang) {
            self.bump()?;
            modified = true;
        }
        let is_rule = matches!(self.token.kind, TokenKind::RuleName(_));
        let name = self.name()?;
        if modified && !is_rule {
            let message = format!("`?` and `!` shape the trees of rules; `{}` is a terminal", name.text);
            return Err(GrammarError::new(ErrorKind::Syntax, modifier, message).with_help("leave them out"));
        }
        self.refuse_template()?;
        if self.token.kind == TokenKind::LeftBracket {
            return Err(self.unsupported("attributes of rules are", "leave out what stands in brackets"));
        }
        let priority = if self.eat(&TokenKind::Dot)? { self.priority()? } else { 0 };
        if self.token.kind != TokenKind::Colon {
            let help = "an alternative on a line of its own begins with `|`";
            return Err(self.expected(&format!("`:` after the name `{}`", name.text)).with_help(help));
        }
        self.bump()?;
        let body = self.expansions()?;
        self.items.push(if is_rule { Item::Rule { name, body } } else { Item::Terminal { name, priority, body } });
        Ok(())
    }

    fn refuse_template(&self) -> Result<()> {
        if self.token.kind == TokenKind::LeftBrace {
            return Err(self.unsupported("templates are", "write a rule out for each use of the template"));
        }
        Ok(())
    }

    fn name(&mut self) -> Result<Name<'s>> {
        match self.token.kind {
            TokenKind::RuleName(text) | TokenKind::TerminalName(text) => {
                let span = self.bump()?.span;
                Ok(Name { text, span })
            }
            _ => Err(self.expected("a name")),
        }
    }

    fn priority(&mut self) -> Result<i32> {
        let TokenKind::Number(digits) = self.token.kind else { return Err(self.expected("a priority after `.`")) };
        let priority = digits.parse().map_err(|_| {
            let message = format!("priority {digits} is out of range: from {} to {}", i32::MIN, i32::MAX);
            GrammarError::new(ErrorKind::TooLarge, self.token.span.clone(), message)
        })?;
        self.bump()?;
        Ok(priority)
    }

    fn directive(&mut self, name: &str) -> Result<()> {
        match name {
            "%ignore" => {
                self.bump()?;
                let body = self.expansions()?;
                if body.alternatives.iter().all(Vec::is_empty) {
                    return Err(GrammarError::new(ErrorKind::Syntax, body.span, "`%ignore` needs a terminal"));
                }
                self.items.push(Item::Ignore { body });
                Ok(())
            }
            "%import" => self.import(),
            _ => Err(self.unknown_directive(name)),
        }
    }

    fn unknown_directive(&self, name: &str) -> GrammarError {
        let help = match name {
            "%override" | "%extend" => "change the definition itself",
            "%declare" => "define the terminal, or name a token of the vocabulary as `<|name|>`",
            "%llguidance" => "remove the line; options are given outside of the grammar",
            "%json" | "%lark" | "%regex" => "write the rules out here",
            "%ignore" | "%import" => {
                let message = format!("`{name}` begins a line of its own");
                return GrammarError::new(ErrorKind::Syntax, self.token.span.clone(), message);
            }
            _ => {
                let message = format!("unknown directive `{name}`");
                return GrammarError::new(ErrorKind::Syntax, self.token.span.clone(), message)
                    .with_help("there are `%import` and `%ignore`");
            }
        };
        self.unsupported(&format!("`{name}` is"), help)
    }

    /// `%import common.X`, `%import common.X -> Y` or `%import common (X, Y)`.
    fn import(&mut self) -> Result<()> {
        self.bump()?;
        let only = "only the built-in library `common` can be imported; copy the definition into this file";
        if matches!(self.token.kind, TokenKind::Dot | TokenKind::DotDot) {
            return Err(self.unsupported("importing from other files is", only));
        }
        let mut path = vec![self.name()?];
        while self.eat(&TokenKind::Dot)? {
            path.push(self.name()?);
        }
        let span = path[0].span.start..path[path.len() - 1].span.end;
        if path[0].text != "common" || path.len() > 2 {
            let message = format!("importing from `{}` is not supported", path[0].text);
            return Err(GrammarError::new(ErrorKind::Unsupported, span, message).with_help(only));
        }
        if path.len() == 2 {
            let name = path.swap_remove(1);
            let alias = if self.eat(&TokenKind::Arrow)? { Some(self.name()?) } else { None };
            self.items.push(Item::Import { name, alias });
            return Ok(());
        }
        self.expect(&TokenKind::LeftParen, "`.` and a name, or names in parentheses")?;
        loop {
            let name = self.name()?;
            self.items.push(Item::Import { name, alias: None });
            if !self.eat(&TokenKind::Comma)? {
                break;
            }
        }
        self.expect(&TokenKind::RightParen, "`,` or `)`")?;
        Ok(())
    }

    fn add(&mut self, kind: NodeKind<'s>, span: Span) -> NodeId {
        self.nodes.push(Node { kind, span });
        self.nodes.len() - 1
    }

    /// The right side of a definition, up to the end of its line.
    fn expansions(&mut self) -> Result<Expansions> {
        let (first, start) = (self.nodes.len(), self.token.span.start);
        let mut frame = Frame::new(None, start);
        let mut outer: Vec<Frame> = Vec::new();
        let mut end = start;
        loop {
            let token_end = self.token.span.end;
            match self.token.kind {
                TokenKind::Newline | TokenKind::End => match frame.open {
                    None => break,
                    Some((open, close)) => return Err(self.unclosed(open, &close)),
                },
                TokenKind::Or => {
                    self.end_alternative(&mut frame)?;
                    self.bump()?;
                    frame.start = self.token.span.start;
                }
                TokenKind::RightParen | TokenKind::RightBracket => {
                    match &frame.open {
                        Some((_, close)) if *close == self.token.kind => {}
                        Some((open, close)) => return Err(self.unclosed(open.clone(), close)),
                        None => return Err(self.expected("an expression or the end of the line")),
                    }
                    self.end_alternative(&mut frame)?;
                    let close = self.bump()?;
                    let inner = std::mem::replace(&mut frame, outer.pop().expect("every open frame has an outer one"));
                    let (open, _) = inner.open.expect("looked at above");
                    let alternatives = inner.alternatives;
                    let kind = match close.kind {
                        TokenKind::RightBracket => NodeKind::Optional(alternatives),
                        _ => NodeKind::Group(alternatives),
                    };
                    let node = self.add(kind, open.start..close.span.end);
                    self.add_atom(&mut frame, node);
                }
                _ if frame.aliased => return Err(self.expected("`|` or the end of the alternative after its alias")),
                TokenKind::LeftParen | TokenKind::LeftBracket => {
                    let open = self.bump()?;
                    let close = match open.kind {
                        TokenKind::LeftBracket => TokenKind::RightBracket,
                        _ => TokenKind::RightParen,
                    };
                    let inner = Frame::new(Some((open.span, close)), self.token.span.start);
                    outer.push(std::mem::replace(&mut frame, inner));
                }
                TokenKind::And => {
                    self.end_conjunct(&mut frame)?;
                    self.bump()?;
                }
                TokenKind::Arrow => {
                    self.refuse_dangling(&frame)?;
                    self.bump()?;
                    self.name()?;
                    frame.aliased = true;
                }
                TokenKind::Tilde => self.tilde(&mut frame)?,
                TokenKind::Question => self.operator(&mut frame, 0, Some(1))?,
                TokenKind::Star => self.operator(&mut frame, 0, None)?,
                TokenKind::Plus => self.operator(&mut frame, 1, None)?,
                _ => self.atom(&mut frame)?,
            }
            end = end.max(token_end);
        }
        self.end_alternative(&mut frame)?;
        Ok(Expansions { alternatives: frame.alternatives, nodes: first..self.nodes.len(), span: start..end })
    }

    fn unclosed(&self, open: Span, close: &TokenKind<'_>) -> GrammarError {
        let what = if *close == TokenKind::RightParen { "`)`" } else { "`]`" };
        let error = self.expected(what).with_label(open, "this is not closed");
        match self.token.kind {
            TokenKind::Newline => error.with_help("a group goes on on the next line only if that begins with `|`"),
            _ => error,
        }
    }

    fn refuse_dangling(&self, frame: &Frame) -> Result<()> {
        match frame.negations.last() {
            Some(span) => Err(GrammarError::new(ErrorKind::Syntax, span.clone(), "nothing follows this `~`")),
            None => Ok(()),
        }
    }

    fn end_conjunct(&mut self, frame: &mut Frame) -> Result<()> {
        self.refuse_dangling(frame)?;
        frame.conjuncts.push(std::mem::take(&mut frame.sequence));
        frame.atom_last = false;
        Ok(())
    }

    fn end_alternative(&mut self, frame: &mut Frame) -> Result<()> {
        self.end_conjunct(frame)?;
        let mut conjuncts = std::mem::take(&mut frame.conjuncts);
        let sequence = if conjuncts.len() == 1 {
            conjuncts.swap_remove(0)
        } else {
            let start = frame.start.min(self.token.span.start);
            vec![self.add(NodeKind::And(conjuncts), start..self.token.span.start)]
        };
        frame.alternatives.push(sequence);
        frame.aliased = false;
        Ok(())
    }

    /// Adds an atom to the current sequence, with the negations that wait for it.
    fn add_atom(&mut self, frame: &mut Frame, mut node: NodeId) {
        while let Some(tilde) = frame.negations.pop() {
            let span = tilde.start..self.nodes[node].span.end;
            node = self.add(NodeKind::Not(node), span);
        }
        frame.sequence.push(node);
        frame.atom_last = true;
    }

    fn atom(&mut self, frame: &mut Frame) -> Result<()> {
        if let TokenKind::Directive(name) = self.token.kind {
            return Err(self.unknown_directive(name));
        }
        let kind = match &self.token.kind {
            TokenKind::RuleName(name) => NodeKind::Rule(name),
            TokenKind::TerminalName(name) => NodeKind::Terminal(name),
            TokenKind::Text { raw, ignore_case } => NodeKind::Text { raw, ignore_case: *ignore_case },
            TokenKind::Regex { raw, flags } => NodeKind::Regex { raw, flags },
            TokenKind::Special(token) => NodeKind::Special(token.clone()),
            _ => return Err(self.expected("an expression or the end of the line")),
        };
        let named = matches!(kind, NodeKind::Rule(_) | NodeKind::Terminal(_));
        let text = matches!(kind, NodeKind::Text { .. });
        let first = self.bump()?;
        if named {
            self.refuse_template()?;
            if self.token.kind == TokenKind::Colon {
                let help = "a definition begins a line of its own";
                return Err(self.expected("an expression or the end of the line").with_help(help));
            }
        }
        let node = if text && self.token.kind == TokenKind::DotDot {
            let (kind, span) = self.range(&first)?;
            self.add(kind, span)
        } else {
            self.add(kind, first.span)
        };
        self.add_atom(frame, node);
        Ok(())
    }

    /// `"a".."z"`, of which the first text has been read.
    fn range(&mut self, first: &Token<'s>) -> Result<(NodeKind<'s>, Span)> {
        self.bump()?;
        let last = match self.token.kind {
            TokenKind::Text { .. } => self.bump()?,
            _ => return Err(self.expected("a string after `..`")),
        };
        let span = first.span.start..last.span.end;
        let bound = |token: &Token<'s>| match token.kind {
            TokenKind::Text { raw, ignore_case: false } => Ok((raw, token.span.start + 1..token.span.end - 1)),
            _ => Err(GrammarError::new(ErrorKind::Syntax, token.span.clone(), "a bound of a range takes no flag")
                .with_help("write `/[a-z]/i`")),
        };
        Ok((NodeKind::Range { from: bound(first)?, to: bound(&last)? }, span))
    }

    /// `?`, `*` or `+`.
    fn operator(&mut self, frame: &mut Frame, min: u32, max: Option<u32>) -> Result<()> {
        self.refuse_operator(frame)?;
        let operator = self.bump()?;
        self.repeat(frame, min, max, operator.span.end);
        Ok(())
    }

    fn refuse_operator(&self, frame: &Frame) -> Result<()> {
        if frame.atom_last {
            return Ok(());
        }
        let found = self.found();
        let message = format!("nothing before {found} that it could repeat");
        let error = GrammarError::new(ErrorKind::Syntax, self.token.span.clone(), message);
        Err(if frame.sequence.is_empty() {
            error
        } else {
            error.with_help("one operator per expression: use parentheses, as in `(x+)?`")
        })
    }

    fn repeat(&mut self, frame: &mut Frame, min: u32, max: Option<u32>, end: usize) {
        let inner = frame.sequence.pop().expect("an atom was last");
        let span = self.nodes[inner].span.start..end;
        let node = self.add(NodeKind::Repeat { inner, min, max }, span);
        frame.sequence.push(node);
        frame.atom_last = false;
    }

    /// `~n`, `~n..m`, or the `~` of a complement.
    fn tilde(&mut self, frame: &mut Frame) -> Result<()> {
        let tilde = self.bump()?;
        if !matches!(self.token.kind, TokenKind::Number(_)) {
            frame.negations.push(tilde.span);
            frame.atom_last = false;
            return Ok(());
        }
        if !frame.atom_last {
            let message = "nothing before `~` that it could repeat";
            return Err(GrammarError::new(ErrorKind::Syntax, tilde.span, message));
        }
        let (min, mut span) = self.count()?;
        let mut max = min;
        if self.eat(&TokenKind::DotDot)? {
            let (bound, end) = self.count()?;
            (max, span) = (bound, span.start..end.end);
        }
        if max < min {
            let message = format!("`{min}..{max}` allows no number of times");
            return Err(
                GrammarError::new(ErrorKind::EmptyRange, span, message).with_help("the smaller number comes first")
            );
        }
        self.repeat(frame, min, Some(max), span.end);
        Ok(())
    }

    fn count(&mut self) -> Result<(u32, Span)> {
        let TokenKind::Number(digits) = self.token.kind else { return Err(self.expected("a number")) };
        let span = self.token.span.clone();
        if digits.starts_with('-') {
            return Err(GrammarError::new(ErrorKind::EmptyRange, span, "a number of times cannot be negative"));
        }
        let count = digits.parse().map_err(|_| {
            let message = format!("{digits} times is too much: at most {}", u32::MAX);
            GrammarError::new(ErrorKind::TooLarge, span.clone(), message)
        })?;
        self.bump()?;
        Ok((count, span))
    }
}
