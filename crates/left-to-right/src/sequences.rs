//! The tree of terminal sequences that tokens can hold, and the search of it.
//!
//! Source: the Valiant paper, section 6. A token may end the piece in progress, hold whole pieces, and begin
//! another. From one lexeme, the ways in which that can happen form a tree: a node is a sequence of ends of
//! pieces, with the tokens that come so far, in groups. The tree depends on no parser state, so it is made
//! once per lexeme, as a flat array; a mask is a search for the nodes that the parser can follow. The search
//! goes in breadth until there are enough nodes for all workers, and then in depth from each, where a parser
//! state is given back as soon as its node is done: a worker needs no more states at a time than tokens hold
//! pieces (a *stack of tiers*).
//!
//! # What competes
//!
//! In `contextual` the longest match is taken among the terminals that the parser can read where the piece
//! begins. The tree is made as if nothing were known of them, and notes what has to be so: [*foes*](Foes) are
//! terminals that would have won over the piece that was cut, by a longer match or a higher rank, had they
//! competed. They are compared with what was viable where that piece began.
//!
//! # Doubts
//!
//! Whether what a token leaves in progress can be completed is nearly always a matter of which terminals are
//! viable. Where parsing and lexing depend on each other ([`anygram_lexer::boundary`]) that is necessary, but
//! may not be enough: such groups are *in doubt*, and if nothing else allows their tokens, somebody has to
//! ask the parser.
//!
//! This is the form in which masks are computed where many workers run side by side and memory is laid out
//! beforehand. On one core [`crate::mask`] is faster: it shares what is left of tokens after a piece, where
//! this tree repeats it. Where a piece can be cut anywhere (`[a-z]+` next to itself in `scannerless`), the
//! tree grows exponentially with the length of tokens, and a limit says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use anygram_bits::{BitSet, CompactSet};
use anygram_grammar::ir::{LexerMode, TerminalId};
use anygram_lexer::LexerError;
use anygram_lexer::dfa::START;
use anygram_lexer::transducer::{LexemeId, Lexing, ObligationsId};
use anygram_lexer::union::State;
use anygram_recognizer::{Mark, StateId};
use anygram_vocab::{TokenId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::frontier::Stepper;
use crate::language::{Language, StepError};
use crate::tokens::Tokens;

/// The tree of one lexeme.
pub struct Sequences {
    nodes: Vec<Node>,
}

/// A sequence of ends of pieces.
#[derive(Default)]
struct Node {
    /// What the parser may read at the last of them, and whether that piece may be ignored.
    scans: Box<[TerminalId]>,
    skip: bool,
    /// What may not be viable on the way, as far as it is known here and was not at the parent.
    foes: Foes,
    parent: u32,
    /// How many ends there are.
    depth: u32,
    children: Vec<u32>,
    /// The tokens that hold just these ends.
    groups: Vec<Group>,
}

/// Terminals that may not be viable at places on the way to a node: before this many ends of pieces, these.
pub type Foes = Box<[(u32, CompactSet)]>;

/// Tokens of a node.
pub struct Group {
    /// What may not be viable on the way, besides what may not at the node.
    pub foes: Foes,
    /// What of these has to be viable where the node's last piece ended: terminals, and, behind them, the end
    /// of the text.
    pub wanted: BitSet,
    /// Whether that is enough; otherwise the group is in doubt.
    pub is_sure: bool,
    /// The tokens.
    pub tokens: Arc<Tokens>,
}

/// A node as others see it, see [`Sequences::nodes`].
#[derive(Clone, Copy)]
pub struct NodeView<'a>(&'a Node);

impl<'a> NodeView<'a> {
    /// The labels of the last piece that ended.
    pub fn scans(&self) -> &'a [TerminalId] {
        &self.0.scans
    }

    /// Whether that piece may be ignored.
    pub fn skip(&self) -> bool {
        self.0.skip
    }

    /// What may not be viable on the way, besides what may not at the nodes before.
    pub fn foes(&self) -> &'a Foes {
        &self.0.foes
    }

    /// The nodes with one piece more; all come later.
    pub fn children(&self) -> &'a [u32] {
        &self.0.children
    }

    /// The tokens that hold just these ends, in groups.
    pub fn groups(&self) -> &'a [Group] {
        &self.0.groups
    }
}

