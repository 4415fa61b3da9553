//! Masks that are computed before an output comes there.

use std::sync::Arc;

use anygram_bits::work::Cancel;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, ErrorKind, Language, LanguageOptions, Limits, Matcher};
use anygram_vocab::Vocabulary;

const SUMS: &str = r#"start: sum
sum: (sum ("+" | "-"))? part
part: "(" sum ")" | /[0-9]+/ | /[a-z]+/
%ignore " "
"#;

fn matcher(limits: Limits) -> Matcher {
    let grammar = lark::parse(SUMS, &LarkOptions::default()).unwrap();
    let options = LanguageOptions { limits, ..LanguageOptions::default() };
    let language = Arc::new(Language::new(grammar, &options).unwrap());
    Constraint::new(language, Vocabulary::builtin()).unwrap().matcher().unwrap()
}

/// Whether the masks along a text are known before they are asked for, and right.
fn known(matcher: &mut Matcher, text: &str) -> Vec<bool> {
    let mut alone = self::matcher(Limits::default());
    let mut words = vec![0; matcher.constraint().mask_words()];
    let mut known = Vec::new();
    for token in matcher.constraint().vocabulary().encode(text).unwrap() {
        known.push(matcher.known_mask_into(&mut words).unwrap());
        matcher.mask_into(&mut words).unwrap();
        assert_eq!(words, alone.mask().unwrap().words());
        matcher.advance(token).unwrap();
        alone.advance(token).unwrap();
    }
    known
}

#[test]
fn what_was_worked_out_ahead_is_looked_up() {
    const TEXT: &str = "(a+12)-b";
    let mut cold = matcher(Limits::default());
    let n_cold = known(&mut cold, TEXT).iter().filter(|known| **known).count();
    let mut warm = matcher(Limits::default());
    assert_eq!(warm.work_ahead(300, &Cancel::new()), 300);
    assert!(warm.tokens().is_empty());
    let known = known(&mut warm, TEXT);
    assert!(known.iter().all(|known| *known) && n_cold < known.len(), "{known:?}, {n_cold}");
}

#[test]
fn it_ends_when_it_is_cancelled_and_where_all_is_known() {
    let matcher = matcher(Limits::default());
    let cancel = Cancel::new();
    let worker = std::thread::spawn({
        let (matcher, cancel) = (matcher.fork(), cancel.clone());
        move || matcher.work_ahead(usize::MAX, &cancel)
    });
    let mut output = matcher.fork();
    output.mask().unwrap();
    cancel.cancel();
    // It does not end otherwise. It can have looked at nothing, or at much; the masks are right either way.
    worker.join().unwrap();
    known(&mut output, "((1))");
    assert_eq!(matcher.work_ahead(10, &cancel), 0);

    let grammar = lark::parse(r#"start: "yes" | "no""#, &LarkOptions::default()).unwrap();
    let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
    let few = Constraint::new(language, Vocabulary::builtin()).unwrap().matcher().unwrap();
    assert!(few.work_ahead(usize::MAX, &Cancel::new()) < 20);
}

#[test]
fn a_limit_is_for_the_mask_that_hits_it() {
    let limits = Limits { mask_steps: 50, ..Limits::default() };
    let mut matcher = matcher(limits);
    assert_eq!(matcher.work_ahead(100, &Cancel::new()), 0);
    assert_eq!(matcher.mask().unwrap_err().kind(), ErrorKind::Limit);
}
