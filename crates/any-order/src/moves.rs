//! What one token, any, does to a reading.
//!
//! The same sweeps over the trie of tokens as for masks (`anygram_left_to_right::mask`), one for each place of the lexer's automata, say it: groups
//! of tokens by the place that they come to. A lexeme sees in each group the tokens that merely prolong the piece, or a way in which the piece can end,
//! with them or inside others, of which something is left: a trie of its own (a [`Rest`]) that is walked in the same way from the boundary
//! that the parser comes to. Cost of a lexeme at a place that is known: O(groups).

use std::cmp::Reverse;
use std::sync::Arc;

use anygram_left_to_right::Language;
use anygram_left_to_right::frontier::Stepper;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::{self, Group, Rest, Sweep};
use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_vocab::{TokenId, TokenTrie};
use rustc_hash::FxHashMap;

/// What tokens, or what is left of them, do to one lexeme in progress.
#[derive(Debug)]
pub(crate) struct Walk {
    sweep: Arc<Sweep>,
    /// The groups of tokens after which the piece is in progress, with the lexeme; large ones first.
    pub stays: Box<[(LexemeId, u32)]>,
    /// The groups in which the piece can end, with how.
    pub exits: Box<[(CutId, u32)]>,
}

impl Walk {
    /// The tokens of a way to stay.
    pub fn staying(&self, stay: usize) -> &Group {
        &self.sweep.groups[self.stays[stay].1 as usize]
    }

    /// The place where a piece ends; its tokens end with it.
    pub fn ending(&self, exit: usize) -> &Group {
        &self.sweep.groups[self.exits[exit].1 as usize]
    }
}

/// The walks that are kept, bounded in bytes: when full, all are dropped.
pub(crate) struct Walks {
    walks: FxHashMap<(LexemeId, u32), Arc<Walk>>,
    sweeps: mask::Walks,
    bytes: usize,
}

impl Walks {
    pub fn new() -> Self {
        Self { walks: FxHashMap::default(), sweeps: mask::Walks::apart(), bytes: 0 }
    }

    pub fn memory_usage(&self) -> usize {
        self.bytes + self.sweeps.memory_usage()
    }

    /// The walk from a lexeme over a trie.
    pub fn get(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (id, trie): (u32, &TokenTrie),
        lexeme: LexemeId,
        n_words: usize,
    ) -> Result<Arc<Walk>, StepError> {
        if let Some(walk) = self.walks.get(&(lexeme, id)) {
            return Ok(walk.clone());
        }
        let sweep = self.sweeps.sweep(stepper, language, (id, trie), lexeme, n_words)?;
        let walk = Arc::new(see(stepper, language, trie, sweep, lexeme)?);
        if self.memory_usage() > language.limits().cache_bytes {
            self.walks.clear();
            self.bytes = 0;
        }
        self.bytes += size_of_val(&*walk.stays) + size_of_val(&*walk.exits) + size_of::<Walk>();
        self.walks.insert((lexeme, id), walk.clone());
        Ok(walk)
    }

    /// What is left of the tokens that do not end with an exit; `None` if all do.
    pub fn rest(&mut self, trie: (u32, &TokenTrie), walk: &Walk, exit: usize, n_words: usize) -> Option<Arc<Rest>> {
        self.sweeps.beyond(trie, walk.ending(exit), n_words)
    }
}

/// A sweep as a lexeme sees it that is where the sweep began.
fn see(
    stepper: &mut Stepper,
    language: &Language,
    trie: &TokenTrie,
    sweep: Arc<Sweep>,
    lexeme: LexemeId,
) -> Result<Walk, StepError> {
    let lexing = language.lexing();
    stepper.spend(sweep.groups.len() * 8)?;
    let transducer = stepper.transducer_mut();
    let (mut stays, mut exits) = (Vec::new(), Vec::new());
    for (at, group) in (0..).zip(&*sweep.groups) {
        let step = transducer.step_to(lexing, lexeme, group.place)?;
        if group.n_tokens > 0 {
            stays.extend(step.stay.map(|stay| (stay, at)));
        }
        if let Some(cut) = step.cut {
            let obligations = transducer.cut(cut).obligations;
            let mut tops = group.tops().iter();
            if group.n_tokens > 0 || tops.any(|&top| transducer.survives(lexing, obligations, trie.byte(top))) {
                exits.push((cut, at));
            }
        }
    }
    // In an order that does not depend on the numbers of lexemes and cuts, so that searches can be repeated: what most tokens do comes first.
    let by_size = |ways: &[(usize, u32)]| {
        let mut sizes: FxHashMap<usize, (usize, TokenId)> = FxHashMap::default();
        for &(way, at) in ways {
            let group = &sweep.groups[at as usize];
            if group.n_tokens > 0 {
                let (n_tokens, first) = sizes.entry(way).or_insert((0, group.first));
                (*n_tokens, *first) = (*n_tokens + group.n_tokens, group.first.min(*first));
            }
        }
        move |&(way, at): &(usize, u32)| (sizes.get(&way).map(|&(n_tokens, first)| (Reverse(n_tokens), first)), at)
    };
    let order = by_size(&stays.iter().map(|&(stay, at): &(LexemeId, u32)| (stay.index(), at)).collect::<Vec<_>>());
    stays.sort_by_cached_key(|&(stay, at)| order(&(stay.index(), at)));
    let order = by_size(&exits.iter().map(|&(cut, at): &(CutId, u32)| (cut.index(), at)).collect::<Vec<_>>());
    exits.sort_by_cached_key(|&(cut, at)| order(&(cut.index(), at)));
    Ok(Walk { sweep, stays: stays.into(), exits: exits.into() })
}
