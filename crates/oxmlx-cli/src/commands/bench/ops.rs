//! `oxmlx bench ops`: single operations as oxmlx's users call them, MLX's dispatch included.

use std::fmt::Write as _;

use oxmlx::quantize::{Affine, Quantized, quantized_matmul};
use oxmlx::{Array, Dtype, Result, eval, fast, ops};
use oxmlx_lm::sampling::Rng;
use oxmlx_lm::{ModelFiles, weights};
use serde_json::json;

use super::Report;
use super::measure::{Memory, Rounds, seconds};
use crate::bench_args::OpsBench;
use crate::failure::Failure;

/// Bytes of matrices that are taken in turn: more than caches hold, as a model's are.
const IN_TURN: usize = 128 << 20;

/// One line of the report.
struct Line {
    name: String,
    seconds: Rounds,
    /// Multiplications and additions of a call; 0 where they tell nothing.
    flops: f64,
    /// Bytes that a call reads and writes; 0 where they tell nothing.
    bytes: f64,
}

/// What lines are measured with.
struct Bench {
    rounds: u32,
    rng: Rng,
    lines: Vec<Line>,
}

pub(super) fn run(args: &OpsBench) -> std::result::Result<Report, Failure> {
    let threads = args.how.threads()?;
    oxmlx::runtime::set_cpu_threads(threads);
    let files = args.source.files()?;
    let mut bench = Bench { rounds: args.how.rounds, rng: Rng::new(1), lines: Vec::new() };
    for dtype in [Dtype::Float32, Dtype::Bfloat16, Dtype::Float16] {
        bench.matmul(1024, dtype)?;
    }
    bench.matvec("4-bit matvec 4096x4096".to_owned(), [4096, 4096], Some(Affine::new(64, 4)?))?;
    bench.matvec("bfloat16 matvec 4096x4096".to_owned(), [4096, 4096], None)?;
    bench.norms()?;
    bench.attention("attention, 1 query, 4096 keys", 1, 4096)?;
    bench.attention("attention, 512 queries and keys", 512, 512)?;
    if let Some((_, files)) = &files {
        bench.layer(files)?;
    }
    let bandwidth = Memory::new().bandwidth(threads);
    Ok(bench.report(threads, bandwidth))
}

impl Bench {
    /// Times a call that gives an array to evaluate.
    fn add(&mut self, name: String, [flops, bytes]: [f64; 2], call: impl Fn() -> Result<Array>) -> Result<()> {
        let seconds = seconds(self.rounds, || eval(&[call()?]))?;
        self.lines.push(Line { name, seconds, flops, bytes });
        Ok(())
    }

    /// Random numbers between -1 and 1.
    fn array(&mut self, shape: &[i32], dtype: Dtype) -> Result<Array> {
        let elements = shape.iter().product::<i32>();
        let values: Vec<f32> = (0..elements).map(|_| self.rng.next_f64() as f32 * 2.0 - 1.0).collect();
        let array = Array::from_slice(&values, shape)?.astype(dtype)?;
        array.eval()?;
        Ok(array)
    }

    fn matmul(&mut self, n: i32, dtype: Dtype) -> Result<()> {
        let (a, b) = (self.array(&[n, n], dtype)?, self.array(&[n, n], dtype)?);
        let flops = 2.0 * f64::from(n).powi(3);
        self.add(format!("{dtype} matmul {n}"), [flops, 0.0], || ops::matmul(&a, &b))
    }

    /// A row times matrices of these rows and columns; the time is that of one product of a graph of many.
    fn matvec(&mut self, name: String, [rows, columns]: [i32; 2], affine: Option<Affine>) -> Result<()> {
        let x = self.array(&[1, columns], Dtype::Bfloat16)?;
        let elements = (rows * columns) as usize;
        let bytes = match affine {
            Some(affine) => elements * affine.bits() as usize / 8 + elements / affine.group_size() as usize * 4,
            None => 2 * elements,
        };
        let count = (IN_TURN / bytes).clamp(1, 64);
        let matrices = (0..count).map(|_| self.matrix([rows, columns], affine)).collect::<Result<Vec<_>>>()?;
        let call = || -> Result<()> {
            let products = matrices.iter().map(|matrix| matrix.times(&x)).collect::<Result<Vec<_>>>()?;
            eval(&products)
        };
        let all = seconds(self.rounds, call)?;
        let seconds = Rounds::new(all.sorted().iter().map(|seconds| seconds / count as f64).collect());
        self.lines.push(Line { name, seconds, flops: 2.0 * elements as f64, bytes: bytes as f64 });
        Ok(())
    }

    fn matrix(&mut self, [rows, columns]: [i32; 2], affine: Option<Affine>) -> Result<Matrix> {
        let Some(affine) = affine else {
            // Of each number the sign and the fraction are random.
            let word = |rng: &mut Rng| rng.next_u64() as u32 & 0x807f_807f | 0x3c00_3c00;
            let words: Vec<u32> = (0..rows * columns / 2).map(|_| word(&mut self.rng)).collect();
            let matrix = Array::from_slice(&words, (rows, columns / 2))?.view(Dtype::Bfloat16)?;
            matrix.eval()?;
            return Ok(Matrix::Dense(matrix));
        };
        let packed = columns * affine.bits() / 32;
        let words: Vec<u32> = (0..rows * packed).map(|_| self.rng.next_u64() as u32).collect();
        let parts = (rows, columns / affine.group_size());
        let scales = ops::full(parts, &Array::scalar(0.002f32)?)?.astype(Dtype::Bfloat16)?;
        let biases = ops::full(parts, &Array::scalar(-0.015f32)?)?.astype(Dtype::Bfloat16)?;
        eval(&[scales.clone(), biases.clone()])?;
        Ok(Matrix::Packed(Quantized::affine(Array::from_slice(&words, (rows, packed))?, scales, biases, affine)))
    }

