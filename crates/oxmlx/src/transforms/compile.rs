//! Compilation: a function is traced once and its graph built again for every call.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

pub use oxmlx_sys::types::CompileMode;
use oxmlx_sys::{compiled as sys, transforms};

use super::{forward, run};
use crate::random::implicit;
use crate::{Array, Dtype, Error, ErrorKind, Result};

/// A compiled function. Any thread may call it; each traces it once for every combination of input shapes and dtypes.
pub struct Compiled(Form);

enum Form {
    ByShape(sys::Compiled),
    Shapeless(Shapeless),
}

/// Compiles a function of arrays.
///
/// The closure runs once a thread and combination of shapes and dtypes; later calls build what it built. So it must be pure: what it reads
/// besides its inputs is fixed by the first call, random numbers of the implicit state included. A number that changes belongs in a
/// scalar input; as a constant inside the closure each value would need a function of its own. For the processor
/// MLX would run a C++ compiler to fuse; the mode is [`CompileMode::NoFuse`] there unless [`set_compile_mode`] said otherwise. A trace
/// is made for each kind of device.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let f = transforms::compile(|x| Ok(vec![ops::exp(&ops::negative(&x[0])?)?]))?;
/// assert_eq!(f.call(&[Array::scalar(0.0f32)?])?[0].item::<f32>()?, 1.0);
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// Only what every entry into MLX can report: nothing is traced before the first call.
///
/// # Source
/// C++ `mlx::core::compile` (`mlx/compile.h`); differs: ids of functions are never used twice, on any thread.
pub fn compile<F>(f: F) -> Result<Compiled>
where
    F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
{
    Ok(Compiled(Form::ByShape(sys::compile(transforms::closure(move |x| forward(&f, x)), false)?)))
}

/// Compiles a function whose trace fits inputs of other shapes with as many dimensions.
///
/// Shapes that the closure reads are those of the first call: what it computes from them as numbers stays, and MLX gives wrong shapes
/// for others. So when a dimension differs from the first call's for the first time, the closure runs once more to compare: a
/// function whose result has another shape then is an error. Operations whose shape MLX can't follow are errors at the first
/// call. Dimensions of 0 and of 1 have traces of their own: MLX builds other nodes for them.
///
/// ```
/// use oxmlx::{Array, ops, transforms};
/// let f = transforms::compile_shapeless(|x| Ok(vec![ops::abs(&x[0])?]))?;
/// for n in 1..4 {
///     assert_eq!(f.call(&[Array::zeros::<f32>(n)?])?[0].shape(), [n]);
/// }
/// # Ok::<(), oxmlx::Error>(())
/// ```
///
/// # Errors
/// As [`compile`].
///
/// # Source
/// C++ `mlx::core::compile` with `shapeless` (`mlx/compile.h`).
pub fn compile_shapeless<F>(f: F) -> Result<Compiled>
where
    F: Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static,
{
    Ok(Compiled(Form::Shapeless(Shapeless {
        closure: Arc::new(f),
        functions: Mutex::default(),
        seen: Mutex::default(),
    })))
}

impl Compiled {
    /// Calls the function. Lazy, as the function itself.
    ///
    /// # Errors
    /// The closure's own error, while it is traced; [`ErrorKind::InvalidArgument`] for a shapeless function that can't be;
    /// [`ErrorKind::Shape`] for one whose trace gives another shape than the closure.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let call = |function: &sys::Compiled| run(|| function.call(Array::raw(inputs))).map(Array::wrap_all);
        match &self.0 {
            Form::ByShape(function) => call(function),
            Form::Shapeless(shapeless) => {
                let kinds: Kinds = inputs.iter().map(kind).collect();
                let outputs = call(&*shapeless.function(&kinds)?)?;
                shapeless.check(kinds, inputs, &outputs)?;
                Ok(outputs)
            }
        }
    }
}

/// Dtype, and of each dimension whether it is 0, 1 or longer: MLX leaves out reductions over one element, and a trace with one must
/// not be run on what it leaves it out for.
type Kinds = Vec<(Dtype, Vec<i32>)>;

fn kind(x: &Array) -> (Dtype, Vec<i32>) {
    (x.dtype(), x.shape().iter().map(|&n| n.min(2)).collect())
}

