//! A whole decoder layer against its parts in f64, at every level of this machine.
//!
//! Weights are such that activations stay of order 1. Bound: 2e-5, and what the cache's type rounds.

mod common;

use common::{Buffer, DTYPES, Dtype, Random, assert_close};
use oxmlx_kernels::attention::Mask;
use oxmlx_kernels::fused::{Heads, KvCache, Layer, Weights, decoder};
use oxmlx_kernels::ops::{Norm, Rope};
use oxmlx_kernels::quant::{AffineShape, QuantMatrix};
use oxmlx_kernels::reference::{self, Sizes};
use oxmlx_kernels::{Level, MatRef};

const HIDDEN: usize = 96;
const INNER: usize = 160;
const WIDTH: usize = 24;
const EPS: f32 = 1e-5;

/// A matrix of quantized or dense weights.
enum Owned {
    Quant(Vec<u32>, Buffer, Buffer, AffineShape),
    Dense(Buffer, [usize; 2]),
}

impl Owned {
    fn new(random: &mut Random, rows: usize, cols: usize, quantized: bool) -> Self {
        let size = 1.0 / (cols as f32).sqrt();
        if !quantized {
            let x: Vec<f32> = random.floats(rows * cols).iter().map(|x| x * size).collect();
            return Self::Dense(Buffer::of(Dtype::Bf16, &x), [rows, cols]);
        }
        let shape = AffineShape { rows, cols, bits: 4, group: 32 };
        let groups = rows * cols / 32;
        let scales = Buffer::of(Dtype::F16, &vec![size / 8.0; groups]);
        let biases = Buffer::of(Dtype::F16, &vec![-size; groups]);
        Self::Quant(random.words(rows * cols / 8), scales, biases, shape)
    }

    fn weights(&self) -> Weights<'_> {
        match self {
            Self::Quant(words, scales, biases, shape) => {
                Weights::quantized(QuantMatrix::affine(words, scales.view(), biases.view(), *shape).unwrap())
            }
            Self::Dense(x, [rows, cols]) => Weights::dense(MatRef::new(x.view(), *rows, *cols).unwrap()).unwrap(),
        }
    }

    fn times(&self, x: &[f64]) -> Vec<f64> {
        let [n, k] = self.weights().shape();
        let values = match self {
            Self::Quant(words, scales, biases, shape) => {
                reference::dequantize(words, scales.view(), biases.view(), *shape)
            }
            Self::Dense(x, _) => x.to_f64(),
        };
        reference::qmm(x, &values, [x.len() / k, k, n]).iter().map(|s| s.value).collect()
    }
}

struct Model {
    norms: [Buffer; 2],
    /// q, k, v, o, gate, up, down.
    matrices: Vec<Owned>,
    heads: [usize; 2],
}

impl Model {
    fn new(random: &mut Random, heads: [usize; 2], quantized: bool) -> Self {
        let [h, kh] = heads.map(|n| n * WIDTH);
        let shapes =
            [(h, HIDDEN), (kh, HIDDEN), (kh, HIDDEN), (HIDDEN, h), (INNER, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER)];
        // The products with `heads * width` columns are quantized only if whole groups fit.
        let matrices = shapes.map(|(n, k)| Owned::new(random, n, k, quantized && k % 32 == 0));
        let norms = [random.buffer(Dtype::F32, HIDDEN), random.buffer(Dtype::F32, HIDDEN)];
        Self { norms, matrices: matrices.into(), heads }
    }

    fn layer<'a>(&'a self, heads: Heads<'a>) -> Layer<'a> {
        let norm = |i: usize| Norm { weight: Some(self.norms[i].view()), bias: None, eps: EPS };
        let m = |i: usize| self.matrices[i].weights();
        Layer {
            attention_norm: norm(0),
            q: m(0),
            k: m(1),
            v: m(2),
            o: m(3),
            mlp_norm: norm(1),
            gate: m(4),
            up: m(5),
            down: m(6),
            heads,
        }
    }

