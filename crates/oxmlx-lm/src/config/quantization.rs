//! How `config.json` says that the weights are quantized. The tensors' own shapes decide; see `Checkpoint::matrix`.

use std::collections::BTreeMap;

use super::Fields;
use crate::{ErrorKind, Result};

/// The quantization of a whole model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Quantization {
    /// What holds for modules that aren't listed.
    pub default: QuantizationParams,
    /// Modules that differ, by name (`model.layers.0.mlp.down_proj`); `None` for one that isn't quantized.
    pub modules: BTreeMap<String, Option<QuantizationParams>>,
}

/// Group size and bits of an affine quantization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuantizationParams {
    /// Values that share a scale and a bias: 32, 64 or 128.
    pub group_size: usize,
    /// Bits a value: 2, 3, 4, 5, 6 or 8.
    pub bits: usize,
}

impl Quantization {
    /// What the configuration says of `module`; `None` if it isn't quantized.
    pub fn of(&self, module: &str) -> Option<QuantizationParams> {
        self.modules.get(module).copied().unwrap_or(Some(self.default))
    }

    /// Reads the object `quantization`.
    pub(super) fn from_json(fields: &Fields<'_>) -> Result<Self> {
        let default = QuantizationParams::from_json(fields, None)?;
        let mut modules = BTreeMap::new();
        for (name, value) in fields.iter() {
            if matches!(name.as_str(), "group_size" | "bits" | "mode") || value.is_null() {
                continue;
            }
            let params = match value.as_bool() {
                Some(false) => None,
                Some(true) => Some(default),
                None => match fields.object(name) {
                    Ok(Some(module)) => Some(QuantizationParams::from_json(&module, Some(default))?),
                    _ if name.contains('.') || name == "lm_head" => {
                        return Err(fields.wrong(name, "false, true or an object", value));
                    }
                    // Notes of the tool that quantized, not a module.
                    _ => continue,
                },
            };
            modules.insert(name.clone(), params);
        }
        Ok(Self { default, modules })
    }
}

impl QuantizationParams {
    fn from_json(fields: &Fields<'_>, default: Option<Self>) -> Result<Self> {
        let mode = fields.str("mode")?.unwrap_or("affine");
        if mode != "affine" {
            let what = format!("quantization mode {mode:?} isn't implemented: convert the model with mode affine");
            return Err(fields.error(ErrorKind::Unsupported, "mode", what));
        }
        let one_of = |name: &str, allowed: &[usize], default: Option<usize>| {
            let n = fields.count(name)?.or(default).ok_or_else(|| fields.missing(name))?;
            if allowed.contains(&n) {
                return Ok(n);
            }
            Err(fields.error(ErrorKind::Unsupported, name, format!("{n} isn't one of {allowed:?}, which MLX has")))
        };
        Ok(Self {
            group_size: one_of("group_size", &[32, 64, 128], default.map(|d| d.group_size))?,
            bits: one_of("bits", &[2, 3, 4, 5, 6, 8], default.map(|d| d.bits))?,
        })
    }
}
