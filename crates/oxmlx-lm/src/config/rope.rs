//! Rotary position embedding: which pairs turn, and how fast.

use super::Fields;
use crate::{ErrorKind, Result};

/// How positions are embedded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rope {
    /// How many values at the start of each head are turned; the head's size unless the model says less.
    pub dims: usize,
    /// The base of the geometric row of frequencies.
    pub theta: f64,
    /// True if neighbours are paired (llama.cpp's permuted weights), false if value `i` is paired with `i + dims / 2`.
    pub traditional: bool,
    /// How the frequencies were stretched for a longer context.
    pub scaling: RopeScaling,
}

/// How frequencies are stretched for a context longer than the one trained on first.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// All positions are divided by `factor`.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3's: low frequencies are divided by `factor`, high ones kept, those between blended.
    Llama3 {
        /// The divisor of the low frequencies.
        factor: f64,
        /// Wavelengths over `original_context / low_freq_factor` are low frequencies.
        low_freq_factor: f64,
        /// Wavelengths under `original_context / high_freq_factor` are high frequencies.
        high_freq_factor: f64,
        /// The context that the model was trained on first, in tokens.
        original_context: usize,
    },
    /// Each pair's frequency is divided by a number of its own: what a GGUF file's `rope_freqs.weight` holds; `dims / 2` of them.
    Divisors(Vec<f32>),
}

impl Rope {
    /// The pairs' periods over 2 pi, `dims / 2` of them: what MLX's `rope` takes as `freqs`. `None` where its `base` is enough,
    /// with no scaling or a linear one.
    pub fn periods(&self) -> Option<Vec<f32>> {
        let plain = (0..self.dims / 2).map(|i| self.theta.powf(2.0 * i as f64 / self.dims as f64));
        match &self.scaling {
            RopeScaling::None | RopeScaling::Linear { .. } => None,
            RopeScaling::Divisors(divisors) => {
                Some(plain.zip(divisors).map(|(p, &d)| (p * f64::from(d)) as f32).collect())
            }
            &RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context } => {
                let original = original_context as f64;
                let stretch = |period: f64| {
                    let wavelength = 2.0 * std::f64::consts::PI * period;
                    if wavelength < original / high_freq_factor {
                        period
                    } else if wavelength > original / low_freq_factor {
                        period * factor
                    } else {
                        let smooth = (original / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor);
                        period / ((1.0 - smooth) / factor + smooth)
                    }
                };
                Some(plain.map(|p| stretch(p) as f32).collect())
            }
        }
    }

    /// What MLX's `rope` takes as `scale`: 1, or 1 / factor for linear scaling.
    pub fn scale(&self) -> f32 {
        match self.scaling {
            RopeScaling::Linear { factor } => (1.0 / factor) as f32,
            _ => 1.0,
        }
    }
}

impl RopeScaling {
    /// Reads an object `rope_scaling` (or the newer `rope_parameters`).
    pub(super) fn from_json(fields: &Fields<'_>) -> Result<Self> {
        let name = if fields.get("rope_type").is_some() { "rope_type" } else { "type" };
        let Some(kind) = fields.str(name)? else { return Err(fields.missing("rope_type")) };
        match kind {
            "default" => Ok(Self::None),
            "linear" => Ok(Self::Linear { factor: fields.required_positive("factor")? }),
            "llama3" => {
                let low_freq_factor = fields.required_positive("low_freq_factor")?;
                let high_freq_factor = fields.required_positive("high_freq_factor")?;
                if high_freq_factor <= low_freq_factor {
                    let what = format!("{high_freq_factor} is not above low_freq_factor {low_freq_factor}");
                    return Err(fields.error(ErrorKind::Config, "high_freq_factor", what));
                }
                Ok(Self::Llama3 {
                    factor: fields.required_positive("factor")?,
                    low_freq_factor,
                    high_freq_factor,
                    original_context: fields.required_count("original_max_position_embeddings")?,
                })
            }
            other => {
                let what = format!("rope scaling {other:?} isn't implemented, only default, linear and llama3");
                Err(fields.error(ErrorKind::Unsupported, name, what))
            }
        }
    }
}
