//! A file's bytes, read-only: mapped into memory, or owned.
//!
//! The one module of this crate that holds `unsafe`, for the choice to map: see [`Mapped::open`] for what that asks of the
//! system, and [`Mapped::read`] for the way that asks nothing.
#![allow(unsafe_code)] // mapping a file is unsafe by nature: another process may change it; the contract is on `open`

use std::fmt;
use std::fs::File;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::{Error, ErrorKind, Result};

/// The bytes of one file.
///
/// Derefs to `[u8]`. Pages of a mapped file are read when first touched and belong to the page cache, so that several
/// processes share one copy. Put it in an `Arc` to keep slices of it alive.
pub struct Mapped {
    path: PathBuf,
    bytes: Bytes,
}

enum Bytes {
    Map(Mmap),
    Owned(Vec<u8>),
}

impl Mapped {
    /// Maps the file at `path`.
    ///
    /// The file must not be written to or cut short while this lives: the bytes would change under their readers, and
    /// touching a page past the new end ends the process with SIGBUS. Replacing the file by renaming another over it, as
    /// downloads do, is fine: the map keeps the old one. Where that can't be promised, use [`Mapped::read`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file can't be opened or mapped, or isn't a regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = open_regular(path)?;
        // SAFETY: `memmap2` asks that the file isn't changed or truncated while mapped. Nothing in this process writes to
        // model files, and the documentation above asks the same of everybody else; that can't be enforced on any of the
        // supported systems. The map is private and read-only, so this process can't be the one that breaks it.
        let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io(path, e))?;
        Ok(Self { path: path.to_owned(), bytes: Bytes::Map(map) })
    }

    /// Reads the file at `path` into memory: slower and larger than [`Mapped::open`], and safe whatever happens to the file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file can't be read or isn't a regular file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        open_regular(path)?;
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Ok(Self { path: path.to_owned(), bytes: Bytes::Owned(bytes) })
    }

    /// Bytes that are in memory already, with the name that errors should give them.
    pub fn from_vec(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        Self { path: name.into(), bytes: Bytes::Owned(bytes) }
    }

    /// Where the bytes came from.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn open_regular(path: &Path) -> Result<File> {
    // The kind is asked before opening: opening a named pipe would wait for its writer.
    let kind = path.metadata().map_err(|e| match path.symlink_metadata() {
        Ok(link) if link.is_symlink() && e.kind() == std::io::ErrorKind::NotFound => {
            Error::new(ErrorKind::Io, "broken symbolic link, fetch the file it points to again")
                .at_path(path)
                .caused_by(e)
        }
        _ => Error::io(path, e),
    })?;
    if !kind.is_file() {
        return Err(Error::new(ErrorKind::Io, "not a regular file").at_path(path));
    }
    File::open(path).map_err(|e| Error::io(path, e))
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Map(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mapped").field("path", &self.path).field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_and_read_give_the_files_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        for bytes in [&b""[..], b"hello"] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(&*Mapped::open(&path).unwrap(), bytes);
            assert_eq!(&*Mapped::read(&path).unwrap(), bytes);
        }
    }

    #[test]
    fn missing_file_folder_and_broken_link_are_errors_that_name_the_path() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing");
        let error = Mapped::open(&missing).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(&*missing)));
        assert!(Mapped::open(dir.path()).unwrap_err().to_string().contains("not a regular file"));
        #[cfg(unix)]
        {
            let link = dir.path().join("link");
            std::os::unix::fs::symlink(&missing, &link).unwrap();
            assert!(Mapped::open(&link).unwrap_err().to_string().contains("broken symbolic link"));
        }
    }
}
