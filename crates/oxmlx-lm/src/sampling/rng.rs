//! The generator behind every draw: SplitMix64, whose numbers depend on the seed alone, on every platform.

/// A small seeded random number generator. Not for secrets.
///
/// Two seeds give unrelated streams: the seed is scrambled before it becomes the start of the counter.
///
/// # Source
/// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// The next number in `0.0..1.0`, one of 2^53 equally far apart.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A seed that differs from call to call and from process to process.
pub(super) fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library seeds each of these from the system.
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_splitmix64s_published_ones() {
        let mut rng = Rng(1_234_567);
        let wanted =
            [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821];
        assert_eq!(wanted.map(|_| rng.next_u64()), wanted);
    }

    #[test]
    fn fractions_fill_the_unit_interval_evenly() {
        let mut rng = Rng::new(3);
        let mut bins = [0u32; 10];
        for _ in 0..100_000 {
            let x = rng.next_f64();
            assert!((0.0..1.0).contains(&x));
            bins[(x * 10.0) as usize] += 1;
        }
        // Each is binomial(100000, 0.1), standard deviation 95.
        assert!(bins.iter().all(|&n| n.abs_diff(10_000) < 480), "{bins:?}");
    }

    #[test]
    fn fresh_seeds_differ() {
        assert_ne!(fresh_seed(), fresh_seed());
    }
}
