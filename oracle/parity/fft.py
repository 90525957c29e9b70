"""Fourier transforms."""

import mlx.core as mx

from .record import Family, c, f, h, i

family = Family("fft")
NORMS = ["backward", "ortho", "forward", "backward"]

for name in ("fft", "ifft", "rfft", "irfft"):
    x = c if name in ("ifft", "irfft") else f
    one, two, many = (getattr(mx.fft, name + tail) for tail in ("", "2", "n"))
    ones = [
        (x(4), None, -1, "backward"),
        (x(2, 3), None, 0, "ortho"),
        (x(3, 2).T, None, 1, "forward"),
        (x(2, 5), None, -2, "backward"),
        (x(0, 3), None, 1, "backward"),
        (x(4), 6, 0, "backward"),
        (x(2, 5), 3, -1, "ortho"),
        (x(3, 2).T, 4, 0, "forward"),
        (x(6).S, 5, 0, "backward"),
    ]
    if name[-4:] == "rfft":
        ones = [case for case in ones if case[0].shape != (0, 3) or name == "rfft"]
    if name == "fft":
        ones += [(c(4), None, 0, "backward"), (i(4), None, 0, "backward"), (h(4), None, 0, "ortho")]
    family.op(
        f"fft::{name}", lambda a, n, axis, norm, f=one: f(a, n, axis, norm=norm), *ones, covers=f"{name} {name}_n"
    )
    twos = [
        (x(2, 3), None, [-2, -1], "backward"),
        (x(3, 2, 2), None, [0, -1], "ortho"),
        (x(3, 2).T, None, [0, 1], "forward"),
        (x(2, 4), None, [1, 0], "backward"),
        (x(2, 3), [3, 2], [0, 1], "backward"),
        (x(3, 2).T, [2, 4], [-2, -1], "ortho"),
        (x(2, 2, 3), [2, 2], [0, 2], "forward"),
        (x(2, 3), [4, 4], [1, 0], "backward"),
    ]
    family.op(
        f"fft::{name}2", lambda a, n, axes, norm, f=two: f(a, n, axes, norm=norm), *twos, covers=f"{name}2 {name}2_n"
    )
    several = [
        (x(2, 3), None, None, "backward"),
        (x(2, 2, 3), None, None, "ortho"),
        (x(3, 2).T, None, None, "forward"),
        (x(4), None, None, "backward"),
        *[(a, None, axes, norm) for (a, n, axes, norm) in twos[:4]],
        *twos[4:],
        (x(2, 4), [3], None, "backward"),
    ]
    family.op(
        f"fft::{name}n",
        lambda a, n, axes, norm, f=many: f(a, n, list(range(-len(n), 0)) if n and axes is None else axes, norm=norm),
        *several,
        covers=f"{name}n {name}n_axes {name}n_n_axes",
    )
for name in ("fftfreq", "rfftfreq"):
    family.op(f"fft::{name}", getattr(mx.fft, name), (4, 1.0), (5, 0.5), (1, 2.0), (8, 0.1))
for name in ("fftshift", "ifftshift"):
    call = getattr(mx.fft, name)
    family.op(
        f"fft::{name}",
        lambda x, axes, call=call: call(x, axes) if axes is not None else call(x),
        (f(5), None),
        (i(2, 3), None),
        (f(3, 2).T, None),
        (c(4), None),
        (f(2, 3), [1]),
        (f(3, 2).T, [0]),
        (h(2, 3), [-1, 0]),
        (f(0, 3), [1]),
        covers=f"{name}_all {name}_axes",
    )


def stft(x, n, hop, length, window, center, pad, norm, one):
    return mx.fft.stft(
        x, n, hop_length=hop, win_length=length, window=window, center=center, pad_mode=pad, norm=norm, onesided=one
    )


STFT = [
    (f(16), 8, None, None, None, True, "constant", "backward", None),
    (f(2, 12), 4, 2, None, f(4).range(0.5, 1), True, "reflect", "ortho", True),
    (f(12), 4, 4, None, f(4).range(0.5, 1), False, "constant", "forward", False),
    (f(16).S, 8, 3, 4, f(4).range(0.5, 1), True, "constant", "backward", True),
]
family.op("fft::stft", stft, *STFT)
istft = lambda x, n, hop, length, window, center, norm, one, samples: mx.fft.istft(
    x, n_fft=n, hop_length=hop, win_length=length, window=window, center=center, norm=norm, onesided=one, length=samples
)
family.op(
    "fft::istft",
    istft,
    (c(5, 5), 8, 2, None, None, True, "backward", None, None),
    (c(2, 4, 3), 4, 2, None, f(4).range(0.5, 1), True, "ortho", True, 6),
    (c(3, 4), 4, 2, None, f(4).range(0.5, 1), False, "backward", False, None),
    (c(5, 4).T, 8, 4, None, f(8).range(0.5, 1), True, "forward", True, 12),
    tol=1e-4,
)
