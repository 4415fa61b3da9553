//! The tree of a structural tag, and how its JSON is read.
//!
//! A field that a format does not have is an error, and so is a field that another format would need: nothing
//! is dropped. Formats nest as deep as JSON is read ([`MAX_DEPTH`](anygram_json_schema::read::MAX_DEPTH)), so
//! those who read the tree may recurse.

use anygram_grammar::ir::SpecialToken;
use anygram_json_schema::read::read;
use anygram_json_schema::refusal::{Kind, Refusal};
use anygram_json_schema::value::Value;

use crate::style::Style;

type Result<T> = std::result::Result<T, Refusal>;

/// A format and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// The JSON pointer.
    pub at: String,
    /// What it is.
    pub format: Format,
}

/// A set of texts.
#[derive(Clone, Debug)]
pub enum Format {
    /// One text.
    Const(String),
    /// What a regular expression matches as a whole, in Python's notation.
    Regex(String),
    /// What an EBNF grammar derives.
    Ebnf(String),
    /// What a JSON schema allows.
    Schema(SchemaFormat),
    /// Free text.
    AnyText {
        /// What may not stand in it.
        excludes: Vec<String>,
        /// What bounds its length.
        most: Most,
    },
    /// One after the other.
    Sequence(Vec<Node>),
    /// Any of them.
    Or(Vec<Node>),
    /// Again and again.
    Repeat {
        /// What is repeated.
        content: Box<Node>,
        /// The least number of times.
        min: u32,
        /// The greatest number of times, if there is one.
        max: Option<u32>,
    },
    /// Content between two marks.
    Tag(Box<Tag>),
    /// Free text with tags in it.
    Triggered(Triggered),
    /// Tags with a text between every two.
    Separated {
        /// The tags.
        tags: Vec<Tag>,
        /// What stands between two.
        separator: String,
        /// Whether there has to be one.
        at_least_one: bool,
        /// Whether there is at most one.
        stop_after_first: bool,
    },
    /// Free text in which a format follows each of some marks.
    Dispatch {
        /// The marks and what follows each.
        rules: Vec<(String, Node)>,
        /// Whether free text follows again.
        repeats: bool,
        /// What may not stand in free text.
        excludes: Vec<String>,
    },
    /// One token.
    Token(SpecialToken),
    /// One token, whichever, but those.
    ExceptToken(Vec<SpecialToken>),
    /// Tokens with tags in them.
    TokenTriggered {
        /// The tokens before which free tokens end.
        triggers: Vec<SpecialToken>,
        /// The tags, each of which begins with a trigger.
        tags: Vec<Tag>,
        /// What may not stand among free tokens.
        excludes: Vec<SpecialToken>,
        /// Whether a tag comes first.
        at_least_one: bool,
        /// Whether the first tag is the end.
        stop_after_first: bool,
    },
    /// Tokens in which a format follows each of some tokens.
    TokenDispatch {
        /// The tokens and what follows each.
        rules: Vec<(SpecialToken, Node)>,
        /// Whether free tokens follow again.
        repeats: bool,
        /// What may not stand among free tokens.
        excludes: Vec<SpecialToken>,
    },
}

/// Bounds on the length of free text, if there are any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Most {
    /// The most characters.
    pub chars: Option<u32>,
    /// The most tokens that have bytes in it.
    pub tokens: Option<u32>,
}

/// A JSON schema as a format.
#[derive(Clone, Debug)]
pub struct SchemaFormat {
    /// The schema.
    pub schema: Value,
    /// How values are written.
    pub style: Style,
    /// Whether keys stand in any order, or else as the schema declares them.
    pub any_order: bool,
    /// The most blanks at one place, if there is a bound.
    pub max_whitespace: Option<u32>,
    /// What is one token in the marks of the style.
    pub special_tokens: Vec<String>,
    /// What may not stand in strings and names.
    pub excludes: Vec<String>,
}

