//! Configurations: the fixtures' are read as written, wrong ones are errors that name file and field.

use oxmlx_lm::config::{Architecture, Beyond, LlamaConfig, RopeScaling};
use oxmlx_lm::gguf::Gguf;
use oxmlx_lm::{ErrorKind, ModelFiles};
use serde_json::{Value, json};

use crate::gguf_writer::{Val, Writer};
use crate::support::{fixture, json_fixture, smollm2, smollm2_is_left_out};

fn fixture_config(name: &str) -> LlamaConfig {
    LlamaConfig::from_folder(fixture(&format!("models/{name}"))).unwrap()
}

#[test]
fn the_fixtures_configurations_are_read_as_written() {
    let llama = fixture_config("llama");
    assert_eq!(llama.architecture, Architecture::Llama);
    assert_eq!((llama.vocab_size, llama.hidden_size, llama.intermediate_size), (320, 64, 160));
    assert_eq!((llama.layers, llama.heads, llama.kv_heads, llama.head_dim), (2, 4, 2, 16));
    assert_eq!((llama.norm_eps, llama.rope.theta, llama.max_context), (1e-5, 10000.0, 512));
    assert_eq!((llama.tie_embeddings, llama.attention_bias, llama.mlp_bias), (Some(true), false, false));
    assert_eq!((llama.rope.traditional, &llama.rope.scaling, llama.rope.dims), (false, &RopeScaling::None, 16));
    assert_eq!((llama.windows.len(), llama.sliding_window(), &llama.quantization), (2, None, &None));

    let biased = fixture_config("llama_untied_bias");
    assert_eq!((biased.tie_embeddings, biased.attention_bias, biased.mlp_bias), (Some(false), true, true));
    assert!(fixture_config("llama_traditional_rope").rope.traditional);
    for (name, bits) in [("llama_q4", 4), ("llama_q8", 8)] {
        let params = fixture_config(name).quantization.unwrap().of("model.layers.0.mlp.down_proj").unwrap();
        assert_eq!((params.group_size, params.bits), (32, bits));
    }
    let mistral = fixture_config("mistral");
    assert_eq!((mistral.architecture, mistral.sliding_window()), (Architecture::Mistral, None));
}

