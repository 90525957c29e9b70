//! What MLX throws comes out as an error of its kind, and the library goes on.

use std::error::Error as _;

use oxmlx::{Array, Error, ErrorKind, ops};

/// The error that a planted C++ exception becomes.
fn planted(kind: &str) -> Error {
    oxmlx_sys::runtime::throw_for_test(kind).unwrap_err().into()
}

fn assert_usable() {
    let a = Array::from_slice(&[1.0f32, 2.0], 2).unwrap();
    assert_eq!((&a + &a).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0]);
}

#[test]
fn a_cpp_throw_of_each_kind_becomes_its_error_kind_and_the_next_call_succeeds() {
    let table = [
        ("invalid_argument", ErrorKind::InvalidArgument, "planted invalid_argument"),
        ("out_of_range", ErrorKind::OutOfRange, "planted out_of_range"),
        ("overflow_error", ErrorKind::Overflow, "planted overflow_error"),
        ("bad_alloc", ErrorKind::OutOfMemory, "std::bad_alloc"),
        ("runtime_error", ErrorKind::Backend, "planted runtime_error"),
        ("int", ErrorKind::Backend, "an exception that is no std::exception"),
    ];
    for (thrown, kind, text) in table {
        let error = planted(thrown);
        assert_eq!((error.kind(), error.op(), error.message()), (kind, "throw_for_test", text), "{thrown}");
        assert_usable();
    }
}

#[test]
fn an_error_names_the_operation_and_keeps_the_words_of_mlx() {
    let (a, b) = (Array::zeros::<f32>((2, 3)).unwrap(), Array::zeros::<f32>((4, 5)).unwrap());
    let error = ops::matmul(&a, &b).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::InvalidArgument, "matmul"));
    assert!(error.message().starts_with("[matmul]"), "{error}");
    assert!(error.source().is_none());
    assert_usable();
}

/// Row A20: an error on one thread, a success and an error on another, each with its own text.
#[test]
fn errors_of_two_threads_keep_their_own_texts() {
    let on_b = std::thread::spawn(|| planted("invalid_argument")).join().unwrap();
    assert_usable();
    let on_a = planted("out_of_range");
    assert_eq!(on_b.message(), "planted invalid_argument");
    assert_eq!(on_a.message(), "planted out_of_range");
}

#[test]
fn an_error_is_one_word_wide_and_crosses_threads() {
    fn crosses<T: Send + Sync + 'static>() {}
    crosses::<Error>();
    assert_eq!(size_of::<Error>(), size_of::<usize>());
    assert_eq!(size_of::<oxmlx::Result<()>>(), size_of::<usize>());
}
