//! What is recalled along one reading, and how much of that has to be told apart.
//!
//! Readings of a text go different ways: one stands in a value that is remembered, another outside of all. A
//! [`Recalled`] is what one of them recalls. A search for a completion has no room for all that was written,
//! so there it is a [`Watch`] for some values ([`Outlook`], by number); the search is for what could be a
//! completion if all others differ, and where they do not, these are watched for too.

use std::sync::Arc;

use anygram_bits::index_type;
use anygram_grammar::ir::{Grammar, TerminalId};
use anygram_grammar::memory::{ByteSet, Ended, Memory, Remembered, Watch, Watched};
use anygram_lexer::dfa::DEAD;
use anygram_lexer::transducer::{Cut, CutId};
use anygram_recognizer::StateId;
use anygram_vocab::{Alphabet, TokenId, TokenTrie, Vocabulary};
use rustc_hash::FxHashMap;

use crate::frontier::{Config, Stepper};
use crate::language::{Language, StepError};

/// What a reading recalls of its text.
#[derive(Clone, Debug)]
pub enum Recalled<M = Arc<dyn Memory>> {
    /// Nothing: there is no memory, or nothing of it matters any more.
    Nothing,
    /// It is outside of values; the last byte that is no blank.
    Outside(u8),
    /// It is within a value of a kind, or if that is `None` in a text that is remembered as a whole.
    Within(Option<u32>, M),
}

/// Whether a byte is a blank for all that is remembered within texts.
fn is_blank(grammar: &Grammar, byte: u8) -> bool {
    grammar.embedded.iter().all(|memory| memory.is_blank(byte))
}

impl<M> Recalled<M> {
    /// What is recalled after a byte, where a memory makes of it what it is then and whether it is over.
    fn after(&self, grammar: &Grammar, byte: u8, step: impl FnOnce(&M) -> (M, bool)) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Outside(last) => Self::Outside(if is_blank(grammar, byte) { *last } else { byte }),
            Self::Within(of, memory) => match (step(memory), of) {
                ((memory, false), _) => Self::Within(*of, memory),
                ((_, true), None) => Self::Nothing,
                ((_, true), Some(_)) => Self::Outside(byte),
            },
        }
    }
}

impl Recalled {
    /// What is recalled after a byte.
    pub fn step(&self, grammar: &Grammar, byte: u8) -> Self {
        self.after(grammar, byte, |memory| {
            let mut next = memory.clone();
            if !memory.ignores(byte) {
                next = memory.fork();
                Arc::get_mut(&mut next).into_iter().for_each(|next| next.step(byte));
            }
            let is_over = next.is_over();
            (next, is_over)
        })
    }

    /// After some bytes.
    pub fn read(&self, grammar: &Grammar, bytes: &[u8]) -> Self {
        bytes.iter().fold(self.clone(), |recalled, &byte| recalled.step(grammar, byte))
    }

    /// With the [mark](Memory::mark) here.
    pub fn marked(&self) -> Self {
        match self {
            Self::Within(of, memory) => {
                let mut marked = memory.fork();
                Arc::get_mut(&mut marked).into_iter().for_each(|memory| memory.mark());
                Self::Within(*of, marked)
            }
            other => other.clone(),
        }
    }

    /// See [`Memory::ended`].
    pub fn ended(&self) -> Option<Ended> {
        if let Self::Within(_, memory) = self { memory.ended() } else { None }
    }

    /// What a value of a kind recalls that a reading opens here.
    fn opened(&self, grammar: &Grammar, of: u32) -> Self {
        let (Self::Outside(last), Some(memory)) = (self, grammar.embedded.get(of as usize)) else {
            return Self::Nothing;
        };
        Self::Within(Some(of), memory.0.clone()).step(grammar, *last)
    }

    /// What readings recall that a piece leads to.
    pub fn behind(&self, grammar: &Grammar, opened: Option<u32>) -> Self {
        opened.map_or_else(|| self.clone(), |of| self.opened(grammar, of))
    }

    /// Equal where what follows is alike.
    pub fn print(&self) -> (u32, u64) {
        match self {
            Self::Nothing => (0, 0),
            Self::Outside(last) => (1, u64::from(*last)),
            Self::Within(of, memory) => (of.map_or(2, |of| of + 3), memory.fingerprint()),
        }
    }

