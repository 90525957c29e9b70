//! How long a large SafeTensors file takes to load by mapping it, and how much memory: `cargo run --release --example map_safetensors [GiB]`.
//!
//! The file is made in a temporary folder, sparse, with one tensor of each 64 MiB. Linux only: it reads `/proc/self/statm`.
#![allow(unsafe_code)] // mapping a file

use std::fs::File;
use std::io::Write as _;
use std::time::Instant;

use oxmlx::{io, ops};

/// The bytes of this process that are in memory.
fn resident() -> Result<usize, Box<dyn std::error::Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    Ok(statm.split_whitespace().nth(1).ok_or("no field")?.parse::<usize>()? * 4096)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gib: usize = std::env::args().nth(1).map_or(Ok(2), |text| text.parse())?;
    const TENSOR: usize = 64 << 20;
    let count = gib * (1 << 30) / TENSOR;

    let folder = tempfile::tempdir()?;
    let path = folder.path().join("large.safetensors");
    let entries: Vec<String> = (0..count)
        .map(|i| {
            let (from, to) = (i * TENSOR, (i + 1) * TENSOR);
            format!(r#""w{i:04}":{{"dtype":"F32","shape":[4096,4096],"data_offsets":[{from},{to}]}}"#)
        })
        .collect();
    let mut header = format!("{{{}}}", entries.join(","));
    header.push_str(&" ".repeat(8 - header.len() % 8));
    let mut file = File::create(&path)?;
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    file.set_len((8 + header.len() + count * TENSOR) as u64)?;

    oxmlx::Array::scalar(1.0f32)?.eval()?;
    let (before, start) = (resident()?, Instant::now());
    // SAFETY: the file is this program's own.
    let mapped = unsafe { io::map_safetensors_file(&path) }?;
    let (time, grown) = (start.elapsed(), resident()?.saturating_sub(before));
    println!(
        "{count} tensors, {gib} GiB: mapped in {:.1} ms, {:.1} MiB grown",
        time.as_secs_f64() * 1e3,
        grown as f64 / 1048576.0
    );

    let start = Instant::now();
    let copied = io::load_safetensors(&path)?;
    let mut same = true;
    for ((_, a, _), (_, b)) in mapped.arrays.iter().zip(&copied.arrays) {
        same &= ops::array_equal(a, b, false)?.item::<bool>()?;
    }
    println!("equal to the copying loader: {same}, in {:.1} s", start.elapsed().as_secs_f64());
    if same { Ok(()) } else { Err("the loaders differ".into()) }
}
