//! A libmlx of another release.

use std::process::Command;

use crate::support::{Ran, oxmlx};

/// As much of a library as the loader asks for before the program runs, of a release that never was.
const OTHER: &str = r#"
namespace mlx::core {
const char* version() { return "0.0.1"; }
class Primitive { public: virtual ~Primitive(); };
Primitive::~Primitive() {}
}
"#;

#[test]
fn another_release_is_told_with_what_was_expected_and_the_fix() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("other.cpp");
    std::fs::write(&source, OTHER).unwrap();
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let built = Command::new(compiler)
        .args(["-std=c++20", "-shared", "-fPIC", "-Wl,-soname,libmlx.so", "-o"])
        .arg(dir.path().join("libmlx.so"))
        .arg(&source)
        .status()
        .unwrap();
    assert!(built.success());
    let model = crate::support::fixture("models/llama");
    let expected = model.join("expected.safetensors");
    let verify = ["verify", model.to_str().unwrap(), expected.to_str().unwrap()];
    for args in [&["info"][..], &verify] {
        let output = oxmlx(args).env("LD_LIBRARY_PATH", dir.path()).output().unwrap();
        let mut ran = Ran {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        };
        // What can be told without entering the library is told all the same.
        if args == ["info"] {
            let told = std::mem::take(&mut ran.out);
            assert!(told.contains("complaints") && told.contains("the loader found 0.0.1"), "{told}");
        }
        ran.failed(&["compiled for MLX", "found libmlx 0.0.1", "unset LD_LIBRARY_PATH"]);
    }
}
