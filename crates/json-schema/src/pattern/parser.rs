//! The reader of expressions: one pass over the text with a stack of open groups, in one of two modes.
//!
//! What is left out does not stop the reader, which goes on to see whether the rest is an expression: if not
//! with `u`, the expression is to be read by Annex B, where the same thing may mean something else.

use std::collections::{HashMap, HashSet};

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{Limits, Pattern, PatternError, PatternErrorKind, classes, names, properties};

type Result<T> = std::result::Result<T, PatternError>;

/// Reads an expression with `u` or by Annex B.
pub(super) fn parse(text: &str, unicode: bool, limits: Limits) -> Result<Pattern> {
    let groups = names::count_groups(text);
    let (open, unsupported, references) = (vec![Group::whole()], None, HashMap::new());
    Parser { text, at: 0, unicode, groups, limits, size: 0, open, unsupported, references }.parse()
}

struct Parser<'t> {
    text: &'t str,
    /// Where the rest begins.
    at: usize,
    /// The flag `u`; else Annex B.
    unicode: bool,
    groups: names::Groups,
    limits: Limits,
    /// Nodes and ranges so far.
    size: usize,
    /// The groups that are open; the first is the expression itself, and is always there.
    open: Vec<Group>,
    /// The first thing that is left out.
    unsupported: Option<PatternError>,
    /// The names that `\k` refers to, and where first.
    references: HashMap<String, usize>,
}

/// What a parenthesis opens.
#[derive(Clone, Copy)]
enum Opened {
    Group,
    LookAhead { negated: bool },
    LookBehind,
}

struct Group {
    /// Not the expression itself.
    is_inner: bool,
    opened: Opened,
    offset: usize,
    alternatives: Vec<Pattern>,
    /// The alternative in progress.
    terms: Vec<Pattern>,
    /// The names of groups in it, and in the alternatives before.
    names: HashSet<String>,
    names_before: HashSet<String>,
}

impl Group {
    fn new(is_inner: bool, opened: Opened, offset: usize) -> Self {
        let (alternatives, terms) = (Vec::new(), Vec::new());
        let (names, names_before) = (HashSet::new(), HashSet::new());
        Self { is_inner, opened, offset, alternatives, terms, names, names_before }
    }

    fn whole() -> Self {
        Self::new(false, Opened::Group, 0)
    }

    fn end_alternative(&mut self) {
        self.alternatives.push(Pattern::concat(std::mem::take(&mut self.terms)));
        names::merge(&mut self.names_before, std::mem::take(&mut self.names));
    }
}

/// One member of a class.
enum ClassAtom {
    CodePoint(u32),
    Class(ClassUnicode),
}

