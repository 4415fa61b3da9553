//! Lexemes, looked at when somebody asks for them, where lexing is independent of parsing for sure.
//!
//! What can follow a boundary is the less, the more it owes. So boundaries are not explored, but bounded:
//! the last piece has ended in some state by some byte, and owes at most that one state. Earlier pieces owe
//! states that the same byte led to from states in which a piece can end and yet go on, or from such states
//! in turn, and none of which accepts (else the debt would have been broken). The terminals of which a
//! shortest word can be read from all of these bounds, which are few, are common to all boundaries. If they
//! suffice, lexing is independent, and all that is asked of a lexeme is what it can become. That is found
//! along its moves, and kept for all lexemes that were met on the way. Cost: the bytes of these words for
//! each bound, and then at most once the moves of each lexeme.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};

use anygram_bits::work::{Stopped, Work};
use anygram_bits::{BitSet, CompactSet};
use anygram_grammar::cfg::Cfg;
use rustc_hash::{FxHashMap, FxHashSet};

use super::debts::Debts;
use super::graph::{Graph, Pool};
use super::{DebtId, SET_BYTES_PER_LEXEME, suffices};
use crate::dfa::{DEAD, START};
use crate::lexicon::Lexicon;
use crate::union::{State, Union};
use crate::{LexerError, LexerLimits};

/// Bounds that are tried at most; grammars of programming languages have some tens.
const MOST_BOUNDS: usize = 1_000;

/// A lexeme in progress: the state of the union, and the debt of earlier pieces.
type Lexeme = (State, DebtId);

/// See the module.
#[derive(Debug)]
pub(super) struct Asked {
    specials: BitSet,
    /// Debts, in ascending order, of which one bounds what a boundary owes.
    bounds: Vec<Box<[State]>>,
    sets: Arc<boxcar::Vec<CompactSet>>,
    lexemes: RwLock<Lexemes>,
    most_lexemes: usize,
}

/// What is known so far.
#[derive(Debug)]
struct Lexemes {
    debts: Debts,
    /// Of each lexeme the number of the set of what it can become.
    set_of: FxHashMap<Lexeme, u32>,
    /// Debts that no bound covers.
    uncovered: FxHashSet<DebtId>,
    pool: Pool,
    labels: Vec<Option<Arc<[usize]>>>,
}

impl Asked {
    /// Bounds what boundaries owe; `None` if lexing is not independent even so.
    pub fn new(
        lexicon: &Lexicon,
        cfg: &Cfg,
        specials: &BitSet,
        limits: &LexerLimits,
        work: &mut Work,
    ) -> Result<Option<Self>, Stopped> {
        let bounds = bounds(&lexicon.union, work)?;
        if bounds.len() > MOST_BOUNDS {
            return Ok(None);
        }
        let pool = Pool::new(limits.lexemes.saturating_mul(SET_BYTES_PER_LEXEME));
        let mut this = Self {
            specials: specials.clone(),
            bounds,
            sets: pool.sets.clone(),
            lexemes: RwLock::new(Lexemes {
                debts: Debts::new(),
                set_of: FxHashMap::default(),
                uncovered: FxHashSet::default(),
                pool,
                labels: vec![None; lexicon.union.n_states()],
            }),
            most_lexemes: limits.lexemes,
        };
        let mut common = lexicon.used.clone();
        let words = Words::new(lexicon, work)?;
        for bound in &this.bounds {
            let debts = &mut this.lexemes.get_mut().unwrap_or_else(PoisonError::into_inner).debts;
            let n_before = common.count();
            words.retain(lexicon, &mut common, bound, debts, work)?;
            if common.count() < n_before && !suffices(cfg, &common) {
                return Ok(None);
            }
        }
        Ok(suffices(cfg, &common).then_some(this))
    }

    /// The terminals that are tokens.
    pub fn specials(&self) -> &BitSet {
        &self.specials
    }

    /// A number of a lexeme, by which it is known what it can become; `None` if it is a boundary that cannot
    /// arise if all terminals compete.
    pub fn find_node(
        &self,
        lexicon: &Lexicon,
        state: State,
        debt: &[State],
    ) -> Result<Option<usize>, LexerError> {
        {
            let lexemes = self.lexemes.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(debt) = lexemes.debts.find(debt) {
                if state == START && lexemes.uncovered.contains(&debt) {
                    return Ok(None);
                }
                if let Some(&set) = lexemes.set_of.get(&(state, debt)) {
                    return Ok(Some(set as usize));
                }
            }
        }
        let lexemes = &mut *self.lexemes.write().unwrap_or_else(PoisonError::into_inner);
        let id = lexemes.debts.intern(debt);
        // After a byte that breaks nothing any debt is one that some bound covers.
        if state == START && !self.is_covered(debt) {
            lexemes.uncovered.insert(id);
            return Ok(None);
        }
        let set = self.explore(lexicon, lexemes, (state, id), &mut Work::unbounded())?;
        let set = set.ok_or(LexerError::TooManyLexemes { limit: self.most_lexemes })?;
        Ok(Some(set as usize))
    }

