//! The method `intersection`: whether the language of a grammar and that of all completions of a partial
//! output have a word in common.
//!
//! The method of IG-CD (Mündler et al., *Constrained Decoding of Diffusion LLMs with Context-Free Grammars*,
//! ICLR 2026), with the additions of EPIC (Jin and Han, 2026) as options. Each run of holes is a gap that
//! holds any number of tokens. docs/algorithms/intersection.md derives it and says what differs.
//!
//! What is lexed to what, and the parse of [`IntersectionBy::Earley`], is shared with the exact solver
//! (`anygram_any_order::lexings`).
//!
//! | module | what |
//! |---|---|
//! | `automaton` | that automaton, deterministic and minimal |
//! | `search` | the bottom-up search over generating symbols of the intersection grammar |
//! | `sample` | derivations |
//! | `proposals` | relaxed compatible subsets |

use std::sync::Arc;

use anygram_any_order::error::CanvasCause;
use anygram_any_order::lexings::Lexings;
use anygram_any_order::lexings::completions::{Completions, Item};
use anygram_any_order::lexings::parse::{self, Order, Parse};
use anygram_any_order::lexings::spell::{self, Spelled};
use anygram_any_order::lexings::tables::Tables;
use anygram_any_order::{Canvas, CanvasError, End, Filling, Slot, Undecided, Witness};
use anygram_bits::Random;
use anygram_bits::work::Work;
use anygram_grammar::ir::TerminalId;
use anygram_grammar::normal::NormalForm;
use anygram_left_to_right::ErrorKind;
use anygram_left_to_right::language::StepError;
use anygram_left_to_right::{Constraint, MatchError, Matcher};
use anygram_lexer::LexerError;
use anygram_vocab::TokenId;

mod automaton;
mod proposals;
mod sample;
mod search;

pub use proposals::Subset;

use automaton::Automaton;
use proposals::Neighbours;
use sample::Sampler;
use search::{Rules, Search};

use crate::methods::Verdict;

/// How it is decided whether the intersection is empty. All give the same answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum IntersectionBy {
    /// Bottom-up over the minimal deterministic automaton: IG-CD.
    #[default]
    MinimalDfa,
    /// Bottom-up over a deterministic automaton as the subset construction leaves it.
    Dfa,
    /// Bottom-up over the automaton of lexings as it is.
    Nfa,
    /// By Earley's algorithm over the lexings, of which only those are made that are asked for: EPIC.
    Earley,
}

/// Where a completion is drawn when the answer is yes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Complete {
    /// Nowhere.
    Never,
    /// Where it proves the yes: the canvas has no holes.
    #[default]
    WhereItProves,
    /// Everywhere. With holes it is one of the canvas with gaps for holes.
    Always,
}

/// Options of the method `intersection`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntersectionOptions {
    /// How it is decided.
    pub by: IntersectionBy,
    /// Where a completion is drawn.
    pub complete: Complete,
    /// Completions that are drawn before the answer is *unknown*; a drawn one counts if it replays from left
    /// to right. (The paper's limit of resamples.)
    pub resamples: usize,
    /// Steps of one question, in place of the limit `canvas_steps` (the paper's time limit).
    pub steps: Option<u64>,
    /// States of the deterministic automaton; beyond, the nondeterministic one is searched.
    pub dfa_states: usize,
    /// Whether what fragments and gaps are lexed to is kept from one question to the next (EPIC).
    pub memoize: bool,
    /// The same seed, the same completion.
    pub seed: u64,
}

impl Default for IntersectionOptions {
    fn default() -> Self {
        Self {
            by: IntersectionBy::default(),
            complete: Complete::default(),
            resamples: 100,
            steps: None,
            dfa_states: 20_000,
            memoize: true,
            seed: 0,
        }
    }
}

/// What a question took.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct IntersectionStats {
    /// States of the automaton of all lexings that were made.
    pub lexings: usize,
    /// States and edges of the automaton that was searched.
    pub automaton: (usize, usize),
    /// Symbols of the intersection grammar that were found to be generating; by Earley, items.
    pub generating: usize,
    /// Productions of the intersection grammar that were enumerated because both symbols of their right side
    /// were generating, or that are of a terminal. One may count twice.
    pub touched: u64,
    /// All productions of the intersection grammar.
    pub productions: f64,
    /// Completions that were drawn.
    pub draws: usize,
    /// Elementary operations.
    pub steps: u64,
}

