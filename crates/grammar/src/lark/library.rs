//! The built-in libraries: `common`, with the names of Lark's and our own definitions, and `unicode`.
//!
//! A terminal is a language here and the longest match wins, while Lark's definitions lean on where a lazy
//! quantifier or a look-behind stops. What they mean to match is spelled out instead:
//!
//! | name | Lark's definition | here |
//! |---|---|---|
//! | `ESCAPED_STRING` | stops at the first quote that no odd number of backslashes precedes | has no other quote inside |
//! | `C_COMMENT` | stops at the first `*/` | has no other `*/` inside |
//! | `_STRING_INNER` | `.*?`: as little as what follows lets it | any text on one line |
//! | `_STRING_ESC_INNER` | the same, not ending in an open escape | any text on one line, not ending in an open escape |
//!
//! The last two cannot know which quote ends them: build strings from `ESCAPED_STRING` or a class instead.
//!
//! `unicode` has the blanks of Lark's, and beyond those a terminal for one character of each general
//! category: `LU`, `ND`, and so on. Lark's other libraries, `python` and `lark`, are whole grammars: copy the
//! file and import from that.

/// The terminals of a library: the name and the definition, in Python's notation.
pub(crate) type Library = &'static [(&'static str, &'static str)];

const COMMON: &[(&str, &str)] = &[
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

const UNICODE: &[(&str, &str)] = &[
    ("C", "\\p{C}"),
    ("CC", "\\p{Cc}"),
    ("CF", "\\p{Cf}"),
    ("CN", "\\p{Cn}"),
    ("CO", "\\p{Co}"),
    ("L", "\\p{L}"),
    ("LL", "\\p{Ll}"),
    ("LM", "\\p{Lm}"),
    ("LO", "\\p{Lo}"),
    ("LT", "\\p{Lt}"),
    ("LU", "\\p{Lu}"),
    ("M", "\\p{M}"),
    ("MC", "\\p{Mc}"),
    ("ME", "\\p{Me}"),
    ("MN", "\\p{Mn}"),
    ("N", "\\p{N}"),
    ("ND", "\\p{Nd}"),
    ("NL", "\\p{Nl}"),
    ("NO", "\\p{No}"),
    ("P", "\\p{P}"),
    ("PC", "\\p{Pc}"),
    ("PD", "\\p{Pd}"),
    ("PE", "\\p{Pe}"),
    ("PF", "\\p{Pf}"),
    ("PI", "\\p{Pi}"),
    ("PO", "\\p{Po}"),
    ("PS", "\\p{Ps}"),
    ("S", "\\p{S}"),
    ("SC", "\\p{Sc}"),
    ("SK", "\\p{Sk}"),
    ("SM", "\\p{Sm}"),
    ("SO", "\\p{So}"),
    ("WS", "[ \\t\\xa0\\f\\r\\n]+"),
    ("WS_INLINE", "[ \\t\\xa0]+"),
    ("Z", "\\p{Z}"),
    ("ZL", "\\p{Zl}"),
    ("ZP", "\\p{Zp}"),
    ("ZS", "\\p{Zs}"),
];

/// The library with this name.
pub(crate) fn named(name: &str) -> Option<Library> {
    match name {
        "common" => Some(COMMON),
        "unicode" => Some(UNICODE),
        _ => None,
    }
}

/// The definition of a terminal of a library.
pub(crate) fn find(library: Library, name: &str) -> Option<&'static str> {
    library.iter().find(|(known, _)| *known == name).map(|&(_, pattern)| pattern)
}

/// Whether `common` has a terminal with this name.
pub(crate) fn is_common(name: &str) -> bool {
    find(COMMON, name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lark::regex::{Flags, parse};

    #[test]
    fn every_definition_is_a_pattern_that_matches_text() {
        for (name, pattern) in COMMON.iter().chain(UNICODE) {
            let hir = parse(pattern, Flags::default()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert!(hir.properties().is_utf8(), "{name}");
            let empty = hir.properties().minimum_len() == Some(0);
            assert_eq!(empty, name.ends_with("_INNER"), "{name}");
        }
        assert!(COMMON.is_sorted() && UNICODE.is_sorted());
        assert!(is_common("NUMBER") && !is_common("number") && !is_common("LU"));
    }
}