    /// How a piece ends that ended with the last byte.
    pub fn ending(&self) -> Ending {
        match self {
            Self::Nothing => Ending::Plain,
            Self::Outside(_) => Ending::Outside,
            Self::Within(_, memory) if memory.repeats() => Ending::Repeats,
            Self::Within(..) => Ending::Plain,
        }
    }
}

/// What the memory says of a piece that ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Nothing.
    Plain,
    /// It repeats an earlier one.
    Repeats,
    /// It is outside of values, and may open one.
    Outside,
}

index_type!(
    /// What is recalled while some values are watched for.
    Outlook
);

impl Outlook {
    /// Nothing.
    pub const NONE: Self = Self(0);
}

/// No step was made there yet.
const UNKNOWN: u32 = u32::MAX;

/// What is watched for.
struct List {
    values: Vec<Watched>,
    keeps: bool,
}

/// All outlooks.
pub(crate) struct Outlooks {
    lists: Vec<List>,
    list_ids: FxHashMap<(u64, bool), u32>,
    all: Vec<(Recalled<Arc<dyn Watch>>, u32)>,
    ids: FxHashMap<(u32, (u32, u64)), Outlook>,
    steps: Vec<[u32; 256]>,
    /// The bytes that open values.
    openers: ByteSet,
    tables: FxHashMap<Outlook, Arc<[Outlook]>>,
    staying: FxHashMap<Outlook, Alphabet>,
}

/// Outlooks beyond which all are made anew, and tables of what tokens lead to.
const MOST_OUTLOOKS: usize = 50_000;
const MOST_TABLES: usize = 16;

/// One of so many nodes of the trie a token: then a table is worth it. Nodes below one that are worth finding
/// out whether all leads back.
const MANY: usize = 32;
const LARGE: u32 = 64;

impl Outlooks {
    pub fn new(language: &Language) -> Self {
        let mut this = Self {
            lists: Vec::new(),
            list_ids: FxHashMap::default(),
            all: Vec::new(),
            ids: FxHashMap::default(),
            steps: Vec::new(),
            openers: openers(language),
            tables: FxHashMap::default(),
            staying: FxHashMap::default(),
        };
        this.clear();
        this
    }

    fn clear(&mut self) {
        self.lists.clear();
        self.list_ids.clear();
        self.ids.clear();
        self.tables.clear();
        self.staying.clear();
        self.all = vec![(Recalled::Nothing, 0)];
        self.steps = vec![[0; 256]];
    }

