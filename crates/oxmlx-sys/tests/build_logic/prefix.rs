//! What a folder holds, and the mirror of it.

use std::path::Path;

use crate::mlx::mirror;
use crate::mlx::platform::{Backend, Os};
use crate::mlx::prefix::{Prefix, Refusal, version_in_header};
use crate::{lay_prefix, write};

#[test]
fn version_is_read_from_the_header() {
    let text = "// MLX_VERSION_MAJOR 9\n#define MLX_VERSION_MAJOR 0\n#define  MLX_VERSION_MINOR\t32\n#define MLX_VERSION_PATCH 4\n";
    assert_eq!(version_in_header(text).as_deref(), Some("0.32.4"));
    for broken in ["", "#define MLX_VERSION_MAJOR 0\n#define MLX_VERSION_MINOR 32\n", &text.replace("32", "x")] {
        assert_eq!(version_in_header(broken), None, "{broken}");
    }
}

#[test]
fn each_defect_of_a_folder_has_its_own_refusal() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let refusal = |path: &Path| Prefix::inspect(path, Os::Linux).expect_err("a refusal");

    assert_eq!(refusal(Path::new("relative/mlx")), Refusal::NotAbsolute);
    assert_eq!(refusal(&at("missing")), Refusal::NoFolder);
    std::fs::create_dir(at("empty")).expect("folder");
    assert_eq!(refusal(&at("empty")), Refusal::NoHeaders);
    lay_prefix(&at("mac"), "0.32.4", "libmlx.dylib");
    assert_eq!(refusal(&at("mac")), Refusal::NoLibrary { name: "libmlx.so", archive: false });
    lay_prefix(&at("static"), "0.32.4", "libmlx.a");
    let text = refusal(&at("static")).to_string();
    assert!(text.contains("-DBUILD_SHARED_LIBS=ON"), "{text}");
    lay_prefix(&at("site-packages/mlx"), "0.32.4", "libmlx.so");
    assert_eq!(refusal(&at("site-packages")), Refusal::Above(at("site-packages/mlx")));
}

#[test]
fn library_may_lie_in_lib64() {
    let folder = tempfile::tempdir().expect("a folder");
    lay_prefix(folder.path(), "0.32.4", "other");
    write(&folder.path().join("lib64/libmlx.so"), b"");
    assert_eq!(Prefix::inspect(folder.path(), Os::Linux).expect("usable").lib, folder.path().join("lib64"));
}

#[test]
fn backend_is_told_by_the_files_beside_or_the_names_inside() {
    for (beside, library, expected) in [
        ("mlx_cpu.libs", "", Backend::Cpu),
        ("mlx_cuda_12.libs", "", Backend::Cuda12),
        ("mlx_cuda_13.libs", "", Backend::Cuda13),
        ("", "libcublasLt.so.12", Backend::Cuda12),
        ("", "libcublasLt.so.13", Backend::Cuda13),
        ("", "nothing of the kind", Backend::Cpu),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("mlx");
        lay_prefix(&root, "0.32.4", "libmlx.so");
        write(&root.join("lib/libmlx.so"), library.as_bytes());
        if !beside.is_empty() {
            std::fs::create_dir(folder.path().join(beside)).expect("folder");
        }
        assert_eq!(Prefix::inspect(&root, Os::Linux).expect("usable").backend, expected, "{beside} {library}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    lay_prefix(folder.path(), "0.32.4", "libmlx.dylib");
    write(&folder.path().join("lib/mlx.metallib"), b"MTLB");
    assert_eq!(Prefix::inspect(folder.path(), Os::MacOs).expect("usable").backend, Backend::Metal);
}

#[test]
fn another_release_or_backend_is_refused_with_both_named() {
    let folder = tempfile::tempdir().expect("a folder");
    lay_prefix(folder.path(), "0.31.0", "libmlx.so");
    let prefix = Prefix::inspect(folder.path(), Os::Linux).expect("usable");
    let text = prefix.clone().expect("0.32.4", None).expect_err("another release").to_string();
    assert_eq!(text, "is MLX 0.31.0, expected 0.32.4");
    let text = prefix.clone().expect("0.31.0", Some(Backend::Cuda12)).expect_err("another backend").to_string();
    assert_eq!(text, "is a cpu build and cuda12 is wanted (OXMLX_BACKEND=cpu takes it)");
    assert_eq!(prefix.clone().expect("0.31.0", Some(Backend::Cpu)), Ok(prefix));
}

#[cfg(unix)]
#[test]
fn mirror_keeps_the_relative_places_and_follows_a_new_prefix() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second, out) = (folder.path().join("a/mlx"), folder.path().join("b/mlx"), folder.path().join("out"));
    lay_prefix(&first, "0.32.4", "libmlx.so");
    write(&first.join("lib/libsomebody_elses.so"), b"");
    write(&folder.path().join("a/mlx_cpu.libs/libblas.so"), b"blas");
    std::fs::create_dir(folder.path().join("a/numpy.libs")).expect("folder");

    let lib = mirror::lay(&Prefix::inspect(&first, Os::Linux).expect("usable"), &out).expect("a mirror");
    let at = |name: &str| lib.join(name).exists();
    assert!(lib.starts_with(&out));
    assert!(at("libmlx.so") && at("../../mlx_cpu.libs/libblas.so") && at("../include/mlx/version.h"));
    assert!(!at("libsomebody_elses.so") && !at("../../numpy.libs"));

    lay_prefix(&second, "0.32.4", "libmlx.so");
    write(&second.join("lib/libmlx.so"), b"the second");
    let again = mirror::lay(&Prefix::inspect(&second, Os::Linux).expect("usable"), &out).expect("a mirror");
    assert_eq!(again, lib);
    assert_eq!(std::fs::read(lib.join("libmlx.so")).expect("linked"), b"the second");
    assert!(!at("../../mlx_cpu.libs"), "what the first prefix had beside it is gone");
    assert!(first.join("lib/libmlx.so").exists(), "only links were removed");
}
