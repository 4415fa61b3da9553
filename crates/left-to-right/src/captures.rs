//! Which part of a text is which rule, while it is being written.
//!
//! A node of a nonterminal is *certain* if every derivation of every continuation of the text has it:
//! `docs/meaning.md` says so. Of a finished text the nodes of its parse tree ([`Tree`]) are what is left, and
//! what was certain before is among them.
//!
//! The text is read as the definition has it, by Earley's items with places, as for parse trees. Beside each
//! item stand the events that all ways to come to it share, and beside each nonterminal that can begin in a
//! set those that all ways around it share. Both are intersections over ways of unions along them, so they
//! are known when a set is complete. What all readings share is reported, and left out from then on, so the
//! sets of events are as large as what is undecided. Cost of a byte: the items of the places where pieces
//! end; all that was read is kept. The limit `shared_items` bounds it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anygram_bits::BitSet;
use anygram_bits::work::Work;
use anygram_grammar::ir::{NonterminalId, Symbol, TerminalId};
use anygram_grammar::memory::Memory;
use anygram_lexer::LexerError;
use anygram_lexer::transducer::{LexemeId, ObligationsId, Scans, Transducer};
use anygram_vocab::TokenId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::constraint::Constraint;
use crate::dotted::{Beginnings, Dotted};
use crate::language::{Language, StepError};
use crate::tree::Tree;

/// A rule was entered or left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CaptureEvent {
    /// The nonterminal; not one that a front end made up.
    pub rule: NonterminalId,
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends, if it is left.
    pub end: Option<usize>,
}

/// What is certain of the rules of a text, while it is being written: events, each once.
///
/// ```
/// use std::sync::Arc;
/// use anygram_left_to_right::captures::Captures;
/// use anygram_left_to_right::{Language, LanguageOptions};
///
/// let source = r#"%lexer scannerless
///     start: "call " name "(" value ")"
///     name: /[a-z]+/
///     value: /[0-9]+/
/// "#;
/// let grammar = anygram_grammar::lark::parse(source, &Default::default())?;
/// let language = Arc::new(Language::new(grammar, &LanguageOptions::default())?);
/// let mut captures = Captures::new(language.clone())?;
/// let mut read = |text: &str| -> Result<Vec<_>, Box<dyn std::error::Error>> {
///     let events = captures.read(text.as_bytes())?.into_iter();
///     let name = |rule: usize| language.grammar().nonterminals[rule].name.clone();
///     Ok(events.map(|event| (name(event.rule.index()), event.start, event.end)).collect())
/// };
/// assert_eq!(read("call f")?, [("start".to_owned(), 0, None), ("name".to_owned(), 5, None)]);
/// assert_eq!(read("(1")?, [("name".to_owned(), 5, Some(6)), ("value".to_owned(), 7, None)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Captures {
    language: Arc<Language>,
    beginnings: Arc<Beginnings>,
    transducer: Transducer,
    sets: Vec<Set>,
    /// The pieces in progress: the sets where they began, and their lexemes.
    readings: Vec<(usize, LexemeId)>,
    /// All events, by number.
    events: Vec<CaptureEvent>,
    numbers: FxHashMap<CaptureEvent, u32>,
    reported: FxHashSet<u32>,
    text: Vec<u8>,
    /// What is remembered of the whole text.
    memory: Option<Arc<dyn Memory>>,
    /// What is remembered of the values that readings are within.
    values: Vec<(Value, Arc<dyn Memory>)>,
    /// Whether tokens were read as wholes: then the text is not all there is.
    has_wholes: bool,
    work: Work,
}

/// Numbers of events, sorted; those that were reported before may be missing.
type Events = Vec<u32>;

/// A right-hand side in progress, and the set where it began.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Item {
    side: Dotted,
    origin: usize,
    /// Whether ignored pieces were read behind it: what can end here has ended before them.
    is_behind_ignored: bool,
}

/// A value within a text: which of the grammar's memories remembers it, and where the piece that opens it
/// began.
type Value = (u32, usize);

