//! What is made and dropped again and again leaves no memory behind: rows A22 and A23. A binary of its own, since it watches the whole
//! process's memory.
#![cfg(target_os = "linux")]

use std::sync::Mutex;

use oxmlx::kernel::Kernel;
use oxmlx::storage::StorageExportOptions;
use oxmlx::transforms::{self, CustomFunction};
use oxmlx::{Array, Device, Dtype, Error, ErrorKind, Result, Stream, io, ops};

#[path = "support/device.rs"]
mod device;

/// One at a time: each watches the memory of all.
static ALONE: Mutex<()> = Mutex::new(());

/// Bytes that may stay for all rounds together: the allocator's own, and pages that were touched for the first time.
const ROOM: usize = 4 << 20;

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    // Every Linux that MLX runs on here has pages of 4 KiB but some arm64 ones, where the figure is then too small by a constant factor.
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Makes and drops many times, 100,000 with `OXMLX_STRESS=1`, and fails when memory grew after the first tenth.
fn flat(what: &str, mut round: impl FnMut(i32)) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let rounds = if std::env::var_os("OXMLX_STRESS").is_some_and(|v| v == "1") { 100_000 } else { 3_000 };
    (0..rounds / 10).for_each(&mut round);
    oxmlx::memory::clear_cache().unwrap();
    let (before, active) = (resident(), oxmlx::memory::active().unwrap());
    (0..rounds).for_each(&mut round);
    oxmlx::memory::clear_cache().unwrap();
    let grown = resident().saturating_sub(before);
    println!("{what}: {rounds} rounds, {} KiB at first, {} KiB more at the end", before >> 10, grown >> 10);
    assert!(grown <= ROOM, "{what}: {grown} bytes more after {rounds} rounds");
    assert!(oxmlx::memory::active().unwrap() <= active + 4096, "{what}: MLX holds more than before");
}

fn x() -> Array {
    Array::vector(&[1.0f32; 64]).unwrap()
}

fn planted() -> Error {
    Error::new(ErrorKind::InvalidArgument, "test", "planted")
}

#[test]
fn arrays_and_graphs_are_freed() {
    flat("arrays", |i| {
        let a = x();
        let sum = ops::sum(&ops::multiply(&a, &Array::scalar(i as f32).unwrap()).unwrap()).unwrap();
        assert_eq!(sum.item::<f32>().unwrap(), 64.0 * i as f32);
        // Never evaluated.
        drop(ops::matmul(&a, &a).unwrap());
    });
}

#[test]
fn views_and_adopted_memory_are_freed() {
    flat("storage", |_| {
        let (a, _) = Array::from_vec(vec![1.0f32; 256], [256]).unwrap();
        let view = a.storage_view(&StorageExportOptions::default()).unwrap();
        let (back, _) = Array::from_dlpack(view.to_dlpack(&Default::default()).unwrap()).unwrap();
        assert_eq!(back.size(), 256);
    });
}

/// Row A23.
#[test]
fn gradients_are_freed() {
    flat("grad", |i| {
        let slope = transforms::grad(|x: &[Array]| ops::multiply(&x[0], &x[0]), &[0]);
        assert_eq!(slope(&[Array::scalar(i as f32).unwrap()]).unwrap()[0].item::<f32>().unwrap(), 2.0 * i as f32);
    });
}

#[test]
fn compiled_functions_and_their_closures_are_freed() {
    flat("compile", |i| {
        let held = Array::scalar(i as f32).unwrap();
        let f = transforms::compile(move |x| Ok(vec![ops::add(&x[0], &held)?])).unwrap();
        assert_eq!(f.call(&[x()]).unwrap()[0].size(), 64);
    });
}

#[test]
fn custom_rules_are_freed() {
    flat("custom rules", |_| {
        let held = x();
        let f = CustomFunction::new(|x| Ok(vec![ops::square(&x[0])?]))
            .vjp(move |_, cotangents, _| Ok(vec![ops::multiply(&cotangents[0], &held)?]));
        let slope = transforms::grad(|x: &[Array]| ops::sum(&f.call(x)?[0]), &[0]);
        slope(&[x()]).unwrap()[0].eval().unwrap();
    });
}

fn kernel(fails: bool) -> Kernel {
    Kernel::builder("leaks")
        .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
        .cpu(move |inputs, outputs| {
            if fails {
                return Err("planted".into());
            }
            outputs[0].as_mut_slice::<f32>()?.copy_from_slice(&inputs[0].as_slice::<f32>()?);
            Ok(())
        })
        .build()
        .unwrap()
}

#[test]
fn kernels_are_freed() {
    // Their body is Rust.
    device::on_cpu(|| {
        flat("kernels", |_| assert_eq!(kernel(false).apply_one(&[x()]).unwrap().to_vec::<f32>().unwrap(), [1.0; 64]));
    });
}

/// Row A22.
#[test]
fn failures_of_kernels_are_freed() {
    let failing = kernel(true);
    flat("failing kernels", |_| {
        // The body is Rust; what depends on it is on the device of the other tests.
        let bad = device::on_cpu(|| failing.apply_one(&[x()])).unwrap();
        let after = ops::add(&bad, &x()).unwrap();
        assert!(after.eval().is_err() && bad.eval().is_err());
    });
}

/// Row A22.
#[test]
fn failures_of_closures_are_freed() {
    flat("failing closures", |_| {
        let fails = |x: &[Array]| -> Result<Array> {
            ops::square(&x[0])?;
            Err(planted())
        };
        assert!(transforms::grad(fails, &[0])(&[x()]).is_err());
        let compiled = transforms::compile(move |x| Ok(vec![fails(x)?])).unwrap();
        assert!(compiled.call(&[x()]).is_err());
    });
}

#[test]
fn refused_calls_and_files_are_freed() {
    flat("errors", |_| {
        assert!(ops::matmul(&x(), &Array::ones::<f32>((3, 3)).unwrap()).is_err());
        assert!(ops::reshape(&x(), [-1, 7]).is_err());
        assert!(io::load_safetensors_bytes(vec![9; 100]).is_err());
    });
}

#[test]
fn streams_are_used_again() {
    flat("streams", |_| {
        let stream = Stream::new(Device::Cpu).unwrap();
        stream.scope(|| ops::square(&x()).unwrap().eval().unwrap()).unwrap();
    });
}