/// A trace belongs to a thread, to kinds of inputs, and to the time since the caches were last cleared.
type TraceOf = (ThreadId, u64, Kinds);

/// What is known of a shapeless trace: the shapes that it was made for, and which dimensions were others in a call since.
struct Known {
    shapes: Vec<Vec<i32>>,
    varied: Vec<Vec<bool>>,
}

type Function = dyn Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync;

struct Shapeless {
    closure: Arc<Function>,
    functions: Mutex<HashMap<Kinds, Arc<sys::Compiled>>>,
    seen: Mutex<HashMap<TraceOf, Known>>,
}

impl Shapeless {
    /// The function for inputs of these kinds.
    fn function(&self, kinds: &Kinds) -> Result<Arc<sys::Compiled>> {
        let known = |functions: &HashMap<Kinds, Arc<sys::Compiled>>| functions.get(kinds).map(Arc::clone);
        if let Some(function) = known(&self.functions.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(function);
        }
        // MLX is entered, and a function that came too late dropped, while the table is free: a closure that runs under MLX's lock
        // may call this function too.
        let closure = Arc::clone(&self.closure);
        let made = Arc::new(sys::compile(transforms::closure(move |x| forward(&*closure, x)), true)?);
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let function = Arc::clone(functions.entry(kinds.clone()).or_insert_with(|| Arc::clone(&made)));
        drop(functions);
        Ok(function)
    }

    /// Compares the outputs with the closure's own when a dimension differs from the trace's for the first time.
    fn check(&self, kinds: Kinds, inputs: &[Array], outputs: &[Array]) -> Result<()> {
        let trace = (std::thread::current().id(), CLEARED.load(Ordering::Relaxed), kinds);
        let is_new = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let known = seen.entry(trace.clone()).or_insert_with(|| Known {
                shapes: inputs.iter().map(|x| x.shape().to_vec()).collect(),
                varied: inputs.iter().map(|x| vec![false; x.ndim()]).collect(),
            });
            differs(inputs, &known.shapes).any(|(i, axis)| !known.varied[i][axis])
        };
        if !is_new {
            return Ok(());
        }
        // The closure may draw: that is not to be seen.
        let undo = implicit::Undo::new()?;
        let expected = (self.closure)(inputs)?;
        drop(undo);
        let alike = |a: &Array, b: &Array| a.shape() == b.shape() && a.dtype() == b.dtype();
        if expected.len() != outputs.len() || !expected.iter().zip(outputs).all(|(a, b)| alike(a, b)) {
            let text = format!("the shapeless trace gives {outputs:?} where the function gives {expected:?}");
            return Err(Error::new(ErrorKind::Shape, "compile", text));
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Known { shapes, varied }) = seen.get_mut(&trace) {
            differs(inputs, shapes).for_each(|(i, axis)| varied[i][axis] = true);
        }
        Ok(())
    }
}

/// The dimensions in which inputs differ from the shapes of a trace.
fn differs<'a>(inputs: &'a [Array], shapes: &'a [Vec<i32>]) -> impl Iterator<Item = (usize, usize)> + 'a {
    inputs.iter().zip(shapes).enumerate().flat_map(|(i, (input, shape))| {
        input.shape().iter().zip(shape).enumerate().filter(|(_, (a, b))| a != b).map(move |(axis, _)| (i, axis))
    })
}

/// How often the caches were cleared.
static CLEARED: AtomicU64 = AtomicU64::new(0);

/// How much [`compile`] does from now on, in the whole process.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::set_compile_mode` (`mlx/compile.h`).
pub fn set_compile_mode(mode: CompileMode) -> Result<()> {
    Ok(sys::set_compile_mode(mode)?)
}

/// Forgets all traces of all compiled functions: each is traced again by its next call.
///
/// # Errors
/// Only what every entry into MLX can report.
///
/// # Source
/// C++ `mlx::core::detail::compile_clear_cache`, for the caches of all threads.
pub fn clear_compile_caches() -> Result<()> {
    CLEARED.fetch_add(1, Ordering::Relaxed);
    Ok(sys::clear_compile_caches()?)
}
