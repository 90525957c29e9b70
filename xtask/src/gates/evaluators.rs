//! Which bridge functions can evaluate: a table that was found from the machine code of the pinned libmlx and of the shim.
//!
//! The table is checked in, so that the rules that lean on it hold on any machine; where there is `objdump` and the library for Linux on
//! x86-64, it is found again and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::callgraph::Graph;
use super::verdict::{Verdict, Violation};
use crate::error::Error;
use crate::mlx::pin::Pin;
use crate::{setup, tree};

/// Where the table lies.
pub(super) const FILE: &str = "xtask/src/gates/evaluators.toml";

/// What a function may come to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    /// Computes lazy arrays.
    Evaluates,
    /// Calls a closure of Rust, which may do anything.
    Applies,
    /// Waits for a stream or an event, or lets go of an event that others may wait for.
    Waits,
    /// Gives the address of elements, which moves them on a GPU.
    Reads,
}

const CLASSES: [Class; 4] = [Class::Evaluates, Class::Applies, Class::Waits, Class::Reads];

impl Class {
    /// Whether the function of this mangled name does it itself.
    fn is_root(self, name: &str, graph: &Graph) -> bool {
        let begins = |with: &[&str]| with.iter().any(|prefix| name.starts_with(prefix));
        match self {
            Self::Evaluates => begins(&[
                "_ZN3mlx4core9eval_impl",
                "_ZN3mlx4core4evalE",
                "_ZN3mlx4core10async_evalE",
                "_ZN3mlx4core5array4evalEv",
            ]),
            Self::Waits => begins(&[
                "_ZN3mlx4core11synchronizeE",
                "_ZN3mlx4core5array4waitEv",
                "_ZN3mlx4core5Event4waitE",
                "_ZNK3mlx4core5Event11is_signaledEv",
                "_ZNK3mlx4core5array12is_availableEv",
            ]),
            Self::Reads => {
                ["_ZN3mlx4core5array4dataI", "_ZNK3mlx4core5array4dataI"].iter().any(|n| name.starts_with(n))
            }
            // The shim calls what Rust defines, or a function from arrays to arrays that somebody gave it.
            Self::Applies => {
                let rust = !graph.defines(name) && bridge_name(name).is_some_and(|name| is_closure(&name));
                rust || begins(&["_ZNKSt8functionIFSt6vectorIN3mlx4core5array"]) && name.contains("clE")
            }
        }
    }
}

/// Whether Rust runs a closure of the user's under this name.
fn is_closure(name: &str) -> bool {
    name.rsplit("::").next().is_some_and(|method| ["apply", "vjp", "jvp", "vmap", "fallback"].contains(&method))
}

/// A constructor copies what it is given into memory of its own: that is no look at an array's values.
fn makes_an_array(name: &str) -> bool {
    ["_ZN3mlx4core5arrayC", "_ZN3mlx4core5array4initI"].iter().any(|prefix| name.starts_with(prefix))
}

/// `oxmlx$array$cxxbridge1$205$data` as `array::data`.
fn bridge_name(symbol: &str) -> Option<String> {
    let parts: Vec<&str> = symbol.strip_prefix("oxmlx$")?.split('$').collect();
    let at = parts.iter().position(|part| part.starts_with("cxxbridge"))?;
    let mut name = parts[..at].to_vec();
    name.extend(parts.get(at + 2..)?);
    Some(name.join("::"))
}

/// The last part of a name in MLX's namespace: `save_gguf`. Not of operators and constructors.
fn mlx_name(symbol: &str) -> Option<&str> {
    let mut rest = symbol.strip_prefix("_ZN")?;
    rest = rest.strip_prefix('K').unwrap_or(rest).strip_prefix("3mlx4core")?;
    let mut last = None;
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let length: usize = rest[..digits].parse().ok()?;
        let name = rest.get(digits..digits + length)?;
        if name.starts_with("_GLOBAL_") {
            return None;
        }
        last = Some(name);
        rest = &rest[digits + length..];
    }
    // A function's name ends the nested name, or has template arguments.
    last.filter(|_| rest.starts_with(['E', 'I']) && !rest.starts_with("EC"))
}

