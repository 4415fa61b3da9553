//! Grammars some of whose rules automata give: Earley on them against the reference on the same grammar
//! written out, and an object of many keys whose automaton grows.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use anygram_bits::BitSet;
use anygram_bits::work::Work;
use anygram_grammar::automata::{RuleAutomaton, TooManyStates};
use anygram_grammar::cfg::{Cfg, ReduceError};
use anygram_grammar::ir::{AutomatonRule, NonterminalId, Rule, Symbol, TerminalId};
use anygram_recognizer::earley::Earley;
use anygram_recognizer::reference::Reference;
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{
    Begun, Edge, Left, Recognizer, RecognizerError, RecognizerLimits, Relation, StateId, laws,
};
use anygram_testkit::random::Random;

pub const N_TERMINALS: usize = 4;
const N_NONTERMINALS: usize = 4;
pub const LIMITS: RecognizerLimits = RecognizerLimits { items: 50_000_000 };

/// An automaton that is written down: of each state its steps, whether it accepts, and the fewest symbols.
#[derive(Debug)]
struct Table(Vec<State>);

/// Where symbols lead, whether it accepts, and the fewest symbols.
type State = (Vec<(u32, u32)>, bool, u32);

impl Table {
    /// Random steps among live states.
    fn random(random: &mut Random, n_symbols: usize) -> Self {
        let n = 1 + random.below(4);
        let mut states: Vec<State> = Vec::new();
        for _ in 0..n {
            let mut steps = Vec::new();
            for symbol in 0..n_symbols as u32 {
                if random.chance(50) {
                    steps.push((symbol, random.below(n) as u32));
                }
            }
            let accepts = random.chance(40);
            states.push((steps, accepts, if accepts { 0 } else { u32::MAX }));
        }
        for _ in 0..n {
            for at in 0..n {
                let next = states[at].0.iter().map(|&(_, to)| states[to as usize].2.saturating_add(1)).min();
                states[at].2 = states[at].2.min(next.unwrap_or(u32::MAX));
            }
        }
        let live: Vec<bool> = states.iter().map(|state| state.2 < u32::MAX).collect();
        states.iter_mut().for_each(|state| state.0.retain(|&(_, to)| live[to as usize]));
        Self(states)
    }

    /// The number of rules of which it consists if they are written out.
    fn n_rules(&self) -> usize {
        let (mut seen, mut agenda) = (HashSet::from([0]), vec![0]);
        let mut n_rules = 1;
        while let Some(at) = agenda.pop() {
            let (steps, accepts, _) = &self.0[at as usize];
            n_rules += steps.len() + usize::from(*accepts);
            agenda.extend(steps.iter().map(|step| step.1).filter(|&to| seen.insert(to)));
        }
        n_rules
    }
}

impl RuleAutomaton for Table {
    fn start(&self) -> u32 {
        0
    }

    fn symbols(&self, state: u32) -> Arc<[u32]> {
        self.0[state as usize].0.iter().map(|step| step.0).collect()
    }

    fn step(&self, state: u32, symbol: u32) -> Result<u32, TooManyStates> {
        let steps = &self.0[state as usize].0;
        Ok(steps[steps.binary_search_by_key(&symbol, |step| step.0).expect("a symbol of the state")].1)
    }

    fn accepts(&self, state: u32) -> bool {
        self.0[state as usize].1
    }

    fn minimum(&self, state: u32) -> u32 {
        self.0[state as usize].2
    }
}

fn symbol(random: &mut Random) -> Symbol {
    match random.below(2) {
        0 => Symbol::Terminal(TerminalId::new(random.below(N_TERMINALS))),
        _ => Symbol::Nonterminal(NonterminalId::new(random.below(N_NONTERMINALS))),
    }
}

