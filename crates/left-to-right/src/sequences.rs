//! The tree of terminal sequences that tokens can hold, and the search of it.
//!
//! Source: the Valiant paper, section 6. A token may end the piece in progress, hold whole pieces, and begin another. From one lexeme, the ways in
//! which that can happen form a tree: a node is a sequence of ends of pieces, with the tokens that come so far and the lexemes in which they
//! leave the text. The tree depends on no parser state, so it is made once per lexeme, as a flat array; a mask is a search for the nodes that the
//! parser can follow. The search goes in breadth until there are enough nodes for all workers, and then in depth from each, where a parser state is
//! given back as soon as its node is done: a worker needs no more states at a time than tokens hold pieces (a *stack of tiers*).
//!
//! This is the form in which masks are computed where many workers run side by side and memory is laid out beforehand. It is exact in `scannerless` and
//! `longest`; in `contextual`, where what competes depends on the parser, there is no such tree. On one core [`crate::mask`] is faster: it shares what
//! is left of tokens after a piece, where this tree repeats it. Where a piece can be cut anywhere (`[a-z]+` next to itself in `scannerless`), the
//! tree grows exponentially with the length of tokens, and a limit says so.

use std::collections::VecDeque;

use anygram_bits::BitSet;
use anygram_grammar::ir::{LexerMode, TerminalId};
use anygram_lexer::LexerError;
use anygram_lexer::transducer::{CutId, FreeLexeme, LexemeId, Transducer};
use anygram_recognizer::{Mark, StateId};
use anygram_vocab::{NodeId, TokenId, TokenTrie};
use rustc_hash::FxHashMap;

use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};
use crate::mask::Tokens;

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
    children: Vec<u32>,
    /// The tokens that hold just these ends, by the lexeme that they leave in progress.
    groups: Vec<Group>,
}

/// Tokens of a node that leave one lexeme in progress.
struct Group {
    lexeme: FreeLexeme,
    /// What can come of the lexeme: terminals, and the end of the text behind them.
    wanted: BitSet,
    tokens: Tokens,
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

