//! What may stand for a shape or for axes: numbers, tuples, arrays, slices.

use std::borrow::Cow;

/// Something that names a shape: `()`, `3`, `(2, 3)`, `[2, 3]`, `&[i32]`, `Vec<i32>`.
///
/// ```
/// use oxmlx::Array;
/// assert_eq!(Array::zeros::<f32>((2, 3))?.shape(), [2, 3]);
/// assert_eq!(Array::zeros::<f32>([4])?.shape(), [4]);
/// assert!(Array::zeros::<f32>(())?.shape().is_empty());
/// # Ok::<(), oxmlx::Error>(())
/// ```
pub trait IntoShape<'a> {
    /// The dimensions, outermost first.
    fn into_shape(self) -> Cow<'a, [i32]>;
}

impl<'a> IntoShape<'a> for &'a [i32] {
    fn into_shape(self) -> Cow<'a, [i32]> {
        Cow::Borrowed(self)
    }
}

impl<'a> IntoShape<'a> for &'a Vec<i32> {
    fn into_shape(self) -> Cow<'a, [i32]> {
        Cow::Borrowed(self)
    }
}

impl<'a, const N: usize> IntoShape<'a> for &'a [i32; N] {
    fn into_shape(self) -> Cow<'a, [i32]> {
        Cow::Borrowed(self)
    }
}

impl<const N: usize> IntoShape<'static> for [i32; N] {
    fn into_shape(self) -> Cow<'static, [i32]> {
        Cow::Owned(self.to_vec())
    }
}

impl IntoShape<'static> for Vec<i32> {
    fn into_shape(self) -> Cow<'static, [i32]> {
        Cow::Owned(self)
    }
}

impl IntoShape<'static> for i32 {
    fn into_shape(self) -> Cow<'static, [i32]> {
        Cow::Owned(vec![self])
    }
}

impl IntoShape<'static> for () {
    fn into_shape(self) -> Cow<'static, [i32]> {
        Cow::Borrowed(&[])
    }
}

macro_rules! tuples {
    ($(($($name:ident),+)),+ $(,)?) => {$(
        impl IntoShape<'static> for ($(tuples!(@i32 $name),)+) {
            #[expect(non_snake_case, reason = "one name an element, from the macro's list")]
            fn into_shape(self) -> Cow<'static, [i32]> {
                let ($($name,)+) = self;
                Cow::Owned(vec![$($name),+])
            }
        }
    )+};
    (@i32 $name:ident) => { i32 };
}

tuples! { (A), (A, B), (A, B, C), (A, B, C, D), (A, B, C, D, E), (A, B, C, D, E, F) }

/// The number of elements of a shape; `None` for a negative dimension or a product over `usize`.
pub(crate) fn element_count(shape: &[i32]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &dim| n.checked_mul(usize::try_from(dim).ok()?))
}

/// The shape that two shapes broadcast to.
///
/// ```
/// assert_eq!(oxmlx::shape::broadcast_shapes((2, 1), 3)?, [2, 3]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) when they do not.
///
/// # Source
/// C++ `mlx::core::broadcast_shapes` (`mlx/utils.h`).
pub fn broadcast_shapes<'a, 'b>(a: impl IntoShape<'a>, b: impl IntoShape<'b>) -> crate::Result<Vec<i32>> {
    Ok(oxmlx_sys::generated::utils::broadcast_shapes(&a.into_shape(), &b.into_shape())?)
}

/// An axis counted from the front, of an array with `ndim` dimensions.
///
/// ```
/// assert_eq!(oxmlx::shape::normalize_axis(-1, 3)?, 2);
/// assert!(oxmlx::shape::normalize_axis(3, 3).is_err());
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Axis`](crate::ErrorKind::Axis) for an axis outside the dimensions.
///
/// # Source
/// C++ `mlx::core::normalize_axis_index` (`mlx/utils.h`).
pub fn normalize_axis(axis: i32, ndim: i32) -> crate::Result<i32> {
    if ndim < 0 || !(-ndim..ndim).contains(&axis) {
        let text = format!("axis {axis} is outside {ndim} dimensions");
        return Err(crate::Error::new(crate::ErrorKind::Axis, "normalize_axis_index", text));
    }
    Ok(oxmlx_sys::generated::utils::normalize_axis_index(axis, ndim, "")?)
}
