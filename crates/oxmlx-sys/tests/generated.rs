//! The generated wrappers end to end: every way in which a parameter or a result crosses, once, against values known beforehand.

use oxmlx_sys::generated::{
    device, distributed, distributed_ops, dtype, einsum, fast, fft, io, linalg, memory, ops, random, stream, utils,
    version,
};
use oxmlx_sys::runtime::{DeviceType, eval};
use oxmlx_sys::types::{
    Device, Dtype, DtypeCategory, DtypeKind, Fact, FftNorm, Indexing, IntPair, IntTriple, MaskMode, MatrixNorm,
    Metadata, PadMode, QuantMode, Side, Triangle,
};
use oxmlx_sys::{Array, ExceptionKind, Result};

fn floats(values: &[f32], shape: &[i32]) -> Array {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    Array::from_bytes(&bytes, shape, Dtype::Float32.code()).unwrap()
}

fn ints(values: &[i32], shape: &[i32]) -> Array {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    Array::from_bytes(&bytes, shape, Dtype::Int32.code()).unwrap()
}

/// The bytes of an array in row-major order.
fn bytes(a: &Array) -> Vec<u8> {
    let a = ops::contiguous(a, false).unwrap();
    eval(std::slice::from_ref(&a)).unwrap();
    let (data, len) = (a.data().unwrap(), a.size() * a.itemsize());
    if len == 0 {
        return Vec::new();
    }
    // SAFETY: `a` is evaluated and contiguous, so that `len` bytes lie at `data` for as long as `a` lives.
    unsafe { std::slice::from_raw_parts(data, len) }.to_vec()
}

fn values(a: &Array) -> Vec<f32> {
    assert_eq!(a.dtype_code(), Dtype::Float32.code());
    bytes(a).chunks_exact(4).map(|c| f32::from_ne_bytes(c.try_into().unwrap())).collect()
}

fn whole(a: &Array) -> Vec<i32> {
    let a = ops::astype(a, Dtype::Int32).unwrap();
    bytes(&a).chunks_exact(4).map(|c| i32::from_ne_bytes(c.try_into().unwrap())).collect()
}

fn close(a: &Array, expected: &[f32]) {
    let got = values(a);
    assert_eq!(got.len(), expected.len());
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() <= 1e-5 * e.abs().max(1.0), "{got:?} for {expected:?}");
    }
}

#[test]
fn arrays_and_scalars_cross() -> Result<()> {
    let (a, b) = (floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]), floats(&[10.0, 20.0], &[2]));
    assert_eq!(values(&ops::add(&a, &b)?), [11.0, 22.0, 13.0, 24.0]);
    assert_eq!(values(&ops::sum_axis(&a, 0, false)?), [4.0, 6.0]);
    assert_eq!(values(&ops::sum_axes(&a, &[0, 1], true)?), [10.0]);
    assert_eq!(values(&ops::sum_all(&a, false)?), [10.0]);
    assert_eq!(values(&ops::std_all(&a, false, 0)?), [1.25_f32.sqrt()]);
    assert_eq!(whole(&ops::arange(0.0, 3.0, 1.0, Dtype::Int32)?), [0, 1, 2]);
    assert_eq!(whole(&ops::arange_i32(3, 0, -1)?), [3, 2, 1]);
    assert_eq!(values(&ops::addmm(&b, &a, &a, 1.0, 0.5)?), [12.0, 20.0, 20.0, 32.0]);
    assert_eq!(
        values(&ops::where_(&ops::greater(&a, &floats(&[2.5], &[]))?, &a, &floats(&[0.0], &[]))?),
        [0.0, 0.0, 3.0, 4.0]
    );
    Ok(())
}

#[test]
fn absent_operands_cross_as_none() -> Result<()> {
    let a = floats(&[-1.0, 0.5, 2.0], &[3]);
    let (low, high) = (floats(&[0.0], &[]), floats(&[1.0], &[]));
    assert_eq!(values(&ops::clip(&a, Some(&low), Some(&high))?), [0.0, 0.5, 1.0]);
    assert_eq!(values(&ops::clip(&a, None, Some(&high))?), [-1.0, 0.5, 1.0]);
    assert_eq!(values(&ops::nan_to_num(&floats(&[f32::INFINITY, f32::NAN], &[2]), 7.0, Some(9.0), None)?), [9.0, 7.0]);
    assert_eq!(ops::cumsum_axis(&a, 0, false, true, Some(Dtype::Float16))?.dtype_code(), Dtype::Float16.code());
    assert_eq!(ops::cumsum_axis(&a, 0, false, true, None)?.dtype_code(), Dtype::Float32.code());
    close(&linalg::norm(&floats(&[3.0, 4.0, 6.0, 8.0], &[2, 2]), Some(&[1]), false)?, &[5.0, 10.0]);
    close(&linalg::norm(&floats(&[3.0, 4.0], &[2]), None, false)?, &[5.0]);
    Ok(())
}

