//! The header of a SafeTensors file, checked whole: each error names the tensor.
//!
//! Stricter than the `safetensors` crate in one point, duplicate names, and it names the tensor whose size is wrong, which that
//! crate does not; in what it accepts the two agree otherwise (a test compares them).

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Dtype;
use crate::{Error, ErrorKind, Result};

const MAX_HEADER: u64 = 100_000_000;
const METADATA: &str = "__metadata__";

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    /// Position in the file.
    pub(super) range: Range<usize>,
}

/// Reads the directory of the file in `bytes`, in the order of the data.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Entry>> {
    let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(damaged(format!("truncated file: {} bytes, a safetensors file has at least 8", bytes.len())));
    };
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER {
        return Err(damaged(format!(
            "not a safetensors file: a header of {length} bytes, at most {MAX_HEADER} are allowed"
        )));
    }
    let header = rest.get(..length as usize).ok_or_else(|| {
        damaged(format!("truncated file: its header has {length} bytes, {} are there: fetch it again", rest.len()))
    })?;
    let header = std::str::from_utf8(header).map_err(|e| damaged("damaged header: not utf-8").caused_by(e))?;
    let Pairs(pairs) =
        serde_json::from_str(header).map_err(|e| damaged("damaged header: not the json expected").caused_by(e))?;

    let data_start = 8 + header.len();
    let data_len = bytes.len() - data_start;
    let mut seen = HashSet::new();
    let mut entries = Vec::new();
    for (name, raw) in pairs {
        if !seen.insert(name.clone()) {
            return Err(damaged("damaged header: the name occurs twice").at_tensor(name));
        }
        if name == METADATA {
            // MLX writes null where it has no metadata.
            serde_json::from_str::<Option<BTreeMap<String, String>>>(raw.get())
                .map_err(|e| damaged("damaged header: not a map of strings").at_field(METADATA).caused_by(e))?;
            continue;
        }
        let entry = Described::read(raw.get()).and_then(|d| d.check(data_len));
        let (dtype, shape, range) = entry.map_err(|e| e.at_tensor(&name))?;
        entries.push(Entry { name, dtype, shape, range: data_start + range.start..data_start + range.end });
    }
    check_layout(&mut entries, data_start, bytes.len())?;
    Ok(entries)
}

/// Sorts by position and refuses overlaps and gaps.
fn check_layout(entries: &mut [Entry], start: usize, end: usize) -> Result<()> {
    entries.sort_by_key(|e| (e.range.start, e.range.end));
    let mut at = start;
    let mut before = "the header";
    for entry in &*entries {
        let from = entry.range.start;
        if from < at {
            let what = format!("damaged header: its data overlap those of {}", before.escape_debug());
            return Err(damaged(what).at_tensor(&entry.name));
        }
        if from > at {
            let what = format!("damaged header: the {} bytes before its data belong to no tensor", from - at);
            return Err(damaged(what).at_tensor(&entry.name));
        }
        at = entry.range.end;
        before = &entry.name;
    }
    if at != end {
        return Err(damaged(format!("damaged file: the {} bytes after the last tensor belong to none", end - at)));
    }
    Ok(())
}

#[derive(serde::Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl Described {
    fn read(json: &str) -> Result<Self> {
        serde_json::from_str(json)
            .map_err(|e| damaged("damaged header: wants dtype, shape and data_offsets").caused_by(e))
    }

    fn check(self, data_len: usize) -> Result<(Dtype, Vec<usize>, Range<usize>)> {
        let dtype = Dtype::from_name(&self.dtype).ok_or_else(|| {
            let what = format!("dtype {:?} is none that safetensors files have", self.dtype);
            Error::new(ErrorKind::Unsupported, what)
        })?;
        let bits = self.shape.iter().try_fold(dtype.bits() as u64, |n, &d| n.checked_mul(d));
        let shape: Option<Vec<usize>> = self.shape.iter().map(|&d| d.try_into().ok()).collect();
        let (Some(bits), Some(shape)) = (bits, shape) else {
            return Err(damaged(format!("damaged header: the product of the shape {:?} is too large", self.shape)));
        };
        let (from, to) = self.data_offsets;
        if from > to || to > data_len as u64 {
            let what =
                format!("truncated or damaged file: data offsets {from}..{to}, the file has {data_len} bytes of data");
            return Err(damaged(what));
        }
        if !bits.is_multiple_of(8) || bits / 8 != to - from {
            let bytes = to - from;
            let what = format!(
                "damaged header: shape {shape:?} of {dtype} wants {} bytes, its offsets have {bytes}",
                bits / 8
            );
            return Err(damaged(what));
        }
        // Both lie within the file's length, which is a usize.
        Ok((dtype, shape, from as usize..to as usize))
    }
}

fn damaged(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::Format, what)
}

/// A JSON object's members in order, duplicates kept.
struct Pairs(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
