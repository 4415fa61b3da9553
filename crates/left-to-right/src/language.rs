//! A grammar compiled for one lexer mode and one engine.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use anygram_bits::work::{Cancel, Stopped, Work};
use anygram_grammar::ir::{
    Grammar, LexerMode, SpecialToken, Symbol, Terminal, TerminalId, TerminalKind, Ties,
};
use anygram_grammar::{Warning, analysis};
use anygram_lexer::boundary::OwnDebts;
use anygram_lexer::transducer::Lexing;
use anygram_lexer::without::without;
use anygram_lexer::{LexerError, LexerLimits};
pub use anygram_recognizer::Engine;
use anygram_recognizer::probe::Probe;
use anygram_recognizer::{Choice, Recognizer, RecognizerError, RecognizerLimits, Relation};

use crate::error::CompileCause;
pub use crate::error::{CompileError, StepError};
use crate::frontier::{Frontier, Stepper};
use crate::recall::Recall;

/// Bounds on the work and the memory of one grammar and one output.
///
/// The defaults are generous. Reaching a limit is an error that names it, and the state stays usable. Limits
/// count steps, states and items, never time, so they are reached at the same place on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Symbols, rules and parts of patterns that the text of a grammar may expand to.
    pub grammar_size: usize,
    /// Steps of compiling a grammar, see [`Work`].
    pub compile_steps: u64,
    /// Steps of one mask, of reading one token, or of reading one byte of a text.
    pub mask_steps: u64,
    /// Automata and tables of lexing.
    pub lexer: LexerLimits,
    /// The parser.
    pub recognizer: RecognizerLimits,
    /// Steps of one search for a completion. Only `contextual` needs it, and only if nothing cheaper decides.
    pub search_steps: usize,
    /// Steps of finding minimum costs in tokens, for one mask with a budget or one other question about
    /// costs.
    pub cost_steps: u64,
    /// The most forced bytes that are returned.
    pub forced_bytes: usize,
    /// Steps of one question about a canvas; beyond them the answer is *unknown*.
    pub canvas_steps: u64,
    /// Bytes of cached walks over the vocabulary. When they are full, they are dropped and computed again on
    /// demand.
    pub cache_bytes: usize,
    /// Bytes of finished masks that are kept; when more, those are dropped that were not used of late.
    pub mask_bytes: usize,
    /// Parse items in shared tables, beside those that outputs stand on; when there are more, the tables
    /// begin new parser states, to which outputs move over one by one.
    pub shared_items: usize,
    /// Values of schemas within a grammar that a text may be within at once, in one reading or another, where
    /// what may not be repeated in them has to be remembered.
    pub open_values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            grammar_size: 2_000_000,
            compile_steps: 2_000_000_000,
            mask_steps: 200_000_000,
            lexer: LexerLimits::default(),
            recognizer: RecognizerLimits::default(),
            search_steps: 2_000,
            cost_steps: 500_000_000,
            forced_bytes: 4_096,
            canvas_steps: 20_000_000,
            cache_bytes: 128 << 20,
            mask_bytes: 64 << 20,
            shared_items: 3_000_000,
            open_values: 1_000,
        }
    }
}

impl Limits {
    /// The names by which errors speak of the limits and [`Limits::set`] takes them.
    pub const NAMES: [&str; 16] = [
        "grammar_size",
        "compile_steps",
        "nfa_states",
        "dfa_states",
        "union_entries",
        "mask_steps",
        "search_steps",
        "cost_steps",
        "forced_bytes",
        "canvas_steps",
        "parser_items",
        "shared_items",
        "lexemes",
        "cache_bytes",
        "mask_bytes",
        "open_values",
    ];

