//! A window of the last tokens, as a ring.
//!
//! Slots `0..keep` hold the first tokens for good. Position `p >= keep` lies in slot `keep + (p - keep) % ring`, with a ring of `max_size - keep`
//! tokens and the slack. Invariant: positions `low..offset` of the ring are there, the rest of it is rubbish.

use oxmlx::{Array, Dtype};

use super::buffer::{check, concatenate, room, rows, shape4, write};
use super::contract::{Cache, CacheKind, Positions, Visible, cannot_trim};
use super::saved::{Part, SavedCache};
use super::snapshot::Snapshot;
use crate::{Error, ErrorKind, Result};

/// The last `max_size` tokens of a sequence, the first `keep` of all among them whatever comes.
///
/// Once a token has been overwritten the ring can't go back to it, and refuses to trim; `slack` more slots let it go back by as many
/// tokens, for speculation.
#[derive(Clone, Debug)]
pub struct RotatingKvCache {
    max_size: usize,
    keep: usize,
    slack: usize,
    buffers: Option<(Array, Array)>,
    offset: usize,
    /// The lowest position of the ring that was not overwritten.
    low: usize,
}

impl RotatingKvCache {
    /// An empty cache of the last `max_size` tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for a size of 0, and for one over 2^31 - 1, which no array has.
    pub fn new(max_size: usize) -> Result<Self> {
        if max_size == 0 {
            return Err(Error::new(ErrorKind::Cache, "a rotating cache of 0 tokens holds nothing: give at least 1"));
        }
        countable(max_size)?;
        Ok(Self { max_size, keep: 0, slack: 0, buffers: None, offset: 0, low: 0 })
    }

    /// Holds on to the first `keep` tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] when no place is left for the others, or the cache has tokens already.
    pub fn keeping(mut self, keep: usize) -> Result<Self> {
        if keep >= self.max_size || self.offset > 0 {
            let what = format!("{keep} kept tokens leave no place in a rotating cache of {}", self.max_size);
            return Err(Error::new(ErrorKind::Cache, what));
        }
        self.keep = keep;
        self.low = keep;
        Ok(self)
    }

    /// Holds `slack` tokens more, hidden, so that as many can be forgotten at the end at any time.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] when it has tokens already, and for a slack over 2^31 - 1.
    pub fn with_slack(mut self, slack: usize) -> Result<Self> {
        countable(slack)?;
        if self.offset > 0 {
            return Err(Error::new(ErrorKind::Cache, "slack is given to an empty cache"));
        }
        self.slack = slack;
        Ok(self)
    }

    /// An empty one with keys and values in the order of positions: the kept ones, then at least those of the window before `offset`.
    pub(super) fn filled(mut self, [keys, values]: [Array; 2], offset: usize) -> Result<Self> {
        let held = check(&keys, &values, None)?[2] as usize;
        let kept = self.keep.min(offset);
        let window = (offset - kept).min(self.max_size - self.keep);
        if held < kept + window {
            let what = format!("{held} rows are too few for a window of {} after {offset} tokens", self.max_size);
            return Err(Error::new(ErrorKind::Format, what));
        }
        // As if they had just come, behind the kept ones; rubbish stands for what the slack would hold.
        let extra = self.slack.min(offset - kept - window);
        let last = |all: &Array| -> Result<Array> {
            let window = rows(all, held - window, held)?;
            let mut parts = vec![rows(&window, 0, 1.min(extra))?; extra];
            parts.push(window);
            concatenate(&parts)
        };
        if kept > 0 {
            self.append(&rows(&keys, 0, kept)?, &rows(&values, 0, kept)?)?;
        }
        if window > 0 {
            (self.offset, self.low) = (offset - window - extra, offset - window - extra);
            self.append_anew([&last(&keys)?, &last(&values)?], window + extra)?;
            self.low = self.low.max(offset - window);
        }
        Ok(self)
    }

    /// The most tokens that are seen.
    pub fn max_size(&self) -> usize {
        self.max_size
    }

    fn ring(&self) -> usize {
        self.max_size - self.keep + self.slack
    }

    fn capacity(&self) -> usize {
        self.keep + self.ring()
    }

