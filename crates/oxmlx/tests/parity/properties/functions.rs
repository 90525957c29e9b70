//! The functions of one and two arrays that properties go through, and where they are defined and smooth.

use oxmlx::ops::{self, Scan};
use oxmlx::{Array, Dtype, Result};

pub(super) type Unary = fn(&Array) -> Result<Array>;
pub(super) type Binary = fn(&Array, &Array) -> Result<Array>;

/// The lowest and the highest value that a function is given.
pub(super) type Bounds = (f64, f64);

/// Element by element: the value at a place depends on the input there only.
pub(super) const UNARY: &[(&str, Unary, Bounds)] = &[
    ("abs", ops::abs, (-2.0, 2.0)),
    ("positive", ops::positive, (-2.0, 2.0)),
    ("negative", ops::negative, (-2.0, 2.0)),
    ("sign", ops::sign, (-2.0, 2.0)),
    ("square", ops::square, (-2.0, 2.0)),
    ("reciprocal", ops::reciprocal, (0.5, 3.0)),
    ("floor", ops::floor, (0.1, 0.9)),
    ("ceil", ops::ceil, (0.1, 0.9)),
    ("trunc", ops::trunc, (0.1, 0.9)),
    ("round", |a| ops::round(a, 0), (0.6, 1.4)),
    ("sqrt", ops::sqrt, (0.5, 4.0)),
    ("rsqrt", ops::rsqrt, (0.5, 4.0)),
    ("exp", ops::exp, (-2.0, 2.0)),
    ("expm1", ops::expm1, (-2.0, 2.0)),
    ("log", ops::log, (0.5, 4.0)),
    ("log2", ops::log2, (0.5, 4.0)),
    ("log10", ops::log10, (0.5, 4.0)),
    ("log1p", ops::log1p, (-0.5, 4.0)),
    ("sin", ops::sin, (-3.0, 3.0)),
    ("cos", ops::cos, (-3.0, 3.0)),
    ("tan", ops::tan, (-1.2, 1.2)),
    ("arcsin", ops::arcsin, (-0.9, 0.9)),
    ("arccos", ops::arccos, (-0.9, 0.9)),
    ("arctan", ops::arctan, (-3.0, 3.0)),
    ("sinh", ops::sinh, (-2.0, 2.0)),
    ("cosh", ops::cosh, (-2.0, 2.0)),
    ("tanh", ops::tanh, (-2.0, 2.0)),
    ("arcsinh", ops::arcsinh, (-3.0, 3.0)),
    ("arccosh", ops::arccosh, (1.2, 4.0)),
    ("arctanh", ops::arctanh, (-0.9, 0.9)),
    ("sigmoid", ops::sigmoid, (-3.0, 3.0)),
    ("erf", ops::erf, (-2.0, 2.0)),
    ("erfinv", ops::erfinv, (-0.8, 0.8)),
    ("degrees", ops::degrees, (-3.0, 3.0)),
    ("radians", ops::radians, (-180.0, 180.0)),
    ("nan_to_num", |a| ops::nan_to_num(a, 0.0, None, None), (-2.0, 2.0)),
    ("clip", |a| ops::clip(a, Some(&like(a, -0.995)?), Some(&like(a, 0.995)?)), (-2.0, 2.0)),
];

