"""Products of matrices and tensors."""

import mlx.core as mx
import numpy as np

from .record import V, Family, b, bf, c, d, f, h, i

family = Family("matmul")

PAIRS = [
    (f(2, 3), f(3, 4)),
    (f(3), f(3)),
    (f(2, 2, 3), f(3, 2)),
    (h(2, 3), h(3, 2)),
    (bf(2, 3), bf(3)),
    (f(3, 2).T, f(2, 3).T),
    (f(2, 0), f(0, 3)),
    (f(2, 3), i(3, 2)),
    (c(2, 2), c(2, 2)),
    (d(2, 3), d(3, 2)),
    (f(2, 1, 2, 3), f(1, 2, 3, 1)),
    (f(2, 4).S, f(4, 2)),
]
family.op("ops::matmul", mx.matmul, *PAIRS)
family.op(
    "ops::addmm",
    lambda z, x, y, alpha, beta: mx.addmm(z, x, y, alpha=alpha, beta=beta),
    (f(4), f(2, 3), f(3, 4), 1.0, 1.0),
    (f(2, 1), f(2, 3), f(3, 4), 0.5, 2.0),
    (h(2, 2), h(2, 3), h(3, 2), 1.0, -1.0),
    (f(), f(3, 2).T, f(3, 2), 2.0, 0.0),
    (f(2, 2, 2), f(2, 2, 3), f(2, 3, 2), 1.0, 1.0),
    (f(2, 3), f(2, 0), f(0, 3), 1.0, 1.0),
)
family.op("ops::outer", mx.outer, (f(2), f(3)), (i(2), f(2)), (f(2, 2).T, f(2)), (f(0), f(2)), (h(), h(2)))
family.op("ops::inner", mx.inner, (f(3), f(3)), (f(2, 3), f(4, 3)), (f(3, 2).T, f(3)), (f(), f(3)), (h(2, 2), h(2)))
family.op("ops::kron", mx.kron, (f(2), f(3)), (i(2, 2), i(1, 2)), (f(3, 2).T, f(2)), (f(), f(2)), (h(2), f(2, 1)))
family.op(
    "ops::vecdot",
    lambda x, y, axis: mx.vecdot(x, y, axis=axis),
    (f(2, 3), f(2, 3), -1),
    (f(2, 3), f(2, 1), 0),
    (c(3), c(3), 0),
    (f(3, 2).T, f(2, 3), 1),
    (f(0), f(0), 0),
)
family.op(
    "ops::tensordot",
    lambda x, y, n: mx.tensordot(x, y, axes=n),
    (f(2, 3), f(3, 2), 1),
    (f(2, 3, 2), f(3, 2, 4), 2),
    (f(3, 2).T, f(3), 1),
    (f(2), f(3), 0),
    (h(2, 2), h(2, 2), 2),
    covers="tensordot_axis",
)
family.op(
    "ops::tensordot_axes",
    lambda x, y, m, n: mx.tensordot(x, y, axes=[m, n]),
    (f(2, 3), f(2, 4), [0], [0]),
    (f(2, 3, 2), f(3, 2), [1, -1], [0, 1]),
    (f(3, 2).T, f(3), [1], [0]),
    (h(2), h(2), [], []),
)
family.op(
    "ops::diagonal",
    mx.diagonal,
    (f(3, 3), 0, 0, 1),
    (i(2, 3, 2), 1, -1, 1),
    (f(3, 2).T, -1, 0, 1),
    (b(0, 2), 0, 0, 1),
    (f(2, 2), 7, 0, 1),
)
family.op(
    "ops::trace",
    lambda x, k, p, q, t: mx.trace(x, k, p, q, **({} if t is None else {"dtype": t})),
    (f(3, 3), 0, 0, 1, None),
    (i(2, 3, 2), 1, -1, 1, None),
    (f(3, 2).T, -1, 0, 1, None),
    (h(2, 2), 0, 0, 1, "float32"),
    (f(0, 2), 0, 0, 1, None),
    covers="trace trace_dtype",
)
family.op(
    "ops::gather_mm",
    lambda x, y, m, n, s: mx.gather_mm(x, y, m, n, sorted_indices=s),
    (f(3, 2, 2), f(2, 2, 3), V("uint32", [2, 0]), V("uint32", [1, 0]), False),
    (f(3, 2, 2), f(3, 2, 2), None, V("int32", [0, 2, 2]), True),
    (f(2, 1, 2), f(3, 2, 2), V("int32", [[0, 1]]), V("int32", [[2, 2]]), False),
    (f(2, 2), f(2, 2, 2), None, V("uint32", [1, 1, 0]), False),
    (f(2, 2, 2), f(2, 2, 3), V("uint32", [1, 1]), None, False),
)
family.op(
    "ops::segmented_mm",
    mx.segmented_mm,
    (f(2, 6), f(6, 3), V("uint32", [[0, 2], [2, 6]])),
    (f(2, 4), f(4, 2), V("uint32", [[1, 3]])),
    (f(4, 2).T, f(4, 2), V("uint32", [[0, 4], [0, 1]])),
    (f(2, 4), f(4, 2), V("uint32", [[2, 2]])),
)


def masked(x, y, size, out, lhs, rhs):
    return mx.block_masked_mm(x, y, size, out, lhs, rhs)


ones = lambda *shape: V("bool", (np.arange(np.prod(shape)) % 2 == 0).reshape(shape))
family.op(
    "ops::block_masked_mm",
    masked,
    (f(4, 4), f(4, 4), 32, ones(1, 1), None, None),
    (f(33, 2).range(0, 1), f(2, 3), 32, ones(2, 1), None, None),
    (f(2, 34).range(0, 1), f(34, 2), 32, None, ones(1, 2), ones(2, 1)),
    (f(4, 3).T, f(4, 2), 64, V("float32", [[0.5]]), V("float32", [[2.0]]), None),
)

EINSUM = [
    ("ij,jk->ik", [f(2, 3), f(3, 2)]),
    ("ii->i", [f(3, 3)]),
    ("ij->ji", [f(3, 2).T]),
    ("i,j->ij", [i(2), f(3)]),
    ("bij,jk->bik", [f(2, 2, 3), f(3, 2)]),
    ("ij,ij->", [h(2, 2), h(2, 2)]),
    ("ij,jk,kl->il", [f(2, 3), f(3, 2), f(2, 2)]),
    ("ij->i", [f(2, 0)]),
]
family.op("einsum::einsum", lambda s, x: mx.einsum(s, *x), *EINSUM)
path = lambda s, x: [mx.array(list(step)) for step in mx.einsum_path(s, *x)[0]]
family.op("einsum::einsum_path", path, *EINSUM)
