//! The cases of a family: arguments that are read in order, and what Python MLX gave for them.

use std::path::PathBuf;

use oxmlx::{Array, Complex32, Device, Dtype, bf16, f16, ops};
use serde_json::Value;

use crate::limits::{self, Known};

/// A group of cases: one operation.
pub(crate) struct Group {
    pub(crate) op: String,
    pub(crate) covers: Vec<String>,
    cases: Vec<Value>,
    tolerance: Value,
}

/// The operations of a family, in the fixture's order.
pub(crate) fn family(name: &str) -> Vec<Group> {
    let path =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/parity")).join(format!("{name}.json"));
    let text = std::fs::read(&path)
        .unwrap_or_else(|e| panic!("{}: {e}: `python -m parity` in oracle/ makes it", path.display()));
    let Value::Array(groups) = serde_json::from_slice(&text).unwrap() else { panic!("{name} is no list") };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    groups
        .into_iter()
        .map(|group| Group {
            op: text(&group["op"]),
            covers: group["covers"].as_array().unwrap().iter().map(text).collect(),
            cases: group["cases"].as_array().unwrap().clone(),
            tolerance: group["tol"].clone(),
        })
        .collect()
}

impl Group {
    /// How many cases there are.
    pub(crate) fn len(&self) -> usize {
        self.cases.len()
    }

    /// Runs every case through `function` and names those that differ.
    pub(crate) fn check(&self, function: fn(&mut Case) -> oxmlx::Result<Vec<Array>>) -> Vec<String> {
        let (mut failures, mut skipped) = (Vec::new(), 0);
        for (number, case) in self.cases.iter().enumerate() {
            // Double precision is the processor's only.
            if crate::device::choose() != Device::Cpu && case.to_string().contains("float64") {
                skipped += 1;
                continue;
            }
            let mut arguments = Case { arguments: case["in"].as_array().unwrap().clone().into_iter() };
            let known = limits::of(&self.op, &case["in"]);
            if let Some((_, cause)) = known {
                println!("SKIPPED case {number} of {}: {cause}", self.op);
            }
            let least = known.map_or(0.0, |(known, _)| if let Known::Within(least) = known { *least } else { 0.0 });
            let outcome =
                function(&mut arguments).and_then(|outputs| numbers_of(&outputs).map(|found| (outputs, found)));
            let outcome = match (outcome, known) {
                (Err(error), Some((Known::Refused(text), _))) if error.to_string().contains(text) => continue,
                (Ok(_), Some((Known::Refused(_), _))) => Err("no longer refused: take it off the list".to_owned()),
                (Ok((outputs, found)), _) => self.compare(&outputs, &found, case["out"].as_array().unwrap(), least),
                (Err(error), _) => Err(error.to_string()),
            };
            if outcome.is_ok() && arguments.arguments.len() > 0 {
                failures.push(format!("{} case {number}: an argument was not used", self.op));
            }
            if let Err(what) = outcome {
                failures.push(format!("{} case {number} {}: {what}", self.op, case["in"]));
            }
        }
        if skipped > 0 {
            println!("SKIPPED {skipped} of {} cases of {}: float64 is the CPU's only", self.len(), self.op);
        }
        failures
    }

    /// Within the operation's tolerance, or `least` where that is more.
    fn compare(&self, outputs: &[Array], found: &[Vec<Number>], expected: &[Value], least: f64) -> Result<(), String> {
        if outputs.len() != expected.len() {
            return Err(format!("{} outputs, not {}", outputs.len(), expected.len()));
        }
        for ((output, found), expected) in outputs.iter().zip(found).zip(expected) {
            let dtype = dtype(&expected["d"]);
            let shape = integers(&expected["s"]);
            if output.dtype() != dtype || output.shape() != shape {
                return Err(format!("{output:?}, not {dtype} of {shape:?}"));
            }
            let wanted = &expected["v"];
            let tolerance = self.tolerance(dtype).max(least);
            let close = |a: &Number, b: &Number| match (a, b) {
                (Number::Whole(a), Number::Whole(b)) => a == b,
                (Number::Float(a), Number::Float(b)) => {
                    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * (1.0 + b.abs())
                }
                _ => false,
            };
            let wanted: Vec<Number> = wanted.as_array().unwrap().iter().map(|v| number(v, dtype)).collect();
            if found.len() != wanted.len() || !found.iter().zip(&wanted).all(|(a, b)| close(a, b)) {
                return Err(format!("{found:?}, not {wanted:?}"));
            }
        }
        Ok(())
    }

