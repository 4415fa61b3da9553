//! Parse trees: of random grammars in all modes they are derivations of the text; and the rule by which one
//! of several is chosen.

use std::ops::Range;

use anygram_bits::ErrorKind;
use anygram_grammar::ir::{Grammar, LexerMode, NonterminalId, Symbol};
use anygram_grammar::lark;
use anygram_left_to_right::tree::{Tree, TreeNode};
use anygram_left_to_right::{Language, LanguageOptions, Limits};
use anygram_testkit::generate::RandomCase;

use super::budget::seeds;

/// The nodes right below a node.
fn below(tree: &Tree, at: usize) -> Vec<&TreeNode> {
    let depth = tree.nodes[at].depth;
    let inside = tree.nodes[at + 1..].iter().take_while(|node| node.depth > depth);
    inside.filter(|node| node.depth == depth + 1).collect()
}

/// What is wrong with a tree as a derivation.
pub fn check(grammar: &Grammar, text: &[u8], tree: &Tree) -> Result<(), String> {
    let root = tree.nodes.first().ok_or("no root")?;
    if root.symbol != Symbol::Nonterminal(grammar.start) || root.depth != 0 || root.span.end > text.len() {
        return Err(format!("the root is {root:?}"));
    }
    let mut nullable = vec![false; grammar.nonterminals.len()];
    let is_nullable = |nullable: &[bool], symbol: Symbol| match symbol {
        Symbol::Terminal(t) => grammar.is_nullable(t.index()),
        Symbol::Nonterminal(n) => nullable[n.index()],
    };
    for _ in 0..nullable.len() {
        for rule in &grammar.rules {
            nullable[rule.lhs.index()] |= rule.rhs.iter().all(|&symbol| is_nullable(&nullable, symbol));
        }
    }
    for (at, node) in tree.nodes.iter().enumerate() {
        let Symbol::Nonterminal(n) = node.symbol else { continue };
        let parts: Vec<&TreeNode> =
            below(tree, at).into_iter().filter(|part| !part.span.is_empty()).collect();
        let mut from = node.span.start;
        for part in &parts {
            if part.span.start < from || part.span.end > node.span.end {
                return Err(format!("{part:?} is not inside of {node:?}"));
            }
            from = part.span.end;
        }
        let symbols: Vec<Symbol> = parts.iter().map(|part| part.symbol).collect();
        let is_rule = |rhs: &[Symbol]| fits(rhs, &symbols, &|symbol| is_nullable(&nullable, symbol));
        let mut rules = grammar.rules.iter().filter(|rule| rule.lhs == n);
        if !node.span.is_empty() && !rules.any(|rule| is_rule(&rule.rhs)) {
            return Err(format!("no rule is {node:?} with {symbols:?}"));
        }
        if node.span.is_empty() && !nullable[n.index()] {
            return Err(format!("{node:?} cannot be empty"));
        }
    }
    Ok(())
}

/// Whether these symbols are a right-hand side without some that can be empty.
fn fits(rhs: &[Symbol], symbols: &[Symbol], is_nullable: &dyn Fn(Symbol) -> bool) -> bool {
    match (rhs, symbols) {
        ([], []) => true,
        ([], _) => false,
        ([first, rest @ ..], _) => {
            symbols.first() == Some(first) && fits(rest, &symbols[1..], is_nullable)
                || is_nullable(*first) && fits(rest, symbols, is_nullable)
        }
    }
}

