//! What a sampler is told, checked once.

use crate::{Error, ErrorKind, Result};

/// Sampling parameters that have been checked; made by [`SamplingParams::builder`] or [`SamplingParams::greedy`].
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    temperature: f32,
    top_k: usize,
    top_p: f32,
    min_p: f32,
    seed: Option<u64>,
}

impl SamplingParams {
    /// Always the most probable token.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: None }
    }

    /// Starts from: temperature 1, no filter, a seed that differs every time.
    pub fn builder() -> SamplingParamsBuilder {
        SamplingParamsBuilder(Self { temperature: 1.0, ..Self::greedy() })
    }

    /// The temperature; 0 is greedy.
    pub fn temperature(&self) -> f32 {
        self.temperature
    }

    /// How many of the most probable tokens are kept; 0 for all.
    pub fn top_k(&self) -> usize {
        self.top_k
    }

    /// The probability that the kept tokens have together at least; 1 for no filter.
    pub fn top_p(&self) -> f32 {
        self.top_p
    }

    /// The probability, relative to the most probable token's, that kept tokens have at least; 0 for no filter.
    pub fn min_p(&self) -> f32 {
        self.min_p
    }

    /// The seed, if one was set.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// Whether the choice is no matter of chance.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }
}

/// Collects sampling parameters; [`build`](SamplingParamsBuilder::build) checks them.
#[derive(Clone, Debug)]
#[must_use]
pub struct SamplingParamsBuilder(SamplingParams);

impl SamplingParamsBuilder {
    /// Sets the temperature: 0 for greedy, under 1 for surer, over 1 for more varied text.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.0.temperature = temperature;
        self
    }

    /// Keeps the `k` most probable tokens; 0 keeps all. Of equally probable ones those with lower ids are kept.
    pub fn top_k(mut self, k: usize) -> Self {
        self.0.top_k = k;
        self
    }

    /// Keeps the fewest of the most probable tokens whose probabilities sum up to `p` at least; 1 keeps all.
    pub fn top_p(mut self, p: f32) -> Self {
        self.0.top_p = p;
        self
    }

    /// Keeps the tokens that are at least `p` times as probable as the most probable one; 0 keeps all.
    pub fn min_p(mut self, p: f32) -> Self {
        self.0.min_p = p;
        self
    }

    /// Makes the draws repeatable.
    pub fn seed(mut self, seed: u64) -> Self {
        self.0.seed = Some(seed);
        self
    }

    /// Checks the parameters.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`], naming the parameter: a temperature that is negative, infinite or NaN; a top-p outside
    /// `0 < p <= 1`; a min-p outside `0 <= p <= 1`.
    pub fn build(self) -> Result<SamplingParams> {
        let SamplingParams { temperature, top_p, min_p, .. } = self.0;
        let wrong = |name, what| Err(Error::new(ErrorKind::Sampling, what).at_field(name));
        if !(temperature.is_finite() && temperature >= 0.0) {
            return wrong("temperature", format!("{temperature} isn't a finite number from 0 up (0 is greedy)"));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return wrong("top-p", format!("{top_p} isn't above 0 and at most 1 (1 turns it off)"));
        }
        if !(0.0..=1.0).contains(&min_p) {
            return wrong("min-p", format!("{min_p} isn't from 0 to 1 (0 turns it off)"));
        }
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let b = SamplingParams::builder;
        let bad = [
            ("temperature", b().temperature(-1.0)),
            ("temperature", b().temperature(f32::NAN)),
            ("temperature", b().temperature(f32::INFINITY)),
            ("top-p", b().top_p(0.0)),
            ("top-p", b().top_p(1.1)),
            ("top-p", b().top_p(f32::NAN)),
            ("min-p", b().min_p(-0.1)),
            ("min-p", b().min_p(1.5)),
            ("min-p", b().min_p(f32::NAN)),
        ];
        for (field, builder) in bad {
            let error = builder.clone().build().unwrap_err();
            assert_eq!((error.kind(), error.field()), (ErrorKind::Sampling, Some(field)), "{builder:?}");
        }
    }

    #[test]
    fn the_ends_of_the_ranges_are_fine() {
        let b = SamplingParams::builder;
        for builder in
            [b().temperature(0.0), b().temperature(-0.0), b().temperature(1e-40), b().top_p(1e-8), b().min_p(1.0)]
        {
            builder.build().unwrap();
        }
        assert!(b().temperature(-0.0).build().unwrap().is_greedy());
    }
}