/// Free text with tags in it.
#[derive(Clone, Debug)]
pub struct Triggered {
    /// With which free text ends.
    pub triggers: Vec<String>,
    /// The tags, each of which begins with a trigger.
    pub tags: Vec<Tag>,
    /// What may not stand in free text.
    pub excludes: Vec<String>,
    /// Whether the text begins with a tag.
    pub at_least_one: bool,
    /// Whether it ends with the first tag.
    pub stop_after_first: bool,
}

/// `begin content end`.
#[derive(Clone, Debug)]
pub struct Tag {
    /// The JSON pointer.
    pub at: String,
    /// What it begins with.
    pub begin: Mark,
    /// What is in it.
    pub content: Node,
    /// Any of these ends it.
    pub ends: Vec<Mark>,
}

/// The begin or the end of a tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mark {
    /// A text, perhaps empty.
    Text(String),
    /// A token.
    Token(SpecialToken),
}

impl Mark {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Token(_) => None,
        }
    }
}

/// Reads a structural tag: `{"type":"structural_tag","format":…}`, or the older
/// `{"structures":[…],"triggers":[…]}`.
pub fn parse(source: &str) -> Result<Node> {
    let document = read(source)
        .map_err(|error| Refusal::new(Kind::Syntax, "", format!("the structural tag is no JSON: {error}")))?;
    let whole = Object::new(&document, "", "a structural tag")?;
    if let Some(name) = document.get("type")
        && name.text().is_none_or(|name| &**name != "structural_tag")
    {
        let message = format!("the type of a structural tag is \"structural_tag\", not {name}");
        return Err(syntax("/type", message));
    }
    if document.get("structures").is_some() {
        whole.only(&["type", "structures", "triggers"])?;
        return older(&whole);
    }
    whole.only(&["type", "format"])?;
    format(whole.need("format")?, "/format")
}

/// `{"structures":[{"begin":…,"schema":…,"end":…}],"triggers":[…]}`.
fn older(whole: &Object<'_>) -> Result<Node> {
    let mut tags = Vec::new();
    for (value, at) in whole.list("structures")? {
        let item = Object::new(value, &at, "a structure")?;
        item.only(&["begin", "schema", "end"])?;
        let schema = match item.need("schema")? {
            Value::String(text) => read(text)
                .map_err(|error| syntax(&item.place("schema"), format!("the schema is no JSON: {error}")))?,
            schema => schema.clone(),
        };
        let (style, special_tokens) = (Style::Json, Vec::new());
        let schema = SchemaFormat {
            schema,
            style,
            any_order: false,
            max_whitespace: None,
            special_tokens,
            excludes: Vec::new(),
        };
        let content = Node { at: item.place("schema"), format: Format::Schema(schema) };
        let begin = Mark::Text(item.text("begin")?);
        tags.push(Tag { at: at.clone(), begin, content, ends: vec![Mark::Text(item.text("end")?)] });
    }
    let triggers = whole.marks("triggers")?;
    let (excludes, at_least_one, stop_after_first) = (Vec::new(), false, false);
    let triggered = Triggered { triggers, tags, excludes, at_least_one, stop_after_first };
    Ok(Node { at: String::new(), format: Format::Triggered(triggered) })
}

/// The names of all formats.
pub const FORMATS: [&str; 21] = [
    "const_string",
    "json_schema",
    "qwen_xml_parameter",
    "regex",
    "grammar",
    "any_text",
    "sequence",
    "or",
    "optional",
    "plus",
    "star",
    "repeat",
    "tag",
    "triggered_tags",
    "tags_with_separator",
    "dispatch",
    "token",
    "any_tokens",
    "exclude_token",
    "token_triggered_tags",
    "token_dispatch",
];

