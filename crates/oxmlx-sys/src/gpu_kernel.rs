//! GPU kernels from Metal or CUDA source, and CUDA kernels that were compiled before: what a node of [`crate::kernel`] runs on a GPU.
//!
//! MLX writes the function's signature around the source and compiles it when a node over it is first evaluated. What the source does
//! with the buffers is its own: it trusts its author as this crate trusts its caller.

use cxx::SharedPtr;

use crate::call::call;
use crate::{Result, lock};

pub use ffi::{Launch, ScalarArgument, Source, TemplateArgument};

#[cxx::bridge(namespace = "oxmlx::gpu_kernel")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx writes these blocks")]
pub(crate) mod ffi {
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

    /// How a node of a kernel is run.
    #[derive(Clone, Debug)]
    struct Launch {
        /// The number of threads along each axis.
        grid: [i32; 3],
        /// The number of threads of a group along each axis.
        threadgroup: [i32; 3],
        /// Whether outputs are filled before.
        has_init: bool,
        /// What with.
        init: f32,
        /// What the source is instantiated with.
        arguments: Vec<TemplateArgument>,
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

        type GpuKernel;
        fn metal_kernel(source: &Source, atomic_outputs: bool, math_mode: u8) -> Result<SharedPtr<GpuKernel>>;
        fn cuda_kernel(source: &Source, shared_memory: i32) -> Result<SharedPtr<GpuKernel>>;
        fn precompiled_cuda_kernel(
            source: &Source,
            compiled: &[u8],
            scalars: &[ScalarArgument],
            shared_memory: i32,
        ) -> Result<SharedPtr<GpuKernel>>;
    }
}

/// A kernel from source.
pub struct GpuKernel(SharedPtr<ffi::GpuKernel>);

// SAFETY: the object is a C++ function over strings that it owns; every use of it, the destructor included, happens under the
// process-wide lock: nodes hold it inside graphs, which MLX frees under the lock, and this handle takes it to drop.
unsafe impl Send for GpuKernel {}

// SAFETY: as for `Send`: there is no access without the lock.
unsafe impl Sync for GpuKernel {}

impl GpuKernel {
    pub(crate) fn shared(&self) -> &SharedPtr<ffi::GpuKernel> {
        &self.0
    }
}

impl Drop for GpuKernel {
    fn drop(&mut self) {
        let kernel = std::mem::replace(&mut self.0, SharedPtr::null());
        match lock::enter_to_free() {
            Ok(_guard) => drop(kernel),
            // Inside a kernel, where MLX must not be entered: left to the process.
            Err(_) => std::mem::forget(kernel),
        }
    }
}

/// A kernel from Metal source. The mode of arithmetic: 0 safe, 1 relaxed, 2 fast.
///
/// # Errors
/// What MLX throws for names and sources that do not fit.
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

/// A kernel from PTX or a cubin. Of `source` the name and the layout of inputs count; `scalars` follow the outputs.
///
/// # Errors
/// Only what every entry into MLX can report; what MLX throws without CUDA comes with the first node.
pub fn precompiled_cuda_kernel(
    source: &Source,
    compiled: &[u8],
    scalars: &[ScalarArgument],
    shared_memory: i32,
) -> Result<GpuKernel> {
    call("precompiled_cuda_kernel", || ffi::precompiled_cuda_kernel(source, compiled, scalars, shared_memory))
        .map(GpuKernel)
}