    fn norms(&mut self) -> Result<()> {
        let (x, weight) = (self.array(&[512, 4096], Dtype::Float32)?, self.array(&[4096], Dtype::Float32)?);
        let bytes = 2.0 * x.nbytes() as f64;
        self.add("rms_norm 512x4096".to_owned(), [0.0, bytes], || fast::rms_norm(&x, Some(&weight), 1e-5))?;
        self.add("layer_norm 512x4096".to_owned(), [0.0, bytes], || fast::layer_norm(&x, Some(&weight), None, 1e-5))
    }

    /// 32 heads of 64, 8 of them with keys.
    fn attention(&mut self, name: &str, queries: i32, keys: i32) -> Result<()> {
        let q = self.array(&[1, 32, queries, 64], Dtype::Bfloat16)?;
        let [k, v] = [(); 2].map(|()| self.array(&[1, 8, keys, 64], Dtype::Bfloat16));
        let (k, v) = (k?, v?);
        let pairs = if queries == 1 { keys } else { queries * (queries + 1) / 2 };
        let (flops, bytes) = (4.0 * 64.0 * 32.0 * f64::from(pairs), 2.0 * k.nbytes() as f64);
        let bytes = if queries == 1 { bytes } else { 0.0 };
        self.add(name.to_owned(), [flops, bytes], || {
            fast::scaled_dot_product_attention(&q, &k, &v, 0.125, fast::Mask::Causal)
        })
    }

    /// A row times matrices like those of a model's first layer, and of its head.
    fn layer(&mut self, files: &ModelFiles) -> std::result::Result<(), Failure> {
        let config = files.config();
        let (hidden, all, kv) = (config.hidden_size, config.heads * config.head_dim, config.kv_heads * config.head_dim);
        let layer = |module: &str| format!("model.layers.0.{module}");
        let head = if files.ties_embeddings() { "model.embed_tokens" } else { "lm_head" };
        let modules = [
            (layer("self_attn.q_proj"), all, hidden),
            (layer("self_attn.k_proj"), kv, hidden),
            (layer("self_attn.o_proj"), hidden, all),
            (layer("mlp.gate_proj"), config.intermediate_size, hidden),
            (layer("mlp.down_proj"), hidden, config.intermediate_size),
            (head.to_owned(), config.vocab_size, hidden),
        ];
        for (module, rows, columns) in modules {
            // A layer of experts has no products of its own.
            if !files.checkpoint().contains(&format!("{module}.weight")) {
                continue;
            }
            let (affine, kind) = match files.checkpoint().matrix(&module, rows, columns)? {
                weights::Matrix::Affine { group_size, bits, .. } => {
                    (Some(Affine::new(group_size as i32, bits as i32)?), format!("{bits}-bit"))
                }
                weights::Matrix::Plain(_) => (None, "bfloat16".to_owned()),
            };
            let short = module.trim_start_matches("model.layers.0.");
            let name = format!("{short}, {kind} matvec {rows}x{columns}");
            self.matvec(name, [rows as i32, columns as i32], affine)?;
        }
        Ok(())
    }

    fn report(self, threads: usize, bandwidth: f64) -> Report {
        let mut table = format!(
            "{threads} threads, {} rounds; memory is read at {:.1} GB/s\n\n| operation | us | GF/s | GB/s |\n| --- | --: | --: | --: |\n",
            self.rounds,
            bandwidth / 1e9
        );
        let mut json = Vec::new();
        for Line { name, seconds, flops, bytes } in self.lines {
            let rate = |amount: f64| (amount > 0.0).then(|| amount / seconds.median() / 1e9);
            let shown = |rate: Option<f64>| rate.map_or_else(String::new, |rate| format!("{rate:.1}"));
            let (gflops, gbytes) = (rate(flops), rate(bytes));
            let us = seconds.median() * 1e6;
            let _ = writeln!(table, "| {name} | {us:.1} | {} | {} |", shown(gflops), shown(gbytes));
            let mut line = json!({ "name": name, "seconds": seconds.median(), "rounds": seconds.sorted() });
            for (key, rate) in [("gflops", gflops), ("gbytes_per_second", gbytes)] {
                if let Some(rate) = rate {
                    line[key] = rate.into();
                }
            }
            json.push(line);
        }
        let json = json!({ "threads": threads, "memory_bytes_per_second": bandwidth, "ops": json });
        Report { json, table }
    }
}

/// A matrix to multiply with.
enum Matrix {
    Dense(Array),
    Packed(Quantized),
}

impl Matrix {
    /// `x @ self^T`.
    fn times(&self, x: &Array) -> Result<Array> {
        match self {
            Self::Dense(matrix) => ops::matmul(x, &ops::transpose_all(matrix)?),
            Self::Packed(matrix) => quantized_matmul(x, matrix),
        }
    }
}
