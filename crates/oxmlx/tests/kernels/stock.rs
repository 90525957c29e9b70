//! The kernels that exist in all three languages agree with f64: the Rust and CUDA bodies on the test's device, the Metal ones in the
//! emulator.

use oxmlx::kernel::{GpuLanguage, Kernel, stock};
use oxmlx::quantize::Affine;
use oxmlx::{Array, Device, Dtype, ops, transforms};

use super::device::{device, on_device};
use super::emulator::{self, Buffer};
use super::reference::{self, array, assert_close, values};

/// Of a result in this dtype: a few units in the last place.
fn eps(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::Float16 => 2e-3,
        Dtype::Bfloat16 => 1.6e-2,
        _ => 4e-6,
    }
}

const FLOATS: [Dtype; 3] = [Dtype::Float32, Dtype::Float16, Dtype::Bfloat16];

/// The kernel over these launches on the test's device and, where that is the host, in the emulator.
fn check(kernel: &Kernel, launches: &[(Vec<Array>, Vec<f64>)], eps: f64) {
    for (inputs, expected) in launches {
        let seen = kernel.apply_one(inputs).unwrap();
        assert_close(&values(&seen), expected, eps, kernel.name());
    }
    if cfg!(target_os = "linux") && device() == Device::Cpu {
        let buffers: Vec<Vec<Buffer>> = launches.iter().map(|(x, _)| x.iter().map(Buffer::of).collect()).collect();
        let results = emulator::run(kernel, &buffers, false).unwrap();
        for (outputs, (_, expected)) in results.iter().zip(launches) {
            assert_close(&outputs[0].to_f64(), expected, eps, &format!("{} in Metal", kernel.name()));
        }
    }
}

#[test]
fn silu_mul_agrees_with_f64_in_every_language() {
    on_device(|| {
        for dtype in FLOATS {
            let launch = |(shape, seed): (&[i32], u64)| {
                let (gate, up) = (array(shape, dtype, 8.0, seed), array(shape, dtype, 3.0, seed + 1));
                let expected = reference::silu_mul(&gate, &up);
                (vec![gate, up], expected)
            };
            let shapes: [&[i32]; 4] = [&[1], &[], &[3, 7], &[2, 5, 128]];
            let launches: Vec<_> = shapes.into_iter().zip(1..).map(launch).collect();
            check(&stock::silu_mul().unwrap(), &launches, eps(dtype));
        }
    });
}

#[test]
fn log_sum_exp_agrees_with_f64_in_every_language() {
    on_device(|| {
        for dtype in FLOATS {
            let launch = |(shape, seed): (&[i32], u64)| {
                let x = array(shape, dtype, 20.0, seed);
                let expected = reference::log_sum_exp(&x);
                (vec![x], expected)
            };
            let shapes: [&[i32]; 5] = [&[1], &[5, 31], &[2, 256], &[2, 3, 257], &[1, 5000]];
            let mut launches: Vec<_> = shapes.into_iter().zip(1..).map(launch).collect();
            let special =
                [f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY, 0.0, f32::NAN, 1.0, 0.0, f32::NEG_INFINITY];
            let x = Array::from_slice(&special, (4, 2)).unwrap().astype(dtype).unwrap();
            launches.push((vec![x], vec![f64::NEG_INFINITY, f64::INFINITY, f64::NAN, 0.0]));
            check(&stock::log_sum_exp().unwrap(), &launches, 4e-6);
        }
    });
}

#[test]
fn quantized_scores_agree_with_f64_in_every_language() {
    on_device(|| {
        for (affine, dtype) in [((32, 4), FLOATS[0]), ((64, 8), FLOATS[1]), ((64, 4), FLOATS[2]), ((128, 2), FLOATS[0])]
        {
            let affine = Affine::new(affine.0, affine.1).unwrap();
            // [batch, heads, queries, width], heads of keys, keys.
            let launch = |(([b, h, l, d], kv, s), seed): (([i32; 4], i32, i32), u64)| {
                let queries = array(&[b, h, l, d], dtype, 1.0, seed);
                let cache = reference::cache(&[b, kv, s, d], dtype, affine, seed + 1);
                let expected = reference::scores(&queries, &cache, affine);
                (vec![queries, cache.weight, cache.scales, cache.biases.unwrap()], expected)
            };
            let shapes = [([1, 1, 1, 128], 1, 1), ([1, 6, 1, 128], 2, 37), ([2, 4, 3, 256], 4, 9)];
            let launches: Vec<_> = shapes.into_iter().zip(1..).map(launch).collect();
            check(&stock::quantized_scores(affine).unwrap(), &launches, 3e-5);
        }
    });
}