    /// What a lexeme can become, by the number that [`Asked::find_node`] gave.
    pub fn finish(&self, node: usize) -> &CompactSet {
        &self.sets[node]
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let lexemes = self.lexemes.read().unwrap_or_else(PoisonError::into_inner);
        let sets = self.sets.iter().map(|(_, set)| set.memory_usage() + size_of::<CompactSet>());
        2 * sets.sum::<usize>()
            + 2 * lexemes.set_of.len() * size_of::<(Lexeme, u32)>()
            + lexemes.debts.memory_usage()
            + lexemes.labels.len() * size_of::<Option<Arc<[usize]>>>()
    }

    fn is_covered(&self, debt: &[State]) -> bool {
        let covers = |bound: &[State]| debt.iter().all(|state| bound.binary_search(state).is_ok());
        debt.is_empty() || self.bounds.iter().any(|bound| covers(bound))
    }

    /// Looks at a lexeme and all others that it can become; returns the number of its set. `None` if there
    /// are too many.
    fn explore(
        &self,
        lexicon: &Lexicon,
        lexemes: &mut Lexemes,
        from: Lexeme,
        work: &mut Work,
    ) -> Result<Option<u32>, Stopped> {
        let Lexemes { debts, set_of, pool, labels, .. } = lexemes;
        if let Some(&known) = set_of.get(&from) {
            return Ok(Some(known));
        }
        let (union, end) = (&lexicon.union, lexicon.n_terminals());
        let mut agenda = vec![from];
        let mut nodes: FxHashMap<Lexeme, u32> = FxHashMap::from_iter([(from, 0)]);
        let mut graph = Graph::default();
        let (mut ends, mut known, mut moves) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0;
        while at < agenda.len() {
            let (state, debt) = agenda[at];
            let node = at as u32;
            at += 1;
            let mut leads_to = |to: Lexeme, agenda: &mut Vec<Lexeme>| match set_of.get(&to) {
                Some(&set) => known.push((node, set)),
                None => {
                    let to = *nodes.entry(to).or_insert_with(|| {
                        agenda.push(to);
                        agenda.len() as u32 - 1
                    });
                    graph.same.push((node, to));
                }
            };
            if state == START {
                ends.push((node, end));
                ends.extend(self.specials.iter().map(|terminal| (node, terminal)));
            }
            debts.moves(union, state, debt, &mut moves, work)?;
            for &(next, after) in &moves {
                let goes_on = !union.live(next).is_empty();
                if goes_on {
                    leads_to((next, after), &mut agenda);
                }
                if union.accepts(next).is_empty() {
                    continue;
                }
                let labels =
                    labels[next as usize].get_or_insert_with(|| lexicon.labels(next, |_| true).into());
                let used = labels.iter().filter(|&&label| lexicon.used.contains(label));
                ends.extend(used.map(|&label| (node, label)));
                if labels.iter().any(|&label| lexicon.ignored.contains(label)) {
                    let owed = if goes_on { debts.join(union, after, next) } else { after };
                    leads_to((START, owed), &mut agenda);
                }
            }
            if set_of.len() + agenda.len() > self.most_lexemes {
                return Ok(None);
            }
        }
        graph.n_nodes = agenda.len();
        graph.tidy();
        let found = graph.propagate_among(end + 1, ends.into_iter(), &known, pool, work)?;
        let Some(found) = found else { return Ok(None) };
        set_of.extend(agenda.into_iter().zip(found.iter().copied()));
        Ok(found.first().copied())
    }
}

/// Shortest words of terminals, by byte class.
struct Words {
    /// Of terminals that rules name.
    used: Vec<(usize, Vec<usize>)>,
    /// Of ignored terminals, each with the state of the union behind it.
    ignored: Vec<(Vec<usize>, State)>,
}