    /// The limit of this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        let size = match name {
            "grammar_size" => self.grammar_size,
            "compile_steps" => return Some(self.compile_steps),
            "nfa_states" => self.lexer.nfa_states,
            "dfa_states" => self.lexer.dfa_states,
            "union_entries" => self.lexer.union_entries,
            "mask_steps" => return Some(self.mask_steps),
            "search_steps" => self.search_steps,
            "cost_steps" => return Some(self.cost_steps),
            "forced_bytes" => self.forced_bytes,
            "canvas_steps" => return Some(self.canvas_steps),
            "parser_items" => self.recognizer.items,
            "shared_items" => self.shared_items,
            "lexemes" => self.lexer.lexemes,
            "cache_bytes" => self.cache_bytes,
            "mask_bytes" => self.mask_bytes,
            "open_values" => self.open_values,
            _ => return None,
        };
        Some(size as u64)
    }

    /// Sets the limit of this name; `None` if there is none.
    pub fn set(&mut self, name: &str, value: u64) -> Option<()> {
        let size = usize::try_from(value).unwrap_or(usize::MAX);
        match name {
            "grammar_size" => self.grammar_size = size,
            "compile_steps" => self.compile_steps = value,
            "nfa_states" => self.lexer.nfa_states = size,
            "dfa_states" => self.lexer.dfa_states = size,
            "union_entries" => self.lexer.union_entries = size,
            "mask_steps" => self.mask_steps = value,
            "search_steps" => self.search_steps = size,
            "cost_steps" => self.cost_steps = value,
            "forced_bytes" => self.forced_bytes = size,
            "canvas_steps" => self.canvas_steps = value,
            "parser_items" => self.recognizer.items = size,
            "shared_items" => self.shared_items = size,
            "lexemes" => self.lexer.lexemes = size,
            "cache_bytes" => self.cache_bytes = size,
            "mask_bytes" => self.mask_bytes = size,
            "open_values" => self.open_values = size,
            _ => return None,
        }
        Some(())
    }
}

/// How a grammar is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LanguageOptions {
    /// The lexer mode; the grammar's own default if `None`.
    pub lexer: Option<LexerMode>,
    /// What to do when several terminals match the same longest piece.
    pub ties: Ties,
    /// The recognizer.
    pub engine: Engine,
    /// Bounds.
    pub limits: Limits,
}

/// The automaton of pieces with own debts, and what the grammar does to it.
#[derive(Clone, Debug)]
pub(crate) struct Spelling {
    pub debts: OwnDebts,
    pub relation: Relation,
}

/// A compiled grammar: immutable, shared by all outputs.
///
/// ```
/// use anygram_left_to_right::{Language, LanguageOptions};
///
/// let grammar = anygram_grammar::lark::parse(r#"start: "(" start ")" | "x""#, &Default::default())?;
/// let language = Language::new(grammar, &LanguageOptions::default())?;
/// assert!(language.read(b"((x))")?.is_sentence);
///
/// let reading = language.read(b"(x]")?; // up to where, and what could have stood there
/// assert_eq!((reading.length, reading.is_viable, reading.expected), (2, false, vec!["\")\"".to_owned()]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Language {
    grammar: Grammar,
    lexing: Lexing,
    choice: Choice,
    options: LanguageOptions,
    /// [`Lexing::own_debts`] and what the grammar does to them, once somebody asked; `None` if they say
    /// nothing or take too many steps.
    own_debts: OnceLock<Option<Spelling>>,
    compile_steps: u64,
    /// While it is compiled: who may stop that.
    cancel: Option<Cancel>,
}

impl Language {
    /// Compiles a grammar. Cost: the automata of its terminals, and a few passes over its rules.
    ///
    /// In the modes with longest match this reads the empty text, so a limit that all texts meet is met here.
    /// In `scannerless` nothing is read, and the first output meets it.
    pub fn new(grammar: Grammar, options: &LanguageOptions) -> Result<Self, CompileError> {
        Self::compile(grammar, options, None)
    }

    /// Compiles a grammar; another thread can cancel it.
    pub fn cancellable(
        grammar: Grammar,
        options: &LanguageOptions,
        cancel: Cancel,
    ) -> Result<Self, CompileError> {
        Self::compile(grammar, options, Some(cancel))
    }

    /// Compiles the sentences of a grammar in which no stop string stands: see [`Language::avoiding`].
    pub fn without(
        grammar: Grammar,
        stops: &[&str],
        options: &LanguageOptions,
        cancel: Option<Cancel>,
    ) -> Result<Self, CompileError> {
        let stops: Vec<&str> = stops.iter().copied().filter(|stop| !stop.is_empty()).collect();
        if stops.is_empty() {
            return Self::compile(grammar, options, cancel);
        }
        let Limits { compile_steps, lexer, grammar_size, .. } = options.limits;
        let mut work = compiling(compile_steps, cancel.clone());
        let how = (options.lexer.unwrap_or(grammar.default_lexer), options.ties);
        let grammar = without(&grammar, &stops, how, (&lexer, grammar_size), &mut work)?;
        Self::compile(grammar, options, cancel)
    }

