//! Masks that are shared between equal situations are those that are computed afresh.
//!
//! Long random walks through the masks of random grammars, on shared tables and on tables that keep no mask.
//! `ANYGRAM_SEED` and `ANYGRAM_SEEDS` as in `oracle.rs`.

use std::sync::Arc;

use anygram_bits::work::Cancel;
use anygram_grammar::ir::{Grammar, LexerMode};
use anygram_grammar::lark::{self, LarkOptions};
use anygram_left_to_right::{
    Constraint, Engine, ErrorKind, Language, LanguageOptions, Limits, MatchError, Matcher, MemoCounts, Warm,
};
use anygram_testkit::generate::RandomCase;
use anygram_testkit::random::Random;
use anygram_vocab::{Format, LoadOptions, TokenId, Vocabulary};

pub fn vocabulary(tokens: &[Option<Vec<u8>>]) -> Vocabulary {
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let token = |token: &Option<Vec<u8>>| {
        token.as_ref().map_or("null".to_owned(), |b| format!("{{\"hex\":\"{}\"}}", hex(b)))
    };
    let tokens: Vec<String> = tokens.iter().map(token).collect();
    let options = LoadOptions { eos: vec![0], ..LoadOptions::default() };
    Vocabulary::from_bytes(Format::JsonArray, format!("[{}]", tokens.join(",")).as_bytes(), &options).unwrap()
}

fn matcher(
    grammar: &Grammar,
    mode: LexerMode,
    engine: Engine,
    vocabulary: &Vocabulary,
    mask_bytes: usize,
) -> Option<Matcher> {
    let limits = Limits { mask_bytes, ..Limits::default() };
    matcher_within(limits, grammar, mode, engine, vocabulary)
}

fn matcher_within(
    limits: Limits,
    grammar: &Grammar,
    mode: LexerMode,
    engine: Engine,
    vocabulary: &Vocabulary,
) -> Option<Matcher> {
    let options = LanguageOptions { lexer: Some(mode), engine, limits, ..LanguageOptions::default() };
    let language = Language::new(grammar.clone(), &options).ok()?;
    Constraint::new(Arc::new(language), vocabulary.clone()).ok()?.matcher().ok()
}

/// Tokens that are all texts of at most so many of some letters, behind an EOS.
fn all_texts(letters: &[u8], longest: usize) -> Vec<Option<Vec<u8>>> {
    let mut tokens = vec![None];
    let mut texts = vec![Vec::new()];
    for _ in 0..longest {
        let longer = |text: &Vec<u8>| letters.iter().map(|&letter| [&**text, &[letter]].concat()).collect();
        texts = texts.iter().flat_map::<Vec<_>, _>(longer).collect();
        tokens.extend(texts.iter().cloned().map(Some));
    }
    tokens
}

/// Walks both ways at once. Returns what became of the masks.
fn walk(
    random: &mut Random,
    sharing: &mut Matcher,
    plain: &mut Matcher,
    n_walks: usize,
    n_steps: usize,
) -> Result<MemoCounts, String> {
    for _ in 0..n_walks {
        sharing.reset();
        plain.reset();
        for _ in 0..n_steps {
            let (mask, expected) = (sharing.mask(), plain.mask());
            if mask != expected {
                return Err(format!("after {:?}: {mask:x?}, expected {expected:x?}", sharing.tokens()));
            }
            let Ok(mask) = mask else { break };
            let size = sharing.constraint().vocabulary().len();
            let allowed: Vec<usize> = (1..size).filter(|&id| mask.contains(TokenId::new(id))).collect();
            if allowed.is_empty() {
                break;
            }
            let token = TokenId::new(*random.choose(&allowed));
            for matcher in [&mut *sharing, &mut *plain] {
                match matcher.advance(token) {
                    Ok(()) => {}
                    Err(MatchError::Limit(_)) => break,
                    Err(error) => return Err(format!("after {:?}: {error}", matcher.tokens())),
                }
            }
            if sharing.tokens() != plain.tokens() {
                break;
            }
        }
    }
    Ok(sharing.memo_counts())
}

