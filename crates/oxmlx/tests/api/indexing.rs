//! Reads and writes by index: what Python MLX gives, what lies outside, what it costs nobody else.

use oxmlx::index::{By, Ellipsis, Index, NewAxis, Slice};
use oxmlx::{Array, Device, Dtype, ErrorKind, Result, ops, transforms};
use serde_json::Value;

use super::reference::{fixture, ints};

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|n| n.as_f64().unwrap() as f32).collect()
}

fn bound(value: &Value) -> Option<i32> {
    value.as_i64().map(|n| n as i32)
}

fn dtype(name: &str) -> Dtype {
    match name {
        "int8" => Dtype::Int8,
        "uint8" => Dtype::Uint8,
        "uint32" => Dtype::Uint32,
        "int64" => Dtype::Int64,
        _ => Dtype::Int32,
    }
}

/// The index arrays of a case, then its entries.
fn index_arrays(case: &Value) -> Vec<Option<Array>> {
    let entries = case["index"].as_array().unwrap();
    let array = |entry: &Value| {
        let values = Array::from_slice(&ints(&entry["array"]), ints(&entry["shape"])).unwrap();
        values.astype(dtype(entry["dtype"].as_str().unwrap())).unwrap()
    };
    entries.iter().map(|entry| entry["array"].is_array().then(|| array(entry))).collect()
}

fn index<'a>(case: &Value, arrays: &'a [Option<Array>]) -> Vec<Index<'a>> {
    let entries = case["index"].as_array().unwrap().iter().zip(arrays);
    entries
        .map(|(entry, array)| match (array, &entry["at"], &entry["slice"]) {
            (Some(array), ..) => Index::Array(array),
            (_, Value::Number(at), _) => Index::At(at.as_i64().unwrap() as i32),
            (.., Value::Array(s)) => {
                Index::Slice(Slice { start: bound(&s[0]), stop: bound(&s[1]), step: bound(&s[2]).unwrap() })
            }
            _ if entry["new"].is_boolean() => Index::NewAxis,
            _ => Index::Ellipsis,
        })
        .collect()
}

fn changed(a: &Array, index: Vec<Index<'_>>, op: &str, values: &Array) -> Result<Array> {
    let at = a.at(index.clone());
    match op {
        "set" => {
            let mut copy = a.clone();
            copy.set(index, values)?;
            assert_eq!(copy.to_vec::<f32>()?, at.set(values)?.to_vec::<f32>()?);
            Ok(copy)
        }
        "add" => at.add(values),
        "subtract" => at.subtract(values),
        "multiply" => at.multiply(values),
        "divide" => at.divide(values),
        "maximum" => at.maximum(values),
        _ => at.minimum(values),
    }
}

#[test]
fn every_combination_gives_what_python_gives() {
    let fixture = fixture("indexing");
    let cases = fixture["cases"].as_array().unwrap();
    assert!(cases.len() >= 500);
    // Which of several values for one place stays is not defined on a GPU.
    let (ordered, mut skipped) = (Device::current().unwrap() == Device::Cpu, 0);
    // Once with index arrays whose values are there, once with some still to be computed.
    for lazy in [false, true] {
        for case in cases {
            let shape = ints(&case["shape"]);
            let size: i32 = shape.iter().product();
            let arrays = index_arrays(case);
            if !lazy {
                oxmlx::eval(&arrays.iter().flatten().cloned().collect::<Vec<_>>()).unwrap();
            }
            let index = index(case, &arrays);
            if case["op"] == "get" {
                let a = ops::arange_i32(0, size, 1).unwrap().reshape(&shape).unwrap();
                let part = a.get(index).unwrap_or_else(|e| panic!("{case}: {e}"));
                assert_eq!(part.shape(), ints(&case["out_shape"]), "{case}");
                assert_eq!(part.to_vec::<i32>().unwrap(), ints(&case["out"]), "{case}");
                continue;
            }
            let a = ops::arange(1.0, f64::from(size) + 1.0, 1.0, Dtype::Float32).unwrap().reshape(&shape).unwrap();
            let values = Array::from_slice(&floats(&case["values"]), ints(&case["values_shape"])).unwrap();
            if !ordered && case["op"] == "set" && !case["out"].is_null() && writes_twice(&a, index.clone(), &values) {
                skipped += 1;
                continue;
            }
            let out = changed(&a, index, case["op"].as_str().unwrap(), &values);
            if case["out"].is_null() {
                assert_eq!(out.unwrap_err().kind(), ErrorKind::Shape, "{case}");
            } else {
                let out = out.unwrap_or_else(|e| panic!("{case}: {e}"));
                assert_eq!(out.to_vec::<f32>().unwrap(), floats(&case["out"]), "{case}");
            }
        }
    }
    if skipped > 0 {
        println!("SKIPPED {skipped} of {} cases of indexing: several values for one place", 2 * cases.len());
    }
}

