//! The C API: `libanygram_c` and `include/anygram.h`.
//!
//! For C, C++ and whatever calls C. `docs/c-api.md` has the promises (threads, ownership, versions) and
//! examples; the header is made from this crate by `cargo xtask header`.
//!
//! Three layers keep the `unsafe` small: `memory` turns pointers of callers into slices, and checks what
//! can be checked; `handles` keeps all objects, so that a handle that was freed or is of another kind is an
//! error and not undefined behaviour; `error` catches panics and writes down what went wrong.

#![allow(unsafe_code)]
#![allow(non_camel_case_types, reason = "the names of C")]
#![warn(clippy::undocumented_unsafe_blocks)]

mod error;
mod handles;
mod memory;

// In this order they are in the header.
mod vocabulary;

mod compile;

mod matcher;

mod batch;

mod canvas;

#[cfg(test)]
mod tests;

use std::ffi::c_char;

/// Grows when a function, a field or a constant is added. What there was stays as it was.
pub const ANYGRAM_C_VERSION: u32 = 1;

/// `ANYGRAM_C_VERSION` of the library that runs: at least that of the header that was compiled.
#[unsafe(no_mangle)]
pub extern "C" fn anygram_c_version() -> u32 {
    ANYGRAM_C_VERSION
}

/// The version of the library as text, such as "0.1.0"; never freed.
#[unsafe(no_mangle)]
pub extern "C" fn anygram_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
