//! The functions of a crate, each with what it calls, from its source files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{ImplItem, Item, UseTree, Visibility};

use super::expand::Macro;

/// A function or method.
#[derive(Debug)]
pub(super) struct Function {
    /// The module it stands in: `ops::index`.
    pub(super) module: Vec<String>,
    /// The type whose method it is.
    pub(super) owner: Option<String>,
    pub(super) name: String,
    /// Said to be `pub`, or a method of a trait.
    pub(super) public: bool,
    pub(super) of_trait: bool,
    pub(super) is_unsafe: bool,
    /// Paths that the body names, resolved through `use`.
    pub(super) paths: Vec<Vec<String>>,
    /// Methods that the body calls.
    pub(super) methods: Vec<String>,
    /// Names and types of the parameters, `self` included, without lifetimes and spaces.
    pub(super) inputs: Vec<(String, String)>,
    /// The bounds of each type parameter.
    pub(super) generics: Vec<String>,
    /// The type returned, in the same way.
    pub(super) output: String,
}

/// A module: what it lets out.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) public: bool,
    /// Names of types that are `pub` in it.
    pub(super) types: Vec<String>,
    /// `pub use`: the full path of each name, `*` last for all of a module.
    pub(super) exports: Vec<Vec<String>>,
}

/// What a crate's sources say.
#[derive(Default)]
pub(super) struct Crate {
    pub(super) functions: Vec<Function>,
    pub(super) modules: BTreeMap<Vec<String>, Module>,
    /// Macros by module and name.
    macros: BTreeMap<Vec<String>, Rc<Macro>>,
    /// Parsed files that wait for the macros of all.
    files: Vec<(Vec<String>, Vec<Item>)>,
}

impl Crate {
    /// Reads the crate whose root file this is.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut out = Self::default();
        let folder = root.parent().unwrap_or(root).to_path_buf();
        out.file(root, &folder, Vec::new())?;
        out.finish()
    }

    /// Runs macros and notes functions, once all files are parsed.
    pub(super) fn finish(mut self) -> Result<Self, String> {
        self.modules.entry(Vec::new()).or_default().public = true;
        for (module, items) in std::mem::take(&mut self.files) {
            let place = module.join("::");
            let mut scope = Scope { module, uses: BTreeMap::new() };
            let imports = |scope: &mut Scope, items: &[Item]| items.iter().for_each(|item| scope.import(item));
            imports(&mut scope, &items);
            let items = scope.expanded(items, &self.macros).map_err(|e| format!("{place}: {e}"))?;
            imports(&mut scope, &items);
            for item in items {
                self.item(item, &scope);
            }
        }
        Ok(self)
    }

    fn file(&mut self, path: &Path, folder: &Path, module: Vec<String>) -> Result<(), String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        self.text(&text, folder, module).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Reads a module's text; the files of its modules lie in `folder`.
    pub(super) fn text(&mut self, text: &str, folder: &Path, module: Vec<String>) -> Result<(), String> {
        let file = syn::parse_file(text).map_err(|e| format!("{}: {e}", e.span().start().line))?;
        self.items(file.items, folder, module)
    }

    fn items(&mut self, items: Vec<Item>, folder: &Path, module: Vec<String>) -> Result<(), String> {
        let mut kept = Vec::new();
        for item in items {
            match item {
                Item::Macro(rules) if rules.ident.is_some() => {
                    let name = rules.ident.map(|name| name.to_string()).unwrap_or_default();
                    let parsed =
                        Macro::parse(rules.mac.tokens).ok_or_else(|| format!("the macro {name} can't be read"))?;
                    self.macros.insert([&module[..], &[name]].concat(), Rc::new(parsed));
                }
                Item::Mod(m) if !tests(&m.attrs) => {
                    let name = m.ident.to_string();
                    let inner = [&module[..], std::slice::from_ref(&name)].concat();
                    let inside = folder.join(&name);
                    self.modules.entry(inner.clone()).or_default().public = public(&m.vis);
                    match m.content {
                        Some((_, items)) => self.items(items, &inside, inner)?,
                        None => {
                            let file: PathBuf = [folder.join(format!("{name}.rs")), inside.join("mod.rs")]
                                .into_iter()
                                .find(|file| file.is_file())
                                .ok_or_else(|| format!("no file for the module {name}"))?;
                            self.file(&file, &inside, inner)?;
                        }
                    }
                }
                Item::Mod(_) => {}
                other => kept.push(other),
            }
        }
        self.files.push((module, kept));
        Ok(())
    }

    fn item(&mut self, item: Item, scope: &Scope) {
        let macros = self.macros.clone();
        let function = |owner, signature: &syn::Signature, public, of_trait, block: &syn::Block| {
            let (mut paths, mut methods) = (Vec::new(), Vec::new());
            scope.calls(block.to_token_stream(), &macros, &mut paths, &mut methods);
            let (module, name) = (scope.module.clone(), signature.ident.to_string());
            Function {
                module,
                owner,
                name,
                public,
                of_trait,
                is_unsafe: matches!(signature.safety, syn::Safety::Unsafe(_)),
                paths,
                methods,
                inputs: signature.inputs.iter().map(input).collect(),
                generics: signature.generics.type_params().map(|given| written(&given.bounds)).collect(),
                output: match &signature.output {
                    syn::ReturnType::Default => "()".to_owned(),
                    syn::ReturnType::Type(_, ty) => written(ty),
                },
            }
        };
        match item {
            Item::Fn(f) if !tests(&f.attrs) => {
                self.functions.push(function(None, &f.sig, public(&f.vis), false, &f.block));
            }
            Item::Impl(block) if !tests(&block.attrs) => {
                let Some(owner) = owner(&block.self_ty) else { return };
                let of_trait = block.trait_.is_some();
                for item in block.items {
                    if let ImplItem::Fn(f) = item {
                        let public = of_trait || public(&f.vis);
                        self.functions.push(function(Some(owner.clone()), &f.sig, public, of_trait, &f.block));
                    }
                }
            }
            Item::Struct(s) if public(&s.vis) => self.here(scope).types.push(s.ident.to_string()),
            Item::Enum(e) if public(&e.vis) => self.here(scope).types.push(e.ident.to_string()),
            Item::Trait(t) if public(&t.vis) => self.here(scope).types.push(t.ident.to_string()),
            Item::Use(u) if public(&u.vis) => {
                let mut found = Vec::new();
                leaves(&u.tree, Vec::new(), &mut found);
                let exports = found.into_iter().map(|(_, path)| scope.absolute(path));
                self.here(scope).exports.extend(exports);
            }
            _ => {}
        }
    }

    fn here(&mut self, scope: &Scope) -> &mut Module {
        self.modules.entry(scope.module.clone()).or_default()
    }
}

