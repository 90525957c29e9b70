//! Evaluation, devices and streams of the process.
//!
//! One shared stream a device serves every thread, so that an array built on one thread can be evaluated on another and read on a
//! third. Evaluation waits outside the process-wide lock: other threads go on building and evaluating meanwhile.

use oxmlx_sys::generated::device as raw;
use oxmlx_sys::{runtime as sys, types};

use crate::{Array, Result};

/// A kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// The processor.
    Cpu,
    /// A GPU, through Metal or CUDA.
    Gpu,
}

impl Device {
    pub(crate) fn raw(self) -> sys::DeviceType {
        match self {
            Self::Cpu => sys::DeviceType::Cpu,
            Self::Gpu => sys::DeviceType::Gpu,
        }
    }

    /// The device that operations go to by default: the GPU where MLX has one.
    ///
    /// ```
    /// use oxmlx::Device;
    /// let expected = if Device::Gpu.count()? > 0 { Device::Gpu } else { Device::Cpu };
    /// assert_eq!(Device::current()?, expected);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    ///
    /// # Source
    /// C++ `mlx::core::default_device`.
    pub fn current() -> Result<Self> {
        Ok(match sys::default_device()? {
            sys::DeviceType::Cpu => Self::Cpu,
            sys::DeviceType::Gpu => Self::Gpu,
        })
    }

    /// How many devices of this kind MLX sees.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    ///
    /// # Source
    /// C++ `mlx::core::device_count`.
    pub fn count(self) -> Result<usize> {
        match self {
            Self::Cpu => Ok(1),
            Self::Gpu => Ok(sys::gpu_count()?),
        }
    }

    /// Whether MLX can use a device of this kind.
    ///
    /// ```
    /// assert!(oxmlx::Device::Cpu.is_available()?);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    ///
    /// # Source
    /// C++ `mlx::core::is_available`.
    pub fn is_available(self) -> Result<bool> {
        Ok(self.count()? > 0)
    }

    /// MLX's facts about the device, as key and value, sorted by key.
    ///
    /// # Errors
    /// What MLX throws for a device that is not there.
    ///
    /// # Source
    /// C++ `mlx::core::device_info`.
    pub fn info(self) -> Result<Vec<(String, String)>> {
        let device = types::Device { kind: self.raw(), index: 0 };
        let mut facts: Vec<(String, String)> = raw::device_info(device)?
            .into_iter()
            .map(|(key, fact)| match fact {
                types::Fact::Text(text) => (key, text),
                types::Fact::Number(number) => (key, number.to_string()),
            })
            .collect();
        facts.sort();
        Ok(facts)
    }
}

/// Computes `arrays`, and all they depend on, and waits for them.
///
/// ```
/// use oxmlx::Array;
/// let a = Array::scalar(1.0f32)?;
/// let (b, c) = ((&a + &a)?, (&a * &a)?);
/// oxmlx::eval(&[b.clone(), c])?;
/// assert!(b.is_available()?);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// What the kernels report, as [`ErrorKind::Backend`](crate::ErrorKind::Backend).
///
/// # Source
/// C++ `mlx::core::eval`.
pub fn eval(arrays: &[Array]) -> Result<()> {
    Ok(sys::eval(Array::raw(arrays))?)
}

/// Starts the computation of `arrays`, and of all they depend on, without waiting for it. Reading an array waits for it.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) inside a transform.
///
/// # Source
/// C++ `mlx::core::async_eval`.
pub fn async_eval(arrays: &[Array]) -> Result<()> {
    Ok(sys::async_eval(Array::raw(arrays))?)
}

/// The MLX release whose headers oxmlx was compiled with, such as `0.32.4`.
pub fn version_compiled() -> &'static str {
    sys::version_compiled()
}

/// The release of the MLX library that the loader found. Every operation is an error when it differs from
/// [`version_compiled`].
pub fn version_loaded() -> &'static str {
    sys::version_loaded()
}

/// Runs `f` with its operations going to the processor, whatever the default device is.
pub(crate) fn on_cpu<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    if Device::current()? == Device::Cpu {
        return f();
    }
    let cpu = oxmlx_sys::types::Device { kind: sys::DeviceType::Cpu, index: 0 };
    let stream = oxmlx_sys::generated::stream::default_stream(cpu)?;
    sys::with_stream(sys::DeviceType::Cpu, stream.index, f)?
}

/// Checks the environment variables that oxmlx reads while it runs (`OXMLX_CPU_KERNELS`). Without this call a value that it does not
/// know counts as not set.
///
/// ```
/// oxmlx::runtime::check_environment()?;
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), naming the variable and the values it takes.
pub fn check_environment() -> Result<()> {
    crate::cpu::setting().map(|_| ())
}
