//! `+ - * /` on arrays. They give `Result<Array>`, and take it as an operand too, so that a chain needs one `?`.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::{Array, Result, ops};

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident),+ $(,)?) => {$(
        impl $trait<&Array> for &Array {
            type Output = Result<Array>;
            fn $method(self, other: &Array) -> Result<Array> {
                ops::$op(self, other)
            }
        }

        impl $trait<Array> for &Array {
            type Output = Result<Array>;
            fn $method(self, other: Array) -> Result<Array> {
                ops::$op(self, &other)
            }
        }

        impl $trait<Result<Array>> for &Array {
            type Output = Result<Array>;
            fn $method(self, other: Result<Array>) -> Result<Array> {
                ops::$op(self, &other?)
            }
        }

        impl $trait<&Array> for Array {
            type Output = Result<Array>;
            fn $method(self, other: &Array) -> Result<Array> {
                ops::$op(&self, other)
            }
        }

        impl $trait<Array> for Array {
            type Output = Result<Array>;
            fn $method(self, other: Array) -> Result<Array> {
                ops::$op(&self, &other)
            }
        }
    )+};
}

operators! {
    Add add add,
    Sub sub subtract,
    Mul mul multiply,
    Div div divide,
}

impl Neg for &Array {
    type Output = Result<Array>;
    fn neg(self) -> Result<Array> {
        ops::negative(self)
    }
}
