//! Every quantized format against Python MLX: parts, values, products; and what does not fit.

use oxmlx::quantize::{
    Affine, Format, Operand, Picks, Quantized, dequantize, dequantize_as, from_fp8, gather_qmm, gather_qqmm, qqmm,
    quantize, quantize_scaled, quantized_matmul, quantized_matmul_untransposed, to_fp8,
};
use oxmlx::{Array, Device, Dtype, ErrorKind, Result, ops};

use super::reference::{assert_is, fixture, wave};

fn formats() -> Vec<(String, Format)> {
    let mut all = Vec::new();
    for (group, bits) in [(64, 1), (64, 2), (64, 3), (64, 4), (64, 5), (64, 6), (64, 8), (32, 4), (128, 4)] {
        all.push((format!("affine_{group}_{bits}"), Affine::new(group, bits).unwrap().into()));
    }
    all.extend(
        [("mxfp4", Format::Mxfp4), ("mxfp8", Format::Mxfp8), ("nvfp4", Format::Nvfp4)]
            .map(|(name, format)| (format!("{name}_{}_{}", format.group_size(), format.bits()), format)),
    );
    all
}

/// Quantized on the processor, as Python did it: of two codes that are as near devices choose either, which `parity` allows for.
fn on_cpu(quantize: impl Fn() -> Result<Quantized>) -> Result<Quantized> {
    Device::Cpu.scope(quantize)?
}

