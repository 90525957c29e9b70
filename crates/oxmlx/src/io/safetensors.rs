//! Named arrays in the SafeTensors format.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use oxmlx_sys::generated::io as raw;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::{damaged, io_error, readable, settled, unzipped, writable};
use crate::{Array, Error, ErrorKind, Result};

/// What a SafeTensors file holds, sorted by name.
#[derive(Clone, Debug)]
pub struct Safetensors {
    /// Name and array.
    pub arrays: Vec<(String, Array)>,
    /// Key and value.
    pub metadata: Vec<(String, String)>,
}

/// Writes named arrays and metadata. Evaluates.
///
/// ```
/// use oxmlx::{Array, io};
/// let path = std::env::temp_dir().join(format!("oxmlx-doc-{}.safetensors", std::process::id()));
/// io::save_safetensors(&path, &[("x", Array::vector(&[1i32, 2])?)], &[("by", "me")])?;
/// let file = io::load_safetensors(&path)?;
/// assert_eq!(file.arrays[0].1.to_vec::<i32>()?, [1, 2]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Io`] for a folder that is not there; [`ErrorKind::InvalidArgument`] for a name given twice or a dtype that the format
/// has not; what evaluation and writing report.
///
/// # Source
/// C++ `mlx::core::save_safetensors` (`mlx/io.h`).
pub fn save_safetensors(path: impl AsRef<Path>, arrays: &[(&str, Array)], metadata: &[(&str, &str)]) -> Result<()> {
    let path = writable(path.as_ref(), "save_safetensors")?;
    let (names, values) = unzipped(arrays);
    let (keys, texts): (Vec<&str>, Vec<&str>) = metadata.iter().copied().unzip();
    let values = settled(&values)?;
    Ok(raw::save_safetensors(path, (&names, Array::raw(&values)), (&keys, &texts))?)
}

/// Named arrays and metadata as the bytes of a SafeTensors file. Evaluates.
///
/// # Errors
/// As [`save_safetensors`], but for the path.
///
/// # Source
/// C++ `mlx::core::save_safetensors` (`mlx/io.h`).
pub fn save_safetensors_bytes(arrays: &[(&str, Array)], metadata: &[(&str, &str)]) -> Result<Vec<u8>> {
    let (names, values) = unzipped(arrays);
    let (keys, texts): (Vec<&str>, Vec<&str>) = metadata.iter().copied().unzip();
    let values = settled(&values)?;
    Ok(raw::save_safetensors_bytes((&names, Array::raw(&values)), (&keys, &texts))?)
}

/// Reads a SafeTensors file. Lazy: the file must stay until the arrays are evaluated.
///
/// # Errors
/// [`ErrorKind::Io`] for a file that can't be read; [`ErrorKind::Format`] for one that is none, is cut short, or has tensors whose bytes do not
/// fit their shapes, overlap or have one name; [`ErrorKind::Dtype`] for a dtype that MLX has not.
///
/// # Source
/// C++ `mlx::core::load_safetensors` (`mlx/io.h`); differs: the header is checked.
pub fn load_safetensors(path: impl AsRef<Path>) -> Result<Safetensors> {
    let path = path.as_ref();
    let name = readable(path, OP)?;
    let failed = |source| io_error(path, OP, source);
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut head = [0; 8];
    if file.read_exact(&mut head).is_err() {
        return Err(damaged(OP, format!("{length} bytes are no SafeTensors file")));
    }
    let size = header_size(head, length)?;
    let mut header = vec![0; size];
    file.read_exact(&mut header).map_err(failed)?;
    check(&header, length - 8 - size as u64)?;
    Ok(made(raw::load_safetensors(name)?))
}

/// Reads the bytes of a SafeTensors file. Lazy.
///
/// ```
/// use oxmlx::{Array, io};
/// let bytes = io::save_safetensors_bytes(&[("x", Array::vector(&[1i32, 2])?)], &[])?;
/// assert_eq!(io::load_safetensors_bytes(bytes)?.arrays[0].1.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`load_safetensors`], but for the path.
///
/// # Source
/// C++ `mlx::core::load_safetensors` (`mlx/io.h`); differs: the header is checked.
pub fn load_safetensors_bytes(bytes: Vec<u8>) -> Result<Safetensors> {
    let Some(head) = bytes.first_chunk::<8>() else {
        return Err(damaged(OP, format!("{} bytes are no SafeTensors file", bytes.len())));
    };
    let size = header_size(*head, bytes.len() as u64)?;
    check(&bytes[8..8 + size], (bytes.len() - 8 - size) as u64)?;
    Ok(made(raw::load_safetensors_bytes(bytes)?))
}

