//! The engine on real input, against what mlx-lm gave.

mod batch;
mod batch_sampler;
mod caches;
mod edges;
mod generate;
mod prompt_cache;
mod rounds;
mod smollm2;
mod speculative;
#[path = "../data/support.rs"]
#[expect(dead_code, reason = "shared with the data tests, which use more of it")]
mod support;
mod verify;
