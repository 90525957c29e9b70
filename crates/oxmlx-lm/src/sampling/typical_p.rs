//! Typical-p: keeps the tokens whose surprise is nearest to what is to be expected.

use super::row::{Row, last_of_share, sum};
use crate::Result;

/// Keeps the fewest tokens that make up the share `p`, those first whose `-ln(probability)` is nearest to the entropy. The most
/// probable token need not be among them.
///
/// # Source
/// Meister et al., Locally typical sampling, 2022.
pub(super) fn typical_p(row: &mut Row, p: f32) -> Result<()> {
    let largest = row.largest()?;
    let list = row.weighed()?;
    let total = sum(list);
    let surprise = |logit: f32| total.ln() - f64::from(logit - largest);
    let live = || list.iter().filter(|c| c.weight > 0.0);
    let entropy: f64 = live().map(|c| f64::from(c.weight) / total * surprise(c.logit)).sum();
    let distance = |logit: f32| (surprise(logit) - entropy).abs();
    let nearest = |a: &(f64, u32, f32), b: &(f64, u32, f32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    let mut ranked: Vec<(f64, u32, f32)> = live().map(|c| (distance(c.logit), c.id, c.weight)).collect();
    if let Some(last) = last_of_share(&mut ranked, f64::from(p) * total, |c| f64::from(c.2), nearest) {
        row.retain(|c| c.weight > 0.0 && nearest(&(distance(c.logit), c.id, c.weight), &last).is_le());
        row.changed();
    }
    Ok(())
}
