//! Steps in child processes, each told to a log before it is made: a signal, an abort, a panic, an early exit, a failed step or one
//! of more than 10 s is a finding.

use std::fs::{self, File};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A child that ends no step in so long hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number in a variable of the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")),
        Err(_) => default,
    }
}

/// A child's work, when this process is one: its first step, the one after its last, and what the parent told it.
pub(crate) fn work(step: impl Fn(u64, &str) -> Result<(), String>) {
    let Ok(task) = std::env::var("OXMLX_CHILD") else { return };
    let (range, told) = task.split_once(' ').unwrap();
    let (first, last) = range.split_once('-').unwrap();
    std::panic::set_hook(Box::new(|_| {}));
    let mut log = File::create(std::env::var_os("OXMLX_CHILD_LOG").unwrap()).unwrap();
    for index in first.parse::<u64>().unwrap()..last.parse().unwrap() {
        log.write_all(format!("{index}\n").as_bytes()).unwrap();
        let failed = match catch_unwind(AssertUnwindSafe(|| step(index, told))) {
            Ok(outcome) => outcome.err(),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default();
                Some(format!("panics: {text}"))
            }
        };
        if let Some(text) = failed {
            log.write_all(format!("failed {}\n", text.replace('\n', " ")).as_bytes()).unwrap();
            std::process::exit(3);
        }
    }
    // Told last: LAPACK ends a process with the exit status of success.
    log.write_all(b"done\n").unwrap();
}

/// Runs children, whose work is the test `test` of this binary, over all steps, and returns the steps that failed and how.
pub(crate) fn findings(test: &str, told: &str, steps: u64, most: usize) -> Vec<(u64, String)> {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (mut first, mut found) = (0, Vec::new());
    while first < steps && found.len() < most {
        let ended = run(test, &format!("{first}-{steps} {told}"), &log);
        let text = fs::read_to_string(&log).unwrap_or_default();
        if ended == "exit status: 0" && text.ends_with("done\n") {
            break;
        }
        let failed = text.lines().last().and_then(|line| line.strip_prefix("failed ")).map(str::to_owned);
        let index: u64 = text.lines().rev().find_map(|line| line.parse().ok()).unwrap_or(first);
        first = index + 1;
        // A busy machine may hold one step up: what hangs does so again, alone.
        if ended.starts_with("hangs") && run(test, &format!("{index}-{first} {told}"), &log) == "exit status: 0" {
            continue;
        }
        found.push((index, failed.unwrap_or(ended)));
    }
    found
}

/// Runs one child and tells how it ended.
fn run(test: &str, task: &str, log: &Path) -> String {
    // Memory that a step asks for is an error of the allocator, and not the end of the machine. A GPU's driver reserves more addresses
    // than that before it does anything.
    let addresses = if on_gpu() { "unlimited" } else { "6291456" };
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {addresses}; ulimit -c 0; exec \"$0\" \"$@\"")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1"])
        .env("OXMLX_CHILD", task)
        .env("OXMLX_CHILD_LOG", log)
        .env_remove("RUST_BACKTRACE")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut seen, mut since) = (0, Instant::now());
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.to_string();
        }
        let length = fs::metadata(log).map_or(0, |file| file.len());
        if length != seen {
            (seen, since) = (length, Instant::now());
        } else if since.elapsed() > PATIENCE {
            let threads = threads(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            return format!("hangs ({threads})");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn on_gpu() -> bool {
    oxmlx::Device::current().is_ok_and(|device| device == oxmlx::Device::Gpu)
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
