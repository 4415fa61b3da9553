//! The cases of `testdata/cases`, asked through the functions that C calls.

use std::ffi::{CString, c_char};
use std::ptr::null_mut;

use anygram::{LexerMode, Ties};
use anygram_testkit::canvas::Slot;
use anygram_testkit::cases::{self, CanvasAnswers, CanvasCase, CaseFile, CaseFormat, CaseToken};
use anygram_testkit::text::{Sym, bytes_of};

use crate::canvas::*;
use crate::compile::*;
use crate::error::{ANYGRAM_MESSAGE_SIZE, ANYGRAM_NAME_SIZE, anygram_code, anygram_error};
use crate::matcher::*;
use crate::vocabulary::*;

use anygram_code::*;

fn no_error() -> anygram_error {
    anygram_error {
        struct_size: size_of::<anygram_error>(),
        code: ANYGRAM_OK,
        line: 0,
        column: 0,
        offset: 0,
        limit_value: 0,
        limit_name: [0; ANYGRAM_NAME_SIZE],
        message_length: 0,
        message: [0; ANYGRAM_MESSAGE_SIZE],
    }
}

fn message(error: &anygram_error) -> String {
    let bytes = error.message.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8);
    String::from_utf8(bytes.collect()).expect("UTF-8")
}

/// A handle that is freed in the end, as C++ would do it.
struct Owned<H>(*mut H, unsafe extern "C" fn(*mut H, *mut anygram_error) -> anygram_code);

impl<H> Owned<H> {
    /// What a function makes.
    fn made(
        free: unsafe extern "C" fn(*mut H, *mut anygram_error) -> anygram_code,
        make: impl FnOnce(*mut *mut H, *mut anygram_error) -> anygram_code,
    ) -> Result<Self, String> {
        let (mut handle, mut error) = (null_mut(), no_error());
        match make(&mut handle, &mut error) {
            ANYGRAM_OK => Ok(Self(handle, free)),
            code => {
                assert_eq!(error.code, code);
                Err(message(&error))
            }
        }
    }
}

impl<H> Drop for Owned<H> {
    fn drop(&mut self) {
        // SAFETY: no error is asked for.
        assert_eq!(unsafe { (self.1)(self.0, null_mut()) }, ANYGRAM_OK);
        // SAFETY: as before.
        assert_eq!(unsafe { (self.1)(self.0, null_mut()) }, ANYGRAM_BAD_HANDLE);
    }
}

/// A vocabulary of these tokens; special ones have no bytes.
fn vocabulary(
    tokens: &[Option<Vec<u8>>],
    named: &[(u32, CString)],
    (eos, pad): (Option<u32>, Option<u32>),
) -> Owned<anygram_vocabulary> {
    let bytes: Vec<u8> = tokens.iter().flatten().flatten().copied().collect();
    let mut offsets = vec![0];
    offsets.extend(tokens.iter().scan(0, |end, token| {
        *end += token.as_ref().map_or(0, Vec::len);
        Some(*end)
    }));
    let names: Vec<_> =
        named.iter().map(|(id, name)| anygram_name { id: *id, name: name.as_ptr() }).collect();
    let eos: Vec<u32> = eos.into_iter().collect();
    let special = anygram_special {
        struct_size: size_of::<anygram_special>(),
        eos: eos.as_ptr(),
        n_eos: eos.len(),
        pad: pad.unwrap_or(ANYGRAM_NO_TOKEN),
        mask: ANYGRAM_NO_TOKEN,
        names: names.as_ptr(),
        n_names: names.len(),
    };
    let made = Owned::made(anygram_vocabulary_free, |place, error| {
        // SAFETY: everything is above.
        unsafe {
            let (bytes, offsets) = (bytes.as_ptr(), offsets.as_ptr());
            anygram_vocabulary_from_tokens(bytes, offsets, tokens.len(), &special, place, error)
        }
    });
    made.expect("a vocabulary")
}

fn names(tokens: &[CaseToken]) -> Vec<(u32, CString)> {
    let named = tokens.iter().zip(0..).filter_map(|(token, id)| match token {
        CaseToken::Special(Some(name)) if !name.is_empty() => Some((id, CString::new(&**name).ok()?)),
        _ => None,
    });
    named.collect()
}

