//! What any left-to-right engine must satisfy (DESIGN, section 3), as plain functions over any
//! implementation.
//!
//! Each law panics with the law's name and the tokens before it. They say nothing about which tokens are
//! right: that is for [`Oracle`](crate::oracle::Oracle). Cost: a mask or two per token of the row, unless a
//! law says otherwise.

/// An engine with a state: what the laws talk about.
///
/// Token ids are below [`n_tokens`](LeftToRight::n_tokens); masks have one bit per token, lowest bit first,
/// and no bit beyond. A clone is a fork.
pub trait LeftToRight: Clone {
    /// What may stand next, as 32-bit words.
    fn mask(&mut self) -> Vec<u32>;
    /// Appends a token and says whether it was allowed; a refused one leaves everything as it was.
    fn advance(&mut self, token: u32) -> bool;
    /// Takes back the last `n` tokens.
    fn rollback(&mut self, n: usize);
    /// Whether the text so far is a sentence.
    fn is_sentence(&mut self) -> bool;
    /// How many of the tokens could be advanced, without advancing.
    fn validate(&mut self, tokens: &[u32]) -> usize;
    /// The size of the vocabulary.
    fn n_tokens(&self) -> usize;
}

/// Whether a mask has a token's bit.
pub fn bit(mask: &[u32], token: u32) -> bool {
    mask[token as usize / 32] >> (token % 32) & 1 == 1
}

/// Checks all laws on an engine in its initial state, along a row of tokens as far as it is allowed.
///
/// Cost: quadratic in the row, times the vocabulary for [`advance_iff_bit`].
pub fn all<E: LeftToRight>(start: &E, tokens: &[u32]) {
    mask_is_well_formed(start);
    advance_iff_bit(start, tokens);
    refusal_changes_nothing(start, tokens);
    rollback_undoes_advance(start, tokens);
    rollback_of_many(start, tokens);
    fork_equals_rebuild(start, tokens);
    forks_are_independent(start, tokens);
    validate_counts_advances(start, tokens);
}

/// A mask has `n_tokens` bits, rounded up to words, and none beyond; asking twice changes nothing.
pub fn mask_is_well_formed<E: LeftToRight>(start: &E) {
    let mut engine = start.clone();
    let mask = engine.mask();
    let n_tokens = engine.n_tokens();
    assert_eq!(mask.len(), n_tokens.div_ceil(32), "mask_is_well_formed: words for {n_tokens} tokens");
    let beyond = (n_tokens..mask.len() * 32).find(|&token| bit(&mask, token as u32));
    assert_eq!(beyond, None, "mask_is_well_formed: a bit beyond {n_tokens} tokens");
    assert_eq!(engine.mask(), mask, "mask_is_well_formed: the second answer differs");
}

/// After every beginning of the row, every token of the vocabulary advances iff its bit is set.
pub fn advance_iff_bit<E: LeftToRight>(start: &E, tokens: &[u32]) {
    along(start, tokens, |before, engine| {
        let mask = engine.mask();
        for token in 0..engine.n_tokens() as u32 {
            let allowed = bit(&mask, token);
            assert_eq!(engine.clone().advance(token), allowed, "advance_iff_bit: {token} after {before:?}");
        }
    });
}

/// A refused token leaves mask and sentence as they were.
pub fn refusal_changes_nothing<E: LeftToRight>(start: &E, tokens: &[u32]) {
    along(start, tokens, |before, engine| {
        let observed = observe(engine);
        for token in (0..engine.n_tokens() as u32).filter(|&token| !bit(&observed.0, token)) {
            assert!(!engine.advance(token), "refusal_changes_nothing: {token} after {before:?}");
        }
        assert_eq!(observe(engine), observed, "refusal_changes_nothing: after {before:?}");
    });
}

