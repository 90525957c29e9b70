//! A quick look at what the kernels reach on this machine: `cargo run --release --example kernel_report [filter]`.
//!
//! Each line is the best of many runs. Matrices are taken in turn from a set larger than the caches, as a model's are.

use std::time::Instant;

use half::{bf16, f16};
use oxmlx_kernels::attention::{Attention, Mask, attention};
use oxmlx_kernels::fused::{Heads, KvCache, Layer, Product, Weights, decoder, products};
use oxmlx_kernels::gemm::{Factors, gemm};
use oxmlx_kernels::ops::{Norm, Rope, argmax, rms_norm, rope, silu_mul};
use oxmlx_kernels::quant::{AffineShape, QuantMatrix, qmm};
use oxmlx_kernels::{Floats, FloatsMut, Level, MatMut, MatRef, Pool, View4};

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let threads = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(0);
    Pool::global().set_threads(threads);
    println!("{} threads, {:?}", Pool::global().threads(), Level::best());
    for (name, section) in [
        ("fork", fork as fn()),
        ("stream", stream),
        ("qmv", qmv),
        ("qmm", prefill),
        ("gemm", dense),
        ("attention", attend),
        ("ops", small),
        ("model", model),
    ] {
        if filter.is_empty() || filter == name {
            section();
        }
    }
}

/// The shortest time of `runs` calls, in seconds.
fn best(runs: usize, mut call: impl FnMut(usize)) -> f64 {
    let time = |i: usize, call: &mut dyn FnMut(usize)| {
        let start = Instant::now();
        call(i);
        start.elapsed().as_secs_f64()
    };
    (0..runs).map(|i| time(i, &mut call)).fold(f64::INFINITY, f64::min)
}

