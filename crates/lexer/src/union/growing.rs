//! A union that grows while it is asked, for terminals that are given by automata.
//!
//! A state is a sorted tuple of automata, each with its own state; automata in which nothing is alive any
//! more are left out. The product of the terminals that have patterns is one of the automata. Invariants:
//! state 0 is the empty tuple, in which all texts end that lead nowhere; what is known of a state never
//! changes, and a reference to it stays good; equal tuples are one state, except that starts are states of
//! their own, because nothing matches before the first byte. Cost of a step that is known: two look-ups,
//! without a lock.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use anygram_bits::{CompactSet, Fingerprint};
use anygram_grammar::automata::{Bytes, Common, Nature, Pieces};
use rustc_hash::FxHashMap;

use super::{Named, Part, Parts, State, Union};
use crate::dfa::{DEAD, START, common_classes};
use crate::{LexerError, LexerLimits};

/// An automaton and its state.
type Tuple = Box<[(u32, u32)]>;

/// Labels of an automaton, each with the terminal.
type Labels = [(u32, u32)];

/// A transition that nobody asked for.
const NOT_YET: State = State::MAX;

/// What takes part.
#[derive(Debug)]
enum Automaton {
    /// All terminals that have patterns.
    Product(Box<(Union, Parts)>),
    /// Terminals given by an automaton: its labels, each with the terminal, sorted; whether that is all that
    /// it has.
    Pieces(Pieces, Vec<(u32, u32)>, bool),
}

#[derive(Debug)]
struct Entry {
    tuple: Tuple,
    is_start: bool,
    /// Whether one of the automata has.
    has_bounds: bool,
    accepts: CompactSet,
    live: CompactSet,
    /// By byte class, once somebody asked.
    next: OnceLock<Box<[AtomicU32]>>,
}

/// Where more is wanted, two languages hardly want the same, and to say what costs more.
const FEW_WANTED: usize = 256;

/// Labels that are asked for a bound.
const FEW_LABELS: usize = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct Growing {
    pub classes: Box<[u8; 256]>,
    pub samples: Vec<u8>,
    automata: Vec<Automaton>,
    /// Of each terminal that takes part the automaton.
    automaton_of: Vec<Option<u32>>,
    /// Of each that is a label of an automaton, that and the label.
    label_of: Vec<Option<(u32, u32)>>,
    entries: boxcar::Vec<Entry>,
    /// By tuple and whether it is a start.
    ids: Mutex<FxHashMap<(Tuple, bool), State>>,
    n_entries: AtomicUsize,
    limit: usize,
    /// Whether a class begins some piece: 0 if nobody asked, 1 if not, else 2.
    begins: Box<[AtomicU8]>,
}

impl Growing {
    /// The product of some terminals, and the labels of `pieces` that `parts` name.
    pub fn new(
        product: (Union, Parts),
        parts: &[Option<Part<'_>>],
        pieces: &[Pieces],
        limits: &LexerLimits,
    ) -> Self {
        let (mut automaton_of, mut label_of) = (vec![None; parts.len()], vec![None; parts.len()]);
        let mut labels: Vec<Vec<(u32, u32)>> = vec![Vec::new(); pieces.len()];
        let mut automata = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            match *part {
                Some(Part::Dfa(_)) => automaton_of[at] = Some(0),
                Some(Part::Label { automaton, label }) => labels[automaton].push((label, at as u32)),
                None => {}
            }
        }
        if automaton_of.iter().any(Option::is_some) {
            automata.push(Automaton::Product(Box::new(product)));
        }
        for (own, mut labels) in pieces.iter().zip(labels).filter(|(_, labels)| !labels.is_empty()) {
            labels.sort_unstable();
            for &(label, terminal) in &labels {
                automaton_of[terminal as usize] = Some(automata.len() as u32);
                label_of[terminal as usize] = Some((automata.len() as u32, label));
            }
            let is_ours = |label: &u32| labels.binary_search_by_key(label, |&(own, _)| own).is_ok();
            let (live, accepts) = (own.live(own.start()), own.accepts(own.start()));
            let are_all = live.iter().chain(&*accepts).all(is_ours);
            automata.push(Automaton::Pieces(own.clone(), labels, are_all));
        }
        let all: Vec<Box<[u8; 256]>> = automata.iter().map(Automaton::classes).collect();
        let (classes, n_classes, samples) = common_classes(all.iter().map(|classes| &**classes));
        let this = Self {
            classes,
            samples,
            automata,
            automaton_of,
            label_of,
            entries: boxcar::Vec::new(),
            ids: Mutex::default(),
            n_entries: AtomicUsize::new(0),
            limit: limits.union_entries,
            begins: (0..n_classes).map(|_| AtomicU8::new(0)).collect(),
        };
        this.push(Box::default(), false);
        let starts = (0u32..).zip(&this.automata).map(|(at, automaton)| (at, automaton.start())).collect();
        // The start where all is wanted; as any state it is looked for by its tuple.
        let id = this.push(starts, true);
        debug_assert_eq!(id, START);
        this
    }

