//! What is left of tokens between two pieces, as sets of subtrees of the trie.

use std::sync::{Arc, OnceLock};

use anygram_vocab::{NodeId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Costs, Leftover};

impl Leftover {
    /// Nothing: a token boundary.
    pub const NONE: Self = Self(0);
}

/// Leftovers with the least cost of each; the cheaper come first.
pub(super) type Reached = Arc<[(Leftover, u32)]>;

/// Collects where something leads, by increasing cost, without what is of no use.
#[derive(Default)]
pub(super) struct Merger {
    boundary: Option<u32>,
    reached: Vec<(Leftover, u32)>,
    seen: FxHashSet<u32>,
}

impl Merger {
    /// Whether a token boundary was reached.
    pub(super) fn has_boundary(&self) -> bool {
        self.boundary.is_some()
    }

    pub(super) fn add(
        &mut self,
        costs: &mut Costs,
        trie: &TokenTrie,
        at_boundary: bool,
        mut tops: Vec<u32>,
        cost: u32,
    ) {
        if self.boundary.is_some_and(|boundary| boundary < cost) {
            tops.retain(|&top| !costs.is_covered(trie, top));
        }
        tops.retain(|top| !self.seen.contains(top));
        if at_boundary && self.boundary.is_none() {
            self.boundary = Some(cost);
            self.reached.push((Leftover::NONE, cost));
        }
        if !tops.is_empty() {
            self.seen.extend(tops.iter().copied());
            let leftover = costs.intern(tops);
            self.reached.push((leftover, cost));
        }
    }

    /// A token boundary, and a leftover that may have been reached before in part.
    pub(super) fn add_all(&mut self, leftover: Leftover, cost: u32) {
        if self.boundary.is_none() {
            self.boundary = Some(cost);
            self.reached.push((Leftover::NONE, cost));
        }
        self.reached.extend((leftover != Leftover::NONE).then_some((leftover, cost)));
    }

    pub(super) fn finish(self) -> Reached {
        self.reached.into()
    }
}

/// What is known of the subtrees of a vocabulary's trie: the same for all languages, so it is kept beside the
/// vocabulary. Made when it is first asked for; cost: nodes of the trie.
#[derive(Debug, Default)]
pub struct Subtrees(OnceLock<Arc<Known>>);

/// See [`Subtrees`].
#[derive(Debug)]
pub(super) struct Known {
    /// Of each node the first with the same byte and subtree.
    pub(super) same: Box<[u32]>,
    /// All such nodes, and those below which not all texts are tokens: what can be left of tokens.
    anything: OnceLock<[Arc<[u32]>; 2]>,
}

impl Subtrees {
    /// What is known of a trie, which is always the same one.
    pub(super) fn of(&self, trie: &TokenTrie) -> Arc<Known> {
        let make = || Arc::new(Known { same: same_subtrees(trie).into(), anything: OnceLock::new() });
        self.0.get_or_init(make).clone()
    }
}

impl Known {
    fn anything(&self, trie: &TokenTrie) -> &[Arc<[u32]>; 2] {
        self.anything.get_or_init(|| {
            let mut all: Vec<u32> = self.same.iter().copied().skip(1).collect();
            all.sort_unstable();
            all.dedup();
            let uncovered = all.iter().copied().filter(|&top| !is_covered(trie, top)).collect();
            [all.into(), uncovered]
        })
    }

    /// Whether it keeps these subtrees itself.
    pub(super) fn keeps(&self, tops: &Arc<[u32]>) -> bool {
        self.anything.get().is_some_and(|known| known.iter().any(|own| Arc::ptr_eq(own, tops)))
    }
}

/// Whether all texts of a subtree are tokens.
fn is_covered(trie: &TokenTrie, top: u32) -> bool {
    let mut pairs = vec![(NodeId(top), trie.child(TokenTrie::ROOT, trie.byte(NodeId(top))))];
    while let Some((node, whole)) = pairs.pop() {
        let Some(whole) =
            whole.filter(|&whole| trie.tokens_at(node).is_empty() || !trie.tokens_at(whole).is_empty())
        else {
            return false;
        };
        pairs.extend(trie.children(node).map(|child| (child, trie.child(whole, trie.byte(child)))));
    }
    true
}

