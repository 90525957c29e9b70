//! Several sequences in one pass, each with a cache of its own: nothing is copied when a row comes or goes, and a row's values do
//! not depend on its neighbours.

use oxmlx::fused::{CachedAttention, KvBuffers, attention_rows};
use oxmlx::{Array, ops};

use super::attend::{self, AttentionPath, Reason};
use super::contract::{Cache, CacheKind, Visible, cannot_trim};
use super::kv::{Held, KvCache, room};
use crate::{Error, ErrorKind, Result};

/// One layer's caches of the rows of a batch.
#[derive(Debug)]
pub struct RowsCache {
    rows: Vec<Box<dyn Cache>>,
}

impl RowsCache {
    /// The rows, in the order of the batch.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for no rows, or a cache that can't be batched or holds more than one sequence.
    pub fn new(rows: Vec<Box<dyn Cache>>) -> Result<Self> {
        if rows.is_empty() {
            return Err(Error::new(ErrorKind::Cache, "a batch of no rows"));
        }
        if let Some(row) = rows.iter().find(|row| !row.can_batch() || row.batch() != 1) {
            let what = format!("a {} cache of {} sequences can't be a row of a batch", row.kind(), row.batch());
            return Err(Error::new(ErrorKind::Cache, what));
        }
        Ok(Self { rows })
    }

    /// As [`new`](Self::new), of rows that are known to fit.
    pub(crate) fn gathered(rows: Vec<Box<dyn Cache>>) -> Self {
        Self { rows }
    }

    /// The rows again.
    pub fn into_rows(self) -> Vec<Box<dyn Cache>> {
        self.rows
    }

    /// Takes the rows out and leaves none.
    pub fn take(&mut self) -> Vec<Box<dyn Cache>> {
        std::mem::take(&mut self.rows)
    }

    fn row_by_row(&mut self, qkv: [&Array; 3], how: CachedAttention<'_>) -> Result<Array> {
        let tokens = attend::tokens(qkv, &how, self.rows.len())?;
        let mut outputs = Vec::with_capacity(self.rows.len());
        for i in 0..self.rows.len() {
            match self.one(i, qkv, how) {
                Ok(output) => outputs.push(output),
                Err(error) => {
                    // Those before have the tokens already; one that can't forget them stays ahead, which its offset tells.
                    self.rows[..i].iter_mut().for_each(|row| drop(row.trim(tokens)));
                    return Err(error);
                }
            }
        }
        Ok(ops::concatenate(&outputs, 0)?)
    }

    fn one(&mut self, i: usize, qkv: [&Array; 3], how: CachedAttention<'_>) -> Result<Array> {
        let row = |x: &Array| {
            let (tokens, width) = (x.dim(1).unwrap_or(0), x.dim(2).unwrap_or(0));
            ops::slice(x, &[i as i32, 0, 0], &[i as i32 + 1, tokens, width], &[1; 3])
        };
        let [q, k, v] = [row(qkv[0])?, row(qkv[1])?, row(qkv[2])?];
        self.rows[i].attend([&q, &k, &v], how)
    }
}

impl Cache for RowsCache {
    fn kind(&self) -> CacheKind {
        CacheKind::Rows
    }

    /// Always an error: rows that stand at different positions have no one answer. They attend, and nothing else.
    fn append(&mut self, _: &Array, _: &Array) -> Result<Visible> {
        let what = "rows with caches of their own can't show one array of keys: use attend";
        Err(Error::new(ErrorKind::Cache, what))
    }

    /// That of the longest row.
    fn len(&self) -> usize {
        self.rows.iter().map(|row| row.len()).max().unwrap_or(0)
    }

    /// That of the row that is furthest.
    fn offset(&self) -> usize {
        self.rows.iter().map(|row| row.offset()).max().unwrap_or(0)
    }

    fn arrays(&self) -> Vec<Array> {
        self.rows.iter().flat_map(|row| row.arrays()).collect()
    }

    fn can_trim(&self, n: usize) -> bool {
        self.rows.iter().all(|row| row.can_trim(n))
    }

    fn slack(&self) -> Option<usize> {
        self.rows.iter().filter_map(|row| row.slack()).min()
    }

    fn trim(&mut self, n: usize) -> Result<()> {
        if !self.can_trim(n) {
            return Err(cannot_trim(self, n));
        }
        self.rows.iter_mut().try_for_each(|row| row.trim(n))
    }

    fn batch(&self) -> usize {
        self.rows.len()
    }

    fn as_plain_mut(&mut self) -> Option<Vec<&mut KvCache>> {
        let rows: Option<Vec<_>> = self.rows.iter_mut().map(|row| row.as_plain_mut()).collect();
        Some(rows?.into_iter().flatten().collect())
    }

    fn as_rows_mut(&mut self) -> Option<&mut RowsCache> {
        Some(self)
    }

    fn attend(&mut self, qkv: [&Array; 3], how: CachedAttention<'_>) -> Result<Array> {
        if let [row] = &mut self.rows[..] {
            return row.attend(qkv, how);
        }
        match self.as_plain_mut() {
            Some(mut rows) => KvCache::attend_rows(&mut rows, qkv, how),
            None => self.row_by_row(qkv, how),
        }
    }

    fn path(&self) -> AttentionPath {
        match &self.rows[..] {
            [row] => row.path(),
            rows if rows.iter().all(|row| row.as_plain().is_some()) => AttentionPath::FusedRows,
            _ => AttentionPath::RowByRow(Reason::MixedRows),
        }
    }
}

impl KvCache {
    /// [`attend`](Cache::attend) of rows with caches of their own, as one node on the CPU.
    fn attend_rows(rows: &mut [&mut Self], qkv: [&Array; 3], how: CachedAttention<'_>) -> Result<Array> {
        attend::tokens(qkv, &how, rows.len())?;
        let added = [1, how.kv_heads, qkv[1].dim(1).unwrap_or(0), how.head_dim];
        let dtype = qkv[1].dtype();
        let kept: Vec<_> = rows.iter_mut().map(|row| row.take_held()).collect();
        let buffers = kept.iter().zip(&*rows).map(|(kept, row)| {
            let (keys, values) = room(kept.own()?, &added, dtype, row.len())?;
            Ok(KvBuffers { keys, values, len: row.len() })
        });
        let attended = buffers.collect::<Result<Vec<_>>>().and_then(|buffers| Ok(attention_rows(qkv, buffers, how)?));
        match attended {
            Ok(attended) => {
                rows.iter_mut()
                    .zip(attended.buffers)
                    .for_each(|(row, KvBuffers { keys, values, len })| row.put_held(Held::Own(keys, values), len));
                Ok(attended.output)
            }
            Err(error) => {
                rows.iter_mut().zip(kept).for_each(|(row, kept)| row.put_held(kept, row.len()));
                Err(error)
            }
        }
    }
}
