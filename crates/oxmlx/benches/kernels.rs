//! Our CPU kernels inside MLX's graph against OpenBLAS, MLX's own nodes and the memory's speed, all in one run.
//!
//! `cargo bench -p oxmlx --bench kernels -- [--only matmul|matvec] [--openblas PATH] [--threads N]`. Alternatives take turns, with pauses; figures are medians. Without
//! an OpenBLAS that the loader finds (`libopenblas.so.0`, Debian's `libopenblas0-pthread`) that column is left out.
#![allow(unsafe_code, reason = "OpenBLAS is opened at run time and called as C")]
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "opening a library is a handful of C calls")]

#[path = "../tests/support/sgemm.rs"]
mod sgemm;

use std::ffi::{CString, c_char, c_int, c_void};
use std::hint::black_box;
use std::time::{Duration, Instant};

use oxmlx::quantize::{Affine, Quantized, quantize, quantized_matmul};
use oxmlx::{Array, Dtype, Result, blas, eval, ops, random};
use oxmlx_kernels::Pool;
use oxmlx_sys::generated::ops as mlx;
use oxmlx_sys::types::QuantMode;

use sgemm::Sgemm;

const ROUNDS: usize = 9;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| arguments.iter().position(|a| a == name).and_then(|i| arguments.get(i + 1));
    let threads = after("--threads").and_then(|n| n.parse().ok()).unwrap_or(0);
    Pool::global().set_threads(threads);
    let threads = Pool::global().threads();
    println!("{threads} threads; medians of {ROUNDS} rounds");
    let only = after("--only").map(String::as_str);
    // The BLAS that takes the place of MLX's own is Linux' only.
    if cfg!(target_os = "linux") && only.is_none_or(|only| only == "matmul") {
        let other = OpenBlas::open(after("--openblas").map_or("libopenblas.so.0", String::as_str), threads);
        for n in [512, 1024, 2048] {
            products(n, other.as_ref())?;
        }
    }
    if only.is_none_or(|only| only == "matvec") {
        for dtype in [Dtype::Float32, Dtype::Float16] {
            matvec(dtype)?;
        }
    }
    Ok(())
}

/// `n` by `n` products.
fn products(n: usize, other: Option<&OpenBlas>) -> Result<()> {
    let side = n as i32;
    let flops = 2.0 * (n * n * n) as f64;
    let [a, b] = [1, 2].map(|seed| random::normal([side, side], Dtype::Float32, &random::key(seed)?));
    let (a, b) = (a?, b?);
    let (flat_a, flat_b, mut c) = (a.to_vec::<f32>()?, b.to_vec::<f32>()?, vec![0.0f32; n * n]);
    let mut times = [(); 5].map(|()| Vec::new());
    let before = blas::calls();
    let casts = [Dtype::Float32, Dtype::Float16, Dtype::Bfloat16];
    let mut operands = Vec::new();
    for dtype in casts {
        let pair = [a.astype(dtype)?, b.astype(dtype)?];
        eval(&pair)?;
        operands.push(pair);
    }
    let matrices = [flat_a.as_ptr(), flat_b.as_ptr()];
    for _ in 0..ROUNDS {
        for (i, [a, b]) in operands.iter().enumerate() {
            alone(&mut times[i], || eval(&[ops::matmul(a, b)?]))?;
        }
        #[cfg(target_os = "linux")]
        alone(&mut times[3], || {
            // SAFETY: three n by n matrices; nobody else uses the last.
            unsafe { call(blas::cblas_sgemm, side, matrices, c.as_mut_ptr()) };
            Ok(())
        })?;
        if let Some(other) = other {
            alone(&mut times[4], || {
                // SAFETY: as above, and the symbol was taken from OpenBLAS by its name.
                unsafe { call(other.sgemm, side, matrices, c.as_mut_ptr()) };
                Ok(())
            })?;
        }
    }
    assert!(blas::calls() > before + ROUNDS as u64, "MLX's matmul did not go through our BLAS");
    let rate = |times: &mut Vec<f64>| flops / median(times) / 1e9;
    let [f32_rate, f16_rate, bf16_rate, ours, theirs] = &mut times;
    let (single, direct) = (rate(f32_rate), rate(ours));
    print!("matmul {n:4}: cblas_sgemm {direct:6.1} GF/s");
    if !theirs.is_empty() {
        let theirs = rate(theirs);
        print!(" = {:.2}x OpenBLAS ({theirs:.1})", direct / theirs);
    }
    let (half, short) = (rate(f16_rate), rate(bf16_rate));
    println!(
        "; matmul f32 {single:.1}, f16 {half:.1} = {:.2}x, bf16 {short:.1} = {:.2}x",
        half / single,
        short / single
    );
    Ok(())
}

