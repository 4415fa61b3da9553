use crate::run::{Folder, LISTS, Output, anygram};

fn debug(arguments: &[&str]) -> Output {
    let folder = Folder::new();
    let grammar = folder.file("g.lark", LISTS);
    let output = anygram(&[&["debug", arguments[0], "--grammar", &grammar], &arguments[1..]].concat());
    assert_eq!((output.status, &*output.stderr), (Some(0), ""));
    output
}

#[test]
fn grammars_are_printed_and_read_again() {
    let printed = debug(&["grammar"]).stdout;
    assert!(printed.contains("item: WORD\n  | \"(\"") && printed.contains("%ignore / +/"), "{printed}");
    let folder = Folder::new();
    let again = anygram(&["debug", "grammar", "-g", &folder.file("h.lark", &printed)]);
    assert_eq!(again.stdout, printed);
}

#[test]
fn rules_of_the_reduced_grammar() {
    let printed = debug(&["cfg"]).stdout;
    assert!(printed.starts_with("// start: start\n") && printed.contains("\nitem: WORD\n"), "{printed}");
}

#[test]
fn sizes_and_rules_of_normal_forms() {
    let printed = debug(&["normal"]).stdout;
    let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.iter().map(|line| line[0]).collect::<Vec<_>>(), ["form", "C2F+ε", "Chomsky"]);
    // Symbols, stored, rules, and the rules by kind.
    for line in &lines[1..] {
        let numbers: Vec<usize> = line[1..].iter().map(|number| number.parse().unwrap()).collect();
        assert!(numbers[1] <= numbers[0] && numbers[2] == numbers[3..].iter().sum::<usize>(), "{printed}");
    }
    assert_eq!(lines[2][5], "0", "unit rules in Chomsky's form");
    assert!(debug(&["normal", "--rules", "binary"]).stdout.contains("\nitem -> WORD\n"));
    assert!(!debug(&["normal", "--rules", "chomsky"]).stdout.contains("ε"));
}

#[test]
fn the_automaton_is_a_drawing() {
    let printed = debug(&["automaton"]).stdout;
    assert!(printed.starts_with("digraph terminals {") && printed.trim_end().ends_with('}'), "{printed}");
    assert!(printed.contains("label = \"a-z\"") && printed.contains("xlabel = \"WORD\""), "{printed}");
}

#[test]
fn boundaries() {
    assert!(debug(&["boundaries"]).stdout.lines().all(|line| line.starts_with("boundary ")));
    assert!(
        debug(&["boundaries", "--lexer", "scannerless"])
            .stdout
            .contains("every piece may follow every other")
    );
}

#[test]
fn charts() {
    let printed = debug(&["chart", "(a"]).stdout;
    for line in ["after \"\"\n", "after \"(\"\n", "after \"(a\"\n", "state 0\n"] {
        assert!(printed.contains(line), "{line:?} is not in {printed}");
    }
    assert!(debug(&["chart", "a"]).stdout.contains("after \"a\" (a sentence)"));
    assert!(debug(&["chart", "(X"]).stdout.contains("no sentence goes on with 'X'"));
    assert!(debug(&["chart", "é"]).stdout.contains("no sentence goes on with"));
}

#[test]
fn masks_in_doubt_are_counted_over_texts() {
    let folder = Folder::new();
    let texts = folder.file("texts", "(a, b)\na\n");
    let printed = debug(&["doubts", "-v", "builtin", &texts]).stdout;
    // One mask before each token and one behind the last: five tokens and one.
    assert_eq!(printed, "0 of 8 masks are in doubt\n");
    // Two terminals that touch and are not told apart by the lexer alone.
    let grammar = folder.file("h.lark", "%lexer longest\nstart: A B | A\nA: /a+/\nB: /ab?/\n");
    let texts = folder.file("more", "aaa\n");
    let output = anygram(&["debug", "doubts", "-g", &grammar, "-v", "builtin", &texts]);
    assert!(output.stdout.contains("masks are in doubt"), "{}{}", output.stdout, output.stderr);
    let stopped =
        anygram(&["debug", "doubts", "-g", &grammar, "-v", "builtin", &folder.file("no", "ab b\n")]);
    assert!(stopped.stdout.contains("1 texts stop before their end"), "{}{}", stopped.stdout, stopped.stderr);
}
