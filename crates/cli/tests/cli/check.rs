use crate::run::{Folder, LISTS, anygram, anygram_with};

#[test]
fn a_sentence_is_a_yes() {
    let folder = Folder::new();
    let (grammar, text) = (folder.file("g.lark", LISTS), folder.file("a.txt", "(a, (b))"));
    let output = anygram(&["check", "--grammar", &grammar, &text]);
    assert_eq!((output.status, output.stdout), (Some(0), format!("{text}: sentence\n")));
}

#[test]
fn other_texts_are_a_no_with_a_caret() {
    let folder = Folder::new();
    let (grammar, text) = (folder.file("g.lark", LISTS), folder.file("a.txt", "(a, b"));
    let wrong = folder.file("b.txt", "(é)");
    let output = anygram(&["check", "--grammar", &grammar, &text, &wrong]);
    let expected = format!(
        "{text}: not a sentence yet: the text ends at line 1, column 6 (byte 5)\n\
         \x20 1 | (a, b\n\
         \x20   |      ^ expected \")\", \",\", WORD (/[a-z]+/)\n\
         \x20 while reading `item` at 1:1\n\
         \x20 it could go on \")\" and be valid\n\
         {wrong}: not a sentence: it stops at line 1, column 2 (byte 1)\n\
         \x20 1 | (é)\n\
         \x20   |  ^ expected \"(\", \")\", WORD (/[a-z]+/)\n\
         \x20 while reading `item` at 1:1\n\
         \x20 up to there it could go on \")\" and be valid\n"
    );
    assert_eq!((output.status, &*output.stdout), (Some(1), &*expected));
}

fn checked(grammar: &str, options: &[&str], text: impl AsRef<[u8]>) -> String {
    let folder = Folder::new();
    let (grammar, text) = (folder.file("g.lark", grammar), folder.file("a.txt", text));
    let output = anygram(&[&["check", "-g", &grammar], options, &[&text]].concat());
    assert_eq!(output.status, Some(1), "{output:?}");
    output.stdout
}

#[test]
fn what_is_often_the_only_thing_wrong_is_said() {
    let lists = |text: &[u8]| checked(LISTS, &[], text);
    assert!(lists(b"(a)\n").contains("the text without its last line end is a sentence"));
    assert!(lists(b"(a)\r\n").contains("the text without its last line end is a sentence"));
    assert!(lists(b"(a) \n\n").contains("the text without the blanks at its end is a sentence"));
    assert!(lists(b"\n(a)").contains("the text without the blanks around it is a sentence"));
    assert!(lists(b"\xef\xbb\xbf(a)").contains("byte order mark"));
    assert!(lists(b"(a,\n b)").contains("what stands there is a line end; the grammar ignores / +/"));
    assert!(lists(b"(a\xff)").contains("the text is not UTF-8 there: byte 0xff at offset 2"));
    assert!(
        checked("start: (\"a\" \"\\n\")+", &[], "a")
            .contains("the text with a line end behind it is a sentence")
    );
    assert!(
        checked("start: (\"a\" \"\\n\")+", &[], "a\r\na\r\n").contains("line ends `\\n` instead of `\\r\\n`")
    );
}

#[test]
fn pieces_in_progress_are_shown() {
    let grammar = "start: \"say\" STRING\nSTRING: /\"[^\"]*\"/\n%ignore / /\n";
    for mode in ["scannerless", "longest", "contextual"] {
        let shown = checked(grammar, &["--lexer", mode], "say \"hello");
        assert!(shown.contains("in the middle of STRING, begun at 1:5: '\"hello'"), "{shown}");
        assert!(shown.contains("it could go on '\"' and be valid"), "{shown}");
    }
}

