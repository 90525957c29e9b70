//! A cache's state at one moment.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::{Error, ErrorKind, Result};

/// What a cache was when the snapshot was taken. Cheap to clone: arrays are shared, and a cache that goes on writes a copy of what a
/// snapshot still holds.
#[derive(Clone)]
pub struct Snapshot {
    offset: usize,
    bytes: usize,
    state: Arc<dyn Any + Send + Sync>,
}

impl Snapshot {
    /// A snapshot of a cache at `offset` whose state is `state`, with `bytes` of arrays in it.
    pub fn new<T: Any + Send + Sync>(offset: usize, bytes: usize, state: T) -> Self {
        Self { offset, bytes, state: Arc::new(state) }
    }

    /// The absolute offset of the cache when it was taken.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes of the arrays that it holds, which it may share.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A copy of the state of a cache of this kind.
    pub(super) fn of<T: Any + Clone>(&self, kind: &str) -> Result<T> {
        let state = self.state::<T>().cloned();
        state.ok_or_else(|| Error::new(ErrorKind::Cache, format!("the snapshot is not one of a {kind} cache")))
    }

    /// The state, if it is a `T`.
    pub fn state<T: Any>(&self) -> Option<&T> {
        self.state.downcast_ref()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("offset", &self.offset).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