    /// Makes room; whether all outlooks are gone.
    pub fn tidy(&mut self) -> bool {
        let is_full = self.all.len() > MOST_OUTLOOKS;
        if is_full {
            self.clear();
        }
        is_full
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn memory_usage(&self) -> usize {
        self.all.len() * 1_500 + self.tables.values().map(|table| size_of_val(&**table)).sum::<usize>()
    }

    /// What is recalled, if only some values are watched for; with `keeps` those too that were written.
    pub fn of(&mut self, recalled: &Recalled, values: &[Watched], keeps: bool) -> Outlook {
        let print = values.iter().fold(0u64, |sum, value| sum.wrapping_add(value.print));
        let fresh = self.lists.len() as u32;
        let list = *self.list_ids.entry((print, keeps)).or_insert_with(|| {
            self.lists.push(List { values: values.to_vec(), keeps });
            fresh
        });
        let known = match recalled {
            Recalled::Nothing => Recalled::Nothing,
            Recalled::Outside(last) => Recalled::Outside(self.opener(*last)),
            Recalled::Within(of, memory) => Recalled::Within(*of, memory.watching(values, keeps)),
        };
        self.id(known, list)
    }

    fn opener(&self, byte: u8) -> u8 {
        if self.openers.contains(byte) { byte } else { 0 }
    }

    fn id(&mut self, recalled: Recalled<Arc<dyn Watch>>, list: u32) -> Outlook {
        let print = match &recalled {
            Recalled::Nothing => return Outlook::NONE,
            Recalled::Outside(last) => (1, u64::from(*last)),
            Recalled::Within(of, memory) => (of.map_or(2, |of| of + 3), memory.fingerprint()),
        };
        let fresh = Outlook::new(self.all.len());
        let id = *self.ids.entry((list, print)).or_insert(fresh);
        if id == fresh {
            self.all.push((recalled, list));
            self.steps.push([UNKNOWN; 256]);
        }
        id
    }

    /// The outlook after a byte.
    #[inline]
    pub fn step(&mut self, grammar: &Grammar, from: Outlook, byte: u8) -> Outlook {
        let known = self.steps[from.index()][usize::from(byte)];
        if known != UNKNOWN {
            return Outlook(known);
        }
        let (recalled, list) = &self.all[from.index()];
        let list = *list;
        let next = recalled.after(grammar, byte, |memory| {
            let next = memory.step(byte);
            let is_over = next.is_over();
            (next, is_over)
        });
        let next = match next {
            Recalled::Outside(last) => Recalled::Outside(self.opener(last)),
            other => other,
        };
        let next = self.id(next, list);
        self.steps[from.index()][usize::from(byte)] = next.0;
        next
    }

    /// How a piece ends that ended with the last byte.
    pub fn ending(&self, grammar: &Grammar, at: Outlook) -> Ending {
        match &self.all[at.index()].0 {
            // Where values are remembered, a piece that opens one leads elsewhere than others.
            Recalled::Nothing if !grammar.embedded.is_empty() => Ending::Outside,
            Recalled::Nothing => Ending::Plain,
            Recalled::Outside(_) => Ending::Outside,
            Recalled::Within(_, memory) if memory.repeats() => Ending::Repeats,
            Recalled::Within(..) => Ending::Plain,
        }
    }

    /// The outlook of readings that a piece leads to, as [`Recalled::behind`].
    pub fn behind(&mut self, grammar: &Grammar, at: Outlook, opened: Option<u32>) -> Outlook {
        let Some(of) = opened else { return at };
        let &(Recalled::Outside(last), list) = &self.all[at.index()] else { return at };
        let Recalled::Within(_, memory) = Recalled::Outside(last).opened(grammar, of) else { return at };
        let List { values, keeps } = &self.lists[list as usize];
        let memory = memory.watching(values, *keeps);
        self.id(Recalled::Within(Some(of), memory), list)
    }

    /// Whether tokens that lead here have to be looked at one by one, see [`Watch::is_lost`].
    pub fn is_lost(&self, at: Outlook) -> bool {
        match &self.all[at.index()] {
            (Recalled::Nothing, _) => false,
            (Recalled::Outside(last), list) => self.lists[*list as usize].keeps && *last != 0,
            (Recalled::Within(_, memory), _) => memory.is_lost(),
        }
    }

    /// Where tokens lead, one by one; it stays where something was lost. Cost: their bytes, or where they are
    /// many what [`Outlooks::table`] takes, once. Says how many steps that were.
    pub fn behind_tokens(
        &mut self,
        grammar: &Grammar,
        vocabulary: &Vocabulary,
        (from, tokens): (Outlook, &[TokenId]),
    ) -> (Vec<Outlook>, usize) {
        if from == Outlook::NONE {
            return (vec![from; tokens.len()], 0);
        }
        if tokens.len() >= vocabulary.trie().n_nodes() / MANY {
            let (table, n_steps) = self.table(grammar, vocabulary.trie(), from);
            return (tokens.iter().map(|token| table[token.index()]).collect(), n_steps);
        }
        let mut n_steps = 0;
        let lead = |token: &TokenId| {
            let mut at = from;
            for &byte in vocabulary.bytes(*token).unwrap_or_default() {
                n_steps += 1;
                at = self.step(grammar, at, byte);
                if self.is_lost(at) {
                    break;
                }
            }
            at
        };
        (tokens.iter().map(lead).collect(), n_steps)
    }

    /// The same of all tokens, by number. Cost: those nodes of the trie below which not all leads back to
    /// where it comes from.
    fn table(&mut self, grammar: &Grammar, trie: &TokenTrie, from: Outlook) -> (Arc<[Outlook]>, usize) {
        if let Some(known) = self.tables.get(&from) {
            return (known.clone(), 0);
        }
        let n_tokens = trie.order().iter().map(|token| token.index() + 1).max().unwrap_or(0);
        let mut table = vec![from; n_tokens];
        let mut n_steps = n_tokens / 16;
        // Nothing stops it.
        let walked: Result<(), StepError> = trie.descend(trie.below_root(), from, |&before, at| {
            n_steps += 1;
            let next = self.step(grammar, before, trie.byte(at));
            let is_large = trie.end(at).0 - at.0 > LARGE;
            let is_all = self.is_lost(next)
                || is_large && trie.alphabet(at).is_text() && {
                    let staying = self.staying(grammar, next);
                    trie.alphabet(at).is_subset(staying)
                };
            let tokens = if is_all { trie.tokens_below(at) } else { trie.tokens_at(at) };
            if next != from {
                tokens.iter().for_each(|token| table[token.index()] = next);
            }
            Ok((!is_all).then_some(next))
        });
        debug_assert!(walked.is_ok());
        if self.tables.len() >= MOST_TABLES {
            self.tables.clear();
        }
        let table: Arc<[Outlook]> = table.into();
        self.tables.insert(from, table.clone());
        (table, n_steps)
    }

    /// The characters that change nothing.
    fn staying(&mut self, grammar: &Grammar, at: Outlook) -> Alphabet {
        if let Some(known) = self.staying.get(&at) {
            return *known;
        }
        let mut found = Alphabet::EMPTY;
        for byte in (0..0x80).filter(|&byte| self.step(grammar, at, byte) == at) {
            found.insert_ascii(byte);
        }
        if (0x80..=u8::MAX).all(|byte| self.step(grammar, at, byte) == at) {
            found.insert_others();
        }
        self.staying.insert(at, found);
        found
    }
}

/// The bytes that open values: those of the pieces that do.
fn openers(language: &Language) -> ByteSet {
    let (grammar, lexing) = (language.grammar(), language.lexing());
    let opens = |&at: &usize| grammar.terminals[at].memory.and_then(Remembered::opens).is_some();
    let mut openers = Vec::new();
    for terminal in (0..grammar.terminals.len()).filter(opens).map(TerminalId::new) {
        let Some(dfa) = lexing.dfa(terminal) else { return ByteSet::ALL };
        let n_states = dfa.accepting.len() as u32;
        let has = |byte| (0..n_states).any(|state| dfa.step(state, byte) != DEAD);
        openers.extend((0..=u8::MAX).filter(|&byte| has(byte) && !is_blank(grammar, byte)));
    }
    openers.into_iter().collect()
}

impl Stepper {
    /// What the end of a piece leads to, as the memory says how it ends: each reading with the value that it
    /// opens.
    pub(crate) fn ends(
        &mut self,
        language: &Language,
        (from, cut): (StateId, CutId),
        ending: Ending,
    ) -> Result<Vec<(Option<u32>, Config)>, StepError> {
        let memories = |at: TerminalId| language.grammar().terminals[at.index()].memory;
        let opened_by = |at| memories(at).and_then(Remembered::opens);
        let may_repeat = |at| memories(at).is_none_or(|terminal| !terminal.is_distinct());
        let scans = &self.transducer().cut(cut).scans;
        let is_plain = match ending {
            Ending::Plain => true,
            Ending::Repeats => scans.iter().all(|&scan| may_repeat(scan)),
            Ending::Outside => scans.iter().all(|&scan| opened_by(scan).is_none()),
        };
        if is_plain {
            return Ok(self.end(language, (from, cut))?.into_iter().map(|config| (None, config)).collect());
        }
        let Cut { scans, skip, obligations } = self.transducer().cut(cut).clone();
        let (mut plain, mut found) = (Vec::new(), Vec::new());
        let mut opening: Vec<(u32, Vec<TerminalId>)> = Vec::new();
        for scan in scans {
            match (ending, opened_by(scan)) {
                (Ending::Repeats, _) => plain.extend(may_repeat(scan).then_some(scan)),
                (_, None) => plain.push(scan),
                (_, Some(of)) => match opening.iter_mut().find(|known| known.0 == of) {
                    Some((_, scans)) => scans.push(scan),
                    None => opening.push((of, vec![scan])),
                },
            }
        }
        let mut groups: Vec<(Option<u32>, Vec<TerminalId>, bool)> =
            opening.into_iter().map(|(of, scans)| (Some(of), scans, false)).collect();
        groups.extend((skip || !plain.is_empty()).then_some((None, plain, skip)));
        for (opened, scans, skip) in groups {
            if let Some(state) = self.read_piece(from, &scans, skip)?
                && let Some(config) = self.boundary(language, state, obligations)?
            {
                found.push((opened, config));
            }
        }
        Ok(found)
    }

    /// Whether some labels of a piece are held against others.
    pub(crate) fn is_distinct(&self, language: &Language, cut: CutId) -> bool {
        let terminals = &language.grammar().terminals;
        let is_distinct =
            |scan: &TerminalId| terminals[scan.index()].memory.is_some_and(|of| of.is_distinct());
        self.transducer().cut(cut).scans.iter().any(is_distinct)
    }
}