    fn compile(
        grammar: Grammar,
        options: &LanguageOptions,
        cancel: Option<Cancel>,
    ) -> Result<Self, CompileError> {
        let mut work = compiling(options.limits.compile_steps, cancel.clone());
        let grammar = written_out(grammar, options.engine).map_err(StepError::from)?;
        let mode = options.lexer.unwrap_or(grammar.default_lexer);
        let lexing = Lexing::new(&grammar, mode, options.ties, options.limits.lexer, &mut work)?;
        let choice = Choice::new(options.engine, &lexing.cfg);
        let mut language = Self {
            grammar,
            lexing,
            choice,
            options: *options,
            own_debts: OnceLock::new(),
            compile_steps: work.used(),
            cancel,
        };
        language.check_some_text()?;
        language.cancel = None;
        Ok(language)
    }

    /// Refuses a grammar of which no text can be cut into pieces as the lexer cuts.
    fn check_some_text(&self) -> Result<(), CompileError> {
        let mode = self.mode();
        if mode == LexerMode::Scannerless {
            // Every cut counts, so what the reduced grammar derives is spelled by some text.
            return Ok(());
        }
        let mut stepper = Stepper::new(self).map_err(StepError::from)?;
        let is_viable = match stepper.start(self)? {
            Some(start) => stepper.is_viable(self, &start)?,
            None => false,
        };
        if is_viable { Ok(()) } else { Err(CompileCause::NoneCanBeCut { mode }.into()) }
    }

    /// A `contextual` language in `longest`: see [`Lexing::longest`]. Cost: a copy.
    pub(crate) fn longest(&self) -> Option<Self> {
        (self.mode() == LexerMode::Contextual).then(|| self.lexing.longest()).flatten().map(|lexing| Self {
            lexing,
            own_debts: OnceLock::new(),
            ..self.clone()
        })
    }

    /// The language of its sentences in which none of the stop strings stands, over bytes. Compiled anew, and
    /// as large as [`without`] says, which lists what is refused. Stop strings that are empty say nothing.
    ///
    /// ```
    /// use anygram_left_to_right::{ErrorKind, Language, LanguageOptions};
    ///
    /// let source = "%lexer scannerless\nstart: /[ab]*/ \"!\"";
    /// let grammar = anygram_grammar::lark::parse(source, &Default::default())?;
    /// let language = Language::new(grammar, &LanguageOptions::default())?;
    /// let avoiding = language.avoiding(&["ab", "b!"])?;
    /// assert!(avoiding.read(b"bba!")?.is_sentence);
    /// assert_eq!(avoiding.read(b"aba!")?.length, 1);
    ///
    /// let error = language.avoiding(&["!"]).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Unsatisfiable);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// [`without`]: anygram_lexer::without::without
    pub fn avoiding(&self, stops: &[&str]) -> Result<Self, CompileError> {
        let options = LanguageOptions { lexer: Some(self.mode()), ..self.options };
        Self::without(self.grammar.clone(), stops, &options, None)
    }

    /// The grammar as the front end read it.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Nonterminals that take part in no sentence.
    pub fn warnings(&self) -> Vec<Warning> {
        analysis::warnings(&self.grammar, self.lexing.empty_terminals())
    }

    /// The compiled lexing.
    #[doc(hidden)]
    pub fn lexing(&self) -> &Lexing {
        &self.lexing
    }

    /// The engine in use; never [`Engine::Auto`].
    pub fn engine(&self) -> Engine {
        self.choice.engine()
    }

    /// The measurement by which `auto` chose the engine, if it chose.
    pub fn probe(&self) -> Option<&Probe> {
        self.choice.probe()
    }

    /// The lexer mode in use.
    pub fn mode(&self) -> LexerMode {
        self.lexing.mode()
    }

    /// The bounds in force.
    pub fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// The steps that compiling took, of [`Limits::compile_steps`].
    pub fn compile_steps(&self) -> u64 {
        self.compile_steps
    }

    /// The automaton of pieces with own debts, where it bounds what can be completed. Most outputs never need
    /// it, so it is made when one does, in the steps that compiling has left over. If they do not suffice,
    /// nothing is known, as where it bounds nothing. Fails only if compiling goes on and is cancelled.
    pub(crate) fn own_debts(&self) -> Result<Option<&Spelling>, StepError> {
        if let Some(known) = self.own_debts.get() {
            return Ok(known.as_ref());
        }
        let left = self.options.limits.compile_steps.saturating_sub(self.compile_steps);
        let made = match self.make_own_debts(&mut compiling(left, self.cancel.clone())) {
            Err(Stopped::Cancelled) => return Err(Stopped::Cancelled.into()),
            made => made.ok().flatten(),
        };
        // If another thread was quicker, it has made the same.
        Ok(self.own_debts.get_or_init(|| made).as_ref())
    }

