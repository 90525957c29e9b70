//! The `oxmlx` command: run language models through MLX without Python.
//!
//! Tokens go to standard output and nothing else does; progress and errors go to standard error. Exit codes: 0 done, 1 ran and the
//! answer is no (`verify`), 2 error. A closed pipe ends the program quietly.

mod args;
mod cancel;
mod commands;
mod failure;
mod model;
mod progress;
mod stats;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::failure::{Failure, report};

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are errors to clap: they go to standard output and end well.
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match run(args.command) {
        Ok(code) => code,
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Generate(args) => commands::generate::run(args),
        Command::Chat(args) => commands::chat::run(args),
        Command::Info(args) => commands::info::run(args),
        Command::Verify(args) => commands::verify::run(args),
    }
}