#[test]
fn lists_of_arrays_cross_both_ways() -> Result<()> {
    let (a, b) = (floats(&[1.0, 2.0], &[2]), floats(&[3.0], &[1]));
    let joined = ops::concatenate(&[a.clone(), b], 0)?;
    assert_eq!(values(&joined), [1.0, 2.0, 3.0]);
    let parts = ops::split_at(&joined, &[1], 0)?;
    assert_eq!(parts.iter().map(values).collect::<Vec<_>>(), [vec![1.0], vec![2.0, 3.0]]);
    assert!(ops::split(&joined, 1, 0)?.len() == 1);
    let (least, most) = ops::minmax_all(&joined, false)?;
    assert_eq!((values(&least), values(&most)), (vec![1.0], vec![3.0]));
    let grid = ops::meshgrid(&[a.clone(), joined], false, Indexing::Ij)?;
    assert_eq!(grid[0].shape(), [2, 3]);
    assert!(ops::broadcast_arrays(&[])?.is_empty());
    Ok(())
}

#[test]
fn pairs_triples_and_strides_cross() -> Result<()> {
    let a = floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
    let zero = floats(&[0.0], &[]);
    let widths = [IntPair::from([0, 1]), IntPair::from([1, 0])];
    assert_eq!(
        values(&ops::pad(&a, &widths, &zero, PadMode::Constant)?),
        [0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 0.0, 0.0, 0.0]
    );
    assert_eq!(
        values(&ops::pad(&a, &[IntPair::from([0, 0]), IntPair::from([1, 0])], &zero, PadMode::Edge)?),
        [1.0, 1.0, 2.0, 3.0, 3.0, 4.0]
    );
    assert_eq!(values(&ops::as_strided(&a, &[2, 2], &[1, 2], 0)?), [1.0, 3.0, 2.0, 4.0]);
    let image = floats(&[1.0, 2.0, 3.0, 4.0], &[1, 2, 2, 1]);
    let kernel = floats(&[1.0; 4], &[1, 2, 2, 1]);
    let (one, none) = (IntPair::from([1, 1]), IntPair::from([0, 0]));
    assert_eq!(values(&ops::conv2d(&image, &kernel, one, none, one, 1)?), [10.0]);
    let (volume, cube) = (floats(&[1.0; 8], &[1, 2, 2, 2, 1]), floats(&[1.0; 8], &[1, 2, 2, 2, 1]));
    let one = IntTriple::from([1, 1, 1]);
    assert_eq!(values(&ops::conv3d(&volume, &cube, one, IntTriple::from([0, 0, 0]), one, 1)?), [8.0]);
    Ok(())
}

#[test]
fn every_mode_is_one_that_mlx_knows() -> Result<()> {
    let w = floats(&(0..64).map(|i| (i % 16) as f32 - 8.0).collect::<Vec<_>>(), &[1, 64]);
    for (mode, parts) in [(QuantMode::Affine, 3), (QuantMode::Mxfp4, 2), (QuantMode::Mxfp8, 2), (QuantMode::Nvfp4, 2)] {
        let q = ops::quantize(&w, None, None, mode, None)?;
        assert_eq!(q.len(), parts, "{mode:?}");
        let back = ops::dequantize(&q[0], &q[1], q.get(2), None, None, mode, None, Some(Dtype::Float32))?;
        let worst = values(&back).iter().zip(values(&w)).map(|(g, e)| (g - e).abs()).fold(0.0, f32::max);
        // Half the widest step: 1 of 15 steps over 15, or a 4-bit float's step of 2 times a scale of 8/6 rounded to 8 bits.
        let bound = if mode == QuantMode::Affine { 0.51 } else { 1.4 };
        assert!(worst <= bound, "{mode:?}: {worst}");
    }
    let sorted = floats(&[1.0, 2.0, 2.0, 3.0], &[4]);
    let two = floats(&[2.0], &[1]);
    assert_eq!(whole(&ops::searchsorted(&sorted, &two, Side::Left)?), [1]);
    assert_eq!(whole(&ops::searchsorted(&sorted, &two, Side::Right)?), [3]);
    for mode in [PadMode::Constant, PadMode::Edge, PadMode::Symmetric] {
        ops::pad(&sorted, &[IntPair::from([1, 1])], &floats(&[0.0], &[]), mode)?;
    }
    let x = floats(&(0..32).map(|i| i as f32).collect::<Vec<_>>(), &[32]);
    let spectrum = fft::stft(&x, 8, Some(4), None, None, true, PadMode::Reflect, FftNorm::Backward, None)?;
    assert_eq!(spectrum.shape(), [8 / 2 + 1, 1 + 32 / 4]);
    let m = floats(&[2.0, 1.0, 1.0, 2.0], &[2, 2]);
    for triangle in [Triangle::Lower, Triangle::Upper] {
        close(&linalg::eigvalsh(&m, triangle)?, &[1.0, 3.0]);
    }
    close(&linalg::norm_named(&m, MatrixNorm::Frobenius, None, false)?, &[10.0_f32.sqrt()]);
    close(&linalg::norm_named(&m, MatrixNorm::Nuclear, None, false)?, &[4.0]);
    Ok(())
}

