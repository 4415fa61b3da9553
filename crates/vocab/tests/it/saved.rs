//! Saved vocabularies: the same as before, and damaged files.

#[allow(dead_code)]
use crate::common;

use anygram_bits::Random;
use anygram_vocab::{ErrorKind, Format, LoadOptions, SpecialIds, TokenId, Vocabulary};
use common::{data, path};

/// Whatever is asked of two vocabularies, they answer alike.
fn assert_same(one: &Vocabulary, other: &Vocabulary, texts: &[Vec<u8>]) {
    other.validate().unwrap();
    assert_eq!(one.trie(), other.trie());
    assert_eq!((one.len(), one.eos(), one.pad(), one.mask()), {
        (other.len(), other.eos(), other.pad(), other.mask())
    });
    for id in (0..one.len() + 2).map(TokenId::new) {
        assert_eq!((one.bytes(id), one.name(id)), (other.bytes(id), other.name(id)));
    }
    for text in texts {
        let (expected, found) = (one.encode(text), other.encode(text));
        assert_eq!(found.ok(), expected.ok(), "{}", String::from_utf8_lossy(text));
    }
}

fn saved_again(vocabulary: &Vocabulary) -> (Vec<u8>, Vocabulary) {
    let saved = vocabulary.to_saved().unwrap();
    let loaded = Vocabulary::from_bytes(Format::Saved, &saved, &LoadOptions::default()).unwrap();
    assert_eq!(loaded.to_saved().unwrap(), saved, "equal vocabularies are equal files");
    (saved, loaded)
}

/// Texts of pieces that tokens cross, and of bytes that are none.
fn texts(random: &mut Random, tokens: &Vocabulary, n: usize) -> Vec<Vec<u8>> {
    const PARTS: [&[u8]; 12] =
        [b" ", b"a", b"abc", b"\n", b"{\"", b"12", b"\xff", b"\0", "é日本".as_bytes(), b"the ", b"  ", b"S"];
    let one = |random: &mut Random| match random.below(2) {
        0 => random.choose(&PARTS).to_vec(),
        _ => tokens.bytes(TokenId::new(random.below(tokens.len()))).unwrap_or(b"x").to_vec(),
    };
    (0..n).map(|_| (0..random.below(12)).flat_map(|_| one(random)).collect()).collect()
}

const FILES: [&str; 9] = [
    "tiny.tiktoken",
    "array.json",
    "byte_level.json",
    "byte_fallback.json",
    "bpe.model",
    "characters.model",
    "unigram.model",
    "unigram_plain.model",
    "words.model",
];

/// Those files whose encoder can be saved.
fn files() -> impl Iterator<Item = &'static str> {
    FILES.into_iter().filter(|name| cfg!(feature = "tokenizers") || !name.starts_with("byte_"))
}

#[test]
fn the_same_as_before() {
    for (seed, name) in files().enumerate() {
        let plain = Vocabulary::from_file(path(name), &LoadOptions::default()).unwrap();
        for mut random in (0..40).map(|n| Random::new(1_000 * seed as u64 + n)) {
            // Ordinary tokens become special, and ids beyond the file are named.
            let beyond = plain.len() as u32 + random.below(5) as u32;
            let special = SpecialIds {
                eos: (0..random.below(3)).map(|_| random.below(plain.len()) as u32).collect(),
                pad: random.chance(50).then_some(beyond),
                mask: random.chance(50).then_some(beyond + 3),
            };
            let vocabulary = plain.with_special(special).unwrap();
            let vocabulary = vocabulary.with_names([(beyond, "<|beyond|>")]).unwrap_or(vocabulary);
            let texts = texts(&mut random, &plain, 20);
            assert_same(&vocabulary, &saved_again(&vocabulary).1, &texts);
        }
    }
}

#[test]
fn random_tokens() {
    for mut random in (0..300).map(Random::new) {
        let letters = 1 + random.below(4);
        let token = |random: &mut Random| -> Vec<u8> {
            let length = if random.chance(5) { random.below(40) } else { random.below(12) };
            (0..length).map(|_| [0, b'a', 0xe6, 0xff][random.below(letters)]).collect()
        };
        let tokens: Vec<Vec<u8>> = (0..random.below(60)).map(|_| token(&mut random)).collect();
        let vocabulary = Vocabulary::from_tokens(&tokens, SpecialIds::default()).unwrap();
        let texts: Vec<Vec<u8>> = (0..10).map(|_| token(&mut random)).collect();
        assert_same(&vocabulary, &saved_again(&vocabulary).1, &texts);
    }
}

