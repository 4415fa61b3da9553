//! Sweeps: what all tokens of a trie do to a piece in progress.
//!
//! The trie is walked once from a place of the lexer, as long as pieces go on; a table says where byte
//! classes lead, so a node costs a look-up. The table is that of all sweeps of a language ([`Places`]): most
//! of what a sweep comes to, others have come to before. Subtrees whose tokens have only characters that lead
//! from a place back to it are not walked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use anygram_grammar::automata::Bytes;
use anygram_grammar::ir::LexerMode;
use anygram_lexer::LexerError;
use anygram_lexer::dfa::DEAD;
use anygram_lexer::transducer::{LexemeId, Lexing, Place, Transducer};
use anygram_vocab::{Alphabet, NodeId, TokenId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::rests::{Rest, Rests};
use crate::tokens::Tokens;

/// A sweep: what all tokens (or rests) do to a piece from one lexer place, for every set of wanted terminals.
/// It groups the tokens by the place that they come to.
#[derive(Default, Debug)]
pub struct Sweep {
    /// Each with its own place, in the order in which the sorted tokens come to them.
    pub groups: Box<[Group]>,
    /// The bytes of which it matters whether they begin a piece: those that stand where pieces can end.
    pub asked: Bytes,
}

/// What comes to one place of the automata.
#[derive(Clone, Debug)]
pub struct Group {
    /// The place.
    pub place: Place,
    /// What comes there, for all languages of which the same does.
    pub(crate) found: Arc<Found>,
}

/// What comes to a place, whatever its number is.
#[derive(Debug)]
pub(crate) struct Found {
    /// The tokens that end there.
    pub tokens: Arc<Tokens>,
    /// The nodes below which stands what is left of the others if the piece ends here, as far as it can
    /// follow.
    tops: Box<[NodeId]>,
    /// That as a trie, once somebody wants the piece to end here.
    rest: OnceLock<Arc<Rest>>,
    /// How many shared walks have it: while one does, its bytes are counted there.
    n_shared: AtomicUsize,
}

/// The characters that lead from a place back to it, if no piece can end before or inside of them: what
/// tokens have of them changes nothing.
fn returning(
    transducer: &mut Transducer,
    lexing: &Lexing,
    place: Place,
    (has_rests, height): (bool, usize),
) -> Result<Alphabet, LexerError> {
    // Where the piece could end here, it could end behind the character just as well, and the longer one
    // wins.
    if has_rests && lexing.mode() == LexerMode::Scannerless && transducer.can_end(lexing, place) {
        return Ok(Alphabet::EMPTY);
    }
    // What is wanted at the place is wanted on the way back to it.
    let mut known: FxHashMap<(Place, usize), Option<Place>> = FxHashMap::default();
    Alphabet::leading(place, place, |from, byte| {
        let class = lexing.lexicon.union.class(byte);
        if let Some(&known) = known.get(&(from, class)) {
            return Ok(known);
        }
        let ends_inside = from != place && transducer.can_end(lexing, from);
        let next = match ends_inside {
            true => None,
            false => transducer.step_place_alike(lexing, from, class, height)?,
        };
        known.insert((from, class), next);
        Ok(next)
    })
}

/// Why a sweep ends before the trie does.
pub(crate) enum Stop {
    /// More is wanted than is looked at for the sake of one lexeme.
    TooMany,
    Limit(LexerError),
}

impl From<LexerError> for Stop {
    fn from(error: LexerError) -> Self {
        Self::Limit(error)
    }
}

/// A lexer place that walks have come to, by number.
pub(crate) type PlaceId = u32;

/// What is known of a lexer place.
struct Known {
    place: Place,
    can_end: bool,
    /// Whether a byte class can follow a piece that ends here, once it is known.
    follow: Box<[Option<bool>]>,
    /// The characters that lead back here, and here alone, once they are known; by level.
    returning: Box<[Option<Alphabet>]>,
    /// The nodes at which they were asked for and not known.
    n_unknown: u32,
    /// The gathering that this is a part of, and as which; see [`Gathered`].
    slot: (u32, u32),
}

/// The lexer places that sweeps of a language have come to, and where byte classes lead from each.
#[derive(Default)]
pub(crate) struct Places {
    /// Below a node only so many bytes matter as tokens have there, so places that do the same for so many
    /// are one. These are the bounds that are told apart, ascending.
    levels: &'static [usize],
    /// Bytes that matter behind tokens, too.
    beyond: usize,
    n_classes: usize,
    has_rests: bool,
    known: Vec<Known>,
    ids: FxHashMap<Place, PlaceId>,
    /// By place and level, where byte classes lead; empty where nobody asked.
    rows: Vec<Box<[PlaceId]>>,
    bytes: usize,
    n_gathered: u32,
}

/// As many bits as a level has, that many it is from the first; so there are few, and each is found at once.
const LEVELS: [usize; 9] = [0, 1, 3, 7, 15, 31, 63, 127, usize::MAX];

/// Where nothing is told apart by how much may follow.
const ALL_LEVELS: [usize; 1] = [usize::MAX];

/// In a row of [`Places`]: not asked yet, and nowhere.
const NOT_YET: PlaceId = u32::MAX;
pub(crate) const NOWHERE: PlaceId = u32::MAX - 1;

/// See [`Sweeper::returns`].
const SOME_NODES: u32 = 32;

/// The mark of a place before the first byte, where a piece cannot end: that would be another reading.
const FRESH: PlaceId = 1 << 31;

impl Places {
    fn new(lexing: &Lexing, (has_levels, beyond): (bool, usize), has_rests: bool) -> Self {
        Self {
            levels: if has_levels { &LEVELS } else { &ALL_LEVELS },
            beyond,
            n_classes: lexing.lexicon.union.n_classes(),
            has_rests,
            ..Self::default()
        }
    }

    /// The number of a place.
    fn id(&mut self, lexing: &Lexing, transducer: &Transducer, place: Place) -> PlaceId {
        if let Some(&known) = self.ids.get(&place) {
            return known;
        }
        let fresh = self.known.len() as PlaceId;
        let can_end = self.has_rests && transducer.can_end(lexing, place);
        let (follow, returning) = (Box::default(), Box::default());
        self.known.push(Known { place, can_end, follow, returning, n_unknown: 0, slot: (0, 0) });
        self.rows.resize(self.known.len() * self.levels.len(), Box::default());
        self.ids.insert(place, fresh);
        self.bytes += 128 + self.levels.len() * size_of::<Box<[PlaceId]>>();
        fresh
    }
}

/// The places of a language: of one number of levels, and of the other.
#[derive(Default)]
pub(crate) struct PlaceTables {
    tables: [Option<Places>; 2],
    beyond: usize,
}

impl PlaceTables {
    /// Where so many bytes matter that follow tokens.
    pub fn looking_beyond(beyond: usize) -> Self {
        Self { beyond, ..Self::default() }
    }

    /// With `has_levels` places are one that do the same for as many bytes as follow; `has_rests` says
    /// whether ends of pieces are followed one by one, which is the same for all sweeps.
    pub fn of(&mut self, lexing: &Lexing, (has_levels, has_rests): (bool, bool)) -> &mut Places {
        let Self { tables, beyond } = self;
        tables[usize::from(has_levels)]
            .get_or_insert_with(|| Places::new(lexing, (has_levels, *beyond), has_rests))
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.tables.iter().flatten().map(|places| places.bytes).sum()
    }
}

/// What a sweep finds, by places: those that tokens come to, in the order in which they do. All groups grow
/// in the same lists, for most have little.
#[derive(Default)]
struct Gathered {
    number: u32,
    slots: Vec<Slot>,
    /// Of a slot each, ranges of sorted positions; the last of a slot may still grow.
    tokens: Vec<(u32, (u32, u32))>,
    tops: Vec<(u32, NodeId)>,
}

/// A group while the trie is walked.
struct Slot {
    place: Place,
    n_ranges: u32,
    /// Where the last of them stands, if there are any.
    last_range: u32,
    n_tops: u32,
}

/// A group when the trie was walked.
pub(crate) struct Growing {
    pub place: Place,
    /// Ranges of sorted positions.
    tokens: Vec<(u32, u32)>,
    pub tops: Vec<NodeId>,
}

impl Gathered {
    /// Tokens at these positions come to a group.
    #[inline]
    fn add(&mut self, at: u32, (lo, hi): (u32, u32)) {
        let slot = &mut self.slots[at as usize];
        if slot.n_ranges > 0
            && let last = &mut self.tokens[slot.last_range as usize].1
            && last.1 == lo
        {
            last.1 = hi;
            return;
        }
        slot.n_ranges += 1;
        slot.last_range = self.tokens.len() as u32;
        self.tokens.push((at, (lo, hi)));
    }

    /// Tokens go on behind the piece from a node.
    #[inline]
    fn add_top(&mut self, at: u32, top: NodeId) {
        self.slots[at as usize].n_tops += 1;
        self.tops.push((at, top));
    }

    /// The groups one by one.
    fn apart(self) -> impl Iterator<Item = Growing> {
        let growing = |slot: &Slot| Growing {
            place: slot.place,
            tokens: Vec::with_capacity(slot.n_ranges as usize),
            tops: Vec::with_capacity(slot.n_tops as usize),
        };
        let mut groups: Vec<Growing> = self.slots.iter().map(growing).collect();
        self.tokens.into_iter().for_each(|(at, range)| groups[at as usize].tokens.push(range));
        self.tops.into_iter().for_each(|(at, top)| groups[at as usize].tops.push(top));
        groups.into_iter()
    }
}

/// What only is followed, where that is little.
struct Wanted {
    lexeme: LexemeId,
    /// Over at most so many nodes.
    most: usize,
    /// Of each place whether the lexeme can become something there.
    is_wanted: Vec<Option<bool>>,
}

/// A walk over a trie.
pub(crate) struct Sweeper<'a> {
    pub lexing: &'a Lexing,
    pub transducer: &'a mut Transducer,
    pub trie: &'a TokenTrie,
    places: &'a mut Places,
    gathered: Gathered,
    wanted: Option<Wanted>,
    pub n_steps: usize,
    /// See [`Sweep::asked`].
    pub asked: Bytes,
}

