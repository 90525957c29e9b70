//! What an index means for one array: each axis accounted for, every bound checked.

use oxmlx_sys::array::Status;

use super::{Index, Slice};
use crate::ops::index::into_axis;
use crate::{Array, Dtype, Error, ErrorKind, Result, ops};

/// A place in the index, in order. All but `New` take one axis of the array.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// One element of the axis, counted from the front.
    At(i32),
    /// A part of the axis.
    Span(Span),
    /// No axis of the array, one of length 1 in the result.
    New,
    /// Elements of the axis, all inside.
    Array(Array),
}

/// The places `start`, `start + step` .. of an axis of length `axis`, `count` of them, all inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: i32,
    pub(super) count: i32,
    pub(super) step: i32,
    pub(super) axis: i32,
}

impl Span {
    fn all(axis: i32) -> Self {
        Self { start: 0, count: axis, step: 1, axis }
    }

    fn one(at: i32, axis: i32) -> Self {
        Self { start: at, count: 1, step: 1, axis }
    }

    pub(super) fn is_all(self) -> bool {
        self == Self::all(self.axis)
    }

    /// Python's rules for the bounds of a slice.
    fn cut(slice: Slice, axis: i32, op: &'static str) -> Result<Self> {
        let n = i64::from(axis);
        // A step longer than the axis reaches one place, as one of the axis' length does; MLX adds steps in 32 bits.
        let step = i64::from(slice.step).clamp(-n.max(1), n.max(1));
        if step == 0 {
            return Err(Error::new(ErrorKind::InvalidArgument, op, "a slice has a step of zero"));
        }
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let bound = |given: Option<i32>, default: i64| {
            given.map_or(default, |at| {
                let at = i64::from(at);
                (if at < 0 { at + n } else { at }).clamp(low, high)
            })
        };
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let (start, stop) = (bound(slice.start, first), bound(slice.stop, last));
        let length = if step > 0 { stop - start } else { start - stop }.max(0);
        let count = (length as u64).div_ceil(step.unsigned_abs());
        if count == 0 {
            return Ok(Self { start: 0, count: 0, step: 1, axis });
        }
        // All of these lie in the axis, whose length is an i32.
        Ok(Self { start: start as i32, count: count as i32, step: step as i32, axis })
    }

    /// Start, stop and stride as MLX's `slice` takes them: it counts a stop below zero from the end.
    fn bounds(self) -> [i32; 3] {
        let end = i64::from(self.start) + i64::from(self.count) * i64::from(self.step);
        let stop = if end < 0 { -i64::from(self.axis) - 1 } else { end.min(i64::from(self.axis)) };
        [self.start, stop as i32, self.step]
    }
}

/// What stands in an axis, or in several, of the part that an index names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Axis {
    /// The index arrays' own axes, all of them.
    Arrays,
    Span(Span),
    New,
}

/// Where the new axes are in a layout whose index arrays have `block` axes.
pub(super) fn new_axes(layout: &[Axis], block: usize) -> Vec<i32> {
    let (mut at, mut new) = (0, Vec::new());
    for axis in layout {
        if matches!(axis, Axis::New) {
            new.push(at as i32);
        }
        at += if matches!(axis, Axis::Arrays) { block } else { 1 };
    }
    new
}

/// An index made for one array: its places take all axes of it, in order.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) places: Vec<Place>,
}

