//! What a body sees: typed memory with shapes and strides.

use std::borrow::Cow;

use oxmlx_sys::{kernel as sys, layout};

use super::BoxError;
use crate::{Complex32, Dtype, Element, Error, ErrorKind, bf16, f16};

/// An input of a running body.
#[derive(Clone, Copy)]
pub struct Input<'a>(sys::Input<'a>);

impl<'a> Input<'a> {
    pub(super) fn new(raw: sys::Input<'a>) -> Self {
        Self(raw)
    }

    /// The dimensions, outermost first.
    pub fn shape(self) -> &'a [i32] {
        self.0.shape()
    }

    /// The dtype.
    pub fn dtype(self) -> Dtype {
        dtype_of(self.0.dtype_code())
    }

    /// The distance between neighbours of each dimension, in elements. A dimension that is broadcast has stride 0.
    pub fn strides(self) -> &'a [i64] {
        self.0.strides()
    }

    /// Whether the elements lie in row-major order without gaps.
    pub fn row_contiguous(self) -> bool {
        self.0.row_contiguous()
    }

    /// The elements in row-major order: where they lie, or packed into a copy when they lie otherwise.
    ///
    /// # Errors
    /// [`ErrorKind::Dtype`] when `T` is not the input's dtype; [`ErrorKind::OutOfMemory`] when there is no room for the copy.
    pub fn as_slice<T: Element>(self) -> Result<Cow<'a, [T]>, BoxError> {
        let memory = self.as_strided::<T>()?;
        if self.row_contiguous() {
            Ok(Cow::Borrowed(memory))
        } else {
            Ok(Cow::Owned(pack(memory, self.shape(), self.strides())?))
        }
    }

    /// The memory from the first element to the last that the strides reach: element `[i, j]` lies at
    /// `i * strides[0] + j * strides[1]`. Empty when an output took the memory over.
    ///
    /// # Errors
    /// [`ErrorKind::Dtype`] when `T` is not the input's dtype.
    pub fn as_strided<T: Element>(self) -> Result<&'a [T], BoxError> {
        check::<T>(self.dtype())?;
        let bytes = self.0.bytes();
        // The empty slice that stands for no memory has no alignment.
        if bytes.is_empty() {
            return Ok(&[]);
        }
        T::cast(bytes).map_err(misfit::<T>)
    }

    /// The memory of [`as_strided`](Self::as_strided) as bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0.bytes()
    }
}

/// An output of a running body: memory to fill, row-major.
pub struct Output<'a>(&'a mut dyn OutputMemory);

/// Hides the second lifetime of the raw output.
trait OutputMemory {
    fn shape(&self) -> &[i32];
    fn dtype(&self) -> Dtype;
    fn holds_input(&self) -> bool;
    fn bytes_mut(&mut self) -> &mut [u8];
}

impl OutputMemory for sys::Output<'_> {
    fn shape(&self) -> &[i32] {
        self.shape()
    }

    fn dtype(&self) -> Dtype {
        dtype_of(self.dtype_code())
    }

    fn holds_input(&self) -> bool {
        self.holds_input()
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

impl<'a> Output<'a> {
    pub(super) fn new<'raw: 'a>(raw: &'a mut sys::Output<'raw>) -> Self {
        Self(raw)
    }

    /// The dimensions, outermost first.
    pub fn shape(&self) -> &[i32] {
        self.0.shape()
    }

    /// The dtype.
    pub fn dtype(&self) -> Dtype {
        self.0.dtype()
    }

    /// Whether the memory is that of the input whose place this output takes, with its values. When not, the input still shows
    /// them and the body copies what it keeps.
    pub fn holds_input(&self) -> bool {
        self.0.holds_input()
    }

    /// Sets every element, as a cast of `value` to the dtype.
    pub(super) fn fill(&mut self, value: f32) -> Result<(), BoxError> {
        match self.dtype() {
            Dtype::Bool => self.0.bytes_mut().fill((value != 0.0).into()),
            Dtype::Uint8 => self.as_mut_slice::<u8>()?.fill(value as u8),
            Dtype::Uint16 => self.as_mut_slice::<u16>()?.fill(value as u16),
            Dtype::Uint32 => self.as_mut_slice::<u32>()?.fill(value as u32),
            Dtype::Uint64 => self.as_mut_slice::<u64>()?.fill(value as u64),
            Dtype::Int8 => self.as_mut_slice::<i8>()?.fill(value as i8),
            Dtype::Int16 => self.as_mut_slice::<i16>()?.fill(value as i16),
            Dtype::Int32 => self.as_mut_slice::<i32>()?.fill(value as i32),
            Dtype::Int64 => self.as_mut_slice::<i64>()?.fill(value as i64),
            Dtype::Float16 => self.as_mut_slice::<f16>()?.fill(f16::from_f32(value)),
            Dtype::Bfloat16 => self.as_mut_slice::<bf16>()?.fill(bf16::from_f32(value)),
            Dtype::Float32 => self.as_mut_slice::<f32>()?.fill(value),
            Dtype::Float64 => self.as_mut_slice::<f64>()?.fill(value.into()),
            Dtype::Complex64 => self.as_mut_slice::<Complex32>()?.fill(value.into()),
        }
        Ok(())
    }

    /// The elements to fill, in row-major order.
    ///
    /// # Errors
    /// [`ErrorKind::Dtype`] when `T` is not the output's dtype.
    pub fn as_mut_slice<T: Element + bytemuck::AnyBitPattern>(&mut self) -> Result<&mut [T], BoxError> {
        check::<T>(self.dtype())?;
        let bytes = self.0.bytes_mut();
        if bytes.is_empty() {
            return Ok(&mut []);
        }
        bytemuck::try_cast_slice_mut(bytes).map_err(|e| misfit::<T>(e.into()))
    }

    /// The bytes to fill. For a `bool` output each must be 0 or 1.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

fn dtype_of(code: u8) -> Dtype {
    Dtype::try_from(code).unwrap_or(Dtype::Uint8)
}

fn check<T: Element>(dtype: Dtype) -> Result<(), BoxError> {
    if dtype == T::DTYPE {
        return Ok(());
    }
    let text = format!("the kernel asks for {}, the memory holds {dtype}", T::DTYPE);
    Err(Error::new(ErrorKind::Dtype, "kernel", text).with_dtype(dtype).into())
}

fn misfit<T: Element>(error: bytemuck::checked::CheckedCastError) -> BoxError {
    Error::new(ErrorKind::Format, "kernel", format!("the memory is no slice of {}: {error}", T::DTYPE)).into()
}

/// The elements of a strided layout in row-major order.
fn pack<T: Copy>(memory: &[T], shape: &[i32], strides: &[i64]) -> Result<Vec<T>, BoxError> {
    let count = shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).product();
    let mut packed = Vec::new();
    packed.try_reserve_exact(count).map_err(|e| {
        Error::new(ErrorKind::OutOfMemory, "kernel", format!("a copy of an input of shape {shape:?}: {e}"))
    })?;
    packed.extend(layout::offsets(shape, strides).map(|at| memory[usize::try_from(at).unwrap_or(0)]));
    Ok(packed)
}
