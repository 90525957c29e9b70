//! The order in which places are looked at, and what is said when none will do.

use std::path::{Path, PathBuf};

use crate::mlx::error::Error;
use crate::mlx::pin::Pin;
use crate::mlx::platform::{Backend, Host, Os};
use crate::mlx::prefix::{Prefix, Refusal};
use crate::mlx::resolve::{Candidate, NOTE, Origin, Search};
use crate::mlx::world;
use crate::{LINUX, MAC, Made, lay_prefix, write};

const WHEEL: &str = "mlx_cpu-0.32.4-py3-none-manylinux_2_35_x86_64.whl sha256:00\n";

/// A folder with a usable MLX at each place, and a world that names all of them.
struct Places {
    folder: tempfile::TempDir,
}

impl Places {
    fn new() -> Self {
        let places = Self { folder: tempfile::tempdir().expect("a folder") };
        for place in [places.variable(), places.cache(), places.python()] {
            lay_prefix(&place, "0.32.4", "libmlx.so");
        }
        write(&places.cache().parent().expect("a parent").join(NOTE), WHEEL.as_bytes());
        places
    }

    fn variable(&self) -> PathBuf {
        self.folder.path().join("own")
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("home/mlx/0.32.4/cpu/mlx")
    }

    fn python(&self) -> PathBuf {
        self.folder.path().join("site-packages/mlx")
    }

    fn world(&self) -> Made {
        Made::default().with("OXMLX_HOME", self.folder.path().join("home")).answering("python3", self.python())
    }
}

fn search(world: &Made, host: Host, backend: Backend) -> Result<(Prefix, Vec<Candidate>), Error> {
    let pin = Pin::of_this_tree().expect("the committed pin");
    Search { pin: &pin, host, backend, native: true }.run(world)
}

fn found(world: &Made) -> PathBuf {
    search(world, LINUX, Backend::Cpu).expect("an MLX").0.root
}

fn remove(path: &Path) {
    std::fs::remove_dir_all(path).expect("removed");
}

#[test]
fn places_are_taken_in_order() {
    let places = Places::new();
    assert_eq!(found(&places.world().with("MLX_PREFIX", places.variable())), places.variable());
    assert_eq!(found(&places.world()), places.cache());
    remove(&places.cache());
    assert_eq!(found(&places.world()), places.python());

    let (_, passed_over) = search(&places.world(), LINUX, Backend::Cpu).expect("an MLX");
    let origins: Vec<Origin> = passed_over.iter().map(|candidate| candidate.origin).collect();
    assert_eq!(origins, [Origin::Variable, Origin::Cache]);
    assert_eq!(passed_over[1].verdict, Err(Refusal::NoFolder));
}

#[test]
fn homebrew_comes_last_and_only_on_macos() {
    let folder = tempfile::tempdir().expect("a folder");
    let brew = folder.path().join("opt/mlx");
    lay_prefix(&brew, "0.32.4", "libmlx.dylib");
    write(&brew.join("lib/mlx.metallib"), b"MTLB");
    let world = Made::default().with("OXMLX_HOME", folder.path()).answering("brew", &brew);
    let (prefix, passed_over) = search(&world, MAC, Backend::Metal).expect("an MLX");
    assert_eq!((prefix.root, prefix.backend, passed_over.len()), (brew.clone(), Backend::Metal, 3));

    let world = Made::default().with("OXMLX_HOME", folder.path()).answering("brew", &brew);
    let text = search(&world, LINUX, Backend::Cpu).expect_err("no brew on Linux").to_string();
    assert!(!text.contains("brew"), "{text}");
}

#[test]
fn set_but_unusable_prefix_stops_the_search() {
    let places = Places::new();
    let old = places.folder.path().join("old");
    lay_prefix(&old, "0.31.0", "libmlx.so");
    for (path, reason) in [
        (places.folder.path().join("nowhere"), "no such folder"),
        (PathBuf::from("relative"), "not an absolute path"),
        (old, "is MLX 0.31.0, expected 0.32.4"),
    ] {
        let text =
            search(&places.world().with("MLX_PREFIX", &path), LINUX, Backend::Cpu).expect_err("unusable").to_string();
        let expected = format!(
            "MLX_PREFIX {}: {reason}\nset it to a folder with include/mlx and lib/libmlx.so of MLX 0.32.4, or unset it",
            path.display()
        );
        assert_eq!(text, expected, "nothing else was tried");
    }
}

