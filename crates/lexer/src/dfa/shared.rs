//! Automata of small patterns, built once for all grammars ([`crate::shared`]). Who might reach a limit on
//! the way builds one himself. Cost, where it is known: the size of the pattern.

use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_grammar::ir::Pattern;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::{Dfa, DfaError, Nfa};
use crate::LexerLimits;
use crate::shared::Shared;

/// States, deterministic or not, that the automaton of a small pattern has at most.
const FEW: usize = 100;

/// Bytes that a small pattern is written in.
const LONGEST: usize = 96;

/// By what [`write`] makes of the pattern: the automaton, and the steps of building it.
static KNOWN: Shared<Box<[u8]>, (Arc<Dfa>, usize)> = Shared::new();

impl Dfa {
    /// As [`Dfa::new`]; that of a small pattern is shared by all who ask for it.
    pub fn shared(pattern: &Pattern, limits: &LexerLimits, work: &mut Work) -> Result<Arc<Self>, DfaError> {
        let mut key = Vec::new();
        // The sets of a subset construction have together at most so many states.
        let is_free = limits.nfa_states.min(limits.dfa_states) >= FEW * FEW;
        let Pattern::Regex(hir) = pattern else { return Ok(Arc::new(Self::new(pattern, limits, work)?)) };
        if !is_free || write(hir, &mut key).is_none() {
            return Ok(Arc::new(Self::new(pattern, limits, work)?));
        }
        if let Some((known, steps)) = KNOWN.get(&*key) {
            work.spend(steps)?;
            return Ok(known);
        }
        let before = work.used();
        let mut nfa = Nfa::default();
        let (start, end) = (nfa.add(), nfa.add());
        nfa.compile(pattern, start, end, limits, work, 0)?;
        let subsets = nfa.determinize(start, end, limits, work)?;
        let is_small = nfa.empty.len() <= FEW && subsets.n_states() <= FEW;
        let made = Arc::new(subsets.minimize(work)?);
        if is_small {
            KNOWN.insert(key.into(), (made.clone(), (work.used() - before) as usize));
        }
        Ok(made)
    }
}

/// Writes an expression so that those that are written alike have the same automaton: equal ones, but for the
/// names of groups and for look-around, which matches nothing. `None` if it is long.
fn write(hir: &Hir, key: &mut Vec<u8>) -> Option<()> {
    let number = |key: &mut Vec<u8>, n: u32| key.extend_from_slice(&n.to_le_bytes());
    let parts = |key: &mut Vec<u8>, tag, parts: &[Hir]| {
        key.push(tag);
        number(key, parts.len() as u32);
        parts.iter().try_for_each(|part| write(part, key))
    };
    match hir.kind() {
        HirKind::Empty => key.push(b'e'),
        HirKind::Look(_) => key.push(b'k'),
        HirKind::Literal(literal) => {
            key.push(b'l');
            number(key, literal.0.len() as u32);
            key.extend_from_slice(literal.0.get(..LONGEST.min(literal.0.len()))?);
        }
        HirKind::Class(Class::Bytes(class)) => {
            key.push(b'b');
            number(key, class.ranges().len() as u32);
            key.extend(class.ranges().iter().take(LONGEST).flat_map(|range| [range.start(), range.end()]));
        }
        HirKind::Class(Class::Unicode(class)) => {
            key.push(b'u');
            number(key, class.ranges().len() as u32);
            for range in class.ranges().iter().take(LONGEST) {
                number(key, range.start() as u32);
                number(key, range.end() as u32);
            }
        }
        HirKind::Repetition(repetition) => {
            key.push(if repetition.max.is_some() { b'm' } else { b'r' });
            number(key, repetition.min);
            number(key, repetition.max.unwrap_or(0));
            write(&repetition.sub, key)?;
        }
        HirKind::Capture(capture) => {
            key.push(b'g');
            write(&capture.sub, key)?;
        }
        HirKind::Concat(of) => parts(key, b'c', of)?,
        HirKind::Alternation(of) => parts(key, b'a', of)?,
    }
    (key.len() <= LONGEST).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::Regex(regex_syntax::parse(text).unwrap())
    }

    #[test]
    fn the_same_as_by_itself_in_as_many_steps() {
        let limits = LexerLimits::default();
        for text in ["", "x", r"[ \t\n\r]*,[ \t\n\r]*", "a|bc", "(a|b){2,5}", "(?i)k", "a{200}", "[a&&b]"] {
            let mut work = Work::unbounded();
            let right = Dfa::new(&pattern(text), &limits, &mut work).unwrap();
            for _ in 0..2 {
                let mut own = Work::unbounded();
                assert_eq!(*Dfa::shared(&pattern(text), &limits, &mut own).unwrap(), right, "{text}");
                assert_eq!(own.used(), work.used(), "{text}");
            }
        }
    }

    #[test]
    fn patterns_are_told_apart() {
        let texts = ["ab", "a|b", "a{2}", "a{2,}", "a{0,2}", "[a-b]", "[ab]c", "[a-c]", "(a)", "a", "b", ""];
        let key = |text: &str| {
            let mut key = Vec::new();
            write(&regex_syntax::parse(text).unwrap(), &mut key).map(|()| key)
        };
        for a in texts {
            for b in texts {
                let are_equal = regex_syntax::parse(a).unwrap() == regex_syntax::parse(b).unwrap();
                assert_eq!(key(a) == key(b), are_equal, "{a} {b}");
            }
        }
        assert!(key(&"x".repeat(200)).is_none() && key(r"\w").is_none());
    }

    #[test]
    fn limits_hold_for_what_is_known() {
        let few = LexerLimits { dfa_states: 3, ..LexerLimits::default() };
        let work = &mut Work::unbounded();
        assert!(Dfa::shared(&pattern("shared"), &LexerLimits::default(), work).is_ok());
        assert_eq!(Dfa::shared(&pattern("shared"), &few, work), Err(DfaError::TooManyDfaStates));
        let work = &mut Work::new(3, "compile_steps");
        assert!(matches!(
            Dfa::shared(&pattern("shared"), &LexerLimits::default(), work),
            Err(DfaError::Stopped(_))
        ));
    }
}
