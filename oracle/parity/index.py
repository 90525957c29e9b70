"""Reading and writing parts of arrays.

Python writes with `at` and slices what C++ has as scatter and slice_update: the same operations underneath.
"""

import mlx.core as mx
import numpy as np

from .record import V, Family, b, f, h, i

family = Family("index")

take = V("int32", [2, 0, -1])
family.op(
    "ops::take",
    mx.take,
    (f(2, 3), take, 1),
    (i(3, 2), V("uint8", [[0, 2], [1, 1]]), 0),
    (f(3, 2).T, take, -1),
    (h(3), V("int64", 1), 0),
    (b(2, 3), i(0), 1),
    (f(3, 2), V("uint32", [2, 2]), -2),
    covers="take_axis",
)
family.op(
    "ops::take_all",
    lambda x, n: mx.take(x, n),
    (f(2, 3), take),
    (i(4), V("int32", [[0, 3], [1, -4]])),
    (f(3, 2).T, take),
    (h(3), V("uint8", 2)),
    (f(2, 3), i(0)),
)
family.op(
    "ops::take_index",
    lambda x, n, axis: mx.take(x, n, axis),
    (f(2, 3), 1, 0),
    (i(2, 3), 0, -1),
    (f(3, 2).T, 2, 1),
    (h(3), 1, 0),
    (b(2, 3), 1, -2),
    covers="take_index_axis take_index_all",
)
along = V("int32", [[2, 0], [-1, 1]])
family.op(
    "ops::take_along_axis",
    mx.take_along_axis,
    (f(2, 3), along, 1),
    (i(3, 2), V("uint32", [[2, 0]]), 0),
    (f(3, 2).T, along, -1),
    (h(3), take, 0),
    (f(2, 3), i(2, 0), 1),
)
family.op(
    "ops::put_along_axis",
    mx.put_along_axis,
    (f(2, 3), V("int32", [[2, 0], [-1, 1]]), f(2, 2), 1),
    (i(3, 2), V("uint32", [[2, 0]]), V("int32", [[7, 8]]), 0),
    (f(3, 2).T, V("int32", [[0], [2]]), f(2, 1), -1),
    (h(3), V("int32", [1]), h(), 0),
    (f(2, 3), i(2, 0), f(2, 0), 1),
)


def add_along(x, indices, values, axis):
    out = np.array(x.astype(mx.float32))
    where = list(np.indices(indices.shape))
    where[axis] = np.array(indices) % x.shape[axis]
    np.add.at(out, tuple(where), np.broadcast_to(np.array(values.astype(mx.float32)), indices.shape))
    return mx.array(out).astype(x.dtype)


family.op(
    "ops::scatter_add_axis",
    add_along,
    (f(2, 3), V("int32", [[2, 2], [-1, 1]]), f(2, 2), 1),
    (i(3, 2), V("uint32", [[2, 2], [2, 0]]), i(2, 2), 0),
    (f(3, 2).T, V("int32", [[0], [2]]), f(2, 1), -1),
    (f(3), V("int32", [1, 1, 1]), f(), 0),
    (f(2, 3), i(2, 0), f(2, 0), 1),
)


def where(x, indices, axes, sizes):
    """The numpy index of every slice that MLX gathers or scatters: first the indices' own dimensions, then the slice's."""
    indices = np.broadcast_arrays(*[np.array(n).astype(np.int64) for n in indices]) if indices else []
    out = []
    for axis, size in enumerate(sizes):
        place = np.arange(size).reshape([size if n == axis else 1 for n in range(len(sizes))])
        if axis in axes:
            start = indices[axes.index(axis)]
            place = (start % x.shape[axis]).reshape(start.shape + (1,) * len(sizes)) + place
        out.append(place)
    return tuple(out)


family.op(
    "ops::gather",
    lambda x, n, axes, sizes: x[tuple(mx.array(w) for w in np.broadcast_arrays(*where(x, n, axes, sizes)))],
    (f(3, 4), [V("int32", [2, 0])], [0], [1, 4]),
    (i(3, 4), [V("uint32", [[0, 1]]), V("uint32", [[2, 1]])], [0, 1], [1, 2]),
    (f(4, 3).T, [V("int32", [1])], [1], [3, 2]),
    (h(5), [V("int32", 3)], [0], [1]),
    (f(3, 2), [V("int32", [1, 2, -1])], [0], [1, 1]),
)