#[test]
fn set_prefix_wins_over_the_wanted_backend() {
    let places = Places::new();
    let world = places.world().with("MLX_PREFIX", places.variable());
    let (prefix, _) = search(&world, LINUX, Backend::Cuda12).expect("an MLX");
    assert_eq!((prefix.root, prefix.backend), (places.variable(), Backend::Cpu));
    // And it serves processors that MLX has no wheel for.
    let other = Host { arch: crate::mlx::platform::Arch::Other, ..LINUX };
    assert_eq!(search(&world, other, Backend::Cpu).expect("an MLX").0.root, places.variable());
}

#[test]
fn installed_package_of_another_backend_or_release_is_passed_over() {
    let places = Places::new();
    remove(&places.cache());
    let text = search(&places.world(), LINUX, Backend::Cuda13).expect_err("a cpu build").to_string();
    assert!(text.contains("is a cpu build and cuda13 is wanted"), "{text}");
    lay_prefix(&places.python(), "0.31.2", "libmlx.so");
    let text = search(&places.world(), LINUX, Backend::Cpu).expect_err("an old one").to_string();
    assert!(text.contains("is MLX 0.31.2, expected 0.32.4"), "{text}");
}

#[test]
fn cache_folder_that_is_unfinished_or_foreign_is_passed_over() {
    let places = Places::new();
    let note = places.cache().parent().expect("a parent").join(NOTE);
    let verdict = || search(&places.world(), LINUX, Backend::Cpu).expect("the package").1[1].verdict.clone();
    std::fs::remove_file(&note).expect("removed");
    assert_eq!(verdict(), Err(Refusal::Unfinished));
    write(&note, WHEEL.replace("x86_64", "aarch64").as_bytes());
    assert!(matches!(verdict(), Err(Refusal::Unloadable(why)) if why.contains("manylinux_2_35_aarch64")));
    write(&note, WHEEL.replace("2_35", "2_99").as_bytes());
    assert!(matches!(verdict(), Err(Refusal::Unloadable(why)) if why.contains("needs glibc 2.99")));
}

#[test]
fn programs_are_not_asked_when_building_for_another_machine() {
    let places = Places::new();
    remove(&places.cache());
    let pin = Pin::of_this_tree().expect("the committed pin");
    let cross = Search { pin: &pin, host: LINUX, backend: Backend::Cpu, native: false };
    let text = cross.run(&places.world()).expect_err("nothing").to_string();
    assert!(text.contains("this build is for another machine"), "{text}");
}

#[test]
fn report_lists_what_was_tried_and_every_way_out() {
    let world = Made::default().with("OXMLX_HOME", "/nowhere/at/all");
    let text = search(&world, LINUX, Backend::Cpu).expect_err("nothing").to_string();
    for part in [
        "MLX 0.32.4 for backend cpu was not found",
        "MLX_PREFIX: not set",
        "cache /nowhere/at/all/mlx/0.32.4/cpu/mlx: no such folder",
        "package mlx of python3: not installed",
        "cargo xtask setup",
        "python3 -m pip install 'mlx[cpu]==0.32.4'",
        "MLX_PREFIX=/path/to/mlx",
        "download-mlx",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn cache_follows_the_variable_then_the_platform() {
    let home = || Made::default().with("HOME", "/home/me");
    let at = |world: &Made, os| world::cache(world, os).expect("a folder");
    assert_eq!(at(&home(), Os::Linux), Path::new("/home/me/.cache/oxmlx"));
    assert_eq!(at(&home(), Os::MacOs), Path::new("/home/me/Library/Caches/oxmlx"));
    assert_eq!(at(&home().with("XDG_CACHE_HOME", "/x"), Os::Linux), Path::new("/x/oxmlx"));
    assert_eq!(at(&home().with("XDG_CACHE_HOME", "relative"), Os::Linux), Path::new("/home/me/.cache/oxmlx"));
    assert_eq!(at(&home().with("OXMLX_HOME", "/o"), Os::MacOs), Path::new("/o"));
    assert!(matches!(world::cache(&home().with("OXMLX_HOME", "o"), Os::Linux), Err(Error::Variable { .. })));
    assert!(matches!(world::cache(&Made::default(), Os::Linux), Err(Error::NoCache)));
}
