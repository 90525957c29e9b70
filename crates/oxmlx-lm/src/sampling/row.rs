//! One row of logits on its way through the stages: whole at first, then the candidates that the filters left, always in the
//! order of their ids.
//!
//! Filters find a bar and keep what is over it; nothing is sorted as a whole, since a vocabulary has up to 260,000 entries. A
//! logit of -inf stands for a token that is ruled out, and no stage brings one back.

use std::cmp::Ordering;

use super::exp::exp;
use crate::{Error, ErrorKind, Result};

/// A token and its logit, and its weight `e^(logit - largest)` where that was worked out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) id: u32,
    pub(super) logit: f32,
    pub(super) weight: f32,
}

impl Candidate {
    /// More probable first, of equals the one with the lower id.
    pub(super) fn rank(&self, other: &Self) -> Ordering {
        // No logit is NaN, and the two zeros are equal.
        other.logit.partial_cmp(&self.logit).unwrap_or(Ordering::Equal).then(self.id.cmp(&other.id))
    }
}

/// Room for one row, used again for the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// The whole row, until a filter makes a list of it.
    dense: Vec<f32>,
    list: Vec<Candidate>,
    listed: bool,
    /// The largest logit, unless an edit may have changed it.
    largest: Option<f32>,
    /// Whether the list's weights are those of its logits.
    weighed: bool,
}

/// How many logits are looked at together, for vector instructions.
const LANES: usize = 16;

impl Row {
    /// Starts with a row of which `largest` was found by [`largest`].
    pub(super) fn load(&mut self, logits: &[f32], largest: f32) {
        self.dense.clear();
        self.dense.extend_from_slice(logits);
        self.list.clear();
        (self.listed, self.weighed, self.largest) = (false, false, Some(largest));
    }

    /// Rules a token out; one outside the vocabulary is nothing.
    pub(super) fn ban(&mut self, id: u32) {
        self.set(id, |_| f32::NEG_INFINITY);
    }

    /// Changes a token's logit, which stays finite; nothing where the token is ruled out, filtered out or not in the vocabulary.
    pub(super) fn edit(&mut self, id: u32, change: impl Fn(f32) -> f32) {
        self.set(id, |x| finite(change(x)));
    }

    fn set(&mut self, id: u32, change: impl FnOnce(f32) -> f32) {
        let place = if self.listed {
            self.list.binary_search_by_key(&id, |c| c.id).ok().map(|at| &mut self.list[at].logit)
        } else {
            self.dense.get_mut(id as usize)
        };
        if let Some(logit) = place.filter(|x| **x > f32::NEG_INFINITY) {
            *logit = change(*logit);
            (self.weighed, self.largest) = (false, None);
        }
    }

    /// Rules out every token whose bit in `allowed` is 0, and those that it has no bit for.
    pub(super) fn keep_allowed(&mut self, allowed: &[u32]) {
        let words = allowed.iter().copied().chain(std::iter::repeat(0));
        for (chunk, word) in self.dense.chunks_mut(32).zip(words) {
            for (i, x) in chunk.iter_mut().enumerate() {
                *x = if word >> i & 1 == 1 { *x } else { f32::NEG_INFINITY };
            }
        }
        self.largest = None;
    }

    /// Replaces every logit by what `change` makes of its distance to the largest one, which becomes `level`.
    pub(super) fn rescale(&mut self, level: f32, change: impl Fn(f64) -> f64) -> Result<()> {
        let largest = f64::from(self.largest()?);
        let change = |x: f32| (change(f64::from(x) - largest) + f64::from(level)) as f32;
        if self.listed {
            self.list.iter_mut().for_each(|c| c.logit = change(c.logit));
        } else {
            self.dense.iter_mut().for_each(|x| *x = change(*x));
        }
        (self.weighed, self.largest) = (false, Some(level));
        Ok(())
    }

