//! Frequency and presence penalties: taken off the logits of tokens that came before, by how often and at all.

use super::check::check;
use super::history::{Tally, Window};
use super::row::Row;
use crate::Result;

/// Takes `count * frequency + presence` off the logits of tokens in the window.
///
/// # Source
/// The API reference of OpenAI's completions; there without the prompt, here the history begins with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrequencyPresence {
    frequency: f32,
    presence: f32,
    pub(super) window: Window,
}

impl FrequencyPresence {
    /// Positive penalties make repetition less likely, negative ones more; 0 turns one off.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) for a penalty that is not finite.
    pub fn new(frequency: f32, presence: f32, window: Window) -> Result<Self> {
        let finite = |name, x: f32| check(x.is_finite(), name, x, "a finite number (0 turns it off)");
        let (frequency, presence) = (finite("frequency-penalty", frequency)?, finite("presence-penalty", presence)?);
        Ok(Self { frequency, presence, window })
    }

    pub(super) fn is_off(&self) -> bool {
        (self.frequency == 0.0 && self.presence == 0.0) || self.window.is_off()
    }

    pub(super) fn apply(&self, tally: &Tally, row: &mut Row) {
        for (id, count) in tally.iter() {
            let penalty = count as f32 * self.frequency + self.presence;
            row.edit(id, |x| x - penalty);
        }
    }
}