impl IntersectionStats {
    /// The share of productions that the search never touched, at least; `None` if there is no intersection
    /// grammar, as by Earley.
    pub fn untouched(&self) -> Option<f64> {
        (self.productions > 0.0).then(|| (1.0 - self.touched as f64 / self.productions).max(0.0))
    }
}

/// Symbols and rules of a grammar and its normal forms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FormSizes {
    /// Of the reduced grammar.
    pub grammar: (usize, usize),
    /// Of C2F+ε.
    pub binary: (usize, usize),
    /// Of Chomsky's normal form.
    pub chomsky: (usize, usize),
}

/// A completion with gaps for holes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Infilling {
    /// Of each run of holes and gaps that the text reaches: its first slot, the first behind it, and what
    /// fills it.
    pub gaps: Vec<(usize, usize, Vec<TokenId>)>,
    /// The tokens of the text.
    pub text: Vec<TokenId>,
}

/// What the method says.
#[derive(Clone, PartialEq, Debug)]
pub struct Intersected {
    /// Whether the intersection has a word; with a completion of the canvas where one was drawn and the
    /// canvas has no holes. It is proven of the canvas if it is a no, or a yes with such a completion.
    pub verdict: Verdict,
    /// A completion that was replayed, if one was drawn.
    pub infilling: Option<Infilling>,
    /// What it took.
    pub stats: IntersectionStats,
}

/// Answers by `intersection`, for canvases of one constraint. Keeps what fragments are lexed to. Use one a
/// thread.
pub struct Intersection {
    constraint: Constraint,
    matcher: Matcher,
    tables: Tables,
    rules: Rules,
    search: Search,
    earley: Option<parse::Rules>,
    neighbours: Option<Neighbours>,
}

/// What is drawn from: a sequence of terminals, or the place of a symbol.
enum Found {
    Terminals(Vec<TerminalId>),
    Symbol(usize, Automaton),
}

impl Intersection {
    /// Normal forms and empty tables for a constraint. Cost: linear in the grammar, and the closure of its
    /// unit rules.
    pub fn new(constraint: &Constraint) -> Result<Self, CanvasError> {
        const WHAT: &str = "the method `intersection`";
        let language = constraint.language();
        language.needs_all_states(WHAT)?;
        if language.grammar().remembers() {
            return Err(StepError::from(LexerError::Growing { what: WHAT }).into());
        }
        let rules = Rules::new(&constraint.language().lexing().cfg);
        Ok(Self {
            constraint: constraint.clone(),
            matcher: constraint.matcher()?,
            tables: Tables::new(constraint, Arc::new(language.lexing().clone()), None),
            rules,
            search: Search::default(),
            earley: None,
            neighbours: None,
        })
    }

    /// The constraint.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// The sizes of the normal forms. Cost: that of making Chomsky's.
    pub fn form_sizes(&self) -> Result<FormSizes, StepError> {
        let cfg = &self.constraint.language().lexing().cfg;
        let size = |form: &NormalForm| (form.used_symbols().count(), form.n_rules() + form.nullable.count());
        let chomsky = NormalForm::chomsky(cfg, &mut self.work(&IntersectionOptions::default()))?;
        Ok(FormSizes {
            grammar: (cfg.n_nonterminals, cfg.rules.len()),
            binary: size(&self.rules.form),
            chomsky: size(&chomsky),
        })
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        self.tables.memory_usage() + self.rules.memory_usage() + self.matcher.memory_usage()
    }

