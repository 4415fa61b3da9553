//! Tokens to tree.
//!
//! Parentheses are kept on an explicit stack, so nesting is limited by memory only. The cost is the length of
//! the file.
//!
//! ```text
//! expansions: alias ("|" alias)*            alias: conjunction ["->" name]
//! conjunction: sequence ("&" sequence)*     sequence: expr*
//! expr: "~"* atom ["?" | "*" | "+" | "~" NUMBER [".." NUMBER] | "{" [NUMBER] ["," [NUMBER]] "}"]
//! atom: … | RULE "{" value ("," value)* "}"
//! ```
//!
//! Both a repetition and the use of a template have braces: with a number or a comma first it is a
//! repetition.

use std::borrow::Cow;
use std::num::NonZeroU32;

use super::LarkDialect;
use super::ast::{
    Attributes, Change, Expansions, File, Item, Name, Node, NodeId, NodeKind, Options, Path, Stop,
};
use super::lexer::{Lexer, Token, TokenKind};
use super::text;
use crate::diagnostic::{ErrorKind, GrammarError};
use crate::ir::{LexerMode, Span};

type Result<T> = std::result::Result<T, GrammarError>;

/// What the parameter of `name::_` is called; no other name is like it.
pub(super) const OWN_PARAMETER: &str = "_";

/// Reads a whole file, which is a part of a text.
pub(crate) fn parse(source: &str, part: Span, dialect: LarkDialect) -> Result<File<'_>> {
    let mut lexer = Lexer::new(source, part);
    let token = lexer.next()?;
    let (nodes, items, options) = (Vec::new(), Vec::new(), Options::default());
    let mut parser = Parser { source, lexer, token, nodes, items, dialect, options };
    parser.file()?;
    Ok(File { nodes: parser.nodes, items: parser.items, dialect, options: parser.options })
}

pub(super) struct Parser<'s> {
    source: &'s str,
    lexer: Lexer<'s>,
    /// The token that comes next.
    pub(super) token: Token<'s>,
    nodes: Vec<Node<'s>>,
    items: Vec<Item<'s>>,
    dialect: LarkDialect,
    options: Options,
}

/// An open parenthesis or the open braces of a template, or the whole right side.
struct Frame {
    /// The token that opened it, and what has to close it.
    open: Option<(Span, TokenKind<'static>)>,
    /// The template and its arguments so far, if that is what is open.
    template: Option<(NodeId, Vec<NodeId>)>,
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
            template: None,
            alternatives: Vec::new(),
            conjuncts: Vec::new(),
            sequence: Vec::new(),
            negations: Vec::new(),
            atom_last: false,
            start,
            aliased: false,
        }
    }

    /// Whether the current alternative has its `%if`.
    fn has_condition(&self, nodes: &[Node<'_>]) -> bool {
        self.sequence.last().is_some_and(|&last| matches!(nodes[last].kind, NodeKind::Condition(_)))
    }
}

impl<'s> Parser<'s> {
    /// Takes the token and reads the next one.
    pub(super) fn bump(&mut self) -> Result<Token<'s>> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Takes the token if it is this one.
    pub(super) fn eat(&mut self, kind: &TokenKind<'_>) -> Result<bool> {
        let found = self.token.kind == *kind;
        if found {
            self.bump()?;
        }
        Ok(found)
    }

