//! Discrete Fourier transforms. Results are complex64, or float32 where a real signal comes back.

use oxmlx_sys::generated::fft as raw;
pub use oxmlx_sys::types::FftNorm;
use oxmlx_sys::types::PadMode;

use crate::ops::check;
use crate::{Array, Error, ErrorKind, Result};

/// A length that a transform cuts or pads to.
fn length(n: i32, op: &'static str) -> Result<()> {
    if n > 0 {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Shape, op, format!("a transform of length {n}: it must be at least 1")))
}

/// Checks the axes of a transform over several, none of them empty.
fn several(a: &Array, n: Option<&[i32]>, axes: &[i32], op: &'static str) -> Result<()> {
    check::axes(a, axes, op)?;
    if let Some(n) = n {
        if n.len() != axes.len() {
            let text = format!("{} lengths given for {} axes", n.len(), axes.len());
            return Err(Error::new(ErrorKind::Shape, op, text));
        }
        return n.iter().try_for_each(|&n| length(n, op));
    }
    axes.iter().try_for_each(|&axis| length(check::axis_length(a, axis, op)?, op))
}

/// Declares the forms of one transform: along an axis, and over several.
macro_rules! transforms {
    ($($(#[$doc:meta])* $one:ident = $one_n:ident, $two:ident = $two_n:ident,
       $many:ident = $many_axes:ident, $many_n:ident, $check:literal);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// Along one axis, cut or padded with zeros to the length `n` when given. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, fft};
        /// let a = Array::ones::<f32>(4)?;
        #[doc = concat!("assert_eq!(fft::", stringify!($one), "(&a, None, -1, fft::FftNorm::Backward)?.dim(-1), Some(", $check, "));")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`] for an axis outside the dimensions; [`ErrorKind::Shape`] for a length under 1.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::fft::", stringify!($one), "` (`mlx/fft.h`).")]
        pub fn $one(a: &Array, n: Option<i32>, axis: i32, norm: FftNorm) -> Result<Array> {
            let own = check::axis_length(a, axis, stringify!($one))?;
            length(n.unwrap_or(own), stringify!($one))?;
            Ok(match n {
                Some(n) => raw::$one_n(&a.0, n, axis, norm)?,
                None => raw::$one(&a.0, axis, norm)?,
            }
            .into())
        }

        #[doc = concat!("[`", stringify!($one), "`] over two axes.")]
        ///
        /// ```
        /// use oxmlx::{Array, fft};
        /// let a = Array::ones::<f32>((2, 4))?;
        #[doc = concat!("assert_eq!(fft::", stringify!($two), "(&a, None, [-2, -1], fft::FftNorm::Backward)?.dim(-1), Some(", $check, "));")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice; [`ErrorKind::Shape`] for a length under 1.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::fft::", stringify!($two), "` (`mlx/fft.h`).")]
        pub fn $two(a: &Array, n: Option<[i32; 2]>, axes: [i32; 2], norm: FftNorm) -> Result<Array> {
            several(a, n.as_ref().map(|n| &n[..]), &axes, stringify!($two))?;
            Ok(match n {
                Some(n) => raw::$two_n(&a.0, &n, &axes, norm)?,
                None => raw::$two(&a.0, &axes, norm)?,
            }
            .into())
        }

        #[doc = concat!("[`", stringify!($one), "`] over several axes, all of them when `axes` is `None`.")]
        ///
        /// ```
        /// use oxmlx::{Array, fft};
        /// let a = Array::ones::<f32>((2, 4))?;
        #[doc = concat!("assert_eq!(fft::", stringify!($many), "(&a, None, None, fft::FftNorm::Backward)?.dim(-1), Some(", $check, "));")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice; [`ErrorKind::Shape`] for a length under 1 or another
        /// number of lengths than axes.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::fft::", stringify!($many), "` (`mlx/fft.h`).")]
        pub fn $many(a: &Array, n: Option<&[i32]>, axes: Option<&[i32]>, norm: FftNorm) -> Result<Array> {
            let all: Vec<i32>;
            let (axes, given) = match (axes, n) {
                (Some(axes), _) => (axes, true),
                // Lengths without axes are those of the last ones.
                (None, Some(n)) => {
                    all = (0..n.len() as i32).map(|i| i - n.len() as i32).collect();
                    (&all[..], true)
                }
                (None, None) => {
                    all = (0..a.ndim() as i32).collect();
                    (&all[..], false)
                }
            };
            several(a, n, axes, stringify!($many))?;
            Ok(match n {
                Some(n) => raw::$many_n(&a.0, n, axes, norm)?,
                None if given => raw::$many_axes(&a.0, axes, norm)?,
                None => raw::$many(&a.0, norm)?,
            }
            .into())
        }
    )+};
}

