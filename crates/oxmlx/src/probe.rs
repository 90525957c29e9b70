//! What the loaded MLX can do on a device, found by trying, and whether library and host fit each other.
//!
//! ```
//! use oxmlx::Device;
//! use oxmlx::probe::{Capability, Outcome, capabilities};
//! let found = capabilities(Device::Cpu)?;
//! let matmul = found.iter().find(|(capability, _)| *capability == Capability::Bfloat16Matmul);
//! assert!(matches!(matmul, Some((_, Outcome::Works))));
//! # Ok::<(), oxmlx::Error>(())
//! ```

use std::fmt;

use crate::fast::Mask;
use crate::kernel::Kernel;
use crate::quantize::{Affine, Format};
use crate::{
    Array, Device, Dtype, Error, ErrorKind, Result, Stream, build_info, fast, fft, linalg, ops, quantize, runtime,
};

/// Something that an MLX library may or may not do on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Sums in f64.
    Float64,
    /// Matrix products in bf16.
    Bfloat16Matmul,
    /// Matrix products in f16.
    Float16Matmul,
    /// Products of complex numbers.
    Complex,
    /// Fourier transforms.
    Fft,
    /// Factorisations and solvers.
    Linalg,
    /// Products with quantized weights.
    QuantizedMatmul,
    /// Attention without the matrix of scores.
    FusedAttention,
    /// Bodies in Rust: [`Kernel`].
    RustKernel,
    /// Work on a stream other than the default one.
    Streams,
}

impl Capability {
    /// All of them, in the order of [`capabilities`].
    pub const ALL: [Self; 10] = [
        Self::Float64,
        Self::Bfloat16Matmul,
        Self::Float16Matmul,
        Self::Complex,
        Self::Fft,
        Self::Linalg,
        Self::QuantizedMatmul,
        Self::FusedAttention,
        Self::RustKernel,
        Self::Streams,
    ];

    /// Such as `bfloat16_matmul`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float64 => "float64",
            Self::Bfloat16Matmul => "bfloat16_matmul",
            Self::Float16Matmul => "float16_matmul",
            Self::Complex => "complex",
            Self::Fft => "fft",
            Self::Linalg => "linalg",
            Self::QuantizedMatmul => "quantized_matmul",
            Self::FusedAttention => "fused_attention",
            Self::RustKernel => "rust_kernel",
            Self::Streams => "streams",
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// With the right values.
    Works,
    /// With these values, where others were right: the library or the driver is broken.
    Wrong(Vec<f32>),
    /// With an error.
    Refused(Error),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Works => f.write_str("works"),
            Self::Wrong(values) => write!(f, "wrong: gave {values:?}"),
            Self::Refused(error) => write!(f, "refused: {error}"),
        }
    }
}

/// Tries every capability on a device with a few elements each. Evaluates; takes milliseconds on a CPU.
///
/// # Errors
/// [`ErrorKind::Device`] where there is no such device.
pub fn capabilities(device: Device) -> Result<Vec<(Capability, Outcome)>> {
    if device.count()? == 0 {
        return Err(Error::new(ErrorKind::Device, "probe", format!("there is no device {device:?} here")));
    }
    device.scope(|| Capability::ALL.map(|capability| (capability, attempt(device, capability))).into())
}

fn attempt(device: Device, capability: Capability) -> Outcome {
    let tried = try_one(device, capability);
    let (array, right) = match tried {
        Ok(tried) => tried,
        Err(error) => return Outcome::Refused(error),
    };
    match ops::astype(&array, Dtype::Float32).and_then(|values| values.to_vec::<f32>()) {
        Ok(values) if values.len() == right.len() && values.iter().zip(&right).all(|(a, b)| (a - b).abs() <= 0.02) => {
            Outcome::Works
        }
        Ok(values) => Outcome::Wrong(values),
        Err(error) => Outcome::Refused(error),
    }
}

