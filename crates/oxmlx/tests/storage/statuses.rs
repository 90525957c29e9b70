//! Every reason for which there is no view.

use std::error::Error as _;
use std::sync::mpsc;

use oxmlx::kernel::Kernel;
use oxmlx::storage::{StorageBackend, StorageExportError, StorageExportOptions, loaded_backend};
use oxmlx::{Array, Dtype, ErrorKind, Stream, async_eval, ops};

use crate::alone::alone;
use crate::device::on_device;
use crate::{any_layout, counted};

fn waiting() -> StorageExportOptions {
    StorageExportOptions::default().wait_until_available(true)
}

#[test]
fn a_lazy_array_is_not_available_and_stays_lazy_whatever_the_options() {
    on_device(|| {
        let a = (counted(&[4]) + counted(&[4])).unwrap();
        for options in
            [StorageExportOptions::default(), waiting(), any_layout(), waiting().require_row_contiguous(false)]
        {
            assert!(matches!(a.storage_view(&options), Err(StorageExportError::ArrayNotAvailable)));
            assert!(!a.is_available().unwrap());
        }
        a.eval().unwrap();
        assert!(a.storage_view(&StorageExportOptions::default()).is_ok());
    });
}

#[test]
fn an_array_in_flight_is_not_available_until_it_is_waited_for() {
    if !alone("statuses::an_array_in_flight_is_not_available_until_it_is_waited_for") {
        return;
    }
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let slow = Kernel::builder("slow")
        .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
        .cpu(move |inputs, outputs| {
            released.lock().unwrap().recv()?;
            outputs[0].as_mut_slice::<f32>()?.copy_from_slice(&inputs[0].as_slice::<f32>()?);
            Ok(())
        })
        .build()
        .unwrap();
    // A kernel in Rust runs on the processor only; a stream of its own keeps other tests from waiting behind it.
    Stream::new(oxmlx::Device::Cpu)
        .unwrap()
        .scope(|| {
            let a = slow.apply_one(&[Array::vector(&[1.0f32, 2.0]).unwrap()]).unwrap();
            async_eval(std::slice::from_ref(&a)).unwrap();
            for options in [StorageExportOptions::default(), any_layout()] {
                assert!(matches!(a.storage_view(&options), Err(StorageExportError::ArrayNotAvailable)));
            }
            let waiter = {
                let a = a.clone();
                std::thread::spawn(move || a.storage_view(&waiting()).unwrap().as_slice::<f32>().unwrap().to_vec())
            };
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiter.is_finished());
            release.send(()).unwrap();
            assert_eq!(waiter.join().unwrap(), [1.0, 2.0]);
            assert!(a.storage_view(&StorageExportOptions::default()).is_ok());
        })
        .unwrap();
}

#[test]
fn an_array_whose_computation_failed_tells_the_failure() {
    let failing = Kernel::builder("failing")
        .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
        .cpu(|_, _| Err("planted failure".into()))
        .build()
        .unwrap();
    Stream::new(oxmlx::Device::Cpu)
        .unwrap()
        .scope(|| {
            let a = failing.apply_one(&[Array::vector(&[1.0f32, 2.0]).unwrap()]).unwrap();
            async_eval(std::slice::from_ref(&a)).unwrap();
            let error = a.storage_view(&waiting()).unwrap_err();
            assert!(error.source().unwrap().to_string().contains("planted failure"), "{error:?}");
        })
        .unwrap();
}

#[test]
fn an_array_without_memory_has_no_storage() {
    on_device(|| {
        let a = Array::from(oxmlx_sys::storage::without_storage_for_test(&counted(&[3]).into()).unwrap());
        assert!(matches!(a.storage_view(&any_layout()), Err(StorageExportError::NoStorage)));
    });
}

#[test]
fn memory_of_another_backend_than_the_one_asked_for_is_unsupported() {
    on_device(|| {
        let (a, here) = (counted(&[3]), loaded_backend().unwrap());
        for backend in [StorageBackend::Host, StorageBackend::Cuda, StorageBackend::Metal] {
            let view = a.storage_view(&StorageExportOptions::default().require_backend(backend));
            if backend == here {
                assert!(view.is_ok());
            } else {
                assert!(matches!(view, Err(StorageExportError::UnsupportedBackend)));
            }
        }
    });
}

#[test]
fn a_layout_that_was_not_asked_for_is_unsupported_and_told() {
    on_device(|| {
        let a = counted(&[2, 3]).transpose().unwrap();
        a.eval().unwrap();
        let error = a.storage_view(&StorageExportOptions::default()).unwrap_err();
        let StorageExportError::UnsupportedLayout { shape, strides } = &error else { panic!("{error:?}") };
        assert_eq!((&shape[..], &strides[..]), (&[3, 2][..], &[1, 3][..]));
        let error = oxmlx::Error::from(error);
        assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, "storage_view"));
        assert!(error.to_string().contains("[1, 3]"), "{error}");
        // Backwards, with either setting.
        let a = ops::slice(&counted(&[4]), &[3], &[-5], &[-1]).unwrap();
        assert_eq!(a.to_vec::<f32>().unwrap(), [3.0, 2.0, 1.0, 0.0]);
        for options in [StorageExportOptions::default(), any_layout()] {
            match a.storage_view(&options) {
                Err(StorageExportError::UnsupportedLayout { strides, .. }) => assert_eq!(strides, [-1]),
                // The device's slice may have written a copy that runs forwards.
                Ok(view) => assert_eq!(view.strides(), [1]),
                Err(error) => panic!("{error:?}"),
            }
        }
    });
}

#[test]
fn elements_outside_the_storage_or_between_alignments_are_an_invalid_offset() {
    on_device(|| {
        let a = counted(&[1 << 16]);
        for bytes in [-4, 4 << 16, 2] {
            let shifted = Array::from(oxmlx_sys::storage::shifted_for_test(&a.clone().into(), bytes).unwrap());
            let error = shifted.storage_view(&any_layout()).unwrap_err();
            assert!(matches!(error, StorageExportError::InvalidOffset), "{bytes}: {error:?}");
        }
    });
}

#[test]
fn a_metal_view_needs_metal() {
    on_device(|| {
        let view = counted(&[3]).metal_storage_view(&StorageExportOptions::default());
        if loaded_backend().unwrap() == StorageBackend::Metal {
            assert!(
                matches!(view.unwrap().buffer(), oxmlx::storage::StorageBuffer::Metal(buffer) if !buffer.is_null())
            );
        } else {
            assert!(matches!(view, Err(StorageExportError::MetalNotAvailable)));
        }
    });
}

#[test]
fn inside_a_kernel_there_is_no_view() {
    let a = Array::vector(&[1.0f32]).unwrap();
    let inner = a.clone();
    let kernel = Kernel::builder("looks")
        .output(Dtype::Float32, |inputs| Ok(inputs[0].to_vec()))
        .cpu(move |_, outputs| {
            let refused = matches!(inner.storage_view(&any_layout()), Err(StorageExportError::Failed(e)) if e.kind() == ErrorKind::Unsupported);
            outputs[0].as_mut_slice::<f32>()?[0] = f32::from(u8::from(refused));
            Ok(())
        })
        .build()
        .unwrap();
    let seen = Stream::new(oxmlx::Device::Cpu).unwrap().scope(|| kernel.apply_one(&[a]).unwrap().item::<f32>());
    assert_eq!(seen.unwrap().unwrap(), 1.0);
}