    /// Whether a canvas is completable if each run of holes holds any number of tokens. A no is proven. A yes
    /// is proven if the canvas has no holes and a completion was drawn; what remains after a prefix is not
    /// counted either.
    ///
    /// Cost at worst rules × states³ of the automaton of lexings; what is found out is found once.
    pub fn completable(
        &mut self,
        canvas: &Canvas,
        options: &IntersectionOptions,
    ) -> Result<Intersected, CanvasError> {
        self.check(canvas)?;
        if !options.memoize || self.tables.is_full() {
            self.tables.clear(&self.constraint);
        }
        let completions = Completions::with_gaps(&self.constraint, canvas);
        let mut work = self.work(options);
        let verdict = Verdict::unknown(Undecided::Between);
        let mut answer = Intersected { verdict, infilling: None, stats: IntersectionStats::default() };
        let decided = self.decide(&completions, options, &mut answer.stats, &mut work);
        match decided {
            Ok(None) => answer.verdict = Verdict::no(true),
            Ok(Some(found)) => {
                answer.verdict = Verdict::yes(None, false);
                let complete = match options.complete {
                    Complete::Never => false,
                    Complete::WhereItProves => is_exact(canvas, &completions),
                    Complete::Always => true,
                };
                if complete
                    && let Err(why) =
                        self.complete(canvas, &completions, options, found, &mut answer, &mut work)
                {
                    answer.verdict = Verdict::unknown(why);
                }
            }
            Err(error) => answer.verdict = Verdict::unknown(error.into()),
        }
        answer.stats.steps = work.used();
        Ok(answer)
    }

    fn work(&self, options: &IntersectionOptions) -> Work {
        match options.steps {
            Some(steps) => Work::new(steps, "steps"),
            None => Work::new(self.constraint.language().limits().canvas_steps, "canvas_steps"),
        }
    }

    fn check(&self, canvas: &Canvas) -> Result<(), CanvasError> {
        let size = self.constraint.vocabulary().len();
        for (slot, content) in canvas.slots().iter().enumerate() {
            if let Slot::Fixed(token) = content
                && token.index() >= size
            {
                return Err(CanvasCause::UnknownToken { slot, id: token.0, size }.into());
            }
        }
        Ok(())
    }

    /// A word of the intersection, or where one is found; `None` if there is none.
    fn decide(
        &mut self,
        completions: &Completions,
        options: &IntersectionOptions,
        stats: &mut IntersectionStats,
        work: &mut Work,
    ) -> Result<Option<Found>, StepError> {
        let mut lexings = Lexings::new(&mut self.tables, &self.constraint, completions);
        if options.by == IntersectionBy::Earley {
            let cfg = &self.constraint.language().lexing().cfg;
            let rules = self.earley.get_or_insert_with(|| parse::Rules::new(cfg));
            let mut parse = Parse::new(rules, &mut lexings, Order::Depth);
            let found = parse.run(work);
            stats.generating = parse.n_items();
            stats.lexings = lexings.n_nodes();
            let terminals = |path: parse::Path| path.into_iter().map(|(terminal, _)| terminal).collect();
            return Ok(found?.map(|path| Found::Terminals(terminals(path))));
        }
        let dfa = match options.by {
            IntersectionBy::Nfa | IntersectionBy::Earley => None,
            IntersectionBy::Dfa | IntersectionBy::MinimalDfa => {
                Automaton::deterministic(&mut lexings, options.dfa_states, work)?
            }
        };
        let automaton = match dfa {
            Some(dfa) if options.by == IntersectionBy::MinimalDfa => dfa.minimized(work)?,
            Some(dfa) => dfa,
            None => Automaton::nondeterministic(&mut lexings, work)?,
        };
        stats.lexings = lexings.n_nodes();
        if automaton.is_empty() {
            return Ok(None);
        }
        if automaton.accepts[0] && self.rules.start_is_nullable {
            return Ok(Some(Found::Terminals(Vec::new())));
        }
        stats.automaton = (automaton.n_states(), automaton.n_edges());
        stats.productions = self.rules.n_productions(&automaton);
        let found = self.search.run(&self.rules, &automaton, work);
        stats.generating = self.search.triples.len();
        stats.touched = self.search.n_touched();
        Ok(found?.map(|place| Found::Symbol(place, automaton)))
    }

