//! Your own kernels as nodes of the graph.
//!
//! A [`Kernel`] is a function with a name, a rule for its outputs' shapes and a body in Rust that runs on the CPU, on MLX's own
//! stream thread, when the node is evaluated. It sees memory, not arrays: inside a body MLX can't be entered (that is an `Err`), and
//! an error or a panic comes out where a result that depends on it is asked for, each time, and nowhere else. Transforms use [`vjp`](Builder::vjp) or
//! [`fallback`](Builder::fallback), the same function in MLX operations.
//!
//! ```
//! use oxmlx::kernel::Kernel;
//! use oxmlx::{Array, Dtype};
//!
//! let double = Kernel::builder("double")
//!     .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
//!     .cpu(|inputs, outputs| {
//!         let x = inputs[0].as_slice::<f32>()?;
//!         for (y, x) in outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(x.iter()) {
//!             *y = 2.0 * x;
//!         }
//!         Ok(())
//!     })
//!     .build()?;
//! let x = Array::from_slice(&[1.0f32, 2.0], 2)?;
//! assert_eq!(double.apply(&[x])?[0].to_vec::<f32>()?, [2.0, 4.0]);
//! # Ok::<(), oxmlx::Error>(())
//! ```

mod constant;
mod memory;

use std::error::Error as StdError;
use std::sync::Arc;

use oxmlx_sys::closure::Closure;
use oxmlx_sys::kernel as sys;

pub use self::constant::Constant;
pub use self::memory::{Input, Output};
use crate::{Array, Dtype, Error, ErrorKind, Result};

/// Any error that a body, rule or fallback returns.
pub type BoxError = Box<dyn StdError + Send + Sync>;

type ShapeFn = dyn Fn(&[&[i32]]) -> std::result::Result<Vec<i32>, BoxError> + Send + Sync;

/// A kernel, ready to build nodes. Cheap to clone.
#[derive(Clone)]
pub struct Kernel(Arc<sys::Definition>);

impl Kernel {
    /// Starts a kernel. The name stands in errors and graph exports.
    pub fn builder(name: &str) -> Builder {
        Builder { name: name.to_owned(), outputs: Vec::new(), body: None, vjp: None, fallback: None }
    }

    /// The name that it was built with.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Builds a node over `inputs` and returns its outputs. Lazy.
    ///
    /// # Errors
    /// [`ErrorKind::Closure`] when a shape rule fails. What the body reports comes when the outputs are evaluated.
    pub fn apply(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        Ok(Array::wrap_all(sys::apply(&self.0, Array::raw(inputs))?))
    }

    /// Builds a node of a kernel with one output.
    ///
    /// # Errors
    /// As [`apply`](Self::apply); [`ErrorKind::InvalidArgument`] when the kernel has another number of outputs.
    pub fn apply_one(&self, inputs: &[Array]) -> Result<Array> {
        let mut outputs = self.apply(inputs)?;
        match (outputs.pop(), outputs.len()) {
            (Some(output), 0) => Ok(output),
            _ => {
                let text = format!("kernel {} has {} outputs, not one", self.name(), self.0.dtypes.len());
                Err(Error::new(ErrorKind::InvalidArgument, "kernel", text))
            }
        }
    }
}

struct OutputSpec {
    dtype: Dtype,
    shape: Box<ShapeFn>,
    in_place_of: Option<usize>,
}

/// The parts of a kernel.
#[must_use]
pub struct Builder {
    name: String,
    outputs: Vec<OutputSpec>,
    body: Option<Box<sys::Body>>,
    vjp: Option<Box<sys::VjpRule>>,
    fallback: Option<Closure>,
}

impl Builder {
    /// Adds an output: its dtype, and its shape from the inputs' shapes.
    pub fn output(
        mut self,
        dtype: Dtype,
        shape: impl Fn(&[&[i32]]) -> std::result::Result<Vec<i32>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.outputs.push(OutputSpec { dtype, shape: Box::new(shape), in_place_of: None });
        self
    }

    /// Adds an output that takes over the memory of input `input` where nobody else holds it, and starts with its values then
    /// ([`Output::holds_input`]). It has that input's shape.
    pub fn output_in_place(mut self, dtype: Dtype, input: usize) -> Self {
        let shape: Box<ShapeFn> = Box::new(move |inputs| match inputs.get(input) {
            Some(shape) => Ok(shape.to_vec()),
            None => Err(format!("the kernel takes the place of input {input}, but has {} inputs", inputs.len()).into()),
        });
        self.outputs.push(OutputSpec { dtype, shape, in_place_of: Some(input) });
        self
    }

    /// The body for the CPU. It may use all cores, may fail and may panic; it can't enter MLX.
    pub fn cpu(
        mut self,
        body: impl Fn(&[Input<'_>], &mut [Output<'_>]) -> std::result::Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.body = Some(Box::new(move |inputs, outputs| {
            let inputs: Vec<Input<'_>> = inputs.iter().copied().map(Input::new).collect();
            let mut outputs: Vec<Output<'_>> = outputs.iter_mut().map(Output::new).collect();
            body(&inputs, &mut outputs)
        }));
        self
    }

    /// The gradient: from primals, cotangents and outputs to one array a primal.
    pub fn vjp(
        mut self,
        rule: impl Fn(&[Array], &[Array], &[Array]) -> std::result::Result<Vec<Array>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.vjp = Some(Box::new(move |primals, cotangents, outputs| {
            let wrap = |raw: &[oxmlx_sys::Array]| Array::wrap_all(raw.to_vec());
            Ok(Array::peel_all(rule(&wrap(primals), &wrap(cotangents), &wrap(outputs))?))
        }));
        self
    }

    /// The same function in MLX operations: transforms that the kernel has no rule for use it.
    pub fn fallback(
        mut self,
        function: impl Fn(&[Array]) -> std::result::Result<Vec<Array>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.fallback = Some(oxmlx_sys::transforms::closure(move |inputs| {
            Ok(Array::peel_all(function(&Array::wrap_all(inputs.to_vec()))?))
        }));
        self
    }

    /// Finishes the kernel.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] without a body or an output, or with a name that is empty or has a NUL in it.
    pub fn build(self) -> Result<Kernel> {
        let invalid = |text: String| Err(Error::new(ErrorKind::InvalidArgument, "kernel", text));
        if self.name.is_empty() || self.name.contains('\0') {
            return invalid(format!("{:?} is no kernel name: it is empty or has a NUL in it", self.name));
        }
        let Some(body) = self.body else {
            return invalid(format!("kernel {} has no body: give it one with Builder::cpu", self.name));
        };
        if self.outputs.is_empty() {
            return invalid(format!("kernel {} has no output: declare one with Builder::output", self.name));
        }
        let dtypes = self.outputs.iter().map(|o| o.dtype.code()).collect();
        let in_place_of =
            self.outputs.iter().map(|o| o.in_place_of.and_then(|i| i32::try_from(i).ok()).unwrap_or(-1)).collect();
        let rules: Vec<Box<ShapeFn>> = self.outputs.into_iter().map(|o| o.shape).collect();
        Ok(Kernel(Arc::new(sys::Definition {
            name: self.name,
            body,
            shapes: Box::new(move |inputs| rules.iter().map(|rule| rule(inputs)).collect()),
            dtypes,
            in_place_of,
            vjp: self.vjp,
            fallback: self.fallback,
        })))
    }
}