fn format(value: &Value, at: &str) -> Result<Node> {
    let fields = Object::new(value, at, "a format")?;
    let name = fields.text("type")?;
    let format = match &*name {
        "const_string" => fields.with(&["value"], |fields| Ok(Format::Const(fields.text("value")?)))?,
        "regex" => fields.with(&["pattern"], |fields| Ok(Format::Regex(fields.text("pattern")?)))?,
        "grammar" => fields.with(&["grammar"], |fields| Ok(Format::Ebnf(fields.text("grammar")?)))?,
        "json_schema" => schema(&fields, None)?,
        "qwen_xml_parameter" => schema(&fields, Some(Style::Qwen))?,
        "any_text" => any_text(&fields)?,
        "sequence" => fields.with(&["elements"], |fields| Ok(Format::Sequence(elements(fields)?)))?,
        "or" => fields.with(&["elements"], |fields| Ok(Format::Or(elements(fields)?)))?,
        "optional" => fields.with(&["content"], |fields| repeat(fields, (0, Some(1))))?,
        "plus" => fields.with(&["content"], |fields| repeat(fields, (1, None)))?,
        "star" => fields.with(&["content"], |fields| repeat(fields, (0, None)))?,
        "repeat" => fields.with(&["min", "max", "content"], |fields| repeat(fields, bounds(fields)?))?,
        "tag" => Format::Tag(Box::new(tag(value, at)?)),
        "triggered_tags" => triggered(&fields)?,
        "tags_with_separator" => separated(&fields)?,
        "dispatch" => dispatch(&fields)?,
        "token" => fields.with(&["token"], |fields| Ok(Format::Token(token(fields)?)))?,
        "exclude_token" => fields.with(&["exclude_tokens"], |fields| {
            Ok(Format::ExceptToken(fields.optional_tokens("exclude_tokens")?))
        })?,
        "any_tokens" => fields.with(&["exclude_tokens", "max_tokens"], |fields| {
            let one = Format::ExceptToken(fields.optional_tokens("exclude_tokens")?);
            let content = Box::new(Node { at: format!("{at}/exclude_tokens"), format: one });
            Ok(Format::Repeat { content, min: 0, max: fields.count("max_tokens")? })
        })?,
        "token_triggered_tags" => token_triggered(&fields)?,
        "token_dispatch" => token_dispatch(&fields)?,
        _ => {
            let known = FORMATS.join(", ");
            return Err(syntax(&fields.place("type"), format!("no format `{name}`; there are {known}")));
        }
    };
    Ok(Node { at: at.to_owned(), format })
}

fn elements(fields: &Object<'_>) -> Result<Vec<Node>> {
    let elements: Vec<Node> =
        fields.list("elements")?.iter().map(|(value, at)| format(value, at)).collect::<Result<_>>()?;
    if elements.is_empty() {
        return Err(syntax(&fields.place("elements"), "there has to be at least one element"));
    }
    Ok(elements)
}

fn repeat(fields: &Object<'_>, (min, max): (u32, Option<u32>)) -> Result<Format> {
    let content = Box::new(format(fields.need("content")?, &fields.place("content"))?);
    Ok(Format::Repeat { content, min, max })
}

fn bounds(fields: &Object<'_>) -> Result<(u32, Option<u32>)> {
    let min = fields.count("min")?.ok_or_else(|| fields.lacks("min"))?;
    let max = match fields.need("max")?.number().and_then(|number| number.to_integer()) {
        Some(-1) => None,
        _ => fields.count("max")?,
    };
    if max.is_some_and(|max| max < min) {
        let message = format!("at least {min} and at most {} times", max.unwrap_or_default());
        return Err(syntax(&fields.place("max"), message));
    }
    Ok((min, max))
}

fn any_text(fields: &Object<'_>) -> Result<Format> {
    fields.only(&["type", "excludes", "max_tokens", "max_chars"])?;
    let most = Most { chars: fields.count("max_chars")?, tokens: fields.count("max_tokens")? };
    Ok(Format::AnyText { excludes: fields.optional_marks("excludes")?, most })
}