impl<'a> Sweeper<'a> {
    /// With `wanted`, only what this lexeme wants is followed, over at most so many nodes.
    pub fn new(
        lexing: &'a Lexing,
        transducer: &'a mut Transducer,
        trie: &'a TokenTrie,
        places: &'a mut Places,
        wanted: Option<(LexemeId, usize)>,
    ) -> Self {
        places.n_gathered += 1;
        let gathered = Gathered { number: places.n_gathered, ..Gathered::default() };
        let wanted = wanted.map(|(lexeme, most)| Wanted { lexeme, most, is_wanted: Vec::new() });
        let (n_steps, asked) = (0, Bytes::NONE);
        Self { lexing, transducer, trie, places, gathered, wanted, n_steps, asked }
    }

    /// The state before the first byte.
    pub fn begin(&mut self, start: Place) -> PlaceId {
        FRESH | self.places.id(self.lexing, self.transducer, start)
    }

    /// The place of a number.
    pub fn place(&self, id: PlaceId) -> Place {
        self.places.known[(id & !FRESH) as usize].place
    }

    /// The group of a place.
    #[inline]
    fn slot(&mut self, id: PlaceId) -> u32 {
        let known = &mut self.places.known[(id & !FRESH) as usize];
        if known.slot.0 != self.gathered.number {
            known.slot = (self.gathered.number, self.gathered.slots.len() as u32);
            self.gathered.slots.push(Slot { place: known.place, n_ranges: 0, last_range: 0, n_tops: 0 });
        }
        known.slot.1
    }

