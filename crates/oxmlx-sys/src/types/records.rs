//! What some functions return beside arrays, as plain Rust values: contraction paths, device facts, loaded files, print options,
//! groups of processes.

use cxx::UniquePtr;

use super::ffi;
use crate::call::call;
use crate::{Array, Result, lock};

/// The order in which an `einsum` contracts its operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contraction {
    /// One step each: the operands that are contracted, by their places in what is left.
    pub steps: Vec<Vec<i32>>,
    /// MLX's description of the path, for people.
    pub report: String,
}

impl From<ffi::ContractionParts> for Contraction {
    fn from(parts: ffi::ContractionParts) -> Self {
        Self { steps: parts.steps.into_iter().map(|step| step.values).collect(), report: parts.report }
    }
}

/// One of MLX's facts about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A name or description.
    Text(String),
    /// A count or a size in bytes.
    Number(usize),
}

impl From<ffi::FactParts> for (String, Fact) {
    fn from(parts: ffi::FactParts) -> Self {
        (parts.key, if parts.is_text { Fact::Text(parts.text) } else { Fact::Number(parts.number) })
    }
}

/// How MLX prints numbers and truth values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintFormat {
    /// Whether truth values are `True` and `False`.
    pub capitalize_bool: bool,
    /// Digits after the point; -1 for as many as the type needs.
    pub precision: i32,
}

impl From<ffi::PrintCode> for PrintFormat {
    fn from(code: ffi::PrintCode) -> Self {
        Self { capitalize_bool: code.capitalize_bool, precision: code.precision }
    }
}

/// A SafeTensors file: its arrays and its metadata, each sorted by name.
#[derive(Clone)]
pub struct Safetensors {
    /// Name and array.
    pub arrays: Vec<(String, Array)>,
    /// Key and value.
    pub metadata: Vec<(String, String)>,
}

impl From<ffi::SafetensorsParts> for Safetensors {
    fn from(parts: ffi::SafetensorsParts) -> Self {
        Self { arrays: sorted(parts.names, parts.arrays), metadata: sorted(parts.keys, parts.values) }
    }
}

/// A value in a GGUF file's metadata.
#[derive(Clone)]
pub enum Metadata {
    /// None.
    Empty,
    /// A number or a list of numbers.
    Array(Array),
    /// A string.
    Text(String),
    /// A list of strings.
    Texts(Vec<String>),
}

impl From<ffi::MetadataParts> for (String, Metadata) {
    fn from(mut parts: ffi::MetadataParts) -> Self {
        let value = match parts.kind {
            ffi::MetadataKind::Array => parts.arrays.pop().map_or(Metadata::Empty, Metadata::Array),
            ffi::MetadataKind::Text => parts.texts.pop().map_or(Metadata::Empty, Metadata::Text),
            ffi::MetadataKind::Texts => Metadata::Texts(parts.texts),
            _ => Metadata::Empty,
        };
        (parts.key, value)
    }
}

impl From<&(String, Metadata)> for ffi::MetadataParts {
    fn from((key, value): &(String, Metadata)) -> Self {
        let (kind, arrays, texts) = match value {
            Metadata::Empty => (ffi::MetadataKind::Empty, Vec::new(), Vec::new()),
            Metadata::Array(array) => (ffi::MetadataKind::Array, vec![array.clone()], Vec::new()),
            Metadata::Text(text) => (ffi::MetadataKind::Text, Vec::new(), vec![text.clone()]),
            Metadata::Texts(texts) => (ffi::MetadataKind::Texts, Vec::new(), texts.clone()),
        };
        Self { key: key.clone(), kind, arrays, texts }
    }
}

/// Metadata as the bridge takes it.
pub(crate) fn metadata_parts(entries: &[(String, Metadata)]) -> Vec<ffi::MetadataParts> {
    entries.iter().map(Into::into).collect()
}

/// A GGUF file as MLX reads it: its arrays and its metadata, each sorted by name.
#[derive(Clone)]
pub struct Gguf {
    /// Name and array.
    pub arrays: Vec<(String, Array)>,
    /// Key and value.
    pub metadata: Vec<(String, Metadata)>,
}

impl From<ffi::GgufParts> for Gguf {
    fn from(parts: ffi::GgufParts) -> Self {
        let mut metadata: Vec<(String, Metadata)> = parts.metadata.into_iter().map(Into::into).collect();
        metadata.sort_by(|a, b| a.0.cmp(&b.0));
        Self { arrays: sorted(parts.names, parts.arrays), metadata }
    }
}

/// C++ gives maps in no order; the same file should read the same twice.
fn sorted<T>(names: Vec<String>, values: Vec<T>) -> Vec<(String, T)> {
    let mut pairs: Vec<(String, T)> = names.into_iter().zip(values).collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    pairs
}

/// Processes that communicate. Made by `distributed::init`.
pub struct Group(UniquePtr<ffi::Group>);

impl Drop for Group {
    fn drop(&mut self) {
        lock::free(&mut self.0);
    }
}

impl Group {
    /// This process's place in the group, from 0.
    ///
    /// # Errors
    /// What the communication backend throws.
    pub fn rank(&self) -> Result<i32> {
        call("rank", || ffi::rank(&self.0))
    }

    /// The number of processes.
    ///
    /// # Errors
    /// What the communication backend throws.
    pub fn size(&self) -> Result<i32> {
        call("size", || ffi::size(&self.0))
    }

    /// The group of those that give the same `color`, ranked by `key`; a negative key keeps the order.
    ///
    /// # Errors
    /// What the communication backend throws; many can't split.
    pub fn split(&self, color: i32, key: i32) -> Result<Self> {
        call("split", || ffi::split(&self.0, color, key)).map(Self)
    }
}

impl From<UniquePtr<ffi::Group>> for Group {
    fn from(group: UniquePtr<ffi::Group>) -> Self {
        Self(group)
    }
}

/// `None` as a null pointer: the group of all processes.
pub(crate) fn opt_group(group: Option<&Group>) -> *const ffi::Group {
    group.map_or(std::ptr::null(), |group| group.0.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_pairs_come_out_by_name() {
        let pairs = sorted(vec!["b".to_owned(), "a".to_owned()], vec![1, 2]);
        assert_eq!(pairs, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    }

    #[test]
    fn metadata_survives_the_bridge_types() {
        let texts = ("k".to_owned(), Metadata::Texts(vec!["a".to_owned(), "b".to_owned()]));
        let (key, back) = ffi::MetadataParts::from(&texts).into();
        assert!(key == "k" && matches!(back, Metadata::Texts(t) if t == ["a", "b"]));
        let (_, back) = ffi::MetadataParts::from(&("k".to_owned(), Metadata::Empty)).into();
        assert!(matches!(back, Metadata::Empty));
    }
}
