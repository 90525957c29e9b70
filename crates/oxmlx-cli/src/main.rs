//! The `oxmlx` command: run language models through MLX without Python.
//!
//! Tokens go to standard output and nothing else does; progress and errors go to standard error. Exit codes: 0 done, 1 ran and the
//! answer is no (`verify`), 2 error. A closed pipe ends the program quietly.
//!
//! A libmlx of another release is told by oxmlx's own check as long as the loader can start the program at all. The few symbols
//! that are bound at the start (`mlx::core::version`, the type information of `Primitive`) are in every release since 0.30; a
//! library without them, or none at all, is the loader's message and exit code 127.

mod args;
mod bench_args;
mod cancel;
mod commands;
mod draft_args;
mod failure;
mod model;
mod progress;
mod sampling_args;
mod stats;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::args::{Args, Command};
use crate::failure::{Failure, report};

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(Failure::ClosedPipe) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode, Failure> {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return help(error),
    };
    oxmlx::runtime::check_environment()?;
    oxmlx_lm::engine::check_environment()?;
    match args.command {
        Command::Generate(args) => commands::generate::run(args),
        Command::Chat(args) => commands::chat::run(args),
        Command::Info(args) => commands::info::run(args),
        Command::Verify(args) => commands::verify::run(args),
        Command::Bench(args) => commands::bench::run(args),
    }
}

/// Help and version are errors to clap: they end well. Help that nobody asked for, for a lack of arguments, does not.
fn help(error: clap::Error) -> Result<ExitCode, Failure> {
    let code = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => ExitCode::from(2),
        _ => return Err(error.into()),
    };
    error.print().map_err(Failure::output)?;
    Ok(code)
}