impl Words {
    fn new(lexicon: &Lexicon, work: &mut Work) -> Result<Self, Stopped> {
        let union = &lexicon.union;
        let mut this = Self { used: Vec::new(), ignored: Vec::new() };
        let mut is_found = BitSet::new(lexicon.n_terminals());
        // Where a state was reached from, and by which class.
        let mut from: Vec<Option<(State, usize)>> = vec![None; union.n_states()];
        let mut queue = VecDeque::from([START]);
        while let Some(state) = queue.pop_front() {
            work.spend(union.n_classes())?;
            for class in 0..union.n_classes() {
                let next = union.step(state, class);
                let is_new = from[next as usize].is_none();
                if next == DEAD || !is_new && state != START {
                    continue;
                }
                let word = || {
                    let steps = std::iter::successors(from[state as usize], |step| from[step.0 as usize]);
                    let mut word: Vec<usize> = [class].into_iter().chain(steps.map(|step| step.1)).collect();
                    word.reverse();
                    word
                };
                // All that are single bytes are words: only a new line ends some comments.
                for label in lexicon.labels(next, |_| true) {
                    if state != START && is_found.contains(label) {
                        continue;
                    }
                    is_found.insert(label);
                    if lexicon.ignored.contains(label) {
                        this.ignored.push((word(), next));
                    }
                    if lexicon.used.contains(label) {
                        this.used.push((label, word()));
                    }
                }
                if is_new {
                    from[next as usize] = Some((state, class));
                    queue.push_back(next);
                }
            }
        }
        Ok(this)
    }

    /// Leaves the terminals of which the word can be read from a boundary that owes `debt`, perhaps after an
    /// ignored one.
    fn retain(
        &self,
        lexicon: &Lexicon,
        terminals: &mut BitSet,
        debt: &[State],
        debts: &mut Debts,
        work: &mut Work,
    ) -> Result<(), Stopped> {
        let union = &lexicon.union;
        let mut starts = vec![debts.intern(debt)];
        for (word, state) in &self.ignored {
            if let Some(after) = debts.read(union, starts[0], word, work)? {
                let goes_on = !union.live(*state).is_empty();
                starts.push(if goes_on { debts.join(union, after, *state) } else { after });
            }
        }
        let mut left = BitSet::new(terminals.len());
        for (terminal, word) in &self.used {
            if !terminals.contains(*terminal) || left.contains(*terminal) {
                continue;
            }
            for &start in &starts {
                if debts.read(union, start, word, work)?.is_some() {
                    left.insert(*terminal);
                    break;
                }
            }
        }
        *terminals = left;
        Ok(())
    }
}

/// Debts of which one bounds what a boundary owes, whatever was read; see the module.
fn bounds(union: &Union, work: &mut Work) -> Result<Vec<Box<[State]>>, Stopped> {
    let (n_states, n_classes) = (union.n_states() as State, union.n_classes());
    let goes_on = |state: State| !union.live(state).is_empty();
    let accepts = |state: State| !union.accepts(state).is_empty();
    work.spend(n_states as usize * n_classes)?;
    // By the class of the last byte, the states that the last piece may owe.
    let mut own: Vec<BTreeSet<Option<State>>> = vec![BTreeSet::new(); n_classes];
    for state in START..n_states {
        for (class, own) in own.iter_mut().enumerate() {
            let next = union.step(state, class);
            if accepts(next) {
                own.insert(goes_on(next).then(|| union.blind(next)));
            }
        }
    }
    // By the class of the last byte, the states that earlier pieces may owe.
    let mut earlier: Vec<BTreeSet<State>> = vec![BTreeSet::new(); n_classes];
    let mut seen: FxHashSet<State> = own.iter().flatten().copied().flatten().collect();
    let mut agenda: Vec<State> = seen.iter().copied().collect();
    while let Some(state) = agenda.pop() {
        work.spend(n_classes)?;
        for (class, earlier) in earlier.iter_mut().enumerate() {
            let next = union.step(state, class);
            if goes_on(next) && !accepts(next) {
                let next = union.blind(next);
                earlier.insert(next);
                if seen.insert(next) {
                    agenda.push(next);
                }
            }
        }
    }
    let mut all: BTreeSet<Vec<State>> = BTreeSet::new();
    for (own, earlier) in own.iter().zip(&earlier) {
        // Whoever owes something can do no more than who owes nothing.
        for state in own.iter().filter(|state| state.is_some() || own.len() == 1) {
            let mut debt = earlier.clone();
            debt.extend(*state);
            all.insert(debt.into_iter().collect());
        }
    }
    Ok(all.into_iter().map(Vec::into_boxed_slice).collect())
}

#[cfg(test)]
mod tests {
    use anygram_bits::Random;
    use anygram_grammar::ir::{LexerMode, Ties};
    use anygram_grammar::lark::{self, LarkOptions};

    use super::*;
    use crate::boundary::Explored;
    use crate::lexicon::Patterns;

