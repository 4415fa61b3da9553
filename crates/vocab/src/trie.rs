//! All ordinary tokens of a vocabulary as one trie in flat arrays.
//!
//! Nodes stand in preorder, so that a walk over the whole vocabulary is one pass over memory, and a subtree
//! is skipped by one jump. Tokens stand in the order of their bytes ([`TokenTrie::order`]); their places
//! there are *sorted positions*. Preorder and byte order agree, so a node covers a range of sorted positions.
//!
//! Invariants, which [`TokenTrie::validate`] checks:
//!
//! - Node 0 is the root: the empty string, without tokens of its own. Its subtree is everything.
//! - The subtree of node `n` is `n..end(n)`. The first child of `n` is `n + 1` iff `n + 1 < end(n)`; the next
//!   sibling of a child `c` is `end(c)` iff that is less than the end of the parent.
//! - The children of a node have distinct bytes, in ascending order.
//! - The tokens spelled by exactly the path to `n` are the sorted positions `lo(n)..own_hi(n)`, several if
//!   several ids have the same bytes (then in ascending order of id), none if the path is only a prefix.
//!   Those in the subtree are `lo(n)..hi(n)`, and `hi(n) > lo(n)` but at the root of an empty trie.
//!
//! `own_hi(n)` is `lo(n + 1)` and `hi(n)` is `lo(end(n))`, so only `lo` is stored, with one more at the end.
//! With the byte, the end, the height of the subtree and the place of the set of the characters below
//! ([`TokenTrie::alphabet`]) that is sixteen bytes a node, side by side: whoever jumps to a node waits for
//! memory once. Tokens take four bytes each. Building sorts the tokens by their first eight bytes as a number
//! and looks at the rest on ties: O(n log n + bytes); 150,000 tokens take some 30 ms.

use std::ops::Range;
use std::sync::Arc;

use crate::TokenId;
use crate::alphabet::{self, Alphabet, Alphabets};

anygram_bits::index_type! {
    /// A node of a [`TokenTrie`], numbered in preorder.
    NodeId
}

/// See the module's documentation for the layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenTrie {
    /// One more than there are nodes: of the last only `low` is looked at, which is the number of tokens.
    records: Vec<Record>,
    order: Vec<TokenId>,
    /// The child of the root by its byte, 0 where there is none: the root has up to 256 children to search
    /// otherwise.
    root_children: Vec<u32>,
    /// Of each of them what [`TokenTrie::height_below`] says: the nodes are far apart.
    root_heights: Vec<u16>,
    /// The different sets of characters below nodes.
    alphabets: Arc<[Alphabet]>,
    /// The ids of all tokens, see [`TokenTrie::id_ranges`].
    id_ranges: Vec<Range<u32>>,
}

/// A node, and what its subtree shares with it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Record {
    end: u32,
    low: u32,
    /// The place of its alphabet.
    alphabet: u16,
    /// The most bytes that tokens have below it; [`u16::MAX`] stands for that many and more.
    height: u16,
    byte: u8,
}

/// What is known of one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// The byte on the edge from the parent; 0 at the root.
    pub byte: u8,
    /// One past the last node of the subtree: where to go to skip it.
    pub end: NodeId,
    /// The first sorted position in the subtree.
    pub lo: usize,
    /// One past the last sorted position of the tokens that end at this node.
    pub own_hi: usize,
    /// One past the last sorted position in the subtree.
    pub hi: usize,
}

impl TokenTrie {
    /// The root: the empty string.
    pub const ROOT: NodeId = NodeId(0);

