//! Which part of a text is which rule.

use std::sync::Mutex;

use anygram::ir::Symbol;
use pyo3::prelude::*;

use crate::compiler::Language;
use crate::constraint::Constraint;
use crate::error::{Raise, invalid};
use crate::gate::work;
use crate::matcher::lock;
use crate::tokens::{Text, Token};

/// A node of a parse tree, made by `Language.tree`.
#[pyclass(frozen, module = "anygram")]
pub struct TreeNode {
    name: String,
    is_rule: bool,
    start: usize,
    end: usize,
    depth: usize,
}

#[pymethods]
impl TreeNode {
    /// The name of the rule, or of the terminal.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a rule, and not the piece of a terminal.
    #[getter]
    fn is_rule(&self) -> bool {
        self.is_rule
    }

    /// Where it begins, in bytes.
    #[getter]
    fn start(&self) -> usize {
        self.start
    }

    /// Where it ends, in bytes.
    #[getter]
    fn end(&self) -> usize {
        self.end
    }

    /// How deep it is; the root is 0.
    #[getter]
    fn depth(&self) -> usize {
        self.depth
    }

    fn __repr__(&self) -> String {
        format!("TreeNode({:?}, {}..{}, depth={})", self.name, self.start, self.end, self.depth)
    }
}

/// The nodes of the parse tree of a text, each before those below it.
pub fn tree(py: Python<'_>, language: &anygram::Language, text: &[u8]) -> PyResult<Option<Vec<TreeNode>>> {
    let tree = work(py, || anygram::Tree::read(language, text)).raise(py)?;
    let node = |node: &anygram::TreeNode| TreeNode {
        name: language.grammar().symbol_name(node.symbol).to_owned(),
        is_rule: matches!(node.symbol, Symbol::Nonterminal(_)),
        start: node.span.start,
        end: node.span.end,
        depth: node.depth,
    };
    Ok(tree.map(|tree| tree.nodes.iter().map(node).collect()))
}

/// A rule was entered or left, see `Captures`.
#[pyclass(frozen, module = "anygram")]
pub struct CaptureEvent {
    rule: String,
    start: usize,
    end: Option<usize>,
}

#[pymethods]
impl CaptureEvent {
    /// The name of the rule.
    #[getter]
    fn rule(&self) -> &str {
        &self.rule
    }

    /// Where it begins, in bytes.
    #[getter]
    fn start(&self) -> usize {
        self.start
    }

    /// Where it ends, in bytes, if it is left; `None` if it is entered.
    #[getter]
    fn end(&self) -> Option<usize> {
        self.end
    }

    fn __repr__(&self) -> String {
        match self.end {
            None => format!("CaptureEvent({:?}, {}, None)", self.rule, self.start),
            Some(end) => format!("CaptureEvent({:?}, {}, {end})", self.rule, self.start),
        }
    }
}

/// Which part of a text is which rule, while the text is being written.
///
/// Events are told as soon as they are certain: when every way to read every continuation has them. Of a text
/// with one reading that is when a rule is entered and left. `finish` tells the rest; then all events are
/// those of the parse tree (`Language.tree`). `copy.copy` is an independent copy.
///
/// >>> import anygram
/// >>> source = 'start: "call " name "(" value ")"\nname: /[a-z]+/\nvalue: /[0-9]+/'
/// >>> language = anygram.Compiler("scannerless").compile(source, "lark")
/// >>> captures = anygram.Captures(language)
/// >>> captures.read("call f(")
/// [CaptureEvent("start", 0, None), CaptureEvent("name", 5, None), CaptureEvent("name", 5, 6)]
/// >>> captures.read("12)")
/// [CaptureEvent("value", 7, None), CaptureEvent("value", 7, 9), CaptureEvent("start", 0, 10)]
/// >>> captures.finish()
/// []
///
/// Args:
///     language: the grammar whose rules are told.
#[pyclass(frozen, module = "anygram")]
pub struct Captures {
    inner: Mutex<anygram::Captures>,
    language: Py<Language>,
}

impl Captures {
    fn shown(&self, events: Vec<anygram::CaptureEvent>) -> Vec<CaptureEvent> {
        let grammar = self.language.get().inner.grammar();
        let shown = events.into_iter().map(|anygram::CaptureEvent { rule, start, end }| CaptureEvent {
            rule: grammar.symbol_name(Symbol::Nonterminal(rule)).to_owned(),
            start,
            end,
        });
        shown.collect()
    }
}

#[pymethods]
impl Captures {
    #[new]
    fn new(py: Python<'_>, language: Py<Language>) -> PyResult<Self> {
        let of = language.get().inner.clone();
        let inner = work(py, || anygram::Captures::new(of)).raise(py)?;
        Ok(Self { inner: Mutex::new(inner), language })
    }

    /// Reads the next part of the text; of one that the matcher refuses nothing is promised.
    ///
    /// Returns:
    ///     What is certain from then on, and was not told before.
    ///
    /// Raises:
    ///     LimitError: it takes more memory than the limit `shared_items` allows.
    fn read(&self, py: Python<'_>, text: Text) -> PyResult<Vec<CaptureEvent>> {
        let events = work(py, || lock(&self.inner).read(&text.0)).raise(py)?;
        Ok(self.shown(events))
    }

    /// Reads a token, also one that the grammar names.
    ///
    /// Args:
    ///     constraint: whose vocabulary has the token.
    ///     token: its id.
    ///
    /// Raises:
    ///     AnygramError: the constraint is one of another language, or the token is not in its vocabulary.
    ///     LimitError: as `read`.
    fn read_token(
        &self,
        py: Python<'_>,
        constraint: &Bound<'_, Constraint>,
        token: Token,
    ) -> PyResult<Vec<CaptureEvent>> {
        let of = &constraint.get().inner;
        if !std::sync::Arc::ptr_eq(of.language(), &self.language.get().inner) {
            return Err(invalid(py, "the constraint is one of another language"));
        }
        let size = of.vocabulary().len();
        if token.0.index() >= size {
            let message = format!("token {} is not in the vocabulary of {size} tokens", token.0.0);
            return Err(invalid(py, &message));
        }
        let events = work(py, || lock(&self.inner).read_token(of, token.0)).raise(py)?;
        Ok(self.shown(events))
    }

    /// Ends the text; it can be read on all the same.
    ///
    /// Returns:
    ///     The events of its parse tree that were not told before; `None` if it is no sentence. Where tokens
    ///     were read that the grammar names, those that all ways to read the text have.
    ///
    /// Raises:
    ///     LimitError: as `read`.
    fn finish(&self, py: Python<'_>) -> PyResult<Option<Vec<CaptureEvent>>> {
        let events = work(py, || lock(&self.inner).finish()).raise(py)?;
        Ok(events.map(|events| self.shown(events)))
    }

    fn __copy__(&self, py: Python<'_>) -> Self {
        Self { inner: Mutex::new(lock(&self.inner).clone()), language: self.language.clone_ref(py) }
    }
}
