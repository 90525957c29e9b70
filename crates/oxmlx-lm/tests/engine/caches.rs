//! Every kind of cache against attention computed in f64 from positions alone.

use oxmlx::Array;
use oxmlx::fast::Rope;
use oxmlx::fused::CachedAttention;
use oxmlx::quantize::Affine;
use oxmlx_lm::ErrorKind;
use oxmlx_lm::cache::{
    AttentionPath, Cache, ChunkedKvCache, KvCache, PagedKvCache, PagedStore, QuantizedKvCache, Reason, RotatingKvCache,
};
use oxmlx_lm::sampling::Rng;

const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const DIM: usize = 32;
const BASE: f32 = 100.0;

/// Projections of a sequence: `[tokens][heads * DIM]` each.
struct Text {
    qkv: [Vec<Vec<f32>>; 3],
}

impl Text {
    fn new(tokens: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut rows = |heads: usize| {
            let mut row = || (0..heads * DIM).map(|_| rng.next_f64() as f32 * 2.0 - 1.0).collect::<Vec<_>>();
            (0..tokens).map(|_| row()).collect::<Vec<_>>()
        };
        Self { qkv: [rows(HEADS), rows(KV_HEADS), rows(KV_HEADS)] }
    }

    fn arrays(&self, from: usize, to: usize) -> [Array; 3] {
        std::array::from_fn(|i| {
            let rows = self.qkv[i][from..to].concat();
            Array::from_slice(&rows, (1, (to - from) as i32, self.qkv[i][0].len() as i32)).unwrap()
        })
    }

    /// Attention of the token at `query` over the positions that `seen` names.
    fn reference(&self, query: usize, seen: &dyn Fn(usize) -> bool) -> Vec<f64> {
        let [q, k, v] = &self.qkv;
        let mut out = Vec::new();
        for head in 0..HEADS {
            let kv = head / (HEADS / KV_HEADS);
            let q = turned(&q[query][head * DIM..(head + 1) * DIM], query);
            let keys: Vec<usize> = (0..=query).filter(|&p| seen(p)).collect();
            let scores: Vec<f64> = keys
                .iter()
                .map(|&p| {
                    let k = turned(&k[p][kv * DIM..(kv + 1) * DIM], p);
                    q.iter().zip(&k).map(|(a, b)| a * b).sum::<f64>() / (DIM as f64).sqrt()
                })
                .collect();
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
            let total: f64 = weights.iter().sum();
            out.extend((0..DIM).map(|d| {
                keys.iter().zip(&weights).map(|(&p, w)| w * f64::from(v[p][kv * DIM + d])).sum::<f64>() / total
            }));
        }
        out
    }
}

/// Halves as pairs, turned by the position.
fn turned(x: &[f32], position: usize) -> Vec<f64> {
    let half = DIM / 2;
    let mut y = vec![0.0; DIM];
    for i in 0..half {
        let angle = position as f64 * f64::from(BASE).powf(-2.0 * i as f64 / DIM as f64);
        let (a, b) = (f64::from(x[i]), f64::from(x[i + half]));
        y[i] = a * angle.cos() - b * angle.sin();
        y[i + half] = a * angle.sin() + b * angle.cos();
    }
    y
}

fn attend(cache: &mut dyn Cache, [q, k, v]: [Array; 3], window: Option<usize>) -> oxmlx_lm::Result<Array> {
    let rope = Rope::new(DIM as i32, BASE);
    let how = CachedAttention {
        heads: HEADS as i32,
        kv_heads: KV_HEADS as i32,
        head_dim: DIM as i32,
        scale: (DIM as f32).sqrt().recip(),
        rope: &rope,
        window,
    };
    cache.attend([&q, &k, &v], how)
}

