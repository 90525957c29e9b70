//! The trace of a function as plain data, for programs that write another format than MLX's own.

use oxmlx_sys::export_steps as sys;
use oxmlx_sys::types::Dtype;

use super::export::named_closure;
use super::run;
use crate::{Array, Error, ErrorKind, Result};

/// A part of a traced function, in the order in which MLX's exporter tells it.
#[derive(Clone, Debug)]
pub enum ExportStep {
    /// What the function takes.
    Inputs(Vec<ExportTensor>),
    /// The inputs that have a name for callers, and their names in the trace.
    Keywords(Vec<(String, String)>),
    /// What the function returns.
    Outputs(Vec<ExportTensor>),
    /// Arrays that the function holds, by their names in the trace.
    Constants(Vec<(String, Array)>),
    /// One node, after all those that it needs.
    Primitive {
        /// MLX's name of the operation.
        name: String,
        /// What goes in.
        inputs: Vec<ExportTensor>,
        /// What comes out.
        outputs: Vec<ExportTensor>,
        /// The operation's settings, in MLX's order.
        arguments: Vec<ExportArgument>,
    },
}

/// An array of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportTensor {
    /// Its name in the trace.
    pub name: String,
    /// Its shape.
    pub shape: Vec<i32>,
    /// Its dtype.
    pub dtype: Dtype,
}

/// A setting of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum ExportArgument {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A real number.
    Float(f64),
    /// A dtype.
    Dtype(Dtype),
    /// A shape, strides, axes.
    Ints(Vec<i64>),
    /// Truth values by threes.
    Flags(Vec<[bool; 3]>),
    /// Numbers of several kinds.
    Numbers(Vec<f64>),
    /// A real number that may be left out.
    OptionalFloat(Option<f64>),
    /// A text.
    Text(String),
}

/// Traces a function for inputs like these and returns its nodes.
///
/// ```
/// use oxmlx::transforms::{ExportStep, export_steps};
/// use oxmlx::{Array, ops};
/// let steps = export_steps(|x, _| Ok(vec![ops::exp(&x[0])?]), &[Array::ones::<f32>(2)?], &[], false)?;
/// let names: Vec<_> = steps.iter().filter_map(|s| if let ExportStep::Primitive { name, .. } = s { Some(name) } else { None }).collect();
/// assert_eq!(names, ["Exp"]);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// The closure's own error; [`ErrorKind::InvalidArgument`] for an operation that can't be exported, such as a kernel of one's own.
///
/// # Source
/// C++ `mlx::core::export_function` and `mlx::core::exporter` with a callback (`mlx/export.h`).
pub fn export_steps<F>(f: F, args: &[Array], named: &[(&str, Array)], shapeless: bool) -> Result<Vec<ExportStep>>
where
    F: Fn(&[Array], &[(String, Array)]) -> Result<Vec<Array>> + Send + Sync + 'static,
{
    let (names, values): (Vec<&str>, Vec<Array>) = named.iter().map(|(name, a)| (*name, a.clone())).unzip();
    let inputs = (Array::raw(args), &names[..], Array::raw(&values));
    run(|| sys::export_steps(named_closure(f), inputs, shapeless))?.into_iter().map(step).collect()
}

fn step(step: sys::Step) -> Result<ExportStep> {
    Ok(match step.kind.as_str() {
        "inputs" => ExportStep::Inputs(tensors(step.inputs)?),
        "keyword_inputs" => ExportStep::Keywords(step.names.into_iter().zip(step.keywords).collect()),
        "outputs" => ExportStep::Outputs(tensors(step.outputs)?),
        "constants" => ExportStep::Constants(step.names.into_iter().zip(Array::wrap_all(step.constants)).collect()),
        "primitive" => ExportStep::Primitive {
            name: step.name,
            inputs: tensors(step.inputs)?,
            outputs: tensors(step.outputs)?,
            arguments: step.arguments.into_iter().map(argument).collect::<Result<_>>()?,
        },
        other => return Err(unknown(format!("MLX tells of {other:?}"))),
    })
}

fn tensors(tensors: Vec<sys::Tensor>) -> Result<Vec<ExportTensor>> {
    let tensor = |t: sys::Tensor| Ok(ExportTensor { name: t.name, shape: t.shape, dtype: dtype(t.dtype.into())? });
    tensors.into_iter().map(tensor).collect()
}

fn argument(argument: sys::Argument) -> Result<ExportArgument> {
    let sys::Argument { kind, ints, reals, text } = argument;
    let int = || ints.first().copied().unwrap_or_default();
    Ok(match kind {
        sys::ArgumentKind::Bool => ExportArgument::Bool(int() != 0),
        sys::ArgumentKind::Int => ExportArgument::Int(int()),
        sys::ArgumentKind::Float => ExportArgument::Float(reals.first().copied().unwrap_or_default()),
        sys::ArgumentKind::Dtype => ExportArgument::Dtype(dtype(int())?),
        sys::ArgumentKind::Ints => ExportArgument::Ints(ints),
        sys::ArgumentKind::Flags => ExportArgument::Flags(
            ints.as_chunks().0.iter().map(|flags: &[i64; 3]| flags.map(|flag| flag != 0)).collect(),
        ),
        sys::ArgumentKind::Numbers => ExportArgument::Numbers(reals),
        sys::ArgumentKind::OptionalFloat => ExportArgument::OptionalFloat(reals.first().copied()),
        sys::ArgumentKind::Text => ExportArgument::Text(text),
        other => return Err(unknown(format!("an argument has the code {other:?}"))),
    })
}

fn dtype(code: i64) -> Result<Dtype> {
    let known = u8::try_from(code).ok().and_then(|code| Dtype::try_from(code).ok());
    known.ok_or_else(|| unknown(format!("a dtype has the code {code}")))
}

#[cold]
fn unknown(what: String) -> Error {
    Error::new(ErrorKind::Backend, "export_function", format!("{what}, which oxmlx does not know"))
}
