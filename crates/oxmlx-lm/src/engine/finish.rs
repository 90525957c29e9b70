//! When a sequence ends, and why.

use std::fmt;

use crate::Result;

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// An end token, or a stop text.
    Stop,
    /// The budget of tokens is spent.
    Length,
    /// The model's context is full.
    Context,
    /// The text goes round in circles.
    Repetition,
    /// The caller asked to stop.
    Cancelled,
    /// The computation failed.
    Error,
}

impl FinishReason {
    /// The word for it in `finish_reason` fields.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Context => "context",
            Self::Repetition => "repetition",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

/// Looks at each token that is emitted and tells whether a stop text is complete.
pub trait StopRule: Send {
    /// Takes the next token; true ends the sequence.
    ///
    /// # Errors
    /// What decoding the token reports: it ends the sequence.
    fn push(&mut self, token: u32) -> Result<bool>;
}

impl<F: FnMut(u32) -> Result<bool> + Send> StopRule for F {
    fn push(&mut self, token: u32) -> Result<bool> {
        self(token)
    }
}

/// When a text counts as going round: its end is one piece of at most `period` tokens, `repeats` times over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepetitionLoop {
    /// The longest piece that is looked for.
    pub period: usize,
    /// How often it must follow itself; below 2 nothing counts.
    pub repeats: usize,
}

impl RepetitionLoop {
    fn found(self, text: &[u32]) -> bool {
        let found = |period: usize| {
            let tail = &text[text.len() - period * self.repeats..];
            tail.iter().zip(&tail[period..]).all(|(a, b)| a == b)
        };
        self.repeats >= 2 && (1..=self.period.min(text.len() / self.repeats)).any(found)
    }
}

/// What ends a sequence. The rules are looked at in the order of the fields.
pub(super) struct FinishRules {
    pub(super) eos: Vec<u32>,
    pub(super) stop: Option<Box<dyn StopRule>>,
    pub(super) max_tokens: usize,
    pub(super) max_context: usize,
    pub(super) repetition: Option<RepetitionLoop>,
}

/// What became of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Whether the token is emitted.
    pub(super) emitted: bool,
    pub(super) finish: Option<FinishReason>,
}

impl FinishRules {
    /// Judges `token`, pushing it to `text` (the prompt of `prompt` tokens and what came after) unless it is an end token.
    pub(super) fn take(&mut self, text: &mut Vec<u32>, prompt: usize, token: u32) -> Result<Taken> {
        if self.eos.contains(&token) {
            return Ok(Taken { emitted: false, finish: Some(FinishReason::Stop) });
        }
        text.push(token);
        let stopped = match &mut self.stop {
            Some(stop) => stop.push(token)?,
            None => false,
        };
        let made = text.len() - prompt;
        let finish = if stopped {
            Some(FinishReason::Stop)
        } else if made >= self.max_tokens {
            Some(FinishReason::Length)
        } else if text.len() > self.max_context {
            Some(FinishReason::Context)
        } else if self.repetition.is_some_and(|rule| rule.found(&text[prompt..])) {
            Some(FinishReason::Repetition)
        } else {
            None
        };
        Ok(Taken { emitted: true, finish })
    }
}

impl fmt::Debug for FinishRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinishRules")
            .field("eos", &self.eos)
            .field("max_tokens", &self.max_tokens)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(max_tokens: usize, max_context: usize) -> FinishRules {
        FinishRules {
            eos: vec![9],
            stop: Some(Box::new(|token| Ok(token == 7))),
            max_tokens,
            max_context,
            repetition: Some(RepetitionLoop { period: 2, repeats: 3 }),
        }
    }

    fn reason(rules: &mut FinishRules, text: &[u32], token: u32) -> (bool, Option<FinishReason>) {
        let mut text = text.to_vec();
        let taken = rules.take(&mut text, 1, token).unwrap();
        (taken.emitted, taken.finish)
    }

    #[test]
    fn rules_are_looked_at_in_their_order() {
        use FinishReason::{Context, Length, Repetition, Stop};
        // Budget, context and repetition would all end it: the end token comes first and is not emitted.
        let looped = [0, 1, 2, 1, 2, 1];
        assert_eq!(reason(&mut rules(1, 1), &looped, 9), (false, Some(Stop)));
        assert_eq!(reason(&mut rules(1, 1), &looped, 7), (true, Some(Stop)));
        assert_eq!(reason(&mut rules(6, 6), &looped, 2), (true, Some(Length)));
        assert_eq!(reason(&mut rules(7, 6), &looped, 2), (true, Some(Context)));
        assert_eq!(reason(&mut rules(7, 7), &looped, 2), (true, Some(Repetition)));
        assert_eq!(reason(&mut rules(7, 7), &looped, 3), (true, None));
    }

    #[test]
    fn a_loop_needs_all_its_repeats() {
        let rule = RepetitionLoop { period: 3, repeats: 3 };
        assert!(rule.found(&[5, 5, 5]));
        assert!(!rule.found(&[5, 5]));
        assert!(rule.found(&[1, 2, 3, 1, 2, 3, 1, 2, 3]));
        assert!(!rule.found(&[1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]));
        assert!(!RepetitionLoop { period: 3, repeats: 1 }.found(&[1, 2, 3]));
    }

    #[test]
    fn a_loop_of_any_length_is_looked_for_no_further_than_the_text() {
        let rule = RepetitionLoop { period: usize::MAX, repeats: 2 };
        assert!(rule.found(&[1, 2, 3, 1, 2, 3]));
        assert!(!rule.found(&[1, 2, 3, 4]) && !rule.found(&[]));
        assert!(!RepetitionLoop { period: usize::MAX, repeats: usize::MAX }.found(&[1, 1, 1]));
    }
}
