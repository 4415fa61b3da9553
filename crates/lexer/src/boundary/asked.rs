//! Lexemes, looked at when somebody asks for them, where lexing is independent of parsing for sure.
//!
//! What can follow a boundary is the less, the more it owes. So boundaries are not explored, but bounded:
//! the last piece has ended in some state by some byte, and owes at most that one state. Earlier pieces owe
//! states that the same byte led to from states in which a piece can end and yet go on, or from such states
//! in turn, and none of which accepts (else the debt would have been broken). The terminals of which a
//! shortest word can be read from all of these bounds, which are few, are common to all boundaries. If they
//! suffice, lexing is independent, and all that is asked of a lexeme is what it can become. That is found
//! along its moves, and kept for all lexemes that were met on the way. Cost: the bytes of these words for
//! each bound, and then mostly once the moves of each lexeme.
//!
//! One question looks at no more lexemes than [`LexerLimits::lexemes`], and so many are kept from one
//! question to the next; when there are more, all are forgotten. Of a lexeme that can become too many others
//! it is *not known* what it can become. In `contextual` that is an answer, for there it is only asked what
//! is enough; in `longest` it is an error, which fresh tables would not avoid.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, PoisonError, RwLock};

use anygram_bits::work::{Stopped, Work};
use anygram_bits::{BitSet, CompactSet};
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::LexerMode;
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

/// Steps of one question for as many lexemes as are allowed: bytes, each with a few states that are owed.
const STEPS_PER_LEXEME: u64 = 1_000;

/// A lexeme in progress: the state of the union, and the debt of earlier pieces.
type Lexeme = (State, DebtId);

/// The number of the set of what a lexeme can become; `None` if that is too much to find.
type Found = Option<u32>;

/// See the module.
#[derive(Debug)]
pub(super) struct Asked {
    specials: BitSet,
    /// Debts, in ascending order, of which one bounds what a boundary owes.
    bounds: Vec<Box<[State]>>,
    /// Of each terminal the bytes of a word of it that can be read from all of these.
    bytes: Vec<Option<u32>>,
    sets: Arc<boxcar::Vec<CompactSet>>,
    lexemes: RwLock<Lexemes>,
    most_lexemes: usize,
}

/// What is known so far.
#[derive(Debug)]
struct Lexemes {
    debts: Debts,
    set_of: FxHashMap<Lexeme, Found>,
    /// Debts that no bound covers.
    uncovered: FxHashSet<DebtId>,
    /// Stays when the others are forgotten: who has the number of a set can look at it without a lock.
    pool: Pool,
    labels: Vec<Option<Arc<[usize]>>>,
}

impl Lexemes {
    /// Forgets what can be found again if that is more than may be kept.
    fn make_room(&mut self, most: usize) {
        if self.set_of.len().max(self.debts.len()) > most {
            self.debts = Debts::new();
            self.set_of = FxHashMap::default();
            self.uncovered = FxHashSet::default();
        }
    }
}

