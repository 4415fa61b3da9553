//! What a grammar does not say of a text, because it would have to remember all of it: that the keys of an
//! object differ, and the items of an array.
//!
//! A [`Memory`] reads a text byte by byte beside the parser. It knows nothing of rules; the grammar says of
//! its terminals which [remember](crate::ir::Terminal::memory): the piece of one that is *distinct* may not
//! repeat an earlier one. So a text is a sentence if the grammar derives it by pieces of which none that is
//! distinct repeats another.
//!
//! One memory ([`Grammar::memory`]) reads the whole text. Others ([`Grammar::embedded`]) read values within a
//! text: each reads what stands from a piece that *opens* a value to the piece that closes it, and what
//! stands outside of values is in no memory. Which parts of a text are values depends on the reading, and so
//! does what may not be repeated.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::ir::{Grammar, Pattern, Terminal, TerminalKind};

/// What a terminal's pieces are to a [`Memory`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Remembered {
    /// Which of the memories of [values](Grammar::embedded) it belongs to; `None` for that of the whole text.
    pub value: Option<u32>,
    /// What its pieces are.
    pub role: Role,
}

/// What a terminal's pieces are to their [`Memory`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Role {
    /// They open a value, outside of values of the same memory: one byte that does, and blanks.
    Opens,
    /// They can be repeated, or may not be.
    Piece {
        /// Which pieces it has: a number of the memory's own.
        kind: u32,
        /// Whether a piece may not repeat an earlier one.
        is_distinct: bool,
    },
}

impl Remembered {
    /// Whether a piece may not repeat an earlier one.
    pub fn is_distinct(self) -> bool {
        matches!(self.role, Role::Piece { is_distinct: true, .. })
    }

    /// The memory of values of which a piece opens one.
    pub fn opens(self) -> Option<u32> {
        self.value.filter(|_| self.role == Role::Opens)
    }
}

/// Bytes, as a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// All of them.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Whether a byte is in it.
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte) / 64] >> (byte % 64) & 1 != 0
    }

    /// Those in both.
    pub fn intersection(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        let mut set = Self::default();
        bytes.into_iter().for_each(|byte| set.0[usize::from(byte) / 64] |= 1 << (byte % 64));
        set
    }
}

/// Tells tokens of a vocabulary apart by their bytes.
#[derive(Clone, Copy, Debug)]
pub struct TokenTest {
    /// Tells such tests apart.
    pub name: &'static str,
    /// A byte that all tokens have in them that pass, if there is one: only those are looked at.
    pub has: Option<u8>,
    /// Whether a token passes.
    pub passes: fn(&[u8]) -> bool,
}

/// How what follows may come to be at risk, or to repeat something.
#[derive(Clone, Copy, Debug)]
pub struct Risk {
    /// The bytes by which it may, one after another.
    pub bytes: ByteSet,
    /// Passed by all tokens that do from here on, if not by all tokens.
    pub test: Option<TokenTest>,
}

/// How a piece in progress goes on that comes to repeat something.
#[derive(Clone, Debug)]
pub struct Rests<'a> {
    /// What follows, as it is spelled most plainly: sorted, without repetition. Where a text has an `end` or
    /// an `escape`, it goes on by an escape.
    pub texts: Vec<&'a str>,
    /// The byte that ends the piece.
    pub end: u8,
    /// The byte by which all other ways to spell the same leave the plain one.
    pub escape: u8,
}

/// What matters later of the text that was read.
///
/// What stays true: all answers are functions of the text. Cost of a step: of a look-up among what was
/// remembered.
pub trait Memory: Debug + Send + Sync {
    /// A copy. Cheap: what was remembered is shared.
    fn fork(&self) -> Arc<dyn Memory>;

    /// Reads a byte. Of a text that is no sentence of the grammar nothing is promised.
    fn step(&mut self, byte: u8);

    /// Whether the value that was opened first is closed, so that nothing of it matters any more.
    fn is_over(&self) -> bool;

    /// Whether a byte is a blank, which may stand between pieces and means nothing there.
    fn is_blank(&self, byte: u8) -> bool;

