//! Exported functions travel: what Rust wrote runs in Python MLX, and what Python wrote runs in Rust.
#![allow(unsafe_code)] // importing trusts the file, which Python wrote here

use std::path::Path;

use oxmlx::fast::{self, Mask, Rope};
use oxmlx::transforms::{self, Exporter};
use oxmlx::{Array, Dtype, Result, io, ops, random};

use crate::python;

fn draw(shape: &[i32], seed: u64) -> Array {
    random::normal(shape, Dtype::Float32, &random::key(seed).unwrap()).unwrap()
}

/// One function of the exchange: what it is called, its inputs, itself.
type Exchange = (&'static str, Vec<Array>, fn(&[Array]) -> Result<Vec<Array>>);

/// The functions; Python's side has the same under the same names.
fn functions() -> Vec<Exchange> {
    vec![
        ("mlp", vec![draw(&[2, 8], 1), draw(&[8, 4], 2), draw(&[4], 3)], |x| {
            Ok(vec![ops::softmax(&(ops::matmul(&x[0], &x[1])? + &x[2])?, -1, true)?])
        }),
        ("attention", vec![draw(&[1, 4, 3, 8], 4), draw(&[1, 2, 5, 8], 5), draw(&[1, 2, 5, 8], 6)], |x| {
            let q = fast::rope(&x[0], &Rope::new(8, 10000.0), 2)?;
            Ok(vec![fast::scaled_dot_product_attention(&q, &x[1], &x[2], 0.35, Mask::Causal)?])
        }),
        ("norm", vec![draw(&[3, 8], 7), draw(&[8], 8)], |x| Ok(vec![fast::rms_norm(&x[0], Some(&x[1]), 1e-5)?])),
        ("two", vec![draw(&[3, 4], 9)], |x| {
            let (low, high) = ops::minmax_axis(&x[0], 1, false)?;
            Ok(vec![ops::astype(&ops::argsort_axis(&x[0], 0)?, Dtype::Int32)?, ops::stack(&[low, high], -1)?])
        }),
    ]
}

/// Python's side: the functions, and what runs one and keeps the results.
const PYTHON: &str = r#"
import mlx.core as mx

def mlp(x, w, b):
    return mx.softmax(x @ w + b, -1, precise=True)

def attention(q, k, v):
    q = mx.fast.rope(q, 8, traditional=False, base=10000.0, scale=1.0, offset=2)
    return mx.fast.scaled_dot_product_attention(q, k, v, scale=0.35, mask="causal")

def norm(x, w):
    return mx.fast.rms_norm(x, w, 1e-5)

def two(x):
    low, high = mx.minmax(x, 1)
    return mx.argsort(x, 0).astype(mx.int32), mx.stack([low, high], -1)

def inputs(name):
    loaded = mx.load(name + ".in.safetensors")
    return [loaded[str(i)] for i in range(len(loaded))]

def keep(name, results):
    results = results if isinstance(results, (tuple, list)) else [results]
    mx.save_safetensors(name + ".out.safetensors", {str(i): r for i, r in enumerate(results)})

NAMES = ["mlp", "attention", "norm", "two"]
mx.set_default_device(mx.cpu)
"#;

fn save(path: &Path, arrays: &[Array]) {
    let names: Vec<String> = (0..arrays.len()).map(|i| i.to_string()).collect();
    let named: Vec<(&str, Array)> = names.iter().map(String::as_str).zip(arrays.iter().cloned()).collect();
    io::save_safetensors(path, &named, &[]).unwrap();
}

fn load(path: &Path) -> Vec<Array> {
    let mut named = io::load_safetensors(path).unwrap().arrays;
    named.sort_by_key(|(name, _)| name.parse::<usize>().unwrap());
    named.into_iter().map(|(_, array)| array).collect()
}

fn assert_close(name: &str, found: &[Array], wanted: &[Array]) {
    assert_eq!(found.len(), wanted.len(), "{name}");
    for (a, b) in found.iter().zip(wanted) {
        assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()), "{name}");
        let near = ops::allclose(a, b, ops::Tolerance::new(1e-5, 1e-5)).unwrap();
        assert!(near.item::<bool>().unwrap(), "{name}: {a} and {b}");
    }
}

#[test]
fn functions_exported_in_rust_run_in_python_with_the_same_values() {
    if python::is_left_out() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, inputs, function) in functions() {
        transforms::export_function(folder.path().join(format!("{name}.mlxfn")), function, &inputs, false).unwrap();
        save(&folder.path().join(format!("{name}.in.safetensors")), &inputs);
    }
    let mut named =
        Exporter::with_names(folder.path().join("named.mlxfn"), |x, named| Ok(vec![(&x[0] * &named[0].1)?]), true, "")
            .unwrap();
    named.add(&[draw(&[2], 1)], &[("scale", draw(&[], 2))]).unwrap();
    named.close().unwrap();
    let script = r#"
for name in NAMES:
    keep(name, mx.import_function(name + ".mlxfn")(*inputs(name)))
print(mx.import_function("named.mlxfn")(mx.array([1.0, 2.0, 3.0]), scale=mx.array(2.0))[0].tolist())
"#;
    let printed = python::run(&format!("{PYTHON}{script}"), folder.path());
    assert_eq!(printed.trim(), "[2.0, 4.0, 6.0]");
    for (name, inputs, function) in functions() {
        let wanted = load(&folder.path().join(format!("{name}.out.safetensors")));
        assert_close(name, &function(&inputs).unwrap(), &wanted);
    }
}

#[test]
fn functions_exported_in_python_run_in_rust_with_the_same_values() {
    if python::is_left_out() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, inputs, _) in functions() {
        save(&folder.path().join(format!("{name}.in.safetensors")), &inputs);
    }
    let script = r#"
for name in NAMES:
    mx.export_function(name + ".mlxfn", globals()[name], *inputs(name))
    keep(name, globals()[name](*inputs(name)))
with mx.exporter("named.mlxfn", lambda x, *, scale: x * scale, shapeless=True) as export:
    export(mx.array([1.0]), scale=mx.array(2.0))
"#;
    python::run(&format!("{PYTHON}{script}"), folder.path());
    for (name, inputs, _) in functions() {
        // SAFETY: MLX wrote the file, above.
        let function = unsafe { transforms::import_function(folder.path().join(format!("{name}.mlxfn"))) }.unwrap();
        let wanted = load(&folder.path().join(format!("{name}.out.safetensors")));
        assert_close(name, &function.call(&inputs, &[]).unwrap(), &wanted);
    }
    // SAFETY: as for the others.
    let named = unsafe { transforms::import_function(folder.path().join("named.mlxfn")) }.unwrap();
    let x = Array::vector(&[1.0f32, 2.0, 3.0]).unwrap();
    let scaled = named.call(&[x], &[("scale", Array::scalar(2.0f32).unwrap())]).unwrap();
    assert_eq!(scaled[0].to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0]);
}
