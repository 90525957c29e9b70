//! How far each kernel is from f64, beside MLX's own.
//!
//! `cargo test -p oxmlx --release --test cpu_kernels accuracy -- --nocapture` prints the table of docs/performance.md.

use oxmlx::fast::{self, Attention, Mask, Rope};
use oxmlx::quantize::{Affine, Format, dequantize_as, quantize, quantized_matmul};
use oxmlx::{Array, Dtype, Result, ops};
use oxmlx_kernels::attention::Mask as KernelMask;
use oxmlx_kernels::reference::{self, Sizes};
use oxmlx_sys::generated as mlx;
use oxmlx_sys::types::MaskMode;

use super::products::mlx_quantized;
use super::{FLOATS, mlx_attention_with, normal, raw};

/// A kernel's results in our form, in MLX's, and in f64.
struct Case {
    name: String,
    ours: Array,
    theirs: Array,
    exact: Vec<f64>,
}

/// Largest and mean error, each in units of the results' root mean square.
struct Errors {
    max: f64,
    mean: f64,
}

impl Case {
    fn errors(&self, of: &Array) -> Result<Errors> {
        let got = wide(of)?;
        assert_eq!(got.len(), self.exact.len(), "{}", self.name);
        let size = (self.exact.iter().map(|x| x * x).sum::<f64>() / got.len() as f64).sqrt();
        let errors: Vec<f64> = got.iter().zip(&self.exact).map(|(got, want)| (got - want).abs() / size).collect();
        let (max, sum) = errors.iter().fold((0.0, 0.0), |(max, sum): (f64, f64), &e| (max.max(e), sum + e));
        Ok(Errors { max, mean: sum / errors.len() as f64 })
    }
}

fn wide(x: &Array) -> Result<Vec<f64>> {
    Ok(x.astype(Dtype::Float32)?.to_vec::<f32>()?.into_iter().map(f64::from).collect())
}

fn values(sums: Vec<reference::Sum>) -> Vec<f64> {
    sums.into_iter().map(|sum| sum.value).collect()
}

#[test]
fn no_kernel_is_less_accurate_than_mlx_own() -> Result<()> {
    super::on_the_cpu();
    let mut all = Vec::new();
    for dtype in FLOATS {
        all.extend(products(dtype)?);
        all.extend(rows(dtype)?);
        all.extend(attention(dtype)?);
    }
    println!("| kernel | ours, mean | ours, max | MLX, mean | MLX, max |\n| --- | --: | --: | --: | --: |");
    let mut worse = Vec::new();
    for case in &all {
        let (ours, theirs) = (case.errors(&case.ours)?, case.errors(&case.theirs)?);
        println!("| {} | {:.1e} | {:.1e} | {:.1e} | {:.1e} |", case.name, ours.mean, ours.max, theirs.mean, theirs.max);
        // Where both round one exact result, chance decides about the last per cent, and about the largest of all errors.
        if ours.mean > 1.02 * theirs.mean || ours.max > 1.5 * theirs.max {
            worse.push(&case.name);
        }
    }
    assert!(worse.is_empty(), "less accurate than MLX's own: {worse:?}");
    Ok(())
}

fn products(dtype: Dtype) -> Result<Vec<Case>> {
    let [m, k, n] = [64, 1024, 96];
    let sizes = [m, k, n].map(|n| n as usize);
    let (a, b) = (normal(&[m, k], dtype, 1)?, normal(&[k, n], dtype, 2)?);
    let theirs = match dtype {
        #[cfg(target_os = "linux")]
        Dtype::Float32 => super::blas::product_of_the_wheel(&a, &b)?,
        _ => mlx::ops::matmul(&raw(&a), &raw(&b))?.into(),
    };
    let exact = values(reference::matmul(&wide(&a)?, &wide(&b)?, sizes));
    let mut cases = vec![Case { name: format!("matmul, {dtype}"), ours: ops::matmul(&a, &b)?, theirs, exact }];
    let formats =
        [("4 bits", Affine::new(64, 4)?.into()), ("8 bits", Affine::new(64, 8)?.into()), ("mxfp4", Format::Mxfp4)];
    for (format_name, format) in formats {
        let q = quantize(&normal(&[n, k], dtype, 3)?, format)?;
        let mut parts = q.clone();
        if let Some(biases) = &mut parts.biases {
            (parts.scales, *biases) = (parts.scales.astype(Dtype::Float32)?, biases.astype(Dtype::Float32)?);
        }
        let w = wide(&dequantize_as(&parts, Dtype::Float32)?)?;
        for (rows, name) in [(1, "matvec"), (m, "matmul")] {
            let x = normal(&[rows, k], dtype, 4)?;
            let exact = values(reference::qmm(&wide(&x)?, &w, [rows as usize, sizes[1], sizes[2]]));
            let (ours, theirs) = (quantized_matmul(&x, &q)?, mlx_quantized(&x, &q)?);
            cases.push(Case { name: format!("quantized {name} {format_name}, {dtype}"), ours, theirs, exact });
        }
    }
    Ok(cases)
}

