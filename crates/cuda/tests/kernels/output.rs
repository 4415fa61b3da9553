//! Outputs on the device against matchers, token by token; what is exported; and the kernels that are
//! shipped.

use std::sync::Arc;

use anygram_cuda::output::{Computed, Output, OutputError, batch_masks};
use anygram_cuda::search::DeviceMasks;
use anygram_cuda::{ChartError, Charts, DeviceError, PoolOptions, ShimOptions, dlpack};
use anygram_grammar::ir::{Grammar, LexerMode, Ties};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, Engine, Language, LanguageOptions, MaskRows, MatchError};
use anygram_testkit::generate::{CALL, EOS, RandomCase};
use anygram_testkit::random::Random;
use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};

use crate::common::{can_run, pool, small};
use crate::masks::MODES;

fn constraint(grammar: Grammar, mode: LexerMode, ties: Ties, vocabulary: Vocabulary) -> Option<Constraint> {
    let options =
        LanguageOptions { engine: Engine::Valiant, lexer: Some(mode), ties, ..LanguageOptions::default() };
    Constraint::new(Arc::new(Language::new(grammar, &options).ok()?), vocabulary).ok()
}

fn vocabulary(case: &RandomCase) -> Vocabulary {
    let hex = |bytes: &Vec<u8>| {
        format!("{{\"hex\":\"{}\"}}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    };
    let source: Vec<String> =
        case.vocab.iter().map(|token| token.as_ref().map_or("null".to_owned(), hex)).collect();
    let options = LoadOptions { eos: vec![EOS], ..LoadOptions::default() };
    let vocabulary =
        Vocabulary::from_bytes(Format::JsonArray, format!("[{}]", source.join(",")).as_bytes(), &options);
    vocabulary.unwrap().with_names([(CALL, "call")]).unwrap()
}

/// Goes on at random for some tokens, back and forth; returns the number of masks that were compared.
fn compare(
    name: &str,
    constraint: &Constraint,
    output: &mut Output,
    random: &mut Random,
    n_steps: usize,
) -> usize {
    let mut matcher = constraint.matcher().unwrap();
    let n_words = constraint.mask_words();
    for step in 0..n_steps {
        let expected = matcher.mask().unwrap().into_words();
        let mut found = vec![0xffff_ffff; n_words];
        output.mask_into(&mut found).unwrap();
        let tokens = matcher.tokens();
        assert_eq!(found, expected, "{name}, after {tokens:?}");
        assert_eq!(
            (output.is_sentence(), output.n_tokens()),
            (matcher.is_sentence(), tokens.len()),
            "{name}"
        );
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
                assert_eq!(
                    output.advance(token).is_err(),
                    refused,
                    "{name}, {token:?} after {:?}",
                    matcher.tokens()
                );
            }
            _ if allowed.is_empty() => return step,
            _ => {
                let token = TokenId(*random.choose(&allowed));
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
        let blanks =
            MODES.into_iter().filter(|_| seed % 6 == 0).map(|mode| RandomCase::with_blanks(seed, mode));
        for case in MODES.into_iter().map(|mode| RandomCase::in_mode(seed, mode)).chain(blanks) {
            let Some(constraint) = constraint(case.grammar.clone(), case.mode, case.ties, vocabulary(&case))
            else {
                continue;
            };
            let charts = pool(seed, small());
            // Where masks are in doubt a second output finds the tables of the first.
            for again in 0..2 {
                let name = format!("seed {seed}, {}, output {again}", case.mode.name());
                let mut output = Output::new(&constraint, &charts, seed as usize % 3).unwrap();
                compared += compare(&name, &constraint, &mut output, &mut Random::new(seed + again), 12);
                n_doubtful += output.computed().in_doubt;
                if output.computed().in_doubt == 0 {
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

/// Reads a text by an output and compares each mask with the CPU's.
fn follow(constraint: &Constraint, output: &mut Output, tokens: &[TokenId], name: &str) {
    let mut matcher = constraint.matcher().unwrap();
    let mut words = vec![0; constraint.mask_words()];
    for &token in tokens {
        output.mask_into(&mut words).unwrap();
        assert_eq!(words, matcher.mask().unwrap().into_words(), "{name}, after {:?}", matcher.tokens());
        matcher.advance(token).unwrap();
        output.advance(token).unwrap();
    }
    assert!(output.is_sentence(), "{name}");
    assert_eq!(total(output.computed()) % tokens.len(), 0, "{name}");
}

fn total(computed: Computed) -> usize {
    computed.on_device + computed.in_doubt + computed.too_large + computed.thin + computed.without_device
}

#[test]
fn an_output_goes_on_without_its_device() {
    if !can_run() {
        return;
    }
    let grammar = lark::parse(LIST, &LarkOptions::default()).unwrap();
    let constraint =
        constraint(grammar, LexerMode::Longest, Ties::All, Vocabulary::builtin().clone()).unwrap();
    let tokens = constraint.vocabulary().encode("[a+b, [c], the + last]").unwrap();
    for lost_at in [3, 10, 40, 61] {
        let shim = ShimOptions { lost_at: Some(lost_at), ..ShimOptions::default() };
        let charts = Arc::new(std::sync::Mutex::new(Charts::on_shim(shim, small()).unwrap()));
        let mut output = Output::new(&constraint, &charts, 1).unwrap();
        let name = format!("lost at {lost_at}");
        follow(&constraint, &mut output, &tokens, &name);
        assert!(output.gave_out().unwrap().contains("lost"), "{name}");
        let before = output.computed();
        assert!(before.without_device > 0, "{name}: {before:?}");
        output.reset();
        assert!(output.gave_out().is_some(), "{name}: a lost device is not asked again");
        follow(&constraint, &mut output, &tokens, &name);
        assert_eq!(output.computed().on_device, before.on_device, "{name}");
    }
}

#[test]
fn an_output_goes_on_where_the_pool_gives_out() {
    if !can_run() {
        return;
    }
    let grammar = lark::parse(LIST, &LarkOptions::default()).unwrap();
    let constraint =
        constraint(grammar, LexerMode::Longest, Ties::All, Vocabulary::builtin().clone()).unwrap();
    let tokens = constraint.vocabulary().encode("[a+b, [c], the + last, [and, one + more]]").unwrap();
    let deep = PoolOptions { page_words: 512, ..small() };
    // What one mask lacks is that mask's alone; what the sequence lacks stays until it begins again.
    for (name, options, levels, is_lasting) in [
        ("queue", PoolOptions { queue: 1, ..deep }, 1, false),
        ("arena", PoolOptions { arena_words: 64, ..deep }, 2, false),
        ("stacks", PoolOptions { stack_words: 4, ..deep }, 0, false),
        ("trees", PoolOptions { tree_words: 3, ..deep }, 1, false),
        ("states", PoolOptions { max_states: 6, ..deep }, 1, true),
        ("pages of a sequence", PoolOptions { max_pages: 1, page_words: 128, ..deep }, 1, true),
        ("pages", PoolOptions { pages: 2, page_words: 128, ..deep }, 1, true),
    ] {
        let charts = pool(0, options);
        let mut output = Output::new(&constraint, &charts, levels).unwrap();
        follow(&constraint, &mut output, &tokens, name);
        let computed = output.computed();
        assert_eq!(output.gave_out().is_some(), is_lasting, "{name}: {computed:?}, {:?}", output.gave_out());
        assert_eq!(computed.without_device > 0, is_lasting, "{name}: {computed:?}");
        assert_eq!(computed.too_large > 0, !is_lasting, "{name}: {computed:?}");
        output.reset();
        assert!(output.gave_out().is_none(), "{name}: after a reset the device is asked again");
        follow(&constraint, &mut output, &tokens, name);
        assert_eq!(output.computed().on_device, 2 * computed.on_device, "{name}");
    }
}

#[test]
fn a_launch_that_is_refused_loses_nothing() {
    if !can_run() {
        return;
    }
    let grammar = lark::parse(LIST, &LarkOptions::default()).unwrap();
    let constraint =
        constraint(grammar, LexerMode::Longest, Ties::All, Vocabulary::builtin().clone()).unwrap();
    let tokens = constraint.vocabulary().encode("[a+b, [c], the + last]").unwrap();
    // Each launch of the first masks once, those in the middle of a turn too.
    for refused_at in 0..40 {
        let shim = ShimOptions { refused_at: Some(refused_at), ..ShimOptions::default() };
        let charts = Arc::new(std::sync::Mutex::new(Charts::on_shim(shim, small()).unwrap()));
        let Ok(mut output) = Output::new(&constraint, &charts, 1) else {
            assert_eq!(refused_at, 0, "only the launch that makes the sequence");
            continue;
        };
        let name = format!("refused at {refused_at}");
        follow(&constraint, &mut output, &tokens, &name);
        assert!(output.gave_out().unwrap().contains("refuses a launch"), "{name}: {:?}", output.gave_out());
        output.reset();
        assert!(output.gave_out().is_none(), "{name}");
        let before = output.computed().on_device;
        follow(&constraint, &mut output, &tokens, &name);
        assert_eq!(output.computed().on_device, before + tokens.len(), "{name}");
    }
}

/// Outputs of one pool that go their own ways at random, each mask of the batch against a matcher's.
#[test]
fn batches_of_random_grammars() {
    if !can_run() {
        return;
    }
    let (mut n_compared, mut n_on_device) = (0, 0);
    for seed in 0..20 {
        for mode in MODES {
            let case = RandomCase::in_mode(seed, mode);
            let Some(constraint) = constraint(case.grammar.clone(), mode, case.ties, vocabulary(&case))
            else {
                continue;
            };
            let (charts, mut random) = (pool(seed, small()), Random::new(seed));
            let mut outputs: Vec<Output> =
                (0..3).map(|_| Output::new(&constraint, &charts, seed as usize % 3).unwrap()).collect();
            let mut matchers: Vec<_> = (0..3).map(|_| constraint.matcher().unwrap()).collect();
            let n_words = constraint.mask_words();
            for step in 0..5 {
                let mut rows = vec![u32::MAX; 3 * n_words];
                assert!(
                    batch_masks(&mut outputs, MaskRows::new(&mut rows, n_words)).iter().all(Result::is_ok),
                    "seed {seed}, {mode:?}"
                );
                for (at, row) in rows.chunks(n_words).enumerate() {
                    let expected = matchers[at].mask().unwrap().into_words();
                    assert_eq!(row, expected, "seed {seed}, {}, output {at}, step {step}", mode.name());
                    n_compared += 1;
                    let allowed: Vec<usize> =
                        (0..case.vocab.len()).filter(|id| row[id / 32] >> (id % 32) & 1 == 1).collect();
                    // Now and then one stays where it is.
                    if !allowed.is_empty() && random.below(4) > 0 {
                        let token = TokenId::new(*random.choose(&allowed));
                        outputs[at].advance(token).unwrap();
                        matchers[at].advance(token).unwrap();
                    }
                }
            }
            n_on_device += outputs.iter().map(|output| output.computed().on_device).sum::<usize>();
        }
    }
    assert!(n_compared > 500 && 2 * n_on_device > n_compared, "{n_on_device} of {n_compared} masks");
}

#[test]
fn masks_of_a_batch_are_those_of_its_outputs() {
    if !can_run() {
        return;
    }
    let of = |source: &str, mode| {
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        constraint(grammar, mode, Ties::All, Vocabulary::builtin().clone()).unwrap()
    };
    let lists = of(LIST, LexerMode::Longest);
    let sums = of("start: start \"+\" start | NAME\nNAME: /[a-z]+/", LexerMode::Contextual);
    let tokens = |text: &str| lists.vocabulary().encode(text).unwrap();
    // Outputs of two grammars in one pool; one in a pool that gives out; one that ended.
    let (charts, poor) = (pool(1, small()), pool(2, PoolOptions { queue: 1, ..small() }));
    let texts = [
        ("[a+b, [c", &lists, &charts),
        ("a+b", &sums, &charts),
        ("", &lists, &charts),
        ("[a, b", &lists, &poor),
    ];
    let mut outputs: Vec<Output> =
        texts.iter().map(|(_, constraint, charts)| Output::new(constraint, charts, 1).unwrap()).collect();
    let mut ended = Output::new(&sums, &charts, 1).unwrap();
    ended.advance(tokens("a")[0]).unwrap();
    ended.advance(sums.vocabulary().eos()[0]).unwrap();
    outputs.push(ended);
    let n_words = lists.mask_words();
    let mut matchers: Vec<_> = texts.iter().map(|(_, constraint, _)| constraint.matcher().unwrap()).collect();
    for step in 0..6 {
        let mut rows = vec![u32::MAX; outputs.len() * n_words];
        let waits = charts.lock().unwrap().n_waits();
        assert!(batch_masks(&mut outputs, MaskRows::new(&mut rows, n_words)).iter().all(Result::is_ok));
        assert_eq!(charts.lock().unwrap().n_waits() - waits, 1, "one turn for all outputs of a pool");
        for (at, matcher) in matchers.iter_mut().enumerate() {
            assert_eq!(
                rows[at * n_words..][..n_words],
                matcher.mask().unwrap().into_words(),
                "output {at}, step {step}"
            );
            if let Some(&token) = tokens(texts[at].0).get(step) {
                outputs[at].advance(token).unwrap();
                matcher.advance(token).unwrap();
            }
        }
        let mut alone = vec![0; n_words];
        outputs[4].mask_into(&mut alone).unwrap();
        assert_eq!(rows[4 * n_words..], alone);
        let short = batch_masks(&mut outputs, MaskRows::new(&mut rows[1..], n_words));
        assert!(
            short.iter().all(|error| matches!(error, Err(OutputError::Match(MatchError::TooFewRows { .. }))))
        );
    }
    assert!(outputs[0].computed().on_device > 0 && outputs[1].computed().on_device > 0);
    assert!(outputs[3].computed().too_large > 0, "{:?}", outputs[3].computed());
    assert!(batch_masks(&mut [], MaskRows::new(&mut [], 1)).is_empty());
}

#[test]
fn only_dense_charts_are_for_the_device_where_that_is_asked_for() {
    if !can_run() {
        return;
    }
    let grammar = lark::parse("start: start start | \"a\"", &LarkOptions::default()).unwrap();
    let constraint =
        constraint(grammar, LexerMode::Longest, Ties::All, Vocabulary::builtin().clone()).unwrap();
    let tokens = constraint.vocabulary().encode("a".repeat(80)).unwrap();
    let charts = pool(3, PoolOptions { team_from: 2, threads: 64, ..small() });
    let mut output = Output::new(&constraint, &charts, 0).unwrap().for_dense_charts();
    follow(&constraint, &mut output, &tokens, "dense");
    let Computed { on_device, thin, without_device, .. } = output.computed();
    assert!(on_device > 5 && thin > 5 && without_device == 0, "{:?}", output.computed());
}

#[test]
#[allow(unsafe_code, reason = "a tensor is read as its consumer would")]
fn masks_are_exported() {
    if !can_run() {
        return;
    }
    let grammar = lark::parse(LIST, &LarkOptions::default()).unwrap();
    let constraint =
        constraint(grammar, LexerMode::Longest, Ties::All, Vocabulary::builtin().clone()).unwrap();
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
    let folder = anygram_testkit::shared::root().join("crates/cuda/kernels");
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
    let is_source =
        |path: &std::path::Path| path.extension().is_some_and(|name| name == "cu" || name == "cuh");
    let there = std::fs::read_dir(&folder)
        .unwrap()
        .filter(|entry| is_source(&entry.as_ref().unwrap().path()))
        .count();
    assert_eq!(n_sources, there);
}
