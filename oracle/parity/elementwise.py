"""Functions of one, two or three arrays, element by element."""

import mlx.core as mx

from .record import V, Family, b, bf, c, d, f, h, i, i8, i16, i64, u, u8, u16, u64

family = Family("elementwise")


def unary(names, bounds=(-2, 2), dtypes=(), python={}):
    """Six forms of the float cases, and those of other dtypes."""
    for name in names.split():
        cases = [x.range(*bounds) for x in (f(2, 3), h(4), bf(), f(0, 3), f(3, 2).T, f(2, 2).S, d(3))]
        cases += [
            x(3) if x is b else x(2, 2).range(max(bounds[0], 0) if x in (u, u8, u16, u64) else bounds[0], bounds[1])
            for x in dtypes
        ]
        family.op(f"ops::{name}", python.get(name) or getattr(mx, name), *cases)


unary("abs positive square", dtypes=(i, i8, u, c, b))
unary("negative sign", dtypes=(i, i8, u, c))
unary("reciprocal", (0.25, 4), dtypes=(c,))
unary("floor ceil trunc", dtypes=(i, u8))
unary("sqrt rsqrt log log2 log10 log1p", (0.25, 4), dtypes=(c,))
unary("exp sin cos tan sinh cosh tanh", dtypes=(i, c))
unary("expm1 sigmoid erf arctan arcsinh degrees radians", dtypes=(i, b))
unary("erfinv arcsin arccos arctanh", (-0.9, 0.9))
unary("arccosh", (1, 4), dtypes=(u8,))
unary("conjugate real imag", dtypes=(c,))
unary("stop_gradient", dtypes=(c, i, b))
unary("logical_not", (0, 2), dtypes=(i, u8, b))
family.op("ops::bitwise_invert", mx.bitwise_invert, i(2, 3), u8(4), b(3), i64(), i(0, 2), i16(3, 2).T)
special = [V("float32", [[float("nan"), float("inf"), 1.5], [float("-inf"), 0.0, -2.0]])]
special += [
    V("float16", [float("inf"), float("nan")]),
    V("bfloat16", float("-inf")),
    f(0, 3),
    V("float32", [[float("nan"), 1.0], [2.0, float("inf")]]).T,
    i(3),
]
for name in "isnan isinf isfinite isposinf isneginf".split():
    family.op(
        f"ops::{name}",
        getattr(mx, name),
        *special,
        V("complex64", [1 + 2j, complex("nan")]) if name in ("isnan", "isfinite") else u8(2),
    )
family.op(
    "ops::nan_to_num",
    mx.nan_to_num,
    *[(x, 0.5, *bounds) for x in special[:5] for bounds in ((None, None), (9.0, -8.0))],
)
family.op(
    "ops::round",
    mx.round,
    (f(2, 3), 1),
    (h(3), 0),
    (f(), -1),
    (f(0, 2), 2),
    (i(3), 0),
    (f(3, 2).T, 2),
    (f(4).range(-99, 99), -1),
)
family.op("ops::to_fp8", mx.to_fp8, f(2, 3), h(3), bf(), f(0, 2), f(3, 2).T, f(4).range(-500, 500))
family.op(
    "ops::from_fp8",
    mx.from_fp8,
    (u8(2, 3).range(0, 126), "float32"),
    (u8(3).range(128, 254), "float16"),
    (u8().range(0, 100), "bfloat16"),
    (u8(0, 3), "float32"),
    (u8(3, 2).range(0, 126).T, "float32"),
)
family.op(
    "ops::hadamard_transform",
    mx.hadamard_transform,
    (f(2, 4), None),
    (f(8), 1.0),
    (h(2, 2), 0.5),
    (f(4, 2).T, None),
    (f(2, 12), None),
)
softmax = lambda x, axes, precise: mx.softmax(x, axes, precise=precise)
family.op(
    "ops::softmax",
    softmax,
    (f(2, 3), -1, False),
    (h(2, 3), 0, True),
    (bf(4), 0, False),
    (f(3, 2).T, -2, False),
    (f(2, 3, 2), 1, True),
    (f(0, 3), -1, False),
    covers="softmax_axes",
)
family.op(
    "ops::softmax_axes",
    softmax,
    (f(2, 3), [0, 1], False),
    (h(2, 3, 2), [0, -1], True),
    (f(4), [0], False),
    (f(3, 2).T, [1], False),
)
family.op(
    "ops::softmax_all",
    lambda x, precise: mx.softmax(x, precise=precise),
    (f(2, 3), False),
    (h(2, 3), True),
    (f(), False),
    (f(3, 2).T, False),
    (f(3).R, False),
)


