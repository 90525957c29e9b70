//! What holds for any input: properties with random shapes and values. Few cases a property, so that all run in seconds.

mod compiled;
mod functions;
mod gradients;
mod mapped;
mod shapes;
mod slices;

use oxmlx::Array;
use proptest::prelude::ProptestConfig;

/// Few cases, and nothing written to disk.
fn few(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// `count` different values between two bounds, on a grid that leaves out zero and that `shift` (below 1) moves: values of
/// different shifts differ too.
fn grid(seed: u64, count: usize, (low, high): (f64, f64), shift: f64) -> Vec<f64> {
    const STEPS: u64 = 101;
    let (first, stride) = (seed % STEPS, 1 + (seed / STEPS) % (STEPS - 1));
    (0..count as u64)
        .map(|i| low + (high - low) * (((first + i * stride) % STEPS) as f64 + 0.25 + 0.5 * shift) / STEPS as f64)
        .collect()
}

/// An array of such values.
fn array(seed: u64, shape: &[i32], bounds: (f64, f64), shift: f64) -> Array {
    let count = shape.iter().product::<i32>() as usize;
    Array::from_slice(&grid(seed, count, bounds, shift), shape).unwrap()
}

/// The same in float32, which every device has.
fn single(seed: u64, shape: &[i32], bounds: (f64, f64), shift: f64) -> Array {
    let count = shape.iter().product::<i32>() as usize;
    let values: Vec<f32> = grid(seed, count, bounds, shift).into_iter().map(|x| x as f32).collect();
    Array::from_slice(&values, shape).unwrap()
}
