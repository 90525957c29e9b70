//! Nodes of MLX's graph whose body is Rust.
//!
//! [`apply`] builds a lazy node over a [`Node`]. When MLX evaluates it, the shim gives the outputs their memory and hands the body to
//! the stream's thread; the body runs there, outside the lock, as a worker ([`lock::as_worker`]): it sees
//! memory ([`Input`], [`Output`]) and can't enter MLX. A transform that meets the node uses its own rule or its fallback, a
//! function of MLX operations, on the thread that traces.
//!
//! On a GPU the node runs a kernel from source ([`apply_gpu`]), with the same rules.

use std::sync::Arc;

use crate::array::Status;
use crate::call::call;
use crate::closure::{BoxError, Closure, FailureSlot, Quiet, error_text};
use crate::evaluation::Guilt;
use crate::gpu_kernel::{GpuKernel, Launch};
use crate::transforms::PENDING;
use crate::{Array, Exception, ExceptionKind, Result, layout, lock};

#[cxx::bridge(namespace = "oxmlx::kernel")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx writes these blocks")]
mod ffi {
    struct Mapped {
        arrays: Vec<Array>,
        axes: Vec<i32>,
    }

    extern "Rust" {
        type Node;
        fn name(self: &Node) -> &str;
        fn in_place_of(self: &Node, output: usize) -> i32;
        fn output_shapes(self: &Node, inputs: &[Array]) -> Result<Vec<i32>>;
        fn output_dtypes(self: &Node, inputs: &[Array]) -> Vec<u8>;
        fn run(self: &Node, inputs: &[Array], outputs: &[Array], reused: &[bool], fault: &Fault);
        fn has_vjp(self: &Node) -> bool;
        fn vjp(self: &Node, primals: &[Array], cotangents: &[Array], outputs: &[Array]) -> Result<Vec<Array>>;
        fn has_vmap(self: &Node) -> bool;
        fn vmap(self: &Node, inputs: &[Array], axes: &[i32]) -> Result<Mapped>;
        fn launch(self: &Node, inputs: &[Array], outputs: &[Array]) -> Result<Launch>;
        fn has_fallback(self: &Node) -> bool;
        fn fallback(self: &Node, inputs: &[Array]) -> Result<Vec<Array>>;
    }

    unsafe extern "C++" {
        include!("kernel.h");
        include!("oxmlx-sys/src/gpu_kernel.rs.h");

        #[namespace = "mlx::core"]
        #[cxx_name = "array"]
        type Array = crate::Array;
        #[namespace = "oxmlx::evaluation"]
        type Fault = crate::evaluation::ffi::Fault;

        #[namespace = "oxmlx::gpu_kernel"]
        type GpuKernel = crate::gpu_kernel::ffi::GpuKernel;
        #[namespace = "oxmlx::gpu_kernel"]
        type Launch = crate::gpu_kernel::ffi::Launch;

        fn apply(node: Box<Node>, inputs: &[Array], shapes: &[i32]) -> Result<Vec<Array>>;
        fn apply_gpu(
            node: Box<Node>,
            kernel: &SharedPtr<GpuKernel>,
            inputs: &[Array],
            shapes: &[i32],
            plain: bool,
        ) -> Result<Vec<Array>>;
        fn raw_data(a: &Array) -> *const u8;
        fn raw_strides(a: &Array) -> &[i64];
        fn raw_row_contiguous(a: &Array) -> bool;
    }
}

/// An input of a running body: read-only memory with its shape and layout.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    array: &'a Array,
    /// Whether an output took this input's memory over: it is the output's now, and the input shows nothing.
    taken: bool,
    /// The elements in row-major order, where MLX's array runs backwards.
    turned: Option<&'a Turned>,
}

/// A row-major copy of an array with a negative stride, whose first element does not have the lowest address.
struct Turned {
    strides: Vec<i64>,
    /// Eights of bytes, so that every dtype is aligned.
    words: Vec<u64>,
}