#[test]
fn of_random_grammars() {
    let seeds = anygram_testkit::random::seeds(40);
    let (mut found, mut kept, mut not_kept, mut found_in_little) = (0, 0, 0, 0);
    let (mut parts_found, mut parts_resumed) = (0, 0);
    for &seed in &seeds {
        let modes = [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual];
        let both = modes.map(|mode| [RandomCase::in_mode(seed, mode), RandomCase::with_blanks(seed, mode)]);
        for case in both.into_iter().flatten() {
            let mode = case.mode;
            let vocabulary = vocabulary(&case.vocab);
            let made = [0, 1 << 20, 1 << 14];
            let made = made.map(|bytes| matcher(&case.grammar, mode, Engine::Earley, &vocabulary, bytes));
            let [Some(mut plain), Some(mut sharing), Some(mut small)] = made else { continue };
            let mut compare = |sharing: &mut Matcher| {
                walk(&mut Random::new(seed), sharing, &mut plain, 6, 25)
                    .unwrap_or_else(|error| panic!("seed {seed}, {mode:?}: {error}\n{case}"))
            };
            let counts = compare(&mut sharing);
            (found, kept, not_kept) = (found + counts.found, kept + counts.kept, not_kept + counts.not_kept);
            parts_found += counts.parts_found;
            parts_resumed += counts.parts_resumed;
            // Where what is known is forgotten, or brought over before that.
            found_in_little += compare(&mut small).found;
            assert_eq!(plain.memo_counts().found, 0);
        }
    }
    println!("{found} masks found, {kept} kept, {not_kept} not kept; {parts_found} parts found");
    println!("{parts_resumed} known in part; {found_in_little} masks found within little memory");
    assert!(seeds.len() < 20 || found > kept, "most masks come again");
    assert!(seeds.len() < 20 || parts_found > kept / 10, "so do parts of new masks");
    assert!(seeds.len() < 20 || parts_resumed > kept / 20, "and others do in part");
    assert!(seeds.len() < 20 || (kept..found).contains(&found_in_little), "little is forgotten");
}

/// A grammar over short texts, whose rules hold one another.
fn nested(random: &mut Random) -> String {
    let n_rules = random.between(2, 5);
    let mut source = "start: r0\n".to_owned();
    for rule in 0..n_rules {
        let texts = ["a", "b", "c", "d", "e", "ab", "bc", "abc"];
        let text = |random: &mut Random| format!("\"{}\"", random.choose(&texts));
        let mut ways = vec![text(random)];
        for _ in 0..random.between(1, 4) {
            let symbol = |random: &mut Random| match random.chance(50) {
                true => text(random),
                false => format!("r{}", random.below(n_rules)),
            };
            let n_symbols = random.between(1, 5);
            ways.push((0..n_symbols).map(|_| symbol(random)).collect::<Vec<_>>().join(" "));
        }
        source += &format!("r{rule}: {}\n", ways.join(" | "));
    }
    // Behind ignored pieces the state is that before them, by whichever way.
    for _ in 0..random.below(5) {
        let n_bytes = random.between(1, 4);
        let text: String = (0..n_bytes).map(|_| *random.choose(&['a', 'd', 'e'])).collect();
        source += &format!("%ignore \"{text}\"\n");
    }
    source
}

