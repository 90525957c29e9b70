//! Tells the tests where the headers and the library are that they compile C and C++ against.

fn main() {
    for (name, metadata) in [
        ("OXC_MLX_INCLUDE", "DEP_MLX_INCLUDE"),
        ("OXC_MLX_LIB", "DEP_MLX_LIB"),
        ("OXC_OXMLX_INCLUDE", "DEP_MLX_OXMLX_INCLUDE"),
    ] {
        // Not set where documentation is built without MLX: then there are no tests either.
        let value = std::env::var(metadata).unwrap_or_default();
        println!("cargo::rustc-env={name}={value}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
