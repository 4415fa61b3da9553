//! Real vocabularies and real texts, which are not in the repository.
//!
//! They lie in a folder `shared` beside it, or where `ANYGRAM_SHARED` says. Without them these tests say so and pass,
//! but fail where `CI` is `true`.

use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;

/// The folder with the data, or `None` with a notice.
fn data() -> Option<PathBuf> {
    let shared = std::env::var_os("ANYGRAM_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let data = shared.join("data");
    if data.join("tokenizers").is_dir() {
        return Some(data);
    }
    let notice = format!("no shared data at {}: set ANYGRAM_SHARED", data.display());
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{notice}");
    eprintln!("NOT TESTED: {notice}");
    None
}

fn options(facts: &Value) -> LoadOptions {
    LoadOptions {
        pattern: facts["pattern"].as_str().map(str::to_owned),
        id_offset: facts["id_offset"].as_u64().unwrap_or(0) as u32,
        ..LoadOptions::default()
    }
}

fn ids(value: &Value) -> Vec<TokenId> {
    value.as_array().unwrap().iter().map(|id| TokenId(id.as_u64().unwrap() as u32)).collect()
}

#[test]
fn checked_examples_of_all_rank_files() {
    let Some(data) = data() else { return };
    let facts = std::fs::read(data.join("tokenizers/tokenizers.json")).unwrap();
    let facts: serde_json::Map<String, Value> = serde_json::from_slice(&facts).unwrap();
    let mut n_checked = 0;
    for (name, facts) in facts.iter().filter(|(_, facts)| facts["kind"] == "byte_bpe_ranks") {
        let path = data.join("tokenizers").join(facts["file"].as_str().unwrap());
        let plain = Vocabulary::from_file(&path, &options(facts)).unwrap();
        plain.validate().unwrap();
        assert_eq!(plain.trie().n_tokens() as u64, facts["ranks"].as_u64().unwrap(), "{name}");
        let special = facts["special"].as_object().unwrap();
        let names = special.iter().map(|(name, id)| (id.as_u64().unwrap() as u32, name.as_str()));
        let vocabulary = plain.with_names(names).unwrap();
        assert_eq!(vocabulary.len() as u64, facts["vocab_size"].as_u64().unwrap(), "{name}");
        for (text, expected) in facts["example"].as_object().unwrap() {
            assert_eq!(vocabulary.encode(text).unwrap(), ids(expected), "{name}: {text}");
            n_checked += 1;
        }
        for text in ["", "\u{0}\u{7f}é", "日本語🙂🙃", "  \n\n \t x", "<|endoftext|>", "a\u{301}ß’s I'LL 12345"]
        {
            let tokens = vocabulary.encode(text).unwrap();
            assert_eq!(vocabulary.decode(&tokens).unwrap(), text.as_bytes(), "{name}");
            assert!(tokens.iter().all(|&id| !vocabulary.is_special(id)));
        }
    }
    assert!(n_checked >= 6);
}

#[test]
fn replay_texts_encode_to_their_ids() {
    let Some(data) = data() else { return };
    let qwen = Vocabulary::from_file(data.join("tokenizers/qwen.tiktoken.gz"), &LoadOptions::default()).unwrap();
    let mut n_texts = 0;
    for entry in std::fs::read_dir(data.join("replay")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".tok.jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let (text, expected) = (line["text"].as_str().unwrap(), ids(&line["ids"]));
            assert_eq!(qwen.decode(&expected).unwrap(), text.as_bytes(), "{name}");
            // Those have one token a character.
            if !name.starts_with("stress_") {
                assert_eq!(qwen.encode(text).unwrap(), expected, "{name}: {text}");
                n_texts += 1;
            }
        }
    }
    assert!(n_texts > 500, "only {n_texts} texts found");
}

/// The parts into which merges below `rank` cut a token: by the definition of byte-level BPE the two it is merged from.
fn parts_below(token: &[u8], rank: u32, ranks: &HashMap<&[u8], u32>) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = token.iter().map(|&byte| vec![byte]).collect();
    loop {
        let known = |pair: &[Vec<u8>]| ranks.get(pair.concat().as_slice()).copied().filter(|&found| found < rank);
        let Some((_, i)) = parts.windows(2).enumerate().filter_map(|(i, pair)| Some((known(pair)?, i))).min() else {
            return parts;
        };
        let right = parts.remove(i + 1);
        parts[i].extend(right);
    }
}

