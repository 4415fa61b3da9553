//! Behaviour as data: `testdata/cases/*.toml`, and a runner that takes closures and knows no engine.
//!
//! A file has one grammar and what is true of it:
//!
//! ```toml
//! name = "longest match falls back"
//! issue = 12                              # optional: the bug that made it a case
//! format = "lark"                         # optional: or gbnf, ebnf, regex, nltk
//! grammar = '''
//! start: NUMBER DOT
//! NUMBER: /[0-9]+(\.[0-9]+)?/
//! DOT: "."
//! '''
//! lexer = ["longest", "contextual"]       # optional: modes in which it holds; all three by default
//! ties = "all"                            # optional: or "first"
//! vocab = ["a", {hex = "c3"}, {special = "<|end|>"}]    # optional
//!
//! [[text]]
//! text = "1."                             # or {hex = "…"}, or a list of such and of {token = 7}
//! sentence = true
//! viable = true                           # optional: as `sentence` by default, which makes it true
//! completion = "5"                        # optional: what makes it a sentence, where that is not obvious
//! lexer = ["longest"]                     # optional: narrower than the file's
//!
//! [[mask]]
//! prefix = "1"                            # optional: empty by default
//! vocab = ["1", "."]                      # optional: the file's by default
//! allowed = ["1", "."]                    # or indexes; with a string every token of these bytes
//! eos = false
//! budget = 2                              # optional: within so many tokens of the vocabulary, which then
//!                                         # has to spell the prefix
//!
//! [[canvas]]
//! slots = ["1", 0, {}, "*"]               # a token (the first of the vocabulary with these bytes, or its
//!                                         # index), `{}` a hole, "*" a gap
//! vocab = ["1", "."]                      # optional: the file's by default
//! eos = 1                                 # optional: the index of the EOS in that vocabulary
//! pad = 2                                 # optional: the same for PAD
//! end = "prefix"                          # optional: "sentence" by default
//! remaining = 2                           # optional, for "prefix"
//! completable = true
//! admissible = [[0, 1]]                   # optional: indexes for each hole
//! minimum = 3                             # optional
//! ```
//!
//! `refused = true` says that the grammar is an error, and then there is nothing else. A mask lists exactly
//! the allowed tokens; special tokens that the grammar does not name are never among them, and whether the
//! text may end is `eos`.
//!
//! The runner asks the caller for an [`Engine`] per file and mode, asks it everything, and reports all that
//! is wrong, not only the first.

use std::fmt;
use std::path::{Path, PathBuf};

use anygram_grammar::ir::{Grammar, LexerMode, Ties};
use anygram_grammar::{GrammarError, ebnf, gbnf, lark, nltk, regex};
use serde::Deserialize;

use crate::canvas::Slot;
use crate::text::{Sym, Text as _, show};

/// One file of cases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaseFile {
    /// Where it was read from.
    pub path: PathBuf,
    /// What it shows.
    pub name: String,
    /// How the grammar is written.
    pub format: CaseFormat,
    /// The source of the grammar.
    pub grammar: String,
    /// Whether the grammar is an error.
    pub refused: bool,
    /// The modes in which the file holds.
    pub modes: Vec<LexerMode>,
    /// What to do with several labels.
    pub ties: Ties,
    /// The vocabulary of the file; empty if it has none.
    pub vocab: Vec<CaseToken>,
    /// What is true of texts.
    pub texts: Vec<TextCase>,
    /// What may stand next.
    pub masks: Vec<MaskCase>,
    /// What is true of canvases.
    pub canvases: Vec<CanvasCase>,
}

/// How the grammar of a case is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "their names say it")]
pub enum CaseFormat {
    #[default]
    Lark,
    Gbnf,
    Ebnf,
    Regex,
    Nltk,
}

