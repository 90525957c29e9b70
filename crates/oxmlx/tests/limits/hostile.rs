//! What safe code may hand over, and when it may call, so that MLX would abort, crash or wait for ever.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use oxmlx::kernel::{BoxError, Kernel};
use oxmlx::transforms::{self, Compiled, CustomFunction, Exporter};
use oxmlx::{Array, Device, Dtype, ErrorKind, Result, Stream, ops};

use crate::device::on_cpu;

fn scalar(x: f32) -> Array {
    Array::scalar(x).unwrap()
}

fn assert_usable() {
    let slope = transforms::grad(|x: &[Array]| ops::square(&x[0]), &[0]);
    assert_eq!(slope(&[scalar(3.0)]).unwrap()[0].item::<f32>().unwrap(), 6.0);
}

/// Panics when it is dropped, and counts that.
struct Bomb(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("planted panic of a drop");
    }
}

fn kernel(body: impl Fn() -> Result<(), BoxError> + Send + Sync + 'static) -> Kernel {
    Kernel::builder("hostile")
        .output(Dtype::Float32, |_| Ok(vec![]))
        .cpu(move |_, outputs| {
            body()?;
            outputs[0].as_mut_slice::<f32>()?.fill(1.0);
            Ok(())
        })
        .build()
        .unwrap()
}

/// C++ is the last to hold each of these: a panic that went on there would end the process.
#[test]
fn what_a_closure_captured_may_panic_as_it_is_dropped() {
    on_cpu(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let bomb = || Bomb(Arc::clone(&dropped));
        let folder = tempfile::tempdir().unwrap();
        let x = [scalar(2.0)];
        let (a, b, c, d, e, f, g) = (bomb(), bomb(), bomb(), bomb(), bomb(), bomb(), bomb());

        let compiled = transforms::compile(move |x| Ok(vec![ops::square(&x[0]).inspect(|_| _ = &a)?])).unwrap();
        compiled.call(&x).unwrap();
        drop(compiled);

        let ruled = CustomFunction::new(move |x| Ok(vec![ops::square(&x[0]).inspect(|_| _ = &b)?]))
            .vjp(move |_, cotangents, _| Ok(cotangents.to_vec()).inspect(|_| _ = &c));
        let y = ruled.call(&x).unwrap();
        drop(ruled);
        drop(y);

        let again = transforms::checkpoint(move |x: &[Array]| Ok(vec![ops::square(&x[0]).inspect(|_| _ = &d)?]));
        let y = again(&x).unwrap();
        drop(again);
        drop(y);

        let body = kernel(move || Ok(()).inspect(|()| _ = &e));
        let y = body.apply_one(&[]).unwrap();
        drop(body);
        y.eval().unwrap();
        drop(y);

        let slow = kernel(move || {
            thread::sleep(Duration::from_millis(50));
            Ok(()).inspect(|()| _ = &f)
        });
        let y = slow.apply_one(&[]).unwrap();
        drop(slow);
        oxmlx::async_eval(&[y]).unwrap();
        oxmlx::stream::synchronize().unwrap();

        let path = folder.path().join("f.mlxfn");
        let mut exporter = Exporter::new(path, move |x| Ok(x.to_vec()).inspect(|_| _ = &g), false).unwrap();
        exporter.add(&x, &[]).unwrap();
        exporter.close().unwrap();

        // What a stream's thread lets go of is freed a little later.
        let all = (0..100).any(|_| {
            assert_usable();
            thread::sleep(Duration::from_millis(10));
            dropped.load(Ordering::SeqCst) == 7
        });
        assert!(all, "{} of 7 were dropped", dropped.load(Ordering::SeqCst));
    });
}

#[test]
fn a_panic_whose_payload_panics_as_it_is_dropped_ends_nothing() {
    on_cpu(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&dropped);
        let panicking = kernel(move || panic_any(Bomb(Arc::clone(&count))));
        // Nobody asks for these; of two in one evaluation the second is let go of unseen.
        for _ in 0..50 {
            oxmlx::async_eval(&[panicking.apply_one(&[]).unwrap()]).unwrap();
        }
        let both = (panicking.apply_one(&[]).unwrap() + panicking.apply_one(&[]).unwrap()).unwrap();
        std::mem::forget(catch_unwind(AssertUnwindSafe(|| both.eval())));
        drop(both);
        for _ in 0..100 {
            assert_usable();
        }
        assert!(dropped.load(Ordering::SeqCst) > 40);
    });
}

