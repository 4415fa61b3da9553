//! Real vocabularies and real texts, which are not in the repository.
//!
//! Without them these tests say so and pass.

#[allow(dead_code)]
use crate::common;

use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};
use common::data;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

fn ids(value: &Value) -> Vec<TokenId> {
    value.as_array().unwrap().iter().map(|id| TokenId(id.as_u64().unwrap() as u32)).collect()
}

/// What `tokenizers.json` says, by the name of the tokenizer.
fn facts(data: &Path) -> Map<String, Value> {
    serde_json::from_slice(&std::fs::read(data.join("tokenizers/tokenizers.json")).unwrap()).unwrap()
}

/// One of them as a person would load it.
fn tokenizer(data: &Path, name: &str, facts: &Value) -> Vocabulary {
    let file = match facts["kind"].as_str().unwrap() {
        "byte_bpe_ranks" => facts["file"].as_str().unwrap().to_owned(),
        "sentencepiece_bpe" => format!("{name}.model.gz"),
        kind => panic!("{name}: {kind}"),
    };
    let special = facts["special"].as_object().into_iter().flatten();
    let options = LoadOptions {
        names: special.map(|(name, id)| (id.as_u64().unwrap() as u32, name.clone())).collect(),
        pattern: facts["pattern"].as_str().map(str::to_owned),
        id_offset: facts["id_offset"].as_u64().unwrap_or(0) as u32,
        ..LoadOptions::default()
    };
    Vocabulary::from_file(data.join("tokenizers").join(file), &options).unwrap()
}

/// Texts that tokenizers treat in different ways.
fn varied_texts() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = [
        "",
        " ",
        "a",
        "SELECT COUNT(*) FROM t WHERE x >= 30;",
        "fn main() {\n    println!(\"{}\", 1 << 20);\n}\n\n\n// done\n",
        "\tif (a[i] != NULL && b->c == 'x')\r\n\t\treturn 0x7fff;\r\n",
        "{\"a\": [1, 2.5e-3, true, null], \"b\": {\"c\": \"\\u00e9\"}}",
        "日本語のテキスト、中文文本。한국어 텍스트",
        "🙂🙃👨‍👩‍👧‍👦🏳️‍🌈🇩🇪",
        "a\u{301}e\u{308}\u{323}o\u{302}\u{301} ß ﬁ ℌ ① ２",
        "النص العربي ١٢٣، שלום",
        "\u{0}\u{1}\u{7}\u{8}\u{b}\u{c}\u{1b}[0m\u{7f}\u{85}\u{a0}\u{ad}",
        "\u{200b}\u{200e}\u{feff}\u{2028}\u{2029}\u{fffd}\u{10ffff}\u{e000}",
        "▁ a▁b ▁▁",
        "<|endoftext|><|im_end|></s>[INST]<unk><0x0A>",
        "I'LL don't we'Ve 12345678901234567890 ____ ---- ....",
        "  two  spaces \n\n \t x   ",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into();
    for unit in [" ", "\n", "\t", "a", "ab", "=", "é", "\r\n", " \n", "🙂"] {
        texts.extend([17, 300, 5_000].map(|n| unit.repeat(n).into_bytes()));
    }
    // No text at all, but bytes.
    texts.push((0..=255).collect());
    texts.push((0..=255).rev().collect());
    texts.extend(
        "日🙂é"
            .char_indices()
            .flat_map(|(at, c)| (1..c.len_utf8()).map(move |n| "日🙂é".as_bytes()[at..at + n].into())),
    );
    let mut random = anygram_bits::Random::new(1);
    texts.push((0..5_000).map(|_| random.bits() as u8).collect());
    texts
}

