//! An LLM engine on oxmlx: weights, tokenizers, models, caches, sampling.
//!
//! The modules here read what a checkpoint is made of and need no MLX: [`ModelFiles`] opens a folder with SafeTensors or a
//! GGUF file and gives its [`LlamaConfig`], its [`Checkpoint`] (tensors by name, mapped, not copied), its [`Tokenizer`] and
//! its [`ChatTemplate`]; [`Sampler`] turns a row of logits into a token.
//!
//! ```no_run
//! use oxmlx_lm::{Message, ModelFiles, Sampler, SamplingParams, StreamDecoder};
//!
//! # fn main() -> Result<(), oxmlx_lm::Error> {
//! let files = ModelFiles::open("SmolLM2-135M-Instruct.Q4_1.gguf")?;
//! let tokenizer = files.tokenizer()?;
//! let template = files.chat_template(&tokenizer)?;
//! let text = template.render(&[Message::user("What is the capital of France?")])?;
//! let ids = tokenizer.encode(&text)?;
//! let mut sampler = Sampler::new(SamplingParams::builder().temperature(0.7).top_k(40).build()?);
//! # let logits = vec![0.0f32; tokenizer.vocab_size()];
//! let mut stream = StreamDecoder::after(&tokenizer, &ids);
//! print!("{}", stream.push(sampler.sample(&logits)?)?);
//! # Ok(())
//! # }
//! ```

pub mod cache;
pub mod config;
pub mod engine;
mod error;
mod files;
pub mod gguf;
mod language_model;
pub mod layers;
mod mapped;
pub mod models;
pub mod sampling;
pub mod speculative;
pub mod template;
pub mod tokenizer;
pub mod verify;
pub mod weights;

pub use config::LlamaConfig;
pub use engine::{DirectEngine, Engine, FinishReason, Generation, GenerationPolicy, PrefillProgress, Request};
pub use error::{Error, ErrorKind, Result};
pub use files::ModelFiles;
pub use language_model::{LanguageModel, LayerCache, Logits};
pub use mapped::Mapped;
pub use sampling::{Sampler, SamplingParams};
pub use template::{ChatTemplate, Message};
pub use tokenizer::{StopMatcher, StreamDecoder, Tokenizer};
pub use weights::Checkpoint;
