//! Medians, and how fast memory can be read.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Figures of rounds, the lowest first.
pub(super) struct Rounds(Vec<f64>);

impl Rounds {
    /// At least one figure.
    pub(super) fn new(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        Self(figures)
    }

    /// The middle one, or what lies between the middle two; 0 where there are none.
    pub(super) fn median(&self) -> f64 {
        let n = self.0.len();
        match n {
            0 => 0.0,
            n => (self.0[n / 2] + self.0[(n - 1) / 2]) / 2.0,
        }
    }

    /// Median, lowest and highest.
    pub(super) fn table(&self) -> String {
        match &*self.0 {
            [lowest, .., highest] => format!("{:.1} ({lowest:.1} to {highest:.1})", self.median()),
            _ => format!("{:.1}", self.median()),
        }
    }

    pub(super) fn sorted(&self) -> &[f64] {
        &self.0
    }
}

/// How long a round of [`seconds`] takes at least.
const ROUND: Duration = Duration::from_millis(30);

/// The seconds of one call, in each of `rounds` rounds of as many calls as can be timed well.
pub(super) fn seconds<E>(rounds: u32, mut call: impl FnMut() -> Result<(), E>) -> Result<Rounds, E> {
    call()?;
    let mut figures = Vec::new();
    for _ in 0..rounds {
        let (start, mut calls) = (Instant::now(), 0);
        while calls == 0 || start.elapsed() < ROUND {
            call()?;
            calls += 1;
        }
        figures.push(start.elapsed().as_secs_f64() / f64::from(calls));
    }
    Ok(Rounds::new(figures))
}

/// More than caches hold.
const WORDS: usize = 32 << 20;

/// Memory to read, to find out how fast that goes.
pub(super) struct Memory(Vec<u64>);

impl Memory {
    pub(super) fn new() -> Self {
        // Written once, so that every page is there.
        Self((0..WORDS as u64).collect())
    }

    /// Bytes a second that `threads` threads read together, the best of a few passes: what a program that only reads could reach.
    pub(super) fn bandwidth(&self, threads: usize) -> f64 {
        let part = WORDS.div_ceil(threads.max(1));
        let pass = || {
            let start = Instant::now();
            std::thread::scope(|scope| {
                for part in self.0.chunks(part) {
                    scope.spawn(move || black_box(part.iter().fold(0, |all, word| all ^ word)));
                }
            });
            size_of_val(&*self.0) as f64 / start.elapsed().as_secs_f64()
        };
        (0..4).map(|_| pass()).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_in_the_middle() {
        assert_eq!(Rounds::new(vec![3.0, 1.0, 7.0]).median(), 3.0);
        let four = Rounds::new(vec![4.0, 1.0, 2.0, 9.0]);
        assert_eq!((four.median(), four.table().as_str()), (3.0, "3.0 (1.0 to 9.0)"));
        assert_eq!(Rounds::new(vec![5.0]).table(), "5.0");
    }

    #[test]
    fn a_call_that_fails_ends_the_measurement() {
        let mut calls = 0;
        let failed = seconds(3, || {
            calls += 1;
            if calls == 4 { Err("no") } else { Ok(()) }
        });
        assert_eq!((failed.err(), calls), (Some("no"), 4));
    }
}
