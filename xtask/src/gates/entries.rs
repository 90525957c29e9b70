//! No entry into MLX without the lock, as far as Rust can be read: every call of a bridge function stands inside `call(..)` or after a
//! guard of `lock::enter()`, or is on the list of those that need none, with the reason.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{
    Expr, ExprCall, ExprMatch, ExprMethodCall, ExprPath, File, ImplItemFn, Item, ItemFn, Local, Pat, Stmt, UseTree,
};

use super::allowed::Allowed;
use super::evaluators::Table;
use super::rust::{Bridge, callee, ends, for_tests, foreign_type};
use super::verdict::Violation;

/// Functions that take the lock and run what they are given under it.
const LOCKING: [&str; 2] = ["call", "ask"];

/// Types that own an object of C++ and are not freed by a `Drop` of their own.
const FREED_ELSEWHERE: [&str; 1] = ["Waiter"];

/// One file of `oxmlx-sys`, by its module's name.
pub(super) struct Source {
    pub(super) name: String,
    pub(super) file: File,
}

/// What was seen in the sources.
pub(super) struct Report {
    pub(super) violations: Vec<Violation>,
    /// How many calls of bridge functions there are.
    pub(super) calls: usize,
}

/// Looks at all sources of `oxmlx-sys`.
pub(super) fn check(sources: &[Source], allowed: &[Allowed], table: &Table) -> Report {
    let bridges: BTreeMap<&str, Bridge> = sources
        .iter()
        .filter_map(|source| Some((source.name.as_str(), source.file.items.iter().find_map(Bridge::of)?)))
        .collect();
    let mut report = Report { violations: Vec::new(), calls: 0 };
    let mut used = BTreeSet::new();
    for source in sources {
        let mut walk = Walk::new(source, &bridges);
        walk.visit_file(&source.file);
        report.calls += walk.calls;
        report.violations.append(&mut walk.violations);
        for open in walk.open {
            let reason = allowed.iter().position(|a| a.function == open.function && a.within == open.within);
            match reason {
                Some(i) => {
                    used.insert(i);
                }
                None => report.violations.push(open.violation(&source.name)),
            }
        }
        owners(source, &mut report.violations);
    }
    for (i, entry) in allowed.iter().enumerate() {
        let place = format!("{} in {}", entry.function, entry.within);
        let mut note = |rule, what| report.violations.push(Violation { rule, place: place.clone(), what });
        if !used.contains(&i) {
            note("stale-exception", "is on the list of entries without the lock and is no such entry".to_owned());
        }
        let does = table.bridge.get(entry.function).into_iter().flatten();
        for class in does.filter(|class| !entry.does.contains(class)) {
            note(
                "evaluator-without-lock",
                format!("needs no lock by the list, but {class:?} by the table of evaluators").to_lowercase(),
            );
        }
    }
    report
}

/// A call without the lock.
struct Open {
    function: String,
    within: String,
    /// Inside a closure that is kept or given to a thread, though a guard was there where it was made.
    kept: bool,
}

impl Open {
    fn violation(self, module: &str) -> Violation {
        let (rule, what) = match self.kept {
            false => ("entry-without-lock", "is called neither inside `call` nor under a guard of `lock::enter`"),
            true => (
                "entry-in-kept-closure",
                "is called in a closure that runs later or on another thread, without a guard of its own",
            ),
        };
        Violation { rule, place: format!("{module}.rs, {}", self.within), what: format!("{} {what}", self.function) }
    }
}

struct Walk<'a> {
    /// The bridge that `ffi` means here.
    own: Option<&'a Bridge>,
    bridges: &'a BTreeMap<&'a str, Bridge>,
    module: &'a str,
    /// Types of bridges by the field that has them.
    fields: BTreeMap<String, String>,
    /// The same for the parameters of the function.
    typed: BTreeMap<String, String>,
    function: String,
    locked: bool,
    kept: bool,
    calls: usize,
    open: Vec<Open>,
    violations: Vec<Violation>,
}

impl<'a> Walk<'a> {
    fn new(source: &'a Source, bridges: &'a BTreeMap<&'a str, Bridge>) -> Self {
        let own = bridges.get(source.name.as_str()).or_else(|| bridges.get(imported(&source.file)?.as_str()));
        let mut fields = BTreeMap::new();
        for item in &source.file.items {
            let Item::Struct(item) = item else { continue };
            for (i, field) in item.fields.iter().enumerate() {
                if let Some(foreign) = foreign_type(&field.ty) {
                    fields.insert(field.ident.as_ref().map_or_else(|| i.to_string(), ToString::to_string), foreign);
                }
            }
        }
        Self {
            own,
            bridges,
            module: &source.name,
            fields,
            typed: BTreeMap::new(),
            function: String::new(),
            locked: false,
            kept: false,
            calls: 0,
            open: Vec::new(),
            violations: Vec::new(),
        }
    }

