//! GBNF (`.gbnf`), the notation of llama.cpp.
//!
//! The reader is that of [`ebnf`](crate::ebnf), with another dialect. What is read:
//!
//! | notation | meaning |
//! |---|---|
//! | `name ::= …` | a rule; names are of letters, digits, `-` and (beyond llama.cpp) `_`. It ends with its line |
//! | `root` | the start |
//! | `"…"` | a text; escapes `\n \r \t \\ \" \[ \] \-`, `\xHH`, `\uHHHH`, `\UHHHHHHHH` |
//! | `[a-z]`, `[^…]`, `.` | one character of some, not of some, any (line ends too); the same escapes |
//! | `A B`, `A \| B`, `( … )` | sequence, alternatives (also empty ones), group |
//! | `A?`, `A*`, `A+`, `A{n}`, `A{n,}`, `A{n,m}` | repetition; several may follow one another |
//! | `<[id]>`, `<name>` | a token of the vocabulary, by its id or its text |
//! | `# …` | a comment |
//!
//! An alternative goes on on the next line after `::=`, after `|` and within parentheses, nowhere else.
//!
//! | notation | llama.cpp | here |
//! |---|---|---|
//! | a rule defined twice | the last one counts | the same |
//! | left recursion | refused | read |
//! | more than 2,000 repetitions | refused; as an upper bound: any number | counted, up to the size of the grammar |
//! | `{3,1}`, `[z-a]`, `[]`, `[^]` | accepted, with odd effects | refused |
//! | `""*` | refused | the empty string |
//! | `<name>` | any text that is one token | a special token of the vocabulary |
//! | `!<[id]>`, `!<name>` (any other token) | read | refused: what texts may stand there depends on how they are cut into tokens |
//! | the byte 0 | ends the grammar | a character |

use crate::diagnostic::GrammarError;
pub use crate::ebnf::EbnfOptions as GbnfOptions;
use crate::ebnf::{Dialect, read};
use crate::ir::Grammar;

/// Reads a grammar in GBNF.
pub fn parse(source: &str, options: &GbnfOptions) -> Result<Grammar, GrammarError> {
    read(source, Dialect::Gbnf, options)
}