    /// The same of all lexemes that can arise, whether they are asked for or explored. Whether it was
    /// possible to ask.
    fn compare(source: &str, mode: LexerMode) -> bool {
        let (limits, work) = (LexerLimits::default(), &mut Work::unbounded());
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        let patterns = Patterns::new(&grammar, &limits, work).unwrap();
        let cfg = Cfg::reduce(&grammar, &patterns.empty()).unwrap();
        let lexicon = Lexicon::new(&grammar, &cfg, &patterns, mode, Ties::All, &limits, work).unwrap();
        let specials = BitSet::new(grammar.terminals.len());
        let explored = Explored::new(&lexicon, &cfg, &specials, &limits, work).unwrap().unwrap();
        let Some(asked) = Asked::new(&lexicon, &cfg, &specials, &limits, work).unwrap() else { return false };
        assert!(explored.is_independent(), "{source}");
        let mut lexemes: Vec<_> = explored.nodes.iter().collect();
        // From the end, so that what others lead to is not always there.
        lexemes.sort_by_key(|&(_, &node)| std::cmp::Reverse(node));
        for (&(state, debt), &node) in lexemes {
            let found = asked.find_node(&lexicon, state, explored.debt(debt)).unwrap().unwrap();
            assert_eq!(asked.finish(found), explored.finish(node as usize), "{source}\n{state} {debt:?}");
        }
        true
    }

    #[test]
    fn the_same_as_explored() {
        const TERMINALS: [&str; 12] = [
            "/[a-z]+/",
            "\"if\"",
            "/[0-9]+(\\.[0-9]+)?/",
            "/'([^']|'')*'/",
            "\"<\"",
            "\"<<=\"",
            "/\\/\\*.*?\\*\\//",
            "\"/\"",
            "/[^ ;]+/",
            "/;+/",
            "/#[a-z]*;/",
            "\".\"",
        ];
        let mut random = Random::new(1);
        let mut n_asked = 0;
        for _ in 0..300 {
            let some: Vec<&str> = TERMINALS.into_iter().filter(|_| random.below(3) == 0).collect();
            if some.is_empty() {
                continue;
            }
            let mut source = String::from("start: item*\nitem: ");
            let names: Vec<String> = (0..some.len()).map(|at| format!("T{at}")).collect();
            source += &names.join(" | ");
            for (name, pattern) in names.iter().zip(&some) {
                source += &format!("\n{name}: {pattern}");
            }
            source += ["\n%ignore / +/", "\n%ignore \" \"", ""][random.below(3)];
            source += ["\n%ignore /\\/\\/[^\\n]*/", "", ""][random.below(3)];
            for mode in [LexerMode::Longest, LexerMode::Contextual] {
                n_asked += usize::from(compare(&source, mode));
            }
        }
        assert!(n_asked > 100, "{n_asked}");
    }

    #[test]
    fn a_boundary_that_cannot_arise_is_none() {
        let (limits, work) = (LexerLimits::default(), &mut Work::unbounded());
        let source = "start: (A | B)*\nA: /[a-z]+/\nB: /[0-9]+/\n%ignore / +/";
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        let lexing = crate::transducer::Lexing::new(&grammar, LexerMode::Contextual, Ties::All, limits, work);
        let lexing = lexing.unwrap();
        let (lexicon, boundaries) = (&lexing.lexicon, lexing.boundaries().unwrap());
        let run = |byte| lexicon.union.step(START, lexicon.union.class(byte));
        let find = |debt: &[State]| boundaries.find_node(lexicon, START, debt.iter().copied()).unwrap();
        assert!(find(&[]).is_some() && find(&[run(b'a')]).is_some() && find(&[run(b'0')]).is_some());
        // No text ends both.
        assert_eq!(find(&[run(b'a'), run(b'0')]), None);
        assert_eq!(find(&[run(b'a'), run(b'0')]), None);
    }

    #[test]
    fn too_many_lexemes_are_an_error() {
        let grammar = lark::parse("start: A*\nA: /[a-z]+x/\n%ignore / +/", &LarkOptions::default()).unwrap();
        let find = |lexemes| {
            let limits = LexerLimits { lexemes, ..LexerLimits::default() };
            let work = &mut Work::unbounded();
            let lexing =
                crate::transducer::Lexing::new(&grammar, LexerMode::Longest, Ties::All, limits, work)
                    .unwrap();
            let found = lexing.boundaries().unwrap().find_node(&lexing.lexicon, START, std::iter::empty());
            (found.map(|node| node.is_some()), lexing.explored(work).unwrap().is_some())
        };
        assert_eq!(find(1), (Err(LexerError::TooManyLexemes { limit: 1 }), false));
        assert_eq!(find(1_000), (Ok(true), true));
    }
}
