//! Where in the value of a JSON schema a text stops, alone and within other grammars.

use std::fmt;

use anygram_grammar::ir::Span;
use anygram_json_schema::place;
use anygram_left_to_right::explain::{repeats_at, schema_at};
use anygram_left_to_right::{Language, StepError};

/// Where in the value of a JSON schema a text stops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemaPlace {
    /// The JSON pointer of the place in the value.
    pub pointer: String,
    /// The JSON pointer of the schema in a structural tag; empty if the schema is all of the grammar, or
    /// stands in a Lark grammar.
    pub schema: String,
    /// The bytes of a Lark grammar where the schema stands.
    pub span: Option<Span>,
    /// Where in the text the value begins.
    pub begin: usize,
    /// Whether what comes next is refused because a key, or an item that has to differ, would repeat one.
    pub repeats: bool,
    /// The key that the text is in, if the object has it already.
    pub repeated_key: Option<String>,
}

impl SchemaPlace {
    /// Whether the schema is all of the grammar.
    pub fn is_whole(&self) -> bool {
        self.schema.is_empty() && self.span.is_none()
    }
}

impl fmt::Display for SchemaPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "the root" } else { &self.pointer };
        write!(f, "at {pointer}")?;
        match &self.span {
            Some(span) => write!(f, " of the schema at byte {} of the grammar", span.start)?,
            None if self.is_whole() => {}
            None => write!(f, " of the schema at {}", self.schema)?,
        }
        match &self.repeated_key {
            Some(key) => write!(f, ": the key {key:?} is there already"),
            None if self.repeats => write!(f, ": it would repeat a key, or an item that has to differ"),
            None => Ok(()),
        }
    }
}

/// Where in the value of a JSON schema a text stops of which `length` bytes are the beginning of a sentence;
/// `None` if it stops outside of such values, or where that takes too long to find out.
///
/// Cost: of reading the text, and of reading its beginning as for a parse tree unless all of the grammar is a
/// schema.
///
/// # Errors
/// For limits.
///
/// ```
/// use anygram::{Compiler, GrammarFormat, schema_place};
///
/// let source = r#"start: "<" %json {"properties": {"a": {"type": "integer"}}} ">""#;
/// let language = Compiler::default().compile(GrammarFormat::Lark, source)?;
/// let place = schema_place(&language, br#"<{"a":x"#, 6)?.ok_or("it is in a value")?;
/// assert_eq!((&*place.pointer, place.span.map(|span| &source[span])), ("/a", Some(&source[11..59])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn schema_place(
    language: &Language,
    text: &[u8],
    length: usize,
) -> Result<Option<SchemaPlace>, StepError> {
    let begun = &text[..length.min(text.len())];
    let Some((schema, begin)) = schema_at(language, begun)? else { return Ok(None) };
    let (grammar, value) = (language.grammar(), &begun[begin..]);
    // Behind a value that is complete, what is around it says more.
    if schema != grammar.start && place::is_complete(value) {
        return Ok(None);
    }
    let repeated_key = place::repeated_key(&text[begin..], value.len());
    let hints = grammar.hints.iter().find(|(of, _)| *of == schema).map(|(_, hints)| hints);
    Ok(Some(SchemaPlace {
        pointer: place::pointer(value),
        schema: hints.and_then(|hints| hints.schema.clone()).unwrap_or_default(),
        span: grammar.nonterminals[schema.index()].span.clone(),
        begin,
        repeats: repeated_key.is_some() || repeats_at(language, text, begun.len())?,
        repeated_key,
    }))
}
