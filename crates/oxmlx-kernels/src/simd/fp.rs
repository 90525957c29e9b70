//! The small float formats of the `mxfp4`, `mxfp8` and `nvfp4` modes, decoded as MLX decodes them.

use half::{bf16, f16};

/// The values of the 16 four-bit floats (e2m1).
pub(crate) const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// An eight-bit float with four exponent bits. Has no infinities; MLX reads the NaN pattern as 480.
#[inline(always)]
pub(crate) fn e4m3(bits: u8) -> f32 {
    let magnitude = f16::from_bits(u16::from(bits & 127) << 7).to_f32_const() * 256.0;
    if bits & 128 != 0 { -magnitude } else { magnitude }
}

/// A power of two: `2^(bits - 127)`.
#[inline(always)]
pub(crate) fn e8m0(bits: u8) -> f32 {
    let half = if bits == 0 { 0x40 } else { u16::from(bits) << 7 };
    f32::from(bf16::from_bits(half))
}
