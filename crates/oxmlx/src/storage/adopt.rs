//! Arrays over memory that others own.
//!
//! MLX reads such memory where it lies and never writes to it: a buffer that is not its own is never reused for a result. The owner
//! lives until the last array over the memory, and the last view of one of them, is gone; then it is dropped once, on whichever thread
//! let go. Where MLX can't use the memory as it is, it is copied, and the answer says so.
#![allow(unsafe_code)] // memory of others: each constructor says what its caller promises, or why nothing has to be promised

use std::any::Any;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use memmap2::Mmap;
use oxmlx_sys::layout::{offsets, row_major};
use oxmlx_sys::storage::{Memory, Owner};

use crate::shape::{IntoShape, element_count};
use crate::{Array, Dtype, Element, Error, ErrorKind, Result};

/// Whether an array lies over the memory that was given, or holds a copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adoption {
    /// Over the memory itself: nothing was copied, and the owner lives as long as the array.
    Adopted,
    /// A copy: the owner was dropped already, unless other arrays lie over its memory.
    Copied(CopyReason),
}

/// Why memory was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyReason {
    /// The first element does not lie at a multiple of its alignment.
    Unaligned,
    /// The device computes on memory of its own: CUDA always, Metal where the memory is not made of whole pages.
    Device,
    /// A stride is negative.
    Layout,
    /// There are no elements, and so nothing to lie over.
    Empty,
}

/// The alignment that elements must have.
fn alignment(dtype: Dtype) -> usize {
    // A complex number is two floats.
    if dtype == Dtype::Complex64 { 4 } else { dtype.size() }
}

/// Host memory of an owner, from which arrays are made.
pub(crate) struct HostMemory {
    data: *const u8,
    nbytes: usize,
    /// Held until every array is made: those that were copied do not hold it.
    _owner: Owner,
    memory: Option<Memory>,
}

/// Dimensions, and strides in elements, of elements in memory.
pub(crate) struct Layout<'a> {
    pub(crate) shape: &'a [i32],
    pub(crate) strides: &'a [i64],
    pub(crate) dtype: Dtype,
}

impl Layout<'_> {
    /// The bytes that the elements reach below and above the first one; `None` where that overflows or there are none.
    pub(crate) fn reach(&self) -> Option<(usize, usize)> {
        let size = i64::try_from(self.dtype.size()).ok()?;
        let (mut below, mut above) = (0i64, 0i64);
        for (&n, &stride) in self.shape.iter().zip(self.strides) {
            let far = i64::from(n.checked_sub(1).filter(|&n| n >= 0)?).checked_mul(stride)?;
            if far < 0 {
                below = below.checked_add(far)?;
            } else {
                above = above.checked_add(far)?;
            }
        }
        let above = above.checked_add(1)?.checked_mul(size)?;
        Some((usize::try_from(below.checked_neg()?.checked_mul(size)?).ok()?, usize::try_from(above).ok()?))
    }
}

impl HostMemory {
    /// # Safety
    /// The memory must be readable, and unchanged by anybody, until `owner` is dropped; with `whole_pages`, the rest of its first and
    /// last page too.
    pub(crate) unsafe fn new(data: *const u8, nbytes: usize, whole_pages: bool, owner: Owner) -> Result<Self> {
        let memory = match nbytes {
            0 => None,
            // SAFETY: the caller promises what `Memory::host` asks for, in the same words.
            _ => unsafe { Memory::host(data, nbytes, whole_pages, &owner) }?,
        };
        Ok(Self { data, nbytes, _owner: owner, memory })
    }

    /// The array whose first element lies `offset` bytes into the memory.
    pub(crate) fn array(&self, offset: usize, layout: &Layout<'_>, op: &'static str) -> Result<(Array, Adoption)> {
        let dtype = layout.dtype;
        if layout.shape.contains(&0) {
            return Ok((Array::from_bytes(&[], layout.shape, dtype)?, Adoption::Copied(CopyReason::Empty)));
        }
        let inside = layout.reach().filter(|&(below, above)| {
            below <= offset && offset.checked_add(above).is_some_and(|end| end <= self.nbytes)
        });
        let Some((below, above)) = inside else {
            let text = format!(
                "shape {:?} of {dtype} with strides {:?} from byte {offset} does not lie within {} bytes",
                layout.shape, layout.strides, self.nbytes
            );
            return Err(Error::new(ErrorKind::Shape, op, text).with_shape(layout.shape).with_dtype(dtype));
        };
        // SAFETY: `below` and `above` lie within the memory (checked above), which is readable and unchanged while `_owner` lives.
        let span = unsafe { std::slice::from_raw_parts(self.data.wrapping_add(offset - below), below + above) };
        if dtype == Dtype::Bool && span.iter().any(|&b| b > 1) {
            return Err(Error::new(ErrorKind::Format, op, "a byte of a bool array is neither 0 nor 1"));
        }
        let reason = match &self.memory {
            _ if !(self.data as usize).wrapping_add(offset).is_multiple_of(alignment(dtype)) => CopyReason::Unaligned,
            _ if below > 0 => CopyReason::Layout,
            None => CopyReason::Device,
            Some(memory) => {
                // SAFETY: the elements lie within the memory and are aligned (checked above), no stride that counts is negative,
                // and there are elements.
                let made = unsafe { memory.array(offset, layout.shape, layout.strides, dtype.code()) }?;
                return Ok((Array(made), Adoption::Adopted));
            }
        };
        let packed = pack(span, below, layout);
        Ok((Array::from_bytes(&packed, layout.shape, dtype)?, Adoption::Copied(reason)))
    }
}

