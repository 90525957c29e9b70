//! `cargo xtask macos-check`: every crate, the program and the tests, built and linked for arm64 macOS on Linux, so that no code under
//! `cfg(target_os = "macos")` is ever unchecked.
//!
//! C++ compiler, archiver and linker are zig's; libmlx is that of the pinned macOS wheel; Rust's standard library is built from its
//! sources where the toolchain has no compiled one for macOS.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::error::Error;
use crate::macos_headers;
use crate::mlx::platform::Os;
use crate::mlx::world::{self, System};
use crate::python::{Environment, ZIG};
use crate::tree;

pub(crate) const HELP: &str = "\
Usage: cargo xtask macos-check

Builds and links every crate, the program, tests, examples and benches for aarch64-apple-darwin on
Linux, with zig's compiler and linker from PyPI and libmlx of the pinned macOS wheel, into
target/macos-check. Uses the first Rust that can: this one, if it has that target or the sources
of the standard library; Debian's (packages rustc-web, cargo-web and rust-web-src), which root
gets installed. On a Mac there is nothing to do: `cargo test` itself does that.
";

const TARGET: &str = "aarch64-apple-darwin";

/// The oldest macOS that there is a wheel of MLX for.
const DEPLOYMENT: &str = "14.0";

/// What Debian calls a Rust that is new enough, with the sources of its standard library.
const PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// Optimised for tests, for which they are not run here.
const UNOPTIMISED: [&str; 8] =
    ["oxmlx-kernels", "oxmlx-lm", "tokenizers", "fancy-regex", "half", "sha2", "zlib-rs", "xtask"];

/// zig's libSystem has no iconv, which the crate `libc` names. Nothing here calls it.
const ICONV: &str = "--- !tapi-tbd
tbd-version: 4
targets: [ arm64-macos ]
install-name: '/usr/lib/libiconv.2.dylib'
exports:
  - targets: [ arm64-macos ]
    symbols: [ _iconv, _iconv_close, _iconv_open ]
...
";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    Error::unexpected(arguments)?;
    check()
}

/// Builds and links all for macOS, and looks whether a program for it came out.
pub(crate) fn check() -> Result<(), Error> {
    let host = world::this_host(&System)?;
    if host.os == Os::MacOs {
        eprintln!("macos-check: this is a Mac: `cargo test` builds for it");
        return Ok(());
    }
    let start = Instant::now();
    let rust = Rust::find()?;
    let folder = tree::target().join("macos-check");
    let prefix = macos_headers::prefix(&host)?;
    let zig = Environment::ready("zig", &[&ZIG])?;
    let tools = Tools::lay(&folder, &zig)?;
    let mut build = rust.cargo();
    build.args(["build", "--target", TARGET, "--workspace", "--exclude", "xtask", "--all-targets", "--locked"]);
    for package in UNOPTIMISED {
        build.arg("--config").arg(format!("profile.dev.package.{package}.opt-level=0"));
    }
    build.env("CARGO_TARGET_DIR", &folder).env("CARGO_PROFILE_DEV_DEBUG", "0").env("MLX_PREFIX", prefix);
    build.env("MACOSX_DEPLOYMENT_TARGET", DEPLOYMENT).env("SDKROOT", &tools.library);
    build.env_remove("OXMLX_BACKEND").env_remove("RUSTFLAGS").env_remove("RUSTUP_TOOLCHAIN");
    for (variable, tool) in [("CC", "cc"), ("CXX", "c++"), ("AR", "ar")] {
        build.env(format!("{variable}_aarch64_apple_darwin"), tools.folder.join(tool));
    }
    build.env("CARGO_TARGET_AARCH64_APPLE_DARWIN_LINKER", tools.folder.join("cc"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([tools.folder.clone()]);
    build.env("PATH", std::env::join_paths(folders).unwrap_or(path.clone()));
    tree::run("cargo build for macOS", &mut build)?;
    let program = folder.join(TARGET).join("debug/oxmlx");
    if !is_for_arm_mac(&program)? {
        return Err(Error::Bridge(format!("{} is no program for arm64 macOS", program.display())));
    }
    eprintln!("macos-check: built and linked by {} in {:.0} s", rust.name(), start.elapsed().as_secs_f64());
    Ok(())
}

/// A Rust that builds for macOS.
enum Rust {
    /// The one that runs this program, with a compiled standard library for macOS.
    ThisWithTarget,
    /// The same, with the sources of the standard library.
    ThisWithSources,
    Debian,
}

impl Rust {
    fn find() -> Result<Self, Error> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        if let Some(root) = sysroot(&rustc) {
            if root.join("lib/rustlib").join(TARGET).join("lib").is_dir() {
                return Ok(Self::ThisWithTarget);
            }
            if has_sources(&root) {
                return Ok(Self::ThisWithSources);
            }
        }
        if !debian_is_there() {
            install()?;
        }
        if debian_is_there() { Ok(Self::Debian) } else { Err(missing()) }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::ThisWithTarget => "this Rust",
            Self::ThisWithSources => "this Rust, which built its standard library",
            Self::Debian => "Debian's Rust, which built its standard library",
        }
    }

    fn cargo(&self) -> Command {
        let mut command = match self {
            Self::ThisWithTarget | Self::ThisWithSources => tree::cargo(&[]),
            Self::Debian => {
                let mut command = Command::new("/usr/bin/cargo");
                command.current_dir(tree::root()).stdin(Stdio::null()).env("RUSTC", "/usr/bin/rustc");
                // Those of the Rust that runs this would be asked for the wrong compiler.
                for variable in ["CARGO", "RUSTDOC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "LD_LIBRARY_PATH"] {
                    command.env_remove(variable);
                }
                command
            }
        };
        if !matches!(self, Self::ThisWithTarget) {
            // `-Z` is for nightly compilers, and for who says that he knows.
            command.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std");
        }
        command
    }
}

