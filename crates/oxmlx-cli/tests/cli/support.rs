//! Running the binary, and models for it.

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use crate::files::{fixture, smollm2};

/// What a run of the binary left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Checks that it failed as every failure should: one line on standard error, nothing on standard output, exit code 2.
    #[track_caller]
    pub(crate) fn failed(self, says: &[&str]) {
        assert_eq!(self.code, Some(2), "{self:?}");
        assert_eq!(self.out, "");
        assert!(self.err.starts_with("oxmlx: ") && self.err.ends_with('\n'), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        for words in says {
            assert!(self.err.contains(words), "{words:?} is not in {}", self.err);
        }
    }

    /// Checks that it ended well, and gives standard output.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// The object on the last line of standard output.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(self.done().lines().last().unwrap()).unwrap()
    }
}

pub(crate) fn oxmlx(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oxmlx"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn run(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    run_with(args, b"")
}

/// Runs with these bytes on standard input.
pub(crate) fn run_with(args: impl IntoIterator<Item = impl AsRef<OsStr>>, input: &[u8]) -> Ran {
    let mut child = oxmlx(args).stdin(Stdio::piped()).spawn().unwrap();
    // A program that fails first does not read it.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The tokens that a context of the tiny model holds.
pub(crate) const TINY_CONTEXT: usize = 96;

/// The tiny Llama of the fixtures with a tokenizer whose token `n` is the word `wn`, and a template that follows a question
/// with `w300`.
pub(crate) struct Tiny(TempDir);

impl Tiny {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let from = fixture("models/llama");
        std::fs::copy(from.join("model.safetensors"), dir.path().join("model.safetensors")).unwrap();
        let mut config: Value = serde_json::from_slice(&std::fs::read(from.join("config.json")).unwrap()).unwrap();
        config["max_position_embeddings"] = json!(TINY_CONTEXT);
        let tiny = Self(dir);
        tiny.write("config.json", &config.to_string());
        let vocab: serde_json::Map<_, _> = (0..320).map(|id| (format!("w{id}"), json!(id))).collect();
        let tokenizer = json!({
            "version": "1.0",
            "added_tokens": [],
            "normalizer": null,
            "pre_tokenizer": { "type": "WhitespaceSplit" },
            "post_processor": null,
            "decoder": null,
            "model": { "type": "WordLevel", "vocab": vocab, "unk_token": "w0" },
        });
        tiny.write("tokenizer.json", &tokenizer.to_string());
        let template = "{% for m in messages %}{{ m.content }} {% if m.role == 'user' %}w300 {% endif %}{% endfor %}";
        tiny.write("tokenizer_config.json", &json!({ "chat_template": template }).to_string());
        tiny
    }

    pub(crate) fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs `generate` with the raw prompt `w1 w2 w3`.
    pub(crate) fn generate(&self, args: &[&str]) -> Ran {
        run(["generate", "--model", self.path(), "--raw", "--prompt", "w1 w2 w3"].iter().chain(args))
    }
}

/// The text of tokens that follow a prompt of the tiny model.
pub(crate) fn words(tokens: &Value) -> String {
    tokens.as_array().unwrap().iter().map(|id| format!(" w{id}")).collect()
}
