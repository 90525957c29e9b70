//! The example of `docs/kernels.md`, through the transforms.

use oxmlx::{Array, Dtype, ops, transforms};

use super::on_cpu;
use super::reference::{array, assert_close, values};

#[path = "../../examples/own_kernel.rs"]
mod own_kernel;

fn softplus(x: f64) -> f64 {
    x.exp().ln_1p()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn of(x: &Array, f: fn(f64) -> f64) -> Vec<f64> {
    values(x).into_iter().map(f).collect()
}

#[test]
fn the_kernel_of_the_guide_has_values_and_a_gradient() {
    on_cpu(|| {
        let kernel = own_kernel::softplus().unwrap();
        let x = array(&[4, 50], Dtype::Float32, 6.0, 1);
        assert_close(&values(&kernel.apply_one(std::slice::from_ref(&x)).unwrap()), &of(&x, softplus), 1e-6, "values");
        let slope = transforms::grad(|x| ops::sum(&kernel.apply_one(x)?), &[0]);
        assert_close(&values(&slope(std::slice::from_ref(&x)).unwrap()[0]), &of(&x, sigmoid), 1e-6, "gradient");
    });
}

#[test]
fn the_kernel_of_the_guide_maps_over_a_batch_also_under_its_gradient() {
    on_cpu(|| {
        let kernel = own_kernel::softplus().unwrap();
        let x = array(&[5, 3], Dtype::Float32, 6.0, 2);
        let over_columns = transforms::vmap(|x| kernel.apply(x), &[Some(1)], &[Some(1)]);
        assert_close(&values(&over_columns(std::slice::from_ref(&x)).unwrap()[0]), &of(&x, softplus), 1e-6, "vmap");
        let slope = transforms::grad(|x| ops::sum(&kernel.apply_one(x)?), &[0]);
        let slopes = transforms::vmap(slope, &[Some(0)], &[Some(0)]);
        assert_close(&values(&slopes(std::slice::from_ref(&x)).unwrap()[0]), &of(&x, sigmoid), 1e-6, "vmap of grad");
    });
}

#[test]
fn a_compiled_function_holds_the_kernel_of_the_guide() {
    on_cpu(|| {
        let kernel = own_kernel::softplus().unwrap();
        let inner = kernel.clone();
        let slope = transforms::grad(move |x| ops::sum(&ops::square(&inner.apply_one(x)?)?), &[0]);
        let f = transforms::compile(move |x| Ok([kernel.apply(x)?, slope(x)?].concat())).unwrap();
        for seed in 0..3 {
            let x = array(&[7, 3], Dtype::Float32, 4.0, seed);
            let seen = f.call(std::slice::from_ref(&x)).unwrap();
            assert_close(&values(&seen[0]), &of(&x, softplus), 1e-6, "compiled");
            assert_close(&values(&seen[1]), &of(&x, |x| 2.0 * softplus(x) * sigmoid(x)), 2e-6, "compiled gradient");
        }
    });
}

#[test]
fn the_guide_shows_the_example_and_it_is_short() {
    let example = include_str!("../../examples/own_kernel.rs");
    let guide = include_str!("../../../../docs/kernels.md");
    let start = example.find("pub(crate) fn softplus").unwrap();
    let function = &example[start..start + example[start..].find("\n}\n").unwrap() + 3];
    assert!(function.lines().count() < 30);
    assert!(guide.contains(function), "docs/kernels.md shows another text than examples/own_kernel.rs");
}
