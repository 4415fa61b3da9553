//! Markdown tables.

/// Rows of cells.
#[derive(Default)]
pub(super) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Nothing if there are no rows.
    pub fn markdown(&self, heading: &str) -> String {
        if self.is_empty() {
            return String::new();
        }
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut text = if heading.is_empty() { String::new() } else { format!("{heading}\n\n") };
        text.push_str(&line(&self.head));
        text.push_str(&format!("|{}\n", "---|".repeat(self.head.len())));
        self.rows.iter().for_each(|row| text.push_str(&line(row)));
        text
    }
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// A number of which three digits matter.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