#[test]
fn an_empty_array_needs_no_thread() {
    on_device(|| {
        let x = Array::zeros::<f32>((0, 4)).unwrap();
        let y = stock::silu_mul().unwrap().apply_one(&[x.clone(), x.clone()]).unwrap();
        assert_eq!((y.shape(), y.to_vec::<f32>().unwrap()), (&[0, 4][..], vec![]));
        assert!(stock::log_sum_exp().unwrap().apply_one(&[x]).unwrap().to_vec::<f32>().unwrap().is_empty());
    });
}

#[test]
fn a_transposed_input_is_read_in_logical_order() {
    on_device(|| {
        let x = array(&[6, 5], Dtype::Float32, 9.0, 3).transpose().unwrap();
        let seen = stock::log_sum_exp().unwrap().apply_one(std::slice::from_ref(&x)).unwrap();
        assert_close(&values(&seen), &reference::log_sum_exp(&x), 4e-6, "transposed");
        let flipped = ops::flip(&x, 0).unwrap();
        let seen = stock::log_sum_exp().unwrap().apply_one(std::slice::from_ref(&flipped)).unwrap();
        assert_close(&values(&seen), &reference::log_sum_exp(&flipped), 4e-6, "flipped");
    });
}

#[test]
fn the_gradient_of_a_stock_kernel_is_that_of_its_fallback_on_every_device() {
    on_device(|| {
        let kernel = stock::log_sum_exp().unwrap();
        let slope = transforms::grad(|x| ops::sum(&kernel.apply_one(x)?), &[0]);
        let x = array(&[3, 40], Dtype::Float32, 2.0, 5);
        let seen = values(&slope(std::slice::from_ref(&x)).unwrap()[0]);
        let x = values(&x);
        let softmax = x.chunks_exact(40).flat_map(|row| {
            let sum: f64 = row.iter().map(|x| x.exp()).sum();
            row.iter().map(|x| x.exp() / sum).collect::<Vec<_>>()
        });
        assert_close(&seen, &softmax.collect::<Vec<_>>(), 4e-6, "gradient");
    });
}

#[test]
fn a_compiled_function_runs_a_stock_kernel_over_shapes_that_change() {
    on_device(|| {
        let kernel = stock::silu_mul().unwrap();
        let f = transforms::compile_shapeless(move |x| kernel.apply(&[ops::negative(&x[0])?, x[1].clone()])).unwrap();
        for n in [3, 700, 5] {
            let (gate, up) = (array(&[n], Dtype::Float32, 4.0, 1), array(&[n], Dtype::Float32, 4.0, 2));
            let expected = reference::silu_mul(&ops::negative(&gate).unwrap(), &up);
            assert_close(&values(&f.call(&[gate, up]).unwrap()[0]), &expected, 4e-6, "compiled");
        }
    });
}

#[test]
fn warm_up_runs_on_every_device_and_tells_what_does_not_fit() {
    on_device(|| {
        let kernel = stock::silu_mul().unwrap();
        let x = Array::zeros::<f32>(8).unwrap();
        kernel.warm_up(&[x.clone(), x.clone()]).unwrap();
        if device() == Device::Gpu {
            assert!(kernel.warm_up(&[x]).is_err());
        }
    });
}

/// `cargo xtask gates` holds the manifest to the folder; this holds it to the kernels that are checked above.
#[test]
fn every_source_of_the_manifest_is_that_of_a_checked_kernel() {
    #[derive(serde::Deserialize)]
    struct Manifest {
        kernel: Vec<Entry>,
    }
    #[derive(serde::Deserialize)]
    struct Entry {
        name: String,
        metal: String,
        cuda: String,
        body: bool,
    }
    // Compiled in, so that this runs where the tree is not.
    let manifest: Manifest = toml::from_str(include_str!("../../src/kernel/sources/manifest.toml")).unwrap();
    let kernels = [
        stock::silu_mul().unwrap(),
        stock::log_sum_exp().unwrap(),
        stock::quantized_scores(Affine::new(64, 4).unwrap()).unwrap(),
    ];
    assert_eq!(manifest.kernel.len(), kernels.len());
    for (entry, kernel) in manifest.kernel.iter().zip(&kernels) {
        let name = kernel.name();
        assert_eq!((&entry.name[..], entry.body), (name, true));
        assert_eq!((&entry.metal, &entry.cuda), (&format!("{name}.metal"), &format!("{name}.cu")));
        assert!([GpuLanguage::Metal, GpuLanguage::Cuda].iter().all(|&language| kernel.source(language).is_some()));
    }
}
