//! Values of Python MLX from `fixtures/fused.json`, and the inputs that they were made from.

use oxmlx::{Array, Dtype, dtype};
use serde_json::Value;

/// The fixture of a name made by `oracle/make_NAME.py`.
pub(crate) fn fixture(name: &str) -> Value {
    let path = format!("{}/../../fixtures/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|e| panic!("{path}: {e}; `python oracle/make_{name}.py` writes it"));
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn ints(value: &Value) -> Vec<i32> {
    value.as_array().unwrap().iter().map(|n| n.as_i64().unwrap() as i32).collect()
}

/// `((i * 7) mod 11 - 5) / 4` for the i-th element.
pub(crate) fn wave(shape: &[i32]) -> Array {
    let size: i32 = shape.iter().product();
    let values: Vec<f32> = (0..size).map(|i| (i * 7 % 11 - 5) as f32 / 4.0).collect();
    Array::from_slice(&values, shape).unwrap()
}

/// Shape and dtype are the reference's, values near it: within `tolerance` of its largest.
pub(crate) fn assert_is(got: &Array, reference: &Value, tolerance: f64, what: &str) {
    assert_eq!(got.shape(), ints(&reference["shape"]), "{what}");
    assert_eq!(got.dtype().to_string(), reference["dtype"].as_str().unwrap(), "{what}");
    let wanted: Vec<f64> = reference["values"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    let scale = wanted.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    let got: Vec<f64> = if dtype::issubdtype(got.dtype(), dtype::DtypeCategory::Floating).unwrap() {
        got.astype(Dtype::Float32).unwrap().to_vec::<f32>().unwrap().into_iter().map(f64::from).collect()
    } else {
        got.astype(Dtype::Int64).unwrap().to_vec::<i64>().unwrap().into_iter().map(|i| i as f64).collect()
    };
    for (i, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
        assert!((got - wanted).abs() <= tolerance * scale, "{what}: element {i} is {got}, not {wanted}");
    }
}
