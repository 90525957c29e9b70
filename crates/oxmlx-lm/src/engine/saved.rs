//! Prefixes in files that mlx-lm reads and writes.

use std::path::Path;

use super::{Engine, Prefix, SequenceId};
use crate::cache::saved::{load, save};
use crate::{Error, ErrorKind, LanguageModel, Result};

/// The metadata in which the tokens stand. mlx-lm keeps what it does not know.
const TOKENS: &str = "oxmlx_tokens";

impl Prefix {
    /// Reads a prompt cache. Its tokens are in a file that oxmlx wrote; for one of mlx-lm's give them.
    ///
    /// # Errors
    /// [`ErrorKind::Format`] when it is no prompt cache, or one of another number of tokens, or the tokens are not known;
    /// [`ErrorKind::Unsupported`] for caches of kinds that are not there.
    pub fn load(path: impl AsRef<Path>, tokens: Option<&[u32]>) -> Result<Self> {
        let path = path.as_ref();
        let bad = |what: &str| Error::new(ErrorKind::Format, what).at_path(path);
        let (layers, metadata) = load(path)?;
        let tokens = match (tokens, metadata.get(TOKENS)) {
            (Some(tokens), _) => tokens.to_vec(),
            (None, Some(text)) => {
                let ids = text.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>();
                ids.map_err(|error| bad("its tokens are no numbers").caused_by(error))?
            }
            (None, None) => return Err(bad("it does not say of which tokens it is: give them")),
        };
        let mut snapshots = Vec::with_capacity(layers.len());
        for layer in layers {
            let cache = layer.open().map_err(|error| error.at_path(path))?;
            // The file may change later; what is in memory does not.
            oxmlx::eval(&cache.arrays())?;
            snapshots.push(cache.snapshot().ok_or_else(|| bad("a cache that takes no snapshots"))?);
        }
        Self::new(tokens, snapshots).map_err(|error| bad("it is of another number of tokens").caused_by(error))
    }
}

impl<M: LanguageModel> Engine<M> {
    /// Writes what a sequence has seen to a file, with `metadata` of the caller's, as mlx-lm's `save_prompt_cache` does.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] for a sequence that is not open, [`ErrorKind::Unsupported`] for one that has seen nothing or whose caches mlx-lm
    /// does not have, [`ErrorKind::Mlx`] when the file can't be written.
    pub fn save_prefix(&mut self, id: SequenceId, path: impl AsRef<Path>, metadata: &[(&str, &str)]) -> Result<()> {
        self.pause(id)?;
        let row = self.row(id)?;
        let mut layers = Vec::with_capacity(row.caches.len());
        for cache in &row.caches {
            let what =
                || format!("{id}: an empty {} cache, or one that mlx-lm has not, has no file form", cache.kind());
            layers.push(cache.saved()?.ok_or_else(|| Error::new(ErrorKind::Unsupported, what()))?);
        }
        let tokens: Vec<String> = row.text[..row.fed].iter().map(u32::to_string).collect();
        let tokens = tokens.join(" ");
        let notes: Vec<(&str, &str)> = metadata.iter().copied().chain([(TOKENS, tokens.as_str())]).collect();
        save(path.as_ref(), &layers, &notes)
    }
}