#[test]
fn the_seven_tokenizers() {
    let Some(data) = data() else { return };
    let (mut n_tokenizers, mut n_examples) = (0, 0);
    for (name, facts) in &facts(&data) {
        let vocabulary = tokenizer(&data, name, facts);
        vocabulary.validate().unwrap();
        assert_eq!(vocabulary.len() as u64, facts["vocab_size"].as_u64().unwrap(), "{name}");
        if let Some(ranks) = facts["ranks"].as_u64() {
            assert_eq!(vocabulary.trie().n_tokens() as u64, ranks, "{name}");
        }
        for (special, id) in facts["special"].as_object().into_iter().flatten() {
            let id = TokenId(id.as_u64().unwrap() as u32);
            assert_eq!(vocabulary.special_by_name(special), Some(id), "{name}");
            assert_eq!((vocabulary.name(id), vocabulary.bytes(id)), (Some(special.as_str()), None), "{name}");
            assert_eq!(vocabulary.decode(&[id]).unwrap(), b"", "{name}");
        }
        for (text, expected) in facts["example"].as_object().into_iter().flatten() {
            assert_eq!(vocabulary.encode(text).unwrap(), ids(expected), "{name}: {text}");
            n_examples += 1;
        }
        let round_trip = |text: &[u8]| {
            let tokens = vocabulary.encode(text).unwrap();
            assert_eq!(vocabulary.decode(&tokens).unwrap(), text, "{name}");
            assert!(tokens.iter().all(|&id| !vocabulary.is_special(id)), "{name}");
        };
        varied_texts().iter().for_each(|text| round_trip(text));
        for id in (0..vocabulary.len()).map(TokenId::new) {
            match vocabulary.bytes(id) {
                None => assert!(
                    vocabulary.is_special(id) && vocabulary.decode(&[id]).unwrap().is_empty(),
                    "{name}"
                ),
                Some(bytes) => {
                    assert_eq!(vocabulary.decode(&[id]).unwrap(), bytes, "{name}");
                    round_trip(bytes);
                }
            }
        }
        n_tokenizers += 1;
    }
    assert_eq!((n_tokenizers, n_examples), (7, 6), "tokenizers.json has changed: look at what is new");
}

