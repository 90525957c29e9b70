//! The whole file: header, metadata, tensor directory, and the checks that tie them together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::affine::Affine;
use super::cursor::Cursor;
use super::ggml::GgmlType;
use super::value::{Array, Value};
use crate::weights::Dtype;
use crate::{Error, ErrorKind, Result};

const DEFAULT_ALIGNMENT: usize = 32;
const MAX_DIMS: usize = 4;
/// Bytes of the smallest metadata entry: key length, empty key, type, one byte.
const LEAST_ENTRY: usize = 8 + 4 + 1;
/// Bytes of the smallest tensor description: name length, empty name, dimension count, type, offset.
const LEAST_TENSOR: usize = 8 + 4 + 4 + 8;

/// A parsed GGUF file; it borrows names, texts and tensor data from the bytes it was parsed from.
#[derive(Debug)]
pub struct Gguf<'a> {
    version: u32,
    metadata: Vec<(&'a str, Value<'a>)>,
    keys: HashMap<&'a str, usize>,
    tensors: Vec<Tensor<'a>>,
    names: HashMap<&'a str, usize>,
}

/// One tensor of a GGUF file, not yet converted.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    name: &'a str,
    ggml_type: GgmlType,
    shape: Vec<usize>,
    offset: usize,
    data: &'a [u8],
}

/// A tensor's values in a form that MLX can use.
#[derive(Clone, Debug, PartialEq)]
pub enum Values<'a> {
    /// Row-major values, as they stand in the file.
    Plain(Dtype, &'a [u8]),
    /// A quantized matrix, converted.
    Affine(Affine),
}