/// The items between two pieces.
#[derive(Clone, Default, Debug)]
struct Set {
    place: usize,
    /// The value that it is within.
    value: Option<Value>,
    /// Each with what all ways share that lead from its origin to here.
    items: Vec<(Item, Events)>,
    numbers: FxHashMap<Item, usize>,
    /// The items that wait for a symbol.
    waiting: FxHashMap<Symbol, Vec<usize>>,
    /// What all ways share that lead to where a nonterminal begins here.
    around: FxHashMap<NonterminalId, Events>,
    /// What all derivations of the text share, if it is a sentence that may end here.
    sentence: Option<Events>,
    /// Whether nothing but ignored pieces was read.
    is_initial: bool,
}

/// The end of a piece: the set where it began, its labels, and whether it may be ignored.
type End = (usize, Scans, bool);

fn intersect(known: &mut Events, other: &Events) -> bool {
    let before = known.len();
    known.retain(|event| other.binary_search(event).is_ok());
    known.len() < before
}

/// What is shared along any of several ways, of which one more is known now.
fn share(known: &mut Option<Events>, other: Events) -> bool {
    match known {
        Some(known) => intersect(known, &other),
        None => {
            *known = Some(other);
            true
        }
    }
}

impl Captures {
    /// Of the empty text.
    ///
    /// # Errors
    /// For limits.
    pub fn new(language: Arc<Language>) -> Result<Self, StepError> {
        let cfg = &language.lexing().cfg;
        let beginnings = Arc::new(Beginnings::new(cfg));
        let memory = language.grammar().memory.as_ref().map(|memory| memory.fork());
        let most = language.limits().shared_items as u64;
        let mut captures = Self {
            beginnings,
            transducer: Transducer::default(),
            sets: Vec::new(),
            readings: Vec::new(),
            events: Vec::new(),
            numbers: FxHashMap::default(),
            reported: FxHashSet::default(),
            text: Vec::new(),
            memory,
            values: Vec::new(),
            has_wholes: false,
            work: Work::new(most, "shared_items"),
            language,
        };
        let set = Set { is_initial: true, ..Set::default() };
        let first = captures.close(set)?;
        let reading = captures.boundary(first, ObligationsId(0))?;
        captures.readings.extend(reading);
        Ok(captures)
    }

