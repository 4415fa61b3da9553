//! Completions written so that they repeat nothing.
//!
//! A [`Route`] is a completion of which only is known how its tokens go from place to place. Many tokens go
//! the same way, and which of them are taken is decided here, with all that is recalled of the text: depth
//! first, with few tokens for each step. Where none of these will do, the values are told that would be
//! repeated, so that another route can be looked for.

use std::sync::Arc;

use anygram_grammar::memory::Watched;
use anygram_lexer::transducer::{CutId, LexemeId};
use anygram_recognizer::StateId;
use anygram_vocab::{NodeId, TokenTrie};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::budget::Question;
use crate::costs::Leftover;
use crate::error::StepError;
use crate::frontier::Config;
use crate::recalled::{Ending, Outlook, Outlooks, Recalled};

/// A place of a route: a reading, what is left of the tokens in which it stands, and what is watched for.
pub(crate) type Node = ((Config, Leftover), Outlook);

/// A completion from place to place.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// At a token boundary.
    pub from: (Config, Outlook),
    /// The last is at a token boundary.
    pub nodes: Vec<Node>,
    /// What comes behind them.
    pub ending: Option<Arc<[u8]>>,
}

/// Tokens that are taken for one step of a route, at first and if those will not do; and steps beyond those
/// of the route until it is given up.
const TOKENS: [usize; 2] = [2, 64];
const TRIES: usize = 100;

/// Tokens of one step that are looked at.
const MOST_LOOKS: usize = 2_000;

/// A completion that was written.
pub(crate) struct Written {
    /// Its new values that are held against others.
    pub new: Arc<[Watched]>,
    /// Its text behind each token boundary of the route, the first included; where the grammar names a token
    /// there is none.
    pub texts: Vec<Option<Arc<[u8]>>>,
}

/// What is known of values on the way.
#[derive(Default)]
pub(crate) struct Values {
    /// Those that would be repeated.
    pub repeated: Vec<Watched>,
    /// Those that begin behind the mark, and are held against others.
    pub new: Vec<Watched>,
}

impl Values {
    fn add(all: &mut Vec<Watched>, value: Watched) {
        if all.iter().all(|known| known.print != value.print) {
            all.push(value);
        }
    }

    fn add_new(&mut self, others: &[Watched]) {
        others.iter().for_each(|value| Self::add(&mut self.new, value.clone()));
    }
}

/// A way to take a step.
struct Taken {
    recalled: Recalled,
    new: Vec<Watched>,
    /// The bytes of the token; `None` if it has none.
    bytes: Option<Vec<u8>>,
}

/// Where pieces end in a vocabulary's tokens that a lexeme goes on with.
pub(crate) type Cuts = Arc<[(NodeId, CutId)]>;

/// Writes a route from where `recalled` is what is recalled; if that cannot be done, these values stand in
/// the way. `cuts` are those of a lexeme.
pub(crate) fn write(
    question: &mut Question<'_>,
    outlooks: &mut Outlooks,
    (route, recalled): (&Route, &Recalled),
    cuts: &mut dyn FnMut(&mut Question<'_>, LexemeId) -> Result<Cuts, StepError>,
) -> Result<Result<Written, Vec<Watched>>, StepError> {
    let mut values = Values::default();
    for n_tokens in TOKENS {
        let mut writer = Writer { question, outlooks, cuts, n_tokens, values: &mut values };
        if let Some(written) = writer.write(route, recalled)? {
            return Ok(Ok(written));
        }
        if route.nodes.is_empty() {
            break;
        }
    }
    Ok(Err(values.repeated))
}

/// Writes a route.
struct Writer<'a, 'q> {
    question: &'a mut Question<'q>,
    outlooks: &'a mut Outlooks,
    cuts: &'a mut dyn FnMut(&mut Question<'_>, LexemeId) -> Result<Cuts, StepError>,
    n_tokens: usize,
    values: &'a mut Values,
}

impl Writer<'_, '_> {
    fn write(&mut self, route: &Route, recalled: &Recalled) -> Result<Option<Written>, StepError> {
        let steps: Vec<&[Node]> =
            route.nodes.split_inclusive(|((_, leftover), _)| *leftover == Leftover::NONE).collect();
        let ending = route.ending.as_deref().unwrap_or_default();
        let mut stack =
            vec![vec![Taken { recalled: recalled.marked(), new: Vec::new(), bytes: Some(Vec::new()) }]];
        let mut taken: Vec<Taken> = Vec::new();
        let mut n_tries = 0;
        while !stack.is_empty() {
            let depth = stack.len() - 1;
            taken.truncate(depth);
            let (Some(way), true) = (stack[depth].pop(), n_tries <= steps.len() + TRIES) else {
                stack.pop();
                continue;
            };
            n_tries += 1;
            let from = match depth.checked_sub(1).and_then(|before| steps[before].last()) {
                Some(&((config, _), outlook)) => (config, outlook),
                None => route.from,
            };
            if let Some(&nodes) = steps.get(depth) {
                let mut step = Step {
                    question: self.question,
                    outlooks: self.outlooks,
                    from,
                    nodes,
                    values: self.values,
                };
                stack.push(step.ways(&way.recalled, self.n_tokens, self.cuts)?);
                taken.push(way);
                continue;
            }
            let mut end = Values::default();
            if ends(self.question, (from.0, way.recalled.clone()), ending, &mut end)? {
                taken.push(way);
                return Ok(Some(written(taken, ending, end)));
            }
            end.repeated.into_iter().for_each(|value| Values::add(&mut self.values.repeated, value));
        }
        Ok(None)
    }
}