fn made(parts: oxmlx_sys::types::Safetensors) -> Safetensors {
    let arrays = parts.arrays.into_iter().map(|(name, array)| (name, array.into())).collect();
    Safetensors { arrays, metadata: parts.metadata }
}

pub(super) const OP: &str = "load_safetensors";
/// The longest header that the format's own reader takes.
const LONGEST_HEADER: u64 = 100_000_000;

pub(super) fn header_size(head: [u8; 8], length: u64) -> Result<usize> {
    let size = u64::from_le_bytes(head);
    if size > LONGEST_HEADER || size > length.saturating_sub(8) {
        return Err(damaged(OP, format!("the header says it is {size} bytes long; the file has {length}")));
    }
    Ok(size as usize)
}

#[derive(Deserialize)]
pub(super) struct Tensor {
    pub(super) dtype: String,
    pub(super) shape: Vec<u64>,
    pub(super) data_offsets: (u64, u64),
}

pub(super) enum Entry {
    Metadata(HashMap<String, String>),
    Tensor(Tensor),
}

/// The entries in their order, names given twice included: a map would hide them.
struct Entries(Vec<(String, Entry)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Entries;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Entries, M::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let entry = if name == "__metadata__" {
                        // MLX writes null where it has no metadata.
                        Entry::Metadata(map.next_value::<Option<_>>()?.unwrap_or_default())
                    } else {
                        Entry::Tensor(map.next_value()?)
                    };
                    entries.push((name, entry));
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// The entries, checked: every tensor's bytes are there, are as many as its shape takes, and belong to it alone.
pub(super) fn check(header: &[u8], data: u64) -> Result<Vec<(String, Entry)>> {
    let text = std::str::from_utf8(header).map_err(|_| damaged(OP, "the header is not UTF-8"))?;
    let Entries(entries) =
        serde_json::from_str(text).map_err(|e| damaged(OP, "the header is no JSON of tensors").with_source(e))?;
    let mut names = HashSet::new();
    let mut spans = Vec::new();
    for (name, entry) in &entries {
        if !names.insert(name) {
            return Err(damaged(OP, format!("the name {name:?} is there twice")));
        }
        let Entry::Tensor(tensor) = entry else { continue };
        let (from, to) = tensor.data_offsets;
        let needed = tensor.shape.iter().try_fold(width(name, &tensor.dtype)?, |bytes, &n| bytes.checked_mul(n));
        if tensor.shape.iter().any(|&n| n > i32::MAX as u64) || needed.is_none() {
            return Err(damaged(OP, format!("tensor {name:?}: the shape {:?} is too large", tensor.shape)));
        }
        if to > data || from > to || needed != Some(to - from) {
            let text = format!(
                "tensor {name:?}: shape {:?} of {} takes {} bytes; its offsets are {from} to {to} of {data}",
                tensor.shape,
                tensor.dtype,
                needed.unwrap_or(0)
            );
            return Err(damaged(OP, text));
        }
        if from < to {
            spans.push((from, to, name));
        }
    }
    spans.sort_unstable();
    match spans.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        Some(pair) => Err(damaged(OP, format!("tensors {:?} and {:?} overlap", pair[0].2, pair[1].2))),
        None => Ok(entries),
    }
}

/// The bytes of one element of a dtype that MLX reads.
fn width(name: &str, dtype: &str) -> Result<u64> {
    Ok(match dtype {
        "BOOL" | "U8" | "I8" | "F8_E4M3" => 1,
        "U16" | "I16" | "F16" | "BF16" => 2,
        "U32" | "I32" | "F32" => 4,
        "U64" | "I64" | "C64" => 8,
        other => {
            let text = format!("tensor {name:?} is {other}, which MLX does not read");
            return Err(Error::new(ErrorKind::Dtype, OP, text));
        }
    })
}
