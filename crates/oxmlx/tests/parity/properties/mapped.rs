//! `vmap` against a loop over the slices.

use oxmlx::{Array, ops, transforms};
use proptest::prelude::*;

use super::functions::{BINARY, OF_VECTORS, PRODUCTS, UNARY};
use super::{few, single};

fn assert_close(name: &str, found: &Array, wanted: &Array) {
    assert_eq!((found.shape(), found.dtype()), (wanted.shape(), wanted.dtype()), "{name}");
    let near = ops::allclose(found, wanted, ops::Tolerance::new(1e-5, 1e-6)).unwrap();
    assert!(near.item::<bool>().unwrap(), "{name}: {found} and {wanted}");
}

/// Mapped over `axis` of `a` it is the stack of what each slice gives.
fn one(name: &str, f: fn(&Array) -> oxmlx::Result<Array>, a: &Array, axis: i32) {
    let mapped = transforms::vmap(move |x: &[Array]| Ok(vec![f(&x[0])?]), &[Some(axis)], &[Some(0)]);
    let found = mapped(std::slice::from_ref(a)).unwrap_or_else(|e| panic!("{name}: {e}")).swap_remove(0);
    let each: Vec<Array> = ops::unstack(a, axis).unwrap().iter().map(|s| f(s).unwrap()).collect();
    assert_close(name, &found, &ops::stack(&each, 0).unwrap());
}

/// Mapped over an axis of `a`, and of `b` where `rhs` names one.
fn two(name: &str, f: fn(&Array, &Array) -> oxmlx::Result<Array>, a: &Array, b: &Array, axes: (i32, Option<i32>)) {
    let lefts = ops::unstack(a, axes.0).unwrap();
    let rights = axes.1.map_or_else(|| vec![b.clone(); lefts.len()], |axis| ops::unstack(b, axis).unwrap());
    // What gives scalars has only one place for the mapped axis.
    let out = axes.0.min(f(&lefts[0], &rights[0]).unwrap().ndim() as i32);
    let mapped = transforms::vmap(move |x: &[Array]| Ok(vec![f(&x[0], &x[1])?]), &[Some(axes.0), axes.1], &[Some(out)]);
    let found = mapped(&[a.clone(), b.clone()]).unwrap_or_else(|e| panic!("{name}: {e}")).swap_remove(0);
    let each: Vec<Array> = lefts.iter().zip(&rights).map(|(x, y)| f(x, y).unwrap()).collect();
    assert_close(name, &found, &ops::stack(&each, out).unwrap());
}

proptest! {
    #![proptest_config(few(4))]

    #[test]
    fn a_mapped_function_of_one_array_is_a_loop_over_its_slices(seed: u64, axis in -3i32..3) {
        for (name, f, bounds) in UNARY {
            one(name, *f, &single(seed, &[2, 3, 2], *bounds, 0.0), axis);
        }
        for (name, f, bounds) in OF_VECTORS {
            let shape = if axis % 2 == 0 { [3, 4] } else { [4, 3] };
            one(name, *f, &single(seed, &shape, *bounds, 0.0), axis.rem_euclid(2));
        }
    }

    #[test]
    fn a_mapped_function_of_two_arrays_is_a_loop_over_their_slices(seed: u64, axis in 0i32..2, both: bool) {
        for (name, f, left, right) in BINARY {
            let (a, b) = (single(seed, &[3, 3], *left, 0.0), single(!seed, &[3, 3], *right, 0.5));
            two(name, *f, &a, &b, (axis, both.then_some(1 - axis)));
        }
        for (name, f) in PRODUCTS {
            let shape = |axis| if axis == 0 { [2, 4] } else { [4, 2] };
            let a = single(seed, &shape(axis), (-2.0, 2.0), 0.0);
            let b = if both { single(!seed, &shape(1 - axis), (-2.0, 2.0), 0.5) } else { single(!seed, &[4], (-2.0, 2.0), 0.5) };
            two(name, *f, &a, &b, (axis, both.then_some(1 - axis)));
        }
    }
}
