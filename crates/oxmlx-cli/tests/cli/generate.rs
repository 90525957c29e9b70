//! `oxmlx generate`.

use std::io::Read;
#[cfg(target_os = "linux")]
use std::process::Stdio;
use std::time::Instant;

use serde_json::Value;

use crate::support::{TINY_CONTEXT, Tiny, oxmlx, run, run_with, smollm2, words};

const KEYS: [&str; 8] =
    ["text", "tokens", "prompt_tokens", "load_ms", "prefill_tps", "decode_tps", "peak_bytes", "finish_reason"];

#[track_caller]
fn has_the_keys(object: &Value) {
    let keys: Vec<_> = object.as_object().unwrap().keys().collect();
    assert_eq!(keys, KEYS);
}

#[test]
fn text_is_that_of_the_tokens_and_ends_with_a_line_break() {
    let tiny = Tiny::new();
    let object = tiny.generate(&["--max-tokens", "7", "--json"]).json();
    has_the_keys(&object);
    assert_eq!(object["tokens"].as_array().unwrap().len(), 7);
    assert_eq!(object["text"], words(&object["tokens"]));
    assert_eq!((&object["prompt_tokens"], &object["finish_reason"]), (&3.into(), &"length".into()));
    for figure in ["load_ms", "prefill_tps", "decode_tps", "peak_bytes"] {
        assert!(object[figure].as_f64().unwrap() > 0.0, "{figure} of {object}");
    }
    let plain = tiny.generate(&["--max-tokens", "7"]);
    assert_eq!(plain.err.lines().count(), 1, "{}", plain.err);
    assert_eq!(plain.done(), words(&object["tokens"]) + "\n");
}

#[test]
fn no_tokens_wanted_prints_nothing() {
    let tiny = Tiny::new();
    assert_eq!(tiny.generate(&["--max-tokens", "0"]).done(), "");
    let object = tiny.generate(&["--max-tokens", "0", "--json"]).json();
    has_the_keys(&object);
    assert_eq!(object["text"], "");
    assert_eq!(object["tokens"], serde_json::json!([]));
    assert_eq!(object["finish_reason"], "length");
}

#[test]
fn full_context_ends_the_answer() {
    let object = Tiny::new().generate(&["--max-tokens", "1000", "--json"]).json();
    assert_eq!(object["finish_reason"], "context");
    // The token after the last that fits is known, and can't be fed.
    assert_eq!(object["tokens"].as_array().unwrap().len(), TINY_CONTEXT - 3 + 1);
}

#[test]
fn stop_text_is_cut_exactly() {
    let tiny = Tiny::new();
    let whole = tiny.generate(&["--max-tokens", "12", "--json"]).json()["text"].as_str().unwrap().to_owned();
    // From within one word into the next.
    let stop = &whole[whole.len() / 2..whole.len() / 2 + 5];
    let expected = &whole[..whole.find(stop).unwrap()];
    let object = tiny.generate(&["--max-tokens", "12", "--json", "--stop", "not there", "--stop", stop]).json();
    assert_eq!((object["text"].as_str(), &object["finish_reason"]), (Some(expected), &"stop".into()));
    let printed = tiny.generate(&["--max-tokens", "12", "--stop", stop]).done();
    assert_eq!(printed, format!("{expected}\n"));
}

#[test]
fn end_token_is_not_part_of_the_answer() {
    let tiny = Tiny::new();
    let tokens = tiny.generate(&["--max-tokens", "12", "--json"]).json()["tokens"].clone();
    let end = tokens[4].as_u64().unwrap();
    let at = tokens.as_array().unwrap().iter().position(|id| *id == end).unwrap();
    tiny.write("generation_config.json", &serde_json::json!({ "eos_token_id": [end] }).to_string());
    let object = tiny.generate(&["--max-tokens", "12", "--json"]).json();
    assert_eq!(object["tokens"].as_array().unwrap()[..], tokens.as_array().unwrap()[..at]);
    assert_eq!(object["finish_reason"], "stop");
}

#[test]
fn prompt_from_standard_input_is_the_prompt() {
    let tiny = Tiny::new();
    let args = |prompt| ["generate", "--model", tiny.path(), "--json", "--max-tokens", "3", "--prompt", prompt];
    let given = run(args("w1 w2")).json();
    for input in ["w1 w2", "w1 w2\n", "w1 w2\r\n"] {
        let read = run_with(args("-"), input.as_bytes()).json();
        assert_eq!((&read["tokens"], &read["prompt_tokens"]), (&given["tokens"], &3.into()));
    }
    let system = run(args("w2").iter().chain(&["--system", "w1"])).json();
    assert_eq!(system["tokens"], given["tokens"]);
}

