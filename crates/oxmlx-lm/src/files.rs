//! A model's files opened together.

use std::path::Path;
use std::sync::Arc;

use crate::gguf::Gguf;
use crate::template::ChatTemplate;
use crate::{Checkpoint, Error, ErrorKind, LlamaConfig, Mapped, Result, Tokenizer};

/// A model folder or a GGUF file: configuration and tensors at once, tokenizer and chat template when asked for.
#[derive(Debug)]
pub struct ModelFiles {
    config: LlamaConfig,
    checkpoint: Checkpoint,
    gguf: Option<Arc<Mapped>>,
}

impl ModelFiles {
    /// Opens a folder with `config.json` and SafeTensors, or a GGUF file.
    ///
    /// # Errors
    /// What [`LlamaConfig::from_folder`], [`LlamaConfig::from_gguf`] and [`Checkpoint::open`] return; and
    /// [`ErrorKind::Format`] for a file that isn't GGUF.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            let config = LlamaConfig::from_folder(path)?;
            return Ok(Self { config, checkpoint: Checkpoint::open(path)?, gguf: None });
        }
        let file = Arc::new(Mapped::open(path)?);
        if path.extension().is_some_and(|e| e == "safetensors") && !file.starts_with(b"GGUF") {
            let what = "a safetensors file alone has no configuration: give the folder that it is in";
            return Err(Error::new(ErrorKind::Format, what).at_path(path));
        }
        let gguf = Gguf::parse(&file).map_err(|e| e.at_path(path))?;
        let config = LlamaConfig::from_gguf(&gguf).map_err(|e| e.at_path(path))?;
        let checkpoint = Checkpoint::from_gguf(&gguf, &file)?;
        Ok(Self { config, checkpoint, gguf: Some(file.clone()) })
    }

    /// The configuration.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
    }

    /// The tensors.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The folder or file that was opened.
    pub fn path(&self) -> &Path {
        self.checkpoint.path()
    }

    /// Whether the output head is the embedding.
    pub fn ties_embeddings(&self) -> bool {
        self.config.tie_embeddings.unwrap_or_else(|| !self.checkpoint.contains("lm_head.weight"))
    }

    /// Builds the tokenizer, which takes a fraction of a second for a large vocabulary.
    ///
    /// # Errors
    /// What [`Tokenizer::from_folder`] and [`Tokenizer::from_gguf`] return.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        self.with_gguf(Tokenizer::from_gguf).unwrap_or_else(|| Tokenizer::from_folder(self.path()))
    }

    /// The chat template, or ChatML where there is none and the vocabulary has its tokens.
    ///
    /// # Errors
    /// What [`ChatTemplate::from_folder`] and [`ChatTemplate::from_gguf`] return.
    pub fn chat_template(&self, tokenizer: &Tokenizer) -> Result<ChatTemplate> {
        self.with_gguf(|gguf| ChatTemplate::from_gguf(gguf, tokenizer))
            .unwrap_or_else(|| ChatTemplate::from_folder(self.path(), tokenizer))
    }

    fn with_gguf<T>(&self, read: impl FnOnce(&Gguf<'_>) -> Result<T>) -> Option<Result<T>> {
        let file = self.gguf.as_ref()?;
        Some(Gguf::parse(file).and_then(|gguf| read(&gguf)).map_err(|e| e.at_path(self.path())))
    }
}