    pub fn n_states(&self) -> usize {
        self.entries.count()
    }

    pub fn is_start(&self, state: State) -> bool {
        self.entries[state as usize].is_start
    }

    pub fn accepts(&self, state: State) -> &CompactSet {
        &self.entries[state as usize].accepts
    }

    pub fn live(&self, state: State) -> &CompactSet {
        &self.entries[state as usize].live
    }

    pub fn step(&self, state: State, class: usize) -> Result<State, LexerError> {
        let entry = &self.entries[state as usize];
        // Nothing follows an end; that needs no place in a table.
        if entry.live.is_empty() {
            return Ok(DEAD);
        }
        if entry.next.get().is_none() {
            self.make_room(self.samples.len())?;
        }
        let row = entry.next.get_or_init(|| self.row(&entry.tuple));
        let known = row[class].load(Ordering::Acquire);
        if known != NOT_YET {
            return Ok(known);
        }
        let (mut target, mut first, mut last) = (Vec::with_capacity(entry.tuple.len()), 0, u8::MAX);
        for &(at, own) in &entry.tuple {
            let automaton = &self.automata[at as usize];
            let (next, run) = automaton.step_run(own, self.samples[class])?;
            (first, last) = (first.max(run.0), last.min(run.1));
            target.extend(next.map(|next| (at, next)));
        }
        let target = self.intern(target.into(), false)?;
        row[class].store(target, Ordering::Release);
        // All of their classes lead there: for each, one of its bytes does.
        for class in (first..=last).filter(|_| first < last).map(|byte| self.classes[usize::from(byte)]) {
            row[usize::from(class)].store(target, Ordering::Release);
        }
        Ok(target)
    }

    /// What is known of where classes lead before anybody asked: that most lead nowhere.
    fn row(&self, tuple: &[(u32, u32)]) -> Box<[AtomicU32]> {
        let mut bytes = Bytes::NONE;
        tuple
            .iter()
            .for_each(|&(at, own)| bytes.extend(self.automata[at as usize].bytes(own, &self.samples)));
        let target = |&byte: &u8| if bytes.contains(byte) { NOT_YET } else { DEAD };
        self.samples.iter().map(|byte| AtomicU32::new(target(byte))).collect()
    }

    /// The classes that are known to lead from one state to another.
    pub fn known(&self, state: State, target: State) -> impl Iterator<Item = usize> {
        let row = self.entries[state as usize].next.get().map_or(&[][..], |row| row);
        let is_it = move |next: &AtomicU32| next.load(Ordering::Acquire) == target;
        row.iter().enumerate().filter(move |(_, next)| is_it(next)).map(|(class, _)| class)
    }

    pub fn automaton_of(&self, terminal: usize) -> Option<u32> {
        *self.automaton_of.get(terminal)?
    }

    pub fn start_of(&self, wanted: &CompactSet) -> Result<State, LexerError> {
        let mut automata: Vec<u32> = wanted.iter().filter_map(|at| *self.automaton_of.get(at)?).collect();
        automata.sort_unstable();
        automata.dedup();
        let start = |at: u32| (at, self.automata[at as usize].start());
        self.intern(automata.into_iter().map(start).collect(), true)
    }

    pub fn begins(&self, class: usize) -> bool {
        let known = self.begins[class].load(Ordering::Relaxed);
        if known != 0 {
            return known == 2;
        }
        let byte = self.samples[class];
        let begins =
            |automaton: &Automaton| !matches!(automaton.step_run(automaton.start(), byte), Ok((None, _)));
        let found = self.automata.iter().any(begins);
        self.begins[class].store(1 + u8::from(found), Ordering::Relaxed);
        found
    }

    pub fn alike(&self, state: State, bytes: usize) -> Result<State, LexerError> {
        let entry = &self.entries[state as usize];
        if entry.is_start || !entry.has_bounds {
            return Ok(state);
        }
        let alike = |&(at, own): &(u32, u32)| match &self.automata[at as usize] {
            Automaton::Product(_) => (at, own),
            Automaton::Pieces(pieces, ..) => (at, pieces.alike(own, bytes)),
        };
        let tuple: Tuple = entry.tuple.iter().map(alike).collect();
        if tuple == entry.tuple { Ok(state) } else { self.intern(tuple, false) }
    }

