//! The kernels, run by the shim, against the engines of the CPU.

mod cases;
mod charts;
mod common;
mod masks;
mod output;
mod recognizer;
mod teams;
mod turns;
