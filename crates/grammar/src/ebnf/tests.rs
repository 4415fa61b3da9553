//! What is read and what is refused, in both dialects.

use super::*;
use crate::diagnostic::ErrorKind;
use crate::gbnf;
use crate::ir::{LexerMode, SpecialToken, Symbol, TerminalKind};

fn gbnf(source: &str) -> Result<Grammar, GrammarError> {
    checked(source, gbnf::parse(source, &EbnfOptions::default()))
}

fn ebnf(source: &str) -> Result<Grammar, GrammarError> {
    checked(source, parse(source, &EbnfOptions::default()))
}

fn checked(source: &str, result: Result<Grammar, GrammarError>) -> Result<Grammar, GrammarError> {
    match &result {
        Ok(grammar) => grammar.validate().unwrap(),
        Err(error) => {
            assert!(error.span().end <= source.len(), "{source:?}: {:?}", error.span());
            assert!(!error.render("g", source).is_empty());
        }
    }
    result
}

/// The rules of a grammar, `name: symbols`, and its terminals by their names.
fn rules(grammar: &Grammar) -> Vec<String> {
    let rule = |rule: &crate::ir::Rule| {
        let names: Vec<&str> = rule.rhs.iter().map(|&symbol| grammar.symbol_name(symbol)).collect();
        format!("{}: {}", grammar.symbol_name(Symbol::Nonterminal(rule.lhs)), names.join(" "))
    };
    grammar.rules.iter().map(rule).collect()
}

#[track_caller]
fn refused(result: Result<Grammar, GrammarError>, kind: ErrorKind, span: crate::ir::Span, message: &str) {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.span()), (kind, span), "{error}");
    assert!(error.message().contains(message), "{error}");
}

#[test]
fn regular_pieces_are_terminals() {
    let grammar = gbnf("root ::= [a-z] [a-z0-9_]* ws (\"=\" | \":\") ws \"x\"{3}\nws ::= [ ]*\n").unwrap();
    assert_eq!(rules(&grammar), ["root: [a-z] [a-z0-9_]* ws (\"=\" | \":\") ws \"x\"{3}", "ws: [ ]*"]);
    assert_eq!(grammar.terminals.len(), 4);
    assert_eq!(grammar.default_lexer, LexerMode::Scannerless);
    let plain = EbnfOptions { join: false, ..EbnfOptions::default() };
    let grammar = gbnf::parse("root ::= \"a\" [b]? (\"a\" | \"c\")", &plain).unwrap();
    let names: Vec<&str> = grammar.terminals.iter().map(|terminal| &terminal.name[..]).collect();
    assert_eq!(names, ["\"a\"", "[b]", "\"c\""]);
}

#[test]
fn equal_pieces_are_one_terminal_and_literals_are_literals() {
    let grammar = gbnf("root ::= a \"x\" a \"\\x78\" a [x] | a\na ::= [yz]").unwrap();
    assert_eq!(grammar.terminals.len(), 2);
    assert!(matches!(grammar.terminals[0].kind, TerminalKind::Literal(_)));
    assert!(matches!(grammar.terminals[1].kind, TerminalKind::Pattern(_)));
}

#[test]
fn lines_in_gbnf() {
    for good in [
        "root ::= \"a\" |\n  \"b\"",
        "root ::=\n\n \"a\"",
        "root ::= ( # c\n \"a\"\n | \"b\" )\n\n# d\n",
        "root ::= (\"a\"\n {\n 2 , 3 } \n)",
        "\r\nroot ::= \"a\"\r\nb ::= \"c\"\r\n",
        "root ::= | \"a\"\nb ::=",
        "root ::= (|\"a\")",
    ] {
        assert!(gbnf(good).is_ok(), "{good:?}: {}", gbnf(good).unwrap_err());
    }
    refused(gbnf("root ::= \"a\"\n  | \"b\""), ErrorKind::Syntax, 15..16, "expected a rule");
    refused(gbnf("root ::= \"a\"\n  \"b\""), ErrorKind::Syntax, 15..18, "expected a rule");
    refused(gbnf("root\n::= \"a\""), ErrorKind::Syntax, 5..8, "`::=`");
    refused(gbnf("root ::= b b ::= \"a\""), ErrorKind::Syntax, 13..16, "found `::=`");
    refused(gbnf("root ::= \"a\"\n*"), ErrorKind::Syntax, 13..14, "expected a rule");
}

