//! Sentences of a language, to look at.
//!
//! A derivation is spelled with a readable text for each terminal; where texts run together, a piece that is
//! ignored goes between. What comes of it is handed out only if [`Language::read`] says that it is a
//! sentence, so an example is one in every lexer mode. Not finding one proves nothing: all work is bounded.

use anygram_bits::{BitSet, Random};
use anygram_grammar::derivation::Derivations;
use anygram_grammar::ir::{TerminalId, TerminalKind};
use anygram_lexer::words::Words;
use anygram_recognizer::Edge;
use rustc_hash::FxHashSet;

use crate::error::MatchError;
use crate::frontier::{Stepper, Symbol};
use crate::language::{Language, Reader, StepError};
use crate::shortest;

/// Terminals of a sentence, at most.
const LONGEST: usize = 5_000;
/// Random derivations that are tried for one sentence.
const TRIES: usize = 40;
/// Gaps of a text that are closed one by one where that leaves it a sentence.
const GAPS: usize = 60;
/// Terminals that are read for [`contexts`] before it stops.
const READ: usize = 300_000;

/// The sets of terminals that can come next at places of sentences; whether a bound was hit, so that there
/// may be more.
///
/// For each rule a shortest sentence with it is read, so every place in every rule is seen in some
/// surroundings; not in all of them.
pub fn contexts(language: &Language) -> Result<(Vec<BitSet>, bool), StepError> {
    let cfg = &language.lexing().cfg;
    let derivations = Derivations::new(cfg, vec![Some(1); cfg.n_terminals]);
    let mut recognizer = language.recognizer()?;
    let mut seen = FxHashSet::default();
    let mut contexts = Vec::new();
    let mut left = READ;
    let mut is_cut = false;
    for rule in 0..cfg.rules.len() {
        let Some(sentence) = derivations.around(rule, LONGEST.min(left)) else {
            is_cut = true;
            continue;
        };
        left -= sentence.len();
        let mut state = recognizer.start();
        for terminal in std::iter::once(None).chain(sentence.into_iter().map(Some)) {
            if terminal.is_some() {
                let Some(next) = recognizer.extend(&[Edge { from: state, terminal }])? else { break };
                state = next;
            }
            let viable = recognizer.viable(state);
            if !seen.contains(viable) {
                seen.insert(viable.clone());
                contexts.push(viable.clone());
            }
        }
    }
    Ok((contexts, is_cut))
}

impl Language {
    /// At most `n` different sentences, of growing size; fewer, or none, where no more are found in a bounded
    /// time. Sentences that need special tokens are none of them.
    ///
    /// ```
    /// # use anygram_left_to_right::{Language, LanguageOptions};
    /// # let grammar = anygram_grammar::lark::parse(r#"start: /[0-9]{2}:[0-9]{2}/"#, &Default::default())?;
    /// # let language = Language::new(grammar, &LanguageOptions::default())?;
    /// // The language of  start: /[0-9]{2}:[0-9]{2}/
    /// let found = language.examples(3, 7)?;
    /// assert_eq!(found.len(), 3);
    /// assert!(found.iter().all(|text| text.len() == 5 && text[2] == b':'));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn examples(&self, n: usize, seed: u64) -> Result<Vec<Vec<u8>>, MatchError> {
        let words = Words::new(&self.lexing().lexicon);
        Ok(Examples::new(self, &words)?.random(n, seed))
    }
}

/// Makes examples of one language.
pub struct Examples<'a> {
    language: &'a Language,
    words: &'a Words<'a>,
    derivations: Derivations<'a>,
    /// What may stand between pieces, most readable first.
    separators: Vec<Vec<u8>>,
    reader: Reader<'a>,
}

impl<'a> Examples<'a> {
    /// Nothing is searched for yet.
    pub fn new(language: &'a Language, words: &'a Words<'a>) -> Result<Self, StepError> {
        let lexing = language.lexing();
        let length = |terminal| Some(words.shortest(terminal)?.len() as u32);
        let weights =
            (0..lexing.cfg.n_terminals).map(|at| length(at).filter(|_| lexing.lexicon.used.contains(at)));
        let mut separators: Vec<Vec<u8>> =
            lexing.lexicon.ignored.iter().filter_map(|at| words.shortest(at)).collect();
        separators.sort_by_key(|word| (word != b" ", word != b"\n", word.len()));
        separators.dedup();
        separators.truncate(4);
        let derivations = Derivations::new(&lexing.cfg, weights.collect());
        Ok(Self { language, words, derivations, separators, reader: language.reader()? })
    }

