//! Finds MLX, compiles the C++ shim and the cxx bridges against it, and tells cargo where the library lies.

use std::path::{Path, PathBuf};

fn main() {
    let prefix = PathBuf::from(std::env::var_os("MLX_PREFIX").expect("MLX_PREFIX"));
    let include = prefix.join("include");
    let lib = prefix.join("lib");
    println!("cargo:rustc-link-search=native={}", lib.display());
    println!("cargo:rustc-link-lib=dylib=mlx");
    compile_shim(&include);
}

/// Compiles every hand-written and generated bridge, and the C++ beside them, into one static library.
fn compile_shim(include: &Path) {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let mut bridges: Vec<PathBuf> = ["array", "runtime"].iter().map(|m| format!("src/{m}.rs").into()).collect();
    for optional in ["src/types.rs"] {
        if manifest.join(optional).exists() {
            bridges.push(optional.into());
        }
    }
    bridges.extend(files(&manifest, "src/generated", "rs").into_iter().filter(|f| !f.ends_with("mod.rs")));
    let mut sources = files(&manifest, "cpp", "cpp");
    sources.extend(files(&manifest, "cpp/generated", "cpp"));

    let mut build = cxx_build::bridges(&bridges);
    build.std("c++20").include(manifest.join("cpp")).include(include).files(&sources);
    build.flag_if_supported("-Wno-unused-parameter").flag_if_supported("-Wno-deprecated-copy");
    build.compile("oxmlx_shim");

    for watched in ["build.rs", "cpp", "src"] {
        println!("cargo:rerun-if-changed={watched}");
    }
}

/// The files of one folder with one extension, relative to the crate, in a fixed order.
fn files(root: &Path, folder: &str, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| Path::new(folder).join(entry.file_name()))
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    found
}
