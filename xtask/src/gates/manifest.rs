//! Every kernel source is in the manifest of its folder, and nothing else is.
//!
//! A folder with `.metal` or `.cu` files has a `manifest.toml` with a table `[[kernel]]` a kernel: its `name`, and the files `metal` and
//! `cuda`, of which one may be missing. Other keys are the kernel's own business.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::files;
use super::verdict::Violation;
use crate::error::Error;

/// What kernel sources are called, and the manifest's key for each.
pub(super) const LANGUAGES: [(&str, &str); 2] = [("metal", "metal"), ("cu", "cuda")];

/// Looks at the whole tree. Gives how many sources there are too.
pub(super) fn check(root: &Path) -> Result<(Vec<Violation>, usize), Error> {
    let mut folders: BTreeMap<&Path, BTreeSet<String>> = BTreeMap::new();
    let sources = files::with_extension(root, &LANGUAGES.map(|(extension, _)| extension))?;
    for source in &sources {
        if let (Some(folder), Some(name)) = (source.parent(), source.file_name()) {
            folders.entry(folder).or_default().insert(name.to_string_lossy().into_owned());
        }
    }
    let mut manifests = files::with_extension(root, &["toml"])?;
    manifests.retain(|path| path.file_name().is_some_and(|name| name == "manifest.toml"));
    for manifest in &manifests {
        if let Some(folder) = manifest.parent() {
            folders.entry(folder).or_default();
        }
    }
    let mut out = Vec::new();
    for (folder, names) in &folders {
        let path = folder.join("manifest.toml");
        let place = files::shown(root, &path);
        if path.is_file() {
            out.extend(compare(&place, &files::read(&path)?, names));
        } else {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            out.push(violation(&place, format!("is missing, beside {}", names.join(", "))));
        }
    }
    Ok((out, sources.len()))
}

fn violation(place: &str, what: String) -> Violation {
    Violation { rule: "manifest", place: place.to_owned(), what }
}

/// One manifest and the sources beside it.
fn compare(place: &str, text: &str, there: &BTreeSet<String>) -> Vec<Violation> {
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => return vec![violation(place, format!("can't be read: {error}"))],
    };
    let mut out = Vec::new();
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for kernel in table.get("kernel").and_then(toml::Value::as_array).into_iter().flatten() {
        let text = |key: &str| kernel.get(key).and_then(toml::Value::as_str);
        match text("name") {
            Some(name) if names.insert(name.to_owned()) => {}
            Some(name) => out.push(violation(place, format!("has two kernels of the name {name:?}"))),
            None => out.push(violation(place, "has a kernel without a name".to_owned())),
        }
        for (extension, key) in LANGUAGES {
            let Some(file) = text(key) else { continue };
            if !file.ends_with(&format!(".{extension}")) {
                out.push(violation(place, format!("{key} = {file:?} is no .{extension} file")));
            }
            *listed.entry(file.to_owned()).or_default() += 1;
        }
    }
    for name in there.iter().chain(listed.keys()).collect::<BTreeSet<_>>() {
        match (there.contains(name), listed.get(name)) {
            (true, Some(1)) => {}
            (true, None) => out.push(violation(place, format!("does not list {name}, which is there"))),
            (true, Some(count)) => out.push(violation(place, format!("lists {name} {count} times"))),
            (false, _) => out.push(violation(place, format!("lists {name}, which is not there"))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::compare;

    const MANIFEST: &str = "
        [[kernel]]
        name = 'scale'
        metal = 'scale.metal'
        cuda = 'scale.cu'
        inputs = ['x']
        [[kernel]]
        name = 'sum'
        metal = 'sum.metal'
    ";

    fn found(manifest: &str, there: &[&str]) -> Vec<String> {
        let there = there.iter().map(|&name| name.to_owned()).collect();
        let violations = compare("m", manifest, &there);
        assert!(violations.iter().all(|v| v.rule == "manifest"));
        violations.into_iter().map(|v| v.what).collect()
    }

    #[test]
    fn a_manifest_that_lists_what_is_there_passes() {
        assert!(found(MANIFEST, &["scale.cu", "scale.metal", "sum.metal"]).is_empty());
    }

    #[test]
    fn what_is_missing_on_either_side_is_told() {
        let there = ["extra.cu", "scale.cu", "scale.metal"];
        assert_eq!(
            found(MANIFEST, &there),
            ["does not list extra.cu, which is there", "lists sum.metal, which is not there"]
        );
        assert_eq!(found("", &["a.metal"]), ["does not list a.metal, which is there"]);
    }

    #[test]
    fn what_is_listed_twice_or_wrongly_is_told() {
        let twice = "kernel = [{ name = 'a', metal = 'a.metal' }, { name = 'b', metal = 'a.metal' }]";
        assert_eq!(found(twice, &["a.metal"]), ["lists a.metal 2 times"]);
        let same = "kernel = [{ name = 'a', metal = 'a.metal' }, { name = 'a', cuda = 'a.cu' }]";
        assert_eq!(found(same, &["a.metal", "a.cu"]), ["has two kernels of the name \"a\""]);
        assert_eq!(found("kernel = [{ metal = 'a.metal' }]", &["a.metal"]), ["has a kernel without a name"]);
        assert_eq!(
            found("kernel = [{ name = 'a', cuda = 'a.metal' }]", &["a.metal"]),
            ["cuda = \"a.metal\" is no .cu file"]
        );
        assert!(found("kernel = [", &[])[0].starts_with("can't be read"));
    }
}