fn schema(fields: &Object<'_>, style: Option<Style>) -> Result<Format> {
    let all =
        ["type", "json_schema", "style", "any_order", "max_whitespace_cnt", "excludes", "special_tokens"];
    fields.only(if style.is_some() { &all[..2] } else { &all })?;
    let excludes = fields.optional_marks("excludes")?;
    let style = match (style, fields.value.get("style")) {
        (Some(style), _) => style,
        (None, None) => Style::Json,
        (None, Some(_)) => {
            let name = fields.text("style")?;
            Style::by_name(&name).ok_or_else(|| {
                let known = Style::ALL.map(Style::name).join(", ");
                syntax(&fields.place("style"), format!("no style `{name}`; there are {known}"))
            })?
        }
    };
    let nests = matches!(style, Style::Cohere | Style::MiniMaxM3 | Style::Gemma);
    if nests && !excludes.is_empty() {
        let message = format!(
            "texts cannot be kept out of the strings of the style `{}`, whose objects nest; leave `excludes` \
             out",
            style.name()
        );
        return Err(unsupported(&fields.place("excludes"), message));
    }
    let special_tokens = fields.optional_marks("special_tokens")?;
    if style == Style::Json && !special_tokens.is_empty() {
        return Err(syntax(&fields.place("special_tokens"), "this is about the marks of a `style`"));
    }
    Ok(Format::Schema(SchemaFormat {
        schema: fields.need("json_schema")?.clone(),
        style,
        any_order: fields.flag("any_order", false)?,
        max_whitespace: fields.count("max_whitespace_cnt")?,
        special_tokens,
        excludes,
    }))
}

fn tag(value: &Value, at: &str) -> Result<Tag> {
    let fields = Object::new(value, at, "a tag")?;
    fields.only(&["type", "begin", "content", "end"])?;
    if let Some(name) = fields.value.get("type")
        && name.text().is_none_or(|name| &**name != "tag")
    {
        return Err(syntax(&fields.place("type"), format!("only a \"tag\" can stand here, not {name}")));
    }
    let begin = mark(fields.need("begin")?, &fields.place("begin"))?;
    let content = format(fields.need("content")?, &fields.place("content"))?;
    let ends = match fields.need("end")? {
        Value::Array(ends) if ends.is_empty() => {
            return Err(syntax(&fields.place("end"), "there has to be at least one end"));
        }
        Value::Array(_) => {
            let ends = fields.list("end")?;
            ends.iter().map(|(value, at)| Ok(Mark::Text(text_of(value, at)?))).collect::<Result<_>>()?
        }
        end => vec![mark(end, &fields.place("end"))?],
    };
    Ok(Tag { at: at.to_owned(), begin, content, ends })
}

fn mark(value: &Value, at: &str) -> Result<Mark> {
    if value.members().is_none() {
        return Ok(Mark::Text(text_of(value, at)?));
    }
    let fields = Object::new(value, at, "a token")?;
    fields.only(&["type", "token"])?;
    match fields.value.get("type") {
        Some(name) if name.text().is_none_or(|name| &**name != "token") => {
            Err(syntax(&fields.place("type"), format!("a text or a \"token\" can stand here, not {name}")))
        }
        _ => Ok(Mark::Token(token(&fields)?)),
    }
}

fn token(fields: &Object<'_>) -> Result<SpecialToken> {
    token_of(fields.need("token")?, &fields.place("token"))
}

/// A token by its name or its id.
fn token_of(value: &Value, at: &str) -> Result<SpecialToken> {
    let id = || value.count().and_then(|id| u32::try_from(id).ok());
    match value {
        Value::String(name) => Ok(SpecialToken::Name(name.to_string())),
        _ => {
            id().map(SpecialToken::Id).ok_or_else(|| syntax(at, "the name or the id of a token stands here"))
        }
    }
}

