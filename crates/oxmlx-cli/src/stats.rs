//! How long an answer took, and the memory it needed.

use std::time::{Duration, Instant};

use oxmlx::Device;

/// The times of one answer.
pub(crate) struct Stopwatch {
    started: Instant,
    first: Option<Instant>,
    last: Instant,
    /// Tokens of the prompt that were computed.
    pub(crate) prompt_tokens: usize,
    /// Tokens of the answer.
    pub(crate) tokens: usize,
}

impl Stopwatch {
    /// Starts before the prompt is fed.
    pub(crate) fn start(prompt_tokens: usize) -> Self {
        let now = Instant::now();
        Self { started: now, first: None, last: now, prompt_tokens, tokens: 0 }
    }

    /// Notes that a token came.
    pub(crate) fn token(&mut self) {
        self.last = Instant::now();
        self.first.get_or_insert(self.last);
        self.tokens += 1;
    }

    /// Tokens of the prompt a second, up to the first token of the answer; 0 when there was none.
    pub(crate) fn prefill_tps(&self) -> f64 {
        self.first.map_or(0.0, |first| rate(self.prompt_tokens, first - self.started))
    }

    /// Tokens of the answer a second, after the first; 0 for fewer than two.
    pub(crate) fn decode_tps(&self) -> f64 {
        self.first.map_or(0.0, |first| rate(self.tokens.saturating_sub(1), self.last - first))
    }
}

fn rate(tokens: usize, time: Duration) -> f64 {
    if tokens == 0 || time.is_zero() { 0.0 } else { tokens as f64 / time.as_secs_f64() }
}

/// The most memory that was in use: the process's peak resident memory on the CPU, MLX's peak on a GPU. 0 when unknown.
pub(crate) fn peak_bytes() -> u64 {
    if matches!(Device::current(), Ok(Device::Gpu)) {
        return oxmlx::memory::peak().map_or(0, |bytes| bytes as u64);
    }
    resident_peak().unwrap_or(0)
}

#[cfg(target_os = "linux")]
fn resident_peak() -> Option<u64> {
    status_bytes("VmHWM:")
}

/// One line of `/proc/self/status`, in bytes.
#[cfg(target_os = "linux")]
fn status_bytes(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(not(target_os = "linux"))]
fn resident_peak() -> Option<u64> {
    oxmlx::memory::peak().ok().map(|bytes| bytes as u64)
}