impl CaseFile {
    /// The grammar.
    pub fn read_grammar(&self) -> Result<Grammar, GrammarError> {
        match self.format {
            CaseFormat::Lark => lark::parse(&self.grammar, &lark::LarkOptions::default()),
            CaseFormat::Gbnf => gbnf::parse(&self.grammar, &gbnf::GbnfOptions::default()),
            CaseFormat::Ebnf => ebnf::parse(&self.grammar, &ebnf::EbnfOptions::default()),
            CaseFormat::Regex => regex::parse(&self.grammar, &regex::RegexOptions::default()),
            CaseFormat::Nltk => nltk::parse(&self.grammar, &nltk::NltkOptions::default()),
        }
    }
}

/// A token of a case's vocabulary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CaseToken {
    /// An ordinary one.
    Bytes(Vec<u8>),
    /// A special one, perhaps with a name such as `<|end|>`.
    Special(Option<String>),
}

/// What is true of one text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextCase {
    /// The modes in which it is true.
    pub modes: Vec<LexerMode>,
    /// The text.
    pub text: Vec<Sym>,
    /// Whether it is a sentence.
    pub sentence: bool,
    /// Whether it is a viable prefix.
    pub viable: bool,
    /// A continuation that makes it a sentence, if the file gives one.
    pub completion: Option<Vec<Sym>>,
}

/// What may stand after one text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MaskCase {
    /// The modes in which it is true.
    pub modes: Vec<LexerMode>,
    /// The text.
    pub prefix: Vec<Sym>,
    /// The vocabulary.
    pub vocab: Vec<CaseToken>,
    /// The allowed tokens, ascending.
    pub allowed: Vec<u32>,
    /// Whether the text may end.
    pub eos: bool,
    /// How many tokens of the vocabulary the rest may take; any number if `None`.
    pub budget: Option<u32>,
}

/// What is true of one canvas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CanvasCase {
    /// The modes in which it is true.
    pub modes: Vec<LexerMode>,
    /// The slots.
    pub slots: Vec<Slot>,
    /// The vocabulary.
    pub vocab: Vec<CaseToken>,
    /// Its EOS.
    pub eos: Option<u32>,
    /// Its PAD.
    pub pad: Option<u32>,
    /// Whether it may end as a prefix.
    pub prefix: bool,
    /// How many tokens may then remain.
    pub remaining: Option<u32>,
    /// Whether it is completable.
    pub completable: bool,
    /// What each hole can hold, if the file says.
    pub admissible: Option<Vec<Vec<u32>>>,
    /// The fewest tokens of the text, if the file says.
    pub minimum: Option<usize>,
}

/// What an engine says of a canvas: whether it is completable, what each hole can hold, the fewest tokens of
/// its text.
pub type CanvasAnswers = (bool, Vec<Vec<u32>>, Option<usize>);

impl CaseToken {
    /// The bytes, unless the token is special.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Special(_) => None,
        }
    }
}

/// Token id to bytes, as the oracle takes it.
pub fn vocab_bytes(vocab: &[CaseToken]) -> Vec<Option<Vec<u8>>> {
    vocab.iter().map(|token| token.bytes().map(<[u8]>::to_vec)).collect()
}

/// A file that could not be read as cases.
#[derive(Debug)]
pub struct CaseError {
    path: PathBuf,
    message: String,
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.message)
    }
}

impl std::error::Error for CaseError {}

/// Reads all `.toml` files of a folder, in the order of their names.
pub fn load(folder: &Path) -> Result<Vec<CaseFile>, CaseError> {
    let error = |path: &Path, message: String| CaseError { path: path.to_owned(), message };
    let entries = std::fs::read_dir(folder).map_err(|e| error(folder, e.to_string()))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(|e| error(folder, e.to_string()))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    if paths.is_empty() {
        return Err(error(folder, "holds no .toml file".to_owned()));
    }
    let read = |path: &PathBuf| {
        let source = std::fs::read_to_string(path).map_err(|e| error(path, e.to_string()))?;
        parse(path, &source)
    };
    paths.iter().map(read).collect()
}

