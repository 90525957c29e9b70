//! What the bridge costs: building and dropping one `add` node through oxmlx, lock included, against the same without taking the lock
//! and against the same loop in C++.
//!
//! Rounds of all alternate in one run, so that a busy machine disturbs all alike. `cargo bench -p oxmlx --bench node`; `--json`
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
    let (mut rust, mut unlocked, mut cpp) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let took = nodes(&a, &b)?;
        // As for a requester that holds the lock: the same path, which takes none. Nobody else is there.
        let free = oxmlx_sys::lock::on_behalf(|| nodes(&a, &b))?;
        let same = oxmlx_sys::bench::add_nodes(&raw_a, &raw_b, NODES)? as f64;
        // The first round warms up.
        if round > 0 {
            rust.push(took / NODES as f64);
            unlocked.push(free / NODES as f64);
            cpp.push(same / NODES as f64);
        }
    }
    let (rust, unlocked, cpp) = (median(rust), median(unlocked), median(cpp));
    let (ratio, lock) = (rust / cpp, rust - unlocked);
    if json {
        println!(r#"{{"rust_ns":{rust:.1},"cpp_ns":{cpp:.1},"ratio":{ratio:.3},"lock_ns":{lock:.1}}}"#);
    } else {
        println!(
            "one add node, built and dropped: {rust:.1} ns in Rust, {cpp:.1} ns in C++, ratio {ratio:.3}; {lock:.1} ns of it are the lock"
        );
    }
    Ok(())
}

/// Nanoseconds for building and dropping the nodes.
fn nodes(a: &Array, b: &Array) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..NODES {
        drop(black_box(ops::add(a, b)?));
    }
    Ok(start.elapsed().as_nanos() as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
