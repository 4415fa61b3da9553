//! Outputs as servers use them: EOS of one request, rows of any width, several tokens at once.

use std::sync::Arc;

use anygram_grammar::ir::LexerMode;
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{
    BatchOptions, Constraint, Language, LanguageOptions, MaskRows, MatchError, Matcher, batch_masks,
};
use anygram_testkit::generate::{EOS, RandomCase};
use anygram_vocab::{SpecialIds, TokenId, TokenMask, Vocabulary};

const TOKENS: [&str; 8] = ["(", ")", "x", "((", "))", "", "", ""];
/// What ends a text by the vocabulary, by the grammar or by a request, and by a request alone.
const END: [TokenId; 3] = [TokenId(5), TokenId(6), TokenId(7)];

fn constraint() -> Constraint {
    let source = "start: \"(\" start \")\" | \"x\" | <[6]> start\n";
    let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    let special = SpecialIds { eos: vec![5], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(TOKENS, special).unwrap();
    Constraint::new(Arc::new(language), vocabulary).unwrap()
}

fn after(text: &str, eos: &[TokenId]) -> Matcher {
    let mut matcher = constraint().matcher().unwrap();
    matcher.set_eos(eos).unwrap();
    matcher.advance_text(text).unwrap();
    matcher
}

fn allowed(mask: &TokenMask) -> Vec<u32> {
    mask.iter().map(|token| token.0).collect()
}

#[test]
fn each_output_ends_by_its_own_tokens() {
    let [usual, named, other] = END;
    for (eos, at_start, at_end) in [
        (vec![usual], vec![0, 2, 3, 6], vec![5]),
        (vec![other], vec![0, 2, 3, 6], vec![7]),
        (vec![named, other], vec![0, 2, 3, 6], vec![6, 7]),
        (vec![], vec![0, 2, 3, 6], vec![]),
    ] {
        let mut matcher = after("", &eos);
        assert_eq!(matcher.eos(), eos);
        for _ in 0..2 {
            // A second time masks come from tables that know them.
            assert_eq!(allowed(&matcher.mask().unwrap()), at_start, "{eos:?}");
            matcher.advance_text("(x)").unwrap();
            assert_eq!(allowed(&matcher.mask().unwrap()), at_end, "{eos:?}");
            assert_eq!(allowed(&matcher.mask_with_budget(3).unwrap()), at_end, "{eos:?}");
            assert!(matcher.must_stop().unwrap());
            for end in END {
                let ends = matcher.fork().advance(end).is_ok();
                assert_eq!(ends, eos.contains(&end), "{eos:?}, {end:?}");
            }
            if let Some(&end) = eos.first() {
                matcher.advance(end).unwrap();
                assert!(matcher.has_ended());
                assert_eq!(allowed(&matcher.mask().unwrap()), at_end);
            }
            matcher.reset();
        }
    }
}

#[test]
fn outputs_with_other_ends_share_masks() {
    let constraint = constraint();
    let mut matchers = constraint.matchers(BatchOptions { n_outputs: 3, n_tables: 1 }).unwrap();
    for (matcher, end) in matchers.iter_mut().zip([0, 2, 0]) {
        matcher.set_eos(&[END[end]]).unwrap();
        matcher.advance_text("x").unwrap();
    }
    let masks: Vec<_> = matchers.iter_mut().map(|matcher| allowed(&matcher.mask().unwrap())).collect();
    assert_eq!(masks, [[5], [7], [5]]);
    assert!(matchers[0].memo_counts().found > 0);
}

#[test]
fn what_cannot_end_an_output_is_refused() {
    let mut matcher = constraint().matcher().unwrap();
    let error = matcher.set_eos(&[TokenId(0)]).unwrap_err();
    assert_eq!(error.to_string(), "token 0 cannot end an output: it has bytes; give special tokens");
    assert!(matches!(matcher.set_eos(&[TokenId(99)]), Err(MatchError::UnknownToken { id: 99, size: 8 })));
    matcher.advance_text("(").unwrap();
    assert!(matches!(matcher.set_eos(&END), Err(MatchError::Eos { id: None })));
    assert_eq!(matcher.eos(), &END[..1]);
}

#[test]
fn several_tokens_or_none() {
    let mut matcher = after("(", &END[..1]);
    let error = matcher.advance_all(&[TokenId(2), TokenId(1), TokenId(1)]).unwrap_err();
    assert!(matches!(error, MatchError::Refused(_)), "{error}");
    assert_eq!(matcher.tokens(), [TokenId(0)]);
    assert_eq!(matcher.advance_text("((x))").unwrap(), 3);
    assert!(matches!(matcher.advance_text("y"), Err(MatchError::Encode { .. })));
    assert!(matches!(matcher.advance_text("x"), Err(MatchError::Refused(_))));
    assert_eq!(matcher.tokens().len(), 4);
}

#[test]
fn rows_of_any_width_and_stride() {
    let expected = after("x", &END[..1]).mask().unwrap().into_words();
    assert_eq!(expected, [1 << 5]);
    for (stride, width) in [(1, 1), (5, 1), (5, 3), (4, 4), (3, 0)] {
        let mut matchers = [after("x", &END[..1]), after("x", &END[..1])];
        let mut words = vec![9; 2 * stride];
        let rows = MaskRows::new(&mut words, stride).with_width(width);
        assert!(batch_masks(&mut matchers, rows).iter().all(Result::is_ok));
        for row in words.chunks(stride) {
            let right: Vec<u32> =
                (0..stride).map(|at| if at >= width { 9 } else { (at == 0).into() }).collect();
            assert_eq!(row, right.iter().map(|&word| if word == 1 { 32 } else { word }).collect::<Vec<_>>());
        }
        if width > 0 {
            let short =
                MaskRows::new(&mut words[..2 * stride - (stride - width) - 1], stride).with_width(width);
            let results = batch_masks(&mut matchers, short);
            assert!(results.iter().all(|r| *r == Err(MatchError::TooFewRows { needed: 2, given: 1 })));
        }
    }
}

/// Random grammars: an output with an end of its own has the masks of one whose vocabulary ends there.
#[test]
fn an_end_of_its_own_is_that_of_a_vocabulary() {
    let mut n_masks = 0;
    for seed in 0..60 {
        for mode in LexerMode::ALL {
            let case = RandomCase::in_mode(seed, mode);
            let other = case.vocab.len() as u32;
            let vocabulary = |eos| {
                let tokens = case.vocab.iter().map(|token| token.as_deref().unwrap_or_default());
                let special = SpecialIds { eos: vec![eos], ..SpecialIds::default() };
                Vocabulary::from_tokens(tokens.chain([&[][..]]), special).unwrap()
            };
            let options =
                LanguageOptions { lexer: Some(mode), ties: case.ties, ..LanguageOptions::default() };
            let Ok(language) = Language::new(case.grammar.clone(), &options).map(Arc::new) else { continue };
            let matcher = |eos| {
                Constraint::new(language.clone(), vocabulary(eos)).map(|constraint| constraint.matcher())
            };
            // A grammar that names a token by a name is of no use here.
            let (Ok(Ok(mut own)), Ok(Ok(mut right))) = (matcher(EOS), matcher(other)) else { continue };
            own.set_eos(&[TokenId(other)]).unwrap();
            for tokens in &case.tokens {
                own.reset();
                right.reset();
                for &token in tokens {
                    let (Ok(mask), Ok(expected)) = (own.mask(), right.mask()) else { break };
                    assert_eq!(mask, expected, "seed {seed}, {mode:?}, after {:?}", own.tokens());
                    assert_eq!(mask.contains(TokenId(other)), own.is_sentence());
                    n_masks += 1;
                    let advanced = own.advance(TokenId(token)).is_ok();
                    assert_eq!(advanced, right.advance(TokenId(token)).is_ok(), "seed {seed}, {mode:?}");
                    if !advanced {
                        break;
                    }
                }
            }
        }
    }
    assert!(n_masks > 500, "{n_masks}");
}