    /// The trie of these tokens. Tokens without bytes are left out.
    ///
    /// # Panics
    ///
    /// If the bytes of all tokens together are 4 GiB or more; the loaders refuse such files.
    pub fn new<'a>(tokens: impl IntoIterator<Item = (TokenId, &'a [u8])>) -> Self {
        let mut sorted: Vec<Sorted<'_>> = tokens
            .into_iter()
            .filter(|(_, bytes)| !bytes.is_empty())
            .map(|(id, bytes)| (leading_bytes(bytes), bytes, id))
            .collect();
        sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(b.1)).then_with(|| a.2.cmp(&b.2)));
        let total: usize = sorted.iter().map(|(_, bytes, _)| bytes.len()).sum();
        assert!(
            total < u32::MAX as usize,
            "the tokens have {total} bytes, the limit of a trie is {}",
            u32::MAX
        );

        let mut builder = Builder::new(sorted.len());
        for token in &sorted {
            let common = common(&builder.last, token);
            builder.push(*token, common);
        }
        let mut trie = builder.finish();
        trie.order = sorted.iter().map(|(.., id)| *id).collect();
        trie.id_ranges = id_ranges(&trie.order);
        let alphabets = Alphabets::new(&trie);
        trie.set_alphabets(alphabets);
        trie
    }

    /// The trie of tokens in the order of their bytes, and of their ids where these are equal, with what
    /// [`TokenTrie::places`] says; what `token` gives is looked at once for each.
    ///
    /// # Errors
    ///
    /// [`Unsorted`] says what is not as it should be.
    ///
    /// # Panics
    ///
    /// As [`TokenTrie::new`].
    pub(crate) fn from_sorted<'a>(
        order: Vec<TokenId>,
        token: impl Fn(TokenId) -> Sorted<'a>,
        places: &[u16],
    ) -> Result<Self, Unsorted> {
        // Some of them first: their bytes are far apart, and a processor waits for several of them at once if
        // nothing depends on them.
        const AT_ONCE: usize = 256;
        let (mut builder, mut next) = (Builder::new(order.len()), Vec::with_capacity(AT_ONCE));
        for ids in order.chunks(AT_ONCE) {
            next.extend(ids.iter().map(|&id| token(id)));
            for token in next.drain(..) {
                let (common, last) = (common(&builder.last, &token), &builder.last);
                let is_next = match (last.1.len() == common, token.1.len() == common) {
                    (false, false) if common < 8 => last.0 < token.0,
                    (false, false) => last.1[common] < token.1[common],
                    (true, false) => true,
                    (true, true) => !last.1.is_empty() && last.2 < token.2,
                    (false, true) => false,
                };
                if !is_next {
                    return Err(Unsorted::Token(builder.n_tokens as usize));
                }
                builder.push(token, common);
            }
        }
        let mut trie = builder.finish();
        trie.id_ranges = id_ranges(&order);
        trie.order = order;
        let alphabets = Alphabets::with_places(&trie, places).ok_or(Unsorted::Places)?;
        trie.set_alphabets(alphabets);
        Ok(trie)
    }

    /// Where the sets of characters below nodes stand among all different ones: with it
    /// [`TokenTrie::from_sorted`] need not look for them.
    pub(crate) fn places(&self) -> Vec<u16> {
        Alphabets::places(self)
    }

    /// The trie of what the tokens at and below some nodes have from these nodes' own bytes on. A token that
    /// has the same in several ways is there once. Cost: where the nodes' subtrees overlap, their nodes;
    /// elsewhere copies of slices.
    pub fn below(&self, tops: &[NodeId]) -> Self {
        let mut below = Self { alphabets: self.alphabets.clone(), ..Self::empty() };
        // The root stands for no node of this trie: bytes of characters may follow it that began before.
        below.records.push(Record { alphabet: self.alphabet_of_all([].into_iter()), ..Record::default() });
        // Nodes still to be put below the open nodes, those of the innermost last, and of one open node those
        // with low bytes last.
        let n_nodes: usize = tops.iter().map(|&top| self.end(top).index() - top.index()).sum();
        let n_tokens: usize = tops.iter().map(|&top| self.tokens_below(top).len()).sum();
        below.records.reserve(n_nodes.min(self.n_nodes()) + 1);
        below.order.reserve(n_tokens.min(self.n_tokens()));
        let mut waiting: Vec<Waiting> = tops.iter().map(|&top| Waiting::new(self.byte(top), top)).collect();
        waiting.sort_unstable();
        // Open nodes, each with where its part of `waiting` begins.
        let mut open = vec![(0, 0)];
        let (mut same, mut own) = (Vec::new(), Vec::new());
        while let Some(&(node, first)) = open.last() {
            if waiting.len() == first {
                below.close(node);
                open.pop();
                open.last().into_iter().for_each(|&(parent, _)| below.add_child(parent, node));
                continue;
            }
            same.clear();
            let byte = waiting[waiting.len() - 1].byte();
            while waiting.len() > first
                && let Some(next) = waiting.pop_if(|next| next.byte() == byte)
            {
                same.push(next.node());
            }
            same.dedup();
            let at = below.records.len();
            let place = below.order.len() as u32;
            if let [only] = *same {
                // With the siblings behind it that are alone with their bytes, too.
                let mut last = only;
                while let Some(next) = waiting.last().filter(|next| next.node() == self.end(last))
                    && waiting.len() > first
                    && waiting.iter().rev().nth(1).is_none_or(|other| other.byte() != next.byte())
                {
                    last = next.node();
                    waiting.pop();
                }
                let end = self.end(last);
                let nodes = &self.records[only.index()..end.index()];
                let (low, high) = (nodes[0].low, self.records[end.index()].low);
                below.records.extend(nodes.iter().map(|&record| Record {
                    end: record.end - only.0 + at as u32,
                    low: record.low - low + place,
                    ..record
                }));
                below.order.extend_from_slice(&self.order[low as usize..high as usize]);
                let mut child = at;
                while child < below.records.len() {
                    below.add_child(node, child);
                    child = below.records[child].end as usize;
                }
                continue;
            }
            let alphabet = self.alphabet_of_all(same.iter().copied());
            below.records.push(Record { end: 0, low: place, alphabet, height: 0, byte });
            own.clear();
            same.iter().for_each(|&node| own.extend_from_slice(self.tokens_at(node)));
            own.sort_unstable();
            own.dedup();
            below.order.extend_from_slice(&own);
            let first = waiting.len();
            for &node in &same {
                waiting.extend(self.children(node).map(|child| Waiting::new(self.byte(child), child)));
            }
            waiting[first..].sort_unstable();
            open.push((at, first));
        }
        below.records.push(Record { low: below.order.len() as u32, ..Record::default() });
        below.set_root_heights();
        shrink(&mut below.records);
        shrink(&mut below.order);
        below
    }

    /// Ends the subtree of an open node of a trie that is being made.
    fn close(&mut self, node: usize) {
        self.records[node].end = self.records.len() as u32;
    }

    /// A node whose subtree is ended is a child of an open one.
    fn add_child(&mut self, parent: usize, child: usize) {
        let Record { height, byte, .. } = self.records[child];
        if parent == 0 {
            self.root_children[usize::from(byte)] = child as u32;
        }
        let parent = &mut self.records[parent];
        parent.height = parent.height.max(height.saturating_add(1));
    }

    /// The place of the set of all characters below some nodes, if it is that of one of them: else of one
    /// that says nothing.
    fn alphabet_of_all(&self, nodes: impl Iterator<Item = NodeId> + Clone) -> u16 {
        alphabet::of_all(&self.alphabets, nodes.map(|node| self.records[node.index()].alphabet))
    }

    fn set_alphabets(&mut self, Alphabets { different, of }: Alphabets) {
        self.alphabets = different;
        self.records.iter_mut().zip(of).for_each(|(record, place)| record.alphabet = place);
    }

    fn empty() -> Self {
        Self {
            records: Vec::new(),
            order: Vec::new(),
            root_children: vec![0; 256],
            root_heights: vec![0; 256],
            alphabets: Arc::default(),
            id_ranges: Vec::new(),
        }
    }

    /// The most bytes that a token has.
    pub fn height(&self) -> usize {
        self.height_below(Self::ROOT)
    }

    /// The most bytes that a token has below a node, its own left out.
    #[inline]
    pub fn height_below(&self, node: NodeId) -> usize {
        height(self.records[node.index()].height)
    }

    fn set_root_heights(&mut self) {
        for (height, &child) in self.root_heights.iter_mut().zip(&self.root_children) {
            *height = if child == 0 { 0 } else { self.records[child as usize].height };
        }
    }

    /// The children of the root in ascending order of their bytes, each with its byte and what
    /// [`TokenTrie::height_below`] says of it. Nothing is read that is far apart.
    pub fn root_children(&self) -> impl Iterator<Item = (NodeId, u8, usize)> {
        let known = (0..=u8::MAX).zip(&self.root_children).zip(&self.root_heights);
        let children = known.filter(|((_, child), _)| **child != 0);
        children.map(|((byte, &child), &below)| (NodeId(child), byte, height(below)))
    }

    /// How many nodes there are, the root included.
    pub fn n_nodes(&self) -> usize {
        self.records.len() - 1
    }

    /// How many tokens there are.
    pub fn n_tokens(&self) -> usize {
        self.order.len()
    }

    /// The tokens in the order of their bytes, those with equal bytes in the order of their ids.
    pub fn order(&self) -> &[TokenId] {
        &self.order
    }

    /// The ids of all tokens, ascending, where they are few ranges and each id is there once; else nothing.
    /// (A trie of what is left of tokens, [`TokenTrie::below`], does not say.)
    pub fn id_ranges(&self) -> &[Range<u32>] {
        &self.id_ranges
    }

    /// All that is known of a node.
    #[inline]
    pub fn node(&self, node: NodeId) -> Node {
        let Record { end, low, byte, .. } = self.records[node.index()];
        Node {
            byte,
            end: NodeId(end),
            lo: low as usize,
            own_hi: self.low(NodeId(node.0 + 1)),
            hi: self.low(NodeId(end)),
        }
    }

    /// The byte on the edge to this node.
    #[inline]
    pub fn byte(&self, node: NodeId) -> u8 {
        self.records[node.index()].byte
    }

    /// One past the last node of the subtree.
    #[inline]
    pub fn end(&self, node: NodeId) -> NodeId {
        NodeId(self.records[node.index()].end)
    }

    /// The characters with which tokens go on below a node. Of a node of what is left of tokens
    /// ([`TokenTrie::below`]) that stands for several this may say nothing: a set that is a subset of no
    /// other.
    #[inline]
    pub fn alphabet(&self, node: NodeId) -> Alphabet {
        self.alphabets[usize::from(self.records[node.index()].alphabet)]
    }

    /// The first sorted position in a node's subtree; behind the last node, the number of tokens.
    #[inline]
    fn low(&self, node: NodeId) -> usize {
        self.records[node.index()].low as usize
    }

    /// The tokens spelled by exactly the path to this node.
    #[inline]
    pub fn tokens_at(&self, node: NodeId) -> &[TokenId] {
        &self.order[self.low(node)..self.low(NodeId(node.0 + 1))]
    }

    /// The tokens in this node's subtree: those that begin with the path to it.
    #[inline]
    pub fn tokens_below(&self, node: NodeId) -> &[TokenId] {
        &self.order[self.low(node)..self.low(self.end(node))]
    }

    /// All nodes but the root, for [`TokenTrie::descend`].
    pub fn below_root(&self) -> Range<NodeId> {
        NodeId(1)..NodeId(self.n_nodes() as u32)
    }

    /// The nodes of a subtree, its top included, for [`TokenTrie::descend`].
    #[inline]
    pub fn subtree(&self, top: NodeId) -> Range<NodeId> {
        top..self.end(top)
    }

    /// Visits nodes depth first, in the order of their bytes, with a state for each open ancestor: `enter`
    /// gets the state of the parent (`root` where the parent is none of the nodes) and makes that of the
    /// node, or `None`, so that nothing below the node is visited. The first error ends the walk.
    ///
    /// `nodes` are [`TokenTrie::below_root`] or a [`TokenTrie::subtree`]. Nobody is told when a node is left:
    /// a state that is a part of a stack of the caller's says where it ends, and whoever enters a node cuts
    /// the stack there. Cost: O(nodes entered); the states of leaves are dropped at once.
    #[inline]
    pub fn descend<S, E>(
        &self,
        nodes: Range<NodeId>,
        root: S,
        enter: impl FnMut(&S, NodeId) -> Result<Option<S>, E>,
    ) -> Result<(), E> {
        let mut ancestors = Vec::new();
        self.descend_with(&mut ancestors, nodes, root, enter)
    }

    /// The same, for many small subtrees: `ancestors` is scratch.
    #[inline]
    pub fn descend_with<S, E>(
        &self,
        ancestors: &mut Vec<(u32, S)>,
        nodes: Range<NodeId>,
        root: S,
        mut enter: impl FnMut(&S, NodeId) -> Result<Option<S>, E>,
    ) -> Result<(), E> {
        let last = nodes.end.0;
        // The end of each ancestor's subtree, and its state. The first is never closed.
        ancestors.clear();
        ancestors.push((last, root));
        let mut at = nodes.start.0;
        while at < last {
            while ancestors.last().is_some_and(|ancestor| at >= ancestor.0) {
                ancestors.pop();
            }
            let Some((_, parent)) = ancestors.last() else { break };
            let (entered, end) = (enter(parent, NodeId(at))?, self.records[at as usize].end);
            match entered {
                Some(state) => {
                    at += 1;
                    if at < end {
                        ancestors.push((end, state));
                    }
                }
                None => at = end,
            }
        }
        Ok(())
    }

    /// The children in ascending order of their bytes.
    #[inline]
    pub fn children(&self, node: NodeId) -> Children<'_> {
        Children { records: &self.records, next: node.0 + 1, end: self.records[node.index()].end }
    }

    /// The child along a byte. O(1) at the root, O(children) elsewhere.
    #[inline]
    pub fn child(&self, node: NodeId, byte: u8) -> Option<NodeId> {
        if node == Self::ROOT {
            let child = self.root_children[byte as usize];
            return (child != 0).then_some(NodeId(child));
        }
        self.children(node).find(|&child| self.byte(child) >= byte).filter(|&child| self.byte(child) == byte)
    }

    /// The node at which the token at a sorted position ends.
    ///
    /// # Panics
    /// If there is no such position.
    pub fn node_of(&self, position: usize) -> NodeId {
        assert!(position < self.n_tokens(), "position {position} of {} tokens", self.n_tokens());
        NodeId::new(self.records.partition_point(|record| record.low as usize <= position) - 1)
    }

    /// The bytes that lead from the root to a node. Cost: the children of all nodes on the way.
    pub fn path_to(&self, node: NodeId) -> Vec<u8> {
        // The children of the root are far apart.
        let first = self.root_children.iter().rposition(|&child| child != 0 && child <= node.0);
        let Some(mut at) = first.map(|byte| NodeId(self.root_children[byte])) else { return Vec::new() };
        let mut path = vec![self.byte(at)];
        while at != node {
            let Some(next) = self.children(at).find(|&child| self.end(child) > node) else { break };
            path.push(self.byte(next));
            at = next;
        }
        path
    }

    /// The tokens that are prefixes of `text`, shortest first, as (length, the lowest id with these bytes).
    pub fn prefixes<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, TokenId)> + 'a {
        let mut node = Self::ROOT;
        let path = text.iter().map_while(move |&byte| {
            node = self.child(node, byte)?;
            Some(node)
        });
        path.enumerate().filter_map(|(i, node)| Some((i + 1, *self.tokens_at(node).first()?)))
    }

    /// Bytes of memory.
    pub fn memory_usage(&self) -> usize {
        size_of::<Record>() * self.records.capacity()
            + 2 * self.root_heights.capacity()
            + 4 * (self.order.capacity() + self.root_children.capacity())
    }

    /// Checks every invariant of the layout and says which one is broken. O(nodes + tokens).
    pub fn validate(&self) -> Result<(), String> {
        if self.records.len() < 2 || self.root_children.len() != 256 {
            return Err(format!(
                "array lengths disagree: {} records (two or more expected), {} root children (256 expected)",
                self.records.len(),
                self.root_children.len()
            ));
        }
        let (n, records) = (self.n_nodes(), &self.records);
        if records[0].end as usize != n {
            return Err(format!("the root ends at {}, not at {n}", records[0].end));
        }
        if records[0].low != 0 || records[1].low != 0 {
            return Err("the root has tokens of its own".into());
        }
        if records[n].low as usize != self.order.len() {
            return Err(format!(
                "the last position is {}, but there are {} tokens",
                records[n].low,
                self.order.len()
            ));
        }
        // The nodes whose subtree is open, with the byte of the child seen last.
        let mut open: Vec<(usize, Option<u8>)> = vec![(0, None)];
        for node in 1..n {
            while open.last().is_some_and(|&(ancestor, _)| records[ancestor].end as usize <= node) {
                open.pop();
            }
            let Some((parent, last)) = open.last_mut() else {
                return Err(format!("node {node} has no parent"));
            };
            let (byte, end) = (records[node].byte, records[node].end as usize);
            if last.is_some_and(|last| last >= byte) {
                return Err(format!(
                    "node {node}: byte {byte} does not ascend among the children of {parent}"
                ));
            }
            *last = Some(byte);
            if end <= node || end > records[*parent].end as usize {
                return Err(format!("node {node}: end {end} is not within its parent {parent}"));
            }
            if records[node].low > records[node + 1].low {
                return Err(format!("node {node}: sorted positions descend"));
            }
            if records[node].low >= records[end].low {
                return Err(format!("node {node}: no token in its subtree"));
            }
            if end == node + 1 && records[node].low == records[node + 1].low {
                return Err(format!("node {node}: a leaf without a token"));
            }
            if self.tokens_at(NodeId::new(node)).windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(format!("node {node}: ids of equal tokens do not ascend"));
            }
            open.push((node, None));
        }
        for byte in 0..=255u8 {
            let found = self.children(Self::ROOT).find(|&child| self.byte(child) == byte);
            if found != self.child(Self::ROOT, byte) {
                return Err(format!("the table of the root's children is wrong for byte {byte}"));
            }
        }
        for node in (0..n).map(NodeId::new) {
            let below = self.children(node).map(|child| records[child.index()].height.saturating_add(1));
            if records[node.index()].height != below.max().unwrap_or(0) {
                return Err("the heights of subtrees are wrong".into());
            }
        }
        let mut other = self.clone();
        other.set_root_heights();
        if self.root_heights != other.root_heights {
            return Err("the heights of the root's children are wrong".into());
        }
        Ok(())
    }
}

