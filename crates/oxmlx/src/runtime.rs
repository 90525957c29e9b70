//! Evaluation, devices and streams of the process.
//!
//! One shared stream a device serves every thread, so that an array built on one thread can be evaluated on another and read on a
//! third. Evaluation waits outside the process-wide lock: other threads go on building and evaluating meanwhile.

use std::fmt;

use oxmlx_kernels::Pool;
use oxmlx_sys::generated::device as raw;
use oxmlx_sys::{runtime as sys, types};

use crate::{Array, Error, ErrorKind, Result};

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

    /// The device that this thread's operations go to: that of the innermost [`scope`](Self::scope) or
    /// [`Stream::scope`](crate::Stream::scope), else the default of the process, which is the GPU where MLX has one.
    ///
    /// ```
    /// use oxmlx::Device;
    /// let expected = if Device::Gpu.count()? > 0 { Device::Gpu } else { Device::Cpu };
    /// assert_eq!(Device::current()?, expected);
    /// assert_eq!(Device::Cpu.scope(Device::current)??, Device::Cpu);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    ///
    /// # Source
    /// C++ `mlx::core::default_device` (`mlx/device.h`); scopes are oxmlx's own.
    pub fn current() -> Result<Self> {
        Ok(match sys::current_device()? {
            sys::DeviceType::Cpu => Self::Cpu,
            sys::DeviceType::Gpu => Self::Gpu,
        })
    }

    /// Makes this the device that operations of all threads go to outside a scope.
    ///
    /// Arrays that are there stay where they are usable: any device reads any array.
    ///
    /// ```
    /// use oxmlx::Device;
    /// let before = Device::current()?;
    /// Device::Cpu.set_default()?;
    /// assert_eq!(Device::current()?, Device::Cpu);
    /// before.set_default()?;
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Device`] where there is no such device.
    ///
    /// # Source
    /// C++ `mlx::core::set_default_device` (`mlx/device.h`).
    pub fn set_default(self) -> Result<()> {
        self.present("set_default_device")?;
        Ok(raw::set_default_device(self.first())?)
    }

    /// Runs `f` with this thread's operations going to the device's default stream. Scopes nest.
    ///
    /// ```
    /// use oxmlx::{Array, Device};
    /// let sum = Device::Cpu.scope(|| Array::scalar(1i32)? + Array::scalar(2i32)?)?;
    /// assert_eq!(sum?.item::<i32>()?, 3);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Device`] where there is no such device; what `f` returns is passed on.
    ///
    /// # Source
    /// C++ `mlx::core::StreamContext` (`mlx/utils.h`) of `mlx::core::default_stream` (`mlx/stream.h`).
    pub fn scope<T>(self, f: impl FnOnce() -> T) -> Result<T> {
        self.present("default_stream")?;
        let stream = oxmlx_sys::generated::stream::default_stream(self.first())?;
        Ok(sys::with_stream(self.raw(), stream.index, f)?)
    }

    fn first(self) -> types::Device {
        types::Device { kind: self.raw(), index: 0 }
    }

    fn present(self, op: &'static str) -> Result<()> {
        if self.is_available()? {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Device, op, format!("there is no device {self:?} here")))
    }

    /// How many devices of this kind MLX sees.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    ///
    /// # Source
    /// C++ `mlx::core::device_count`.
    pub fn count(self) -> Result<usize> {
        Ok(raw::device_count(self.raw())?.max(0) as usize)
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
        Ok(raw::is_available(self.first())?)
    }

    /// MLX's facts about the device, as key and value, sorted by key.
    ///
    /// # Errors
    /// What MLX throws for a device that is not there.
    ///
    /// # Source
    /// C++ `mlx::core::device_info`.
    pub fn info(self) -> Result<Vec<(String, String)>> {
        let mut facts: Vec<(String, String)> = raw::device_info(self.first())?
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

impl fmt::Display for Device {
    /// As MLX names its first device of the kind: `Device(cpu, 0)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match oxmlx_sys::generated::utils::format_device(self.first()) {
            Ok(text) => f.write_str(&text),
            Err(error) => write!(f, "<{error}>"),
        }
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
/// What the kernels report, as [`ErrorKind::Backend`].
///
/// # Source
/// C++ `mlx::core::eval`.
pub fn eval(arrays: &[Array]) -> Result<()> {
    Ok(sys::eval(Array::raw(arrays))?)
}

/// Starts the computation of `arrays`, and of all they depend on, without waiting for it. Reading an array waits for it.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] inside a transform.
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

/// How many threads oxmlx's own CPU kernels compute on.
pub fn cpu_threads() -> usize {
    Pool::global().threads()
}

/// Sets how many threads oxmlx's own CPU kernels compute on from now on; 0 means one for each processor that the process may use, which
/// is where it starts. MLX's own CPU operations always run on one.
///
/// ```
/// use oxmlx::runtime;
/// runtime::set_cpu_threads(1);
/// assert_eq!(runtime::cpu_threads(), 1);
/// runtime::set_cpu_threads(0);
/// ```
pub fn set_cpu_threads(threads: usize) {
    Pool::global().set_threads(threads);
}

/// Runs `f` with its operations going to the processor, whatever the default device is.
pub(crate) fn on_cpu<T>(f: impl FnOnce() -> Result<T>) -> Result<T> {
    if Device::current()? == Device::Cpu { f() } else { Device::Cpu.scope(f)? }
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
/// [`ErrorKind::InvalidArgument`], naming the variable and the values it takes.
pub fn check_environment() -> Result<()> {
    crate::cpu::setting().map(|_| ())
}
