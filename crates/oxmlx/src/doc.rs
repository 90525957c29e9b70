//! Guides, without code of their own: their links and examples are checked with the rest.
//!
//! * [`mlx_core_users`]: every name of Python's `mlx.core`, and what stands for it here.
//! * [`lazy_evaluation`]: when something is computed, and what that costs.
//! * [`transforms`]: gradients, vectorisation, compilation, files of functions.
//!
//! How to add an operation to oxmlx is in `docs/adding-an-op.md` of the repository.

pub mod lazy_evaluation;
pub mod mlx_core_users;
pub mod transforms;