    /// Tokens that lead from outside of values into one in which something repeats or is at risk, or behind
    /// it, pass this test.
    fn opening(&self) -> TokenTest;

    /// Whether reading a byte changes nothing.
    fn ignores(&self, byte: u8) -> bool;

    /// Whether a piece that ends here repeats an earlier one.
    fn repeats(&self) -> bool;

    /// Whether what is in progress, a piece or several, may come to repeat something. If not, whatever the
    /// grammar derives from here on may follow, as far as what is in progress goes.
    fn is_at_risk(&self) -> bool;

    /// Whether a piece is in progress that a terminal remembers.
    fn is_within(&self) -> bool;

    /// Whether a piece in progress can become one of a kind (see [`Remembered`]) that differs from all that
    /// it is at risk to repeat. False between pieces, and where nothing is at risk not asked.
    fn differs(&self, terminal: Remembered) -> bool;

    /// Whether that is true whatever terminal the piece is of, as long as any is; where nothing is at risk
    /// not asked.
    fn always_differs(&self) -> bool;

    /// Texts with one of which everything goes on, as far as the memory can tell it apart, that repeats what
    /// this is at risk to repeat; and some others. Few.
    fn continuations(&self) -> Vec<Vec<u8>>;

    /// How what follows may come to be at risk or to repeat something; `None` if it cannot, but for what
    /// [`whole`](Self::whole) tells.
    fn risk(&self) -> Option<Risk>;

    /// The same within a piece that [always differs](Self::always_differs) until its end, where it is known
    /// what the piece may come to repeat; `None` elsewhere, and where that takes more than a look.
    fn rests(&self) -> Option<Rests<'_>>;

    /// Where bytes that are no [risk](Self::risk) come first, tokens can end in or beyond something that
    /// repeats, or from where not everything goes on, only if they pass this test.
    fn whole(&self) -> TokenTest;

    /// Whether a look at a token tells that nothing in it repeats anything, and that it ends where nothing is
    /// at risk or what is [always differs](Self::always_differs).
    fn plainly_differs(&self, _token: &[u8]) -> bool {
        false
    }

    /// Equal for places that are alike: told apart by nothing that follows.
    fn fingerprint(&self) -> u64;

    /// Bytes that always stand for themselves: pieces that are spelled alike but for one place, where they
    /// have different texts of one length of these bytes, are different values. None if that is not known.
    fn letters(&self) -> ByteSet {
        ByteSet::default()
    }

    /// At least as many as there are values that any one piece is held against which ends later in what is
    /// open now, if nothing else is written. Too many to count if that is not known.
    fn siblings(&self) -> usize {
        usize::MAX
    }

    /// What ends here and is held against others beside it; if a piece can go on, what it is if it does not.
    fn ended(&self) -> Option<Ended>;

    /// From here on, what begins is [new](Ended::is_new).
    fn mark(&mut self);

    /// What is known here of a memory that tells nothing but some values apart, and with `keeps` those that
    /// were written, from all others.
    fn watching(&self, values: &[Watched], keeps: bool) -> Arc<dyn Watch>;
}

/// A value that others are held against, of a memory's own type. Two are equal if their prints are.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Tells values apart.
    pub print: u64,
    /// The value.
    pub value: Arc<dyn Any + Send + Sync>,
}

/// Something that ended and is held against others beside it.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What it is.
    pub value: Watched,
    /// Whether it began behind the [mark](Memory::mark).
    pub is_new: bool,
}

/// A [`Memory`] that forgets whatever is none of the values that it watches for.
///
/// What stays true: what repeats something here does so in the text. If it *keeps* what was written before it
/// began to watch, two texts after which it is the same, and not [lost](Watch::is_lost), differ for the
/// memory in nothing but values that are none of those, and that nothing else in them is held against; so
/// what can follow the one without repeating anything can follow the other, if all that is new in it and
/// held against others is watched for.
pub trait Watch: Debug + Send + Sync {
    /// What is known after a byte.
    fn step(&self, byte: u8) -> Arc<dyn Watch>;

    /// Whether a piece that ends here repeats an earlier one.
    fn repeats(&self) -> bool;

    /// Whether the value that was opened first is closed.
    fn is_over(&self) -> bool;