/// See [`TokenTrie::id_ranges`].
fn id_ranges(order: &[TokenId]) -> Vec<Range<u32>> {
    let n_ids = order.iter().map(|token| token.index() + 1).max().unwrap_or(0);
    // Ids may be any numbers.
    if n_ids > 2 * order.len() {
        return Vec::new();
    }
    let mut is_there = vec![false; n_ids];
    let is_once = order.iter().all(|token| !std::mem::replace(&mut is_there[token.index()], true));
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for id in (0..).zip(&is_there).filter(|(_, is_there)| **is_there).map(|(id, _)| id) {
        match ranges.last_mut() {
            Some(last) if last.end == id => last.end += 1,
            _ => ranges.push(id..id + 1),
        }
    }
    if is_once && ranges.len() <= FEW_RANGES { ranges } else { Vec::new() }
}

/// Most vocabularies have some special tokens in between, and behind them all.
const FEW_RANGES: usize = 64;

/// Gives back what a vector does not need, if it is much: a copy costs more than a little memory.
fn shrink<T>(vector: &mut Vec<T>) {
    if vector.len() < vector.capacity() / 4 * 3 {
        vector.shrink_to_fit();
    }
}

fn height(known: u16) -> usize {
    match known {
        u16::MAX => usize::MAX,
        height => usize::from(height),
    }
}

