//! Why a text stops where it does: what it was in the middle of, what could follow, what would complete it.
//!
//! The engines keep states without positions. Here the prefix is read once more as the definition has it
//! (Earley's items with places, the lexer modes by their rules), which is slow and shows where each phrase
//! began. It explains; it decides nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anygram_bits::{BitSet, CompactSet};
use anygram_grammar::automata::TooManyStates;
use anygram_grammar::cfg::Cfg;
use anygram_grammar::ir::{LexerMode, NonterminalId, Symbol, TerminalId};
use anygram_grammar::memory::Remembers;
use anygram_lexer::dfa::DEAD;
use anygram_lexer::words::Words;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dotted::{Beginnings, Dotted};
use crate::example::completion;
use crate::frontier::{Config, Frontier, Stepper};
use crate::language::{Language, Reading, StepError};
use crate::recall::Recall;

/// Items that are looked at before the phrases are given up.
const STEPS: usize = 4_000_000;
/// Terminals that a text may lack for a completion to be searched.
const NEAR: u32 = 200;
/// Items that are held at most.
const ITEMS: usize = 600_000;

/// What there is to say of the longest viable prefix of a text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Explanation {
    /// The terminals that may be in progress or come next.
    pub expected: Vec<TerminalId>,
    /// Where the piece in progress began, if the prefix cannot end between two pieces.
    pub piece: Option<usize>,
    /// The phrases in progress and where they began, the outermost first; synthetic ones left out, and of
    /// those that began at one place all but the innermost.
    pub phrases: Vec<(NonterminalId, usize)>,
    /// Whether the phrases were given up, because the text is long or very ambiguous.
    pub is_cut: bool,
    /// A text that makes a sentence of the prefix, if one was found.
    pub completion: Option<Vec<u8>>,
    /// Whether the next byte is refused only because a key or an item that has to differ would repeat one.
    pub repeats: bool,
}

/// Reads a text as [`Language::read`] does, and explains where it stops unless it is a sentence.
pub fn explain(
    language: &Language,
    words: &Words<'_>,
    text: &[u8],
) -> Result<(Reading, Option<Explanation>), StepError> {
    let mut stepper = Stepper::new(language)?;
    let mut frontier = stepper.start(language)?.unwrap_or_default();
    let (mut next, mut recall) = (Frontier::new(), Recall::new(language));
    let mut length = 0;
    let mut is_viable = !frontier.is_empty();
    // The readings where it stops, where some are within values.
    let mut within = None;
    while is_viable && length < text.len() {
        let before = recall.readings(&frontier);
        within = matches!(before, Cow::Owned(_)).then(|| before.into_owned());
        stepper.step_recalling(language, &frontier, &mut recall, text[length], &mut next)?;
        is_viable = stepper.is_viable_recalling(language, &next, &recall)?;
        if is_viable {
            std::mem::swap(&mut frontier, &mut next);
            length += 1;
        }
    }
    let is_sentence = is_viable && stepper.is_sentence(&frontier);
    if is_viable {
        within = Some(recall.readings(&frontier).into_owned());
    }
    let frontier = within.unwrap_or(frontier);
    let reading = Reading { length, is_viable, is_sentence, expected: stepper.expected(language, &frontier) };
    if is_sentence {
        return Ok((reading, None));
    }
    let explanation = explain_prefix(language, words, &text[..length], &mut stepper, &frontier);
    let repeats = repeats_at(language, text, length)?;
    Ok((reading, Some(Explanation { repeats, ..explanation })))
}

/// Whether the byte of a text behind its longest viable beginning, of a length, is refused only because a key
/// or an item that has to differ would repeat one. Cost: of reading the text, if there is such.
///
/// # Errors
/// For limits.
pub fn repeats_at(language: &Language, text: &[u8], length: usize) -> Result<bool, StepError> {
    if length >= text.len() || !language.grammar().remembers() {
        return Ok(false);
    }
    // Readings that repeat something may have been dropped some bytes before: a number has no end of its own.
    let mut stepper = Stepper::new(language)?;
    let (mut plain, mut next) = (stepper.start(language)?.unwrap_or_default(), Frontier::new());
    for &byte in &text[..=length] {
        stepper.step(language, &plain, byte, &mut next)?;
        std::mem::swap(&mut plain, &mut next);
    }
    stepper.is_viable(language, &plain)
}

