//! All lexings of a partial output in one automaton over terminals.
//!
//! States are places where a piece begins: within a fragment a place before a byte; at a gap the set of
//! pieces that can be in progress when it ends, by which equal gaps are equal. A terminal that straddles gaps
//! needs no care: what is in progress at the end of a fragment goes on in the gap, as anything that bytes can
//! make of it, and what is in progress at the end of the gap goes on in the next fragment.
//!
//! | module | what |
//! |---|---|
//! | [`completions`] | a canvas as fragments, holes and gaps |
//! | `lexemes` | pieces in progress |
//! | [`tables`] | what fragments, holes and gaps do to sets of pieces, kept from canvas to canvas |
//! | [`parse`] | the grammar parsed over the automaton |
//! | [`spell`] | a text of the terminals on a way through it |

use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::Constraint;
use anygram_left_to_right::language::StepError;
use rustc_hash::FxHashMap;

pub mod completions;
pub(crate) mod lexemes;
pub mod parse;
pub mod spell;
pub mod tables;

use completions::{Completions, Item};
use lexemes::{FIRST, Lexeme};
use tables::{Hole, Outcome, Reach, SetId, Tables, Target, filler};

/// A place where a piece begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Node {
    /// Within the fragment that is this item.
    Inside(u32, u32),
    /// In the gap that is this item, with what can be in progress.
    Open(u32, u32),
    /// Before this item, no gap, with these pieces in progress.
    Before(u32, SetId),
    /// Within a token of this item, a hole, with what is left of tokens.
    Within(u32, SetId),
}

impl Node {
    pub fn item(self) -> usize {
        match self {
            Self::Inside(item, _) | Self::Open(item, _) | Self::Before(item, _) | Self::Within(item, _) => {
                item as usize
            }
        }
    }
}

/// Where a terminal leads.
#[derive(Clone, Copy)]
enum To {
    Node(Node),
    /// Before this item, with this boundary.
    End(u32, Lexeme),
}

/// What is read within one item.
#[derive(Clone)]
enum Source {
    Nothing,
    Gap(u32, Arc<[(TerminalId, u32)]>),
    Hole(u32, Arc<Hole>),
    Fragment(u32, Arc<Outcome>),
    Special(u32, TerminalId),
}

/// The part of a list, sorted by terminals, that is of one.
fn of<T>(list: &[(TerminalId, T)], terminal: TerminalId) -> &[(TerminalId, T)] {
    let from = list.partition_point(|entry| entry.0 < terminal);
    let n = list[from..].iter().take_while(|entry| entry.0 == terminal).count();
    &list[from..from + n]
}

impl Source {
    fn is_empty(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Gap(_, leads) => leads.is_empty(),
            Self::Hole(_, hole) => hole.inside.is_empty() && hole.ends.is_empty(),
            Self::Fragment(_, outcome) => outcome.edges.is_empty(),
            Self::Special(..) => false,
        }
    }

    /// What is read, and where it leads.
    fn all(&self) -> Vec<(TerminalId, To)> {
        self.of_lists(|list| list, |list| list, |list| list, |list| list)
    }

    /// Where a terminal leads.
    fn of(&self, terminal: TerminalId) -> Vec<To> {
        let found = self.of_lists(
            |list| of(list, terminal),
            |list| of(list, terminal),
            |list| of(list, terminal),
            |list| of(list, terminal),
        );
        found.into_iter().filter(|(read, _)| *read == terminal).map(|(_, to)| to).collect()
    }

    fn of_lists(
        &self,
        gap: impl Fn(&[(TerminalId, u32)]) -> &[(TerminalId, u32)],
        inside: impl Fn(&[(TerminalId, SetId)]) -> &[(TerminalId, SetId)],
        ends: impl Fn(&[(TerminalId, Lexeme)]) -> &[(TerminalId, Lexeme)],
        edges: impl Fn(&[(TerminalId, Target)]) -> &[(TerminalId, Target)],
    ) -> Vec<(TerminalId, To)> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Gap(item, leads) => {
                gap(leads).iter().map(|&(read, reach)| (read, To::Node(Node::Open(*item, reach)))).collect()
            }
            Self::Hole(item, hole) => {
                let inside = inside(&hole.inside).iter();
                let inside = inside.map(|&(read, set)| (read, To::Node(Node::Within(*item, set))));
                let ends = ends(&hole.ends).iter().map(|&(read, lexeme)| (read, To::End(*item + 1, lexeme)));
                inside.chain(ends).collect()
            }
            Self::Fragment(item, outcome) => {
                let to = |target: Target| match target {
                    Target::Inside(place) => To::Node(Node::Inside(*item, place)),
                    Target::End(lexeme) => To::End(*item + 1, lexeme),
                };
                edges(&outcome.edges).iter().map(|&(read, target)| (read, to(target))).collect()
            }
            Self::Special(item, read) => vec![(*read, To::End(*item + 1, FIRST))],
        }
    }
}

