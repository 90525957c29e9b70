//! A quantized matrix: made from weights, and made weights again.

use oxmlx_sys::generated::ops as raw;

use super::{Affine, Format, placed};
use crate::ops::{check, contiguous};
use crate::{Array, Device, Dtype, Error, ErrorKind, Result, ops};

/// A matrix, or a stack of them, in a quantized format.
#[derive(Clone, Debug)]
pub struct Quantized {
    /// The packed values: `[.., n * bits / 32]` uint32.
    pub weight: Array,
    /// One a group: `[.., n / group_size]`.
    pub scales: Array,
    /// One a group in the affine format: `[.., n / group_size]`.
    pub biases: Option<Array>,
    /// What the scales of [`Format::Nvfp4`] were divided by, if they were: a float32 scalar.
    pub global_scale: Option<Array>,
    /// How the values are stored.
    pub format: Format,
}

impl Quantized {
    /// A matrix in the affine format, from its parts.
    pub fn affine(weight: Array, scales: Array, biases: Array, affine: Affine) -> Self {
        Self { weight, scales, biases: Some(biases), global_scale: None, format: affine.into() }
    }

    /// A matrix in a format without biases, from its parts.
    pub fn floats(weight: Array, scales: Array, format: Format) -> Self {
        Self { weight, scales, biases: None, global_scale: None, format }
    }

    /// The shape that the matrix has when dequantized.
    pub fn shape(&self) -> Vec<i32> {
        let mut shape = self.scales.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = last.saturating_mul(self.format.group_size());
        }
        shape
    }

    /// The matrix of the rows at `indices`, or of a stack the matrices there. Lazy. Indices integer, **clamped** into the axis.
    ///
    /// ```
    /// use oxmlx::Array;
    /// use oxmlx::quantize::{Format, dequantize_as, quantize};
    /// let w = (Array::from_slice(&[1.0f32, 2.0, 3.0], (3, 1))? * Array::ones::<f32>((3, 32))?)?;
    /// let rows = quantize(&w, Format::Mxfp8)?.take(&Array::vector(&[2i32])?)?;
    /// assert_eq!(dequantize_as(&rows, oxmlx::Dtype::Float32)?.to_vec::<f32>()?, [3.0; 32]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ops::take`].
    ///
    /// # Source
    /// C++ `mlx::core::take` (`mlx/ops.h`) of each part.
    pub fn take(&self, indices: &Array) -> Result<Self> {
        let rows = |part: &Array| ops::take(part, indices, 0);
        Ok(Self {
            weight: rows(&self.weight)?,
            scales: rows(&self.scales)?,
            biases: self.biases.as_ref().map(rows).transpose()?,
            global_scale: self.global_scale.clone(),
            format: self.format,
        })
    }

    /// Whether the parts fit each other, before MLX reads one by the shape of another.
    pub(super) fn check(&self, op: &'static str) -> Result<()> {
        let Self { weight, scales, biases, format, .. } = self;
        let wrong = |text: String| {
            Err(Error::new(ErrorKind::Shape, op, text).with_shape(weight.shape()).with_shape(scales.shape()))
        };
        let (Some((&words, rows)), Some((&groups, scale_rows))) =
            (weight.shape().split_last(), scales.shape().split_last())
        else {
            return wrong("a quantized matrix has two axes at least, not none".to_owned());
        };
        let (bits, group) = (i64::from(format.bits()), i64::from(format.group_size()));
        if rows.is_empty() || rows != scale_rows || i64::from(words) * 32 != i64::from(groups) * group * bits {
            return wrong(format!(
                "words of shape {:?} and scales of shape {:?} are no matrix of groups of {group} with {bits} bits",
                weight.shape(),
                scales.shape()
            ));
        }
        if let Some(biases) = biases.as_ref().filter(|biases| biases.shape() != scales.shape()) {
            return wrong(format!("biases of shape {:?} for scales of shape {:?}", biases.shape(), scales.shape()));
        }
        if biases.is_some() != matches!(format, Format::Affine(_)) {
            let text = format!("the format {format:?} has {} biases", if biases.is_some() { "no" } else { "" });
            return Err(Error::new(ErrorKind::InvalidArgument, op, text));
        }
        let scales_fit = match format {
            Format::Affine(_) => {
                biases.as_ref().is_some_and(|b| b.dtype() == scales.dtype()) && scales.dtype().is_floating()
            }
            Format::Mxfp4 | Format::Mxfp8 | Format::Nvfp4 => scales.dtype() == Dtype::Uint8,
        };
        if weight.dtype() != Dtype::Uint32 || !scales_fit {
            let text = format!("words of {} and scales of {} are not the format's", weight.dtype(), scales.dtype());
            return Err(Error::new(ErrorKind::Dtype, op, text).with_dtype(weight.dtype()).with_dtype(scales.dtype()));
        }
        Ok(())
    }
}

