//! Measures many sequences at once: a step and a mask of each, in one launch of a graph.

use std::fmt::Write;
use std::time::Instant;

use anygram::{
    Compiler, Constraint, Engine, GrammarFormat, LexerMode, LoadOptions, Matcher, TokenId, Vocabulary,
};
use anygram_bits::Random;
use anygram_cuda::output::{Output, WholeStep};
use anygram_cuda::turn::Turn;
use anygram_cuda::{PoolOptions, SharedCharts};
use anygram_grammar::ir::Symbol;
use anygram_recognizer::Edge;
use anygram_vocab::Format;
use anyhow::{Result, anyhow, ensure};

use super::{Bench, LEVELS, Setting, Times, lock};
use crate::input;
use crate::measure::timed;

/// Terminals of the grammar; each has as many tokens as any other.
const TERMINALS: usize = 64;

/// The beginning of a terminal: two letters of its own. Digits follow.
fn letters(terminal: usize) -> String {
    [b'a' + (terminal / 8) as u8, b'a' + (terminal % 8) as u8].map(char::from).iter().collect()
}

/// A random grammar whose symbols are terminals too, over a vocabulary in which each token is one piece.
fn constraint(setting: &Setting) -> Result<Constraint> {
    let (symbols, lefts, rules) = setting.random;
    let cfg = input::saturated(symbols, lefts, rules)?;
    let mut source = format!("start: n{}\n", cfg.start.index());
    for lhs in 0..cfg.n_nonterminals {
        let rules = cfg.rules.iter().filter(|rule| rule.lhs.index() == lhs);
        let sides = rules.map(|rule| {
            let symbols = rule.rhs.iter().map(|symbol| match symbol {
                Symbol::Nonterminal(n) => format!("n{}", n.index()),
                Symbol::Terminal(_) => format!("T{}", lhs % TERMINALS),
            });
            symbols.collect::<Vec<_>>().join(" ")
        });
        writeln!(source, "n{lhs}: {}", sides.collect::<Vec<_>>().join(" | "))?;
    }
    for terminal in 0..TERMINALS.min(cfg.n_nonterminals) {
        writeln!(source, "T{terminal}: /{}[0-9]+/", letters(terminal))?;
    }
    let language = Compiler::default().lexer(LexerMode::Longest).engine(Engine::Valiant);
    let language = language.compile(GrammarFormat::Lark, &source)?;
    let n_tokens = setting.batch.n_tokens;
    let tokens: Vec<String> =
        (0..n_tokens).map(|at| format!("{}{}", letters(at % TERMINALS), at / TERMINALS)).collect();
    let options = LoadOptions { eos: vec![n_tokens as u32], ..LoadOptions::default() };
    let vocabulary =
        Vocabulary::from_bytes(Format::JsonArray, serde_json::to_string(&tokens)?.as_bytes(), &options)?;
    Ok(Constraint::new(language, vocabulary)?)
}

/// An output that has read a text of its own, beside a matcher that has read the same.
struct Sequence {
    output: Output,
    matcher: Matcher,
    /// A token that may come next.
    next: TokenId,
}

/// Reads `n` tokens drawn from a seed, and draws one more.
fn sequence(constraint: &Constraint, charts: &SharedCharts, n: usize, seed: usize) -> Result<Sequence> {
    let mut output = Output::new(constraint, charts, LEVELS)?;
    let mut matcher = constraint.matcher()?;
    let n_tokens = constraint.vocabulary().len();
    let mut random = Random::new(seed as u64);
    let mut next = |matcher: &mut Matcher| -> Result<TokenId> {
        for _ in 0..n_tokens {
            let token = TokenId::new(random.below(n_tokens - 1));
            if matcher.advance(token).is_ok() {
                return Ok(token);
            }
        }
        Err(anyhow!("a text of the random grammar cannot go on"))
    };
    for _ in 0..n {
        let token = next(&mut matcher)?;
        output.advance(token)?;
    }
    let token = next(&mut matcher)?;
    matcher.rollback(1)?;
    Ok(Sequence { output, matcher, next: token })
}

