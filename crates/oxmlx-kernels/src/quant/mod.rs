//! Quantized matrices in MLX's layout, and the products with them.

mod gather;
mod matvec;
mod plain;
mod qmm;

use crate::dtype::{Floats, each_float};
use crate::error::{Check, ShapeError};
use crate::level::{ASKED, Ask, Level, Work};
use crate::simd::{BLOCK, Simd, e4m3, e8m0, format};

pub use gather::{Gather, gather_qmm};
pub(crate) use matvec::{MAX_ROWS, Prepared, product_rows, reorder};
pub use plain::qmm_plain;
pub use qmm::qmm;

/// Shape and packing of an affine quantized matrix: `w = scale * q + bias`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AffineShape {
    /// Rows as stored; the output features of a transposed product.
    pub rows: usize,
    /// Unpacked columns, a multiple of `group`.
    pub cols: usize,
    /// Bits a weight: 2, 3, 4, 5, 6 or 8.
    pub bits: usize,
    /// Weights that share a scale and a bias: 32, 64 or 128.
    pub group: usize,
}

/// MLX's float modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FpMode {
    /// e2m1 weights, groups of 32 with an e8m0 scale.
    Mxfp4,
    /// e4m3 weights, groups of 32 with an e8m0 scale.
    Mxfp8,
    /// e2m1 weights, groups of 16 with an e4m3 scale.
    Nvfp4,
}

/// A quantized matrix: packed rows, low bits first, with a scale (and a bias) for each group of columns.
#[derive(Debug, Clone, Copy)]
pub struct QuantMatrix<'a> {
    words: &'a [u32],
    scales: Scales<'a>,
    rows: usize,
    cols: usize,
    format: u8,
    group: usize,
}

#[derive(Debug, Clone, Copy)]
enum Scales<'a> {
    Affine { scales: Floats<'a>, biases: Floats<'a> },
    E8m0(&'a [u8]),
    E4m3(&'a [u8]),
}

/// Most blocks whose scales are widened at a time.
pub(crate) const STAGE: usize = 64;

/// The scales of a row, widened: one a group, at most two a block.
#[derive(Clone, Copy)]
pub(crate) struct Staged {
    pub(crate) scale: [f32; 2 * STAGE],
    pub(crate) bias: [f32; 2 * STAGE],
}

impl Staged {
    /// Scales and bias of block `b`, counted from where staging began.
    #[inline(always)]
    pub(crate) fn at<const FORMAT: u8>(&self, b: usize, shift: u32) -> ([f32; 2], f32) {
        // The remainders never bite; they tell the compiler that the index is in bounds.
        let group = (b >> shift) % (2 * STAGE);
        if FORMAT == format::NV4 {
            ([self.scale[2 * b % (2 * STAGE)], self.scale[(2 * b + 1) % (2 * STAGE)]], 0.0)
        } else {
            ([self.scale[group]; 2], self.bias[group])
        }
    }

    pub(crate) const EMPTY: Self = Self { scale: [0.0; 2 * STAGE], bias: [0.0; 2 * STAGE] };
}

impl<'a> QuantMatrix<'a> {
    /// An affine matrix: `words` is `[rows, cols * bits / 32]`, `scales` and `biases` are `[rows, cols / group]`.
    ///
    /// # Errors
    /// If bits or group are none that MLX has, or a length does not match.
    pub fn affine(
        words: &'a [u32],
        scales: Floats<'a>,
        biases: Floats<'a>,
        shape: AffineShape,
    ) -> Result<Self, ShapeError> {
        let AffineShape { rows, cols, bits, group } = shape;
        let check = Check("quantized matrix");
        check.one_of("bits", bits, &[2, 3, 4, 5, 6, 8])?;
        check.one_of("group size", group, &[32, 64, 128])?;
        check.multiple("columns", cols, group)?;
        let groups = rows.saturating_mul(cols / group);
        check.equal("scales length", scales.len(), groups)?;
        check.equal("biases length", biases.len(), groups)?;
        check.equal("words length", words.len(), rows.saturating_mul(cols / 32 * bits))?;
        Ok(Self { words, scales: Scales::Affine { scales, biases }, rows, cols, format: bits as u8, group })
    }

    /// A matrix of one of the float modes: `words` is `[rows, cols * bits / 32]`, `scales` is `[rows, cols / group]`.
    ///
    /// # Errors
    /// If `cols` is no multiple of 32 or a length does not match.
    pub fn fp(words: &'a [u32], scales: &'a [u8], [rows, cols]: [usize; 2], mode: FpMode) -> Result<Self, ShapeError> {
        let (format, group, scales) = match mode {
            FpMode::Mxfp4 => (format::MX4, 32, Scales::E8m0(scales)),
            FpMode::Mxfp8 => (format::MX8, 32, Scales::E8m0(scales)),
            FpMode::Nvfp4 => (format::NV4, 16, Scales::E4m3(scales)),
        };
        let check = Check("quantized matrix");
        check.multiple("columns", cols, BLOCK)?;
        let (Scales::E8m0(found) | Scales::E4m3(found)) = scales else { unreachable!("float modes have byte scales") };
        check.equal("scales length", found.len(), rows.saturating_mul(cols / group))?;
        check.equal("words length", words.len(), rows.saturating_mul(cols / 32 * format::bits(format)))?;
        Ok(Self { words, scales, rows, cols, format, group })
    }

    /// Rows as stored and unpacked columns.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    /// The rows from `start` on, `count` of them; as many as there are if that is past the end.
    #[must_use]
    pub fn window(&self, start: usize, count: usize) -> Self {
        let start = start.min(self.rows);
        let rows = count.min(self.rows - start);
        let groups = self.cols / self.group;
        let words = self.cols / BLOCK * self.bits();
        let bytes = |x: &'a [u8]| &x[start * groups..(start + rows) * groups];
        let scales = match self.scales {
            Scales::Affine { scales, biases } => Scales::Affine {
                scales: scales.window(start * groups, rows * groups),
                biases: biases.window(start * groups, rows * groups),
            },
            Scales::E8m0(x) => Scales::E8m0(bytes(x)),
            Scales::E4m3(x) => Scales::E4m3(bytes(x)),
        };
        Self { words: &self.words[start * words..(start + rows) * words], scales, rows, ..*self }
    }

    /// Bytes of the packed words and scales: what a product reads.
    pub fn bytes(&self) -> usize {
        let scales = match self.scales {
            Scales::Affine { scales, biases } => [scales, biases].iter().map(floats_bytes).sum(),
            Scales::E8m0(x) | Scales::E4m3(x) => x.len(),
        };
        self.words.len() * 4 + scales
    }

    pub(crate) fn format(&self) -> u8 {
        self.format
    }

    fn bits(&self) -> usize {
        format::bits(self.format)
    }

    pub(crate) fn row_words(&self, row: usize) -> &'a [u32] {
        let n = self.cols / BLOCK * self.bits();
        &self.words[row * n..(row + 1) * n]
    }

    /// Asks for the start of a row and what follows it, ahead of its use.
    pub(crate) fn ask(&self, level: Level, row: usize) {
        let groups = row * (self.cols / self.group);
        level.run(Ask { from: &self.words[row * (self.cols / BLOCK * self.bits())..], bytes: ASKED });
        match self.scales {
            Scales::Affine { scales, biases } => {
                for x in [scales, biases] {
                    each_float!(Floats, x, x => level.run(Ask { from: &x[groups..], bytes: 256 }));
                }
            }
            Scales::E8m0(x) | Scales::E4m3(x) => level.run(Ask { from: &x[groups..], bytes: 256 }),
        }
    }

    /// How far a block's number is shifted to give that of its group.
    pub(crate) fn group_shift(&self) -> u32 {
        (self.group / BLOCK).max(1).trailing_zeros()
    }

    /// Widens the scales of blocks `from..from + count` of a row; `from` is a multiple of 4, `count` at most [`STAGE`].
    #[inline(always)]
    pub(crate) fn stage<S: Simd>(&self, s: S, row: usize, from: usize, count: usize, to: &mut Staged) {
        let per_row = self.groups();
        let first = from * BLOCK / self.group;
        let n = (count * BLOCK).div_ceil(self.group).min(per_row - first).min(2 * STAGE);
        // A function of its own: inlined, its constants would crowd the caller's registers.
        s.enter(self.widened(row * per_row + first, n, &mut to.scale, &mut to.bias));
    }

    /// Groups of a row.
    pub(crate) fn groups(&self) -> usize {
        self.cols / self.group
    }

    /// Weights of a group.
    pub(crate) fn group(&self) -> usize {
        self.group
    }

    /// Work that widens `n` scales from `start` on, and their biases.
    pub(crate) fn widened<'t>(
        &self,
        start: usize,
        n: usize,
        scales: &'t mut [f32],
        biases: &'t mut [f32],
    ) -> Widened<'a, 't> {
        Widened { from: self.scales, start, n, scales, biases }
    }
}

