//! Weights in few bits.

use oxmlx::quantize::{self, Affine, Format, Picks, Quantized};
use oxmlx::{Array, Dtype, Result, ops};

use crate::device::on_cpu;
use crate::fixture::Case;
use crate::table::{Outputs, Run, check, table};

/// Mode, group size, bits.
fn format(c: &mut Case) -> Result<Format> {
    let (mode, group_size, bits) = (c.text(), c.int(), c.int());
    Ok(match mode.as_str() {
        "affine" => Affine::new(group_size, bits)?.into(),
        "mxfp4" => Format::Mxfp4,
        "mxfp8" => Format::Mxfp8,
        _ => Format::Nvfp4,
    })
}

/// Weight and its format, quantized where Python did: where a value lies between two codes, devices choose either.
fn quantized(c: &mut Case) -> Result<Quantized> {
    on_cpu(|| quantize::quantize(&c.array(), format(c)?))
}

/// The parts that the test device makes of weights, with the CPU's codes in place of others that are as near.
fn parts(w: &Array, quantize: impl Fn() -> Result<Quantized>) -> Result<Vec<Array>> {
    let made = quantize()?;
    let like = on_cpu(&quantize)?;
    let missed = |q: &Quantized| -> Result<Vec<f32>> {
        on_cpu(|| {
            let off = ops::subtract(&quantize::dequantize_as(q, Dtype::Float32)?, &w.astype(Dtype::Float32)?)?;
            ops::abs(&off)?.to_vec::<f32>()
        })
    };
    let as_near = missed(&made)?.iter().zip(missed(&like)?).all(|(made, like)| *made <= like + 1e-5 * (1.0 + like));
    let weight = if as_near { like.weight } else { made.weight };
    Ok([Some(weight), Some(made.scales), made.biases].into_iter().flatten().collect())
}

const TABLE: &[(&str, Run)] = table! {
    => "quantize::quantize" => |c| {
        let (w, format) = (c.array(), format(c)?);
        parts(&w, || quantize::quantize(&w, format))
    };
    => "quantize::quantize_scaled" => |c| {
        let (w, scale) = (c.array(), c.array());
        parts(&w, || quantize::quantize_scaled(&w, &scale))
    };
    => "quantize::dequantize" => |c| quantize::dequantize(&quantized(c)?).outputs();
    => "quantize::dequantize_as" => |c| quantize::dequantize_as(&quantized(c)?, c.dtype()).outputs();
    => "quantize::quantized_matmul" => |c| quantize::quantized_matmul(&c.array(), &quantized(c)?).outputs();
    => "quantize::quantized_matmul_untransposed" => |c| {
        quantize::quantized_matmul_untransposed(&c.array(), &quantized(c)?).outputs()
    };
    => "quantize::gather_qmm" => |c| {
        let (x, w, lhs, rhs) = (c.array(), c.array(), c.optional_array(), c.optional_array());
        let mut picks = Picks::all().transpose(c.flag()).sorted(c.flag());
        if let Some(lhs) = &lhs {
            picks = picks.lhs(lhs);
        }
        if let Some(rhs) = &rhs {
            picks = picks.rhs(rhs);
        }
        let format = format(c)?;
        let q = on_cpu(|| quantize::quantize(&w, format))?;
        quantize::gather_qmm(&x, &q, picks).outputs()
    };
};

#[test]
fn quantization_gives_the_values_of_python_mlx() {
    check("quantize", TABLE);
}
