//! A folder that may hold a build of MLX: what it has, which release it is, and what it computes on.

use std::fmt;
use std::path::{Path, PathBuf};

use super::platform::{Backend, Os};
use super::probe;

/// A usable build of MLX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The folder itself, `mlx` of an unpacked wheel.
    pub root: PathBuf,
    /// Its headers: holds `mlx/mlx.h`.
    pub include: PathBuf,
    /// The folder of the library.
    pub lib: PathBuf,
    /// The library.
    pub library: PathBuf,
    /// Folders beside the prefix that the library names by a relative path: `mlx_cpu.libs`, `nvidia`.
    pub beside: Vec<PathBuf>,
    /// The release by its header, `major.minor.patch`.
    pub version: String,
    /// What the library computes on.
    pub backend: Backend,
}

/// Why a place was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The variable is not set.
    NotSet,
    /// The path is relative.
    NotAbsolute,
    /// There is no such folder.
    NoFolder,
    /// Neither the folder nor the program that would know it is there.
    NotInstalled,
    /// `include/mlx/version.h` is missing or has no version in it.
    NoHeaders,
    /// The folder above the prefix was named.
    Above(PathBuf),
    /// There is no shared library; the static one may be there.
    NoLibrary {
        /// The file that was looked for.
        name: &'static str,
        /// Whether `libmlx.a` is there.
        archive: bool,
    },
    /// Another release.
    Version {
        /// What is there.
        found: String,
        /// What is pinned.
        expected: String,
    },
    /// Another backend.
    Backend {
        /// What is there.
        found: Backend,
        /// What is asked for.
        expected: Backend,
    },
    /// The folder was made from a wheel that this system can't load.
    Unloadable(String),
    /// An unpacked wheel without the note that setup leaves last.
    Unfinished,
    /// Only asked where the build is for this machine.
    OtherMachine,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSet => f.write_str("not set"),
            Self::NotAbsolute => f.write_str("not an absolute path"),
            Self::NoFolder => f.write_str("no such folder"),
            Self::NotInstalled => f.write_str("not installed"),
            Self::NoHeaders => f.write_str("no include/mlx/version.h with a version in it"),
            Self::Above(inner) => write!(f, "not a prefix itself, but {} is", inner.display()),
            Self::NoLibrary { name, archive: false } => write!(f, "no lib/{name}"),
            Self::NoLibrary { name, archive: true } => {
                write!(f, "libmlx.a only, no {name}: build MLX with -DBUILD_SHARED_LIBS=ON")
            }
            Self::Version { found, expected } => write!(f, "is MLX {found}, expected {expected}"),
            Self::Backend { found, expected } => {
                write!(f, "is a {found} build and {expected} is wanted (OXMLX_BACKEND={found} takes it)")
            }
            Self::Unloadable(why) => f.write_str(why),
            Self::Unfinished => f.write_str("not complete: run `cargo xtask setup` again"),
            Self::OtherMachine => f.write_str("not asked: this build is for another machine"),
        }
    }
}

impl Prefix {
    /// Looks at a folder.
    ///
    /// # Errors
    /// The [`Refusal`] that applies first: folder, headers, library. Version and backend are told, not judged.
    pub fn inspect(root: &Path, os: Os) -> Result<Self, Refusal> {
        if !root.is_absolute() {
            return Err(Refusal::NotAbsolute);
        }
        if !root.is_dir() {
            return Err(Refusal::NoFolder);
        }
        let include = root.join("include");
        let header = |root: &Path| std::fs::read_to_string(root.join("include/mlx/version.h")).ok();
        let Some(version) = header(root).as_deref().and_then(version_in_header) else {
            let inner = root.join("mlx");
            return Err(if header(&inner).is_some() { Refusal::Above(inner) } else { Refusal::NoHeaders });
        };
        let name = os.library();
        let folders = ["lib", "lib64"].map(|folder| root.join(folder));
        let Some(lib) = folders.iter().find(|lib| lib.join(name).is_file()) else {
            let archive = folders.iter().any(|lib| lib.join("libmlx.a").is_file());
            return Err(Refusal::NoLibrary { name, archive });
        };
        let library = lib.join(name);
        let beside = folders_beside(root);
        let backend = backend_of(lib, &library, &beside);
        Ok(Self { root: root.to_path_buf(), include, lib: lib.clone(), library, beside, version, backend })
    }

    /// The same, for another release or backend a refusal.
    ///
    /// # Errors
    /// [`Refusal::Version`], [`Refusal::Backend`].
    pub fn expect(self, version: &str, backend: Option<Backend>) -> Result<Self, Refusal> {
        if self.version != version {
            return Err(Refusal::Version { found: self.version, expected: version.to_owned() });
        }
        match backend {
            Some(expected) if expected != self.backend => Err(Refusal::Backend { found: self.backend, expected }),
            _ => Ok(self),
        }
    }

    /// Metal's compiled kernels, where the build has them.
    pub fn metallib(&self) -> PathBuf {
        self.lib.join("mlx.metallib")
    }
}

/// `major.minor.patch` by the three macros of `mlx/version.h`.
pub fn version_in_header(text: &str) -> Option<String> {
    let number = |name: &str| {
        text.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next() == Some("#define") && words.next() == Some(name))
                .then(|| words.next()?.parse::<u32>().ok())?
        })
    };
    let (major, minor, patch) =
        (number("MLX_VERSION_MAJOR")?, number("MLX_VERSION_MINOR")?, number("MLX_VERSION_PATCH")?);
    Some(format!("{major}.{minor}.{patch}"))
}

/// The folders that a wheel's library finds by `$ORIGIN/../../NAME`.
fn folders_beside(root: &Path) -> Vec<PathBuf> {
    let Some(entries) = root.parent().and_then(|parent| std::fs::read_dir(parent).ok()) else { return Vec::new() };
    let wanted = |name: &str| name == "nvidia" || (name.starts_with("mlx") && name.ends_with(".libs"));
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(wanted))
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

/// By the files beside the library where they tell, else by the CUDA release that the library itself names.
fn backend_of(lib: &Path, library: &Path, beside: &[PathBuf]) -> Backend {
    if lib.join("mlx.metallib").is_file() {
        return Backend::Metal;
    }
    let has = |name: &str| beside.iter().any(|path| path.ends_with(name));
    let needs = |name: &str| probe::file_contains(library, name.as_bytes()).unwrap_or(false);
    if has("mlx_cpu.libs") {
        Backend::Cpu
    } else if has("mlx_cuda_12.libs") || needs("libcublasLt.so.12") {
        Backend::Cuda12
    } else if has("mlx_cuda_13.libs") || needs("libcublasLt.so.13") {
        Backend::Cuda13
    } else {
        Backend::Cpu
    }
}
