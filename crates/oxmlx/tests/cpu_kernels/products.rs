//! Products of 16-bit matrices and of quantized stacks against MLX's own nodes and f64, with their gradients.

use oxmlx::quantize::{Affine, Format, Picks, Quantized, gather_qmm, quantize, quantized_matmul};
use oxmlx::quantize::{dequantize_as, quantized_matmul_untransposed};
use oxmlx::transforms::{grad, vmap};
use oxmlx::{Array, Dtype, Result, ops};
use oxmlx_sys::generated::ops as mlx;
use oxmlx_sys::types::QuantMode;

use super::{assert_close, normal, raw, tolerance};

const HALVES: [Dtype; 2] = [Dtype::Float16, Dtype::Bfloat16];

/// The product in float32, which goes through the BLAS, rounded to the operands' dtype.
fn wide(a: &Array, b: &Array) -> Result<Array> {
    ops::matmul(&a.astype(Dtype::Float32)?, &b.astype(Dtype::Float32)?)?.astype(a.dtype())
}

#[test]
fn sixteen_bit_products_take_every_shape_and_layout_that_mlx_takes() -> Result<()> {
    super::on_the_cpu();
    let shapes: [(&[i32], &[i32]); 9] = [
        (&[5, 40], &[40, 7]),
        (&[2, 3, 40], &[40, 7]),
        (&[3, 1, 40], &[3, 40, 70]),
        (&[2, 1, 20, 40], &[3, 40, 9]),
        (&[40], &[40, 7]),
        (&[4, 5, 40], &[40]),
        (&[40], &[40]),
        (&[2, 5, 0], &[2, 0, 3]),
        (&[0, 5, 4], &[4, 3]),
    ];
    for dtype in HALVES {
        for (a, b) in shapes {
            let (a, b) = (normal(a, dtype, 1)?, normal(b, dtype, 2)?);
            let what = format!("{dtype} {:?} {:?}", a.shape(), b.shape());
            assert_close(&ops::matmul(&a, &b)?, &wide(&a, &b)?, tolerance(dtype), &what);
            if a.ndim() < 2 || b.ndim() < 2 {
                continue;
            }
            // The same elements, each matrix column by column.
            let turned = |x: &Array| ops::swapaxes(&ops::contiguous(&ops::swapaxes(x, -1, -2)?, false)?, -1, -2);
            assert_close(&ops::matmul(&turned(&a)?, &turned(&b)?)?, &wide(&a, &b)?, tolerance(dtype), &what);
        }
        let x = normal(&[3, 6, 5, 8], dtype, 3)?;
        // Axes in another order, every other row, rows in reverse.
        for view in
            [x.transpose_axes(&[1, 0, 3, 2])?, ops::slice(&x, &[0; 4], &[3, 6, 5, 8], &[1, 2, 1, 1])?, flipped(&x)?]
        {
            let w = normal(&[view.dim(-1).unwrap_or(0), 4], dtype, 4)?;
            assert_close(&ops::matmul(&view, &w)?, &wide(&view, &w)?, tolerance(dtype), "a view");
        }
    }
    Ok(())
}

/// The last axis but one in reverse order.
fn flipped(x: &Array) -> Result<Array> {
    let end: Vec<i32> =
        x.shape().iter().enumerate().map(|(i, &n)| if i + 2 == x.ndim() { -n - 1 } else { n }).collect();
    let start: Vec<i32> = (0..x.ndim()).map(|i| if i + 2 == x.ndim() { -1 } else { 0 }).collect();
    let steps: Vec<i32> = (0..x.ndim()).map(|i| if i + 2 == x.ndim() { -1 } else { 1 }).collect();
    ops::slice(x, &start, &end, &steps)
}

