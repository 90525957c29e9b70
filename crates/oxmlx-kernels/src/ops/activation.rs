//! `silu(gate) * up`, the gated activation of Llama-like models.

use crate::dtype::{Float, Floats, FloatsMut, each_float, narrow};
use crate::error::{Check, ShapeError};
use crate::level::{Level, Work};
use crate::math::silu;
use crate::ops::SMALL;
use crate::pool::Pool;
use crate::raw::Tiles;
use crate::simd::Simd;

/// `out = gate / (1 + exp(-gate)) * up`, element by element.
///
/// # Errors
/// If the lengths differ.
pub fn silu_mul(level: Level, gate: Floats<'_>, up: Floats<'_>, out: FloatsMut<'_>) -> Result<(), ShapeError> {
    let check = Check("silu_mul");
    let n = gate.len();
    check.equal("length of up", up.len(), n)?;
    check.equal("length of out", out.len(), n)?;
    let step = if n <= SMALL { n } else { SMALL / 4 };
    each_float!(FloatsMut, out, y => {
        let tiles = Tiles::new(y, [1, n], n, [1, step]);
        Pool::global().parallel(tiles.count(), |i| {
            let Some(mut tile) = tiles.claim(i) else { return };
            let first = tile.origin()[1];
            level.run(SiluMul { gate, up, first, out: tile.row(0) });
        });
    });
    Ok(())
}

struct SiluMul<'a, T> {
    gate: Floats<'a>,
    up: Floats<'a>,
    first: usize,
    out: &'a mut [T],
}

impl<T: Float> Work for SiluMul<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut at = self.first;
        for out in self.out.chunks_mut(STEP) {
            let (mut gate, mut up) = ([0.0; STEP], [0.0; STEP]);
            self.gate.widen(s, at, &mut gate[..out.len()]);
            self.up.widen(s, at, &mut up[..out.len()]);
            gated(s, &mut gate, &up);
            narrow(s, &gate, out);
            at += out.len();
        }
    }
}

/// Elements widened at a time: a multiple of every level's lanes.
const STEP: usize = 256;

/// `gate = silu(gate) * up` for whole vectors.
#[inline(always)]
pub(crate) fn gated<S: Simd>(s: S, gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.chunks_exact_mut(S::LANES).zip(up.chunks_exact(S::LANES)) {
        s.store(s.mul(silu(s, s.load(gate)), s.load(up)), gate);
    }
}
