//! Transforms: values, failures of closures, and what threads share.
#![allow(unsafe_code)] // importing a function trusts its file, which was written here

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxmlx::transforms::{self, CustomFunction};
use oxmlx::{Array, Dtype, Error, ErrorKind, Result, ops, random};

fn scalar(x: f32) -> Array {
    Array::scalar(x).unwrap()
}

fn planted() -> Error {
    Error::new(ErrorKind::Unsupported, "test", "planted failure")
}

fn square_sum(x: &[Array]) -> Result<Array> {
    ops::sum(&ops::square(&x[0])?)
}

fn assert_usable() {
    let slope = transforms::grad(square_sum, &[0]);
    assert_eq!(slope(&[scalar(3.0)]).unwrap()[0].item::<f32>().unwrap(), 6.0);
}

/// Row A10.
#[test]
fn an_error_of_a_closure_comes_out_as_it_went_in() {
    let fail = |_: &[Array]| -> Result<Vec<Array>> { Err(planted()) };
    let x = [scalar(1.0)];
    let outcomes = [
        transforms::grad(|_| Err(planted()), &[0])(&x).unwrap_err(),
        transforms::vjp(fail, &x, &x).unwrap_err(),
        transforms::jvp(fail, &x, &x).unwrap_err(),
        transforms::vmap(fail, &[Some(0)], &[Some(0)])(&[Array::zeros::<f32>(2).unwrap()]).unwrap_err(),
        transforms::checkpoint(fail)(&x).unwrap_err(),
        CustomFunction::new(fail).call(&x).unwrap_err(),
        transforms::compile(fail).unwrap().call(&x).unwrap_err(),
    ];
    for error in outcomes {
        assert_eq!((error.kind(), error.op()), (ErrorKind::Unsupported, "test"));
        assert_eq!(error.message(), "planted failure");
    }
    assert_usable();
}

/// Row A10.
#[test]
fn a_panic_of_a_closure_goes_on_in_the_caller() {
    let fail = |_: &[Array]| -> Result<Vec<Array>> { panic!("planted panic") };
    let x = [scalar(1.0)];
    let rows = [Array::zeros::<f32>(2).unwrap()];
    let runs: [Box<dyn Fn()>; 7] = [
        Box::new(|| drop(transforms::grad(|_| panic!("planted panic"), &[0])(&x))),
        Box::new(|| drop(transforms::vjp(fail, &x, &x))),
        Box::new(|| drop(transforms::jvp(fail, &x, &x))),
        Box::new(|| drop(transforms::vmap(fail, &[Some(0)], &[Some(0)])(&rows))),
        Box::new(|| drop(CustomFunction::new(fail).call(&x))),
        Box::new(|| drop(transforms::compile(fail).unwrap().call(&x))),
        Box::new(|| drop(transforms::checkpoint(fail)(&x))),
    ];
    for run in runs {
        let payload = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"planted panic"));
        assert_usable();
    }
}

#[test]
fn an_error_of_a_rule_comes_out_of_the_transform_that_uses_it() {
    let f = transforms::custom_vjp(|x| Ok(vec![ops::exp(&x[0])?]), |_, _, _| Err(planted()));
    let error = transforms::grad(|x| ops::sum(&f.call(x)?[0]), &[0])(&[scalar(1.0)]).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Unsupported, "planted failure"));
    assert_usable();
}

#[test]
fn an_inner_transform_that_fails_is_an_ordinary_error_for_the_outer_closure() {
    let outer = transforms::grad(
        |x| match transforms::grad(|_| Err(planted()), &[0])(x) {
            Err(error) if error.message() == "planted failure" => ops::sum(&x[0]),
            other => panic!("{other:?}"),
        },
        &[0],
    );
    assert_eq!(outer(&[scalar(1.0)]).unwrap()[0].item::<f32>().unwrap(), 1.0);
}

/// Row A09.
#[test]
fn a_compiled_nullary_closure_that_fails_fails_again() {
    let f = transforms::compile(|_| Err(planted())).unwrap();
    for _ in 0..2 {
        let error = f.call(&[]).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unsupported, "planted failure"));
    }
}

