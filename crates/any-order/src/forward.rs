//! All texts of a canvas at once, parsed from left to right.
//!
//! What can stand before a slot are pieces in progress: one [`Entry`] a place of the lexer's automata, with
//! the contexts in which it can have begun ([`Contexts`]: stacks whose nodes are sets of readings). Where
//! pieces end, before a slot or within its tokens, is a [`Node`]; all ways there meet in one context. What is
//! left of tokens behind the end of a piece tells nodes within a hole apart, so that those with more left
//! come before those with less, and nothing is looked at twice.
//!
//! In `scannerless`, in which all grammars are whose automata grow, nothing competes, and what a piece may
//! become depends on its place alone. So this is exact: the canvas can be completed if and only if an end is
//! reached. The way back from there to the beginning ([`Unwinding`]) is a completion.
//!
//! Cost: slots × (places + remainders of tokens) × items of contexts, where it was not seen before; what
//! tokens do to a place, and what follows where ways meet, is kept from canvas to canvas.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anygram_bits::work::Work;
use anygram_bits::{BitSet, Random};
use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::frontier::Config;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::mask::Rest;
use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_recognizer::StateId;
use anygram_recognizer::earley::contexts::{ContextId, Contexts, Learned, Meeting, SetId, Unwinding, Way};
use anygram_vocab::TokenId;
use rustc_hash::FxHashSet;

use crate::canvas::End;
use crate::moves::Ending;
use crate::plan::{self, Place, Plan};
use crate::right::Right;
use crate::search::Found;
use crate::tables::Tables;

/// A piece in progress before a slot.
struct Entry {
    lexeme: LexemeId,
    /// The contexts in which it can have begun, as far as it tells them apart.
    begun: SetId,
    /// How it was come to in the slot before.
    from: Vec<(Source, Tokens)>,
}

/// The end of pieces, by number, and what can begin there.
type Begun = (usize, Arc<[LexemeId]>);

/// What can stand before a slot.
#[derive(Default)]
struct Before {
    entries: Vec<Entry>,
    /// The ends of pieces, each with what can begin there.
    nodes: Vec<Begun>,
    /// One of them where the text is a sentence.
    sentence: Option<usize>,
}

/// What goes on within a slot.
#[derive(Clone, Copy)]
enum Source {
    /// A piece in progress before it.
    Entry(usize),
    /// The end of a piece before it or within it.
    Node(usize),
}

/// The tokens of a slot.
#[derive(Clone)]
enum Tokens {
    Any(Ending),
    One(TokenId),
}

/// The end of pieces.
struct Node {
    /// `None` where the text begins.
    meeting: Option<Arc<Meeting>>,
    from: Vec<Incoming>,
}

/// How pieces can end at a node.
#[derive(Clone)]
struct Incoming {
    source: Source,
    begun: SetId,
    scans: Vec<Option<TerminalId>>,
    /// If the slot ends there.
    tokens: Option<Tokens>,
}

/// The end of a text.
enum Ended {
    /// A sentence.
    Sentence(usize),
    /// A prefix that ends with a piece, or goes on from an entry behind the last slot.
    Prefix(Source),
}

/// What can stand in a canvas from left to right.
#[derive(Default)]
pub(crate) struct Forward {
    /// What can stand before each slot.
    slots: Vec<Before>,
    nodes: Vec<Node>,
    /// How many of the nodes stand before each slot, or in slots before it.
    n_nodes: Vec<usize>,
    is_loose: bool,
    /// Of pieces that may become the same terminals as many, and whether some were left out.
    most_alike: usize,
    is_cut: bool,
    /// The last slot in which the canvas differs from the one before.
    last_change: Option<usize>,
    /// Where a text can end first, and how.
    end: Option<(usize, Ended)>,
}

/// A piece in progress behind a slot, by one way there.
struct Piece {
    begun: SetId,
    source: Source,
    tokens: Tokens,
}

/// What can stand behind a slot, while it is collected.
#[derive(Default)]
struct Next {
    pieces: BTreeMap<LexemeId, Vec<Piece>>,
    ends: Vec<Incoming>,
}

/// Items that take as long as a step.
const ITEMS_PER_STEP: usize = 2;

/// Nodes of the trie of tokens, looked at for the first time, that take as long as a step.
const NODES_PER_STEP: u64 = 4;