    /// The nodes with one piece more; all come later.
    pub fn children(&self) -> &'a [u32] {
        &self.0.children
    }

    /// The tokens that hold just these ends, in groups: with each the terminals, and behind them the end of the text, of which one has to be possible
    /// in the parser's state, or be ignored, for the group to be. (If parsing and lexing depend on each other, that is necessary and no more.)
    pub fn groups(&self) -> impl Iterator<Item = (&'a BitSet, &'a Tokens)> {
        self.0.groups.iter().map(|group| (&group.wanted, &group.tokens))
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

impl Sequences {
    /// The tree from a lexeme over a vocabulary. `None` in `contextual`. Cost: the nodes of the trie, once for each way to cut them.
    pub fn new(
        stepper: &mut Stepper,
        language: &Language,
        trie: &TokenTrie,
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Option<Self>, StepError> {
        let lexing = language.lexing();
        if lexing.mode() == LexerMode::Contextual {
            return Ok(None);
        }
        // Lexemes of which everything is wanted.
        let mut free = Transducer::default();
        let all = free.wanted(lexing, &lexing.lexicon.used, true);
        let origin = stepper.transducer().free(lexeme);
        let Some(first) = free.bind(lexing, &origin, all)? else {
            return Ok(Some(Self { nodes: vec![Node::default()] }));
        };
        let mut nodes = vec![Node::default()];
        let mut child_of: FxHashMap<(u32, CutId), u32> = FxHashMap::default();
        let mut tokens: FxHashMap<(u32, LexemeId), Vec<TokenId>> = FxHashMap::default();
        let last = NodeId(trie.n_nodes() as u32);
        let mut readings = vec![(0, first)];
        // Ends of subtrees, and where the readings before them begin.
        let mut ancestors = vec![(last, 0)];
        let mut at = NodeId(1);
        while at < last {
            while let Some(&(end, from)) = ancestors.last()
                && at >= end
            {
                readings.truncate(from);
                ancestors.pop();
            }
            let Some(&(_, from)) = ancestors.last() else { break };
            let (place, to) = (trie.node(at), readings.len());
            stepper.spend(to - from + 1)?;
            for reading in from..to {
                let (node, lexeme) = readings[reading];
                let step = free.step(lexing, lexeme, place.byte)?;
                readings.extend(step.stay.map(|lexeme| (node, lexeme)));
                let Some(id) = step.cut else { continue };
                let cut = free.cut(id).clone();
                let Some(boundary) = free.boundary(lexing, all, cut.obligations)? else { continue };
                let fresh = nodes.len() as u32;
                let child = *child_of.entry((node, id)).or_insert_with(|| {
                    nodes[node as usize].children.push(fresh);
                    nodes.push(Node { scans: cut.scans, skip: cut.skip, ..Node::default() });
                    fresh
                });
                readings.push((child, boundary));
            }
            if nodes.len() > lexing.limits().lexemes {
                return Err(LexerError::TooManyLexemes { limit: lexing.limits().lexemes }.into());
            }
            if readings.len() == to {
                at = place.end;
                continue;
            }
            if place.lo < place.own_hi {
                for &reading in &readings[to..] {
                    tokens.entry(reading).or_default().extend_from_slice(trie.tokens_at(at));
                }
            }
            ancestors.push((place.end, to));
            at = NodeId(at.0 + 1);
        }
        for ((node, lexeme), tokens) in tokens {
            let (lexeme, wanted) = (free.free(lexeme), free.outcomes(lexing, lexeme));
            nodes[node as usize].groups.push(Group { lexeme, wanted, tokens: Tokens::new(tokens, n_words) });
        }
        Ok(Some(Self { nodes }))
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
        let mut depths = vec![0; self.nodes.len()];
        // Children stand after their parents.
        for (at, node) in self.nodes.iter().enumerate() {
            node.children.iter().for_each(|&child| depths[child as usize] = depths[at] + 1);
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Adds the bits of the tokens that a parser state allows after the lexeme of this tree. `workers` is how many nodes are reached in breadth
    /// before the search goes into depth.
    pub fn add_tokens(
        &self,
        stepper: &mut Stepper,
        language: &Language,
        state: StateId,
        workers: usize,
        words: &mut [u32],
    ) -> Result<Search, StepError> {
        let mut search = Search::default();
        let mut queue = VecDeque::from([(0u32, state)]);
        while queue.len() < workers.max(1)
            && let Some((node, state)) = queue.pop_front()
        {
            search.in_breadth += 1;
            self.visit(stepper, language, node, state, words, &mut search)?;
            for &child in &self.nodes[node as usize].children {
                queue.extend(self.follow(stepper, child, state)?.map(|state| (child, state)));
            }
        }
        for (node, state) in queue {
            // Each node on the way, with the next child to look at and the point to go back to when it is done.
            let mut stack: Vec<(u32, StateId, usize, Mark)> = vec![(node, state, 0, stepper.mark())];
            self.visit(stepper, language, node, state, words, &mut search)?;
            while let Some((node, state, next, mark)) = stack.last_mut() {
                let Some(&child) = self.nodes[*node as usize].children.get(*next) else {
                    stepper.release(*mark);
                    stack.pop();
                    continue;
                };
                *next += 1;
                let (state, mark) = (*state, stepper.mark());
                if let Some(state) = self.follow(stepper, child, state)? {
                    self.visit(stepper, language, child, state, words, &mut search)?;
                    stack.push((child, state, 0, mark));
                    search.stack = search.stack.max(stack.len());
                }
            }
        }
        Ok(search)
    }

    /// The parser's state after the last end of a node's sequence.
    fn follow(&self, stepper: &mut Stepper, node: u32, from: StateId) -> Result<Option<StateId>, StepError> {
        let Node { scans, skip, .. } = &self.nodes[node as usize];
        stepper.read_piece(from, scans, *skip)
    }

    /// Adds the tokens of a node that the parser has come to.
    fn visit(
        &self,
        stepper: &mut Stepper,
        language: &Language,
        node: u32,
        state: StateId,
        words: &mut [u32],
        search: &mut Search,
    ) -> Result<(), StepError> {
        search.reached += 1;
        for Group { lexeme, tokens, .. } in &self.nodes[node as usize].groups {
            if tokens.is_subset(words) {
                continue;
            }
            if let Some(lexeme) = stepper.bind(language, state, lexeme)?
                && stepper.is_viable(language, &[Config { state, lexeme }])?
            {
                tokens.add_to(words);
            }
        }
        Ok(())
    }
}
