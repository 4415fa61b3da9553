//! Many sequences at once: a step and a mask of each, in one launch of a graph.

use std::fmt::Write;

use anygram::parts::grammar::ir::Symbol;
use anygram::parts::recognizer::Edge;
use anygram::parts::vocab::Format;
use anygram::{Compiler, Constraint, Engine, GrammarFormat, LexerMode, LoadOptions, TokenId, Vocabulary, get_bit};
use anygram_cuda::SequenceId;
use anygram_cuda::output::{Output, WholeStep};
use anygram_cuda::turn::Turn;
use anyhow::{Result, ensure};

use super::{LEVELS, Measured, Setting, Times, lock};
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
    let n_tokens = setting.batch.2;
    let tokens: Vec<String> =
        (0..n_tokens).map(|at| format!("{}{}", letters(at % TERMINALS), at / TERMINALS)).collect();
    let options = LoadOptions { eos: vec![n_tokens as u32], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_bytes(Format::JsonArray, serde_json::to_string(&tokens)?.as_bytes(), &options)?;
    Ok(Constraint::new(language, vocabulary)?)
}

pub fn measure(setting: &Setting, measured: &mut Measured) -> Result<()> {
    let (n_sequences, n, _) = setting.batch;
    let constraint = constraint(setting)?;
    let charts = setting.shared_charts(setting.pool)?;
    let mut output = Output::new(&constraint, &charts, LEVELS)?;
    let mut matcher = constraint.matcher()?;
    // A token that is viable, another one each time.
    let next = |matcher: &mut anygram::Matcher, at: usize| -> Result<TokenId> {
        let mask = matcher.mask()?;
        let n_tokens = constraint.vocabulary().len();
        let viable = (0..n_tokens).map(|k| (k + at * 7_919) % n_tokens).find(|&k| get_bit(&mask, k));
        Ok(TokenId::new(viable.ok_or_else(|| anyhow::anyhow!("a text of the random grammar cannot go on"))?))
    };
    for at in 0..n {
        let token = next(&mut matcher, at)?;
        output.advance(token)?;
        matcher.advance(token)?;
    }
    // The device is told of all that was read, before others begin from there.
    output.readings()?;
    let followers: Vec<SequenceId> =
        (0..n_sequences).map(|_| lock(&charts).fork(output.sequence())).collect::<Result<_, _>>()?;
    let n_states = lock(&charts).n_states(output.sequence())?;
    let token = next(&mut matcher, n)?;
    output.advance(token)?;
    let WholeStep { steps, readings } = output.whole_step()?;
    let steps: Vec<&[Edge]> = steps.iter().map(|edges| &edges[..]).collect();
    let turns: Vec<Turn<'_>> =
        followers.iter().map(|&sequence| Turn { sequence, steps: &steps, readings: &readings }).collect();
    let mut expected = vec![0; constraint.mask_words()];
    let mut times = Times::default();
    for _ in 0..setting.runs {
        let (result, time) = timed(|| matcher.advance(token).and_then(|()| matcher.mask_into(&mut expected)));
        result?;
        times.cpu.push(time * n_sequences as f64);
        matcher.rollback(1)?;
        let mut charts = lock(&charts);
        let (masks, turned) = times.run(&mut charts, |charts| charts.turn(&turns, LEVELS))?;
        for turned in turned {
            ensure!(turned.states?.iter().all(Option::is_some), "a step of the batch is not viable");
            turned.mask?;
        }
        let masks = charts.read_masks(masks)?;
        ensure!(masks.iter().all(|mask| *mask == expected), "a mask of the batch is not that of the CPU");
        for &sequence in &followers {
            charts.rollback(sequence, n_states)?;
        }
    }
    let (_, _, rules) = setting.random;
    let mut row = times.row(format!("{n_sequences} sequences, n = {n}, {rules} rules: a step and a mask each"));
    (row.aim, row.kind) = ((n_sequences == 256).then_some(250.0), Some("batch"));
    measured.rows.push(row);
    Ok(())
}
