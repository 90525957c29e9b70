//! What a kernel says of its inputs, its outputs' names, and how a GPU runs it.

use std::sync::OnceLock;

use oxmlx_sys::gpu_kernel as sys;

use super::BoxError;
use super::source::{GpuLanguage, Source};
use crate::{Dtype, Error, ErrorKind, Result};

/// The most threads of a group, on every GPU that MLX runs on.
const GROUP_LIMIT: i64 = 1024;

/// Which dtypes an input may have. A [`Dtype`] is that one alone, an array of them any of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Any.
    Any,
    /// One of these.
    OneOf(Vec<Dtype>),
}

impl Accepts {
    /// float32, float16 or bfloat16.
    pub fn floats() -> Self {
        [Dtype::Float32, Dtype::Float16, Dtype::Bfloat16].into()
    }
}

impl From<Dtype> for Accepts {
    fn from(dtype: Dtype) -> Self {
        Self::OneOf(vec![dtype])
    }
}

impl<const N: usize> From<[Dtype; N]> for Accepts {
    fn from(dtypes: [Dtype; N]) -> Self {
        Self::OneOf(dtypes.to_vec())
    }
}

/// The dtype of an output. A [`Dtype`] is that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputDtype {
    /// This one.
    Is(Dtype),
    /// That of an input, by its place.
    OfInput(usize),
}

impl From<Dtype> for OutputDtype {
    fn from(dtype: Dtype) -> Self {
        Self::Is(dtype)
    }
}

impl OutputDtype {
    pub(super) fn raw(self) -> oxmlx_sys::kernel::OutputDtype {
        match self {
            Self::Is(dtype) => oxmlx_sys::kernel::OutputDtype::Code(dtype.code()),
            Self::OfInput(input) => oxmlx_sys::kernel::OutputDtype::OfInput(input),
        }
    }
}

/// A template argument of a source: a compile-time constant, or a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateValue {
    /// A number.
    Int(i32),
    /// A truth value.
    Bool(bool),
    /// A type.
    Dtype(Dtype),
    /// The type of an input, by its place.
    DtypeOfInput(usize),
}

impl From<i32> for TemplateValue {
    fn from(value: i32) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for TemplateValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Dtype> for TemplateValue {
    fn from(dtype: Dtype) -> Self {
        Self::Dtype(dtype)
    }
}

/// How a GPU runs a kernel over inputs of given shapes and dtypes. See [`Kernel::launch`](super::Kernel::launch).
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The threads along each axis.
    pub grid: [i32; 3],
    /// The threads of a group along each axis.
    pub thread_group: [i32; 3],
    /// The template arguments; none is [`TemplateValue::DtypeOfInput`] any more.
    pub template: Vec<(String, TemplateValue)>,
    /// The shape and dtype of each output.
    pub outputs: Vec<(Vec<i32>, Dtype)>,
    /// What the outputs are filled with before.
    pub init: Option<f32>,
}

pub(super) type GridRule = dyn Fn(&[&[i32]], &[&[i32]]) -> [i32; 3] + Send + Sync;

#[derive(Default)]
pub(super) struct Declared {
    pub(super) inputs: Vec<(String, Accepts)>,
    pub(super) output_names: Vec<String>,
    pub(super) grid: Option<Box<GridRule>>,
    pub(super) thread_group: Option<[i32; 3]>,
    pub(super) template: Vec<(String, TemplateValue)>,
    pub(super) init: Option<f32>,
    pub(super) atomic_outputs: bool,
    pub(super) strided_inputs: bool,
    pub(super) metal: Option<Source>,
    pub(super) cuda: Option<Source>,
    /// The compiled forms, Metal's and CUDA's, once asked for.
    pub(super) functions: [OnceLock<sys::GpuKernel>; 2],
}

