use crate::run::anygram;

#[test]
fn every_command_teaches_by_example() {
    let commands =
        ["demo", "generate", "check", "replay", "batch", "fill", "serve", "eval", "tools", "vocab", "debug"];
    for command in commands {
        let output = anygram(&[command, "--help"]);
        assert_eq!(output.status, Some(0));
        let (_, examples) =
            output.stdout.split_once("Examples:\n").unwrap_or_else(|| panic!("{command}: no examples"));
        assert!(examples.contains(&format!("anygram {command}")), "{command}: {examples}");
        assert_eq!(anygram(&["help", command]).stdout, output.stdout);
    }
    assert!(anygram(&["batch", "--help"]).stdout.contains("\"op\":\"mask\""));
    assert!(anygram(&["--help"]).stdout.contains("anygram generate"));
    assert!(anygram(&["--version"]).stdout.starts_with("anygram "));
}

#[test]
fn mistakes_are_bad_input() {
    anygram(&[]).is_bad_input(&["Usage", "demo"]);
    anygram(&["chekc"]).is_bad_input(&["chekc", "check"]);
    anygram(&["check", "--gramar", "x"]).is_bad_input(&["--gramar", "--grammar"]);
}
