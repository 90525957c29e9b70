//! Top-p, nucleus sampling: keeps the most probable tokens that make up a share of the whole.

use super::row::{Candidate, Row, last_of_share};
use crate::Result;

/// Powers of two that weights can have: 1 down to the smallest normal number, and all that is less.
const POWERS: usize = 128;

/// Keeps the fewest of the most probable whose weights sum up to the share `p` of the whole.
///
/// # Source
/// Holtzman et al., The curious case of neural text degeneration, 2019.
pub(super) fn top_p(row: &mut Row, p: f32) -> Result<()> {
    // The share ends in one of the weights' powers of two; only the candidates of that one have to be ranked.
    let list = row.weighed()?;
    let mut masses = [0.0; POWERS];
    for c in list {
        masses[power(c)] += f64::from(c.weight);
    }
    let target = f64::from(p) * masses.iter().sum::<f64>();
    let mut before = 0.0;
    let reached = masses.iter().position(|mass| {
        let reached = before + mass >= target;
        before += if reached { 0.0 } else { *mass };
        reached
    });
    let Some(reached) = reached else { return Ok(()) };
    let mut ranked: Vec<Candidate> = list.iter().filter(|c| power(c) == reached).copied().collect();
    if let Some(last) = last_of_share(&mut ranked, target - before, |c| f64::from(c.weight), Candidate::rank) {
        row.retain(|c| c.rank(&last).is_le());
    }
    Ok(())
}

/// Which power of two the weight has, 0 for 1 itself and counted downwards.
fn power(c: &Candidate) -> usize {
    // The exponent's bits; a weight is at most 1, whose exponent is 127.
    (POWERS - 1).saturating_sub((c.weight.to_bits() >> 23) as usize)
}
