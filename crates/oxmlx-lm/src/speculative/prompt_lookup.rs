//! Drafts from the text itself: what followed the last few tokens when they stood there before.

use super::{Draft, Drafter};
use crate::{Error, ErrorKind, Result};

/// Looks for the text's last tokens further up, the longest run of them first, and proposes what followed. Good where answers
/// copy: summaries, code, corrections. Costs next to nothing.
///
/// # Source
/// Saxena, Prompt lookup decoding, 2023.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptLookupDrafter {
    longest: usize,
    shortest: usize,
}

impl PromptLookupDrafter {
    /// Looks for runs of `longest` down to `shortest` tokens; 3 and 1 are usual.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] where `shortest` is 0 or over `longest`.
    pub fn new(longest: usize, shortest: usize) -> Result<Self> {
        if shortest == 0 || shortest > longest {
            let what =
                format!("runs of {longest} down to {shortest} tokens: wanted at least 1, and no more than the longest");
            return Err(Error::new(ErrorKind::Sampling, what).at_field("prompt lookup"));
        }
        Ok(Self { longest, shortest })
    }
}

impl Drafter for PromptLookupDrafter {
    fn draft(&mut self, text: &[u32], most: usize) -> Result<Draft> {
        for run in (self.shortest..=self.longest).rev().filter(|run| *run < text.len()) {
            let end = &text[text.len() - run..];
            // The latest place: what was said last is the best guess.
            let place = text[..text.len() - 1].windows(run).rposition(|window| window == end);
            if let Some(place) = place {
                let after = &text[place + run..];
                return Ok(Draft::chosen(after[..most.min(after.len())].to_vec()));
            }
        }
        Ok(Draft::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_run_wins_and_of_its_places_the_last() {
        let draft = |text: &[u32], most| PromptLookupDrafter::new(3, 1).unwrap().draft(text, most).unwrap();
        assert_eq!(draft(&[1, 2, 3, 4, 9, 3, 5, 1, 2, 3], 2).tokens(), [4, 9]);
        assert_eq!(draft(&[3, 4, 3, 5, 3], 9).tokens(), [5, 3]);
        assert_eq!(draft(&[7, 7, 7, 7], 5).tokens(), [7], "a run may overlap its own repetition");
        assert!(draft(&[1, 2, 3], 5).is_empty());
        assert!(draft(&[1], 5).is_empty() && draft(&[], 5).is_empty() && draft(&[1, 1], 0).is_empty());
    }

    #[test]
    fn drafts_are_what_comparing_all_places_finds() {
        let mut state = 1u32;
        let mut next = |n: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % n
        };
        for _ in 0..500 {
            let text: Vec<u32> = (0..next(25)).map(|_| next(3) as u32).collect();
            let mut wanted = Vec::new();
            'runs: for run in [3, 2, 1] {
                for place in (0..text.len()).rev() {
                    let end = text.len().saturating_sub(run);
                    if place + run < text.len() && text[place..place + run] == text[end..] {
                        wanted = text[place + run..].iter().copied().take(4).collect();
                        break 'runs;
                    }
                }
            }
            let draft = PromptLookupDrafter::new(3, 1).unwrap().draft(&text, 4).unwrap();
            assert_eq!(draft.tokens(), wanted, "{text:?}");
        }
    }

    #[test]
    fn runs_of_no_tokens_are_refused() {
        assert!(PromptLookupDrafter::new(3, 0).is_err());
        assert!(PromptLookupDrafter::new(1, 2).is_err());
    }
}
