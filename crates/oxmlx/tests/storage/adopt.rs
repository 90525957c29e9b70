//! Arrays over memory of others: what is copied and what is not, and when the owner goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use oxmlx::storage::{Adoption, CopyReason, StorageBuffer, StorageExportOptions};
use oxmlx::{Array, Dtype, ErrorKind, eval, ops};

use crate::device::on_device;
use crate::{any_layout, on_host};

/// Memory that counts how often it was dropped.
#[derive(Clone)]
struct Counted(Arc<[u64]>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

fn counted(words: &[u64]) -> (Counted, Arc<AtomicUsize>) {
    let drops = Arc::new(AtomicUsize::new(0));
    (Counted(words.into(), drops.clone()), drops)
}

fn adopted_here() -> Adoption {
    if on_host() { Adoption::Adopted } else { Adoption::Copied(CopyReason::Device) }
}

#[test]
fn a_vector_is_adopted_where_it_lies() {
    on_device(|| {
        let values = vec![1.0f32, 2.0, 3.0, 4.0];
        let pointer = values.as_ptr();
        let (a, adoption) = Array::from_vec(values, (2, 2)).unwrap();
        assert_eq!(adoption, adopted_here());
        if on_host() {
            assert_eq!(a.try_as_slice::<f32>().unwrap().as_ptr(), pointer);
            let view = a.storage_view(&StorageExportOptions::default()).unwrap();
            assert_eq!((view.buffer(), view.byte_offset()), (StorageBuffer::Host(pointer.cast()), 0));
        }
        assert_eq!((&a + &a).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(a.transpose().unwrap().to_vec::<f32>().unwrap(), [1.0, 3.0, 2.0, 4.0]);
        assert_eq!(ops::contiguous(&a, false).unwrap().to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    });
}

#[test]
fn the_owner_goes_when_the_last_array_and_view_over_it_do() {
    on_device(|| {
        let (owner, drops) = counted(&[7, 8, 9]);
        let (a, adoption) = Array::from_owner(owner, 8.., 2, Dtype::Uint64).unwrap();
        let view = a.storage_view(&StorageExportOptions::default()).unwrap();
        let slice = ops::slice(&a, &[1], &[2], &[1]).unwrap();
        slice.eval().unwrap();
        drop(a);
        if adoption == Adoption::Adopted {
            assert_eq!(drops.load(Ordering::SeqCst), 0);
            assert_eq!(view.as_slice::<u64>().unwrap(), [8, 9]);
        }
        drop(view);
        assert_eq!(slice.to_vec::<u64>().unwrap(), [9]);
        drop(slice);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn nothing_writes_into_adopted_memory() {
    on_device(|| {
        let words: Arc<[u64]> = vec![1u64; 4096].into();
        let owner = Counted(words.clone(), Arc::default());
        let (a, _) = Array::from_owner(owner, .., 4096, Dtype::Uint64).unwrap();
        let updated = ops::slice_update(&a, &Array::full(4095, 2u64).unwrap(), &[0], &[4095], &[1]).unwrap();
        drop(a);
        let sum = (&updated + &updated).unwrap();
        eval(&[updated.clone(), sum]).unwrap();
        assert_eq!(updated.to_vec::<u64>().unwrap(), [vec![2; 4095], vec![1]].concat());
        assert!(words.iter().all(|&x| x == 1));
    });
}

#[test]
fn an_offset_between_alignments_is_copied_and_says_so() {
    on_device(|| {
        let (owner, drops) = counted(&[u64::from_ne_bytes([0, 1, 0, 2, 0, 0, 0, 0])]);
        let (a, adoption) = Array::from_owner(owner, 1..5, 2, Dtype::Uint16).unwrap();
        assert_eq!(adoption, Adoption::Copied(CopyReason::Unaligned));
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        assert_eq!(a.to_vec::<u16>().unwrap(), [1, 2]);
    });
}

#[test]
fn no_elements_are_no_memory() {
    let (owner, drops) = counted(&[]);
    let (a, adoption) = Array::from_owner(owner, .., (0, 2), Dtype::Float32).unwrap();
    assert_eq!((a.shape(), adoption), (&[0, 2][..], Adoption::Copied(CopyReason::Empty)));
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn what_does_not_fit_is_an_error_and_the_owner_goes() {
    let cases: [(std::ops::Range<usize>, &[i32], Dtype, ErrorKind); 6] = [
        (0..8, &[3], Dtype::Float32, ErrorKind::Shape),
        (0..24, &[3], Dtype::Float64, ErrorKind::Shape),
        (0..8, &[-1, -2], Dtype::Float32, ErrorKind::Shape),
        (0..8, &[i32::MAX, i32::MAX, i32::MAX], Dtype::Uint8, ErrorKind::Shape),
        #[expect(clippy::reversed_empty_ranges, reason = "bad on purpose")]
        (8..4, &[0], Dtype::Uint8, ErrorKind::Shape),
        (0..8, &[8], Dtype::Bool, ErrorKind::Format),
    ];
    for (range, shape, dtype, kind) in cases {
        let (owner, drops) = counted(&[u64::MAX, 0]);
        let error = Array::from_owner(owner, range.clone(), shape, dtype).unwrap_err();
        assert_eq!(error.kind(), kind, "{range:?} {shape:?}: {error}");
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn owners_are_dropped_exactly_once_under_sixteen_threads() {
    const THREADS: usize = 16;
    const ROUNDS: usize = 100;
    let drops = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|t| {
            let drops = drops.clone();
            thread::spawn(move || {
                on_device(|| {
                    for round in 0..ROUNDS {
                        let owner = Counted(vec![(t * ROUNDS + round) as u64; 16].into(), drops.clone());
                        let (a, _) = Array::from_owner(owner, .., 16, Dtype::Uint64).unwrap();
                        let sum = ops::sum(&a).unwrap();
                        let view = a.storage_view(&any_layout()).unwrap();
                        // Let go on several threads, in no order: the array here or there, the view there, the node by MLX.
                        let elsewhere = (round % 4 == 0).then(|| thread::spawn(move || drop((a, view))));
                        oxmlx::async_eval(std::slice::from_ref(&sum)).unwrap();
                        assert_eq!(sum.item::<u64>().unwrap(), 16 * (t * ROUNDS + round) as u64);
                        if let Some(elsewhere) = elsewhere {
                            elsewhere.join().unwrap();
                        }
                    }
                });
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    // MLX may let go of a node's inputs a moment after its value is there.
    for _ in 0..200 {
        if drops.load(Ordering::SeqCst) == THREADS * ROUNDS {
            break;
        }
        thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(drops.load(Ordering::SeqCst), THREADS * ROUNDS);
}

#[test]
fn a_panic_in_an_owners_drop_stays_there() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("planted panic");
        }
    }
    static MEMORY: [u32; 2] = [5, 6];
    // SAFETY: a static is readable and unchanged for ever.
    let (a, _) = unsafe { Array::from_raw_owner(MEMORY.as_ptr().cast(), Panics, 2, Dtype::Uint32) }.unwrap();
    assert_eq!(a.to_vec::<u32>().unwrap(), [5, 6]);
    drop(a);
    assert_eq!((Array::scalar(1i32).unwrap() + Array::scalar(1i32).unwrap()).unwrap().item::<i32>().unwrap(), 2);
}

#[test]
fn an_owner_that_holds_arrays_may_drop_them() {
    on_device(|| {
        let inner = Array::vector(&[1u8, 2, 3]).unwrap();
        let view = inner.storage_view(&StorageExportOptions::default()).unwrap();
        let pointer = view.data().unwrap();
        // SAFETY: the view keeps the bytes, and it is the owner.
        let (a, _) = unsafe { Array::from_raw_owner(pointer, (inner, view), 3, Dtype::Uint8) }.unwrap();
        assert_eq!(a.to_vec::<u8>().unwrap(), [1, 2, 3]);
        drop(a);
    });
}

#[test]
fn handles_of_the_c_api_share_the_array() {
    on_device(|| {
        let a = crate::counted(&[3]);
        let pointer = |a: &Array| a.storage_view(&any_layout()).unwrap().data();
        let before = pointer(&a);
        let handle = a.into_mlx_c().unwrap();
        // SAFETY: the handle is live until the next line takes it.
        let borrowed = unsafe { Array::from_mlx_c_borrowed(handle) }.unwrap();
        // SAFETY: it comes from `into_mlx_c` and is not used again.
        let back = unsafe { Array::from_mlx_c(handle) }.unwrap();
        assert_eq!((pointer(&borrowed), pointer(&back)), (before, before));
        drop(borrowed);
        assert_eq!(back.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0]);
        let empty = oxmlx::storage::MlxArray { ctx: std::ptr::null_mut() };
        // SAFETY: the empty handle is allowed.
        assert_eq!(unsafe { Array::from_mlx_c(empty) }.unwrap_err().kind(), ErrorKind::InvalidArgument);
    });
}
