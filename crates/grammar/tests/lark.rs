//! Lark grammars from end to end: what they lower to, what their authors are told, and what hostile ones
//! cost.

use std::path::PathBuf;

use anygram_grammar::diagnostic::{ErrorKind, GrammarError};
use anygram_grammar::ir::{Grammar, LexerMode, Pattern, SpecialToken, Symbol, TerminalKind};
use anygram_grammar::lark::{LarkOptions, parse};
use anygram_testkit::shared::data;

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
    expect_rules(
        "start: (\"a\" \"b\") | (\"c\" | \"d\")",
        &[r#"start: "a" "b""#, r#"start: "c""#, r#"start: "d""#],
    );
    expect_rules(
        "start: \"x\" (\"a\" | \"b\") (\"a\" | \"b\")",
        &[
            r#"__start_group_0: "a""#,
            r#"__start_group_0: "b""#,
            r#"start: "x" __start_group_0 __start_group_0"#,
        ],
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
    expect_rules(
        "start: \"\"* (\"\" | \"\")",
        &["__start_option_0:", "__start_option_0:", "start: __start_option_0"],
    );
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
    let grammar =
        read("start: \"if\" \"IF\"i /x/ \"y\" \"if\" A\nIF: \"if\"\nX: (/x/)\nA: \"a\" | IF\nY: X").unwrap();
    // Two terminals are `/x/`; the last one is meant. `X` itself is not used then.
    assert_eq!(terminals(&grammar), ["IF", "A", "Y", "\"IF\"i", "\"y\""]);
    assert_eq!(rules(&grammar), [r#"start: IF "IF"i Y "y" IF A"#]);
    let literal: Vec<bool> =
        grammar.terminals.iter().map(|terminal| matches!(terminal.kind, TerminalKind::Literal(_))).collect();
    assert_eq!(literal, [true, false, false, true, true]);
}

#[test]
fn terminals_come_as_declared_then_as_used_and_only_if_used() {
    let source = "%ignore \" \"\nB: \"b\"\nstart: A \"c\" B | /d/i\nPART: \"p\"\nA.-3: PART+\n%ignore /#.*/\n\
                  %ignore WS\n%import common.WS\n%import common.NUMBER -> N\n%ignore (\"x\" | B)";
    let grammar = read(source).unwrap();
    assert_eq!(terminals(&grammar), ["B", "A", "WS", "\"c\"", "/d/i", "\" \"", "/#.*/", "(\"x\" | B)"]);
    let ignored: Vec<bool> = grammar.terminals.iter().map(|terminal| terminal.ignored).collect();
    assert_eq!(ignored, [false, false, true, false, false, true, true, true]);
    assert_eq!(grammar.terminals[1].priority, -3);
    assert_eq!(grammar.terminals[2].span, None);
    assert_eq!(grammar.terminals[1].span, Some(51..52));
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
    assert_eq!(terminals(&grammar), ["X", "<|user|>", "<[12]>"]);
    assert_eq!(grammar.terminals[1].kind, TerminalKind::Special(SpecialToken::Name("<|user|>".into())));
    assert_eq!(grammar.terminals[2].kind, TerminalKind::Special(SpecialToken::Id(12)));
    let grammar = read("start: <|user|> USER <[12]>\nUSER.2: <|user|>").unwrap();
    assert_eq!(rules(&grammar), ["start: USER USER <[12]>"]);
    assert_eq!((grammar.terminals[0].priority, grammar.terminals[0].declared), (2, true));
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
fn templates() {
    expect_rules(
        "start: sep{word, \",\"} | sep{\"x\", \";\"} | sep{word, \",\"} \"!\"\nsep{item, by}: item (by \
         item)*\nword: \"w\"",
        &[
            "__sep{\"x\",\";\"}_star_1:",
            "__sep{\"x\",\";\"}_star_1: __sep{\"x\",\";\"}_star_1 \";\" \"x\"",
            "__sep{word,\",\"}_star_0:",
            "__sep{word,\",\"}_star_0: __sep{word,\",\"}_star_0 \",\" word",
            "sep{\"x\",\";\"}: \"x\" __sep{\"x\",\";\"}_star_1",
            "sep{word,\",\"}: word __sep{word,\",\"}_star_0",
            "start: sep{\"x\",\";\"}",
            "start: sep{word,\",\"}",
            "start: sep{word,\",\"} \"!\"",
            "word: \"w\"",
        ],
    );
    // A template of templates, one that is recursive, one that is an argument, one that is not used.
    expect_rules(
        "start: a{b{X}} | c{b, /y/} | d {X}?\na{x}: x x\nb{x}: \"<\" x \">\" | \"\"\nc{f, x}: f{x} | \
         f{\"\"}\n\
         d{x}: x d{x} |\ne{x}: e{x}\nX: \"x\"",
        &[
            "a{b{X}}: b{X} b{X}",
            "b{\"\"}:",
            "b{\"\"}: \"<\" \">\"",
            "b{/y/}:",
            "b{/y/}: \"<\" /y/ \">\"",
            "b{X}:",
            "b{X}: \"<\" X \">\"",
            "c{b,/y/}: b{\"\"}",
            "c{b,/y/}: b{/y/}",
            "d{X}:",
            "d{X}: X d{X}",
            "start:",
            "start: a{b{X}}",
            "start: c{b,/y/}",
            "start: d{X}",
        ],
    );
    // Names that are taken already.
    let grammar =
        read("start: a{x} `a{x}` `a{x}'`\na{y}: y\nx: \"x\"\n`a{x}`: \"\"\n`a{x}'`: x+\n__start_plus_0: x")
            .unwrap();
    assert!(grammar.nonterminals.iter().any(|nonterminal| nonterminal.name == "a{x}''"));
    expect_same_when_printed("taken", &grammar);
}

#[test]
fn templates_that_grow_without_end_are_refused() {
    let sources = [
        "start: t{\"a\"}\nt{x}: t{t{x}}",
        "start: t{\"a\", \"b\"}\nt{x, y}: t{u{x, y}, u{x, y}}\nu{x, y}: x y",
        "start: t{\"a\"}\nt{x}: u{t{x}}\nu{x}: t{u{x}} x",
    ];
    for source in sources {
        let error = read(source).unwrap_err();
        assert!(error.kind() == ErrorKind::Limit && error.line() > 1, "{source}");
    }
}

#[test]
fn braces_repeat() {
    let expected = rules(
        &read("start: \"a\"~2 (\"b\" \"c\")~1..3 \"d\"~3 \"d\"* x~0..2 X~4..4\nx: \"x\"\nX: /x/~2").unwrap(),
    );
    let braces = "start: \"a\"{2} (\"b\" \"c\"){1,3} \"d\"{3,} x{,2} X {4,4}\nx: \"x\"\nX: /x/{2}";
    assert_eq!(rules(&read(braces).unwrap()), expected);
    expect_pattern(
        "T: \"ab\"{2} D{1,3} [\"e\"]{,2} (\"f\"){4,}\nD: \"0\"..\"9\"",
        "(?:ab){2}[0-9]{1,3}(?:e?){0,2}f{4,}",
    );
}

#[test]
fn overriding_and_extending() {
    expect_rules(
        "start: a A B\na: \"a\"\nb: a\n%override a: \"o\"\n%extend a: \"x\" | \"y\"\n%extend b: \"b\"\nA: \
         \"A\"\nB: A\n%override A: /o/",
        &["a: \"o\"", "a: \"x\"", "a: \"y\"", "b: \"b\"", "b: a", "start: a A B"],
    );
    expect_pattern("T: \"t\"\n%extend T: \"u\" | \"vw\"", "u|vw|t");
    expect_pattern("%import common.LETTER -> T\n%extend T: \"_\"", "_|[A-Za-z]");
    expect_pattern("%import common.LETTER -> T\n%override T: \"_\"", "_");
    expect_rules(
        "start: t{\"a\"}\nt{x}: x\n%extend t{x}: x x",
        &["start: t{\"a\"}", "t{\"a\"}: \"a\"", "t{\"a\"}: \"a\" \"a\""],
    );
    // The priority stays that of the definition.
    assert_eq!(read("start: A\nA.3: \"a\"\n%extend A.7: \"b\"").unwrap().terminals[0].priority, 3);
    assert_eq!(read("start: A\nA.3: \"a\"\n%override A.7: \"b\"").unwrap().terminals[0].priority, 7);
}

#[test]
fn what_the_grammar_says_about_itself() {
    let source = "%lexer scannerless\n%start `NP/en-char`\n`NP/en-char`: \"x\" `a\\`b`\n`a\\`b`: \"\"\n\
                  %reserve WORD\nWORD.-1: /[a-z]+/\n%reserve /[0-9]+/ | \"-\"\n%nonterminal nothing\n\
                  %llguidance {\"no_forcing\": true, \"allow_initial_skip\": true}\n%llguidance {}";
    let grammar = read(source).unwrap();
    assert_eq!(grammar.default_lexer, LexerMode::Scannerless);
    assert_eq!(grammar.symbol_name(Symbol::Nonterminal(grammar.start)), "NP/en-char");
    assert_eq!(terminals(&grammar), ["WORD", "\"x\"", "/[0-9]+/ | \"-\""]);
    assert_eq!(
        grammar.terminals.iter().map(|terminal| terminal.reserved).collect::<Vec<_>>(),
        [true, false, true]
    );
    assert_eq!(grammar.nonterminals[2].name, "nothing");
    assert_eq!(grammar.rules.len(), 2);
    expect_same_when_printed("directives", &grammar);
    let options = LarkOptions { start: Some("a`b".into()), ..LarkOptions::default() };
    let grammar = parse(source, &options).unwrap();
    assert_eq!(grammar.symbol_name(Symbol::Nonterminal(grammar.start)), "a`b");
}

/// A folder of files that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("anygram-lark-{name}-{}", std::process::id()));
        for (name, text) in files {
            let file = path.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Self(path)
    }

    fn read(&self, source: &str) -> Result<Grammar, GrammarError> {
        let grammar =
            parse(source, &LarkOptions { imports: Some(self.0.clone()), ..LarkOptions::default() })?;
        grammar.validate().unwrap();
        expect_same_when_printed("imported", &grammar);
        Ok(grammar)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const NUMBERS: &str = "\
start: sum\nsum: product (\"+\" product)*\nproduct: _atom (\"*\" _atom)*\n_atom: NUMBER | \"(\" sum \")\" | \
call{sum}\n\
call{x}: NAME \"(\" x \")\"\nNUMBER: DIGIT+\nDIGIT: \"0\"..\"9\"\n%import common.CNAME -> NAME\n%ignore \" \
\"\nunused: undefined";

#[test]
fn imports_of_files() {
    let folder = Folder::new("files", &[("numbers.lark", NUMBERS)]);
    let grammar = folder
        .read("%import .numbers.sum\n%import .numbers (NUMBER, _atom)\nstart: sum | _atom NUMBER")
        .unwrap();
    assert_eq!(
        rules(&grammar),
        [
            "__numbers__product_star_1:",
            "__numbers__product_star_1: __numbers__product_star_1 \"*\" _atom",
            "__sum_star_0:",
            "__sum_star_0: __sum_star_0 \"+\" numbers__product",
            "_atom: \"(\" sum \")\"",
            "_atom: NUMBER",
            "_atom: numbers__call{sum}",
            "numbers__call{sum}: NUMBERS__NAME \"(\" sum \")\"",
            "numbers__product: _atom __numbers__product_star_1",
            "start: _atom NUMBER",
            "start: sum",
            "sum: numbers__product __sum_star_0",
        ]
    );
    assert_eq!(terminals(&grammar)[..2], ["NUMBERS__NAME", "NUMBER"]);
    assert!(grammar.terminals.iter().all(|terminal| !terminal.ignored));
    assert_eq!(grammar.nonterminals[0].span, None);
    // What is overridden here is overridden there, if it is a rule; parts of terminals are not.
    let changed = "start: sum\n%import .numbers (sum, _atom, DIGIT) \n%override _atom: DIGIT | \"x\"\n\
                   %override DIGIT: /[a-z]/";
    let grammar = folder.read(changed).unwrap();
    assert!(rules(&grammar).contains(&"_atom: \"x\"".to_owned()) && terminals(&grammar)[0] == "DIGIT");
    let grammar =
        folder.read("start: NUMBER\n%import .numbers (NUMBER, DIGIT)\n%override DIGIT: /[a-z]/").unwrap();
    let pattern = |grammar: &Grammar| grammar.terminals[0].kind.to_string();
    assert_eq!(pattern(&grammar), "/[0-9]+/");
    let grammar =
        folder.read("start: NUMBER\n%import .numbers (NUMBER, DIGIT)\n%extend DIGIT: /[a-z]/").unwrap();
    assert_eq!(pattern(&grammar), "/[0-9a-z]+/");
    let grammar = folder.read("start: n\n%import .numbers.sum -> n\n%extend n: \"nothing\"").unwrap();
    assert!(rules(&grammar).contains(&"n: \"nothing\"".to_owned()));
}

#[test]
fn imports_in_imported_files() {
    let files = [
        ("a.lark", "%import .b.x\n%import .sub.c.x -> y\na: x y z A\nz: \"z\"\n%import common.INT -> A"),
        ("b.lark", "x: _b _B\n_b: \"b\"\n_B: /b/\n%declare UNUSED\nBAD: /(?=a)/"),
        ("sub/c.lark", "%import .d.D\nx: D"),
        ("sub/d.lark", "\u{feff}D: E\nE: \"d\""),
    ];
    let folder = Folder::new("nested", &files);
    let grammar = folder.read("%import .a.a\n%import .b.x -> a__x\nstart: a a__x").unwrap_err();
    assert_eq!((grammar.kind(), grammar.line()), (ErrorKind::Syntax, 2));
    let grammar = folder.read("%import .a.a\n%import .b.x\nstart: a x").unwrap();
    assert_eq!(
        rules(&grammar),
        [
            "_a__b__b: \"b\"",
            "_b__b: \"b\"",
            "a: a__x a__y a__z A__A",
            "a__x: _a__b__b _A__B__B",
            "a__y: A__SUB__C__D",
            "a__z: \"z\"",
            "start: a x",
            "x: _b__b _B__B",
        ]
    );
}

#[test]
fn mistakes_in_imported_files_are_shown_there() {
    let files = [
        ("syntax.lark", "x: \"x\"\ny: (\"é\"\n"),
        ("name.lark", "// é\nx: y\n"),
        ("look.lark", "x: X\nX: /a(?=b)/\n"),
        ("first.lark", "%import .second.x"),
        ("second.lark", "%import .first.x"),
        ("declared.lark", "x: X\n%declare X"),
        ("x.lark", "x: \"x\""),
        ("bytes.lark", "x: \"x\"\n"),
    ];
    let folder = Folder::new("mistakes", &files);
    std::fs::write(folder.0.join("bytes.lark"), b"x: \"\xff\"").unwrap();
    let cases = [
        (
            "%import .syntax.x",
            ErrorKind::Syntax,
            Some("syntax.lark"),
            2,
            8,
            "expected `)`, found the end of the line",
        ),
        ("%import .name.x", ErrorKind::Syntax, Some("name.lark"), 2, 4, "`y` is not defined"),
        (
            "%import .look.x",
            ErrorKind::Unsupported,
            Some("look.lark"),
            2,
            6,
            "in this regular expression: the look-around `(?=` is not supported",
        ),
        (
            "%import .declared.x",
            ErrorKind::Unsupported,
            Some("declared.lark"),
            2,
            10,
            "`%declare` is not supported: no lexer outside of the grammar could produce `DECLARED__X` from a \
             text",
        ),
        ("%import .second.x", ErrorKind::Io, Some("first.lark"), 1, 10, ""),
        ("%import .x.y", ErrorKind::Syntax, None, 1, 12, ""),
        ("%import .x (x, y)", ErrorKind::Syntax, None, 1, 16, ""),
        ("%import .x.x -> X", ErrorKind::Syntax, None, 1, 17, "`x` is a rule: its name is lower case"),
        (
            "%import .x.x -> y\n%import .x.x",
            ErrorKind::Syntax,
            None,
            2,
            12,
            "`x` is imported twice, as `y` and as `x`",
        ),
        ("x: \"\"\n%import .x.x", ErrorKind::Syntax, None, 1, 1, "`x` is defined twice"),
        ("%import .none.x", ErrorKind::Io, None, 1, 10, ""),
        ("%import .bytes.x", ErrorKind::Io, None, 1, 10, ""),
        ("%import .`..`.x.x", ErrorKind::Io, None, 1, 10, ""),
        ("%import .`/etc/passwd`.x", ErrorKind::Io, None, 1, 10, ""),
        ("%import .`a/../../x`.x", ErrorKind::Io, None, 1, 10, ""),
    ];
    for (source, kind, file, line, column, message) in cases {
        let source = format!("{source}\nstart: x\n");
        let error = folder.read(&source).expect_err(&source);
        let found_file = error.file().map(|file| file.rsplit(['/', '\\']).next().unwrap());
        assert_eq!(
            (error.kind(), found_file, error.line(), error.column()),
            (kind, file, line, column),
            "{source}{error}"
        );
        assert!(error.message().contains(message), "{error}");
        let rendered = error.render("main.lark", &source);
        assert!(rendered.contains(&format!("{}:{line}:{column}", file.unwrap_or("main.lark"))), "{rendered}");
    }
    let rendered = folder.read("start: x\n%import .syntax.x").unwrap_err().render("main.lark", "");
    assert!(rendered.contains("2 | y: (\"é\"") && rendered.contains("this is not closed"), "{rendered}");
    // Without a folder nothing is read.
    assert_eq!(read("start: x\n%import .x.x").unwrap_err().kind(), ErrorKind::Unsupported);
    #[cfg(unix)]
    {
        let outside = Folder::new("outside", &[("x.lark", "x: \"x\"")]);
        std::os::unix::fs::symlink(outside.0.join("x.lark"), folder.0.join("link.lark")).unwrap();
        let error = folder.read("start: x\n%import .link.x").unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains("outside"), "{error}");
    }
}

#[test]
fn imports_are_limited() {
    let chain = |n: usize, twice: bool| {
        let line = |next: usize| match twice {
            true => format!("%import .f{next}a.x\n%import .f{next}b.x -> y\nx: x y"),
            false => format!("%import .f{next}a.x -> y\nx: y"),
        };
        let text = |at: usize| {
            if at == n { "x: \"x\"".to_owned() } else { line(at + 1).replacen("x: x y", "z: x y", 1) }
        };
        let files = (0..=n).flat_map(|at| ["a", "b"].map(|side| (format!("f{at}{side}.lark"), text(at))));
        files.collect::<Vec<_>>()
    };
    let folder = |name: &str, files: &[(String, String)]| {
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        Folder::new(name, &files)
    };
    let long = folder("long", &chain(100, false));
    let error = long.read("start: x\n%import .f0a.x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    // Two copies of each file for each importer.
    let wide = folder("wide", &chain(28, true));
    let options = LarkOptions { max_size: 20_000, imports: Some(wide.0.clone()), ..LarkOptions::default() };
    let error = parse("start: z\n%import .f0a.z", &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn imports() {
    let grammar =
        read("%import common (INT, CNAME)\n%import common.WS\n%import common.WS\nstart: CNAME INT\n")
            .unwrap();
    assert_eq!(terminals(&grammar), ["INT", "CNAME"]);
    expect_pattern("%import unicode.LU -> T", r"\p{Lu}");
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
        ("start: \"a\"\n\nstart: \"b\"", Syntax, 3, 1, "`start` is defined twice"),
        ("start: A\nA: \"a\"\n%import common.INT -> A", Syntax, 3, 23, "`A` is defined twice"),
        ("start: exprs\nexpr: \"a\"", Syntax, 1, 8, "`exprs` is not defined"),
        ("start: A\nA: B", Syntax, 2, 4, "`B` is not defined"),
        ("start: \"a\"\n%ignore WS", Syntax, 2, 9, "`WS` is not defined"),
        ("%import common.NUMBERS\nstart: \"a\"", Syntax, 1, 16, "the library `common` has no `NUMBERS`"),
        ("stat: \"a\"", Syntax, 1, 1, "there is no rule `start` to start from"),
        ("", Syntax, 1, 1, "there is no rule `start` to start from"),
        ("start: \"é\" \"a\n", Syntax, 1, 12, "this string is not closed on its line"),
        ("start: /a\n", Syntax, 1, 8, "this regular expression is not closed on its line"),
        ("start: (\"a\"\n", Syntax, 1, 12, "expected `)`, found the end of the line"),
        ("start: (\"a\"]\n", Syntax, 1, 12, "expected `)`, found `]`"),
        ("start: \"a\")\n", Syntax, 1, 11, "expected an expression or the end of the line, found `)`"),
        ("start: \"a\"+?\n", Syntax, 1, 12, "nothing before `?` that it could repeat"),
        (
            "start: \"a\" |\n  \"b\"\n",
            Syntax,
            2,
            3,
            "expected a rule, a terminal or a directive, found `\"b\"`",
        ),
        ("start = \"a\"", Syntax, 1, 7, "expected `:` after the name `start`, found `=`"),
        ("Start: \"a\"", Syntax, 1, 1, "the name `Start` mixes upper and lower case"),
        ("?A: \"a\"", Syntax, 1, 1, "`?` and `!` shape the trees of rules; `A` is a terminal"),
        ("start: A\nA: ~", Syntax, 2, 4, "nothing follows this `~`"),
        ("start: \"ab\"..\"c\"", Syntax, 1, 8, "a bound of a range is one character, not 2"),
        ("start: \"z\"..\"a\"", Syntax, 1, 8, "the range from 'z' to 'a' is empty"),
        ("start: \"a\"~3..2", Syntax, 1, 12, "`3..2` allows no number of times"),
        ("start: \"\\u12\"", Syntax, 1, 9, "`\\u` needs 4 hexadecimal digits"),
        ("start: /a(b/", Syntax, 1, 10, "in this regular expression: unclosed group"),
        (
            "start: /é\\bb/",
            Unsupported,
            1,
            10,
            "in this regular expression: the anchor `\\b` is not supported",
        ),
        ("start: A\nA: \"a\" B\nB: A?", Syntax, 3, 4, "the terminal `A` is defined by itself, through `B`"),
        ("start: A\nA: A", Syntax, 2, 4, "the terminal `A` is defined by itself"),
        ("start: A\nA: start", Unsupported, 2, 4, "the rule `start` cannot be part of a terminal"),
        (
            "start: A\nA: \"a\" <|x|>",
            Unsupported,
            2,
            8,
            "a token of the vocabulary cannot be part of a terminal",
        ),
        (
            "start: A B\nB: <|x|>\nA: B+",
            Unsupported,
            3,
            4,
            "`B` is a token of the vocabulary, which cannot be part of a terminal",
        ),
        (
            "start: \"a\"\n%ignore start",
            Unsupported,
            2,
            9,
            "`start` is a rule; only terminals can be ignored",
        ),
        ("start: \"a\" & \"b\"", Unsupported, 1, 8, "`&` is not supported in rules"),
        ("list{x}: x\nlist{y}: y", Syntax, 2, 1, "`list` is defined twice"),
        ("start: list{\"a\"}\n", Syntax, 1, 8, "`list` is not defined"),
        ("start: start{\"a\"}\n", Syntax, 1, 8, "`start` is not a template"),
        ("start: list\nlist{x}: x", Syntax, 1, 8, "the template `list` is used without arguments"),
        (
            "start: list{\"a\", \"b\"}\nlist{x}: x",
            Syntax,
            1,
            8,
            "the template `list` takes 1 arguments, given 2",
        ),
        (
            "start: list{(\"a\" | \"b\")}\nlist{x}: x",
            Syntax,
            1,
            13,
            "an argument of a template is a single name, string or regular expression",
        ),
        (
            "start: list{\"a\" \"b\"}\nlist{x}: x",
            Syntax,
            1,
            13,
            "an argument of a template is a single name, string or regular expression",
        ),
        ("start: list{\"a\", }\nlist{x}: x", Syntax, 1, 18, "expected an argument, found `}`"),
        ("start: list{\"a\"\nlist{x}: x", Syntax, 1, 16, "expected `,` or `}`, found the end of the line"),
        ("start: \"a\"{x}", Syntax, 1, 11, "nothing before `{` that could take arguments"),
        (
            "start: \"a\"\nlist{x, x}: x",
            Syntax,
            2,
            9,
            "the parameter `x` has the name of another parameter or of a rule",
        ),
        (
            "start: \"a\"\nlist{start}: start",
            Syntax,
            2,
            6,
            "the parameter `start` has the name of another parameter or of a rule",
        ),
        ("start: \"a\"\nlist{x}: x y", Syntax, 2, 12, "`y` is not defined"),
        ("start: list{\"a\"}\nlist{x}: x{\"b\"}", Syntax, 2, 10, "`x` is not a template"),
        ("start{x}: x", Syntax, 1, 1, "the start symbol `start` is a template; it has to be a rule"),
        ("start: \"a\"\nA{x}: x", Unsupported, 2, 2, "a template for terminals is not supported"),
        (
            "start: A\nA: list{\"a\"}\nlist{x}: x",
            Unsupported,
            2,
            4,
            "the rule `list` cannot be part of a terminal",
        ),
        ("start: \"a\"{3,2}", Syntax, 1, 11, "`3..2` allows no number of times"),
        ("start: \"a\"{2}{3}", Syntax, 1, 14, "nothing before `{` that it could repeat"),
        (
            "%declare X",
            Unsupported,
            1,
            10,
            "`%declare` is not supported: no lexer outside of the grammar could produce `X` from a text",
        ),
        (
            "%declare _INDENT",
            Unsupported,
            1,
            10,
            "`%declare` is not supported: `_INDENT` stands for indentation, and how deep a line stands in \
             comparison with all lines before it is not context-free",
        ),
        ("%override start: X", Syntax, 1, 11, "there is no `start` yet to override"),
        ("%extend start: X\nstart: X", Syntax, 1, 9, "there is no `start` yet to extend"),
        ("start: \"a\"\n%extend start{x}: x", Syntax, 2, 9, "`start` is extended with other parameters"),
        (
            "%llguidance {\"allow_invalid_utf8\": true}",
            Unsupported,
            1,
            14,
            "the option `allow_invalid_utf8` with `true` is not supported",
        ),
        ("%llguidance {\"x\": 1}", Unsupported, 1, 14, "the option `x` of llguidance is not supported"),
        (
            "start[lazy, stop=\"x\"]: /a/",
            Syntax,
            1,
            13,
            "a rule has at most one of `lazy`, `suffix` and `stop`",
        ),
        (
            "a[stop=/x/]: /a/\nstart: a",
            Unsupported,
            1,
            8,
            "the attribute `stop` is not supported: it takes back what was written",
        ),
        ("A[lazy]: /a/", Unsupported, 1, 2, "attributes of terminals are not supported"),
        ("start[lazy]: b\nb: /a/", Unsupported, 1, 14, "the rule `b` cannot be part of a terminal"),
        ("start[fast]: /a/", Syntax, 1, 7, "unknown attribute `fast`"),
        ("start: @sub", Syntax, 1, 8, "there is no grammar `@sub`"),
        ("start: %lark { start: @x }", Syntax, 1, 23, "there is no grammar `@x`"),
        ("start: %lark { start: y }", Syntax, 1, 23, "`y` is not defined"),
        (
            "start: %lark { start: \"y\"",
            Syntax,
            1,
            14,
            "the grammar of `%lark` is not closed: `}` is missing",
        ),
        ("start: <[5-1]>", Syntax, 1, 8, "the range from 5 to 1 is empty"),
        ("start: <[x]>", Syntax, 1, 8, "`x` is not the id of a token"),
        (
            "%llguidance {",
            Syntax,
            1,
            14,
            "expected the name of an option in quotes, or `}`, found the end of the file",
        ),
        (
            "start: %json {\"type\": \"null\"}",
            Unsupported,
            1,
            8,
            "the schema of `%json`: nobody reads schemas here",
        ),
        ("start: %json null", Syntax, 1, 8, "behind `%json` stands a schema: `%json {…}`"),
        (
            "start: \"a\"\n  | %json\n  {\"a\": \"}\"",
            Syntax,
            3,
            3,
            "the schema is not closed: `}` is missing",
        ),
        ("start: A\nA: %json {}", Unsupported, 2, 4, "a JSON schema is not a part of a terminal"),
        ("start: a::0\na: \"\"", Syntax, 1, 8, "the rule `a` takes no parameter"),
        ("start: a\na::_: \"\"", Syntax, 1, 8, "the rule `a` is used without its parameter"),
        (
            "start: a::_\na::_: \"\"",
            Syntax,
            1,
            8,
            "there is no parameter here: the rule around it is not defined as `name::_: …`",
        ),
        ("start: \"a\" %if true", Syntax, 1, 12, "`%if` needs a rule with a parameter, `name::_: …`"),
        (
            "start: a::0\na::_: \"\" %if odd(_)",
            Syntax,
            2,
            14,
            "expected a condition, such as `is_ones`, `bit_clear`, `lt`, `bit_count_le`, `and` or `true`, \
             found `odd`",
        ),
        ("start: a::0\na::_: \"\" %if lt([3:3], 1)", Syntax, 2, 21, "expected an end beyond 3, found `]`"),
        (
            "start: a::0\na::_: \"x\" a::incr(_)",
            Limit,
            2,
            11,
            "the grammar grows beyond the limit of 2000000 symbols here",
        ),
        ("%lexer greedy", Syntax, 1, 8, "expected one of scannerless, longest, contextual, found `greedy`"),
        ("%lexer longest\n%lexer longest", Syntax, 2, 1, "`%lexer` is said twice"),
        ("%start a\na: \"a\"\n%start b", Syntax, 3, 8, "`%start` is said twice"),
        ("%start b\na: \"a\"", Syntax, 1, 8, "there is no rule `b` to start from"),
        ("%import .other.x", Unsupported, 1, 10, "no folder is known to import files from"),
        ("%import ..other.x", Unsupported, 1, 9, "importing from a folder above is not supported"),
        ("%import common", Syntax, 1, 9, "nothing is imported from here"),
        ("%import common.INT -> int", Syntax, 1, 23, "`INT` is a terminal: its name is upper case"),
        ("start: `a", Syntax, 1, 8, "this name is not closed on its line"),
        ("%import python.NAME", Unsupported, 1, 9, "importing from `python` is not supported"),
        ("%inlcude x", Syntax, 1, 1, "unknown directive `%inlcude`"),
        ("start: /a/l", Unsupported, 1, 11, "the flag `l` (locale) is not supported"),
        ("start: \"a\"~99999999", Limit, 1, 8, "the grammar grows beyond the limit of 2000000 symbols here"),
        ("start: \"a\"~99999999999", Limit, 1, 12, "99999999999 times is too much: at most 4294967295"),
    ];
    let mut wrong = Vec::new();
    for &(source, kind, line, column, message) in cases {
        let expected = (kind, line, column, message.to_owned());
        let found = match read(source) {
            Ok(_) => Err("it is read"),
            Err(error) => {
                assert!(error.render("g.lark", source).contains(error.message()), "{source}");
                Ok((error.kind(), error.line(), error.column(), error.message().to_owned()))
            }
        };
        if found.as_ref() != Ok(&expected) {
            wrong.push(format!("{source:?}: {found:?}, expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
    for (open, close) in
        [("(", ")*"), ("~", ""), ("(\"x\" ", ")?"), ("(", " & \"x\")"), ("(\"x\" | ", " \"y\")")]
    {
        let source = format!("start: A\nA: {}\"a\"{}", open.repeat(DEPTH), close.repeat(DEPTH));
        assert_eq!(read(&source).unwrap_err().kind(), ErrorKind::Limit, "{open}");
    }
    let mut chain = "start: A0\n".to_owned();
    for at in 0..DEPTH {
        let (a, b) = (format!("A{at}"), format!("A{}", at + 1));
        chain += &format!("{a}: {b}\n");
    }
    assert!(read(&(chain + &format!("A{DEPTH}: \"a\""))).is_ok());
    let templates = format!("start: {}\"a\"{}\nt{{x}}: x", "t{".repeat(DEPTH), "}".repeat(DEPTH));
    assert_eq!(read(&templates).unwrap_err().kind(), ErrorKind::Limit);
    let some = format!("start: {}\"a\"{}\nt{{x}}: x", "t{".repeat(1000), "}".repeat(1000));
    let grammar = read(&some).unwrap();
    assert_eq!(grammar.nonterminals.len(), 1001);
    expect_same_when_printed("templates", &grammar);
    expect_same_when_printed("starred", &read(&starred).unwrap());
    let regex = format!("start: /{}a{}/", "(".repeat(DEPTH), ")".repeat(DEPTH));
    assert_eq!(read(&regex).unwrap_err().kind(), ErrorKind::Limit);
    let unclosed = format!("start: {}", "(".repeat(DEPTH));
    assert_eq!(read(&unclosed).unwrap_err().kind(), ErrorKind::Syntax);
}

#[test]
fn growth_is_limited() {
    let mut doubling = "start: A60\nA0: \"a\"\n".to_owned();
    for at in 0..60 {
        doubling += &format!("A{}: A{at} A{at}\n", at + 1);
    }
    assert_eq!(read(&doubling).unwrap_err().kind(), ErrorKind::Limit);
    assert!(read("start: /(a{1000}){1000}/").is_ok());
    let nested = format!("start: {}\"a\"{}", "(".repeat(30), ")~1000".repeat(30));
    assert!(read(&nested).is_ok_and(|grammar| grammar.rules.len() < 30 * 30));
    for max_size in 0..40 {
        let options = LarkOptions { max_size, ..LarkOptions::default() };
        match parse("start: (\"a\" | \"b\")* A \"c\"~3..5\nA: \"x\" | \"y\"+", &options) {
            Ok(_) => assert!(max_size > 10),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Limit),
        }
    }
}

#[test]
fn many_parameters_and_extensions() {
    let n = 20_000;
    let names: Vec<String> = (0..n).map(|at| format!("x{at}")).collect();
    let arguments = vec!["\"a\""; n].join(",");
    let source = format!("start: t{{{arguments}}}\nt{{{}}}: {}", names.join(","), names.join(" "));
    assert_eq!(read(&source).unwrap().rules.len(), 2);
    let extended = "start: A\nA: \"a\"\n".to_owned() + &"%extend start: A\n%extend A: \"b\"\n".repeat(n);
    assert_eq!(read(&extended).unwrap().rules.len(), n + 1);
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

fn grammars_in(folder: &str) -> Vec<(String, String)> {
    let Some(data) = data() else { return Vec::new() };
    let entries = std::fs::read_dir(data.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|ext| ext == "lark")).collect();
    paths.sort();
    let read = |path: PathBuf| (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
    paths.into_iter().map(read).collect()
}

#[test]
fn replay_grammars_are_read() {
    for (name, source) in grammars_in("replay") {
        let grammar = read(&source).unwrap_or_else(|error| panic!("{}", error.render(&name, &source)));
        println!("{name}: {} terminals, {} rules", grammar.terminals.len(), grammar.rules.len());
    }
}

#[test]
fn other_grammars_are_read_or_refused_for_what_is_not_supported() {
    let folders = ["grammars/lark", "grammars/syncode", "grammars/cd4dllm"];
    for (name, source) in folders.into_iter().flat_map(grammars_in) {
        if let Err(error) = read(&source) {
            let library = error.kind() == ErrorKind::Syntax && name.ends_with("unicode.lark");
            assert!(library || error.kind() == ErrorKind::Unsupported, "{}", error.render(&name, &source));
        }
    }
}

#[test]
fn mutations_do_not_panic() {
    let mut random = anygram_bits::Random::new(1);
    let spice = b"()[]{}|&~?*+\"/\\<>.:%#-_ \n09azAZ\xc3\xa9\xff^$";
    for (name, source) in grammars_in("replay") {
        let rounds = 200_000 / source.len().max(1000);
        for round in 0..rounds {
            let mut bytes = source.clone().into_bytes();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                match random.below(3) {
                    0 => bytes[at] = *random.choose(spice),
                    1 => bytes.insert(at, *random.choose(spice)),
                    _ => drop(bytes.drain(at..(at + random.below(20)).min(bytes.len()))),
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

/// Prints a grammar and reads that: it has to be the same.
#[track_caller]
fn expect_same_when_printed(name: &str, grammar: &Grammar) {
    let printed = grammar.to_string();
    let again = read(&printed).unwrap_or_else(|error| panic!("{}", error.render(name, &printed)));
    assert_eq!(grammar.difference(&again), None, "{name}");
}

#[test]
fn printed_grammars_are_the_same_when_read() {
    let mut n_printed = 0;
    let folders = ["replay", "grammars/lark", "grammars/syncode", "grammars/cd4dllm"];
    for (name, source) in folders.into_iter().flat_map(grammars_in) {
        let options =
            LarkOptions { imports: PathBuf::from(&name).parent().map(Into::into), ..LarkOptions::default() };
        if let Ok(grammar) = parse(&source, &options) {
            grammar.validate().unwrap();
            expect_same_when_printed(&name, &grammar);
            n_printed += 1;
        }
    }
    println!("{n_printed} grammars");
    assert!(data().is_none() || n_printed > 30, "{n_printed}");
}

#[test]
fn terminals_with_impossible_parts_are_optional_all_the_same() {
    use anygram_bits::BitSet;
    use anygram_grammar::cfg::Cfg;

    // NOTHING matches only the empty string, so it is never scanned; MAYBE may be left out.
    let grammar = read("start: NOTHING MAYBE \"x\"\nNOTHING: /[^\\s\\S]*/\nMAYBE: /a|[^\\s\\S]*/\n").unwrap();
    assert_eq!(terminals(&grammar), ["NOTHING", "MAYBE", "\"x\""]);
    let nullable = |at: usize| grammar.terminals[at].kind.pattern().unwrap().is_nullable();
    assert_eq!([0, 1, 2].map(nullable), [true, true, false]);
    let cfg = Cfg::reduce(&grammar, &BitSet::from_members(3, [0])).unwrap();
    let names: Vec<String> =
        cfg.used_terminals().iter().map(|at| grammar.terminals[at].name.clone()).collect();
    assert_eq!(names, ["MAYBE", "\"x\""]);
    assert_eq!(cfg.minimum_lengths()[grammar.start.index()], 1);
}