#[test]
fn many_expected_terminals_are_counted() {
    let words: Vec<String> = (0..30).map(|at| format!("\"w{at:02}\"")).collect();
    let grammar = format!("start: NAME | INT.. | {}\n", words.join(" | ")).replace("INT.. | ", "INT | ");
    let shown = checked(&format!("{grammar}NAME: /[A-Z]{{2,3}}/\nINT: /[0-9]+/\n"), &[], "-");
    let expected = "expected \"w00\", \"w01\", \"w02\", \"w03\", \"w04\", \"w05\", \"w06\", \"w07\", \
                    \"w08\", \"w09\", \
                    NAME (/[A-Z]{2,3}/), INT (/[0-9]+/) and 20 more";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn deep_texts_are_explained() {
    for mode in ["scannerless", "longest", "contextual"] {
        let shown = checked("start: \"(\" start \")\" | \"x\"", &["--lexer", mode], "(".repeat(20_000));
        assert!(
            shown.contains("column 20001 (byte 20000)") && shown.contains("expected \"(\", \"x\""),
            "{shown}"
        );
        assert!(shown.contains("`start` at 1:2 → … 19994 more … → `start` at 1:19997"), "{shown}");
    }
}

#[test]
fn all_files_are_looked_at() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", LISTS);
    let (yes, no) = (folder.file("yes", "a"), folder.file("no", "A"));
    let output = anygram(&["check", "-g", &grammar, &no, &yes]);
    assert_eq!(output.status, Some(1));
    assert!(output.stdout.ends_with(&format!("{yes}: sentence\n")), "{}", output.stdout);
}

#[test]
fn standard_input_is_a_file_called_dash() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", LISTS);
    let output = anygram_with(&["check", "-g", &grammar, "-"], b"(a\xff");
    assert_eq!(output.status, Some(1));
    assert!(
        output
            .stdout
            .starts_with("-: not a sentence: it stops at line 1, column 3 (byte 2)\n  1 | (a�\n    |   ^")
    );
}

#[test]
fn long_texts_are_read_to_the_end() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", "start: WORD*\nWORD: /[a-z]+/\n%ignore / /\n");
    let text = folder.file("long", "word ".repeat(20_000) + "!");
    let output = anygram(&["check", "-g", &grammar, &text]);
    assert_eq!(output.status, Some(1));
    assert!(
        output.stdout.contains("column 100001 (byte 100000)") && output.stdout.len() < 1000,
        "{}",
        output.stdout
    );
}

#[test]
fn a_grammar_is_explained() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", format!("{LISTS}unused: \"x\"\n"));
    let output = anygram(&["check", "-g", &grammar]);
    assert_eq!(output.status, Some(0));
    let value = |name: &str| {
        let line =
            output.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
        line[name.len()..].trim().to_owned()
    };
    assert_eq!(value("start"), "start");
    assert_eq!(value("terminals"), "4 used, 6 in all");
    assert_eq!(value("ignored"), "/ +/");
    assert!(value("nonterminals").starts_with('3'));
    assert_eq!((value("cyclic"), value("nullable")), ("none".to_owned(), "none".to_owned()));
    assert_eq!(value("shortest"), "a sentence of 1 terminal");
    assert!(value("lexer").starts_with("contextual, "));
    assert!(
        !value("engine").is_empty() && !value("completions").is_empty() && value("memory").ends_with(" kB")
    );
    // No device was ever measured.
    assert!(value("cuda").contains("`auto` does not choose it"), "{}", value("cuda"));
    assert_eq!(value("cuda").contains("not in this build"), !cfg!(feature = "cuda"));
    assert_eq!(value("example"), "\"a\"");
    let warning = format!(
        "\n\n{grammar}:5:1: warning: the rule `unused` is never used: nothing that derives a text leads to \
         it from `start`\n\
         \x20 5 | unused: \"x\"\n\
         \x20   | ^^^^^^\n"
    );
    assert!(output.stdout.ends_with(&warning), "{}", output.stdout);
}

