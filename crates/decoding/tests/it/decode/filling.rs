//! How a canvas fills: order, pace, blocks, its end, revision, insertion, limits.

use super::*;

#[test]
fn eos_ends_the_canvas() {
    let constraint = brackets();
    // EOS in slot 1 is surest, then what stands behind it.
    let likes = || Likes { tokens: vec![2, 4, 0, 1], lead: vec![7.0, 9.0, 8.0, 6.0], size: 6, open: MASK };
    let options = DecodeOptions { pace: Pace::Tokens(1), ..DecodeOptions::default() };
    for named in STRATEGIES {
        let decoded = decode(&constraint, named.name, &holes(4), &mut likes(), &options);
        assert_eq!(ids(&decoded), [2, 4, 4, 4], "{}", named.name);
        assert!(decoded.trace.n_asked() <= 4);
    }
    // What the loop put behind the EOS before is overwritten, whether rows are complete (by margin) or not.
    // The `x` and the `)` that are put first suit each other.
    for order in [Order::Confidence, Order::Margin] {
        for name in ["none", "exact", "compatible"] {
            let options = DecodeOptions { order, ..options };
            let mut late =
                Likes { tokens: vec![2, 4, 2, 1], lead: vec![6.0, 7.0, 9.0, 8.0], size: 6, open: MASK };
            let decoded = decode(&constraint, name, &holes(4), &mut late, &options);
            assert_eq!(ids(&decoded), [2, 4, 4, 4], "{name}, {order:?}");
            assert_eq!(decoded.trace.n_refused(), 0, "{name}, {order:?}");
        }
    }
    // What was given is not.
    let given = Canvas::new(vec![Slot::Hole, Slot::Hole, Slot::Fixed(TokenId(0)), Slot::Hole], End::Sentence);
    assert_eq!(ids(&decode(&constraint, "none", &given, &mut likes(), &options)), [2, 4, 0, 4]);
    let given = Canvas::new(vec![Slot::Hole, Slot::Hole, Slot::Hole, Slot::Fixed(TokenId(1))], End::Sentence);
    for order in [Order::Confidence, Order::Margin] {
        let options = DecodeOptions { order, ..options };
        let decoded = decode(&constraint, "exact", &given, &mut likes(), &options);
        assert!(is_sentence(&constraint, &decoded) && ids(&decoded)[3] == 1, "{decoded:?}");
    }
}

/// A model that says something else once a slot is filled.
struct Turns {
    slot: usize,
    before: Likes,
    after: Likes,
}

impl Model for Turns {
    fn vocabulary_size(&self) -> usize {
        self.before.vocabulary_size()
    }

    fn open_slots(&self) -> OpenSlots {
        self.before.open_slots()
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        let is_open = OpenSlots::Mask(view.tokens[self.slot]) == self.before.open;
        if is_open { self.before.log_probs(view, rows) } else { self.after.log_probs(view, rows) }
    }
}

#[test]
fn nothing_stands_behind_where_the_text_ends() {
    let constraint = brackets();
    let options = DecodeOptions { pace: Pace::Tokens(1), ..DecodeOptions::default() };
    let likes =
        |lead: [f32; 5]| Likes { tokens: vec![0, 2, 1, 4, 1], lead: lead.to_vec(), size: 6, open: MASK };
    // `(x)` and EOS are likeliest, but the model is surest of a `)` in the last slot, which `((x))` alone
    // has.
    let ends = || likes([8.0, 7.0, 6.0, 5.0, 9.0]);
    // It sees that the text ends only when the first bracket stands.
    let turns = || Turns { slot: 0, before: likes([8.0, 0.1, 0.1, 0.0, 9.0]), after: ends() };
    for name in ["none", "exact", "compatible"] {
        let decoded = decode(&constraint, name, &holes(5), &mut ends(), &options);
        assert_eq!(ids(&decoded), [0, 2, 1, 4, 4], "{name}");
        assert_eq!(decoded.trace.n_refused(), 0, "{name}");
        let decoded = decode(&constraint, name, &holes(5), &mut turns(), &options);
        assert_eq!(ids(&decoded), [0, 2, 1, 4, 4], "{name}");
        assert_eq!(decoded.trace.n_refused(), 0, "{name}");
        let taken: Vec<usize> = decoded.trace.events().iter().filter_map(taken_back).collect();
        assert_eq!(taken, if name == "none" { vec![] } else { vec![4] }, "{name}");
    }
    // In the last step all is filled, and what was given stays.
    let one = DecodeOptions { steps: 1, ..DecodeOptions::default() };
    let decoded = decode(&constraint, "exact", &holes(5), &mut ends(), &one);
    assert!(is_sentence(&constraint, &decoded) && decoded.trace.n_asked() == 1, "{decoded:?}");
    let mut slots = vec![Slot::Hole; 5];
    slots[4] = Slot::Fixed(TokenId(1));
    let given = Canvas::new(slots, End::Sentence);
    let decoded = decode(&constraint, "exact", &given, &mut ends(), &options);
    assert!(is_sentence(&constraint, &decoded) && ids(&decoded)[4] == 1, "{decoded:?}");
}