/// A node with its byte, as one number: those with high bytes come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting(u64);

impl Waiting {
    fn new(byte: u8, node: NodeId) -> Self {
        Self(u64::from(!byte) << 32 | u64::from(node.0))
    }

    fn byte(self) -> u8 {
        !((self.0 >> 32) as u8)
    }

    fn node(self) -> NodeId {
        NodeId(self.0 as u32)
    }
}

/// The first eight bytes as a number that sorts as they do; shorter strings are filled with zeros, and then
/// compared whole.
pub(crate) fn leading_bytes(bytes: &[u8]) -> u64 {
    let mut head = [0; 8];
    let n = bytes.len().min(8);
    head[..n].copy_from_slice(&bytes[..n]);
    u64::from_be_bytes(head)
}

/// A token on its way into the trie: its first eight bytes as a number ([`leading_bytes`]), all of them, its
/// id. Most comparisons look at the number alone, and not at bytes that are far apart.
pub(crate) type Sorted<'a> = (u64, &'a [u8], TokenId);

/// How many bytes two tokens have in common at their beginning.
#[inline]
fn common(one: &Sorted<'_>, other: &Sorted<'_>) -> usize {
    let n = one.1.len().min(other.1.len());
    let different = one.0 ^ other.0;
    if different != 0 || n <= 8 {
        return n.min(different.leading_zeros() as usize / 8);
    }
    8 + one.1[8..].iter().zip(&other.1[8..]).take_while(|(a, b)| a == b).count()
}

