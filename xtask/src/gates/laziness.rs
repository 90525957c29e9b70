//! Building a node evaluates nothing: what puts kernels into the graph, in the safe crate and in `oxmlx-sys`, never asks for the values of
//! an input.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprMethodCall, ExprPath, ImplItemFn, Item, ItemFn, Member};

use super::rust::{ends, for_tests};
use super::verdict::Violation;

/// Where nodes are built, below `crates/`. A name that ends in `/` is a folder.
pub(super) const PLACES: &[&str] = &[
    "oxmlx/src/cpu.rs",
    "oxmlx/src/cpu/",
    "oxmlx/src/fused.rs",
    "oxmlx/src/fused/",
    "oxmlx/src/fast.rs",
    "oxmlx/src/fast/",
    "oxmlx/src/kernel.rs",
    "oxmlx/src/kernel/",
    "oxmlx-sys/src/kernel.rs",
    "oxmlx-sys/src/gpu_kernel.rs",
];

/// What a body is given, not what builds its node.
pub(super) const BODIES: [&str; 1] = ["oxmlx/src/kernel/memory.rs"];

/// What evaluates, waits, or reads values, by its name.
const READS: [&str; 11] = [
    "eval",
    "async_eval",
    "item",
    "try_as_slice",
    "to_text",
    "synchronize",
    "synchronize_current",
    "is_available",
    "wait",
    "host_copy",
    "progress",
];

/// The same names where they mean something else, and functions that evaluate by contract and build no node.
pub(super) const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("oxmlx/src/kernel/constant.rs", "new", "`Constant::new` evaluates what is no input: its documentation says so"),
    ("oxmlx/src/kernel/apply.rs", "warm_up", "`Kernel::warm_up` compiles by evaluating: its documentation says so"),
    ("oxmlx-sys/src/kernel.rs", "new", "`Constant::new` asks whether its array was evaluated"),
    ("oxmlx/src/cpu/fused/decoder.rs", "new", "a decoder layer is made once, of weights that it holds as constants"),
];

/// Looks at one file; `used` gets the exceptions that it needs.
pub(super) fn check(
    place: &str,
    file: &syn::File,
    exceptions: &[(&str, &str, &str)],
    used: &mut BTreeSet<usize>,
) -> Vec<Violation> {
    let in_sys = place.starts_with("oxmlx-sys/");
    let mut walk = Walk { in_sys, function: String::new(), found: Vec::new() };
    walk.visit_file(file);
    let mut out = Vec::new();
    for (function, what) in walk.found {
        match exceptions.iter().position(|(file, within, _)| *file == place && *within == function) {
            Some(i) => {
                used.insert(i);
            }
            None => {
                let what = format!("{what} asks for values where a node is built");
                out.push(Violation { rule: "input-evaluated", place: format!("{place}, {function}"), what });
            }
        }
    }
    out
}

/// Exceptions that nothing needs any more.
pub(super) fn stale(exceptions: &[(&str, &str, &str)], used: &BTreeSet<usize>) -> Vec<Violation> {
    let unused = exceptions.iter().enumerate().filter(|(i, _)| !used.contains(i));
    let told = |(file, function, _): &(&str, &str, &str)| Violation {
        rule: "stale-exception",
        place: format!("{file}, {function}"),
        what: "may ask for values by the list, and does not".to_owned(),
    };
    unused.map(|(_, exception)| told(exception)).collect()
}

struct Walk {
    /// Arrays are those of `oxmlx-sys` itself.
    in_sys: bool,
    function: String,
    /// The function and what it calls.
    found: Vec<(String, String)>,
}

impl Walk {
    fn inside(&mut self, name: String, attributes: &[Attribute], visit: impl FnOnce(&mut Self)) {
        if for_tests(attributes) {
            return;
        }
        let outer = std::mem::replace(&mut self.function, name);
        visit(self);
        self.function = outer;
    }

    fn note(&mut self, what: impl Into<String>) {
        self.found.push((self.function.clone(), what.into()));
    }
}

/// `x.0`: the array of `oxmlx-sys` in one of `oxmlx`.
fn is_raw(expression: &Expr) -> bool {
    matches!(expression, Expr::Field(field) if matches!(&field.member, Member::Unnamed(index) if index.index == 0))
}

