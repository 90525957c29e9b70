//! Keys and values in blocks that sequences share.
//!
//! [`PagedPool`] keeps the books (tables, counts, budget) and touches no array; [`PagedStore`] has the arrays of its blocks, and
//! [`PagedKvCache`] is one layer of one sequence in it.

mod cache;
mod pool;
mod store;

pub use cache::PagedKvCache;
pub use pool::{BlockId, BlockStep, PagedPool, TableId};
pub use store::PagedStore;
