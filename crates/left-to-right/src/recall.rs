//! Readings, and what the grammar's memory recalls of their text.
//!
//! Most of what a text means is in its readings; that keys differ, and items that have to, is in a
//! [`Memory`] beside them ([`anygram_grammar::memory`]). Where a piece ends that repeats another, readings in
//! which it may not are dropped. As long as something in progress may come to repeat something, a text is
//! viable only if there is another way to go on; that takes a look at the piece, and where arrays or objects
//! are in progress a search along what they may come to repeat. It is finite: there are only so many of them.
//!
//! Where values stand within other text (schemas in other grammars), what is a value depends on the reading.
//! So each value that some reading has begun has a memory and readings of its own, apart from those outside;
//! with the piece that closes it they are outside again. A mask is that of any of them.
//!
//! Masks are those of the readings less the tokens after which nothing can follow. Such a token ends in what
//! may come to repeat something, or beyond a piece that does; these are few, and each is tried.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use anygram_grammar::memory::{ByteSet, Memory, Remembers, Rests, TokenTest};
use anygram_vocab::{NodeId, TokenId, TokenTrie, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::counts::Counts;
use crate::error::StepCause;
use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, StepError};
use crate::recalled::Recalled;
use crate::tokens::{MASK_BITS, clear_bit, get_bit, set_bit};

/// What is recalled of a text; nothing in a language without a memory. Copies share it until they read on.
#[derive(Clone, Debug, Default)]
pub struct Recall {
    /// Of the whole text, or of a value within it.
    memory: Option<Arc<dyn Memory>>,
    /// Where values within texts are remembered.
    inside: Option<Box<Inside>>,
    /// Where tokens are counted: for the readings outside of values, which hold nothing that is counted.
    counts: Option<Box<Counts>>,
}

/// The values that some readings are within.
///
/// Which part of a text is a value depends on the reading, so those within one are kept apart from others.
/// All readings that began a value at one place are within it at the same bytes, since brackets of JSON
/// match by the text alone; when it is closed they are outside again.
#[derive(Clone, Debug)]
struct Inside {
    /// The last byte that is no blank.
    last: u8,
    values: Vec<Value>,
}

/// A value that has begun.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its memory in the grammar.
    of: u32,
    /// Whether only blanks were read since it was opened.
    is_fresh: bool,
    /// The readings that are within it.
    pub readings: Frontier,
    /// What is recalled of it.
    pub recall: Recall,
}

/// Readings that have other names.
pub(crate) fn renamed_frontier<E>(
    readings: &[Config],
    rename: impl FnMut(Config) -> Result<Config, E>,
) -> Result<Frontier, E> {
    let mut renamed = readings.iter().copied().map(rename).collect::<Result<Frontier, E>>()?;
    renamed.sort_unstable();
    renamed.dedup();
    Ok(renamed)
}

impl Recall {
    /// Of the empty text.
    pub fn new(language: &Language) -> Self {
        let memory = language.grammar().memory.as_ref().map(|memory| memory.0.clone());
        let embedded = &language.grammar().embedded;
        let inside = (!embedded.is_empty()).then(|| Box::new(Inside { last: 0, values: Vec::new() }));
        Self { memory, inside, counts: Counts::new(language).map(Box::new) }
    }

    /// Whether it is the same for all texts of the language.
    pub(crate) fn is_nothing(&self) -> bool {
        self.memory.is_none() && !self.has_readings()
    }

    /// Whether there are readings in it.
    pub(crate) fn has_readings(&self) -> bool {
        self.inside.is_some() || self.counts.is_some()
    }

    /// Whether it is something, and that of a text is what comes of its bytes ([`Recall::read`]).
    pub(crate) fn follows_from_text(&self) -> bool {
        self.memory.is_some() && !self.has_readings()
    }

