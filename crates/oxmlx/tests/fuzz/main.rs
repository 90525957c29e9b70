//! Hostile calls of the whole safe API in child processes: no signal, no abort, no panic, no hang.
//!
//! `OXMLX_FUZZ_CALLS` and `OXMLX_FUZZ_SEED` set how many and which (`cargo xtask fuzz`). Call `n` of a seed depends on nothing but
//! the two numbers, so that a finding is one call: `OXMLX_FUZZ_ONLY=n` makes it alone.

#[path = "../support/child.rs"]
mod child;
mod draw;
mod files;
mod programs;
mod registry;
mod table;

use oxmlx::{Array, Result};

use crate::child::number;
use crate::draw::Draw;

/// What is built is computed when it has no more elements than this: time spent on large arrays is no finding.
pub(crate) const COMPUTED: usize = 1 << 20;

/// One call: build, and compute what is small.
fn call(seed: u64, index: u64) -> (&'static str, Result<()>) {
    if files::is_turn(index) {
        return files::call(seed, index);
    }
    let mut draw = Draw::new(seed, index);
    let (name, entry) = registry::pick(&mut draw);
    draw.tells = std::env::var_os("OXMLX_FUZZ_ONLY").is_some();
    let outcome = entry(&mut draw).and_then(|outputs| {
        let small: Vec<Array> = outputs.into_iter().filter(|a| a.size() <= COMPUTED && !draw.drew_huge).collect();
        oxmlx::eval(&small)?;
        small.iter().try_for_each(|a| oxmlx::ops::contiguous(a, false)?.eval())
    });
    (name, outcome)
}

#[test]
fn calls_of_a_child_process() {
    child::work(|index, seed| {
        let _ = call(seed.parse().unwrap(), index);
        Ok(())
    });
}

#[test]
fn hostile_calls_end_in_values_or_errors() {
    let seed = number("OXMLX_FUZZ_SEED", 1);
    if let Ok(only) = std::env::var("OXMLX_FUZZ_ONLY") {
        println!("{:?}", call(seed, only.parse().unwrap()));
        return;
    }
    let (calls, most) = (number("OXMLX_FUZZ_CALLS", 3_000), number("OXMLX_FUZZ_MOST", 50));
    let found = child::findings("calls_of_a_child_process", &seed.to_string(), calls, most as usize);
    let told = found.iter().map(|(index, what)| {
        let name =
            if files::is_turn(*index) { "a damaged file" } else { registry::pick(&mut Draw::new(seed, *index)).0 };
        format!("{name}: {what}; OXMLX_FUZZ_SEED={seed} OXMLX_FUZZ_ONLY={index}\n")
    });
    assert!(found.is_empty(), "{} findings:\n{}", found.len(), told.collect::<String>());
}