/// A small computation and its values, worked out by hand.
fn try_one(device: Device, capability: Capability) -> Result<(Array, Vec<f32>)> {
    let x = Array::matrix(&[[1.0f32, 2.0], [3.0, 4.0]])?;
    let squared = |dtype| -> Result<Array> {
        let x = ops::astype(&x, dtype)?;
        ops::matmul(&x, &x)
    };
    let matrix_product = vec![7.0, 10.0, 15.0, 22.0];
    Ok(match capability {
        Capability::Float64 => {
            // Half a unit of an f32 beside 1: gone in single precision.
            let sum = ops::add(&Array::scalar(1.0f64)?, &Array::scalar(1e-9f64)?)?;
            (ops::multiply(&ops::subtract(&sum, &Array::scalar(1.0f64)?)?, &Array::scalar(1e9f64)?)?, vec![1.0])
        }
        Capability::Bfloat16Matmul => (squared(Dtype::Bfloat16)?, matrix_product),
        Capability::Float16Matmul => (squared(Dtype::Float16)?, matrix_product),
        Capability::Complex => {
            let i = ops::astype(&Array::scalar(1.0f32)?, Dtype::Complex64)?;
            let turned = ops::multiply(&ops::multiply(&i, &Array::scalar(crate::Complex32::new(0.0, 1.0))?)?, &i)?;
            (ops::imag(&turned)?, vec![1.0])
        }
        Capability::Fft => (ops::real(&fft::fft(&x, None, -1, fft::FftNorm::Backward)?)?, vec![3.0, -1.0, 7.0, -1.0]),
        Capability::Linalg => (linalg::inv(&x)?, vec![-2.0, 1.0, 1.5, -0.5]),
        Capability::QuantizedMatmul => {
            let ones = Array::ones::<f32>((32, 64))?;
            let packed = quantize::quantize(&ones, Format::Affine(Affine::new(64, 4)?))?;
            (quantize::quantized_matmul(&Array::ones::<f32>((1, 64))?, &packed)?, vec![64.0; 32])
        }
        Capability::FusedAttention => {
            let ones = Array::ones::<f32>((1, 1, 2, 64))?;
            (fast::scaled_dot_product_attention(&ones, &ones, &ones, 0.125, Mask::Causal)?, vec![1.0; 128])
        }
        Capability::RustKernel => {
            let double = Kernel::builder("oxmlx::probe")
                .output(Dtype::Float32, |shapes| Ok(shapes[0].to_vec()))
                .cpu(|inputs, outputs| {
                    let values = inputs[0].as_slice::<f32>()?;
                    outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(&*values).for_each(|(y, x)| *y = 2.0 * x);
                    Ok(())
                })
                .build()?;
            (double.apply_one(&[x])?, vec![2.0, 4.0, 6.0, 8.0])
        }
        Capability::Streams => (Stream::new(device)?.scope(|| ops::add(&x, &x))??, vec![2.0, 4.0, 6.0, 8.0]),
    })
}

/// What library and host are, as far as they have to fit each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// [`runtime::version_compiled`].
    pub version_compiled: String,
    /// [`runtime::version_loaded`].
    pub version_loaded: String,
    /// [`build_info::NAX_BUILT`].
    pub nax_built: String,
    /// [`build_info::nax_loaded`].
    pub nax_loaded: String,
    /// The GPU's architecture as MLX names it, such as `applegpu_g17s`; empty without one.
    pub gpu: String,
}

impl Identity {
    /// Of this process. Enters MLX only where the versions agree.
    pub fn of_this_process() -> Self {
        let mut identity = Self {
            version_compiled: runtime::version_compiled().to_owned(),
            version_loaded: runtime::version_loaded().to_owned(),
            nax_built: build_info::NAX_BUILT.to_owned(),
            nax_loaded: build_info::nax_loaded().to_owned(),
            gpu: String::new(),
        };
        let gpu = || -> Result<Option<String>> {
            if Device::Gpu.count()? == 0 {
                return Ok(None);
            }
            Ok(Device::Gpu.info()?.into_iter().find(|(key, _)| key == "architecture").map(|(_, name)| name))
        };
        if identity.version_compiled == identity.version_loaded {
            identity.gpu = gpu().ok().flatten().unwrap_or_default();
        }
        identity
    }

