//! MLX's transforms over Rust closures: derivatives, vectorisation, checkpoints, functions with rules of their own.
//!
//! A transform runs its closure on the thread that calls it, under the lock and inside a trace ([`trace::enter`]). A closure that is
//! only called while the transform runs may borrow; one that stays in the graph owns what it uses ([`Closure`]).

use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use crate::call::call;
use crate::closure::{BoxError, Closure, Failure, FailureSlot, Quiet};
use crate::{Array, Result, lock, owner, runtime, stack, trace};

#[cxx::bridge(namespace = "oxmlx::transforms")]
#[allow(clippy::multiple_unsafe_ops_per_block, reason = "cxx writes these blocks")]
pub(crate) mod ffi {
    struct TwoLists {
        first: Vec<Array>,
        second: Vec<Array>,
    }

    struct Mapped {
        arrays: Vec<Array>,
        axes: Vec<i32>,
    }

    extern "Rust" {
        type Closure;
        fn apply(self: &Closure, inputs: &[Array]) -> Result<Vec<Array>>;

        type NamedClosure;
        fn apply(self: &NamedClosure, args: &[Array], names: Vec<String>, values: &[Array]) -> Result<Vec<Array>>;

        type Rules;
        fn has_vjp(self: &Rules) -> bool;
        fn vjp(self: &Rules, primals: &[Array], cotangents: &[Array], outputs: &[Array]) -> Result<Vec<Array>>;
        fn has_jvp(self: &Rules) -> bool;
        fn jvp(self: &Rules, primals: &[Array], tangents: &[Array], argnums: &[i32]) -> Result<Vec<Array>>;
        fn has_vmap(self: &Rules) -> bool;
        fn vmap(self: &Rules, inputs: &[Array], axes: &[i32]) -> Result<Mapped>;

        fn max_depth() -> usize;
    }

    unsafe extern "C++" {
        include!("transforms.h");

        #[namespace = "mlx::core"]
        #[cxx_name = "array"]
        type Array = crate::Array;

        fn vjp(f: Box<Closure>, primals: &[Array], cotangents: &[Array]) -> Result<TwoLists>;
        fn jvp(f: Box<Closure>, primals: &[Array], tangents: &[Array]) -> Result<TwoLists>;
        fn value_and_grad(f: Box<Closure>, argnums: &[i32], inputs: &[Array]) -> Result<TwoLists>;
        fn vmap(f: Box<Closure>, in_axes: &[i32], out_axes: &[i32], inputs: &[Array]) -> Result<Vec<Array>>;
        fn checkpoint(f: Box<Closure>, inputs: &[Array]) -> Result<Vec<Array>>;
        fn custom_function(f: Box<Closure>, rules: Box<Rules>, inputs: &[Array]) -> Result<Vec<Array>>;

        type Compiled;
        fn compile(f: Box<Closure>, id: u64, shapeless: bool) -> Result<UniquePtr<Compiled>>;
        fn call(self: &Compiled, inputs: &[Array]) -> Result<Vec<Array>>;
        fn clear_compile_caches() -> Result<()>;

        type Exporter;
        fn exporter(file: &str, f: Box<NamedClosure>, shapeless: bool, metadata: &str) -> Result<UniquePtr<Exporter>>;
        fn add(self: Pin<&mut Exporter>, args: &[Array], names: &[&str], values: &[Array]) -> Result<()>;
        fn close(self: Pin<&mut Exporter>) -> Result<()>;

        type Imported;
        fn import_function(file: &str) -> Result<UniquePtr<Imported>>;
        fn call(self: &Imported, args: &[Array], names: &[&str], values: &[Array]) -> Result<Vec<Array>>;
        fn metadata(self: &Imported) -> Result<String>;
    }
}

fn max_depth() -> usize {
    stack::DEPTH
}

/// What a transform that failed reports: MLX's exception, or the closure's own failure.
pub enum Failed {
    /// MLX threw.
    Mlx(crate::Exception),
    /// The closure failed, and this is how.
    Closure(Failure),
}

/// The outcome of a transform.
pub type Outcome<T> = std::result::Result<T, Failed>;

/// Where a failure waits while C++ unwinds. One for the process: a transform holds the lock from before its closures run until it has
/// taken the failure out, and a rule that fails may belong to a function that an earlier call built.
pub(crate) static PENDING: LazyLock<FailureSlot> = LazyLock::new(FailureSlot::default);

/// A closure for a transform.
pub fn closure(
    body: impl Fn(&[Array]) -> std::result::Result<Vec<Array>, BoxError> + Send + Sync + 'static,
) -> Closure {
    Closure::new(PENDING.clone(), body)
}

