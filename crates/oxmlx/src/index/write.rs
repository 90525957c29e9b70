//! Writing: into a strided part where there are no index arrays, else one scatter.

use oxmlx_sys::generated::ops as raw;

use super::plan::{Axis, Place, Plan, Span, new_axes};
use super::{Index, Indices, mask};
use crate::ops::number::Number;
use crate::{Array, Error, ErrorKind, Result, ops};

/// What can be written into an array: an array, or a number, which takes the array's dtype where that can hold its kind.
pub trait IntoValues {
    /// The values as an array to write into `target`.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    fn into_values(self, target: &Array) -> Result<Array>;
}

impl IntoValues for &Array {
    fn into_values(self, _: &Array) -> Result<Array> {
        Ok(self.clone())
    }
}

impl IntoValues for Array {
    fn into_values(self, _: &Array) -> Result<Array> {
        Ok(self)
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl IntoValues for $number {
            fn into_values(self, target: &Array) -> Result<Array> {
                self.beside(target)
            }
        }
    )+};
}

numbers! { bool, i32, i64, u32, f32, f64 }

impl Array {
    /// Writes `values` into the part that an index names: the handle then stands for the changed array.
    ///
    /// Other handles of the array keep the old values; MLX works in place where there are none. Shapes: `values` broadcasts to the part
    /// (see [`get`](Self::get); here integers do not count as arrays when a range parts index arrays, as in Python). Dtypes: `values`
    /// is converted to the array's. Lazy. Of several values for one place the last stays on the CPU, any one on a GPU.
    ///
    /// With a **bool mask** of the first axes `values` broadcasts to the rows under it, or has one row for each true element in
    /// their order; with fewer rows than that, evaluation is an error on the CPU, and the places without a row keep what they had on
    /// a GPU.
    ///
    /// ```
    /// use oxmlx::Array;
    /// let mut a = Array::zeros::<i32>((2, 3))?;
    /// a.set((.., 1), &Array::vector(&[7i32, 8])?)?;
    /// a.set((1, &[0, 2]), 9)?;
    /// assert_eq!(a.to_vec::<i32>()?, [0, 7, 0, 9, 8, 9]);
    /// a.set(&a.equal(&Array::scalar(9i32)?)?, 1.9)?;
    /// assert_eq!(a.to_vec::<i32>()?, [0, 7, 0, 1, 8, 1]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get); [`ErrorKind::Shape`] for values that do not broadcast to the part. The array is as before then.
    ///
    /// # Source
    /// Python `mlx.core.array.__setitem__`; differs: the dtype never changes, and out of range is undefined there.
    pub fn set<'a>(&mut self, indices: impl Indices<'a>, values: impl IntoValues) -> Result<()> {
        let values = values.into_values(self)?;
        *self = write(self, indices.into_indices(), &values, Change::Set, "set")?;
        Ok(())
    }

    /// The part that an index names, to be changed in a copy: `a.at(i).add(v)` and its like.
    ///
    /// Unlike `a[i] += v` in most languages, a place that an index array names twice is changed twice. Same shapes, dtypes and errors as
    /// [`set`](Self::set).
    ///
    /// ```
    /// use oxmlx::Array;
    /// let a = Array::vector(&[1.0f32, 2.0, 3.0])?;
    /// assert_eq!(a.at(&[0, 0, 2]).add(10.0)?.to_vec::<f32>()?, [21.0, 2.0, 13.0]);
    /// assert_eq!(a.at(1..).maximum(2.5)?.to_vec::<f32>()?, [1.0, 2.5, 3.0]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Source
    /// Python `mlx.core.array.at`.
    pub fn at<'a>(&'a self, indices: impl Indices<'a>) -> At<'a> {
        At { array: self, indices: indices.into_indices() }
    }
}

/// A part of an array that can be changed in a copy. Made by [`Array::at`].
#[derive(Clone, Debug)]
#[must_use = "nothing changes before one of its methods is called"]
pub struct At<'a> {
    array: &'a Array,
    indices: Vec<Index<'a>>,
}

/// How a part and the values become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Set,
    Add,
    Multiply,
    Maximum,
    Minimum,
}

macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident, $change:ident, $values:ident => $prepared:expr, $example:literal, $python:literal);+ $(;)?) => {
        impl At<'_> {$(
            $(#[$doc])*
            ///
            /// ```
            /// use oxmlx::Array;
            /// let a = Array::vector(&[8i32, 6, 4])?;
            #[doc = concat!("assert_eq!(a.at(..2).", stringify!($name), "(", $example, ";")]
            /// # Ok::<(), oxmlx::Error>(())
            /// ```
            ///
            /// # Errors
            /// As [`Array::set`]; [`ErrorKind::Unsupported`] for a mask, except to `set`.
            ///
            /// # Source
            #[doc = concat!("Python `mlx.core.array", $python, "`; differs: the dtype never changes.")]
            pub fn $name(&self, values: impl IntoValues) -> Result<Array> {
                let $values = values.into_values(self.array)?;
                write(self.array, self.indices.clone(), &$prepared, Change::$change, stringify!($name))
            }
        )+}
    };
}

changes! {
    /// The array with `values` in place of the part.
    set, Set, v => v, "1)?.to_vec::<i32>()?, [1, 1, 4])", ".__setitem__";
    /// The array with `values` added to the part.
    add, Add, v => v, "1)?.to_vec::<i32>()?, [9, 7, 4])", ".at[..].add";
    /// The array with `values` subtracted from the part. Values are negated, so that unsigned and bool ones are an error.
    subtract, Add, v => ops::negative(&v)?, "1)?.to_vec::<i32>()?, [7, 5, 4])", ".at[..].subtract";
    /// The array with the part multiplied by `values`.
    multiply, Multiply, v => v, "2)?.to_vec::<i32>()?, [16, 12, 4])", ".at[..].multiply";
    /// The array with the part multiplied by the reciprocals of `values`, which in an array of integers are 0, or 1 for 1.
    divide, Multiply, v => ops::reciprocal(&v)?, "1)?.to_vec::<i32>()?, [8, 6, 4])", ".at[..].divide";
    /// The array with the part raised to `values` where below them.
    maximum, Maximum, v => v, "7)?.to_vec::<i32>()?, [8, 7, 4])", ".at[..].maximum";
    /// The array with the part lowered to `values` where above them.
    minimum, Minimum, v => v, "7)?.to_vec::<i32>()?, [7, 6, 4])", ".at[..].minimum";
}

fn write(a: &Array, indices: Vec<Index<'_>>, values: &Array, change: Change, op: &'static str) -> Result<Array> {
    if let [Index::Array(mask)] = indices[..]
        && mask::is_mask(mask)
    {
        if change == Change::Set {
            return mask::write(a, mask, values, op);
        }
        let text = "a mask can be set only: use where_ with the changed array";
        return Err(Error::new(ErrorKind::Unsupported, op, text));
    }
    let plan = Plan::new(a, indices, op)?;
    if a.ndim() == 0 {
        // MLX's slices need an axis.
        let row = write(&ops::expand_dims(a, 0)?, Vec::new(), values, change, op)?;
        return ops::squeeze(&row, 0);
    }
    let layout = plan.layout(false);
    let block = ops::check::broadcast_shape(&plan.arrays().0, op)?;
    let mut part = Vec::new();
    for axis in &layout {
        match axis {
            Axis::Arrays => part.extend_from_slice(&block),
            Axis::Span(span) => part.push(span.count),
            Axis::New => part.push(1),
        }
    }
    let values = fitted(values, &part, op)?;
    if part.contains(&0) {
        return Ok(a.clone());
    }
    let new = new_axes(&layout, block.len());
    let values = if new.is_empty() { values } else { ops::squeeze_axes(&values, &new)? };
    if plan.has_arrays() {
        scattered(a, &plan, &layout, block.len(), &values, change)
    } else {
        into_part(a, &plan, &values, change)
    }
}

/// `values` broadcast to the part; axes of length 1 that it has too many in front do not count.
fn fitted(values: &Array, part: &[i32], op: &'static str) -> Result<Array> {
    let excess = values.ndim().saturating_sub(part.len());
    let shape = values.shape();
    let misfit = || {
        let text = format!("values of shape {shape:?} do not broadcast to the part's shape {part:?}");
        Error::new(ErrorKind::Shape, op, text).with_shape(shape).with_shape(part)
    };
    if shape[..excess].iter().any(|&n| n != 1) {
        return Err(misfit());
    }
    if shape[excess..].iter().rev().zip(part.iter().rev()).any(|(&n, &wanted)| n != wanted && n != 1) {
        return Err(misfit());
    }
    let front: Vec<i32> = (0..excess as i32).collect();
    let values = if excess > 0 { ops::squeeze_axes(values, &front)? } else { values.clone() };
    if values.shape() == part { Ok(values) } else { ops::broadcast_to(&values, part) }
}

