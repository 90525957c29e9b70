//! `oxmlx verify`: compare a model with reference data.

use std::io::Write;
use std::process::ExitCode;

use oxmlx_lm::verify::Reference;

use crate::args::VerifyArgs;
use crate::failure::Failure;
use crate::model::{load_model, open_files};

pub(crate) fn run(args: VerifyArgs) -> Result<ExitCode, Failure> {
    if !(args.tolerance >= 0.0 && args.tolerance.is_finite()) {
        return Err(Failure::Usage(format!("--tolerance {}: give a finite number from 0 on", args.tolerance)));
    }
    let reference = Reference::open(&args.expected)?;
    let model = load_model(&open_files(&args.model)?)?;
    let difference = reference.compare(&*model)?;
    let near = difference.largest() <= args.tolerance;
    let mut out = std::io::stdout().lock();
    let lines = [
        format!("prompt logits: largest difference {:.3e}", difference.prompt),
        format!("step logits:   largest difference {:.3e}", difference.steps),
        match difference.token {
            None => "greedy tokens: equal".to_owned(),
            Some((step, ours, theirs)) => format!("greedy tokens: step {step} gives {ours}, the reference {theirs}"),
        },
        format!(
            "{}: largest difference {:.3e}, tolerance {:.1e}",
            if near && difference.token.is_none() { "ok" } else { "DIFFERENT" },
            difference.largest(),
            args.tolerance
        ),
    ];
    for line in lines {
        writeln!(out, "{line}").map_err(Failure::output)?;
    }
    Ok(if near && difference.token.is_none() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
