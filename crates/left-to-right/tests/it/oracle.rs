//! Random grammars, vocabularies and texts: every engine in every lexer mode against brute force.
//!
//! `ANYGRAM_SEED=17` replays one seed and prints its case; `ANYGRAM_SEEDS=5000` sets how many are drawn
//! (default 100). In `contextual` an engine may say that it did not decide; the tests count that and bound
//! its rate.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anygram_grammar::ir::{LexerMode, TerminalId, TerminalKind};
use anygram_left_to_right::frontier::{Frontier, Stepper, Symbol};
use anygram_left_to_right::{
    Constraint, Engine, ErrorKind, Language, LanguageOptions, MatchError, Matcher, StepError,
};
use anygram_recognizer::valiant::Valiant;
use anygram_recognizer::{Edge, Recognizer, RecognizerLimits, laws as recognizer_laws};
use anygram_testkit::generate::{CALL, EOS, RandomCase};
use anygram_testkit::laws::{self, LeftToRight};
use anygram_testkit::oracle::{Completion, Limits, Oracle};
use anygram_testkit::text::{Sym, show};
use anygram_vocab::{LoadOptions, TokenId, Vocabulary};

const LIMITS: Limits = Limits { max_extra: 5, max_texts: 200, prune: true };

/// Undecided texts of one case, after which it is left.
const ENOUGH: usize = 3;

const ENGINES: [Engine; 3] = [Engine::Reference, Engine::Earley, Engine::Valiant];

fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(60)
}

/// What one case came to.
#[derive(Default)]
struct Tally {
    verdicts: usize,
    undecided: usize,
}

/// Brute force, asked once for all engines.
struct Judge {
    oracle: Oracle,
    sentences: RefCell<HashMap<Vec<Sym>, bool>>,
    completions: RefCell<HashMap<Vec<Sym>, Completion>>,
}

impl Judge {
    fn new(case: &RandomCase) -> Self {
        Self { oracle: case.oracle(), sentences: RefCell::default(), completions: RefCell::default() }
    }

    fn is_sentence(&self, text: &[Sym]) -> bool {
        *self.sentences.borrow_mut().entry(text.to_vec()).or_insert_with(|| self.oracle.is_sentence(text))
    }

    fn completion(&self, case: &RandomCase, text: &[Sym]) -> Completion {
        let find = || self.oracle.completion(text, &case.alphabet, LIMITS);
        self.completions.borrow_mut().entry(text.to_vec()).or_insert_with(find).clone()
    }
}

fn for_each_case(check: impl Fn(&RandomCase, &Judge, &Language, &mut Tally) -> Result<(), String>) {
    let mut failures = Vec::new();
    let (mut checked, mut empty, mut unknown) = (0, 0, 0);
    let mut tally = Tally::default();
    for seed in seeds() {
        let modes = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];
        let blanks =
            modes.into_iter().filter(|_| seed % 3 == 0).map(|mode| RandomCase::with_blanks(seed, mode));
        for case in modes.into_iter().map(|mode| RandomCase::in_mode(seed, mode)).chain(blanks) {
            let mode = case.mode;
            let judge = Judge::new(&case);
            for engine in ENGINES {
                let options = LanguageOptions {
                    lexer: Some(mode),
                    ties: case.ties,
                    engine,
                    ..LanguageOptions::default()
                };
                let result = match Language::new(case.grammar.clone(), &options) {
                    Ok(language) => check(&case, &judge, &language, &mut tally),
                    Err(error) if error.kind() == ErrorKind::Unsatisfiable => {
                        empty += 1;
                        is_empty(&case)
                    }
                    Err(error)
                        if mode == LexerMode::Contextual
                            && error.limit().is_some_and(|(name, _)| name == "search_steps") =>
                    {
                        unknown += 1;
                        Ok(())
                    }
                    Err(error) => Err(format!("does not compile: {error}")),
                };
                checked += 1;
                if let Err(message) = result {
                    failures.push(format!("seed {seed}, {mode:?}, {}: {message}\n{case}", engine.name()));
                }
            }
        }
    }
    let Tally { verdicts, undecided } = tally;
    println!(
        "{checked} cases, {empty} of an empty language, {unknown} perhaps; {verdicts} verdicts, {undecided} \
         undecided; {} failures",
        failures.len()
    );
    assert!(verdicts > 0 || empty + unknown == checked, "nothing was compared");
    assert!(
        unknown * 50 <= checked || checked < 50,
        "of {unknown} languages of {checked} it is not known whether they are empty"
    );
    assert!(undecided * 50 <= verdicts || checked < 50, "{undecided} of {verdicts} texts are undecided");
    assert!(
        failures.is_empty(),
        "{} of {checked} cases fail; the first:\n{}",
        failures.len(),
        failures[..failures.len().min(3)].join("\n")
    );
}