/// Tokens that are all short texts, so that much is left of most of them behind a piece, and the same by many
/// ways: masks on shared tables are what single tokens do.
#[test]
fn of_all_short_texts() {
    let seeds = anygram_testkit::random::seeds(20);
    let tokens = all_texts(b"abcde", 4);
    let vocabulary = vocabulary(&tokens);
    let (mut n_masks, mut n_parts, mut n_resumed) = (0, 0, 0);
    for &seed in &seeds {
        let mut random = Random::new(seed);
        let source = nested(&mut random);
        let mut grammar = lark::parse(&source, &LarkOptions::default()).unwrap();
        for mode in [LexerMode::Longest, LexerMode::Contextual, LexerMode::Scannerless] {
            // A promise that is not kept, so that a token comes through by several ways.
            grammar.delimited = mode == LexerMode::Scannerless;
            let Some(mut sharing) = matcher(&grammar, mode, Engine::Earley, &vocabulary, 1 << 20) else {
                continue;
            };
            for _ in 0..6 {
                sharing.reset();
                for _ in 0..8 {
                    let n_found = sharing.memo_counts().found;
                    let Ok(mask) = sharing.mask() else { break };
                    n_masks += u64::from(sharing.memo_counts().found == n_found);
                    for (id, text) in tokens.iter().enumerate().skip(1) {
                        let token = TokenId::new(id);
                        let Ok(n) = sharing.validate(&[token]) else { continue };
                        let before = sharing.tokens();
                        let is_right = mask.contains(token) == (n == 1);
                        assert!(is_right, "seed {seed}, {mode:?}, after {before:?}: {text:?}\n{source}");
                    }
                    let allowed: Vec<TokenId> = mask.iter().filter(|token| token.0 > 0).collect();
                    if allowed.is_empty() || sharing.advance(*random.choose(&allowed)).is_err() {
                        break;
                    }
                }
            }
            n_parts += sharing.memo_counts().parts_found;
            n_resumed += sharing.memo_counts().parts_resumed;
        }
    }
    println!("{n_masks} masks computed, {n_parts} parts found, {n_resumed} known in part");
    assert!(seeds.len() < 20 || n_parts > n_masks, "{n_parts} parts of {n_masks} masks are found");
    assert!(seeds.len() < 20 || n_resumed > n_masks / 5, "{n_resumed} are found in part");
}

/// Masks along a text are computed ahead, and those of other texts on the same tables are what they were.
#[test]
fn prepared_masks_are_the_same() {
    let (mut n_known, mut n_prepared) = (0, 0);
    for seed in 0..40 {
        let case = RandomCase::in_mode(seed, LexerMode::Scannerless);
        let vocabulary = vocabulary(&case.vocab);
        let made =
            [0, 1 << 20].map(|bytes| matcher(&case.grammar, case.mode, Engine::Earley, &vocabulary, bytes));
        let [Some(mut plain), Some(mut sharing)] = made else { continue };
        let mut random = Random::new(seed);
        for _ in 0..4 {
            // Valid or not: what is refused ends it.
            let text: Vec<u8> = (0..6).flat_map(|_| random.choose(&case.vocab).clone()).flatten().collect();
            sharing.reset();
            n_prepared += sharing.prepare(&text, 5, &Cancel::new()).unwrap();
            assert!(sharing.tokens().is_empty());
            let mut words = vec![0; sharing.constraint().mask_words()];
            n_known += usize::from(sharing.known_mask_into(&mut words).unwrap());
        }
        walk(&mut random, &mut sharing, &mut plain, 6, 25)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{case}"));
        assert_eq!(sharing.prepare("", 0, &Cancel::new()), Ok(0));
        let cancel = Cancel::new();
        cancel.cancel();
        let error = sharing.prepare("", 1, &cancel).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
    }
    println!("{n_prepared} masks prepared; {n_known} first masks known");
    assert!(n_prepared > 150 && n_known > 80);
}

/// Where what may follow depends on what stands deep in the stack, and where it does not.
#[test]
fn of_deep_texts() {
    let grammars = [
        r#"start: s
           s: "(" s ")" | "[" s "]" | "{" s "}" | "x""#,
        r#"start: "a" start "b" | "c" start "d" | "e""#,
        r#"start: list
           list: item | list "," item
           item: "<" list ">" | "(" list ")" | NAME
           NAME: /[a-z]+/
           %ignore / +/"#,
        r#"start: e
           e: e "+" e | "(" e ")" | "n" | e "!""#,
        r#"start: a | b
           a: "x" a "y" | "x" "y"
           b: "x" b "z" | "x" "z""#,
        r#"start: "a" start | "a""#,
    ];
    let mut tokens: Vec<Option<Vec<u8>>> = vec![None];
    tokens.extend((b' '..=b'~').map(|byte| Some(vec![byte])));
    let longer = [
        "))", ")))", "]]", ")]", "),", "),(", ">)", "]}", "xy", "yy", "yyy", "zz", "zzz", "aa", "bd", "db",
        "dd", "n)", "+n", "+(", ")+", "!!", "> ,", "))))))",
    ];
    tokens.extend(longer.map(|token| Some(token.as_bytes().to_vec())));
    let vocabulary = vocabulary(&tokens);
    for source in grammars {
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        for mode in [LexerMode::Scannerless, LexerMode::Longest, LexerMode::Contextual] {
            let made = [0, 1 << 20]
                .map(|bytes| matcher(&grammar, mode, Engine::Earley, &vocabulary, bytes).unwrap());
            let [mut plain, mut sharing] = made;
            let counts = walk(&mut Random::new(1), &mut sharing, &mut plain, 30, 60)
                .unwrap_or_else(|error| panic!("{source}, {mode:?}: {error}"));
            println!("{mode:?} {counts:?} {source}");
            assert!(counts.found > 2 * counts.kept, "{source}, {mode:?}: {counts:?}");
        }
    }
}

