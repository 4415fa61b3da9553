//! Random grammars with vocabularies and canvases, what brute force says of them, and whether a witness shows
//! it. The tests of `anygram-decoding` take this file too.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use anygram_any_order::{Canvas, End, Filling, Slot, Witness};
use anygram_grammar::ir::LexerMode;
use anygram_left_to_right::{Constraint, Engine, Language, LanguageOptions, Limits};
use anygram_testkit::canvas::{self as brute, Roles};
use anygram_testkit::generate::{CALL, EOS, RandomCase};
use anygram_testkit::oracle::{Completion, Limits as OracleLimits, Oracle};
use anygram_testkit::random::Random;
use anygram_testkit::text::{Sym, text_of};
use anygram_vocab::{LoadOptions, TokenId, Vocabulary};

pub const MODES: [LexerMode; 3] = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];
pub const ORACLE: OracleLimits = OracleLimits { max_extra: 4, max_texts: 150, prune: true };

/// Assignments that brute force tries for one canvas.
pub const MOST: usize = 3_000;

pub fn seeds() -> Vec<u64> {
    anygram_testkit::random::seeds(25)
}

/// Whether there are too few seeds for counts to mean anything: one may have no canvas that is completable.
pub fn are_few() -> bool {
    seeds().len() < 20
}

/// A grammar, a vocabulary of few tokens and canvases over it.
pub struct Case {
    pub random: RandomCase,
    pub oracle: Oracle,
    pub vocab: Vec<Option<Vec<u8>>>,
    pub roles: Roles,
    pub canvases: Vec<Canvas>,
    sentences: RefCell<HashMap<Vec<Sym>, bool>>,
}

impl Case {
    pub fn new(seed: u64, mode: LexerMode) -> Self {
        let case = RandomCase::in_mode(seed, mode);
        let mut random = Random::new(seed ^ 0xca57a5);
        // Half of the vocabularies have few tokens, so that there can be many holes; then some bytes are no
        // tokens.
        let mut vocab = case.vocab.clone();
        let few = random.chance(50);
        if few {
            let mut kept = vec![None, None];
            for _ in 0..random.between(2, 4) {
                kept.push(random.choose(&case.vocab[2..]).clone());
            }
            vocab = kept;
        }
        let mut special = |vocab: &mut Vec<Option<Vec<u8>>>, percent| {
            random.chance(percent).then(|| {
                vocab.push(None);
                vocab.len() as u32 - 1
            })
        };
        let pad = special(&mut vocab, 60);
        let second = special(&mut vocab, 30);
        let named = if case.alphabet.contains(&Sym::Token(CALL)) { vec![CALL] } else { vec![] };
        let roles = Roles { eos: [Some(EOS), second].into_iter().flatten().collect(), pad, named };
        let canvases = (0..6).map(|at| canvas(&mut random, &case, &vocab, few, at)).collect();
        Self { oracle: case.oracle(), random: case, vocab, roles, canvases, sentences: RefCell::default() }
    }

    pub fn is_sentence(&self, text: &[Sym]) -> bool {
        *self.sentences.borrow_mut().entry(text.to_vec()).or_insert_with(|| self.oracle.is_sentence(text))
    }

    /// Whether some text makes a sentence of it, as far as it is known.
    fn is_viable(&self, text: &[Sym]) -> bool {
        matches!(self.oracle.completion(text, &self.random.alphabet, ORACLE), Completion::Found(_))
    }

    /// Whether at most so many tokens make a sentence of it.
    fn closes(&self, text: &[Sym], most: u32) -> bool {
        let tokens: Vec<u32> = (0..self.vocab.len() as u32)
            .filter(|token| self.vocab[*token as usize].is_some() || self.roles.named.contains(token))
            .collect();
        let mut level = vec![text.to_vec()];
        for left in (0..=most).rev() {
            if level.iter().any(|text| self.is_sentence(text)) {
                return true;
            }
            if left == 0 {
                break;
            }
            let longer = |text: &Vec<Sym>| -> Vec<Vec<Sym>> {
                tokens.iter().map(|&token| [&text[..], &text_of(&self.vocab, &[token])].concat()).collect()
            };
            level = level.iter().flat_map(longer).collect();
        }
        false
    }

    fn ends(&self, end: End, text: &[Sym], has_eos: bool) -> bool {
        match end {
            End::Prefix { remaining: None } if !has_eos => self.is_viable(text),
            End::Prefix { remaining: Some(most) } if !has_eos => self.closes(text, most),
            End::Sentence | End::Prefix { .. } => self.is_sentence(text),
        }
    }

