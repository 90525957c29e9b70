//! Tokens to vectors, and back to scores where the head is tied.

use oxmlx::Array;

use super::Weight;
use crate::Result;

/// A table of one vector a token.
#[derive(Clone, Debug)]
pub struct Embedding {
    weight: Weight,
}

impl Embedding {
    /// A table `[vocabulary, width]`.
    pub fn new(weight: Weight) -> Self {
        Self { weight }
    }

    /// The vectors of `tokens`: `[..]` integers to `[.., width]`. A token outside the vocabulary gives the nearest row.
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`](crate::ErrorKind::Mlx) for tokens that are no integers.
    pub fn forward(&self, tokens: &Array) -> Result<Array> {
        self.weight.rows(tokens)
    }

    /// The table as an output head: `[.., width]` to `[.., vocabulary]`.
    ///
    /// # Errors
    /// [`ErrorKind::Mlx`](crate::ErrorKind::Mlx) when the widths differ.
    pub fn as_head(&self, x: &Array) -> Result<Array> {
        self.weight.apply(x)
    }
}
