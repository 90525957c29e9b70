//! The one error of this crate: a size that does not fit. Kernels check every slice length before they touch memory.

use std::fmt;

/// A size that does not match what a kernel needs.
///
/// Names the operation, the quantity that is wrong, what was needed and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeError {
    op: &'static str,
    what: &'static str,
    need: Need,
    got: usize,
}

/// What a quantity had to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Exactly(usize),
    AtLeast(usize),
    AtMost(usize),
    MultipleOf(usize),
    OneOf(&'static [usize]),
}

impl ShapeError {
    /// The operation that refused.
    pub fn op(&self) -> &'static str {
        self.op
    }

    /// The quantity that does not fit, for instance `scales`.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// The size that was found.
    pub fn got(&self) -> usize {
        self.got
    }
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} is {}, expected ", self.op, self.what, self.got)?;
        match self.need {
            Need::Exactly(n) => write!(f, "{n}"),
            Need::AtLeast(n) => write!(f, "at least {n}"),
            Need::AtMost(n) => write!(f, "at most {n}"),
            Need::MultipleOf(n) => write!(f, "a multiple of {n}"),
            Need::OneOf(all) => write!(f, "one of {all:?}"),
        }
    }
}

impl std::error::Error for ShapeError {}

/// Checks of one operation, so that each reads as one line.
#[derive(Clone, Copy)]
pub(crate) struct Check(pub(crate) &'static str);

impl Check {
    fn when(self, ok: bool, what: &'static str, need: Need, got: usize) -> Result<(), ShapeError> {
        if ok { Ok(()) } else { Err(ShapeError { op: self.0, what, need, got }) }
    }

    pub(crate) fn equal(self, what: &'static str, got: usize, need: usize) -> Result<(), ShapeError> {
        self.when(got == need, what, Need::Exactly(need), got)
    }

    pub(crate) fn at_least(self, what: &'static str, got: usize, need: usize) -> Result<(), ShapeError> {
        self.when(got >= need, what, Need::AtLeast(need), got)
    }

    pub(crate) fn at_most(self, what: &'static str, got: usize, need: usize) -> Result<(), ShapeError> {
        self.when(got <= need, what, Need::AtMost(need), got)
    }

    pub(crate) fn multiple(self, what: &'static str, got: usize, of: usize) -> Result<(), ShapeError> {
        self.when(of != 0 && got.is_multiple_of(of), what, Need::MultipleOf(of), got)
    }

    pub(crate) fn one_of(self, what: &'static str, got: usize, all: &'static [usize]) -> Result<(), ShapeError> {
        self.when(all.contains(&got), what, Need::OneOf(all), got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_operation_quantity_and_both_sizes() {
        let err = Check("rms_norm").equal("weight length", 3, 4).unwrap_err();
        assert_eq!(err.to_string(), "rms_norm: weight length is 3, expected 4");
        assert_eq!((err.op(), err.what(), err.got()), ("rms_norm", "weight length", 3));
        let err = Check("q").one_of("bits", 7, &[2, 4]).unwrap_err();
        assert_eq!(err.to_string(), "q: bits is 7, expected one of [2, 4]");
    }

    #[test]
    fn multiple_of_zero_is_refused() {
        assert!(Check("q").multiple("columns", 8, 0).is_err());
        assert!(Check("q").multiple("columns", 64, 32).is_ok());
    }
}