impl Turned {
    /// The copy, if the array runs backwards.
    fn new(array: &Array) -> Option<Self> {
        let (shape, strides, item) = (array.shape(), ffi::raw_strides(array), array.itemsize());
        let first = ffi::raw_data(array);
        if first.is_null() || strides.iter().all(|&s| s >= 0) {
            return None;
        }
        let reach = |below: bool| -> i64 {
            let steps = shape.iter().zip(strides).filter(|(_, s)| (**s < 0) == below);
            steps.map(|(&n, &s)| i64::from(n - 1) * s).sum()
        };
        let (low, high) = (reach(true), reach(false));
        let span = usize::try_from(high - low + 1).ok()?.checked_mul(item)?;
        let lowest = first.wrapping_offset(isize::try_from(low).ok()?.checked_mul(isize::try_from(item).ok()?)?);
        // SAFETY: from the lowest element that shape and strides reach to the highest: all of it lies in the buffer, which MLX
        // keeps, and which nobody writes, until the body is done.
        let memory = unsafe { std::slice::from_raw_parts(lowest, span) };
        let count: usize = shape.iter().map(|&n| usize::try_from(n).unwrap_or(0)).product();
        let mut words = vec![0u64; (count * item).div_ceil(8)];
        let mut packed = Vec::with_capacity(words.len() * 8);
        for offset in layout::offsets(shape, strides) {
            let start = usize::try_from(offset - low).ok()? * item;
            packed.extend_from_slice(memory.get(start..start + item)?);
        }
        packed.resize(words.len() * 8, 0);
        for (word, bytes) in words.iter_mut().zip(packed.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        Some(Self { strides: layout::row_major(shape), words })
    }
}

impl<'a> Input<'a> {
    /// The dimensions.
    pub fn shape(self) -> &'a [i32] {
        self.array.shape()
    }

    /// The dtype's position in MLX's `Dtype::Val`.
    pub fn dtype_code(self) -> u8 {
        self.array.dtype_code()
    }

    /// The distance between neighbours of each dimension, in elements.
    pub fn strides(self) -> &'a [i64] {
        self.turned.map_or_else(|| ffi::raw_strides(self.array), |turned| &turned.strides)
    }

    /// Whether the elements lie in row-major order without gaps.
    pub fn row_contiguous(self) -> bool {
        self.turned.is_some() || ffi::raw_row_contiguous(self.array)
    }

    /// The bytes from the first element to the last in memory that the strides reach, whatever their order. Empty when an output
    /// took the memory over ([`Output::holds_input`]).
    pub fn bytes(self) -> &'a [u8] {
        let data = ffi::raw_data(self.array);
        if self.taken || data.is_null() {
            return &[];
        }
        if let Some(turned) = self.turned {
            let bytes = self.array.size() * self.array.itemsize();
            // SAFETY: `Turned::new` made this many bytes of words, and any bytes are u8.
            return unsafe { std::slice::from_raw_parts(turned.words.as_ptr().cast(), bytes) };
        }
        // The farthest element from the first: strides are negative only for flipped slices, which `turned` stands in for.
        let last: i64 = self.shape().iter().zip(self.strides()).map(|(&n, &s)| i64::from(n - 1) * s).sum();
        let span = (usize::try_from(last).unwrap_or(0) + 1) * self.array.itemsize();
        // SAFETY: MLX evaluated the input before the body was dispatched and keeps its buffer until the body is done; every element
        // that shape and strides reach lies in the buffer; nobody writes into a buffer that a pending node reads, but for the
        // output that took it over, and then `taken` is set.
        unsafe { std::slice::from_raw_parts(data, span) }
    }
}

/// An evaluated array that bodies read without its being an input of their node.
///
/// Its handle keeps the buffer, and a buffer with a second handle is never taken over or written to.
pub struct Constant(Array);

impl Constant {
    /// Holds an array; `None` unless it is available and lies in row-major order without gaps.
    ///
    /// # Errors
    /// The error of the kernel that failed to compute the array.
    pub fn new(array: Array) -> Result<Option<Self>> {
        let _guard = lock::enter()?;
        let fits = array.status()? == Status::Available && array.row_contiguous()?;
        Ok(fits.then_some(Self(array)))
    }

    /// The array.
    pub fn array(&self) -> &Array {
        &self.0
    }

    /// What a body sees of it. Takes no lock: shape, layout and address of an available array do not change any more.
    pub fn input(&self) -> Input<'_> {
        Input { array: &self.0, taken: false, turned: None }
    }
}

/// An output of a running body: memory to fill, row-major.
pub struct Output<'a> {
    array: &'a Array,
    /// Whether the memory is the in-place input's own, with its values.
    reused: bool,
}

impl Output<'_> {
    /// The dimensions.
    pub fn shape(&self) -> &[i32] {
        self.array.shape()
    }

    /// The dtype's position in MLX's `Dtype::Val`.
    pub fn dtype_code(&self) -> u8 {
        self.array.dtype_code()
    }

    /// Whether the memory holds the values of the input that this output was declared to take the place of.
    pub fn holds_input(&self) -> bool {
        self.reused
    }

    /// The memory. Its bytes are those of an earlier array or zero until they are written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let data = ffi::raw_data(self.array).cast_mut();
        if data.is_null() {
            return &mut [];
        }
        // SAFETY: the shim allocated `nbytes` for this output, or took over a buffer of that size that nobody else holds; the body is
        // its only user until it returns, and `self` is borrowed for as long as the slice lives. The allocation is initialised as
        // far as Rust can tell: it comes from outside, and `u8` has no invalid value.
        unsafe { std::slice::from_raw_parts_mut(data, self.array.size() * self.array.itemsize()) }
    }
}