    /// Reads bytes of a text, if it follows from that.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.step(byte));
    }

    /// The same of readings that have other names.
    pub(crate) fn renamed<E>(&self, rename: &mut impl FnMut(Config) -> Result<Config, E>) -> Result<Self, E> {
        let mut renamed = self.clone();
        if let Some(counts) = &mut renamed.counts {
            **counts = counts.renamed(&mut *rename)?;
        }
        for value in renamed.inside.iter_mut().flat_map(|inside| &mut inside.values) {
            value.readings = renamed_frontier(&value.readings, &mut *rename)?;
        }
        Ok(renamed)
    }

    /// Of a value that a byte has opened.
    fn of_value(memory: &Remembers, opened_by: u8) -> Self {
        let mut recall = Self { memory: Some(memory.0.clone()), inside: None, counts: None };
        recall.step(opened_by);
        recall
    }

    /// The values that some readings are within.
    pub fn values(&self) -> &[Value] {
        self.inside.as_ref().map_or(&[], |inside| &inside.values)
    }

    /// Ends a token: of the readings outside of values, those are left in which no part of the text has more
    /// tokens than it may.
    pub(crate) fn count_token(
        &mut self,
        stepper: &mut Stepper,
        language: &Language,
        outside: Frontier,
    ) -> Result<Frontier, StepError> {
        match &mut self.counts {
            Some(counts) => stepper.count_token(language, outside, counts),
            None => Ok(outside),
        }
    }

    /// The readings outside of values as [`Counts::numbered`] has them, where tokens are counted.
    pub(crate) fn numbered(
        &self,
        stepper: &mut Stepper,
        language: &Language,
        outside: &[Config],
        room: u32,
    ) -> Result<Frontier, StepError> {
        match &self.counts {
            Some(counts) => counts.numbered(stepper, language, outside, room),
            None => Ok(outside.to_vec()),
        }
    }

    /// What readings recall that are outside of values.
    pub(crate) fn outside(&self) -> Recalled {
        match (&self.inside, &self.memory) {
            (Some(inside), _) => Recalled::Outside(inside.last),
            (None, Some(memory)) => Recalled::Within(None, memory.clone()),
            (None, None) => Recalled::Nothing,
        }
    }

    /// See [`Memory::siblings`], of all that is recalled.
    pub(crate) fn siblings(&self) -> usize {
        let own = self.memory.as_ref().map_or(0, |memory| memory.siblings());
        self.values().iter().map(|value| value.recall.siblings()).max().unwrap_or(0).max(own)
    }

    /// All readings of a text, each with what it recalls.
    pub(crate) fn along(&self, outside: &[Config]) -> Vec<(Config, Recalled)> {
        let of_all = self.outside();
        let mut all: Vec<_> = outside.iter().map(|&config| (config, of_all.clone())).collect();
        for Value { of, readings, recall, .. } in self.values() {
            let Some(memory) = &recall.memory else { continue };
            all.extend(readings.iter().map(|&config| (config, Recalled::Within(Some(*of), memory.clone()))));
        }
        all
    }

    /// Forgets the readings within values.
    pub fn leave_values(&mut self) {
        self.inside.iter_mut().for_each(|inside| inside.values.clear());
    }

    /// All readings of a text: those outside of values and those within.
    pub fn readings<'a>(&self, outside: &'a [Config]) -> Cow<'a, [Config]> {
        if self.values().is_empty() {
            return Cow::Borrowed(outside);
        }
        let mut all = outside.to_vec();
        self.values().iter().for_each(|value| all.extend(&value.readings));
        all.sort_unstable();
        all.dedup();
        Cow::Owned(all)
    }

    /// Reads a byte.
    fn step(&mut self, byte: u8) {
        let Some(memory) = self.memory.as_mut().filter(|memory| !memory.ignores(byte)) else { return };
        if Arc::get_mut(memory).is_none() {
            *memory = memory.fork();
        }
        if let Some(memory) = Arc::get_mut(memory) {
            memory.step(byte);
            if memory.is_over() {
                self.memory = None;
            }
        }
    }

    fn repeats(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.repeats())
    }

    /// Whether what may be repeated next takes more than a look at some tokens.
    pub fn takes_work(&self) -> bool {
        !self.values().is_empty() || self.memory.as_ref().is_some_and(|memory| memory.risk().is_some())
    }

    /// Whether the next byte can lead elsewhere than others that are alike for the lexer: something may come
    /// to be repeated by it.
    pub fn tells_apart(&self, byte: u8) -> bool {
        let own = self.risk().is_some_and(|risk| risk.contains(byte));
        own || self.values().iter().any(|value| value.recall.tells_apart(byte))
    }

    /// Whether nothing that changes anything was read between.
    fn is(&self, other: &Self) -> bool {
        matches!((&self.memory, &other.memory), (Some(memory), Some(other)) if Arc::ptr_eq(memory, other))
    }

    fn risk(&self) -> Option<ByteSet> {
        Some(self.memory.as_ref()?.risk()?.bytes)
    }

    fn rests(&self) -> Option<Rests<'_>> {
        self.memory.as_ref()?.rests()
    }

    fn at_risk(&self) -> Option<&dyn Memory> {
        self.memory.as_deref().filter(|memory| memory.is_at_risk())
    }
}

