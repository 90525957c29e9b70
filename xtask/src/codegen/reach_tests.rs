//! What reaches what, on sources small enough to know the answer.

use std::path::Path;

use super::graph::Reach;
use super::source::Crate;

fn reach(source: &str) -> Reach {
    let mut parsed = Crate::default();
    parsed.text(source, Path::new("."), Vec::new()).unwrap();
    Reach::new(parsed.finish().unwrap())
}

fn to(source: &str, name: &str) -> Option<String> {
    reach(source).to(&["sys", "ops", name])
}

#[test]
fn public_functions_and_methods_reach_what_they_call() {
    let source = "
        pub mod ops {
            use sys::ops as raw;
            pub fn add() { raw::add() }
            fn hidden() { raw::sub() }
            pub(crate) fn inside() { raw::mul() }
        }
        pub struct Array;
        impl Array { pub fn exp(&self) { sys::ops::exp() } fn log(&self) { sys::ops::log() } }
        impl std::fmt::Display for Array { fn fmt(&self) { sys::ops::print() } }
        struct Private;
        impl Private { pub fn sin(&self) { sys::ops::sin() } }
        #[cfg(test)] mod tests { pub fn cos() { sys::ops::cos() } }";
    assert_eq!(to(source, "add").unwrap(), "ops::add");
    assert_eq!(to(source, "exp").unwrap(), "Array::exp");
    assert_eq!(to(source, "print").unwrap(), "Array::fmt");
    for name in ["sub", "mul", "log", "cos", "ad"] {
        assert_eq!(to(source, name), None, "{name}");
    }
}

#[test]
fn comments_texts_and_other_modules_names_are_no_calls() {
    let source = "
        use sys::fast as raw;
        /// `sys::ops::add()`
        pub fn f() { /* sys::ops::sub() */ let _ = \"sys::ops::mul()\"; raw::div() }";
    for name in ["add", "sub", "mul", "div"] {
        assert_eq!(to(source, name), None, "{name}");
    }
}

#[test]
fn private_functions_are_followed_to_their_public_callers() {
    let source = "
        mod cpu { use sys::ops::relu; pub(crate) fn relu_of() { relu() } fn nobody() { sys::ops::gelu() } }
        mod deep { pub(super) fn middle() { super::cpu::relu_of() } }
        pub fn activate() { deep::middle() }";
    assert_eq!(to(source, "relu").unwrap(), "activate");
    assert_eq!(to(source, "gelu"), None);
}

#[test]
fn private_modules_count_by_what_is_passed_on() {
    let source = "
        pub mod ops {
            mod arithmetic { pub fn add() { sys::ops::add() } pub fn sub() { sys::ops::sub() } }
            mod shape { pub fn flat() { sys::ops::flat() } pub fn kept() { sys::ops::kept() } }
            pub use arithmetic::*;
            pub use self::shape::flat;
        }
        mod closed { pub mod open { pub fn f() { sys::ops::far() } } }";
    assert_eq!(to(source, "add").unwrap(), "ops::add");
    assert_eq!(to(source, "sub").unwrap(), "ops::sub");
    assert_eq!(to(source, "flat").unwrap(), "ops::flat");
    assert_eq!(to(source, "kept"), None);
    assert_eq!(to(source, "far"), None);
}

#[test]
fn macros_are_run_wherever_they_were_defined() {
    let source = "
        mod unary {
            macro_rules! unary {
                ($($(#[$doc:meta])* $name:ident: $in:literal => $out:literal),+ $(,)?) => {$(
                    $(#[$doc])*
                    pub fn $name(a: &Array) -> Result<Array> { Ok(raw::$name(&a.0)?.into()) }
                )+};
            }
            pub(crate) use unary;
        }
        pub mod ops {
            use sys::ops as raw;
            use super::unary::unary;
            unary! {
                /// The exponential.
                exp: \"[0]\" => \"[1]\",
                /// The logarithm.
                log: \"[1]\" => \"[0]\",
            }
            macro_rules! typed { ($($t:ty => $f:ident),+) => { $(impl Conv for $t { fn conv() { raw::$f() } })+ }; }
            typed! { Vec<u8> => bytes, &'static str => text }
            pub fn body() { macro_rules! inner { ($f:ident) => { raw::$f() }; } inner!(late); call!(raw::tan()) }
        }";
    assert_eq!(to(source, "exp").unwrap(), "ops::exp");
    assert_eq!(to(source, "log").unwrap(), "ops::log");
    assert_eq!(to(source, "bytes").unwrap(), "Vec::conv");
    assert_eq!(to(source, "text").unwrap(), "str::conv");
    assert_eq!(to(source, "tan").unwrap(), "ops::body");
    assert_eq!(to(source, "sinh"), None);
}

#[test]
fn an_unsafe_item_is_named_as_such_and_only_where_no_safe_one_is() {
    let source = "
        pub unsafe fn take_unchecked() { sys::ops::take() }
        pub fn take_with_checks_and_a_long_name() { sys::ops::take() }
        pub unsafe fn source() { sys::ops::kernel() }";
    assert_eq!(to(source, "take").unwrap(), "take_with_checks_and_a_long_name");
    assert_eq!(to(source, "kernel").unwrap(), "unsafe source");
}

#[test]
fn named_items_are_public_ones() {
    let reach = reach(
        "pub mod random { pub fn seed() {} fn state() {} }
         pub use sys::types::Dtype;
         pub struct Stream; impl Stream { pub fn new() {} }",
    );
    assert!(reach.has("random::seed") && reach.has("Dtype") && reach.has("Stream::new"));
    assert!(!reach.has("random::state") && !reach.has("seed") && !reach.has("Stream::drop"));
}
