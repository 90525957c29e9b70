//! What is proposed, and who proposes.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, ErrorKind, Result};

/// Tokens that may come next, and where they were drawn by chance, what each was drawn from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    tokens: Vec<u32>,
    /// One a token, or none at all for tokens that were not drawn.
    shares: Vec<Vec<(u32, f32)>>,
}

impl Draft {
    /// Tokens that were chosen, not drawn: the same would be proposed again.
    pub fn chosen(tokens: Vec<u32>) -> Self {
        Self { tokens, shares: Vec::new() }
    }

    /// Tokens that were drawn, each with the distribution that it was drawn from: ids, ascending, with their probabilities.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for another number of distributions than of tokens, and for a token that its distribution gives no share, or
    /// one that is no number.
    pub fn drawn(tokens: Vec<u32>, shares: Vec<Vec<(u32, f32)>>) -> Result<Self> {
        let wrong = |what: String| Err(Error::new(ErrorKind::Sampling, what).at_field("draft"));
        if tokens.len() != shares.len() {
            return wrong(format!("{} tokens with {} distributions", tokens.len(), shares.len()));
        }
        if let Some((token, _)) = tokens.iter().zip(&shares).find(|&(&token, shares)| !is_share(share(shares, token))) {
            return wrong(format!("token {token} has no share in what it was drawn from"));
        }
        Ok(Self { tokens, shares })
    }

    /// The tokens, the next one first.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Keeps the first `n`.
    pub fn truncate(&mut self, n: usize) {
        self.tokens.truncate(n);
        self.shares.truncate(n);
    }

    /// How probable `token` was at place `at`.
    pub(super) fn share(&self, at: usize, token: u32) -> f32 {
        match self.shares.get(at) {
            Some(shares) => share(shares, token),
            None if self.tokens.get(at) == Some(&token) => 1.0,
            None => 0.0,
        }
    }
}

fn is_share(share: f32) -> bool {
    share > 0.0 && share.is_finite()
}

fn share(shares: &[(u32, f32)], token: u32) -> f32 {
    shares.binary_search_by_key(&token, |c| c.0).map_or(0.0, |at| shares[at].1)
}

/// Proposes how a text may go on.
pub trait Drafter: Send {
    /// At most `most` tokens that may follow `text`: the prompt and what was said since. Fewer, or none, where it has no idea.
    ///
    /// # Errors
    /// What its own computation reports.
    fn draft(&mut self, text: &[u32], most: usize) -> Result<Draft>;
}

/// A drafter that several generations share, one after the other: what it has read of a text it need not read again.
impl<D: Drafter + ?Sized> Drafter for Arc<Mutex<D>> {
    fn draft(&mut self, text: &[u32], most: usize) -> Result<Draft> {
        // One that panicked follows the text anew, or tells what is wrong.
        self.lock().unwrap_or_else(PoisonError::into_inner).draft(text, most)
    }
}
