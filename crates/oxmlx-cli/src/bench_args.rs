//! What `oxmlx bench` takes.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum, value_parser};

use crate::failure::Failure;

#[derive(ClapArgs)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) what: Bench,
}

#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Tokens of an answer a second, and the share of the memory's bandwidth that they take
    Decode(ModelBench),
    /// Tokens of a prompt a second, up to the first token of the answer
    Prefill(ModelBench),
    /// Single operations, as oxmlx's users call them; with a model the products of its layers too
    Ops(OpsBench),
}

#[derive(ClapArgs)]
pub(crate) struct ModelBench {
    /// Tokens of the prompt
    #[arg(long, value_name = "N", default_value_t = 64, allow_negative_numbers = true,
        value_parser = value_parser!(u32).range(1..))]
    pub(crate) prompt_tokens: u32,
    /// Tokens of the answer; what reads a prompt makes one
    #[arg(long, value_name = "N", default_value_t = 64, allow_negative_numbers = true,
        value_parser = value_parser!(u32).range(2..))]
    pub(crate) tokens: u32,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(ClapArgs)]
pub(crate) struct OpsBench {
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) how: How,
}

/// Which model.
#[derive(ClapArgs)]
pub(crate) struct Source {
    /// A GGUF file, or a folder with config.json and SafeTensors
    #[arg(long, short, value_name = "PATH", group = "source")]
    pub(crate) model: Option<PathBuf>,
    /// A model of this shape with random weights, made in the folder for temporary files
    #[arg(long, value_enum, group = "source")]
    pub(crate) config: Option<Shape>,
    /// Bits a weight of a random model; 16 is bfloat16, fewer come with a scale and a bias for each 64 weights [default: 4]
    #[arg(long, value_enum, requires = "config", conflicts_with = "model")]
    pub(crate) bits: Option<Bits>,
}

/// The shape of a published model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// Llama-3.2-1B
    #[value(name = "llama-1b")]
    Llama1B,
    /// SmolLM2-135M
    #[value(name = "smollm2-135m")]
    SmolLm2,
}

/// How many bits a weight has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bits {
    #[value(name = "4")]
    Four,
    #[value(name = "8")]
    Eight,
    #[value(name = "16")]
    Sixteen,
}

/// How to measure.
#[derive(ClapArgs)]
pub(crate) struct How {
    /// Threads that compute [default: one for each processor]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// Rounds, of which the median is told
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true,
        value_parser = value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl How {
    /// How many threads are to compute.
    pub(crate) fn threads(&self) -> Result<usize, Failure> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.map_or(processors, |threads| threads as usize);
        if threads > processors {
            return Err(Failure::Usage(format!("--threads {threads}: this process may use {processors} processors")));
        }
        Ok(threads)
    }
}
