//! Files that come from a reader and go to a writer.

use std::io::{Read, Write};

use super::{Gguf, GgufValue, Safetensors};
use crate::{Array, Error, ErrorKind, Result};

/// Reads an `.npy` file from a reader, to its end.
///
/// ```
/// use oxmlx::{Array, io};
/// let mut file = Vec::new();
/// io::save_npy_to(&mut file, &Array::vector(&[1i32, 2])?)?;
/// assert_eq!(io::load_npy_from(&file[..])?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Io`] when reading fails; as [`load_npy_bytes`](super::load_npy_bytes).
///
/// # Source
/// C++ `mlx::core::load` (`mlx/io.h`).
pub fn load_npy_from(reader: impl Read) -> Result<Array> {
    super::load_npy_bytes(all(reader, "load")?)
}

/// Writes an array to a writer as an `.npy` file. Evaluates.
///
/// # Errors
/// [`ErrorKind::Io`] when writing fails; as [`save_npy_bytes`](super::save_npy_bytes).
///
/// # Source
/// C++ `mlx::core::save` (`mlx/io.h`).
pub fn save_npy_to(writer: impl Write, array: &Array) -> Result<()> {
    put(writer, &super::save_npy_bytes(array)?, "save")
}

/// Reads a SafeTensors file from a reader, to its end.
///
/// ```
/// use oxmlx::{Array, io};
/// let mut file = Vec::new();
/// io::save_safetensors_to(&mut file, &[("x", Array::vector(&[1i32, 2])?)], &[("by", "me")])?;
/// assert_eq!(io::load_safetensors_from(&file[..])?.metadata[0].1, "me");
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Io`] when reading fails; as [`load_safetensors_bytes`](super::load_safetensors_bytes).
///
/// # Source
/// C++ `mlx::core::load_safetensors` (`mlx/io.h`).
pub fn load_safetensors_from(reader: impl Read) -> Result<Safetensors> {
    super::load_safetensors_bytes(all(reader, "load_safetensors")?)
}

/// Writes named arrays and metadata to a writer as a SafeTensors file. Evaluates.
///
/// # Errors
/// [`ErrorKind::Io`] when writing fails; as [`save_safetensors_bytes`](super::save_safetensors_bytes).
///
/// # Source
/// C++ `mlx::core::save_safetensors` (`mlx/io.h`).
pub fn save_safetensors_to(writer: impl Write, arrays: &[(&str, Array)], metadata: &[(&str, &str)]) -> Result<()> {
    put(writer, &super::save_safetensors_bytes(arrays, metadata)?, "save_safetensors")
}

/// Reads a GGUF file from a reader, to its end.
///
/// ```
/// use oxmlx::{Array, io};
/// let mut file = Vec::new();
/// io::save_gguf_to(&mut file, &[("x", Array::vector(&[1.0f32, 2.0])?)], &[])?;
/// assert_eq!(io::load_gguf_from(&file[..])?.arrays[0].0, "x");
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Io`] when reading fails; as [`load_gguf_bytes`](super::load_gguf_bytes).
///
/// # Source
/// C++ `mlx::core::load_gguf` (`mlx/io.h`).
pub fn load_gguf_from(reader: impl Read) -> Result<Gguf> {
    super::load_gguf_bytes(&all(reader, "load_gguf")?)
}

/// Writes named arrays and metadata to a writer as a GGUF file. Evaluates.
///
/// # Errors
/// [`ErrorKind::Io`] when writing fails; as [`save_gguf_bytes`](super::save_gguf_bytes).
///
/// # Source
/// C++ `mlx::core::save_gguf` (`mlx/io.h`).
pub fn save_gguf_to(writer: impl Write, arrays: &[(&str, Array)], metadata: &[(&str, GgufValue)]) -> Result<()> {
    put(writer, &super::save_gguf_bytes(arrays, metadata)?, "save_gguf")
}

fn all(mut reader: impl Read, op: &'static str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = reader.read_to_end(&mut bytes);
    read.map_err(|source| Error::new(ErrorKind::Io, op, "reading failed").with_source(source))?;
    Ok(bytes)
}

fn put(mut writer: impl Write, bytes: &[u8], op: &'static str) -> Result<()> {
    let written = writer.write_all(bytes).and_then(|()| writer.flush());
    written.map_err(|source| Error::new(ErrorKind::Io, op, "writing failed").with_source(source))
}
