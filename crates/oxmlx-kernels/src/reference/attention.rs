//! Attention, score by score.

use super::to_f64;
use crate::attention::{Mask, MaskView};
use crate::dtype::Floats;

/// Sizes of an attention; the arrays are contiguous.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Batch.
    pub batch: usize,
    /// Query heads and key heads.
    pub heads: [usize; 2],
    /// Queries and keys.
    pub lengths: [usize; 2],
    /// Width of keys and of values.
    pub widths: [usize; 2],
}

/// The answer for contiguous `q`, `k`, `v`.
pub fn attention([q, k, v]: [&[f64]; 3], sizes: Sizes, scale: f64, mask: &Mask<'_>, sinks: Option<&[f32]>) -> Vec<f64> {
    let Sizes { batch, heads: [h, kh], lengths: [l, n], widths: [d, dv] } = sizes;
    let mut out = Vec::with_capacity(batch * h * l * dv);
    for row in 0..batch * h * l {
        let (b, head, i) = (row / l / h, row / l % h, row % l);
        let plane = b * kh + head / (h / kh);
        let mut additive = false;
        let mut scores: Vec<Option<f64>> = (0..n)
            .map(|j| {
                let dot: f64 = (0..d).map(|e| q[row * d + e] * k[(plane * n + j) * d + e]).sum();
                let at = |s: [usize; 4]| b * s[0] + head * s[1] + i * s[2] + j * s[3];
                let p = (i + n) as i64 - l as i64;
                let visible = match mask {
                    Mask::None => true,
                    Mask::Causal { window } => j as i64 <= p && window.is_none_or(|w| j as i64 > p - w as i64),
                    Mask::Bool(MaskView { data, strides }) => data[at(*strides)] != 0,
                    Mask::Add(MaskView { data, strides }) => {
                        additive = true;
                        return Some(dot * scale + element(*data, at(*strides)));
                    }
                };
                visible.then_some(dot * scale)
            })
            .collect();
        if scores.iter().all(Option::is_none) && sinks.is_none() {
            // Nothing to see: MLX hides keys with the least finite number, which is then the same for all.
            scores.fill(Some(0.0));
        }
        let sink = sinks.map_or(f64::NEG_INFINITY, |s| f64::from(s[head]));
        let top = scores.iter().flatten().copied().fold(sink, f64::max);
        let weight = |s: &Option<f64>| s.map_or(0.0, |s| (s - top).exp());
        let sum = scores.iter().map(weight).sum::<f64>() + if sinks.is_some() { (sink - top).exp() } else { 0.0 };
        debug_assert!(additive || !sum.is_nan());
        out.extend((0..dv).map(|e| {
            let terms = scores.iter().enumerate().map(|(j, s)| weight(s) * v[(plane * n + j) * dv + e]);
            terms.sum::<f64>() / sum
        }));
    }
    out
}

fn element(x: Floats<'_>, at: usize) -> f64 {
    to_f64(x.window(at, 1))[0]
}
