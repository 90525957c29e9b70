//! Quantized matrices and their products.

use super::{Sum, matmul, to_f64, transpose};
use crate::dtype::Floats;
use crate::quant::{AffineShape, FpMode};

/// The `bits` bits from bit `at` on of a little-endian bit stream, bit by bit.
fn field(words: &[u32], at: usize, bits: usize) -> u32 {
    (0..bits).map(|b| (words[(at + b) / 32] >> ((at + b) % 32) & 1) << b).sum()
}

/// A small float with `exponent` exponent bits and `mantissa` mantissa bits below a sign bit; no infinities, no NaN.
fn small_float(bits: u32, exponent: u32, mantissa: u32) -> f64 {
    let bias = (1 << (exponent - 1)) - 1;
    let sign = if bits >> (exponent + mantissa) & 1 == 1 { -1.0 } else { 1.0 };
    let e = (bits >> mantissa & ((1 << exponent) - 1)) as i32;
    let fraction = f64::from(bits & ((1 << mantissa) - 1)) / f64::from(1u32 << mantissa);
    sign * if e == 0 { fraction * 2f64.powi(1 - bias) } else { (1.0 + fraction) * 2f64.powi(e - bias) }
}

/// The weights of an affine matrix, row-major.
pub fn dequantize(words: &[u32], scales: Floats<'_>, biases: Floats<'_>, shape: AffineShape) -> Vec<f64> {
    let AffineShape { rows, cols, bits, group } = shape;
    let (scales, biases) = (to_f64(scales), to_f64(biases));
    let weight = |i: usize| scales[i / group] * f64::from(field(words, i * bits, bits)) + biases[i / group];
    (0..rows * cols).map(weight).collect()
}

/// The weights of a matrix of one of the float modes, row-major.
pub fn dequantize_fp(words: &[u32], scales: &[u8], shape: [usize; 2], mode: FpMode) -> Vec<f64> {
    let power = |s: u8| 2f64.powi(i32::from(s) - 127);
    let e4m3 = |s: u8| small_float(u32::from(s), 4, 3);
    let weight = |i: usize| match mode {
        FpMode::Mxfp4 => power(scales[i / 32]) * small_float(field(words, i * 4, 4), 2, 1),
        FpMode::Mxfp8 => power(scales[i / 32]) * small_float(field(words, i * 8, 8), 4, 3),
        FpMode::Nvfp4 => e4m3(scales[i / 16]) * small_float(field(words, i * 4, 4), 2, 1),
    };
    (0..shape[0] * shape[1]).map(weight).collect()
}

/// `x @ w^T` for dequantized `w` `[n, k]`.
pub fn qmm(x: &[f64], w: &[f64], [m, k, n]: [usize; 3]) -> Vec<Sum> {
    matmul(x, &transpose(w, [n, k]), [m, k, n])
}

/// `x @ w` for dequantized `w` `[k, n]`.
pub fn qmm_plain(x: &[f64], w: &[f64], [m, k, n]: [usize; 3]) -> Vec<Sum> {
    matmul(x, w, [m, k, n])
}
