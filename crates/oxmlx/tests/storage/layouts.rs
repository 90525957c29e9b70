//! What a view says of each layout, with both settings, and that the consumer sees the array's values.

use oxmlx::storage::{StorageBuffer, StorageExportError, StorageExportOptions};
use oxmlx::{Array, Dtype, Element, bf16, f16, ops};

use crate::device::on_device;
use crate::{any_layout, counted, on_host, seen};

/// What a view should say, worked out by hand.
struct Expected {
    strides: &'static [i64],
    /// In elements, from the start of the base array.
    offset: usize,
    span: usize,
    row_contiguous: bool,
}

fn check(base: &Array, a: &Array, expected: &Expected) {
    a.eval().unwrap();
    let base = base.storage_view(&StorageExportOptions::default()).unwrap();
    let strict = a.storage_view(&StorageExportOptions::default());
    if expected.row_contiguous {
        assert!(strict.is_ok());
    } else {
        assert!(matches!(strict, Err(StorageExportError::UnsupportedLayout { .. })));
    }
    let view = a.storage_view(&any_layout()).unwrap();
    assert_eq!(view.storage_id(), base.storage_id());
    assert_eq!(view.buffer(), base.buffer());
    assert_eq!(view.device(), base.device());
    assert_eq!(view.shape(), a.shape());
    assert_eq!(view.strides(), expected.strides);
    assert_eq!(view.byte_offset(), base.byte_offset() + 4 * expected.offset);
    assert_eq!(view.storage_span_nbytes(), 4 * expected.span);
    assert_eq!(view.logical_nbytes(), a.nbytes());
    assert_eq!(view.row_contiguous(), expected.row_contiguous);
    assert_eq!(seen::<f32>(&view), a.to_vec::<f32>().unwrap());
    match view.as_bytes() {
        Some(bytes) => assert_eq!(bytes.len(), 4 * expected.span),
        None => assert!(!on_host()),
    }
}

#[test]
fn a_slice_is_an_offset_into_the_same_storage() {
    on_device(|| {
        let a = counted(&[6, 4]);
        let rows = ops::slice(&a, &[2, 0], &[5, 4], &[1, 1]).unwrap();
        check(&a, &rows, &Expected { strides: &[4, 1], offset: 8, span: 12, row_contiguous: true });
        let block = ops::slice(&a, &[1, 1], &[5, 3], &[2, 1]).unwrap();
        check(&a, &block, &Expected { strides: &[8, 1], offset: 5, span: 10, row_contiguous: false });
    });
}

#[test]
fn a_transpose_has_its_strides_and_all_of_the_bytes() {
    on_device(|| {
        let a = counted(&[2, 3]);
        let t = a.transpose().unwrap();
        check(&a, &t, &Expected { strides: &[1, 3], offset: 0, span: 6, row_contiguous: false });
        let view = t.storage_view(&any_layout()).unwrap();
        assert!(view.contiguous() && view.col_contiguous());
    });
}

#[test]
fn a_broadcast_spans_less_than_its_elements_take() {
    on_device(|| {
        let a = counted(&[3]);
        let b = a.broadcast_to((4, 3)).unwrap();
        check(&a, &b, &Expected { strides: &[0, 1], offset: 0, span: 3, row_contiguous: false });
        let view = b.storage_view(&any_layout()).unwrap();
        assert!(view.storage_span_nbytes() < view.logical_nbytes());
    });
}

#[test]
fn a_scalar_has_no_dimensions_and_one_element() {
    on_device(|| {
        let a = (Array::scalar(2.0f32).unwrap() + Array::scalar(1.0f32).unwrap()).unwrap();
        a.eval().unwrap();
        let view = a.storage_view(&StorageExportOptions::default()).unwrap();
        assert_eq!((view.shape(), view.strides()), (&[][..], &[][..]));
        assert_eq!((view.logical_nbytes(), view.storage_span_nbytes()), (4, 4));
        assert!(view.contiguous() && view.row_contiguous() && view.col_contiguous());
        assert_eq!(seen::<f32>(&view), [3.0]);
    });
}