fn written(taken: Vec<Taken>, ending: &[u8], mut values: Values) -> Written {
    let mut text = Some(ending.to_vec());
    let mut texts = Vec::with_capacity(taken.len());
    // The first is where it begins.
    for Taken { new, bytes, .. } in taken.into_iter().rev() {
        texts.push(text.as_deref().map(Arc::from));
        text = bytes.zip(text).map(|(bytes, text)| [bytes, text].concat());
        values.add_new(&new);
    }
    texts.reverse();
    Written { new: values.new.into(), texts }
}

/// Whether a text makes a sentence of a reading, in any tokens.
fn ends(
    question: &mut Question<'_>,
    from: (Config, Recalled),
    text: &[u8],
    values: &mut Values,
) -> Result<bool, StepError> {
    let mut readings = vec![from];
    for &byte in text {
        let mut next = Vec::new();
        for (Config { state, lexeme }, recalled) in readings {
            question.work.spend(1)?;
            let step = question.stepper.transducer_mut().step(question.language.lexing(), lexeme, byte)?;
            let recalled = recalled.step(question.language.grammar(), byte);
            let staying = question.behind_byte(step.stay.map(|lexeme| Config { state, lexeme }))?;
            next.extend(staying.map(|config| (config, recalled.clone())));
            if let Some(cut) = step.cut {
                note(question, cut, &recalled, values);
                for (opened, config) in
                    question.stepper.ends(question.language, (state, cut), recalled.ending())?
                {
                    next.push((config, recalled.behind(question.language.grammar(), opened)));
                }
            }
        }
        let mut seen = FxHashSet::default();
        next.retain(|(config, recalled)| seen.insert((*config, recalled.print())));
        readings = next;
    }
    Ok(readings.iter().any(|(config, _)| question.stepper.is_sentence(&[*config])))
}

/// Notes the value of a piece that ends.
fn note(question: &Question<'_>, cut: CutId, recalled: &Recalled, values: &mut Values) {
    let ended = recalled.ended().filter(|_| question.stepper.is_distinct(question.language, cut));
    let Some(ended) = ended else { return };
    if recalled.ending() == Ending::Repeats {
        Values::add(&mut values.repeated, ended.value);
    } else if ended.is_new {
        Values::add(&mut values.new, ended.value);
    }
}

/// One token of a route.
struct Step<'a, 'q> {
    question: &'a mut Question<'q>,
    outlooks: &'a mut Outlooks,
    from: (Config, Outlook),
    nodes: &'a [Node],
    values: &'a mut Values,
}

/// Part of a token: how many nodes it has passed, and the piece in progress.
#[derive(Clone, Copy)]
struct Part {
    passed: usize,
    lexeme: LexemeId,
    outlook: Outlook,
}

/// Ways to take a step, as far as they were looked for.
struct Ways {
    all: Vec<Taken>,
    most: usize,
    seen: FxHashSet<(u32, u64)>,
    n_looks: usize,
}

impl Ways {
    fn is_enough(&self) -> bool {
        self.all.len() >= self.most || self.n_looks >= MOST_LOOKS
    }
}

