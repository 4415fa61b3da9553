//! Token masks against sets, and against one `bool` for each token.

use std::collections::BTreeSet;

use anygram_testkit::random::Random;
use anygram_vocab::{ErrorKind, Logit, SpecialIds, TokenId, TokenMask, Vocabulary};
use half::{bf16, f16};

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

/// A set of tokens, as a `bool` for each.
fn bools(random: &mut Random, n_tokens: usize) -> Vec<bool> {
    let percent = *random.choose(&[0, 1, 10, 50, 97, 100]);
    let mut bools: Vec<bool> = (0..n_tokens).map(|_| random.chance(percent)).collect();
    // Masks do whole words at once where all bits are alike.
    for word in bools.chunks_mut(32) {
        if random.chance(30) {
            word.fill(random.chance(50));
        }
    }
    bools
}

fn words(bools: &[bool]) -> Vec<u32> {
    let word = |bits: &[bool]| bits.iter().rev().fold(0, |word, &bit| word << 1 | u32::from(bit));
    bools.chunks(32).map(word).collect()
}

fn mask(bools: &[bool]) -> TokenMask {
    TokenMask::from_words(words(bools), bools.len())
}

fn ids(bools: &[bool]) -> Vec<TokenId> {
    (0..bools.len()).filter(|&id| bools[id]).map(TokenId::new).collect()
}

/// Whether all that a mask says is what the `bool`s say.
fn assert_is(mask: &TokenMask, bools: &[bool]) {
    let allowed = ids(bools);
    assert_eq!(mask.n_tokens(), bools.len());
    assert_eq!((mask.words(), mask.as_ref()), (&words(bools)[..], &words(bools)[..]));
    assert_eq!(mask.iter().collect::<Vec<_>>(), allowed);
    assert_eq!(mask.into_iter().collect::<Vec<_>>(), allowed);
    assert_eq!((mask.count(), mask.is_empty()), (allowed.len(), allowed.is_empty()));
    assert_eq!(mask.only(), allowed.first().copied().filter(|_| allowed.len() == 1));
    for id in (0..bools.len() + 70).chain([u32::MAX as usize]) {
        assert_eq!(mask.contains(TokenId::new(id)), bools.get(id) == Some(&true), "{id} of {mask:?}");
    }
    let debug = format!("{mask:?}");
    assert!(debug.starts_with(&format!("TokenMask({} of {}: [", allowed.len(), bools.len())), "{debug}");
    assert_eq!(debug.ends_with(" …)"), allowed.len() > 8, "{debug}");
    assert_eq!(mask.clone().into_words(), words(bools));
}

#[test]
fn random_masks_are_bools() {
    let mut random = Random::new(11);
    assert_is(&TokenMask::default(), &[]);
    for _ in 0..600 {
        let n_tokens = random.below(200);
        assert_is(&TokenMask::new(n_tokens), &vec![false; n_tokens]);
        let mut model = bools(&mut random, n_tokens);
        // More words than the vocabulary has, or fewer.
        let longer = [&model[..], &vec![random.chance(50); random.below(100)]].concat();
        assert_is(&TokenMask::from_words(words(&longer), n_tokens), &model);
        let (kept, rest) = model.split_at(32 * random.below(n_tokens / 32 + 1));
        let cut = [kept, &vec![false; rest.len()]].concat();
        assert_is(&TokenMask::from_words(words(kept), n_tokens), &cut);

        let mut own = mask(&model);
        assert_is(&own, &model);
        for _ in 0..random.below(40) {
            let id = random.below(n_tokens + 40);
            let is_allowed = random.chance(50);
            let change = if is_allowed { TokenMask::insert } else { TokenMask::remove };
            change(&mut own, TokenId::new(id));
            model.get_mut(id).into_iter().for_each(|bit| *bit = is_allowed);
        }
        assert_is(&own, &model);
    }
}

#[test]
fn random_masks_compare_as_bools() {
    let mut random = Random::new(12);
    let mut n_subsets = 0;
    for _ in 0..2_000 {
        let n_tokens = random.below(150);
        let model = bools(&mut random, n_tokens);
        // Of another vocabulary, or of the same with some more or less.
        let mut other = model.clone();
        if random.chance(30) {
            let n_tokens = random.below(150);
            other = bools(&mut random, n_tokens);
        }
        for _ in 0..random.below(3).min(other.len()) {
            let at = random.below(other.len());
            other[at] = random.chance(80);
        }
        let is_subset = ids(&model).iter().all(|token| other.get(token.index()) == Some(&true));
        assert_eq!(mask(&model).is_subset(&mask(&other)), is_subset, "{model:?} {other:?}");
        assert_eq!(mask(&model) == mask(&other), model == other);
        n_subsets += usize::from(is_subset && model != other);
    }
    assert!(n_subsets > 100, "{n_subsets}");
}

/// Applies a mask to logits of one type; `bits` makes them comparable, NaN too.
fn assert_applies<L: Logit>(random: &mut Random, of: impl Fn(f32) -> L, bits: impl Fn(L) -> u64) {
    let values = [0.0, -0.0, 1.5, -3.25, 1e4, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    for _ in 0..300 {
        let n_tokens = random.below(150);
        let model = bools(random, n_tokens);
        // A row may have fewer logits than there are tokens, as many, or padding behind them.
        let n_padding = random.below(100);
        let n_logits = *random.choose(&[n_tokens, n_tokens + n_padding, n_tokens / 2]);
        let before: Vec<L> = (0..n_logits).map(|_| of(*random.choose(&values))).collect();
        let mut after = before.clone();
        mask(&model).apply_to_logits(&mut after);
        for (id, (&old, &new)) in before.iter().zip(&after).enumerate() {
            let is_allowed = model.get(id) == Some(&true);
            let right = if is_allowed { old } else { of(f32::NEG_INFINITY) };
            assert_eq!(bits(new), bits(right), "logit {id} of {n_logits}, {n_tokens} tokens");
        }
    }
}

#[test]
fn random_masks_apply_to_logits_as_bools() {
    let mut random = Random::new(13);
    assert_applies(&mut random, |value| value, |logit: f32| logit.to_bits().into());
    assert_applies(&mut random, f64::from, f64::to_bits);
    assert_applies(&mut random, f16::from_f32, |logit| logit.to_bits().into());
    assert_applies(&mut random, bf16::from_f32, |logit| logit.to_bits().into());
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