    fn how(&self, window: Option<usize>, traditional: bool) -> Heads<'static> {
        let rope = Rope::new(WIDTH, 100.0).traditional(traditional);
        Heads { heads: self.heads[0], kv_heads: self.heads[1], width: WIDTH, scale: 0.2, rope, window }
    }
}

struct Case<'a> {
    batch: usize,
    tokens: usize,
    /// What each cache holds already; the sequences are shared out evenly.
    lens: &'a [usize],
    window: Option<usize>,
    dtype: Dtype,
}

fn check(level: Level, random: &mut Random, model: &Model, case: &Case<'_>) {
    let &Case { batch, tokens, lens, window, dtype } = case;
    let [h, kh] = model.heads;
    let (sequences, traditional) = (batch / lens.len(), lens[0] % 2 == 1);
    let what = format!("{level:?} {batch} x {tokens} after {lens:?}, window {window:?}, heads {h}/{kh}, {dtype:?}");
    let old = random.floats(batch * tokens * HIDDEN);
    let capacity = |len: usize| len + tokens + len % 4;
    let mut buffers: Vec<[Buffer; 2]> =
        lens.iter().map(|&len| [0; 2].map(|_| random.buffer(dtype, sequences * kh * capacity(len) * WIDTH))).collect();
    let before: Vec<[Vec<f64>; 2]> = buffers.iter().map(|pair| pair.each_ref().map(Buffer::to_f64)).collect();
    let mut x = old.clone();
    let caches = lens.iter().zip(&mut buffers).map(|(&len, [keys, values])| KvCache {
        keys: keys.view_mut(),
        values: values.view_mut(),
        capacity: capacity(len),
        len,
    });
    let layer = model.layer(model.how(window, traditional));
    decoder(level, &mut x, [batch, tokens], &[layer], caches.collect()).unwrap();

    let part = sequences * tokens * HIDDEN;
    for (i, ((x, old), after)) in x.chunks_exact(part).zip(old.chunks_exact(part)).zip(&buffers).enumerate() {
        let cache = Cache { before: &before[i], after: &after.each_ref().map(Buffer::to_f64), len: lens[i] };
        check_cache(
            model,
            (&Case { batch: sequences, ..*case }, traditional),
            cache,
            [old, x],
            &format!("{what}, cache {i}"),
        );
    }
}

/// A cache before and after.
struct Cache<'a> {
    before: &'a [Vec<f64>; 2],
    after: &'a [Vec<f64>; 2],
    len: usize,
}

