//! Many arrays side by side in a few large pieces of memory.
#![allow(unsafe_code)] // bytes are written behind those that arrays already lie over, which slices cannot express

use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions};
use oxmlx_sys::layout::row_major;
use oxmlx_sys::storage::Owner;

use super::adopt::{HostMemory, Layout};
use crate::shape::{IntoShape, element_count};
use crate::{Array, Device, Dtype, Error, ErrorKind, Result};

const OP: &str = "arena";
/// What is asked of the system at a time, and the pages that it is asked to use.
const CHUNK: usize = 64 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// A cache line: no array shares one with its neighbour.
const ALIGN: usize = 64;

/// Copies bytes into arrays that lie side by side in huge pages, where the system has them.
///
/// A model's weights are read from end to end for every token. In pages of 4 KiB a processor spends up to a tenth of that time on looking
/// addresses up. Each piece of memory is given back when the last array in it is gone. Where the device computes on memory of its own, the
/// arrays are ordinary ones.
///
/// ```
/// use oxmlx::{Dtype, storage::Arena};
/// let mut arena = Arena::new();
/// let a = arena.array(&[1, 0, 2, 0], 2, Dtype::Uint16)?;
/// let b = arena.array(&1.5f32.to_ne_bytes(), 1, Dtype::Float32)?;
/// drop(arena);
/// assert_eq!((a.to_vec::<u16>()?, b.item::<f32>()?), (vec![1, 2], 1.5));
/// # Ok::<(), oxmlx::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Arena {
    chunk: Option<Arc<Chunk>>,
    /// Bytes of the chunk that are written.
    used: usize,
}

#[derive(Debug)]
struct Chunk {
    data: *mut u8,
    map: MmapMut,
}

// SAFETY: the pointer is the map's own, which may be shared and sent. Only the one arena that made the chunk writes through it, behind
// the bytes that it has given to arrays.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn new(len: usize) -> Result<Self> {
        let refused = |e| Error::new(ErrorKind::Backend, OP, format!("the system gives no {len} bytes of memory: {e}"));
        let mut map = MmapOptions::new().len(len).map_anon().map_err(refused)?;
        #[cfg(target_os = "linux")]
        if let Err(unsupported) = map.advise(memmap2::Advice::HugePage) {
            // Ordinary pages hold the same bytes.
            let _ = unsupported;
        }
        Ok(Self { data: map.as_mut_ptr(), map })
    }
}

impl Arena {
    /// An arena that has asked for no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An array of `shape` and `dtype` over a copy of `bytes` (row-major, native byte order).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] when the shape takes another number of bytes; [`ErrorKind::Format`] when the dtype is `bool` and a byte is
    /// neither 0 nor 1; [`ErrorKind::Backend`] when the system has no memory.
    pub fn array<'s>(&mut self, bytes: &[u8], shape: impl IntoShape<'s>, dtype: Dtype) -> Result<Array> {
        let shape = shape.into_shape();
        let fits = element_count(&shape).and_then(|n| n.checked_mul(dtype.size())) == Some(bytes.len());
        // Where there is a GPU it may be asked to read the array, whatever device is current now.
        if !fits || bytes.is_empty() || Device::Gpu.count()? > 0 {
            return Array::from_bytes(bytes, &*shape, dtype);
        }
        let (chunk, start) = self.room(bytes.len())?;
        // SAFETY: `room` gives bytes of a living chunk that lie behind all that arrays lie over, and counts them as given.
        let data = unsafe { chunk.data.add(start) };
        // SAFETY: as many bytes are there, and nobody else knows of them yet; `bytes` can't overlap memory that nobody borrows.
        unsafe { data.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        // SAFETY: these bytes are not written again, and stay mapped while the chunk, their owner, lives.
        let memory = unsafe { HostMemory::new(data, bytes.len(), false, Owner::new(chunk)) }?;
        Ok(memory.array(0, &Layout { shape: &shape, strides: &row_major(&shape), dtype }, OP)?.0)
    }

    /// Bytes that are nobody's yet: their chunk and where they start.
    fn room(&mut self, len: usize) -> Result<(Arc<Chunk>, usize)> {
        let start = self.used.next_multiple_of(ALIGN);
        let fits = self.chunk.as_ref().is_some_and(|chunk| start + len <= chunk.map.len());
        // MLX keeps a word in front of its own buffers: the first array of a chunk has room for one too.
        let start = if fits { start } else { ALIGN };
        let chunk = match self.chunk.take() {
            Some(chunk) if fits => chunk,
            _ => Arc::new(Chunk::new((ALIGN + len).next_multiple_of(HUGE_PAGE).max(CHUNK))?),
        };
        self.used = start + len;
        self.chunk = Some(chunk.clone());
        Ok((chunk, start))
    }
}
