//! What Gemma 3 and Qwen 3's mixture of experts have in `config.json` beyond Llama's fields.

use super::{Architecture, Beyond, ExpertsConfig, Fields, Gemma3Config, Rope, RopeScaling};
use crate::{ErrorKind, Result};

pub(super) fn beyond(
    fields: &Fields<'_>,
    architecture: Architecture,
    layers: usize,
    head_dim: usize,
) -> Result<Beyond> {
    Ok(match architecture {
        Architecture::Gemma3 => {
            let theta = fields.positive("rope_local_base_freq")?.unwrap_or(1e4);
            let local_rope = Rope { dims: head_dim, theta, traditional: false, scaling: RopeScaling::None };
            let query_scalar = fields.positive("query_pre_attn_scalar")?.unwrap_or(256.0) as f32;
            Beyond::Gemma3(Gemma3Config { query_scalar, local_rope })
        }
        Architecture::Qwen3Moe => Beyond::Qwen3Moe(experts(fields, layers)?),
        _ => Beyond::Nothing,
    })
}

fn experts(fields: &Fields<'_>, layers: usize) -> Result<ExpertsConfig> {
    let count = fields.required_count("num_experts")?;
    let per_token = fields.required_count("num_experts_per_tok")?;
    if per_token > count {
        let what = format!("{per_token} is more than num_experts {count}");
        return Err(fields.error(ErrorKind::Config, "num_experts_per_tok", what));
    }
    let step = fields.count("decoder_sparse_step")?.unwrap_or(1);
    const DENSE: &str = "mlp_only_layers";
    let dense: Vec<u64> = match fields.get(DENSE) {
        None => Vec::new(),
        Some(value) => {
            let numbers = value.as_array().and_then(|list| list.iter().map(serde_json::Value::as_u64).collect());
            numbers.ok_or_else(|| fields.wrong(DENSE, "a list of layers' numbers", value))?
        }
    };
    Ok(ExpertsConfig {
        count,
        per_token,
        width: fields.required_count("moe_intermediate_size")?,
        normalise: fields.bool("norm_topk_prob")?.unwrap_or(false),
        sparse: (0..layers).map(|n| !dense.contains(&(n as u64)) && (n + 1).is_multiple_of(step)).collect(),
    })
}
