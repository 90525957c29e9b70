//! Min-p: keeps the tokens that are not too much less probable than the best.

use super::row::Row;
use crate::Result;

/// Keeps those at least `p` times as probable as the most probable.
///
/// # Source
/// Nguyen et al., Turning up the heat: min-p sampling, 2024.
pub(super) fn min_p(row: &mut Row, p: f32) -> Result<()> {
    // What is clearly under the bar needs no weight; a margin for rounding, of a thousandth and of the logits' own digits.
    let largest = row.largest()?;
    row.keep_from(largest + p.ln() - 1e-3 - largest.abs() * 1e-6);
    row.weighed()?;
    row.retain(|c| c.weight >= p);
    Ok(())
}
