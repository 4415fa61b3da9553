//! Texts as states of a deterministic automaton: the set of all readings of a text, hash-consed.
//!
//! One text has one state, however often it can be cut and derived; that is what weighing texts needs. The
//! states are those that a matcher goes through, so the meaning is the same in every lexer mode. They know no
//! positions and serve all canvases.

use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::read::read_token;
use anygram_vocab::TokenId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::canvas::End;
use crate::plan;
use crate::tables::Tables;

/// A set of readings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Subset(u32);

impl Subset {
    /// No reading: the text begins no sentence.
    pub const DEAD: Self = Self(0);
    /// No text: the EOS was.
    pub const TAIL: Self = Self(u32::MAX);
}

/// The tokens that lead from a state to another one.
#[derive(Debug)]
pub(crate) struct Group {
    pub to: Subset,
    /// Ascending, not empty.
    pub tokens: Box<[TokenId]>,
}

/// The states that were met, and their steps.
pub(crate) struct Subsets {
    pub tables: Tables,
    frontiers: Vec<Frontier>,
    numbers: FxHashMap<Frontier, Subset>,
    bytes: FxHashMap<(Subset, u8), Subset>,
    tokens: FxHashMap<(Subset, TokenId), Subset>,
    groups: FxHashMap<Subset, Arc<[Group]>>,
    group_bytes: usize,
    n_items: usize,
}

/// What the first look at something costs, in steps, and what an item of the parser does.
const STEPS_PER_NEW: usize = 16;
const STEPS_PER_ITEM: usize = 8;

impl AsMut<Stepper> for Subsets {
    fn as_mut(&mut self) -> &mut Stepper {
        &mut self.tables.stepper
    }
}

impl Subsets {
    pub fn new(tables: Tables) -> Self {
        Self {
            tables,
            frontiers: vec![Frontier::new()],
            numbers: FxHashMap::from_iter([(Frontier::new(), Subset::DEAD)]),
            bytes: FxHashMap::default(),
            tokens: FxHashMap::default(),
            groups: FxHashMap::default(),
            group_bytes: 0,
            n_items: 0,
        }
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let frontiers =
            self.frontiers.iter().map(|frontier| 2 * size_of_val(&**frontier) + 96).sum::<usize>();
        self.tables.memory_usage()
            + frontiers
            + (self.bytes.len() + self.tokens.len()) * 24
            + self.group_bytes
    }

    /// Whether so much is kept that it is better to begin afresh.
    pub fn is_full(&self) -> bool {
        let kept = self.frontiers.len() * 160 + (self.bytes.len() + self.tokens.len()) * 24;
        self.tables.is_full() || kept > self.tables.constraint.language().limits().cache_bytes
    }

    /// The empty text.
    pub fn start(&mut self) -> Result<Subset, StepError> {
        let start: Frontier = self.tables.start()?.into_iter().collect();
        Ok(self.number(start))
    }

    fn number(&mut self, frontier: Frontier) -> Subset {
        if let Some(&known) = self.numbers.get(&frontier) {
            return known;
        }
        let number = Subset(self.frontiers.len() as u32);
        self.frontiers.push(frontier.clone());
        self.numbers.insert(frontier, number);
        number
    }

    pub fn byte(&mut self, from: Subset, byte: u8, work: &mut Work) -> Result<Subset, StepError> {
        work.spend(1)?;
        if let Some(&known) = self.bytes.get(&(from, byte)) {
            return Ok(known);
        }
        let language = self.tables.constraint.language().clone();
        let mut next = Frontier::new();
        self.tables.stepper.step(&language, &self.frontiers[from.0 as usize], byte, &mut next)?;
        let n_items = self.tables.stepper.recognizer().n_items();
        work.spend(STEPS_PER_NEW + STEPS_PER_ITEM * n_items.saturating_sub(self.n_items))?;
        self.n_items = n_items;
        let to = self.number(next);
        self.bytes.insert((from, byte), to);
        Ok(to)
    }