    fn entered(&mut self, function: String) {
        self.calls += 1;
        if !self.locked {
            self.open.push(Open { function, within: self.function.clone(), kept: self.kept });
        }
    }

    fn inside(&mut self, name: String, signature: &syn::Signature, visit: impl FnOnce(&mut Self)) {
        let typed = self.typed.clone();
        for argument in &signature.inputs {
            if let syn::FnArg::Typed(argument) = argument
                && let (Pat::Ident(name), Some(foreign)) = (&*argument.pat, foreign_type(&argument.ty))
            {
                self.typed.insert(name.ident.to_string(), foreign);
            }
        }
        let outer = std::mem::replace(&mut self.function, name);
        visit(self);
        self.function = outer;
        self.typed = typed;
    }

    fn with(&mut self, locked: bool, kept: bool, visit: impl FnOnce(&mut Self)) {
        let (was, was_kept) = (self.locked, self.kept);
        (self.locked, self.kept) = (locked, kept);
        visit(self);
        (self.locked, self.kept) = (was, was_kept);
    }

    /// A closure that outlives this place, and all else as it stands.
    fn keeping(&mut self, expression: &Expr) {
        if matches!(expression, Expr::Closure(_)) {
            self.with(false, true, |walk| walk.visit_expr(expression));
        } else {
            self.visit_expr(expression);
        }
    }

    /// The method of a bridge that this is.
    fn method(&self, call: &ExprMethodCall) -> Option<String> {
        let name = call.method.to_string();
        let mut receiver = &*call.receiver;
        let mut pinned = false;
        while let Expr::MethodCall(inner) = receiver
            && ["pin_mut", "as_ref", "as_mut"].contains(&inner.method.to_string().as_str())
        {
            pinned |= inner.method == "pin_mut";
            receiver = &inner.receiver;
        }
        let foreign = match receiver {
            Expr::Field(field) => self.fields.get(&field.member.to_token_stream().to_string()),
            Expr::Path(path) => self.typed.get(&path.path.get_ident()?.to_string()),
            _ => None,
        };
        let of = |bridge: &Bridge| {
            let (owner, _) = bridge
                .methods
                .iter()
                .find(|(owner, methods)| methods.contains(&name) && (pinned || foreign == Some(*owner)))?;
            Some(bridge.full(&format!("{owner}::{name}")))
        };
        self.own.and_then(of).or_else(|| self.bridges.values().find_map(of))
    }
}

/// The module whose `ffi` this file uses as its own.
fn imported(file: &File) -> Option<String> {
    fn find(tree: &UseTree, above: &str) -> Option<String> {
        match tree {
            UseTree::Path(path) => find(&path.tree, &path.ident.to_string()),
            UseTree::Name(name) => (name.ident == "ffi").then(|| above.to_owned()),
            UseTree::Group(group) => group.items.iter().find_map(|tree| find(tree, above)),
            UseTree::Rename(_) | UseTree::Glob(_) => None,
        }
    }
    file.items.iter().find_map(|item| if let Item::Use(item) = item { find(&item.tree, "") } else { None })
}

/// Whether this asks for the lock: `lock::enter()` or, to free something, `lock::enter_to_free()`, with what is made of its result.
fn takes_the_lock(expression: &Expr) -> bool {
    match expression {
        Expr::Call(call) => callee(&call.func).map(ends).is_some_and(|(module, name)| {
            module.as_deref() == Some("lock") && matches!(name.as_str(), "enter" | "enter_to_free")
        }),
        Expr::Try(inner) => takes_the_lock(&inner.expr),
        Expr::MethodCall(call) => takes_the_lock(&call.receiver),
        _ => false,
    }
}

/// The name that holds a guard in this pattern: not `_`, which lets go of it at once.
fn held(pattern: &Pat) -> Option<String> {
    match pattern {
        Pat::Ident(name) => Some(name.ident.to_string()),
        Pat::TupleStruct(tuple) if ends(&tuple.path).1 == "Ok" => tuple.elems.first().and_then(held),
        Pat::Type(typed) => held(&typed.pat),
        _ => None,
    }
}

