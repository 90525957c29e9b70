//! Everything a human would script, as `cargo xtask COMMAND`. It never depends on oxmlx-sys: it works before there is
//! any MLX to build against.

use std::process::ExitCode;

mod bench;
mod codegen;
mod cuda_bundle;
mod demo;
mod digits;
mod dist;
mod error;
mod fuzz;
mod gates;
mod macos_check;
mod macos_headers;
#[path = "../../crates/oxmlx-sys/build/mod.rs"]
mod mlx;
mod python;
mod sanitize;
mod setup;
mod test;
mod tree;

use error::Error;

/// One command of the table below.
struct Command {
    name: &'static str,
    summary: &'static str,
    help: &'static str,
    run: fn(&[String]) -> Result<(), Error>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "demo",
        summary: "set up, build, and let SmolLM2 answer a question",
        help: demo::HELP,
        run: demo::run,
    },
    Command { name: "test", summary: "set up, and run every check and test", help: test::HELP, run: test::run },
    Command { name: "setup", summary: "fetch MLX and the demo's model", help: setup::HELP, run: setup::run },
    Command {
        name: "codegen",
        summary: "write the generated bridge, or check it",
        help: codegen::command::HELP,
        run: codegen::command::run,
    },
    Command {
        name: "coverage",
        summary: "list which of MLX's functions are reached",
        help: codegen::coverage::HELP,
        run: codegen::coverage::run,
    },
    Command {
        name: "macos-headers",
        summary: "compile the public C++ header for macOS",
        help: macos_headers::HELP,
        run: macos_headers::run,
    },
    Command {
        name: "macos-check",
        summary: "build and link everything for macOS on Linux",
        help: macos_check::HELP,
        run: macos_check::run,
    },
    Command {
        name: "dist",
        summary: "make a folder with the binary and its libraries",
        help: dist::HELP,
        run: dist::run,
    },
    Command {
        name: "cuda-bundle",
        summary: "put the tests into a folder for a machine with a GPU",
        help: cuda_bundle::HELP,
        run: cuda_bundle::run,
    },
    Command { name: "gates", summary: "check rules that no compiler knows", help: gates::HELP, run: gates::run },
    Command { name: "fuzz", summary: "make hostile calls of the whole API", help: fuzz::HELP, run: fuzz::run },
    Command {
        name: "sanitize",
        summary: "run tests under AddressSanitizer and UBSan",
        help: sanitize::HELP,
        run: sanitize::run,
    },
    Command {
        name: "bench",
        summary: "measure oxmlx beside mlx-lm and llama.cpp",
        help: bench::command::HELP,
        run: bench::command::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match arguments.split_first() {
        None => {
            eprint!("{}", overview());
            return ExitCode::from(2);
        }
        Some((name, rest)) => (name.as_str(), rest),
    };
    if matches!(name, "help" | "--help" | "-h") {
        print!("{}", overview());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("xtask: no command {name:?}; `cargo xtask help` lists them");
        return ExitCode::from(2);
    };
    if rest.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("{}", command.help);
        return ExitCode::SUCCESS;
    }
    match (command.run)(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {name}: {}", mlx::error::chain(&error));
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

fn overview() -> String {
    let mut text = "Usage: cargo xtask COMMAND [--help]\n\n".to_owned();
    for command in COMMANDS {
        text.push_str(&format!("  {:<14} {}\n", command.name, command.summary));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{COMMANDS, Error, overview};

    #[test]
    fn every_command_is_listed_and_its_help_shows_its_usage() {
        for command in COMMANDS {
            assert!(overview().contains(&format!("  {:<14} {}\n", command.name, command.summary)));
            let usage = format!("Usage: cargo xtask {}", command.name);
            assert!(command.help.starts_with(&usage) && command.help.ends_with('\n'), "{}", command.name);
        }
    }

    #[test]
    fn no_command_ignores_an_option_it_does_not_know() {
        for command in COMMANDS {
            let outcome = (command.run)(&["--no-such-option".to_owned()]);
            assert!(matches!(outcome, Err(Error::Usage(_))), "{}", command.name);
        }
    }
}
