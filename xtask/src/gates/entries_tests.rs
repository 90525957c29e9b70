//! Planted violations: each must be found, by the rule that is for it, and what is right must not be.

use super::super::allowed::{ALLOWED, allowed};
use super::super::evaluators::Class;
use super::*;

const BRIDGE: &str = r#"
    #[cxx::bridge(namespace = "oxmlx::array")]
    mod ffi {
        extern "Rust" { fn told(); }
        unsafe extern "C++" {
            fn size(a: &Array) -> usize;
            fn eval(a: &Array) -> Result<()>;
            type Maker;
            fn make(self: Pin<&mut Maker>) -> Result<()>;
            fn show(self: &Maker) -> Result<()>;
        }
    }
"#;

fn found_with(allowed: &[Allowed], code: &str) -> Vec<(&'static str, String)> {
    let file = syn::parse_file(&format!("{BRIDGE}{code}")).unwrap();
    let other = syn::parse_file("use crate::array::{Outcome, ffi}; fn f(a: &Array) { ffi::size(a); }").unwrap();
    let mut sources = vec![Source { name: "array".into(), file }];
    if code.contains("other") {
        sources.push(Source { name: "other".into(), file: other });
    }
    let table: Table = toml::from_str("version = '1'\nmlx = []\n[bridge]\n'array::eval' = ['evaluates']\n").unwrap();
    let report = check(&sources, allowed, &table);
    report.violations.into_iter().map(|v| (v.rule, v.place)).collect()
}

fn found(code: &str) -> Vec<&'static str> {
    found_with(&[], code).into_iter().map(|(rule, _)| rule).collect()
}

#[test]
fn a_bare_call_is_an_entry_without_the_lock() {
    assert_eq!(found("fn f(a: &Array) { ffi::eval(a).unwrap() }"), ["entry-without-lock"]);
    assert_eq!(found("impl T { fn f(&self) -> usize { ffi::size(self) } }"), ["entry-without-lock"]);
    assert_eq!(found("fn f() { let g = ffi::eval; g(a) }"), ["entry-without-lock"]);
    assert_eq!(found("fn f(a: &Array) { helper(|| ffi::eval(a)) }"), ["entry-without-lock"]);
    assert_eq!(found("fn f(a: &Array) { crate::array::ffi::eval(a); }"), ["entry-without-lock"]);
    assert_eq!(found("mod other {}"), ["entry-without-lock"]);
}

#[test]
fn a_call_of_a_method_is_an_entry_too() {
    assert_eq!(
        found("struct M(Option<UniquePtr<u8>>); fn f(m: &mut M) { m.x.pin_mut().make(); }"),
        ["entry-without-lock"]
    );
    assert_eq!(found("fn f(maker: &ffi::Maker) { maker.show(); }"), ["entry-without-lock"]);
    assert!(found("fn f(other_maker: &Maker) { x.show(); }").iter().all(|rule| *rule == "entry-without-lock"));
    assert!(found("fn f(x: &Shown) { x.show(); }").is_empty());
}

#[test]
fn inside_call_and_under_a_guard_all_is_well() {
    for right in [
        "fn f(a: &Array) { call(\"eval\", || ffi::eval(a)) }",
        "fn f(a: &Array) { crate::call::call(\"eval\", || trace::enter(|| ffi::eval(a))) }",
        "fn f() { call(\"eval\", ffi::eval) }",
        "fn f(a: &Array) -> R { let _guard = lock::enter()?; ffi::eval(a) }",
        "fn f(a: &Array) -> R { let _guard = lock::enter().map_err(Failed::Mlx)?; if x { ffi::eval(a) } }",
        "fn f(a: &Array) { let Ok(_guard) = lock::enter() else { return }; ffi::eval(a); }",
        "fn f(a: &Array) { match lock::enter() { Ok(_guard) => ffi::eval(a), Err(_) => forget(a) } }",
        "#[cfg(test)] mod tests { fn f(a: &Array) { ffi::eval(a) } }",
        "fn told() {} fn f() { told() }",
    ] {
        assert_eq!(found(right), Vec::<&str>::new(), "{right}");
    }
}