fn compile(file: &CaseFile, mode: LexerMode, ties: Ties) -> Result<Owned<anygram_language>, String> {
    let format = match file.format {
        CaseFormat::Lark => c"lark",
        CaseFormat::Gbnf => c"gbnf",
        CaseFormat::Ebnf => c"ebnf",
        CaseFormat::Regex => c"regex",
        CaseFormat::Nltk => c"nltk",
    };
    let ties = if ties == Ties::First { c"first" } else { c"all" };
    let lexer = CString::new(mode.name()).expect("no zero in names");
    let option = |name: *const c_char, value| anygram_option { name, value };
    let options = [option(c"lexer".as_ptr(), lexer.as_ptr()), option(c"ties".as_ptr(), ties.as_ptr())];
    Owned::made(anygram_language_free, |place, error| {
        let (source, n_bytes) = (file.grammar.as_ptr(), file.grammar.len());
        // SAFETY: everything is above.
        unsafe {
            let format = format.as_ptr();
            anygram_compile(format, source, n_bytes, options.as_ptr(), 2, null_mut(), place, error)
        }
    })
}

fn constraint(
    language: &Owned<anygram_language>,
    vocabulary: &Owned<anygram_vocabulary>,
) -> Owned<anygram_constraint> {
    // SAFETY: the places are there.
    let make = |place, error| unsafe { anygram_constraint_new(language.0, vocabulary.0, place, error) };
    Owned::made(anygram_constraint_free, make).expect("a constraint")
}

/// The ids below `n` that are in a row.
fn members(row: &[u32], n: u32) -> Vec<u32> {
    (0..n).filter(|&id| row[id as usize / 32] >> (id % 32) & 1 == 1).collect()
}

/// Behind the tokens of a case come all bytes, so that every prefix can be spelled, and an EOS.
fn mask(
    language: &Owned<anygram_language>,
    prefix: &[Sym],
    tokens: &[CaseToken],
    budget: Option<u32>,
) -> (Vec<u32>, bool) {
    let bytes = if budget.is_some() { Vec::new() } else { (0..=255).map(|byte| Some(vec![byte])).collect() };
    let own = tokens.iter().map(|token| token.bytes().map(<[u8]>::to_vec));
    let all: Vec<Option<Vec<u8>>> = own.chain(bytes).collect();
    let (n, eos) = (tokens.len() as u32, all.len() as u32);
    let vocabulary = vocabulary(&all, &names(tokens), (Some(eos), None));
    let constraint = constraint(language, &vocabulary);
    // SAFETY: the places are there.
    let make = |place, error| unsafe { anygram_matcher_new(constraint.0, place, error) };
    let matcher = Owned::made(anygram_matcher_free, make).expect("a matcher");
    let spelled: Vec<u32> = match bytes_of(prefix) {
        Some(text) if budget.is_some() => encode(&vocabulary, &text),
        _ => prefix
            .iter()
            .map(|symbol| match symbol {
                Sym::Byte(byte) => n + u32::from(*byte),
                Sym::Token(id) => *id,
            })
            .collect(),
    };
    let mut row = vec![u32::MAX; all.len() / 32 + 2];
    // SAFETY: the row has so many words.
    unsafe {
        let code = anygram_matcher_advance_all(matcher.0, spelled.as_ptr(), spelled.len(), null_mut());
        assert_eq!(code, ANYGRAM_OK);
        let code = match budget {
            None => anygram_matcher_mask(matcher.0, row.as_mut_ptr(), row.len(), null_mut()),
            Some(budget) => {
                anygram_matcher_mask_with_budget(matcher.0, budget, row.as_mut_ptr(), row.len(), null_mut())
            }
        };
        assert_eq!(code, ANYGRAM_OK);
    }
    (members(&row, n), members(&row, eos + 1).contains(&eos))
}

fn encode(vocabulary: &Owned<anygram_vocabulary>, text: &[u8]) -> Vec<u32> {
    let (mut tokens, mut length) = (vec![0; text.len()], 0);
    // SAFETY: there is so much room.
    let code = unsafe {
        let (text, n_bytes, room) = (text.as_ptr(), text.len(), tokens.len());
        anygram_vocabulary_encode(
            vocabulary.0,
            text,
            n_bytes,
            tokens.as_mut_ptr(),
            room,
            &mut length,
            null_mut(),
        )
    };
    assert_eq!(code, ANYGRAM_OK);
    tokens.truncate(length);
    tokens
}

