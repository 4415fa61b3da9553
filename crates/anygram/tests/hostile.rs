//! Grammars made to break readers: each is answered, or refused with a reason, within bounds of work and
//! memory that do not depend on the machine.

use std::fmt::Write as _;

use anygram::{Compiler, Constraint, Engine, GrammarFormat, LexerMode, Limits, Vocabulary};
use anygram_testkit::hostile::Fate::{Reads, ReadsOrLimit, Refused};
use anygram_testkit::hostile::{Fate, dependents, joined, schemas};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What may be held at any time, in bytes.
const MAX_MEMORY: usize = 1 << 30;

/// Grammars with a name and a fate.
fn grammars() -> Vec<(&'static str, String, Fate)> {
    const MANY: usize = 30_000;
    const DEEP: usize = 20_000;
    let names = |count: usize| joined(count, " | ", |at| format!("r{at}"));
    vec![
        ("huge count", "start: \"a\"~99999999".into(), Refused("limit of 2000000 symbols")),
        ("large count", "start: \"a\"~1..1999999".into(), Reads("aaa")),
        ("nested counts", "start: /(a{1000}){1000}/".into(), Refused("nfa_states")),
        ("exponential automaton", "start: /(a|b)*a(a|b){20}/".into(), Refused("dfa_states")),
        ("wide counts", "start: /[^\"]{1,1000}/ | /[a-c]{1000}x/ | /a{1000}b{1000}/".into(), Reads("äöü")),
        ("itself", "start: start".into(), Refused("empty")),
        ("mutual left recursion", "start: a\na: b \"x\"\nb: a \"y\"".into(), Refused("empty")),
        ("empty file", String::new(), Refused("there is no rule `start`")),
        ("a byte order mark", "\u{feff}".into(), Refused("there is no rule `start`")),
        ("literals", format!("start: {}", joined(MANY, " | ", |at| format!("\"a{at}\""))), Reads("a29999")),
        ("equal literals", format!("start: {}", joined(MANY, " | ", |_| "\"a\"".into())), Reads("a")),
        (
            "one terminal",
            format!("start: T\nT: {}", joined(MANY, " | ", |at| format!("\"a{at}\""))),
            Reads("a29999"),
        ),
        (
            "rules",
            format!(
                "start: {}\n{}",
                names(MANY),
                joined(MANY, "\n", |at| format!("r{at}: \"x{}\"", at % 50))
            ),
            Reads("x49"),
        ),
        (
            "a chain",
            format!(
                "start: r0\n{}\nr{MANY}: \"y\"",
                joined(MANY, "\n", |at| format!("r{at}: r{} | \"x\"", at + 1))
            ),
            Reads("y"),
        ),
        (
            "a cycle of all",
            format!(
                "start: {} | \"x\"\n{}",
                names(300),
                joined(300, "\n", |at| format!("r{at}: {}", names(300)))
            ),
            Reads("x"),
        ),
        (
            "hidden left recursion",
            format!(
                "start: {}\n{}",
                names(1000),
                joined(1000, "\n", |at| format!("r{at}: e{at} start \"x\" | \"y\"\ne{at}: \"\""))
            ),
            Reads("yxx"),
        ),
        ("a long rule that can be empty", format!("start: {}\na: \"x\"?", "a ".repeat(MANY)), Reads("xxx")),
        ("parentheses", format!("start: {}\"a\"{}", "(".repeat(DEEP), ")".repeat(DEEP)), Reads("a")),
        ("parentheses left open", format!("start: {}", "(".repeat(DEEP)), Refused("")),
        ("brackets", format!("start: {}\"a\"{}", "[".repeat(DEEP), "]".repeat(DEEP)), Reads("")),
        ("repetitions", format!("start: {}\"a\"{}", "(".repeat(DEEP), ")*".repeat(DEEP)), Reads("aa")),
        ("groups in a regex", format!("start: /{}a{}/", "(".repeat(DEEP), ")".repeat(DEEP)), Refused("")),
        (
            "a chain of terminals",
            format!(
                "start: T0\n{}\nT3000: \"y\"",
                joined(3000, "\n", |at| format!("T{at}: T{} \"x\"?", at + 1))
            ),
            Refused(""),
        ),
        (
            "doubling terminals",
            format!(
                "start: T0\n{}\nT40: \"y\"",
                joined(40, "\n", |at| format!("T{at}: T{} T{}", at + 1, at + 1))
            ),
            Refused("limit of 2000000 symbols"),
        ),
        (
            "doubling rules",
            format!(
                "start: r0\n{}\nr40: \"y\" | \"z\"?",
                joined(40, "\n", |at| format!("r{at}: r{} r{}", at + 1, at + 1))
            ),
            Reads("yyy"),
        ),
        (
            "patterns that overlap",
            format!(
                "start: ({})*\n%ignore /[ab]+/",
                joined(200, " | ", |at| format!("/[^\\x{at:02x}]*z{at}/"))
            ),
            Refused("union_entries"),
        ),
        (
            "pieces that depend on what follows",
            "start: (A|B|C)*\nA: /(xy)*z{1,300}q/\nB: /x?(yx)*y{1,200}w/\nC: /x|y|z/".into(),
            ReadsOrLimit("xyxyzx"),
        ),
        (
            "complements",
            format!("start: T0\n{}\nT70: \"y\"", joined(70, "\n", |at| format!("T{at}: ~T{}", at + 1))),
            Refused(""),
        ),
    ]
}

