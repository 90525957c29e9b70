//! Storage views, DLPack, adopted memory and the C API's handles, on the device of `OXMLX_TEST_DEVICE`.
#![allow(unsafe_code)] // foreign memory and foreign tensors, as their producers make them
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "a tensor by hand is a handful of raw reads")]

#[path = "storage/adopt.rs"]
mod adopt;
#[path = "support/alone.rs"]
mod alone;
#[path = "support/device.rs"]
mod device;
#[path = "storage/dlpack.rs"]
mod dlpack;
#[path = "storage/layouts.rs"]
mod layouts;
#[path = "storage/lifetime.rs"]
mod lifetime;
#[path = "storage/safetensors.rs"]
mod safetensors;
#[path = "storage/statuses.rs"]
mod statuses;

use oxmlx::storage::{StorageBackend, StorageExportOptions, StorageView, loaded_backend};
use oxmlx::{Array, Dtype, Element, ops};

/// Any layout, without waiting.
fn any_layout() -> StorageExportOptions {
    StorageExportOptions::default().require_row_contiguous(false)
}

/// 0, 1, 2 ... in `shape`, computed on the test's device.
fn counted(shape: &[i32]) -> Array {
    let n: i32 = shape.iter().product();
    let a = ops::arange(0.0, n.into(), 1.0, Dtype::Float32).unwrap().reshape(shape).unwrap();
    a.eval().unwrap();
    a
}

/// The elements in logical order, through a consumer's eyes: also where the host can't read the memory.
fn seen<T: Element>(view: &StorageView) -> Vec<T> {
    Array::from_dlpack(view.to_dlpack(&Default::default()).unwrap()).unwrap().0.to_vec().unwrap()
}

fn on_host() -> bool {
    loaded_backend().unwrap() == StorageBackend::Host
}

/// The bytes of this process that are in memory.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
