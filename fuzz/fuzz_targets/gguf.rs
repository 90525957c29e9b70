//! A GGUF file: metadata, tensors, configuration, tokenizer and template, by our reader; and MLX's loader behind oxmlx's checks.

#![no_main]

#[allow(dead_code, reason = "shared with tests, which use the rest")]
#[path = "../../crates/oxmlx-lm/tests/data/gguf_writer.rs"]
mod gguf_writer;
#[path = "../../crates/oxmlx-lm/tests/data/small_model.rs"]
mod small_model;

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use oxmlx_lm::gguf::Gguf;
use oxmlx_lm::{ChatTemplate, Checkpoint, LlamaConfig, Mapped, Message, Tokenizer};

/// Puts a sound file where libFuzzer starts from.
fn seed() {
    if let Some(corpus) = std::env::var_os("OXMLX_FUZZ_CORPUS") {
        let path = std::path::Path::new(&corpus).join("small_model");
        std::fs::write(&path, small_model::small_model()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

fuzz_target!(init: seed(), |data: &[u8]| {
    if let Ok(file) = oxmlx::io::load_gguf_bytes(data) {
        file.arrays.iter().for_each(|(_, array)| drop(array.eval()));
    }
    let file = Arc::new(Mapped::from_vec("fuzz.gguf", data.to_vec()));
    let Ok(gguf) = Gguf::parse(&file) else { return };
    gguf.tensors().iter().for_each(|tensor| drop(tensor.values()));
    let _ = LlamaConfig::from_gguf(&gguf);
    if let Ok(checkpoint) = Checkpoint::from_gguf(&gguf, &file) {
        checkpoint.names().for_each(|name| drop(checkpoint.tensor(name)));
    }
    if let Ok(tokenizer) = Tokenizer::from_gguf(&gguf) {
        let _ = tokenizer.encode("ab ba").and_then(|ids| tokenizer.decode(&ids));
        let _ = ChatTemplate::from_gguf(&gguf, &tokenizer).and_then(|t| t.render(&[Message::user("x")]));
    }
});
