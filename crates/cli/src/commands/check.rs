use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use anygram::{Language, LexerMode, Reading};
use anyhow::{Context, Result};

use crate::excerpt::{Excerpt, listing};
use crate::input::{self, GrammarArgs};

/// Explain a grammar, or say of files whether they are sentences.
///
/// Without files: sizes, warnings with their places, the lexer mode and the engine. With files: for each whether it is a sentence, and if not
/// where it stops and what could have stood there. The exit status is 1 if any is not.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    grammar: GrammarArgs,
    /// Texts to check, each a whole file; `-` is standard input.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  anygram check --grammar sql.lark
  anygram check --grammar sql.lark a.sql b.sql
  echo -n 'SELECT name' | anygram check --grammar sql.lark -
  anygram check --grammar sql.lark --start condition --lexer longest where.txt";

const YES: Style = AnsiColor::Green.on_default();
const NOT_YET: Style = AnsiColor::Yellow.on_default();
const NO: Style = AnsiColor::Red.on_default();

/// Names that a list shows before it says how many more there are.
const SHOWN: usize = 12;

pub fn run(args: &Args) -> Result<bool> {
    let (source, format) = args.grammar.source()?;
    let compiler = args.grammar.compiler();
    let language = compiler.compile(format, &source).map_err(|error| args.grammar.explain(error, &source))?;
    let mut output = anstream::stdout().lock();
    if args.files.is_empty() {
        warn(&language, &args.grammar.grammar, &source);
        explain(&language, &mut output)?;
        return Ok(true);
    }
    let mut all = true;
    for file in &args.files {
        let text = read(file)?;
        let reading = language.read(&text).with_context(|| file.display().to_string())?;
        all &= reading.is_sentence;
        writeln!(output, "{}: {}", file.display(), verdict(&text, &reading))?;
    }
    Ok(all)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    if file.as_os_str() != "-" {
        return input::read(file);
    }
    let mut text = Vec::new();
    std::io::stdin().lock().read_to_end(&mut text).context("standard input")?;
    Ok(text)
}

fn verdict(text: &[u8], reading: &Reading) -> String {
    if reading.is_sentence {
        return format!("{YES}sentence{YES:#}");
    }
    let excerpt = Excerpt::new(text, reading.length);
    let place = format!("line {}, column {} (byte {})", excerpt.line, excerpt.column, reading.length);
    let expected = match &*reading.expected {
        [] => "nothing can follow".to_owned(),
        names => format!("expected {}", listing(names, SHOWN)),
    };
    let lines = excerpt.render(&expected);
    if reading.is_viable {
        format!("{NOT_YET}not a sentence yet{NOT_YET:#}: the text ends at {place}\n{lines}")
    } else {
        format!("{NO}not a sentence{NO:#}: it stops at {place}\n{lines}")
    }
}

/// Warnings on standard error; if nobody reads that, nobody is warned.
fn warn(language: &Language, file: &Path, source: &str) {
    let mut output = anstream::stderr().lock();
    for warning in language.warnings() {
        let place = warning.span.as_ref().map_or_else(String::new, |span| {
            let Excerpt { line, column, .. } = Excerpt::new(source.as_bytes(), span.start);
            format!(":{line}:{column}")
        });
        let _ = writeln!(output, "{}{place}: {NOT_YET}warning{NOT_YET:#}: {}", file.display(), warning.message);
    }
}

fn explain(language: &Language, output: &mut dyn Write) -> Result<()> {
    let (grammar, lexing) = (language.grammar(), language.lexing());
    let (cfg, union) = (&lexing.cfg, &lexing.lexicon.union);
    let mut line = |name: &str, value: String| writeln!(output, "{name:<14}{value}");

    let ignored: Vec<String> = lexing.lexicon.ignored.iter().map(|at| grammar.terminals[at].name.clone()).collect();
    line("start", grammar.nonterminals[grammar.start.index()].name.clone())?;
    line("terminals", format!("{} used, {} in all", lexing.lexicon.used.count(), grammar.terminals.len()))?;
    line("ignored", if ignored.is_empty() { "none".to_owned() } else { listing(&ignored, SHOWN) })?;
    let written = grammar.nonterminals.iter().filter(|nonterminal| !nonterminal.is_synthetic()).count();
    let made_up = match grammar.nonterminals.len() - written {
        0 => String::new(),
        n => format!(", and {n} made up for groups and repetitions"),
    };
    line("nonterminals", format!("{written}{made_up}"))?;
    line("rules", format!("{} used, {} in all", cfg.rules.len(), grammar.rules.len()))?;
    line("cyclic", names(grammar, &cfg.cyclic()))?;
    line("nullable", names(grammar, &cfg.nullable()))?;
    let shortest = cfg.minimum_lengths()[cfg.start.index()];
    line("shortest", format!("a sentence of {shortest} {}", if shortest == 1 { "terminal" } else { "terminals" }))?;
    let mode = language.mode().name();
    line("lexer", format!("{mode}, {} states, {} byte classes", union.n_states(), union.n_classes()))?;
    if let Some(completions) = completions(language) {
        line("completions", completions.to_owned())?;
    }
    line("engine", language.engine().name().to_owned())?;
    line("memory", format!("{} kB", language.memory_usage().div_ceil(1000)))?;
    Ok(())
}

/// Whether lexing can stand in the way of what the parser needs.
fn completions(language: &Language) -> Option<&'static str> {
    let boundaries = language.lexing().boundaries()?;
    Some(match language.mode() {
        _ if boundaries.is_independent() => "whatever the rules want next can always be spelled",
        LexerMode::Longest => {
            "some pieces restrict what can follow them; the rules were multiplied with that knowledge"
        }
        _ => "some pieces restrict what can follow them; completions are searched for where that matters",
    })
}

/// The names that the author of the grammar gave.
fn names(grammar: &anygram::Grammar, set: &anygram::parts::bits::BitSet) -> String {
    let given =
        set.iter().filter_map(|at| grammar.nonterminals.get(at)).filter(|nonterminal| !nonterminal.is_synthetic());
    let names: Vec<String> = given.map(|nonterminal| nonterminal.name.clone()).collect();
    if names.is_empty() { "none".to_owned() } else { listing(&names, SHOWN) }
}
