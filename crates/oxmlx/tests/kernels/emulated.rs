//! The emulator finds what it is there to find.
#![cfg(target_os = "linux")]

use oxmlx::kernel::{Accepts, Kernel};
use oxmlx::{Device, Dtype};

use super::device::device;
use super::emulator::{self, Buffer, Refused};

/// Runs a Metal source over 64 floats, with 64 threads in one group; `None` on a machine that is there for its GPU.
fn run(source: &str) -> Option<Result<Vec<f64>, Refused>> {
    if device() == Device::Gpu {
        return None;
    }
    let builder = Kernel::builder("planted")
        .input("x", Accepts::Any)
        .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
        .thread_group([64, 1, 1]);
    // SAFETY: it runs in the emulator alone, whose buffers end at pages that can't be touched.
    let kernel = unsafe { builder.metal(source) }.build().unwrap();
    let bytes = (0..64).flat_map(|i| (i as f32).to_ne_bytes()).collect();
    let x = Buffer { shape: vec![64], dtype: Dtype::Float32, bytes };
    Some(emulator::run(&kernel, &[vec![x]], false).map(|mut results| results.swap_remove(0).swap_remove(0).to_f64()))
}

fn refused(source: &str, with: &str) {
    if let Some(outcome) = run(source) {
        let Refused(text) = outcome.unwrap_err();
        assert!(text.contains(with), "{text}");
    }
}

/// A thread reads what its neighbour wrote to shared memory.
const NEIGHBOUR: &str = "threadgroup float shared[64]; uint i = thread_index_in_threadgroup; shared[i] = x[i];\n\
    BARRIER out[i] = shared[(i + 1) % 64];";

#[test]
fn shared_memory_is_one_for_a_group() {
    if let Some(outcome) = run(&NEIGHBOUR.replace("BARRIER", "threadgroup_barrier(mem_flags::mem_threadgroup);")) {
        assert_eq!(outcome.unwrap(), (0..64).map(|i| f64::from((i + 1) % 64)).collect::<Vec<_>>());
    }
}

#[test]
fn a_missing_barrier_shows() {
    refused(&NEIGHBOUR.replace("BARRIER", ""), "depends on the order of threads");
}

#[test]
fn a_barrier_that_not_all_reach_shows() {
    refused(
        "if (thread_index_in_threadgroup < 40) { threadgroup_barrier(mem_flags::mem_none); }\n\
         out[thread_index_in_threadgroup] = 0;",
        "ended before a barrier",
    );
}

#[test]
fn a_group_that_waits_at_a_barrier_and_at_a_function_shows() {
    refused(
        "uint i = thread_index_in_threadgroup; float y = x[i];\n\
         if (i % 2) { y = simd_sum(y); threadgroup_barrier(mem_flags::mem_none); }\n\
         else { threadgroup_barrier(mem_flags::mem_none); y = simd_sum(y); }\n\
         out[i] = y;",
        "wait for each other",
    );
}

#[test]
fn lanes_in_different_functions_show() {
    refused(
        "uint i = thread_index_in_simdgroup; out[thread_index_in_threadgroup] = i % 2 ? simd_sum(x[i]) : simd_max(x[i]);",
        "threads of one SIMD group are in simd_",
    );
}

#[test]
fn an_element_that_nobody_writes_shows() {
    refused("if (thread_index_in_threadgroup != 5) { out[thread_index_in_threadgroup] = 1; }", "nobody wrote");
}

#[test]
fn an_access_beyond_a_buffer_ends_the_run() {
    refused("out[thread_index_in_threadgroup] = x[thread_index_in_threadgroup + 1];", "signal: 11");
    refused("out[thread_index_in_threadgroup + 1] = 0;", "signal: 11");
}

#[test]
fn functions_of_a_simd_group_see_its_32_lanes() {
    let source = "uint i = thread_index_in_threadgroup; float y = x[i];\n\
        float of_lanes = simd_sum(y) + simd_max(y) + simd_min(y);\n\
        of_lanes += simd_shuffle_down(y, 1) + simd_shuffle_xor(y, 3) + simd_broadcast(y, 2);\n\
        out[i] = of_lanes + simd_prefix_exclusive_sum(y) + (simd_all(y < 32) ? 1000 : 0);";
    let Some(outcome) = run(source) else { return };
    let expected = |i: usize| {
        let (first, lane) = (i / 32 * 32, i % 32);
        let sum: usize = (first..first + 32).sum();
        let next = if lane == 31 { i } else { i + 1 };
        let before: usize = (first..i).sum();
        let all = if i < 32 { 1000 } else { 0 };
        (sum + first + 31 + first + next + (first + (lane ^ 3)) + (first + 2) + before + all) as f64
    };
    assert_eq!(outcome.unwrap(), (0..64).map(expected).collect::<Vec<_>>());
}
