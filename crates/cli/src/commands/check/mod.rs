pub mod pointer;
pub mod refusal;
pub mod report;
mod schema;
pub mod tree;

use std::io::Write;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use anygram::GrammarFormat;
use anygram_left_to_right::explain::explain;
use anygram_lexer::words::Words;
use anyhow::{Context, Result};

use crate::input::{self, GrammarArgs};
use refusal::Verdict;

/// Explain a grammar, or check whether files are valid.
///
/// Without files: sizes, the lexer mode and the engine, an example, warnings with their places, and hints at
/// what makes sentences ambiguous; of a JSON schema also what its parts cost, and which change nothing. With
/// files: whether each file is a sentence of the grammar; if not, where it stops, what the grammar expected
/// there, and in which rule. The exit status is 1 if any file is not.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    grammar: GrammarArgs,
    /// Print N random sentences of the grammar.
    #[arg(long, value_name = "N")]
    examples: Option<usize>,
    /// The seed of the random choices: equal seeds give equal examples.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Print the parse tree of each valid file: by lines, or as JSON (`--tree=json`). Of several trees it is
    /// the one that docs/meaning.md says.
    #[arg(long, value_enum, value_name = "pretty|json", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "pretty", conflicts_with = "examples")]
    tree: Option<tree::Style>,
    /// Texts to check, each a whole file; `-` is standard input.
    #[arg(value_name = "FILE", conflicts_with = "examples")]
    files: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  anygram check --grammar sql.lark
  anygram check --grammar sql.lark --examples 20
  anygram check --grammar sql.lark a.sql b.sql
  anygram check --grammar sql.lark --tree=json a.sql
  echo -n 'SELECT name' | anygram check --grammar sql.lark -
  anygram check --grammar sql.lark --start condition --lexer longest where.txt";

const YES: Style = AnsiColor::Green.on_default();
const NOT_YET: Style = AnsiColor::Yellow.on_default();
const NO: Style = AnsiColor::Red.on_default();

pub fn run(args: &Args) -> Result<bool> {
    args.grammar.refuse_device()?;
    let (source, format) = args.grammar.source()?;
    let compiler = args.grammar.compiler()?;
    let language = compiler.compile(format, &source).map_err(|error| args.grammar.explain(error, &source))?;
    let mut output = anstream::stdout().lock();
    let words = Words::new(&language.lexing().lexicon);
    if let Some(n) = args.examples {
        return report::examples(&language, n, args.seed, &mut output);
    }
    if args.files.is_empty() {
        let name = args.grammar.grammar.display().to_string();
        report::report(
            &report::Subject { language: &language, words: &words, name: &name, source: &source },
            &mut output,
        )?;
        if format == GrammarFormat::JsonSchema {
            schema::report(&source, &args.grammar.schema()?, &mut output)?;
        }
        return Ok(true);
    }
    let mut all = true;
    for file in &args.files {
        let text = input::read_or_stdin(file)?;
        let (reading, explanation) =
            explain(&language, &words, &text).with_context(|| file.display().to_string())?;
        all &= reading.is_sentence;
        if let Some(style) = args.tree.filter(|_| reading.is_sentence) {
            if style == tree::Style::Events {
                tree::events(language.clone(), &text, &mut output)
                    .with_context(|| file.display().to_string())?;
                continue;
            }
            let read = tree::read(&language, &text).with_context(|| file.display().to_string())?;
            tree::print(&language, &text, &read, style, &mut output)?;
            continue;
        }
        let verdict = match explanation {
            None => format!("{YES}sentence{YES:#}"),
            Some(explanation) => {
                let grammar = refusal::Source {
                    language: &language,
                    words: &words,
                    text: &source,
                    schema: &args.grammar.schema()?,
                };
                Verdict::new(&grammar, &text, &reading, &explanation).render()
            }
        };
        writeln!(output, "{}: {verdict}", file.display())?;
    }
    Ok(all)
}

/// A text between quotes, on one line, cut if it is long.
fn quoted(text: &[u8], longest: usize) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown: String = text.chars().take(longest).collect();
    let is_cut = shown.len() < text.len();
    shown = shown.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
    let shown: String = shown
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_unicode().collect() } else { vec![c] })
        .collect();
    let shown = if is_cut { format!("{shown}…") } else { shown };
    match (shown.contains('"'), shown.contains('\'')) {
        (true, false) => format!("'{shown}'"),
        (true, true) => format!("`{shown}`"),
        (false, _) => format!("\"{shown}\""),
    }
}
