//! Compiled functions against the same functions run as they are.

use oxmlx::{Array, Result, ops, transforms};
use proptest::prelude::*;

use super::few;
use super::functions::{BINARY, OF_VECTORS, PRODUCTS, UNARY};

/// One step of a random function: which operation, and which two of the values so far.
type Step = (usize, usize, usize);

/// Runs the steps. All values keep the shapes of the inputs: operations that could leave the domain of the next are bounded by `tanh`.
fn run(steps: &[Step], inputs: &[Array]) -> Result<Vec<Array>> {
    let mut values = inputs.to_vec();
    for &(operation, first, second) in steps {
        let (a, b) = (values[first % values.len()].clone(), values[second % values.len()].clone());
        values.push(match operation % 9 {
            0 => ops::add(&a, &b)?,
            1 => ops::multiply(&a, &b)?,
            2 => ops::tanh(&ops::subtract(&a, &b)?)?,
            3 => ops::sqrt(&ops::abs(&a)?)?,
            4 => ops::where_(&ops::less(&a, &b)?, &ops::negative(&a)?, &b)?,
            5 => ops::maximum(&ops::sin(&a)?, &b)?,
            6 => ops::softmax(&ops::tanh(&a)?, -1, true)?,
            7 => ops::divide(&a, &ops::add(&ops::square(&b)?, &Array::scalar(1.5f32)?)?)?,
            _ => ops::subtract(&a, &ops::mean_axis(&b, -1, true)?)?,
        });
    }
    Ok(values.split_off(inputs.len().max(values.len() - 3)))
}

fn assert_same(name: &str, found: &[Array], wanted: &[Array]) {
    assert_eq!(found.len(), wanted.len(), "{name}");
    for (a, b) in found.iter().zip(wanted) {
        assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()), "{name}");
        let near = ops::allclose(a, b, ops::Tolerance::new(1e-5, 1e-5).equal_nan(true)).unwrap();
        assert!(near.item::<bool>().unwrap(), "{name}: {a} and {b}");
    }
}

fn single(seed: u64, shape: &[i32], bounds: (f64, f64)) -> Array {
    super::single(seed, shape, bounds, 0.0)
}

proptest! {
    #![proptest_config(few(24))]

    #[test]
    fn a_compiled_random_function_gives_what_it_gives_uncompiled(
        steps in prop::collection::vec((0usize..9, 0usize..64, 0usize..64), 1..24),
        seed: u64,
    ) {
        let (plain, shapeless) = (steps.clone(), steps.clone());
        let compiled = transforms::compile(move |x| run(&plain, x)).unwrap();
        let shapeless = transforms::compile_shapeless(move |x| run(&shapeless, x)).unwrap();
        for (turn, shape) in [(0, [2, 3]), (1, [2, 3]), (2, [4, 1])] {
            let inputs = [single(seed ^ turn, &shape, (-2.0, 2.0)), single(!seed ^ turn, &shape, (-2.0, 2.0))];
            let wanted = run(&steps, &inputs).unwrap();
            assert_same("compiled", &compiled.call(&inputs).unwrap(), &wanted);
            assert_same("shapeless", &shapeless.call(&inputs).unwrap(), &wanted);
        }
    }
}

#[test]
fn every_compiled_function_gives_what_it_gives_uncompiled() {
    for (name, f, bounds) in UNARY.iter().chain(OF_VECTORS) {
        let compiled = transforms::compile(move |x| Ok(vec![f(&x[0])?])).unwrap();
        for seed in [3, 4] {
            let x = single(seed, &[4], *bounds);
            assert_same(name, &compiled.call(std::slice::from_ref(&x)).unwrap(), &[f(&x).unwrap()]);
        }
    }
    let plain = PRODUCTS.iter().map(|&(name, f)| (name, f, (-2.0, 2.0), (-2.0, 2.0)));
    for (name, f, left, right) in BINARY.iter().copied().chain(plain) {
        let compiled = transforms::compile(move |x| Ok(vec![f(&x[0], &x[1])?])).unwrap();
        for seed in [5, 6] {
            let (a, b) = (single(seed, &[4], left), single(seed + 7, &[4], right));
            assert_same(name, &compiled.call(&[a.clone(), b.clone()]).unwrap(), &[f(&a, &b).unwrap()]);
        }
    }
}