/// What a search did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Search {
    /// Nodes that the parser could follow.
    pub reached: usize,
    /// Nodes reached in breadth; each has a parser state of its own.
    pub in_breadth: usize,
    /// The most parser states that the search in depth held at a time.
    pub stack: usize,
}

/// The rows that a search adds to.
pub struct Rows<'a> {
    /// Tokens that are allowed.
    pub allowed: &'a mut [u32],
    /// Tokens that may be allowed, some of them in the other row too.
    pub doubts: &'a mut [u32],
}

impl Sequences {
    /// The tree from a lexeme over a vocabulary. Cost: the nodes of the trie, once for each way to cut them.
    pub fn new(
        stepper: &mut Stepper,
        language: &Language,
        trie: &TokenTrie,
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Self, StepError> {
        language.needs_all_states("trees of terminal sequences")?;
        let lexing = language.lexing();
        let mut builder = Builder::new(lexing);
        let place = stepper.transducer().place(lexeme);
        let first = builder.intern(Piece {
            node: 0,
            state: place.state(),
            owed_before: place.obligations(),
            owed: Vec::new(),
            foes: Vec::new(),
        })?;
        let (mut tokens, mut unclear): (FxHashMap<u32, Vec<TokenId>>, FxHashMap<u32, Vec<TokenId>>) =
            Default::default();
        // The readings at all open nodes, those of the innermost last.
        let mut readings = vec![first];
        trie.descend(trie.below_root(), 0..1, |before: &Range<usize>, at| {
            readings.truncate(before.end);
            stepper.spend(before.len() + 1)?;
            let node = trie.node(at);
            let class = lexing.lexicon.union.class(node.byte);
            for reading in before.clone() {
                for &next in &*builder.step(stepper, readings[reading], class)? {
                    if builder.is_unclear(next) {
                        unclear.entry(next).or_default().extend_from_slice(trie.tokens_below(at));
                    } else {
                        readings.push(next);
                    }
                }
            }
            let own = before.end..readings.len();
            if node.lo < node.own_hi {
                for &reading in &readings[own.clone()] {
                    tokens.entry(reading).or_default().extend_from_slice(trie.tokens_at(at));
                }
            }
            Ok::<_, StepError>((!own.is_empty()).then_some(own))
        })?;
        let mut tokens: Vec<(u32, Vec<TokenId>)> = tokens.into_iter().collect();
        tokens.sort_unstable_by_key(|(reading, _)| *reading);
        for (reading, tokens) in tokens {
            builder.add_groups(stepper, reading, &Arc::new(Tokens::new(tokens, n_words)))?;
        }
        let mut unclear: Vec<(u32, Vec<TokenId>)> = unclear.into_iter().collect();
        unclear.sort_unstable_by_key(|(reading, _)| *reading);
        for (reading, tokens) in unclear {
            builder.add_unclear(reading, Tokens::new(tokens, n_words));
        }
        Ok(Self { nodes: builder.finished() })
    }

    /// The nodes, parents before their children; the first is the sequence of no ends.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeView<'_>> {
        self.nodes.iter().map(NodeView)
    }

    /// The number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The most ends of pieces that one token holds.
    pub fn depth(&self) -> usize {
        self.nodes.iter().map(|node| node.depth as usize).max().unwrap_or(0)
    }

