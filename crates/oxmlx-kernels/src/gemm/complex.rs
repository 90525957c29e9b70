//! Products of complex matrices of f32 pairs: four real products over every other float.

use crate::dtype::{Floats, FloatsMut};
use crate::error::{Check, ShapeError};
use crate::gemm::double::Strided;
use crate::gemm::{Factors, gemm};
use crate::level::Level;
use crate::matrix::{MatMut, MatRef};

/// A complex operand: pairs of real and imaginary part, and whether it is conjugated.
#[derive(Debug, Clone, Copy)]
pub struct Complex<'a> {
    /// The pairs.
    pub pairs: Strided<'a, [f32; 2]>,
    /// Whether the imaginary parts change their sign.
    pub conjugate: bool,
}

impl Complex<'_> {
    /// Real (0) or imaginary (1) parts.
    fn part(&self, part: usize) -> Result<MatRef<'_>, ShapeError> {
        let floats = self.pairs.data.as_flattened();
        MatRef::strided(
            Floats::F32(floats.get(part..).unwrap_or(&[])),
            self.pairs.shape,
            self.pairs.strides.map(|s| 2 * s),
        )
    }

    fn sign(&self) -> f32 {
        if self.conjugate { -1.0 } else { 1.0 }
    }
}

/// `out = alpha * a @ b + beta * out` over complex numbers: `a` is `[m, k]`, `b` is `[k, n]`, rows of `out` are `stride` pairs
/// apart. With `beta` 0 `out` is not read.
///
/// # Errors
/// If the shapes do not fit together.
pub fn gemm_complex(
    level: Level,
    a: Complex<'_>,
    b: Complex<'_>,
    out: &mut [[f32; 2]],
    stride: usize,
    [alpha, beta]: [[f32; 2]; 2],
) -> Result<(), ShapeError> {
    let ([m, k], [rows, n]) = (a.pairs.shape, b.pairs.shape);
    let check = Check("matmul");
    check.equal("rows of b", rows, k)?;
    check.at_least("row stride of out", stride, if m > 1 { n } else { 0 })?;
    check.at_least("out length", out.len(), crate::matrix::extent([m, n], [stride, 1]))?;
    let (sa, sb) = (a.sign(), b.sign());
    let (mut re, mut im) = (vec![0.0; m * n], vec![0.0; m * n]);
    for (imaginary, [i, j], alpha, beta) in
        [(false, [0, 0], 1.0, 0.0), (false, [1, 1], -sa * sb, 1.0), (true, [0, 1], sb, 0.0), (true, [1, 0], sa, 1.0)]
    {
        let out = MatMut::new(FloatsMut::F32(if imaginary { &mut im } else { &mut re }), m, n)?;
        gemm(level, a.part(i)?, b.part(j)?, out, Factors { alpha, beta })?;
    }
    let times = |[a, b]: [f32; 2], [c, d]: [f32; 2]| [a * c - b * d, a * d + b * c];
    for ((re, im), out) in re.chunks(n.max(1)).zip(im.chunks(n.max(1))).zip(out.chunks_mut(stride.max(1))) {
        for ((&re, &im), y) in re.iter().zip(im).zip(out) {
            let product = times(alpha, [re, im]);
            let old = if beta == [0.0; 2] { beta } else { times(beta, *y) };
            *y = [product[0] + old[0], product[1] + old[1]];
        }
    }
    Ok(())
}