    /// Draws completions until one replays.
    fn complete(
        &mut self,
        canvas: &Canvas,
        completions: &Completions,
        options: &IntersectionOptions,
        found: Found,
        answer: &mut Intersected,
        work: &mut Work,
    ) -> Result<(), Undecided> {
        let constraint = self.constraint.clone();
        let separator = self.tables.separator();
        let contextual = constraint.language().mode() == anygram_grammar::ir::LexerMode::Contextual;
        let mut random = Random::new(options.seed);
        // Not where an EOS stands in the canvas: then the text is a sentence.
        let n_slots = canvas.slots().len();
        let as_prefix = matches!(canvas.end(), End::Prefix { .. })
            && completions.slots.last() == Some(&(n_slots, n_slots));
        let is_fixed = is_exact(canvas, completions) && !completions.items.contains(&Item::Gap);
        let sampler = match &found {
            Found::Symbol(_, automaton) => Some(Sampler::new(&self.rules, automaton, &self.search)),
            Found::Terminals(_) => None,
        };
        let mut lexings = Lexings::new(&mut self.tables, &constraint, completions);
        let mut drawn: Vec<TerminalId> = Vec::new();
        for draw in 0..options.resamples {
            answer.stats.draws += 1;
            // A derivation is spelled with and without separators.
            let apart = separator.is_some() && (draw % 2 == 0) == contextual;
            if draw % 2 == 0 || separator.is_none() {
                drawn = match (&found, &sampler) {
                    (Found::Symbol(place, _), Some(sampler)) => {
                        // The seed 0 asks for the recorded derivation first.
                        let first = draw == 0 && options.seed == 0;
                        sampler.draw(*place, (!first).then_some(&mut random), work)?
                    }
                    (Found::Terminals(terminals), _) => terminals.clone(),
                    (Found::Symbol(..), None) => Vec::new(),
                };
            }
            let turn = if draw < 2 && options.seed == 0 { 0 } else { random.below(256) };
            let Some(path) = lexings.path(&drawn, work)? else { continue };
            let Some(Spelled { parts, .. }) = lexings.spell(&path, apart, turn, work)? else { continue };
            let Some(filled) = filled(&constraint, canvas, completions, &parts) else { continue };
            match replays(&mut self.matcher, &filled.0.text, as_prefix) {
                Ok(true) => {
                    if is_exact(canvas, completions) {
                        answer.verdict = Verdict::yes(Some(filled.1), true);
                    }
                    answer.infilling = Some(filled.0);
                    return Ok(());
                }
                // There is nothing to draw: the text is as it is.
                Ok(false) if is_fixed => {
                    answer.verdict = Verdict::no(true);
                    return Ok(());
                }
                Ok(false) => {}
                // Whether the prefix is viable; another draw may be easier to tell.
                Err(error) if !is_fixed && error.kind() == ErrorKind::Undecided => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Undecided::Between)
    }
}

/// Whether each completion is one of the canvas: there are no holes, and what remains is not counted.
fn is_exact(canvas: &Canvas, completions: &Completions) -> bool {
    let n_slots = canvas.slots().len();
    let is_counted = matches!(canvas.end(), End::Prefix { remaining: Some(_) })
        && completions.slots.last() == Some(&(n_slots, n_slots));
    canvas.holes().next().is_none() && !is_counted
}

/// A canvas with what was drawn for its gaps.
fn filled(
    constraint: &Constraint,
    canvas: &Canvas,
    completions: &Completions,
    parts: &[Vec<spell::Part>],
) -> Option<(Infilling, Witness)> {
    let mut slots: Vec<Filling> = canvas
        .slots()
        .iter()
        .map(|slot| match slot {
            Slot::Fixed(token) => Filling::Token(*token),
            Slot::Hole | Slot::Gap => Filling::Tokens(Vec::new()),
        })
        .collect();
    let mut gaps = Vec::new();
    for ((&(from, to), parts), item) in completions.slots.iter().zip(parts).zip(0..) {
        if completions.is_open(item) && from < canvas.slots().len() {
            let tokens = spell::tokens(constraint, parts)?;
            slots[from] = Filling::Tokens(tokens.clone());
            gaps.push((from, to, tokens));
        }
    }
    let witness = Witness { slots, closing: Vec::new() };
    let text = witness.text(constraint);
    Some((Infilling { gaps, text }, witness))
}

/// Whether a text ends as is asked, read from left to right.
fn replays(matcher: &mut Matcher, text: &[TokenId], as_prefix: bool) -> Result<bool, StepError> {
    matcher.reset();
    for &token in text {
        match matcher.advance(token) {
            Ok(()) => {}
            Err(MatchError::Limit(error)) => return Err(error),
            Err(_) => return Ok(false),
        }
    }
    Ok(as_prefix || matcher.is_sentence())
}
