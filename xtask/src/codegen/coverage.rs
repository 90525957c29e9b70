//! `cargo xtask coverage`: header by header, which public functions of MLX safe Rust reaches, and through which item.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::command::{SYS, survey};
use super::hostile;
use super::reach::Reach;
use super::select::{Class, Item};
use super::table::{Handwritten, Table, names, topic};
use crate::error::Error;
use crate::tree;

pub(crate) const HELP: &str = "\
Usage: cargo xtask coverage [--all] [--markdown | --check]

Lists, header by header, the public functions of the pinned MLX: how many a program reaches through the
public items of crates/oxmlx, and which it does not reach, with the reason. What reaches what is found by parsing
the crate's sources. Fails when a function is neither reached nor left out for a reason, or for more than 12 reasons.

  --all           name the item for every function
  --markdown      write the table to docs/coverage.md, and the fuzzer's table of the safe API
  --check         fail when one of the two differs
";

/// The most reasons there may be.
const REASONS: usize = 12;

const PAGE: &str = "docs/coverage.md";

pub(crate) fn run(arguments: &[String]) -> Result<(), Error> {
    let given = |flag: &str| arguments.iter().any(|word| word == flag);
    let known = ["--all", "--markdown", "--check"];
    let rest: Vec<String> = arguments.iter().filter(|word| !known.contains(&word.as_str())).cloned().collect();
    Error::unexpected(&rest)?;
    let (table, items) = survey()?;
    let root = tree::root();
    let reach = Reach::of(&root.join("crates/oxmlx/src/lib.rs")).map_err(Error::Bridge)?;
    let sys = sources(&root.join(SYS).join("src"));
    let evidence = Evidence { table: &table, reach, sys };
    let report = report(&table.headers, &items, &evidence);
    print!("{}", report.summary);
    if given("--all") {
        print!("\n{}", report.items);
    }
    if report.missing > 0 {
        return Err(Error::Bridge(format!("{} public functions are not reached", report.missing)));
    }
    if report.reasons > REASONS {
        return Err(Error::Bridge(format!("{} reasons to leave functions out, {REASONS} may be", report.reasons)));
    }
    let mut by_hand = String::new();
    for name in hostile::BY_HAND {
        by_hand += &std::fs::read_to_string(root.join(name)).map_err(|e| Error::Bridge(format!("{name}: {e}")))?;
    }
    let table = hostile::table(&evidence.reach.api(), &by_hand).map_err(Error::Bridge)?;
    for (name, text) in [(PAGE, report.page()), (hostile::FILE, table)] {
        let path = root.join(name);
        let failed = |e: std::io::Error| Error::Bridge(format!("{name}: {e}"));
        if given("--markdown") {
            std::fs::write(&path, text).map_err(failed)?;
        } else if given("--check") && std::fs::read_to_string(&path).map_err(failed)? != text {
            return Err(Error::Bridge(format!(
                "{name} is not what the sources give: run `cargo xtask coverage --markdown`"
            )));
        }
    }
    Ok(())
}

/// Where a function stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    /// Through this public item.
    Reached(String),
    LeftOut(String),
    Missing(String),
}

/// What counts as evidence.
struct Evidence<'a> {
    table: &'a Table,
    reach: Reach,
    /// Path below `crates/oxmlx-sys/src` and words of each file.
    sys: BTreeMap<String, BTreeSet<String>>,
}

fn sources(folder: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for path in std::fs::read_dir(next).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_owned).collect();
                found.insert(name, words);
            }
        }
    }
    found
}