/// Of a vector: the value at a place depends on the others.
pub(super) const OF_VECTORS: &[(&str, Unary, Bounds)] = &[
    ("sum", ops::sum, (-2.0, 2.0)),
    ("prod", ops::prod, (0.5, 2.0)),
    ("mean", ops::mean, (-2.0, 2.0)),
    ("median", ops::median, (-2.0, 2.0)),
    ("max", ops::max, (-2.0, 2.0)),
    ("min", ops::min, (-2.0, 2.0)),
    ("var", |a| ops::var(a, 1), (-2.0, 2.0)),
    ("std", |a| ops::std(a, 0), (-2.0, 2.0)),
    ("logsumexp", ops::logsumexp, (-2.0, 2.0)),
    ("softmax", |a| ops::softmax(a, -1, false), (-2.0, 2.0)),
    ("cumsum", |a| ops::cumsum_axis(a, -1, Scan::new()), (-2.0, 2.0)),
    ("cumprod", |a| ops::cumprod_axis(a, -1, Scan::new()), (0.5, 2.0)),
    ("cummax", |a| ops::cummax_axis(a, -1, Scan::new()), (-2.0, 2.0)),
    ("cummin", |a| ops::cummin_axis(a, -1, Scan::new().reverse()), (-2.0, 2.0)),
    ("logcumsumexp", |a| ops::logcumsumexp_axis(a, -1, Scan::new()), (-2.0, 2.0)),
    ("sort", |a| ops::sort_axis(a, -1), (-2.0, 2.0)),
    ("diff", |a| ops::diff(a, 1, -1), (-2.0, 2.0)),
    ("roll", |a| ops::roll_axis(a, 1, -1), (-2.0, 2.0)),
    ("flip", |a| ops::flip(a, -1), (-2.0, 2.0)),
    ("repeat", |a| ops::repeat_axis(a, 2, -1), (-2.0, 2.0)),
    ("tile", |a| ops::tile(a, &[2]), (-2.0, 2.0)),
    ("pad", |a| ops::pad(a, &[(1, 2)], None, ops::PadMode::Constant), (-2.0, 2.0)),
    ("diag", |a| ops::diag(a, 1), (-2.0, 2.0)),
    ("take", |a| ops::take(a, &Array::vector(&[1i32, 0, 1])?, 0), (-2.0, 2.0)),
    ("slice", |a| ops::slice(a, &[3], &[0], &[-1]), (-2.0, 2.0)),
];

/// Of two arrays that broadcast. The second has bounds of its own.
pub(super) const BINARY: &[(&str, Binary, Bounds, Bounds)] = &[
    ("add", ops::add, (-2.0, 2.0), (-2.0, 2.0)),
    ("subtract", ops::subtract, (-2.0, 2.0), (-2.0, 2.0)),
    ("multiply", ops::multiply, (-2.0, 2.0), (-2.0, 2.0)),
    ("divide", ops::divide, (-2.0, 2.0), (0.5, 2.0)),
    ("power", ops::power, (0.5, 2.0), (-2.0, 2.0)),
    ("maximum", ops::maximum, (-2.0, 2.0), (-2.0, 2.0)),
    ("minimum", ops::minimum, (-2.0, 2.0), (-2.0, 2.0)),
    ("arctan2", ops::arctan2, (0.5, 2.0), (-2.0, 2.0)),
    ("logaddexp", ops::logaddexp, (-2.0, 2.0), (-2.0, 2.0)),
    ("remainder", ops::remainder, (0.1, 0.9), (1.1, 2.0)),
    ("where_", |a, b| ops::where_(&ops::less(a, b)?, a, b), (-2.0, 2.0), (-2.0, 2.0)),
];

/// Of two vectors of four.
pub(super) const PRODUCTS: &[(&str, Binary)] = &[
    ("matmul", ops::matmul),
    ("inner", ops::inner),
    ("outer", ops::outer),
    ("kron", ops::kron),
    ("vecdot", |a, b| ops::vecdot(a, b, -1)),
    ("tensordot", |a, b| ops::tensordot(a, b, 0)),
    ("addmm", |a, b| ops::addmm(&ops::sum(a)?, &ops::reshape(a, (2, 2))?, &ops::reshape(b, (2, 2))?, 0.5, 2.0)),
    ("concatenate", |a, b| ops::concatenate(&[a.clone(), b.clone()], 0)),
    ("stack", |a, b| ops::stack(&[a.clone(), b.clone()], -1)),
    ("slice_update", |a, b| ops::slice_update(a, &ops::slice(b, &[0], &[2], &[1])?, &[1], &[3], &[1])),
    ("put_along_axis", |a, b| ops::put_along_axis(a, &Array::vector(&[2i32])?, &ops::slice(b, &[0], &[1], &[1])?, 0)),
    ("scatter_add_axis", |a, b| ops::scatter_add_axis(a, &Array::vector(&[2i32, 2, 0, 1])?, b, 0)),
];

/// A constant of the array's dtype.
fn like(a: &Array, value: f64) -> Result<Array> {
    // A GPU has no float64 to begin with.
    if a.dtype() == Dtype::Float64 { Array::scalar(value) } else { Array::scalar(value as f32)?.astype(a.dtype()) }
}
