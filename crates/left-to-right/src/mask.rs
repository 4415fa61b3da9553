//! Token masks: the tokens after which a frontier is still viable.
//!
//! What a token does to a lexeme in progress, as long as the piece goes on, depends on nothing else. So for
//! each lexeme the trie of tokens is walked once and the result kept: the tokens that merely prolong the
//! piece, and, for each way in which the piece can end inside a token, what is left of those tokens, as a
//! trie of its own. The trie itself is walked once for each state of the lexer, whatever is wanted of the
//! piece (a *sweep*); what different parser states want only picks among the groups of tokens that this
//! finds. Words differ but what is left of them after a word does not (`foo(`, `bar(`), so these tries are
//! small; they are walked in the same way from the boundary that the parser comes to, and those walks are
//! kept too. A mask is then a few steps of the parser and unions of token sets. Cost when all walks are
//! known: the ends of pieces that are followed × words of a mask.
//!
//! In `scannerless` all pieces that end at one byte have to meet in one parser state, so there the trie is
//! walked with the whole frontier, and the kept walks only say what need not be visited. Cost: nodes visited
//! × readings. Where a grammar promises that few cuts survive the next byte
//! ([`delimited`](anygram_grammar::ir::Grammar::delimited)), ends are followed one by one there too.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anygram_bits::{BitSet, Fingerprint};
use anygram_lexer::dfa::DEAD;
use anygram_lexer::transducer::{CutId, LexemeId, Place, Prospect};
use anygram_lexer::union::{State, Union};
use anygram_vocab::{NodeId, TokenTrie, Vocabulary};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::beside::{Base, Beside, Pairs};
use crate::collected::Collected;
use crate::common::{Commons, Telling};
use crate::follow::Followed;
use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};
use crate::memo::Memo;
use crate::rests::Rests;
use crate::shared::{Begun, End, Key, SharedWalk, SharedWalks};
use crate::sweep::{PlaceTables, Stop, Sweeper};
use crate::tokens::{Tokens, get_bit, set_bit};

pub use crate::rests::Rest;
pub use crate::sweep::{Group, Sweep};

/// Nodes of a trie that are looked at from a place for the sake of single lexemes; beyond, all are looked at,
/// for all lexemes at the place. A smaller trie is walked whole at once.
const MANY_NODES: usize = 10_000;

/// The same where many lexemes at a place are asked about. A sweep of more is one beside which others are
/// walked.
const FEW_NODES: usize = 1_000;

/// What starts of sweeps are told apart by that are not walked beside each other: whether places are told
/// apart by how much may follow, and the automata that are alive, by number, or [`where_most_bytes_lead`].
type Start = (bool, SmallVec<[u32; 4]>);

/// The state that most bytes lead to, of those that lead anywhere, and whether a piece begins: a name that
/// may still become one keyword differs little from one that may become another.
fn where_most_bytes_lead(union: &Union, state: State) -> SmallVec<[u32; 4]> {
    let next = (0..=u8::MAX).map(|byte| union.step(state, union.class(byte)));
    let mut next: Vec<State> = next.filter(|&next| next != DEAD).collect();
    next.sort_unstable();
    let most = next.chunk_by(|a, b| a == b).max_by_key(|same| same.len());
    SmallVec::from_slice(&[u32::from(union.is_start(state)), most.map_or(state, |same| same[0])])
}

/// A walk: a [`Sweep`] restricted to one set of wanted terminals.
pub(crate) struct Walk {
    /// The tokens after which the piece is in progress and can be completed: sets whose rows are the sweep's,
    /// and a list.
    pub stay: Arc<[Arc<Tokens>]>,
    /// The tokens after which it is in progress as a lexeme of unknown prospect, by lexeme.
    pub unknown: Vec<(LexemeId, Arc<Tokens>)>,
    /// The ways in which the piece can end, as far as not all tokens concerned are among `stay`.
    pub exits: Vec<Exit>,
    /// Bytes on the heap that are counted with it.
    own_bytes: usize,
}

