//! Whether every operation has cases: each function of the generated bridge, which is what `cargo xtask coverage` counts.

use std::collections::BTreeMap;

use crate::fixture;

pub(crate) const FAMILIES: [&str; 12] = [
    "construct",
    "conv",
    "elementwise",
    "fast",
    "fft",
    "index",
    "linalg",
    "matmul",
    "quantize",
    "random",
    "reduce",
    "shape",
];

/// The headers whose functions compute values.
const TOPICS: [&str; 6] = ["einsum", "fast", "fft", "linalg", "ops", "random"];

/// What has no values of Python MLX on the CPU, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("ops::qqmm", "MLX has it on GPUs only"),
    ("ops::gather_qqmm", "MLX has it on GPUs only"),
    ("random::normal_scalar", "the safe API takes location and scale as arrays"),
];

/// The public functions of a generated file.
fn wrappers(topic: &str) -> Vec<String> {
    let path = format!("{}/../oxmlx-sys/src/generated/{topic}.rs", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let names = text.lines().filter_map(|line| line.strip_prefix("pub fn ")?.split('(').next().map(str::to_owned));
    names.map(|name| format!("{topic}::{name}")).collect()
}

#[test]
fn every_operation_of_the_bridge_has_at_least_four_cases() {
    let mut cases: BTreeMap<String, usize> = BTreeMap::new();
    for group in FAMILIES.into_iter().flat_map(fixture::family) {
        assert!(group.len() >= 4, "{} has {} cases", group.op, group.len());
        for covered in &group.covers {
            *cases.entry(covered.clone()).or_default() += group.len();
        }
    }
    let all: Vec<String> = TOPICS.into_iter().flat_map(wrappers).collect();
    assert!(all.len() > 300, "the generated files are not read any more");
    let without: Vec<&String> = all
        .iter()
        .filter(|name| cases.get(*name).is_none_or(|&n| n < 4) && !WITHOUT.iter().any(|(without, _)| without == name))
        .collect();
    assert!(without.is_empty(), "add cases in oracle/parity for {without:?}");
    for (name, _) in WITHOUT {
        assert!(
            !cases.contains_key(*name) && all.iter().any(|known| known == name),
            "{name} is to be left out no more"
        );
    }
}
