//! `oxmlx bench`.

use serde_json::Value;

use crate::support::{TINY_CONTEXT, Tiny, fixture, run};

fn bench(args: &[&str]) -> crate::support::Ran {
    run([&["bench"], args].concat())
}

#[track_caller]
fn positive(object: &Value, keys: &[&str]) {
    for key in keys {
        assert!(object[key].as_f64().is_some_and(|figure| figure > 0.0), "{key} of {object}");
    }
}

#[test]
fn decode_and_prefill_tell_medians_of_their_rounds() {
    let tiny = Tiny::new();
    let few = ["--model", tiny.path(), "--prompt-tokens", "20", "--rounds", "3", "--json"];
    let object = bench(&[&["decode", "--tokens", "6", "--threads", "1"], &few[..]].concat()).json();
    positive(&object, &["decode_tps", "weight_bytes", "memory_bytes_per_second", "share_of_limit", "peak_bytes"]);
    assert_eq!((&object["threads"], &object["prompt_tokens"], &object["tokens"]), (&1.into(), &20.into(), &6.into()));
    let rounds = object["rounds"].as_array().unwrap();
    assert_eq!((rounds.len(), &rounds[1]), (3, &object["decode_tps"]));
    // Its head is its embedding, so that a token needs every tensor.
    let bytes = std::fs::metadata(tiny.file("model.safetensors")).unwrap().len();
    assert!((bytes - 10_000..bytes).contains(&object["weight_bytes"].as_u64().unwrap()), "{object} of {bytes}");

    let object = bench(&[&["prefill"], &few[..]].concat()).json();
    positive(&object, &["prefill_tps", "peak_bytes"]);
    assert_eq!(object["rounds"].as_array().unwrap().len(), 3);
}

#[test]
fn a_table_is_for_people() {
    let tiny = Tiny::new();
    let args = ["--model", tiny.path(), "--prompt-tokens", "9", "--tokens", "3", "--rounds", "1"];
    let decode = bench(&[&["decode"], &args[..]].concat()).done();
    assert!(decode.contains("tokens/s") && decode.contains("GB/s of memory read"), "{decode}");
    let prefill = bench(&[&["prefill"], &args[..]].concat()).done();
    assert!(prefill.starts_with(tiny.path()) && prefill.contains("prefill  "), "{prefill}");
}

#[test]
fn operations_are_listed_with_their_rates_and_a_models_products_too() {
    let model = fixture("models/llama_q4");
    let args = ["ops", "--rounds", "1", "--threads", "1"];
    let object = bench(&[&args[..], &["--json", "--model", model.to_str().unwrap()]].concat()).json();
    positive(&object, &["memory_bytes_per_second"]);
    let lines = object["ops"].as_array().unwrap();
    let line = |name: &str| {
        let found = lines.iter().find(|line| line["name"].as_str().unwrap().contains(name));
        found.unwrap_or_else(|| panic!("no {name} in {object}"))
    };
    for name in ["float32 matmul 1024", "bfloat16 matmul 1024", "float16 matmul 1024"] {
        positive(line(name), &["seconds", "gflops"]);
    }
    for name in ["4-bit matvec 4096x4096", "bfloat16 matvec 4096x4096", "attention, 1 query"] {
        positive(line(name), &["seconds", "gflops", "gbytes_per_second"]);
    }
    for name in ["rms_norm", "layer_norm"] {
        positive(line(name), &["seconds", "gbytes_per_second"]);
    }
    positive(line("attention, 512 queries"), &["seconds", "gflops"]);
    positive(line("mlp.down_proj, 4-bit matvec 64x160"), &["seconds"]);
    positive(line("model.embed_tokens, 4-bit matvec 320x64"), &["seconds"]);
}

#[test]
fn a_random_model_of_a_known_shape_decodes() {
    let args = ["decode", "--config", "smollm2-135m", "--bits", "8", "--prompt-tokens", "600", "--tokens", "2"];
    let object = bench(&[&args[..], &["--rounds", "1", "--json"]].concat()).json();
    positive(&object, &["decode_tps"]);
    // 134.5 million weights of 8 bits, and a scale and a bias of 16 bits for 64 of them.
    let bytes = object["weight_bytes"].as_f64().unwrap();
    assert!((bytes / 134_515_008.0 - 8.5 / 8.0).abs() < 1e-3, "{bytes}");
}

#[test]
fn what_can_not_be_measured_is_one_line() {
    bench(&["decode"]).failed(&["--model PATH", "--config"]);
    bench(&["prefill", "--model", "no/such"]).failed(&["no/such", "not found"]);
    bench(&["decode", "--model", "x", "--config", "llama-1b"]).failed(&["--model", "--config"]);
    bench(&["decode", "--config", "gpt-5"]).failed(&["gpt-5", "llama-1b", "smollm2-135m"]);
    bench(&["decode", "--bits", "4", "--model", "x"]).failed(&["--bits", "--model"]);
    bench(&["decode", "--bits", "4"]).failed(&["--config"]);
    bench(&["decode", "--config", "llama-1b", "--bits", "5"]).failed(&["--bits", "5"]);
    for (flag, values) in [
        ("--prompt-tokens", ["0", "-1", "x"]),
        ("--tokens", ["1", "-1", "1.5"]),
        ("--rounds", ["0", "-1", "1001"]),
        ("--threads", ["0", "-1", "100000"]),
    ] {
        for value in values {
            bench(&["decode", "--model", "missing", flag, value]).failed(&[flag, value]);
        }
    }
    let tiny = Tiny::new();
    let long = (TINY_CONTEXT - 3).to_string();
    bench(&["decode", "--model", tiny.path(), "--prompt-tokens", &long, "--tokens", "4"])
        .failed(&["--prompt-tokens 93 and --tokens 4", "context is 96"]);
    bench(&["dance"]).failed(&["dance"]);
}
