//! In which order the stages come.

use std::fmt;

use crate::{Error, ErrorKind, Result};

/// A stage that has a place in the order. Not among them: tokens that a [`Suppression`](super::Suppression) or a
/// [`Grammar`](super::Grammar) rules out are gone before the first stage, and the draw is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// [`LogitBias`](super::LogitBias).
    LogitBias,
    /// [`LanguageBias`](super::LanguageBias).
    LanguageBias,
    /// [`Repetition`](super::Repetition).
    Repetition,
    /// [`Dry`](super::Dry).
    Dry,
    /// [`FrequencyPresence`](super::FrequencyPresence).
    FrequencyPresence,
    /// Top-n-sigma.
    TopNSigma,
    /// Top-k.
    TopK,
    /// Typical-p.
    TypicalP,
    /// Top-p.
    TopP,
    /// Min-p.
    MinP,
    /// [`Xtc`](super::Xtc).
    Xtc,
    /// The temperature, plain or dynamic.
    Temperature,
}

impl Stage {
    /// Whether it only takes tokens out: what Mirostat takes the place of.
    pub fn is_filter(self) -> bool {
        matches!(self, Self::TopNSigma | Self::TopK | Self::TypicalP | Self::TopP | Self::MinP | Self::Xtc)
    }

    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogitBias => "logit-bias",
            Self::LanguageBias => "language-bias",
            Self::Repetition => "repetition-penalty",
            Self::Dry => "dry",
            Self::FrequencyPresence => "frequency-presence",
            Self::TopNSigma => "top-n-sigma",
            Self::TopK => "top-k",
            Self::TypicalP => "typical-p",
            Self::TopP => "top-p",
            Self::MinP => "min-p",
            Self::Xtc => "xtc",
            Self::Temperature => "temperature",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The order of the stages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order(Vec<Stage>);

impl Default for Order {
    /// Biases, penalties, filters, temperature: the filters look at the distribution before the temperature.
    fn default() -> Self {
        use Stage::*;
        let penalties = [LogitBias, LanguageBias, Repetition, Dry, FrequencyPresence];
        Self([&penalties[..], &[TopNSigma, TopK, TypicalP, TopP, MinP, Xtc, Temperature]].concat())
    }
}

impl Order {
    /// The temperature first, then biases, filters, and the penalties last, on what the filters left.
    pub fn temperature_first() -> Self {
        use Stage::*;
        let filters = [Temperature, LogitBias, LanguageBias, TopNSigma, TopK, TypicalP, TopP, MinP, Xtc];
        Self([&filters[..], &[Dry, Repetition, FrequencyPresence]].concat())
    }

    /// An order of one's own. A stage that is set and has no place in it is an error of
    /// [`build`](super::SamplingParamsBuilder::build).
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for a stage that comes twice.
    pub fn new(stages: &[Stage]) -> Result<Self> {
        let again = stages.iter().enumerate().find(|(at, stage)| stages[..*at].contains(stage));
        match again {
            None => Ok(Self(stages.to_vec())),
            Some((_, stage)) => {
                Err(Error::new(ErrorKind::Sampling, format!("{stage} comes twice")).at_field("sampling order"))
            }
        }
    }

    /// The stages, the first first.
    pub fn stages(&self) -> &[Stage] {
        &self.0
    }
}
