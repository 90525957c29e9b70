//! `cargo xtask fuzz`: the fuzzers of `crates/oxmlx/tests/fuzz` and of `crates/oxmlx-lm/tests/robustness`, longer than in the tests.

use crate::error::Error;
use crate::tree;

pub(crate) const HELP: &str = "\
Usage: cargo xtask fuzz [--calls N | --files N | --targets N] [--seed S] [--only INDEX] [--debug]

Makes N (default: 100000) calls of the whole safe API with hostile shapes, dtypes, axes, scalars,
indices and layouts, and reads damaged GGUF, SafeTensors and NPY files, in child processes. A signal,
an abort, a panic, or no call in 10 s is a finding. What call INDEX of seed S does depends on nothing
but the two: --only INDEX makes it alone and prints its outcome. Builds in release mode; --debug
finds overflows of Rust's arithmetic as well.

--files N reads N mutated GGUF and N mutated SafeTensors files instead, through MLX's loaders and our own:
memory beyond the file's size and 64 MiB is a finding too, and the file is left in the temporary folder.

--targets N runs the targets of fuzz/ (GGUF, SafeTensors, chat templates) N times each under libFuzzer and
AddressSanitizer, from the fixtures. Linux; works with a stable compiler. What it finds is left in fuzz/artifacts.
";

/// The targets of `fuzz/`, and the fixtures that they start from.
const TARGETS: &[(&str, &[&str])] = &[
    ("gguf", &[]),
    ("safetensors", &["fixtures/models/llama_q4", "fixtures/prompt_caches"]),
    ("chat_template", &["fuzz/seeds/chat_template"]),
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    let (mut calls, mut files, mut targets, mut seed, mut only, mut debug) =
        (100_000u64, None, None, 1u64, None, false);
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let mut number = || match rest.next().map(|text| text.parse::<u64>()) {
            Some(Ok(number)) => Ok(number),
            _ => Err(Error::Usage(format!("{option} takes a number"))),
        };
        match option.as_str() {
            "--calls" => calls = number()?,
            "--targets" => targets = Some(number()?),
            "--files" => files = Some(number()?),
            "--seed" => seed = number()?,
            "--only" => only = Some(number()?),
            "--debug" => debug = true,
            _ => return Error::unexpected(std::slice::from_ref(option)),
        }
    }
    if let Some(runs) = targets {
        return libfuzzer(runs, seed);
    }
    let (package, binary, test) = match files {
        None => ("oxmlx", "fuzz", "hostile_calls_end_in_values_or_errors"),
        Some(_) => ("oxmlx-lm", "robustness", "mutated::mutated_files_are_read_or_refused_in_bounded_memory"),
    };
    let mut command = tree::cargo(&["test", "--locked", "--package", package, "--test", binary]);
    if !debug {
        command.arg("--release");
    }
    command.args(["--", "--exact", test, "--nocapture"]);
    command.env("OXMLX_FUZZ_CALLS", calls.to_string()).env("OXMLX_FUZZ_SEED", seed.to_string());
    if let Some(files) = files {
        command.env("OXMLX_FUZZ_FILES", files.to_string());
    }
    if let Some(only) = only {
        command.env("OXMLX_FUZZ_ONLY", only.to_string());
    }
    tree::run("the fuzzer", &mut command)
}

/// Builds the targets as cargo-fuzz does, and runs them.
fn libfuzzer(runs: u64, seed: u64) -> Result<(), Error> {
    let root = tree::root();
    let folder = root.join("fuzz");
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    for (target, fixtures) in TARGETS {
        let (corpus, artifacts) = (folder.join("corpus").join(target), folder.join("artifacts").join(target));
        for made in [&corpus, &artifacts] {
            std::fs::create_dir_all(made).map_err(Error::io("making", made))?;
        }
        let mut command = tree::cargo(&["run", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml"]);
        command.args(["--target", &triple, "--bin", target, "--"]);
        // An input of more than 10 s, or of more memory than that, is a finding.
        command.args([format!("-runs={runs}"), format!("-seed={seed}")]);
        command.args(["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"]);
        command.arg(format!("-artifact_prefix={}/", artifacts.display()));
        command.arg(&corpus).args(fixtures.iter().map(|fixture| root.join(fixture)));
        command.env("RUSTC_BOOTSTRAP", "1").env(
            "RUSTFLAGS",
            "-Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
             -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
             -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Ccodegen-units=1",
        );
        command.env("ASAN_OPTIONS", "detect_leaks=0").env("OXMLX_FUZZ_CORPUS", &corpus);
        tree::run(&format!("the target {target}"), &mut command)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Error, run};

    #[test]
    fn an_option_without_its_number_is_refused() {
        for wrong in [&["--calls"][..], &["--files", "all"], &["--seed", "x"], &["--only", "-1"]] {
            let arguments: Vec<String> = wrong.iter().map(|&word| word.to_owned()).collect();
            assert!(matches!(run(&arguments), Err(Error::Usage(_))), "{wrong:?}");
        }
    }
}
