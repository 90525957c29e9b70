//! Arrays that a body knows beforehand.

use std::sync::Arc;

use oxmlx_sys::kernel as sys;

use super::Input;
use crate::{Array, Error, ErrorKind, Result, ops};

/// An evaluated array that a kernel's body reads without its being an input of the node: weights, tables.
///
/// A node then has fewer inputs to build and to walk. Transforms see a constant: no gradient flows into it. Cheap to clone.
///
/// ```
/// use oxmlx::kernel::{Constant, Kernel};
/// use oxmlx::{Array, Dtype};
/// let table = Constant::new(&Array::from_slice(&[10i32, 20, 30], 3)?)?;
/// let look_up = Kernel::builder("look_up")
///     .output(Dtype::Int32, |inputs| Ok(inputs[0].to_vec()))
///     .cpu(move |inputs, outputs| {
///         let (at, table) = (inputs[0].as_slice::<u32>()?, table.input().as_slice::<i32>()?);
///         for (y, &i) in outputs[0].as_mut_slice::<i32>()?.iter_mut().zip(at.iter()) {
///             *y = *table.get(i as usize).ok_or("an index beyond the table")?;
///         }
///         Ok(())
///     })
///     .build()?;
/// let at = Array::from_slice(&[2u32, 0], 2)?;
/// assert_eq!(look_up.apply_one(&[at])?.to_vec::<i32>()?, [30, 10]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
#[derive(Clone)]
pub struct Constant {
    raw: Arc<sys::Constant>,
    array: Array,
}

impl Constant {
    /// Evaluates `array` and holds it; a packed copy of it where it does not lie in row-major order.
    ///
    /// # Errors
    /// What evaluation reports; [`ErrorKind::InvalidArgument`] for a placeholder of a running transform.
    pub fn new(array: &Array) -> Result<Self> {
        let packed = ops::contiguous(array, false)?;
        for array in [array, &packed] {
            array.eval()?;
            if let Some(raw) = sys::Constant::new(array.0.clone())? {
                return Ok(Self { raw: Arc::new(raw), array: array.clone() });
            }
        }
        let text = "the array has no memory of its own: a constant can't be made of a traced value";
        Err(Error::new(ErrorKind::InvalidArgument, "kernel", text))
    }

    /// The array.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// The memory, for a running body.
    pub fn input(&self) -> Input<'_> {
        Input::new(self.raw.input())
    }
}