#[test]
fn a_compiled_function_that_failed_once_is_traced_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let f = transforms::compile(move |x| match seen.fetch_add(1, Ordering::SeqCst) {
        0 => Err(planted()),
        _ => Ok(vec![ops::square(&x[0])?]),
    })
    .unwrap();
    assert!(f.call(&[scalar(3.0)]).is_err());
    assert_eq!(f.call(&[scalar(3.0)]).unwrap()[0].item::<f32>().unwrap(), 9.0);
}

/// Row A30.
#[test]
fn a_compiled_closure_is_entered_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let f = transforms::compile(move |x| {
        seen.fetch_add(1, Ordering::SeqCst);
        Ok(vec![ops::square(&x[0])?])
    })
    .unwrap();
    for i in 0..100u8 {
        let x = f32::from(i);
        assert_eq!(f.call(&[scalar(x)]).unwrap()[0].item::<f32>().unwrap(), x * x);
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// Row A28: as an input a scalar that changes costs one trace.
#[test]
fn a_scalar_input_that_changes_is_traced_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&calls);
    let f = transforms::compile(move |x| {
        seen.fetch_add(1, Ordering::SeqCst);
        Ok(vec![ops::add(&x[0], &x[1])?])
    })
    .unwrap();
    for i in 0..4u8 {
        let c = 1000.5 + f32::from(i);
        assert_eq!(f.call(&[scalar(1.0), scalar(c)]).unwrap()[0].item::<f32>().unwrap(), 1.0 + c);
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// Row A29.
#[test]
fn a_compiled_closure_may_fold_in_an_array_that_is_no_input() {
    let captured = Array::vector(&[10.0f32, 20.0]).unwrap();
    let f = transforms::compile(move |x| Ok(vec![ops::add(&x[0], &captured)?])).unwrap();
    for _ in 0..2 {
        let sum = f.call(&[scalar(1.0)]).unwrap()[0].to_vec::<f32>().unwrap();
        assert_eq!(sum, [11.0, 21.0]);
    }
}

/// Row A35.
#[test]
fn functions_compiled_on_two_threads_one_of_them_dropped_keep_their_own_results() {
    for round in 0..1000u16 {
        let k = f32::from(round);
        let first = std::thread::spawn(move || {
            let f = transforms::compile(move |x| Ok(vec![ops::add(&x[0], &Array::scalar(k)?)?])).unwrap();
            f.call(&[scalar(1.0)]).unwrap()[0].item::<f32>().unwrap()
        });
        assert_eq!(first.join().unwrap(), 1.0 + k);
        let g = transforms::compile(move |x| Ok(vec![ops::multiply(&x[0], &Array::scalar(k)?)?])).unwrap();
        assert_eq!(g.call(&[scalar(2.0)]).unwrap()[0].item::<f32>().unwrap(), 2.0 * k);
        if round % 10 == 0 {
            let on_other = std::thread::scope(|s| {
                s.spawn(|| g.call(&[scalar(3.0)]).unwrap()[0].item::<f32>().unwrap()).join().unwrap()
            });
            assert_eq!(on_other, 3.0 * k);
        }
    }
}

/// Row A26.
#[test]
fn a_shapeless_function_takes_as_many_elements_as_it_is_given() {
    let f = transforms::compile_shapeless(|x| Ok(vec![ops::sum(&ops::take(&x[0], &x[1], 0)?)?])).unwrap();
    let buffer = Array::vector(&[10i32, 20, 30, 40]).unwrap();
    for (n, expected) in [(1, 10), (2, 30), (3, 60), (4, 100)] {
        let indices = ops::arange_i32(0, n, 1).unwrap();
        assert_eq!(f.call(&[buffer.clone(), indices]).unwrap()[0].item::<i32>().unwrap(), expected);
    }
}

/// Row A27.
#[test]
fn a_shapeless_reshape_has_the_right_shape_or_is_an_error() {
    let f = transforms::compile_shapeless(|x| {
        let s = x[0].shape();
        Ok(vec![ops::reshape(&x[0], (s[0] * s[1], -1))?])
    })
    .unwrap();
    let call = |shape: (i32, i32, i32)| {
        f.call(&[Array::zeros::<f32>(shape).unwrap()]).and_then(|y| {
            y[0].eval()?;
            Ok(y[0].shape().to_vec())
        })
    };
    // What it is traced for has a value.
    assert_eq!(call((2, 3, 4)).unwrap(), [6, 4]);
    // Twice: what was refused is not taken for checked.
    for _ in 0..2 {
        match call((5, 3, 4)) {
            Ok(shape) => assert_eq!(shape, [15, 4]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Shape),
        }
    }
}

/// MLX runs reductions over one element in a shapeless trace, and crashes.
#[test]
fn a_shapeless_reduction_over_an_axis_of_one_or_more_elements_is_right() {
    let f = transforms::compile_shapeless(|x| {
        let deviation = ops::subtract(&x[0], &ops::mean_axis(&x[0], -1, true)?)?;
        Ok(vec![
            ops::softmax(&deviation, 0, true)?,
            ops::max_axes(&x[0], &[0, 1], false)?,
            ops::any_axis(&x[0], 0, false)?,
        ])
    })
    .unwrap();
    for shape in [(2, 3), (4, 1), (1, 1), (1, 5), (3, 1), (2, 3), (4, 5)] {
        let x = ops::reshape(
            &ops::arange(1.0, f64::from(1 + shape.0 * shape.1), 1.0, oxmlx::Dtype::Float32).unwrap(),
            shape,
        )
        .unwrap();
        let outputs = f.call(&[x]).unwrap();
        assert_eq!(outputs[1].item::<f32>().unwrap(), (shape.0 * shape.1) as f32);
        assert_eq!(outputs[2].to_vec::<bool>().unwrap(), vec![true; shape.1 as usize]);
        let sums = ops::sum_axis(&outputs[0], 0, false).unwrap();
        assert!(sums.all_close(&Array::ones::<f32>(shape.1).unwrap()).unwrap());
    }
}

/// MLX writes an update without the mapped axis to the first place only.
#[test]
fn a_mapped_write_of_one_update_reaches_every_slice() {
    let update = Array::vector(&[7.0f32, 8.0]).unwrap();
    let f = transforms::vmap(
        move |x: &[Array]| Ok(vec![ops::slice_update_add(&x[0], &update, &[1], &[3], &[1])?]),
        &[Some(0)],
        &[Some(0)],
    );
    let written = f(&[Array::ones::<f32>((2, 3)).unwrap()]).unwrap().swap_remove(0);
    assert_eq!(written.to_vec::<f32>().unwrap(), [1.0, 8.0, 9.0, 1.0, 8.0, 9.0]);
}

/// Row A34.
#[test]
fn evaluating_inside_a_closure_leaves_the_gradient_as_it_was() {
    let slope = transforms::grad(
        |x| {
            let y = ops::square(&x[0])?;
            y.eval()?;
            let z = ops::multiply(&y, &x[0])?;
            assert_eq!(z.item::<f32>()?, 8.0);
            ops::sum(&z)
        },
        &[0],
    );
    assert_eq!(slope(&[scalar(2.0)]).unwrap()[0].item::<f32>().unwrap(), 12.0);
}

#[test]
fn a_placeholder_that_escapes_is_an_error_when_it_is_evaluated() {
    let escaped = Arc::new(Mutex::new(None));
    let inside = Arc::clone(&escaped);
    let f = transforms::compile(move |x| {
        *inside.lock().unwrap() = Some(ops::square(&x[0])?);
        Ok(vec![x[0].clone()])
    })
    .unwrap();
    f.call(&[scalar(2.0)]).unwrap();
    let placeholder = escaped.lock().unwrap().take().unwrap();
    assert!(placeholder.item::<f32>().is_err());
    assert_usable();
}

#[test]
fn second_derivatives_nest() {
    let f = |x: &Array| ops::multiply(&ops::square(x)?, x);
    let third = transforms::grad_of(transforms::grad_of(transforms::grad_of(f)));
    assert_eq!(third(&scalar(5.0)).unwrap().item::<f32>().unwrap(), 6.0);
}

#[test]
fn closures_of_derivatives_may_borrow() {
    let weights = Array::vector(&[2.0f32, 3.0]).unwrap();
    let slope = transforms::grad(|x| ops::sum(&ops::multiply(&x[0], &weights)?), &[0]);
    assert_eq!(slope(&[Array::zeros::<f32>(2).unwrap()]).unwrap()[0].to_vec::<f32>().unwrap(), [2.0, 3.0]);
}

#[test]
fn vmap_is_a_loop_over_slices() {
    let a = ops::reshape(&ops::arange(0.0, 24.0, 1.0, oxmlx::Dtype::Float32).unwrap(), (2, 3, 4)).unwrap();
    let f = |x: &[Array]| {
        Ok(vec![ops::cumsum_axis(&ops::exp(&ops::multiply(&x[0], &Array::scalar(0.1f32)?)?)?, 0, ops::Scan::new())?])
    };
    for axis in [0, 1, 2, -1] {
        let mapped = transforms::vmap(f, &[Some(axis)], &[Some(0)])(std::slice::from_ref(&a)).unwrap().swap_remove(0);
        let slices = ops::unstack(&a, axis).unwrap();
        let each: Vec<Array> = slices.iter().map(|s| f(std::slice::from_ref(s)).unwrap().swap_remove(0)).collect();
        assert!(mapped.all_close(&ops::stack(&each, 0).unwrap()).unwrap(), "axis {axis}");
    }
}

#[test]
fn axes_that_do_not_fit_are_errors() {
    let f = |x: &[Array]| Ok(vec![x[0].clone()]);
    let a = Array::zeros::<f32>((2, 3)).unwrap();
    let kind = |ins: &[Option<i32>], outs: &[Option<i32>]| {
        transforms::vmap(f, ins, outs)(std::slice::from_ref(&a)).unwrap_err().kind()
    };
    assert_eq!(kind(&[Some(2)], &[Some(0)]), ErrorKind::Axis);
    assert_eq!(kind(&[None], &[Some(0)]), ErrorKind::Axis);
    assert_eq!(kind(&[Some(0), Some(0)], &[Some(0)]), ErrorKind::Shape);
    assert_eq!(kind(&[Some(0)], &[Some(5)]), ErrorKind::Axis);
    assert_eq!(kind(&[Some(0)], &[]), ErrorKind::Shape);
    let slope = transforms::grad(square_sum, &[1]);
    assert_eq!(slope(&[a]).unwrap_err().kind(), ErrorKind::Index);
}

#[test]
fn a_failed_trace_leaves_the_random_state_as_it_was() {
    let _sequence = sequence();
    random::seed(11);
    let expected = draw();
    random::seed(11);
    let x = [scalar(1.0)];
    let fail = |_: &[Array]| {
        random::uniform(3, Dtype::Float32, None)?;
        Err(planted())
    };
    let panic = |_: &[Array]| -> Result<Array> {
        random::uniform(3, Dtype::Float32, None)?;
        panic!("planted panic")
    };
    assert!(transforms::grad(fail, &[0])(&x).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| transforms::grad(panic, &[0])(&x))).is_err());
    assert!(transforms::checkpoint(move |x| fail(x).map(|a| vec![a]))(&x).is_err());
    // A trace that handles the failure of another keeps its own draw.
    let outer = transforms::grad(
        |x: &[Array]| {
            let first = random::uniform(3, Dtype::Float32, None)?;
            assert!(transforms::grad(fail, &[0])(x).is_err());
            ops::sum(&ops::multiply(&first, &x[0])?)
        },
        &[0],
    );
    let slope = outer(&x).unwrap()[0].item::<f32>().unwrap();
    assert!((slope - expected.iter().sum::<f32>()).abs() < 1e-6);
    let second = draw();
    random::seed(11);
    assert_eq!((draw(), draw()), (expected, second));
}

