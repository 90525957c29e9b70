//! Convolutions over one to three spatial dimensions, channels last.

use oxmlx_sys::generated::ops as raw;

use super::check;
use crate::{Array, Error, ErrorKind, Result};

/// How a convolution over `N` spatial dimensions moves. All ones and zeros by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Conv<const N: usize> {
    stride: [i32; N],
    padding: [i32; N],
    dilation: [i32; N],
    output_padding: [i32; N],
    groups: i32,
}

impl<const N: usize> Default for Conv<N> {
    fn default() -> Self {
        Self { stride: [1; N], padding: [0; N], dilation: [1; N], output_padding: [0; N], groups: 1 }
    }
}

impl<const N: usize> Conv<N> {
    /// Step one, no padding, no dilation, one group.
    pub fn new() -> Self {
        Self::default()
    }

    /// The step of the window in each dimension, at least 1.
    pub fn stride(mut self, stride: [i32; N]) -> Self {
        self.stride = stride;
        self
    }

    /// The zeros put on both sides of each dimension.
    pub fn padding(mut self, padding: [i32; N]) -> Self {
        self.padding = padding;
        self
    }

    /// The distance of neighbours in the window, at least 1.
    pub fn dilation(mut self, dilation: [i32; N]) -> Self {
        self.dilation = dilation;
        self
    }

    /// What a transposed convolution adds at the end of each dimension of its result. The others do not look at it.
    pub fn output_padding(mut self, output_padding: [i32; N]) -> Self {
        self.output_padding = output_padding;
        self
    }

    /// The number of groups of channels that do not mix, at least 1.
    pub fn groups(mut self, groups: i32) -> Self {
        self.groups = groups;
        self
    }

    fn check(&self, input: &Array, weight: &Array, transposed: bool, op: &'static str) -> Result<()> {
        check_parts(input, weight, N, op)?;
        positive(&self.stride, "stride", op)?;
        positive(&self.dilation, "dilation", op)?;
        group_count(self.groups, op)?;
        let spatial = |a: &Array, i: usize| i64::from(a.shape()[i + 1]);
        for i in 0..N {
            let (n, k) = (spatial(input, i), spatial(weight, i));
            let (stride, padding) = (i64::from(self.stride[i]), i64::from(self.padding[i]));
            let window = i64::from(self.dilation[i]).saturating_mul((k - 1).max(0)) + 1;
            if transposed {
                let made = stride.saturating_mul((n - 1).max(0)) + window;
                check::length(made.saturating_add(i64::from(self.output_padding[i])), "the result", op)?;
            }
            check::length(n.saturating_add(padding.saturating_mul(2).max(0)), "the padded input", op)?;
            check::length(window, "the window", op)?;
        }
        Ok(())
    }
}

/// Input and weight have `spatial` dimensions between the outer two.
fn check_parts(input: &Array, weight: &Array, spatial: usize, op: &'static str) -> Result<()> {
    if input.ndim() == spatial + 2 && weight.ndim() == spatial + 2 {
        return Ok(());
    }
    let text = format!(
        "input {:?} and weight {:?} must both have {} dimensions: batch or outputs, {spatial} in space, channels",
        input.shape(),
        weight.shape(),
        spatial + 2
    );
    Err(Error::new(ErrorKind::Shape, op, text).with_shape(input.shape()).with_shape(weight.shape()))
}

fn positive(values: &[i32], what: &str, op: &'static str) -> Result<()> {
    if values.iter().all(|&v| v > 0) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidArgument, op, format!("{what} {values:?} must be at least 1")))
}

fn group_count(groups: i32, op: &'static str) -> Result<()> {
    if groups > 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Group, op, format!("{groups} groups: there must be at least 1")))
}

