//! The trace of a function as plain data, through MLX's exporter with a callback.

use crate::call::call;
use crate::transforms::{NamedClosure, Outcome, run};
use crate::{Array, trace};

pub use ffi::{Argument, ArgumentKind, Step, Tensor};

#[cxx::bridge(namespace = "oxmlx::export_steps")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx writes these blocks")]
mod ffi {
    /// How to read an [`Argument`].
    #[derive(Clone, Copy, Debug)]
    enum ArgumentKind {
        /// A truth value: the one integer.
        Bool,
        /// One integer.
        Int,
        /// One real.
        Float,
        /// A dtype: its position in MLX's `Dtype::Val`.
        Dtype,
        /// The integers.
        Ints,
        /// Truth values by threes: the integers.
        Flags,
        /// The reals.
        Numbers,
        /// One real or none.
        OptionalFloat,
        /// The text.
        Text,
    }

    /// A part of a primitive's state.
    struct Argument {
        /// How to read it.
        kind: ArgumentKind,
        /// Whole numbers.
        ints: Vec<i64>,
        /// Reals.
        reals: Vec<f64>,
        /// Text.
        text: String,
    }

    /// An array of the trace.
    struct Tensor {
        /// Its name in the trace.
        name: String,
        /// Its shape.
        shape: Vec<i32>,
        /// Its dtype's position in MLX's `Dtype::Val`.
        dtype: u8,
    }

    /// What the callback is told at a time.
    struct Step {
        /// `inputs`, `keyword_inputs`, `outputs`, `constants` or `primitive`.
        kind: String,
        /// The primitive.
        name: String,
        /// Of the function or the primitive.
        inputs: Vec<Tensor>,
        /// Of the function or the primitive.
        outputs: Vec<Tensor>,
        /// The names of inputs or constants.
        names: Vec<String>,
        /// The names in the trace of the inputs that `names` names.
        keywords: Vec<String>,
        /// The values of the constants that `names` names.
        constants: Vec<Array>,
        /// The primitive's state.
        arguments: Vec<Argument>,
    }

    extern "Rust" {
        type StepsClosure;
        fn apply(self: &StepsClosure, args: &[Array], names: Vec<String>, values: &[Array]) -> Result<Vec<Array>>;
    }

    unsafe extern "C++" {
        include!("export_steps.h");

        #[namespace = "mlx::core"]
        #[cxx_name = "array"]
        type Array = crate::Array;

        fn steps(
            f: Box<StepsClosure>,
            args: &[Array],
            names: &[&str],
            values: &[Array],
            shapeless: bool,
        ) -> Result<Vec<Step>>;
    }
}

/// cxx gives each bridge closures of its own.
struct StepsClosure(NamedClosure);

impl StepsClosure {
    fn apply(&self, args: &[Array], names: Vec<String>, values: &[Array]) -> std::result::Result<Vec<Array>, String> {
        self.0.apply(args, names, values)
    }
}

/// Traces a function and returns what MLX's exporter tells of it, in order.
///
/// # Errors
/// The closure's failure; what MLX throws for a primitive that can't be exported.
pub fn export_steps(
    closure: NamedClosure,
    inputs: (&[Array], &[&str], &[Array]),
    shapeless: bool,
) -> Outcome<Vec<Step>> {
    let closure = Box::new(StepsClosure(closure));
    run(|| {
        call("export_function", || {
            trace::enter_export(|| trace::enter(|| ffi::steps(closure, inputs.0, inputs.1, inputs.2, shapeless)))
        })
    })
}
