//! Mirostat 2: cuts off what is too surprising, and moves the bar so that the text's surprise stays at a target.

use super::check::check;
use super::row::{Row, sum};
use crate::Result;

/// Takes the place of all filters: tokens of more bits of surprise than the bar go; after the draw the bar moves by the learning
/// rate times the difference between target and surprise. It starts at twice the target.
///
/// # Source
/// Basu et al., Mirostat, 2020; the second version, as llama.cpp has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mirostat {
    pub(super) target: f32,
    rate: f32,
}

impl Mirostat {
    /// A target in bits (`tau`, 5 is usual) and a learning rate (`eta`, 0.1 is usual).
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) for a target that is negative or not finite, or a rate outside 0 to 1.
    pub fn new(target: f32, rate: f32) -> Result<Self> {
        let right = target.is_finite() && target >= 0.0;
        let target = check(right, "mirostat-tau", target, "a finite number from 0 up")?;
        let rate = check((0.0..=1.0).contains(&rate), "mirostat-eta", rate, "from 0 to 1")?;
        Ok(Self { target, rate })
    }

    /// Where the bar starts.
    pub(super) fn start(&self) -> f32 {
        2.0 * self.target
    }

    /// Takes out what is over the bar; the most probable token stays.
    pub(super) fn apply(row: &mut Row, bar: f32) -> Result<()> {
        let largest = row.largest()?;
        let list = row.weighed()?;
        let total = sum(list);
        let least = (total * (-f64::from(bar)).exp2()).min(1.0);
        row.retain(|c| f64::from(c.weight) >= least || c.logit == largest);
        Ok(())
    }

    /// The next bar, after a token of this probability among those that were left.
    pub(super) fn moved(&self, bar: f32, probability: f64) -> f32 {
        bar - self.rate * (-probability.log2() as f32 - self.target)
    }
}
