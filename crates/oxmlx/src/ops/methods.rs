//! The operations that read well as methods.

use super as ops;
use super::Scan;
use crate::shape::IntoShape;
use crate::{Array, Dtype, Result};

/// Declares methods that are the operation of the same name on `self`.
macro_rules! methods {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $op:ident;)+) => {
        impl Array {$(
            #[doc = concat!("See [`ops::", stringify!($op), "`].")]
            ///
            /// # Errors
            #[doc = concat!("As [`ops::", stringify!($op), "`].")]
            pub fn $name(&self, $($arg: $ty),*) -> Result<$out> {
                ops::$op(self, $($arg),*)
            }
        )+}
    };
}

methods! {
    astype(dtype: Dtype) -> Self = astype;
    view(dtype: Dtype) -> Self = view;
    transpose() -> Self = transpose_all;
    transpose_axes(axes: &[i32]) -> Self = transpose;
    swapaxes(axis1: i32, axis2: i32) -> Self = swapaxes;
    moveaxis(source: i32, destination: i32) -> Self = moveaxis;
    flatten(start: i32, end: i32) -> Self = flatten;
    squeeze(axis: i32) -> Self = squeeze;
    expand_dims(axis: i32) -> Self = expand_dims;
    split(parts: i32, axis: i32) -> Vec<Self> = split;
    matmul(other: &Self) -> Self = matmul;
    take(indices: &Self, axis: i32) -> Self = take;
    take_along_axis(indices: &Self, axis: i32) -> Self = take_along_axis;
    diagonal(offset: i32, axis1: i32, axis2: i32) -> Self = diagonal;
    abs() -> Self = abs;
    exp() -> Self = exp;
    log() -> Self = log;
    log2() -> Self = log2;
    log10() -> Self = log10;
    log1p() -> Self = log1p;
    sqrt() -> Self = sqrt;
    rsqrt() -> Self = rsqrt;
    square() -> Self = square;
    reciprocal() -> Self = reciprocal;
    sin() -> Self = sin;
    cos() -> Self = cos;
    tanh() -> Self = tanh;
    sigmoid() -> Self = sigmoid;
    floor() -> Self = floor;
    ceil() -> Self = ceil;
    round(decimals: i32) -> Self = round;
    conjugate() -> Self = conjugate;
    real() -> Self = real;
    imag() -> Self = imag;
    power(exponent: &Self) -> Self = power;
    floor_divide(other: &Self) -> Self = floor_divide;
    maximum(other: &Self) -> Self = maximum;
    minimum(other: &Self) -> Self = minimum;
    equal(other: &Self) -> Self = equal;
    not_equal(other: &Self) -> Self = not_equal;
    less(other: &Self) -> Self = less;
    less_equal(other: &Self) -> Self = less_equal;
    greater(other: &Self) -> Self = greater;
    greater_equal(other: &Self) -> Self = greater_equal;
    logical_and(other: &Self) -> Self = logical_and;
    logical_or(other: &Self) -> Self = logical_or;
    logical_not() -> Self = logical_not;
    sum() -> Self = sum;
    sum_axis(axis: i32, keepdims: bool) -> Self = sum_axis;
    prod() -> Self = prod;
    prod_axis(axis: i32, keepdims: bool) -> Self = prod_axis;
    mean() -> Self = mean;
    mean_axis(axis: i32, keepdims: bool) -> Self = mean_axis;
    var(ddof: i32) -> Self = var;
    std(ddof: i32) -> Self = std;
    max() -> Self = max;
    max_axis(axis: i32, keepdims: bool) -> Self = max_axis;
    min() -> Self = min;
    min_axis(axis: i32, keepdims: bool) -> Self = min_axis;
    argmax() -> Self = argmax;
    argmax_axis(axis: i32, keepdims: bool) -> Self = argmax_axis;
    argmin() -> Self = argmin;
    argmin_axis(axis: i32, keepdims: bool) -> Self = argmin_axis;
    all() -> Self = all;
    all_axis(axis: i32, keepdims: bool) -> Self = all_axis;
    any() -> Self = any;
    any_axis(axis: i32, keepdims: bool) -> Self = any_axis;
    logsumexp() -> Self = logsumexp;
    softmax(axis: i32, precise: bool) -> Self = softmax;
    cumsum_axis(axis: i32, scan: Scan) -> Self = cumsum_axis;
    cumprod_axis(axis: i32, scan: Scan) -> Self = cumprod_axis;
}

impl Array {
    /// See [`ops::reshape`].
    ///
    /// # Errors
    /// As [`ops::reshape`].
    pub fn reshape<'s>(&self, shape: impl IntoShape<'s>) -> Result<Self> {
        ops::reshape(self, shape)
    }

    /// See [`ops::broadcast_to`].
    ///
    /// # Errors
    /// As [`ops::broadcast_to`].
    pub fn broadcast_to<'s>(&self, shape: impl IntoShape<'s>) -> Result<Self> {
        ops::broadcast_to(self, shape)
    }
}
