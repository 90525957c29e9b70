//! The `oxmlx` command.

fn main() {}