/// A random grammar, and the same written out; `None` if it has no sentence, or an automaton whose symbols
/// derive nothing, or the empty sequence.
pub fn random_cfgs(random: &mut Random) -> Option<(Cfg, Cfg)> {
    let lhs = |random: &mut Random| NonterminalId::new(random.below(N_NONTERMINALS));
    let mut rules = Vec::new();
    for _ in 0..6 {
        let rhs = (0..random.below(4)).map(|_| symbol(random)).collect();
        rules.push(Rule { lhs: lhs(random), rhs });
    }
    let mut automata = Vec::new();
    let mut n_rules = 0;
    for _ in 0..1 + random.below(2) {
        let mut symbols: Vec<Symbol> = (0..1 + random.below(3)).map(|_| symbol(random)).collect();
        symbols.dedup();
        let table = Table::random(random, symbols.len());
        n_rules += table.n_rules();
        automata.push(AutomatonRule {
            lhs: lhs(random),
            automaton: Arc::new(table),
            symbols: symbols.into(),
        });
    }
    let (n_automata, start) = (automata.len(), NonterminalId::new(0));
    let cfg = Cfg::with_automata((N_TERMINALS, N_NONTERMINALS), rules, automata, start);
    let cfg = cfg.trim(&BitSet::new(N_TERMINALS)).ok()?;
    let written_out = cfg.expanded(100)?;
    // All of an automaton's states must derive something, or it is no automaton for a front end to give.
    let is_whole = cfg.automata.len() == n_automata
        && written_out.rules.len() == cfg.without_automata().rules.len() + n_rules;
    is_whole.then_some((cfg, written_out))
}

fn seen(engine: &dyn Recognizer, state: StateId) -> (BitSet, bool) {
    (engine.viable(state).clone(), engine.is_sentence(state))
}

/// The fewest terminals that are left, by what is in progress and the rules of the grammar.
fn least_left(engine: &dyn Recognizer, state: StateId) -> u32 {
    let minimum = engine.cfg().minimum_lengths();
    let needed = |automaton: usize, state: Option<u32>| {
        let automaton = &engine.cfg().automata[automaton];
        let symbols: Vec<Symbol> = automaton.left(state.map_or(0, |state| automaton.needed(state))).collect();
        symbols
    };
    let length = |left: Left<'_>| {
        let symbols = match left {
            Left::Symbols(symbols) => symbols.to_vec(),
            Left::Automaton(automaton, state) => needed(automaton, state),
        };
        let lengths = symbols.iter().map(|symbol| match symbol {
            Symbol::Terminal(_) => 1,
            Symbol::Nonterminal(n) => minimum[n.index()],
        });
        lengths.fold(0u32, u32::saturating_add)
    };
    if engine.is_sentence(state) {
        return 0;
    }
    let mut queue: BinaryHeap<Reverse<(u32, Begun)>> = BinaryHeap::new();
    engine.in_progress(state, &mut |left, begun| queue.push(Reverse((length(left), begun))));
    let mut known = HashSet::new();
    while let Some(Reverse((cost, begun))) = queue.pop() {
        if engine.is_whole(begun) {
            return cost;
        }
        if known.insert(begun) {
            engine.after_begun(begun, &mut |left, next| {
                queue.push(Reverse((cost.saturating_add(length(left)), next)))
            });
        }
    }
    u32::MAX
}

