use std::io::Write;
use std::time::Instant;

use anstyle::{AnsiColor, Style};
use anygram::{Compiler, Constraint, GrammarFormat, Language, Matcher, TokenId, Vocabulary};
use anygram_lexer::dfa::{DEAD, START};
use anyhow::Result;

use crate::excerpt::{Excerpt, expected, listing};

/// A tour on built-in data: check texts, show a token mask, refuse a wrong token.
///
/// Needs no files: the grammar is a small SQL, and the vocabulary has 1,508 tokens.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  anygram demo\n  anygram demo --grammar        the grammar, to copy and change"
)]
pub struct Args {
    /// Print the grammar of the demo, and nothing else.
    #[arg(long)]
    grammar: bool,
}

const GRAMMAR: &str = include_str!("../../demo/sql.lark");

/// What is checked: a sentence, the beginning of one, and neither.
const TEXTS: [&str; 3] = [
    "SELECT name, age FROM singer WHERE age > 20 AND NOT (age > 30) -- comments too",
    "SELECT country, COUNT(*) FROM singer GROUP BY country HAVING",
    "SELECT name FROM singer WHERE age > (SELECT AVG(age FROM singer)",
];
/// Where the mask is shown, and a token that goes wrong there at its second byte.
const PREFIX: &str = "SELECT name FROM singer WHERE age > (SELECT AVG(age";
const WRONG: &str = ");";
/// How many tokens of it are taken back, and what a fork makes a sentence of it with.
const BACK: usize = 5;
const ENDING: &str = ") FROM singer)";
/// What is decoded step by step.
const DECODED: &str = "SELECT name FROM singer LIMIT 10";

const TITLE: Style = AnsiColor::Cyan.on_default().bold();
const TEXT: Style = Style::new().bold();
const YES: Style = AnsiColor::Green.on_default();
const NOT_YET: Style = AnsiColor::Yellow.on_default();
const NO: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();

/// Terminal columns in use.
const WIDTH: usize = 100;
/// Terminals that a list names before it says how many more there are.
const SHOWN: usize = 8;

pub fn run(args: &Args) -> Result<bool> {
    let mut output = anstream::stdout().lock();
    if args.grammar {
        output.write_all(GRAMMAR.as_bytes())?;
        return Ok(true);
    }
    let start = Instant::now();
    let language = Compiler::default().compile(GrammarFormat::Lark, GRAMMAR)?;
    let compile_ms = start.elapsed().as_secs_f64() * 1e3;
    let constraint = Constraint::new(language, Vocabulary::builtin())?;

    overview(&constraint, compile_ms, &mut output)?;
    checks(constraint.language(), &mut output)?;
    mask(&constraint, &mut output)?;
    decoding(&constraint, &mut output)?;
    refusal(&constraint, &mut output)?;
    Ok(true)
}

fn overview(constraint: &Constraint, compile_ms: f64, output: &mut dyn Write) -> Result<()> {
    let (language, vocabulary) = (constraint.language(), constraint.vocabulary());
    let (grammar, cfg) = (language.grammar(), &language.lexing().cfg);
    let n_nonterminals =
        grammar.nonterminals.iter().filter(|nonterminal| !nonterminal.is_synthetic()).count();
    writeln!(
        output,
        "{TITLE}Grammar{TITLE:#}     a small SQL (anygram demo --grammar): {} terminals, {n_nonterminals} \
         nonterminals, {} rules",
        grammar.terminals.len(),
        cfg.rules.len()
    )?;
    let (mode, engine) = (language.mode().name(), language.engine().name());
    writeln!(output, "            compiled in {compile_ms:.1} ms; lexer mode {mode}, engine {engine}")?;
    writeln!(output, "{TITLE}Vocabulary{TITLE:#}  {} tokens, built in", thousands(vocabulary.len()))?;
    Ok(())
}