/// Feeds `pieces` and compares every token's attention; `seen(query, key)` says who sees whom.
fn check(
    cache: &mut dyn Cache,
    pieces: &[usize],
    window: Option<usize>,
    seen: &dyn Fn(usize, usize) -> bool,
    tolerance: f64,
) {
    let text = Text::new(pieces.iter().sum(), 3);
    let mut at = 0;
    for &piece in pieces {
        let output = attend(cache, text.arrays(at, at + piece), window).unwrap().to_vec::<f32>().unwrap();
        for (i, row) in output.chunks(HEADS * DIM).enumerate() {
            let expected = text.reference(at + i, &|key| seen(at + i, key));
            let worst = row.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(worst <= tolerance, "{} at {}: {worst}", cache.kind(), at + i);
        }
        at += piece;
        assert_eq!(cache.offset(), at);
    }
}

const PIECES: [usize; 7] = [5, 1, 1, 9, 1, 4, 1];

#[test]
fn every_kind_attends_as_f64_does() {
    let store = PagedStore::new(4, 1 << 20).unwrap();
    let bits = |bits| QuantizedKvCache::new(Affine::new(32, bits).unwrap());
    let mut caches: [(Box<dyn Cache>, f64); 6] = [
        (Box::new(KvCache::new()), 1e-5),
        (Box::new(PagedKvCache::new(&store)), 1e-5),
        (Box::new(ChunkedKvCache::new(100).unwrap()), 1e-5),
        (Box::new(RotatingKvCache::new(100).unwrap()), 1e-5),
        (Box::new(bits(8)), 0.02),
        (Box::new(bits(4)), 0.2),
    ];
    for (cache, tolerance) in &mut caches {
        check(cache.as_mut(), &PIECES, None, &|_, _| true, *tolerance);
        assert_eq!(cache.len(), 22);
    }
    // A layer with a window sees its window whatever the cache holds.
    let mut caches: [Box<dyn Cache>; 3] =
        [Box::new(KvCache::new()), Box::new(PagedKvCache::new(&store)), Box::new(ChunkedKvCache::new(6).unwrap())];
    for cache in &mut caches {
        check(cache.as_mut(), &PIECES, Some(3), &|query, key| key + 3 > query, 1e-5);
    }
}

#[test]
fn a_cache_tells_which_way_it_attends() {
    let store = PagedStore::new(4, 1 << 20).unwrap();
    assert_eq!(KvCache::new().path(), AttentionPath::Fused);
    assert_eq!(PagedKvCache::new(&store).path(), AttentionPath::Visible(Reason::Gathered));
    assert_eq!(
        RotatingKvCache::new(4).unwrap().path().to_string(),
        "over the visible keys: a ring is not in the order of positions"
    );
}

#[test]
fn e03_chunks_longer_than_the_window_show_each_query_its_own_window() {
    for pieces in [&[3, 20, 1, 1, 9][..], &[30, 1], &[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 12]] {
        for keep in [0, 2] {
            let mut ring = RotatingKvCache::new(8).unwrap().keeping(keep).unwrap();
            check(&mut ring, pieces, None, &|query, key| key < keep || key + (8 - keep) > query, 1e-5);
            assert_eq!(ring.len(), 8);
        }
        let mut ring = RotatingKvCache::new(8).unwrap().with_slack(3).unwrap();
        check(&mut ring, pieces, Some(8), &|query, key| key + 8 > query, 1e-5);
    }
}

#[test]
fn e04_after_the_front_went_masks_are_by_live_length_and_positions_by_offset() {
    // 6 tokens, then 5: the first 2 went; then 1 and 3: 4 are left each time.
    let starts = |query: usize| match query {
        0..6 => 0,
        6..11 => 2,
        11 => 7,
        _ => 8,
    };
    let mut cache = ChunkedKvCache::new(4).unwrap();
    check(&mut cache, &[6, 5, 1, 3], None, &|query, key| key >= starts(query), 1e-5);
    assert_eq!((cache.len(), cache.offset(), cache.start()), (7, 15, 8));
}

