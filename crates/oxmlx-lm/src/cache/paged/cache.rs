//! One layer of one sequence in a store of blocks.

use std::sync::Arc;

use oxmlx::Array;

use super::super::buffer::check;
use super::super::contract::{Cache, CacheKind, Positions, Visible, cannot_trim};
use super::super::snapshot::Snapshot;
use super::pool::TableId;
use super::store::PagedStore;
use crate::{Error, ErrorKind, Result};

/// Everything, in blocks of a [`PagedStore`]. A snapshot shares the blocks, and what is written after it goes into copies.
#[derive(Debug)]
pub struct PagedKvCache {
    store: PagedStore,
    table: Option<TableId>,
    len: usize,
}

/// A table that is released with its last owner.
#[derive(Debug)]
struct Held {
    store: PagedStore,
    table: Option<TableId>,
    len: usize,
}

impl PagedKvCache {
    /// An empty cache in `store`.
    pub fn new(store: &PagedStore) -> Self {
        Self { store: store.clone(), table: None, len: 0 }
    }

    fn fork(&self) -> Option<Held> {
        let table = match self.table {
            Some(table) => Some(self.store.fork(table).ok()?),
            None => None,
        };
        Some(Held { store: self.store.clone(), table, len: self.len })
    }
}

impl Cache for PagedKvCache {
    fn kind(&self) -> CacheKind {
        CacheKind::Paged
    }

    fn append(&mut self, keys: &Array, values: &Array) -> Result<Visible> {
        let [_, _, tokens, _] = check(keys, values, None)?;
        let (table, [keys, values]) = self.store.append(self.table, [keys, values])?;
        (self.table, self.len) = (Some(table), self.len + tokens as usize);
        Ok(Visible { keys, values, positions: Positions::Range(0..self.len) })
    }

    fn len(&self) -> usize {
        self.len
    }

    fn offset(&self) -> usize {
        self.len
    }

    fn arrays(&self) -> Vec<Array> {
        self.table.map_or_else(Vec::new, |table| self.store.arrays(table))
    }

    fn can_trim(&self, n: usize) -> bool {
        n <= self.len
    }

    fn slack(&self) -> Option<usize> {
        None
    }

    fn trim(&mut self, n: usize) -> Result<()> {
        if !self.can_trim(n) {
            return Err(cannot_trim(self, n));
        }
        if let Some(table) = self.table {
            self.store.trim(table, n)?;
        }
        self.len -= n;
        Ok(())
    }

    fn snapshot(&self) -> Option<Snapshot> {
        Some(Snapshot::new(self.len, self.bytes(), Arc::new(self.fork()?)))
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let held: Arc<Held> = snapshot.of("paged")?;
        if !held.store.same(&self.store) {
            return Err(Error::new(ErrorKind::Cache, "the snapshot is one of another store of blocks"));
        }
        let table = held.table.map(|table| self.store.fork(table)).transpose()?;
        let old = std::mem::replace(&mut self.table, table);
        self.len = held.len;
        old.map_or(Ok(()), |old| self.store.release(old))
    }

    fn can_batch(&self) -> bool {
        true
    }
}

impl Drop for PagedKvCache {
    fn drop(&mut self) {
        // It is there: nobody else knows it.
        let _ = self.table.map(|table| self.store.release(table));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.table.map(|table| self.store.release(table));
    }
}