    pub fn brute(&self, canvas: &Canvas, most: usize) -> Option<(brute::Answers, usize)> {
        let slots: Vec<brute::Slot> = canvas
            .slots()
            .iter()
            .map(|slot| match slot {
                Slot::Fixed(token) => brute::Slot::Fixed(token.0),
                Slot::Hole => brute::Slot::Hole,
                Slot::Gap => brute::Slot::Gap,
            })
            .collect();
        let ends = |text: &[Sym], has_eos: bool| self.ends(canvas.end(), text, has_eos);
        (0..=2).rev().find_map(|longest| {
            Some((brute::brute_force(&self.vocab, &self.roles, &slots, longest, most, ends)?, longest))
        })
    }

    pub fn constraint(&self, engine: Engine, limits: Limits) -> Result<Option<Constraint>, String> {
        let options =
            LanguageOptions { lexer: Some(self.random.mode), ties: self.random.ties, engine, limits };
        // Languages without a sentence are another test's.
        let Ok(language) = Language::new(self.random.grammar.clone(), &options) else { return Ok(None) };
        let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let tokens = self.vocab.iter().map(|token| match token {
            Some(bytes) => format!("{{\"hex\":\"{}\"}}", hex(bytes)),
            None => "null".to_owned(),
        });
        let source = format!("[{}]", tokens.collect::<Vec<_>>().join(","));
        let options =
            LoadOptions { eos: self.roles.eos.clone(), pad: self.roles.pad, ..LoadOptions::default() };
        let vocabulary =
            Vocabulary::from_bytes(anygram_vocab::Format::JsonArray, source.as_bytes(), &options)
                .map_err(|error| error.to_string())?;
        Constraint::new(Arc::new(language), vocabulary).map(Some).map_err(|error| error.to_string())
    }
}

fn canvas(random: &mut Random, case: &RandomCase, vocab: &[Option<Vec<u8>>], few: bool, at: usize) -> Canvas {
    let mut slots: Vec<Slot> = if few {
        let texts: Vec<u32> = (1..vocab.len() as u32).collect();
        (0..random.between(1, 5)).map(|_| Slot::Fixed(TokenId(*random.choose(&texts)))).collect()
    } else {
        let row: Vec<u32> = random.choose(&case.tokens).iter().copied().take(7).collect();
        row.into_iter().map(|token| Slot::Fixed(TokenId(token))).collect()
    };
    let percent = if few { 70 } else { 25 };
    slots.iter_mut().filter(|_| random.chance(percent)).for_each(|slot| *slot = Slot::Hole);
    if at.is_multiple_of(3) {
        let place = random.between(0, slots.len());
        slots.insert(place, Slot::Gap);
        if place + 1 < slots.len() && random.chance(70) {
            slots.remove(place + 1);
        }
    }
    if random.chance(30) {
        let token = |random: &mut Random| *random.choose(&[EOS, EOS, vocab.len() as u32 - 1]);
        slots.push(if random.chance(60) { Slot::Hole } else { Slot::Fixed(TokenId(token(random))) });
        if random.chance(40) {
            slots.push(if random.chance(60) { Slot::Hole } else { Slot::Fixed(TokenId(token(random))) });
        }
    }
    let end = match random.below(4) {
        0 => End::Prefix { remaining: None },
        1 => End::Prefix { remaining: Some(random.below(3) as u32) },
        _ => End::Sentence,
    };
    Canvas::new(slots, end)
}

/// Whether the oracle agrees that a witness shows what is asked.
pub fn shows(case: &Case, canvas: &Canvas, witness: &Witness) -> Result<(), String> {
    let fits = canvas.slots().iter().zip(&witness.slots).all(|pair| match pair {
        (Slot::Fixed(token), Filling::Token(own)) => token == own,
        (Slot::Hole, Filling::Token(_)) | (Slot::Gap, Filling::Tokens(_)) => true,
        _ => false,
    });
    let slots = witness.slots.iter().flat_map(|filling| match filling {
        Filling::Token(token) => vec![Slot::Fixed(*token)],
        Filling::Tokens(tokens) => tokens.iter().map(|&token| Slot::Fixed(token)).collect(),
    });
    let filled = Canvas::new(slots.collect(), canvas.end());
    let shown = case.brute(&filled, MOST).is_some_and(|(answers, _)| answers.completable);
    // That a prefix is viable is known to the oracle only as far as it looks.
    let beyond = canvas.end() == (End::Prefix { remaining: None });
    if fits && (shown || beyond) { Ok(()) } else { Err(format!("{witness:?} does not show it")) }
}
