//! Where MLX is taken from: `MLX_PREFIX`, the user's cache folder, an installed Python package, Homebrew; in this order.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use super::error::Error;
use super::pin::Pin;
use super::platform::{Backend, Host, Os, Platform};
use super::prefix::{Prefix, Refusal};
use super::world::{self, World};

/// The file that setup writes last into a folder made from a wheel: the wheel's name and its hash.
pub const NOTE: &str = "oxmlx-wheel.txt";

/// Environment variables that decide where MLX comes from.
pub const VARIABLES: [&str; 6] =
    ["MLX_PREFIX", "OXMLX_BACKEND", "OXMLX_HOME", "XDG_CACHE_HOME", "VIRTUAL_ENV", "MACOSX_DEPLOYMENT_TARGET"];

/// Prints the folders of Python's `mlx` package, one a line.
const ASK_PYTHON: &str =
    "import importlib.util as u; s = u.find_spec('mlx'); print('\\n'.join(s.submodule_search_locations) if s else '')";

/// Who named a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The variable `MLX_PREFIX`.
    Variable,
    /// The user's cache folder.
    Cache,
    /// The `mlx` package of `python3`.
    Python,
    /// `brew --prefix mlx`.
    Homebrew,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Variable => "MLX_PREFIX",
            Self::Cache => "cache",
            Self::Python => "package mlx of python3",
            Self::Homebrew => "brew --prefix mlx",
        })
    }
}

/// A place that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Who named it.
    pub origin: Origin,
    /// The folder, where one was named.
    pub path: Option<PathBuf>,
    /// What it holds, or why it was passed over.
    pub verdict: Result<Prefix, Refusal>,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if let Some(path) = &self.path {
            write!(f, " {}", path.display())?;
        }
        match &self.verdict {
            Ok(prefix) => write!(f, ": MLX {} {}", prefix.version, prefix.backend),
            Err(refusal) => write!(f, ": {refusal}"),
        }
    }
}

/// What to look for and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The release and its wheels.
    pub pin: &'a Pin,
    /// The system to build for.
    pub host: Host,
    /// The backend that is asked for.
    pub backend: Backend,
    /// Whether that system is this machine: only then do Python and Homebrew know anything.
    pub native: bool,
}

impl Search<'_> {
    /// The folder that a wheel of this search is unpacked into; the prefix is `mlx` in it.
    ///
    /// # Errors
    /// As [`world::cache`].
    pub fn cache_folder(&self, world: &dyn World) -> Result<PathBuf, Error> {
        Ok(world::cache(world, self.host.os)?.join("mlx").join(&self.pin.version).join(self.backend.name()))
    }

    /// The first usable place, and those passed over before it.
    ///
    /// # Errors
    /// [`Error::NotFound`] with the whole report; nothing else is tried once `MLX_PREFIX` is set.
    pub fn run(&self, world: &dyn World) -> Result<(Prefix, Vec<Candidate>), Error> {
        let mut tried = Vec::new();
        for origin in [Origin::Variable, Origin::Cache, Origin::Python, Origin::Homebrew] {
            if origin == Origin::Homebrew && self.host.os != Os::MacOs {
                continue;
            }
            for candidate in self.candidates(origin, world)? {
                if let Ok(prefix) = &candidate.verdict {
                    return Ok((prefix.clone(), tried));
                }
                let decided = origin == Origin::Variable && candidate.verdict != Err(Refusal::NotSet);
                tried.push(candidate);
                if decided {
                    return Err(Error::NotFound(self.report(&tried)));
                }
            }
        }
        Err(Error::NotFound(self.report(&tried)))
    }

    /// What one origin has to offer: one candidate, or several for Python, whose package can span folders.
    fn candidates(&self, origin: Origin, world: &dyn World) -> Result<Vec<Candidate>, Error> {
        let none = |refusal| vec![Candidate { origin, path: None, verdict: Err(refusal) }];
        let judge = |path: PathBuf| Candidate { origin, verdict: self.judge(origin, &path), path: Some(path) };
        Ok(match origin {
            Origin::Variable => {
                world.var("MLX_PREFIX").map_or_else(|| none(Refusal::NotSet), |path| vec![judge(path.into())])
            }
            Origin::Cache => vec![judge(self.cache_folder(world)?.join("mlx"))],
            Origin::Python | Origin::Homebrew if !self.native => none(Refusal::OtherMachine),
            Origin::Python => match world.ask("python3", &["-c", ASK_PYTHON]).filter(|answer| !answer.is_empty()) {
                Some(answer) => answer.lines().map(|line| judge(line.into())).collect(),
                None => none(Refusal::NotInstalled),
            },
            Origin::Homebrew => match world.ask("brew", &["--prefix", "mlx"]).filter(|answer| !answer.is_empty()) {
                Some(answer) => vec![judge(answer.into())],
                None => none(Refusal::NotInstalled),
            },
        })
    }

    fn judge(&self, origin: Origin, path: &Path) -> Result<Prefix, Refusal> {
        let prefix = Prefix::inspect(path, self.host.os)?;
        if origin == Origin::Cache {
            let note = path.parent().and_then(|folder| std::fs::read_to_string(folder.join(NOTE)).ok());
            let tag = note.as_deref().and_then(|note| note.split_whitespace().next()).and_then(tag_of);
            match tag.ok_or(Refusal::Unfinished)?.refuses(&self.host) {
                Some(why) => return Err(Refusal::Unloadable(why)),
                None => return prefix.expect(&self.pin.version, None),
            }
        }
        prefix.expect(&self.pin.version, (origin != Origin::Variable).then_some(self.backend))
    }

    /// What was tried, and the one-line fixes.
    fn report(&self, tried: &[Candidate]) -> String {
        let Self { pin, backend, .. } = self;
        let package = match backend {
            Backend::Cpu => "mlx[cpu]",
            Backend::Cuda12 => "mlx[cuda12]",
            Backend::Cuda13 => "mlx[cuda13]",
            Backend::Metal => "mlx",
        };
        if let [.., last @ Candidate { origin: Origin::Variable, path: Some(_), .. }] = tried {
            return format!(
                "{last}\nset it to a folder with include/mlx and lib/{} of MLX {}, or unset it",
                self.host.os.library(),
                pin.version
            );
        }
        let mut text = format!("MLX {} for backend {backend} was not found. Tried:\n", pin.version);
        for candidate in tried {
            let _ = writeln!(text, "  {candidate}");
        }
        let _ = write!(
            text,
            "Any one of these helps:\n\
             \x20 cargo xtask setup                     in a checkout of oxmlx: fetches the pinned wheel, checks its hash\n\
             \x20 python3 -m pip install '{package}=={version}'\n\
             \x20 MLX_PREFIX=/path/to/mlx               an own build of MLX {version}: include/mlx and lib/{library}\n\
             \x20 feature `download-mlx` of oxmlx-sys   lets the build fetch the pinned wheel itself",
            version = pin.version,
            library = self.host.os.library(),
        );
        text
    }
}

/// The platform that a wheel's file name ends in.
fn tag_of(file: &str) -> Option<Platform> {
    Platform::parse(file.strip_suffix(".whl")?.rsplit('-').next()?)
}