/// The table.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Table {
    /// The release of MLX that it was found in.
    version: String,
    /// Bridge functions, by their name in Rust: `array::data`.
    pub(super) bridge: BTreeMap<String, BTreeSet<Class>>,
    /// MLX's own functions that come to evaluate or to wait, by their last name.
    pub(super) mlx: BTreeSet<String>,
}

impl Table {
    /// What is checked in.
    pub(super) fn read() -> Result<Self, Error> {
        let path = tree::root().join(FILE);
        let text = std::fs::read_to_string(&path).map_err(Error::io("reading", &path))?;
        toml::from_str(&text).map_err(|e| Error::Bridge(format!("{FILE}: {e}")))
    }

    /// What the machine code says.
    pub(super) fn of(graph: &Graph, version: &str) -> Self {
        let mut table = Self { version: version.to_owned(), ..Self::default() };
        for class in CLASSES {
            for name in graph.reaching(|name| class.is_root(name, graph), makes_an_array) {
                if let Some(bridge) = bridge_name(name).filter(|_| graph.defines(name)) {
                    table.bridge.entry(bridge).or_default().insert(class);
                }
                if matches!(class, Class::Evaluates | Class::Waits) {
                    // A primitive's own evaluation is what is waited for: it runs inside `eval`.
                    let found = mlx_name(name).filter(|name| !name.starts_with("eval_") || *name == "eval_impl");
                    table.mlx.extend(found.map(str::to_owned));
                }
            }
        }
        table
    }

    fn text(&self) -> String {
        let mut out = "# @generated by cargo xtask gates --write: docs/gates.md tells how.\n".to_owned();
        let _ = writeln!(
            out,
            "version = {:?}\n\n# MLX's own functions that come to evaluate or to wait.\nmlx = [",
            self.version
        );
        for name in &self.mlx {
            let _ = writeln!(out, "    {name:?},");
        }
        out.push_str("]\n\n[bridge]\n");
        for (name, classes) in &self.bridge {
            let names = classes.iter().map(|class| format!("\"{class:?}\"").to_lowercase());
            let _ = writeln!(out, "{name:?} = [{}]", names.collect::<Vec<_>>().join(", "));
        }
        out
    }

    /// The table as people read it: one line a bridge function.
    pub(super) fn listed(&self) -> String {
        let lines = self.bridge.iter().map(|(name, classes)| {
            let names: Vec<String> = classes.iter().map(|class| format!("{class:?}").to_lowercase()).collect();
            format!("  {name:<36} {}\n", names.join(", "))
        });
        lines.collect()
    }
}

/// Finds the table again and compares it with what is checked in.
pub(super) fn check() -> Result<Verdict, Error> {
    let found = match find()? {
        Ok((table, functions)) => (table, functions),
        Err(why) => return Ok(Verdict::Skipped(why)),
    };
    let (table, functions) = found;
    let told = Table::read()?;
    Ok(Verdict::of(differences(&told, &table), || {
        format!(
            "{} of the bridge's functions can evaluate, wait or read; {functions} functions of machine code",
            table.bridge.len()
        )
    }))
}

/// Finds the table and writes it.
pub(super) fn write() -> Result<(), Error> {
    let (table, _) = find()?.map_err(Error::Bridge)?;
    let path = tree::root().join(FILE);
    std::fs::write(&path, table.text()).map_err(Error::io("writing", &path))
}

