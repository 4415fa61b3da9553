//! Completion sampling: from the symbols that were found to be generating to a derivation, a sequence of
//! terminals, a text for each gap.
//!
//! The first derivation is the recorded one, which needs no choice. Later draws choose among all productions
//! whose right side is known to be generating, some dozens of times, and follow the recorded ones from there:
//! those end, as the causes of a symbol were found before it.

use anygram_bits::Random;
use anygram_bits::work::{Stopped, Work};
use anygram_grammar::ir::TerminalId;
use anygram_left_to_right::Constraint;
use anygram_left_to_right::language::StepError;
use anygram_lexer::words::Words;
use anygram_vocab::{NodeId, TokenId, Vocabulary};
use rustc_hash::{FxHashMap, FxHashSet};

use super::automaton::Automaton;
use super::completions::{Completions, Item};
use super::lexemes::{FIRST, Lexeme};
use super::search::{Cause, Rules, Search, Triple};
use super::tables::Tables;
use crate::plan;

/// Choices that a draw makes before it follows the recorded derivation.
const CHOICES: usize = 48;

/// Sequences of terminals of an intersection.
pub(super) struct Sampler<'a> {
    rules: &'a Rules,
    automaton: &'a Automaton,
    search: &'a Search,
    places: FxHashMap<Triple, u32>,
}

impl<'a> Sampler<'a> {
    pub fn new(rules: &'a Rules, automaton: &'a Automaton, search: &'a Search) -> Self {
        let places = search.triples.iter().zip(0..).map(|(&(triple, _), place)| (triple, place)).collect();
        Self { rules, automaton, search, places }
    }

    /// The terminals of a derivation; the recorded one without `random`.
    pub fn draw(
        &self,
        found: usize,
        mut random: Option<&mut Random>,
        work: &mut Work,
    ) -> Result<Vec<TerminalId>, Stopped> {
        let mut terminals = Vec::new();
        let mut choices = CHOICES;
        let mut stack = vec![self.search.triples[found].0];
        while let Some(triple) = stack.pop() {
            work.spend(4)?;
            let recorded = self.places.get(&triple).map(|&place| self.search.triples[place as usize].1);
            let cause = match &mut random {
                Some(random) if choices > 0 => {
                    choices -= 1;
                    let causes = self.causes(triple, work)?;
                    if causes.is_empty() { recorded } else { Some(causes[random.below(causes.len())]) }
                }
                _ => recorded,
            };
            let Triple { from, to, .. } = triple;
            match cause {
                Some(Cause::Terminal(terminal)) => terminals.push(terminal),
                Some(Cause::Unit(symbol)) => stack.push(Triple { from, symbol, to }),
                Some(Cause::Pair(left, between, right)) => {
                    stack.push(Triple { from: between, symbol: right, to });
                    stack.push(Triple { from, symbol: left, to: between });
                }
                None => {}
            }
        }
        Ok(terminals)
    }

    /// All productions of a symbol of which the right side is known to be generating.
    fn causes(&self, triple: Triple, work: &mut Work) -> Result<Vec<Cause>, Stopped> {
        let Triple { from, symbol, to } = triple;
        let mut causes: Vec<Cause> = self.automaton.edges[from as usize]
            .iter()
            .filter(|&&(terminal, end)| end == to && self.rules.lexical[terminal.index()].contains(&symbol))
            .map(|&(terminal, _)| Cause::Terminal(terminal))
            .collect();
        let known = |symbol: u32| self.search.is_generating(Triple { from, symbol, to });
        causes.extend(
            self.rules.children[symbol as usize]
                .iter()
                .filter(|&&child| known(child))
                .map(|&c| Cause::Unit(c)),
        );
        for &(left, right) in &self.rules.pairs[symbol as usize] {
            let between = self.search.between(left, from, right, to);
            work.spend(1 + between.len())?;
            causes.extend(between.into_iter().map(|between| Cause::Pair(left, between, right)));
        }
        Ok(causes)
    }
}

/// A part of what fills a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Byte(u8),
    Special(TerminalId),
}

/// A place on the way through a partial output that is spelled: item, byte or node of the trie, piece in
/// progress, terminals so far.
type At = (u32, u32, Lexeme, u32);

struct Step {
    at: At,
    parent: u32,
    /// What was put into a gap, and into which.
    part: Option<(u32, Part)>,
}

/// Places in the order in which they are met.
struct Frontier {
    steps: Vec<Step>,
    seen: FxHashSet<At>,
    agenda: Vec<u32>,
}

impl Frontier {
    fn new(at: At) -> Self {
        let first = Step { at, parent: u32::MAX, part: None };
        Self { steps: vec![first], seen: FxHashSet::from_iter([at]), agenda: vec![0] }
    }

