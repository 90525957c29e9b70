//! `LlamaConfig` from the metadata of a GGUF file.

use super::json::MAX_LAYERS;
use super::{Architecture, Beyond, LlamaConfig, Rope, RopeScaling};
use crate::gguf::{Gguf, Values};
use crate::{Error, ErrorKind, Result};

const ROPE_FREQS: &str = "rope_freqs.weight";

impl LlamaConfig {
    /// Reads the `llama.*` keys. The weights of such files are permuted so that rope pairs neighbours: `rope.traditional` is
    /// true.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a key that is missing, has a wrong type or doesn't fit the others; [`ErrorKind::Unsupported`]
    /// for an architecture other than `llama`, experts, or a rope scaling other than linear and Llama 3's. The key is named.
    pub fn from_gguf(gguf: &Gguf<'_>) -> Result<Self> {
        const ARCHITECTURE: &str = "general.architecture";
        match gguf.str(ARCHITECTURE)?.ok_or_else(|| missing(ARCHITECTURE))? {
            "llama" => {}
            other => {
                let what = format!("architecture {other:?} isn't implemented, only llama");
                return Err(unsupported(ARCHITECTURE, what));
            }
        }
        if gguf.usize("llama.expert_count")?.is_some_and(|n| n > 0) {
            return Err(unsupported("llama.expert_count", "mixtures of experts aren't implemented".into()));
        }
        let hidden_size = required_count(gguf, "llama.embedding_length")?;
        let layers = required_count(gguf, "llama.block_count")?;
        if layers > MAX_LAYERS {
            return Err(wrong("llama.block_count", format!("{layers} is over {MAX_LAYERS}")));
        }
        let heads = required_count(gguf, "llama.attention.head_count")?;
        let kv_heads = count(gguf, "llama.attention.head_count_kv")?.unwrap_or(heads);
        if !heads.is_multiple_of(kv_heads) {
            let what = format!("{heads} attention heads can't be shared out over {kv_heads}");
            return Err(wrong("llama.attention.head_count_kv", what));
        }
        let head_dim = match count(gguf, "llama.attention.key_length")? {
            Some(n) => n,
            None if hidden_size.is_multiple_of(heads) => hidden_size / heads,
            None => {
                let what = format!("llama.embedding_length {hidden_size} isn't divisible by {heads} heads");
                return Err(wrong("llama.attention.head_count", what));
            }
        };
        if let Some(n) = count(gguf, "llama.attention.value_length")?.filter(|&n| n != head_dim) {
            let what = format!("{n} differs from the keys' {head_dim}, which isn't implemented");
            return Err(unsupported("llama.attention.value_length", what));
        }
        let window = count(gguf, "llama.attention.sliding_window")?;
        Ok(Self {
            architecture: Architecture::Llama,
            vocab_size: vocab_size(gguf)?,
            hidden_size,
            intermediate_size: required_count(gguf, "llama.feed_forward_length")?,
            layers,
            heads,
            kv_heads,
            head_dim,
            norm_eps: required_positive(gguf, "llama.attention.layer_norm_rms_epsilon")? as f32,
            rope: rope(gguf, head_dim)?,
            tie_embeddings: Some(gguf.tensor("output.weight").is_none()),
            attention_bias: gguf.tensor("blk.0.attn_q.bias").is_some(),
            mlp_bias: gguf.tensor("blk.0.ffn_up.bias").is_some(),
            quantization: None,
            max_context: required_count(gguf, "llama.context_length")?,
            windows: vec![window; layers],
            beyond: Beyond::Nothing,
            bos_id: token_id(gguf, "tokenizer.ggml.bos_token_id")?,
            eos_ids: token_id(gguf, "tokenizer.ggml.eos_token_id")?.into_iter().collect(),
        })
    }
}

fn vocab_size(gguf: &Gguf<'_>) -> Result<usize> {
    // The embedding's own rows; the metadata may leave the size out.
    match gguf.tensor("token_embd.weight").map(|t| t.shape()) {
        Some(&[rows, _]) if rows > 0 && i32::try_from(rows).is_ok() => Ok(rows),
        _ => match count(gguf, "llama.vocab_size")? {
            Some(n) => Ok(n),
            None => gguf.strs("tokenizer.ggml.tokens")?.map(<[_]>::len).ok_or_else(|| missing("llama.vocab_size")),
        },
    }
}

