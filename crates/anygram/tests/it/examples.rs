//! Examples of real grammars are sentences, and their remarks end in time.
//!
//! The grammars lie in a folder `shared` beside the repository, or where `ANYGRAM_SHARED` says. Without them
//! the test says so and passes, but fails where `CI` is `true`.

use std::path::{Path, PathBuf};

use anygram::{Compiler, GrammarFormat, LexerMode};
use anygram_grammar::ambiguity::hints;
use anygram_left_to_right::example::{Examples, contexts};
use anygram_lexer::overlap::overlaps;
use anygram_lexer::words::Words;
use anygram_testkit::shared::data;

fn grammars(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "lark")).collect();
    found.sort();
    found
}

#[test]
fn examples_of_all_shared_grammars_are_sentences() {
    let Some(data) = data() else { return };
    let folders = ["grammars/lark", "grammars/syncode", "grammars/cd4dllm", "replay"];
    let mut n_loaded = 0;
    for path in folders.iter().flat_map(|folder| grammars(&data.join(folder))) {
        let source = std::fs::read_to_string(&path).unwrap();
        for mode in LexerMode::ALL {
            // What is not supported of the notation, or has no sentence in this mode, has no examples.
            let Ok(language) = Compiler::default().lexer(mode).compile(GrammarFormat::Lark, &source) else {
                continue;
            };
            n_loaded += 1;
            let name = format!("{} {}", path.display(), mode.name());
            let words = Words::new(&language.lexing().lexicon);
            let mut examples = Examples::new(&language, &words).unwrap();
            let short = examples.short().unwrap_or_else(|| panic!("{name}: none found"));
            let random = examples.random(5, 7);
            assert!(!random.is_empty(), "{name}");
            for text in random.iter().chain([&short]) {
                assert!(
                    language.read(text).unwrap().is_sentence,
                    "{name}: {}",
                    String::from_utf8_lossy(text)
                );
            }
            let (contexts, is_cut) = contexts(&language).unwrap();
            assert!(!is_cut && !overlaps(&language.lexing().lexicon, &words, &contexts).is_cut, "{name}");
            assert!(!hints(language.grammar(), &language.lexing().cfg).is_cut, "{name}");
        }
    }
    assert!(n_loaded >= 60, "{n_loaded}");
}