#[test]
fn options_replace_what_was_saved_one_by_one() {
    let special = SpecialIds { eos: vec![3], pad: Some(4), mask: Some(5) };
    let vocabulary = Vocabulary::from_tokens(["a", "b", "ab"], special).unwrap();
    let saved = vocabulary.to_saved().unwrap();
    let load = |options: LoadOptions| Vocabulary::from_bytes(Format::Saved, &saved, &options);
    let other = load(LoadOptions { eos: vec![9], pad: Some(2), ..LoadOptions::default() }).unwrap();
    other.validate().unwrap();
    assert_eq!((other.eos(), other.pad()), (&[TokenId(9)][..], Some(TokenId(2))));
    assert_eq!((other.mask(), other.len(), other.bytes(TokenId(2))), (Some(TokenId(5)), 10, None));
    let refused = load(LoadOptions { id_offset: 1, ..LoadOptions::default() }).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
}

#[test]
fn files_are_told_by_their_first_bytes() {
    let folder = std::env::temp_dir().join(format!("anygram-saved-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (file, options) = (folder.join("any name.json"), LoadOptions::default());
    std::fs::write(&file, "an older one").unwrap();
    let vocabulary = Vocabulary::builtin();
    vocabulary.save(&file).unwrap();
    assert_same(&vocabulary, &Vocabulary::from_file(&file, &options).unwrap(), &[b"SELECT".to_vec()]);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");

    let saved = std::fs::read(&file).unwrap();
    // As text from one system to another, read as Latin-1, with seven bits.
    let line_end = |&byte: &u8| if byte == b'\n' { b"\r\n".to_vec() } else { vec![byte] };
    let lines: Vec<u8> = saved.iter().flat_map(line_end).collect();
    let latin: Vec<u8> = saved.iter().flat_map(|&byte| char::from(byte).to_string().into_bytes()).collect();
    let seven: Vec<u8> = saved[1..].to_vec();
    for bad in [lines, latin, seven] {
        std::fs::write(&file, bad).unwrap();
        let error = Vocabulary::from_file(&file, &options).unwrap_err();
        assert!(error.to_string().contains("the saved vocabulary is damaged"), "{error}");
    }
    let mut newer = saved;
    newer[8] = 77;
    std::fs::write(&file, newer).unwrap();
    let error = Vocabulary::from_file(&file, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 77") && error.to_string().contains("vocab save"), "{error}");
    let error = vocabulary.save(folder.join("none/there")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Each byte another one, bits that flip, every length: all of it is an error.
#[test]
fn damage_is_an_error() {
    let mut random = Random::new(31);
    let refuse = |bad: &[u8], what: &str| {
        let error = Vocabulary::from_bytes(Format::Saved, bad, &LoadOptions::default()).unwrap_err();
        let kinds = [ErrorKind::Syntax, ErrorKind::Unsupported];
        assert!(kinds.contains(&error.kind()) && error.to_string().contains("again"), "{what}: {error}");
    };
    for name in files() {
        let plain = Vocabulary::from_file(path(name), &LoadOptions::default()).unwrap();
        let good = plain.to_saved().unwrap();
        for length in 0..good.len() {
            refuse(&good[..length], name);
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 + random.below(255) as u8;
            refuse(&bad, name);
            bad[at] = good[at] ^ (1 << random.below(8));
            refuse(&bad, name);
        }
        for _ in 0..500 {
            let (a, b) = (random.below(good.len()), random.below(good.len()));
            let mut bad = good.clone();
            for _ in 0..=random.below(20) {
                bad[random.below(good.len())] = random.below(256) as u8;
            }
            if bad != good {
                refuse(&bad, name);
            }
            refuse(&[&good[..], &good[a.min(b)..=a.max(b)]].concat(), name);
        }
    }
}

#[test]
fn large_files() {
    let Some(data) = data() else { return };
    let mut random = Random::new(7);
    for name in ["qwen.tiktoken.gz", "o200k_base.tiktoken.gz", "mistral_sentencepiece_v3.model.gz"] {
        let vocabulary =
            Vocabulary::from_file(data.join("tokenizers").join(name), &LoadOptions::default()).unwrap();
        let (good, loaded) = saved_again(&vocabulary);
        assert_same(&vocabulary, &loaded, &texts(&mut random, &vocabulary, 300));
        for _ in 0..200 {
            let mut bad = good.clone();
            bad[random.below(good.len())] ^= 1 << random.below(8);
            let options = LoadOptions::default();
            assert!(Vocabulary::from_bytes(Format::Saved, &bad, &options).is_err(), "{name}");
            let length = random.below(good.len());
            assert!(Vocabulary::from_bytes(Format::Saved, &good[..length], &options).is_err(), "{name}");
        }
    }
}