#[test]
fn blocks_are_filled_one_after_the_other() {
    let constraint = brackets();
    for name in ["none", "exact", "lookahead"] {
        let mut model = Table::new(6, MASK, 3.0, 5);
        let options = DecodeOptions { block: Some(4), steps: 6, ..DecodeOptions::default() };
        let decoded = decode(&constraint, name, &holes(11), &mut model, &options);
        let blocks = decoded.trace.proposals().filter(|proposal| proposal.judgement.kept);
        let blocks: Vec<usize> = blocks.map(|proposal| proposal.slot / 4).collect();
        assert!(blocks.is_sorted(), "{name}: {blocks:?}");
    }
    // 6 steps for 3 blocks: two each.
    let mut model = Likes { tokens: vec![0; 11], lead: vec![1.0; 11], size: 6, open: MASK };
    let options = DecodeOptions { block: Some(4), steps: 6, ..DecodeOptions::default() };
    let decoded = decode(&constraint, "none", &holes(11), &mut model, &options);
    let steps: Vec<usize> = decoded.trace.proposals().map(|proposal| proposal.step).collect();
    assert_eq!(steps, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5]);
}

#[test]
fn the_pace_says_how_many_are_kept() {
    let constraint = brackets();
    let lead = vec![9.0, 8.0, 7.0, 1.0, 0.5, 0.2];
    let steps = |pace: Pace, steps: usize| {
        let mut model = Likes { tokens: vec![0; 6], lead: lead.clone(), size: 6, open: MASK };
        let options = DecodeOptions { pace, steps, ..DecodeOptions::default() };
        let decoded = decode(&constraint, "none", &holes(6), &mut model, &options);
        decoded.trace.proposals().map(|proposal| (proposal.step, proposal.slot)).collect::<Vec<_>>()
    };
    assert_eq!(steps(Pace::Even, 2), [(0, 0), (0, 1), (0, 2), (1, 3), (1, 4), (1, 5)]);
    assert_eq!(steps(Pace::Tokens(4), 1), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 4), (1, 5)]);
    // The first three have 0.99 and more; then one a step, and in the last all.
    assert_eq!(steps(Pace::Threshold(0.9), 3), [(0, 0), (0, 1), (0, 2), (1, 3), (2, 4), (2, 5)]);
    // The entropies are next to nothing for three of them, then above 1 each: the largest is left out of the
    // sum.
    assert_eq!(steps(Pace::EntropyBound(0.1), 3), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 4), (2, 5)]);
}

/// Is asked several times, and says then what it gives each token of each of three slots; the last holds from
/// then on.
struct Changing {
    answers: Vec<[(usize, f32); 3]>,
    asked: usize,
}

impl Changing {
    fn new(answers: &[[(usize, f32); 3]]) -> Self {
        Self { answers: answers.to_vec(), asked: 0 }
    }
}

impl Model for Changing {
    fn vocabulary_size(&self) -> usize {
        6
    }

    fn open_slots(&self) -> OpenSlots {
        MASK
    }

    fn log_probs(&mut self, view: &View<'_>, rows: &mut [f32]) -> Result<(), ModelError> {
        let answer = self.answers[self.asked.min(self.answers.len() - 1)];
        self.asked += 1;
        for (row, &slot) in rows.chunks_mut(6).zip(view.wanted) {
            let (token, logit) = answer[slot];
            row.fill(0.0);
            row[token] = logit;
        }
        Ok(())
    }
}

/// First it is all for "x" in the second slot, then for "(" "x" ")" with the "x" in the middle: it doubts a
/// token as soon as something else stands beside it.
fn doubting() -> Changing {
    Changing::new(&[[(1, 1.0), (1, 2.0), (2, 6.0)], [(0, 6.0), (2, 6.0), (1, 6.0)]])
}

