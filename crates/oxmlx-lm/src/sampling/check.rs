//! What all parameters are held against when they are made.

use crate::{Error, ErrorKind, Result};

/// `value`, if `right`; else an error that names the parameter and says what it should be.
pub(super) fn check(right: bool, name: &str, value: f32, wanted: &str) -> Result<f32> {
    if right {
        return Ok(value);
    }
    Err(Error::new(ErrorKind::Sampling, format!("{value} isn't {wanted}")).at_field(name))
}

/// A token id, which requests give as any integer.
pub(super) fn token_id(id: i64, name: &str) -> Result<u32> {
    u32::try_from(id).map_err(|_| Error::new(ErrorKind::Sampling, format!("{id} is no token id")).at_field(name))
}