/// A way in which a piece can end inside tokens or with them.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    pub cut: CutId,
    /// The tokens that end here.
    pub ends: Option<Arc<Tokens>>,
    /// What is left of the others.
    pub rest: Option<Arc<Rest>>,
}

impl Exit {
    /// Whether a mask has all tokens that are concerned.
    pub fn is_in(&self, words: &[u32]) -> bool {
        self.ends.as_ref().is_none_or(|ends| ends.is_subset(words))
            && self.rest.as_ref().is_none_or(|rest| rest.tokens.is_subset(words))
    }
}

/// The walks that are kept, bounded in bytes: when full, all are dropped.
#[derive(Default)]
pub struct Walks {
    walks: FxHashMap<(LexemeId, u64), Arc<Walk>>,
    sweeps: FxHashMap<(Place, u64), Arc<Sweep>>,
    /// The nodes of a trie that were looked at from a place for the sake of single lexemes.
    narrow: FxHashMap<(Place, u64), usize>,
    /// Where bytes lead from the places that sweeps have come to.
    places: PlaceTables,
    /// The last sweep for which much of a trie was walked, by the trie and what its start is like.
    bases: FxHashMap<(u64, Start), Base>,
    /// By state what it is like.
    starts: FxHashMap<State, Start>,
    /// Those of the vocabulary: what is left of its tokens does not depend on the language.
    rests: Arc<Rests>,
    bytes: usize,
    /// Whether the ends of pieces are followed one by one in `scannerless` too.
    apart: bool,
    /// What the vocabulary knows of automata in common use.
    commons: Option<Arc<Commons>>,
    /// The walks that its languages share, those of them that are in use here, and what they depend on.
    shared: Option<Arc<SharedWalks>>,
    taken: Vec<Arc<SharedWalk>>,
    /// By lexeme and the most bytes that follow.
    fingerprints: FxHashMap<(LexemeId, usize), Option<Fingerprint>>,
    begun: Begun,
    n_seen: u64,
    /// Scratch: a row, all zero between uses.
    pub(crate) row: Vec<u32>,
}

/// Adds the bits of all byte tokens that leave the frontier viable to `words`, which are empty.
pub fn add_tokens(
    stepper: &mut Stepper,
    language: &Language,
    trie: &TokenTrie,
    frontier: &[Config],
    walks: &mut Walks,
    words: &mut [u32],
) -> Result<(), StepError> {
    let memo = &mut Memo::default();
    make((stepper, language), trie, frontier, (walks, memo), words, |_, _| Ok(()))
}