/// A canvas while it is parsed.
struct Parse<'a> {
    tables: &'a mut Tables,
    plan: &'a Plan,
    work: &'a mut Work,
    /// What lexing lets stand before slots up to the one that changed, and behind that.
    rights: (Arc<Right>, Arc<Right>),
    last_change: Option<usize>,
    found: Forward,
    effort: usize,
    n_seen: u64,
}

/// How much of all texts is looked at.
#[derive(Clone, Copy)]
pub(crate) struct Breadth {
    /// Whether states of automata of right-hand sides are joined where ways meet: then there may be more
    /// texts.
    pub loosely: bool,
    /// Of pieces before one slot that may become the same terminals, as many: then there may be fewer.
    pub most_alike: usize,
}

/// What is kept of the last canvas: what stands before the slot in which the next one differs serves that
/// too.
pub(crate) struct LastForward {
    /// The last canvas, and the same with a hole in the slot up to which it is kept.
    asked: Plan,
    plan: Plan,
    forward: Forward,
}

impl LastForward {
    /// Up to which slot it serves a canvas: of which each text up to there was one of this canvas.
    fn serves(&self, plan: &Plan) -> usize {
        let is_part = |(known, now): (&Place, &Place)| known == now || *known == Place::Free;
        let ends = |(known, now): (&bool, &bool)| *known || !now;
        let serves = self.plan.places.len() == plan.places.len()
            && self.plan.whole == plan.whole
            && self.plan.places.iter().zip(&plan.places).all(is_part)
            && self.plan.ends.iter().zip(&plan.ends).all(ends);
        if !serves {
            return 0;
        }
        let differs = |(known, now): (&Place, &Place)| known != now;
        let first = self.plan.places.iter().zip(&plan.places).position(differs);
        first.unwrap_or(usize::MAX).min(self.forward.slots.len().saturating_sub(1))
    }
}

/// A canvas with any token in the slot that changed: what is found before it serves all that can stand there.
fn with_any(plan: &Plan, last_change: Option<usize>) -> Plan {
    let mut plan = plan.clone();
    if let Some(place) = last_change.and_then(|slot| plan.places.get_mut(slot))
        && *place != Place::Closed
    {
        *place = Place::Free;
    }
    plan
}

impl Tables {
    /// All texts of a canvas at once. `None` unless automata grow, and where the canvas asks for what this
    /// does not know: gaps, and how many tokens can still come. Goes on from what is kept of the canvas
    /// before, which is gone then, unless this canvas is `apart` from it.
    pub fn forward(
        &mut self,
        plan: &Plan,
        (Breadth { loosely, most_alike }, apart): (Breadth, bool),
        work: &mut Work,
    ) -> Result<Option<Forward>, StepError> {
        let is_known = |place: &Place| matches!(place, Place::Token(_) | Place::Free | Place::Closed);
        let counts = matches!(plan.whole, Some(End::Prefix { remaining: Some(_) }));
        if !self.is_growing() || counts || !plan.places.iter().all(is_known) {
            return Ok(None);
        }
        if self.start()?.is_none() {
            return Ok(Some(Forward::default()));
        }
        let Some(mut contexts) = self.take_contexts(loosely) else { return Ok(None) };
        let mut found = Forward { is_loose: loosely, most_alike, ..Forward::default() };
        let mut last_change = None;
        // Contexts may have been dropped just now, and then nothing is kept.
        let serves = |kept: &mut Box<LastForward>| !apart && loosely && kept.forward.most_alike == most_alike;
        let kept = self.kept_forward.take_if(serves);
        if let Some(kept) = kept {
            let differs = |(before, now): (&Place, &Place)| before != now;
            last_change = kept.asked.places.iter().zip(&plan.places).rposition(differs);
            let n_slots = kept.serves(plan);
            if n_slots > 0 {
                found = kept.forward;
                found.cut(n_slots);
            }
        }
        let before = with_any(plan, last_change);
        let rights = (Arc::new(self.right(&before)), Arc::new(self.right(plan)));
        let (effort, n_seen) = (contexts.effort() + self.effort(), self.n_seen());
        let mut parse = Parse { tables: self, plan, work, rights, last_change, found, effort, n_seen };
        let ended = parse.run(&mut contexts);
        let found = parse.found;
        self.contexts[usize::from(loosely)] = Some(contexts);
        ended.map(|()| Some(found))
    }

