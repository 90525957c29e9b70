//! Which functions of `oxmlx-sys` a program reaches through the public items of `crates/oxmlx`, by parsing its sources.
//!
//! [`source`] parses every file with syn, follows `mod` and `use`, and runs the crate's own `macro_rules` ([`expand`]); [`graph`] knows who
//! calls whom. A function counts as reached when a public function or method calls it, itself or through private ones.

mod expand;
mod graph;
mod source;

pub(crate) use graph::{Api, Reach};

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