#[test]
fn gemma3_and_qwen3_moe_configurations_are_read_as_written() {
    let gemma = fixture_config("gemma3");
    let Beyond::Gemma3(own) = &gemma.beyond else { panic!("{:?}", gemma.beyond) };
    assert_eq!((own.query_scalar, own.local_rope.theta, gemma.rope.theta), (32.0, 1e4, 1e6));
    assert_eq!((gemma.architecture, gemma.windows[4], gemma.windows[5]), (Architecture::Gemma3, Some(8), None));
    let qwen = fixture_config("qwen3_moe");
    let Beyond::Qwen3Moe(experts) = &qwen.beyond else { panic!("{:?}", qwen.beyond) };
    assert_eq!((experts.count, experts.per_token, experts.width, experts.normalise), (8, 2, 48, true));
    assert_eq!(experts.sparse, [true, true]);
    let mixed = json!({"model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8,
        "num_hidden_layers": 6, "decoder_sparse_step": 2, "mlp_only_layers": [3]});
    let Beyond::Qwen3Moe(experts) = changed(mixed).unwrap().beyond else { panic!() };
    assert_eq!(experts.sparse, [false, true, false, false, false, true]);
    let field = |changes: Value| changed(changes).unwrap_err().field().unwrap().to_owned();
    let moe = |name: &str, value: Value| {
        let mut all =
            json!({"model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8});
        all[name] = value;
        field(all)
    };
    assert_eq!(moe("num_experts", Value::Null), "num_experts");
    assert_eq!(moe("num_experts_per_tok", json!(5)), "num_experts_per_tok");
    assert_eq!(moe("moe_intermediate_size", json!(0)), "moe_intermediate_size");
    assert_eq!(moe("mlp_only_layers", json!(["x"])), "mlp_only_layers");
    assert_eq!(field(json!({"model_type": "gemma3_text"})), "sliding_window");
    assert_eq!(field(json!({"model_type": "gemma3_text", "hidden_activation": "relu"})), "hidden_activation");
}

/// Numbers from mlx-lm's `Llama3RoPE` formula, run in Python in double precision.
#[test]
fn llama3_rope_periods_are_the_references() {
    let close = |got: &[f32], wanted: &[f64]| {
        got.iter().zip(wanted).all(|(&g, w)| (f64::from(g) / w - 1.0).abs() < 1e-6) && got.len() == wanted.len()
    };
    let rope = fixture_config("llama_rope3").rope;
    let wanted = [
        1.0,
        12.593981139216716,
        212.73183587779954,
        1096.9927027048293,
        5656.85424949238,
        29170.658948868437,
        150424.12372345573,
        775690.9789947431,
    ];
    assert!(close(&rope.periods().unwrap(), &wanted), "{:?}", rope.periods());
    let mut rope = rope;
    rope.dims = 128;
    if let RopeScaling::Llama3 { original_context, .. } = &mut rope.scaling {
        *original_context = 8192;
    }
    let periods = rope.periods().unwrap();
    let some = [0, 20, 30, 33, 35, 40, 63].map(|i| periods[i]);
    let wanted = [
        1.0,
        60.38486870573252,
        728.9195193413948,
        3198.0172253898677,
        10464.39701170014,
        29170.658948868437,
        3258468.935426179,
    ];
    assert!(close(&some, &wanted), "{some:?}");
}

/// A folder whose `config.json` is the llama fixture's with changes; null removes a field.
fn changed(changes: Value) -> Result<LlamaConfig, oxmlx_lm::Error> {
    let mut config = json_fixture("models/llama/config.json");
    for (name, value) in changes.as_object().unwrap() {
        config[name] = value.clone();
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.json"), config.to_string()).unwrap();
    LlamaConfig::from_folder(dir.path())
}

#[test]
fn f06_missing_and_wrong_fields_are_errors_that_name_file_and_field() {
    use ErrorKind::{Config, Unsupported};
    let scaling = |value: Value| json!({"rope_scaling": value});
    let cases = [
        ("hidden_size", Config, json!({"hidden_size": null})),
        ("vocab_size", Config, json!({"vocab_size": null})),
        ("model_type", Config, json!({"model_type": null})),
        ("max_position_embeddings", Config, json!({"max_position_embeddings": null})),
        ("hidden_size", Config, json!({"hidden_size": "64"})),
        ("hidden_size", Config, json!({"hidden_size": 64.5})),
        ("hidden_size", Config, json!({"hidden_size": -64})),
        ("intermediate_size", Config, json!({"intermediate_size": 0})),
        ("vocab_size", Config, json!({"vocab_size": 4294967296u64})),
        ("num_hidden_layers", Config, json!({"num_hidden_layers": 2147483647})),
        ("rms_norm_eps", Config, json!({"rms_norm_eps": "small"})),
        ("rope_theta", Config, json!({"rope_theta": -1.0})),
        ("tie_word_embeddings", Config, json!({"tie_word_embeddings": "yes"})),
        ("eos_token_id", Config, json!({"eos_token_id": {"a": 1}})),
        ("num_key_value_heads", Config, json!({"num_key_value_heads": 3})),
        ("num_attention_heads", Config, json!({"num_attention_heads": 6, "num_key_value_heads": 6, "head_dim": null})),
        ("head_dim", Config, json!({"head_dim": 15})),
        ("layer_types", Config, json!({"layer_types": ["full_attention"]})),
        ("layer_types", Config, json!({"layer_types": ["full_attention", "linear_attention"]})),
        ("sliding_window", Config, json!({"layer_types": ["full_attention", "sliding_attention"]})),
        ("model_type", Unsupported, json!({"model_type": "martian"})),
        ("hidden_act", Unsupported, json!({"hidden_act": "gelu"})),
        ("partial_rotary_factor", Unsupported, json!({"partial_rotary_factor": 0.5})),
        ("rope_scaling.rope_type", Config, scaling(json!({"factor": 2.0}))),
        ("rope_scaling.rope_type", Unsupported, scaling(json!({"rope_type": "yarn", "factor": 2.0}))),
        ("rope_scaling.factor", Config, scaling(json!({"type": "linear"}))),
        ("rope_scaling.low_freq_factor", Config, scaling(json!({"rope_type": "llama3", "factor": 2.0}))),
        ("rope_scaling", Config, scaling(json!([1]))),
        ("quantization.bits", Config, json!({"quantization": {"group_size": 32}})),
        ("quantization.bits", Unsupported, json!({"quantization": {"group_size": 32, "bits": 7}})),
        ("quantization.group_size", Unsupported, json!({"quantization": {"group_size": 48, "bits": 4}})),
        ("quantization.mode", Unsupported, json!({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}})),
        ("quantization.model.x", Config, json!({"quantization": {"group_size": 32, "bits": 4, "model.x": 5}})),
        (
            "quantization_config.quant_method",
            Unsupported,
            json!({"quantization_config": {"quant_method": "gptq", "bits": 4}}),
        ),
    ];
    for (field, kind, changes) in cases {
        let error = changed(changes.clone()).unwrap_err();
        assert_eq!((error.field(), error.kind()), (Some(field), kind), "{changes}: {error}");
        assert!(error.path().unwrap().ends_with("config.json"));
    }
}

#[test]
fn a_folder_without_config_and_one_that_is_no_json_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = ModelFiles::open(dir.path()).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(dir.path())));
    assert!(error.to_string().contains("config.json"), "{error}");
    std::fs::write(dir.path().join("config.json"), "[1").unwrap();
    assert_eq!(ModelFiles::open(dir.path()).unwrap_err().kind(), ErrorKind::Format);
    let missing = dir.path().join("missing");
    let error = ModelFiles::open(&missing).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(&*missing)));
}

