//! Backends, systems, and which of the pinned wheels a system can load.

use std::fmt;

use super::error::Error;
use super::pin::{Pin, Wheel};

/// What a build of MLX computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backend {
    /// The processor, on Linux.
    Cpu,
    /// NVIDIA GPUs by CUDA 12.
    Cuda12,
    /// NVIDIA GPUs by CUDA 13.
    Cuda13,
    /// Apple GPUs.
    Metal,
}

impl Backend {
    /// Every backend, in the order of the pin.
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Cuda12, Self::Cuda13, Self::Metal];

    /// The name used in `OXMLX_BACKEND`, in the pin and as folder name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda12 => "cuda12",
            Self::Cuda13 => "cuda13",
            Self::Metal => "metal",
        }
    }

    /// The backend of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.name() == name)
    }

    /// What `OXMLX_BACKEND` asks for; without it Metal on Apple silicon and the CPU elsewhere.
    ///
    /// # Errors
    /// [`Error::Variable`] for any other name.
    pub fn wanted(variable: Option<&str>, host: &Host) -> Result<Self, Error> {
        match variable {
            Some(name) => Self::parse(name).ok_or_else(|| Error::Variable {
                name: "OXMLX_BACKEND",
                value: name.to_owned(),
                allowed: "cpu, cuda12, cuda13 or metal",
            }),
            None if (host.os, host.arch) == (Os::MacOs, Arch::Aarch64) => Ok(Self::Metal),
            None => Ok(Self::Cpu),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Operating systems that MLX publishes wheels for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Os {
    /// Linux with glibc.
    Linux,
    /// macOS.
    MacOs,
}

impl Os {
    /// The file name of MLX's library.
    pub fn library(self) -> &'static str {
        match self {
            Self::Linux => "libmlx.so",
            Self::MacOs => "libmlx.dylib",
        }
    }

    /// What a system version counts.
    fn measure(self) -> &'static str {
        match self {
            Self::Linux => "glibc",
            Self::MacOs => "macOS",
        }
    }
}

/// Processors that MLX publishes wheels for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
    /// Any other: no wheel, but `MLX_PREFIX` may point to an own build.
    Other,
}

/// The system to build for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// Its operating system.
    pub os: Os,
    /// Its processor.
    pub arch: Arch,
    /// Version of glibc (Linux) or of macOS, where known.
    pub version: Option<(u32, u32)>,
    /// A Linux without glibc, which the wheels need.
    pub musl: bool,
}

impl Host {
    /// From Rust's names of operating system, processor and environment, with the version left unknown.
    ///
    /// # Errors
    /// [`Error::Platform`] where MLX does not run.
    pub fn new(os: &str, arch: &str, env: &str) -> Result<Self, Error> {
        let os = match os {
            "linux" => Os::Linux,
            "macos" => Os::MacOs,
            other => return Err(Error::Platform(other.to_owned())),
        };
        let arch = match arch {
            "x86_64" => Arch::X86_64,
            "aarch64" => Arch::Aarch64,
            _ => Arch::Other,
        };
        Ok(Self { os, arch, version: None, musl: env == "musl" })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let os = match (self.os, self.musl) {
            (Os::MacOs, _) => "macOS",
            (Os::Linux, false) => "Linux",
            (Os::Linux, true) => "Linux (musl)",
        };
        let arch = match self.arch {
            Arch::X86_64 => "x86_64",
            Arch::Aarch64 => "arm64",
            Arch::Other => "of another processor",
        };
        write!(f, "{os} {arch}")?;
        match self.version {
            Some((major, minor)) => write!(f, " with {} {major}.{minor}", self.os.measure()),
            None => Ok(()),
        }
    }
}

/// The platform tag of a wheel: the oldest system that can load it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// The tag as pip spells it.
    pub tag: String,
    /// Its operating system.
    pub os: Os,
    /// Its processor.
    pub arch: Arch,
    /// Least version of glibc or macOS.
    pub minimum: (u32, u32),
}

impl Platform {
    /// Reads `manylinux_2_35_x86_64` or `macosx_14_0_arm64`.
    pub fn parse(tag: &str) -> Option<Self> {
        let mut parts = tag.splitn(4, '_');
        let os = match parts.next()? {
            "manylinux" => Os::Linux,
            "macosx" => Os::MacOs,
            _ => return None,
        };
        let minimum = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let arch = match parts.next()? {
            "x86_64" => Arch::X86_64,
            "aarch64" | "arm64" => Arch::Aarch64,
            _ => return None,
        };
        Some(Self { tag: tag.to_owned(), os, arch, minimum })
    }

    /// Why the system can't load a wheel of this platform; `None` where it can, or where that can't be known.
    pub fn refuses(&self, host: &Host) -> Option<String> {
        if (self.os, self.arch, false) != (host.os, host.arch, host.musl) {
            return Some(format!("{} is for another system than {host}", self.tag));
        }
        let (major, minor) = self.minimum;
        host.version
            .is_some_and(|version| version < self.minimum)
            .then(|| format!("{} needs {} {major}.{minor} or newer, this is {host}", self.tag, self.os.measure()))
    }
}

/// The newest wheel of the backend that the system can load; the one that asks for least where its version is unknown.
///
/// # Errors
/// [`Error::NoWheel`] with the reason against each wheel of the backend.
pub fn choose<'a>(pin: &'a Pin, backend: Backend, host: &Host) -> Result<&'a Wheel, Error> {
    let (mut usable, mut passed_over) = (Vec::new(), Vec::new());
    for wheel in pin.wheels.iter().filter(|wheel| wheel.backend == backend) {
        match wheel.platform.refuses(host) {
            None => usable.push(wheel),
            Some(reason) => passed_over.push(reason),
        }
    }
    let best = match host.version {
        Some(_) => usable.into_iter().max_by_key(|wheel| wheel.platform.minimum),
        None => usable.into_iter().min_by_key(|wheel| wheel.platform.minimum),
    };
    best.ok_or_else(|| Error::NoWheel { wanted: format!("backend {backend} on {host}"), passed_over })
}

/// The first `N.M` in a text such as `glibc 2.36` or `15.3.1`.
pub fn version_in(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let mut numbers = word.split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    })
}