/// Declares the convolutions and the transposed ones of one number of dimensions.
macro_rules! convolutions {
    ($($name:ident, $transposed:ident, $n:literal, $space:literal, $w:literal, $shape:literal, $one:literal,
       ($conf:ident) => $args:expr, $out:expr);+ $(;)?) => {$(
        #[doc = concat!("The convolution over ", $space, ".")]
        ///
        #[doc = concat!("Shapes: input `[n, ", $w, ", c]` and weight `[o, ", $w, ", c / groups]` give `[n, ", $w, ", o]`.")]
        /// Dtypes: floating point. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("let (x, w) = (Array::ones::<f32>(", $shape, ")?, Array::ones::<f32>(", $shape, ")?);")]
        #[doc = concat!("assert_eq!(ops::", stringify!($name), "(&x, &w, ops::Conv::new())?.to_vec::<f32>()?, [", $one, "]);")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Shape`] for other numbers of dimensions; [`ErrorKind::Group`] for no groups; [`ErrorKind::InvalidArgument`] for a
        /// stride or dilation under 1 or channels that do not fit.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($name), "` (`mlx/ops.h`).")]
        pub fn $name(input: &Array, weight: &Array, $conf: Conv<$n>) -> Result<Array> {
            $conf.check(input, weight, false, stringify!($name))?;
            let (stride, padding, dilation) = $args;
            Ok(raw::$name(&input.0, &weight.0, stride, padding, dilation, $conf.groups)?.into())
        }

        #[doc = concat!("The transposed convolution over ", $space, ": the gradient of [`", stringify!($name), "`].")]
        ///
        #[doc = concat!("Shapes: input `[n, ", $w, ", c]` and weight `[o, ", $w, ", c / groups]` give `[n, ", $w, ", o]`.")]
        /// Dtypes: floating point. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, ops};
        #[doc = concat!("let x = Array::ones::<f32>(", $shape, ")?;")]
        #[doc = concat!("assert_eq!(ops::", stringify!($transposed), "(&x, &x, ops::Conv::new())?.ndim(), ", $n, " + 2);")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        #[doc = concat!("As [`", stringify!($name), "`].")]
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::", stringify!($transposed), "` (`mlx/ops.h`).")]
        pub fn $transposed(input: &Array, weight: &Array, $conf: Conv<$n>) -> Result<Array> {
            $conf.check(input, weight, true, stringify!($transposed))?;
            let (stride, padding, dilation) = $args;
            let made = raw::$transposed(&input.0, &weight.0, stride, padding, dilation, $out, $conf.groups)?;
            Ok(made.into())
        }
    )+};
}

convolutions! {
    conv1d, conv_transpose1d, 1, "one dimension", "w", "(1, 2, 1)", "2.0",
    (conv) => (conv.stride[0], conv.padding[0], conv.dilation[0]), conv.output_padding[0];
    conv2d, conv_transpose2d, 2, "two dimensions", "h, w", "(1, 2, 2, 1)", "4.0",
    (conv) => (conv.stride.into(), conv.padding.into(), conv.dilation.into()), conv.output_padding.into();
    conv3d, conv_transpose3d, 3, "three dimensions", "d, h, w", "(1, 2, 2, 2, 1)", "8.0",
    (conv) => (conv.stride.into(), conv.padding.into(), conv.dilation.into()), conv.output_padding.into();
}

/// How a [`conv_general`] moves: one entry a spatial dimension, or one for all of them, or none for the default.
#[derive(Clone, Debug, Default)]
pub struct ConvGeneral {
    /// The step of the window. 1 by default.
    pub stride: Vec<i32>,
    /// The zeros before each dimension; a negative number cuts. 0 by default.
    pub padding_before: Vec<i32>,
    /// The zeros after each dimension; a negative number cuts. 0 by default.
    pub padding_after: Vec<i32>,
    /// The distance of neighbours in the window. 1 by default.
    pub kernel_dilation: Vec<i32>,
    /// The distance that the input's elements are moved apart. 1 by default.
    pub input_dilation: Vec<i32>,
    /// The number of groups of channels, 1 when `None`.
    pub groups: Option<i32>,
    /// Whether the window runs backwards, as in a convolution of mathematics.
    pub flip: bool,
}

/// The convolution with everything that can be chosen. See [`conv2d`] for the shapes.
///
/// ```
/// use oxmlx::{Array, ops};
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], (1, 3, 1))?;
/// let w = Array::from_slice(&[1.0f32, 10.0], (1, 2, 1))?;
/// let flipped = ops::ConvGeneral { flip: true, ..Default::default() };
/// assert_eq!(ops::conv_general(&x, &w, &flipped)?.to_vec::<f32>()?, [12.0, 23.0]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for other numbers of dimensions or entries; [`ErrorKind::Group`] for no groups;
/// [`ErrorKind::InvalidArgument`] for a stride or dilation under 1 or channels that do not fit.
///
/// # Source
/// C++ `mlx::core::conv_general` (`mlx/ops.h`).
pub fn conv_general(input: &Array, weight: &Array, conv: &ConvGeneral) -> Result<Array> {
    const OP: &str = "conv_general";
    let spatial = input.ndim().saturating_sub(2);
    check_parts(input, weight, spatial, OP)?;
    for (what, values, least) in [
        ("stride", &conv.stride, 1),
        ("kernel dilation", &conv.kernel_dilation, 1),
        ("input dilation", &conv.input_dilation, 1),
        ("padding before", &conv.padding_before, i32::MIN),
        ("padding after", &conv.padding_after, i32::MIN),
    ] {
        if !matches!(values.len(), 0 | 1) && values.len() != spatial {
            let text = format!("{what} {values:?}: give none, one, or one for each of {spatial} dimensions");
            return Err(Error::new(ErrorKind::Shape, OP, text).with_shape(input.shape()));
        }
        if least == 1 {
            positive(values, what, OP)?;
        }
    }
    let entry =
        |values: &[i32], i: usize, default: i32| i64::from(*values.get(i).or(values.first()).unwrap_or(&default));
    for i in 0..spatial {
        let n = i64::from(input.shape()[i + 1]);
        let (before, after) = (entry(&conv.padding_before, i, 0), entry(&conv.padding_after, i, 0));
        let apart = entry(&conv.input_dilation, i, 1).saturating_mul((n - 1).max(0)) + 1;
        check::length(apart + before.max(0) + after.max(0), "the padded input", OP)?;
        if n + before.min(0) + after.min(0) < 0 {
            let text = format!("paddings {before} and {after} cut more than the {n} elements there are");
            return Err(Error::new(ErrorKind::Shape, OP, text).with_shape(input.shape()));
        }
        let window = entry(&conv.kernel_dilation, i, 1).saturating_mul((i64::from(weight.shape()[i + 1]) - 1).max(0));
        check::length(window + 1, "the window", OP)?;
    }
    let groups = conv.groups.unwrap_or(1);
    group_count(groups, OP)?;
    let made = raw::conv_general(
        &input.0,
        &weight.0,
        &conv.stride,
        &conv.padding_before,
        &conv.padding_after,
        &conv.kernel_dilation,
        &conv.input_dilation,
        groups,
        conv.flip,
    )?;
    Ok(made.into())
}
