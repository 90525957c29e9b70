//! Puts every public declaration in exactly one class, and names the wrappers.
//!
//! An overload that stands alone keeps MLX's name. Among several, the parameters that are not common to all name each:
//! `sum_axes`, `sum_axis`; the one with none of its own keeps the plain name, or gets `_all` where the others differ in axes only
//! (`sum_all`). Parameters that differ in type only are no help: such names come from the table, and so do all exceptions.

use std::collections::{BTreeMap, BTreeSet};

use super::ir::{Decl, Param};
use super::map::{Input, Output, WRITER, ident, input, output};
use super::table::{Handwritten, Table, names, topic};

/// What becomes of a declaration.
#[derive(Clone, Debug)]
pub(crate) enum Class {
    /// A wrapper is generated.
    Generated(Wrapper),
    /// Another function does the same; the text says which and how.
    Alias(String),
    /// Written by hand.
    Handwritten(Handwritten),
    /// Not for Rust; the reason.
    LeftOut(String),
}

/// A wrapper to write.
#[derive(Clone, Debug)]
pub(crate) struct Wrapper {
    /// The topic it belongs to.
    pub(crate) topic: String,
    /// The name of the shim's function and of the wrapper.
    pub(crate) name: String,
    /// The parameters and how each crosses.
    pub(crate) inputs: Vec<(String, Input)>,
    /// How the result crosses.
    pub(crate) output: Output,
}

/// A declaration and its class.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The declaration.
    pub(crate) decl: Decl,
    /// Its class.
    pub(crate) class: Class,
}

/// Classifies the public declarations, in their order.
///
/// # Errors
/// Every declaration in no class or in several, every table entry that matches nothing, every two wrappers of one name.
pub(crate) fn select(decls: Vec<Decl>, table: &Table) -> Result<Vec<Item>, String> {
    let mut faults = Vec::new();
    let mut public: Vec<Decl> = decls.into_iter().filter(Decl::is_public).collect();
    for decl in &mut public {
        if let Err(fault) = table.name_parameters(decl) {
            faults.push(format!("{}: {fault}", decl.signature()));
        }
    }
    faults.extend(stale(&public, table));

    let marked: Vec<Option<Class>> = public.iter().map(|decl| from_table(decl, table, &mut faults)).collect();
    let generated: Vec<&Decl> = public.iter().zip(&marked).filter(|(_, c)| c.is_none()).map(|(d, _)| d).collect();
    let mut items = Vec::new();
    for (decl, class) in public.iter().zip(&marked) {
        let class = match class {
            Some(class) => class.clone(),
            None => match wrapper(decl, &generated, table) {
                Ok(wrapper) => Class::Generated(wrapper),
                Err(fault) => {
                    faults.push(fault);
                    continue;
                }
            },
        };
        items.push(Item { decl: decl.clone(), class });
    }
    faults.extend(twins(&items));
    if faults.is_empty() { Ok(items) } else { Err(faults.join("\n")) }
}

/// Table entries that match no declaration.
fn stale(public: &[Decl], table: &Table) -> Vec<String> {
    let keys =
        table.names.keys().chain(table.alias.keys()).chain(table.handwritten.keys()).chain(table.left_out.keys());
    keys.chain(table.through.keys())
        .filter(|key| !public.iter().any(|d| names(key, d)))
        .map(|key| format!("bridge.toml: {key:?} matches nothing"))
        .collect()
}

/// The class that table and rules give before any wrapper is thought of. An entry for one overload wins over one for all.
fn from_table(decl: &Decl, table: &Table, faults: &mut Vec<String>) -> Option<Class> {
    let hit = |key: &&String| names(key, decl);
    let mut found: Vec<(&String, Class)> = Vec::new();
    found.extend(table.alias.iter().filter(|e| hit(&e.0)).map(|(k, how)| (k, Class::Alias(how.clone()))));
    let by_hand = table.handwritten.iter().filter(|e| hit(&e.0));
    found.extend(by_hand.map(|(k, h)| (k, Class::Handwritten(h.clone()))));
    found.extend(table.left_out.iter().filter(|e| hit(&e.0)).map(|(k, why)| (k, Class::LeftOut(why.clone()))));
    if found.len() > 1 && found.iter().any(|(key, _)| key.contains('(')) {
        found.retain(|(key, _)| key.contains('('));
    }
    if found.len() > 1 {
        faults.push(format!("bridge.toml: several entries match {}", decl.signature()));
    }
    if let Some((_, class)) = found.pop() {
        return Some(class);
    }
    if table.names.keys().any(|key| names(key, decl)) {
        return None;
    }
    if let Some(function) = table.operators.get(&decl.name) {
        return Some(Class::Alias(function.clone()));
    }
    let forwards = decl.inline && decl.forwards_to.as_ref() == Some(&decl.name);
    forwards.then(|| Class::Alias(format!("{}: fills in arguments", decl.name)))
}

fn wrapper(decl: &Decl, generated: &[&Decl], table: &Table) -> Result<Wrapper, String> {
    let fault = |what: String| format!("{} ({}.h): {what}", decl.signature(), decl.header);
    // What is printed or written goes to a stream of the shim's own.
    let is_input = |p: &&Param| p.ty != "std::ostream&" && p.ty != WRITER;
    let mut inputs = Vec::new();
    for param in decl.given().filter(is_input) {
        let crossing = input(decl, param, table).ok_or_else(|| fault(format!("no way to pass {:?}", param.ty)))?;
        inputs.push((ident(&param.name), crossing));
    }
    let output = output(decl).ok_or_else(|| fault(format!("no way to return {:?}", decl.ret)))?;
    let name = match table.names.iter().find(|(key, _)| names(key, decl)) {
        Some((_, name)) => name.clone(),
        None => ruled_name(decl, generated),
    };
    if name.starts_with("operator") {
        return Err(fault("an operator needs an entry in [operators] or [names]".to_owned()));
    }
    Ok(Wrapper { topic: topic(&decl.header), name, inputs, output })
}

/// The name by the rule at the top.
fn ruled_name(decl: &Decl, generated: &[&Decl]) -> String {
    let keys = |d: &Decl| d.given().map(|p| ident(&p.name)).collect::<Vec<_>>();
    let group: Vec<Vec<String>> =
        generated.iter().filter(|d| d.header == decl.header && d.name == decl.name).map(|d| keys(d)).collect();
    let common = |key: &String| group.iter().all(|keys| keys.contains(key));
    let own = |keys: &[String]| keys.iter().filter(|k| !common(k)).cloned().collect::<Vec<_>>();
    let base = ident(&decl.name);
    if group.len() == 1 {
        return base;
    }
    let mine = own(&keys(decl));
    if !mine.is_empty() {
        return format!("{base}_{}", mine.join("_")).trim_end_matches('_').to_owned();
    }
    let by_axes = group.iter().flat_map(|keys| own(keys)).all(|k| k == "axis" || k == "axes");
    if by_axes && group.iter().any(|keys| !own(keys).is_empty()) { format!("{base}_all") } else { base }
}

/// Wrappers of one name in one topic.
fn twins(items: &[Item]) -> Vec<String> {
    let mut by_name: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for item in items {
        if let Class::Generated(w) = &item.class {
            by_name.entry((w.topic.clone(), w.name.clone())).or_default().insert(item.decl.signature());
        }
    }
    let several = by_name.into_iter().filter(|(_, signatures)| signatures.len() > 1);
    several
        .map(|((topic, name), s)| format!("{topic}::{name} names several overloads: {}", Vec::from_iter(s).join(" | ")))
        .collect()
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
