//! SafeTensors over a mapped file: nothing is read but the header, and arrays lie over the file's pages.

#![allow(unsafe_code)] // mapping a file is unsafe by nature: another process may change it

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use oxmlx_sys::layout::row_major;

use super::safetensors::{Entry, OP, check, header_size};
use super::{damaged, io_error, readable};
use crate::storage::Adoption;
use crate::storage::adopt::{Layout, mapped};
use crate::{Array, Dtype, Result};

/// What a mapped SafeTensors file holds, sorted by name.
#[derive(Clone, Debug)]
pub struct MappedSafetensors {
    /// Name and array, and whether it lies over the file or was copied (a tensor that is not aligned, or a device with memory of its
    /// own).
    pub arrays: Vec<(String, Array, Adoption)>,
    /// Key and value.
    pub metadata: Vec<(String, String)>,
}

/// The arrays of a mapped SafeTensors file. Only the header is read; pages follow when they are first used. The map lives until the
/// last array over it is gone.
///
/// ```
/// use oxmlx::{Array, io};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("x.safetensors");
/// io::save_safetensors(&path, &[("x", Array::vector(&[1i32, 2])?)], &[])?;
/// // SAFETY: nobody changes the file while it is mapped.
/// let map = unsafe { memmap2::Mmap::map(&std::fs::File::open(&path)?) }?;
/// let file = io::map_safetensors(map)?;
/// assert_eq!(file.arrays[0].1.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Format`](crate::ErrorKind::Format) for what is no SafeTensors file, is cut short, or has tensors whose bytes do not fit their
/// shapes, overlap or have one name; [`ErrorKind::Dtype`](crate::ErrorKind::Dtype) for a dtype that MLX has not.
pub fn map_safetensors(map: impl Into<Arc<Mmap>>) -> Result<MappedSafetensors> {
    let map = map.into();
    let Some(head) = map.first_chunk::<8>() else {
        return Err(damaged(OP, format!("{} bytes are no SafeTensors file", map.len())));
    };
    let size = header_size(*head, map.len() as u64)?;
    let start = 8 + size;
    let entries = check(&map[8..start], (map.len() - start) as u64)?;
    let memory = mapped(map)?;
    let mut file = MappedSafetensors { arrays: Vec::new(), metadata: Vec::new() };
    for (name, entry) in entries {
        match entry {
            Entry::Metadata(pairs) => file.metadata.extend(pairs),
            Entry::Tensor(tensor) => {
                // Checked: each dimension is an i32, and the offsets lie within the file.
                let shape: Vec<i32> = tensor.shape.iter().map(|&n| n as i32).collect();
                let layout = Layout { shape: &shape, strides: &row_major(&shape), dtype: dtype_of(&tensor.dtype) };
                let (array, adoption) = memory.array(start + tensor.data_offsets.0 as usize, &layout, OP)?;
                file.arrays.push((name, array, adoption));
            }
        }
    }
    file.arrays.sort_by(|a, b| a.0.cmp(&b.0));
    file.metadata.sort();
    Ok(file)
}

/// Maps the file at `path` and gives its arrays, as [`map_safetensors`] does.
///
/// # Safety
/// The file must not be written to or cut short while an array over it lives, by anybody: values would change under MLX, and touching a
/// page past the new end ends the process. Replacing it by renaming another over it is fine.
///
/// # Errors
/// [`ErrorKind::Io`](crate::ErrorKind::Io) for a file that can't be opened or mapped; else as [`map_safetensors`].
pub unsafe fn map_safetensors_file(path: impl AsRef<Path>) -> Result<MappedSafetensors> {
    let path = path.as_ref();
    readable(path, OP)?;
    let file = File::open(path).map_err(|source| io_error(path, OP, source))?;
    // SAFETY: the caller promises that nobody changes the file while it is mapped.
    let map = unsafe { Mmap::map(&file) }.map_err(|source| io_error(path, OP, source))?;
    map_safetensors(map)
}

/// The dtype of a name that `check` has accepted, as MLX's own loader has it.
fn dtype_of(name: &str) -> Dtype {
    match name {
        "BOOL" => Dtype::Bool,
        "I8" => Dtype::Int8,
        "U16" => Dtype::Uint16,
        "I16" => Dtype::Int16,
        "F16" => Dtype::Float16,
        "BF16" => Dtype::Bfloat16,
        "U32" => Dtype::Uint32,
        "I32" => Dtype::Int32,
        "F32" => Dtype::Float32,
        "U64" => Dtype::Uint64,
        "I64" => Dtype::Int64,
        "F64" => Dtype::Float64,
        "C64" => Dtype::Complex64,
        // An eight-bit float, which MLX has as bytes.
        _ => Dtype::Uint8,
    }
}
