//! The parts of a kernel, and how they become one.

use std::sync::Arc;

use oxmlx_sys::closure::Closure;
use oxmlx_sys::kernel as sys;

use super::declared::{Accepts, Declared, OutputDtype, TemplateValue};
use super::source::Source;
use super::{BoxError, Input, Kernel, Output};
use crate::{Array, Dtype, Error, ErrorKind, Result};

type ShapeFn = dyn Fn(&[&[i32]]) -> Result<Vec<i32>, BoxError> + Send + Sync;
type VmapFn =
    dyn Fn(&Kernel, &[Array], &[Option<i32>]) -> Result<(Vec<Array>, Vec<Option<i32>>), BoxError> + Send + Sync;

struct OutputSpec {
    dtype: sys::OutputDtype,
    shape: Box<ShapeFn>,
    in_place_of: Option<usize>,
}

/// The parts of a kernel. Outputs and one body are needed; a [`Source`] also needs its [inputs](Self::input) declared.
#[must_use]
pub struct Builder {
    name: String,
    outputs: Vec<OutputSpec>,
    body: Option<Box<sys::Body>>,
    vjp: Option<Box<sys::VjpRule>>,
    vmap: Option<Box<VmapFn>>,
    fallback: Option<Closure>,
    declared: Declared,
}