impl Parser<'_> {
    fn parse(mut self) -> Result<Pattern> {
        while let Some(c) = self.peek() {
            match c {
                '|' => {
                    self.bump();
                    self.grow(1, self.at)?;
                    self.top().end_alternative();
                }
                '(' => self.open()?,
                ')' => self.close()?,
                _ => self.term(c)?,
            }
        }
        let mut whole = self.open.pop().unwrap_or_else(Group::whole);
        if whole.is_inner {
            return Err(self.syntax("this group is never closed", whole.offset));
        }
        whole.end_alternative();
        let missing = self.references.iter().filter(|(name, _)| !whole.names_before.contains(*name));
        if let Some((name, &offset)) = missing.min_by_key(|&(_, offset)| offset) {
            return Err(self.syntax(&format!("no group is named {name:?}"), offset));
        }
        self.unsupported.map_or_else(|| Ok(Pattern::alternate(whole.alternatives)), Err)
    }

    fn open(&mut self) -> Result<()> {
        let offset = self.at;
        self.bump();
        let mut name = None;
        let opened = if !self.eat("?") || self.eat(":") {
            Opened::Group
        } else if self.eat("=") {
            Opened::LookAhead { negated: false }
        } else if self.eat("!") {
            Opened::LookAhead { negated: true }
        } else if self.eat("<=") || self.eat("<!") {
            self.unsupported("look-behind is not supported", offset);
            Opened::LookBehind
        } else if self.eat("<") {
            name = Some(self.group_name()?);
            Opened::Group
        } else {
            self.modifiers(offset)?;
            Opened::Group
        };
        if let Some(name) = name {
            self.add_names(HashSet::from([name]), offset)?;
        }
        if self.open.len() > self.limits.depth {
            return Err(self.limit(format!("groups are nested more than {} deep", self.limits.depth), offset));
        }
        self.open.push(Group::new(true, opened, offset));
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let offset = self.at;
        let Some(mut group) = self.open.pop_if(|group| group.is_inner) else {
            return Err(self.syntax("there is no open group to close", offset));
        };
        self.bump();
        group.end_alternative();
        self.add_names(group.names_before, group.offset)?;
        let pattern = Pattern::alternate(group.alternatives);
        let (pattern, can_repeat) = match group.opened {
            Opened::Group => (pattern, true),
            Opened::LookAhead { negated } => {
                (Pattern::LookAhead { inner: Box::new(pattern), negated }, !self.unicode)
            }
            Opened::LookBehind => (Pattern::Empty, false),
        };
        self.push(pattern, can_repeat, group.offset)
    }

    /// `ims-ims:`, with something before the colon but a dash alone, and nothing twice.
    fn modifiers(&mut self, offset: usize) -> Result<()> {
        let mut seen = String::new();
        while let Some(c) = self.peek() {
            if c == ':' && !seen.trim_start_matches('-').is_empty() {
                self.bump();
                self.unsupported("modifiers of groups, as (?i:…), are not supported", offset);
                return Ok(());
            }
            if !matches!(c, 'i' | 'm' | 's' | '-') || seen.contains(c) {
                break;
            }
            seen.push(c);
            self.bump();
        }
        Err(self.syntax("`(?` is followed by `:`, `=`, `!`, `<=`, `<!` or `<name>`", offset))
    }

    /// A term that begins with no parenthesis, and its quantifier.
    fn term(&mut self, c: char) -> Result<()> {
        let offset = self.at;
        let is_quantifier = matches!(c, '*' | '+' | '?') || (c == '{' && self.braces()?.is_some());
        if is_quantifier {
            return Err(self.syntax("there is nothing to repeat", offset));
        }
        if self.unicode && matches!(c, '{' | '}' | ']') {
            return Err(self.syntax(&format!("`{c}` alone is written `\\{c}`"), offset));
        }
        let (pattern, can_repeat) = match c {
            '\\' => self.escape()?,
            '[' => (Pattern::Class(self.class()?), true),
            _ => {
                self.bump();
                match c {
                    '^' => (Pattern::Start, false),
                    '$' => (Pattern::End, false),
                    '.' => (Pattern::Class(classes::dot()), true),
                    _ => (Pattern::Class(classes::one(c.into())), true),
                }
            }
        };
        self.push(pattern, can_repeat, offset)
    }

    /// Ends a term: with its quantifier, if it may have one.
    fn push(&mut self, term: Pattern, can_repeat: bool, offset: usize) -> Result<()> {
        let ranges = if let Pattern::Class(class) = &term { class.ranges().len() } else { 0 };
        self.grow(1 + ranges, offset)?;
        let quantifier = if can_repeat { self.quantifier()? } else { None };
        let term = match quantifier {
            None => term,
            Some((min, max)) => {
                self.grow(1, offset)?;
                Pattern::Repeat { inner: Box::new(term), min, max }
            }
        };
        self.top().terms.push(term);
        Ok(())
    }

    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>> {
        let offset = self.at;
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.braces()? {
                Some((min, max, length)) => {
                    self.at += length - 1;
                    (min, max)
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.at += 1;
        self.eat("?");
        if max.is_some_and(|max| max < min) {
            return Err(self.syntax("the bounds of this repetition are out of order", offset));
        }
        match (u32::try_from(min), max.map(u32::try_from).transpose()) {
            (Ok(min), Ok(max)) => Ok(Some((min, max))),
            _ => Err(self.limit(format!("counts are at most {}", u32::MAX), offset)),
        }
    }

    /// `{n}`, `{n,}`, `{n,m}` at a brace, with its length: nothing is eaten. Else it is an error with `u`.
    fn braces(&self) -> Result<Option<(u64, Option<u64>, usize)>> {
        let bounds = bounds(&self.text[self.at..]);
        if bounds.is_none() && self.unicode {
            return Err(self.syntax("`{` alone is written `\\{`", self.at));
        }
        Ok(bounds)
    }

    fn escape(&mut self) -> Result<(Pattern, bool)> {
        let offset = self.at;
        self.bump();
        let Some(c) = self.peek() else {
            return Err(self.syntax("nothing follows the backslash", offset));
        };
        if let 'b' | 'B' = c {
            self.bump();
            return Ok((Pattern::WordBoundary { negated: c == 'B' }, false));
        }
        let pattern = match c {
            '1'..='9' if self.back_reference(offset)? => Pattern::Empty,
            'k' if self.unicode || self.groups.has_names => {
                self.bump();
                self.named_reference(offset)?;
                Pattern::Empty
            }
            _ => Pattern::Class(match self.class_escape(offset)? {
                Some(class) => class,
                None => classes::one(self.character_escape(false, offset)?),
            }),
        };
        Ok((pattern, true))
    }

    /// `\1`, if there is such a group; by Annex B it is something else if not.
    fn back_reference(&mut self, offset: usize) -> Result<bool> {
        let rest = &self.text[self.at..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = rest[..digits].parse().unwrap_or(usize::MAX);
        if number > self.groups.count {
            return match self.unicode {
                true => Err(self.syntax(&format!("there is no group {}", &rest[..digits]), offset)),
                false => Ok(false),
            };
        }
        self.at += digits;
        self.unsupported("back-references are not supported", offset);
        Ok(true)
    }

    fn named_reference(&mut self, offset: usize) -> Result<()> {
        if !self.eat("<") {
            return Err(self.syntax("`\\k` is followed by a name in angle brackets", offset));
        }
        let name = self.group_name()?;
        self.references.entry(name).or_insert(offset);
        self.unsupported("back-references are not supported", offset);
        Ok(())
    }

    /// `\d`, `\D`, …, `\p{…}`, behind the backslash.
    fn class_escape(&mut self, offset: usize) -> Result<Option<ClassUnicode>> {
        let Some(c) = self.peek() else { return Ok(None) };
        if let Some(class) = classes::named(c) {
            self.bump();
            return Ok(Some(class));
        }
        if !(self.unicode && matches!(c, 'p' | 'P')) {
            return Ok(None);
        }
        self.bump();
        let rest = &self.text[self.at..];
        let Some(name) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(name, _)| name)
        else {
            return Err(self.syntax(&format!("`\\{c}` is followed by a property in braces"), offset));
        };
        self.at += name.len() + 2;
        Ok(Some(match properties::property(name) {
            properties::Property::Class(class) if c == 'P' => classes::negated(class),
            properties::Property::Class(class) => class,
            properties::Property::NoTable => {
                self.unsupported(&format!("there is no table of the property `{name}`"), offset);
                ClassUnicode::empty()
            }
            properties::Property::Unknown => {
                return Err(self.syntax(&format!("there is no property `{name}`"), offset));
            }
        }))
    }

    fn class(&mut self) -> Result<ClassUnicode> {
        let offset = self.at;
        self.bump();
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        loop {
            if self.eat("]") {
                let class = ClassUnicode::new(ranges);
                return Ok(if negated { classes::negated(class) } else { class });
            }
            let start = self.class_atom(offset)?;
            if !self.text[self.at..].starts_with('-') || self.text[self.at..].starts_with("-]") {
                self.add(&mut ranges, start)?;
                continue;
            }
            let dash = self.at;
            self.bump();
            let end = self.class_atom(offset)?;
            match (start, end) {
                (ClassAtom::CodePoint(start), ClassAtom::CodePoint(end)) if start > end => {
                    return Err(self.syntax("the ends of this range are out of order", dash));
                }
                (ClassAtom::CodePoint(start), ClassAtom::CodePoint(end)) => {
                    self.grow(1, dash)?;
                    ranges.extend(classes::range(start, end));
                }
                _ if self.unicode => {
                    return Err(self.syntax("a range begins and ends with a character", dash));
                }
                (start, end) => {
                    self.add(&mut ranges, start)?;
                    self.add(&mut ranges, ClassAtom::CodePoint('-'.into()))?;
                    self.add(&mut ranges, end)?;
                }
            }
        }
    }

    fn add(&mut self, ranges: &mut Vec<ClassUnicodeRange>, atom: ClassAtom) -> Result<()> {
        match atom {
            ClassAtom::CodePoint(code_point) => {
                ranges.extend(classes::range(code_point, code_point));
                self.grow(1, self.at)
            }
            ClassAtom::Class(class) => {
                self.grow(class.ranges().len(), self.at)?;
                ranges.extend(class.iter());
                Ok(())
            }
        }
    }

    /// One member of the class that began at `class`.
    fn class_atom(&mut self, class: usize) -> Result<ClassAtom> {
        let offset = self.at;
        match self.bump() {
            None => Err(self.syntax("this class is never closed", class)),
            Some('\\') => match self.class_escape(offset)? {
                Some(class) => Ok(ClassAtom::Class(class)),
                None => self.character_escape(true, offset).map(ClassAtom::CodePoint),
            },
            Some(c) => Ok(ClassAtom::CodePoint(c.into())),
        }
    }

    /// An escape that is one character, behind the backslash.
    fn character_escape(&mut self, in_class: bool, offset: usize) -> Result<u32> {
        let before = self.at;
        let Some(c) = self.bump() else {
            return Err(self.syntax("nothing follows the backslash", offset));
        };
        let next = self.peek();
        let found = match c {
            'f' => Some(0xc),
            'n' => Some(0xa),
            'r' => Some(0xd),
            't' => Some(0x9),
            'v' => Some(0xb),
            'b' if in_class => Some(0x8),
            '-' if in_class => Some('-'.into()),
            'c' => self.control(in_class, before),
            '0' if !next.is_some_and(|next| next.is_ascii_digit()) => Some(0),
            '0'..='7' if !self.unicode => Some(self.octal(before)),
            'x' => self.hex(2),
            'u' => self.unicode_escape(self.unicode),
            '^' | '$' | '\\' | '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '/' => {
                Some(c.into())
            }
            _ => None,
        };
        let has_meaning = c == 'k' && self.groups.has_names;
        match found {
            Some(found) => Ok(found),
            None if !self.unicode && !has_meaning => Ok(c.into()),
            None => {
                let end = before + c.len_utf8();
                Err(self.syntax(&format!("`\\{}` has no meaning here", &self.text[before..end]), offset))
            }
        }
    }

    /// `\cA`, behind the `c`, which began at `before`. By Annex B also `\c0` and `\c_` in classes, and in
    /// `\c` with anything else the backslash is one, and the `c` comes after.
    fn control(&mut self, in_class: bool, before: usize) -> Option<u32> {
        let is_more = |c: char| in_class && !self.unicode && (c.is_ascii_digit() || c == '_');
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || is_more(c) => {
                self.bump();
                Some(u32::from(c) % 32)
            }
            _ if self.unicode => None,
            _ => {
                self.at = before;
                Some('\\'.into())
            }
        }
    }

    /// Up to three octal digits from `before` on, at most 377.
    fn octal(&mut self, before: usize) -> u32 {
        self.at = before;
        let mut value = 0;
        for _ in 0..3 {
            match self.peek().and_then(|c| c.to_digit(8)) {
                Some(digit) if value * 8 + digit <= 0o377 => value = value * 8 + digit,
                _ => break,
            }
            self.bump();
        }
        value
    }

    /// So many hexadecimal digits, or nothing.
    fn hex(&mut self, n: usize) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + n).filter(|digits| is_hex(digits))?;
        self.at += n;
        u32::from_str_radix(digits, 16).ok()
    }

    /// `\uD83D\uDE00`, `\u1234` and, if so asked, `\u{1F600}`, behind the `u`; else nothing is eaten.
    fn unicode_escape(&mut self, braces: bool) -> Option<u32> {
        if braces && let Some(rest) = self.text[self.at..].strip_prefix('{') {
            let (digits, _) = rest.split_once('}').filter(|(digits, _)| is_hex(digits))?;
            let short = digits.trim_start_matches('0');
            let value = if short.is_empty() { Some(0) } else { u32::from_str_radix(short, 16).ok() };
            self.at += digits.len() + 2;
            return value.filter(|&value| value <= 0x10_ffff);
        }
        let first = self.hex(4)?;
        let behind = self.at;
        if (0xd800..0xdc00).contains(&first) && self.eat("\\u") {
            match self.hex(4) {
                Some(second) if (0xdc00..0xe000).contains(&second) => {
                    return Some(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
                }
                _ => self.at = behind,
            }
        }
        Some(first)
    }

    /// A name up to `>`, behind the `<`.
    fn group_name(&mut self) -> Result<String> {
        let offset = self.at;
        let mut name = String::new();
        while let Some(c) = self.bump() {
            let c = match c {
                '>' if !name.is_empty() => return Ok(name),
                '\\' if self.eat("u") => self.unicode_escape(true).and_then(char::from_u32),
                c => Some(c),
            };
            match c.filter(|&c| if name.is_empty() { names::can_begin(c) } else { names::can_continue(c) }) {
                Some(c) => name.push(c),
                None => break,
            }
        }
        Err(self.syntax("this is no name of a group", offset))
    }

    /// Adds names to the alternative in progress, where no name stands twice.
    fn add_names(&mut self, names: HashSet<String>, offset: usize) -> Result<()> {
        match names::merge(&mut self.top().names, names) {
            None => Ok(()),
            Some(name) => Err(self.syntax(&format!("two groups are named {name:?}"), offset)),
        }
    }

    fn top(&mut self) -> &mut Group {
        if self.open.is_empty() {
            self.open.push(Group::whole());
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let has = self.text[self.at..].starts_with(prefix);
        self.at += if has { prefix.len() } else { 0 };
        has
    }

    fn grow(&mut self, by: usize, offset: usize) -> Result<()> {
        self.size += by;
        if self.size > self.limits.size {
            let message = format!("the pattern has more than {} nodes and ranges", self.limits.size);
            return Err(self.limit(message, offset));
        }
        Ok(())
    }

    fn unsupported(&mut self, message: &str, offset: usize) {
        let (kind, message) = (PatternErrorKind::Unsupported, message.to_owned());
        self.unsupported.get_or_insert(PatternError { kind, message, offset });
    }

    fn syntax(&self, message: &str, offset: usize) -> PatternError {
        PatternError { kind: PatternErrorKind::Syntax, message: message.to_owned(), offset }
    }

    fn limit(&self, message: String, offset: usize) -> PatternError {
        PatternError { kind: PatternErrorKind::Limit, message, offset }
    }
}

fn is_hex(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `{n}`, `{n,}` or `{n,m}` at the start of a text, and its length. Counts beyond 64 bits are the largest.
fn bounds(text: &str) -> Option<(u64, Option<u64>, usize)> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().unwrap_or(u64::MAX))
    };
    let is_inner = |c: char| c.is_ascii_digit() || c == ',';
    let rest = text.strip_prefix('{')?;
    let inner = &rest[..rest.find(|c| !is_inner(c))?];
    if !rest[inner.len()..].starts_with('}') {
        return None;
    }
    let length = inner.len() + 2;
    match inner.split_once(',') {
        None => number(inner).map(|n| (n, Some(n), length)),
        Some((min, "")) => Some((number(min)?, None, length)),
        Some((min, max)) => Some((number(min)?, Some(number(max)?), length)),
    }
}
