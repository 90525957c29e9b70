//! Getting MLX: which release, which wheel, which folder, and what is in it.
//!
//! Plain modules that read the world only through what they are handed ([`world::World`]), so that one text serves the
//! build script, `cargo xtask setup` and the tests in `tests/build_logic.rs`. Nothing here compiles or links.
#![allow(dead_code, unreachable_pub, reason = "three programs include this module and each uses a part of it")]

pub mod error;
pub mod mirror;
pub mod pin;
pub mod platform;
pub mod prefix;
pub mod probe;
#[cfg(any(test, feature = "download-mlx"))]
pub mod provision;
pub mod resolve;
pub mod world;