#[test]
fn every_format_is_pythons() -> Result<()> {
    let python = fixture("fused");
    let (w, x) = (wave(&[4, 128]), wave(&[3, 128]));
    for (name, format) in formats() {
        let q = on_cpu(|| quantize(&w, format))?;
        assert_eq!(q.biases.is_some(), format.affine().is_some(), "{name}");
        assert_eq!(q.shape(), [4, 128], "{name}");
        for (part, reference) in
            [&q.weight, &q.scales].into_iter().chain(&q.biases).zip(python[&name].as_array().unwrap())
        {
            assert_is(part, reference, 1e-6, &name);
        }
        let of = |what: &str| &python[format!("{name}_{what}")][0];
        assert_is(&dequantize_as(&q, Dtype::Float32)?, of("values"), 1e-6, &name);
        // Products of 128 terms in another order.
        assert_is(&quantized_matmul(&x, &q)?, of("product"), 4e-6, &name);
        assert_is(&quantized_matmul_untransposed(&wave(&[2, 4]), &q)?, of("untransposed"), 4e-6, &name);
        let stack = on_cpu(|| quantize(&wave(&[3, 4, 128]), format))?;
        let (lhs, rhs) = (Array::vector(&[1i32, 0, 1])?, Array::vector(&[2i32, 0, 1])?);
        let picked = gather_qmm(&wave(&[2, 1, 128]), &stack, Picks::all().lhs(&lhs).rhs(&rhs))?;
        assert_is(&picked, of("picked"), 4e-6, &name);
        let second = dequantize_as(&stack.take(&Array::scalar(1i32)?)?, Dtype::Float32)?;
        let wanted = dequantize_as(&stack, Dtype::Float32)?.get(1)?;
        assert_eq!(second.to_vec::<f32>()?, wanted.to_vec::<f32>()?, "{name}");
    }
    let scaled = on_cpu(|| quantize_scaled(&w, &Array::scalar(1.25f32)?))?;
    assert_is(&scaled.weight, &python["nvfp4_scaled"][0], 0.0, "scaled words");
    assert_is(&scaled.scales, &python["nvfp4_scaled"][1], 0.0, "scaled scales");
    assert_is(&dequantize_as(&scaled, Dtype::Float32)?, &python["nvfp4_scaled_values"][0], 1e-6, "scaled values");
    assert_eq!(quantized_matmul(&x, &scaled).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_is(&to_fp8(&x)?, &python["fp8"][0], 0.0, "to_fp8");
    assert_is(&from_fp8(&to_fp8(&x)?, Dtype::Float16)?, &python["fp8"][1], 0.0, "from_fp8");
    Ok(())
}

/// MLX's CUDA kernel took column-major memory for row-major, and has none for 1 bit.
#[test]
fn the_layout_of_weights_does_not_matter() -> Result<()> {
    let w = wave(&[64, 3]).transpose()?;
    for format in [Affine::new(32, 8)?.into(), Affine::new(64, 1)?.into(), Format::Mxfp8] {
        let (of_view, of_copy) = (quantize(&w, format)?, quantize(&ops::contiguous(&w, false)?, format)?);
        assert_eq!(of_view.weight.to_vec::<u32>()?, of_copy.weight.to_vec::<u32>()?, "{format:?}");
        let (seen, wanted) = (dequantize_as(&of_view, Dtype::Float32)?, on_cpu(|| quantize(&w, format))?);
        assert!(seen.all_close(&dequantize_as(&wanted, Dtype::Float32)?)?, "{format:?}");
    }
    Ok(())
}

#[test]
fn an_untold_dtype_is_the_scales_or_bfloat16() -> Result<()> {
    let w = wave(&[2, 64]).astype(Dtype::Float16)?;
    assert_eq!(dequantize(&quantize(&w, Affine::new(32, 4)?)?)?.dtype(), Dtype::Float16);
    assert_eq!(dequantize(&quantize(&w, Format::Nvfp4)?)?.dtype(), Dtype::Bfloat16);
    Ok(())
}

#[test]
fn picks_far_outside_the_stack_stay_in_it() -> Result<()> {
    let q = quantize(&wave(&[3, 4, 32]), Format::Mxfp8)?;
    let x = wave(&[2, 1, 32]);
    let pick = |at: i32| {
        let at = (Array::vector(&[at, at])? * 1i32)?;
        gather_qmm(&x, &q, Picks::all().rhs(&at))?.to_vec::<f32>()
    };
    assert_eq!(pick(1_000_000)?, pick(2)?);
    assert_eq!(pick(-1_000_000)?, pick(0)?);
    Ok(())
}

#[test]
fn the_right_side_can_be_taken_untransposed_from_a_stack() -> Result<()> {
    let q = quantize(&wave(&[3, 4, 32]), Affine::new(32, 8)?)?;
    let (x, rhs) = (wave(&[2, 1, 4]), Array::vector(&[2i32, 1])?);
    let picked = gather_qmm(&x, &q, Picks::all().rhs(&rhs).transpose(false))?;
    let wanted = ops::matmul(&x, &ops::take(&dequantize(&q)?, &rhs, 0)?)?;
    assert!(picked.all_close(&wanted)?);
    Ok(())
}

#[test]
fn a_product_of_two_quantized_sides_is_not_to_be_had_on_the_cpu() -> Result<()> {
    if Device::current()? != Device::Cpu {
        return Ok(());
    }
    let x = wave(&[16, 32]);
    let q = quantize(&x, Format::Mxfp8)?;
    let plain = Operand::Plain { weight: &x, format: Format::Nvfp4, global_scale: None };
    let affine = Operand::Plain { weight: &x, format: Affine::new(32, 4)?.into(), global_scale: None };
    for operand in [Operand::Quantized(&q), plain, affine] {
        assert_eq!(qqmm(&x, operand, None).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(gather_qqmm(&x, operand, Picks::all(), None).unwrap_err().kind(), ErrorKind::Unsupported);
    }
    let untransposed = Picks::all().transpose(false);
    assert_eq!(gather_qqmm(&x, plain, untransposed, None).unwrap_err().kind(), ErrorKind::InvalidArgument);
    Ok(())
}

#[test]
fn parts_that_do_not_fit_name_their_kind() -> Result<()> {
    assert_eq!(quantize(&wave(&[64]), Format::Mxfp4).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(quantize(&wave(&[2, 48]), Format::Mxfp4).unwrap_err().kind(), ErrorKind::Shape);
    let whole = Array::zeros::<i32>((2, 64))?;
    assert_eq!(quantize(&whole, Format::Mxfp4).unwrap_err().kind(), ErrorKind::Dtype);
    for (group, bits) in [(16, 4), (0, 4), (32, 7), (32, 0)] {
        assert_eq!(Affine::new(group, bits).unwrap_err().kind(), ErrorKind::Group);
    }
    let good = quantize(&wave(&[4, 64]), Affine::new(32, 4)?)?;
    let x = wave(&[1, 64]);
    let change = |f: &dyn Fn(&mut Quantized)| {
        let mut q = good.clone();
        f(&mut q);
        let kinds = [
            dequantize(&q).unwrap_err().kind(),
            quantized_matmul(&x, &q).unwrap_err().kind(),
            gather_qmm(&x, &q, Picks::all()).unwrap_err().kind(),
        ];
        assert!(kinds.iter().all(|kind| *kind == kinds[0]), "{kinds:?}");
        kinds[0]
    };
    assert_eq!(change(&|q| q.scales = wave(&[4, 3])), ErrorKind::Shape);
    assert_eq!(change(&|q| q.scales = wave(&[3, 2])), ErrorKind::Shape);
    assert_eq!(change(&|q| q.biases = Some(wave(&[4, 1]))), ErrorKind::Shape);
    assert_eq!(change(&|q| q.weight = wave(&[4, 8])), ErrorKind::Dtype);
    assert_eq!(change(&|q| q.biases = None), ErrorKind::InvalidArgument);
    assert_eq!(change(&|q| q.format = Format::Mxfp4), ErrorKind::InvalidArgument);
    assert_eq!(to_fp8(&whole).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(from_fp8(&x, Dtype::Float32).unwrap_err().kind(), ErrorKind::Dtype);
    assert_eq!(from_fp8(&to_fp8(&x)?, Dtype::Int32).unwrap_err().kind(), ErrorKind::Dtype);
    Ok(())
}
