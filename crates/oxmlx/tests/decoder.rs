//! The decoder in one node against the same model in f64.

use oxmlx::fast::Rope;
use oxmlx::fused::{CachedAttention, Decoder, DecoderLayer, KvBuffers, Matrix, Norm};
use oxmlx::quantize::{Affine, quantize};
use oxmlx::{Array, Dtype, ops};

const HIDDEN: usize = 64;
const INNER: usize = 96;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const WIDTH: usize = 32;
const EPS: f32 = 1e-5;

/// Numbers between -1 and 1 that look random.
fn noise(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

struct Layer {
    norms: [Vec<f32>; 2],
    /// q, k, v, o, gate, up, down with their rows and columns.
    matrices: Vec<(Vec<f32>, usize, usize)>,
}

impl Layer {
    fn new(seed: u64) -> Self {
        let (q, kv) = (HEADS * WIDTH, KV_HEADS * WIDTH);
        let shapes =
            [(q, HIDDEN), (kv, HIDDEN), (kv, HIDDEN), (HIDDEN, q), (INNER, HIDDEN), (INNER, HIDDEN), (HIDDEN, INNER)];
        let matrices = (0..).zip(shapes).map(|(i, (rows, columns))| {
            let values = noise(rows * columns, seed * 100 + i).iter().map(|x| x * 0.2).collect();
            (values, rows, columns)
        });
        let norm = |i| noise(HIDDEN, seed * 100 + i).iter().map(|x| 1.0 + 0.3 * x).collect();
        Self { norms: [norm(50), norm(51)], matrices: matrices.collect() }
    }
}

/// The model's own arithmetic, in f64: each layer's keys and values so far, and what comes out.
#[derive(Default)]
struct Reference {
    keys: Vec<Vec<Vec<f64>>>,
    values: Vec<Vec<Vec<f64>>>,
}

impl Reference {
    fn token(&mut self, layers: &[Layer], x: &[f32]) -> Vec<f64> {
        let mut x: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        self.keys.resize(layers.len(), Vec::new());
        self.values.resize(layers.len(), Vec::new());
        for (l, layer) in layers.iter().enumerate() {
            let product = |i: usize, x: &[f64]| -> Vec<f64> {
                let (values, rows, columns) = &layer.matrices[i];
                let row = |r: usize| &values[r * columns..][..*columns];
                (0..*rows).map(|r| row(r).iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum()).collect()
            };
            let position = self.keys[l].len();
            let n = normed(&x, &layer.norms[0]);
            let q = turned(&product(0, &n), position);
            self.keys[l].push(turned(&product(1, &n), position));
            self.values[l].push(product(2, &n));
            let mut attended = vec![0.0; HEADS * WIDTH];
            for head in 0..HEADS {
                let (at, kv) = (head * WIDTH, head / (HEADS / KV_HEADS) * WIDTH);
                let score =
                    |k: &Vec<f64>| (0..WIDTH).map(|i| q[at + i] * k[kv + i]).sum::<f64>() / (WIDTH as f64).sqrt();
                let weights: Vec<f64> = self.keys[l].iter().map(|k| score(k).exp()).collect();
                let total: f64 = weights.iter().sum();
                for (w, v) in weights.iter().zip(&self.values[l]) {
                    (0..WIDTH).for_each(|i| attended[at + i] += w / total * v[kv + i]);
                }
            }
            x.iter_mut().zip(product(3, &attended)).for_each(|(x, y)| *x += y);
            let n = normed(&x, &layer.norms[1]);
            let gated: Vec<f64> =
                product(4, &n).iter().zip(product(5, &n)).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
            x.iter_mut().zip(product(6, &gated)).for_each(|(x, y)| *x += y);
        }
        x
    }
}

fn normed(x: &[f64], weight: &[f32]) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    x.iter().zip(weight).map(|(x, &w)| x / (mean + f64::from(EPS)).sqrt() * f64::from(w)).collect()
}

/// Halves of a head make pairs.
fn turned(x: &[f64], position: usize) -> Vec<f64> {
    let mut y = x.to_vec();
    for head in y.chunks_exact_mut(WIDTH) {
        for i in 0..WIDTH / 2 {
            let angle = position as f64 / 10_000f64.powf(2.0 * i as f64 / WIDTH as f64);
            let (a, b) = (head[i], head[i + WIDTH / 2]);
            (head[i], head[i + WIDTH / 2]) = (a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos());
        }
    }
    y
}

struct Model {
    layers: Vec<Layer>,
    decoder: Decoder,
}