    /// Reads the next bytes of the text; returns what is certain from then on, in the order of the text. Of a
    /// text that no sentence begins with nothing is promised: whether it is one is for a
    /// [`Matcher`](crate::Matcher) to say.
    ///
    /// # Errors
    /// For limits; nothing more can be read then.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Vec<CaptureEvent>, StepError> {
        for &byte in bytes {
            self.text.push(byte);
            self.readings = self.step(byte)?;
        }
        Ok(self.report())
    }

    /// Reads a token: its bytes, or as what the grammar names.
    ///
    /// # Errors
    /// As [`Captures::read`].
    pub fn read_token(
        &mut self,
        constraint: &Constraint,
        token: TokenId,
    ) -> Result<Vec<CaptureEvent>, StepError> {
        let bytes = constraint.vocabulary().bytes(token).unwrap_or_default();
        let (mut named, place) = (Vec::new(), self.text.len() + bytes.len());
        let is_between = |&&(_, lexeme): &&(usize, LexemeId)| self.transducer.is_boundary(lexeme);
        let between = self.readings.iter().filter(is_between).map(|reading| reading.0);
        let between: Vec<usize> = between.filter(|&set| self.sets[set].value.is_none()).collect();
        for terminal in constraint.named(token) {
            let ends: Vec<End> = between.iter().map(|&set| (set, [terminal][..].into(), false)).collect();
            if let Some(set) = self.extend(&ends, (place, None))? {
                named.extend(self.boundary(set, ObligationsId(0))?);
            }
        }
        self.has_wholes |= !named.is_empty();
        for &byte in bytes {
            self.text.push(byte);
            self.readings = self.step(byte)?;
        }
        if bytes.is_empty() {
            self.readings.clear();
        }
        self.readings.extend(named);
        Ok(self.report())
    }

    /// What is left of the parse tree of the text; `None` if it is no sentence. Where tokens were
    /// read as wholes, which a tree knows nothing of, it is what all derivations share.
    ///
    /// # Errors
    /// For limits.
    pub fn finish(&mut self) -> Result<Option<Vec<CaptureEvent>>, StepError> {
        let mut shared = None;
        for &(set, lexeme) in &self.readings {
            if let (Some(sentence), true) = (&self.sets[set].sentence, self.transducer.is_boundary(lexeme)) {
                share(&mut shared, sentence.clone());
            }
        }
        let Some(shared) = shared else { return Ok(None) };
        if self.has_wholes {
            return Ok(Some(self.emit(shared)));
        }
        let Some(tree) = Tree::read(&self.language, &self.text)? else { return Ok(None) };
        let nodes = tree.nodes.iter().filter_map(|node| match node.symbol {
            Symbol::Nonterminal(rule) => Some((rule, node.span.clone())),
            Symbol::Terminal(_) => None,
        });
        let nodes: Vec<_> = nodes.filter(|(rule, span)| self.is_named(*rule) && !span.is_empty()).collect();
        let mut events = Events::new();
        for (rule, span) in nodes {
            let entered = self.number(CaptureEvent { rule, start: span.start, end: None });
            let left = self.number(CaptureEvent { rule, start: span.start, end: Some(span.end) });
            events.extend([entered, left]);
        }
        Ok(Some(self.emit(events)))
    }

    fn is_named(&self, rule: NonterminalId) -> bool {
        self.language.grammar().nonterminals.get(rule.index()).is_some_and(|rule| !rule.is_synthetic())
    }

    fn number(&mut self, event: CaptureEvent) -> u32 {
        let fresh = self.events.len() as u32;
        let number = *self.numbers.entry(event).or_insert(fresh);
        if number == fresh {
            self.events.push(event);
        }
        number
    }

    /// Adds that a rule was entered, and left if that is given, unless it is one that was made up.
    fn add_node(&mut self, to: &mut Events, rule: NonterminalId, start: usize, end: Option<usize>) {
        if !self.is_named(rule) || end == Some(start) {
            return;
        }
        let mut ends = vec![None];
        ends.extend(end.map(Some));
        for end in ends {
            let number = self.number(CaptureEvent { rule, start, end });
            if !self.reported.contains(&number)
                && let Err(at) = to.binary_search(&number)
            {
                to.insert(at, number);
            }
        }
    }

    /// What is shared along two ways, one after the other.
    fn join(&self, first: &Events, second: &Events) -> Events {
        let mut all: Events = first.iter().chain(second).copied().collect();
        all.retain(|event| !self.reported.contains(event));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The readings behind a byte.
    fn step(&mut self, byte: u8) -> Result<Vec<(usize, LexemeId)>, StepError> {
        let language = self.language.clone();
        let lexing = language.lexing();
        let (mut next, mut pending) = (Vec::new(), Vec::new());
        for &(set, lexeme) in &self.readings {
            let step = self.transducer.step(lexing, lexeme, byte)?;
            next.extend(step.stay.map(|lexeme| (set, lexeme)));
            if let Some(cut) = step.cut.map(|cut| self.transducer.cut(cut).clone()) {
                pending.push(((set, cut.scans, cut.skip), cut.obligations));
            }
        }
        self.remember(byte);
        let place = self.text.len();
        // Where every cut counts, pieces that end at one place have the same behind them.
        if pending.iter().all(|(_, obligations)| obligations.0 == 0) && lexing.merges_ends() {
            let mut ends: BTreeMap<Option<Value>, Vec<End>> = BTreeMap::new();
            for (end, _) in pending {
                for (value, end) in self.by_value(end) {
                    ends.entry(value).or_default().push(end);
                }
            }
            for (value, ends) in ends {
                if let Some(set) = self.extend(&ends, (place, value))? {
                    next.extend(self.boundary(set, ObligationsId(0))?);
                }
            }
        } else {
            for (end, obligations) in pending {
                for (value, end) in self.by_value(end) {
                    if let Some(set) = self.extend(&[end], (place, value))? {
                        next.extend(self.boundary(set, obligations)?);
                    }
                }
            }
        }
        // Pieces that end behind a value belong to no reading.
        self.values.retain(|(_, memory)| !memory.is_over());
        next.retain(|&(set, _): &(usize, LexemeId)| {
            let value = self.sets[set].value;
            value.is_none_or(|value| self.values.iter().any(|known| known.0 == value))
        });
        let is_within = |value| next.iter().any(|&(set, _)| self.sets[set].value == Some(value));
        self.values.retain(|known| is_within(known.0));
        next.sort_unstable();
        next.dedup();
        Ok(next)
    }

    /// Lets the memories read a byte.
    fn remember(&mut self, byte: u8) {
        let all = self.values.iter_mut().map(|(_, memory)| memory).chain(&mut self.memory);
        for memory in all.filter(|memory| !memory.ignores(byte)) {
            if Arc::get_mut(memory).is_none() {
                *memory = memory.fork();
            }
            if let Some(memory) = Arc::get_mut(memory) {
                memory.step(byte);
            }
        }
    }

    /// The end of a piece, by the values that its labels lead into, without those that repeat what they may
    /// not.
    fn by_value(&mut self, (from, scans, skip): End) -> BTreeMap<Option<Value>, End> {
        let language = self.language.clone();
        let grammar = language.grammar();
        let (value, opened_at) = (self.sets[from].value, self.sets[from].place);
        let mut by_value: BTreeMap<Option<Value>, (Vec<TerminalId>, bool)> = BTreeMap::new();
        if skip {
            by_value.entry(value).or_default().1 = true;
        }
        for &scan in &scans {
            let remembered = grammar.terminals[scan.index()].memory;
            if let (None, Some(of)) = (value, remembered.and_then(|remembered| remembered.opens())) {
                let opened = (of, opened_at);
                self.open(opened);
                by_value.entry(Some(opened)).or_default().0.push(scan);
                continue;
            }
            let memory = match value {
                Some(value) => self.values.iter().find(|known| known.0 == value).map(|known| &known.1),
                None => self.memory.as_ref(),
            };
            let is_distinct = remembered.is_some_and(|remembered| remembered.is_distinct());
            if is_distinct && memory.is_some_and(|memory| memory.repeats()) {
                continue;
            }
            let is_closed = value.is_some() && memory.is_some_and(|memory| memory.is_over());
            let behind = if is_closed { None } else { value };
            by_value.entry(behind).or_default().0.push(scan);
        }
        let ends = by_value.into_iter();
        ends.map(|(value, (scans, skip))| (value, (from, scans.into(), skip))).collect()
    }

    /// Begins to remember a value of which the text has the first piece.
    fn open(&mut self, (of, from): Value) {
        if self.values.iter().any(|known| known.0 == (of, from)) {
            return;
        }
        let mut memory = self.language.grammar().embedded[of as usize].fork();
        if let Some(memory) = Arc::get_mut(&mut memory) {
            self.text[from..].iter().for_each(|&byte| memory.step(byte));
        }
        self.values.push(((of, from), memory));
    }

    /// The reading that begins with a set.
    fn boundary(&mut self, set: usize, owed: ObligationsId) -> Result<Option<(usize, LexemeId)>, StepError> {
        let language = self.language.clone();
        let lexing = language.lexing();
        let terminals = self.sets[set].waiting.keys().filter_map(|symbol| match symbol {
            Symbol::Terminal(terminal) => Some(terminal.index()),
            Symbol::Nonterminal(_) => None,
        });
        let viable = BitSet::from_members(lexing.cfg.n_terminals, terminals);
        let wanted = self.transducer.wanted(lexing, &viable, self.sets[set].sentence.is_some());
        Ok(self.transducer.boundary(lexing, wanted, owed)?.map(|lexeme| (set, lexeme)))
    }

    /// The set behind pieces that end at a place, in a value or in none; `None` if none is wanted.
    fn extend(
        &mut self,
        ends: &[End],
        (place, value): (usize, Option<Value>),
    ) -> Result<Option<usize>, StepError> {
        let mut set = Set { place, value, ..Set::default() };
        for &(from, ref scans, skip) in ends {
            let before = &self.sets[from];
            for scan in scans {
                for &at in before.waiting.get(&Symbol::Terminal(*scan)).into_iter().flatten() {
                    let (item, shared) = &before.items[at];
                    for next in self.next(*item, Symbol::Terminal(*scan))? {
                        set.add(next, shared.clone());
                    }
                }
            }
            if skip {
                // What was predicted there is predicted again here, so that nodes begin with their first
                // piece.
                let carried = before.items.iter().filter(|(item, _)| item.origin != from);
                for (item, shared) in carried.filter(|(item, _)| !self.symbols(*item).is_empty()) {
                    set.add(Item { is_behind_ignored: true, ..*item }, shared.clone());
                }
                set.is_initial |= before.is_initial;
                if let Some(sentence) = &before.sentence {
                    share(&mut set.sentence, sentence.clone());
                }
            }
        }
        if set.items.is_empty() && !set.is_initial && set.sentence.is_none() {
            return Ok(None);
        }
        self.close(set).map(Some)
    }

    fn lhs(&self, item: Item) -> NonterminalId {
        item.side.lhs(&self.language.lexing().cfg)
    }

    /// The items behind one and a symbol.
    fn next(&self, item: Item, symbol: Symbol) -> Result<Vec<Item>, StepError> {
        let mut next = Vec::new();
        let each = |side, _| next.push(Item { side, is_behind_ignored: false, ..item });
        item.side.each_step(&self.language.lexing().cfg, symbol, each).map_err(LexerError::from)?;
        Ok(next)
    }

    /// The symbols that can come next.
    fn symbols(&self, item: Item) -> Vec<Symbol> {
        let mut symbols = Vec::new();
        item.side.each_next(&self.language.lexing().cfg, |symbol| symbols.push(symbol));
        symbols
    }

    /// Prediction and completion; the set is the last one then.
    fn close(&mut self, mut set: Set) -> Result<usize, StepError> {
        let (here, start) = (self.sets.len(), self.language.lexing().cfg.start);
        let mut agenda: VecDeque<usize> = (0..set.items.len()).collect();
        let mut predicted = FxHashSet::default();
        if set.is_initial {
            predicted.insert(start);
            self.predict(&mut set, start, here, &mut agenda);
            if self.beginnings.is_nullable(start) {
                share(&mut set.sentence, Events::new());
            }
        }
        while let Some(at) = agenda.pop_front() {
            let (item, shared) = set.items[at].clone();
            self.work.spend(1 + shared.len()).map_err(LexerError::from)?;
            for symbol in self.symbols(item) {
                let Symbol::Nonterminal(n) = symbol else { continue };
                if predicted.insert(n) {
                    self.predict(&mut set, n, here, &mut agenda);
                }
                if self.beginnings.is_nullable(n) {
                    for next in self.next(item, symbol)? {
                        agenda.extend(set.add(next, shared.clone()));
                    }
                }
            }
            let is_complete = item.side.is_complete(&self.language.lexing().cfg);
            if item.origin == here || item.is_behind_ignored || !is_complete {
                continue;
            }
            let lhs = self.lhs(item);
            let mut whole = shared;
            let (from, is_root) = (self.sets[item.origin].place, self.sets[item.origin].is_initial);
            self.add_node(&mut whole, lhs, from, Some(set.place));
            if lhs == start && is_root {
                share(&mut set.sentence, whole.clone());
            }
            let waiting = self.sets[item.origin].waiting.get(&Symbol::Nonterminal(lhs));
            for at in waiting.cloned().unwrap_or_default() {
                let (parent, shared) = &self.sets[item.origin].items[at];
                let (parent, shared) = (*parent, self.join(shared, &whole));
                for next in self.next(parent, Symbol::Nonterminal(lhs))? {
                    agenda.extend(set.add(next, shared.clone()));
                }
            }
        }
        for (at, (item, _)) in set.items.iter().enumerate() {
            let mut symbols = self.symbols(*item);
            symbols.sort_unstable();
            symbols.dedup();
            for symbol in symbols {
                set.waiting.entry(symbol).or_default().push(at);
            }
        }
        self.surround(&mut set, here)?;
        self.sets.push(set);
        Ok(here)
    }

    fn predict(&self, set: &mut Set, n: NonterminalId, here: usize, agenda: &mut VecDeque<usize>) {
        for &side in self.beginnings.of(n) {
            let item = Item { side, origin: here, is_behind_ignored: false };
            agenda.extend(set.add(item, Events::new()));
        }
    }

    /// Finds what all ways share that lead to the nonterminals that begin in a set.
    fn surround(&mut self, set: &mut Set, here: usize) -> Result<(), StepError> {
        let start = self.language.lexing().cfg.start;
        if set.is_initial {
            set.around.insert(start, Events::new());
        }
        let nonterminals = set.waiting.iter().filter_map(|(&symbol, items)| match symbol {
            Symbol::Nonterminal(n) => Some(items.iter().map(move |&at| (n, at))),
            Symbol::Terminal(_) => None,
        });
        let mut waiting: Vec<(NonterminalId, usize)> = nonterminals.flatten().collect();
        waiting.sort_unstable_by_key(|&(n, at)| (at, n));
        // Ways within the set can go in circles; those that do share no less than those that do not.
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for &(n, at) in &waiting {
                self.work.spend(1).map_err(LexerError::from)?;
                let Some(way) = self.way_to(set, here, at) else { continue };
                let mut known = set.around.remove(&n);
                is_changed |= share(&mut known, way);
                set.around.extend(known.map(|known| (n, known)));
            }
        }
        Ok(())
    }

    /// What all ways share that lead to an item of a set, its own rule entered; `None` if no way is known
    /// yet.
    fn way_to(&mut self, set: &Set, here: usize, at: usize) -> Option<Events> {
        let (item, shared) = &set.items[at];
        let lhs = self.lhs(*item);
        let (place, around) = if item.origin == here {
            (set.place, set.around.get(&lhs)?)
        } else {
            let origin = &self.sets[item.origin];
            (origin.place, origin.around.get(&lhs)?)
        };
        let mut all = self.join(shared, around);
        self.add_node(&mut all, lhs, place, None);
        Some(all)
    }

    /// What all readings share, and was not reported before.
    fn report(&mut self) -> Vec<CaptureEvent> {
        let (language, mut shared) = (self.language.clone(), None);
        for (at, lexeme) in self.readings.clone() {
            let candidates = self.transducer.candidates(language.lexing(), lexeme);
            let is_boundary = self.transducer.is_boundary(lexeme);
            let set = std::mem::take(&mut self.sets[at]);
            // If the piece is ignored, all that waits here waits behind it, and nodes begin there.
            let lexicon = &language.lexing().lexicon;
            let may_be_ignored = match is_boundary {
                true => !lexicon.ignored.is_empty(),
                false => lexicon.union.live(self.transducer.state(lexeme)).intersects_bits(&lexicon.ignored),
            };
            for item in 0..set.items.len() {
                let is_candidate = |symbol: Symbol| match symbol {
                    Symbol::Terminal(terminal) => may_be_ignored || candidates.contains(terminal.index()),
                    Symbol::Nonterminal(_) => false,
                };
                if !self.symbols(set.items[item].0).into_iter().any(is_candidate) {
                    continue;
                }
                let Some(mut way) = self.way_to(&set, at, item) else { continue };
                if may_be_ignored {
                    let begins_here = |event: CaptureEvent| event.end.is_none() && event.start == set.place;
                    way.retain(|&event| !begins_here(self.events[event as usize]));
                }
                share(&mut shared, way);
            }
            if let (Some(sentence), true) = (&set.sentence, is_boundary || may_be_ignored) {
                share(&mut shared, sentence.clone());
            }
            self.sets[at] = set;
        }
        let length = self.text.len();
        let mut shared = shared.unwrap_or_default();
        shared.retain(|&event| self.events[event as usize].start < length);
        self.emit(shared)
    }

    /// Reports events, in the order of the text; where nodes begin or end at one place, the outer ones begin
    /// first and end last.
    fn emit(&mut self, mut events: Events) -> Vec<CaptureEvent> {
        events.retain(|event| self.reported.insert(*event));
        let order = |&event: &u32| {
            let CaptureEvent { start, end, .. } = self.events[event as usize];
            (end.unwrap_or(start), end.is_none(), std::cmp::Reverse(start), event)
        };
        events.sort_by_key(order);
        events.into_iter().map(|event| self.events[event as usize]).collect()
    }
}

impl Set {
    /// Adds an item, or one more way to come to it; its number if that changes anything.
    fn add(&mut self, item: Item, shared: Events) -> Option<usize> {
        if let Some(&at) = self.numbers.get(&item) {
            return intersect(&mut self.items[at].1, &shared).then_some(at);
        }
        self.numbers.insert(item, self.items.len());
        self.items.push((item, shared));
        Some(self.items.len() - 1)
    }
}
