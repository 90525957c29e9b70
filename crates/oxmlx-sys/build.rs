//! Finds MLX, compiles the C++ shim and the cxx bridges against it, and tells cargo where the library lies.

use std::path::{Path, PathBuf};

#[path = "build/mod.rs"]
mod mlx;

use mlx::error::Error;
use mlx::pin::Pin;
use mlx::platform::{Backend, Host, Os};
use mlx::prefix::Prefix;
use mlx::probe::{self, Probe};
use mlx::resolve::Search;
use mlx::world::{self, System, World};

fn main() {
    // docs.rs has no MLX, and documentation needs neither its headers nor its library.
    if std::env::var_os("DOCS_RS").is_some() {
        return;
    }
    for name in mlx::resolve::VARIABLES {
        println!("cargo::rerun-if-env-changed={name}");
    }
    for watched in ["build.rs", "build", "mlx-pin.toml"] {
        println!("cargo::rerun-if-changed={watched}");
    }
    match find().and_then(|prefix| announce(&prefix).map(|()| prefix)) {
        Ok(prefix) => compile_shim(&prefix.include),
        // Cargo fails the build for these; a failing exit code would make it print all of our output as well.
        Err(error) => mlx::error::chain(&error).lines().for_each(|line| println!("cargo::error={line}")),
    }
}

/// The MLX to build against.
fn find() -> Result<Prefix, Error> {
    let (pin, world) = (Pin::of_this_tree()?, System);
    let cargo = |name| std::env::var(name).unwrap_or_default();
    let mut host =
        Host::new(&cargo("CARGO_CFG_TARGET_OS"), &cargo("CARGO_CFG_TARGET_ARCH"), &cargo("CARGO_CFG_TARGET_ENV"))?;
    let native = cargo("HOST") == cargo("TARGET");
    if native {
        host.version = world::this_host(&world)?.version;
    } else if host.os == Os::MacOs {
        host.version = world.var("MACOSX_DEPLOYMENT_TARGET").as_deref().and_then(mlx::platform::version_in);
    }
    let backend = Backend::wanted(world.var("OXMLX_BACKEND").as_deref(), &host)?;
    let search = Search { pin: &pin, host, backend, native };
    let found = search.run(&world);
    #[cfg(feature = "download-mlx")]
    if found.is_err() && world.var("MLX_PREFIX").is_none() {
        let wheel = mlx::platform::choose(&pin, backend, &host)?;
        mlx::provision::provision(wheel, &search.cache_folder(&world)?, &mlx::provision::Pip)?;
        return search.run(&world).map(|(prefix, _)| prefix);
    }
    found.map(|(prefix, _)| prefix)
}

/// Tells cargo, the crate and the crates that depend on it where MLX lies and what it is.
fn announce(prefix: &Prefix) -> Result<(), Error> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let lib = mlx::mirror::lay(prefix, &out)?;
    println!("cargo::rustc-link-search=native={}", lib.display());
    println!("cargo::rustc-link-lib=dylib=mlx");

    let version_header = prefix.include.join("mlx/version.h");
    for watched in [&version_header, &prefix.library] {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    // For the build scripts of direct dependents, as DEP_MLX_ROOT and so on.
    println!("cargo::metadata=root={}", prefix.root.display());
    println!("cargo::metadata=include={}", prefix.include.display());
    // oxmlx's own public headers, for C++ beside a Rust program.
    println!("cargo::metadata=oxmlx_include={}/include", env!("CARGO_MANIFEST_DIR"));
    println!("cargo::metadata=lib={}", prefix.lib.display());
    println!("cargo::metadata=backend={}", prefix.backend);
    println!("cargo::metadata=version={}", prefix.version);
    // For the crate itself, by env!().
    let nax = match prefix.backend {
        Backend::Metal => probe::nax_kernels(&prefix.metallib()),
        _ => Probe::Absent,
    };
    println!("cargo::rustc-env=OXMLX_MLX_VERSION={}", prefix.version);
    println!("cargo::rustc-env=OXMLX_MLX_BACKEND={}", prefix.backend);
    println!("cargo::rustc-env=OXMLX_MLX_NAX={}", nax.name());
    Ok(())
}

/// Sanitizers to compile the C++ with, such as `address,undefined`: `cargo xtask sanitize` sets it, and links the run-time that it needs.
const SANITIZE: &str = "OXMLX_SANITIZE";

/// Compiles every hand-written and generated bridge, and the C++ beside them, into one static library.
fn compile_shim(include: &Path) {
    let manifest = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let mut bridges: Vec<PathBuf> = ["array", "bench", "evaluation", "kernel", "runtime", "storage", "transforms"]
        .iter()
        .map(|m| format!("src/{m}.rs").into())
        .collect();
    for optional in ["src/export_steps.rs", "src/gpu_kernel.rs", "src/types.rs"] {
        if manifest.join(optional).exists() {
            bridges.push(optional.into());
        }
    }
    bridges.extend(files(&manifest, "src/generated", "rs").into_iter().filter(|f| !f.ends_with("mod.rs")));
    let mut sources = files(&manifest, "cpp", "cpp");
    sources.extend(files(&manifest, "cpp/generated", "cpp"));

    let mut build = cxx_build::bridges(&bridges);
    build.std("c++20").include(manifest.join("cpp")).include(manifest.join("include")).include(include).files(&sources);
    build.flag_if_supported("-Wno-unused-parameter").flag_if_supported("-Wno-deprecated-copy");
    println!("cargo::rerun-if-env-changed={SANITIZE}");
    if let Ok(kinds) = std::env::var(SANITIZE) {
        // Without the check of virtual tables: its part of the run-time is not in the one that rustc links.
        build.flag(format!("-fsanitize={kinds}")).flag("-fno-sanitize=vptr").flag("-fno-sanitize-recover=undefined");
    }
    build.compile("oxmlx_shim");

    let folders = ["cpp", "include", "src/generated"].map(PathBuf::from);
    for watched in folders.iter().filter(|folder| manifest.join(folder).exists()).chain(&bridges) {
        println!("cargo::rerun-if-changed={}", watched.display());
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
