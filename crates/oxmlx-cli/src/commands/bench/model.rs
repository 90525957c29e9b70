//! `oxmlx bench decode` and `oxmlx bench prefill`.

use std::time::Instant;

use clap::ValueEnum;
use oxmlx::{Array, ops};
use oxmlx_lm::engine::{PrefillOptions, PrefillStep, Prefix, SequenceId, SequenceSpec, StepBatch};
use oxmlx_lm::{DirectEngine, Engine, LanguageModel, Logits, ModelFiles, Request};
use serde_json::json;

use super::measure::{Memory, Rounds};
use super::{Report, random_model};
use crate::bench_args::{Bits, ModelBench, Source};
use crate::failure::Failure;
use crate::model::{load_model, open_files};
use crate::stats::peak_bytes;

/// A model to measure.
struct Subject {
    name: String,
    /// The bytes of weights that a token needs.
    weight_bytes: usize,
    model: Box<dyn LanguageModel>,
}

impl Source {
    /// The files of the model, and what to call it; `None` where none was named.
    pub(super) fn files(&self) -> Result<Option<(String, ModelFiles)>, Failure> {
        let Some(shape) = self.config else {
            let Some(path) = &self.model else { return Ok(None) };
            return Ok(Some((path.display().to_string(), open_files(path)?)));
        };
        let bits = self.bits.unwrap_or(Bits::Four);
        let io = |error| Failure::Io("the folder for temporary files", error);
        // Gone when this ends: the files are mapped by then.
        let folder = tempfile::tempdir().map_err(io)?;
        random_model::write(folder.path(), shape, bits).map_err(io)?;
        Ok(Some((format!("random {}, {} bits", named(shape), named(bits)), open_files(folder.path())?)))
    }
}