/// The cases of this repository, `testdata/cases`.
///
/// # Panics
/// If they cannot be read.
pub fn load_all() -> Vec<CaseFile> {
    load(&crate::shared::root().join("testdata/cases")).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads the text of a case file; `path` is for messages.
pub fn parse(path: &Path, source: &str) -> Result<CaseFile, CaseError> {
    let error = |message: String| CaseError { path: path.to_owned(), message };
    let raw: RawFile = toml::from_str(source).map_err(|e| error(e.to_string()))?;
    raw.lower(path).map_err(error)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    name: String,
    #[serde(rename = "issue")]
    _issue: Option<u32>,
    #[serde(default)]
    format: CaseFormat,
    grammar: String,
    #[serde(default)]
    refused: bool,
    lexer: Option<Vec<RawMode>>,
    #[serde(default)]
    ties: RawTies,
    #[serde(default)]
    vocab: Vec<RawPart>,
    #[serde(default)]
    text: Vec<RawText>,
    #[serde(default)]
    mask: Vec<RawMask>,
    #[serde(default)]
    canvas: Vec<RawCanvas>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCanvas {
    slots: Vec<RawSlot>,
    vocab: Option<Vec<RawPart>>,
    eos: Option<u32>,
    pad: Option<u32>,
    end: Option<String>,
    remaining: Option<u32>,
    completable: bool,
    admissible: Option<Vec<Vec<u32>>>,
    minimum: Option<usize>,
    lexer: Option<Vec<RawMode>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawSlot {
    Index(u32),
    Token(RawPart),
    Hole(RawHole),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHole {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawText {
    text: RawParts,
    sentence: bool,
    viable: Option<bool>,
    completion: Option<RawParts>,
    lexer: Option<Vec<RawMode>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMask {
    prefix: Option<RawParts>,
    vocab: Option<Vec<RawPart>>,
    allowed: Vec<RawAllowed>,
    eos: bool,
    budget: Option<u32>,
    lexer: Option<Vec<RawMode>>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum RawMode {
    Scannerless,
    Longest,
    Contextual,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum RawTies {
    #[default]
    All,
    First,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawParts {
    Many(Vec<RawPart>),
    One(RawPart),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawAllowed {
    Index(u32),
    Token(RawPart),
}

/// A piece of a text or a token: a string, or exactly one of the keys.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawPart {
    Text(String),
    Hex(RawHex),
    Token(RawToken),
    Special(RawSpecial),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawHex {
    hex: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawToken {
    token: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSpecial {
    /// Empty for a special token without a name.
    special: String,
}

impl RawFile {
    fn lower(self, path: &Path) -> Result<CaseFile, String> {
        let all = vec![LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];
        let modes = self.lexer.map_or(Ok(all.clone()), |modes| lower_modes(&modes, &all))?;
        let vocab = lower_vocab(&self.vocab)?;
        let says_nothing = self.text.is_empty() && self.mask.is_empty() && self.canvas.is_empty();
        if self.refused && !says_nothing {
            return Err("a refused grammar has neither texts nor masks".to_owned());
        }
        if !self.refused && says_nothing {
            return Err(
                "says nothing: add a [[text]], a [[mask]] or a [[canvas]], or `refused = true`".to_owned()
            );
        }
        let numbered =
            |kind: &'static str, at: usize| move |error| format!("[[{kind}]] number {}: {error}", at + 1);
        let texts = self.text.into_iter().enumerate();
        let texts = texts.map(|(at, raw)| raw.lower(&modes).map_err(numbered("text", at)));
        let masks = self.mask.into_iter().enumerate();
        let masks = masks.map(|(at, raw)| raw.lower(&modes, &vocab).map_err(numbered("mask", at)));
        let canvases = self.canvas.into_iter().enumerate();
        let canvases = canvases.map(|(at, raw)| raw.lower(&modes, &vocab).map_err(numbered("canvas", at)));
        Ok(CaseFile {
            path: path.to_owned(),
            name: self.name,
            format: self.format,
            grammar: self.grammar,
            refused: self.refused,
            ties: match self.ties {
                RawTies::All => Ties::All,
                RawTies::First => Ties::First,
            },
            texts: texts.collect::<Result<_, _>>()?,
            masks: masks.collect::<Result<_, _>>()?,
            canvases: canvases.collect::<Result<_, _>>()?,
            modes,
            vocab,
        })
    }
}

impl RawText {
    fn lower(self, modes: &[LexerMode]) -> Result<TextCase, String> {
        let viable = match (self.sentence, self.viable, &self.completion) {
            (true, Some(false), _) => return Err("a sentence is a viable prefix".to_owned()),
            (true, ..) | (_, Some(true), _) | (_, None, Some(_)) => true,
            (_, Some(false), Some(_)) => return Err("what has a completion is viable".to_owned()),
            (false, Some(false), None) => false,
            (false, None, None) => return Err("what is no sentence says whether it is viable".to_owned()),
        };
        Ok(TextCase {
            modes: self.lexer.map_or(Ok(modes.to_vec()), |narrower| lower_modes(&narrower, modes))?,
            text: self.text.lower()?,
            sentence: self.sentence,
            viable,
            completion: self.completion.map(RawParts::lower).transpose()?,
        })
    }
}

impl RawMask {
    fn lower(self, modes: &[LexerMode], vocab: &[CaseToken]) -> Result<MaskCase, String> {
        let vocab = self.vocab.map_or(Ok(vocab.to_vec()), |vocab| lower_vocab(&vocab))?;
        if vocab.is_empty() {
            return Err("needs a vocabulary, here or at the top of the file".to_owned());
        }
        let mut allowed = Vec::new();
        for raw in self.allowed {
            let tokens: Vec<u32> = match raw {
                RawAllowed::Index(index) => {
                    (index < vocab.len() as u32).then_some(index).into_iter().collect()
                }
                RawAllowed::Token(part) => {
                    let token = part.lower_token()?;
                    (0..vocab.len()).filter(|&at| vocab[at] == token).map(|at| at as u32).collect()
                }
            };
            if tokens.is_empty() {
                return Err("allows a token that is not in the vocabulary".to_owned());
            }
            allowed.extend(tokens);
        }
        allowed.sort_unstable();
        allowed.dedup();
        Ok(MaskCase {
            modes: self.lexer.map_or(Ok(modes.to_vec()), |narrower| lower_modes(&narrower, modes))?,
            prefix: self.prefix.map_or(Ok(vec![]), RawParts::lower)?,
            vocab,
            allowed,
            eos: self.eos,
            budget: self.budget,
        })
    }
}

impl RawCanvas {
    fn lower(self, modes: &[LexerMode], vocab: &[CaseToken]) -> Result<CanvasCase, String> {
        let vocab = self.vocab.map_or(Ok(vocab.to_vec()), |vocab| lower_vocab(&vocab))?;
        let slot = |raw: RawSlot| match raw {
            RawSlot::Hole(RawHole {}) => Ok(Slot::Hole),
            RawSlot::Index(index) => Ok(Slot::Fixed(index)),
            RawSlot::Token(RawPart::Text(text)) if text == "*" => Ok(Slot::Gap),
            RawSlot::Token(part) => {
                let token = part.lower_token()?;
                let at = vocab.iter().position(|other| *other == token);
                at.map(|at| Slot::Fixed(at as u32))
                    .ok_or_else(|| "a slot holds a token that is not in the vocabulary".to_owned())
            }
        };
        let slots = self.slots.into_iter().map(slot).collect::<Result<Vec<_>, String>>()?;
        let prefix = match self.end.as_deref() {
            None | Some("sentence") => false,
            Some("prefix") => true,
            Some(other) => return Err(format!("ends as {other:?}; known: sentence, prefix")),
        };
        Ok(CanvasCase {
            modes: self.lexer.map_or(Ok(modes.to_vec()), |narrower| lower_modes(&narrower, modes))?,
            slots,
            vocab,
            eos: self.eos,
            pad: self.pad,
            prefix,
            remaining: self.remaining,
            completable: self.completable,
            admissible: self.admissible,
            minimum: self.minimum,
        })
    }
}

impl RawParts {
    fn lower(self) -> Result<Vec<Sym>, String> {
        let parts = match self {
            Self::One(part) => vec![part],
            Self::Many(parts) => parts,
        };
        let mut text = Vec::new();
        for part in parts {
            match part {
                RawPart::Token(RawToken { token }) => text.push(Sym::Token(token)),
                RawPart::Special(_) => {
                    return Err("a text names a special token by its id, `{token = 7}`".to_owned());
                }
                part => text.extend(part.lower_token()?.bytes().unwrap_or_default().symbols()),
            }
        }
        Ok(text)
    }
}

impl RawPart {
    fn lower_token(&self) -> Result<CaseToken, String> {
        match self {
            Self::Text(text) => Ok(CaseToken::Bytes(text.clone().into_bytes())),
            Self::Hex(RawHex { hex }) => lower_hex(hex).map(CaseToken::Bytes),
            Self::Special(RawSpecial { special }) => {
                Ok(CaseToken::Special((!special.is_empty()).then(|| special.clone())))
            }
            Self::Token(_) => Err("`{token = …}` stands in texts only".to_owned()),
        }
    }
}

fn lower_vocab(raw: &[RawPart]) -> Result<Vec<CaseToken>, String> {
    raw.iter().map(RawPart::lower_token).collect()
}

fn lower_hex(hex: &str) -> Result<Vec<u8>, String> {
    let bad = || format!("`hex = {hex:?}` is not pairs of hexadecimal digits");
    let digits: Option<Vec<u32>> = hex.chars().map(|char| char.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2)).ok_or_else(bad)?;
    Ok(digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

fn lower_modes(raw: &[RawMode], within: &[LexerMode]) -> Result<Vec<LexerMode>, String> {
    let lower = |mode: &RawMode| match mode {
        RawMode::Scannerless => LexerMode::Scannerless,
        RawMode::Longest => LexerMode::Longest,
        RawMode::Contextual => LexerMode::Contextual,
    };
    let modes: Vec<LexerMode> = raw.iter().map(lower).collect();
    match modes.iter().find(|mode| !within.contains(mode)) {
        Some(mode) => Err(format!("{mode:?} is not among the modes of the file")),
        None if modes.is_empty() => Err("holds in no mode".to_owned()),
        None => Ok(modes),
    }
}

/// What an engine answers, as closures; those it leaves out are not asked.
#[derive(Default)]
pub struct Engine<'e> {
    /// Whether a text is a sentence.
    pub is_sentence: Option<Box<TextFn<'e>>>,
    /// Whether a text is a viable prefix.
    pub is_viable: Option<Box<TextFn<'e>>>,
    /// After a text, over a vocabulary, perhaps within a budget: the allowed tokens, ascending, and whether
    /// the text may end.
    pub mask: Option<Box<MaskFn<'e>>>,
    /// Of a canvas: whether it is completable, what each hole can hold, the fewest tokens of its text.
    pub canvas: Option<Box<CanvasFn<'e>>>,
}

/// Of a canvas: whether it is completable, what each hole can hold, the fewest tokens of its text.
pub type CanvasFn<'e> = dyn FnMut(&CanvasCase) -> CanvasAnswers + 'e;

/// Something that is true of a text or not.
pub type TextFn<'e> = dyn FnMut(&[Sym]) -> bool + 'e;

/// After a text, over a vocabulary, perhaps within a budget: the allowed tokens, ascending, and whether the
/// text may end.
pub type MaskFn<'e> = dyn FnMut(&[Sym], &[CaseToken], Option<u32>) -> (Vec<u32>, bool) + 'e;

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The number of answers that were compared.
    pub n_answers: usize,
    /// One message per wrong answer.
    pub failures: Vec<String>,
}

impl Report {
    /// Panics with all failures, if there are any, or if nothing was asked.
    ///
    /// # Panics
    /// As said.
    pub fn assert_ok(&self) {
        assert!(self.failures.is_empty(), "{self}");
        assert!(self.n_answers > 0, "nothing was asked");
    }

    fn compare<A: PartialEq>(&mut self, got: &A, expected: &A, message: impl FnOnce() -> String) {
        self.n_answers += 1;
        if got != expected {
            self.failures.push(message());
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} wrong of {} answers", self.failures.len(), self.n_answers)?;
        self.failures.iter().try_for_each(|failure| writeln!(f, "- {failure}"))
    }
}

/// Asks an engine everything that the files say.
///
/// `compile` makes the engine of one file in one mode, or says why the grammar is refused; what else it needs
/// (the file's vocabulary, say) it finds in the file.
pub fn run<'e, E: fmt::Display>(
    files: &[CaseFile],
    mut compile: impl FnMut(&CaseFile, LexerMode, Ties) -> Result<Engine<'e>, E>,
) -> Report {
    let mut report = Report::default();
    for file in files {
        for &mode in &file.modes {
            let path = file.path.file_name().unwrap_or(file.path.as_os_str()).display();
            let place = format!("{path} ({}), {mode:?}", file.name);
            match compile(file, mode, file.ties) {
                Ok(_) if file.refused => report.compare(&false, &true, || format!("{place}: not refused")),
                Ok(engine) => run_one(file, mode, engine, &place, &mut report),
                Err(error) => report.compare(&true, &file.refused, || format!("{place}: refused: {error}")),
            }
        }
    }
    report
}

fn run_one(file: &CaseFile, mode: LexerMode, mut engine: Engine<'_>, place: &str, report: &mut Report) {
    for case in file.texts.iter().filter(|case| case.modes.contains(&mode)) {
        let questions = [
            ("a sentence", &mut engine.is_sentence, case.sentence),
            ("viable", &mut engine.is_viable, case.viable),
        ];
        for (what, question, expected) in questions {
            let Some(question) = question else { continue };
            let got = question(&case.text);
            let not = if expected { "not " } else { "" };
            report.compare(&got, &expected, || {
                format!("{place}: {} is {not}{what} (it says)", show(&case.text))
            });
        }
        for completion in case.completion.iter() {
            let Some(question) = &mut engine.is_sentence else { continue };
            let whole = [&case.text[..], completion].concat();
            report.compare(&question(&whole), &true, || {
                format!("{place}: {} is not a sentence (it says)", show(&whole))
            });
        }
    }
    for case in file.masks.iter().filter(|case| case.modes.contains(&mode)) {
        let Some(question) = &mut engine.mask else { continue };
        let got = question(&case.prefix, &case.vocab, case.budget);
        let expected = (case.allowed.clone(), case.eos);
        let message = || {
            let prefix = show(&case.prefix);
            format!(
                "{place}: after {prefix} within {:?} it allows {:?}, eos {}; right is {:?}, {}",
                case.budget, got.0, got.1, expected.0, expected.1
            )
        };
        report.compare(&got, &expected, message);
    }
    for case in file.canvases.iter().filter(|case| case.modes.contains(&mode)) {
        let Some(question) = &mut engine.canvas else { continue };
        let (completable, admissible, minimum) = question(case);
        let slots = &case.slots;
        report.compare(&completable, &case.completable, || {
            format!("{place}: {slots:?} is completable: {completable}")
        });
        if let Some(right) = &case.admissible {
            report.compare(&admissible, right, || {
                format!("{place}: {slots:?} can hold {admissible:?}, right is {right:?}")
            });
        }
        if let Some(right) = case.minimum {
            report.compare(&minimum, &Some(right), || {
                format!("{place}: {slots:?} takes {minimum:?} tokens, right is {right}")
            });
        }
    }
}
