//! Every operation that can fail, called with a wrong shape, dtype, axis, index or group: the error's kind and the operation it names.

use std::collections::BTreeSet;

use oxmlx::quantize::{self, Affine, Quantized};
use oxmlx::{Array, Dtype, Error, ErrorKind, Result, einsum, ops, random};

use crate::{complete, fixture};

/// Zeros, by dtype and shape.
fn zeros(dtype: Dtype, shape: &[i32]) -> Array {
    ops::zeros(shape, dtype).unwrap()
}

fn f(shape: &[i32]) -> Array {
    zeros(Dtype::Float32, shape)
}

fn i(shape: &[i32]) -> Array {
    zeros(Dtype::Int32, shape)
}

fn c(shape: &[i32]) -> Array {
    zeros(Dtype::Complex64, shape)
}

/// Zeros of the processor's own dtype, made there.
fn doubles(shape: &[i32]) -> Array {
    crate::device::on_cpu(|| zeros(Dtype::Float64, shape))
}

fn key() -> Array {
    random::key(0).unwrap()
}

fn affine() -> Affine {
    Affine::new(32, 4).unwrap()
}

fn weights() -> Quantized {
    quantize::quantize(&f(&[4, 32]), affine()).unwrap()
}

/// A quantized matrix whose words and scales do not fit each other.
fn broken() -> Quantized {
    Quantized { scales: f(&[4, 3]), ..weights() }
}

/// An error that comes when the node is built, or when it is evaluated.
trait Fails {
    fn error(self) -> Option<Error>;
}

impl Fails for Result<Array> {
    fn error(self) -> Option<Error> {
        self.and_then(|a| a.eval()).err()
    }
}

macro_rules! fails {
    ($($t:ty),+) => {$(
        impl Fails for Result<$t> {
            fn error(self) -> Option<Error> {
                self.err()
            }
        }
    )+};
}

fails!(Vec<Array>, (Array, Array), (Array, Array, Array), ops::Unique, einsum::Contraction, Quantized);

/// The function, the kind of its error, the operation that the error names, and the call.
type Row = (&'static str, ErrorKind, &'static str, fn() -> Option<Error>);

/// `path(arguments) => kind, "operation"`: what is called and what it must say.
macro_rules! rows {
    ($($module:ident::$name:ident($($argument:expr),* $(,)?) => $kind:ident, $op:literal;)+) => {
        vec![$((
            concat!(stringify!($module), "::", stringify!($name)),
            $kind,
            $op,
            || crate::errors::Fails::error($module::$name($($argument),*)),
        )),+]
    };
}

mod rows;

/// What takes any array, or any number: there is nothing to be wrong.
#[rustfmt::skip]
const NEVER: &[&str] = &[
    "ops::abs", "ops::positive", "ops::square", "ops::negative", "ops::sign", "ops::reciprocal", "ops::sqrt",
    "ops::rsqrt", "ops::log", "ops::log2", "ops::log10", "ops::log1p", "ops::exp", "ops::sin", "ops::cos", "ops::tan",
    "ops::sinh", "ops::cosh", "ops::tanh", "ops::arctan", "ops::arcsinh", "ops::degrees", "ops::radians",
    "ops::arcsin", "ops::arccos", "ops::arctanh", "ops::arccosh", "ops::conjugate", "ops::real", "ops::imag",
    "ops::stop_gradient", "ops::logical_not", "ops::isnan", "ops::isinf", "ops::isfinite", "ops::isposinf",
    "ops::isneginf", "ops::round", "ops::softmax_all", "ops::meshgrid", "ops::depends", "ops::outer", "ops::kron",
    "ops::zeros_like", "ops::ones_like", "ops::astype", "ops::contiguous", "ops::copy", "ops::array_equal",
    "ops::sum", "ops::prod", "ops::mean", "ops::all", "ops::any", "ops::count_nonzero", "ops::var", "ops::std",
    "ops::cumsum", "ops::cumprod", "ops::cummax", "ops::cummin", "ops::logcumsumexp", "ops::sort", "ops::argsort",
    "ops::transpose_all", "ops::squeeze_all", "ops::flip_all", "ops::atleast_1d", "ops::atleast_1d_each",
    "ops::atleast_2d", "ops::atleast_2d_each", "ops::atleast_3d", "ops::atleast_3d_each", "ops::roll", "random::key",
    "random::seed",
];

#[test]
fn every_operation_names_what_is_wrong_by_kind_and_itself() {
    let mut wrong = Vec::new();
    let mut tried = BTreeSet::new();
    for (name, kind, op, call) in rows::all() {
        tried.insert(name.to_owned());
        match call() {
            None => wrong.push(format!("{name}: no error, not {kind:?}")),
            Some(error) if (error.kind(), error.op()) != (kind, op) => {
                wrong.push(format!("{name}: {:?} of {:?}, not {kind:?} of {op:?} ({error})", error.kind(), error.op()));
            }
            Some(error) => assert!(!error.message().is_empty(), "{name}"),
        }
    }
    let never: BTreeSet<String> = NEVER.iter().map(|&name| name.to_owned()).collect();
    for group in complete::FAMILIES.into_iter().flat_map(fixture::family) {
        // The cases have the same function twice where it takes one of two kinds of arguments.
        if !tried.contains(&group.op) && !never.contains(&group.op) && group.op != "fast::rope_freqs" {
            wrong.push(format!("{} has no row", group.op));
        }
    }
    wrong.extend(never.intersection(&tried).map(|name| format!("{name} is said never to fail")));
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}