#[test]
fn a_guard_that_is_gone_guards_nothing() {
    assert_eq!(
        found("fn f(a: &A) -> R { let guard = lock::enter()?; drop(guard); ffi::eval(a) }"),
        ["entry-without-lock"]
    );
    assert_eq!(found("fn f(a: &A) -> R { { let _guard = lock::enter()?; } ffi::eval(a) }"), ["entry-without-lock"]);
    assert_eq!(
        found("fn f(a: &A) { match lock::enter() { Ok(_g) => (), Err(_) => ffi::eval(a) } }"),
        ["entry-without-lock"]
    );
    assert_eq!(found("fn f(a: &A) { match lock::enter() { Ok(_) => ffi::eval(a), _ => () } }"), ["entry-without-lock"]);
    let rules = found("fn f(a: &A) -> R { let _ = lock::enter()?; ffi::eval(a) }");
    assert_eq!(rules, ["guard-let-go", "entry-without-lock"]);
}

#[test]
fn a_closure_that_is_kept_does_not_inherit_the_lock() {
    for kept in [
        "fn f() -> R { let _guard = lock::enter()?; Box::new(move || ffi::eval(a)) }",
        "fn f() -> R { let _guard = lock::enter()?; let later = || ffi::eval(a); Ok(later) }",
        "fn f() -> R { let _guard = lock::enter()?; std::thread::spawn(move || ffi::eval(a)); }",
        "fn f() -> R { let _guard = lock::enter()?; Builder::new().spawn(move || ffi::eval(a)); }",
    ] {
        assert_eq!(found(kept), ["entry-in-kept-closure"], "{kept}");
    }
}

#[test]
fn what_calls_under_the_lock_must_take_it() {
    assert_eq!(found("pub fn call<T>(f: F) -> T { f() }"), ["call-without-lock"]);
    assert_eq!(found("fn ask<T>(f: F) -> T { let _ = lock::enter()?; f() }"), ["call-without-lock", "guard-let-go"]);
    assert!(found("pub fn call<T>(f: F) -> T { let _guard = lock::enter()?; f() }").is_empty());
}

#[test]
fn an_owner_of_an_object_of_cpp_frees_it_under_the_lock() {
    let owner = "struct Made { maker: UniquePtr<ffi::Maker> }";
    assert_eq!(found(owner), ["freed-without-lock"]);
    assert_eq!(
        found(&format!("{owner} impl Drop for Made {{ fn drop(&mut self) {{ log() }} }}")),
        ["freed-without-lock"]
    );
    assert!(
        found(&format!("{owner} impl Drop for Made {{ fn drop(&mut self) {{ free(&mut self.maker) }} }}")).is_empty()
    );
}

#[test]
fn the_list_of_exceptions_is_held_to_its_word() {
    let size = [allowed("array::size", "size", &[], "constant")];
    assert!(found_with(&size, "fn size(a: &Array) { ffi::size(a) }").is_empty());
    let rules =
        |allowed: &[Allowed], code: &str| found_with(allowed, code).into_iter().map(|(r, _)| r).collect::<Vec<_>>();
    assert_eq!(rules(&size, "fn count(a: &Array) { ffi::size(a) }"), ["entry-without-lock", "stale-exception"]);
    assert_eq!(rules(&size, ""), ["stale-exception"]);
    let eval = [allowed("array::eval", "f", &[], "it is quick")];
    assert_eq!(rules(&eval, "fn f(a: &Array) { ffi::eval(a) }"), ["evaluator-without-lock"]);
}

#[test]
fn no_exception_covers_what_evaluates_or_runs_a_closure() {
    for entry in ALLOWED {
        assert!(
            !entry.does.iter().any(|class| matches!(class, Class::Evaluates | Class::Applies)),
            "{}",
            entry.function
        );
        assert!(entry.why.len() > 8, "{} needs a reason", entry.function);
    }
}
