//! The tensor types of ggml: their numbers in a file, names and block sizes.

use std::fmt;

use crate::weights::Dtype;

macro_rules! types {
    ($($name:ident = $id:literal, $block:literal values in $bytes:literal bytes;)*) => {
        /// How a GGUF tensor's values are stored.
        ///
        /// Every type that ggml writes is known by name and size; [`GgmlType::dtype`] and [`GgmlType::affine_bits`] say which
        /// of them can be read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(non_camel_case_types, missing_docs)] // ggml's own names
        #[non_exhaustive]
        pub enum GgmlType { $($name),* }

        impl GgmlType {
            /// All types, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The type with this number in a file, if ggml has one.
            pub fn from_id(id: u32) -> Option<Self> {
                match id { $($id => Some(Self::$name),)* _ => None }
            }

            /// The number in a file.
            pub fn id(self) -> u32 {
                match self { $(Self::$name => $id),* }
            }

            /// ggml's name for it, `"Q4_K"` for example.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }

            /// How many values share one block; 1 for types without blocks.
            pub fn block_len(self) -> usize {
                match self { $(Self::$name => $block),* }
            }

            /// How many bytes a block takes.
            pub fn block_bytes(self) -> usize {
                match self { $(Self::$name => $bytes),* }
            }
        }
    };
}

types! {
    F32 = 0, 1 values in 4 bytes;
    F16 = 1, 1 values in 2 bytes;
    Q4_0 = 2, 32 values in 18 bytes;
    Q4_1 = 3, 32 values in 20 bytes;
    Q5_0 = 6, 32 values in 22 bytes;
    Q5_1 = 7, 32 values in 24 bytes;
    Q8_0 = 8, 32 values in 34 bytes;
    Q8_1 = 9, 32 values in 36 bytes;
    Q2_K = 10, 256 values in 84 bytes;
    Q3_K = 11, 256 values in 110 bytes;
    Q4_K = 12, 256 values in 144 bytes;
    Q5_K = 13, 256 values in 176 bytes;
    Q6_K = 14, 256 values in 210 bytes;
    Q8_K = 15, 256 values in 292 bytes;
    IQ2_XXS = 16, 256 values in 66 bytes;
    IQ2_XS = 17, 256 values in 74 bytes;
    IQ3_XXS = 18, 256 values in 98 bytes;
    IQ1_S = 19, 256 values in 50 bytes;
    IQ4_NL = 20, 32 values in 18 bytes;
    IQ3_S = 21, 256 values in 110 bytes;
    IQ2_S = 22, 256 values in 82 bytes;
    IQ4_XS = 23, 256 values in 136 bytes;
    I8 = 24, 1 values in 1 bytes;
    I16 = 25, 1 values in 2 bytes;
    I32 = 26, 1 values in 4 bytes;
    I64 = 27, 1 values in 8 bytes;
    F64 = 28, 1 values in 8 bytes;
    IQ1_M = 29, 256 values in 56 bytes;
    BF16 = 30, 1 values in 2 bytes;
    TQ1_0 = 34, 256 values in 54 bytes;
    TQ2_0 = 35, 256 values in 66 bytes;
    MXFP4 = 39, 32 values in 17 bytes;
    NVFP4 = 40, 64 values in 36 bytes;
    Q1_0 = 41, 128 values in 18 bytes;
    Q2_0 = 42, 64 values in 18 bytes;
}

impl GgmlType {
    /// The dtype of a type without blocks; `None` for a quantized one.
    pub fn dtype(self) -> Option<Dtype> {
        Some(match self {
            Self::F32 => Dtype::F32,
            Self::F16 => Dtype::F16,
            Self::BF16 => Dtype::BF16,
            Self::F64 => Dtype::F64,
            Self::I8 => Dtype::I8,
            Self::I16 => Dtype::I16,
            Self::I32 => Dtype::I32,
            Self::I64 => Dtype::I64,
            _ => return None,
        })
    }

    /// The bits a value of the [`Affine`](super::Affine) form that this type converts to without loss; `None` if it can't.
    pub fn affine_bits(self) -> Option<usize> {
        match self {
            Self::Q4_0 | Self::Q4_1 => Some(4),
            Self::Q8_0 => Some(8),
            _ => None,
        }
    }

    /// Why a number that [`GgmlType::from_id`] doesn't know may still be met in an old file.
    pub(super) fn unknown(id: u32) -> &'static str {
        match id {
            4 | 5 | 31..=33 | 36..=38 => "ggml has removed it, convert the model again",
            _ => "not one that this version knows",
        }
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_their_own_numbers() {
        for &t in GgmlType::ALL {
            assert_eq!(GgmlType::from_id(t.id()), Some(t));
        }
        assert_eq!(GgmlType::from_id(4), None);
    }

    /// Sizes as `ggml-common.h` builds them from their fields, K = 256 values.
    #[test]
    fn block_sizes_are_the_sums_of_their_fields() {
        const K: usize = 256;
        let fields: &[(GgmlType, usize)] = &[
            (GgmlType::Q4_0, 2 + 16),
            (GgmlType::Q4_1, 4 + 16),
            (GgmlType::Q5_0, 2 + 4 + 16),
            (GgmlType::Q5_1, 4 + 4 + 16),
            (GgmlType::Q8_0, 2 + 32),
            (GgmlType::Q8_1, 4 + 32),
            (GgmlType::Q2_K, 4 + K / 16 + K / 4),
            (GgmlType::Q3_K, 2 + K / 4 + K / 8 + 12),
            (GgmlType::Q4_K, 4 + 12 + K / 2),
            (GgmlType::Q5_K, 4 + 12 + K / 2 + K / 8),
            (GgmlType::Q6_K, 2 + K / 16 + 3 * K / 4),
            (GgmlType::Q8_K, 4 + K + 2 * K / 16),
            (GgmlType::IQ2_XXS, 2 + K / 4),
            (GgmlType::IQ2_XS, 2 + K / 4 + K / 32),
            (GgmlType::IQ2_S, 2 + K / 4 + K / 16),
            (GgmlType::IQ3_XXS, 2 + 3 * K / 8),
            (GgmlType::IQ3_S, 2 + 13 * K / 32 + K / 64),
            (GgmlType::IQ1_S, 2 + K / 8 + K / 16),
            (GgmlType::IQ1_M, K / 8 + K / 16 + K / 32),
            (GgmlType::IQ4_NL, 2 + 16),
            (GgmlType::IQ4_XS, 2 + 2 + K / 64 + K / 2),
            (GgmlType::TQ1_0, 2 + 4 * 13),
            (GgmlType::TQ2_0, 2 + K / 4),
            (GgmlType::MXFP4, 1 + 16),
            (GgmlType::NVFP4, 4 + 32),
        ];
        for &(t, bytes) in fields {
            assert_eq!(t.block_bytes(), bytes, "{t}");
        }
    }
}
