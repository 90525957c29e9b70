//! Drafts from a smaller model with caches of its own.

use oxmlx::Array;

use super::{Draft, Drafter, check_rewind};
use crate::cache::Cache;
use crate::language_model::{LanguageModel, Logits};
use crate::{Error, ErrorKind, Result, Sampler, SamplingParams};

/// A model that proposes: it must share the vocabulary of the one that it proposes to.
///
/// It follows the text by itself: each draft starts by forgetting what the text no longer has, and reading what it has more.
pub struct FullModelDrafter {
    model: Box<dyn LanguageModel>,
    caches: Vec<Box<dyn Cache>>,
    /// The tokens in the caches.
    seen: Vec<u32>,
    params: SamplingParams,
    sampler: Option<Sampler>,
}

/// How many tokens of a text are read at a time.
const PIECE: usize = 512;

impl FullModelDrafter {
    /// Proposes the model's most probable tokens.
    ///
    /// # Errors
    /// [`ErrorKind::Cache`] for caches that can't forget.
    pub fn new(model: Box<dyn LanguageModel>) -> Result<Self> {
        let caches = model.make_caches();
        check_rewind(&caches, 1)?;
        Ok(Self { model, caches, seen: Vec::new(), params: SamplingParams::greedy(), sampler: None })
    }

    /// Draws what it proposes. With [`Acceptance::Rejection`](super::Acceptance::Rejection) more drafts stand then; the nearer these
    /// parameters are to the sampling model's, the more.
    #[must_use]
    pub fn sampling(mut self, params: SamplingParams) -> Self {
        self.params = params;
        self.sampler = None;
        self
    }

    /// How many tokens its caches hold.
    pub fn cached(&self) -> usize {
        self.seen.len()
    }

    /// Reads `text` but for its last token, and forgets what is not in it: its caches are then as long as those of a model that is
    /// about to be fed that token.
    ///
    /// # Errors
    /// [`ErrorKind::Prompt`] for a token outside the vocabulary; what the computation reports.
    pub fn catch_up(&mut self, text: &[u32]) -> Result<()> {
        let vocab = self.model.vocab_size();
        if let Some(token) = text.iter().find(|token| **token as usize >= vocab) {
            let what =
                format!("token {token} is outside the draft model's vocabulary of {vocab}: the models don't fit");
            return Err(Error::new(ErrorKind::Prompt, what));
        }
        let wanted = &text[..text.len().saturating_sub(1)];
        let common = self.seen.iter().zip(wanted).take_while(|(a, b)| a == b).count();
        self.forget(self.seen.len() - common)?;
        for piece in wanted[common..].chunks(PIECE) {
            self.feed(piece)?;
            let arrays: Vec<Array> = self.caches.iter().flat_map(|cache| cache.arrays()).collect();
            oxmlx::eval(&arrays)?;
        }
        Ok(())
    }

    fn forget(&mut self, n: usize) -> Result<()> {
        for cache in &mut self.caches {
            cache.trim(n)?;
        }
        self.seen.truncate(self.seen.len() - n);
        Ok(())
    }

    /// Feeds tokens; the logits after the last.
    fn feed(&mut self, tokens: &[u32]) -> Result<Array> {
        let before = self.seen.len();
        let array = Array::from_slice(tokens, (1, tokens.len() as i32))?;
        let logits = self.model.forward(&array, &mut self.caches, Logits::Last);
        if logits.is_err() {
            // Some layers may have the tokens and others not. Trimming to what all of them had can't fail: they can rewind.
            for cache in &mut self.caches {
                cache.trim(cache.offset().saturating_sub(before))?;
            }
        } else {
            self.seen.extend_from_slice(tokens);
        }
        logits
    }
}

impl Drafter for FullModelDrafter {
    fn draft(&mut self, text: &[u32], most: usize) -> Result<Draft> {
        let room = self.model.max_context().saturating_sub(text.len());
        let (Some(&last), most) = (text.last(), most.min(room)) else { return Ok(Draft::default()) };
        if most == 0 {
            return Ok(Draft::default());
        }
        self.catch_up(text)?;
        let mut sampler = self.sampler.take().unwrap_or_else(|| Sampler::new(self.params.clone()));
        sampler.begin(text);
        let (mut tokens, mut shares) = (Vec::with_capacity(most), Vec::new());
        let mut token = last;
        while tokens.len() < most {
            let logits = self.feed(&[token])?.to_vec::<f32>()?;
            if !self.params.is_greedy() {
                shares.push(sampler.distribution(&logits)?);
            }
            token = sampler.sample(&logits)?;
            tokens.push(token);
        }
        self.sampler = Some(sampler);
        if shares.is_empty() { Ok(Draft::chosen(tokens)) } else { Draft::drawn(tokens, shares) }
    }
}