#[test]
fn warm_matchers_know_what_others_found_out() {
    let compile = |source: &str| {
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        let language = Language::new(grammar, &LanguageOptions::default()).unwrap();
        Constraint::new(Arc::new(language), Vocabulary::builtin().clone()).unwrap()
    };
    let (list, sum) = (compile("start: \"[\" /[a-z]+/ \"]\""), compile("start: /[0-9]+/ (\"+\" /[0-9]+/)*"));
    let mut warm = Warm::default();
    let tokens = list.vocabulary().encode("[ab]").unwrap();
    let counts = [(); 2].map(|()| {
        let mut matcher = warm.matcher(&list).unwrap();
        for &token in &tokens {
            matcher.mask().unwrap().into_words();
            matcher.advance(token).unwrap();
        }
        assert!(matcher.is_sentence());
        matcher.mask().unwrap().into_words();
        matcher.memo_counts()
    });
    assert_eq!(counts[0].kept, counts[1].kept, "{counts:?}");
    assert_eq!(counts[0].found + tokens.len() as u64 + 1, counts[1].found, "{counts:?}");
    let mut matcher = warm.matcher(&sum).unwrap();
    matcher.go_to(&sum.vocabulary().encode("1+2+3").unwrap()).unwrap();
    assert!(matcher.is_sentence());
    matcher.go_to(&sum.vocabulary().encode("1+45").unwrap()).unwrap();
    assert!(matcher.is_sentence() && matcher.memo_counts().found == 0);
    assert!(matcher.go_to(&tokens).is_err());
}

/// Tables that are given up at random: outputs on them go on with the masks of tables that keep nothing.
#[test]
fn tables_are_given_up_while_outputs_go_on() {
    let sources = [
        "start: item (\",\" item)*\nitem: \"[\" item \"]\" | /[a-z]+/ | /[0-9]{1,3}/",
        "start: e\ne: e \"+\" e | \"(\" e \")\" | \"n\"",
    ];
    for source in sources {
        let grammar = lark::parse(source, &LarkOptions::default()).unwrap();
        let language = Arc::new(Language::new(grammar, &LanguageOptions::default()).unwrap());
        let constraint = Constraint::new(language, Vocabulary::builtin().clone()).unwrap();
        let (mut warm, mut random) = (Warm::default(), Random::new(7));
        assert_eq!(warm.memory_usage(), Some(0));
        let mut outputs: Vec<Matcher> = Vec::new();
        let (mut given_up, mut ended) = (0, 0);
        for _ in 0..1_500 {
            if outputs.len() < 5 {
                outputs.push(warm.matcher(&constraint).unwrap());
            }
            let at = random.below(outputs.len());
            if random.below(20) == 0 {
                let before = warm.memory_usage().unwrap();
                warm.forget();
                let after = warm.memory_usage().unwrap();
                // Less, unless there was nothing but parser states.
                assert!(after <= before, "{before} bytes, then {after}");
                given_up += usize::from(after < before);
            }
            let output = &mut outputs[at];
            if random.below(4) == 0 && output.minimum_tokens(9).unwrap() == Some(0) {
                outputs.swap_remove(at);
                ended += 1;
                continue;
            }
            let mask = output.mask().unwrap();
            let mut fresh = constraint.matcher().unwrap();
            fresh.advance_all(output.tokens()).unwrap();
            assert_eq!(mask, fresh.mask().unwrap(), "after {:?}", output.tokens());
            let allowed: Vec<TokenId> = (0..constraint.vocabulary().len())
                .map(TokenId::new)
                .filter(|&token| mask.contains(token) && !constraint.vocabulary().eos().contains(&token))
                .collect();
            if !allowed.is_empty() {
                output.advance(*random.choose(&allowed)).unwrap();
            }
        }
        assert!(given_up > 2 && ended > 2, "{given_up} {ended}");
        outputs.clear();
        warm.forget();
        assert_eq!(warm.memory_usage(), Some(0), "tables go with their last output");
    }
}

