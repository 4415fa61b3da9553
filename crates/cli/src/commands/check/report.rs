//! What there is to know of a grammar.

use std::collections::BTreeMap;
use std::io::Write;

use anygram::{Engine, Language, LexerMode};
use anygram_grammar::ambiguity::hints;
use anygram_grammar::ir::{Span, Terminal, TerminalId, TerminalKind};
use anygram_left_to_right::example::{Examples, contexts};
use anygram_lexer::overlap::{Overlaps, overlaps};
use anygram_lexer::words::Words;
use anyhow::Result;

use super::{NOT_YET, quoted};
use crate::excerpt::{Excerpt, listing};

/// Names that a list shows before it says how many more there are.
const SHOWN: usize = 12;
/// Hints of one kind that are shown.
const HINTS: usize = 12;
/// Characters of a text that are shown.
const LONG: usize = 200;

/// What is reported on.
pub struct Subject<'a> {
    pub language: &'a Language,
    pub words: &'a Words<'a>,
    /// The grammar's file.
    pub name: &'a str,
    pub source: &'a str,
}

/// One thing to say of a grammar, perhaps of a place in it.
pub struct Remark {
    pub span: Option<Span>,
    pub message: String,
    pub help: Option<String>,
}

/// What is doubtful about a grammar.
pub struct Doubts {
    pub warnings: Vec<Remark>,
    /// What makes sentences ambiguous.
    pub hints: Vec<Remark>,
}

impl Doubts {
    /// Of a grammar all that can be found in bounded time.
    pub fn new(subject: &Subject<'_>) -> Result<Self> {
        let (contexts, contexts_cut) = contexts(subject.language)?;
        let lexicon = &subject.language.lexing().lexicon;
        let overlaps = overlaps(lexicon, subject.words, &contexts);
        let warnings = warnings(subject, &overlaps);
        Ok(Self { warnings, hints: all_hints(subject, &overlaps, contexts_cut) })
    }
}

pub fn report(subject: &Subject<'_>, output: &mut dyn Write) -> Result<()> {
    for (name, value) in facts(subject)? {
        writeln!(output, "{name:<14}{value}")?;
    }
    let Doubts { warnings, hints } = Doubts::new(subject)?;
    for warning in &warnings {
        writeln!(output)?;
        remark(subject, &format!("{NOT_YET}warning{NOT_YET:#}: "), warning, output)?;
    }
    if !hints.is_empty() {
        writeln!(
            output,
            "\nSome sentences have several derivations. Masks do not mind; sampling derivations and weights \
             do."
        )?;
    }
    for hint in &hints {
        writeln!(output)?;
        remark(subject, "hint: ", hint, output)?;
    }
    Ok(())
}

/// Random sentences, one a line if they have no line ends; `false` if there are none.
pub fn examples(language: &Language, n: usize, seed: u64, output: &mut dyn Write) -> Result<bool> {
    let found = language.examples(n, seed)?;
    for text in &found {
        let is_plain = !text.is_empty() && !text.iter().any(u8::is_ascii_control);
        let line =
            if is_plain { String::from_utf8_lossy(text).into_owned() } else { quoted(text, usize::MAX) };
        writeln!(output, "{line}")?;
    }
    if found.len() < n {
        let _ = writeln!(anstream::stderr(), "only {} different sentences were found", found.len());
    }
    Ok(!found.is_empty() || n == 0)
}