/// What is read next, as far as it does not depend on what was read: in one item, and in those behind it.
#[derive(Clone)]
struct Leads {
    source: Source,
    /// Whether the text may end before or behind it, with nothing read.
    accepts: bool,
    behind: u32,
}

/// Where nothing is read.
const NOTHING: u32 = 0;

/// The automaton over terminals, its states made as they are asked for.
pub struct Lexings<'a> {
    pub(crate) tables: &'a mut Tables,
    pub(crate) constraint: &'a Constraint,
    pub(crate) completions: &'a Completions,
    /// Of each item that is a fragment its number in the tables.
    fragments: Vec<u32>,
    nodes: Vec<Node>,
    ids: FxHashMap<Node, u32>,
    edges: Vec<Option<Arc<NodeEdges>>>,
    after: FxHashMap<(u32, TerminalId), Arc<[u32]>>,
    /// Of each state what is read from it on, once that is known.
    heads: Vec<Option<u32>>,
    leads: Vec<Leads>,
    /// The same before an item with pieces in progress.
    known: FxHashMap<(u32, SetId), u32>,
}

/// What leads on from a state.
pub struct NodeEdges {
    /// By terminal.
    pub edges: Vec<(TerminalId, u32)>,
    /// Whether the text may end there.
    pub accepts: bool,
}

impl<'a> Lexings<'a> {
    /// No states yet. Tables and completions are of this constraint; with those of another one the states
    /// mean nothing.
    pub fn new(tables: &'a mut Tables, constraint: &'a Constraint, completions: &'a Completions) -> Self {
        let id = |item: &Item| match item {
            Item::Fragment(text) => tables.fragment(text),
            _ => u32::MAX,
        };
        let fragments = completions.items.iter().map(id).collect();
        Self {
            tables,
            constraint,
            completions,
            fragments,
            nodes: Vec::new(),
            ids: FxHashMap::default(),
            edges: Vec::new(),
            after: FxHashMap::default(),
            heads: Vec::new(),
            leads: vec![Leads { source: Source::Nothing, accepts: false, behind: NOTHING }],
            known: FxHashMap::default(),
        }
    }

    /// The state before the text.
    pub fn start(&mut self, work: &mut Work) -> Result<u32, StepError> {
        let set = self.tables.intern(vec![(0, FIRST)]);
        let node = self.before(0, set, work)?;
        Ok(self.node(node))
    }

    /// The number of states that were made.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The gap in which a state is, by the number of its item.
    pub fn gap_of(&self, node: u32) -> Option<usize> {
        match self.at(node) {
            Node::Open(item, _) => Some(item as usize),
            Node::Inside(..) | Node::Before(..) | Node::Within(..) => None,
        }
    }

    pub(crate) fn at(&self, node: u32) -> Node {
        self.nodes[node as usize]
    }

    /// Bytes that have to stand in a gap for a terminal to be read between two states, as far as the states
    /// tell.
    pub(crate) fn n_in_gaps(&mut self, from: u32, terminal: TerminalId, to: u32) -> u32 {
        match (self.at(from), self.at(to)) {
            (Node::Open(before, _), Node::Open(after, _)) if before == after => {
                self.tables.shortest(terminal)
            }
            _ => 0,
        }
    }

    /// Whether everything that can be read from `other` to the end can be read from the gap `open` too: it
    /// comes later, so what stands between can stand in it.
    pub fn covers(&mut self, open: u32, other: u32) -> bool {
        let (Node::Open(item, reach), other) = (self.at(open), self.at(other)) else { return false };
        let from = other.item();
        if from > item as usize || self.completions.ends_between(from, item as usize) {
            return false;
        }
        let all = self.tables.reach(reach).all;
        match other {
            Node::Open(_, own) => {
                let own = self.tables.reach(own).all;
                self.tables.is_subset(own, all)
            }
            Node::Inside(item, place) => {
                let (_, lexeme) = self.tables.place(self.fragments[item as usize], place);
                let own = self.tables.intern(vec![(0, lexeme)]);
                self.tables.is_subset(own, all)
            }
            Node::Before(_, set) => self.tables.is_subset(set, all),
            Node::Within(..) => false,
        }
    }

