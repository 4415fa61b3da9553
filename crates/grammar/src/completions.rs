//! Computes the states of a finite automaton from which everything that a parser has begun can be completed.
//!
//! An automaton reads terminals, a parser has read some of a sentence. Whether some terminals complete the
//! sentence *and* are read by the automaton is a question about the parser's whole state ([`Relation`]
//! answers it). Often the answer is the same for all parser states in which a terminal was just read, and
//! can be computed once.
//!
//! # The argument
//!
//! A *spot* is a nonterminal with a beginning of some of its rules: what was read of it. In a derivation
//! that is in progress, each nonterminal on the way from the start symbol down to the last terminal read is
//! at a spot. Call a spot that is past its first symbol (and the place before the start symbol) an *asker*:
//! it asks for what comes next there, and that may begin with another nonterminal, and so on down to the
//! next asker. These steps down, from a nonterminal to the first symbol of one of its rules, can be
//! replaced by any others that end in the same nonterminal: what the asker asks for was asked for where it
//! stood, and so was everything that it can begin with.
//!
//! - `safe(N)` are the states from which the rest can be read once N is complete. It is the greatest family
//!   of sets such that from each state in `safe(N)`, for *every* asker that can have asked for N, *some*
//!   ways lead up from N to what was asked for, and on through *some* rest of the asker's rule, into `safe`
//!   of the asker's nonterminal.
//! - A spot is *open* at a state from which some rest of its rule leads into `safe` of its nonterminal.
//! - A terminal is *certain* at a state at which every spot just behind it is open.
//!
//! If a parser has read a sequence of terminals, the last of them certain at the present state of the
//! automaton, then some sequence completes the sentence and is read from here. Proof: Take any derivation
//! that the sequence begins, and in it the spot just behind the last terminal. It is open, so its
//! nonterminal can be completed in a state that is safe for it; by induction on the number of askers above,
//! one of which is done with each step, so can the start symbol. Each step reads finitely much, because
//! [`Relation`] holds what finite derivations derive. That spots are shared by all rules that begin alike
//! is sound because a parser that follows one of them follows them all.
//!
//! A *no* says nothing: askers may be considered that no sentence brings together with the state.

use std::rc::Rc;

use anygram_bits::BitSet;
use anygram_bits::work::{Stopped, Work};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::cfg::Cfg;
use crate::ir::{NonterminalId, Symbol, TerminalId};
use crate::relation::Relation;

/// What surely can be completed; see the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completions {
    relation: Relation,
    /// Of each nonterminal.
    safe: Vec<BitSet>,
    /// Of each terminal the states at which it is certain.
    certain: Vec<BitSet>,
    /// The states at which everything is open.
    open: BitSet,
}

