//! A grammar for `contextual` in which it depends on the parser what wins: the same text is cut one way here
//! and another way there.

/// `<<` competes after `c` and `e`, not after `a`; the keyword `if` after `k`, not after `m`. Where they
/// compete they win, although the parser could go on with what they win over.
pub const GRAMMAR: &str = r#"
    start: statement+
    statement: "a" "<" "<" "b" ";"
        | "c" "<" "<" "d" ";"
        | "c" "<<" "b" ";"
        | "e" "<" TAG ";"
        | "e" "<<" "b" ";"
        | "k" WORD "(" ";"
        | "k" "if" ";"
        | "m" WORD "(" ";"
    TAG: /<[x-z]+/
    WORD: /[f-j]+/
    %ignore " "
"#;

/// Tokens that hold several pieces: `<<d` after `c`, `<<x` after `e` and `if(` after `k` are refused.
pub const TOKENS: [&str; 30] = [
    "a", "b", "c", "d", "e", "k", "m", "x", "<", "<<", "<<b", "<<d", "<<d;", "<<x", "<<xy;", "<x", " <",
    "< <d", "< <x", "if", "if(", "if;", "g(", "gif", "(", ";", " ", "c<<d", "a<<b;", "e<<x",
];

/// A sentence with every statement.
pub const TEXT: &str = "a<<b;c< <d;c<<b;e< <x;e<<b;k if;k g(;m if(;";