impl Asked {
    /// Bounds what boundaries owe; `None` if lexing is not independent even so, or if it is too much to find
    /// what a text can begin with.
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
            bytes: Vec::new(),
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
        let lexemes = this.lexemes.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A token counts as a byte.
        this.bytes = (0..lexicon.n_terminals()).map(|at| lexicon.used.contains(at).then_some(1)).collect();
        let mut common = lexicon.used.clone();
        let words = Words::new(lexicon, work)?;
        for bound in &this.bounds {
            words.read_from(lexicon, bound, &mut this.bytes, &mut lexemes.debts, work)?;
            let n_before = common.count();
            common = BitSet::from_members(common.len(), common.iter().filter(|&at| this.bytes[at].is_some()));
            if common.count() < n_before && !suffices(cfg, &common) {
                return Ok(None);
            }
        }
        if !suffices(cfg, &common) {
            return Ok(None);
        }
        // Every text begins here, so this is a part of compiling.
        let first = (START, lexemes.debts.intern(&[]));
        let most = this.most_lexemes;
        let found = lexemes.explore(lexicon, &this.specials, first, most, work)?;
        Ok(found.is_some().then_some(this))
    }

    /// The terminals that are tokens.
    pub fn specials(&self) -> &BitSet {
        &self.specials
    }

    /// A number of a lexeme, by which it is known what it can become; `None` if it is a boundary that cannot
    /// arise if all terminals compete, and in `contextual` too if it is too much to find.
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
                if let Some(&found) = lexemes.set_of.get(&(state, debt)) {
                    return self.answer(lexicon, found);
                }
            }
        }
        let lexemes = &mut *self.lexemes.write().unwrap_or_else(PoisonError::into_inner);
        lexemes.make_room(self.most_lexemes);
        let id = lexemes.debts.intern(debt);
        // After a byte that breaks nothing any debt is one that some bound covers.
        if state == START && !self.is_covered(debt) {
            lexemes.uncovered.insert(id);
            return Ok(None);
        }
        let mut work = Work::new(STEPS_PER_LEXEME.saturating_mul(self.most_lexemes as u64), "lexemes");
        let found = lexemes.explore(lexicon, &self.specials, (state, id), self.most_lexemes, &mut work);
        let found = found.unwrap_or_else(|_| {
            lexemes.set_of.insert((state, id), None);
            None
        });
        self.answer(lexicon, found)
    }

    fn answer(&self, lexicon: &Lexicon, found: Found) -> Result<Option<usize>, LexerError> {
        match found {
            Some(set) => Ok(Some(set as usize)),
            None if lexicon.mode == LexerMode::Contextual => Ok(None),
            None => Err(LexerError::TooMuchCanFollow { limit: self.most_lexemes }),
        }
    }

    /// What a lexeme can become, by the number that [`Asked::find_node`] gave.
    pub fn finish(&self, node: usize) -> &CompactSet {
        &self.sets[node]
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let lexemes = self.lexemes.read().unwrap_or_else(PoisonError::into_inner);
        let sets = self.sets.iter().map(|(_, set)| set.memory_usage() + size_of::<CompactSet>());
        let labels = lexemes.labels.iter().flatten().map(|labels| size_of_val(&**labels));
        2 * sets.sum::<usize>()
            + 2 * lexemes.set_of.len() * size_of::<(Lexeme, Found)>()
            + 2 * lexemes.uncovered.len() * size_of::<DebtId>()
            + lexemes.debts.memory_usage()
            + size_of_val(&*lexemes.labels)
            + size_of_val(&*self.bytes)
            + labels.sum::<usize>()
            + self.bounds.iter().map(|bound| size_of_val(&**bound)).sum::<usize>()
    }

    /// Of each terminal a number of bytes that suffices to spell it from every boundary that is
    /// [covered](Asked::is_covered), after an ignored piece if need be; `None` if none is known.
    pub fn bytes_from_everywhere(&self) -> &[Option<u32>] {
        &self.bytes
    }

    /// Whether a bound covers what a boundary owes. It does if the boundary can arise, if all compete; and of
    /// a covered one those are covered that pieces lead to.
    pub fn is_covered(&self, debt: &[State]) -> bool {
        let covers = |bound: &[State]| debt.iter().all(|state| bound.binary_search(state).is_ok());
        debt.is_empty() || self.bounds.iter().any(|bound| covers(bound))
    }
}