impl<'ast> Visit<'ast> for Walk {
    fn visit_item(&mut self, item: &'ast Item) {
        let tests = match item {
            Item::Mod(module) => for_tests(&module.attrs),
            Item::Impl(block) => for_tests(&block.attrs),
            _ => false,
        };
        if !tests {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.inside(function.sig.ident.to_string(), &function.attrs, |walk| visit::visit_item_fn(walk, function));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.inside(function.sig.ident.to_string(), &function.attrs, |walk| visit::visit_impl_item_fn(walk, function));
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let name = call.method.to_string();
        // `to_vec` of a slice is no look at an array; that of an array has its elements' type.
        let of_array = name == "to_vec" && call.turbofish.is_some();
        let raw =
            ["bytes", "data", "status", "row_contiguous", "strides"].contains(&name.as_str()) && is_raw(&call.receiver);
        let raw = raw || self.in_sys && ["status", "data"].contains(&name.as_str());
        if of_array || raw || READS.contains(&name.as_str()) {
            self.note(format!("`.{name}()`"));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_try(&mut self, expression: &'ast syn::ExprTry) {
        if let Expr::MethodCall(call) = &*expression.expr
            && call.method == "to_vec"
            && call.turbofish.is_none()
        {
            self.note("`.to_vec()?`");
        }
        visit::visit_expr_try(self, expression);
    }

    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        let (before, name) = ends(&path.path);
        let constant = before.as_deref() == Some("Constant") && name == "new";
        let of_evaluation = before.as_deref() == Some("evaluation");
        if constant || of_evaluation || before.is_some() && READS.contains(&name.as_str()) {
            self.note(format!("`{}::{name}`", before.unwrap_or_default()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{check, stale};

    fn found(code: &str) -> Vec<&'static str> {
        let file = syn::parse_file(code).unwrap();
        check("x.rs", &file, &[], &mut BTreeSet::new()).into_iter().map(|v| v.rule).collect()
    }

    #[test]
    fn a_look_at_an_inputs_values_is_found() {
        for planted in [
            "fn apply(x: &Array) -> R { x.eval()?; node(x) }",
            "fn apply(x: &Array) -> R { if x.item::<f32>()? > 0.0 { a() } }",
            "fn apply(x: &Array) -> R { let v = x.to_vec::<f32>()?; node(v) }",
            "fn apply(x: &Array) -> R { let v: Vec<f32> = x.to_vec()?; node(v) }",
            "fn apply(x: &Array) -> R { node(x.try_as_slice::<u8>()?) }",
            "fn apply(x: &[Array]) -> R { crate::transforms::eval(x)?; node(x) }",
            "fn apply(x: &Array) -> R { runtime::eval(&[x.0.clone()])?; node(x) }",
            "fn apply(x: &Array) -> R { if x.0.status()? == Status::Available { a() } }",
            "fn apply(x: &Array) -> R { let c = Constant::new(x)?; node(c) }",
            "fn apply(x: &Array) -> R { evaluation::check(\"k\", x)?; node(x) }",
            "fn apply(x: &[Array]) -> R { x.iter().map(Constant::new).collect() }",
            "impl K { fn apply(&self, x: &Array) -> R { self.run(|| x.0.bytes()) } }",
        ] {
            assert_eq!(found(planted), ["input-evaluated"], "{planted}");
        }
    }

    #[test]
    fn what_is_known_without_values_and_what_a_body_sees_is_not_found() {
        for right in [
            "fn apply(x: &Array) -> R { node(x.shape().to_vec(), x.dtype()) }",
            "fn body(inputs: &[Input]) -> R { inputs[0].as_slice::<f32>()?; inputs[1].bytes(); Ok(()) }",
            "#[cfg(test)] mod tests { fn f(x: &Array) { x.eval().unwrap(); } }",
            "#[test] fn f() { x.eval().unwrap(); }",
        ] {
            assert_eq!(found(right), Vec::<&str>::new(), "{right}");
        }
    }

    #[test]
    fn an_exception_covers_its_function_only_and_must_be_needed() {
        let exceptions = [("x.rs", "new", "it says so")];
        let mut used = BTreeSet::new();
        let file =
            syn::parse_file("impl C { fn new(x: &Array) { x.eval(); } fn apply(x: &Array) { x.eval(); } }").unwrap();
        let places: Vec<_> = check("x.rs", &file, &exceptions, &mut used).into_iter().map(|v| v.place).collect();
        assert_eq!(places, ["x.rs, apply"]);
        assert!(stale(&exceptions, &used).is_empty());
        assert_eq!(stale(&exceptions, &BTreeSet::new())[0].rule, "stale-exception");
    }
}