impl Builder {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            outputs: Vec::new(),
            body: None,
            vjp: None,
            vmap: None,
            fallback: None,
            declared: Declared::default(),
        }
    }

    /// Declares the next input: its name in the sources, and the dtypes that it may have. A kernel without declared inputs takes any,
    /// in any number, and runs on the CPU alone.
    pub fn input(mut self, name: &str, dtype: impl Into<Accepts>) -> Self {
        self.declared.inputs.push((name.to_owned(), dtype.into()));
        self
    }

    /// Adds an output: its dtype, and its shape from the inputs' shapes.
    pub fn output(
        mut self,
        dtype: impl Into<OutputDtype>,
        shape: impl Fn(&[&[i32]]) -> Result<Vec<i32>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        let dtype = dtype.into().raw();
        self.outputs.push(OutputSpec { dtype, shape: Box::new(shape), in_place_of: None });
        self
    }

    /// Adds an output with the dtype and the shape of input `input`.
    pub fn output_like(mut self, input: usize) -> Self {
        let dtype = OutputDtype::OfInput(input).raw();
        self.outputs.push(OutputSpec { dtype, shape: shape_of(input), in_place_of: None });
        self
    }

    /// Adds an output that takes over the memory of input `input` where nobody else holds it, and starts with its values then
    /// ([`Output::holds_input`]). It has that input's shape. A GPU gives it memory of its own.
    pub fn output_in_place(mut self, dtype: Dtype, input: usize) -> Self {
        let dtype = OutputDtype::Is(dtype).raw();
        self.outputs.push(OutputSpec { dtype, shape: shape_of(input), in_place_of: Some(input) });
        self
    }

    /// The names that the outputs have in the sources. Without this, `out` for a single one, `out0`, `out1` ... for several.
    pub fn output_names(mut self, names: &[&str]) -> Self {
        self.declared.output_names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// The body for the CPU. It may use all cores ([`parallel`](super::parallel)), may fail and may panic; it can't enter MLX.
    ///
    /// Each input is there as a slice in row-major order ([`Input::as_slice`]) and as its memory with strides ([`Input::as_strided`]).
    pub fn cpu(
        mut self,
        body: impl Fn(&[Input<'_>], &mut [Output<'_>]) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.body = Some(Box::new(move |inputs, outputs| {
            let inputs: Vec<Input<'_>> = inputs.iter().copied().map(Input::new).collect();
            let mut outputs: Vec<Output<'_>> = outputs.iter_mut().map(Output::new).collect();
            body(&inputs, &mut outputs)
        }));
        self
    }

    /// The body for Metal.
    ///
    /// # Safety
    /// For all inputs that the shape rules accept, the source reads and writes inside its buffers alone, and writes every element of an
    /// output unless the kernel has an [init value](Self::init).
    ///
    /// # Source
    /// C++ `mlx::core::fast::metal_kernel` (`mlx/fast.h`); differs: inputs are always in `device` space.
    #[expect(unsafe_code, reason = "an unsafe contract without unsafe operations: the source is its author's")]
    pub unsafe fn metal(mut self, source: impl Into<Source>) -> Self {
        self.declared.metal = Some(source.into());
        self
    }

    /// The body for CUDA.
    ///
    /// # Safety
    /// As [`metal`](Self::metal), also for the threads by which the grid is rounded up to whole groups.
    ///
    /// # Source
    /// C++ `mlx::core::fast::cuda_kernel` (`mlx/fast.h`).
    #[expect(unsafe_code, reason = "an unsafe contract without unsafe operations: the source is its author's")]
    pub unsafe fn cuda(mut self, source: impl Into<Source>) -> Self {
        self.declared.cuda = Some(source.into());
        self
    }

    /// The threads of a GPU along each axis, from the shapes of inputs and outputs. Without this, one an element of the first output.
    pub fn grid(mut self, rule: impl Fn(&[&[i32]], &[&[i32]]) -> [i32; 3] + Send + Sync + 'static) -> Self {
        self.declared.grid = Some(Box::new(rule));
        self
    }

    /// The threads of a group along each axis. Without this, 256 along the first.
    pub fn thread_group(mut self, threads: [i32; 3]) -> Self {
        self.declared.thread_group = Some(threads);
        self
    }

    /// Adds a template argument of the sources: a number, a truth value, a dtype, or the dtype of an input.
    pub fn template(mut self, name: &str, value: impl Into<TemplateValue>) -> Self {
        self.declared.template.push((name.to_owned(), value.into()));
        self
    }

    /// Fills the outputs with a value, cast to their dtypes, before a body runs: for bodies that add to them, or that skip elements.
    pub fn init(mut self, value: f32) -> Self {
        self.declared.init = Some(value);
        self
    }

    /// Whether outputs are `device atomic<T>*` in Metal. In CUDA atomic functions take plain pointers.
    pub fn atomic_outputs(mut self, atomic: bool) -> Self {
        self.declared.atomic_outputs = atomic;
        self
    }

    /// Whether a GPU copies an input into row-major order where it lies otherwise. It does, without this; with `false` the source reads
    /// `NAME_strides`. A body for the CPU chooses for each input, see [`cpu`](Self::cpu).
    pub fn row_contiguous(mut self, ensure: bool) -> Self {
        self.declared.strided_inputs = !ensure;
        self
    }

    /// The gradient: from primals, cotangents and outputs to one array a primal.
    pub fn vjp(
        mut self,
        rule: impl Fn(&[Array], &[Array], &[Array]) -> Result<Vec<Array>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.vjp = Some(Box::new(move |primals, cotangents, outputs| {
            Ok(Array::peel_all(rule(&wrap(primals), &wrap(cotangents), &wrap(outputs))?))
        }));
        self
    }

    /// The rule of vectorisation: from the kernel itself, inputs and their mapped axes to outputs and theirs, `None` where one is not mapped.
    ///
    /// A kernel that treats each element by itself is its own rule: `|kernel, inputs, axes| Ok((kernel.apply(inputs)?, axes.to_vec()))`.
    pub fn vmap(
        mut self,
        rule: impl Fn(&Kernel, &[Array], &[Option<i32>]) -> Result<(Vec<Array>, Vec<Option<i32>>), BoxError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.vmap = Some(Box::new(rule));
        self
    }

    /// The same function in MLX operations: transforms that the kernel has no rule for use it, and exports.
    pub fn fallback(
        mut self,
        function: impl Fn(&[Array]) -> Result<Vec<Array>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.fallback =
            Some(oxmlx_sys::transforms::closure(move |inputs| Ok(Array::peel_all(function(&wrap(inputs))?))));
        self
    }

    /// Finishes the kernel.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] without a body or an output, with a name that is empty or has a NUL in it, for a source without
    /// declared inputs or with names that are none in its language, and for an init value with an output that takes an input's place;
    /// [`ErrorKind::Group`] for a thread group of no or more than 1,024 threads.
    pub fn build(mut self) -> Result<Kernel> {
        let invalid = |text: String| Err(Error::new(ErrorKind::InvalidArgument, "kernel", text));
        let name = self.name;
        if name.is_empty() || name.contains('\0') {
            return invalid(format!("{name:?} is no kernel name: it is empty or has a NUL in it"));
        }
        let has_source = self.declared.metal.is_some() || self.declared.cuda.is_some();
        if self.body.is_none() && !has_source {
            return invalid(format!("kernel {name} has no body: give it one with Builder::cpu, metal or cuda"));
        }
        if self.outputs.is_empty() {
            return invalid(format!("kernel {name} has no output: declare one with Builder::output"));
        }
        if has_source && self.declared.inputs.is_empty() {
            return invalid(format!("kernel {name} has a source and no input: declare each with Builder::input"));
        }
        if self.declared.init.is_some() && self.outputs.iter().any(|output| output.in_place_of.is_some()) {
            return invalid(format!("kernel {name} fills its outputs, of which one takes an input's place"));
        }
        if has_source && self.declared.output_names.is_empty() {
            let numbered = (0..self.outputs.len()).map(|i| format!("out{i}")).collect();
            self.declared.output_names = if self.outputs.len() == 1 { vec!["out".into()] } else { numbered };
        }
        self.declared.check(&name, self.outputs.len())?;
        let init = self.declared.init;
        let declared = (!self.declared.is_empty()).then(|| Arc::new(self.declared));
        let dtypes = self.outputs.iter().map(|o| o.dtype).collect();
        let in_place_of =
            self.outputs.iter().map(|o| o.in_place_of.and_then(|i| i32::try_from(i).ok()).unwrap_or(-1)).collect();
        let rules: Vec<Box<ShapeFn>> = self.outputs.into_iter().map(|o| o.shape).collect();
        let definition = Arc::new(sys::Definition {
            body: self.body.map(|body| filled(body, init)),
            launch: declared.clone().map(|declared| launch_rule(name.clone(), declared)),
            name,
            shapes: Box::new(move |inputs| rules.iter().map(|rule| rule(inputs)).collect()),
            dtypes,
            in_place_of,
            vjp: self.vjp,
            vmap: self.vmap.map(|rule| vmap_rule(rule, declared.clone())),
            fallback: self.fallback,
        });
        Ok(Kernel { definition, declared })
    }
}

