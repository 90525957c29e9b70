//! The draw: a token by its weight.

use super::row::{Candidate, sum};

/// The candidate at the place `at`, from 0 to 1, of all weights laid end to end in the order of ids, and its probability.
pub(super) fn draw(list: &[Candidate], at: f64) -> Option<(u32, f64)> {
    let total = sum(list);
    let target = at * total;
    let mut reached = 0.0;
    let mut chosen = None;
    for c in list.iter().filter(|c| c.weight > 0.0) {
        chosen = Some((c.id, f64::from(c.weight) / total));
        reached += f64::from(c.weight);
        if reached > target {
            break;
        }
    }
    chosen
}
