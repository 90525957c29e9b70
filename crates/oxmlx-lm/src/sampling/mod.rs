//! Choosing the next token from a row of logits, on the host.
//!
//! The order is: top-k, top-p, min-p, then the temperature, then the draw. The filters look at the distribution as the model
//! gives it, before the temperature, so that raising the temperature never lets in a token that was filtered out; each filter
//! looks at what the one before has left. The most probable token survives every filter.
//!
//! ```
//! use oxmlx_lm::{Sampler, SamplingParams};
//! # fn main() -> Result<(), oxmlx_lm::Error> {
//! let params = SamplingParams::builder().temperature(0.8).top_k(40).top_p(0.95).min_p(0.05).seed(7).build()?;
//! let mut sampler = Sampler::new(params);
//! let token = sampler.sample(&[0.5, 2.0, -1.0])?;
//! assert!(token < 3);
//! # Ok(())
//! # }
//! ```

mod candidates;
mod exp;
mod params;
mod rng;
mod sampler;

pub use params::{SamplingParams, SamplingParamsBuilder};
pub use rng::Rng;
pub use sampler::Sampler;