    pub fn alive(&self, state: State) -> Box<[u32]> {
        self.entries[state as usize].tuple.iter().map(|&(at, _)| at).collect()
    }

    /// See [`Union::has_bounds`].
    pub fn has_bounds(&self, state: State) -> bool {
        self.entries[state as usize].has_bounds
    }

    pub fn common(&self, state: State) -> Option<Common> {
        let (pieces, own, _) = self.only(state)?;
        pieces.common(own)
    }

    pub fn nature(&self, state: State) -> Option<Nature> {
        let (pieces, own, labels) = self.only(state)?;
        let nature = pieces.nature(own)?;
        let mut terminals = Vec::new();
        named(labels, &[nature.label], &mut terminals);
        let [label] = *terminals else { return None };
        Some(Nature { label, ..nature })
    }

    pub fn given_by(&self, terminal: usize) -> Option<Named<'_>> {
        let at = (*self.automaton_of.get(terminal)?)?;
        match &self.automata[at as usize] {
            Automaton::Product(_) => Some(Named::Pattern),
            Automaton::Pieces(pieces, labels, _) => {
                let (label, _) = labels.iter().find(|&&(_, named)| named as usize == terminal)?;
                Some(Named::Label(pieces, *label))
            }
        }
    }

    pub fn product(&self) -> Option<&Union> {
        self.automata.iter().find_map(|automaton| match automaton {
            Automaton::Product(product) => Some(&product.0),
            Automaton::Pieces(..) => None,
        })
    }

    /// See [`Union::fingerprint`].
    pub fn fingerprint(&self, state: State, wanted: &CompactSet, bytes: usize) -> Option<Fingerprint> {
        if wanted.count() > FEW_WANTED {
            return None;
        }
        // By what is wanted, not by all labels: there may be a million.
        let mut labels: Vec<(u32, u32)> = wanted.iter().filter_map(|at| *self.label_of.get(at)?).collect();
        labels.sort_unstable();
        labels.dedup();
        let entry = &self.entries[state as usize];
        let mut parts = Vec::with_capacity(entry.tuple.len());
        for &(at, own) in &entry.tuple {
            match &self.automata[at as usize] {
                Automaton::Product(product) => {
                    parts.extend(product.0.fingerprint_by(&product.1, own, wanted))
                }
                Automaton::Pieces(pieces, ..) => {
                    let own_labels = labels.iter().filter(|label| label.0 == at).map(|label| label.1);
                    let own_labels: Vec<u32> = own_labels.collect();
                    if !own_labels.is_empty() {
                        parts.push(pieces.fingerprint(own, &own_labels, bytes)?);
                    }
                }
            }
        }
        Some(Fingerprint::of(&(entry.is_start, parts)))
    }

    /// A place where at least all can follow that can follow in any of the automata that are alive.
    pub fn in_outline(
        &self,
        state: State,
        of_product: &[Option<State>],
        run: impl Fn(&[u8]) -> State,
    ) -> Option<State> {
        let mut places =
            self.entries[state as usize].tuple.iter().map(|&(at, own)| match &self.automata[at as usize] {
                Automaton::Product(_) => *of_product.get(own as usize)?,
                Automaton::Pieces(pieces, ..) => pieces.in_outline(own).map(&run),
            });
        let first = places.next()??;
        places.all(|place| place == Some(first)).then_some(first)
    }

    pub fn at_least(&self, state: State) -> u64 {
        let of = |&(at, own): &(u32, u32)| match &self.automata[at as usize] {
            Automaton::Pieces(pieces, ..) => {
                let live = pieces.live(own);
                // To ask for many would cost more than it tells.
                let all = live.iter().filter(|_| live.len() <= FEW_LABELS);
                all.map(|&label| pieces.at_least(own, label)).min().unwrap_or(0)
            }
            Automaton::Product(_) => 0,
        };
        self.entries[state as usize].tuple.iter().map(of).min().unwrap_or(0)
    }

    /// The automaton in which alone something is alive, its state, and its labels; none at a start.
    fn only(&self, state: State) -> Option<(&Pieces, u32, &Labels)> {
        let entry = &self.entries[state as usize];
        let [(at, own)] = *entry.tuple else { return None };
        match &self.automata[at as usize] {
            Automaton::Pieces(pieces, labels, _) if !entry.is_start => Some((pieces, own, labels)),
            _ => None,
        }
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.n_entries.load(Ordering::Relaxed) * 8 + self.n_states() * (size_of::<Entry>() + 64)
    }

    fn intern(&self, tuple: Tuple, is_start: bool) -> Result<State, LexerError> {
        if tuple.is_empty() && !is_start {
            return Ok(DEAD);
        }
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (tuple, is_start);
        if let Some(&id) = ids.get(&key) {
            return Ok(id);
        }
        let entry = self.entry(key.0.clone(), is_start);
        self.make_room(1 + key.0.len() + entry.accepts.count() + entry.live.count())?;
        let id = self.entries.push(entry) as State;
        ids.insert(key, id);
        Ok(id)
    }

    /// A state of the beginning, before there are other threads.
    fn push(&self, tuple: Tuple, is_start: bool) -> State {
        let id = self.entries.push(self.entry(tuple.clone(), is_start)) as State;
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert((tuple, is_start), id);
        id
    }

    /// Counts entries that are about to be made.
    fn make_room(&self, n: usize) -> Result<(), LexerError> {
        let n_entries = self.n_entries.fetch_add(n, Ordering::Relaxed) + n;
        if n_entries <= self.limit {
            return Ok(());
        }
        self.n_entries.fetch_sub(n, Ordering::Relaxed);
        Err(LexerError::UnionTooLarge { limit: self.limit })
    }

    fn entry(&self, tuple: Tuple, is_start: bool) -> Entry {
        // One more than terminals, as in sets of what a parser wants.
        let n_bits = self.automaton_of.len() + 1;
        let (mut accepts, mut live) = (Vec::new(), Vec::new());
        for &(at, own) in &tuple {
            let automaton = &self.automata[at as usize];
            automaton.live(own, &mut live);
            if !is_start {
                automaton.accepts(own, &mut accepts);
            }
        }
        let set = |mut members: Vec<u32>| {
            members.sort_unstable();
            members.dedup();
            CompactSet::from_sorted(n_bits, members)
        };
        let has_bounds = tuple.iter().any(|&(at, _)| match &self.automata[at as usize] {
            Automaton::Product(_) => false,
            Automaton::Pieces(pieces, ..) => pieces.has_bounds(),
        });
        Entry { tuple, is_start, has_bounds, accepts: set(accepts), live: set(live), next: OnceLock::new() }
    }
}

