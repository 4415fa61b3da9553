//! What single methods do: greedy decoding, LAVE, rows on demand.

use super::*;

#[test]
fn fillings_are_checked_on_threads_with_the_same_result() {
    let constraint = brackets();
    let mut n_refused = 0;
    for seed in 0..30 {
        let run = |n_threads: usize, fillings: usize| {
            let lookahead = Lookahead { fillings, ..Lookahead::default() };
            let lave = Lave::new(&constraint).unwrap().lookahead(lookahead).on_threads(n_threads).unwrap();
            let options = DecodeOptions { steps: 6, seed, ..DecodeOptions::default() };
            let mut model = Table::new(6, MASK, 3.0, seed);
            Decoder::new(&constraint, Box::new(lave)).decode(&holes(14), &mut model, &options).unwrap()
        };
        let decoded = run(1, 10);
        n_refused += decoded.trace.n_refused();
        for n_threads in [2, 3, 16] {
            assert_eq!(run(n_threads, 10).trace.events(), decoded.trace.events());
        }
    }
    assert!(n_refused > 50, "{n_refused}");
}

#[test]
fn without_a_constraint_it_is_the_argmax() {
    let constraint = brackets();
    for steps in [1, 3, 12] {
        let mut model = Table { looks: false, ..Table::new(6, MASK, 4.0, 9) };
        let mut rows = vec![0.0; 12 * 6];
        let (tokens, wanted) = (vec![TokenId(5); 12], (0..12).collect::<Vec<_>>());
        model.log_probs(&View { tokens: &tokens, wanted: &wanted, step: 0, steps: 1 }, &mut rows).unwrap();
        // The mask token is never proposed; behind an EOS there is EOS.
        let best =
            |row: &[f32]| (0..5u32).max_by(|a, b| row[*a as usize].total_cmp(&row[*b as usize])).unwrap();
        let mut expected: Vec<u32> = rows.chunks(6).map(best).collect();
        if let Some(eos) = expected.iter().position(|id| *id == 4) {
            expected[eos..].fill(4);
        }
        let options = DecodeOptions { steps, ..DecodeOptions::default() };
        let decoded = decode(&constraint, "none", &holes(12), &mut model, &options);
        assert_eq!(ids(&decoded), expected);
        assert!(decoded.trace.n_asked() <= steps);
    }
}

/// The same as a loop over masks, slot by slot.
#[test]
fn forced_sequential_is_greedy_decoding_under_masks() {
    let constraint = brackets();
    for (seed, has_budget) in (0..20).flat_map(|seed| [(seed, false), (seed, true)]) {
        for open in [MASK, OpenSlots::Next, OpenSlots::Noise] {
            let n = 9;
            let mut model = Table { looks: false, ..Table::new(6, open, 4.0, seed) };
            let mut matcher = constraint.matcher().unwrap();
            let mut expected = Vec::new();
            while expected.len() < n && !matcher.has_ended() {
                let budget = (n - expected.len()) as u32;
                let mask = if has_budget { matcher.mask_with_budget(budget) } else { matcher.mask() };
                let mask = mask.unwrap();
                let mut row = vec![0.0; 6];
                let view = View {
                    tokens: &vec![TokenId(0); expected.len()],
                    wanted: &[expected.len()],
                    step: 0,
                    steps: 1,
                };
                model.log_probs(&view, &mut row).unwrap();
                let allowed = (0..5u32).filter(|id| mask.contains(TokenId(*id)));
                let best = allowed.max_by(|a, b| row[*a as usize].total_cmp(&row[*b as usize]));
                let best = best.expect("a mask of a viable text is never empty");
                matcher.advance(TokenId(best)).unwrap();
                expected.push(best);
            }
            let is_cut_off = !matcher.has_ended() && !matcher.is_sentence();
            assert!(!(is_cut_off && has_budget));
            expected.resize(n, 4);
            let mut strategy = Sequential::new(&constraint).unwrap();
            if has_budget {
                strategy = strategy.with_budget();
            }
            let mut decoder = Decoder::new(&constraint, Box::new(strategy));
            let options = DecodeOptions { steps: 3, ..DecodeOptions::default() };
            let decoded = decoder.decode(&holes(n), &mut model, &options).unwrap();
            assert_eq!(ids(&decoded), expected, "seed {seed}, {open:?}");
            let slots = decoded.trace.proposals().map(|proposal| proposal.slot);
            assert!(slots.is_sorted(), "from left to right");
        }
    }
}

