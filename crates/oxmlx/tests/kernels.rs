//! Kernels inside the graph. Here: values and failures of bodies in Rust, and what they must not do, on a stream of the CPU whatever
//! `OXMLX_TEST_DEVICE` says, since they have no other body. The modules: what a kernel declares, the stock kernels on the device of
//! `OXMLX_TEST_DEVICE`, Metal in an emulator, the guide's example.
#![allow(unsafe_code)] // sources are their author's

#[path = "support/alone.rs"]
mod alone;
#[path = "kernels/builder.rs"]
mod builder;
#[path = "support/device.rs"]
mod device;
#[path = "kernels/emulated.rs"]
mod emulated;
#[path = "kernels/emulator.rs"]
mod emulator;
#[path = "kernels/guide.rs"]
mod guide;
#[path = "kernels/reference.rs"]
mod reference;
#[path = "kernels/stock.rs"]
mod stock;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxmlx::kernel::Kernel;
use oxmlx::{Array, Device, Dtype, Error, ErrorKind, Stream, linalg, ops, transforms};

use alone::alone;
use device::on_cpu;

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
    on_cpu(|| {
        let copy = kernel_of("copy", |x, y| {
            y.copy_from_slice(x);
            Ok(())
        });
        let y = copy.apply_one(&[x().transpose().unwrap()]).unwrap();
        assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 3.0, 2.0, 4.0]);
    });
}

#[test]
fn a_body_that_packs_a_view_larger_than_any_memory_gets_an_error() {
    on_cpu(|| {
        let pack = Kernel::builder("pack")
            .output(Dtype::Float32, |_| Ok(vec![]))
            .cpu(|inputs, _| inputs[0].as_slice::<f32>().map(|_| ()))
            .build()
            .unwrap();
        let wide = ops::broadcast_to(&Array::scalar(1.0f32).unwrap(), (1 << 30, 1 << 30, 2)).unwrap();
        let error = pack.apply_one(&[wide]).unwrap().eval().unwrap_err();
        assert!(error.to_string().contains("a copy of an input of shape"), "{error}");
        assert_usable();
    });
}

/// The failure crosses streams and devices: a body of Rust has the CPU only, what depends on it and what does not are the test device's.
#[test]
fn a_failure_on_the_cpu_reaches_a_dependent_on_the_test_device() {
    let bad = on_cpu(|| kernel_of("failing", |_, _| Err("planted failure".into())).apply_one(&[x()]).unwrap());
    device::on_device(|| {
        let (dependent, innocent) = ((&bad + &x()).unwrap(), (&x() + &x()).unwrap());
        for _ in 0..2 {
            let error = oxmlx::eval(&[dependent.clone(), innocent.clone()]).unwrap_err();
            assert_eq!(error.message(), "planted failure");
            assert_eq!(dependent.to_vec::<f32>().unwrap_err().message(), "planted failure");
            assert_eq!(innocent.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
        }
    });
}

#[test]
fn a_body_in_rust_takes_what_the_test_device_computed_and_gives_it_back() {
    device::on_device(|| {
        let computed = ops::multiply(&x(), &Array::scalar(3.0f32).unwrap()).unwrap();
        let increment = kernel_of("increment", |x, y| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = x + 1.0);
            Ok(())
        });
        let more = on_cpu(|| increment.apply_one(&[computed])).unwrap();
        assert_eq!(ops::square(&more).unwrap().to_vec::<f32>().unwrap(), [16.0, 49.0, 100.0, 169.0]);
    });
}