fn checks(language: &Language, output: &mut dyn Write) -> Result<()> {
    writeln!(output, "\n{TITLE}1  Is it a sentence?{TITLE:#}")?;
    for text in TEXTS {
        let reading = language.read(text.as_bytes())?;
        let expected = expected(&reading.expected, SHOWN);
        if reading.is_sentence {
            writeln!(output, "   {YES}✓{YES:#} {text}")?;
        } else if reading.is_viable {
            writeln!(output, "   {NOT_YET}…{NOT_YET:#} {text}\n     {FAINT}not yet: {expected}{FAINT:#}")?;
        } else {
            let indent = Excerpt::new(text.as_bytes(), reading.length).indent;
            writeln!(
                output,
                "   {NO}✗{NO:#} {text}\n     {:indent$}{NO}^{NO:#} {FAINT}{expected}{FAINT:#}",
                ""
            )?;
        }
    }
    Ok(())
}

fn mask(constraint: &Constraint, output: &mut dyn Write) -> Result<()> {
    let vocabulary = constraint.vocabulary();
    writeln!(output, "\n{TITLE}2  Which tokens may come after{TITLE:#}  {TEXT}{PREFIX}{TEXT:#}")?;
    let mut matcher = matcher_after(constraint, PREFIX)?;
    let (mask, first_us) = timed(|| matcher.mask())?;
    let (_, again_us) = timed(|| matcher.mask())?;
    let allowed = || mask.iter().filter(|&token| vocabulary.bytes(token).is_some());
    writeln!(
        output,
        "   {} of {}, the end of the text is {}among them; found in {first_us:.0} µs, a second time in \
         {again_us:.0} µs",
        allowed().count(),
        thousands(vocabulary.len()),
        if matcher.is_sentence() { "" } else { "not " },
    )?;
    let mut groups = [(0, Vec::new()), (0, Vec::new()), (0, Vec::new())];
    for token in allowed() {
        let (count, shown) = &mut groups[reach(constraint, PREFIX.as_bytes(), token) as usize];
        *count += 1;
        // Blanks and parts of characters count, but say little.
        if vocabulary.bytes(token).is_some_and(|bytes| bytes.iter().any(u8::is_ascii_graphic)) {
            shown.push(vocabulary.display_token(token));
        }
    }
    for (name, (count, shown)) in
        ["go on with age", "one new piece", "several pieces"].into_iter().zip(&groups)
    {
        sample(output, &format!("{name:<14} {count:>4}"), shown, *count)?;
    }
    let refused = tokens(vocabulary).filter(|&token| {
        !mask.contains(token)
            && vocabulary.bytes(token).is_some_and(|bytes| bytes.len() > 1 && bytes[0] == b')')
    });
    let refused: Vec<String> = refused.map(|token| vocabulary.display_token(token)).collect();
    sample(output, &format!("{:<19}", "not allowed, e.g."), &refused, refused.len())
}

fn decoding(constraint: &Constraint, output: &mut dyn Write) -> Result<()> {
    let vocabulary = constraint.vocabulary();
    writeln!(
        output,
        "\n{TITLE}3  A text, token by token{TITLE:#}  {FAINT}and how many the model could choose \
         from{FAINT:#}"
    )?;
    let mut matcher = constraint.matcher()?;
    let text = vocabulary.encode(DECODED)?;
    for token in text.into_iter().chain(vocabulary.eos().first().copied()) {
        let mask = matcher.mask()?;
        let allowed = mask.iter().filter(|&token| vocabulary.bytes(token).is_some()).count();
        let end = if matcher.is_sentence() { ", or the end" } else { "" };
        let expected = listing(&matcher.expected(), 5);
        let shown = vocabulary.display_token(token);
        writeln!(
            output,
            "   {TEXT}{shown:<10}{TEXT:#} one of {allowed:>4}  {FAINT}{expected}{end}{FAINT:#}"
        )?;
        matcher.advance(token)?;
    }
    Ok(())
}