fn sysroot(rustc: impl AsRef<std::ffi::OsStr>) -> Option<PathBuf> {
    let output = Command::new(rustc).args(["--print", "sysroot"]).current_dir(tree::root()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(PathBuf::from(text.trim())).filter(|root| !root.as_os_str().is_empty())
}

fn has_sources(root: &Path) -> bool {
    root.join("lib/rustlib/src/rust/library/Cargo.lock").is_file()
}

fn debian_is_there() -> bool {
    Path::new("/usr/bin/cargo").is_file() && sysroot("/usr/bin/rustc").is_some_and(|root| has_sources(&root))
}

/// Installs Debian's Rust where there is a Debian, and somebody who may.
fn install() -> Result<(), Error> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if !root || !Path::new("/usr/bin/apt-get").is_file() {
        return Err(missing());
    }
    eprintln!("macos-check: installing {}", PACKAGES.join(", "));
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        command
    };
    tree::run("apt-get update", &mut apt(&["update", "-qq"]))?;
    let mut install = apt(&["install", "-y", "-qq", "--no-install-recommends"]);
    tree::run("apt-get install", install.args(PACKAGES))
}

fn missing() -> Error {
    Error::Tool {
        tool: "a Rust that builds for aarch64-apple-darwin".to_owned(),
        fix: "rustup target add aarch64-apple-darwin, or rustup component add rust-src, or (Debian, as root) \
              apt-get install rustc-web cargo-web rust-web-src",
    }
}

/// The programs that cargo is given as compiler, archiver and linker.
struct Tools {
    folder: PathBuf,
    library: PathBuf,
}

impl Tools {
    fn lay(folder: &Path, zig: &Environment) -> Result<Self, Error> {
        let tools = Self { folder: folder.join("tools"), library: folder.join("tools/lib") };
        fs::create_dir_all(&tools.library).map_err(Error::io("creating", &tools.library))?;
        let iconv = tools.library.join("libiconv.tbd");
        fs::write(&iconv, ICONV).map_err(Error::io("writing", &iconv))?;
        let python = zig.python().display().to_string();
        for (name, script) in [
            ("cc", compiler(&python, "cc", &tools.library)),
            ("c++", compiler(&python, "c++", &tools.library)),
            ("ar", format!("#!/bin/sh\nexec '{python}' -m ziglang ar \"$@\"\n")),
            // Debian's Rust has none, and calls it to strip programs that have nothing to strip.
            ("rust-objcopy", "#!/bin/sh\n".to_owned()),
        ] {
            let path = tools.folder.join(name);
            fs::write(&path, script).map_err(Error::io("writing", &path))?;
            tree::run("chmod", Command::new("chmod").arg("+x").arg(&path))?;
        }
        Ok(tools)
    }
}

/// A script that calls zig's compiler without the options that are Apple's own: its target says the same. By itself zig adds the
/// sanitizer to what is not optimised.
fn compiler(python: &str, tool: &str, library: &Path) -> String {
    format!(
        r#"#!/bin/sh
skip=
for word in "$@"; do
    shift
    if [ -n "$skip" ]; then skip=; continue; fi
    case "$word" in
        -arch) skip=1 ;;
        -mmacosx-version-min=* | -mmacos-version-min=* | --target=*) ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec '{python}' -m ziglang {tool} -target aarch64-macos.{DEPLOYMENT}.0 -fno-sanitize=undefined -L'{}' "$@"
"#,
        library.display()
    )
}

/// Whether a file starts as a Mach-O file for arm64 does.
fn is_for_arm_mac(program: &Path) -> Result<bool, Error> {
    let mut start = [0; 8];
    let mut file = fs::File::open(program).map_err(Error::io("opening", program))?;
    file.read_exact(&mut start).map_err(Error::io("reading", program))?;
    // MH_MAGIC_64 and CPU_TYPE_ARM64, as <mach-o/loader.h> and <mach/machine.h> have them.
    Ok(start == [0xcf, 0xfa, 0xed, 0xfe, 0x0c, 0x00, 0x00, 0x01])
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::{compiler, is_for_arm_mac};

    #[test]
    fn the_compilers_script_drops_apples_own_options() {
        // `echo` in place of the interpreter shows what would be run.
        let script = compiler("echo", "cc", Path::new("/lib"));
        let words = ["-arch", "arm64", "-O2", "-mmacosx-version-min=14.0.0", "a b.c", "-o", "x"];
        let output = Command::new("sh").arg("-c").arg(script).arg("cc").args(words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            text.trim(),
            "-m ziglang cc -target aarch64-macos.14.0.0 -fno-sanitize=undefined -L/lib -O2 a b.c -o x"
        );
    }

    #[test]
    fn a_program_of_this_machine_is_told_from_one_for_a_mac() {
        let folder = std::env::temp_dir().join(format!("oxmlx-xtask-macho-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("program");
        std::fs::write(&path, b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01rest").unwrap();
        assert!(is_for_arm_mac(&path).unwrap());
        std::fs::write(&path, b"\x7fELF\x02\x01\x01\x00").unwrap();
        assert!(!is_for_arm_mac(&path).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