fn token_triggered(fields: &Object<'_>) -> Result<Format> {
    fields.only(&["type", "trigger_tokens", "tags", "exclude_tokens", "at_least_one", "stop_after_first"])?;
    Ok(Format::TokenTriggered {
        triggers: fields.tokens("trigger_tokens")?,
        tags: tags(fields)?,
        excludes: fields.optional_tokens("exclude_tokens")?,
        at_least_one: fields.flag("at_least_one", false)?,
        stop_after_first: fields.flag("stop_after_first", false)?,
    })
}

fn token_dispatch(fields: &Object<'_>) -> Result<Format> {
    fields.only(&["type", "rules", "loop", "exclude_tokens"])?;
    let mut rules = Vec::new();
    for (rule, at) in fields.list("rules")? {
        let Some([token, content]) = rule.items() else {
            return Err(syntax(&at, "a rule is a list of a token and a format"));
        };
        rules.push((token_of(token, &format!("{at}/0"))?, format(content, &format!("{at}/1"))?));
    }
    if rules.is_empty() {
        return Err(syntax(&fields.place("rules"), "there has to be at least one rule"));
    }
    let (repeats, excludes) = (fields.flag("loop", true)?, fields.optional_tokens("exclude_tokens")?);
    Ok(Format::TokenDispatch { rules, repeats, excludes })
}

fn tags(fields: &Object<'_>) -> Result<Vec<Tag>> {
    let tags: Vec<Tag> =
        fields.list("tags")?.iter().map(|(value, at)| tag(value, at)).collect::<Result<_>>()?;
    if tags.is_empty() {
        return Err(syntax(&fields.place("tags"), "there has to be at least one tag"));
    }
    Ok(tags)
}

fn triggered(fields: &Object<'_>) -> Result<Format> {
    fields.only(&["type", "triggers", "tags", "excludes", "at_least_one", "stop_after_first"])?;
    Ok(Format::Triggered(Triggered {
        triggers: fields.marks("triggers")?,
        tags: tags(fields)?,
        excludes: fields.optional_marks("excludes")?,
        at_least_one: fields.flag("at_least_one", false)?,
        stop_after_first: fields.flag("stop_after_first", false)?,
    }))
}

fn separated(fields: &Object<'_>) -> Result<Format> {
    fields.only(&["type", "tags", "separator", "at_least_one", "stop_after_first"])?;
    Ok(Format::Separated {
        tags: tags(fields)?,
        separator: fields.text("separator")?,
        at_least_one: fields.flag("at_least_one", false)?,
        stop_after_first: fields.flag("stop_after_first", false)?,
    })
}

fn dispatch(fields: &Object<'_>) -> Result<Format> {
    fields.only(&["type", "rules", "loop", "excludes"])?;
    let mut rules = Vec::new();
    for (rule, at) in fields.list("rules")? {
        let Some([mark, content]) = rule.items() else {
            return Err(syntax(&at, "a rule is a list of a text and a format"));
        };
        let place = format!("{at}/0");
        let mark = text_of(mark, &place)?;
        if mark.is_empty() {
            return Err(syntax(&place, "the empty text stands everywhere"));
        }
        rules.push((mark, format(content, &format!("{at}/1"))?));
    }
    if rules.is_empty() {
        return Err(syntax(&fields.place("rules"), "there has to be at least one rule"));
    }
    let (repeats, excludes) = (fields.flag("loop", true)?, fields.optional_marks("excludes")?);
    Ok(Format::Dispatch { rules, repeats, excludes })
}

/// An object whose fields are read.
struct Object<'v> {
    value: &'v Value,
    at: &'v str,
    what: &'static str,
}

impl<'v> Object<'v> {
    fn new(value: &'v Value, at: &'v str, what: &'static str) -> Result<Self> {
        match value {
            Value::Object(_) => Ok(Self { value, at, what }),
            _ => Err(syntax(at, format!("{what} is an object"))),
        }
    }