/// Checks what a cache's sequences have become.
fn check_cache(
    model: &Model,
    (&Case { batch, tokens, window, dtype, .. }, traditional): (&Case<'_>, bool),
    Cache { before, after, len }: Cache<'_>,
    [old, x]: [&[f32]; 2],
    what: &str,
) {
    let [h, kh] = model.heads;
    let (rows, capacity) = (batch * tokens, before[0].len() / (batch * kh * WIDTH));
    let old: Vec<f64> = old.iter().map(|&x| f64::from(x)).collect();
    let eps = f64::from(EPS);
    let normed = reference::rms_norm(&old, Some(&model.norms[0].to_f64()), eps, HIDDEN);
    let [q, k, v] = [0, 1, 2].map(|i| model.matrices[i].times(&normed));
    let lengths: Vec<f64> = (0..WIDTH / 2).map(|i| 100f64.powf(2.0 * i as f64 / WIDTH as f64)).collect();
    // `[batch, heads, tokens, width]`, rotated if asked for.
    let split = |x: &[f64], n: usize, turn: bool| -> Vec<f64> {
        let row = |i: usize| {
            let (b, head, t) = (i / tokens / n, i / tokens % n, i % tokens);
            let row = &x[((b * tokens + t) * n + head) * WIDTH..][..WIDTH];
            if turn { reference::rope(row, (len + t) as f64, &lengths, traditional) } else { row.to_vec() }
        };
        (0..batch * n * tokens).flat_map(row).collect()
    };
    let (q, k, v) = (split(&q, h, true), split(&k, kh, true), split(&v, kh, false));
    let mut live = [Vec::new(), Vec::new()];
    for (side, new) in [k, v].iter().enumerate() {
        for plane in 0..batch * kh {
            let at = plane * capacity * WIDTH;
            let (start, end) = (at + len * WIDTH, at + (len + tokens) * WIDTH);
            assert_eq!(after[side][at..start], before[side][at..start], "{what}: old rows");
            assert_eq!(
                after[side][end..at + capacity * WIDTH],
                before[side][end..at + capacity * WIDTH],
                "{what}: room"
            );
            let new = &new[plane * tokens * WIDTH..][..tokens * WIDTH];
            assert_close(&after[side][start..end], new, dtype, 1e-5, &format!("{what}: new rows"));
            live[side].extend_from_slice(&after[side][at..end]);
        }
    }
    let sizes = Sizes { batch, heads: model.heads, lengths: [tokens, len + tokens], widths: [WIDTH; 2] };
    let scale = f64::from(0.2f32);
    let attended = reference::attention([&q, &live[0], &live[1]], sizes, scale, &Mask::Causal { window }, None);
    let joined: Vec<f64> = (0..rows * h * WIDTH)
        .map(|i| {
            let (row, head, e) = (i / WIDTH / h, i / WIDTH % h, i % WIDTH);
            attended[((row / tokens * h + head) * tokens + row % tokens) * WIDTH + e]
        })
        .collect();
    let add = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
    let middle = add(&model.matrices[3].times(&joined), &old);
    let normed = reference::rms_norm(&middle, Some(&model.norms[1].to_f64()), eps, HIDDEN);
    let hidden = reference::silu_mul(&model.matrices[4].times(&normed), &model.matrices[5].times(&normed));
    let want = add(&model.matrices[6].times(&hidden), &middle);
    let got: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    assert_close(&got, &want, Dtype::F32, 2e-5, what);
}

#[test]
fn a_layer_matches_its_parts_in_f64() {
    let mut random = Random(1);
    for level in Level::available() {
        for heads in [[4, 4], [4, 2], [4, 1]] {
            for quantized in [false, true] {
                let model = Model::new(&mut random, heads, quantized);
                for (batch, tokens) in [(1, 1), (3, 1), (1, 5), (2, 4), (2, 9), (1, 40)] {
                    for (len, window) in [(0, None), (1, Some(1)), (70, None), (331, None), (331, Some(40))] {
                        let case = Case { batch, tokens, lens: &[len], window, dtype: Dtype::F32 };
                        check(level, &mut random, &model, &case);
                    }
                }
            }
        }
    }
}

#[test]
fn a_layer_keeps_its_cache_in_any_type() {
    let mut random = Random(2);
    let model = Model::new(&mut random, [4, 2], true);
    for level in Level::available() {
        for dtype in DTYPES {
            for tokens in [1, 20] {
                check(level, &mut random, &model, &Case { batch: 1, tokens, lens: &[30], window: None, dtype });
            }
        }
    }
}

#[test]
fn sequences_may_have_caches_of_their_own() {
    let mut random = Random(4);
    let model = Model::new(&mut random, [4, 2], true);
    for level in Level::available() {
        for dtype in DTYPES {
            for (batch, lens, tokens) in [
                (2, &[331, 0][..], 1),
                (7, &[1, 64, 0, 331, 70, 5, 2], 1),
                (2, &[131, 30], 4),
                (4, &[3, 90], 2),
                (3, &[7, 0, 200], 9),
                (12, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 300], 1),
            ] {
                for window in [None, Some(40)] {
                    check(level, &mut random, &model, &Case { batch, tokens, lens, window, dtype });
                }
            }
        }
    }
}

