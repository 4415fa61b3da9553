//! The tasks keep what their module promises.

use anygram::{Compiler, GrammarFormat, Language};
use anygram_models::tasks::{Split, Task};
use std::collections::HashSet;
use std::sync::Arc;

fn language(task: Task) -> Arc<Language> {
    Compiler::default()
        .compile(GrammarFormat::Lark, task.grammar())
        .expect("the grammar of a task can be compiled")
}

fn is_sentence(language: &Arc<Language>, text: &str) -> bool {
    language.read(text.as_bytes()).expect("no limit is hit").is_sentence
}

#[test]
fn references_are_syntactic_and_functional() {
    for task in Task::ALL {
        let language = language(task);
        for seed in 0..500 {
            let example = task.example(seed);
            assert!(example.check(&example.answer), "{example:?}");
            assert!(is_sentence(&language, &example.answer), "{example:?}");
            assert_eq!(example, task.example(seed));
            assert!(example.prompt.ends_with('\n'));
        }
    }
}

#[test]
fn answers_to_other_prompts_are_not_functional() {
    for task in Task::ALL {
        let examples = task.examples(Split::Train, 3, 100);
        let wrong =
            examples.iter().zip(&examples[1..]).filter(|(one, other)| one.check(&other.answer)).count();
        assert!(wrong <= 2, "{wrong} of 99 answers of {} pass for others", task.name());
    }
}

#[test]
fn held_out_prompts_are_many_and_apart() {
    for task in Task::ALL {
        let held_out = task.examples(Split::HeldOut, 7, 250);
        assert_eq!(held_out.len(), 250, "{}", task.name());
        assert!(held_out.iter().all(|example| Split::of(&example.prompt) == Split::HeldOut));
        let held_out: HashSet<_> = held_out.into_iter().map(|example| example.prompt).collect();
        assert_eq!(held_out.len(), 250);
        let train = task.stream(Split::Train, 7).take(5000);
        assert!(train.into_iter().all(|example| !held_out.contains(&example.prompt)));
    }
}

#[test]
fn grammars_refuse_what_is_not_an_answer() {
    let refused: [(Task, &[&str]); 3] = [
        (
            Task::Record,
            &[
                "{}",
                r#"{"name":"Ada"}"#,
                r#"{"name":"Ada","age":034}"#,
                r#"{"name":"Ada","age":34,"pets":[]}"#,
            ],
        ),
        (Task::Arithmetic, &["", "3", "1+2", "(1+2)+3", "((1+2))", "(1+2+3)", "(0+1)"]),
        (
            Task::Smiles,
            &[
                "",
                "C1CC",
                "C1CCC2C1C2",
                "c1ccccc",
                "C(",
                "C)",
                "C(C",
                "cc",
                "C==C",
                "C1CC(C1)",
                "C3CCC3",
                "C1C1",
            ],
        ),
    ];
    for (task, texts) in refused {
        let language = language(task);
        for text in texts {
            assert!(!is_sentence(&language, text), "{} has {text}", task.name());
        }
    }
    let smiles = language(Task::Smiles);
    for text in ["C", "CC(=O)N", "C1CCC(C2CC(C)C2)CC1(C1CC1)C", "c1ccncc1C1CC1", "C1=CCCC1"] {
        assert!(is_sentence(&smiles, text), "{text}");
    }
}
