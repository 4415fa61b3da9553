//! Contexts against the reference, on random lattices of grammars some of whose rules automata give; and ways
//! back, each of which is a word that the reference reads.

use anygram_grammar::ir::TerminalId;
use anygram_recognizer::earley::Earley;
use anygram_recognizer::earley::contexts::{ContextId, Contexts, Learned, Meeting, Unwinding, Way};
use anygram_recognizer::reference::Reference;
use anygram_recognizer::{Edge, Recognizer, StateId};
use anygram_testkit::random::Random;
use std::sync::Arc;

use crate::automata::{LIMITS, N_TERMINALS, random_cfgs};

/// A point of a lattice.
struct Point {
    context: ContextId,
    reference: StateId,
    meeting: Option<Arc<Meeting>>,
    /// From which points it is reached, and by what.
    edges: Vec<(usize, Option<TerminalId>)>,
}

/// The terminals along a way back from a point where a sentence ends.
fn word(
    (contexts, engine): (&mut Contexts, &mut Earley),
    points: &[Point],
    mut at: usize,
    random: &mut anygram_bits::Random,
) -> Vec<TerminalId> {
    let (mut learned, mut word) = (Learned::default(), Vec::new());
    let mut unwinding = Unwinding::of_sentence(engine);
    while let Some(meeting) = &points[at].meeting {
        let step = unwinding.back(contexts, engine, &learned, (at, meeting), random).unwrap();
        let step = step.expect("something leads to it");
        let leads = |&&(from, terminal): &&(usize, Option<TerminalId>)| {
            terminal == step.way.1 && points[from].context == step.context
        };
        let from: Vec<usize> = points[at].edges.iter().filter(leads).map(|edge| edge.0).collect();
        word.extend(step.way.1);
        at = *random.choose(&from);
        let goes_on =
            unwinding.begin(contexts, engine, &mut learned, (points[at].context, &step), random).unwrap();
        assert!(goes_on);
    }
    word.reverse();
    word
}

#[test]
fn contexts_read_what_the_reference_reads_and_ways_back_are_words() {
    let (mut n_compared, mut n_words, mut n_read) = (0, 0, 0);
    for seed in 0..6_000 {
        let mut random = Random::new(seed);
        let Some((cfg, written_out)) = random_cfgs(&mut random) else { continue };
        let mut reference = Reference::new(written_out, LIMITS).unwrap();
        let mut engine = Earley::new(cfg, LIMITS).unwrap();
        let mut contexts = Contexts::new(&mut engine, false);
        let start = Point {
            context: Contexts::START,
            reference: reference.start(),
            meeting: None,
            edges: Vec::new(),
        };
        let mut points = vec![start];
        for _ in 0..25 {
            let edge = |random: &mut Random| {
                let terminal = (random.below(8) > 0).then(|| TerminalId::new(random.below(N_TERMINALS)));
                (random.below(points.len()), terminal)
            };
            let edges: Vec<(usize, Option<TerminalId>)> =
                (0..1 + random.below(3)).map(|_| edge(&mut random)).collect();
            let ways: Vec<Way> = edges
                .iter()
                .map(|&(from, terminal)| (contexts.set(vec![points[from].context]), terminal))
                .collect();
            let theirs: Vec<Edge> = edges
                .iter()
                .map(|&(from, terminal)| Edge { from: points[from].reference, terminal })
                .collect();
            let meeting = contexts.meet(&mut engine, &ways).unwrap();
            for &way in &ways {
                let leads = contexts.meet(&mut engine, &[way]).unwrap().is_some();
                assert_eq!(contexts.reads(&engine, way), leads, "seed {seed}");
            }
            let theirs = reference.extend(&theirs).unwrap();
            let Some(meeting) = meeting else {
                // What an ignored piece leaves of a sentence that cannot go on is nothing but that.
                assert!(theirs.is_none_or(|state| reference.viable(state).is_empty()), "seed {seed}");
                continue;
            };
            let theirs = theirs.expect("it is reached");
            let here = contexts.set(vec![meeting.context]);
            let (wanted, is_sentence) = contexts.wanted(&engine, here);
            assert_eq!(*wanted, *reference.viable(theirs), "seed {seed}");
            assert_eq!(is_sentence, reference.is_sentence(theirs), "seed {seed}");
            n_compared += 1;
            points.push(Point { context: meeting.context, reference: theirs, meeting: Some(meeting), edges });
            if is_sentence {
                let at = points.len() - 1;
                for draw in 0..3 {
                    let mut drawn = anygram_bits::Random::new(seed * 3 + draw);
                    let word = word((&mut contexts, &mut engine), &points, at, &mut drawn);
                    let start = reference.start();
                    let step = |state, &terminal: &TerminalId| {
                        let edge = Edge { from: state, terminal: Some(terminal) };
                        reference.extend(&[edge]).unwrap()
                    };
                    let end = word.iter().try_fold(start, step);
                    assert!(end.is_some_and(|end| reference.is_sentence(end)), "seed {seed}: {word:?}");
                    (n_words, n_read) = (n_words + 1, n_read + word.len());
                }
            }
        }
    }
    assert!(n_compared > 5_000 && n_words > 2_000 && n_read > n_words, "{n_compared} {n_words} {n_read}");
}
