//! `+ - * / % & | ^ << >>` on arrays and numbers, unary `-` and `!`.
//!
//! They give `Result<Array>`, and take it as an operand beside an array, so that a chain needs one `?`: `((&a + &b) * &c)?`. (Rust's
//! rules leave out a `Result` on both sides and one beside a number.) A number takes the array's dtype where that can hold its
//! kind, as a Python number does: a float beside an integer array makes float32.
//!
//! ```
//! use oxmlx::Array;
//! let (a, b) = (Array::vector(&[1.0f32, 2.0])?, Array::vector(&[3.0f32, 4.0])?);
//! assert_eq!(((&a + &b) * &a)?.to_vec::<f32>()?, [4.0, 12.0]);
//! assert_eq!((2.0f32 * &a)?.to_vec::<f32>()?, [2.0, 4.0]);
//! # Ok::<(), oxmlx::Error>(())
//! ```

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use super::number::Number;
use crate::{Array, Result, ops};

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident),+ $(,)?) => {$(
        operators!(@arrays $trait $method $op; &Array, &Array; &Array, Array; Array, &Array; Array, Array);
        operators!(@results $trait $method $op; &Array, Array);
        operators!(@numbers $trait $method $op; bool, i32, i64, u32, f32, f64);
    )+};
    (@arrays $trait:ident $method:ident $op:ident; $($a:ty, $b:ty);+) => {$(
        impl $trait<$b> for $a {
            type Output = Result<Array>;
            fn $method(self, other: $b) -> Result<Array> {
                ops::$op(self.borrow(), other.borrow())
            }
        }
    )+};
    (@results $trait:ident $method:ident $op:ident; $($a:ty),+) => {$(
        impl $trait<Result<Array>> for $a {
            type Output = Result<Array>;
            fn $method(self, other: Result<Array>) -> Result<Array> {
                ops::$op(self.borrow(), &other?)
            }
        }

        impl $trait<$a> for Result<Array> {
            type Output = Result<Array>;
            fn $method(self, other: $a) -> Result<Array> {
                ops::$op(&self?, other.borrow())
            }
        }
    )+};
    (@numbers $trait:ident $method:ident $op:ident; $($number:ty),+) => {$(
        impl $trait<$number> for &Array {
            type Output = Result<Array>;
            fn $method(self, other: $number) -> Result<Array> {
                ops::$op(self, &other.beside(self)?)
            }
        }

        impl $trait<$number> for Array {
            type Output = Result<Array>;
            fn $method(self, other: $number) -> Result<Array> {
                ops::$op(&self, &other.beside(&self)?)
            }
        }

        impl $trait<&Array> for $number {
            type Output = Result<Array>;
            fn $method(self, other: &Array) -> Result<Array> {
                ops::$op(&self.beside(other)?, other)
            }
        }

        impl $trait<Array> for $number {
            type Output = Result<Array>;
            fn $method(self, other: Array) -> Result<Array> {
                ops::$op(&self.beside(&other)?, &other)
            }
        }
    )+};
}

/// `&Array` from an array or a reference to one, so that one macro arm serves both.
trait Borrow {
    fn borrow(&self) -> &Array;
}

impl Borrow for Array {
    fn borrow(&self) -> &Array {
        self
    }
}

impl Borrow for &Array {
    fn borrow(&self) -> &Array {
        self
    }
}

operators! {
    Add add add,
    Sub sub subtract,
    Mul mul multiply,
    Div div divide,
    Rem rem remainder,
    BitAnd bitand bitwise_and,
    BitOr bitor bitwise_or,
    BitXor bitxor bitwise_xor,
    Shl shl left_shift,
    Shr shr right_shift,
}

macro_rules! prefixes {
    ($($trait:ident $method:ident $op:ident),+ $(,)?) => {$(
        impl $trait for &Array {
            type Output = Result<Array>;
            fn $method(self) -> Result<Array> {
                ops::$op(self)
            }
        }

        impl $trait for Array {
            type Output = Result<Array>;
            fn $method(self) -> Result<Array> {
                ops::$op(&self)
            }
        }
    )+};
}

prefixes! {
    Neg neg negative,
    Not not bitwise_invert,
}
