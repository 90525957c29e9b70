//! The repetition penalty: tokens that came before become less likely, however often they came.

use super::check::check;
use super::history::{Tally, Window};
use super::row::Row;
use crate::Result;

/// Divides the positive logits of tokens in the window by the penalty and multiplies the others with it.
///
/// # Source
/// Keskar et al., CTRL, 2019.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repetition {
    penalty: f32,
    pub(super) window: Window,
}

impl Repetition {
    /// A penalty over 1 makes repetition less likely, one under 1 more; 1 turns it off.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) for a penalty that is no finite number above 0.
    pub fn new(penalty: f32, window: Window) -> Result<Self> {
        let right = penalty.is_finite() && penalty > 0.0;
        let penalty = check(right, "repetition-penalty", penalty, "a finite number above 0 (1 turns it off)")?;
        Ok(Self { penalty, window })
    }

    pub(super) fn is_off(&self) -> bool {
        self.penalty == 1.0 || self.window.is_off()
    }

    pub(super) fn apply(&self, tally: &Tally, row: &mut Row) {
        let penalty = self.penalty;
        for (id, _) in tally.iter() {
            row.edit(id, |x| if x > 0.0 { x / penalty } else { x * penalty });
        }
    }
}