impl<'a> Gguf<'a> {
    /// Reads the directory of the file in `bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] if the file is damaged or cut short; [`ErrorKind::Unsupported`] for a version other than 2 and
    /// 3, a big-endian file, or a tensor type that isn't known. The metadata key or the tensor is named.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(4).ok() != Some(b"GGUF") {
            return Err(cursor.damaged("not a gguf file: it doesn't start with the letters GGUF".into()));
        }
        let version = cursor.u32()?;
        if !(2..=3).contains(&version) {
            let what = if (2..=3).contains(&version.swap_bytes()) {
                "big-endian gguf file, convert the model for a little-endian machine".into()
            } else {
                format!("gguf version {version}, only 2 and 3 can be read: convert the model again")
            };
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
        let tensor_count = cursor.count("tensors", LEAST_TENSOR)?;
        let metadata_count = cursor.count("metadata entries", LEAST_ENTRY)?;

        let mut metadata = Vec::new();
        let mut keys = HashMap::new();
        for _ in 0..metadata_count {
            let key = cursor.text().map_err(|e| e.at_field(format!("metadata entry {}", metadata.len())))?;
            let value = Value::read(&mut cursor).map_err(|e| e.at_field(key))?;
            if keys.insert(key, metadata.len()).is_some() {
                return Err(cursor.damaged("damaged file: the key occurs twice".into()).at_field(key));
            }
            metadata.push((key, value));
        }
        let mut gguf = Self { version, metadata, keys, tensors: Vec::new(), names: HashMap::new() };
        gguf.read_tensors(bytes, cursor, tensor_count)?;
        gguf.check_overlap()?;
        Ok(gguf)
    }

    fn read_tensors(&mut self, bytes: &'a [u8], mut cursor: Cursor<'a>, count: usize) -> Result<()> {
        let alignment = self.alignment()?;
        let mut described = Vec::new();
        for i in 0..count {
            let name = cursor.text().map_err(|e| e.at_tensor(format!("number {i}")))?;
            described.push(Described::read(name, &mut cursor).map_err(|e| e.at_tensor(name))?);
        }
        let start = cursor.position().next_multiple_of(alignment);
        for (i, tensor) in described.into_iter().enumerate() {
            let name = tensor.name;
            match self.names.entry(name) {
                Entry::Vacant(slot) => slot.insert(i),
                Entry::Occupied(_) => {
                    return Err(cursor.damaged("damaged file: the tensor occurs twice".into()).at_tensor(name));
                }
            };
            self.tensors.push(tensor.locate(bytes, start, alignment).map_err(|e| e.at_tensor(name))?);
        }
        Ok(())
    }

    fn alignment(&self) -> Result<usize> {
        const KEY: &str = "general.alignment";
        let Some(alignment) = self.usize(KEY)? else { return Ok(DEFAULT_ALIGNMENT) };
        if !alignment.is_power_of_two() || alignment > 1 << 30 {
            let what = format!("damaged file: an alignment of {alignment} is no power of two");
            return Err(Error::new(ErrorKind::Format, what).at_field(KEY));
        }
        Ok(alignment)
    }

    fn check_overlap(&self) -> Result<()> {
        let mut order: Vec<&Tensor<'_>> = self.tensors.iter().filter(|t| !t.data.is_empty()).collect();
        order.sort_unstable_by_key(|t| t.offset);
        for pair in order.windows(2) {
            if pair[0].offset + pair[0].data.len() > pair[1].offset {
                let what = format!("damaged file: its data overlap those of tensor {}", pair[0].name.escape_debug());
                return Err(Error::new(ErrorKind::Format, what).at_tensor(pair[1].name));
            }
        }
        Ok(())
    }

    /// The format's version, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// All metadata, in the file's order.
    pub fn metadata(&self) -> &[(&'a str, Value<'a>)] {
        &self.metadata
    }

    /// All tensors, in the file's order.
    pub fn tensors(&self) -> &[Tensor<'a>] {
        &self.tensors
    }

    /// The tensor called `name`, if there is one.
    pub fn tensor(&self, name: &str) -> Option<&Tensor<'a>> {
        self.names.get(name).map(|&i| &self.tensors[i])
    }

    /// The metadata value of `key`, if there is one.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.keys.get(key).map(|&i| &self.metadata[i].1)
    }

    fn typed<'s, T>(
        &'s self,
        key: &str,
        wanted: &str,
        as_type: impl Fn(&'s Value<'a>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        as_type(value).map(Some).ok_or_else(|| {
            let what = match value {
                Value::Array(a) => format!("expected {wanted}, got an array of {} values", a.len()),
                Value::Str(_) => format!("expected {wanted}, got a string"),
                other => format!("expected {wanted}, got the {} {other:?}", other.type_name()),
            };
            Error::new(ErrorKind::Config, what).at_field(key)
        })
    }

    /// The integer of `key`, of whatever width; `None` if the key is missing.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value is of another type or negative; so for the other typed getters.
    pub fn usize(&self, key: &str) -> Result<Option<usize>> {
        self.typed(key, "a non-negative integer", |v| v.as_u64()?.try_into().ok())
    }

    /// The float of `key`, of either width.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value is of another type.
    pub fn f64(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a float", Value::as_f64)
    }

    /// The bool of `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value is of another type.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "a bool", Value::as_bool)
    }

    /// The text of `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value is of another type.
    pub fn str(&self, key: &str) -> Result<Option<&'a str>> {
        self.typed(key, "a string", Value::as_str)
    }

    /// The texts of `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value is of another type.
    pub fn strs(&self, key: &str) -> Result<Option<&[&'a str]>> {
        self.typed(key, "an array of strings", |v| v.as_array()?.as_strs())
    }

    /// The integers of `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value is of another type.
    pub fn i64s(&self, key: &str) -> Result<Option<Vec<i64>>> {
        self.typed(key, "an array of integers", |v| v.as_array().and_then(Array::to_i64s))
    }

    /// The `f32`s of `key`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if the value is of another type.
    pub fn f32s(&self, key: &str) -> Result<Option<&[f32]>> {
        self.typed(key, "an array of floats", |v| v.as_array()?.as_f32s())
    }
}

/// A tensor as its description has it, before its data are looked for.
struct Described<'a> {
    name: &'a str,
    ggml_type: GgmlType,
    shape: Vec<usize>,
    bytes: usize,
    offset: u64,
}

