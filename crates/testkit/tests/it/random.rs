//! [`random`](anygram_testkit::random).

use anygram_testkit::random::*;

#[test]
fn a_seed_means_the_same_forever() {
    let mut random = Random::new(1);
    assert_eq!([random.bits(), random.bits()], [0x910a_2dec_8902_5cc1, 0xbeeb_8da1_658e_ec67]);
}

#[test]
fn every_item_is_drawn() {
    let mut random = Random::new(7);
    let mut seen = [0; 5];
    (0..500).for_each(|_| seen[random.between(1, 5) - 1] += 1);
    assert!(seen.iter().all(|&n| n > 50), "{seen:?}");
}
