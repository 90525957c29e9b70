//! What may stand in an index: the types, and what converts to them.

use std::borrow::Cow;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::Array;

/// One entry of an index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Index<'a> {
    /// One place along an axis, which the result does not have; negative ones count from the end.
    At(i32),
    /// A part of an axis.
    Slice(Slice),
    /// As many whole axes as the other entries leave. At most one.
    Ellipsis,
    /// An axis of length 1 in the result.
    NewAxis,
    /// Places along an axis, which stand for it in the result. A bool array is a mask of the first axes.
    Array(&'a Array),
    /// Places along an axis, in a list.
    List(Cow<'a, [i32]>),
}

/// A part of an axis from `start` up to, and without, `stop`, by `step`: Python's `start:stop:step`.
///
/// Negative bounds count from the end, those outside are cut to the axis, and a negative step goes backwards from `start` down to
/// above `stop`. Ranges convert to it; [`By::by`] gives them a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Where it starts; `None` for the first place, or the last of a negative step.
    pub start: Option<i32>,
    /// Where it ends, itself left out; `None` for the end, or the beginning of a negative step.
    pub stop: Option<i32>,
    /// How far it is from one place to the next. Zero is an error when the slice is used.
    pub step: i32,
}

impl Slice {
    /// `start:stop:step`, where `None` leaves a bound out.
    ///
    /// Clippy takes a range such as `1..-1` or `5..1` for a mistake; this says the same without it.
    ///
    /// ```
    /// use oxmlx::Array;
    /// use oxmlx::index::Slice;
    /// let a = Array::vector(&[0i32, 1, 2, 3, 4])?;
    /// assert_eq!(a.get(Slice::new(1, -1, 1))?.to_vec::<i32>()?, [1, 2, 3]);
    /// assert_eq!(a.get(Slice::new(3, None, -2))?.to_vec::<i32>()?, [3, 1]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    pub fn new(start: impl Into<Option<i32>>, stop: impl Into<Option<i32>>, step: i32) -> Self {
        Self { start: start.into(), stop: stop.into(), step }
    }
}

/// All axes that the other entries of an index leave: Python's `...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ellipsis;

/// An axis of length 1 that the result has and the array has not: Python's `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NewAxis;

/// One entry of an index: what converts to [`Index`].
pub trait IntoIndex<'a> {
    /// The entry.
    fn into_index(self) -> Index<'a>;
}

/// A whole index: one entry, a tuple of up to eight, or a list of [`Index`].
pub trait Indices<'a> {
    /// The entries in order.
    fn into_indices(self) -> Vec<Index<'a>>;
}

/// A range with a step.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::index::By;
/// let a = Array::vector(&[0i32, 1, 2, 3, 4])?;
/// assert_eq!(a.get((1..).by(2))?.to_vec::<i32>()?, [1, 3]);
/// let (high, low) = (3, 0);
/// assert_eq!(a.get((high..low).by(-1))?.to_vec::<i32>()?, [3, 2, 1]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
pub trait By: Into<Slice> {
    /// Every `step`-th place; backwards for a negative step, whose range then goes from the higher bound to the lower.
    fn by(self, step: i32) -> Slice;
}

macro_rules! ranges {
    ($($range:ty, $self:ident, $step:ident => $start:expr, $stop:expr);+ $(;)?) => {$(
        impl From<$range> for Slice {
            fn from(range: $range) -> Self {
                range.by(1)
            }
        }

        impl By for $range {
            fn by($self, $step: i32) -> Slice {
                Slice { start: $start, stop: $stop, step: $step }
            }
        }
    )+};
}

ranges! {
    Range<i32>, self, step => Some(self.start), Some(self.end);
    RangeFrom<i32>, self, step => Some(self.start), None;
    RangeTo<i32>, self, step => None, Some(self.end);
    RangeFull, self, step => None, None;
    RangeInclusive<i32>, self, step => Some(*self.start()), after(*self.end(), step);
    RangeToInclusive<i32>, self, step => None, after(self.end, step);
}

/// The bound that leaves out what comes after `last`: none where that would count from the other end.
fn after(last: i32, step: i32) -> Option<i32> {
    match (last, step < 0) {
        (-1, false) | (0, true) => None,
        (_, false) => Some(last.saturating_add(1)),
        (_, true) => Some(last.saturating_sub(1)),
    }
}

macro_rules! entries {
    ($([$($generics:tt)*] $entry:ty, $self:ident => $index:expr);+ $(;)?) => {$(
        impl<'a, $($generics)*> IntoIndex<'a> for $entry {
            fn into_index($self) -> Index<'a> {
                $index
            }
        }

        impl<'a, $($generics)*> Indices<'a> for $entry {
            fn into_indices(self) -> Vec<Index<'a>> {
                vec![self.into_index()]
            }
        }
    )+};
}

entries! {
    [] Index<'a>, self => self;
    [] i32, self => Index::At(self);
    [] Slice, self => Index::Slice(self);
    [] Range<i32>, self => Index::Slice(self.into());
    [] RangeFrom<i32>, self => Index::Slice(self.into());
    [] RangeTo<i32>, self => Index::Slice(self.into());
    [] RangeFull, self => Index::Slice(self.into());
    [] RangeInclusive<i32>, self => Index::Slice(self.into());
    [] RangeToInclusive<i32>, self => Index::Slice(self.into());
    [] Ellipsis, self => Index::Ellipsis;
    [] NewAxis, self => Index::NewAxis;
    [] &'a Array, self => Index::Array(self);
    [] &'a [i32], self => Index::List(Cow::Borrowed(self));
    [] &'a Vec<i32>, self => Index::List(Cow::Borrowed(self));
    [] Vec<i32>, self => Index::List(Cow::Owned(self));
    [const N: usize] &'a [i32; N], self => Index::List(Cow::Borrowed(self));
    [const N: usize] [i32; N], self => Index::List(Cow::Owned(self.to_vec()));
}

impl<'a> Indices<'a> for Vec<Index<'a>> {
    fn into_indices(self) -> Vec<Index<'a>> {
        self
    }
}

impl<'a> Indices<'a> for &[Index<'a>] {
    fn into_indices(self) -> Vec<Index<'a>> {
        self.to_vec()
    }
}

impl<'a> Indices<'a> for () {
    fn into_indices(self) -> Vec<Index<'a>> {
        Vec::new()
    }
}

macro_rules! tuples {
    ($(($($name:ident),+))+) => {$(
        impl<'a, $($name: IntoIndex<'a>),+> Indices<'a> for ($($name,)+) {
            #[expect(non_snake_case, reason = "one name an element, from the macro's list")]
            fn into_indices(self) -> Vec<Index<'a>> {
                let ($($name,)+) = self;
                vec![$($name.into_index()),+]
            }
        }
    )+};
}

tuples! {
    (A)
    (A, B)
    (A, B, C)
    (A, B, C, D)
    (A, B, C, D, E)
    (A, B, C, D, E, F)
    (A, B, C, D, E, F, G)
    (A, B, C, D, E, F, G, H)
}
