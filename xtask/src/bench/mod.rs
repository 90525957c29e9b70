//! `cargo xtask bench`: oxmlx side by side with other programs on one model, the time of a token as the context grows, and the cost of one node.

pub(crate) mod command;
mod context;
mod options;
mod peers;
mod plot;
mod report;
