//! The parser against small headers whose reading is known.

use super::parse;
use crate::codegen::ir::{Decl, Param};

fn read(source: &str) -> Vec<Decl> {
    parse("t", &format!("#pragma once\nnamespace mlx::core {{\n{source}\n}} // namespace")).unwrap()
}

fn param(ty: &str, name: &str, default: Option<&str>) -> Param {
    Param { ty: ty.to_owned(), name: name.to_owned(), default: default.map(str::to_owned) }
}

#[test]
fn overloads_are_kept_apart() {
    let found = read(
        "MLX_API array sum(const array& a, bool keepdims, StreamOrDevice s = {});
         inline array sum(const array& a, StreamOrDevice s = {}) { return sum(a, false, to_stream(s)); }
         MLX_API array
         sum(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});",
    );
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|d| d.name == "sum" && d.namespace == "mlx::core" && d.ret == "array"));
    assert_eq!(found[0].params[0], param("const array&", "a", None));
    assert_eq!(found[2].params[2], param("bool", "keepdims", Some("false")));
    assert_eq!(found[1].forwards_to.as_deref(), Some("sum"));
    assert!(found[1].inline && !found[1].marked && found[0].marked);
}

#[test]
fn defaults_may_hold_braces_commas_templates_and_calls() {
    let found = read(
        "MLX_API array f(const std::pair<int, int>& stride = {1, 1}, std::vector<int> v = std::vector<int>{1, 2},
             const array& p = array(0, int32), bool less = 1 < 2, const std::string& m = \"a,b\", double e = 1e-5);",
    );
    let expected = [
        param("const std::pair<int, int>&", "stride", Some("{1, 1}")),
        param("std::vector<int>", "v", Some("std::vector<int>{1, 2}")),
        param("const array&", "p", Some("array(0, int32)")),
        param("bool", "less", Some("1<2")),
        param("const std::string&", "m", Some("\"a,b\"")),
        param("double", "e", Some("1e-5")),
    ];
    assert_eq!(found[0].params, expected);
}

#[test]
fn function_types_nest() {
    let found = read(
        "MLX_API std::function<std::vector<array>(const std::vector<array>&)> custom(
             std::function<std::vector<array>(const std::vector<array>&)> fun,
             std::optional<std::function<std::pair<std::vector<array>, std::vector<int>>(
                 const std::vector<array>&, const std::vector<int>&)>> fun_vmap = std::nullopt);
         MLX_API void g(std::vector<array> (*fun)(const std::vector<array>&), bool shapeless = false);
         std::function<array(const array&)> inline grad(const std::function<array(const array&)>& fun) {
             auto fn = value_and_grad(fun);
             return [fn](const array& input) { return fn(input).second; };
         }",
    );
    assert_eq!(found[0].name, "custom");
    assert_eq!(found[0].ret, "std::function<std::vector<array>(const std::vector<array>&)>");
    assert_eq!(found[0].params[1].name, "fun_vmap");
    assert_eq!(found[0].params[1].default.as_deref(), Some("std::nullopt"));
    assert_eq!(found[1].params[0], param("std::vector<array>(*)(const std::vector<array>&)", "fun", None));
    assert_eq!(found[1].params.len(), 2);
    assert!(found[2].inline && found[2].name == "grad" && found[2].forwards_to.is_none());
    assert_eq!(found[2].ret, "std::function<array(const array&)>");
}

#[test]
fn comments_in_parameter_lists_are_no_parameters() {
    let found = read(
        "MLX_API array qqmm(
             const array& x, // input, activations
             const array& w /* = maybe (quantized) */,
             StreamOrDevice s /* = {} */);",
    );
    let names: Vec<_> = found[0].params.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["x", "w", "s"]);
    assert_eq!(found[0].params[2].default, None);
}

#[test]
fn parameters_may_have_no_name() {
    let found = read("MLX_API void save(std::string file, std::unordered_map<std::string, array>, const Stream);");
    assert_eq!(found[0].params[1], param("std::unordered_map<std::string, array>", "", None));
    assert_eq!(found[0].params[2], param("const Stream", "", None));
}

#[test]
fn operators_are_functions() {
    let found = read(
        "MLX_API array operator&&(const array& a, const array& b);
         inline array operator<(const array& a, const array& b) { return less(a, b); }
         MLX_API std::ostream& operator<<(std::ostream& os, const Device& d);",
    );
    let names: Vec<_> = found.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["operator&&", "operator<", "operator<<"]);
    assert_eq!(found[1].forwards_to.as_deref(), Some("less"));
    assert_eq!(found[2].ret, "std::ostream&");
}

#[test]
fn classes_aliases_variables_and_enums_are_skipped() {
    let found = read(
        "struct MLX_API Group { Group(int x) : x(x) {} int rank() const; private: int x{0}; };
         class Primitive;
         using Fn = std::function<void(int)>;
         enum class Mode { a, b };
         inline constexpr Dtype bool_{Dtype::Val::bool_, sizeof(bool)};
         inline constexpr Dtype::Category floating = Dtype::Category::floating;
         template <typename T> struct MLX_API TypeToDtype { operator Dtype(); };
         MLX_API int f();",
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].signature(), "int f()");
}

#[test]
fn only_marked_or_inline_functions_of_documented_namespaces_are_public() {
    let found = parse(
        "t",
        "namespace mlx::core {
           template <typename... A, typename = enable_t<A...>> void eval(A&&... outputs) { eval(x{std::forward<A>(outputs)...}); }
           template <typename F> MLX_API void h(F&& f);
           bool is_main_thread();
           namespace env { inline int width(int d) { static int w = get_var(\"X\", d); return w; } }
           namespace detail { MLX_API void hidden(); }
           inline bool is_power(int n) { return ((n & (n - 1)) == 0) && n != 0; }
         }
         namespace mlx::core::fft { MLX_API array fftn(const array& a); }",
    )
    .unwrap();
    let public: Vec<_> = found.iter().filter(|d| d.is_public()).map(|d| d.name.as_str()).collect();
    assert_eq!(found.len(), 7);
    assert_eq!(public, ["is_power", "fftn"]);
}

#[test]
fn a_file_that_ends_early_is_an_error() {
    assert!(parse("t", "namespace mlx::core { MLX_API array f(int a").is_err());
    assert_eq!(parse("ops", "namespace a { int f();").unwrap_err(), "mlx/ops.h: a namespace has no end");
}
