//! The table of a family: which function runs a case, and what kinds of arguments it takes.

use oxmlx::{Array, Result};

use crate::fixture::{self, Case};

/// A function of the safe API as a case calls it.
pub(crate) type Run = fn(&mut Case) -> Result<Vec<Array>>;

/// What an operation may give.
pub(crate) trait Outputs {
    fn outputs(self) -> Result<Vec<Array>>;
}

impl Outputs for Result<Array> {
    fn outputs(self) -> Result<Vec<Array>> {
        Ok(vec![self?])
    }
}

impl Outputs for Result<Vec<Array>> {
    fn outputs(self) -> Self {
        self
    }
}

impl Outputs for Result<(Array, Array)> {
    fn outputs(self) -> Result<Vec<Array>> {
        self.map(|(a, b)| vec![a, b])
    }
}

impl Outputs for Result<(Array, Array, Array)> {
    fn outputs(self) -> Result<Vec<Array>> {
        self.map(|(a, b, c)| vec![a, b, c])
    }
}

/// One argument by its kind: `a` array, `oa` optional array, `l` list of arrays, `i` integer, `is` integers, `b` flag, `x` f64,
/// `x32` f32, `d` dtype, `s` text; `o` in front for one that may be missing.
macro_rules! argument {
    ($c:ident a) => {
        &$c.array()
    };
    ($c:ident oa) => {
        $c.optional_array().as_ref()
    };
    ($c:ident l) => {
        &$c.arrays()
    };
    ($c:ident i) => {
        $c.int()
    };
    ($c:ident u) => {
        $c.wide()
    };
    ($c:ident oi) => {
        $c.optional_int()
    };
    ($c:ident is) => {
        &$c.ints()
    };
    ($c:ident ois) => {
        $c.optional_ints().as_deref()
    };
    ($c:ident pairs) => {
        &$c.pairs()
    };
    ($c:ident n) => {
        $c.sizes()
    };
    ($c:ident b) => {
        $c.flag()
    };
    ($c:ident x) => {
        $c.float()
    };
    ($c:ident x32) => {
        $c.float() as f32
    };
    ($c:ident ox32) => {
        $c.optional_float()
    };
    ($c:ident d) => {
        $c.dtype()
    };
    ($c:ident od) => {
        $c.optional_dtype()
    };
    ($c:ident s) => {
        &$c.text()
    };
}

/// Rows of `path(kinds)`, and of `path: |case| expression` where an argument needs words of its own.
macro_rules! table {
    (@row $module:ident::$name:ident($($kind:ident),*)) => {
        |c: &mut crate::fixture::Case| {
            crate::table::Outputs::outputs($module::$name($(crate::table::argument!(c $kind)),*))
        }
    };
    ($($module:ident::$name:ident($($kind:ident),*);)* $(=> $key:expr => $run:expr;)*) => {
        &[
            $((
                concat!(stringify!($module), "::", stringify!($name)),
                crate::table::table!(@row $module::$name($($kind),*)) as crate::table::Run,
            ),)*
            $(($key, ($run) as crate::table::Run),)*
        ]
    };
}

pub(crate) use {argument, table};

/// Every case of a family gives what Python MLX gives, and the fixture and the table name the same operations.
pub(crate) fn check(name: &str, table: &[(&str, Run)]) {
    let groups = fixture::family(name);
    let mut failures: Vec<String> = table
        .iter()
        .filter(|(op, _)| !groups.iter().any(|group| group.op == *op))
        .map(|(op, _)| format!("{op} has no cases"))
        .collect();
    for group in &groups {
        match table.iter().find(|(op, _)| group.op == *op) {
            Some((_, run)) => failures.extend(group.check(*run)),
            None => failures.push(format!("{} is not in the table", group.op)),
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
