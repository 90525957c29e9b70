//! Products of float16 and bfloat16 matrices, with sums in float32. MLX's own float32 products come to [`crate::blas`].

use oxmlx_kernels::gemm::{Factors, gemm_batch};
use oxmlx_kernels::{Floats, FloatsMut, Level, MatRef};

use super::{Packed, enabled, floats, floats_mut};
use crate::kernel::{BoxError, Input, Kernel, Output};
use crate::ops::{mlx_addmm, mlx_matmul, swapaxes};
use crate::{Array, Dtype, Result, ops};

/// The shape of the product of two arrays with two axes at least, if there is one.
fn product_shape(a: &[i32], b: &[i32]) -> Option<Vec<i32>> {
    let (&[ref outer_a @ .., m, k], &[ref outer_b @ .., rows, n]) = (a, b) else { return None };
    let mut shape = broadcast(outer_a, outer_b).filter(|_| rows == k)?;
    shape.extend([m, n]);
    Some(shape)
}

fn broadcast(a: &[i32], b: &[i32]) -> Option<Vec<i32>> {
    let at = |shape: &[i32], axis: usize| shape.len().checked_sub(axis).map_or(1, |i| shape[i]);
    let one = |axis: usize| match (at(a, axis), at(b, axis)) {
        (n, m) if n == m || m == 1 => Some(n),
        (1, m) => Some(m),
        _ => None,
    };
    (1..=a.len().max(b.len())).rev().map(one).collect()
}

fn ours(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Float16 | Dtype::Bfloat16)
}

pub(crate) fn matmul(a: &Array, b: &Array) -> Option<Result<Array>> {
    if !ours(a.dtype()) || a.dtype() != b.dtype() || !enabled() {
        return None;
    }
    // A vector is a row on the left and a column on the right.
    match (a.ndim(), b.ndim()) {
        (1, 2..) => Some(a.expand_dims(0).and_then(|a| ops::squeeze_axes(&ops::matmul(&a, b)?, &[-2]))),
        (2.., 1) => Some(b.expand_dims(1).and_then(|b| ops::squeeze_axes(&ops::matmul(a, &b)?, &[-1]))),
        _ => {
            product_shape(a.shape(), b.shape())?;
            let kernel = Kernel::builder("oxmlx::matmul")
                .output(a.dtype(), |inputs| {
                    product_shape(inputs[0], inputs[1]).ok_or_else(|| "the shapes do not fit".into())
                })
                .cpu(|inputs, outputs| multiply(inputs, &mut outputs[0], Factors::default()))
                .vjp(|primals, cotangents, _| Ok(gradients(&primals[0], &primals[1], &cotangents[0])?))
                .fallback(|inputs| Ok(vec![mlx_matmul(&inputs[0], &inputs[1])?]))
                .build();
            Some(kernel.and_then(|kernel| kernel.apply_one(&[a.clone(), b.clone()])))
        }
    }
}

pub(crate) fn addmm(c: &Array, a: &Array, b: &Array, alpha: f32, beta: f32) -> Option<Result<Array>> {
    let same = ours(a.dtype()) && a.dtype() == b.dtype() && a.dtype() == c.dtype();
    let shape = product_shape(a.shape(), b.shape())?;
    if !same || broadcast(c.shape(), &shape)? != shape || !enabled() {
        return None;
    }
    let kernel = Kernel::builder("oxmlx::addmm")
        .output(a.dtype(), |inputs| product_shape(inputs[0], inputs[1]).ok_or_else(|| "the shapes do not fit".into()))
        .cpu(move |inputs, outputs| {
            match (Packed::new(inputs[2])?.floats(), floats_mut(&mut outputs[0])?) {
                (Floats::F16(from), FloatsMut::F16(to)) => to.copy_from_slice(from),
                (Floats::Bf16(from), FloatsMut::Bf16(to)) => to.copy_from_slice(from),
                _ => return Err("the summand has another dtype".into()),
            }
            multiply(&inputs[..2], &mut outputs[0], Factors { alpha, beta })
        })
        .fallback(move |inputs| Ok(vec![mlx_addmm(&inputs[2], &inputs[0], &inputs[1], alpha, beta)?]))
        .build();
    let whole = ops::broadcast_to(c, shape);
    Some(kernel.and_then(|kernel| kernel.apply_one(&[a.clone(), b.clone(), whole?])))
}

