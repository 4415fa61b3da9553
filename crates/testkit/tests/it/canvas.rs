//! [`canvas`](anygram_testkit::canvas).

use anygram_testkit::canvas::*;
use anygram_testkit::text::Sym;
use anygram_testkit::text::bytes_of;
use std::collections::BTreeSet;

#[test]
fn counts_holes_gaps_and_ends() {
    let vocab = [Some(b"a".to_vec()), Some(b"b".to_vec()), None, None];
    let roles = Roles { eos: vec![2], pad: Some(3), named: vec![] };
    let ends = |text: &[Sym], _: bool| bytes_of(text).is_some_and(|text| text == b"ab" || text == b"a");
    let answers =
        brute_force(&vocab, &roles, &[Slot::Fixed(0), Slot::Hole, Slot::Hole], 0, 100, ends).unwrap();
    assert_eq!(answers.admissible, [BTreeSet::from([1, 2]), BTreeSet::from([2, 3])]);
    assert_eq!((answers.minimum, answers.n_tried), (Some(1), 16));
    let gap = [Slot::Gap, Slot::Fixed(1)];
    let answers = brute_force(&vocab, &roles, &gap, 2, 100, ends).unwrap();
    assert_eq!((answers.completable, answers.minimum, answers.n_tried), (true, Some(2), 7));
    assert!(!brute_force(&vocab, &roles, &[Slot::Fixed(3)], 2, 100, ends).unwrap().completable);
    assert_eq!(brute_force(&vocab, &roles, &[Slot::Hole; 4], 0, 100, ends), None);
}