impl<'a> Described<'a> {
    fn read(name: &'a str, cursor: &mut Cursor<'a>) -> Result<Self> {
        let dims = cursor.u32()? as usize;
        if dims > MAX_DIMS {
            return Err(cursor.damaged(format!("damaged file: {dims} dimensions, ggml has at most {MAX_DIMS}")));
        }
        let mut shape = Vec::with_capacity(dims);
        for _ in 0..dims {
            shape.push(cursor.u64()?);
        }
        let id = cursor.u32()?;
        let offset = cursor.u64()?;
        let ggml_type = GgmlType::from_id(id).ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, format!("tensor type number {id}: {}", GgmlType::unknown(id)))
        })?;

        let row = shape.first().copied().unwrap_or(1);
        let (block_len, block_bytes) = (ggml_type.block_len() as u64, ggml_type.block_bytes() as u64);
        if !row.is_multiple_of(block_len) {
            let what =
                format!("damaged file: rows of {row} values are no whole number of {ggml_type} blocks of {block_len}");
            return Err(cursor.damaged(what));
        }
        // ggml lists the fastest dimension first, everybody else last.
        shape.reverse();
        let shape: Option<Vec<usize>> = shape.into_iter().map(|n| n.try_into().ok()).collect();
        // Sizes of 0 count as 1 here, so that the product of the others is bounded too.
        let product = |shape: &[usize]| shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d.max(1)));
        let too_large = || cursor.damaged("damaged file: the product of its dimensions is too large".into());
        let shape = shape.ok_or_else(too_large)?;
        let values = product(&shape).ok_or_else(too_large)?;
        let bytes = (values as u64 / block_len).checked_mul(block_bytes).and_then(|n| usize::try_from(n).ok());
        let bytes = bytes.filter(|&n| isize::try_from(n).is_ok()).ok_or_else(too_large)?;
        let bytes = if shape.contains(&0) { 0 } else { bytes };
        Ok(Self { name, ggml_type, shape, bytes, offset })
    }

    fn locate(self, file: &'a [u8], data_start: usize, alignment: usize) -> Result<Tensor<'a>> {
        let damaged = |what: String| Error::new(ErrorKind::Format, what);
        if !self.offset.is_multiple_of(alignment as u64) {
            return Err(damaged(format!(
                "damaged file: offset {} is no multiple of the alignment {alignment}",
                self.offset
            )));
        }
        let range = usize::try_from(self.offset).ok().and_then(|o| {
            let start = data_start.checked_add(o)?;
            Some(start..start.checked_add(self.bytes)?)
        });
        let Self { name, ggml_type, shape, bytes, offset } = self;
        let Some(range) = range.filter(|r| r.end <= file.len() || bytes == 0) else {
            let end = (data_start as u64).saturating_add(offset).saturating_add(bytes as u64);
            let what =
                format!("truncated file: its data end at byte {end}, the file at {}: fetch it again", file.len());
            return Err(damaged(what));
        };
        let data = if bytes == 0 { &[] } else { &file[range.clone()] };
        Ok(Tensor { name, ggml_type, shape, offset: range.start, data })
    }
}

impl<'a> Tensor<'a> {
    /// A tensor whose directory entry was kept elsewhere.
    pub(crate) fn of_parts(name: &'a str, ggml_type: GgmlType, shape: &[usize], data: &'a [u8]) -> Self {
        Self { name, ggml_type, shape: shape.to_vec(), offset: 0, data }
    }

    /// The name in the file, `blk.0.attn_q.weight` for example.
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// How the values are stored.
    pub fn ggml_type(&self) -> GgmlType {
        self.ggml_type
    }

    /// The size of each dimension, the slowest first, as MLX and NumPy have it (the file has the reverse).
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Where in the file the data start, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes as they stand in the file.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The values in a form that MLX can use.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`], naming the tensor and its type, if the type has no such form.
    pub fn values(&self) -> Result<Values<'a>> {
        match self.ggml_type.dtype() {
            Some(dtype) => Ok(Values::Plain(dtype, self.data)),
            None => Affine::convert(self).map(Values::Affine),
        }
    }
}