fn wrap(raw: &[oxmlx_sys::Array]) -> Vec<Array> {
    Array::wrap_all(raw.to_vec())
}

fn shape_of(input: usize) -> Box<ShapeFn> {
    Box::new(move |inputs| match inputs.get(input) {
        Some(shape) => Ok(shape.to_vec()),
        None => Err(format!("an output is like input {input}, but there are {} inputs", inputs.len()).into()),
    })
}

/// The body, after its outputs were filled.
fn filled(body: Box<sys::Body>, init: Option<f32>) -> Box<sys::Body> {
    let Some(value) = init else { return body };
    Box::new(move |inputs, outputs| {
        outputs.iter_mut().try_for_each(|output| Output::new(output).fill(value))?;
        body(inputs, outputs)
    })
}

fn launch_rule(name: String, declared: Arc<Declared>) -> Box<sys::LaunchRule> {
    Box::new(move |inputs, outputs| {
        let dtype = |a: &oxmlx_sys::Array| Dtype::try_from(a.dtype_code()).unwrap_or(Dtype::Uint8);
        let inputs: Vec<(&[i32], Dtype)> = inputs.iter().map(|a| (a.shape(), dtype(a))).collect();
        let outputs = outputs.iter().map(|a| (a.shape().to_vec(), dtype(a))).collect();
        Ok(declared.launch(&name, &inputs, outputs)?.raw())
    })
}

fn vmap_rule(rule: Box<VmapFn>, declared: Option<Arc<Declared>>) -> Box<sys::VmapRule> {
    Box::new(move |definition, inputs, axes| {
        let kernel = Kernel { definition: Arc::clone(definition), declared: declared.clone() };
        let axes: Vec<Option<i32>> = axes.iter().map(|&axis| (axis >= 0).then_some(axis)).collect();
        let (outputs, axes) = rule(&kernel, &wrap(inputs), &axes)?;
        Ok((Array::peel_all(outputs), axes.into_iter().map(|axis| axis.unwrap_or(-1)).collect()))
    })
}