/// What is wrong with tokens that are said to be sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unsorted {
    /// This one of them does not come behind the one before, or has no bytes.
    Token(usize),
    /// The places of the alphabets are others.
    Places,
}

/// Appends tokens in sorted order: all of a trie but their ids and the alphabets.
struct Builder<'a> {
    trie: TokenTrie,
    n_tokens: u32,
    /// The nodes on the path of the last token, the root left out: `open[d]` has depth `d + 1`.
    open: Vec<u32>,
    last: Sorted<'a>,
}

impl<'a> Builder<'a> {
    fn new(n_tokens: usize) -> Self {
        let mut trie = TokenTrie::empty();
        trie.records.reserve(n_tokens * 3 + 2);
        trie.records.push(Record::default());
        Self { trie, n_tokens: 0, open: Vec::new(), last: (0, &[], TokenId(0)) }
    }

    /// Appends a token that begins with so many bytes of the last one.
    fn push(&mut self, token: Sorted<'a>, common: usize) {
        self.close(common);
        let (leading, bytes, _) = token;
        let (first, n) = (self.trie.records.len() as u32, bytes.len());
        let leading = leading.to_be_bytes();
        let new = leading.get(common..n).unwrap_or_else(|| &bytes[common..]);
        let low = self.n_tokens;
        self.trie.records.extend(new.iter().map(|&byte| Record { low, byte, ..Record::default() }));
        let n_nodes = self.trie.records.len();
        self.open.extend(first..n_nodes as u32);
        self.n_tokens += 1;
        self.last = token;
    }

