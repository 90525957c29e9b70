//! What choosing a token from a row of logits costs on the host, by vocabulary and stages.
//!
//!     cargo bench -p oxmlx-lm --bench sampling
//!
//! The history has 512 tokens; it grows by one a sample, as in decoding.

use divan::{Bencher, black_box};
use oxmlx_lm::sampling::{Dry, FrequencyPresence, Repetition, Rng, SamplingParamsBuilder, Window, logprobs};
use oxmlx_lm::{Sampler, SamplingParams};

const VOCABULARIES: [usize; 2] = [49_152, 151_936];

fn main() {
    divan::main();
}

/// Normally distributed, as logits about are.
fn row(size: usize) -> Vec<f32> {
    let mut rng = Rng::new(1);
    (0..size).map(|_| ((0..12).map(|_| rng.next_f64()).sum::<f64>() - 6.0) as f32 * 3.0).collect()
}

fn sampled(bencher: Bencher<'_, '_>, size: usize, stages: impl Fn(SamplingParamsBuilder) -> SamplingParamsBuilder) {
    let logits = row(size);
    let settings = stages(SamplingParams::builder().temperature(0.8).seed(1));
    // A setting that is refused makes a greedy sampler, which the figures give away.
    let mut sampler = Sampler::new(settings.build().unwrap_or_else(|_| SamplingParams::greedy()));
    let history: Vec<u32> = (0..512u32).map(|i| i.wrapping_mul(2_654_435_761) % size as u32).collect();
    sampler.begin(&history);
    bencher.bench_local(|| black_box(sampler.sample(black_box(&logits))));
}

fn penalties(settings: SamplingParamsBuilder) -> SamplingParamsBuilder {
    let window = Window::last(256);
    let (repetition, counts) = (Repetition::new(1.1, window).ok(), FrequencyPresence::new(0.1, 0.1, window).ok());
    let settings = repetition.into_iter().fold(settings, SamplingParamsBuilder::repetition);
    counts.into_iter().fold(settings, SamplingParamsBuilder::frequency_presence)
}

#[divan::bench(args = VOCABULARIES)]
fn greedy(bencher: Bencher<'_, '_>, size: usize) {
    sampled(bencher, size, |settings| settings.temperature(0.0));
}

/// Penalties, top-k 40, top-p, min-p: the chain that the engine is measured by.
#[divan::bench(args = VOCABULARIES)]
fn penalties_top_k_top_p_min_p(bencher: Bencher<'_, '_>, size: usize) {
    sampled(bencher, size, |settings| penalties(settings).top_k(40).top_p(0.95).min_p(0.05));
}

#[divan::bench(args = VOCABULARIES)]
fn top_k_top_p_min_p(bencher: Bencher<'_, '_>, size: usize) {
    sampled(bencher, size, |settings| settings.top_k(40).top_p(0.95).min_p(0.05));
}

#[divan::bench(args = VOCABULARIES)]
fn penalties_dry_top_k(bencher: Bencher<'_, '_>, size: usize) {
    let dry = Dry::new(0.8).ok();
    sampled(bencher, size, |settings| {
        dry.clone().into_iter().fold(penalties(settings).top_k(40), SamplingParamsBuilder::dry)
    });
}

#[divan::bench(args = VOCABULARIES)]
fn top_p(bencher: Bencher<'_, '_>, size: usize) {
    sampled(bencher, size, |settings| settings.top_p(0.95));
}

#[divan::bench(args = VOCABULARIES)]
fn min_p(bencher: Bencher<'_, '_>, size: usize) {
    sampled(bencher, size, |settings| settings.min_p(0.05));
}

#[divan::bench(args = VOCABULARIES)]
fn typical_p(bencher: Bencher<'_, '_>, size: usize) {
    sampled(bencher, size, |settings| settings.typical_p(0.95));
}

#[divan::bench(args = VOCABULARIES)]
fn top_n_sigma(bencher: Bencher<'_, '_>, size: usize) {
    sampled(bencher, size, |settings| settings.top_n_sigma(1.0));
}

#[divan::bench(args = VOCABULARIES)]
fn temperature_alone(bencher: Bencher<'_, '_>, size: usize) {
    sampled(bencher, size, |settings| settings);
}

#[divan::bench(args = VOCABULARIES)]
fn top_20_logprobs(bencher: Bencher<'_, '_>, size: usize) {
    let logits = row(size);
    bencher.bench_local(|| black_box(logprobs(black_box(&logits), 7, 20)));
}
