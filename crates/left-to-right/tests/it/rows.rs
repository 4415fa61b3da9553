//! Rows of buffers against arithmetic on indexes: any length, offset, stride and width, and vocabularies of
//! any size.

use std::sync::Arc;

use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{
    Constraint, Draft, Language, LanguageOptions, MaskRows, MatchError, Matcher, batch_masks,
};
use anygram_testkit::random::Random;
use anygram_vocab::{SpecialIds, TokenId, Vocabulary};

/// Where rows stand in a buffer.
#[derive(Clone, Copy, Debug)]
struct Shape {
    n_words: usize,
    /// The word at which the part of the buffer begins that the rows are given.
    offset: usize,
    stride: usize,
    width: usize,
}

impl Shape {
    fn random(random: &mut Random) -> Self {
        let offset = random.below(5);
        let n_words = offset + random.below(60);
        let stride = random.below(10);
        Self { n_words, offset, stride, width: random.below(12) }
    }

    fn rows(self, words: &mut [u32]) -> MaskRows<'_> {
        let rows = MaskRows::new(&mut words[self.offset..], self.stride);
        // Without a width rows are as wide as the stride.
        if self.width == 11 { rows } else { rows.with_width(self.width) }
    }

    /// The first word of each row, and the width of all.
    fn places(self) -> (Vec<usize>, usize) {
        let (stride, width) = (self.stride.max(1), self.width.min(self.stride));
        let fits = |row: &usize| match width {
            0 => row + stride <= self.n_words,
            _ => row + width <= self.n_words,
        };
        ((self.offset..).step_by(stride).take_while(fits).collect(), width)
    }
}

/// A row as it has to be: what is allowed, then zeros.
fn words(allowed: &[bool], width: usize) -> Vec<u32> {
    let bit = |id: usize| u32::from(allowed.get(id) == Some(&true));
    (0..width).map(|word| (0..32).map(|at| bit(32 * word + at) << at).sum()).collect()
}

#[test]
fn rows_are_where_arithmetic_says() {
    let mut random = Random::new(21);
    let mut n_rows = 0;
    for _ in 0..5_000 {
        let shape = Shape::random(&mut random);
        let (places, width) = shape.places();
        let before: Vec<u32> = (0..shape.n_words).map(|_| random.bits() as u32).collect();
        let (mut after, mut right) = (before.clone(), before);
        let mut rows = shape.rows(&mut after);
        assert_eq!((rows.len(), rows.width()), (places.len(), width), "{shape:?}");
        assert_eq!(rows.is_empty(), places.is_empty(), "{shape:?}");
        let mut n_seen = 0;
        for (row, &place) in rows.iter_mut().zip(&places) {
            assert_eq!(row, &right[place..place + width], "{shape:?}");
            let mask = random.bits() as u32;
            row.fill(mask);
            right[place..place + width].fill(mask);
            n_seen += 1;
        }
        assert_eq!((n_seen, rows.iter_mut().count()), (places.len(), places.len()), "{shape:?}");
        assert_eq!(after, right, "{shape:?}");
        n_rows += if width > 0 { places.len() } else { 0 };
    }
    assert!(n_rows > 5_000, "{n_rows}");
}

/// Texts of `a` and `b` and brackets around them, over a vocabulary of so many tokens.
fn constraint(random: &mut Random, n_tokens: usize) -> Constraint {
    let source = "start: \"a\"* | \"(\" start \")\" | \"b\" start \"c\"\n";
    let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
    let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
    let token = |random: &mut Random| -> Vec<u8> {
        (0..random.between(1, 3)).map(|_| *random.choose(b"aaab((cc)")).collect()
    };
    let tokens: Vec<Vec<u8>> = (0..n_tokens).map(|id| if id == 0 { vec![] } else { token(random) }).collect();
    let special = SpecialIds { eos: vec![0], ..SpecialIds::default() };
    Constraint::new(Arc::new(language), Vocabulary::from_tokens(tokens, special).unwrap()).unwrap()
}

/// Which tokens are allowed, each asked by itself.
fn allowed(matcher: &mut Matcher) -> Vec<bool> {
    let n_tokens = matcher.constraint().vocabulary().len();
    (0..n_tokens).map(|id| matcher.validate(&[TokenId::new(id)]) == Ok(1)).collect()
}