    /// How far a value may be off, relative to one more than its size: for every dtype, or by dtype.
    fn tolerance(&self, dtype: Dtype) -> f64 {
        if let Some(given) = self.tolerance.as_f64().or_else(|| self.tolerance[dtype.to_string()].as_f64()) {
            return given;
        }
        match dtype {
            Dtype::Float64 => 1e-12,
            Dtype::Float16 => 2e-3,
            Dtype::Bfloat16 => 1.6e-2,
            _ => 1e-5,
        }
    }
}

/// The arguments of one case, each read once and in order.
pub(crate) struct Case {
    arguments: std::vec::IntoIter<Value>,
}

impl Case {
    fn next(&mut self) -> Value {
        self.arguments.next().expect("the case has too few arguments")
    }

    pub(crate) fn array(&mut self) -> Array {
        array(&self.next())
    }

    pub(crate) fn optional_array(&mut self) -> Option<Array> {
        let value = self.next();
        (!value.is_null()).then(|| array(&value))
    }

    pub(crate) fn arrays(&mut self) -> Vec<Array> {
        self.next().as_array().unwrap().iter().map(array).collect()
    }

    pub(crate) fn int(&mut self) -> i32 {
        i32::try_from(self.next().as_i64().unwrap()).unwrap()
    }

    pub(crate) fn wide(&mut self) -> u64 {
        self.next().as_u64().unwrap()
    }

    pub(crate) fn optional_int(&mut self) -> Option<i32> {
        self.next().as_i64().map(|n| n as i32)
    }

    pub(crate) fn ints(&mut self) -> Vec<i32> {
        integers(&self.next())
    }

    pub(crate) fn optional_ints(&mut self) -> Option<Vec<i32>> {
        let value = self.next();
        (!value.is_null()).then(|| integers(&value))
    }

    pub(crate) fn pairs(&mut self) -> Vec<(i32, i32)> {
        let pair = |v: &Value| (v[0].as_i64().unwrap() as i32, v[1].as_i64().unwrap() as i32);
        self.next().as_array().unwrap().iter().map(pair).collect()
    }

    pub(crate) fn sizes<const N: usize>(&mut self) -> [i32; N] {
        self.ints().try_into().unwrap()
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.next().as_bool().unwrap()
    }

    pub(crate) fn optional_flag(&mut self) -> Option<bool> {
        self.next().as_bool()
    }

    pub(crate) fn float(&mut self) -> f64 {
        self.next().as_f64().unwrap()
    }

    pub(crate) fn optional_float(&mut self) -> Option<f32> {
        self.next().as_f64().map(|v| v as f32)
    }

    pub(crate) fn dtype(&mut self) -> Dtype {
        dtype(&self.next())
    }

    pub(crate) fn optional_dtype(&mut self) -> Option<Dtype> {
        let value = self.next();
        (!value.is_null()).then(|| dtype(&value))
    }

    pub(crate) fn text(&mut self) -> String {
        self.next().as_str().unwrap().to_owned()
    }

    /// An attention mask: none, the word "causal" as an empty one, or an array.
    pub(crate) fn mask(&mut self) -> Option<Option<Array>> {
        let value = self.next();
        (!value.is_null()).then(|| (!value.is_string()).then(|| array(&value)))
    }

    /// An argument of one of several kinds.
    pub(crate) fn any(&mut self) -> Value {
        self.next()
    }
}

fn dtype(value: &Value) -> Dtype {
    let name = value.as_str().unwrap();
    Dtype::ALL.into_iter().find(|dtype| dtype.to_string() == name).unwrap_or_else(|| panic!("no dtype {name}"))
}

