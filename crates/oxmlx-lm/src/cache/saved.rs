//! Caches in files that mlx-lm reads and writes.
//!
//! A file is SafeTensors. Array `i.j` is part `j` of layer `i`'s state, `i.j.k` part `k` of a group; numbers are arrays without axes,
//! listed in the metadata. Metadata `0.*` is the user's own, `1.i` the class of layer `i`, `2.*` the list of what is no array.
//!
//! # Source
//! mlx-lm's `save_prompt_cache` and `load_prompt_cache` (`models/cache.py`).

use std::collections::BTreeMap;
use std::path::Path;

use oxmlx::quantize::Affine;
use oxmlx::{Array, Dtype, io, ops};

use super::buffer::{rows, shape4};
use super::contract::Cache;
use super::{ChunkedKvCache, KvCache, QuantizedKvCache, RotatingKvCache};
use crate::{Error, ErrorKind, Result};

/// The state of one cache, part by part, under the name of mlx-lm's class.
#[derive(Clone, Debug)]
pub struct SavedCache {
    pub(super) class: String,
    pub(super) state: Vec<Part>,
}

/// A part of a cache's state.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Array(Array),
    Group(Vec<Array>),
    Number(usize),
}

impl SavedCache {
    pub(super) fn new(class: &str, state: Vec<Part>) -> Self {
        Self { class: class.to_owned(), state }
    }

    /// The cache again.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a class that there is no kind for, [`ErrorKind::Format`] for parts that are not such a cache's.
    pub fn open(self) -> Result<Box<dyn Cache>> {
        let Self { class, state } = self;
        let bad = |what: &str| Error::new(ErrorKind::Format, format!("no {class}: {what}"));
        let array = |part: usize| match state.get(part) {
            Some(Part::Array(array)) => Ok(array.clone()),
            _ => Err(bad("its keys and values are not there")),
        };
        let group = |part: usize| match state.get(part) {
            Some(Part::Group(group)) => {
                <[Array; 3]>::try_from(group.clone()).map_err(|_| bad("a group is not three arrays"))
            }
            _ => Err(bad("its keys and values are not there")),
        };
        let number = |part: usize| match state.get(part) {
            Some(Part::Number(number)) => Ok(*number),
            _ => Err(bad("a number is not there")),
        };
        let kv = || -> Result<(Array, Array, usize)> {
            let (keys, values) = (array(0)?, array(1)?);
            let [b, h, n, _] = shape4(&keys)?;
            let [vb, vh, vn, _] = shape4(&values)?;
            if (b, h, n) != (vb, vh, vn) || keys.dtype() != values.dtype() {
                return Err(bad("keys and values do not fit each other"));
            }
            Ok((keys, values, n as usize))
        };
        let within = |wanted: usize, held: usize| match wanted > 0 && wanted <= held {
            true => Ok(()),
            false => Err(bad(&format!("{held} rows for {wanted} tokens"))),
        };
        Ok(match class.as_str() {
            "KVCache" => {
                let ((keys, values, held), len) = (kv()?, number(2)?);
                within(len, held)?;
                Box::new(KvCache::with(rows(&keys, 0, len)?, rows(&values, 0, len)?)?)
            }
            "QuantizedKVCache" => {
                let affine = Affine::new(number(3)? as i32, number(4)? as i32)?;
                let ([a, b, c], [d, e, f]) = (group(0)?, group(1)?);
                let len = number(2)?;
                let mut parts = Vec::with_capacity(6);
                for part in [a, b, c, d, e, f] {
                    within(len, shape4(&part)?[2] as usize)?;
                    parts.push(rows(&part, 0, len)?);
                }
                let parts = <[Array; 6]>::try_from(parts).map_err(|_| bad("a group is not three arrays"))?;
                Box::new(QuantizedKvCache::with(affine, parts)?)
            }
            "RotatingKVCache" => {
                let (keys, values, held) = kv()?;
                let (offset, keep, max_size, next) = (number(2)?, number(3)?, number(4)?, number(5)?);
                within(offset.min(next), held)?;
                // In the order of positions: the kept ones, the oldest, the newest.
                let ordered = |buffer: &Array| -> Result<Array> {
                    if next == held || next >= offset {
                        return rows(buffer, 0, next.min(held));
                    }
                    let kept = keep.min(next);
                    let parts = [rows(buffer, 0, kept), rows(buffer, next, held), rows(buffer, kept, next)];
                    let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
                    Ok(ops::concatenate(&parts, 2)?)
                };
                let empty = RotatingKvCache::new(max_size)?.keeping(keep)?.with_slack(1)?;
                Box::new(empty.filled([ordered(&keys)?, ordered(&values)?], offset)?)
            }
            "ChunkedKVCache" => {
                let ((keys, values, held), offset) = (kv()?, number(2)?);
                let start = number(4)?;
                let len = offset.checked_sub(start).ok_or_else(|| bad("it starts behind its end"))?;
                within(len, held)?;
                let empty = ChunkedKvCache::new(number(3)?)?;
                Box::new(empty.filled(rows(&keys, 0, len)?, rows(&values, 0, len)?, start))
            }
            other => {
                let what = format!(
                    "a cache of class {other}: there are KVCache, QuantizedKVCache, RotatingKVCache and ChunkedKVCache"
                );
                return Err(Error::new(ErrorKind::Unsupported, what));
            }
        })
    }
}