/// Widens scales and biases.
pub(crate) struct Widened<'a, 't> {
    from: Scales<'a>,
    start: usize,
    n: usize,
    scales: &'t mut [f32],
    biases: &'t mut [f32],
}

impl Work for Widened<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { from, start, n, scales: to, biases: bias_to } = self;
        match from {
            Scales::Affine { scales, biases } => {
                // Whole vectors are quicker than the exact count; what follows belongs to the next row and is not used.
                let n = n.next_multiple_of(16).min(to.len());
                scales.widen(s, start, &mut to[..n]);
                biases.widen(s, start, &mut bias_to[..n]);
            }
            Scales::E8m0(x) => to.iter_mut().zip(&x[start..start + n]).for_each(|(y, &x)| *y = e8m0(x)),
            Scales::E4m3(x) => to.iter_mut().zip(&x[start..start + n]).for_each(|(y, &x)| *y = e4m3(x)),
        }
    }
}

fn floats_bytes(x: &Floats<'_>) -> usize {
    match x {
        Floats::F32(x) => 4 * x.len(),
        Floats::F16(_) | Floats::Bf16(_) => 2 * x.len(),
    }
}

/// Runs the body with the const parameters `FORMAT` and `WORDS` of a matrix's format.
macro_rules! each_format {
    ($format:expr, $f:ident => $body:expr) => {{
        macro_rules! with {
            ($name:ident, $words:expr) => {{
                const $f: u8 = $crate::simd::format::$name;
                const WORDS: usize = $words;
                $body
            }};
        }
        match $format {
            $crate::simd::format::A2 => with!(A2, 2),
            $crate::simd::format::A3 => with!(A3, 3),
            $crate::simd::format::A4 => with!(A4, 4),
            $crate::simd::format::A5 => with!(A5, 5),
            $crate::simd::format::A6 => with!(A6, 6),
            $crate::simd::format::MX4 => with!(MX4, 4),
            $crate::simd::format::MX8 => with!(MX8, 8),
            $crate::simd::format::NV4 => with!(NV4, 4),
            _ => with!(A8, 8),
        }
    }};
}
pub(crate) use each_format;