fn rope(gguf: &Gguf<'_>, head_dim: usize) -> Result<Rope> {
    const DIMS: &str = "llama.rope.dimension_count";
    const TYPE: &str = "llama.rope.scaling.type";
    const FACTOR: &str = "llama.rope.scaling.factor";
    const OLD_FACTOR: &str = "llama.rope.scale_linear";
    let dims = count(gguf, DIMS)?.unwrap_or(head_dim);
    if dims > head_dim || !dims.is_multiple_of(2) {
        return Err(wrong(DIMS, format!("{dims} isn't an even number up to the head size {head_dim}")));
    }
    let theta = positive(gguf, "llama.rope.freq_base")?.unwrap_or(10_000.0);
    let mut scaling = match gguf.str(TYPE)? {
        None => match positive(gguf, OLD_FACTOR)? {
            Some(factor) if factor != 1.0 => RopeScaling::Linear { factor },
            _ => RopeScaling::None,
        },
        Some("none") => RopeScaling::None,
        Some("linear") => RopeScaling::Linear { factor: required_positive(gguf, FACTOR)? },
        Some(other) => {
            return Err(unsupported(TYPE, format!("rope scaling {other:?} isn't implemented, only none and linear")));
        }
    };
    if let Some(tensor) = gguf.tensor(ROPE_FREQS) {
        if scaling != RopeScaling::None {
            return Err(unsupported(
                TYPE,
                format!("linear scaling together with a tensor {ROPE_FREQS} isn't implemented"),
            ));
        }
        scaling = match tensor.values()? {
            Values::Plain(crate::weights::Dtype::F32, bytes) if bytes.len() == dims / 2 * 4 => {
                RopeScaling::Divisors(bytes.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect())
            }
            _ => {
                let what =
                    format!("wanted {} F32 values, got shape {:?} of {}", dims / 2, tensor.shape(), tensor.ggml_type());
                return Err(Error::new(ErrorKind::Config, what).at_tensor(ROPE_FREQS));
            }
        };
    }
    Ok(Rope { dims, theta, traditional: true, scaling })
}

/// The id of `key`, `None` if missing or one that stands for none.
fn token_id(gguf: &Gguf<'_>, key: &str) -> Result<Option<u32>> {
    Ok(gguf.usize(key)?.and_then(|n| u32::try_from(n).ok()).filter(|&n| n != u32::MAX))
}

/// A positive integer that fits an `i32`, as MLX's shapes do.
fn count(gguf: &Gguf<'_>, key: &str) -> Result<Option<usize>> {
    let Some(n) = gguf.usize(key)? else { return Ok(None) };
    if n == 0 || i32::try_from(n).is_err() {
        return Err(wrong(key, format!("expected a positive integer, got {n}")));
    }
    Ok(Some(n))
}

fn required_count(gguf: &Gguf<'_>, key: &str) -> Result<usize> {
    count(gguf, key)?.ok_or_else(|| missing(key))
}

fn positive(gguf: &Gguf<'_>, key: &str) -> Result<Option<f64>> {
    let Some(x) = gguf.f64(key)? else { return Ok(None) };
    if !(x.is_finite() && x > 0.0) {
        return Err(wrong(key, format!("expected a positive number, got {x}")));
    }
    Ok(Some(x))
}

fn required_positive(gguf: &Gguf<'_>, key: &str) -> Result<f64> {
    positive(gguf, key)?.ok_or_else(|| missing(key))
}

fn missing(key: &str) -> Error {
    wrong(key, "missing, the model needs it".into())
}

fn wrong(key: &str, what: String) -> Error {
    Error::new(ErrorKind::Config, what).at_field(key)
}

fn unsupported(key: &str, what: String) -> Error {
    Error::new(ErrorKind::Unsupported, what).at_field(key)
}