impl Evidence<'_> {
    fn standing(&self, item: &Item, items: &[Item]) -> Standing {
        if let Some(standing) = self.through(item) {
            return standing;
        }
        match &item.class {
            Class::Generated(wrapper) => {
                let path = ["oxmlx_sys", "generated", &wrapper.topic, &wrapper.name];
                self.reach.to(&path).map_or_else(
                    || Standing::Missing(format!("nothing public calls {}::{}", wrapper.topic, wrapper.name)),
                    Standing::Reached,
                )
            }
            Class::Alias(how) => {
                let target = how.split([':', ',']).next().unwrap_or(how);
                let same = |other: &&Item| {
                    let named = match &other.class {
                        Class::Generated(wrapper) => wrapper.name == target || other.decl.name == target,
                        Class::Handwritten(_) => other.decl.name == target,
                        Class::Alias(_) | Class::LeftOut(_) => false,
                    };
                    named && topic(&other.decl.header) == topic(&item.decl.header)
                };
                let reached = items.iter().filter(same).find_map(|other| match self.standing(other, items) {
                    Standing::Reached(through) => Some(through),
                    _ => None,
                });
                reached.map_or_else(
                    || Standing::Missing(format!("nothing public calls {target}, which would do it")),
                    Standing::Reached,
                )
            }
            Class::Handwritten(by_hand) => self.by_hand(by_hand).map_or_else(
                || Standing::Missing(format!("by hand, {}: not found", by_hand.reason)),
                Standing::Reached,
            ),
            Class::LeftOut(reason) => Standing::LeftOut(reason.clone()),
        }
    }

    /// The public item that the table names for a function, if there is such a one.
    fn through(&self, item: &Item) -> Option<Standing> {
        let (_, told) = self.table.through.iter().find(|(key, _)| names(key, &item.decl))?;
        let name = told.split(": ").next().unwrap_or(told);
        Some(if self.reach.has(name) {
            Standing::Reached(name.to_owned())
        } else {
            Standing::Missing(format!("bridge.toml [through] names {name}, which is no public item"))
        })
    }

    /// The public item that calls what was written by hand.
    fn by_hand(&self, by_hand: &Handwritten) -> Option<String> {
        let (file, item) = by_hand.place.split_once(": ")?;
        self.sys.get(file).filter(|words| words.contains(item))?;
        let module: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
        self.reach.to(&[&["oxmlx_sys"], &module[..], &[item]].concat())
    }
}

struct Report {
    /// Counts by header, and what is not reached.
    summary: String,
    /// A row for each name: the items.
    items: String,
    missing: usize,
    reasons: usize,
}

impl Report {
    fn page(&self) -> String {
        format!(
            "# Coverage of MLX\n\nWritten by `cargo xtask coverage --markdown`; `cargo xtask test` compares it. The public functions of the \
             pinned headers, by declaration,\nand how many a program reaches through the public items of `oxmlx`.\n\n{}\n\
             ## Through which item\n\n{}",
            self.summary, self.items
        )
    }
}

fn report(headers: &[String], items: &[Item], evidence: &Evidence<'_>) -> Report {
    let mut summary =
        String::from("| header | public | names | reached | left out | not reached |\n|---|--:|--:|--:|--:|--:|\n");
    let (mut total, mut unreached, mut rows) = ([0; 5], BTreeSet::new(), Vec::new());
    let mut reasons: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for header in headers {
        let mine: Vec<(&Item, Standing)> = items
            .iter()
            .filter(|item| item.decl.header == *header)
            .map(|item| (item, evidence.standing(item, items)))
            .collect();
        let names: BTreeSet<&str> = mine.iter().map(|(item, _)| item.decl.name.as_str()).collect();
        let count = |wanted: fn(&Standing) -> bool| mine.iter().filter(|(_, s)| wanted(s)).count();
        let row = [
            mine.len(),
            names.len(),
            count(|s| matches!(s, Standing::Reached(_))),
            count(|s| matches!(s, Standing::LeftOut(_))),
            count(|s| matches!(s, Standing::Missing(_))),
        ];
        total.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
        summary.push_str(&line(&format!("`{header}.h`"), &row));
        let mut through: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (item, standing) in &mine {
            let told = match standing {
                Standing::Reached(item) => format!("`{item}`"),
                Standing::LeftOut(why) => {
                    reasons.entry(why.clone()).or_default().insert(format!("`{}` (`{header}.h`)", item.decl.name));
                    "left out".to_owned()
                }
                Standing::Missing(why) => {
                    unreached.insert(format!("* **not reached**: `{}`: {why}\n", item.decl.signature()));
                    "not reached".to_owned()
                }
            };
            through.entry(&item.decl.name).or_default().insert(told);
        }
        for (name, items) in through {
            rows.push(format!("| `{header}.h` | `{name}` | {} |\n", Vec::from_iter(items).join(", ")));
        }
    }
    summary.push_str(&line("all", &total));
    summary.push('\n');
    summary.extend(unreached);
    for (why, functions) in &reasons {
        let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
        summary.push_str(&format!("* left out: {}: {why}\n", functions.join(", ")));
    }
    let items = format!(
        "| header | function | items |\n|---|---|---|\n{}",
        rows.concat().replace("`operator|`", "`operator\\|`").replace("`operator||`", "`operator\\|\\|`")
    );
    Report { summary, items, missing: total[4], reasons: reasons.len() }
}

fn line(name: &str, row: &[usize]) -> String {
    let cells: Vec<String> = row.iter().map(usize::to_string).collect();
    format!("| {name} | {} |\n", cells.join(" | "))
}
