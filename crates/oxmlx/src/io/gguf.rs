//! Named arrays and metadata in the GGUF format, as MLX reads and writes it.
//!
//! MLX's reader takes few of the format's types. For language models use the reader of the crate `oxmlx-lm`, which takes all that
//! models have.

use std::io::{BufReader, Read};
use std::path::Path;

use oxmlx_sys::generated::io as raw;
use oxmlx_sys::types::Metadata;

use super::{damaged, io_error, readable, settled, unzipped, writable};
use crate::{Array, Error, ErrorKind, Result};

/// A value in a file's metadata.
#[derive(Clone, Debug)]
pub enum GgufValue {
    /// None.
    Empty,
    /// A number, or a list of numbers.
    Array(Array),
    /// A text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
}

/// What a GGUF file holds, sorted by name.
#[derive(Clone, Debug)]
pub struct Gguf {
    /// Name and array.
    pub arrays: Vec<(String, Array)>,
    /// Key and value.
    pub metadata: Vec<(String, GgufValue)>,
}

/// Writes named arrays and metadata. Evaluates.
///
/// ```
/// use oxmlx::{Array, io};
/// let path = std::env::temp_dir().join(format!("oxmlx-doc-{}.gguf", std::process::id()));
/// io::save_gguf(&path, &[("x", Array::vector(&[1.0f32, 2.0])?)], &[("by", io::GgufValue::Text("me".into()))])?;
/// assert_eq!(io::load_gguf(&path)?.arrays[0].1.to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(path).ok();
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Io`] for a folder that is not there; [`ErrorKind::InvalidArgument`] for a name given twice; what MLX reports for a
/// dtype that the format has not.
///
/// # Source
/// C++ `mlx::core::save_gguf` (`mlx/io.h`).
pub fn save_gguf(path: impl AsRef<Path>, arrays: &[(&str, Array)], metadata: &[(&str, GgufValue)]) -> Result<()> {
    let path = writable(path.as_ref(), "save_gguf")?;
    let (names, values) = unzipped(arrays);
    let values = settled(&values)?;
    let metadata: Vec<(String, Metadata)> = metadata
        .iter()
        .map(|(key, value)| {
            let value = match value {
                GgufValue::Empty => Metadata::Empty,
                GgufValue::Array(array) => Metadata::Array(oxmlx_sys::Array::from(array.clone())),
                GgufValue::Text(text) => Metadata::Text(text.clone()),
                GgufValue::Texts(texts) => Metadata::Texts(texts.clone()),
            };
            ((*key).to_owned(), value)
        })
        .collect();
    Ok(raw::save_gguf(path, (&names, Array::raw(&values)), &metadata)?)
}

/// Reads a GGUF file. Not lazy.
///
/// # Errors
/// [`ErrorKind::Io`] for a file that can't be read; [`ErrorKind::Format`] for one that is none or whose header says more than the file
/// holds; [`ErrorKind::Unsupported`] for a type of value or tensor that MLX's reader gets wrong, named.
///
/// # Source
/// C++ `mlx::core::load_gguf` (`mlx/io.h`); differs: the header is checked, and what MLX would drop or change is an error.
pub fn load_gguf(path: impl AsRef<Path>) -> Result<Gguf> {
    let path = path.as_ref();
    let name = readable(path, OP)?;
    let failed = |source| io_error(path, OP, source);
    let file = std::fs::File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    Header { from: BufReader::new(file), at: 0, length }.check()?;
    let parts = raw::load_gguf(name)?;
    let metadata = parts
        .metadata
        .into_iter()
        .map(|(key, value)| {
            let value = match value {
                Metadata::Empty => GgufValue::Empty,
                Metadata::Array(array) => GgufValue::Array(array.into()),
                Metadata::Text(text) => GgufValue::Text(text),
                Metadata::Texts(texts) => GgufValue::Texts(texts),
            };
            (key, value)
        })
        .collect();
    Ok(Gguf { arrays: parts.arrays.into_iter().map(|(name, array)| (name, array.into())).collect(), metadata })
}

/// Reads the bytes of a GGUF file, by way of a file that is gone when this returns: MLX reads no others.
///
/// ```
/// use oxmlx::{Array, io};
/// let bytes = io::save_gguf_bytes(&[("x", Array::vector(&[1.0f32, 2.0])?)], &[])?;
/// assert_eq!(io::load_gguf_bytes(&bytes)?.arrays[0].1.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`load_gguf`]; [`ErrorKind::Io`] when there is no place for the file.
///
/// # Source
/// C++ `mlx::core::load_gguf` (`mlx/io.h`).
pub fn load_gguf_bytes(bytes: &[u8]) -> Result<Gguf> {
    let file = scratch(OP)?;
    std::fs::write(file.path(), bytes).map_err(|source| io_error(file.path(), OP, source))?;
    load_gguf(file.path())
}

/// The bytes of a GGUF file with these arrays and metadata, by way of a file. Evaluates.
///
/// # Errors
/// As [`save_gguf`]; [`ErrorKind::Io`] when there is no place for the file.
///
/// # Source
/// C++ `mlx::core::save_gguf` (`mlx/io.h`).
pub fn save_gguf_bytes(arrays: &[(&str, Array)], metadata: &[(&str, GgufValue)]) -> Result<Vec<u8>> {
    let file = scratch("save_gguf")?;
    save_gguf(file.path(), arrays, metadata)?;
    std::fs::read(file.path()).map_err(|source| io_error(file.path(), "save_gguf", source))
}