#[test]
fn e05_quantized_values_far_under_127_have_their_true_scale() {
    let mut rng = Rng::new(5);
    let values: Vec<f32> = (0..3 * DIM).map(|_| (rng.next_f64() as f32 - 0.5) * 2e-3).collect();
    let rows = Array::from_slice(&values, (1, 1, 3, DIM as i32)).unwrap();
    for bits in [8, 4] {
        let mut cache = QuantizedKvCache::new(Affine::new(32, bits).unwrap());
        let visible = cache.append(&rows, &rows).unwrap();
        let levels = (1 << bits) as f32 - 1.0;
        for shown in [visible.keys, visible.values] {
            for (group, exact) in shown.to_vec::<f32>().unwrap().chunks(32).zip(values.chunks(32)) {
                let span =
                    exact.iter().copied().fold(f32::MIN, f32::max) - exact.iter().copied().fold(f32::MAX, f32::min);
                // MLX moves the scale so that zero is exact: at most one level more.
                let allowed = span / (levels - 1.0);
                let worst = group.iter().zip(exact).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(worst <= allowed, "{bits} bits: {worst} over {allowed}");
            }
        }
    }
}

/// A cache of every kind, with these chunks and this window.
fn one_of_each(store: &PagedStore, chunk: usize, window: usize) -> [Box<dyn Cache>; 5] {
    [
        Box::new(KvCache::new()),
        Box::new(PagedKvCache::new(store)),
        Box::new(ChunkedKvCache::new(chunk).unwrap()),
        Box::new(RotatingKvCache::new(window).unwrap()),
        Box::new(QuantizedKvCache::new(Affine::new(32, 8).unwrap())),
    ]
}

/// Rows whose values are `from..`, `[1, 1, tokens, 32]`.
fn numbered(from: usize, tokens: usize) -> Array {
    let values: Vec<f32> = (from..from + tokens).flat_map(|n| [n as f32; DIM]).collect();
    Array::from_slice(&values, (1, 1, tokens as i32, DIM as i32)).unwrap()
}

fn numbers(shown: &Array) -> Vec<usize> {
    shown.to_vec::<f32>().unwrap().chunks(DIM).map(|row| row[7].round() as usize).collect()
}

#[test]
fn e06_trimmed_rows_never_come_back_when_the_cache_grows() {
    let store = PagedStore::new(16, 1 << 22).unwrap();
    let mut caches = one_of_each(&store, 1000, 1000);
    for cache in &mut caches {
        let append = |cache: &mut Box<dyn Cache>, from, tokens| {
            let rows = numbered(from, tokens);
            cache.append(&rows, &rows).unwrap()
        };
        append(cache, 0, 250);
        cache.trim(100).unwrap();
        let visible = append(cache, 1000, 200);
        let expected: Vec<usize> = (0..150).chain(1000..1200).collect();
        assert_eq!(numbers(&visible.keys), expected, "{}", cache.kind());
        cache.trim(350).unwrap();
        assert_eq!(numbers(&append(cache, 7, 3).values), [7, 8, 9], "{}", cache.kind());
        assert_eq!(cache.trim(4).unwrap_err().kind(), ErrorKind::Cache);
        assert_eq!((cache.len(), cache.offset()), (3, 3));
    }
}

#[test]
fn a_plain_cache_grows_by_256_rows_and_writes_in_place_between() {
    let mut cache = KvCache::new();
    let on_cpu = oxmlx::Device::current().unwrap() == oxmlx::Device::Cpu;
    let place = |cache: &KvCache| cache.arrays()[0].try_as_slice::<f32>().unwrap().as_ptr();
    let rows = numbered(0, 1);
    cache.append(&rows, &rows).unwrap();
    oxmlx::eval(&cache.arrays()).unwrap();
    assert_eq!(cache.arrays()[0].shape(), [1, 1, 256, DIM as i32]);
    let first = place(&cache);
    for n in 1..256 {
        let rows = numbered(n, 1);
        let visible = cache.append(&rows, &rows).unwrap();
        oxmlx::eval(&cache.arrays()).unwrap();
        assert_eq!(numbers(&visible.keys), (0..=n).collect::<Vec<_>>());
        // MLX's CUDA update of a slice takes over its input's buffer now and then only.
        if on_cpu {
            assert_eq!(place(&cache), first, "row {n} was written in place");
        }
    }
    cache.append(&rows, &rows).unwrap();
    assert_eq!(cache.arrays()[0].shape(), [1, 1, 512, DIM as i32]);
    assert_eq!(cache.bytes(), 2 * 512 * DIM * 4);
}