/// A walk of the trie asks whether any of so many tokens is in the mask; of more, looking costs more than
/// walking.
const MANY_TOKENS: usize = 100;

impl Stepper {
    /// As [`Stepper::step`], with what is recalled, which reads the byte too.
    pub fn step_recalling(
        &mut self,
        language: &Language,
        frontier: &[Config],
        recall: &mut Recall,
        byte: u8,
        next: &mut Frontier,
    ) -> Result<(), StepError> {
        if let Some(counts) = &mut recall.counts {
            self.step_counts(language, frontier, counts, byte)?;
        }
        if let Some(inside) = &mut recall.inside {
            return self.step_inside(language, (frontier, inside), byte, next);
        }
        recall.step(byte);
        if recall.repeats() {
            self.step_afresh(language, frontier, byte, next)
        } else {
            self.step(language, frontier, byte, next)
        }
    }

    /// The same where values are remembered: `frontier` are the readings outside of them.
    fn step_inside(
        &mut self,
        language: &Language,
        (frontier, inside): (&[Config], &mut Inside),
        byte: u8,
        next: &mut Frontier,
    ) -> Result<(), StepError> {
        let embedded = &language.grammar().embedded;
        let is_blank = embedded.iter().all(|memory| memory.is_blank(byte));
        if !is_blank {
            inside.last = byte;
        }
        next.clear();
        let mut returning = Vec::new();
        for mut value in std::mem::take(&mut inside.values) {
            value.recall.step(byte);
            value.is_fresh &= is_blank;
            if value.recall.memory.is_none() {
                returning.extend(self.closing_edges(language, &value.readings, byte, next)?);
                continue;
            }
            let mut readings = Frontier::new();
            if value.recall.repeats() {
                self.step_afresh(language, &value.readings, byte, &mut readings)?;
            } else {
                self.step(language, &value.readings, byte, &mut readings)?;
            }
            if !readings.is_empty() {
                inside.values.push(Value { readings, ..value });
            }
        }
        for (of, config) in self.step_outside(language, frontier, (byte, returning), next)? {
            // The piece that opens a value can go on with blanks.
            let known = inside.values.iter_mut().find(|value| value.of == of && value.is_fresh);
            match known {
                Some(value) => {
                    value.readings.push(config);
                    value.readings.sort_unstable();
                    value.readings.dedup();
                }
                None => {
                    let recall = Recall::of_value(&embedded[of as usize], inside.last);
                    inside.values.push(Value { of, is_fresh: true, readings: vec![config], recall });
                }
            }
        }
        let limit = language.limits().open_values;
        if inside.values.len() > limit {
            return Err(StepCause::OpenValues { limit }.into());
        }
        Ok(())
    }

    /// Whether some continuation makes a sentence of the text.
    pub fn is_viable_recalling(
        &mut self,
        language: &Language,
        frontier: &[Config],
        recall: &Recall,
    ) -> Result<bool, StepError> {
        if !recall.values().is_empty() {
            return self.is_any_viable(language, frontier, recall.values());
        }
        let Some(memory) = recall.at_risk() else { return self.is_viable(language, frontier) };
        if frontier.is_empty() || !self.is_viable(language, frontier)? {
            return Ok(false);
        }
        Ok(memory.always_differs()
            || self.can_differ(language, frontier, memory)
            || self.finds_another(language, frontier, recall)?)
    }

