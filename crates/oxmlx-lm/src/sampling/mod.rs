//! Choosing the next token from a row of logits.
//!
//! A [`Sampler`] takes a row through a chain of stages, each in a file of its own: logit bias, language bias, repetition penalty, DRY,
//! frequency and presence penalties, top-n-sigma, top-k, typical-p, top-p, min-p, XTC, temperature, draw. Those that are set come in
//! this [`Order`] or another one. By default the filters look at the distribution before the temperature, so that raising the
//! temperature never lets in a token that was filtered out; each filter looks at what the one before has left. The most probable
//! token survives every filter but typical-p and XTC, which are made to drop it. What a [`Suppression`] or a [`Grammar`] rules out is
//! gone before the first stage and never comes back. The penalties' history begins with the prompt.
//!
//! ```
//! use oxmlx_lm::{Sampler, SamplingParams};
//! # fn main() -> Result<(), oxmlx_lm::Error> {
//! let params = SamplingParams::builder().temperature(0.8).top_k(40).top_p(0.95).min_p(0.05).seed(7).build()?;
//! let mut sampler = Sampler::new(params);
//! sampler.begin(&[1, 2]);
//! let token = sampler.sample(&[0.5, 2.0, -1.0])?;
//! assert_eq!(sampler.history(), [1, 2, token]);
//! # Ok(())
//! # }
//! ```

mod check;
mod device;
mod draw;
mod dry;
mod exp;
mod frequency;
mod grammar;
mod history;
mod language_bias;
mod logit_bias;
mod logprobs;
mod min_p;
mod mirostat;
mod order;
mod params;
mod repetition;
mod rng;
mod row;
mod sampler;
mod suppression;
mod temperature;
mod top_k;
mod top_n_sigma;
mod top_p;
mod typical_p;
mod xtc;

pub use device::BatchSampler;
pub use dry::Dry;
pub use frequency::FrequencyPresence;
pub use grammar::Grammar;
pub use history::Window;
pub use language_bias::{LanguageBias, Script};
pub use logit_bias::LogitBias;
pub use logprobs::{TokenLogprob, logprobs};
pub use mirostat::Mirostat;
pub use order::{Order, Stage};
pub use params::{SamplingParams, SamplingParamsBuilder};
pub use repetition::Repetition;
pub use rng::Rng;
pub use sampler::Sampler;
pub use suppression::Suppression;
pub use temperature::DynamicTemperature;
pub use xtc::Xtc;
