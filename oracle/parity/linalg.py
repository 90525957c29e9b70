"""Linear algebra. Factors are fixed up to the signs of their columns: those are recorded without."""

import mlx.core as mx

from .record import V, Family, d, f, h, i

family = Family("linalg")
A = V("float32", [[4.0, 1.0, -1.0], [1.0, 3.0, 0.5], [-1.0, 0.5, 5.0]])
B = V("float32", [[[2.0, 1.0], [1.0, 3.0]], [[1.0, -0.5], [-0.5, 2.0]]])
D = V("float64", [[2.0, 1.0], [1.0, 3.0]])
SYMMETRIC = [A, B, D, A.T, V("float32", [[2.5]])]
GENERAL = [
    V("float32", [[1.0, 2.0], [3.0, 4.5]]),
    B,
    D,
    V("float32", [[2.0, 1.0, 0.0], [0.5, 3.0, 1.0], [0.0, -1.0, 4.0]]).T,
    V("float32", [[-3.0]]),
]
TALL = [f(3, 2), f(2, 3), f(2, 3, 2), d(2, 2), f(3, 2).T, f(1, 1)]

for name in ("inv", "det"):
    family.op(f"linalg::{name}", getattr(mx.linalg, name), *GENERAL)
family.op("linalg::slogdet", mx.linalg.slogdet, *GENERAL)
family.op("linalg::pinv", mx.linalg.pinv, *TALL[:2], f(3, 2).T, f(2, 3, 2), f(2, 2))
family.op(
    "linalg::tri_inv",
    lambda x, upper: mx.linalg.tri_inv(x, upper=upper),
    (V("float32", [[2.0, 0.0], [1.0, 4.0]]), False),
    (V("float32", [[2.0, 1.0], [0.0, 4.0]]), True),
    (V("float32", [[2.0, 0.0], [1.0, 4.0]]).T, True),
    (V("float32", [[[2.0]], [[4.0]]]), False),
    (V("float64", [[2.0, 0.0], [1.0, 4.0]]), False),
)
for name in ("cholesky", "cholesky_inv"):
    call = getattr(mx.linalg, name)
    inputs = (
        [V("float32", [[2.0, 0.0], [1.0, 3.0]]), V("float32", [[2.0, 1.0], [0.0, 3.0]])]
        if name == "cholesky_inv"
        else [A, A]
    )
    more = (
        [(B, False), (D, True), (A.T, False)]
        if name == "cholesky"
        else [(V("float32", [[[2.0]], [[3.0]]]), False), (V("float32", [[2.0, 0.0], [1.0, 3.0]]).T, True)]
    )
    family.op(f"linalg::{name}", lambda x, upper, call=call: call(x, upper=upper), *zip(inputs, (False, True)), *more)
family.op("linalg::qr", lambda x: [mx.abs(y) for y in mx.linalg.qr(x)], *TALL)
family.op("linalg::svd", lambda x: [mx.abs(y) for y in mx.linalg.svd(x)], *TALL[:4], f(2, 2), tol=1e-4)
family.op("linalg::singular_values", lambda x: mx.linalg.svd(x, compute_uv=False), *TALL, covers="svd")
family.op("linalg::lu", mx.linalg.lu, *GENERAL[:4], f(3, 2), f(2, 3))
family.op("linalg::lu_factor", mx.linalg.lu_factor, *GENERAL[:4], f(3, 3))
family.op("linalg::eigvalsh", mx.linalg.eigvalsh, *[(x, t) for x, t in zip(SYMMETRIC, "LULUL")])
family.op(
    "linalg::eigh",
    lambda x, t: [mx.abs(y) for y in mx.linalg.eigh(x, t)],
    *[(x, t) for x, t in zip(SYMMETRIC, "LULUL")],
    tol=1e-4,
)
real = lambda w: mx.sort(mx.real(w), -1)
family.op(
    "linalg::eigvals",
    lambda x: real(mx.linalg.eigvals(x)),
    *SYMMETRIC[:2],
    *GENERAL[:1],
    A.T,
    V("float32", [[0.0, 1.0], [-1.0, 0.0]]),
    tol=1e-4,
)
family.op(
    "linalg::eig",
    lambda x: (lambda w, v: [real(w), mx.abs(mx.sum(v * mx.conjugate(v), -2))])(*mx.linalg.eig(x)),
    *SYMMETRIC[:2],
    *GENERAL[:1],
    A.T,
    tol=1e-4,
)
SOLVE = [(GENERAL[0], f(2)), (GENERAL[0], f(2, 3)), (B, f(2, 2, 1)), (D, d(2)), (GENERAL[3], f(3, 2)), (A.T, f(2, 3).T)]
family.op("linalg::solve", mx.linalg.solve, *SOLVE)
LOWER, UPPER = V("float32", [[2.0, 0.0], [1.0, 4.0]]), V("float32", [[2.0, 1.0], [0.0, 4.0]])
family.op(
    "linalg::solve_triangular",
    lambda x, y, upper: mx.linalg.solve_triangular(x, y, upper=upper),
    (LOWER, f(2), False),
    (UPPER, f(2, 3), True),
    (LOWER.T, f(2), True),
    (V("float64", [[2.0, 0.0], [1.0, 4.0]]), d(2, 1), False),
)
family.op(
    "linalg::cross",
    lambda x, y, axis: mx.linalg.cross(x, y, axis=axis),
    (f(3), f(3), -1),
    (f(2, 3), f(1, 3), 1),
    (f(3, 2), f(3, 2), 0),
    (f(2), f(3), 0),
    (f(3, 2).T, f(2, 3), -1),
    (h(2, 2), h(2, 2), -1),
    (i(3), f(3), 0),
)


def norm(x, order, axes, keep):
    return mx.linalg.norm(x, **({} if order is None else {"ord": order}), axis=axes, keepdims=keep)


NORM = [
    (f(2, 3), None, None, False),
    (f(4), 1.0, None, False),
    (f(2, 3), float("inf"), [0], False),
    (f(3, 2).T, 2.0, [-1], True),
    (f(3, 3), "fro", None, False),
    (f(3, 3), "nuc", [0, 1], False),
    (h(4), 3.0, None, True),
    (f(2, 3), -1.0, [0, 1], False),
    (f(2, 2, 2), None, [0, 2], False),
    (f(), None, None, False),
    (f(3, 3), 2.0, [0, 1], True),
    (f(0), None, None, False),
    (f(2, 4), "f", None, True),
    (f(2, 2, 3), "fro", [-2, -1], False),
    (f(3, 2).T, None, [1], False),
    (f(2, 3), "nuc", None, True),
]
family.op("linalg::norm", norm, *NORM, covers="norm norm_ord norm_named", tol=1e-4)
