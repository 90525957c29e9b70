//! What the bridge costs: building and dropping one `add` node through oxmlx, lock included, against the same loop in C++.
//!
//! Rounds of both alternate in one run, so that a busy machine disturbs both alike. `cargo bench -p oxmlx --bench node`; `--json`
//! prints the figures as one object.

use std::hint::black_box;
use std::time::Instant;

use oxmlx::{Array, Result, ops};

const ROUNDS: usize = 101;
const NODES: u64 = 5_000;

fn main() -> Result<()> {
    let json = std::env::args().any(|arg| arg == "--json");
    let a = Array::from_slice(&[1.0f32, 2.0], 2)?;
    let b = Array::from_slice(&[3.0f32, 4.0], 2)?;
    let (raw_a, raw_b) = (oxmlx_sys::Array::from(a.clone()), oxmlx_sys::Array::from(b.clone()));
    let (mut rust, mut cpp) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let start = Instant::now();
        for _ in 0..NODES {
            drop(black_box(ops::add(&a, &b)?));
        }
        let took = start.elapsed().as_nanos() as f64;
        let same = oxmlx_sys::bench::add_nodes(&raw_a, &raw_b, NODES)? as f64;
        // The first round warms up.
        if round > 0 {
            rust.push(took / NODES as f64);
            cpp.push(same / NODES as f64);
        }
    }
    let (rust, cpp) = (median(rust), median(cpp));
    let ratio = rust / cpp;
    if json {
        println!(r#"{{"rust_ns":{rust:.1},"cpp_ns":{cpp:.1},"ratio":{ratio:.3}}}"#);
    } else {
        println!("one add node, built and dropped: {rust:.1} ns in Rust, {cpp:.1} ns in C++, ratio {ratio:.3}");
    }
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