    fn slot(&self, position: usize) -> usize {
        if position < self.keep { position } else { self.keep + (position - self.keep) % self.ring() }
    }

    /// The positions that are held, in the order of slots.
    fn held(&self, offset: usize, low: usize) -> Vec<usize> {
        let used = offset.min(self.capacity());
        let mut positions: Vec<usize> = (0..used.min(self.keep)).collect();
        let ring = self.ring();
        // The newest position of each slot.
        positions.extend((self.keep..used).map(|slot| {
            let turns = (offset - 1 - slot) / ring;
            slot + turns * ring
        }));
        debug_assert!(positions.iter().all(|&p| p < self.keep || p + ring >= offset));
        // What a trim left behind is rubbish: it stands where a later token will.
        positions.iter_mut().filter(|p| **p >= self.keep && **p < low).for_each(|p| *p = usize::MAX);
        positions
    }

    /// Keys or values in the order of positions: the kept ones, then `low..offset`.
    fn ordered(&self, buffer: &Array) -> Result<Vec<Array>> {
        let mut parts = Vec::new();
        let mut push = |from: usize, to: usize| {
            if from < to {
                parts.push(rows(buffer, from, to)?);
            }
            Ok::<_, Error>(())
        };
        push(0, self.keep.min(self.offset))?;
        if self.offset > self.low {
            let (first, last) = (self.slot(self.low), self.slot(self.offset - 1));
            if first <= last {
                push(first, last + 1)?;
            } else {
                push(first, self.capacity())?;
                push(self.keep, last + 1)?;
            }
        }
        Ok(parts)
    }

    fn state(&self) -> Option<([i32; 4], Dtype)> {
        let (keys, _) = self.buffers.as_ref()?;
        Some((<[i32; 4]>::try_from(keys.shape()).ok()?, keys.dtype()))
    }

    /// Few tokens: written over the oldest.
    fn append_in_place(&mut self, new: [&Array; 2], shape: [i32; 4]) -> Result<Visible> {
        let [batch, heads, tokens, width] = shape;
        let (offset, end) = (self.offset, self.offset + tokens as usize);
        let used = [offset, end].map(|n| n.min(self.capacity()));
        let update = |buffer: Option<&Array>, new: &Array| {
            let mut buffer = room(buffer, [batch, heads, width], new.dtype(), used, self.capacity())?;
            let mut at = offset;
            while at < end {
                // Up to where the slots are no longer neighbours.
                let slot = self.slot(at);
                let stop = end.min(at + self.capacity() - slot);
                buffer = write(&buffer, &rows(new, at - offset, stop - offset)?, slot)?;
                at = stop;
            }
            Ok::<_, Error>(buffer)
        };
        let held = self.buffers.as_ref();
        let (keys, values) = (update(held.map(|b| &b.0), new[0])?, update(held.map(|b| &b.1), new[1])?);
        let low = self.low.max(end.saturating_sub(self.ring())).max(self.keep);
        let visible = Visible {
            keys: rows(&keys, 0, used[1])?,
            values: rows(&values, 0, used[1])?,
            positions: match end <= self.capacity() && low == self.keep {
                true => Positions::Range(0..end),
                false => Positions::List(self.held(end, low)),
            },
        };
        (self.buffers, self.offset, self.low) = (Some((keys, values)), end, low);
        Ok(visible)
    }

