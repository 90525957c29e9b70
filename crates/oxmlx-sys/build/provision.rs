//! Fetching a pinned wheel and unpacking it, all or nothing.
//!
//! Everything happens in a temporary folder beside the target and ends in one rename, so that a target is complete or
//! not there. A lock file keeps two setups from fetching the same thing; where the file system has no locks, the later
//! rename finds the target in place and is content.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use super::error::Error;
use super::pin::{Download, Model, Wheel};
use super::resolve::NOTE;

/// What had to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    AlreadyThere,
    /// It was fetched, checked and put in place.
    Provisioned,
}

/// Fetches a wheel into a folder and gives its path there.
pub trait Fetch {
    /// # Errors
    /// [`Error::Tool`] where it can't be had.
    fn fetch(&self, download: &Download, folder: &Path) -> Result<PathBuf, Error>;
}

/// Fetches with `python3 -m pip download`, which honours the user's own configuration of pip.
#[derive(Debug, Clone, Copy)]
pub struct Pip;

impl Fetch for Pip {
    fn fetch(&self, download: &Download, folder: &Path) -> Result<PathBuf, Error> {
        let no_python = |what: String| Error::Tool {
            tool: "python3",
            what,
            fix: "install Python 3 with pip (Debian: apt-get install python3-pip; macOS: brew install python)",
        };
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]);
        // With a platform given pip asks for binary packages only and for the Python to resolve for.
        pip.args(["--no-deps", "--only-binary=:all:", "--python-version", "3.12"]);
        // A wheel may name several platforms: it is for each of them.
        for platform in download.tag().split('.') {
            pip.args(["--platform", platform]);
        }
        pip.arg("--dest").arg(folder).arg(format!("{}=={}", download.package, download.version));
        let output = pip.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => no_python("is not installed".to_owned()),
            _ => no_python(error.to_string()),
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            if said.contains("No module named pip") {
                return Err(no_python("has no pip".to_owned()));
            }
            let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            return Err(Error::Tool {
                tool: "pip",
                what: format!("could not fetch {}: {}", download.file, said.last().unwrap_or(&"no message")),
                fix: "check the network and `python3 -m pip config list`",
            });
        }
        let file = folder.join(&download.file);
        if file.is_file() {
            return Ok(file);
        }
        Err(Error::Tool {
            tool: "pip",
            what: format!("fetched something other than {}", download.file),
            fix: "check `python3 -m pip config list`",
        })
    }
}

/// Whether the folder was made from this very wheel and still has its library.
pub fn is_there(wheel: &Wheel, folder: &Path) -> bool {
    let note = fs::read_to_string(folder.join(NOTE)).is_ok_and(|note| note == note_of(wheel));
    note && folder.join("mlx/lib").join(wheel.platform.os.library()).is_file()
        && folder.join("mlx/include/mlx/version.h").is_file()
}

/// Makes `folder` the unpacked wheel: `mlx/`, the libraries beside it, and the note that says what it was made from.
///
/// # Errors
/// [`Error::Tool`], [`Error::Hash`], [`Error::Archive`] or [`Error::Io`]; the folder is then as it was before.
pub fn provision(wheel: &Wheel, folder: &Path, fetch: &dyn Fetch) -> Result<Outcome, Error> {
    in_place(
        folder,
        || is_there(wheel, folder),
        |temporary| {
            let file = fetch.fetch(&wheel.download, temporary)?;
            check(&file, &wheel.download.sha256)?;
            let tree = temporary.join("tree");
            unpack(&file, &tree, &|_| true)?;
            let note = tree.join(NOTE);
            fs::write(&note, note_of(wheel)).map_err(Error::io("writing", &note))?;
            Ok(tree)
        },
    )
}

/// Makes `target` the model that the pin records.
///
/// # Errors
/// As [`provision`].
pub fn provision_model(model: &Model, target: &Path, fetch: &dyn Fetch) -> Result<Outcome, Error> {
    let there = || {
        let size = fs::metadata(target).is_ok_and(|data| data.len() == model.bytes);
        size && check(target, &model.sha256).is_ok()
    };
    in_place(target, there, |temporary| {
        let file = fetch.fetch(&model.download, temporary)?;
        check(&file, &model.download.sha256)?;
        let tree = temporary.join("tree");
        unpack(&file, &tree, &|name| name == model.member)?;
        let member = tree.join(&model.member);
        if !member.is_file() {
            return Err(Error::Archive { file: model.download.file.clone(), what: format!("has no {}", model.member) });
        }
        check(&member, &model.sha256)?;
        Ok(member)
    })
}