/// Of the phrases that derive the values of JSON schemas, the innermost in progress at the end of a viable
/// text, or one that can begin there, and where it began. Of several that began there it is the first of the
/// grammar. `None` also where the text is too long or too ambiguous to say.
///
/// Cost: nothing if all of the grammar is a schema; else that of reading the text as for [`explain`].
///
/// # Errors
/// For limits.
pub fn schema_at(language: &Language, text: &[u8]) -> Result<Option<(NonterminalId, usize)>, StepError> {
    let grammar = language.grammar();
    let schemas: FxHashSet<NonterminalId> =
        grammar.hints.iter().filter(|(_, hints)| hints.schema.is_some()).map(|&(of, _)| of).collect();
    if schemas.contains(&grammar.start) {
        return Ok(Some((grammar.start, 0)));
    }
    if schemas.is_empty() {
        return Ok(None);
    }
    let mut stepper = Stepper::new(language)?;
    let mut frontier = stepper.start(language)?.unwrap_or_default();
    let (mut next, mut recall) = (Frontier::new(), Recall::new(language));
    for &byte in text {
        stepper.step_recalling(language, &frontier, &mut recall, byte, &mut next)?;
        std::mem::swap(&mut frontier, &mut next);
    }
    let expected = stepper.expected_terminals(language, &recall.readings(&frontier));
    let Some(mut chart) = Chart::new(language, text) else { return Ok(None) };
    Ok(chart.read().and_then(|end| chart.innermost(end, &expected, &schemas)))
}

fn explain_prefix(
    language: &Language,
    words: &Words<'_>,
    prefix: &[u8],
    stepper: &mut Stepper,
    frontier: &[Config],
) -> Explanation {
    let expected = stepper.expected_terminals(language, frontier);
    let is_between = frontier.iter().any(|config| stepper.transducer().is_boundary(config.lexeme));
    // The search asks at each step how much is lacking, which costs as much as there is open.
    let lacking = frontier.iter().map(|config| stepper.recognizer().minimum_remaining(config.state)).min();
    let is_near = lacking.is_some_and(|lacking| lacking <= NEAR);
    let completion = if is_near { completion(language, stepper, frontier, words) } else { None };
    // What completes the readings may repeat something.
    let is_sentence = |rest: &Vec<u8>| {
        let whole = [prefix, rest].concat();
        !language.grammar().remembers() || language.read(&whole).is_ok_and(|reading| reading.is_sentence)
    };
    let completion = completion.filter(is_sentence);
    let mut explanation = Explanation {
        expected: expected.iter().map(TerminalId::new).collect(),
        completion,
        ..Explanation::default()
    };
    let Some(mut chart) = Chart::new(language, prefix) else {
        return Explanation { is_cut: true, ..explanation };
    };
    let Some(end) = chart.read() else { return Explanation { is_cut: true, ..explanation } };
    let begin = chart.places.place(end);
    explanation.piece = (!is_between && begin < prefix.len()).then_some(begin);
    explanation.phrases = chart.phrases(end);
    explanation
}

/// A right-hand side in progress, and the position where it began.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Item {
    pub side: Dotted,
    pub origin: usize,
}

/// A step of an automaton: from where, by which of its numbers for a symbol, to where.
pub(crate) type Taken = (Dotted, (u32, Symbol), Dotted);

/// The items at one position.
#[derive(Clone, Default)]
struct Set {
    items: Vec<Item>,
    seen: FxHashSet<Item>,
    /// Whether nothing but ignored pieces was read.
    is_initial: bool,
}

/// What is known of a value within a text, or of a whole text, as one memory reads it.
#[derive(Default)]
struct Recalled {
    /// Where pieces end that repeat another.
    repeats: FxHashSet<usize>,
    /// Where the value ends.
    closes: Option<usize>,
}

