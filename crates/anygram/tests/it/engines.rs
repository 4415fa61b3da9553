//! Which engine `auto` chooses.

use anygram::{Compiler, Engine, GrammarFormat, Language};
use anygram_testkit::shared;

fn engine(grammar: &str) -> (Engine, bool) {
    let language: std::sync::Arc<Language> =
        Compiler::default().compile(GrammarFormat::Lark, grammar).unwrap();
    (language.engine(), language.may_switch())
}

#[test]
fn by_what_earley_makes_of_random_sentences() {
    let deterministic = [
        r#"start: "a" start | "a""#,
        r#"start: start "a" | "a""#,
        r#"start: "(" start ")" | "x""#,
        r#"start: "[" (start ("," start)*)? "]" | /[0-9]+/"#,
        // Every middle may be the middle: outputs move to the chart when their texts are long.
        r#"start: "a" start "a" | "b" start "b" | "a" | "b""#,
        // Derivations beyond number, and few states.
        r#"start: start start | "a""#,
        r#"start: start start | start start start | "a""#,
        r#"start: e
           e: e "+" e | e "*" e | "n""#,
    ];
    for grammar in deterministic {
        assert_eq!(engine(grammar), (Engine::Earley, true), "{grammar}");
    }
    let ambiguous = [r#"start: start start start | "a""#, r#"start: "a" start "a" | start start | "a""#];
    for grammar in ambiguous {
        assert_eq!(engine(grammar), (Engine::Valiant, false), "{grammar}");
    }
}

#[test]
fn of_real_grammars() {
    let Some(data) = shared::data() else { return };
    let chosen = [
        ("sql_grammar", Engine::Earley),
        ("sqlite", Engine::Earley),
        ("cpp_he", Engine::Earley),
        ("smiles", Engine::Earley),
        ("stress_ss", Engine::Earley),
        ("stress_sss", Engine::Earley),
        ("treebank_raw", Engine::Valiant),
        ("treebank_stripped", Engine::Valiant),
    ];
    for (name, expected) in chosen {
        let grammar = std::fs::read_to_string(data.join(format!("replay/{name}.lark"))).unwrap();
        assert_eq!(engine(&grammar).0, expected, "{name}");
    }
}