impl Model {
    fn new(quantized: bool) -> oxmlx::Result<Self> {
        let mut layers = vec![Layer::new(1), Layer::new(2)];
        let rope = Rope::new(WIDTH as i32, 10_000.0);
        let mut held = Vec::new();
        for layer in &mut layers {
            let norms = [0, 1].map(|i| Array::from_slice(&layer.norms[i], HIDDEN as i32));
            let mut matrices = Vec::new();
            for (values, rows, columns) in &mut layer.matrices {
                let array = Array::from_slice(values, (*rows as i32, *columns as i32))?;
                if quantized {
                    let packed = quantize(&array, Affine::new(32, 4)?)?;
                    *values = oxmlx::quantize::dequantize(&packed)?.to_vec::<f32>()?;
                    matrices.push(Held::Packed(packed));
                } else {
                    matrices.push(Held::Plain(array));
                }
            }
            held.push((norms, matrices));
        }
        let mut parts = Vec::new();
        for (norms, matrices) in &held {
            let [attention_norm, mlp_norm] =
                norms.each_ref().map(|w| w.as_ref().map(|weight| Norm { weight, eps: EPS }));
            let m: Vec<Matrix<'_>> = matrices.iter().map(Held::matrix).collect();
            let attention = CachedAttention {
                heads: HEADS as i32,
                kv_heads: KV_HEADS as i32,
                head_dim: WIDTH as i32,
                scale: (WIDTH as f32).sqrt().recip(),
                rope: &rope,
                window: None,
            };
            parts.push(DecoderLayer {
                attention_norm: attention_norm.expect("a norm"),
                qkv: [m[0], m[1], m[2]],
                attention,
                o: m[3],
                mlp_norm: mlp_norm.expect("a norm"),
                gate: m[4],
                up: m[5],
                down: m[6],
            });
        }
        let decoder = Decoder::new(&parts)?;
        Ok(Self { layers, decoder })
    }

    fn empty(&self, capacity: i32) -> oxmlx::Result<KvBuffers> {
        let stack =
            || ops::zeros([self.layers.len() as i32, 1, KV_HEADS as i32, capacity, WIDTH as i32], Dtype::Float32);
        Ok(KvBuffers { keys: stack()?, values: stack()?, len: 0 })
    }

    /// Feeds pieces of these lengths and compares every token's output.
    fn compare(&self, pieces: &[usize]) -> oxmlx::Result<()> {
        let total: usize = pieces.iter().sum();
        let x = noise(total * HIDDEN, 9);
        let mut reference = Reference::default();
        let expected: Vec<f64> = x.chunks_exact(HIDDEN).flat_map(|x| reference.token(&self.layers, x)).collect();
        let mut buffers = vec![self.empty(total as i32 + 3)?];
        let mut found = Vec::new();
        let mut from = 0;
        for &n in pieces {
            let piece = Array::from_slice(&x[from * HIDDEN..(from + n) * HIDDEN], (1, n as i32, HIDDEN as i32))?;
            let decoded = self.decoder.forward(&piece, buffers)?;
            found.extend(decoded.output.to_vec::<f32>()?);
            buffers = decoded.buffers;
            from += n;
        }
        assert_close(&found, &expected, &format!("{pieces:?}"));
        Ok(())
    }
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (f64::from(*found) - expected).abs();
        assert!(off < 2e-4 * (1.0 + expected.abs()), "{what}, entry {i}: {found}, in f64 {expected}");
    }
}

enum Held {
    Plain(Array),
    Packed(oxmlx::quantize::Quantized),
}

impl Held {
    fn matrix(&self) -> Matrix<'_> {
        match self {
            Self::Plain(weight) => Matrix::Plain(weight),
            Self::Packed(packed) => Matrix::Affine(packed),
        }
    }
}

#[test]
fn a_decoder_gives_what_f64_gives_whatever_the_pieces() -> oxmlx::Result<()> {
    for quantized in [false, true] {
        let model = Model::new(quantized)?;
        for pieces in [&[1, 1, 1, 1][..], &[5, 1, 1], &[20, 1, 3], &[9, 9]] {
            model.compare(pieces)?;
        }
    }
    Ok(())
}

