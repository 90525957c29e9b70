//! `cargo xtask coverage [--safe]`: header by header, which public functions of MLX Rust reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::command::{SYS, survey};
use super::ir::Decl;
use super::select::{Class, Item};
use super::table::topic;
use crate::error::Error;
use crate::tree;

pub(crate) const HELP: &str = "\
Usage: cargo xtask coverage [--safe] [--all]

Lists, header by header, the public functions of the pinned MLX: how many oxmlx-sys reaches, generated or
by hand, and the names that it does not reach, with the reason. A function counts as written by hand when the file that
bridge.toml names holds the item that it names. Fails when a function is neither reached nor left out for a reason.

  --safe          also ask that crates/oxmlx uses each wrapper
  --all           list every function and where it is reached
";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    let given = |flag: &str| arguments.iter().any(|word| word == flag);
    let rest: Vec<String> =
        arguments.iter().filter(|word| !["--safe", "--all"].contains(&word.as_str())).cloned().collect();
    Error::unexpected(&rest)?;
    let (table, items) = survey()?;
    let sources = Sources::read(&tree::root(), given("--safe"));
    let report = report(&table.headers, &items, &sources, given("--all"));
    print!("{}", report.text);
    if report.missing == 0 {
        Ok(())
    } else {
        Err(Error::Bridge(format!("{} public functions are not reached", report.missing)))
    }
}

/// Where a function stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Generated(String),
    Alias(String),
    ByHand(String),
    LeftOut(String),
    Missing(String),
}

/// The hand-written sources that count as evidence.
struct Sources {
    /// Path below `crates/oxmlx-sys/src` and words of each file.
    sys: Vec<(String, BTreeSet<String>)>,
    /// `topic::name` of every path in `crates/oxmlx/src`; `None` when it is not asked.
    safe: Option<BTreeSet<String>>,
}

impl Sources {
    fn read(root: &Path, safe: bool) -> Self {
        let mut sys = Vec::new();
        each_file(&root.join(SYS).join("src"), &mut |path, text| {
            let name = path.strip_prefix(root.join(SYS).join("src")).unwrap_or(path);
            sys.push((name.to_string_lossy().into_owned(), words(text).map(str::to_owned).collect()));
        });
        let mut paths = BTreeSet::new();
        if safe {
            each_file(&root.join("crates/oxmlx/src"), &mut |_, text| paths.extend(used_paths(text)));
        }
        Self { sys, safe: safe.then_some(paths) }
    }

    fn has(&self, place: &str) -> bool {
        let Some((file, item)) = place.split_once(": ") else { return false };
        let item = item.rsplit("::").next().unwrap_or(item);
        self.sys.iter().any(|(name, words)| name == file && words.contains(item))
    }
}

fn each_file(folder: &Path, body: &mut impl FnMut(&Path, &str)) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            each_file(&path, body);
        } else if path.extension().is_some_and(|e| e == "rs")
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            body(&path, &text);
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty())
}

/// Every `a::b` of a file, with those of `a::{b, c}`; `a` by its own name where the file imports it by another. Comment lines
/// are no use.
fn used_paths(text: &str) -> BTreeSet<String> {
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let all: Vec<&str> = words(&code).collect();
    let renamed: BTreeMap<&str, &str> = all.windows(3).filter(|w| w[1] == "as").map(|w| (w[2], w[0])).collect();
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("::") {
        let Some(head) = words(&code[..at]).last().filter(|head| code[..at].ends_with(head)) else { continue };
        let head = renamed.get(head).unwrap_or(&head);
        let rest = &code[at + 2..];
        if let Some(group) = rest.strip_prefix('{') {
            let end = group.find('}').unwrap_or(group.len());
            found.extend(words(&group[..end]).map(|name| format!("{head}::{name}")));
        } else if rest.starts_with('$') {
            // A macro of the file's own: what it is given stands somewhere in the file.
            found.extend(all.iter().map(|name| format!("{head}::{name}")));
        } else if let Some(name) = words(rest).next().filter(|name| rest.starts_with(name)) {
            found.insert(format!("{head}::{name}"));
        }
    }
    found
}