impl Plan {
    pub(super) fn new(a: &Array, indices: Vec<Index<'_>>, op: &'static str) -> Result<Self> {
        let taken = indices.iter().filter(|i| !matches!(i, Index::NewAxis | Index::Ellipsis)).count();
        let Some(left) = a.ndim().checked_sub(taken) else {
            let text = format!("{taken} indices given for the {} dimensions of shape {:?}", a.ndim(), a.shape());
            return Err(Error::new(ErrorKind::Axis, op, text).with_shape(a.shape()));
        };
        if indices.iter().filter(|i| matches!(i, Index::Ellipsis)).count() > 1 {
            return Err(Error::new(ErrorKind::InvalidArgument, op, "an index can have one ellipsis only"));
        }
        let mut places = Vec::with_capacity(indices.len() + left);
        let mut axes = a.shape().iter().copied();
        let mut next = || axes.next().unwrap_or(0);
        let mut open = left;
        for index in indices {
            places.push(match index {
                Index::NewAxis => Place::New,
                Index::Ellipsis => {
                    places.extend((0..std::mem::take(&mut open)).map(|_| Place::Span(Span::all(next()))));
                    continue;
                }
                Index::At(at) => Place::At(inside(at.into(), next(), a, op)? as i32),
                Index::Slice(slice) => Place::Span(Span::cut(slice, next(), op)?),
                Index::Array(array) => Place::Array(checked(array, next(), a, op)?),
                Index::List(list) => Place::Array(listed(&list, next(), a, op)?),
            });
        }
        places.extend((0..open).map(|_| Place::Span(Span::all(next()))));
        Ok(Self { places })
    }

    pub(super) fn has_arrays(&self) -> bool {
        self.places.iter().any(|place| matches!(place, Place::Array(_)))
    }

    /// The place of each axis of the array: all places but new axes.
    pub(super) fn axes(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(|place| !matches!(place, Place::New))
    }

    /// The index arrays and the axes that they stand on.
    pub(super) fn arrays(&self) -> (Vec<Array>, Vec<i32>) {
        let placed = self.axes().zip(0..).filter_map(|(place, axis)| match place {
            Place::Array(array) => Some((array.clone(), axis)),
            _ => None,
        });
        placed.unzip()
    }

    /// The axes of the part in order, the index arrays' as one: where the first of them stood, or in front when something parts them.
    /// Python MLX counts integers beside arrays as arrays when it reads, and not when it writes.
    pub(super) fn layout(&self, reads: bool) -> Vec<Axis> {
        let arrays = self.has_arrays();
        let advanced = |place: &Place| match place {
            Place::Array(_) => true,
            Place::At(_) => arrays && reads,
            Place::Span(_) | Place::New => false,
        };
        let first = self.places.iter().position(advanced);
        let last = self.places.iter().rposition(advanced);
        let parted = first.zip(last).is_some_and(|(first, last)| {
            self.places[first..=last].iter().any(|p| matches!(p, Place::Span(_) | Place::New))
        });
        let mut axes = Vec::with_capacity(self.places.len());
        if parted {
            axes.push(Axis::Arrays);
        }
        for (i, place) in self.places.iter().enumerate() {
            match place {
                Place::New => axes.push(Axis::New),
                Place::Span(span) => axes.push(Axis::Span(*span)),
                Place::Array(_) | Place::At(_) if Some(i) == first && !parted => axes.push(Axis::Arrays),
                Place::Array(_) | Place::At(_) => {}
            }
        }
        axes
    }

    /// Start, stop and strides of the part that integers and ranges cut out; `None` when that is the whole array.
    pub(super) fn bounds(&self) -> Option<[Vec<i32>; 3]> {
        let mut all = true;
        let mut bounds = [Vec::new(), Vec::new(), Vec::new()];
        let lengths = self.axes().map(|place| match *place {
            Place::At(at) => Span::one(at, i32::MAX),
            Place::Span(span) => span,
            Place::Array(_) | Place::New => Span::all(i32::MAX),
        });
        for span in lengths {
            all &= span.is_all();
            bounds.iter_mut().zip(span.bounds()).for_each(|(list, bound)| list.push(bound));
        }
        (!all).then_some(bounds)
    }
}