/// The positions of a chart: places in the text, each once for every value that a reading can be within, and
/// once outside of them. In the order of the places.
pub(crate) struct Places<'a> {
    language: &'a Language,
    text: &'a [u8],
    /// How many positions a place has.
    n: usize,
    /// By the rest of their positions; 0 for the whole text.
    known: FxHashMap<usize, Recalled>,
    /// Bytes that memories have read.
    n_read: usize,
}

impl<'a> Places<'a> {
    /// `None` if there are more than can be numbered.
    fn new(language: &'a Language, text: &'a [u8]) -> Option<Self> {
        let grammar = language.grammar();
        let n = text.len().checked_mul(grammar.embedded.len())?.checked_add(1)?;
        n.checked_mul(text.len().checked_add(1)?)?;
        let mut places = Self { language, text, n, known: FxHashMap::default(), n_read: 0 };
        if let Some(memory) = &grammar.memory {
            places.known.insert(0, places.recalled(memory, 0));
        }
        Some(places)
    }

    /// The place in the text.
    pub fn place(&self, position: usize) -> usize {
        position / self.n
    }

    /// The position at a place that is outside of values.
    pub fn outside(&self, place: usize) -> usize {
        place * self.n
    }

    fn recalled(&self, memory: &Remembers, from: usize) -> Recalled {
        let mut memory = memory.fork();
        let mut recalled = Recalled::default();
        for (at, &byte) in self.text.iter().enumerate().skip(from) {
            let Some(memory) = Arc::get_mut(&mut memory) else { break };
            memory.step(byte);
            if memory.repeats() {
                recalled.repeats.insert(at + 1);
            }
            if memory.is_over() {
                recalled.closes = Some(at + 1);
                break;
            }
        }
        recalled
    }

    /// Where a piece of a terminal leads that ends at a place; `None` if it repeats what it may not.
    fn behind(&mut self, position: usize, terminal: TerminalId, end: usize) -> Option<usize> {
        let (place, value) = (position / self.n, position % self.n);
        let grammar = self.language.grammar();
        let memory = grammar.terminals[terminal.index()].memory;
        let opened = memory.and_then(|memory| memory.opens()).filter(|_| value == 0);
        if let Some(opened) = opened {
            let value = 1 + place * grammar.embedded.len() + opened as usize;
            if !self.known.contains_key(&value) {
                let recalled = self.recalled(&grammar.embedded[opened as usize], place);
                self.n_read += recalled.closes.unwrap_or(self.text.len()) - place;
                self.known.insert(value, recalled);
            }
            return Some(end * self.n + value);
        }
        let Some(Recalled { repeats, closes }) = self.known.get(&value) else {
            return Some(end * self.n + value);
        };
        if memory.is_some_and(|memory| memory.is_distinct()) && repeats.contains(&end) {
            return None;
        }
        let is_closed = value != 0 && *closes == Some(end);
        Some(end * self.n + if is_closed { 0 } else { value })
    }
}

/// The items at each position of a text.
pub(crate) struct Chart<'a> {
    pub places: Places<'a>,
    language: &'a Language,
    text: &'a [u8],
    beginnings: Beginnings,
    sets: BTreeMap<usize, Set>,
    steps: usize,
    n_items: usize,
    /// Bounds on steps and items.
    most: (usize, usize),
    /// The pieces, where they are kept; those without a terminal are ignored.
    edges: Option<Vec<(usize, usize, Option<TerminalId>)>>,
    /// The steps of automata, where pieces are kept.
    taken: FxHashSet<Taken>,
    /// The limit of an automaton that was hit.
    too_many: Option<TooManyStates>,
}

impl<'a> Chart<'a> {
    fn new(language: &'a Language, text: &'a [u8]) -> Option<Self> {
        let cfg = &language.lexing().cfg;
        let sets = BTreeMap::from([(0, Set { is_initial: true, ..Set::default() })]);
        Some(Self {
            places: Places::new(language, text)?,
            language,
            text,
            beginnings: Beginnings::new(cfg),
            sets,
            steps: 0,
            n_items: 0,
            most: (STEPS, ITEMS),
            edges: None,
            taken: FxHashSet::default(),
            too_many: None,
        })
    }