fn standing(item: &Item, sources: &Sources) -> Standing {
    match &item.class {
        Class::Generated(wrapper) => match &sources.safe {
            Some(paths) if !paths.contains(&format!("{}::{}", wrapper.topic, wrapper.name)) => {
                Standing::Missing(format!("crates/oxmlx does not use {}::{}", wrapper.topic, wrapper.name))
            }
            _ => Standing::Generated(format!("{}::{}", wrapper.topic, wrapper.name)),
        },
        Class::Alias(how) => Standing::Alias(how.clone()),
        Class::Handwritten(_, place) if sources.has(place) => Standing::ByHand(place.clone()),
        Class::Handwritten(reason, place) => Standing::Missing(format!("{reason}; to be written in {place}")),
        Class::LeftOut(reason) => Standing::LeftOut(reason.clone()),
    }
}

struct Report {
    text: String,
    missing: usize,
}

fn report(headers: &[String], items: &[Item], sources: &Sources, all: bool) -> Report {
    let mut text = String::from(
        "| header | public | names | generated | alias | by hand | left out | not reached |\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    let (mut details, mut total, mut missing) = (Vec::new(), [0_usize; 7], 0);
    for header in headers {
        let mine: Vec<(&Item, Standing)> = items
            .iter()
            .filter(|item| item.decl.header == *header)
            .map(|item| (item, standing(item, sources)))
            .collect();
        let names: BTreeSet<&str> = mine.iter().map(|(item, _)| item.decl.name.as_str()).collect();
        let count = |wanted: fn(&Standing) -> bool| mine.iter().filter(|(_, s)| wanted(s)).count();
        let row = [
            mine.len(),
            names.len(),
            count(|s| matches!(s, Standing::Generated(_))),
            count(|s| matches!(s, Standing::Alias(_))),
            count(|s| matches!(s, Standing::ByHand(_))),
            count(|s| matches!(s, Standing::LeftOut(_))),
            count(|s| matches!(s, Standing::Missing(_))),
        ];
        missing += row[6];
        total.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
        text.push_str(&line(&format!("{header}.h"), &row));
        let mut lines: Vec<String> = mine.iter().filter_map(|(item, s)| detail(&item.decl, s, all)).collect();
        lines.dedup();
        details.extend(lines);
    }
    text.push_str(&line("all", &total));
    if !details.is_empty() {
        text.push('\n');
        text.push_str(&details.concat());
    }
    Report { text, missing }
}

fn line(name: &str, row: &[usize]) -> String {
    let cells: Vec<String> = row.iter().map(usize::to_string).collect();
    format!("| {name} | {} |\n", cells.join(" | "))
}

fn detail(decl: &Decl, standing: &Standing, all: bool) -> Option<String> {
    let (what, why) = match standing {
        Standing::LeftOut(why) => ("left out", why),
        Standing::Missing(why) => ("not reached", why),
        Standing::Generated(at) if all => ("generated", at),
        Standing::Alias(how) if all => ("alias", how),
        Standing::ByHand(place) if all => ("by hand", place),
        _ => return None,
    };
    let shown = if all { decl.signature() } else { decl.name.clone() };
    Some(format!("* {what}: `{shown}` ({}): {why}\n", topic(&decl.header)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_in_calls_and_in_use_groups() {
        let found =
            used_paths("use oxmlx_sys::ops::{add, sum_axes};\nsys::fast::rope(x); // ops::sub\n// ops::mul(a)\n");
        let aliased = used_paths("use oxmlx_sys::generated::{ops as raw, utils};\nfn f() { raw::add(a, b) }");
        assert!(aliased.contains("ops::add"));
        let by_macro = used_paths("macro_rules! unary { ($name:ident) => { ops::$name(a) } }\nunary!(abs);");
        assert!(by_macro.contains("ops::abs"));
        assert!(["ops::add", "ops::sum_axes", "fast::rope"].iter().all(|p| found.contains(*p)));
        assert!(!found.contains("ops::mul"));
    }

    #[test]
    fn a_place_counts_when_the_file_holds_the_item() {
        let words = ["eval", "wait"].map(str::to_owned).into();
        let sources = Sources { sys: vec![("runtime.rs".to_owned(), words)], safe: None };
        assert!(sources.has("runtime.rs: eval"));
        assert!(!sources.has("runtime.rs: grad"));
        assert!(!sources.has("closures.rs: eval"));
    }
}