    /// Adds the tokens that a parser state allows after the lexeme of this tree, and those in doubt.
    /// `workers` is how many nodes are reached in breadth before the search goes into depth.
    pub fn add_tokens(
        &self,
        stepper: &mut Stepper,
        state: StateId,
        workers: usize,
        rows: &mut Rows<'_>,
    ) -> Result<Search, StepError> {
        let mut search = Search::default();
        // Each node with the parser's states on the way to it.
        let mut queue = VecDeque::from([(0u32, vec![state])]);
        while queue.len() < workers.max(1)
            && let Some((node, way)) = queue.pop_front()
        {
            search.in_breadth += 1;
            self.visit(stepper, node, &way, rows, &mut search);
            for &child in &self.nodes[node as usize].children {
                if let Some(state) = self.follow(stepper, child, &way)? {
                    queue.push_back((child, way.iter().copied().chain([state]).collect()));
                }
            }
        }
        for (node, mut way) in queue {
            // Each node on the way, with the next child to look at and the point to go back to when it is
            // done.
            let mut stack: Vec<(u32, usize, Mark)> = vec![(node, 0, stepper.mark())];
            self.visit(stepper, node, &way, rows, &mut search);
            while let Some((node, next, mark)) = stack.last_mut() {
                let Some(&child) = self.nodes[*node as usize].children.get(*next) else {
                    stepper.release(*mark);
                    stack.pop();
                    way.pop();
                    continue;
                };
                *next += 1;
                let mark = stepper.mark();
                if let Some(state) = self.follow(stepper, child, &way)? {
                    way.push(state);
                    self.visit(stepper, child, &way, rows, &mut search);
                    stack.push((child, 0, mark));
                    search.stack = search.stack.max(stack.len());
                }
            }
        }
        Ok(search)
    }

    /// The parser's state after the last end of a node's sequence.
    fn follow(
        &self,
        stepper: &mut Stepper,
        node: u32,
        way: &[StateId],
    ) -> Result<Option<StateId>, StepError> {
        let Node { scans, skip, foes, depth, .. } = &self.nodes[node as usize];
        let from = way[*depth as usize - 1];
        if has_foes(stepper, foes, way) {
            return Ok(None);
        }
        stepper.read_piece(from, scans, *skip)
    }

    /// Adds the tokens of a node that the parser has come to.
    fn visit(&self, stepper: &Stepper, node: u32, way: &[StateId], rows: &mut Rows<'_>, search: &mut Search) {
        search.reached += 1;
        let recognizer = stepper.recognizer();
        let state = way[way.len() - 1];
        let (viable, is_sentence) = (recognizer.viable(state), recognizer.is_sentence(state));
        for Group { foes, wanted, is_sure, tokens } in &self.nodes[node as usize].groups {
            let end = wanted.len() - 1;
            let is_wanted = (is_sentence && wanted.contains(end))
                || viable.iter().any(|terminal| wanted.contains(terminal));
            if is_wanted && !has_foes(stepper, foes, way) {
                tokens.add_to(if *is_sure { rows.allowed } else { rows.doubts });
            }
        }
    }
}

/// Whether some foes are viable on a way.
fn has_foes(stepper: &Stepper, foes: &Foes, way: &[StateId]) -> bool {
    let viable = |depth: u32| stepper.recognizer().viable(way[depth as usize]);
    foes.iter().any(|(depth, foes)| foes.intersects_bits(viable(*depth)))
}

/// What is known of the text between two bytes of a token.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Piece {
    node: u32,
    /// The state of the union automaton since the piece in progress began.
    state: State,
    /// What pieces owe that ended before the tree.
    owed_before: ObligationsId,
    /// States that must not accept any more, each with the ends of pieces before the one that owes it (in
    /// `longest`, where all compete: 0).
    owed: Vec<(u32, State)>,
    /// What accepted nevertheless since the node, in `contextual`.
    foes: Vec<(u32, CompactSet)>,
}

/// A cut: the node before, what was read, whether it may be ignored, and what may not be viable.
type Cut = (u32, Box<[TerminalId]>, bool, Foes);

/// A tree in the making.
struct Builder<'a> {
    lexing: &'a Lexing,
    nodes: Vec<Node>,
    child_of: FxHashMap<Cut, u32>,
    pieces: Vec<Piece>,
    /// Of each piece how often on the way to it other things may not be viable than before.
    n_guesses: Vec<usize>,
    ids: FxHashMap<Piece, u32>,
    /// Where a byte class leads from a piece.
    steps: FxHashMap<(u32, usize), Arc<[u32]>>,
}