/// The characters by which byte-level files write bytes.
fn byte_characters() -> Vec<char> {
    let printable = |byte: u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut next = 0x100..;
    (0..256).map(|byte| if printable(byte) { byte } else { next.next().unwrap() }).filter_map(char::from_u32).collect()
}

#[test]
fn the_same_vocabulary_as_a_tokenizer_json() {
    let Some(data) = data() else { return };
    let qwen = Vocabulary::from_file(data.join("tokenizers/qwen.tiktoken.gz"), &LoadOptions::default()).unwrap();
    let characters = byte_characters();
    let write = |bytes: &[u8]| bytes.iter().map(|&byte| characters[byte as usize]).collect::<String>();
    let tokens: Vec<&[u8]> = (0..qwen.len()).map(|i| qwen.bytes(TokenId::new(i)).unwrap()).collect();
    let ranks: HashMap<&[u8], u32> = tokens.iter().copied().zip(0..).collect();
    let mut merges = Vec::new();
    for (rank, token) in tokens.iter().enumerate().filter(|(_, token)| token.len() > 1) {
        if let [left, right] = &parts_below(token, rank as u32, &ranks)[..] {
            merges.push([write(left), write(right)]);
        }
    }
    let vocab: serde_json::Map<String, Value> = tokens.iter().zip(0..).map(|(t, id)| (write(t), json!(id))).collect();
    let facts = std::fs::read(data.join("tokenizers/tokenizers.json")).unwrap();
    let pattern = serde_json::from_slice::<Value>(&facts).unwrap()["qwen"]["pattern"].clone();
    let file = json!({
        "version": "1.0",
        "added_tokens": [{"id": qwen.len(), "content": "<|endoftext|>", "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        ]},
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    });
    let file = file.to_string();
    let start = std::time::Instant::now();
    let same = Vocabulary::from_bytes(Format::HuggingFace, file.as_bytes(), &LoadOptions::default()).unwrap();
    eprintln!("tokenizer.json of {} bytes loaded in {:?}", file.len(), start.elapsed());
    same.validate().unwrap();
    assert_eq!(same.len(), qwen.len() + 1);
    assert_eq!(same.suggested_eos(), [TokenId::new(qwen.len())]);
    assert!((0..qwen.len()).map(TokenId::new).all(|id| same.bytes(id) == qwen.bytes(id)));
    for name in ["cpp_he", "sqlite", "treebank_raw", "smiles"] {
        for line in std::fs::read_to_string(data.join(format!("replay/{name}.tok.jsonl"))).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(same.encode(line["text"].as_str().unwrap()).unwrap(), ids(&line["ids"]));
        }
    }
    for text in ["日本語🙂🙃 e\u{301} <|endoftext|>", "  \n\n \t x", "\u{0}\u{7f}é ß’s I'LL 12345"] {
        assert_eq!(same.encode(text).unwrap(), qwen.encode(text).unwrap(), "{text}");
    }
}

#[test]
fn a_sentence_piece_model() {
    let Some(data) = data() else { return };
    let path = data.join("tokenizers/mistral_sentencepiece_v3.model.gz");
    let vocabulary = Vocabulary::from_file(path, &LoadOptions::default()).unwrap();
    vocabulary.validate().unwrap();
    assert_eq!(vocabulary.len(), 32_768);
    assert_eq!(vocabulary.suggested_eos(), [TokenId(2)]);
    let id = |name| vocabulary.special_by_name(name);
    assert_eq!((id("<unk>"), id("<s>"), id("[INST]")), (Some(TokenId(0)), Some(TokenId(1)), Some(TokenId(3))));
    assert_eq!(vocabulary.bytes(TokenId(999)), Some(&b"\xe4"[..]));
    assert_eq!(vocabulary.bytes(TokenId(769)), Some(&b"[REFERENCE_DOC_1]"[..]));
    assert_eq!(vocabulary.encode("a[REFERENCE_DOC_1]").unwrap()[1], TokenId(769));
    let words = |text: &str| -> Vec<Vec<u8>> {
        let ids = vocabulary.encode(text).unwrap();
        ids.iter().map(|&id| vocabulary.bytes(id).unwrap().to_vec()).collect()
    };
    assert_eq!(words(" hello world"), [&b" hell"[..], b"o", b" world"]);
    assert_eq!(words("x\u{10ffff}"), [&b"x"[..], b"\xf4", b"\x8f", b"\xbf", b"\xbf"]);
    for text in ["", "  two  spaces ", "日本語🙂🙃\n", "a▁b", "</s> [INST]", "SELECT COUNT(*) FROM t;"] {
        assert_eq!(words(text).concat(), text.as_bytes());
    }
}
