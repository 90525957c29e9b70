//! The books of a paged cache: which blocks a sequence has, who shares them, what is free. Pure data.
//!
//! Invariant: a block's count is the number of tables that name it; blocks with a count of 0 are free, and only those.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::{Error, ErrorKind, Result};

/// A block of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(usize);

impl BlockId {
    /// The block's number, below the pool's number of blocks.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A table of a pool: one layer of one sequence. Numbers are not used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(u64);

/// What the owner of the memory must do, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockStep {
    /// Copy the first `rows` rows of a block that others still read.
    Copy {
        /// The shared block.
        from: BlockId,
        /// The new one.
        to: BlockId,
        /// How many rows.
        rows: usize,
    },
    /// Write appended rows into a block.
    Write {
        /// The block.
        block: BlockId,
        /// Its first row that is written.
        at: usize,
        /// Which of the appended rows.
        rows: Range<usize>,
    },
}

/// The logical rows `start..start + len` of a list of blocks.
#[derive(Clone, Debug, Default)]
struct Table {
    blocks: Vec<BlockId>,
    start: usize,
    len: usize,
}

/// Blocks of `rows` rows each, within a budget of bytes.
///
/// ```
/// use oxmlx_lm::cache::PagedPool;
/// let mut pool = PagedPool::new(4, 1024, 10 * 1024)?;
/// let a = pool.create();
/// pool.append(a, 6)?;
/// let b = pool.fork(a)?;
/// assert_eq!(pool.bytes(), 2 * 1024);
/// pool.append(b, 1)?; // the half-full block is copied first
/// assert_eq!(pool.bytes(), 3 * 1024);
/// pool.release(a)?;
/// assert!(pool.release(a).is_err());
/// # Ok::<(), oxmlx_lm::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PagedPool {
    rows: usize,
    block_bytes: usize,
    budget: usize,
    /// The most blocks.
    limit: usize,
    counts: Vec<usize>,
    free: Vec<BlockId>,
    tables: BTreeMap<TableId, Table>,
    next: u64,
}

impl PagedPool {
    /// An empty pool of blocks of `rows` rows and `block_bytes` bytes each, `budget` bytes at most.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for blocks of no rows or no bytes.
    pub fn new(rows: usize, block_bytes: usize, budget: usize) -> Result<Self> {
        if rows == 0 || block_bytes == 0 {
            return Err(Error::new(
                ErrorKind::Cache,
                format!("blocks of {rows} rows and {block_bytes} bytes are empty"),
            ));
        }
        let limit = budget / block_bytes;
        Ok(Self { rows, block_bytes, budget, limit, counts: vec![], free: vec![], tables: BTreeMap::new(), next: 0 })
    }

    /// The rows of a block.
    pub fn block_rows(&self) -> usize {
        self.rows
    }

    /// The bytes of the blocks in use.
    pub fn bytes(&self) -> usize {
        self.used_blocks() * self.block_bytes
    }

    /// The blocks in use.
    pub fn used_blocks(&self) -> usize {
        self.counts.len() - self.free.len()
    }

    /// The blocks that can still be taken.
    pub fn free_blocks(&self) -> usize {
        self.limit - self.used_blocks()
    }

    /// The blocks that were in use and are not.
    pub(super) fn free(&self) -> &[BlockId] {
        &self.free
    }

    /// The tables that name a block.
    pub fn count(&self, block: BlockId) -> usize {
        self.counts.get(block.0).copied().unwrap_or(0)
    }

    /// A table of no rows.
    pub fn create(&mut self) -> TableId {
        self.insert(Table::default())
    }

    /// A second table of the same rows, which shares all blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for a table that is not there.
    pub fn fork(&mut self, id: TableId) -> Result<TableId> {
        let table = self.table(id)?.clone();
        for block in &table.blocks {
            self.counts[block.0] += 1;
        }
        Ok(self.insert(table))
    }

    /// How many rows a table has.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for a table that is not there.
    pub fn len(&self, id: TableId) -> Result<usize> {
        Ok(self.table(id)?.len)
    }