#[test]
fn tokens_are_taken_back() {
    let constraint = brackets();
    for name in ["none", "exact", "lookahead", "intersection"] {
        let options = DecodeOptions {
            pace: Pace::Tokens(1),
            revision: Revision::TakeBack { below: 0.2, most: 5 },
            ..DecodeOptions::default()
        };
        let decoded = decode(&constraint, name, &holes(3), &mut doubting(), &options);
        assert_eq!(ids(&decoded), [0, 2, 1], "{name}");
        let taken =
            decoded.trace.events().iter().any(|event| matches!(event, Event::TakenBack { step: 1, .. }));
        // The exact ones had nothing to take back if they did not fall for it.
        assert!(taken || decoded.trace.n_refused() > 0, "{name}: {:?}", decoded.trace);
        let stays = DecodeOptions { revision: Revision::Stay, ..options };
        let decoded = decode(&constraint, "none", &holes(3), &mut doubting(), &stays);
        assert_eq!(ids(&decoded)[2], 2, "without it, it stays");
    }
}

/// A canvas without a mask token: noise where nothing was accepted, all of it decided anew in each step.
#[test]
fn canvases_are_noised_again() {
    let constraint = brackets();
    let mut n_taken = 0;
    for seed in 0..20 {
        for name in ["none", "exact", "compatible", "best", "sample", "lookahead"] {
            let mut model = Table::new(6, OpenSlots::Noise, 9.0, seed);
            let options = DecodeOptions { steps: 5, seed, ..DecodeOptions::renoising() };
            let decoded = decode(&constraint, name, &holes(10), &mut model, &options);
            assert!(
                decoded.trace.n_asked() <= 6 || name == "lookahead",
                "{name}: {}",
                decoded.trace.n_asked()
            );
            n_taken += decoded
                .trace
                .events()
                .iter()
                .filter(|event| matches!(event, Event::TakenBack { .. }))
                .count();
            if name != "none" {
                assert!(is_sentence(&constraint, &decoded), "seed {seed}, {name}: {decoded:?}");
            }
        }
    }
    assert!(n_taken > 100, "{n_taken}");
    // Somebody who is sure is done at once.
    let mut sure = Likes { tokens: vec![0, 2, 1, 4], lead: vec![20.0; 4], size: 6, open: OpenSlots::Noise };
    let decoded = decode(&constraint, "exact", &holes(4), &mut sure, &DecodeOptions::renoising());
    assert_eq!((ids(&decoded), decoded.trace.n_asked()), (vec![0, 2, 1, 4], 1));
}

/// Gaps grow as much as is needed, where it is needed, and no more than is allowed.
#[test]
fn slots_are_inserted_where_there_is_a_gap() {
    let constraint = brackets();
    let fixed = |id: u32| Slot::Fixed(TokenId(id));
    // "((" gap "x" gap: two brackets have to be closed at the end.
    let canvas = Canvas::new(vec![fixed(0), fixed(0), Slot::Gap, fixed(2), Slot::Gap], End::Sentence);
    for name in ["exact", "compatible", "best", "sample"] {
        let mut model = Table::new(6, MASK, 3.0, 1);
        let decoded = decode(&constraint, name, &canvas, &mut model, &DecodeOptions::default());
        assert!(decoded.trace.events().contains(&Event::Inserted { step: 0, slot: 3, count: 2 }));
        assert!(is_sentence(&constraint, &decoded), "{name}: {decoded:?}");
        // Proposals that are made freely ask for more.
        let n_slots = ids(&decoded).len();
        assert!(
            if name == "compatible" { (6..=259).contains(&n_slots) } else { n_slots == 5 },
            "{name}: {decoded:?}"
        );
    }
    // A hole beside the first gap: the model wants "(" there, which takes one more bracket to close.
    let canvas =
        Canvas::new(vec![fixed(0), Slot::Hole, Slot::Gap, fixed(2), fixed(1), Slot::Gap], End::Sentence);
    let likes = || Likes { tokens: vec![0, 0, 1, 1, 1, 1, 1], lead: vec![9.0; 7], size: 6, open: MASK };
    let decoded = decode(&constraint, "compatible", &canvas, &mut likes(), &DecodeOptions::default());
    assert_eq!(ids(&decoded).len(), 5, "{decoded:?}");
    assert!(is_sentence(&constraint, &decoded) && ids(&decoded)[1] == 0);
    assert!(decoded.trace.proposals().any(|proposal| proposal.judgement.ground == Ground::Insertion));
    let none = DecodeOptions { inserted: 0, ..DecodeOptions::default() };
    let decoded = decode(&constraint, "compatible", &canvas, &mut likes(), &none);
    assert!(is_sentence(&constraint, &decoded) && ids(&decoded).len() == 4, "{decoded:?}");
    // Methods that know of no room leave gaps closed.
    let decoded = decode(&constraint, "none", &canvas, &mut likes(), &DecodeOptions::default());
    assert_eq!(decoded.canvas.slots().len(), 4);
}

