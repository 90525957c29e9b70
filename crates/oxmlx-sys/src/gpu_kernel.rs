//! GPU kernels from Metal or CUDA source, and CUDA kernels that were compiled before.
//!
//! MLX writes the function's signature around the source and compiles it when a node over it is first evaluated. What the source does
//! with the buffers is its own: it trusts its author as this crate trusts its caller.

use cxx::UniquePtr;

use crate::call::call;
use crate::{Array, Result, lock};

pub use ffi::{Launch, ScalarArgument, Source, TemplateArgument};

#[cxx::bridge(namespace = "oxmlx::gpu_kernel")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx writes these blocks")]
mod ffi {
    /// What a kernel is made from.
    #[derive(Clone, Debug)]
    struct Source {
        /// Its name in the compiled code.
        name: String,
        /// The names of the inputs in the source.
        input_names: Vec<String>,
        /// The names of the outputs in the source.
        output_names: Vec<String>,
        /// The body of the function; MLX writes the signature.
        body: String,
        /// What stands before the function.
        header: String,
        /// Whether inputs are copied into row-major order first.
        row_contiguous: bool,
    }

    /// How a kernel is run.
    #[derive(Clone, Debug)]
    struct Launch {
        /// The dimensions of all outputs, one after another.
        dimensions: Vec<i32>,
        /// How many of them each output has.
        output_ndims: Vec<usize>,
        /// The dtype of each output, by its position in MLX's `Dtype::Val`.
        output_dtypes: Vec<u8>,
        /// The number of threads along each axis.
        grid: [i32; 3],
        /// The number of threads of a group along each axis.
        threadgroup: [i32; 3],
        /// Whether outputs are filled before.
        has_init: bool,
        /// What with.
        init: f32,
    }

    /// A template argument of the source.
    #[derive(Clone, Debug)]
    struct TemplateArgument {
        /// Its name.
        name: String,
        /// 0 for an integer, 1 for a truth value, 2 for a dtype.
        kind: u8,
        /// The integer, 0 or 1, or the dtype's position.
        value: i32,
    }

    /// A scalar argument of a compiled kernel.
    #[derive(Clone, Copy, Debug)]
    struct ScalarArgument {
        /// 0 for a truth value, 1 for an integer, 2 for a float.
        kind: u8,
        /// The truth value or integer.
        whole: i32,
        /// The float.
        real: f32,
    }

    unsafe extern "C++" {
        include!("gpu_kernel.h");

        #[namespace = "mlx::core"]
        #[cxx_name = "array"]
        type Array = crate::Array;

        type GpuKernel;
        fn call(
            self: &GpuKernel,
            inputs: &[Array],
            launch: &Launch,
            arguments: &[TemplateArgument],
            verbose: bool,
        ) -> Result<Vec<Array>>;
        fn metal_kernel(source: &Source, atomic_outputs: bool, math_mode: u8) -> Result<UniquePtr<GpuKernel>>;
        fn cuda_kernel(source: &Source, shared_memory: i32) -> Result<UniquePtr<GpuKernel>>;
        fn precompiled_cuda_kernel(
            source: &Source,
            compiled: &[u8],
            inputs: &[Array],
            launch: &Launch,
            scalars: &[ScalarArgument],
            shared_memory: i32,
        ) -> Result<Vec<Array>>;
    }
}

/// A kernel from source.
pub struct GpuKernel(UniquePtr<ffi::GpuKernel>);

// SAFETY: the object is a C++ function over strings that it owns; every use of it, the destructor included, happens under the
// process-wide lock.
unsafe impl Send for GpuKernel {}

// SAFETY: as for `Send`: there is no access without the lock.
unsafe impl Sync for GpuKernel {}

impl GpuKernel {
    /// Builds a node that runs the kernel.
    ///
    /// # Errors
    /// What MLX throws for inputs or outputs of another number than names.
    pub fn call(
        &self,
        inputs: &[Array],
        launch: &Launch,
        arguments: &[TemplateArgument],
        verbose: bool,
    ) -> Result<Vec<Array>> {
        call("custom_kernel", || self.0.call(inputs, launch, arguments, verbose))
    }
}

impl Drop for GpuKernel {
    fn drop(&mut self) {
        let kernel = std::mem::replace(&mut self.0, UniquePtr::null());
        match lock::enter() {
            Ok(_guard) => drop(kernel),
            // Inside a kernel, where MLX must not be entered: left to the process.
            Err(_) => std::mem::forget(kernel),
        }
    }
}

/// A kernel from Metal source. The mode of arithmetic: 0 safe, 1 relaxed, 2 fast.
///
/// # Errors
/// What MLX throws without Metal, and for names and sources that do not fit.
pub fn metal_kernel(source: &Source, atomic_outputs: bool, math_mode: u8) -> Result<GpuKernel> {
    call("metal_kernel", || ffi::metal_kernel(source, atomic_outputs, math_mode.min(2))).map(GpuKernel)
}

/// A kernel from CUDA source, with `shared_memory` bytes of dynamic shared memory.
///
/// # Errors
/// What MLX throws without CUDA, and for names and sources that do not fit.
pub fn cuda_kernel(source: &Source, shared_memory: i32) -> Result<GpuKernel> {
    call("cuda_kernel", || ffi::cuda_kernel(source, shared_memory)).map(GpuKernel)
}

/// Builds a node that runs a CUDA kernel from PTX or a cubin. Of `source` the name and the layout of inputs count.
///
/// # Errors
/// What MLX throws without CUDA.
pub fn precompiled_cuda_kernel(
    source: &Source,
    compiled: &[u8],
    inputs: &[Array],
    launch: &Launch,
    scalars: &[ScalarArgument],
    shared_memory: i32,
) -> Result<Vec<Array>> {
    call("precompiled_cuda_kernel", || {
        ffi::precompiled_cuda_kernel(source, compiled, inputs, launch, scalars, shared_memory)
    })
}