#[test]
fn an_empty_array_spans_nothing_whether_it_has_memory_or_not() {
    on_device(|| {
        let computed = ops::zeros((0, 3), Dtype::Int16).unwrap();
        computed.eval().unwrap();
        let bare = Array::from(oxmlx_sys::storage::without_storage_for_test(&computed.clone().into()).unwrap());
        for a in [computed, Array::from_slice::<i16>(&[], (0, 3)).unwrap(), bare] {
            for options in [StorageExportOptions::default(), any_layout()] {
                let view = a.storage_view(&options).unwrap();
                assert_eq!((view.shape(), view.logical_nbytes(), view.storage_span_nbytes()), (&[0, 3][..], 0, 0));
                assert!(view.row_contiguous());
                assert_eq!(view.as_bytes(), Some(&[][..]));
                assert!(view.as_slice::<i16>().unwrap().is_empty());
                assert!(seen::<i16>(&view).is_empty());
            }
        }
    });
}

#[test]
fn a_view_points_at_the_arrays_own_memory() {
    on_device(|| {
        let a = counted(&[5]);
        let view = a.storage_view(&StorageExportOptions::default()).unwrap();
        match view.buffer() {
            StorageBuffer::Host(pointer) => {
                assert_eq!(pointer, a.try_as_slice::<f32>().unwrap().as_ptr().cast());
                assert_eq!(view.as_slice::<f32>().unwrap().as_ptr().cast(), pointer);
            }
            StorageBuffer::Cuda { pointer, .. } | StorageBuffer::Metal(pointer) => assert!(!pointer.is_null()),
            other => panic!("{other:?}"),
        }
        let again = a.storage_view(&StorageExportOptions::default()).unwrap();
        assert_eq!((again.storage_id(), again.data()), (view.storage_id(), view.data()));
    });
}

fn typed<T: Element + PartialEq + std::fmt::Debug>(values: &[T]) {
    let a = Array::vector(values).unwrap();
    let view = a.storage_view(&StorageExportOptions::default()).unwrap();
    assert_eq!(view.dtype(), T::DTYPE);
    assert_eq!(view.as_slice::<T>().unwrap(), values);
    assert_eq!(seen::<T>(&view), values);
}

#[test]
fn every_dtype_is_read_back() {
    on_device(|| {
        typed(&[true, false, true]);
        typed(&[1u8, 255]);
        typed(&[1u16, u16::MAX]);
        typed(&[1u32, u32::MAX]);
        typed(&[1u64, u64::MAX]);
        typed(&[-1i8, 127]);
        typed(&[i16::MIN, 1]);
        typed(&[i32::MIN, 1]);
        typed(&[i64::MIN, 1]);
        typed(&[f16::from_f32(1.5), f16::MAX]);
        typed(&[bf16::from_f32(1.5), bf16::MAX]);
        typed(&[1.5f32, f32::MIN]);
        // MLX has no double precision on a GPU, and a consumer's copy is made there.
        if on_host() {
            typed(&[1.5f64, f64::MIN]);
        }
        typed(&[oxmlx::Complex32::new(1.0, -2.0)]);
    });
}

#[test]
fn another_type_or_layout_than_the_slice_asked_for_is_an_error() {
    on_device(|| {
        let view = Array::vector(&[1.0f32]).unwrap().storage_view(&any_layout()).unwrap();
        assert_eq!(view.as_slice::<i32>().unwrap_err().kind(), oxmlx::ErrorKind::Dtype);
        let t = counted(&[2, 2]).transpose().unwrap();
        t.eval().unwrap();
        let view = t.storage_view(&any_layout()).unwrap();
        assert_eq!(view.as_slice::<f32>().unwrap_err().kind(), oxmlx::ErrorKind::Shape);
    });
}

#[cfg(feature = "ndarray")]
#[test]
fn ndarray_sees_slices_transposes_and_broadcasts() {
    let a = Array::from_slice(&(0..24).collect::<Vec<i32>>(), (2, 3, 4)).unwrap();
    let reference = ndarray::Array3::from_shape_vec((2, 3, 4), (0..24).collect()).unwrap();
    let cases = [
        (
            ops::slice(&a, &[0, 1, 0], &[2, 3, 4], &[1, 1, 2]).unwrap(),
            reference.slice(ndarray::s![.., 1..3, ..;2]).into_dyn(),
        ),
        (a.transpose().unwrap(), reference.t().into_dyn()),
        (a.broadcast_to((5, 2, 3, 4)).unwrap(), reference.broadcast((5, 2, 3, 4)).unwrap().into_dyn()),
    ];
    for (a, expected) in cases {
        a.eval().unwrap();
        let view = a.storage_view(&any_layout()).unwrap();
        assert_eq!(view.as_ndarray::<i32>().unwrap(), expected);
    }
}
