//! The memory of a pool's blocks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxmlx::{Array, Dtype, ops};

use super::super::buffer::{concatenate, rows, write};
use super::pool::{BlockId, BlockStep, PagedPool, TableId};
use crate::{Error, ErrorKind, Result};

/// Blocks of keys and values that the caches of many layers and sequences share. Cheap to clone: all clones are one store.
///
/// Each block is an array of its own, `[1, kv_heads, block_rows, head_dim]`: a block that two tables share is one array, and writing
/// to it never changes what the other sees.
#[derive(Clone, Debug)]
pub struct PagedStore(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    block_rows: usize,
    budget: usize,
    /// Made when the first rows tell how large a block is.
    pool: Option<(PagedPool, [i32; 2], Dtype)>,
    blocks: Vec<Option<[Array; 2]>>,
}

impl PagedStore {
    /// An empty store of blocks of `block_rows` rows, `budget` bytes at most.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for blocks of no rows, and for such of over 2^31 - 1, which no array has.
    pub fn new(block_rows: usize, budget: usize) -> Result<Self> {
        if block_rows == 0 {
            return Err(Error::new(ErrorKind::Cache, "blocks of 0 rows hold nothing: give at least 1"));
        }
        if i32::try_from(block_rows).is_err() {
            let what = format!("blocks of {block_rows} rows: no array has as many, 16 to 256 are usual");
            return Err(Error::new(ErrorKind::Cache, what));
        }
        Ok(Self(Arc::new(Mutex::new(Inner { block_rows, budget, pool: None, blocks: Vec::new() }))))
    }

    /// The bytes of the blocks in use, shared ones counted once.
    pub fn bytes(&self) -> usize {
        self.lock().pool.as_ref().map_or(0, |(pool, ..)| pool.bytes())
    }

    /// The blocks in use.
    pub fn used_blocks(&self) -> usize {
        self.lock().pool.as_ref().map_or(0, |(pool, ..)| pool.used_blocks())
    }

    /// Gives the blocks in use the lowest numbers, so that the list of blocks is as short as can be. Nothing is copied.
    pub fn defragment(&self) {
        let mut inner = self.lock();
        let Some((pool, ..)) = &mut inner.pool else { return };
        let (moves, used) = (pool.defragment(), pool.used_blocks());
        for (from, to) in moves {
            inner.blocks[to.index()] = inner.blocks[from.index()].take();
        }
        inner.blocks.truncate(used);
    }

    pub(super) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change of the books is complete when a panic could come.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends rows to a table, a new one for `None`, and gives it with all its keys and values.
    pub(super) fn append(&self, table: Option<TableId>, new: [&Array; 2]) -> Result<(TableId, [Array; 2])> {
        let mut inner = self.lock();
        let &[batch, heads, tokens, width] = new[0].shape() else {
            return Err(Error::new(
                ErrorKind::Cache,
                format!("keys of shape {:?}, not four dimensions", new[0].shape()),
            ));
        };
        let dtype = new[0].dtype();
        if batch != 1 {
            return Err(Error::new(ErrorKind::Cache, format!("a paged cache holds one sequence, not {batch}")));
        }
        let (block_rows, budget) = (inner.block_rows, inner.budget);
        let (pool, shape, held) = match &mut inner.pool {
            Some(pool) => pool,
            none => {
                let bytes = 2 * heads as usize * block_rows * width as usize * dtype.size();
                none.insert((PagedPool::new(block_rows, bytes, budget)?, [heads, width], dtype))
            }
        };
        if *shape != [heads, width] || *held != dtype {
            let what = format!("rows {dtype:?} [{heads}, {width}] do not fit a store of {held:?} {shape:?}");
            return Err(Error::new(ErrorKind::Cache, what));
        }
        let fresh = table.is_none();
        let id = table.unwrap_or_else(|| pool.create());
        let steps = match pool.append(id, tokens as usize) {
            Ok(steps) => steps,
            Err(error) => {
                if fresh {
                    pool.release(id)?;
                }
                return Err(error);
            }
        };
        inner.apply(&steps, new)?;
        Ok((id, inner.gather(id)?))
    }

    pub(super) fn fork(&self, table: TableId) -> Result<TableId> {
        self.with_pool(|pool| pool.fork(table))
    }

    pub(super) fn trim(&self, table: TableId, n: usize) -> Result<()> {
        let mut inner = self.lock();
        inner.books()?.trim(table, n)?;
        inner.drop_free();
        Ok(())
    }

    pub(super) fn release(&self, table: TableId) -> Result<()> {
        let mut inner = self.lock();
        inner.books()?.release(table)?;
        inner.drop_free();
        Ok(())
    }

    /// The arrays of a table's blocks.
    pub(super) fn arrays(&self, table: TableId) -> Vec<Array> {
        let mut inner = self.lock();
        let Ok(blocks) = inner.books().and_then(|pool| pool.gather(table)) else { return Vec::new() };
        blocks.iter().filter_map(|(block, _)| inner.blocks.get(block.index())?.clone()).flatten().collect()
    }

    fn with_pool<T>(&self, f: impl FnOnce(&mut PagedPool) -> Result<T>) -> Result<T> {
        f(self.lock().books()?)
    }
}

impl Inner {
    fn books(&mut self) -> Result<&mut PagedPool> {
        match &mut self.pool {
            Some((pool, ..)) => Ok(pool),
            None => Err(Error::new(ErrorKind::Cache, "the store has no tables yet")),
        }
    }

    fn apply(&mut self, steps: &[BlockStep], new: [&Array; 2]) -> Result<()> {
        for step in steps {
            match step {
                // Arrays do not change: what is written to the copy is not seen in the original.
                BlockStep::Copy { from, to, .. } => {
                    let copy = self.blocks.get(from.index()).cloned().flatten();
                    *self.slot(*to) = copy;
                }
                BlockStep::Write { block, at, rows: range } => {
                    let block_rows = self.block_rows as i32;
                    let slot = self.slot(*block);
                    let old = match slot.take() {
                        Some(old) => old,
                        None => {
                            let &[_, heads, _, width] = new[0].shape() else { continue };
                            let zeros = || ops::zeros([1, heads, block_rows, width], new[0].dtype());
                            [zeros()?, zeros()?]
                        }
                    };
                    let part = |i: usize| write(&old[i], &rows(new[i], range.start, range.end)?, *at);
                    *slot = Some([part(0)?, part(1)?]);
                }
            }
        }
        Ok(())
    }

    fn slot(&mut self, block: BlockId) -> &mut Option<[Array; 2]> {
        if self.blocks.len() <= block.index() {
            self.blocks.resize(block.index() + 1, None);
        }
        &mut self.blocks[block.index()]
    }

    fn gather(&mut self, table: TableId) -> Result<[Array; 2]> {
        let places = self.books()?.gather(table)?;
        let all = |i: usize| {
            let part = |(block, range): &(BlockId, std::ops::Range<usize>)| match self.blocks.get(block.index()) {
                Some(Some(arrays)) => rows(&arrays[i], range.start, range.end),
                _ => Err(Error::new(ErrorKind::Cache, format!("block {} has no memory", block.index()))),
            };
            concatenate(&places.iter().map(part).collect::<Result<Vec<_>>>()?)
        };
        Ok([all(0)?, all(1)?])
    }

    /// Frees the memory of blocks that nobody names.
    fn drop_free(&mut self) {
        let Some((pool, ..)) = &self.pool else { return };
        let free = pool.free();
        free.iter().for_each(|block| {
            if let Some(slot) = self.blocks.get_mut(block.index()) {
                *slot = None;
            }
        });
    }
}