#[test]
fn trees_are_derivations() {
    let (mut n_trees, mut n_undecided, mut failures) = (0, 0, Vec::new());
    for seed in seeds() {
        for mode in LexerMode::ALL {
            for case in [RandomCase::in_mode(seed, mode), RandomCase::with_blanks(seed, mode)] {
                let options = LanguageOptions { lexer: Some(mode), ties: case.ties, ..Default::default() };
                let Ok(language) = Language::new(case.grammar.clone(), &options) else { continue };
                for text in case.byte_texts() {
                    let reading = match language.read(&text) {
                        Ok(reading) => reading,
                        Err(error) if error.kind() == ErrorKind::Undecided => {
                            n_undecided += 1;
                            continue;
                        }
                        Err(error) => panic!("seed {seed}, {mode:?}: {error}"),
                    };
                    match Tree::read(&language, &text).unwrap() {
                        None if reading.is_sentence => {
                            failures.push(format!("seed {seed}, {mode:?}: no tree"))
                        }
                        None => {}
                        Some(_) if !reading.is_sentence => failures.push(format!("seed {seed}: a tree")),
                        Some(tree) => {
                            n_trees += 1;
                            if let Err(message) = check(language.grammar(), &text, &tree) {
                                let text = String::from_utf8_lossy(&text);
                                failures.push(format!("seed {seed}, {mode:?}, {text:?}: {message}\n{case}"));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} wrong\n{}",
        failures.len(),
        failures[..failures.len().min(3)].join("\n")
    );
    let is_enough = n_trees > 500 && n_undecided < n_trees / 100;
    assert!(seeds().len() < 20 || is_enough, "{n_trees}, {n_undecided}");
}

fn language(source: &str) -> Language {
    Language::new(lark::parse(source, &Default::default()).unwrap(), &LanguageOptions::default()).unwrap()
}

/// The rules of a tree that have a name, with what they span.
fn rules(language: &Language, text: &str) -> Vec<(usize, String, Range<usize>)> {
    let tree = Tree::read(language, text.as_bytes()).unwrap().unwrap();
    let rules = tree.nodes.into_iter().filter_map(|node| match node.symbol {
        Symbol::Nonterminal(_) => {
            Some((node.depth, language.grammar().symbol_name(node.symbol).to_owned(), node.span))
        }
        Symbol::Terminal(_) => None,
    });
    rules.collect()
}

fn of(rules: &[(usize, &str, Range<usize>)]) -> Vec<(usize, String, Range<usize>)> {
    rules.iter().map(|(depth, name, span)| (*depth, (*name).to_owned(), span.clone())).collect()
}

#[test]
fn blanks_and_groups_are_left_out() {
    let lists =
        language("start: item\nitem: NAME | \"(\" (item (\",\" item)*)? \")\"\nNAME: /[a-z]+/\n%ignore / +/");
    let found = rules(&lists, "  ( a , b ) ");
    let item = |depth, span| (depth, "item", span);
    assert_eq!(found, of(&[(0, "start", 2..11), item(1, 2..11), item(2, 4..5), item(2, 8..9)]));
    assert!(Tree::read(&lists, b"(a").unwrap().is_none());
}

#[test]
fn of_several_trees_the_rule_chooses_one() {
    // The first rule; from the right, the shortest part.
    let sums = language("start: e\ne: e \"+\" e | N\nN: /[0-9]/");
    assert_eq!(
        rules(&sums, "1+2+3")[1..],
        of(&[(1, "e", 0..5), (2, "e", 0..3), (3, "e", 0..1), (3, "e", 2..3), (2, "e", 4..5)])
    );
    let first = language("start: b | a\na: \"x\"\nb: \"x\"");
    assert_eq!(rules(&first, "x")[1].1, "b");
    // A nonterminal that derives itself is left for one that does not, as late as can be.
    let cyclic = language("start: a\na: b | \"x\"\nb: a c | \"y\"\nc: \"z\"?");
    assert_eq!(rules(&cyclic, "x")[1..], of(&[(1, "a", 0..1)]));
    assert_eq!(rules(&cyclic, "xz")[1].1, "a");
}

#[test]
fn deep_trees_and_limits() {
    let nested = language("start: \"(\" start \")\" | \"x\"");
    let text = format!("{}x{}", "(".repeat(20_000), ")".repeat(20_000));
    let tree = Tree::read(&nested, text.as_bytes()).unwrap().unwrap();
    assert_eq!(tree.nodes.last().unwrap().span, 40_000..40_001);
    assert_eq!(tree.nodes.iter().map(|node| node.depth).max(), Some(20_001));
    let limits = Limits { shared_items: 100, ..Limits::default() };
    let grammar = lark::parse("start: \"(\" start \")\" | \"x\"", &Default::default()).unwrap();
    let small = Language::new(grammar, &LanguageOptions { limits, ..LanguageOptions::default() }).unwrap();
    let error = Tree::read(&small, &text.as_bytes()[19_900..20_101]).unwrap_err();
    assert_eq!((error.kind(), error.limit()), (ErrorKind::Limit, Some(("shared_items", 100))));
    let start = NonterminalId::new(0);
    assert_eq!(tree.nodes[0].symbol, Symbol::Nonterminal(start));
}
