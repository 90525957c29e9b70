//! The programs of the comparison, and one timed run of each in a process of its own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::options::Options;
use crate::error::Error;
use crate::python::Environment;
use crate::tree;

/// A prompt as text and as the tokens that it encodes to.
#[derive(Deserialize)]
pub(super) struct Prompt {
    text: String,
    ids: Vec<u32>,
}

/// What one run of one program gave.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Run {
    /// The answer's tokens.
    pub(super) tokens: Vec<u32>,
    prompt_tokens: usize,
    /// Tokens of the prompt a second, up to the first token of the answer.
    pub(super) prefill_tps: f64,
    /// Tokens of the answer a second, after the first.
    pub(super) decode_tps: f64,
    /// What ran; oxmlx leaves it out.
    #[serde(default)]
    pub(super) version: String,
}

/// A program that can generate.
pub(super) enum Peer {
    /// This binary of ours.
    Oxmlx(PathBuf),
    /// Python mlx-lm.
    MlxLm,
    /// llama.cpp through its Python package.
    LlamaCpp,
}

impl Prompt {
    /// A prompt of exactly `count` tokens.
    pub(super) fn make(python: &Environment, model: &Path, count: usize) -> Result<Self, Error> {
        let mut command = python.script(&script_path("prompt.py"));
        command.arg(model).arg(count.to_string());
        let output = output("prompt.py", &mut command, "")?;
        parse("prompt.py", &output)
    }
}

impl Peer {
    /// The program's name, for people and as a JSON key.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Oxmlx(_) => "oxmlx",
            Self::MlxLm => "mlx_lm",
            Self::LlamaCpp => "llama_cpp",
        }
    }

    /// Starts the program, loads the model and generates once.
    pub(super) fn run(
        &self,
        python: &Environment,
        model: &Path,
        prompt: &Prompt,
        options: &Options,
    ) -> Result<Run, Error> {
        let (tokens, threads) = (options.tokens.to_string(), options.threads.to_string());
        let mut command = python.script(&script_path("limit.py"));
        command.arg(&threads);
        let input = match self {
            Self::Oxmlx(binary) => {
                command.arg(binary).args(["generate", "--raw", "--json", "--prompt", "-", "--model"]).arg(model);
                command.args(["--max-tokens", &tokens]);
                prompt.text.clone()
            }
            Self::MlxLm | Self::LlamaCpp => {
                let script = if matches!(self, Self::MlxLm) { "mlx_lm_peer.py" } else { "llama_cpp_peer.py" };
                command.arg(python.python()).arg(script_path(script)).arg(model).arg(&tokens);
                if matches!(self, Self::LlamaCpp) {
                    command.arg(&threads);
                }
                format!("{:?}", prompt.ids)
            }
        };
        let run: Run = parse(self.name(), &output(self.name(), &mut command, &input)?)?;
        if run.prompt_tokens != prompt.ids.len() {
            let status = format!("it read the prompt as {} tokens, not {}", run.prompt_tokens, prompt.ids.len());
            return Err(Error::Step { step: self.name().to_owned(), status });
        }
        if run.tokens.len() < 2 {
            let status = format!("its answer has {} tokens, too few to time", run.tokens.len());
            return Err(Error::Step { step: self.name().to_owned(), status });
        }
        Ok(run)
    }
}

/// Where a script of this folder lies.
fn script_path(name: &str) -> PathBuf {
    tree::root().join("xtask/src/bench/peers").join(name)
}

/// Runs a program on this input; its standard error is shown as it comes.
pub(super) fn output(step: &str, command: &mut Command, input: &str) -> Result<Vec<u8>, Error> {
    let program = PathBuf::from(command.get_program());
    let failed = |status: String| Error::Step { step: step.to_owned(), status };
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(Error::io("running", &program))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading tells why by its status.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(Error::io("waiting for", &program))?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed(output.status.to_string())) }
}

/// The JSON object on the last line.
pub(super) fn parse<T: for<'a> Deserialize<'a>>(step: &str, output: &[u8]) -> Result<T, Error> {
    let last = output.trim_ascii_end().rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice(last).map_err(|error| Error::Step {
        step: step.to_owned(),
        status: format!("its last line is not as expected: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Run, parse};

    #[test]
    fn what_oxmlx_generate_prints_is_read() {
        let line = br#"{"text":"a\n","tokens":[5,6],"prompt_tokens":3,"load_ms":9.5,"prefill_tps":10.5,"decode_tps":7.25,"peak_bytes":1,"finish_reason":"length"}
"#;
        let run: Run = match parse("oxmlx", line) {
            Ok(run) => run,
            Err(error) => panic!("{error}"),
        };
        assert_eq!((run.tokens, run.prompt_tokens, run.prefill_tps, run.decode_tps), (vec![5, 6], 3, 10.5, 7.25));
    }

    #[test]
    fn output_without_figures_is_an_error_that_names_the_program() {
        for text in ["", "hello\n", "{}\n"] {
            let error = parse::<Run>("mlx_lm", text.as_bytes()).map(|_| ()).map_err(|error| error.to_string());
            assert!(error.is_err_and(|text| text.starts_with("mlx_lm failed")));
        }
    }
}
