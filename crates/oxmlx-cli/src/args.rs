//! What the command line takes.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use oxmlx_lm::StopMatcher;

use crate::bench_args::BenchArgs;
use crate::draft_args::DraftArgs;
use crate::failure::Failure;
use crate::sampling_args::SamplingArgs;

/// Run language models through MLX, without Python.
#[derive(Parser)]
#[command(name = "oxmlx", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Answer one prompt
    Generate(GenerateArgs),
    /// Talk with a model; the history stays in the cache between turns
    Chat(ChatArgs),
    /// Tell about MLX, the devices and the memory
    Info(InfoArgs),
    /// Compare a model's logits and greedy tokens with reference data
    Verify(VerifyArgs),
    /// Measure how fast this machine is with a model, or with single operations
    Bench(BenchArgs),
}

/// Which model and how tokens are chosen.
#[derive(ClapArgs)]
pub(crate) struct ModelArgs {
    /// A GGUF file, or a folder with config.json and SafeTensors
    #[arg(long, short, value_name = "PATH")]
    pub(crate) model: PathBuf,
    /// What the model is told before the conversation
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) system: Option<String>,
    /// The most tokens to generate
    #[arg(long, short = 'n', value_name = "N", default_value_t = 256, allow_negative_numbers = true)]
    pub(crate) max_tokens: usize,
    /// End where this text comes; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) stop: Vec<String>,
    /// Tokens of the prompt that are read at a time; 0 for all at once
    #[arg(long, value_name = "N", default_value_t = 512, allow_negative_numbers = true)]
    pub(crate) prefill_chunk: usize,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    #[command(flatten)]
    pub(crate) drafts: DraftArgs,
}

impl ModelArgs {
    /// Refuses what no model could be asked: told before one is loaded.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.drafts.check(&self.sampling.check()?)
    }

    /// Where an answer ends; refuses a text that can't be one.
    pub(crate) fn stops(&self) -> Result<StopMatcher, Failure> {
        Ok(StopMatcher::new(self.stop.iter().cloned())?)
    }
}

#[derive(ClapArgs)]
pub(crate) struct GenerateArgs {
    /// The prompt; `-` reads it from standard input, without the line break at its end (with --raw: all of it)
    #[arg(long, short, value_name = "TEXT|-", allow_hyphen_values = true)]
    pub(crate) prompt: String,
    /// Give the prompt to the model as it is, without the chat template
    #[arg(long, conflicts_with = "system")]
    pub(crate) raw: bool,
    /// Print one JSON object on the last line instead of the text
    #[arg(long)]
    pub(crate) json: bool,
    // Last: its heading goes on to what comes after it.
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(ClapArgs)]
pub(crate) struct ChatArgs {
    /// Tell after each answer, on standard error, its speed and how much of the prompt had to be read
    #[arg(long)]
    pub(crate) stats: bool,
    // Last: its heading goes on to what comes after it.
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(ClapArgs)]
pub(crate) struct InfoArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(ClapArgs)]
pub(crate) struct VerifyArgs {
    /// A GGUF file, or a folder with config.json and SafeTensors
    pub(crate) model: PathBuf,
    /// SafeTensors with prompt, logits, greedy and step_logits
    pub(crate) expected: PathBuf,
    /// The largest difference of a logit that is still right
    #[arg(long, value_name = "X", default_value_t = 1e-3, allow_negative_numbers = true)]
    pub(crate) tolerance: f32,
}
