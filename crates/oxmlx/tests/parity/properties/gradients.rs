//! Derivatives against differences of the function itself, in double precision.

use oxmlx::transforms;
use oxmlx::{Array, Device, ops};
use proptest::prelude::*;

use super::functions::{BINARY, OF_VECTORS, PRODUCTS, UNARY};
use super::{array, few, grid};

type Function<'a> = &'a (dyn Fn(&[Array]) -> oxmlx::Result<Array> + Send + Sync);

/// A weighted sum of what the function gives, so that every element counts differently.
fn weighted(f: Function<'_>, x: &[Array]) -> oxmlx::Result<Array> {
    let y = f(x)?;
    let weights = Array::from_slice(&grid(7, y.size(), (0.5, 1.5), 0.0), y.shape())?;
    ops::sum(&ops::multiply(&y, &weights)?)
}

/// How far a derivative may be from the difference, relative to one more than its size.
const TOLERANCE: f64 = 2e-3;

/// What MLX has no forward derivative of.
const BACKWARD_ONLY: [&str; 4] = ["cumprod", "cummax", "cummin", "diag"];

/// The gradient and the directional derivative of every input agree with central differences.
fn check(name: &str, f: Function<'_>, inputs: &[Array]) {
    // MLX computes some functions of doubles in single precision, which a smaller step would blow up.
    const H: f64 = 2e-3;
    let every: Vec<usize> = (0..inputs.len()).collect();
    let gradients = transforms::grad(|x: &[Array]| weighted(f, x), &every)(inputs).unwrap();
    let value = |x: &[Array]| weighted(f, x).unwrap().item::<f64>().unwrap();
    for (i, gradient) in gradients.iter().enumerate() {
        let found = gradient.to_vec::<f64>().unwrap();
        let at = inputs[i].to_vec::<f64>().unwrap();
        let mut along = 0.0;
        let direction = grid(11, at.len(), (-1.0, 1.0), 0.0);
        for place in 0..at.len() {
            let moved = |by: f64| {
                let (mut values, mut x) = (at.clone(), inputs.to_vec());
                values[place] += by;
                x[i] = Array::from_slice(&values, inputs[i].shape()).unwrap();
                value(&x)
            };
            let difference = (moved(H) - moved(-H)) / (2.0 * H);
            let near = (found[place] - difference).abs() <= TOLERANCE * (1.0 + difference.abs());
            assert!(near, "{name}: input {i}, element {place} at {at:?}: {} and {difference}", found[place]);
            along += difference * direction[place];
        }
        let tangents: Vec<Array> = inputs
            .iter()
            .enumerate()
            .map(|(j, x)| if i == j { Array::from_slice(&direction, x.shape()) } else { ops::zeros_like(x) }.unwrap())
            .collect();
        let (_, forward) = match transforms::jvp(|x| Ok(vec![weighted(f, x)?]), inputs, &tangents) {
            Ok(pair) => pair,
            Err(error) if BACKWARD_ONLY.contains(&name) && error.message().contains("JVP") => continue,
            Err(error) => panic!("{name}: {error}"),
        };
        let forward = forward[0].item::<f64>().unwrap();
        assert!((forward - along).abs() <= TOLERANCE * (1.0 + along.abs()), "{name}: forward {forward} and {along}");
    }
}

/// Double precision is the processor's only.
fn on_cpu() -> bool {
    Device::current().unwrap() == Device::Cpu
}

proptest! {
    #![proptest_config(few(3))]

    #[test]
    fn gradients_of_unary_functions_are_the_limit_of_differences(seed: u64) {
        // MLX has no `nan_to_num` of doubles.
        for (name, f, bounds) in UNARY.iter().filter(|(name, ..)| on_cpu() && *name != "nan_to_num") {
            check(name, &|x| f(&x[0]), &[array(seed, &[2, 2], *bounds, 0.0)]);
        }
    }

    #[test]
    fn gradients_of_functions_of_vectors_are_the_limit_of_differences(seed: u64) {
        for (name, f, bounds) in OF_VECTORS.iter().filter(|_| on_cpu()) {
            check(name, &|x| f(&x[0]), &[array(seed, &[4], *bounds, 0.0)]);
        }
    }

    #[test]
    fn gradients_of_binary_functions_are_the_limit_of_differences(seed: u64) {
        for (name, f, left, right) in BINARY.iter().filter(|_| on_cpu()) {
            for (a, b) in [(&[2, 2][..], &[2, 2][..]), (&[2, 1], &[2]), (&[], &[3])] {
                check(name, &|x| f(&x[0], &x[1]), &[array(seed, a, *left, 0.0), array(!seed, b, *right, 0.5)]);
            }
        }
        for (name, f) in PRODUCTS.iter().filter(|_| on_cpu()) {
            let (a, b) = (array(seed, &[4], (-2.0, 2.0), 0.0), array(!seed, &[4], (-2.0, 2.0), 0.5));
            check(name, &|x| f(&x[0], &x[1]), &[a, b]);
        }
    }
}