    /// A chart that keeps the pieces, of at most so many steps and items.
    pub fn with_edges(language: &'a Language, text: &'a [u8], most: (usize, usize)) -> Option<Self> {
        Some(Self { most, edges: Some(Vec::new()), ..Self::new(language, text)? })
    }

    /// All items and where they stand.
    pub fn items(&self) -> impl Iterator<Item = (usize, Item)> {
        self.sets.iter().flat_map(|(&at, set)| set.items.iter().map(move |&item| (at, item)))
    }

    /// The pieces; those without a terminal are ignored.
    pub fn edges(&self) -> &[(usize, usize, Option<TerminalId>)] {
        self.edges.as_deref().unwrap_or_default()
    }

    pub fn start(&self) -> NonterminalId {
        self.language.lexing().cfg.start
    }

    /// Whether nothing but ignored pieces stands before a place.
    pub fn is_initial(&self, at: usize) -> bool {
        self.sets.get(&at).is_some_and(|set| set.is_initial)
    }

    pub fn is_nullable(&self, n: NonterminalId) -> bool {
        self.beginnings.is_nullable(n)
    }

    pub fn cfg(&self) -> &'a Cfg {
        &self.language.lexing().cfg
    }

    /// The steps of automata that items took.
    pub fn taken(&self) -> impl Iterator<Item = Taken> {
        self.taken.iter().copied()
    }

    /// The limit of an automaton because of which the text was not read to its end.
    pub fn too_many_states(&mut self) -> Option<TooManyStates> {
        self.too_many.take()
    }

    /// The items behind one and a symbol.
    fn step(&mut self, item: Item, symbol: Symbol, to: &mut Vec<Item>) -> Option<()> {
        let (is_kept, cfg, taken) = (self.edges.is_some(), self.cfg(), &mut self.taken);
        let stepped = item.side.each_step(cfg, symbol, |side, number| {
            to.push(Item { side, ..item });
            if is_kept && !side.is_of_rule(cfg) {
                taken.insert((item.side, (number, symbol), side));
            }
        });
        stepped.map_err(|error| self.too_many = Some(error)).ok()
    }

    /// Reads all, and returns the last position from which something is in progress; `None` if it was too
    /// much.
    pub fn read(&mut self) -> Option<usize> {
        let mut at = 0;
        let mut last = 0;
        loop {
            self.close(at)?;
            if self.scan(at)? {
                last = at;
            }
            match self.sets.range(at + 1..).next() {
                Some((&next, _)) => at = next,
                None => return Some(last),
            }
        }
    }

    /// Prediction and completion at one position, as in the reference engine.
    fn close(&mut self, at: usize) -> Option<()> {
        let mut set = std::mem::take(self.sets.get_mut(&at)?);
        let mut agenda = std::mem::take(&mut set.items);
        if set.is_initial {
            let start = self.beginnings.of(self.start());
            agenda.extend(start.iter().map(|&side| Item { side, origin: at }));
        }
        set.seen.clear();
        let mut predicted = FxHashSet::default();
        while let Some(item) = agenda.pop() {
            self.steps += 1;
            if !set.seen.insert(item) {
                continue;
            }
            set.items.push(item);
            self.n_items += 1;
            let (cfg, mut empty) = (self.cfg(), None);
            item.side.each_next(cfg, |symbol| {
                self.steps += 1;
                let Symbol::Nonterminal(n) = symbol else { return };
                if predicted.insert(n) {
                    agenda.extend(self.beginnings.of(n).iter().map(|&side| Item { side, origin: at }));
                }
                // Only rules have such symbols.
                empty = self.beginnings.is_nullable(n).then_some(symbol);
            });
            if let Some(symbol) = empty {
                self.step(item, symbol, &mut agenda)?;
            }
            if item.origin != at && item.side.is_complete(cfg) {
                let done = Symbol::Nonterminal(item.side.lhs(cfg));
                let origin = &self.sets.get(&item.origin)?.items;
                self.steps += origin.len();
                let waiting = origin.iter().filter(|waiting| waiting.side.wants(cfg, done));
                for waiting in waiting.copied().collect::<Vec<_>>() {
                    self.step(waiting, done, &mut agenda)?;
                }
            }
            if self.steps > self.most.0 || self.n_items > self.most.1 {
                return None;
            }
        }
        set.seen = FxHashSet::default();
        self.sets.insert(at, set);
        Some(())
    }

    /// Reads the pieces that begin at one position; says whether one of them, or the position itself, is at
    /// the end of the text.
    fn scan(&mut self, at: usize) -> Option<bool> {
        let lexicon = &self.language.lexing().lexicon;
        let mut wanted = BitSet::new(lexicon.n_terminals());
        for item in &self.sets[&at].items {
            item.side.each_next(self.cfg(), |symbol| {
                if let Symbol::Terminal(t) = symbol {
                    wanted.insert(t.index());
                }
            });
        }
        let mut useful = wanted.clone();
        useful.union_with(&lexicon.ignored);
        let competing = if lexicon.mode == LexerMode::Longest { lexicon.competing() } else { useful.clone() };
        let mut ends = Vec::new();
        let mut wanted_or_end = BitSet::new(lexicon.n_terminals() + 1);
        wanted_or_end.extend(competing.iter());
        let mut state = lexicon.union.start_of(&CompactSet::from_bits(&wanted_or_end)).ok()?;
        let begin = self.places.place(at);
        let mut end = begin;
        while end < self.text.len() && state != DEAD {
            state = lexicon.union.try_step(state, lexicon.union.class(self.text[end])).ok()?;
            end += 1;
            if lexicon.union.accepts(state).intersects_bits(&competing) {
                if lexicon.mode != LexerMode::Scannerless {
                    ends.clear();
                }
                ends.push((end, state));
            }
            if !lexicon.union.live(state).intersects_bits(&competing) && end < self.text.len() {
                state = DEAD;
            }
        }
        let in_progress = state != DEAD
            && end == self.text.len()
            && (end == begin || lexicon.union.live(state).intersects_bits(&useful));
        self.steps += end - begin;
        for (end, state) in ends {
            let labels = lexicon.labels(state, |at| competing.contains(at));
            let scanned: Vec<TerminalId> = labels
                .iter()
                .filter(|&&label| wanted.contains(label))
                .map(|&label| TerminalId::new(label))
                .collect();
            let is_ignored = labels.iter().any(|&label| lexicon.ignored.contains(label));
            let mut behind: BTreeMap<usize, Vec<TerminalId>> = BTreeMap::new();
            for &terminal in &scanned {
                if let Some(to) = self.places.behind(at, terminal, end) {
                    behind.entry(to).or_default().push(terminal);
                }
            }
            let ignored = is_ignored.then_some(at + (end - begin) * self.places.n);
            if let Some(to) = ignored {
                behind.entry(to).or_default();
            }
            for (to, scanned) in behind {
                if let Some(edges) = &mut self.edges {
                    edges.extend(scanned.iter().map(|&terminal| (at, to, Some(terminal))));
                    edges.extend((ignored == Some(to)).then_some((at, to, None)));
                }
                self.advance(at, to, &scanned, ignored == Some(to))?;
            }
        }
        (self.steps + self.places.n_read <= self.most.0).then_some(in_progress)
    }

    fn advance(&mut self, from: usize, to: usize, scanned: &[TerminalId], is_ignored: bool) -> Option<()> {
        let set = self.sets.remove(&from)?;
        let mut items = Vec::new();
        for &item in &set.items {
            for &terminal in scanned {
                self.step(item, Symbol::Terminal(terminal), &mut items)?;
            }
            // What was predicted here is predicted again behind the blank, so that phrases begin with their
            // first piece.
            if is_ignored && item.origin != from {
                items.push(item);
            }
        }
        let is_initial = set.is_initial && is_ignored;
        self.sets.insert(from, set);
        let set = self.sets.entry(to).or_default();
        set.items.extend(items);
        set.is_initial |= is_initial;
        Some(())
    }

    /// Of some phrases, the innermost around the terminals that are expected behind a position, and where it
    /// began.
    fn innermost(
        &self,
        at: usize,
        expected: &BitSet,
        of: &FxHashSet<NonterminalId>,
    ) -> Option<(NonterminalId, usize)> {
        let cfg = self.cfg();
        let is_awaited = |item: &&Item| {
            let mut is_awaited = false;
            item.side.each_next(cfg, |symbol| {
                is_awaited |= matches!(symbol, Symbol::Terminal(t) if expected.contains(t.index()));
            });
            is_awaited
        };
        let phrase = |item: &Item| (item.side.lhs(cfg), item.origin);
        // Within values and outside of them, the same place has several positions.
        let here = self.places.outside(self.places.place(at))..=at;
        let mut agenda: Vec<(NonterminalId, usize)> =
            self.sets.range(here).flat_map(|(_, set)| &set.items).filter(is_awaited).map(phrase).collect();
        let (mut seen, mut steps) = (FxHashSet::default(), 0);
        let mut found: Option<(NonterminalId, usize)> = None;
        while let Some((lhs, origin)) = agenda.pop() {
            if !seen.insert((lhs, origin)) {
                continue;
            }
            if of.contains(&lhs) {
                let is_before = |known: &(NonterminalId, usize)| (known.1, lhs) > (origin, known.0);
                found = found.filter(is_before).or(Some((lhs, origin)));
                continue;
            }
            let around = &self.sets.get(&origin)?.items;
            steps += around.len();
            let waiting = around.iter().filter(|item| item.side.wants(cfg, Symbol::Nonterminal(lhs)));
            agenda.extend(waiting.map(phrase));
            if steps > STEPS {
                return None;
            }
        }
        found.map(|(n, origin)| (n, self.places.place(origin)))
    }

    /// The shortest chain of phrases in progress from the start to the innermost one at a position.
    fn phrases(&self, at: usize) -> Vec<(NonterminalId, usize)> {
        let cfg = self.cfg();
        let goes_on = |item: &Item| {
            let mut goes_on = false;
            item.side.each_next(cfg, |_| goes_on = true);
            goes_on
        };
        let begun = |item: &&Item| item.origin < at && goes_on(item);
        let Some(innermost) = self.sets[&at].items.iter().filter(begun).max_by_key(|item| item.origin) else {
            return Vec::new();
        };
        let start = self.start();
        let first = (innermost.side.lhs(cfg), innermost.origin);
        let mut outer: FxHashMap<(NonterminalId, usize), Option<(NonterminalId, usize)>> =
            FxHashMap::from_iter([(first, None)]);
        let mut queue = VecDeque::from([first]);
        let mut steps = 0;
        while let Some(phrase) = queue.pop_front() {
            let (lhs, origin) = phrase;
            if lhs == start && self.sets[&origin].is_initial {
                let mut chain = vec![phrase];
                while let Some(&Some(inner)) = chain.last().and_then(|phrase| outer.get(phrase)) {
                    chain.push(inner);
                }
                return self.shown(chain);
            }
            for &item in &self.sets[&origin].items {
                steps += 1;
                let around = (item.side.lhs(cfg), item.origin);
                if item.side.wants(cfg, Symbol::Nonterminal(lhs)) && !outer.contains_key(&around) {
                    outer.insert(around, Some(phrase));
                    queue.push_back(around);
                }
            }
            if steps > STEPS {
                break;
            }
        }
        Vec::new()
    }

    /// Of a chain, the outermost first, the phrases with a name, of those that began at one place the
    /// innermost.
    fn shown(&self, mut chain: Vec<(NonterminalId, usize)>) -> Vec<(NonterminalId, usize)> {
        let named = &self.language.grammar().nonterminals;
        chain.iter_mut().for_each(|(_, origin)| *origin = self.places.place(*origin));
        chain.retain(|(n, _)| named.get(n.index()).is_some_and(|nonterminal| !nonterminal.is_synthetic()));
        chain.reverse();
        chain.dedup_by_key(|&mut (_, origin)| origin);
        chain.reverse();
        chain
    }
}