/// An index from the front, or the error that says where it lies outside.
fn inside(at: i64, axis: i32, a: &Array, op: &'static str) -> Result<i64> {
    let n = i64::from(axis);
    if (-n..n).contains(&at) {
        return Ok(if at < 0 { at + n } else { at });
    }
    let text = format!("index {at} is outside an axis of length {axis} of shape {:?}", a.shape());
    Err(Error::new(ErrorKind::Index, op, text).with_shape(a.shape()))
}

fn listed(list: &[i32], axis: i32, a: &Array, op: &'static str) -> Result<Array> {
    let places: Vec<i32> = list.iter().map(|&at| Ok(inside(at.into(), axis, a, op)? as i32)).collect::<Result<_>>()?;
    Array::vector(&places)
}

/// An index array whose values lie inside: checked where they are there, clamped in the graph where they are not.
fn checked(indices: &Array, axis: i32, a: &Array, op: &'static str) -> Result<Array> {
    if indices.dtype() == Dtype::Bool {
        let text = "a bool mask is an index of its own, without others beside it";
        return Err(Error::new(ErrorKind::Dtype, op, text).with_dtype(Dtype::Bool));
    }
    ops::check::integer(indices, op)?;
    let there = indices.0.status()? == Status::Available && !indices.0.is_tracer()?;
    let values = if there { known(indices)? } else { None };
    let Some(values) = values else {
        let inside = into_axis(indices, axis, 1, op)?;
        // MLX has no integer dtype for uint64 beside a signed one. What was clamped fits.
        return if inside.dtype() == Dtype::Uint64 { ops::astype(&inside, Dtype::Uint32) } else { Ok(inside) };
    };
    for at in values {
        inside(at, axis, a, op)?;
    }
    if indices.dtype() == Dtype::Uint64 {
        return ops::astype(indices, Dtype::Uint32);
    }
    Ok(indices.clone())
}

/// The values of an array that is there; `None` when they do not lie one after another.
fn known(indices: &Array) -> Result<Option<Vec<i64>>> {
    macro_rules! widened {
        ($ty:ty) => {
            indices.try_as_slice::<$ty>()?.iter().map(|&i| i64::try_from(i).unwrap_or(i64::MAX)).collect()
        };
    }
    if !indices.0.row_contiguous()? {
        return Ok(None);
    }
    let values: Vec<i64> = match indices.dtype() {
        Dtype::Int8 => widened!(i8),
        Dtype::Int16 => widened!(i16),
        Dtype::Int32 => widened!(i32),
        Dtype::Int64 => widened!(i64),
        Dtype::Uint8 => widened!(u8),
        Dtype::Uint16 => widened!(u16),
        Dtype::Uint32 => widened!(u32),
        Dtype::Uint64 => widened!(u64),
        _ => return Ok(None),
    };
    Ok(Some(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(start: Option<i32>, stop: Option<i32>, step: i32, n: i32) -> Vec<i32> {
        let span = Span::cut(Slice { start, stop, step }, n, "get").unwrap();
        (0..span.count).map(|i| span.start + i * span.step).collect()
    }

    #[test]
    fn slices_are_cut_as_python_cuts_them() {
        // list(range(5))[start:stop:step]
        assert_eq!(cut(None, None, 1, 5), [0, 1, 2, 3, 4]);
        assert_eq!(cut(Some(1), Some(-1), 2, 5), [1, 3]);
        assert_eq!(cut(None, None, -1, 5), [4, 3, 2, 1, 0]);
        assert_eq!(cut(Some(100), Some(-100), -2, 5), [4, 2, 0]);
        assert_eq!(cut(Some(-2), None, -3, 5), [3, 0]);
        assert_eq!(cut(Some(3), Some(1), 1, 5), [0; 0]);
        assert_eq!(cut(Some(i32::MIN), Some(i32::MAX), i32::MAX, 5), [0]);
        assert_eq!(cut(Some(i32::MAX), Some(i32::MIN), i32::MIN, 5), [4]);
        assert_eq!(cut(None, None, -1, 0), [0; 0]);
    }
}