    /// The items behind a state.
    pub(crate) fn n_items_after(&self, node: u32) -> usize {
        self.completions.items.len().saturating_sub(self.at(node).item())
    }

    /// What leads on from a state.
    pub fn edges(&mut self, node: u32, work: &mut Work) -> Result<Arc<NodeEdges>, StepError> {
        if let Some(known) = &self.edges[node as usize] {
            return Ok(Arc::clone(known));
        }
        let mut at = self.head(node, work)?;
        let accepts = self.leads[at as usize].accepts;
        let mut found: Vec<(TerminalId, u32)> = Vec::new();
        while at != NOTHING {
            let Leads { source, behind, .. } = self.leads[at as usize].clone();
            for (terminal, to) in source.all() {
                found.extend(self.target(to, work)?.map(|node| (terminal, node)));
            }
            at = behind;
        }
        work.spend(found.len())?;
        found.sort_unstable();
        found.dedup();
        let edges = Arc::new(NodeEdges { edges: found, accepts });
        self.edges[node as usize] = Some(Arc::clone(&edges));
        Ok(edges)
    }

    /// Whether the text may end where nothing but ignored pieces follows a state.
    pub(crate) fn accepts(&mut self, node: u32, work: &mut Work) -> Result<bool, StepError> {
        let head = self.head(node, work)?;
        Ok(self.leads[head as usize].accepts)
    }

    /// The states to which a terminal leads from a state. Cost: the items that a piece can reach from there,
    /// once.
    pub(crate) fn after(
        &mut self,
        node: u32,
        terminal: TerminalId,
        work: &mut Work,
    ) -> Result<Arc<[u32]>, StepError> {
        if let Some(known) = self.after.get(&(node, terminal)) {
            return Ok(known.clone());
        }
        let mut at = self.head(node, work)?;
        let mut found: Vec<u32> = Vec::new();
        while at != NOTHING {
            let Leads { source, behind, .. } = self.leads[at as usize].clone();
            work.spend(1)?;
            for to in source.of(terminal) {
                work.spend(1)?;
                found.extend(self.target(to, work)?);
            }
            at = behind;
        }
        found.sort_unstable();
        found.dedup();
        let found: Arc<[u32]> = found.into();
        self.after.insert((node, terminal), found.clone());
        Ok(found)
    }

    /// What is read from a state on, by the items in which it ends.
    fn head(&mut self, node: u32, work: &mut Work) -> Result<u32, StepError> {
        if let Some(known) = self.heads[node as usize] {
            return Ok(known);
        }
        let (source, accepts, (item, set)) = match self.at(node) {
            Node::Before(item, set) => (Source::Nothing, false, (item, set)),
            Node::Open(item, reach) => {
                let source = self.gap(item, reach, work)?;
                let Reach { has_boundary, out, .. } = *self.tables.reach(reach);
                (source, self.completions.finals[item as usize] && has_boundary, (item + 1, out))
            }
            Node::Within(item, set) => {
                let hole = self.hole(item, set, work)?;
                let out = hole.out;
                (Source::Hole(item, hole), false, (item + 1, out))
            }
            Node::Inside(item, place) => {
                let completions = self.completions;
                let outcome = match &completions.items[item as usize] {
                    Item::Fragment(text) => {
                        self.tables.go_on((text, self.fragments[item as usize]), place, work)?
                    }
                    _ => Arc::default(),
                };
                let ends = outcome.ends;
                (Source::Fragment(item, outcome), false, (item + 1, ends))
            }
        };
        let behind = self.lead(item, set, work)?;
        let head = self.link(source, accepts, behind);
        self.heads[node as usize] = Some(head);
        Ok(head)
    }