/// Runs a call into MLX that may call closures: their failure comes before MLX's exception, which is only its echo.
pub(crate) fn run<T>(f: impl FnOnce() -> Result<T>) -> Outcome<T> {
    let _guard = lock::enter().map_err(Failed::Mlx)?;
    runtime::ensure_default_streams().map_err(Failed::Mlx)?;
    PENDING.take();
    let outcome = owner::run(|| stack::deep(f));
    match (outcome, PENDING.take()) {
        (_, Some(failure)) => Err(Failed::Closure(failure)),
        (Ok(value), None) => Ok(value),
        (Err(exception), None) => Err(Failed::Mlx(exception)),
    }
}

/// The two lists that a derivative gives.
pub type Lists = (Vec<Array>, Vec<Array>);

type Body<'a> = dyn Fn(&[Array]) -> std::result::Result<Vec<Array>, BoxError> + Send + Sync + 'a;

/// Runs `f` with a closure that borrows. When `f` is done the closure is cut off: a call that C++ might still make is an error.
fn borrowed<T>(body: &Body<'_>, f: impl FnOnce(Box<Closure>) -> Result<T>) -> Outcome<T> {
    // SAFETY: the lifetime is only forgotten inside this function: `cell` is emptied before it returns or unwinds, by `CutOff`, and
    // nobody else takes the reference out of it for longer than a call, which ends before the transform that made it does (the
    // process-wide lock, held by the transform, keeps all other threads out).
    let forever = unsafe { std::mem::transmute::<&Body<'_>, &'static Body<'static>>(body) };
    let cell = Arc::new(Mutex::new(Some(forever)));
    struct CutOff(Arc<Mutex<Option<&'static Body<'static>>>>);
    impl Drop for CutOff {
        fn drop(&mut self) {
            *self.0.lock() = None;
        }
    }
    let cut_off = CutOff(Arc::clone(&cell));
    let closure = closure(move |inputs| {
        let body = *cell.lock();
        match body {
            Some(body) => body(inputs),
            None => Err("the transform that this closure belongs to is over".into()),
        }
    });
    let outcome = run(|| f(Box::new(closure)));
    drop(cut_off);
    outcome
}

/// The function's values and the products of its Jacobian, from the left, with `cotangents`.
///
/// # Errors
/// The closure's failure; what MLX throws for cotangents that do not fit.
pub fn vjp(body: &Body<'_>, primals: &[Array], cotangents: &[Array]) -> Outcome<Lists> {
    borrowed(body, |f| call("vjp", || trace::enter(|| ffi::vjp(f, primals, cotangents)))).map(lists)
}

/// The function's values and the products of its Jacobian, from the right, with `tangents`.
///
/// # Errors
/// The closure's failure; what MLX throws for tangents that do not fit.
pub fn jvp(body: &Body<'_>, primals: &[Array], tangents: &[Array]) -> Outcome<Lists> {
    borrowed(body, |f| call("jvp", || trace::enter(|| ffi::jvp(f, primals, tangents)))).map(lists)
}

/// The function's values and the gradients of the first, a scalar, for the inputs at `argnums`.
///
/// # Errors
/// The closure's failure; what MLX throws when the first value is no scalar.
pub fn value_and_grad(body: &Body<'_>, argnums: &[i32], inputs: &[Array]) -> Outcome<Lists> {
    borrowed(body, |f| call("value_and_grad", || trace::enter(|| ffi::value_and_grad(f, argnums, inputs)))).map(lists)
}

/// The gradients of the function's first value, a scalar, for the inputs at `argnums`.
///
/// # Errors
/// As [`value_and_grad`].
pub fn grad(body: &Body<'_>, argnums: &[i32], inputs: &[Array]) -> Outcome<Vec<Array>> {
    value_and_grad(body, argnums, inputs).map(|(_, gradients)| gradients)
}

/// The function over every slice of the inputs along their axes, -1 for an input or output that is not mapped.
///
/// # Errors
/// The closure's failure; what MLX throws for axes that do not fit.
pub fn vmap(body: &Body<'_>, in_axes: &[i32], out_axes: &[i32], inputs: &[Array]) -> Outcome<Vec<Array>> {
    borrowed(body, |f| call("vmap", || trace::enter_map(|| ffi::vmap(f, in_axes, out_axes, inputs))))
}

/// The function's values, with its insides computed again for the gradient instead of kept.
///
/// # Errors
/// The closure's failure.
pub fn checkpoint(closure: &Closure, inputs: &[Array]) -> Outcome<Vec<Array>> {
    run(|| call("checkpoint", || ffi::checkpoint(Box::new(closure.clone()), inputs)))
}

/// The function's values, with rules of its own for the transforms that meet it.
///
/// # Errors
/// The closure's failure.
pub fn custom_function(closure: &Closure, rules: &Rules, inputs: &[Array]) -> Outcome<Vec<Array>> {
    run(|| call("custom_function", || ffi::custom_function(Box::new(closure.clone()), Box::new(rules.clone()), inputs)))
}

/// [`custom_function`] of functions whose only rule is that of the vector-Jacobian product.
///
/// # Errors
/// As [`custom_function`].
pub fn custom_vjp(closure: &Closure, rules: &Rules, inputs: &[Array]) -> Outcome<Vec<Array>> {
    custom_function(closure, rules, inputs)
}

fn lists(two: ffi::TwoLists) -> Lists {
    (two.first, two.second)
}

type ThreeArrays = dyn Fn(&[Array], &[Array], &[Array]) -> std::result::Result<Vec<Array>, BoxError> + Send + Sync;
type Tangents = dyn Fn(&[Array], &[Array], &[i32]) -> std::result::Result<Vec<Array>, BoxError> + Send + Sync;
type Axes = dyn Fn(&[Array], &[i32]) -> std::result::Result<(Vec<Array>, Vec<i32>), BoxError> + Send + Sync;

/// The rules of a custom function; those left out are MLX's own, over the function's insides.
#[derive(Clone, Default)]
pub struct Rules {
    vjp: Option<Quiet<Arc<ThreeArrays>>>,
    jvp: Option<Quiet<Arc<Tangents>>>,
    vmap: Option<Quiet<Arc<Axes>>>,
}

impl Rules {
    /// With a rule from primals, cotangents and outputs to one gradient a primal.
    pub fn set_vjp(&mut self, rule: Arc<ThreeArrays>) {
        self.vjp = Some(Quiet::new(rule));
    }

    /// With a rule from primals, tangents and the places of the primals that have one, to one tangent an output.
    pub fn set_jvp(&mut self, rule: Arc<Tangents>) {
        self.jvp = Some(Quiet::new(rule));
    }

    /// With a rule from inputs and their mapped axes (-1 for none) to outputs and theirs.
    pub fn set_vmap(&mut self, rule: Arc<Axes>) {
        self.vmap = Some(Quiet::new(rule));
    }

    fn has_vjp(&self) -> bool {
        self.vjp.is_some()
    }

    fn vjp(
        &self,
        primals: &[Array],
        cotangents: &[Array],
        outputs: &[Array],
    ) -> std::result::Result<Vec<Array>, String> {
        PENDING.catch(|| match &self.vjp {
            Some(rule) => rule(primals, cotangents, outputs),
            None => Err("there is no such rule".into()),
        })
    }

    fn has_jvp(&self) -> bool {
        self.jvp.is_some()
    }

    fn jvp(&self, primals: &[Array], tangents: &[Array], argnums: &[i32]) -> std::result::Result<Vec<Array>, String> {
        PENDING.catch(|| match &self.jvp {
            Some(rule) => rule(primals, tangents, argnums),
            None => Err("there is no such rule".into()),
        })
    }

    fn has_vmap(&self) -> bool {
        self.vmap.is_some()
    }

    fn vmap(&self, inputs: &[Array], axes: &[i32]) -> std::result::Result<ffi::Mapped, String> {
        PENDING.catch(|| match &self.vmap {
            Some(rule) => rule(inputs, axes).map(|(arrays, axes)| ffi::Mapped { arrays, axes }),
            None => Err("there is no such rule".into()),
        })
    }
}

type NamedBody = dyn Fn(&[Array], Vec<(String, Array)>) -> std::result::Result<Vec<Array>, BoxError> + Send + Sync;

/// A function of arrays by place and of arrays by name, for export.
#[derive(Clone)]
pub struct NamedClosure {
    body: Quiet<Arc<NamedBody>>,
}

impl NamedClosure {
    /// A closure for an exporter.
    pub fn new(
        body: impl Fn(&[Array], Vec<(String, Array)>) -> std::result::Result<Vec<Array>, BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self { body: Quiet::new(Arc::new(body)) }
    }

    pub(crate) fn apply(
        &self,
        args: &[Array],
        names: Vec<String>,
        values: &[Array],
    ) -> std::result::Result<Vec<Array>, String> {
        let named = names.into_iter().zip(values.iter().cloned()).collect();
        PENDING.catch(|| (self.body)(args, named))
    }
}