impl Automaton {
    fn classes(&self) -> Box<[u8; 256]> {
        match self {
            Self::Product(product) => product.0.classes.clone(),
            Self::Pieces(pieces, ..) => pieces.classes(),
        }
    }

    fn start(&self) -> u32 {
        match self {
            Self::Product(_) => START,
            Self::Pieces(pieces, ..) => pieces.start(),
        }
    }

    /// Where a byte leads, if one of the terminals is alive there or matches, and the bytes around it that
    /// lead there too.
    fn step_run(&self, state: u32, byte: u8) -> Result<(Option<u32>, (u8, u8)), LexerError> {
        match self {
            Self::Product(product) => {
                let union = &product.0;
                let next = union.step(state, union.class(byte));
                Ok((Some(next).filter(|&to| to != DEAD), (byte, byte)))
            }
            Self::Pieces(pieces, labels, are_all) => {
                let is_ours = |label: &u32| labels.binary_search_by_key(label, |&(own, _)| own).is_ok();
                let matters =
                    |&to: &u32| pieces.accepts(to).iter().any(is_ours) || pieces.live(to).iter().any(is_ours);
                let (next, run) = pieces.step_run(state, byte)?;
                Ok((next.filter(|to| *are_all || matters(to)), run))
            }
        }
    }

    /// Those of some bytes with which pieces go on from a state, perhaps more.
    fn bytes(&self, state: u32, among: &[u8]) -> Bytes {
        match self {
            Self::Product(product) => {
                let (union, mut bytes) = (&product.0, Bytes::NONE);
                let goes_on = |&&byte: &&u8| union.step(state, union.class(byte)) != DEAD;
                among.iter().filter(goes_on).for_each(|&byte| bytes.insert(byte, byte));
                bytes
            }
            Self::Pieces(pieces, ..) => pieces.bytes(state),
        }
    }

    fn accepts(&self, state: u32, members: &mut Vec<u32>) {
        match self {
            Self::Product(product) => members.extend(product.0.accepts(state).iter().map(|at| at as u32)),
            Self::Pieces(pieces, labels, _) => named(labels, &pieces.accepts(state), members),
        }
    }

