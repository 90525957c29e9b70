//! Reductions, running reductions, sorting.

use oxmlx::ops::{self, Scan, Side, Unique};
use oxmlx::{Array, Result};

use crate::fixture::Case;
use crate::table::{Outputs, Run, check, table};

/// Reverse, inclusive, dtype.
fn scan(c: &mut Case) -> Scan {
    let mut scan = Scan::new();
    if c.flag() {
        scan = scan.reverse();
    }
    if !c.flag() {
        scan = scan.exclusive();
    }
    c.optional_dtype().map_or(scan, |dtype| scan.dtype(dtype))
}

/// The parts below and above the place and the value at it: the order inside the parts is open.
fn parts(x: &Array, kth: i32, axis: i32, made: &Array) -> Result<Vec<Array>> {
    let length = x.dim(axis).unwrap();
    let k = kth.rem_euclid(length);
    let halves = ops::split_at(made, &[k], axis)?;
    let at = ops::take(made, &Array::vector(&[k])?, axis)?;
    Ok(vec![ops::sort_axis(&halves[0], axis)?, ops::sort_axis(&halves[1], axis)?, at])
}

fn partition(c: &mut Case, indices: bool) -> Result<Vec<Array>> {
    let (x, k, axis) = (c.array(), c.int(), c.int());
    if indices {
        let made = ops::take_along_axis(&x, &ops::argpartition_axis(&x, k, axis)?, axis)?;
        return parts(&x, k, axis, &made);
    }
    parts(&x, k, axis, &ops::partition_axis(&x, k, axis)?)
}

fn partition_flat(c: &mut Case, indices: bool) -> Result<Vec<Array>> {
    let (x, k) = (c.array(), c.int());
    let flat = ops::reshape(&x, -1)?;
    let made = if indices { ops::take(&flat, &ops::argpartition(&x, k)?, 0)? } else { ops::partition(&x, k)? };
    parts(&flat, k, 0, &made)
}

fn side(c: &mut Case) -> Side {
    if c.text() == "left" { Side::Left } else { Side::Right }
}

const TABLE: &[(&str, Run)] = table! {
    ops::sum(a); ops::sum_axis(a, i, b); ops::sum_axes(a, is, b); ops::prod(a); ops::prod_axis(a, i, b); ops::prod_axes(a, is, b);
    ops::mean(a); ops::mean_axis(a, i, b); ops::mean_axes(a, is, b); ops::median(a); ops::median_axis(a, i, b); ops::median_axes(a, is, b);
    ops::max(a); ops::max_axis(a, i, b); ops::max_axes(a, is, b); ops::min(a); ops::min_axis(a, i, b); ops::min_axes(a, is, b);
    ops::all(a); ops::all_axis(a, i, b); ops::all_axes(a, is, b); ops::any(a); ops::any_axis(a, i, b); ops::any_axes(a, is, b);
    ops::count_nonzero(a); ops::count_nonzero_axis(a, i, b); ops::count_nonzero_axes(a, is, b);
    ops::logsumexp(a); ops::logsumexp_axis(a, i, b); ops::logsumexp_axes(a, is, b);
    ops::argmax(a); ops::argmax_axis(a, i, b); ops::argmin(a); ops::argmin_axis(a, i, b);
    ops::minmax(a); ops::minmax_axis(a, i, b); ops::minmax_axes(a, is, b);
    ops::var(a, i); ops::var_axis(a, i, b, i); ops::var_axes(a, is, b, i);
    ops::std(a, i); ops::std_axis(a, i, b, i); ops::std_axes(a, is, b, i);
    ops::number_of_elements(a, is, b, d); ops::diff(a, i, i);
    ops::sort(a); ops::sort_axis(a, i); ops::argsort(a); ops::argsort_axis(a, i);
    ops::unique_values(a, i, oa);
    => "ops::cumsum" => |c| ops::cumsum(&c.array(), scan(c)).outputs();
    => "ops::cumsum_axis" => |c| ops::cumsum_axis(&c.array(), c.int(), scan(c)).outputs();
    => "ops::cumprod" => |c| ops::cumprod(&c.array(), scan(c)).outputs();
    => "ops::cumprod_axis" => |c| ops::cumprod_axis(&c.array(), c.int(), scan(c)).outputs();
    => "ops::cummax" => |c| ops::cummax(&c.array(), scan(c)).outputs();
    => "ops::cummax_axis" => |c| ops::cummax_axis(&c.array(), c.int(), scan(c)).outputs();
    => "ops::cummin" => |c| ops::cummin(&c.array(), scan(c)).outputs();
    => "ops::cummin_axis" => |c| ops::cummin_axis(&c.array(), c.int(), scan(c)).outputs();
    => "ops::logcumsumexp" => |c| ops::logcumsumexp(&c.array(), scan(c)).outputs();
    => "ops::logcumsumexp_axis" => |c| ops::logcumsumexp_axis(&c.array(), c.int(), scan(c)).outputs();
    => "ops::partition" => |c| partition_flat(c, false);
    => "ops::partition_axis" => |c| partition(c, false);
    => "ops::argpartition" => |c| partition_flat(c, true);
    => "ops::argpartition_axis" => |c| partition(c, true);
    => "ops::topk" => |c| ops::sort(&ops::topk(&c.array(), c.int())?).outputs();
    => "ops::topk_axis" => |c| {
        let (x, k, axis) = (c.array(), c.int(), c.int());
        ops::sort_axis(&ops::topk_axis(&x, k, axis)?, axis).outputs()
    };
    => "ops::searchsorted" => |c| ops::searchsorted(&c.array(), &c.array(), side(c)).outputs();
    => "ops::unique" => |c| {
        let Unique { values, index, inverse, counts } = ops::unique(&c.array(), c.int(), c.optional_array().as_ref())?;
        Ok(vec![values, index, inverse, counts])
    };
};

#[test]
fn reductions_and_sorting_give_the_values_of_python_mlx() {
    check("reduce", TABLE);
}
