//! Completions that repeat nothing: found, written, and searched for again where they cannot be.

use std::borrow::Cow;
use std::sync::Arc;

use anygram_grammar::memory::Watched;

use super::search::Search;
use super::walks::cuts_in_tokens;
use super::{Budgets, GROWTH, Question};
use crate::costs::{Leftover, NEVER};
use crate::frontier::Config;
use crate::language::StepError;
use crate::recalled::{Outlook, Recalled};
use crate::witness::{self, Cuts, Route, Written};

/// Bytes that are tried to make a piece in progress another one.
pub(super) const DETOURS: usize = 24;

/// Lexemes beyond which it is found out again where pieces end in tokens.
pub(super) const MOST_CUTS: usize = 500;

/// What is known of completions within a limit that repeat nothing.
#[derive(Clone)]
pub(super) enum Answer {
    /// There are none; what was told apart to know that.
    No(Arc<[Watched]>),
    /// The cost of one, and the values in it that were begun in it and are held against others.
    Yes(u32, Arc<[Watched]>),
}

impl Budgets {
    /// Whether at most `limit` tokens complete a reading without repeating anything; as long as the question
    /// lasts it is kept.
    pub(super) fn answer_within(
        &mut self,
        question: &mut Question<'_>,
        (config, recalled): (Config, &Recalled),
        limit: u32,
    ) -> Result<Answer, StepError> {
        let key = (config, recalled.print());
        let answer = match self.answers.get(&key) {
            Some(known) => known.clone(),
            None => {
                let answer = self.answer(question, (config, recalled), (limit, true))?;
                self.answers.insert(key, answer.clone());
                answer
            }
        };
        if let Answer::Yes(cost, _) = answer {
            self.enough = self.enough.max(cost);
        }
        Ok(answer)
    }

    /// The least cost of completing a reading at a token boundary without repeating anything, if it is at
    /// most `limit`; or, if `any` is enough, some cost.
    pub(super) fn answer(
        &mut self,
        question: &mut Question<'_>,
        (config, recalled): (Config, &Recalled),
        (limit, any): (u32, bool),
    ) -> Result<Answer, StepError> {
        if any
            && !matches!(recalled, Recalled::Nothing)
            && let Some(answer) = self.nearest(question, (config, recalled), limit)?
        {
            return Ok(answer);
        }
        let upper = if any { self.upper(question, config)? } else { NEVER };
        let found = match upper <= limit {
            true => Some(upper),
            false => self.least(question, &[config], (limit, any))?,
        };
        let Some(cost) = found else { return Ok(Answer::No(Arc::from([]))) };
        if let Recalled::Nothing = recalled {
            return Ok(Answer::Yes(cost, Arc::from([])));
        }
        if let Some(text) = self.upper.get(&config).and_then(|upper| upper.text.clone()) {
            let route = Route { from: (config, Outlook::NONE), nodes: Vec::new(), ending: Some(text) };
            if let Ok(written) = self.write(question, &route, recalled)? {
                return Ok(Answer::Yes(cost, written.new));
            }
        }
        let route = self.route(question, config)?;
        let written = self.write(question, &route, recalled)?;
        if let Ok(Written { texts, .. }) = &written
            && !question.language.counts_tokens()
        {
            // Else they are right in these tokens only.
            self.keep_texts(&route, texts);
        }
        let mut watched: Vec<Watched> = Vec::new();
        let mut written = (cost, written);
        loop {
            let repeated = match written {
                (cost, Ok(Written { new, .. })) => return Ok(Answer::Yes(cost, new)),
                (_, Err(repeated)) => repeated,
            };
            let n_before = watched.len();
            for value in repeated {
                if watched.iter().all(|known| known.print != value.print) {
                    watched.push(value);
                }
            }
            // Where nothing new is learned it would go on forever.
            question.work.spend(if watched.len() > n_before { GROWTH } else { usize::MAX / 2 })?;
            let start = ((config, Leftover::NONE), self.outlooks.of(recalled, &watched, false));
            let mut search = Search { limit, any, ..Search::default() };
            search.costs.insert(start, (0, None));
            search.push(start, 0);
            let Some(found) = self.run(question, &mut search)? else {
                return Ok(Answer::No(watched.into()));
            };
            let mut nodes = search.path(found.last);
            nodes.remove(0);
            let route = Route { from: (config, start.1), nodes, ending: found.ending };
            written = (found.total, self.write(question, &route, recalled)?);
        }
    }