/// Whatever a model says and however often proposals fail, recovery leads to an end, and with the room looked
/// at to a sentence.
#[test]
fn recovery_comes_to_an_end() {
    let constraint = brackets();
    let (mut n_recovered, mut n_stuck) = (0, 0);
    for seed in 0..60 {
        for (counts_room, sharpness) in [(true, 0.0), (true, 8.0), (false, 0.0), (false, 8.0)] {
            let lookahead = Lookahead { counts_room, fillings: 2, ..Lookahead::default() };
            let lave = Lave::new(&constraint).unwrap().lookahead(lookahead).attempts(2);
            let options = DecodeOptions { steps: 4, seed, ..DecodeOptions::default() };
            let mut model = Table::new(6, MASK, sharpness, seed);
            let decoded =
                Decoder::new(&constraint, Box::new(lave)).decode(&holes(15), &mut model, &options).unwrap();
            let fills = decoded
                .trace
                .events()
                .iter()
                .filter(|event| matches!(event, Event::Filled { why: Why::Recovery, .. }));
            n_recovered += fills.count();
            n_stuck += usize::from(decoded.is_stuck);
            if counts_room {
                assert!(
                    is_sentence(&constraint, &decoded),
                    "seed {seed}, sharpness {sharpness}: {decoded:?}"
                );
            }
        }
    }
    println!("{n_recovered} slots filled by recovery, {n_stuck} of 240 runs stuck");
    assert!(n_recovered > 100);
}

/// One bracket is open when proposals begin to fail: the cache has the filling, then a successor is drawn.
#[test]
fn recovery_puts_the_cache_and_then_a_successor() {
    let constraint = brackets();
    // The model wants ")" everywhere behind the first slot, the more to the left the less.
    let mut model = Likes { tokens: vec![0, 1, 1, 1], lead: vec![9.0, 3.0, 4.0, 5.0], size: 6, open: MASK };
    let lave = Lave::new(&constraint).unwrap().attempts(1);
    let canvas = Canvas::new([vec![Slot::Fixed(TokenId(2))], vec![Slot::Hole; 3]].concat(), End::Sentence);
    let options = DecodeOptions { steps: 3, ..DecodeOptions::default() };
    let decoded = Decoder::new(&constraint, Box::new(lave)).decode(&canvas, &mut model, &options).unwrap();
    // "x" is a sentence, and nothing but EOS can follow.
    assert_eq!(ids(&decoded), [2, 4, 4, 4]);
    assert!(decoded.trace.events().contains(&Event::Filled {
        step: 0,
        slot: 1,
        token: TokenId(4),
        why: Why::Recovery
    }));
}

#[test]
fn the_ablation_is_free_after_its_failures() {
    let constraint = brackets();
    let mut n_free = 0;
    for seed in 0..20 {
        let lookahead = Lookahead { fillings: 1, ..Lookahead::default() };
        let lave = Lave::new(&constraint).unwrap().lookahead(lookahead).attempts(3).without_recovery();
        let options = DecodeOptions { steps: 6, seed, ..DecodeOptions::default() };
        let mut model = Table::new(6, MASK, 2.0, seed);
        let decoded =
            Decoder::new(&constraint, Box::new(lave)).decode(&holes(12), &mut model, &options).unwrap();
        assert!(!decoded.is_stuck);
        let grounds: Vec<(bool, Ground)> = decoded
            .trace
            .proposals()
            .map(|proposal| (proposal.judgement.kept, proposal.judgement.ground))
            .collect();
        if let Some(first) = grounds.iter().position(|(_, ground)| *ground == Ground::Nothing) {
            n_free += 1;
            assert!(grounds[first - 3..first].iter().all(|(kept, _)| !kept));
            assert!(grounds[first..].iter().all(|pair| *pair == (true, Ground::Nothing)));
        }
    }
    assert!(n_free > 5, "{n_free}");
}

/// How often `lookahead` accepts what can be completed, by the number of fillings and how sure the marginals
/// are of the right tokens.
#[test]
fn lookahead_accepts_more_with_more_fillings_and_surer_marginals() {
    use anygram_any_order::LogProbs;
    use anygram_decoding::Methods;
    let constraint = brackets();
    let text = [0u32, 0, 2, 1, 0, 3, 2, 1, 1];
    let mut methods = Methods::new(&constraint).unwrap();
    let mut shares = Vec::new();
    println!("accepted of 200, with 50 % of 9 slots open, by sharpness (rows) and N = 1, 3, 10, 50");
    for sharpness in [0.0f32, 2.0, 4.0, 8.0] {
        let mut row = Vec::new();
        for fillings in [1, 3, 10, 50] {
            let mut n_accepted = 0;
            for seed in 0..200 {
                let mut random = Random::new(seed);
                let mut slots: Vec<Slot> = text.iter().map(|&id| Slot::Fixed(TokenId(id))).collect();
                slots[..8].iter_mut().filter(|_| random.chance(50)).for_each(|slot| *slot = Slot::Hole);
                let canvas = Canvas::new(slots, End::Sentence);
                let mut values = Vec::new();
                for hole in canvas.holes() {
                    let mut weights: Vec<f32> =
                        (0..6).map(|_| random.below(1_000) as f32 / 1_000.0).collect();
                    weights[text[hole] as usize] += sharpness;
                    values.extend(weights);
                }
                let log_probs = LogProbs::dense(values.clone(), 6).unwrap();
                let lookahead = Lookahead { fillings, seed, ..Lookahead::default() };
                let verdict =
                    methods.completable(&canvas, Method::Lookahead, Some(&log_probs), lookahead).unwrap();
                n_accepted += usize::from(verdict.decision.is_yes());
                assert!(!verdict.decision.is_yes() || verdict.proven);
            }
            row.push(n_accepted);
        }
        println!("{sharpness}: {row:?}");
        assert!(row.is_sorted(), "{row:?}");
        shares.push(row);
    }
    assert!(shares.windows(2).all(|pair| pair[0][2] <= pair[1][2]), "{shares:?}");
    assert!(shares[3][2] > 190 && shares[0][0] < 100);
}