#[derive(Debug)]
struct Unprintable(bool);

impl std::fmt::Display for Unprintable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 { panic!("planted panic of a Display") } else { Err(std::fmt::Error) }
    }
}

impl std::error::Error for Unprintable {}

#[test]
fn an_error_that_can_not_be_printed_is_an_error() {
    on_cpu(|| {
        for panics in [false, true] {
            let failing = kernel(move || Err(Box::new(Unprintable(panics))));
            let y = failing.apply_one(&[]).unwrap();
            for _ in 0..2 {
                let error = y.eval().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Closure);
                assert!(error.message().starts_with("an error that"), "{error}");
            }
            let shapeless = Kernel::builder("shapeless")
                .output(Dtype::Float32, move |_| Err(Box::new(Unprintable(panics))))
                .cpu(|_, _| Ok(()))
                .build()
                .unwrap();
            assert_eq!(shapeless.apply_one(&[]).unwrap_err().kind(), ErrorKind::Closure);
            assert_usable();
        }
    });
}

/// MLX writes a trace into a list that such a call makes longer, and with that moves.
#[test]
fn a_compiled_function_may_call_itself() {
    for shapeless in [false, true] {
        let itself: Arc<OnceLock<Compiled>> = Arc::default();
        let inner = Arc::clone(&itself);
        // The sum of x, and of x without its first element, and so on.
        let f = move |x: &[Array]| -> Result<Vec<Array>> {
            let sum = ops::sum(&x[0])?;
            let rest = x[1].size() as i32 - 1;
            if rest == 0 {
                return Ok(vec![sum]);
            }
            let shorter = ops::arange(0.0, rest.into(), 1.0, Dtype::Float32)?;
            let below = inner.get().unwrap().call(&[shorter.clone(), shorter])?;
            Ok(vec![ops::add(&sum, &below[0])?])
        };
        let compiled = if shapeless { transforms::compile_shapeless(f) } else { transforms::compile(f) };
        assert!(itself.set(compiled.unwrap()).is_ok());
        for n in [30u8, 5, 30] {
            let x = Array::vector(&vec![1.0f32; n.into()]).unwrap();
            // n ones, and below it the sums of 0, 1, ... for each shorter length.
            let expected: u32 = u32::from(n) + (1..u32::from(n)).map(|m| m * (m - 1) / 2).sum::<u32>();
            let found = itself.get().unwrap().call(&[x.clone(), x]);
            // A shapeless trace keeps the depth that it was traced for.
            if !shapeless {
                assert_eq!(found.unwrap()[0].item::<f32>().unwrap(), expected as f32, "{n}");
            } else if let Ok(found) = found {
                found[0].eval().unwrap();
            }
        }
        assert_usable();
    }
}

/// Uses MLX when it is dropped.
struct Late(Option<Compiled>, Arc<AtomicUsize>);

