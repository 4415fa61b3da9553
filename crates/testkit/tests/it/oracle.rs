//! Facts derived by hand, and two ways of searching compared.

use LexerMode::{Contextual, Longest, Scannerless};
use anygram_grammar::ir::Pattern;

use anygram_grammar::ir::{Grammar, LexerMode, SpecialToken, TerminalKind, Ties};
use anygram_testkit::build::{Build, regex};
use anygram_testkit::generate::RandomCase;
use anygram_testkit::oracle::*;
use anygram_testkit::text::{Sym, Text, show};

const MODES: [LexerMode; 3] = [Scannerless, Longest, Contextual];

/// Asserts which of `MODES` have the text as a sentence.
#[track_caller]
fn sentence_in(grammar: &Grammar, text: &str, modes: &[LexerMode]) {
    for mode in MODES {
        let oracle = Oracle::new(grammar, mode, Ties::All);
        assert_eq!(
            oracle.is_sentence(text),
            modes.contains(&mode),
            "{text:?} in {mode:?}: {}",
            oracle.explain(text)
        );
    }
}

#[test]
fn balanced_parentheses() {
    let grammar =
        Build::new().literal("L", "(").literal("R", ")").rule("start", "| L start R start").grammar();
    for text in ["", "()", "(()())()"] {
        sentence_in(&grammar, text, &MODES);
    }
    for text in ["(", ")", "())("] {
        sentence_in(&grammar, text, &[]);
    }
    let oracle = Oracle::new(&grammar, Longest, Ties::All);
    assert_eq!(oracle.is_viable("((", b"()", 3), Some(b"))".to_vec()));
    assert_eq!(oracle.is_viable("((((", b"()", 3), None);
    let limits = Limits { max_extra: 3, ..Limits::default() };
    assert_eq!(
        oracle.completion("())", &b"()".symbols(), limits),
        Completion::NoneWithin { exhausted: true }
    );
    assert_eq!(
        oracle.completion("((((", &b"()".symbols(), limits),
        Completion::NoneWithin { exhausted: false }
    );
    let limits = Limits { max_texts: 1, ..limits };
    assert_eq!(oracle.completion("((", &b"()".symbols(), limits), Completion::LimitReached);
}

#[test]
fn cyclic_and_hidden_left_recursive() {
    let grammar = Build::new()
        .literal("A", "a")
        .rule("start", "start | nothing start A | start start | A")
        .rule("nothing", "| nothing nothing")
        .grammar();
    for text in ["a", "aa", "aaaaa"] {
        sentence_in(&grammar, text, &MODES);
    }
    sentence_in(&grammar, "", &[]);
}

#[test]
fn keywords_stick_to_identifiers_without_space() {
    let grammar = Build::new()
        .literal("IF", "if")
        .pattern("ID", "[a-z]+")
        .pattern("WS", " +")
        .ignored()
        .rule("start", "IF ID")
        .grammar();
    sentence_in(&grammar, "if x", &MODES);
    sentence_in(&grammar, " if  x ", &MODES);
    // After nothing only IF can come, so it alone competes.
    sentence_in(&grammar, "ifx", &[Scannerless, Contextual]);
}

#[test]
fn longest_match_falls_back() {
    let grammar = Build::new()
        .pattern("NUMBER", r"[0-9]+(\.[0-9]+)?")
        .literal("DOT", ".")
        .rule("start", "NUMBER | NUMBER DOT | NUMBER DOT NUMBER")
        .grammar();
    sentence_in(&grammar, "1.", &MODES);
    sentence_in(&grammar, "1.5", &MODES);
    sentence_in(&grammar, "1.5.", &MODES);
    sentence_in(&grammar, "1.5.7", &MODES);
    let only_dot = Build::new()
        .pattern("NUMBER", r"[0-9]+(\.[0-9]+)?")
        .literal("DOT", ".")
        .rule("start", "NUMBER DOT NUMBER")
        .grammar();
    sentence_in(&only_dot, "1.5", &[Scannerless]);
}

#[test]
fn closing_two_templates() {
    let grammar = Build::new()
        .literal("LT", "<")
        .literal("GT", ">")
        .literal("SHIFT", ">>")
        .pattern("ID", "[a-z]+")
        .rule("start", "type ID | ID SHIFT ID")
        .rule("type", "ID | ID LT type GT")
        .grammar();
    sentence_in(&grammar, "a>>b", &MODES);
    sentence_in(&grammar, "a<b<c>>d", &[Scannerless, Contextual]);
    let oracle = Oracle::new(&grammar, Longest, Ties::All);
    assert_eq!(oracle.pieces("a<b<c>>d").len(), 7, "{}", oracle.explain("a<b<c>>d"));
}