/// The products of all matrices of two inputs, whatever their strides.
fn multiply(inputs: &[Input<'_>], output: &mut Output<'_>, factors: Factors) -> Result<(), BoxError> {
    let [a, b] = [Operand::new(inputs[0])?, Operand::new(inputs[1])?];
    // One matrix on the right for all rows on the left, which lie evenly.
    if let ([_, _], Some(tall)) = (b.shape, a.flattened()) {
        return Ok(gemm_batch(Level::best(), 1, |_| Ok([tall, b.matrix(0)?]), floats_mut(output)?, factors)?);
    }
    let outer = output.shape()[..output.shape().len() - 2].to_vec();
    let count = outer.iter().map(|&n| n as usize).product();
    let operands = |i: usize| Ok([a.matrix(a.start(i, &outer))?, b.matrix(b.start(i, &outer))?]);
    Ok(gemm_batch(Level::best(), count, operands, floats_mut(output)?, factors)?)
}

/// A stack of matrices where it lies.
struct Operand<'a> {
    data: Floats<'a>,
    shape: &'a [i32],
    strides: Vec<usize>,
}

impl<'a> Operand<'a> {
    fn new(input: Input<'a>) -> Result<Self, BoxError> {
        let strides = input.strides().iter().map(|&s| s as usize).collect();
        Ok(Self { data: floats(input)?, shape: input.shape(), strides })
    }

    fn last(&self) -> usize {
        self.shape.len() - 2
    }

    /// The matrix that starts at an element.
    fn matrix(&self, start: usize) -> Result<MatRef<'a>, oxmlx_kernels::ShapeError> {
        let (i, j) = (self.last(), self.last() + 1);
        let shape = [self.shape[i], self.shape[j]].map(|n| n as usize);
        MatRef::strided(self.data.window(start, usize::MAX), shape, [self.strides[i], self.strides[j]])
    }

    /// All rows as one matrix, if they lie evenly.
    fn flattened(&self) -> Option<MatRef<'a>> {
        let (last, mut rows) = (self.last(), self.shape[self.last()] as usize);
        for axis in (0..last).rev() {
            if self.shape[axis] != 1 && self.strides[axis] != rows * self.strides[last] {
                return None;
            }
            rows *= self.shape[axis] as usize;
        }
        let shape = [rows, self.shape[last + 1] as usize];
        MatRef::strided(self.data, shape, [self.strides[last], self.strides[last + 1]]).ok()
    }

    /// Where the operand of result `i` of `outer` starts.
    fn start(&self, mut i: usize, outer: &[i32]) -> usize {
        let mut start = 0;
        let mine = self.shape[..self.last()].iter().zip(&self.strides).rev();
        for (&whole, (&n, &stride)) in outer.iter().rev().zip(mine) {
            start += if n == 1 { 0 } else { i % whole as usize * stride };
            i /= whole as usize;
        }
        start
    }
}

/// What a cotangent of `a @ b` gives for each operand.
fn gradients(a: &Array, b: &Array, cotangent: &Array) -> Result<Vec<Array>> {
    let of_a = ops::matmul(cotangent, &swapaxes(b, -1, -2)?)?;
    if b.ndim() == 2 {
        // One product over all rows, and not one a matrix and their sum.
        let tall = |x: &Array| x.reshape([-1, x.dim(-1).unwrap_or(1)]);
        return Ok(vec![summed(of_a, a.shape())?, ops::matmul(&tall(a)?.transpose()?, &tall(cotangent)?)?]);
    }
    let of_b = ops::matmul(&swapaxes(a, -1, -2)?, cotangent)?;
    Ok(vec![summed(of_a, a.shape())?, summed(of_b, b.shape())?])
}

/// Sums over the axes along which an array of this shape was broadcast.
fn summed(x: Array, shape: &[i32]) -> Result<Array> {
    let new = x.ndim() - shape.len();
    let axes: Vec<i32> = (0..x.ndim())
        .filter(|&axis| axis < new || (shape[axis - new] == 1 && x.shape()[axis] != 1))
        .map(|axis| axis as i32)
        .collect();
    if axes.is_empty() { Ok(x) } else { ops::sum_axes(&x, &axes, true)?.reshape(shape) }
}
