//! `cargo xtask gates`: rules about the sources that no compiler knows, each found broken by a test of its own.
//!
//! [`command`] runs them. [`callgraph`] and [`evaluators`] find from machine code which bridge functions can evaluate, [`entries`] and
//! [`tasks`] that none is entered without the lock, [`laziness`] that building a node evaluates nothing, [`manifest`], [`mod@format`] and
//! [`gpu`] look at what is C++ or runs on a GPU. `docs/gates.md` tells the rules and how the lists behind them were found.

mod allowed;
mod callgraph;
mod command;
mod cpp;
mod entries;
mod evaluators;
mod files;
mod format;
mod gpu;
mod laziness;
mod manifest;
#[cfg(test)]
mod planted_tests;
mod rust;
mod tasks;
mod verdict;

pub(crate) use command::{HELP, after_tests, run};