    fn live(&self, state: u32, members: &mut Vec<u32>) {
        match self {
            Self::Product(product) => members.extend(product.0.live(state).iter().map(|at| at as u32)),
            Self::Pieces(pieces, labels, _) => named(labels, &pieces.live(state), members),
        }
    }
}

/// Adds the terminals of some labels.
fn named(labels: &[(u32, u32)], of: &[u32], members: &mut Vec<u32>) {
    for &label in of {
        let from = labels.partition_point(|&(own, _)| own < label);
        members.extend(labels[from..].iter().take_while(|&&(own, _)| own == label).map(|&(_, at)| at));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use anygram_bits::work::Work;
    use anygram_grammar::automata::{PieceAutomaton, TooManyStates};
    use anygram_grammar::ir::Pattern;

    use super::*;
    use crate::dfa::Dfa;

    /// Words of small letters of at most three, as label 4; label 5 are those of one.
    #[derive(Debug)]
    struct Short;

    impl PieceAutomaton for Short {
        fn start(&self) -> u32 {
            0
        }

        fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, TooManyStates> {
            Ok((byte.is_ascii_lowercase() && state < 3).then_some(state + 1))
        }

        fn accepts(&self, state: u32) -> Arc<[u32]> {
            [&[][..], &[4, 5], &[4], &[4]][state as usize].into()
        }

        fn live(&self, state: u32) -> Arc<[u32]> {
            [&[4, 5][..], &[4], &[4], &[]][state as usize].into()
        }
    }

    fn union(limit: usize) -> Union {
        let work = &mut Work::unbounded();
        let limits = LexerLimits { union_entries: limit, ..LexerLimits::default() };
        let pattern = Pattern::Regex(regex_syntax::parse("[a-z]+=|0").unwrap());
        let dfa = Arc::new(Dfa::new(&pattern, &LexerLimits::default(), work).unwrap());
        let label = |label| Some(Part::Label { automaton: 1, label });
        // A token, a pattern, and one label by two names.
        let parts = [None, Some(Part::Dfa(&dfa)), label(4), label(4), label(5)];
        let pieces = [Pieces(Arc::new(Short)), Pieces(Arc::new(Short))];
        Union::of(&parts, &pieces, &limits, work).unwrap()
    }

    fn wanted(members: &[u32]) -> CompactSet {
        CompactSet::from_sorted(6, members.to_vec())
    }

    #[test]
    fn each_context_has_its_start() {
        let union = union(100_000);
        let [all, words, pattern, nothing] =
            [&[1, 2][..], &[3], &[1, 5], &[0, 5]].map(|members| union.start_of(&wanted(members)).unwrap());
        assert_eq!(all, START);
        assert!([all, words, pattern, nothing].iter().all(|&state| union.is_start(state)));
        assert_eq!(words, union.start_of(&wanted(&[2, 4])).unwrap());
        let run = |from: State, text: &[u8]| {
            text.iter().fold(from, |state, &byte| union.try_step(state, union.class(byte)).unwrap())
        };
        let members = |set: &CompactSet| set.iter().collect::<Vec<_>>();
        let facts = |state| (members(union.accepts(state)), members(union.live(state)));
        assert_eq!(facts(words), (vec![], vec![2, 3, 4]));
        assert_eq!(facts(run(words, b"a")), (vec![2, 3, 4], vec![2, 3]));
        assert_eq!(facts(run(all, b"abc")), (vec![2, 3], vec![1]));
        // Where the words are over, both contexts are in one state.
        assert_ne!(run(all, b"abc"), run(pattern, b"abc"));
        assert_eq!(run(all, b"abcd"), run(pattern, b"abcd"));
        for (from, text) in [(words, &b"abcd"[..]), (words, b"0"), (nothing, b"a"), (pattern, b"a0")] {
            assert_eq!(run(from, text), DEAD);
        }
        let begins = |byte| union.begins(union.class(byte));
        assert_eq!([b'a', b'0', b'='].map(begins), [true, true, false]);
    }

    #[test]
    fn a_limit_stops_what_is_new() {
        // A row has as many entries as there are bytes, since this automaton does not say which it tells
        // apart.
        let union = union(300);
        assert_eq!(union.n_classes(), 256);
        let known = union.try_step(START, union.class(b'a')).unwrap();
        let error = Err(LexerError::UnionTooLarge { limit: 300 });
        assert_eq!(union.try_step(known, union.class(b'a')), error);
        assert_eq!(union.try_step(START, union.class(b'a')), Ok(known));
    }
}
