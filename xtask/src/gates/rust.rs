//! What gates ask of Rust sources: the bridges in them, and names in expressions.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::{Attribute, Expr, ForeignItem, Item, Meta, Path, Type};

/// The functions of C++ that one `#[cxx::bridge]` declares.
#[derive(Debug, Default)]
pub(super) struct Bridge {
    /// Its namespace without the crate's: `runtime`.
    namespace: String,
    pub(super) functions: BTreeSet<String>,
    /// By the type that they are methods of.
    pub(super) methods: BTreeMap<String, BTreeSet<String>>,
}

impl Bridge {
    /// The bridge that this module is.
    pub(super) fn of(item: &Item) -> Option<Self> {
        let Item::Mod(module) = item else { return None };
        let attribute = module.attrs.iter().find(|attribute| is_bridge(attribute))?;
        let mut bridge = Self::default();
        if let Meta::List(list) = &attribute.meta {
            let text = list.tokens.to_string();
            let quoted = text.split('"').nth(1).unwrap_or_default();
            bridge.namespace = quoted.strip_prefix("oxmlx::").unwrap_or_default().to_owned();
        }
        for item in module.content.iter().flat_map(|(_, items)| items) {
            if let Item::ForeignMod(block) = item
                && block.abi.name.as_ref().is_some_and(|name| name.value() == "C++")
            {
                block.items.iter().for_each(|item| bridge.declare(item));
            }
        }
        Some(bridge)
    }

    fn declare(&mut self, item: &ForeignItem) {
        let ForeignItem::Fn(function) = item else { return };
        let name = function.sig.ident.to_string();
        match function.sig.receiver() {
            None => {
                self.functions.insert(name);
            }
            Some(receiver) => {
                let owner = last_type(&receiver.to_token_stream().to_string());
                self.methods.entry(owner).or_default().insert(name);
            }
        }
    }

    /// The name of one of its functions as the table has it.
    pub(super) fn full(&self, function: &str) -> String {
        if self.namespace.is_empty() { function.to_owned() } else { format!("{}::{function}", self.namespace) }
    }
}

fn is_bridge(attribute: &Attribute) -> bool {
    let path = attribute.path();
    path.segments.len() == 2 && path.segments[0].ident == "cxx" && path.segments[1].ident == "bridge"
}

/// `Pin < & mut Waiter >` as `Waiter`: the last name that is no keyword.
fn last_type(text: &str) -> String {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    words.next_back().unwrap_or_default().to_owned()
}

/// The type of a bridge that is behind this type: `UniquePtr<ffi::Waiter>` is `Waiter`.
pub(super) fn foreign_type(ty: &Type) -> Option<String> {
    let text = ty.to_token_stream().to_string();
    let (_, after) = text.split_once("ffi :: ")?;
    Some(after.split(|c: char| !c.is_alphanumeric() && c != '_').next()?.to_owned())
}

/// Whether an item is only there for tests.
pub(super) fn for_tests(attributes: &[Attribute]) -> bool {
    let said = |attribute: &Attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        Meta::Path(path) => path.is_ident("test"),
        Meta::NameValue(_) => false,
    };
    attributes.iter().any(said)
}

/// The last two names of a path.
pub(super) fn ends(path: &Path) -> (Option<String>, String) {
    let mut names = path.segments.iter().rev().map(|segment| segment.ident.to_string());
    let last = names.next().unwrap_or_default();
    (names.next(), last)
}

/// The path that is called, when it is one.
pub(super) fn callee(expression: &Expr) -> Option<&Path> {
    match expression {
        Expr::Path(path) => Some(&path.path),
        Expr::Paren(inner) => callee(&inner.expr),
        _ => None,
    }
}