/// A trace that failed set the sequence back to where it was before the trace had MLX to itself, and others drew the same numbers again.
#[test]
fn a_failed_trace_takes_back_nothing_that_another_thread_drew() {
    let _sequence = sequence();
    random::seed(12);
    let expected = [draw(), draw()];
    random::seed(12);
    let lock = oxmlx_sys::lock::enter().unwrap();
    // It waits for the lock, holding what it knows by then.
    let failing = std::thread::spawn(|| assert!(transforms::grad(|_| Err(planted()), &[0])(&[scalar(1.0)]).is_err()));
    std::thread::sleep(std::time::Duration::from_millis(50));
    let first = draw();
    drop(lock);
    failing.join().unwrap();
    assert_eq!([first, draw()], expected);
}

/// On a GPU closures run on the owner thread, whatever thread calls the transform.
#[test]
fn failed_traces_on_the_owner_thread_leave_the_random_state_as_it_was_too() {
    for test in [
        "a_failed_trace_leaves_the_random_state_as_it_was",
        "a_failed_trace_takes_back_nothing_that_another_thread_drew",
    ] {
        let run = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env("OXMLX_OWNER_THREAD", "1")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && told.contains("1 passed"), "{told}");
    }
}

/// The sequence belongs to the process: who draws holds this. No other test of this file draws.
fn sequence() -> std::sync::MutexGuard<'static, ()> {
    static SEQUENCE: Mutex<()> = Mutex::new(());
    SEQUENCE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn draw() -> Vec<f32> {
    random::uniform(3, Dtype::Float32, None).unwrap().to_vec::<f32>().unwrap()
}

