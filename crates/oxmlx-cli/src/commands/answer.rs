//! One answer: tokens to text, as they come.

use oxmlx_lm::{FinishReason, Request, Sequence, StopMatcher, StreamDecoder};

use crate::cancel;
use crate::failure::Failure;
use crate::model::Loaded;
use crate::progress::{Unit, bar};
use crate::stats::Stopwatch;

/// What came of a prompt.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) tokens: Vec<u32>,
    pub(crate) reason: FinishReason,
    pub(crate) stopwatch: Stopwatch,
}

/// Feeds the prompt and gives each piece of text to `emit` as soon as it is whole: no half character, no half stop text.
pub(crate) fn answer(
    loaded: &Loaded,
    sequence: &mut Sequence,
    prompt: &[u32],
    request: Request,
    stops: &[String],
    emit: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<Answer, Failure> {
    let mut matcher = StopMatcher::new(stops.iter().cloned())?;
    let mut decoder = StreamDecoder::after(&loaded.tokenizer, prompt);
    let mut stopwatch = Stopwatch::start(prompt.len());
    let prefill = bar("reading", prompt.len() as u64, Unit::Tokens);
    let mut generation = loaded.engine.generate(sequence, prompt, request, &mut |progress| {
        prefill.set_position(progress.done as u64);
        !cancel::requested()
    })?;
    prefill.finish_and_clear();

    let (mut text, mut tokens) = (String::new(), Vec::new());
    let mut say = |piece: &str, text: &mut String| {
        text.push_str(piece);
        if piece.is_empty() { Ok(()) } else { emit(piece) }
    };
    let mut ended = None;
    while ended.is_none() {
        if cancel::requested() {
            ended = Some(FinishReason::Cancelled);
            break;
        }
        let Some(token) = generation.next() else { break };
        let token = token?;
        stopwatch.token();
        tokens.push(token);
        let step = matcher.push(&decoder.push(token)?);
        say(&step.text, &mut text)?;
        if step.stopped {
            ended = Some(FinishReason::Stop);
        }
    }
    if ended != Some(FinishReason::Stop) {
        let step = matcher.push(&decoder.finish()?);
        say(&step.text, &mut text)?;
        if step.stopped {
            ended = Some(FinishReason::Stop);
        } else {
            say(&matcher.finish(), &mut text)?;
        }
    }
    let reason = ended.or(generation.finish_reason()).unwrap_or(FinishReason::Error);
    Ok(Answer { text, tokens, reason, stopwatch })
}