    pub(super) fn expect(&mut self, kind: &TokenKind<'_>, what: &str) -> Result<Token<'s>> {
        if self.token.kind == *kind { self.bump() } else { Err(self.expected(what)) }
    }

    /// "expected …, found …" at the token.
    pub(super) fn expected(&self, what: &str) -> GrammarError {
        let found = self.found();
        GrammarError::new(
            ErrorKind::Syntax,
            self.token.span.clone(),
            format!("expected {what}, found {found}"),
        )
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
                TokenKind::Question
                | TokenKind::Bang
                | TokenKind::RuleName(_)
                | TokenKind::TerminalName(_) => {
                    self.definition(Change::Define, true)?;
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

    /// `?name{parameters}.priority: …` or `NAME.priority: …`.
    fn definition(&mut self, change: Change, declared: bool) -> Result<()> {
        let modifier = self.token.span.clone();
        let mut modified = false;
        while matches!(self.token.kind, TokenKind::Question | TokenKind::Bang) {
            self.bump()?;
            modified = true;
        }
        let name = self.name()?;
        if modified && name.terminal {
            let message = format!("`?` and `!` shape the trees of rules; `{}` is a terminal", name.text);
            return Err(GrammarError::new(ErrorKind::Syntax, modifier, message).with_help("leave them out"));
        }
        let parameters = self.parameters(&name)?;
        let priority = if self.eat(&TokenKind::Dot)? { self.priority()? } else { 0 };
        let max_tokens = if name.terminal && !declared { self.own_max_tokens()? } else { None };
        let attributes = self.attributes(&name, &parameters)?;
        if self.token.kind != TokenKind::Colon {
            let help = "an alternative on a line of its own begins with `|`";
            return Err(self.expected(&format!("`:` after the name `{}`", name.text)).with_help(help));
        }
        self.bump()?;
        let body = self.expansions()?;
        self.items.push(match name.terminal {
            true => Item::Terminal { name, priority, body, change, declared, max_tokens },
            false => Item::Rule { name, parameters, body, change, attributes },
        });
        Ok(())
    }

    /// `[max_tokens=5]` of a terminal without a declaration, as grammars are printed, if it is there.
    fn own_max_tokens(&mut self) -> Result<Option<NonZeroU32>> {
        if !self.eat(&TokenKind::LeftBracket)? {
            return Ok(None);
        }
        match &self.token.kind {
            TokenKind::RuleName(name) if name == "max_tokens" => _ = self.bump()?,
            _ => return Err(self.expected("`max_tokens`")),
        }
        self.expect(&TokenKind::Equals, "`=`")?;
        let (count, span) = self.count()?;
        self.expect(&TokenKind::RightBracket, "`]`")?;
        let most = NonZeroU32::new(count);
        most.map(Some).ok_or_else(|| {
            GrammarError::new(ErrorKind::Syntax, span, "a terminal has at least one byte, hence one token")
        })
    }

    /// `[capture, max_tokens=5]`, as llguidance has it, if it is there.
    fn attributes(&mut self, name: &Name<'s>, parameters: &[Name<'s>]) -> Result<Option<Box<Attributes>>> {
        if self.token.kind != TokenKind::LeftBracket {
            return Ok(None);
        }
        if name.terminal || !parameters.is_empty() {
            let what = if name.terminal { "terminals" } else { "rules with parameters" };
            let help = "write a rule `name[…]: X` for it";
            return Err(self.unsupported(&format!("attributes of {what} are"), help));
        }
        self.bump()?;
        let mut attributes = Attributes::default();
        while self.token.kind != TokenKind::RightBracket {
            self.attribute(name, &mut attributes)?;
            if !self.eat(&TokenKind::Comma)? {
                break;
            }
        }
        self.expect(&TokenKind::RightBracket, "`,` or `]`")?;
        if attributes.hints.stop_capture.is_some() && !matches!(attributes.stop, Some(Stop::Suffix(_))) {
            let message = "`stop_capture` names what `suffix` matches, which is not given";
            return Err(GrammarError::new(ErrorKind::Syntax, name.span.clone(), message));
        }
        Ok(Some(Box::new(attributes)))
    }

    fn attribute(&mut self, name: &Name<'s>, attributes: &mut Attributes) -> Result<()> {
        let TokenKind::RuleName(key) = self.token.kind.clone() else {
            return Err(self.expected("an attribute"));
        };
        let span = self.bump()?.span;
        let twice = || {
            let message = "a rule has at most one of `lazy`, `suffix` and `stop`";
            GrammarError::new(ErrorKind::Syntax, span.clone(), message)
        };
        match &*key {
            "capture" => {
                let given = if self.eat(&TokenKind::Equals)? { Some(self.simple_text()?) } else { None };
                attributes.hints.capture = Some(given.unwrap_or_else(|| name.text.to_string()));
            }
            // As in llguidance it adds nothing to what makes the text short already.
            "lazy" if matches!(attributes.stop, Some(Stop::Suffix(_) | Stop::Lazy)) => {}
            "lazy" if attributes.stop.is_none() => attributes.stop = Some(Stop::Lazy),
            "suffix" | "stop" if attributes.stop.is_none() => {
                self.expect(&TokenKind::Equals, "`=`")?;
                let value = self.attribute_value()?;
                attributes.stop =
                    Some(if &*key == "stop" { Stop::TakenBack(value) } else { Stop::Suffix(value) });
            }
            "lazy" | "suffix" | "stop" => return Err(twice()),
            "stop_capture" => {
                self.expect(&TokenKind::Equals, "`=`")?;
                attributes.hints.stop_capture = Some(self.simple_text()?);
            }
            "max_tokens" => {
                self.expect(&TokenKind::Equals, "`=`")?;
                attributes.max_tokens = Some(self.count()?.0);
            }
            "temperature" => {
                self.expect(&TokenKind::Equals, "`=`")?;
                attributes.hints.temperature = Some(self.temperature()?);
            }
            _ => {
                let message = format!("unknown attribute `{key}`");
                return Err(GrammarError::new(ErrorKind::Syntax, span, message).with_help(
                    "there are `capture`, `lazy`, `suffix`, `stop`, `stop_capture`, `max_tokens` and \
                     `temperature`",
                ));
            }
        }
        Ok(())
    }

    /// A string without a flag.
    fn simple_text(&mut self) -> Result<String> {
        let TokenKind::Text { raw, ignore_case: false } = self.token.kind else {
            return Err(self.expected("a string"));
        };
        let text = text::decode_as(raw, self.token.span.start + 1, self.dialect)?;
        self.bump()?;
        Ok(text)
    }

    /// A decimal number that is not negative, which the lexer cuts at its point.
    fn temperature(&mut self) -> Result<String> {
        let start = self.token.span.start;
        let TokenKind::Number(_) = self.token.kind else { return Err(self.expected("a number")) };
        let mut end = self.bump()?.span.end;
        if self.token.kind == TokenKind::Dot {
            self.bump()?;
            if !matches!(self.token.kind, TokenKind::Number(_)) {
                return Err(self.expected("digits"));
            }
            end = self.bump()?.span.end;
        }
        let digits = &self.source[start..end];
        let is_number = digits.parse::<f32>().is_ok_and(|value| value >= 0.0);
        is_number.then(|| digits.to_owned()).ok_or_else(|| {
            let message = format!("`{digits}` is not a temperature: a number of at least 0");
            GrammarError::new(ErrorKind::Syntax, start..end, message)
        })
    }

    /// A string, a regular expression or the name of a terminal.
    fn attribute_value(&mut self) -> Result<Expansions> {
        let (first, start) = (self.nodes.len(), self.token.span.start);
        let kind = match &self.token.kind {
            TokenKind::TerminalName(name) => NodeKind::Terminal(name.clone()),
            TokenKind::Text { raw, ignore_case } => NodeKind::Text { raw, ignore_case: *ignore_case },
            TokenKind::Regex { raw, flags } => NodeKind::Regex { raw, flags },
            TokenKind::RegexObject(object) => NodeKind::RegexObject(object),
            _ => return Err(self.expected("a string, a regular expression or a terminal")),
        };
        let span = self.bump()?.span;
        let node = self.add(kind, span.clone());
        Ok(Expansions {
            alternatives: vec![vec![node]],
            nodes: first..self.nodes.len(),
            span: start..span.end,
        })
    }

    /// `{x, y}`, if it is there.
    fn parameters(&mut self, name: &Name<'s>) -> Result<Vec<Name<'s>>> {
        let mut parameters = Vec::new();
        if self.token.kind == TokenKind::DoubleColon && !name.terminal {
            self.bump()?;
            let span = self.token.span.clone();
            if !self.eat_own_parameter()? {
                return Err(self.expected("`_`: a rule with a parameter is defined as `name::_: …`"));
            }
            parameters.push(Name { text: Cow::Borrowed(OWN_PARAMETER), terminal: false, span });
            return Ok(parameters);
        }
        if self.token.kind != TokenKind::LeftBrace {
            return Ok(parameters);
        }
        if name.terminal {
            let help = "make it a rule (lower case), or write a terminal out for each use";
            return Err(self.unsupported("a template for terminals is", help));
        }
        self.bump()?;
        loop {
            if !matches!(self.token.kind, TokenKind::RuleName(_)) {
                return Err(self.expected("the name of a parameter (lower case)"));
            }
            parameters.push(self.name()?);
            if !self.eat(&TokenKind::Comma)? {
                break;
            }
        }
        self.expect(&TokenKind::RightBrace, "`,` or `}`")?;
        Ok(parameters)
    }

    fn name(&mut self) -> Result<Name<'s>> {
        if !matches!(self.token.kind, TokenKind::RuleName(_) | TokenKind::TerminalName(_)) {
            return Err(self.expected("a name"));
        }
        let token = self.bump()?;
        let terminal = matches!(token.kind, TokenKind::TerminalName(_));
        let (TokenKind::RuleName(text) | TokenKind::TerminalName(text)) = token.kind else {
            unreachable!("looked at above")
        };
        Ok(Name { text, terminal, span: token.span })
    }

    fn rule_name(&mut self) -> Result<Name<'s>> {
        match self.token.kind {
            TokenKind::RuleName(_) => self.name(),
            _ => Err(self.expected("the name of a rule (lower case)")),
        }
    }

    fn priority(&mut self) -> Result<i32> {
        let TokenKind::Number(digits) = self.token.kind else {
            return Err(self.expected("a priority after `.`"));
        };
        let priority = digits.parse().map_err(|_| {
            let message = format!("priority {digits} is out of range: from {} to {}", i32::MIN, i32::MAX);
            GrammarError::new(ErrorKind::Limit, self.token.span.clone(), message)
        })?;
        self.bump()?;
        Ok(priority)
    }

    fn directive(&mut self, name: &str) -> Result<()> {
        match name {
            "%ignore" | "%reserve" => {
                self.bump()?;
                let body = self.expansions()?;
                if body.alternatives.iter().all(Vec::is_empty) {
                    return Err(GrammarError::new(
                        ErrorKind::Syntax,
                        body.span,
                        format!("`{name}` needs a terminal"),
                    ));
                }
                self.items.push(if name == "%ignore" {
                    Item::Ignore { body }
                } else {
                    Item::Reserve { body }
                });
            }
            "%import" => self.import()?,
            "%override" | "%extend" => {
                self.bump()?;
                self.definition(if name == "%extend" { Change::Extend } else { Change::Override }, true)?;
            }
            "%anonymous" => {
                self.bump()?;
                if !matches!(self.token.kind, TokenKind::TerminalName(_)) {
                    return Err(self.expected("the name of a terminal (upper case)"));
                }
                self.definition(Change::Define, false)?;
            }
            "%nonterminal" => {
                self.bump()?;
                let name = self.rule_name()?;
                self.items.push(Item::Nonterminal { name });
            }
            "%declare" => {
                self.bump()?;
                loop {
                    let name = self.name()?;
                    self.items.push(Item::Declare { name });
                    if !matches!(self.token.kind, TokenKind::RuleName(_) | TokenKind::TerminalName(_)) {
                        break;
                    }
                }
            }
            "%start" => {
                self.bump()?;
                let name = self.rule_name()?;
                self.items.push(Item::Start { name });
            }
            "%lexer" => self.lexer_mode()?,
            "%llguidance" => self.llguidance()?,
            _ => return Err(self.unknown_directive(name)),
        }
        Ok(())
    }

    /// `%lexer mode`
    fn lexer_mode(&mut self) -> Result<()> {
        let span = self.bump()?.span;
        let TokenKind::RuleName(mode) = &self.token.kind else {
            return Err(self.expected("a lexer mode"));
        };
        let Some(mode) = LexerMode::ALL.into_iter().find(|known| known.name() == mode.as_ref()) else {
            let modes = LexerMode::ALL.map(LexerMode::name).join(", ");
            return Err(self.expected(&format!("one of {modes}")));
        };
        self.bump()?;
        self.items.push(Item::Lexer { mode, span });
        Ok(())
    }

    fn unknown_directive(&self, name: &str) -> GrammarError {
        let error = |message: String| GrammarError::new(ErrorKind::Syntax, self.token.span.clone(), message);
        match name {
            "%json" => error("behind `%json` stands a schema: `%json {…}`".to_owned()),
            "%lark" => error("behind `%lark` stands a grammar: `%lark {…}`".to_owned()),
            "%regex" => error("behind `%regex` stands an object: `%regex {…}`".to_owned()),
            "%if" => error("`%if` ends an alternative".to_owned()),
            "%ignore" | "%import" | "%reserve" | "%override" | "%extend" | "%anonymous" | "%nonterminal"
            | "%declare" | "%start" | "%lexer" | "%llguidance" => {
                error(format!("`{name}` begins a line of its own"))
            }
            _ => error(format!("unknown directive `{name}`")).with_help(
                "there are `%import`, `%ignore`, `%override`, `%extend`, `%reserve`, `%start` and `%lexer`",
            ),
        }
    }

    /// `%llguidance {…}`: options of llguidance. Those about ignored text count in its dialect only.
    fn llguidance(&mut self) -> Result<()> {
        self.bump()?;
        self.expect(&TokenKind::LeftBrace, "`{`")?;
        while self.token.kind != TokenKind::RightBrace {
            self.llguidance_option()?;
            if !self.eat(&TokenKind::Comma)? {
                break;
            }
        }
        self.expect(&TokenKind::RightBrace, "`,` or `}`")?;
        Ok(())
    }

    fn llguidance_option(&mut self) -> Result<()> {
        let TokenKind::Text { raw: option, ignore_case: false } = self.token.kind else {
            return Err(self.expected("the name of an option in quotes, or `}`"));
        };
        let start = self.bump()?.span;
        let known =
            ["no_forcing", "allow_invalid_utf8", "allow_initial_skip", "skip_repetition", "ignore_once"];
        if !known.contains(&option) {
            let message = format!("the option `{option}` of llguidance is not supported");
            return Err(GrammarError::new(ErrorKind::Unsupported, start, message)
                .with_help(format!("leave it out; there are {}", known.join(", "))));
        }
        self.expect(&TokenKind::Colon, "`:`")?;
        let value = match &self.token.kind {
            TokenKind::RuleName(word) if word == "true" || word == "false" => word.to_string(),
            TokenKind::Text { raw, ignore_case: false } => (*raw).to_owned(),
            _ => return Err(self.expected("`true`, `false` or a word in quotes")),
        };
        let refuse = |help: &str| {
            let message = format!("the option `{option}` with `{value}` is not supported");
            GrammarError::new(ErrorKind::Unsupported, start.start..self.token.span.end, message)
                .with_help(help)
        };
        let is_dialect = self.dialect == LarkDialect::Llguidance;
        match (option, &*value, is_dialect) {
            // Any tokenization of a text counts here.
            ("no_forcing", "true" | "false", _) | ("allow_invalid_utf8", "false", _) => {}
            ("allow_initial_skip", "true", _) => self.options.initial_skip = true,
            ("allow_initial_skip", "false", true) => self.options.initial_skip = false,
            ("ignore_once", "true", true) | ("skip_repetition", "once", true) => {
                self.options.skip_once = true;
            }
            ("ignore_once", "false", _) | ("skip_repetition", "unbounded", _) => {
                self.options.skip_once = false;
            }
            ("allow_invalid_utf8", "true", _) => {
                return Err(refuse("write the bytes where they may stand: `/(?-u:[\\x80-\\xff])/`"));
            }
            ("allow_initial_skip", "false", false) => {
                return Err(refuse(
                    "what is ignored may stand at the start; choose the dialect `llguidance`, or name it \
                     in the rules where it may stand instead",
                ));
            }
            ("ignore_once", "true", false) | ("skip_repetition", "once", false) => {
                return Err(refuse("it counts in the dialect `llguidance`"));
            }
            _ => {
                return Err(refuse(
                    "it can be `true` or `false`; `skip_repetition` is `unbounded` or `once`",
                ));
            }
        }
        self.bump()?;
        Ok(())
    }

    /// `%import path.X`, `%import path.X -> Y` or `%import path (X, Y)`; the path of a file begins with a
    /// dot.
    fn import(&mut self) -> Result<()> {
        self.bump()?;
        if self.token.kind == TokenKind::DotDot {
            return Err(self
                .unsupported("importing from a folder above is", "move the file beside or below this one"));
        }
        let is_file = self.eat(&TokenKind::Dot)?;
        let mut names = vec![self.name()?];
        while self.eat(&TokenKind::Dot)? {
            names.push(self.name()?);
        }
        let several = self.token.kind == TokenKind::LeftParen;
        let last = if several { None } else { names.pop() };
        let Some(first) = names.first() else {
            let message = "nothing is imported from here";
            let span = last.map_or(self.token.span.clone(), |name| name.span);
            return Err(GrammarError::new(ErrorKind::Syntax, span, message).with_help(
                "say what: `%import common.NUMBER`, `%import .file.rule` or `%import .file (rule, NAME)`",
            ));
        };
        let path_span = first.span.start..names[names.len() - 1].span.end;
        let text = |name: Name<'s>| name.text;
        let path = match is_file {
            true => Path::File(names.into_iter().map(text).collect()),
            false => {
                let parts: Vec<Cow<'s, str>> = names.into_iter().map(text).collect();
                Path::Library(if parts.len() == 1 { parts[0].clone() } else { Cow::Owned(parts.join(".")) })
            }
        };
        if let Some(name) = last {
            let alias = if self.eat(&TokenKind::Arrow)? { Some(self.name()?) } else { None };
            self.items.push(Item::Import { path, path_span, name, alias });
            return Ok(());
        }
        self.bump()?;
        loop {
            let name = self.name()?;
            self.items.push(Item::Import {
                path: path.clone(),
                path_span: path_span.clone(),
                name,
                alias: None,
            });
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
                TokenKind::Comma | TokenKind::RightBrace if frame.template.is_some() => {
                    self.end_argument(&mut frame)?;
                    let token = self.bump()?;
                    if token.kind == TokenKind::RightBrace {
                        let outside = outer.pop().expect("every open frame has an outer one");
                        let inner = std::mem::replace(&mut frame, outside);
                        let (template, arguments) = inner.template.expect("looked at above");
                        let span = self.nodes[template].span.start..token.span.end;
                        let node = self.add(NodeKind::Use { template, arguments }, span);
                        self.add_atom(&mut frame, node);
                    }
                }
                TokenKind::Or if frame.template.is_some() => return Err(self.expected("`,` or `}`")),
                TokenKind::LeftBrace if !frame.aliased => {
                    let open = self.bump()?;
                    if matches!(self.token.kind, TokenKind::Number(_) | TokenKind::Comma) {
                        self.braces(&mut frame, open)?;
                    } else {
                        let inner = self.open_template(&mut frame, open)?;
                        outer.push(std::mem::replace(&mut frame, inner));
                    }
                }
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
                    let inner = std::mem::replace(
                        &mut frame,
                        outer.pop().expect("every open frame has an outer one"),
                    );
                    let (open, _) = inner.open.expect("looked at above");
                    let alternatives = inner.alternatives;
                    let kind = match close.kind {
                        TokenKind::RightBracket => NodeKind::Optional(alternatives),
                        _ => NodeKind::Group(alternatives),
                    };
                    let node = self.add(kind, open.start..close.span.end);
                    self.add_atom(&mut frame, node);
                }
                TokenKind::Directive("%if") if frame.aliased && !frame.has_condition(&self.nodes) => {
                    let start = self.bump()?.span.start;
                    let condition = self.condition()?;
                    let node = self.add(NodeKind::Condition(condition), start..self.token.span.start);
                    frame.sequence.push(node);
                }
                _ if frame.aliased => {
                    return Err(self.expected("`|` or the end of the alternative after its alias"));
                }
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
                TokenKind::Arrow if frame.template.is_none() => {
                    self.refuse_dangling(&frame)?;
                    self.bump()?;
                    self.name()?;
                    frame.aliased = true;
                }
                TokenKind::Directive("%if") => {
                    self.refuse_dangling(&frame)?;
                    let start = self.bump()?.span.start;
                    let condition = self.condition()?;
                    let node = self.add(NodeKind::Condition(condition), start..self.token.span.start);
                    frame.sequence.push(node);
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
        let what = match close {
            TokenKind::RightParen => "`)`",
            TokenKind::RightBracket => "`]`",
            _ => "`,` or `}`",
        };
        let error = self.expected(what).with_label(open, "this is not closed");
        match self.token.kind {
            TokenKind::Newline => {
                error.with_help("a group goes on on the next line only if that begins with `|`")
            }
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
            TokenKind::RuleName(name) => NodeKind::Rule(name.clone()),
            TokenKind::TerminalName(name) => NodeKind::Terminal(name.clone()),
            TokenKind::Text { raw, ignore_case } => NodeKind::Text { raw, ignore_case: *ignore_case },
            TokenKind::Regex { raw, flags } => NodeKind::Regex { raw, flags },
            TokenKind::Special(token) => NodeKind::Special(token.clone()),
            TokenKind::TokenRanges(ranges) => NodeKind::TokenRanges(ranges.clone()),
            TokenKind::Json(schema) => NodeKind::Json(schema),
            TokenKind::RegexObject(object) => NodeKind::RegexObject(object),
            TokenKind::Lark(part) => NodeKind::Lark(part.clone()),
            TokenKind::Named(name) => NodeKind::Named(name),
            _ => return Err(self.expected("an expression or the end of the line")),
        };
        let named = matches!(kind, NodeKind::Rule(_) | NodeKind::Terminal(_));
        let text = matches!(kind, NodeKind::Text { .. });
        let first = self.bump()?;
        if named && self.token.kind == TokenKind::Colon {
            let error = self.expected("an expression or the end of the line");
            return Err(error.with_help("a definition begins a line of its own"));
        }
        if self.token.kind == TokenKind::DoubleColon
            && let NodeKind::Rule(name) = &kind
        {
            let name = name.clone();
            self.bump()?;
            let expression = self.parameter_expression()?;
            let span = first.span.start..self.token.span.start;
            let node = self.add(NodeKind::Parametric { name, expression }, span);
            self.add_atom(frame, node);
            return Ok(());
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
            TokenKind::Text { raw, ignore_case: false } => {
                Ok((raw, token.span.start + 1..token.span.end - 1))
            }
            _ => Err(GrammarError::new(
                ErrorKind::Syntax,
                token.span.clone(),
                "a bound of a range takes no flag",
            )
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

    /// Begins the arguments of the template whose name was read last; the brace has been read.
    fn open_template(&mut self, frame: &mut Frame, open: Token<'s>) -> Result<Frame> {
        let last = frame.sequence.last().copied().filter(|_| frame.atom_last);
        let Some(template) = last.filter(|&node| matches!(self.nodes[node].kind, NodeKind::Rule(_))) else {
            let message = "nothing before `{` that could take arguments";
            return Err(GrammarError::new(ErrorKind::Syntax, open.span, message).with_help(
                "a template is named in lower case, `list{x}`; a repetition has numbers, `\"x\"{2,3}`",
            ));
        };
        frame.sequence.pop();
        frame.atom_last = false;
        let mut inner = Frame::new(Some((open.span, TokenKind::RightBrace)), self.token.span.start);
        inner.template = Some((template, Vec::new()));
        Ok(inner)
    }

    /// Takes the argument that was read.
    fn end_argument(&mut self, frame: &mut Frame) -> Result<()> {
        self.refuse_dangling(frame)?;
        let value = |kind: &NodeKind<'_>| match kind {
            NodeKind::Group(_) | NodeKind::Optional(_) | NodeKind::Repeat { .. } => false,
            NodeKind::And(_) | NodeKind::Not(_) | NodeKind::Condition(_) => false,
            NodeKind::TokenRanges(_) => false,
            NodeKind::Rule(_) | NodeKind::Terminal(_) | NodeKind::Text { .. } | NodeKind::Range { .. } => {
                true
            }
            NodeKind::Regex { .. } | NodeKind::Special(_) | NodeKind::Json(_) | NodeKind::Use { .. } => true,
            NodeKind::RegexObject(_) | NodeKind::Lark(_) | NodeKind::Named(_) => true,
            NodeKind::Parametric { .. } => true,
        };
        match frame.sequence[..] {
            [argument] if frame.conjuncts.is_empty() && value(&self.nodes[argument].kind) => {
                frame.sequence.clear();
                frame.atom_last = false;
                frame.start = self.token.span.end;
                frame.template.as_mut().expect("the caller looked").1.push(argument);
                Ok(())
            }
            [] if frame.conjuncts.is_empty() => Err(self.expected("an argument")),
            _ => {
                let span = frame.start..self.token.span.start;
                let message = "an argument of a template is a single name, string or regular expression";
                Err(GrammarError::new(ErrorKind::Syntax, span, message)
                    .with_help("make a rule of it and pass its name"))
            }
        }
    }

    /// `{n}`, `{n,m}`, `{n,}` or `{,m}`, of which the brace has been read.
    fn braces(&mut self, frame: &mut Frame, open: Token<'s>) -> Result<()> {
        if !frame.atom_last {
            let message = "nothing before `{` that it could repeat";
            return Err(GrammarError::new(ErrorKind::Syntax, open.span, message));
        }
        let number = |parser: &mut Self| match parser.token.kind {
            TokenKind::Number(_) => parser.count().map(|(count, _)| Some(count)),
            _ => Ok(None),
        };
        let min = number(self)?;
        let max = if self.eat(&TokenKind::Comma)? { number(self)? } else { min };
        let span = open.span.start..self.expect(&TokenKind::RightBrace, "`,` or `}`")?.span.end;
        let min = min.unwrap_or(0);
        if max.is_some_and(|max| max < min) {
            return Err(no_times(min, max.unwrap_or(0), span));
        }
        self.repeat(frame, min, max, span.end);
        Ok(())
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
            return Err(no_times(min, max, span));
        }
        self.repeat(frame, min, Some(max), span.end);
        Ok(())
    }

    fn count(&mut self) -> Result<(u32, Span)> {
        let TokenKind::Number(digits) = self.token.kind else { return Err(self.expected("a number")) };
        let span = self.token.span.clone();
        if digits.starts_with('-') {
            return Err(GrammarError::new(ErrorKind::Syntax, span, "a number of times cannot be negative"));
        }
        let count = digits.parse().map_err(|_| {
            let message = format!("{digits} times is too much: at most {}", u32::MAX);
            GrammarError::new(ErrorKind::Limit, span.clone(), message)
        })?;
        self.bump()?;
        Ok((count, span))
    }
}

fn no_times(min: u32, max: u32, span: Span) -> GrammarError {
    let message = format!("`{min}..{max}` allows no number of times");
    GrammarError::new(ErrorKind::Syntax, span, message).with_help("the smaller number comes first")
}
