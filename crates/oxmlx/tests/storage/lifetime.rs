//! A view keeps the storage: it is neither reused nor written while the view lives, and given back afterwards.

use std::thread;

use oxmlx::storage::{StorageExportOptions, StorageView};
use oxmlx::{Array, ops};

use crate::device::on_device;
use crate::{any_layout, counted, on_host, seen};

const N: i32 = 1 << 14;

/// All elements but the last one overwritten with -1: an update of all of them would take the update's memory, not the source's.
fn overwritten(a: Array) -> Array {
    let updated = ops::slice_update(&a, &Array::full(N - 1, -1.0f32).unwrap(), &[0], &[N - 1], &[1]).unwrap();
    drop(a);
    updated.eval().unwrap();
    updated
}

/// Whether overwriting an array takes its memory over, once `before` has been done with it. MLX lets go of a node's memory a moment
/// after its value is there, so that one try may come too early.
fn memory_is_taken_over(before: impl Fn(&Array)) -> bool {
    (0..50).any(|_| {
        let a = counted(&[N]);
        before(&a);
        let data = a.storage_view(&any_layout()).unwrap().data();
        overwritten(a).storage_view(&any_layout()).unwrap().data() == data
    })
}

fn numbers() -> Vec<f32> {
    (0..N).map(|n| n as f32).collect()
}

#[test]
fn bytes_stay_when_the_array_is_dropped_and_memory_is_reused() {
    on_device(|| {
        let a = counted(&[N]);
        let view = a.storage_view(&StorageExportOptions::default()).unwrap();
        drop(a);
        for i in 0..1000 {
            Array::full(N, i as f32).unwrap().eval().unwrap();
        }
        assert_eq!(seen::<f32>(&view), numbers());
    });
}

#[test]
fn bytes_stay_when_the_array_is_overwritten() {
    on_device(|| {
        let data = |a: &Array| a.storage_view(&any_layout()).unwrap().data();
        // Without a view MLX writes into the source's own memory, so that what follows would see it.
        if on_host() {
            assert!(memory_is_taken_over(|_| ()));
        }
        let a = counted(&[N]);
        let view = a.storage_view(&StorageExportOptions::default()).unwrap();
        let updated = overwritten(a);
        assert_ne!(data(&updated), view.data());
        assert!(updated.to_vec::<f32>().unwrap()[..N as usize - 1].iter().all(|&x| x == -1.0));
        assert_eq!(seen::<f32>(&view), numbers());
    });
}

#[test]
fn reading_the_array_by_the_host_does_not_move_what_a_view_holds() {
    on_device(|| {
        let a = counted(&[N]);
        let view = a.storage_view(&StorageExportOptions::default()).unwrap();
        assert_eq!(a.to_vec::<f32>().unwrap(), numbers());
        assert!(a.to_string().contains("16383"));
        assert_eq!(a.storage_view(&StorageExportOptions::default()).unwrap().buffer(), view.buffer());
        assert_eq!(seen::<f32>(&view), numbers());
    });
}

#[test]
fn the_storage_is_reused_once_the_last_clone_of_a_view_is_gone() {
    on_device(|| {
        if !on_host() {
            return;
        }
        assert!(memory_is_taken_over(|a| {
            let view = a.storage_view(&StorageExportOptions::default()).unwrap();
            let clone = view.clone();
            drop(view);
            thread::spawn(move || drop(clone)).join().unwrap();
        }));
    });
}

#[test]
fn views_are_read_and_dropped_by_many_threads() {
    let views: Vec<StorageView> = on_device(|| {
        let a = counted(&[N]);
        (0..16).map(|_| a.storage_view(&StorageExportOptions::default()).unwrap()).collect()
    });
    let threads: Vec<_> = views
        .into_iter()
        .map(|view| {
            thread::spawn(move || {
                for _ in 0..100 {
                    let clone = view.clone();
                    assert_eq!((clone.shape(), clone.strides()), (&[N][..], &[1][..]));
                    if let Some(bytes) = clone.as_bytes() {
                        assert_eq!(bytes[4..8], 1.0f32.to_ne_bytes());
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
}

/// One GiB, exported a thousand times.
#[cfg(target_os = "linux")]
#[test]
fn a_view_takes_no_memory() {
    on_device(|| {
        let a = Array::full(1 << 28, 1.0f32).unwrap();
        a.eval().unwrap();
        let once = || a.storage_view(&StorageExportOptions::default()).unwrap();
        let _first = once();
        // Other tests run beside this one: what one try takes, others must.
        let grown = (0..5).map(|_| {
            let before = crate::resident();
            let views: Vec<StorageView> = (0..1000).map(|_| once()).collect();
            assert!(views.iter().all(|view| view.logical_nbytes() == 1 << 30));
            crate::resident().saturating_sub(before)
        });
        let grown = grown.min().unwrap();
        assert!(grown < 4 << 20, "{grown} bytes for a thousand views");
    });
}
