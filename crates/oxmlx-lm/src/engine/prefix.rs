//! Prefixes: what a sequence has seen, kept to begin others with.

use super::sequence::State;
use super::{Engine, SequenceId};
use crate::cache::Snapshot;
use crate::{Error, ErrorKind, LanguageModel, Result};

/// Tokens and a snapshot of each layer's cache after them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Prefix {
    tokens: Vec<u32>,
    layers: Vec<Snapshot>,
}

impl Prefix {
    /// A prefix of these tokens, with one snapshot a layer.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] when a snapshot is of another number of tokens.
    pub fn new(tokens: Vec<u32>, layers: Vec<Snapshot>) -> Result<Self> {
        if let Some(layer) = layers.iter().find(|layer| layer.offset() != tokens.len()) {
            let what = format!("a snapshot after {} tokens is none of {} tokens", layer.offset(), tokens.len());
            return Err(Error::new(ErrorKind::Cache, what));
        }
        Ok(Self { tokens, layers })
    }

    /// The tokens that were seen.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The layers' snapshots.
    pub fn layers(&self) -> &[Snapshot] {
        &self.layers
    }

    /// The bytes that it holds, shared ones too.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(Snapshot::bytes).sum()
    }
}

impl<M: LanguageModel> Engine<M> {
    /// What a sequence has seen so far: of one that decodes, all but its last token. A step of it that is on its way is let go, and comes
    /// again.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] for a sequence that is not open, [`ErrorKind::Cache`] when its caches take no snapshots.
    pub fn prefix(&mut self, id: SequenceId) -> Result<Prefix> {
        self.pause(id)?;
        let row = self.row(id)?;
        let mut layers = Vec::with_capacity(row.caches.len());
        for cache in &row.caches {
            let what = || Error::new(ErrorKind::Cache, format!("{id}: a {} cache takes no snapshots", cache.kind()));
            layers.push(cache.snapshot().ok_or_else(what)?);
        }
        Prefix::new(row.text[..row.fed].to_vec(), layers)
    }

    /// Begins a sequence that has seen nothing with the first `len` tokens of a prefix, all of them for `None`. Gives how many it has
    /// now. A prefix does not know its model: one of another model whose caches have the same shapes is taken, and what follows is noise.
    ///
    /// # Errors
    /// [`ErrorKind::Sequence`] for a sequence that is not open or has seen something, [`ErrorKind::Cache`] for a prefix of other caches or
    /// one whose caches can't go back to `len`. The sequence has seen nothing then.
    pub fn adopt(&mut self, id: SequenceId, prefix: &Prefix, len: Option<usize>) -> Result<usize> {
        let row = self.row_mut(id)?;
        if row.fed > 0 || !matches!(row.state, State::Feeding { .. }) {
            return Err(Error::new(ErrorKind::Sequence, format!("{id} has seen {} tokens: adopt before", row.fed)));
        }
        if row.caches.len() != prefix.layers.len() {
            let what = format!("a prefix of {} layers does not fit {} caches", prefix.layers.len(), row.caches.len());
            return Err(Error::new(ErrorKind::Cache, what));
        }
        let kept = len.unwrap_or(prefix.tokens.len()).min(prefix.tokens.len());
        let restored = row.caches.iter_mut().zip(&prefix.layers).try_for_each(|(cache, layer)| cache.restore(layer));
        row.fed = prefix.tokens.len();
        let adopted = restored.and_then(|()| row.trim(prefix.tokens.len() - kept));
        if let Err(error) = adopted {
            self.rebuild(id)?;
            return Err(error);
        }
        let row = self.row_mut(id)?;
        row.text = prefix.tokens[..kept].to_vec();
        row.prompt = kept;
        Ok(kept)
    }
}
