//! What one token, any, does to a reading.
//!
//! The same sweeps over the trie of tokens as for masks (`anygram_left_to_right::mask`), one for each place
//! of the lexer's automata, say it: groups of tokens by the place that they come to. A lexeme sees in each
//! group the tokens that merely prolong the piece, or a way in which the piece can end, with them or inside
//! others, of which something is left: a trie of its own (a [`Rest`]) that is walked in the same way from the
//! boundary that the parser comes to. Cost of a lexeme at a place that is known: O(groups).

use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use anygram_bits::Random;
use anygram_left_to_right::Language;
use anygram_left_to_right::frontier::Stepper;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::{self, Group, Rest, Sweep};
use anygram_left_to_right::tokens::Tokens;
use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_vocab::{NodeId, TokenId, TokenTrie, Vocabulary};
use rustc_hash::FxHashMap;

/// What tokens, or what is left of them, do to one lexeme in progress.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The tokens after which the piece is in progress, by lexeme; large sets first.
    pub stays: Box<[(LexemeId, Ending)]>,
    /// The ways in which the piece can end.
    pub exits: Box<[Exit]>,
}

/// A way in which a piece can end inside tokens or with them.
#[derive(Debug)]
pub(crate) struct Exit {
    pub cut: CutId,
    /// The tokens that end here, if any do.
    pub ends: Ending,
    /// Where others go on, in the trie that was walked.
    tops: Box<[NodeId]>,
    rest: OnceLock<Arc<Rest>>,
}

/// The tokens that do one thing: those of some groups of a sweep.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub groups: Arc<[Arc<Tokens>]>,
    pub n_tokens: usize,
    /// The lowest, if there is one.
    pub first: Option<TokenId>,
}

impl Exit {
    /// Whether what is left beyond it was asked for already, or nothing is.
    pub fn knows_rest(&self) -> bool {
        self.tops.is_empty() || self.rest.get().is_some()
    }
}

impl Ending {
    fn new(groups: &[&Group]) -> Self {
        let groups = groups.iter().map(|group| group.tokens()).filter(|tokens| tokens.first().is_some());
        Self {
            groups: groups.clone().cloned().collect(),
            n_tokens: groups.clone().map(|tokens| tokens.count()).sum(),
            first: groups.filter_map(|tokens| tokens.first()).min(),
        }
    }

    /// One of them, another for another seed.
    pub fn some(&self, seed: u64) -> Option<TokenId> {
        self.first?;
        let mut random = Random::new(seed);
        self.groups[random.below(self.groups.len())].some(&mut random)
    }

    /// What most tokens do comes first.
    fn order(&self) -> Option<(Reverse<usize>, TokenId)> {
        self.first.map(|first| (Reverse(self.n_tokens), first))
    }
}

/// Which pieces are followed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Pieces {
    /// Those of a reading.
    Exact,
    /// Those of a reading that stands for several, of which it is not known what else each wants: see
    /// [`Transducer::step_to_loosely`](anygram_lexer::transducer::Transducer::step_to_loosely).
    Loose,
}

/// The walks that are kept, bounded in bytes, and the sweeps that they are made of: when either are too many,
/// all of them are dropped.
pub(crate) struct Walks {
    walks: FxHashMap<(LexemeId, u64, Pieces), Arc<Walk>>,
    sweeps: mask::Walks,
    bytes: usize,
}

impl Walks {
    pub fn new(vocabulary: &Vocabulary) -> Self {
        Self { walks: FxHashMap::default(), sweeps: mask::Walks::apart(vocabulary), bytes: 0 }
    }

    pub fn memory_usage(&self) -> usize {
        self.bytes + self.sweeps.memory_usage()
    }

    /// The nodes of tries that were looked at so far.
    pub fn n_seen(&self) -> u64 {
        self.sweeps.n_seen()
    }