fn differences(told: &Table, found: &Table) -> Vec<Violation> {
    let mut out = Vec::new();
    let mut note = |place: &str, what: String| {
        out.push(Violation { rule: "evaluators-table", place: place.to_owned(), what });
    };
    let again = "run `cargo xtask gates --write` and look at what changed";
    if told.version != found.version {
        note(FILE, format!("is of MLX {}, the pin names {}: {again}", told.version, found.version));
    }
    for name in told.bridge.keys().chain(found.bridge.keys()).collect::<BTreeSet<_>>() {
        let (was, is) = (told.bridge.get(name), found.bridge.get(name));
        if was != is {
            note(name, format!("told as {was:?}, found as {is:?}: {again}"));
        }
    }
    if told.mlx != found.mlx {
        note(FILE, format!("MLX's functions differ in {:?}: {again}", told.mlx.symmetric_difference(&found.mlx)));
    }
    out
}

/// The table from the machine code of this machine's build, and how many functions that has; or why there is none.
fn find() -> Result<Result<(Table, usize), String>, Error> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Err("the table is found on Linux on x86-64".to_owned()));
    }
    let tool = Command::new("objdump").arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status();
    if !tool.is_ok_and(|status| status.success()) {
        return Ok(Err("there is no objdump (Debian: apt-get install binutils)".to_owned()));
    }
    let prefix = setup::ready(false)?.prefix;
    let version = Pin::of_this_tree()?.version;
    if prefix.version != version || prefix.backend != crate::mlx::platform::Backend::Cpu {
        return Ok(Err(format!(
            "MLX {} {} is set up, and the table is of {version} cpu",
            prefix.version, prefix.backend
        )));
    }
    let mut graph = Graph::default();
    for program in [prefix.library, shim()?] {
        disassemble(&program, &mut graph)?;
    }
    Ok(Ok((Table::of(&graph, &version), graph.len())))
}

fn disassemble(program: &Path, graph: &mut Graph) -> Result<(), Error> {
    let mut command = Command::new("objdump");
    command.args(["-d", "-r", "--no-show-raw-insn"]).arg(program).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(Error::io("running", Path::new("objdump")))?;
    if let Some(out) = child.stdout.take() {
        graph.read(BufReader::with_capacity(1 << 20, out)).map_err(Error::io("reading", program))?;
    }
    let status = child.wait().map_err(Error::io("running", Path::new("objdump")))?;
    if status.success() { Ok(()) } else { Err(Error::Step { step: "objdump".into(), status: status.to_string() }) }
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    out_dir: Option<PathBuf>,
}

