//! `cargo xtask sanitize`: the C++ shim and the unsafe Rust around it under AddressSanitizer and UndefinedBehaviorSanitizer.

use crate::error::Error;
use crate::{setup, tree};

pub(crate) const HELP: &str = "\
Usage: cargo xtask sanitize [--stress]

Builds the C++ shim with -fsanitize=address,undefined and the Rust crates with -Zsanitizer=address, and runs the tests of
oxmlx-sys, oxmlx-kernels and the parts of oxmlx that have unsafe code around them: storage, kernels, threads, transforms,
errors, files, and what MLX leaves undefined. MLX itself is the library of its wheel, without checks of its own: what it writes outside
its buffers is seen where it hits the memory of others. Linux; works with a stable compiler.

  --stress        the long form of each test: two threads wait for one array 100,000 times, and so on
";

/// Packages and the tests of each.
const TESTS: &[(&str, &[&str])] = &[
    ("oxmlx-sys", &["--tests"]),
    ("oxmlx-kernels", &["--lib", "--tests"]),
    (
        "oxmlx",
        &[
            "--test",
            "storage",
            "--test",
            "kernels",
            "--test",
            "threads",
            "--test",
            "transforms",
            "--test",
            "exceptions",
            "--test",
            "undefined",
            "--test",
            "files",
            "--test",
            "decoder",
            "--test",
            "cpu_kernels",
            "--test",
            "readback",
        ],
    ),
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    let (stress, rest): (Vec<String>, Vec<String>) = arguments.iter().cloned().partition(|word| word == "--stress");
    Error::unexpected(&rest)?;
    if cfg!(not(target_os = "linux")) {
        return Err(Error::Usage("the sanitizers are set up for Linux only".to_owned()));
    }
    tree::compiler()?;
    setup::ready(false)?;
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    for (package, tests) in TESTS {
        let mut command = tree::cargo(&["test", "--locked", "--target", &target, "--package", package]);
        command.args(*tests);
        // The sanitizer's flag is unstable; this lets a stable compiler take it. Build scripts and macros are built without, being the host's.
        command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address -Cforce-frame-pointers=yes");
        command.env("OXMLX_SANITIZE", "address,undefined");
        // Of its own, so that neither build makes the other stale.
        command.env("CARGO_TARGET_DIR", tree::target().join("sanitize"));
        // MLX keeps streams and caches for the whole process.
        command.env("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0");
        command.env("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1");
        // So much that transforms stay on it (oxmlx-sys/src/stack.rs): AddressSanitizer knows the stack that a thread began with, and takes an
        // exception on another one for an overflow.
        command.env("RUST_MIN_STACK", (1usize << 30).to_string());
        if !stress.is_empty() {
            command.env("OXMLX_STRESS", "1");
        }
        tree::run(&format!("the tests of {package} under the sanitizers"), &mut command)?;
    }
    Ok(())
}