/// What a choice is called on the command line.
fn named(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl Subject {
    fn open(args: &ModelBench) -> Result<Self, Failure> {
        let wanted = "give a model by --model PATH, or the shape of one by --config";
        let (name, files) = args.source.files()?.ok_or_else(|| Failure::Usage(wanted.to_owned()))?;
        let context = files.config().max_context;
        if args.prompt_tokens as usize + args.tokens as usize > context {
            let (prompt, tokens) = (args.prompt_tokens, args.tokens);
            let what = format!("--prompt-tokens {prompt} and --tokens {tokens}: the model's context is {context}");
            return Err(Failure::Usage(what));
        }
        Ok(Self { name, weight_bytes: weight_bytes(&files), model: load_model(&files)? })
    }
}

/// The bytes of the tensors as the engine holds them, without a table of embeddings of which a token needs one row.
fn weight_bytes(files: &ModelFiles) -> usize {
    let checkpoint = files.checkpoint();
    let read = |name: &&str| files.ties_embeddings() || !name.starts_with("model.embed_tokens.");
    let bytes = |name: &str| {
        let elements: usize = checkpoint.shape(name).unwrap_or_default().iter().product();
        elements * checkpoint.dtype(name).map_or(0, |dtype| dtype.bits()) / 8
    };
    checkpoint.names().filter(read).map(bytes).sum()
}

pub(super) fn decode(args: &ModelBench) -> Result<Report, Failure> {
    let threads = args.how.threads()?;
    let Subject { name, weight_bytes, model } = Subject::open(args)?;
    let prompt = prompt(args, &*model);
    let mut engine = Engine::new(model);
    let row = long_row(&mut engine, &prompt)?;
    oxmlx::runtime::set_cpu_threads(threads);
    answer(&mut engine, row, &prompt, args.tokens.min(8))?;
    let peak = peak_bytes();
    // In turns, since what the memory gives changes with what else the machine does.
    let (memory, mut figures, mut bandwidths) = (Memory::new(), Vec::new(), Vec::new());
    for _ in 0..args.how.rounds {
        figures.push(answer(&mut engine, row, &prompt, args.tokens)?);
        bandwidths.push(memory.bandwidth(threads));
    }
    let (rounds, bandwidth) = (Rounds::new(figures), Rounds::new(bandwidths).median());
    let limit = bandwidth / weight_bytes as f64;
    let share = rounds.median() / limit;
    let json = json!({
        "model": name,
        "threads": threads,
        "prompt_tokens": args.prompt_tokens,
        "tokens": args.tokens,
        "decode_tps": rounds.median(),
        "rounds": rounds.sorted(),
        "weight_bytes": weight_bytes,
        "memory_bytes_per_second": bandwidth,
        "bandwidth_limit_tps": limit,
        "share_of_limit": share,
        "peak_bytes": peak,
    });
    let (weights, memory) = (weight_bytes as f64 / 1e6, bandwidth / 1e9);
    let table = format!(
        "{name}, {threads} threads, {} prompt tokens, {} tokens, {} rounds\n\
         decode   {} tokens/s\n\
         limit    {limit:.1} tokens/s: {weights:.0} MB of weights a token, {memory:.1} GB/s of memory read; decode is at {:.0} %\n",
        args.prompt_tokens,
        args.tokens,
        args.how.rounds,
        rounds.table(),
        100.0 * share,
    );
    Ok(Report { json, table })
}

/// How many tokens of a prompt are read before an answer is timed. What more there are get the keys and values of these again: a token
/// takes as long whatever they are, and to read a long prompt takes much longer than its answer.
const READ: usize = 512;

/// A sequence that has all of the prompt in its caches but the last token.
fn long_row(engine: &mut Engine, prompt: &[u32]) -> Result<SequenceId, Failure> {
    let row = engine.open(SequenceSpec::new(0))?;
    let Some(seen) = prompt.len().checked_sub(1).filter(|&seen| seen > READ) else { return Ok(row) };
    let mut caches = engine.model().make_caches();
    let tokens = Array::from_slice(&prompt[..READ], (1, READ as i32))?;
    engine.model().forward(&tokens, &mut caches, Logits::Last)?;
    for cache in &mut caches {
        let held = cache.arrays();
        let rows = |array: &Array, n: usize| {
            let shape = array.shape();
            ops::slice(array, &[0; 4], &[shape[0], shape[1], n as i32, shape[3]], &[1; 4])
        };
        while cache.offset() < seen {
            let n = READ.min(seen - cache.offset());
            cache.append(&rows(&held[0], n)?, &rows(&held[1], n)?)?;
        }
        oxmlx::eval(&cache.arrays())?;
    }
    let snapshots = caches.iter().map(|cache| cache.snapshot()).collect::<Option<Vec<_>>>();
    // The caches that a model makes take snapshots; one that did not would have its prompt read.
    if let Some(snapshots) = snapshots {
        engine.adopt(row, &Prefix::new(prompt[..seen].to_vec(), snapshots)?, None)?;
    }
    Ok(row)
}

/// Reads what a sequence lacks of the prompt and answers; tokens a second after the first.
fn answer(engine: &mut Engine, row: SequenceId, prompt: &[u32], tokens: u32) -> Result<f64, Failure> {
    engine.reopen(row, SequenceSpec::new(tokens as usize))?;
    for piece in engine.begin(row, prompt, PrefillOptions::default())?.pieces() {
        engine.prefill(PrefillStep::new(row, piece))?;
    }
    let mut outcome = engine.complete_prefill(row)?;
    let (start, mut made) = (Instant::now(), 0);
    while outcome.error.is_none() && outcome.finish.is_none() {
        match engine.advance(&StepBatch::new(&[row]))?.pop() {
            Some(next) => outcome = next,
            None => break,
        }
        made += usize::from(outcome.token.is_some());
    }
    match outcome.error {
        Some(error) => Err(error.into()),
        None => Ok(made as f64 / start.elapsed().as_secs_f64()),
    }
}

pub(super) fn prefill(args: &ModelBench) -> Result<Report, Failure> {
    let threads = args.how.threads()?;
    oxmlx::runtime::set_cpu_threads(threads);
    let Subject { name, model, .. } = Subject::open(args)?;
    let prompt = prompt(args, &*model);
    let mut engine = DirectEngine::new(model);
    read(&mut engine, &prompt[..prompt.len().min(8)])?;
    let mut figures = Vec::new();
    for _ in 0..args.how.rounds {
        figures.push(read(&mut engine, &prompt)?);
    }
    let rounds = Rounds::new(figures);
    let json = json!({
        "model": name,
        "threads": threads,
        "prompt_tokens": args.prompt_tokens,
        "prefill_tps": rounds.median(),
        "rounds": rounds.sorted(),
        "peak_bytes": peak_bytes(),
    });
    let (tokens, count) = (args.prompt_tokens, args.how.rounds);
    let table = format!(
        "{name}, {threads} threads, {tokens} prompt tokens, {count} rounds\nprefill  {} tokens/s\n",
        rounds.table()
    );
    Ok(Report { json, table })
}

/// Tokens from all over the vocabulary: what they say does not matter.
fn prompt(args: &ModelBench, model: &dyn LanguageModel) -> Vec<u32> {
    (0..args.prompt_tokens)
        .map(|at| (u64::from(at) * 7919 + 31) % model.vocab_size() as u64)
        .map(|t| t as u32)
        .collect()
}

/// Reads a prompt up to the first token of the answer.
fn read(engine: &mut DirectEngine, prompt: &[u32]) -> Result<f64, Failure> {
    engine.reset();
    let start = Instant::now();
    let first = engine.generate(prompt, Request::new(1, &[]), &mut |_| true)?.next();
    first.transpose()?;
    Ok(prompt.len() as f64 / start.elapsed().as_secs_f64())
}
