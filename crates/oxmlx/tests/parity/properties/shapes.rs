//! Shape algebra: what reshaping, moving, joining and reducing do to places, against ndarray.

use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn};
use oxmlx::{Array, ops, shape};
use proptest::prelude::*;

use super::few;

/// 0, 1, 2 ... in a shape, here and in ndarray.
fn counted(dims: &[i32]) -> (Array, ArrayD<i32>) {
    let count = dims.iter().product::<i32>();
    let values: Vec<i32> = (0..count).collect();
    let place: Vec<usize> = dims.iter().map(|&n| n as usize).collect();
    (Array::from_slice(&values, dims).unwrap(), ArrayD::from_shape_vec(IxDyn(&place), values).unwrap())
}

fn assert_same<'a>(found: &Array, wanted: impl Into<ArrayViewD<'a, i32>>) {
    let wanted = wanted.into();
    let shape: Vec<i32> = wanted.shape().iter().map(|&n| n as i32).collect();
    assert_eq!(found.shape(), shape);
    assert_eq!(found.to_vec::<i32>().unwrap(), wanted.iter().copied().collect::<Vec<_>>());
}

fn dims() -> impl Strategy<Value = Vec<i32>> {
    prop::collection::vec(0i32..4, 1..4)
}

proptest! {
    #![proptest_config(few(64))]

    #[test]
    fn transposing_moves_every_element_to_its_place(dims in dims(), order in Just(()).prop_perturb(|(), mut rng| rng.next_u64())) {
        let (a, n) = counted(&dims);
        let mut axes: Vec<usize> = (0..dims.len()).collect();
        axes.rotate_left(order as usize % dims.len());
        if order % 2 == 0 { axes.reverse(); }
        let axes_here: Vec<i32> = axes.iter().map(|&axis| if order % 3 == 0 { axis as i32 - dims.len() as i32 } else { axis as i32 }).collect();
        let moved = ops::transpose(&a, &axes_here).unwrap();
        assert_same(&moved, &n.permuted_axes(IxDyn(&axes)));
        let mut back = vec![0; axes.len()];
        axes.iter().enumerate().for_each(|(to, &from)| back[from] = to as i32);
        assert_eq!(ops::transpose(&moved, &back).unwrap().to_vec::<i32>().unwrap(), a.to_vec::<i32>().unwrap());
    }

    #[test]
    fn reshaping_keeps_row_major_order_of_a_transposed_array_too(dims in dims()) {
        let (a, n) = counted(&dims);
        let flat: Vec<i32> = n.t().iter().copied().collect();
        let turned = ops::transpose_all(&a).unwrap();
        let flattened = ops::reshape(&turned, flat.len() as i32).unwrap();
        assert_eq!(flattened.to_vec::<i32>().unwrap(), flat);
        assert_eq!(ops::flatten(&turned, 0, -1).unwrap().to_vec::<i32>().unwrap(), flat);
    }

    #[test]
    fn shapes_broadcast_as_in_ndarray(a in dims(), b in dims()) {
        let both = |x: &[i32]| {
            let place: Vec<usize> = x.iter().map(|&n| n as usize).collect();
            ArrayD::<i32>::zeros(IxDyn(&place))
        };
        let (left, right) = (both(&a), both(&b));
        // ndarray broadcasts one array to a shape: the common one is the larger of each pair that fits.
        let ndim = a.len().max(b.len());
        let at = |x: &[i32], i: usize| (i + x.len()).checked_sub(ndim).map_or(1, |i| x[i]);
        let common: Vec<usize> = (0..ndim).map(|i| (if at(&a, i) == 1 { at(&b, i) } else { at(&a, i) }) as usize).collect();
        let fits = left.broadcast(IxDyn(&common)).is_some() && right.broadcast(IxDyn(&common)).is_some();
        match shape::broadcast_shapes(&a, &b) {
            Ok(found) => {
                prop_assert!(fits);
                prop_assert_eq!(&found, &common.iter().map(|&n| n as i32).collect::<Vec<_>>());
                let sum = ops::add(&counted(&a).0, &counted(&b).0).unwrap();
                prop_assert_eq!(sum.shape(), &found[..]);
                let wanted = &counted(&a).1.broadcast(IxDyn(&common)).unwrap() + &counted(&b).1.broadcast(IxDyn(&common)).unwrap();
                assert_same(&sum, &wanted);
            }
            Err(_) => prop_assert!(!fits),
        }
    }

    #[test]
    fn what_is_split_joins_again(dims in dims(), axis in 0usize..3, cut in 0i32..4) {
        let (a, n) = counted(&dims);
        let axis = axis % dims.len();
        let cut = cut.min(dims[axis]);
        let parts = ops::split_at(&a, &[cut], axis as i32).unwrap();
        let (low, high) = n.view().split_at(Axis(axis), cut as usize);
        assert_same(&parts[0], low);
        assert_same(&parts[1], high);
        assert_same(&ops::concatenate(&parts, axis as i32 - dims.len() as i32).unwrap(), &n);
    }

    #[test]
    fn sums_along_axes_are_those_of_ndarray(dims in dims(), axis in 0usize..3, keep: bool) {
        let (a, n) = counted(&dims);
        let axis = axis % dims.len();
        let found = ops::sum_axis(&a, axis as i32, keep).unwrap();
        let wanted = n.sum_axis(Axis(axis));
        assert_same(&found, &if keep { wanted.insert_axis(Axis(axis)) } else { wanted });
        prop_assert_eq!(ops::sum(&a).unwrap().item::<i32>().unwrap(), n.sum());
    }

    #[test]
    fn axes_come_and_go(dims in dims(), axis in 0usize..4) {
        let (a, n) = counted(&dims);
        let axis = axis % (dims.len() + 1);
        let wider = ops::expand_dims(&a, axis as i32).unwrap();
        assert_same(&wider, &n.clone().insert_axis(Axis(axis)));
        assert_same(&ops::squeeze(&wider, axis as i32).unwrap(), &n);
    }
}
