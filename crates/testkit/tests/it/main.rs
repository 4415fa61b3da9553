//! The tests of the testkit itself, as one program.

mod canvas;
mod cases;
mod derivative;
mod generate;
mod laws;
mod matcher;
mod oracle;
mod print;
mod random;
mod text;
