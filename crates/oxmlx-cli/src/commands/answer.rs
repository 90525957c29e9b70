//! One answer: tokens to text, as they come.

use oxmlx_lm::speculative::DraftStats;
use oxmlx_lm::{ErrorKind, FinishReason, Request, StopMatcher, StreamDecoder};

use crate::cancel;
use crate::failure::Failure;
use crate::model::Loaded;
use crate::progress::{Unit, bar};
use crate::stats::{Stopwatch, peak_bytes};

/// What came of a prompt. Cancelled while the prompt was read: no tokens.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) tokens: Vec<u32>,
    pub(crate) reason: FinishReason,
    pub(crate) stopwatch: Stopwatch,
    /// How drafts fared, where there were some to be made.
    pub(crate) drafts: Option<DraftStats>,
    /// Tokens that the model has and the tokenizer lacks.
    without_text: usize,
}

impl Answer {
    /// The figures, for people.
    pub(crate) fn summary(&self) -> String {
        let watch = &self.stopwatch;
        let mut more = self.drafts.map_or_else(String::new, |drafts| {
            let stood = 100.0 * drafts.accepted_of_tested();
            format!(", {:.2} a pass ({stood:.0} % of the drafts that were looked at stood)", drafts.tokens_per_round())
        });
        if self.without_text > 0 {
            more += &format!(", {} tokens without text", self.without_text);
        }
        format!(
            "{} prompt tokens ({} read) at {:.1}/s, {} tokens at {:.1}/s{more}, peak {:.0} MB, {}",
            watch.prompt_tokens,
            watch.read_tokens,
            watch.prefill_tps(),
            watch.tokens,
            watch.decode_tps(),
            peak_bytes() as f64 / 1e6,
            self.reason.as_str(),
        )
    }
}

/// Feeds the prompt and gives each piece of text to `emit` as soon as it is whole: no half character, no half stop text.
pub(crate) fn answer(
    loaded: &mut Loaded,
    prompt: &[u32],
    request: Request,
    mut matcher: StopMatcher,
    emit: &mut dyn FnMut(&str) -> Result<(), Failure>,
) -> Result<Answer, Failure> {
    let mut decoder = StreamDecoder::after(&loaded.tokenizer, prompt);
    let mut stopwatch = Stopwatch::start(prompt.len());
    let prefill = bar("reading", prompt.len() as u64, Unit::Tokens);
    let (mut reused, mut done) = (None, 0);
    let generation = loaded.engine.generate(prompt, request, &mut |progress| {
        reused.get_or_insert(progress.done);
        done = progress.done;
        prefill.set_position(progress.done as u64);
        !cancel::requested()
    });
    drop(prefill);
    stopwatch.prompt_read(reused.unwrap_or(0), done);

    let (mut text, mut tokens) = (String::new(), Vec::new());
    let mut generation = match generation {
        Err(error) if error.kind() == ErrorKind::Cancelled => {
            let (reason, drafts) = (FinishReason::Cancelled, None);
            return Ok(Answer { text, tokens, reason, stopwatch, drafts, without_text: 0 });
        }
        other => other?,
    };
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
    let (drafts, without_text) = (generation.draft_stats(), decoder.without_text());
    Ok(Answer { text, tokens, reason, stopwatch, drafts, without_text })
}
