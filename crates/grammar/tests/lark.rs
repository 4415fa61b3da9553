//! Lark grammars from end to end: what they lower to, what their authors are told, and what hostile ones cost.

use std::path::PathBuf;

use anygram_grammar::diagnostic::{ErrorKind, GrammarError};
use anygram_grammar::ir::{Grammar, LexerMode, Pattern, SpecialToken, Symbol, TerminalKind};
use anygram_grammar::lark::{LarkOptions, parse};

fn read(source: &str) -> Result<Grammar, GrammarError> {
    let grammar = parse(source, &LarkOptions::default())?;
    grammar.validate().unwrap();
    Ok(grammar)
}

/// The rules, one a line: `lhs: symbols`.
fn rules(grammar: &Grammar) -> Vec<String> {
    let name = |&symbol: &Symbol| grammar.symbol_name(symbol).to_owned();
    let lhs = |rule: &anygram_grammar::ir::Rule| grammar.nonterminals[rule.lhs.index()].name.clone();
    let line = |rule: &anygram_grammar::ir::Rule| {
        let rhs: Vec<String> = rule.rhs.iter().map(name).collect();
        format!("{}: {}", lhs(rule), rhs.join(" ")).trim_end().to_owned()
    };
    let mut lines: Vec<String> = grammar.rules.iter().map(line).collect();
    lines.sort();
    lines
}

fn terminals(grammar: &Grammar) -> Vec<&str> {
    grammar.terminals.iter().map(|terminal| terminal.name.as_str()).collect()
}

#[track_caller]
fn expect_rules(source: &str, expected: &[&str]) {
    assert_eq!(rules(&read(source).unwrap()), expected, "{source}");
}