    /// Writes a route, if that repeats nothing; else the values that stand in the way.
    pub(super) fn write(
        &mut self,
        question: &mut Question<'_>,
        route: &Route,
        recalled: &Recalled,
    ) -> Result<Result<Written, Vec<Watched>>, StepError> {
        let Self { outlooks, cuts, .. } = self;
        witness::write(question, outlooks, (route, recalled), &mut |question, lexeme| {
            let (_, lexeme) = question.number(lexeme)?;
            if let Some(known) = cuts.get(&lexeme) {
                return Ok(known.clone());
            }
            let found: Cuts = cuts_in_tokens(question, lexeme)?.into();
            if cuts.len() >= MOST_CUTS {
                cuts.clear();
            }
            cuts.insert(lexeme, found.clone());
            Ok(found)
        })
    }

    /// Keeps the text of a completion.
    pub(super) fn keep_texts(&mut self, route: &Route, texts: &[Option<Arc<[u8]>>]) {
        let boundaries = route.nodes.iter().filter(|((_, leftover), _)| *leftover == Leftover::NONE);
        let configs = [route.from.0].into_iter().chain(boundaries.map(|((config, _), _)| *config));
        for (config, text) in configs.zip(texts) {
            if let Some(upper) = self.upper.get_mut(&config).filter(|upper| upper.next.is_some()) {
                upper.text.clone_from(text);
            }
        }
    }

    /// What nearly always is enough of an ample budget: the ending that takes no search, at once or behind
    /// one more byte.
    pub(super) fn nearest(
        &mut self,
        question: &mut Question<'_>,
        (config, recalled): (Config, &Recalled),
        limit: u32,
    ) -> Result<Option<Answer>, StepError> {
        let language = question.language;
        let samples = language.lexing().lexicon.union.samples().iter().copied();
        let bytes = samples.filter(u8::is_ascii_graphic).take(DETOURS).map(Some);
        for byte in [None].into_iter().chain(bytes) {
            let (mut at, mut recalled) = (config, Cow::Borrowed(recalled));
            if let Some(byte) = byte {
                let step = question.stepper.transducer_mut().step(language.lexing(), config.lexeme, byte)?;
                let behind = match step.stay {
                    Some(lexeme) => question.stepper.behind_token(
                        language,
                        &[Config { lexeme, ..config }],
                        limit.saturating_sub(1),
                    )?,
                    None => continue,
                };
                let [next] = *behind else { continue };
                at = next;
                recalled = Cow::Owned(recalled.step(language.grammar(), byte));
            }
            let (cost, ending) = self.ending(question, at)?;
            // Where there is such a bound, every byte is a token.
            let cost = cost.saturating_add(u32::from(byte.is_some()));
            if cost > limit || ending.is_none() {
                continue;
            }
            let route = Route { from: (at, Outlook::NONE), nodes: Vec::new(), ending };
            if let Ok(written) = self.write(question, &route, &recalled)? {
                return Ok(Some(Answer::Yes(cost, written.new)));
            }
        }
        Ok(None)
    }

    /// A completion of which an upper bound is known.
    pub(super) fn route(&mut self, question: &mut Question<'_>, config: Config) -> Result<Route, StepError> {
        let (mut nodes, mut at) = (Vec::new(), config);
        let ending = loop {
            if question.stepper.is_sentence(&[at]) {
                break None;
            }
            let known = self.upper.get(&at);
            // With that it begins nowhere.
            if let Some(text) = known.and_then(|upper| upper.text.clone()).filter(|_| !nodes.is_empty()) {
                break Some(text);
            }
            match known.and_then(|upper| upper.next.clone()) {
                Some(next) => {
                    nodes.extend(next.iter().copied());
                    at = next.last().map_or(at, |node| node.0.0);
                }
                None => break self.ending(question, at)?.1,
            }
        };
        Ok(Route { from: (config, Outlook::NONE), nodes, ending })
    }

    /// Whether a text makes a sentence of a reading, as far as values are told apart, in any tokens.
    pub(super) fn may_end(
        &mut self,
        question: &mut Question<'_>,
        (config, outlook): (Config, Outlook),
        text: &[u8],
    ) -> Result<bool, StepError> {
        let (language, grammar) = (question.language, question.language.grammar());
        let mut readings = vec![(config, outlook)];
        for &byte in text {
            let mut next = Vec::new();
            for (Config { state, lexeme }, outlook) in readings {
                question.work.spend(1)?;
                let step = question.stepper.transducer_mut().step(language.lexing(), lexeme, byte)?;
                let outlook = self.outlooks.step(grammar, outlook, byte);
                let staying = step.stay.map(|lexeme| Config { state, lexeme });
                let staying = question.behind_byte(staying)?;
                next.extend(staying.map(|config| (config, outlook)));
                let Some(cut) = step.cut else { continue };
                let ending = self.outlooks.ending(grammar, outlook);
                for (opened, config) in question.stepper.ends(language, (state, cut), ending)? {
                    next.push((config, self.outlooks.behind(grammar, outlook, opened)));
                }
            }
            next.sort_unstable();
            next.dedup();
            readings = next;
        }
        Ok(readings.iter().any(|&(config, _)| question.stepper.is_sentence(&[config])))
    }
}
