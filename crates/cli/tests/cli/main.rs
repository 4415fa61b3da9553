//! The command line as its users meet it: the program is run, and its output, its complaints and its exit
//! status are looked at.

mod batch;
mod browser;
mod check;
mod debug;
mod demo;
mod eval;
mod explain;
mod fill;
mod formats;
mod generate;
mod help;
mod playground;
mod replay;
mod run;
mod schema;
mod tags;
mod vocab;
