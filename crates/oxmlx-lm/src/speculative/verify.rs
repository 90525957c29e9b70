//! One round: the model looks at a draft, and its caches keep what stands.

use oxmlx::Array;

use super::{Acceptance, Draft, Verdict};
use crate::cache::Cache;
use crate::language_model::{LanguageModel, Logits};
use crate::{Error, ErrorKind, Result, Sampler};

/// Whether caches can forget `drafted` tokens after they were fed: asked before anything runs.
///
/// # Errors
/// [`ErrorKind::Cache`], naming the layer and the kind of its cache.
pub fn check_rewind(caches: &[Box<dyn Cache>], drafted: usize) -> Result<()> {
    let short = caches.iter().enumerate().find(|(_, cache)| cache.slack().is_some_and(|slack| slack < drafted));
    match short {
        None => Ok(()),
        Some((layer, cache)) => {
            let (kind, slack) = (cache.kind(), cache.slack().unwrap_or(0));
            let what = format!(
                "layer {layer}: the {kind} cache can forget {slack} tokens and speculation needs {drafted}: draft fewer, or use another cache"
            );
            Err(Error::new(ErrorKind::Cache, what))
        }
    }
}

/// Feeds what `caches` lack of `text` and the draft in one pass, judges the draft, and makes the caches forget what fell. They hold the text
/// and the verdict's tokens afterwards, but for the last one where that is the model's own.
///
/// `text` is the prompt and what was said since; `sampler` must have it as history. Without a draft this is a plain step.
///
/// # Errors
/// [`ErrorKind::Cache`] for caches that can't rewind and [`ErrorKind::Sampling`] for a rule that does not go with the sampler: nothing has run
/// then. [`ErrorKind::Prompt`] where `text` has nothing that the caches lack; what the computation reports, the caches being as before.
pub fn verify(
    model: &dyn LanguageModel,
    caches: &mut [Box<dyn Cache>],
    text: &[u32],
    draft: &Draft,
    (rule, sampler, ends): (Acceptance, &mut Sampler, &dyn Fn(u32) -> bool),
) -> Result<Verdict> {
    rule.check(sampler)?;
    check_rewind(caches, draft.len())?;
    let held = caches.first().map_or(0, |cache| cache.offset());
    let lacking = text.get(held..).unwrap_or_default();
    if lacking.is_empty() {
        let what = format!("the caches hold {held} tokens of a text of {}: there is none to feed", text.len());
        return Err(Error::new(ErrorKind::Prompt, what));
    }
    let tokens = [lacking, draft.tokens()].concat();
    let judged = look(model, caches, &tokens, draft.len()).and_then(|values| {
        let vocab = model.vocab_size().max(1);
        let rows: Vec<&[f32]> = values.chunks_exact(vocab).collect();
        rule.judge(draft, &rows, sampler, ends)
    });
    let kept = held + judged.as_ref().map_or(0, |verdict| lacking.len() + verdict.accepted);
    for cache in caches.iter_mut() {
        // A pass that failed may have reached some layers only.
        cache.trim(cache.offset().saturating_sub(kept))?;
    }
    judged
}

/// The logits before each drafted token and after the last, row by row.
fn look(model: &dyn LanguageModel, caches: &mut [Box<dyn Cache>], tokens: &[u32], drafted: usize) -> Result<Vec<f32>> {
    let array = Array::from_slice(tokens, (1, tokens.len() as i32))?;
    if drafted == 0 {
        return Ok(model.forward(&array, caches, Logits::Last)?.to_vec::<f32>()?);
    }
    let logits = model.forward(&array, caches, Logits::All)?;
    let (from, vocab) = ((tokens.len() - drafted - 1) as i32, model.vocab_size() as i32);
    let wanted = oxmlx::ops::slice(&logits, &[0, from, 0], &[1, tokens.len() as i32, vocab], &[1, 1, 1])?;
    Ok(wanted.to_vec::<f32>()?)
}
