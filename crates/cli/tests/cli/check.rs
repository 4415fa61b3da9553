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
         \x20   |      ^ expected \")\", WORD, \",\"\n\
         {wrong}: not a sentence: it stops at line 1, column 2 (byte 1)\n\
         \x20 1 | (é)\n\
         \x20   |  ^ expected \"(\", \")\", WORD\n"
    );
    assert_eq!(output.status, Some(1));
    assert_eq!(sorted_names(&output.stdout), sorted_names(&expected));
}

/// Lines with the names that are expected in alphabetical order: the order of the grammar is not the point.
fn sorted_names(text: &str) -> Vec<String> {
    let sort = |line: &str| match line.split_once("expected ") {
        None => line.to_owned(),
        Some((before, names)) => {
            let mut names: Vec<&str> = names.split(' ').map(|name| name.strip_suffix(',').unwrap_or(name)).collect();
            names.sort_unstable();
            format!("{before}{names:?}")
        }
    };
    text.lines().map(sort).collect()
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
        output.stdout.starts_with("-: not a sentence: it stops at line 1, column 3 (byte 2)\n  1 | (a�\n    |   ^")
    );
}

#[test]
fn long_texts_are_read_to_the_end() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", "start: WORD*\nWORD: /[a-z]+/\n%ignore / /\n");
    let text = folder.file("long", "word ".repeat(20_000) + "!");
    let output = anygram(&["check", "-g", &grammar, &text]);
    assert_eq!(output.status, Some(1));
    assert!(output.stdout.contains("column 100001 (byte 100000)") && output.stdout.len() < 1000, "{}", output.stdout);
}

#[test]
fn a_grammar_is_explained() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", format!("{LISTS}unused: \"x\"\n"));
    let output = anygram(&["check", "-g", &grammar]);
    assert_eq!(output.status, Some(0));
    let value = |name: &str| {
        let line = output.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name}"));
        line[name.len()..].trim().to_owned()
    };
    assert_eq!(value("start"), "start");
    assert_eq!(value("terminals"), "4 used, 6 in all");
    assert_eq!(value("ignored"), "/ +/");
    assert!(value("nonterminals").starts_with('3'));
    assert_eq!((value("cyclic"), value("nullable")), ("none".to_owned(), "none".to_owned()));
    assert_eq!(value("shortest"), "a sentence of 1 terminal");
    assert!(value("lexer").starts_with("contextual, "));
    assert!(!value("engine").is_empty() && !value("completions").is_empty() && value("memory").ends_with(" kB"));
    assert!(output.stderr.contains(":5:1: warning: ") && output.stderr.contains("`unused`"), "{}", output.stderr);
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
    anygram(&["check", "-g", &folder.file("e.lark", "start: start \"x\"\n")]).is_bad_input(&["e.lark", "empty"]);
    anygram(&["check", "-g", &grammar, "--start", "stat"]).is_bad_input(&["stat"]);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", LISTS);
    let missing = folder.missing("nowhere");
    anygram(&["check", "-g", &folder.missing("nowhere.lark")]).is_bad_input(&["nowhere.lark: ", "No such file"]);
    anygram(&["check", "-g", &grammar, &missing]).is_bad_input(&[&missing, "No such file"]);
    anygram(&["check", "-g", &folder.file("bad.lark", b"start: \"a\"\n\xff")])
        .is_bad_input(&["byte 11", "line 2", "UTF-8"]);
    anygram(&["check", "-g", &folder.file("g.txt", LISTS)]).is_bad_input(&["g.txt", "--format", "lark"]);
    anygram(&["check", "-g", &grammar, "--format", "yacc"]).is_bad_input(&["yacc", "lark"]);
    anygram(&["check"]).is_bad_input(&["--grammar"]);
}
