//! What a kernel declares: inputs, outputs, launches, rules; and what is refused.

use oxmlx::kernel::{Accepts, GpuLanguage, Kernel, KernelScalar, MetalMath, OutputDtype, Source, TemplateValue};
use oxmlx::{Array, Device, Dtype, ErrorKind, bf16, f16, ops, transforms};

use super::device::{device, on_device};
use super::emulator::{self, Buffer};
use super::on_cpu;

/// `scale * x + row`, for `x` of any width and rows of its last axis, with a source in each GPU language.
fn affine_rows(scale: i32) -> Kernel {
    let builder = Kernel::builder("affine_rows")
        .input("x", [Dtype::Float32, Dtype::Int32])
        .input("row", [Dtype::Float32, Dtype::Int32])
        .output(OutputDtype::OfInput(0), |inputs| Ok(inputs[0].to_vec()))
        .output_names(&["y"])
        .template("SCALE", scale)
        .template("NEGATE", false)
        .template("T", TemplateValue::DtypeOfInput(0))
        .grid(|inputs, _| match inputs[0] {
            &[rows, columns] => [columns, rows, 1],
            _ => [0; 3],
        })
        .thread_group([16, 4, 1]);
    let metal = "uint2 at = {thread_position_in_grid.x, thread_position_in_grid.y};\n\
        int i = at.y * x_shape[1] + at.x;\n\
        y[i] = (NEGATE ? T(-SCALE) : T(SCALE)) * fetch<T>(x, i) + fetch<T>(row, at.x);";
    let cuda = "int column = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;\n\
        if (column < x_shape[1] && r < x_shape[0]) {\n\
          int i = r * x_shape[1] + column;\n\
          y[i] = (NEGATE ? T(-SCALE) : T(SCALE)) * fetch<T>(x, i) + fetch<T>(row, column);\n\
        }";
    // SAFETY: a thread touches the element of its column and row, which is inside `x` and `row`.
    let builder = unsafe {
        builder.metal(
            Source::new(metal)
                .header("template <typename T> T fetch(const device T* from, int i) { return from[i]; }\n")
                .math(MetalMath::Relaxed),
        )
    };
    let cuda = Source::new(cuda)
        .header("template <typename T> __device__ T fetch(const T* from, int i) { return from[i]; }\n")
        .shared_memory(16);
    // SAFETY: as above, and threads beyond the matrix do nothing.
    unsafe { builder.cuda(cuda) }.build().unwrap()
}

/// Fewer than 8 elements: what MLX itself would put into Metal's `constant` space, where `fetch` takes `device` pointers.
#[test]
fn small_inputs_reach_helpers_that_take_device_pointers() {
    let (x, row) =
        on_cpu(|| (Array::matrix(&[[1i32, 2, 3], [4, 5, 6]]).unwrap(), Array::vector(&[10i32, 20, 30]).unwrap()));
    let kernel = affine_rows(3);
    let expected = [13, 26, 39, 22, 35, 48];
    if cfg!(target_os = "linux") && device() == Device::Cpu {
        let seen = emulator::run(&kernel, &[vec![Buffer::of(&x), Buffer::of(&row)]], false).unwrap();
        assert_eq!(seen[0][0].to_f64(), expected.map(f64::from));
    }
    if device() == Device::Gpu {
        on_device(|| assert_eq!(kernel.apply_one(&[x, row]).unwrap().to_vec::<i32>().unwrap(), expected));
    }
}

#[test]
fn a_launch_tells_grid_group_template_and_outputs() {
    let launch = affine_rows(3).launch(&[(&[5, 40], Dtype::Float32), (&[40], Dtype::Float32)]).unwrap();
    assert_eq!((launch.grid, launch.thread_group), ([40, 5, 1], [16, 4, 1]));
    let template = [
        ("SCALE", TemplateValue::Int(3)),
        ("NEGATE", TemplateValue::Bool(false)),
        ("T", TemplateValue::Dtype(Dtype::Float32)),
    ];
    assert_eq!(launch.template, template.map(|(name, value)| (name.to_owned(), value)));
    assert_eq!(launch.outputs, [(vec![5, 40], Dtype::Float32)]);
    assert_eq!(launch.init, None);
}

