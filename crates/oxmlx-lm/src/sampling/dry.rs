//! DRY, "don't repeat yourself": a token that would prolong a repeated sequence is penalised, by the sequence's length.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::check::{check, token_id};
use super::history::Window;
use super::row::Row;
use crate::{Error, ErrorKind, Result, Tokenizer};

/// Where the last `n` tokens occurred before, the token that followed there loses `multiplier * base^(n - allowed length)`, if `n` is
/// the allowed length at least. Of several occurrences the longest counts.
///
/// A sequence breaker ends the count, and is itself never penalised: without breakers a chat template's own repetition would be.
///
/// # Source
/// P. E. Weidmann, DRY, text-generation-webui pull request 5677, 2024.
#[derive(Clone, Debug, PartialEq)]
pub struct Dry {
    multiplier: f32,
    base: f32,
    allowed_length: usize,
    window: Window,
    breakers: Arc<BTreeSet<u32>>,
}

impl Dry {
    /// A penalty of `multiplier` for the first repetition over the allowed one; 0 turns it off. The base is 1.75, the allowed length
    /// 2, the window the whole history, and there are no breakers unless set.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a multiplier that is negative or not finite.
    pub fn new(multiplier: f32) -> Result<Self> {
        let right = multiplier.is_finite() && multiplier >= 0.0;
        let multiplier = check(right, "dry-multiplier", multiplier, "a finite number from 0 up (0 turns it off)")?;
        Ok(Self { multiplier, base: 1.75, allowed_length: 2, window: Window::WHOLE, breakers: Arc::default() })
    }

    /// The factor by which the penalty grows with each further token.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a base that is under 1 or not finite.
    pub fn base(mut self, base: f32) -> Result<Self> {
        self.base = check(base.is_finite() && base >= 1.0, "dry-base", base, "a finite number from 1 up")?;
        Ok(self)
    }

    /// The length of a repetition from which on there is a penalty.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for 0.
    pub fn allowed_length(mut self, tokens: usize) -> Result<Self> {
        if tokens == 0 {
            return Err(Error::new(ErrorKind::Sampling, "0 isn't 1 or more").at_field("dry-allowed-length"));
        }
        self.allowed_length = tokens;
        Ok(self)
    }

    /// How much of the history is searched.
    #[must_use]
    pub fn window(mut self, window: Window) -> Self {
        self.window = window;
        self
    }

    /// The tokens that sequences end at.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for an id that no vocabulary can have.
    pub fn breakers(mut self, ids: impl IntoIterator<Item = i64>) -> Result<Self> {
        let ids: Result<BTreeSet<u32>> = ids.into_iter().map(|id| token_id(id, "dry-breakers")).collect();
        self.breakers = Arc::new(ids?);
        Ok(self)
    }

    /// As [`breakers`](Self::breakers): every token whose text has one of `texts` in it; for a text that no token has, the last of the
    /// tokens that it is written with.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for an empty text; [`ErrorKind::Tokenizer`] for one that can't be encoded.
    pub fn breaker_texts(mut self, tokenizer: &Tokenizer, texts: &[&str]) -> Result<Self> {
        if texts.iter().any(|text| text.is_empty()) {
            return Err(Error::new(ErrorKind::Sampling, "a breaker is empty").at_field("dry-breakers"));
        }
        let mut breakers = BTreeSet::new();
        let mut found = vec![false; texts.len()];
        for id in 0..tokenizer.vocab_size() as u32 {
            let token = tokenizer.decode_with_special(&[id])?;
            for (text, found) in texts.iter().zip(&mut found) {
                if token.contains(text) {
                    *found = true;
                    breakers.insert(id);
                }
            }
        }
        for (text, _) in texts.iter().zip(found).filter(|(_, found)| !found) {
            breakers.extend(tokenizer.encode(text)?.last());
        }
        self.breakers = Arc::new(breakers);
        Ok(self)
    }

    pub(super) fn is_off(&self) -> bool {
        self.multiplier == 0.0 || self.window.is_off()
    }

    pub(super) fn apply(&self, history: &[u32], row: &mut Row) {
        for (token, length) in self.repeated(history) {
            let grown = f64::from(self.base).powf((length - self.allowed_length) as f64) * f64::from(self.multiplier);
            let penalty = grown.min(f64::from(f32::MAX)) as f32;
            row.edit(token, |x| x - penalty);
        }
    }

    /// The tokens that would prolong a repetition of the allowed length or more, each once with its longest.
    fn repeated(&self, history: &[u32]) -> Vec<(u32, usize)> {
        let backwards: Vec<u32> = self.window.of_history(history).iter().rev().copied().collect();
        let limit = backwards.iter().position(|t| self.breakers.contains(t)).unwrap_or(backwards.len());
        if limit < self.allowed_length {
            return Vec::new();
        }
        let lengths = common_prefixes(&backwards);
        let all = (1..backwards.len()).map(|at| (backwards[at - 1], lengths[at].min(limit)));
        let mut long: Vec<(u32, usize)> =
            all.filter(|(t, length)| *length >= self.allowed_length && !self.breakers.contains(t)).collect();
        long.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        long.dedup_by_key(|r| r.0);
        long
    }
}

/// For each place how long the text from there equals the text's beginning; 0 at the beginning itself. The Z algorithm: in one pass.
fn common_prefixes(text: &[u32]) -> Vec<usize> {
    let mut lengths = vec![0; text.len()];
    let (mut left, mut right) = (0, 0);
    for at in 1..text.len() {
        let mut length = if at < right { lengths[at - left].min(right - at) } else { 0 };
        while at + length < text.len() && text[length] == text[at + length] {
            length += 1;
        }
        if at + length > right {
            (left, right) = (at, at + length);
        }
        lengths[at] = length;
    }
    lengths
}
