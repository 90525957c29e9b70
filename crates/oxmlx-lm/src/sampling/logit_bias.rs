//! Logit bias: numbers added to the logits of chosen tokens.

use super::check::{check, token_id};
use super::row::Row;
use crate::Result;

/// Numbers that are added to tokens' logits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogitBias(Vec<(u32, f32)>);

impl LogitBias {
    /// Token ids with what is added to their logits; -inf rules a token out. An id that the model's vocabulary does not have is
    /// ignored, since requests are made without knowing it. Of an id given twice both numbers are added.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`](crate::ErrorKind::Sampling) for an id that no vocabulary can have (negative, over 2^32), and for NaN
    /// and +inf.
    pub fn new(biases: impl IntoIterator<Item = (i64, f32)>) -> Result<Self> {
        let checked = biases.into_iter().map(|(id, bias)| {
            let id = token_id(id, "logit-bias")?;
            Ok((id, check(bias < f32::INFINITY, "logit-bias", bias, "a number below infinity")?))
        });
        checked.collect::<Result<_>>().map(Self)
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn apply(&self, row: &mut Row) {
        for &(id, bias) in &self.0 {
            if bias == f32::NEG_INFINITY {
                row.ban(id);
            } else {
                row.edit(id, |x| x + bias);
            }
        }
    }
}