/// Quantizes `w` along its last axis, whose length is a multiple of the group size.
///
/// Shapes: `[.., n]` with two axes at least. Dtypes: floating point; affine scales and biases keep it. Lazy.
///
/// ```
/// use oxmlx::Array;
/// use oxmlx::quantize::{Affine, quantize};
/// let q = quantize(&Array::zeros::<f32>((2, 64))?, Affine::new(32, 4)?)?;
/// assert_eq!((q.weight.shape(), q.scales.shape()), (&[2, 8][..], &[2, 2][..]));
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for fewer than two dimensions or a length that the groups do not divide; [`ErrorKind::Dtype`] for no floating
/// point.
///
/// # Source
/// C++ `mlx::core::quantize` (`mlx/ops.h`).
pub fn quantize(w: &Array, format: impl Into<Format>) -> Result<Quantized> {
    parts(w, format.into(), None)
}

/// Quantizes `w` to [`Format::Nvfp4`] with one more scale for all of it: a float32 scalar, usually the largest absolute value.
///
/// ```
/// use oxmlx::{Array, ops};
/// use oxmlx::quantize::{dequantize_as, quantize_scaled};
/// let w = Array::from_slice(&[3.0f32; 32], (2, 16))?;
/// let q = quantize_scaled(&w, &ops::max(&ops::abs(&w)?)?)?;
/// assert_eq!(dequantize_as(&q, oxmlx::Dtype::Float32)?.to_vec::<f32>()?, [3.0; 32]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`quantize`]; [`ErrorKind::InvalidArgument`] for a scale that is no float32 scalar.
///
/// # Source
/// C++ `mlx::core::quantize` with `global_scale` (`mlx/ops.h`).
pub fn quantize_scaled(w: &Array, global_scale: &Array) -> Result<Quantized> {
    parts(w, Format::Nvfp4, Some(global_scale))
}

fn parts(w: &Array, format: Format, global_scale: Option<&Array>) -> Result<Quantized> {
    const OP: &str = "quantize";
    if w.ndim() < 2 || w.dim(-1).is_none_or(|n| n % format.group_size() != 0) {
        let text = format!(
            "shape {:?} has no two axes with a last one that groups of {} divide",
            w.shape(),
            format.group_size()
        );
        return Err(Error::new(ErrorKind::Shape, OP, text).with_shape(w.shape()));
    }
    if !w.dtype().is_floating() {
        let text = format!("only floating point can be quantized, not {}", w.dtype());
        return Err(Error::new(ErrorKind::Dtype, OP, text).with_dtype(w.dtype()));
    }
    // MLX's CUDA kernel takes column-major memory for row-major.
    let row_major = (Device::current()? == Device::Gpu).then(|| contiguous(w, false)).transpose()?;
    let w = row_major.as_ref().unwrap_or(w);
    let (group, bits) = format.sizes();
    let made = placed(format, || Ok(raw::quantize(&w.0, group, bits, format.mode(), global_scale.map(|g| &g.0))?))?;
    let global_scale = global_scale.cloned();
    if matches!(format, Format::Affine(_)) {
        let [weight, scales, biases] = check::exactly(made, OP)?;
        return Ok(Quantized { weight, scales, biases: Some(biases), global_scale, format });
    }
    let [weight, scales] = check::exactly(made, OP)?;
    Ok(Quantized { weight, scales, biases: None, global_scale, format })
}

/// The values of a quantized matrix: in the scales' dtype, or bfloat16 for a float format. Lazy.
///
/// ```
/// use oxmlx::quantize::{Affine, dequantize, quantize};
/// let w = oxmlx::Array::zeros::<f32>((2, 32))?;
/// let q = quantize(&w, Affine::new(32, 4)?)?;
/// assert_eq!(dequantize(&q)?.to_vec::<f32>()?, [0.0; 64]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] or [`ErrorKind::Dtype`] for parts that do not fit.
///
/// # Source
/// C++ `mlx::core::dequantize` (`mlx/ops.h`).
pub fn dequantize(q: &Quantized) -> Result<Array> {
    values(q, None)
}

/// The values of a quantized matrix as a floating point dtype of choice. Lazy.
///
/// ```
/// use oxmlx::Dtype;
/// use oxmlx::quantize::{Format, dequantize_as, quantize};
/// let q = quantize(&oxmlx::Array::ones::<f32>((2, 32))?, Format::Mxfp8)?;
/// assert_eq!(dequantize_as(&q, Dtype::Float32)?.to_vec::<f32>()?, [1.0; 64]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`dequantize`]; [`ErrorKind::InvalidArgument`] for a dtype that is no float.
///
/// # Source
/// C++ `mlx::core::dequantize` with `dtype` (`mlx/ops.h`).
pub fn dequantize_as(q: &Quantized, dtype: Dtype) -> Result<Array> {
    values(q, Some(dtype))
}

fn values(q: &Quantized, dtype: Option<Dtype>) -> Result<Array> {
    q.check("dequantize")?;
    let Quantized { weight, scales, biases, global_scale, format } = q;
    let ((group, bits), mode) = (format.sizes(), format.mode());
    let (biases, global) = (biases.as_ref().map(|b| &b.0), global_scale.as_ref().map(|g| &g.0));
    placed(*format, || Ok(raw::dequantize(&weight.0, &scales.0, biases, group, bits, mode, global, dtype)?.into()))
}
