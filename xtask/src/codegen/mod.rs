//! The bridge generator: MLX's pinned headers in, the C++ shim, the cxx bridges and the raw wrappers of oxmlx-sys out.
//!
//! [`lexer`] and [`parse`] read the headers into [`ir`]; [`table`] is `bridge.toml`; [`select`] puts every declaration in one class
//! and names the wrappers; [`map`] knows how each type crosses; [`cpp`] and [`rust`] write; [`reach`] knows what `crates/oxmlx` calls; [`hostile`] writes the fuzzer's
//! table; [`command`] and [`coverage`] are the commands `codegen` and `coverage`.

pub(crate) mod command;
pub(crate) mod coverage;
mod cpp;
mod hostile;
mod ir;
pub(crate) mod lexer;
mod map;
mod parse;
mod reach;
mod rust;
mod select;
mod table;
