//! A model ready to answer: engine, tokenizer, template.

use std::path::Path;
use std::time::{Duration, Instant};

use oxmlx_lm::{ChatTemplate, DirectEngine, GenerationPolicy, LanguageModel, Message, ModelFiles, Tokenizer, models};

use crate::failure::{Failure, say};
use crate::progress::{Unit, bar};

/// Opens the files; what is odd about them is told on standard error.
pub(crate) fn open_files(path: &Path) -> Result<ModelFiles, Failure> {
    let files = ModelFiles::open(path)?;
    for warning in files.checkpoint().warnings() {
        say(&format!("oxmlx: warning: {warning}"));
    }
    Ok(files)
}

/// Loads the weights, with a bar on a terminal.
pub(crate) fn load_model(files: &ModelFiles) -> Result<Box<dyn LanguageModel>, Failure> {
    let bar = bar("loading", files.checkpoint().file_bytes() as u64, Unit::Bytes);
    Ok(models::load(files, &mut |bytes| bar.set_position(bytes as u64))?)
}

/// An engine with what turns text into its tokens and back.
pub(crate) struct Loaded {
    pub(crate) engine: DirectEngine,
    pub(crate) tokenizer: Tokenizer,
    pub(crate) policy: GenerationPolicy,
    files: ModelFiles,
    pub(crate) took: Duration,
}

impl Loaded {
    /// Opens the model, with a bar on a terminal.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let started = Instant::now();
        let files = open_files(path)?;
        // Before the weights, which may take long.
        let tokenizer = files.tokenizer()?;
        let model = load_model(&files)?;
        let policy = GenerationPolicy::new(&*model, tokenizer.eos_ids());
        Ok(Self { engine: DirectEngine::new(model), tokenizer, policy, files, took: started.elapsed() })
    }

    /// The model's chat template.
    pub(crate) fn template(&self) -> Result<ChatTemplate, Failure> {
        Ok(self.files.chat_template(&self.tokenizer)?)
    }

    /// The tokens of a conversation, ready for the model's answer.
    pub(crate) fn conversation(&self, template: &ChatTemplate, messages: &[Message]) -> Result<Vec<u32>, Failure> {
        Ok(self.tokenizer.encode_prompt(&template.render(messages)?)?)
    }
}
