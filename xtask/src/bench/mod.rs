//! `cargo xtask bench`: oxmlx side by side with other programs on one model, and the cost of one node.

pub(crate) mod command;
mod options;
mod peers;
mod report;
