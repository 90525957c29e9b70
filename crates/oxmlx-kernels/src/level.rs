//! Which instructions a kernel may use. A [`Level`] can only be had where the processor has the instructions, so passing
//! one to a kernel is safe.

use std::fmt;
use std::sync::OnceLock;

#[cfg(target_arch = "aarch64")]
use crate::simd::Neon;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};
use crate::simd::{Scalar, Simd};

/// A set of instructions that this machine has. Every kernel takes one; [`Level::best`] is the usual choice.
///
/// ```
/// use oxmlx_kernels::Level;
/// assert!(Level::available().contains(&Level::best()));
/// assert!(Level::available().contains(&Level::scalar()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Level(Kind);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar(Scalar),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Level {
    /// The fastest level of this machine, found once.
    pub fn best() -> Self {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().last().copied().unwrap_or(Self::scalar()))
    }

    /// No vector instructions.
    pub fn scalar() -> Self {
        Self(Kind::Scalar(Scalar))
    }

    /// Every level of this machine, slowest first.
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::scalar()];
        #[cfg(target_arch = "aarch64")]
        all.extend(Neon::detect().map(|s| Self(Kind::Neon(s))));
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(Avx2::detect().map(|s| Self(Kind::Avx2(s))));
            all.extend(Avx512::detect().map(|s| Self(Kind::Avx512(s))));
        }
        all
    }

    /// A name for reports: `scalar`, `neon`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Scalar(_) => "scalar",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon(_) => "neon",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(_) => "avx512",
        }
    }

    /// Compiles `work` for this level's instructions and runs it.
    #[inline]
    pub(crate) fn run<W: Work>(self, work: W) -> W::Out {
        match self.0 {
            Kind::Scalar(s) => s.enter(work),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon(s) => s.enter(work),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(s) => s.enter(work),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(s) => s.enter(work),
        }
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A piece of work written once for all levels. `run` must be `#[inline(always)]`, as must all that it calls with vectors; a
/// closure that is called in two places is not inlined, and then lacks the level's instructions.
pub(crate) trait Work {
    type Out;
    fn run<S: Simd>(self, s: S) -> Self::Out;
}

/// Bytes of weights that are asked for ahead of a stage.
pub(crate) const ASKED: usize = 4096;

/// Asks for bytes ahead of their use.
pub(crate) struct Ask<'a, T> {
    pub(crate) from: &'a [T],
    pub(crate) bytes: usize,
}

impl<T> Work for Ask<'_, T> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let end = self.bytes.min(size_of_val(self.from));
        for at in (0..end).step_by(64) {
            s.prefetch(self.from, at);
        }
    }
}
