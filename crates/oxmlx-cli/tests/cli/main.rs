//! The `oxmlx` binary from outside: what it prints, where, and how it ends.

mod bad_input;
mod bench;
mod chat;
mod command_line;
mod drafts;
#[path = "../../../oxmlx-lm/tests/data/support.rs"]
#[allow(dead_code, reason = "where the engine's tests find their files; they use more of it")]
mod files;
mod generate;
#[path = "../../../oxmlx-lm/tests/data/gguf_writer.rs"]
#[allow(dead_code, reason = "written for the reader's own tests, which use more of it")]
mod gguf_writer;
mod info;
#[cfg(unix)]
mod interrupt;
#[cfg(target_os = "linux")]
mod library;
mod support;
mod verify;
