//! llama.cpp's tensor names as Hugging Face's.

/// The Hugging Face name of the module behind a llama.cpp tensor name, with the name's last part: `blk.3.attn_q.weight` gives
/// `model.layers.3.self_attn.q_proj` and `weight`. `None` for names that aren't known.
pub(super) fn module_of(name: &str) -> Option<(String, &str)> {
    let (stem, part) = name.rsplit_once('.')?;
    if !matches!(part, "weight" | "bias") {
        return None;
    }
    let module = match stem {
        "token_embd" => "model.embed_tokens".into(),
        "output_norm" => "model.norm".into(),
        "output" => "lm_head".into(),
        _ => {
            let (layer, inner) = stem.strip_prefix("blk.")?.split_once('.')?;
            let layer: usize = layer.parse().ok()?;
            let inner = match inner {
                "attn_norm" => "input_layernorm",
                "attn_q" => "self_attn.q_proj",
                "attn_k" => "self_attn.k_proj",
                "attn_v" => "self_attn.v_proj",
                "attn_output" => "self_attn.o_proj",
                "attn_q_norm" => "self_attn.q_norm",
                "attn_k_norm" => "self_attn.k_norm",
                "ffn_norm" => "post_attention_layernorm",
                "ffn_gate" => "mlp.gate_proj",
                "ffn_up" => "mlp.up_proj",
                "ffn_down" => "mlp.down_proj",
                _ => return None,
            };
            format!("model.layers.{layer}.{inner}")
        }
    };
    Some((module, part))
}

#[cfg(test)]
mod tests {
    use super::module_of;

    #[test]
    fn layer_and_outer_names_are_translated_and_others_left() {
        let of = |n| module_of(n).map(|(m, p)| format!("{m} {p}"));
        assert_eq!(of("blk.12.attn_q.weight").as_deref(), Some("model.layers.12.self_attn.q_proj weight"));
        assert_eq!(of("blk.0.ffn_down.bias").as_deref(), Some("model.layers.0.mlp.down_proj bias"));
        assert_eq!(of("output.weight").as_deref(), Some("lm_head weight"));
        assert_eq!(of("token_embd.weight").as_deref(), Some("model.embed_tokens weight"));
        for unknown in ["rope_freqs.weight", "blk.x.attn_q.weight", "blk.0.attn_q", "blk.0.attn_q.scale", ""] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }
}
