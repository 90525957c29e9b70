//! `crates/oxmlx-sys/bridge.toml`: what the generator can't know. Every entry must match, so that a stale one is an error.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ir::{Decl, bare};

/// The table. Keys that name functions read `topic.function` for every overload or `topic.function(a, axis)` for one, by the
/// parameters' names without the stream, each with its type before it where names alone don't tell.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// The headers below `mlx/`, without extension.
    pub(crate) headers: Vec<String>,
    /// How many declarations are marked `MLX_API`, and how many functions have a name, in the pinned headers.
    pub(crate) expect: Expect,
    /// How many functions a file of the shim holds at most.
    pub(crate) functions_a_file: usize,
    /// Parameters of type string that are modes: `parameter` or `function.parameter` to an enum of `types.rs`.
    pub(crate) modes: BTreeMap<String, String>,
    /// Names of wrappers that the rule does not give.
    pub(crate) names: BTreeMap<String, String>,
    /// Names of parameters that the header leaves out.
    pub(crate) parameters: BTreeMap<String, String>,
    /// Operators and the functions that they are.
    pub(crate) operators: BTreeMap<String, String>,
    /// Overloads that add nothing to another: how to say it there.
    pub(crate) alias: BTreeMap<String, String>,
    /// Functions that are written by hand.
    pub(crate) handwritten: BTreeMap<String, Handwritten>,
    /// Functions that a public item of `crates/oxmlx` does without their wrapper: the item, and after a colon how.
    #[serde(default)]
    pub(crate) through: BTreeMap<String, String>,
    /// Functions that Rust has no use for, with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
}

/// What the pinned headers hold; a new pin changes it knowingly.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// Declarations marked `MLX_API`.
    pub(crate) marked: usize,
    /// Public functions by name, operators not counted.
    pub(crate) names: usize,
}

/// A function written by hand.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Handwritten {
    /// Why it is not generated.
    pub(crate) reason: String,
    /// The file below `crates/oxmlx-sys/src/` and the item in it: `runtime.rs: eval`.
    pub(crate) place: String,
}

impl Table {
    /// Reads the table.
    ///
    /// # Errors
    /// What TOML or the layout does not allow.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|e| format!("bridge.toml: {e}"))
    }

    /// The enum that a string parameter stands for.
    pub(crate) fn mode(&self, function: &str, param: &str) -> Option<&str> {
        self.modes.get(&format!("{function}.{param}")).or_else(|| self.modes.get(param)).map(String::as_str)
    }

    /// Gives unnamed parameters their names.
    ///
    /// # Errors
    /// A parameter without a name and without an entry.
    pub(crate) fn name_parameters(&self, decl: &mut Decl) -> Result<(), String> {
        for param in decl.params.iter_mut().filter(|p| p.name.is_empty()) {
            let name = self.parameters.get(bare(&param.ty));
            name.ok_or_else(|| format!("bridge.toml [parameters] has no name for {:?}", bare(&param.ty)))?
                .clone_into(&mut param.name);
        }
        Ok(())
    }
}

/// The topic of a header: its namespace in the shim and its file names.
pub(crate) fn topic(header: &str) -> String {
    header
        .strip_prefix("distributed/distributed")
        .map_or_else(|| header.replace('/', "_"), |_| "distributed".to_owned())
}

/// Whether a key names this declaration.
pub(crate) fn names(key: &str, decl: &Decl) -> bool {
    let (path, list) = match key.split_once('(') {
        Some((path, rest)) => (path, rest.strip_suffix(')')),
        None => (key, None),
    };
    if path != format!("{}.{}", topic(&decl.header), decl.name) {
        return false;
    }
    let Some(list) = list else { return !key.contains('(') };
    let wanted: Vec<&str> = split(list);
    let given: Vec<_> = decl.given().collect();
    wanted.len() == given.len()
        && wanted
            .iter()
            .zip(&given)
            .all(|(wanted, p)| *wanted == p.name || **wanted == format!("{} {}", bare(&p.ty), p.name))
}

/// Splits at the commas outside angle brackets.
fn split(list: &str) -> Vec<&str> {
    let (mut out, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in list.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(list[start..].trim());
    out.retain(|s| !s.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::parse::parse;

    #[test]
    fn a_key_picks_overloads_by_names_and_types() {
        let decls = parse(
            "ops",
            "namespace mlx::core {
             MLX_API array arange(double start, double stop, StreamOrDevice s = {});
             MLX_API array arange(int start, int stop, StreamOrDevice s = {});
             MLX_API array pad(const array& a, const std::vector<std::pair<int, int>>& width, StreamOrDevice s = {});
             }",
        )
        .unwrap();
        let hits = |key: &str| decls.iter().map(|d| names(key, d)).collect::<Vec<_>>();
        assert_eq!(hits("ops.arange"), [true, true, false]);
        assert_eq!(hits("ops.arange(start, stop)"), [true, true, false]);
        assert_eq!(hits("ops.arange(int start, stop)"), [false, true, false]);
        assert_eq!(hits("ops.pad(a, std::vector<std::pair<int, int>> width)"), [false, false, true]);
        assert_eq!(hits("fast.arange"), [false, false, false]);
        assert_eq!(hits("ops.arange()"), [false, false, false]);
    }

    #[test]
    fn topics_are_flat_names() {
        assert_eq!(topic("ops"), "ops");
        assert_eq!(topic("distributed/distributed"), "distributed");
        assert_eq!(topic("distributed/ops"), "distributed_ops");
    }
}