transforms! {
    /// The discrete Fourier transform.
    fft = fft_n, fft2 = fft2_n, fftn = fftn_axes, fftn_n_axes, "4";
    /// The inverse of the discrete Fourier transform.
    ifft = ifft_n, ifft2 = ifft2_n, ifftn = ifftn_axes, ifftn_n_axes, "4";
    /// The Fourier transform of a real signal: the half that the other half mirrors, `n / 2 + 1` values.
    rfft = rfft_n, rfft2 = rfft2_n, rfftn = rfftn_axes, rfftn_n_axes, "3";
    /// The real signal whose half Fourier transform is given: `2 (m - 1)` values when `n` is not given.
    irfft = irfft_n, irfft2 = irfft2_n, irfftn = irfftn_axes, irfftn_n_axes, "6";
}

/// The frequencies of an [`fft()`] of length `n` with samples `d` apart. Lazy.
///
/// ```
/// use oxmlx::fft;
/// assert_eq!(fft::fftfreq(4, 1.0)?.to_vec::<f32>()?, [0.0, 0.25, -0.5, -0.25]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a length under 1.
///
/// # Source
/// C++ `mlx::core::fft::fftfreq` (`mlx/fft.h`).
pub fn fftfreq(n: i32, d: f64) -> Result<Array> {
    length(n, "fftfreq")?;
    Ok(raw::fftfreq(n, d)?.into())
}

/// The frequencies of an [`rfft`] of length `n` with samples `d` apart. Lazy.
///
/// ```
/// use oxmlx::fft;
/// assert_eq!(fft::rfftfreq(4, 1.0)?.to_vec::<f32>()?, [0.0, 0.25, 0.5]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for a length under 1.
///
/// # Source
/// C++ `mlx::core::fft::rfftfreq` (`mlx/fft.h`).
pub fn rfftfreq(n: i32, d: f64) -> Result<Array> {
    length(n, "rfftfreq")?;
    Ok(raw::rfftfreq(n, d)?.into())
}