impl Completions {
    /// What can be completed where the automaton of `relation` is. Cost: small sets of states are computed
    /// for each nonterminal that can begin what can begin something that
    /// is asked for, in each of a few rounds.
    ///
    /// The relation must be sure ([`Relation::surely`]). Where automata give rules nothing is certain: what
    /// can be left of their right-hand sides is not looked at here.
    pub fn new(cfg: &Cfg, relation: Relation, work: &mut Work) -> Result<Self, Stopped> {
        if !cfg.automata.is_empty() {
            let none = BitSet::new(relation.n_states());
            let (safe, certain) =
                (vec![none.clone(); cfg.n_nonterminals], vec![none.clone(); cfg.n_terminals]);
            return Ok(Self { relation, safe, certain, open: none });
        }
        let mut search = Search::new(cfg, &relation);
        let full = search.sets.intern(BitSet::full(relation.n_states()));
        let mut safe = vec![full; cfg.n_nonterminals];
        loop {
            let mut asked: FxHashSet<Vec<(NonterminalId, SetId)>> =
                FxHashSet::from_iter([vec![(cfg.start, full)]]);
            for lhs in search.spots.left_sides() {
                let reached = search.reached(lhs, safe[lhs.index()], work)?;
                for spot in search.spots.of(lhs).iter().skip(1) {
                    work.spend(1 + spot.next.len())?;
                    let wanted = spot.next.iter().filter_map(|&(symbol, next)| match symbol {
                        Symbol::Nonterminal(n) => Some((n, reached[next as usize])),
                        Symbol::Terminal(_) => None,
                    });
                    let mut wanted: Vec<_> = wanted.collect();
                    wanted.sort_unstable();
                    asked.insert(wanted);
                }
            }
            let mut next = safe.clone();
            for wanted in asked {
                for (n, set) in search.climb(&wanted, work)? {
                    next[n.index()] = search.sets.intersection(next[n.index()], set);
                }
            }
            if next == safe {
                break;
            }
            safe = next;
        }
        let mut certain = vec![full; cfg.n_terminals];
        let mut open = search.before(Symbol::Nonterminal(cfg.start), full);
        for lhs in search.spots.left_sides() {
            let reached = search.reached(lhs, safe[lhs.index()], work)?;
            for spot in search.spots.of(lhs) {
                for &(symbol, next) in &spot.next {
                    let Symbol::Terminal(terminal) = symbol else { continue };
                    let at = reached[next as usize];
                    certain[terminal.index()] = search.sets.intersection(certain[terminal.index()], at);
                    open = search.sets.intersection(open, at);
                }
            }
        }
        let sets = &search.sets.sets;
        let own = |ids: Vec<SetId>| ids.into_iter().map(|id| sets[id as usize].clone()).collect();
        let (safe, certain, open) = (own(safe), own(certain), sets[open as usize].clone());
        Ok(Self { relation, safe, certain, open })
    }

    /// What symbols do to the automaton.
    pub fn relation(&self) -> &Relation {
        &self.relation
    }

    /// The states from which, once a nonterminal is complete, the rest can be read, whatever has asked for
    /// the nonterminal. They let a parser answer without a look at its stack.
    pub fn safe(&self, nonterminal: NonterminalId) -> &BitSet {
        &self.safe[nonterminal.index()]
    }

    /// The states from which, just after a terminal, the rest can be read, whatever was read before.
    pub fn certain(&self, terminal: TerminalId) -> &BitSet {
        &self.certain[terminal.index()]
    }

    /// The states from which the rest can be read, whatever was read before.
    pub fn open(&self) -> &BitSet {
        &self.open
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        let sets = self.safe.iter().chain(&self.certain).map(|set| set.memory_usage() + size_of::<BitSet>());
        self.relation.memory_usage() + sets.sum::<usize>()
    }
}

/// What was read of some rules of one nonterminal that begin alike.
#[derive(Clone, Default)]
struct Spot {
    /// Whether that is all of one of them.
    is_end: bool,
    /// What can come next, and the spot that it leads to, as a place among those of the nonterminal; it
    /// comes later.
    next: Vec<(Symbol, u32)>,
}

/// Of each nonterminal its spots; the first, if there is any, is that of no symbols.
struct Spots(Vec<Vec<Spot>>);

impl Spots {
    fn new(cfg: &Cfg) -> Self {
        let mut spots: Vec<Vec<Spot>> = vec![Vec::new(); cfg.n_nonterminals];
        let mut known: FxHashMap<(NonterminalId, u32, Symbol), u32> = FxHashMap::default();
        for rule in &cfg.rules {
            let own = &mut spots[rule.lhs.index()];
            if own.is_empty() {
                own.push(Spot::default());
            }
            let mut at = 0;
            for &symbol in &rule.rhs {
                at = *known.entry((rule.lhs, at, symbol)).or_insert_with(|| {
                    let fresh = own.len() as u32;
                    own.push(Spot::default());
                    own[at as usize].next.push((symbol, fresh));
                    fresh
                });
            }
            own[at as usize].is_end = true;
        }
        Self(spots)
    }

    fn of(&self, lhs: NonterminalId) -> &[Spot] {
        &self.0[lhs.index()]
    }

    fn left_sides(&self) -> impl Iterator<Item = NonterminalId> + use<> {
        (0..self.0.len()).map(NonterminalId::new)
    }
}

/// A set of states, by number; 0 is the empty one.
type SetId = u32;

