//! The tree as a grammar: a nonterminal for each format, automata for free text.
//!
//! Where formats repeat, rules are left-recursive, and bounds are written with as many rules as the bound has
//! digits in binary.

mod excludes;
mod members;
mod nested;
mod unordered;

use std::num::NonZeroU32;
use std::sync::Arc;

use anygram_grammar::ErrorKind;
use anygram_grammar::automata::{PieceAutomaton, Pieces};
use anygram_grammar::ebnf::EbnfOptions;
use anygram_grammar::embed::Parts;
use anygram_grammar::free::{FREE, FreeText, ShortText};
use anygram_grammar::ir::{
    Grammar, LexerMode, Nonterminal, NonterminalId, Pattern, Rule, SpecialToken, Symbol, Terminal,
    TerminalId, TerminalKind,
};
use anygram_grammar::memory::Remembers;
use anygram_grammar::regex::RegexOptions;
use anygram_grammar::{GrammarError, ebnf, regex};
use anygram_json_schema::algebra::KeyOrder;
use anygram_json_schema::lower::Whitespace;
use anygram_json_schema::refusal::{Kind, Refusal};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Options;
use crate::format::{Format, Mark, Most, Node, SchemaFormat, Tag, Triggered};
use crate::style::Style;

type Result<T> = std::result::Result<T, Refusal>;

/// The grammar of a tree.
///
/// # Errors
/// See [`grammar`](crate::grammar).
pub fn lower(root: &Node, options: &Options) -> Result<Grammar> {
    let mut lowering = Lowering {
        parts: Parts::default(),
        memory: None,
        names: FxHashSet::default(),
        literals: FxHashMap::default(),
        left: options.max_size,
        options,
    };
    let start = lowering.format(root, &Ends { behind: Some(Vec::new()), ..Ends::default() })?;
    let mut grammar = lowering.parts.into_grammar(start, LexerMode::Scannerless);
    if let Some(memory) = lowering.memory {
        grammar = grammar.with_memory(memory);
    }
    // What a name of a token may look like is known there.
    grammar.validate().map_err(|message| Refusal::new(Kind::Unsupported, "", message))?;
    Ok(grammar)
}

/// The parts so far.
struct Lowering<'o> {
    parts: Parts,
    /// What the whole text remembers.
    memory: Option<Remembers>,
    names: FxHashSet<String>,
    literals: FxHashMap<String, Symbol>,
    /// How much the grammar may still grow.
    left: usize,
    options: &'o Options,
}

/// What ends the nearest tag around a format.
#[derive(Clone, Default)]
struct Ends<'t> {
    texts: Vec<&'t str>,
    tokens: Vec<SpecialToken>,
    /// The texts one of which comes right behind the format, none if it is the whole tag; `None` if it may be
    /// something else.
    behind: Option<Vec<&'t str>>,
}

impl<'t> Ends<'t> {
    /// The same for a part of the format at its end.
    fn of_part(&self) -> Self {
        Self { behind: self.behind.clone().filter(|texts| !texts.is_empty()), ..self.clone() }
    }

    /// The same for a part that something else may follow.
    fn of_other_part(&self, behind: Option<Vec<&'t str>>) -> Self {
        Self { behind, ..self.clone() }
    }
}

/// A trigger and what may follow it.
struct Rest<'t> {
    trigger: &'t str,
    then: Vec<Vec<Symbol>>,
}

