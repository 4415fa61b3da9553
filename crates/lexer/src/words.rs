//! Texts of terminals, as a person would write them: the shortest and random ones.
//!
//! Bytes of one class are never told apart, so the most readable of each stands for all: letters before
//! digits before punctuation before what is not printed. Cost of [`Words::new`]: the entries of the
//! automaton, up to a bound; states beyond it have no word. In an automaton that grows the search for a
//! terminal begins where that terminal alone is wanted, and it ends when all terminals have a text.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anygram_bits::{BitSet, CompactSet, Random};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dfa::DEAD;
use crate::lexicon::Lexicon;
use crate::union::State;

/// Entries of the automaton that are looked at.
const ENTRIES: usize = 4_000_000;
/// The same in an automaton that grows, from each start: a number of many digits has too many states.
const GROWN_ENTRIES: usize = 200_000;
/// Bytes after which a random text ends as soon as it can, and after which it is given up.
const LONG: usize = 6;
const TOO_LONG: usize = 80;

/// A readable text that leads to each state of the automaton of all terminals.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    lexicon: &'a Lexicon,
    /// Of each class its bytes, the most readable first; the classes in that order too.
    classes: Vec<(usize, Vec<u8>)>,
    before: FxHashMap<State, (State, u8)>,
    order: Vec<State>,
    is_cut: bool,
    shortest: Vec<Option<State>>,
}

impl<'a> Words<'a> {
    /// The words of a lexicon.
    pub fn new(lexicon: &'a Lexicon) -> Self {
        let union = &lexicon.union;
        let mut classes: Vec<(usize, Vec<u8>)> =
            (0..union.n_classes()).map(|class| (class, Vec::new())).collect();
        for byte in 0..=255 {
            classes[union.class(byte)].1.push(byte);
        }
        for (_, bytes) in &mut classes {
            bytes.sort_by_key(|&byte| readability(byte));
        }
        classes.sort_by_key(|(_, bytes)| readability(bytes[0]));
        let shortest = vec![None; lexicon.n_terminals()];
        let before = FxHashMap::default();
        let mut this = Self { lexicon, classes, before, order: vec![], is_cut: false, shortest };
        this.search();
        this.choose();
        this
    }

    /// The state before the first byte of a terminal; `None` if a limit is hit.
    fn start(&self, terminal: usize) -> Option<State> {
        let wanted = CompactSet::from_sorted(self.lexicon.n_terminals() + 1, vec![terminal as u32]);
        self.lexicon.union.start_of(&wanted).ok()
    }

    fn search(&mut self) {
        let lexicon = self.lexicon;
        let mut seen = FxHashSet::default();
        let mut wanted = lexicon.competing();
        for terminal in lexicon.competing().iter() {
            if let Some(start) = self.start(terminal)
                && {
                    self.take_example(terminal, start, &mut wanted);
                    seen.insert(start)
                }
            {
                self.search_from(start, &mut wanted);
            }
        }
        self.is_cut |= lexicon.union.is_growing();
    }

    /// Takes a text of a terminal that its automaton knows, so that none is searched for.
    fn take_example(&mut self, terminal: usize, start: State, wanted: &mut BitSet) {
        let union = &self.lexicon.union;
        let Some(text) = union.example(terminal) else { return };
        let mut path = vec![start];
        for &byte in &text {
            let Ok(next) = union.try_step(path[path.len() - 1], union.class(byte)) else { return };
            path.push(next);
        }
        let last = path[path.len() - 1];
        // The text to a state is that of the state before it: a state that comes twice would have none.
        let is_new = |state: &State| *state != start && !self.before.contains_key(state);
        if !union.accepts(last).contains(terminal) || !path[1..].iter().all(is_new) {
            return;
        }
        wanted.remove(terminal);
        let steps = path.iter().zip(&path[1..]).zip(text);
        self.before.extend(steps.map(|((&before, &state), byte)| (state, (before, byte))));
        self.order.extend(&path);
    }