#[test]
fn schemas_are_cancelled() {
    let cancel = anygram::Cancel::new();
    cancel.cancel();
    let compiler = Compiler::default().cancel(cancel);
    for (format, source) in [
        (GrammarFormat::JsonSchema, dependents(300)),
        (GrammarFormat::Lark, format!("start: %json {}", dependents(300))),
    ] {
        let error = compiler.compile(format, &source).unwrap_err();
        assert_eq!(error.kind(), anygram::ErrorKind::Cancelled, "{error}");
    }
}

#[test]
fn each_schema_is_answered_or_refused() {
    for (name, source, fate) in schemas() {
        PeakAlloc.reset_peak_usage();
        let before = PeakAlloc.current_usage();
        let result = Compiler::default().compile(GrammarFormat::JsonSchema, &source).and_then(|language| {
            let Reads(text) = fate else { panic!("{name}: compiled") };
            let reading = language.read(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(reading.is_viable && reading.is_sentence != text.is_empty(), "{name}: {reading:?}");
            let mut matcher = Constraint::new(language, Vocabulary::builtin())?.matcher().unwrap();
            matcher.mask().unwrap_or_else(|error| panic!("{name}: {error}"));
            Ok(())
        });
        let peak = PeakAlloc.peak_usage().saturating_sub(before);
        let message = result.map_or_else(|error| error.to_string(), |()| String::from("compiled"));
        println!("{name:36} {:5} MB  {message:.100}", peak >> 20);
        match fate {
            Refused(reason) => assert!(message.contains(reason), "{name}: {message}"),
            _ => assert_eq!(message, "compiled", "{name}"),
        }
        assert!(peak < MAX_MEMORY, "{name}: {peak} bytes");
    }
}

fn each_is_answered_or_refused(mode: LexerMode) {
    for (name, source, fate) in grammars() {
        PeakAlloc.reset_peak_usage();
        let before = PeakAlloc.current_usage();
        let result = Compiler::default().lexer(mode).compile(GrammarFormat::Lark, &source);
        let result = result.and_then(|language| {
            let text = match fate {
                Reads(text) | ReadsOrLimit(text) => text,
                Refused(reason) => panic!("{name}, {}: compiled; expected: {reason}", mode.name()),
            };
            let reading = language.read(text.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(reading.is_sentence, "{name}, {}: {text:?}: {reading:?}", mode.name());
            let mut matcher = Constraint::new(language, Vocabulary::builtin())?.matcher().unwrap();
            matcher.mask().unwrap_or_else(|error| panic!("{name}, {}: {error}", mode.name()));
            Ok(())
        });
        let message = match result {
            Ok(()) => String::from("compiled"),
            Err(error) => {
                let rendered = error.grammar_error().map(|error| error.render("grammar", &source));
                let length = rendered.map_or(0, |rendered| rendered.len());
                assert!(length < 2_000, "{name}: {length} bytes of message");
                error.to_string()
            }
        };
        let peak = PeakAlloc.peak_usage().saturating_sub(before);
        println!("{name:36} {:12} {:5} MB  {message:.100}", mode.name(), peak >> 20);
        match fate {
            Refused(reason) => assert!(message.contains(reason), "{name}, {}: {message}", mode.name()),
            Reads(_) => assert_eq!(message, "compiled", "{name}, {}", mode.name()),
            ReadsOrLimit(_) => assert!(
                message == "compiled" || mode != LexerMode::Scannerless && message.contains("limit"),
                "{name}, {}: {message}",
                mode.name()
            ),
        }
        assert!(peak < MAX_MEMORY, "{name}, {}: {peak} bytes", mode.name());
    }
}

#[test]
fn each_is_answered_or_refused_scannerless() {
    each_is_answered_or_refused(LexerMode::Scannerless);
}

#[test]
fn each_is_answered_or_refused_by_longest_match() {
    each_is_answered_or_refused(LexerMode::Longest);
}

#[test]
fn each_is_answered_or_refused_in_context() {
    each_is_answered_or_refused(LexerMode::Contextual);
}

#[test]
fn the_valiant_chart_reads_them_too() {
    for (name, source, fate) in grammars() {
        let Reads(text) = fate else { continue };
        let compiler = Compiler::default().lexer(LexerMode::Scannerless).engine(Engine::Valiant);
        let language =
            compiler.compile(GrammarFormat::Lark, &source).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(language.read(text.as_bytes()).unwrap().is_sentence, "{name}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_where_they_stand() {
    let error = anygram_grammar::diagnostic::decode(b"start: \"a\xff\"").unwrap_err();
    assert_eq!((error.line(), error.column()), (1, 10));
}

#[test]
fn deep_texts_need_no_stack() {
    let source = "start: \"(\" start \")\" | \"[\" start \"]\" | /[a-z]+/\n%ignore \" \"";
    let depth = 20_000;
    let mut text = String::new();
    for _ in 0..depth {
        text.push_str("( [");
    }
    text.push('x');
    let open = text.len();
    for _ in 0..depth {
        let _ = write!(text, "] )");
    }
    for mode in LexerMode::ALL {
        let language = Compiler::default().lexer(mode).compile(GrammarFormat::Lark, source).unwrap();
        assert!(language.read(text.as_bytes()).unwrap().is_sentence, "{}", mode.name());
        let reading = language.read(&text.as_bytes()[..open]).unwrap();
        assert!(reading.is_viable && !reading.is_sentence);
        let mut matcher = Constraint::new(language, Vocabulary::builtin()).unwrap().matcher().unwrap();
        for token in Vocabulary::builtin().encode(&text).unwrap() {
            matcher.advance(token).unwrap();
        }
        assert!(matcher.is_sentence());
        matcher.mask().unwrap();
    }
}

#[test]
fn a_limit_of_nothing_is_met_by_everything() {
    for name in ["grammar_size", "compile_steps", "nfa_states", "dfa_states", "union_entries"] {
        let mut limits = Limits::default();
        limits.set(name, 0).unwrap();
        let error =
            Compiler::default().limits(limits).compile(GrammarFormat::Lark, "start: /a+/ \"b\"").unwrap_err();
        assert!(
            error.to_string().contains("limit") || error.to_string().contains("states"),
            "{name}: {error}"
        );
    }
}
