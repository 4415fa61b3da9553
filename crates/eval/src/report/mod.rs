//! Tables, drawings, and the page `docs/results.md`.
//!
//! The page is a template (`page.md`) whose places in double braces are filled with tables of the given
//! lines. The template has what the papers report, with the source. So everything that the page says about
//! our results was computed.

mod cells;
mod compare;
mod draw;
mod infilled;
mod table;
mod tables;
mod wrap;

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
        ("unfinished", infilled::unfinished(lines)),
        ("masks", infilled::masks(lines)),
    ];
    for (place, text) in filled {
        let text = if text.is_empty() { "Not measured in these lines.\n".to_owned() } else { text };
        page = page.replace(&format!("{{{{{place}}}}}\n"), &text);
    }
    Ok(Report { page: wrap::wrapped(&page), drawings })
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