fn canvas(language: &Owned<anygram_language>, case: &CanvasCase) -> CanvasAnswers {
    let tokens: Vec<_> = case.vocab.iter().map(|token| token.bytes().map(<[u8]>::to_vec)).collect();
    let vocabulary = vocabulary(&tokens, &names(&case.vocab), (case.eos, case.pad));
    let constraint = constraint(language, &vocabulary);
    // SAFETY: the places are there.
    let make = |place, error| unsafe { anygram_solver_new(constraint.0, place, error) };
    let solver = Owned::made(anygram_solver_free, make).expect("a solver");
    let slots = case.slots.iter().map(|slot| match slot {
        Slot::Fixed(token) => i64::from(*token),
        Slot::Hole => ANYGRAM_HOLE,
        Slot::Gap => ANYGRAM_GAP,
    });
    let slots: Vec<i64> = slots.collect();
    let given = anygram_canvas {
        struct_size: size_of::<anygram_canvas>(),
        slots: slots.as_ptr(),
        n_slots: slots.len(),
        end: if case.prefix { ANYGRAM_PREFIX } else { ANYGRAM_SENTENCE },
        remaining: if case.prefix { case.remaining.map_or(-1, i64::from) } else { -1 },
    };
    let n_holes = slots.iter().filter(|&&slot| slot == ANYGRAM_HOLE).count();
    let (mut answer, mut minimum) = (ANYGRAM_UNKNOWN, 0);
    let width = tokens.len() / 32 + 2;
    let mut rows = vec![u32::MAX; n_holes * width];
    // SAFETY: all places are above, and so large.
    let (code, has_minimum) = unsafe {
        let code =
            anygram_solver_completable(solver.0, &given, &mut answer, null_mut(), 0, null_mut(), null_mut());
        assert_eq!(code, ANYGRAM_OK);
        let words = rows.as_mut_ptr();
        let code =
            anygram_solver_admissible(solver.0, &given, words, n_holes, width, width, null_mut(), null_mut());
        (code, anygram_solver_minimum(solver.0, &given, &mut minimum, null_mut()))
    };
    assert_eq!(code, ANYGRAM_OK);
    assert!(matches!(has_minimum, ANYGRAM_OK | ANYGRAM_UNSATISFIABLE), "{has_minimum:?}");
    let rows = rows.chunks(width).map(|row| members(row, 32 * width as u32)).collect();
    (answer == ANYGRAM_YES, rows, (has_minimum == ANYGRAM_OK).then_some(minimum))
}

/// Whether a text without special tokens is a sentence, and whether it is viable.
fn read(language: &Owned<anygram_language>, text: &[u8]) -> (bool, bool) {
    let (mut is_sentence, mut is_viable) = (false, false);
    // SAFETY: the text is there, and the places.
    let code = unsafe {
        let (text, n_bytes) = (text.as_ptr(), text.len());
        anygram_language_read(
            language.0,
            text,
            n_bytes,
            &mut is_sentence,
            &mut is_viable,
            null_mut(),
            null_mut(),
        )
    };
    assert_eq!(code, ANYGRAM_OK);
    (is_sentence, is_viable)
}

fn has_names(file: &CaseFile) -> bool {
    let is_special = |text: &[Sym]| bytes_of(text).is_none();
    file.texts.iter().any(|case| is_special(&case.text) || case.completion.as_deref().is_some_and(is_special))
}

#[test]
fn every_case_is_answered() {
    let files = cases::load_all();
    let report = cases::run(&files, |file, mode, ties| -> Result<cases::Engine<'_>, String> {
        let language = std::rc::Rc::new(compile(file, mode, ties)?);
        let mut engine = cases::Engine::default();
        let (one, other) = (language.clone(), language.clone());
        // Texts with special tokens are asked of the matcher alone, by masks.
        if !has_names(file) {
            let bytes = |text: &[Sym]| bytes_of(text).expect("bytes");
            let language = language.clone();
            engine.is_sentence = Some(Box::new(move |text| read(&one, &bytes(text)).0));
            engine.is_viable = Some(Box::new(move |text| read(&language, &bytes(text)).1));
        }
        engine.mask = Some(Box::new(move |prefix, tokens, budget| mask(&other, prefix, tokens, budget)));
        engine.canvas = Some(Box::new(move |case| canvas(&language, case)));
        Ok(engine)
    });
    println!("{} answers", report.n_answers);
    report.assert_ok();
}
