//! Rows of docs/cases.md that belong to no operation: dtypes that must not widen, masks, offsets, memory that must not grow, files of
//! every dtype; and that the page names tests that exist.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxmlx::fast::{self, Mask, Rope};
use oxmlx::kernel::Kernel;
use oxmlx::{Array, Dtype, Error, ErrorKind, Result, bf16, io, ops, transforms};

/// The error function by its series.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..60 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// Row A24.
#[test]
fn activations_of_bfloat16_stay_bfloat16() {
    let inputs = [-3.0f32, -0.5, 0.0, 0.25, 2.0];
    let x = Array::vector(&inputs.map(bf16::from_f32)).unwrap();
    let one_plus = |x: Result<Array>| x? + 1.0f32;
    type Activation<'a> = (&'a str, Result<Array>, fn(f64) -> f64);
    let cube = ops::multiply(&ops::square(&x).unwrap(), &x).unwrap();
    let inner = ((cube * 0.044_715f32).unwrap() + &x).unwrap() * (2.0 / std::f32::consts::PI).sqrt();
    let cases: [Activation<'_>; 5] = [
        (
            "gelu",
            one_plus(ops::erf(&(&x * std::f32::consts::FRAC_1_SQRT_2).unwrap()))
                .and_then(|y| y * &x)
                .and_then(|y| y * 0.5f32),
            |x| 0.5 * x * (1.0 + erf(x / 2f64.sqrt())),
        ),
        ("gelu_tanh", one_plus(inner.and_then(|y| ops::tanh(&y))).and_then(|y| y * &x).and_then(|y| y * 0.5f32), |x| {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x)).tanh())
        }),
        ("silu", ops::sigmoid(&x).and_then(|y| y * &x), |x| x / (1.0 + (-x).exp())),
        ("softplus", ops::logaddexp(&x, &ops::zeros_like(&x).unwrap()), |x| x.exp().ln_1p()),
        ("scalar add", &x + 1.5f32, |x| x + 1.5),
    ];
    for (name, found, exact) in cases {
        let found = found.unwrap();
        assert_eq!(found.dtype(), Dtype::Bfloat16, "{name}");
        for (y, x) in found.to_vec::<bf16>().unwrap().into_iter().zip(inputs) {
            let wanted = exact(f64::from(x));
            assert!((y.to_f64() - wanted).abs() <= 0.03 * (0.5 + wanted.abs()), "{name} of {x}: {y}, not {wanted}");
        }
    }
}

/// Queries and keys of zeros, so that every visible key weighs the same; values of `1, 2, 3 ...` by key.
fn attend(queries: i32, keys: i32, mask: Mask<'_>) -> Result<Vec<f32>> {
    let q = Array::zeros::<f32>((1, 1, queries, 8))?;
    let k = Array::zeros::<f32>((1, 1, keys, 8))?;
    let counted = ops::arange(1.0, f64::from(keys + 1), 1.0, Dtype::Float32)?;
    let v = ops::broadcast_to(&ops::reshape(&counted, (1, 1, keys, 1))?, (1, 1, keys, 8))?;
    let out = fast::scaled_dot_product_attention(&q, &k, &v, 1.0, mask)?;
    ops::take_index(&out, 0, -1)?.to_vec::<f32>()
}

/// Row A25.
#[test]
fn a_causal_mask_is_aligned_to_the_last_key() {
    assert_eq!(attend(1, 4, Mask::Causal).unwrap(), [2.5]);
    assert_eq!(attend(2, 4, Mask::Causal).unwrap(), [2.0, 2.5]);
    assert_eq!(attend(3, 3, Mask::Causal).unwrap(), [1.0, 1.5, 2.0]);
}

/// Row A25.
#[test]
fn a_mask_of_one_row_is_for_all_and_one_of_two_rows_for_three_queries_is_an_error() {
    let row = Array::matrix(&[[true, false, true, false]]).unwrap();
    assert_eq!(attend(3, 4, Mask::Array(&row)).unwrap(), [2.0; 3]);
    let two = Array::matrix(&[[true; 4]; 2]).unwrap();
    let error = attend(3, 4, Mask::Array(&two)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Shape), "{error:?}");
}

