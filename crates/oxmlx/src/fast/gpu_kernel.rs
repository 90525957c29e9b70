//! Kernels in Metal or CUDA source. For a kernel in Rust, on the CPU, see [`crate::kernel`].

use oxmlx_sys::gpu_kernel as sys;

use crate::ops::check;
use crate::shape::IntoShape;
use crate::{Array, Device, Dtype, Error, ErrorKind, Result};

const OP: &str = "custom_kernel";

/// What a GPU kernel is made from: the body of a function, whose signature MLX writes from the names.
///
/// ```
/// use oxmlx::fast::{GpuSource, Launch};
/// use oxmlx::{Array, Device, Dtype, ErrorKind};
/// let source = GpuSource::new("double_it", "out[thread_position_in_grid.x] = 2 * inp[thread_position_in_grid.x];")
///     .inputs(&["inp"])
///     .outputs(&["out"]);
/// // SAFETY: the grid below has as many threads as the arrays have elements.
/// let kernel = unsafe { source.metal() };
/// if Device::Gpu.count()? == 0 {
///     assert_eq!(kernel.unwrap_err().kind(), ErrorKind::Unsupported);
/// } else if let Ok(kernel) = kernel {
///     let launch = Launch::new([4, 1, 1], [4, 1, 1]).output(4, Dtype::Float32);
///     assert_eq!(kernel.apply(&[Array::ones::<f32>(4)?], &launch)?[0].to_vec::<f32>()?, [2.0; 4]);
/// }
/// # Ok::<(), oxmlx::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct GpuSource {
    source: sys::Source,
    atomic_outputs: bool,
    math: MetalMath,
    shared_memory: u32,
}

/// How a Metal kernel computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MetalMath {
    /// By IEEE 754, special values included.
    #[default]
    Safe,
    /// Special values are kept, sums may be taken in another order.
    Relaxed,
    /// As if there were no special values.
    Fast,
}

/// A template argument of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateValue {
    /// A number.
    Int(i32),
    /// A truth value.
    Bool(bool),
    /// A type.
    Dtype(Dtype),
}

/// A scalar argument of a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KernelScalar {
    /// A truth value.
    Bool(bool),
    /// A number.
    Int(i32),
    /// A real number.
    Float(f32),
}

impl GpuSource {
    /// A source with a name and a body, without inputs and outputs yet.
    pub fn new(name: &str, body: &str) -> Self {
        let source = sys::Source {
            name: name.to_owned(),
            input_names: Vec::new(),
            output_names: Vec::new(),
            body: body.to_owned(),
            header: String::new(),
            row_contiguous: true,
        };
        Self { source, atomic_outputs: false, math: MetalMath::Safe, shared_memory: 0 }
    }

