//! The pool against a plain model of it: each table a list of rows.

use std::collections::HashMap;

use super::*;
use crate::sampling::Rng;

/// Memory that does what the pool says.
#[derive(Default)]
struct Memory(HashMap<BlockId, Vec<u64>>);

impl Memory {
    fn apply(&mut self, steps: &[BlockStep], new: &[u64], rows: usize) {
        for step in steps {
            match step {
                BlockStep::Copy { from, to, rows: n } => {
                    let mut copy = vec![u64::MAX; rows];
                    copy[..*n].copy_from_slice(&self.0[from][..*n]);
                    self.0.insert(*to, copy);
                }
                BlockStep::Write { block, at, rows: range } => {
                    let block = self.0.entry(*block).or_insert_with(|| vec![u64::MAX; rows]);
                    block[*at..at + range.len()].copy_from_slice(&new[range.clone()]);
                }
            }
        }
    }
}

fn check_table(pool: &PagedPool, memory: &Memory, id: TableId, model: &[u64]) {
    let rows: Vec<u64> = pool.gather(id).unwrap().into_iter().flat_map(|(b, r)| memory.0[&b][r].to_vec()).collect();
    assert_eq!(rows, model);
    assert_eq!(pool.len(id).unwrap(), model.len());
}

/// Counts, bytes and the free list, from the tables.
fn check_books(pool: &PagedPool, tables: &[(TableId, Vec<u64>)]) {
    let mut counts: HashMap<BlockId, usize> = HashMap::new();
    for (id, _) in tables {
        for (block, rows) in pool.gather(*id).unwrap() {
            assert!(!rows.is_empty() && rows.end <= pool.block_rows(), "a block without rows is kept");
            *counts.entry(block).or_default() += 1;
        }
    }
    for block in (0..pool.counts.len()).map(BlockId) {
        assert_eq!(pool.count(block), counts.get(&block).copied().unwrap_or(0));
        assert_eq!(pool.count(block) == 0, pool.free.contains(&block));
    }
    assert_eq!(pool.used_blocks(), counts.len());
    assert_eq!(pool.bytes(), counts.len() * 100);
    assert!(pool.bytes() <= 4000);
}

#[test]
fn a_hundred_thousand_random_operations_equal_a_plain_model() {
    let mut rng = Rng::new(7);
    let mut below = |n: usize| (rng.next_f64() * n as f64) as usize;
    let rows = 4;
    let mut pool = PagedPool::new(rows, 100, 4000).unwrap();
    let mut memory = Memory::default();
    let mut tables: Vec<(TableId, Vec<u64>)> = Vec::new();
    let mut gone: Vec<TableId> = Vec::new();
    let (mut stamp, mut refused) = (0, 0);
    for round in 0..100_000 {
        let pick = if tables.is_empty() { 0 } else { below(tables.len()) };
        match below(20) {
            0 if tables.len() < 10 => tables.push((pool.create(), vec![])),
            1 | 2 if !tables.is_empty() && tables.len() < 10 => {
                let copy = (pool.fork(tables[pick].0).unwrap(), tables[pick].1.clone());
                tables.push(copy);
            }
            3..=10 if !tables.is_empty() => {
                let new: Vec<u64> = (0..below(11)).map(|i| stamp + i as u64).collect();
                stamp += 11;
                let before = (pool.bytes(), pool.gather(tables[pick].0).unwrap());
                match pool.append(tables[pick].0, new.len()) {
                    Ok(steps) => {
                        memory.apply(&steps, &new, rows);
                        tables[pick].1.extend(new);
                    }
                    Err(error) => {
                        refused += 1;
                        assert_eq!(error.kind(), ErrorKind::Cache);
                        assert_eq!((pool.bytes(), pool.gather(tables[pick].0).unwrap()), before);
                    }
                }
            }
            11..=14 if !tables.is_empty() => {
                let n = below(tables[pick].1.len() + 3);
                let left = tables[pick].1.len().checked_sub(n);
                assert_eq!(pool.trim(tables[pick].0, n).is_ok(), left.is_some());
                tables[pick].1.truncate(left.unwrap_or(usize::MAX));
            }
            15..=17 if !tables.is_empty() => {
                let n = below(tables[pick].1.len() + 3);
                let done = pool.trim_front(tables[pick].0, n).is_ok();
                assert_eq!(done, n <= tables[pick].1.len());
                if done {
                    tables[pick].1.drain(..n);
                }
            }
            18 if !tables.is_empty() => {
                let (id, _) = tables.swap_remove(pick);
                pool.release(id).unwrap();
                gone.push(id);
            }
            19 => {
                let moves = pool.defragment();
                let mut moved: Vec<(BlockId, Vec<u64>)> =
                    moves.iter().filter_map(|(from, to)| Some((*to, memory.0.remove(from)?))).collect();
                memory.0.extend(moved.drain(..));
                assert_eq!(pool.counts.len(), pool.used_blocks());
            }
            _ => {}
        }
        if let Some(id) = gone.last() {
            assert_eq!(pool.release(*id).unwrap_err().kind(), ErrorKind::Cache);
        }
        if let Some((id, model)) = tables.get(pick) {
            check_table(&pool, &memory, *id, model);
        }
        if round % 8 == 0 {
            check_books(&pool, &tables);
            tables.iter().for_each(|(id, model)| check_table(&pool, &memory, *id, model));
        }
    }
    assert!(refused > 100 && gone.len() > 1000, "the rare ways were taken: {refused} {}", gone.len());
    for (id, _) in tables {
        pool.release(id).unwrap();
    }
    assert_eq!(pool.bytes(), 0);
}

