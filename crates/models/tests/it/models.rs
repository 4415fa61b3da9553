//! The embedded files can be read, the tokenizer spells what it encodes, and forward passes say what the
//! training framework said.

use anygram_models::tasks::{Split, Task};
use anygram_models::{EOS, Kind, MASK, PAD, SmallModel, SmallModelError, vocabulary};
use anygram_vocab::TokenId;
use serde_json::Value;

/// What `training/train.py` recorded of a model: some rows of logits, rounded to 1e-4.
fn vectors(kind: Kind) -> Vec<Value> {
    let text = match kind {
        Kind::Autoregressive => include_str!("vectors/autoregressive.json"),
        Kind::Masked => include_str!("vectors/masked.json"),
        Kind::Uniform => include_str!("vectors/uniform.json"),
        _ => "[]",
    };
    serde_json::from_str(text).expect("vectors are JSON")
}

fn numbers(value: &Value) -> impl Iterator<Item = u64> {
    value.as_array().expect("a list").iter().map(|number| number.as_u64().expect("a number"))
}

fn tokens(value: &Value) -> Vec<TokenId> {
    numbers(value).map(|id| TokenId(id as u32)).collect()
}

/// Logits and log-probabilities differ by a number for each row. The weights are the same; sums are formed in
/// another order.
const TOLERANCE: f64 = 2e-3;

#[test]
fn forward_passes_agree_with_the_training_framework() {
    for kind in Kind::ALL {
        let model = kind.model().unwrap();
        let vectors = vectors(kind);
        assert!(!vectors.is_empty());
        for vector in &vectors {
            let slots: Vec<usize> = numbers(&vector["slots"]).map(|slot| slot as usize).collect();
            let rows =
                model.log_probs(&tokens(&vector["prompt"]), &tokens(&vector["canvas"]), &slots).unwrap();
            for (row, logits) in
                rows.chunks(model.vocabulary_size()).zip(vector["logits"].as_array().unwrap())
            {
                let logits: Vec<f64> =
                    logits.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
                let sum = logits.iter().map(|logit| logit.exp()).sum::<f64>().ln();
                for (token, (said, logit)) in
                    row.iter().zip(&logits).enumerate().filter(|(at, _)| *at != MASK.index())
                {
                    let wanted = logit - sum;
                    assert!(
                        (f64::from(*said) - wanted).abs() < TOLERANCE,
                        "{kind:?} token {token}: {said} of {wanted}"
                    );
                }
            }
        }
    }
}

#[test]
fn an_autoregressive_session_says_the_same_with_and_without_what_it_kept() {
    let model = Kind::Autoregressive.model().unwrap();
    let vocabulary = vocabulary().unwrap();
    let example = Task::Record.example(5);
    let prompt = vocabulary.encode(&example.prompt).unwrap();
    let answer = vocabulary.encode(&example.answer).unwrap();
    let mut session = model.session(&prompt).unwrap();
    let mut row = vec![0.0; model.vocabulary_size()];
    let mut other = answer.clone();
    other[1] = TokenId(300);
    for canvas in [&answer[..0], &answer[..1], &answer[..4], &other[..3], &answer[..3], &answer] {
        session.rows(canvas, &[canvas.len()], &mut row).unwrap();
        let fresh = model.log_probs(&prompt, canvas, &[canvas.len()]).unwrap();
        let most = row
            .iter()
            .zip(&fresh)
            .filter(|(a, _)| a.is_finite())
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f32::max);
        assert!(most < 1e-4, "{most} at {}", canvas.len());
    }
}

#[test]
fn rows_are_distributions() {
    for kind in Kind::ALL {
        let model = kind.model().unwrap();
        let rows = model.log_probs(&[TokenId(20)], &[MASK; 5], &[0, 4]).unwrap();
        for row in rows.chunks(model.vocabulary_size()) {
            let sum: f32 = row.iter().map(|x| x.exp()).sum();
            assert!((sum - 1.0).abs() < 1e-2, "{sum}");
            assert_eq!(row[MASK.index()], f32::NEG_INFINITY);
        }
    }
}