    /// The names that the inputs have in the body.
    pub fn inputs(mut self, names: &[&str]) -> Self {
        self.source.input_names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// The names that the outputs have in the body.
    pub fn outputs(mut self, names: &[&str]) -> Self {
        self.source.output_names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// What stands before the function.
    pub fn header(mut self, header: &str) -> Self {
        header.clone_into(&mut self.source.header);
        self
    }

    /// Whether inputs are copied into row-major order first where they are not. They are, without this.
    pub fn row_contiguous(mut self, ensure: bool) -> Self {
        self.source.row_contiguous = ensure;
        self
    }

    /// Whether Metal outputs are atomic.
    pub fn atomic_outputs(mut self, atomic: bool) -> Self {
        self.atomic_outputs = atomic;
        self
    }

    /// How Metal computes.
    pub fn math(mut self, math: MetalMath) -> Self {
        self.math = math;
        self
    }

    /// Bytes of dynamic shared memory of a CUDA kernel.
    pub fn shared_memory(mut self, bytes: u32) -> Self {
        self.shared_memory = bytes;
        self
    }

    /// The kernel in Metal. MLX compiles it when a node over it is first evaluated.
    ///
    /// # Safety
    /// For every launch the body stays inside its buffers, and writes every element of an output unless the launch fills it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] without Metal; [`ErrorKind::InvalidArgument`] without outputs.
    ///
    /// # Source
    /// C++ `mlx::core::fast::metal_kernel` (`mlx/fast.h`).
    #[expect(unsafe_code, reason = "an unsafe contract without unsafe operations: the source is its author's")]
    pub unsafe fn metal(self) -> Result<GpuKernel> {
        self.check("metal_kernel", "metal")?;
        let math = match self.math {
            MetalMath::Safe => 0,
            MetalMath::Relaxed => 1,
            MetalMath::Fast => 2,
        };
        let kernel = sys::metal_kernel(&self.source, self.atomic_outputs, math)?;
        Ok(GpuKernel { kernel, inputs: self.source.input_names.len(), outputs: self.source.output_names.len() })
    }

    /// The kernel in CUDA. MLX compiles it when a node over it is first evaluated.
    ///
    /// # Safety
    /// As [`metal`](Self::metal).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] without CUDA; [`ErrorKind::InvalidArgument`] without outputs.
    ///
    /// # Source
    /// C++ `mlx::core::fast::cuda_kernel` (`mlx/fast.h`).
    #[expect(unsafe_code, reason = "an unsafe contract without unsafe operations: the source is its author's")]
    pub unsafe fn cuda(self) -> Result<GpuKernel> {
        self.check("cuda_kernel", "cuda")?;
        let kernel = sys::cuda_kernel(&self.source, bytes(self.shared_memory, "cuda_kernel")?)?;
        Ok(GpuKernel { kernel, inputs: self.source.input_names.len(), outputs: self.source.output_names.len() })
    }

    /// Runs `compiled`, PTX or a cubin that holds the kernel of this name, in place of a body. Lazy.
    ///
    /// # Safety
    /// As [`metal`](Self::metal), for the compiled code.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] without CUDA; as [`GpuKernel::apply`].
    ///
    /// # Source
    /// C++ `mlx::core::fast::precompiled_cuda_kernel` (`mlx/fast.h`).
    #[expect(unsafe_code, reason = "an unsafe contract without unsafe operations: the code is its author's")]
    pub unsafe fn precompiled_cuda(
        &self,
        compiled: &[u8],
        inputs: &[Array],
        launch: &Launch,
        scalars: &[KernelScalar],
    ) -> Result<Vec<Array>> {
        const OP: &str = "precompiled_cuda_kernel";
        backend_is("cuda", OP)?;
        launch.check(OP)?;
        let scalars: Vec<sys::ScalarArgument> = scalars
            .iter()
            .map(|scalar| match *scalar {
                KernelScalar::Bool(b) => sys::ScalarArgument { kind: 0, whole: b.into(), real: 0.0 },
                KernelScalar::Int(whole) => sys::ScalarArgument { kind: 1, whole, real: 0.0 },
                KernelScalar::Float(real) => sys::ScalarArgument { kind: 2, whole: 0, real },
            })
            .collect();
        let (shared, inputs) = (bytes(self.shared_memory, OP)?, Array::raw(inputs));
        let made = sys::precompiled_cuda_kernel(&self.source, compiled, inputs, &launch.launch, &scalars, shared)?;
        Ok(Array::wrap_all(made))
    }

    fn check(&self, op: &'static str, backend: &str) -> Result<()> {
        backend_is(backend, op)?;
        if self.source.output_names.is_empty() {
            return Err(Error::new(ErrorKind::InvalidArgument, op, "the kernel has no outputs"));
        }
        Ok(())
    }
}

fn bytes(shared_memory: u32, op: &'static str) -> Result<i32> {
    i32::try_from(shared_memory)
        .map_err(|_| Error::new(ErrorKind::InvalidArgument, op, format!("{shared_memory} bytes of shared memory")))
}

/// Whether this library has the GPU backend, and a device for it.
fn backend_is(backend: &str, op: &'static str) -> Result<()> {
    if crate::build_info::BACKEND.starts_with(backend) && Device::Gpu.count()? > 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Unsupported, op, format!("this MLX library has no {backend} device here")))
}

