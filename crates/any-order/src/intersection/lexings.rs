//! All lexings of a partial output in one automaton over terminals.
//!
//! States are places where a piece begins: within a fragment a place before a byte; at a gap the set of
//! pieces that can be in progress when it ends, by which equal gaps are equal. A terminal that straddles gaps
//! needs no care: what is in progress at the end of a fragment goes on in the gap, as anything that bytes can
//! make of it, and what is in progress at the end of the gap goes on in the next fragment.

use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::Constraint;
use anygram_left_to_right::language::StepError;
use rustc_hash::FxHashMap;

use super::completions::{Completions, Item};
use super::lexemes::FIRST;
use super::tables::{Outcome, SetId, Tables, Target, filler};

/// A place where a piece begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Node {
    /// Within the fragment that is this item.
    Inside(u32, u32),
    /// In the gap that is this item, with what can be in progress.
    Open(u32, u32),
    /// Before this item, no gap, with these pieces in progress.
    Before(u32, SetId),
}

impl Node {
    pub fn item(self) -> usize {
        match self {
            Self::Inside(item, _) | Self::Open(item, _) | Self::Before(item, _) => item as usize,
        }
    }
}

/// What is read next, as far as it does not depend on what was read.
#[derive(Default)]
struct Leads {
    edges: Vec<(TerminalId, Node)>,
    accepts: bool,
}

/// The automaton over terminals, its states made as they are asked for.
pub(super) struct Lexings<'a> {
    pub tables: &'a mut Tables,
    pub constraint: &'a Constraint,
    pub completions: &'a Completions,
    /// Of each item that is a fragment its number in the tables.
    fragments: Vec<u32>,
    nodes: Vec<Node>,
    ids: FxHashMap<Node, u32>,
    edges: Vec<Option<Arc<NodeEdges>>>,
    leads: FxHashMap<(u32, SetId), Arc<Leads>>,
}

/// What leads on from a state.
pub(super) struct NodeEdges {
    /// By terminal.
    pub edges: Vec<(TerminalId, u32)>,
    pub accepts: bool,
}

