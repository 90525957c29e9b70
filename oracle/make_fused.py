"""Writes fixtures/fused.json: values of mlx.core.fast and of the quantized operations by Python MLX, on the CPU.

    pip install mlx==0.32.4 'mlx[cpu]==0.32.4'
    python oracle/make_fused.py

Inputs are wave(shape): ((i * 7) mod 11 - 5) / 4 for the i-th element, which the test makes in the same way.
"""

import json
import math
import pathlib

import mlx.core as mx


def wave(*shape):
    return ((mx.arange(math.prod(shape)) * 7 % 11 - 5) / 4).reshape(shape)


def put(out, name, *arrays):
    out[name] = [
        {"shape": a.shape, "dtype": str(a.dtype).split(".")[-1], "values": [int(x) if x == int(x) else float(f"{x:.7g}") for x in a.astype(mx.float64).flatten().tolist()]}
        for a in arrays
    ]


def fast(out):
    x = wave(2, 3, 4)
    put(out, "layer_norm", mx.fast.layer_norm(x, wave(4), 1 - wave(4), 1e-5))
    put(out, "layer_norm_plain", mx.fast.layer_norm(x, None, None, 1e-5))
    put(out, "cross_entropy", mx.fast.cross_entropy(x, mx.array([[0, 3, 1], [2, 2, 0]])))
    q = wave(2, 2, 3, 8)
    rope = lambda **how: mx.fast.rope(q, **{"dims": 8, "traditional": False, "base": 100.0, "scale": 1.0, "offset": 0} | how)
    put(out, "rope_offsets", rope(offset=mx.array([1, 5])))
    put(out, "rope_one_offset", rope(offset=mx.array([3]), dims=4, traditional=True, scale=0.5))
    put(out, "rope_freqs", rope(base=None, freqs=mx.array([1.0, 2.0, 4.0, 8.0]), offset=2))
    put(out, "rope_offsets_freqs", rope(base=None, freqs=mx.array([1.0, 2.0, 4.0, 8.0]), offset=mx.array([2, 0])))
    q, k, v = wave(1, 4, 3, 8), wave(1, 2, 5, 8) / 2, 1 - wave(1, 2, 5, 8)
    attend = lambda **how: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.3, **how)
    sinks = mx.array([0.5, -1.0, 2.0, 0.0])
    put(out, "attention", attend())
    put(out, "attention_causal", attend(mask="causal"))
    put(out, "attention_bool", attend(mask=wave(3, 5) > -0.6))
    put(out, "attention_added", attend(mask=wave(1, 4, 3, 5)))
    put(out, "attention_sinks", attend(sinks=sinks))
    put(out, "attention_sinks_causal", attend(sinks=sinks, mask="causal"))
    queries, keys, values = wave(2, 3, 1, 4) / 2, wave(2, 3, 1, 4) / 3, wave(2, 3, 2, 3)
    gates, beta = mx.sigmoid(wave(2, 3, 2)), mx.sigmoid(1 - wave(2, 3, 2))
    put(out, "delta", *mx.fast.gated_delta_update(queries, keys, values, gates, beta))
    mask = mx.array([[True, True, False], [True, False, True]])
    put(out, "delta_from", *mx.fast.gated_delta_update(queries, keys, values, gates, beta, wave(2, 2, 3, 4), mask))


def quantize(out):
    w, x = wave(4, 128), wave(3, 128)
    formats = [("affine", 64, bits) for bits in (1, 2, 3, 4, 5, 6, 8)] + [("affine", 32, 4), ("affine", 128, 4)]
    formats += [("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)]
    for mode, group, bits in formats:
        how = {"group_size": group, "bits": bits, "mode": mode}
        parts = mx.quantize(w, **how)
        put(out, f"{mode}_{group}_{bits}", *parts)
        put(out, f"{mode}_{group}_{bits}_values", mx.dequantize(*parts, **how, dtype=mx.float32))
        put(out, f"{mode}_{group}_{bits}_product", mx.quantized_matmul(x, *parts, **how))
        put(out, f"{mode}_{group}_{bits}_untransposed", mx.quantized_matmul(wave(2, 4), *parts, transpose=False, **how))
        stack = mx.quantize(wave(3, 4, 128), **how)
        picked = mx.gather_qmm(
            wave(2, 1, 128), *stack, lhs_indices=mx.array([1, 0, 1]), rhs_indices=mx.array([2, 0, 1]), **how
        )
        put(out, f"{mode}_{group}_{bits}_picked", picked)
    scaled = mx.quantize(w, mode="nvfp4", global_scale=mx.array(1.25))
    put(out, "nvfp4_scaled", *scaled)
    put(out, "nvfp4_scaled_values", mx.dequantize(*scaled, mode="nvfp4", global_scale=mx.array(1.25), dtype=mx.float32))
    put(out, "fp8", mx.to_fp8(x), mx.from_fp8(mx.to_fp8(x), mx.float16))


def main():
    assert mx.__version__ == "0.32.4", mx.__version__
    mx.set_default_device(mx.cpu)
    out = {"mlx": mx.__version__}
    fast(out)
    quantize(out)
    lines = [f'"{name}": {json.dumps(value, separators=(",", ":"))}' for name, value in out.items()]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (pathlib.Path(__file__).parent.parent / "fixtures/fused.json").write_text(text)


main()
