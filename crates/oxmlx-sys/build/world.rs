//! The outside as the other modules see it: environment variables, programs to ask, and the system to build for.
//! The real one is [`System`]; tests hand in their own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::error::Error;
use super::platform::{Host, Os};

/// Environment variables and programs.
pub trait World {
    /// The variable's value; `None` where it is unset, empty or not UTF-8.
    fn var(&self, name: &str) -> Option<String>;

    /// What the program prints, trimmed; `None` where it is missing or fails.
    fn ask(&self, program: &str, arguments: &[&str]) -> Option<String>;
}

/// The world of this process.
#[derive(Debug, Clone, Copy)]
pub struct System;

impl World for System {
    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// The folder that everything fetched lies under, shared by all checkouts of a user: `OXMLX_HOME`, else `oxmlx` in the
/// platform's cache folder.
///
/// # Errors
/// [`Error::Variable`] for a relative `OXMLX_HOME` (the build script and the shell have different current folders),
/// [`Error::NoCache`] where there is no `HOME` either.
pub fn cache(world: &dyn World, os: Os) -> Result<PathBuf, Error> {
    if let Some(value) = world.var("OXMLX_HOME") {
        let path = PathBuf::from(&value);
        if !path.is_absolute() {
            return Err(Error::Variable { name: "OXMLX_HOME", value, allowed: "an absolute path" });
        }
        return Ok(path);
    }
    let absolute = |name| world.var(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = match os {
        Os::MacOs => absolute("HOME").map(|home| home.join("Library/Caches")),
        Os::Linux => absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache"))),
    };
    base.map(|base| base.join("oxmlx")).ok_or(Error::NoCache)
}

/// The machine this runs on, its system's version included.
///
/// # Errors
/// [`Error::Platform`] where MLX does not run.
pub fn this_host(world: &dyn World) -> Result<Host, Error> {
    let env = if cfg!(target_env = "musl") { "musl" } else { "" };
    let mut host = Host::new(std::env::consts::OS, std::env::consts::ARCH, env)?;
    host.version = match host.os {
        Os::Linux => world.ask("getconf", &["GNU_LIBC_VERSION"]),
        Os::MacOs => world.ask("sw_vers", &["-productVersion"]),
    }
    .and_then(|text| super::platform::version_in(&text));
    Ok(host)
}
