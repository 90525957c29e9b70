//! Metadata values, each kept as the type that the file gives it.

use super::cursor::Cursor;
use crate::Result;

/// Arrays of arrays deeper than this are refused: no writer makes them, and reading them recurses.
const MAX_DEPTH: usize = 4;

macro_rules! scalars {
    ($($name:ident($ty:ty) = $id:literal),* $(,)?) => {
        /// One metadata value.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Value<'a> {
            $(#[doc = concat!("A `", stringify!($ty), "`.")] $name($ty),)*
            /// True or false.
            Bool(bool),
            /// Text.
            Str(&'a str),
            /// Several values of one type.
            Array(Array<'a>),
        }

        /// A metadata array.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Array<'a> {
            $(#[doc = concat!("Values of type `", stringify!($ty), "`.")] $name(Vec<$ty>),)*
            /// True or false values.
            Bool(Vec<bool>),
            /// Texts.
            Str(Vec<&'a str>),
            /// Arrays, each with a type of its own.
            Array(Vec<Array<'a>>),
        }

        impl<'a> Value<'a> {
            pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
                let id = cursor.u32()?;
                Ok(match id {
                    $($id => Self::$name(<$ty>::from_le_bytes(cursor.array()?)),)*
                    7 => Self::Bool(read_bool(cursor)?),
                    8 => Self::Str(cursor.text()?),
                    9 => Self::Array(Array::read(cursor, 0)?),
                    _ => return Err(cursor.damaged(format!("damaged file: {id} is no value type"))),
                })
            }

            /// What kind of value it is, for messages.
            pub fn type_name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($ty),)*
                    Self::Bool(_) => "bool",
                    Self::Str(_) => "string",
                    Self::Array(_) => "array",
                }
            }
        }

        impl<'a> Array<'a> {
            fn read(cursor: &mut Cursor<'a>, depth: usize) -> Result<Self> {
                let id = cursor.u32()?;
                Ok(match id {
                    $($id => {
                        const SIZE: usize = size_of::<$ty>();
                        let count = cursor.count("array elements", SIZE)?;
                        let (items, _) = cursor.take(count * SIZE)?.as_chunks::<SIZE>();
                        Self::$name(items.iter().map(|&b| <$ty>::from_le_bytes(b)).collect())
                    })*
                    7 => read_items(cursor, 1, read_bool).map(Self::Bool)?,
                    8 => read_items(cursor, 8, Cursor::text).map(Self::Str)?,
                    9 if depth < MAX_DEPTH => read_items(cursor, 12, |c| Self::read(c, depth + 1)).map(Self::Array)?,
                    9 => return Err(cursor.damaged(format!("arrays nested more than {MAX_DEPTH} deep"))),
                    _ => return Err(cursor.damaged(format!("damaged file: {id} is no value type"))),
                })
            }

            /// How many elements there are.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$name(v) => v.len(),)*
                    Self::Bool(v) => v.len(),
                    Self::Str(v) => v.len(),
                    Self::Array(v) => v.len(),
                }
            }
        }
    };
}

scalars! {
    U8(u8) = 0,
    I8(i8) = 1,
    U16(u16) = 2,
    I16(i16) = 3,
    U32(u32) = 4,
    I32(i32) = 5,
    F32(f32) = 6,
    U64(u64) = 10,
    I64(i64) = 11,
    F64(f64) = 12,
}

fn read_bool(cursor: &mut Cursor<'_>) -> Result<bool> {
    match cursor.array()? {
        [0] => Ok(false),
        [1] => Ok(true),
        [other] => Err(cursor.damaged(format!("damaged file: a bool is {other}, neither 0 nor 1"))),
    }
}

fn read_items<'a, T>(
    cursor: &mut Cursor<'a>,
    least_bytes: usize,
    mut read: impl FnMut(&mut Cursor<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = cursor.count("array elements", least_bytes)?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        items.push(read(cursor)?);
    }
    Ok(items)
}

impl<'a> Value<'a> {
    /// The value of an integer of any width that isn't negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(v) => Some(v.into()),
            Self::U16(v) => Some(v.into()),
            Self::U32(v) => Some(v.into()),
            Self::U64(v) => Some(v),
            Self::I8(v) => v.try_into().ok(),
            Self::I16(v) => v.try_into().ok(),
            Self::I32(v) => v.try_into().ok(),
            Self::I64(v) => v.try_into().ok(),
            _ => None,
        }
    }

    /// The value of a float of either width.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::F32(v) => Some(v.into()),
            Self::F64(v) => Some(v),
            _ => None,
        }
    }

    /// The value of a bool.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(v) => Some(v),
            _ => None,
        }
    }

    /// The text of a string; it borrows from the file, not from the value.
    pub fn as_str(&self) -> Option<&'a str> {
        match *self {
            Self::Str(v) => Some(v),
            _ => None,
        }
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&Array<'a>> {
        match self {
            Self::Array(v) => Some(v),
            _ => None,
        }
    }
}

impl<'a> Array<'a> {
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The texts of an array of strings.
    pub fn as_strs(&self) -> Option<&[&'a str]> {
        match self {
            Self::Str(v) => Some(v),
            _ => None,
        }
    }

    /// The elements of an array of integers of any width up to 32 bits, or of wider ones that fit an `i64`.
    pub fn to_i64s(&self) -> Option<Vec<i64>> {
        fn widen<T: Copy + TryInto<i64>>(v: &[T]) -> Option<Vec<i64>> {
            v.iter().map(|&x| x.try_into().ok()).collect()
        }
        match self {
            Self::U8(v) => widen(v),
            Self::I8(v) => widen(v),
            Self::U16(v) => widen(v),
            Self::I16(v) => widen(v),
            Self::U32(v) => widen(v),
            Self::I32(v) => widen(v),
            Self::U64(v) => widen(v),
            Self::I64(v) => widen(v),
            _ => None,
        }
    }

    /// The elements of an array of `f32`.
    pub fn as_f32s(&self) -> Option<&[f32]> {
        match self {
            Self::F32(v) => Some(v),
            _ => None,
        }
    }
}
