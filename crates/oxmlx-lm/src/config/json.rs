//! `LlamaConfig` from a folder's `config.json`.

use std::path::Path;

use super::beyond::beyond;
use super::{Architecture, Fields, JsonFile, LlamaConfig, Quantization, Rope, RopeScaling};
use crate::{Error, ErrorKind, Result};

/// More layers than any model has; bounds what a damaged file can make us allocate.
pub(super) const MAX_LAYERS: usize = 4096;

impl LlamaConfig {
    /// Reads `config.json` of a model folder.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it is missing; [`ErrorKind::Format`] if it isn't JSON; [`ErrorKind::Config`] for a field that is
    /// missing, has a wrong type or doesn't fit the others; [`ErrorKind::Unsupported`] for an architecture, rope scaling,
    /// activation or quantization that isn't implemented. File and field are named.
    pub fn from_folder(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let path = folder.join("config.json");
        if folder.is_dir() && path.symlink_metadata().is_err() {
            let what = "no config.json here: is it a model folder?";
            return Err(Error::new(ErrorKind::Io, what).at_path(folder));
        }
        let file = JsonFile::open(path)?;
        from_fields(&file.fields())
    }
}

fn from_fields(fields: &Fields<'_>) -> Result<LlamaConfig> {
    let architecture = architecture(fields)?;
    activation(fields, architecture)?;
    let hidden_size = fields.required_count("hidden_size")?;
    let layers = fields.required_count("num_hidden_layers")?;
    if layers > MAX_LAYERS {
        return Err(fields.error(ErrorKind::Config, "num_hidden_layers", format!("{layers} is over {MAX_LAYERS}")));
    }
    let heads = fields.required_count("num_attention_heads")?;
    let kv_heads = fields.count("num_key_value_heads")?.unwrap_or(heads);
    if !heads.is_multiple_of(kv_heads) {
        let what = format!("{heads} attention heads can't be shared out over {kv_heads}");
        return Err(fields.error(ErrorKind::Config, "num_key_value_heads", what));
    }
    let head_dim = match fields.count("head_dim")? {
        Some(head_dim) => head_dim,
        None if hidden_size.is_multiple_of(heads) => hidden_size / heads,
        None => {
            let what = format!("hidden_size {hidden_size} isn't divisible by {heads} heads, and there is no head_dim");
            return Err(fields.error(ErrorKind::Config, "num_attention_heads", what));
        }
    };
    if !head_dim.is_multiple_of(2) {
        let what = format!("{head_dim} is odd, rotary embedding needs pairs");
        return Err(fields.error(ErrorKind::Config, "head_dim", what));
    }
    let quantization = match fields.object("quantization")? {
        Some(quantization) => Some(Quantization::from_json(&quantization)?),
        None => mlx_quantization_config(fields)?,
    };
    Ok(LlamaConfig {
        architecture,
        vocab_size: fields.required_count("vocab_size")?,
        hidden_size,
        intermediate_size: fields.required_count("intermediate_size")?,
        layers,
        heads,
        kv_heads,
        head_dim,
        norm_eps: fields.required_positive("rms_norm_eps")? as f32,
        rope: rope(fields, architecture, head_dim)?,
        tie_embeddings: fields.bool("tie_word_embeddings")?,
        attention_bias: fields.bool("attention_bias")?.unwrap_or(false),
        mlp_bias: fields.bool("mlp_bias")?.unwrap_or(false),
        quantization,
        max_context: fields.required_count("max_position_embeddings")?,
        windows: windows(fields, architecture, layers)?,
        beyond: beyond(fields, architecture, layers, head_dim)?,
        bos_id: fields.token_ids("bos_token_id")?.first().copied(),
        eos_ids: fields.token_ids("eos_token_id")?,
    })
}

fn activation(fields: &Fields<'_>, architecture: Architecture) -> Result<()> {
    let (name, known) = match architecture {
        Architecture::Gemma3 => ("hidden_activation", "gelu_pytorch_tanh"),
        _ => ("hidden_act", "silu"),
    };
    match fields.str(name)?.filter(|&act| act != known) {
        None => Ok(()),
        Some(act) => {
            let what = format!("activation {act:?} isn't implemented, only {known}");
            Err(fields.error(ErrorKind::Unsupported, name, what))
        }
    }
}

