//! The function of C BLAS by its type: the program that measures and the one that tests call it by pointers.

use std::ffi::{c_int, c_void};

pub(crate) type Sgemm = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    f32,
    *const c_void,
    c_int,
    *const c_void,
    c_int,
    f32,
    *mut c_void,
    c_int,
);