/// `drop(guard)`.
fn lets_go(statement: &Stmt, guard: &str) -> bool {
    let Stmt::Expr(Expr::Call(call), _) = statement else { return false };
    callee(&call.func).is_some_and(|path| path.is_ident("drop"))
        && call.args.first().is_some_and(|argument| callee(argument).is_some_and(|path| path.is_ident(guard)))
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(module) => &module.attrs,
            Item::Fn(function) => &function.attrs,
            Item::Impl(block) => &block.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !for_tests(attributes) && Bridge::of(item).is_none() {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if LOCKING.contains(&function.sig.ident.to_string().as_str()) {
            let first = function.block.stmts.first();
            let guarded = matches!(first, Some(Stmt::Local(Local { pat, init: Some(init), .. }))
                if held(pat).is_some() && takes_the_lock(&init.expr));
            if !guarded {
                let (place, what) = (
                    format!("{}.rs, {}", self.module, function.sig.ident),
                    "does not begin with `let _guard = lock::enter()?`",
                );
                self.violations.push(Violation { rule: "call-without-lock", place, what: what.to_owned() });
            }
        }
        self.inside(function.sig.ident.to_string(), &function.sig, |walk| visit::visit_item_fn(walk, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.inside(function.sig.ident.to_string(), &function.sig, |walk| visit::visit_impl_item_fn(walk, function));
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let before = self.locked;
        let mut guard: Option<String> = None;
        for statement in &block.stmts {
            if guard.as_ref().is_some_and(|guard| lets_go(statement, guard)) {
                guard = None;
                self.locked = before;
                continue;
            }
            self.visit_stmt(statement);
            if let Stmt::Local(Local { pat, init: Some(init), .. }) = statement
                && takes_the_lock(&init.expr)
            {
                match held(pat) {
                    Some(name) => {
                        guard = Some(name);
                        self.locked = true;
                    }
                    None => self.violations.push(Violation {
                        rule: "guard-let-go",
                        place: format!("{}.rs, {}", self.module, self.function),
                        what: "`_` lets go of the guard at once: give it a name".to_owned(),
                    }),
                }
            }
        }
        self.locked = before;
    }

    fn visit_local(&mut self, local: &'ast Local) {
        match &local.init {
            Some(init) => {
                self.keeping(&init.expr);
                if let Some((_, diverge)) = &init.diverge {
                    self.visit_expr(diverge);
                }
            }
            None => visit::visit_local(self, local),
        }
    }

    fn visit_expr_match(&mut self, expression: &'ast ExprMatch) {
        if !takes_the_lock(&expression.expr) {
            return visit::visit_expr_match(self, expression);
        }
        for arm in &expression.arms {
            let locked =
                self.locked || held(&arm.pat).is_some() && arm.pat.to_token_stream().to_string().starts_with("Ok");
            self.with(locked, self.kept, |walk| visit::visit_arm(walk, arm));
        }
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let named = callee(&call.func).map(ends);
        let (within, name) = named.unwrap_or_default();
        if within.as_deref().is_none_or(|m| m == "call") && LOCKING.contains(&name.as_str()) {
            return self.with(true, self.kept, |walk| call.args.iter().for_each(|argument| walk.visit_expr(argument)));
        }
        let keeps = match within.as_deref() {
            Some("Box" | "Arc" | "Rc") => name == "new",
            _ => name == "spawn",
        };
        self.visit_expr(&call.func);
        for argument in &call.args {
            if keeps { self.keeping(argument) } else { self.visit_expr(argument) }
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if let Some(function) = self.method(call) {
            self.entered(function);
        }
        self.visit_expr(&call.receiver);
        for argument in &call.args {
            if call.method == "spawn" { self.keeping(argument) } else { self.visit_expr(argument) }
        }
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        let segments: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let Some(at) = segments.iter().position(|segment| segment == "ffi") else { return };
        let bridge = match at.checked_sub(1).map(|i| segments[i].as_str()) {
            None | Some("self") => self.own,
            Some(module) => self.bridges.get(module),
        };
        if let (Some(bridge), Some(name)) = (bridge, segments.get(at + 1))
            && bridge.functions.contains(name)
        {
            self.entered(bridge.full(name));
        }
    }
}

/// Types that own an object of C++ free it under the lock.
fn owners(source: &Source, violations: &mut Vec<Violation>) {
    let takes = |text: &str| text.contains("lock :: enter") || text.contains("free (");
    for item in &source.file.items {
        let Item::Struct(owner) = item else { continue };
        let owns = owner.fields.iter().any(|field| field.ty.to_token_stream().to_string().contains("UniquePtr < ffi"));
        let frees = source.file.items.iter().any(|item| match item {
            Item::Impl(block) => {
                let of_drop = block.trait_.as_ref().is_some_and(|(path, _)| path.is_ident("Drop"));
                of_drop
                    && owner.ident == block.self_ty.to_token_stream().to_string()
                    && takes(&block.to_token_stream().to_string())
            }
            _ => false,
        });
        if owns && !frees && !FREED_ELSEWHERE.contains(&owner.ident.to_string().as_str()) {
            violations.push(Violation {
                rule: "freed-without-lock",
                place: format!("{}.rs, {}", source.name, owner.ident),
                what: "owns an object of C++ and has no `Drop` that takes the lock".to_owned(),
            });
        }
    }
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
