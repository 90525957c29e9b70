//! Integer arithmetic that C++ leaves undefined, given a value: division by zero, `MIN / -1`, negative powers, far shifts.
//!
//! MLX stops the process (SIGFPE) or loops for ever on these. The guards cost a few nodes; a constant right-hand side
//! that needs none is seen and gets none.

use oxmlx_sys::array::Status;
use oxmlx_sys::generated::{ops as raw, utils};

use crate::{Array, Dtype, Result, ops};

/// The common dtype of two operands, when it is an integer.
#[derive(Clone, Copy)]
pub(super) struct Dividend {
    pub(super) dtype: Dtype,
    pub(super) signed: bool,
}

impl Dividend {
    pub(super) fn of(a: &Array, b: &Array) -> Result<Option<Self>> {
        let (x, y) = (a.dtype(), b.dtype());
        // The common case first: a float decides.
        let whole = |d: Dtype| d.is_integer() || d == Dtype::Bool;
        if !(whole(x) && whole(y)) {
            return Ok(None);
        }
        let dtype = if x == y { x } else { utils::result_type_a_b(&a.0, &b.0)? };
        let signed = matches!(dtype, Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64);
        Ok(Some(Self { dtype, signed }))
    }
}

/// The value of an integer constant that is there already; `None` for all else. Never evaluates.
pub(super) fn constant(a: &Array) -> Result<Option<i64>> {
    if a.size() != 1 || a.0.status()? != Status::Available || a.0.is_tracer()? {
        return Ok(None);
    }
    let read = || -> Result<Option<i64>> {
        Ok(Some(match a.dtype() {
            Dtype::Int8 => i64::from(a.try_as_slice::<i8>()?[0]),
            Dtype::Int16 => i64::from(a.try_as_slice::<i16>()?[0]),
            Dtype::Int32 => i64::from(a.try_as_slice::<i32>()?[0]),
            Dtype::Int64 => a.try_as_slice::<i64>()?[0],
            Dtype::Uint8 => i64::from(a.try_as_slice::<u8>()?[0]),
            Dtype::Uint16 => i64::from(a.try_as_slice::<u16>()?[0]),
            Dtype::Uint32 => i64::from(a.try_as_slice::<u32>()?[0]),
            _ => return Ok(None),
        }))
    };
    read()
}

/// Whether `b` is a constant that every integer can be divided by.
pub(super) fn divides_safely(b: &Array) -> Result<bool> {
    Ok(constant(b)?.is_some_and(|b| b != 0 && b != -1))
}

fn like(value: i32, dtype: Dtype) -> Result<Array> {
    ops::astype(&Array::scalar(value)?, dtype)
}

fn common(a: &Array, b: &Array) -> Result<(Array, Array)> {
    let dtype = utils::result_type_a_b(&a.0, &b.0)?;
    // MLX divides bool as uint8 would be; keep whatever type it takes by leaving equal dtypes alone.
    Ok((ops::astype(a, dtype)?, ops::astype(b, dtype)?))
}

/// Where `b` can't divide: zero, or -1 for signed integers.
fn unsafe_divisor(b: &Array) -> Result<(Array, Option<Array>)> {
    let zero = ops::equal(b, &like(0, b.dtype())?)?;
    let signed = matches!(b.dtype(), Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64);
    let minus = if signed { Some(ops::equal(b, &like(-1, b.dtype())?)?) } else { None };
    Ok((zero, minus))
}

fn replaced(b: &Array, zero: &Array, minus: Option<&Array>) -> Result<Array> {
    let bad = match minus {
        Some(minus) => ops::logical_or(zero, minus)?,
        None => zero.clone(),
    };
    ops::where_(&bad, &like(1, b.dtype())?, b)
}

/// `a / b` with 0 for a zero `b` and `-a`, wrapping, for -1.
pub(super) fn quotient(a: &Array, b: &Array, dividend: Dividend) -> Result<Array> {
    if dividend.dtype == Dtype::Bool {
        // a / 1 is a, a / 0 is 0.
        return ops::astype(&ops::logical_and(a, b)?, Dtype::Bool);
    }
    let (a, b) = common(a, b)?;
    let (zero, minus) = unsafe_divisor(&b)?;
    let plain: Array = raw::floor_divide(&a.0, &replaced(&b, &zero, minus.as_ref())?.0)?.into();
    let signed = match minus {
        Some(minus) => ops::where_(&minus, &ops::negative(&a)?, &plain)?,
        None => plain,
    };
    ops::where_(&zero, &like(0, b.dtype())?, &signed)
}

/// `a mod b` with 0 for `b` of 0 and -1.
pub(super) fn remainder(a: &Array, b: &Array) -> Result<Array> {
    let (a, b) = common(a, b)?;
    if b.dtype() == Dtype::Bool {
        return ops::zeros_like(&ops::logical_and(&a, &b)?);
    }
    let (zero, minus) = unsafe_divisor(&b)?;
    // Modulo 1 is 0, which is the answer for the divisors that 1 stands for.
    Ok(raw::remainder(&a.0, &replaced(&b, &zero, minus.as_ref())?.0)?.into())
}

/// `a^b` of signed integers with a `b` that may be negative: the whole part of the true value, 0 where that is infinite.
pub(super) fn power(a: &Array, b: &Array, dtype: Dtype) -> Result<Array> {
    let (a, b) = (ops::astype(a, dtype)?, ops::astype(b, dtype)?);
    let zero = like(0, dtype)?;
    let negative = ops::less(&b, &zero)?;
    let plain: Array = raw::power(&a.0, &ops::where_(&negative, &zero, &b)?.0)?.into();
    // Of the negative powers only those of 1 and -1 are whole: 1, and -1 or 1 as the power is odd or even.
    let odd = ops::equal(&ops::bitwise_and(&b, &like(1, dtype)?)?, &like(1, dtype)?)?;
    let one = ops::equal(&a, &like(1, dtype)?)?;
    let minus_one = ops::equal(&a, &like(-1, dtype)?)?;
    let unit = ops::where_(&ops::logical_and(&minus_one, &odd)?, &like(-1, dtype)?, &like(1, dtype)?)?;
    let of_negative = ops::where_(&ops::logical_or(&one, &minus_one)?, &unit, &zero)?;
    ops::where_(&negative, &of_negative, &plain)
}

/// A shift distance below the width of the shifted dtype.
pub(super) fn distance(a: &Array, b: &Array) -> Result<Array> {
    let Some(dividend) = Dividend::of(a, b)? else { return Ok(b.clone()) };
    let width = i64::try_from(8 * dividend.dtype.size()).unwrap_or(8);
    if dividend.dtype == Dtype::Bool || constant(b)?.is_some_and(|b| (0..width).contains(&b)) {
        return Ok(b.clone());
    }
    ops::bitwise_and(b, &like(width as i32 - 1, b.dtype())?)
}