    /// Keeps what was found of a canvas for the next.
    pub fn keep_forward(&mut self, plan: &Plan, mut forward: Forward) {
        let before = with_any(plan, forward.last_change);
        forward.cut(forward.last_change.unwrap_or(usize::MAX));
        self.kept_forward = Some(Box::new(LastForward { asked: plan.clone(), plan: before, forward }));
    }

    /// What a piece may become: a number for each such set, its terminals, and whether it may be ignored.
    fn piece(&mut self, lexeme: LexemeId) -> (u32, Arc<BitSet>, bool) {
        let Self { constraint, stepper, pieces, .. } = self;
        let (lexing, transducer) = (constraint.language().lexing(), stepper.transducer());
        let number = transducer.wanted_of(lexeme).0;
        let (wanted, skips) = pieces.entry(number).or_insert_with(|| {
            let wanted = transducer.candidates(lexing, lexeme);
            let skips = wanted.intersects(&lexing.lexicon.ignored);
            (Arc::new(wanted), skips)
        });
        (number, wanted.clone(), *skips)
    }

    /// The contexts that are known, to be put back.
    fn take_contexts(&mut self, loosely: bool) -> Option<Box<Contexts>> {
        let most = self.constraint.language().limits().cache_bytes / 4;
        let contexts = &mut self.contexts[usize::from(loosely)];
        if contexts.take_if(|contexts| contexts.memory_usage() > most).is_some() {
            self.kept_forward = None;
            self.begins.clear();
        }
        let contexts = &mut self.contexts[usize::from(loosely)];
        let engine = self.stepper.earley_mut()?;
        Some(contexts.take().unwrap_or_else(|| Box::new(Contexts::new(engine, loosely))))
    }
}