/// The remarks on a grammar: messages without the place, and the lines below them.
fn remarks(grammar: &str, options: &[&str]) -> Vec<String> {
    let folder = Folder::new();
    let file = folder.file("g.lark", grammar);
    let output = anygram(&[&["check", "-g", &file], options].concat());
    assert_eq!((output.status, &*output.stderr), (Some(0), ""));
    let lines = output.stdout.lines().filter_map(|line| line.strip_prefix(&format!("{file}:")));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_clean_grammar_has_no_remarks() {
    assert_eq!(remarks(LISTS, &[]), Vec::<String>::new());
    let sums =
        "start: start \"+\" term | term\nterm: NAME | \"(\" start \")\"\nNAME: /[a-z]+/\n%ignore /\\s+/\n";
    for mode in ["scannerless", "longest", "contextual"] {
        assert_eq!(remarks(sums, &["--lexer", mode]), Vec::<String>::new(), "{mode}");
    }
}

#[test]
fn every_kind_of_warning() {
    let source = "start: a | \"x\" KEY | \"x\" NAME | b\na: \"y\" \"z\" | \"y\" \"z\"\nb: \"b\" b\nc: \"c\"\n\
                  KEY: \"key\"\nNAME.1: /[a-z]+/\nd: NONE\nNONE: /[^\\s\\S]/\n";
    let expected = [
        "2:1: warning: the alternative `\"y\" \"z\"` of `a` stands twice",
        "3:1: warning: the rule `b` derives no text: each of its alternatives needs one that does not",
        "4:1: warning: the rule `c` is never used: nothing that derives a text leads to it from `start`",
        "5:1: warning: the terminal KEY never wins wherever it was seen to come next: all that it matches is \
         also NAME (priority 0 against 1), as in \"key\"",
        "7:1: warning: the rule `d` derives no text: each of its alternatives needs one that does not",
        "8:1: warning: the terminal `NONE` matches no text",
    ];
    assert_eq!(remarks(source, &[]), expected);
    // Where ties are decided by the order.
    let source = "start: NAME | WORD\nNAME: /[a-z]+/\nWORD: /[a-c]+/\n";
    let found = remarks(source, &["--ties", "first"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("3:1: warning: the terminal WORD never wins")
            && found[0].contains("declared earlier")
    );
}

#[test]
fn every_kind_of_hint() {
    let hint = |source: &str| {
        let mut found = remarks(source, &[]);
        assert_eq!(found.len(), 1, "{source}: {found:?}");
        found.remove(0)
    };
    assert_eq!(hint("start: a\na: b | \"x\"\nb: a\n"), "2:1: hint: `a` derives itself alone: a → b → a");
    assert_eq!(
        hint("start: \"(\" e \")\"\ne: e \"+\" e | \"1\"\n"),
        "2:1: hint: `e` nests on both sides: `e: e \"+\" e`"
    );
    assert!(
        hint("start: s\ns: \"if\" s [\"else\" s] | \"x\"\n")
            .starts_with("2:1: hint: in `s: \"if\" s (…)?` the end `(…)?`")
    );
    assert!(
        hint("start: a | b\na: \"x\" | \"a\"\nb: \"x\" | \"b\"\n")
            .contains("`start` becomes `\"x\"` in two ways")
    );
    assert!(
        hint("start: a | b | \"c\"\na: \"x\"*\nb: \"y\"*\n")
            .contains("two alternatives of `start` can be empty")
    );
    assert!(hint("start: \"x\"* \"x\"*\n").contains("a repetition follows the same one"));
    assert_eq!(
        hint("start: \"if\" start | \"in\" start | NAME\nNAME: /[a-z]+/\n%ignore / /\n"),
        "2:1: hint: 2 literals: \"if\", \"in\" are also NAME, where both can come next"
    );
    assert_eq!(
        hint("start: A | B\nA: /[a-f]+/\nB: /[c-z]+/\n"),
        "3:1: hint: A and B both match \"c\", where both can come next"
    );
    assert_eq!(
        hint("start: (NOTE | \"x\")+\nNOTE: /#[a-z]*;/\nC: /#[^;]*;/\n%ignore C\n"),
        "3:1: hint: C is ignored, and NOTE matches \"#;\" too: it is read both ways"
    );
    // Where they do not come next to each other, there is nothing to say.
    assert_eq!(remarks("start: \"a\" A | \"b\" B\nA: /[a-f]+/\nB: /[c-z]+/\n", &[]), Vec::<String>::new());
    assert_eq!(remarks("start: \"if\" | NAME\nNAME: /[a-z]+/\n", &["--ties", "first"]), Vec::<String>::new());
}

#[test]
fn examples_are_random_sentences() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", LISTS);
    let examples = |options: &[&str]| anygram(&[&["check", "-g", &grammar, "--examples"], options].concat());
    let first = examples(&["20"]);
    assert_eq!((first.status, first.stdout.lines().count()), (Some(0), 20), "{}", first.stdout);
    assert_eq!(examples(&["20"]).stdout, first.stdout);
    assert_ne!(examples(&["20", "--seed", "2"]).stdout, first.stdout);
    for (at, line) in first.stdout.lines().enumerate() {
        let text = folder.file(&format!("{at}"), line);
        assert_eq!(anygram(&["check", "-g", &grammar, &text]).status, Some(0), "{line}");
    }
    let few = folder.file("f.lark", "start: \"a\" | \"b\\n\"\n");
    let output = anygram(&["check", "-g", &few, "--examples", "5"]);
    let mut lines: Vec<&str> = output.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!((output.status, lines), (Some(0), vec!["\"b\\n\"", "a"]));
    assert!(output.stderr.contains("only 2 different sentences"));
}

#[test]
fn options_choose_start_and_lexer() {
    let folder = Folder::new();
    // Where words compete, the keyword cannot be the beginning of a longer word.
    let grammar = folder.file("g.lark", "start: \"if\" WORD\nother: WORD\nWORD: /[a-z]+/\n%ignore / /\n");
    let text = folder.file("a", "ifx");
    let status = |options: &[&str]| {
        let arguments = [&["check", "-g", &grammar], options, &[&text]].concat();
        anygram(&arguments).status
    };
    assert_eq!(status(&[]), Some(0));
    assert_eq!(status(&["--lexer", "contextual"]), Some(0));
    assert_eq!(status(&["--lexer", "scannerless"]), Some(0));
    assert_eq!(status(&["--lexer", "longest"]), Some(1));
    assert_eq!(
        status(&["--start", "other", "--lexer", "longest", "--ties", "first", "--engine", "reference"]),
        Some(0)
    );
    assert_eq!(status(&["--format", "lark"]), Some(0));
    assert_eq!(status(&["--lexer", "lazy"]), Some(2));
}

#[test]
fn a_bad_grammar_is_shown_with_a_caret() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", "start: item | itme\nitem: \"x\"\n");
    let output = anygram(&["check", "-g", &grammar]);
    output.is_bad_input(&["itme", "item", "g.lark:1:15", "1 | start: item | itme", "here"]);
    assert_eq!(output.stdout, "");
    anygram(&["check", "-g", &folder.file("e.lark", "start: start \"x\"\n")])
        .is_bad_input(&["e.lark", "empty"]);
    anygram(&["check", "-g", &grammar, "--start", "stat"]).is_bad_input(&["stat"]);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", LISTS);
    let missing = folder.missing("nowhere");
    anygram(&["check", "-g", &folder.missing("nowhere.lark")])
        .is_bad_input(&["nowhere.lark: ", "No such file"]);
    anygram(&["check", "-g", &grammar, &missing]).is_bad_input(&[&missing, "No such file"]);
    anygram(&["check", "-g", &folder.file("bad.lark", b"start: \"a\"\n\xff")])
        .is_bad_input(&["byte 11", "line 2", "UTF-8"]);
    anygram(&["check", "-g", &folder.file("g.txt", LISTS)]).is_bad_input(&["g.txt", "--format", "lark"]);
    anygram(&["check", "-g", &grammar, "--format", "yacc"]).is_bad_input(&["yacc", "lark"]);
    anygram(&["check"]).is_bad_input(&["--grammar"]);
}

