//! XTC, "exclude top choices": now and then all but the least likely of the good tokens are taken out.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::check::{check, token_id};
use super::row::{Candidate, Row, sum};
use crate::Result;

/// With a probability, takes out all tokens whose share is the threshold at least, except the least probable of them and special ones.
///
/// # Source
/// P. E. Weidmann, XTC, text-generation-webui pull request 6335, 2024.
#[derive(Clone, Debug, PartialEq)]
pub struct Xtc {
    pub(super) probability: f32,
    threshold: f32,
    special: Arc<BTreeSet<u32>>,
}

impl Xtc {
    /// A probability of 0 or a threshold over 0.5 turns it off: no two tokens can have more than half.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) for a probability or threshold outside 0 to 1.
    pub fn new(probability: f32, threshold: f32) -> Result<Self> {
        let share = |name, x: f32| check((0.0..=1.0).contains(&x), name, x, "from 0 to 1");
        let (probability, threshold) = (share("xtc-probability", probability)?, share("xtc-threshold", threshold)?);
        Ok(Self { probability, threshold, special: Arc::default() })
    }

    /// Tokens that are never taken out: line breaks, and those that end a text.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) for an id that no vocabulary can have.
    pub fn special(mut self, ids: impl IntoIterator<Item = i64>) -> Result<Self> {
        let ids: Result<BTreeSet<u32>> = ids.into_iter().map(|id| token_id(id, "xtc-special")).collect();
        self.special = Arc::new(ids?);
        Ok(self)
    }

    pub(super) fn is_off(&self) -> bool {
        self.probability == 0.0 || self.threshold > 0.5
    }

    /// Takes out the top choices: what is done when chance says so.
    pub(super) fn apply(&self, row: &mut Row) -> Result<()> {
        let list = row.weighed()?;
        let bar = f64::from(self.threshold) * sum(list);
        let good = |c: &Candidate| f64::from(c.weight) >= bar && c.weight > 0.0;
        if let Some(last) = list.iter().filter(|c| good(c)).copied().max_by(Candidate::rank) {
            row.retain(|c| !good(c) || c.id == last.id || self.special.contains(&c.id));
            row.changed();
        }
        Ok(())
    }
}
