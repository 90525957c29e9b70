//! Hostile calls of the whole safe API in child processes: no signal, no abort, no panic, no hang.
//!
//! `OXMLX_FUZZ_CALLS` and `OXMLX_FUZZ_SEED` set how many and which (`cargo xtask fuzz`). Call `n` of a seed depends on nothing but
//! the two numbers, so that a finding is one call: `OXMLX_FUZZ_ONLY=n` makes it alone.

mod draw;
mod files;
mod registry;

use std::fs::{self, File};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use oxmlx::{Array, Result};

use crate::draw::Draw;

/// A child that makes no call in so long hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is built is computed when it has no more elements than this: time spent on large arrays is no finding.
const COMPUTED: usize = 1 << 20;

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")),
        Err(_) => default,
    }
}

/// One call: build, and compute what is small.
fn call(seed: u64, index: u64) -> (&'static str, Result<()>) {
    let mut draw = Draw::new(seed, index);
    let (name, entry) = registry::ENTRIES[draw.below(registry::ENTRIES.len())];
    draw.tells = std::env::var_os("OXMLX_FUZZ_ONLY").is_some();
    let outcome = entry(&mut draw).and_then(|outputs| {
        let small: Vec<Array> = outputs.into_iter().filter(|a| a.size() <= COMPUTED && !draw.drew_huge).collect();
        oxmlx::eval(&small)?;
        small.iter().try_for_each(|a| oxmlx::ops::contiguous(a, false)?.eval())
    });
    (name, outcome)
}

/// A child's work: the calls from `first` to `last`, each told to the log before it is made.
fn child(log: &Path, seed: u64, first: u64, last: u64) {
    std::panic::set_hook(Box::new(|_| {}));
    let mut log = File::create(log).unwrap();
    for index in first..last {
        log.write_all(format!("{index}\n").as_bytes()).unwrap();
        match catch_unwind(AssertUnwindSafe(|| {
            if files::is_turn(index) { files::call(seed, index) } else { call(seed, index) }
        })) {
            Ok(_) => {}
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default();
                log.write_all(format!("panic {text}\n").as_bytes()).unwrap();
                std::process::exit(3);
            }
        }
    }
    // Told last: LAPACK ends a process with the exit status of success.
    log.write_all(b"done\n").unwrap();
}

/// Runs children over all calls and returns what they died of.
fn findings(seed: u64, calls: u64, most: usize) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (mut first, mut found) = (0, Vec::new());
    while first < calls && found.len() < most {
        let mut child = Command::new("sh")
            // Memory that a call asks for is an error of the allocator, and not the end of the machine.
            .args(["-c", "ulimit -v 6291456; ulimit -c 0; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "calls_of_a_child_process", "--test-threads=1"])
            .env("OXMLX_FUZZ_CHILD", format!("{seed} {first} {calls}"))
            .env("OXMLX_FUZZ_LOG", &log)
            .env_remove("RUST_BACKTRACE")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (mut seen, mut since) = (0, Instant::now());
        let ended = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status.to_string();
            }
            let length = fs::metadata(&log).map_or(0, |file| file.len());
            if length != seen {
                (seen, since) = (length, Instant::now());
            } else if since.elapsed() > PATIENCE {
                let threads = threads(child.id());
                child.kill().unwrap();
                child.wait().unwrap();
                break format!("hangs ({threads})");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let text = fs::read_to_string(&log).unwrap_or_default();
        if ended == "exit status: 0" && text.ends_with("done\n") {
            break;
        }
        let panic = text.lines().last().and_then(|line| line.strip_prefix("panic ")).map(str::to_owned);
        let index: u64 = text.lines().rev().find_map(|line| line.parse().ok()).unwrap_or(first);
        let name = if files::is_turn(index) {
            "a damaged file"
        } else {
            registry::ENTRIES[Draw::new(seed, index).below(registry::ENTRIES.len())].0
        };
        let what = panic.map_or(ended, |text| format!("panics: {text}"));
        found.push(format!("{name}: {what}; OXMLX_FUZZ_SEED={seed} OXMLX_FUZZ_ONLY={index}"));
        first = index + 1;
    }
    found
}

/// The threads of a process and whether they run (R) or wait (S): tells a long computation from a deadlock.
fn threads(process: u32) -> String {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else { return "no threads to see".into() };
    let stats = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    let short = stats.filter_map(|stat| {
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
        Some(format!("{name}: {}", rest.get(..1)?))
    });
    short.collect::<Vec<_>>().join(", ")
}

#[test]
fn calls_of_a_child_process() {
    let Ok(range) = std::env::var("OXMLX_FUZZ_CHILD") else { return };
    let numbers: Vec<u64> = range.split(' ').map(|n| n.parse().unwrap()).collect();
    child(Path::new(&std::env::var_os("OXMLX_FUZZ_LOG").unwrap()), numbers[0], numbers[1], numbers[2]);
}

#[test]
fn hostile_calls_end_in_values_or_errors() {
    let seed = number("OXMLX_FUZZ_SEED", 1);
    if let Ok(only) = std::env::var("OXMLX_FUZZ_ONLY") {
        let index = only.parse().unwrap();
        let outcome = if files::is_turn(index) { files::call(seed, index) } else { call(seed, index) };
        println!("{outcome:?}");
        return;
    }
    let found = findings(seed, number("OXMLX_FUZZ_CALLS", 3_000), number("OXMLX_FUZZ_MOST", 50) as usize);
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), found.join("\n"));
}

/// Forms of one operation: the table has at least one of them.
const FORMS: [&str; 10] =
    ["_all", "_axis", "_axes", "_n", "_each", "_unchecked", "_dtype", "_many", "_named", "_scalar"];

/// Functions of the bridge whose safe form has another name, or that the table can't have.
const OTHERWISE: &[(&str, &str)] = &[
    ("ops::qqmm", "on GPUs only"),
    ("ops::gather_qqmm", "on GPUs only"),
    ("ops::where", "where_"),
    ("random::seed", "state, not an array"),
];

#[test]
fn every_function_of_the_bridge_is_fuzzed() {
    let base = |name: &str| {
        let mut name = name;
        while let Some(shorter) = FORMS.iter().find_map(|form| name.strip_suffix(form)) {
            name = shorter;
        }
        name.to_owned()
    };
    let table: Vec<String> =
        registry::ENTRIES.iter().map(|(name, _)| base(name.split("::").nth(1).unwrap_or(name))).collect();
    let mut missing = Vec::new();
    for topic in ["einsum", "fast", "fft", "linalg", "ops", "random"] {
        let path = format!("{}/../oxmlx-sys/src/generated/{topic}.rs", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        for name in text.lines().filter_map(|line| line.strip_prefix("pub fn ")?.split('(').next()) {
            let full = format!("{topic}::{name}");
            let known = table.iter().any(|have| base(name).starts_with(have.as_str()));
            if !known && !OTHERWISE.iter().any(|(other, _)| *other == full) {
                missing.push(full);
            }
        }
    }
    assert!(missing.is_empty(), "add to tests/fuzz/registry.rs: {missing:?}");
}