#[test]
fn replay_texts_encode_to_their_ids() {
    let Some(data) = data() else { return };
    let qwen =
        Vocabulary::from_file(data.join("tokenizers/qwen.tiktoken.gz"), &LoadOptions::default()).unwrap();
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

/// The parts into which merges below `rank` cut a token: by the definition of byte-level BPE the two it is
/// merged from.
fn parts_below(token: &[u8], rank: u32, ranks: &HashMap<&[u8], u32>) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = token.iter().map(|&byte| vec![byte]).collect();
    loop {
        let known =
            |pair: &[Vec<u8>]| ranks.get(pair.concat().as_slice()).copied().filter(|&found| found < rank);
        let Some((_, i)) = parts.windows(2).enumerate().filter_map(|(i, pair)| Some((known(pair)?, i))).min()
        else {
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
    (0..256)
        .map(|byte| if printable(byte) { byte } else { next.next().unwrap() })
        .filter_map(char::from_u32)
        .collect()
}

#[test]
fn the_same_vocabulary_as_a_tokenizer_json() {
    let Some(data) = data() else { return };
    let qwen =
        Vocabulary::from_file(data.join("tokenizers/qwen.tiktoken.gz"), &LoadOptions::default()).unwrap();
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
    let vocab: serde_json::Map<String, Value> =
        tokens.iter().zip(0..).map(|(t, id)| (write(t), json!(id))).collect();
    let pattern = facts(&data)["qwen"]["pattern"].clone();
    let file = json!({
        "version": "1.0",
        "added_tokens": [{"id": qwen.len(), "content": "<|endoftext|>", "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        ]},
        "decoder": {
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false,
        },
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
    if !cfg!(feature = "tokenizers") {
        return;
    }
    for name in ["cpp_he", "sqlite", "treebank_raw", "smiles"] {
        for line in std::fs::read_to_string(data.join(format!("replay/{name}.tok.jsonl"))).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(same.encode(line["text"].as_str().unwrap()).unwrap(), ids(&line["ids"]));
        }
    }
    for text in ["日本語🙂🙃 e\u{301} <|endoftext|>", "  \n\n \t x", "\u{0}\u{7f}é ß’s I'LL 12345"]
    {
        assert_eq!(same.encode(text).unwrap(), qwen.encode(text).unwrap(), "{text}");
    }
}

#[test]
fn a_sentence_piece_model_is_its_list_of_pieces() {
    let Some(data) = data() else { return };
    let name = "mistral_sentencepiece_v3";
    let facts = &facts(&data)[name];
    let vocabulary = tokenizer(&data, name, facts);
    let list = std::fs::File::open(data.join("tokenizers").join(facts["file"].as_str().unwrap())).unwrap();
    let (mut pieces, mut n_pieces) = (HashMap::new(), 0);
    for line in BufReader::new(flate2::read::GzDecoder::new(list)).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let (id, piece) = (TokenId(line["id"].as_u64().unwrap() as u32), line["piece"].as_str().unwrap());
        let expected = match line["type"].as_str().unwrap() {
            "normal" | "user_defined" => Some(piece.replace('▁', " ").into_bytes()),
            "byte" => Some(vec![u8::from_str_radix(&piece[3..5], 16).unwrap()]),
            "control" | "unknown" => {
                assert_eq!(vocabulary.special_by_name(piece), Some(id));
                None
            }
            other => panic!("{other}"),
        };
        assert_eq!(vocabulary.bytes(id).map(<[u8]>::to_vec), expected, "{id:?} {piece}");
        if let Some(bytes) = expected {
            // A byte is second to a piece for the same character.
            let found = pieces.entry(bytes).or_insert((f64::NEG_INFINITY, id));
            if line["type"] != "byte" {
                *found = (line["score"].as_f64().unwrap(), id);
            }
        }
        n_pieces += 1;
    }
    assert_eq!(n_pieces, vocabulary.len());
    let queries = std::fs::read_to_string(data.join("spider/queries.txt")).unwrap();
    let more = ["日本語🙂🙃 中文", "  two  spaces ", "aaaaaaaaaaaaaaaa", "naïve café Größe", "\n\n\t\u{0}"];
    for text in queries.lines().take(300).chain(more) {
        assert_eq!(vocabulary.encode(text).unwrap(), merged_slowly(text, &pieces), "{text}");
    }
}

/// The definition of BPE by score: of all adjacent pairs that are a piece the best is merged, the leftmost of
/// several.
fn merged_slowly(text: &str, pieces: &HashMap<Vec<u8>, (f64, TokenId)>) -> Vec<TokenId> {
    let mut parts: Vec<String> = text.chars().map(String::from).collect();
    loop {
        let mut best: Option<(f64, usize)> = None;
        for (i, pair) in parts.windows(2).enumerate() {
            if let Some(&(score, _)) = pieces.get(pair.concat().as_bytes())
                && best.is_none_or(|(other, _)| score > other)
            {
                best = Some((score, i));
            }
        }
        let Some((_, i)) = best else { break };
        let right = parts.remove(i + 1);
        parts[i].push_str(&right);
    }
    let id = |bytes: &[u8]| pieces.get(bytes).map(|&(_, id)| id);
    let ids = |part: &String| match id(part.as_bytes()) {
        Some(id) => vec![id],
        None => part.bytes().map(|byte| id(&[byte]).unwrap()).collect(),
    };
    parts.iter().flat_map(ids).collect()
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
    assert_eq!(
        (id("<unk>"), id("<s>"), id("[INST]")),
        (Some(TokenId(0)), Some(TokenId(1)), Some(TokenId(3)))
    );
    assert_eq!(vocabulary.bytes(TokenId(999)), Some(&b"\xe4"[..]));
    assert_eq!(vocabulary.bytes(TokenId(769)), Some(&b"[REFERENCE_DOC_1]"[..]));
    assert_eq!(vocabulary.encode("a[REFERENCE_DOC_1]").unwrap()[1], TokenId(769));
    let words = |text: &str| -> Vec<Vec<u8>> {
        let ids = vocabulary.encode(text).unwrap();
        ids.iter().map(|&id| vocabulary.bytes(id).unwrap().to_vec()).collect()
    };
    assert_eq!(words(" hello world"), [&b" hell"[..], b"o", b" world"]);
    assert_eq!(words("x\u{10ffff}"), [&b"x"[..], b"\xf4", b"\x8f", b"\xbf", b"\xbf"]);
    for text in ["", "  two  spaces ", "日本語🙂🙃\n", "a▁b", "</s> [INST]", "SELECT COUNT(*) FROM t;"]
    {
        assert_eq!(words(text).concat(), text.as_bytes());
    }
}