#[test]
fn lines_in_ebnf() {
    let grammar = ebnf("[1] doc ::= 'a'\n  | b\n[2a]\tb\n::= [c-d] [3]\n[4] e ::= #x41 /* no */").unwrap();
    assert_eq!(rules(&grammar), ["doc: 'a'", "doc: b", "b: [c-d] [3]", "e: #x41"]);
    assert_eq!(grammar.start.index(), 0);
    let grammar = ebnf("a ::= \"x\"\nroot ::= a").unwrap();
    assert_eq!(grammar.start.index(), 1);
    refused(ebnf("a ::= b b ::= \"a\""), ErrorKind::Syntax, 8..9, "end of the line");
}

#[test]
fn names() {
    assert!(gbnf("root ::= 1st-x_y\n1st-x_y ::= \"a\"").is_ok());
    assert!(ebnf("root ::= a.b-c_1 -d\na.b-c_1 ::= \"a\"\n-d ::= \"b\"").is_ok());
    refused(
        gbnf("root ::= expresion\nexpression ::= \"a\""),
        ErrorKind::Syntax,
        9..18,
        "no rule `expresion`",
    );
    refused(gbnf("rot ::= \"a\""), ErrorKind::Syntax, 0..0, "no rule `root`");
    refused(gbnf(""), ErrorKind::Syntax, 0..0, "no rule `root`");
    refused(ebnf("\n# x"), ErrorKind::Syntax, 0..0, "no rule `root`");
    refused(ebnf("a ::= ."), ErrorKind::Syntax, 6..7, "`.`");
    let options = EbnfOptions { start: Some("b".to_owned()), ..EbnfOptions::default() };
    assert_eq!(gbnf::parse("a ::= b\nb ::= \"x\"", &options).unwrap().start.index(), 1);
}

#[test]
fn the_last_definition_counts_in_gbnf_and_two_are_refused_in_ebnf() {
    let source = "root ::= \"a\"\nroot ::= \"b\"";
    assert_eq!(rules(&gbnf(source).unwrap()), ["root: \"b\""]);
    refused(ebnf(source), ErrorKind::Syntax, 13..17, "defined twice");
}

#[test]
fn tokens_of_the_vocabulary() {
    let grammar = gbnf("root ::= <[7]> \"a\" <think> <[7]>").unwrap();
    assert_eq!(rules(&grammar), ["root: <[7]> \"a\" <think> <[7]>"]);
    let name = SpecialToken::Name("<think>".to_owned());
    assert_eq!(grammar.terminals[2].kind, TerminalKind::Special(name));
    refused(gbnf("root ::= !<[7]>*"), ErrorKind::Unsupported, 9..15, "any token but one");
    refused(gbnf("root ::= !<think>"), ErrorKind::Unsupported, 9..17, "any token but one");
}

#[test]
fn repetitions() {
    for (source, n_rules) in [("\"a\"{2}", 1), ("(root2 \"a\"){2,}", 4), ("[a]+*?", 1)] {
        let grammar = gbnf(&format!("root ::= {source}\nroot2 ::= \"b\"")).unwrap();
        assert_eq!(grammar.rules.len(), n_rules + 1, "{source}");
    }
    // Too many for an automaton.
    assert!(gbnf("root ::= [a-z]{0,100000}").unwrap().rules.len() > 10);
    refused(gbnf("root ::= \"a\"{3,2}"), ErrorKind::Syntax, 12..17, "no number of times");
    refused(gbnf("root ::= \"a\"{,2}"), ErrorKind::Syntax, 13..14, "a number");
    refused(gbnf("root ::= \"a\"{2"), ErrorKind::Syntax, 14..14, "`}`");
    refused(gbnf("root ::= \"a\"{99999999999}"), ErrorKind::Limit, 13..24, "too much");
    refused(gbnf("root ::= \"a\"{0,99999999}"), ErrorKind::Limit, 9..24, "limit");
    refused(gbnf("root ::= *"), ErrorKind::Syntax, 9..10, "nothing before");
    refused(gbnf("root ::= (\"a\" | +)"), ErrorKind::Syntax, 16..17, "nothing before");
    assert!(ebnf("root ::= \"a\"{2, -1}").is_ok());
}

