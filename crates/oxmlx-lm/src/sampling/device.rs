//! A whole batch at once, in operations of MLX: for GPUs, where reading the logits costs more than choosing.
//!
//! It does temperature, top-k, top-p and min-p in the default order. Support and distribution are those of [`Sampler`](super::Sampler); with
//! one random number both take the same token, but for one that falls within rounding of a border, and the first of equal logits at a filter's
//! bar is not always the same.

use oxmlx::ops::{self, Scan};
use oxmlx::{Array, Dtype};

use super::{SamplingParams, Stage};
use crate::{Error, ErrorKind, Result};

/// The stages that the device has, in their order.
const STAGES: [Stage; 4] = [Stage::TopK, Stage::TopP, Stage::MinP, Stage::Temperature];

/// Chooses the tokens of a batch whose rows each have parameters of their own.
#[derive(Clone, Debug)]
pub struct BatchSampler {
    rows: Vec<SamplingParams>,
}

impl BatchSampler {
    /// A sampler for rows of these parameters; `None` where one of them asks for more than the device does.
    pub fn of(rows: &[SamplingParams]) -> Option<Self> {
        let fits = |params: &SamplingParams| {
            let plan = params.plan();
            let mut places = plan.iter().map(|stage| STAGES.iter().position(|known| known == stage));
            let mut last = None;
            !params.edits()
                && params.mirostat.is_none()
                && params.dynamic.is_none_or(|d| d.is_off())
                && places.all(|place| place.is_some() && std::mem::replace(&mut last, place) < place)
        };
        rows.iter().all(fits).then(|| Self { rows: rows.to_vec() })
    }

    /// The tokens of `logits` `[rows, vocabulary]`, as `[rows]` uint32. Lazy. `uniform` has a number in `0.0..1.0` a row, which greedy rows do
    /// not use; [`Sampler`](super::Sampler) takes the same one from its generator. A row that can't be drawn from, where the host reports an
    /// error, has `u32::MAX`.
    ///
    /// # Errors
    /// [`ErrorKind::Sampling`] for another number of rows than of parameters.
    pub fn choose(&self, logits: &Array, uniform: &[f64]) -> Result<Array> {
        let count = self.rows.len();
        let &[rows, vocab] = logits.shape() else { return Err(misfit(logits.shape(), count)) };
        if rows as usize != count || uniform.len() != count {
            return Err(misfit(logits.shape(), count));
        }
        let best = ops::argmax_axis(logits, -1, false)?;
        if self.rows.iter().all(SamplingParams::chooses_best) {
            return Ok(best);
        }
        let logits = logits.astype(Dtype::Float32)?;
        let largest = ops::max_axis(&logits, -1, true)?;
        let distance = (&logits - &largest)?;
        let kept = self.filter(&ops::exp(&distance)?, vocab)?;
        // So small a temperature is the argmax; a smaller one would be 0 where small numbers are flushed.
        let temperatures = self.column(|p| if p.chooses_best() { 1.0 } else { p.temperature().max(1e-30) })?;
        let heated = ops::exp(&(&distance / &temperatures)?)?;
        let weights = match kept {
            Some(kept) => ops::where_(&kept, &heated, &Array::scalar(0.0f32)?)?,
            None => heated,
        };
        let reached = ops::cumsum_axis(&weights, -1, Scan::new())?;
        let total = ops::slice(&reached, &[0, vocab - 1], &[rows, vocab], &[1, 1])?;
        let places: Vec<f32> = uniform.iter().map(|&u| u as f32).collect();
        let places = Array::from_slice(&places, (rows, 1))?;
        // Under the total by a bit at least, so that there is a first place over the target.
        let under = (&total * (1.0f32 - f32::EPSILON))?;
        let target = ops::minimum(&(&places * &total)?, &under)?;
        let drawn = ops::argmax_axis(&ops::greater(&reached, &target)?, -1, false)?;
        // A comparison with NaN is false.
        let finite = |x: &Array| ops::less(x, &Array::scalar(f32::INFINITY)?);
        let sound = ops::squeeze(&ops::logical_and(&finite(&total)?, &finite(&largest)?)?, -1)?;
        let drawn = ops::where_(&sound, &drawn, &Array::scalar(u32::MAX)?)?;
        let greedy: Vec<bool> = self.rows.iter().map(SamplingParams::chooses_best).collect();
        Ok(ops::where_(&Array::from_slice(&greedy, rows)?, &best, &drawn)?)
    }

    /// Which tokens the filters leave, `[rows, vocabulary]`; `None` for all.
    fn filter(&self, weights: &Array, vocab: i32) -> Result<Option<Array>> {
        let any = |stage: Stage| self.rows.iter().any(|p| p.is_set(stage));
        let mut kept = None;
        if any(Stage::TopK) || any(Stage::TopP) {
            let order = ops::argsort_axis(&ops::negative(weights)?, -1)?;
            let sorted = ops::take_along_axis(weights, &order, -1)?;
            let place = ops::arange(0.0, vocab.into(), 1.0, Dtype::Float32)?;
            let all = vocab as f32;
            let k = self.column(|p| if p.is_set(Stage::TopK) { (p.top_k() as f32).min(all) } else { all })?;
            let mut stays = ops::less(&place, &k)?;
            if any(Stage::TopP) {
                let sorted = ops::where_(&stays, &sorted, &Array::scalar(0.0f32)?)?;
                let before = ops::cumsum_axis(&sorted, -1, Scan::new().exclusive())?;
                // Over everything where there is no top-p.
                let p = self.column(|p| if p.is_set(Stage::TopP) { p.top_p() } else { 2.0 })?;
                let short = ops::less(&before, &(&p * ops::sum_axis(&sorted, -1, true)?)?)?;
                // The first stays however small the share.
                let first = ops::equal(&place, &Array::scalar(0.0f32)?)?;
                stays = ops::logical_and(&stays, &ops::logical_or(&short, &first)?)?;
            }
            let none = ops::zeros(weights.shape(), Dtype::Bool)?;
            kept = Some(ops::put_along_axis(&none, &order, &stays, -1)?);
        }
        if any(Stage::MinP) {
            let over = ops::greater_equal(weights, &self.column(SamplingParams::min_p)?)?;
            kept = Some(match kept {
                Some(kept) => ops::logical_and(&kept, &over)?,
                None => over,
            });
        }
        Ok(kept)
    }

    /// One number a row, `[rows, 1]`.
    fn column(&self, of: impl Fn(&SamplingParams) -> f32) -> Result<Array> {
        let values: Vec<f32> = self.rows.iter().map(of).collect();
        Ok(Array::from_slice(&values, (values.len() as i32, 1))?)
    }
}

fn misfit(shape: &[i32], rows: usize) -> Error {
    let what = format!("logits {shape:?} for {rows} rows of parameters and as many random numbers");
    Error::new(ErrorKind::Sampling, what).at_field("logits")
}
