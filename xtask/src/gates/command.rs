//! `cargo xtask gates`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::allowed::{self, ALLOWED};
use super::evaluators::{self, Table};
use super::verdict::{Verdict, Violation};
use super::{cpp, entries, files, format, gpu, laziness, manifest, tasks};
use crate::error::Error;
use crate::tree;

pub(crate) const HELP: &str = "\
Usage: cargo xtask gates [--strict] [--fix] [--write] [NAME...] | --list

Checks rules that no compiler knows, described in docs/gates.md: no bridge function is entered
without the lock, nothing is evaluated where a node is built, kernel sources are in their
manifests, C++ is as clang-format writes it, Metal and CUDA sources compile where their
compilers are. A gate that can't run here is skipped, and counted. NAME: these gates only.

  --strict        what can't run fails
  --fix           first write C++, Metal and CUDA sources as clang-format wants them
  --write         first find the table of evaluators again and write it
  --list          print which bridge functions can evaluate, apply a closure, wait or read, and which
                  are called without the lock and why; and check nothing
";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    let (options, names): (Vec<String>, Vec<String>) =
        arguments.iter().cloned().partition(|word| word.starts_with('-'));
    let known = ["--strict", "--fix", "--write", "--list"];
    Error::unexpected(&options.iter().filter(|word| !known.contains(&word.as_str())).cloned().collect::<Vec<_>>())?;
    let mut gates = [&GATES[..], &[("emulator", emulator)]].concat();
    Error::unexpected(
        &names.iter().filter(|name| !gates.iter().any(|gate| gate.0 == *name)).cloned().collect::<Vec<_>>(),
    )?;
    gates.retain(|gate| names.is_empty() || names.iter().any(|name| gate.0 == name));
    let given = |flag: &str| options.iter().any(|word| word == flag);
    if given("--list") {
        print!("Bridge functions by what they may come to do:\n{}", Table::read()?.listed());
        print!("\nCalled without the lock:\n{}", allowed::listed());
        return Ok(());
    }
    if given("--fix") {
        format::fix()?;
    }
    if given("--write") {
        evaluators::write()?;
    }
    each(&gates, given("--strict"))
}

