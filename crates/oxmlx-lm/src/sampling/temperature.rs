//! The temperature, a plain one or one that goes with how sure the model is.

use super::check::check;
use super::row::{Row, sum};
use crate::Result;

/// A temperature between `t - range` and `t + range`: low where the model is sure, high where it is not.
///
/// The place between is the entropy, as a share of the largest possible one, to the power of an exponent.
///
/// # Source
/// llama.cpp's extended temperature sampler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamicTemperature {
    range: f32,
    exponent: f32,
}

impl DynamicTemperature {
    /// A range of 0 turns it off.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) for a negative or infinite range, or an exponent that is not above 0.
    pub fn new(range: f32, exponent: f32) -> Result<Self> {
        let wanted = "a finite number from 0 up (0 turns it off)";
        let range = check(range.is_finite() && range >= 0.0, "dynamic-temperature-range", range, wanted)?;
        let right = exponent.is_finite() && exponent > 0.0;
        let exponent = check(right, "dynamic-temperature-exponent", exponent, "a finite number above 0")?;
        Ok(Self { range, exponent })
    }

    pub(super) fn is_off(&self) -> bool {
        self.range == 0.0
    }

    /// The temperature for this row.
    pub(super) fn of(&self, row: &mut Row, temperature: f32) -> Result<f32> {
        let largest = row.largest()?;
        let list = row.weighed()?;
        let total = sum(list);
        let live = || list.iter().filter(|c| c.weight > 0.0);
        let count = live().count();
        if count < 2 {
            return Ok(temperature);
        }
        let surprise = |logit: f32| total.ln() - f64::from(logit - largest);
        let entropy: f64 = live().map(|c| f64::from(c.weight) / total * surprise(c.logit)).sum();
        let share = (entropy / (count as f64).ln()).clamp(0.0, 1.0);
        let (temperature, range) = (f64::from(temperature), f64::from(self.range));
        let (low, high) = ((temperature - range).max(0.0), temperature + range);
        Ok((low + (high - low) * share.powf(f64::from(self.exponent))).min(f64::from(f32::MAX)) as f32)
    }
}

/// Divides the logits by the temperature; 0 leaves the most probable token alone. The largest becomes 0 unless its own level is to be
/// `kept`, for a stage to come that looks at signs; a level beyond every number is the largest number.
pub(super) fn heat(row: &mut Row, temperature: f32, kept: bool) -> Result<()> {
    if temperature == 1.0 {
        return Ok(());
    }
    // In double precision, where a tiny temperature's reciprocal is finite. Of 0 it is infinite, and 0 times that is the best's own.
    let scale = 1.0 / f64::from(temperature);
    let level = if kept { f64::from(row.largest()?) / f64::from(temperature) } else { 0.0 };
    let level = if level.is_nan() { 0.0 } else { level as f32 };
    row.rescale(level.clamp(f32::MIN, f32::MAX), |distance| if distance == 0.0 { 0.0 } else { distance * scale })
}
