//! Where the binary looks for libmlx: beside itself first (`cargo xtask dist`), then where it was built against.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=OXMLX_DIST");
    let os = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let beside = if os == "macos" { "@loader_path/../mlx/lib" } else { "$ORIGIN/../mlx/lib" };
    println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{beside}");
    if let (Ok(lib), None) = (std::env::var("DEP_MLX_LIB"), std::env::var_os("OXMLX_DIST")) {
        println!("cargo::rustc-link-arg-bins=-Wl,-rpath,{lib}");
    }
    if os == "linux" {
        // Functions are looked up when they are first called, so that a library of another release is told by oxmlx's own check
        // and not by the loader's list of missing symbols.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,lazy");
    }
}
