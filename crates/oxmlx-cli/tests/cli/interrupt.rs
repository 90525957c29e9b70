//! Ctrl-C.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{oxmlx, smollm2};

fn press_ctrl_c(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// Starts on SmolLM2 with a prompt of some 2,000 tokens, and waits until it reads it.
fn reads_a_long_prompt(args: &[&str]) -> Child {
    let model = smollm2();
    let all = ["generate", "--model", model.to_str().unwrap(), "--raw", "--prompt", "-"];
    let mut child = oxmlx(all.iter().chain(args)).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all("word ".repeat(2000).as_bytes()).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    child
}

#[test]
fn ends_the_answer_with_what_was_made() {
    let model = smollm2();
    let args =
        ["generate", "--model", model.to_str().unwrap(), "--raw", "--prompt", "One, two,", "--max-tokens", "2000"];
    let mut child = oxmlx(args).spawn().unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    press_ctrl_c(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout.ends_with(b"\n"));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("cancelled") && err.lines().count() == 1, "{err}");
}

#[test]
fn ends_the_reading_of_the_prompt() {
    let child = reads_a_long_prompt(&["--json", "--prefill-chunk", "8"]);
    press_ctrl_c(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object.as_object().unwrap().len(), 8);
    assert_eq!((&object["finish_reason"], &object["text"]), (&"cancelled".into(), &"".into()));
}

#[test]
fn ends_the_reading_of_a_prompt_that_is_one_piece() {
    let child = reads_a_long_prompt(&["--json", "--prefill-chunk", "0"]);
    press_ctrl_c(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&object["finish_reason"], &object["text"]), (&"cancelled".into(), &"".into()));
}

#[test]
fn between_turns_of_a_chat_ends_the_program() {
    let model = smollm2();
    let args = ["chat", "--model", model.to_str().unwrap(), "--max-tokens", "1"];
    let mut child = oxmlx(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(b"hi\n").unwrap();
    // The answer, and its line break.
    let mut byte = [0];
    while byte != *b"\n" {
        child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
    press_ctrl_c(&child);
    assert_eq!(child.wait().unwrap().signal(), Some(2));
}
