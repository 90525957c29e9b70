//! Shapes, views, joining and splitting.

use oxmlx::ops::{self, PadMode};

use crate::table::{Outputs, Run, check, table};

pub(crate) fn pad_mode(name: &str) -> PadMode {
    match name {
        "constant" => PadMode::Constant,
        "edge" => PadMode::Edge,
        "reflect" => PadMode::Reflect,
        "symmetric" => PadMode::Symmetric,
        other => panic!("no mode {other}"),
    }
}

const TABLE: &[(&str, Run)] = table! {
    ops::reshape(a, is); ops::flatten(a, i, i); ops::unflatten(a, i, is);
    ops::transpose(a, is); ops::transpose_all(a); ops::matrix_transpose(a); ops::swapaxes(a, i, i); ops::moveaxis(a, i, i);
    ops::expand_dims(a, i); ops::expand_dims_axes(a, is); ops::squeeze(a, i); ops::squeeze_axes(a, is); ops::squeeze_all(a);
    ops::flip(a, i); ops::flip_axes(a, is); ops::flip_all(a); ops::broadcast_to(a, is); ops::broadcast_arrays(l);
    ops::atleast_1d(a); ops::atleast_1d_each(l); ops::atleast_2d(a); ops::atleast_2d_each(l); ops::atleast_3d(a); ops::atleast_3d_each(l);
    ops::concatenate(l, i); ops::stack(l, i); ops::split(a, i, i); ops::split_at(a, is, i); ops::unstack(a, i);
    ops::repeat(a, i); ops::repeat_axis(a, i, i); ops::tile(a, is);
    ops::roll(a, i); ops::roll_axis(a, i, i); ops::roll_axes(a, is, is);
    => "ops::pad" => |c| ops::pad(&c.array(), &c.pairs(), c.optional_array().as_ref(), pad_mode(&c.text())).outputs();
    => "ops::pad_axes" => |c| {
        ops::pad_axes(&c.array(), &c.ints(), &c.pairs(), c.optional_array().as_ref(), pad_mode(&c.text())).outputs()
    };
};

#[test]
fn operations_on_shapes_give_the_values_of_python_mlx() {
    check("shape", TABLE);
}
