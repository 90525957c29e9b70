//! The formats of quantized values.

use oxmlx_sys::types::QuantMode;

use crate::{Error, ErrorKind, Result};

/// The shape of the groups of an affine quantization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Affine {
    group_size: i32,
    bits: i32,
}

impl Affine {
    /// Groups of `group_size` (32, 64 or 128) values of `bits` (1, 2, 3, 4, 5, 6 or 8) bits.
    ///
    /// # Errors
    /// [`ErrorKind::Group`] for any other size or width.
    pub fn new(group_size: i32, bits: i32) -> Result<Self> {
        if !matches!(group_size, 32 | 64 | 128) {
            let text = format!("group size {group_size}: MLX has 32, 64 and 128");
            return Err(Error::new(ErrorKind::Group, "quantize", text));
        }
        if !matches!(bits, 1..=6 | 8) {
            let text = format!("{bits} bits: MLX has 1, 2, 3, 4, 5, 6 and 8");
            return Err(Error::new(ErrorKind::Group, "quantize", text));
        }
        Ok(Self { group_size, bits })
    }

    /// The number of values that share a scale.
    pub fn group_size(self) -> i32 {
        self.group_size
    }

    /// The bits of one value.
    pub fn bits(self) -> i32 {
        self.bits
    }
}

/// How values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Integers with a scale and a bias a group.
    Affine(Affine),
    /// 4-bit floats (e2m1), a power of two for every 32: the OCP microscaling format.
    Mxfp4,
    /// 8-bit floats (e4m3), a power of two for every 32: the OCP microscaling format.
    Mxfp8,
    /// 4-bit floats (e2m1), an 8-bit float for every 16, and optionally one scale for all.
    Nvfp4,
}

impl Format {
    /// The number of values that share a scale.
    pub fn group_size(self) -> i32 {
        match self {
            Self::Affine(affine) => affine.group_size,
            Self::Mxfp4 | Self::Mxfp8 => 32,
            Self::Nvfp4 => 16,
        }
    }

    /// The bits of one value.
    pub fn bits(self) -> i32 {
        match self {
            Self::Affine(affine) => affine.bits,
            Self::Mxfp4 | Self::Nvfp4 => 4,
            Self::Mxfp8 => 8,
        }
    }

    /// The affine format's groups; `None` for a float format.
    pub fn affine(self) -> Option<Affine> {
        match self {
            Self::Affine(affine) => Some(affine),
            Self::Mxfp4 | Self::Mxfp8 | Self::Nvfp4 => None,
        }
    }

    pub(super) fn mode(self) -> QuantMode {
        match self {
            Self::Affine(_) => QuantMode::Affine,
            Self::Mxfp4 => QuantMode::Mxfp4,
            Self::Mxfp8 => QuantMode::Mxfp8,
            Self::Nvfp4 => QuantMode::Nvfp4,
        }
    }

    /// Group size and bits as MLX's functions take them.
    pub(super) fn sizes(self) -> (Option<i32>, Option<i32>) {
        (Some(self.group_size()), Some(self.bits()))
    }
}

impl From<Affine> for Format {
    fn from(affine: Affine) -> Self {
        Self::Affine(affine)
    }
}