impl Drop for Late {
    fn drop(&mut self) {
        let Some(f) = &self.0 else { return };
        let refused = |outcome: Result<()>| outcome.is_err_and(|error| error.kind() == ErrorKind::Unsupported);
        let built = Array::scalar(1.0f32).map(|_| ());
        let called = f.call(&[]).map(|_| ());
        let opened = Stream::new(Device::Cpu).map(|_| ());
        if refused(built) && refused(called) && refused(opened) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
}

thread_local!(static LATE: RefCell<Vec<Late>> = const { RefCell::new(Vec::new()) });

/// Values of a thread are dropped in the reverse order of their first use: this one after MLX's own, which the calls would use.
#[test]
fn a_value_of_a_thread_that_is_dropped_after_mlxs_own_gets_errors() {
    let refused = Arc::new(AtomicUsize::new(0));
    for _ in 0..20 {
        let refused = Arc::clone(&refused);
        thread::spawn(move || {
            LATE.with_borrow_mut(|late| late.reserve(1));
            let held = Array::vector(&[1.0f32; 100]).unwrap();
            held.eval().unwrap();
            let f = transforms::compile(move |_| Ok(vec![ops::square(&held)?])).unwrap();
            assert_eq!(f.call(&[]).unwrap()[0].to_vec::<f32>().unwrap(), [1.0; 100]);
            LATE.with_borrow_mut(|late| late.push(Late(Some(f), refused)));
        })
        .join()
        .unwrap();
    }
    assert_eq!(refused.load(Ordering::SeqCst), 20);
    assert_usable();
}

/// The pool's threads would wait for the lock, and the lock's holder for them.
#[test]
fn tasks_of_a_body_or_a_closure_that_use_mlx_get_errors_and_nobody_waits() {
    on_cpu(|| {
        let all_refused = || {
            let used = AtomicUsize::new(0);
            oxmlx::kernel::parallel(64, |_| {
                used.fetch_add(usize::from(Array::scalar(1.0f32).is_ok()), Ordering::SeqCst);
            });
            used.into_inner() == 0
        };
        let using = kernel(move || if all_refused() { Ok(()) } else { Err("a task used MLX".into()) });
        for _ in 0..20 {
            let many: Vec<Array> = (0..20).map(|_| using.apply_one(&[]).unwrap()).collect();
            oxmlx::async_eval(&many).unwrap();
            oxmlx::eval(&many).unwrap();
        }
        let slope = transforms::grad(
            move |x: &[Array]| {
                assert!(all_refused());
                ops::square(&x[0])
            },
            &[0],
        );
        assert_eq!(slope(&[scalar(3.0)]).unwrap()[0].item::<f32>().unwrap(), 6.0);
        // Elsewhere they may.
        oxmlx::kernel::parallel(8, |i| assert_eq!(scalar(i as f32).item::<f32>().unwrap(), i as f32));
    });
}

#[test]
fn a_graph_too_deep_for_an_export_is_an_error() {
    let chain = |x: &Array| (0..500_001).try_fold(x.clone(), |y, _| ops::add(&y, x));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.mlxfn");
    let written = transforms::export_function(&path, move |x| Ok(vec![chain(&x[0])?]), &[scalar(0.0)], false);
    let told = transforms::export_steps(move |x, _| Ok(vec![chain(&x[0])?]), &[scalar(0.0)], &[], false);
    for error in [written.unwrap_err(), told.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("nodes deep"), "{error}");
    }
}

/// In a process of little memory: fills it with arrays of each kind of node, until there is an error.
pub(crate) fn fill_memory() {
    oxmlx::runtime::set_cpu_threads(2);
    const ELEMENTS: i32 = 16 << 20;
    let filled = || {
        Kernel::builder("filled")
            .output(Dtype::Float32, |_| Ok(vec![ELEMENTS]))
            .cpu(|_, outputs| {
                outputs[0].as_mut_slice::<f32>()?.fill(1.0);
                Ok(())
            })
            .build()
            .unwrap()
            .apply_one(&[])
    };
    let made: [&dyn Fn() -> Result<Array>; 4] = [
        &|| ops::exp(&Array::full(ELEMENTS, 1.0f32)?),
        &|| ops::matmul(&Array::ones::<f32>((4096, 8))?, &Array::ones::<f32>((8, 4096))?),
        &|| ops::cumsum_axis(&Array::ones::<f32>((4096, 4096))?, 0, ops::Scan::new()),
        &filled,
    ];
    for make in made {
        let mut held = Vec::new();
        let error = loop {
            match make().and_then(|a| a.eval().map(|()| a)) {
                Ok(a) => held.push(a),
                Err(error) => break error,
            }
            assert!(held.len() < 50, "50 arrays of 64 MiB in 2 GB");
        };
        assert!(matches!(error.kind(), ErrorKind::OutOfMemory | ErrorKind::Backend), "{error:?}");
        held.truncate(1);
        assert!(held[0].size() >= ELEMENTS as usize);
        assert_usable();
    }
}

/// In a process of little memory: more streams than there is room for threads of.
pub(crate) fn fill_with_streams() {
    let streams: Vec<Stream> = (0..500).map_while(|_| Stream::new(Device::Cpu).ok()).collect();
    let mut failed = 0;
    for stream in &streams {
        match stream.scope(|| ops::square(&scalar(3.0))?.item::<f32>()).unwrap() {
            Ok(value) => assert_eq!(value, 9.0),
            Err(_) => failed += 1,
        }
    }
    assert!(failed > 0, "{} streams ran", streams.len());
    // Nor for the stack of a transform.
    let slope = transforms::grad(|x: &[Array]| ops::square(&x[0]), &[0])(&[scalar(3.0)]);
    assert!(slope.is_ok() || slope.is_err_and(|error| error.kind() == ErrorKind::OutOfMemory));
    drop(streams);
}
