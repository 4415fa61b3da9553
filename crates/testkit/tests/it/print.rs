//! What is printed reads as the same grammar: random grammars, made in the representation itself, with
//! everything in them that it allows.

use anygram_grammar::ir::{
    Grammar, LexerMode, Nonterminal, NonterminalId, Pattern, Rule, SpecialToken, Symbol, Terminal,
    TerminalId, TerminalKind, literal,
};
use anygram_grammar::lark::{LarkOptions, parse};
use anygram_testkit::cases;
use anygram_testkit::generate::RandomCase;
use anygram_testkit::random::Random;
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, Repetition,
};

#[track_caller]
fn expect_same(name: &str, grammar: &Grammar) {
    let printed = grammar.to_string();
    if let Err(message) = grammar.validate() {
        panic!("{name}: {message}\n{printed}");
    }
    let again = parse(&printed, &LarkOptions::default());
    let again = again.unwrap_or_else(|error| panic!("{name}\n{}", error.render("printed", &printed)));
    assert_eq!(grammar.difference(&again), None, "{name}\n{printed}");
}

#[test]
fn grammars_of_the_cases() {
    for case in cases::load_all().into_iter().filter(|case| !case.refused) {
        let grammar = case.read_grammar();
        expect_same(&case.name, &grammar.unwrap_or_else(|error| panic!("{}: {error}", case.name)));
    }
}

#[test]
fn random_cases() {
    for seed in 0..2_000 {
        expect_same(&format!("RandomCase::new({seed})"), &RandomCase::new(seed).grammar);
    }
}

#[test]
fn random_grammars() {
    for seed in 0..6_000 {
        expect_same(&format!("seed {seed}"), &grammar(&mut Random::new(seed)));
    }
}

/// Characters that mean something somewhere, that cannot be seen, and others.
const CHARS: &[char] = &[
    'a',
    'b',
    'k',
    'K',
    's',
    '0',
    '9',
    '_',
    '-',
    '^',
    '[',
    ']',
    '\\',
    '/',
    '(',
    ')',
    '{',
    '}',
    '|',
    '*',
    '+',
    '?',
    '.',
    '$',
    '&',
    '~',
    '#',
    ' ',
    '"',
    '\'',
    '`',
    '%',
    '<',
    '>',
    '\n',
    '\r',
    '\t',
    '\0',
    '\u{7f}',
    '\u{85}',
    '\u{a0}',
    'é',
    'ß',
    'ſ',
    'İ',
    '\u{212a}',
    '\u{301}',
    '\u{2028}',
    '\u{feff}',
    '\u{202e}',
    '\u{d7ff}',
    '\u{e000}',
    '\u{10ffff}',
];

fn text(random: &mut Random, longest: usize) -> String {
    (0..random.between(0, longest)).map(|_| *random.choose(CHARS)).collect()
}

fn grammar(random: &mut Random) -> Grammar {
    let n_terminals = random.between(0, 6);
    let terminals: Vec<Terminal> = (0..n_terminals).map(|at| terminal(random, at)).collect();
    let plain = ["start", "a", "__a_star_0", "_b1", "n"];
    let nonterminals: Vec<Nonterminal> = (0..random.between(1, 5))
        .map(|at| {
            let odd = || format!("{}{at}", text(&mut Random::new(at as u64), 4));
            let name = if random.chance(70) {
                plain[at].to_owned()
            } else {
                odd() + &text(random, 3) + &at.to_string()
            };
            Nonterminal { name, span: None }
        })
        .collect();
    let mut rules = Vec::new();
    for _ in 0..random.between(0, 8) {
        let symbol = |random: &mut Random| match n_terminals > 0 && random.chance(60) {
            true => Symbol::Terminal(TerminalId::new(random.below(n_terminals))),
            false => Symbol::Nonterminal(NonterminalId::new(random.below(nonterminals.len()))),
        };
        let rhs = (0..random.between(0, 4)).map(|_| symbol(random)).collect();
        rules.push(Rule { lhs: NonterminalId::new(random.below(nonterminals.len())), rhs });
        if random.chance(20) {
            rules.push(rules[random.below(rules.len())].clone());
        }
    }
    let start = NonterminalId::new(random.below(nonterminals.len()));
    Grammar::new(terminals, nonterminals, rules, start, *random.choose(&LexerMode::ALL))
}

