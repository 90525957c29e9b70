//! Who calls whom, from the public items inwards.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use super::source::{Crate, Function};

/// What the public items of a crate reach.
pub(crate) struct Reach {
    source: Crate,
    /// For each function of the crate whether programs can name it.
    public: Vec<bool>,
    /// For each function those that call it.
    callers: Vec<Vec<usize>>,
}

/// What a caller of a public function must know.
pub(crate) struct Api<'a> {
    pub(crate) method_of: Option<&'a str>,
    pub(crate) of_trait: bool,
    pub(crate) is_unsafe: bool,
    /// The bounds of each type parameter.
    pub(crate) generics: &'a [String],
    /// Names and types of the parameters, `self` included, without lifetimes.
    pub(crate) inputs: &'a [(String, String)],
    /// The type returned, without lifetimes.
    pub(crate) output: &'a str,
}

impl Reach {
    /// Parses the crate whose root file this is.
    ///
    /// # Errors
    /// The file and what can't be read in it.
    pub(crate) fn of(root: &Path) -> Result<Self, String> {
        Ok(Self::new(Crate::read(root)?))
    }

    pub(super) fn new(source: Crate) -> Self {
        let public: Vec<bool> = source.functions.iter().map(|f| is_public(&source, f)).collect();
        let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (i, function) in source.functions.iter().enumerate() {
            by_name.entry(&function.name).or_default().push(i);
        }
        let mut callers = vec![Vec::new(); source.functions.len()];
        for (caller, function) in source.functions.iter().enumerate() {
            let named = function.paths.iter().flat_map(|path| by_path(&source, &by_name, path));
            let methods = function.methods.iter().flat_map(|name| by_name.get(name.as_str()).into_iter().flatten());
            let methods = methods.copied().filter(|&i| source.functions[i].owner.is_some());
            for called in named.chain(methods).collect::<BTreeSet<usize>>() {
                callers[called].push(caller);
            }
        }
        Self { source, public, callers }
    }

    /// The public item through which a program reaches a function of another crate, by its full path:
    /// `oxmlx_sys::generated::ops::add`. A path of a type stands for all that is called on it.
    pub(crate) fn to(&self, path: &[&str]) -> Option<String> {
        let names = |function: &Function| {
            function.paths.iter().any(|found| found.len() >= path.len() && found.iter().zip(path).all(|(a, b)| a == b))
        };
        self.nearest((0..self.source.functions.len()).filter(|&i| names(&self.source.functions[i])).collect())
            .or_else(|| self.exported(path))
    }

    /// Whether programs can name this item: `ops::add`, `Array::get`, or a type that the crate passes on.
    pub(crate) fn has(&self, item: &str) -> bool {
        let shown = |i: usize| self.public[i] && self.shown(i) == item;
        (0..self.source.functions.len()).any(shown)
            || self.source.modules.values().any(|m| m.exports.iter().any(|path| path.last().is_some_and(|n| n == item)))
    }