#[test]
fn differences() {
    let source = "Comment ::= '<!--' ((Char - '-') | ('-' (Char - '-')))* '-->'\nChar ::= [^#x0-#x8] | #x9";
    let grammar = ebnf(source).unwrap();
    assert_eq!(grammar.terminals.len(), 3);
    let grammar = ebnf("a ::= 'x' b* - 'c' - 'd' e\nb ::= [a-z] b2?\nb2 ::= 'q'\ne ::= a?").unwrap();
    assert_eq!(rules(&grammar)[0], "a: 'x' b* - 'c' - 'd' e");
    refused(ebnf("a ::= b - 'c'\nb ::= 'x' b?"), ErrorKind::Unsupported, 24..25, "`b` is defined by itself");
    refused(ebnf("a ::= <[1]> - 'c'"), ErrorKind::Unsupported, 6..11, "token of the vocabulary");
    refused(ebnf("a ::= - 'c'"), ErrorKind::Syntax, 6..7, "nothing before");
    refused(ebnf("a ::= 'c' -"), ErrorKind::Syntax, 10..11, "nothing follows");
    refused(ebnf("a ::= ('c' - )"), ErrorKind::Syntax, 11..12, "nothing follows");
    refused(ebnf("a ::= 'c' - | 'd'"), ErrorKind::Syntax, 10..11, "nothing follows");
    refused(ebnf("a ::= 'c'{99999999} - 'd'"), ErrorKind::Limit, 6..19, "limit");
}

#[test]
fn what_xgrammar_has_beyond_rules() {
    refused(ebnf("root ::= \"a\" (= \"b\")"), ErrorKind::Unsupported, 13..15, "lookahead");
    let dispatch = "root ::= TagDispatch((\"a\", b), stop_eos=true)";
    refused(ebnf(dispatch), ErrorKind::Unsupported, 9..20, "macro `TagDispatch(…)`");
    refused(ebnf("root ::= Token (1)"), ErrorKind::Unsupported, 9..14, "macro `Token(…)`");
    refused(ebnf("root ::= ExcludeToken(1)"), ErrorKind::Unsupported, 9..21, "macro `ExcludeToken(…)`");
    refused(ebnf("root ::= Substring(\"a\")"), ErrorKind::Unsupported, 9..18, "macro `Substring(…)`");
    refused(gbnf("root ::= Token(1)"), ErrorKind::Unsupported, 9..14, "macro `Token(…)`");
    assert!(gbnf("root ::= Token(\"a\")\nToken ::= \"b\"").is_ok());
    assert!(ebnf("root ::= Tok(\"a\")\nTok ::= \"b\"").is_ok());
    refused(ebnf("root = \"a\""), ErrorKind::Syntax, 5..6, "expected `::=`");
    refused(ebnf("root[max_tokens=3] ::= \"a\""), ErrorKind::Unsupported, 4..18, "(`max_tokens`)");
    refused(ebnf("root ::= \"b\"\nx[capture] ::= \"a\""), ErrorKind::Unsupported, 14..23, "(`capture`)");
    refused(ebnf("root ::= [\\d]"), ErrorKind::Unsupported, 10..12, "`\\d`");
    assert!(ebnf("root ::= Token\nToken ::= \"a\"").is_ok());
}