/// The elements in row-major order; the first one lies `first` bytes into the span.
fn pack(span: &[u8], first: usize, layout: &Layout<'_>) -> Vec<u8> {
    let size = layout.dtype.size();
    let count: usize = layout.shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).product();
    if count * size == span.len() && layout.strides == row_major(layout.shape) {
        return span.to_vec();
    }
    let mut packed = Vec::with_capacity(count * size);
    for at in offsets(layout.shape, layout.strides) {
        let at = first.wrapping_add_signed(at as isize * size as isize);
        packed.extend_from_slice(&span[at..at + size]);
    }
    packed
}

/// Checks that a packed shape takes exactly the bytes that are there.
fn fits(shape: &[i32], dtype: Dtype, nbytes: usize, op: &'static str) -> Result<()> {
    let needed = element_count(shape).and_then(|n| n.checked_mul(dtype.size()));
    if needed == Some(nbytes) {
        return Ok(());
    }
    let takes = needed.map_or_else(|| "is no shape of an array".to_owned(), |n| format!("takes {n}"));
    let text = format!("{nbytes} bytes given, shape {shape:?} of {dtype} {takes}");
    Err(Error::new(ErrorKind::Shape, op, text).with_shape(shape).with_dtype(dtype))
}

impl Array {
    /// An array of `shape` and `dtype` over a range of an owner's bytes (row-major, native byte order), without a copy where the device
    /// can use them as they are. The owner is dropped when the last array over its bytes is.
    ///
    /// ```
    /// use oxmlx::{Array, Dtype, storage::Adoption};
    /// let file: std::sync::Arc<[u8]> = [vec![0; 7], 1.5f32.to_ne_bytes().to_vec(), vec![0; 5]].concat().into();
    /// let start = file[7..].as_ptr().align_offset(4);
    /// let (a, adoption) = Array::from_owner(file.clone(), 7..11, 1, Dtype::Float32)?;
    /// assert_eq!(a.item::<f32>()?, 1.5);
    /// // Whether it was copied depends on where the bytes happen to lie.
    /// if oxmlx::Device::Gpu.count()? == 0 {
    ///     assert_eq!(adoption == Adoption::Adopted, start == 0);
    /// }
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a range outside the bytes, or a shape that takes another number of bytes; [`ErrorKind::Format`] when the
    /// dtype is `bool` and a byte is neither 0 nor 1.
    pub fn from_owner<'s>(
        owner: impl AsRef<[u8]> + Send + Sync + 'static,
        range: impl RangeBounds<usize>,
        shape: impl IntoShape<'s>,
        dtype: Dtype,
    ) -> Result<(Self, Adoption)> {
        // In an `Arc`, so that moving it does not move what the bytes may be a part of.
        let owner = Arc::new(owner);
        let bytes = (*owner).as_ref();
        let all = bytes.len();
        let start = match range.start_bound() {
            Bound::Included(&at) => Some(at),
            Bound::Excluded(&at) => at.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&at) => at.checked_add(1),
            Bound::Excluded(&at) => Some(at),
            Bound::Unbounded => Some(all),
        };
        let part = start.zip(end).and_then(|(start, end)| bytes.get(start..end));
        let Some(part) = part else {
            return Err(Error::new(ErrorKind::Shape, FROM_OWNER, format!("the range lies outside the {all} bytes")));
        };
        let shape = shape.into_shape();
        fits(&shape, dtype, part.len(), FROM_OWNER)?;
        let (data, nbytes) = (part.as_ptr(), part.len());
        // SAFETY: the bytes are borrowed from the owner, which nobody but its drop can reach any more, so that they are readable and
        // unchanged until then: what else could change them would have to be unsound against that same borrow.
        let memory = unsafe { HostMemory::new(data, nbytes, false, Owner::new(owner)) }?;
        memory.array(0, &Layout { shape: &shape, strides: &row_major(&shape), dtype }, FROM_OWNER)
    }

    /// An array of `shape` over the values of a vector (row-major), without a copy where the device can use them as they are.
    ///
    /// ```
    /// let (a, _) = oxmlx::Array::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], (2, 2))?;
    /// assert_eq!(a.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok::<(), oxmlx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] when the shape has another number of elements.
    pub fn from_vec<'s, T: Element>(values: Vec<T>, shape: impl IntoShape<'s>) -> Result<(Self, Adoption)> {
        struct Values<T>(Vec<T>);
        impl<T: Element> AsRef<[u8]> for Values<T> {
            fn as_ref(&self) -> &[u8] {
                bytemuck::cast_slice(&self.0)
            }
        }
        Self::from_owner(Values(values), .., shape, T::DTYPE)
    }

    /// An array of `shape` and `dtype` over the memory at `data` (row-major, native byte order), without a copy where the device can use it
    /// as it is. `owner` is anything whose drop gives the memory back.
    ///
    /// # Safety
    /// As many bytes as shape and dtype take must be readable from `data` on, and unchanged by anybody, until `owner` is dropped.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a shape that no array has; [`ErrorKind::Format`] when the dtype is `bool` and a byte is neither 0 nor 1.
    pub unsafe fn from_raw_owner<'s>(
        data: *const u8,
        owner: impl Any + Send,
        shape: impl IntoShape<'s>,
        dtype: Dtype,
    ) -> Result<(Self, Adoption)> {
        let shape = shape.into_shape();
        let Some(nbytes) = element_count(&shape).and_then(|n| n.checked_mul(dtype.size())) else {
            let text = format!("no array has the shape {shape:?}");
            return Err(Error::new(ErrorKind::Shape, FROM_OWNER, text).with_shape(&shape));
        };
        // SAFETY: the caller promises the memory for as long as the owner lives.
        let memory = unsafe { HostMemory::new(data, nbytes, false, Owner::new(owner)) }?;
        memory.array(0, &Layout { shape: &shape, strides: &row_major(&shape), dtype }, FROM_OWNER)
    }

    /// An array of `shape` and `dtype` over a mapped file, from byte `offset` on (row-major, native byte order). Pages are read when they are
    /// first used. Many arrays may share one map: pass clones of an `Arc`.
    ///
    /// ```
    /// use oxmlx::{Array, Dtype};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("numbers");
    /// std::fs::write(&path, [1u8, 0, 2, 0, 3, 0])?;
    /// // SAFETY: nobody changes the file while it is mapped.
    /// let map = unsafe { memmap2::Mmap::map(&std::fs::File::open(&path)?) }?;
    /// let (a, _) = Array::from_mmap(map, 2, 2, Dtype::Uint16)?;
    /// assert_eq!(a.to_vec::<u16>()?, [2, 3]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] when the elements do not lie within the map; [`ErrorKind::Format`] when the dtype is `bool` and a byte is
    /// neither 0 nor 1.
    pub fn from_mmap<'s>(
        map: impl Into<Arc<Mmap>>,
        offset: usize,
        shape: impl IntoShape<'s>,
        dtype: Dtype,
    ) -> Result<(Self, Adoption)> {
        let shape = shape.into_shape();
        if element_count(&shape).is_none() {
            let text = format!("no array has the shape {shape:?}");
            return Err(Error::new(ErrorKind::Shape, "from_mmap", text).with_shape(&shape));
        }
        let strides = row_major(&shape);
        mapped(map.into())?.array(offset, &Layout { shape: &shape, strides: &strides, dtype }, "from_mmap")
    }
}