/// The median time of `runs` calls, in seconds.
fn median(runs: usize, mut call: impl FnMut(usize)) -> f64 {
    let mut all: Vec<f64> = (0..runs)
        .map(|i| {
            let start = Instant::now();
            call(i);
            start.elapsed().as_secs_f64()
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all[runs / 2]
}

fn fork() {
    let spin = |ns: u64| {
        let start = Instant::now();
        while start.elapsed().as_nanos() < u128::from(ns) {}
    };
    for ns in [500, 2000, 10_000] {
        let alone = best(2000, |_| (0..4).for_each(|_| spin(ns)));
        let both = median(2000, |_| Pool::global().parallel(4, |_| spin(ns)));
        let phases = median(2000, |_| Pool::global().phases(&[2; 20], |_, _| spin(ns)));
        println!("20 phases of 2 tasks of {ns} ns: {:.2} us", phases * 1e6);
        println!("fork-join  4 tasks of {ns} ns: alone {:.2} us, pool {:.2} us", alone * 1e6, both * 1e6);
    }
}

fn stream() {
    let data = vec![1u64; 32 << 20];
    let parts: Vec<&[u64]> = data.chunks(1 << 16).collect();
    let time = best(10, |_| {
        Pool::global().parallel(parts.len(), |i| {
            std::hint::black_box(parts[i].iter().fold(0u64, |a, &b| a ^ b));
        });
    });
    println!("stream     read {:.1} GB/s", (data.len() * 8) as f64 / time / 1e9);
}

fn qmv() {
    let shapes = if std::env::var("ONE").is_ok() {
        vec![(4096, 4096, 4)]
    } else {
        vec![(576, 576, 4), (192, 576, 4), (1536, 576, 4), (576, 1536, 4), (49152, 576, 8), (4096, 4096, 4)]
    };
    for (n, k, bits) in shapes {
        for m in [1, 2, 4, 8] {
            affine(n, k, bits, 32, m);
        }
    }
    for bits in [2, 3, 5, 6, 8] {
        affine(4096, 4096, bits, 64, 1);
    }
}

fn prefill() {
    for (n, k) in [(576, 576), (192, 576), (1536, 576), (576, 1536), (2048, 2048)] {
        for m in [16, 24, 32, 64, 512] {
            affine(n, k, 4, 32, m);
        }
    }
}

fn dense() {
    let n = 1024;
    let a: Vec<f32> = (0..n * n).map(|i| (i % 7) as f32 - 3.0).collect();
    let half: Vec<f16> = a.iter().map(|&x| f16::from_f32(x)).collect();
    let short: Vec<bf16> = a.iter().map(|&x| bf16::from_f32(x)).collect();
    for (name, x) in [("f32", Floats::F32(&a)), ("f16", Floats::F16(&half)), ("bf16", Floats::Bf16(&short))] {
        for m in [1, 4, 8, 32, 256, 1024] {
            for flip in [false, true] {
                let mut y = vec![0.0f32; m * n];
                let b = MatRef::new(x, n, n).expect("sizes fit");
                let b = if flip { b.t() } else { b };
                let time = best(if m > 100 { 30 } else { 200 }, |_| {
                    let out = MatMut::new(FloatsMut::F32(&mut y), m, n).expect("sizes fit");
                    let a = MatRef::new(x, m, n).expect("sizes fit");
                    gemm(Level::best(), a, b, out, Factors::default()).expect("sizes fit");
                });
                let kind = if flip { "a @ b^T" } else { "a @ b" };
                let flops = 2.0 * (m * n * n) as f64 / time / 1e9;
                println!("gemm {name:4} {kind:7} {m:4} x {n} x {n}: {:8.1} us {flops:6.1} GF/s", time * 1e6);
            }
        }
    }
}

fn attend() {
    for (h, kh, d) in [(9, 3, 64), (32, 8, 128)] {
        for (l, n) in [(1, 32), (1, 512), (1, 4096), (1, 16384), (64, 512), (512, 512), (512, 4096)] {
            let half: Vec<f16> = (0..kh * n * d).map(|i| f16::from_f32((i % 13) as f32 * 0.1)).collect();
            let full: Vec<f32> = half.iter().map(|x| x.to_f32()).collect();
            let q = vec![0.1f32; h * l * d];
            let mut y = vec![0.0f32; h * l * d];
            for (name, kv, size) in [("f32", Floats::F32(&full), 4), ("f16", Floats::F16(&half), 2)] {
                let q = View4::new(Floats::F32(&q), [1, h, l, d]).expect("sizes fit");
                let kv = View4::new(kv, [1, kh, n, d]).expect("sizes fit");
                let what = Attention::new(q, kv, kv, 0.1).and_then(|a| a.mask(Mask::Causal { window: None }));
                let what = what.expect("sizes fit");
                let time = best(if l == 1 { 300 } else { 10 }, |_| {
                    attention(Level::best(), what, FloatsMut::F32(&mut y)).expect("sizes fit");
                });
                let bytes = (2 * kh * n * d * size) as f64;
                let pairs = (0..l).map(|i| i + 1 + n - l).sum::<usize>();
                println!(
                    "attention {name} heads {h}/{kh} width {d} queries {l:4} keys {n:5}: {:9.1} us {:5.1} GB/s {:6.1} GF/s",
                    time * 1e6,
                    bytes / time / 1e9,
                    (4 * pairs * h * d) as f64 / time / 1e9
                );
            }
        }
    }
}

fn small() {
    let line = |name: &str, time: f64| println!("{name:40} {:9.2} us", time * 1e6);
    for (m, n) in [(1, 576), (512, 576), (1, 2048), (512, 2048)] {
        let x = vec![0.5f32; m * n];
        let mut y = vec![0.0f32; m * n];
        let weight = Some(Floats::F32(&x[..n]));
        let norm = Norm { weight, bias: None, eps: 1e-5 };
        let time = best(200, |_| {
            let out = MatMut::new(FloatsMut::F32(&mut y), m, n).expect("sizes fit");
            rms_norm(Level::best(), MatRef::new(Floats::F32(&x), m, n).expect("sizes fit"), norm, out).expect("fits");
        });
        line(&format!("rms_norm {m} x {n}"), time);
        let time = best(200, |_| {
            silu_mul(Level::best(), Floats::F32(&x), Floats::F32(&x), FloatsMut::F32(&mut y)).expect("sizes fit");
        });
        line(&format!("silu_mul {m} x {n}"), time);
        let view = View4::new(Floats::F32(&x), [1, n / 64, m, 64]).expect("sizes fit");
        let time = best(200, |_| {
            rope(Level::best(), view, Rope::new(64, 1e5), &[100], FloatsMut::F32(&mut y)).expect("sizes fit");
        });
        line(&format!("rope {m} x {} heads of 64", n / 64), time);
    }
    let x: Vec<f32> = (0..151_936).map(|i| (i % 9973) as f32).collect();
    for n in [49_152, 151_936] {
        let time = best(200, |_| {
            argmax(Level::best(), MatRef::new(Floats::F32(&x), 1, n).expect("sizes fit"), &mut [0]).expect("sizes fit");
        });
        line(&format!("argmax {n}"), time);
    }
}

/// A quantized matrix that owns its memory.
struct Owned {
    words: Vec<u32>,
    scales: Vec<f16>,
    biases: Vec<f16>,
    shape: AffineShape,
}

impl Owned {
    fn new(rows: usize, cols: usize, bits: usize) -> Self {
        let words = (0..rows * cols / 32 * bits).map(|i| (i as u32).wrapping_mul(2_654_435_761)).collect();
        let scales = vec![f16::from_f32(0.001); rows * cols / 32];
        Self { words, biases: scales.clone(), scales, shape: AffineShape { rows, cols, bits, group: 32 } }
    }

    fn matrix(&self) -> QuantMatrix<'_> {
        let (scales, biases) = (Floats::F16(&self.scales), Floats::F16(&self.biases));
        QuantMatrix::affine(&self.words, scales, biases, self.shape).expect("sizes fit")
    }

    fn weights(&self) -> Weights<'_> {
        Weights::quantized(self.matrix())
    }
}

