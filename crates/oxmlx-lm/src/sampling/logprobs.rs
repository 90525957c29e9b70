//! Log-probabilities of a row as the model gave it, before any stage.

use crate::{Error, ErrorKind, Result};

/// A token and its natural log-probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenLogprob {
    /// The token.
    pub token: u32,
    /// ln of its probability; -inf for one that can't come.
    pub logprob: f32,
}

/// The log-probability of `token` and of the `top` most probable tokens, the most probable first and of equals the lower id.
///
/// Takes logits of any float type (`f32`, `half::f16`, `half::bf16`); what is summed is in double precision, so that a row in half
/// precision gives the log-probabilities of the numbers in it.
///
/// ```
/// let (chosen, top) = oxmlx_lm::sampling::logprobs(&[0.0f32, 1.0, -1.0], 2, 2)?;
/// assert_eq!((chosen.token, top[0].token, top[1].token), (2, 1, 0));
/// assert!((top[0].logprob - -0.407_606).abs() < 1e-6);
/// # Ok::<(), oxmlx_lm::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Sampling`] for a token outside the row, and for a row that holds NaN or +inf, or nothing but -inf.
pub fn logprobs<T: Copy + Into<f32>>(
    logits: &[T],
    token: u32,
    top: usize,
) -> Result<(TokenLogprob, Vec<TokenLogprob>)> {
    let row: Vec<f32> = logits.iter().map(|&x| x.into()).collect();
    let Some(&chosen) = row.get(token as usize) else {
        let what = format!("token {token} is outside the row of {}", row.len());
        return Err(Error::new(ErrorKind::Sampling, what).at_field("logprobs"));
    };
    let largest = f64::from(super::row::largest(&row)?);
    let total: f64 = row.iter().map(|&x| (f64::from(x) - largest).exp()).sum();
    let logprob = |token: u32, x: f32| TokenLogprob { token, logprob: (f64::from(x) - largest - total.ln()) as f32 };
    let mut ids: Vec<u32> = (0..row.len() as u32).collect();
    let rank = |a: &u32, b: &u32| row[*b as usize].total_cmp(&row[*a as usize]).then(a.cmp(b));
    if top > 0 && top < ids.len() {
        ids.select_nth_unstable_by(top - 1, rank);
    }
    ids.truncate(top);
    ids.sort_unstable_by(rank);
    Ok((logprob(token, chosen), ids.into_iter().map(|id| logprob(id, row[id as usize])).collect()))
}
