//! What was said before: the prompt and the tokens made since, and how often each occurs in a window of it.

use std::collections::HashMap;

use crate::{Error, ErrorKind, Result};

/// How much of the history a penalty looks at, counted from its end. The history begins with the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(Option<usize>);

impl Window {
    /// The whole history.
    pub const WHOLE: Self = Self(None);

    /// The last `tokens` of it; 0 turns the penalty off.
    pub fn last(tokens: usize) -> Self {
        Self(Some(tokens))
    }

    /// As command lines and requests have it: a count, 0 for off, -1 for the whole history.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a number below -1.
    pub fn of(tokens: i64) -> Result<Self> {
        match usize::try_from(tokens) {
            Ok(tokens) => Ok(Self::last(tokens)),
            Err(_) if tokens == -1 => Ok(Self::WHOLE),
            Err(_) => {
                let what = format!("{tokens} is no number of tokens (0 turns it off, -1 is the whole history)");
                Err(Error::new(ErrorKind::Sampling, what).at_field("window"))
            }
        }
    }

    /// Whether it holds nothing.
    pub(super) fn is_off(self) -> bool {
        self.0 == Some(0)
    }

    /// The part of the history that it shows.
    pub(super) fn of_history(self, history: &[u32]) -> &[u32] {
        &history[history.len() - self.0.map_or(history.len(), |n| n.min(history.len()))..]
    }
}

/// How often each token occurs in a window that moves with the history.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    window: Window,
    counts: HashMap<u32, u32>,
}

impl Tally {
    pub(super) fn new(window: Window) -> Self {
        Self { window, counts: HashMap::new() }
    }

    /// Counts the last token of `history`, and no longer the one that left the window for it.
    pub(super) fn moved(&mut self, history: &[u32]) {
        let Some(&token) = history.last().filter(|_| !self.window.is_off()) else { return };
        *self.counts.entry(token).or_default() += 1;
        let left = self.window.0.and_then(|n| history.len().checked_sub(n + 1)).map(|at| history[at]);
        if let Some(left) = left
            && let Some(count) = self.counts.get_mut(&left)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&left);
            }
        }
    }

    /// The tokens of the window, each once, with their counts.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.counts.iter().map(|(&token, &count)| (token, count))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn tally_holds_what_counting_the_window_anew_gives() {
        let tokens: Vec<u32> = (0..200u32).map(|i| i.wrapping_mul(2_654_435_761) >> 29).collect();
        for window in [Window::last(0), Window::last(1), Window::last(7), Window::last(500), Window::WHOLE] {
            let mut tally = Tally::new(window);
            for end in 1..=tokens.len() {
                tally.moved(&tokens[..end]);
                let mut wanted = BTreeMap::new();
                for &token in window.of_history(&tokens[..end]) {
                    *wanted.entry(token).or_insert(0) += 1;
                }
                assert_eq!(tally.iter().collect::<BTreeMap<_, _>>(), wanted, "{window:?} at {end}");
            }
        }
    }

    #[test]
    fn minus_one_is_the_whole_history_and_less_is_refused() {
        assert_eq!(Window::of(-1).unwrap(), Window::WHOLE);
        assert!(Window::of(0).unwrap().is_off());
        assert_eq!(Window::of(i64::MIN).unwrap_err().kind(), ErrorKind::Sampling);
    }
}