/// Both engines at the points of a random lattice.
fn lattice(
    random: &mut Random,
    ours: &mut dyn Recognizer,
    reference: &mut Reference,
    mut visit: impl FnMut(&mut dyn Recognizer, &mut Reference, (StateId, StateId), &[Edge]),
) {
    let mut points = vec![(ours.start(), reference.start())];
    visit(ours, reference, points[0], &[]);
    for _ in 0..30 {
        let (mut edges, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..1 + random.below(3) {
            let from = points[random.below(points.len())];
            let terminal = (random.below(6) > 0).then(|| TerminalId::new(random.below(N_TERMINALS)));
            edges.push(Edge { from: from.0, terminal });
            theirs.push(Edge { from: from.1, terminal });
        }
        let (our, their) = (ours.extend(&edges).unwrap(), reference.extend(&theirs).unwrap());
        assert_eq!(our.is_some(), their.is_some());
        let (Some(our), Some(their)) = (our, their) else { continue };
        points.push((our, their));
        visit(ours, reference, (our, their), &edges);
    }
}

#[test]
fn automata_read_what_they_do_written_out() {
    let mut n_compared = 0;
    for seed in 0..6_000 {
        let mut random = Random::new(seed);
        let Some((cfg, written_out)) = random_cfgs(&mut random) else { continue };
        for shares_origins in [false, true] {
            let mut reference = Reference::new(written_out.clone(), LIMITS).unwrap();
            let mut ours = Earley::new(cfg.clone(), LIMITS).unwrap();
            if shares_origins {
                ours = ours.sharing_origins();
            }
            lattice(&mut random, &mut ours, &mut reference, |ours, reference, (our, their), edges| {
                assert_eq!(seen(ours, our), seen(reference, their), "seed {seed}");
                let (least, left) = (ours.minimum_remaining(our), least_left(ours, our));
                let exact = reference.minimum_remaining(their);
                assert!(least <= exact && left <= exact, "seed {seed}: {least}, {left}, {exact}");
                assert_eq!(exact, least_left(reference, their), "seed {seed}");
                laws::viable_iff_extends(ours, our).unwrap();
                laws::minimum_is_zero_iff_sentence(ours, our).unwrap();
                laws::automata_of_all_and_of_nothing(ours, our).unwrap();
                laws::carrying_over_is_the_identity(ours, our).unwrap();
                if !edges.is_empty() {
                    laws::a_merge_is_a_union(ours, edges).unwrap();
                }
                n_compared += 1;
            });
        }
    }
    assert!(n_compared > 5_000, "{n_compared} points were compared");
}

#[test]
fn relations_bound_what_can_be_finished_from_both_sides() {
    let (mut n_compared, mut n_sharp) = (0, [0; 2]);
    for seed in 0..6_000 {
        let mut random = Random::new(seed);
        let Some((cfg, written_out)) = random_cfgs(&mut random) else { continue };
        let n_states = 1 + random.below(3);
        let mut steps = Vec::new();
        for _ in 0..12 {
            steps.push((random.below(n_states), random.below(N_TERMINALS), random.below(n_states)));
        }
        let work = &mut Work::unbounded();
        let above = Relation::new(&cfg, n_states, steps.iter().copied(), work).unwrap();
        let below = Relation::surely(&cfg, n_states, steps.iter().copied(), work).unwrap();
        let exact = Relation::new(&written_out, n_states, steps.iter().copied(), work).unwrap();
        let mut reference = Reference::new(written_out, LIMITS).unwrap();
        let mut ours = Earley::new(cfg, LIMITS).unwrap();
        lattice(&mut random, &mut ours, &mut reference, |ours, reference, (our, their), _| {
            for from in 0..n_states {
                let truth = reference.can_finish(their, from, &exact);
                let (may, can) = (ours.can_finish(our, from, &above), ours.can_finish(our, from, &below));
                assert!(can <= truth && truth <= may, "seed {seed}: {can}, {truth}, {may}");
                n_sharp[0] += usize::from(can);
                n_sharp[1] += usize::from(!may);
                n_compared += 1;
            }
        });
    }
    assert!(n_compared > 5_000 && n_sharp.iter().all(|&n| n > 500), "{n_compared}, {n_sharp:?}");
}

#[test]
fn sets_of_the_grammar_bound_those_of_the_one_written_out() {
    let mut n_compared = 0;
    for seed in 0..6_000 {
        let mut random = Random::new(seed);
        let Some((cfg, written_out)) = random_cfgs(&mut random) else { continue };
        let (first, follow, minimum) = (cfg.first_sets(), cfg.follow_sets(), cfg.minimum_lengths());
        let truth = (written_out.first_sets(), written_out.follow_sets(), written_out.minimum_lengths());
        let terminals = BitSet::from_members(N_TERMINALS, (0..N_TERMINALS).filter(|_| random.chance(60)));
        let (sure, derive) = (cfg.surely_derive(&terminals), written_out.surely_derive(&terminals));
        for n in 0..N_NONTERMINALS {
            assert_eq!(cfg.nullable().contains(n), written_out.nullable().contains(n), "seed {seed}");
            assert_eq!(first[n], truth.0[n], "seed {seed}");
            assert!(truth.1[n].is_subset(&follow[n]), "seed {seed}");
            assert!(minimum[n] <= truth.2[n] && (minimum[n] == 0) == (truth.2[n] == 0), "seed {seed}");
            assert!(derive.contains(n) || !sure.contains(n), "seed {seed}");
        }
        assert!(written_out.last_terminals().is_subset(&cfg.last_terminals()), "seed {seed}");
        n_compared += 1;
    }
    assert!(n_compared > 200, "{n_compared} grammars were compared");
}

#[test]
fn shapes_mean_the_same_in_all_engines() {
    let mut n_compared = 0;
    for seed in 0..6_000 {
        let mut random = Random::new(seed);
        let Some((cfg, written_out)) = random_cfgs(&mut random) else { continue };
        let mut of_shape: HashMap<u32, (BitSet, bool)> = HashMap::new();
        let mut before: Option<Earley> = None;
        for _ in 0..3 {
            let mut engine = Earley::new(cfg.clone(), LIMITS).unwrap();
            if let Some(before) = &mut before {
                assert!(engine.take_shapes(before));
            }
            let mut reference = Reference::new(written_out.clone(), LIMITS).unwrap();
            let mut states = Vec::new();
            lattice(&mut random, &mut engine, &mut reference, |_, _, (our, _), _| states.push(our));
            for state in states {
                let shape = engine.view(state).shape;
                let seen = seen(&engine, state);
                assert_eq!(of_shape.entry(shape).or_insert_with(|| seen.clone()), &seen, "seed {seed}");
                n_compared += 1;
            }
            before = Some(engine);
        }
    }
    assert!(n_compared > 5_000, "{n_compared} states were compared");
}

#[test]
fn adopted_states_read_on_as_they_did() {
    let mut n_compared = 0;
    for seed in 0..15_000 {
        let mut random = Random::new(seed);
        let Some((cfg, written_out)) = random_cfgs(&mut random) else { continue };
        // Without automata too.
        let cfg = if seed % 3 == 0 { written_out.clone() } else { cfg };
        let mut former = Earley::new(cfg.clone(), LIMITS).unwrap();
        let mut reference = Reference::new(written_out, LIMITS).unwrap();
        let mut points = Vec::new();
        lattice(&mut random, &mut former, &mut reference, |_, _, point, _| points.push(point));
        former.retire();
        let mut engine = Earley::new(cfg, LIMITS).unwrap();
        // Other states come first, so that ids differ.
        lattice(&mut random, &mut engine, &mut reference, |_, _, _, _| {});
        let (mut known, n_before) = (HashMap::default(), engine.n_states());
        let adopted: Vec<StateId> =
            points.iter().map(|point| engine.adopt(&former, point.0, &mut known).unwrap()).collect();
        let n_after = engine.n_states();
        assert!(n_after - n_before <= former.n_states(), "seed {seed}");
        for (point, adopted) in points.iter_mut().zip(adopted) {
            assert_eq!(engine.adopt(&former, point.0, &mut known), Ok(adopted), "seed {seed}");
            assert_eq!(seen(&engine, adopted), seen(&reference, point.1), "seed {seed}");
            point.0 = adopted;
        }
        assert_eq!(engine.n_states(), n_after, "seed {seed}");
        for _ in 0..30 {
            let from = points[random.below(points.len())];
            let terminal = Some(TerminalId::new(random.below(N_TERMINALS)));
            let our = engine.extend(&[Edge { from: from.0, terminal }]).unwrap();
            let their = reference.extend(&[Edge { from: from.1, terminal }]).unwrap();
            assert_eq!(our.is_some(), their.is_some(), "seed {seed}");
            let (Some(our), Some(their)) = (our, their) else { continue };
            assert_eq!(seen(&engine, our), seen(&reference, their), "seed {seed}");
            points.push((our, their));
            n_compared += 1;
        }
    }
    assert!(n_compared > 10_000, "{n_compared} states were compared");
}

/// Keys in any order, each at most once, the first few of them required, with commas between members. Symbol
/// `i` is the member of key `i`; the last symbol is the comma.
#[derive(Debug)]
struct Members {
    n_keys: usize,
    n_required: usize,
    limit: usize,
    /// The keys seen, and whether a member must follow (a comma came last).
    states: Mutex<Vec<(BTreeSet<u32>, bool)>>,
}

impl Members {
    fn new(n_keys: usize, n_required: usize, limit: usize) -> Self {
        Self { n_keys, n_required, limit, states: Mutex::new(vec![(BTreeSet::new(), false)]) }
    }

    fn n_states(&self) -> usize {
        self.states.lock().unwrap().len()
    }
}

impl RuleAutomaton for Members {
    fn start(&self) -> u32 {
        0
    }

    fn symbols(&self, state: u32) -> Arc<[u32]> {
        let (seen, wants_member) = self.states.lock().unwrap()[state as usize].clone();
        match (wants_member || seen.is_empty(), seen.len() < self.n_keys) {
            (true, _) => (0..self.n_keys as u32).filter(|key| !seen.contains(key)).collect(),
            (false, true) => Arc::from([self.n_keys as u32]),
            (false, false) => Arc::from([]),
        }
    }

    fn step(&self, state: u32, symbol: u32) -> Result<u32, TooManyStates> {
        let mut states = self.states.lock().unwrap();
        let (mut seen, _) = states[state as usize].clone();
        let next = match symbol as usize == self.n_keys {
            true => (seen, true),
            false => {
                seen.insert(symbol);
                (seen, false)
            }
        };
        if let Some(known) = states.iter().position(|state| *state == next) {
            return Ok(known as u32);
        }
        if states.len() == self.limit {
            let what = "the object".to_owned();
            return Err(TooManyStates { what, limit: self.limit, option: "states" });
        }
        states.push(next);
        Ok(states.len() as u32 - 1)
    }

    fn accepts(&self, state: u32) -> bool {
        self.minimum(state) == 0
    }

    fn minimum(&self, state: u32) -> u32 {
        let (seen, wants_member) = &self.states.lock().unwrap()[state as usize];
        let missing = (0..self.n_required as u32).filter(|key| !seen.contains(key)).count() as u32;
        match (wants_member, seen.is_empty(), missing) {
            (true, _, 0) => 1,
            (true, _, _) | (_, true, 1..) => 2 * missing - 1,
            (_, _, 0) => 0,
            (false, false, _) => 2 * missing,
        }
    }
}

const OPEN: usize = 0;
const CLOSE: usize = 1;
const COMMA: usize = 2;
const NULL: usize = 3;
/// The terminal of key 0.
const KEYS: usize = 4;

/// `value: "{" members "}" | "{" "}" | "null"`, with a nonterminal for each member: its key and a value.
fn object(members: &Arc<Members>) -> Cfg {
    let n_keys = members.n_keys;
    let (value, of) = (NonterminalId::new(0), NonterminalId::new(1));
    let t = |at| Symbol::Terminal(TerminalId::new(at));
    let member = |key| NonterminalId::new(2 + key);
    let mut rules = vec![
        Rule { lhs: value, rhs: vec![t(OPEN), Symbol::Nonterminal(of), t(CLOSE)] },
        Rule { lhs: value, rhs: vec![t(NULL)] },
    ];
    rules.extend(
        (0..n_keys)
            .map(|key| Rule { lhs: member(key), rhs: vec![t(KEYS + key), Symbol::Nonterminal(value)] }),
    );
    let symbols = (0..n_keys).map(|key| Symbol::Nonterminal(member(key))).chain([t(COMMA)]).collect();
    let automata = [AutomatonRule { lhs: of, automaton: members.clone(), symbols }];
    let sizes = (KEYS + n_keys, 2 + n_keys);
    Cfg::with_automata(sizes, rules, automata, value).trim(&BitSet::new(sizes.0)).unwrap()
}

fn read(engine: &mut Earley, state: StateId, terminal: usize) -> StateId {
    engine.extend(&[Edge { from: state, terminal: Some(TerminalId::new(terminal)) }]).unwrap().unwrap()
}

#[test]
fn an_object_of_many_keys_makes_only_the_states_that_are_taken() {
    let (n_keys, n_required) = (300, 7);
    let members = Arc::new(Members::new(n_keys, n_required, usize::MAX));
    let mut engine = Earley::new(object(&members), LIMITS).unwrap();
    let mut keys: Vec<usize> = (0..n_keys).collect();
    let mut random = Random::new(1);
    (1..n_keys).for_each(|at| keys.swap(at, random.below(at + 1)));
    let mut state = engine.start();
    assert_eq!(engine.minimum_remaining(state), 1);
    state = read(&mut engine, state, OPEN);
    let mut most_items = 0;
    for (at, &key) in keys.iter().enumerate() {
        let missing = (0..n_required).filter(|key| !keys[..at].contains(key)).count();
        assert_eq!(engine.viable(state).contains(CLOSE), at == 0 && n_required == 0);
        assert_eq!(engine.viable(state).count(), n_keys - at, "those that were not there yet");
        assert!(engine.minimum_remaining(state) >= 2 * missing as u32);
        let before = engine.n_parse_items();
        state = read(&mut engine, state, KEYS + key);
        state = read(&mut engine, state, NULL);
        let missing = (0..n_required).filter(|key| !keys[..=at].contains(key)).count();
        assert_eq!(engine.viable(state).contains(CLOSE), missing == 0, "after {at} keys");
        if at + 1 < n_keys {
            state = read(&mut engine, state, COMMA);
        }
        most_items = most_items.max(engine.n_parse_items() - before);
    }
    assert!(most_items < 20, "{most_items} items for one member");
    state = read(&mut engine, state, CLOSE);
    assert!(engine.is_sentence(state));
    let n_states = members.n_states();
    assert!(n_states <= 2 * n_keys + 1, "{n_states} states of the automaton");
    assert!(engine.n_automaton_states() <= n_states);
}

#[test]
fn objects_nest_and_find_their_states_again() {
    let members = Arc::new(Members::new(50, 1, usize::MAX));
    let mut engine = Earley::new(object(&members), LIMITS).unwrap();
    let mut state = engine.start();
    let mut sizes = Vec::new();
    for _ in 0..20 {
        state = read(&mut engine, state, OPEN);
        state = read(&mut engine, state, KEYS);
        sizes.push(members.n_states());
    }
    state = read(&mut engine, state, NULL);
    for depth in (0..20).rev() {
        assert!(!engine.is_sentence(state));
        state = read(&mut engine, state, CLOSE);
        assert_eq!(engine.is_sentence(state), depth == 0);
    }
    // Before the first key, and behind it.
    assert_eq!(members.n_states(), 2, "{sizes:?}");
}

#[test]
fn too_many_states_are_an_error_and_leave_the_state() {
    let members = Arc::new(Members::new(5, 0, 2));
    let mut engine = Earley::new(object(&members), LIMITS).unwrap();
    let mut state = engine.start();
    for terminal in [OPEN, KEYS, NULL] {
        state = read(&mut engine, state, terminal);
    }
    let comma = Edge { from: state, terminal: Some(TerminalId::new(COMMA)) };
    for _ in 0..2 {
        let error = engine.extend(&[comma]).unwrap_err();
        assert!(matches!(error, RecognizerError::TooManyStates(TooManyStates { limit: 2, .. })));
    }
    state = read(&mut engine, state, CLOSE);
    assert!(engine.is_sentence(state));
}

#[test]
fn engines_that_read_rules_refuse_automata() {
    let cfg = object(&Arc::new(Members::new(2, 1, usize::MAX)));
    let refused = |engine| Err(RecognizerError::Automata { engine });
    assert_eq!(Reference::new(cfg.clone(), LIMITS).map(drop), refused("reference"));
    assert_eq!(Valiant::new(cfg.clone(), LIMITS).map(drop), refused("valiant"));
    assert!(cfg.expanded(3).is_none());
    let written_out = cfg.expanded(100).unwrap();
    assert!(written_out.automata.is_empty());
    Reference::new(written_out, LIMITS).unwrap();
}

#[test]
fn symbols_that_derive_nothing_or_the_empty_sequence_are_refused() {
    let t = |at| Symbol::Terminal(TerminalId::new(at));
    let (start, other) = (NonterminalId::new(0), NonterminalId::new(1));
    let cfg = |rules: Vec<Rule>| {
        let table = Table(vec![(vec![(0, 1)], true, 0), (vec![(1, 0)], false, 1)]);
        let symbols = Arc::from([t(0), Symbol::Nonterminal(other)]);
        let automata = [AutomatonRule { lhs: start, automaton: Arc::new(table), symbols }];
        Cfg::with_automata((2, 2), rules, automata, start)
    };
    let refused = |is_nullable| {
        Err(ReduceError::Symbol { lhs: start, symbol: Symbol::Nonterminal(other), is_nullable })
    };
    let empty = BitSet::new(2);
    assert_eq!(cfg(vec![]).trim(&empty).map(drop), refused(false));
    assert_eq!(cfg(vec![Rule { lhs: other, rhs: vec![] }]).trim(&empty).map(drop), refused(true));
    assert_eq!(cfg(vec![Rule { lhs: other, rhs: vec![t(1)] }]).trim(&empty).map(drop), Ok(()));
    let none = cfg(vec![Rule { lhs: other, rhs: vec![t(1)] }]).trim(&BitSet::from_members(2, [1]));
    assert_eq!(none.map(drop), refused(false));
}
