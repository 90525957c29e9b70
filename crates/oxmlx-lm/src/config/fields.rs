//! Typed access to a JSON object's fields whose errors name the file and the field.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::{Error, ErrorKind, Result};

/// A JSON object and where it stands: a whole file, or a field of one (`rope_scaling.` for example).
pub(crate) struct Fields<'a> {
    path: &'a Path,
    prefix: String,
    map: &'a Map<String, Value>,
}

/// A JSON file whose top is an object.
pub(crate) struct JsonFile {
    path: PathBuf,
    map: Map<String, Value>,
}

impl JsonFile {
    pub(crate) fn open(path: PathBuf) -> Result<Self> {
        let text = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
        let map = serde_json::from_slice(&text)
            .map_err(|e| Error::new(ErrorKind::Format, "not a json object").at_path(&path).caused_by(e))?;
        Ok(Self { path, map })
    }

    /// As [`JsonFile::open`], `None` if there is no such file.
    pub(crate) fn open_if_there(path: PathBuf) -> Result<Option<Self>> {
        if path.symlink_metadata().is_err() { Ok(None) } else { Self::open(path).map(Some) }
    }

    pub(crate) fn fields(&self) -> Fields<'_> {
        Fields { path: &self.path, prefix: String::new(), map: &self.map }
    }
}

impl<'a> Fields<'a> {
    /// The value of `name`; null counts as missing.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|v| !v.is_null())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
        self.map.iter()
    }

    pub(crate) fn error(&self, kind: ErrorKind, name: &str, what: impl Into<String>) -> Error {
        Error::new(kind, what).at_field(format!("{}{name}", self.prefix)).at_path(self.path)
    }

    /// That `name` holds `value` and not what was wanted.
    pub(crate) fn wrong(&self, name: &str, wanted: &str, value: &Value) -> Error {
        let mut got = value.to_string();
        if let Some((at, _)) = got.char_indices().nth(60) {
            got.truncate(at);
            got.push_str("...");
        }
        self.error(ErrorKind::Config, name, format!("expected {wanted}, got {got}"))
    }

    fn typed<T>(&self, name: &str, wanted: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<Option<T>> {
        self.get(name).map(|v| read(v).ok_or_else(|| self.wrong(name, wanted, v))).transpose()
    }

    pub(crate) fn missing(&self, name: &str) -> Error {
        self.error(ErrorKind::Config, name, "missing, the model needs it")
    }

    /// A positive integer that fits an `i32`, as MLX's shapes do.
    pub(crate) fn count(&self, name: &str) -> Result<Option<usize>> {
        self.typed(name, "a positive integer", |v| {
            let n = v.as_u64().filter(|&n| n > 0)?;
            i32::try_from(n).ok().map(|_| n as usize)
        })
    }

    pub(crate) fn required_count(&self, name: &str) -> Result<usize> {
        self.count(name)?.ok_or_else(|| self.missing(name))
    }

    /// A finite number greater than 0.
    pub(crate) fn positive(&self, name: &str) -> Result<Option<f64>> {
        self.typed(name, "a positive number", |v| v.as_f64().filter(|x| x.is_finite() && *x > 0.0))
    }

    pub(crate) fn required_positive(&self, name: &str) -> Result<f64> {
        self.positive(name)?.ok_or_else(|| self.missing(name))
    }

    pub(crate) fn bool(&self, name: &str) -> Result<Option<bool>> {
        self.typed(name, "true or false", Value::as_bool)
    }

    pub(crate) fn str(&self, name: &str) -> Result<Option<&'a str>> {
        self.typed(name, "a string", Value::as_str)
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<Fields<'a>>> {
        let map = self.typed(name, "an object", Value::as_object)?;
        Ok(map.map(|map| Fields { path: self.path, prefix: format!("{}{name}.", self.prefix), map }))
    }

    /// Token ids: one integer or a list of them; empty if missing.
    pub(crate) fn token_ids(&self, name: &str) -> Result<Vec<u32>> {
        let id = |v: &Value| u32::try_from(v.as_u64()?).ok();
        let ids = self.typed(name, "a token id or a list of them", |v| match v {
            Value::Array(list) => list.iter().map(id).collect(),
            one => Some(vec![id(one)?]),
        })?;
        Ok(ids.unwrap_or_default())
    }
}