    /// Many tokens: each sees its own window of what was and what comes, and the ring is laid anew.
    fn append_anew(&mut self, new: [&Array; 2], tokens: usize) -> Result<Visible> {
        let (offset, end) = (self.offset, self.offset + tokens);
        let all = |buffer: Option<&Array>, new: &Array| {
            let mut parts = buffer.map_or(Ok(Vec::new()), |buffer| self.ordered(buffer))?;
            parts.push(new.clone());
            concatenate(&parts)
        };
        let held = self.buffers.as_ref();
        let (keys, values) = (all(held.map(|b| &b.0), new[0])?, all(held.map(|b| &b.1), new[1])?);
        let positions: Vec<usize> = (0..self.keep.min(offset)).chain(self.low.min(offset)..end).collect();
        let low = end.saturating_sub(self.ring()).max(self.low).max(self.keep);
        // Where a position lies in `keys`.
        let at = |position: usize| positions.partition_point(|&p| p < position);
        let laid = |all: &Array| {
            let used = end.min(self.capacity());
            let mut parts = Vec::new();
            let mut slot = 0;
            while slot < used {
                let position = if slot < self.keep { slot } else { self.newest(slot, end) };
                // Neighbours in slots and in positions.
                let stop = if slot < self.keep { self.keep.min(used) } else { used.min(slot + end - position) };
                parts.push(rows(all, at(position), at(position) + stop - slot)?);
                slot = stop;
            }
            concatenate(&parts)
        };
        let buffers = (laid(&keys)?, laid(&values)?);
        (self.buffers, self.offset, self.low) = (Some(buffers), end, low);
        let contiguous = positions.first() == Some(&0) && positions.len() == end;
        let positions = if contiguous { Positions::Range(0..end) } else { Positions::List(positions) };
        Ok(Visible { keys, values, positions })
    }

    /// The newest position of a ring slot when the last position is `end - 1`.
    fn newest(&self, slot: usize, end: usize) -> usize {
        slot + (end - 1 - slot) / self.ring() * self.ring()
    }
}

/// Sums of what this lets through are far from overflow.
fn countable(tokens: usize) -> Result<()> {
    if i32::try_from(tokens).is_err() {
        let what =
            format!("a rotating cache of {tokens} tokens: no array has as many rows, a plain cache keeps everything");
        return Err(Error::new(ErrorKind::Cache, what));
    }
    Ok(())
}

impl Cache for RotatingKvCache {
    fn kind(&self) -> CacheKind {
        CacheKind::Rotating
    }

    fn append(&mut self, keys: &Array, values: &Array) -> Result<Visible> {
        let shape = check(keys, values, self.state())?;
        let tokens = shape[2] as usize;
        if tokens <= self.slack + 1 || self.offset + tokens <= self.capacity() {
            self.append_in_place([keys, values], shape)
        } else {
            self.append_anew([keys, values], tokens)
        }
    }

    fn len(&self) -> usize {
        self.offset.min(self.max_size)
    }

    fn offset(&self) -> usize {
        self.offset
    }

    fn arrays(&self) -> Vec<Array> {
        self.buffers.clone().into_iter().flat_map(|(k, v)| [k, v]).collect()
    }

    fn keep(&self) -> usize {
        self.keep
    }

    fn window(&self) -> Option<usize> {
        Some(self.max_size - self.keep)
    }

    fn can_trim(&self, n: usize) -> bool {
        let Some(left) = self.offset.checked_sub(n) else { return false };
        // All of the window that was seen then is still there.
        n == 0 || self.low <= left.saturating_sub(self.max_size - self.keep).max(self.keep)
    }

    fn slack(&self) -> Option<usize> {
        Some(self.slack)
    }

    fn trim(&mut self, n: usize) -> Result<()> {
        if !self.can_trim(n) {
            return Err(cannot_trim(self, n));
        }
        self.offset -= n;
        Ok(())
    }

    fn snapshot(&self) -> Option<Snapshot> {
        Some(Snapshot::new(self.offset, self.bytes(), self.clone()))
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        *self = snapshot.of("rotating")?;
        Ok(())
    }

    fn saved(&self) -> Result<Option<SavedCache>> {
        let Some((keys, values)) = self.buffers.as_ref().filter(|_| self.offset > 0) else { return Ok(None) };
        let kept = self.keep.min(self.offset);
        let window = (self.offset - kept).min(self.max_size - self.keep);
        // mlx-lm's ring has no slack: the kept ones, and as many of the last as are seen.
        let live = |buffer: &Array| {
            let all = concatenate(&self.ordered(buffer)?)?;
            let held = shape4(&all)?[2] as usize;
            let parts = [rows(&all, 0, kept)?, rows(&all, held - window, held)?];
            concatenate(&parts[usize::from(kept == 0)..])
        };
        let live = [live(keys)?, live(values)?].map(Part::Array);
        let numbers = [self.offset, self.keep, self.max_size, kept + window].map(Part::Number);
        Ok(Some(SavedCache::new("RotatingKVCache", live.into_iter().chain(numbers).collect())))
    }

    fn can_batch(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