fn architecture(fields: &Fields<'_>) -> Result<Architecture> {
    match fields.str("model_type")?.ok_or_else(|| fields.missing("model_type"))? {
        "llama" => Ok(Architecture::Llama),
        "mistral" => Ok(Architecture::Mistral),
        "gemma3_text" => Ok(Architecture::Gemma3),
        "qwen3_moe" => Ok(Architecture::Qwen3Moe),
        other => {
            let known = "llama, mistral, gemma3_text and qwen3_moe";
            let what = format!("architecture {other:?} isn't implemented, only {known}");
            Err(fields.error(ErrorKind::Unsupported, "model_type", what))
        }
    }
}

fn rope(fields: &Fields<'_>, architecture: Architecture, head_dim: usize) -> Result<Rope> {
    // Newer files put base and scaling into one object.
    let parameters = fields.object("rope_parameters")?;
    let scaling = match (&parameters, fields.object("rope_scaling")?) {
        (Some(object), _) if object.get("rope_type").is_some() => RopeScaling::from_json(object)?,
        (_, Some(object)) => RopeScaling::from_json(&object)?,
        _ => RopeScaling::None,
    };
    let theta = match parameters.map(|p| p.positive("rope_theta")).transpose()?.flatten() {
        Some(theta) => theta,
        None => fields.positive("rope_theta")?.unwrap_or(if architecture == Architecture::Gemma3 { 1e6 } else { 1e4 }),
    };
    if let Some(factor) = fields.positive("partial_rotary_factor")?.filter(|&f| f != 1.0) {
        let what = format!("{factor} isn't implemented for this family, only 1");
        return Err(fields.error(ErrorKind::Unsupported, "partial_rotary_factor", what));
    }
    let traditional = fields.bool("rope_traditional")?.unwrap_or(false);
    Ok(Rope { dims: head_dim, theta, traditional, scaling })
}

/// Which layers have a sliding window: those that `layer_types` says; without it all of Mistral's, all but every sixth (or another
/// `sliding_window_pattern`) of Gemma's, and none of the others'.
fn windows(fields: &Fields<'_>, architecture: Architecture, layers: usize) -> Result<Vec<Option<usize>>> {
    let window = fields.count("sliding_window")?;
    let Some(types) = fields.get("layer_types") else {
        return match architecture {
            Architecture::Mistral => Ok(vec![window; layers]),
            Architecture::Gemma3 => {
                let window = window.ok_or_else(|| fields.missing("sliding_window"))?;
                let pattern = fields.count("sliding_window_pattern")?.unwrap_or(6);
                Ok((1..=layers).map(|n| Some(window).filter(|_| !n.is_multiple_of(pattern))).collect())
            }
            _ => Ok(vec![None; layers]),
        };
    };
    let list = types.as_array().filter(|list| list.len() == layers);
    let list = list.ok_or_else(|| fields.wrong("layer_types", &format!("a list of {layers} layer types"), types))?;
    list.iter()
        .map(|kind| match kind.as_str() {
            Some("full_attention") => Ok(None),
            Some("sliding_attention") => window.map(Some).ok_or_else(|| fields.missing("sliding_window")),
            _ => Err(fields.wrong("layer_types", "full_attention or sliding_attention", kind)),
        })
        .collect()
}

/// `quantization_config` is MLX's if it has `group_size` and `bits` and names no other method; other methods are refused.
fn mlx_quantization_config(fields: &Fields<'_>) -> Result<Option<Quantization>> {
    let Some(config) = fields.object("quantization_config")? else { return Ok(None) };
    if let Some(method) = config.str("quant_method")? {
        let what = format!("quantization method {method:?} isn't implemented: use an MLX or GGUF version of the model");
        return Err(config.error(ErrorKind::Unsupported, "quant_method", what));
    }
    Quantization::from_json(&config).map(Some)
}
