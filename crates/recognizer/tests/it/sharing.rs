//! Earley with shared origins against the reference, on random lattices: merged states read what the states
//! read that were merged, however often they are merged again, and stay small.

use anygram_bits::BitSet;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{NonterminalId, Rule, Symbol, TerminalId};
use anygram_recognizer::earley::Earley;
use anygram_recognizer::reference::Reference;
use anygram_recognizer::{Edge, Recognizer, RecognizerLimits, StateId};
use anygram_testkit::random::Random;

pub const N_TERMINALS: usize = 4;
const N_NONTERMINALS: usize = 4;

/// A random grammar, empty and recursive rules among its own; `None` if no text is in its language.
pub fn random_cfg(random: &mut Random) -> Option<Cfg> {
    let symbol = |random: &mut Random| match random.below(2) {
        0 => Symbol::Terminal(TerminalId::new(random.below(N_TERMINALS))),
        _ => Symbol::Nonterminal(NonterminalId::new(random.below(N_NONTERMINALS))),
    };
    let mut rules = Vec::new();
    for _ in 0..10 {
        let lhs = NonterminalId::new(random.below(N_NONTERMINALS));
        let rhs = (0..random.below(4)).map(|_| symbol(random)).collect();
        rules.push(Rule { lhs, rhs });
    }
    let cfg = Cfg {
        n_terminals: N_TERMINALS,
        n_nonterminals: N_NONTERMINALS,
        rules,
        start: NonterminalId::new(0),
        automata: Vec::new(),
    };
    cfg.trim(&BitSet::new(N_TERMINALS)).ok()
}

pub fn seen(engine: &dyn Recognizer, state: StateId) -> (BitSet, bool, u32) {
    (engine.viable(state).clone(), engine.is_sentence(state), engine.minimum_remaining(state))
}

#[test]
fn sharing_origins_changes_nothing_that_can_be_seen() {
    let mut n_compared = 0;
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let Some(cfg) = random_cfg(&mut random) else { continue };
        let limits = RecognizerLimits::default();
        let mut shared = Earley::new(cfg.clone(), limits).unwrap().sharing_origins();
        let mut reference = Reference::new(cfg, limits).unwrap();
        // Points of a lattice, as states of both engines.
        let mut points = vec![(shared.start(), reference.start())];
        for _ in 0..40 {
            let n_edges = 1 + random.below(4);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..n_edges {
                let from = points[random.below(points.len())];
                let terminal = (random.below(4) > 0).then(|| TerminalId::new(random.below(N_TERMINALS)));
                ours.push(Edge { from: from.0, terminal });
                theirs.push(Edge { from: from.1, terminal });
            }
            let (ours, theirs) = (shared.extend(&ours).unwrap(), reference.extend(&theirs).unwrap());
            assert_eq!(ours.is_some(), theirs.is_some(), "seed {seed}");
            let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
            assert_eq!(seen(&shared, ours), seen(&reference, theirs), "seed {seed}");
            points.push((ours, theirs));
            n_compared += 1;
        }
    }
    assert!(n_compared > 5_000, "{n_compared} points of lattices were compared");
}