/// On CUDA, MLX waits for the CPU where it hands work to the GPU that needs it.
#[test]
fn while_the_test_device_needs_a_body_on_the_cpu_others_go_on() {
    if !alone("while_the_test_device_needs_a_body_on_the_cpu_others_go_on") {
        return;
    }
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    // Streams of their own: what comes behind a slow body on its stream waits.
    let (host, device) = (Stream::new(Device::Cpu).unwrap(), Stream::new(device::device()).unwrap());
    let slow = kernel_of("slow", move |x, y| {
        gate.lock().unwrap().recv_timeout(std::time::Duration::from_secs(30))?;
        y.copy_from_slice(x);
        Ok(())
    });
    let copy = kernel_of("copy", |x, y| {
        y.copy_from_slice(x);
        Ok(())
    });
    let slow = host.scope(|| slow.apply_one(&[x()]).unwrap()).unwrap();
    let dependent = device.scope(|| ops::sum(&(&slow + &x()).unwrap()).unwrap()).unwrap();
    // What depends on it by the CPU again.
    let further = host.scope(|| copy.apply_one(std::slice::from_ref(&dependent)).unwrap()).unwrap();
    let last = device.scope(|| ops::square(&further).unwrap()).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| last.item::<f32>().unwrap());
        for _ in 0..50 {
            device::on_device(|| assert_eq!((&x() + &x()).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]));
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(!waiting.is_finished());
        open.send(()).unwrap();
        assert_eq!(waiting.join().unwrap(), 400.0);
    });
}

#[test]
fn an_error_of_a_body_comes_out_at_evaluation_and_the_next_calls_succeed() {
    on_cpu(|| {
        let failing = kernel_of("failing", |_, _| Err("planted failure".into()));
        for _ in 0..20 {
            let y = failing.apply_one(&[x()]).unwrap();
            let error = y.eval().unwrap_err();
            assert!(error.to_string().contains("planted failure"), "{error}");
            assert_usable();
        }
    });
}

/// Row A10.
#[test]
fn a_panic_of_a_body_goes_on_in_the_first_waiter_and_is_an_error_for_those_after() {
    on_cpu(|| {
        #[derive(Debug, PartialEq)]
        struct Payload(u32);
        let panicking = kernel_of("panicking", |_, _| std::panic::panic_any(Payload(7)));
        for _ in 0..20 {
            let y = panicking.apply_one(&[x()]).unwrap();
            let dependent = (&y + &x()).unwrap();
            let payload = catch_unwind(AssertUnwindSafe(|| dependent.eval())).unwrap_err();
            assert_eq!(payload.downcast_ref::<Payload>(), Some(&Payload(7)));
            for array in [&y, &dependent, &y] {
                let error = array.to_vec::<f32>().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Closure);
                assert!(error.to_string().contains("kernel panicking panicked"), "{error}");
            }
            assert_usable();
        }
    });
}

#[test]
fn an_output_takes_the_memory_of_an_input_that_nobody_else_holds() {
    on_cpu(|| {
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
    });
}

#[test]
fn a_body_that_enters_mlx_gets_an_error_of_its_own() {
    on_cpu(|| {
        let entering = kernel_of("entering", |_, y| {
            let error = Array::scalar(1.0f32).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            y.fill(7.0);
            Ok(())
        });
        assert_eq!(entering.apply_one(&[x()]).unwrap().to_vec::<f32>().unwrap(), [7.0; 4]);
        assert_usable();
    });
}

#[test]
fn a_handle_dropped_inside_a_body_is_freed_later() {
    on_cpu(|| {
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
    });
}

