//! The engine: a model, sequences with their caches, and one way to decode.
//!
//! A [`Sequence`] is what the model has seen; [`Engine::generate`] feeds it a prompt and gives tokens. While the caller handles one
//! token the next is already being computed: its forward pass is submitted before this token's value is read.

mod choose;
mod generation;
mod plan;
mod prefill;
mod sequence;

use crate::{LanguageModel, Result};

pub use generation::{FinishReason, Generation, Request};
pub use plan::{Piece, PlanSpec, PrefillPlan};
pub use prefill::PrefillProgress;
pub use sequence::Sequence;

/// A model that sequences decode with.
pub struct Engine {
    model: Box<dyn LanguageModel>,
}

impl Engine {
    /// An engine on this model.
    pub fn new(model: Box<dyn LanguageModel>) -> Self {
        Self { model }
    }

    /// The model.
    pub fn model(&self) -> &dyn LanguageModel {
        &*self.model
    }

    /// Opens a sequence that has seen nothing.
    pub fn open(&self) -> Sequence {
        Sequence::new(self.model.make_caches())
    }

    /// Feeds `prompt` to the sequence and starts to generate.
    ///
    /// What the sequence has seen already and the prompt begins with is not computed again; what it has seen beyond that is
    /// forgotten. So a chat passes its whole history each time.
    ///
    /// # Errors
    /// [`ErrorKind::Prompt`](crate::ErrorKind::Prompt) for an empty prompt or a token outside the vocabulary,
    /// [`ErrorKind::Context`](crate::ErrorKind::Context) when it is longer than the model's context,
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when `progress` said so; what the computation reports.
    pub fn generate<'a>(
        &'a self,
        sequence: &'a mut Sequence,
        prompt: &[u32],
        request: Request,
        progress: &mut dyn FnMut(PrefillProgress) -> bool,
    ) -> Result<Generation<'a>> {
        Generation::start(self, sequence, prompt, request, progress)
    }
}
