//! Rotary position embedding, as a configuration says.

use oxmlx::{Array, fast};

use crate::{Result, config};

/// Turns the pairs of each head by their position.
#[derive(Clone, Debug)]
pub struct Rope {
    dims: i32,
    base: f32,
    traditional: bool,
    scale: f32,
    periods: Option<Array>,
}

impl Rope {
    /// The embedding that the configuration describes.
    ///
    /// # Errors
    /// Only what every entry into MLX can report.
    pub fn new(config: &config::Rope) -> Result<Self> {
        let periods = match config.periods() {
            Some(periods) => Some(Array::from_slice(&periods, [periods.len() as i32])?),
            None => None,
        };
        Ok(Self {
            dims: config.dims as i32,
            base: config.theta as f32,
            traditional: config.traditional,
            scale: config.scale(),
            periods,
        })
    }

    /// As a part of a fused block.
    pub fn rope(&self) -> fast::Rope<'_> {
        let rope = match &self.periods {
            Some(periods) => fast::Rope::with_freqs(self.dims, periods),
            None => fast::Rope::new(self.dims, self.base),
        };
        rope.traditional(self.traditional).scale(self.scale)
    }
}
