//! Whether streams run beside each other: two threads with a stream each, a single-threaded product of 1024 x 1024 on both, against one
//! alone. Needs two free processors. `cargo bench -p oxmlx --bench streams`.
//!
//! The product is a kernel of plain loops, so that no pool of threads takes part in it.

use std::sync::Barrier;
use std::time::Instant;

use oxmlx::kernel::Kernel;
use oxmlx::{Array, Device, Dtype, Result, Stream};

const N: usize = 1024;
const ROUNDS: usize = 9;

fn product() -> Result<Kernel> {
    Kernel::builder("one-threaded product")
        .output(Dtype::Float32, |shapes| Ok(shapes[0].to_vec()))
        .cpu(|inputs, outputs| {
            let (a, b) = (inputs[0].as_slice::<f32>()?, inputs[1].as_slice::<f32>()?);
            let out = outputs[0].as_mut_slice::<f32>()?;
            out.fill(0.0);
            for (row, out) in a.chunks_exact(N).zip(out.chunks_exact_mut(N)) {
                for (x, line) in row.iter().zip(b.chunks_exact(N)) {
                    out.iter_mut().zip(line).for_each(|(sum, y)| *sum += x * y);
                }
            }
            Ok(())
        })
        .build()
}

/// Seconds that so many threads take, each with one product on its own stream.
fn run(kernel: &Kernel, streams: &[Stream]) -> f64 {
    let barrier = Barrier::new(streams.len() + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = streams
            .iter()
            .map(|stream| {
                scope.spawn(|| -> Result<()> {
                    let a = Array::full((N as i32, N as i32), 0.5f32)?;
                    a.eval()?;
                    barrier.wait();
                    let out = stream.scope(|| kernel.apply_one(&[a.clone(), a.clone()]))??;
                    out.eval()
                })
            })
            .collect();
        barrier.wait();
        let start = Instant::now();
        threads
            .into_iter()
            .for_each(|thread| thread.join().expect("no thread panics").expect("the product can be made"));
        start.elapsed().as_secs_f64()
    })
}

fn main() -> Result<()> {
    let json = std::env::args().any(|arg| arg == "--json");
    let (kernel, streams) = (product()?, [Stream::new(Device::Cpu)?, Stream::new(Device::Cpu)?]);
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let times = (run(&kernel, &streams[..1]), run(&kernel, &streams));
        // The first round warms up.
        if round > 0 {
            one.push(1e3 * times.0);
            two.push(1e3 * times.1);
        }
    }
    let (one, two) = (median(one), median(two));
    let ratio = two / one;
    if json {
        println!(r#"{{"one_ms":{one:.1},"two_ms":{two:.1},"ratio":{ratio:.3}}}"#);
    } else {
        println!(
            "a product of {N} x {N} on one stream: {one:.1} ms; two on two streams: {two:.1} ms, ratio {ratio:.3}"
        );
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