    /// The largest logit.
    pub(super) fn largest(&mut self) -> Result<f32> {
        if let Some(largest) = self.largest {
            return Ok(largest);
        }
        let found = if self.listed {
            self.list.iter().fold(f32::NEG_INFINITY, |a, c| a.max(c.logit))
        } else {
            largest_of(&self.dense)
        };
        if found == f32::NEG_INFINITY {
            return Err(ruled_out());
        }
        self.largest = Some(found);
        Ok(found)
    }

    /// The lowest of the ids that have the largest logit.
    pub(super) fn best(&mut self) -> Result<u32> {
        let largest = self.largest()?;
        let listed = || self.list.iter().find(|c| c.logit == largest).map(|c| c.id);
        Ok(if self.listed { listed().unwrap_or(0) } else { first_of(&self.dense, largest) })
    }

    /// The sum, the sum of squares about `centre` and the count of the logits that are not ruled out.
    pub(super) fn moments(&self, centre: f64) -> (f64, f64, usize) {
        let of = |logits: &mut dyn Iterator<Item = f32>| {
            logits.filter(|x| *x > f32::NEG_INFINITY).fold((0.0, 0.0, 0), |(sum, squares, n), x| {
                let d = f64::from(x) - centre;
                (sum + d, squares + d * d, n + 1)
            })
        };
        if self.listed { of(&mut self.list.iter().map(|c| c.logit)) } else { moments_of(&self.dense, centre) }
    }

    /// Keeps the tokens whose logit is `bar` at least.
    pub(super) fn keep_from(&mut self, bar: f32) {
        if self.listed {
            self.list.retain(|c| c.logit >= bar);
            return;
        }
        self.listed = true;
        let bar = bar.max(f32::MIN);
        for (start, chunk) in (0u32..).step_by(LANES).zip(self.dense.chunks(LANES)) {
            if chunk.iter().fold(false, |any, &x| any | (x >= bar)) {
                let new = (start..).zip(chunk).map(|(id, &logit)| Candidate { id, logit, weight: 0.0 });
                self.list.extend(new.filter(|c| c.logit >= bar));
            }
        }
    }

    /// Keeps the `k` most probable tokens.
    pub(super) fn keep_top(&mut self, k: usize) {
        let count = if self.listed { self.list.len() } else { self.dense.len() };
        if k >= count {
            return;
        }
        if self.listed {
            keep_best(&mut self.list, k);
        } else {
            self.listed = true;
            self.list_top(k);
        }
        self.list.sort_unstable_by_key(|c| c.id);
    }

    /// Collects what is over the bar, and raises the bar to the `k`-th best whenever there is too much of it.
    fn list_top(&mut self, k: usize) {
        let full = (2 * k).max(64);
        let mut bar = f32::NEG_INFINITY;
        for (start, chunk) in (0u32..).step_by(LANES).zip(self.dense.chunks(LANES)) {
            // There are `k` at or over the bar, and a later token with the bar's own logit ranks behind them.
            if !chunk.iter().fold(false, |any, &x| any | (x > bar)) {
                continue;
            }
            let new = (start..).zip(chunk).map(|(id, &logit)| Candidate { id, logit, weight: 0.0 });
            self.list.extend(new.filter(|c| c.logit > bar));
            if self.list.len() >= full {
                bar = keep_best(&mut self.list, k);
            }
        }
        if self.list.len() > k {
            keep_best(&mut self.list, k);
        }
    }

    /// Keeps the candidates that `keep` says.
    pub(super) fn retain(&mut self, keep: impl FnMut(&Candidate) -> bool) {
        self.list.retain(keep);
    }

    /// Says that the most probable candidate may be gone: weights are taken anew from the best that is left.
    pub(super) fn changed(&mut self) {
        (self.weighed, self.largest) = (false, None);
    }

    /// The candidates with their weights.
    pub(super) fn weighed(&mut self) -> Result<&[Candidate]> {
        let largest = self.largest()?;
        if !self.listed {
            self.listed = true;
            let all = (0u32..).zip(&self.dense);
            self.list.extend(all.map(|(id, &logit)| Candidate { id, logit, weight: exp(logit - largest) }));
            self.weighed = true;
        }
        if !self.weighed {
            for c in &mut self.list {
                c.weight = exp(c.logit - largest);
            }
            self.weighed = true;
        }
        Ok(&self.list)
    }
}