#[test]
fn sixteen_bit_products_have_mlx_gradients_and_vectorise() -> Result<()> {
    super::on_the_cpu();
    for (a, b) in
        [(&[5, 8][..], &[8, 3][..]), (&[2, 5, 8], &[8, 3]), (&[2, 5, 8], &[2, 8, 3]), (&[4, 1, 5, 8], &[2, 8, 3])]
    {
        let (a, b) = (normal(a, Dtype::Bfloat16, 5)?, normal(b, Dtype::Bfloat16, 6)?);
        let loss = |x: &[Array]| ops::sum(&ops::square(&ops::matmul(&x[0], &x[1])?)?);
        let ours = grad(loss, &[0, 1])(&[a.clone(), b.clone()])?;
        let wide = [a.astype(Dtype::Float32)?, b.astype(Dtype::Float32)?];
        let theirs = grad(loss, &[0, 1])(&wide)?;
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_close(ours, &theirs.astype(Dtype::Bfloat16)?, 3.0 * tolerance(Dtype::Bfloat16), "a gradient");
        }
    }
    let (a, b) = (normal(&[6, 5, 8], Dtype::Float16, 7)?, normal(&[8, 3], Dtype::Float16, 8)?);
    let mapped = vmap(|x: &[Array]| Ok(vec![ops::matmul(&x[0], &x[1])?]), &[Some(0), None], &[Some(0)]);
    assert_close(&mapped(&[a.clone(), b.clone()])?[0], &wide(&a, &b)?, tolerance(Dtype::Float16), "mapped");
    Ok(())
}

#[test]
fn sixteen_bit_addmm_is_near_f64_and_broadcasts_the_summand() -> Result<()> {
    super::on_the_cpu();
    for dtype in HALVES {
        let (a, b) = (normal(&[2, 5, 40], dtype, 9)?, normal(&[40, 7], dtype, 10)?);
        let product = ops::matmul(&a.astype(Dtype::Float32)?, &b.astype(Dtype::Float32)?)?;
        for shape in [&[7][..], &[5, 1], &[2, 5, 7], &[]] {
            let c = normal(shape, dtype, 11)?;
            for (alpha, beta) in [(1.0, 1.0), (0.5, -2.0), (2.0, 0.0)] {
                let kept = (c.astype(Dtype::Float32)? * Array::scalar(beta)?)?;
                let theirs = ((&product * Array::scalar(alpha)?)? + kept)?.astype(dtype)?;
                let what = format!("{dtype} {shape:?} {alpha} {beta}");
                assert_close(&ops::addmm(&c, &a, &b, alpha, beta)?, &theirs, tolerance(dtype), &what);
            }
        }
    }
    Ok(())
}

const FORMATS: [Format; 3] = [Format::Mxfp4, Format::Mxfp8, Format::Nvfp4];

fn mode(format: Format) -> QuantMode {
    match format {
        Format::Affine(_) => QuantMode::Affine,
        Format::Mxfp4 => QuantMode::Mxfp4,
        Format::Mxfp8 => QuantMode::Mxfp8,
        Format::Nvfp4 => QuantMode::Nvfp4,
    }
}

/// MLX's own product.
pub(super) fn mlx_quantized(x: &Array, q: &Quantized) -> Result<Array> {
    let biases = q.biases.as_ref().map(raw);
    let (x, w, scales) = (raw(x), raw(&q.weight), raw(&q.scales));
    let (group, bits) = (Some(q.format.group_size()), Some(q.format.bits()));
    Ok(mlx::quantized_matmul(&x, &w, &scales, biases.as_ref(), true, group, bits, mode(q.format))?.into())
}

/// MLX's own product of stacks.
fn mlx_gather(x: &Array, q: &Quantized, lhs: Option<&Array>, rhs: Option<&Array>, transpose: bool) -> Result<Array> {
    let [biases, lhs, rhs] = [q.biases.as_ref(), lhs, rhs].map(|a| a.map(raw));
    let (x, w, scales) = (raw(x), raw(&q.weight), raw(&q.scales));
    let (group, bits) = (Some(q.format.group_size()), Some(q.format.bits()));
    let (biases, lhs, rhs) = (biases.as_ref(), lhs.as_ref(), rhs.as_ref());
    Ok(mlx::gather_qmm(&x, &w, &scales, biases, lhs, rhs, transpose, group, bits, mode(q.format), None, false)?.into())
}

