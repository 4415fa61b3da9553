use crate::run::{Folder, anygram};

#[test]
fn the_demo_shows_what_it_promises() {
    let output = anygram(&["demo"]);
    assert_eq!((output.status, &*output.stderr), (Some(0), ""));
    assert!(!output.stdout.contains('\x1b'), "colours in a pipe");
    for part in [
        "Grammar",
        "Vocabulary  1,508 tokens",
        "✓ SELECT",
        "… SELECT",
        "✗ SELECT",
        "\"),\"",
        "refused at its byte 1 (';')",
        "rollback(5)",
    ] {
        assert!(output.stdout.contains(part), "{part:?} is not in\n{}", output.stdout);
    }
    // One text and one token are wrong on purpose; whatever else is compared has to hold.
    assert_eq!(output.stdout.matches('✗').count(), 2, "{}", output.stdout);
    let (lines, widest) =
        (output.stdout.lines().count(), output.stdout.lines().map(|line| line.chars().count()).max());
    assert!(lines <= 45 && widest <= Some(100), "{lines} lines of up to {widest:?} columns");
}

#[test]
fn the_grammar_of_the_demo_is_a_file_like_any_other() {
    let output = anygram(&["demo", "--grammar"]);
    let folder = Folder::new();
    let check = anygram(&[
        "check",
        "-g",
        &folder.file("sql.lark", &output.stdout),
        &folder.file("q", "SELECT * FROM t;"),
    ]);
    assert_eq!((check.status, &*check.stderr), (Some(0), ""));
}