/// Where what may not be viable changes more often behind the first pieces of a token, or does so at all and
/// there are so many pieces, the rest is not looked into: operators that are longer than others (`<`, `<<`,
/// `<<=`) can cut a long row of such characters in a great many ways, nearly all of which some foe rules out.
/// (What competes with all pieces alike changes nothing.)
const MOST_GUESSES: usize = 2;
const MOST_GUESSED: u32 = 8;
const FIRST_PIECES: usize = 2;

/// Of so many debts all subsets are looked at.
const FEW_DEBTS: usize = 4;

impl<'a> Builder<'a> {
    fn new(lexing: &'a Lexing) -> Self {
        Self {
            lexing,
            nodes: vec![Node::default()],
            child_of: FxHashMap::default(),
            pieces: Vec::new(),
            n_guesses: Vec::new(),
            ids: FxHashMap::default(),
            steps: FxHashMap::default(),
        }
    }

    fn intern(&mut self, piece: Piece) -> Result<u32, LexerError> {
        if let Some(&known) = self.ids.get(&piece) {
            return Ok(known);
        }
        let (id, limit) = (self.pieces.len(), self.lexing.limits().lexemes);
        if id.max(self.nodes.len()) > limit {
            return Err(LexerError::TooManyLexemes { limit });
        }
        self.n_guesses.push(self.count_guesses(&piece));
        self.pieces.push(piece.clone());
        self.ids.insert(piece, id as u32);
        Ok(id as u32)
    }

