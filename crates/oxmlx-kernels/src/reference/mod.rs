//! What each kernel means, in plain f64 loops. Tests compare with this; nothing here is fast.

mod attention;
mod ops;
mod quant;

use crate::dtype::Floats;

pub use attention::{Sizes, attention};
pub use ops::{layer_norm, rms_norm, rope, silu_mul, softmax};
pub use quant::{dequantize, dequantize_fp, qmm, qmm_plain};

/// The elements as f64.
pub fn to_f64(x: Floats<'_>) -> Vec<f64> {
    match x {
        Floats::F32(x) => x.iter().map(|&x| f64::from(x)).collect(),
        Floats::F16(x) => x.iter().map(|&x| f64::from(x)).collect(),
        Floats::Bf16(x) => x.iter().map(|&x| f64::from(x)).collect(),
    }
}

/// A result and how large its terms were: rounding errors are bounded by a multiple of `size`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Sum {
    /// The value.
    pub value: f64,
    /// The sum of the terms' magnitudes.
    pub size: f64,
}

impl Sum {
    /// Adds a term.
    pub fn add(&mut self, term: f64) {
        self.value += term;
        self.size += term.abs();
    }
}

/// `x @ w` for row-major `x` `[m, k]` and `w` `[k, n]`.
pub fn matmul(x: &[f64], w: &[f64], [m, k, n]: [usize; 3]) -> Vec<Sum> {
    let mut out = vec![Sum::default(); m * n];
    for i in 0..m {
        for l in 0..k {
            for j in 0..n {
                out[i * n + j].add(x[i * k + l] * w[l * n + j]);
            }
        }
    }
    out
}

/// Rows and columns exchanged.
pub fn transpose(x: &[f64], [rows, cols]: [usize; 2]) -> Vec<f64> {
    (0..rows * cols).map(|i| x[i % rows * cols + i / rows]).collect()
}