#[test]
fn a_snapshot_brings_back_what_was_whatever_came_after() {
    let store = PagedStore::new(4, 1 << 20).unwrap();
    let mut caches = one_of_each(&store, 8, 5);
    for cache in &mut caches {
        let rows = |from, tokens| numbered(from, tokens);
        cache.append(&rows(0, 6), &rows(0, 6)).unwrap();
        let snapshot = cache.snapshot().unwrap();
        let after = |cache: &mut dyn Cache, from| numbers(&cache.append(&rows(from, 1), &rows(from, 1)).unwrap().keys);
        let first = after(cache.as_mut(), 50);
        (60..70).for_each(|n| drop(after(cache.as_mut(), n)));
        cache.restore(&snapshot).unwrap();
        assert_eq!(cache.offset(), 6);
        assert_eq!(after(cache.as_mut(), 50), first, "{}", cache.kind());
        cache.restore(&snapshot).unwrap();
        // In a ring it does not lie last.
        assert!(after(cache.as_mut(), 51).contains(&51));
    }
    let plain = KvCache::new().snapshot().unwrap();
    assert_eq!(caches[3].restore(&plain).unwrap_err().kind(), ErrorKind::Cache);
}

#[test]
fn e22_paged_caches_share_blocks_and_count_every_byte() {
    let block = 2 * 4 * DIM * 4;
    let store = PagedStore::new(4, 4 * block).unwrap();
    let mut first = PagedKvCache::new(&store);
    first.append(&numbered(0, 6), &numbered(0, 6)).unwrap();
    assert_eq!((store.used_blocks(), store.bytes()), (2, 2 * block));
    let snapshot = first.snapshot().unwrap();
    let mut second = PagedKvCache::new(&store);
    second.restore(&snapshot).unwrap();
    assert_eq!(store.bytes(), 2 * block);
    let seen = second.append(&numbered(90, 1), &numbered(90, 1)).unwrap();
    assert_eq!(numbers(&seen.keys), [0, 1, 2, 3, 4, 5, 90]);
    assert_eq!(store.bytes(), 3 * block);
    let seen = first.append(&numbered(80, 1), &numbered(80, 1)).unwrap();
    assert_eq!(numbers(&seen.keys), [0, 1, 2, 3, 4, 5, 80]);
    assert_eq!(store.bytes(), 4 * block);
    // The budget is spent; what is there stays.
    let error = first.append(&numbered(0, 9), &numbered(0, 9)).unwrap_err();
    assert_eq!((error.kind(), first.offset(), store.bytes()), (ErrorKind::Cache, 7, 4 * block));
    drop(snapshot);
    assert_eq!(store.bytes(), 3 * block);
    drop(second);
    store.defragment();
    let seen = first.append(&numbered(81, 1), &numbered(81, 1)).unwrap();
    assert_eq!(numbers(&seen.values), [0, 1, 2, 3, 4, 5, 80, 81]);
    assert_eq!(store.bytes(), 2 * block);
    drop(first);
    assert_eq!(store.bytes(), 0);
}

#[test]
fn rows_that_do_not_fit_are_refused_and_change_nothing() {
    let store = PagedStore::new(4, 1 << 20).unwrap();
    let mut caches = one_of_each(&store, 8, 5);
    let rows = numbered(0, 3);
    let narrow = Array::zeros::<f32>((1, 1, 3, 16)).unwrap();
    let two = Array::zeros::<f32>((1, 2, 3, DIM as i32)).unwrap();
    for cache in &mut caches {
        cache.append(&rows, &rows).unwrap();
        for (keys, values) in [(&narrow, &narrow), (&rows, &two), (&two, &two)] {
            assert_eq!(cache.append(keys, values).unwrap_err().kind(), ErrorKind::Cache, "{}", cache.kind());
        }
        assert_eq!((cache.len(), cache.offset()), (3, 3));
    }
}
