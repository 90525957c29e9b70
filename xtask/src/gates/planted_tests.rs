//! Violations planted in the real sources, one in every function that a rule is about: each must be found.

use std::collections::BTreeSet;

use syn::visit_mut::{self, VisitMut};

use super::allowed::ALLOWED;
use super::command::{cpp_sources, laziness_places, rust_sources};
use super::evaluators::Table;
use super::{cpp, entries, files, laziness, tasks};
use crate::codegen::lexer;

/// Renames what takes the lock: `call(..)` is then a function like any other.
struct Unlock;

impl VisitMut for Unlock {
    fn visit_ident_mut(&mut self, ident: &mut syn::Ident) {
        if ["call", "ask", "enter", "enter_to_free"].iter().any(|name| ident == name) {
            *ident = syn::Ident::new("other", ident.span());
        }
    }
}

#[test]
fn without_what_takes_the_lock_every_call_of_a_bridge_function_is_found() {
    let table = Table::read().unwrap();
    let mut sources = rust_sources().unwrap();
    let before = entries::check(&sources, ALLOWED, &table);
    assert!(before.violations.is_empty(), "{:?}", before.violations);
    for source in &mut sources {
        Unlock.visit_file_mut(&mut source.file);
    }
    let after = entries::check(&sources, &[], &table);
    // Methods of bridges that are called `call` are not any more.
    let renamed = after.calls + 8 >= before.calls;
    assert!(renamed && after.calls > 400, "{} of {}", after.calls, before.calls);
    let found = after.violations.iter().filter(|v| ["entry-without-lock", "entry-in-kept-closure"].contains(&v.rule));
    assert_eq!(found.count(), after.calls);
}

/// Puts a look at values into every function.
#[derive(Default)]
struct Look {
    functions: usize,
}

impl VisitMut for Look {
    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if !super::rust::for_tests(&module.attrs) {
            visit_mut::visit_item_mod_mut(self, module);
        }
    }

    fn visit_block_mut(&mut self, _: &mut syn::Block) {}

    fn visit_item_fn_mut(&mut self, function: &mut syn::ItemFn) {
        self.functions += 1;
        function.block.stmts.insert(0, syn::parse_quote!(x.eval()?;));
    }

    fn visit_impl_item_fn_mut(&mut self, function: &mut syn::ImplItemFn) {
        self.functions += 1;
        function.block.stmts.insert(0, syn::parse_quote!(x.eval()?;));
    }
}

#[test]
fn a_look_at_values_in_any_function_that_builds_nodes_is_found() {
    let mut looked_at = 0;
    for (place, mut file) in laziness_places().unwrap() {
        let count = |file: &syn::File| laziness::check(&place, file, &[], &mut BTreeSet::new()).len();
        let before = count(&file);
        let mut look = Look::default();
        look.visit_file_mut(&mut file);
        assert_eq!(count(&file), before + look.functions, "{place}");
        looked_at += look.functions;
    }
    assert!(looked_at > 100, "{looked_at}");
}

#[test]
fn an_evaluation_in_any_task_and_in_any_node_of_the_shim_is_found() {
    let table = Table::read().unwrap();
    let sources = cpp_sources().unwrap();
    assert_eq!(tasks::check(&sources, tasks::BUILDERS, &table), []);
    let planted = lexer::tokens("x.eval();").unwrap();
    let is_node = |source: &cpp::Source, function: &cpp::Function| {
        function.name == "eval_cpu" || tasks::BUILDERS.contains(&(source.name.as_str(), function.name.as_str()))
    };
    let mut changed = sources.clone();
    for (source, changed) in sources.iter().zip(&mut changed) {
        for (function, changed) in source.functions.iter().zip(&mut changed.functions) {
            if function.is_noexcept || is_node(source, function) {
                changed.body.extend(planted.clone());
            }
        }
    }
    let found = tasks::check(&changed, tasks::BUILDERS, &table);
    let (mut nodes, mut lock_free) = (0, 0);
    for source in &sources {
        for function in &source.functions {
            let place = format!("{}, {}", source.name, function.name);
            let has = |rule| found.iter().any(|v| v.rule == rule && v.place == place && v.what.starts_with("eval "));
            assert!(!is_node(source, function) || has("node-evaluates"), "{place}");
            assert!(!function.is_noexcept || has("lock-free-evaluates"), "{place}");
            nodes += usize::from(is_node(source, function));
            lock_free += usize::from(function.is_noexcept);
        }
    }
    assert!(nodes >= 5 && lock_free >= 10, "{nodes} {lock_free}");
    // In the closures that become tasks: after the brace that opens each.
    let folder = crate::tree::root().join("crates/oxmlx-sys/cpp");
    let text = files::read(&folder.join("kernel.cpp")).unwrap();
    let at = text.find("encoder.dispatch(").unwrap();
    let brace = at + text[at..].find('{').unwrap() + 1;
    let planted = format!("{} x.item<int>(); {}", &text[..brace], &text[brace..]);
    let source = cpp::Source::parse("kernel.cpp", &planted).unwrap();
    assert!(tasks::check(&[source], &[], &table).iter().any(|v| v.rule == "task-evaluates"));
}
