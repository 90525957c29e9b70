//! `cargo xtask test`: everything that must hold before a change lands, in the order in which failures are cheapest.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::python::TEST_VARIABLE;
use crate::{codegen, gates, macos_headers, setup, tree};

pub(crate) const HELP: &str = "\
Usage: cargo xtask test

Sets up MLX, the model and a small Python environment for the tests, checks formatting, compares
the generated bridge and the table of coverage with the pinned headers, compiles the public C++
header for macOS, runs clippy, all tests, doctests, gates and examples, and builds the
documentation, with warnings denied.
Stops at the first step that fails and says which.
";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    Error::unexpected(arguments)?;
    let mut report = Report { start: Instant::now(), steps: Vec::new() };
    let outcome = steps(&mut report);
    report.print(outcome.is_ok());
    outcome
}

fn steps(report: &mut Report) -> Result<(), Error> {
    let python = report.step("setup", || {
        tree::compiler()?;
        setup::ready(true)?;
        setup::for_tests()
    })?;
    report.cargo("fmt", &["fmt", "--all", "--check"])?;
    report.step("codegen", || codegen::command::run(&["--check".to_owned()]))?;
    report.step("headers", macos_headers::compile)?;
    report.step("coverage", || codegen::coverage::run(&["--check".to_owned()]))?;
    report.cargo("clippy", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?;
    report.step("test", || {
        let mut test = tree::cargo(&["test", "--workspace", "--locked"]);
        tree::run("cargo test", test.env(TEST_VARIABLE, python.python()))
    })?;
    report.step("gates", gates::after_tests)?;
    report.step("examples", || {
        for example in ["digits", "fft2d", "linear_algebra", "export"] {
            let mut run =
                tree::cargo(&["run", "--quiet", "--locked", "--package", "oxmlx", "--example", example, "--"]);
            tree::run(&format!("the example {example}"), run.arg(python.python()))?;
        }
        Ok(())
    })?;
    report.step("doc", || {
        let mut doc = tree::cargo(&["doc", "--workspace", "--no-deps", "--locked"]);
        tree::run("cargo doc", doc.env("RUSTDOCFLAGS", "-D warnings"))
    })
}

/// The steps so far and the time each took.
struct Report {
    start: Instant,
    steps: Vec<(&'static str, Duration, bool)>,
}

impl Report {
    fn step<T>(&mut self, name: &'static str, body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        eprintln!("== {name}");
        let start = Instant::now();
        let outcome = body();
        self.steps.push((name, start.elapsed(), outcome.is_ok()));
        outcome
    }

    fn cargo(&mut self, name: &'static str, arguments: &[&str]) -> Result<(), Error> {
        self.step(name, || tree::run(&format!("cargo {name}"), &mut tree::cargo(arguments)))
    }

    fn print(&self, passed: bool) {
        eprintln!("== summary");
        for (name, time, ok) in &self.steps {
            eprintln!("{:>8.1} s  {:<8} {}", time.as_secs_f64(), name, if *ok { "ok" } else { "FAILED" });
        }
        let verdict = if passed { "all steps passed" } else { "stopped at the step above" };
        eprintln!("{:>8.1} s  {verdict}", self.start.elapsed().as_secs_f64());
    }
}
