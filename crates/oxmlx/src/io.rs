//! Arrays in files: npy, SafeTensors, GGUF.
//!
//! Reading is lazy in MLX: values come from the file when they are evaluated, so that it must stay until then. MLX trusts what a file
//! says about itself; here the header is checked against the file's length before MLX sees it, and what is wrong is an `Err` that names
//! it.

mod gguf;
mod mapped;
mod npy;
mod safetensors;
mod streams;

use std::path::Path;

pub use self::gguf::{Gguf, GgufValue, load_gguf, load_gguf_bytes, save_gguf, save_gguf_bytes};
pub use self::mapped::{MappedSafetensors, map_safetensors, map_safetensors_file};
pub use self::npy::{load_npy, load_npy_bytes, save_npy, save_npy_bytes};
pub use self::safetensors::{
    Safetensors, load_safetensors, load_safetensors_bytes, save_safetensors, save_safetensors_bytes,
};
pub use self::streams::{
    load_gguf_from, load_npy_from, load_safetensors_from, save_gguf_to, save_npy_to, save_safetensors_to,
};
use crate::{Error, ErrorKind, Result};

/// A path as MLX takes it: UTF-8 without a NUL.
fn text<'p>(path: &'p Path, op: &'static str) -> Result<&'p str> {
    match path.to_str() {
        Some(text) if !text.contains('\0') => Ok(text),
        _ => Err(Error::new(ErrorKind::Io, op, format!("{path:?} is no path that MLX can take: it must be UTF-8"))),
    }
}

/// A path of a file that is there.
pub(crate) fn readable<'p>(path: &'p Path, op: &'static str) -> Result<&'p str> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => text(path, op),
        Ok(_) => Err(Error::new(ErrorKind::Io, op, format!("{} is no file", path.display()))),
        Err(source) => Err(io_error(path, op, source)),
    }
}

/// A path in a folder that is there.
pub(crate) fn writable<'p>(path: &'p Path, op: &'static str) -> Result<&'p str> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let text = format!("{} is no folder to write {} into", folder.display(), path.display());
        return Err(Error::new(ErrorKind::Io, op, text));
    }
    text(path, op)
}

#[cold]
fn io_error(path: &Path, op: &'static str, source: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, op, format!("{} can't be read", path.display())).with_source(source)
}

#[cold]
fn damaged(op: &'static str, text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, op, text.into())
}

/// The names and the arrays of a list, in two.
/// The arrays computed and in row-major order: MLX copies them itself where they are not, and writes to a null pointer where memory
/// does not suffice.
fn settled(arrays: &[crate::Array]) -> Result<Vec<crate::Array>> {
    let packed: Vec<_> = arrays.iter().map(|a| crate::ops::contiguous(a, false)).collect::<Result<_>>()?;
    crate::eval(&packed)?;
    Ok(packed)
}

fn unzipped<'n>(arrays: &'n [(&'n str, crate::Array)]) -> (Vec<&'n str>, Vec<crate::Array>) {
    arrays.iter().map(|(name, array)| (*name, array.clone())).unzip()
}