    /// The walk from a lexeme over a trie.
    pub fn get(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        (id, trie): (u64, &TokenTrie),
        (lexeme, pieces): (LexemeId, Pieces),
        n_words: usize,
    ) -> Result<Arc<Walk>, StepError> {
        if let Some(walk) = self.walks.get(&(lexeme, id, pieces)) {
            return Ok(walk.clone());
        }
        let sweep = self.sweeps.sweep(stepper, language, (id, trie), lexeme, n_words)?;
        let walk = Arc::new(see(stepper, language, trie, &sweep, (lexeme, pieces))?);
        // Sweeps have a bound of their own.
        if self.bytes > language.limits().cache_bytes / 2 {
            self.walks.clear();
            self.bytes = 0;
        }
        self.bytes += walk.memory_usage();
        self.walks.insert((lexeme, id, pieces), walk.clone());
        Ok(walk)
    }

    /// What is left of the tokens that do not end with an exit; `None` if all do.
    pub fn rest(&mut self, trie: (u64, &TokenTrie), exit: &Exit, n_words: usize) -> Option<Arc<Rest>> {
        let fresh = || self.sweeps.rest(trie, &exit.tops, n_words);
        (!exit.tops.is_empty()).then(|| exit.rest.get_or_init(fresh).clone())
    }
}

impl Walk {
    fn memory_usage(&self) -> usize {
        let stays = self.stays.iter().map(|(_, ending)| size_of_val(&*ending.groups));
        let exits = self.exits.iter().map(|exit| size_of_val(&*exit.ends.groups) + size_of_val(&*exit.tops));
        let own = size_of_val(&*self.stays) + size_of_val(&*self.exits) + size_of::<Self>();
        stays.chain(exits).sum::<usize>() + own
    }
}

/// A sweep as a lexeme sees it that is where the sweep began.
fn see(
    stepper: &mut Stepper,
    language: &Language,
    trie: &TokenTrie,
    sweep: &Sweep,
    (lexeme, pieces): (LexemeId, Pieces),
) -> Result<Walk, StepError> {
    let lexing = language.lexing();
    stepper.spend(sweep.groups.len() * 8)?;
    let transducer = stepper.transducer_mut();
    let mut stays: FxHashMap<LexemeId, Vec<&Group>> = FxHashMap::default();
    let mut cuts: FxHashMap<CutId, Vec<&Group>> = FxHashMap::default();
    for group in &sweep.groups {
        let step = match pieces {
            Pieces::Exact => transducer.step_to(lexing, lexeme, group.place)?,
            Pieces::Loose => transducer.step_to_loosely(lexing, lexeme, group.place)?,
        };
        if let Some(stay) = step.stay
            && group.tokens().first().is_some()
        {
            stays.entry(stay).or_default().push(group);
        }
        if let Some(cut) = step.cut {
            cuts.entry(cut).or_default().push(group);
        }
    }
    let mut stays: Vec<_> = stays.into_iter().map(|(stay, groups)| (stay, Ending::new(&groups))).collect();
    let mut exits = Vec::with_capacity(cuts.len());
    for (cut, groups) in cuts {
        let obligations = transducer.cut(cut).obligations;
        let survives = |top: &NodeId| transducer.survives(lexing, obligations, trie.byte(*top));
        let mut tops: Vec<NodeId> =
            groups.iter().flat_map(|group| group.tops()).copied().filter(survives).collect();
        tops.sort_unstable();
        let ends = Ending::new(&groups);
        if ends.n_tokens > 0 || !tops.is_empty() {
            exits.push(Exit { cut, ends, tops: tops.into(), rest: OnceLock::new() });
        }
    }
    // In an order that does not depend on the numbers of lexemes and cuts, so that searches can be repeated.
    stays.sort_by_key(|(_, ending)| ending.order());
    exits.sort_by_key(|exit| (exit.ends.order(), exit.tops.first().copied()));
    Ok(Walk { stays: stays.into(), exits: exits.into() })
}