/// Cuts the list to its `k` best in any order; the logit of the last of them.
fn keep_best(list: &mut Vec<Candidate>, k: usize) -> f32 {
    let (_, last, _) = list.select_nth_unstable_by(k - 1, Candidate::rank);
    let bar = last.logit;
    list.truncate(k);
    bar
}

/// The sum of the weights, in four parts that the processor can add at once.
pub(super) fn sum(list: &[Candidate]) -> f64 {
    let (quads, rest) = list.as_chunks::<4>();
    let mut parts = [0.0; 4];
    for quad in quads {
        for (part, c) in parts.iter_mut().zip(quad) {
            *part += f64::from(c.weight);
        }
    }
    parts.iter().sum::<f64>() + rest.iter().map(|c| f64::from(c.weight)).sum::<f64>()
}

/// The last of the best items that are needed for their `mass` to reach `target`, found by halving; the very last if all are.
pub(super) fn last_of_share<T: Copy>(
    list: &mut [T],
    target: f64,
    mass: impl Fn(&T) -> f64,
    rank: impl Fn(&T, &T) -> Ordering,
) -> Option<T> {
    let mut rest = list;
    let mut before = 0.0;
    while rest.len() > 1 {
        let half = rest.len() / 2;
        rest.select_nth_unstable_by(half, &rank);
        let (best, others) = rest.split_at_mut(half);
        let with_best = before + best.iter().map(&mass).sum::<f64>();
        if with_best >= target {
            rest = best;
        } else {
            before = with_best;
            rest = others;
        }
    }
    rest.first().copied()
}

/// The largest logit of a row that can be sampled from.
pub(super) fn largest(logits: &[f32]) -> Result<f32> {
    let wrong = |what: &str| Err(Error::new(ErrorKind::Sampling, what).at_field("logits"));
    if logits.is_empty() {
        return wrong("empty");
    }
    let mut bad = [false; LANES];
    let (chunks, rest) = logits.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            bad[i] |= chunk[i].is_nan() | (chunk[i] > f32::MAX);
        }
    }
    if bad.contains(&true) || rest.iter().any(|x| x.is_nan() || *x > f32::MAX) {
        return wrong("NaN or infinite: the model's computation failed");
    }
    let largest = largest_of(logits);
    if largest == f32::NEG_INFINITY { Err(ruled_out()) } else { Ok(largest) }
}

fn ruled_out() -> Error {
    Error::new(ErrorKind::Sampling, "every token is ruled out").at_field("logits")
}

fn largest_of(logits: &[f32]) -> f32 {
    let mut largest = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = logits.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            largest[i] = if chunk[i] > largest[i] { chunk[i] } else { largest[i] };
        }
    }
    largest.iter().chain(rest).fold(f32::NEG_INFINITY, |a, &b| a.max(b))
}

fn moments_of(logits: &[f32], centre: f64) -> (f64, f64, usize) {
    const WIDE: usize = 8;
    let (mut sums, mut squares, mut counts) = ([0.0; WIDE], [0.0; WIDE], [0usize; WIDE]);
    let (chunks, rest) = logits.as_chunks::<WIDE>();
    for chunk in chunks.iter().map(|c| &c[..]).chain([rest]) {
        for (i, &x) in chunk.iter().enumerate() {
            let counts_in = x > f32::NEG_INFINITY;
            let d = if counts_in { f64::from(x) - centre } else { 0.0 };
            sums[i] += d;
            squares[i] += d * d;
            counts[i] += usize::from(counts_in);
        }
    }
    (sums.iter().sum(), squares.iter().sum(), counts.iter().sum())
}

/// The lowest id that has this logit.
pub(super) fn first_of(logits: &[f32], logit: f32) -> u32 {
    logits.iter().position(|&x| x == logit).map_or(0, |i| i as u32)
}

/// The nearest finite number.
fn finite(x: f32) -> f32 {
    x.clamp(f32::MIN, f32::MAX)
}