    fn count_guesses(&self, piece: &Piece) -> usize {
        let depth = self.nodes[piece.node as usize].depth as usize;
        let mut foes: Vec<Vec<&CompactSet>> = vec![Vec::new(); depth];
        self.foes_to(piece.node).chain(&piece.foes).for_each(|(depth, set)| foes[*depth as usize].push(set));
        // Of the last piece that ended it may not be known yet.
        foes.pop_if(|foes| foes.is_empty());
        let n_free = foes.iter().take(FIRST_PIECES).take_while(|foes| foes.is_empty()).count();
        foes[n_free..].windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    /// Whether too much was assumed for a piece to be followed any further.
    fn is_unclear(&self, piece: u32) -> bool {
        let n_guesses = self.n_guesses[piece as usize];
        let depth = self.nodes[self.pieces[piece as usize].node as usize].depth;
        n_guesses > MOST_GUESSES || (n_guesses > 0 && depth > MOST_GUESSED)
    }

    /// The pieces that one becomes by a byte.
    fn step(&mut self, stepper: &mut Stepper, piece: u32, class: usize) -> Result<Arc<[u32]>, StepError> {
        if let Some(known) = self.steps.get(&(piece, class)) {
            return Ok(known.clone());
        }
        let next: Arc<[u32]> = self.compute_step(stepper, piece, class)?.into();
        self.steps.insert((piece, class), next.clone());
        Ok(next)
    }

    fn compute_step(
        &mut self,
        stepper: &mut Stepper,
        piece: u32,
        class: usize,
    ) -> Result<Vec<u32>, StepError> {
        let (lexing, mut next) = (self.lexing, Vec::new());
        let (lexicon, union, mode) = (&lexing.lexicon, &lexing.lexicon.union, lexing.mode());
        let Some(before) = self.after(stepper, piece, class) else { return Ok(next) };
        let (node, state) = (before.node, union.step(self.pieces[piece as usize].state, class));
        if !union.live(state).is_empty() {
            let stay = Piece { state, ..before.clone() };
            if self.can_be(stepper, &stay)? {
                next.push(self.intern(stay)?);
            }
        }
        let accepts = union.accepts(state);
        let mut owed = before.owed.clone();
        if mode != LexerMode::Scannerless && !accepts.is_empty() && !union.live(state).is_empty() {
            let debt = match mode {
                LexerMode::Longest => (0, union.blind(state)),
                _ => (self.nodes[node as usize].depth, state),
            };
            owed.push(debt);
            owed.sort_unstable();
            owed.dedup();
        }
        let mut preferred = BitSet::new(lexing.cfg.n_terminals);
        // In `contextual` labels of a lower rank count where those of higher ranks do not compete; what is
        // ignored always does.
        while !preferred.intersects(&lexicon.ignored) {
            let labels = lexicon.labels(state, |label| !preferred.contains(label));
            if labels.is_empty() {
                break;
            }
            let skip = labels.iter().any(|&label| lexicon.ignored.contains(label));
            let used = labels.iter().filter(|&&label| lexicon.used.contains(label));
            let scans: Box<[TerminalId]> = used.map(|&label| TerminalId::new(label)).collect();
            if skip || !scans.is_empty() {
                let mut boundary =
                    Piece { state: START, owed: owed.clone(), foes: Vec::new(), ..before.clone() };
                if self.can_be(stepper, &boundary)? {
                    let depth = self.nodes[node as usize].depth;
                    let own = (preferred.count() > 0).then(|| (depth, CompactSet::from_bits(&preferred)));
                    let foes = before.foes.iter().cloned().chain(own).collect();
                    boundary.node = self.child((node, scans, skip, foes));
                    next.push(self.intern(boundary)?);
                }
            }
            if mode != LexerMode::Contextual {
                break;
            }
            preferred.extend(labels);
        }
        Ok(next)
    }

    /// What pieces that ended owe after one more byte, and what would have won over them; `None` if that is
    /// certain.
    fn after(&self, stepper: &mut Stepper, piece: u32, class: usize) -> Option<Piece> {
        let (lexing, piece) = (self.lexing, &self.pieces[piece as usize]);
        let union = &lexing.lexicon.union;
        let owed_before = stepper.transducer_mut().step_obligations(lexing, piece.owed_before, class)?;
        let mut foes: BTreeMap<u32, BitSet> = BTreeMap::new();
        // As long as the sets of the automaton.
        let n_terminals = lexing.cfg.n_terminals + 1;
        for (depth, set) in &piece.foes {
            set.add_to(foes.entry(*depth).or_insert_with(|| BitSet::new(n_terminals)));
        }
        let mut owed = Vec::with_capacity(piece.owed.len());
        for &(depth, state) in &piece.owed {
            let next = union.step(state, class);
            let accepts = union.accepts(next);
            if !accepts.is_empty() {
                if lexing.mode() == LexerMode::Longest {
                    return None;
                }
                let known: BTreeSet<usize> = self
                    .foes_to(piece.node)
                    .filter(|foes| foes.0 == depth)
                    .flat_map(|foes| foes.1.iter())
                    .collect();
                let new: Vec<usize> = accepts.iter().filter(|terminal| !known.contains(terminal)).collect();
                if !new.is_empty() {
                    let set = foes.entry(depth).or_insert_with(|| BitSet::new(n_terminals));
                    set.extend(new);
                    if self.is_among(piece.node, depth, set) {
                        return None;
                    }
                }
            }
            if !union.live(next).is_empty() {
                owed.push((
                    depth,
                    if lexing.mode() == LexerMode::Longest { union.blind(next) } else { next },
                ));
            }
        }
        owed.sort_unstable();
        owed.dedup();
        let foes = foes.into_iter().map(|(depth, set)| (depth, CompactSet::from_bits(&set))).collect();
        Some(Piece { owed_before, owed, foes, ..piece.clone() })
    }

    /// Whether one of these terminals has competed for the piece that ended on the way to a node after so
    /// many others: what is ignored always has, and what was read.
    fn is_among(&self, mut node: u32, depth: u32, terminals: &BitSet) -> bool {
        while self.nodes[node as usize].depth > depth + 1 {
            node = self.nodes[node as usize].parent;
        }
        let Node { scans, skip, .. } = &self.nodes[node as usize];
        let is_only = !skip && scans.iter().all(|scan| terminals.contains(scan.index()));
        is_only || self.lexing.lexicon.ignored.iter().any(|ignored| terminals.contains(ignored))
    }

    /// What may not be viable on the way to a node.
    fn foes_to(&self, node: u32) -> impl Iterator<Item = &(u32, CompactSet)> {
        let way =
            std::iter::successors(Some(node), |&node| (node > 0).then(|| self.nodes[node as usize].parent));
        way.flat_map(|node| &self.nodes[node as usize].foes)
    }

    fn child(&mut self, cut: Cut) -> u32 {
        if let Some(&known) = self.child_of.get(&cut) {
            return known;
        }
        let (id, (parent, scans, skip, foes)) = (self.nodes.len() as u32, cut.clone());
        let depth = self.nodes[parent as usize].depth + 1;
        self.nodes[parent as usize].children.push(id);
        self.nodes.push(Node { scans, skip, foes, parent, depth, ..Node::default() });
        self.child_of.insert(cut, id);
        id
    }

    /// Whether something can come of a piece.
    fn can_be(&self, stepper: &Stepper, piece: &Piece) -> Result<bool, StepError> {
        // In `longest` what is owed may leave nothing to go on with.
        Ok(self.lexing.mode() != LexerMode::Longest
            || self.finish(stepper, piece, &piece.owed)?.is_some_and(|finish| !finish.is_empty()))
    }

    /// The node of the automaton of pieces if all terminals had competed, with these debts.
    fn node(
        &self,
        stepper: &Stepper,
        piece: &Piece,
        owed: &[(u32, State)],
    ) -> Result<Option<usize>, StepError> {
        let Some(boundaries) = self.lexing.boundaries() else { return Ok(None) };
        let (lexicon, union) = (&self.lexing.lexicon, &self.lexing.lexicon.union);
        let before = stepper.transducer().owed(piece.owed_before);
        let owed = before.chain(owed.iter().map(|&(_, state)| state)).map(|state| union.blind(state));
        Ok(boundaries.find_node(lexicon, piece.state, owed)?)
    }

    fn finish(
        &self,
        stepper: &Stepper,
        piece: &Piece,
        owed: &[(u32, State)],
    ) -> Result<Option<&'a CompactSet>, StepError> {
        let node = self.node(stepper, piece, owed)?;
        Ok(node.and_then(|node| Some(self.lexing.boundaries()?.finish(node))))
    }

