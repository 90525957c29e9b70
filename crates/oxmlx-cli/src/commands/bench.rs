//! `oxmlx bench`: how fast this machine answers, reads prompts, and runs single operations.

mod measure;
mod model;
mod ops;
mod random_model;

use std::io::Write;
use std::process::ExitCode;

use serde_json::Value;

use crate::bench_args::{Bench, BenchArgs};
use crate::failure::Failure;

pub(crate) fn run(args: BenchArgs) -> Result<ExitCode, Failure> {
    let (report, json) = match &args.what {
        Bench::Decode(args) => (model::decode(args)?, args.how.json),
        Bench::Prefill(args) => (model::prefill(args)?, args.how.json),
        Bench::Ops(args) => (ops::run(args)?, args.how.json),
    };
    let mut out = std::io::stdout().lock();
    let text = if json { format!("{}\n", report.json) } else { report.table };
    out.write_all(text.as_bytes()).map_err(Failure::output)?;
    Ok(ExitCode::SUCCESS)
}

/// What was measured, for programs and for people.
struct Report {
    json: Value,
    table: String,
}
