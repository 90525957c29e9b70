//! Where tests find their data.

use std::path::PathBuf;

/// The repository's `fixtures/`.
pub(crate) fn fixture(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures")).join(path)
}

/// A fixture's JSON.
pub(crate) fn json_fixture(path: &str) -> serde_json::Value {
    let path = fixture(path);
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

/// SmolLM2, the real checkpoint that tests run: in the folder `OXMLX_TEST_MODELS`, else in oxmlx's cache.
pub(crate) fn smollm2() -> PathBuf {
    let path = place();
    assert!(path.is_file(), "no {}: run `cargo xtask setup` to fetch the test model", path.display());
    path
}

/// Whether tests that need it are to be left out: in the bundle for machines without network (`OXMLX_TEST_BUNDLE=1`), where it is not
/// there. Tells it.
#[allow(clippy::print_stdout, reason = "the tests of the command line share it, which forbids printing to the command")]
pub(crate) fn smollm2_is_left_out() -> bool {
    let in_bundle = std::env::var_os("OXMLX_TEST_BUNDLE").is_some_and(|value| value == "1");
    let left_out = in_bundle && !place().is_file();
    if left_out {
        println!("SKIPPED a test: no {} here", place().display());
    }
    left_out
}

fn place() -> PathBuf {
    models().join("SmolLM2-135M-Instruct.Q4_1.gguf")
}

fn models() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(folder) = set("OXMLX_TEST_MODELS") {
        return folder;
    }
    let cache = set("OXMLX_HOME").unwrap_or_else(|| {
        let home = || set("HOME").expect("HOME is set");
        let caches = match cfg!(target_os = "macos") {
            true => home().join("Library/Caches"),
            false => set("XDG_CACHE_HOME").unwrap_or_else(|| home().join(".cache")),
        };
        caches.join("oxmlx")
    });
    cache.join("models")
}
