//! Reading values back: the logical elements, whatever lies in memory (rows A16 to A19).

use oxmlx::{Array, Complex32, Dtype, Element, ErrorKind, bf16, f16, ops};

fn iota(shape: &[i32]) -> Array {
    let n: i32 = shape.iter().product();
    Array::from_slice(&(0..n).collect::<Vec<_>>(), shape).unwrap()
}

/// Row A16.
#[test]
fn eleven_bytes_for_three_floats_is_an_error_that_names_both_sizes() {
    let error = Array::from_bytes(&[0; 11], 3, Dtype::Float32).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.to_string().contains("11") && error.to_string().contains("12"), "{error}");
}

/// Row A15.
#[test]
fn bytes_for_an_impossible_shape_are_an_error() {
    for shape in [vec![-1, 2], vec![i32::MAX; 4], vec![i32::MIN]] {
        let error = Array::from_bytes(&[0; 8], &shape, Dtype::Float32).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape, "{shape:?}");
    }
}

/// Row A17.
#[test]
fn a_slice_of_columns_reads_in_row_major_order() {
    let part = ops::slice(&iota(&[3, 3]), &[0, 0], &[3, 2], &[1, 1]).unwrap();
    assert_eq!(part.to_vec::<i32>().unwrap(), [0, 1, 3, 4, 6, 7]);
}

/// Row A17.
#[test]
fn a_transpose_reads_in_row_major_order() {
    assert_eq!(iota(&[2, 3]).transpose().unwrap().to_vec::<i32>().unwrap(), [0, 3, 1, 4, 2, 5]);
}

/// Row A17.
#[test]
fn a_permutation_of_four_axes_reads_in_row_major_order() {
    let a = iota(&[1, 3, 2, 2]).transpose_axes(&[0, 2, 1, 3]).unwrap();
    assert_eq!(a.shape(), [1, 2, 3, 2]);
    assert_eq!(a.to_vec::<i32>().unwrap(), [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11]);
}

/// Row A17.
#[test]
fn a_broadcast_reads_its_rows_twice() {
    let a = ops::broadcast_to(&iota(&[1, 3]), (2, 3)).unwrap();
    assert_eq!(a.to_vec::<i32>().unwrap(), [0, 1, 2, 0, 1, 2]);
}

/// Row A17.
#[test]
fn an_empty_array_reads_as_nothing() {
    let a = Array::from_slice::<f32>(&[], (0, 3)).unwrap();
    assert!(a.to_vec::<f32>().unwrap().is_empty());
    let b = (&a + &a).unwrap();
    assert!(b.to_vec::<f32>().unwrap().is_empty());
    assert!(b.try_as_slice::<f32>().unwrap().is_empty());
}

/// Row A18.
#[test]
fn a_borrow_of_a_transpose_is_refused_as_not_contiguous() {
    let a = iota(&[2, 3]).transpose().unwrap();
    a.eval().unwrap();
    let error = a.try_as_slice::<i32>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Shape);
    assert!(error.to_string().contains("not contiguous"), "{error}");
}

#[test]
fn a_borrow_of_a_lazy_array_is_refused() {
    let a = (iota(&[2]) + iota(&[2])).unwrap();
    assert_eq!(a.try_as_slice::<i32>().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

fn keeps_its_dtype<T: Element + PartialEq + std::fmt::Debug>(values: [T; 2], dtype: Dtype) {
    let a = Array::from_slice(&values, 2).unwrap();
    assert_eq!(a.dtype(), dtype);
    assert_eq!(a.to_vec::<T>().unwrap(), values);
    assert_eq!(a.nbytes(), 2 * dtype.size());
    for other in Dtype::ALL.into_iter().filter(|&other| other != dtype) {
        assert_ne!(a.dtype(), other);
    }
    if dtype != Dtype::Int16 {
        assert_eq!(a.to_vec::<i16>().unwrap_err().kind(), ErrorKind::Dtype);
    }
}

/// Row A19.
#[test]
fn every_dtype_is_its_own() {
    keeps_its_dtype([true, false], Dtype::Bool);
    keeps_its_dtype([1u8, 255], Dtype::Uint8);
    keeps_its_dtype([1u16, u16::MAX], Dtype::Uint16);
    keeps_its_dtype([1u32, u32::MAX], Dtype::Uint32);
    keeps_its_dtype([1u64, u64::MAX], Dtype::Uint64);
    keeps_its_dtype([-1i8, i8::MIN], Dtype::Int8);
    keeps_its_dtype([-1i16, i16::MIN], Dtype::Int16);
    keeps_its_dtype([-1i32, i32::MIN], Dtype::Int32);
    keeps_its_dtype([-1i64, i64::MIN], Dtype::Int64);
    keeps_its_dtype([f16::ONE, f16::MAX], Dtype::Float16);
    keeps_its_dtype([bf16::ONE, bf16::MAX], Dtype::Bfloat16);
    keeps_its_dtype([1.5f32, f32::MAX], Dtype::Float32);
    keeps_its_dtype([1.5f64, f64::MAX], Dtype::Float64);
    keeps_its_dtype([Complex32::new(1.0, -2.0), Complex32::I], Dtype::Complex64);
}

#[test]
fn a_byte_that_is_no_bool_is_refused() {
    assert_eq!(Array::from_bytes(&[0, 1, 2], 3, Dtype::Bool).unwrap_err().kind(), ErrorKind::Format);
}

#[test]
fn display_prints_as_mlx_does_and_debug_does_not_evaluate() {
    let a = (iota(&[2, 2]) + iota(&[2, 2])).unwrap();
    assert_eq!(format!("{a:?}"), "Array([2, 2], int32)");
    assert!(!a.is_available().unwrap());
    assert_eq!(a.to_string(), "array([[0, 2],\n       [4, 6]], dtype=int32)");
}