impl Parse<'_> {
    fn run(&mut self, contexts: &mut Contexts) -> Result<(), StepError> {
        if self.rights.1.is_hopeless {
            return Ok(());
        }
        self.found.last_change = self.last_change;
        if self.found.slots.is_empty() {
            let begins = self.begins(contexts, Contexts::START)?;
            let sentence = contexts.is_sentence(Contexts::START).then_some(0);
            self.found.nodes.push(Node { meeting: None, from: Vec::new() });
            self.found.slots.push(Before { entries: Vec::new(), nodes: vec![(0, begins)], sentence });
            self.found.n_nodes.push(1);
        }
        for slot in self.found.slots.len() - 1..=self.plan.places.len() {
            let before = &self.found.slots[slot];
            let is_whole = slot == self.plan.places.len();
            let asks = if is_whole { self.plan.whole.is_some() } else { self.plan.ends[slot] };
            let as_prefix = is_whole && self.plan.whole != Some(End::Sentence);
            let end = match before.sentence {
                Some(node) => Some(Ended::Sentence(node)),
                None if !as_prefix => None,
                None => match before.nodes.first() {
                    Some(&(node, _)) => Some(Ended::Prefix(Source::Node(node))),
                    None => (!before.entries.is_empty()).then_some(Ended::Prefix(Source::Entry(0))),
                },
            };
            if asks && let Some(end) = end {
                self.found.end = Some((slot, end));
                return Ok(());
            }
            if is_whole || before.entries.is_empty() && before.nodes.is_empty() {
                return Ok(());
            }
            let mut next = Next::default();
            match self.plan.places[slot] {
                Place::Token(token) => self.token(contexts, slot, token, &mut next)?,
                Place::Free => self.hole(contexts, slot, &mut next)?,
                Place::Closed | Place::Gap | Place::Optional => {}
            }
            let before = self.before(contexts, slot, next)?;
            self.work.spend(1 + before.entries.len())?;
            self.found.slots.push(before);
            self.found.n_nodes.push(self.found.nodes.len());
        }
        Ok(())
    }

    /// What lexing lets stand before a slot.
    fn right(&self, slot: usize) -> &Arc<Right> {
        if self.last_change.is_some_and(|change| slot <= change) { &self.rights.0 } else { &self.rights.1 }
    }

    /// Counts what was done since this was last asked.
    fn spend(&mut self, contexts: &Contexts) -> Result<(), StepError> {
        let effort = contexts.effort() + self.tables.effort();
        let n_seen = self.tables.n_seen();
        let made = effort.saturating_sub(std::mem::replace(&mut self.effort, effort));
        let seen = n_seen.saturating_sub(std::mem::replace(&mut self.n_seen, n_seen));
        Ok(self.work.spend(made / ITEMS_PER_STEP + (seen / NODES_PER_STEP) as usize)?)
    }

    fn begun(&self, contexts: &mut Contexts, slot: usize, source: Source) -> SetId {
        match source {
            Source::Entry(entry) => self.found.slots[slot].entries[entry].begun,
            Source::Node(node) => {
                let context = self.found.context(node);
                contexts.set(vec![context])
            }
        }
    }

    /// Where pieces end in some ways, if any of them can be gone: the node, and what can begin there.
    fn node(&mut self, contexts: &mut Contexts, from: Vec<Incoming>) -> Result<Option<Begun>, StepError> {
        let mut ways: BTreeMap<Option<TerminalId>, Vec<SetId>> = BTreeMap::new();
        for incoming in &from {
            for &scan in &incoming.scans {
                ways.entry(scan).or_default().push(incoming.begun);
            }
        }
        let ways: Vec<Way> = ways.into_iter().map(|(scan, sets)| (contexts.union(sets), scan)).collect();
        let Some(engine) = self.tables.stepper.earley_mut() else { return Ok(None) };
        let Some(meeting) = contexts.meet(engine, &ways)? else { return Ok(None) };
        let begins = self.begins(contexts, meeting.context)?;
        self.found.nodes.push(Node { meeting: Some(meeting), from });
        Ok(Some((self.found.nodes.len() - 1, begins)))
    }

    /// What can begin in a context: a boundary for each automaton of which something is wanted, with all that
    /// it gives, so that there are few. Nothing competes, so each may be followed by itself.
    fn begins(&mut self, contexts: &mut Contexts, context: ContextId) -> Result<Arc<[LexemeId]>, StepError> {
        if let Some(known) = self.tables.begins.get(&(self.found.is_loose, context)) {
            return Ok(known.clone());
        }
        let begun = contexts.set(vec![context]);
        let Some(engine) = self.tables.stepper.earley_mut() else { return Ok(Arc::from([])) };
        let (viable, _) = contexts.wanted(engine, begun);
        let language = self.tables.constraint.language();
        let (lexing, union) = (language.lexing(), &language.lexing().lexicon.union);
        let ignored = &lexing.lexicon.ignored;
        let wanted = viable.iter().chain(ignored.iter());
        let automata: BTreeSet<u32> = wanted.filter_map(|terminal| union.automaton_of(terminal)).collect();
        let transducer = self.tables.stepper.transducer_mut();
        let mut begins = Vec::with_capacity(automata.len());
        for automaton in automata {
            let of = (0..lexing.cfg.n_terminals).filter(|&at| union.automaton_of(at) == Some(automaton));
            let of = BitSet::from_members(lexing.cfg.n_terminals, of);
            let wanted = transducer.wanted_alone(lexing, &of);
            begins.extend(transducer.first(lexing, wanted)?);
        }
        let begins: Arc<[LexemeId]> = begins.into();
        self.tables.begins.insert((self.found.is_loose, context), begins.clone());
        Ok(begins)
    }

    /// What was collected, as far as lexing and the contexts let it stand before the next slot.
    fn before(&mut self, contexts: &mut Contexts, slot: usize, next: Next) -> Result<Before, StepError> {
        let mut before = Before::default();
        for (lexeme, pieces) in next.pieces {
            let begun = contexts.union(pieces.iter().map(|piece| piece.begun));
            if let Some(begun) = self.seen_by(contexts, begun, lexeme)? {
                let from = pieces.into_iter().map(|piece| (piece.source, piece.tokens)).collect();
                before.entries.push(Entry { lexeme, begun, from });
            }
        }
        self.leave_out_alike(&mut before.entries);
        if let Some((node, begins)) = self.node(contexts, next.ends)? {
            let is_sentence = contexts.is_sentence(self.found.context(node));
            before.sentence = is_sentence.then_some(node);
            let allows =
                |&&lexeme: &&LexemeId| self.right(slot + 1).allows(slot + 1, self.tables.union_state(lexeme));
            let begins: Arc<[LexemeId]> = begins.iter().filter(allows).copied().collect();
            let is_last = slot + 1 == self.plan.places.len();
            if is_last || !begins.is_empty() {
                before.nodes.push((node, begins));
            }
        }
        self.spend(contexts)?;
        Ok(before)
    }

    /// Leaves out pieces of which there are many that may become the same: long numbers, and texts of every
    /// length. What most bytes can follow stays.
    fn leave_out_alike(&mut self, entries: &mut Vec<Entry>) {
        if entries.len() <= self.found.most_alike {
            return;
        }
        let transducer = self.tables.stepper.transducer();
        let mut alike: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for entry in &*entries {
            let state = self.tables.union_state(entry.lexeme) as usize;
            let follow = self.tables.permissiveness.get(state).copied();
            let kind = transducer.wanted_of(entry.lexeme).0;
            alike.entry(kind).or_default().push((Reverse(follow), entry.lexeme));
        }
        let mut left_out = FxHashSet::default();
        for alike in alike.values_mut().filter(|alike| alike.len() > self.found.most_alike) {
            alike.sort_unstable();
            left_out.extend(alike[self.found.most_alike..].iter().map(|&(_, lexeme)| lexeme));
        }
        self.found.is_cut |= !left_out.is_empty();
        entries.retain(|entry| !left_out.contains(&entry.lexeme));
    }

    /// Of contexts in which a piece began those that it tells apart; `None` if it comes to nothing that any
    /// of them wants.
    fn seen_by(
        &mut self,
        contexts: &mut Contexts,
        begun: SetId,
        lexeme: LexemeId,
    ) -> Result<Option<SetId>, StepError> {
        let (number, wanted, skips) = self.tables.piece(lexeme);
        let Some(engine) = self.tables.stepper.earley_mut() else { return Ok(None) };
        let (viable, _) = contexts.wanted(engine, begun);
        if !skips && !viable.intersects(&wanted) {
            return Ok(None);
        }
        Ok(Some(contexts.all_seen_by(engine, begun, (number, &wanted, skips))?))
    }

    /// The terminals that the end of a piece is read as, by which something goes on in some of the contexts.
    fn scans(&mut self, contexts: &mut Contexts, begun: SetId, cut: CutId) -> Vec<Option<TerminalId>> {
        let cut = self.tables.stepper.transducer().cut(cut).clone();
        let Some(engine) = self.tables.stepper.earley_mut() else { return Vec::new() };
        let skips = (cut.skip || cut.scans.is_empty()).then_some(None);
        let scans = cut.scans.iter().map(|&scan| Some(scan)).chain(skips);
        scans.filter(|&scan| contexts.reads(engine, (begun, scan))).collect()
    }

    /// What goes on before a slot: pieces and what can begin.
    fn sources(&self, slot: usize) -> Vec<(LexemeId, Source)> {
        let Before { entries, nodes, .. } = &self.found.slots[slot];
        let pieces = entries.iter().enumerate().map(|(at, entry)| (entry.lexeme, Source::Entry(at)));
        let begins = nodes
            .iter()
            .flat_map(|(node, begins)| begins.iter().map(move |&lexeme| (lexeme, Source::Node(*node))));
        pieces.chain(begins).collect()
    }

    /// A fixed token.
    fn token(
        &mut self,
        contexts: &mut Contexts,
        slot: usize,
        token: TokenId,
        next: &mut Next,
    ) -> Result<(), StepError> {
        let constraint = self.tables.constraint.clone();
        for terminal in plan::named(&constraint, token) {
            self.special(contexts, slot, (token, terminal), next);
        }
        let bytes = constraint.vocabulary().bytes(token).unwrap_or_default();
        let lexing = constraint.language().lexing();
        let mut at: BTreeMap<LexemeId, Vec<Source>> = BTreeMap::new();
        for (lexeme, source) in self.sources(slot) {
            at.entry(lexeme).or_default().push(source);
        }
        for (n_read, &byte) in (1..).zip(bytes) {
            let is_last = n_read == bytes.len();
            let mut stays: BTreeMap<LexemeId, Vec<Source>> = BTreeMap::new();
            let mut ends: Vec<Incoming> = Vec::new();
            self.work.spend(at.len())?;
            for (lexeme, sources) in at {
                let step = self.tables.stepper.transducer_mut().step(lexing, lexeme, byte)?;
                if let Some(cut) = step.cut {
                    for &source in &sources {
                        let begun = self.begun(contexts, slot, source);
                        let scans = self.scans(contexts, begun, cut);
                        if !scans.is_empty() {
                            let tokens = is_last.then_some(Tokens::One(token));
                            ends.push(Incoming { source, begun, scans, tokens });
                        }
                    }
                }
                if let Some(stay) = step.stay {
                    stays.entry(stay).or_default().extend(sources);
                }
            }
            if is_last {
                for (lexeme, sources) in stays {
                    if !self.right(slot + 1).allows(slot + 1, self.tables.union_state(lexeme)) {
                        continue;
                    }
                    for source in sources {
                        let begun = self.begun(contexts, slot, source);
                        let piece = Piece { begun, source, tokens: Tokens::One(token) };
                        next.pieces.entry(lexeme).or_default().push(piece);
                    }
                }
                next.ends.append(&mut ends);
                break;
            }
            if let Some((node, begins)) = self.node(contexts, ends)? {
                for &lexeme in &*begins {
                    stays.entry(lexeme).or_default().push(Source::Node(node));
                }
            }
            at = stays;
        }
        Ok(())
    }

    /// A token that the grammar names.
    fn special(
        &mut self,
        contexts: &mut Contexts,
        slot: usize,
        (token, terminal): (TokenId, TerminalId),
        next: &mut Next,
    ) {
        for &(node, _) in &self.found.slots[slot].nodes {
            let begun = contexts.set(vec![self.found.context(node)]);
            let (source, scans) = (Source::Node(node), vec![Some(terminal)]);
            next.ends.push(Incoming { source, begun, scans, tokens: Some(Tokens::One(token)) });
        }
    }

    /// A hole.
    fn hole(&mut self, contexts: &mut Contexts, slot: usize, next: &mut Next) -> Result<(), StepError> {
        let constraint = self.tables.constraint.clone();
        for (token, terminal) in plan::specials(&constraint) {
            self.special(contexts, slot, (token, terminal), next);
        }
        let mut waiting = Waiting::new();
        for (lexeme, source) in self.sources(slot) {
            self.walk(contexts, (slot, source, lexeme), None, next, &mut waiting)?;
        }
        while let Some((_, (rest, from))) = waiting.pop_first() {
            if let Some((node, begins)) = self.node(contexts, from)? {
                for &lexeme in &*begins {
                    let source = Source::Node(node);
                    self.walk(contexts, (slot, source, lexeme), Some(&rest), next, &mut waiting)?;
                }
            }
        }
        Ok(())
    }

    /// What all tokens, or what is left of some, do to a piece.
    fn walk(
        &mut self,
        contexts: &mut Contexts,
        (slot, source, lexeme): (usize, Source, LexemeId),
        rest: Option<&Arc<Rest>>,
        next: &mut Next,
        waiting: &mut Waiting,
    ) -> Result<(), StepError> {
        let right = self.right(slot + 1).clone();
        let begun = self.begun(contexts, slot, source);
        // Of the reading only the piece is looked at.
        let walk = self.tables.walk(Config { state: StateId(0), lexeme }, rest)?;
        self.work.spend(1 + walk.stays.len() + walk.exits.len())?;
        for &(lexeme, ref tokens) in &walk.stays {
            if right.allows(slot + 1, self.tables.union_state(lexeme)) {
                let piece = Piece { begun, source, tokens: Tokens::Any(tokens.clone()) };
                next.pieces.entry(lexeme).or_default().push(piece);
            }
        }
        for (at, exit) in walk.exits.iter().enumerate() {
            let scans = self.scans(contexts, begun, exit.cut);
            if scans.is_empty() {
                continue;
            }
            if exit.ends.n_tokens > 0 {
                let (scans, tokens) = (scans.clone(), Some(Tokens::Any(exit.ends.clone())));
                next.ends.push(Incoming { source, begun, scans, tokens });
            }
            if let Some(beyond) = self.tables.beyond(&walk, at, rest, self.work)?
                && self.tables.leads(&beyond, right.states(slot + 1), self.work)?
            {
                let key = (Reverse(beyond.height), beyond.id);
                let incoming = Incoming { source, begun, scans, tokens: None };
                waiting.entry(key).or_insert_with(|| (beyond, Vec::new())).1.push(incoming);
            }
        }
        self.spend(contexts)
    }
}