impl Step<'_, '_> {
    /// Ways to take it that differ in what is recalled then, the best last. Cost: those nodes of the trie
    /// that the piece in progress can go to, until there are enough, or where it ends those where it does.
    fn ways(
        &mut self,
        recalled: &Recalled,
        most: usize,
        cuts: &mut dyn FnMut(&mut Question<'_>, LexemeId) -> Result<Cuts, StepError>,
    ) -> Result<Vec<Taken>, StepError> {
        let mut ways = Ways { all: Vec::new(), most, seen: FxHashSet::default(), n_looks: 0 };
        if self.is_special()? {
            ways.all.push(Taken { recalled: recalled.clone(), new: Vec::new(), bytes: None });
        }
        let (Config { state, lexeme }, outlook) = self.from;
        let trie = self.question.trie;
        let ((first, _), _) = self.nodes[0];
        if self.nodes.len() == 1 && first.state == state {
            let walked = trie.descend(trie.below_root(), (lexeme, outlook), |&(lexeme, outlook), at| {
                if ways.is_enough() {
                    return Ok(None);
                }
                let part = Part { passed: 0, lexeme, outlook };
                let mut next = Vec::new();
                let arrives = self.pass(part, trie.byte(at), &mut next)?;
                if arrives && !trie.tokens_at(at).is_empty() {
                    self.look(&mut ways, at, recalled)?;
                }
                Ok::<_, StepError>(next.first().map(|part| (part.lexeme, part.outlook)))
            });
            walked?;
        }
        let mut leads: FxHashMap<CutId, bool> = FxHashMap::default();
        for &(node, cut) in cuts(self.question, lexeme)?.iter() {
            if ways.is_enough() {
                break;
            }
            let leads_there = match leads.get(&cut) {
                Some(&known) => known,
                None => {
                    let found = self.leads((state, cut), first)?;
                    leads.insert(cut, found);
                    found
                }
            };
            if !leads_there {
                continue;
            }
            if self.nodes.len() == 1 {
                if !trie.tokens_at(node).is_empty() {
                    self.look(&mut ways, node, recalled)?;
                }
                continue;
            }
            let root = vec![Part { passed: 1, lexeme: first.lexeme, outlook: Outlook::NONE }];
            let below = NodeId(node.0 + 1)..trie.end(node);
            trie.descend(below, root, |parts: &Vec<Part>, at| {
                if ways.is_enough() {
                    return Ok(None);
                }
                let (mut next, mut arrives) = (Vec::new(), false);
                for &part in parts {
                    arrives |= self.pass_blindly(part, trie.byte(at), &mut next)?;
                }
                if arrives && !trie.tokens_at(at).is_empty() {
                    self.look(&mut ways, at, recalled)?;
                }
                Ok::<_, StepError>((!next.is_empty()).then_some(next))
            })?;
        }
        ways.all.reverse();
        Ok(ways.all)
    }

    /// Looks at the token of a node.
    fn look(&mut self, ways: &mut Ways, node: NodeId, recalled: &Recalled) -> Result<(), StepError> {
        ways.n_looks += 1;
        let taken = self.take(&path(self.question.trie, node), recalled)?;
        ways.all.extend(taken.filter(|taken| ways.seen.insert(taken.recalled.print())));
        Ok(())
    }

    /// Whether the end of a piece can lead to a reading, whatever the memory says.
    fn leads(&mut self, end: (StateId, CutId), to: Config) -> Result<bool, StepError> {
        for ending in [Ending::Plain, Ending::Outside, Ending::Repeats] {
            let ends = self.question.stepper.ends(self.question.language, end, ending)?;
            if ends.iter().any(|&(_, config)| config == to) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether it is a token that the grammar names.
    fn is_special(&mut self) -> Result<bool, StepError> {
        let (config, outlook) = self.from;
        let &[((to, _), behind)] = self.nodes else { return Ok(false) };
        for &terminal in self.question.language.lexing().specials() {
            let next = self.question.stepper.step_special(self.question.language, &[config], terminal)?;
            if behind == outlook && next.contains(&to) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a reading with a piece in progress is a place of the route, when the token ends.
    fn is_behind(&mut self, reading: Config, place: Config) -> Result<bool, StepError> {
        let language = self.question.language;
        if !language.counts_tokens() || reading.state != place.state {
            return Ok(reading == place);
        }
        // The place leaves out numbers that do not matter within the budget.
        let (lexing, stepper) = (language.lexing(), &mut self.question.stepper);
        let behind = stepper.behind_token(language, &[reading], 0)?;
        let place = stepper.transducer_mut().without_number(lexing, place.lexeme)?;
        Ok(behind.iter().any(|config| config.lexeme == place))
    }

    fn state(&self, passed: usize) -> StateId {
        passed.checked_sub(1).map_or(self.from.0.state, |before| self.nodes[before].0.0.state)
    }

    /// As [`Step::pass`], where nothing is told apart.
    fn pass_blindly(&mut self, part: Part, byte: u8, next: &mut Vec<Part>) -> Result<bool, StepError> {
        let Part { passed, lexeme, outlook } = part;
        let (state, language) = (self.state(passed), self.question.language);
        let step = self.question.stepper.transducer_mut().step(language.lexing(), lexeme, byte)?;
        let ((to, _), _) = self.nodes[passed];
        let is_last = passed + 1 == self.nodes.len();
        let mut arrives = false;
        if let Some(lexeme) = step.stay {
            next.push(Part { passed, lexeme, outlook });
            arrives |= is_last && self.is_behind(Config { state, lexeme }, to)?;
        }
        if let Some(cut) = step.cut
            && self.leads((state, cut), to)?
        {
            arrives |= is_last;
            next.extend((!is_last).then_some(Part { passed: passed + 1, lexeme: to.lexeme, outlook }));
        }
        Ok(arrives)
    }

    /// Goes on with a byte, whatever the memory says: whether that leads to the last node.
    fn pass(&mut self, part: Part, byte: u8, next: &mut Vec<Part>) -> Result<bool, StepError> {
        let Part { passed, lexeme, outlook } = part;
        let (state, language) = (self.state(passed), self.question.language);
        self.question.work.spend(1)?;
        let step = self.question.stepper.transducer_mut().step(language.lexing(), lexeme, byte)?;
        if step.stay.is_none() && step.cut.is_none() {
            return Ok(false);
        }
        let outlook = self.outlooks.step(language.grammar(), outlook, byte);
        let ((to, _), behind) = self.nodes[passed];
        let is_last = passed + 1 == self.nodes.len();
        let mut arrives = false;
        if let Some(lexeme) = step.stay {
            next.push(Part { passed, lexeme, outlook });
            arrives |= is_last && behind == outlook && self.is_behind(Config { state, lexeme }, to)?;
        }
        if let Some(cut) = step.cut {
            let ending = self.outlooks.ending(language.grammar(), outlook);
            for (opened, config) in self.question.stepper.ends(language, (state, cut), ending)? {
                let own = self.outlooks.behind(language.grammar(), outlook, opened);
                if (config, own) != (to, behind) {
                    continue;
                }
                arrives |= is_last;
                next.extend((!is_last).then_some(Part {
                    passed: passed + 1,
                    lexeme: to.lexeme,
                    outlook: own,
                }));
            }
        }
        Ok(arrives)
    }

    /// What is recalled behind a token, if it takes the step and repeats nothing.
    fn take(&mut self, bytes: &[u8], recalled: &Recalled) -> Result<Option<Taken>, StepError> {
        let start = Part { passed: 0, lexeme: self.from.0.lexeme, outlook: self.from.1 };
        let mut parts = vec![(start, recalled.clone(), Vec::new())];
        let grammar = self.question.language.grammar();
        for (at, &byte) in bytes.iter().enumerate() {
            let is_end = at + 1 == bytes.len();
            let mut next = Vec::new();
            for (part, recalled, new) in parts {
                let mut led = Vec::new();
                let arrives = self.pass(part, byte, &mut led)?;
                if led.is_empty() && !arrives {
                    continue;
                }
                let recalled = recalled.step(grammar, byte);
                let stay = led.iter().find(|next| next.passed == part.passed).copied();
                next.extend(stay.map(|part| (part, recalled.clone(), new.clone())));
                let ((to, _), behind) = self.nodes[part.passed];
                let is_last = part.passed + 1 == self.nodes.len();
                let state = self.state(part.passed);
                let stays = match &stay {
                    Some(next) if is_end && is_last && next.outlook == behind => {
                        self.is_behind(Config { state, lexeme: next.lexeme }, to)?
                    }
                    _ => false,
                };
                if stays {
                    return Ok(Some(Taken { recalled, new, bytes: Some(bytes.to_vec()) }));
                }
                let step = self.question.stepper.transducer_mut().step(
                    self.question.language.lexing(),
                    part.lexeme,
                    byte,
                )?;
                let Some(cut) = step.cut.filter(|_| !is_last || is_end) else { continue };
                let mut values = Values { repeated: Vec::new(), new };
                note(self.question, cut, &recalled, &mut values);
                let ends =
                    self.question.stepper.ends(self.question.language, (state, cut), recalled.ending())?;
                let end = ends.into_iter().find(|&(_, config)| config == to);
                let Some((opened, _)) = end else {
                    let repeated = &mut self.values.repeated;
                    values.repeated.into_iter().for_each(|value| Values::add(repeated, value));
                    continue;
                };
                let recalled = recalled.behind(grammar, opened);
                if is_last {
                    return Ok(Some(Taken { recalled, new: values.new, bytes: Some(bytes.to_vec()) }));
                }
                let passed = led.into_iter().find(|next| next.passed > part.passed);
                next.extend(passed.map(|part| (part, recalled, values.new)));
            }
            parts = next;
        }
        Ok(None)
    }
}

/// The bytes that lead to a node.
fn path(trie: &TokenTrie, node: NodeId) -> Vec<u8> {
    let (mut at, mut bytes) = (TokenTrie::ROOT, Vec::new());
    while at != node {
        let on_the_way = |child: &NodeId| trie.subtree(*child).contains(&node);
        let Some(child) = trie.children(at).find(on_the_way) else { break };
        bytes.push(trie.byte(child));
        at = child;
    }
    bytes
}