#[test]
fn mistakes() {
    refused(gbnf("root ::= (\"a\""), ErrorKind::Syntax, 13..13, "`)`");
    refused(gbnf("root ::= (\"a\"\nb ::= c"), ErrorKind::Syntax, 14..15, "`)`");
    refused(gbnf("root ::= \"a\")"), ErrorKind::Syntax, 12..13, "found `)`");
    refused(gbnf("root ::= \"a"), ErrorKind::Syntax, 9..11, "not closed");
    refused(gbnf("root ::= [a"), ErrorKind::Syntax, 9..11, "not closed");
    refused(gbnf("root ::= 'a'"), ErrorKind::Syntax, 9..10, "unexpected character");
    refused(gbnf("root = \"a\""), ErrorKind::Syntax, 5..6, "unexpected character");
    refused(gbnf("root ::= \"\\q\""), ErrorKind::Syntax, 10..12, "`\\q`");
    refused(ebnf("root ::= #x110000"), ErrorKind::Syntax, 9..17, "beyond the last");
    refused(ebnf("root ::= /* x"), ErrorKind::Syntax, 9..11, "comment is not closed");
    refused(ebnf("root ::= \"a\nb\""), ErrorKind::Syntax, 9..11, "on its line");
    refused(ebnf("::= a"), ErrorKind::Syntax, 0..3, "expected a rule");
}

#[test]
fn deep_and_long_input() {
    let n = 20_000;
    let nested = |open: &str, inner: &str, close: &str| {
        format!("root ::= {}{inner}{}\nb ::= root \"b\"", open.repeat(n), close.repeat(n))
    };
    for (open, inner, close) in [
        ("(", "\"a\"", ")"),
        ("(", "\"a\"", ")*"),
        ("(", "\"a\"", "\"b\")"),
        ("(\"b\"", "\"a\"", ")"),
        ("(", "\"a\"", "|\"b\")"),
        ("(\"b\"|", "\"a\"", ")"),
        ("(b|", "\"a\"", ")"),
        ("(", "\"a\"", "|b)"),
        ("(", "\"a\"", "|b)?"),
        ("(", "\"a\"", " b)+"),
        ("(\"x\"|\"y\" ", "b", ")"),
    ] {
        let source = nested(open, inner, close);
        assert!(gbnf(&source).is_ok(), "{open}: {}", gbnf(&source).unwrap_err());
    }
    refused(gbnf(&"(".repeat(n)), ErrorKind::Syntax, 0..1, "expected a rule");
    let unclosed = format!("root ::= {}", "(".repeat(n));
    refused(gbnf(&unclosed), ErrorKind::Syntax, n + 9..n + 9, "`)`");
    let chain: String = (0..n).map(|at| format!("r{at} ::= r{} 'x'\n", at + 1)).collect();
    assert!(ebnf(&format!("{chain}r{n} ::= 'y'")).is_ok());
    // Rules in a difference are copied into one another.
    let chain: String = (0..100).map(|at| format!("r{at} ::= r{} r{}\n", at + 1, at + 1)).collect();
    let error = ebnf(&format!("root ::= r0 - 'x'\n{chain}r100 ::= 'y'")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
    let many = (0..100_000).map(|at| format!("\"w{at}\"")).collect::<Vec<_>>().join(" | ");
    assert_eq!(gbnf(&format!("root ::= {many} | b\nb ::= \"x\"")).unwrap().rules.len(), 3);
    assert!(gbnf(&format!("root ::= ({many})")).is_ok());
}

#[test]
fn odd_grammars_are_read() {
    for source in [
        "root ::= root",
        "root ::= root | \"\"",
        "root ::= \"\"",
        "root ::= (\"\")* root?",
        "root ::= \"a\"{0}",
    ] {
        assert!(gbnf(source).is_ok(), "{source}");
    }
}

#[test]
fn the_order_is_canonical() {
    let grammar = gbnf("root ::= (b \"x\")* \"y\"\nb ::= \"z\" root").unwrap();
    let lhs: Vec<usize> = grammar.rules.iter().map(|rule| rule.lhs.index()).collect();
    assert!(lhs.is_sorted());
    let mut seen = 0;
    for symbol in grammar.rules.iter().flat_map(|rule| &rule.rhs) {
        if let Symbol::Terminal(terminal) = symbol {
            assert!(terminal.index() <= seen);
            seen = seen.max(terminal.index() + 1);
        }
    }
    assert_eq!(seen, grammar.terminals.len());
}
