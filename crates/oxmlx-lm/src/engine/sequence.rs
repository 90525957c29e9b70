//! What a model has seen of one text.

use crate::Result;
use crate::cache::Cache;

/// One text's caches, and the tokens that they hold.
pub struct Sequence {
    pub(super) caches: Vec<Box<dyn Cache>>,
    /// The tokens in the caches. A token that was submitted but not read yet is missing at the end.
    pub(super) seen: Vec<u32>,
}

impl Sequence {
    pub(super) fn new(caches: Vec<Box<dyn Cache>>) -> Self {
        Self { caches, seen: Vec::new() }
    }

    /// The tokens that it has seen.
    pub fn tokens(&self) -> &[u32] {
        &self.seen
    }

    /// How many tokens the caches hold.
    pub(super) fn cached(&self) -> usize {
        self.caches.first().map_or(0, |cache| cache.offset())
    }

    /// Keeps the first `len` tokens and forgets the rest.
    pub(super) fn truncate(&mut self, len: usize) -> Result<()> {
        for cache in &mut self.caches {
            cache.trim(cache.offset().saturating_sub(len))?;
        }
        self.seen.truncate(len);
        Ok(())
    }
}
