//! Reading `mlx-pin.toml`.

use crate::mlx::pin::{Pin, TEXT};
use crate::mlx::platform::Backend;

/// The message that this tree's pin gives once `from` is replaced by `to`.
fn message(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "the pin has no {from:?}");
    Pin::parse(&TEXT.replacen(from, to, 1)).expect_err("a broken pin").to_string()
}

#[test]
fn this_trees_pin_is_read_with_every_backend_and_the_model() {
    let pin = Pin::of_this_tree().expect("the committed pin");
    assert_eq!(pin.version, "0.32.4");
    for backend in Backend::ALL {
        assert!(pin.wheels.iter().any(|wheel| wheel.backend == backend), "no wheel for {backend}");
    }
    let cpu = &pin.wheels[0];
    assert_eq!((cpu.download.package.as_str(), cpu.download.version.as_str()), ("mlx-cpu", "0.32.4"));
    assert_eq!(cpu.platform.tag, "manylinux_2_35_x86_64");
    assert_eq!(cpu.platform.minimum, (2, 35));
    assert_eq!(pin.model.file(), "SmolLM2-135M-Instruct.Q4_1.gguf");
    assert_eq!(pin.model.download.tag(), "any");
}

#[test]
fn crate_version_names_the_pinned_release() {
    let pin = Pin::of_this_tree().expect("the committed pin");
    assert!(
        env!("CARGO_PKG_VERSION").ends_with(&format!("+mlx.{}", pin.version)),
        "crate version {} and pin {}",
        env!("CARGO_PKG_VERSION"),
        pin.version
    );
}

#[test]
fn each_broken_key_is_named() {
    for (from, to, expected) in [
        ("version = \"0.32.4\"", "", "version: missing"),
        ("version = \"0.32.4\"", "version = \"0.32\"", "version: expected major.minor.patch, got \"0.32\""),
        ("version = \"0.32.4\"", "version = 32", "version: missing, or not a text"),
        ("[backend.cpu]", "[backend.gpu]", "backend.gpu: unknown backend"),
        ("package = \"mlx-cpu\"", "", "backend.cpu.package: missing"),
        ("bytes = 10486971", "bytes = 0", "backend.cpu.wheels[0].bytes"),
        ("bytes = 10486971", "bytes = -4", "backend.cpu.wheels[0].bytes"),
        (
            "mlx_cpu-0.32.4-py3-none-manylinux_2_35_x86_64.whl",
            "mlx_cpu-0.32.3-py3-none-manylinux_2_35_x86_64.whl",
            "wheels[0].file",
        ),
        ("mlx_cpu-0.32.4-py3-none-manylinux_2_35_x86_64.whl", "mlx_cpu-0.32.4-../../x.whl", "wheels[0].file"),
        (
            "mlx_cpu-0.32.4-py3-none-manylinux_2_35_x86_64.whl",
            "mlx_cpu-0.32.4-py3-none-win_amd64.whl",
            "wheels[0].file",
        ),
        ("sha256 = \"0e0a", "sha256 = \"0E0A", "backend.cpu.wheels[0].sha256"),
        ("sha256 = \"0e0a", "sha256 = \"", "backend.cpu.wheels[0].sha256"),
        ("[model]", "[modl]", "model: missing"),
        ("member = ", "mumber = ", "model.member: missing"),
    ] {
        let text = message(from, to);
        assert!(text.starts_with("mlx-pin.toml: ") && text.contains(expected), "{from} -> {to}: {text}");
    }
}

#[test]
fn text_that_is_no_toml_is_refused_with_its_place() {
    let text = Pin::parse("version = ").expect_err("no toml").to_string();
    assert!(text.contains("line 1"), "{text}");
    assert!(Pin::parse("").is_err());
    assert!(Pin::parse("version = \"0.32.4\"\n[backend]\n").is_err());
}
