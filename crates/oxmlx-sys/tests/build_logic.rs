//! The modules that find and fetch MLX, tested apart from any build: with folders, variables, programs and wheels made
//! by the tests, and never the network.

#[path = "../build/mod.rs"]
mod mlx;

#[path = "build_logic/pin.rs"]
mod pin;
#[path = "build_logic/platform.rs"]
mod platform;
#[path = "build_logic/prefix.rs"]
mod prefix;
#[path = "build_logic/probe.rs"]
mod probe;
#[path = "build_logic/provision.rs"]
mod provision;
#[path = "build_logic/resolve.rs"]
mod resolve;

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use mlx::platform::{Arch, Host, Os};
use mlx::world::World;

/// A world made of tables.
#[derive(Default)]
struct Made {
    variables: HashMap<&'static str, String>,
    programs: HashMap<&'static str, String>,
}

impl Made {
    fn with(mut self, name: &'static str, value: impl AsRef<Path>) -> Self {
        self.variables.insert(name, value.as_ref().display().to_string());
        self
    }

    fn answering(mut self, program: &'static str, answer: impl AsRef<Path>) -> Self {
        self.programs.insert(program, answer.as_ref().display().to_string());
        self
    }
}

impl World for Made {
    fn var(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn ask(&self, program: &str, _: &[&str]) -> Option<String> {
        self.programs.get(program).cloned()
    }
}

const LINUX: Host = Host { os: Os::Linux, arch: Arch::X86_64, version: Some((2, 36)), musl: false };
const MAC: Host = Host { os: Os::MacOs, arch: Arch::Aarch64, version: Some((15, 3)), musl: false };

/// Lays a folder that looks like an installed MLX.
fn lay_prefix(root: &Path, version: &str, library: &str) {
    let [major, minor, patch] = version.split('.').collect::<Vec<_>>()[..] else { panic!("version {version}") };
    let header = format!(
        "#pragma once\n#define MLX_VERSION_MAJOR {major}\n#define MLX_VERSION_MINOR {minor}\n#define MLX_VERSION_PATCH {patch}\n\
         #define MLX_VERSION_NUMERIC \\\n  (100000 * MLX_VERSION_MAJOR)\n"
    );
    write(&root.join("include/mlx/version.h"), header.as_bytes());
    write(&root.join("lib").join(library), b"\x7fELF not really");
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("folder");
    fs::write(path, bytes).expect("file");
}
