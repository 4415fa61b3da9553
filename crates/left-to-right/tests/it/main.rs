//! All tests of this crate's interface, as one program: it is linked once.

mod ahead;
mod automata;
mod batch;
mod bound;
mod budget;
mod budget_workloads;
mod captures;
mod cases;
mod characters;
mod counts;
mod example;
mod limits;
mod memo;
mod narrow;
mod oracle;
mod outputs;
mod pieces;
mod renewal;
mod rows;
mod sequences;
mod tree;
mod without;