    /// A short sentence: of the derivation whose terminals have the shortest texts, if that can be spelled.
    pub fn short(&mut self) -> Option<Vec<u8>> {
        if self.is_sentence(b"") {
            return Some(Vec::new());
        }
        for text in shortest::sentences(self.language.grammar(), self.words) {
            if self.is_sentence(&text) {
                return Some(text);
            }
        }
        if let Some(terminals) = self.derivations.shortest(LONGEST) {
            let words: Option<Vec<_>> = terminals.iter().map(|t| self.words.shortest(t.index())).collect();
            if let Some(text) = words.and_then(|words| self.spell(&words)) {
                return Some(text);
            }
        }
        let mut random = Random::new(0);
        let tried = (0..TRIES as u64).filter_map(|extra| self.random_sentence(extra, &mut random));
        tried.min_by_key(Vec::len).or_else(|| self.searched())
    }

    /// At most `n` different sentences, of growing size.
    pub fn random(&mut self, n: usize, seed: u64) -> Vec<Vec<u8>> {
        let mut random = Random::new(seed);
        let mut seen = FxHashSet::default();
        let mut found = Vec::new();
        for attempt in 0..n.saturating_mul(4).saturating_add(TRIES) {
            if found.len() == n {
                break;
            }
            let extra = 4 + 8 * found.len() as u64 + attempt as u64 / 4;
            if let Some(text) = self.random_sentence(extra.min(400), &mut random)
                && seen.insert(text.clone())
            {
                found.push(text);
            }
        }
        found
    }

    fn random_sentence(&mut self, extra: u64, random: &mut Random) -> Option<Vec<u8>> {
        let terminals: Vec<TerminalId> = self.derivations.random(extra, LONGEST, random)?;
        // Keywords in mixed case are no fun.
        let kind = |t: &TerminalId| &self.language.grammar().terminals[t.index()].kind;
        let word = |t: &TerminalId| match kind(t) {
            TerminalKind::Literal(_) => self.words.shortest(t.index()),
            _ => self.words.random(t.index(), random),
        };
        let words: Option<Vec<_>> = terminals.iter().map(word).collect();
        self.spell(&words?)
    }

    /// The words, with separators where letters would touch, and as few others as make a sentence of them.
    fn spell(&mut self, words: &[Vec<u8>]) -> Option<Vec<u8>> {
        let is_letter =
            |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let touches = |at: usize| at > 0 && is_letter(words[at - 1].last()) && is_letter(words[at].first());
        let touching: Vec<bool> = (0..words.len()).map(touches).collect();
        let join = |gaps: &[bool], separator: &[u8]| {
            let mut text = Vec::new();
            for (word, &gap) in words.iter().zip(gaps) {
                text.extend_from_slice(if gap { separator } else { &[] });
                text.extend_from_slice(word);
            }
            text
        };
        let separators = self.separators.clone();
        for separator in &separators {
            let text = join(&touching, separator);
            if self.is_sentence(&text) {
                return Some(text);
            }
        }
        let text = words.concat();
        if self.is_sentence(&text) {
            return Some(text);
        }
        for separator in &separators {
            let mut gaps: Vec<bool> = (0..words.len()).map(|at| at > 0).collect();
            if !self.is_sentence(&join(&gaps, separator)) {
                continue;
            }
            for at in (1..gaps.len().min(GAPS)).filter(|&at| !touching[at]) {
                gaps[at] = false;
                gaps[at] = !self.is_sentence(&join(&gaps, separator));
            }
            return Some(join(&gaps, separator));
        }
        None
    }

    /// A sentence that the engine itself finds, byte by byte.
    fn searched(&mut self) -> Option<Vec<u8>> {
        let mut stepper = Stepper::new(self.language).ok()?;
        let start = stepper.start(self.language).ok()??;
        let text = completion(self.language, &mut stepper, &start, self.words)?;
        self.is_sentence(&text).then_some(text)
    }

    /// A limit that is hit is no yes.
    fn is_sentence(&mut self, text: &[u8]) -> bool {
        self.reader.read(text).is_ok_and(|reading| reading.is_sentence)
    }
}

/// A text that makes a sentence of what was read, if the engine finds one within its steps and it needs no
/// special token.
pub(crate) fn completion(
    language: &Language,
    stepper: &mut Stepper,
    frontier: &[crate::frontier::Config],
    words: &Words<'_>,
) -> Option<Vec<u8>> {
    let byte = |symbol| match symbol {
        Symbol::Byte(byte) => Some(byte),
        Symbol::Special(_) => None,
    };
    let symbols = stepper.complete(language, frontier).ok()??;
    let text: Option<Vec<u8>> = symbols.into_iter().map(byte).collect();
    Some(words.readable(&text?))
}