/// A grammar of few rules, whose texts end in many ways.
fn small(random: &mut Random) -> String {
    let n_rules = random.between(1, 4);
    let texts = match random.below(2) {
        0 => &["a", "b", "c"][..],
        _ => &["a", "b", "c", "ab", "bc", "ca"][..],
    };
    let mut source = "start: r0\n".to_owned();
    for rule in 0..n_rules {
        let text = |random: &mut Random| format!("\"{}\"", random.choose(texts));
        let mut ways = vec![text(random)];
        for _ in 0..random.between(1, 4) {
            let symbol = |random: &mut Random| match random.chance(55) {
                true => text(random),
                false => format!("r{}", random.below(n_rules)),
            };
            let n_symbols = random.between(1, 4);
            let mut way: Vec<String> = (0..n_symbols).map(|_| symbol(random)).collect();
            if random.chance(30) {
                way.insert(0, format!("r{rule}"));
            }
            ways.push(way.join(" "));
        }
        source += &format!("r{rule}: {}\n", ways.join(" | "));
    }
    if random.chance(20) {
        source += &format!("%ignore \"{}\"\n", random.choose(&["a", "c", "ab"]));
    }
    source
}

/// Behind very many texts of one grammar, in any order: what is known of one situation serves others only if
/// they are alike in all that it was made of.
#[test]
fn of_many_texts_of_small_grammars() {
    let vocabulary = vocabulary(&all_texts(b"abc", 5));
    let (mut n_masks, mut n_resumed) = (0, 0);
    let seeds = anygram_testkit::random::seeds(150);
    for &seed in &seeds {
        let mut random = Random::new(seed);
        let source = small(&mut random);
        let Ok(mut grammar) = lark::parse(&source, &LarkOptions::default()) else { continue };
        let mode = *random.choose(&[LexerMode::Longest, LexerMode::Contextual, LexerMode::Scannerless]);
        grammar.delimited = mode == LexerMode::Scannerless;
        let of = |mask_bytes: usize| {
            // Some of these grammars are very ambiguous.
            let limits = Limits { mask_bytes, mask_steps: 60_000, ..Limits::default() };
            matcher_within(limits, &grammar, mode, Engine::Earley, &vocabulary)
        };
        let (Some(mut plain), Some(mut sharing)) = (of(0), of(16 << 20)) else { continue };
        let mut texts: Vec<Vec<TokenId>> = vec![Vec::new()];
        let mut at = 0;
        while at < texts.len().min(250) {
            let other = random.between(at, texts.len() - 1);
            texts.swap(at, other);
            let text = texts[at].clone();
            at += 1;
            if plain.go_to(&text).is_err() || sharing.go_to(&text).is_err() {
                continue;
            }
            let (Ok(expected), Ok(mask)) = (plain.mask(), sharing.mask()) else { continue };
            assert!(
                mask == expected,
                "seed {seed}, {mode:?}, behind {text:?}: {mask:x?}, expected {expected:x?}\n{source}"
            );
            n_masks += 1;
            let bytes = (1..4).map(TokenId::new).filter(|&byte| text.len() < 9 && expected.contains(byte));
            texts.extend(bytes.map(|byte| text.iter().copied().chain([byte]).collect()));
        }
        n_resumed += sharing.memo_counts().parts_resumed;
    }
    println!("{n_masks} masks of {} grammars, {n_resumed} parts known in part", seeds.len());
    assert!(seeds.len() < 20 || n_masks > 50 * seeds.len(), "most grammars have many texts");
    assert!(seeds.len() < 20 || n_resumed > 10 * seeds.len() as u64, "parts are known in part");
}