#[test]
fn a_custom_function_uses_its_rules() {
    let f = CustomFunction::new(|x| Ok(vec![ops::square(&x[0])?]))
        .vjp(|_, _, _| Ok(vec![Array::scalar(100.0f32)?]))
        .jvp(|_, _, _| Ok(vec![Array::scalar(200.0f32)?]))
        .vmap(|inputs, axes| Ok((vec![ops::negative(&inputs[0])?], vec![axes[0]])));
    let x = scalar(3.0);
    assert_eq!(f.call(std::slice::from_ref(&x)).unwrap()[0].item::<f32>().unwrap(), 9.0);
    let slope = transforms::grad(|x| Ok(f.call(x)?.swap_remove(0)), &[0]);
    assert_eq!(slope(std::slice::from_ref(&x)).unwrap()[0].item::<f32>().unwrap(), 100.0);
    let (_, tangents) = transforms::jvp(|x| f.call(x), std::slice::from_ref(&x), std::slice::from_ref(&x)).unwrap();
    assert_eq!(tangents[0].item::<f32>().unwrap(), 200.0);
    let mapped = transforms::vmap(|x| f.call(x), &[Some(0)], &[Some(0)]);
    assert_eq!(mapped(&[Array::vector(&[1.0f32, 2.0]).unwrap()]).unwrap()[0].to_vec::<f32>().unwrap(), [-1.0, -2.0]);
}