/// Declares the two shifts.
macro_rules! shifts {
    ($($(#[$doc:meta])* $name:ident = $all:ident, $axes:ident => $output:literal);+ $(;)?) => {$(
        $(#[$doc])*
        ///
        /// Along `axes`, all of them when `None`. Lazy.
        ///
        /// ```
        /// use oxmlx::{Array, fft};
        /// let a = Array::vector(&[0i32, 1, 2])?;
        #[doc = concat!("assert_eq!(fft::", stringify!($name), "(&a, None)?.to_vec::<i32>()?, ", $output, ");")]
        /// # Ok::<(), oxmlx::Error>(())
        /// ```
        ///
        /// # Errors
        /// [`ErrorKind::Axis`] for an axis outside the dimensions or named twice.
        ///
        /// # Source
        #[doc = concat!("C++ `mlx::core::fft::", stringify!($name), "` (`mlx/fft.h`).")]
        pub fn $name(a: &Array, axes: Option<&[i32]>) -> Result<Array> {
            Ok(match axes {
                Some(axes) => {
                    check::axes(a, axes, stringify!($name))?;
                    raw::$axes(&a.0, axes)?
                }
                None => raw::$all(&a.0)?,
            }
            .into())
        }
    )+};
}

shifts! {
    /// The zero frequency moved to the middle.
    fftshift = fftshift_all, fftshift_axes => "[2, 0, 1]";
    /// The zero frequency moved back to the front.
    ifftshift = ifftshift_all, ifftshift_axes => "[1, 2, 0]";
}

/// How a short-time Fourier transform is taken.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Stft<'a> {
    n_fft: i32,
    hop: Option<i32>,
    window_length: Option<i32>,
    window: Option<&'a Array>,
    center: bool,
    pad_mode: PadMode,
    norm: FftNorm,
    onesided: Option<bool>,
}

impl<'a> Stft<'a> {
    /// Transforms of length `n_fft`, a quarter of it apart, over the whole signal with its ends mirrored.
    pub fn new(n_fft: i32) -> Self {
        Self {
            n_fft,
            hop: None,
            window_length: None,
            window: None,
            center: true,
            pad_mode: PadMode::Reflect,
            norm: FftNorm::Backward,
            onesided: None,
        }
    }

    /// The distance of neighbouring transforms.
    pub fn hop(mut self, hop: i32) -> Self {
        self.hop = Some(hop);
        self
    }

    /// The length of the window, at most `n_fft`.
    pub fn window_length(mut self, length: i32) -> Self {
        self.window_length = Some(length);
        self
    }

    /// The window that every piece is multiplied with; MLX takes a Hann window when there is none.
    pub fn window(mut self, window: &'a Array) -> Self {
        self.window = Some(window);
        self
    }

    /// Whether the signal is padded so that the pieces are centred.
    pub fn center(mut self, center: bool) -> Self {
        self.center = center;
        self
    }

    /// How it is padded: constant, edge or reflect.
    pub fn pad_mode(mut self, pad_mode: PadMode) -> Self {
        self.pad_mode = pad_mode;
        self
    }

    /// Which direction is scaled.
    pub fn norm(mut self, norm: FftNorm) -> Self {
        self.norm = norm;
        self
    }

    /// Whether only half of the frequencies is kept, as for real signals by default.
    pub fn onesided(mut self, onesided: bool) -> Self {
        self.onesided = Some(onesided);
        self
    }

    fn check(&self, op: &'static str) -> Result<()> {
        for (what, n) in [("n_fft", Some(self.n_fft)), ("hop", self.hop), ("window length", self.window_length)] {
            if n.is_some_and(|n| n < 1) {
                let text = format!("{what} {} must be at least 1", n.unwrap_or(0));
                return Err(Error::new(ErrorKind::Shape, op, text));
            }
        }
        if self.n_fft > MAX_WINDOW {
            let text = format!("n_fft {} is over {MAX_WINDOW}", self.n_fft);
            return Err(Error::new(ErrorKind::Shape, op, text));
        }
        if self.window_length.is_some_and(|n| n > self.n_fft) {
            let text = format!("the window is longer than n_fft {}", self.n_fft);
            return Err(Error::new(ErrorKind::Shape, op, text));
        }
        Ok(())
    }
}

/// The most samples a window may have. MLX makes the window and pads to it however short the signal is.
const MAX_WINDOW: i32 = 1 << 26;

/// The short-time Fourier transform of signals along the last axis. Lazy.
///
/// ```
/// use oxmlx::{Array, fft};
/// let s = fft::stft(&Array::ones::<f32>(64)?, &fft::Stft::new(16))?;
/// assert_eq!(s.shape(), [9, 17]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Shape`] for lengths under 1, an `n_fft` over 2^26 or a window over `n_fft`; [`ErrorKind::InvalidArgument`] for a signal too short.
///
/// # Source
/// C++ `mlx::core::fft::stft` (`mlx/fft.h`).
pub fn stft(x: &Array, stft: &Stft<'_>) -> Result<Array> {
    stft.check("stft")?;
    if x.dim(-1).unwrap_or(0) < 1 {
        return Err(Error::new(ErrorKind::Shape, "stft", "the signal has no samples").with_shape(x.shape()));
    }
    let made = raw::stft(
        &x.0,
        stft.n_fft,
        stft.hop,
        stft.window_length,
        stft.window.map(|w| &w.0),
        stft.center,
        stft.pad_mode,
        stft.norm,
        stft.onesided,
    )?;
    Ok(made.into())
}

/// The signals whose short-time Fourier transform is given, cut to `length` when that is. Lazy.
///
/// ```
/// use oxmlx::{Array, fft};
/// let (x, settings) = (Array::ones::<f32>(64)?, fft::Stft::new(16));
/// let back = fft::istft(&fft::stft(&x, &settings)?, &settings, Some(64))?;
/// assert!((back.to_vec::<f32>()?[32] - 1.0).abs() < 1e-5);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`stft()`].
///
/// # Source
/// C++ `mlx::core::fft::istft` (`mlx/fft.h`).
pub fn istft(matrix: &Array, stft: &Stft<'_>, length: Option<i32>) -> Result<Array> {
    stft.check("istft")?;
    if matrix.ndim() < 2 || matrix.size() == 0 {
        let text = format!("shape {:?} is no transform: it takes frequencies and frames", matrix.shape());
        return Err(Error::new(ErrorKind::Shape, "istft", text).with_shape(matrix.shape()));
    }
    // MLX counts one by one over what these ask for.
    let bins = matrix.dim(-2).unwrap_or(0);
    if i64::from(stft.n_fft) > 2 * i64::from(bins) {
        let text = format!("{bins} frequencies are too few for windows of {}", stft.n_fft);
        return Err(Error::new(ErrorKind::Shape, "istft", text).with_shape(matrix.shape()));
    }
    if stft.hop.is_some_and(|hop| hop > stft.n_fft) {
        return Err(Error::new(ErrorKind::InvalidArgument, "istft", "the hop leaves gaps between the windows"));
    }
    let made = raw::istft(
        &matrix.0,
        Some(stft.n_fft),
        stft.hop,
        stft.window_length,
        stft.window.map(|w| &w.0),
        stft.center,
        stft.norm,
        stft.onesided,
        length,
    )?;
    Ok(made.into())
}
