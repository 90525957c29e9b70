"""Reductions, running reductions, sorting."""

import mlx.core as mx

from .record import V, Family, b, bf, c, d, f, h, i, i8, i64, u8

family = Family("reduce")

WHOLE = (f(2, 3), i(4), h(2, 2), f(), f(3, 2).T, f(2, 2).S)
AXIS = (
    (f(2, 3), 0, False),
    (i(2, 3), -1, True),
    (h(4), 0, False),
    (f(3, 2).T, 1, False),
    (f(2, 3, 2), -2, True),
    (f(2, 3).R, 1, False),
)
AXES = ((f(2, 3), [0, 1], False), (i(2, 3, 2), [0, -1], True), (f(3, 2).T, [1], False), (h(2, 2), [-1, 0], True))


def reduction(names, empty=True, axes=True, more=()):
    for name in names.split():
        call = getattr(mx, name)
        one = lambda x, axis, keep, call=call: call(x, axis, keepdims=keep)
        # Without an identity only an empty result may come of an empty input, and not of each.
        none = [(f(0, 2), 1, False)] if name in ("mean", "median", "max", "min", "minmax") else []
        none = [(f(0, 2), 0, False), (f(0, 2), 1, True)] if empty else none
        family.op(
            f"ops::{name}",
            lambda x, call=call: call(x),
            *WHOLE,
            *more,
            *([f(0, 2)] if empty else []),
            covers=f"{name}_all",
        )
        family.op(f"ops::{name}_axis", one, *AXIS, *[(x, 0, False) for x in more if x.shape], *none)
        if axes:
            family.op(f"ops::{name}_axes", one, *AXES, *([(f(0, 2), [0, 1], False)] if empty else []))


reduction("sum prod", more=(b(3), i8(3), bf(3), c(3), i64(2, 2), d(2)))
reduction("mean", empty=False, more=(bf(3), c(3), i64(2, 2), d(2)))
reduction("max min", empty=False, more=(b(3), u8(3), bf(3), i64(2, 2), V("float32", [1.0, float("nan"), 2.0])))
reduction("median", empty=False, more=(bf(3), i64(2, 2)))
reduction("all any", more=(b(3), b(2, 3), i(2, 2).range(0, 1), f(2, 2).range(0, 1)))
reduction("count_nonzero", more=(b(3), i(2, 3).range(0, 1), f(2, 2).range(0, 1)))
reduction("logsumexp", empty=False, more=(bf(3), V("float32", [1000.0, 1000.0])))
reduction("argmax argmin", empty=False, axes=False, more=(u8(3), bf(3), V("int32", [2, 5, 5, 2])))
reduction("minmax", empty=False, more=(u8(3), bf(3), i64(2, 2)))
for name in ("var", "std"):
    call = getattr(mx, name)
    whole = lambda x, ddof, call=call: call(x, ddof=ddof)
    one = lambda x, axis, keep, ddof, call=call: call(x, axis, keepdims=keep, ddof=ddof)
    family.op(
        f"ops::{name}", whole, (f(2, 3), 0), (i(4), 1), (h(2, 2), 0), (f(3, 2).T, 1), (bf(3), 0), covers=f"{name}_all"
    )
    family.op(
        f"ops::{name}_axis",
        one,
        (f(2, 3), 0, False, 0),
        (i(2, 3), -1, True, 1),
        (h(4), 0, False, 0),
        (f(3, 2).T, 1, False, 1),
        (f(0, 2), 1, False, 0),
    )
    family.op(
        f"ops::{name}_axes",
        one,
        (f(2, 3), [0, 1], False, 0),
        (f(2, 3, 2), [0, -1], True, 1),
        (h(2, 2), [1], False, 0),
        (f(3, 2).T, [0], False, 1),
    )


def count(x, axes, inverted, dtype):
    n = 1.0
    for axis in axes:
        n *= x.shape[axis]
    return mx.array(1 / n if inverted else n).astype(dtype)


# Python has no name for it; the count is the product of the lengths.
family.op(
    "ops::number_of_elements",
    count,
    (f(2, 3), [0], False, "int32"),
    (f(2, 3), [0, -1], False, "float32"),
    (i(4, 2), [0], True, "float32"),
    (f(0, 2), [0], False, "int32"),
    (f(3, 2).T, [1], True, "float16"),
)