    fn make_own_debts(&self, work: &mut Work) -> Result<Option<Spelling>, Stopped> {
        let Some(debts) = self.lexing.own_debts(work)? else { return Ok(None) };
        let relation = Relation::new(&self.lexing.cfg, debts.n_classes(), debts.steps(), work)?;
        Ok(Some(Spelling { debts, relation }))
    }

    /// The engine, and why it is that.
    pub(crate) fn choice(&self) -> Choice {
        self.choice
    }

    /// Whether outputs may move to another engine when their texts turn out not to suit the one that was
    /// chosen.
    pub fn may_switch(&self) -> bool {
        self.choice.for_heavy().is_some()
    }

    /// A fresh recognizer of the chosen engine.
    #[doc(hidden)]
    pub fn recognizer(&self) -> Result<Box<dyn Recognizer>, RecognizerError> {
        self.choice.recognizer(self.lexing.cfg.clone(), self.options.limits.recognizer)
    }

    /// A fresh recognizer for searches, see [`Choice::interning_recognizer`].
    pub(crate) fn interning_recognizer(&self) -> Result<Box<dyn Recognizer>, RecognizerError> {
        self.choice.interning_recognizer(self.lexing.cfg.clone(), self.options.limits.recognizer)
    }

    /// Refuses what needs all states of the lexer's automata, if some are made as texts need them. `what` is
    /// a plural.
    pub fn needs_all_states(&self, what: &'static str) -> Result<(), StepError> {
        if self.lexing.is_growing() {
            return Err(LexerError::Growing { what }.into());
        }
        self.needs_texts_alone(what)
    }

    /// Refuses what asks only which text tokens spell, if the grammar has terminals that are any token but
    /// some, or bounds the tokens in a part of a text. `what` is a plural.
    pub fn needs_texts_alone(&self, what: &'static str) -> Result<(), StepError> {
        let is_set =
            |terminal: &Terminal| matches!(terminal.kind, TerminalKind::Special(SpecialToken::Except(_)));
        match self.grammar.terminals.iter().any(is_set) {
            true => Err(LexerError::TokenSets { what }.into()),
            false if self.counts_tokens() => Err(LexerError::Counts { what }.into()),
            false => Ok(()),
        }
    }

    /// Whether the grammar bounds the tokens in parts of a text
    /// ([`Terminal::max_tokens`](anygram_grammar::ir::Terminal::max_tokens)): then outputs depend on their
    /// tokens and not only on their text, and there are no canvases.
    pub fn counts_tokens(&self) -> bool {
        self.lexing.counts_tokens()
    }

    /// The name of a terminal in the grammar's own words.
    pub fn terminal_name(&self, terminal: TerminalId) -> &str {
        self.grammar.symbol_name(Symbol::Terminal(terminal))
    }

    /// Reads a text from its beginning. For many texts a [`Reader`] saves work.
    pub fn read(&self, text: &[u8]) -> Result<Reading, StepError> {
        self.reader()?.read(text)
    }

    /// Reads texts, keeping what was learned from one for the next.
    pub fn reader(&self) -> Result<Reader<'_>, StepError> {
        Reader::new(Held::Borrowed(self))
    }

    /// Bytes on the heap, roughly.
    pub fn memory_usage(&self) -> usize {
        let own = self.own_debts.get().and_then(Option::as_ref);
        let own = own.map_or(0, |own| own.debts.memory_usage() + own.relation.memory_usage());
        self.lexing.memory_usage() + own
    }
}

/// Counts steps of compiling.
fn compiling(steps: u64, cancel: Option<Cancel>) -> Work {
    let work = Work::new(steps, "compile_steps");
    match cancel {
        Some(cancel) => work.with_cancel(cancel),
        None => work,
    }
}

/// Rules given by automata that engines other than Earley's write out at most, counted in states.
const WRITTEN_OUT: usize = 10_000;

/// The grammar as the engine can read it: only Earley's reads rules that automata give.
fn written_out(grammar: Grammar, engine: Engine) -> Result<Grammar, RecognizerError> {
    if grammar.automata.is_empty() || matches!(engine, Engine::Auto | Engine::Earley) {
        return Ok(grammar);
    }
    grammar.expanded(WRITTEN_OUT).ok_or(RecognizerError::Automata { engine: engine.name() })
}

