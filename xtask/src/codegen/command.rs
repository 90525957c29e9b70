//! `cargo xtask codegen [--check]`: reads the pinned headers and writes, or compares, the generated part of oxmlx-sys.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::parse::parse;
use super::select::{Class, Item, select};
use super::table::{Table, topic};
use super::{cpp, rust};
use crate::error::Error;
use crate::mlx::pin::Pin;
use crate::mlx::platform::Backend;
use crate::mlx::resolve::Search;
use crate::mlx::world::{self, System, World};
use crate::tree;

/// The crate that holds the bridge, below the workspace.
pub(crate) const SYS: &str = "crates/oxmlx-sys";

pub(crate) const HELP: &str = "\
Usage: cargo xtask codegen [--check]

Reads the headers of the pinned MLX and crates/oxmlx-sys/bridge.toml, and writes the generated
part of oxmlx-sys: cpp/generated/ and src/generated/ (all but mod.rs).

  --check         write nothing; fail and name the files that differ
";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    let (check, rest): (Vec<String>, Vec<String>) = arguments.iter().cloned().partition(|word| word == "--check");
    Error::unexpected(&rest)?;
    let (table, items) = survey()?;
    generate(&tree::root(), &table, &items, !check.is_empty()).map_err(Error::Bridge)
}