#[test]
fn sequences_with_caches_of_their_own_give_what_f64_gives() -> oxmlx::Result<()> {
    for (quantized, before) in [(true, &[0, 7][..]), (false, &[3, 0, 12]), (true, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10])] {
        let model = Model::new(quantized)?;
        let (mut caches, mut references, mut input) = (Vec::new(), Vec::new(), Vec::new());
        for (seed, &n) in (20..).zip(before) {
            let x = noise((n + 2) * HIDDEN, seed);
            let mut reference = Reference::default();
            references.push(x.chunks_exact(HIDDEN).map(|x| reference.token(&model.layers, x)).collect::<Vec<_>>());
            let mut cache = model.empty(n as i32 + 2 + n as i32 % 3)?;
            if n > 0 {
                let x = Array::from_slice(&x[..n * HIDDEN], (1, n as i32, HIDDEN as i32))?;
                cache = model.decoder.forward(&x, vec![cache])?.buffers.remove(0);
            }
            caches.push(cache);
            input.push(x[n * HIDDEN..].to_vec());
        }
        // Two steps of a token, so that the second reads what the first has written.
        for step in 0..2 {
            let x: Vec<f32> = input.iter().flat_map(|x| &x[step * HIDDEN..(step + 1) * HIDDEN]).copied().collect();
            let decoded =
                model.decoder.forward(&Array::from_slice(&x, (before.len() as i32, 1, HIDDEN as i32))?, caches)?;
            let expected: Vec<f64> = references.iter().zip(before).flat_map(|(r, n)| r[n + step].clone()).collect();
            assert_close(&decoded.output.to_vec::<f32>()?, &expected, &format!("after {before:?}, step {step}"));
            caches = decoded.buffers;
        }
        assert!(caches.iter().zip(before).all(|(cache, n)| cache.len == n + 2));
        // As many tokens each, and more than one.
        let x = noise(2 * 3 * HIDDEN, 5);
        let decoded = model
            .decoder
            .forward(&Array::from_slice(&x, (2, 3, HIDDEN as i32))?, vec![model.empty(3)?, model.empty(4)?])?;
        let expected = x.chunks_exact(3 * HIDDEN).flat_map(|x| {
            let mut reference = Reference::default();
            x.chunks_exact(HIDDEN).flat_map(|x| reference.token(&model.layers, x)).collect::<Vec<_>>()
        });
        assert_close(&decoded.output.to_vec::<f32>()?, &expected.collect::<Vec<_>>(), "two of three tokens");
    }
    Ok(())
}

#[test]
fn layer_by_layer_gives_the_same_and_so_does_a_gradient() -> oxmlx::Result<()> {
    let model = Model::new(false)?;
    let x = Array::from_slice(&noise(2 * HIDDEN, 4), (1, 2, HIDDEN as i32))?;
    let sum = |x: &[Array]| ops::sum(&model.decoder.forward(&x[0], vec![model.empty(4)?])?.output);
    let slope = oxmlx::transforms::grad(sum, &[0])(&[x])?[0].to_vec::<f32>()?;
    let at = |i: usize, by: f32| -> oxmlx::Result<f32> {
        let mut moved = noise(2 * HIDDEN, 4);
        moved[i] += by;
        sum(&[Array::from_slice(&moved, (1, 2, HIDDEN as i32))?])?.item::<f32>()
    };
    for i in [0, 70, 127] {
        let expected = (at(i, 0.01)? - at(i, -0.01)?) / 0.02;
        assert!((slope[i] - expected).abs() < 0.02 * (1.0 + expected.abs()), "entry {i}: {}, {expected}", slope[i]);
    }
    // The same of two sequences with a cache each.
    let pair = |x: &[Array]| ops::sum(&model.decoder.forward(&x[0], vec![model.empty(4)?, model.empty(2)?])?.output);
    let x = Array::from_slice(&noise(2 * HIDDEN, 4).repeat(2), (2, 2, HIDDEN as i32))?;
    let both = oxmlx::transforms::grad(pair, &[0])(&[x])?[0].to_vec::<f32>()?;
    for (i, (both, one)) in both.iter().zip(slope.iter().chain(&slope)).enumerate() {
        assert!((both - one).abs() < 1e-4 * (1.0 + one.abs()), "entry {i}: {both}, alone {one}");
    }
    Ok(())
}

#[test]
fn a_decoder_writes_its_cache_in_place() -> oxmlx::Result<()> {
    let model = Model::new(false)?;
    let x = Array::from_slice(&noise(HIDDEN, 3), (1, 1, HIDDEN as i32))?;
    let buffers = model.decoder.forward(&x, vec![model.empty(8)?])?.buffers;
    // A GPU has MLX's own nodes, which promise no place.
    let address = |buffers: &KvBuffers| -> oxmlx::Result<Option<[*const f32; 2]>> {
        oxmlx::eval(&[buffers.keys.clone(), buffers.values.clone()])?;
        let place = |a: &Array| Ok::<_, oxmlx::Error>(a.try_as_slice::<f32>()?.as_ptr());
        let on_cpu = oxmlx::Device::current()? == oxmlx::Device::Cpu;
        Ok(if on_cpu { Some([place(&buffers.keys)?, place(&buffers.values)?]) } else { None })
    };
    let before = address(&buffers[0])?;
    let decoded = model.decoder.forward(&x, buffers)?;
    decoded.output.eval()?;
    assert_eq!(address(&decoded.buffers[0])?, before);
    Ok(())
}