/// Row A25.
#[test]
fn a_row_that_sees_nothing_gets_the_mean_from_a_bool_mask_and_nan_from_an_additive_one() {
    let none = Array::matrix(&[[false; 4]]).unwrap();
    assert_eq!(attend(1, 4, Mask::Array(&none)).unwrap(), [2.5]);
    let added = Array::matrix(&[[f32::NEG_INFINITY; 4]]).unwrap();
    assert!(attend(1, 4, Mask::Array(&added)).unwrap()[0].is_nan());
}

/// Row A31.
#[test]
fn rope_with_an_array_of_offsets_is_traced_once_and_with_a_captured_number_once_a_number() {
    let x = ops::reshape(&ops::arange(0.0, 16.0, 1.0, Dtype::Float32).unwrap(), (1, 1, 2, 8)).unwrap();
    let rope = |offset| fast::rope(&x, &Rope::new(8, 10000.0), offset).unwrap();
    let entered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&entered);
    let by_array = transforms::compile(move |x| {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(vec![fast::rope_offsets(&x[0], &Rope::new(8, 10000.0), &x[1])?])
    })
    .unwrap();
    for offset in 0..32i32 {
        let found = by_array.call(&[x.clone(), Array::vector(&[offset]).unwrap()]).unwrap().swap_remove(0);
        let near = ops::allclose(&found, &rope(offset), ops::Tolerance::new(1e-4, 1e-4)).unwrap();
        assert!(near.item::<bool>().unwrap(), "offset {offset}");
    }
    assert_eq!(entered.swap(0, Ordering::SeqCst), 1);
    for offset in 0..32i32 {
        let count = Arc::clone(&entered);
        let captured = transforms::compile(move |x| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(vec![fast::rope(&x[0], &Rope::new(8, 10000.0), offset)?])
        })
        .unwrap();
        for _ in 0..2 {
            let found = captured.call(std::slice::from_ref(&x)).unwrap().swap_remove(0);
            assert!(found.all_close(&rope(offset)).unwrap(), "offset {offset}");
        }
    }
    assert_eq!(entered.load(Ordering::SeqCst), 32);
}

/// A SafeTensors file of one tensor.
fn one_tensor(dtype: &str, elements: usize, bytes: usize) -> Vec<u8> {
    let header = format!(r#"{{"w":{{"dtype":"{dtype}","shape":[{elements}],"data_offsets":[0,{bytes}]}}}}"#);
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.into_bytes());
    file.resize(file.len() + bytes, 0);
    file
}