/// A file that only this user reads, removed when it is dropped.
fn scratch(op: &'static str) -> Result<tempfile::NamedTempFile> {
    // MLX adds the ending to a name without it.
    tempfile::Builder::new()
        .suffix(".gguf")
        .tempfile()
        .map_err(|source| Error::new(ErrorKind::Io, op, "no temporary file can be made").with_source(source))
}

const OP: &str = "load_gguf";

/// The header, read once to see that MLX can read it.
struct Header<R> {
    from: R,
    at: u64,
    length: u64,
}

impl<R: Read> Header<R> {
    fn check(mut self) -> Result<()> {
        if &self.bytes::<4>()? != b"GGUF" {
            return Err(damaged(OP, "this is no GGUF file: it does not begin with GGUF"));
        }
        let version = u32::from_le_bytes(self.bytes()?);
        if version != 3 && version != 2 {
            return Err(damaged(OP, format!("version {version} of the format is not known")));
        }
        let (tensors, values) = (self.number()?, self.number()?);
        let mut alignment = 32;
        for _ in 0..values {
            let key = self.text()?;
            let kind = u32::from_le_bytes(self.bytes()?);
            let number = self.value(&key, kind, false)?;
            if key == "general.alignment" {
                alignment = number
                    .filter(|n| n.is_power_of_two())
                    .ok_or_else(|| damaged(OP, "general.alignment is no power of two"))?;
            }
        }
        let mut ends = Vec::new();
        for _ in 0..tensors {
            let name = self.text()?;
            ends.push(self.tensor(&name)?);
        }
        let data = self.at.next_multiple_of(alignment);
        for (name, offset, size) in ends {
            let end = data.checked_add(offset).and_then(|at| at.checked_add(size));
            if offset % alignment != 0 || end.is_none_or(|end| end > self.length) {
                let text = format!("tensor {name:?} takes {size} bytes at {offset}; the file has {}", self.length);
                return Err(damaged(OP, text));
            }
        }
        Ok(())
    }

    /// One tensor's entry: its name, offset and size.
    fn tensor(&mut self, name: &str) -> Result<(String, u64, u64)> {
        let ndim = u32::from_le_bytes(self.bytes()?);
        if ndim > 4 {
            return Err(damaged(OP, format!("tensor {name:?} has {ndim} dimensions")));
        }
        let mut count = 1u64;
        let mut first = None;
        for _ in 0..ndim {
            let n = self.number()?;
            first.get_or_insert(n);
            count = count
                .checked_mul(n)
                .filter(|_| n <= i32::MAX as u64)
                .ok_or_else(|| damaged(OP, format!("tensor {name:?} is too large")))?;
        }
        let kind = u32::from_le_bytes(self.bytes()?);
        let offset = self.number()?;
        // Elements and bytes of a block.
        let (elements, bytes) = match kind {
            0 => (1, 4),
            1 => (1, 2),
            2 => (32, 18),
            3 => (32, 20),
            8 => (32, 34),
            24 => (1, 1),
            25 => (1, 2),
            26 => (1, 4),
            other => {
                let text = format!("tensor {name:?} is of type {other}, which MLX's reader drops or changes");
                return Err(Error::new(ErrorKind::Unsupported, OP, text));
            }
        };
        if first.unwrap_or(1) % elements != 0 {
            return Err(damaged(OP, format!("tensor {name:?}: its rows are no whole blocks of {elements}")));
        }
        Ok((name.to_owned(), offset, (count / elements).saturating_mul(bytes)))
    }

    /// Passes over one value; its number when it is a whole one.
    fn value(&mut self, key: &str, kind: u32, in_list: bool) -> Result<Option<u64>> {
        Ok(match kind {
            0 | 1 | 7 => Some(u64::from(self.bytes::<1>()?[0])),
            2 | 3 => Some(u64::from(u16::from_le_bytes(self.bytes()?))),
            4 | 5 => Some(u64::from(u32::from_le_bytes(self.bytes()?))),
            6 => {
                self.bytes::<4>()?;
                None
            }
            8 => {
                self.text()?;
                None
            }
            10 | 11 => Some(u64::from_le_bytes(self.bytes()?)),
            9 if !in_list => {
                let (kind, count) = (u32::from_le_bytes(self.bytes()?), self.number()?);
                // No element is shorter than a byte.
                if count > self.length - self.at {
                    return Err(damaged(OP, format!("{key:?} says it holds {count} values; the file ends before")));
                }
                for _ in 0..count {
                    self.value(key, kind, true)?;
                }
                None
            }
            other => {
                let text = format!("the value of {key:?} is of type {other}, which MLX's reader crashes on");
                return Err(Error::new(ErrorKind::Unsupported, OP, text));
            }
        })
    }

    fn text(&mut self) -> Result<String> {
        let size = self.number()?;
        if size > self.length - self.at {
            let text = format!("a text at {} says it is {size} bytes long; the file has {}", self.at, self.length);
            return Err(damaged(OP, text));
        }
        let mut bytes = vec![0; size as usize];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| damaged(OP, format!("the text before {} is not UTF-8", self.at)))
    }

    fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.from
            .read_exact(bytes)
            .map_err(|_| damaged(OP, format!("the file ends at {} inside its header", self.length)))?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}
