use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anygram::{Canvas, Constraint, Decision, End, Filling, Slot, Solver, TokenId, Vocabulary};
use anyhow::{Context, Result, bail, ensure};

use crate::input::{self, GrammarArgs, VocabArgs};

/// Infilling: complete a text with holes and gaps
///
/// `▢` stands for one token, `…` for any number of tokens. Prints completions in which the whole text is a
/// sentence, one a line unless they contain line ends. What was filled stands in `⟦ ⟧`, or in color on a
/// terminal. The order of completions says nothing about how likely they are: there is no model. The exit
/// status is 1 if there is no completion.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    grammar: GrammarArgs,
    #[command(flatten)]
    vocab: VocabArgs,
    /// What stands for one token.
    #[arg(long, value_name = "TEXT", default_value = "▢")]
    hole: String,
    /// What stands for any number of tokens.
    #[arg(long, value_name = "TEXT", default_value = "…")]
    gap: String,
    /// Print N completions, each with another token in the first hole.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    count: usize,
    /// The text is a prefix of a sentence, not a whole one.
    #[arg(long)]
    prefix: bool,
    /// Read the text from a file instead.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The text.
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  anygram fill -g sql.lark -v builtin 'SELECT ▢ FROM t…'
  anygram fill -g sql.lark -v qwen.tiktoken.gz -n 5 'SELECT name FROM▢▢WHERE id = 7'
  anygram fill -g c.lark -v builtin --hole @@ --file main.c";

pub fn run(args: &Args) -> Result<bool> {
    let text = match (&args.text, &args.file) {
        (Some(text), None) => text.clone(),
        (None, Some(file)) => String::from_utf8(input::read(file)?).context("the text is not UTF-8")?,
        (Some(_), Some(_)) => bail!("given a text and --file; leave one of them out"),
        (None, None) => bail!("give a text, or --file with one"),
    };
    ensure!(!args.hole.is_empty() && !args.gap.is_empty(), "the markers --hole and --gap cannot be empty");
    ensure!(args.hole != args.gap, "the markers --hole and --gap are the same: `{}`", args.hole);
    let constraint = args.grammar.constraint(args.grammar.language()?, args.vocab.vocabulary()?)?;
    let slots = slots(args, &text, constraint.vocabulary())?;
    let end = if args.prefix { End::Prefix { remaining: None } } else { End::Sentence };
    let mut canvas = Canvas::new(slots, end);
    let mut solver = Solver::new(&constraint)?;
    let mut output = anstream::stdout().lock();
    let in_color = std::io::stdout().is_terminal();
    let Some(found) = complete(&mut solver, &canvas)? else { return Ok(false) };
    writeln!(output, "{}", shown(&constraint, &canvas, &found, in_color))?;
    let first = canvas.holes().next();
    if let (Some(hole), true) = (first, args.count > 1) {
        let admissible = solver.admissible(&canvas)?;
        let used = found.get(hole).cloned();
        let is_text = |token: &TokenId| constraint.vocabulary().bytes(*token).is_some();
        let others = (0..constraint.vocabulary().len())
            .map(TokenId::new)
            .filter(|token| admissible.get(0, *token).is_yes());
        let others = others.filter(|token| is_text(token) && used != Some(Filling::Token(*token)));
        for token in others.take(args.count - 1) {
            canvas.set(hole, token)?;
            if let Some(mut found) = complete(&mut solver, &canvas)? {
                canvas.clear(hole)?;
                found[hole] = Filling::Token(token);
                writeln!(output, "{}", shown(&constraint, &canvas, &found, in_color))?;
            }
        }
    }
    Ok(true)
}

fn complete(solver: &mut Solver, canvas: &Canvas) -> Result<Option<Vec<Filling>>> {
    match solver.completable(canvas)? {
        Decision::Yes(witness) => Ok(Some(witness.slots)),
        Decision::No => {
            anstream::eprintln!(
                "no choice of tokens makes a sentence of this text; try a gap in place of holes"
            );
            Ok(None)
        }
        Decision::Unknown(undecided) => bail!("not decided: {undecided}"),
    }
}

/// The text between markers as the vocabulary would cut it.
fn slots(args: &Args, text: &str, vocabulary: &Vocabulary) -> Result<Vec<Slot>> {
    let mut slots = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let next =
            [(&args.hole, Slot::Hole), (&args.gap, Slot::Gap)].into_iter().filter_map(|(marker, slot)| {
                let at = rest.find(&**marker)?;
                Some((at, std::cmp::Reverse(marker.len()), marker.len(), slot))
            });
        let next = next.min_by_key(|&(at, longest, ..)| (at, longest));
        let (fixed, marker) = rest.split_at(next.map_or(rest.len(), |(at, ..)| at));
        slots.extend(vocabulary.encode(fixed)?.into_iter().map(Slot::Fixed));
        rest = match next {
            Some((_, _, length, slot)) => {
                slots.push(slot);
                &marker[length..]
            }
            None => "",
        };
    }
    Ok(slots)
}

fn shown(constraint: &Constraint, canvas: &Canvas, found: &[Filling], in_color: bool) -> String {
    let vocabulary = constraint.vocabulary();
    let mut bytes = Vec::new();
    let style = anstyle::AnsiColor::Green.on_default().bold();
    let (open, close) = if in_color {
        (style.render().to_string(), style.render_reset().to_string())
    } else {
        ("⟦".into(), "⟧".into())
    };
    let mut is_open = false;
    for (slot, filling) in canvas.slots().iter().zip(found) {
        let is_filled = !matches!(slot, Slot::Fixed(_));
        if is_filled != is_open {
            bytes.extend_from_slice(if is_filled { open.as_bytes() } else { close.as_bytes() });
            is_open = is_filled;
        }
        let tokens = match filling {
            Filling::Token(token) => std::slice::from_ref(token),
            Filling::Tokens(tokens) => tokens,
        };
        for &token in tokens {
            match vocabulary.bytes(token) {
                Some(text) => bytes.extend_from_slice(text),
                None => bytes.extend_from_slice(vocabulary.display_token(token).as_bytes()),
            }
        }
    }
    if is_open {
        bytes.extend_from_slice(close.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