#[test]
fn a_schema_is_explained_part_by_part() {
    let folder = Folder::new();
    let schema = r#"{"type":"object","required":["name","tags"],"properties":{
        "name":{"type":"string","maxLength":5000},
        "tags":{"type":"array","items":{"type":"string","enum":["a","b",1]}}},"additionalProperties":false}"#;
    let file = folder.file("s.schema.json", schema);
    let output = anygram(&["check", "-g", &file]);
    assert_eq!((output.status, &*output.stderr), (Some(0), ""));
    let shown = &output.stdout;
    let row = |place: &str| {
        let line = shown.lines().find(|line| line.ends_with(&format!("  {place}")));
        let line = line.unwrap_or_else(|| panic!("no {place} in {shown}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("/properties/name")[2], "1000+", "{shown}");
    assert!(row("the root")[1].parse::<usize>().unwrap() > 4, "{shown}");
    let warnings: Vec<&str> = shown.lines().filter(|line| line.starts_with("warning: ")).collect();
    let idle = "warning: /properties/tags/items/enum/2 changes nothing: the same texts are valid without it";
    assert_eq!(warnings, [idle]);
    // Only where an object ends too soon keys are what is wrong.
    for (text, missing) in [
        (r#"{"name":"x"}"#, &["at the root: the key \"tags\" is missing"][..]),
        (r#"{"#, &["at the root: the key \"name\" is missing", "at the root: the key \"tags\" is missing"]),
        (r#"{"name":"x","tags":[3"#, &[]),
    ] {
        let output = anygram(&["check", "-g", &file, &folder.file("t.json", text)]);
        assert_eq!(output.status, Some(1));
        let lines: Vec<&str> = output.stdout.lines().map(str::trim).collect();
        let told: Vec<&str> = lines.into_iter().filter(|line| line.contains("is missing")).collect();
        assert_eq!(told, missing, "{}", output.stdout);
    }
    // An example also where numbers have many digits, and items have to differ.
    let hard = r#"{"type":"array","minItems":2,"uniqueItems":true,
        "items":{"type":"integer","minimum":123456789012,"multipleOf":1000003}}"#;
    let output = anygram(&["check", "-g", &folder.file("h.schema.json", hard)]);
    assert!(output.stdout.contains("\"[123457370371,123458370374]\""), "{}", output.stdout);
}

#[test]
fn trees_of_valid_files() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", LISTS);
    let (yes, no) = (folder.file("a.txt", "( a , b )"), folder.file("b.txt", "(a"));
    let pretty = anygram(&["check", "-g", &grammar, "--tree", &yes]);
    let expected = "start 0..9\n  item 0..9\n    \"(\" \"(\" 0..1\n    item 2..3\n      WORD \"a\" 2..3\n";
    assert!(pretty.status == Some(0) && pretty.stdout.starts_with(expected), "{pretty:?}");
    let json = anygram(&["check", "-g", &grammar, "--tree=json", &yes, &no]);
    assert_eq!(json.status, Some(1));
    assert!(json.stdout.contains("it stops at") || json.stdout.contains("not a sentence"), "{json:?}");
    let nodes: serde_json::Value = serde_json::from_str(json.stdout.lines().next().unwrap()).unwrap();
    let item = serde_json::json!({"depth": 1, "rule": "item", "start": 0, "end": 9});
    assert_eq!((&nodes[1], nodes[2]["terminal"].as_str()), (&item, Some("\"(\"")));
    let events = anygram(&["check", "-g", &grammar, "--tree=events", &yes]);
    let lines: Vec<&str> = events.stdout.lines().collect();
    assert_eq!(lines[0], r#"{"at":1,"enter":"start","start":0}"#);
    assert!(lines.contains(&r#"{"at":4,"leave":"item","start":2,"end":3}"#), "{events:?}");
    assert_eq!(lines.last(), Some(&r#"{"at":9,"leave":"start","start":0,"end":9}"#));
}