/// What comes through depends on what stands hundreds of brackets deep, beyond what can be kept.
#[test]
fn of_texts_that_differ_deep_below() {
    let n_kinds = 30;
    let mut tokens: Vec<Option<Vec<u8>>> = vec![None];
    let mut add = |text: String| tokens.push(Some(text.into_bytes()));
    ["a", "b", "c", "x", "y"].iter().for_each(|text| add(text.to_string()));
    for at in 0..n_kinds {
        add(format!("k{at};"));
        add(format!("xyk{at};"));
        add(format!("yk{at};"));
        add(format!("axyk{at};"));
        add(format!("bxyk{at};k{};", at * 7 % n_kinds));
    }
    let vocabulary = vocabulary(&tokens);
    let kinds = |of: usize| {
        let kinds = (0..n_kinds).filter(|at| at % 3 == of).map(|at| format!("\"k{at};\""));
        kinds.collect::<Vec<_>>().join(" | ")
    };
    let source = format!(
        "start: s\ns: \"a\" s t0 | \"b\" s t1 | \"c\" s t2 | \"x\" \"y\"\nt0: ({})?\nt1: ({})?\nt2: ({})?\n",
        kinds(0),
        kinds(1),
        kinds(2)
    );
    let grammar = lark::parse(&source, &LarkOptions::default()).unwrap();
    for mode in [LexerMode::Longest, LexerMode::Contextual] {
        let made = [0, 64 << 20].map(|bytes| matcher(&grammar, mode, Engine::Earley, &vocabulary, bytes));
        let [Some(mut plain), Some(mut sharing)] = made else { panic!("{mode:?}: it compiles") };
        let mut random = Random::new(3);
        for depth in [1, 5, 20, 40, 47, 48, 49, 60, 100, 250, 300] {
            for _ in 0..10 {
                let bracket = |random: &mut Random| TokenId::new(random.between(1, 3));
                let mut text: Vec<TokenId> = (0..3).map(|_| bracket(&mut random)).collect();
                text.extend([bracket(&mut random)].repeat(depth));
                text.extend(random.chance(30).then(|| TokenId::new(4)));
                plain.go_to(&text).unwrap();
                sharing.go_to(&text).unwrap();
                assert_eq!(sharing.mask(), plain.mask(), "{mode:?}, {depth} deep: {text:?}");
            }
        }
    }
}

/// Rows that are asked for again and again are brought over from the older generation, and counted there.
#[test]
fn known_masks_are_within_their_bytes() {
    let (n_situations, n_words, mask_bytes) = (250, 100, 1 << 17);
    let mut random = Random::new(5);
    let mut tokens: Vec<Option<Vec<u8>>> = vec![None];
    tokens.extend((0..n_situations).map(|at| Some(format!("s{at};").into_bytes())));
    tokens.extend((0..12_000).map(|at| Some(format!("w{}x{at}", at % n_words).into_bytes())));
    let vocabulary = vocabulary(&tokens);
    let ways: Vec<String> = (0..n_situations).map(|at| format!("\"s{at};\" K{at}")).collect();
    let mut source = format!("start: {}\n", ways.join(" | "));
    for at in 0..n_situations {
        let words = (0..n_words).filter(|_| random.chance(50)).map(|word| format!("w{word}x"));
        source += &format!("K{at}: /({})[0-9]+/\n", words.collect::<Vec<_>>().join("|"));
    }
    let grammar = lark::parse(&source, &LarkOptions::default()).unwrap();
    let mut output =
        matcher(&grammar, LexerMode::Contextual, Engine::Earley, &vocabulary, mask_bytes).unwrap();
    let mut row = vec![0; output.constraint().mask_words()];
    let go = |output: &mut Matcher, at: usize| output.go_to(&[TokenId::new(1 + at)]).unwrap();
    let mut most_known = 0;
    for all in (10..=n_situations).step_by(10) {
        for upto in (0..all).step_by(10) {
            for at in 0..upto {
                go(&mut output, at);
                output.mask().unwrap();
            }
        }
        let mut n_known = 0;
        for at in 0..all {
            go(&mut output, at);
            n_known += usize::from(output.known_mask_into(&mut row).unwrap());
        }
        most_known = most_known.max(n_known);
    }
    let bytes = most_known * size_of_val(&*row);
    assert!(bytes <= mask_bytes, "{most_known} masks known, of {bytes} bytes");
    assert!(bytes > mask_bytes / 4, "{most_known} masks known");
}