    /// Whether something was repeated, or something was forgotten that others are held against. Only where
    /// it keeps what was written; it stays so.
    fn is_lost(&self) -> bool;

    /// Equal where equal things are known.
    fn fingerprint(&self) -> u64;
}

/// A shared [`Memory`] of the empty text. Two are equal if they are the same, by address.
#[derive(Clone, Debug)]
pub struct Remembers(pub Arc<dyn Memory>);

impl PartialEq for Remembers {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Remembers {}

impl Deref for Remembers {
    type Target = dyn Memory;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Grammar {
    /// The same grammar with a memory, of the empty text, for the terminals that remember.
    pub fn with_memory(self, memory: Remembers) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// The same grammar with memories, of the empty text, for values within its texts.
    pub fn with_embedded(self, embedded: Vec<Remembers>) -> Self {
        Self { embedded, ..self }
    }

    /// Whether there is anything that its rules do not say of a text.
    pub fn remembers(&self) -> bool {
        self.memory.is_some() || !self.embedded.is_empty()
    }

    /// See [`Memory::letters`], of all memories.
    pub fn letters(&self) -> ByteSet {
        if !self.remembers() {
            return ByteSet::default();
        }
        let all = self.memory.iter().chain(&self.embedded).map(|memory| memory.0.letters());
        all.fold(ByteSet::ALL, |letters, own| letters.intersection(&own))
    }

    /// An ignored terminal that can stand between the parts of a remembered value and may have characters in
    /// it that mean something there, so that what the value's pieces are would not be known by the text.
    pub fn disturbing(&self) -> Option<&Terminal> {
        if self.embedded.is_empty() {
            return None;
        }
        let is_disturbing = |terminal: &&Terminal| match (&terminal.kind, terminal.ignored) {
            (TerminalKind::Literal(pattern) | TerminalKind::Pattern(pattern), true) => !is_blank(pattern),
            (_, ignored) => ignored,
        };
        self.terminals.iter().find(is_disturbing)
    }
}

/// Whether a character means nothing between the parts of a value.
fn means_nothing(c: u32) -> bool {
    u8::try_from(c).map_or(true, |c| !c.is_ascii_alphanumeric() && !b"{}[],:\"+-.\\".contains(&c))
}

/// Whether all texts of a pattern have only characters that mean nothing between the parts of a value.
fn is_blank(pattern: &Pattern) -> bool {
    let mut agenda = vec![pattern];
    while let Some(pattern) = agenda.pop() {
        match pattern {
            Pattern::Regex(expression) if has_only_blanks(expression) => {}
            Pattern::Concat(parts) | Pattern::Alternate(parts) => agenda.extend(parts),
            Pattern::Repeat { inner, .. } => agenda.push(inner),
            // Each of them has all texts.
            Pattern::And(parts) if parts.iter().any(is_plainly_blank) => {}
            Pattern::Regex(_) | Pattern::And(_) | Pattern::Not(_) => return false,
        }
    }
    true
}

fn is_plainly_blank(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::Regex(expression) if has_only_blanks(expression))
}

fn has_only_blanks(expression: &Hir) -> bool {
    let mut agenda = vec![expression];
    while let Some(expression) = agenda.pop() {
        match expression.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => {
                if !literal.0.iter().all(|&byte| means_nothing(u32::from(byte))) {
                    return false;
                }
            }
            HirKind::Class(class) => {
                let ranges: Vec<(u32, u32)> = match class {
                    Class::Unicode(class) => {
                        class.iter().map(|range| (range.start() as u32, range.end() as u32)).collect()
                    }
                    Class::Bytes(class) => {
                        class.iter().map(|range| (u32::from(range.start()), u32::from(range.end()))).collect()
                    }
                };
                let is_blank = |&(from, to): &(u32, u32)| (from..=to.min(0x7f)).all(means_nothing);
                if !ranges.iter().all(is_blank) {
                    return false;
                }
            }
            HirKind::Repetition(repetition) => agenda.push(&repetition.sub),
            HirKind::Capture(capture) => agenda.push(&capture.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => agenda.extend(parts),
        }
    }
    true
}