/// 4-bit products of one row with matrices that together do not fit the caches, against MLX's own and the memory.
fn matvec(dtype: Dtype) -> Result<()> {
    const MATRICES: usize = 12;
    let (n, group) = (4096, 64);
    let mut all = Vec::new();
    for seed in 0..MATRICES as u64 {
        let w = random::normal([n, n], Dtype::Float32, &random::key(seed)?)?.astype(dtype)?;
        let q = quantize(&w, Affine::new(group, 4)?)?;
        eval(&[q.weight.clone(), q.scales.clone()])?;
        all.push(q);
    }
    let x = random::normal([1, n], Dtype::Float32, &random::key(99)?)?.astype(dtype)?;
    eval(std::slice::from_ref(&x))?;
    let bytes = all.iter().map(stored).sum::<usize>() as f64 / MATRICES as f64;
    let memory = vec![1u64; 32 << 20];
    let parts: Vec<&[u64]> = memory.chunks(1 << 16).collect();
    let (mut read, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        alone(&mut read, || {
            Pool::global().parallel(parts.len(), |i| {
                black_box(parts[i].iter().fold(0, |a, &b| a ^ b));
            });
            Ok(())
        })?;
        // All in one evaluation.
        alone(&mut ours, || eval(&all.iter().map(|q| quantized_matmul(&x, q)).collect::<Result<Vec<_>>>()?))?;
        if round < 3 {
            theirs.push(seconds(|| eval(&[mlx_matvec(&x, &all[round])?]))?);
        }
    }
    let speed = (memory.len() * 8) as f64 / median(&mut read) / 1e9;
    let (ours, theirs) = (median(&mut ours) / MATRICES as f64, median(&mut theirs));
    let rate = bytes / ours / 1e9;
    println!(
        "4-bit matvec {n}, {dtype}: {:.0} us, {rate:.1} GB/s = {:.0} % of memory's {speed:.1}; MLX's own {:.0} us, {:.0}x",
        ours * 1e6,
        100.0 * rate / speed,
        theirs * 1e6,
        theirs / ours
    );
    Ok(())
}

fn stored(q: &Quantized) -> usize {
    q.weight.nbytes() + q.scales.nbytes() + q.biases.as_ref().map_or(0, Array::nbytes)
}

/// MLX's own node.
fn mlx_matvec(x: &Array, q: &Quantized) -> Result<Array> {
    let raw = |a: &Array| oxmlx_sys::Array::from(a.clone());
    let biases = q.biases.as_ref().map(raw);
    let (x, w, scales) = (raw(x), raw(&q.weight), raw(&q.scales));
    let (group, bits) = (Some(q.format.group_size()), Some(q.format.bits()));
    Ok(mlx::quantized_matmul(&x, &w, &scales, biases.as_ref(), true, group, bits, QuantMode::Affine)?.into())
}

/// Adds the times of three calls, after a pause in which the threads of what ran before stop spinning, and calls that are not timed
/// until the processor is awake again.
fn alone(times: &mut Vec<f64>, mut f: impl FnMut() -> Result<()>) -> Result<()> {
    std::thread::sleep(Duration::from_millis(40));
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(100) {
        f()?;
    }
    for _ in 0..3 {
        times.push(seconds(&mut f)?);
    }
    Ok(())
}

fn seconds(f: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    f()?;
    Ok(start.elapsed().as_secs_f64())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// `c = a @ b`, row-major.
///
/// # Safety
/// `gemm` is C BLAS's function; the pointers are to three `n` by `n` matrices, the last of which nobody else uses.
unsafe fn call(gemm: Sgemm, n: c_int, [a, b]: [*const f32; 2], c: *mut f32) {
    // SAFETY: the caller's promise.
    unsafe { gemm(101, 111, 111, n, n, n, 1.0, a.cast(), n, b.cast(), n, 0.0, c.cast(), n) }
}

/// OpenBLAS, opened beside ours.
struct OpenBlas {
    sgemm: Sgemm,
}

impl OpenBlas {
    fn open(path: &str, threads: usize) -> Option<Self> {
        unsafe extern "C" {
            fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
            fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
        }
        /// `RTLD_NOW`, its names kept to itself.
        const NOW: c_int = 2;
        let path = CString::new(path).ok()?;
        // SAFETY: a path and names that end in NUL; the handle is checked, and the library is never closed.
        let symbols = unsafe {
            let library = dlopen(path.as_ptr(), NOW);
            if library.is_null() {
                println!("no OpenBLAS at {path:?}");
                return None;
            }
            [c"cblas_sgemm", c"openblas_set_num_threads", c"openblas_get_config"]
                .map(|name| dlsym(library, name.as_ptr()))
        };
        if symbols.iter().any(|symbol| symbol.is_null()) {
            println!("{path:?} is no OpenBLAS");
            return None;
        }
        // SAFETY: OpenBLAS's own documented signatures.
        unsafe {
            let set: unsafe extern "C" fn(c_int) = std::mem::transmute(symbols[1]);
            let config: unsafe extern "C" fn() -> *const c_char = std::mem::transmute(symbols[2]);
            set(threads as c_int);
            println!("{}", std::ffi::CStr::from_ptr(config()).to_string_lossy());
            Some(Self { sgemm: std::mem::transmute::<*mut c_void, Sgemm>(symbols[0]) })
        }
    }
}
