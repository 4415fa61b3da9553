//! Masks.
use crate::charts::Scratch;
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) x: Scratch,
}
