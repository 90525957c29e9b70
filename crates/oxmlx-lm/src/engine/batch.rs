//! One forward pass for the rows of a batch.

use oxmlx::Array;

use super::{Engine, SequenceId};
use crate::cache::{Cache, RowsCache};
use crate::language_model::Logits;
use crate::{LanguageModel, Result};

impl<M: LanguageModel> Engine<M> {
    /// Whether these rows can share a pass.
    pub(super) fn together(&self, ids: &[SequenceId]) -> bool {
        let batches = |id: &SequenceId| self.rows.get(id).is_some_and(|row| row.caches.iter().all(|c| c.can_batch()));
        ids.len() == 1 || self.model.batches() && ids.iter().all(batches)
    }

    /// Feeds `tokens` `[rows, n]` to the rows and gives their logits. The rows are as before when it fails, where their caches can go
    /// back; one whose caches can't has empty caches then.
    pub(super) fn forward(&mut self, ids: &[SequenceId], tokens: &Array, logits: Logits) -> Result<Array> {
        let n = tokens.dim(1).unwrap_or(0) as usize;
        let made = match ids {
            [id] => {
                let row = self.rows.get_mut(id).ok_or_else(|| super::sequence::unknown(*id))?;
                self.model.forward(tokens, &mut row.caches, logits)
            }
            ids => self.forward_rows(ids, tokens, logits),
        };
        for &id in ids {
            let row = self.row_mut(id)?;
            if made.is_ok() {
                row.fed += n;
                continue;
            }
            let fed = row.fed;
            let back = row.caches.iter_mut().try_for_each(|cache| cache.trim(cache.offset().saturating_sub(fed)));
            if back.is_err() {
                self.rebuild(id)?;
            }
        }
        made
    }

    /// The rows' caches of each layer become one cache for the length of the pass.
    fn forward_rows(&mut self, ids: &[SequenceId], tokens: &Array, logits: Logits) -> Result<Array> {
        let mut by_row: Vec<_> = Vec::with_capacity(ids.len());
        for &id in ids {
            by_row.push(std::mem::take(&mut self.row_mut(id)?.caches).into_iter());
        }
        let layers = by_row.first().map_or(0, ExactSizeIterator::len);
        let mut by_layer: Vec<RowsCache> = Vec::with_capacity(layers);
        for _ in 0..layers {
            // The caller has asked `together`: what can't be batched is not here.
            by_layer.push(RowsCache::gathered(by_row.iter_mut().filter_map(Iterator::next).collect()));
        }
        let mut boxed: Vec<Box<dyn Cache>> =
            by_layer.into_iter().map(|layer| Box::new(layer) as Box<dyn Cache>).collect();
        let made = self.model.forward(tokens, &mut boxed, logits);
        for mut layer in boxed {
            for (&id, cache) in ids.iter().zip(layer.as_rows_mut().map(RowsCache::take).unwrap_or_default()) {
                self.row_mut(id)?.caches.push(cache);
            }
        }
        made
    }
}
