//! Slices, read and written, against ndarray.

use ndarray::{ArrayD, Axis, IxDyn};
use oxmlx::{Array, ops};
use proptest::prelude::*;

use super::few;

/// Start, stop and stride of each axis of a shape.
type Bounds = Vec<(i32, i32, i32)>;

/// Which indices a slice takes by Python's rules.
fn indices(n: i32, (start, stop, stride): (i32, i32, i32)) -> Vec<usize> {
    let clamp = |at: i32| {
        let at = if at < 0 { at + n } else { at };
        if stride > 0 { at.clamp(0, n) } else { at.clamp(-1, n - 1) }
    };
    let (mut at, stop) = (clamp(start), clamp(stop));
    let mut taken = Vec::new();
    while if stride > 0 { at < stop } else { at > stop } {
        taken.push(at as usize);
        at += stride;
    }
    taken
}

fn shape_and_bounds() -> impl Strategy<Value = (Vec<i32>, Bounds)> {
    let stride = prop_oneof![Just(1), Just(2), Just(3), Just(-1), Just(-2)];
    prop::collection::vec((1i32..5, -6i32..6, -6i32..6, stride), 1..4).prop_map(|axes| {
        let shape = axes.iter().map(|axis| axis.0).collect();
        (shape, axes.into_iter().map(|(_, start, stop, stride)| (start, stop, stride)).collect())
    })
}

fn counted(dims: &[i32]) -> (Array, ArrayD<i32>) {
    let values: Vec<i32> = (0..dims.iter().product()).collect();
    let place: Vec<usize> = dims.iter().map(|&n| n as usize).collect();
    (Array::from_slice(&values, dims).unwrap(), ArrayD::from_shape_vec(IxDyn(&place), values).unwrap())
}

fn columns(bounds: &Bounds) -> [Vec<i32>; 3] {
    [bounds.iter().map(|b| b.0).collect(), bounds.iter().map(|b| b.1).collect(), bounds.iter().map(|b| b.2).collect()]
}

/// ndarray's selection axis by axis.
fn select(n: &ArrayD<i32>, shape: &[i32], bounds: &Bounds) -> ArrayD<i32> {
    (0..shape.len()).fold(n.clone(), |n, axis| n.select(Axis(axis), &indices(shape[axis], bounds[axis])))
}

proptest! {
    #![proptest_config(few(128))]

    #[test]
    fn a_slice_takes_what_python_would((shape, bounds) in shape_and_bounds()) {
        let (a, n) = counted(&shape);
        let [start, stop, strides] = columns(&bounds);
        let found = ops::slice(&a, &start, &stop, &strides).unwrap();
        let wanted = select(&n, &shape, &bounds);
        prop_assert_eq!(found.shape().iter().map(|&n| n as usize).collect::<Vec<_>>(), wanted.shape());
        prop_assert_eq!(found.to_vec::<i32>().unwrap(), wanted.iter().copied().collect::<Vec<_>>());
    }

    #[test]
    fn a_written_slice_changes_what_it_takes_and_nothing_else((shape, bounds) in shape_and_bounds()) {
        let (a, mut n) = counted(&shape);
        let [start, stop, strides] = columns(&bounds);
        let taken = select(&n, &shape, &bounds);
        let update = Array::from_slice(
            &(0..taken.len() as i32).map(|i| -1 - i).collect::<Vec<_>>(),
            taken.shape().iter().map(|&n| n as i32).collect::<Vec<_>>(),
        )
        .unwrap();
        let found = ops::slice_update(&a, &update, &start, &stop, &strides).unwrap();
        // The counted values say where each taken element came from.
        let flat = n.as_slice_mut().unwrap();
        taken.iter().enumerate().for_each(|(i, &from)| flat[from as usize] = -1 - i as i32);
        prop_assert_eq!(found.to_vec::<i32>().unwrap(), n.iter().copied().collect::<Vec<_>>());
    }

    #[test]
    fn taking_along_an_axis_is_ndarrays_selection(
        shape in prop::collection::vec(1i32..5, 1..4),
        axis in 0usize..3,
        picks in prop::collection::vec(0i32..20, 0..5),
    ) {
        let (a, n) = counted(&shape);
        let axis = axis % shape.len();
        let picks: Vec<i32> = picks.iter().map(|i| i % shape[axis]).collect();
        let from_end: Vec<i32> = picks.iter().map(|i| i - shape[axis]).collect();
        let wanted = n.select(Axis(axis), &picks.iter().map(|&i| i as usize).collect::<Vec<_>>());
        for indices in [picks, from_end] {
            let found = ops::take(&a, &Array::vector(&indices).unwrap(), axis as i32).unwrap();
            prop_assert_eq!(found.shape().iter().map(|&n| n as usize).collect::<Vec<_>>(), wanted.shape());
            prop_assert_eq!(found.to_vec::<i32>().unwrap(), wanted.iter().copied().collect::<Vec<_>>());
        }
    }
}