#[test]
fn attention_takes_its_mask_by_mode_or_by_array() -> Result<()> {
    // One head of two positions; equal keys, so that the weights are uniform over what is seen.
    let (q, k) = (floats(&[1.0, 1.0], &[1, 1, 2, 1]), floats(&[1.0, 1.0], &[1, 1, 2, 1]));
    let v = floats(&[2.0, 4.0], &[1, 1, 2, 1]);
    let attend =
        |mode, mask: Option<&Array>| fast::scaled_dot_product_attention(&q, &k, &v, 1.0, mode, mask, None, false);
    close(&attend(MaskMode::None, None)?, &[3.0, 3.0]);
    close(&attend(MaskMode::Causal, None)?, &[2.0, 3.0]);
    let second = Array::from_bytes(&[0, 1, 0, 1], &[2, 2], Dtype::Bool.code())?;
    close(&attend(MaskMode::Array, Some(&second))?, &[4.0, 4.0]);
    Ok(())
}

#[test]
fn rope_turns_by_its_offset() -> Result<()> {
    let x = floats(&[1.0, 0.0], &[1, 1, 1, 2]);
    let turned = fast::rope(&x, 2, true, Some(10_000.0), 1.0, 3, None)?;
    close(&turned, &[3.0_f32.cos(), 3.0_f32.sin()]);
    let by_array = fast::rope_offsets(&x, 2, true, Some(10_000.0), 1.0, &ints(&[3], &[]), None)?;
    close(&by_array, &[3.0_f32.cos(), 3.0_f32.sin()]);
    Ok(())
}

#[test]
fn random_draws_depend_on_their_key_alone() -> Result<()> {
    let key = random::key(7)?;
    let draw = || random::uniform_unit(&[4], Dtype::Float32, Some(&key));
    assert_eq!(values(&draw()?), values(&draw()?));
    let (left, right) = random::split(&key)?;
    assert_ne!(whole(&left), whole(&right));
    assert_eq!(random::split_num(&key, 5)?.shape(), [5, 2]);
    let sure = random::categorical(&floats(&[0.0, f32::NEG_INFINITY], &[2]), -1, Some(&key))?;
    assert_eq!(whole(&sure), [0]);
    Ok(())
}

#[test]
fn fourier_norms_scale_as_they_say() -> Result<()> {
    let a = floats(&[1.0; 4], &[4]);
    let zero_frequency = |norm| -> Result<f32> { Ok(values(&ops::real(&fft::fft(&a, -1, norm)?)?)[0]) };
    assert_eq!(zero_frequency(FftNorm::Backward)?, 4.0);
    assert_eq!(zero_frequency(FftNorm::Ortho)?, 2.0);
    assert_eq!(zero_frequency(FftNorm::Forward)?, 1.0);
    Ok(())
}