const FROM_OWNER: &str = "from_owner";

/// The memory of a map, whose pages are whole.
pub(crate) fn mapped(map: Arc<Mmap>) -> Result<HostMemory> {
    let (data, nbytes) = (map.as_ptr(), map.len());
    // SAFETY: the map lies where it is until its last owner drops it, and it covers whole pages; that nobody changes the file was
    // promised to the map's own constructor.
    unsafe { HostMemory::new(data, nbytes, true, Owner::new(map)) }
}

/// Memory of a GPU, for `dlpack`.
///
/// # Safety
/// As for [`Memory::device`], and the elements must lie within the memory.
pub(super) unsafe fn over_device_memory(
    data: *const u8,
    offset: usize,
    ordinal: i32,
    host_visible: bool,
    owner: &Owner,
    layout: &Layout<'_>,
) -> Result<Array> {
    let nbytes = offset + layout.reach().map_or(0, |(_, above)| above);
    // SAFETY: the caller promises the memory, its device and its life.
    let memory = unsafe { Memory::device(data.cast(), nbytes, ordinal, host_visible, owner) }?;
    // SAFETY: the caller promises that the elements lie within the memory, with no stride negative.
    Ok(Array(unsafe { memory.array(offset, layout.shape, layout.strides, layout.dtype.code()) }?))
}
