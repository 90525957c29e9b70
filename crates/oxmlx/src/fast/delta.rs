//! The gated delta rule: linear attention with a state that decays and is corrected.

use oxmlx_sys::generated::fast as raw;

use crate::ops::check;
use crate::{Array, Dtype, Error, ErrorKind, Result};

const OP: &str = "gated_delta_update";

/// A step of a gated delta network over `t` positions.
///
/// For each position the state of a head decays by its gate, is corrected by `beta` towards `value` at `key`, and is read at `query`.
/// Several value heads share a key head.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct GatedDelta<'a> {
    gates: &'a Array,
    beta: &'a Array,
    state: Option<&'a Array>,
    mask: Option<&'a Array>,
}

impl<'a> GatedDelta<'a> {
    /// Decay factors and step sizes, each `[b, t, h_v]`: `gates` from 0 (forget) to 1 (keep), `beta` from 0 (ignore) to 1 (replace).
    pub fn new(gates: &'a Array, beta: &'a Array) -> Self {
        Self { gates, beta, state: None, mask: None }
    }

    /// The state before the first position, `[b, h_v, d_v, d_k]`; zeros without it.
    pub fn state(mut self, state: &'a Array) -> Self {
        self.state = Some(state);
        self
    }

    /// Which positions count, `[b, t]` bool: the others leave the state as it is.
    pub fn mask(mut self, mask: &'a Array) -> Self {
        self.mask = Some(mask);
        self
    }
}

/// Runs the gated delta rule; returns the outputs and the state after the last position.
///
/// Shapes: queries and keys `[b, t, h_k, d_k]`, values `[b, t, h_v, d_v]` with `h_v` a multiple of `h_k`; the outputs `[b, t, h_v, d_v]`, the
/// state `[b, h_v, d_v, d_k]`. Dtypes: floating point. Lazy.
///
/// ```
/// use oxmlx::{Array, fast};
/// let one = Array::ones::<f32>((1, 1, 1, 1))?;
/// let all = Array::ones::<f32>((1, 1, 1))?;
/// let state = Array::ones::<f32>((1, 1, 1, 1))?;
/// let value = Array::from_slice(&[5.0f32], (1, 1, 1, 1))?;
/// let step = fast::GatedDelta::new(&all, &all).state(&state);
/// let (out, state) = fast::gated_delta_update(&one, &one, &value, step)?;
/// assert_eq!((out.item::<f32>()?, state.item::<f32>()?), (5.0, 5.0));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for shapes that do not fit or no positions, [`ErrorKind::Group`] when the value heads are no multiple of the key
/// heads, [`ErrorKind::Dtype`] for a mask that is not bool.
///
/// # Source
/// C++ `mlx::core::fast::gated_delta_update` (`mlx/fast.h`); Yang, Kautz and Hatamizadeh, Gated Delta Networks, 2024. Differs: shapes are
/// checked.
pub fn gated_delta_update(
    queries: &Array,
    keys: &Array,
    values: &Array,
    step: GatedDelta<'_>,
) -> Result<(Array, Array)> {
    let GatedDelta { gates, beta, state, mask } = step;
    let (&[b, t, h_k, d_k], &[_, _, h_v, d_v]) = (keys.shape(), values.shape()) else {
        return Err(misfit("keys", keys, "values", values));
    };
    if t == 0 {
        return Err(Error::new(ErrorKind::Shape, OP, "there are no positions").with_shape(keys.shape()));
    }
    if h_k == 0 || h_v % h_k != 0 {
        let text = format!("{h_v} value heads are no multiple of {h_k} key heads");
        return Err(Error::new(ErrorKind::Group, OP, text).with_shape(keys.shape()).with_shape(values.shape()));
    }
    fits("queries", queries, &[b, t, h_k, d_k])?;
    fits("values", values, &[b, t, h_v, d_v])?;
    fits("gates", gates, &[b, t, h_v])?;
    fits("beta", beta, &[b, t, h_v])?;
    if let Some(state) = state {
        fits("the state", state, &[b, h_v, d_v, d_k])?;
    }
    if let Some(mask) = mask {
        fits("the mask", mask, &[b, t])?;
        if mask.dtype() != Dtype::Bool {
            let text = format!("the mask must be bool, not {}", mask.dtype());
            return Err(Error::new(ErrorKind::Dtype, OP, text).with_dtype(mask.dtype()));
        }
    }
    let raw_state = state.map(|s| &s.0);
    let parts =
        raw::gated_delta_update(&queries.0, &keys.0, &values.0, &gates.0, &beta.0, raw_state, mask.map(|m| &m.0))?;
    let [out, state] = check::exactly(parts, OP)?;
    Ok((out, state))
}

fn fits(name: &str, array: &Array, shape: &[i32]) -> Result<()> {
    if array.shape() == shape {
        return Ok(());
    }
    let text = format!("{name} must have shape {shape:?}, not {:?}", array.shape());
    Err(Error::new(ErrorKind::Shape, OP, text).with_shape(array.shape()))
}

#[cold]
fn misfit(a: &str, first: &Array, b: &str, second: &Array) -> Error {
    let text = format!("{a} of shape {:?} and {b} of shape {:?} must have four axes", first.shape(), second.shape());
    Error::new(ErrorKind::Shape, OP, text).with_shape(first.shape()).with_shape(second.shape())
}