    /// The same of readings outside of values and within them.
    fn is_any_viable(
        &mut self,
        language: &Language,
        frontier: &[Config],
        values: &[Value],
    ) -> Result<bool, StepError> {
        let mut verdict = self.is_viable(language, frontier);
        for Value { readings, recall, .. } in values {
            // A yes needs no decision about the others.
            match (&verdict, self.is_viable_recalling(language, readings, recall)) {
                (Ok(true), _) | (_, Ok(true)) => return Ok(true),
                (Ok(false), other) => verdict = other,
                (Err(_), _) => {}
            }
        }
        verdict
    }

    /// Whether the piece in progress can become one that repeats nothing.
    fn can_differ(&self, language: &Language, frontier: &[Config], memory: &dyn Memory) -> bool {
        if !memory.is_within() {
            return false;
        }
        let terminals = &language.grammar().terminals;
        frontier.iter().filter(|config| !self.transducer().is_boundary(config.lexeme)).any(|config| {
            let candidates = self.transducer().candidates(language.lexing(), config.lexeme);
            candidates
                .iter()
                .any(|terminal| terminals[terminal].memory.is_none_or(|terminal| memory.differs(terminal)))
        })
    }

    /// Looks along everything that may be repeated for a way to go on that repeats nothing.
    fn finds_another(
        &mut self,
        language: &Language,
        frontier: &[Config],
        recall: &Recall,
    ) -> Result<bool, StepError> {
        let limit = language.limits().search_steps;
        let mut seen = FxHashSet::default();
        let mut agenda = vec![(frontier.to_vec(), recall.clone())];
        let (mut at, mut next) = (Frontier::new(), Frontier::new());
        while let Some((frontier, recall)) = agenda.pop() {
            let Some(memory) = recall.at_risk() else { continue };
            for continuation in memory.continuations() {
                let mut recall = recall.clone();
                at.clone_from(&frontier);
                for byte in continuation {
                    self.step_recalling(language, &at, &mut recall, byte, &mut next)?;
                    std::mem::swap(&mut at, &mut next);
                }
                if at.is_empty() {
                    continue;
                }
                match recall.at_risk() {
                    None if self.is_viable(language, &at)? => return Ok(true),
                    Some(memory) if self.can_differ(language, &at, memory) => return Ok(true),
                    Some(memory) if seen.insert((at.clone(), memory.fingerprint())) => {
                        agenda.push((at.clone(), recall));
                    }
                    None | Some(_) => {}
                }
            }
            if seen.len() > limit {
                return Err(StepCause::Undecided { limit }.into());
            }
        }
        Ok(false)
    }

    /// Clears the bits of tokens after which nothing can follow, because it would repeat something.
    pub fn remove_repeating(
        &mut self,
        language: &Language,
        (vocabulary, selections): (&Vocabulary, &mut Selections),
        (frontier, recall): (&[Config], &Recall),
        words: &mut [u32],
    ) -> Result<(), StepError> {
        let Some(memory) = recall.memory.as_deref() else { return Ok(()) };
        let risk = memory.risk();
        let whole = selections.get(vocabulary, memory.whole());
        if risk.is_none() && !whole.words.iter().any(|&(at, bits)| bits & words[at] != 0) {
            return Ok(());
        }
        let way = Way { bytes: Vec::new(), frontiers: vec![frontier.to_vec()] };
        let mut removal = Removal {
            stepper: self,
            language,
            words,
            way,
            verdicts: FxHashMap::default(),
            places: Vec::new(),
        };
        if let Some(risk) = risk {
            let selection = risk.test.map(|test| selections.get(vocabulary, test));
            let trie = selection.as_ref().map_or(vocabulary.trie(), |selection| &selection.trie);
            removal.follow(trie, recall, risk.bytes)?;
        }
        removal.look_at(vocabulary, &whole, recall)
    }
}

/// Clears the bits of tokens after which nothing can follow, because it would repeat something.
struct Removal<'a> {
    stepper: &'a mut Stepper,
    language: &'a Language,
    words: &'a mut [u32],
    way: Way,
    /// Whether places are viable, by their readings and what is alike for the memory.
    verdicts: FxHashMap<(Frontier, u64), bool>,
    /// Where the walk still has to go on along what the memory knows.
    places: Vec<Place>,
}

