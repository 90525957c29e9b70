//! To and from the crate `ndarray`, behind the feature of that name.

use std::borrow::Cow;

use ndarray::{ArrayBase, ArrayD, ArrayRef, Data, Dimension, IxDyn};

use crate::{Array, Element, Error, ErrorKind, Result};

impl Array {
    /// An array that holds a copy of an `ndarray`, whatever its layout. Dtype: that of `T`.
    ///
    /// ```
    /// use ndarray::array;
    /// use oxmlx::Array;
    /// let a = Array::from_ndarray(&array![[1.0f32, 2.0], [3.0, 4.0]].reversed_axes())?;
    /// assert_eq!(a.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a dimension that MLX can't count.
    pub fn from_ndarray<T: Element, D: Dimension>(values: &ArrayRef<T, D>) -> Result<Self> {
        let dimension = |&n: &usize| crate::ops::check::length(n as i64, "a dimension", "array");
        let shape = values.shape().iter().map(dimension).collect::<Result<Vec<i32>>>()?;
        let packed: Cow<'_, [T]> = match values.as_slice() {
            Some(slice) => Cow::Borrowed(slice),
            None => values.iter().copied().collect(),
        };
        Self::from_slice(&packed, &shape)
    }

    /// The values as an `ndarray` of dynamic dimension, in row-major order. Evaluates; copies.
    ///
    /// ```
    /// use oxmlx::Array;
    /// let a = Array::matrix(&[[1i32, 2, 3], [4, 5, 6]])?.transpose()?;
    /// assert_eq!(a.to_ndarray::<i32>()?, ndarray::array![[1, 4], [2, 5], [3, 6]].into_dyn());
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`to_vec`](Self::to_vec).
    pub fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        let shape: Vec<usize> = self.shape().iter().map(|&n| n as usize).collect();
        ArrayD::from_shape_vec(IxDyn(&shape), self.to_vec::<T>()?)
            .map_err(|e| Error::new(ErrorKind::Shape, "to_ndarray", "the shape can't be counted").with_source(e))
    }
}

impl<T: Element, S: Data<Elem = T>, D: Dimension> TryFrom<&ArrayBase<S, D>> for Array {
    type Error = Error;

    fn try_from(values: &ArrayBase<S, D>) -> Result<Self> {
        Self::from_ndarray(values)
    }
}

impl<T: Element> TryFrom<&Array> for ArrayD<T> {
    type Error = Error;

    fn try_from(array: &Array) -> Result<Self> {
        array.to_ndarray()
    }
}