/// What there is to know, each with its name.
pub fn facts(subject: &Subject<'_>) -> Result<Vec<(&'static str, String)>> {
    let language = subject.language;
    let (grammar, lexing) = (language.grammar(), language.lexing());
    let (cfg, union) = (&lexing.cfg, &lexing.lexicon.union);
    let mut facts = Vec::new();
    let mut line = |name: &'static str, value: String| facts.push((name, value));

    let ignored: Vec<String> =
        lexing.lexicon.ignored.iter().map(|at| grammar.terminals[at].name.clone()).collect();
    line("start", grammar.nonterminals[grammar.start.index()].name.clone());
    line("terminals", format!("{} used, {} in all", lexing.lexicon.used.count(), grammar.terminals.len()));
    line("ignored", if ignored.is_empty() { "none".to_owned() } else { listing(&ignored, SHOWN) });
    let written = grammar.nonterminals.iter().filter(|nonterminal| !nonterminal.is_synthetic()).count();
    let made_up = match grammar.nonterminals.len() - written {
        0 => String::new(),
        n => format!(", and {n} made up for groups and repetitions"),
    };
    line("nonterminals", format!("{written}{made_up}"));
    line("rules", format!("{} used, {} in all", cfg.rules.len(), grammar.rules.len()));
    line("cyclic", names(grammar, &cfg.cyclic()));
    line("nullable", names(grammar, &cfg.nullable()));
    let shortest = cfg.minimum_lengths()[cfg.start.index()];
    line(
        "shortest",
        format!("a sentence of {shortest} {}", if shortest == 1 { "terminal" } else { "terminals" }),
    );
    let example = match Examples::new(language, subject.words)?.short() {
        Some(text) if text.is_empty() => {
            let random = Examples::new(language, subject.words)?.random(5, 1);
            match random.iter().filter(|text| !text.is_empty()).min_by_key(|text| text.len()) {
                Some(text) => format!("the empty text, or {}", quoted(text, LONG)),
                None => "the empty text".to_owned(),
            }
        }
        Some(text) => quoted(&text, LONG),
        None if !lexing.specials().is_empty() => "none found that needs no special token".to_owned(),
        None => format!("none found within {} steps", language.limits().search_steps),
    };
    line("example", example);
    let mode = language.mode().name();
    line("lexer", format!("{mode}, {} states, {} byte classes", union.n_states(), union.n_classes()));
    if let Some(completions) = completions(language) {
        line("completions", completions.to_owned());
    }
    let why = match (language.probe(), language.engine()) {
        (Some(probe), _) => format!(
            ": {}, {:.0} items a state on random sentences{}",
            if probe.is_ambiguous() { "ambiguous" } else { "nearly deterministic" },
            probe.items_per_state(),
            if language.may_switch() { "; outputs that turn out very ambiguous move to valiant" } else { "" },
        ),
        (None, Engine::Reference) => ", the definition: slow".to_owned(),
        (None, _) => ", as asked for".to_owned(),
    };
    line("engine", format!("{}{why}", language.engine().name()));
    line("cuda", crate::decoder::about_device(language));
    line("memory", format!("{} kB", language.memory_usage().div_ceil(1000)));
    Ok(facts)
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
fn names(grammar: &anygram::Grammar, set: &anygram_bits::BitSet) -> String {
    let given = set
        .iter()
        .filter_map(|at| grammar.nonterminals.get(at))
        .filter(|nonterminal| !nonterminal.is_synthetic());
    let names: Vec<String> = given.map(|nonterminal| nonterminal.name.clone()).collect();
    if names.is_empty() { "none".to_owned() } else { listing(&names, SHOWN) }
}

/// `grammar.lark:5:1: warning: …`, the line with the place underlined, and help.
fn remark(subject: &Subject<'_>, kind: &str, remark: &Remark, output: &mut dyn Write) -> Result<()> {
    let Some(span) = &remark.span else {
        writeln!(output, "{}: {kind}{}", subject.name, remark.message)?;
        if let Some(help) = &remark.help {
            writeln!(output, "    = {help}")?;
        }
        return Ok(());
    };
    let excerpt = Excerpt::new(subject.source.as_bytes(), span.start);
    writeln!(output, "{}:{}:{}: {kind}{}", subject.name, excerpt.line, excerpt.column, remark.message)?;
    let marked = subject.source.get(span.clone()).and_then(|text| text.lines().next()).unwrap_or_default();
    let note = remark.help.as_deref().unwrap_or_default();
    writeln!(output, "{}", excerpt.render_wide(marked.chars().count().clamp(1, 60), note))?;
    Ok(())
}

fn warnings(subject: &Subject<'_>, overlaps: &Overlaps) -> Vec<Remark> {
    let language = subject.language;
    let name = |at: usize| language.terminal_name(TerminalId::new(at));
    let is_literal = |terminal: &Terminal| matches!(terminal.kind, TerminalKind::Literal(_));
    let mut warnings: Vec<Remark> = language
        .warnings()
        .into_iter()
        .map(|warning| Remark { span: warning.span, message: warning.message, help: None })
        .collect();
    for loser in &overlaps.losers {
        let (lost, winner) =
            (&language.grammar().terminals[loser.terminal], &language.grammar().terminals[loser.winner]);
        let why = match lost.priority < winner.priority {
            true => format!("priority {} against {}", lost.priority, winner.priority),
            false if is_literal(winner) && !is_literal(lost) => "a literal comes first".to_owned(),
            false => "declared earlier".to_owned(),
        };
        let places =
            if language.mode() == LexerMode::Longest { "" } else { " wherever it was seen to come next" };
        let message = format!(
            "the terminal {} never wins{places}: all that it matches is also {} ({why}), as in {}",
            name(loser.terminal),
            name(loser.winner),
            quoted(&loser.example, 40)
        );
        let help = Some("raise its priority, or declare it earlier".to_owned());
        warnings.push(Remark { span: lost.span.clone(), message, help });
    }
    warnings.sort_by_key(|warning| warning.span.as_ref().map(|span| span.start));
    warnings
}

fn all_hints(subject: &Subject<'_>, overlaps: &Overlaps, contexts_cut: bool) -> Vec<Remark> {
    let grammar = subject.language.grammar();
    let forms = hints(grammar, &subject.language.lexing().cfg);
    let mut remarks = Vec::new();
    for group in forms.hints.chunk_by(|a, b| a.kind == b.kind) {
        let shown = group.iter().take(HINTS);
        remarks.extend(shown.map(|hint| Remark {
            span: hint.span.clone(),
            message: hint.message.clone(),
            help: Some(hint.help.clone()),
        }));
        if group.len() > HINTS {
            remarks.push(plain(format!("and {} more of this kind", group.len() - HINTS)));
        }
    }
    lexical(subject, overlaps, &mut remarks);
    // Automata that grow are never seen whole, however small the grammar is.
    let is_growing = subject.language.lexing().is_growing();
    if forms.is_cut || !is_growing && (overlaps.is_cut || contexts_cut) {
        remarks.push(plain("the grammar is large: not all of it was looked at".to_owned()));
    }
    remarks
}

fn plain(message: String) -> Remark {
    Remark { span: None, message, help: None }
}

/// Terminals that label the same piece.
fn lexical(subject: &Subject<'_>, overlaps: &Overlaps, remarks: &mut Vec<Remark>) {
    let (grammar, lexicon) = (subject.language.grammar(), &subject.language.lexing().lexicon);
    let is_literal = |at: usize| matches!(grammar.terminals[at].kind, TerminalKind::Literal(_));
    let name = |at: usize| grammar.terminals[at].name.clone();
    let mut keywords: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut others = Vec::new();
    for pair in &overlaps.pairs {
        let ignored = [pair.first, pair.second].map(|at| lexicon.ignored.contains(at));
        match (is_literal(pair.first), is_literal(pair.second)) {
            _ if ignored[0] || ignored[1] => others.push(pair),
            (true, false) => keywords.entry(pair.second).or_default().push(pair.first),
            (false, true) => keywords.entry(pair.first).or_default().push(pair.second),
            _ => others.push(pair),
        }
    }
    for (pattern, literals) in keywords {
        let listed = listing(&literals.iter().map(|&at| name(at)).collect::<Vec<_>>(), SHOWN);
        let (count, are) = match literals.len() {
            1 => (String::new(), "is"),
            n => (format!("{n} literals: "), "are"),
        };
        let message = format!("{count}{listed} {are} also {}, where both can come next", name(pattern));
        let help = Some("to reserve them, use --ties first, or give them a higher priority".to_owned())
            .filter(|_| lexicon.mode != LexerMode::Scannerless);
        remarks.push(Remark { span: grammar.terminals[pattern].span.clone(), message, help });
    }
    for pair in others.iter().take(HINTS) {
        let example = quoted(&pair.example, 40);
        let (first, second) = (name(pair.first), name(pair.second));
        let (message, help) = match [pair.first, pair.second].map(|at| lexicon.ignored.contains(at)) {
            [true, true] => continue,
            [false, false] => (
                format!("{first} and {second} both match {example}, where both can come next"),
                "a priority decides for one of them",
            ),
            [is_first, _] => {
                let (ignored, wanted) = if is_first { (first, second) } else { (second, first) };
                (
                    format!("{ignored} is ignored, and {wanted} matches {example} too: it is read both ways"),
                    "a priority decides for one of them",
                )
            }
        };
        let help = Some(help.to_owned()).filter(|_| lexicon.mode != LexerMode::Scannerless);
        let spans = [pair.second, pair.first].map(|at| grammar.terminals[at].span.clone());
        let [later, earlier] = spans;
        remarks.push(Remark { span: later.or(earlier), message, help });
    }
    if others.len() > HINTS {
        remarks.push(plain(format!("and {} more pairs of terminals overlap", others.len() - HINTS)));
    }
}