#[test]
fn a_failing_shape_rule_is_an_error_of_the_closure() {
    on_cpu(|| {
        let kernel = Kernel::builder("shapeless")
            .output(Dtype::Float32, |_| Err("planted shape failure".into()))
            .cpu(|_, _| Ok(()))
            .build()
            .unwrap();
        let error = kernel.apply(&[x()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closure);
        assert!(error.to_string().contains("planted shape failure"), "{error}");
        assert_usable();
    });
}

#[test]
fn a_body_that_asks_for_another_dtype_gets_an_error() {
    on_cpu(|| {
        let kernel = kernel_of("typed", |_, _| Ok(()));
        let ints = Array::zeros::<i32>(2).unwrap();
        let error = kernel.apply_one(&[ints]).unwrap().eval().unwrap_err();
        assert!(error.to_string().contains("asks for float32, the memory holds int32"), "{error}");
        assert_usable();
    });
}

/// Row A21.
#[test]
fn a_kernel_name_with_a_nul_is_refused() {
    on_cpu(|| {
        let error =
            Kernel::builder("a\0b").output(Dtype::Float32, |_| Ok(vec![])).cpu(|_, _| Ok(())).build().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    });
}

/// Row A21: modes are enums, and paths are refused by the system's own rule.
#[test]
fn a_path_with_a_nul_is_refused() {
    use oxmlx::io;
    let path = "a\0b";
    let x = || Array::scalar(1.0f32).unwrap();
    let errors = [
        io::load_npy(path).unwrap_err(),
        io::load_safetensors(path).unwrap_err(),
        io::load_gguf(path).unwrap_err(),
        io::save_npy(path, &x()).unwrap_err(),
        io::save_safetensors(path, &[("x", x())], &[]).unwrap_err(),
        io::save_gguf(path, &[("x", x())], &[]).unwrap_err(),
        transforms::export_function(path, |x| Ok(x.to_vec()), &[x()], false).unwrap_err(),
        // SAFETY: no file has such a name.
        unsafe { transforms::import_function(path) }.err().unwrap(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    }
    // Not a file of the name up to the NUL.
    assert!(!std::path::Path::new("a").exists());
}

/// Row A08.
#[test]
fn a_good_array_evaluated_beside_a_failing_one_has_its_value() {
    on_cpu(|| {
        let failing = kernel_of("failing", |_, _| Err("planted failure".into()));
        for bad_first in [false, true] {
            let good = ops::add(&x(), &x()).unwrap();
            let bad = failing.apply_one(&[x()]).unwrap();
            let both = if bad_first { [bad.clone(), good.clone()] } else { [good.clone(), bad.clone()] };
            let error = oxmlx::eval(&both).unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Closure, "planted failure"));
            assert_eq!(good.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
            assert!(bad.eval().is_err());
        }
    });
}

/// Row A32.
#[test]
fn a_failure_reaches_what_depends_on_it_each_time_and_nothing_else() {
    on_cpu(|| {
        let failing = kernel_of("failing", |_, _| Err("planted failure".into()));
        let bad = failing.apply_one(&[x()]).unwrap();
        let lazy_dependent = ops::sum(&ops::exp(&bad).unwrap()).unwrap();
        oxmlx::async_eval(std::slice::from_ref(&bad)).unwrap();
        let innocent = (x() + x()).unwrap();
        assert_eq!(innocent.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
        // One of them is built, and one evaluated, after the failure.
        let later_dependent = ops::reshape(&bad, 4).unwrap();
        let partly = (&later_dependent + &Array::scalar(1.0f32).unwrap()).unwrap();
        for _ in 0..3 {
            for array in [&bad, &lazy_dependent, &later_dependent, &partly] {
                assert_eq!(array.eval().unwrap_err().message(), "planted failure");
                assert_eq!(array.to_vec::<f32>().unwrap_err().message(), "planted failure");
                assert!(array.try_as_slice::<f32>().is_err());
                assert_eq!(innocent.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
            }
            assert!(bad.is_available().is_err());
            assert!(format!("{bad}").contains("planted failure"));
        }
        assert_usable();
    });
}

#[test]
fn a_failure_in_flight_reaches_an_evaluation_that_was_started_before_it_happened() {
    if !alone("a_failure_in_flight_reaches_an_evaluation_that_was_started_before_it_happened") {
        return;
    }
    on_cpu(|| {
        use std::sync::Barrier;
        let (entered, go) = (Arc::new(Barrier::new(2)), Arc::new(Barrier::new(2)));
        let inside = (Arc::clone(&entered), Arc::clone(&go));
        let failing = kernel_of("slow", move |_, _| {
            inside.0.wait();
            inside.1.wait();
            Err("planted failure".into())
        });
        let bad = failing.apply_one(&[x()]).unwrap();
        oxmlx::async_eval(std::slice::from_ref(&bad)).unwrap();
        entered.wait();
        let dependent = (&bad + &x()).unwrap();
        let innocent = (&x() + &x()).unwrap();
        oxmlx::async_eval(&[dependent.clone(), innocent.clone()]).unwrap();
        let further = ops::negative(&dependent).unwrap();
        oxmlx::async_eval(std::slice::from_ref(&further)).unwrap();
        go.wait();
        for _ in 0..2 {
            assert_eq!(further.eval().unwrap_err().message(), "planted failure");
            assert_eq!(dependent.to_vec::<f32>().unwrap_err().message(), "planted failure");
            assert_eq!(innocent.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
        }
    });
}

#[test]
fn a_failure_on_one_stream_reaches_a_dependent_on_another() {
    on_cpu(|| {
        let (one, other) = (Stream::new(Device::Cpu).unwrap(), Stream::new(Device::Cpu).unwrap());
        let failing = kernel_of("failing", |_, _| Err("planted failure".into()));
        let bad = one.scope(|| failing.apply_one(&[x()])).unwrap().unwrap();
        let (dependent, innocent) = other.scope(|| ((&bad + &x()).unwrap(), (&x() + &x()).unwrap())).unwrap();
        assert_eq!(oxmlx::eval(&[dependent.clone(), innocent.clone()]).unwrap_err().message(), "planted failure");
        assert_eq!(innocent.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(bad.eval().unwrap_err().message(), "planted failure");
        // Neither stream is spoilt.
        assert_eq!(one.scope(|| (x() + x()).unwrap().to_vec::<f32>().unwrap()).unwrap(), [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(other.scope(|| (x() + x()).unwrap().to_vec::<f32>().unwrap()).unwrap(), [2.0, 4.0, 6.0, 8.0]);
    });
}

#[test]
fn the_error_of_a_body_keeps_its_type() {
    on_cpu(|| {
        #[derive(Debug)]
        struct Planted(u32);
        impl std::fmt::Display for Planted {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "planted {}", self.0)
            }
        }
        impl std::error::Error for Planted {}
        let foreign = kernel_of("foreign", |_, _| Err(Box::new(Planted(3)))).apply_one(&[x()]).unwrap();
        let own =
            kernel_of("own", |_, _| Err(Box::new(Error::new(ErrorKind::Group, "mine", "planted").with_shape(&[9]))));
        let own = own.apply_one(&[x()]).unwrap();
        for _ in 0..2 {
            let error = foreign.eval().unwrap_err();
            assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Closure, "eval: planted 3"));
            assert_eq!(
                std::error::Error::source(&error).and_then(|e| e.downcast_ref::<Planted>()).map(|p| p.0),
                Some(3)
            );
            let error = own.eval().unwrap_err();
            assert_eq!((error.kind(), error.op(), error.message()), (ErrorKind::Group, "mine", "planted"));
            assert_eq!(error.shapes(), [[9]]);
        }
    });
}

#[test]
fn a_failure_reaches_every_output_of_its_node_and_is_the_first_of_several() {
    on_cpu(|| {
        let two = Kernel::builder("two")
            .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
            .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
            .cpu(|_, _| Err("first failure".into()))
            .build()
            .unwrap();
        let outputs = two.apply(&[x()]).unwrap();
        let second = kernel_of("second", |_, _| Err("second failure".into()));
        let chained = second.apply_one(&outputs[1..]).unwrap();
        assert_eq!(chained.eval().unwrap_err().message(), "first failure");
        for output in &outputs {
            assert_eq!(output.to_vec::<f32>().unwrap_err().message(), "first failure");
        }
    });
}

#[test]
fn a_failing_kernel_inside_a_transform_is_its_error_and_the_next_trace_succeeds() {
    on_cpu(|| {
        let failing = kernel_of("failing", |_, _| Err("planted failure".into()));
        let slope = transforms::grad(
            |x: &[Array]| {
                failing.apply_one(&[ops::stop_gradient(&x[0])?])?.eval()?;
                ops::sum(&x[0])
            },
            &[0],
        );
        assert_eq!(slope(&[x()]).unwrap_err().message(), "planted failure");
        let slope = transforms::grad(|x: &[Array]| ops::sum(&ops::square(&x[0])?), &[0]);
        assert_eq!(slope(&[x()]).unwrap()[0].to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    });
}

#[test]
fn a_compiled_function_fails_for_the_inputs_that_its_kernel_refuses_and_for_no_others() {
    on_cpu(|| {
        let picky = kernel_of("picky", |x, y| {
            if x[0] < 0.0 {
                return Err(format!("{} is negative", x[0]).into());
            }
            y.copy_from_slice(x);
            Ok(())
        });
        let f = transforms::compile(move |x| Ok(vec![ops::add(&picky.apply_one(x)?, &x[0])?])).unwrap();
        let of = |value: f32| f.call(&[Array::scalar(value).unwrap()]).unwrap().swap_remove(0);
        let results: Vec<Array> = [1.0, -2.0, 3.0, -4.0].map(of).into();
        assert!(oxmlx::eval(&results).is_err());
        assert_eq!(results[0].item::<f32>().unwrap(), 2.0);
        assert_eq!(results[1].item::<f32>().unwrap_err().message(), "-2 is negative");
        assert_eq!(results[2].item::<f32>().unwrap(), 6.0);
        assert_eq!(results[3].item::<f32>().unwrap_err().message(), "-4 is negative");
    });
}

#[test]
fn the_error_and_the_panic_of_a_gradient_rule_come_out_of_the_transform() {
    on_cpu(|| {
        let kernel = |rule: fn() -> Result<Vec<Array>, oxmlx::kernel::BoxError>| {
            Kernel::builder("ruled")
                .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
                .cpu(|_, _| Ok(()))
                .vjp(move |_, _, _| rule())
                .build()
                .unwrap()
        };
        let failing = kernel(|| Err(Box::new(Error::new(ErrorKind::Group, "mine", "planted"))));
        let error = transforms::grad(|x| ops::sum(&failing.apply_one(x)?), &[0])(&[x()]).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Group, "mine"));
        let panicking = kernel(|| panic!("planted panic"));
        let slope = transforms::grad(|x| ops::sum(&panicking.apply_one(x)?), &[0]);
        let payload = catch_unwind(AssertUnwindSafe(|| slope(&[x()]))).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"planted panic"));
        assert_usable();
    });
}