#[test]
fn a_device_without_a_body_is_an_error_that_names_kernel_and_device() {
    let error = on_cpu(|| affine_rows(1).apply(&[Array::ones::<f32>((1, 1)).unwrap(), Array::ones::<f32>(1).unwrap()]));
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device);
    assert_eq!(error.message(), "kernel affine_rows has no body for the CPU: give it one with Builder::cpu");
    if device() == Device::Gpu {
        let plain = Kernel::builder("plain").output_like(0).cpu(|_, _| Ok(())).build().unwrap();
        let error = on_device(|| plain.apply(&[Array::ones::<f32>(1).unwrap()])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
        assert!(error.message().starts_with("kernel plain has no body for a GPU"), "{error}");
    }
}

#[test]
fn inputs_of_another_number_or_dtype_are_refused_when_the_node_is_built() {
    on_cpu(|| {
        let kernel = Kernel::builder("typed")
            .input("a", Accepts::floats())
            .input("b", Dtype::Int32)
            .input("c", Accepts::Any)
            .output_like(1)
            .cpu(|_, _| Ok(()))
            .build()
            .unwrap();
        let (float, int) = (Array::ones::<f32>(2).unwrap(), Array::ones::<i32>(2).unwrap());
        let error = kernel.apply(&[float.clone(), int.clone()]).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidArgument, "kernel typed takes 3 inputs, not 2"));
        let error = kernel.apply(&[float.clone(), float.clone(), float.clone()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Dtype);
        assert_eq!(error.message(), "input b of kernel typed is float32, it takes int32");
        let outputs = kernel.apply(&[float.clone(), int, float]).unwrap();
        assert_eq!(outputs[0].dtype(), Dtype::Int32);
    });
}

/// Each is a mistake that a compiler would tell much later, and less well.
#[test]
fn what_no_kernel_can_be_made_of_is_refused() {
    let sourced = |name: &str, inputs: &[&str]| {
        let builder = Kernel::builder(name).output(Dtype::Float32, |_| Ok(vec![]));
        let builder = inputs.iter().fold(builder, |builder, name| builder.input(name, Dtype::Float32));
        // SAFETY: it is never launched.
        unsafe { builder.metal("out[0] = 0;") }
    };
    let refused = |builder: oxmlx::kernel::Builder, kind: ErrorKind, text: &str| {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(text), "{error}");
    };
    refused(Kernel::builder("k").output_like(0), ErrorKind::InvalidArgument, "no body");
    refused(Kernel::builder("k").cpu(|_, _| Ok(())), ErrorKind::InvalidArgument, "no output");
    refused(sourced("k", &[]), ErrorKind::InvalidArgument, "has a source and no input");
    refused(sourced("k", &["x", "x"]), ErrorKind::InvalidArgument, "the name of two things");
    refused(sourced("k", &["x y"]), ErrorKind::InvalidArgument, "is no name in a source");
    refused(sourced("k::m", &["x"]), ErrorKind::InvalidArgument, "is no name in a source");
    refused(sourced("k", &["x"]).output_names(&["a", "b"]), ErrorKind::InvalidArgument, "1 outputs and 2 names");
    refused(sourced("k", &["x"]).template("T", TemplateValue::DtypeOfInput(1)), ErrorKind::InvalidArgument, "input 1");
    refused(sourced("k", &["x"]).thread_group([32, 33, 1]), ErrorKind::Group, "at most 1024");
    refused(sourced("k", &["x"]).thread_group([0, 1, 1]), ErrorKind::Group, "at least 1");
    let in_place = Kernel::builder("k").output_in_place(Dtype::Float32, 0).init(0.0).cpu(|_, _| Ok(()));
    refused(in_place, ErrorKind::InvalidArgument, "takes an input's place");
    let compiled = Source::compiled(b"", &[KernelScalar::Int(1), KernelScalar::Bool(true), KernelScalar::Float(0.5)]);
    let builder = Kernel::builder("k").input("x", Accepts::Any).output_like(0);
    // SAFETY: it is never launched.
    refused(unsafe { builder.metal(compiled) }, ErrorKind::InvalidArgument, "for CUDA alone");
    assert!(sourced("k", &["x"]).build().unwrap().source(GpuLanguage::Cuda).is_none());
}