/// Whether an index names some place more than once.
fn writes_twice(a: &Array, index: Vec<Index<'_>>, values: &Array) -> bool {
    let (zeros, ones) = (ops::zeros_like(a).unwrap(), ops::ones_like(values).unwrap());
    zeros.at(index).add(&ones).unwrap().to_vec::<f32>().unwrap().iter().any(|&times| times > 1.0)
}

#[test]
fn masks_read_like_numpy_and_write_like_python() {
    for case in fixture("indexing")["masks"].as_array().unwrap() {
        let a = ops::arange(0.0, 12.0, 1.0, Dtype::Float32).unwrap().reshape((3, 4)).unwrap();
        let mask: Vec<bool> = case["mask"].as_array().unwrap().iter().map(|b| b.as_bool().unwrap()).collect();
        let mask = Array::from_slice(&mask, ints(&case["mask_shape"])).unwrap();
        let part = a.get(&mask).unwrap();
        assert_eq!(
            (part.shape(), part.to_vec::<f32>().unwrap()),
            (&ints(&case["read_shape"])[..], floats(&case["read"]))
        );
        let mut b = a.clone();
        b.set(&mask, Array::from_slice(&floats(&case["values"]), ints(&case["values_shape"])).unwrap()).unwrap();
        assert_eq!(b.to_vec::<f32>().unwrap(), floats(&case["out"]), "{case}");
    }
}

