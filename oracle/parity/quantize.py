"""Weights in few bits."""

import mlx.core as mx

from .record import V, Family, bf, f, h

family = Family("quantize")


def how(mode, group, bits):
    return {"mode": mode, "group_size": group, "bits": bits}


# Arguments: mode, group size, bits.
WEIGHTS = [
    (f(2, 64), "affine", 64, 4),
    (f(2, 32), "affine", 32, 8),
    (h(2, 64), "affine", 32, 2),
    (bf(2, 32), "affine", 32, 3),
    (f(1, 128), "affine", 128, 4),
    (f(32, 2).T, "affine", 32, 5),
    (f(2, 32), "affine", 32, 6),
    (f(2, 32), "affine", 32, 1),
    (f(2, 32), "mxfp4", 32, 4),
    (bf(1, 64), "mxfp8", 32, 8),
    (f(2, 32), "nvfp4", 16, 4),
]
family.op("quantize::quantize", lambda w, *form: mx.quantize(w, **how(*form)), *WEIGHTS, covers="ops::quantize")
family.op(
    "quantize::dequantize",
    lambda w, *form: mx.dequantize(*mx.quantize(w, **how(*form)), **how(*form)),
    *WEIGHTS,
    covers="ops::dequantize",
)
family.op(
    "quantize::dequantize_as",
    lambda w, *form: mx.dequantize(*mx.quantize(w, **how(*form[:3])), **how(*form[:3]), dtype=form[3]),
    *[(*row, "float16" if i % 2 else "float32") for i, row in enumerate(WEIGHTS[-6:]) if row[1] != "affine"],
    (f(1, 32), "nvfp4", 16, 4, "float16"),
    covers="",
)
family.op(
    "quantize::quantize_scaled",
    lambda w, scale: mx.quantize(w, mode="nvfp4", global_scale=scale),
    (f(2, 32), V("float32", 1.25)),
    (f(1, 32), V("float32", 4.0)),
    (f(32, 1).T, V("float32", 2.0)),
    (f(2, 2, 32), V("float32", 1.0)),
    covers="",
)
PRODUCT = [
    (f(1, 64), f(3, 64), "affine", 64, 4),
    (f(4, 32), f(8, 32), "affine", 32, 8),
    (h(2, 64), h(8, 64), "affine", 32, 4),
    (bf(2, 2, 32), bf(8, 32), "affine", 32, 4),
    (f(32, 2).T, f(8, 32), "affine", 32, 2),
    (f(1, 64), f(8, 64), "affine", 32, 3),
    (f(2, 32), f(8, 32), "affine", 32, 6),
    (f(2, 32), f(8, 32), "mxfp4", 32, 4),
    (f(1, 32), f(8, 32), "mxfp8", 32, 8),
    (f(2, 32), f(8, 32), "nvfp4", 16, 4),
]
# MLX adds halves up in halves on the processor, oxmlx in single precision.
TOLERANCE = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 6e-2}
family.op(
    "quantize::quantized_matmul",
    lambda x, w, *form: mx.quantized_matmul(x, *mx.quantize(w, **how(*form)), transpose=True, **how(*form)),
    *PRODUCT,
    covers="ops::quantized_matmul",
    tol=TOLERANCE,
)
family.op(
    "quantize::quantized_matmul_untransposed",
    lambda x, w, *form: mx.quantized_matmul(x, *mx.quantize(w, **how(*form)), transpose=False, **how(*form)),
    (f(2, 4), f(4, 64), "affine", 64, 4),
    (f(1, 8), f(8, 32), "affine", 32, 8),
    (f(4, 2).T, f(4, 32), "mxfp4", 32, 4),
    (h(2, 4), h(4, 32), "affine", 32, 4),
    covers="",
    tol=TOLERANCE,
)


def gathered(x, w, lhs, rhs, transpose, is_sorted, *form):
    return mx.gather_qmm(
        x,
        *mx.quantize(w, **how(*form)),
        lhs_indices=lhs,
        rhs_indices=rhs,
        transpose=transpose,
        sorted_indices=is_sorted,
        **how(*form),
    )


family.op(
    "quantize::gather_qmm",
    gathered,
    (f(2, 1, 64), f(3, 4, 64), V("uint32", [1, 0, 1]), V("uint32", [2, 0, 1]), True, False, "affine", 64, 4),
    (f(2, 1, 32), f(2, 4, 32), None, V("int32", [0, 1]), True, True, "affine", 32, 8),
    (f(2, 1, 4), f(2, 4, 32), V("uint32", [1, 0]), None, False, False, "affine", 32, 4),
    (f(1, 1, 32), f(3, 2, 32), V("uint32", [0, 0]), V("uint32", [2, 1]), True, False, "mxfp4", 32, 4),
    covers="ops::gather_qmm",
    tol=TOLERANCE,
)
