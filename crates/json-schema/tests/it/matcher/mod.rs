//! What a pattern means, slow and plain: the ends of its matches from a place of a text.

use std::collections::BTreeSet;

use anygram_json_schema::pattern::Pattern;

/// Whether a pattern matches some part of a text.
pub fn is_match(pattern: &Pattern, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    !ends(pattern, &text, &(0..=text.len()).collect()).is_empty()
}

fn ends(pattern: &Pattern, text: &[char], starts: &BTreeSet<usize>) -> BTreeSet<usize> {
    let holds = |holds: &dyn Fn(usize) -> bool| starts.iter().copied().filter(|&at| holds(at)).collect();
    match pattern {
        Pattern::Empty => starts.clone(),
        Pattern::Class(class) => {
            let is_in = |c: char| {
                let at = class.ranges().partition_point(|range| range.end() < c);
                class.ranges().get(at).is_some_and(|range| range.start() <= c)
            };
            starts.iter().filter(|&&at| text.get(at).is_some_and(|&c| is_in(c))).map(|at| at + 1).collect()
        }
        Pattern::Concat(parts) => parts.iter().fold(starts.clone(), |starts, part| {
            if starts.is_empty() { starts } else { ends(part, text, &starts) }
        }),
        Pattern::Alternate(parts) => parts.iter().flat_map(|part| ends(part, text, starts)).collect(),
        Pattern::Repeat { inner, min, max } => repeat(inner, *min, *max, text, starts),
        Pattern::Start => holds(&|at| at == 0),
        Pattern::End => holds(&|at| at == text.len()),
        Pattern::WordBoundary { negated } => {
            let is_word = |at: usize| text.get(at).is_some_and(|c| c.is_ascii_alphanumeric() || *c == '_');
            holds(&|at| (is_word(at) != (at > 0 && is_word(at - 1))) != *negated)
        }
        Pattern::LookAhead { inner, negated } => {
            holds(&|at| ends(inner, text, &BTreeSet::from([at])).is_empty() == *negated)
        }
    }
}

/// All ends after so many times. A time that changes nothing is the last that has to be looked at: where a
/// place leads to itself it does so any number of times, and else it leads forward.
fn repeat(
    inner: &Pattern,
    min: u32,
    max: Option<u32>,
    text: &[char],
    starts: &BTreeSet<usize>,
) -> BTreeSet<usize> {
    let mut now = starts.clone();
    for _ in 0..min {
        let next = ends(inner, text, &now);
        if next == now {
            break;
        }
        now = next;
    }
    let mut all = now.clone();
    for _ in min..max.unwrap_or(u32::MAX) {
        now = ends(inner, text, &now).difference(&all).copied().collect();
        if now.is_empty() {
            break;
        }
        all.extend(&now);
    }
    all
}
