//! Which files of a model folder hold its tensors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::{Error, ErrorKind, Result};

const INDEX: &str = "model.safetensors.index.json";
const SINGLE: &str = "model.safetensors";

/// The SafeTensors files of a folder.
pub(super) struct Shards {
    pub(super) files: Vec<PathBuf>,
    /// Which file, by position in `files`, the index says holds each tensor; `None` without an index.
    pub(super) index: Option<BTreeMap<String, usize>>,
    pub(super) warnings: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Finds the shards: those of the index if there is one, else `model.safetensors`, else every `model*.safetensors`.
pub(super) fn shards(folder: &Path) -> Result<Shards> {
    let index = folder.join(INDEX);
    if exists(&index) {
        return indexed(folder, &index);
    }
    let files = match folder.join(SINGLE) {
        single if exists(&single) => vec![single],
        _ => {
            let names = safetensors_in(folder)?.into_iter().filter(|n| n.starts_with("model"));
            names.map(|n| folder.join(n)).collect()
        }
    };
    if files.is_empty() {
        let what = format!("no weights here, neither {SINGLE} nor {INDEX} (for a gguf file give its own path)");
        return Err(Error::new(ErrorKind::Io, what).at_path(folder));
    }
    Ok(Shards { files, index: None, warnings: Vec::new() })
}

/// Also true of a broken symbolic link, which is then an error when opened and not a file that isn't there.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn indexed(folder: &Path, index_path: &Path) -> Result<Shards> {
    let text = std::fs::read(index_path).map_err(|e| Error::io(index_path, e))?;
    let damaged = |what: &str| Error::new(ErrorKind::Format, what).at_path(index_path);
    let index: Index = serde_json::from_slice(&text)
        .map_err(|e| damaged("damaged index: wants an object weight_map of tensor names to files").caused_by(e))?;
    let names: BTreeSet<&str> = index.weight_map.values().map(String::as_str).collect();
    if names.is_empty() {
        return Err(damaged("damaged index: it names no tensors").at_field("weight_map"));
    }
    for &name in &names {
        let mut parts = Path::new(name).components();
        if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
            let what = format!("damaged index: {name:?} is no plain file name");
            return Err(damaged(&what).at_field("weight_map"));
        }
        if !exists(&folder.join(name)) {
            let what = format!("the index names the shard {name}, which is missing: fetch it again");
            return Err(Error::new(ErrorKind::Io, what).at_path(index_path));
        }
    }
    let warnings = safetensors_in(folder)?
        .into_iter()
        .filter(|n| !names.contains(n.as_str()))
        .map(|n| format!("{}: not in the index, ignored", folder.join(n).display()))
        .collect();
    let position: BTreeMap<&str, usize> = names.iter().enumerate().map(|(i, &n)| (n, i)).collect();
    let by_tensor = index.weight_map.iter().map(|(t, n)| (t.clone(), position[n.as_str()])).collect();
    Ok(Shards { files: names.iter().map(|n| folder.join(n)).collect(), index: Some(by_tensor), warnings })
}

/// The names of the folder's SafeTensors files, sorted.
fn safetensors_in(folder: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in folder.read_dir().map_err(|e| Error::io(folder, e))? {
        let name = entry.map_err(|e| Error::io(folder, e))?.file_name();
        if let Some(name) = name.to_str().filter(|n| n.ends_with(".safetensors")) {
            names.insert(name.to_owned());
        }
    }
    Ok(names)
}