    fn enter(&mut self, parent: u32, at: At, part: Option<(u32, Part)>) {
        if self.seen.insert(at) {
            self.agenda.push(self.steps.len() as u32);
            self.steps.push(Step { at, parent, part });
        }
    }

    /// The same with some more bytes in the gap at the place.
    fn enter_behind(&mut self, parent: u32, at: At, part: Option<(u32, Part)>, bytes: &[u8]) {
        if self.seen.insert(at) {
            self.steps.push(Step { at, parent, part });
            for &byte in bytes {
                let parent = self.steps.len() as u32 - 1;
                self.steps.push(Step { at, parent, part: Some((at.0, Part::Byte(byte))) });
            }
            self.agenda.push(self.steps.len() as u32 - 1);
        }
    }
}

/// Spells sequences of terminals as texts of the language of completions.
pub(super) struct Speller<'a> {
    pub tables: &'a mut Tables,
    pub constraint: &'a Constraint,
    pub completions: &'a Completions,
    /// An ignored text that keeps pieces apart, if there is one.
    pub separator: Option<&'a [u8]>,
}

impl Speller<'_> {
    /// A shortest text that is read as these terminals: what stands in each item that is open. With `apart` a
    /// separator stands in a gap wherever a piece ends at it. Bytes are tried in an order that depends on
    /// `turn`.
    pub fn spell(
        &mut self,
        terminals: &[TerminalId],
        apart: bool,
        turn: usize,
        work: &mut Work,
    ) -> Result<Option<Vec<Vec<Part>>>, StepError> {
        let lexing = self.constraint.language().lexing();
        let separator = self.separator.filter(|_| apart);
        let mut frontier = Frontier::new((0, 0, FIRST, 0));
        let (mut next, mut bytes) = (0, Vec::new());
        let specials: Vec<TerminalId> =
            plan::specials(self.constraint).map(|(_, terminal)| terminal).collect();
        while let Some(&from) = frontier.agenda.get(next) {
            next += 1;
            let (item, inner, lexeme, n_read) = frontier.steps[from as usize].at;
            let place = item as usize;
            let is_boundary = self.tables.lexemes.is_boundary(lexeme);
            let wanted = terminals.get(n_read as usize).copied();
            if inner == 0 && is_boundary && wanted.is_none() && self.completions.finals[place] {
                return Ok(Some(self.parts(&frontier.steps, from)));
            }
            let Some(content) = self.completions.items.get(place) else { continue };
            let is_open = self.completions.is_open(place);
            if is_open && inner == 0 {
                frontier.enter(from, (item + 1, 0, lexeme, n_read), None);
                if let Some(terminal) = wanted
                    && is_boundary
                    && (specials.contains(&terminal) || *content == Item::Anything)
                    && lexing.specials().contains(&terminal)
                {
                    frontier.enter(from, (item, 0, FIRST, n_read + 1), Some((item, Part::Special(terminal))));
                }
            }
            if let Item::Special(terminal) = content {
                if is_boundary && wanted == Some(*terminal) {
                    frontier.enter(from, (item + 1, 0, FIRST, n_read + 1), None);
                }
                continue;
            }
            self.bytes(content, (item, inner), turn, &mut bytes);
            work.spend(2 + bytes.len())?;
            for &(byte, item_after, inner) in &bytes {
                let part = is_open.then_some((item, Part::Byte(byte)));
                let (stay, cuts) = self.tables.lexemes.step(lexing, lexeme, byte)?;
                if let Some(stay) = stay {
                    let lexemes = &self.tables.lexemes;
                    let hopeful =
                        wanted.is_some_and(|wanted| lexemes.may_become(lexing, stay, wanted.index()));
                    if hopeful || lexemes.may_be_ignored(lexing, stay) {
                        frontier.enter(from, (item_after, inner, stay, n_read), part);
                    }
                }
                for cut in cuts.0..cuts.1 {
                    let cut = self.tables.lexemes.cut(cut);
                    if cut.label.is_none() {
                        frontier.enter(from, (item_after, inner, cut.after, n_read), part);
                    } else if cut.label == wanted {
                        let at = (item_after, inner, cut.after, n_read + 1);
                        let is_gap =
                            matches!(self.completions.items.get(item_after as usize), Some(Item::Gap));
                        match separator {
                            Some(separator) if is_gap && inner == 0 => {
                                if let Some(after) =
                                    skipped(self.tables, self.constraint, cut.after, separator)?
                                {
                                    frontier.enter_behind(
                                        from,
                                        (item_after, 0, after, n_read + 1),
                                        part,
                                        separator,
                                    );
                                }
                            }
                            _ => frontier.enter(from, at, part),
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// The bytes that can come next, and where they lead.
    fn bytes(&self, content: &Item, (item, inner): (u32, u32), turn: usize, into: &mut Vec<(u8, u32, u32)>) {
        into.clear();
        match content {
            Item::Fragment(text) => {
                let is_last = inner as usize + 1 == text.len();
                let (item, next) = if is_last { (item + 1, 0) } else { (item, inner + 1) };
                into.push((text[inner as usize], item, next));
                return;
            }
            Item::Special(_) => return,
            Item::Anything => into.extend(self.tables.samples.iter().map(|&byte| (byte, item, 0))),
            Item::Gap => match &self.tables.single {
                Some(single) => into.extend(single.iter().map(|&(byte, _)| (byte, item, 0))),
                None => {
                    let trie = self.constraint.vocabulary().trie();
                    for child in trie.children(NodeId(inner)) {
                        if !trie.tokens_at(child).is_empty() {
                            into.push((trie.byte(child), item, 0));
                        }
                        if trie.end(child).0 > child.0 + 1 {
                            into.push((trie.byte(child), item, child.0));
                        }
                    }
                }
            },
        }
        if !into.is_empty() {
            let by = turn % into.len();
            into.rotate_left(by);
        }
    }

    fn parts(&self, steps: &[Step], last: u32) -> Vec<Vec<Part>> {
        let mut parts = vec![Vec::new(); self.completions.items.len()];
        let mut at = last;
        while let Some(step) = steps.get(at as usize) {
            if let Some((item, part)) = step.part {
                parts[item as usize].push(part);
            }
            at = step.parent;
        }
        parts.iter_mut().for_each(|parts| parts.reverse());
        parts
    }
}

/// The boundary after an ignored text.
fn skipped(
    tables: &mut Tables,
    constraint: &Constraint,
    boundary: Lexeme,
    text: &[u8],
) -> Result<Option<Lexeme>, StepError> {
    let lexing = constraint.language().lexing();
    let Some((&last, before)) = text.split_last() else { return Ok(None) };
    let mut lexeme = boundary;
    for &byte in before {
        let (Some(stay), _) = tables.lexemes.step(lexing, lexeme, byte)? else { return Ok(None) };
        lexeme = stay;
    }
    let (_, cuts) = tables.lexemes.step(lexing, lexeme, last)?;
    let mut ignored = (cuts.0..cuts.1).map(|cut| tables.lexemes.cut(cut)).filter(|cut| cut.label.is_none());
    Ok(ignored.next().map(|cut| cut.after))
}

/// A short text that is ignored: a blank if it is.
pub(super) fn separator(constraint: &Constraint) -> Option<Vec<u8>> {
    let lexing = constraint.language().lexing();
    let ignored = || lexing.lexicon.ignored.iter();
    let is_ignored = |text: &[u8]| {
        ignored().any(|at| lexing.dfa(TerminalId::new(at)).is_some_and(|dfa| dfa.matches(text)))
    };
    if is_ignored(b" ") {
        return Some(b" ".to_vec());
    }
    let words = Words::new(&lexing.lexicon);
    ignored().filter_map(|at| words.shortest(at)).min_by_key(Vec::len)
}

/// The tokens of what fills a gap: as the vocabulary encodes it, or, where that is not the text, as few as
/// there are. `None` if there are none.
pub(super) fn tokens(constraint: &Constraint, parts: &[Part]) -> Option<Vec<TokenId>> {
    let mut tokens = Vec::new();
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            Part::Byte(byte) => bytes.push(*byte),
            Part::Special(terminal) => {
                tokens.append(&mut segmented(constraint.vocabulary(), &bytes)?);
                bytes.clear();
                tokens.push(plan::specials(constraint).find(|(_, named)| named == terminal)?.0);
            }
        }
    }
    tokens.append(&mut segmented(constraint.vocabulary(), &bytes)?);
    Some(tokens)
}

fn segmented(vocabulary: &Vocabulary, text: &[u8]) -> Option<Vec<TokenId>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    if let Ok(tokens) = vocabulary.encode(text)
        && vocabulary.decode(&tokens).is_ok_and(|bytes| bytes == text)
    {
        return Some(tokens);
    }
    // Of each place the fewest tokens to it, and the last of them.
    let mut best: Vec<Option<(usize, usize, TokenId)>> = vec![None; text.len() + 1];
    for from in 0..text.len() {
        let Some(n_before) = (if from == 0 { Some(0) } else { best[from].map(|(n, ..)| n) }) else {
            continue;
        };
        for (length, token) in vocabulary.trie().prefixes(&text[from..]) {
            let place = &mut best[from + length];
            if place.is_none_or(|(n, ..)| n > n_before + 1) {
                *place = Some((n_before + 1, from, token));
            }
        }
    }
    let (mut tokens, mut at) = (Vec::new(), text.len());
    while at > 0 {
        let (_, from, token) = best[at]?;
        tokens.push(token);
        at = from;
    }
    tokens.reverse();
    Some(tokens)
}