#[test]
fn a_cache_that_somebody_else_holds_keeps_its_values() -> oxmlx::Result<()> {
    let model = Model::new(false)?;
    let x = Array::from_slice(&noise(HIDDEN, 3), (1, 1, HIDDEN as i32))?;
    let empty = model.empty(8)?;
    let held = empty.keys.clone();
    let decoded = model.decoder.forward(&x, vec![empty])?;
    decoded.output.eval()?;
    assert!(held.to_vec::<f32>()?.iter().all(|&k| k == 0.0));
    assert!(decoded.buffers[0].keys.to_vec::<f32>()?.iter().any(|&k| k != 0.0));
    Ok(())
}

#[test]
fn a_decoder_refuses_caches_that_are_not_its_own() -> oxmlx::Result<()> {
    let model = Model::new(false)?;
    let x = Array::from_slice(&noise(HIDDEN, 3), (1, 1, HIDDEN as i32))?;
    let KvBuffers { keys, values, .. } = model.empty(8)?;
    let one = keys.get(..1)?;
    let cases = [
        ("a layer is missing", KvBuffers { keys: one, values: values.clone(), len: 0 }),
        ("there is no room", KvBuffers { keys: keys.clone(), values: values.clone(), len: 8 }),
        ("the end overflows", KvBuffers { keys: keys.clone(), values, len: usize::MAX }),
        ("another number of dimensions", KvBuffers { keys: keys.get(0)?, values: keys, len: 0 }),
    ];
    for (why, buffers) in [("no caches", vec![]), ("two for one sequence", vec![model.empty(8)?, model.empty(8)?])] {
        let error = model.decoder.forward(&x, buffers).expect_err(why);
        assert_eq!(error.kind(), oxmlx::ErrorKind::Shape, "{why}: {error}");
    }
    for (why, buffers) in cases {
        let error = model.decoder.forward(&x, vec![buffers]).expect_err(why);
        assert_eq!(error.kind(), oxmlx::ErrorKind::Shape, "{why}: {error}");
    }
    Ok(())
}

/// Such numbers were multiplied in 32 bits, and wrapped around to sizes that fit.
#[test]
fn head_counts_that_fit_nothing_are_an_error_of_shape() -> oxmlx::Result<()> {
    let (norm, square, rope) = (Array::ones::<f32>(64)?, Array::ones::<f32>((64, 64))?, Rope::new(4, 10_000.0));
    let (norm, m) = (Norm { weight: &norm, eps: EPS }, Matrix::Plain(&square));
    let (x, cache) = (Array::ones::<f32>((1, 1, 64))?, Array::zeros::<f32>((1, 16, 8, 4))?);
    let buffers = || KvBuffers { keys: cache.clone(), values: cache.clone(), len: 0 };
    for (heads, kv_heads, head_dim) in [
        ((1 << 30) + 16, (1 << 30) + 16, 4),
        (i32::MIN, 1, 64),
        (i32::MAX, i32::MAX, i32::MAX),
        (16, -16, 4),
        (0, 0, 0),
    ] {
        let attention = CachedAttention { heads, kv_heads, head_dim, scale: 1.0, rope: &rope, window: None };
        let error = oxmlx::fused::cached_attention([&x, &x, &x], buffers(), attention).expect_err("no such heads");
        assert_eq!(error.kind(), oxmlx::ErrorKind::Shape);
        let layer = DecoderLayer {
            attention_norm: norm,
            qkv: [m; 3],
            attention,
            o: m,
            mlp_norm: norm,
            gate: m,
            up: m,
            down: m,
        };
        let KvBuffers { keys, values, len } = buffers();
        let stack = KvBuffers { keys: ops::expand_dims(&keys, 0)?, values: ops::expand_dims(&values, 0)?, len };
        let error = Decoder::new(&[layer])?.forward(&x, vec![stack]).expect_err("no such heads");
        assert_eq!(error.kind(), oxmlx::ErrorKind::Shape);
    }
    Ok(())
}
