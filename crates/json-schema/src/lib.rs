//! JSON Schema as a grammar: every draft from 4 to 2020-12.
//!
//! | module | what |
//! |---|---|
//! | [`read`](mod@read), [`value`] | JSON texts and values, numbers exactly |
//! | [`document`] | schemas in their documents: drafts, addresses, anchors, references |
//! | `keywords` | what each keyword asserts of values of one type |
//! | `unevaluated` | what no other keyword looked at |
//! | [`algebra`], [`atoms`] | sets of literals (schemas and their negations), expanded to clauses |
//! | [`forms`] | clauses with all below them resolved; which sets have a value at all |
//! | [`strings`], [`chars`] | patterns, formats and lengths as automata over code points |
//! | [`pattern`], [`mod@format`] | expressions of ECMA-262; the nineteen formats |
//! | [`pieces`], [`numbers`] | strings and numbers as JSON spells them, as automata over bytes |
//! | [`rules`] | objects and arrays as automata over terminals and values |
//! | [`memory`], [`held`] | keys and items that may not be repeated, which no automaton remembers |
//! | `finite` | sets with few values, of which the automata know which were seen |
//! | [`mod@lower`] | all of it as the parts of a grammar |
//! | `metaschemas` | the drafts' own schemas, for references to them |
//! | [`options`] | options by name |
//! | [`mod@explain`] | what each schema costs, and parts without which the same texts are valid |
//! | [`place`] | where the beginning of a JSON text stops, as a pointer, and in which key |
//! | `contradiction` | of a schema that no value satisfies, what contradicts what |
//! | [`refusal`] | why a schema is refused |
//!
//! What is not exact is refused by keyword and place, never weakened.

pub mod algebra;
pub mod atoms;
pub mod chars;
mod contradiction;
pub mod document;
pub mod explain;
mod finite;
pub mod format;
pub mod forms;
pub mod held;
mod keywords;
pub mod lower;
pub mod memory;
mod metaschemas;
pub mod numbers;
pub mod options;
pub mod pattern;
pub mod pieces;
pub mod place;
pub mod read;
pub mod refusal;
pub mod rules;
pub mod strings;
mod unevaluated;
pub mod value;

use anygram_bits::work::Cancel;
use anygram_grammar::ir::Grammar;

use crate::algebra::{Algebra, KeyOrder, Limits};
use crate::document::{Documents, Draft};
use crate::forms::Forms;
use crate::lower::{Lowered, Whitespace, lower};
use crate::pieces::Escapes;
use crate::refusal::{Kind, Refusal};
use crate::value::Value;

/// How a schema is read, and what its texts look like.
#[derive(Clone, Debug)]
pub struct Options {
    /// What may stand between the parts of a text.
    pub whitespace: Whitespace,
    /// The order of an object's keys.
    pub key_order: KeyOrder,
    /// Which characters may be spelled by escapes.
    pub escapes: Escapes,
    /// Whether objects that declare keys have no others, unless a keyword asks for them.
    pub declared_only: bool,
    /// Whether `format` is an assertion, or else an annotation.
    pub asserts_formats: bool,
    /// The draft of documents that name none.
    pub draft: Draft,
    /// Documents that references may point into, by their addresses. None is ever fetched.
    pub documents: Vec<(String, String)>,
    /// Bounds on what a schema may expand to.
    pub limits: Limits,
    /// States that one automaton may make while texts are read.
    pub schema_states: usize,
    /// Levels of objects and arrays within each other in an indented text; without indentation there is no
    /// bound. The size of the grammar of a recursive schema grows with it.
    pub indent_depth: u32,
    /// Stops the work on a schema when asked to.
    pub cancel: Option<Cancel>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            whitespace: Whitespace::default(),
            key_order: KeyOrder::default(),
            escapes: Escapes::default(),
            declared_only: false,
            asserts_formats: true,
            draft: Draft::Draft2020,
            documents: Vec::new(),
            limits: Limits::default(),
            schema_states: 1_000_000,
            indent_depth: 32,
            cancel: None,
        }
    }
}

/// The grammar of a schema's texts.
///
/// Lexing is `scannerless`; strings, numbers, objects and arrays are automata that grow while texts are read.
pub fn grammar(schema: &str, options: &Options) -> Result<Grammar, Refusal> {
    Ok(lowered(schema, options)?.into_grammar())
}

/// The same as a part of another grammar, with a memory for each value instead of one of the whole text.
pub fn embedded(schema: &str, options: &Options) -> Result<Grammar, Refusal> {
    Ok(lowered(schema, options)?.into_embedded())
}

/// The parts of the grammar of a schema's texts.
pub fn lowered(schema: &str, options: &Options) -> Result<Lowered, Refusal> {
    let schema = read::read(schema).map_err(|error| error.refusal("the schema"))?;
    lowered_value(&schema, options).map_err(|refusal| match refusal.kind {
        Kind::Unsatisfiable => contradiction(&schema, options, refusal),
        _ => refusal,
    })
}

/// The refusal of a schema without values, with what contradicts what.
fn contradiction(schema: &Value, options: &Options, refusal: Refusal) -> Refusal {
    let is_unsatisfiable = |refusal: Refusal| refusal.kind == Kind::Unsatisfiable;
    let has_none = |schema: &Value| lowered_value(schema, options).err().is_some_and(is_unsatisfiable);
    let message = match &*contradiction::keywords(schema, has_none) {
        [] => return refusal,
        [only] => format!("no value is valid because of {only}"),
        [most @ .., last] => {
            format!("no value is valid: {} and {last} contradict each other", most.join(", "))
        }
    };
    Refusal { message, ..refusal }
}

/// Whether a schema has a value: if not, that is the refusal.
fn emptiness(schema: &str, options: &Options) -> Result<(), Refusal> {
    let schema = read::read(schema).map_err(|error| error.refusal("the schema"))?;
    lowered_value(&schema, options).map(drop)
}

fn lowered_value(schema: &Value, options: &Options) -> Result<Lowered, Refusal> {
    let document = |text: &str| read::read(text).map_err(|error| error.refusal("a document"));
    let others = options.documents.iter().map(|(address, text)| Ok((address.as_str(), document(text)?)));
    let mut others: Vec<(&str, Value)> = others.collect::<Result<_, Refusal>>()?;
    let known = std::iter::once(schema).chain(others.iter().map(|(_, document)| document));
    let known: Vec<(&str, &str)> = known.flat_map(metaschemas::referred_to).collect();
    for (address, text) in known {
        // What the caller supplied comes first.
        if !others.iter().any(|&(other, _)| other == address) {
            others.push((address, document(text)?));
        }
    }
    let others = others.iter().map(|(address, document)| (*address, document));
    let documents = Documents::new(schema, others, options.draft)?;
    let mut algebra =
        Algebra::new(documents, options.asserts_formats, options.limits, options.cancel.as_ref())
            .with_keys(options.key_order.clone(), options.declared_only);
    let forms = Forms::new(&mut algebra)?;
    let limits = (options.escapes, options.schema_states, options.indent_depth);
    lower(algebra, forms, options.whitespace, limits)
}