#[test]
fn a_layer_refuses_what_does_not_fit_and_writes_nothing() {
    let mut random = Random(3);
    let model = Model::new(&mut random, [4, 2], false);
    let mut x = random.floats(HIDDEN);
    let old = x.clone();
    let mut run = |heads: Heads<'_>, capacity: usize, len: usize, size: usize| {
        let (mut keys, mut values) = (vec![0.0f32; size], vec![0.0f32; size]);
        let cache = KvCache {
            keys: oxmlx_kernels::FloatsMut::F32(&mut keys),
            values: oxmlx_kernels::FloatsMut::F32(&mut values),
            capacity,
            len,
        };
        decoder(Level::best(), &mut x, [1, 1], &[model.layer(heads)], vec![cache]).map_err(|e| e.what())
    };
    let how = model.how(None, false);
    assert_eq!(run(how, 5, 5, 2 * 5 * WIDTH), Err("capacity"));
    assert_eq!(run(how, 5, usize::MAX, 2 * 5 * WIDTH), Err("capacity"));
    assert_eq!(run(how, 5, 0, 5 * WIDTH), Err("length of keys"));
    assert_eq!(run(Heads { heads: 3, ..how }, 5, 0, 2 * 5 * WIDTH), Err("heads"));
    assert_eq!(run(Heads { heads: 6, ..how }, 5, 0, 2 * 5 * WIDTH), Err("q"));
    assert_eq!(run(Heads { window: Some(0), ..how }, 5, 0, 2 * 5 * WIDTH), Err("window"));
    assert_eq!(run(how, 5, 4, 2 * 5 * WIDTH), Ok(()));
    assert_ne!(x, old);

    let mut buffers = [0; 4].map(|_| vec![0.0f32; 2 * 5 * WIDTH]);
    let [k, v, other_k, other_v] = &mut buffers;
    let (mut half, old) = (vec![half::f16::ZERO; 2 * 5 * WIDTH], x.clone());
    use oxmlx_kernels::FloatsMut::{self, F16, F32};
    fn cache<'a>(keys: FloatsMut<'a>, values: FloatsMut<'a>) -> KvCache<'a> {
        KvCache { keys, values, capacity: 5, len: 0 }
    }
    let run = |x: &mut [f32], caches: Vec<KvCache<'_>>| {
        decoder(Level::best(), x, [1, 1], &[model.layer(how)], caches).map_err(|e| e.what())
    };
    assert_eq!(run(&mut x, vec![]), Err("sequences"));
    assert_eq!(run(&mut x, vec![cache(F32(k), F32(v)), cache(F32(other_k), F32(other_v))]), Err("sequences"));
    assert_eq!(run(&mut x, vec![cache(F16(&mut half), F32(v))]), Err("types of keys and values"));
    assert_eq!(x, old);
}

#[test]
fn several_layers_in_one_call_give_what_one_after_the_other_gives() {
    for (seed, (batch, tokens)) in (10..).zip([(1, 1), (1, 3), (3, 1), (2, 4), (1, 12)]) {
        let mut random = Random(seed);
        let models = [true, false, true].map(|quantized| Model::new(&mut random, [6, 2], quantized));
        let (capacity, len, start) = (145, 130, random.floats(batch * tokens * HIDDEN));
        let size = batch * 2 * capacity * WIDTH;
        let (keys, values) = (random.floats(3 * size), random.floats(3 * size));
        // Layers that turn and look back differently.
        let layers: Vec<Layer<'_>> = models
            .iter()
            .zip([None, Some(7), Some(64)])
            .enumerate()
            .map(|(i, (model, window))| model.layer(model.how(window, i == 1)))
            .collect();
        let run = |x: &mut [f32], layers: &[Layer<'_>], keys: &mut [f32], values: &mut [f32]| {
            let (keys, values) = (oxmlx_kernels::FloatsMut::F32(keys), oxmlx_kernels::FloatsMut::F32(values));
            decoder(Level::best(), x, [batch, tokens], layers, vec![KvCache { keys, values, capacity, len }]).unwrap();
        };
        let (mut x, mut all) = (start.clone(), [keys.clone(), values.clone()]);
        let [k, v] = &mut all;
        run(&mut x, &layers, k, v);
        let (mut y, mut each) = (start, [keys, values]);
        for (i, layer) in layers.iter().enumerate() {
            let [k, v] = each.each_mut().map(|x| &mut x[i * size..(i + 1) * size]);
            run(&mut y, std::slice::from_ref(layer), k, v);
        }
        assert_eq!(x, y, "{batch} x {tokens}");
        assert_eq!(all, each, "{batch} x {tokens}");
    }
}
