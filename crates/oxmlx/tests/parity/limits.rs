//! What the test device is known to do otherwise than Python MLX on the CPU, each with its cause: told as SKIPPED, and counted.

use oxmlx::Device;
use serde_json::Value;

use crate::device;

/// How a case of a GPU differs.
pub(crate) enum Known {
    /// The operation is an error with this text. Once it is none, or another, the test fails and the entry goes.
    Refused(&'static str),
    /// Values are as near as this, relative to one more than their size.
    Within(f64),
}

struct Limit {
    op: &'static str,
    /// What the case's arguments hold, as JSON.
    holds: &'static str,
    known: Known,
    cause: &'static str,
}

/// Of MLX's CUDA library.
const LIMITS: &[Limit] = &[
    Limit {
        op: "ops::hadamard_transform",
        holds: r#""s":[2,12]"#,
        known: Known::Refused("Failed to compile kernel"),
        cause: "MLX's kernel for 12 elements and no more divides by zero in its template",
    },
    Limit {
        op: "fast::cross_entropy",
        holds: "float16",
        known: Known::Within(2e-3),
        cause: "computed in float32 where Python's CPU rounds to float16 on the way",
    },
];

/// What is known of a case on the test device, with its cause.
pub(crate) fn of(op: &str, arguments: &Value) -> Option<(&'static Known, &'static str)> {
    if device::choose() == Device::Cpu {
        return None;
    }
    let text = arguments.to_string();
    LIMITS.iter().find(|limit| limit.op == op && text.contains(limit.holds)).map(|limit| (&limit.known, limit.cause))
}