impl Removal<'_> {
    /// Those that begin with bytes by which something may be repeated: a walk of the trie as long as that may
    /// be. Most of it is the memory's alone; the readings take the same way where it depends on them whether
    /// something can follow.
    fn follow(&mut self, trie: &TokenTrie, recall: &Recall, risk: ByteSet) -> Result<(), StepError> {
        if recall.rests().is_some() {
            self.places.push(Place { node: TokenTrie::ROOT, bytes: Vec::new(), recall: recall.clone() });
        } else {
            let tops = (0..=u8::MAX).filter(|&byte| risk.contains(byte));
            for top in tops.filter_map(|byte| trie.child(TokenTrie::ROOT, byte)) {
                let root = Walk { depth: 0, recall: recall.clone(), risk: Some(risk) };
                trie.descend(trie.subtree(top), root, |walk, node| self.enter(trie, walk, node))?;
            }
        }
        while let Some(place) = self.places.pop() {
            self.follow_rests(trie, &place)?;
        }
        Ok(())
    }

    /// Whether any of the tokens is left; of many, looking costs more than walking.
    fn is_wanted(&self, tokens: &[TokenId]) -> bool {
        tokens.len() >= MANY_TOKENS || tokens.iter().any(|token| get_bit(self.words, token.index()))
    }

    /// Goes on to a node: the walk behind it, if it goes on node by node.
    fn enter(&mut self, trie: &TokenTrie, walk: &Walk, node: NodeId) -> Result<Option<Walk>, StepError> {
        let (byte, below) = (trie.byte(node), trie.tokens_below(node));
        if walk.risk.is_some_and(|risk| !risk.contains(byte)) || !self.is_wanted(below) {
            return Ok(None);
        }
        let mut recall = walk.recall.clone();
        recall.step(byte);
        let is_changed = !recall.is(&walk.recall);
        self.way.go(walk.depth, (byte, recall.repeats()));
        // Where readings were dropped, the mask is not that of those that are left.
        let are_dropped = walk.risk.is_none() || recall.repeats();
        let is_in_doubt = are_dropped || recall.at_risk().is_some_and(|memory| !memory.always_differs());
        if is_in_doubt && !self.is_viable(&recall)? {
            below.iter().for_each(|token| clear_bit(self.words, token.index()));
            return Ok(None);
        }
        if are_dropped {
            return Ok(Some(Walk { depth: walk.depth + 1, recall, risk: None }));
        }
        if is_changed && recall.rests().is_some() {
            let bytes = self.way.bytes.iter().map(|read| read.0).collect();
            self.places.push(Place { node, bytes, recall });
            return Ok(None);
        }
        let risk = if is_changed { recall.risk() } else { walk.risk };
        Ok(risk.is_some().then_some(Walk { depth: walk.depth + 1, recall, risk }))
    }

    /// As [`Stepper::is_viable_recalling`], at the end of the way.
    fn is_viable(&mut self, recall: &Recall) -> Result<bool, StepError> {
        let frontier = self.way.readings(self.stepper, self.language)?;
        let Some(memory) = recall.at_risk() else { return self.stepper.is_viable(self.language, frontier) };
        let place = (frontier.to_vec(), memory.fingerprint());
        if let Some(&verdict) = self.verdicts.get(&place) {
            return Ok(verdict);
        }
        let verdict = self.stepper.is_viable_recalling(self.language, &place.0, recall)?;
        self.verdicts.insert(place, verdict);
        Ok(verdict)
    }

    /// Walks the trie along what repeats something, as it is spelled most plainly, and by the memory again
    /// where that ends and in other spellings.
    fn follow_rests(&mut self, trie: &TokenTrie, place: &Place) -> Result<(), StepError> {
        let Some(rests) = place.recall.rests() else { return Ok(()) };
        // Nodes, with how much of some texts leads there.
        let mut agenda = vec![(place.node, 0, &*rests.texts)];
        while let Some((node, n_read, mut texts)) = agenda.pop() {
            let Some(first) = texts.first() else { continue };
            let read = &first.as_bytes()[..n_read];
            if let Some(escape) = trie.child(node, rests.escape) {
                self.leave(trie, escape, place, read)?;
            }
            // A text that ends here is the first, and there is no other such.
            if first.len() == n_read {
                if let Some(end) = trie.child(node, rests.end) {
                    self.leave(trie, end, place, read)?;
                }
                texts = &texts[1..];
            }
            while let Some(byte) = texts.first().map(|text| text.as_bytes()[n_read]) {
                let n_alike = texts.partition_point(|text| text.as_bytes()[n_read] == byte);
                let (alike, others) = texts.split_at(n_alike);
                texts = others;
                if byte == rests.end || byte == rests.escape {
                    continue;
                }
                if let Some(child) =
                    trie.child(node, byte).filter(|&child| self.is_wanted(trie.tokens_below(child)))
                {
                    agenda.push((child, n_read + 1, alike));
                }
            }
        }
        Ok(())
    }

    /// Goes on to a node by the memory, behind bytes that lead there from a place.
    fn leave(&mut self, trie: &TokenTrie, top: NodeId, place: &Place, read: &[u8]) -> Result<(), StepError> {
        if !self.is_wanted(trie.tokens_below(top)) {
            return Ok(());
        }
        let mut recall = place.recall.clone();
        read.iter().for_each(|&byte| recall.step(byte));
        let bytes = place.bytes.iter().chain(read);
        bytes.enumerate().for_each(|(depth, &byte)| self.way.go(depth, (byte, false)));
        let depth = place.bytes.len() + read.len();
        let root = Walk { depth, recall, risk: Some(ByteSet::ALL) };
        trie.descend(trie.subtree(top), root, |walk, node| self.enter(trie, walk, node))
    }

    /// Those of a selection, one by one.
    fn look_at(
        &mut self,
        vocabulary: &Vocabulary,
        selection: &Selection,
        recall: &Recall,
    ) -> Result<(), StepError> {
        for &(at, bits) in &selection.words {
            let mut left = bits & self.words[at];
            while left != 0 {
                let token = at * MASK_BITS + left.trailing_zeros() as usize;
                left &= left - 1;
                let bytes = vocabulary.bytes(TokenId::new(token)).unwrap_or_default();
                if !self.is_allowed(bytes, recall)? {
                    clear_bit(self.words, token);
                }
            }
        }
        Ok(())
    }

    /// Whether something can follow a token in the mask of the readings.
    fn is_allowed(&mut self, bytes: &[u8], recall: &Recall) -> Result<bool, StepError> {
        if recall.memory.as_ref().is_some_and(|memory| memory.plainly_differs(bytes)) {
            return Ok(true);
        }
        let (mut recall, mut repeats) = (recall.clone(), false);
        for (depth, &byte) in bytes.iter().enumerate() {
            recall.step(byte);
            repeats |= recall.repeats();
            self.way.go(depth, (byte, recall.repeats()));
        }
        // If it repeats nothing, whatever the grammar derives behind it may follow.
        let is_harmless = !repeats && recall.at_risk().is_none_or(|memory| memory.always_differs());
        Ok(is_harmless || self.is_viable(&recall)?)
    }
}