/// What names mean in a file.
struct Scope {
    module: Vec<String>,
    /// A name and the path that `use` gives it.
    uses: BTreeMap<String, Vec<String>>,
}

type Macros = BTreeMap<Vec<String>, Rc<Macro>>;

impl Scope {
    /// The crate's macro of this name, of this module or brought by a `use`.
    fn known<'m>(&self, name: &str, macros: &'m Macros) -> Option<&'m Macro> {
        let brought = self.uses.get(name).and_then(|path| macros.get(path.get(1..)?));
        let own = || {
            (0..=self.module.len()).rev().find_map(|n| macros.get(&[&self.module[..n], &[name.to_owned()]].concat()))
        };
        brought.or_else(own).map(Rc::as_ref)
    }

    /// The items with calls of the crate's own macros run.
    fn expanded(&self, items: Vec<Item>, macros: &Macros) -> Result<Vec<Item>, String> {
        let mut out = Vec::new();
        for item in items {
            let Item::Macro(call) = item else {
                out.push(item);
                continue;
            };
            if let Some(name) = call.mac.path.get_ident().map(ToString::to_string)
                && let Some(known) = self.known(&name, macros)
            {
                let tokens =
                    known.expand(call.mac.tokens).ok_or_else(|| format!("no arm of {name}! takes a call of it"))?;
                let inner = syn::parse2::<syn::File>(tokens).map_err(|e| format!("what {name}! becomes: {e}"))?;
                out.extend(self.expanded(inner.items, macros)?);
            }
        }
        Ok(out)
    }

    fn import(&mut self, item: &Item) {
        if let Item::Use(u) = item {
            let mut found = Vec::new();
            leaves(&u.tree, Vec::new(), &mut found);
            for (name, path) in found {
                let path = self.absolute(path);
                self.uses.insert(name, path);
            }
        }
    }

    /// A path from the crate's root, or from another crate's name.
    fn absolute(&self, path: Vec<String>) -> Vec<String> {
        let mut at = self.module.clone();
        let mut rest = &path[..];
        match path.first().map(String::as_str) {
            Some("crate") => (at, rest) = (Vec::new(), &path[1..]),
            Some("self") => rest = &path[1..],
            Some("super") => {
                while rest.first().is_some_and(|first| first == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            _ => return path,
        }
        [&["crate".to_owned()], &at[..], rest].concat()
    }

    /// The path behind a path's first name.
    fn resolved(&self, path: Vec<String>) -> Vec<String> {
        if let Some(used) = path.first().and_then(|first| self.uses.get(first)) {
            return [&used[..], &path[1..]].concat();
        }
        if path.len() == 1 {
            return [&["crate".to_owned()], &self.module[..], &path[..]].concat();
        }
        self.absolute(path)
    }

    /// Paths and methods that tokens name, inside groups and macro calls too.
    fn calls(&self, tokens: TokenStream, macros: &Macros, paths: &mut Vec<Vec<String>>, methods: &mut Vec<String>) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let punct = |at: usize, c: char| matches!(trees.get(at), Some(TokenTree::Punct(p)) if p.as_char() == c);
        let mut at = 0;
        while at < trees.len() {
            match &trees[at] {
                TokenTree::Group(group) => self.calls(group.stream(), macros, paths, methods),
                TokenTree::Ident(word) => {
                    let mut path = vec![word.to_string()];
                    let method = at > 0 && punct(at - 1, '.');
                    while punct(at + 1, ':') && punct(at + 2, ':') {
                        let Some(TokenTree::Ident(next)) = trees.get(at + 3) else { break };
                        path.push(next.to_string());
                        at += 3;
                    }
                    if method {
                        methods.append(&mut path);
                    } else if let (true, Some(known), Some(TokenTree::Group(call))) =
                        (punct(at + 1, '!'), self.known(&path[0], macros), trees.get(at + 2))
                    {
                        if let Some(inside) = known.expand(call.stream()) {
                            self.calls(inside, macros, paths, methods);
                        }
                    } else {
                        paths.push(self.resolved(path));
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

fn public(vis: &Visibility) -> bool {
    matches!(vis, Visibility::Public(_))
}

fn tests(attrs: &[syn::Attribute]) -> bool {
    let is_test = |attr: &syn::Attribute| {
        attr.path().is_ident("test")
            || attr.path().is_ident("cfg") && attr.meta.to_token_stream().to_string().contains("test")
    };
    attrs.iter().any(is_test)
}

/// A parameter's name and type; the name is `self` for a receiver.
fn input(argument: &syn::FnArg) -> (String, String) {
    match argument {
        syn::FnArg::Receiver(receiver) => ("self".to_owned(), written(receiver)),
        syn::FnArg::Typed(typed) => (written(&typed.pat), written(&typed.ty)),
    }
}

/// Tokens without lifetimes and without spaces but those between two words.
fn written(item: &impl ToTokens) -> String {
    fn write(tokens: TokenStream, out: &mut String) {
        let mut trees = tokens.into_iter().peekable();
        while let Some(tree) = trees.next() {
            match tree {
                // A lifetime is a quote and a word.
                TokenTree::Punct(p) if p.as_char() == '\'' => drop(trees.next()),
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                        proc_macro2::Delimiter::Bracket => ("[", "]"),
                        proc_macro2::Delimiter::Brace => ("{", "}"),
                        proc_macro2::Delimiter::None => ("", ""),
                    };
                    out.push_str(open);
                    write(group.stream(), out);
                    out.push_str(close);
                }
                other => {
                    let text = other.to_string();
                    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                    if word(out.chars().last()) && word(text.chars().next()) {
                        out.push(' ');
                    }
                    out.push_str(&text);
                }
            }
        }
    }
    let mut out = String::new();
    write(item.to_token_stream(), &mut out);
    out.replace("<>", "")
}

/// The name of the type that an `impl` is for.
fn owner(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        syn::Type::Reference(reference) => owner(&reference.elem),
        _ => None,
    }
}

/// Each name that a `use` brings, with its path; a glob's name is `*` and its path's end too.
fn leaves(tree: &UseTree, before: Vec<String>, out: &mut Vec<(String, Vec<String>)>) {
    let with = |name: String| [&before[..], &[name]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, with(path.ident.to_string()), out),
        UseTree::Name(name) if name.ident == "self" => {
            let own = before.last().cloned().unwrap_or_default();
            out.push((own, before));
        }
        UseTree::Name(name) => out.push((name.ident.to_string(), with(name.ident.to_string()))),
        UseTree::Rename(rename) if rename.ident == "self" => out.push((rename.rename.to_string(), before)),
        UseTree::Rename(rename) => out.push((rename.rename.to_string(), with(rename.ident.to_string()))),
        UseTree::Glob(_) => out.push(("*".to_owned(), with("*".to_owned()))),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, before.clone(), out)),
    }
}