    /// The pointer of a field.
    fn place(&self, name: &str) -> String {
        format!("{}/{name}", self.at)
    }

    fn lacks(&self, name: &str) -> Refusal {
        syntax(self.at, format!("{} needs the field `{name}`", self.what))
    }

    /// Refuses all other fields.
    fn only(&self, names: &[&str]) -> Result<()> {
        let mut members = self.value.members().unwrap_or_default().iter();
        match members.find(|(name, _)| !names.contains(&&**name)) {
            Some((name, _)) => {
                let message =
                    format!("{} of this type has no such field; it has {}", self.what, names.join(", "));
                Err(syntax(&self.place(&escape(name)), message))
            }
            None => Ok(()),
        }
    }

    /// What is made of a format that has these fields.
    fn with(&self, names: &[&str], make: impl FnOnce(&Self) -> Result<Format>) -> Result<Format> {
        let names: Vec<&str> = std::iter::once("type").chain(names.iter().copied()).collect();
        self.only(&names)?;
        make(self)
    }

    fn need(&self, name: &str) -> Result<&'v Value> {
        self.value.get(name).ok_or_else(|| self.lacks(name))
    }

    fn text(&self, name: &str) -> Result<String> {
        text_of(self.need(name)?, &self.place(name))
    }

    fn list(&self, name: &str) -> Result<Vec<(&'v Value, String)>> {
        let place = self.place(name);
        let items = self.need(name)?.items().ok_or_else(|| syntax(&place, "a list has to stand here"))?;
        Ok(items.iter().enumerate().map(|(at, item)| (item, format!("{place}/{at}"))).collect())
    }

    /// A list of texts that are not empty.
    fn marks(&self, name: &str) -> Result<Vec<String>> {
        let texts: Vec<String> = self
            .list(name)?
            .iter()
            .map(|(item, at)| match text_of(item, at)? {
                text if text.is_empty() => Err(syntax(at, "the empty text stands everywhere")),
                text => Ok(text),
            })
            .collect::<Result<_>>()?;
        match texts.is_empty() && name == "triggers" {
            true => Err(syntax(&self.place(name), "there has to be at least one trigger")),
            false => Ok(texts),
        }
    }

    fn tokens(&self, name: &str) -> Result<Vec<SpecialToken>> {
        self.list(name)?.iter().map(|(item, at)| token_of(item, at)).collect()
    }

    fn optional_tokens(&self, name: &str) -> Result<Vec<SpecialToken>> {
        self.value.get(name).map_or(Ok(Vec::new()), |_| self.tokens(name))
    }

    fn optional_marks(&self, name: &str) -> Result<Vec<String>> {
        self.value.get(name).map_or(Ok(Vec::new()), |_| self.marks(name))
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool> {
        match self.value.get(name) {
            None => Ok(default),
            Some(&Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(syntax(&self.place(name), "true or false has to stand here")),
        }
    }

    /// A count up to 2,147,483,647; `null` is none.
    fn count(&self, name: &str) -> Result<Option<u32>> {
        match self.value.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.count().map(i32::try_from) {
                Some(Ok(count)) => Ok(Some(count.unsigned_abs())),
                _ => Err(syntax(&self.place(name), format!("a count up to {} has to stand here", i32::MAX))),
            },
        }
    }
}

/// A name as a part of a JSON pointer.
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn text_of(value: &Value, at: &str) -> Result<String> {
    value.text().map(|text| text.to_string()).ok_or_else(|| syntax(at, "a text has to stand here"))
}

pub(crate) fn syntax(at: &str, message: impl Into<String>) -> Refusal {
    Refusal::new(Kind::Syntax, at, message)
}

pub(crate) fn unsupported(at: &str, message: impl Into<String>) -> Refusal {
    Refusal::new(Kind::Unsupported, at, message)
}
