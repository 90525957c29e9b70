//! Top-k: keeps the most probable tokens.

use super::row::Row;

/// Keeps the `k` most probable, of equals those with lower ids.
pub(super) fn top_k(row: &mut Row, k: usize) {
    row.keep_top(k);
}