impl Lowering<'_> {
    fn spend(&mut self, amount: usize, at: &str) -> Result<()> {
        self.left = self.left.checked_sub(amount).ok_or_else(|| {
            let limit = self.options.max_size;
            let message = format!("the grammar grows beyond the limit of {limit} symbols here; ");
            Refusal::new(Kind::Limit, at, message + "raise the limit `grammar_size`")
        })?;
        Ok(())
    }

    /// A new nonterminal for what stands somewhere; `part` says which part of it.
    fn add(&mut self, at: &str, part: &str) -> Result<NonterminalId> {
        self.spend(1, at)?;
        let mut name = if part.is_empty() { at.to_owned() } else { format!("__{at} {part}") };
        if !self.names.insert(name.clone()) {
            name = format!("__{at} {part} {}", self.parts.nonterminals.len());
            self.names.insert(name.clone());
        }
        self.parts.nonterminals.push(Nonterminal { name, span: None });
        Ok(NonterminalId::new(self.parts.nonterminals.len() - 1))
    }

    fn rule(&mut self, lhs: NonterminalId, rhs: Vec<Symbol>) -> Result<()> {
        self.spend(rhs.len() + 1, "")?;
        self.parts.rules.push(Rule { lhs, rhs });
        Ok(())
    }

    /// A nonterminal with these right-hand sides.
    fn any_of(&mut self, at: &str, part: &str, sides: Vec<Vec<Symbol>>) -> Result<NonterminalId> {
        let lhs = self.add(at, part)?;
        sides.into_iter().try_for_each(|rhs| self.rule(lhs, rhs))?;
        Ok(lhs)
    }

    fn terminal(&mut self, name: String, kind: TerminalKind) -> Symbol {
        self.parts.terminals.push(Terminal::new(name, kind));
        Symbol::Terminal(TerminalId::new(self.parts.terminals.len() - 1))
    }

    /// A text; nothing if it is empty.
    fn literal(&mut self, text: &str, at: &str) -> Result<Option<Symbol>> {
        if text.is_empty() {
            return Ok(None);
        }
        if let Some(&known) = self.literals.get(text) {
            return Ok(Some(known));
        }
        self.spend(text.len(), at)?;
        let name = format!("{text:?}");
        let symbol = self.terminal(name, TerminalKind::Literal(Pattern::literal(text.as_bytes())));
        self.literals.insert(text.to_owned(), symbol);
        Ok(Some(symbol))
    }

    fn token(&mut self, token: &SpecialToken) -> Symbol {
        self.terminal(token.to_string(), TerminalKind::Special(token.clone()))
    }

    fn mark(&mut self, mark: &Mark, at: &str) -> Result<Option<Symbol>> {
        match mark {
            Mark::Text(text) => self.literal(text, at),
            Mark::Token(token) => Ok(Some(self.token(token))),
        }
    }

    /// Lets a new nonterminal derive the sentences of a grammar.
    fn embed(&mut self, grammar: Grammar, at: &str, part: &str) -> Result<NonterminalId> {
        self.spend(grammar.nonterminals.len() + grammar.n_rule_symbols(), at)?;
        let lhs = self.add(at, part)?;
        self.parts.embed(lhs, grammar);
        Ok(lhs)
    }

    /// The nonterminal of a format; `ends` are what ends the tag around it.
    fn format(&mut self, node: &Node, ends: &Ends<'_>) -> Result<NonterminalId> {
        let Node { at, format } = node;
        match format {
            Format::Const(text) => {
                let text = self.literal(text, at)?;
                self.any_of(at, "", vec![text.into_iter().collect()])
            }
            Format::Token(token) => {
                let token = self.token(token);
                self.any_of(at, "", vec![vec![token]])
            }
            Format::Regex(pattern) => {
                let grammar = regex::parse(pattern, &RegexOptions::default());
                self.embed(grammar.map_err(|error| of_grammar(error, at, "pattern"))?, at, "")
            }
            Format::Ebnf(source) => {
                let options = EbnfOptions { start: None, join: false, max_size: self.left };
                let grammar = ebnf::parse(source, &options);
                self.embed(grammar.map_err(|error| of_grammar(error, at, "grammar"))?, at, "")
            }
            Format::Schema(schema) => self.schema(schema, (at, ends)),
            Format::AnyText { excludes, most } => {
                let excludes = with_ends(excludes, &ends.texts);
                self.free_text(&excludes, *most, (at, ""))
            }
            Format::Sequence(elements) => {
                let ends = |at: usize| match elements.get(at + 1).map(|next| &next.format) {
                    None => ends.of_part(),
                    Some(Format::Const(text)) if !text.is_empty() => ends.of_other_part(Some(vec![text])),
                    Some(_) => ends.of_other_part(None),
                };
                let elements =
                    elements.iter().enumerate().map(|(at, element)| self.format(element, &ends(at)));
                let sequence = elements.collect::<Result<Vec<_>>>()?;
                self.any_of(at, "", vec![sequence.into_iter().map(Symbol::Nonterminal).collect()])
            }
            Format::Or(elements) => {
                let ends = ends.of_part();
                let elements = elements.iter().map(|element| self.format(element, &ends));
                let any = elements.collect::<Result<Vec<_>>>()?;
                self.any_of(at, "", any.into_iter().map(|one| vec![Symbol::Nonterminal(one)]).collect())
            }
            Format::Repeat { content, min, max } => {
                let ends = if *max == Some(1) { ends.of_part() } else { ends.of_other_part(None) };
                let content = self.format(content, &ends)?;
                let repeated = self.repeat(content, (*min, *max), at)?;
                self.any_of(at, "", vec![vec![Symbol::Nonterminal(repeated)]])
            }
            Format::Tag(tag) => self.tag(tag),
            Format::Triggered(triggered) => self.triggered(triggered, (&ends.texts, at)),
            Format::Separated { tags, separator, at_least_one, stop_after_first } => {
                self.separated(tags, separator, (*at_least_one, *stop_after_first), at)
            }
            Format::Dispatch { rules, repeats, excludes } => {
                let mut rests: Vec<Rest<'_>> = Vec::new();
                for (trigger, content) in rules {
                    let then = vec![Symbol::Nonterminal(self.format(content, &Ends::default())?)];
                    rests.push(Rest { trigger, then: vec![then] });
                }
                let excludes: Vec<&str> = excludes.iter().map(String::as_str).collect();
                self.dispatch(rests, &excludes, *repeats, at)
            }
            Format::ExceptToken(excludes) => {
                let one = self.except(excludes.iter().chain(&ends.tokens));
                self.any_of(at, "", vec![vec![one]])
            }
            Format::TokenTriggered { triggers, tags, excludes, at_least_one, stop_after_first } => {
                let excludes: Vec<SpecialToken> = excludes.iter().chain(&ends.tokens).cloned().collect();
                let flags = (*at_least_one, *stop_after_first);
                self.token_triggered(triggers, tags, &excludes, (flags, at))
            }
            Format::TokenDispatch { rules, repeats, excludes } => {
                let mut sides = Vec::new();
                for (place, (token, content)) in rules.iter().enumerate() {
                    if excludes.contains(token) {
                        return Err(never_dispatched(token, &format!("{at}/rules/{place}/0")));
                    }
                    let content = Symbol::Nonterminal(self.format(content, &Ends::default())?);
                    sides.push(vec![self.token(token), content]);
                }
                let free = self.except(excludes.iter().chain(rules.iter().map(|rule| &rule.0)));
                self.with_free_tokens(free, sides, *repeats, (at, ""))
            }
        }
    }

    fn schema(&mut self, format: &SchemaFormat, (at, ends): (&str, &Ends<'_>)) -> Result<NonterminalId> {
        if format.style != Style::Json {
            return self.members(format, (at, ends));
        }
        let options = self.schema_options(format);
        let schema = (&*format.schema.to_string(), &*format!("{at}/json_schema"));
        self.json(schema, (options, &format.excludes), (at, ""))
    }

    fn schema_options(&self, format: &SchemaFormat) -> anygram_json_schema::Options {
        let mut options = self.options.schema.clone();
        options.key_order = if format.any_order { KeyOrder::Any } else { KeyOrder::Schema };
        if let Some(most) = format.max_whitespace {
            options.whitespace = Whitespace::AtMost(most);
        }
        options
    }

    /// JSON texts of a schema that stands at a place, in the strings and names of which some texts may not
    /// stand.
    fn json(
        &mut self,
        (schema, place): (&str, &str),
        (mut options, excludes): (anygram_json_schema::Options, &[String]),
        (at, part): (&str, &str),
    ) -> Result<NonterminalId> {
        let without = (!excludes.is_empty()).then(|| excludes::without(schema, excludes, &mut options));
        let schema = without.as_deref().unwrap_or(schema);
        let mut grammar = anygram_json_schema::embedded(schema, &options)
            .map_err(|refusal| Refusal { at: format!("{place}{}", refusal.at), ..refusal })?;
        for (_, hints) in &mut grammar.hints {
            hints.schema = hints.schema.take().map(|_| place.to_owned());
        }
        self.embed(grammar, at, part)
    }

    /// Free text, perhaps none.
    fn free_text(
        &mut self,
        excludes: &[&str],
        most: Most,
        (at, part): (&str, &str),
    ) -> Result<NonterminalId> {
        self.spend(excludes.iter().map(|text| text.len()).sum(), at)?;
        if most.chars == Some(0) || most.tokens == Some(0) {
            return self.any_of(at, part, vec![Vec::new()]);
        }
        let automaton: Arc<dyn PieceAutomaton> = match most.chars {
            Some(most) => Arc::new(ShortText::new(excludes, most, self.options.schema.schema_states)),
            None => Arc::new(FreeText::new(&[], excludes)),
        };
        let free = self.piece(automaton, FREE, "free text".to_owned());
        if let Some(terminal) = self.parts.terminals.last_mut() {
            terminal.max_tokens = most.tokens.and_then(NonZeroU32::new);
        }
        self.any_of(at, part, vec![Vec::new(), vec![free]])
    }

    /// A label of a new automaton.
    fn piece(&mut self, automaton: Arc<dyn PieceAutomaton>, label: u32, name: String) -> Symbol {
        self.parts.pieces.push(Pieces(automaton));
        self.label(self.parts.pieces.len() - 1, label, name)
    }

    fn label(&mut self, automaton: usize, label: u32, name: String) -> Symbol {
        self.terminal(name, TerminalKind::Automaton { automaton, label })
    }

    /// From `min` to `max` times.
    fn repeat(
        &mut self,
        content: NonterminalId,
        (min, max): (u32, Option<u32>),
        at: &str,
    ) -> Result<NonterminalId> {
        // `powers[i]` is the content 2^i times.
        let mut powers = vec![content];
        let most = max.unwrap_or(min).max(1);
        for exponent in 1..=most.ilog2() {
            let half = Symbol::Nonterminal(powers[powers.len() - 1]);
            powers.push(self.any_of(at, &format!("{}×", 1u64 << exponent), vec![vec![half, half]])?);
        }
        let exactly = (0..powers.len()).rev().filter(|bit| min >> bit & 1 == 1);
        let mut all: Vec<Symbol> = exactly.map(|bit| Symbol::Nonterminal(powers[bit])).collect();
        match max {
            None => {
                let any = self.add(at, "any number")?;
                self.rule(any, Vec::new())?;
                self.rule(any, vec![Symbol::Nonterminal(any), Symbol::Nonterminal(content)])?;
                all.push(Symbol::Nonterminal(any));
            }
            Some(max) if max > min => {
                let rest = self.up_to(max - min, &powers, at)?;
                all.push(Symbol::Nonterminal(rest));
            }
            Some(_) => {}
        }
        self.any_of(at, "times", vec![all])
    }

    /// At most so many times: fewer than the greatest power of two in it, or that and at most the rest.
    fn up_to(&mut self, most: u32, powers: &[NonterminalId], at: &str) -> Result<NonterminalId> {
        // `fewer[i]` is less than 2^i times.
        let mut fewer = vec![self.any_of(at, "none", vec![Vec::new()])?];
        for bit in 0..most.ilog2() as usize {
            let below = Symbol::Nonterminal(fewer[bit]);
            let with = vec![Symbol::Nonterminal(powers[bit]), below];
            fewer.push(self.any_of(
                at,
                &format!("fewer than {}", 1u64 << (bit + 1)),
                vec![vec![below], with],
            )?);
        }
        let mut rest = fewer[0];
        for bit in (0..=most.ilog2() as usize).filter(|bit| most >> bit & 1 == 1) {
            let with = vec![Symbol::Nonterminal(powers[bit]), Symbol::Nonterminal(rest)];
            rest = self.any_of(at, "at most", vec![vec![Symbol::Nonterminal(fewer[bit])], with])?;
        }
        Ok(rest)
    }

    /// `begin content end`, less the beginning of the begin.
    fn tag_behind(&mut self, tag: &Tag, content: NonterminalId, read: usize) -> Result<Vec<Vec<Symbol>>> {
        let begin = match &tag.begin {
            Mark::Text(text) => self.literal(&text[read..], &tag.at)?,
            begin => self.mark(begin, &tag.at)?,
        };
        let mut sides = Vec::with_capacity(tag.ends.len());
        for end in &tag.ends {
            let end = self.mark(end, &tag.at)?;
            sides.push(begin.into_iter().chain([Symbol::Nonterminal(content)]).chain(end).collect());
        }
        sides.sort();
        sides.dedup();
        Ok(sides)
    }

    /// The content of a tag.
    fn content(&mut self, tag: &Tag) -> Result<NonterminalId> {
        let tokens = tag.ends.iter().filter_map(|end| match end {
            Mark::Token(token) => Some(token.clone()),
            Mark::Text(_) => None,
        });
        let texts: Vec<&str> = tag.ends.iter().filter_map(Mark::text).collect();
        let is_text = texts.len() == tag.ends.len() && texts.iter().all(|text| !text.is_empty());
        let behind = is_text.then(|| texts.clone());
        let ends = Ends { texts, tokens: tokens.collect(), behind };
        self.format(&tag.content, &ends)
    }

    fn tag(&mut self, tag: &Tag) -> Result<NonterminalId> {
        let content = self.content(tag)?;
        let sides = self.tag_behind(tag, content, 0)?;
        self.any_of(&tag.at, "", sides)
    }

    fn triggered(&mut self, format: &Triggered, (ends, at): (&[&str], &str)) -> Result<NonterminalId> {
        let Triggered { triggers, tags, excludes, at_least_one, stop_after_first } = format;
        let mut contents = Vec::with_capacity(tags.len());
        for tag in tags {
            contents.push(self.content(tag)?);
        }
        let mut begun = Vec::new();
        if *at_least_one {
            for (tag, &content) in tags.iter().zip(&contents) {
                begun.extend(self.tag_behind(tag, content, 0)?);
            }
            if *stop_after_first {
                self.check_triggers(format)?;
                return self.any_of(at, "", begun);
            }
        }
        let excludes = with_ends(excludes, ends);
        let mut rests: Vec<Rest<'_>> =
            triggers.iter().map(|trigger| Rest { trigger, then: Vec::new() }).collect();
        let mut by_trigger: FxHashMap<&str, usize> = FxHashMap::default();
        for (place, trigger) in triggers.iter().enumerate() {
            by_trigger.entry(trigger).or_insert(place);
        }
        let free = FreeText::new(&triggers.iter().map(String::as_str).collect::<Vec<_>>(), &excludes);
        for (tag, &content) in tags.iter().zip(&contents) {
            let begin = string_begin(tag)?;
            let begins = (1..=begin.len()).filter(|&end| begin.is_char_boundary(end));
            let found: Vec<usize> = begins.filter_map(|end| by_trigger.get(&begin[..end]).copied()).collect();
            let mut is_live = false;
            for &trigger in found.iter().filter(|&&trigger| free.is_live(trigger)) {
                is_live = true;
                let read = triggers[trigger].len();
                let sides = self.tag_behind(tag, content, read)?;
                rests[trigger].then.extend(sides);
            }
            if !is_live {
                return Err(never_begins(tag, &found, triggers));
            }
        }
        let dispatch = self.with_free(rests, free, !stop_after_first, (at, !at_least_one))?;
        if !at_least_one {
            return Ok(dispatch);
        }
        let first = self.any_of(at, "first", begun)?;
        self.any_of(at, "", vec![vec![Symbol::Nonterminal(first), Symbol::Nonterminal(dispatch)]])
    }

    /// That every tag begins with a trigger, where triggers mean nothing else.
    fn check_triggers(&self, format: &Triggered) -> Result<()> {
        let triggers: FxHashSet<&str> = format.triggers.iter().map(String::as_str).collect();
        for tag in &format.tags {
            let begin = string_begin(tag)?;
            let mut begins = (1..=begin.len()).filter(|&end| begin.is_char_boundary(end));
            if !begins.any(|end| triggers.contains(&begin[..end])) {
                return Err(never_begins(tag, &[], &format.triggers));
            }
        }
        Ok(())
    }

    fn dispatch(
        &mut self,
        rests: Vec<Rest<'_>>,
        excludes: &[&str],
        repeats: bool,
        at: &str,
    ) -> Result<NonterminalId> {
        // Rules for one text are alternatives.
        let mut joined: Vec<Rest<'_>> = Vec::new();
        let mut by_trigger: FxHashMap<&str, usize> = FxHashMap::default();
        for rest in rests {
            let place = *by_trigger.entry(rest.trigger).or_insert(joined.len());
            match joined.get_mut(place) {
                Some(known) => known.then.extend(rest.then),
                None => joined.push(rest),
            }
        }
        let triggers: Vec<&str> = joined.iter().map(|rest| rest.trigger).collect();
        let free = FreeText::new(&triggers, excludes);
        if let Some(dead) = (0..triggers.len()).find(|&trigger| !free.is_live(trigger)) {
            let message = format!(
                "free text ends before {:?} does, or may not hold it: another mark stands in it",
                triggers[dead]
            );
            return Err(Refusal::new(Kind::Unsatisfiable, &format!("{at}/rules"), message));
        }
        self.with_free(joined, free, repeats, (at, true))
    }

    /// Free text with what follows its triggers.
    fn with_free(
        &mut self,
        rests: Vec<Rest<'_>>,
        automaton: FreeText,
        repeats: bool,
        (at, is_named): (&str, bool),
    ) -> Result<NonterminalId> {
        let lengths: usize = rests.iter().map(|rest| rest.trigger.len()).sum();
        self.spend(lengths, at)?;
        let free = self.piece(Arc::new(automaton), FREE, "free text".to_owned());
        let pieces = self.parts.pieces.len() - 1;
        let free = self.any_of(at, "free", vec![Vec::new(), vec![free]])?;
        let behind = self.add(at, "tags")?;
        let mut is_any = false;
        for (rest, label) in rests.into_iter().zip(FREE + 1..) {
            if rest.then.is_empty() {
                continue;
            }
            is_any = true;
            let trigger = self.label(pieces, label, format!("free text {:?}", rest.trigger));
            for then in rest.then {
                let loops = repeats.then_some(Symbol::Nonterminal(behind));
                self.rule(behind, loops.into_iter().chain([trigger]).chain(then).collect())?;
            }
        }
        let named = if is_named { "" } else { "others" };
        let (behind, free) = (Symbol::Nonterminal(behind), Symbol::Nonterminal(free));
        if !is_any {
            return self.any_of(at, named, vec![vec![free]]);
        }
        match repeats {
            true => {
                let Symbol::Nonterminal(tags) = behind else { unreachable!("it was made above") };
                self.rule(tags, Vec::new())?;
                self.any_of(at, named, vec![vec![behind, free]])
            }
            false => self.any_of(at, named, vec![vec![behind], vec![free]]),
        }
    }

    /// Any one token but some.
    fn except<'t>(&mut self, excludes: impl Iterator<Item = &'t SpecialToken>) -> Symbol {
        let mut excludes: Vec<SpecialToken> = excludes.cloned().collect();
        excludes.sort_unstable();
        excludes.dedup();
        self.token(&SpecialToken::Except(excludes.into()))
    }

    fn token_triggered(
        &mut self,
        triggers: &[SpecialToken],
        tags: &[Tag],
        excludes: &[SpecialToken],
        ((at_least_one, stop_after_first), at): ((bool, bool), &str),
    ) -> Result<NonterminalId> {
        let mut sides = Vec::new();
        for tag in tags {
            let place = format!("{}/begin", tag.at);
            match &tag.begin {
                Mark::Token(token) if excludes.contains(token) && !(at_least_one && stop_after_first) => {
                    return Err(never_dispatched(token, &place));
                }
                Mark::Token(token) if triggers.contains(token) => {}
                _ => {
                    let message = "this tag does not begin with one of the trigger tokens, called as there";
                    return Err(Refusal::new(Kind::Syntax, &place, message));
                }
            }
            let content = self.content(tag)?;
            sides.extend(self.tag_behind(tag, content, 0)?);
        }
        if at_least_one && stop_after_first {
            return self.any_of(at, "", sides);
        }
        let free = self.except(excludes.iter().chain(triggers));
        let first = at_least_one.then(|| self.any_of(at, "first", sides.clone())).transpose()?;
        let part = if at_least_one { "others" } else { "" };
        let others = self.with_free_tokens(free, sides, !stop_after_first, (at, part))?;
        let Some(first) = first else { return Ok(others) };
        self.any_of(at, "", vec![vec![Symbol::Nonterminal(first), Symbol::Nonterminal(others)]])
    }

    /// Free tokens with these sequences among them: any number, or one at the end.
    fn with_free_tokens(
        &mut self,
        free: Symbol,
        sides: Vec<Vec<Symbol>>,
        repeats: bool,
        (at, part): (&str, &str),
    ) -> Result<NonterminalId> {
        let some = self.add(at, "tokens")?;
        let before = Symbol::Nonterminal(some);
        self.rule(some, Vec::new())?;
        self.rule(some, vec![before, free])?;
        let mut ends = vec![vec![before]];
        for side in sides {
            let side: Vec<Symbol> = [before].into_iter().chain(side).collect();
            match repeats {
                true => self.rule(some, side)?,
                false => ends.push(side),
            }
        }
        self.any_of(at, part, ends)
    }

    fn separated(
        &mut self,
        tags: &[Tag],
        separator: &str,
        (at_least_one, stop_after_first): (bool, bool),
        at: &str,
    ) -> Result<NonterminalId> {
        let tags = tags.iter().map(|tag| self.tag(tag)).collect::<Result<Vec<_>>>()?;
        let one =
            self.any_of(at, "one", tags.into_iter().map(|tag| vec![Symbol::Nonterminal(tag)]).collect())?;
        let one = Symbol::Nonterminal(one);
        let mut all = vec![one];
        if !stop_after_first {
            let separator = self.literal(separator, at)?;
            let some = self.add(at, "some")?;
            self.rule(some, vec![one])?;
            self.rule(some, [Symbol::Nonterminal(some)].into_iter().chain(separator).chain([one]).collect())?;
            all = vec![Symbol::Nonterminal(some)];
        }
        let none = (!at_least_one).then(Vec::new);
        self.any_of(at, "", none.into_iter().chain([all]).collect())
    }
}

