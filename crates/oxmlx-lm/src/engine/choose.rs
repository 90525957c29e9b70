//! From logits to the next token, inside the graph where the device allows it.

use std::sync::{Arc, Mutex, PoisonError};

use oxmlx::kernel::Kernel;
use oxmlx::{Array, Device, Dtype, ops};

use crate::{Result, Sampler, SamplingParams};

/// Chooses one token of a row of logits.
pub(super) enum Chooser {
    /// The most likely: an operation of the graph.
    Greedy,
    /// The sampler as a kernel in the graph: the next forward pass does not wait for this token to be read.
    InGraph(Kernel),
    /// The sampler on the host, on devices that Rust kernels do not run on: reads the logits first.
    OnHost(Box<Sampler>),
}

impl Chooser {
    /// A chooser for what follows `prompt`.
    pub(super) fn new(params: SamplingParams, prompt: &[u32]) -> Result<Self> {
        if params.is_greedy() {
            return Ok(Self::Greedy);
        }
        let mut sampler = Sampler::new(params);
        sampler.begin(prompt);
        if Device::current()? == Device::Gpu {
            return Ok(Self::OnHost(Box::new(sampler)));
        }
        let sampler = Arc::new(Mutex::new(sampler));
        let kernel = Kernel::builder("sample")
            .output(Dtype::Uint32, |_| Ok(vec![1]))
            .cpu(move |inputs, outputs| {
                let logits = inputs[0].as_slice::<f32>()?;
                // A sampler that panicked has drawn nothing: its state is whole.
                let token = sampler.lock().unwrap_or_else(PoisonError::into_inner).sample(&logits)?;
                outputs[0].as_mut_slice::<u32>()?[0] = token;
                Ok(())
            })
            .build()?;
        Ok(Self::InGraph(kernel))
    }

    /// The token of `logits` `[1, vocabulary]`, as `[1]` uint32.
    pub(super) fn choose(&mut self, logits: &Array) -> Result<Array> {
        Ok(match self {
            Self::Greedy => ops::argmax_axis(logits, -1, false)?,
            Self::InGraph(kernel) => kernel.apply_one(std::slice::from_ref(logits))?,
            Self::OnHost(sampler) => Array::from_slice(&[sampler.sample(&logits.to_vec::<f32>()?)?], 1)?,
        })
    }
}