/// What is left of tokens behind the ends of pieces in a hole: what has many bytes left is reached from what
/// has more alone.
type Waiting = BTreeMap<(Reverse<usize>, u64), (Arc<Rest>, Vec<Incoming>)>;

impl Forward {
    /// Leaves out what stands behind a slot.
    fn cut(&mut self, slot: usize) {
        self.slots.truncate(slot.saturating_add(1));
        self.n_nodes.truncate(self.slots.len());
        self.nodes.truncate(self.n_nodes.last().copied().unwrap_or(0));
        self.end = None;
    }

    /// Whether an end was reached. If not, and nothing was left out, the canvas cannot be completed.
    pub fn is_possible(&self) -> bool {
        self.end.is_some()
    }

    /// Whether something was left out.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn context(&self, node: usize) -> ContextId {
        self.nodes[node].meeting.as_ref().map_or(Contexts::START, |meeting| meeting.context)
    }

    /// A completion, if there is one; another for another seed.
    pub fn completion(
        &self,
        tables: &mut Tables,
        learned: &mut Learned,
        seed: u64,
        work: &mut Work,
    ) -> Result<Option<Found>, StepError> {
        let Some(mut contexts) = tables.contexts[usize::from(self.is_loose)].take() else { return Ok(None) };
        let before = contexts.effort();
        let found = self.unwind(tables, &mut contexts, learned, &mut Random::new(seed));
        let made = contexts.effort() - before;
        tables.contexts[usize::from(self.is_loose)] = Some(contexts);
        work.spend(made / ITEMS_PER_STEP)?;
        found
    }

    fn unwind(
        &self,
        tables: &mut Tables,
        contexts: &mut Contexts,
        learned: &mut Learned,
        random: &mut Random,
    ) -> Result<Option<Found>, StepError> {
        let Some((end, ended)) = &self.end else { return Ok(None) };
        let mut tokens: Vec<Option<TokenId>> = vec![None; *end];
        let Some(mut back) = self.last(tables, contexts, (*end, ended), &mut tokens, random)? else {
            return Ok(None);
        };
        let mut before: Vec<Back> = Vec::new();
        let mut n_failed = 0;
        while let Some(meeting) = &self.nodes[back.node].meeting {
            before.push(back.clone());
            let known = (&mut *tables, &mut *contexts, &mut *learned);
            if self.step(known, meeting, &mut back, &mut tokens, random)? {
                continue;
            }
            // Somewhat further to the right another way is taken, further the more often this fails.
            n_failed += 1;
            if n_failed > MOST_FAILED {
                return Ok(None);
            }
            let left = before.len().saturating_sub(1 + random.below(1 + 2 * n_failed));
            before.truncate(left + 1);
            let Some(again) = before.pop() else { return Ok(None) };
            back = again;
        }
        let tokens = (0..).zip(tokens).filter_map(|(slot, token)| Some((slot, token?))).collect();
        Ok(Some(Found { end: *end, tokens, n_in_gaps: 0, closing: Vec::new() }))
    }

    /// The last end of a piece, from which a way back begins.
    fn last(
        &self,
        tables: &mut Tables,
        contexts: &mut Contexts,
        (mut slot, ended): (usize, &Ended),
        tokens: &mut [Option<TokenId>],
        random: &mut Random,
    ) -> Result<Option<Back>, StepError> {
        let source = match *ended {
            Ended::Sentence(node) => {
                let engine = tables.stepper.earley_mut();
                return Ok(engine.map(|engine| Back {
                    unwinding: Unwinding::of_sentence(engine),
                    node,
                    slot,
                }));
            }
            Ended::Prefix(source) => source,
        };
        let (node, wanted) = match source {
            Source::Node(node) => (Some(node), None),
            Source::Entry(entry) => {
                let entry = &self.slots[slot].entries[entry];
                let context = *random.choose(contexts.members(entry.begun));
                let (_, wanted, skips) = tables.piece(entry.lexeme);
                let node = self.begin_of((tables, contexts), entry, context, (&mut slot, tokens), random)?;
                (node, (!skips).then_some(wanted))
            }
        };
        let (Some(node), Some(engine)) = (node, tables.stepper.earley_mut()) else { return Ok(None) };
        let unwinding = Unwinding::of_piece(contexts, engine, self.context(node), wanted.as_deref(), random);
        Ok(unwinding.map(|unwinding| Back { unwinding, node, slot }))
    }

    /// A step back over a piece. False if it leads nowhere.
    fn step(
        &self,
        (tables, contexts, learned): (&mut Tables, &mut Contexts, &mut Learned),
        meeting: &Meeting,
        back: &mut Back,
        tokens: &mut [Option<TokenId>],
        random: &mut Random,
    ) -> Result<bool, StepError> {
        let Some(engine) = tables.stepper.earley_mut() else { return Ok(false) };
        let at = (back.node, meeting);
        let Some(step) = back.unwinding.back(contexts, engine, learned, at, random)? else {
            return Ok(false);
        };
        let leads = |incoming: &&Incoming| {
            incoming.scans.contains(&step.way.1)
                && contexts.members(incoming.begun).binary_search(&step.context).is_ok()
        };
        let from: Vec<&Incoming> = self.nodes[back.node].from.iter().filter(leads).collect();
        if from.is_empty() {
            return Ok(false);
        }
        let incoming = *random.choose(&from);
        if let Some(found) = &incoming.tokens {
            back.slot -= 1;
            tokens[back.slot] = found.draw(random);
        }
        back.node = match incoming.source {
            Source::Node(node) => node,
            Source::Entry(entry) => {
                let entry = &self.slots[back.slot].entries[entry];
                let at = (&mut back.slot, tokens);
                match self.begin_of((tables, contexts), entry, step.context, at, random)? {
                    Some(node) => node,
                    None => return Ok(false),
                }
            }
        };
        let Some(engine) = tables.stepper.earley_mut() else { return Ok(false) };
        let at = (self.context(back.node), &step);
        Ok(back.unwinding.begin(contexts, engine, learned, at, random)?)
    }

    /// The node at which a piece in progress before a slot began, in a context or one of which it sees the
    /// same.
    fn begin_of<'a>(
        &'a self,
        (tables, contexts): (&mut Tables, &mut Contexts),
        mut entry: &'a Entry,
        mut context: ContextId,
        (slot, tokens): (&mut usize, &mut [Option<TokenId>]),
        random: &mut Random,
    ) -> Result<Option<usize>, StepError> {
        loop {
            let (number, wanted, skips) = tables.piece(entry.lexeme);
            let Some(engine) = tables.stepper.earley_mut() else { return Ok(None) };
            let mut from = Vec::new();
            for &(source, ref found) in &entry.from {
                let begun = match source {
                    Source::Entry(at) => self.slots[*slot - 1].entries[at].begun,
                    Source::Node(node) => contexts.set(vec![self.context(node)]),
                };
                let seen = contexts.all_seen_by(engine, begun, (number, &wanted, skips))?;
                if contexts.members(seen).binary_search(&context).is_ok() {
                    from.push((source, begun, found));
                }
            }
            if from.is_empty() {
                return Ok(None);
            }
            let &(source, begun, found) = random.choose(&from);
            let mut before = Vec::new();
            for member in contexts.members(begun).to_vec() {
                if contexts.seen_by(engine, member, (number, &wanted, skips))? == context {
                    before.push(member);
                }
            }
            if before.is_empty() {
                return Ok(None);
            }
            let before = *random.choose(&before);
            *slot -= 1;
            tokens[*slot] = found.draw(random);
            context = before;
            match source {
                Source::Node(node) => return Ok(Some(node)),
                Source::Entry(at) => entry = &self.slots[*slot].entries[at],
            }
        }
    }
}

/// Where a way back is.
#[derive(Clone)]
struct Back {
    unwinding: Unwinding,
    node: usize,
    slot: usize,
}

/// Steps of a way back that may lead nowhere.
const MOST_FAILED: usize = 100;

impl Tokens {
    fn draw(&self, random: &mut Random) -> Option<TokenId> {
        match self {
            Self::Any(ending) => ending.some(random.below(usize::MAX) as u64),
            Self::One(token) => Some(*token),
        }
    }
}
