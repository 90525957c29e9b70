"""Fused functions."""

import mlx.core as mx

from .record import V, Family, b, bf, f, h

family = Family("fast")
NORM = [
    (f(2, 8), f(8), 1e-5),
    (h(2, 8), h(8), 1e-5),
    (bf(3, 4), bf(4), 1e-6),
    (f(8, 2).T, f(8), 1e-5),
    (f(2, 3, 4), None, 1e-5),
    (f(4), f(4), 0.1),
    (f(0, 8), f(8), 1e-5),
]
family.op("fast::rms_norm", mx.fast.rms_norm, *NORM)
# Arguments: dims, base, scale, traditional, offset.
rope = lambda x, dims, base, scale, traditional, offset: mx.fast.rope(
    x, dims, traditional=traditional, base=base, scale=scale, offset=offset
)
family.op(
    "fast::rope",
    rope,
    (f(1, 2, 3, 8), 8, 10000.0, 1.0, False, 0),
    (f(1, 2, 3, 8), 4, 10000.0, 1.0, True, 5),
    (h(2, 1, 2, 4), 4, 100.0, 0.5, False, 3),
    (bf(1, 2, 1, 4), 4, 10000.0, 1.0, True, 1),
    (f(4, 3, 2, 1).T, 4, 10000.0, 1.0, False, 2),
    (f(2, 3, 4), 4, 500.0, 2.0, False, 0),
    (f(1, 2, 0, 4), 4, 10000.0, 1.0, False, 0),
)
freqs = lambda x, dims, freqs, scale, traditional, offset: mx.fast.rope(
    x, dims, traditional=traditional, base=None, scale=scale, offset=offset, freqs=freqs
)
family.op(
    "fast::rope_freqs",
    freqs,
    (f(1, 2, 3, 8), 8, f(4).range(1, 9), 1.0, False, 0),
    (f(1, 2, 3, 8), 4, f(2).range(1, 9), 1.0, True, 5),
    (h(2, 1, 2, 4), 4, f(2).range(1, 9), 1.0, False, 3),
    (f(4, 3, 2, 1).T, 4, f(2).range(1, 9), 0.5, False, 2),
    covers="rope",
)


def attention(q, k, v, scale, mask):
    return mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)


ATTENTION = [
    (f(1, 2, 3, 8), f(1, 2, 3, 8), f(1, 2, 3, 8), 0.35, None),
    (f(1, 4, 2, 8), f(1, 2, 5, 8), f(1, 2, 5, 8), 0.35, "causal"),
    (f(1, 2, 1, 8), f(1, 2, 4, 8), f(1, 2, 4, 8), 0.5, "causal"),
    (h(2, 2, 3, 8), h(2, 1, 3, 8), h(2, 1, 3, 8), 0.35, None),
    (f(1, 2, 2, 8), f(1, 2, 3, 8), f(1, 2, 3, 8), 0.35, b(2, 3)),
    (f(1, 2, 2, 8), f(1, 2, 3, 8), f(1, 2, 3, 8), 0.35, f(1, 1, 1, 3)),
    (f(8, 2, 2, 1).T, f(1, 2, 3, 8), f(1, 2, 3, 8), 0.35, None),
    (bf(1, 2, 2, 8), bf(1, 2, 2, 8), bf(1, 2, 2, 8), 0.35, "causal"),
    (f(1, 1, 1, 8), f(1, 1, 3, 8), f(1, 1, 3, 8), 0.35, V("bool", [[False, False, False]])),
]
family.op("fast::scaled_dot_product_attention", attention, *ATTENTION, tol={"float16": 4e-3, "bfloat16": 3e-2})
silu = lambda x: x * mx.sigmoid(x)
family.op(
    "fast::swiglu",
    lambda gate, up: silu(gate) * up,
    (f(2, 3), f(2, 3)),
    (h(4), h(4)),
    (bf(2, 2), bf(2, 2)),
    (f(3, 2).T, f(2, 3)),
    (f(0, 2), f(0, 2)),
    covers="",
)
family.op(
    "fast::layer_norm",
    mx.fast.layer_norm,
    (f(2, 8), f(8), f(8), 1e-5),
    (h(2, 8), h(8), None, 1e-5),
    (bf(3, 4), None, bf(4), 1e-6),
    (f(8, 2).T, f(8), f(8), 1e-5),
    (f(2, 3, 4), None, None, 1e-5),
    (f(0, 4), f(4), f(4), 1e-5),
)
family.op(
    "fast::cross_entropy",
    mx.fast.cross_entropy,
    (f(2, 5), V("int32", [0, 4])),
    (f(2, 2, 3), V("uint32", [[0, 1], [2, 2]])),
    (h(3, 4), V("int32", [1, 2, 3])),
    (f(5, 2).T, V("int64", [3, 0])),
    (f(4), V("int32", 2)),
)


def offsets(x, dims, base, scale, traditional, offsets):
    return mx.fast.rope(x, dims, traditional=traditional, base=base, scale=scale, offset=offsets)


family.op(
    "fast::rope_offsets",
    offsets,
    (f(2, 2, 3, 8), 8, 100.0, 1.0, False, V("int32", [1, 5])),
    (f(1, 2, 3, 8), 4, 10000.0, 0.5, True, V("int32", [3])),
    (h(2, 1, 2, 4), 4, 100.0, 1.0, False, V("int32", 7)),
    (f(4, 3, 2, 1).T, 4, 10000.0, 1.0, False, V("int32", [2])),
)
family.op(
    "fast::attention",
    lambda q, k, v, scale, mask, sinks: mx.fast.scaled_dot_product_attention(
        q, k, v, scale=scale, mask=mask, sinks=sinks
    ),
    (f(1, 4, 3, 8), f(1, 2, 5, 8), f(1, 2, 5, 8), 0.3, None, f(4)),
    (f(1, 2, 3, 8), f(1, 2, 3, 8), f(1, 2, 3, 8), 0.3, "causal", f(2)),
    (f(2, 2, 2, 8), f(2, 1, 3, 8), f(2, 1, 3, 8), 0.3, b(2, 3), f(2)),
    (f(1, 2, 3, 8), f(1, 2, 3, 8), f(1, 2, 3, 8), 0.3, None, None),
    covers="",
    tol=1e-4,
)
DELTA = [(2, 3, 1, 4, 2, 3), (1, 1, 2, 4, 2, 4), (2, 2, 1, 32, 1, 2)]
rows = [
    (
        f(B, T, H, D).range(-0.5, 0.5),
        f(B, T, H, D).range(-0.5, 0.5),
        f(B, T, HV, DV),
        f(B, T, HV).range(0, 1),
        f(B, T, HV).range(0, 1),
        None,
        None,
    )
    for B, T, H, D, HV, DV in DELTA
]
rows += [(*rows[0][:5], f(2, 2, 3, 4), None), (*rows[0][:5], f(2, 2, 3, 4), V("bool", [[1, 1, 0], [1, 0, 1]]))]
family.op("fast::gated_delta_update", mx.fast.gated_delta_update, *rows, tol=1e-4)