    /// The class of host: `cpu`, `gpu`, or `apple-nax` for an Apple GPU with neural accelerators, as MLX tells them apart.
    pub fn host_class(&self) -> &'static str {
        let Some(apple) = self.gpu.strip_prefix("applegpu_g") else {
            return if self.gpu.is_empty() { "cpu" } else { "gpu" };
        };
        let digits = apple.trim_end_matches(|c: char| !c.is_ascii_digit());
        let first = if apple.ends_with('p') { 18 } else { 17 };
        if digits.parse::<u32>().is_ok_and(|generation| generation >= first) { "apple-nax" } else { "gpu" }
    }

    /// What does not fit, in sentences for people; empty when all is well. What the host has no hardware for is no complaint.
    pub fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.version_compiled != self.version_loaded {
            found.push(format!(
                "compiled against MLX {}, but the loader found {}: every operation is refused; run the library of the release \
                 that was compiled against, or build again",
                self.version_compiled, self.version_loaded
            ));
        }
        if self.nax_built == "present" && self.nax_loaded == "absent" {
            found.push(
                "built against an MLX with kernels for neural accelerators, but the one that was loaded has none"
                    .to_owned(),
            );
        } else if self.host_class() == "apple-nax" && self.nax_loaded == "absent" {
            found.push(format!(
                "this GPU ({}) has neural accelerators, and the MLX that was loaded has no kernels for them: run `cargo xtask \
                 setup` on this macOS and build again",
                self.gpu
            ));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::{Identity, Outcome, capabilities};
    use crate::{Device, ErrorKind};

    fn identity(gpu: &str, built: &str, loaded: &str) -> Identity {
        Identity {
            version_compiled: "1.2.3".to_owned(),
            version_loaded: "1.2.3".to_owned(),
            nax_built: built.to_owned(),
            nax_loaded: loaded.to_owned(),
            gpu: gpu.to_owned(),
        }
    }

    #[test]
    fn this_library_does_everything_on_the_cpu() {
        for (capability, outcome) in capabilities(Device::Cpu).unwrap() {
            assert!(matches!(outcome, Outcome::Works), "{}: {outcome}", capability.name());
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error() {
        if Device::Gpu.count().unwrap() == 0 {
            assert_eq!(capabilities(Device::Gpu).unwrap_err().kind(), ErrorKind::Device);
        }
    }

    #[test]
    fn what_this_process_loaded_fits() {
        assert_eq!(Identity::of_this_process().complaints(), Vec::<String>::new());
    }

    #[test]
    fn another_release_than_the_one_compiled_against_is_a_complaint() {
        let skewed = Identity { version_loaded: "1.2.4".to_owned(), ..identity("", "absent", "absent") };
        assert!(skewed.complaints()[0].contains("1.2.3") && skewed.complaints()[0].contains("1.2.4"));
    }

    #[test]
    fn missing_kernels_are_a_complaint_on_hosts_with_the_hardware_only() {
        for (gpu, class, complaints) in [
            ("applegpu_g17s", "apple-nax", 1),
            ("applegpu_g17p", "gpu", 0),
            ("applegpu_g18p", "apple-nax", 1),
            ("applegpu_g13g", "gpu", 0),
            ("sm_90", "gpu", 0),
            ("", "cpu", 0),
        ] {
            let host = identity(gpu, "absent", "absent");
            assert_eq!((host.host_class(), host.complaints().len()), (class, complaints), "{gpu}");
            assert!(identity(gpu, "present", "present").complaints().is_empty());
        }
        assert_eq!(identity("", "present", "absent").complaints().len(), 1);
    }
}