    /// The state after a token of the text.
    pub fn token(&mut self, from: Subset, token: TokenId, work: &mut Work) -> Result<Subset, StepError> {
        work.spend(1)?;
        if let Some(&known) = self.tokens.get(&(from, token)) {
            return Ok(known);
        }
        let constraint = self.tables.constraint.clone();
        let before = self.frontiers[from.0 as usize].clone();
        let named = plan::named(&constraint, token);
        let mut at = from;
        let readings = read_token(self, &constraint, &before, (token, named), |this, _, byte, next| {
            at = this.byte(at, byte, work)?;
            next.clone_from(&this.frontiers[at.0 as usize]);
            Ok(at != Subset::DEAD)
        })?;
        let to = self.number(readings);
        self.tokens.insert((from, token), to);
        Ok(to)
    }

    /// All tokens of the text that lead on, by where they lead; the groups in the order of their lowest
    /// tokens.
    pub fn groups(&mut self, from: Subset, work: &mut Work) -> Result<Arc<[Group]>, StepError> {
        if let Some(known) = self.groups.get(&from) {
            work.spend(known.len())?;
            return Ok(known.clone());
        }
        let constraint = self.tables.constraint.clone();
        let vocabulary = constraint.vocabulary();
        let named: FxHashSet<TokenId> = plan::specials(&constraint).map(|(token, _)| token).collect();
        let apart = |token: &TokenId| named.contains(token) || plan::is_tail(vocabulary, *token);
        let mut by: FxHashMap<Subset, Vec<TokenId>> = FxHashMap::default();
        for &token in &named {
            let to = self.token(from, token, work)?;
            if to != Subset::DEAD {
                by.entry(to).or_default().push(token);
            }
        }
        let trie = vocabulary.trie();
        trie.descend(trie.below_root(), from, |&before, at| {
            let to = self.byte(before, trie.byte(at), work)?;
            if to == Subset::DEAD {
                return Ok(None);
            }
            let own = trie.tokens_at(at);
            if !own.is_empty() {
                by.entry(to).or_default().extend(own.iter().filter(|token| !apart(token)));
            }
            Ok::<_, StepError>(Some(to))
        })?;
        let group = |(to, mut tokens): (Subset, Vec<TokenId>)| {
            tokens.sort_unstable();
            Group { to, tokens: tokens.into() }
        };
        let mut groups: Vec<Group> =
            by.into_iter().filter(|(_, tokens)| !tokens.is_empty()).map(group).collect();
        groups.sort_unstable_by_key(|group| group.tokens[0]);
        let bytes: usize = groups.iter().map(|group| size_of_val(&*group.tokens) + size_of::<Group>()).sum();
        if self.group_bytes + bytes > constraint.language().limits().cache_bytes {
            self.groups.clear();
            self.group_bytes = 0;
        }
        self.group_bytes += bytes;
        let groups: Arc<[Group]> = groups.into();
        self.groups.insert(from, groups.clone());
        Ok(groups)
    }

    /// Whether the text is a sentence.
    pub fn is_sentence(&self, state: Subset) -> bool {
        self.tables.stepper.is_sentence(&self.frontiers[state.0 as usize])
    }

    /// Whether a text that fills the whole row ends as asked.
    pub fn ends(&mut self, state: Subset, end: End, work: &mut Work) -> Result<bool, StepError> {
        match end {
            End::Sentence => Ok(self.is_sentence(state)),
            End::Prefix { remaining: None } => {
                let language = self.tables.constraint.language().clone();
                self.tables.stepper.is_viable(&language, &self.frontiers[state.0 as usize])
            }
            End::Prefix { remaining: Some(most) } => {
                if self.is_sentence(state) {
                    return Ok(true);
                }
                for config in self.frontiers[state.0 as usize].clone() {
                    if self.tables.closing(config, most, work)?.is_some() {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}
