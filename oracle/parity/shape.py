"""Shapes, views, joining and splitting."""

import mlx.core as mx

from .record import V, Family, b, c, f, h, i

family = Family("shape")

family.op(
    "ops::reshape",
    mx.reshape,
    (f(2, 3), [3, 2]),
    (i(4), [-1, 2]),
    (f(3, 2).T, [6]),
    (b(0, 2), [2, 0]),
    (h(), [1, 1]),
    (f(1), []),
)
family.op(
    "ops::flatten",
    mx.flatten,
    (f(2, 3), 0, -1),
    (i(2, 3, 2), 1, 2),
    (f(3, 2).T, 0, 1),
    (h(), 0, -1),
    (f(0, 2), 0, 1),
    (f(2, 3), 1, 1),
)
family.op(
    "ops::unflatten",
    mx.unflatten,
    (f(6), 0, [2, 3]),
    (i(2, 4), -1, [-1, 2]),
    (f(3, 4).T, 0, [2, 2]),
    (f(0, 2), 0, [0, 1]),
    (h(1), 0, [1, 1, 1]),
)
family.op(
    "ops::transpose",
    mx.transpose,
    (f(2, 3), [1, 0]),
    (i(2, 3, 2), [2, 0, -2]),
    (f(3, 2).T, [1, 0]),
    (b(0, 2), [1, 0]),
    (h(), []),
    covers="transpose_axes",
)
family.op("ops::transpose_all", mx.transpose, f(2, 3), i(2, 3, 2), f(3, 2).T, h(), b(0, 2))
family.op("ops::matrix_transpose", mx.matrix_transpose, f(2, 3), i(2, 3, 2), f(3, 2).T, b(0, 2), c(1, 3))
family.op("ops::swapaxes", mx.swapaxes, (f(2, 3), 0, 1), (i(2, 3, 2), -1, 0), (f(3, 2).T, 0, 0), (b(0, 2), 0, 1))
family.op("ops::moveaxis", mx.moveaxis, (f(2, 3), 0, 1), (i(2, 3, 2), 0, -1), (f(3, 2).T, 1, 0), (b(0, 2), 0, 1))
family.op(
    "ops::expand_dims",
    mx.expand_dims,
    (f(2, 3), 0),
    (i(2), -1),
    (h(), 0),
    (f(3, 2).T, 1),
    (b(0), 1),
    covers="expand_dims_axis",
)
family.op(
    "ops::expand_dims_axes",
    mx.expand_dims,
    (f(2, 3), [0, 2]),
    (i(2), [-1, 0]),
    (h(), [0, 1]),
    (f(3, 2).T, [1]),
    (b(0), [1]),
)
family.op("ops::squeeze", mx.squeeze, (f(1, 3), 0), (i(2, 1), -1), (f(1, 2).T, 1), (b(0, 1), 1), covers="squeeze_axis")
family.op(
    "ops::squeeze_axes", mx.squeeze, (f(1, 3, 1), [0, 2]), (i(2, 1), [-1]), (f(1, 2).T, [1]), (b(0, 1, 1), [1, -1])
)
family.op("ops::squeeze_all", mx.squeeze, f(1, 3, 1), i(2, 1), f(1, 2).T, h(), b(0, 1))
flip = lambda x, axis: mx.flip(x, axis)
family.op("ops::flip", flip, (f(2, 3), 0), (i(2, 3), -1), (f(3, 2).T, 1), (b(0, 2), 0), (h(3).R, 0), covers="flip_axis")
family.op("ops::flip_axes", flip, (f(2, 3), [0, 1]), (i(2, 3, 2), [-1, 0]), (f(3, 2).T, [1]), (b(0, 2), [0]))
family.op("ops::flip_all", mx.flip, f(2, 3), i(4), f(3, 2).T, h(), b(0, 2))
family.op(
    "ops::broadcast_to",
    mx.broadcast_to,
    (f(3), [2, 3]),
    (i(2, 1), [2, 3]),
    (h(), [2, 2]),
    (f(1, 2).T, [2, 2]),
    (b(1), [0]),
    (f(2, 3), [2, 3]),
)
family.op(
    "ops::broadcast_arrays",
    lambda x: mx.broadcast_arrays(*x),
    ([f(3), f(2, 1)],),
    ([i(), h(2)],),
    ([f(3, 2).T, b(3)],),
    ([f(0, 2), f(2)],),
    ([f(2)],),
)
for n in (1, 2, 3):
    call = getattr(mx, f"atleast_{n}d")
    family.op(f"ops::atleast_{n}d", call, f(), i(3), f(3, 2).T, b(0, 2), h(1, 2, 1, 2))
    family.op(
        f"ops::atleast_{n}d_each",
        lambda x, call=call: [call(y) for y in x],
        ([f(), i(3)],),
        ([f(3, 2).T],),
        ([b(0, 2), h()],),
        ([f(2), f(1, 1, 2)],),
    )

