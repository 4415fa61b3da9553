//! Outputs on the device against matchers, token by token; what is exported; and the kernels that are shipped.

use std::sync::Arc;

use anygram_cuda::output::{Output, OutputError};
use anygram_cuda::search::DeviceMasks;
use anygram_cuda::{ChartError, Charts, DeviceError, PoolOptions, ShimOptions, dlpack};
use anygram_grammar::ir::{Grammar, LexerMode, Ties};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, Engine, Language, LanguageOptions};
use anygram_testkit::generate::{CALL, EOS, RandomCase};
use anygram_testkit::random::Random;
use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};

use crate::common::{can_run, pool, small};
use crate::masks::MODES;

fn constraint(grammar: Grammar, mode: LexerMode, ties: Ties, vocabulary: Vocabulary) -> Option<Constraint> {
    let options = LanguageOptions { engine: Engine::Valiant, lexer: Some(mode), ties, ..LanguageOptions::default() };
    Constraint::new(Arc::new(Language::new(grammar, &options).ok()?), vocabulary).ok()
}

fn vocabulary(case: &RandomCase) -> Vocabulary {
    let hex = |bytes: &Vec<u8>| {
        format!("{{\"hex\":\"{}\"}}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    };
    let source: Vec<String> = case.vocab.iter().map(|token| token.as_ref().map_or("null".to_owned(), hex)).collect();
    let options = LoadOptions { eos: vec![EOS], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, format!("[{}]", source.join(",")).as_bytes(), &options);
    vocabulary.unwrap().with_names([(CALL, "call")]).unwrap()
}

/// Goes on at random for some tokens, back and forth; returns the number of masks that were compared.
fn compare(name: &str, constraint: &Constraint, output: &mut Output, random: &mut Random, n_steps: usize) -> usize {
    let mut matcher = constraint.matcher().unwrap();
    let n_words = constraint.mask_words();
    for step in 0..n_steps {
        let expected = matcher.mask().unwrap();
        let mut found = vec![0xffff_ffff; n_words];
        output.mask_into(&mut found).unwrap();
        let tokens = matcher.tokens();
        assert_eq!(found, expected, "{name}, after {tokens:?}");
        assert_eq!((output.is_sentence(), output.n_tokens()), (matcher.is_sentence(), tokens.len()), "{name}");
        let allowed: Vec<u32> =
            (0..n_words as u32 * 32).filter(|id| found[*id as usize / 32] >> (id % 32) & 1 == 1).collect();
        match random.below(6) {
            0 => {
                let n = random.below(matcher.tokens().len() + 1);
                output.rollback(n);
                matcher.rollback(n).unwrap();
            }
            1 => {
                let token = TokenId::new(random.below(constraint.vocabulary().len()));
                let refused = matcher.advance(token).is_err();
                assert_eq!(output.advance(token).is_err(), refused, "{name}, {token:?} after {:?}", matcher.tokens());
            }
            _ if allowed.is_empty() => return step,
            _ => {
                let token = TokenId(*random.pick(&allowed));
                matcher.advance(token).unwrap();
                output.advance(token).unwrap();
            }
        }
    }
    n_steps
}

#[test]
fn outputs_on_the_device_are_those_of_matchers() {
    if !can_run() {
        return;
    }
    let (mut compared, mut n_doubtful) = (0, 0);
    for seed in 0..60 {
        let blanks = MODES.into_iter().filter(|_| seed % 6 == 0).map(|mode| RandomCase::with_blanks(seed, mode));
        for case in MODES.into_iter().map(|mode| RandomCase::in_mode(seed, mode)).chain(blanks) {
            let Some(constraint) = constraint(case.grammar.clone(), case.mode, case.ties, vocabulary(&case)) else {
                continue;
            };
            let charts = pool(seed, small());
            // Where masks are in doubt a second output finds the tables of the first.
            for again in 0..2 {
                let name = format!("seed {seed}, {}, output {again}", case.mode.name());
                let mut output = Output::new(&constraint, &charts, seed as usize % 3).unwrap();
                compared += compare(&name, &constraint, &mut output, &mut Random::new(seed + again), 12);
                n_doubtful += output.n_doubtful();
                if output.n_doubtful() == 0 {
                    break;
                }
            }
        }
    }
    assert!(compared > 800 && 5 * n_doubtful < compared, "{compared} masks, {n_doubtful} of them in doubt");
}

const LIST: &str = r#"
    start: "[" (value ("," value)*)? "]"
    value: start | NAME | value "+" value
    NAME: /[a-z]+/
    %ignore " "
"#;

#[test]
fn an_output_goes_on_without_its_device() {
    if !can_run() {
        return;
    }
    let grammar = lark::parse(LIST, &LarkOptions::default()).unwrap();
    let constraint = constraint(grammar, LexerMode::Longest, Ties::All, Vocabulary::builtin().clone()).unwrap();
    let tokens = constraint.vocabulary().encode("[a+b, [c], the + last]").unwrap();
    for lost_at in [3, 10, 40, 61] {
        let shim = ShimOptions { lost_at: Some(lost_at), ..ShimOptions::default() };
        let charts = Arc::new(std::sync::Mutex::new(Charts::on_shim(shim, small()).unwrap()));
        let mut output = Output::new(&constraint, &charts, 1).unwrap();
        let mut matcher = constraint.matcher().unwrap();
        let mut words = vec![0; constraint.mask_words()];
        let mut n_errors = 0;
        let mut retried = |output: &mut Output, work: &mut dyn FnMut(&mut Output) -> Result<(), OutputError>| {
            if let Err(error) = work(output) {
                assert!(error.is_of_device(), "{error}");
                n_errors += 1;
                output.go_on_without_device();
                work(output).unwrap();
            }
        };
        for &token in &tokens {
            retried(&mut output, &mut |output| output.mask_into(&mut words));
            assert_eq!(words, matcher.mask().unwrap(), "lost at {lost_at}, after {:?}", matcher.tokens());
            matcher.advance(token).unwrap();
            retried(&mut output, &mut |output| output.advance(token));
        }
        assert!(output.is_sentence());
        assert_eq!(n_errors, 1, "lost at {lost_at}");
        output.reset();
        output.mask_into(&mut words).unwrap();
        assert_eq!(words, constraint.matcher().unwrap().mask().unwrap());
    }
}

#[test]
#[allow(unsafe_code, reason = "a tensor is read as its consumer would")]
fn masks_are_exported() {
    if !can_run() {
        return;
    }
    let grammar = lark::parse(LIST, &LarkOptions::default()).unwrap();
    let constraint = constraint(grammar, LexerMode::Longest, Ties::All, Vocabulary::builtin().clone()).unwrap();
    let charts = pool(0, PoolOptions { threads: 64, ..small() });
    let (mut one, mut other) =
        (Output::new(&constraint, &charts, 0).unwrap(), Output::new(&constraint, &charts, 0).unwrap());
    constraint.vocabulary().encode("[a").unwrap().into_iter().for_each(|token| other.advance(token).unwrap());
    let rows = [one.readings().unwrap(), other.readings().unwrap()];
    let n_words = constraint.mask_words();
    // A buffer of the caller, its rows further apart than they are long.
    let stride = n_words + 5;
    let buffer = charts.lock().unwrap().buffer(&vec![0x5555_5555u32; 2 * stride]).unwrap();
    let masks = DeviceMasks { address: buffer.address(), stride, n_words, n_rows: 2 };
    // SAFETY: the buffer has two rows of `n_words` words, `stride` apart, and lives as long as the pool.
    unsafe { charts.lock().unwrap().masks_into(&rows, 1, masks) }.unwrap();
    assert!(charts.lock().unwrap().statuses(2).unwrap().0.iter().all(Result::is_ok));
    let tensor = Box::into_raw(dlpack::export(masks, dlpack::Device { kind: 1, number: 0 }, &charts));
    // SAFETY: the tensor was just exported, and its shape and strides are two numbers each.
    unsafe {
        let tensor = &(*tensor).tensor;
        assert_eq!((*tensor.shape, *tensor.shape.add(1)), (2, n_words as i64));
        assert_eq!((*tensor.strides, *tensor.strides.add(1)), (stride as i64, 1));
        assert_eq!((tensor.data.addr() as u64, tensor.byte_offset), (buffer.address(), 0));
    }
    let words = charts.lock().unwrap().read_buffer(&buffer).unwrap();
    for (row, output) in [&mut one, &mut other].into_iter().enumerate() {
        let mut expected = vec![0; n_words];
        output.mask_into(&mut expected).unwrap();
        let (found, gap) = words[row * stride..(row + 1) * stride].split_at(n_words);
        assert_eq!(found, expected, "row {row}");
        assert!(gap.iter().all(|&word| word == 0x5555_5555));
    }
    // SAFETY: called once, with the tensor that was exported.
    unsafe { (*tensor).deleter.unwrap()(tensor) };
}

#[test]
fn without_a_device_there_is_an_error() {
    if crate::common::native().is_some() {
        return;
    }
    let has_cuda = cfg!(feature = "cuda");
    match Charts::on_cuda(0, small()) {
        Ok(charts) => println!("there is one: {}", charts.device_name()),
        Err(ChartError::Device(DeviceError::NoDevice { reason })) => {
            assert!(has_cuda && !reason.is_empty(), "{reason}")
        }
        Err(error) => assert!(!has_cuda && error == ChartError::Device(DeviceError::NotBuilt), "{error}"),
    }
}

/// FNV-1a over 64 bits, as `xtask/nvrtc.py` has it.
fn fnv(bytes: &[u8]) -> String {
    let step = |value: u64, &byte: &u8| (value ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

#[test]
fn the_shipped_kernels_were_made_from_these_sources() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let list = std::fs::read_to_string(folder.join("built/files.txt")).unwrap();
    let mut n_sources = 0;
    for line in list.lines() {
        let (name, expected) = line.split_once(' ').unwrap();
        let is_source = name.ends_with(".cu") || name.ends_with(".cuh");
        n_sources += usize::from(is_source);
        let path = if is_source { folder.join(name) } else { folder.join("built").join(name) };
        let found = fnv(&std::fs::read(&path).unwrap());
        assert_eq!(found, expected, "{name}: run `cargo xtask kernels`");
    }
    let is_source = |path: &std::path::Path| path.extension().is_some_and(|name| name == "cu" || name == "cuh");
    let there = std::fs::read_dir(&folder).unwrap().filter(|entry| is_source(&entry.as_ref().unwrap().path())).count();
    assert_eq!(n_sources, there);
}
