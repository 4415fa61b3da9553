//! The method `intersection` on the shared canvases with gaps: by the exact engine they are completable, by
//! it too, and its completions show it.

use std::path::Path;
use std::sync::Arc;

use anygram_any_order::{Canvas, End, Slot, Solver, Witness};
use anygram_decoding::{Complete, Intersection, IntersectionBy, IntersectionOptions};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{Constraint, Language, LanguageOptions};
use anygram_testkit::shared::data;
use anygram_vocab::{LoadOptions, TokenId, Vocabulary};

const EOS: u32 = 151_643;
/// Canvases of each grammar.
const MOST: usize = 12;

fn canvases(data: &Path, name: &str) -> Vec<Canvas> {
    let lines = std::fs::read_to_string(data.join(format!("canvas/{name}.jsonl"))).unwrap();
    let canvas = |line: &str| {
        let (_, slots) = line.split_once("\"slots\": [").expect("the slots of a canvas");
        let (slots, _) = slots.split_once(']').expect("an array");
        let slot = |slot: &str| match slot.trim() {
            "null" => Slot::Hole,
            "\"*\"" => Slot::Gap,
            id => Slot::Fixed(TokenId(id.parse().expect("an id"))),
        };
        Canvas::new(slots.split(',').map(slot).collect(), End::Sentence)
    };
    lines.lines().filter(|line| line.contains("\"setting\": \"gap")).map(canvas).take(MOST).collect()
}

fn replays(constraint: &Constraint, witness: &Witness) -> bool {
    let mut matcher = constraint.matcher().unwrap();
    witness.text(constraint).into_iter().all(|token| matcher.advance(token).is_ok()) && matcher.is_sentence()
}

#[test]
fn canvases_with_gaps_are_completable_and_shown_to_be() {
    let Some(data) = data() else { return };
    let options = LoadOptions { eos: vec![EOS], ..LoadOptions::default() };
    let vocabulary = Vocabulary::from_file(data.join("tokenizers/qwen.tiktoken.gz"), &options).unwrap();
    for name in ["smiles", "cpp", "sql_grammar"] {
        let source = std::fs::read_to_string(data.join(format!("replay/{name}.lark"))).unwrap();
        let grammar =
            lark::parse(&source, &LarkOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
        let constraint = Constraint::new(language, vocabulary.clone()).unwrap();
        let mut engine = Intersection::new(&constraint).unwrap();
        let mut solver = Solver::new(&constraint).unwrap();
        let (mut n_yes, mut n_draws, mut least) = (0, 0, 1.0_f64);
        for canvas in canvases(&data, name) {
            let exact = solver.completable(&canvas).unwrap().decided();
            for by in [IntersectionBy::MinimalDfa, IntersectionBy::Earley] {
                let options =
                    IntersectionOptions { by, complete: Complete::Always, ..IntersectionOptions::default() };
                let said = engine.completable(&canvas, &options).unwrap();
                assert!(
                    exact.is_none() || said.verdict.decision.decided() == exact,
                    "{name}: {canvas:?}: {said:?}, exactly {exact:?}"
                );
                let Some(witness) = said.verdict.witness() else { continue };
                assert!(said.verdict.proven && replays(&constraint, witness), "{name}: {canvas:?}: {said:?}");
                n_yes += 1;
                n_draws += said.stats.draws;
                least = least.min(said.stats.untouched().unwrap_or(1.0));
            }
        }
        println!("{name}: {n_yes} completions in {n_draws} draws; at least {:.2} % untouched", 100.0 * least);
        assert!(n_yes > 0);
    }
}