fn rows(dtype: Dtype) -> Result<Vec<Case>> {
    let (rows, width) = (64, 1000);
    let x = normal(&[rows, width], dtype, 5)?;
    let (w, b) = (normal(&[width], dtype, 6)?, normal(&[width], dtype, 7)?);
    let [x64, w64, b64] = [wide(&x)?, wide(&w)?, wide(&b)?];
    let (raw_x, raw_w, raw_b) = (raw(&x), raw(&w), raw(&b));
    let cols = width as usize;
    let up = normal(&[rows, width], dtype, 8)?;
    let silu = mlx::ops::multiply(&raw_x, &mlx::ops::sigmoid(&raw_x)?)?;
    // [batch, heads, tokens, width of a head]
    let (tokens, head, offset) = (16, 64, 100);
    let heads = normal(&[1, 4, tokens, head], dtype, 9)?;
    let wavelengths: Vec<f64> = (0..head / 2).map(|i| 10_000f64.powf(2.0 * f64::from(i) / f64::from(head))).collect();
    let heads64 = wide(&heads)?;
    let turned = heads64.chunks(head as usize).enumerate().flat_map(|(row, x)| {
        let position = f64::from(offset + row as i32 % tokens);
        reference::rope(x, position, &wavelengths, false)
    });
    let case = |name: &str,
                ours: Result<Array>,
                theirs: oxmlx_sys::Result<oxmlx_sys::Array>,
                exact: Vec<f64>|
     -> Result<Case> {
        Ok(Case { name: format!("{name}, {dtype}"), ours: ours?, theirs: theirs?.into(), exact })
    };
    Ok(vec![
        case(
            "rms_norm",
            fast::rms_norm(&x, Some(&w), 1e-5),
            mlx::fast::rms_norm(&raw_x, Some(&raw_w), 1e-5),
            reference::rms_norm(&x64, Some(&w64), f64::from(1e-5f32), cols),
        )?,
        case(
            "layer_norm",
            fast::layer_norm(&x, Some(&w), Some(&b), 1e-5),
            mlx::fast::layer_norm(&raw_x, Some(&raw_w), Some(&raw_b), 1e-5),
            reference::layer_norm(&x64, (Some(&w64), Some(&b64)), f64::from(1e-5f32), cols),
        )?,
        case(
            "softmax",
            ops::softmax(&x, -1, true),
            mlx::ops::softmax_axes(&raw_x, &[-1], true),
            reference::softmax(&x64, cols),
        )?,
        case(
            "silu·mul",
            fast::swiglu(&x, &up),
            mlx::ops::multiply(&silu, &raw(&up)),
            reference::silu_mul(&x64, &wide(&up)?),
        )?,
        case(
            "rope",
            fast::rope(&heads, &Rope::new(head, 10_000.0), offset),
            mlx::fast::rope(&raw(&heads), head, false, Some(10_000.0), 1.0, offset, None),
            turned.collect(),
        )?,
    ])
}

fn attention(dtype: Dtype) -> Result<Vec<Case>> {
    let (h, kh, n, d) = (6, 2, 200, 64);
    let mut cases = Vec::new();
    for (l, name) in [(1, "decode"), (100, "prefill")] {
        let q = normal(&[1, h, l, d], dtype, 10)?;
        let [k, v] = [11, 12].map(|seed| normal(&[1, kh, n, d], dtype, seed));
        let (k, v) = (k?, v?);
        let sizes = Sizes {
            batch: 1,
            heads: [h, kh].map(|n| n as usize),
            lengths: [l, n].map(|n| n as usize),
            widths: [d as usize; 2],
        };
        let exact = reference::attention(
            [&wide(&q)?, &wide(&k)?, &wide(&v)?],
            sizes,
            0.25,
            &KernelMask::Causal { window: None },
            None,
        );
        let ours = fast::attention(&q, &k, &v, Attention::new(0.25).mask(Mask::Causal))?;
        let theirs = mlx_attention_with(&q, &k, &v, MaskMode::Causal, None, None)?;
        cases.push(Case { name: format!("attention, {name}, {dtype}"), ours, theirs, exact });
    }
    Ok(cases)
}