/// MLX takes the number and the shapes of what rules give on trust, and reads past its lists.
#[test]
fn a_rule_that_gives_too_little_or_another_shape_is_an_error() {
    let x = Array::vector(&[1.0f32, 2.0]).unwrap();
    let one = std::slice::from_ref(&x);
    let square = || CustomFunction::new(|x| Ok(vec![ops::square(&x[0])?]));
    let slope = |f: CustomFunction| transforms::grad(move |x: &[Array]| ops::sum(&f.call(x)?[0]), &[0]);
    let tangent = |f: CustomFunction| transforms::jvp(move |x| f.call(x), one, one);
    let over = |f: CustomFunction, axis| transforms::vmap(move |x: &[Array]| f.call(x), &[Some(0)], &[axis])(one);
    for wrong in [vec![], vec![scalar(1.0)], vec![x.clone(), x.clone()]] {
        let (a, b, c) = (wrong.clone(), wrong.clone(), wrong.clone());
        let error = slope(square().vjp(move |_, _, _| Ok(a.clone())))(one).unwrap_err();
        assert!(error.to_string().contains("vjp rule gave"), "{error}");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(tangent(square().jvp(move |_, _, _| Ok(b.clone()))).is_err());
        let all_axes = vec![Some(0); wrong.len()];
        assert!(over(square().vmap(move |_, _| Ok((c.clone(), all_axes.clone()))), Some(0)).is_err());
    }
    assert!(over(square().vmap(|x, _| Ok((x.to_vec(), vec![Some(7)]))), Some(0)).is_err());
    assert!(over(square().vmap(|x, _| Ok((x.to_vec(), vec![None]))), Some(0)).is_err());
}

