//! Which keys each query sees, from their positions.

use super::contract::Positions;

/// The mask that positions ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Every query sees every key.
    All,
    /// Query `i` of `queries` sees all keys but the last `queries - 1 - i`.
    Causal,
    /// One bool a query and key, row by row.
    Table(Vec<bool>),
}

/// What `queries` queries at positions from `first` on see of keys at `positions`, when each sees the last `window` positions (its own
/// included) and the first `keep`.
pub(super) fn seen(queries: usize, first: usize, positions: &Positions, window: Option<usize>, keep: usize) -> Seen {
    let end = first + queries;
    if let Positions::Range(range) = positions {
        let hides = window.is_some_and(|window| range.start.max(keep).saturating_add(window) < end);
        if range.end == end && !hides {
            return if queries == 1 { Seen::All } else { Seen::Causal };
        }
    }
    let visible = |query: usize, key: usize| {
        key <= query && (key < keep || window.is_none_or(|window| key.saturating_add(window) > query))
    };
    let mut table = Vec::with_capacity(queries * positions.len());
    for query in first..end {
        match positions {
            Positions::Range(range) => table.extend(range.clone().map(|key| visible(query, key))),
            Positions::List(list) => table.extend(list.iter().map(|&key| visible(query, key))),
        }
    }
    if table.iter().all(|&seen| seen) { Seen::All } else { Seen::Table(table) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brute(queries: usize, first: usize, keys: &[usize], window: Option<usize>, keep: usize) -> Vec<bool> {
        let mut table = Vec::new();
        for q in first..first + queries {
            for &k in keys {
                let in_window = window.is_none_or(|w| q - k.min(q) < w);
                table.push(k <= q && (in_window || k < keep));
            }
        }
        table
    }

    fn table(seen: Seen, queries: usize, keys: usize) -> Vec<bool> {
        match seen {
            Seen::All => vec![true; queries * keys],
            Seen::Causal => (0..queries).flat_map(|q| (0..keys).map(move |k| k + queries <= keys + q)).collect(),
            Seen::Table(table) => table,
        }
    }

    #[test]
    fn each_query_sees_its_own_window_and_the_kept_tokens_whatever_the_order_of_keys() {
        for queries in 1..5 {
            for before in 0..7 {
                for forgotten in 0..=before {
                    for window in [None, Some(1), Some(2), Some(3), Some(20)] {
                        for keep in 0..3 {
                            let end = before + queries;
                            let keys: Vec<usize> = (forgotten..end).collect();
                            let expected = brute(queries, before, &keys, window, keep);
                            let range = seen(queries, before, &Positions::Range(forgotten..end), window, keep);
                            assert_eq!(table(range, queries, keys.len()), expected);
                            let mut turned = keys.clone();
                            turned.rotate_left(keys.len() / 2);
                            let expected = brute(queries, before, &turned, window, keep);
                            let list = seen(queries, before, &Positions::List(turned), window, keep);
                            assert_eq!(table(list, queries, keys.len()), expected);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn one_query_needs_no_mask_where_it_sees_all() {
        assert_eq!(seen(1, 4, &Positions::Range(2..5), Some(3), 0), Seen::All);
        assert_eq!(seen(1, 4, &Positions::List(vec![3, 4, 2]), Some(3), 0), Seen::All);
        assert_eq!(seen(3, 4, &Positions::Range(0..7), None, 0), Seen::Causal);
    }
}