#[test]
fn float_formats_multiply_as_their_dequantized_values_do() -> Result<()> {
    super::on_the_cpu();
    for format in FORMATS {
        let q = quantize(&normal(&[64, 96], Dtype::Float32, 12)?, format)?;
        let w = dequantize_as(&q, Dtype::Float32)?;
        for dtype in super::FLOATS {
            for rows in [1, 5, 40] {
                let what = format!("{format:?} {dtype} {rows}");
                let x = normal(&[rows, 96], dtype, 13)?;
                let theirs = ops::matmul(&x.astype(Dtype::Float32)?, &w.transpose()?)?.astype(dtype)?;
                assert_close(&quantized_matmul(&x, &q)?, &theirs, tolerance(dtype), &what);
                let x = normal(&[rows, 64], dtype, 14)?;
                let theirs = ops::matmul(&x.astype(Dtype::Float32)?, &w)?.astype(dtype)?;
                assert_close(&quantized_matmul_untransposed(&x, &q)?, &theirs, tolerance(dtype), &what);
            }
        }
    }
    Ok(())
}

#[test]
fn gathered_products_are_mlx_own_for_every_format_index_and_orientation() -> Result<()> {
    super::on_the_cpu();
    let affine = [Affine::new(32, 4)?, Affine::new(64, 8)?].map(Format::from);
    let picks = [
        (None, Some(Array::from_slice(&[3u32, 0, 3, 1], (2, 2))?)),
        (Some(Array::from_slice(&[1i32, 0, 1], (3, 1))?), Some(Array::from_slice(&[2u32, 3], 2)?)),
        (Some(Array::vector(&[0u32, 1, 0, 1])?), None),
    ];
    for format in FORMATS.into_iter().chain(affine) {
        let q = quantize(&normal(&[4, 64, 128], Dtype::Float32, 15)?, format)?;
        for (transpose, k) in [(true, 128), (false, 64)] {
            for (lhs, rhs) in &picks {
                for m in [1, 3, 30] {
                    let x = normal(&[2, m, k], Dtype::Float32, 16)?;
                    let mut how = Picks::all().transpose(transpose);
                    if let Some(lhs) = lhs {
                        how = how.lhs(lhs);
                    }
                    if let Some(rhs) = rhs {
                        how = how.rhs(rhs);
                    }
                    let (ours, theirs) =
                        (gather_qmm(&x, &q, how), mlx_gather(&x, &q, lhs.as_ref(), rhs.as_ref(), transpose));
                    assert_close(
                        &ours?,
                        &theirs?,
                        4.0 * tolerance(Dtype::Float32),
                        &format!("{format:?} {transpose} {m}"),
                    );
                }
            }
        }
    }
    Ok(())
}

#[test]
fn quantized_products_have_mlx_gradient() -> Result<()> {
    super::on_the_cpu();
    let q = quantize(&normal(&[4, 32, 64], Dtype::Float32, 17)?, Affine::new(32, 4)?)?;
    let x = normal(&[2, 3, 64], Dtype::Float32, 18)?;
    let chosen = Array::vector(&[3u32, 1])?;
    let ours = grad(|x: &[Array]| ops::sum(&ops::square(&gather_qmm(&x[0], &q, Picks::all().rhs(&chosen))?)?), &[0]);
    let theirs = grad(|x: &[Array]| ops::sum(&ops::square(&mlx_gather(&x[0], &q, None, Some(&chosen), true)?)?), &[0]);
    assert_close(&ours(std::slice::from_ref(&x))?[0], &theirs(std::slice::from_ref(&x))?[0], 1e-5, "gathered");
    let q = quantize(&normal(&[32, 64], Dtype::Float32, 19)?, Affine::new(32, 4)?)?;
    let ours = grad(|x: &[Array]| ops::sum(&ops::square(&quantized_matmul(&x[0], &q)?)?), &[0]);
    let theirs = grad(|x: &[Array]| ops::sum(&ops::square(&mlx_quantized(&x[0], &q)?)?), &[0]);
    assert_close(&ours(std::slice::from_ref(&x))?[0], &theirs(std::slice::from_ref(&x))?[0], 1e-5, "plain");
    Ok(())
}