impl Declared {
    pub(super) fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.metal.is_none() && self.cuda.is_none()
    }

    pub(super) fn source(&self, language: GpuLanguage) -> Option<&Source> {
        match language {
            GpuLanguage::Metal => self.metal.as_ref(),
            GpuLanguage::Cuda => self.cuda.as_ref(),
        }
    }

    /// Refuses what no source can be written from.
    pub(super) fn check(&self, kernel: &str, outputs: usize) -> Result<()> {
        let invalid = |text: String| Err(Error::new(ErrorKind::InvalidArgument, "kernel", text));
        if !self.output_names.is_empty() && self.output_names.len() != outputs {
            return invalid(format!("kernel {kernel} has {outputs} outputs and {} names", self.output_names.len()));
        }
        if self.thread_group.is_some_and(|group| group.iter().any(|&n| n < 1) || product(&group) > GROUP_LIMIT) {
            let text = format!("thread group {:?} of kernel {kernel}: each number at least 1", self.thread_group);
            return Err(Error::new(ErrorKind::Group, "kernel", format!("{text}, their product at most {GROUP_LIMIT}")));
        }
        if self.metal.is_none() && self.cuda.is_none() {
            return Ok(());
        }
        if self.metal.as_ref().is_some_and(Source::is_compiled) {
            return invalid(format!("kernel {kernel}: compiled code is for CUDA alone"));
        }
        let names = self.inputs.iter().map(|(name, _)| name).chain(&self.output_names);
        let names: Vec<&String> = names.chain(self.template.iter().map(|(name, _)| name)).collect();
        if let Some(name) = names.iter().copied().find(|name| !is_identifier(name)) {
            return invalid(format!("kernel {kernel}: {name:?} is no name in a source"));
        }
        if let Some((i, name)) = names.iter().enumerate().find(|&(i, name)| names[..i].contains(name)) {
            return invalid(format!("kernel {kernel}: {name:?} is the name of two things, the second is name {i}"));
        }
        if !is_identifier(kernel) {
            return invalid(format!("{kernel:?} is no name in a source: letters, digits and _ alone"));
        }
        if let Some(i) = self.template.iter().find_map(|(_, value)| match value {
            TemplateValue::DtypeOfInput(i) if *i >= self.inputs.len() => Some(i),
            _ => None,
        }) {
            return invalid(format!("kernel {kernel}: the dtype of input {i}, of {}", self.inputs.len()));
        }
        Ok(())
    }

    /// Refuses inputs that are not as declared.
    pub(super) fn check_inputs(&self, kernel: &str, dtypes: impl ExactSizeIterator<Item = Dtype>) -> Result<()> {
        if dtypes.len() != self.inputs.len() {
            let text = format!("kernel {kernel} takes {} inputs, not {}", self.inputs.len(), dtypes.len());
            return Err(Error::new(ErrorKind::InvalidArgument, "kernel", text));
        }
        for ((name, accepts), dtype) in self.inputs.iter().zip(dtypes) {
            if let Accepts::OneOf(accepted) = accepts
                && !accepted.contains(&dtype)
            {
                let names: Vec<String> = accepted.iter().map(Dtype::to_string).collect();
                let text = format!("input {name} of kernel {kernel} is {dtype}, it takes {}", names.join(", "));
                return Err(Error::new(ErrorKind::Dtype, "kernel", text).with_dtype(dtype));
            }
        }
        Ok(())
    }

    /// How a GPU runs a node over such inputs and outputs.
    pub(super) fn launch(
        &self,
        kernel: &str,
        inputs: &[(&[i32], Dtype)],
        outputs: Vec<(Vec<i32>, Dtype)>,
    ) -> Result<Launch, BoxError> {
        let ins: Vec<&[i32]> = inputs.iter().map(|&(shape, _)| shape).collect();
        let outs: Vec<&[i32]> = outputs.iter().map(|(shape, _)| &shape[..]).collect();
        let elements = outs.first().map_or(0, |shape| product(shape));
        let grid = match &self.grid {
            Some(rule) => rule(&ins, &outs),
            None => [i32::try_from(elements).unwrap_or(-1), 1, 1],
        };
        // Where there is nothing to compute nothing runs.
        let empty = outs.iter().all(|shape| product(shape) == 0);
        if !empty && grid.iter().any(|&n| n < 1) {
            let text =
                format!("kernel {kernel} for outputs {outs:?}: grid {grid:?}, each number must be 1 to 2^31 - 1");
            return Err(Error::new(ErrorKind::Group, "kernel", text).into());
        }
        let resolved = |value: TemplateValue| match value {
            TemplateValue::DtypeOfInput(i) => TemplateValue::Dtype(inputs[i].1),
            other => other,
        };
        let template = self.template.iter().map(|(name, value)| (name.clone(), resolved(*value))).collect();
        let thread_group = self.thread_group.unwrap_or([256, 1, 1]);
        Ok(Launch { grid, thread_group, template, outputs, init: self.init })
    }

    /// What MLX compiles, made at the first call.
    pub(super) fn function(&self, kernel: &str, language: GpuLanguage) -> Result<Option<&sys::GpuKernel>> {
        let Some(source) = self.source(language) else { return Ok(None) };
        let cell = &self.functions[usize::from(language == GpuLanguage::Cuda)];
        if cell.get().is_none() {
            let raw = sys::Source {
                name: kernel.to_owned(),
                input_names: self.inputs.iter().map(|(name, _)| name.clone()).collect(),
                output_names: self.output_names.clone(),
                body: String::new(),
                header: String::new(),
                row_contiguous: !self.strided_inputs,
            };
            // Of two threads that come here together one keeps its own.
            drop(cell.set(source.kernel(language, raw, self.atomic_outputs)?));
        }
        Ok(cell.get())
    }
}

impl Launch {
    pub(super) fn raw(self) -> sys::Launch {
        let argument = |(name, value)| {
            let (kind, value) = match value {
                TemplateValue::Int(value) => (0, value),
                TemplateValue::Bool(value) => (1, value.into()),
                TemplateValue::Dtype(dtype) => (2, dtype.code().into()),
                // Resolved when the launch was made.
                TemplateValue::DtypeOfInput(_) => (0, 0),
            };
            sys::TemplateArgument { name, kind, value }
        };
        sys::Launch {
            grid: self.grid,
            threadgroup: self.thread_group,
            has_init: self.init.is_some(),
            init: self.init.unwrap_or(0.0),
            arguments: self.template.into_iter().map(argument).collect(),
        }
    }
}

fn product(shape: &[i32]) -> i64 {
    shape.iter().fold(1, |product: i64, &n| product.saturating_mul(n.into()))
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