#[test]
fn rope_windows_and_quantization_are_read_in_all_their_spellings() {
    let config = changed(json!({"rope_scaling": {"type": "linear", "factor": 4.0}})).unwrap();
    assert_eq!((config.rope.scale(), config.rope.periods()), (0.25, None));
    let new = json!({"rope_theta": null, "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 5e5}});
    let config = changed(new).unwrap();
    assert_eq!((config.rope.theta, config.rope.scale()), (5e5, 0.5));
    assert_eq!(changed(json!({"rope_scaling": {"rope_type": "default"}})).unwrap().rope.scaling, RopeScaling::None);

    assert_eq!(changed(json!({"model_type": "mistral", "sliding_window": 8})).unwrap().windows, [Some(8), Some(8)]);
    assert_eq!(changed(json!({"sliding_window": 8})).unwrap().windows, [None, None]);
    let mixed = json!({"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]});
    assert_eq!(changed(mixed).unwrap().windows, [Some(8), None]);

    let quantized = json!({"quantization": {"group_size": 64, "bits": 4, "mode": "affine",
        "lm_head": {"bits": 8}, "model.embed_tokens": false, "model.a": true}});
    let quantization = changed(quantized).unwrap().quantization.unwrap();
    let of = |m: &str| quantization.of(m).map(|p| (p.group_size, p.bits));
    assert_eq!(
        (of("lm_head"), of("model.embed_tokens"), of("model.a"), of("other")),
        (Some((64, 8)), None, Some((64, 4)), Some((64, 4)))
    );

    assert_eq!(changed(json!({"eos_token_id": [2, 5]})).unwrap().eos_ids, [2, 5]);
    assert_eq!(changed(json!({"eos_token_id": 2})).unwrap().eos_ids, [2]);
    assert_eq!(changed(json!({"tie_word_embeddings": null})).unwrap().tie_embeddings, None);
    assert_eq!(changed(json!({"num_key_value_heads": null})).unwrap().kv_heads, 4);
}

#[test]
fn smollm2s_metadata_give_its_configuration() {
    if smollm2_is_left_out() {
        return;
    }
    let files = ModelFiles::open(smollm2()).unwrap();
    let config = files.config();
    assert_eq!(
        (config.vocab_size, config.hidden_size, config.intermediate_size, config.layers),
        (49152, 576, 1536, 30)
    );
    assert_eq!((config.heads, config.kv_heads, config.head_dim, config.max_context), (9, 3, 64, 8192));
    assert_eq!((config.rope.theta, config.rope.traditional, config.rope.dims), (100_000.0, true, 64));
    assert_eq!((config.norm_eps, config.tie_embeddings, config.attention_bias), (1e-5, Some(true), false));
    assert!(files.ties_embeddings());
}

/// The least that a llama file must say, less or otherwise what `change` says: (key, None) leaves it out.
fn metadata(change: (&str, Option<Val>)) -> Writer {
    let base = [
        ("general.architecture", Val::str("llama")),
        ("llama.vocab_size", Val::U32(300)),
        ("llama.embedding_length", Val::U32(64)),
        ("llama.block_count", Val::U32(2)),
        ("llama.attention.head_count", Val::U32(4)),
        ("llama.attention.head_count_kv", Val::U32(2)),
        ("llama.feed_forward_length", Val::U32(128)),
        ("llama.attention.layer_norm_rms_epsilon", Val::F32(1e-5)),
        ("llama.context_length", Val::U32(256)),
    ];
    let kept = base.into_iter().filter(|(k, _)| *k != change.0);
    let changed = change.1.map(|v| (change.0, v));
    kept.chain(changed).fold(Writer::default(), |w, (k, v)| w.key(k, v))
}

#[test]
fn f06_gguf_metadata_that_are_missing_wrong_or_not_implemented_are_named() {
    use ErrorKind::{Config, Unsupported};
    let cases = [
        (Config, "general.architecture", None),
        (Unsupported, "general.architecture", Some(Val::str("gemma3"))),
        (Config, "llama.embedding_length", None),
        (Config, "llama.block_count", Some(Val::U32(0))),
        (Config, "llama.block_count", Some(Val::U32(1 << 30))),
        (Config, "llama.block_count", Some(Val::str("2"))),
        (Config, "llama.vocab_size", None),
        (Config, "llama.context_length", None),
        (Config, "llama.attention.head_count", Some(Val::Arr(4, vec![Val::U32(4)]))),
        (Config, "llama.attention.head_count", Some(Val::U32(6))),
        (Config, "llama.attention.head_count_kv", Some(Val::U32(3))),
        (Config, "llama.attention.layer_norm_rms_epsilon", Some(Val::F32(f32::NAN))),
        (Config, "llama.rope.dimension_count", Some(Val::U32(17))),
        (Config, "llama.rope.scaling.factor", None),
        (Unsupported, "llama.rope.scaling.type", Some(Val::str("yarn"))),
        (Unsupported, "llama.expert_count", Some(Val::U32(8))),
        (Unsupported, "llama.attention.value_length", Some(Val::U32(32))),
    ];
    for (kind, key, value) in cases {
        let mut writer = metadata((key, value));
        if key == "llama.rope.scaling.factor" {
            writer = writer.key("llama.rope.scaling.type", Val::str("linear"));
        }
        let file = writer.build();
        let error = LlamaConfig::from_gguf(&Gguf::parse(&file).unwrap()).unwrap_err();
        assert_eq!((error.field(), error.kind()), (Some(key), kind), "{error}");
    }
}

#[test]
fn gguf_rope_divisors_biases_and_untied_heads_are_seen_in_the_tensors() {
    let floats = |v: &[f32]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let divisors = [1.0, 1.0, 2.0, 2.0, 4.0, 8.0, 8.0, 8.0];
    let file = metadata(("llama.rope.freq_base", Some(Val::F32(10_000.0))))
        .tensor("rope_freqs.weight", &[8], 0, floats(&divisors))
        .tensor("output.weight", &[1], 0, floats(&[0.0]))
        .tensor("blk.0.attn_q.bias", &[1], 0, floats(&[0.0]))
        .build();
    let config = LlamaConfig::from_gguf(&Gguf::parse(&file).unwrap()).unwrap();
    assert_eq!((config.tie_embeddings, config.attention_bias, config.mlp_bias), (Some(false), true, false));
    let wanted: Vec<f32> = (0..8).map(|i| (10_000f64.powf(i as f64 / 8.0) * f64::from(divisors[i])) as f32).collect();
    assert_eq!(config.rope.periods().unwrap(), wanted);
    let file = metadata(("", None)).tensor("rope_freqs.weight", &[3], 0, floats(&[1.0; 3])).build();
    assert_eq!(LlamaConfig::from_gguf(&Gguf::parse(&file).unwrap()).unwrap_err().tensor(), Some("rope_freqs.weight"));
}