    /// Tokens at these positions come to a place.
    #[inline]
    pub fn add(&mut self, id: PlaceId, lo: usize, hi: usize) {
        if lo < hi {
            let slot = self.slot(id);
            self.gathered.add(slot, (lo as u32, hi as u32));
        }
    }

    /// The least level that is not below the height of a node.
    #[inline]
    fn level(&self, at: NodeId) -> usize {
        if self.places.levels.len() == 1 { 0 } else { self.level_of(self.trie.height_below(at)) }
    }

    #[inline]
    fn level_of(&self, height: usize) -> usize {
        // The levels are one less than powers of two.
        let height = height.saturating_add(self.places.beyond);
        ((usize::BITS - height.leading_zeros()) as usize).min(self.places.levels.len() - 1)
    }

    /// Where a byte leads from a place, to a node that has so many bytes below it, or [`NOWHERE`].
    #[inline]
    pub fn lead(&mut self, before: PlaceId, byte: u8, height: usize) -> Result<PlaceId, LexerError> {
        self.n_steps += 1;
        let class = self.lexing.lexicon.union.class(byte);
        self.next(before & !FRESH, class, self.level_of(height))
    }

    /// Where a class leads, or [`NOWHERE`].
    #[inline]
    fn next(&mut self, before: PlaceId, class: usize, level: usize) -> Result<PlaceId, LexerError> {
        let row = &self.places.rows[before as usize * self.places.levels.len() + level];
        match row.get(class) {
            Some(&next) if next != NOT_YET => Ok(next),
            _ => self.step(before, class, level),
        }
    }

