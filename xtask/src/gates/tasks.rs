//! What the shim does where no lock is held, and while it builds a node: nothing there may come to evaluate.
//!
//! Functions are known by name: a call of `x` leads to every function of the shim that is called so. That finds too much rather than too
//! little.

use std::collections::BTreeSet;

use super::cpp::{self, Source};
use super::evaluators::Table;
use super::verdict::Violation;
use crate::codegen::lexer::Token;

/// What runs its argument later, on a thread of MLX's or at the end of the process.
const LATER: [&str; 5] = ["dispatch", "enqueue", "atexit", "scalar_over", "Data"];

/// The functions of the shim that build a node, by their file. The methods of primitives are looked at besides.
pub(super) const BUILDERS: &[(&str, &str)] = &[
    ("kernel.cpp", "apply"),
    ("gpu_kernel.cpp", "primitive"),
    ("gpu_kernel.cpp", "metal_kernel"),
    ("gpu_kernel.cpp", "cuda_kernel"),
    ("gpu_kernel.cpp", "precompiled_cuda_kernel"),
];

/// What only looks at an array's values or at how far it is, beside what evaluates. `data<T>` is an array's, `data` anything's.
const LOOKS: [&str; 4] = ["data<>", "item", "status", "to_text"];

/// Looks at the sources of the shim.
pub(super) fn check(sources: &[Source], builders: &[(&str, &str)], table: &Table) -> Vec<Violation> {
    let evaluating = evaluating(sources, table);
    let mut looking = evaluating.clone();
    looking.extend(LOOKS.map(str::to_owned));
    let mut out = Vec::new();
    let mut note = |rule, source: &Source, function: &str, name: &str, what: &str| {
        let place = format!("{}, {function}", source.name);
        out.push(Violation { rule, place, what: format!("{name} {what}") });
    };
    let called = |tokens: &[Token], names: &BTreeSet<String>| -> Vec<String> {
        cpp::calls(tokens).into_iter().filter(|name| names.contains(name)).collect()
    };
    for source in sources {
        for function in &source.functions {
            let handed = LATER.iter().flat_map(|later| cpp::arguments(&function.body, later));
            for name in handed.flat_map(|tokens| called(tokens, &evaluating)) {
                note(
                    "task-evaluates",
                    source,
                    &function.name,
                    &name,
                    "can evaluate, in what runs later without the lock",
                );
            }
            if function.is_noexcept {
                for name in called(&function.body, &evaluating) {
                    note(
                        "lock-free-evaluates",
                        source,
                        &function.name,
                        &name,
                        "can evaluate, in a function that needs no lock",
                    );
                }
            }
            let of_node = function.class.as_ref().is_some_and(|class| is_primitive(sources, class));
            let builds = builders.iter().any(|(file, name)| source.name.ends_with(file) && function.name == *name);
            if of_node || builds {
                for name in called(&function.body, &looking) {
                    note(
                        "node-evaluates",
                        source,
                        &function.name,
                        &name,
                        "looks at values where a node is built or dispatched",
                    );
                }
            }
        }
    }
    for (file, name) in builders {
        let there = |source: &&Source| source.name.ends_with(file) && source.functions.iter().any(|f| f.name == *name);
        if !sources.iter().any(|source| there(&source)) {
            let what = "is on the list of functions that build a node, and is not there".to_owned();
            out.push(Violation { rule: "stale-exception", place: format!("{file}, {name}"), what });
        }
    }
    out
}

fn is_primitive(sources: &[Source], class: &str) -> bool {
    sources.iter().flat_map(|s| &s.classes).any(|c| c.name == class && c.bases.iter().any(|base| base == "Primitive"))
}

/// The names of functions that come to evaluate or to wait: MLX's, and those of the shim that call one.
fn evaluating(sources: &[Source], table: &Table) -> BTreeSet<String> {
    let mut names = table.mlx.clone();
    loop {
        let before = names.len();
        for function in sources.iter().flat_map(|source| &source.functions) {
            // A primitive's methods are called by MLX, and by a wrapper of the same name; slices and vectors have a `data` too.
            if !function.name.starts_with("eval_")
                && function.name != "data"
                && cpp::calls(&function.body).iter().any(|name| names.contains(name))
            {
                names.insert(function.name.clone());
            }
        }
        if names.len() == before {
            return names;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, Table, check};

    fn found(text: &str) -> Vec<&'static str> {
        let table: Table = toml::from_str("version = '1'\nmlx = ['eval', 'item', 'wait']\n[bridge]\n").unwrap();
        let source = Source::parse("cpp/kernel.cpp", text).unwrap();
        let mut rules: Vec<_> = check(&[source], &[], &table).into_iter().map(|v| v.rule).collect();
        rules.dedup();
        rules
    }

    #[test]
    fn a_task_that_evaluates_is_found_also_through_a_helper() {
        assert_eq!(found("void f() { encoder.dispatch([a]() mutable { a.eval(); }); }"), ["task-evaluates"]);
        assert_eq!(found("void f() { mx::scheduler::enqueue(s, [a] { a.item<float>(); }); }"), ["task-evaluates"]);
        assert_eq!(found("void f() { std::atexit([] { look(); }); } void look() { x.wait(); }"), ["task-evaluates"]);
        assert_eq!(found("A f() { return scalar_over(p, [k](auto) { k->wait(); }, 0); }"), ["task-evaluates"]);
        assert!(found("void f() { encoder.dispatch([n] { n->run(); }); a.eval(); }").is_empty());
    }

    #[test]
    fn a_function_without_the_lock_that_evaluates_is_found() {
        assert_eq!(found("float first(const A& a) noexcept { return a.item<float>(); }"), ["lock-free-evaluates"]);
        assert!(found("float first(const A& a) { return a.item<float>(); }").is_empty());
        assert!(found("int size(const A& a) noexcept { return a.size(); }").is_empty());
    }

    #[test]
    fn a_node_that_looks_at_its_inputs_is_found() {
        let node = |method: &str| format!("class N : public mx::Primitive {{ {method} }};");
        assert_eq!(found(&node("void eval_cpu(V& in) override { in[0].eval(); }")), ["node-evaluates"]);
        assert_eq!(found(&node("V output_shapes(V& in) override { return in[0].item<int>(); }")), ["node-evaluates"]);
        assert_eq!(
            found(&node("void eval_cpu(V& in) override { peek(in); } static void peek(V& in) { in.data<int>(); }")),
            ["node-evaluates"]
        );
        assert!(found(&node("void eval_cpu(V& in) override { inner_->eval_cpu(in); }")).is_empty());
        assert!(found("class N : public Other { void eval_cpu(V& in) { in[0].data<int>(); } };").is_empty());
    }

    #[test]
    fn a_function_that_builds_a_node_and_looks_at_its_inputs_is_found() {
        let table: Table = toml::from_str("version = '1'\nmlx = ['eval']\n[bridge]\n").unwrap();
        let sources =
            [Source::parse("cpp/kernel.cpp", "V apply(V in) { if (in[0].status() == 2) { go(); } }").unwrap()];
        let rules =
            |builders: &[(&str, &str)]| check(&sources, builders, &table).iter().map(|v| v.rule).collect::<Vec<_>>();
        assert_eq!(rules(&[("kernel.cpp", "apply")]), ["node-evaluates"]);
        assert_eq!(rules(&[("kernel.cpp", "gone")]), ["stale-exception"]);
    }
}