family.op(
    "ops::concatenate",
    mx.concatenate,
    ([f(2, 3), f(1, 3)], 0),
    ([i(2, 1), i(2, 2)], -1),
    ([f(2), h(2)], 0),
    ([f(3, 2).T, f(2, 2)], 1),
    ([f(0, 2), f(1, 2)], 0),
    ([b(2)], 0),
)
family.op(
    "ops::stack",
    mx.stack,
    ([f(2, 3), f(2, 3)], 0),
    ([i(2), i(2)], -1),
    ([f(), h()], 0),
    ([f(3, 2).T, f(2, 3)], 1),
    ([b(0), b(0)], 0),
)
family.op("ops::split", mx.split, (f(4, 2), 2, 0), (i(2, 3), 3, -1), (f(4, 2).T, 2, 1), (b(0, 2), 1, 0))
family.op(
    "ops::split_at",
    mx.split,
    (f(4, 2), [1, 3], 0),
    (i(2, 3), [1], -1),
    (f(4, 2).T, [2], 1),
    (b(3), [0, 3], 0),
    (h(3), [], 0),
)
family.op(
    "ops::unstack",
    lambda x, axis: mx.unstack(x, axis=axis),
    (f(2, 3), 0),
    (i(2, 3), -1),
    (f(3, 2).T, 1),
    (h(2), 0),
    (b(2, 0), 0),
)
family.op(
    "ops::repeat_axis", mx.repeat, (f(2, 3), 2, 0), (i(2, 2), 3, -1), (f(3, 2).T, 2, 1), (b(2), 0, 0), (h(0, 2), 2, 1)
)
family.op("ops::repeat", mx.repeat, (f(2, 2), 2), (i(), 3), (f(3, 2).T, 2), (b(0), 2), covers="repeat_all")
family.op(
    "ops::tile",
    mx.tile,
    (f(2, 3), [2, 1]),
    (i(2), [2, 2]),
    (h(), [3]),
    (f(3, 2).T, [1, 2]),
    (b(2, 2), [2]),
    (f(0, 2), [2, 2]),
)
value = lambda x, widths, v, mode: mx.pad(x, widths, mode, 0 if v is None else v)
PAD = [
    (f(2, 3), [[1, 0], [0, 2]], None, "constant"),
    (i(3), [[1, 1]], V("int32", 7), "constant"),
    (f(2, 3), [[1, 1], [2, 0]], None, "edge"),
    (f(3, 2).T, [[0, 1], [1, 0]], V("float32", 0.5), "constant"),
    (h(4), [[2, 3]], None, "reflect"),
    (i(4), [[3, 2]], None, "symmetric"),
    (b(0), [[1, 1]], None, "constant"),
]
family.op("ops::pad", value, *PAD)


def pad_axes(x, axes, widths, v, mode):
    every = [(0, 0)] * x.ndim
    for axis, width in zip(axes, widths):
        every[axis] = tuple(width)
    return value(x, every, v, mode)


family.op(
    "ops::pad_axes",
    pad_axes,
    (f(2, 3), [1], [[1, 2]], None, "constant"),
    (i(2, 3), [-1, 0], [[1, 1], [0, 1]], V("int32", 5), "constant"),
    (f(3, 2).T, [0], [[1, 1]], None, "edge"),
    (h(2, 0), [0], [[1, 0]], None, "constant"),
)
family.op(
    "ops::roll_axis",
    lambda x, s, axis: mx.roll(x, s, axis),
    (f(2, 3), 1, 1),
    (i(2, 3), -1, -1),
    (f(3, 2).T, 5, 0),
    (b(0, 2), 1, 0),
    (h(3), 0, 0),
)
family.op(
    "ops::roll_axes",
    lambda x, s, axes: mx.roll(x, tuple(s), tuple(axes)),
    (f(2, 3), [1, 1], [0, 1]),
    (i(2, 3, 2), [-1, 2], [-1, 0]),
    (f(3, 2).T, [1], [1]),
    (b(0, 2), [1], [1]),
)
family.op(
    "ops::roll",
    lambda x, s: mx.roll(x, s),
    (f(2, 3), 1),
    (i(4), -1),
    (f(3, 2).T, 4),
    (h(1), 3),
    (b(0), 1),
    covers="roll_all",
)