/// Writes into a strided part. `values` has an axis for each range.
fn into_part(a: &Array, plan: &Plan, values: &Array, change: Change) -> Result<Array> {
    let singles: Vec<i32> =
        plan.axes().zip(0..).filter(|(place, _)| matches!(place, Place::At(_))).map(|(_, axis)| axis).collect();
    let values = if singles.is_empty() { values.clone() } else { ops::expand_dims_axes(values, &singles)? };
    let whole = || [vec![0; a.ndim()], a.shape().to_vec(), vec![1; a.ndim()]];
    let [start, stop, strides] = plan.bounds().unwrap_or_else(whole);
    let (a, v) = (&a.0, &values.0);
    Ok(match change {
        Change::Set => raw::slice_update(a, v, &start, &stop, &strides),
        Change::Add => raw::slice_update_add(a, v, &start, &stop, &strides),
        Change::Multiply => raw::slice_update_prod(a, v, &start, &stop, &strides),
        Change::Maximum => raw::slice_update_max(a, v, &start, &stop, &strides),
        Change::Minimum => raw::slice_update_min(a, v, &start, &stop, &strides),
    }?
    .into())
}

/// Writes by index arrays: what has a stride becomes an index array too, plain ranges stay slices of the updates.
///
/// `values` has the axes of `layout` without the new ones; the index arrays broadcast to `block` axes.
fn scattered(a: &Array, plan: &Plan, layout: &[Axis], block: usize, values: &Array, change: Change) -> Result<Array> {
    let strided = plan.axes().filter(|place| matches!(place, Place::Span(span) if span.step != 1)).count();
    // Axes of the updates: the arrays', one for each strided range, then one for each axis of `a`.
    let (mut arrays, mut by_index, mut plain, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for axis in layout {
        match axis {
            Axis::Arrays => {
                arrays.extend((at..at + block).map(|i| i as i32));
                at += block;
            }
            Axis::Span(span) => {
                if span.step == 1 { &mut plain } else { &mut by_index }.push(at as i32);
                at += 1;
            }
            Axis::New => {}
        }
    }
    let updates = ops::transpose(values, &[arrays, by_index, plain].concat())?;
    let lead = (block + strided) as i32;
    let missing = |(place, _): &(&Place, i32)| !matches!(place, Place::Span(span) if span.step == 1);
    let missing: Vec<i32> = plan.axes().zip(lead..).filter(missing).map(|(_, axis)| axis).collect();
    let updates = ops::expand_dims_axes(&updates, &missing)?;

    let (mut indices, mut axes, mut nth) = (Vec::new(), Vec::new(), 0);
    for (place, axis) in plan.axes().zip(0..) {
        indices.push(match place {
            Place::Array(array) => {
                let mut shape = vec![1; block - array.ndim()];
                shape.extend_from_slice(array.shape());
                shape.extend(std::iter::repeat_n(1, strided));
                ops::reshape(array, &shape)?
            }
            Place::At(at) => Array::scalar(*at)?,
            Place::Span(span) if span.step != 1 => {
                let mut shape = vec![1; block + strided];
                shape[block + nth] = span.count;
                nth += 1;
                ops::reshape(&strided_places(*span)?, &shape)?
            }
            Place::Span(span) if !span.is_all() => Array::scalar(span.start)?,
            Place::Span(_) | Place::New => continue,
        });
        axes.push(axis);
    }
    let (a, indices, updates) = (&a.0, Array::raw(&indices), &updates.0);
    Ok(match change {
        Change::Set => raw::scatter(a, indices, updates, &axes),
        Change::Add => raw::scatter_add(a, indices, updates, &axes),
        Change::Multiply => raw::scatter_prod(a, indices, updates, &axes),
        Change::Maximum => raw::scatter_max(a, indices, updates, &axes),
        Change::Minimum => raw::scatter_min(a, indices, updates, &axes),
    }?
    .into())
}

fn strided_places(span: Span) -> Result<Array> {
    let places: Vec<i32> = (0..span.count).map(|i| span.start + i * span.step).collect();
    Array::vector(&places)
}