/// A gate's name and what it does.
type Gate = (&'static str, fn() -> Result<Verdict, Error>);

const GATES: [Gate; 8] = [
    ("evaluators", evaluators::check),
    ("entries", rust_entries),
    ("tasks", cpp_tasks),
    ("laziness", node_laziness),
    ("manifest", manifests),
    ("format", format::check),
    ("metal", gpu::metal),
    ("cuda", gpu::cuda),
];

/// The gates that a run of all tests has not passed already.
pub(crate) fn after_tests() -> Result<(), Error> {
    each(&GATES, false)
}

/// Runs these gates, one line each, and fails when one failed; with `strict` also when one could not run.
fn each(gates: &[Gate], strict: bool) -> Result<(), Error> {
    let (mut failed, mut skipped) = (Vec::new(), 0);
    for (name, gate) in gates {
        let start = Instant::now();
        let verdict = gate()?;
        let took = start.elapsed().as_secs_f64();
        match verdict {
            Verdict::Passed(what) => eprintln!("gate {name:<11} {took:>5.1} s  ok: {what}"),
            Verdict::Skipped(why) => {
                eprintln!("gate {name:<11} {took:>5.1} s  SKIPPED: {why}");
                skipped += 1;
                if strict {
                    failed.push(*name);
                }
            }
            Verdict::Failed(violations) => {
                eprintln!("gate {name:<11} {took:>5.1} s  FAILED: {} violations", violations.len());
                violations.iter().for_each(|violation| eprintln!("  {violation}"));
                failed.push(*name);
            }
        }
    }
    let passed = gates.len() - failed.len() - if strict { 0 } else { skipped };
    eprintln!("gates: {passed} of {} passed, {skipped} skipped", gates.len());
    match failed.as_slice() {
        [] => Ok(()),
        names => Err(Error::Bridge(format!("the gates {} failed; docs/gates.md tells the rules", names.join(", ")))),
    }
}

const SYS: &str = "crates/oxmlx-sys";

fn parsed(path: &Path) -> Result<syn::File, Error> {
    syn::parse_file(&files::read(path)?).map_err(|e| Error::Bridge(format!("{}: {e}", path.display())))
}

/// The modules of `oxmlx-sys`.
pub(super) fn rust_sources() -> Result<Vec<entries::Source>, Error> {
    let folder = tree::root().join(SYS).join("src");
    let mut sources = Vec::new();
    for path in files::with_extension(&folder, &["rs"])? {
        let name = files::shown(&folder, &path).trim_end_matches(".rs").replace('/', "::");
        sources.push(entries::Source { name, file: parsed(&path)? });
    }
    Ok(sources)
}

fn rust_entries() -> Result<Verdict, Error> {
    let mut report = entries::check(&rust_sources()?, ALLOWED, &Table::read()?);
    report.violations.extend(bridges_elsewhere(&tree::root())?);
    let (calls, unlocked) = (report.calls, ALLOWED.len());
    Ok(Verdict::of(report.violations, || {
        format!("{calls} calls of bridge functions, {unlocked} without the lock by the list")
    }))
}

/// Bridges to C++ in crates that have no lock to take.
fn bridges_elsewhere(root: &Path) -> Result<Vec<Violation>, Error> {
    let mut out = Vec::new();
    for path in files::with_extension(&root.join("crates"), &["rs"])? {
        let place = files::shown(root, &path);
        if !place.starts_with(SYS) && files::read(&path)?.contains("#[cxx::bridge") {
            let what = "a bridge outside oxmlx-sys goes round the lock".to_owned();
            out.push(Violation { rule: "bridge-elsewhere", place, what });
        }
    }
    Ok(out)
}

/// The sources of the shim.
pub(super) fn cpp_sources() -> Result<Vec<cpp::Source>, Error> {
    let folder = tree::root().join(SYS).join("cpp");
    let parsed =
        |path: &PathBuf| cpp::Source::parse(&files::shown(&folder, path), &files::read(path)?).map_err(Error::Bridge);
    files::with_extension(&folder, &["cpp", "h"])?.iter().map(parsed).collect()
}

fn cpp_tasks() -> Result<Verdict, Error> {
    let sources = cpp_sources()?;
    let functions: usize = sources.iter().map(|source| source.functions.len()).sum();
    Ok(Verdict::of(tasks::check(&sources, tasks::BUILDERS, &Table::read()?), || {
        format!("{functions} functions of C++")
    }))
}

/// The files that build nodes, by their place below `crates/`.
pub(super) fn laziness_places() -> Result<Vec<(String, syn::File)>, Error> {
    let crates = tree::root().join("crates");
    let mut found = Vec::new();
    for path in files::with_extension(&crates, &["rs"])? {
        let place = files::shown(&crates, &path);
        let here = laziness::PLACES.iter().any(|p| if p.ends_with('/') { place.starts_with(p) } else { place == *p });
        if here && !laziness::BODIES.contains(&place.as_str()) {
            found.push((place, parsed(&path)?));
        }
    }
    Ok(found)
}

fn node_laziness() -> Result<Verdict, Error> {
    let crates = tree::root().join("crates");
    let (mut violations, mut used) = (Vec::new(), BTreeSet::new());
    let places = laziness_places()?;
    for (place, file) in &places {
        violations.extend(laziness::check(place, file, laziness::EXCEPTIONS, &mut used));
    }
    for place in laziness::PLACES.iter().filter(|place| !crates.join(place).exists()) {
        let what = "is where nodes are built by the list, and is not there".to_owned();
        violations.push(Violation { rule: "stale-exception", place: (*place).to_owned(), what });
    }
    violations.extend(laziness::stale(laziness::EXCEPTIONS, &used));
    Ok(Verdict::of(violations, || format!("{} files that build nodes", places.len())))
}

/// Metal sources run by the emulator on the host and compared with their Rust twins: a part of the tests.
fn emulator() -> Result<Verdict, Error> {
    if !cfg!(target_os = "linux") {
        return Ok(Verdict::Skipped("Metal sources are emulated on Linux".to_owned()));
    }
    let mut test = tree::cargo(&["test", "--locked", "--quiet", "--package", "oxmlx", "--test", "kernels"]);
    tree::run("cargo test --test kernels", &mut test)?;
    Ok(Verdict::Passed("the test program `kernels`".to_owned()))
}

fn manifests() -> Result<Verdict, Error> {
    let (violations, sources) = manifest::check(&tree::root())?;
    Ok(Verdict::of(violations, || format!("{sources} kernel sources")))
}
