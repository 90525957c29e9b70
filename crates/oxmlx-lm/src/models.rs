//! The architectures: each is a kind of layer, built of the same parts, in one decoder.

mod attention;
mod decoder;
mod gemma3;
mod llama;
mod mlp;
mod qwen3_moe;

use self::decoder::Decoder;
use crate::config::Beyond;
use crate::{LanguageModel, ModelFiles, Result};

/// Loads the model of opened files; `progress` gets the bytes of weights read so far.
///
/// # Errors
/// [`ErrorKind::Weights`](crate::ErrorKind::Weights) when a tensor is missing or misfits, naming it.
pub fn load(files: &ModelFiles, progress: &mut dyn FnMut(usize)) -> Result<Box<dyn LanguageModel>> {
    Ok(match files.config().beyond {
        Beyond::Nothing => Box::new(Decoder::<llama::Layer>::load(files, progress)?),
        Beyond::Gemma3(_) => Box::new(Decoder::<gemma3::Layer>::load(files, progress)?),
        Beyond::Qwen3Moe(_) => Box::new(Decoder::<qwen3_moe::Layer>::load(files, progress)?),
    })
}
