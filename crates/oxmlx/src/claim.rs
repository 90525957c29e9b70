//! A claim on a device, so that two engines do not fight over one GPU: opt-in, and binding for those who claim only.
//!
//! A claim is a locked file, which the system unlocks when the process ends, however it ends. The file holds the number of the
//! process for people and for error messages.
//!
//! ```
//! use oxmlx::{Device, ErrorKind, claim::Claim};
//! let folder = std::env::temp_dir().join(format!("oxmlx-doc-claim-{}", std::process::id()));
//! let claim = Claim::in_folder(&folder, Device::Gpu)?;
//! let error = Claim::in_folder(&folder, Device::Gpu).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Device);
//! assert!(error.to_string().contains(&std::process::id().to_string()));
//! drop(claim);
//! drop(Claim::in_folder(&folder, Device::Gpu)?);
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), oxmlx::Error>(())
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::{Device, Error, ErrorKind, Result};

const OP: &str = "claim";

/// A device that this process has for itself among those that claim. Dropping it gives the device back.
#[derive(Debug)]
#[must_use = "the device is given back when the claim is dropped"]
pub struct Claim {
    /// Locked.
    file: File,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Not by closing alone: a child that is just being started has a copy of the open file.
        let _ = self.file.unlock();
    }
}

impl Claim {
    /// Claims all devices of a kind, for the user's session: the file lies in `XDG_RUNTIME_DIR`, or in the folder for temporary files.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] when another claim is alive, naming its process; [`ErrorKind::Io`] when there can be no such file.
    pub fn device(device: Device) -> Result<Self> {
        Self::in_folder(folder(), device)
    }

    /// The same with a folder that all who share the device name.
    ///
    /// # Errors
    /// As [`device`](Self::device).
    pub fn in_folder(folder: impl AsRef<Path>, device: Device) -> Result<Self> {
        let path = path(folder.as_ref(), device);
        let failed = |e: std::io::Error| Error::new(ErrorKind::Io, OP, path.display().to_string()).with_source(e);
        fs::create_dir_all(folder.as_ref()).map_err(failed)?;
        let (mut file, writable) = open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder =
                    read(&mut file).map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
                let text =
                    format!("{device:?} is claimed by {holder} ({}): end it, or use another device", path.display());
                return Err(Error::new(ErrorKind::Device, OP, text));
            }
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        if writable {
            file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
            writeln!(file, "{}", std::process::id()).map_err(failed)?;
        }
        Ok(Self { file })
    }

    /// The process whose claim on the device is alive; `None` without one, or when the file does not tell.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when the file is there and can't be read.
    pub fn holder(device: Device) -> Result<Option<u32>> {
        Self::holder_in_folder(folder(), device)
    }

    /// The same for [`in_folder`](Self::in_folder).
    ///
    /// # Errors
    /// As [`holder`](Self::holder).
    pub fn holder_in_folder(folder: impl AsRef<Path>, device: Device) -> Result<Option<u32>> {
        let path = path(folder.as_ref(), device);
        let failed = |e: std::io::Error| Error::new(ErrorKind::Io, OP, path.display().to_string()).with_source(e);
        let mut file = match File::open(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed)?,
        };
        // Shared, so that two who ask do not take each other for holders.
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(read(&mut file)),
            Err(TryLockError::Error(e)) => Err(failed(e)),
        }
    }
}

fn folder() -> PathBuf {
    std::env::var_os("XDG_RUNTIME_DIR")
        .filter(|folder| !folder.is_empty())
        .map_or_else(std::env::temp_dir, PathBuf::from)
}

fn path(folder: &Path, device: Device) -> PathBuf {
    folder.join(match device {
        Device::Cpu => "oxmlx-cpu.claim",
        Device::Gpu => "oxmlx-gpu.claim",
    })
}

/// The file, and whether its number can be written: another user's can be locked, not written.
fn open(path: &Path) -> std::io::Result<(File, bool)> {
    // A link in a folder that everybody may write to could lead to any file of ours.
    if fs::symlink_metadata(path).is_ok_and(|facts| !facts.is_file()) {
        return Err(std::io::Error::other("not a plain file"));
    }
    match OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path) {
        Ok(file) => Ok((file, true)),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Ok((File::open(path)?, false)),
        Err(e) => Err(e),
    }
}

fn read(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Claim, path};
    use crate::{Device, ErrorKind};

    #[test]
    fn a_claim_is_alone_until_it_is_dropped_and_devices_are_apart() {
        let folder = tempfile::tempdir().unwrap();
        let claim = Claim::in_folder(folder.path(), Device::Gpu).unwrap();
        assert_eq!(Claim::holder_in_folder(folder.path(), Device::Gpu).unwrap(), Some(std::process::id()));
        let error = Claim::in_folder(folder.path(), Device::Gpu).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        let _other = Claim::in_folder(folder.path(), Device::Cpu).unwrap();
        drop(claim);
        assert_eq!(Claim::holder_in_folder(folder.path(), Device::Gpu).unwrap(), None);
        drop(Claim::in_folder(folder.path(), Device::Gpu).unwrap());
    }

    /// The second process is this test again, with a folder in its environment.
    #[test]
    fn the_claim_of_a_process_that_was_killed_is_free() {
        const FOLDER: &str = "OXMLX_TEST_CLAIM";
        if let Some(folder) = std::env::var_os(FOLDER) {
            let _claim = Claim::in_folder(&folder, Device::Gpu).unwrap();
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        let folder = tempfile::tempdir().unwrap();
        let mut other = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "claim::tests::the_claim_of_a_process_that_was_killed_is_free"])
            .env(FOLDER, folder.path())
            .spawn()
            .unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while Claim::holder_in_folder(folder.path(), Device::Gpu).unwrap() != Some(other.id()) {
            assert!(std::time::Instant::now() < deadline, "the other process never claimed");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let error = Claim::in_folder(folder.path(), Device::Gpu).unwrap_err();
        assert!(error.to_string().contains(&format!("process {}", other.id())), "{error}");
        other.kill().unwrap();
        other.wait().unwrap();
        drop(Claim::in_folder(folder.path(), Device::Gpu).unwrap());
    }

    #[test]
    fn what_is_no_plain_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(path(folder.path(), Device::Gpu)).unwrap();
        assert_eq!(Claim::in_folder(folder.path(), Device::Gpu).unwrap_err().kind(), ErrorKind::Io);
    }
}