    /// What is read next before an item with these pieces in progress; through gaps and fragments in which
    /// nothing ends.
    fn lead(&mut self, item: u32, set: SetId, work: &mut Work) -> Result<u32, StepError> {
        // The chain of items is as long as the canvas, so it is walked and not descended; what was met is
        // filled in from its end.
        let mut chain: Vec<(u32, SetId, Source, bool)> = Vec::new();
        let (mut item, mut set) = (item, set);
        let mut known = loop {
            if let Some(&known) = self.known.get(&(item, set)) {
                break known;
            }
            work.spend(1)?;
            if self.tables.set(set).is_empty() {
                break NOTHING;
            }
            let completions = self.completions;
            let at = item as usize;
            let has_boundary = self.tables.has_boundary(set);
            let accepts = completions.finals.get(at) == Some(&true) && has_boundary;
            let Some(content) = completions.items.get(at) else {
                chain.push((item, set, Source::Nothing, accepts));
                break NOTHING;
            };
            let (source, accepts, next) = match content {
                Item::Gap | Item::Anything => {
                    let reach = self.tables.gap(self.constraint, filler(content), set, work)?;
                    let source = self.gap(item, reach, work)?;
                    let Reach { has_boundary, out, .. } = *self.tables.reach(reach);
                    (source, completions.finals[at] && has_boundary, out)
                }
                Item::Hole(_) => {
                    let hole = self.hole(item, set, work)?;
                    let out = hole.out;
                    (Source::Hole(item, hole), accepts, out)
                }
                Item::Special(terminal) => {
                    let source =
                        if has_boundary { Source::Special(item, *terminal) } else { Source::Nothing };
                    (source, accepts, 0)
                }
                Item::Fragment(text) => {
                    let outcome = self.tables.enter((text, self.fragments[at]), set, work)?;
                    let ends = outcome.ends;
                    (Source::Fragment(item, outcome), accepts, ends)
                }
            };
            chain.push((item, set, source, accepts));
            (item, set) = (item + 1, next);
        };
        for (item, set, source, accepts) in chain.into_iter().rev() {
            known = self.link(source, accepts, known);
            self.known.insert((item, set), known);
        }
        Ok(known)
    }

    /// What is read first, and what is read in later items.
    fn link(&mut self, source: Source, accepts: bool, behind: u32) -> u32 {
        if !accepts && source.is_empty() {
            return behind;
        }
        let accepts = accepts || self.leads[behind as usize].accepts;
        self.leads.push(Leads { source, accepts, behind });
        self.leads.len() as u32 - 1
    }

    fn gap(&mut self, item: u32, reach: u32, work: &mut Work) -> Result<Source, StepError> {
        Ok(Source::Gap(item, self.tables.gap_leads(self.constraint, reach, work)?))
    }

    /// What is read within a hole.
    fn hole(&mut self, item: u32, set: SetId, work: &mut Work) -> Result<Arc<Hole>, StepError> {
        match self.completions.items.get(item as usize) {
            Some(Item::Hole(trie)) => self.tables.hole(self.constraint, *trie, set, work),
            _ => Ok(Arc::default()),
        }
    }

    /// The state to which something leads; `None` if what follows there breaks what is owed.
    fn target(&mut self, to: To, work: &mut Work) -> Result<Option<u32>, StepError> {
        let node = match to {
            To::Node(node) => Some(node),
            To::End(item, lexeme) => self.arrive(item, lexeme, work)?,
        };
        Ok(node.map(|node| self.node(node)))
    }

    /// The state before an item with a boundary; `None` if the item breaks what is owed there.
    fn arrive(&mut self, item: u32, lexeme: Lexeme, work: &mut Work) -> Result<Option<Node>, StepError> {
        let completions = self.completions;
        let lexeme = match completions.items.get(item as usize) {
            Some(Item::Fragment(text)) => {
                let Tables { lexemes, lexing, .. } = &mut *self.tables;
                lexemes.settled(lexing, lexeme, text)
            }
            _ => Some(lexeme),
        };
        let Some(lexeme) = lexeme else { return Ok(None) };
        let set = self.tables.intern(vec![(0, lexeme)]);
        self.before(item, set, work).map(Some)
    }

    fn before(&mut self, item: u32, set: SetId, work: &mut Work) -> Result<Node, StepError> {
        let completions = self.completions;
        match completions.items.get(item as usize) {
            Some(content @ (Item::Gap | Item::Anything)) => {
                Ok(Node::Open(item, self.tables.gap(self.constraint, filler(content), set, work)?))
            }
            _ => Ok(Node::Before(item, set)),
        }
    }

    fn node(&mut self, node: Node) -> u32 {
        let fresh = self.nodes.len() as u32;
        *self.ids.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.edges.push(None);
            self.heads.push(None);
            fresh
        })
    }
}
