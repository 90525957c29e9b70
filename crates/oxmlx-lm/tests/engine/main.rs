//! The engine on real input, against what mlx-lm gave.

#[path = "../../../oxmlx/tests/support/alone.rs"]
mod alone;
mod batch;
mod batch_sampler;
mod caches;
mod edges;
mod generate;
mod midway;
mod prompt_cache;
#[path = "../../../oxmlx/tests/support/python.rs"]
#[expect(dead_code, reason = "shared with the tests of oxmlx, which use more of it")]
mod python;
mod rounds;
mod smollm2;
mod speculative;
#[path = "../data/support.rs"]
#[expect(dead_code, reason = "shared with the data tests, which use more of it")]
mod support;
mod verify;
