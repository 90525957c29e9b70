//! The guide for users of `mlx.core` is whole: each name of the Python module has a row.

#[test]
fn every_name_of_the_python_module_has_a_row_in_the_guide() {
    let guide = include_str!("../../src/doc/mlx_core_users.rs");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mlx_names.txt");
    let names = std::fs::read_to_string(path).expect("fixtures/mlx_names.txt: python oracle/mlx_names.py writes it");
    let names: Vec<&str> = names.lines().collect();
    assert!(names.len() > 400);
    let missing: Vec<&&str> = names.iter().filter(|name| !guide.contains(&format!("//! | `{name}` | "))).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let rows = guide.lines().filter_map(|line| line.strip_prefix("//! | `")?.split_once("` | ").map(|(name, _)| name));
    // The first table shows calls, which are no names; the others begin with `mlx.core`.
    let is_name =
        |name: &&str| name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.') && *name != "mlx.core";
    let stale: Vec<&str> = rows.filter(is_name).filter(|name| !names.contains(name)).collect();
    assert!(stale.is_empty(), "names that Python has not: {stale:?}");
}