SCAN = [
    (f(2, 3), 0, False, True),
    (i(2, 3), -1, True, True),
    (h(4), 0, False, False),
    (f(3, 2).T, 1, True, False),
    (f(2, 3, 2), -2, False, True),
    (f(3).R, 0, False, True),
]
FLAT = [
    (f(2, 3), False, True),
    (i(4), True, True),
    (h(2, 2), False, False),
    (f(3, 2).T, True, False),
    (f(1), False, True),
]
for name, typed in (("cumsum", True), ("cumprod", True), ("cummax", False), ("cummin", False), ("logcumsumexp", False)):
    call = getattr(mx, name)
    scans, flats = [(*x, None) for x in SCAN], [(*x, None) for x in FLAT]
    if typed:
        scans += [(i8(2, 3), 1, False, True, "int32"), (b(3), 0, False, True, None), (f(0, 3), 0, False, True, None)]
        flats += [(u8(4), False, True, "float32")]
    elif name == "logcumsumexp":
        scans, flats = [x for x in scans if x[0].dtype != "int32"], [x for x in flats if x[0].dtype != "int32"]
    extra = lambda dtype: {"dtype": dtype} if dtype is not None else {}
    family.op(
        f"ops::{name}_axis",
        lambda x, axis, r, n, t, call=call: call(x, axis, reverse=r, inclusive=n, **extra(t)),
        *scans,
    )
    family.op(
        f"ops::{name}",
        lambda x, r, n, t, call=call: call(x, reverse=r, inclusive=n, **extra(t)),
        *flats,
        covers=f"{name}_all",
    )
family.op(
    "ops::diff",
    mx.diff,
    (f(2, 3), 1, -1),
    (i(5), 2, 0),
    (f(3, 2).T, 1, 0),
    (f(0, 3), 1, 1),
    (b(4), 1, 0),
    (h(4), 3, 0),
    (f(3), 0, 0),
)

ORDER = [
    (f(2, 3), 0),
    (i(2, 3), -1),
    (h(5), 0),
    (f(3, 2).T, 1),
    (f(0, 3), 1),
    (V("int32", [3, 1, 3, 2, 1]), 0),
    (f(4).R, 0),
]
KTH = [(f(5), 2, 0), (i(2, 4), 1, -1), (h(3, 2), -1, 0), (f(3, 2).T, 1, 1), (V("int32", [3, 1, 3, 2]), 2, 0)]
for name in ("sort", "argsort"):
    call = getattr(mx, name)
    family.op(f"ops::{name}_axis", lambda x, axis, call=call: call(x, axis), *ORDER)
    family.op(
        f"ops::{name}",
        lambda x, call=call: call(x, None),
        f(2, 3),
        i(4),
        f(3, 2).T,
        bf(3),
        V("float32", [1.0, float("nan"), -1.0]),
        u8(2, 2),
        covers=f"{name}_all",
    )


def parts(made, k, axis, x, indices):
    values = mx.take_along_axis(x, made, axis) if indices else made
    k = k % x.shape[axis]
    low, high = mx.split(values, [k], axis)
    return [mx.sort(low, axis), mx.sort(high, axis), mx.take(values, mx.array([k]), axis)]


for name in ("partition", "argpartition"):
    # Which of equal parts comes first is open: the values at and on both sides of the place are what counts.
    call = getattr(mx, name)
    family.op(
        f"ops::{name}_axis",
        lambda x, k, axis, call=call: parts(call(x, k, axis), k, axis, x, call is mx.argpartition),
        *KTH,
    )
    family.op(
        f"ops::{name}",
        lambda x, k, call=call: parts(call(x, k, None), k, 0, x.reshape(-1), call is mx.argpartition),
        (f(5), 2),
        (i(2, 3), 4),
        (f(3, 2).T, 0),
        (h(4), -2),
        covers=f"{name}_all",
    )


family.op(
    "ops::topk_axis",
    lambda x, k, axis: mx.sort(mx.topk(x, k, axis), axis),
    (f(5), 2, 0),
    (i(2, 4), 3, -1),
    (h(3, 2), 1, 0),
    (f(3, 2).T, 2, 1),
    (f(3), 3, 0),
)
family.op(
    "ops::topk",
    lambda x, k: mx.sort(mx.topk(x, k, None)),
    (f(5), 2),
    (i(2, 3), 4),
    (f(3, 2).T, 1),
    (h(4), 4),
    covers="topk_all",
)
sorted_values = V("float32", [-1.0, 0.0, 0.5, 0.5, 2.0])
family.op(
    "ops::searchsorted",
    lambda x, v, side: mx.searchsorted(x, v, side),
    (sorted_values, f(2, 3), "left"),
    (sorted_values, V("float32", 0.5), "left"),
    (sorted_values, V("float32", 0.5), "right"),
    (V("int32", [1, 3, 3, 5]), i(4).range(0, 6), "right"),
    (sorted_values, f(0), "left"),
    (sorted_values, f(3, 2).T, "left"),
)
full = lambda x, size, fill: mx.unique(
    x, size=size, return_index=True, return_inverse=True, return_counts=True, fill_value=fill
)
UNIQUE = [
    (V("int32", [3, 1, 3, 2, 1]), 3, None),
    (V("float32", [[1.0, 0.5], [0.5, 1.0]]), 4, V("float32", -1.0)),
    (V("int32", [[3, 1], [1, 2]]).T, 2, None),
    (V("bool", [True, True]), 1, None),
    (V("int32", [5, 4]), 3, V("int32", 0)),
]
family.op("ops::unique", full, *UNIQUE)
family.op("ops::unique_values", lambda x, size, fill: mx.unique(x, size=size, fill_value=fill), *UNIQUE, covers="")