#[test]
fn groups_options_and_repetitions() {
    expect_rules("start: \"a\" \"b\" | \"c\"", &[r#"start: "a" "b""#, r#"start: "c""#]);
    expect_rules("start: (\"a\" \"b\") | (\"c\" | \"d\")", &[r#"start: "a" "b""#, r#"start: "c""#, r#"start: "d""#]);
    expect_rules(
        "start: \"x\" (\"a\" | \"b\") (\"a\" | \"b\")",
        &[r#"__start_group_0: "a""#, r#"__start_group_0: "b""#, r#"start: "x" __start_group_0 __start_group_0"#],
    );
    expect_rules(
        "start: \"x\" [\"a\" \"b\"] \"c\"?",
        &[
            "__start_option_0:",
            r#"__start_option_0: "a" "b""#,
            "__start_option_1:",
            r#"__start_option_1: "c""#,
            r#"start: "x" __start_option_0 __start_option_1"#,
        ],
    );
    expect_rules(
        "start: (\"a\" | \"b\")* \"c\"+ (\"a\" | \"b\")*",
        &[
            "__start_plus_1: \"c\"",
            "__start_plus_1: __start_plus_1 \"c\"",
            "__start_star_0:",
            "__start_star_0: __start_star_0 \"a\"",
            "__start_star_0: __start_star_0 \"b\"",
            "start: __start_star_0 __start_plus_1 __start_star_0",
        ],
    );
    expect_rules("start: \"a\"~3 | \"b\"~0", &["start:", r#"start: "a" "a" "a""#]);
    expect_rules(
        "start: \"a\" \"b\"~1..2",
        &["__start_upto_0:", "__start_upto_0: \"b\"", "start: \"a\" \"b\" __start_upto_0"],
    );
}

#[test]
fn empty_alternatives() {
    expect_rules("start: \"\" | \"a\"", &["start:", r#"start: "a""#]);
    expect_rules("start:\n  | \"a\"\nb:", &["b:", "start:", r#"start: "a""#]);
    expect_rules("start: \"\"* (\"\" | \"\")", &["__start_option_0:", "__start_option_0:", "start: __start_option_0"]);
}

#[test]
fn what_shapes_trees_means_nothing() {
    let source = "?start.2: !_a -> one | _a -> two\n".replace('!', "") + "!?_a: \"x\" -> three\n!b: \"y\"";
    expect_rules(&source, &[r#"_a: "x""#, r#"b: "y""#, "start: _a", "start: _a"]);
}

#[test]
fn lines_comments_and_continuations() {
    let source = "// head\nstart: \"a\" # tail\n\n  // between\n | \"b\" \\\n \"c\"\r\n\r\nX: \"x\"\n#end";
    expect_rules(source, &[r#"start: "a""#, r#"start: "b" "c""#]);
}

#[test]
fn a_literal_is_the_terminal_that_is_defined_so() {
    let grammar = read("start: \"if\" \"IF\"i /x/ \"y\" \"if\" A\nIF: \"if\"\nX: (/x/)\nA: \"a\" | IF\nY: X").unwrap();
    // Two terminals are `/x/`; the last one is meant. `X` itself is not used then.
    assert_eq!(terminals(&grammar), ["\"IF\"i", "\"y\"", "IF", "A", "Y"]);
    assert_eq!(rules(&grammar), [r#"start: IF "IF"i Y "y" IF A"#]);
    let literal: Vec<bool> =
        grammar.terminals.iter().map(|terminal| matches!(terminal.kind, TerminalKind::Literal(_))).collect();
    assert_eq!(literal, [true, true, true, false, false]);
}

#[test]
fn terminals_come_in_the_order_of_declaration_and_only_if_used() {
    let source = "%ignore \" \"\nB: \"b\"\nstart: A \"c\" B | /d/i\nPART: \"p\"\nA.-3: PART+\n%ignore /#.*/\n\
                  %ignore WS\n%import common.WS\n%import common.NUMBER -> N\n%ignore (\"x\" | B)";
    let grammar = read(source).unwrap();
    assert_eq!(terminals(&grammar), ["\" \"", "B", "\"c\"", "/d/i", "A", "/#.*/", "WS", "(\"x\" | B)"]);
    let ignored: Vec<bool> = grammar.terminals.iter().map(|terminal| terminal.ignored).collect();
    assert_eq!(ignored, [true, false, false, false, false, true, true, true]);
    assert_eq!(grammar.terminals[4].priority, -3);
    assert_eq!(grammar.terminals[6].span, None);
    assert_eq!(grammar.terminals[4].span, Some(51..52));
    assert_eq!(grammar.default_lexer, LexerMode::Contextual);
}

#[test]
fn an_ignored_literal_that_a_rule_names_is_one_terminal() {
    let grammar = read("start: \"a\" \" \" \"a\"\n%ignore \" \"").unwrap();
    assert_eq!(terminals(&grammar), ["\"a\"", "\" \""]);
    assert!(grammar.terminals[1].ignored);
}

#[test]
fn tokens_of_the_vocabulary() {
    let grammar = read("start: <|user|> X <[12]> <|user|>\nX: \"x\"").unwrap();
    assert_eq!(terminals(&grammar), ["<|user|>", "<[12]>", "X"]);
    assert_eq!(grammar.terminals[0].kind, TerminalKind::Special(SpecialToken::Name("<|user|>".into())));
    assert_eq!(grammar.terminals[1].kind, TerminalKind::Special(SpecialToken::Id(12)));
}

/// The pattern of the terminal `T`, and the same as a regular expression in the notation of `regex-syntax`.
#[track_caller]
fn expect_pattern(definitions: &str, expected: &str) {
    let grammar = read(&format!("start: T\n{definitions}")).unwrap();
    let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(expected).unwrap();
    assert!(grammar.terminals[0].kind.pattern() == Some(&Pattern::Regex(hir)), "{definitions}");
}

#[test]
fn terminal_expressions_are_one_regular_expression() {
    expect_pattern("T: \"a\" | \"bc\" D+ [\"e\"]\nD: \"0\"..\"9\"", "a|bc[0-9]+e?");
    expect_pattern("T: (\"a\"i /b+/)~2..3", "(?:[aA]b+){2,3}");
    expect_pattern("T: \"\" | (\"x\" \"y\")~2", "|(?:xy){2}");
    expect_pattern("T: /[^\\/]\\/\\w/ ", r"[^/]/[\p{L}\p{N}_]");
    expect_pattern("T: \"k\"i", "[kK\u{212a}]");
}

#[test]
fn intersection_and_complement() {
    let grammar = read("start: T\nT: /a/ \"b\" & ~/c/ | ~(\"d\" | \"e\")~2\n").unwrap();
    let regex = |text: &str| Pattern::Regex(regex_syntax::parse(text).unwrap());
    let not = |text: &str| Pattern::Not(Box::new(regex(text)));
    let twice = Pattern::Repeat { inner: Box::new(not("[de]")), min: 2, max: Some(2) };
    let expected = Pattern::Alternate(vec![Pattern::And(vec![regex("ab"), not("c")]), twice]);
    assert_eq!(grammar.terminals[0].kind, TerminalKind::Pattern(expected));
}

#[test]
fn imports() {
    let grammar =
        read("%import common (INT, CNAME)\n%import common.WS\n%import common.WS\nstart: CNAME INT\n").unwrap();
    assert_eq!(terminals(&grammar), ["INT", "CNAME"]);
}

#[test]
fn another_start() {
    let options = LarkOptions { start: Some("b".into()), ..LarkOptions::default() };
    let grammar = parse("a: \"x\"\nb: a", &options).unwrap();
    assert_eq!(grammar.symbol_name(Symbol::Nonterminal(grammar.start)), "b");
}

#[test]
fn mistakes_have_a_kind_and_a_place() {
    use ErrorKind::*;
    let cases: &[(&str, ErrorKind, usize, usize, &str)] = &[
        ("start: \"a\"\n\nstart: \"b\"", DuplicateDefinition, 3, 1, "`start` is defined twice"),
        ("start: A\nA: \"a\"\n%import common.INT -> A", DuplicateDefinition, 3, 23, "`A` is defined twice"),
        ("start: exprs\nexpr: \"a\"", UndefinedSymbol, 1, 8, "`exprs` is not defined"),
        ("start: A\nA: B", UndefinedSymbol, 2, 4, "`B` is not defined"),
        ("start: \"a\"\n%ignore WS", UndefinedSymbol, 2, 9, "`WS` is not defined"),
        ("%import common.NUMBERS\nstart: \"a\"", UndefinedSymbol, 1, 16, "the library `common` has no `NUMBERS`"),
        ("stat: \"a\"", MissingStart, 1, 1, "there is no rule `start` to start from"),
        ("", MissingStart, 1, 1, "there is no rule `start` to start from"),
        ("start: \"é\" \"a\n", Syntax, 1, 12, "this string is not closed on its line"),
        ("start: /a\n", Syntax, 1, 8, "this regular expression is not closed on its line"),
        ("start: (\"a\"\n", Syntax, 1, 12, "expected `)`, found the end of the line"),
        ("start: (\"a\"]\n", Syntax, 1, 12, "expected `)`, found `]`"),
        ("start: \"a\")\n", Syntax, 1, 11, "expected an expression or the end of the line, found `)`"),
        ("start: \"a\"+?\n", Syntax, 1, 12, "nothing before `?` that it could repeat"),
        ("start: \"a\" |\n  \"b\"\n", Syntax, 2, 3, "expected a rule, a terminal or a directive, found `\"b\"`"),
        ("start = \"a\"", Syntax, 1, 7, "unexpected character '='"),
        ("Start: \"a\"", Syntax, 1, 1, "the name `Start` mixes upper and lower case"),
        ("?A: \"a\"", Syntax, 1, 1, "`?` and `!` shape the trees of rules; `A` is a terminal"),
        ("start: A\nA: ~", Syntax, 2, 4, "nothing follows this `~`"),
        ("start: \"ab\"..\"c\"", Syntax, 1, 8, "a bound of a range is one character, not 2"),
        ("start: \"z\"..\"a\"", EmptyRange, 1, 8, "the range from 'z' to 'a' is empty"),
        ("start: \"a\"~3..2", EmptyRange, 1, 12, "`3..2` allows no number of times"),
        ("start: \"\\u12\"", InvalidEscape, 1, 9, "`\\u` needs 4 hexadecimal digits"),
        ("start: /a(b/", InvalidRegex, 1, 10, "in this regular expression: unclosed group"),
        ("start: /é\\bb/", Unsupported, 1, 10, "in this regular expression: the anchor `\\b` is not supported"),
        ("start: A\nA: \"a\" B\nB: A?", RecursiveTerminal, 3, 4, "the terminal `A` is defined by itself, through `B`"),
        ("start: A\nA: A", RecursiveTerminal, 2, 4, "the terminal `A` is defined by itself"),
        ("start: A\nA: start", Unsupported, 2, 4, "the rule `start` cannot be part of a terminal"),
        ("start: A\nA: <|x|>", Unsupported, 2, 4, "a token of the vocabulary cannot be part of a terminal"),
        ("start: \"a\"\n%ignore start", Unsupported, 2, 9, "`start` is a rule; only terminals can be ignored"),
        ("start: \"a\" & \"b\"", Unsupported, 1, 8, "`&` is not supported in rules"),
        ("list{x}: x\n", Unsupported, 1, 5, "templates are not supported"),
        ("start: list{\"a\"}\n", Unsupported, 1, 12, "templates are not supported"),
        ("%declare X", Unsupported, 1, 1, "`%declare` is not supported"),
        ("%override start: X", Unsupported, 1, 1, "`%override` is not supported"),
        ("%extend start: X", Unsupported, 1, 1, "`%extend` is not supported"),
        ("%llguidance {}", Unsupported, 1, 1, "`%llguidance` is not supported"),
        ("%import .other.x", Unsupported, 1, 9, "importing from other files is not supported"),
        ("%import python.NAME", Unsupported, 1, 9, "importing from `python` is not supported"),
        ("%inlcude x", Syntax, 1, 1, "unknown directive `%inlcude`"),
        ("start: /a/l", Unsupported, 1, 11, "the flag `l` (locale) is not supported"),
        ("start: \"a\"~99999999", TooLarge, 1, 8, "the grammar grows beyond the limit of 2000000 symbols here"),
        ("start: \"a\"~99999999999", TooLarge, 1, 12, "99999999999 times is too much: at most 4294967295"),
    ];
    for &(source, kind, line, column, message) in cases {
        let error = read(source).expect_err(source);
        let found = (error.kind(), error.line(), error.column(), error.message());
        assert_eq!(found, (kind, line, column, message), "{source}");
        assert!(error.render("g.lark", source).contains(message), "{source}");
    }
}

#[test]
fn rendered_errors_show_the_line() {
    let render = |source: &str| read(source).unwrap_err().render("g.lark", source);
    let undefined = "\
Error: `exprs` is not defined
   ,-[ g.lark:2:9 ]
   |
 2 | start: (exprs)
   |         ^^|^^
   |           `---- here
   |
   | Help: did you mean `expr`?
---'
";
    assert_eq!(render("// é\nstart: (exprs)\nexpr: \"a\""), undefined);
    let twice = render("start: \"a\"\nstart: \"b\"");
    assert!(twice.contains("first defined here") && twice.contains("1 | start: \"a\""), "{twice}");
    let missing = render("stat: \"a\"");
    assert!(missing.contains("did you mean `stat`?"), "{missing}");
}

// Hostile and large inputs.

#[test]
fn deep_nesting_needs_no_stack() {
    const DEPTH: usize = 20_000;
    let nested = format!("start: {}\"a\"{}", "(".repeat(DEPTH), ")".repeat(DEPTH));
    expect_rules(&nested, &["start: \"a\""]);
    let optional = format!("start: {}\"a\"{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    expect_rules(&optional, &["start:", "start: \"a\""]);
    let starred = format!("start: {}\"a\"{}", "(".repeat(DEPTH), " \"b\")*".repeat(DEPTH));
    assert_eq!(read(&starred).unwrap().nonterminals.len(), DEPTH + 1);
    let terminal = format!("start: A\nA: {}\"a\"{}", "(".repeat(DEPTH), ")".repeat(DEPTH));
    assert!(read(&terminal).is_ok());
    for (open, close) in [("(", ")*"), ("~", ""), ("(\"x\" ", ")?"), ("(", " & \"x\")"), ("(\"x\" | ", " \"y\")")] {
        let source = format!("start: A\nA: {}\"a\"{}", open.repeat(DEPTH), close.repeat(DEPTH));
        assert_eq!(read(&source).unwrap_err().kind(), ErrorKind::TooLarge, "{open}");
    }
    let mut chain = "start: A0\n".to_owned();
    for at in 0..DEPTH {
        let (a, b) = (format!("A{at}"), format!("A{}", at + 1));
        chain += &format!("{a}: {b}\n");
    }
    assert!(read(&(chain + &format!("A{DEPTH}: \"a\""))).is_ok());
    let unclosed = format!("start: {}", "(".repeat(DEPTH));
    assert_eq!(read(&unclosed).unwrap_err().kind(), ErrorKind::Syntax);
}

#[test]
fn growth_is_limited() {
    let mut doubling = "start: A60\nA0: \"a\"\n".to_owned();
    for at in 0..60 {
        doubling += &format!("A{}: A{at} A{at}\n", at + 1);
    }
    assert_eq!(read(&doubling).unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(read("start: /(a{1000}){1000}/").is_ok());
    let nested = format!("start: {}\"a\"{}", "(".repeat(30), ")~1000".repeat(30));
    assert!(read(&nested).is_ok_and(|grammar| grammar.rules.len() < 30 * 30));
    for max_size in 0..40 {
        let options = LarkOptions { max_size, ..LarkOptions::default() };
        match parse("start: (\"a\" | \"b\")* A \"c\"~3..5\nA: \"x\" | \"y\"+", &options) {
            Ok(_) => assert!(max_size > 10),
            Err(error) => assert_eq!(error.kind(), ErrorKind::TooLarge),
        }
    }
}

#[test]
fn many_alternatives() {
    let alternatives: Vec<String> = (0..100_000).map(|at| format!("\"{at}\" x")).collect();
    let grammar = read(&format!("start: {}\nx: \"x\"", alternatives.join(" | "))).unwrap();
    assert_eq!((grammar.rules.len(), grammar.terminals.len()), (100_001, 100_001));
}

#[test]
fn cyclic_and_useless_rules_are_read() {
    expect_rules("start: start", &["start: start"]);
    expect_rules("start: a\na: a \"x\"\nb: \"y\"", &["a: a \"x\"", "b: \"y\"", "start: a"]);
}

// The grammars of the shared data.

/// The folder of shared data, if there is one. In CI it has to be there.
fn shared() -> Option<PathBuf> {
    let default = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("ANYGRAM_SHARED").map_or(default, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!in_ci, "no shared data at {}: set ANYGRAM_SHARED", folder.display());
    eprintln!("SKIPPED: no shared data at {}; set ANYGRAM_SHARED to its folder", folder.display());
    None
}

fn grammars_in(folder: &str) -> Vec<(String, String)> {
    let Some(shared) = shared() else { return Vec::new() };
    let entries = std::fs::read_dir(shared.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|ext| ext == "lark")).collect();
    paths.sort();
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
    paths.into_iter().map(read).collect()
}

#[test]
fn replay_grammars_are_read() {
    for (name, source) in grammars_in("data/replay") {
        let grammar = read(&source).unwrap_or_else(|error| panic!("{}", error.render(&name, &source)));
        println!("{name}: {} terminals, {} rules", grammar.terminals.len(), grammar.rules.len());
    }
}

#[test]
fn other_grammars_are_read_or_refused_for_what_is_not_supported() {
    let folders = ["data/grammars/lark", "data/grammars/syncode", "data/grammars/cd4dllm"];
    for (name, source) in folders.into_iter().flat_map(grammars_in) {
        if let Err(error) = read(&source) {
            let library = error.kind() == ErrorKind::MissingStart && name.ends_with("unicode.lark");
            assert!(library || error.kind() == ErrorKind::Unsupported, "{}", error.render(&name, &source));
        }
    }
}

#[test]
fn mutations_do_not_panic() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below.max(1) as u64) as usize
    };
    let spice = b"()[]{}|&~?*+\"/\\<>.:%#-_ \n09azAZ\xc3\xa9\xff^$";
    for (name, source) in grammars_in("data/replay") {
        let rounds = 200_000 / source.len().max(1000);
        for round in 0..rounds {
            let mut bytes = source.clone().into_bytes();
            for _ in 0..=random(4) {
                let at = random(bytes.len());
                match random(3) {
                    0 => bytes[at] = spice[random(spice.len())],
                    1 => bytes.insert(at, spice[random(spice.len())]),
                    _ => drop(bytes.drain(at..(at + random(20)).min(bytes.len()))),
                }
                if bytes.is_empty() {
                    break;
                }
            }
            let text = String::from_utf8_lossy(&bytes);
            if let Err(error) = parse(&text, &LarkOptions::default())
                && round % 8 == 0
            {
                assert!(error.render(&name, &text).contains(error.message()), "{error}");
            }
        }
    }
}

#[test]
fn printed_grammars_are_read_again() {
    for (name, source) in grammars_in("data/replay") {
        let grammar = read(&source).unwrap();
        let printed = grammar.to_string();
        let again = read(&printed).unwrap_or_else(|error| panic!("{}", error.render(&name, &printed)));
        assert_eq!(rules(&again), rules(&grammar), "{name}");
        for terminal in &grammar.terminals {
            let same = again.terminals.iter().find(|other| other.name == terminal.name);
            let same = same.unwrap_or_else(|| panic!("{name}: {} is lost", terminal.name));
            let (is, was) = ((&same.kind, same.priority), (&terminal.kind, terminal.priority));
            assert!(is == was && same.ignored == terminal.ignored, "{name}: {} changed", terminal.name);
        }
    }
}

#[test]
fn terminals_with_impossible_parts_are_optional_all_the_same() {
    use anygram_bits::BitSet;
    use anygram_grammar::cfg::Cfg;

    // NOTHING matches only the empty string, so it is never scanned; MAYBE may be left out.
    let grammar = read("start: NOTHING MAYBE \"x\"\nNOTHING: /[^\\s\\S]*/\nMAYBE: /a|[^\\s\\S]*/\n").unwrap();
    assert_eq!(terminals(&grammar), ["\"x\"", "NOTHING", "MAYBE"]);
    let nullable = |at: usize| grammar.terminals[at].kind.pattern().unwrap().is_nullable();
    assert_eq!([0, 1, 2].map(nullable), [false, true, true]);
    let cfg = Cfg::reduce(&grammar, &BitSet::from_members(3, [1])).unwrap();
    let names: Vec<String> = cfg.used_terminals().iter().map(|at| grammar.terminals[at].name.clone()).collect();
    assert_eq!(names, ["\"x\"", "MAYBE"]);
    assert_eq!(cfg.minimum_lengths()[grammar.start.index()], 1);
}
