//! Models and prompts that can't be used.

use std::path::Path;

use crate::gguf_writer::{Val, Writer};
use crate::support::{TINY_CONTEXT, Tiny, fixture, run, run_with, smollm2};

fn generate(model: &Path) -> crate::support::Ran {
    run(["generate".as_ref(), "--model".as_ref(), model.as_os_str(), "--prompt".as_ref(), "hi".as_ref()])
}

#[test]
fn missing_model_is_named() {
    generate("no/such/model".as_ref()).failed(&["no/such/model", "not found, check the path"]);
    run(["chat", "--model", "no/such/model"]).failed(&["no/such/model", "not found"]);
    run(["verify", "no/such/model", "no/such/reference"]).failed(&["no/such/reference", "not found"]);
}

#[test]
fn control_characters_of_a_name_do_not_reach_the_terminal() {
    generate("no\nsuch\u{1b}[2Jmodel".as_ref()).failed(&["no such\\u{1b}[2Jmodel"]);
}

#[test]
fn folder_without_config_or_tokenizer_says_what_is_missing() {
    let empty = tempfile::tempdir().unwrap();
    generate(empty.path()).failed(&["no config.json here"]);
    generate(&fixture("models/llama")).failed(&["models/llama", "no tokenizer.json here"]);
}

#[test]
fn file_that_is_no_gguf_is_told() {
    generate(&fixture("models/llama/config.json")).failed(&["config.json", "not a gguf file"]);
    generate(&fixture("models/llama/model.safetensors")).failed(&["model.safetensors", "give the folder"]);
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("folder.gguf")).unwrap();
    generate(&dir.path().join("folder.gguf")).failed(&["folder.gguf", "no config.json here"]);
}

#[test]
fn truncated_gguf_is_named_and_to_be_fetched_again() {
    let whole = std::fs::read(smollm2()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.gguf");
    for length in [10, 100, 10_000, whole.len() / 2] {
        std::fs::write(&path, &whole[..length]).unwrap();
        generate(&path).failed(&["cut.gguf", "truncated", "fetch it again"]);
    }
    std::fs::write(&path, b"").unwrap();
    generate(&path).failed(&["cut.gguf", "not a gguf file"]);
}

#[test]
fn another_architecture_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.gguf");
    std::fs::write(&path, Writer::default().key("general.architecture", Val::str("starcoder")).build()).unwrap();
    generate(&path).failed(&["other.gguf", "starcoder"]);
    std::fs::write(&path, Writer::default().build()).unwrap();
    generate(&path).failed(&["other.gguf", "general.architecture"]);
    generate(&fixture("models/gpt2")).failed(&["config.json", "gpt2"]);
}

#[test]
fn gguf_without_tensors_names_what_it_lacks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hollow.gguf");
    let llama = Writer::default().key("general.architecture", Val::str("llama"));
    std::fs::write(&path, llama.build()).unwrap();
    generate(&path).failed(&["hollow.gguf", "llama."]);
}

#[test]
fn damaged_json_is_named() {
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        for text in ["", "{\"a\": ", "[]", "\u{0}"] {
            let tiny = Tiny::new();
            tiny.write(name, text);
            run(["generate", "--model", tiny.path(), "--prompt", "w1"]).failed(&[name]);
        }
    }
}

#[test]
fn damaged_template_is_an_error_before_any_text() {
    for template in ["{% for %}", "{{ raise_exception('refused') }}", "{% for i in range(100000000) %}x{% endfor %}"] {
        let tiny = Tiny::new();
        tiny.write("tokenizer_config.json", &serde_json::json!({ "chat_template": template }).to_string());
        run(["generate", "--model", tiny.path(), "--prompt", "w1"]).failed(&["template"]);
    }
}

#[test]
fn truncated_weights_are_named() {
    let tiny = Tiny::new();
    let weights = std::fs::read(tiny.file("model.safetensors")).unwrap();
    for length in [0, 7, 100, weights.len() / 2] {
        std::fs::write(tiny.file("model.safetensors"), &weights[..length]).unwrap();
        run(["generate", "--model", tiny.path(), "--prompt", "w1"]).failed(&["model.safetensors"]);
    }
}

#[test]
fn prompt_longer_than_the_context_says_both_lengths() {
    let tiny = Tiny::new();
    let prompt = "w5 ".repeat(TINY_CONTEXT + 1);
    let args = ["generate", "--model", tiny.path(), "--raw", "--prompt", &prompt];
    run(args).failed(&["97 tokens", "context is 96", "shorten it"]);
}

#[test]
fn empty_prompt_is_refused() {
    let tiny = Tiny::new();
    let args = |prompt| ["generate", "--model", tiny.path(), "--prompt", prompt];
    run(args("")).failed(&["--prompt", "empty"]);
    run_with(args("-"), b"").failed(&["standard input", "empty"]);
    run_with(args("-"), b"\n").failed(&["standard input", "empty"]);
    // White space is no token for this tokenizer.
    run(args(" ").iter().chain(&["--raw"])).failed(&["empty"]);
}

#[test]
fn prompt_that_is_no_text_is_refused() {
    let tiny = Tiny::new();
    run_with(["generate", "--model", tiny.path(), "--prompt", "-"], b"a\xffb").failed(&["standard input", "UTF-8"]);
    run_with(["chat", "--model", tiny.path()], b"a\xffb\n").failed(&["standard input", "UTF-8"]);
}

#[test]
fn token_outside_the_models_vocabulary_is_refused() {
    let tiny = Tiny::new();
    let text = std::fs::read_to_string(tiny.file("tokenizer.json")).unwrap();
    tiny.write("tokenizer.json", &text.replace("\"w319\":319", "\"w319\":319,\"x\":320"));
    let args = ["generate", "--model", tiny.path(), "--raw", "--prompt", "w1 x"];
    run(args).failed(&["token 320", "vocabulary of 320"]);
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_no_models() {
    generate("/dev/zero".as_ref()).failed(&["/dev/zero", "not a regular file"]);
}