/// One step of SmolLM2-135M (Q4_1, head Q8_0), without a graph around them.
fn model() {
    let layer = || [(576, 576), (192, 576), (192, 576), (576, 576), (1536, 576), (1536, 576), (576, 1536)];
    let layers: Vec<Vec<Owned>> =
        (0..30).map(|_| layer().into_iter().map(|(n, k)| Owned::new(n, k, 4)).collect()).collect();
    let head = Owned::new(49152, 576, 8);
    let weight = vec![1.0f32; 576];
    let norm = Norm { weight: Some(Floats::F32(&weight)), bias: None, eps: 1e-5 };
    let rope = Rope::new(64, 1e5).traditional(true);
    let heads = Heads { heads: 9, kv_heads: 3, width: 64, scale: 0.125, rope, window: None };
    for (batch, tokens, past) in [
        (1, 1, 32),
        (1, 1, 512),
        (1, 1, 4096),
        (1, 1, 16384),
        (1, 4, 512),
        (1, 512, 0),
        (2, 1, 64),
        (4, 1, 64),
        (8, 1, 64),
    ] {
        let (m, capacity) = (batch * tokens, past + tokens);
        let size = 30 * batch * 3 * capacity * 64;
        let mut caches = [vec![0.01f32; size], vec![0.01f32; size]];
        let mut x = vec![0.1f32; m * 576];
        let mut logits = vec![0.0f32; batch * 49152];
        let mut step = |_: usize| {
            let level = Level::best();
            let layers = layers.iter().map(|w| {
                let [q, k, v, o, gate, up, down] = [0, 1, 2, 3, 4, 5, 6].map(|i| w[i].weights());
                Layer { attention_norm: norm, q, k, v, o, mlp_norm: norm, gate, up, down, heads }
            });
            let layers: Vec<Layer<'_>> = layers.collect();
            let [keys, values] = caches.each_mut().map(|x| FloatsMut::F32(x));
            decoder(level, &mut x, [batch, tokens], &layers, vec![KvCache { keys, values, capacity, len: past }])
                .expect("sizes fit");
            let last = Floats::F32(&x[(tokens - 1) * 576..]);
            let out = MatMut::new(FloatsMut::F32(&mut logits), batch, 49152).expect("sizes fit");
            let list = vec![Product { weights: head.weights(), add: None, out }];
            let last = MatRef::strided(last, [batch, 576], [tokens * 576, 1]).expect("sizes fit");
            products(level, last, Some(norm), list).expect("sizes fit");
            let logits = MatRef::new(Floats::F32(&logits), batch, 49152).expect("sizes fit");
            argmax(level, logits, &mut vec![0; batch]).expect("sizes fit");
        };
        let rounds = if m > 100 { 5 } else { 60 };
        let (low, mid) = (best(rounds, &mut step), median(rounds, &mut step));
        println!(
            "smollm2 {batch} x {tokens:3} tokens after {past:5}: best {:8.2} ms ({:6.0} tok/s)  median {:8.2} ms ({:6.0} tok/s)",
            low * 1e3,
            m as f64 / low,
            mid * 1e3,
            m as f64 / mid
        );
    }
}

fn affine(n: usize, k: usize, bits: usize, group: usize, m: usize) {
    let (words, groups) = (n * k / 32 * bits, n * k / group);
    let cached = std::env::var("CACHED").is_ok();
    let copies = if cached { 1 } else { (100_000_000 / (words * 4 + groups * 4)).clamp(1, 400) };
    let packed: Vec<u32> = (0..words * copies).map(|i| (i as u32).wrapping_mul(2_654_435_761)).collect();
    let scales = vec![f16::from_f32(0.01); groups * copies];
    let x = vec![0.5f32; m * k];
    let mut y = vec![0.0f32; m * n];
    let shape = AffineShape { rows: n, cols: k, bits, group };
    let all: Vec<QuantMatrix> = (0..copies)
        .map(|c| {
            let scales = Floats::F16(&scales[c * groups..(c + 1) * groups]);
            QuantMatrix::affine(&packed[c * words..(c + 1) * words], scales, scales, shape).expect("sizes fit")
        })
        .collect();
    let mut call = |i: usize| {
        let out = MatMut::new(FloatsMut::F32(&mut y), m, n).expect("sizes fit");
        let x = MatRef::new(Floats::F32(&x), m, k).expect("sizes fit");
        qmm(Level::best(), x, &all[i % copies], out).expect("sizes fit");
    };
    let rounds = (copies * 3).max(12);
    let (low, mid) = (best(rounds, &mut call), median(rounds, &mut call));
    // The scales vector serves as biases too, so a call reads the same bytes twice from cache: count them once.
    let bytes = (words * 4 + groups * 2) as f64;
    let weights = (words * 4 + groups * 4) as f64;
    println!(
        "qmm  {bits} bits g{group} {m} x {k:5} x {n:5}: best {:8.1} us {:5.1} GB/s ({:5.1} as scale+bias)  median {:8.1} us  {:6.1} GF/s",
        low * 1e6,
        bytes / low / 1e9,
        weights / low / 1e9,
        mid * 1e6,
        2.0 * (m * n * k) as f64 / low / 1e9
    );
}