fn terminal(random: &mut Random, at: usize) -> Terminal {
    let kind = match random.below(10) {
        0..4 => TerminalKind::Literal(Pattern::Regex(literal(&text(random, 4), random.chance(40)))),
        4 => TerminalKind::Special(match random.below(3) {
            0 => SpecialToken::Id(random.below(3) as u32),
            _ => SpecialToken::Name(format!("<|{}|>", random.choose(&["", "a", "|", "a b", "é>", "\"`"]))),
        }),
        _ => TerminalKind::Pattern(pattern(random, 3)),
    };
    let kind = match kind {
        TerminalKind::Special(SpecialToken::Name(name)) if name == "<|||>" => {
            TerminalKind::Special(SpecialToken::Id(7))
        }
        kind => kind,
    };
    let name = match random.below(4) {
        0 => format!("{}{at}", text(random, 4)),
        1 => format!("ANONYMOUS_{at}"),
        _ => format!("T{at}"),
    };
    let name = format!("{name}{}", if random.chance(50) { "" } else { "_" }) + &at.to_string();
    Terminal {
        declared: random.chance(50),
        priority: *random.choose(&[0, 0, 0, 1, -7, i32::MIN, i32::MAX]),
        ignored: random.chance(20),
        reserved: random.chance(15),
        ..Terminal::new(name, kind)
    }
}

fn pattern(random: &mut Random, depth: usize) -> Pattern {
    let parts = |random: &mut Random, low| {
        (low..=random.between(low, 3)).map(|_| pattern(random, depth - 1)).collect()
    };
    if depth == 0 || random.chance(40) {
        return Pattern::Regex(hir(random, 4));
    }
    match random.below(5) {
        0 => Pattern::concat(parts(random, 1)),
        1 => Pattern::alternate(parts(random, 0)),
        2 => Pattern::and(parts(random, 0)),
        3 => Pattern::Not(Box::new(pattern(random, depth - 1))),
        _ => {
            let (min, max) = counts(random);
            Pattern::repeat(pattern(random, depth - 1), min, max)
        }
    }
}

fn counts(random: &mut Random) -> (u32, Option<u32>) {
    let min = *random.choose(&[0, 0, 0, 1, 1, 2, 17]);
    (min, if random.chance(50) { None } else { Some(min + *random.choose(&[0, 1, 2])) })
}

fn hir(random: &mut Random, depth: usize) -> Hir {
    let parts = |random: &mut Random| (0..random.between(0, 3)).map(|_| hir(random, depth - 1)).collect();
    if depth == 0 || random.chance(30) {
        return leaf(random);
    }
    match random.below(3) {
        0 => Hir::concat(parts(random)),
        1 => Hir::alternation(parts(random)),
        _ => {
            let (min, max) = counts(random);
            let (greedy, sub) = (random.chance(80), Box::new(hir(random, depth - 1)));
            Hir::repetition(Repetition { min, max, greedy, sub })
        }
    }
}

fn leaf(random: &mut Random) -> Hir {
    let range = |random: &mut Random| {
        let (a, b) = (*random.choose(CHARS), *random.choose(CHARS));
        ClassUnicodeRange::new(a.min(b), a.max(b))
    };
    match random.below(8) {
        0 => Hir::empty(),
        1 => Hir::literal((0..random.between(1, 3)).map(|_| random.bits() as u8).collect::<Vec<_>>()),
        2 => {
            let byte = |random: &mut Random| random.bits() as u8;
            let range = |random: &mut Random| ClassBytesRange::new(byte(random), byte(random));
            Hir::class(Class::Bytes(ClassBytes::new(
                (0..random.between(0, 3)).map(|_| range(random)).collect::<Vec<_>>(),
            )))
        }
        3 | 4 => {
            let mut class =
                ClassUnicode::new((0..random.between(0, 4)).map(|_| range(random)).collect::<Vec<_>>());
            if random.chance(30) {
                class.negate();
                // What it makes of the surrogates is not always in the form that it makes of all else.
                class = ClassUnicode::new(class.ranges().to_vec());
            }
            Hir::class(Class::Unicode(class))
        }
        5 => literal(&text(random, 3), true),
        6 => {
            let source = *random
                .choose(&[r"\w", r"\d", r"\s", ".", r"\W", r"\D", r"\S", r"\p{Lu}", r"(?s:.)", r"(?i)k"]);
            regex_syntax::parse(source).unwrap()
        }
        _ => Hir::literal(text(random, 3).into_bytes()),
    }
}