    /// The place that a node leads to, or [`NOWHERE`], and the node's level.
    #[inline(always)]
    pub fn follow(&mut self, before: PlaceId, at: NodeId) -> Result<(PlaceId, usize), LexerError> {
        self.n_steps += 1;
        let class = self.lexing.lexicon.union.class(self.trie.byte(at));
        let is_fresh = before & FRESH != 0;
        let before = before & !FRESH;
        if !is_fresh && self.places.known[before as usize].can_end {
            self.note_top(before, class, at);
        }
        let level = self.level(at);
        let mut next = self.next(before, class, level)?;
        if next != NOWHERE && self.wanted.is_some() && !self.is_wanted(next)? {
            next = NOWHERE;
        }
        Ok((next, level))
    }

    /// Walks the trie from a place before the first byte, as far as pieces go on.
    pub fn walk(&mut self, start: PlaceId) -> Result<(), Stop> {
        let (trie, mut ancestors) = (self.trie, Vec::new());
        for (child, byte, height) in trie.root_children() {
            if self.lead(start, byte, height)? != NOWHERE {
                let nodes = trie.subtree(child);
                trie.descend_with(&mut ancestors, nodes, start, |&before, at| self.enter(before, at))?;
            }
        }
        Ok(())
    }

    /// The same of some subtrees of the trie.
    pub fn walk_below(&mut self, start: PlaceId, tops: &[NodeId]) -> Result<(), Stop> {
        let (trie, mut ancestors) = (self.trie, Vec::new());
        for &top in tops {
            let nodes = trie.subtree(top);
            trie.descend_with(&mut ancestors, nodes, start, |&before, at| self.enter(before, at))?;
        }
        Ok(())
    }

    /// The place that a node leads to; `None` if there is none, or if all below the node leads to it too.
    #[inline(always)]
    fn enter(&mut self, before: PlaceId, at: NodeId) -> Result<Option<PlaceId>, Stop> {
        if self.wanted.as_ref().is_some_and(|wanted| self.n_steps >= wanted.most) {
            return Err(Stop::TooMany);
        }
        let (next, level) = self.follow(before, at)?;
        if next == NOWHERE {
            return Ok(None);
        }
        let node = self.trie.node(at);
        let returns = self.returns(next, at, level)?;
        self.add(next, node.lo, if returns { node.hi } else { node.own_hi });
        Ok((!returns).then_some(next))
    }

    /// Whether there are tokens below a node, and all their characters lead from a place back to it.
    #[inline(always)]
    pub fn returns(&mut self, id: PlaceId, at: NodeId, level: usize) -> Result<bool, LexerError> {
        // Most nodes have none.
        if self.trie.end(at).0 == at.0 + 1 { Ok(false) } else { self.returns_below(id, at, level) }
    }

    fn returns_below(&mut self, id: PlaceId, at: NodeId, level: usize) -> Result<bool, LexerError> {
        if !self.trie.alphabet(at).is_text() {
            return Ok(false);
        }
        let known = &mut self.places.known[id as usize];
        let known = match known.returning.get(level).copied().flatten() {
            None => {
                // To look at all characters takes about as long as so many nodes.
                known.n_unknown = known.n_unknown.saturating_add(1);
                let is_worth_it = known.n_unknown >= SOME_NODES || self.trie.end(at).0 - at.0 >= SOME_NODES;
                if is_worth_it && self.may_return(id, NodeId(at.0 + 1))? {
                    Some(self.find_returning(id, level)?)
                } else {
                    None
                }
            }
            known => known,
        };
        Ok(known.is_some_and(|alphabet| self.trie.alphabet(at).is_subset(alphabet)))
    }

