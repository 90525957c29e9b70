//! Rows that grow in place: `[batch, heads, rows, width]`, of which the first ones are live.

use oxmlx::{Array, Dtype, ops};

use crate::{Error, ErrorKind, Result};

/// The rows that a full buffer grows by.
const STEP: usize = 256;

/// The four dimensions of keys or values.
pub(super) fn shape4(array: &Array) -> Result<[i32; 4]> {
    <[i32; 4]>::try_from(array.shape()).map_err(|_| {
        let what = format!("shape {:?}, keys and values are [batch, kv_heads, tokens, head_dim]", array.shape());
        Error::new(ErrorKind::Cache, what)
    })
}

/// Checks that new keys and values fit each other and what `held` has (batch, heads, width, dtype), and gives the keys' shape.
pub(super) fn check(keys: &Array, values: &Array, held: Option<([i32; 4], Dtype)>) -> Result<[i32; 4]> {
    let shape = shape4(keys)?;
    let [batch, heads, tokens, width] = shape;
    let fits = held.is_none_or(|([b, h, _, w], dtype)| (b, h, w, dtype) == (batch, heads, width, keys.dtype()));
    if tokens > 0 && fits && keys.shape() == values.shape() && keys.dtype() == values.dtype() {
        return Ok(shape);
    }
    let of = |a: &Array| format!("{:?} {:?}", a.dtype(), a.shape());
    let holds = held.map_or_else(|| "nothing".to_owned(), |(shape, dtype)| format!("{dtype:?} {shape:?}"));
    let what = format!("keys {} and values {} do not fit a cache that holds {holds}", of(keys), of(values));
    Err(Error::new(ErrorKind::Cache, what))
}

/// Rows `from..to`.
pub(super) fn rows(buffer: &Array, from: usize, to: usize) -> Result<Array> {
    let [batch, heads, capacity, width] = shape4(buffer)?;
    if (from, to) == (0, capacity as usize) {
        return Ok(buffer.clone());
    }
    Ok(ops::slice(buffer, &[0, 0, from as i32, 0], &[batch, heads, to as i32, width], &[1; 4])?)
}

/// `buffer` with `new` written over its rows from `at` on; in place where nobody else holds it.
pub(super) fn write(buffer: &Array, new: &Array, at: usize) -> Result<Array> {
    let [batch, heads, tokens, width] = shape4(new)?;
    let stop = [batch, heads, at as i32 + tokens, width];
    Ok(ops::slice_update(buffer, new, &[0, 0, at as i32, 0], &stop, &[1; 4])?)
}

/// Rows, one after the other.
pub(super) fn concatenate(parts: &[Array]) -> Result<Array> {
    match parts {
        [one] => Ok(one.clone()),
        parts => Ok(ops::concatenate(parts, 2)?),
    }
}

/// A buffer with room for `end` rows of which `len` are live: `buffer` itself where it has it, else one that is larger by whole steps,
/// and by no more than up to `limit` rows.
pub(super) fn room(
    buffer: Option<&Array>,
    [batch, heads, width]: [i32; 3],
    dtype: Dtype,
    [len, end]: [usize; 2],
    limit: usize,
) -> Result<Array> {
    if let Some(buffer) = buffer
        && shape4(buffer)?[2] as usize >= end
    {
        return Ok(buffer.clone());
    }
    let capacity = (end.div_ceil(STEP) * STEP).min(limit.max(end));
    let zeros = ops::zeros([batch, heads, (capacity - len) as i32, width], dtype)?;
    match buffer {
        Some(buffer) if len > 0 => concatenate(&[rows(buffer, 0, len)?, zeros]),
        _ => Ok(zeros),
    }
}