#[test]
fn as_published_lookahead_does_not_count_the_room() {
    use anygram_decoding::Methods;
    let constraint = brackets();
    let mut methods = Methods::new(&constraint).unwrap();
    // "((" and one slot: no sentence.
    let canvas =
        Canvas::new(vec![Slot::Fixed(TokenId(0)), Slot::Fixed(TokenId(0)), Slot::Hole], End::Sentence);
    let ask = |methods: &mut Methods, counts_room| {
        let lookahead = Lookahead { counts_room, ..Lookahead::default() };
        let verdict = methods.completable(&canvas, Method::Lookahead, None, lookahead).unwrap();
        (verdict.decision.decided(), verdict.proven)
    };
    assert_eq!(ask(&mut methods, true), (Some(false), true));
    assert_eq!(ask(&mut methods, false), (Some(true), false));
}

/// Whether tokens are refused one by one or left out by complete sets changes nothing of what is kept.
#[test]
fn rows_on_demand_keep_what_complete_rows_keep() {
    let (mut n_runs, mut n_refused) = (0, 0);
    for seed in seeds() {
        let Some((case, constraint, size)) = random_case(seed, Limits::default()) else { continue };
        let mut random = Random::new(seed ^ 0xde3a);
        let mut decoders = [0, 1, 2, 64].map(|refusals| {
            let exact = Exact::new(&constraint, ExactBy::Admissible).unwrap();
            Decoder::new(&constraint, Box::new(exact.complete_after(refusals)))
        });
        for _ in 0..6 {
            let canvas = random_canvas(&case, &mut random);
            let sharpness = *random.choose(&[0.5, 4.0, 20.0]);
            let options = DecodeOptions {
                order: Order::Confidence,
                pace: *random.choose(&[Pace::Even, Pace::Tokens(2), Pace::Threshold(0.4)]),
                sampling: Sampling::default(),
                refusals: None,
                ..any_options(&mut random, seed)
            };
            let runs = decoders.each_mut().map(|decoder| {
                let mut model = Table::new(size, OpenSlots::Mask(TokenId(0)), sharpness, seed);
                decoder.decode(&canvas, &mut model, &options).unwrap()
            });
            for run in &runs {
                assert_eq!(run.canvas, runs[0].canvas, "seed {seed}: {canvas:?}, {options:?}");
                n_refused += run.trace.n_refused();
            }
            n_runs += 1;
        }
    }
    assert!(seeds().len() < 20 || n_runs > 60 && n_refused > 0, "{n_runs} runs, {n_refused} refused");
}

/// Where tokens are drawn, drawing again what was refused comes to what drawing from complete sets comes to:
/// texts come up as often, where slots are filled one after the other.
#[test]
fn draws_on_demand_are_those_of_complete_rows() {
    const RUNS: u64 = 4_000;
    let constraint = brackets();
    let options = DecodeOptions {
        steps: 5,
        block: Some(1),
        sampling: Sampling { temperature: 0.8, ..Sampling::default() },
        ..DecodeOptions::default()
    };
    let mut counts: HashMap<Vec<u32>, [u64; 2]> = HashMap::new();
    let mut n_refused = [0; 2];
    for (at, refusals) in [0, 1_000].into_iter().enumerate() {
        let exact = Exact::new(&constraint, ExactBy::Admissible).unwrap().complete_after(refusals);
        let mut decoder = Decoder::new(&constraint, Box::new(exact));
        for seed in 0..RUNS {
            let mut model = Table::new(6, MASK, 2.0, 11);
            let options = DecodeOptions { seed, ..options };
            let decoded = decoder.decode(&holes(5), &mut model, &options).unwrap();
            n_refused[at] += decoded.trace.n_refused();
            counts.entry(ids(&decoded)).or_default()[at] += 1;
        }
    }
    assert!(n_refused[0] == 0 && n_refused[1] > 1_000, "{n_refused:?}");
    assert!(counts.len() > 5, "{counts:?}");
    for (text, [complete, on_demand]) in counts {
        let spread = ((complete + on_demand) as f64).sqrt();
        assert!(
            complete.abs_diff(on_demand) as f64 <= 4.0 * spread + 1.0,
            "{text:?}: {complete} {on_demand}"
        );
    }
}