    /// Appends `n` rows: gives what must be copied and where the rows go.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for a table that is not there, or when the budget is spent. Nothing has changed then.
    pub fn append(&mut self, id: TableId, n: usize) -> Result<Vec<BlockStep>> {
        let table = self.table(id)?;
        let end = table.start + table.len;
        let used = end % self.rows;
        // The block that has room, if it has some.
        let last = table.blocks.last().copied().filter(|_| used > 0 && n > 0);
        let shared = last.filter(|block| self.counts[block.0] > 1);
        let whole = (end + n).div_ceil(self.rows) - end.div_ceil(self.rows);
        let wanted = whole + usize::from(shared.is_some());
        if wanted > self.free_blocks() {
            let what = format!(
                "the paged cache's budget of {} bytes is spent: {wanted} blocks of {} bytes wanted, {} left",
                self.budget,
                self.block_bytes,
                self.free_blocks()
            );
            return Err(Error::new(ErrorKind::Cache, what));
        }
        let mut steps = Vec::new();
        let mut table = self.tables.remove(&id).unwrap_or_default();
        if let Some(from) = shared {
            let to = self.take();
            self.counts[from.0] -= 1;
            if let Some(last) = table.blocks.last_mut() {
                *last = to;
            }
            steps.push(BlockStep::Copy { from, to, rows: used });
        }
        let mut done = 0;
        while done < n {
            let at = (end + done) % self.rows;
            if at == 0 {
                let block = self.take();
                table.blocks.push(block);
            }
            let rows = done..n.min(done + self.rows - at);
            done = rows.end;
            if let Some(&block) = table.blocks.last() {
                steps.push(BlockStep::Write { block, at, rows });
            }
        }
        table.len += n;
        self.tables.insert(id, table);
        Ok(steps)
    }

    /// Forgets the last `n` rows.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for a table that is not there or has fewer rows. Nothing has changed then.
    pub fn trim(&mut self, id: TableId, n: usize) -> Result<()> {
        let len = self.enough(id, n)?;
        let Some(table) = self.tables.get_mut(&id) else { return Ok(()) };
        table.len = len - n;
        let blocks = if table.len == 0 { 0 } else { (table.start + table.len).div_ceil(self.rows) };
        if blocks == 0 {
            table.start = 0;
        }
        let gone = table.blocks.split_off(blocks);
        self.give_back(gone);
        Ok(())
    }

    /// Forgets the first `n` rows. A block goes when none of its rows is left.
    ///
    /// # Errors
    /// As [`trim`](Self::trim).
    pub fn trim_front(&mut self, id: TableId, n: usize) -> Result<()> {
        let len = self.enough(id, n)?;
        if n == len {
            return self.trim(id, n);
        }
        let Some(table) = self.tables.get_mut(&id) else { return Ok(()) };
        (table.start, table.len) = (table.start + n, len - n);
        let gone = table.blocks.drain(..table.start / self.rows).collect();
        table.start %= self.rows;
        self.give_back(gone);
        Ok(())
    }

    /// Gives a table's blocks back.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for a table that is not there, one that was released before among them.
    pub fn release(&mut self, id: TableId) -> Result<()> {
        self.table(id)?;
        let table = self.tables.remove(&id).unwrap_or_default();
        self.give_back(table.blocks);
        Ok(())
    }

    /// Where a table's rows lie, in order: blocks and the rows of each.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for a table that is not there.
    pub fn gather(&self, id: TableId) -> Result<Vec<(BlockId, Range<usize>)>> {
        let Table { blocks, start, len } = self.table(id)?;
        let end = start + len;
        let of = |(i, &block): (usize, &BlockId)| {
            let from = if i == 0 { *start } else { 0 };
            (block, from..self.rows.min(end - i * self.rows))
        };
        Ok(blocks.iter().enumerate().map(of).collect())
    }

    /// Gives the blocks in use the lowest numbers and tells who moved where. Only tables change: the owner of the memory renames,
    /// and no row is copied.
    pub fn defragment(&mut self) -> Vec<(BlockId, BlockId)> {
        let mut moves = Vec::new();
        let mut to = vec![BlockId(0); self.counts.len()];
        let mut counts = Vec::with_capacity(self.used_blocks());
        for (from, &count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            to[from] = BlockId(counts.len());
            if from != counts.len() {
                moves.push((BlockId(from), to[from]));
            }
            counts.push(count);
        }
        for block in self.tables.values_mut().flat_map(|table| &mut table.blocks) {
            *block = to[block.0];
        }
        self.counts = counts;
        self.free.clear();
        moves
    }

    fn insert(&mut self, table: Table) -> TableId {
        let id = TableId(self.next);
        self.next += 1;
        self.tables.insert(id, table);
        id
    }

    fn table(&self, id: TableId) -> Result<&Table> {
        self.tables.get(&id).ok_or_else(|| {
            Error::new(
                ErrorKind::Cache,
                format!("table {} is not in the pool: it was released, or is another pool's", id.0),
            )
        })
    }

    fn enough(&self, id: TableId, n: usize) -> Result<usize> {
        let len = self.table(id)?.len;
        if n > len {
            return Err(Error::new(ErrorKind::Cache, format!("table {} has {len} rows and can't forget {n}", id.0)));
        }
        Ok(len)
    }

    /// A block with a count of 1; the caller has looked at the budget.
    fn take(&mut self) -> BlockId {
        let block = self.free.pop().unwrap_or(BlockId(self.counts.len()));
        if block.0 == self.counts.len() {
            self.counts.push(0);
        }
        self.counts[block.0] = 1;
        block
    }

    fn give_back(&mut self, blocks: Vec<BlockId>) {
        for block in blocks {
            self.counts[block.0] -= 1;
            if self.counts[block.0] == 0 {
                self.free.push(block);
            }
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
