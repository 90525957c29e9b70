//! Normalisation, rotary embedding, attention, the gated delta rule and losses against Python MLX.

use oxmlx::fast::{self, Attention, GatedDelta, Mask, Rope};
use oxmlx::{Array, ErrorKind, Result, ops};

use super::reference::{assert_is, fixture, wave};

/// 8 to 10 units in the last place of float32.
const NEAR: f64 = 1e-6;

fn ints(values: &[i32]) -> Array {
    Array::vector(values).unwrap()
}

#[test]
fn norms_and_losses_are_pythons() -> Result<()> {
    let python = fixture("fused");
    let x = wave(&[2, 3, 4]);
    let (weight, bias) = (wave(&[4]), (1.0f32 - wave(&[4]))?);
    assert_is(&fast::layer_norm(&x, Some(&weight), Some(&bias), 1e-5)?, &python["layer_norm"][0], NEAR, "layer_norm");
    assert_is(&fast::layer_norm(&x, None, None, 1e-5)?, &python["layer_norm_plain"][0], NEAR, "without weights");
    let targets = Array::matrix(&[[0i32, 3, 1], [2, 2, 0]])?;
    assert_is(&fast::cross_entropy(&x, &targets)?, &python["cross_entropy"][0], NEAR, "cross_entropy");
    // Outside 0..4: clamped.
    let far = Array::matrix(&[[-1i32, 1_000_000_000, 1], [2, 2, i32::MIN]])?;
    assert_is(&fast::cross_entropy(&x, &far)?, &python["cross_entropy"][0], NEAR, "far targets");
    Ok(())
}

#[test]
fn rope_takes_offsets_in_an_array_and_frequencies() -> Result<()> {
    let python = fixture("fused");
    let x = wave(&[2, 2, 3, 8]);
    let freqs = Array::vector(&[1.0f32, 2.0, 4.0, 8.0])?;
    let plain = Rope::new(8, 100.0);
    assert_is(&fast::rope_offsets(&x, &plain, &ints(&[1, 5]))?, &python["rope_offsets"][0], NEAR, "offsets");
    let half = Rope::new(4, 100.0).traditional(true).scale(0.5);
    // MLX's GPU kernels would step from it to a second one, behind its memory.
    assert_is(&fast::rope_offsets(&x, &half, &ints(&[3]))?, &python["rope_one_offset"][0], NEAR, "one offset");
    let scalar = Array::scalar(3i32)?;
    assert_is(&fast::rope_offsets(&x, &half, &scalar)?, &python["rope_one_offset"][0], NEAR, "a scalar offset");
    assert_is(&fast::rope(&x, &half, 3)?, &python["rope_one_offset"][0], NEAR, "a number");
    let by_freqs = Rope::with_freqs(8, &freqs);
    assert_is(&fast::rope(&x, &by_freqs, 2)?, &python["rope_freqs"][0], NEAR, "freqs");
    assert_is(&fast::rope_offsets(&x, &by_freqs, &ints(&[2, 0]))?, &python["rope_offsets_freqs"][0], NEAR, "both");
    Ok(())
}