    /// All functions that programs can name, by the name under which they do.
    pub(crate) fn api(&self) -> BTreeMap<String, Api<'_>> {
        let functions = (0..self.source.functions.len()).filter(|&i| self.public[i]).map(|i| {
            let f = &self.source.functions[i];
            let api = Api {
                method_of: f.owner.as_deref(),
                of_trait: f.of_trait,
                is_unsafe: f.is_unsafe,
                generics: &f.generics,
                inputs: &f.inputs,
                output: &f.output,
            };
            (self.shown(i), api)
        });
        functions.collect()
    }

    /// The nearest public function from which one of these is called; of several the first by name.
    fn nearest(&self, users: Vec<usize>) -> Option<String> {
        let mut seen: BTreeSet<usize> = users.iter().copied().collect();
        let mut round: VecDeque<usize> = users.into();
        while !round.is_empty() {
            let found = round.iter().filter(|&&i| self.public[i]);
            // A safe one before an unsafe one, a short name before a long one.
            let order = |&&i: &&usize| (self.source.functions[i].is_unsafe, self.shown(i).len(), self.shown(i));
            if let Some(&i) = found.min_by_key(order) {
                let mark = if self.source.functions[i].is_unsafe { "unsafe " } else { "" };
                return Some(format!("{mark}{}", self.shown(i)));
            }
            for i in std::mem::take(&mut round) {
                round.extend(self.callers[i].iter().filter(|&&caller| seen.insert(caller)));
            }
        }
        None
    }

    /// The name under which a type of another crate is passed on.
    fn exported(&self, path: &[&str]) -> Option<String> {
        let modules = self.source.modules.iter().filter(|(name, _)| module_is_public(&self.source, name));
        modules
            .flat_map(|(name, module)| module.exports.iter().map(move |export| (name, export)))
            .find(|(_, export)| export.iter().eq(path.iter()))
            .map(|(name, _)| [&name[..], &[path[path.len() - 1].to_owned()]].concat().join("::"))
    }

    /// How programs write the function: through the module that lets it out.
    fn shown(&self, i: usize) -> String {
        let function = &self.source.functions[i];
        if let Some(owner) = &function.owner {
            return format!("{owner}::{}", function.name);
        }
        let mut module = function.module.clone();
        while !module.is_empty() && !self.source.modules.get(&module).is_some_and(|m| m.public) {
            module.pop();
        }
        module.push(function.name.clone());
        module.join("::")
    }
}

/// The crate's functions that a resolved path may mean: those of the name below its module, since modules pass on what others hold.
fn by_path(source: &Crate, by_name: &BTreeMap<&str, Vec<usize>>, path: &[String]) -> Vec<usize> {
    let (Some(name), Some(first)) = (path.last(), path.first()) else { return Vec::new() };
    let candidates = by_name.get(name.as_str()).cloned().unwrap_or_default();
    if first != "crate" {
        // `Type::method` of a type that no `use` brought, such as `Self`; `module::function` of a module below.
        let place = &path[..path.len() - 1];
        let fits = |i: &usize| {
            let function = &source.functions[*i];
            match &function.owner {
                Some(owner) => place.last().is_some_and(|last| last == "Self" || last == owner),
                None => !place.is_empty() && function.module.ends_with(place),
            }
        };
        return candidates.into_iter().filter(fits).collect();
    }
    let place = &path[1..path.len() - 1];
    let fits = |i: &usize| {
        let function = &source.functions[*i];
        match &function.owner {
            Some(owner) => place.last() == Some(owner),
            None => function.module.starts_with(place) || place.starts_with(&function.module),
        }
    };
    candidates.into_iter().filter(fits).collect()
}

fn is_public(source: &Crate, function: &Function) -> bool {
    function.public
        && match &function.owner {
            Some(owner) => {
                let home = source.modules.iter().find(|(_, module)| module.types.contains(owner));
                // A type of another crate that a trait is implemented for.
                home.is_none_or(|(module, _)| lets_out(source, module, owner))
            }
            None => lets_out(source, &function.module, &function.name),
        }
}

/// Whether programs can name an item of a module: through it, or through one above that passes it on.
fn lets_out(source: &Crate, module: &[String], name: &str) -> bool {
    if module_is_public(source, module) {
        return true;
    }
    source.modules.iter().any(|(above, m)| {
        let passes = |export: &Vec<String>| {
            let Some((last, path)) = export.split_last() else { return false };
            let path = path.strip_prefix(&["crate".to_owned()]).unwrap_or(path);
            // `pub use arithmetic::*` names the module from where it stands.
            let below = path == module || [&above[..], path].concat() == module;
            below && (last == name || last == "*")
        };
        m.exports.iter().any(passes) && (above.len() < module.len()) && lets_out(source, above, name)
    })
}

fn module_is_public(source: &Crate, module: &[String]) -> bool {
    (0..=module.len()).all(|n| source.modules.get(&module[..n]).is_some_and(|m| m.public))
}