#[test]
fn wrong_questions_are_errors() {
    let model = Kind::Masked.model().unwrap();
    let size = model.vocabulary_size();
    let wrong = TokenId(size as u32);
    let ask = |prompt: &[TokenId], canvas: &[TokenId], slots: &[usize]| {
        model.log_probs(prompt, canvas, slots).unwrap_err()
    };
    assert_eq!(ask(&[wrong], &[EOS], &[0]), SmallModelError::Token { token: wrong, n_tokens: size });
    assert_eq!(ask(&[EOS], &[wrong], &[0]), SmallModelError::Token { token: wrong, n_tokens: size });
    assert_eq!(ask(&[EOS], &[EOS], &[1]), SmallModelError::Slot { slot: 1, n_slots: 1 });
    let long = vec![EOS; SmallModel::MAX_TOKENS];
    assert!(matches!(ask(&[EOS], &long, &[0]), SmallModelError::TooLong { .. }));
    let buffer = model.session(&[EOS]).unwrap().rows(&[EOS], &[0], &mut [0.0]);
    assert_eq!(buffer, Err(SmallModelError::Buffer { wanted: size, given: 1 }));
    assert_eq!(Kind::Autoregressive.model().unwrap().session(&[]).unwrap_err(), SmallModelError::NoPrompt);
}

#[test]
fn damaged_files_are_errors() {
    assert!(matches!(SmallModel::from_bytes(b""), Err(SmallModelError::File(_))));
    let mut bytes = include_bytes!("../../data/masked.safetensors").to_vec();
    bytes.truncate(bytes.len() - 1);
    assert!(matches!(SmallModel::from_bytes(&bytes), Err(SmallModelError::File(_))));
    let head = br#"{"x":{"dtype":"F16","shape":[0],"data_offsets":[0,0]}}"#;
    let file = [&(head.len() as u64).to_le_bytes()[..], head].concat();
    assert_eq!(SmallModel::from_bytes(&file).unwrap_err(), SmallModelError::Metadata);
    let head = br#"{"__metadata__":{"kind":"masked","canvas":"40"}}"#;
    let file = [&(head.len() as u64).to_le_bytes()[..], head].concat();
    assert!(matches!(SmallModel::from_bytes(&file), Err(SmallModelError::Tensor { .. })));
}

#[test]
fn the_embedded_files_belong_together() {
    let vocabulary = vocabulary().unwrap();
    assert_eq!((vocabulary.eos(), vocabulary.pad(), vocabulary.mask()), (&[EOS][..], Some(PAD), Some(MASK)));
    assert_eq!(
        [EOS, PAD, MASK].map(|id| vocabulary.name(id)),
        [Some("<eos>"), Some("<pad>"), Some("<mask>")]
    );
    for kind in Kind::ALL {
        let model = kind.model().unwrap();
        assert_eq!(model.kind(), kind);
        assert_eq!(model.vocabulary_size(), vocabulary.len());
        assert_eq!(Kind::by_name(kind.name()), Some(kind));
        for task in Task::ALL {
            for example in task.stream(Split::HeldOut, 2).take(200) {
                assert!(
                    vocabulary.encode(&example.answer).unwrap().len() < model.canvas_length(),
                    "{}",
                    example.answer
                );
            }
        }
    }
}

#[test]
fn texts_survive_the_tokenizer() {
    let vocabulary = vocabulary().unwrap();
    let texts = Task::ALL.into_iter().flat_map(|task| {
        task.stream(Split::Train, 4).take(200).flat_map(|example| [example.prompt, example.answer])
    });
    for text in texts.chain(["", " ", "\u{0}", "naïve → 日本", "a  b\r\n\t", "\"},{\""].map(str::to_owned))
    {
        assert_eq!(
            vocabulary.decode(&vocabulary.encode(&text).unwrap()).unwrap(),
            text.as_bytes(),
            "{text:?}"
        );
    }
    for token in ["\":", "\"},{\"", "\",\"", ")*", "name\":\"", "(="] {
        assert_eq!(vocabulary.encode(token).unwrap().len(), 1, "{token}");
    }
}

/// What the `tokenizers` package of Python made of texts: `training/tokenizer.py` recorded it.
#[test]
fn texts_are_encoded_as_in_training() {
    let vocabulary = vocabulary().unwrap();
    let recorded: Vec<(String, Vec<u32>)> =
        serde_json::from_str(include_str!("vectors/tokenizer.json")).unwrap();
    assert!(recorded.len() >= 50);
    for (text, ids) in recorded {
        let encoded: Vec<u32> = vocabulary.encode(&text).unwrap().iter().map(|token| token.0).collect();
        assert_eq!(encoded, ids, "{text:?}");
    }
}