/// The same, and then what `more` adds, for a mask that the memo was asked for. Keeps it there, if it can be
/// kept.
pub(crate) fn make(
    (stepper, language): (&mut Stepper, &Language),
    trie: &TokenTrie,
    frontier: &[Config],
    (walks, memo): (&mut Walks, &mut Memo),
    words: &mut [u32],
    more: impl FnOnce(&mut Stepper, &mut Collected<'_>) -> Result<(), StepError>,
) -> Result<(), StepError> {
    let together = language.lexing().merges_ends();
    let mut found = Collected::new(words);
    if together {
        for &Config { lexeme, .. } in frontier {
            let walk = walks.get(stepper, language, (0, trie), lexeme, found.words().len())?;
            walk.stay.iter().for_each(|tokens| found.add(tokens));
        }
    }
    let mut followed = Followed::new((stepper, language), (walks, memo), found);
    let result = match together {
        true => Ok(()),
        false => followed.add(trie, frontier),
    };
    let result = result.and_then(|()| {
        followed.end(frontier, |stepper, found| {
            if together {
                follow_together(stepper, language, trie, frontier, found.row(), |stepper, readings| {
                    stepper.is_viable_behind_token(language, readings)
                })?;
            }
            more(stepper, found)
        })
    });
    stepper.end_trace();
    result
}

/// Adds the tokens whose readings are admitted, in `scannerless`, where the pieces of a token that end at one
/// byte meet in one parser state: walks the trie with all readings at once, but for subtrees of which all
/// tokens are there already.
pub(crate) fn follow_together<Q: AsMut<Stepper>>(
    question: &mut Q,
    language: &Language,
    trie: &TokenTrie,
    frontier: &[Config],
    words: &mut [u32],
    mut admits: impl FnMut(&mut Q, &[Config]) -> Result<bool, StepError>,
) -> Result<(), StepError> {
    let is_admitted = |&place: &usize| get_bit(words, trie.order()[place].index());
    let mut admitted = BitSet::from_members(trie.n_tokens(), (0..trie.n_tokens()).filter(is_admitted));
    // The readings at all open nodes, those of the innermost last.
    let mut configs: Frontier = frontier.to_vec();
    let mut found = Frontier::new();
    trie.descend(trie.below_root(), 0..frontier.len(), |before: &Range<usize>, at| {
        let node = trie.node(at);
        if admitted.first_absent(node.lo, node.hi).is_none() {
            return Ok(None);
        }
        configs.truncate(before.end);
        question.as_mut().step(language, &configs[before.clone()], node.byte, &mut found)?;
        if found.is_empty() {
            return Ok(None);
        }
        if node.lo < node.own_hi && !admitted.contains(node.lo) && admits(question, &found)? {
            admitted.insert_range(node.lo, node.own_hi);
            trie.tokens_at(at).iter().for_each(|token| set_bit(words, token.index()));
        }
        configs.extend_from_slice(&found);
        Ok(Some(before.end..configs.len()))
    })
}

impl Walks {
    /// None yet, beside what is kept with a vocabulary.
    pub(crate) fn of(vocabulary: &Vocabulary) -> Self {
        let (commons, shared) = (Some(vocabulary.beside()), Some(vocabulary.beside()));
        Self { commons, shared, rests: vocabulary.beside(), ..Self::default() }
    }

    /// The same of readings that are followed one by one in every mode, as a canvas follows them.
    pub fn apart(vocabulary: &Vocabulary) -> Self {
        Self { apart: true, shared: None, ..Self::of(vocabulary) }
    }

    /// Bytes on the heap.
    pub fn memory_usage(&self) -> usize {
        self.bytes + self.places.memory_usage()
    }

    /// The nodes of tries that were looked at so far.
    pub fn n_seen(&self) -> u64 {
        self.n_seen
    }

    pub(crate) fn get(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (id, trie): (u64, &TokenTrie),
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Arc<Walk>, StepError> {
        if let Some(walk) = self.walks.get(&(lexeme, id)) {
            return Ok(walk.clone());
        }
        let key = self.shared_key(stepper, language, (id, trie), lexeme);
        let known = match key {
            Some(key) => self.take_over(stepper, language, key, (lexeme, trie))?,
            None => None,
        };
        let walk = match known {
            Some(walk) => walk,
            None => {
                let sweep = self.sweep(stepper, language, (id, trie), lexeme, n_words)?;
                self.see(stepper, language, (id, trie), &sweep, (lexeme, key), n_words)?
            }
        };
        let walk = Arc::new(walk);
        self.make_room(language, walk.own_bytes);
        self.walks.insert((lexeme, id), walk.clone());
        Ok(walk)
    }

    /// What a walk is shared by, if it can be: it is one of a vocabulary's trie or of what is left of its
    /// tokens, and nothing depends on how the tokens lie.
    fn shared_key(
        &mut self,
        stepper: &Stepper,
        language: &Language,
        (id, trie): (u64, &TokenTrie),
        lexeme: LexemeId,
    ) -> Option<Key> {
        let lexing = language.lexing();
        if self.shared.is_none() || lexing.merges_ends() || lexing.counts_tokens() {
            return None;
        }
        // Up to a power of two, so that it is asked for few times; more bytes tell no less apart.
        let bytes = trie.height().checked_next_power_of_two().unwrap_or(usize::MAX);
        let print = *self.fingerprints.entry((lexeme, bytes)).or_insert_with(|| {
            self.bytes += size_of::<(LexemeId, usize, Option<Fingerprint>)>() + 16;
            stepper.transducer().fingerprint(lexing, lexeme, bytes)
        });
        Some((print?, id))
    }

    /// The walk of a lexeme, if another language or another place has the same.
    fn take_over(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        key: Key,
        (lexeme, trie): (LexemeId, &TokenTrie),
    ) -> Result<Option<Walk>, StepError> {
        let (lexing, Some(shared)) = (language.lexing(), &self.shared) else { return Ok(None) };
        let Some(known) = shared.get(key, lexing, &mut self.begun) else { return Ok(None) };
        stepper.spend(1 + known.ends.len())?;
        let transducer = stepper.transducer_mut();
        let mut exits = Vec::with_capacity(known.ends.len());
        for end in &known.ends {
            let place = shared.place(end, (lexing, &mut *transducer), lexeme, (key.1, trie))?;
            let cut = match place {
                Some(place) => transducer.step_to(lexing, lexeme, place)?.cut,
                None => None,
            };
            debug_assert!(cut.is_some(), "a text leads elsewhere");
            let Some(cut) = cut else { return Ok(None) };
            exits.push(Exit { cut, ends: end.tokens(), rest: end.rest.clone() });
        }
        exits.sort_by_key(|exit| exit.cut);
        let own_bytes = size_of::<Walk>() + size_of_val(&*exits);
        let (stay, unknown) = (known.stay.clone(), Vec::new());
        let walk = Walk { stay, unknown, exits, own_bytes };
        self.taken.push(known);
        Ok(Some(walk))
    }

    /// Lets other languages have a walk, of which these groups are the ends, in order.
    fn share(
        &mut self,
        language: &Language,
        key: Key,
        (sweep, walk): (&Sweep, &mut Walk),
        (staying, ends): (&[&Group], &[&Group]),
    ) {
        let Some(shared) = &self.shared else { return };
        let (asked, begun) = (sweep.asked, self.begun.among(language.lexing(), sweep.asked));
        let ends = ends.iter().zip(&walk.exits);
        let ends = ends.map(|(group, exit)| End::new(&group.found, exit.ends.is_some(), exit.rest.clone()));
        let staying = staying.iter().map(|group| group.found.clone()).collect();
        let (stay, is_wanted) = (walk.stay.clone(), AtomicBool::new(false));
        let known = SharedWalk { stay, staying, ends: ends.collect(), asked, begun, is_wanted };
        if let Some((known, moved)) = shared.insert(key, known) {
            self.taken.push(known);
            // Counted there from now on.
            self.bytes = self.bytes.saturating_sub(moved);
            walk.own_bytes = size_of::<Walk>() + size_of_val(&*walk.exits);
        }
    }

    /// Counts bytes that are about to be kept.
    fn make_room(&mut self, language: &Language, bytes: usize) {
        if self.bytes + self.places.memory_usage() + bytes > language.limits().cache_bytes {
            drop(self.forget());
        }
        self.bytes += bytes;
    }

    /// Drops all that is kept; returns what it was in. What the vocabulary keeps stays.
    pub(crate) fn forget(&mut self) -> Self {
        let (rests, commons, shared) = (self.rests.clone(), self.commons.clone(), self.shared.clone());
        let (apart, n_seen) = (self.apart, self.n_seen);
        let row = std::mem::take(&mut self.row);
        std::mem::replace(self, Self { rests, commons, shared, apart, n_seen, row, ..Self::default() })
    }

    /// What the tokens of a trie do to a piece that is where a lexeme is: all that the lexeme wants is in it,
    /// perhaps more. Kept where it serves other lexemes too. Cost, once: some thousand nodes if the lexeme
    /// wants little, else the nodes of the trie that any piece can reach and that do not merely prolong it.
    pub fn sweep(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (id, trie): (u64, &TokenTrie),
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Arc<Sweep>, StepError> {
        let place = stepper.transducer().place(lexeme);
        if let Some(known) = self.sweeps.get(&(place, id)) {
            return Ok(known.clone());
        }
        if id == 0
            && let Some(sweep) = self.beside_common(stepper, language, trie, lexeme, n_words)?
        {
            return Ok(sweep);
        }
        let start = (id, self.start_of(language, place));
        if self.bases.contains_key(&start) {
            return self.beside_base(stepper, language, trie, (lexeme, start), n_words);
        }
        let wants_all = stepper.transducer().wants_all(language.lexing(), lexeme);
        // A canvas asks about what many parser states want, an output about few.
        let most = if self.apart { FEW_NODES } else { MANY_NODES };
        let spent = self.narrow.get(&(place, id)).copied().unwrap_or(0);
        // Where little is wanted, little of the trie is reached.
        if trie.n_nodes() >= MANY_NODES && !wants_all && spent < most {
            let (before, wanted) = (self.n_seen, Some((lexeme, most - spent)));
            let narrow = self.walk_trie(stepper, language, (id, trie), lexeme, wanted, n_words)?;
            let n_nodes = (self.n_seen - before) as usize;
            self.narrow.insert((place, id), spent + n_nodes);
            if let (sweep, true) = narrow {
                return Ok(sweep);
            }
        }
        Ok(self.walk_trie(stepper, language, (id, trie), lexeme, None, n_words)?.0)
    }

    /// What is alike in places from which most tokens do the same.
    fn start_of(&mut self, language: &Language, place: Place) -> Start {
        let (union, state) = (&language.lexing().lexicon.union, place.state());
        if let Some(start) = self.starts.get(&state) {
            return start.clone();
        }
        let has_levels = !self.apart && union.has_bounds(state);
        // What preceding pieces owe is soon paid. Otherwise one automaton has many states that differ little.
        let alike = union.alive(state).map(|alive| SmallVec::from_slice(&alive));
        let start = (has_levels, alike.unwrap_or_else(|| where_most_bytes_lead(union, state)));
        self.bytes += size_of::<(State, Start)>() + 16;
        self.starts.insert(state, start.clone());
        start
    }

    /// Keeps a sweep of a trie in which so many nodes were looked at. If these are many, others are walked
    /// beside it.
    fn keep(
        &mut self,
        language: &Language,
        (id, trie): (u64, &TokenTrie),
        place: Place,
        sweep: &Arc<Sweep>,
        n_nodes: usize,
    ) {
        self.make_room(language, sweep.groups.iter().map(Group::memory_usage).sum());
        self.sweeps.insert((place, id), sweep.clone());
        if n_nodes >= FEW_NODES.min(1 + trie.n_nodes() / 8) {
            let start = self.start_of(language, place);
            self.bases.insert((id, start), Base { start: place, sweep: sweep.clone() });
        }
    }

    /// The sweep of the vocabulary's trie beside the last one that walked much of it from a start that is
    /// like this one. Kept. Cost: the nodes at which the two differ, and their children.
    fn beside_base(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        trie: &TokenTrie,
        (lexeme, like): (LexemeId, (u64, Start)),
        n_words: usize,
    ) -> Result<Arc<Sweep>, StepError> {
        let Some(base) = self.bases.get(&like).cloned() else { return Ok(Arc::default()) };
        let (lexing, start) = (language.lexing(), stepper.transducer().place(lexeme));
        let has_rests = self.apart || !lexing.merges_ends();
        let places = self.places.of(lexing, (like.1.0, has_rests));
        let mut sweeper = Sweeper::new(lexing, stepper.transducer_mut(), trie, places, None);
        let mut pairs = Pairs::default();
        pairs.walk(&mut sweeper, base.start, start)?;
        let n_steps = sweeper.n_steps;
        let sweep = Arc::new(pairs.finish(&base.sweep, sweeper, n_words));
        self.n_seen += n_steps as u64;
        // Of few tokens no row is copied.
        stepper.spend(n_steps + n_words.min(trie.n_nodes()))?;
        self.keep(language, (like.0, trie), start, &sweep, n_steps);
        Ok(sweep)
    }

    /// The sweep of the vocabulary's trie where most tokens do what they do in an automaton in common use,
    /// see [`crate::common`]; `None` elsewhere. Kept. Cost: the nodes at which they do not, and their
    /// children.
    fn beside_common(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        trie: &TokenTrie,
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Option<Arc<Sweep>>, StepError> {
        let (lexing, start) = (language.lexing(), stepper.transducer().place(lexeme));
        let common = lexing.lexicon.union.common(start.state());
        let (Some(commons), Some(common)) = (&self.commons, common) else { return Ok(None) };
        let telling = if self.apart { Telling::States } else { Telling::Kinds };
        let Some(walked) = commons.walked(common, telling, trie) else { return Ok(None) };
        // What is left of lengths says itself whether places do the same.
        let has_rests = self.apart || !lexing.merges_ends();
        let places = self.places.of(lexing, (false, has_rests));
        let mut sweeper = Sweeper::new(lexing, stepper.transducer_mut(), trie, places, None);
        let mut beside = Beside::new(walked);
        beside.walk(&mut sweeper, start)?;
        let n_steps = sweeper.n_steps;
        self.n_seen += n_steps as u64;
        let sweep = beside.finish(sweeper, telling, n_words)?;
        stepper.spend(n_steps + n_words)?;
        let Some(sweep) = sweep.map(Arc::new) else { return Ok(None) };
        // What the vocabulary has is counted there, but a walk that is shared counts all that it has.
        let usage = if self.apart { Group::own_memory_usage } else { Group::memory_usage };
        self.make_room(language, sweep.groups.iter().map(usage).sum());
        self.sweeps.insert((start, 0), sweep.clone());
        Ok(Some(sweep))
    }

    /// Walks a trie from the place of a lexeme, as long as the piece goes on. Cost: a table look-up for each
    /// node that is reached.
    ///
    /// With `wanted`, only as far as it can become something that this lexeme wants, and over at most so many
    /// nodes; says whether that was all.
    fn walk_trie(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (trie_id, trie): (u64, &TokenTrie),
        lexeme: LexemeId,
        wanted: Option<(LexemeId, usize)>,
        n_words: usize,
    ) -> Result<(Arc<Sweep>, bool), StepError> {
        let start = stepper.transducer().place(lexeme);
        let has_rests = self.apart || !language.lexing().merges_ends();
        let lexing = language.lexing();
        // Where it matters to which place a token leads, however much may follow, places are one that do the
        // same for texts of any length.
        let has_levels = !self.apart && lexing.lexicon.union.has_bounds(start.state());
        let places = self.places.of(lexing, (has_levels, has_rests));
        let mut sweeper = Sweeper::new(lexing, stepper.transducer_mut(), trie, places, wanted);
        let start_id = sweeper.begin(start);
        let walk = sweeper.walk(start_id);
        let n_steps = sweeper.n_steps;
        self.n_seen += n_steps as u64;
        let (asked, is_all) = (sweeper.asked, sweeper.is_all());
        let groups = match walk {
            Ok(()) => sweeper.finish(n_words).collect(),
            Err(Stop::TooMany) => {
                stepper.spend(n_steps)?;
                return Ok((Arc::default(), false));
            }
            Err(Stop::Limit(error)) => return Err(error.into()),
        };
        stepper.spend(n_steps)?;
        let sweep = Arc::new(Sweep { groups, asked });
        if is_all {
            self.keep(language, (trie_id, trie), start, &sweep, n_steps);
        }
        Ok((sweep, true))
    }

    /// What is left of the tokens at and below some nodes of a trie, from the bytes of the nodes on. Made
    /// once for the same nodes.
    pub fn rest(&mut self, trie: (u64, &TokenTrie), tops: &[NodeId], n_words: usize) -> Arc<Rest> {
        self.rests.get(trie, tops, n_words)
    }

    /// A sweep as a lexeme sees it that is where the sweep began; shared by a key, if there is one.
    fn see(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        trie: (u64, &TokenTrie),
        sweep: &Sweep,
        (lexeme, key): (LexemeId, Option<Key>),
        n_words: usize,
    ) -> Result<Walk, StepError> {
        let lexing = language.lexing();
        stepper.spend(sweep.groups.len() * 8)?;
        let transducer = stepper.transducer_mut();
        let mut unknown: Vec<(LexemeId, Arc<Tokens>)> = Vec::new();
        let (mut staying, mut ends) = (Vec::new(), Vec::new());
        for group in &sweep.groups {
            if !transducer.may_come_to(lexing, lexeme, group.place)? {
                continue;
            }
            let step = transducer.step_to(lexing, lexeme, group.place)?;
            if let Some(next) = step.stay
                && !group.tokens().is_empty()
                && !transducer.ends_with_token(next)
            {
                match transducer.prospect(next) {
                    Prospect::Completable => staying.push(group),
                    Prospect::Unknown => unknown.push((next, group.tokens().clone())),
                }
            }
            ends.extend(step.cut.map(|cut| (cut, group)));
        }
        self.row.resize(n_words, 0);
        staying.iter().for_each(|group| group.tokens().add_to(&mut self.row));
        let mut exits = Vec::new();
        if !lexing.merges_ends() {
            for (cut, group) in ends {
                let obligations = transducer.cut(cut).obligations;
                let ends = (!group.tokens().is_subset(&self.row)).then(|| group.tokens().clone());
                let follows = |&top: &NodeId| transducer.survives(lexing, obligations, trie.1.byte(top));
                let rest = if group.tops().iter().any(follows) {
                    group.beyond(&self.rests, trie, n_words)
                } else {
                    None
                };
                let rest = rest.filter(|rest| !rest.tokens.is_subset(&self.row));
                if ends.is_some() || rest.is_some() {
                    exits.push((Exit { cut, ends, rest }, group));
                }
            }
        }
        staying.iter().for_each(|group| group.tokens().remove_from(&mut self.row));
        let (few, many): (Vec<_>, Vec<_>) = staying
            .iter()
            .map(|group| group.tokens())
            .partition(|tokens| matches!(&***tokens, Tokens::Few(_)));
        let mut stay: Vec<Arc<Tokens>> = many.into_iter().cloned().collect();
        match few.as_slice() {
            [] => {}
            [only] => stay.push(Arc::clone(only)),
            few => {
                let list = few.iter().flat_map(|tokens| tokens.listed()).copied().collect();
                stay.push(Arc::new(Tokens::new(list, n_words)));
            }
        }
        // In an order that does not depend on hashing, so that times can be repeated.
        unknown.sort_unstable_by_key(|&(lexeme, _)| lexeme);
        exits.sort_by_key(|(exit, _)| exit.cut);
        let (exits, ends): (Vec<Exit>, Vec<&Group>) = exits.into_iter().unzip();
        let mut walk = Walk { stay: stay.into(), unknown, exits, own_bytes: 0 };
        walk.own_bytes = walk.memory_usage();
        if let Some(key) = key.filter(|_| walk.unknown.is_empty()) {
            self.share(language, key, (sweep, &mut walk), (&staying, &ends));
        }
        Ok(walk)
    }
}

impl Walk {
    fn memory_usage(&self) -> usize {
        // The rows, and the sets of the others, are the sweep's.
        let lists: usize = self.stay.iter().map(|tokens| size_of_val(tokens.listed())).sum();
        let own = size_of_val(&*self.stay) + size_of_val(&*self.unknown) + size_of_val(&*self.exits);
        lists + own + size_of::<Self>()
    }
}
