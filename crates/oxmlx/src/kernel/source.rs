//! What a GPU runs: the inside of a function in Metal or CUDA, or CUDA code that was compiled before.

use oxmlx_sys::gpu_kernel as sys;

use crate::{Error, ErrorKind, Result};

/// The language of a [`Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuLanguage {
    /// Apple's, for Metal.
    Metal,
    /// NVIDIA's, for CUDA.
    Cuda,
}

impl std::fmt::Display for GpuLanguage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Metal => "Metal",
            Self::Cuda => "CUDA",
        })
    }
}

/// The inside of a kernel's function, and what stands before it. A `&str` is a source without a header.
///
/// MLX writes the signature: each input by its name as `const device T*` in Metal and `const T*` in CUDA, **whatever its size** (MLX itself
/// puts an input of fewer than 8 elements into Metal's `constant` space and passes a scalar as a reference; kernels here do not), each
/// output as a pointer, and `NAME_shape`, `NAME_strides` and `NAME_ndim` of those inputs for which the source names them. In Metal
/// the attributes that the source names (`thread_position_in_grid`, `simdgroup_index_in_threadgroup` ...) are there too.
/// CUDA rounds the grid up to whole blocks: the source checks its index against the size.
///
/// ```
/// use oxmlx::kernel::{MetalMath, Source};
/// let metal = Source::new("out[thread_position_in_grid.x] = twice(x[thread_position_in_grid.x]);")
///     .header("float twice(float x) { return 2 * x; }")
///     .math(MetalMath::Fast);
/// assert!(metal.body().contains("twice"));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Source {
    body: String,
    header: String,
    math: MetalMath,
    shared_memory: u32,
    compiled: Option<(Vec<u8>, Vec<KernelScalar>)>,
}

/// How Metal computes.
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

/// A scalar argument of compiled CUDA code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KernelScalar {
    /// A truth value.
    Bool(bool),
    /// A number.
    Int(i32),
    /// A real number.
    Float(f32),
}

impl Source {
    /// The inside of the function.
    pub fn new(body: &str) -> Self {
        Self { body: body.to_owned(), header: String::new(), math: MetalMath::Safe, shared_memory: 0, compiled: None }
    }

    /// CUDA code that was compiled before, PTX or a cubin, in which the kernel's name stands for the function. Its arguments are the
    /// inputs, the outputs and then `scalars`.
    ///
    /// # Source
    /// C++ `mlx::core::fast::precompiled_cuda_kernel` (`mlx/fast.h`).
    pub fn compiled(code: &[u8], scalars: &[KernelScalar]) -> Self {
        Self { compiled: Some((code.to_vec(), scalars.to_vec())), ..Self::new("") }
    }

    /// What stands before the function: helpers, types, includes.
    pub fn header(mut self, header: &str) -> Self {
        header.clone_into(&mut self.header);
        self
    }

    /// How Metal computes. CUDA has no such choice.
    pub fn math(mut self, math: MetalMath) -> Self {
        self.math = math;
        self
    }

    /// Bytes of dynamic shared memory of a CUDA kernel. Metal has none.
    pub fn shared_memory(mut self, bytes: u32) -> Self {
        self.shared_memory = bytes;
        self
    }

    /// The inside of the function; empty for compiled code.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// What stands before the function.
    pub fn header_text(&self) -> &str {
        &self.header
    }

    pub(super) fn is_compiled(&self) -> bool {
        self.compiled.is_some()
    }

    pub(super) fn kernel(
        &self,
        language: GpuLanguage,
        mut source: sys::Source,
        atomic_outputs: bool,
    ) -> Result<sys::GpuKernel> {
        (source.body, source.header) = (self.body.clone(), self.header.clone());
        Ok(match (language, &self.compiled) {
            (GpuLanguage::Metal, _) => {
                let math = match self.math {
                    MetalMath::Safe => 0,
                    MetalMath::Relaxed => 1,
                    MetalMath::Fast => 2,
                };
                sys::metal_kernel(&source, atomic_outputs, math)?
            }
            (GpuLanguage::Cuda, None) => sys::cuda_kernel(&source, self.shared_bytes()?)?,
            (GpuLanguage::Cuda, Some((code, scalars))) => {
                let scalars: Vec<sys::ScalarArgument> = scalars.iter().map(scalar).collect();
                sys::precompiled_cuda_kernel(&source, code, &scalars, self.shared_bytes()?)?
            }
        })
    }

    fn shared_bytes(&self) -> Result<i32> {
        let bytes = self.shared_memory;
        i32::try_from(bytes)
            .map_err(|_| Error::new(ErrorKind::InvalidArgument, "kernel", format!("{bytes} bytes of shared memory")))
    }
}

impl From<&str> for Source {
    fn from(body: &str) -> Self {
        Self::new(body)
    }
}

fn scalar(scalar: &KernelScalar) -> sys::ScalarArgument {
    match *scalar {
        KernelScalar::Bool(b) => sys::ScalarArgument { kind: 0, whole: b.into(), real: 0.0 },
        KernelScalar::Int(whole) => sys::ScalarArgument { kind: 1, whole, real: 0.0 },
        KernelScalar::Float(real) => sys::ScalarArgument { kind: 2, whole: 0, real },
    }
}