/// What may not stand in free text: what it excludes, and what ends the tag around it.
fn with_ends<'t>(excludes: &'t [String], ends: &[&'t str]) -> Vec<&'t str> {
    let ends = ends.iter().copied().filter(|end| !end.is_empty());
    excludes.iter().map(String::as_str).chain(ends).collect()
}

fn never_dispatched(token: &SpecialToken, at: &str) -> Refusal {
    let message = format!("nothing can begin with {token}: it is excluded");
    Refusal::new(Kind::Unsatisfiable, at, message)
}

fn string_begin(tag: &Tag) -> Result<&str> {
    tag.begin.text().ok_or_else(|| {
        let message = "a tag that a text triggers begins with a text, not with a token";
        Refusal::new(Kind::Syntax, &format!("{}/begin", tag.at), message)
    })
}

fn never_begins(tag: &Tag, found: &[usize], triggers: &[String]) -> Refusal {
    let at = format!("{}/begin", tag.at);
    match found.last() {
        None => Refusal::new(Kind::Syntax, &at, "no trigger stands at the begin of this tag"),
        Some(&trigger) => {
            let message = format!(
                "this tag can never begin: free text ends before its trigger {:?} does, or may not hold it, \
                 since another mark stands in it",
                triggers[trigger]
            );
            Refusal::new(Kind::Unsatisfiable, &at, message)
        }
    }
}

/// An error of a grammar within a tag.
fn of_grammar(error: GrammarError, at: &str, field: &str) -> Refusal {
    let kind = match error.kind() {
        ErrorKind::Unsupported => Kind::Unsupported,
        ErrorKind::Limit => Kind::Limit,
        ErrorKind::Unsatisfiable => Kind::Unsatisfiable,
        _ => Kind::Syntax,
    };
    let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
    Refusal::new(kind, &format!("{at}/{field}"), format!("{error}{help}"))
}