/// How a kernel runs: threads, outputs, template arguments.
#[derive(Clone, Debug)]
#[must_use]
pub struct Launch {
    launch: sys::Launch,
    arguments: Vec<sys::TemplateArgument>,
    verbose: bool,
}

impl Launch {
    /// A number of threads along each axis, in groups of that many.
    pub fn new(grid: [i32; 3], threadgroup: [i32; 3]) -> Self {
        let launch = sys::Launch {
            dimensions: Vec::new(),
            output_ndims: Vec::new(),
            output_dtypes: Vec::new(),
            grid,
            threadgroup,
            has_init: false,
            init: 0.0,
        };
        Self { launch, arguments: Vec::new(), verbose: false }
    }

    /// Adds the next output's shape and dtype.
    pub fn output<'s>(mut self, shape: impl IntoShape<'s>, dtype: Dtype) -> Self {
        let shape = shape.into_shape();
        self.launch.dimensions.extend_from_slice(&shape);
        self.launch.output_ndims.push(shape.len());
        self.launch.output_dtypes.push(dtype.code());
        self
    }

    /// Adds a template argument of the body.
    pub fn template(mut self, name: &str, value: TemplateValue) -> Self {
        let (kind, value) = match value {
            TemplateValue::Int(value) => (0, value),
            TemplateValue::Bool(value) => (1, value.into()),
            TemplateValue::Dtype(dtype) => (2, dtype.code().into()),
        };
        self.arguments.push(sys::TemplateArgument { name: name.to_owned(), kind, value });
        self
    }

    /// Fills the outputs before the kernel runs.
    pub fn init(mut self, value: f32) -> Self {
        (self.launch.has_init, self.launch.init) = (true, value);
        self
    }

    /// Whether MLX prints the source that it compiles.
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }

    fn check(&self, op: &'static str) -> Result<()> {
        if self.launch.grid.iter().chain(&self.launch.threadgroup).any(|&n| n < 1) {
            let text = format!("grid {:?} and thread group {:?}", self.launch.grid, self.launch.threadgroup);
            return Err(Error::new(ErrorKind::Group, op, format!("{text}: every number must be 1 at least")));
        }
        let mut dimensions = &self.launch.dimensions[..];
        for &ndim in &self.launch.output_ndims {
            let (shape, rest) = dimensions.split_at(ndim);
            check::possible(shape, op)?;
            dimensions = rest;
        }
        Ok(())
    }
}

/// A kernel from source. Made by [`GpuSource`].
pub struct GpuKernel {
    kernel: sys::GpuKernel,
    inputs: usize,
    outputs: usize,
}

impl std::fmt::Debug for GpuKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GpuKernel").field("inputs", &self.inputs).field("outputs", &self.outputs).finish()
    }
}

impl GpuKernel {
    /// Builds a node that runs the kernel; one array an output. Lazy.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for other numbers of inputs or outputs than names, or a shape that no array has; [`ErrorKind::Group`] for a
    /// grid or group without threads. What the compiler says comes out as [`ErrorKind::Backend`] when the node is evaluated.
    pub fn apply(&self, inputs: &[Array], launch: &Launch) -> Result<Vec<Array>> {
        let outputs = launch.launch.output_ndims.len();
        if (inputs.len(), outputs) != (self.inputs, self.outputs) {
            let text = format!(
                "{} inputs and {outputs} outputs given, the kernel has {} and {}",
                inputs.len(),
                self.inputs,
                self.outputs
            );
            return Err(Error::new(ErrorKind::Shape, OP, text));
        }
        launch.check(OP)?;
        let made = self.kernel.call(Array::raw(inputs), &launch.launch, &launch.arguments, launch.verbose)?;
        Ok(Array::wrap_all(made))
    }
}