#[test]
fn seed_repeats_the_draws() {
    let tiny = Tiny::new();
    let tokens = |seed| {
        let args = ["--json", "--max-tokens", "12", "--temp", "2", "--top-k", "50", "--top-p", "0.95", "--seed", seed];
        tiny.generate(&args).json()["tokens"].clone()
    };
    assert_eq!(tokens("7"), tokens("7"));
    assert_ne!(tokens("7"), tokens("8"));
    // Only the most likely token is left to draw from.
    let one = tiny.generate(&["--json", "--max-tokens", "12", "--temp", "2", "--top-k", "1"]).json();
    assert_eq!(one["tokens"], tiny.generate(&["--json", "--max-tokens", "12"]).json()["tokens"]);
}

#[test]
fn closed_output_ends_quietly() {
    let tiny = Tiny::new();
    for extra in [&[][..], &["--json"]] {
        let args = ["generate", "--model", tiny.path(), "--raw", "--prompt", "w1 w2 w3"];
        let mut child = oxmlx(args.iter().chain(extra)).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &*output.stderr), (Some(0), &b""[..]));
    }
}

#[test]
fn closed_standard_error_is_no_failure() {
    let tiny = Tiny::new();
    let args = ["generate", "--model", tiny.path(), "--raw", "--prompt", "w1 w2 w3", "--max-tokens", "2"];
    let mut child = oxmlx(args).spawn().unwrap();
    drop(child.stderr.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let mut child = oxmlx(["generate", "--model", "missing", "--prompt", "x"]).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_an_error() {
    let tiny = Tiny::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let args = ["generate", "--model", tiny.path(), "--raw", "--prompt", "w1 w2 w3", "--max-tokens", "2"];
    let output = oxmlx(args).stdout(Stdio::from(full)).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("oxmlx: standard output: "));
}

#[test]
fn smollm2_streams_text_as_it_is_made() {
    let model = smollm2();
    let args = ["generate", "--model", model.to_str().unwrap(), "--raw", "--prompt", "One, two, three,"];
    let mut child = oxmlx(args.iter().chain(&["--max-tokens", "16"])).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut reads, mut text, mut piece) = (Vec::new(), Vec::new(), [0; 256]);
    loop {
        let n = out.read(&mut piece).unwrap();
        if n == 0 {
            break;
        }
        reads.push(Instant::now());
        text.extend_from_slice(&piece[..n]);
    }
    assert!(child.wait().unwrap().success());
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(" four, five, six"), "{text}");
    // All at once, or by the line, would be one or two.
    assert!(reads.len() >= 5, "{} pieces", reads.len());
    assert!(reads[0] < reads[reads.len() - 1]);
}

#[test]
fn penalties_and_biases_change_the_tokens() {
    let tiny = Tiny::new();
    let tokens = |args: &[&str]| {
        let args = [&["--json", "--max-tokens", "12"], args].concat();
        tiny.generate(&args).json()["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t.as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let plain = tokens(&[]);
    let first = plain[0].to_string();
    assert!(!tokens(&["--suppress", &first, "--logit-bias", &format!("{first}=100")]).contains(&plain[0]));
    assert_eq!(tokens(&["--logit-bias", "7=1000", "--logit-bias", "2000000000=5"]), [7; 12]);
    // Greedy, and each token at most once, the prompt's 1, 2, 3 not at all.
    let mut once = tokens(&["--presence-penalty", "1e6", "--penalty-window", "-1"]);
    assert!(once.iter().all(|t| ![1, 2, 3].contains(t)));
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), 12);
    for order in ["default", "temperature-first"] {
        assert_eq!(tokens(&["--temp", "3", "--top-k", "1", "--sampling-order", order]), plain);
    }
}

#[test]
fn grammars_shape_the_text() {
    let model = smollm2();
    let generate = |args: &[&str]| {
        let base = ["generate", "--model", model.to_str().unwrap(), "--max-tokens", "40"];
        run(base.iter().chain(args))
    };
    let text = generate(&["--prompt", "Is the sky blue?", "--regex", "(Certainly|Never)!", "--temp", "2"]).done();
    assert!(["Certainly!\n", "Never!\n"].contains(&text.as_str()), "{text}");
    let schema = r#"{"type": "object", "properties": {"year": {"type": "integer", "minimum": 1000, "maximum": 2100}},
        "required": ["year"], "additionalProperties": false}"#;
    let text = generate(&["--prompt", "When did the First World War begin?", "--json-schema", schema]).done();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!((1000..=2100).contains(&value["year"].as_u64().unwrap()), "{text}");
    generate(&["--prompt", "x", "--json-schema", "{"]).failed(&["--json-schema: ", "not json"]);
    generate(&["--prompt", "x", "--regex", "("]).failed(&["--regex: "]);
}
