//! Top-n-sigma: keeps the tokens whose logit is within some standard deviations of the largest.

use super::row::Row;
use crate::Result;

/// Keeps logits of at least `largest - n * deviation`, the deviation being that of all logits that are not ruled out.
///
/// # Source
/// Tang et al., Top-nsigma: not all logits are you need, 2024.
pub(super) fn top_n_sigma(row: &mut Row, n: f32) -> Result<()> {
    let largest = f64::from(row.largest()?);
    // Sums about the largest lose no digits to a common offset.
    let (sum, squares, count) = row.moments(largest);
    let mean = sum / count as f64;
    let deviation = (squares / count as f64 - mean * mean).max(0.0).sqrt();
    // The largest is kept whatever rounding does.
    row.keep_from(((largest - f64::from(n) * deviation) as f32).min(largest as f32));
    Ok(())
}
