//! Rust kernels inside the graph: values, failures and what a body must not do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxmlx::kernel::Kernel;
use oxmlx::{Array, Dtype, ErrorKind, ops};

/// A kernel of one f32 input and output whose body is `f` on the values.
fn kernel_of(
    name: &str,
    f: impl Fn(&[f32], &mut [f32]) -> Result<(), oxmlx::kernel::BoxError> + Send + Sync + 'static,
) -> Kernel {
    Kernel::builder(name)
        .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
        .cpu(move |inputs, outputs| f(&inputs[0].as_slice::<f32>()?, outputs[0].as_mut_slice::<f32>()?))
        .build()
        .unwrap()
}

/// One test at a time: the tests of this file fail on the stream that all threads share.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn x() -> Array {
    Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], (2, 2)).unwrap()
}

fn assert_usable() {
    assert_eq!((x() + x()).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    let double = kernel_of("double", |x, y| {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
        Ok(())
    });
    assert_eq!(double.apply_one(&[x()]).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn a_body_sees_a_transposed_input_in_logical_order() {
    let _alone = alone();
    let copy = kernel_of("copy", |x, y| {
        y.copy_from_slice(x);
        Ok(())
    });
    let y = copy.apply_one(&[x().transpose().unwrap()]).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 3.0, 2.0, 4.0]);
}

#[test]
fn an_error_of_a_body_comes_out_at_evaluation_and_the_next_calls_succeed() {
    let _alone = alone();
    let failing = kernel_of("failing", |_, _| Err("planted failure".into()));
    for _ in 0..20 {
        let y = failing.apply_one(&[x()]).unwrap();
        let error = y.eval().unwrap_err();
        assert!(error.to_string().contains("planted failure"), "{error}");
        assert_usable();
    }
}

/// Row A10.
#[test]
fn a_panic_of_a_body_comes_out_at_evaluation_and_the_next_calls_succeed() {
    let _alone = alone();
    let panicking = kernel_of("panicking", |_, _| panic!("planted panic"));
    for _ in 0..20 {
        let y = panicking.apply_one(&[x()]).unwrap();
        // It goes on in the thread that waits, or is an error there; the text says what it was either way.
        let text = match catch_unwind(AssertUnwindSafe(|| y.eval())) {
            Ok(outcome) => outcome.unwrap_err().to_string(),
            Err(payload) => (*payload.downcast_ref::<&str>().unwrap()).to_owned(),
        };
        assert!(text.contains("planted panic"), "{text}");
        assert_usable();
    }
}

#[test]
fn an_output_takes_the_memory_of_an_input_that_nobody_else_holds() {
    let _alone = alone();
    let took_over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&took_over);
    let increment = Kernel::builder("increment")
        .output_in_place(Dtype::Float32, 0)
        .cpu(move |inputs, outputs| {
            seen.store(outputs[0].holds_input(), Ordering::SeqCst);
            if !outputs[0].holds_input() {
                outputs[0].as_mut_slice::<f32>()?.copy_from_slice(&inputs[0].as_slice::<f32>()?);
            }
            outputs[0].as_mut_slice::<f32>()?.iter_mut().for_each(|y| *y += 1.0);
            Ok(())
        })
        .build()
        .unwrap();

    let held = x();
    let y = increment.apply_one(std::slice::from_ref(&held)).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0, 5.0]);
    assert!(!took_over.load(Ordering::SeqCst));
    assert_eq!(held.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0], "an input that is still held keeps its values");

    let y = increment.apply_one(&[(x() + x()).unwrap()]).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [3.0, 5.0, 7.0, 9.0]);
    assert!(took_over.load(Ordering::SeqCst));
}

#[test]
fn a_body_that_enters_mlx_gets_an_error_of_its_own() {
    let _alone = alone();
    let entering = kernel_of("entering", |_, y| {
        let error = Array::scalar(1.0f32).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        y.fill(7.0);
        Ok(())
    });
    assert_eq!(entering.apply_one(&[x()]).unwrap().to_vec::<f32>().unwrap(), [7.0; 4]);
    assert_usable();
}

#[test]
fn a_handle_dropped_inside_a_body_is_freed_later() {
    let _alone = alone();
    let parked = Arc::new(std::sync::Mutex::new(Some(x())));
    let inside = Arc::clone(&parked);
    let dropping = kernel_of("dropping", move |_, y| {
        inside.lock().unwrap().take();
        y.fill(1.0);
        Ok(())
    });
    assert_eq!(dropping.apply_one(&[x()]).unwrap().to_vec::<f32>().unwrap(), [1.0; 4]);
    assert!(parked.lock().unwrap().is_none());
    assert_usable();
}

#[test]
fn a_failing_shape_rule_is_an_error_of_the_closure() {
    let _alone = alone();
    let kernel = Kernel::builder("shapeless")
        .output(Dtype::Float32, |_| Err("planted shape failure".into()))
        .cpu(|_, _| Ok(()))
        .build()
        .unwrap();
    let error = kernel.apply(&[x()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closure);
    assert!(error.to_string().contains("planted shape failure"), "{error}");
    assert_usable();
}

#[test]
fn a_body_that_asks_for_another_dtype_gets_an_error() {
    let _alone = alone();
    let kernel = kernel_of("typed", |_, _| Ok(()));
    let ints = Array::zeros::<i32>(2).unwrap();
    let error = kernel.apply_one(&[ints]).unwrap().eval().unwrap_err();
    assert!(error.to_string().contains("asks for float32, the memory holds int32"), "{error}");
    assert_usable();
}

/// Row A21.
#[test]
fn a_kernel_name_with_a_nul_is_refused() {
    let _alone = alone();
    let error =
        Kernel::builder("a\0b").output(Dtype::Float32, |_| Ok(vec![])).cpu(|_, _| Ok(())).build().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// Row A08.
#[test]
fn a_good_array_evaluated_beside_a_failing_one_has_its_value_or_an_error() {
    let _alone = alone();
    let failing = kernel_of("failing", |_, _| Err("planted failure".into()));
    let good = ops::add(&x(), &x()).unwrap();
    let bad = failing.apply_one(&[x()]).unwrap();
    assert!(oxmlx::eval(&[good.clone(), bad]).is_err());
    if let Ok(values) = good.to_vec::<f32>() {
        assert_eq!(values, [2.0, 4.0, 6.0, 8.0]);
    }
    assert_usable();
}