impl<'a> Lexings<'a> {
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
            leads: FxHashMap::default(),
        }
    }

    /// The state before the text.
    pub fn start(&mut self, work: &mut Work) -> Result<u32, StepError> {
        let set = self.tables.intern(vec![(0, FIRST)]);
        let node = self.before(0, set, work)?;
        Ok(self.node(node))
    }

    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    pub fn at(&self, node: u32) -> Node {
        self.nodes[node as usize]
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
                let lexeme = self.tables.lexeme_at(self.fragments[item as usize], place);
                self.tables.set(all).binary_search(&(0, lexeme)).is_ok()
            }
            Node::Before(_, set) => self.tables.is_subset(set, all),
        }
    }

    /// What leads on from a state.
    pub fn edges(&mut self, node: u32, work: &mut Work) -> Result<Arc<NodeEdges>, StepError> {
        if let Some(known) = &self.edges[node as usize] {
            return Ok(Arc::clone(known));
        }
        let mut found: Vec<(TerminalId, Node)> = Vec::new();
        let mut accepts = false;
        let follow = match self.at(node) {
            Node::Before(item, set) => (item, set),
            Node::Open(item, reach) => {
                accepts |= self.open(item, reach, &mut found, work)?;
                (item + 1, self.tables.reach(reach).out)
            }
            Node::Inside(item, place) => {
                let completions = self.completions;
                let Item::Fragment(text) = &completions.items[item as usize] else {
                    return Ok(Arc::new(NodeEdges { edges: Vec::new(), accepts: false }));
                };
                let outcome =
                    self.tables.go_on(self.constraint, (text, self.fragments[item as usize]), place, work)?;
                self.inside(item, &outcome, &mut found, work)?;
                (item + 1, outcome.ends)
            }
        };
        let leads = self.leads(follow.0, follow.1, work)?;
        found.extend_from_slice(&leads.edges);
        accepts |= leads.accepts;
        work.spend(found.len())?;
        let mut edges: Vec<(TerminalId, u32)> =
            found.into_iter().map(|(terminal, node)| (terminal, self.node(node))).collect();
        edges.sort_unstable();
        edges.dedup();
        let edges = Arc::new(NodeEdges { edges, accepts });
        self.edges[node as usize] = Some(Arc::clone(&edges));
        Ok(edges)
    }

    /// What is read next before an item with these pieces in progress; through gaps and fragments in which
    /// nothing ends.
    fn leads(&mut self, item: u32, set: SetId, work: &mut Work) -> Result<Arc<Leads>, StepError> {
        // The chain of items is as long as the canvas, so it is walked and not descended; what was met is
        // filled in from its end.
        let mut chain: Vec<(u32, SetId, Leads)> = Vec::new();
        let (mut item, mut set) = (item, set);
        let mut known = loop {
            if let Some(known) = self.leads.get(&(item, set)) {
                break Arc::clone(known);
            }
            work.spend(1)?;
            let mut leads = Leads::default();
            if self.tables.set(set).is_empty() {
                break Arc::new(leads);
            }
            let completions = self.completions;
            let at = item as usize;
            let Some(content) = completions.items.get(at) else {
                leads.accepts = completions.finals.get(at) == Some(&true) && self.tables.has_boundary(set);
                let leads = Arc::new(leads);
                self.leads.insert((item, set), Arc::clone(&leads));
                break leads;
            };
            let next = match content {
                Item::Gap | Item::Anything => {
                    let reach = self.tables.gap(self.constraint, filler(content), set, work)?;
                    leads.accepts = self.open(item, reach, &mut leads.edges, work)?;
                    self.tables.reach(reach).out
                }
                Item::Special(terminal) => {
                    if self.tables.has_boundary(set) {
                        let first = self.tables.intern(vec![(0, FIRST)]);
                        let node = self.before(item + 1, first, work)?;
                        leads.edges.push((*terminal, node));
                        leads.accepts = completions.finals[at];
                    }
                    0
                }
                Item::Fragment(text) => {
                    leads.accepts = completions.finals[at] && self.tables.has_boundary(set);
                    let outcome =
                        self.tables.enter(self.constraint, (text, self.fragments[at]), set, work)?;
                    self.inside(item, &outcome, &mut leads.edges, work)?;
                    outcome.ends
                }
            };
            chain.push((item, set, leads));
            (item, set) = (item + 1, next);
        };
        for (item, set, mut leads) in chain.into_iter().rev() {
            if !leads.edges.is_empty() || leads.accepts {
                work.spend(known.edges.len())?;
                leads.edges.extend_from_slice(&known.edges);
                leads.accepts |= known.accepts;
                known = Arc::new(leads);
            }
            self.leads.insert((item, set), Arc::clone(&known));
        }
        Ok(known)
    }

    /// What is read within a gap; whether the text may end there.
    fn open(
        &mut self,
        item: u32,
        reach: u32,
        into: &mut Vec<(TerminalId, Node)>,
        work: &mut Work,
    ) -> Result<bool, StepError> {
        let leads = self.tables.gap_leads(self.constraint, reach, work)?;
        work.spend(leads.len())?;
        into.extend(leads.iter().map(|&(terminal, reach)| (terminal, Node::Open(item, reach))));
        Ok(self.completions.finals[item as usize] && self.tables.reach(reach).has_boundary)
    }

    fn inside(
        &mut self,
        item: u32,
        outcome: &Outcome,
        into: &mut Vec<(TerminalId, Node)>,
        work: &mut Work,
    ) -> Result<(), StepError> {
        work.spend(outcome.edges.len())?;
        for &(terminal, target) in &outcome.edges {
            let node = match target {
                Target::Inside(place) => Node::Inside(item, place),
                Target::End(lexeme) => {
                    let completions = self.completions;
                    let lexeme = match completions.items.get(item as usize + 1) {
                        Some(Item::Fragment(text)) => {
                            let lexing = self.constraint.language().lexing();
                            let Some(lexeme) = self.tables.lexemes.settled(lexing, lexeme, text) else {
                                continue;
                            };
                            lexeme
                        }
                        _ => lexeme,
                    };
                    let set = self.tables.intern(vec![(0, lexeme)]);
                    self.before(item + 1, set, work)?
                }
            };
            into.push((terminal, node));
        }
        Ok(())
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
            fresh
        })
    }
}
