//! The tokens still in play, always in the order of their ids, and the filters that thin them out.
//!
//! Filters find a bar and keep what is over it; nothing is sorted as a whole, since a vocabulary has up to 260,000 entries.

use std::cmp::Ordering;

use super::exp::exp;

/// A token and its logit; while filtering, its weight `e^(logit - largest)` too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) id: u32,
    logit: f32,
    pub(super) weight: f32,
}

impl Candidate {
    /// Which power of two the weight has, 0 for 1 itself and counted downwards.
    fn power(&self) -> usize {
        // The exponent's bits; a weight is at most 1, whose exponent is 127.
        (POWERS - 1).saturating_sub((self.weight.to_bits() >> 23) as usize)
    }

    /// More probable first, of equals the one with the lower id.
    fn rank(&self, other: &Self) -> Ordering {
        // No logit is NaN, and the two zeros are equal.
        other.logit.partial_cmp(&self.logit).unwrap_or(Ordering::Equal).then(self.id.cmp(&other.id))
    }
}

/// Powers of two that weights can have: 1 down to the smallest normal number, and all that is less.
const POWERS: usize = 128;

/// Room for one row's candidates, used again for the next row.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    list: Vec<Candidate>,
    scratch: Vec<Candidate>,
    largest: f32,
}

impl Candidates {
    /// Starts with the `k` most probable tokens of the row, all if `k` is 0. `largest` is the row's largest logit.
    pub(super) fn fill(&mut self, logits: &[f32], largest: f32, k: usize) {
        self.largest = largest;
        self.list.clear();
        let all = (0u32..).zip(logits).map(|(id, &logit)| Candidate { id, logit, weight: exp(logit - largest) });
        if k == 0 || k >= logits.len() {
            self.list.extend(all);
        } else {
            self.fill_top(logits, k);
        }
    }

    /// Collects what is over the bar, and raises the bar to the `k`-th best whenever there is too much of it.
    fn fill_top(&mut self, logits: &[f32], k: usize) {
        const CHUNK: usize = 16;
        let full = (2 * k).max(64);
        let mut bar = None;
        for (start, chunk) in (0u32..).step_by(CHUNK).zip(logits.chunks(CHUNK)) {
            // There are `k` at or over the bar, and a later token with the bar's own logit ranks behind them.
            let over = |x: f32| bar.is_none_or(|bar| x > bar);
            if !chunk.iter().fold(false, |any, &x| any | over(x)) {
                continue;
            }
            let new = (start..).zip(chunk).map(|(id, &logit)| Candidate { id, logit, weight: 0.0 });
            self.list.extend(new.filter(|c| over(c.logit)));
            if self.list.len() >= full {
                bar = Some(self.keep_best(k));
            }
        }
        if self.list.len() > k {
            self.keep_best(k);
        }
        self.list.sort_unstable_by_key(|c| c.id);
        for c in &mut self.list {
            c.weight = exp(c.logit - self.largest);
        }
    }

    /// Cuts the list to its `k` best in any order; the logit of the last of them.
    fn keep_best(&mut self, k: usize) -> f32 {
        let (_, last, _) = self.list.select_nth_unstable_by(k - 1, Candidate::rank);
        let bar = last.logit;
        self.list.truncate(k);
        bar
    }

    /// Keeps the fewest of the most probable whose weights sum up to the share `p` of the whole.
    pub(super) fn top_p(&mut self, p: f32) {
        // The share ends in one of the weights' powers of two; only the candidates of that one have to be ranked.
        let mut masses = [0.0; POWERS];
        for c in &self.list {
            masses[c.power()] += f64::from(c.weight);
        }
        let target = f64::from(p) * masses.iter().sum::<f64>();
        let mut before = 0.0;
        let Some(power) = masses.iter().position(|mass| {
            let reached = before + mass >= target;
            before += if reached { 0.0 } else { *mass };
            reached
        }) else {
            return;
        };
        self.scratch.clear();
        self.scratch.extend(self.list.iter().filter(|c| c.power() == power));
        let Some(last) = last_of_share(&mut self.scratch, target - before) else { return };
        self.list.retain(|c| c.rank(&last).is_le());
    }

    /// Keeps those at least `p` times as probable as the most probable.
    pub(super) fn min_p(&mut self, p: f32) {
        self.list.retain(|c| c.weight >= p);
    }

    /// Sets the weights to those at `temperature`, which is over 0, and gives the candidates out.
    pub(super) fn heated(&mut self, temperature: f32) -> &[Candidate] {
        if temperature != 1.0 {
            // In double precision, where a tiny temperature's reciprocal is finite.
            let scale = 1.0 / f64::from(temperature);
            for c in &mut self.list {
                c.weight = exp((f64::from(c.logit - self.largest) * scale) as f32);
            }
        }
        &self.list
    }
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

/// The last of the best candidates that are needed to reach `target`, found by halving; the very last if all are.
fn last_of_share(list: &mut [Candidate], target: f64) -> Option<Candidate> {
    let mut rest = list;
    let mut before = 0.0;
    while rest.len() > 1 {
        let half = rest.len() / 2;
        rest.select_nth_unstable_by(half, Candidate::rank);
        let (best, others) = rest.split_at_mut(half);
        let with_best = before + sum(best);
        if with_best >= target {
            rest = best;
        } else {
            before = with_best;
            rest = others;
        }
    }
    rest.first().copied()
}