/// Each refusal without a decision takes the whole limit; after four in a step a completion fills it.
#[test]
fn few_tokens_of_a_step_stay_undecided() {
    let mut n_most = 0;
    for seed in seeds() {
        let limits = Limits { canvas_steps: 30, ..Limits::default() };
        let Some((case, constraint, size)) = random_case(seed, limits) else { continue };
        let canvas = random_canvas(&case, &mut Random::new(seed ^ 0x717));
        for name in ["exact", "compatible"] {
            let mut model = Table::new(size, MASK, 3.0, seed);
            let options = DecodeOptions { steps: 3, ..DecodeOptions::default() };
            let decoded = decode(&constraint, name, &canvas, &mut model, &options);
            let mut n_undecided = vec![0; decoded.trace.n_asked()];
            for proposal in decoded.trace.proposals() {
                let judgement = proposal.judgement;
                n_undecided[proposal.step] += usize::from(!judgement.kept && !judgement.proven);
            }
            // More only where there is no completion to fill it with.
            let rescued = decoded.trace.events().iter().filter_map(|event| match event {
                Event::Filled { step, why: Why::Rescue, .. } => Some(*step),
                _ => None,
            });
            for step in rescued {
                assert!(n_undecided[step] <= 4, "seed {seed}, {name}: {n_undecided:?}");
                n_most += usize::from(n_undecided[step] == 4);
            }
        }
    }
    assert!(n_most > 0, "no step had so many");
}

#[test]
fn several_regions_of_any_text_are_filled() {
    let mut n_inserted = 0;
    for seed in seeds() {
        // Where it is not decided soon whether there is room, there is none.
        let limits = Limits { canvas_steps: 100_000, ..Limits::default() };
        let Some((case, constraint, size)) = random_case(seed, limits) else { continue };
        if constraint.language().lexing().mode() == LexerMode::Contextual {
            continue;
        }
        let mut random = Random::new(seed ^ 0x9a9);
        let mut solver = Solver::new(&constraint).unwrap();
        for _ in 0..4 {
            let mut slots = random_canvas(&case, &mut random).slots().to_vec();
            for _ in 0..random.between(1, 3) {
                slots.insert(random.below(slots.len() + 1), Slot::Gap);
            }
            let canvas = Canvas::new(slots, End::Sentence);
            if solver.completable(&canvas).unwrap().decided() != Some(true) {
                continue;
            }
            for name in ["compatible", "best"] {
                let mut model = Table::new(size, OpenSlots::Mask(TokenId(0)), 5.0, seed);
                let options = DecodeOptions { steps: 3, seed, ..DecodeOptions::default() };
                let decoded = decode(&constraint, name, &canvas, &mut model, &options);
                assert!(is_sentence(&constraint, &decoded), "seed {seed}, {name}, {canvas:?}: {decoded:?}");
                let inserted =
                    decoded.trace.events().iter().filter(|event| matches!(event, Event::Inserted { .. }));
                n_inserted += inserted.count();
            }
        }
    }
    println!("{n_inserted} insertions");
    assert!(seeds().len() < 20 || n_inserted > 20);
}

/// Likelier tokens replace those that stand, where the strategy keeps them, until nothing changes.
#[test]
fn likelier_tokens_replace_others() {
    let constraint = brackets();
    for name in ["none", "exact", "compatible", "intersection"] {
        let options = DecodeOptions {
            pace: Pace::Tokens(3),
            revision: Revision::Edit { above: 0.9, most: 4 },
            ..DecodeOptions::default()
        };
        let decoded = decode(&constraint, name, &holes(3), &mut changing(), &options);
        // "x" and two EOS in the first answer; "(x)" in the second, which `exact` reaches where single
        // replacements lead through sentences.
        let edits = decoded.trace.proposals().filter(|proposal| proposal.step > 0).count();
        assert!(edits > 0, "{name}");
        if name == "none" {
            assert_eq!(ids(&decoded), [0, 2, 1]);
        } else {
            assert!(is_sentence(&constraint, &decoded), "{name}: {decoded:?}");
        }
        assert!(decoded.trace.n_asked() <= 6, "{name}");
        let stays = DecodeOptions { revision: Revision::Stay, ..options };
        let decoded = decode(&constraint, name, &holes(3), &mut changing(), &stays);
        assert_eq!((ids(&decoded), decoded.trace.n_asked()), (vec![2, 4, 4], 1), "{name}");
    }
}

/// First it is for "x" and the end, then for "(x)".
fn changing() -> Changing {
    Changing::new(&[[(2, 9.0), (4, 9.0), (4, 9.0)], [(0, 9.0), (2, 9.0), (1, 9.0)]])
}