fn integers(value: &Value) -> Vec<i32> {
    value.as_array().unwrap().iter().map(|n| n.as_i64().unwrap() as i32).collect()
}

fn array(value: &Value) -> Array {
    let (dtype, shape) = (dtype(&value["d"]), integers(&value["s"]));
    let mut bytes = Vec::new();
    for v in value["v"].as_array().unwrap() {
        match (dtype, number(v, dtype)) {
            (Dtype::Bool, Number::Whole(n)) => bytes.push(u8::from(n != 0)),
            (_, Number::Whole(n)) => bytes.extend_from_slice(&n.to_le_bytes()[..dtype.size()]),
            (Dtype::Float16, Number::Float(x)) => bytes.extend(f16::from_f64(x).to_le_bytes()),
            (Dtype::Bfloat16, Number::Float(x)) => bytes.extend(bf16::from_f64(x).to_le_bytes()),
            (Dtype::Float64, Number::Float(x)) => bytes.extend(x.to_le_bytes()),
            (_, Number::Float(x)) => bytes.extend((x as f32).to_le_bytes()),
        }
    }
    let base = Array::from_bytes(&bytes, &shape, dtype).unwrap();
    let last = shape.len().wrapping_sub(1);
    let along_last = |stride: i32, from: i32, to: i32| {
        let (mut start, mut stop, mut strides) = (vec![0; shape.len()], shape.clone(), vec![1; shape.len()]);
        (start[last], stop[last], strides[last]) = (from, to, stride);
        ops::slice(&base, &start, &stop, &strides).unwrap()
    };
    match value["view"].as_str() {
        None => base,
        Some("T") => ops::transpose_all(&base).unwrap(),
        Some("S") => along_last(2, 0, shape[last]),
        Some("R") => along_last(-1, shape[last] - 1, -shape[last] - 1),
        Some(other) => panic!("no view {other}"),
    }
}

#[derive(Debug)]
enum Number {
    Whole(i128),
    Float(f64),
}

fn number(value: &Value, dtype: Dtype) -> Number {
    if !dtype.is_floating() && dtype != Dtype::Complex64 {
        return Number::Whole(value.as_i64().map_or_else(|| value.as_u64().unwrap().into(), i128::from));
    }
    Number::Float(match value.as_str() {
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some(_) => f64::NEG_INFINITY,
        None => value.as_f64().unwrap(),
    })
}

fn numbers_of(arrays: &[Array]) -> oxmlx::Result<Vec<Vec<Number>>> {
    arrays.iter().map(numbers).collect()
}

/// An array's values; a complex one's as pairs.
fn numbers(array: &Array) -> oxmlx::Result<Vec<Number>> {
    macro_rules! whole {
        ($t:ty) => {
            array.to_vec::<$t>()?.into_iter().map(|v| Number::Whole(v.into())).collect()
        };
    }
    macro_rules! float {
        ($t:ty) => {
            array.to_vec::<$t>()?.into_iter().map(|v| Number::Float(v.into())).collect()
        };
    }
    Ok(match array.dtype() {
        Dtype::Bool => array.to_vec::<bool>()?.into_iter().map(|v| Number::Whole(v.into())).collect(),
        Dtype::Uint8 => whole!(u8),
        Dtype::Uint16 => whole!(u16),
        Dtype::Uint32 => whole!(u32),
        Dtype::Uint64 => whole!(u64),
        Dtype::Int8 => whole!(i8),
        Dtype::Int16 => whole!(i16),
        Dtype::Int32 => whole!(i32),
        Dtype::Int64 => whole!(i64),
        Dtype::Float16 => float!(f16),
        Dtype::Bfloat16 => float!(bf16),
        Dtype::Float32 => float!(f32),
        Dtype::Float64 => float!(f64),
        Dtype::Complex64 => array
            .to_vec::<Complex32>()?
            .into_iter()
            .flat_map(|v| [Number::Float(v.re.into()), Number::Float(v.im.into())])
            .collect(),
    })
}