#[test]
fn e22_trim_after_the_front_went_leaves_the_right_tail() {
    let mut pool = PagedPool::new(4, 1, 100).unwrap();
    let mut memory = Memory::default();
    let id = pool.create();
    let rows: Vec<u64> = (0..11).collect();
    memory.apply(&pool.append(id, 11).unwrap(), &rows, 4);
    pool.trim_front(id, 6).unwrap();
    pool.trim(id, 2).unwrap();
    check_table(&pool, &memory, id, &[6, 7, 8]);
    memory.apply(&pool.append(id, 2).unwrap(), &[20, 21], 4);
    check_table(&pool, &memory, id, &[6, 7, 8, 20, 21]);
}

#[test]
fn a_budget_of_less_than_a_block_is_told_as_it_was_given() {
    let mut pool = PagedPool::new(4, 1024, 100).unwrap();
    let id = pool.create();
    let error = pool.append(id, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cache);
    assert!(error.to_string().contains("100 bytes") && error.to_string().contains("1 blocks of 1024"), "{error}");
}

#[test]
fn e22_releasing_twice_is_an_error() {
    let mut pool = PagedPool::new(4, 1, 100).unwrap();
    let id = pool.create();
    pool.append(id, 5).unwrap();
    pool.release(id).unwrap();
    assert_eq!(pool.release(id).unwrap_err().kind(), ErrorKind::Cache);
    assert_eq!(pool.used_blocks(), 0);
}

#[test]
fn e22_a_shared_half_full_block_is_copied_before_it_is_written() {
    let mut pool = PagedPool::new(4, 1, 100).unwrap();
    let mut memory = Memory::default();
    let a = pool.create();
    memory.apply(&pool.append(a, 6).unwrap(), &[0, 1, 2, 3, 4, 5], 4);
    let b = pool.fork(a).unwrap();
    let steps = pool.append(b, 1).unwrap();
    assert!(matches!(steps[..], [BlockStep::Copy { rows: 2, .. }, BlockStep::Write { at: 2, .. }]), "{steps:?}");
    memory.apply(&steps, &[9], 4);
    // Nobody shares it any more: written in place.
    let steps = pool.append(a, 1).unwrap();
    assert!(matches!(steps[..], [BlockStep::Write { at: 2, .. }]), "{steps:?}");
    memory.apply(&steps, &[8], 4);
    check_table(&pool, &memory, a, &[0, 1, 2, 3, 4, 5, 8]);
    check_table(&pool, &memory, b, &[0, 1, 2, 3, 4, 5, 9]);
}