/// Of each node of a trie the first found with the same byte, the same subtree, and tokens at the same places
/// of it.
fn same_subtrees(trie: &TokenTrie) -> Vec<u32> {
    let mut same = vec![0; trie.n_nodes()];
    let mut leaves = [0u32; 256];
    let mut inner: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
    let mut key = Vec::new();
    for at in (1..trie.n_nodes() as u32).rev() {
        let node = NodeId(at);
        key.clear();
        key.push(u32::from(trie.byte(node)) << 1 | u32::from(!trie.tokens_at(node).is_empty()));
        key.extend(trie.children(node).map(|child| same[child.index()]));
        same[node.index()] = if key.len() == 1 {
            let leaf = &mut leaves[usize::from(trie.byte(node))];
            *leaf = if *leaf == 0 { at } else { *leaf };
            *leaf
        } else if let Some(&known) = inner.get(&*key) {
            known
        } else {
            inner.insert(key.clone().into(), at);
            at
        };
    }
    same
}

impl Costs {
    /// The subtrees of the trie that a leftover consists of, each with the byte that leads to it.
    pub fn tops(&self, leftover: Leftover) -> &[u32] {
        &self.leftovers[leftover.index()]
    }

    /// The leftover of some subtrees, given by their top nodes; [`Leftover::NONE`] if there are none.
    pub fn leftover(&mut self, tops: impl IntoIterator<Item = NodeId>) -> Leftover {
        let tops = tops.into_iter().map(|top| self.subtrees.same[top.index()]).collect();
        self.intern(tops)
    }

    pub(super) fn intern(&mut self, mut tops: Vec<u32>) -> Leftover {
        tops.sort_unstable();
        tops.dedup();
        match self.leftover_ids.get(&*tops) {
            Some(&id) => id,
            None => self.intern_sorted(tops.into()),
        }
    }

    fn intern_sorted(&mut self, tops: Arc<[u32]>) -> Leftover {
        if tops.is_empty() {
            return Leftover::NONE;
        }
        if let Some(&id) = self.leftover_ids.get(&tops) {
            return id;
        }
        let id = Leftover::new(self.leftovers.len());
        self.n_tops += tops.len();
        self.leftovers.push(tops.clone());
        self.leftover_ids.insert(tops, id);
        id
    }

    /// Whether all texts of a subtree are tokens.
    pub(super) fn is_covered(&mut self, trie: &TokenTrie, top: u32) -> bool {
        if let Some(&known) = self.covered.get(&top) {
            return known;
        }
        let covered = is_covered(trie, top);
        self.covered.insert(top, covered);
        covered
    }

    /// The part of a leftover whose texts are not all tokens.
    pub(super) fn uncovered(&mut self, trie: &TokenTrie, leftover: Leftover) -> Option<Leftover> {
        if let Some(&known) = self.uncovered.get(&leftover) {
            return known;
        }
        let mut tops = self.leftovers[leftover.index()].to_vec();
        tops.retain(|&top| !self.is_covered(trie, top));
        let left = (!tops.is_empty()).then(|| self.intern(tops));
        self.uncovered.insert(leftover, left);
        left
    }

    /// Everything that can be left of tokens, and what of it is not covered.
    pub(super) fn anything(&mut self, trie: &TokenTrie) -> [Leftover; 2] {
        if let Some(known) = self.anything {
            return known;
        }
        let known = self.subtrees.clone();
        let [all, uncovered] = known.anything(trie).each_ref().map(|tops| self.intern_sorted(tops.clone()));
        self.uncovered.insert(all, (uncovered != Leftover::NONE).then_some(uncovered));
        *self.anything.insert([all, uncovered])
    }

    /// Every end that a piece can have, whatever its terminal, at a cost.
    pub(super) fn add_anything(&mut self, trie: &TokenTrie, reached: &mut Merger, cost: u32) {
        let [all, uncovered] = self.anything(trie);
        reached.add_all(if reached.boundary.is_none() { all } else { uncovered }, cost);
    }
}
