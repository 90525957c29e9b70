//! The closed enums and the checked way from C++'s open ones to them.

use std::fmt;

use super::ffi;
use crate::{Exception, ExceptionKind};

/// A code that came out of C++ and stands for no variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCode {
    what: &'static str,
    code: u8,
}

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MLX gave {} for a {}, which this release of oxmlx does not know", self.code, self.what)
    }
}

impl std::error::Error for UnknownCode {}

/// The checked way from a code to its enum, as an error of `op`.
pub(crate) fn closed<C, T: TryFrom<C, Error = UnknownCode>>(op: &'static str, code: C) -> crate::Result<T> {
    T::try_from(code).map_err(|unknown| Exception::new(ExceptionKind::Unknown, op, unknown.to_string()))
}

macro_rules! closed_enum {
    ($(#[$doc:meta])* $name:ident as $code:ident { $($(#[$variant_doc:meta])* $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl From<$name> for ffi::$code {
            fn from(value: $name) -> Self {
                match value {
                    $($name::$variant => Self::$variant,)+
                }
            }
        }

        impl TryFrom<ffi::$code> for $name {
            type Error = UnknownCode;

            fn try_from(code: ffi::$code) -> Result<Self, UnknownCode> {
                match code {
                    $(ffi::$code::$variant => Ok(Self::$variant),)+
                    unknown => Err(UnknownCode { what: stringify!($name), code: unknown.repr }),
                }
            }
        }
    };
}

closed_enum! {
    /// An element type.
    Dtype as DtypeCode {
        /// One byte, 0 or 1.
        Bool,
        /// Unsigned, 8 bits.
        Uint8,
        /// Unsigned, 16 bits.
        Uint16,
        /// Unsigned, 32 bits.
        Uint32,
        /// Unsigned, 64 bits.
        Uint64,
        /// Signed, 8 bits.
        Int8,
        /// Signed, 16 bits.
        Int16,
        /// Signed, 32 bits.
        Int32,
        /// Signed, 64 bits.
        Int64,
        /// IEEE half precision.
        Float16,
        /// IEEE single precision.
        Float32,
        /// IEEE double precision; the CPU only.
        Float64,
        /// Single precision's exponent with 8 bits of significand.
        Bfloat16,
        /// Two single-precision floats, real and imaginary.
        Complex64,
    }
}

impl Dtype {
    /// Every dtype, in the order of MLX's `Dtype::Val`.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Float16,
        Self::Float32,
        Self::Float64,
        Self::Bfloat16,
        Self::Complex64,
    ];

    /// The position in MLX's `Dtype::Val`.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl TryFrom<u8> for Dtype {
    type Error = UnknownCode;

    fn try_from(code: u8) -> Result<Self, UnknownCode> {
        Self::ALL.get(usize::from(code)).copied().ok_or(UnknownCode { what: "Dtype", code })
    }
}

closed_enum! {
    /// What kind of number a dtype holds.
    DtypeKind as DtypeKindCode {
        /// Truth values.
        Bool,
        /// Unsigned integers.
        Unsigned,
        /// Signed integers.
        Signed,
        /// IEEE floats.
        Float,
        /// Complex numbers.
        Complex,
        /// Brain floats, which numpy calls void.
        Bfloat,
    }
}

closed_enum! {
    /// A node in the tree of dtypes, as numpy has it.
    DtypeCategory as DtypeCategoryCode {
        /// Complex floats.
        ComplexFloating,
        /// Real floats.
        Floating,
        /// Real and complex floats.
        Inexact,
        /// Signed integers.
        SignedInteger,
        /// Unsigned integers.
        UnsignedInteger,
        /// Integers of both kinds.
        Integer,
        /// All but truth values.
        Number,
        /// Everything.
        Generic,
    }
}

closed_enum! {
    /// How quantized weights are laid out.
    QuantMode as QuantModeCode {
        /// A scale and a bias a group.
        Affine,
        /// 4-bit floats with a power-of-two scale for 32.
        Mxfp4,
        /// 8-bit floats with a power-of-two scale for 32.
        Mxfp8,
        /// 4-bit floats with an 8-bit float scale for 16.
        Nvfp4,
    }
}

closed_enum! {
    /// Which direction of a Fourier transform is scaled.
    FftNorm as FftNormCode {
        /// The inverse by `1/n`.
        Backward,
        /// Both by `1/sqrt(n)`.
        Ortho,
        /// The forward by `1/n`.
        Forward,
    }
}

closed_enum! {
    /// What the elements outside an array are taken to be. MLX's `pad` has the first three, `stft` constant, edge and reflect.
    PadMode as PadModeCode {
        /// One value.
        Constant,
        /// The outermost element.
        Edge,
        /// Mirrored, the edge included.
        Symmetric,
        /// Mirrored, the edge left out.
        Reflect,
    }
}

closed_enum! {
    /// Which keys an attention query sees.
    MaskMode as MaskModeCode {
        /// All, or what a mask array says when one is given.
        None,
        /// Those at or before its own position, the last query aligned with the last key.
        Causal,
        /// Those that the mask array allows.
        Array,
    }
}

closed_enum! {
    /// The order of a mesh grid's first two axes.
    Indexing as IndexingCode {
        /// Cartesian: columns first.
        Xy,
        /// Matrix: rows first.
        Ij,
    }
}

closed_enum! {
    /// On which side of equal elements a value is placed.
    Side as SideCode {
        /// Before the first.
        Left,
        /// After the last.
        Right,
    }
}

closed_enum! {
    /// Which triangle of a symmetric matrix is read.
    Triangle as TriangleCode {
        /// The lower.
        Lower,
        /// The upper.
        Upper,
    }
}

closed_enum! {
    /// A matrix norm that has a name and no order.
    MatrixNorm as MatrixNormCode {
        /// The root of the sum of squares.
        Frobenius,
        /// The sum of the singular values.
        Nuclear,
    }
}

closed_enum! {
    /// How much `compile` does.
    CompileMode as CompileModeCode {
        /// Nothing: the function is called as it is.
        Disabled,
        /// Traces and fuses, without common-subexpression elimination.
        NoSimplify,
        /// Traces and simplifies, without fusing.
        NoFuse,
        /// All of it.
        Enabled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtype_codes_are_their_places() {
        for (place, dtype) in Dtype::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(dtype.code()), place);
            assert_eq!(usize::from(ffi::DtypeCode::from(dtype).repr), place);
            assert_eq!(Dtype::try_from(dtype.code()), Ok(dtype));
        }
    }

    #[test]
    fn a_code_without_a_variant_is_refused() {
        let error = Dtype::try_from(14_u8).unwrap_err();
        assert_eq!(error.to_string(), "MLX gave 14 for a Dtype, which this release of oxmlx does not know");
        let error = QuantMode::try_from(ffi::QuantModeCode { repr: 9 }).unwrap_err();
        assert_eq!(error, UnknownCode { what: "QuantMode", code: 9 });
    }

    #[test]
    fn an_unknown_code_becomes_an_error_of_the_operation() {
        let error = closed::<_, Dtype>("result_type", ffi::DtypeCode { repr: 200 }).unwrap_err();
        assert_eq!((error.op(), error.kind()), ("result_type", ExceptionKind::Unknown));
    }
}