#[test]
fn attention_takes_every_mask_and_sinks() -> Result<()> {
    let python = fixture("fused");
    let (q, k, v) = (wave(&[1, 4, 3, 8]), (wave(&[1, 2, 5, 8]) / 2.0f32)?, (1.0f32 - wave(&[1, 2, 5, 8]))?);
    let shown = ops::greater(&wave(&[3, 5]), &Array::scalar(-0.6f32)?)?;
    let (added, sinks) = (wave(&[1, 4, 3, 5]), Array::vector(&[0.5f32, -1.0, 2.0, 0.0])?);
    let plain = Attention::new(0.3);
    for (name, how) in [
        ("attention", plain),
        ("attention_causal", plain.mask(Mask::Causal)),
        ("attention_bool", plain.mask(Mask::Array(&shown))),
        ("attention_added", plain.mask(Mask::Array(&added))),
        ("attention_sinks", plain.sinks(&sinks)),
        ("attention_sinks_causal", plain.sinks(&sinks).mask(Mask::Causal)),
    ] {
        assert_is(&fast::attention(&q, &k, &v, how)?, &python[name][0], NEAR, name);
    }
    if oxmlx::Device::current()? == oxmlx::Device::Cpu {
        let error = fast::attention(&q, &k, &v, plain.force_fused(true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    Ok(())
}

#[test]
fn the_gated_delta_rule_is_pythons() -> Result<()> {
    let python = fixture("fused");
    let (q, k, v) = ((wave(&[2, 3, 1, 4]) / 2.0f32)?, (wave(&[2, 3, 1, 4]) / 3.0f32)?, wave(&[2, 3, 2, 3]));
    let (gates, beta) = (ops::sigmoid(&wave(&[2, 3, 2]))?, ops::sigmoid(&(1.0f32 - wave(&[2, 3, 2]))?)?);
    let step = GatedDelta::new(&gates, &beta);
    let (out, state) = fast::gated_delta_update(&q, &k, &v, step)?;
    assert_is(&out, &python["delta"][0], NEAR, "out");
    assert_is(&state, &python["delta"][1], NEAR, "state");
    let (from, mask) = (wave(&[2, 2, 3, 4]), Array::matrix(&[[true, true, false], [true, false, true]])?);
    let (out, state) = fast::gated_delta_update(&q, &k, &v, step.state(&from).mask(&mask))?;
    assert_is(&out, &python["delta_from"][0], NEAR, "masked out");
    assert_is(&state, &python["delta_from"][1], NEAR, "masked state");
    Ok(())
}

#[test]
fn what_does_not_fit_names_its_kind() -> Result<()> {
    let kind = |outcome: Result<Array>| outcome.unwrap_err().kind();
    let (x, three) = (wave(&[2, 4]), wave(&[3]));
    assert_eq!(kind(fast::layer_norm(&Array::scalar(1.0f32)?, None, None, 0.0)), ErrorKind::Shape);
    assert_eq!(kind(fast::layer_norm(&x, Some(&three), None, 0.0)), ErrorKind::Shape);
    assert_eq!(kind(fast::cross_entropy(&x, &ints(&[0, 1, 2]))), ErrorKind::Shape);
    assert_eq!(kind(fast::cross_entropy(&x, &wave(&[2]))), ErrorKind::Dtype);
    assert_eq!(kind(fast::cross_entropy(&wave(&[2, 0]), &ints(&[0, 1]))), ErrorKind::Index);
    let q = wave(&[2, 2, 3, 8]);
    assert_eq!(kind(fast::rope_offsets(&q, &Rope::new(8, 10.0), &ints(&[1, 2, 3]))), ErrorKind::Shape);
    assert_eq!(kind(fast::rope_offsets(&q, &Rope::new(8, 10.0), &three)), ErrorKind::Dtype);
    assert_eq!(kind(fast::rope_offsets(&q, &Rope::new(7, 10.0), &ints(&[1]))), ErrorKind::InvalidArgument);
    let (g, v) = (wave(&[2, 3, 2]), wave(&[2, 3, 2, 3]));
    let floats = wave(&[2, 3]);
    let step = GatedDelta::new(&g, &g);
    let delta = |q: &[i32], k: &[i32], step| fast::gated_delta_update(&wave(q), &wave(k), &v, step).map(|(out, _)| out);
    assert_eq!(kind(delta(&[2, 3, 1, 5], &[2, 3, 1, 4], step)), ErrorKind::Shape);
    assert_eq!(kind(delta(&[2, 3, 4], &[2, 3, 4], step)), ErrorKind::Shape);
    assert_eq!(kind(delta(&[2, 3, 3, 4], &[2, 3, 3, 4], step)), ErrorKind::Group);
    assert_eq!(kind(delta(&[2, 3, 1, 4], &[2, 3, 1, 4], step.mask(&floats))), ErrorKind::Dtype);
    assert_eq!(kind(delta(&[2, 3, 1, 4], &[2, 3, 1, 4], step.state(&g))), ErrorKind::Shape);
    Ok(())
}