/// Runs `make` in a temporary folder beside `target` and moves what it made to `target`, unless it is there by then.
fn in_place(
    target: &Path,
    there: impl Fn() -> bool,
    make: impl FnOnce(&Path) -> Result<PathBuf, Error>,
) -> Result<Outcome, Error> {
    if there() {
        return Ok(Outcome::AlreadyThere);
    }
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(Error::io("using", target)(io::ErrorKind::InvalidInput.into()));
    };
    fs::create_dir_all(parent).map_err(Error::io("creating", parent))?;
    let lock_path = parent.join(format!(".{}.lock", name.display()));
    let lock = File::create(&lock_path).map_err(Error::io("creating", &lock_path))?;
    // An error means a file system without locks: the rename below is safe without one.
    let alone = lock.lock().is_ok();
    if there() {
        return Ok(Outcome::AlreadyThere);
    }
    if alone {
        remove_leftovers(parent, &name.display().to_string());
    }
    let temporary = Temporary::beside(parent, &name.display().to_string())?;
    let made = make(&temporary.0)?;
    if target.symlink_metadata().is_ok() {
        // An older wheel, or half a folder from elsewhere: it leaves together with the temporary folder.
        let old = temporary.0.join("old");
        fs::rename(target, &old).map_err(Error::io("moving away", target))?;
    }
    match fs::rename(&made, target) {
        Ok(()) => Ok(Outcome::Provisioned),
        Err(_) if there() => Ok(Outcome::AlreadyThere),
        Err(error) => Err(Error::io("moving into place", target)(error)),
    }
}

/// Removes what setups that were killed have left; the caller holds the lock.
fn remove_leftovers(parent: &Path, name: &str) {
    let start = format!(".{name}.");
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|file| file.starts_with(&start) && file.ends_with(".part")) {
            // What can't be removed is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A folder that is removed when it is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn beside(parent: &Path, name: &str) -> Result<Self, Error> {
        let path = parent.join(format!(".{name}.{}.part", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).map_err(Error::io("removing", &path))?;
        }
        fs::create_dir(&path).map_err(Error::io("creating", &path))?;
        Ok(Self(path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; the next setup removes what is left.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn note_of(wheel: &Wheel) -> String {
    format!("{} sha256:{}\n", wheel.download.file, wheel.download.sha256)
}

/// Compares a file's SHA-256 with the one expected.
///
/// # Errors
/// [`Error::Hash`] with both, [`Error::Io`].
pub fn check(file: &Path, expected: &str) -> Result<(), Error> {
    let found = sha256(file)?;
    if found == expected {
        return Ok(());
    }
    let file = file.file_name().unwrap_or(file.as_os_str()).display().to_string();
    Err(Error::Hash { file, expected: expected.to_owned(), found })
}

/// A file's SHA-256 in lower-case hexadecimal.
///
/// # Errors
/// [`Error::Io`].
pub fn sha256(file: &Path) -> Result<String, Error> {
    let mut reader = File::open(file).map_err(Error::io("opening", file))?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 20]);
    loop {
        let read = reader.read(&mut buffer).map_err(Error::io("reading", file))?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Writes those members of a wheel that `wanted` picks by name, under `folder`.
///
/// # Errors
/// [`Error::Archive`] for a broken file, a path that leads outside the folder, or a member that is no plain file.
pub fn unpack(wheel: &Path, folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<(), Error> {
    let name = wheel.file_name().unwrap_or(wheel.as_os_str()).display().to_string();
    let broken = |what: String| Error::Archive { file: name.clone(), what };
    let file = File::open(wheel).map_err(Error::io("opening", wheel))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| broken(error.to_string()))?;
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|error| broken(error.to_string()))?;
        let inside = member.name().to_owned();
        if !wanted(&inside) {
            continue;
        }
        let plain = Path::new(&inside).components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || inside.contains('\\') {
            return Err(broken(format!("member {inside:?} leads outside its folder")));
        }
        let path = folder.join(&inside);
        if member.is_dir() {
            fs::create_dir_all(&path).map_err(Error::io("creating", &path))?;
            continue;
        }
        if !member.is_file() {
            return Err(broken(format!("member {inside:?} is not a plain file")));
        }
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(Error::io("creating", parent))?;
        // `create_new`: a second member of the same name must not replace the first.
        let mut out = File::create_new(&path).map_err(Error::io("creating", &path))?;
        io::copy(&mut member, &mut out).map_err(Error::io("unpacking", &path))?;
    }
    Ok(())
}
