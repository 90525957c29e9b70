//! What belongs to the process: printing, devices, groups of processes, GPU kernels.

use oxmlx::array::{print_precision, set_print_precision};
use oxmlx::distributed::{self, Backend};
use oxmlx::{Array, Complex32, Device, Dtype, ErrorKind, Result, Stream, ops};

/// `str()` of the same arrays in Python MLX 0.32.4. The precision holds for the process, hence one test.
#[test]
fn arrays_print_as_in_python() -> Result<()> {
    let floats = [1e-8f32, 1e10, f32::NAN, f32::INFINITY];
    let complex = [Complex32::new(1.0, 2.0), Complex32::new(-0.0, -0.5)];
    for (array, text) in [
        (Array::vector(&[true, false])?, "array([True, False], dtype=bool)"),
        (Array::scalar(1.5f32)?, "array(1.5, dtype=float32)"),
        (Array::matrix(&[[1i32, 2], [3, 4]])?, "array([[1, 2],\n       [3, 4]], dtype=int32)"),
        (Array::zeros::<f32>((0, 3))?, "array([], dtype=float32)"),
        (Array::vector(&complex)?, "array([1+2j, -0-0.5j], dtype=complex64)"),
        (Array::vector(&floats)?, "array([1e-08, 1e+10, nan, inf], dtype=float32)"),
        (ops::arange(0.0, 8.0, 1.0, Dtype::Uint8)?, "array([0, 1, 2, ..., 5, 6, 7], dtype=uint8)"),
        (Array::vector(&[1.5f32, 2.25])?.astype(Dtype::Bfloat16)?, "array([1.5, 2.25], dtype=bfloat16)"),
        (Array::scalar(-3i8)?, "array(-3, dtype=int8)"),
        (Array::vector(&[0.1f64, 1.0 / 3.0])?, "array([0.1, 0.333333], dtype=float64)"),
    ] {
        assert_eq!(array.to_string(), text);
    }
    assert_eq!(print_precision()?, None);
    set_print_precision(Some(3))?;
    let printed = Array::vector(&[1.0f32 / 3.0, 2.0, 1e-5])?.to_string();
    set_print_precision(None)?;
    assert_eq!(printed, "array([0.333, 2.000, 0.000], dtype=float32)");
    Ok(())
}

#[test]
fn a_device_scope_sends_work_there_and_ends() -> Result<()> {
    let before = Device::current()?;
    let inside = Device::Cpu.scope(|| ops::add(&Array::scalar(1i32)?, &Array::scalar(2i32)?))??;
    assert_eq!(inside.item::<i32>()?, 3);
    assert_eq!(Device::current()?, before);
    assert_eq!(Device::Cpu.to_string(), "Device(cpu, 0)");
    assert!(Stream::new(Device::Cpu)?.to_string().starts_with("Stream(Device(cpu, 0), "));
    if Device::Gpu.count()? == 0 {
        assert_eq!(Device::Gpu.scope(|| ()).unwrap_err().kind(), ErrorKind::Device);
        assert_eq!(Device::Gpu.set_default().unwrap_err().kind(), ErrorKind::Device);
    }
    Ok(())
}

/// Python MLX 0.32.4 says the same of a group of one.
#[test]
fn a_group_of_one_gives_its_inputs_back_and_sends_to_nobody() -> Result<()> {
    let group = distributed::init(Backend::Any)?;
    assert_eq!((group.rank()?, group.size()?), (0, 1));
    let x = Array::vector(&[0i32, 1, 2, 3])?;
    for y in [group.all_sum(&x)?, group.all_max(&x)?, group.all_min(&x)?, group.all_gather(&x)?, group.sum_scatter(&x)?]
    {
        assert_eq!(y.to_vec::<i32>()?, [0, 1, 2, 3]);
    }
    assert_eq!(group.send(&x, 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(group.recv(4, Dtype::Int32, 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(group.recv(-4, Dtype::Int32, 0).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(group.recv_like(&x, 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(group.split(0, None).unwrap_err().kind(), ErrorKind::Backend);
    assert!(Backend::Ring.is_available()? && distributed::is_available()?);
    if !Backend::Mpi.is_available()? {
        assert_eq!(distributed::init_strict(Backend::Mpi).unwrap_err().kind(), ErrorKind::Backend);
    }
    distributed::clear_backends()
}