/// Writes layers and the user's metadata to a file.
///
/// # Errors
/// [`ErrorKind::Mlx`] when it can't be written.
pub fn save(path: &Path, layers: &[SavedCache], metadata: &[(&str, &str)]) -> Result<()> {
    let mut arrays: Vec<(String, Array)> = Vec::new();
    let mut notes: Vec<(String, String)> = Vec::new();
    let mut scalars = vec![];
    for (key, text) in metadata {
        notes.push((format!("0.{key}"), (*text).to_owned()));
    }
    for (i, layer) in layers.iter().enumerate() {
        notes.push((format!("1.{i}"), layer.class.clone()));
        for (j, part) in layer.state.iter().enumerate() {
            match part {
                Part::Array(array) => arrays.push((format!("{i}.{j}"), array.clone())),
                Part::Group(group) => {
                    arrays.extend(group.iter().enumerate().map(|(k, array)| (format!("{i}.{j}.{k}"), array.clone())));
                }
                Part::Number(number) => {
                    arrays.push((format!("{i}.{j}"), Array::scalar(*number as i32)?));
                    scalars.push(format!("{i}.{j}"));
                }
            }
        }
    }
    notes.push(("2.0".to_owned(), String::new()));
    for (n, place) in scalars.into_iter().enumerate() {
        notes.push((format!("2.{}.0", n + 1), place));
        notes.push((format!("2.{}.1", n + 1), "scalar".to_owned()));
    }
    let arrays: Vec<(&str, Array)> = arrays.iter().map(|(name, array)| (name.as_str(), array.clone())).collect();
    let notes: Vec<(&str, &str)> = notes.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    Ok(io::save_safetensors(path, &arrays, &notes)?)
}

/// Reads the layers of a file, and the user's metadata. The file must stay as it is until the caches are evaluated.
///
/// # Errors
/// [`ErrorKind::Mlx`] when it can't be read, [`ErrorKind::Format`] when it is no prompt cache.
pub fn load(path: &Path) -> Result<(Vec<SavedCache>, BTreeMap<String, String>)> {
    let bad = |what: String| Error::new(ErrorKind::Format, what).at_path(path);
    let file = io::load_safetensors(path)?;
    let arrays: BTreeMap<String, Array> = file.arrays.into_iter().collect();
    let notes = |prefix: &str| {
        let of = |(key, text): &(String, String)| Some((key.strip_prefix(prefix)?.to_owned(), text.clone()));
        file.metadata.iter().filter_map(of).collect::<BTreeMap<_, _>>()
    };
    let classes: BTreeMap<String, String> = notes("1.");
    let listed: BTreeMap<String, String> = notes("2.");
    if classes.is_empty() {
        return Err(bad("no prompt cache: its metadata names no classes".to_owned()));
    }
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, place) in listed.iter().filter(|(key, _)| key.ends_with(".0")) {
        let kind = key.strip_suffix(".0").and_then(|n| listed.get(&format!("{n}.1")));
        kinds.insert(place, kind.map_or("", String::as_str));
    }
    let mut layers = Vec::with_capacity(classes.len());
    for i in 0..classes.len() {
        let class = classes.get(&i.to_string()).ok_or_else(|| bad(format!("layer {i} has no class")))?;
        let mut state = Vec::new();
        for j in 0.. {
            let name = format!("{i}.{j}");
            let group: Vec<Array> = (0..).map_while(|k| arrays.get(&format!("{name}.{k}"))).cloned().collect();
            match (arrays.get(&name), kinds.get(name.as_str())) {
                (Some(array), Some(&"scalar")) => {
                    let number = array.astype(Dtype::Int32)?.item::<i32>()?;
                    let number = usize::try_from(number).map_err(|_| bad(format!("{name} is {number}")))?;
                    state.push(Part::Number(number));
                }
                (Some(_), Some(kind)) => {
                    return Err(bad(format!(
                        "{name} is {kind}: an empty cache, or one that is not of keys and values"
                    )));
                }
                (Some(array), None) => state.push(Part::Array(array.clone())),
                (None, _) if !group.is_empty() => state.push(Part::Group(group)),
                (None, _) => break,
            }
        }
        layers.push(SavedCache::new(class, state));
    }
    Ok((layers, notes("0.")))
}
