//! Does a big binary file hold a certain text? Used to see whether `mlx.metallib` has the matrix kernels for the neural
//! accelerators of newer Apple GPUs: the wheel for macOS 26 has them, the ones for 14 and 15 have not.
//!
//! Self-contained: the build script stamps the answer, and `oxmlx-sys` repeats the question on the library it loaded.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The name that all neural-accelerator matrix kernels start with.
pub const NAX_KERNELS: &[u8] = b"steel_gemm_fused_nax";

/// How much is read at a time, in bytes.
const CHUNK: usize = 1 << 20;

/// Whether the kernels are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// They are.
    Present,
    /// They are not.
    Absent,
    /// The file could not be read.
    Unknown,
}

impl Probe {
    /// `present`, `absent` or `unknown`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::Unknown => "unknown",
        }
    }
}

/// Looks for the neural-accelerator kernels in a `mlx.metallib`.
pub fn nax_kernels(metallib: &Path) -> Probe {
    match File::open(metallib).and_then(|file| contains(file, NAX_KERNELS, CHUNK)) {
        Ok(true) => Probe::Present,
        Ok(false) => Probe::Absent,
        Err(_) => Probe::Unknown,
    }
}

/// Whether a file holds the needle.
///
/// # Errors
/// Those of opening and reading the file.
pub fn file_contains(path: &Path, needle: &[u8]) -> io::Result<bool> {
    contains(File::open(path)?, needle, CHUNK)
}

/// Whether what the reader gives holds the needle, reading `chunk` bytes at a time and in constant memory.
///
/// # Errors
/// Those of the reader.
pub fn contains(mut reader: impl Read, needle: &[u8], chunk: usize) -> io::Result<bool> {
    if needle.is_empty() {
        return Ok(true);
    }
    let skips = skip_table(needle);
    // The tail of one chunk, one byte short of a needle, is kept in front of the next.
    let mut window = vec![0; needle.len() - 1 + chunk.max(1)];
    let mut kept = 0;
    loop {
        let read = match reader.read(&mut window[kept..]) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let filled = kept + read;
        if holds(&window[..filled], needle, &skips) {
            return Ok(true);
        }
        let keep = (needle.len() - 1).min(filled);
        window.copy_within(filled - keep..filled, 0);
        kept = keep;
    }
}

/// Horspool's table: build scripts are not optimised, and this looks at a twentieth of the bytes.
fn skip_table(needle: &[u8]) -> [usize; 256] {
    let mut skips = [needle.len(); 256];
    for (index, &byte) in needle[..needle.len() - 1].iter().enumerate() {
        skips[usize::from(byte)] = needle.len() - 1 - index;
    }
    skips
}

fn holds(hay: &[u8], needle: &[u8], skips: &[usize; 256]) -> bool {
    let mut end = needle.len();
    while end <= hay.len() {
        if &hay[end - needle.len()..end] == needle {
            return true;
        }
        end += skips[usize::from(hay[end - 1])];
    }
    false
}
