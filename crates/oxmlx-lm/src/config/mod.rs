//! What a model's configuration says, as plain checked data: from `config.json` or from GGUF metadata.
//!
//! Every error names the file and the field. What isn't implemented (an architecture, a rope scaling, an activation) is an
//! error here and not a wrong answer later.

mod beyond;
mod fields;
mod gguf;
mod json;
mod llama;
mod quantization;
mod rope;

pub(crate) use fields::{Fields, JsonFile};
pub use llama::{Architecture, Beyond, ExpertsConfig, Gemma3Config, LlamaConfig};
pub use quantization::{Quantization, QuantizationParams};
pub use rope::{Rope, RopeScaling};
