//! What the fuzz targets share.

use anygram_left_to_right::Limits;
use anygram_lexer::LexerLimits;
use anygram_recognizer::RecognizerLimits;

/// Limits so small that one input takes milliseconds, and that inputs hit them.
pub fn limits() -> Limits {
    Limits {
        lexer: LexerLimits {
            nfa_states: 2_000,
            dfa_states: 300,
            union_entries: 20_000,
            lexemes: 2_000,
            ..LexerLimits::default()
        },
        recognizer: RecognizerLimits { items: 20_000 },
        search_steps: 2_000,
        cache_bytes: 1 << 20,
        ..Limits::default()
    }
}
