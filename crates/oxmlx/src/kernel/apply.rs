//! A finished kernel: nodes of it, and what it would run.

use std::sync::{Arc, OnceLock};

use oxmlx_sys::kernel as sys;
use oxmlx_sys::{runtime, trace};

use super::Builder;
use super::declared::{Declared, Launch};
use super::source::{GpuLanguage, Source};
use crate::storage::{StorageBackend, loaded_backend};
use crate::{Array, Device, Dtype, Error, ErrorKind, Result};

/// A kernel, ready to build nodes. Cheap to clone.
#[derive(Clone)]
pub struct Kernel {
    pub(super) definition: Arc<sys::Definition>,
    /// `None` for a kernel of the CPU alone whose inputs are not declared: those are built once a node.
    pub(super) declared: Option<Arc<Declared>>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Kernel {
    /// Starts a kernel. The name stands in errors and graph exports, and in the code that a GPU compiles.
    pub fn builder(name: &str) -> Builder {
        Builder::new(name)
    }

    /// The name that it was built with.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Builds a node over `inputs` on the current stream's device and returns its outputs. Lazy: no input is evaluated.
    ///
    /// While a function is exported the [fallback](Builder::fallback) is built in its place, or MLX's own node on a GPU, since a file can't hold
    /// a kernel of Rust.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] when the kernel has no body for the device; [`ErrorKind::InvalidArgument`] for another number of inputs than
    /// declared; [`ErrorKind::Dtype`] for an input of a dtype that it does not take; [`ErrorKind::Closure`] when a shape rule fails;
    /// [`ErrorKind::Group`] for a grid without threads. What the body or a compiler reports comes when the outputs are evaluated.
    pub fn apply(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        if let Some(declared) = self.declared.as_deref().filter(|declared| !declared.inputs.is_empty()) {
            declared.check_inputs(self.name(), inputs.iter().map(Array::dtype))?;
        }
        let exporting = trace::is_exporting();
        if exporting && let Some(outputs) = sys::apply_fallback(&self.definition, Array::raw(inputs)) {
            return Ok(Array::wrap_all(outputs?));
        }
        if on_cpu()? {
            if self.definition.body.is_none() {
                return Err(self.no_body("the CPU", "cpu"));
            }
            return Ok(Array::wrap_all(sys::apply(&self.definition, Array::raw(inputs))?));
        }
        let language = language()?;
        let method = match language {
            GpuLanguage::Metal => "metal",
            GpuLanguage::Cuda => "cuda",
        };
        let Some(declared) = &self.declared else { return Err(self.no_body("a GPU", method)) };
        let Some(function) = declared.function(self.name(), language)? else {
            return Err(self.no_body(&format!("a GPU with {language}"), method));
        };
        // The launch is worked out again when the node runs; its faults are told here.
        let described: Vec<(&[i32], Dtype)> = inputs.iter().map(|x| (x.shape(), x.dtype())).collect();
        self.launch(&described)?;
        Ok(Array::wrap_all(sys::apply_gpu(&self.definition, function, Array::raw(inputs), exporting)?))
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
                let text = format!("kernel {} has {} outputs, not one", self.name(), self.definition.dtypes.len());
                Err(Error::new(ErrorKind::InvalidArgument, "kernel", text))
            }
        }
    }

    /// Compiles the kernel for inputs of these dtypes ahead: runs it once over `inputs` (zeros will do), waits, and drops the outputs. On the
    /// CPU there is nothing to compile, and nothing runs.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), and what the compiler or the body reports.
    pub fn warm_up(&self, inputs: &[Array]) -> Result<()> {
        if on_cpu()? && self.definition.body.is_some() {
            return Ok(());
        }
        crate::eval(&self.apply(inputs)?)
    }

    /// How a GPU runs the kernel over inputs of these shapes and dtypes: for tools that run its sources elsewhere. Needs no GPU.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), but for what depends on a device.
    pub fn launch(&self, inputs: &[(&[i32], Dtype)]) -> Result<Launch> {
        let Some(declared) = &self.declared else { return Err(self.no_body("a GPU", "metal or cuda")) };
        declared.check_inputs(self.name(), inputs.iter().map(|&(_, dtype)| dtype))?;
        let shapes: Vec<&[i32]> = inputs.iter().map(|&(shape, _)| shape).collect();
        let shapes = (self.definition.shapes)(&shapes).map_err(told)?;
        let dtypes = self.definition.dtypes.iter().map(|dtype| match *dtype {
            sys::OutputDtype::Code(code) => Ok(Dtype::try_from(code).unwrap_or(Dtype::Uint8)),
            sys::OutputDtype::OfInput(i) => inputs.get(i).map(|&(_, dtype)| dtype).ok_or_else(|| {
                let text = format!("an output of kernel {} has the dtype of input {i}", self.name());
                Error::new(ErrorKind::InvalidArgument, "kernel", text)
            }),
        });
        let dtypes: Vec<Dtype> = dtypes.collect::<Result<_>>()?;
        declared.launch(self.name(), inputs, shapes.into_iter().zip(dtypes).collect()).map_err(told)
    }

    /// Its source for a GPU, if it has one in this language.
    pub fn source(&self, language: GpuLanguage) -> Option<&Source> {
        self.declared.as_deref().and_then(|declared| declared.source(language))
    }

    /// The names that its inputs have in the sources.
    pub fn input_names(&self) -> Vec<&str> {
        self.declared.iter().flat_map(|declared| declared.inputs.iter().map(|(name, _)| name.as_str())).collect()
    }

    /// The names that its outputs have in the sources.
    pub fn output_names(&self) -> Vec<&str> {
        self.declared.iter().flat_map(|declared| declared.output_names.iter().map(String::as_str)).collect()
    }

    fn no_body(&self, device: &str, method: &str) -> Error {
        let text = format!("kernel {} has no body for {device}: give it one with Builder::{method}", self.name());
        Error::new(ErrorKind::Device, "kernel", text)
    }
}

/// An error of a rule as ours.
fn told(error: super::BoxError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => Error::new(ErrorKind::Closure, "kernel", error.to_string()).with_source(error),
    }
}

/// Whether nodes that are built now run on the CPU.
fn on_cpu() -> Result<bool> {
    static ONLY_CPU: OnceLock<bool> = OnceLock::new();
    let only_cpu = *ONLY_CPU.get_or_init(|| runtime::gpu_count().is_ok_and(|gpus| gpus == 0));
    Ok(only_cpu || Device::current()? == Device::Cpu)
}

/// What GPUs run with the loaded library.
fn language() -> Result<GpuLanguage> {
    match loaded_backend()? {
        StorageBackend::Metal => Ok(GpuLanguage::Metal),
        StorageBackend::Cuda => Ok(GpuLanguage::Cuda),
        other => {
            let text = format!("the loaded library has no GPU: {other:?}");
            Err(Error::new(ErrorKind::Device, "kernel", text))
        }
    }
}
