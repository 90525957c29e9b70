//! Classes and names, on headers small enough to know the answer.

use super::*;
use crate::codegen::cpp;
use crate::codegen::parse::parse;

fn table(entries: &str) -> Table {
    let mut text = "headers = [\"ops\"]\nfunctions_a_file = 100\n[expect]\nmarked = 0\nnames = 0\n".to_owned();
    for section in ["modes", "names", "parameters", "operators", "alias", "handwritten", "left_out"] {
        if !entries.contains(&format!("[{section}]")) {
            text += &format!("[{section}]\n");
        }
    }
    Table::read(&(text + entries)).unwrap()
}

fn run(source: &str, entries: &str) -> Result<Vec<Item>, String> {
    select(parse("ops", &format!("namespace mlx::core {{ {source} }}")).unwrap(), &table(entries))
}

fn generated(items: &[Item]) -> Vec<&str> {
    items
        .iter()
        .filter_map(|item| match &item.class {
            Class::Generated(wrapper) => Some(wrapper.name.as_str()),
            _ => None,
        })
        .collect()
}

const SUMS: &str = "
    MLX_API array sum(const array& a, bool keepdims, StreamOrDevice s = {});
    inline array sum(const array& a, StreamOrDevice s = {}) { return sum(a, false, to_stream(s)); }
    MLX_API array sum(const array& a, const std::vector<int>& axes, bool keepdims = false, StreamOrDevice s = {});
    MLX_API array sum(const array& a, int axis, bool keepdims = false, StreamOrDevice s = {});";

#[test]
fn overloads_are_named_by_what_they_do_not_share() {
    let items = run(SUMS, "").unwrap();
    assert_eq!(generated(&items), ["sum_all", "sum_axes", "sum_axis"]);
    let items = run(
        "MLX_API array full(Shape shape, array vals, Dtype dtype, StreamOrDevice s = {});
         MLX_API array full(Shape shape, array vals, StreamOrDevice s = {});
         MLX_API array where(const array& condition, const array& x, const array& y);",
        "",
    )
    .unwrap();
    assert_eq!(generated(&items), ["full_dtype", "full", "where_"]);
}

#[test]
fn an_inline_forward_to_its_own_name_is_an_alias() {
    let items = run(SUMS, "").unwrap();
    assert!(matches!(&items[1].class, Class::Alias(how) if how.starts_with("sum")));
    // One that forwards to another function is a function of its own.
    let items = run("inline array fft(const array& a) { return fftn(a); }", "").unwrap();
    assert_eq!(generated(&items), ["fft"]);
}

#[test]
fn every_public_declaration_is_in_exactly_one_class() {
    let source = format!(
        "{SUMS} MLX_API void eval(std::vector<array> outputs);
         MLX_API array operator+(const array& a, const array& b);
         MLX_API array add(const array& a, const array& b, StreamOrDevice s = {{}});
         MLX_API std::ostream& operator<<(std::ostream& os, array a);
         template <typename T> array operator+(T a, const array& b) {{ return add(array(a), b); }}
         bool is_main_thread();"
    );
    let entries = "[handwritten]\n\"ops.eval\" = { reason = \"r\", place = \"runtime.rs: eval\" }\n\
                   [operators]\n\"operator+\" = \"add\"\n[left_out]\n\"ops.operator<<\" = \"why\"\n";
    let items = run(&source, entries).unwrap();
    let kinds: Vec<char> = items
        .iter()
        .map(|item| match item.class {
            Class::Generated(_) => 'g',
            Class::Alias(_) => 'a',
            Class::Handwritten(..) => 'h',
            Class::LeftOut(_) => 'l',
        })
        .collect();
    assert_eq!(String::from_iter(kinds), "gagghagl");
}

#[test]
fn what_fits_no_class_or_two_is_an_error() {
    let unknown = run("MLX_API void f(std::function<void()> g);", "").unwrap_err();
    assert!(unknown.contains("no way to pass \"std::function<void()>\""), "{unknown}");
    let twice = run(
        "MLX_API void f();",
        "[left_out]\n\"ops.f\" = \"why\"\n[handwritten]\n\"ops.f\" = { reason = \"r\", place = \"p\" }\n",
    )
    .unwrap_err();
    assert!(twice.contains("several entries match void f()"), "{twice}");
    let stale = run("MLX_API void f();", "[alias]\n\"ops.g\" = \"f\"\n").unwrap_err();
    assert_eq!(stale, "bridge.toml: \"ops.g\" matches nothing");
    let unnamed = run("MLX_API void f(Stream);", "").unwrap_err();
    assert!(unnamed.contains("no name for \"Stream\""), "{unnamed}");
    let twins = run("MLX_API array rope(int offset); MLX_API array rope(const array& offset);", "").unwrap_err();
    assert!(twins.starts_with("ops::rope names several overloads"), "{twins}");
}

#[test]
fn an_entry_for_one_overload_wins_over_one_for_all() {
    let entries = "[handwritten]\n\"ops.f\" = { reason = \"r\", place = \"p\" }\n[alias]\n\"ops.f(int a)\" = \"f\"\n";
    let items = run("MLX_API void f(const array& a); MLX_API void f(int a);", entries).unwrap();
    assert!(matches!(items[0].class, Class::Handwritten(..)));
    assert!(matches!(items[1].class, Class::Alias(_)));
}

#[test]
fn the_shim_converts_each_argument_and_adds_the_stream() {
    let items = run(
        "MLX_API array pad(const array& a, const std::optional<array>& m = std::nullopt, StreamOrDevice s = {}, const std::string& mode = \"edge\");
         MLX_API std::pair<array, array> qr(const array& a, StreamOrDevice s = {});
         MLX_API void seed(uint64_t seed);",
        "[modes]\n\"pad.mode\" = \"PadMode\"\n",
    )
    .unwrap();
    let shim = cpp::source(&items.iter().collect::<Vec<_>>());
    for line in [
        "mlx::core::array pad(const mlx::core::array& a, const mlx::core::array* m, PadModeCode mode) {",
        "  return mlx::core::pad(a, oxmlx::to_optional(m), oxmlx::current_stream(), oxmlx::to_text(mode));",
        "  return oxmlx::from_pair(mlx::core::qr(a, oxmlx::current_stream()));",
        "  mlx::core::seed(seed);",
    ] {
        assert!(shim.lines().any(|l| l == line), "{line}\nis not in\n{shim}");
    }
}