/// Row A06, and row A32 for a kernel of MLX's own.
#[test]
fn a_singular_inverse_fails_alone() {
    on_cpu(|| {
        let singular = Array::matrix(&[[1.0f32, 2.0], [2.0, 4.0]]).unwrap();
        for _ in 0..20 {
            let bad = linalg::inv(&singular).unwrap();
            let dependent = ops::sum(&bad).unwrap();
            let good = linalg::inv(&Array::matrix(&[[2.0f32, 0.0], [0.0, 4.0]]).unwrap()).unwrap();
            oxmlx::async_eval(&[bad.clone(), good.clone()]).unwrap();
            let innocent = (x() + x()).unwrap();
            for _ in 0..2 {
                assert_eq!(innocent.to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
                assert_eq!(good.to_vec::<f32>().unwrap(), [0.5, 0.0, 0.0, 0.25]);
                for array in [&bad, &dependent] {
                    let error = array.to_vec::<f32>().unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Backend);
                    assert!(error.message().starts_with("[Inverse::eval_cpu]"), "{error}");
                }
            }
        }
        let upper = Array::matrix(&[[1.0f32, 2.0], [0.0, 0.0]]).unwrap();
        assert!(linalg::tri_inv(&upper, true).unwrap().eval().is_err());
    });
}

/// Row A22: nothing is kept of failures that nobody holds.
#[test]
fn failures_leave_no_records_behind() {
    on_cpu(|| {
        let failing = kernel_of("failing", |_, _| Err("planted failure".into()));
        for _ in 0..1000 {
            let y = failing.apply_one(&[x()]).unwrap();
            assert!((&y + &y).unwrap().eval().is_err());
        }
        let records = oxmlx_sys::evaluation::records().unwrap();
        assert!(records < 500, "{records} records");
    });
}
