use std::io::{BufWriter, Write};

use anygram::Language;
use anygram::Vocabulary;
use anygram_bits::work::Work;
use anygram_grammar::ir::{Grammar, Symbol, TerminalId};
use anygram_grammar::normal::{NormalForm, NormalId};
use anygram_left_to_right::frontier::{Frontier, Stepper};
use anygram_left_to_right::sequences::{Rows, Sequences};
use anygram_left_to_right::tokens::MASK_BITS;
use anyhow::{Result, bail};
use clap::{Subcommand, ValueEnum};

use crate::input::{GrammarArgs, VocabArgs};

mod doubts;

/// Print what grammars are compiled to.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  anygram debug grammar --grammar sql.lark                what was read, in Lark's notation
  anygram debug cfg --grammar sql.lark                    the rules that are left
  anygram debug normal --grammar sql.lark                 how large its normal forms are
  anygram debug automaton -g sql.lark | dot -Tsvg         a drawing of the terminals
  anygram debug boundaries -g sql.lark --lexer longest
  anygram debug doubts -g sql.lark -v qwen.tiktoken.gz queries.tok.jsonl
  anygram debug chart --grammar sql.lark 'SELECT na'";

#[derive(Subcommand)]
enum What {
    /// The grammar as the front end read it.
    Grammar(GrammarArgs),
    /// The reduced grammar that the recognizer works on.
    Cfg(GrammarArgs),
    /// The sizes of its normal forms: symbols, rules, and left children (the engine `valiant` stores rows for
    /// these).
    Normal {
        #[command(flatten)]
        grammar: GrammarArgs,
        /// Also list the rules of a form.
        #[arg(long, value_enum)]
        rules: Option<FormChoice>,
    },
    /// The automaton of all terminals, in the DOT language.
    Automaton(GrammarArgs),
    /// The boundaries between pieces, and what cannot follow each of them.
    Boundaries(GrammarArgs),
    /// The trees of terminal sequences that tokens can contain after a text, and how much of them the parser
    /// reaches.
    Sequences {
        #[command(flatten)]
        grammar: GrammarArgs,
        #[command(flatten)]
        vocab: VocabArgs,
        /// Nodes that the search reaches breadth first before it continues depth first.
        #[arg(long, default_value_t = 32, value_name = "N")]
        workers: usize,
        /// The text.
        #[arg(value_name = "TEXT", default_value = "")]
        text: String,
    },
    /// How many masks of texts a GPU would leave in doubt, so that the CPU has to compute them (docs/gpu.md),
    /// and which tokens are most often in doubt.
    Doubts(doubts::Args),
    /// The readings of a text, byte by byte, with the recognizer's states.
    Chart {
        #[command(flatten)]
        grammar: GrammarArgs,
        /// The text.
        #[arg(value_name = "TEXT")]
        text: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum FormChoice {
    /// C2F+ε.
    Binary,
    /// Chomsky's.
    Chomsky,
}

pub fn run(args: &Args) -> Result<bool> {
    let output = &mut BufWriter::new(std::io::stdout().lock());
    match &args.what {
        What::Grammar(grammar) => {
            let (source, format) = grammar.source()?;
            let read =
                grammar.compiler()?.read(format, &source).map_err(|error| grammar.explain(error, &source))?;
            write!(output, "{read}")?;
        }
        What::Cfg(grammar) => cfg(grammar, output)?,
        What::Normal { grammar, rules } => normal(grammar, *rules, output)?,
        What::Automaton(grammar) => automaton(grammar, output)?,
        What::Boundaries(grammar) => boundaries(grammar, output)?,
        What::Sequences { grammar, vocab, workers, text } => {
            sequences(grammar, &vocab.vocabulary()?, *workers, text.as_bytes(), output)?;
        }
        What::Doubts(args) => doubts::run(args, output)?,
        What::Chart { grammar, text } => chart(grammar, text.as_bytes(), output)?,
    }
    output.flush()?;
    Ok(true)
}

/// The name of a symbol; those that reduction adds have none in the grammar.
fn name(grammar: &Grammar, symbol: Symbol) -> String {
    match symbol {
        Symbol::Nonterminal(n) if n.index() >= grammar.nonterminals.len() => format!("n{}", n.0),
        symbol => grammar.symbol_name(symbol).to_owned(),
    }
}

fn cfg(args: &GrammarArgs, output: &mut dyn Write) -> Result<()> {
    let language = args.language()?;
    let cfg = &language.lexing().cfg;
    let name = |symbol| name(language.grammar(), symbol);
    writeln!(output, "// start: {}", name(Symbol::Nonterminal(cfg.start)))?;
    for automaton in &cfg.automata {
        let lhs = name(Symbol::Nonterminal(automaton.lhs));
        writeln!(output, "// {lhs}: what an automaton gives; its rules below derive at least that")?;
    }
    for rule in &cfg.rules {
        let rhs: Vec<String> = rule.rhs.iter().map(|&symbol| name(symbol)).collect();
        writeln!(output, "{}: {}", name(Symbol::Nonterminal(rule.lhs)), rhs.join(" "))?;
    }
    Ok(())
}

fn normal(args: &GrammarArgs, listed: Option<FormChoice>, output: &mut dyn Write) -> Result<()> {
    let language = args.language()?;
    let cfg = &language.lexing().cfg;
    let chomsky =
        || NormalForm::chomsky(cfg, &mut Work::new(language.limits().compile_steps, "compile_steps"));
    if let Some(choice) = listed {
        let form = match choice {
            FormChoice::Binary => NormalForm::binary(cfg),
            FormChoice::Chomsky => chomsky()?,
        };
        return rules(&form, &language, output);
    }
    writeln!(
        output,
        "{:<10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "form", "symbols", "stored", "rules", "of two", "unit", "lexical"
    )?;
    for (name, form) in [("C2F+ε", NormalForm::binary(cfg)), ("Chomsky", chomsky()?)] {
        let (symbols, stored) = (form.used_symbols().count(), form.left_children().len());
        let (n_rules, binary, unit, lexical) =
            (form.n_rules(), form.binary.len(), form.unit.len(), form.lexical.len());
        writeln!(
            output,
            "{name:<10}{symbols:>10}{stored:>10}{n_rules:>10}{binary:>10}{unit:>10}{lexical:>10}"
        )?;
    }
    Ok(())
}

/// The rules of a normal form, with suffixes of rules in angle brackets.
fn rules(form: &NormalForm, language: &Language, output: &mut dyn Write) -> Result<()> {
    let (cfg, grammar) = (&language.lexing().cfg, language.grammar());
    let spelled = |symbol: NormalId| {
        let names: Vec<String> =
            form.spelled(cfg, symbol).into_iter().map(|symbol| name(grammar, symbol)).collect();
        if names.len() == 1 { names.concat() } else { format!("⟨{}⟩", names.join(" ")) }
    };
    for rule in &form.binary {
        writeln!(output, "{} -> {} {}", spelled(rule.parent), spelled(rule.left), spelled(rule.right))?;
    }
    for &(parent, child) in &form.unit {
        writeln!(output, "{} -> {}", spelled(parent), spelled(child))?;
    }
    for &(parent, terminal) in &form.lexical {
        writeln!(output, "{} -> {}", spelled(parent), name(grammar, Symbol::Terminal(terminal)))?;
    }
    for symbol in form.nullable.iter().map(NormalId::new) {
        writeln!(output, "{} -> ε", spelled(symbol))?;
    }
    Ok(())
}

fn automaton(args: &GrammarArgs, output: &mut dyn Write) -> Result<()> {
    let language = args.language()?;
    language.needs_all_states("drawings of automata")?;
    let union = &language.lexing().lexicon.union;
    writeln!(output, "digraph terminals {{\n  rankdir = LR;")?;
    for state in 1..union.n_states() as u32 {
        let labels: Vec<&str> =
            union.accepts(state).iter().map(|at| language.terminal_name(TerminalId::new(at))).collect();
        let shape = if labels.is_empty() { "circle" } else { "doublecircle" };
        writeln!(output, "  {state} [shape = {shape}, xlabel = {:?}];", labels.join(" "))?;
        let mut targets = std::collections::BTreeMap::<u32, Vec<u8>>::new();
        for byte in 0..=255 {
            let target = union.step(state, union.class(byte));
            if target != 0 {
                targets.entry(target).or_default().push(byte);
            }
        }
        for (target, bytes) in targets {
            writeln!(output, "  {state} -> {target} [label = {:?}];", ranges(&bytes))?;
        }
    }
    writeln!(output, "}}")?;
    Ok(())
}

/// Bytes as ranges: `a-z_`.
fn ranges(bytes: &[u8]) -> String {
    let mut text = String::new();
    for run in bytes.chunk_by(|a, b| a + 1 == *b) {
        let show = |byte: u8| std::ascii::escape_default(byte).to_string();
        match run {
            [only] => text += &show(*only),
            [first, .., last] => text += &format!("{}-{}", show(*first), show(*last)),
            [] => {}
        }
    }
    text
}

fn boundaries(args: &GrammarArgs, output: &mut dyn Write) -> Result<()> {
    let language = args.language()?;
    let mut work = Work::new(language.limits().compile_steps, "compile_steps");
    let Some(boundaries) = language.lexing().explored(&mut work)? else {
        writeln!(output, "in this lexer mode every piece may follow every other")?;
        return Ok(());
    };
    let n_terminals = language.grammar().terminals.len();
    for (debt, class) in boundaries.classes() {
        let node = boundaries.node(1, debt);
        let next = node
            .map(|node| boundaries.finish(node))
            .into_iter()
            .flat_map(|set| set.iter())
            .filter(|&bit| bit < n_terminals);
        let names: Vec<&str> = next.map(|at| language.terminal_name(TerminalId::new(at))).collect();
        writeln!(
            output,
            "boundary {} class {}: must not match from states {:?}; can be followed by {}",
            debt.0,
            class.0,
            boundaries.debt(debt),
            names.join(" ")
        )?;
    }
    Ok(())
}

fn sequences(
    args: &GrammarArgs,
    vocabulary: &Vocabulary,
    workers: usize,
    text: &[u8],
    output: &mut dyn Write,
) -> Result<()> {
    let language = args.language()?;
    let mut stepper = Stepper::new(&language)?;
    let mut frontier = stepper.start(&language)?.unwrap_or_default();
    for &byte in text {
        let mut next = Frontier::new();
        stepper.begin(&language);
        stepper.step(&language, &frontier, byte, &mut next)?;
        if !stepper.is_viable(&language, &next)? {
            bail!("the text is no viable prefix");
        }
        frontier = next;
    }
    let mut words = vec![0; vocabulary.len().div_ceil(MASK_BITS)];
    let mut doubts = words.clone();
    for (at, config) in frontier.iter().enumerate() {
        stepper.begin(&language);
        let n_words = words.len();
        let tree = Sequences::new(&mut stepper, &language, vocabulary.trie(), config.lexeme, n_words)?;
        let rows = &mut Rows { allowed: &mut words, doubts: &mut doubts };
        let search = tree.add_tokens(&mut stepper, config.state, workers, rows)?;
        writeln!(
            output,
            "reading {at}: {} sequences of at most {} ends of pieces, {} groups of tokens; {} sequences \
             reached, {} of them in breadth, then a stack of {}",
            tree.n_nodes(),
            tree.depth(),
            tree.nodes().map(|node| node.groups().len()).sum::<usize>(),
            search.reached,
            search.in_breadth,
            search.stack
        )?;
    }
    let allowed: u32 = words.iter().map(|word| word.count_ones()).sum();
    let open: u32 = words.iter().zip(&doubts).map(|(word, doubts)| (doubts & !word).count_ones()).sum();
    writeln!(
        output,
        "{allowed} of {} tokens may follow; the parser has to be asked about {open}",
        vocabulary.len()
    )?;
    Ok(())
}

fn chart(args: &GrammarArgs, text: &[u8], output: &mut dyn Write) -> Result<()> {
    let language = args.language()?;
    let name = |symbol| name(language.grammar(), symbol);
    let mut stepper = Stepper::new(&language)?;
    let mut frontier = stepper.start(&language)?.unwrap_or_default();
    for position in 0..=text.len() {
        let before = String::from_utf8_lossy(&text[..position]).into_owned();
        writeln!(
            output,
            "after {before:?}{}",
            if stepper.is_sentence(&frontier) { " (a sentence)" } else { "" }
        )?;
        for config in &frontier {
            let kind = if stepper.transducer().is_boundary(config.lexeme) { "next" } else { "in progress" };
            let expected = stepper.expected(&language, &[*config]).join(" ");
            writeln!(output, "  state {}, lexeme {}, {kind}: {expected}", config.state.0, config.lexeme.0)?;
        }
        let Some(&byte) = text.get(position) else { break };
        let mut next = Frontier::new();
        stepper.step(&language, &frontier, byte, &mut next)?;
        if !stepper.is_viable(&language, &next)? {
            writeln!(output, "no sentence goes on with {:?}", char::from(byte))?;
            break;
        }
        frontier = next;
    }
    for state in 0..stepper.recognizer().n_states() {
        writeln!(output, "state {state}")?;
        write!(output, "{}", stepper.recognizer().dump(anygram_recognizer::StateId::new(state), &name))?;
    }
    Ok(())
}
