//! Writes the cxx bridge of a topic and its raw wrappers.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::cpp::{MARK, wrappers};
use super::select::{Item, Wrapper};

/// The wrapper types that live in `crate::types`.
const TYPES: [&str; 23] = [
    "CompileMode",
    "Contraction",
    "Device",
    "Dtype",
    "DtypeCategory",
    "DtypeKind",
    "Fact",
    "FftNorm",
    "Gguf",
    "Group",
    "Indexing",
    "IntPair",
    "IntTriple",
    "MaskMode",
    "MatrixNorm",
    "Metadata",
    "PadMode",
    "PrintFormat",
    "QuantMode",
    "Safetensors",
    "Side",
    "Stream",
    "ThreadLocalStream",
];
/// `Triangle` and the helpers.
const HELPERS: [&str; 5] = ["Triangle", "closed", "metadata_parts", "opt", "opt_group"];

/// The Rust file of a topic, not yet formatted.
pub(crate) fn module(topic: &str, header: &str, items: &[&Item]) -> String {
    let (mut bridge, mut body) = (String::new(), String::new());
    for (item, wrapper) in wrappers(items) {
        let _ = writeln!(bridge, "{}", declaration(wrapper));
        let _ = writeln!(body, "\n{}", function(item, wrapper));
    }
    let mut out = format!("{MARK}\n//! Raw wrappers of the functions in MLX's `mlx/{header}.h`.\n\n");
    let has = |text: &str, word: &str| words(text).any(|w| w == word);
    if has(&body, "DeviceType") {
        let _ = writeln!(out, "use crate::runtime::DeviceType;");
    }
    let used = TYPES.iter().chain(&HELPERS).filter(|name| has(&body, name)).copied().collect::<Vec<_>>();
    if !used.is_empty() {
        let _ = writeln!(out, "use crate::types::{{{}}};", used.join(", "));
    }
    let array = if has(&body, "Array") { "Array, " } else { "" };
    let _ = writeln!(out, "use crate::{{{array}Result, call::call}};\n");
    let _ = writeln!(out, "#[cxx::bridge(namespace = \"oxmlx::{topic}\")]\nmod ffi {{\nunsafe extern \"C++\" {{");
    let _ = writeln!(out, "include!(\"generated/{topic}.h\");\n");
    if has(&bridge, "Array") {
        let _ = writeln!(out, "#[namespace = \"mlx::core\"]\n#[cxx_name = \"array\"]\ntype Array = crate::Array;");
    }
    if has(&bridge, "Group") {
        let _ = writeln!(out, "#[namespace = \"mlx::core::distributed\"]\ntype Group = crate::types::ffi::Group;");
    }
    for shared in shared_types(&bridge) {
        let _ = writeln!(out, "#[namespace = \"oxmlx\"]\ntype {shared} = crate::types::ffi::{shared};");
    }
    let _ = writeln!(out, "\n{bridge}}}\n}}\n{body}");
    out
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty())
}

/// The shared structs and enums in a bridge's signatures: `crate::types::ffi` names them all by these endings.
fn shared_types(bridge: &str) -> Vec<&str> {
    let shared = |w: &&str| {
        ["Code", "Parts"].iter().any(|end| w.ends_with(end))
            || ["Opt", "IntPair", "IntTriple", "ArrayPair"].iter().any(|start| w.starts_with(start))
    };
    let mut found: Vec<&str> = words(bridge).filter(|w| shared(w) && *w != "Option").collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn declaration(wrapper: &Wrapper) -> String {
    let params = wrapper.inputs.iter().flat_map(|(name, input)| {
        input.bridge.iter().map(move |(pattern, cxx, _)| format!("{}: {cxx}", pattern.replace('$', name)))
    });
    let params = params.collect::<Vec<_>>().join(", ");
    let keyword = if is_unsafe(wrapper) { "unsafe fn" } else { "fn" };
    format!("{keyword} {}({params}) -> Result<{}>;", wrapper.name, wrapper.output.bridge)
}

fn is_unsafe(wrapper: &Wrapper) -> bool {
    wrapper.inputs.iter().any(|(_, input)| input.is_pointer())
}

fn function(item: &Item, wrapper: &Wrapper) -> String {
    let name = &wrapper.name;
    let params = wrapper.inputs.iter().map(|(param, input)| format!("{param}: {}", input.rust));
    let params = params.collect::<Vec<_>>().join(", ");
    let sent = wrapper.inputs.iter().map(|(param, input)| input.send.replace('$', param));
    let call = format!("ffi::{name}({})", sent.collect::<Vec<_>>().join(", "));
    let op = if item.decl.name.starts_with("operator") { name } else { &item.decl.name };
    let (note, closure) = match (is_unsafe(wrapper), wrapper.inputs.is_empty()) {
        (true, _) => {
            let note = "// SAFETY: each pointer is null or comes from a borrow that outlives the call.\n";
            (note, format!("|| unsafe {{ {call} }}"))
        }
        (false, true) => ("", format!("ffi::{name}")),
        (false, false) => ("", format!("|| {call}")),
    };
    let then = wrapper.output.then.replace("OP", &format!("{op:?}"));
    let signature = item.decl.signature();
    let rust = wrapper.output.rust;
    format!("/// `{signature}`\npub fn {name}({params}) -> Result<{rust}> {{\n{note}call({op:?}, {closure}){then}\n}}")
}

/// What rustfmt makes of the text, by the settings of the workspace at `root`.
///
/// # Errors
/// rustfmt is missing or refuses the text.
pub(crate) fn format(root: &Path, text: &str) -> Result<String, String> {
    let mut child = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root.join("rustfmt.toml"))
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("rustfmt does not run ({e}): install it with `rustup component add rustfmt`"))?;
    let mut stdin = child.stdin.take().ok_or("rustfmt has no standard input")?;
    let given = text.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(given.as_bytes()));
    let output = child.wait_with_output().map_err(|e| format!("rustfmt: {e}"))?;
    writer.join().map_err(|_| "rustfmt's input was not written")?.map_err(|e| format!("rustfmt: {e}"))?;
    if !output.status.success() {
        return Err("rustfmt refused generated code".to_owned());
    }
    String::from_utf8(output.stdout).map_err(|e| format!("rustfmt: {e}"))
}
