//! Comparing a model with reference data.
//!
//! The reference is a SafeTensors file with `prompt` int32 `[T]`, `logits` float32 `[T, V]` (one forward of the whole prompt),
//! `greedy` int32 `[G]` (the continuation through a cache) and `step_logits` float32 `[G, V]` (the logits that chose each of them).

use std::path::Path;

use oxmlx::Array;

use crate::language_model::{LanguageModel, Logits};
use crate::weights::{Checkpoint, Dtype};
use crate::{Error, ErrorKind, Result};

/// Reference data for one model.
#[derive(Clone, Debug)]
pub struct Reference {
    prompt: Vec<u32>,
    logits: Vec<f32>,
    greedy: Vec<u32>,
    step_logits: Vec<f32>,
    vocab: usize,
}

/// How a model differs from its reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The largest absolute difference of a logit over the whole prompt in one pass.
    pub prompt: f32,
    /// The largest absolute difference of a logit while decoding through the cache.
    pub steps: f32,
    /// The first step whose most likely token is another one than the reference's, with both tokens: (step, ours, reference).
    pub token: Option<(usize, u32, u32)>,
}

impl Difference {
    /// The largest difference of all.
    pub fn largest(&self) -> f32 {
        larger(self.prompt, self.steps)
    }
}

/// The larger of two differences, where NaN is larger than anything.
fn larger(a: f32, b: f32) -> f32 {
    if a.is_nan() || a > b { a } else { b }
}

impl Reference {
    /// Reads reference data.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] and [`ErrorKind::Format`] for a missing or damaged file, [`ErrorKind::Weights`] for a tensor that is missing
    /// or has another dtype or shape, naming it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = Checkpoint::open(path.as_ref())?;
        if let Some(name) = ["prompt", "logits", "greedy", "step_logits"].into_iter().find(|name| !file.contains(name))
        {
            let what = format!("no reference data: it lacks the tensor {name}");
            return Err(Error::new(ErrorKind::Weights, what).at_path(path.as_ref()));
        }
        let prompt = tokens(&file, "prompt")?;
        let greedy = tokens(&file, "greedy")?;
        let vocab = match file.shape("logits") {
            Some(&[_, vocab]) => vocab,
            _ => 0,
        };
        let logits = floats(&file, "logits", &[prompt.len(), vocab])?;
        let step_logits = floats(&file, "step_logits", &[greedy.len(), vocab])?;
        if prompt.is_empty() || vocab == 0 {
            return Err(Error::new(ErrorKind::Weights, "it has no prompt or no logits").at_path(path.as_ref()));
        }
        Ok(Self { prompt, logits, greedy, step_logits, vocab })
    }

    /// Runs the model over the prompt at once and then over the reference's own continuation, token by token through a cache.
    ///
    /// # Errors
    /// [`ErrorKind::Weights`] when the vocabularies differ or the reference has a token outside; what the computation reports.
    pub fn compare(&self, model: &dyn LanguageModel) -> Result<Difference> {
        if model.vocab_size() != self.vocab {
            let what =
                format!("the reference has a vocabulary of {}, the model one of {}", self.vocab, model.vocab_size());
            return Err(Error::new(ErrorKind::Weights, what));
        }
        // MLX does not check an index into the embedding.
        if let Some(token) = self.prompt.iter().chain(&self.greedy).find(|&&token| token as usize >= self.vocab) {
            let what = format!("the reference has token {token}, outside its vocabulary of {}", self.vocab);
            return Err(Error::new(ErrorKind::Weights, what));
        }
        let row = |tokens: &[u32]| Array::from_slice(tokens, (1, tokens.len() as i32));
        let whole = model.forward(&row(&self.prompt)?, &mut model.make_caches(), Logits::All)?;
        let prompt = largest_difference(&whole.to_vec::<f32>()?, &self.logits);

        let mut caches = model.make_caches();
        let mut logits = model.forward(&row(&self.prompt)?, &mut caches, Logits::Last)?;
        let (mut steps, mut token) = (0.0, None);
        for (step, (&expected, expected_logits)) in
            self.greedy.iter().zip(self.step_logits.chunks(self.vocab)).enumerate()
        {
            let ours = logits.to_vec::<f32>()?;
            steps = larger(steps, largest_difference(&ours, expected_logits));
            let chosen = argmax(&ours);
            if chosen != expected && token.is_none() {
                token = Some((step, chosen, expected));
            }
            logits = model.forward(&row(&[expected])?, &mut caches, Logits::Last)?;
        }
        Ok(Difference { prompt, steps, token })
    }
}

fn tokens(file: &Checkpoint, name: &str) -> Result<Vec<u32>> {
    let tensor = file.tensor(name)?;
    if tensor.dtype() != Dtype::I32 || tensor.shape().len() != 1 {
        let what = format!("dtype {} and shape {:?}, wanted I32 and one dimension", tensor.dtype(), tensor.shape());
        return Err(Error::new(ErrorKind::Weights, what).at_tensor(name).at_path(file.path()));
    }
    tensor
        .data()
        .chunks_exact(4)
        .map(|b| {
            let token = i32::from_le_bytes([b[0], b[1], b[2], b[3]]);
            u32::try_from(token).map_err(|_| {
                let what = format!("{token} is no token");
                Error::new(ErrorKind::Weights, what).at_tensor(name).at_path(file.path())
            })
        })
        .collect()
}

fn floats(file: &Checkpoint, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
    let tensor = file.tensor(name)?;
    if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
        let what = format!("dtype {} and shape {:?}, wanted F32 and {shape:?}", tensor.dtype(), tensor.shape());
        return Err(Error::new(ErrorKind::Weights, what).at_tensor(name).at_path(file.path()));
    }
    Ok(tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() {
        return f32::NAN;
    }
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, larger)
}

fn argmax(logits: &[f32]) -> u32 {
    let mut best = 0;
    for (i, &x) in logits.iter().enumerate() {
        if x > logits[best] {
            best = i;
        }
    }
    best as u32
}
