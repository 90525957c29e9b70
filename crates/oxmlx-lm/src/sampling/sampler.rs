//! The sampler: filters, temperature and draw over one row.

use super::candidates::{Candidates, sum};
use super::params::SamplingParams;
use super::rng::{Rng, fresh_seed};
use crate::{Error, ErrorKind, Result};

/// Chooses tokens; one a sequence, so that each sequence draws as if it were alone.
#[derive(Clone, Debug)]
pub struct Sampler {
    params: SamplingParams,
    seed: u64,
    rng: Rng,
    candidates: Candidates,
}

impl Sampler {
    /// A sampler at the start of its stream of random numbers.
    pub fn new(params: SamplingParams) -> Self {
        let seed = params.seed().unwrap_or_else(fresh_seed);
        Self { params, seed, rng: Rng::new(seed), candidates: Candidates::default() }
    }

    /// What it was told.
    pub fn params(&self) -> &SamplingParams {
        &self.params
    }

    /// The seed in use, chosen by chance if none was set; a sampler with it draws the same.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Chooses the next token from its `logits`, one for each id. A greedy choice uses no random number, any other uses one.
    /// Of equally probable tokens greedy takes the lowest id. -inf stands for a token that must not come.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] if the row is empty, holds NaN or +inf, or only -inf.
    pub fn sample(&mut self, logits: &[f32]) -> Result<u32> {
        let largest = largest(logits)?;
        if self.params.is_greedy() {
            return Ok(first_of(logits, largest));
        }
        let list = filter(&mut self.candidates, &self.params, logits, largest);
        let target = self.rng.next_f64() * sum(list);
        let mut reached = 0.0;
        let mut chosen = first_of(logits, largest);
        for c in list.iter().filter(|c| c.weight > 0.0) {
            chosen = c.id;
            reached += f64::from(c.weight);
            if reached > target {
                break;
            }
        }
        Ok(chosen)
    }

    /// What [`Sampler::sample`] draws from: ids, ascending, with their probabilities, which are above 0 and sum up to 1. Uses
    /// no random number.
    ///
    /// # Errors
    /// As [`Sampler::sample`].
    pub fn distribution(&mut self, logits: &[f32]) -> Result<Vec<(u32, f32)>> {
        let largest = largest(logits)?;
        if self.params.is_greedy() {
            return Ok(vec![(first_of(logits, largest), 1.0)]);
        }
        let list = filter(&mut self.candidates, &self.params, logits, largest);
        let total = sum(list);
        let share = |w: f32| (f64::from(w) / total) as f32;
        Ok(list.iter().filter(|c| c.weight > 0.0).map(|c| (c.id, share(c.weight))).collect())
    }
}

fn filter<'c>(
    candidates: &'c mut Candidates,
    params: &SamplingParams,
    logits: &[f32],
    largest: f32,
) -> &'c [super::candidates::Candidate] {
    candidates.fill(logits, largest, params.top_k());
    if params.top_p() < 1.0 {
        candidates.top_p(params.top_p());
    }
    if params.min_p() > 0.0 {
        candidates.min_p(params.min_p());
    }
    candidates.heated(params.temperature())
}

/// The largest logit of a row that can be sampled from.
fn largest(logits: &[f32]) -> Result<f32> {
    const LANES: usize = 16;
    // Lanes, so that the compiler can compare several at once..
    let mut largest = [f32::NEG_INFINITY; LANES];
    let mut bad = [false; LANES];
    let (chunks, rest) = logits.as_chunks::<LANES>();
    for chunk in chunks {
        for i in 0..LANES {
            bad[i] |= chunk[i].is_nan() | (chunk[i] > f32::MAX);
            largest[i] = if chunk[i] > largest[i] { chunk[i] } else { largest[i] };
        }
    }
    for (i, &x) in rest.iter().enumerate() {
        bad[i] |= x.is_nan() | (x > f32::MAX);
        largest[i] = if x > largest[i] { x } else { largest[i] };
    }
    let wrong = |what: &str| Err(Error::new(ErrorKind::Sampling, what).at_field("logits"));
    if bad.contains(&true) {
        return wrong("NaN or infinite: the model's computation failed");
    }
    let largest = largest.into_iter().fold(f32::NEG_INFINITY, f32::max);
    if largest == f32::NEG_INFINITY {
        return wrong(if logits.is_empty() { "empty" } else { "every token is ruled out" });
    }
    Ok(largest)
}

/// The lowest id that has this logit.
fn first_of(logits: &[f32], logit: f32) -> u32 {
    logits.iter().position(|&x| x == logit).map_or(0, |i| i as u32)
}
