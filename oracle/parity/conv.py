"""Convolutions."""

import mlx.core as mx

from .record import Family, f, h

family = Family("conv")

# Arguments: stride, padding, dilation, output padding (transposed only), groups.
CASES = {
    1: [
        (f(1, 5, 2), f(3, 2, 2)),
        (h(2, 4, 1), h(1, 3, 1)),
        (f(1, 6, 4), f(2, 3, 2)),
        (f(1, 5, 2).R, f(1, 2, 2)),
        (f(1, 5, 1), f(1, 2, 1)),
    ],
    2: [
        (f(1, 3, 4, 2), f(2, 2, 2, 2)),
        (h(2, 3, 3, 1), h(1, 2, 2, 1)),
        (f(1, 3, 3, 4), f(2, 2, 2, 2)),
        (f(1, 3, 3, 1).R, f(1, 2, 1, 1)),
    ],
    3: [
        (f(1, 2, 3, 2, 1), f(2, 2, 2, 1, 1)),
        (h(1, 2, 2, 2, 1), h(1, 2, 2, 2, 1)),
        (f(1, 2, 2, 2, 2), f(2, 1, 2, 2, 2)),
        (f(1, 2, 3, 2, 1), f(1, 1, 2, 1, 1)),
    ],
}
SETTINGS = [(1, 0, 1, 0, 1), (2, 1, 1, 1, 1), (1, 1, 1, 0, 2), (1, 1, 2, 0, 1), (2, 0, 1, 0, 1)]
for n, inputs in CASES.items():
    at = lambda v, n=n: [v] * n
    # MLX has no groups in three dimensions.
    rows = [(*pair, *[at(v) for v in s[:4]], s[4] if n < 3 else 1) for pair, s in zip(inputs, SETTINGS)]
    plain = lambda v: v[0] if len(v) == 1 else tuple(v)
    conv, transposed = getattr(mx, f"conv{n}d"), getattr(mx, f"conv_transpose{n}d")
    family.op(
        f"ops::conv{n}d", lambda x, w, s, p, d, o, g, conv=conv: conv(x, w, plain(s), plain(p), plain(d), g), *rows
    )
    pads = at(0)
    more = [(f(1, *[3] * n, 1), f(1, *[2] * n, 1), at(1), pads, at(1), pads, 1)]
    more += (
        [*rows[3:], (f(1, *[2] * n, 2), f(2, *[2] * n, 1), at(1), pads, at(1), pads, 2)]
        if n < 3
        else [(h(1, 2, 1, 2, 1), h(1, 2, 1, 1, 1), at(2), pads, at(1), at(1), 1)]
    )
    family.op(
        f"ops::conv_transpose{n}d",
        lambda x, w, s, p, d, o, g, t=transposed: t(x, w, plain(s), plain(p), plain(d), plain(o), g),
        *rows[:2],
        *more,
    )
general = lambda x, w, s, lo, hi, kd, d, g, flip: mx.conv_general(
    x, w, s or 1, (lo, hi) if lo or hi else 0, kd or 1, d or 1, g, flip
)
family.op(
    "ops::conv_general",
    general,
    (f(1, 5, 2), f(3, 2, 2), [1], [0], [0], [1], [1], 1, False),
    (f(1, 4, 4, 1), f(1, 2, 2, 1), [2, 1], [1, 0], [0, 1], [1, 2], [1, 1], 1, True),
    (h(1, 3, 2), h(2, 2, 1), [1], [1], [1], [1], [2], 2, False),
    (f(1, 3, 3, 1).R, f(2, 2, 2, 1), [1, 1], [0, 0], [0, 0], [1, 1], [2, 2], 1, False),
    (f(1, 2, 2, 2, 1), f(1, 2, 1, 2, 1), [], [], [], [], [], 1, False),
)