fn refusal(constraint: &Constraint, output: &mut dyn Write) -> Result<()> {
    let vocabulary = constraint.vocabulary();
    writeln!(output, "\n{TITLE}4  A wrong token, a step back, a fork{TITLE:#}")?;
    let mut matcher = matcher_after(constraint, PREFIX)?;
    let before = matcher.mask()?;
    for token in vocabulary.encode(WRONG)? {
        if let Err(refusal) = matcher.advance(token) {
            let message = refusal.to_string();
            let (what, expected) = message.split_once("; ").unwrap_or((&message, ""));
            writeln!(output, "   {NO}✗{NO:#} {what};\n     {FAINT}{expected}{FAINT:#}")?;
        }
    }
    writeln!(
        output,
        "   {} the refusal changed nothing: the mask is as before",
        tick(matcher.mask()? == before)
    )?;

    let mut fork = matcher.fork();
    matcher.rollback(BACK)?;
    let text = String::from_utf8_lossy(&vocabulary.decode(matcher.tokens())?).into_owned();
    let same = matcher.mask()? == matcher_after(constraint, &text)?.mask()?;
    writeln!(
        output,
        "   {} rollback({BACK}) leads back to {TEXT}{text}{TEXT:#}, with the mask of that text",
        tick(same)
    )?;
    for token in vocabulary.encode(ENDING)? {
        fork.advance(token)?;
    }
    let apart = fork.is_sentence() && !matcher.is_sentence();
    writeln!(
        output,
        "   {} a fork made before that goes on with {TEXT}{ENDING}{TEXT:#} and is a sentence",
        tick(apart)
    )?;
    Ok(())
}

fn matcher_after(constraint: &Constraint, text: &str) -> Result<Matcher> {
    let mut matcher = constraint.matcher()?;
    for token in constraint.vocabulary().encode(text)? {
        matcher.advance(token)?;
    }
    Ok(matcher)
}

fn tokens(vocabulary: &Vocabulary) -> impl Iterator<Item = TokenId> + use<> {
    (0..vocabulary.len()).map(TokenId::new)
}

/// How far a token reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    /// It only prolongs the piece in progress.
    Prolongs,
    /// It begins one piece, not counting blanks.
    OnePiece,
    /// It touches several.
    Several,
}

/// How far a token reaches after a text, if that is cut by longest match with all terminals competing. (For
/// show: masks need no such guess.)
fn reach(constraint: &Constraint, before: &[u8], token: TokenId) -> Reach {
    let lexicon = &constraint.language().lexing().lexicon;
    let text = [before, constraint.vocabulary().bytes(token).unwrap_or_default()].concat();
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let (mut state, mut end, mut is_ignored) = (START, text.len(), false);
        for (at, &byte) in text.iter().enumerate().skip(start) {
            state = lexicon.union.try_step(state, lexicon.union.class(byte)).unwrap_or(DEAD);
            if state == DEAD {
                break;
            }
            let accepts = lexicon.union.accepts(state);
            if !accepts.is_empty() {
                (end, is_ignored) =
                    (at + 1, accepts.iter().any(|terminal| lexicon.ignored.contains(terminal)));
            }
        }
        if !is_ignored && end > before.len() {
            pieces.push(start);
        }
        start = end;
    }
    match *pieces {
        [start] if start < before.len() => Reach::Prolongs,
        [] | [_] => Reach::OnePiece,
        _ => Reach::Several,
    }
}

/// A name and as many of the items, spread evenly, as two lines hold; dots if there are not `count` of them.
fn sample(output: &mut dyn Write, name: &str, items: &[String], count: usize) -> Result<()> {
    let indent = 3 + name.len() + 2;
    let room = 2 * (WIDTH - indent) - 8;
    let mut step = 1;
    let chosen = loop {
        let chosen: Vec<&str> = items.iter().step_by(step).map(String::as_str).collect();
        if chosen.iter().map(|item| item.chars().count() + 2).sum::<usize>() <= room || chosen.len() <= 1 {
            break chosen;
        }
        step += 1;
    };
    write!(output, "   {name}  {FAINT}")?;
    let mut column = indent;
    for item in &chosen {
        let width = item.chars().count() + 2;
        if column + width > WIDTH {
            write!(output, "\n{:indent$}", "")?;
            column = indent;
        }
        write!(output, "{item}  ")?;
        column += width;
    }
    writeln!(output, "{}{FAINT:#}", if chosen.len() < count { "…" } else { "" })?;
    Ok(())
}

/// What work gives, and how many microseconds it took.
fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, start.elapsed().as_secs_f64() * 1e6))
}

fn tick(holds: bool) -> String {
    if holds { format!("{YES}✓{YES:#}") } else { format!("{NO}✗{NO:#}") }
}

/// `1508` as `1,508`.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}
