//! One array in numpy's format.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use oxmlx_sys::generated::io as raw;

use super::{damaged, io_error, readable, settled, writable};
use crate::{Array, Result};

/// Writes an array as `.npy`. Evaluates. MLX adds the ending when the path has none.
///
/// ```
/// use oxmlx::{Array, io};
/// let path = std::env::temp_dir().join(format!("oxmlx-doc-{}.npy", std::process::id()));
/// io::save_npy(&path, &Array::vector(&[1i32, 2])?)?;
/// assert_eq!(io::load_npy(&path)?.to_vec::<i32>()?, [1, 2]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) for a folder that is not there; what writing reports.
///
/// # Source
/// C++ `mlx::core::save` (`mlx/io.h`).
pub fn save_npy(path: impl AsRef<Path>, array: &Array) -> Result<()> {
    let path = writable(path.as_ref(), "save")?;
    Ok(raw::save(path, &settled(std::slice::from_ref(array))?[0].0)?)
}

/// An array as the bytes of an `.npy` file. Evaluates.
///
/// ```
/// use oxmlx::{Array, io};
/// let bytes = io::save_npy_bytes(&Array::vector(&[1i32, 2])?)?;
/// assert_eq!(io::load_npy_bytes(bytes)?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// What evaluation reports.
///
/// # Source
/// C++ `mlx::core::save` (`mlx/io.h`).
pub fn save_npy_bytes(array: &Array) -> Result<Vec<u8>> {
    Ok(raw::save_bytes(&settled(std::slice::from_ref(array))?[0].0)?)
}

/// Reads an `.npy` file. Lazy: the file must stay until the array is evaluated.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) for a file that can't be read, [`ErrorKind::Format`](crate::ErrorKind::Format) for one that
/// is none or is cut short.
///
/// # Source
/// C++ `mlx::core::load` (`mlx/io.h`); differs: the header is checked against the file's length.
pub fn load_npy(path: impl AsRef<Path>) -> Result<Array> {
    let path = path.as_ref();
    let name = readable(path, "load")?;
    let failed = |source| io_error(path, "load", source);
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut head = Vec::new();
    // The longest header that a version 1 file has, with its preamble.
    file.by_ref().take(10 + 0xFFFF).read_to_end(&mut head).map_err(failed)?;
    check(&head, length)?;
    Ok(raw::load(name)?.into())
}

/// Reads the bytes of an `.npy` file. Lazy.
///
/// # Errors
/// [`ErrorKind::Format`](crate::ErrorKind::Format) for bytes that are none or are cut short.
///
/// # Source
/// C++ `mlx::core::load` (`mlx/io.h`); differs: the header is checked against the length.
pub fn load_npy_bytes(bytes: Vec<u8>) -> Result<Array> {
    check(&bytes, bytes.len() as u64)?;
    Ok(raw::load_bytes(bytes)?.into())
}

/// Checks that the file is one and that its data is all there.
fn check(head: &[u8], length: u64) -> Result<()> {
    let bad = |text: String| damaged("load", text);
    if head.len() < 10 || &head[..6] != b"\x93NUMPY" {
        return Err(bad("this is no npy file: it does not begin with \\x93NUMPY".into()));
    }
    let (start, size): (usize, usize) = match head[6] {
        1 => (10, usize::from(u16::from_le_bytes([head[8], head[9]]))),
        2 | 3 if head.len() >= 12 => (12, u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize),
        version => return Err(bad(format!("version {version} of the npy format is not known"))),
    };
    let header = start
        .checked_add(size)
        .and_then(|end| head.get(start..end))
        .ok_or_else(|| bad(format!("the header says it is {size} bytes long, the file is shorter")))?;
    let header = std::str::from_utf8(header).map_err(|_| bad("the header is no text".into()))?;
    let value = |key: &str| header.split_once(key).map(|(_, rest)| rest.trim_start_matches([' ', ':']));
    let descr = value("'descr'").and_then(|v| v.strip_prefix('\'')).and_then(|v| v.split('\'').next());
    let descr = descr.ok_or_else(|| bad("the header names no dtype".into()))?;
    let width: u64 = descr
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .parse()
        .ok()
        .filter(|&width| (1..=16).contains(&width))
        .ok_or_else(|| bad(format!("the dtype {descr:?} is not known")))?;
    let shape = value("'shape'")
        .and_then(|v| v.strip_prefix('('))
        .and_then(|v| v.split_once(')'))
        .ok_or_else(|| bad("the header names no shape".into()))?
        .0;
    let mut needed = width;
    for dim in shape.split(',').map(str::trim).filter(|dim| !dim.is_empty()) {
        let n: u64 = dim
            .parse()
            .ok()
            .filter(|&n| n <= i32::MAX as u64)
            .ok_or_else(|| bad(format!("the shape ({shape}) has a dimension that is none")))?;
        needed = needed.checked_mul(n).ok_or_else(|| bad(format!("the shape ({shape}) is too large")))?;
    }
    let there = length.saturating_sub((start + size) as u64);
    if there < needed {
        return Err(bad(format!("shape ({shape}) of {descr} takes {needed} bytes, {there} are there")));
    }
    Ok(())
}
