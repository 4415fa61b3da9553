//! The built-in library `common`: the names of Lark's, our own definitions.
//!
//! A terminal is a language here and the longest match wins, while Lark's definitions lean on where a lazy quantifier or a
//! look-behind stops. What they mean to match is spelled out instead:
//!
//! | name | Lark's definition | here |
//! |---|---|---|
//! | `ESCAPED_STRING` | stops at the first quote that no odd number of backslashes precedes | has no other quote inside |
//! | `C_COMMENT` | stops at the first `*/` | has no other `*/` inside |
//! | `_STRING_INNER` | `.*?`: as little as what follows lets it | any text on one line |
//! | `_STRING_ESC_INNER` | the same, not ending in an open escape | any text on one line, not ending in an open escape |
//!
//! The last two cannot know which quote ends them: build strings from `ESCAPED_STRING` or a class instead.

/// The name and the definition, in Python's notation, of every terminal.
pub(crate) const TERMINALS: &[(&str, &str)] = &[
    ("CNAME", "[A-Za-z_][A-Za-z0-9_]*"),
    ("CPP_COMMENT", "//[^\\n]*"),
    ("CR", "\\r"),
    ("C_COMMENT", "/\\*([^*]|\\*+[^*/])*\\*+/"),
    ("DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"),
    ("DIGIT", "[0-9]"),
    ("ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\.)*\""),
    ("FLOAT", "[0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("HEXDIGIT", "[0-9A-Fa-f]"),
    ("INT", "[0-9]+"),
    ("LCASE_LETTER", "[a-z]"),
    ("LETTER", "[A-Za-z]"),
    ("LF", "\\n"),
    ("NEWLINE", "(\\r?\\n)+"),
    ("NUMBER", "([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("SH_COMMENT", "#[^\\n]*"),
    ("SIGNED_FLOAT", "[+-]?([0-9]+[eE][+-]?[0-9]+|([0-9]+\\.[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)"),
    ("SIGNED_INT", "[+-]?[0-9]+"),
    ("SIGNED_NUMBER", "[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?"),
    ("SQL_COMMENT", "--[^\\n]*"),
    ("UCASE_LETTER", "[A-Z]"),
    ("WORD", "[A-Za-z]+"),
    ("WS", "[ \\t\\f\\r\\n]+"),
    ("WS_INLINE", "[ \\t]+"),
    ("_EXP", "[eE][+-]?[0-9]+"),
    ("_STRING_ESC_INNER", "([^\\\\\\n]|\\\\.)*"),
    ("_STRING_INNER", "[^\\n]*"),
];

/// The definition of a terminal of the library.
pub(crate) fn find(name: &str) -> Option<&'static str> {
    TERMINALS.iter().find(|(known, _)| *known == name).map(|&(_, pattern)| pattern)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lark::regex::{Flags, parse};

    #[test]
    fn every_definition_is_a_pattern_that_matches_text() {
        for (name, pattern) in TERMINALS {
            let hir = parse(pattern, Flags::default()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert!(hir.properties().is_utf8(), "{name}");
            let empty = hir.properties().minimum_len() == Some(0);
            assert_eq!(empty, name.ends_with("_INNER"), "{name}");
        }
        assert!(TERMINALS.is_sorted());
        assert!(find("NUMBER").is_some() && find("number").is_none());
    }
}