    #[cold]
    fn find_returning(&mut self, id: PlaceId, level: usize) -> Result<Alphabet, LexerError> {
        let how = (self.places.has_rests, self.places.levels[level]);
        let found = returning(self.transducer, self.lexing, self.place(id), how)?;
        let n_levels = self.places.levels.len();
        let known = &mut self.places.known[id as usize].returning;
        if known.is_empty() {
            *known = vec![None; n_levels].into();
            self.places.bytes += size_of_val(&**known);
        }
        known[level] = Some(found);
        Ok(found)
    }

    /// Whether the byte of a node leads from a place back to it, if it is a character: where it does not, not
    /// all characters need to be looked at.
    fn may_return(&mut self, id: PlaceId, at: NodeId) -> Result<bool, LexerError> {
        let (byte, level) = (self.trie.byte(at), self.level(at));
        let class = self.lexing.lexicon.union.class(byte);
        Ok(self.next(id, class, level)? == id || !byte.is_ascii())
    }

    /// If the piece may end before a node, tokens go on there.
    #[inline]
    fn note_top(&mut self, before: PlaceId, class: usize, at: NodeId) {
        let (n_classes, byte) = (self.places.n_classes, self.trie.byte(at));
        if !self.asked.contains(byte) {
            self.asked.insert(byte, byte);
        }
        let Known { place, follow, .. } = &mut self.places.known[before as usize];
        if follow.is_empty() {
            *follow = vec![None; n_classes].into();
            self.places.bytes += n_classes;
        }
        if *follow[class].get_or_insert_with(|| self.transducer.can_follow(self.lexing, *place, class)) {
            let slot = self.slot(before);
            self.gathered.add_top(slot, at);
        }
    }

    /// Where a byte class leads, or [`NOWHERE`]; asked once.
    #[cold]
    fn step(&mut self, before: PlaceId, class: usize, level: usize) -> Result<PlaceId, LexerError> {
        let (from, bytes) = (self.place(before), self.places.levels[level]);
        let union = &self.lexing.lexicon.union;
        let is_last = union.live(from.state()).is_empty();
        let next = match self.transducer.step_place_alike(self.lexing, from, class, bytes)? {
            None => NOWHERE,
            Some(place) => self.places.id(self.lexing, self.transducer, place),
        };
        let Places { rows, levels, n_classes, bytes, .. } = &mut *self.places;
        let row = &mut rows[before as usize * levels.len() + level];
        if row.is_empty() {
            *row = vec![if is_last { NOWHERE } else { NOT_YET }; *n_classes].into();
            *bytes += size_of_val(&**row);
            union.known(from.state(), DEAD).for_each(|class| row[class] = NOWHERE);
        }
        row[class] = next;
        // What preceding pieces owe may tell classes apart.
        if !is_last && !from.has_obligations() {
            let target = union.try_step(from.state(), class)?;
            union.known(from.state(), target).for_each(|class| row[class] = next);
        }
        Ok(next)
    }

    /// Whether the lexeme that is looked for can become something at a place.
    fn is_wanted(&mut self, id: PlaceId) -> Result<bool, LexerError> {
        let Some(wanted) = &mut self.wanted else { return Ok(true) };
        let at = id as usize;
        if wanted.is_wanted.len() <= at {
            wanted.is_wanted.resize(at + 1, None);
        }
        if let Some(known) = wanted.is_wanted[at] {
            return Ok(known);
        }
        let place = self.places.known[at].place;
        let is_wanted = self.transducer.may_come_to(self.lexing, wanted.lexeme, place)?;
        Ok(*wanted.is_wanted[at].insert(is_wanted))
    }