    /// Dijkstra's algorithm (1959); what is hard to read is far away. In an automaton that grows, only until
    /// all that is `wanted` and begins here was found.
    fn search_from(&mut self, start: State, wanted: &mut BitSet) {
        let union = &self.lexicon.union;
        let mut settled = FxHashSet::default();
        let mut left = union.live(start).iter().filter(|&at| wanted.contains(at)).count();
        let mut queue = BinaryHeap::from([Reverse((0u32, 0usize, start, None))]);
        let (mut n_found, from) = (0, if union.is_growing() { self.order.len() } else { 0 });
        while let Some(Reverse((distance, _, state, before))) = queue.pop() {
            if !settled.insert(state) {
                continue;
            }
            if let Some(before) = before {
                self.before.entry(state).or_insert(before);
            }
            self.order.push(state);
            left -= union.accepts(state).iter().filter(|&at| wanted.remove(at)).count();
            if union.is_growing() && left == 0 {
                return;
            }
            let most = if union.is_growing() { GROWN_ENTRIES } else { ENTRIES };
            if (self.order.len() - from) * union.n_classes() > most {
                self.is_cut = true;
                return;
            }
            for (class, bytes) in &self.classes {
                let Ok(next) = union.try_step(state, *class) else { return };
                if next != DEAD && !settled.contains(&next) {
                    n_found += 1;
                    let before = Some((state, bytes[0]));
                    queue.push(Reverse((distance + weight(bytes[0]), n_found, next, before)));
                }
            }
        }
    }

    /// The first state in which each terminal is a label, or at least matches.
    fn choose(&mut self) {
        let lexicon = self.lexicon;
        let competing = lexicon.competing();
        let mut matches = vec![None; lexicon.n_terminals()];
        for &state in &self.order {
            for terminal in lexicon.union.accepts(state).iter() {
                matches[terminal].get_or_insert(state);
            }
            for label in lexicon.labels(state, |at| competing.contains(at)) {
                self.shortest[label].get_or_insert(state);
            }
        }
        for (shortest, matches) in self.shortest.iter_mut().zip(matches) {
            *shortest = shortest.or(matches);
        }
    }

    /// The states that have a word, in the order of their words.
    pub fn states(&self) -> &[State] {
        &self.order
    }

    /// Whether there are states that have none.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The word that leads to a state.
    pub fn to(&self, state: State) -> Vec<u8> {
        let mut word = Vec::new();
        let mut at = state;
        while let Some(&(before, byte)) = self.before.get(&at) {
            word.push(byte);
            at = before;
        }
        word.reverse();
        word
    }

    /// A short text of a terminal, if it has any; one that no other terminal takes from it if there is one.
    pub fn shortest(&self, terminal: usize) -> Option<Vec<u8>> {
        self.shortest[terminal].map(|state| self.to(state))
    }

    /// A random text of a terminal that no other takes from it.
    /// Falls back on the shortest.
    pub fn random(&self, terminal: usize, random: &mut Random) -> Option<Vec<u8>> {
        let (union, competing) = (&self.lexicon.union, self.lexicon.competing());
        for _ in 0..8 {
            let Some(mut state) = self.start(terminal) else { break };
            let mut word = Vec::new();
            while word.len() < TOO_LONG {
                let is_label = self.lexicon.labels(state, |at| competing.contains(at)).contains(&terminal);
                let goes_on = union.live(state).contains(terminal);
                if is_label && (!goes_on || word.len() >= LONG || random.below(3) == 0) {
                    return Some(word);
                }
                let leads = |&&(class, _): &&(usize, Vec<u8>)| {
                    union.try_step(state, class).is_ok_and(|next| {
                        union.live(next).contains(terminal) || union.accepts(next).contains(terminal)
                    })
                };
                let mut options: Vec<&[u8]> =
                    self.classes.iter().filter(leads).map(|(_, bytes)| &bytes[..]).collect();
                // What is hard to read only where nothing else will do.
                let readable = options.partition_point(|bytes| weight(bytes[0]) == 1);
                options.truncate(readable.max(1));
                if options.is_empty() {
                    break;
                }
                let bytes = *random.choose(&options);
                let similar = bytes.partition_point(|&byte| readability(byte).0 == readability(bytes[0]).0);
                let byte = *random.choose(&bytes[..similar]);
                let Ok(next) = union.try_step(state, union.class(byte)) else { break };
                word.push(byte);
                state = next;
            }
        }
        self.shortest(terminal)
    }

