//! Groups that capture: how many there are, and what may name them.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex_syntax::hir::ClassUnicode;

use super::classes;

/// What a reader has to know about the groups before it comes to them.
pub(super) struct Groups {
    /// How many groups capture.
    pub(super) count: usize,
    /// Whether one has a name, so that `\k` is a reference by Annex B too.
    pub(super) has_names: bool,
}

/// The groups of an expression, if it is one.
pub(super) fn count_groups(text: &str) -> Groups {
    let mut groups = Groups { count: 0, has_names: false };
    let mut in_class = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => {
                let rest = chars.as_str();
                let has_name = rest.starts_with("?<") && !rest.starts_with("?<=") && !rest.starts_with("?<!");
                groups.has_names |= has_name;
                groups.count += usize::from(has_name || !rest.starts_with('?'));
            }
            _ => {}
        }
    }
    groups
}

/// Moves names from one set to another; one that is already there, if any.
pub(super) fn merge(into: &mut HashSet<String>, mut from: HashSet<String>) -> Option<String> {
    if into.len() < from.len() {
        std::mem::swap(into, &mut from);
    }
    let mut twice = None;
    for name in from {
        if into.contains(&name) {
            twice = Some(name);
        } else {
            into.insert(name);
        }
    }
    twice
}

/// Whether a name can begin so.
pub(super) fn can_begin(c: char) -> bool {
    static START: LazyLock<Option<ClassUnicode>> = LazyLock::new(|| classes::of_regex(r"\p{ID_Start}"));
    matches!(c, '$' | '_') || START.as_ref().is_some_and(|class| classes::contains(class, c))
}

/// Whether a name can go on so.
pub(super) fn can_continue(c: char) -> bool {
    static REST: LazyLock<Option<ClassUnicode>> = LazyLock::new(|| classes::of_regex(r"\p{ID_Continue}"));
    let is_other = matches!(c, '$' | '\u{200c}' | '\u{200d}');
    is_other || REST.as_ref().is_some_and(|class| classes::contains(class, c))
}
