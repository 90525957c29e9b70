"""Arrays made from nothing, conversions, copies."""

import mlx.core as mx

from .record import DTYPES, V, Family, b, bf, c, f, h, i, i64, u8

family = Family("construct")

for name in ("zeros", "ones"):
    call = getattr(mx, name)
    family.op(
        f"ops::{name}",
        call,
        ([2, 3], "float32"),
        ([], "int32"),
        ([0, 2], "bool"),
        ([2], "complex64"),
        ([1, 2], "bfloat16"),
    )
    family.op(
        f"ops::{name}_like",
        getattr(mx, f"{name}_like"),
        f(2, 3),
        i(),
        b(0, 2),
        c(2),
        f(3, 2).T,
        covers=f"{name}_like {name}_like_dtype",
    )
family.op(
    "ops::full",
    mx.full,
    ([2, 3], V("float32", 1.5)),
    ([], V("int32", 7)),
    ([2, 3], i(3)),
    ([0, 2], f()),
    ([2, 2], bf(2, 1)),
    ([2, 3], f(3).R),
    covers="full full_dtype",
)
family.op(
    "ops::full_like",
    lambda x, v: mx.full_like(x, v),
    (f(2, 3), V("float32", 1.5)),
    (i(2), V("float32", 2.5)),
    (h(0, 2), f()),
    (f(3, 2).T, i(3)),
    covers="full_like full_like_dtype",
)
family.op(
    "ops::arange",
    lambda a, z, step, t: mx.arange(a, z, step, t),
    (0.0, 5.0, 1.0, "float32"),
    (3.0, -3.0, -1.5, "float16"),
    (0.0, 10.0, 3.0, "int32"),
    (2.0, 2.0, 1.0, "float32"),
    (0.5, 3.2, 0.7, "bfloat16"),
    (0.0, 4.0, 1.0, "uint8"),
)
family.op("ops::arange_i32", lambda a, z, step: mx.arange(a, z, step), (0, 5, 1), (5, 0, -2), (3, 3, 1), (-3, 7, 4))
linspace = lambda a, z, n, end, t: mx.linspace(a, z, n, dtype=t) if end else mx.linspace(a, z, n + 1, dtype=t)[:-1]
family.op(
    "ops::linspace",
    linspace,
    (0.0, 1.0, 5, True, "float32"),
    (3.0, -3.0, 4, True, "float16"),
    (0.0, 1.0, 4, False, "float32"),
    (2.0, 5.0, 1, True, "float32"),
    (0.0, 10.0, 6, True, "int32"),
)
family.op(
    "ops::eye",
    mx.eye,
    (3, 3, 0, "float32"),
    (2, 4, 1, "int32"),
    (4, 2, -1, "float16"),
    (3, 3, 9, "float32"),
    (0, 2, 0, "float32"),
)
family.op("ops::identity", mx.identity, (3, "float32"), (1, "int32"), (0, "float32"), (2, "complex64"))
family.op("ops::tri", mx.tri, (3, 3, 0, "float32"), (2, 4, 1, "int32"), (4, 2, -1, "float16"), (3, 3, -9, "bool"))
for name in ("tril", "triu"):
    family.op(
        f"ops::{name}",
        getattr(mx, name),
        (f(3, 3), 0),
        (i(2, 2, 3), 1),
        (f(3, 2).T, -1),
        (b(2, 3), 0),
        (f(0, 2), 0),
        (c(2, 2), 5),
    )
family.op(
    "ops::diag", mx.diag, (f(3), 0), (i(2), 1), (f(3, 3), -1), (f(3, 2).T, 0), (b(2), -1), (f(0), 0), (c(2, 2), 1)
)
meshgrid = lambda x, sparse, indexing: mx.meshgrid(*x, sparse=sparse, indexing=indexing)
family.op(
    "ops::meshgrid",
    meshgrid,
    ([f(2), f(3)], False, "xy"),
    ([f(2), f(3)], True, "ij"),
    ([i(2), i(1), i(3)], False, "ij"),
    ([f(2), f(3).R], True, "xy"),
    ([h(2)], False, "xy"),
)
for name in "hanning hamming bartlett blackman".split():
    family.op(f"ops::{name}", getattr(mx, name), 5, 1, 8, 2, 0)

values = V("float32", [[0.0, 1.0, 2.7], [-1.5, 3.0, 100.0]])
plain = V("float32", [0.0, 1.0, 2.7, 100.0])
family.op(
    "ops::astype",
    lambda x, t: x.astype(t),
    *[(plain if "uint" in t else values, t) for t in DTYPES],
    (i(3), "float16"),
    (b(2, 2), "int64"),
    (c(2), "complex64"),
    (f(3, 2).T, "int32"),
    (f(0, 2), "uint8"),
    (V("int32", [300, -1]), "uint8"),
    (bf(), "float32"),
)
family.op(
    "ops::view",
    lambda x, t: x.view(t),
    (f(2, 3), "int32"),
    (f(2, 2), "uint8"),
    (u8(2, 8), "float16"),
    (h(4), "uint32"),
    (f(3, 2).T, "uint32"),
    (i64(2), "int32"),
    (f(0, 2), "uint8"),
    (c(2), "float32"),
)
same = lambda x, *_: x
family.op(
    "ops::contiguous",
    mx.contiguous,
    (f(3, 2).T, False),
    (f(2, 2).S, True),
    (i(), False),
    (b(0, 2), False),
    (h(3).R, False),
)
family.op("ops::copy", mx.array, f(2, 3), f(3, 2).T, i(), b(0, 2), c(2, 2).S)
family.op(
    "ops::depends",
    mx.depends,
    ([f(2, 3)], [i(2)]),
    ([f(2), i(3)], [f(1)]),
    ([f(3, 2).T], [b(2)]),
    ([h(), f(0)], [i(1), i(2)]),
)
family.op(
    "ops::as_strided",
    mx.as_strided,
    (f(6), [2, 3], [3, 1], 0),
    (f(6), [3, 2], [1, 3], 0),
    (i(8), [3, 4], [1, 1], 1),
    (f(3, 2).T, [6], [1], 0),
    (f(4), [3], [-1], 3),
    (f(4), [2, 2], [0, 1], 1),
    (f(4), [0, 2], [1, 1], 0),
    (f(4), [], [], 2),
)