#[test]
fn ties_and_priorities() {
    let base = || Build::new().pattern("ID", "[a-z]+").literal("IF", "if");
    let rules = |build: Build| build.rule("start", "ID ID | IF").pattern("WS", " ").ignored().grammar();
    let plain = rules(base());
    sentence_in(&plain, "if", &MODES);
    sentence_in(&plain, "if a", &MODES);
    for mode in [Longest, Contextual] {
        let first = Oracle::new(&plain, mode, Ties::First);
        assert!(first.is_sentence("if"));
        assert!(!first.is_sentence("if a"));
        assert_eq!(first.is_sentence("a if"), mode == Contextual, "only ID competes there");
    }
    let low = rules(base().priority(-1));
    sentence_in(&low, "if", &[Scannerless]);
    sentence_in(&low, "if a", &MODES);
}

#[test]
fn ignored_and_named() {
    let grammar = Build::new()
        .literal("A", "a")
        .pattern("COMMENT", "#[^#]*#")
        .ignored()
        .rule("start", "A A | A COMMENT COMMENT")
        .grammar();
    for text in ["aa", "a#x#a", "#x#a##a##", "a####", "#y#a####"] {
        sentence_in(&grammar, text, &MODES);
    }
    for text in ["a", "a##", "##a#"] {
        sentence_in(&grammar, text, &[]);
    }
    let oracle = Oracle::new(&grammar, Contextual, Ties::First);
    assert!(oracle.is_sentence("a##a") && oracle.is_sentence("a####"), "one label has both readings");
}

#[test]
fn nullable_terminals_are_optional() {
    let grammar = Build::new().pattern("AS", "a*").literal("B", "b").rule("start", "AS B AS").grammar();
    for text in ["b", "aab", "baa", "aba"] {
        sentence_in(&grammar, text, &MODES);
    }
    sentence_in(&grammar, "aa", &[]);
}

#[test]
fn only_useful_terminals_compete() {
    let grammar = Build::new()
        .literal("A", "a")
        .literal("B", "b")
        .literal("AB", "ab")
        .terminal("NEVER", TerminalKind::Pattern(Pattern::And(vec![regex("a"), regex("b")])))
        .rule("start", "A B | AB NEVER")
        .rule("orphan", "AB")
        .grammar();
    sentence_in(&grammar, "ab", &MODES);
    let with_use =
        Build::new().literal("A", "a").literal("B", "b").literal("AB", "ab").rule("start", "A B | AB A");
    sentence_in(&with_use.grammar(), "ab", &[Scannerless]);
}

#[test]
fn an_empty_language_has_no_sentence() {
    let grammar = Build::new().literal("A", "a").rule("start", "A start").grammar();
    let oracle = Oracle::new(&grammar, Contextual, Ties::All);
    assert!(oracle.is_empty_language() && !oracle.is_sentence(""));
    assert_eq!(oracle.is_viable("", b"a", 4), None);
}

#[test]
fn characters_may_be_split() {
    let grammar = Build::new().literal("E", "é").pattern("ANY", "[^a]").rule("start", "E ANY").grammar();
    let vocab = [Some(b"\xc3".to_vec()), Some(b"\xa9".to_vec()), Some(b"a".to_vec()), None];
    let alphabet = "é".symbols();
    for mode in MODES {
        let oracle = Oracle::new(&grammar, mode, Ties::All);
        let mask = |prefix: &[u8]| oracle.mask(&vocab, prefix, &alphabet, Limits::default());
        assert_eq!(mask(b"").tokens(), [0]);
        assert_eq!(mask(b"\xc3").tokens(), [1]);
        assert_eq!(mask(b"\xc3\xa9\xc3").tokens(), [1]);
        assert!(mask("éé".as_bytes()).eos);
        assert!(mask("éé".as_bytes()).tokens().is_empty());
    }
}

#[test]
fn special_tokens_are_pieces() {
    let grammar = Build::new()
        .literal("A", "a")
        .special("CALL", 9)
        .terminal("NAMED", TerminalKind::Special(SpecialToken::Name("<|end|>".into())))
        .pattern("WS", " ")
        .ignored()
        .rule("start", "CALL A NAMED")
        .grammar();
    for mode in MODES {
        let oracle = Oracle::new(&grammar, mode, Ties::All).with_special("<|end|>", 7);
        let text = [Sym::Token(9), Sym::Byte(b' '), Sym::Byte(b'a'), Sym::Token(7)];
        assert!(oracle.is_sentence(&text[..]));
        assert!(!oracle.is_sentence(&text[1..]));
        let alphabet = text.to_vec();
        let found = oracle.completion(&text[..1], &alphabet, Limits::default());
        assert_eq!(found, Completion::Found(vec![Sym::Byte(b'a'), Sym::Token(7)]));
    }
}