/// Whether an error means that nothing was decided, which may happen in this mode.
fn is_undecided(language: &Language, kind: ErrorKind) -> bool {
    language.mode() == LexerMode::Contextual && kind == ErrorKind::Undecided
}

/// Whether brute force finds no sentence either.
fn is_empty(case: &RandomCase) -> Result<(), String> {
    match case.oracle().completion(&Vec::<Sym>::new(), &case.alphabet, LIMITS) {
        Completion::Found(text) => Err(format!("the language is not empty: {} is a sentence", show(&text))),
        Completion::NoneWithin { .. } | Completion::LimitReached => Ok(()),
    }
}

/// A frontier that knows its symbols.
struct Reader<'a> {
    language: &'a Language,
    stepper: Stepper,
}

impl Reader<'_> {
    fn step(&mut self, frontier: &Frontier, symbol: Sym) -> Result<Frontier, StepError> {
        let mut next = Frontier::new();
        match symbol {
            Sym::Byte(byte) => self.stepper.step(self.language, frontier, byte, &mut next)?,
            Sym::Token(CALL) => {
                let special = |at: &usize| {
                    matches!(self.language.grammar().terminals[*at].kind, TerminalKind::Special(_))
                };
                for at in (0..self.language.grammar().terminals.len()).filter(special) {
                    let terminal = TerminalId::new(at);
                    next.extend(self.stepper.step_special(self.language, frontier, terminal)?);
                }
            }
            Sym::Token(_) => {}
        }
        Ok(next)
    }

    /// A completion by the engine, to be judged by the oracle.
    fn complete(&mut self, frontier: &Frontier) -> Result<Option<Vec<Sym>>, StepError> {
        let rest = self.stepper.complete(self.language, frontier)?;
        let symbol = |symbol| match symbol {
            Symbol::Byte(byte) => Sym::Byte(byte),
            Symbol::Special(_) => Sym::Token(CALL),
        };
        Ok(rest.map(|rest| rest.into_iter().map(symbol).collect()))
    }

    /// Compares the engine's word on a text with brute force. `None` if the engine did not decide.
    fn judge(
        &mut self,
        oracle: &Judge,
        case: &RandomCase,
        text: &[Sym],
        frontier: &Frontier,
        tally: &mut Tally,
    ) -> Result<Option<bool>, String> {
        let (sentence, expected) = (self.stepper.is_sentence(frontier), oracle.is_sentence(text));
        if sentence != expected {
            return Err(format!(
                "{} is a sentence: {sentence}, by brute force {expected}\n{}",
                show(text),
                oracle.oracle.explain(text)
            ));
        }
        tally.verdicts += 1;
        let viable = match self.stepper.is_viable(self.language, frontier) {
            Ok(viable) => viable,
            Err(error) if is_undecided(self.language, error.kind()) => {
                tally.undecided += 1;
                return Ok(None);
            }
            Err(error) => return Err(error.to_string()),
        };
        if viable {
            // A yes has to be shown, and brute force judges what is shown.
            let nothing = || Err(format!("{} is accepted, but nothing completes it", show(text)));
            return match self.complete(frontier) {
                Ok(Some(rest)) if oracle.is_sentence(&[text, &rest].concat()) => Ok(Some(true)),
                Ok(Some(rest)) => {
                    Err(format!("{} is accepted, but {} does not complete it", show(text), show(&rest)))
                }
                Ok(None) => nothing(),
                // There is one, but the search for it takes too long, which can happen in every mode.
                Err(error) if error.kind() == ErrorKind::Undecided => {
                    tally.undecided += 1;
                    let alphabet = oracle.oracle.whole_alphabet(&case.alphabet);
                    match oracle.oracle.completion(text, &alphabet, LIMITS) {
                        Completion::NoneWithin { exhausted: true } => nothing(),
                        _ => Ok(Some(true)),
                    }
                }
                Err(error) => Err(error.to_string()),
            };
        }
        match oracle.completion(case, text) {
            Completion::NoneWithin { .. } | Completion::LimitReached => Ok(Some(false)),
            Completion::Found(rest) => {
                Err(format!("{} is refused, but {} completes it", show(text), show(&rest)))
            }
        }
    }
}