/// MLX gives one gradient for the two inputs.
#[test]
fn the_gradient_of_a_padding_value_counts_the_places_it_fills() {
    let padded = |x: &[Array]| ops::sum(&ops::pad(&x[0], &[(1, 2)], Some(&x[1]), ops::PadMode::Constant)?);
    let x = [Array::vector(&[1.0f32, 2.0]).unwrap(), scalar(7.0)];
    let slopes = transforms::grad(padded, &[0, 1])(&x).unwrap();
    assert_eq!(slopes[0].to_vec::<f32>().unwrap(), [1.0, 1.0]);
    assert_eq!(slopes[1].item::<f32>().unwrap(), 3.0);
    let same = transforms::grad_of(|x| ops::sum(&ops::pad(x, &[(1, 2)], Some(x), ops::PadMode::Constant)?));
    assert_eq!(same(&scalar(1.0).reshape(1).unwrap()).unwrap().to_vec::<f32>().unwrap(), [4.0]);
    let mapped = transforms::vmap(
        |x| Ok(vec![ops::pad(&x[0], &[(1, 0)], Some(&x[1]), ops::PadMode::Constant)?]),
        &[None, Some(0)],
        &[Some(0)],
    );
    let rows = mapped(&[x[0].clone(), x[0].clone()]).unwrap();
    assert_eq!(rows[0].to_vec::<f32>().unwrap(), [1.0, 1.0, 2.0, 2.0, 1.0, 2.0]);
}

#[test]
fn a_custom_function_of_no_outputs_is_an_error() {
    let none = CustomFunction::new(|_| Ok(vec![])).vjp(|x, _, _| Ok(x.to_vec()));
    assert_eq!(none.call(&[scalar(1.0)]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let again = transforms::checkpoint(|_| Ok(vec![]));
    assert_eq!(again(&[scalar(1.0)]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn an_exported_function_comes_back_with_names_and_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.mlxfn");
    let mut exporter = transforms::Exporter::with_names(
        &path,
        |x, named| Ok(vec![ops::add(&ops::square(&x[0])?, &named[0].1)?]),
        false,
        "about",
    )
    .unwrap();
    exporter.add(&[scalar(1.0)], &[("bias", scalar(1.0))]).unwrap();
    exporter.close().unwrap();
    // SAFETY: the file is as it was written above.
    let f = unsafe { transforms::import_function(&path) }.unwrap();
    assert_eq!(f.metadata().unwrap(), "about");
    assert_eq!(f.call(&[scalar(3.0)], &[("bias", scalar(1.0))]).unwrap()[0].item::<f32>().unwrap(), 10.0);
    assert!(f.call(&[Array::zeros::<i32>((2, 2)).unwrap()], &[]).is_err());
    // SAFETY: there is no such file.
    let missing = unsafe { transforms::import_function(folder.path().join("none")) };
    assert_eq!(missing.err().unwrap().kind(), ErrorKind::Io);
}

/// MLX keeps the reductions of a shapeless trace for axes of one element or none, and crashes when it runs them.
#[test]
fn an_imported_shapeless_function_reduces_axes_of_one_element_and_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.mlxfn");
    let f = |x: &[Array]| {
        Ok(vec![ops::softmax(&x[0], -1, false)?, ops::sum_axis(&x[0], 1, true)?, ops::max_axis(&x[0], 0, false)?])
    };
    transforms::export_function(&path, f, &[Array::ones::<f32>((2, 3)).unwrap()], true).unwrap();
    // SAFETY: the file is as it was written above.
    let f = unsafe { transforms::import_function(&path) }.unwrap();
    let call = |shape: [i32; 2]| -> Result<Vec<Vec<f32>>, Error> {
        f.call(&[Array::ones::<f32>(shape)?], &[])?.iter().map(Array::to_vec::<f32>).collect()
    };
    assert_eq!(call([2, 1]).unwrap(), [vec![1.0, 1.0], vec![1.0, 1.0], vec![1.0]]);
    assert_eq!(call([1, 2]).unwrap(), [vec![0.5, 0.5], vec![2.0], vec![1.0, 1.0]]);
    assert_eq!(call([2, 0]).unwrap(), [vec![], vec![0.0, 0.0], vec![]]);
    assert_eq!(call([0, 2]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}