def binary(names, dtypes, bounds=(-2, 2), right=None, python={}):
    """Broadcasts, scalars, an empty and a strided operand, and dtypes that promote."""
    right = right or bounds
    for name in names.split():
        pairs = []
        for x in dtypes:
            lo, hi = (max(bounds[0], 0), bounds[1]) if x in (u, u8, u16, u64) else bounds
            rlo, rhi = (max(right[0], 0), right[1]) if x in (u, u8, u16, u64) else right
            pairs.append((x(2, 3).range(lo, hi), x(3).range(rlo, rhi)) if x is not b else (b(2, 3), b(3)))
        x = dtypes[0]
        y = dtypes[1] if len(dtypes) > 1 else x
        fit = lambda a, bounds: a.range(max(bounds[0], 0), bounds[1]) if a.dtype[0] == "u" else a.range(*bounds)
        for left, other in [
            (x(2, 1), x(1, 3)),
            (x(), x(2)),
            (x(0, 3), x(3)),
            (x(3, 2).T, x(2, 3)),
            (x(2, 2).S, x(2, 2).R),
            (x(3), y(3)),
            (x(), x()),
        ]:
            pairs.append((fit(left, bounds), fit(other, right)))
        family.op(f"ops::{name}", python.get(name) or getattr(mx, name), *pairs)


every = (f, i, h, bf, u8, i64, c)
binary("add subtract multiply", (*every, b, d), (-4, 4))
binary("divide", (f, i, h, c, u), (1, 5))
binary("maximum minimum", (f, i, h, bf, u8, i64), (-4, 4))
binary("arctan2 logaddexp", (f, h, bf, d))
binary("power", (f, h, i, u8), (1, 3), (0, 3))
binary("floor_divide remainder divmod", (f, i, h, u8, i64), (-9, 9), (1, 4))
binary("left_shift right_shift", (i, u8, i64, u), (0, 20), (0, 4))
binary("bitwise_and bitwise_or bitwise_xor", (i, u8, b, i64), (0, 15))
binary("logical_and logical_or logical_xor", (b, i, f), (0, 2))
binary("equal not_equal greater greater_equal less less_equal", (i, f, h, u8, b), (-2, 2))
for name in ("isclose", "allclose"):
    call = lambda x, y, rtol, atol, nan, f=getattr(mx, name): f(x, y, rtol=rtol, atol=atol, equal_nan=nan)
    family.op(
        f"ops::{name}",
        call,
        (f(2, 3), f(3), 0.5, 0.5, False),
        (V("float32", [float("nan"), 1.0]), V("float32", [float("nan"), 1.0]), 1e-5, 1e-8, True),
        (V("float32", [float("nan"), 1.0]), V("float32", [float("nan"), 1.001]), 1e-5, 1e-8, False),
        (f(0, 2), f(2), 0.1, 0.1, False),
        (f(), f(), 0.1, 2.5, False),
        (h(3, 2).T, h(2, 3), 1.0, 1.0, False),
        (i(3), i(3), 0.0, 3.0, False),
    )
equal = lambda x, y, nan: mx.array_equal(x, y, equal_nan=nan)
family.op(
    "ops::array_equal",
    equal,
    (V("int32", [1, 2]), V("int32", [1, 2]), False),
    (i(2, 3), i(2, 3), False),
    (V("float32", [float("nan")]), V("float32", [float("nan")]), True),
    (V("float32", [float("nan")]), V("float32", [float("nan")]), False),
    (f(0), f(0), False),
    (V("float32", 1.0), V("int32", 1), False),
    (i(2), i(3), False),
    (V("int32", [[1, 2], [3, 4]]).T, V("int32", [[1, 3], [2, 4]]), False),
)
family.op(
    "ops::where_",
    mx.where,
    (b(2, 3), f(2, 3), f(3)),
    (b(2, 1), i(3), f()),
    (b(), h(2), h(2)),
    (b(0, 2), f(2), f(2)),
    (b(3, 2).T, f(2, 3), i(2, 3)),
    (i(3).range(0, 1), u8(3), i8(3)),
)
family.op(
    "ops::clip",
    mx.clip,
    (f(2, 3), V("float32", -0.5), V("float32", 0.5)),
    (i(4), V("int32", -3), None),
    (h(3), None, V("float16", 0.25)),
    (f(2, 3), f(3).range(-1, 0), f(2, 1).range(0, 1)),
    (f(0), V("float32", 0.0), None),
    (f(3, 2).T, V("float32", 0.0), V("float32", 1.0)),
    (V("float32", 3.0), V("float32", 0.0), V("float32", 1.0)),
)