    /// The bytes with each one put into the most readable of its class: no terminal tells the difference.
    pub fn readable(&self, text: &[u8]) -> Vec<u8> {
        let mut best = [0u8; 256];
        for (_, bytes) in &self.classes {
            bytes.iter().for_each(|&byte| best[usize::from(byte)] = bytes[0]);
        }
        text.iter().map(|&byte| best[usize::from(byte)]).collect()
    }
}

/// The kind of a byte and its place within, less is more readable.
fn readability(byte: u8) -> (u8, u8) {
    match byte {
        b'a'..=b'z' => (0, byte),
        b'1'..=b'9' => (1, byte),
        b'0' => (1, u8::MAX),
        b'A'..=b'Z' => (2, byte),
        b'_' => (3, 0),
        b' ' => (5, 0),
        0x21..=0x7e => (4, byte),
        b'\n' => (6, 0),
        b'\t' => (6, 1),
        b'\r' => (6, 2),
        // `é`, where bytes beyond ASCII are needed.
        0xc3 | 0xa9 => (7, 0),
        0x80.. => (7, byte),
        _ => (8, byte),
    }
}

fn weight(byte: u8) -> u32 {
    match readability(byte).0 {
        0..=5 => 1,
        6 => 2,
        7 => 4,
        _ => 20,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use anygram_grammar::cfg::Cfg;
    use anygram_grammar::ir::{LexerMode, Ties};
    use anygram_grammar::lark::{LarkOptions, parse};

    use super::*;
    use crate::LexerLimits;
    use crate::dfa::START;
    use crate::lexicon::Patterns;

    pub fn lexicon(source: &str, mode: LexerMode, ties: Ties) -> (Vec<String>, Lexicon) {
        let (grammar, limits) = (parse(source, &LarkOptions::default()).unwrap(), LexerLimits::default());
        let work = &mut anygram_bits::work::Work::unbounded();
        let patterns = Patterns::new(&grammar, &limits, work).unwrap();
        let cfg = Cfg::reduce(&grammar, &patterns.empty()).unwrap();
        let names = grammar.terminals.iter().map(|terminal| terminal.name.clone()).collect();
        (names, Lexicon::new(&grammar, &cfg, &patterns, mode, ties, &limits, work).unwrap())
    }

    const SOURCE: &str = "start: \"if\" NAME INT STRING BELL WIDE A\nNAME: /[a-z_]\\w*/\nINT: \
                          /0|[1-9][0-9]*/\nSTRING: /\"[^\"]*\"/\n\
        BELL: /[\\x00-\\x1f]/\nWIDE: /[^\\x00-\\x7f]+/\nA.2: \"a\"\n%ignore /\\s+/";

    #[test]
    fn shortest_words_are_readable_and_their_own() {
        let (names, lexicon) = lexicon(SOURCE, LexerMode::Longest, Ties::All);
        let words = Words::new(&lexicon);
        let of = |name: &str| {
            let at = names.iter().position(|other| other == name).unwrap();
            String::from_utf8(words.shortest(at).unwrap()).unwrap()
        };
        let found = ["\"if\"", "NAME", "INT", "STRING", "BELL", "WIDE", "A", "/\\s+/"].map(of);
        // `a` is taken by a terminal of higher priority.
        assert_eq!(found, ["if", "b", "1", "\"\"", "\n", "é", "a", " "]);
        // No terminal tells these from those, but `a` from `b`.
        assert_eq!(words.readable(b"\x0b\"ac\""), b"\n\"ab\"");
    }

    #[test]
    fn random_words_are_words() {
        let (names, lexicon) = lexicon(SOURCE, LexerMode::Contextual, Ties::All);
        let words = Words::new(&lexicon);
        let mut random = Random::new(1);
        let mut distinct = std::collections::BTreeSet::new();
        for (terminal, name) in names.iter().enumerate() {
            for _ in 0..20 {
                let word = words.random(terminal, &mut random).unwrap();
                let union = &lexicon.union;
                let end = word.iter().fold(START, |state, &byte| union.step(state, union.class(byte)));
                assert!(lexicon.labels(end, |_| true).contains(&terminal), "{name} {word:?}");
                distinct.insert((terminal, word));
            }
        }
        assert!(distinct.len() > 40, "{}", distinct.len());
    }
}