    /// Whether nothing was left out because it is not wanted.
    pub fn is_all(&self) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| !wanted.is_wanted.contains(&Some(false)))
    }

    /// The groups that were gathered.
    pub fn finish(self, n_words: usize) -> impl Iterator<Item = Group> {
        let trie = self.trie;
        self.gathered().filter_map(move |group| group.finish(trie, n_words))
    }

    /// The same, before they are groups.
    pub fn gathered(self) -> impl Iterator<Item = Growing> {
        self.gathered.apart()
    }

    /// Where a node leads from a place of another walk.
    #[inline]
    pub fn look(&mut self, before: PlaceId, at: NodeId, level: usize) -> Result<PlaceId, LexerError> {
        if before == NOWHERE {
            return Ok(NOWHERE);
        }
        let class = self.lexing.lexicon.union.class(self.trie.byte(at));
        self.next(before & !FRESH, class, level)
    }
}

impl Growing {
    /// Whether tokens come to it.
    pub fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// The tokens that come to it.
    pub fn token_ids(&self, trie: &TokenTrie) -> Vec<TokenId> {
        let ranges = self.tokens.iter().flat_map(|&(lo, hi)| &trie.order()[lo as usize..hi as usize]);
        ranges.copied().collect()
    }

    /// The group, if anything comes to it.
    pub fn finish(self, trie: &TokenTrie, n_words: usize) -> Option<Group> {
        let tokens = Tokens::of_ranges(trie, &self.tokens, n_words);
        let is_empty = self.tops.is_empty() && tokens.is_empty();
        (!is_empty).then(|| Group::new(self.place, Arc::new(tokens), self.tops))
    }
}

impl Group {
    pub(crate) fn new(place: Place, tokens: Arc<Tokens>, tops: Vec<NodeId>) -> Self {
        Self { place, found: Arc::new(Found::new(tokens, tops)) }
    }

    pub(crate) fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.found.memory_usage()
    }

    /// The same without a set of tokens that somebody else has too.
    pub(crate) fn own_memory_usage(&self) -> usize {
        let is_shared = Arc::strong_count(&self.found.tokens) > 1;
        self.memory_usage() - if is_shared { self.found.tokens.memory_usage() } else { 0 }
    }

    /// The tokens that end here.
    pub fn tokens(&self) -> &Arc<Tokens> {
        &self.found.tokens
    }

    /// The nodes of the trie below which stands what is left of other tokens if the piece ends here.
    pub fn tops(&self) -> &[NodeId] {
        &self.found.tops
    }

    /// What is left of tokens of a trie if the piece ends here; `None` if nothing is. Made once.
    pub(crate) fn beyond(&self, rests: &Rests, trie: (u64, &TokenTrie), n_words: usize) -> Option<Arc<Rest>> {
        let Found { tops, rest, .. } = &*self.found;
        (!tops.is_empty()).then(|| rest.get_or_init(|| rests.get(trie, tops, n_words)).clone())
    }
}

impl Found {
    pub fn new(tokens: Arc<Tokens>, tops: Vec<NodeId>) -> Self {
        Self { tokens, tops: tops.into(), rest: OnceLock::new(), n_shared: AtomicUsize::new(0) }
    }

    /// One more shared walk has it; its bytes, if that is the first.
    pub fn share(&self) -> usize {
        if self.n_shared.fetch_add(1, Ordering::Relaxed) == 0 { self.memory_usage() } else { 0 }
    }

    /// One less does; its bytes, if that was the last.
    pub fn unshare(&self) -> usize {
        if self.n_shared.fetch_sub(1, Ordering::Relaxed) == 1 { self.memory_usage() } else { 0 }
    }

    pub fn memory_usage(&self) -> usize {
        self.tokens.memory_usage() + size_of::<Self>() + size_of_val(&*self.tops)
    }

    /// A text that leads to its place from where the sweep began: a token, or what stands before one that
    /// goes on behind the piece. `position` says where a token stands in the trie.
    pub fn path(&self, trie: &TokenTrie, position: impl Fn(TokenId) -> Option<usize>) -> Option<Vec<u8>> {
        if let Some(token) = self.tokens.first() {
            return Some(trie.path_to(trie.node_of(position(token)?)));
        }
        let mut path = trie.path_to(*self.tops.first()?);
        path.pop();
        Some(path)
    }
}
