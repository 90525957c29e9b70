//! The ring against a brute-force window.

use super::super::mask::{Seen, seen};
use super::*;

/// Rows whose values are their position, plus one so that rubbish of zeros is told apart.
fn numbered(from: usize, tokens: usize) -> Array {
    let values: Vec<f32> = (from..from + tokens).map(|p| p as f32 + 1.0).collect();
    Array::from_slice(&values, (1, 1, tokens as i32, 1)).unwrap()
}

/// The positions that each of `tokens` new queries may see: read from the cache's answer, with every visible value checked.
fn append(cache: &mut RotatingKvCache, tokens: usize) -> Vec<Vec<usize>> {
    let first = cache.offset();
    let new = numbered(first, tokens);
    let visible = cache.append(&new, &new).unwrap();
    let keys = visible.keys.to_vec::<f32>().unwrap();
    let positions: Vec<usize> = match &visible.positions {
        Positions::Range(range) => range.clone().collect(),
        Positions::List(list) => list.clone(),
    };
    assert_eq!(keys.len(), positions.len());
    let n = positions.len();
    let table = match seen(tokens, first, &visible.positions, cache.window(), cache.keep()) {
        Seen::All => vec![true; tokens * n],
        Seen::Causal => (0..tokens).flat_map(|q| (0..n).map(move |k| k + tokens <= n + q)).collect(),
        Seen::Table(table) => table,
    };
    let row = |q: usize| {
        let mut row: Vec<usize> = (0..n)
            .filter(|k| table[q * n + k])
            .map(|k| {
                assert_eq!(keys[k], positions[k] as f32 + 1.0, "a visible key is not that of its position");
                positions[k]
            })
            .collect();
        row.sort_unstable();
        row
    };
    (0..tokens).map(row).collect()
}

fn brute(query: usize, max_size: usize, keep: usize) -> Vec<usize> {
    (0..=query).filter(|&p| p < keep || p + (max_size - keep) > query).collect()
}

fn cache(max_size: usize, keep: usize, slack: usize) -> RotatingKvCache {
    RotatingKvCache::new(max_size).unwrap().keeping(keep).unwrap().with_slack(slack).unwrap()
}

#[test]
fn every_window_keep_slack_and_schedule_of_chunks_shows_the_brute_force_window() {
    const TOTAL: usize = 9;
    for max_size in 1..=6 {
        for keep in 0..max_size.min(3) {
            for slack in [0, 1, 3] {
                // Each bit says whether a chunk ends after that token.
                for cuts in 0..1u32 << (TOTAL - 1) {
                    // Three in four are left out where they differ from others in their first tokens alone.
                    if slack > 0 && cuts % 4 != 3 {
                        continue;
                    }
                    let mut cache = cache(max_size, keep, slack);
                    let mut at = 0;
                    while at < TOTAL {
                        let run = (cuts >> at).trailing_zeros() as usize + 1;
                        let tokens = run.min(TOTAL - at);
                        for (i, row) in append(&mut cache, tokens).into_iter().enumerate() {
                            assert_eq!(row, brute(at + i, max_size, keep), "{max_size} {keep} {slack} {cuts:b} {at}");
                        }
                        at += tokens;
                        assert_eq!((cache.offset(), cache.len()), (at, at.min(max_size)));
                    }
                }
            }
        }
    }
}

#[test]
fn what_it_can_trim_leaves_it_as_if_the_tokens_had_never_come() {
    for max_size in 1..=6 {
        for keep in 0..max_size.min(3) {
            for slack in 0..4 {
                for before in 1..14 {
                    for n in 1..=before {
                        let mut cache = cache(max_size, keep, slack);
                        (0..before).for_each(|_| drop(append(&mut cache, 1)));
                        let wrapped = before > max_size + slack;
                        assert_eq!(cache.can_trim(n), !wrapped || n <= slack, "{max_size} {keep} {slack} {before} {n}");
                        if !cache.can_trim(n) {
                            continue;
                        }
                        cache.trim(n).unwrap();
                        let left = before - n;
                        for (i, tokens) in [1, 3, 1, slack + 1].into_iter().enumerate() {
                            let first = left + [0, 1, 4, 5][i];
                            for (q, row) in append(&mut cache, tokens).into_iter().enumerate() {
                                assert_eq!(
                                    row,
                                    brute(first + q, max_size, keep),
                                    "{max_size} {keep} {slack} {before} {n}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn e01_a_wrapped_ring_refuses_to_trim_and_stays_as_it_is() {
    let mut ring = cache(8, 0, 0);
    (0..20).for_each(|_| drop(append(&mut ring, 1)));
    let before = ring.arrays()[0].to_vec::<f32>().unwrap();
    assert!(!ring.can_trim(3));
    assert_eq!(ring.trim(3).unwrap_err().kind(), ErrorKind::Cache);
    assert_eq!((ring.offset(), ring.len(), ring.arrays()[0].to_vec::<f32>().unwrap()), (20, 8, before));
    assert_eq!(append(&mut ring, 1), [brute(20, 8, 0)]);
}

#[test]
fn e02_filled_by_decode_or_by_prefill_it_holds_exactly_the_window() {
    let mut decoded = cache(8, 2, 0);
    (0..21).for_each(|_| drop(append(&mut decoded, 1)));
    let mut filled = cache(8, 2, 0);
    append(&mut filled, 21);
    for ring in [decoded, filled] {
        let mut held = ring.arrays()[0].to_vec::<f32>().unwrap();
        held.sort_unstable_by(f32::total_cmp);
        assert_eq!(held, [1.0, 2.0, 16.0, 17.0, 18.0, 19.0, 20.0, 21.0]);
        assert_eq!((ring.len(), ring.offset()), (8, 21));
    }
}

#[test]
fn it_grows_by_steps_and_never_over_its_size() {
    let mut ring = cache(300, 0, 0);
    append(&mut ring, 10);
    assert_eq!(ring.arrays()[0].dim(2), Some(256));
    append(&mut ring, 250);
    assert_eq!(ring.arrays()[0].dim(2), Some(300));
    append(&mut ring, 900);
    assert_eq!(ring.arrays()[0].dim(2), Some(300));
}
