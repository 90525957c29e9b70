//! DLPack between oxmlx and itself, and with tensors as other producers make them. Real consumers are in `crates/oxmlx-consumer`.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use oxmlx::storage::dlpack::{
    DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, DlpackOptions,
    LegacyTensor, Tensor, device, type_code,
};
use oxmlx::storage::{Adoption, CopyReason, StorageBackend, StorageExportOptions, loaded_backend};
use oxmlx::{Array, ErrorKind, ops};

use crate::device::on_device;
use crate::{any_layout, counted, on_host};

/// A tensor as a producer makes it, over sixteen 16-bit numbers, that counts calls of its deleter.
struct Producer {
    values: [i16; 16],
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    first: usize,
    dtype: DLDataType,
    device: i32,
    version: u32,
}

struct Produced {
    managed: DLManagedTensorVersioned,
    producer: Box<Producer>,
    deleted: Arc<AtomicUsize>,
}

const I16: DLDataType = DLDataType { code: type_code::INT, bits: 16, lanes: 1 };

impl Producer {
    fn new(shape: &[i64], strides: Option<&[i64]>, first: usize) -> Self {
        let values = std::array::from_fn(|i| i as i16);
        let (shape, strides) = (shape.to_vec(), strides.map(<[i64]>::to_vec));
        Self { values, shape, strides, first, dtype: I16, device: device::CPU, version: 1 }
    }

    fn produce(self, deleted: &Arc<AtomicUsize>) -> Tensor {
        unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
            // SAFETY: set below, and called once.
            let produced = unsafe { Box::from_raw((*managed).manager_ctx.cast::<Produced>()) };
            produced.deleted.fetch_add(1, Ordering::SeqCst);
        }
        let mut producer = Box::new(self);
        let managed = DLManagedTensorVersioned {
            version: DLPackVersion { major: producer.version, minor: 3 },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(delete),
            flags: 0,
            dl_tensor: DLTensor {
                data: producer.values.as_mut_ptr().cast::<c_void>(),
                device: DLDevice { device_type: producer.device, device_id: 0 },
                ndim: producer.shape.len() as i32,
                dtype: producer.dtype,
                shape: producer.shape.as_mut_ptr(),
                strides: producer.strides.as_mut().map_or(std::ptr::null_mut(), |s| s.as_mut_ptr()),
                byte_offset: 2 * producer.first as u64,
            },
        };
        let raw = Box::into_raw(Box::new(Produced { managed, producer, deleted: deleted.clone() }));
        // SAFETY: `raw` is live, and nobody else has it.
        unsafe {
            (*raw).managed.manager_ctx = raw.cast();
            assert_eq!((*raw).producer.values[1], 1);
            Tensor::from_raw(&raw mut (*raw).managed).unwrap()
        }
    }
}

#[test]
fn layouts_of_a_producer_come_in_with_their_values() {
    let cases: [(Producer, &[i16], Adoption); 6] = [
        (Producer::new(&[2, 3], None, 0), &[0, 1, 2, 3, 4, 5], Adoption::Adopted),
        (Producer::new(&[2, 3], Some(&[1, 2]), 4), &[4, 6, 8, 5, 7, 9], Adoption::Adopted),
        (Producer::new(&[3, 2], Some(&[0, 5]), 1), &[1, 6, 1, 6, 1, 6], Adoption::Adopted),
        (Producer::new(&[], None, 15), &[15], Adoption::Adopted),
        (Producer::new(&[4], Some(&[-2]), 7), &[7, 5, 3, 1], Adoption::Copied(CopyReason::Layout)),
        (Producer::new(&[0, 7], None, 0), &[], Adoption::Copied(CopyReason::Empty)),
    ];
    on_device(|| {
        for (producer, values, adoption) in cases {
            let deleted = Arc::new(AtomicUsize::new(0));
            let shape = producer.shape.clone();
            let (a, how) = Array::from_dlpack(producer.produce(&deleted)).unwrap();
            if on_host() {
                assert_eq!(how, adoption, "{shape:?}");
            }
            assert_eq!(deleted.load(Ordering::SeqCst), usize::from(how != Adoption::Adopted));
            assert_eq!(a.shape().iter().map(|&n| i64::from(n)).collect::<Vec<_>>(), shape);
            assert_eq!(a.to_vec::<i16>().unwrap(), values);
            assert_eq!(
                ops::add(&a, &a).unwrap().to_vec::<i16>().unwrap(),
                values.iter().map(|v| 2 * v).collect::<Vec<_>>()
            );
            drop(a);
            assert_eq!(deleted.load(Ordering::SeqCst), 1, "{shape:?}");
        }
    });
}