#[test]
fn a_mask_of_a_traced_array_reads_where_values_are_and_errs_where_not() {
    let x = Array::vector(&[1.0f32, -2.0, 3.0]).unwrap();
    let positive = |x: &Array| x.get(&x.greater(&Array::scalar(0.0f32)?)?)?.square()?.sum();
    let grad = transforms::grad(|x| positive(&x[0]), &[0]);
    assert_eq!(grad(std::slice::from_ref(&x)).unwrap()[0].to_vec::<f32>().unwrap(), [2.0, 0.0, 6.0]);
    let error = transforms::compile(move |x: &[Array]| Ok(vec![positive(&x[0])?])).unwrap().call(&[x]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

fn matrix() -> Array {
    Array::matrix(&[[1i32, 2, 3], [4, 5, 6]]).unwrap()
}

#[test]
fn what_lies_outside_is_an_error_or_clamped_and_never_foreign() {
    let (a, far) = (matrix(), Array::vector(&[0i32, 2]).unwrap());
    for outcome in
        [a.get(2), a.get(-3), a.get((0, 3)), a.get(&far), a.get((.., &[3])), a.at(&far).add(1), a.at(2).set(1)]
    {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Index);
    }
    let mut b = a.clone();
    assert_eq!(b.set(&far, 1).unwrap_err().kind(), ErrorKind::Index);
    assert_eq!(b.to_vec::<i32>().unwrap(), a.to_vec::<i32>().unwrap());
    // Still to be computed: clamped.
    let lazy = |i: &[i32]| (&Array::vector(i).unwrap() * 1_000_000i32).unwrap();
    assert_eq!(a.get(&lazy(&[-5, 5, 0])).unwrap().to_vec::<i32>().unwrap(), [1, 2, 3, 4, 5, 6, 1, 2, 3]);
    assert_eq!(a.at((.., &lazy(&[7]))).set(0).unwrap().to_vec::<i32>().unwrap(), [1, 2, 0, 4, 5, 0]);
    // Ranges are cut, beside arrays too, where MLX itself reads on.
    assert_eq!(a.get((&[1, 0], 1..100)).unwrap().to_vec::<i32>().unwrap(), [5, 6, 2, 3]);
    assert_eq!(a.get((&[1, 0], Slice::new(50, -50, -2))).unwrap().to_vec::<i32>().unwrap(), [6, 4, 3, 1]);
    assert_eq!(a.get((&[1], Slice::new(2, 1, 1))).unwrap().shape(), [1, 0]);
    assert_eq!(a.get(1..1).unwrap().shape(), [0, 3]);
}

#[test]
fn wrong_indices_name_their_kind() {
    let a = matrix();
    let mask = Array::vector(&[true, false]).unwrap();
    let kind = |outcome: Result<Array>| outcome.unwrap_err().kind();
    assert_eq!(kind(a.get((0, 0, 0))), ErrorKind::Axis);
    assert_eq!(kind(a.get((Ellipsis, 0, Ellipsis))), ErrorKind::InvalidArgument);
    assert_eq!(kind(a.get((..).by(0))), ErrorKind::InvalidArgument);
    assert_eq!(kind(a.get(&Array::vector(&[0.5f32]).unwrap())), ErrorKind::Dtype);
    assert_eq!(kind(a.get((&mask, 0))), ErrorKind::Dtype);
    assert_eq!(kind(a.get(&Array::vector(&[true]).unwrap())), ErrorKind::Shape);
    assert_eq!(kind(a.get((&[0, 1], &[0, 1, 2]))), ErrorKind::Shape);
    assert_eq!(kind(a.at(0).set(Array::vector(&[1i32, 2]).unwrap())), ErrorKind::Shape);
    assert_eq!(kind(a.at(&mask).add(1)), ErrorKind::Unsupported);
    assert_eq!(kind(Array::scalar(1i32).unwrap().get(0)), ErrorKind::Axis);
}

#[test]
fn a_write_keeps_dtype_and_other_handles() {
    let mut a = matrix();
    let before = a.clone();
    a.set((NewAxis, 0), 2.9).unwrap();
    assert_eq!((a.dtype(), a.to_vec::<i32>().unwrap()), (Dtype::Int32, vec![2, 2, 2, 4, 5, 6]));
    assert_eq!(before.to_vec::<i32>().unwrap(), [1, 2, 3, 4, 5, 6]);
    let mut scalar = Array::scalar(1i32).unwrap();
    scalar.set(Ellipsis, 5).unwrap();
    assert_eq!((scalar.shape(), scalar.item::<i32>().unwrap()), (&[][..], 5));
    assert_eq!(scalar.at(()).add(2).unwrap().item::<i32>().unwrap(), 7);
}

#[test]
fn inclusive_ranges_reach_their_last_place() {
    let a = Array::vector(&[0i32, 1, 2, 3]).unwrap();
    let get = |slice: Slice| a.get(slice).unwrap().to_vec::<i32>().unwrap();
    let range = |first: i32, last: i32, step: i32| get((first..=last).by(step));
    assert_eq!(range(1, 2, 1), [1, 2]);
    assert_eq!(range(1, -1, 1), [1, 2, 3]);
    assert_eq!(range(3, 0, -1), [3, 2, 1, 0]);
    assert_eq!(get((..=i32::MAX).into()), [0, 1, 2, 3]);
}

#[test]
fn gradients_flow_through_reads_and_writes() {
    let x = Array::vector(&[1.0f32, 2.0, 3.0]).unwrap();
    let f = |x: &[Array]| {
        let read = x[0].get([2, 2, 0])?.square()?.sum()?;
        let written = x[0].at(1..).multiply(&x[0].get(..2)?)?.sum()?;
        &read + &written
    };
    // d/dx of 2 x2^2 + x0^2 + x0 + x1 x0 + x2 x1.
    let grad = transforms::grad(f, &[0])(&[x]).unwrap();
    assert_eq!(grad[0].to_vec::<f32>().unwrap(), [2.0 + 1.0 + 2.0, 1.0 + 3.0, 12.0 + 2.0]);
}
