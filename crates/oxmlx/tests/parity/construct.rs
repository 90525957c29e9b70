//! Arrays made from nothing, conversions, copies.

use oxmlx::Array;
use oxmlx::ops::{self, Indexing};

use crate::table::{Outputs, Run, check, table};

const TABLE: &[(&str, Run)] = table! {
    ops::zeros(is, d); ops::zeros_like(a); ops::ones(is, d); ops::ones_like(a); ops::full(is, a); ops::full_like(a, a);
    ops::arange(x, x, x, d); ops::arange_i32(i, i, i); ops::linspace(x, x, i, b, d);
    ops::eye(i, i, i, d); ops::identity(i, d); ops::tri(i, i, i, d); ops::tril(a, i); ops::triu(a, i); ops::diag(a, i);
    ops::hanning(i); ops::hamming(i); ops::bartlett(i); ops::blackman(i);
    ops::astype(a, d); ops::view(a, d); ops::contiguous(a, b); ops::copy(a); ops::depends(l, l);
    => "ops::meshgrid" => |c| {
        let (arrays, sparse) = (c.arrays(), c.flag());
        ops::meshgrid(&arrays, sparse, if c.text() == "xy" { Indexing::Xy } else { Indexing::Ij })
    };
    => "ops::as_strided" => |c| {
        let (a, shape, strides, offset): (Array, _, _, _) = (c.array(), c.ints(), c.ints(), c.int());
        let strides: Vec<i64> = strides.into_iter().map(i64::from).collect();
        ops::as_strided(&a, shape, &strides, offset as usize).outputs()
    };
};

#[test]
fn constructors_and_conversions_give_the_values_of_python_mlx() {
    check("construct", TABLE);
}
