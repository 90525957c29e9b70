//! Element types: MLX's fourteen dtypes, and the Rust types that hold them.

use half::{bf16, f16};
use num_complex::Complex32;

pub use oxmlx_sys::types::Dtype;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that an array can be made from and read as. Sealed: there is one for each [`Dtype`].
pub trait Element: sealed::Sealed + bytemuck::CheckedBitPattern + bytemuck::NoUninit + Send + Sync {
    /// The dtype that holds it.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),+ $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: Dtype = Dtype::$dtype;
        }
    )+};
}

elements! {
    bool => Bool,
    u8 => Uint8,
    u16 => Uint16,
    u32 => Uint32,
    u64 => Uint64,
    i8 => Int8,
    i16 => Int16,
    i32 => Int32,
    i64 => Int64,
    f16 => Float16,
    f32 => Float32,
    f64 => Float64,
    bf16 => Bfloat16,
    Complex32 => Complex64,
}
