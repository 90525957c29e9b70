//! How long an answer took, and the memory it needed.

use std::time::{Duration, Instant};

use oxmlx::Device;

/// The times of one answer.
pub(crate) struct Stopwatch {
    started: Instant,
    read: Instant,
    first: Option<Instant>,
    last: Instant,
    /// Tokens of the prompt.
    pub(crate) prompt_tokens: usize,
    /// Those of them that were computed; the cache held the others.
    pub(crate) read_tokens: usize,
    /// Tokens of the answer.
    pub(crate) tokens: usize,
}

impl Stopwatch {
    /// Starts before the prompt is fed.
    pub(crate) fn start(prompt_tokens: usize) -> Self {
        let now = Instant::now();
        Self { started: now, read: now, first: None, last: now, prompt_tokens, read_tokens: 0, tokens: 0 }
    }

    /// Notes that the first `done` tokens of the prompt are read, of which the cache held `reused`.
    pub(crate) fn prompt_read(&mut self, reused: usize, done: usize) {
        self.read = Instant::now();
        self.read_tokens = done - reused;
    }

    /// Notes that a token came.
    pub(crate) fn token(&mut self) {
        self.last = Instant::now();
        self.first.get_or_insert(self.last);
        self.tokens += 1;
    }

    /// Tokens of the prompt a second, up to the first token of the answer; where none was wanted, up to the prompt's end.
    pub(crate) fn prefill_tps(&self) -> f64 {
        rate(self.read_tokens, self.first.unwrap_or(self.read) - self.started)
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

/// The most memory of the machine that this process took; None where it can't be told.
#[cfg(target_os = "linux")]
pub(crate) fn resident_peak() -> Option<u64> {
    kibibytes("/proc/self/status", "VmHWM:")
}

/// The machine's memory; None where it can't be told.
#[cfg(target_os = "linux")]
pub(crate) fn total_memory() -> Option<u64> {
    kibibytes("/proc/meminfo", "MemTotal:")
}

/// What the machine can still give; None where it can't be told.
#[cfg(target_os = "linux")]
pub(crate) fn available_memory() -> Option<u64> {
    kibibytes("/proc/meminfo", "MemAvailable:")
}

/// One line of a table of the kernel's, in bytes.
#[cfg(target_os = "linux")]
fn kibibytes(table: &str, key: &str) -> Option<u64> {
    let table = std::fs::read_to_string(table).ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// MLX's own count stands in for what the system can't be asked without unsafe code.
#[cfg(not(target_os = "linux"))]
pub(crate) fn resident_peak() -> Option<u64> {
    oxmlx::memory::peak().ok().map(|bytes| bytes as u64)
}

/// See the Linux twin.
#[cfg(not(target_os = "linux"))]
pub(crate) fn total_memory() -> Option<u64> {
    None
}

/// See the Linux twin.
#[cfg(not(target_os = "linux"))]
pub(crate) fn available_memory() -> Option<u64> {
    None
}