#[test]
fn contextual_competition_depends_on_all_labellings() {
    // After `a` read as X only `bc` can come, read as Y only `b`: both compete, and the longer wins.
    let build = || {
        Build::new()
            .literal("X", "a")
            .pattern("Y", "[a]")
            .literal("BC", "bc")
            .literal("B", "b")
            .literal("C", "c")
    };
    let both = build().rule("start", "X BC | Y B C").grammar();
    let oracle = Oracle::new(&both, Contextual, Ties::All);
    assert_eq!(oracle.pieces("abc").iter().map(|piece| piece.to).max(), Some(3));
    assert_eq!(oracle.pieces("abc").len(), 3, "{}", oracle.explain("abc"));
    assert!(oracle.is_sentence("abc"));
    let first = Oracle::new(&both, Contextual, Ties::First);
    assert!(first.is_sentence("abc"));
    let dead = build().literal("Z", "z").rule("start", "X BC Z | Y B C").grammar();
    let dead = Oracle::new(&dead, Contextual, Ties::All);
    assert!(!dead.is_sentence("abc"), "the labelling as Y dies with the longer piece");
}

/// Pruning loses no completion, and in `scannerless` it is the whole answer.
#[test]
fn pruning_is_safe() {
    let mut n_found = 0;
    for seed in 0..150 {
        let case = RandomCase::new(seed);
        let oracle = Oracle::new(&case.grammar, case.mode, case.ties);
        for prefix in case.prefixes.iter().take(3) {
            let limits = Limits { max_extra: 2, max_texts: 500, prune: true };
            let pruned = oracle.completion(prefix, &case.alphabet, limits);
            let plain = oracle.completion(prefix, &case.alphabet, Limits { prune: false, ..limits });
            n_found += usize::from(matches!(plain, Completion::Found(_)));
            match (&pruned, &plain) {
                (Completion::Found(a), Completion::Found(b)) => assert_eq!(a, b, "{case}"),
                (Completion::Found(_), Completion::LimitReached) | (_, Completion::LimitReached) => {}
                (Completion::NoneWithin { .. }, Completion::NoneWithin { .. }) => {}
                _ => panic!("{} pruned {pruned:?}, plain {plain:?} in {case}", show(prefix)),
            }
        }
    }
    assert!(n_found > 100, "too few viable prefixes to mean anything: {n_found}");
}

/// What is a prefix without regard to longest match either has a completion in `scannerless` or needs a
/// longer one; what is none, has none. `ANYGRAM_SEEDS` sets how many cases are drawn.
#[test]
fn scannerless_prefixes_have_completions() {
    let (mut n_found, mut n_longer, mut n_none) = (0, 0, 0);
    let seeds = anygram_testkit::random::seeds(150);
    for &seed in &seeds {
        let case = RandomCase::in_mode(seed, Scannerless);
        let oracle = case.oracle();
        let alphabet = oracle.whole_alphabet(&case.alphabet);
        for text in case.prefixes.iter().chain(&case.texts) {
            let limits = Limits { max_extra: 5, max_texts: 2_000, prune: true };
            let completion = oracle.completion(text, &alphabet, limits);
            let has_none = completion == Completion::NoneWithin { exhausted: true };
            assert_eq!(oracle.is_scannerless_prefix(text), !has_none, "{} in {case}", show(text));
            match completion {
                Completion::Found(_) => n_found += 1,
                _ if has_none => n_none += 1,
                _ => n_longer += 1,
            }
        }
    }
    println!("{n_found} found, {n_longer} longer, {n_none} have none");
    assert!(n_longer * 10 < n_found && n_none > 0 || seeds.len() < 50);
}

/// A completion may need a byte of which the texts of a case know nothing.
#[test]
fn completions_over_the_whole_alphabet() {
    let case = |other: &str| Build::new().pattern("OTHER", other).pattern("S", " +").rule("start", "OTHER S");
    let limits = Limits::default();
    for (other, prefix) in [("[^é]", &b"\xc3"[..]), ("[^é]", b"~"), ("a", b"a")] {
        let oracle = Oracle::new(&case(other).grammar(), Scannerless, Ties::All);
        let few = b"a\xc3\xa9".symbols();
        assert!(!oracle.completion(prefix, &few, limits).is_found());
        let whole = oracle.whole_alphabet(&few);
        assert!(whole.starts_with(&few) && oracle.completion(prefix, &whole, limits).is_found());
    }
}

#[test]
fn every_mode_is_part_of_scannerless() {
    for seed in 0..300 {
        let case = RandomCase::new(seed);
        let oracle = |mode| Oracle::new(&case.grammar, mode, case.ties);
        let (scannerless, longest, contextual) = (oracle(Scannerless), oracle(Longest), oracle(Contextual));
        for text in &case.texts {
            let any = longest.is_sentence(text) || contextual.is_sentence(text);
            assert!(!any || scannerless.is_sentence(text), "{} in {case}", show(text));
            assert!(!scannerless.is_sentence(text) || scannerless.is_scannerless_prefix(text), "{case}");
        }
        for prefix in &case.prefixes {
            let viable = scannerless.is_scannerless_prefix(prefix);
            for end in 0..prefix.len() {
                assert!(
                    !viable || scannerless.is_scannerless_prefix(&prefix[..end]),
                    "{} in {case}",
                    show(prefix)
                );
            }
        }
    }
}
