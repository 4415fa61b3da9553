//! For people: the canvas as it fills, the texts side by side, counts.

use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anygram_replay::Ending;
use anyhow::Result;
use console::Term;

use super::generation::{Generation, Generator, Question};
use super::steps::{Came, Cell, Step, steps};
use super::{Args, Telling};
use crate::excerpt::{Excerpt, expected};

const TITLE: Style = AnsiColor::Cyan.on_default().bold();
const KEPT: Style = AnsiColor::Green.on_default().bold();
const FORCED: Style = AnsiColor::Yellow.on_default().bold();
const YES: Style = AnsiColor::Green.on_default();
const NO: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();

/// Columns where output is no terminal.
const WIDTH: usize = 100;
/// Before everything below a title.
const INDENT: usize = 4;
/// Refused proposals of a step that are shown.
const SHOWN: usize = 3;

/// Shows one question in full, and counts over all.
pub fn show(
    args: &Args,
    generator: &Generator,
    questions: &[Question],
    all: &[Vec<Generation>],
    (telling, shown): (Telling, usize),
    delay: Duration,
) -> Result<()> {
    let mut output = anstream::stdout();
    let (question, generations) = (&questions[shown], &all[shown]);
    heading(args, generator, question, &mut output)?;
    fill(generator, &generations[0], delay, &mut output)?;
    writeln!(output, "\n{TITLE}Side by side{TITLE:#}")?;
    let width = generations.iter().map(|generation| generation.method.len()).max().unwrap_or(0);
    for generation in generations {
        outcome(generation, width, &mut output)?;
    }
    if all.len() > 1 {
        counts(all, width.max("method".len()), &mut output)?;
        let which = if shown == 0 { "the first".to_owned() } else { format!("number {}", shown + 1) };
        writeln!(
            output,
            "\n{FAINT}Shown above: {which}{}. --seed N takes other prompts, --prompt TEXT your own.{FAINT:#}",
            match telling {
                Telling::Function => format!(
                    ", for it is the first that `{}` gets right and another method wrong",
                    generations[0].method
                ),
                Telling::Syntax => ", for it is the first where some are sentences and others not".to_owned(),
                Telling::Nothing => String::new(),
            }
        )?;
    }
    Ok(())
}

fn heading(args: &Args, generator: &Generator, question: &Question, output: &mut dyn Write) -> Result<()> {
    let model = generator.model();
    writeln!(
        output,
        "{TITLE}Model{TITLE:#}     {}, {:.2} million parameters, {} tokens; {} slots, {} steps",
        model.kind().name(),
        model.n_parameters() as f64 / 1e6,
        model.vocabulary_size(),
        generator.n_slots,
        args.steps,
    )?;
    let grammar = match &args.grammar {
        Some(path) => path.display().to_string(),
        None => format!("that of the task `{}`", args.task.name()),
    };
    writeln!(output, "{TITLE}Grammar{TITLE:#}   {grammar}")?;
    writeln!(output, "{TITLE}Prompt{TITLE:#}    {}", question.prompt.trim_end())?;
    Ok(())
}

/// The canvas after each step: in place on a terminal, else one below the other.
fn fill(
    generator: &Generator,
    generation: &Generation,
    delay: Duration,
    output: &mut dyn Write,
) -> Result<()> {
    let terminal = Some(Term::stdout()).filter(Term::is_term);
    let width = terminal.as_ref().map_or(WIDTH, |terminal| usize::from(terminal.size().1)).max(2 * INDENT);
    writeln!(
        output,
        "\n{TITLE}Step by step{TITLE:#}  {}: {KEPT}kept{KEPT:#}, {FORCED}no other token left{FORCED:#}, \
         {FAINT}▢ open, ∎ the end{FAINT:#}",
        generation.method
    )?;
    let steps = steps(&generation.decoded.trace, generation.decoded.canvas.slots().len());
    let mut n_lines = 0;
    for (number, step) in steps.iter().enumerate() {
        let lines = lines(generator, number + 1, step, width);
        if let Some(terminal) = &terminal {
            output.flush()?;
            terminal.clear_last_lines(n_lines)?;
        }
        for line in &lines {
            writeln!(output, "{line}")?;
        }
        n_lines = lines.len();
        if terminal.is_some() && number + 1 < steps.len() {
            sleep(delay);
        }
    }
    let ended = if generation.decoded.is_stuck { "; then it was stuck" } else { "" };
    writeln!(
        output,
        "{:INDENT$}{} proposals, {} refused; in {} slots no other token was left{ended}",
        "", generation.n_proposed, generation.n_refused, generation.n_forced
    )?;
    Ok(())
}

