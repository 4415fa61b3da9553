//! Tests of the front end for JSON Schema.

mod bench;
mod budget;
mod canvas;
mod case;
mod embedded;
mod example;
mod explain;
mod format;
mod joined;
mod laws;
mod lengths;
mod matcher;
mod options;
mod pattern;
mod recall;
mod renewal;
mod shared;
mod shortest;
mod simulate;
mod suite;
mod tree;