/// Reads one text after another.
pub struct Reader<'a> {
    language: Held<'a>,
    stepper: Stepper,
}

/// A language that is borrowed, or kept alive.
#[derive(Clone)]
enum Held<'a> {
    Borrowed(&'a Language),
    Shared(Arc<Language>),
}

impl Held<'_> {
    fn get(&self) -> &Language {
        match self {
            Self::Borrowed(language) => language,
            Self::Shared(language) => language,
        }
    }
}

impl Reader<'static> {
    /// A reader that keeps its language alive, for those who keep both together.
    pub fn shared(language: Arc<Language>) -> Result<Self, StepError> {
        Self::new(Held::Shared(language))
    }
}

impl<'a> Reader<'a> {
    fn new(language: Held<'a>) -> Result<Self, StepError> {
        Ok(Self { stepper: Stepper::new(language.get())?, language })
    }

    /// Reads a text from its beginning.
    pub fn read(&mut self, text: &[u8]) -> Result<Reading, StepError> {
        if self.stepper.recognizer().n_items() > self.language.get().options.limits.shared_items {
            *self = Self::new(self.language.clone())?;
        }
        let Self { language, stepper } = self;
        let language = language.get();
        let mark = stepper.mark();
        let mut frontier = stepper.start(language)?.unwrap_or_default();
        let (mut next, mut recall) = (Frontier::default(), Recall::new(language));
        let mut length = 0;
        let mut is_viable = !frontier.is_empty();
        let mut expected = Vec::new();
        while is_viable && length < text.len() {
            stepper.begin(language);
            let before = recall.readings(&frontier);
            let within = matches!(before, Cow::Owned(_)).then(|| before.into_owned());
            stepper.step_recalling(language, &frontier, &mut recall, text[length], &mut next)?;
            is_viable = stepper.is_viable_recalling(language, &next, &recall)?;
            if is_viable {
                std::mem::swap(&mut frontier, &mut next);
                length += 1;
            } else {
                expected = stepper.expected(language, within.as_deref().unwrap_or(&frontier));
            }
        }
        if is_viable {
            expected = stepper.expected(language, &recall.readings(&frontier));
        }
        let is_sentence = is_viable && stepper.is_sentence(&frontier);
        let reading = Reading { length, is_viable, is_sentence, expected };
        stepper.release(mark);
        Ok(reading)
    }
}

/// The result of reading a text, see [`Language::read`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The number of bytes of the longest prefix that is viable.
    pub length: usize,
    /// Whether that is the whole text.
    pub is_viable: bool,
    /// Whether the text is a sentence.
    pub is_sentence: bool,
    /// The names of the terminals that could have stood, or gone on, after that prefix.
    pub expected: Vec<String>,
}

#[cfg(test)]
mod tests {
    use anygram_grammar::lark;

    use super::*;

    fn language(compile_steps: u64) -> Language {
        // After `a`, `aa…b` is owed, so that lexing depends on what is parsed.
        let grammar = lark::parse("start: A B | A A A\nA: \"a\" | /a+b/\nB: /c+/", &Default::default());
        let limits = Limits { compile_steps, ..Limits::default() };
        let options =
            LanguageOptions { lexer: Some(LexerMode::Contextual), limits, ..LanguageOptions::default() };
        Language::new(grammar.unwrap(), &options).unwrap()
    }

    #[test]
    fn own_debts_are_made_in_the_steps_that_compiling_left_over() {
        let full = language(Limits::default().compile_steps);
        assert!(full.own_debts().unwrap().is_some());
        let few = language(full.compile_steps());
        for _ in 0..2 {
            assert!(few.own_debts().unwrap().is_none());
            for text in ["ac", "aab", "aac", "aaba"] {
                assert_eq!(few.read(text.as_bytes()), full.read(text.as_bytes()), "{text}");
            }
        }
    }

    #[test]
    fn own_debts_are_made_another_time_if_somebody_cancels() {
        let mut language = language(Limits::default().compile_steps);
        let cancel = Cancel::new();
        cancel.cancel();
        language.cancel = Some(cancel);
        assert_eq!(language.own_debts().err(), Some(Stopped::Cancelled.into()));
        language.cancel = None;
        assert!(language.own_debts().unwrap().is_some());
    }
}
