//! The architectures.

mod llama;

use crate::{LanguageModel, ModelFiles, Result};

pub use llama::Llama;

/// Loads the model of opened files; `progress` gets the bytes of weights read so far.
///
/// # Errors
/// [`ErrorKind::Weights`](crate::ErrorKind::Weights) when a tensor is missing or misfits, naming it.
pub fn load(files: &ModelFiles, progress: &mut dyn FnMut(usize)) -> Result<Box<dyn LanguageModel>> {
    Ok(Box::new(Llama::load(files, progress)?))
}
