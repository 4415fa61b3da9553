use std::path::PathBuf;

use anygram::{Error, Language, LexerMode};
use anyhow::Result;

use crate::input::{self, GrammarArgs};

/// Explain a grammar, or say of files whether they are sentences.
///
/// Without files: sizes, warnings with their places, the lexer mode and the engine. With files: for each whether it is a
/// sentence, and if not where it stops and what could have followed; the exit status is 1 if any is not.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    grammar: GrammarArgs,
    /// Texts to check, each a whole file; `-` is standard input.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub fn run(args: &Args) -> Result<bool> {
    let (source, format) = args.grammar.source()?;
    let compiler = args.grammar.compiler();
    let grammar = compiler.read(format, &source).map_err(|error| args.grammar.explain(error.into(), &source))?;
    let language = compiler.compile_grammar(grammar).map_err(|error: Error| args.grammar.explain(error, &source))?;
    if args.files.is_empty() {
        for warning in language.warnings() {
            let place = warning.span.as_ref().map_or(0, |span| source[..span.start].matches('\n').count() + 1);
            eprintln!("{}:{place}: warning: {}", args.grammar.grammar.display(), warning.message);
        }
        explain(&language);
        return Ok(true);
    }
    let mut all = true;
    for file in &args.files {
        let text = if file.as_os_str() == "-" {
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut text)?;
            text
        } else {
            input::read(file)?
        };
        let reading = language.read(&text)?;
        all &= reading.is_sentence;
        println!("{}: {}", file.display(), verdict(&text, &reading));
    }
    Ok(all)
}

fn verdict(text: &[u8], reading: &anygram::Reading) -> String {
    if reading.is_sentence {
        return "sentence".to_owned();
    }
    let before = String::from_utf8_lossy(&text[..reading.length]);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let expected = match &*reading.expected {
        [] => "nothing could follow".to_owned(),
        names => format!("expected {}", names.join(", ")),
    };
    if reading.is_viable {
        format!("not a sentence yet: it ends at line {line}, column {column}; {expected}")
    } else {
        let rest = String::from_utf8_lossy(&text[reading.length..]);
        let found: String = rest.chars().take(12).collect();
        format!("not a sentence: it stops at line {line}, column {column}, at {found:?}; {expected}")
    }
}

fn explain(language: &Language) {
    let (grammar, lexing) = (language.grammar(), language.lexing());
    let (cfg, union) = (&lexing.cfg, &lexing.lexicon.union);
    let ignored: Vec<&str> = lexing.lexicon.ignored.iter().map(|at| grammar.terminals[at].name.as_str()).collect();
    println!("terminals       {} used, {} in all", lexing.lexicon.used.count(), grammar.terminals.len());
    println!("ignored         {}", if ignored.is_empty() { "none".to_owned() } else { ignored.join(", ") });
    println!("nonterminals    {}", cfg.reachable().count());
    println!("rules           {}", cfg.rules.len());
    println!("cyclic          {}", names(grammar, &cfg.cyclic()));
    println!("nullable        {}", names(grammar, &cfg.nullable()));
    println!("shortest        {} terminals", cfg.minimum_lengths()[cfg.start.index()]);
    println!("lexer           {:?}, {} states, {} byte classes", language.mode(), union.n_states(), union.n_classes());
    if let Some(boundaries) = lexing.boundaries() {
        println!("boundaries      {} in {} classes", boundaries.n_boundaries(), boundaries.n_classes());
        let independent = if boundaries.is_independent() {
            "what a parser needs can always be spelled".to_owned()
        } else {
            match (language.mode(), lexing.product()) {
                (LexerMode::Longest, Some(product)) => {
                    format!("pieces restrict what can follow them; the grammar with that knowledge has {} rules", product.cfg.rules.len())
                }
                _ => "pieces restrict what can follow them; completions are searched for where that matters".to_owned(),
            }
        };
        println!("completions     {independent}");
    }
    println!("engine          {}", language.engine().name());
    println!("memory          {:.1} MB", language.memory_usage() as f64 / 1e6);
}

fn names(grammar: &anygram::Grammar, set: &anygram::parts::bits::BitSet) -> String {
    const SHOWN: usize = 8;
    let named: Vec<&str> = set
        .iter()
        .filter_map(|at| grammar.nonterminals.get(at))
        .filter(|nonterminal| !nonterminal.synthetic)
        .map(|nonterminal| nonterminal.name.as_str())
        .collect();
    match named.len() {
        0 => "none".to_owned(),
        n if n <= SHOWN => named.join(", "),
        n => format!("{} and {} more", named[..SHOWN].join(", "), n - SHOWN),
    }
}
