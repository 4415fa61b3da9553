//! Parse trees of texts.

use std::io::Write;
use std::sync::Arc;

use anygram::{CaptureEvent, Captures, Language};
use anygram_grammar::ir::Symbol;
use anygram_left_to_right::tree::{Tree, TreeNode};
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::quoted;

/// Characters of a piece that are shown.
const LONG: usize = 60;

/// How a tree is printed.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// A line for each node, indented.
    Pretty,
    /// One line of JSON: a list of nodes, each before those below it.
    Json,
    /// A line of JSON for each rule that is entered or left, after as many bytes as it is certain by.
    Events,
}

/// The events of a sentence that is written byte by byte.
pub fn events(language: Arc<Language>, text: &[u8], output: &mut dyn Write) -> Result<()> {
    let mut captures = Captures::new(language.clone())?;
    let mut print = |events: Vec<CaptureEvent>, at| {
        let mut lines = events.iter().map(|event| event_at(&language, event, at));
        lines.try_for_each(|event| writeln!(output, "{event}"))
    };
    for (at, &byte) in text.iter().enumerate() {
        print(captures.read(&[byte])?, at + 1)?;
    }
    let rest = captures.finish()?.context("it is a sentence and has no tree")?;
    Ok(print(rest, text.len())?)
}

/// An event, and what had to be read until it was certain.
pub fn event_at(language: &Language, event: &CaptureEvent, at: usize) -> Value {
    let &CaptureEvent { rule, start, end } = event;
    let name = language.grammar().symbol_name(Symbol::Nonterminal(rule));
    match end {
        None => json!({"at": at, "enter": name, "start": start}),
        Some(end) => json!({"at": at, "leave": name, "start": start, "end": end}),
    }
}

/// The tree of a sentence.
pub fn read(language: &Language, text: &[u8]) -> Result<Tree> {
    Tree::read(language, text)?.context("it is a sentence and has no tree")
}

/// The nodes of a tree, each before those below it.
pub fn nodes(language: &Language, tree: &Tree) -> Vec<Value> {
    let node = |node: &TreeNode| {
        let kind = if matches!(node.symbol, Symbol::Terminal(_)) { "terminal" } else { "rule" };
        let name = language.grammar().symbol_name(node.symbol);
        json!({"depth": node.depth, kind: name, "start": node.span.start, "end": node.span.end})
    };
    tree.nodes.iter().map(node).collect()
}

/// Prints a tree.
pub fn print(
    language: &Language,
    text: &[u8],
    tree: &Tree,
    style: Style,
    output: &mut dyn Write,
) -> Result<()> {
    let name = |node: &TreeNode| language.grammar().symbol_name(node.symbol);
    if style == Style::Json {
        writeln!(output, "{}", json!(nodes(language, tree)))?;
        return Ok(());
    }
    for node in &tree.nodes {
        let (indent, span) = (2 * node.depth, node.span.clone());
        let shown = match node.symbol {
            Symbol::Terminal(_) => format!(" {}", quoted(&text[span.clone()], LONG)),
            Symbol::Nonterminal(_) => String::new(),
        };
        writeln!(output, "{:indent$}{}{shown} {}..{}", "", name(node), span.start, span.end)?;
    }
    Ok(())
}
