//! What a gate says.

use std::fmt;

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Violation {
    /// The rule, as `docs/gates.md` names it.
    pub(super) rule: &'static str,
    /// The file, and the function where there is one.
    pub(super) place: String,
    pub(super) what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}: {}", self.rule, self.place, self.what)
    }
}

/// How a gate came out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing was found; the text says how much was looked at.
    Passed(String),
    /// It can't run here, for this reason. `--strict` makes that a failure.
    Skipped(String),
    Failed(Vec<Violation>),
}

impl Verdict {
    /// Passed when there is no violation.
    pub(super) fn of(mut violations: Vec<Violation>, looked_at: impl FnOnce() -> String) -> Self {
        if violations.is_empty() {
            return Self::Passed(looked_at());
        }
        violations.sort();
        violations.dedup();
        Self::Failed(violations)
    }
}
