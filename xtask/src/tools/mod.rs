//! What looks at the sources as Rust does, with libraries that `cargo xtask test` need not compile.

pub mod api;
pub mod header;
pub mod measure;
mod shorten;