/// What a body gets: the inputs in order, the outputs in order.
pub type Body = dyn Fn(&[Input<'_>], &mut [Output<'_>]) -> std::result::Result<(), BoxError> + Send + Sync;

/// The shapes of the outputs, from the inputs' shapes.
pub type ShapeRule = dyn Fn(&[&[i32]]) -> std::result::Result<Vec<Vec<i32>>, BoxError> + Send + Sync;

/// The rule of the vector-Jacobian product: primals, cotangents and outputs to one gradient a primal.
pub type VjpRule = dyn Fn(&[Array], &[Array], &[Array]) -> std::result::Result<Vec<Array>, BoxError> + Send + Sync;

/// The rule of vectorisation: the kernel itself, inputs and their mapped axes (-1 for none), to outputs and theirs.
pub type VmapRule =
    dyn Fn(&Arc<Definition>, &[Array], &[i32]) -> std::result::Result<(Vec<Array>, Vec<i32>), BoxError> + Send + Sync;

/// How a GPU runs a node, from its inputs and outputs.
pub type LaunchRule = dyn Fn(&[Array], &[Array]) -> std::result::Result<Launch, BoxError> + Send + Sync;

/// The dtype of an output.
#[derive(Clone, Copy, Debug)]
pub enum OutputDtype {
    /// A dtype by its code.
    Code(u8),
    /// That of an input.
    OfInput(usize),
}

/// What a kernel is, shared by all its nodes.
pub struct Definition {
    /// The name, for graph exports and errors.
    pub name: String,
    /// The computation on the CPU.
    pub body: Option<Box<Body>>,
    /// How a GPU runs a node of it.
    pub launch: Option<Box<LaunchRule>>,
    /// The outputs' shapes.
    pub shapes: Box<ShapeRule>,
    /// One dtype an output.
    pub dtypes: Vec<OutputDtype>,
    /// For each output, the input whose memory it may take over, or -1.
    pub in_place_of: Vec<i32>,
    /// The gradient's own rule.
    pub vjp: Option<Box<VjpRule>>,
    /// The rule of `vmap`.
    pub vmap: Option<Box<VmapRule>>,
    /// The same function in MLX operations, for the transforms.
    pub fallback: Option<Closure>,
}

impl Definition {
    /// The outputs' shapes, each as its number of dimensions and then the dimensions.
    fn flat_shapes(&self, inputs: &[Array]) -> std::result::Result<Vec<i32>, BoxError> {
        let shapes: Vec<&[i32]> = inputs.iter().map(Array::shape).collect();
        let shapes = (self.shapes)(&shapes)?;
        if shapes.len() != self.dtypes.len() {
            return Err(format!("the shape rule gave {} shapes for {} outputs", shapes.len(), self.dtypes.len()).into());
        }
        if let Some(shape) = shapes.iter().find(|shape| shape.iter().any(|&n| n < 0)) {
            return Err(format!("the shape rule gave {shape:?}").into());
        }
        Ok(shapes.iter().flat_map(|shape| std::iter::once(shape.len() as i32).chain(shape.iter().copied())).collect())
    }
}

/// One use of a kernel in a graph.
pub struct Node {
    definition: Quiet<Arc<Definition>>,
}

impl Node {
    fn name(&self) -> &str {
        &self.definition.name
    }

    fn in_place_of(&self, output: usize) -> i32 {
        self.definition.in_place_of.get(output).copied().unwrap_or(-1)
    }

    fn output_shapes(&self, inputs: &[Array]) -> std::result::Result<Vec<i32>, String> {
        PENDING.catch(|| self.definition.flat_shapes(inputs))
    }

    fn output_dtypes(&self, inputs: &[Array]) -> Vec<u8> {
        let code = |dtype: &OutputDtype| match *dtype {
            OutputDtype::Code(code) => code,
            // An input that is not there is refused by `apply`.
            OutputDtype::OfInput(i) => inputs.get(i).map_or(0, Array::dtype_code),
        };
        self.definition.dtypes.iter().map(code).collect()
    }