/// Writes the files, or with `check` names those that differ.
fn generate(root: &Path, table: &Table, items: &[Item], check: bool) -> Result<(), String> {
    let wanted = files(root, table, items)?;
    let present = generated_files(root)?;
    let stale: Vec<&PathBuf> = present.iter().filter(|path| !wanted.contains_key(*path)).collect();
    let differs = |path: &PathBuf, text: &String| std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text);
    let changed: Vec<&PathBuf> =
        wanted.iter().filter(|(path, text)| differs(path, text)).map(|(path, _)| path).collect();
    if check {
        if changed.is_empty() && stale.is_empty() {
            return Ok(());
        }
        let list: Vec<String> = changed.iter().chain(&stale).map(|path| format!("  {}", path.display())).collect();
        return Err(format!(
            "generated files differ from the headers and bridge.toml:\n{}\nrun `cargo xtask codegen`",
            list.join("\n")
        ));
    }
    for path in stale {
        std::fs::remove_file(root.join(path)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    for path in &changed {
        let full = root.join(path);
        std::fs::create_dir_all(full.parent().unwrap_or(root)).map_err(|e| format!("{}: {e}", path.display()))?;
        std::fs::write(&full, &wanted[*path]).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let count = items.iter().filter(|item| matches!(item.class, Class::Generated(_))).count();
    println!("{count} wrappers in {} files, {} written", wanted.len(), changed.len());
    Ok(())
}

/// Reads table and headers and classifies what they declare.
///
/// # Errors
/// What can't be read, or is in no class, or is not what the table expects of the pinned release.
pub(crate) fn survey() -> Result<(Table, Vec<Item>), Error> {
    let include = include_dir()?;
    classify(&tree::root(), &include).map_err(Error::Bridge)
}

fn classify(root: &Path, include: &Path) -> Result<(Table, Vec<Item>), String> {
    let table = Table::read(&read(&root.join(SYS).join("bridge.toml"))?)?;
    let mut decls = Vec::new();
    for header in &table.headers {
        decls.extend(parse(header, &read(&include.join("mlx").join(format!("{header}.h")))?)?);
    }
    let items = select(decls, &table)?;
    let marked = items.iter().filter(|item| item.decl.marked).count();
    let mut names: Vec<_> = items.iter().map(|item| (&item.decl.namespace, &item.decl.name)).collect();
    names.retain(|(_, name)| !name.starts_with("operator"));
    names.sort_unstable();
    names.dedup();
    if (marked, names.len()) != (table.expect.marked, table.expect.names) {
        return Err(format!(
            "the headers in {} declare {marked} marked functions and {} names, bridge.toml expects {} and {}: \
             another release of MLX? Update [expect] once the difference is understood",
            include.display(),
            names.len(),
            table.expect.marked,
            table.expect.names
        ));
    }
    Ok((table, items))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Where MLX's headers are: in the MLX that a build would use.
fn include_dir() -> Result<PathBuf, Error> {
    let (pin, world) = (Pin::of_this_tree()?, System);
    let host = world::this_host(&world)?;
    let backend = Backend::wanted(world.var("OXMLX_BACKEND").as_deref(), &host)?;
    let (prefix, _) = Search { pin: &pin, host, backend, native: true }.run(&world)?;
    Ok(prefix.root.join("include"))
}

/// The generated files there are.
fn generated_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for folder in ["cpp/generated", "src/generated"] {
        let folder = Path::new(SYS).join(folder);
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else { continue };
        for entry in entries {
            let name = entry.map_err(|e| format!("{}: {e}", folder.display()))?.file_name();
            if name != "mod.rs" {
                found.push(folder.join(name));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What the generated files should hold.
fn files(root: &Path, table: &Table, items: &[Item]) -> Result<BTreeMap<PathBuf, String>, String> {
    let cpp_file = |name: &str| Path::new(SYS).join("cpp/generated").join(name);
    let modules = read(&root.join(SYS).join("src/generated/mod.rs"))?;
    let mut out = BTreeMap::new();
    for header in &table.headers {
        let topic = topic(header);
        let of_topic = |item: &&Item| item.decl.header == *header && matches!(item.class, Class::Generated(_));
        let items: Vec<&Item> = items.iter().filter(of_topic).collect();
        if items.is_empty() {
            continue;
        }
        if !modules.contains(&format!("pub mod {topic};")) {
            return Err(format!("{SYS}/src/generated/mod.rs lacks `pub mod {topic};`"));
        }
        out.insert(cpp_file(&format!("{topic}.h")), cpp::header(&topic, &items));
        let module = rust::format(root, &rust::module(&topic, header, &items))?;
        out.insert(Path::new(SYS).join("src/generated").join(format!("{topic}.rs")), module);
    }
    // Bodies in files of equal size, whatever their topics: a compiler's start costs more than a hundred functions.
    let order = |item: &Item| table.headers.iter().position(|header| *header == item.decl.header);
    let mut all: Vec<&Item> = items.iter().filter(|item| matches!(item.class, Class::Generated(_))).collect();
    all.sort_by_key(|item| order(item));
    let parts = all.len().div_ceil(table.functions_a_file.max(1)).max(1);
    for (i, part) in all.chunks(all.len().div_ceil(parts).max(1)).enumerate() {
        out.insert(cpp_file(&format!("shim_{}.cpp", i + 1)), cpp::source(part));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace with nothing but what the generator reads, removed at the end.
    struct Tree(PathBuf);

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn tree(name: &str) -> Tree {
        let root = std::env::temp_dir().join(format!("oxmlx-codegen-{name}-{}", std::process::id()));
        for folder in ["src/generated", "cpp/generated", "include/mlx"] {
            std::fs::create_dir_all(root.join(SYS).join(folder)).unwrap();
        }
        let write = |path: &str, text: &str| std::fs::write(root.join(SYS).join(path), text).unwrap();
        write("../../rustfmt.toml", "edition = \"2024\"\n");
        write("src/generated/mod.rs", "pub mod ops;\n");
        write(
            "include/mlx/ops.h",
            "namespace mlx::core { MLX_API array add(const array& a, const array& b, StreamOrDevice s = {}); }",
        );
        write(
            "bridge.toml",
            "headers = [\"ops\"]\nfunctions_a_file = 10\n[expect]\nmarked = 1\nnames = 1\n[modes]\n[names]\n[parameters]\n[operators]\n\
             [alias]\n[handwritten]\n[left_out]\n",
        );
        Tree(root)
    }

    #[test]
    fn check_names_the_files_that_differ() {
        let tree = tree("check");
        let (table, items) = classify(&tree.0, &tree.0.join(SYS).join("include")).unwrap();
        let check = || generate(&tree.0, &table, &items, true);
        assert!(check().unwrap_err().contains("src/generated/ops.rs"));
        generate(&tree.0, &table, &items, false).unwrap();
        assert_eq!(check(), Ok(()));

        let shim = tree.0.join(SYS).join("cpp/generated/shim_1.cpp");
        std::fs::write(&shim, "edited").unwrap();
        std::fs::write(shim.with_file_name("old.h"), "").unwrap();
        let error = check().unwrap_err();
        assert!(error.contains("shim_1.cpp") && error.contains("old.h") && !error.contains("ops.h"), "{error}");
        generate(&tree.0, &table, &items, false).unwrap();
        assert_eq!(check(), Ok(()));
    }

    #[test]
    fn headers_of_another_release_are_noticed() {
        let tree = tree("release");
        let header = tree.0.join(SYS).join("include/mlx/ops.h");
        let more =
            std::fs::read_to_string(&header).unwrap() + "namespace mlx::core { MLX_API array abs(const array& a); }";
        std::fs::write(&header, more).unwrap();
        let error = classify(&tree.0, &tree.0.join(SYS).join("include")).unwrap_err();
        assert!(error.contains("2 marked functions and 2 names"), "{error}");
    }
}