/// Sequences of different texts, read on all cores: the CPU's part of that takes longer than all
/// measurements.
fn sequences(
    constraint: &Constraint,
    charts: &SharedCharts,
    n_sequences: usize,
    n: usize,
) -> Result<Vec<Sequence>> {
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let share = |core: usize| {
            scope.spawn(move || {
                let seeds = (core..n_sequences).step_by(n_cores);
                seeds.map(|seed| sequence(constraint, charts, n, seed)).collect::<Result<Vec<_>>>()
            })
        };
        let threads: Vec<_> = (0..n_cores).map(share).collect();
        let mut all = Vec::with_capacity(n_sequences);
        for thread in threads {
            all.extend(thread.join().map_err(|_| anyhow!("a thread that reads texts panicked"))??);
        }
        Ok(all)
    })
}

/// Batches of several sizes; `variant` says what their pool sets.
pub fn measure(bench: &mut Bench<'_>, sizes: &[usize], pool: PoolOptions, variant: &str) -> Result<()> {
    let setting = bench.setting;
    let n = setting.batch.n;
    let constraint = constraint(setting)?;
    let charts = setting.shared_charts(pool)?;
    let most = sizes.iter().copied().max().unwrap_or(1);
    let start = Instant::now();
    let mut sequences = sequences(&constraint, &charts, most, n)?;
    let read = start.elapsed().as_secs_f64() * 1e3;
    bench.preparation(&format!("{most} sequences{variant}"), "texts read (CPU, all cores)", Some(read))?;
    let mut steps = Vec::new();
    for sequence in &mut sequences {
        steps.push(sequence.begin(&charts)?);
    }
    for &size in sizes {
        let times = turns(setting, &charts, &sequences[..size], &steps[..size])?;
        let rules = setting.random.2;
        let what = if size == 1 { "sequence" } else { "different sequences" };
        let mut row =
            times.row(format!("{size} {what}, n = {n}, {rules} rules{variant}: a step and a mask each"));
        if variant.is_empty() {
            (row.aim, row.auto) = ((size == 256).then_some(250.0), Some(format!("batch {size}")));
        }
        bench.row(row)?;
    }
    Ok(())
}

/// What a sequence asks of the device, and the answer of the CPU.
struct Asked {
    step: WholeStep,
    expected: Vec<u32>,
    cpu: f64,
    n_states: usize,
}

impl Sequence {
    /// Reads the next token on the host. The device is told first of all that came before: what is left for
    /// it is what the token holds.
    fn begin(&mut self, charts: &SharedCharts) -> Result<Asked> {
        self.output.readings()?;
        let n_states = lock(charts).n_states(self.output.sequence())?;
        self.output.advance(self.next)?;
        let step = self.output.whole_step()?;
        let mut expected = vec![0; self.matcher.constraint().mask_words()];
        // The CPU knows its vocabulary by then, but not what is asked.
        self.matcher.mask_into(&mut expected)?;
        let (result, cpu) =
            timed(|| self.matcher.advance(self.next).and_then(|()| self.matcher.mask_into(&mut expected)));
        result?;
        Ok(Asked { step, expected, cpu, n_states })
    }
}

fn turns(setting: &Setting, charts: &SharedCharts, sequences: &[Sequence], asked: &[Asked]) -> Result<Times> {
    let steps: Vec<Vec<&[Edge]>> =
        asked.iter().map(|asked| asked.step.steps.iter().map(|edges| &edges[..]).collect()).collect();
    let turns: Vec<Turn<'_>> = (sequences.iter().zip(asked).zip(&steps))
        .map(|((sequence, asked), steps)| Turn {
            sequence: sequence.output.sequence(),
            steps,
            readings: &asked.step.readings,
        })
        .collect();
    let mut times = Times { cpu: vec![asked.iter().map(|asked| asked.cpu).sum()], ..Times::default() };
    let mut charts = lock(charts);
    for _ in 0..setting.runs {
        let (masks, turned) = times.run(&mut charts, |charts| charts.turn(&turns, LEVELS))?;
        for turned in turned {
            ensure!(turned.states?.iter().all(Option::is_some), "a step of the batch is not viable");
            turned.mask?;
        }
        let masks = charts.read_masks(masks)?;
        let same = masks.iter().zip(asked).all(|(mask, asked)| *mask == asked.expected);
        ensure!(same, "a mask of the batch is not that of the CPU");
        for (sequence, asked) in sequences.iter().zip(asked) {
            charts.rollback(sequence.output.sequence(), asked.n_states)?;
        }
    }
    Ok(times)
}