    /// The body, on a stream's thread. How it fails is kept in `fault`.
    fn run(&self, inputs: &[Array], outputs: &[Array], reused: &[bool], fault: &ffi::Fault) {
        lock::become_worker();
        let failures = FailureSlot::default();
        let outcome = failures.catch(|| {
            let turned: Vec<Option<Turned>> = inputs.iter().map(Turned::new).collect();
            let Some(body) = &self.definition.body else { return Err("the kernel has no body for the CPU".into()) };
            let taken = |i: usize| {
                (0..).zip(reused).any(|(o, &reused)| reused && usize::try_from(self.in_place_of(o)) == Ok(i))
            };
            let inputs: Vec<Input<'_>> = inputs
                .iter()
                .zip(&turned)
                .enumerate()
                .map(|(i, (array, turned))| Input { array, taken: taken(i), turned: turned.as_ref() })
                .collect();
            let mut outputs: Vec<Output<'_>> =
                outputs.iter().zip(reused).map(|(array, &reused)| Output { array, reused }).collect();
            body(&inputs, &mut outputs)
        });
        if outcome.is_ok() {
            return;
        }
        // What depends on it runs nevertheless: on zeros, and not on what an earlier array left there.
        for array in outputs {
            Output { array, reused: false }.bytes_mut().fill(0);
        }
        if let Some(failure) = failures.take() {
            fault.fail(Guilt::of_kernel(self.name(), failure));
        }
    }

    fn has_vjp(&self) -> bool {
        self.definition.vjp.is_some()
    }

    fn vjp(
        &self,
        primals: &[Array],
        cotangents: &[Array],
        outputs: &[Array],
    ) -> std::result::Result<Vec<Array>, String> {
        let Some(rule) = &self.definition.vjp else { return Err("the kernel has no vjp rule".into()) };
        PENDING.catch(|| rule(primals, cotangents, outputs))
    }

    fn has_vmap(&self) -> bool {
        self.definition.vmap.is_some()
    }

    fn vmap(&self, inputs: &[Array], axes: &[i32]) -> std::result::Result<ffi::Mapped, String> {
        let Some(rule) = &self.definition.vmap else { return Err("the kernel has no vmap rule".into()) };
        PENDING.catch(|| rule(&self.definition, inputs, axes).map(|(arrays, axes)| ffi::Mapped { arrays, axes }))
    }

    /// How a GPU runs the node. Called while MLX dispatches, where no transform waits for the failure.
    fn launch(&self, inputs: &[Array], outputs: &[Array]) -> std::result::Result<Launch, String> {
        let Some(rule) = &self.definition.launch else { return Err("the kernel has no body for a GPU".into()) };
        FailureSlot::default().catch(|| rule(inputs, outputs))
    }

    fn has_fallback(&self) -> bool {
        self.definition.fallback.is_some()
    }

    fn fallback(&self, inputs: &[Array]) -> std::result::Result<Vec<Array>, String> {
        match &self.definition.fallback {
            Some(closure) => closure.apply(inputs),
            None => Err("the kernel has no fallback".into()),
        }
    }
}

impl Definition {
    fn node(self: &Arc<Self>, inputs: &[Array]) -> Result<(Box<Node>, Vec<i32>)> {
        let of_input = self.dtypes.iter().filter_map(|d| if let OutputDtype::OfInput(i) = d { Some(*i) } else { None });
        if let Some(i) = of_input.max().filter(|&i| i >= inputs.len()) {
            let text = format!("an output of kernel {} has the dtype of input {i}, of {}", self.name, inputs.len());
            return Err(Exception::new(ExceptionKind::InvalidArgument, "kernel", text));
        }
        let shapes = self.flat_shapes(inputs).map_err(closure_failed)?;
        Ok((Box::new(Node { definition: Quiet::new(Arc::clone(self)) }), shapes))
    }
}

/// Builds a node over `inputs` on the current stream, which must be a CPU stream. Lazy.
///
/// # Errors
/// `Closure` when the shape rule fails; `Device` on a GPU stream, once evaluated.
pub fn apply(definition: &Arc<Definition>, inputs: &[Array]) -> Result<Vec<Array>> {
    let (node, shapes) = definition.node(inputs)?;
    call("kernel", || ffi::apply(node, inputs, &shapes))
}

/// The outputs of the kernel's fallback, if it has one.
pub fn apply_fallback(definition: &Definition, inputs: &[Array]) -> Option<Result<Vec<Array>>> {
    let outputs = definition.fallback.as_ref()?.call(inputs);
    Some(outputs.map_err(closure_failed))
}

fn closure_failed(error: BoxError) -> Exception {
    Exception::new(ExceptionKind::Closure, "kernel", error_text(&*error)).with_cause(Arc::from(error))
}

/// Builds a node over `inputs` that runs `kernel` on the current stream, which must be a GPU stream. Lazy. A `plain` node is one of
/// MLX's own, without the rules for transforms: what an export can hold.
///
/// # Errors
/// `Closure` when the shape rule fails; what MLX throws for names and numbers that do not fit.
pub fn apply_gpu(
    definition: &Arc<Definition>,
    kernel: &GpuKernel,
    inputs: &[Array],
    plain: bool,
) -> Result<Vec<Array>> {
    let (node, shapes) = definition.node(inputs)?;
    call("kernel", || ffi::apply_gpu(node, kernel.shared(), inputs, &shapes, plain))
}
