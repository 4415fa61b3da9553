//! Tables, drawings, and the page `docs/results.md`.
//!
//! The page is a text with places in double braces (`page.md`) that are filled with tables of the lines
//! given; what the papers report stands in the text, with its source. So the page has nothing about our
//! results that the command did not compute.

mod cells;
mod compare;
mod draw;
mod infilled;
mod table;
mod tables;

use std::path::Path;

use crate::generation::{Invocation, Line};
use crate::{EvalError, Lines};
use cells::Cells;

/// What is written.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The page, as Markdown.
    pub page: String,
    /// Drawings: the name of a file, and its SVG.
    pub drawings: Vec<(&'static str, String)>,
}

impl Report {
    /// Writes the page, and the drawings beside it.
    pub fn write(&self, page: &Path) -> Result<(), EvalError> {
        std::fs::write(page, &self.page)?;
        for (name, svg) in &self.drawings {
            std::fs::write(page.with_file_name(name), svg)?;
        }
        Ok(())
    }
}

/// The page of results. Equal lines make equal pages.
///
/// # Errors
/// There is nothing to tell of, or generations of several seeds, temperatures or lengths stand side by side,
/// which cannot be compared.
pub fn report(lines: &Lines) -> Result<Report, EvalError> {
    if lines.lines.is_empty() {
        return Err(EvalError::Nothing);
    }
    let cells = Cells::new(lines.generations())?;
    let drawings = draw::drawings(&cells)?;
    let mut page = include_str!("page.md").to_owned();
    let filled = [
        ("invocations", invocations(lines)),
        ("setting", cells.setting()),
        ("verdict", compare::verdict(&cells)),
        ("steps", tables::steps(&cells)),
        ("tries", tables::tries(&cells)),
        ("times", tables::times(&cells)),
        ("ablation", tables::ablation(&cells)),
        ("shares", tables::shares(&cells)),
        ("curves", tables::curves(&cells)),
        ("failures", tables::failures(&cells)),
        ("differences", compare::differences(&cells)),
        ("losses", compare::losses(&cells)),
        ("infilled", infilled::table(lines)),
        ("masks", infilled::masks(lines)),
    ];
    for (place, text) in filled {
        let text = if text.is_empty() { "Not measured in these lines.\n".to_owned() } else { text };
        page = page.replace(&format!("{{{{{place}}}}}\n"), &text);
    }
    Ok(Report { page, drawings })
}

/// The commands that made the lines.
fn invocations(lines: &Lines) -> String {
    let mut text = String::new();
    let mut seen: Vec<&Invocation> = Vec::new();
    for line in &lines.lines {
        let Line::Invocation(invocation) = line else { continue };
        if seen.contains(&invocation) {
            continue;
        }
        seen.push(invocation);
        text.push_str(&format!("- `{}`", invocation.command.replace('`', "'")));
        if !invocation.note.is_empty() {
            text.push_str(&format!(" ({})", invocation.note));
        }
        text.push('\n');
    }
    text
}