/// Tokens of a vocabulary that pass a test.
struct Selection {
    /// The words of a mask of them that are not 0, with their places.
    words: Vec<(usize, u32)>,
    trie: TokenTrie,
}

/// Those of a vocabulary.
#[derive(Default)]
struct AllSelections(Mutex<SelectionTable>);

#[derive(Default)]
struct SelectionTable {
    /// By the names of the tests.
    by_test: FxHashMap<&'static str, Arc<Selection>>,
    /// The tokens that have a byte in them, which several tests ask for.
    with_byte: FxHashMap<u8, Arc<[TokenId]>>,
}

/// Those that somebody has asked for, who does not wait for others to find them again.
#[derive(Default)]
pub struct Selections(Vec<(&'static str, Arc<Selection>)>);

impl Selections {
    /// Those in a mask that may open a value in which something repeats.
    pub fn opening(&mut self, vocabulary: &Vocabulary, language: &Language, words: &[u32]) -> Vec<TokenId> {
        let mut tests: Vec<TokenTest> = Vec::new();
        for memory in &language.grammar().embedded {
            let test = memory.opening();
            if !tests.iter().any(|known| std::ptr::eq(known.name, test.name)) {
                tests.push(test);
            }
        }
        let mut tokens = Vec::new();
        for test in tests {
            for &(at, bits) in &self.get(vocabulary, test).words {
                let mut left = bits & words[at];
                while left != 0 {
                    tokens.push(TokenId::new(at * MASK_BITS + left.trailing_zeros() as usize));
                    left &= left - 1;
                }
            }
        }
        tokens
    }

    /// Those of the same vocabulary as ever. Cost, once for it: its bytes, for each byte that tests name, and
    /// the tokens that have the byte that the test names.
    fn get(&mut self, vocabulary: &Vocabulary, test: TokenTest) -> Arc<Selection> {
        let name = test.name;
        // The names are few, and each stands in few places.
        let known = self.0.iter().find(|known| std::ptr::eq(known.0, name));
        if let Some((_, selection)) = known {
            return selection.clone();
        }
        let all = vocabulary.beside::<AllSelections>();
        // One is added whole.
        let mut all = all.0.lock().unwrap_or_else(PoisonError::into_inner);
        let SelectionTable { by_test, with_byte } = &mut *all;
        let make = || Arc::new(Selection::new(vocabulary, test, with_byte));
        let selection = by_test.entry(name).or_insert_with(make).clone();
        self.0.push((name, selection.clone()));
        selection
    }
}

impl Selection {
    fn new(vocabulary: &Vocabulary, test: TokenTest, with_byte: &mut FxHashMap<u8, Arc<[TokenId]>>) -> Self {
        let passes = |token: TokenId| {
            let bytes = vocabulary.bytes(token)?;
            (test.passes)(bytes).then_some((token, bytes))
        };
        let tokens: Vec<(TokenId, &[u8])> = match test.has {
            Some(byte) => {
                let with_byte =
                    with_byte.entry(byte).or_insert_with(|| vocabulary.tokens_with(byte).collect());
                with_byte.iter().copied().filter_map(passes).collect()
            }
            None => (0..vocabulary.len()).map(TokenId::new).filter_map(passes).collect(),
        };
        let mut words = vec![0; vocabulary.len().div_ceil(MASK_BITS)];
        tokens.iter().for_each(|(token, _)| set_bit(&mut words, token.index()));
        let words = words.into_iter().enumerate().filter(|&(_, word)| word != 0).collect();
        Self { words, trie: TokenTrie::new(tokens) }
    }
}

/// Where a walk of the trie is.
struct Walk {
    /// How many bytes lead there.
    depth: usize,
    recall: Recall,
    /// What is followed; `None` for everything.
    risk: Option<ByteSet>,
}

/// A node where something is in progress of which is known what it may repeat. Nothing on the way repeats.
struct Place {
    node: NodeId,
    /// Those that lead there.
    bytes: Vec<u8>,
    recall: Recall,
}

/// The bytes on the way to a node, and the readings on it, as far as somebody asked for them.
struct Way {
    /// Each with whether it ends what repeats something.
    bytes: Vec<(u8, bool)>,
    /// Before each byte, and behind the last of some.
    frontiers: Vec<Frontier>,
}

impl Way {
    /// Goes on with a byte behind so many.
    fn go(&mut self, depth: usize, byte: (u8, bool)) {
        self.bytes.truncate(depth);
        self.bytes.push(byte);
        self.frontiers.truncate(depth + 1);
    }

    /// The readings here.
    fn readings(&mut self, stepper: &mut Stepper, language: &Language) -> Result<&[Config], StepError> {
        while let Some(&(byte, repeats)) = self.bytes.get(self.frontiers.len() - 1) {
            let (at, mut next) = (&self.frontiers[self.frontiers.len() - 1], Frontier::new());
            if repeats {
                stepper.step_afresh(language, at, byte, &mut next)?;
            } else {
                stepper.step(language, at, byte, &mut next)?;
            }
            self.frontiers.push(next);
        }
        Ok(&self.frontiers[self.frontiers.len() - 1])
    }
}
