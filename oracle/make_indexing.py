"""Writes fixtures/indexing.json: reads and writes by index with the results of Python MLX.

    pip install mlx==0.32.4 'mlx[cpu]==0.32.4' numpy
    python oracle/make_indexing.py

Cases are drawn with a fixed seed. A read must give what numpy gives too. Left out is what Python MLX leaves undefined or gets wrong:
ranges beyond the axis beside index arrays (it reads foreign memory), empty ranges beside them (it divides by zero), and writes with a new axis behind a plain range behind an index
array (it puts the new axis before the range).
"""

import json
import pathlib
import random

import mlx.core as mx
import numpy as np

SEED = 20_321
READS, WRITES = 260, 260
SHAPES = [(5,), (4,), (3, 4), (2, 5), (2, 3, 4), (3, 2, 2), (2, 2, 3, 2)]


def slice_entry(rng, n, inside):
    step = rng.choice([1, 1, 1, 2, 3, -1, -2])
    reach = n if inside else 2 * n
    bound = lambda: rng.choice([None, rng.randrange(-reach, reach + 1)])
    start, stop = bound(), bound()
    if inside and start is not None and start >= n:
        start = None
    return {"slice": [start, stop, step]}


def entries(rng, shape, allow_arrays):
    """One entry for some axes of the shape, with new axes and an ellipsis thrown in."""
    arrays = allow_arrays and rng.random() < 0.6
    block = rng.choice([(), (2,), (3,), (2, 2), (1, 2)])
    out = []
    count = rng.randrange(0, len(shape) + 1)
    for n in shape[:count]:
        kind = rng.random()
        if arrays and kind < 0.45:
            own = list(block)
            if own and rng.random() < 0.3:
                own[0] = 1
            if len(own) > 1 and rng.random() < 0.3:
                own = own[1:]
            size = int(np.prod(own))
            dtype = rng.choice(["int32", "uint8", "int64", "uint32", "int8"])
            low = 0 if dtype.startswith("u") else -n
            out.append({"array": [rng.randrange(low, n) for _ in range(size)], "shape": own, "dtype": dtype})
        elif kind < 0.65:
            out.append({"at": rng.randrange(-n, n)})
        else:
            out.append(slice_entry(rng, n, arrays))
    if rng.random() < 0.3:
        # What follows the ellipsis indexes the last axes: give it entries that fit any of them.
        at = rng.randrange(0, len(out) + 1)
        tail = [{"slice": [None, None, rng.choice([1, 2, -1])]} for _ in out[at:]]
        out = out[:at] + [{"ellipsis": True}] + tail
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        out.insert(rng.randrange(0, len(out) + 1), {"new": True})
    return out


def as_index(entry, module):
    if "at" in entry:
        return entry["at"]
    if "slice" in entry:
        return slice(*entry["slice"])
    if "ellipsis" in entry:
        return Ellipsis
    if "new" in entry:
        return None
    values = np.array(entry["array"], dtype=entry["dtype"]).reshape(entry["shape"])
    return mx.array(values) if module is mx else values


def misplaced(index):
    """An index array, a plain range somewhere behind it, a new axis behind that."""
    state = 0
    for entry in index:
        if "array" in entry:
            state = 1
        elif state == 1 and ("slice" in entry and entry["slice"][2] == 1 or "ellipsis" in entry):
            state = 2
        elif state == 2 and "new" in entry:
            return True
    return False


def flat(a):
    return np.array(a).reshape(-1).tolist()


def read_case(rng):
    shape = rng.choice(SHAPES)
    a = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    index = entries(rng, shape, True)
    wanted = a[tuple(as_index(e, np) for e in index)]
    # Python MLX divides by zero where index arrays meet an empty range.
    got = mx.array(a)[tuple(as_index(e, mx) for e in index)] if wanted.size else mx.array(wanted)
    assert got.shape == wanted.shape and flat(got) == flat(wanted), (shape, index)
    return {"shape": shape, "index": index, "op": "get", "out_shape": got.shape, "out": flat(got)}


def write_case(rng):
    shape = rng.choice(SHAPES)
    index = entries(rng, shape, True)
    if misplaced(index):
        return None
    a = mx.arange(1, 1 + int(np.prod(shape)), dtype=mx.float32).reshape(shape)
    key = tuple(as_index(e, mx) for e in index)
    part = list(np.array(a)[tuple(as_index(e, np) for e in index)].shape)
    if 0 in part:
        return None
    op = rng.choice(["set", "add", "subtract", "multiply", "divide", "maximum", "minimum"])
    values_shape = part[rng.randrange(0, len(part) + 1):]
    if values_shape and rng.random() < 0.3:
        values_shape[rng.randrange(len(values_shape))] = 1
    if rng.random() < 0.1:
        values_shape = [1] * rng.randrange(0, 3) + part
    size = int(np.prod(values_shape))
    values = [float(2 ** rng.randrange(0, 5)) for _ in range(size)]
    v = mx.array(np.array(values, dtype=np.float32).reshape(values_shape))
    try:
        if op == "set":
            out = mx.array(a)
            out[key] = v
        else:
            out = getattr(a.at[key], op)(v)
        result = flat(out)
    except ValueError:
        # The shape that a write takes differs from the one that a read gives: integers do not count as arrays.
        # Python MLX refuses some values with axes of length 1 in front, and takes others.
        if len(values_shape) > len(part):
            return None
        result = None
    return {"shape": shape, "index": index, "op": op, "values_shape": values_shape, "values": values, "out": result}


def mask_cases():
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    cases = []
    for mask, values in [
        (a % 3 == 0, np.array(7, dtype=np.float32)),
        (a % 3 == 0, np.array([4, 3, 2, 1], dtype=np.float32)),
        (np.array([True, False, True]), np.arange(4, dtype=np.float32)),
        (np.array([True, False, True]), np.arange(8, dtype=np.float32).reshape(2, 4)),
        (np.array([False, False, False]), np.arange(4, dtype=np.float32)),
    ]:
        out = mx.array(a)
        out[mx.array(mask)] = mx.array(values)
        cases.append({
            "mask_shape": mask.shape, "mask": flat(mask), "values_shape": values.shape, "values": flat(values),
            "read_shape": a[mask].shape, "read": flat(a[mask]), "out": flat(out),
        })
    return cases


def main():
    assert mx.__version__ == "0.32.4", mx.__version__
    mx.set_default_device(mx.cpu)
    rng = random.Random(SEED)
    cases = [read_case(rng) for _ in range(READS)]
    while sum(case["op"] != "get" for case in cases) < WRITES:
        case = write_case(rng)
        if case:
            cases.append(case)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    masks = ",\n".join(json.dumps(case, separators=(",", ":")) for case in mask_cases())
    text = f'{{"mlx": "{mx.__version__}", "seed": {SEED}, "cases": [\n{lines}\n], "masks": [\n{masks}\n]}}\n'
    (pathlib.Path(__file__).parent.parent / "fixtures/indexing.json").write_text(text)


main()
