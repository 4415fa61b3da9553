//! Token masks against sets.

use std::collections::BTreeSet;

use anygram_testkit::random::Random;
use anygram_vocab::{ErrorKind, SpecialIds, TokenId, TokenMask, Vocabulary};

#[test]
fn a_mask_is_a_set() {
    let mut random = Random::new(7);
    for n_tokens in [0, 1, 31, 32, 33, 64, 200] {
        let mut mask = TokenMask::new(n_tokens);
        let mut set = BTreeSet::new();
        for _ in 0..100 {
            let token = TokenId::new(random.below(n_tokens + 40));
            if random.chance(60) {
                mask.insert(token);
                set.extend((token.index() < n_tokens).then_some(token));
            } else {
                mask.remove(token);
                set.remove(&token);
            }
        }
        assert_eq!(mask.iter().collect::<BTreeSet<_>>(), set);
        assert_eq!((mask.count(), mask.is_empty()), (set.len(), set.is_empty()));
        assert!(
            (0..n_tokens + 40).map(TokenId::new).all(|token| mask.contains(token) == set.contains(&token))
        );
        assert_eq!(mask.only(), set.first().copied().filter(|_| set.len() == 1));
        assert_eq!(TokenMask::from_words(mask.words().to_vec(), n_tokens), mask);
    }
}

#[test]
fn words_beyond_the_vocabulary_are_dropped() {
    let mask = TokenMask::from_words(vec![u32::MAX; 4], 35);
    assert_eq!(mask.words(), [u32::MAX, 0b111]);
    assert_eq!(format!("{mask:?}"), "TokenMask(35 of 35: [0, 1, 2, 3, 4, 5, 6, 7] …)");
    assert_eq!(TokenMask::from_words(vec![], 35).count(), 0);
}

#[test]
fn logits_of_every_width_and_type() {
    let mut mask = TokenMask::new(40);
    mask.insert(TokenId(0));
    mask.insert(TokenId(39));
    for n_logits in [1, 32, 39, 40, 64, 100] {
        let mut logits = vec![half::bf16::ONE; n_logits];
        mask.apply_to_logits(&mut logits);
        let mut as_f64 = vec![1.0_f64; n_logits];
        mask.apply_to_logits(&mut as_f64);
        for (id, logit) in logits.iter().enumerate() {
            let allowed = mask.contains(TokenId::new(id));
            assert_eq!(logit.to_f64(), if allowed { 1.0 } else { f64::NEG_INFINITY });
            assert_eq!(as_f64[id], logit.to_f64());
        }
    }
}

#[test]
fn a_vocabulary_of_tokens() {
    let tokens = ["a", "b", "", "ab", ""];
    let special = SpecialIds { eos: vec![2], ..SpecialIds::default() };
    let vocabulary = Vocabulary::from_tokens(tokens, special).unwrap();
    assert_eq!(vocabulary.len(), 5);
    assert_eq!(vocabulary.eos(), [TokenId(2)]);
    assert_eq!(vocabulary.bytes(TokenId(3)), Some(&b"ab"[..]));
    assert!(vocabulary.is_special(TokenId(4)));
    assert_eq!(vocabulary.encode("aba").unwrap(), [TokenId(3), TokenId(0)]);
    let huge = vec![vec![b'x'; 1 << 24]; 3];
    let error = Vocabulary::from_tokens(&huge, SpecialIds::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}
