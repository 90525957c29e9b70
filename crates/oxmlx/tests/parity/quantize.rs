//! Weights in few bits.

use oxmlx::quantize::{self, Affine, Format, Picks, Quantized};
use oxmlx::{Array, Result};

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

/// Weight and its format.
fn quantized(c: &mut Case) -> Result<Quantized> {
    quantize::quantize(&c.array(), format(c)?)
}

fn parts(q: Quantized) -> Vec<Array> {
    [Some(q.weight), Some(q.scales), q.biases].into_iter().flatten().collect()
}

const TABLE: &[(&str, Run)] = table! {
    => "quantize::quantize" => |c| Ok(parts(quantized(c)?));
    => "quantize::quantize_scaled" => |c| Ok(parts(quantize::quantize_scaled(&c.array(), &c.array())?));
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
        quantize::gather_qmm(&x, &quantize::quantize(&w, format(c)?)?, picks).outputs()
    };
};

#[test]
fn quantization_gives_the_values_of_python_mlx() {
    check("quantize", TABLE);
}
