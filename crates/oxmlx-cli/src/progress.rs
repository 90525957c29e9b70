//! Progress bars on standard error: on a terminal, and not in a pipe.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

/// A bar with a label, counted in `unit`; invisible when standard error is no terminal, and gone when dropped.
pub(crate) fn bar(label: &'static str, total: u64, unit: Unit) -> ProgressBar {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let template = match unit {
        Unit::Bytes => "{msg:12} [{bar:40}] {bytes}/{total_bytes}",
        Unit::Tokens => "{msg:12} [{bar:40}] {pos}/{len} tokens",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(total), target).with_finish(ProgressFinish::AndClear);
    bar.set_style(style.progress_chars("=> "));
    bar.set_message(label);
    bar
}

/// What a bar counts.
pub(crate) enum Unit {
    /// Bytes.
    Bytes,
    /// Tokens.
    Tokens,
}