#[test]
fn a_grid_without_threads_is_refused() {
    let error = affine_rows(1).launch(&[(&[4], Dtype::Float32), (&[4], Dtype::Float32)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Group);
    let huge = Kernel::builder("huge").input("x", Accepts::Any).output(Dtype::Uint8, |_| Ok(vec![1 << 20, 1 << 12]));
    let error = huge.cpu(|_, _| Ok(())).build().unwrap().launch(&[(&[], Dtype::Float32)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Group);
}

#[test]
fn outputs_are_filled_before_a_body_runs() {
    on_cpu(|| {
        let expected = |dtype: Dtype, value: f32| {
            let kernel = Kernel::builder("untouched").output(dtype, |_| Ok(vec![3])).init(value).cpu(|_, _| Ok(()));
            kernel.build().unwrap().apply_one(&[]).unwrap()
        };
        assert_eq!(expected(Dtype::Float32, 1.5).to_vec::<f32>().unwrap(), [1.5; 3]);
        assert_eq!(expected(Dtype::Float16, 1.5).to_vec::<f16>().unwrap(), [f16::from_f32(1.5); 3]);
        assert_eq!(expected(Dtype::Bfloat16, -2.0).to_vec::<bf16>().unwrap(), [bf16::from_f32(-2.0); 3]);
        assert_eq!(expected(Dtype::Int64, -7.0).to_vec::<i64>().unwrap(), [-7; 3]);
        assert_eq!(expected(Dtype::Uint8, 200.0).to_vec::<u8>().unwrap(), [200; 3]);
        assert_eq!(expected(Dtype::Bool, 1.0).to_vec::<bool>().unwrap(), [true; 3]);
        let complex = expected(Dtype::Complex64, 2.0).to_vec::<oxmlx::Complex32>().unwrap();
        assert_eq!(complex, [oxmlx::Complex32::new(2.0, 0.0); 3]);
    });
}

/// Counts into bins with atomic additions, over outputs that start at zero.
#[test]
fn atomic_outputs_start_at_the_init_value_and_add_up() {
    let builder = Kernel::builder("histogram")
        .input("x", Dtype::Uint32)
        .output(Dtype::Int32, |_| Ok(vec![4]))
        .output_names(&["bins"])
        .init(0.0)
        .atomic_outputs(true)
        .grid(|inputs, _| [inputs[0][0], 1, 1])
        .cpu(|inputs, outputs| {
            let bins = outputs[0].as_mut_slice::<i32>()?;
            inputs[0].as_slice::<u32>()?.iter().for_each(|&x| bins[x as usize % 4] += 1);
            Ok(())
        });
    let metal = "atomic_fetch_add_explicit(&bins[x[thread_position_in_grid.x] % 4], 1, memory_order_relaxed);";
    let cuda = "int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < x_shape[0]) atomicAdd(&bins[x[i] % 4], 1);";
    // SAFETY: each thread reads the element of its number; bins are counted modulo 4.
    let builder = unsafe { builder.metal(metal) };
    // SAFETY: as above, and threads beyond the input do nothing.
    let kernel = unsafe { builder.cuda(cuda) }.build().unwrap();
    on_device(|| {
        let x = Array::vector(&(0..1000u32).map(|i| i * i % 7).collect::<Vec<_>>()).unwrap();
        let mut expected = [0; 4];
        (0..1000u32).for_each(|i| expected[(i * i % 7 % 4) as usize] += 1);
        assert_eq!(kernel.apply_one(std::slice::from_ref(&x)).unwrap().to_vec::<i32>().unwrap(), expected);
        if cfg!(target_os = "linux") && device() == Device::Cpu {
            let seen = emulator::run(&kernel, &[vec![Buffer::of(&x)]], true).unwrap();
            assert_eq!(seen[0][0].to_f64(), expected.map(f64::from));
        }
    });
}

#[test]
fn a_vmap_rule_gets_the_kernel_and_the_mapped_axes() {
    on_cpu(|| {
        let kernel = Kernel::builder("double")
            .output_like(0)
            .cpu(|inputs, outputs| {
                let x = inputs[0].as_slice::<f32>()?;
                outputs[0].as_mut_slice::<f32>()?.iter_mut().zip(x.iter()).for_each(|(y, x)| *y = 2.0 * x);
                Ok(())
            })
            .vmap(|kernel, inputs, axes| {
                assert_eq!((kernel.name(), axes), ("double", &[Some(1)][..]));
                Ok((kernel.apply(inputs)?, axes.to_vec()))
            })
            .build()
            .unwrap();
        let mapped = transforms::vmap(move |x: &[Array]| kernel.apply(x), &[Some(1)], &[Some(0)]);
        let y = mapped(&[Array::matrix(&[[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]).unwrap()]).unwrap();
        assert_eq!((y[0].shape(), y[0].to_vec::<f32>().unwrap()), (&[2, 3][..], vec![2.0, 6.0, 10.0, 4.0, 8.0, 12.0]));
    });
}

#[test]
fn a_vmap_rule_that_gives_other_arrays_than_the_outputs_is_an_error() {
    on_cpu(|| {
        let error = |rule: fn(&Array) -> Vec<Array>, axis: i32| {
            let kernel = Kernel::builder("odd").output_like(0).cpu(|_, _| Ok(()));
            let kernel = kernel.vmap(move |_, x, _| Ok((rule(&x[0]), vec![Some(axis); rule(&x[0]).len()])));
            let kernel = kernel.build().unwrap();
            let mapped = transforms::vmap(move |x: &[Array]| kernel.apply(x), &[Some(0)], &[Some(0)]);
            mapped(&[Array::ones::<f32>((2, 3)).unwrap()]).unwrap_err().message().to_owned()
        };
        let seen = error(|_| vec![], 0);
        assert!(seen.contains("the vmap rule gave 0 arrays for 1"), "{seen}");
        let seen = error(|x| vec![x.transpose().unwrap()], 0);
        assert!(seen.contains("gave an array of shape [3, 2] for one of shape [2, 3]"), "{seen}");
        let seen = error(|x| vec![x.clone()], 2);
        assert!(seen.contains("gave the axis 2 for an output of shape [3]"), "{seen}");
    });
}

/// A file of a function can't hold a body of Rust.
#[test]
fn an_export_holds_the_fallback_of_a_kernel() {
    on_cpu(|| {
        let kernel = Kernel::builder("square")
            .output_like(0)
            .cpu(|_, _| Err("the kernel ran".into()))
            .fallback(|inputs| Ok(vec![ops::square(&inputs[0])?]))
            .build()
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("square.mlxfn");
        let x = Array::vector(&[1.0f32, -3.0]).unwrap();
        transforms::export_function(&path, move |x: &[Array]| kernel.apply(x), std::slice::from_ref(&x), false)
            .unwrap();
        // SAFETY: the file is as it was written above.
        let imported = unsafe { transforms::import_function(&path) }.unwrap();
        assert_eq!(imported.call(&[x], &[]).unwrap()[0].to_vec::<f32>().unwrap(), [1.0, 9.0]);
    });
}

#[test]
fn a_body_may_use_all_cores_and_panics_of_its_tasks_come_out() {
    on_cpu(|| {
        let kernel = Kernel::builder("cores").output_like(0).cpu(|inputs, outputs| {
            let x = inputs[0].as_slice::<f32>()?;
            oxmlx::kernel::for_each_chunk(outputs[0].as_mut_slice::<f32>()?, 1000, |chunk, piece| {
                piece.iter_mut().enumerate().for_each(|(i, y)| *y = x[chunk * 1000 + i] + 1.0);
                assert!(piece.iter().all(|y| *y > 0.0), "planted panic");
            });
            Ok(())
        });
        let kernel = kernel.build().unwrap();
        let x = Array::zeros::<f32>(12_345).unwrap();
        assert_eq!(kernel.apply_one(&[x]).unwrap().to_vec::<f32>().unwrap(), vec![1.0; 12_345]);
        let minus = ops::full(5000, &Array::scalar(-9.0f32).unwrap()).unwrap();
        let negative = kernel.apply_one(&[minus]).unwrap();
        let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| negative.eval())).unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"planted panic"));
    });
}
