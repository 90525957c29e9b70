"""Random numbers: the same key gives the same values."""

import mlx.core as mx

from .record import V, Family, f, h, i

family = Family("random")
KEY = V("uint32", [0, 7])
OTHER = V("uint32", [123, 456])
ODD = V("uint32", [4294967295, 1])
r = mx.random

family.op("random::key", lambda seed: r.key(seed), 0, 7, 2**32, 2**63 + 5)
family.op("random::split", lambda k: [x for x in r.split(k)], KEY, OTHER, ODD, V("uint32", [0, 0]))
family.op(
    "random::split_many", lambda k, n: r.split(k, n), (KEY, 3), (OTHER, 1), (ODD, 4), (KEY, 2), covers="split_num"
)
# Python has no `bits`: its `split` is 32 of them in the shape (n, 2).
family.op(
    "random::bits",
    lambda shape, width, k: r.split(k, shape[0]),
    ([3, 2], 4, KEY),
    ([1, 2], 4, OTHER),
    ([5, 2], 4, ODD),
    ([2, 2], 4, KEY),
)
family.op(
    "random::uniform",
    lambda shape, t, k: r.uniform(shape=shape, dtype=t, key=k),
    ([2, 3], "float32", KEY),
    ([], "float32", OTHER),
    ([5], "float16", KEY),
    ([3], "bfloat16", ODD),
    ([0, 2], "float32", KEY),
    covers="uniform_unit",
)
family.op(
    "random::uniform_between",
    lambda a, z, shape, t, k: r.uniform(a, z, shape, t, k),
    (V("float32", -1.0), V("float32", 2.0), [2, 3], "float32", KEY),
    (f(3).range(-2, -1), f(2, 1).range(1, 2), [2, 3], "float32", OTHER),
    (V("float16", 0.0), V("float16", 4.0), [5], "float16", ODD),
    (f(2, 1).T, V("float32", 3.0), [2, 2], "float32", KEY),
    covers="uniform",
)
family.op(
    "random::normal",
    lambda shape, t, k: r.normal(shape, t, key=k),
    ([2, 3], "float32", KEY),
    ([], "float32", OTHER),
    ([5], "float16", KEY),
    ([3], "bfloat16", ODD),
    ([0, 2], "float32", KEY),
    covers="",
)
family.op(
    "random::normal_with",
    lambda shape, t, loc, scale, k: r.normal(shape, t, loc, scale, k),
    ([2, 3], "float32", None, None, KEY),
    ([2, 3], "float32", f(3), f(2, 1).range(1, 2), OTHER),
    ([4], "float16", V("float16", 2.0), None, KEY),
    ([2], "float32", None, V("float32", 3.0), ODD),
    covers="normal",
)
COV = V("float32", [[2.0, 0.5], [0.5, 1.0]])
family.op(
    "random::multivariate_normal",
    lambda m, cov, shape, t, k: r.multivariate_normal(m, cov, shape, t, k),
    (f(2), COV, [], "float32", KEY),
    (f(2), COV, [3], "float32", OTHER),
    (f(2), COV.T, [2, 2], "float32", ODD),
    (f(3, 2), COV, [3], "float32", KEY),
    tol=1e-4,
)
family.op(
    "random::randint",
    lambda a, z, shape, t, k: r.randint(a, z, shape, t, k),
    (V("int32", 0), V("int32", 10), [2, 3], "int32", KEY),
    (i(3).range(-9, 0), V("int32", 5), [2, 3], "int32", OTHER),
    (V("int32", 0), V("int32", 100), [], "uint8", ODD),
    (V("int32", -5), i(2, 1).range(1, 9), [2, 2], "int64", KEY),
    (V("int32", 0), V("int32", 3), [0], "int32", KEY),
)
family.op(
    "random::bernoulli",
    lambda p, shape, k: r.bernoulli(p, shape, k),
    (V("float32", 0.5), [2, 3], KEY),
    (f(3).range(0, 1), [2, 3], OTHER),
    (V("float32", 0.1), [], ODD),
    (f(3, 2).range(0, 1).T, [2, 3], KEY),
    (V("float32", 0.5), [0], KEY),
    covers="bernoulli_shape bernoulli",
)
family.op(
    "random::truncated_normal",
    lambda a, z, shape, t, k: r.truncated_normal(a, z, shape, t, k),
    (V("float32", -1.0), V("float32", 2.0), [2, 3], "float32", KEY),
    (f(3).range(-2, -1), f(2, 1).range(1, 2), [2, 3], "float32", OTHER),
    (V("float32", 0.0), V("float32", 4.0), [5], "float16", ODD),
    (V("float32", -1.0), V("float32", 1.0), [], "float32", KEY),
    covers="truncated_normal_shape truncated_normal",
)
family.op(
    "random::gumbel",
    lambda shape, t, k: r.gumbel(shape, t, k),
    ([2, 3], "float32", KEY),
    ([], "float32", OTHER),
    ([5], "float16", KEY),
    ([0, 2], "float32", KEY),
)
family.op(
    "random::laplace",
    lambda shape, t, loc, scale, k: r.laplace(shape, t, loc, scale, k),
    ([2, 3], "float32", 0.0, 1.0, KEY),
    ([], "float32", 1.5, 2.0, OTHER),
    ([5], "float16", 0.0, 1.0, KEY),
    ([0, 2], "float32", 0.0, 1.0, KEY),
)
family.op(
    "random::categorical",
    lambda x, axis, k: r.categorical(x, axis, key=k),
    (f(2, 5), -1, KEY),
    (f(5, 3), 0, OTHER),
    (h(4), 0, KEY),
    (f(4, 3).T, 1, ODD),
)
family.op(
    "random::categorical_many",
    lambda x, axis, n, k: r.categorical(x, axis, num_samples=n, key=k),
    (f(2, 5), -1, 3, KEY),
    (f(5, 3), 0, 2, OTHER),
    (h(4), 0, 1, KEY),
    (f(4, 3).T, 1, 4, ODD),
    covers="categorical_num_samples",
)
family.op(
    "random::categorical_shape",
    lambda x, axis, shape, k: r.categorical(x, axis, shape=shape, key=k),
    (f(2, 5), -1, [3, 2], KEY),
    (f(5, 3), 0, [3], OTHER),
    (h(4), 0, [2, 2], KEY),
    (f(4, 3).T, 1, [2, 3], ODD),
)
family.op(
    "random::permutation",
    lambda x, axis, k: r.permutation(x, axis, k),
    (f(4, 2), 0, KEY),
    (i(2, 5), -1, OTHER),
    (f(4, 3).T, 1, ODD),
    (h(1), 0, KEY),
)
family.op(
    "random::permutation_of",
    lambda n, k: r.permutation(n, key=k),
    (5, KEY),
    (1, OTHER),
    (0, KEY),
    (9, ODD),
    covers="permutation_range",
)


def sequence(seed):
    """What the process's own sequence gives after a seed."""
    r.seed(seed)
    return [r.uniform(shape=(2,)), r.normal((2,)), r.randint(0, 100, (3,)), r.bernoulli(0.5, (4,))]


family.op("random::seed", sequence, 0, 1, 42, 2**40)
