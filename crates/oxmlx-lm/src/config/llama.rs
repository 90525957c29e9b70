//! The Llama family's configuration.

use super::{Quantization, Rope};

/// Which model of the family it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Architecture {
    /// Llama 2 and 3, and models with the same layers (SmolLM, TinyLlama, Yi).
    Llama,
    /// Mistral 7B: Llama's layers, with a sliding window in its first version.
    Mistral,
    /// Gemma 3's text model.
    Gemma3,
    /// Qwen 3 with a mixture of experts.
    Qwen3Moe,
}

/// What an architecture has beyond Llama's layers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Beyond {
    /// Nothing.
    Nothing,
    /// Gemma 3's.
    Gemma3(Gemma3Config),
    /// Qwen 3's experts.
    Qwen3Moe(ExpertsConfig),
}

/// What Gemma 3 has beyond Llama.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Gemma3Config {
    /// Products of queries and keys are divided by its square root.
    pub query_scalar: f32,
    /// The position embedding of the layers that have a window.
    pub local_rope: Rope,
}

/// A mixture of experts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExpertsConfig {
    /// How many a layer has.
    pub count: usize,
    /// How many of them each token takes.
    pub per_token: usize,
    /// Width inside an expert.
    pub width: usize,
    /// Whether the chosen experts' scores are made to sum up to 1.
    pub normalise: bool,
    /// Which layers have experts; the others have one feed-forward part as Llama.
    pub sparse: Vec<bool>,
}

/// A Llama-family model's shape and settings. All counts are positive and fit an `i32`.
///
/// ```no_run
/// # fn main() -> Result<(), oxmlx_lm::Error> {
/// let config = oxmlx_lm::LlamaConfig::from_folder("Llama-3.2-1B-Instruct-4bit")?;
/// assert_eq!(config.heads % config.kv_heads, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LlamaConfig {
    /// Which model of the family.
    pub architecture: Architecture,
    /// Rows of the embedding.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width inside the feed-forward part.
    pub intermediate_size: usize,
    /// How many layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Values a head; `heads * head_dim` need not be `hidden_size`.
    pub head_dim: usize,
    /// What RMS norm adds to the mean square.
    pub norm_eps: f32,
    /// Position embedding.
    pub rope: Rope,
    /// Whether the output head is the embedding. `None` if the file doesn't say: then it is exactly when the checkpoint has no
    /// `lm_head.weight`.
    pub tie_embeddings: Option<bool>,
    /// Whether the attention projections have biases.
    pub attention_bias: bool,
    /// Whether the feed-forward projections have biases.
    pub mlp_bias: bool,
    /// How the weights are quantized, as far as the configuration says; a GGUF file says it tensor by tensor.
    pub quantization: Option<Quantization>,
    /// The most tokens that the model was made for.
    pub max_context: usize,
    /// How many of the last tokens each layer's attention sees, itself included; `None` for all. One entry a layer.
    pub windows: Vec<Option<usize>>,
    /// What the architecture has beyond Llama's layers.
    pub beyond: Beyond,
    /// The token that begins a text, if there is one.
    pub bos_id: Option<u32>,
    /// The tokens that end a text, as the configuration has them; the tokenizer knows of more.
    pub eos_ids: Vec<u32>,
}

impl LlamaConfig {
    /// The sliding window of the layers that have one, if any.
    pub fn sliding_window(&self) -> Option<usize> {
        self.windows.iter().copied().flatten().next()
    }
}
