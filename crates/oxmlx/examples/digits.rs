//! Trains a small network on the handwritten digits that scikit-learn ships, with `value_and_grad` inside one compiled step.
//!
//! `cargo xtask setup --tests` fetches the data; then `cargo run --release -p oxmlx --example digits`. Ends with an error below 96 % of
//! right answers on pictures that it was not trained on.

use std::error::Error;
use std::io::Read as _;
use std::path::PathBuf;

use oxmlx::{Array, Dtype, Result, fast, ops, random, transforms};

const HIDDEN: i32 = 128;
const BATCH: i32 = 96;
const EPOCHS: u64 = 30;
const RATE: f32 = 0.05;
const MOMENTUM: f32 = 0.9;

/// Pictures as rows of 64 values from 0 to 1, and the digit of each.
struct Set {
    pictures: Array,
    digits: Array,
}

/// `OXMLX_DIGITS`, else where `cargo xtask` puts the file.
fn path() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("OXMLX_DIGITS").unwrap_or_else(|| {
        let home = || set("HOME").unwrap_or_default();
        let caches = match cfg!(target_os = "macos") {
            true => home().join("Library/Caches"),
            false => set("XDG_CACHE_HOME").unwrap_or_else(|| home().join(".cache")),
        };
        set("OXMLX_HOME").unwrap_or_else(|| caches.join("oxmlx")).join("data/digits.csv.gz")
    })
}

/// Every fifth picture tests, the others train.
fn load() -> std::result::Result<(Set, Set), Box<dyn Error>> {
    let path = path();
    let file = std::fs::File::open(&path)
        .map_err(|error| format!("{}: {error}; `cargo xtask setup --tests` fetches it", path.display()))?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text)?;
    let mut parts = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for (number, line) in text.lines().enumerate() {
        let values: Vec<u32> = line.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
        let (digit, picture) =
            values.split_last().filter(|(_, picture)| picture.len() == 64).ok_or("a line has not 65 numbers")?;
        let (pictures, digits) = &mut parts[usize::from(number % 5 == 0)];
        pictures.extend(picture.iter().map(|&grey| grey as f32 / 16.0));
        digits.push(*digit);
    }
    let [train, test] = parts.map(|(pictures, digits)| -> Result<Set> {
        Ok(Set { pictures: Array::from_slice(&pictures, (digits.len() as i32, 64))?, digits: Array::vector(&digits)? })
    });
    Ok((train?, test?))
}

/// Weights and biases of two layers, drawn from a key.
fn parameters(key: &Array) -> Result<Vec<Array>> {
    let (first, second) = random::split(key)?;
    let draw = |shape: (i32, i32), key: &Array| {
        let scale = Array::scalar((2.0 / shape.0 as f32).sqrt())?;
        random::normal(shape, Dtype::Float32, key)? * scale
    };
    Ok(vec![
        draw((64, HIDDEN), &first)?,
        Array::zeros::<f32>(HIDDEN)?,
        draw((HIDDEN, 10), &second)?,
        Array::zeros::<f32>(10)?,
    ])
}

fn logits(p: &[Array], pictures: &Array) -> Result<Array> {
    let hidden = (ops::matmul(pictures, &p[0])? + &p[1])?;
    ops::matmul(&ops::maximum(&hidden, &Array::scalar(0.0f32)?)?, &p[2])? + &p[3]
}

/// Inputs: four parameters, four velocities, pictures, digits. Gives the parameters and velocities after the step, and the loss.
fn step(inputs: &[Array]) -> Result<Vec<Array>> {
    let (velocities, batch) = (inputs[4..8].to_vec(), inputs[8..].to_vec());
    let loss = move |p: &[Array]| ops::mean(&fast::cross_entropy(&logits(p, &batch[0])?, &batch[1])?);
    let (loss, gradients) = transforms::value_and_grad(loss, &[0, 1, 2, 3])(&inputs[..4])?;
    let (rate, momentum) = (Array::scalar(RATE)?, Array::scalar(MOMENTUM)?);
    let (mut moved, mut speeds) = (Vec::new(), Vec::new());
    for ((p, v), g) in inputs[..4].iter().zip(&velocities).zip(&gradients) {
        let v = ((v * &momentum)? - (g * &rate)?)?;
        moved.push((p + &v)?);
        speeds.push(v);
    }
    Ok([moved, speeds, vec![loss]].concat())
}

fn accuracy(p: &[Array], set: &Set) -> Result<f32> {
    let answers = ops::argmax_axis(&logits(p, &set.pictures)?, -1, false)?;
    ops::mean(&ops::astype(&ops::equal(&answers, &set.digits)?, Dtype::Float32)?)?.item()
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let (train, test) = load()?;
    let count = train.digits.dim(0).unwrap_or(0);
    let compiled = transforms::compile(step)?;
    let mut state = parameters(&random::key(1)?)?;
    for p in state.clone() {
        state.push(ops::zeros_like(&p)?);
    }
    for epoch in 0..EPOCHS {
        let order = random::permutation_of(count, &random::key(100 + epoch)?)?;
        let mut loss = 0.0;
        for batch in 0..count / BATCH {
            let rows = ops::slice(&order, &[batch * BATCH], &[(batch + 1) * BATCH], &[1])?;
            let mut inputs = state.clone();
            inputs.extend([ops::take(&train.pictures, &rows, 0)?, ops::take(&train.digits, &rows, 0)?]);
            state = compiled.call(&inputs)?;
            oxmlx::eval(&state)?;
            loss = state.pop().ok_or("no loss")?.item::<f32>()?;
        }
        if epoch % 10 == 9 {
            println!("epoch {:2}: loss {loss:.4}, test accuracy {:.1} %", epoch + 1, 100.0 * accuracy(&state, &test)?);
        }
    }
    let reached = accuracy(&state, &test)?;
    println!("{} pictures tested, {:.2} % right", test.digits.size(), 100.0 * reached);
    if reached < 0.96 { Err("below 96 %".into()) } else { Ok(()) }
}
