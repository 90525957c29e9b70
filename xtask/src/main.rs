//! Everything a human would script, as `cargo xtask COMMAND`.

fn main() {}
