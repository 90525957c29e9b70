//! The element types that checkpoints use.

use std::fmt;

macro_rules! dtypes {
    ($($name:ident = $text:literal, $bits:literal bits: $doc:literal;)*) => {
        /// A tensor's element type. Files may hold more types than MLX computes with: [`Dtype::in_mlx`] tells them apart.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Dtype { $(#[doc = $doc] $name),* }

        impl Dtype {
            /// All types.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name in SafeTensors files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// The type with this name in SafeTensors files.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }

            /// Bits an element; fewer than 8 for packed types.
            pub fn bits(self) -> usize {
                match self { $(Self::$name => $bits),* }
            }
        }
    };
}

dtypes! {
    Bool = "BOOL", 8 bits: "True or false, a byte each.";
    U8 = "U8", 8 bits: "Unsigned byte.";
    I8 = "I8", 8 bits: "Signed byte.";
    U16 = "U16", 16 bits: "Unsigned 16-bit integer.";
    I16 = "I16", 16 bits: "Signed 16-bit integer.";
    U32 = "U32", 32 bits: "Unsigned 32-bit integer; also MLX's packed quantized values.";
    I32 = "I32", 32 bits: "Signed 32-bit integer.";
    U64 = "U64", 64 bits: "Unsigned 64-bit integer.";
    I64 = "I64", 64 bits: "Signed 64-bit integer.";
    F16 = "F16", 16 bits: "IEEE half.";
    BF16 = "BF16", 16 bits: "bfloat16.";
    F32 = "F32", 32 bits: "IEEE single.";
    F64 = "F64", 64 bits: "IEEE double.";
    C64 = "C64", 64 bits: "Complex, two IEEE singles.";
    F8E4M3 = "F8_E4M3", 8 bits: "8-bit float, 4 exponent bits.";
    F8E5M2 = "F8_E5M2", 8 bits: "8-bit float, 5 exponent bits.";
    F8E8M0 = "F8_E8M0", 8 bits: "8-bit power of two.";
    F8E4M3Fnuz = "F8_E4M3FNUZ", 8 bits: "8-bit float, 4 exponent bits, no negative zero.";
    F8E5M2Fnuz = "F8_E5M2FNUZ", 8 bits: "8-bit float, 5 exponent bits, no negative zero.";
    F6E2M3 = "F6_E2M3", 6 bits: "6-bit float, packed.";
    F6E3M2 = "F6_E3M2", 6 bits: "6-bit float, packed.";
    F4 = "F4", 4 bits: "4-bit float, packed.";
}

impl Dtype {
    /// Whether MLX has this type. Elements of the others can be kept as bytes but not computed with.
    pub fn in_mlx(self) -> bool {
        !matches!(
            self,
            Self::F8E4M3
                | Self::F8E5M2
                | Self::F8E8M0
                | Self::F8E4M3Fnuz
                | Self::F8E5M2Fnuz
                | Self::F6E2M3
                | Self::F6E3M2
                | Self::F4
        )
    }

    /// Whether weights may have this type: F16, BF16 and F32.
    pub fn is_weight(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
