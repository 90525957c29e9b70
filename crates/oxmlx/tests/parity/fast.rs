//! Fused functions: oxmlx's own kernels on the CPU, MLX's elsewhere, against Python MLX.

use oxmlx::fast::{self, Attention, GatedDelta, Mask, Rope};
use oxmlx::{Array, Result};

use crate::fixture::Case;
use crate::table::{Outputs, Run, check, table};

fn mask_of(mask: &Option<Option<Array>>) -> Mask<'_> {
    match mask {
        None => Mask::None,
        Some(None) => Mask::Causal,
        Some(Some(mask)) => Mask::Array(mask),
    }
}

/// Scale, traditional, offset.
fn rope(c: &mut Case, x: &Array, rope: Rope<'_>) -> Result<Vec<Array>> {
    let rope = rope.scale(c.float() as f32).traditional(c.flag());
    fast::rope(x, &rope, c.int()).outputs()
}

const TABLE: &[(&str, Run)] = table! {
    fast::rms_norm(a, oa, x32); fast::layer_norm(a, oa, oa, x32); fast::swiglu(a, a); fast::cross_entropy(a, a);
    => "fast::rope" => |c| {
        let (x, dims, base) = (c.array(), c.int(), c.float() as f32);
        rope(c, &x, Rope::new(dims, base))
    };
    => "fast::rope_freqs" => |c| {
        let (x, dims, freqs) = (c.array(), c.int(), c.array());
        rope(c, &x, Rope::with_freqs(dims, &freqs))
    };
    => "fast::scaled_dot_product_attention" => |c| {
        let (q, k, v, scale, mask) = (c.array(), c.array(), c.array(), c.float() as f32, c.mask());
        fast::scaled_dot_product_attention(&q, &k, &v, scale, mask_of(&mask)).outputs()
    };
    => "fast::attention" => |c| {
        let (q, k, v, scale, mask) = (c.array(), c.array(), c.array(), c.float() as f32, c.mask());
        let sinks = c.optional_array();
        let mut attention = Attention::new(scale).mask(mask_of(&mask));
        if let Some(sinks) = &sinks {
            attention = attention.sinks(sinks);
        }
        fast::attention(&q, &k, &v, attention).outputs()
    };
    => "fast::rope_offsets" => |c| {
        let (x, dims, base) = (c.array(), c.int(), c.float() as f32);
        let rope = Rope::new(dims, base).scale(c.float() as f32).traditional(c.flag());
        fast::rope_offsets(&x, &rope, &c.array()).outputs()
    };
    => "fast::gated_delta_update" => |c| {
        let (q, k, v, gates, beta) = (c.array(), c.array(), c.array(), c.array(), c.array());
        let (state, mask) = (c.optional_array(), c.optional_array());
        let mut step = GatedDelta::new(&gates, &beta);
        if let Some(state) = &state {
            step = step.state(state);
        }
        if let Some(mask) = &mask {
            step = step.mask(mask);
        }
        fast::gated_delta_update(&q, &k, &v, step).outputs()
    };
};

#[test]
fn fused_functions_give_the_values_of_python_mlx() {
    check("fast", TABLE);
}