/// A step: the canvas, and below it what was refused.
fn lines(generator: &Generator, number: usize, step: &Step, width: usize) -> Vec<String> {
    let vocabulary = generator.vocabulary();
    let mut pieces: Vec<(String, Style)> = Vec::new();
    let is_end = |cell: &Cell| cell.token.is_some_and(|token| vocabulary.eos().contains(&token));
    // Ends behind the first one say nothing.
    let n_shown = step.cells.iter().rposition(|cell| !is_end(cell)).map_or(1, |last| last + 2);
    for cell in step.cells.iter().take(n_shown) {
        let style = match cell.came {
            Came::Before if cell.token.is_none() => FAINT,
            Came::Before => Style::new(),
            Came::Kept => KEPT,
            Came::Forced => FORCED,
            Came::Filled => FAINT,
        };
        let text = match cell.token {
            None => "▢".to_owned(),
            Some(_) if is_end(cell) => "∎".to_owned(),
            Some(token) => unquoted(&vocabulary.display_token(token)),
        };
        pieces.push((text, style));
    }
    let mut lines = wrapped(&pieces, &format!("{number:>3} "), width);
    for proposal in step.refused.iter().take(SHOWN) {
        lines.push(format!(
            "{:INDENT$}{NO}✗{NO:#} {FAINT}slot {}: {} refused, which the model gave {:.0} %{FAINT:#}",
            "",
            proposal.slot,
            vocabulary.display_token(proposal.token),
            100.0 * proposal.log_prob.exp()
        ));
    }
    if step.refused.len() > SHOWN {
        lines.push(format!("{:INDENT$}{FAINT}  and {} more{FAINT:#}", "", step.refused.len() - SHOWN));
    }
    lines
}

/// A token as it is displayed, less the quotes around it.
fn unquoted(shown: &str) -> String {
    let inner = shown.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or(shown).replace("\\\"", "\"").replace("\\\\", "\\")
}

/// Pieces one behind the other, broken where the line ends.
fn wrapped(pieces: &[(String, Style)], first: &str, width: usize) -> Vec<String> {
    let (mut lines, mut line, mut column) = (Vec::new(), first.to_owned(), INDENT);
    for (text, style) in pieces {
        let mut part = String::new();
        for character in text.chars() {
            if column + 1 >= width {
                line.push_str(&format!("{style}{part}{style:#}"));
                lines.push(std::mem::replace(&mut line, " ".repeat(INDENT)));
                part.clear();
                column = INDENT;
            }
            part.push(character);
            column += 1;
        }
        line.push_str(&format!("{style}{part}{style:#}"));
    }
    lines.push(line);
    lines
}

/// A text, whether it is a sentence, and if not where it stops.
fn outcome(generation: &Generation, width: usize, output: &mut dyn Write) -> Result<()> {
    let (method, Ending { text, reading, .. }) = (&generation.method, &generation.ending);
    let tick = if generation.is_syntactic() { format!("{YES}✓{YES:#}") } else { format!("{NO}✗{NO:#}") };
    match reading {
        Some(reading) if !reading.is_sentence => {
            let excerpt = Excerpt::new(text.as_bytes(), reading.length);
            let indent = width + excerpt.indent;
            writeln!(output, "  {method:width$} {tick} {}", excerpt.shown)?;
            let expected = expected(&reading.expected, 5);
            writeln!(output, "  {:indent$}   {NO}^{NO:#} {FAINT}{expected}{FAINT:#}", "")?;
        }
        _ => writeln!(output, "  {method:width$} {tick} {text}")?,
    }
    let said = match generation.functional {
        Some(true) => "a sentence, and right",
        Some(false) if generation.is_syntactic() => "a sentence, but not what the prompt asks for",
        Some(false) => "no sentence",
        None if generation.is_syntactic() => "a sentence",
        None => "no sentence",
    };
    let chance = generation.log_prob.map_or(String::new(), |sum| format!("; log-probability {sum:.1}"));
    writeln!(output, "  {:width$}   {FAINT}{said}{chance}{FAINT:#}", "")?;
    Ok(())
}

fn counts(all: &[Vec<Generation>], width: usize, output: &mut dyn Write) -> Result<()> {
    writeln!(output, "\n{TITLE}Over {} prompts{TITLE:#}", all.len())?;
    writeln!(
        output,
        "  {FAINT}{:width$}  sentences  right  refused  model ms  constraint ms   (means of a text){FAINT:#}",
        "method"
    )?;
    for at in 0..all[0].len() {
        let of_method = || all.iter().map(|generations| &generations[at]);
        let mean = |value: fn(&Generation) -> f64| of_method().map(value).sum::<f64>() / all.len() as f64;
        let is_known = of_method().any(|generation| generation.functional.is_some());
        let n_right = of_method().filter(|generation| generation.is_right()).count();
        writeln!(
            output,
            "  {:width$}  {:>9}  {:>5}  {:>7.1}  {:>8.1}  {:>13.1}",
            all[0][at].method,
            of_method().filter(|generation| generation.is_syntactic()).count(),
            if is_known { n_right.to_string() } else { "?".to_owned() },
            mean(|generation| generation.n_refused as f64),
            mean(|generation| generation.model_us / 1e3),
            mean(|generation| generation.constraint_us / 1e3),
        )?;
    }
    Ok(())
}