#[test]
fn what_mlx_can_not_take_is_an_error_and_the_deleter_is_called() {
    let with = |change: fn(&mut Producer)| {
        let mut producer = Producer::new(&[4], None, 0);
        change(&mut producer);
        producer
    };
    let cases = [
        (with(|p| p.version = 2), ErrorKind::Unsupported),
        (with(|p| p.dtype = DLDataType { code: type_code::FLOAT, bits: 8, lanes: 1 }), ErrorKind::Dtype),
        (with(|p| p.dtype.lanes = 2), ErrorKind::Dtype),
        (with(|p| p.shape = vec![i64::from(i32::MAX) + 1]), ErrorKind::Shape),
        (with(|p| p.shape = vec![-1]), ErrorKind::Shape),
        (with(|p| p.strides = Some(vec![i64::MAX])), ErrorKind::Shape),
        (with(|p| p.device = 99), ErrorKind::Device),
    ];
    for (producer, kind) in cases {
        let deleted = Arc::new(AtomicUsize::new(0));
        let error = Array::from_dlpack(producer.produce(&deleted)).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(deleted.load(Ordering::SeqCst), 1, "{error}");
    }
    if on_host() {
        let deleted = Arc::new(AtomicUsize::new(0));
        let error = Array::from_dlpack(with(|p| p.device = device::CUDA).produce(&deleted)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
    }
    // SAFETY: null is what is tried.
    assert_eq!(unsafe { Tensor::from_raw(std::ptr::null_mut()) }.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn an_exported_tensor_says_what_the_view_says_and_is_read_only() {
    on_device(|| {
        let a = ops::slice(&counted(&[4, 3]), &[1, 0], &[4, 2], &[1, 1]).unwrap();
        a.eval().unwrap();
        let view = a.storage_view(&any_layout()).unwrap();
        let tensor = view.to_dlpack(&DlpackOptions::default()).unwrap();
        assert!(tensor.is_read_only());
        let raw = tensor.as_raw();
        assert_eq!(raw.version.major, 1);
        assert_eq!((raw.dl_tensor.ndim, raw.dl_tensor.dtype.bits), (2, 32));
        // SAFETY: two dimensions.
        let (shape, strides) = unsafe {
            (std::slice::from_raw_parts(raw.dl_tensor.shape, 2), std::slice::from_raw_parts(raw.dl_tensor.strides, 2))
        };
        assert_eq!((shape, strides), (&[3, 2][..], &[3, 1][..]));
        let device = match loaded_backend().unwrap() {
            StorageBackend::Host => device::CPU,
            StorageBackend::Cuda => device::CUDA,
            StorageBackend::Metal => device::METAL,
        };
        assert_eq!(raw.dl_tensor.device.device_type, device);
        if let Some(data) = view.data() {
            assert_eq!((raw.dl_tensor.data.cast_const().cast(), raw.dl_tensor.byte_offset), (data, 0));
        }
        drop((a, view));
        let (b, adoption) = Array::from_dlpack(tensor).unwrap();
        assert_eq!(adoption, Adoption::Adopted);
        assert_eq!(b.to_vec::<f32>().unwrap(), [3.0, 4.0, 6.0, 7.0, 9.0, 10.0]);
    });
}

#[test]
fn a_legacy_tensor_is_refused_unless_a_writable_one_is_accepted() {
    on_device(|| {
        let view = counted(&[3]).storage_view(&StorageExportOptions::default()).unwrap();
        let error = view.to_dlpack_legacy(&DlpackOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let tensor: LegacyTensor = view.to_dlpack_legacy(&DlpackOptions::default().accept_writable(true)).unwrap();
        let data = tensor.as_raw().dl_tensor.data;
        let raw: *mut DLManagedTensor = tensor.into_raw();
        // SAFETY: from the line above.
        let (a, _) = Array::from_dlpack_legacy(unsafe { LegacyTensor::from_raw(raw) }.unwrap()).unwrap();
        assert_eq!(a.storage_view(&any_layout()).unwrap().data().map(<*const u8>::cast_mut), Some(data.cast()));
        assert_eq!(a.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0]);
    });
}

#[test]
fn deleters_are_called_exactly_once_under_sixteen_threads() {
    const THREADS: usize = 16;
    const ROUNDS: usize = 100;
    let deleted = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let deleted = deleted.clone();
            thread::spawn(move || {
                on_device(|| {
                    for _ in 0..ROUNDS {
                        let (a, _) = Array::from_dlpack(Producer::new(&[16], None, 0).produce(&deleted)).unwrap();
                        let b = (&a + &a).unwrap();
                        // Out again and in again: the producer's tensor is held through ours.
                        let tensor =
                            a.storage_view(&any_layout()).unwrap().to_dlpack(&DlpackOptions::default()).unwrap();
                        let elsewhere = thread::spawn(move || Array::from_dlpack(tensor).unwrap().0);
                        drop(a);
                        assert_eq!(b.to_vec::<i16>().unwrap()[15], 30);
                        drop(elsewhere.join().unwrap());
                    }
                });
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    for _ in 0..200 {
        if deleted.load(Ordering::SeqCst) == THREADS * ROUNDS {
            break;
        }
        thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(deleted.load(Ordering::SeqCst), THREADS * ROUNDS);
}
