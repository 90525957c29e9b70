//! `oxmlx verify`.

use std::path::Path;

use crate::support::{Ran, Tiny, fixture, run};

fn verify(model: &Path, expected: &Path, args: &[&str]) -> Ran {
    let paths = ["verify".as_ref(), model.as_os_str(), expected.as_os_str()];
    run(paths.into_iter().chain(args.iter().map(std::convert::AsRef::as_ref)))
}

#[test]
fn right_model_is_0_and_wrong_one_is_1() {
    let llama = fixture("models/llama");
    let right = verify(&llama, &llama.join("expected.safetensors"), &[]);
    assert!(right.err.is_empty());
    assert!(right.done().contains("greedy tokens: equal\nok: "));
    let wrong = verify(&llama, &fixture("models/llama_untied_bias/expected.safetensors"), &[]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.out.contains("DIFFERENT: largest difference"), "{}", wrong.out);
    let q4 = fixture("models/llama_q4");
    assert_eq!(
        verify(&llama, &q4.join("expected.safetensors"), &["--tolerance", "1e9"]).code,
        Some(1),
        "tokens differ"
    );
}

/// Where the data of a tensor begin in a SafeTensors file.
fn data_of(file: &[u8], tensor: &str) -> usize {
    let header = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let facts: serde_json::Value = serde_json::from_slice(&file[8..8 + header]).unwrap();
    8 + header + facts[tensor]["data_offsets"][0].as_u64().unwrap() as usize
}

#[test]
fn nan_is_a_difference() {
    let mut file = std::fs::read(fixture("models/llama/expected.safetensors")).unwrap();
    let at = data_of(&file, "logits");
    file[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nan.safetensors");
    std::fs::write(&path, file).unwrap();
    let ran = verify(&fixture("models/llama"), &path, &["--tolerance", "1e30"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("NaN"), "{}", ran.out);
}

#[test]
fn token_outside_the_vocabulary_is_refused() {
    let whole = std::fs::read(fixture("models/llama/expected.safetensors")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("far.safetensors");
    for (tensor, token) in [("prompt", 320), ("greedy", i32::MAX), ("prompt", -1)] {
        let mut file = whole.clone();
        let at = data_of(&file, tensor);
        file[at..at + 4].copy_from_slice(&i32::to_le_bytes(token));
        std::fs::write(&path, file).unwrap();
        verify(&fixture("models/llama"), &path, &[]).failed(&[&token.to_string()]);
    }
}

#[test]
fn what_is_no_reference_is_told() {
    let tiny = Tiny::new();
    let model = Path::new(tiny.path());
    verify(model, &model.join("model.safetensors"), &[]).failed(&["model.safetensors", "no reference data", "prompt"]);
    verify(model, &model.join("config.json"), &[]).failed(&["config.json"]);
    verify(model, &model.join("none"), &[]).failed(&["none", "not found"]);
}