#[test]
fn texts_are_read_as_by_brute_force() {
    for_each_case(|case, oracle, language, tally| {
        let mut reader =
            Reader { language, stepper: Stepper::new(language).map_err(|error| error.to_string())? };
        let start = reader.stepper.start(language).map_err(|error| error.to_string())?.unwrap_or_default();
        let before = tally.undecided;
        for text in case.texts.iter().chain(&case.prefixes) {
            if tally.undecided > before + ENOUGH {
                break;
            }
            let mut frontier = start.clone();
            for length in 0..=text.len() {
                reader.judge(oracle, case, &text[..length], &frontier, tally)?;
                if length < text.len() {
                    frontier = reader.step(&frontier, text[length]).map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(())
    });
}

/// The state of an output over the case's vocabulary.
fn matcher(case: &RandomCase, language: &Language) -> Result<Matcher, String> {
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let tokens: Vec<String> = case
        .vocab
        .iter()
        .map(|token| match token {
            Some(bytes) => format!("{{\"hex\":\"{}\"}}", hex(bytes)),
            None => "null".to_owned(),
        })
        .collect();
    let options = LoadOptions { eos: vec![EOS], ..LoadOptions::default() };
    let source = format!("[{}]", tokens.join(","));
    let vocabulary = Vocabulary::from_bytes(anygram_vocab::Format::JsonArray, source.as_bytes(), &options)
        .map_err(|error| error.to_string())?;
    let options = LanguageOptions {
        lexer: Some(language.mode()),
        ties: case.ties,
        engine: language.engine(),
        ..LanguageOptions::default()
    };
    let language = Language::new(case.grammar.clone(), &options).map_err(|error| error.to_string())?;
    let constraint = Constraint::new(Arc::new(language), vocabulary).map_err(|error| error.to_string())?;
    constraint.matcher().map_err(|error| error.to_string())
}

#[test]
fn masks_are_those_of_brute_force() {
    for_each_case(|case, oracle, language, tally| {
        let mut matcher = matcher(case, language)?;
        let mut reader =
            Reader { language, stepper: Stepper::new(language).map_err(|error| error.to_string())? };
        let start = reader.stepper.start(language).map_err(|error| error.to_string())?.unwrap_or_default();
        let mut judged: HashMap<Vec<Sym>, Option<bool>> = HashMap::new();
        let before = tally.undecided;
        for tokens in case.tokens.iter().take(4) {
            if tally.undecided > before + ENOUGH {
                break;
            }
            matcher.reset();
            let mut text: Vec<Sym> = Vec::new();
            let mut frontier = start.clone();
            for token in tokens.iter().take(6).map(Some).chain([None]) {
                let mask = match matcher.mask() {
                    Ok(mask) => mask,
                    Err(error) if is_undecided(language, error.kind()) => {
                        break;
                    }
                    Err(error) => return Err(error.to_string()),
                };
                if mask.contains(TokenId(EOS)) != oracle.is_sentence(&text) {
                    return Err(format!("EOS after {}: {}", show(&text), mask.contains(TokenId(EOS))));
                }
                for (id, bytes) in case.vocab.iter().enumerate().skip(1) {
                    let symbols: Vec<Sym> = match bytes {
                        Some(bytes) => bytes.iter().map(|&byte| Sym::Byte(byte)).collect(),
                        None => vec![Sym::Token(id as u32)],
                    };
                    let longer: Vec<Sym> = text.iter().chain(&symbols).copied().collect();
                    // The text engine is judged by the oracle, the mask by the text engine.
                    let verdict = match judged.get(&longer) {
                        Some(&verdict) => verdict,
                        None => {
                            let mut next = frontier.clone();
                            for &symbol in &symbols {
                                next = reader.step(&next, symbol).map_err(|error| error.to_string())?;
                            }
                            let verdict = reader.judge(oracle, case, &longer, &next, tally)?;
                            judged.insert(longer.clone(), verdict);
                            verdict
                        }
                    };
                    let Some(viable) = verdict else { continue };
                    if mask.contains(TokenId::new(id)) != viable {
                        return Err(format!(
                            "after {} token {id} is in the mask: {}, viable: {viable}",
                            show(&text),
                            !viable
                        ));
                    }
                    if matcher.validate(&[TokenId(id as u32)]).map_err(|error| error.to_string())?
                        != usize::from(viable)
                    {
                        return Err(format!(
                            "after {} token {id} does not validate as the mask says",
                            show(&text)
                        ));
                    }
                }
                let Some(&token) = token else { break };
                match matcher.advance(TokenId(token)) {
                    Ok(()) => {}
                    Err(MatchError::Refused(_)) => break,
                    Err(error) => return Err(error.to_string()),
                }
                match &case.vocab[token as usize] {
                    Some(bytes) => text.extend(bytes.iter().map(|&byte| Sym::Byte(byte))),
                    None => text.push(Sym::Token(token)),
                }
                frontier = start.clone();
                for &symbol in &text {
                    frontier = reader.step(&frontier, symbol).map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(())
    });
}

/// A matcher as the laws see it.
#[derive(Clone)]
struct Lawful(Matcher);

impl LeftToRight for Lawful {
    fn mask(&mut self) -> Vec<u32> {
        self.0.mask().expect("a mask").into_words()
    }
    fn advance(&mut self, token: u32) -> bool {
        match self.0.advance(TokenId(token)) {
            Ok(()) => true,
            Err(MatchError::Refused(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }
    fn rollback(&mut self, n: usize) {
        self.0.rollback(n).expect("as many tokens");
    }
    fn is_sentence(&mut self) -> bool {
        self.0.is_sentence()
    }
    fn validate(&mut self, tokens: &[u32]) -> usize {
        let tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId).collect();
        self.0.validate(&tokens).expect("a count")
    }
    fn n_tokens(&self) -> usize {
        self.0.constraint().vocabulary().len()
    }
}

#[test]
fn matchers_obey_the_laws() {
    for_each_case(|case, _, language, tally| {
        let start = Lawful(matcher(case, language)?);
        for tokens in case.tokens.iter().take(3) {
            // Where something is undecided there is nothing to hold a law to.
            let mut probe = start.0.clone();
            let decided =
                tokens.iter().try_for_each(|&token| match (probe.mask(), probe.advance(TokenId(token))) {
                    (Ok(_), Ok(()) | Err(MatchError::Refused(_))) => Ok(()),
                    (Err(error), _) | (_, Err(error)) => Err(error),
                });
            tally.verdicts += 1;
            match decided {
                Ok(()) => {
                    let obeyed = catch_unwind(AssertUnwindSafe(|| laws::all(&start, tokens)));
                    if let Err(panic) = obeyed {
                        let message = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                        if language.mode() != LexerMode::Contextual || !message.contains("Undecided") {
                            return Err(message);
                        }
                        tally.undecided += 1;
                    }
                }
                Err(error) if is_undecided(language, error.kind()) => tally.undecided += 1,
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    });
}

#[test]
fn recognizers_obey_their_laws() {
    for_each_case(|_, _, language, tally| {
        let engine = language.recognizer().map_err(|error| error.to_string())?;
        obeys_the_laws(engine, tally)?;
        if language.engine() == Engine::Valiant {
            let (cfg, limits) = (language.lexing().cfg.clone(), RecognizerLimits::default());
            let chomsky = Valiant::chomsky(cfg, limits).map_err(|error| error.to_string())?;
            obeys_the_laws(Box::new(chomsky), tally)
                .map_err(|message| format!("Chomsky's form: {message}"))?;
        }
        Ok(())
    });
}

fn obeys_the_laws(mut engine: Box<dyn Recognizer>, tally: &mut Tally) -> Result<(), String> {
    let n_terminals = engine.cfg().n_terminals as u32;
    let mut states = vec![engine.start()];
    let mut at = 0;
    while at < states.len() && states.len() < 40 {
        let state = states[at];
        at += 1;
        for terminal in engine.viable(state).clone().iter() {
            let edge = Edge { from: state, terminal: Some(TerminalId::new(terminal)) };
            states.extend(engine.extend(&[edge]).map_err(|error| error.to_string())?);
        }
    }
    for (at, &state) in states.iter().enumerate() {
        recognizer_laws::viable_iff_extends(&mut *engine, state)?;
        recognizer_laws::minimum_is_zero_iff_sentence(&*engine, state)?;
        recognizer_laws::automata_of_all_and_of_nothing(&*engine, state)?;
        recognizer_laws::carrying_over_is_the_identity(&mut *engine, state)?;
        let terminals = (0..n_terminals.min(2)).map(|terminal| Some(TerminalId(terminal))).chain([None]);
        let latest = states[..=at].iter().rev().take(3);
        let edges: Vec<Edge> =
            latest.flat_map(|&from| terminals.clone().map(move |terminal| Edge { from, terminal })).collect();
        recognizer_laws::a_merge_is_a_union(&mut *engine, &edges)?;
        tally.verdicts += 5;
    }
    Ok(())
}