    /// Ends the subtrees of all open nodes deeper than `depth`, the deepest first: then its height is known.
    fn close(&mut self, depth: usize) {
        while self.open.len() > depth
            && let Some(node) = self.open.pop()
        {
            let parent = self.open.last().map_or(0, |&parent| parent as usize);
            self.trie.close(node as usize);
            self.trie.add_child(parent, node as usize);
        }
    }

    fn finish(mut self) -> TokenTrie {
        self.close(0);
        let mut trie = self.trie;
        trie.close(0);
        trie.records.push(Record { low: self.n_tokens, ..Record::default() });
        trie.records.shrink_to_fit();
        trie.set_root_heights();
        trie
    }
}

/// The children of a node, see [`TokenTrie::children`].
#[derive(Clone, Debug)]
pub struct Children<'a> {
    records: &'a [Record],
    next: u32,
    end: u32,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        if self.next >= self.end {
            return None;
        }
        let child = self.next;
        self.next = self.records[child as usize].end;
        Some(NodeId(child))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anygram_testkit::random::Random;

    fn build(tokens: &[Vec<u8>]) -> TokenTrie {
        TokenTrie::new(tokens.iter().enumerate().map(|(i, bytes)| (TokenId::new(i), bytes.as_slice())))
    }

    /// Up to `most` lists of up to `longest` bytes below `bound`.
    fn lists(random: &mut Random, most: usize, longest: (usize, usize), bound: usize) -> Vec<Vec<u8>> {
        let n = random.between(0, most);
        let mut list = || {
            let length = random.between(longest.0, longest.1);
            (0..length).map(|_| random.below(bound) as u8).collect()
        };
        (0..n).map(|_| list()).collect()
    }

    /// The path to every node, found by following children only.
    fn paths(trie: &TokenTrie) -> Vec<(NodeId, Vec<u8>)> {
        let mut found = Vec::new();
        let mut work = vec![(TokenTrie::ROOT, Vec::new())];
        while let Some((node, path)) = work.pop() {
            for child in trie.children(node) {
                let mut longer = path.clone();
                longer.push(trie.byte(child));
                work.push((child, longer));
            }
            found.push((node, path));
        }
        found
    }

    /// The trie says of every path what the list of tokens says, and has no path too many.
    fn check_against_list(tokens: &[Vec<u8>]) {
        let trie = build(tokens);
        trie.validate().unwrap();
        let mut sorted: Vec<usize> = (0..tokens.len()).filter(|&i| !tokens[i].is_empty()).collect();
        sorted.sort_by_key(|&i| (&tokens[i], i));
        assert_eq!(trie.order().iter().map(|id| id.index()).collect::<Vec<_>>(), sorted);

        let mut prefixes: Vec<&[u8]> = tokens
            .iter()
            .flat_map(|token| (0..=token.len()).map(move |n| &token[..n]))
            .chain([&[][..]])
            .collect();
        prefixes.sort();
        prefixes.dedup();
        let found = paths(&trie);
        assert_eq!(found.len(), prefixes.len());
        assert_eq!(found.len(), trie.n_nodes());
        for (node, path) in found {
            assert!(prefixes.binary_search(&path.as_slice()).is_ok());
            let own: Vec<usize> = sorted.iter().copied().filter(|&i| tokens[i] == path).collect();
            let below: Vec<usize> =
                sorted.iter().copied().filter(|&i| tokens[i].starts_with(&path)).collect();
            assert_eq!(trie.tokens_at(node).iter().map(|id| id.index()).collect::<Vec<_>>(), own);
            assert_eq!(trie.tokens_below(node).iter().map(|id| id.index()).collect::<Vec<_>>(), below);
            let Node { lo, own_hi, hi, .. } = trie.node(node);
            assert_eq!((own_hi - lo, hi - lo), (own.len(), below.len()));
        }
    }

    #[test]
    fn an_empty_trie_is_a_root() {
        let trie = build(&[]);
        trie.validate().unwrap();
        assert_eq!((trie.n_nodes(), trie.n_tokens()), (1, 0));
        assert_eq!(trie.children(TokenTrie::ROOT).count(), 0);
        assert_eq!(trie.child(TokenTrie::ROOT, b'a'), None);
    }

    #[test]
    fn what_is_below_nodes() {
        for mut random in (0..200).map(Random::new) {
            let tokens = lists(&mut random, 39, (1, 5), 3);
            let n_picks = random.between(0, 7);
            let trie = build(&tokens);
            let paths: Vec<(NodeId, Vec<u8>)> =
                paths(&trie).into_iter().filter(|(node, _)| *node != TokenTrie::ROOT).collect();
            let tops: Vec<&(NodeId, Vec<u8>)> = if paths.is_empty() {
                Vec::new()
            } else {
                (0..n_picks).map(|_| random.choose(&paths)).collect()
            };
            let mut left: Vec<(TokenId, Vec<u8>)> = tops
                .iter()
                .flat_map(|(_, path)| {
                    tokens
                        .iter()
                        .enumerate()
                        .filter(move |(_, token)| token.starts_with(path))
                        .map(move |(id, token)| (TokenId::new(id), token[path.len() - 1..].to_vec()))
                })
                .collect();
            left.sort();
            left.dedup();
            let nodes: Vec<NodeId> = tops.iter().map(|(node, _)| *node).collect();
            let mut below = trie.below(&nodes);
            below.validate().unwrap();
            let mut expected = TokenTrie::new(left.iter().map(|(id, bytes)| (*id, bytes.as_slice())));
            // These may be told by less, which their own test is about.
            for trie in [&mut below, &mut expected] {
                trie.alphabets = Arc::default();
                trie.records.iter_mut().for_each(|record| record.alphabet = 0);
                trie.id_ranges.clear();
            }
            assert_eq!(format!("{below:?}"), format!("{expected:?}"));
        }
    }

    #[test]
    fn heights_of_long_tokens_are_exact() {
        let trie = build(&[vec![b'a'; 1_000], b"b".to_vec(), [vec![b'b'; 300], vec![b'a'; 9]].concat()]);
        trie.validate().unwrap();
        let b = trie.child(TokenTrie::ROOT, b'b').unwrap();
        assert_eq!((trie.height(), trie.height_below(b), trie.below(&[b]).height()), (1_000, 308, 309));
    }

    #[test]
    fn duplicates_stand_side_by_side() {
        let tokens: Vec<Vec<u8>> =
            ["b", "ab", "b", "", "a", "b"].iter().map(|s| s.as_bytes().to_vec()).collect();
        let trie = build(&tokens);
        assert_eq!(trie.order(), [4, 1, 0, 2, 5].map(TokenId));
        let b = trie.child(TokenTrie::ROOT, b'b').unwrap();
        assert_eq!(trie.tokens_at(b), [0, 2, 5].map(TokenId));
        check_against_list(&tokens);
    }

    #[test]
    fn zero_bytes_are_not_the_end_of_a_token() {
        check_against_list(&[
            b"a".to_vec(),
            b"a\0".to_vec(),
            b"a\0\0\0\0\0\0\0\0".to_vec(),
            b"\0".to_vec(),
            vec![255; 9],
        ]);
    }

    #[test]
    fn prefixes_come_shortest_first() {
        let trie = build(&[b"a".to_vec(), b"abc".to_vec(), b"b".to_vec(), b"abcd".to_vec()]);
        let found: Vec<_> = trie.prefixes(b"abcx").collect();
        assert_eq!(found, [(1, TokenId(0)), (3, TokenId(1))]);
    }

    #[test]
    fn validate_names_what_broke() {
        let good = build(&[b"a".to_vec(), b"ab".to_vec(), b"c".to_vec()]);
        let broken = |change: fn(&mut TokenTrie)| {
            let mut trie = good.clone();
            change(&mut trie);
            trie.validate().unwrap_err()
        };
        assert!(broken(|t| t.records[0].end = 2).contains("root ends"));
        assert!(broken(|t| t.records[1].end = 9).contains("not within its parent"));
        assert!(broken(|t| t.records[3].byte = b'a').contains("ascend"));
        assert!(broken(|t| t.records[4].low = 7).contains("last position"));
        assert!(broken(|t| t.records[3].low = 1).contains("no token"));
        assert!(broken(|t| t.root_children[7] = 1).contains("byte 7"));
        assert!(broken(|t| t.records.truncate(1)).contains("lengths"));
    }

    /// A descent of which the state is the path, and which does not go below nodes that `skips` names.
    fn descended(trie: &TokenTrie, nodes: Range<NodeId>, skips: u8) -> Vec<(NodeId, Vec<u8>)> {
        let mut found = Vec::new();
        let walk = trie.descend(nodes, Vec::new(), |parent: &Vec<u8>, node| {
            let path = [parent.as_slice(), &[trie.byte(node)]].concat();
            found.push((node, path.clone()));
            Ok::<_, std::convert::Infallible>((trie.byte(node) != skips).then_some(path))
        });
        let Ok(()) = walk;
        found
    }

    #[test]
    fn descents_follow_paths() {
        for mut random in (0..200).map(Random::new) {
            let tokens = lists(&mut random, 29, (0, 7), 4);
            let skips = random.below(5) as u8;
            let trie = build(&tokens);
            let mut paths = paths(&trie);
            paths.sort();
            let is_entered = |path: &[u8]| !path.is_empty() && !path[..path.len() - 1].contains(&skips);
            let expected: Vec<_> = paths.iter().filter(|(_, path)| is_entered(path)).cloned().collect();
            assert_eq!(descended(&trie, trie.below_root(), skips), expected);
            for (top, start) in &paths[1..] {
                let below = paths.iter().filter(|(_, path)| path.starts_with(start));
                let cut = |(node, path): &(NodeId, Vec<u8>)| (*node, path[start.len() - 1..].to_vec());
                let expected: Vec<_> = below.map(cut).filter(|(_, path)| is_entered(path)).collect();
                assert_eq!(descended(&trie, trie.subtree(*top), skips), expected);
            }
        }
    }

    #[test]
    fn any_list_of_tokens() {
        for mut random in (0..200).map(Random::new) {
            check_against_list(&lists(&mut random, 39, (0, 11), 4));
        }
    }
}
