//! Reading and writing parts of arrays.

use oxmlx::ops;

use crate::table::{Run, check, table};

const TABLE: &[(&str, Run)] = table! {
    ops::take(a, a, i); ops::take_all(a, a); ops::take_index(a, i, i); ops::take_along_axis(a, a, i); ops::gather(a, l, is, is);
    ops::put_along_axis(a, a, a, i); ops::scatter_add_axis(a, a, a, i);
    ops::scatter(a, l, a, is); ops::scatter_add(a, l, a, is); ops::scatter_prod(a, l, a, is);
    ops::scatter_max(a, l, a, is); ops::scatter_min(a, l, a, is); ops::masked_scatter(a, a, a);
    ops::slice(a, is, is, is); ops::slice_dynamic(a, a, is, is);
    ops::slice_update(a, a, is, is, is); ops::slice_update_add(a, a, is, is, is); ops::slice_update_prod(a, a, is, is, is);
    ops::slice_update_max(a, a, is, is, is); ops::slice_update_min(a, a, is, is, is); ops::slice_update_dynamic(a, a, a, is);
};

#[test]
fn indexing_gives_the_values_of_python_mlx() {
    check("index", TABLE);
}
