//! Token suppression: tokens that never come, whatever the other stages say.

use std::sync::Arc;

use super::check::token_id;
use super::row::Row;
use crate::Result;

/// Tokens that are ruled out before the first stage, so that no bias brings one back and none takes a filter's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppression(Arc<[u32]>);

impl Suppression {
    /// The tokens to rule out. An id that the model's vocabulary does not have is ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) for an id that no vocabulary can have: negative, over 2^32.
    pub fn new(ids: impl IntoIterator<Item = i64>) -> Result<Self> {
        ids.into_iter().map(|id| token_id(id, "suppress")).collect::<Result<_>>().map(Self)
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn apply(&self, row: &mut Row) {
        self.0.iter().for_each(|&id| row.ban(id));
    }
}
