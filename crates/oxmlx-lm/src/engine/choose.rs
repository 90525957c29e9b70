//! From the logits of a batch to its tokens, inside the graph where the device allows it.

use std::sync::{MutexGuard, PoisonError};

use oxmlx::kernel::Kernel;
use oxmlx::{Array, Device, Dtype, ops};

use super::sequence::{Sampled, SharedSampler};
use crate::sampling::BatchSampler;
use crate::{Result, SamplingParams};

/// What stands for the token of a row whose sampler failed. No vocabulary is as large.
pub(super) const FAILED: u32 = u32::MAX;

/// A row's sampler. One that panicked has drawn nothing: its state is whole.
pub(super) fn lock(sampler: &SharedSampler) -> MutexGuard<'_, Sampled> {
    sampler.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampled {
    /// The token of one row; [`FAILED`] when there is none, with the error kept.
    fn draw(&mut self, logits: &[f32]) -> u32 {
        self.note();
        self.sampler.sample(logits).unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            FAILED
        })
    }

    /// The random number that the row's token comes from, where the device chooses it.
    fn uniform(&mut self) -> f64 {
        self.note();
        self.sampler.uniform()
    }

    /// Goes back to before the last draw.
    fn take_back(&mut self) {
        if let Some(rng) = self.unread.pop_back() {
            self.sampler.set_rng(rng);
        }
    }

    /// Keeps the random numbers as they are, to come back to if what is drawn is never read.
    fn note(&mut self) {
        self.unread.push_back(self.sampler.rng().clone());
    }
}

/// The tokens of `logits` `[rows, vocabulary]`, as `[rows]` uint32; each row draws from its own sampler, or takes the most likely.
pub(super) fn choose(samplers: &[Option<SharedSampler>], logits: &Array) -> Result<Array> {
    if samplers.iter().all(Option::is_none) {
        return Ok(ops::argmax_axis(logits, -1, false)?);
    }
    let rows = samplers.len();
    if Device::current()? == Device::Gpu {
        if let Some(tokens) = on_device(samplers, logits)? {
            return Ok(tokens);
        }
        let best = ops::argmax_axis(logits, -1, false)?;
        let values = logits.to_vec::<f32>()?;
        let best = best.to_vec::<u32>()?;
        let vocab = values.len() / rows;
        let draw = |(i, sampler): (usize, &Option<SharedSampler>)| match sampler {
            Some(sampler) => lock(sampler).draw(&values[i * vocab..(i + 1) * vocab]),
            None => best[i],
        };
        let tokens: Vec<u32> = samplers.iter().enumerate().map(draw).collect();
        return Ok(Array::vector(&tokens)?);
    }
    let samplers = samplers.to_vec();
    let kernel = Kernel::builder("sample")
        .output(Dtype::Uint32, |inputs| Ok(inputs[0][..1].to_vec()))
        .cpu(move |inputs, outputs| {
            let logits = inputs[0].as_slice::<f32>()?;
            let tokens = outputs[0].as_mut_slice::<u32>()?;
            let vocab = logits.len() / tokens.len().max(1);
            for ((token, sampler), row) in tokens.iter_mut().zip(&samplers).zip(logits.chunks_exact(vocab.max(1))) {
                *token = match sampler {
                    Some(sampler) => lock(sampler).draw(row),
                    None => best(row),
                };
            }
            Ok(())
        })
        .build()?;
    Ok(kernel.apply_one(std::slice::from_ref(logits))?)
}

/// The tokens chosen by operations of the graph, where they can do what all rows ask for. Each row takes one number of its own
/// generator, as it does on the host; its history is not kept, since nothing looks at it.
fn on_device(samplers: &[Option<SharedSampler>], logits: &Array) -> Result<Option<Array>> {
    let params = |sampler: &Option<SharedSampler>| match sampler {
        Some(sampler) => lock(sampler).sampler.params().clone(),
        None => SamplingParams::greedy(),
    };
    let params: Vec<SamplingParams> = samplers.iter().map(params).collect();
    let Some(batch) = BatchSampler::of(&params) else { return Ok(None) };
    let uniform = |sampler: &Option<SharedSampler>| sampler.as_ref().map_or(0.0, |s| lock(s).uniform());
    let uniform: Vec<f64> = samplers.iter().map(uniform).collect();
    let chosen = batch.choose(logits, &uniform);
    if chosen.is_err() {
        samplers.iter().flatten().for_each(|sampler| lock(sampler).take_back());
    }
    chosen.map(Some)
}

/// The lowest of the ids with the largest logit.
fn best(row: &[f32]) -> u32 {
    let mut best = 0;
    for (i, &x) in row.iter().enumerate() {
        if x > row[best] {
            best = i;
        }
    }
    best as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Sampler;

    #[test]
    fn a_token_that_was_never_read_is_drawn_again_wherever_it_was_chosen() {
        let params = SamplingParams::builder().temperature(1.0).seed(7).build().unwrap();
        let logits = Array::zeros::<f32>((1, 1000)).unwrap();
        let on_host = |samplers: &[Option<SharedSampler>]| Ok(Some(choose(samplers, &logits)?));
        let on_device = |samplers: &[Option<SharedSampler>]| on_device(samplers, &logits);
        for (name, way) in [("host", &on_host as &dyn Fn(&[_]) -> Result<Option<Array>>), ("device", &on_device)] {
            let shared = Sampled::shared(Sampler::new(params.clone()));
            let draw = || way(&[Some(shared.clone())]).unwrap().expect("rows allow it").to_vec::<u32>().unwrap()[0];
            let drawn = [draw(), draw()];
            assert_ne!(drawn[0], drawn[1], "{name}");
            let mut sampled = lock(&shared);
            assert_eq!(sampled.unread.len(), 2, "{name}");
            let first = sampled.unread.pop_front().unwrap();
            sampled.sampler.set_rng(first);
            drop(sampled);
            assert_eq!([draw(), draw()], drawn, "{name}");
        }
    }
}