KIND = {
    "scatter": None,
    "scatter_add": "add",
    "scatter_prod": "multiply",
    "scatter_max": "maximum",
    "scatter_min": "minimum",
}
SCATTER = [
    (f(3, 2), [V("int32", [2, 0])], f(2, 1, 2), [0]),
    (i(3, 2), [V("int32", [-1])], i(1, 1, 2), [0]),
    (f(2, 3).T, [V("uint32", [1, 2])], f(2, 1, 2), [0]),
    (f(4), [V("int32", 2)], f(1), [0]),
    (i(3, 4), [V("int32", [0, 2]), V("int32", [1, 2])], i(2, 1, 2), [0, 1]),
    (f(3), [i(0)], f(0, 1), [0]),
]
REPEATED = (f(3), [V("int32", [1, 1, 0])], f(3, 1), [0])
for name, kind in KIND.items():

    def scatter(x, indices, updates, axes, kind=kind):
        place = tuple(mx.array(w) for w in np.broadcast_arrays(*where(x, indices, axes, updates.shape[-x.ndim :])))
        if kind:
            return getattr(x.at[place], kind)(updates)
        out = mx.array(x)
        out[place] = updates
        return out

    family.op(f"ops::{name}", scatter, *SCATTER, *([REPEATED] if kind else []))


def masked(x, mask, values):
    out = mx.array(x)
    out[mask] = values
    return out


family.op(
    "ops::masked_scatter",
    masked,
    (f(4), V("bool", [True, False, True, False]), f(2)),
    (f(2, 3), V("bool", [[True, False, False], [False, True, True]]), f(3)),
    (f(3, 2).T, V("bool", [[True, False, False], [False, True, True]]), f(3)),
    (i(3), V("bool", [False] * 3), i(1)),
    (f(2, 2), V("bool", [True, False]), f(2)),
)

slices = lambda start, stop, strides: tuple(
    slice(a, None if s < 0 and z < -n else z, s) for a, z, s, n in zip(start, stop, strides, [99] * 9)
)
family.op(
    "ops::slice",
    lambda x, *a: x[slices(*a)],
    (f(3, 4), [1, 0], [3, 4], [1, 2]),
    (i(5), [-3], [-1], [1]),
    (f(4, 3).T, [0, 1], [3, 4], [2, 1]),
    (h(5), [4], [0], [-2]),
    (b(3, 2), [1, 0], [1, 2], [1, 1]),
    (f(), [], [], []),
)
UPDATE = [
    (f(3, 4), f(2, 2), [1, 0], [3, 4], [1, 2]),
    (i(5), i(), [-3], [-1], [1]),
    (f(4, 3).T, f(3), [0, 1], [3, 4], [1, 1]),
    (h(5), h(2), [4], [0], [-2]),
    (f(3, 2), f(0, 2), [1, 0], [1, 2], [1, 1]),
]


def update(x, values, *place):
    out = mx.array(x)
    out[slices(*place)] = values
    return out


family.op("ops::slice_update", update, *UPDATE)
for name, kind in (("add", "add"), ("prod", "multiply"), ("max", "maximum"), ("min", "minimum")):
    family.op(f"ops::slice_update_{name}", lambda x, v, *p, kind=kind: getattr(x.at[slices(*p)], kind)(v), *UPDATE)
family.op(
    "ops::slice_dynamic",
    mx.slice,
    (f(3, 4), V("int32", [1, 2]), [0, 1], [2, 2]),
    (i(5), V("int32", [3]), [0], [2]),
    (f(4, 3).T, V("uint32", [1]), [1], [3, 2]),
    (h(5), V("int64", [3]), [0], [2]),
    (b(3, 2), V("int32", [0]), [-1], [3, 1]),
)
family.op(
    "ops::slice_update_dynamic",
    mx.slice_update,
    (f(3, 4), f(2, 2), V("int32", [1, 2]), [0, 1]),
    (i(5), i(2), V("int32", [3]), [0]),
    (f(4, 3).T, f(3, 2), V("uint32", [1]), [1]),
    (h(5), h(2), V("int32", [0]), [0]),
)