#[test]
fn contraction_paths_and_einsum() -> Result<()> {
    let a = floats(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
    assert_eq!(values(&einsum::einsum("ij,jk->ik", &[a.clone(), a.clone()])?), [7.0, 10.0, 15.0, 22.0]);
    let path = einsum::einsum_path("ij,jk->ik", &[a.clone(), a])?;
    assert_eq!(path.steps, [vec![0, 1]]);
    assert!(path.report.contains("ij,jk->ik"));
    Ok(())
}

#[test]
fn files_in_memory_hold_what_was_saved() -> Result<()> {
    let a = floats(&[1.0, 2.0, 3.0], &[3]);
    let npy = io::save_bytes(&a)?;
    assert!(npy.starts_with(b"\x93NUMPY"));
    assert_eq!(values(&io::load_bytes(npy)?), [1.0, 2.0, 3.0]);
    let file = io::save_safetensors_bytes((&["b", "a"], &[a.clone(), ints(&[5], &[1])]), (&["format"], &["test"]))?;
    let loaded = io::load_safetensors_bytes(file.clone())?;
    let names: Vec<_> = loaded.arrays.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(values(&loaded.arrays[1].1), [1.0, 2.0, 3.0]);
    assert!(loaded.metadata.contains(&("format".to_owned(), "test".to_owned())));
    assert!(io::load_safetensors_bytes(file[..4].to_vec()).is_err());
    Ok(())
}

#[test]
fn names_must_match_arrays_and_be_distinct() {
    let a = floats(&[1.0], &[1]);
    let error = io::save_safetensors_bytes((&["a", "b"], std::slice::from_ref(&a)), (&[], &[])).unwrap_err();
    assert_eq!((error.kind(), error.op()), (ExceptionKind::InvalidArgument, "save_safetensors"));
    let error = io::save_safetensors_bytes((&["a", "a"], &[a.clone(), a]), (&[], &[])).unwrap_err();
    assert!(error.what().contains("'a' is given twice"), "{error}");
}

#[test]
fn gguf_keeps_metadata_of_every_kind() -> Result<()> {
    let path = std::env::temp_dir().join(format!("oxmlx-generated-{}.gguf", std::process::id()));
    let file = path.to_str().unwrap();
    let metadata = [
        ("general.name".to_owned(), Metadata::Text("tiny".to_owned())),
        ("n".to_owned(), Metadata::Array(ints(&[3], &[]))),
        ("words".to_owned(), Metadata::Texts(vec!["x".to_owned(), "y".to_owned()])),
    ];
    io::save_gguf(file, (&["w"], &[floats(&[1.0, 2.0], &[2])]), &metadata)?;
    let loaded = io::load_gguf(file);
    std::fs::remove_file(&path).unwrap();
    let loaded = loaded?;
    assert_eq!(values(&loaded.arrays[0].1), [1.0, 2.0]);
    let found = |key: &str| loaded.metadata.iter().find(|(k, _)| k == key).map(|(_, v)| v);
    assert!(matches!(found("general.name"), Some(Metadata::Text(t)) if t == "tiny"));
    assert!(matches!(found("n"), Some(Metadata::Array(a)) if whole(a) == [3]));
    assert!(matches!(found("words"), Some(Metadata::Texts(t)) if *t == ["x", "y"]));
    Ok(())
}

#[test]
fn devices_streams_and_memory_tell_of_themselves() -> Result<()> {
    let cpu = Device { kind: DeviceType::Cpu, index: 0 };
    assert!(device::is_available(cpu)?);
    assert_eq!(device::device_count(DeviceType::Cpu)?, 1);
    assert!(
        device::device_info(cpu)?
            .iter()
            .any(|(key, fact)| key == "architecture" && matches!(fact, Fact::Text(t) if !t.is_empty()))
    );
    let made = stream::default_stream(cpu)?;
    assert_eq!(made.device, cpu);
    assert!(stream::get_streams()?.contains(&made));
    assert!(memory::get_memory_limit()? > 0);
    assert_eq!(version::version()?, "0.32.4");
    Ok(())
}

#[test]
fn dtypes_promote_and_print() -> Result<()> {
    assert_eq!(dtype::promote_types(Dtype::Int32, Dtype::Float16)?, Dtype::Float16);
    assert_eq!(utils::result_type(&[ints(&[1], &[1]), floats(&[1.0], &[1])])?, Dtype::Float32);
    assert_eq!(dtype::kindof(Dtype::Bfloat16)?, DtypeKind::Bfloat);
    assert!(dtype::issubdtype_of(Dtype::Complex64, DtypeCategory::Inexact)?);
    assert!(!dtype::issubdtype_of(Dtype::Bool, DtypeCategory::Number)?);
    for (dtype, name) in Dtype::ALL.into_iter().zip([
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
        "bfloat16",
        "complex64",
    ]) {
        assert_eq!(utils::format_dtype(dtype)?, name);
    }
    assert_eq!(utils::format_array(&ints(&[1, 2], &[2]))?, "array([1, 2], dtype=int32)");
    assert_eq!(utils::broadcast_shapes(&[2, 1], &[3])?, [2, 3]);
    Ok(())
}

#[test]
fn a_group_of_one_gives_back_what_it_gets() -> Result<()> {
    let group = distributed::init(false, "any")?;
    assert_eq!((group.rank()?, group.size()?), (0, 1));
    let a = floats(&[1.0, 2.0], &[2]);
    assert_eq!(values(&distributed_ops::all_sum(&a, Some(&group))?), [1.0, 2.0]);
    assert_eq!(values(&distributed_ops::all_sum(&a, None)?), [1.0, 2.0]);
    Ok(())
}

#[test]
fn an_exception_is_an_error_with_the_operation() {
    let error = ops::add(&floats(&[1.0; 2], &[2]), &floats(&[1.0; 3], &[3])).err().unwrap();
    assert_eq!((error.kind(), error.op()), (ExceptionKind::InvalidArgument, "add"));
    assert!(error.what().contains("broadcast"), "{error}");
    assert!(ops::add(&floats(&[1.0; 2], &[2]), &floats(&[1.0; 2], &[2])).is_ok());
}
