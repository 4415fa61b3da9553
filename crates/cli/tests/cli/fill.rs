use crate::run::{Folder, LISTS, anygram};

#[test]
fn holes_and_gaps_are_filled_and_marked() {
    let folder = Folder::new();
    let (grammar, vocab) =
        (folder.file("g.lark", LISTS), folder.file("v.json", r#"["a", "(", ")", ",", "X"]"#));
    let fill = |arguments: &[&str]| anygram(&[&["fill", "-g", &grammar, "-v", &vocab], arguments].concat());
    let output = fill(&["(▢,a"]);
    assert_eq!((output.status, &*output.stdout), (Some(1), ""));
    assert!(output.stderr.contains("no choice"), "{}", output.stderr);
    let output = fill(&["(▢,a…"]);
    assert_eq!((output.status, &*output.stdout), (Some(0), "(⟦a⟧,a⟦)⟧\n"));
    let output = fill(&["--hole", "?", "-n", "9", "(a?"]);
    assert_eq!((output.status, &*output.stdout), (Some(0), "(a⟦)⟧\n"));
    let output = fill(&["--prefix", "-n", "2", "(▢"]);
    assert_eq!(output.stdout.lines().count(), 2, "{}", output.stdout);
    fill(&["--hole", "…", "a"]).is_bad_input(&["same"]);
    fill(&["--hole", "", "a"]).is_bad_input(&["empty"]);
    fill(&[]).is_bad_input(&["text", "--file"]);
}