impl Lexemes {
    /// Looks at a lexeme and all others that it can become, but at no more than `most`.
    fn explore(
        &mut self,
        lexicon: &Lexicon,
        specials: &BitSet,
        from: Lexeme,
        most: usize,
        work: &mut Work,
    ) -> Result<Found, Stopped> {
        let Self { debts, set_of, pool, labels, .. } = self;
        if let Some(&known) = set_of.get(&from) {
            return Ok(known);
        }
        let (union, end) = (&lexicon.union, lexicon.n_terminals());
        let mut agenda = vec![from];
        let mut nodes: FxHashMap<Lexeme, u32> = FxHashMap::from_iter([(from, 0)]);
        let mut graph = Graph::default();
        let (mut ends, mut known, mut unknown, mut moves) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let n_debts = debts.len();
        let mut at = 0;
        while at < agenda.len() && agenda.len().max(debts.len() - n_debts) <= most {
            let (state, debt) = agenda[at];
            let node = at as u32;
            at += 1;
            let mut leads_to = |to: Lexeme, agenda: &mut Vec<Lexeme>| match set_of.get(&to) {
                Some(&Some(set)) => known.push((node, set)),
                Some(None) => unknown.push(node),
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
                ends.extend(specials.iter().map(|terminal| (node, terminal)));
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
                    labels[next as usize].get_or_insert_with(|| (&*lexicon.labels(next, |_| true)).into());
                let used = labels.iter().filter(|&&label| lexicon.used.contains(label));
                ends.extend(used.map(|&label| (node, label)));
                if labels.iter().any(|&label| lexicon.ignored.contains(label)) {
                    let owed = if goes_on { debts.join(union, after, next) } else { after };
                    leads_to((START, owed), &mut agenda);
                }
            }
        }
        graph.n_nodes = agenda.len();
        graph.tidy();
        let found = graph.propagate_among(end + 1, ends.into_iter(), &known, pool, work)?;
        unknown.extend(at as u32..agenda.len() as u32);
        let is_unknown = graph.leads_to(unknown);
        // Those that nobody looked at may be known when they are asked for.
        agenda.truncate(at);
        set_of.extend(agenda.into_iter().enumerate().map(|(node, lexeme)| {
            let set = found.as_ref().map(|sets| sets[node]);
            (lexeme, set.filter(|_| !is_unknown[node]))
        }));
        Ok(set_of.get(&from).copied().flatten())
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

    /// Leaves of each terminal the bytes of a word that can be read from a boundary that owes `debt`, perhaps
    /// after an ignored one, if that takes more bytes than what is there; nothing if there is no such word.
    fn read_from(
        &self,
        lexicon: &Lexicon,
        debt: &[State],
        bytes: &mut [Option<u32>],
        debts: &mut Debts,
        work: &mut Work,
    ) -> Result<(), Stopped> {
        let union = &lexicon.union;
        let mut starts = vec![(debts.intern(debt), 0)];
        for (word, state) in &self.ignored {
            if let Some(after) = debts.read(union, starts[0].0, word, work)? {
                let goes_on = !union.live(*state).is_empty();
                let after = if goes_on { debts.join(union, after, *state) } else { after };
                starts.push((after, word.len() as u32));
            }
        }
        let mut fewest: Vec<Option<u32>> = vec![None; bytes.len()];
        for (terminal, word) in &self.used {
            let fewest = &mut fewest[*terminal];
            for &(start, before) in &starts {
                let n = before + word.len() as u32;
                if bytes[*terminal].is_some()
                    && fewest.is_none_or(|fewest| n < fewest)
                    && debts.read(union, start, word, work)?.is_some()
                {
                    *fewest = Some(n);
                }
            }
        }
        for (bytes, fewest) in bytes.iter_mut().zip(fewest) {
            *bytes = bytes.zip(fewest).map(|(bytes, fewest)| bytes.max(fewest));
        }
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
    use anygram_grammar::ir::Ties;
    use anygram_grammar::lark::{self, LarkOptions};

    use super::*;
    use crate::boundary::Explored;
    use crate::lexicon::Patterns;

    /// The same of all lexemes that can arise, whether they are asked for or explored. Whether it was
    /// possible to ask, and with few lexemes allowed of how many it was known and of how many not.
    fn compare(source: &str, mode: LexerMode) -> (bool, [usize; 2]) {
        let (limits, work) = (LexerLimits::default(), &mut Work::unbounded());
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        let patterns = Patterns::new(&grammar, &limits, work).unwrap();
        let cfg = Cfg::reduce(&grammar, &patterns.empty()).unwrap();
        let lexicon = Lexicon::new(&grammar, &cfg, &patterns, mode, Ties::All, &limits, work).unwrap();
        let specials = BitSet::new(grammar.terminals.len());
        let explored = Explored::new(&lexicon, &cfg, &specials, &limits, work).unwrap().unwrap();
        let ask = |lexemes| {
            let limits = LexerLimits { lexemes, ..limits };
            Asked::new(&lexicon, &cfg, &specials, &limits, &mut Work::unbounded()).unwrap()
        };
        let Some(asked) = ask(limits.lexemes) else { return (false, [0; 2]) };
        assert!(explored.is_independent(), "{source}");
        for (said, fewest) in
            asked.bytes_from_everywhere().iter().zip(explored.bytes_from_everywhere(work).unwrap())
        {
            assert!(said.is_none_or(|said| fewest.is_some_and(|fewest| fewest <= said)), "{source}");
        }
        assert!(explored.classes().all(|(debt, _)| asked.is_covered(explored.debt(debt))), "{source}");
        let mut lexemes: Vec<_> = explored.nodes.iter().collect();
        // From the end, so that what others lead to is not always there.
        lexemes.sort_by_key(|&(_, &node)| std::cmp::Reverse(node));
        for &(&(state, debt), &node) in &lexemes {
            let found = asked.find_node(&lexicon, state, explored.debt(debt)).unwrap().unwrap();
            assert_eq!(asked.finish(found), explored.finish(node as usize), "{source}\n{state} {debt:?}");
        }
        let mut counts = [0; 2];
        for few in [lexemes.len() / 4, lexemes.len() / 2] {
            let Some(asked) = ask(few) else { continue };
            for &(&(state, debt), &node) in &lexemes {
                let found = asked.find_node(&lexicon, state, explored.debt(debt));
                counts[usize::from(!matches!(found, Ok(Some(_))))] += 1;
                match (found, mode) {
                    (Ok(Some(found)), _) => assert_eq!(asked.finish(found), explored.finish(node as usize)),
                    (Ok(None), mode) => assert_eq!(mode, LexerMode::Contextual),
                    (Err(error), mode) => {
                        assert_eq!(mode, LexerMode::Longest);
                        assert_eq!(error, LexerError::TooMuchCanFollow { limit: few });
                    }
                }
            }
        }
        (true, counts)
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
        let (mut n_asked, mut n_few) = (0, [0; 2]);
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
                let (was_asked, counts) = compare(&source, mode);
                n_asked += usize::from(was_asked);
                n_few = [n_few[0] + counts[0], n_few[1] + counts[1]];
            }
        }
        assert!(n_asked > 100 && n_few.iter().all(|&n| n > 100), "{n_asked} {n_few:?}");
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
    fn what_is_too_much_to_find_is_not_known_of_that_lexeme_only() {
        // After `<`, which need not be all of a tag, the tag is owed for as long as it is begun.
        let source = r#"
            start: item*
            item: LESS | TAG | NAME | X | Y
            LESS: "<"
            TAG: /<[a-z]{40}>/
            NAME: /[a-z]+/
            X: /[a-z]*x[a-z]*/
            Y: /[a-z]*y[a-z]*/
        "#;
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        let new = |lexemes, mode| {
            let (limits, work) = (LexerLimits { lexemes, ..LexerLimits::default() }, &mut Work::unbounded());
            crate::transducer::Lexing::new(&grammar, mode, Ties::All, limits, work)
        };
        for (mode, unknown) in [
            (LexerMode::Contextual, Ok(false)),
            (LexerMode::Longest, Err(LexerError::TooMuchCanFollow { limit: 60 })),
        ] {
            let lexing = new(60, mode).unwrap();
            let (union, boundaries) = (&lexing.lexicon.union, lexing.boundaries().unwrap());
            assert!(lexing.explored(&mut Work::unbounded()).unwrap().is_none());
            let run =
                |text: &str| text.bytes().fold(START, |state, byte| union.step(state, union.class(byte)));
            let find = |state, debt: &[State]| {
                let found = boundaries.find_node(&lexing.lexicon, state, debt.iter().copied());
                found.map(|node| node.is_some())
            };
            for _ in 0..2 {
                assert_eq!(find(START, &[]), Ok(true));
                assert_eq!(find(START, &[run("<")]), unknown);
                assert_eq!(find(run("ab"), &[run(&format!("<{}", "a".repeat(38)))]), Ok(true));
            }
        }
        assert!(new(1, LexerMode::Contextual).unwrap().boundaries().is_none());
        let error = LexerError::TooMuchCanFollow { limit: 1 };
        assert_eq!(new(1, LexerMode::Longest).err(), Some(error.into()));
    }
}