    /// The outcomes of which one is enough for a piece to be completed, with these debts.
    fn sure(&self, stepper: &Stepper, piece: &Piece, owed: &[(u32, State)]) -> Result<BitSet, StepError> {
        let lexing = self.lexing;
        let end = lexing.cfg.n_terminals;
        let mut sure = BitSet::new(end + 1);
        let (is_contextual, is_boundary) = (lexing.mode() == LexerMode::Contextual, piece.state == START);
        if is_contextual && is_boundary {
            sure.insert(end);
        }
        if lexing.mode() == LexerMode::Scannerless {
            return Ok(self.possible(piece));
        }
        let (Some(boundaries), Some(node)) = (lexing.boundaries(), self.node(stepper, piece, owed)?) else {
            return Ok(sure);
        };
        if let Some(enough) = boundaries.enough(node) {
            // From the boundary that ignored pieces lead to, whatever was begun can be completed.
            if enough.contains(end) {
                return Ok(BitSet::full(end + 1));
            }
            enough.add_to(&mut sure);
        }
        if boundaries.finish(node).contains(end) {
            sure.insert(end);
        }
        Ok(sure)
    }

    /// The outcomes of which one is necessary for a piece to be completed.
    fn possible(&self, piece: &Piece) -> BitSet {
        let lexing = self.lexing;
        let mut possible = BitSet::new(lexing.cfg.n_terminals + 1);
        lexing.lexicon.union.live(piece.state).add_to(&mut possible);
        // In any state something is viable.
        if piece.state == START || lexing.lexicon.ignored.iter().any(|ignored| possible.contains(ignored)) {
            return BitSet::full(possible.len());
        }
        possible
    }

