"""Inputs by shape and dtype, and the cases that a family of operations records.

An input is written as `f(2, 3)`: float32 of that shape with values between -2 and 2; `.range(lo, hi)` draws others, `V(dtype, values)` gives them.
`.T`, `.S` and `.R` make it a view of other memory: its transpose, every second element of one twice as long, the reverse of one.
"""

import json
import math
import zlib

import mlx.core as mx
import numpy as np

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
DTYPES += ["float16", "bfloat16", "float32", "float64", "complex64"]


def dtype_of(name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


def name_of(dtype):
    return str(dtype).rsplit(".", 1)[-1].removesuffix("_")


class Input:
    """An array to be: what it is made from, and how it lies in memory."""

    def __init__(self, dtype, shape, bounds=None, values=None, view=None):
        self.dtype, self.shape, self.bounds, self.values, self.view = dtype, tuple(shape), bounds, values, view

    def range(self, lo, hi):
        return Input(self.dtype, self.shape, (lo, hi), None, self.view)

    def _viewed(self, view):
        return Input(self.dtype, self.shape, self.bounds, self.values, view)

    T = property(lambda self: self._viewed("T"))
    S = property(lambda self: self._viewed("S"))
    R = property(lambda self: self._viewed("R"))

    def base_shape(self):
        return (*self.shape[:-1], 2 * self.shape[-1]) if self.view == "S" else self.shape

    def make(self, rng):
        """The array, and what the fixture says of it."""
        shape = self.base_shape()
        values = np.array(self.values).reshape(shape) if self.values is not None else self.draw(rng, shape)
        if self.dtype == "complex64":
            base = mx.array(values.astype(np.complex64))
        elif self.dtype in ("float32", "float64", "float16", "bfloat16"):
            base = mx.array(values.astype(np.float64).reshape(-1).tolist(), dtype=dtype_of(self.dtype)).reshape(shape)
        else:
            base = mx.array(values.astype(np.bool_ if self.dtype == "bool" else self.dtype))
        text = encode(base)
        if self.view:
            text["view"] = self.view
        made = {"T": mx.transpose, "S": lambda x: x[..., ::2], "R": lambda x: x[..., ::-1], None: lambda x: x}[
            self.view
        ](base)
        return made, text

    def draw(self, rng, shape):
        if self.dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if "int" in self.dtype:
            lo, hi = self.bounds or ((0, 9) if self.dtype[0] == "u" else (-9, 9))
            return rng.integers(lo, hi, shape, endpoint=True)
        lo, hi = self.bounds or (-2, 2)
        draw = lambda: rng.uniform(lo, hi, shape)
        if self.dtype == "complex64":
            return np.round(draw(), 2) + 1j * np.round(draw(), 2)
        # Halves hold multiples of 1/32 exactly, which keeps the fixture short.
        return np.round(draw() * 32) / 32 if self.dtype in ("float16", "bfloat16") else np.round(draw(), 3)


def _maker(dtype):
    return lambda *shape: Input(dtype, shape)


f, h, bf, d, c = map(_maker, ["float32", "float16", "bfloat16", "float64", "complex64"])
i, i8, i16, i64, u8, u16, u, u64, b = map(
    _maker, ["int32", "int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
)


def V(dtype, values):
    """An array of these values."""
    return Input(dtype, np.array(values).shape, None, np.array(values))


def number(value):
    """A number as JSON has it, the shortest that reads back as the same value."""
    if isinstance(value, (np.bool_, bool)):
        return int(value)
    if isinstance(value, (np.integer, int)):
        return int(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    value = float(str(value))
    negative_zero = value == 0 and math.copysign(1, value) < 0
    return int(value) if value == int(value) and abs(value) < 1e6 and not negative_zero else value


def encode(array):
    """An array as the fixture holds it: dtype, shape, values in row-major order; complex ones as pairs."""
    name = name_of(array.dtype)
    if name == "bfloat16":
        flat = [
            float(f"{v:.5g}") if math.isfinite(v) else v
            for v in np.array(array.astype(mx.float32)).reshape(-1).tolist()
        ]
    else:
        flat = np.array(array).reshape(-1)
        if name == "complex64":
            flat = flat.view(np.float32)
    return {"d": name, "s": list(array.shape), "v": [number(v) for v in flat]}


class Family:
    """The operations of one fixture file."""

    def __init__(self, name):
        self.name, self.groups = name, []

    def op(self, name, function, *cases, covers=None, tol=None):
        """Records `function` on each case, a tuple of arguments; `name` is the Rust function.

        `covers` names functions of the bridge that it stands for, its own name when it is left out.
        """
        assert name not in [group["op"] for group in self.groups], name
        assert len(cases) >= 4, f"{name} has {len(cases)} cases"
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        made = []
        for case in cases:
            case = case if isinstance(case, tuple) else (case,)
            arguments, texts = [], []
            for argument in case:
                value, text = self._argument(argument, rng)
                arguments.append(value)
                texts.append(text)
            try:
                out = function(*arguments)
            except Exception as error:
                raise RuntimeError(f"{name} {texts}: {error}") from error
            out = list(out) if isinstance(out, (tuple, list)) else [out]
            mx.eval(out)
            made.append({"in": texts, "out": [encode(o) for o in out]})
        topic = name.split("::")[0]
        covers = [name] if covers is None else [one if ":" in one else f"{topic}::{one}" for one in covers.split()]
        group = {"op": name, "covers": covers, "cases": made}
        if tol is not None:
            group["tol"] = tol
        self.groups.append(group)

    def _argument(self, argument, rng):
        if isinstance(argument, Input):
            return argument.make(rng)
        if isinstance(argument, list) and argument and isinstance(argument[0], Input):
            pairs = [one.make(rng) for one in argument]
            return [array for array, _ in pairs], [text for _, text in pairs]
        if isinstance(argument, str) and argument in DTYPES:
            return dtype_of(argument), argument
        if isinstance(argument, float) and math.isinf(argument):
            return argument, "inf"
        return argument, argument

    def write(self, folder):
        lines = []
        for group in self.groups:
            head = {key: value for key, value in group.items() if key != "cases"}
            cases = ",\n".join(json.dumps(case, separators=(",", ":")) for case in group["cases"])
            lines.append(json.dumps(head, separators=(",", ":"))[:-1] + ',"cases":[\n' + cases + "]}")
        (folder / f"{self.name}.json").write_text("[" + ",\n".join(lines) + "]\n")
        return sum(len(group["cases"]) for group in self.groups)
