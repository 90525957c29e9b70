//! How arrays print: as in Python MLX, with a precision that holds for the process.

use std::fmt;

use oxmlx_sys::generated::utils as raw;

use crate::{Array, Result};

impl fmt::Display for Array {
    /// Prints the values as Python MLX does. **Evaluates the array**; an evaluation that fails prints its error.
    ///
    /// ```
    /// use oxmlx::Array;
    /// let a = Array::matrix(&[[1.5f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(a.to_string(), "array([[1.5, 2],\n       [3, 4]], dtype=float32)");
    /// assert_eq!(Array::scalar(true)?.to_string(), "array(True, dtype=bool)");
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = || {
            self.eval()?;
            let copy = self.host_copy()?;
            Ok::<_, crate::Error>(copy.as_ref().unwrap_or(self).0.to_text()?)
        };
        match text() {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "<{error}>"),
        }
    }
}

/// Sets how many digits after the point arrays print with, in the whole process; `None` for as many as the number needs, up to 6
/// that count.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::array::{print_precision, set_print_precision};
/// set_print_precision(Some(2))?;
/// assert_eq!(print_precision()?, Some(2));
/// assert_eq!(Array::scalar(2.0f32 / 3.0)?.to_string(), "array(0.67, dtype=float32)");
/// set_print_precision(None)?;
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::set_printoptions` (`mlx/utils.h`).
pub fn set_print_precision(digits: Option<u8>) -> Result<()> {
    Ok(raw::set_printoptions(digits.map_or(-1, i32::from))?)
}

/// How many digits after the point arrays print with; `None` for as many as the number needs.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::get_global_formatter` (`mlx/utils.h`).
pub fn print_precision() -> Result<Option<u8>> {
    Ok(u8::try_from(raw::get_global_formatter()?.precision).ok())
}