/// Sets of states, equal ones once.
struct Sets {
    sets: Vec<BitSet>,
    ids: FxHashMap<BitSet, SetId>,
}

impl Sets {
    fn intern(&mut self, set: BitSet) -> SetId {
        let fresh = self.sets.len() as SetId;
        *self.ids.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            fresh
        })
    }

    fn union(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b || b == 0 {
            return a;
        }
        let mut set = self.sets[a as usize].clone();
        if set.union_with(&self.sets[b as usize]) { self.intern(set) } else { a }
    }

    fn intersection(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b {
            return a;
        }
        let mut set = self.sets[a as usize].clone();
        set.intersect_with(&self.sets[b as usize]);
        self.intern(set)
    }
}

struct Search<'a> {
    relation: &'a Relation,
    spots: Spots,
    sets: Sets,
    before: FxHashMap<(Symbol, SetId), SetId>,
    reached: FxHashMap<(NonterminalId, SetId), Rc<[SetId]>>,
}

impl<'a> Search<'a> {
    fn new(cfg: &Cfg, relation: &'a Relation) -> Self {
        let mut sets = Sets { sets: Vec::new(), ids: FxHashMap::default() };
        sets.intern(BitSet::new(relation.n_states()));
        let spots = Spots::new(cfg);
        Self { relation, spots, sets, before: FxHashMap::default(), reached: FxHashMap::default() }
    }

    /// The states from which a symbol leads into a set.
    fn before(&mut self, symbol: Symbol, set: SetId) -> SetId {
        if set == 0 {
            return 0;
        }
        let Self { relation, sets, before, .. } = self;
        *before.entry((symbol, set)).or_insert_with(|| {
            let set = relation.before(symbol, &sets.sets[set as usize]);
            sets.intern(set)
        })
    }

    /// Of each spot of a nonterminal the states from which some rest leads into a set.
    fn reached(
        &mut self,
        lhs: NonterminalId,
        target: SetId,
        work: &mut Work,
    ) -> Result<Rc<[SetId]>, Stopped> {
        if let Some(known) = self.reached.get(&(lhs, target)) {
            return Ok(known.clone());
        }
        let n_spots = self.spots.of(lhs).len();
        let mut reached = vec![0; n_spots];
        for at in (0..n_spots).rev() {
            let n_next = self.spots.of(lhs)[at].next.len();
            work.spend(1 + n_next * (1 + self.relation.n_states() / 16))?;
            let mut set = if self.spots.of(lhs)[at].is_end { target } else { 0 };
            for edge in 0..n_next {
                let (symbol, next) = self.spots.of(lhs)[at].next[edge];
                let before = self.before(symbol, reached[next as usize]);
                set = self.sets.union(set, before);
            }
            reached[at] = set;
        }
        let reached: Rc<[SetId]> = reached.into();
        self.reached.insert((lhs, target), reached.clone());
        Ok(reached)
    }

    /// Each nonterminal that can begin what is wanted, with the states from which, once it is complete, some
    /// of that can be completed so that a state is reached that was wanted with it.
    fn climb(
        &mut self,
        wanted: &[(NonterminalId, SetId)],
        work: &mut Work,
    ) -> Result<FxHashMap<NonterminalId, SetId>, Stopped> {
        let mut found: FxHashMap<NonterminalId, SetId> = FxHashMap::default();
        let mut agenda: Vec<(NonterminalId, SetId)> = wanted.to_vec();
        while let Some((n, set)) = agenda.pop() {
            work.spend(1)?;
            let known = found.get(&n).copied();
            let all = self.sets.union(known.unwrap_or(0), set);
            if known == Some(all) {
                continue;
            }
            found.insert(n, all);
            let reached = self.reached(n, all, work)?;
            let first = self.spots.of(n).first().map_or(&[][..], |first| &first.next);
            work.spend(first.len())?;
            agenda.extend(first.iter().filter_map(|&(symbol, next)| match symbol {
                Symbol::Nonterminal(m) => Some((m, reached[next as usize])),
                Symbol::Terminal(_) => None,
            }));
        }
        Ok(found)
    }
}