    fn add_groups(&mut self, stepper: &Stepper, piece: u32, tokens: &Arc<Tokens>) -> Result<(), StepError> {
        let (lexing, piece) = (self.lexing, self.pieces[piece as usize].clone());
        let mut groups = Vec::new();
        let mut add = |foes: &[(u32, CompactSet)], wanted: &BitSet, is_sure| {
            if wanted.count() > 0 {
                groups.push(Group {
                    foes: foes.into(),
                    wanted: wanted.clone(),
                    is_sure,
                    tokens: tokens.clone(),
                });
            }
        };
        let sure = self.sure(stepper, &piece, &piece.owed)?;
        add(&piece.foes, &sure, true);
        let possible = match lexing.mode() {
            LexerMode::Longest => {
                let mut finish = BitSet::new(sure.len());
                if let Some(set) = self.finish(stepper, &piece, &piece.owed)? {
                    set.add_to(&mut finish);
                }
                finish
            }
            LexerMode::Scannerless | LexerMode::Contextual => self.possible(&piece),
        };
        if !possible.is_subset(&sure) {
            if lexing.mode() == LexerMode::Contextual {
                for (foes, wanted) in self.without_debts(stepper, &piece, &sure)? {
                    add(&foes, &wanted, true);
                }
            }
            add(&piece.foes, &possible, false);
        }
        self.nodes[piece.node as usize].groups.append(&mut groups);
        Ok(())
    }

    /// Tokens that begin with a piece and are not looked into any further.
    fn add_unclear(&mut self, piece: u32, tokens: Tokens) {
        let Piece { node, foes, .. } = &self.pieces[piece as usize];
        let group = Group {
            foes: foes.clone().into(),
            wanted: BitSet::full(self.lexing.cfg.n_terminals + 1),
            is_sure: false,
            tokens: Arc::new(tokens),
        };
        self.nodes[*node as usize].groups.push(group);
    }

    /// The nodes, without ways that lead to no tokens.
    fn finished(mut self) -> Vec<Node> {
        let mut is_of_use = vec![false; self.nodes.len()];
        for at in (0..self.nodes.len()).rev() {
            let node = &mut self.nodes[at];
            node.children.retain(|&child| is_of_use[child as usize]);
            is_of_use[at] = !node.groups.is_empty() || !node.children.is_empty();
        }
        self.nodes
    }

    /// What is enough for a piece to be completed where some debts are none, because nothing competed that
    /// could have had a longer match.
    fn without_debts(
        &self,
        stepper: &Stepper,
        piece: &Piece,
        sure: &BitSet,
    ) -> Result<Vec<(Foes, BitSet)>, StepError> {
        let (lexing, n_debts) = (self.lexing, piece.owed.len());
        let subsets: Vec<usize> =
            if n_debts <= FEW_DEBTS { (1..1 << n_debts).collect() } else { vec![usize::MAX] };
        let mut found = Vec::new();
        'subsets: for left_out in subsets {
            let is_out = |at: usize| left_out >> at.min(usize::BITS as usize - 1) & 1 == 1;
            let mut foes: BTreeMap<u32, BitSet> = BTreeMap::new();
            let mut add = |depth, set: &CompactSet| -> bool {
                let known = foes.entry(depth).or_insert_with(|| BitSet::new(lexing.cfg.n_terminals + 1));
                set.add_to(known);
                self.is_among(piece.node, depth, known)
            };
            let mut owed = Vec::new();
            for (at, &(depth, state)) in piece.owed.iter().enumerate() {
                if !is_out(at) {
                    owed.push((depth, state));
                } else if add(depth, lexing.lexicon.union.live(state)) {
                    continue 'subsets;
                }
            }
            let wanted = self.sure(stepper, piece, &owed)?;
            if !wanted.is_subset(sure) {
                for (depth, set) in &piece.foes {
                    add(*depth, set);
                }
                let foes =
                    foes.into_iter().map(|(depth, set)| (depth, CompactSet::from_bits(&set))).collect();
                found.push((foes, wanted));
            }
        }
        Ok(found)
    }
}