/// Writes masks through `write` and compares the whole buffer. `rights` has what is allowed in each row.
fn assert_written(
    random: &mut Random,
    rights: &[Vec<bool>],
    write: impl FnOnce(MaskRows<'_>) -> Option<MatchError>,
) -> bool {
    let shape = Shape::random(random);
    let (places, width) = shape.places();
    let before: Vec<u32> = (0..shape.n_words).map(|_| random.bits() as u32).collect();
    let (mut after, mut right) = (before.clone(), before);
    let error = write(shape.rows(&mut after));
    let fits = places.len() >= rights.len();
    if fits {
        assert_eq!(error, None, "{shape:?}");
        for (allowed, place) in rights.iter().zip(places) {
            right[place..place + width].copy_from_slice(&words(allowed, width));
        }
    } else {
        let error = error.expect("an error").to_string();
        assert!(error.contains(&rights.len().to_string()), "{shape:?}: {error}");
    }
    assert_eq!(after, right, "{shape:?}, masks of {} tokens", rights[0].len());
    fits && width > 0
}

#[test]
fn masks_are_written_where_arithmetic_says() {
    let mut random = Random::new(22);
    let mut counts = [0; 2];
    for _ in 0..150 {
        let n_tokens = random.between(1, 140);
        let constraint = constraint(&mut random, n_tokens);
        let mut matchers: Vec<Matcher> = (0..random.between(1, 4))
            .map(|_| {
                let mut matcher = constraint.matcher().unwrap();
                for _ in 0..4 {
                    _ = matcher.advance(TokenId::new(random.below(n_tokens)));
                }
                matcher
            })
            .collect();
        let rights: Vec<Vec<bool>> = matchers.iter_mut().map(allowed).collect();
        for _ in 0..4 {
            let write =
                |rows: MaskRows<'_>| batch_masks(&mut matchers, rows).into_iter().find_map(Result::err);
            counts[0] += usize::from(assert_written(&mut random, &rights, write));
        }

        // A row for each draft; of what is not allowed, an empty one.
        let matcher = &mut matchers[0];
        let tokens: Vec<usize> = (0..random.between(1, 4)).map(|_| random.below(n_tokens)).collect();
        let draft =
            |(at, &token): (usize, &usize)| Draft { token: TokenId::new(token), after: at.checked_sub(1) };
        let drafts: Vec<Draft> = tokens.iter().enumerate().map(draft).collect();
        let mut fork = matcher.fork();
        let rights: Vec<Vec<bool>> = drafts
            .iter()
            .scan(true, |is_allowed, draft| {
                *is_allowed &= fork.advance(draft.token).is_ok();
                Some(if *is_allowed { allowed(&mut fork) } else { vec![false; n_tokens] })
            })
            .collect();
        let write = |rows: MaskRows<'_>| matcher.draft_masks(&drafts, rows).err();
        counts[1] += usize::from(assert_written(&mut random, &rights, write));
    }
    assert!(counts[0] > 150 && counts[1] > 40, "{counts:?}");
}

/// A single mask into a row that is too wide or too narrow, with a budget and without.
#[test]
fn a_mask_fills_words_of_any_number() {
    let mut random = Random::new(23);
    for _ in 0..100 {
        let n_tokens = random.between(1, 140);
        let mut matcher = constraint(&mut random, n_tokens).matcher().unwrap();
        for _ in 0..3 {
            _ = matcher.advance(TokenId::new(random.below(n_tokens)));
        }
        let right = allowed(&mut matcher);
        let budget = random.below(4) as u32;
        let within = matcher.mask_with_budget(budget).unwrap();
        let within: Vec<bool> = (0..n_tokens).map(|id| within.contains(TokenId::new(id))).collect();
        for width in 0..8 {
            let mut row = vec![0xdead_beef; width];
            matcher.mask_into(&mut row).unwrap();
            assert_eq!(row, words(&right, width), "{n_tokens} tokens");
            row.fill(0xdead_beef);
            matcher.mask_with_budget_into(budget, &mut row).unwrap();
            assert_eq!(row, words(&within, width), "{n_tokens} tokens within {budget}");
        }
    }
}
