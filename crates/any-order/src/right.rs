//! What can stand to the left of fixed tokens, as far as lexing knows.
//!
//! From the right, each run of fixed tokens is read backwards with sets of states of the union automaton:
//! those from which some cutting of the run into pieces survives it, whatever the parser says. A reading in
//! another state leads nowhere, in every lexer mode: other modes only have fewer cuts. Sets are interned and
//! a step is remembered, so that a canvas costs a look-up a slot where its tokens were seen before.
//!
//! Of the parser one thing is known: the terminals that a sentence can end with. So there is a second copy of
//! the states, for a text of which nothing but ignored pieces follows: from the last piece that is not
//! ignored, which has to be one of these terminals, a cut leads to the copy of the start state.

use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_bits::work::{Stopped, Work};
use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::Constraint;
use anygram_left_to_right::mask::Rest;
use anygram_left_to_right::tokens::{Tokens, set_bit};
use anygram_lexer::dfa::{DEAD, START};
use anygram_lexer::outline::Outline;
use anygram_lexer::transducer::Lexing;
use anygram_lexer::union::Union;
use anygram_vocab::{TokenId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::canvas::End;
use crate::plan::{self, Place, Plan};

/// Where the lexer's automaton grows, the states are those of its outline.
///
/// How bytes lead from state to state, of which there are two copies: see the module.
struct Steps {
    outline: Option<Arc<Outline>>,
    /// Of each state whether it accepts a terminal with which a sentence can end.
    ends: BitSet,
    /// Of each state whether some ignored terminal matches there, or can still match.
    skips: BitSet,
    /// Of each state whether it accepts an ignored terminal.
    skipped: BitSet,
    /// The terminals with which a sentence can end.
    last: BitSet,
    ignored: BitSet,
}

/// Interned sets of states, and what tokens do to them.
pub(crate) struct Rights {
    by: Arc<Steps>,
    /// The boundary where a text begins.
    begin: u32,
    sets: Vec<Arc<BitSet>>,
    /// The same without regard to which copy of a state is meant.
    merged: Vec<Arc<BitSet>>,
    ids: FxHashMap<Arc<BitSet>, u32>,
    steps: FxHashMap<(u32, TokenId), u32>,
    /// What can stand before a hole, by what can stand behind it.
    holes: FxHashMap<u32, u32>,
    /// The trie of the tokens read backwards, once it is needed.
    backwards: Option<TokenTrie>,
    /// Where tokens lead from sets of states: single ones, of which small sets consist, and larger sets.
    ways: FxHashMap<u32, Arc<Ways>>,
    /// The tokens that lead from one set into another, and the set of all states that tokens lead to from the
    /// first.
    rows: FxHashMap<(u32, u32), Row>,
    ways_bytes: usize,
    /// Where what is left of tokens leads from a boundary.
    beyond: FxHashMap<u64, Arc<BitSet>>,
    forward: FxHashMap<(u32, TokenId), u32>,
}

/// A row of tokens, and the set of all states that tokens lead to.
type Row = (Arc<[u32]>, u32);

/// Where tokens lead from a set of states.
struct Ways {
    /// The sets that they lead to, with the tokens that do.
    groups: Vec<(BitSet, Tokens)>,
    /// All of these sets together.
    all: BitSet,
}

/// Fixed tokens before a hole that are looked at: what stands further left says nothing more, or would only
/// make the sets more that are kept.
const MOST_BEFORE: usize = 4;

/// Larger sets of states are not taken apart.
const FEW_STATES: usize = 16;

/// The part of what may be kept in all that says where tokens lead.
const PART_OF_WAYS: usize = 2;

/// The same of rows.
const PART_OF_ROWS: usize = 16;

/// All states, of both copies.
const ALL: u32 = 0;
/// None.
const NONE: u32 = 1;
/// The boundary where a sentence ends.
const END: u32 = 2;
/// Any boundary.
const BOUNDARY: u32 = 3;

/// In place of a state of which nothing is known.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// For each slot of a canvas, and its end, the states that can stand before it.
#[derive(Clone)]
pub(crate) struct Right {
    sets: Vec<Arc<BitSet>>,
    merged: Vec<Arc<BitSet>>,
    ids: Vec<u32>,
    /// Whether some slot cannot be passed and the text cannot end before it.
    pub is_hopeless: bool,
}

impl Right {
    /// The states that can stand before a slot, for [`Rights::beyond`].
    pub fn states(&self, slot: usize) -> &BitSet {
        &self.sets[slot]
    }

    /// The number of the set of states that can stand before a slot.
    pub fn id(&self, slot: usize) -> u32 {
        self.ids[slot]
    }

    /// Whether every state can stand before a slot.
    pub fn is_all(&self, slot: usize) -> bool {
        self.ids[slot] == ALL
    }

    /// Whether a state can stand before a slot; for all that is known, if it is not known which it is
    /// ([`UNKNOWN`]).
    #[inline]
    pub fn allows(&self, slot: usize, state: u32) -> bool {
        state == UNKNOWN || self.merged.get(slot).is_none_or(|set| set.contains(state as usize))
    }
}

impl Ways {
    fn memory_usage(&self) -> usize {
        let group = |(set, tokens): &(BitSet, Tokens)| {
            size_of::<(BitSet, Tokens)>() + set.memory_usage() + tokens.memory_usage()
        };
        self.groups.iter().map(group).sum()
    }
}

impl Rights {
    pub fn new(constraint: &Constraint, outline: Option<Arc<Outline>>) -> Self {
        let lexing = constraint.language().lexing();
        let by = Arc::new(Steps::new(lexing, outline));
        let n_states = by.n_states();
        let mut this = Self {
            by: by.clone(),
            begin: NONE,
            sets: Vec::new(),
            merged: Vec::new(),
            ids: FxHashMap::default(),
            steps: FxHashMap::default(),
            holes: FxHashMap::default(),
            backwards: None,
            ways: FxHashMap::default(),
            rows: FxHashMap::default(),
            ways_bytes: 0,
            beyond: FxHashMap::default(),
            forward: FxHashMap::default(),
        };
        let (start, end) = (START as usize, by.end());
        let can_be_empty = lexing.cfg.nullable().contains(lexing.cfg.start.index());
        // In the order of their numbers; they differ, for there is a state that leads nowhere.
        this.intern(BitSet::full(2 * n_states));
        this.intern(by.none());
        this.intern(BitSet::from_members(2 * n_states, [end]));
        this.intern(BitSet::from_members(2 * n_states, [start, end]));
        let begin = [start].into_iter().chain(can_be_empty.then_some(end));
        this.begin = this.intern(BitSet::from_members(2 * n_states, begin));
        this
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.sets.iter().chain(&self.merged).map(|set| set.memory_usage() + 48).sum::<usize>()
            + self.ways_bytes
            + self.rows.values().next().map_or(0, |(row, _)| self.rows.len() * size_of_val(&**row))
            + self.backwards.as_ref().map_or(0, TokenTrie::memory_usage)
            + self.beyond.len() * (self.sets[0].memory_usage() + 64)
            + (self.steps.len() + self.forward.len()) * 24
    }

    /// The sets of a canvas.
    pub fn of(&mut self, constraint: &Constraint, plan: &Plan) -> Right {
        let mut at = match plan.whole {
            None => NONE,
            Some(End::Sentence) => END,
            Some(End::Prefix { .. }) => ALL,
        };
        let mut ids = vec![at];
        let mut is_hopeless = false;
        for (place, &end) in plan.places.iter().zip(&plan.ends).rev() {
            at = match place {
                Place::Token(token) => self.before(constraint, *token, at),
                Place::Closed => NONE,
                // Whatever stands there, something has to follow.
                Place::Free | Place::Gap | Place::Optional if at == NONE && !end => NONE,
                Place::Free | Place::Gap | Place::Optional => ALL,
            };
            ids.push(if end { self.with_end(at) } else { at });
            at = ids[ids.len() - 1];
        }
        is_hopeless |= at == NONE;
        ids.reverse();
        self.right(ids, is_hopeless)
    }

    /// For each hole, in order, a row of the tokens that can stand in it as far as lexing knows: that lead
    /// from a state that can be come to with what is left of the hole to one that can stand before the next
    /// slot. Cost: O(nodes of the trie) for a state left of a hole for the first time, else words of a row ×
    /// sets of states that tokens lead to.
    pub fn rows(
        &mut self,
        constraint: &Constraint,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Vec<Vec<u32>>, Stopped> {
        let right = self.sharply(constraint, plan, work)?.ids;
        let mut rows = Vec::new();
        // What can be left of a run of fixed tokens, and where it begins.
        let (mut before, mut run) = (self.begin, 0);
        for (slot, place) in plan.places.iter().enumerate() {
            if *place != Place::Free {
                continue;
            }
            if slot - run > MOST_BEFORE {
                before = ALL;
            }
            let mut left = before;
            for place in &plan.places[run.max(slot.saturating_sub(MOST_BEFORE))..slot] {
                left = match place {
                    Place::Token(token) => self.after(constraint, *token, left),
                    _ => ALL,
                };
            }
            let (row, all) = self.row(constraint, (left, right[slot + 1]), work)?;
            rows.push(row.to_vec());
            before = all;
            run = slot + 1;
        }
        Ok(rows)
    }

    /// The tokens that lead from one set into another, and all states that tokens lead to.
    fn row(
        &mut self,
        constraint: &Constraint,
        (left, right): (u32, u32),
        work: &mut Work,
    ) -> Result<Row, Stopped> {
        if let Some(known) = self.rows.get(&(left, right)) {
            work.spend(1)?;
            return Ok(known.clone());
        }
        let (before, after) = (self.sets[left as usize].clone(), self.sets[right as usize].clone());
        let n_states = before.len();
        // A byte leads from a set to what it leads to from the states in it, and so does a token. Many states
        // are as good as all.
        let parts: Vec<u32> = match before.count() {
            count if count <= FEW_STATES => {
                before.iter().map(|state| self.intern(BitSet::from_members(n_states, [state]))).collect()
            }
            count if count > n_states / 4 => vec![ALL],
            _ => vec![left],
        };
        let mut row = vec![0; constraint.mask_words()];
        let mut all = BitSet::new(n_states);
        for part in parts {
            let ways = self.ways(constraint, part, work)?;
            work.spend(1 + ways.groups.len() + row.len() / 16)?;
            let reached = ways.groups.iter().filter(|(set, _)| set.intersects(&after));
            reached.for_each(|(_, tokens)| tokens.add_to(&mut row));
            all.union_with(&ways.all);
        }
        for (token, terminal) in plan::specials(constraint) {
            let to = self.by.read(&before, terminal);
            if to.intersects(&after) {
                set_bit(&mut row, token.index());
            }
            all.union_with(&to);
        }
        let row = (Arc::from(row), self.intern(all));
        let bytes = size_of_val(&*row.0);
        if (self.rows.len() + 1) * bytes > constraint.language().limits().cache_bytes / PART_OF_ROWS {
            self.rows.clear();
        }
        self.rows.insert((left, right), row.clone());
        Ok(row)
    }

    fn ways(&mut self, constraint: &Constraint, left: u32, work: &mut Work) -> Result<Arc<Ways>, Stopped> {
        if let Some(known) = self.ways.get(&left) {
            return Ok(known.clone());
        }
        let by = self.by.clone();
        let union = by.union(constraint);
        let (trie, from) = (constraint.vocabulary().trie(), &self.sets[left as usize]);
        let (sets, of) = walk(trie, union, from, |states, class| by.step(union, states, class), work)?;
        let mut tokens: Vec<Vec<TokenId>> = vec![Vec::new(); sets.len()];
        of.iter().zip(trie.order()).for_each(|(&to, &token)| tokens[to as usize].push(token));
        let n_words = constraint.mask_words();
        let mut ways = Ways { groups: Vec::new(), all: self.by.none() };
        for (set, tokens) in
            sets.into_iter().zip(tokens).filter(|(set, tokens)| !set.is_empty() && !tokens.is_empty())
        {
            ways.all.union_with(&set);
            ways.groups.push((set, Tokens::new(tokens, n_words)));
        }
        let bytes = ways.memory_usage();
        if self.ways_bytes + bytes > constraint.language().limits().cache_bytes / PART_OF_WAYS {
            self.ways.clear();
            self.ways_bytes = 0;
        }
        self.ways_bytes += bytes;
        let ways = Arc::new(ways);
        self.ways.insert(left, ways.clone());
        Ok(ways)
    }

    /// All states to which what is left of some tokens leads from a boundary. Cost, once: its nodes.
    pub fn beyond(
        &mut self,
        constraint: &Constraint,
        rest: &Rest,
        work: &mut Work,
    ) -> Result<Arc<BitSet>, Stopped> {
        if let Some(known) = self.beyond.get(&rest.id) {
            return Ok(known.clone());
        }
        let by = self.by.clone();
        let union = by.union(constraint);
        let from = &self.sets[BOUNDARY as usize];
        let sets = walk(&rest.trie, union, from, |states, class| by.step(union, states, class), work)?.0;
        let mut all = self.by.none();
        for set in &sets[1..] {
            all.union_with(set);
        }
        let all = Arc::new(all);
        self.beyond.insert(rest.id, all.clone());
        Ok(all)
    }

    /// The states to which a token leads from a set.
    fn after(&mut self, constraint: &Constraint, token: TokenId, before: u32) -> u32 {
        if let Some(&known) = self.forward.get(&(before, token)) {
            return known;
        }
        let by = self.by.clone();
        let union = by.union(constraint);
        let from = &self.sets[before as usize];
        let mut set = self.by.none();
        if let Some(bytes) = constraint.vocabulary().bytes(token) {
            set = (**from).clone();
            bytes.iter().for_each(|&byte| set = self.by.step(union, &set, union.class(byte)));
        }
        for (_, terminal) in plan::specials(constraint).filter(|(named, _)| *named == token) {
            set.union_with(&self.by.read(from, terminal));
        }
        let id = self.intern(set);
        self.forward.insert((before, token), id);
        id
    }

    /// If one of some tokens is put into a hole: what stands left of it is narrowed to what leads to them.
    pub fn towards(
        &mut self,
        constraint: &Constraint,
        (plan, right): (&Plan, &Right),
        (hole, tokens): (usize, &[TokenId]),
        work: &mut Work,
    ) -> Result<Right, Stopped> {
        let mut ids = right.ids.clone();
        let mut before = self.by.none();
        for &token in tokens {
            let one = self.before(constraint, token, right.ids[hole + 1]);
            before.union_with(&self.sets[one as usize]);
        }
        let mut at = self.intern(before);
        ids[hole] = at;
        for slot in (0..hole).rev() {
            at = match plan.places[slot] {
                Place::Token(token) => self.before(constraint, token, at),
                Place::Free if at != ALL && at != NONE => self.before_any(constraint, at, work)?,
                Place::Free => at,
                Place::Gap | Place::Optional | Place::Closed => ids[slot],
            };
            ids[slot] = at;
        }
        Ok(self.right(ids, at == NONE))
    }

    /// As [`Rights::of`], with holes that one token has to fill.
    pub fn sharply(
        &mut self,
        constraint: &Constraint,
        plan: &Plan,
        work: &mut Work,
    ) -> Result<Right, Stopped> {
        let Right { mut ids, mut is_hopeless, .. } = self.of(constraint, plan);
        for slot in (0..plan.places.len()).rev() {
            let after = ids[slot + 1];
            ids[slot] = match plan.places[slot] {
                Place::Token(token) if ids[slot] != NONE => self.before(constraint, token, after),
                Place::Free if after != ALL && after != NONE => {
                    let before = self.before_any(constraint, after, work)?;
                    if plan.ends[slot] { self.with_end(before) } else { before }
                }
                _ => ids[slot],
            };
        }
        is_hopeless |= ids.first() == Some(&NONE);
        Ok(self.right(ids, is_hopeless))
    }

    fn right(&self, ids: Vec<u32>, is_hopeless: bool) -> Right {
        let sets = |of: &[Arc<BitSet>]| ids.iter().map(|&id| of[id as usize].clone()).collect();
        Right { sets: sets(&self.sets), merged: sets(&self.merged), ids, is_hopeless }
    }

    /// A set, with the boundary where a sentence ends.
    fn with_end(&mut self, id: u32) -> u32 {
        let (set, end) = (&self.sets[id as usize], self.by.end());
        if set.contains(end) {
            return id;
        }
        let mut set = (**set).clone();
        set.insert(end);
        self.intern(set)
    }

    fn intern(&mut self, set: BitSet) -> u32 {
        let fresh = self.sets.len() as u32;
        let set = Arc::new(set);
        *self.ids.entry(set).or_insert_with_key(|set| {
            self.sets.push(set.clone());
            self.merged.push(Arc::new(self.by.merged(set)));
            fresh
        })
    }

    /// The states from which some token leads into a set: by a walk over the trie of the tokens read
    /// backwards.
    fn before_any(&mut self, constraint: &Constraint, after: u32, work: &mut Work) -> Result<u32, Stopped> {
        if let Some(&known) = self.holes.get(&after) {
            return Ok(known);
        }
        let by = self.by.clone();
        let union = by.union(constraint);
        let backwards = self.backwards.get_or_insert_with(|| backwards(constraint));
        let from = &self.sets[after as usize];
        let sets = walk(backwards, union, from, |states, class| by.step_back(union, states, class), work)?.0;
        let mut set = by.none();
        for before in &sets[1..] {
            set.union_with(before);
        }
        for (_, terminal) in plan::specials(constraint) {
            set.union_with(&by.read_back(from, terminal));
        }
        let id = self.intern(set);
        self.holes.insert(after, id);
        Ok(id)
    }

    /// The states from which a token leads into a set.
    fn before(&mut self, constraint: &Constraint, token: TokenId, after: u32) -> u32 {
        if let Some(&known) = self.steps.get(&(after, token)) {
            return known;
        }
        let by = self.by.clone();
        let union = by.union(constraint);
        let mut set = self.by.none();
        let target = self.sets[after as usize].clone();
        if let Some(bytes) = constraint.vocabulary().bytes(token) {
            let mut at = (*target).clone();
            bytes.iter().rev().for_each(|&byte| at = self.by.step_back(union, &at, union.class(byte)));
            set = at;
        }
        for (_, terminal) in plan::specials(constraint).filter(|(named, _)| *named == token) {
            set.union_with(&self.by.read_back(&target, terminal));
        }
        let id = self.intern(set);
        self.steps.insert((after, token), id);
        id
    }
}

impl Steps {
    fn new(lexing: &Lexing, outline: Option<Arc<Outline>>) -> Self {
        let union = outline.as_ref().map_or(&lexing.lexicon.union, |outline| outline.union());
        let (last, ignored) = (lexing.cfg.last_terminals(), lexing.lexicon.ignored.clone());
        // As the union speaks of them.
        let kinds = |terminals: &BitSet| {
            outline.as_ref().map_or_else(|| terminals.clone(), |outline| outline.kinds_of(terminals))
        };
        let (last_kinds, ignored_kinds) = (kinds(&last), kinds(&ignored));
        let states = |holds: &dyn Fn(u32) -> bool| {
            BitSet::from_members(union.n_states(), (0..union.n_states()).filter(|&state| holds(state as u32)))
        };
        Self {
            ends: states(&|state| union.accepts(state).iter().any(|kind| last_kinds.contains(kind))),
            skips: states(&|state| {
                let mut kinds = union.accepts(state).iter().chain(union.live(state).iter());
                kinds.any(|kind| ignored_kinds.contains(kind))
            }),
            skipped: states(&|state| union.accepts(state).iter().any(|kind| ignored_kinds.contains(kind))),
            last,
            ignored,
            outline,
        }
    }

    /// The automaton of which these are the states.
    fn union<'a>(&'a self, constraint: &'a Constraint) -> &'a Union {
        let own = &constraint.language().lexing().lexicon.union;
        self.outline.as_ref().map_or(own, |outline| outline.union())
    }

    /// The number of states of one copy.
    fn n_states(&self) -> usize {
        self.ends.len()
    }

    /// The boundary behind the last piece that is not ignored.
    fn end(&self) -> usize {
        self.n_states() + START as usize
    }

    fn none(&self) -> BitSet {
        BitSet::new(2 * self.n_states())
    }

    /// The states of a set, whichever copies they are.
    fn merged(&self, set: &BitSet) -> BitSet {
        BitSet::from_members(self.n_states(), set.iter().map(|state| state % self.n_states()))
    }

    /// What a byte leads to, whatever is cut there.
    fn step(&self, union: &Union, states: &BitSet, class: usize) -> BitSet {
        let n_states = self.n_states();
        let mut next = self.none();
        for at in states.iter() {
            let state = union.step((at % n_states) as u32, class);
            if state == DEAD {
                continue;
            }
            let to = state as usize;
            if at < n_states {
                next.insert(to);
                if !union.accepts(state).is_empty() {
                    next.insert(START as usize);
                }
                if self.ends.contains(to) {
                    next.insert(self.end());
                }
            } else if self.skips.contains(to) {
                next.insert(n_states + to);
                if self.skipped.contains(to) {
                    next.insert(self.end());
                }
            }
        }
        next
    }

    /// From where a byte leads into some states, whatever is cut there.
    fn step_back(&self, union: &Union, states: &BitSet, class: usize) -> BitSet {
        let n_states = self.n_states();
        let (can_cut, can_end) = (states.contains(START as usize), states.contains(self.end()));
        let mut before = self.none();
        for state in 0..n_states {
            let next = union.step(state as u32, class);
            if next == DEAD {
                continue;
            }
            let to = next as usize;
            if states.contains(to)
                || can_cut && !union.accepts(next).is_empty()
                || can_end && self.ends.contains(to)
            {
                before.insert(state);
            }
            if self.skips.contains(to) && states.contains(n_states + to)
                || can_end && self.skipped.contains(to)
            {
                before.insert(n_states + state);
            }
        }
        before
    }

    /// Where a terminal that is a token leads.
    fn read(&self, before: &BitSet, terminal: TerminalId) -> BitSet {
        self.boundaries(before, terminal, |from, to| (from, to))
    }

    /// From where a terminal that is a token leads into some states.
    fn read_back(&self, after: &BitSet, terminal: TerminalId) -> BitSet {
        self.boundaries(after, terminal, |from, to| (to, from))
    }

    fn boundaries(
        &self,
        given: &BitSet,
        terminal: TerminalId,
        asked: impl Fn(usize, usize) -> (usize, usize),
    ) -> BitSet {
        let (start, end) = (START as usize, self.end());
        let mut steps = vec![(start, start)];
        steps.extend(self.last.contains(terminal.index()).then_some((start, end)));
        steps.extend(self.ignored.contains(terminal.index()).then_some((end, end)));
        let pairs = steps.into_iter().map(|(from, to)| asked(from, to));
        let mut found = self.none();
        found.extend(pairs.filter(|&(from, _)| given.contains(from)).map(|(_, to)| to));
        found
    }
}

/// The trie of the tokens read backwards.
fn backwards(constraint: &Constraint) -> TokenTrie {
    let vocabulary = constraint.vocabulary();
    let reversed = |&token: &TokenId| {
        let bytes: Vec<u8> = vocabulary.bytes(token)?.iter().rev().copied().collect();
        Some((token, bytes))
    };
    let tokens: Vec<(TokenId, Vec<u8>)> = vocabulary.trie().order().iter().filter_map(reversed).collect();
    TokenTrie::new(tokens.iter().map(|(token, bytes)| (*token, &**bytes)))
}

/// Where tokens lead from a set of states, by a walk over their trie with such sets: the sets to which some
/// do, after a first one, and of each token by sorted position which.
fn walk(
    trie: &TokenTrie,
    union: &Union,
    from: &BitSet,
    step: impl Fn(&BitSet, usize) -> BitSet,
    work: &mut Work,
) -> Result<(Vec<BitSet>, Box<[u32]>), Stopped> {
    const NOT_YET: u32 = u32::MAX;
    const NOWHERE: u32 = 1;
    let (n_states, n_classes) = (from.len(), union.n_classes());
    // The first is not interned: no token comes back to it by being empty.
    let mut sets = vec![from.clone(), BitSet::new(n_states)];
    let mut is_end = vec![true, true];
    let mut ids: FxHashMap<BitSet, u32> = FxHashMap::from_iter([(BitSet::new(n_states), NOWHERE)]);
    let mut table = vec![NOT_YET; 2 * n_classes];
    let mut of = vec![NOWHERE; trie.n_tokens()].into_boxed_slice();
    work.spend(trie.n_nodes() / 16)?;
    trie.descend(trie.below_root(), 0, |&from: &u32, at| {
        let node = trie.node(at);
        let class = union.class(node.byte);
        let mut to = table[from as usize * n_classes + class];
        if to == NOT_YET {
            work.spend(1 + n_states / 16)?;
            let fresh = sets.len() as u32;
            to = *ids.entry(step(&sets[from as usize], class)).or_insert_with_key(|set| {
                sets.push(set.clone());
                is_end.push(false);
                table.resize(table.len() + n_classes, NOT_YET);
                fresh
            });
            table[from as usize * n_classes + class] = to;
        }
        if to == NOWHERE {
            return Ok(None);
        }
        if node.own_hi > node.lo {
            of[node.lo..node.own_hi].fill(to);
            is_end[to as usize] = true;
        }
        Ok(Some(to))
    })?;
    // Sets that are met inside of tokens only are emptied, so that they do not count.
    for (set, _) in sets.iter_mut().zip(is_end).filter(|(_, is_end)| !is_end) {
        *set = BitSet::new(n_states);
    }
    Ok((sets, of))
}