/// `advance(v)` then `rollback(1)` is the identity, for every allowed token after every beginning of the row.
pub fn rollback_undoes_advance<E: LeftToRight>(start: &E, tokens: &[u32]) {
    along(start, tokens, |before, engine| {
        let observed = observe(engine);
        engine.rollback(0);
        assert_eq!(observe(engine), observed, "rollback_undoes_advance: of nothing, after {before:?}");
        for token in (0..engine.n_tokens() as u32).filter(|&token| bit(&observed.0, token)) {
            assert!(engine.advance(token), "rollback_undoes_advance: {token} after {before:?}");
            engine.rollback(1);
            assert_eq!(observe(engine), observed, "rollback_undoes_advance: {token} after {before:?}");
        }
    });
}

/// Taking back `n` tokens leads to the state before them, and the same tokens lead on again.
pub fn rollback_of_many<E: LeftToRight>(start: &E, tokens: &[u32]) {
    let mut states = Vec::new();
    along(start, tokens, |_, engine| states.push(observe(engine)));
    let allowed = &tokens[..states.len() - 1];
    let mut engine = advanced(start, allowed);
    for n in 0..=allowed.len() {
        let kept = allowed.len() - n;
        engine.rollback(n);
        assert_eq!(observe(&mut engine), states[kept], "rollback_of_many: {n} of {allowed:?}");
        for (at, &token) in allowed.iter().enumerate().skip(kept) {
            assert!(engine.advance(token), "rollback_of_many: {token} again, after {:?}", &allowed[..at]);
            assert_eq!(observe(&mut engine), states[at + 1], "rollback_of_many: again {:?}", &allowed[..=at]);
        }
    }
}

/// A fork after some tokens equals an engine that was brought there from the start.
pub fn fork_equals_rebuild<E: LeftToRight>(start: &E, tokens: &[u32]) {
    along(start, tokens, |before, engine| {
        let mut rebuilt = advanced(start, before);
        let mut fork = engine.clone();
        assert_eq!(observe(&mut fork), observe(&mut rebuilt), "fork_equals_rebuild: after {before:?}");
    });
}

/// What happens to a fork leaves the other one as it was.
pub fn forks_are_independent<E: LeftToRight>(start: &E, tokens: &[u32]) {
    along(start, tokens, |before, engine| {
        let observed = observe(engine);
        let mut fork = engine.clone();
        if let Some(token) = (0..engine.n_tokens() as u32).find(|&token| bit(&observed.0, token)) {
            fork.advance(token);
            fork.rollback(1);
            fork.rollback(before.len());
            fork.advance(token);
        }
        assert_eq!(observe(engine), observed, "forks_are_independent: after {before:?}");
    });
}

/// `validate` says how many tokens could be advanced, from every beginning of the row, and changes nothing.
pub fn validate_counts_advances<E: LeftToRight>(start: &E, tokens: &[u32]) {
    along(start, tokens, |before, engine| {
        let rest = &tokens[before.len()..];
        let observed = observe(engine);
        let valid = engine.validate(rest);
        assert_eq!(observe(engine), observed, "validate_counts_advances: changed the state after {before:?}");
        let mut fork = engine.clone();
        let advanced = rest.iter().take_while(|&&token| fork.advance(token)).count();
        assert_eq!(valid, advanced, "validate_counts_advances: {rest:?} after {before:?}");
    });
}

fn observe<E: LeftToRight>(engine: &mut E) -> (Vec<u32>, bool) {
    (engine.mask(), engine.is_sentence())
}

fn advanced<E: LeftToRight>(start: &E, tokens: &[u32]) -> E {
    let mut engine = start.clone();
    for &token in tokens {
        assert!(engine.advance(token), "a rebuild of {tokens:?} refuses {token}");
    }
    engine
}

/// Calls `law` after every beginning of the row that is allowed, the empty one included, each time on a fork.
fn along<E: LeftToRight>(start: &E, tokens: &[u32], mut law: impl FnMut(&[u32], &mut E)) {
    let mut engine = start.clone();
    law(&[], &mut engine.clone());
    for (at, &token) in tokens.iter().enumerate() {
        if !engine.advance(token) {
            return;
        }
        law(&tokens[..=at], &mut engine.clone());
    }
}