/// Row F04.
#[test]
fn a_tensor_of_every_safetensors_dtype_loads_or_is_an_error_that_names_both() {
    let loads = [
        ("BOOL", Dtype::Bool),
        ("U8", Dtype::Uint8),
        ("I8", Dtype::Int8),
        ("U16", Dtype::Uint16),
        ("I16", Dtype::Int16),
        ("F16", Dtype::Float16),
        ("BF16", Dtype::Bfloat16),
        ("U32", Dtype::Uint32),
        ("I32", Dtype::Int32),
        ("F32", Dtype::Float32),
        ("U64", Dtype::Uint64),
        ("I64", Dtype::Int64),
        ("C64", Dtype::Complex64),
        ("F8_E4M3", Dtype::Uint8),
    ];
    for (name, dtype) in loads {
        let width = if name == "F8_E4M3" { 1 } else { dtype.size() };
        let file = io::load_safetensors_bytes(one_tensor(name, 4, 4 * width)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (tensor, array) = &file.arrays[0];
        assert_eq!((tensor.as_str(), array.shape(), array.dtype()), ("w", &[4][..], dtype), "{name}");
        assert_eq!(array.dtype().size() * 4, array.nbytes(), "{name}");
        array.eval().unwrap();
    }
    for (name, elements, bytes) in [
        ("F64", 4, 32),
        ("F8_E5M2", 4, 4),
        ("F8_E8M0", 4, 4),
        ("F4", 4, 2),
        ("F6_E2M3", 4, 3),
        ("F6_E3M2", 4, 3),
        ("F128", 4, 64),
    ] {
        let error = io::load_safetensors_bytes(one_tensor(name, elements, bytes)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Dtype, "{name}");
        assert!(error.message().contains(name) && error.message().contains("\"w\""), "{error}");
    }
}

/// Runs a test of this binary in a process of its own, where nothing else takes memory.
fn alone(test: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads", "1"]).env("OXMLX_TEST_ALONE", test);
    let output = command.output().unwrap();
    // A name that no test has runs none, with success.
    let ran = String::from_utf8_lossy(&output.stdout).contains("running 1 test");
    assert!(
        ran && output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn is_alone(test: &str) -> bool {
    std::env::var("OXMLX_TEST_ALONE").is_ok_and(|name| name == test)
}

/// The resident memory in bytes; 0 where the system does not tell.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or(0, |kib| 1024 * kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap())
}

/// Runs `step` a tenth as often to settle, then `count` times: resident memory may grow by a few MiB at most.
fn stays_flat(name: &str, count: usize, mut step: impl FnMut()) {
    (0..count / 10).for_each(|_| step());
    let before = resident();
    (0..count).for_each(|_| step());
    let grown = resident().saturating_sub(before);
    assert!(grown < 6 << 20, "{name}: {grown} bytes more after {count} times");
}

/// Row A23.
#[test]
fn seventy_thousand_gradients_leave_memory_flat() {
    const NAME: &str = "cases::seventy_thousand_gradients_leave_memory_flat";
    if !is_alone(NAME) {
        return alone(NAME);
    }
    let x = Array::scalar(3.0f32).unwrap();
    let slope = transforms::grad(|x| ops::multiply(&x[0], &x[0]), &[0]);
    stays_flat("grad", 70_000, || {
        assert_eq!(slope(std::slice::from_ref(&x)).unwrap()[0].item::<f32>().unwrap(), 6.0);
    });
}

/// Row A22.
#[test]
fn a_hundred_thousand_failures_leave_memory_flat() {
    const NAME: &str = "cases::a_hundred_thousand_failures_leave_memory_flat";
    if !is_alone(NAME) {
        return alone(NAME);
    }
    let x = Array::scalar(3.0f32).unwrap();
    let planted = || Error::new(ErrorKind::Unsupported, "test", "planted failure");
    stays_flat("closure", 100_000, || {
        let failing = transforms::grad(|x: &[Array]| ops::square(&x[0]).and(Err(planted())), &[0]);
        assert!(failing(std::slice::from_ref(&x)).is_err());
    });
    let kernel = Kernel::builder("failing")
        .output(Dtype::Float32, |_| Ok(vec![]))
        .cpu(|_, _| Err("planted failure".into()))
        .build()
        .unwrap();
    stays_flat("kernel", 100_000, || {
        // The body is Rust.
        let failed = crate::device::on_cpu(|| kernel.apply_one(std::slice::from_ref(&x))).unwrap();
        assert!(failed.eval().is_err());
    });
}

/// The rows of docs/cases.md: the case's name, and `file: test` of each test that shows it.
fn rows() -> BTreeMap<String, Vec<(String, String)>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cases.md");
    let text = std::fs::read_to_string(page).unwrap();
    let mut rows: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for line in text.lines().filter(|line| ["| A", "| E", "| F"].iter().any(|start| line.starts_with(start))) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let tests = cells[2].split(", ").map(|test| {
            let (file, name) =
                test.trim_matches('`').split_once("::").unwrap_or_else(|| panic!("{test:?} in {line:?}"));
            (file.to_owned(), name.to_owned())
        });
        rows.entry(cells[0].to_owned()).or_default().extend(tests);
    }
    rows
}

#[test]
fn every_case_of_the_page_names_tests_that_exist() {
    let rows = rows();
    let numbered = |letter: char, last: u32| (1..=last).map(move |n| format!("{letter}{n:02}"));
    let wanted = numbered('A', 37).chain(numbered('E', 23)).chain(numbered('F', 8));
    for case in wanted {
        assert!(rows.get(&case).is_some_and(|tests| !tests.is_empty()), "{case} has no test");
    }
    for (case, (file, name)) in rows.iter().flat_map(|(case, tests)| tests.iter().map(move |test| (case, test))) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{case}: {}: {e}", path.display()));
        let marked = text.split_once(&format!("fn {name}(")).is_some_and(|(before, _)| {
            let above = before.trim_end().lines().rev().map(str::trim);
            above.take_while(|line| line.starts_with("#[") || line.starts_with("//")).any(|line| line == "#[test]")
        });
        assert!(marked, "{case}: {file} has no test {name}");
    }
}
