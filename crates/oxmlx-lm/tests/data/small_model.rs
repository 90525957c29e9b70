//! A GGUF file with something of everything, to damage.

use crate::gguf_writer::{Val, Writer};

/// A complete small model: metadata of every type, a tokenizer, a template, tensors of several types.
pub(crate) fn small_model() -> Vec<u8> {
    let tokens: Vec<String> = (0..300).map(|i| format!("t{i}")).chain(["a".into(), "b".into(), "ab".into()]).collect();
    let kinds = (0..tokens.len()).map(|i| Val::I32([1, 3, 4, 6][i % 4])).collect();
    let scores = (0..tokens.len()).map(|i| Val::F32(-(i as f32))).collect();
    Writer::default()
        .key("general.architecture", Val::str("llama"))
        .key("general.alignment", Val::U32(32))
        .key("llama.vocab_size", Val::U32(303))
        .key("llama.embedding_length", Val::U64(64))
        .key("llama.block_count", Val::U16(2))
        .key("llama.attention.head_count", Val::U8(4))
        .key("llama.feed_forward_length", Val::I32(64))
        .key("llama.attention.layer_norm_rms_epsilon", Val::F32(1e-5))
        .key("llama.context_length", Val::I64(256))
        .key("double", Val::F64(0.1))
        .key("nested", Val::Arr(9, vec![Val::Arr(5, vec![Val::I32(1); 9]), Val::Arr(8, vec![Val::str("x")])]))
        .key("tokenizer.ggml.model", Val::str("llama"))
        .key("tokenizer.ggml.tokens", Val::strs(tokens))
        .key("tokenizer.ggml.token_type", Val::Arr(5, kinds))
        .key("tokenizer.ggml.scores", Val::Arr(6, scores))
        .key("tokenizer.ggml.merges", Val::strs(["a b"]))
        .key("tokenizer.ggml.bos_token_id", Val::U32(1))
        .key("tokenizer.ggml.add_bos_token", Val::Bool(true))
        .key("tokenizer.chat_template", Val::str("{% for m in messages %}{{ m.role + m['content'] }}{% endfor %}"))
        .tensor("token_embd.weight", &[303, 64], 8, vec![3; 303 * 68])
        .tensor("blk.0.attn_q.weight", &[64, 64], 2, vec![5; 64 * 36])
        .tensor("blk.0.attn_k.weight", &[4, 64], 3, vec![7; 4 * 40])
        .tensor("output_norm.weight", &[64], 0, vec![0; 256])
        .tensor("rope_freqs.weight", &[8], 0, vec![0; 32])
        .build()
}
