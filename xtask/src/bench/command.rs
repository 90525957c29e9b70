//! The command: which bench, and its rounds.

use std::path::PathBuf;

use crate::error::Error;
use crate::python::{BENCH, Environment, LLAMA_CPP};
use crate::{setup, tree};

use super::options::Options;
use super::peers::{Peer, Prompt};
use super::report::Report;

pub(crate) const HELP: &str = "\
Usage: cargo xtask bench compare [OPTION ...]
       cargo xtask bench context [OPTION ...]
       cargo xtask bench node|streams [--json]

compare: builds oxmlx in release mode and runs it beside Python mlx-lm, in turns, on the demo's model, the same
prompt tokens and the same processors; prints the medians of prefill and decode, tokens a second, and the ratios
of the medians. It makes its own Python environment in the cache folder, once.

  --prompt-tokens N   tokens of the prompt (default 64)
  --tokens N          tokens of the answer, 2 or more (default 32)
  --rounds N          rounds; each runs every program once (default 3)
  --threads N         processors each program may use (default: all)
  --llama-cpp         llama.cpp too; the first time it is compiled, which takes minutes
  --oxmlx PATH        this binary instead of building one
  --svg PATH          draw the medians too
  --json              print one JSON object with every run

context: the time of a token after 32, 512, 4096 and 16384 others, on 1, 2 and all processors, with a model of
random weights (oxmlx bench decode).

  --config NAME       the model's shape (default smollm2-135m; oxmlx bench decode --help has others)
  --bits N            bits of a weight: 4, 8 or 16 (default 4)
  --tokens N          tokens that are timed (default 32)
  --rounds N          rounds, of which the median counts (default 5)
  --oxmlx PATH        this binary instead of building one
  --svg PATH          draw the times too
  --json              print one JSON object with every run

node: the bench of building and dropping one add node, against the same in C++ and without the lock.
streams: the bench of two products on two streams, against one.

  --json              print one JSON object
";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    match arguments.split_first() {
        Some((which, rest)) if which == "compare" => compare(&Options::parse(rest)?),
        Some((which, rest)) if which == "context" => super::context::run(rest),
        Some((which, rest)) if which == "node" || which == "streams" => bridge(which, rest),
        Some(_) => Error::unexpected(arguments),
        None => Err(Error::Usage("which bench: compare, context, node or streams; --help tells more".to_owned())),
    }
}

fn compare(options: &Options) -> Result<(), Error> {
    let ready = setup::ready(true)?;
    let model = ready.model.unwrap_or_default();
    let lists: &[_] = if options.llama_cpp { &[&BENCH, &LLAMA_CPP] } else { &[&BENCH] };
    let python = Environment::ready("bench", lists)?;
    let oxmlx = binary(options.oxmlx.as_ref())?;
    let prompt = Prompt::make(&python, &model, options.prompt_tokens)?;
    let mut peers = vec![Peer::Oxmlx(oxmlx), Peer::MlxLm];
    if options.llama_cpp {
        peers.push(Peer::LlamaCpp);
    }

    let mut report = Report::new(options, &peers);
    for round in 1..=options.rounds {
        // The order turns, so that no program always follows the same one.
        for turn in 0..peers.len() {
            let which = (round - 1 + turn) % peers.len();
            let run = peers[which].run(&python, &model, &prompt, options)?;
            eprintln!(
                "round {round}/{}: {:<9} prefill {:8.1}/s, decode {:8.1}/s",
                options.rounds,
                peers[which].name(),
                run.prefill_tps,
                run.decode_tps
            );
            report.add(which, run);
        }
    }
    if let Some(path) = &options.svg {
        std::fs::write(path, report.plot()).map_err(Error::io("writing", path))?;
    }
    if options.json {
        println!("{}", report.json());
    } else {
        print!("{}", report.table());
    }
    Ok(())
}

/// The binary that is given, or a release build of this tree's.
pub(super) fn binary(given: Option<&PathBuf>) -> Result<PathBuf, Error> {
    if let Some(binary) = given {
        return Ok(binary.clone());
    }
    tree::compiler()?;
    tree::run("cargo build", &mut tree::cargo(&["build", "--release", "--locked", "--package", "oxmlx-cli"]))?;
    Ok(tree::target().join("release").join("oxmlx"))
}

fn bridge(bench: &str, arguments: &[String]) -> Result<(), Error> {
    let (json, rest): (Vec<String>, Vec<String>) = arguments.iter().cloned().partition(|word| word == "--json");
    Error::unexpected(&rest)?;
    tree::compiler()?;
    setup::ready(false)?;
    let mut command = tree::cargo(&["bench", "--locked", "--package", "oxmlx", "--bench", bench, "--"]);
    tree::run("cargo bench", command.args(json))
}
