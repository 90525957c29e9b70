//! Products of matrices and tensors, convolutions, einsum.

use oxmlx::ops::{self, BlockMasks, Conv, ConvGeneral};
use oxmlx::{Array, einsum};

use crate::fixture::Case;
use crate::table::{Outputs, Run, check, table};

/// Stride, padding, dilation, output padding, groups.
fn conv<const N: usize>(c: &mut Case) -> Conv<N> {
    Conv::new().stride(c.sizes()).padding(c.sizes()).dilation(c.sizes()).output_padding(c.sizes()).groups(c.int())
}

const PRODUCTS: &[(&str, Run)] = table! {
    ops::matmul(a, a); ops::addmm(a, a, a, x32, x32); ops::outer(a, a); ops::inner(a, a); ops::kron(a, a); ops::vecdot(a, a, i);
    ops::tensordot(a, a, i); ops::tensordot_axes(a, a, is, is); ops::diagonal(a, i, i, i); ops::trace(a, i, i, i, od);
    ops::gather_mm(a, a, oa, oa, b); ops::segmented_mm(a, a, a); einsum::einsum(s, l);
    => "ops::block_masked_mm" => |c| {
        let (a, b, size) = (c.array(), c.array(), c.int());
        let (out, lhs, rhs) = (c.optional_array(), c.optional_array(), c.optional_array());
        let masks = BlockMasks { out: out.as_ref(), lhs: lhs.as_ref(), rhs: rhs.as_ref() };
        ops::block_masked_mm(&a, &b, size, masks).outputs()
    };
    => "einsum::einsum_path" => |c| {
        let contraction = einsum::einsum_path(&c.text(), &c.arrays())?;
        contraction.steps.iter().map(|step| Array::vector(step)).collect()
    };
};

const CONVOLUTIONS: &[(&str, Run)] = table! {
    => "ops::conv1d" => |c| ops::conv1d(&c.array(), &c.array(), conv(c)).outputs();
    => "ops::conv2d" => |c| ops::conv2d(&c.array(), &c.array(), conv(c)).outputs();
    => "ops::conv3d" => |c| ops::conv3d(&c.array(), &c.array(), conv(c)).outputs();
    => "ops::conv_transpose1d" => |c| ops::conv_transpose1d(&c.array(), &c.array(), conv(c)).outputs();
    => "ops::conv_transpose2d" => |c| ops::conv_transpose2d(&c.array(), &c.array(), conv(c)).outputs();
    => "ops::conv_transpose3d" => |c| ops::conv_transpose3d(&c.array(), &c.array(), conv(c)).outputs();
    => "ops::conv_general" => |c| {
        let (input, weight) = (c.array(), c.array());
        let settings = ConvGeneral {
            stride: c.ints(),
            padding_before: c.ints(),
            padding_after: c.ints(),
            kernel_dilation: c.ints(),
            input_dilation: c.ints(),
            groups: c.optional_int(),
            flip: c.flag(),
        };
        ops::conv_general(&input, &weight, &settings).outputs()
    };
};

#[test]
fn products_give_the_values_of_python_mlx() {
    check("matmul", PRODUCTS);
}

#[test]
fn convolutions_give_the_values_of_python_mlx() {
    check("conv", CONVOLUTIONS);
}
