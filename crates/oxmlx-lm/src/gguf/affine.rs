//! Q4_0, Q4_1 and Q8_0 blocks as MLX's affine triple, without loss.
//!
//! All three are affine with groups of 32: `value = scale * q + bias`. Q4_1 stores both factors; Q4_0 is centred, so that its
//! bias is `-8 * scale`; Q8_0 is signed, and adding 128 to its values makes the bias `-128 * scale`. Multiplying a float16 by a
//! power of two is exact, so the only thing that can go wrong is overflow, and that is an error.

use half::f16;

use super::file::Tensor;
use super::ggml::GgmlType;
use crate::{Error, ErrorKind, Result};

/// How many values share a scale and a bias.
pub(crate) const GROUP: usize = 32;

/// A quantized tensor in MLX's affine layout, group size 32.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Affine {
    /// Bits a value: 4 or 8.
    pub bits: usize,
    /// Packed values, `32 / bits` a word, the first in the lowest bits; `[.., columns * bits / 32]`, row-major.
    pub weights: Vec<u32>,
    /// float16 bit patterns, one a group; `[.., columns / 32]`, row-major.
    pub scales: Vec<u16>,
    /// float16 bit patterns, one a group; `[.., columns / 32]`, row-major.
    pub biases: Vec<u16>,
}

impl Affine {
    /// Converts the blocks of `tensor`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the tensor's type isn't Q4_0, Q4_1 or Q8_0; [`ErrorKind::Format`] if a scale is so large
    /// that its bias is no float16 (no real model has one). The tensor is named.
    pub fn convert(tensor: &Tensor<'_>) -> Result<Self> {
        Ok(Self { bits: bits(tensor)?, weights: weights(tensor)?, scales: scales(tensor)?, biases: biases(tensor)? })
    }
}

fn bits(tensor: &Tensor<'_>) -> Result<usize> {
    let ggml_type = tensor.ggml_type();
    ggml_type
        .affine_bits()
        .ok_or_else(|| Error::new(ErrorKind::Unsupported, unreadable(ggml_type)).at_tensor(tensor.name()))
}

/// Why values of this type can't be had, and what to do.
pub(crate) fn unreadable(ggml_type: GgmlType) -> String {
    format!("type {ggml_type} can't be read yet: use a model quantized as Q4_0, Q4_1, Q8_0, BF16, F16 or F32")
}

/// The words of `tensor`'s triple alone.
pub(crate) fn weights(tensor: &Tensor<'_>) -> Result<Vec<u32>> {
    let per_block = GROUP * bits(tensor)? / 32;
    let data = tensor.data();
    let blocks = data.len() / tensor.ggml_type().block_bytes();
    let mut words = vec![0; blocks * per_block];
    match tensor.ggml_type() {
        GgmlType::Q4_0 => unpack::<18, 4>(data, &mut words, |b| interleave(b, 2)),
        GgmlType::Q4_1 => unpack::<20, 4>(data, &mut words, |b| interleave(b, 4)),
        _ => unpack::<34, 8>(data, &mut words, recentre),
    }
    Ok(words)
}

fn unpack<const BLOCK: usize, const WORDS: usize>(
    data: &[u8],
    words: &mut [u32],
    convert: impl Fn(&[u8; BLOCK]) -> [u32; WORDS],
) {
    for (block, out) in data.as_chunks::<BLOCK>().0.iter().zip(words.as_chunks_mut::<WORDS>().0) {
        *out = convert(block);
    }
}

/// The 16 bytes of a 4-bit block, after `header` bytes: value `i` is the low half of byte `i`, value `i + 16` its high half.
fn interleave<const BLOCK: usize>(block: &[u8; BLOCK], header: usize) -> [u32; 4] {
    let eight = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&block[header + at..header + at + 8]);
        u64::from_le_bytes(bytes)
    };
    let (first, second) = (eight(0), eight(8));
    [gather_low_halves(first), gather_low_halves(second), gather_low_halves(first >> 4), gather_low_halves(second >> 4)]
}

/// The low halves of 8 bytes, side by side in the same order.
fn gather_low_halves(bytes: u64) -> u32 {
    let x = bytes & 0x0f0f_0f0f_0f0f_0f0f;
    let x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) as u32
}

/// The 32 signed bytes of a Q8_0 block, 128 added to each.
fn recentre(block: &[u8; 34]) -> [u32; 8] {
    std::array::from_fn(|w| {
        let at = 2 + 4 * w;
        u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]) ^ 0x8080_8080
    })
}

/// The scales of `tensor`'s triple alone.
pub(crate) fn scales(tensor: &Tensor<'_>) -> Result<Vec<u16>> {
    bits(tensor)?;
    Ok(halves(tensor, 0).collect())
}

/// The biases of `tensor`'s triple alone.
pub(crate) fn biases(tensor: &Tensor<'_>) -> Result<Vec<u16>> {
    let factor = match tensor.ggml_type() {
        GgmlType::Q4_1 => return Ok(halves(tensor, 2).collect()),
        _ if bits(tensor)? == 8 => -128.0,
        _ => -8.0,
    };
    halves(tensor, 0)
        .enumerate()
        .map(|(block, scale)| {
            let scale = f16::from_bits(scale);
            let bias = f16::from_f32(factor * scale.to_f32());
            if bias.is_finite() {
                return Ok(bias.to_bits());
            }
            let what = format!("damaged file: the scale {scale} of block {block} gives a bias beyond float16");
            Err(Error::new(ErrorKind::Format, what).at_tensor(tensor.name()))
        })
        .collect()
}

/// The 16-bit number `at` bytes into each block.
fn halves<'t>(tensor: &'t Tensor<'_>, at: usize) -> impl Iterator<Item = u16> + 't {
    let blocks = tensor.data().chunks_exact(tensor.ggml_type().block_bytes());
    blocks.map(move |b| u16::from_le_bytes([b[at], b[at + 1]]))
}
