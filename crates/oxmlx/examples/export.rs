//! A function exported in Rust and called from Python.
//!
//! `cargo run -p oxmlx --example export -- PYTHON`, an interpreter that has MLX; without one the file is only written.

use std::error::Error;
use std::process::Command;

use oxmlx::{Array, Dtype, Result, fast, ops, random, transforms};

/// A normalised layer with its weights inside: they travel in the file.
fn layer(weights: Array) -> impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static {
    move |x| {
        let normed = fast::rms_norm(&x[0], None, 1e-5)?;
        Ok(vec![ops::tanh(&ops::matmul(&normed, &weights)?)?])
    }
}

const SCRIPT: &str = "
import sys
import mlx.core as mx
mx.set_default_device(mx.cpu)
f = mx.import_function(sys.argv[1])
print(*(f(mx.arange(8, dtype=mx.float32).reshape(2, 4))[0].flatten().tolist()))
";

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let weights = random::normal((4, 3), Dtype::Float32, &random::key(5)?)?;
    let f = layer(weights);
    let x = ops::arange(0.0, 8.0, 1.0, Dtype::Float32)?.reshape((2, 4))?;
    let here = f(std::slice::from_ref(&x))?[0].to_vec::<f32>()?;

    let file = std::env::temp_dir().join(format!("oxmlx-example-{}.mlxfn", std::process::id()));
    transforms::export_function(&file, f, std::slice::from_ref(&x), false)?;
    println!("{} bytes in {}\nRust:   {here:?}", std::fs::metadata(&file)?.len(), file.display());
    if let Some(python) = std::env::args_os().nth(1) {
        let mut command = Command::new(python);
        command.args(["-c", SCRIPT]).arg(&file).env_remove("LD_LIBRARY_PATH").env_remove("DYLD_FALLBACK_LIBRARY_PATH");
        let output = command.output()?;
        let text = String::from_utf8(output.stdout)?;
        let there: Vec<f32> = text.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
        println!("Python: {there:?}");
        if there.len() != here.len() || !here.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-5) {
            return Err(format!("the values differ; Python said: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
    }
    Ok(std::fs::remove_file(&file)?)
}
