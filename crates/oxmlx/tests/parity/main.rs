//! Every operation against the values of Python MLX, from `fixtures/parity` (made by `oracle/parity`).
//!
//! Each family's module lists its operations, one a line: the function and what kinds of arguments it takes, in order.

mod construct;
mod elementwise;
mod fast;
mod fft;
mod fixture;
mod index;
mod limits;
mod linalg;
mod matmul;
mod quantize;
mod random;
mod reduce;
mod shape;
mod table;

mod cases;
mod complete;
mod errors;
mod exported;
mod properties;

#[path = "../support/device.rs"]
mod device;
#[path = "../support/python.rs"]
mod python;