/// The shim's object files, not optimised: each function of the sources is one of the machine's.
fn shim() -> Result<PathBuf, Error> {
    let mut build = tree::cargo(&["build", "--locked", "-p", "oxmlx-sys", "--message-format=json"]);
    let output = build.stderr(Stdio::inherit()).output().map_err(Error::io("running", Path::new("cargo")))?;
    if !output.status.success() {
        return Err(Error::Step { step: "cargo build -p oxmlx-sys".into(), status: output.status.to_string() });
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let mut folders = messages
        .filter(|m| {
            m.reason == "build-script-executed" && m.package_id.as_ref().is_some_and(|id| id.contains("oxmlx-sys"))
        })
        .filter_map(|message| message.out_dir);
    let folder =
        folders.next().ok_or_else(|| Error::Bridge("cargo names no folder of oxmlx-sys' build script".into()))?;
    Ok(folder.join("liboxmlx_shim.a"))
}

#[cfg(test)]
mod tests {
    use super::{Class, FILE, Graph, Table, bridge_name, differences, mlx_name};

    impl Table {
        fn does(&self, function: &str, class: Class) -> bool {
            self.bridge.get(function).is_some_and(|classes| classes.contains(&class))
        }
    }

    /// A shim in which `array::size` evaluates, and one that a closure of Rust runs in.
    const PLANTED: &str = "
0000000000000000 <oxmlx$array$cxxbridge1$205$size>:
\t\t\t9: R_X86_64_PLT32\t_ZN3mlx4core5array4itemIfEET_v-0x4
0000000000000010 <_ZN3mlx4core5array4itemIfEET_v>:
\t\t\t9: R_X86_64_PLT32\t_ZN3mlx4core5array4evalEv-0x4
0000000000000020 <oxmlx$transforms$cxxbridge1$205$Compiled$call>:
\t\t\t9: R_X86_64_PLT32\toxmlx$transforms$cxxbridge1$205$Closure$apply-0x4
0000000000000030 <oxmlx$ops$cxxbridge1$205$add>:
\t\t\t9: R_X86_64_PLT32\t_ZN3mlx4core3addERKNS0_5arrayES3_-0x4
0000000000000040 <oxmlx$array$cxxbridge1$205$data>:
\t\t\t9: R_X86_64_PLT32\t_ZNK3mlx4core5array12is_availableEv-0x4
\t\t\t9: R_X86_64_PLT32\t_ZN3mlx4core5array4dataIhEEPT_v-0x4
";

    fn planted() -> Table {
        let mut graph = Graph::default();
        graph.read(PLANTED.as_bytes()).unwrap();
        Table::of(&graph, "1.2.3")
    }

    #[test]
    fn a_function_that_comes_to_evaluate_is_found_by_what_it_calls() {
        let table = planted();
        assert!(table.does("array::size", Class::Evaluates));
        assert!(table.does("transforms::Compiled::call", Class::Applies));
        assert!(table.does("array::data", Class::Waits) && table.does("array::data", Class::Reads));
        assert!(!table.bridge.contains_key("ops::add"));
        assert!(table.mlx.contains("item"));
    }

    #[test]
    fn the_table_reads_back_as_it_was_written() {
        let table = planted();
        assert_eq!(toml::from_str::<Table>(&table.text()).unwrap(), table);
    }

    #[test]
    fn a_function_that_began_to_evaluate_is_told_by_the_rule_of_the_table() {
        let (mut told, found) = (planted(), planted());
        told.bridge.remove("array::size");
        let violations = differences(&told, &found);
        assert_eq!(
            violations.iter().map(|v| (v.rule, v.place.as_str())).collect::<Vec<_>>(),
            [("evaluators-table", "array::size")]
        );
        told = planted();
        told.version = "1.2.2".into();
        assert_eq!(differences(&told, &found)[0].place, FILE);
    }

    #[test]
    fn symbols_are_read_as_names() {
        assert_eq!(bridge_name("oxmlx$ops$cxxbridge1$205$add").as_deref(), Some("ops::add"));
        assert_eq!(bridge_name("_ZN5oxmlx3ops3addE"), None);
        assert_eq!(mlx_name("_ZN3mlx4core9save_ggufENSt7__cxx1112basic_string"), Some("save_gguf"));
        assert_eq!(mlx_name("_ZNK3mlx4core5array12is_availableEv"), Some("is_available"));
        assert_eq!(mlx_name("_ZN3mlx4core8CompiledC1ENS0_6StreamE"), None);
        assert_eq!(mlx_name("_ZN3mlx4core12_GLOBAL__N_13fooEv"), None);
    }

    #[test]
    fn what_is_checked_in_is_of_the_pinned_release_and_knows_the_evaluators_that_issue_and_docs_name() {
        let table = Table::read().unwrap();
        assert_eq!(table.version, crate::mlx::pin::Pin::of_this_tree().unwrap().version);
        for name in ["item", "save", "save_gguf", "save_safetensors", "load_gguf", "eval", "async_eval", "synchronize"]
        {
            assert!(table.mlx.contains(name), "{name}");
        }
        for (function, class) in [
            ("array::to_text", Class::Evaluates),
            ("io::save", Class::Evaluates),
            ("io::load_gguf", Class::Evaluates),
            ("utils::format_array", Class::Evaluates),
            ("evaluation::evaluate", Class::Evaluates),
            ("transforms::vjp", Class::Applies),
            ("transforms::Compiled::call", Class::Applies),
            ("memory::clear_cache", Class::Waits),
            ("array::data", Class::Reads),
        ] {
            assert!(table.does(function, class), "{function}");
        }
    }
}
