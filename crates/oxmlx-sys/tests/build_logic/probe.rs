//! The scan for kernel names.

use std::io::{self, Read};

use crate::mlx::probe::{NAX_KERNELS, Probe, contains, nax_kernels};

/// The obvious search, which holds everything in memory.
fn reference(hay: &[u8], needle: &[u8]) -> bool {
    hay.windows(needle.len()).any(|window| window == needle)
}

/// Gives its bytes a few at a time, as pipes do, with interruptions between.
struct Trickle<'a> {
    rest: &'a [u8],
    step: usize,
    interrupt: bool,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupt = !self.interrupt;
        if self.interrupt {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = self.step.min(buffer.len()).min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest[..count]);
        self.rest = &self.rest[count..];
        Ok(count)
    }
}

#[test]
fn needle_is_found_at_every_place_and_over_every_chunk_boundary() {
    for at in 0..60 {
        let mut hay = b"steel_gemm_fused_na".repeat(5);
        hay.truncate(at);
        hay.extend_from_slice(NAX_KERNELS);
        hay.extend_from_slice(b"_float32 and more");
        for chunk in 1..100 {
            assert!(contains(&hay[..], NAX_KERNELS, chunk).expect("no I/O"), "at {at}, chunk {chunk}");
            // The last byte is missing: everything but the name.
            let short = &hay[..at + NAX_KERNELS.len() - 1];
            assert!(!contains(short, NAX_KERNELS, chunk).expect("no I/O"), "short at {at}, chunk {chunk}");
        }
    }
}

#[test]
fn answer_equals_the_obvious_search_on_repetitive_text() {
    // A small alphabet makes near misses and overlaps common.
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b"ab"[(state >> 30) as usize & 1]
    };
    for length in 0..120 {
        let hay: Vec<u8> = (0..length).map(|_| next()).collect();
        let needle: Vec<u8> = (0..1 + length % 7).map(|_| next()).collect();
        for chunk in 1..20 {
            let found = contains(&hay[..], &needle, chunk).expect("no I/O");
            assert_eq!(found, reference(&hay, &needle), "{hay:?} {needle:?} {chunk}");
        }
    }
}

#[test]
fn short_and_interrupted_reads_change_nothing() {
    let mut hay = vec![b's'; 1000];
    hay.extend_from_slice(NAX_KERNELS);
    for step in 1..30 {
        let trickle = Trickle { rest: &hay, step, interrupt: false };
        assert!(contains(trickle, NAX_KERNELS, 64).expect("no I/O"), "step {step}");
    }
}

#[test]
fn probe_tells_present_absent_and_unknown_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mlx.metallib");
    assert_eq!(nax_kernels(&file), Probe::Unknown);
    crate::write(&file, b"MTLB steel_gemm_fused_nn_float32");
    assert_eq!(nax_kernels(&file), Probe::Absent);
    crate::write(&file, b"MTLB steel_gemm_fused_nax_nn_float32");
    assert_eq!(nax_kernels(&file), Probe::Present);
    assert_eq!(nax_kernels(folder.path()), Probe::Unknown);
}
